"""Exchange with NumPy and other array libraries, without copying."""

from __future__ import annotations

from typing import Any

from . import _C
from ._C import Tensor

_NUMPY_NAMES = {
    _C.bool: "bool",
    _C.uint8: "uint8",
    _C.int8: "int8",
    _C.int16: "int16",
    _C.int32: "int32",
    _C.int64: "int64",
    _C.float16: "float16",
    _C.float32: "float32",
    _C.float64: "float64",
    _C.complex64: "complex64",
    _C.complex128: "complex128",
}


class _Interface:
    """Shows a tensor's memory to NumPy and keeps it alive as the array's base."""

    def __init__(self, tensor: Tensor, typestr: str) -> None:
        self._tensor = tensor
        size = tensor.element_size()
        self.__array_interface__ = {
            "version": 3,
            "typestr": typestr,
            "shape": tuple(tensor.shape),
            "strides": tuple(s * size for s in tensor.stride()),
            "data": _C._lend(tensor),
        }


def to_numpy(tensor: Tensor, force: bool = False) -> Any:
    """A NumPy array over the tensor's memory.

    Raises:
        RuntimeError: the tensor requires grad, or is a conjugated or negated view (and force is not set).
        TypeError: NumPy has no such dtype, or the tensor has no data.
    """
    import numpy as np

    if force:
        tensor = tensor.detach().cpu().resolve_conj().resolve_neg()
    if tensor.requires_grad:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
    for lazy, bit, part in ((tensor.is_conj(), "conjugate", "conj"), (tensor.is_neg(), "negative", "neg")):
        if lazy:
            raise RuntimeError(
                f"Can't call numpy() on Tensor that has {bit} bit set. Use tensor.resolve_{part}().numpy() instead."
            )
    if tensor.is_meta:
        raise TypeError("numpy(): a meta tensor has no data to show")
    name = _NUMPY_NAMES.get(tensor.dtype)
    if name is None:
        raise TypeError(
            f"Got unsupported ScalarType {str(tensor.dtype).rpartition('.')[2]}: NumPy has no such dtype; convert "
            f"with .float() first"
        )
    dtype = np.dtype(name)
    if tensor.numel() == 0:
        return np.empty(tuple(tensor.shape), dtype)
    return np.asarray(_Interface(tensor, dtype.str))


def from_numpy(array: Any) -> Tensor:
    """A tensor over a NumPy array's memory.

    Raises:
        TypeError: not an array, or of a dtype that tensors do not have.
    """
    import numpy as np

    if not isinstance(array, np.ndarray):
        raise TypeError(f"from_numpy: expected np.ndarray (got {type(array).__name__})")
    return _over_array(array)


def _over_array(array: Any) -> Tensor:
    import numpy as np

    if array.dtype.byteorder not in ("=", "|", "<" if np.little_endian else ">"):
        raise ValueError(
            "from_numpy: the array's byte order is not the machine's; convert it with "
            "array.astype(array.dtype.newbyteorder('='))"
        )
    if not array.flags.writeable:
        # The memory stays the array's: reading is fine, and writing raises.
        pass
    if any(s % array.itemsize for s in array.strides) and array.size > 1:
        raise ValueError(
            f"from_numpy: the strides {array.strides} are no multiples of the element size {array.itemsize}; copy "
            f"the array first"
        )
    return _C._over_buffer(array)


def import_array(data: Any) -> Tensor:
    """A tensor over anything with __dlpack__, __array_interface__ or __array__."""
    import numpy as np

    if hasattr(data, "__dlpack__") and not isinstance(data, np.ndarray):
        from ._dlpack import from_dlpack

        return from_dlpack(data)
    array = np.asarray(data)
    if array.dtype.byteorder not in ("=", "|") or array.dtype == object:
        if array.dtype == object:
            raise TypeError(
                "tensor(): can't convert an array of Python objects; the supported types are numbers and bool"
            )
        array = array.astype(array.dtype.newbyteorder("="))
    return _over_array(array)
