"""The random functions of librushlight through ctypes, on torch tensors or NumPy arrays described by hand."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any

MAX_DIMS = 64
STATE_BYTES = 5056
DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64",
          "complex128")  # fmt: skip
STATUS = ("OK", "VALUE_ERROR", "TYPE_ERROR", "INDEX_ERROR", "MEMORY_ERROR", "RUNTIME_ERROR")


class Descriptor(ctypes.Structure):
    """rl_tensor."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("ndim", ctypes.c_int32),
        ("dtype", ctypes.c_uint8),
        ("device", ctypes.c_uint8),
        ("reserved", ctypes.c_uint8 * 2),
    ]


class Failure(Exception):
    """A status other than RL_OK: `status` is its name without RL_."""

    def __init__(self, status: str, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status
        self.message = message


def library_path() -> Path | None:
    """The library named by RUSHLIGHT_LIBRARY, or the one of a developer build."""
    named = os.environ.get("RUSHLIGHT_LIBRARY")
    if named:
        return Path(named)
    built = Path(__file__).resolve().parents[2] / "rushlight" / "lib" / "librushlight.so"
    return built if built.exists() else None


def load() -> ctypes.CDLL:
    path = library_path()
    assert path is not None, "no librushlight.so; build it, or name it in RUSHLIGHT_LIBRARY"
    lib = ctypes.CDLL(str(path))
    lib.rl_last_error.restype = ctypes.c_char_p
    lib.rl_cpu_level.restype = ctypes.c_char_p
    lib.rl_generator_create.restype = ctypes.c_void_p
    lib.rl_generator_create.argtypes = [ctypes.c_uint64]
    lib.rl_generator_clone.restype = ctypes.c_void_p
    lib.rl_generator_clone.argtypes = [ctypes.c_void_p]
    lib.rl_generator_destroy.argtypes = [ctypes.c_void_p]
    lib.rl_generator_set_seed.argtypes = [ctypes.c_void_p, ctypes.c_uint64]
    lib.rl_generator_initial_seed.restype = ctypes.c_uint64
    lib.rl_generator_initial_seed.argtypes = [ctypes.c_void_p]
    lib.rl_generator_seed.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint64)]
    lib.rl_generator_get_state.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
    lib.rl_generator_set_state.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
    lib.rl_generator_random32.restype = ctypes.c_uint32
    lib.rl_generator_random32.argtypes = [ctypes.c_void_p]
    lib.rl_generator_random64.restype = ctypes.c_uint64
    lib.rl_generator_random64.argtypes = [ctypes.c_void_p]
    return lib


def describe(address: int, dtype: str, shape: tuple[int, ...], strides: tuple[int, ...]) -> Descriptor:
    ndim = len(shape)
    array = ctypes.c_int64 * max(ndim, 1)
    return Descriptor(address, array(*shape), array(*strides), ndim, DTYPES.index(dtype), 0)


def describe_tensor(tensor: Any) -> Descriptor:
    """Of a torch tensor, which must outlive the descriptor."""
    return describe(tensor.data_ptr(), str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape), tensor.stride())


class Generator:
    """An rl_generator, with the rl_random functions as methods."""

    def __init__(self, lib: ctypes.CDLL, seed: int, handle: int | None = None) -> None:
        self.lib = lib
        self.handle = handle if handle is not None else lib.rl_generator_create(seed % 2**64)

    def __del__(self) -> None:
        self.lib.rl_generator_destroy(self.handle)

    def check(self, status: int) -> None:
        if status != 0:
            raise Failure(STATUS[status], self.lib.rl_last_error().decode())

    def clone(self) -> Generator:
        return Generator(self.lib, 0, self.lib.rl_generator_clone(self.handle))

    def state(self) -> bytes:
        buffer = ctypes.create_string_buffer(STATE_BYTES)
        self.check(self.lib.rl_generator_get_state(self.handle, buffer, STATE_BYTES))
        return buffer.raw

    def set_state(self, state: bytes) -> None:
        self.check(self.lib.rl_generator_set_state(self.handle, state, len(state)))

    def call(self, name: str, *arguments: Any) -> None:
        """rl_random_<name>(generator, *arguments): floats as double, ints as int64, the rest as tensors."""
        converted: list[Any] = [ctypes.c_void_p(self.handle)]
        for argument in arguments:
            if isinstance(argument, float):
                converted.append(ctypes.c_double(argument))
            elif isinstance(argument, int):
                converted.append(ctypes.c_int64(argument))
            elif isinstance(argument, Descriptor):
                converted.append(ctypes.byref(argument))
            else:
                converted.append(ctypes.byref(describe_tensor(argument)))
        self.check(getattr(self.lib, f"rl_random_{name}")(*converted))
