"""How tensors are pickled and come back: the functions that files and pickles name, under PyTorch's names.

Every number may come from a damaged or hostile file, so each is checked against the storage before memory is touched.
"""

from __future__ import annotations

import copyreg
import warnings
from collections.abc import Sequence
from typing import Any

import rushlight
from rushlight.storage import TypedStorage

_MAX_DIMS = 64
_MAX_INT64 = (1 << 63) - 1


def _check_geometry(
    numel: int | None, offset: Any, size: Any, stride: Any, what: str
) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    """offset, size and stride as ints, known to stay within `numel` elements (None: no memory behind it)."""
    if not isinstance(size, Sequence) or not isinstance(stride, Sequence):
        raise RuntimeError(
            f"{what}: size and stride must be tuples; got {type(size).__name__}, {type(stride).__name__}"
        )
    numbers = (offset, *size, *stride)
    if not all(type(n) is int for n in numbers):
        raise RuntimeError(f"{what}: offset, size and stride must be ints; got {offset!r}, {size!r}, {stride!r}")
    if len(size) != len(stride) or len(size) > _MAX_DIMS:
        raise RuntimeError(
            f"{what}: expected one stride per dim and at most {_MAX_DIMS} dims; got {len(size)} sizes and "
            f"{len(stride)} strides"
        )
    if any(n < 0 or n > _MAX_INT64 for n in numbers):
        raise RuntimeError(f"{what}: offset, sizes and strides must not be negative; got {offset}, {size}, {stride}")
    count = 1
    for n in size:
        count *= n
    if count > _MAX_INT64:
        raise RuntimeError(f"{what}: a tensor of size {tuple(size)} has too many elements")
    if numel is not None:
        end = offset + 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True)) if count else offset
        if end > numel:
            raise RuntimeError(
                f"{what}: a tensor of size {tuple(size)}, stride {tuple(stride)} and offset {offset} needs {end} "
                f"elements; its storage has {numel}"
            )
    return offset, tuple(size), tuple(stride)


def _over_storage(storage: Any, dtype: Any, offset: Any, size: Any, stride: Any) -> Any:
    if not isinstance(storage, TypedStorage):
        raise RuntimeError(f"_rebuild_tensor: expected a storage, got {type(storage).__name__}")
    numel = storage.nbytes() // dtype.itemsize
    offset, size, stride = _check_geometry(numel, offset, size, stride, "_rebuild_tensor")
    if storage.device.type == "meta":
        return rushlight.empty_strided(size, stride, dtype=dtype, device="meta")
    return rushlight._C._from_storage(storage.untyped(), dtype, storage._begin + offset, size, stride)


def _with_metadata(tensor: Any, metadata: Any) -> Any:
    for name, needed in (metadata or {}).items():
        if name not in ("conj", "neg"):
            raise RuntimeError(f"_rebuild_tensor: tensor metadata {name!r} is not known; expected 'conj' or 'neg'")
        if needed:
            tensor = tensor.conj() if name == "conj" else rushlight._neg_view(tensor)
    return tensor


def _rebuild_tensor(storage: Any, storage_offset: int, size: Sequence[int], stride: Sequence[int]) -> Any:
    return _over_storage(storage, storage.dtype, storage_offset, size, stride)


def _rebuild_tensor_v2(
    storage: Any,
    storage_offset: int,
    size: Sequence[int],
    stride: Sequence[int],
    requires_grad: bool,
    backward_hooks: Any,
    metadata: Any = None,
) -> Any:
    """A tensor over a typed storage. Hooks are not kept in files, so `backward_hooks` is ignored."""
    tensor = _with_metadata(_rebuild_tensor(storage, storage_offset, size, stride), metadata)
    return tensor.requires_grad_() if requires_grad else tensor


def _rebuild_tensor_v3(
    storage: Any,
    storage_offset: int,
    size: Sequence[int],
    stride: Sequence[int],
    requires_grad: bool,
    backward_hooks: Any,
    dtype: Any,
    metadata: Any = None,
) -> Any:
    """The same with a dtype of its own, for tensors that share memory under another dtype."""
    if not isinstance(dtype, rushlight.dtype):
        raise RuntimeError(f"_rebuild_tensor_v3: expected a dtype, got {type(dtype).__name__}")
    tensor = _with_metadata(_over_storage(storage, dtype, storage_offset, size, stride), metadata)
    return tensor.requires_grad_() if requires_grad else tensor


def _rebuild_meta_tensor_no_storage(dtype: Any, size: Sequence[int], stride: Sequence[int], requires_grad: bool) -> Any:
    if not isinstance(dtype, rushlight.dtype):
        raise RuntimeError(f"_rebuild_meta_tensor_no_storage: expected a dtype, got {type(dtype).__name__}")
    _, size, stride = _check_geometry(None, 0, size, stride, "_rebuild_meta_tensor_no_storage")
    return rushlight.empty_strided(size, stride, dtype=dtype, device="meta", requires_grad=bool(requires_grad))


def _rebuild_parameter(data: Any, requires_grad: bool, backward_hooks: Any) -> Any:
    if not isinstance(data, rushlight.Tensor):
        raise RuntimeError(f"_rebuild_parameter: expected a tensor, got {type(data).__name__}")
    return rushlight.nn.Parameter(data, bool(requires_grad))


def _rebuild_parameter_with_state(data: Any, requires_grad: bool, backward_hooks: Any, state: Any) -> Any:
    return _set_state(_rebuild_parameter(data, requires_grad, backward_hooks), state)


def _set_state(obj: Any, state: Any) -> Any:
    """Python attributes, as copyreg gives them: a dict, or a pair of dicts whose second is for slots."""
    parts = state if isinstance(state, tuple) and len(state) == 2 else (state,)
    for part in parts:
        if part is None:
            continue
        if not isinstance(part, dict) or not all(type(name) is str for name in part):
            raise RuntimeError(f"_rebuild: expected a dict of attributes, got {type(part).__name__}")
        for name, value in part.items():
            if name.startswith("__"):
                raise RuntimeError(f"_rebuild: attribute {name!r} is not one that a file may set")
            obj.__dict__[name] = value
    return obj


# ---- pickles outside of files, as for copying between processes


def reduce_tensor(tensor: Any, protocol: int) -> tuple[Any, tuple[Any, ...]]:
    """What Tensor.__reduce_ex__ returns. Tensors in one pickle that share memory still share it afterwards."""
    if getattr(tensor, "_backward_hooks", None):
        warnings.warn("pickle: the backward hooks of a tensor are not pickled", stacklevel=3)
    state = {name: value for name, value in tensor.__dict__.items() if name != "_backward_hooks"}
    requires_grad = bool(tensor.requires_grad)
    if type(tensor) is rushlight.nn.Parameter:
        if state:
            return _rebuild_parameter_with_state, (tensor.detach(), requires_grad, None, state)
        return _rebuild_parameter, (tensor.detach(), requires_grad, None)
    size, stride = tuple(tensor.shape), tuple(tensor.stride())
    arguments: tuple[Any, ...]
    if tensor.device.type == "meta":
        function: Any = _rebuild_meta_tensor_no_storage
        arguments = (tensor.dtype, size, stride, requires_grad)
    else:
        function = _rebuild_tensor_plain
        lazy = {name: True for name, on in (("conj", tensor.is_conj()), ("neg", tensor.is_neg())) if on}
        arguments = (tensor.untyped_storage(), tensor.dtype, tensor.storage_offset(), size, stride, requires_grad)
        arguments = (*arguments, lazy) if lazy else arguments
    if type(tensor) is rushlight.Tensor and not state:
        return function, arguments
    return _rebuild_from_type, (function, type(tensor), arguments, state)


def _rebuild_tensor_plain(
    storage: Any,
    dtype: Any,
    offset: int,
    size: Sequence[int],
    stride: Sequence[int],
    requires_grad: bool,
    metadata: Any = None,
) -> Any:
    tensor = _with_metadata(rushlight._C._from_storage(storage, dtype, offset, tuple(size), tuple(stride)), metadata)
    return tensor.requires_grad_() if requires_grad else tensor


def _rebuild_from_type(function: Any, kind: type, arguments: tuple[Any, ...], state: Any) -> Any:
    tensor = function(*arguments)
    if type(tensor) is not kind:
        tensor = rushlight.Tensor._make_subclass(kind, tensor, tensor.requires_grad)
    return _set_state(tensor, state)


def _storage_from_bytes(data: bytes) -> Any:
    storage = rushlight.UntypedStorage(len(data))
    memoryview(storage)[:] = data
    return storage


def _reduce_storage(storage: Any) -> tuple[Any, tuple[Any, ...]]:
    return _storage_from_bytes, (bytes(storage),)


copyreg.pickle(rushlight.UntypedStorage, _reduce_storage)
