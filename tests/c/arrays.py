"""Random arrays in random layouts, and comparison with a reference computed in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
from library import BFLOAT16, Library, Tensor, from_bfloat16, to_bfloat16

FLOATS = ("float16", "bfloat16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
INTEGERS = ("uint8", "int8", "int16", "int32", "int64")
NUMBERS = FLOATS + COMPLEX + INTEGERS

# Relative to the sum of the magnitudes of the terms.
TOLERANCE = {
    "float16": 2e-3,
    "bfloat16": 1.6e-2,
    "float32": 1e-5,
    "float64": 1e-13,
    "complex64": 1e-5,
    "complex128": 1e-13,
}


class Maker:
    """Arrays of one dtype. bfloat16 arrays are uint16 bits."""

    def __init__(self, lib: Library, rng: np.random.Generator, dtype: str) -> None:
        self.lib, self.rng, self.name = lib, rng, dtype
        self.bfloat16 = dtype == "bfloat16"
        self.dtype = np.dtype(np.uint16 if self.bfloat16 else dtype)
        self.exact = dtype in INTEGERS

    def random(self, shape: tuple[int, ...]) -> np.ndarray:
        if self.exact:
            info = np.iinfo(self.dtype)
            return self.rng.integers(info.min, info.max, shape, dtype=self.dtype, endpoint=True)
        values = self.rng.standard_normal(shape)
        if self.bfloat16:
            return to_bfloat16(values.astype(np.float32)).reshape(shape)
        if self.dtype.kind == "c":
            return (values + 1j * self.rng.standard_normal(shape)).astype(self.dtype)
        return values.astype(self.dtype)

    def laid_out(self, array: np.ndarray) -> np.ndarray:
        """The same values with permuted, stretched or negative strides."""
        nd = array.ndim
        order = list(range(nd))
        if self.rng.random() < 0.5:
            self.rng.shuffle(order)
        steps = self.rng.choice([1, 1, 1, 2, -1], nd)
        memory = np.zeros([array.shape[d] * abs(steps[d]) for d in order], array.dtype)
        view = memory.transpose([order.index(d) for d in range(nd)])
        view = view[tuple(slice(None, None, int(step)) for step in steps)]
        view[...] = array
        return view

    def blank(self, shape: tuple[int, ...]) -> np.ndarray:
        """An output filled with what must not survive."""
        out = self.laid_out(np.zeros(shape, self.dtype)) if self.rng.random() < 0.5 else np.zeros(shape, self.dtype)
        out[...] = 0x7FC0 if self.bfloat16 else 77 if self.exact else np.nan
        return out

    def maybe(self, array: np.ndarray) -> np.ndarray:
        return self.laid_out(array) if self.rng.random() < 0.5 else array

    def tensor(self, array: np.ndarray) -> Tensor:
        return self.lib.tensor(array, BFLOAT16 if self.bfloat16 else None)

    def wide(self, array: np.ndarray) -> np.ndarray:
        """float64, complex128, or int64 values."""
        if self.bfloat16:
            return from_bfloat16(np.ascontiguousarray(array)).astype(np.float64)
        return array.astype(np.int64 if self.exact else np.complex128 if self.dtype.kind == "c" else np.float64)

    def compare(self, got: np.ndarray, expected: np.ndarray, magnitude: Any, what: str) -> None:
        """magnitude: the sum of the terms' absolute values, for the error bound."""
        if self.exact:
            assert (got == expected.astype(self.dtype)).all(), what
            return
        error = np.abs(self.wide(got) - expected)
        bound = TOLERANCE[self.name] * (np.asarray(magnitude) + 1e-30)
        if self.name == "float16":
            bound = bound + 6e-8
        bad = ~(error <= bound)
        if bad.any():
            where = tuple(int(i) for i in np.argwhere(bad)[0])
            raise AssertionError(f"{what}: at {where} expected {expected[where]}, got {self.wide(got)[where]}")
