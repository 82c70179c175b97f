"""Methods of Tensor that exchange data with Python, storage and other devices."""

from __future__ import annotations

from typing import Any

from ._record import composite, rl


@composite("numpy(Tensor self, *, bool force=False) -> Any", public="")
def numpy(self: Any, force: bool) -> Any:
    """A NumPy array over the same memory."""
    from rushlight._interop import to_numpy

    return to_numpy(self, force)


@composite("__array__(Tensor self, Any dtype=None, *, Any copy=None) -> Any", public="", method=True)
def __array__(self: Any, dtype: Any, copy: Any) -> Any:
    """What numpy.asarray calls."""
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
    """Results of NumPy functions of a tensor come back as tensors."""
    from rushlight._interop import _over_array

    return _over_array(array if array.flags.writeable else array.copy())


@composite(
    "__dlpack__(Tensor self, *, Any stream=None, Any max_version=None, Any dl_device=None, Any copy=None) -> Any",
    public="",
    method=True,
)
def __dlpack__(self: Any, stream: Any, max_version: Any, dl_device: Any, copy: Any) -> Any:
    """A DLPack capsule over the same memory."""
    from rushlight._dlpack import to_capsule

    return to_capsule(self, max_version, copy)


@composite("__dlpack_device__(Tensor self) -> Any", public="", method=True)
def __dlpack_device__(self: Any) -> Any:
    """(1, 0): the CPU."""
    return (1, 0)


@composite("cpu(Tensor self, MemoryFormat? memory_format=None) -> Tensor", public="")
def cpu(self: Any, memory_format: Any) -> Any:
    """The tensor on the CPU."""
    return self.to("cpu")


@composite(
    "cuda(Tensor self, Any device=None, bool non_blocking=False, *, MemoryFormat? memory_format=None) -> Tensor",
    public="",
)
def cuda(self: Any, device: Any, non_blocking: bool, memory_format: Any) -> Any:
    """The tensor on a CUDA device."""
    return self.to("cuda")


@composite("type(Tensor self, Any dtype=None, bool non_blocking=False) -> Any", public="")
def type_(self: Any, dtype: Any, non_blocking: bool) -> Any:
    """The type's name, such as 'rushlight.FloatTensor', or the tensor converted to a type."""
    from rushlight._functions import dtype_of_type_name, type_name

    return type_name(self.dtype) if dtype is None else self.to(dtype_of_type_name(dtype))


@composite("type_as(Tensor self, Tensor other) -> Tensor", public="")
def type_as(self: Any, other: Any) -> Any:
    """The tensor in another's dtype."""
    return self.to(other.dtype)


@composite("is_same_size(Tensor self, Tensor other) -> Any", public="is_same_size")
def is_same_size(self: Any, other: Any) -> Any:
    """Whether the shapes are equal."""
    return self.shape == other.shape


@composite("equal(Tensor self, Tensor other) -> Any", public="equal")
def equal(self: Any, other: Any) -> Any:
    """Whether shapes and all elements are equal."""
    return self.shape == other.shape and bool((self == other).all().item())


@composite("pin_memory(Tensor self, Any device=None) -> Tensor", public="")
def pin_memory(self: Any, device: Any) -> Any:
    """The tensor itself: without an accelerator, page-locked memory has no use."""
    return self


@composite("nelement(Tensor self) -> Any", public="", method=False)
def nelement(self: Any) -> Any:
    """The number of elements."""
    return self.numel()


@composite("resize_as_(Tensor self, Tensor the_template, *, MemoryFormat? memory_format=None) -> Tensor")
def resize_as_(self: Any, the_template: Any, memory_format: Any) -> Any:
    """Resized in place to another tensor's shape."""
    return self.resize_(tuple(the_template.shape))


@composite("apply_(Tensor self, Any callable) -> Tensor", public="")
def apply_(self: Any, callable: Any) -> Any:
    """Every element replaced by a Python function of it."""
    if self.requires_grad:
        raise TypeError("Can't call apply_() on Variable that requires grad. Use var.detach().apply_() instead.")
    values = [callable(v) for v in self.detach().reshape(-1).tolist()]
    self.copy_(rl.tensor(values, dtype=self.dtype).reshape(self.shape))
    return self


@composite("map_(Tensor self, Tensor other, Any callable) -> Tensor", public="")
def map_(self: Any, other: Any, callable: Any) -> Any:
    """Every element replaced by a Python function of it and another tensor's element."""
    if self.requires_grad:
        raise TypeError("Can't call map_() on Variable that requires grad. Use var.detach().map_() instead.")
    pairs = zip(self.reshape(-1).tolist(), other.expand(self.shape).reshape(-1).tolist(), strict=True)
    self.copy_(rl.tensor([callable(a, b) for a, b in pairs], dtype=self.dtype).reshape(self.shape))
    return self


@composite("share_memory_(Tensor self) -> Tensor", public="")
def share_memory_(self: Any) -> Any:
    """Moves the storage into memory that processes share."""
    raise RuntimeError(
        "share_memory_: sharing memory between processes is not part of this release; see docs/status.md"
    )
