"""Kinds of dtypes, and Python numbers beside arrays."""

from __future__ import annotations

from typing import Any

import rushlight as _rl

_INDEX = _rl.int64


def _kind_of(dtype: Any) -> str:
    if dtype == _rl.bool:
        return "bool"
    if dtype.is_complex:
        return "complex floating"
    if dtype.is_floating_point:
        return "real floating"
    return "signed integer" if dtype.is_signed else "unsigned integer"


_GROUPS = {
    "integral": ("signed integer", "unsigned integer"),
    "numeric": ("signed integer", "unsigned integer", "real floating", "complex floating"),
}
_KINDS = ("bool", "signed integer", "unsigned integer", "real floating", "complex floating")


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a dtype is another, of a kind ("bool", "signed integer", "integral", ...), or one of a tuple of these."""
    if not isinstance(dtype, _rl.dtype):
        raise TypeError(f"isdtype: dtype; expected a dtype, got {dtype!r}")
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    if isinstance(kind, str):
        if kind not in _KINDS and kind not in _GROUPS:
            raise ValueError(f"isdtype: kind; expected one of {', '.join((*_KINDS, *_GROUPS))}, got {kind!r}")
        return _kind_of(dtype) in _GROUPS.get(kind, (kind,))
    if isinstance(kind, _rl.dtype):
        return bool(dtype == kind)
    raise TypeError(f"isdtype: kind; expected a dtype, a string or a tuple of these, got {type(kind).__name__}")


def _is_number(value: Any) -> bool:
    return isinstance(value, (bool, int, float, complex)) and not isinstance(value, _rl.Tensor)


def _numbers_to_tensors(name: str, x1: Any, x2: Any) -> tuple[Any, Any]:
    """A Python number becomes an array of the other operand's dtype, or of the dtype its kind leads to."""
    if _is_number(x1) and _is_number(x2):
        raise TypeError(f"{name}: expected at least one array, got two Python numbers")

    def convert(number: Any, array: Any) -> Any:
        return _rl.tensor(number, dtype=_rl.result_type(_rl.empty(0, dtype=array.dtype), number), device=array.device)

    if _is_number(x1):
        return convert(x1, x2), x2
    if _is_number(x2):
        return x1, convert(x2, x1)
    return x1, x2


def _sum_dtype(dtype: Any) -> Any:
    """What sums and products of a dtype are computed in."""
    return dtype if dtype.is_floating_point or dtype.is_complex else _rl.int64
