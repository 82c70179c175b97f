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
    doc="""The slice at one position of a dimension, which disappears; a view, the same as self[index] for dim 0.

    A negative index counts from the end. IndexError when dim or index is out of range.

    Shapes: self (*) of at least one dimension; the result is without dim.

    >>> x = torch.tensor([[1, 2, 3], [4, 5, 6]])
    >>> x.select(1, -1)
    tensor([3, 6])""",
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
    doc="""The elements start to start + length - 1 along a dimension, as a view.

    start is a number or a 0-dim tensor of integers; a negative one counts from the end. RuntimeError when the range
    does not fit, IndexError for a dim out of range.

    Shapes: self (*) of at least one dimension; in the result dim has the size length.

    >>> x = torch.tensor([[1, 2, 3], [4, 5, 6]])
    >>> x.narrow(1, 1, 2)
    tensor([[2, 3],
            [5, 6]])""",
)
native(
    "narrow(Tensor self, int dim, int start, int length) -> Tensor",
    view="view",
    derivative={"self": lambda grad, self_shape, dim, start: rl._narrow_backward(grad, self_shape, dim, start)},
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
    doc="""The same elements in row-major order under another shape, as a view.

    One size may be -1 and follows from the others. RuntimeError when the numbers of elements differ, or when the
    strides of self admit no view (reshape copies then).

    Shapes: self of any shape; the result has the shape size.

    >>> x = torch.arange(6)
    >>> x.view(2, -1)
    tensor([[0, 1, 2],
            [3, 4, 5]])""",
)
native(
    "view.dtype(Tensor self, ScalarType dtype) -> Tensor",
    batch="plain",
    view="view",
    public="",
    implementation="view_as_dtype",
    doc="""The same bytes read as another dtype, as a view.

    The last dimension shrinks or grows by the ratio of the element sizes; RuntimeError when it does not divide, or
    when self has strides that do not allow it.

    >>> torch.tensor([1.0]).view(torch.int32).item() == 0x3F800000
    True""",
)
composite(
    "view_as(Tensor self, Tensor other) -> Tensor",
    view="view",
    public="",
    doc="""A view of self in the shape of other; RuntimeError where view(other.shape) is one.

    Shapes: self and other with the same number of elements; the result has the shape of other.

    >>> torch.arange(4).view_as(torch.zeros(2, 2))
    tensor([[0, 1],
            [2, 3]])""",
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
    doc="""The same elements in row-major order under another shape: a view where the strides admit one, else a
    copy.

    One size may be -1 and follows from the others. RuntimeError when the numbers of elements differ.

    Shapes: self of any shape; the result has the shape given.

    >>> x = torch.tensor([[1, 2, 3], [4, 5, 6]])
    >>> x.reshape(3, -1)
    tensor([[1, 2],
            [3, 4],
            [5, 6]])
    >>> x.t().reshape(6)
    tensor([1, 4, 2, 5, 3, 6])""",
)
composite(
    "reshape_as(Tensor self, Tensor other) -> Tensor",
    public="",
    view="view",
    doc="""self in the shape of other: a view where the strides admit one, else a copy.

    Shapes: self and other with the same number of elements; the result has the shape of other.

    >>> torch.arange(4).reshape_as(torch.zeros(2, 2))
    tensor([[0, 1],
            [2, 3]])""",
)(lambda self, other: self.reshape(other.shape))
native(
    "permute(Tensor self, int[] dims) -> Tensor",
    batch=_batch.permute,
    view="view",
    derivative={"self": lambda grad, dims: rl._permute_inverse(grad, dims)},
    doc="""The dimensions in another order, as a view: dimension i of the result is dimension dims[i] of self.

    RuntimeError when dims are not as many as those of self, or one is given twice.

    Shapes: self (*); the result has sizes size(dims[0]), size(dims[1]), ...

    >>> torch.zeros(2, 3, 5).permute(2, 0, 1).shape
    rushlight.Size([5, 2, 3])""",
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
    doc="""Two dimensions exchanged, as a view.

    Shapes: self (*); in the result the sizes of dim0 and dim1 are exchanged.

    >>> x = torch.tensor([[1, 2, 3], [4, 5, 6]])
    >>> x.transpose(0, 1)
    tensor([[1, 4],
            [2, 5],
            [3, 6]])""",
    public="transpose swapaxes swapdims Tensor.swapaxes Tensor.swapdims",
)
native(
    "t(Tensor self) -> Tensor",
    batch=_batch.transpose_matrix,
    view="view",
    derivative={"self": lambda grad: grad.t()},
    doc="""The transpose of a matrix, as a view; vectors and scalars as they are.

    RuntimeError for more than two dimensions.

    Shapes: self (n, m), (n) or (); the result (m, n), (n) or ().

    >>> torch.tensor([[1, 2, 3], [4, 5, 6]]).t()
    tensor([[1, 4],
            [2, 5],
            [3, 6]])""",
)
native(
    "expand(Tensor self, int[] size, *, bool implicit=False) -> Tensor",
    batch=_batch.expand,
    view="view",
    public="",
    derivative={"self": lambda grad: grad},
    doc="""Dimensions of size 1 repeated, and new ones put in front, as a view: all repetitions are the same memory.

    A size of -1 keeps that of self. RuntimeError when another size than 1 would change.

    Shapes: self (*); the result has the shape size, which has at least as many dimensions.

    >>> x = torch.tensor([[1], [2]])
    >>> x.expand(-1, 3)
    tensor([[1, 1, 1],
            [2, 2, 2]])
    >>> x.expand(4, 2, 3).shape
    rushlight.Size([4, 2, 3])""",
)
composite(
    "expand_as(Tensor self, Tensor other) -> Tensor",
    view="view",
    public="",
    doc="""A view of self with dimensions of size 1 repeated up to the shape of other.

    Shapes: self broadcasts to the shape of other, which the result has.

    >>> torch.tensor([[1], [2]]).expand_as(torch.zeros(2, 3))
    tensor([[1, 1, 1],
            [2, 2, 2]])""",
)(lambda self, other: self.expand(other.shape))
composite(
    "broadcast_to(Tensor self, int[] size) -> Tensor",
    view="view",
    doc="""A view of self with dimensions of size 1 repeated, and new ones put in front, up to size.

    RuntimeError when another size than 1 would change.

    Shapes: self (*); the result has the shape size.

    >>> torch.broadcast_to(torch.tensor([1, 2]), (2, 2))
    tensor([[1, 2],
            [1, 2]])""",
)(lambda self, size: self.expand(size))
native(
    "squeeze(Tensor self) -> Tensor",
    batch=_batch.squeeze,
    view="view",
    derivative={"self": lambda grad, self_shape: grad.reshape(self_shape)},
    doc="""A view without the dimensions of size 1: without all of them, or without those of the given that have it.

    Shapes: self (*); the result has the other sizes in their order.

    >>> x = torch.zeros(1, 2, 1)
    >>> x.squeeze().shape
    rushlight.Size([2])
    >>> x.squeeze(0).shape
    rushlight.Size([2, 1])
    >>> x.squeeze((0, 1)).shape
    rushlight.Size([2, 1])""",
)
native(
    "squeeze.dim(Tensor self, int dim) -> Tensor",
    view="view",
    derivative={"self": lambda grad, self_shape: grad.reshape(self_shape)},
)
native(
    "squeeze.dims(Tensor self, int[] dim) -> Tensor",
    view="view",
    implementation="squeeze_dims",
    derivative={"self": lambda grad, self_shape: grad.reshape(self_shape)},
)
native(
    "unsqueeze(Tensor self, int dim) -> Tensor",
    view="view",
    derivative={"self": lambda grad, self_shape: grad.reshape(self_shape)},
    doc="""A view with a dimension of size 1 put in at position dim.

    A negative dim counts from the end of the result: -1 puts it last.

    Shapes: self (*); the result has one dimension more.

    >>> x = torch.tensor([1, 2])
    >>> x.unsqueeze(0)
    tensor([[1, 2]])
    >>> x.unsqueeze(-1)
    tensor([[1],
            [2]])""",
)
native(
    "flatten(Tensor self, int start_dim=0, int end_dim=-1) -> Tensor",
    options={"composite": True},
    view="view",
    doc="""The dimensions from start_dim to end_dim merged into one: a view where the strides admit one, else a
    copy.

    A 0-dim tensor becomes one of one element. RuntimeError when start_dim is after end_dim.

    Shapes: self (*); in the result one dimension, the product of the sizes, stands for the range.

    >>> torch.zeros(2, 3, 5).flatten(1).shape
    rushlight.Size([2, 15])
    >>> torch.tensor([[1, 2], [3, 4]]).flatten()
    tensor([1, 2, 3, 4])""",
)
native(
    "unflatten(Tensor self, int dim, int[] sizes) -> Tensor",
    options={"composite": True},
    view="view",
    doc="""One dimension divided into several, as a view.

    One of sizes may be -1. RuntimeError when their product is not the size of dim.

    Shapes: self (*); in the result sizes stand for dim.

    >>> torch.arange(6).unflatten(0, (2, -1))
    tensor([[0, 1, 2],
            [3, 4, 5]])""",
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
    doc="""A view of the storage of self with any sizes, strides and offset, in elements.

    Elements may lie several times in the view. RuntimeError when it would leave the storage.

    Shapes: self of any shape; the result has the shape size.

    >>> x = torch.arange(6)
    >>> x.as_strided((4, 3), (1, 1))
    tensor([[0, 1, 2],
            [1, 2, 3],
            [2, 3, 4],
            [3, 4, 5]])""",
)
native(
    "diagonal(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor",
    view="view",
    derivative={
        "self": lambda grad, self_shape, offset, dim1, dim2: rl.diagonal_backward(grad, self_shape, offset, dim1, dim2)
    },
    doc="""The diagonal of two dimensions, put last, as a view.

    offset > 0 moves it above the main diagonal, offset < 0 below.

    Shapes: self (*, n, m) for the last two dimensions; the result (*, k), k the length of the diagonal.

    >>> x = torch.tensor([[1, 2, 3], [4, 5, 6]])
    >>> x.diagonal()
    tensor([1, 5])
    >>> x.diagonal(1)
    tensor([2, 6])""",
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
    doc="""Windows of a dimension, as a new last dimension; a view, so windows that overlap share memory.

    Window i has the elements from i * step to i * step + size - 1. RuntimeError when size is greater than the
    dimension.

    Shapes: self (*) whose dimension has n elements; the result (*, size), where it has (n - size) // step + 1.

    >>> torch.arange(5).unfold(0, 3, 2)
    tensor([[0, 1, 2],
            [2, 3, 4]])""",
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
    doc="""A view of a complex tensor as a real one: a last dimension of 2 holds the real and the imaginary part.

    RuntimeError for tensors that are not complex.

    Shapes: self (*) complex64 or complex128; the result (*, 2) float32 or float64.

    >>> torch.view_as_real(torch.tensor([1 + 2j, 3 - 1j]))
    tensor([[ 1.,  2.],
            [ 3., -1.]])""",
)
native(
    "view_as_complex(Tensor self) -> Tensor",
    batch="plain",
    view="view",
    method=False,
    derivative={"self": lambda grad: rl.view_as_real(grad)},
    doc="""A view of a real tensor, whose last dimension of 2 holds real and imaginary parts, as a complex one.

    RuntimeError when the last dimension has another size or a stride other than 1.

    Shapes: self (*, 2) float32 or float64; the result (*) complex64 or complex128.

    >>> torch.view_as_complex(torch.tensor([[1.0, 2.0], [3.0, -1.0]]))
    tensor([1.+2.j, 3.-1.j])""",
)
composite(
    "movedim(Tensor self, int[1] source, int[1] destination) -> Tensor",
    view="view",
    public="movedim moveaxis Tensor.moveaxis",
    doc="""A view with the dimensions of source moved to the places of destination; the others keep their order.

    RuntimeError when source and destination are not as many, or name a dimension twice.

    Shapes: self (*); the result has its sizes in the new order.

    >>> torch.zeros(2, 3, 5).movedim(0, -1).shape
    rushlight.Size([3, 5, 2])""",
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
    doc="""Pieces of split_size along a dimension, as views, the last of which may be smaller; or pieces of given sizes.

    RuntimeError when the given sizes do not sum up to that of the dimension.

    Shapes: self (*); the results have the size of their piece along dim.

    >>> torch.arange(5).split(2)
    (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    >>> torch.arange(5).split([1, 4])
    (tensor([0]), tensor([1, 2, 3, 4]))""",
)
native(
    "split.sizes(Tensor self, int[] split_size, int dim=0) -> Tensor[]",
    view="multi",
    implementation="split_with_sizes",
    derivative={"self": lambda grads, self_shape, self_dtype, dim: rl._split_backward(grads, self_shape, dim)},
)
native(
    "chunk(Tensor self, int chunks, int dim=0) -> Tensor[]",
    view="multi",
    derivative={"self": lambda grads, self_shape, self_dtype, dim: rl._split_backward(grads, self_shape, dim)},
    doc="""At most `chunks` pieces of equal size along a dimension, as views; the last may be smaller.

    Their size is that of the dimension over chunks, rounded up, so that there may be fewer pieces.

    Shapes: self (*) of at least one dimension; the results have the size of their piece along dim.

    >>> torch.arange(6).chunk(4)
    (tensor([0, 1]), tensor([2, 3]), tensor([4, 5]))""",
)
native(
    "unbind(Tensor self, int dim=0) -> Tensor[]",
    view="multi",
    derivative={"self": lambda grads, self_shape, self_dtype, dim: rl.stack(grads, dim)},
    doc="""The slices along a dimension, which disappears, as views.

    Shapes: self (*) of at least one dimension; the results, as many as dim has elements, are without it.

    >>> torch.tensor([[1, 2], [3, 4]]).unbind(1)
    (tensor([1, 3]), tensor([2, 4]))""",
)


@composite("_split_backward(Tensor[] grads, int[] input_size, int dim) -> Tensor", method=False)
def _split_backward(grads, input_size, dim):  # type: ignore[no-untyped-def]
    """The pieces' gradients joined again."""
    return rl.cat(list(grads), dim)


# ---------------------------------------------------------------- copies


def _cat_pieces(grad, shapes, dim):  # type: ignore[no-untyped-def]
    return rl._cat_backward(grad, [-1 if tuple(s) == (0,) else s[dim] for s in shapes], dim)


native(
    "_ordered_like(Tensor self, Tensor like) -> Tensor",
    options={"composite": True},
    out=False,
    doc="self in channels last where like is, of as many dimensions.",
)
native(
    "clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
    batch="plain",
    out=False,
    derivative={"self": lambda grad: grad},
    doc="""A copy in memory of its own, through which gradients flow back to self.

    memory_format=torch.preserve_format, the default, keeps the strides of dense tensors.

    Shapes: self of any shape; the result has the same.

    >>> x = torch.tensor([1, 2])
    >>> y = x.clone()
    >>> y[0] = 7
    >>> x, y
    (tensor([1, 2]), tensor([7, 2]))""",
)
native(
    "contiguous(Tensor self, *, MemoryFormat memory_format=0) -> Tensor",
    batch="plain",
    options={"composite": True},
    public="",
    out=False,
    doc="""The tensor itself when it lies row by row in memory without gaps, else a copy that does.

    memory_format=torch.channels_last asks for that order instead.

    Shapes: self of any shape; the result has the same.

    >>> x = torch.zeros(2, 3).t()
    >>> x.stride(), x.contiguous().stride()
    ((1, 3), (2, 1))""",
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
    "_to_meta(Tensor self, ScalarType dtype, MemoryFormat? memory_format=None) -> Tensor",
    batch="plain",
    method=False,
    out=False,
    derivative={"self": lambda grad, self_dtype: grad.to("cpu", self_dtype)},
    doc="A tensor without memory, of the layout that a copy would have. Its gradient has no numbers to be copied back.",
)
native(
    "copy_(Tensor self, Tensor src, bool non_blocking=False) -> Tensor",
    batch="pointwise",
    public="",
    writes_self=True,
    derivative={"self": lambda grad: rl.zeros_like(grad), "src": lambda grad: grad},
    doc="""Writes the elements of src, broadcast and converted, into self; returns self.

    non_blocking is accepted and changes nothing on the CPU.

    Shapes: src broadcasts to the shape of self.

    >>> x = torch.zeros(2, 2, dtype=torch.int64)
    >>> x.copy_(torch.tensor([1.7, 2.2]))
    tensor([[1, 2],
            [1, 2]])""",
)
native(
    "cat(Tensor[] tensors, int dim=0) -> Tensor",
    batch=_batch.cat,
    order="tensors",
    public="cat concat concatenate",
    method=False,
    derivative={"tensors": lambda grad, tensors_shapes, dim: _cat_pieces(grad, tensors_shapes, dim)},  # type: ignore[no-untyped-call]
    doc="""Tensors joined along a dimension that they have.

    The dtype is the one all promote to. RuntimeError when sizes of other dimensions differ; empty vectors are left
    out.

    Shapes: tensors (*) that differ in dim alone; the result has the sum of their sizes there.

    >>> torch.cat([torch.tensor([[1, 2]]), torch.tensor([[3, 4], [5, 6]])])
    tensor([[1, 2],
            [3, 4],
            [5, 6]])
    >>> torch.cat([torch.tensor([1, 2]), torch.tensor([0.5])])
    tensor([1.0000, 2.0000, 0.5000])""",
)
native(
    "stack(Tensor[] tensors, int dim=0) -> Tensor",
    batch=_batch.stack,
    method=False,
    derivative={"tensors": lambda grad, dim: grad.unbind(dim)},
    doc="""Tensors of one shape joined along a new dimension.

    RuntimeError when the shapes differ.

    Shapes: n tensors (*); the result has a dimension of size n put in at dim.

    >>> torch.stack([torch.tensor([1, 2]), torch.tensor([3, 4])], dim=1)
    tensor([[1, 3],
            [2, 4]])""",
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
    doc="""The tensor in another dtype, on another device, or both; the tensor itself when nothing changes and copy
    is False.

    Floating point numbers are truncated towards 0 to become integers. non_blocking is accepted and changes nothing on
    the CPU.

    Shapes: self of any shape; the result has the same.

    >>> torch.tensor([1.7, -1.7]).to(torch.int64)
    tensor([ 1, -1])
    >>> x = torch.tensor([1.0])
    >>> x.to(torch.float32) is x, x.to(torch.float32, copy=True) is x
    (True, False)""",
)
native(
    f"to.device(Tensor self, Device? device=None, ScalarType? dtype=None, {_TO}) -> Tensor",
    public="",
    out=False,
    options={"composite": True},
)
native(
    f"to.other(Tensor self, Tensor other, {_TO}) -> Tensor",
    public="",
    out=False,
    options={"composite": True},
)
_CONVERTED = {
    "bool": "[False, True, True]",
    "int": "[0, 1, 3]",
    "float": "[0.0, 1.5, 3.0]",
    "complex": "[0j, (1.5+0j), (3+0j)]",
}
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
    "chalf": "complex32",
    "cfloat": "complex64",
    "cdouble": "complex128",
}.items():
    native(
        f"{_name}(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
        public="",
        out=False,
        implementation="to_named",
        options={"composite": True, "dtype": _dtype},
        doc=f"""The tensor converted to {_dtype}; the tensor itself when it has that dtype.

    Shapes: self of any shape; the result has the same.

    >>> torch.tensor([0.0, 1.5, 3.0]).{_name}().tolist()
    {next(shown for kind, shown in _CONVERTED.items() if kind in _dtype)}""",
    )


# ---------------------------------------------------------------- in place: the tensor itself takes the view's geometry

for _schema, _view, _call, _shape in (
    ("squeeze_(Tensor self)", lambda self: self.squeeze(), "zeros(1, 2, 1).squeeze_()", [2]),
    ("squeeze_.dim(Tensor self, int dim)", lambda self, dim: self.squeeze(dim), "", []),
    ("squeeze_.dims(Tensor self, int[] dim)", lambda self, dim: self.squeeze(dim), "", []),
    (
        "unsqueeze_(Tensor self, int dim)",
        lambda self, dim: self.unsqueeze(dim),
        "zeros(2, 3).unsqueeze_(1)",
        [2, 1, 3],
    ),
    (
        "transpose_(Tensor self, int dim0, int dim1)",
        lambda self, dim0, dim1: self.transpose(dim0, dim1),
        "zeros(2, 3, 5).transpose_(0, 2)",
        [5, 3, 2],
    ),
    ("t_(Tensor self)", lambda self: self.t(), "zeros(2, 3).t_()", [3, 2]),
    (
        "as_strided_(Tensor self, int[] size, int[] stride, int? storage_offset=None)",
        lambda self, *a: self.as_strided(*a),
        "zeros(6).as_strided_((4, 3), (1, 1))",
        [4, 3],
    ),
):
    _twin = _schema.partition("(")[0].partition(".")[0][:-1]
    composite(
        f"{_schema} -> Tensor",
        public="Tensor.swapdims_ Tensor.swapaxes_"
        if _schema.startswith("transpose_")
        else "as_strided_"
        if _schema.startswith("as_")
        else "",
        doc=f"""Gives self the shape and strides of self.{_twin}(...), and returns it; no element moves.

    Shapes: as for {_twin}.

    >>> torch.{_call}.shape
    rushlight.Size({_shape})"""
        if _call
        else "",
    )(lambda self, *arguments, _view=_view: _become(self, _view(self, *arguments)))  # type: ignore[no-untyped-call]


def _become(self, view):  # type: ignore[no-untyped-def]
    from rushlight import _C

    return _C._become(self, view)
