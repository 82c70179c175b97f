"""Comparisons and samples for tests."""

from __future__ import annotations

import cmath
import math
import numbers
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import rushlight

__all__ = ["assert_allclose", "assert_close", "make_tensor"]

# Relative and absolute tolerance by dtype; integers must be equal.
_TOLERANCES: dict[Any, tuple[float, float]] = {
    rushlight.float16: (1e-3, 1e-5),
    rushlight.bfloat16: (1.6e-2, 1e-5),
    rushlight.float32: (1.3e-6, 1e-5),
    rushlight.float64: (1e-7, 1e-7),
    rushlight.complex32: (1e-3, 1e-5),
    rushlight.complex64: (1.3e-6, 1e-5),
    rushlight.complex128: (1e-7, 1e-7),
}


def _tolerances(dtypes: Sequence[Any], rtol: float | None, atol: float | None) -> tuple[float, float]:
    if (rtol is None) != (atol is None):
        raise ValueError(
            f"assert_close: rtol and atol must either both be specified or both be unspecified; got rtol={rtol} and "
            f"atol={atol}"
        )
    if rtol is not None and atol is not None:
        return rtol, atol
    pairs = [_TOLERANCES.get(d, (0.0, 0.0)) for d in dtypes]
    return max(p[0] for p in pairs), max(p[1] for p in pairs)


class _Comparison:
    def __init__(self, options: dict[str, Any]) -> None:
        self.options = options

    def fail(self, text: str, path: str, error: type[Exception] = AssertionError) -> None:
        whole = f"{text}\n\nThe failure occurred for item {path}" if path else text
        message = self.options["msg"]
        if message is not None:
            whole = message(whole) if callable(message) else str(message)
        raise error(whole)

    def compare(self, actual: Any, expected: Any, path: str = "") -> None:
        if isinstance(actual, Mapping) and isinstance(expected, Mapping):
            missing, extra = set(expected) - set(actual), set(actual) - set(expected)
            if missing or extra:
                self.fail(
                    f"The keys of the mappings do not match; missing in actual: {sorted(missing, key=str)}, missing in "
                    f"expected: {sorted(extra, key=str)}",
                    path,
                )
            for key in expected:
                self.compare(actual[key], expected[key], f"{path}[{key!r}]")
        elif self.sequence(actual) and self.sequence(expected):
            if len(actual) != len(expected):
                self.fail(f"The length of the sequences mismatch: {len(actual)} != {len(expected)}", path)
            for i, (a, e) in enumerate(zip(actual, expected, strict=True)):
                self.compare(a, e, f"{path}[{i}]")
        elif actual is None or expected is None:
            if actual is not expected:
                self.fail(f"None mismatch: {actual} is not {expected}", path)
        elif isinstance(actual, bool) and isinstance(expected, bool):
            if actual is not expected:
                self.fail(f"Booleans mismatch: {actual} is not {expected}", path)
        elif isinstance(actual, numbers.Complex) and isinstance(expected, numbers.Complex):
            self.numbers(actual, expected, path)
        else:
            self.tensors(self.tensor(actual, expected, path), self.tensor(expected, actual, path), path)

    @staticmethod
    def sequence(value: Any) -> bool:
        return isinstance(value, Sequence) and not isinstance(value, (str, bytes))

    def tensor(self, value: Any, other: Any, path: str) -> Any:
        if not self.options["allow_subclasses"] and type(value) is not type(other):
            self.fail(
                f"assert_close: with allow_subclasses=False the types must be the same, got {type(value)} and "
                f"{type(other)}",
                path,
                TypeError,
            )
        related = isinstance(value, type(other)) or isinstance(other, type(value))
        if related and isinstance(value, rushlight.Tensor):
            return value
        if not related or isinstance(value, (str, Mapping)):
            self.fail(f"No comparison of {type(value).__name__} with {type(other).__name__}", path, TypeError)
        try:
            return rushlight.as_tensor(value)
        except Exception:
            self.fail(f"No comparison of {type(value).__name__} with {type(other).__name__}", path, TypeError)

    def numbers(self, actual: Any, expected: Any, path: str) -> None:
        if self.options["check_dtype"] and type(actual) is not type(expected):
            self.fail(f"The (d)types do not match: {type(actual)} != {type(expected)}", path)
        kinds = {bool: rushlight.bool, int: rushlight.int64, float: rushlight.float64, complex: rushlight.complex128}
        dtypes = [kinds.get(type(v), rushlight.float64) for v in (actual, expected)]
        rtol, atol = _tolerances(dtypes, self.options["rtol"], self.options["atol"])
        if self.options["equal_nan"] and cmath.isnan(actual) and cmath.isnan(expected):
            return
        if actual == expected:
            return
        off = abs(actual - expected)
        if math.isfinite(off) and off <= atol + rtol * abs(expected):
            return
        relative = off / abs(expected) if expected else math.inf
        self.fail(
            f"Scalars are not close!\n\nExpected {expected} but got {actual}.\n"
            f"Absolute difference: {off} (up to {atol} allowed)\n"
            f"Relative difference: {relative} (up to {rtol} allowed)",
            path,
        )

    def tensors(self, actual: Any, expected: Any, path: str) -> None:
        o = self.options
        if actual.shape != expected.shape:
            self.fail(
                f"The values for attribute 'shape' do not match: {tuple(actual.shape)} != {tuple(expected.shape)}.",
                path,
            )
        for name, wanted in (("device", "check_device"), ("dtype", "check_dtype"), ("layout", "check_layout")):
            if o[wanted] and getattr(actual, name) != getattr(expected, name):
                self.fail(
                    f"The values for attribute '{name}' do not match: {getattr(actual, name)} != "
                    f"{getattr(expected, name)}.",
                    path,
                )
        if o["check_stride"] and actual.stride() != expected.stride():
            self.fail(
                f"The values for attribute 'stride()' do not match: {actual.stride()} != {expected.stride()}.", path
            )
        if actual.is_meta:
            return
        rtol, atol = _tolerances([actual.dtype, expected.dtype], o["rtol"], o["atol"])
        with rushlight.no_grad():
            kind = rushlight.promote_types(actual.dtype, expected.dtype)
            a, e = actual.detach().to(kind), expected.detach().to(kind)
            close = rushlight.isclose(a, e, rtol=rtol, atol=atol, equal_nan=o["equal_nan"])
            if bool(close.all()):
                return
            self.fail(self.mismatch(a, e, close, rtol, atol), path)

    @staticmethod
    def mismatch(a: Any, e: Any, close: Any, rtol: float, atol: float) -> str:
        exact = rtol == 0 and atol == 0
        word = "Tensor-likes" if a.dim() else "Scalars"
        lines = [f"{word} are not {'equal' if exact else 'close'}!", ""]
        wide = rushlight.complex128 if a.is_complex() else rushlight.float64
        off = (a.to(wide) - e.to(wide)).abs()
        relative = off / e.to(wide).abs()
        off[close], relative[close] = 0, 0
        if a.dim() == 0:
            lines.append(f"Expected {e.item()} but got {a.item()}.")
        else:
            wrong = int((~close).sum())
            lines.append(f"Mismatched elements: {wrong} / {a.numel()} ({100 * wrong / a.numel():.1f}%)")
        for name, values, bound in (("absolute", off, atol), ("relative", relative, rtol)):
            flat = int(rushlight.where(values.isnan(), math.inf, values).argmax())
            index, rest = [], flat
            for n in reversed(a.shape):
                index.append(rest % n)
                rest //= n
            where = f" at index {tuple(reversed(index))}" if a.dim() else ""
            allowed = "" if exact else f" (up to {bound} allowed)"
            lines.append(f"Greatest {name} difference: {values.reshape(-1)[flat].item()}{where}{allowed}")
        return "\n".join(lines)


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Asserts that |actual - expected| <= atol + rtol |expected| everywhere, and that shapes and dtypes are the same.

    Tensors, numbers, None and whatever makes a tensor are compared, and mappings and sequences of these item by item.
    Without tolerances those of the dtype hold: (1.3e-6, 1e-5) for float32, none for integers.

    Raises:
        AssertionError: something differs; the text says where, and by how much.
        TypeError: two values that cannot be compared.
        ValueError: only one of rtol and atol is given.

    Example::

        >>> import rushlight
        >>> rushlight.testing.assert_close(rushlight.tensor([1.0, 2.0]), rushlight.tensor([1.0, 2.0000001]))
    """
    _tolerances([rushlight.float32], rtol, atol)
    _Comparison(
        {
            "allow_subclasses": allow_subclasses,
            "rtol": rtol,
            "atol": atol,
            "equal_nan": equal_nan,
            "check_device": check_device,
            "check_dtype": check_dtype,
            "check_layout": check_layout,
            "check_stride": check_stride,
            "msg": msg,
        }
    ).compare(actual, expected)


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """assert_close that asks for values only, not for dtypes or devices."""
    if not isinstance(actual, rushlight.Tensor):
        actual = rushlight.tensor(actual)
    if not isinstance(expected, rushlight.Tensor):
        expected = rushlight.tensor(expected, dtype=actual.dtype)
    if rtol is None and atol is None:
        rtol, atol = _tolerances([actual.dtype, expected.dtype], None, None)
    assert_close(
        actual,
        expected,
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        check_device=True,
        check_dtype=False,
        check_stride=False,
        msg=msg or None,
    )


def make_tensor(
    *shape: Any,
    dtype: Any,
    device: Any,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> rushlight.Tensor:
    """A tensor of random values, uniform over [low, high).

    Without bounds: [-9, 9) for floating and complex dtypes and [-9, 10) for signed integers, [0, 10) for uint8, and
    both values of bool. `exclude_zero` puts the smallest positive number, or 1, where 0 was drawn; `noncontiguous`
    takes every other element of a larger tensor.

    Raises:
        ValueError: bounds without a value between them, or requires_grad of an integer dtype.
    """
    sizes = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], (Sequence, rushlight.Size)) else tuple(shape)
    if noncontiguous and memory_format is not None:
        raise ValueError("make_tensor: noncontiguous and memory_format exclude one another")
    if low is not None and high is not None and low > high:
        raise ValueError(f"make_tensor: low must be less than or equal to high, got {low} and {high}")
    if requires_grad and not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(f"make_tensor: requires_grad needs a floating point or complex dtype, got {dtype}")
    count = [*sizes[:-1], 2 * sizes[-1]] if noncontiguous and sizes else list(sizes)
    if dtype == rushlight.bool:
        ends: tuple[float, float] = (0, 2)
    elif dtype == rushlight.uint8:
        ends = (0, 10)
    elif dtype.is_floating_point or dtype.is_complex:
        ends = (-9, 9)
    else:
        ends = (-9, 10)
    first, last = ends[0] if low is None else low, ends[1] if high is None else high
    if first != first or last != last:
        raise ValueError("make_tensor: low and high must not be NaN")
    if dtype.is_floating_point or dtype.is_complex:
        limit = rushlight.finfo(dtype).max
        first, last = max(first, -limit), min(last, limit)
        made = rushlight.empty(count, dtype=dtype, device=device)
        real = rushlight.view_as_real(made) if dtype.is_complex else made
        real.uniform_(first, last) if first < last else real.fill_(first)
    else:
        a, b = math.ceil(first), math.ceil(last)
        if dtype == rushlight.bool:
            a, b = max(a, 0), min(b, 2)
        else:
            info = rushlight.iinfo(dtype)
            a, b = max(a, info.min), min(b, info.max + (dtype != rushlight.int64))
        if a >= b:
            if low is None or high is None or low != high:
                raise ValueError(f"make_tensor: no value of {dtype} lies in [{first}, {last})")
            b = a + 1
        made = rushlight.randint(a, b, count, dtype=dtype, device=device)
    if noncontiguous and sizes:
        made = made[..., ::2]
    if memory_format is not None:
        made = made.clone(memory_format=memory_format)
    if exclude_zero:
        least = rushlight.finfo(dtype).tiny if dtype.is_floating_point or dtype.is_complex else 1
        made[made == 0] = least
    return made.requires_grad_() if requires_grad else made
