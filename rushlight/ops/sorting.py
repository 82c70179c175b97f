"""Sorting and selecting along a dimension."""

from __future__ import annotations

from typing import Any

from ._record import composite, native, rl
from .reduction import _extreme_backward

_PAIR = "(Tensor values, Tensor indices)"


def _spread(grad: Any, shape: Any, dim: int, indices: Any) -> Any:
    """The gradient of moved values, put back where they came from."""
    if not shape:
        return grad
    return rl.scatter(grad.new_zeros(shape), dim, indices, grad)


def _spread_one(grad: Any, shape: Any, dim: int, indices: Any, keepdim: bool) -> Any:
    if not shape:
        return grad
    if not keepdim:
        grad, indices = grad.unsqueeze(dim), indices.unsqueeze(dim)
    return _spread(grad, shape, dim, indices)


_moved: Any = {"self": lambda grad, self_shape, dim, indices: _spread(grad, self_shape, dim, indices)}
_one: Any = {
    "self": lambda grad, self_shape, dim, indices, keepdim: _spread_one(grad, self_shape, dim, indices, keepdim)
}
_fields: Any = {"out": True, "options": {"not_differentiable": ("indices",)}}

native(
    f"sort(Tensor self, int dim=-1, bool descending=False) -> {_PAIR}",
    derivative=_moved,
    doc="The elements in order along a dimension, and where they came from; NaN is greatest, equal elements keep "
    "their order.",
    **_fields,
)
native(
    f"sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> {_PAIR}",
    derivative=_moved,
    doc="The same; sorting is always stable.",
    **_fields,
)
composite(
    "argsort(Tensor self, int dim=-1, bool descending=False, *, bool stable=False) -> Tensor",
    doc="The indices that sort self along dim.",
)(lambda self, dim, descending, stable: rl.sort(self, dim, descending)[1])
native(
    f"topk(Tensor self, int k, int dim=-1, bool largest=True, bool sorted=True) -> {_PAIR}",
    derivative=_moved,
    doc="The k greatest (or least) elements along a dimension, in order.",
    **_fields,
)
native(
    f"kthvalue(Tensor self, int k, int dim=-1, bool keepdim=False) -> {_PAIR}",
    derivative=_one,
    doc="The k-th smallest elements along a dimension.",
    **_fields,
)
for _name, _word in (("median", "elements; NaN if there is one"), ("nanmedian", "numbers among the elements")):
    native(
        f"{_name}(Tensor self) -> Tensor",
        out=False,
        derivative={"self": lambda grad, self, result: _extreme_backward(grad, self, result, None, False)},
        doc=f"The lower median of all {_word}. The gradient is shared equally among ties.",
    )
native(
    f"median.dim(Tensor self, int dim, bool keepdim=False) -> {_PAIR}",
    derivative=_one,
    doc="The lower medians along a dimension; NaN if there is one.",
    **_fields,
)
native(
    f"nanmedian.dim(Tensor self, int dim, bool keepdim=False) -> {_PAIR}",
    derivative=_one,
    doc="The lower medians of the numbers along a dimension.",
    **_fields,
)
native(
    f"mode(Tensor self, int dim=-1, bool keepdim=False) -> {_PAIR}",
    derivative=_one,
    doc="The most frequent elements along a dimension, the least of several.",
    **_fields,
)


@composite("msort(Tensor self) -> Tensor", out=True)
def msort(self: Any) -> Any:
    """The elements in order along the first dimension."""
    return rl.sort(self, 0)[0]
