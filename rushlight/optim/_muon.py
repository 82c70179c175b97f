"""Muon (Jordan et al. 2024)."""

from __future__ import annotations

import math

import rushlight

from .optimizer import Optimizer, check_at_least_zero, check_lr, value_of, zeros_like

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Muon"]


class Muon(Optimizer):
    """Momentum whose updates of matrices are orthogonalised by Newton-Schulz iterations (Jordan et al. 2024).

    Args:
        params: matrices only; ValueError otherwise.
        weight_decay: shrinks parameters by lr * weight_decay.
        momentum, nesterov: of the gradients.
        ns_coefficients, ns_steps, eps: of the iteration.
        adjust_lr_fn: how lr depends on the shape: "original" (the default) or "match_rms_adamw".
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        check_lr("Muon", lr)
        check_at_least_zero("Muon", momentum=momentum, weight_decay=weight_decay)
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Muon: adjust_lr_fn; expected 'original' or 'match_rms_adamw', got {adjust_lr_fn!r}")
        defaults = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_coefficients": ns_coefficients,
            "eps": eps,
            "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }
        super().__init__(params, defaults)
        for group in self.param_groups:
            for p in group["params"]:
                if p.dim() != 2:
                    raise ValueError(f"Muon: expected parameters of 2 dimensions, got shape {list(p.shape)}")

    def _update(self, p: Any, grad: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        if p.is_complex():
            raise RuntimeError(f"Muon: parameter of dtype {p.dtype}; expected a real one")
        if not state:
            state["momentum_buffer"] = zeros_like(grad)
        lr, momentum = group["lr"], group["momentum"]
        buffer = state["momentum_buffer"]
        buffer.lerp_(grad, 1 - momentum)
        update = grad.lerp(buffer, momentum) if group["nesterov"] else buffer
        update = _orthogonal(update, group["ns_coefficients"], group["ns_steps"], group["eps"])
        rows, cols = p.shape
        if group["adjust_lr_fn"] == "match_rms_adamw":
            factor = 0.2 * math.sqrt(max(rows, cols))
        else:
            factor = math.sqrt(max(1, rows / cols))
        p.mul_(1 - lr * group["weight_decay"])
        p.add_(update, alpha=value_of(-lr * factor))


def _orthogonal(update: Any, coefficients: tuple[float, float, float], steps: int, eps: float) -> Any:
    """About the nearest orthogonal matrix, by iterations of an odd polynomial in bfloat16."""
    if steps >= 100:
        raise ValueError(f"Muon: ns_steps; expected fewer than 100, got {steps}")
    a, b, c = coefficients
    x = update.to(rushlight.bfloat16)
    tall = x.size(0) > x.size(1)
    if tall:
        x = x.t()
    x = x.div(rushlight.linalg.vector_norm(x).clamp(min=eps))
    for _ in range(steps):
        gram = x @ x.t()
        polynomial = rushlight.addmm(gram, gram, gram, beta=b, alpha=c)
        x = rushlight.addmm(x, polynomial, x, beta=a)
    return x.t() if tall else x
