"""Adamax (Kingma and Ba 2014)."""

from __future__ import annotations

import rushlight
from rushlight import Tensor

from .adam import upgrade_steps
from .optimizer import Optimizer, as_real, check_at_least_zero, check_betas, check_lr, new_step, value_of, zeros_like

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Adamax"]


class Adamax(Optimizer):
    """Adam with the infinity norm (Kingma and Ba 2014): u = max(beta2 u, \\|g\\| + eps), p moves by -lr / (1 -
    beta1^t) * m / u.

    Arguments as :class:`Adam`.
    """

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_lr("Adamax", lr)
        check_at_least_zero("Adamax", eps=eps, weight_decay=weight_decay)
        check_betas("Adamax", betas)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
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
            state["exp_avg"] = zeros_like(p)
            state["exp_inf"] = zeros_like(p)
        beta1, beta2 = group["betas"]
        state["step"] += 1
        step = state["step"].item()
        if group["weight_decay"] != 0:
            grad = grad.add(p, alpha=group["weight_decay"])
        p, grad, mean, largest = as_real(p, grad, state["exp_avg"], state["exp_inf"])
        mean.lerp_(grad, 1 - beta1)
        if group["differentiable"]:
            largest.copy_(rushlight.maximum(largest * beta2, grad.abs() + group["eps"]))
        else:
            rushlight.maximum(largest.mul_(beta2), grad.abs().add_(group["eps"]), out=largest)
        p.addcdiv_(mean, largest, value=-(value_of(group["lr"]) / (1 - beta1**step)))
