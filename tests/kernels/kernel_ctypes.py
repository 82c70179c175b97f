"""The kernel library through ctypes, for tests: descriptors over torch tensors, which serve as memory and as oracle."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import torch

DTYPES = [
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.complex64,
    torch.complex128,
]
REAL = DTYPES[:10]
STATUS = {1: ValueError, 2: TypeError, 3: IndexError, 4: MemoryError, 5: RuntimeError}


class Descriptor(ctypes.Structure):
    """rl_tensor; keeps what it points to alive."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("ndim", ctypes.c_int32),
        ("dtype", ctypes.c_uint8),
        ("device", ctypes.c_uint8),
        ("reserved", ctypes.c_uint8 * 2),
    ]


def describe(tensor: torch.Tensor, flipped: tuple[int, ...] = ()) -> Descriptor:
    """The descriptor of a tensor, with negative strides along the `flipped` dims."""
    shape, strides = list(tensor.shape), list(tensor.stride())
    data = tensor.data_ptr()
    for d in flipped:
        data += (shape[d] - 1) * strides[d] * tensor.element_size() if shape[d] else 0
        strides[d] = -strides[d]
    n = len(shape)
    out = Descriptor(
        data, (ctypes.c_int64 * n)(*shape), (ctypes.c_int64 * n)(*strides), n, DTYPES.index(tensor.dtype), 0
    )
    out.owner = tensor
    return out


def _load() -> ctypes.CDLL:
    default = Path(__file__).resolve().parents[2] / "rushlight" / "lib" / "librushlight.so"
    library = ctypes.CDLL(os.environ.get("RUSHLIGHT_LIBRARY", str(default)))
    library.rl_last_error.restype = ctypes.c_char_p
    library.rl_mask_blocks.restype = ctypes.c_int64
    return library


lib = _load()


class KernelError(Exception):
    """What a kernel said, with the kind of its status."""

    def __init__(self, kind: type[Exception], message: str) -> None:
        super().__init__(message)
        self.kind = kind


def call(name: str, *args: object) -> None:
    """Calls rl_<name>: tensors become descriptors, a list of tensors an array of descriptor pointers, None NULL."""
    converted: list[object] = []
    keep: list[object] = []
    for arg in args:
        if isinstance(arg, torch.Tensor):
            arg = describe(arg)
        if isinstance(arg, Descriptor):
            keep.append(arg)
            converted.append(ctypes.byref(arg))
        elif isinstance(arg, list):
            items = [describe(a) if isinstance(a, torch.Tensor) else a for a in arg]
            if items and isinstance(items[0], Descriptor):
                keep.append(items)
                converted.append((ctypes.POINTER(Descriptor) * len(items))(*[ctypes.pointer(i) for i in items]))
            else:
                converted.append((ctypes.c_int32 * len(items))(*items))
        elif isinstance(arg, bool):
            converted.append(ctypes.c_int(arg))
        elif isinstance(arg, int):
            converted.append(ctypes.c_int64(arg))
        elif isinstance(arg, float):
            converted.append(ctypes.c_double(arg))
        else:
            converted.append(arg)
    status = getattr(lib, "rl_" + name)(*converted)
    if status:
        raise KernelError(STATUS[status], lib.rl_last_error().decode())


def with_threads(count: int, run):  # type: ignore[no-untyped-def]
    """The result of run() with that many threads."""
    before = lib.rl_get_num_threads()
    lib.rl_set_num_threads(count)
    try:
        return run()
    finally:
        lib.rl_set_num_threads(before)


def sample(dtype: torch.dtype, *shape: int, seed: int = 0, low: int = -4, high: int = 5) -> torch.Tensor:
    """Small whole numbers, so that sums are exact in every dtype and values repeat."""
    generator = torch.Generator().manual_seed(seed)
    if dtype == torch.bool:
        return torch.randint(0, 2, shape, generator=generator).bool()
    if dtype == torch.uint8:
        low = 0
    values = torch.randint(low, high, shape, generator=generator)
    if dtype.is_complex:
        return torch.complex(values.double(), torch.randint(low, high, shape, generator=generator).double()).to(dtype)
    return values.to(dtype)


def layouts(tensor: torch.Tensor):  # type: ignore[no-untyped-def]
    """The same values in several layouts: (tensor, descriptor) pairs."""
    yield tensor, describe(tensor)
    if tensor.dim() >= 2:
        order = list(range(tensor.dim()))[::-1]
        permuted = tensor.permute(order).contiguous().permute(order)
        yield permuted, describe(permuted)
    if tensor.dim() >= 1:
        wide = torch.zeros(*tensor.shape[:-1], tensor.shape[-1] * 2, dtype=tensor.dtype)
        spaced = wide[..., ::2]
        spaced.copy_(tensor)
        yield spaced, describe(spaced)
        flipped = tensor.index_select(0, torch.arange(tensor.shape[0] - 1, -1, -1))
        yield tensor, describe(flipped, (0,))
