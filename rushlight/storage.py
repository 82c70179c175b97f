"""Storages that know their dtype, as files hold them. `Tensor.untyped_storage()` gives the storage itself."""

from __future__ import annotations

from typing import Any

import rushlight

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


class TypedStorage:
    """The elements of `wrap_storage` (an UntypedStorage) seen as `dtype`.

    >>> import rushlight as torch
    >>> s = TypedStorage(wrap_storage=torch.ones(3).untyped_storage(), dtype=torch.float32)
    >>> len(s), s[0]
    (3, 1.0)
    """

    def __init__(self, *, wrap_storage: Any, dtype: Any) -> None:
        if not isinstance(wrap_storage, rushlight.UntypedStorage):
            raise TypeError(f"TypedStorage: expected an UntypedStorage, got {type(wrap_storage).__name__}")
        self._untyped_storage = wrap_storage
        self.dtype = dtype
        # Old files name parts of a storage; these are the part's first element and size.
        self._begin, self._size = 0, int(wrap_storage.nbytes()) // int(dtype.itemsize)

    @property
    def device(self) -> Any:
        return self._untyped_storage.device

    def untyped(self) -> Any:
        return self._untyped_storage

    def nbytes(self) -> int:
        return self._size * self.element_size()

    def element_size(self) -> int:
        return int(self.dtype.itemsize)

    def size(self) -> int:
        return self._size

    def data_ptr(self) -> int:
        return int(self._untyped_storage.data_ptr()) + self._begin * self.element_size()

    def _tensor(self) -> Any:
        return rushlight._C._from_storage(self._untyped_storage, self.dtype, self._begin, (self._size,), (1,))

    def __len__(self) -> int:
        return self.size()

    def __getitem__(self, index: Any) -> Any:
        found = self._tensor()[index]
        return found.item() if found.dim() == 0 else found

    def __setitem__(self, index: Any, value: Any) -> None:
        self._tensor()[index] = value

    def tolist(self) -> list[Any]:
        return list(self._tensor().tolist())

    def __repr__(self) -> str:
        return f"TypedStorage(dtype={self.dtype}, device={self.device}) of size {self.size()}"
