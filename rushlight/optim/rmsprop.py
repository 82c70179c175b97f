"""RMSprop (Hinton 2012)."""

from __future__ import annotations

from rushlight import Tensor

from .adam import upgrade_steps
from .optimizer import Optimizer, as_real, check_at_least_zero, check_lr, new_step, value_of, zeros_like

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["RMSprop"]


class RMSprop(Optimizer):
    """RMSprop (Hinton 2012): v = alpha v + (1 - alpha) g^2, p moves by -lr * g / (sqrt(v) + eps).

    Args:
        momentum: of the steps.
        centered: the mean of g is taken out of v (Graves 2013).
        The other arguments are as for :class:`Adam`.
    """

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr("RMSprop", lr)
        check_at_least_zero("RMSprop", eps=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha)
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("momentum", 0)
            group.setdefault("centered", False)
            group.setdefault("foreach", None)
            group.setdefault("maximize", False)
            group.setdefault("differentiable", False)
            group.setdefault("capturable", False)
            upgrade_steps(self, group)

    def _update(self, p: Any, grad: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        if not state:
            state["step"] = new_step(p, group["capturable"])
            state["square_avg"] = zeros_like(p)
            if group["momentum"] > 0:
                state["momentum_buffer"] = zeros_like(p)
            if group["centered"]:
                state["grad_avg"] = zeros_like(p)
        lr, alpha, momentum = value_of(group["lr"]), group["alpha"], group["momentum"]
        state["step"] += 1
        if group["weight_decay"] != 0:
            grad = grad.add(p, alpha=group["weight_decay"])
        p, grad, square, buffer, mean = as_real(
            p, grad, state["square_avg"], state.get("momentum_buffer"), state.get("grad_avg")
        )
        square.mul_(alpha).addcmul_(grad, grad, value=1 - alpha)
        if group["centered"]:
            mean.lerp_(grad, 1 - alpha)
            root = square.addcmul(mean, mean, value=-1).sqrt_()
        else:
            root = square.sqrt()
        root = root.add(group["eps"]) if group["differentiable"] else root.add_(group["eps"])
        if momentum > 0:
            buffer.mul_(momentum).addcdiv_(grad, root)
            p.add_(buffer, alpha=-lr)
        else:
            p.addcdiv_(grad, root, value=-lr)
