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
_ordered: Any = {**_fields, "order": "self"}

native(
    f"sort(Tensor self, int dim=-1, bool descending=False) -> {_PAIR}",
    derivative=_moved,
    formula="values[i] = self[indices[i]], values[0] <= values[1] <= ...",
    doc="""The elements in order along a dimension, and where they came from.

    NaN counts as greatest; equal elements keep their order, whether stable is asked for or not.

    Shapes: self (*); values and indices (int64) have the same shape.

    >>> torch.tensor([3, 1, 2]).sort()
    rushlight.return_types.sort(
    values=tensor([1, 2, 3]),
    indices=tensor([1, 2, 0]))
    >>> torch.tensor([1.0, float("nan"), 2.0]).sort(descending=True).values
    tensor([nan, 2., 1.])""",
    **_ordered,
)
native(
    f"sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> {_PAIR}",
    derivative=_moved,
    **_ordered,
)
composite(
    "argsort(Tensor self, int dim=-1, bool descending=False, *, bool stable=False) -> Tensor",
    formula="self[out[0]] <= self[out[1]] <= ...",
    doc="""The indices that sort self along a dimension; equal elements keep their order.

    Shapes: self (*); the result has the same shape, int64.

    >>> torch.argsort(torch.tensor([30, 10, 20]))
    tensor([1, 2, 0])""",
)(lambda self, dim, descending, stable: rl.sort(self, dim, descending)[1])
native(
    f"topk(Tensor self, int k, int dim=-1, bool largest=True, bool sorted=True) -> {_PAIR}",
    derivative=_moved,
    formula="values[i] = self[indices[i]], values[0] >= values[1] >= ...",
    doc="""The k greatest elements along a dimension, or the k least without largest, and where they are, best
    first.

    They are in order also without sorted. RuntimeError when dim has fewer than k elements.

    Shapes: self (*); values and indices (int64) have k elements along dim.

    >>> torch.topk(torch.tensor([3.0, 1.0, 4.0, 1.0, 5.0]), 2)
    rushlight.return_types.topk(
    values=tensor([5., 4.]),
    indices=tensor([4, 2]))""",
    **_fields,
)
native(
    f"kthvalue(Tensor self, int k, int dim=-1, bool keepdim=False) -> {_PAIR}",
    derivative=_one,
    doc="""The k-th smallest elements along a dimension, counted from 1, and where they are.

    RuntimeError when dim has fewer than k elements.

    Shapes: self (*); values and indices (int64) are without dim, or have size 1 there with keepdim.

    >>> torch.kthvalue(torch.tensor([30.0, 10.0, 20.0]), 2)
    rushlight.return_types.kthvalue(
    values=tensor(20.),
    indices=tensor(2))""",
    **_fields,
)
for _name, _word, _shown in (
    ("median", "; NaN if there is a NaN", "nan"),
    ("nanmedian", " that are not NaN", "2."),
):
    native(
        f"{_name}(Tensor self) -> Tensor",
        batch="loop",
        out=False,
        derivative={"self": lambda grad, self, result: _extreme_backward(grad, self, result, None, False)},
        doc=f"""The lower median of all elements{_word}; with dim the medians along it, and where they are.

    Of an even number of elements it is the lower of the two in the middle; quantile interpolates. The gradient of the
    median of all elements is shared equally among ties.

    Shapes: self (*); the result is (), with dim it is without dim, or has size 1 there with keepdim. indices are int64.

    >>> torch.{_name}(torch.tensor([3.0, 1.0, 4.0, 2.0, 4.0, 1.0]))
    tensor(2.)
    >>> torch.{_name}(torch.tensor([3.0, float("nan"), 1.0, 2.0]))
    tensor({_shown})""",
    )
native(
    f"median.dim(Tensor self, int dim, bool keepdim=False) -> {_PAIR}",
    derivative=_one,
    **_fields,
)
native(
    f"nanmedian.dim(Tensor self, int dim, bool keepdim=False) -> {_PAIR}",
    derivative=_one,
    **_fields,
)
native(
    f"mode(Tensor self, int dim=-1, bool keepdim=False) -> {_PAIR}",
    derivative=_one,
    doc="""The most frequent elements along a dimension, the least of several, and where each stands last.

    Shapes: self (*); values and indices (int64) are without dim, or have size 1 there with keepdim.

    >>> torch.mode(torch.tensor([[2, 3, 3, 2, 7], [5, 4, 4, 4, 5]]))
    rushlight.return_types.mode(
    values=tensor([2, 4]),
    indices=tensor([3, 3]))""",
    **_fields,
)


native(
    "_sorted(Tensor self, int dim) -> Tensor",
    derivative={"self": lambda grad, self, dim: _spread(grad, self.shape, dim, rl.sort(self, dim)[1])},
    doc="The elements in order along a dimension, without where they came from.",
)


@composite("msort(Tensor self) -> Tensor", out=True)
def msort(self: Any) -> Any:
    """The elements in order along the first dimension; those of each column by themselves.

    Shapes: self of any shape; the result has the same.

    >>> torch.msort(torch.tensor([[3, 1], [2, 5]]))
    tensor([[2, 1],
            [3, 5]])
    """
    return rl._sorted(self, 0)
