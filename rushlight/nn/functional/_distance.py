"""Distances between vectors."""

from __future__ import annotations

import rushlight
from rushlight import Tensor
from rushlight.ops._record import certain

__all__ = ["cosine_similarity"]


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """x1 . x2 / (\\|\\|x1\\|\\| \\|\\|x2\\|\\|), with norms of at least ``eps``, along ``dim``; inputs are broadcast.

    RuntimeError for inputs that are not floating point.

    Example::

        >>> import rushlight
        >>> a = rushlight.tensor([[3.0, 4.0]])
        >>> round(rushlight.nn.functional.cosine_similarity(a, 2 * a).item(), 4)
        1.0
    """
    dtype = rushlight.promote_types(x1.dtype, x2.dtype)
    if not dtype.is_floating_point:
        raise RuntimeError(f"cosine_similarity: dtype; expected floating point inputs, got {x1.dtype} and {x2.dtype}")
    a, b = rushlight.broadcast_tensors(x1.to(dtype), x2.to(dtype))  # type: ignore[arg-type, call-arg]
    return (_unit(a, dim, eps) * _unit(b, dim, eps)).sum(dim)


def _unit(x: Tensor, dim: int, eps: float) -> Tensor:
    """The vectors along dim over their lengths, which may be greater than the dtype holds."""
    length = rushlight.linalg.vector_norm(x, 2, dim, keepdim=True)
    if not (x.is_meta or certain(length.isfinite().all())):
        x = rushlight.where(length.isinf(), x * (2.0**-8 if x.dtype == rushlight.float16 else 2.0**-32), x)
        length = rushlight.linalg.vector_norm(x, 2, dim, keepdim=True)
    return x / length.clamp_min(eps)
