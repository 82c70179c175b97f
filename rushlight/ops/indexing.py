"""Indexing, gathering, scattering and masks."""

from __future__ import annotations

from typing import Any

from . import _batch
from ._record import composite, native, rl

native(
    "index(Tensor self, Tensor?[] indices) -> Tensor",
    batch=_batch.index,
    public="",
    method=False,
    derivative={"self": lambda grad, self_shape, indices: rl._index_backward(grad, self_shape, indices)},
    doc="Elements at index tensors, one per dimension; None keeps a dimension.",
)
native(
    "_index_backward(Tensor grad_output, int[] size, Tensor?[] indices) -> Tensor",
    batch=_batch.index_backward,
    derivative={"grad_output": lambda grad, indices: rl.index(grad, indices)},
    doc="Zeros with the gradient added at the indices.",
)
native(
    "index_put_(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
    batch="loop",
    public="index_put_",
    writes_self=True,
    derivative={
        "self": lambda grad, indices, values, accumulate: grad if accumulate else rl._index_cleared(grad, indices),
        "values": lambda grad, indices, values_shape: rl.index(grad, indices),
    },
    doc="""Writes values, broadcast, at index tensors, one per dimension: what self[indices] = values does; returns
    self.

    With accumulate the values are added, several at one place too; without it the last one of several stays. A bool
    index tensor stands for the places where it is true. IndexError for an index out of range.

    Shapes: self (*); the index tensors broadcast to one shape, which with the dimensions that have no index is the one
    values broadcasts to.

    >>> x = torch.zeros(4, dtype=torch.int64)
    >>> x.index_put_((torch.tensor([0, 2, 2]),), torch.tensor([1, 5, 7]), accumulate=True)
    tensor([ 1,  0, 12,  0])""",
)


@composite("_index_cleared(Tensor grad, Tensor?[] indices) -> Tensor", method=False)
def _index_cleared(grad: Any, indices: Any) -> Any:
    """The gradient with zeros at the indices."""
    return grad.clone().index_put_(indices, grad.new_zeros(()))


@composite("index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor")
def index_put(self: Any, indices: Any, values: Any, accumulate: bool) -> Any:
    """A copy of self with values, broadcast, written at index tensors, one per dimension; with accumulate they are
    added.

    Shapes: as for index_put_; the result has the shape of self.

    >>> x = torch.zeros(2, 2)
    >>> torch.index_put(x, (torch.tensor([0, 1]), torch.tensor([1, 0])), torch.tensor(5.0))
    tensor([[0., 5.],
            [5., 0.]])
    """
    return self.clone().index_put_(indices, values, accumulate)


native(
    "nonzero_numpy(Tensor self) -> Tensor[]",
    batch="dynamic",
    public="",
    method=False,
    doc="Where the elements differ from zero: one index vector per dimension.",
)
native(
    "_nonzero(Tensor self) -> Tensor",
    batch="dynamic",
    out=True,
    doc="Where the elements differ from zero: a matrix, one row per element.",
)


@composite("nonzero(Tensor self, *, bool as_tuple=False) -> Any", out=True)
def nonzero(self: Any, as_tuple: bool) -> Any:
    """Where the elements differ from zero, row by row: a matrix of indices, or with as_tuple one vector per
    dimension.

    self[self.nonzero(as_tuple=True)] are the elements themselves.

    Shapes: self (*) of d dimensions with n such elements; the result (n, d), or d vectors (n), int64.

    >>> x = torch.tensor([[0, 7], [8, 0]])
    >>> torch.nonzero(x)
    tensor([[0, 1],
            [1, 0]])
    >>> torch.nonzero(x, as_tuple=True)
    (tensor([0, 1]), tensor([1, 0]))
    """
    return tuple(rl.nonzero_numpy(self)) if as_tuple else rl._nonzero(self)


native(
    "masked_select(Tensor self, Tensor mask) -> Tensor",
    batch="dynamic",
    derivative={"self": lambda grad, self, mask: _masked_select_backward(grad, self, mask)},
    doc="""The elements where the mask is true, row by row in one dimension, as a copy.

    RuntimeError for a mask that is not bool.

    Shapes: self and mask broadcast; the result (n), n the number of true ones.

    >>> x = torch.tensor([[1, 2], [3, 4]])
    >>> x.masked_select(x > 1)
    tensor([2, 3, 4])""",
)


def _masked_select_backward(grad: Any, self: Any, mask: Any) -> Any:
    shape = rl.broadcast_shapes(self.shape, mask.shape)
    return grad.new_zeros(shape).masked_scatter(mask.expand(shape), grad)


native(
    "masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor",
    batch="pointwise",
    inplace=True,
    derivative={
        "self": lambda grad, mask: grad.masked_fill(mask, 0),
        "value": lambda grad, mask: rl.where(mask, grad, 0).sum(),
    },
    doc="""self with a value, a number or a 0-dim tensor, wherever the mask is true.

    RuntimeError for a mask that is not bool.

    Shapes: self and mask broadcast, for masked_fill_ to the shape of self; the result has their common shape.

    >>> torch.tensor([1, 2, 3]).masked_fill(torch.tensor([True, False, True]), -1)
    tensor([-1,  2, -1])""",
)
native(
    "masked_fill(Tensor self, Tensor mask, Scalar value) -> Tensor",
    batch="pointwise",
    inplace=True,
    derivative={"self": lambda grad, mask: grad.masked_fill(mask, 0)},
)
native(
    "masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor",
    batch="loop",
    inplace=True,
    derivative={
        "self": lambda grad, mask: grad.masked_fill(mask, 0),
        "source": lambda grad, mask, source_shape: _masked_source_backward(grad, mask, source_shape),
    },
    doc="""self with the elements of source, in order, put where the mask is true.

    RuntimeError when source has fewer elements than the mask has true ones, or another dtype than self.

    Shapes: self and mask broadcast, source of any shape; the result has the common shape.

    >>> x = torch.zeros(2, 2, dtype=torch.int64)
    >>> x.masked_scatter(torch.tensor([[True, False], [True, True]]), torch.tensor([1, 2, 3, 4]))
    tensor([[1, 0],
            [2, 3]])""",
)


def _masked_source_backward(grad: Any, mask: Any, shape: Any) -> Any:
    picked = grad.masked_select(mask.expand(grad.shape))
    n = 1
    for s in shape:
        n *= s
    return rl.cat([picked, picked.new_zeros(n - picked.numel())]).reshape(shape)


native(
    "index_select(Tensor self, int dim, Tensor index) -> Tensor",
    batch="dims:index",
    derivative={"self": lambda grad, self_shape, dim, index: rl._index_select_backward(grad, self_shape, dim, index)},
    doc="""Slices along a dimension at the indices, as a copy.

    IndexError for an index outside 0 to size - 1.

    Shapes: self (*), index (n) or () of int32 or int64; in the result dim has size n.

    >>> x = torch.tensor([[1, 2, 3], [4, 5, 6]])
    >>> x.index_select(1, torch.tensor([2, 0, 2]))
    tensor([[3, 1, 3],
            [6, 4, 6]])""",
)
native(
    "_index_select_backward(Tensor grad_output, int[] sizes, int dim, Tensor index) -> Tensor",
    batch="dims:index",
    derivative={"grad_output": lambda grad, dim, index: grad.index_select(dim, index)},
    doc="Zeros with the gradient's slices added at the indices.",
)
native(
    "index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
    batch="dims:index",
    inplace=True,
    derivative={
        "self": lambda grad: grad,
        "source": lambda grad, dim, index, source_shape, alpha: rl._scale(
            grad.index_select(dim, index).expand(source_shape), alpha
        ),
    },
    formula="out[index[i], ...] += alpha * source[i, ...]   (for dim 0)",
    doc="""self with the slices of source, times alpha, added at the indices along a dimension; repeated indices add
    up.

    Shapes: self (*), index (n), source like self with size n in dim; the result has the shape of self.

    >>> x = torch.tensor([10, 20, 30])
    >>> x.index_add(0, torch.tensor([0, 2, 2]), torch.tensor([1, 2, 3]))
    tensor([11, 20, 35])""",
)
native(
    "index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor",
    batch="dims:index",
    inplace=True,
    derivative={
        "self": lambda grad, dim, index: grad.index_fill(dim, index, 0),
        "source": lambda grad, dim, index, source_shape: grad.index_select(dim, index).expand(source_shape),
    },
    doc="""self with its slices at the indices along a dimension replaced by those of source.

    Of repeated indices the last stays.

    Shapes: self (*), index (n), source like self with size n in dim; the result has the shape of self.

    >>> x = torch.tensor([10, 20, 30])
    >>> x.index_copy(0, torch.tensor([2, 0]), torch.tensor([1, 2]))
    tensor([ 2, 20,  1])""",
)
native(
    "index_fill.Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor",
    batch="loop",
    inplace=True,
    out=False,
    derivative={
        "self": lambda grad, dim, index: grad.index_fill(dim, index, 0),
        "value": lambda grad, dim, index: (grad * rl.zeros_like(grad).index_fill(dim, index, 1)).sum(),
    },
    doc="""self with its slices at the indices along a dimension filled with a value, a number or a 0-dim tensor.

    Shapes: self (*), index (n); the result has the shape of self.

    >>> x = torch.tensor([[1, 2, 3], [4, 5, 6]])
    >>> x.index_fill(1, torch.tensor([0, 2]), -1)
    tensor([[-1,  2, -1],
            [-1,  5, -1]])""",
)
native(
    "index_fill(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
    batch="dims:index",
    inplace=True,
    derivative={"self": lambda grad, dim, index: grad.index_fill(dim, index, 0)},
)


native(
    "gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor",
    batch="dims",
    derivative={
        "self": lambda grad, self_shape, dim, index: rl.scatter_add(grad.new_zeros(self_shape), dim, index, grad)
    },
    formula="out[i][j] = self[index[i][j]][j]   (for dim 0)",
    doc="""Elements picked along a dimension, by an index for each element of the result.

    sparse_grad is accepted and changes nothing. RuntimeError for an index out of range.

    Shapes: self (*), index (int32 or int64) of as many dimensions, no longer than self but in dim; the result has the
    shape of index.

    >>> x = torch.tensor([[1, 2], [3, 4]])
    >>> x.gather(1, torch.tensor([[1], [0]]))
    tensor([[2],
            [3]])""",
)
native(
    "scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
    batch="dims",
    inplace=True,
    derivative={
        "self": lambda grad, dim, index: rl.scatter(grad, dim, index, 0),
        "src": lambda grad, dim, index, src_shape: _gathered(grad, dim, index, src_shape),
    },
    formula="out[index[i][j]][j] = src[i][j]   (for dim 0)",
    doc="""self with the elements of src (a tensor, or one number as value) written along a dimension, by an index
    for each.

    Of several that go to one place the last stays; reduce='add' and 'multiply' combine them with what is there, but
    have no derivative (scatter_reduce has). RuntimeError for an index out of range.

    Shapes: self (*), index (int32 or int64) and src of as many dimensions, index no longer than src, nor than self but
    in dim; the result has the shape of self.

    >>> x = torch.zeros(3, dtype=torch.int64)
    >>> x.scatter(0, torch.tensor([2, 0]), torch.tensor([5, 6]))
    tensor([6, 0, 5])
    >>> x.scatter(0, torch.tensor([1, 1]), 4, reduce="add")
    tensor([0, 8, 0])""",
)
native(
    "scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
    batch="dims",
    inplace=True,
    derivative={"self": lambda grad, dim, index: rl.scatter(grad, dim, index, 0)},
)
native(
    "scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor",
    batch="dims",
    inplace=True,
)
native(
    "scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor",
    batch="dims",
    inplace=True,
)
native(
    "scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) "
    "-> Tensor",
    batch="loop",
    inplace=True,
    derivative={
        "self, src": lambda grad, self, dim, index, src, reduce, include_self, result: _scatter_reduce_backward(
            grad, self, dim, index, src, reduce, include_self, result
        )
    },
    formula="out[k][j] = reduce of self[k][j] and all src[i][j] with index[i][j] = k   (for dim 0)",
    doc="""The elements of src reduced into self along a dimension: reduce is 'sum', 'prod', 'mean', 'amax' or
    'amin'.

    Without include_self the old value of an element that something arrives at takes no part. The gradients of 'amax'
    and 'amin' are shared equally among ties.

    Shapes: self (*), index (int32 or int64) and src of as many dimensions, index no longer than src, nor than self but
    in dim; the result has the shape of self.

    >>> x = torch.tensor([10.0, 20.0, 30.0])
    >>> index, src = torch.tensor([0, 0, 2]), torch.tensor([1.0, 4.0, 40.0])
    >>> x.scatter_reduce(0, index, src, "amax")
    tensor([10., 20., 40.])
    >>> x.scatter_reduce(0, index, src, "mean", include_self=False)
    tensor([ 2.5000, 20.0000, 40.0000])""",
)
native(
    "index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) -> Tensor",
    batch="loop",
    inplace=True,
    derivative={
        "self, source": lambda grad, self, dim, index, source, reduce, include_self, result: _index_reduce_backward(
            grad, self, dim, index, source, reduce, include_self, result
        )
    },
    formula="out[k, ...] = reduce of self[k, ...] and all source[i, ...] with index[i] = k   (for dim 0)",
    doc="""The slices of source reduced into those of self at the indices: reduce is 'prod', 'mean', 'amax' or
    'amin'.

    Without include_self the old values of slices that something arrives at take no part.

    Shapes: self (*), index (n), source like self with size n in dim; the result has the shape of self.

    >>> x = torch.tensor([1.0, 2.0, 3.0])
    >>> x.index_reduce(0, torch.tensor([0, 0, 2]), torch.tensor([4.0, 5.0, 6.0]), "prod")
    tensor([20.,  2., 18.])""",
)


def _scatter_reduce_backward(
    grad: Any, self: Any, dim: int, index: Any, src: Any, reduce: str, include_self: bool, result: Any
) -> Any:
    shape, part = tuple(src.shape), src
    if index.dim() and tuple(index.shape) != shape:  # elements of src beyond the index do not count
        for d, n in enumerate(index.shape):
            part = part.narrow(d, 0, n)
    by_self, by_src = _reduced_backward(
        grad,
        self,
        part,
        reduce,
        include_self,
        result,
        lambda t: t.gather(dim, index),
        lambda t: rl.zeros_like(grad).scatter_add(dim, index, t),
        lambda t: self.scatter_reduce(dim, index, t, "prod", include_self=include_self),
        lambda t: t.scatter(dim, index, 0),
        lambda t: rl.ones_like(self).scatter_reduce(dim, index, t, "prod"),
    )
    if tuple(by_src.shape) != shape:
        by_src = rl._put_corner(by_src.new_zeros(shape), by_src)
    return by_self, by_src


def _index_reduce_backward(
    grad: Any, self: Any, dim: int, index: Any, source: Any, reduce: str, include_self: bool, result: Any
) -> Any:
    return _reduced_backward(
        grad,
        self,
        source,
        reduce,
        include_self,
        result,
        lambda t: t.index_select(dim, index).reshape(source.shape),
        lambda t: rl.zeros_like(grad).index_add(dim, index, t),
        lambda t: self.index_reduce(dim, index, t, "prod", include_self=include_self),
        lambda t: t.index_fill(dim, index, 0),
        lambda t: rl.ones_like(self).index_reduce(dim, index, t, "prod"),
    )


def _reduced_backward(
    grad: Any,
    self: Any,
    src: Any,
    reduce: str,
    include_self: bool,
    result: Any,
    picked: Any,
    added: Any,
    multiplied: Any,
    cleared: Any,
    product: Any,
) -> Any:
    """Gradients of what was reduced into self. The functions take elements to where they went, and back:

    picked: at the places that src's elements went to; added: sums of what arrives; multiplied: self with what arrives
    multiplied in; cleared: with zeros where something arrives; product: of what arrives.
    """
    if reduce == "sum":
        by_self, by_src = grad, picked(grad)
    elif reduce == "mean":
        arrived = added(rl.ones_like(src))
        count = arrived + 1 if include_self else arrived.clamp(min=1)
        by_self = grad / count
        by_src = picked(by_self)
    elif reduce == "prod":
        by_self = grad * product(src)
        # The factor of a zero is the product of the others. Where there is a second zero that is 0, but as a function
        # of the second it is not constant; with a third it is to second order.
        zero = src == 0
        zeros = picked(added(zero.to(src.dtype)))
        others = picked(multiplied(src.masked_fill(zero, 1)))
        second = picked(added(src.masked_fill(~zero, 0))) - src
        factor = others * rl.where(zeros == 1, 1, rl.where(zeros == 2, second, 0))
        by_src = rl.where(zero, picked(grad) * factor, picked(grad * result) / src.masked_fill(zero, 1))
    else:
        src_is = (src == picked(result)).to(grad.dtype)
        self_is = (self == result).to(grad.dtype)
        if not include_self:
            self_is = cleared(self_is)
        share = grad / (self_is + added(src_is)).clamp(min=1)
        by_self, by_src = self_is * share, src_is * picked(share)
    return by_self if include_self else cleared(by_self), by_src


native(
    "scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
    batch="dims",
    inplace=True,
    derivative={
        "self": lambda grad: grad,
        "src": lambda grad, dim, index, src_shape: _gathered(grad, dim, index, src_shape),
    },
    formula="out[index[i][j]][j] += src[i][j]   (for dim 0)",
    doc="""self with the elements of src added along a dimension, by an index for each; repeated indices add up.

    Shapes: self (*), index (int32 or int64) and src of as many dimensions, index no longer than src, nor than self but
    in dim; the result has the shape of self.

    >>> torch.zeros(3).scatter_add(0, torch.tensor([0, 0, 2]), torch.tensor([1.0, 2.0, 5.0]))
    tensor([3., 0., 5.])""",
)


def _gathered(grad: Any, dim: int, index: Any, shape: Any) -> Any:
    """The gradient of a scattered source: gathered at the indices, zero for elements beyond the index's shape."""
    picked = grad.gather(dim, index)
    if tuple(shape) == tuple(picked.shape):
        return picked
    out = picked.new_zeros(shape)
    return rl._put_corner(out, picked)


@composite("_put_corner(Tensor self, Tensor part) -> Tensor", method=False)
def _put_corner(self: Any, part: Any) -> Any:
    """self with its leading corner replaced by part."""
    out = self.clone()
    view = out
    for d, n in enumerate(part.shape):
        view = view.narrow(d, 0, n)
    view.copy_(part)
    return out


native(
    "take(Tensor self, Tensor index) -> Tensor",
    batch="loop",
    derivative={"self": lambda grad, self_shape, index: rl.put(grad.new_zeros(self_shape), index, grad, True)},
    doc="""Elements at indices that count all elements of self, row by row.

    Negative indices count from the end. IndexError for an index out of range.

    Shapes: self (*), index (int64) of any shape, which the result has.

    >>> torch.take(torch.tensor([[1, 2], [3, 4]]), torch.tensor([0, 3, -1]))
    tensor([1, 4, 4])""",
)
native(
    "put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor",
    batch="loop",
    inplace=True,
    derivative={
        "self": lambda grad, index, source, accumulate: (
            grad if accumulate else rl.put(grad, index, rl.zeros_like(source), False)
        ),
        "source": lambda grad, index, source_shape: grad.take(index).reshape(source_shape),
    },
    doc="""self with the elements of source written at indices that count all elements, row by row; with accumulate
    added.

    Negative indices count from the end. IndexError for an index out of range.

    Shapes: self (*), index (int64) and source with as many elements; the result has the shape of self.

    >>> x = torch.zeros(2, 2, dtype=torch.int64)
    >>> x.put(torch.tensor([1, 2]), torch.tensor([5, 6]))
    tensor([[0, 5],
            [6, 0]])""",
)


@composite("broadcast_tensors(Tensor[] tensors) -> Any", method=False)
def broadcast_tensors(tensors: Any) -> Any:
    """The tensors expanded to their common shape, as views; one that has it already is returned itself.

    RuntimeError when the shapes do not broadcast.

    Shapes: tensors whose shapes broadcast; as many results of the common shape.

    >>> torch.broadcast_tensors(torch.tensor([[1], [2]]), torch.tensor([3, 4]))
    (tensor([[1, 1],
            [2, 2]]), tensor([[3, 4],
            [3, 4]]))
    """
    shape = rl.broadcast_shapes(*[t.shape for t in tensors])
    return tuple(t if t.shape == shape else t.expand(shape) for t in tensors)
