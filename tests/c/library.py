"""The kernel library through cffi: declarations read from its own header, NumPy arrays passed as descriptors."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import cffi
import numpy as np

INCLUDE = Path(__file__).resolve().parents[2] / "native" / "include"

DTYPES = {
    np.dtype(np.bool_): 0,
    np.dtype(np.uint8): 1,
    np.dtype(np.int8): 2,
    np.dtype(np.int16): 3,
    np.dtype(np.int32): 4,
    np.dtype(np.int64): 5,
    np.dtype(np.float16): 6,
    np.dtype(np.float32): 8,
    np.dtype(np.float64): 9,
    np.dtype(np.complex64): 10,
    np.dtype(np.complex128): 11,
}
BFLOAT16 = 7

OK, VALUE_ERROR, TYPE_ERROR, INDEX_ERROR, MEMORY_ERROR, RUNTIME_ERROR = range(6)


def declarations(header: str = "rushlight.h", compiler: str = "cc") -> str:
    """The header as the C preprocessor leaves it, without the system's own headers."""
    text = subprocess.run(
        [compiler, "-E", "-std=c99", "-DRL_API=", "-I", str(INCLUDE), str(INCLUDE / header)],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    kept: list[str] = []
    ours = False
    for line in text.splitlines():
        marker = re.match(r'# \d+ "([^"]*)"', line)
        if marker:
            ours = marker.group(1).startswith(str(INCLUDE))
        elif ours:
            kept.append(line)
    return "\n".join(kept)


class Tensor:
    """A descriptor of a NumPy array's memory; keeps both alive. A uint16 array can stand for bfloat16."""

    def __init__(self, ffi: Any, array: np.ndarray, dtype: int | None = None) -> None:
        self.array = array
        item = array.itemsize
        self._shape = ffi.new("int64_t[]", list(array.shape) or [0])
        self._strides = ffi.new("int64_t[]", [stride // item for stride in array.strides] or [0])
        self.c = ffi.new("rl_tensor*")
        self.c.data = ffi.cast("void*", array.__array_interface__["data"][0])
        self.c.shape = self._shape
        self.c.strides = self._strides
        self.c.ndim = array.ndim
        self.c.dtype = DTYPES[array.dtype] if dtype is None else dtype


class Library:
    """`lib.matmul(...)` calls rl_matmul and raises LibraryError unless it returns RL_OK."""

    def __init__(self, path: str) -> None:
        self.ffi = cffi.FFI()
        self.ffi.cdef(declarations())
        self.c = self.ffi.dlopen(path)

    def tensor(self, array: Any, dtype: int | None = None) -> Tensor:
        return Tensor(self.ffi, np.asarray(array), dtype)

    def number(self, value: complex) -> Any:
        return self.ffi.new("rl_number*", {"re": complex(value).real, "im": complex(value).imag})[0]

    def error(self) -> str:
        return self.ffi.string(self.c.rl_last_error()).decode()

    def raw(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            return value.c
        if value is None:
            return self.ffi.NULL
        return value

    def __getattr__(self, name: str) -> Any:
        function = getattr(self.c, "rl_" + name)

        def call(*arguments: Any) -> None:
            status = function(*map(self.raw, arguments))
            if status != OK:
                raise LibraryError(status, self.error())

        return call


class LibraryError(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def expect_error(status: int, text: str, call: Any) -> None:
    """The call must fail with this status and with this text in its message."""
    failure: LibraryError | None = None
    try:
        call()
    except LibraryError as error:
        failure = error
    if failure is None:
        raise AssertionError(f"no error about {text}")
    if failure.status != status or text not in str(failure):
        raise AssertionError(f"status {failure.status}: {failure}; expected status {status} and {text!r}")


def to_bfloat16(values: np.ndarray) -> np.ndarray:
    """Rounds float32 to bfloat16, as uint16 bits (no NaN expected)."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bfloat16(bits: np.ndarray) -> np.ndarray:
    return (bits.astype(np.uint32) << 16).view(np.float32)
