"""Averaged stochastic gradient descent (Polyak and Juditsky 1992)."""

from __future__ import annotations

import rushlight
from rushlight import Tensor

from .adam import upgrade_steps
from .optimizer import Optimizer, as_real, check_at_least_zero, check_lr, new_step, value_of, zeros_like

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["ASGD"]


class ASGD(Optimizer):
    """Gradient descent that also keeps the average of the parameters (Polyak and Juditsky 1992), as state "ax".

    Args:
        lr, lambd, alpha: the rate at step t is lr / (1 + lambd * lr * t)^alpha; lambd is a decay as well.
        t0: the step from which on the average is taken.
        weight_decay, foreach, maximize, differentiable, capturable: as in :class:`Adam`.
    """

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_lr("ASGD", lr, foreach, capturable)
        check_at_least_zero("ASGD", weight_decay=weight_decay)
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
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
            for p in group["params"]:
                s = self.state.get(p)
                for key in ("eta", "mu"):
                    if s and key in s and not isinstance(s[key], Tensor):
                        s[key] = new_step(p).fill_(float(s[key]))

    def _update(self, p: Any, grad: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        lr, lambd = value_of(group["lr"]), group["lambd"]
        if not state:
            state["step"] = rushlight.zeros_like(new_step(), device=p.device)
            state["eta"] = rushlight.full_like(new_step(), lr, device=p.device)
            state["mu"] = rushlight.ones_like(new_step(), device=p.device)
            state["ax"] = zeros_like(p)
        p, grad, average = as_real(p, grad, state["ax"])
        state["step"] += 1
        step = state["step"].item()
        if group["weight_decay"] != 0:
            grad = grad.add(p, alpha=group["weight_decay"])
        eta, mu = state["eta"].item(), state["mu"].item()
        p.mul_(1 - lambd * eta)
        p.add_(grad, alpha=-eta)
        if mu != 1:
            average.add_(p.sub(average).mul_(mu))
        else:
            average.copy_(p)
        state["eta"].fill_(lr / ((1 + lambd * lr * step) ** group["alpha"]))
        state["mu"].fill_(1 / max(1, step - group["t0"]))
