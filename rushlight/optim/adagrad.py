"""Adagrad (Duchi et al. 2011)."""

from __future__ import annotations

import rushlight
from rushlight import Tensor

from .adam import upgrade_steps
from .optimizer import Optimizer, as_real, check_at_least_zero, check_flags, check_lr, new_step, value_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Adagrad"]


class Adagrad(Optimizer):
    """Adagrad (Duchi et al. 2011): p moves by -lr' * g / (sqrt(sum of g^2) + eps), lr' = lr / (1 + (t - 1) * lr_decay).

    Args:
        lr, lr_decay, eps: as above.
        initial_accumulator_value: of the sum.
        weight_decay, foreach, fused, maximize, differentiable: as in :class:`Adam`.
    """

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_lr("Adagrad", lr)
        check_at_least_zero(
            "Adagrad",
            lr_decay=lr_decay,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
            eps=eps,
        )
        check_flags("Adagrad", foreach, fused, differentiable)
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        for group in self.param_groups:
            for p in group["params"]:
                self._prepare(p, self.state[p], group)

    def _prepare(self, p: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        initial = group["initial_accumulator_value"]
        if p.is_complex():
            initial = complex(initial, initial)
        state["step"] = new_step(p, bool(group["fused"]))
        state["sum"] = rushlight.full_like(p, initial, memory_format=rushlight.preserve_format)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("foreach", None)
            group.setdefault("maximize", False)
            group.setdefault("differentiable", False)
            group.setdefault("fused", None)
            upgrade_steps(self, group)

    def share_memory(self) -> None:
        """Moves the sums into shared memory."""
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["sum"].share_memory_()

    def _update(self, p: Any, grad: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        if not state:
            self._prepare(p, state, group)
        state["step"] += 1
        step = state["step"].item()
        if group["weight_decay"] != 0:
            grad = grad.add(p, alpha=group["weight_decay"])
        lr = value_of(group["lr"]) / (1 + (step - 1) * group["lr_decay"])
        p, grad, total = as_real(p, grad, state["sum"])
        total.addcmul_(grad, grad, value=1)
        std = (total.sqrt() + group["eps"]) if group["differentiable"] else total.sqrt().add_(group["eps"])
        p.addcdiv_(grad, std, value=-lr)
