"""Resilient backpropagation (Riedmiller and Braun 1993)."""

from __future__ import annotations

import rushlight
from rushlight import Tensor

from .adam import upgrade_steps
from .optimizer import Optimizer, as_real, check_lr, new_step, value_of, zeros_like

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Rprop"]


class Rprop(Optimizer):
    """Resilient backpropagation (Riedmiller and Braun 1993): step sizes of their own per element, from the signs of g
    alone.

    Args:
        lr: the first step size.
        etas: factors of the step size when the sign of g changed and when it did not.
        step_sizes: the smallest and the largest one.
        capturable, foreach, maximize, differentiable: as in :class:`Adam`.
    """

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr("Rprop", lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Rprop: etas; expected 0 < etas[0] < 1 < etas[1], got {etas[0]} and {etas[1]}")
        defaults = {
            "lr": lr,
            "etas": etas,
            "step_sizes": step_sizes,
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
            lr = value_of(group["lr"])
            state["step"] = new_step(p, group["capturable"])
            state["prev"] = zeros_like(p)
            state["step_size"] = rushlight.full_like(grad, complex(lr, lr) if p.is_complex() else lr)
        smaller, larger = group["etas"]
        state["step"] += 1
        p, grad, previous, sizes = as_real(p, grad, state["prev"], state["step_size"])
        sign = grad.mul(previous.clone() if group["differentiable"] else previous).sign()
        factor = rushlight.where(sign > 0, larger, rushlight.where(sign < 0, smaller, rushlight.ones_like(sign)))
        sizes.mul_(factor).clamp_(*group["step_sizes"])
        # after a change of sign the element rests for one step
        grad = rushlight.where(sign < 0, rushlight.zeros_like(grad), grad)
        p.addcmul_(grad.sign(), sizes, value=-1)
        previous.copy_(grad)
