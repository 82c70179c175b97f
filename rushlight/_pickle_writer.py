"""Pickles with tensors beside them: each storage is written once, and only the span of it that the tensors use.

Names are PyTorch's, so that PyTorch reads the result. Python's pickler in C insists that a name it writes can be
imported, so what writes builds on the one in Python; the pass before, which only looks for tensors, uses the one in C.
"""

from __future__ import annotations

import functools
import io
import pickle
import sys
import warnings
from collections import OrderedDict
from typing import IO, Any

import rushlight
from rushlight.storage import STORAGE_NAMES, TypedStorage


class _Name:
    """A name to be written as it stands, whether or not it can be imported."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name

    def __call__(self) -> None:  # the pickler wants what it writes as a constructor to be callable
        raise TypeError(f"{self.module}.{self.name} is only a name here")


_REBUILD_V2 = _Name("torch._utils", "_rebuild_tensor_v2")
_REBUILD_V3 = _Name("torch._utils", "_rebuild_tensor_v3")
_REBUILD_META = _Name("torch._utils", "_rebuild_meta_tensor_no_storage")
_REBUILD_PARAMETER = _Name("torch._utils", "_rebuild_parameter")
_REBUILD_PARAMETER_WITH_STATE = _Name("torch._utils", "_rebuild_parameter_with_state")
_REBUILD_FROM_TYPE = _Name("torch._tensor", "_rebuild_from_type_v2")


@functools.cache
def _storage_type(dtype: Any) -> _Name:
    if dtype is None:
        return _Name("torch.storage", "UntypedStorage")
    name = str(dtype).rpartition(".")[2]
    return _Name("torch", next(key for key, value in STORAGE_NAMES.items() if value == name))


def _stored_dtype(dtype: Any) -> Any:
    """The dtype a storage is written under: None, as bytes, where files have no class for it."""
    return dtype if str(dtype).rpartition(".")[2] in STORAGE_NAMES.values() else None


def _no_hooks() -> OrderedDict[str, Any]:
    return OrderedDict()  # where PyTorch's rebuild functions expect a tensor's hooks, which are not kept in files


class Span:
    """What is used of one storage: bytes `begin` to `end`, under the dtype it was first met with (None: bytes)."""

    def __init__(self, storage: Any, key: str, dtype: Any) -> None:
        self.storage, self.key, self.dtype = storage, key, dtype
        self.begin, self.end = int(storage.nbytes()), 0
        self.mixed = False

    def include(self, begin: int, end: int, dtype: Any) -> None:
        if begin < end:
            self.begin, self.end = min(self.begin, begin), max(self.end, end)
        self.mixed = self.mixed or dtype != self.dtype

    def close(self) -> None:
        if self.begin >= self.end:
            self.begin = self.end = 0
        elif self.mixed:
            # Offsets count elements, so both ends must suit every dtype; no dtype is larger than 16 bytes.
            self.begin -= self.begin % 16
            self.end = min(-(-self.end // 16) * 16, int(self.storage.nbytes()))
            self.end -= (self.end - self.begin) % (1 if self.dtype is None else self.dtype.itemsize)


class Spans:
    """The storages of one save, told apart by their memory: tensors that share it share a record."""

    def __init__(self) -> None:
        self.found: dict[Any, Span] = {}
        self._closed = False
        # Copies of what cannot be written as it stands, kept so that both passes see the same one.
        self._copies: dict[int, tuple[Any, Any]] = {}

    def close(self) -> None:
        self._closed = True
        for span in self.found.values():
            span.close()

    def use(self, storage: Any, dtype: Any, begin: int, end: int) -> Span:
        nbytes = int(storage.nbytes())
        identity = (storage.data_ptr(), nbytes) if nbytes else (0, id(storage))
        span = self.found.get(identity)
        if span is None:
            span = self.found[identity] = Span(storage, str(len(self.found)), dtype)
            if self._closed:
                # Met in the second pass only: some object makes this tensor anew whenever it is pickled.
                span.begin, span.end = 0, nbytes
        if not self._closed:
            span.include(begin, end, dtype)
        return span

    def writable(self, tensor: Any) -> Any:
        """`tensor`, or a dense copy where a stride is negative, which PyTorch's files cannot say."""
        if min(tensor.stride(), default=0) >= 0:
            return tensor
        if id(tensor) not in self._copies:
            self._copies[id(tensor)] = (tensor, tensor.detach().contiguous().clone())
        return self._copies[id(tensor)][1]


class _Reference:
    """Stands for a typed storage in the arguments of a rebuild function."""

    def __init__(self, span: Span, dtype: Any) -> None:
        self.span, self.dtype = span, dtype


def _is_plain_tensor(obj: Any) -> bool:
    """A tensor, unless its class has a way of its own to be pickled."""
    kind = type(obj)
    return isinstance(obj, rushlight.Tensor) and (
        kind is rushlight.nn.Parameter or kind.__reduce_ex__ is rushlight.Tensor.__reduce_ex__  # type: ignore[comparison-overlap]
    )


def _extent(tensor: Any) -> tuple[int, int]:
    """The bytes of its storage that a tensor without negative strides uses."""
    itemsize = tensor.dtype.itemsize
    begin = tensor.storage_offset() * itemsize
    if tensor.numel() == 0:
        return begin, begin
    last = sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
    return begin, begin + (1 + last) * itemsize


class _Finder(pickle.Pickler):
    """The first pass over an object: finds its tensors, and of their storages the spans."""

    def __init__(self, protocol: int, spans: Spans) -> None:
        super().__init__(io.BytesIO(), protocol)
        self._spans = spans

    def persistent_id(self, obj: Any) -> Any:
        kind = type(obj)
        if kind is rushlight.UntypedStorage:
            self._spans.use(obj, None, 0, int(obj.nbytes()))
        elif kind is TypedStorage:
            self._spans.use(obj.untyped(), _stored_dtype(obj.dtype), 0, obj.nbytes())
        else:
            return None
        return "storage"

    def reducer_override(self, obj: Any) -> Any:
        if _is_plain_tensor(obj):
            if obj.device.type != "meta":
                tensor = self._spans.writable(obj)
                self._spans.use(tensor.untyped_storage(), _stored_dtype(tensor.dtype), *_extent(tensor))
            return _found, (getattr(obj, "__dict__", None),)
        if isinstance(obj, (rushlight.dtype, rushlight.Size, rushlight.device)):
            return _found, ()
        return NotImplemented


def _found(*parts: Any) -> None:
    """What the first pass writes in place of a tensor."""


class _Writer(pickle._Pickler):
    """The second pass: writes a pickle that refers to the spans."""

    def __init__(self, file: IO[bytes], protocol: int, spans: Spans) -> None:
        super().__init__(file, protocol)
        self._spans = spans
        self._names: dict[int, tuple[str, str]] = {
            id(rushlight.Tensor): ("torch", "Tensor"),
            id(rushlight.Size): ("torch", "Size"),
            id(rushlight.device): ("torch", "device"),
            id(rushlight.nn.Parameter): ("torch.nn.parameter", "Parameter"),
        }

    def persistent_id(self, obj: Any) -> Any:
        kind = type(obj)
        if kind is _Reference:
            span, dtype = obj.span, obj.dtype
        elif kind is rushlight.UntypedStorage:
            span, dtype = self._spans.use(obj, None, 0, int(obj.nbytes())), None
        elif kind is TypedStorage:
            dtype = _stored_dtype(obj.dtype)
            span = self._spans.use(obj.untyped(), dtype, 0, obj.nbytes())
        else:
            return None
        size = span.end - span.begin
        location = sys.intern(str(span.storage.device))  # one object, so that it is written once
        numel = size if dtype is None else size // dtype.itemsize
        return ("storage", _storage_type(dtype), span.key, location, numel)

    def save_global(self, obj: Any, name: str | None = None) -> None:
        written = (obj.module, obj.name) if type(obj) is _Name else self._names.get(id(obj))
        if written is None and isinstance(obj, rushlight.dtype):
            written = ("torch", str(obj).rpartition(".")[2])
        if written is None:
            super().save_global(obj, name)  # type: ignore[misc]
        else:
            self._write_name(obj, *written)

    def _write_name(self: Any, obj: Any, module: str, name: str) -> None:
        if self.proto >= 4:
            self.save(module)
            self.save(name)
            self.write(pickle.STACK_GLOBAL)
        else:
            self.write(pickle.GLOBAL + f"{module}\n{name}\n".encode())
        self.memoize(obj)

    def reducer_override(self, obj: Any) -> Any:
        kind = type(obj)
        # A string as the answer means: write it as a name, with save_global.
        if kind is _Name or kind is rushlight.dtype or id(obj) in self._names:
            return "name"
        if kind is rushlight.Size:
            return rushlight.Size, (tuple(obj),)
        if kind is rushlight.device:
            return rushlight.device, ((obj.type,) if obj.index is None else (obj.type, obj.index))
        return self._reduce_tensor(obj) if _is_plain_tensor(obj) else NotImplemented

    def _reduce_tensor(self, tensor: Any) -> tuple[Any, tuple[Any, ...]]:
        kind = type(tensor)
        state = dict(getattr(tensor, "__dict__", None) or {})
        if getattr(tensor, "_backward_hooks", None):
            warnings.warn("save: the backward hooks of a tensor are not saved", stacklevel=2)
        state.pop("_backward_hooks", None)
        if kind is rushlight.nn.Parameter:
            arguments = (tensor.detach(), tensor.requires_grad, _no_hooks())
            if state:
                return _REBUILD_PARAMETER_WITH_STATE, (*arguments, state)
            return _REBUILD_PARAMETER, arguments
        function, plain = self._reduce_plain(tensor)
        if kind is rushlight.Tensor and not state:
            return function, plain
        return _REBUILD_FROM_TYPE, (function, kind, plain, state)

    def _reduce_plain(self, tensor: Any) -> tuple[_Name, tuple[Any, ...]]:
        dtype, requires_grad = tensor.dtype, bool(tensor.requires_grad)
        if tensor.device.type == "meta":
            return _REBUILD_META, (dtype, tuple(tensor.shape), tuple(tensor.stride()), requires_grad)
        tensor = self._spans.writable(tensor)
        size, stride = tuple(tensor.shape), tuple(tensor.stride())
        begin, end = _extent(tensor)
        span = self._spans.use(tensor.untyped_storage(), _stored_dtype(dtype), begin, end)
        offset = max(0, begin - span.begin) // dtype.itemsize if tensor.numel() else 0
        lazy = {name: True for name, on in (("conj", tensor.is_conj()), ("neg", tensor.is_neg())) if on}
        metadata = (lazy,) if lazy else ()
        if dtype == span.dtype:
            return _REBUILD_V2, (_Reference(span, dtype), offset, size, stride, requires_grad, _no_hooks(), *metadata)
        arguments = (_Reference(span, None), offset, size, stride, requires_grad, _no_hooks(), dtype, *metadata)
        return _REBUILD_V3, arguments


def dump(obj: Any, protocol: int) -> tuple[bytes, list[Span]]:
    """The pickle of `obj`, and the storages that it refers to by key."""
    spans = Spans()
    _Finder(protocol, spans).dump(obj)
    spans.close()
    file = io.BytesIO()
    _Writer(file, protocol, spans).dump(obj)
    return file.getvalue(), list(spans.found.values())
