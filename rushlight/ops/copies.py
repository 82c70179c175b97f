"""Views as copies, tensors written into a view of a copy, and pieces of tensors."""

from __future__ import annotations

import itertools
from typing import Any

from . import _batch
from ._record import composite, native, rl

# ---------------------------------------------------------------- copies of views

_ROWS = "torch.tensor([[1, 2, 3], [4, 5, 6]])"
for _schema, _view, _call, _shown in (
    ("alias_copy(Tensor self)", lambda self: self, "alias_copy(torch.tensor([1, 2]))", "tensor([1, 2])"),
    (
        "detach_copy(Tensor self)",
        lambda self: self.detach(),
        "detach_copy(torch.tensor([1.0], requires_grad=True))",
        "tensor([1.])",
    ),
    (
        "as_strided_copy(Tensor self, int[] size, int[] stride, int? storage_offset=None)",
        None,
        "as_strided_copy(torch.arange(4), (2, 3), (1, 1))",
        "tensor([[0, 1, 2],\n        [1, 2, 3]])",
    ),
    (
        "diagonal_copy(Tensor self, int offset=0, int dim1=0, int dim2=1)",
        None,
        f"diagonal_copy({_ROWS}, 1)",
        "tensor([2, 6])",
    ),
    (
        "expand_copy(Tensor self, int[] size, *, bool implicit=False)",
        lambda self, size, implicit: self.expand(size),
        "expand_copy(torch.tensor([1, 2]), (2, 2))",
        "tensor([[1, 2],\n        [1, 2]])",
    ),
    (
        "narrow_copy(Tensor self, int dim, int start, int length)",
        lambda self, *a: _narrowed(self, *a),
        "narrow_copy(torch.arange(5), 0, 1, 3)",
        "tensor([1, 2, 3])",
    ),
    (
        "permute_copy(Tensor self, int[] dims)",
        None,
        "permute_copy(torch.zeros(2, 3, 5), (2, 0, 1)).shape",
        "rushlight.Size([5, 2, 3])",
    ),
    ("select_copy(Tensor self, int dim, int index)", None, f"select_copy({_ROWS}, 1, -1)", "tensor([3, 6])"),
    (
        "slice_copy(Tensor self, int dim=0, int? start=None, int? end=None, int step=1)",
        lambda self, *arguments: rl.slice(self, *arguments),
        "slice_copy(torch.arange(5), 0, 1, 5, 2)",
        "tensor([1, 3])",
    ),
    (
        "squeeze_copy(Tensor self)",
        None,
        "squeeze_copy(torch.zeros(1, 2, 1)).shape",
        "rushlight.Size([2])",
    ),
    ("squeeze_copy.dim(Tensor self, int dim)", None, "", ""),
    ("squeeze_copy.dims(Tensor self, int[] dim)", None, "", ""),
    ("t_copy(Tensor self)", None, f"t_copy({_ROWS}).shape", "rushlight.Size([3, 2])"),
    (
        "transpose_copy(Tensor self, int dim0, int dim1)",
        None,
        f"transpose_copy({_ROWS}, 0, 1)",
        "tensor([[1, 4],\n        [2, 5],\n        [3, 6]])",
    ),
    (
        "unfold_copy(Tensor self, int dimension, int size, int step)",
        None,
        "unfold_copy(torch.arange(5), 0, 3, 2)",
        "tensor([[0, 1, 2],\n        [2, 3, 4]])",
    ),
    (
        "unsqueeze_copy(Tensor self, int dim)",
        None,
        "unsqueeze_copy(torch.tensor([1, 2]), 1)",
        "tensor([[1],\n        [2]])",
    ),
    (
        "view_copy(Tensor self, int[] size)",
        lambda self, size: self.view(size),
        "view_copy(torch.arange(4), (2, 2))",
        "tensor([[0, 1],\n        [2, 3]])",
    ),
    ("view_copy.dtype(Tensor self, ScalarType dtype)", None, "", ""),
    (
        "view_as_real_copy(Tensor self)",
        lambda self: rl.view_as_real(self),
        "view_as_real_copy(torch.tensor([1 + 2j]))",
        "tensor([[1., 2.]])",
    ),
    (
        "view_as_complex_copy(Tensor self)",
        lambda self: rl.view_as_complex(self),
        "view_as_complex_copy(torch.tensor([[1.0, 2.0]]))",
        "tensor([1.+2.j])",
    ),
):
    _name = _schema.partition("(")[0].partition(".")[0].removesuffix("_copy")
    _kind = {"alias": "self", "detach": "self that the tape does not know", "slice": "self[start:end:step] along dim"}
    if _view is None:
        _view = lambda self, *arguments, _name=_name: getattr(self, _name)(*arguments)
    composite(
        f"{_schema} -> Tensor",
        method=_name == "narrow",
        out=True,
        doc=f"""A copy of {_kind.get(_name, f"what {_name} would be a view of")}, in memory of its own.

Shapes: {"self of any shape; the result has the same" if _name in ("alias", "detach") else f"as for {_name}"}.

>>> torch.{_call}
{_shown}
"""
        if _call
        else "",
    )(lambda self, *arguments, _view=_view: _view(self, *arguments).clone(memory_format=rl.contiguous_format))

for _schema, _view, _call, _shown in (
    (
        "split_copy(Tensor self, int split_size, int dim=0",
        lambda self, *arguments: self.split(*arguments),
        "split_copy(torch.arange(3), 2)",
        "(tensor([0, 1]), tensor([2]))",
    ),
    (
        "split_with_sizes_copy(Tensor self, int[] split_sizes, int dim=0",
        lambda self, *a: self.split(*a),
        "split_with_sizes_copy(torch.arange(3), [1, 2])",
        "(tensor([0]), tensor([1, 2]))",
    ),
    (
        "unbind_copy(Tensor self, int dim=0",
        lambda self, *arguments: self.unbind(*arguments),
        "unbind_copy(torch.tensor([[1, 2], [3, 4]]), 1)",
        "(tensor([1, 3]), tensor([2, 4]))",
    ),
):
    _name = _schema.partition("(")[0].removesuffix("_copy")
    composite(
        f"{_schema}, *, Tensor[]? out=None) -> Any",
        method=False,
        doc=f"""Copies of the pieces that {_name} would give.

They are written to the tensors of out, where given, and then nothing is returned. RuntimeError for another number of
tensors in out, or another dtype.

Shapes: as for {_name}.

>>> torch.{_call}
{_shown}
""",
    )(lambda self, *arguments, _view=_view: _copies(_view(self, *arguments[:-1]), arguments[-1]))


def _narrowed(self: Any, dim: int, start: int, length: int) -> Any:
    if dim >= max(self.dim(), 1):
        raise RuntimeError(f"narrow_copy: dim; expected it below {self.dim()}, got {dim}")
    return self.narrow(dim, start, length)


def _copies(views: Any, out: Any) -> Any:
    if out is None:
        return tuple(v.clone(memory_format=rl.contiguous_format) for v in views)
    if len(out) != len(views):
        raise RuntimeError(f"out= has {len(out)} tensors; expected {len(views)}")
    for target, view in zip(out, views, strict=True):
        if target.dtype != view.dtype:
            raise RuntimeError(f"out= has dtype {target.dtype}; expected {view.dtype}")
        if target.shape != view.shape:
            target.resize_(view.shape)
        target.copy_(view)
    return None


# ---------------------------------------------------------------- writing into a view of a copy


def _written(copy: Any, view: Any, src: Any, name: str) -> Any:
    if view.shape != src.shape:
        raise RuntimeError(f"{name}: shape of src; expected {list(view.shape)}, got {list(src.shape)}")
    view.copy_(src)
    return copy


@composite("diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor")
def diagonal_scatter(self: Any, src: Any, offset: int, dim1: int, dim2: int) -> Any:
    """A copy of self with src on a diagonal: what writing to self.diagonal(offset, dim1, dim2) would make of self.

    RuntimeError when src does not have the diagonal's shape.

    Shapes: self (*), src of the shape of the diagonal; the result has the shape of self.

    >>> torch.diagonal_scatter(torch.zeros(2, 3, dtype=torch.int64), torch.tensor([7, 8]), offset=1)
    tensor([[0, 7, 0],
            [0, 0, 8]])
    """
    out = self.clone()
    return _written(out, out.diagonal(offset, dim1, dim2), src, "diagonal_scatter")


@composite("select_scatter(Tensor self, Tensor src, int dim, int index) -> Tensor")
def select_scatter(self: Any, src: Any, dim: int, index: int) -> Any:
    """A copy of self with src at one position of a dimension: what writing to self.select(dim, index) would make of
    self.

    RuntimeError when src does not have the shape of the slice.

    Shapes: self (*), src without dim; the result has the shape of self.

    >>> torch.select_scatter(torch.zeros(2, 2, dtype=torch.int64), torch.tensor([7, 8]), 1, 0)
    tensor([[7, 0],
            [8, 0]])
    """
    out = self.clone()
    return _written(out, out.select(dim, index), src, "select_scatter")


@composite(
    "slice_scatter(Tensor self, Tensor src, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor", out=True
)
def slice_scatter(self: Any, src: Any, dim: int, start: Any, end: Any, step: int) -> Any:
    """A copy of self with src in place of self[start:end:step] along a dimension.

    RuntimeError when src does not have the shape of the slice.

    Shapes: self (*), src of the shape of the slice; the result has the shape of self.

    >>> torch.slice_scatter(torch.zeros(5, dtype=torch.int64), torch.tensor([7, 8]), start=1, end=5, step=2)
    tensor([0, 7, 0, 8, 0])
    """
    out = self.clone()
    return _written(out, rl.slice(out, dim, start, end, step), src, "slice_scatter")


@composite("as_strided_scatter(Tensor self, Tensor src, int[] size, int[] stride, int? storage_offset=None) -> Tensor")
def as_strided_scatter(self: Any, src: Any, size: Any, stride: Any, storage_offset: Any) -> Any:
    """A copy of self, storage and strides included, with src at the places of as_strided.

    RuntimeError when src does not have the shape size, or the places leave the storage.

    Shapes: self (*), src of the shape size; the result has the shape of self.

    >>> torch.as_strided_scatter(torch.zeros(2, 3), torch.tensor([7.0, 8.0]), (2,), (4,))
    tensor([[7., 0., 0.],
            [0., 8., 0.]])
    """
    elements = self.untyped_storage().nbytes() // self.element_size()
    memory = self.as_strided((elements,), (1,), 0).clone()
    out = memory.as_strided(self.shape, self.stride(), self.storage_offset())
    offset = self.storage_offset() if storage_offset is None else storage_offset
    return _written(out, memory.as_strided(size, stride, offset), src, "as_strided_scatter")


@composite(
    "diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor",
    formula="out[..., i, i + offset] = self[..., i], 0 elsewhere",
)
def diag_embed(self: Any, offset: int, dim1: int, dim2: int) -> Any:
    """Zeros with the last dimension of self on the diagonal of two new dimensions.

    offset > 0 names a diagonal above the main one, offset < 0 one below. RuntimeError when dim1 and dim2 are the same.

    Shapes: self (*, n); the result (*, n + |offset|, n + |offset|), for the last two dimensions.

    >>> torch.diag_embed(torch.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    >>> torch.diag_embed(torch.tensor([1, 2]), offset=1)
    tensor([[0, 1, 0],
            [0, 0, 2],
            [0, 0, 0]])
    """
    ndim = self.dim() + 1
    for dim in (dim1, dim2):
        if not -ndim <= dim < ndim:
            raise IndexError(f"diag_embed: dim; expected it between {-ndim} and {ndim - 1}, got {dim}")
    dim1, dim2 = dim1 % ndim, dim2 % ndim
    if dim1 == dim2:
        raise RuntimeError(f"diag_embed: expected two different dims, got {dim1} twice")
    n = self.size(-1) + abs(offset)
    shape = list(self.shape[:-1])
    for dim in sorted((dim1, dim2)):
        shape.insert(dim, n)
    out = self.new_zeros(shape)
    out.diagonal(offset, dim1, dim2).copy_(self)
    return out


@composite("diag(Tensor self, int diagonal=0) -> Tensor", out=True)
def diag(self: Any, diagonal: int) -> Any:
    """A square matrix with a vector on a diagonal, or a copy of a matrix's diagonal.

    diagonal > 0 names one above the main diagonal, diagonal < 0 one below. RuntimeError for other than 1 or 2
    dimensions.

    Shapes: self (n), the result (n + |diagonal|, n + |diagonal|); or self (n, m), the result the diagonal.

    >>> torch.diag(torch.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    >>> torch.diag(torch.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    if self.dim() == 1:
        return self.diag_embed(diagonal)
    if self.dim() == 2:
        return rl.diagonal_copy(self, diagonal)
    raise RuntimeError(f"diag: expected a vector or a matrix, got {self.dim()} dimensions")


@composite("diagflat(Tensor self, int offset=0) -> Tensor")
def diagflat(self: Any, offset: int) -> Any:
    """A square matrix with all elements of self, row by row, on a diagonal.

    Shapes: self of n elements; the result (n + |offset|, n + |offset|).

    >>> torch.diagflat(torch.tensor([[1, 2], [3, 4]])).diagonal()
    tensor([1, 2, 3, 4])
    """
    return self.reshape(-1).diag_embed(offset)


@composite("constant_pad_nd(Tensor self, int[] pad, Scalar value=0) -> Tensor", method=False)
def constant_pad_nd(self: Any, pad: Any, value: Any) -> Any:
    """The last dimensions padded with a value, the last one first: pad is (left, right, top, bottom, ...).

    Negative widths crop. RuntimeError for an odd number of widths, too many, or a negative size.

    Shapes: self (*); each padded size grows by its two widths.

    >>> torch.constant_pad_nd(torch.tensor([[1, 2, 3]]), (1, -1, 0, 1), 9)
    tensor([[9, 1, 2],
            [9, 9, 9]])
    """
    if len(pad) % 2:
        raise RuntimeError(f"pad: expected an even number of widths, got {len(pad)}")
    if len(pad) > 2 * self.dim():
        raise RuntimeError(
            f"pad: expected at most {2 * self.dim()} widths for shape {list(self.shape)}, got {len(pad)}"
        )
    shape = list(self.shape)
    inner = self
    slots: list[slice] = [slice(None)] * self.dim()
    for i in range(len(pad) // 2):
        left, right = pad[2 * i], pad[2 * i + 1]
        d = self.dim() - 1 - i
        shape[d] += left + right
        if shape[d] < 0:
            raise RuntimeError(
                f"pad: negative size; expected widths of at least {-self.size(d)} together at dimension {d}, got "
                f"({left}, {right})"
            )
        start, end = max(-left, 0), self.size(d) - max(-right, 0)
        if start or end != self.size(d):
            inner = inner.narrow(d, min(start, self.size(d)), max(end - start, 0))
        slots[d] = slice(max(left, 0), max(left, 0) + inner.size(d))
    out = rl._ordered_like(self.new_full(shape, value), self)
    out[tuple(slots)] = inner
    return out


# ---------------------------------------------------------------- pieces

for _schema, _implementation, _doc, _call in (
    (
        "unsafe_split(Tensor self, int split_size, int dim=0)",
        "split",
        "Pieces of split_size along a dimension",
        "split(torch.arange(3), 2)",
    ),
    (
        "unsafe_split_with_sizes(Tensor self, int[] split_sizes, int dim=0)",
        "split_with_sizes",
        "Pieces of given sizes along a dimension",
        "split_with_sizes(torch.arange(3), [2, 1])",
    ),
    (
        "unsafe_chunk(Tensor self, int chunks, int dim=0)",
        "chunk",
        "At most `chunks` pieces of equal size along a dimension",
        "chunk(torch.arange(3), 2)",
    ),
):
    native(
        f"{_schema} -> Tensor[]",
        implementation=_implementation,
        out=False,
        derivative={"self": lambda grads, self_shape, self_dtype, dim: rl._split_backward(grads, self_shape, dim)},
        doc=f"""{_doc}, each of which may be written in place.

    The tape takes them for tensors of their own, not for views of one: after a write, gradients are right only where
    neither self nor the piece as it was is used.

    Shapes: self (*); the results have the size of their piece along dim.

    >>> torch.unsafe_{_call}
    (tensor([0, 1]), tensor([2]))""",
    )
native(
    "split_with_sizes(Tensor self, int[] split_sizes, int dim=0) -> Tensor[]",
    view="multi",
    derivative={"self": lambda grads, self_shape, self_dtype, dim: rl._split_backward(grads, self_shape, dim)},
    doc="""Pieces of the given sizes along a dimension, as views; the same as split with a list.

    RuntimeError when the sizes do not sum up to that of the dimension.

    Shapes: self (*); the results have the size of their piece along dim.

    >>> torch.arange(5).split_with_sizes([1, 4])
    (tensor([0]), tensor([1, 2, 3, 4]))""",
)


def _sections(self: Any, sections: int, dim: int) -> Any:
    if self.dim() == 0:
        raise RuntimeError("tensor_split: expected at least one dimension, got a tensor without")
    if sections <= 0:
        raise RuntimeError(f"tensor_split: number of sections must be larger than 0, got {sections}")
    n = self.size(dim)
    small, larger = divmod(n, sections)
    pieces, start = [], 0
    for i in range(sections):
        length = small + (i < larger)
        pieces.append(self.narrow(dim, start, length))
        start += length
    return tuple(pieces)


def _between(self: Any, indices: Any, dim: int) -> Any:
    if self.dim() == 0:
        raise RuntimeError("tensor_split: expected at least one dimension, got a tensor without")
    edges = [0, *indices]
    pieces = [rl.slice(self, dim, a, b, 1) for a, b in itertools.pairwise(edges)]
    pieces.append(rl.slice(self, dim, edges[-1], None, 1))
    return tuple(pieces)


_split_fields: Any = {"view": "multi", "out": False}
composite(
    "tensor_split(Tensor self, int sections, int dim=0) -> Tensor[]",
    doc="""Pieces along a dimension, as views: `sections` of them, the first ones larger by one where they cannot be
    equal, or those between given positions.

    The number or the positions may stand in an int64 tensor of 0 or 1 dimensions too. RuntimeError for fewer than one
    section, and for a tensor without dimensions.

    Shapes: self (*) of at least one dimension; the results have the size of their piece along dim.

    >>> torch.arange(5).tensor_split(3)
    (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    >>> torch.arange(5).tensor_split([1, 4])
    (tensor([0]), tensor([1, 2, 3]), tensor([4]))""",
    **_split_fields,
)(_sections)
composite(
    "tensor_split.indices(Tensor self, int[] indices, int dim=0) -> Tensor[]",
    **_split_fields,
)(_between)


@composite(
    "tensor_split.tensor(Tensor self, Tensor tensor_indices_or_sections, int dim=0) -> Tensor[]",
    **_split_fields,
)
def tensor_split_tensor(self: Any, tensor_indices_or_sections: Any, dim: int) -> Any:
    given = tensor_indices_or_sections
    if self.dim() == 0:
        raise RuntimeError("tensor_split: expected at least one dimension, got a tensor without")
    if given.dtype != rl.int64:
        raise RuntimeError(f"tensor_split: expected tensor_indices_or_sections of dtype int64, got {given.dtype}")
    if given.dim() > 1:
        raise RuntimeError(f"tensor_split: expected tensor_indices_or_sections of 0 or 1 dimensions, got {given.dim()}")
    return _sections(self, given.item(), dim) if given.dim() == 0 else _between(self, given.tolist(), dim)


composite(
    "tensor_split.both(Tensor self, *, Any indices_or_sections, int dim=0) -> Tensor[]",
    **_split_fields,
)(lambda self, indices_or_sections, dim: self.tensor_split(indices_or_sections, dim))

for _name, _word, _least, _dimension, _shown in (
    ("hsplit", "side by side", 1, "the second dimension, of vectors the first", "[(2, 2, 1), (2, 2, 1)]"),
    ("vsplit", "below each other", 2, "the first dimension", "[(1, 4, 1), (1, 4, 1)]"),
    ("dsplit", "behind each other", 3, "the third dimension", "[(2, 4, 1), (2, 4, 1)]"),
):
    _axis: Any = (
        (lambda self: 0 if self.dim() == 1 else 1)
        if _name == "hsplit"
        else (lambda self, _d=_least - 2: 0 if _d == 0 else 2)
    )
    composite(
        f"{_name}(Tensor self, int sections) -> Tensor[]",
        doc=f"""Pieces that lay {_word}, as views: equal ones, or those between given positions.

They are pieces of {_dimension}. RuntimeError when sections does not divide it, and for fewer
than {_least} dimension{"s" * (_least > 1)}.

Shapes: self (*) of at least {_least} dimension{"s" * (_least > 1)}; the results have the size of their piece.

>>> x = torch.zeros(2, 4, {2 if _name == "dsplit" else 1})
>>> [tuple(piece.shape) for piece in torch.{_name}(x, 2)]
{_shown}
""",
        **_split_fields,
    )(lambda self, sections, _n=_name, _l=_least, _a=_axis: _equal(self, sections, _n, _l, _a))
    composite(
        f"{_name}.indices(Tensor self, int[] indices) -> Tensor[]",
        **_split_fields,
    )(lambda self, indices, _n=_name, _l=_least, _a=_axis: _checked(self, _n, _l).tensor_split(indices, _a(self)))


def _checked(self: Any, name: str, least: int) -> Any:
    if self.dim() < least:
        raise RuntimeError(f"{name}: expected a tensor with at least {least} dimensions, got {self.dim()}")
    return self


def _equal(self: Any, sections: int, name: str, least: int, axis: Any) -> Any:
    dim = axis(_checked(self, name, least))
    if sections <= 0 or self.size(dim) % sections:
        raise RuntimeError(
            f"{name}: expected sections that divide size {self.size(dim)} of dimension {dim}, got {sections}"
        )
    return self.tensor_split(sections, dim)


# ---------------------------------------------------------------- moving around

native(
    "roll(Tensor self, int[1] shifts, int[1] dims=[]) -> Tensor",
    order="self",
    batch=_batch.roll,
    out=False,
    derivative={"self": lambda grad, shifts, dims: grad.roll([-s for s in shifts], dims)},
    formula="out[(i + shift) mod n] = self[i], in each of dims",
    doc="""Elements moved up along dimensions, where those that leave at the end come back at the front.

    Without dims the tensor counts as one row of all its elements.

    Shapes: self of any shape; the result has the same.

    >>> torch.roll(torch.tensor([1, 2, 3, 4]), 1)
    tensor([4, 1, 2, 3])
    >>> torch.roll(torch.tensor([[1, 2], [3, 4], [5, 6]]), (1, 1), (0, 1))
    tensor([[6, 5],
            [2, 1],
            [4, 3]])""",
)


@composite("argwhere(Tensor self) -> Tensor")
def argwhere(self: Any) -> Any:
    """Where the elements differ from zero: a row of indices per element; nonzero.

    Shapes: self (*) of d dimensions with n such elements; the result (n, d), int64.

    >>> torch.argwhere(torch.tensor([[0, 7], [8, 0]]))
    tensor([[0, 1],
            [1, 0]])
    """
    return rl._nonzero(self)


@composite("nonzero_static(Tensor self, *, int size, int fill_value=-1) -> Tensor", out=True)
def nonzero_static(self: Any, size: int, fill_value: int) -> Any:
    """The first `size` rows of nonzero, followed by rows of fill_value when there are fewer: a result of known
    shape.

    RuntimeError for a negative size.

    Shapes: self (*) of d dimensions; the result (size, d), int64.

    >>> torch.nonzero_static(torch.tensor([0, 7, 0, 8]), size=3)
    tensor([[ 1],
            [ 3],
            [-1]])
    """
    if size < 0:
        raise RuntimeError(f"nonzero_static: size; expected at least 0, got {size}")
    found = rl._nonzero(self)[:size]
    missing = size - found.size(0)
    return rl.cat([found, found.new_full((missing, self.dim()), fill_value)]) if missing else found


@composite("unravel_index(Tensor indices, Any shape) -> Any", method=False)
def unravel_index(indices: Any, shape: Any) -> Any:
    """The coordinates that positions in a flattened tensor of this shape have.

    TypeError for indices that are no integers, ValueError for negative sizes.

    Shapes: indices (*); one tensor (*) of int64 per dimension of shape.

    >>> torch.unravel_index(torch.tensor([0, 5]), (2, 3))
    (tensor([0, 1]), tensor([0, 2]))
    """
    if indices.is_floating_point() or indices.is_complex() or indices.dtype == rl.bool:
        raise TypeError(f"unravel_index: dtype of indices; expected integers, got {indices.dtype}")
    if isinstance(shape, int):
        shape = (shape,)
    elif not isinstance(shape, (tuple, list)) or not all(isinstance(s, int) for s in shape):
        raise TypeError(f"unravel_index: shape; expected an int or a sequence of ints, got {shape!r}")
    if any(s < 0 for s in shape):
        raise ValueError(f"unravel_index: shape; expected no negative sizes, got {tuple(shape)}")
    rest = indices.to(rl.int64)
    found = []
    for size in reversed(shape):
        found.append(rest.remainder(size))
        rest = rest.div(size, rounding_mode="floor")
    return tuple(reversed(found))


@composite("combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor", method=False)
def combinations(self: Any, r: int, with_replacement: bool) -> Any:
    """All choices of r elements of a vector, in order, one per row; with_replacement, an element may come again.

    RuntimeError for a tensor that is no vector, and for a negative r.

    Shapes: self (n); the result (C, r), C the binomial coefficient n over r, or n + r - 1 over r with replacement.

    >>> torch.combinations(torch.tensor([1, 2, 3]))
    tensor([[1, 2],
            [1, 3],
            [2, 3]])
    """
    if self.dim() != 1:
        raise RuntimeError(f"combinations: expected a vector, got shape {list(self.shape)}")
    if r < 0:
        raise RuntimeError(f"combinations: r; expected at least 0, got {r}")
    if r == 0:
        return self.new_empty((0,))
    n, skip = self.size(0), 0 if with_replacement else 1
    columns = [rl.arange(n)]
    for _ in range(r - 1):
        # each row goes on with every element that may follow its last one
        counts = (n - skip) - columns[-1]
        rows = rl.repeat_interleave(counts)
        begin = (counts.cumsum(0) - counts)[rows]
        columns = [c[rows] for c in columns]
        columns.append(columns[-1] + skip + (rl.arange(rows.numel()) - begin))
    return self[rl.stack(columns, 1)]


@composite(
    "vander(Tensor x, int? N=None, bool increasing=False) -> Tensor",
    method=False,
    formula="out_ij = x_i^(N - 1 - j), or x_i^j when increasing",
)
def vander(x: Any, N: Any, increasing: bool) -> Any:
    """The matrix of Vandermonde: powers of a vector's elements as columns, the highest first unless increasing.

    N is the number of elements unless given. RuntimeError for a tensor that is no vector, and for a negative N.

    Shapes: x (n); the result (n, N), int64 for integers.

    >>> torch.vander(torch.tensor([2, 3, 5]))
    tensor([[ 4,  2,  1],
            [ 9,  3,  1],
            [25,  5,  1]])
    """
    if x.dim() != 1:
        raise RuntimeError(f"vander: expected a vector, got shape {list(x.shape)}")
    n = x.size(0) if N is None else N
    if n < 0:
        raise RuntimeError(f"vander: N; expected at least 0, got {n}")
    dtype = rl.int64 if not (x.is_floating_point() or x.is_complex()) else x.dtype
    columns = x.new_ones((x.size(0), n), dtype=dtype)
    if n > 1:
        powers = x.to(dtype).unsqueeze(1).expand(x.size(0), n - 1).cumprod(1)
        columns = rl.cat([columns[:, :1], powers], 1)
    return columns if increasing else columns.flip(1)


@composite(
    "__rdiv__(Any self, Tensor|Scalar other) -> Tensor",
    public="",
    method=True,
    formula="out = other / self",
)
def __rdiv__(self: Any, other: Any) -> Any:
    """The quotient with self as the divisor, under the name of Python 2.

    Shapes: self and other broadcast; the result has their common shape.

    >>> torch.tensor([1.0, 2.0]).__rdiv__(4)
    tensor([4., 2.])
    """
    return self.reciprocal() * other


@composite("fill_diagonal_(Tensor self, Scalar fill_value, bool wrap=False) -> Tensor", public="")
def fill_diagonal_(self: Any, fill_value: Any, wrap: bool) -> Any:
    """The elements whose indices are all equal set to a number, in place; with wrap, a tall matrix goes on below.

    RuntimeError for fewer than two dimensions, or for sizes that differ in more than two.

    Shapes: self (n, m), or any number of dimensions of one size.

    >>> torch.zeros(2, 3, dtype=torch.int64).fill_diagonal_(5)
    tensor([[5, 0, 0],
            [0, 5, 0]])
    """
    if self.dim() < 2:
        raise RuntimeError(f"fill_diagonal_: expected at least two dimensions, got {self.dim()}")
    if self.dim() > 2 and len(set(self.shape)) > 1:
        raise RuntimeError(f"fill_diagonal_: expected equal sizes, got {list(self.shape)}")
    if any(size > 1 and step == 0 for size, step in zip(self.shape, self.stride(), strict=True)):
        raise RuntimeError(
            f"fill_diagonal_: unsupported operation: the tensor is expanded to {list(self.shape)}; clone it"
        )
    n, step = min(self.shape), sum(self.stride())
    self.as_strided((n,), (step,), self.storage_offset()).fill_(fill_value)
    if wrap and self.dim() == 2 and self.size(0) > self.size(1) + 1:
        for start in range(self.size(1) + 1, self.size(0), self.size(1) + 1):
            self[start:].fill_diagonal_(fill_value)
    return self


_SAMPLING = "Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor"
_PLANES = "input (N, C, H, W), grid (N, H', W', 2) of numbers from -1 to 1; the result (N, C, H', W')"
_VOLUMES = "input (N, C, D, H, W), grid (N, D', H', W', 3) of numbers from -1 to 1; the result (N, C, D', H', W')"
for _name, _dims in (("grid_sampler", 0), ("grid_sampler_2d", 2), ("grid_sampler_3d", 3)):
    _grids = _VOLUMES if _dims == 3 else _PLANES + "; or volumes" * (_dims == 0)
    _sizes, _zeros, _points = (
        ("1, 1, 1, 1, 3", "0.0, 0.0", "1, 1, 1, 2, 3") if _dims == 3 else ("1, 1, 1, 3", "0.0", "1, 1, 2, 2")
    )
    composite(
        f"{_name}({_SAMPLING}",
        method=False,
        doc=f"""nn.functional.grid_sample with its modes as numbers: images at the points of a grid.

interpolation_mode is 0 bilinear, 1 nearest or 2 bicubic, padding_mode 0 zeros, 1 border or 2 reflection. RuntimeError
for other numbers.

Shapes: {_grids}.

>>> x = torch.tensor([10.0, 20.0, 40.0]).reshape({_sizes})
>>> grid = torch.tensor([[-1.0, {_zeros}], [0.5, {_zeros}]]).reshape({_points})
>>> torch.{_name}(x, grid, 0, 0, True).flatten()
tensor([10., 30.])
""",
    )(lambda input, grid, mode, padding, align, _d=_dims: _sampled(input, grid, mode, padding, align, _d))


def _sampled(input: Any, grid: Any, mode: int, padding: int, align: bool, dims: int) -> Any:
    if dims and input.dim() != dims + 2:
        raise RuntimeError(f"grid_sampler_{dims}d: input; expected {dims + 2} dimensions, got {input.dim()}")
    modes, paddings = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")
    if not (0 <= mode < 3 and 0 <= padding < 3):
        raise RuntimeError(f"grid_sampler: expected modes from 0 to 2, got {mode} and {padding}")
    return rl.nn.functional.grid_sample(input, grid, modes[mode], paddings[padding], align)
