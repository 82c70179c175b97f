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
    public="index_put_",
    writes_self=True,
    derivative={
        "self": lambda grad, indices, values, accumulate: grad if accumulate else rl._index_cleared(grad, indices),
        "values": lambda grad, indices, values_shape: rl.index(grad, indices),
    },
    doc="Writes values, broadcast, at index tensors; adds them when accumulate.",
)


@composite("_index_cleared(Tensor grad, Tensor?[] indices) -> Tensor", method=False)
def _index_cleared(grad: Any, indices: Any) -> Any:
    """The gradient with zeros at the indices."""
    return grad.clone().index_put_(indices, grad.new_zeros(()))


@composite("index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor")
def index_put(self: Any, indices: Any, values: Any, accumulate: bool) -> Any:
    """A copy with values written (or added) at index tensors."""
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
    """Where the elements differ from zero: a row per element, or with as_tuple a vector per dimension."""
    return tuple(rl.nonzero_numpy(self)) if as_tuple else rl._nonzero(self)


native(
    "masked_select(Tensor self, Tensor mask) -> Tensor",
    batch="dynamic",
    derivative={"self": lambda grad, self, mask: _masked_select_backward(grad, self, mask)},
    doc="The elements where the mask is true, in one dimension.",
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
    doc="The elements with the value of a 0-dim tensor where the mask is true.",
)
native(
    "masked_fill(Tensor self, Tensor mask, Scalar value) -> Tensor",
    batch="pointwise",
    inplace=True,
    derivative={"self": lambda grad, mask: grad.masked_fill(mask, 0)},
    doc="The elements with a value where the mask is true.",
)
native(
    "masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor",
    inplace=True,
    derivative={
        "self": lambda grad, mask: grad.masked_fill(mask, 0),
        "source": lambda grad, mask, source_shape: _masked_source_backward(grad, mask, source_shape),
    },
    doc="The elements where the mask is true replaced by those of source, in order.",
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
    doc="Slices along a dimension at the indices.",
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
    doc="Adds alpha * source's slices at the indices.",
)
native(
    "index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor",
    batch="dims:index",
    inplace=True,
    derivative={
        "self": lambda grad, dim, index: grad.index_fill(dim, index, 0),
        "source": lambda grad, dim, index, source_shape: grad.index_select(dim, index).expand(source_shape),
    },
    doc="Replaces the slices at the indices by source's.",
)
native(
    "index_fill.Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor",
    inplace=True,
    out=False,
    derivative={
        "self": lambda grad, dim, index: grad.index_fill(dim, index, 0),
        "value": lambda grad, dim, index: (grad * rl.zeros_like(grad).index_fill(dim, index, 1)).sum(),
    },
    doc="Fills the slices at the indices with the value of a 0-dim tensor.",
)
native(
    "index_fill(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
    batch="dims:index",
    inplace=True,
    derivative={"self": lambda grad, dim, index: grad.index_fill(dim, index, 0)},
    doc="Fills the slices at the indices with a value.",
)


native(
    "gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor",
    batch="dims",
    derivative={
        "self": lambda grad, self_shape, dim, index: rl.scatter_add(grad.new_zeros(self_shape), dim, index, grad)
    },
    doc="Elements picked along a dimension: out[i][j] = self[index[i][j]][j] for dim 0.",
)
native(
    "scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
    batch="dims",
    inplace=True,
    derivative={
        "self": lambda grad, dim, index: rl.scatter(grad, dim, index, 0),
        "src": lambda grad, dim, index, src_shape: _gathered(grad, dim, index, src_shape),
    },
    doc="src's elements written along a dimension: out[index[i][j]][j] = src[i][j] for dim 0.",
)
native(
    "scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
    batch="dims",
    inplace=True,
    derivative={"self": lambda grad, dim, index: rl.scatter(grad, dim, index, 0)},
    doc="A number written at the indices along a dimension.",
)
native(
    "scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor",
    batch="dims",
    inplace=True,
    doc="src's elements added ('add') or multiplied ('multiply') in along a dimension.",
)
native(
    "scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor",
    batch="dims",
    inplace=True,
    doc="A number added ('add') or multiplied ('multiply') in at the indices.",
)
native(
    "scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) "
    "-> Tensor",
    inplace=True,
    derivative={
        "self, src": lambda grad, self, dim, index, src, reduce, include_self, result: _scatter_reduce_backward(
            grad, self, dim, index, src, reduce, include_self, result
        )
    },
    doc="src's elements reduced into self along a dimension: 'sum', 'prod', 'mean', 'amax' or 'amin'. Without "
    "include_self, the old values of the elements that something arrives at do not take part.",
)
native(
    "index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) -> Tensor",
    inplace=True,
    derivative={
        "self, source": lambda grad, self, dim, index, source, reduce, include_self, result: _index_reduce_backward(
            grad, self, dim, index, source, reduce, include_self, result
        )
    },
    doc="source's slices reduced into self's at the indices: 'prod', 'mean', 'amax' or 'amin'.",
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
    doc="src's elements added in along a dimension.",
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
    derivative={"self": lambda grad, self_shape, index: rl.put(grad.new_zeros(self_shape), index, grad, True)},
    doc="Elements at indices into the flattened tensor.",
)
native(
    "put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor",
    inplace=True,
    derivative={
        "self": lambda grad, index, source, accumulate: (
            grad if accumulate else rl.put(grad, index, rl.zeros_like(source), False)
        ),
        "source": lambda grad, index, source_shape: grad.take(index).reshape(source_shape),
    },
    doc="Elements written (or added) at indices into the flattened tensor.",
)


@composite("broadcast_tensors(Tensor[] tensors) -> Any", method=False)
def broadcast_tensors(tensors: Any) -> Any:
    """The tensors expanded to a common shape."""
    shape = rl.broadcast_shapes(*[t.shape for t in tensors])
    return tuple(t.expand(shape) for t in tensors)
