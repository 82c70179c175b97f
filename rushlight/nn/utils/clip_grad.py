"""Gradients limited in norm or value."""

from __future__ import annotations

import warnings

import rushlight
from rushlight import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]


def _list(op: str, parameters: Any) -> list[Any]:
    if isinstance(parameters, Tensor):
        return [parameters]
    generator = hasattr(parameters, "__next__")
    result = list(parameters)
    if generator and not result:
        warnings.warn(
            f"{op}: the generator of parameters is empty, perhaps because it was used before; nothing is clipped",
            stacklevel=3,
        )
    return result


def get_total_norm(
    tensors: Tensor | Iterable[Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The norm of all tensors together, as if they were one vector.

    Returns a tensor without dimensions. RuntimeError when it is not finite and ``error_if_nonfinite``.
    """
    items = _list("get_total_norm", tensors)
    norm_type = float(norm_type)
    if not items:
        return rushlight.tensor(0.0)
    norm = rushlight.linalg.vector_norm
    device = items[0].device
    norms = [norm(t, norm_type) for t in items]
    if len(norms) == 1:
        total = norms[0]
    else:
        total = norm(rushlight.stack([n if n.device == device else n.to(device) for n in norms]), norm_type)
    if error_if_nonfinite and not bool(total.isfinite()):
        raise RuntimeError(
            f"get_total_norm: the norm of order {norm_type} is {total.item()}; expected a finite number; pass "
            "error_if_nonfinite=False to go on all the same"
        )
    return total


def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor], max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scales the gradients, in place, by max_norm / total_norm where that is below 1."""
    grads = [p.grad for p in _list("clip_grads_with_norm_", parameters) if p.grad is not None]
    if not grads:
        return
    # times 1 when nothing is to be clipped: cheaper than asking for the value
    factor = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
    for g in grads:
        g.mul_(factor if factor.device == g.device else factor.to(g.device))


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scales the gradients, in place, so that their norm together is at most ``max_norm``; returns the norm before.

    Example::

        >>> import rushlight
        >>> w = rushlight.nn.Parameter(rushlight.zeros(2))
        >>> w.grad = rushlight.tensor([3.0, 4.0])
        >>> rushlight.nn.utils.clip_grad_norm_([w], max_norm=1.0).item()
        5.0
        >>> [round(x, 4) for x in w.grad.tolist()]
        [0.6, 0.8]
    """
    items = _list("clip_grad_norm_", parameters)
    with rushlight.no_grad():
        total = get_total_norm([p.grad for p in items if p.grad is not None], norm_type, error_if_nonfinite, foreach)
        clip_grads_with_norm_(items, max_norm, total, foreach)
    return total


def clip_grad_norm(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Deprecated name of :func:`clip_grad_norm_`."""
    warnings.warn("clip_grad_norm is deprecated; use clip_grad_norm_", FutureWarning, stacklevel=2)
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None) -> None:
    """Limits every element of the gradients, in place, to [-clip_value, clip_value]."""
    limit = float(clip_value)
    with rushlight.no_grad():
        for p in _list("clip_grad_value_", parameters):
            if p.grad is not None:
                p.grad.clamp_(min=-limit, max=limit)
