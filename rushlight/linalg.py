"""Linear algebra."""

from __future__ import annotations

from . import _C
from ._C import Tensor

class LinAlgError(RuntimeError):
    """A matrix for which a decomposition or a solution does not exist, or could not be found."""


TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def vector_norm(
    x: Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Tensor | None = None
) -> Tensor:
    """(sum of |x|^ord)^(1/ord) over dimensions (all by default); the largest and least |x| for inf and -inf.

    Shapes: any -> without ``dim``, or with sizes of 1 there. The result is real. RuntimeError for integers, unless
    ``dtype`` converts the input first.

    Example::

        >>> import rushlight
        >>> rushlight.linalg.vector_norm(rushlight.tensor([3.0, 4.0])).item()
        5.0
    """
    if dtype is not None:
        if not (dtype.is_floating_point or dtype.is_complex):
            raise RuntimeError(f"linalg.vector_norm: dtype; expected floating point or complex, got {dtype}")
        x = x.to(dtype)
    elif not (x.is_floating_point() or x.is_complex()):
        raise RuntimeError(f"linalg.vector_norm: input; expected floating point or complex elements, got {x.dtype}")
    result: Tensor = _C.private_operation("_vector_norm")(x, float(ord), dim, keepdim)
    if out is None:
        return result
    if out.dtype != result.dtype:
        raise RuntimeError(f"linalg.vector_norm: out; expected dtype {result.dtype}, got {out.dtype}")
    out.resize_(result.shape)
    return out.copy_(result)


globals().update(_C.operations("linalg"))
