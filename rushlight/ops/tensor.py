"""Methods of Tensor that exchange data with Python, storage and other devices."""

from __future__ import annotations

from typing import Any

from ._record import composite, rl


@composite("numpy(Tensor self, *, bool force=False) -> Any", public="")
def numpy(self: Any, force: bool) -> Any:
    """A NumPy array over the same memory: what is written to one shows in the other.

    RuntimeError for a tensor that requires grad, unless force detaches it, and TypeError for bfloat16, which NumPy
    does not have.

    Shapes: self of any shape; the array has the same, and the same dtype.

    >>> x = torch.tensor([1, 2])
    >>> x.numpy()[0] = 7
    >>> x
    tensor([7, 2])
    """
    from rushlight._interop import to_numpy

    return to_numpy(self, force)


@composite("__array__(Tensor self, Any dtype=None, *, Any copy=None) -> Any", public="", method=True)
def __array__(self: Any, dtype: Any, copy: Any) -> Any:
    """What numpy.asarray and numpy.array call: an array over the same memory, or a copy in another dtype.

    ValueError when copy is False and the dtype needs a copy.

    Shapes: self of any shape; the array has the same.

    >>> import numpy
    >>> numpy.asarray(torch.tensor([[1, 2], [3, 4]])).sum(0).tolist()
    [4, 6]
    """
    from rushlight._interop import to_numpy

    array = to_numpy(self)
    if dtype is not None and array.dtype != dtype:
        if copy is False:
            raise ValueError("__array__: a conversion of dtype needs a copy, and copy=False forbids one")
        return array.astype(dtype)
    return array.copy() if copy else array


@composite(
    "__array_wrap__(Tensor self, Any array, Any context=None, Any return_scalar=False) -> Any", public="", method=True
)
def __array_wrap__(self: Any, array: Any, context: Any, return_scalar: Any) -> Any:
    """What NumPy calls with the result of one of its functions of a tensor: the result as a tensor.

    Shapes: array of any shape; the result has the same.

    >>> import numpy
    >>> numpy.sqrt(torch.tensor([1.0, 4.0]))
    tensor([1., 2.])
    """
    from rushlight._interop import _over_array

    return _over_array(array if array.flags.writeable else array.copy())


@composite(
    "__dlpack__(Tensor self, *, Any stream=None, Any max_version=None, Any dl_device=None, Any copy=None) -> Any",
    public="",
    method=True,
)
def __dlpack__(self: Any, stream: Any, max_version: Any, dl_device: Any, copy: Any) -> Any:
    """A DLPack capsule over the same memory, as from_dlpack of any library takes it.

    stream must be None or -1 on the CPU, else BufferError; copy=True exports a copy. BufferError for tensors that
    require grad.

    Shapes: self of any shape; the importing library sees the same.

    >>> import numpy
    >>> numpy.from_dlpack(torch.tensor([1, 2])).tolist()
    [1, 2]
    """
    from rushlight._dlpack import to_capsule

    return to_capsule(self, stream, max_version, dl_device, copy)


@composite("__dlpack_device__(Tensor self) -> Any", public="", method=True)
def __dlpack_device__(self: Any) -> Any:
    """The device in DLPack's numbers: (1, 0), the CPU.

    ValueError for a meta tensor.

    Shapes: self of any shape.

    >>> torch.zeros(2).__dlpack_device__()
    (1, 0)
    """
    from rushlight._dlpack import device_of

    return device_of(self)


@composite("__array_namespace__(Tensor self, *, Any api_version=None) -> Any", public="", method=True)
def __array_namespace__(self: Any, api_version: Any) -> Any:
    """The namespace of the Python array API standard: rushlight.array_api.

    ValueError for an api_version that it does not have.

    Shapes: self of any shape.

    >>> xp = torch.tensor([3.0, 4.0]).__array_namespace__()
    >>> xp.__name__
    'rushlight.array_api'
    """
    from rushlight import array_api

    if api_version is not None and api_version not in array_api.VERSIONS:
        raise ValueError(
            f"__array_namespace__: api_version; expected one of {', '.join(array_api.VERSIONS)}, got {api_version!r}"
        )
    return array_api


@composite("_to_device(Tensor self, Any device, *, Any stream=None) -> Tensor", public="Tensor.to_device", method=False)
def to_device(self: Any, device: Any, stream: Any) -> Any:
    """The tensor on a device: the array API standard's name for ``to``.

    ValueError for a stream other than None.

    Shapes: self of any shape; the result has the same.

    >>> x = torch.zeros(2)
    >>> x.to_device("cpu") is x
    True
    """
    if stream is not None:
        raise ValueError(f"to_device: stream; expected None on the CPU, got {stream!r}")
    return self.to(device)


def _format(number: int | None) -> Any:
    """A memory format, which bodies get as its number."""
    names = ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d")
    return None if number is None else getattr(rl, names[number])


@composite("cpu(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", public="")
def cpu(self: Any, memory_format: Any) -> Any:
    """The tensor on the CPU; the tensor itself when it is there.

    Shapes: self of any shape; the result has the same.

    >>> x = torch.zeros(2)
    >>> x.cpu() is x
    True
    """
    return self.to("cpu", memory_format=_format(memory_format))


@composite(
    "cuda(Tensor self, Any device=None, bool non_blocking=False, *, MemoryFormat? memory_format=None) -> Tensor",
    public="",
)
def cuda(self: Any, device: Any, non_blocking: bool, memory_format: Any) -> Any:
    """The tensor on a CUDA device.

    RuntimeError when there is none.

    Shapes: self of any shape; the result has the same.

    >>> torch.zeros(2).cuda()
    Traceback (most recent call last):
        ...
    RuntimeError: device 'cuda' is not available in this build; available: cpu, meta
    """
    return self.to("cuda")


@composite("type(Tensor self, Any dtype=None, bool non_blocking=False) -> Any", public="")
def type_(self: Any, dtype: Any, non_blocking: bool) -> Any:
    """The name of the tensor's type, or with a dtype, or the name of a type, the tensor converted to it.

    Shapes: self of any shape; the converted tensor has the same.

    >>> torch.tensor([1, 2]).type()
    'rushlight.LongTensor'
    >>> torch.tensor([1.5, 2.5]).type(torch.int64)
    tensor([1, 2])
    """
    from rushlight._functions import dtype_of_type_name, type_name

    return type_name(self.dtype) if dtype is None else self.to(dtype_of_type_name(dtype))


@composite("type_as(Tensor self, Tensor other) -> Tensor", public="")
def type_as(self: Any, other: Any) -> Any:
    """The tensor in the dtype of another; the tensor itself when it has that dtype.

    Shapes: self of any shape; the result has the same.

    >>> torch.tensor([1.5, -1.5]).type_as(torch.tensor([0]))
    tensor([ 1, -1])
    """
    return self.to(other.dtype)


@composite("is_same_size(Tensor self, Tensor other) -> Any", public="is_same_size")
def is_same_size(self: Any, other: Any) -> Any:
    """Whether the shapes of two tensors are equal.

    Shapes: self and other of any shapes; the result is a Python bool.

    >>> torch.is_same_size(torch.zeros(2, 1), torch.zeros(2))
    False
    """
    return self.shape == other.shape


@composite("equal(Tensor self, Tensor other) -> Any", public="equal")
def equal(self: Any, other: Any) -> Any:
    """Whether two tensors have one shape and equal elements; NaN equals nothing.

    Shapes: self and other of any shapes; the result is a Python bool. eq compares element by element.

    >>> torch.equal(torch.tensor([1, 2]), torch.tensor([1.0, 2.0])), torch.equal(torch.zeros(2), torch.zeros(1))
    (True, False)
    """
    return self.shape == other.shape and bool((self == other).all().item())


@composite("pin_memory(Tensor self, Any device=None) -> Tensor", public="")
def pin_memory(self: Any, device: Any) -> Any:
    """The tensor itself: without an accelerator, page-locked memory has no use.

    Shapes: self of any shape; the result has the same.

    >>> x = torch.zeros(2)
    >>> x.pin_memory() is x
    True
    """
    return self


@composite("nelement(Tensor self) -> Any", public="", method=False)
def nelement(self: Any) -> Any:
    """The number of elements."""
    return self.numel()


@composite("resize_as_(Tensor self, Tensor the_template, *, MemoryFormat? memory_format=None) -> Tensor")
def resize_as_(self: Any, the_template: Any, memory_format: Any) -> Any:
    """Resized in place to the shape of another tensor; elements that are new are not initialised.

    memory_format=torch.preserve_format asks for channels last where the other tensor is so, else for the usual order.
    RuntimeError for a tensor that requires grad.

    Shapes: self and the_template of any shapes; self gets that of the_template.

    >>> torch.tensor([1, 2, 3, 4, 5]).resize_as_(torch.zeros(2, 2))
    tensor([[1, 2],
            [3, 4]])
    """
    memory_format = _format(memory_format)
    if memory_format is rl.preserve_format:
        last = {4: rl.channels_last, 5: rl.channels_last_3d}.get(the_template.dim())
        last_is_so = last is not None and the_template.is_contiguous(memory_format=last)
        memory_format = last if last_is_so and not the_template.is_contiguous() else rl.contiguous_format
    return self.resize_(tuple(the_template.shape), memory_format=memory_format)


@composite("apply_(Tensor self, Any callable) -> Tensor", public="")
def apply_(self: Any, callable: Any) -> Any:
    """Every element replaced by a Python function of it, one after the other; returns self.

    Slow: for what operations do not offer. TypeError for a tensor that requires grad.

    Shapes: self of any shape.

    >>> torch.tensor([1, 2, 3]).apply_(lambda x: x * 10)
    tensor([10, 20, 30])
    """
    if self.requires_grad:
        raise TypeError("Can't call apply_() on Variable that requires grad. Use var.detach().apply_() instead.")
    values = [callable(v) for v in self.detach().reshape(-1).tolist()]
    self.copy_(rl.tensor(values, dtype=self.dtype).reshape(self.shape))
    return self


@composite("map_(Tensor self, Tensor other, Any callable) -> Tensor", public="")
def map_(self: Any, other: Any, callable: Any) -> Any:
    """Every element replaced by a Python function of it and another tensor's element; returns self.

    TypeError for a tensor that requires grad.

    Shapes: self of any shape, other broadcasts to it.

    >>> torch.tensor([1, 2, 3]).map_(torch.tensor([10, 20, 30]), lambda a, b: a + b)
    tensor([11, 22, 33])
    """
    if self.requires_grad:
        raise TypeError("Can't call map_() on Variable that requires grad. Use var.detach().map_() instead.")
    pairs = zip(self.reshape(-1).tolist(), other.expand(self.shape).reshape(-1).tolist(), strict=True)
    self.copy_(rl.tensor([callable(a, b) for a, b in pairs], dtype=self.dtype).reshape(self.shape))
    return self


@composite("share_memory_(Tensor self) -> Tensor", public="")
def share_memory_(self: Any) -> Any:
    """Moves the storage into memory shared with processes that are forked from now on; all tensors of it follow.

    Shapes: self of any shape; the same tensor is returned.

    >>> x = torch.zeros(2)
    >>> x.share_memory_().is_shared()
    True
    """
    self.untyped_storage().share_memory_()
    return self


# ---------------------------------------------------------------- older spellings, and questions that programs ask


@composite(
    "new_tensor(Tensor self, Any data, *, ScalarType? dtype=None, Any device=None, bool requires_grad=False, "
    "Any layout=None, Any pin_memory=None) -> Tensor",
    public="",
    method=True,
)
def new_tensor(self: Any, data: Any, dtype: Any, device: Any, requires_grad: bool, layout: Any, pin: Any) -> Any:
    """A tensor with a copy of the data, of this tensor's dtype and device where none are given.

    A warning for data that is a tensor: clone copies those.

    Shapes: the result has the shape of data, whatever that of self.

    >>> torch.zeros(5, dtype=torch.int8).new_tensor([[1, 2], [3, 4]])
    tensor([[1, 2],
            [3, 4]], dtype=rushlight.int8)
    """
    if isinstance(data, rl.Tensor):
        import warnings

        warnings.warn(
            "new_tensor: to copy a tensor, use source.detach().clone(), with .requires_grad_(True) where it is wanted",
            UserWarning,
            stacklevel=2,
        )
        made = data.detach().to(dtype or self.dtype).to(device or self.device).clone()
        return made.requires_grad_() if requires_grad else made
    return rl.tensor(data, dtype=dtype or self.dtype, device=device or self.device, requires_grad=requires_grad)


@composite("is_nonzero(Tensor self) -> Any", public="")
def is_nonzero(self: Any) -> Any:
    """Whether the only element differs from 0.

    RuntimeError when there is not exactly one element.

    Shapes: self of one element; the result is a Python bool.

    >>> torch.tensor([0.0]).is_nonzero(), torch.tensor(-2).is_nonzero()
    (False, True)
    """
    return bool(self)


@composite("const_data_ptr(Tensor self) -> Any", public="")
def const_data_ptr(self: Any) -> Any:
    """The address of the first element, as an integer, for reading.

    Shapes: self of any shape.

    >>> x = torch.zeros(2)
    >>> x[1:].const_data_ptr() - x.const_data_ptr()
    4
    """
    return self.data_ptr()


@composite("dim_order(Tensor self, *, Any ambiguity_check=False) -> Any", public="")
def dim_order(self: Any, ambiguity_check: Any) -> Any:
    """The dimensions from the largest stride to the smallest: the order in which they lie in memory.

    With ``ambiguity_check=True``, or a list of memory formats that shall decide, RuntimeError where several orders
    describe the memory.

    Shapes: self of any shape; the result is a tuple of as many numbers as dimensions.

    >>> torch.zeros(2, 3, 5, 7).dim_order()
    (0, 1, 2, 3)
    >>> torch.zeros(2, 3, 5, 7).to(memory_format=torch.channels_last).dim_order()
    (0, 2, 3, 1)
    """
    strides, sizes = self.stride(), self.shape

    def order_of(steps: Any) -> tuple[int, ...]:
        return tuple(sorted(range(len(sizes)), key=lambda d: -steps[d]))

    if not isinstance(ambiguity_check, (bool, list)) or any(
        not isinstance(f, rl.memory_format) for f in (ambiguity_check if isinstance(ambiguity_check, list) else [])
    ):
        raise TypeError("dim_order: ambiguity_check; expected a bool or a list of memory formats")
    unclear = len(set(strides)) < len(strides) or any(n == 1 for n in sizes) or not self.numel()
    if ambiguity_check is True and unclear:
        raise RuntimeError("dim_order: the strides allow several orders; expected one that is unique")
    if isinstance(ambiguity_check, list) and unclear:
        fitting = [f for f in ambiguity_check if self.is_contiguous(memory_format=f)]
        if len(fitting) != 1:
            raise RuntimeError(f"dim_order: expected one of the memory formats to fit, got {len(fitting)} that do")
        if fitting[0] in (rl.channels_last, rl.channels_last_3d):
            return (0, *range(2, len(sizes)), 1)
        return tuple(range(len(sizes)))
    return order_of(strides)


@composite("is_distributed(Tensor self) -> Any", public="is_distributed")
def is_distributed(self: Any) -> Any:
    """False: a tensor lies in one process.

    Shapes: self of any shape.

    >>> torch.is_distributed(torch.zeros(2))
    False
    """
    return False


@composite("to_dense(Tensor self, ScalarType? dtype=None, *, Any masked_grad=None) -> Tensor", public="")
def to_dense(self: Any, dtype: Any, masked_grad: Any) -> Any:
    """The tensor itself, which is dense already, or in another dtype if one is given.

    Shapes: self of any shape; the result has the same.

    >>> x = torch.zeros(2)
    >>> x.to_dense() is x
    True
    """
    return self if dtype is None else self.to(dtype)


@composite("dense_dim(Tensor self) -> Any", public="")
def dense_dim(self: Any) -> Any:
    """The number of dimensions: all are dense.

    Shapes: self of any shape.

    >>> torch.zeros(2, 3).dense_dim()
    2
    """
    return self.dim()


@composite("sparse_dim(Tensor self) -> Any", public="")
def sparse_dim(self: Any) -> Any:
    """The number of sparse dimensions: 0, since none is.

    Shapes: self of any shape.

    >>> torch.zeros(2, 3).sparse_dim()
    0
    """
    return 0


@composite("storage(Tensor self) -> Any", public="")
def storage(self: Any) -> Any:
    """The memory of the tensor as a TypedStorage of its dtype, which views share; untyped_storage is the newer
    name.

    Shapes: self of any shape; the storage has one dimension, all elements of the memory.

    >>> x = torch.tensor([1.0, 2.0, 3.0])
    >>> x[1:].storage().tolist()
    [1.0, 2.0, 3.0]
    """
    from rushlight.storage import TypedStorage

    return TypedStorage(wrap_storage=self.untyped_storage(), dtype=self.dtype)


@composite("storage_type(Tensor self) -> Any", public="")
def storage_type(self: Any) -> Any:
    """The class of the older storages of this dtype.

    Shapes: self of any shape.

    >>> torch.tensor([1.0]).storage_type().__name__
    'FloatStorage'
    """
    from rushlight.storage import legacy_class

    return legacy_class(self.dtype)


@composite("resize(Tensor self, int[] sizes) -> Tensor", public="", method=True)
def resize(self: Any, sizes: Any) -> Any:
    """The elements in another shape, which must hold as many; reshape is the newer name.

    RuntimeError for another number of elements.

    Shapes: self of any shape; the result has the shape sizes.

    >>> torch.arange(4).resize(2, 2)
    tensor([[0, 1],
            [2, 3]])
    """
    return self.reshape(sizes)


@composite("resize_as(Tensor self, Tensor tensor) -> Tensor", public="", method=True)
def resize_as(self: Any, tensor: Any) -> Any:
    """The elements in the shape of another tensor, which must have as many; reshape_as is the newer name.

    RuntimeError for another number of elements.

    Shapes: self and tensor with as many elements; the result has the shape of tensor.

    >>> torch.arange(4).resize_as(torch.zeros(2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    return self.reshape(tensor.shape)


@composite("record_stream(Tensor self, Any stream) -> Any", public="")
def record_stream(self: Any, stream: Any) -> Any:
    """Refused for a tensor on the CPU, which belongs to no stream: RuntimeError.

    Shapes: self of any shape.

    >>> torch.zeros(2).record_stream(None)
    Traceback (most recent call last):
        ...
    RuntimeError: record_stream: expected a tensor on an accelerator, got one on cpu
    """
    raise RuntimeError(f"record_stream: expected a tensor on an accelerator, got one on {self.device}")


@composite("map2_(Tensor self, Tensor x, Tensor y, Any callable) -> Tensor", public="")
def map2_(self: Any, x: Any, y: Any, callable: Any) -> Any:
    """Every element replaced by a Python function of it and the elements of two tensors; returns self.

    TypeError for a tensor that requires grad.

    Shapes: self of any shape, x and y broadcast to it.

    >>> torch.tensor([1, 2]).map2_(torch.tensor([10, 20]), torch.tensor(3), lambda a, b, c: a * c + b)
    tensor([13, 26])
    """
    if self.requires_grad:
        raise TypeError("Can't call map2_() on Variable that requires grad. Use var.detach().map2_() instead.")
    columns = [t.expand(self.shape).reshape(-1).tolist() for t in (self, x, y)]
    values = [callable(a, b, c) for a, b, c in zip(*columns, strict=True)]
    self.copy_(rl.tensor(values, dtype=self.dtype).reshape(self.shape))
    return self


@composite("module_load(Tensor self, Tensor other, Any assign=False) -> Any", public="")
def module_load(self: Any, other: Any, assign: Any) -> Any:
    """What a module's load_state_dict puts in place of this tensor when tensors are swapped: a copy of other in
    self.

    With assign it is other itself.

    Shapes: self and other of one shape, which the result has.

    >>> torch.zeros(2).module_load(torch.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """
    if assign:
        return other if isinstance(other, rl.nn.Parameter) == isinstance(self, rl.nn.Parameter) else other.detach()
    return self.copy_(other).detach()
