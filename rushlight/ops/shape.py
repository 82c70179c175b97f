"""Views and changes of shape."""

from __future__ import annotations

from . import _batch
from ._record import composite, native, rl

# ---------------------------------------------------------------- views

native(
    "alias(Tensor self) -> Tensor",
    batch="plain",
    view="view",
    public="",
    method=False,
    derivative={"self": lambda grad: grad},
    doc="The same tensor as a new object.",
)
native(
    "_basic_index(Tensor self, int[] spec) -> Tensor",
    batch=_batch.basic_index,
    view="view",
    derivative={"self": lambda grad, self_shape, spec: rl._basic_index_backward(grad, self_shape, spec)},
    doc="The view that the ints, slices, None and ... of an index make; spec holds (code, start, step, length) "
    "per item.",
)
native(
    "_basic_index_backward(Tensor grad_output, int[] input_size, int[] spec) -> Tensor",
    batch=_batch.basic_index_backward,
    derivative={"grad_output": lambda grad, spec: rl._basic_index(grad, spec)},
    doc="Zeros of the input's shape with the gradient at the indexed places.",
)
native(
    "select(Tensor self, int dim, int index) -> Tensor",
    view="view",
    derivative={"self": lambda grad, self_shape, dim, index: rl.select_backward(grad, self_shape, dim, index)},
    doc="The slice at one position of a dimension, which disappears.",
)
native(
    "select_backward(Tensor grad_output, int[] input_sizes, int dim, int index) -> Tensor",
    batch="dims",
    public="",
    derivative={"grad_output": lambda grad, dim, index: grad.select(dim, index)},
    doc="Zeros with the gradient at one position of a dimension.",
)
native(
    "narrow.Tensor(Tensor self, int dim, Tensor start, int length) -> Tensor",
    view="view",
    implementation="narrow_tensor",
    options={"composite": True},
    doc="narrow with the start in a 0-dim tensor.",
)
native(
    "narrow(Tensor self, int dim, int start, int length) -> Tensor",
    view="view",
    derivative={"self": lambda grad, self_shape, dim, start: rl._narrow_backward(grad, self_shape, dim, start)},
    doc="The elements start to start + length - 1 along a dimension.",
)
native(
    "_narrow_backward(Tensor grad_output, int[] input_sizes, int dim, int start) -> Tensor",
    batch="dims",
    derivative={
        "grad_output": lambda grad, grad_output_shape, dim, start: rl._narrow_like(grad, grad_output_shape, dim, start)
    },
    doc="Zeros with the gradient in a range of a dimension.",
)
native(
    "_narrow_like(Tensor self, int[] size, int dim, int start) -> Tensor",
    batch="dims",
    view="view",
    derivative={"self": lambda grad, self_shape, dim, start: rl._narrow_backward(grad, self_shape, dim, start)},
    doc="narrow to the length that size has along dim.",
)
native(
    "slice(Tensor self, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor",
    view="view",
    public="",
    method=False,
    derivative={
        "self": lambda grad, self_shape, dim, start, end, step: rl.slice_backward(
            grad, self_shape, dim, start, end, step
        )
    },
    doc="self[start:end:step] along one dimension.",
)
native(
    "slice_backward(Tensor grad_output, int[] input_sizes, int dim, int? start, int? end, int step) -> Tensor",
    batch="dims",
    public="",
    derivative={"grad_output": lambda grad, dim, start, end, step: rl.slice(grad, dim, start, end, step)},
    doc="Zeros with the gradient at the sliced places.",
)
native(
    "view(Tensor self, int[] size) -> Tensor",
    batch=_batch.view,
    view="view",
    public="",
    derivative={"self": lambda grad, self_shape: grad.reshape(self_shape)},
    doc="The same elements under another shape, without copying; one size may be -1.",
)
native(
    "view.dtype(Tensor self, ScalarType dtype) -> Tensor",
    batch="plain",
    view="view",
    public="",
    implementation="view_as_dtype",
    doc="The same bytes read as another dtype.",
)
composite(
    "view_as(Tensor self, Tensor other) -> Tensor", view="view", public="", doc="A view of self in the shape of other."
)(lambda self, other: self.view(other.shape))
native(
    "_reshape_alias(Tensor self, int[] size) -> Tensor",
    batch=_batch.view,
    derivative={"self": lambda grad, self_shape: grad.reshape(self_shape)},
    view="view",
    doc="reshape where a view is possible.",
)
native(
    "reshape(Tensor self, int[] shape) -> Tensor",
    options={"composite": True},
    view="view",
    doc="The same elements under another shape: a view when strides allow, else a copy.",
)
composite(
    "reshape_as(Tensor self, Tensor other) -> Tensor",
    public="",
    view="view",
    doc="self in the shape of other: a view where that is possible, otherwise a copy.",
)(lambda self, other: self.reshape(other.shape))
native(
    "permute(Tensor self, int[] dims) -> Tensor",
    batch=_batch.permute,
    view="view",
    derivative={"self": lambda grad, dims: rl._permute_inverse(grad, dims)},
    doc="The dimensions in another order.",
)
native(
    "_permute_inverse(Tensor self, int[] dims) -> Tensor",
    batch=_batch.permute_inverse,
    view="view",
    derivative={"self": lambda grad, dims: grad.permute(dims)},
    doc="Undoes permute(dims).",
)
native(
    "transpose(Tensor self, int dim0, int dim1) -> Tensor",
    view="view",
    derivative={"self": lambda grad, dim0, dim1: grad.transpose(dim0, dim1)},
    doc="Two dimensions exchanged.",
    public="transpose swapaxes swapdims Tensor.swapaxes Tensor.swapdims",
)
native(
    "t(Tensor self) -> Tensor",
    batch=_batch.transpose_matrix,
    view="view",
    derivative={"self": lambda grad: grad.t()},
    doc="The transpose of a matrix; vectors and scalars as they are.",
)
native(
    "expand(Tensor self, int[] size, *, bool implicit=False) -> Tensor",
    batch=_batch.expand,
    view="view",
    public="",
    derivative={"self": lambda grad: grad},
    doc="Dimensions of size 1 repeated without copying; -1 keeps a size.",
)
composite(
    "expand_as(Tensor self, Tensor other) -> Tensor",
    view="view",
    public="",
    doc="A view of self with dims of size 1 repeated up to the shape of other.",
)(lambda self, other: self.expand(other.shape))
composite(
    "broadcast_to(Tensor self, int[] size) -> Tensor",
    view="view",
    doc="A view of self with dims of size 1 repeated up to size.",
)(lambda self, size: self.expand(size))
native(
    "squeeze(Tensor self) -> Tensor",
    batch=_batch.squeeze,
    view="view",
    derivative={"self": lambda grad, self_shape: grad.reshape(self_shape)},
    doc="Without the dimensions of size 1.",
)
native(
    "squeeze.dim(Tensor self, int dim) -> Tensor",
    view="view",
    derivative={"self": lambda grad, self_shape: grad.reshape(self_shape)},
    doc="Without one dimension, when its size is 1.",
)
native(
    "squeeze.dims(Tensor self, int[] dim) -> Tensor",
    view="view",
    implementation="squeeze_dims",
    derivative={"self": lambda grad, self_shape: grad.reshape(self_shape)},
    doc="Without those of the given dimensions whose size is 1.",
)
native(
    "unsqueeze(Tensor self, int dim) -> Tensor",
    view="view",
    derivative={"self": lambda grad, self_shape: grad.reshape(self_shape)},
    doc="With a dimension of size 1 put in.",
)
native(
    "flatten(Tensor self, int start_dim=0, int end_dim=-1) -> Tensor",
    options={"composite": True},
    view="view",
    doc="A range of dimensions merged into one.",
)
native(
    "unflatten(Tensor self, int dim, int[] sizes) -> Tensor",
    options={"composite": True},
    view="view",
    doc="One dimension divided into several; one size may be -1.",
)
native(
    "as_strided(Tensor self, int[] size, int[] stride, int? storage_offset=None) -> Tensor",
    batch=_batch.as_strided,
    view="view",
    derivative={
        "self": lambda grad, self_shape, self_strides, self_offset, self_dtype, size, stride, storage_offset: (
            rl._geometry_scatter(
                grad,
                self_shape,
                self_strides,
                self_offset,
                size,
                stride,
                self_offset if storage_offset is None else storage_offset,
                self_dtype,
            )
        )
    },
    doc="A view of the storage with any sizes and strides.",
)
native(
    "diagonal(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor",
    view="view",
    derivative={
        "self": lambda grad, self_shape, offset, dim1, dim2: rl.diagonal_backward(grad, self_shape, offset, dim1, dim2)
    },
    doc="The diagonal of two dimensions, put last.",
)
native(
    "diagonal_backward(Tensor grad_output, int[] input_sizes, int offset, int dim1, int dim2) -> Tensor",
    batch="dims",
    public="",
    derivative={"grad_output": lambda grad, offset, dim1, dim2: grad.diagonal(offset, dim1, dim2)},
    doc="Zeros with the gradient on a diagonal.",
)
native(
    "unfold(Tensor self, int dimension, int size, int step) -> Tensor",
    view="view",
    public="",
    derivative={
        "self": lambda grad, self_shape, dimension, size, step: rl._unfold_backward(
            grad, self_shape, dimension, size, step
        )
    },
    doc="Windows of a dimension, as a new last dimension.",
)
native(
    "_unfold_backward(Tensor grad_output, int[] input_sizes, int dim, int size, int step) -> Tensor",
    batch="dims",
    derivative={"grad_output": lambda grad, dim, size, step: grad.unfold(dim, size, step)},
    doc="The windows' gradients summed where they lie.",
)
native(
    "view_as_real(Tensor self) -> Tensor",
    batch="plain",
    view="view",
    method=False,
    derivative={"self": lambda grad: rl.view_as_complex(grad.contiguous())},
    doc="A complex tensor as a real one with a last dimension of 2.",
)
native(
    "view_as_complex(Tensor self) -> Tensor",
    batch="plain",
    view="view",
    method=False,
    derivative={"self": lambda grad: rl.view_as_real(grad)},
    doc="A real tensor with a last dimension of 2 as a complex one.",
)
composite(
    "movedim(Tensor self, int[1] source, int[1] destination) -> Tensor",
    view="view",
    public="movedim moveaxis Tensor.moveaxis",
    doc="A view with the dims of source moved to the places of destination; the other dims keep their order.",
)(lambda self, source, destination: self.permute(_moved(self.dim(), source, destination)))


def _moved(ndim: int, source: tuple[int, ...], destination: tuple[int, ...]) -> list[int]:
    """The permutation that takes each source dimension to its destination."""
    if len(source) != len(destination):
        raise RuntimeError(
            f"movedim: source has {len(source)} dims and destination has {len(destination)}; expected as many"
        )
    from_dims = [_wrap(d, ndim) for d in source]
    to_dims = [_wrap(d, ndim) for d in destination]
    if len(set(from_dims)) != len(from_dims) or len(set(to_dims)) != len(to_dims):
        raise RuntimeError(f"movedim: repeated dim in source {tuple(source)} or destination {tuple(destination)}")
    order = [-1] * ndim
    for s, d in zip(from_dims, to_dims, strict=False):
        order[d] = s
    rest = iter(d for d in range(ndim) if d not in from_dims)
    return [o if o >= 0 else next(rest) for o in order]


def _wrap(dim: int, ndim: int) -> int:
    limit = max(ndim, 1)
    if not -limit <= dim < limit:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-limit}, {limit - 1}], but got {dim})")
    return dim % limit


# ---------------------------------------------------------------- several views

native(
    "split(Tensor self, int split_size, int dim=0) -> Tensor[]",
    view="multi",
    derivative={
        "self": lambda grads, self_shape, self_dtype, split_size, dim: rl._split_backward(grads, self_shape, dim)
    },
    doc="Pieces of split_size along a dimension; the last may be smaller.",
)
native(
    "split.sizes(Tensor self, int[] split_size, int dim=0) -> Tensor[]",
    view="multi",
    implementation="split_with_sizes",
    derivative={"self": lambda grads, self_shape, self_dtype, dim: rl._split_backward(grads, self_shape, dim)},
    doc="Pieces of the given sizes along a dimension.",
)
native(
    "chunk(Tensor self, int chunks, int dim=0) -> Tensor[]",
    view="multi",
    derivative={"self": lambda grads, self_shape, self_dtype, dim: rl._split_backward(grads, self_shape, dim)},
    doc="At most `chunks` pieces of equal size along a dimension (the last may be smaller).",
)
native(
    "unbind(Tensor self, int dim=0) -> Tensor[]",
    view="multi",
    derivative={"self": lambda grads, self_shape, self_dtype, dim: rl.stack(grads, dim)},
    doc="The slices along a dimension, which disappears.",
)


@composite("_split_backward(Tensor[] grads, int[] input_size, int dim) -> Tensor", method=False)
def _split_backward(grads, input_size, dim):  # type: ignore[no-untyped-def]
    """The pieces' gradients joined again."""
    return rl.cat(list(grads), dim)


# ---------------------------------------------------------------- copies


def _cat_pieces(grad, shapes, dim):  # type: ignore[no-untyped-def]
    return rl._cat_backward(grad, [-1 if tuple(s) == (0,) else s[dim] for s in shapes], dim)


native(
    "clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
    batch="plain",
    out=False,
    derivative={"self": lambda grad: grad},
    doc="A copy.",
)
native(
    "contiguous(Tensor self, *, MemoryFormat memory_format=0) -> Tensor",
    batch="plain",
    options={"composite": True},
    public="",
    out=False,
    doc="The tensor itself when it is row-major without gaps, else such a copy.",
)
native(
    "to_dtype(Tensor self, ScalarType dtype, bool copy=False, MemoryFormat? memory_format=None) -> Tensor",
    batch="plain",
    public="",
    method=False,
    out=False,
    derivative={"self": lambda grad, self_dtype: grad.to(self_dtype)},
    doc="The elements converted to a dtype; the tensor itself when nothing changes.",
)
native(
    "copy_(Tensor self, Tensor src, bool non_blocking=False) -> Tensor",
    batch="pointwise",
    public="",
    writes_self=True,
    derivative={"self": lambda grad: rl.zeros_like(grad), "src": lambda grad: grad},
    doc="Writes src, broadcast and converted, into self.",
)
native(
    "cat(Tensor[] tensors, int dim=0) -> Tensor",
    batch=_batch.cat,
    public="cat concat concatenate",
    method=False,
    derivative={"tensors": lambda grad, tensors_shapes, dim: _cat_pieces(grad, tensors_shapes, dim)},  # type: ignore[no-untyped-call]
    doc="Tensors joined along a dimension.",
)
native(
    "stack(Tensor[] tensors, int dim=0) -> Tensor",
    batch=_batch.stack,
    method=False,
    derivative={"tensors": lambda grad, dim: grad.unbind(dim)},
    doc="Tensors joined along a new dimension.",
)
native(
    "_cat_backward(Tensor grad_output, int[] sizes, int dim) -> Tensor[]",
    batch=_batch.cat_backward,
    view="multi",
    derivative={"grad_output": lambda grads, sizes, dim: rl.cat(list(grads), dim)},
    doc="The gradient of a join in pieces along the dimension; a size of -1 stands for an empty vector that was "
    "skipped.",
)

_TO = "bool non_blocking=False, bool copy=False, *, MemoryFormat? memory_format=None"
native(
    f"to(Tensor self, ScalarType dtype, {_TO}) -> Tensor",
    public="",
    out=False,
    options={"composite": True},
    doc="The tensor in another dtype.",
)
native(
    f"to.device(Tensor self, Device? device=None, ScalarType? dtype=None, {_TO}) -> Tensor",
    public="",
    out=False,
    options={"composite": True},
    doc="The tensor on another device.",
)
native(
    f"to.other(Tensor self, Tensor other, {_TO}) -> Tensor",
    public="",
    out=False,
    options={"composite": True},
    doc="The tensor in the dtype and on the device of another.",
)
for _name, _dtype in {
    "bool": "bool",
    "byte": "uint8",
    "char": "int8",
    "short": "int16",
    "int": "int32",
    "long": "int64",
    "half": "float16",
    "bfloat16": "bfloat16",
    "float": "float32",
    "double": "float64",
    "cfloat": "complex64",
    "cdouble": "complex128",
}.items():
    native(
        f"{_name}(Tensor self, MemoryFormat? memory_format=None) -> Tensor",
        public="",
        out=False,
        implementation="to_named",
        options={"composite": True, "dtype": _dtype},
        doc=f"The tensor converted to {_dtype}.",
    )


# ---------------------------------------------------------------- in place: the tensor itself takes the view's geometry

for _schema, _view in (
    ("squeeze_(Tensor self)", lambda self: self.squeeze()),
    ("squeeze_.dim(Tensor self, int dim)", lambda self, dim: self.squeeze(dim)),
    ("squeeze_.dims(Tensor self, int[] dim)", lambda self, dim: self.squeeze(dim)),
    ("unsqueeze_(Tensor self, int dim)", lambda self, dim: self.unsqueeze(dim)),
    ("transpose_(Tensor self, int dim0, int dim1)", lambda self, dim0, dim1: self.transpose(dim0, dim1)),
    ("t_(Tensor self)", lambda self: self.t()),
    (
        "as_strided_(Tensor self, int[] size, int[] stride, int? storage_offset=None)",
        lambda self, *a: self.as_strided(*a),
    ),
):
    composite(
        f"{_schema} -> Tensor",
        public="Tensor.swapdims_ Tensor.swapaxes_"
        if _schema.startswith("transpose_")
        else "as_strided_"
        if _schema.startswith("as_")
        else "",
        doc="The out-of-place view, taken over by the tensor itself.",
    )(lambda self, *arguments, _view=_view: _become(self, _view(self, *arguments)))  # type: ignore[no-untyped-call]


def _become(self, view):  # type: ignore[no-untyped-def]
    from rushlight import _C

    return _C._become(self, view)
