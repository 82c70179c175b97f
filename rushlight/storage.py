"""Storages: the memory behind tensors as bytes, and the older classes that know a dtype.

`Tensor.untyped_storage()` gives the bytes. The methods here go onto the extension's UntypedStorage when one of them is
first used.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import rushlight
from rushlight import UntypedStorage

__all__ = ["TypedStorage", "UntypedStorage"]

# The class names that files use for a storage of each dtype.
STORAGE_NAMES = {
    "BoolStorage": "bool",
    "ByteStorage": "uint8",
    "CharStorage": "int8",
    "ShortStorage": "int16",
    "IntStorage": "int32",
    "LongStorage": "int64",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "FloatStorage": "float32",
    "DoubleStorage": "float64",
    "ComplexFloatStorage": "complex64",
    "ComplexDoubleStorage": "complex128",
}

# Conversions by name, and the dtype each is for.
_CONVERSIONS = {
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
    "complex_float": "complex64",
    "complex_double": "complex128",
}


def _mapped(filename: Any, shared: bool, nbytes: int) -> Any:
    """A storage over a file's first bytes: written back when shared, private pages otherwise."""
    import mmap
    import os

    if shared:
        handle = os.open(filename, os.O_RDWR | os.O_CREAT, 0o666)
    else:
        handle = os.open(filename, os.O_RDONLY)
    try:
        have = os.fstat(handle).st_size
        if have < nbytes:
            if not shared:
                raise RuntimeError(f"from_file: {filename} has {have} bytes; expected at least {nbytes}")
            os.ftruncate(handle, nbytes)
        if nbytes == 0:
            return rushlight.UntypedStorage(0)
        pages = mmap.mmap(handle, nbytes, access=mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY)
    finally:
        os.close(handle)
    return rushlight.UntypedStorage._from_buffer(pages)


class TypedStorage:
    """A storage's elements in a dtype: an older view of what UntypedStorage holds.

    ``TypedStorage(size)``, ``TypedStorage(sequence)`` and ``TypedStorage(wrap_storage=untyped, dtype=...)``.

    >>> import rushlight as torch
    >>> s = TypedStorage(wrap_storage=torch.ones(3).untyped_storage(), dtype=torch.float32)
    >>> len(s), s[0]
    (3, 1.0)
    """

    is_sparse = False
    is_cuda = False

    def __init__(self, *args: Any, wrap_storage: Any = None, dtype: Any = None, device: Any = None) -> None:
        self.dtype = dtype or getattr(type(self), "_dtype", None) or rushlight.get_default_dtype()
        if wrap_storage is not None:
            if args:
                raise RuntimeError("TypedStorage: expected no further arguments beside wrap_storage")
            if not isinstance(wrap_storage, rushlight.UntypedStorage):
                raise TypeError(f"TypedStorage: expected an UntypedStorage, got {type(wrap_storage).__name__}")
        elif not args:
            wrap_storage = rushlight.UntypedStorage(0)
        elif len(args) > 1:
            raise TypeError(f"TypedStorage: expected a size or a sequence, got {len(args)} arguments")
        elif isinstance(args[0], int):
            wrap_storage = rushlight.UntypedStorage(args[0] * int(self.dtype.itemsize), device=device)
        else:
            wrap_storage = rushlight.tensor(list(args[0]), dtype=self.dtype).untyped_storage()
        self._untyped_storage = wrap_storage
        # Old files name parts of a storage; these are the part's first element and size.
        self._begin, self._part = 0, -1

    @property
    def _size(self) -> int:
        return self._part if self._part >= 0 else int(self._untyped_storage.nbytes()) // self.element_size()

    @_size.setter
    def _size(self, value: int) -> None:
        self._part = value

    @property
    def device(self) -> Any:
        """Where the memory is."""
        return self._untyped_storage.device

    @property
    def filename(self) -> None:
        """None: which file a storage shows is not kept."""
        return None

    def untyped(self) -> Any:
        """The UntypedStorage."""
        return self._untyped_storage

    def nbytes(self) -> int:
        """The size in bytes."""
        return self._size * self.element_size()

    def element_size(self) -> int:
        """Bytes of one element."""
        return int(self.dtype.itemsize)

    def size(self) -> int:
        """The number of elements."""
        return self._size

    def data_ptr(self) -> int:
        """The address of the first element."""
        return int(self._untyped_storage.data_ptr()) + self._begin * self.element_size()

    def _tensor(self) -> Any:
        return rushlight._C._from_storage(self._untyped_storage, self.dtype, self._begin, (self._size,), (1,))

    def _like(self, untyped: Any, dtype: Any = None) -> TypedStorage:
        return TypedStorage(wrap_storage=untyped, dtype=dtype or self.dtype)

    def __len__(self) -> int:
        return self.size()

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __getitem__(self, index: Any) -> Any:
        found = self._tensor()[index]
        return (
            found.item() if found.dim() == 0 else self._like(found.untyped_storage()) if index == slice(None) else found
        )

    def __setitem__(self, index: Any, value: Any) -> None:
        self._tensor()[index] = value

    def __eq__(self, other: object) -> Any:
        return isinstance(other, TypedStorage) and self.data_ptr() == other.data_ptr() and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash(self._untyped_storage)

    def __copy__(self) -> TypedStorage:
        return self.clone()

    def __deepcopy__(self, memo: Any) -> TypedStorage:
        return self._like(self._untyped_storage.clone())

    def tolist(self) -> list[Any]:
        """The elements."""
        return list(self._tensor().tolist())

    def clone(self) -> TypedStorage:
        """A copy."""
        return self._like(self._untyped_storage.clone())

    def copy_(self, source: Any, non_blocking: bool = False) -> TypedStorage:
        """Takes the elements of another storage, converted."""
        self._tensor().copy_(source._tensor())
        return self

    def fill_(self, value: Any) -> TypedStorage:
        """Sets every element."""
        self._tensor().fill_(value)
        return self

    def resize_(self, size: int) -> None:
        """Changes the number of elements; what fits is kept."""
        self._untyped_storage.resize_(size * self.element_size())

    def resizable(self) -> bool:
        """Whether resize_ works."""
        return bool(self._untyped_storage.resizable())

    def is_shared(self) -> bool:
        """Whether the memory is shared between processes."""
        return bool(self._untyped_storage.is_shared())

    def share_memory_(self) -> TypedStorage:
        """Moves into memory shared with processes forked from now on."""
        self._untyped_storage.share_memory_()
        return self

    def is_pinned(self, device: Any = None) -> bool:
        """False."""
        return False

    def pin_memory(self, device: Any = None) -> TypedStorage:
        """The storage itself: without an accelerator, page-locked memory has no use."""
        return self

    def cpu(self) -> TypedStorage:
        """The storage on the CPU."""
        return self

    def cuda(self, device: Any = None, non_blocking: bool = False) -> TypedStorage:
        """RuntimeError: there is no CUDA device."""
        self._tensor().cuda()
        return self

    def get_device(self) -> int:
        """-1 on the CPU."""
        return -1

    def to(self, *, device: Any, non_blocking: bool = False) -> TypedStorage:
        """The storage on a device."""
        return self._like(self._tensor().to(device).untyped_storage())

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The name of the older class, or the storage converted to the dtype of one."""
        if dtype is None:
            kind = legacy_class(self.dtype)
            return f"{kind.__module__}.{kind.__name__}"
        if not isinstance(dtype, (str, rushlight.dtype)):
            dtype = dtype.dtype
        elif isinstance(dtype, str):
            dtype = getattr(rushlight, STORAGE_NAMES[dtype.rpartition(".")[2]])
        return self._like(self._tensor().to(dtype).untyped_storage(), dtype)

    def pickle_storage_type(self) -> str:
        """The class name that files use."""
        return legacy_class(self.dtype).__name__

    @classmethod
    def from_buffer(cls, buffer: Any, *args: Any, dtype: Any = None, **options: Any) -> TypedStorage:
        """A copy of a buffer's bytes; ``byte_order`` is "native", "little" or "big"."""
        kind = dtype or getattr(cls, "_dtype", None) or rushlight.get_default_dtype()
        untyped = _from_buffer(buffer, *args, dtype=kind, **options)
        return TypedStorage(wrap_storage=untyped, dtype=kind)

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, size: int = 0) -> TypedStorage:
        """Over the first `size` elements of a file; changes go into it when `shared`."""
        kind = getattr(cls, "_dtype", None) or rushlight.get_default_dtype()
        return TypedStorage(wrap_storage=_mapped(filename, shared, size * int(kind.itemsize)), dtype=kind)

    def __repr__(self) -> str:
        return f"TypedStorage(dtype={self.dtype}, device={self.device}) of size {self.size()}"


def _converter(name: str) -> Any:
    def convert(self: Any) -> Any:
        kind = getattr(rushlight, _CONVERSIONS[name])
        source = self._tensor()
        return TypedStorage(wrap_storage=source.to(kind).clone().untyped_storage(), dtype=kind)

    convert.__name__ = name
    convert.__doc__ = f"The elements converted to {_CONVERSIONS[name]}."
    return convert


for _name in _CONVERSIONS:
    setattr(TypedStorage, _name, _converter(_name))


Storage = TypedStorage


class _Legacy(type):
    """FloatStorage and the like: an instance is a TypedStorage, and every TypedStorage of the dtype is an instance."""

    _dtype: Any

    @property
    def dtype(cls) -> Any:
        return cls._dtype

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, TypedStorage) and instance.dtype == cls._dtype

    def __call__(cls, *args: Any, wrap_storage: Any = None, **options: Any) -> Any:
        if "dtype" in options:
            raise RuntimeError(f"{cls.__name__}: expected no dtype: the class has one, {cls._dtype}")
        return TypedStorage(*args, wrap_storage=wrap_storage, dtype=cls._dtype, **options)


_legacy: dict[str, Any] = {}


def legacy_class(dtype: Any) -> Any:
    """FloatStorage for float32, and so on."""
    for name, kind in STORAGE_NAMES.items():
        if getattr(rushlight, kind) == dtype:
            return __getattr__(name)
    raise TypeError(f"there is no storage class of dtype {dtype}")


def __getattr__(name: str) -> Any:
    if name not in STORAGE_NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name not in _legacy:
        members = {
            "_dtype": getattr(rushlight, STORAGE_NAMES[name]),
            "__module__": "rushlight",
            "from_buffer": classmethod(TypedStorage.from_buffer.__func__),  # type: ignore[attr-defined]
            "from_file": classmethod(TypedStorage.from_file.__func__),  # type: ignore[attr-defined]
        }
        _legacy[name] = _Legacy(name, (), members)
    return _legacy[name]


# ---------------------------------------------------------------- methods of UntypedStorage


def _from_buffer(
    buffer: Any, byte_order: str | None = None, count: int = -1, offset: int = 0, *, dtype: Any = None
) -> Any:
    if byte_order not in (None, "native", "little", "big"):
        raise ValueError(f"from_buffer: byte_order; expected 'native', 'little' or 'big', got {byte_order!r}")
    view = memoryview(buffer).cast("B")
    size = 1 if dtype is None else int(dtype.itemsize)
    if not 0 <= offset <= view.nbytes:
        raise ValueError(f"from_buffer: offset; expected 0 to {view.nbytes} (the buffer's bytes), got {offset}")
    if count < 0:
        if (view.nbytes - offset) % size:
            raise ValueError(f"from_buffer: {view.nbytes - offset} bytes are no multiple of the element size {size}")
        count = (view.nbytes - offset) // size
    if offset + count * size > view.nbytes:
        raise ValueError(f"from_buffer: {count} elements after byte {offset} need more than {view.nbytes} bytes")
    data = bytearray(view[offset : offset + count * size])
    if byte_order == "big" and size > 1:
        part = size // 2 if dtype is not None and dtype.is_complex else size
        for at in range(0, len(data), part):
            data[at : at + part] = data[at : at + part][::-1]
    return rushlight.UntypedStorage(data)


def _bytes(self: Any) -> Any:
    return rushlight._C._from_storage(self, rushlight.uint8, 0, (self.nbytes(),), (1,))


def _set_item(self: Any, index: Any, value: Any) -> None:
    _bytes(self)[index] = value


def _type(self: Any, dtype: Any = None, non_blocking: bool = False) -> Any:
    """The class name, or the bytes converted to the dtype of a class."""
    if dtype is None:
        return "rushlight.storage.UntypedStorage"
    return TypedStorage(wrap_storage=self, dtype=rushlight.uint8).type(dtype)


def _to(self: Any, *, device: Any, non_blocking: bool = False) -> Any:
    """The storage on a device."""
    return _bytes(self).to(device).untyped_storage()


def _byteswap(self: Any, dtype: Any) -> None:
    """Reverses the bytes of every element of a dtype."""
    width = int(dtype.itemsize) // (2 if dtype.is_complex else 1)
    rows = _bytes(self).view(-1, width)
    rows.copy_(rows.flip(1))


def _extend() -> None:
    kind: Any = rushlight.UntypedStorage
    methods: dict[str, Any] = {
        "_tensor": _bytes,
        "__setitem__": _set_item,
        "__iter__": lambda self: iter(_bytes(self).tolist()),
        "__copy__": lambda self: self.clone(),
        "__deepcopy__": lambda self, memo: self.clone(),
        "tolist": lambda self: _bytes(self).tolist(),
        "type": _type,
        "to": _to,
        "cpu": lambda self: self,
        "cuda": lambda self, device=None, non_blocking=False: _bytes(self).cuda(device),
        "untyped": lambda self: self,
        "new": lambda self: rushlight.UntypedStorage(0, device=self.device),
        "element_size": lambda self: 1,
        "get_device": lambda self: -1,
        "is_pinned": lambda self, device=None: False,
        "pin_memory": lambda self, device=None: self,
        "byteswap": _byteswap,
        "is_cuda": False,
        "is_hpu": False,
        "is_sparse": False,
        "is_sparse_csr": False,
        "filename": None,
        "from_buffer": staticmethod(_from_buffer),
        "from_file": staticmethod(lambda filename, shared=False, nbytes=0: _mapped(filename, shared, nbytes)),
    }
    for name, value in methods.items():
        setattr(kind, name, value)
    for name in _CONVERSIONS:
        setattr(kind, name, _converter(name))


_extend()
