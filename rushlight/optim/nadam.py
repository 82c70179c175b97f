"""NAdam (Dozat 2016)."""

from __future__ import annotations

import rushlight
from rushlight import Tensor

from .adam import upgrade_steps
from .optimizer import Optimizer, as_real, check_at_least_zero, check_betas, check_lr, new_step, value_of, zeros_like

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["NAdam"]


class NAdam(Optimizer):
    """Adam with Nesterov's momentum (Dozat 2016).

    Args:
        momentum_decay: beta1 at step t is beta1 * (1 - 0.5 * 0.96^(t * momentum_decay)).
        The other arguments are as for :class:`Adam`.
    """

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr("NAdam", lr)
        check_at_least_zero("NAdam", eps=eps, weight_decay=weight_decay, momentum_decay=momentum_decay)
        check_betas("NAdam", betas)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("maximize", False)
            group.setdefault("foreach", None)
            group.setdefault("capturable", False)
            group.setdefault("differentiable", False)
            group.setdefault("decoupled_weight_decay", False)
            upgrade_steps(self, group)
            for p in group["params"]:
                s = self.state.get(p)
                if s and not isinstance(s["mu_product"], Tensor):
                    s["mu_product"] = new_step(p).fill_(float(s["mu_product"]))

    def _update(self, p: Any, grad: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        if not state:
            state["step"] = new_step(p, group["capturable"])
            state["mu_product"] = rushlight.ones_like(state["step"])
            state["exp_avg"] = zeros_like(p)
            state["exp_avg_sq"] = zeros_like(p)
        lr, (beta1, beta2), decay = value_of(group["lr"]), group["betas"], group["momentum_decay"]
        state["step"] += 1
        step = state["step"].item()
        if group["weight_decay"] != 0:
            if group["decoupled_weight_decay"]:
                p.mul_(1 - lr * group["weight_decay"])
            else:
                grad = grad.add(p, alpha=group["weight_decay"])
        p, grad, mean, square = as_real(p, grad, state["exp_avg"], state["exp_avg_sq"])
        mu = beta1 * (1.0 - 0.5 * (0.96 ** (step * decay)))
        mu_next = beta1 * (1.0 - 0.5 * (0.96 ** ((step + 1) * decay)))
        state["mu_product"] *= mu
        product = state["mu_product"].item()
        mean.lerp_(grad, 1 - beta1)
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        denominator = square.div(1 - beta2**step).sqrt().add_(group["eps"])
        p.addcdiv_(grad, denominator, value=-lr * (1.0 - mu) / (1.0 - product))
        p.addcdiv_(mean, denominator, value=-lr * mu_next / (1.0 - product * mu_next))
