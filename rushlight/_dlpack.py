"""DLPack: tensors shared with other array libraries through capsules."""

from __future__ import annotations

from typing import Any

from . import _C
from ._C import Tensor

_CPU = 1


def to_capsule(tensor: Tensor, max_version: tuple[int, int] | None = None, copy: bool | None = None) -> Any:
    """A DLPack capsule over the tensor's memory, or over a copy of it if `copy` is true.

    The capsule is a versioned one where the consumer knows those: `max_version` is (1, 0) or later.

    Raises:
        BufferError: the tensor requires grad, has no data, or is read-only and the capsule is not versioned.
    """
    return _C._to_dlpack(tensor, max_version is not None and max_version[0] >= 1, bool(copy))


def from_dlpack(obj: Any) -> Tensor:
    """A tensor over the memory of a DLPack capsule or of an object with __dlpack__.

    Raises:
        TypeError: neither a capsule nor an object with __dlpack__ and __dlpack_device__.
        BufferError: the memory is on another device, or of a type or layout that tensors do not have.
        RuntimeError: the capsule was consumed before.

    Example:
        >>> import numpy, rushlight
        >>> rushlight.from_dlpack(numpy.arange(3.0))
        tensor([0., 1., 2.], dtype=rushlight.float64)
    """
    if type(obj).__name__ == "PyCapsule":
        return _C._from_dlpack(obj)
    if not hasattr(obj, "__dlpack__") or not hasattr(obj, "__dlpack_device__"):
        raise TypeError(
            f"from_dlpack: expected a DLPack capsule or an object with __dlpack__ and __dlpack_device__, got "
            f"{type(obj).__name__}"
        )
    device = obj.__dlpack_device__()
    if device[0] != _CPU:
        raise BufferError(
            f"from_dlpack: expected memory on the CPU (device type {_CPU}), got device type {int(device[0])}, index "
            f"{device[1]}"
        )
    try:
        capsule = obj.__dlpack__(max_version=(1, 0))
    except TypeError:  # a producer from before version 1.0
        capsule = obj.__dlpack__()
    return _C._from_dlpack(capsule)
