"""Adadelta (Zeiler 2012)."""

from __future__ import annotations

from rushlight import Tensor

from .adam import upgrade_steps
from .optimizer import Optimizer, as_real, check_at_least_zero, check_lr, new_step, value_of, zeros_like

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Adadelta"]


class Adadelta(Optimizer):
    """Adadelta (Zeiler 2012): steps in the units of the parameters, from running averages of g^2 and of past steps^2.

    Args:
        lr: factor of the step.
        rho: of the running averages, in [0, 1].
        eps, weight_decay, foreach, capturable, maximize, differentiable: as in :class:`Adam`.
    """

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr("Adadelta", lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Adadelta: rho; expected a number in [0, 1], got {rho}")
        check_at_least_zero("Adadelta", eps=eps, weight_decay=weight_decay)
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "capturable": capturable,
            "foreach": foreach,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("foreach", None)
            group.setdefault("maximize", False)
            group.setdefault("differentiable", False)
            group.setdefault("capturable", False)
            upgrade_steps(self, group)

    def _update(self, p: Any, grad: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        if not state:
            state["step"] = new_step(p, group["capturable"])
            state["square_avg"] = zeros_like(p)
            state["acc_delta"] = zeros_like(p)
        rho, eps = group["rho"], group["eps"]
        state["step"] += 1
        if group["weight_decay"] != 0:
            grad = grad.add(p, alpha=group["weight_decay"])
        p, grad, square, steps = as_real(p, grad, state["square_avg"], state["acc_delta"])
        square.mul_(rho).addcmul_(grad, grad, value=1 - rho)
        std = square.add(eps).sqrt_()
        delta = steps.add(eps).sqrt_()
        if group["differentiable"]:
            delta = delta.clone()
        delta.div_(std).mul_(grad)
        steps.mul_(rho).addcmul_(delta, delta, value=1 - rho)
        p.add_(delta, alpha=-value_of(group["lr"]))
