"""The CPU's kernels."""

from __future__ import annotations

from rushlight import _C

_NAMES = {"x86-64-v2": "DEFAULT", "avx2": "AVX2", "avx512": "AVX512", "amx": "AVX512"}


def get_cpu_capability() -> str:
    """The instruction set in use: "DEFAULT", "AVX2" or "AVX512"."""
    level = str(_C._cpu_level())
    return _NAMES.get(level, level.upper())
