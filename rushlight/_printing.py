"""repr of tensors, in PyTorch's layout. Only elements that are shown are read."""

from __future__ import annotations

import math
from typing import Any

from ._C import Tensor


class Options:
    """What set_printoptions sets."""

    precision = 4
    threshold = 1000
    edgeitems = 3
    linewidth = 80
    sci_mode: bool | None = None


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """How tensors are printed.

    Args:
        precision: digits after the point (4).
        threshold: above this many elements only the edges are shown (1000).
        edgeitems: how many at each edge of a dimension (3).
        linewidth: characters of a line (80).
        profile: "default", "short" or "full"; the other arguments override it.
        sci_mode: scientific notation always (True), never (False) or as needed (None).
    """
    if profile is not None:
        profiles: dict[str, tuple[int, float, int, int]] = {
            "default": (4, 1000, 3, 80),
            "short": (2, 1000, 2, 80),
            "full": (4, math.inf, 3, 80),
        }
        if profile not in profiles:
            raise ValueError(f"set_printoptions: unknown profile {profile!r}; expected default, short or full")
        Options.precision, threshold_value, Options.edgeitems, Options.linewidth = profiles[profile]
        Options.threshold = threshold_value  # type: ignore[assignment]
    for name, value in (
        ("precision", precision),
        ("threshold", threshold),
        ("edgeitems", edgeitems),
        ("linewidth", linewidth),
    ):
        if value is not None:
            setattr(Options, name, value)
    Options.sci_mode = sci_mode


class _Formatter:
    """One format for all shown numbers of a tensor."""

    def __init__(self, numbers: list[Any], floating: bool) -> None:
        self.floating = floating
        self.integral = True
        self.scientific = False
        self.width = 1
        if not floating:
            self.width = max((len(str(v)) for v in numbers), default=1)
            return
        finite = [abs(v) for v in numbers if math.isfinite(v) and v != 0]
        if not finite:
            return
        self.integral = all(v == math.ceil(v) for v in finite)
        low, high = min(finite), max(finite)
        if self.integral:
            self.scientific = high / low > 1000.0 or high > 1.0e8
        else:
            self.scientific = high / low > 1000.0 or high > 1.0e8 or low < 1.0e-4
        if self.integral and not self.scientific:
            pass
        if self.integral:
            # whole numbers only need the exponent form when they are huge or spread widely
            self.scientific = self.scientific and (high / low > 1000.0 or high > 1.0e8)
        if Options.sci_mode is not None:
            self.scientific = Options.sci_mode
        # zeros, infinities and NaN do not widen the columns
        self.width = max(len(self.text(v, pad=False)) for v in numbers if math.isfinite(v) and v != 0)

    def text(self, value: Any, pad: bool = True) -> str:
        if not self.floating or not math.isfinite(value):
            s = str(value)
        elif self.scientific:
            s = f"{value:.{Options.precision}e}"
        elif self.integral:
            s = f"{value:.0f}."
        else:
            s = f"{value:.{Options.precision}f}"
        return s.rjust(self.width) if pad else s


class _ComplexFormatter:
    def __init__(self, numbers: list[complex]) -> None:
        self.real = _Formatter([v.real for v in numbers], True)
        self.imag = _Formatter([v.imag for v in numbers], True)
        self.width = self.real.width + self.imag.width + 1

    def text(self, value: complex) -> str:
        imaginary = self.imag.text(value.imag).lstrip()
        if imaginary[0] not in "+-":
            imaginary = "+" + imaginary
        return self.real.text(value.real) + imaginary + "j"


def _edges(tensor: Tensor) -> Tensor:
    """The shown part of a large tensor, as one small tensor."""
    import rushlight

    k = Options.edgeitems
    for d in range(tensor.dim()):
        if tensor.size(d) > 2 * k:
            tensor = rushlight.cat([tensor.narrow(d, 0, k), tensor.narrow(d, tensor.size(d) - k, k)], d)
    return tensor


def _flat(values: Any) -> list[Any]:
    if not isinstance(values, list):
        return [values]
    return [x for v in values for x in _flat(v)]


def _rows(values: Any, shape: tuple[int, ...], indent: int, formatter: Any, summarize: bool) -> str:
    """Nested brackets; `values` has only the shown elements of a tensor of this shape."""
    if not shape:
        return str(formatter.text(values))
    k = Options.edgeitems
    cut = summarize and shape[0] > 2 * k
    if len(shape) == 1:
        per_line = max(1, (Options.linewidth - indent) // (formatter.width + 2))
        items = [formatter.text(v) for v in values]
        if cut:
            items = [*items[:k], " ...", *items[k:]]
        lines = [", ".join(items[i : i + per_line]) for i in range(0, len(items), per_line)]
        return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"
    parts = [_rows(v, shape[1:], indent + 1, formatter, summarize) for v in values]
    if cut:
        parts = [*parts[:k], "...", *parts[k:]]
    return "[" + ("," + "\n" * (len(shape) - 1) + " " * (indent + 1)).join(parts) + "]"


def tensor_text(tensor: Tensor, name: str = "tensor") -> str:
    """The repr of a tensor."""
    import rushlight

    data = tensor.detach()
    suffixes: list[str] = []
    dtype = tensor.dtype
    default = rushlight.get_default_dtype()  # type: ignore[misc]
    shown_by_digits = dtype in (default, rushlight.int64, rushlight.bool) or (
        dtype.is_complex and dtype == default.to_complex()
    )
    if tensor.is_meta:
        suffixes += ["device='meta'", f"size={tuple(tensor.shape)}"]
        if dtype != default:
            suffixes.append(f"dtype={dtype}")
        body = "..."
    else:
        if tensor.numel() == 0:
            body = "[]"
            if tensor.dim() != 1:
                suffixes.append(f"size={tuple(tensor.shape)}")
            if dtype != default:
                suffixes.append(f"dtype={dtype}")
        else:
            if not shown_by_digits:
                suffixes.append(f"dtype={dtype}")
            summarize = tensor.numel() > Options.threshold
            values = (_edges(data) if summarize else data).tolist()
            numbers = _flat(values)
            formatter: Any = (
                _ComplexFormatter(numbers) if dtype.is_complex else _Formatter(numbers, dtype.is_floating_point)
            )
            body = _rows(values, tuple(tensor.shape), len(name) + 1, formatter, summarize)
    if tensor.grad_fn is not None:
        suffixes.append(f"grad_fn=<{type(tensor.grad_fn).__name__}>")
    elif tensor.requires_grad:
        suffixes.append("requires_grad=True")
    text = f"{name}({body}"
    column = len(text) - text.rfind("\n") - 1
    for suffix in suffixes:
        if column + len(suffix) + 2 > Options.linewidth:
            text += ",\n" + " " * (len(name) + 1) + suffix
            column = len(name) + 1 + len(suffix)
        else:
            text += ", " + suffix
            column += len(suffix) + 2
    return text + ")"
