"""Names for annotations."""

from __future__ import annotations

import builtins
import os
from collections.abc import Sequence
from typing import IO, Any, TypeAlias

from . import _C
from ._C import Size, Tensor
from ._C import device as _device

__all__ = ["Device", "FileLike", "Number", "Size", "Storage", "Tensor"]

Number: TypeAlias = int | float | bool
Device: TypeAlias = _device | str | int | None
FileLike: TypeAlias = str | os.PathLike[str] | IO[bytes]
Storage = _C.UntypedStorage

_TensorOrTensors: TypeAlias = Tensor | Sequence[Tensor]
_int: TypeAlias = builtins.int
_float: TypeAlias = builtins.float
_bool: TypeAlias = builtins.bool
_complex: TypeAlias = builtins.complex
_size: TypeAlias = Size | list[int] | tuple[int, ...]
_symsize: TypeAlias = _size
_dtype: TypeAlias = _C.dtype
_Number: TypeAlias = Number
_dispatchkey: TypeAlias = str
_layout: TypeAlias = Any
_qscheme: TypeAlias = Any
IntLikeType: TypeAlias = int
FloatLikeType: TypeAlias = float
BoolLikeType: TypeAlias = bool
