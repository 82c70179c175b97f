"""Stochastic gradient descent."""

from __future__ import annotations

import rushlight
import rushlight._C as _C
from rushlight import Tensor

from .optimizer import Optimizer, check_at_least_zero, check_flags, check_lr, gather, value_of, zeros_like

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["SGD"]

_KEYS = ("momentum_buffer",)

# _sgd_step(params, grads, momentum_buffers or None, lr, momentum, dampening, weight_decay, nesterov, maximize): one
# update of all of them. False, and nothing changed, for tensors it is not made for (complex, mixed dtypes, other
# devices).
_native_step: Any = getattr(_C, "_sgd_step", None)


class SGD(Optimizer):
    """Stochastic gradient descent, with momentum if wanted.

    b = momentum b + (1 - dampening) g (b = g at first), and p moves by -lr * b; with nesterov by -lr * (g + momentum
    b).

    Args:
        lr, momentum, dampening, nesterov: as above; lr may be a tensor of one element.
        weight_decay: adds weight_decay * p to g.
        maximize: moves uphill.
        foreach, fused: accepted; all parameters are updated by one native call in any case.
        differentiable: the update itself is recorded by autograd.

    Example::

        >>> import rushlight
        >>> w = rushlight.nn.Parameter(rushlight.ones(2))
        >>> optimizer = rushlight.optim.SGD([w], lr=0.5)
        >>> w.sum().backward()
        >>> optimizer.step()
        >>> w.tolist()
        [0.5, 0.5]
    """

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float | Tensor = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_lr("SGD", lr)
        check_at_least_zero("SGD", momentum=momentum, weight_decay=weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError(f"SGD: nesterov; expected momentum > 0 and dampening 0, got {momentum} and {dampening}")
        check_flags("SGD", foreach, fused, differentiable)
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("nesterov", False)
            group.setdefault("maximize", False)
            group.setdefault("foreach", None)
            group.setdefault("differentiable", False)
            group.setdefault("fused", False)

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
        momentum, lr, weight_decay = group["momentum"], group["lr"], group["weight_decay"]
        if type(lr) is not float:
            lr = value_of(lr)
        if type(weight_decay) is not float:
            weight_decay = value_of(weight_decay)
        settings = (lr, momentum, group["dampening"], weight_decay, group["nesterov"], group["maximize"])
        if momentum == 0:
            chosen, grads = gather(group["params"], self.state, ())
            return _native_step(chosen, grads, None, *settings)
        found = gather(group["params"], self.state, _KEYS)
        if found is not None:
            return _native_step(*found, *settings)
        # Some parameter meets its first gradient, which starts the average without dampening.
        old: list[list[Any]] = [[], [], []]
        new: list[list[Any]] = [[], [], []]
        for p in group["params"]:
            if p.grad is not None:
                buffer = self.state[p].get("momentum_buffer")
                kind = old if buffer is not None else new
                for values, x in zip(kind, (p, p.grad, zeros_like(p) if buffer is None else buffer), strict=False):
                    values.append(x)
        if not _native_step(*new, settings[0], momentum, 0.0, *settings[3:]):
            return False
        for p, buffer in zip(new[0], new[2], strict=False):
            self.state[p]["momentum_buffer"] = buffer
        if old[0] and not _native_step(*old, *settings):
            with rushlight.no_grad():
                for p in old[0]:
                    self._update(p, -p.grad if group["maximize"] else p.grad, self.state[p], self._settings(group))
        return True

    def _step_group(self, group: dict[str, Any]) -> None:
        settings = self._settings(group)
        for p in group["params"]:
            grad = p.grad
            if grad is not None:
                # without momentum there is no state, not even an empty one
                state = self.state[p] if group["momentum"] != 0 else {}
                self._update(p, -grad if group["maximize"] else grad, state, settings)

    def _settings(self, group: dict[str, Any]) -> dict[str, Any]:
        if group["differentiable"]:
            return group
        return {**group, "lr": value_of(group["lr"]), "weight_decay": value_of(group["weight_decay"])}

    def _update(self, p: Any, grad: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        lr, momentum, weight_decay = group["lr"], group["momentum"], group["weight_decay"]
        if isinstance(weight_decay, Tensor):
            grad = grad + p * weight_decay
        elif weight_decay != 0:
            grad = grad.add(p, alpha=weight_decay)
        if momentum != 0:
            buffer = state.get("momentum_buffer")
            if buffer is None:
                buffer = grad.clone().detach()
                state["momentum_buffer"] = buffer
            else:
                buffer.mul_(momentum).add_(grad, alpha=1 - group["dampening"])
            grad = grad.add(buffer, alpha=momentum) if group["nesterov"] else buffer
        if isinstance(lr, Tensor):
            p.addcmul_(grad, lr, value=-1)
        else:
            p.add_(grad, alpha=-lr)
