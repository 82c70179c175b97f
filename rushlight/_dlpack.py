"""DLPack: tensors shared with other array libraries through capsules."""

from __future__ import annotations

from typing import Any

from . import _C
from ._C import Tensor

_CPU = 1


def device_of(tensor: Tensor) -> tuple[int, int]:
    """What __dlpack_device__ says: device type and index, (1, 0) for the CPU.

    Raises:
        ValueError: a meta tensor, which has no memory.
    """
    if tensor.is_meta:
        raise ValueError("__dlpack_device__: a meta tensor has no memory to share; expected a tensor on the CPU")
    return (_CPU, 0)


def to_capsule(
    tensor: Tensor,
    stream: int | None = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """A DLPack capsule over the tensor's memory, or over a copy of it if `copy` is true.

    The capsule is a versioned one where the consumer knows those: `max_version` is (1, 0) or later.

    Raises:
        BufferError: the tensor requires grad, has no data, or is read-only and the capsule is not versioned; or a
            stream or a device is asked for that a tensor on the CPU does not have.
        TypeError: the stream is no int, or the device or version no pair of ints.
    """
    if stream is not None and type(stream) is not int:
        raise TypeError(f"__dlpack__: stream; expected None or an int, got {type(stream).__name__}")
    if stream not in (None, -1):
        raise BufferError(f"__dlpack__: stream; expected None for a tensor on the CPU, got {stream}")
    for name, pair in (("max_version", max_version), ("dl_device", dl_device)):
        if pair is not None and not (isinstance(pair, tuple) and len(pair) == 2):
            raise TypeError(f"__dlpack__: {name}; expected a pair of ints, got {pair!r}")
    if dl_device is not None and int(dl_device[0]) != _CPU:
        raise BufferError(f"__dlpack__: dl_device; expected the CPU, ({_CPU}, 0), got {dl_device}")
    return _C._to_dlpack(tensor, max_version is not None and max_version[0] >= 1, bool(copy))


def from_dlpack(obj: Any, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor over the memory of a DLPack capsule or of an object with __dlpack__.

    Args:
        obj: the producer.
        device: where the tensor is to be; only the CPU can be.
        copy: True asks for memory of its own, False for the producer's.

    Raises:
        TypeError: neither a capsule nor an object with __dlpack__ and __dlpack_device__.
        ValueError: a device or copy is asked for of a capsule, which is fixed already.
        BufferError: the memory is on another device, or of a type or layout that tensors do not have.
        RuntimeError: the capsule was consumed before.

    Example:
        >>> import numpy, rushlight
        >>> rushlight.from_dlpack(numpy.arange(3.0))
        tensor([0., 1., 2.], dtype=rushlight.float64)
    """
    if type(obj).__name__ == "PyCapsule":
        if device is not None or copy is not None:
            raise ValueError(
                "from_dlpack: a capsule was made already, so that device and copy cannot be chosen; pass its producer"
            )
        return _C._from_dlpack(obj)
    if not hasattr(obj, "__dlpack__") or not hasattr(obj, "__dlpack_device__"):
        raise TypeError(
            f"from_dlpack: expected a DLPack capsule or an object with __dlpack__ and __dlpack_device__, got "
            f"{type(obj).__name__}"
        )
    there = obj.__dlpack_device__()
    if device is not None and _C.device(device).type != "cpu":
        raise BufferError(f"from_dlpack: device; expected the CPU, got {device}")
    if there[0] != _CPU and device is None:
        raise BufferError(
            f"from_dlpack: expected memory on the CPU (device type {_CPU}), got device type {int(there[0])}, index "
            f"{there[1]}"
        )
    wishes: dict[str, Any] = {"max_version": (1, 0)}
    if there[0] != _CPU:
        wishes["dl_device"] = (_CPU, 0)
    if copy is not None:
        wishes["copy"] = copy
    try:
        return _C._from_dlpack(obj.__dlpack__(**wishes))
    except TypeError:  # a producer from before version 1.0
        made = _C._from_dlpack(obj.__dlpack__())
    return made.clone() if copy else made
