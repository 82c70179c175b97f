"""Adam (Kingma and Ba 2014), and what AdamW shares with it."""

from __future__ import annotations

import rushlight
import rushlight._C as _C
from rushlight import Tensor

from .optimizer import (
    Optimizer,
    as_real,
    check_at_least_zero,
    check_betas,
    check_flags,
    check_lr,
    gather,
    new_step,
    value_of,
    zeros_like,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["Adam"]

_KEYS = ("step", "exp_avg", "exp_avg_sq")
_KEYS_AMSGRAD = ("step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq")

# _adam_step(params, grads, steps, exp_avgs, exp_avg_sqs, max_exp_avg_sqs or None, lr, beta1, beta2, eps, weight_decay,
# maximize, decoupled): one update of all of them, the steps counted up. False, and nothing changed, for tensors it is
# not made for (complex, mixed dtypes, other devices).
_native_step: Any = getattr(_C, "_adam_step", None)


class Adam(Optimizer):
    """Adam (Kingma and Ba 2014).

    m = beta1 m + (1 - beta1) g, v = beta2 v + (1 - beta2) g^2, and p moves by -lr * m' / (sqrt(v') + eps), where m'
    and v' are m and v divided by 1 - beta^t.

    Args:
        lr, betas, eps: as above; lr may be a tensor of one element.
        weight_decay: adds weight_decay * p to g; with decoupled_weight_decay p shrinks by lr * weight_decay instead.
        amsgrad: divides by the largest v' so far (Reddi et al. 2018).
        maximize: moves uphill.
        foreach, fused, capturable: accepted; all parameters are updated by one native call in any case.
        differentiable: the update itself is recorded by autograd.

    Example::

        >>> import rushlight
        >>> w = rushlight.nn.Parameter(rushlight.ones(2))
        >>> optimizer = rushlight.optim.Adam([w], lr=0.1)
        >>> w.sum().backward()
        >>> optimizer.step()
        >>> [round(x, 4) for x in w.tolist()]
        [0.9, 0.9]
    """

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        betas: tuple[Any, Any] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        name = type(self).__name__
        check_lr(name, lr, foreach, capturable)
        check_at_least_zero(name, eps=eps, weight_decay=weight_decay)
        check_betas(name, betas)
        if isinstance(betas[0], Tensor) != isinstance(betas[1], Tensor):
            raise ValueError(f"{name}: betas; expected both floats or both Tensors, got one of each")
        for i in (0, 1):
            if isinstance(betas[i], Tensor):
                if foreach and not capturable:
                    raise ValueError(
                        f"{name}: betas[{i}] as a Tensor with foreach=True; expected capturable=True as well"
                    )
                if betas[i].numel() != 1:
                    raise ValueError(f"{name}: betas[{i}]; expected one element, got shape {list(betas[i].shape)}")
        check_flags(name, foreach, fused, differentiable)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("amsgrad", False)
            group.setdefault("maximize", False)
            group.setdefault("foreach", None)
            group.setdefault("capturable", False)
            group.setdefault("differentiable", False)
            group.setdefault("fused", None)
            group.setdefault("decoupled_weight_decay", False)
            upgrade_steps(self, group)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One update of all parameters from their gradients; returns the loss of ``closure`` when one is given."""
        loss = None
        if closure is not None:
            with rushlight.enable_grad():
                loss = closure()
        for group in self.param_groups:
            if group["differentiable"] or not self._native(group):
                with rushlight.set_grad_enabled(group["differentiable"]):
                    self._step_group(group)
        return loss

    def _native(self, group: dict[str, Any]) -> Any:
        if _native_step is None:
            return False
        amsgrad = group["amsgrad"]
        keys = _KEYS_AMSGRAD if amsgrad else _KEYS
        params = group["params"]
        found = gather(params, self.state, keys)
        if found is None:
            for p in params:
                if p.grad is not None:
                    self._prepare(p, self.state[p], group)
            found = gather(params, self.state, keys)
        beta1, beta2 = group["betas"]
        lr = group["lr"]
        if type(lr) is not float:
            lr = value_of(lr)
        if type(beta1) is not float:
            beta1, beta2 = value_of(beta1), value_of(beta2)
        return _native_step(
            found[0],
            found[1],
            found[2],
            found[3],
            found[4],
            found[5] if amsgrad else None,
            lr,
            beta1,
            beta2,
            group["eps"],
            group["weight_decay"],
            group["maximize"],
            group["decoupled_weight_decay"],
        )

    def _prepare(self, p: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        if "step" not in state:
            state["step"] = new_step(p, bool(group["capturable"] or group["fused"]))
            state["exp_avg"] = zeros_like(p)
            state["exp_avg_sq"] = zeros_like(p)
        if group["amsgrad"] and "max_exp_avg_sq" not in state:
            state["max_exp_avg_sq"] = zeros_like(p)

    def _settings(self, group: dict[str, Any]) -> dict[str, Any]:
        beta1, beta2 = group["betas"]
        # a tensor lr keeps its gradient in a recorded update
        lr = group["lr"] if group["differentiable"] else value_of(group["lr"])
        return {**group, "lr": lr, "betas": (value_of(beta1), value_of(beta2))}

    def _update(self, p: Any, grad: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        self._prepare(p, state, group)
        lr, (beta1, beta2), eps, weight_decay = group["lr"], group["betas"], group["eps"], group["weight_decay"]
        state["step"] += 1
        step = state["step"].item()
        if weight_decay != 0:
            if group["decoupled_weight_decay"]:
                p.mul_(1 - lr * weight_decay)
            else:
                grad = grad.add(p, alpha=weight_decay)
        p, grad, mean, square, largest = as_real(
            p, grad, state["exp_avg"], state["exp_avg_sq"], state.get("max_exp_avg_sq") if group["amsgrad"] else None
        )
        mean.lerp_(grad, 1 - beta1)
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        correction1, correction2 = 1 - beta1**step, 1 - beta2**step
        if largest is not None:
            # recorded updates must not write into what maximum has saved
            if group["differentiable"]:
                largest.copy_(rushlight.maximum(largest.clone(), square))
            else:
                rushlight.maximum(largest, square, out=largest)
            square = largest
        denominator = (square.sqrt() / correction2**0.5).add_(eps)
        if isinstance(lr, Tensor):
            p.add_(-(lr / correction1) * (mean / denominator))
        else:
            p.addcdiv_(mean, denominator, value=-(lr / correction1))


def upgrade_steps(optimizer: Any, group: dict[str, Any]) -> None:
    """Step counts that were saved as numbers become tensors."""
    for p in group["params"]:
        state = optimizer.state.get(p)
        if state and "step" in state and not isinstance(state["step"], Tensor):
            count = new_step(p, bool(group.get("capturable", False) or group.get("fused", False)))
            count.fill_(float(state["step"]))
            state["step"] = count
