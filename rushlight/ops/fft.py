"""Discrete Fourier transforms: three linear maps, and the functions of rushlight.fft made of them.

X[k] = sum over j of x[j] exp(-2 pi i j k / n). ``norm`` says which direction divides by n: "backward" (the default) the
inverse one, "forward" the other, "ortho" both by sqrt(n). Integers become the default float dtype, real numbers complex
ones; float16 and bfloat16 are refused. A size ``n`` (or ``s``, one per dim) cuts the input off or pads it with zeros.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ._record import composite, native, rl

native(
    "_fft_complex(Tensor self, int[] dims, float scale, bool inverse) -> Tensor",
    out=False,
    derivative={"self": lambda grad, dims, scale, inverse: rl._fft_complex(grad, dims, scale, not inverse)},
    doc="scale times the transform of complex numbers over dims.",
)
native(
    "_fft_real(Tensor self, float scale) -> Tensor",
    out=False,
    derivative={
        "self": lambda grad, self_shape, scale: rl._fft_to_real(
            _weigh(grad, self_shape[-1], 0.5), self_shape[-1], scale
        )
    },
    doc="scale times the transform of real numbers over the last dim: the n // 2 + 1 values that are no mirror images.",
)
native(
    "_fft_to_real(Tensor self, int n, float scale) -> Tensor",
    out=False,
    derivative={"self": lambda grad, n, scale: _weigh(rl._fft_real(grad, scale), n, 2.0)},
    doc="scale times the inverse transform over the last dim, of the half that determines n real numbers.",
)


def _weigh(x: Any, n: int, weight: float) -> Any:
    """Half a transform, times weight where it stands for its mirror image too."""
    inner = x.size(-1) - (2 - n % 2)
    if inner <= 0:
        return x
    parts = [x[..., :1], x[..., 1 : 1 + inner] * weight]
    if n % 2 == 0:
        parts.append(x[..., -1:])
    return rl.cat(parts, -1)


# ---------------------------------------------------------------- arguments


def _scale(op: str, norm: str | None, inverse: bool, count: int) -> float:
    if norm is None or norm == "backward":
        divides = inverse
    elif norm == "forward":
        divides = not inverse
    elif norm == "ortho":
        return 1 / math.sqrt(count) if count else 1.0
    else:
        raise RuntimeError(
            f"fft.{op}: invalid normalization mode; expected 'backward', 'forward' or 'ortho', got {norm!r}"
        )
    return 1 / count if divides and count else 1.0


def _to_float(op: str, x: Any, real: bool) -> Any:
    """The input as floats: complex ones, or real ones when `real`."""
    if real and x.is_complex():
        raise RuntimeError(f"fft.{op}: expects a real input tensor, got {x.dtype}")
    if x.is_complex():
        return x
    if x.is_floating_point():
        if x.dtype not in (rl.float32, rl.float64):
            raise RuntimeError(f"fft.{op}: unsupported dtype; expected float32 or float64, got {x.dtype}")
    else:
        x = x.to(rl.get_default_dtype())
    return x if real else x.to(rl.complex128 if x.dtype == rl.float64 else rl.complex64)


def _wrap(op: str, x: Any, dim: int) -> int:
    ndim = x.dim()
    if ndim == 0:
        raise IndexError(f"fft.{op}: dimension specified as {dim} but the tensor has no dimensions")
    if not -ndim <= dim < ndim:
        raise IndexError(f"fft.{op}: dim is out of range; expected {-ndim} to {ndim - 1}, got {dim}")
    return dim % ndim


def _axes(op: str, x: Any, s: Sequence[int] | None, dim: Sequence[int] | None) -> tuple[list[int], list[int]]:
    """Sizes to transform and the dims they are of."""
    if dim is not None:
        dims = [_wrap(op, x, d) for d in dim]
        if len(set(dims)) != len(dims):
            raise RuntimeError(f"fft.{op}: FFT dims must be unique; got {tuple(dim)}")
        if s is not None and len(s) != len(dims):
            raise RuntimeError(
                f"fft.{op}: when given, dim and shape arguments must have the same length; got {len(dims)} and {len(s)}"
            )
    elif s is not None:
        if len(s) > x.dim():
            raise RuntimeError(
                f"fft.{op}: got shape with {len(s)} values but input tensor only has {x.dim()} dimensions"
            )
        dims = list(range(x.dim() - len(s), x.dim()))
    else:
        dims = list(range(x.dim()))
    sizes = [x.size(d) if s is None or s[i] == -1 else s[i] for i, d in enumerate(dims)]
    for size in sizes:
        if size < 1:
            raise RuntimeError(f"fft.{op}: invalid number of data points ({size}) specified; expected at least 1")
    return sizes, dims


def _resize(x: Any, sizes: Sequence[int], dims: Sequence[int]) -> Any:
    for size, d in zip(sizes, dims, strict=True):
        have = x.size(d)
        if have > size:
            x = x.narrow(d, 0, size)
        elif have < size:
            shape = list(x.shape)
            shape[d] = size - have
            x = rl.cat([x, x.new_zeros(shape)], d)
    return x


def _complex(op: str, x: Any, s: Any, dim: Any, norm: str | None, inverse: bool) -> Any:
    x = _to_float(op, x, False)
    sizes, dims = _axes(op, x, s, dim)
    if s is not None:
        x = _resize(x, sizes, dims)
    return rl._fft_complex(x, dims, _scale(op, norm, inverse, math.prod(sizes)), inverse)


def _at_end(x: Any, d: int, map: Any) -> Any:
    """map, which works on the last dim, on dim d."""
    return map(x) if d == x.dim() - 1 else map(x.movedim(d, -1)).movedim(-1, d)


def _from_real(op: str, x: Any, s: Any, dim: Any, norm: str | None, inverse: bool) -> Any:
    """The transform of real numbers: halved over the last of dims, complete over the others; or its conjugate."""
    x = _to_float(op, x, True)
    sizes, dims = _axes(op, x, s, dim)
    if not dims:
        raise RuntimeError(f"fft.{op}: must transform at least one axis")
    if s is not None:
        x = _resize(x, sizes, dims)
    scale = _scale(op, norm, inverse, math.prod(sizes))
    y = _at_end(x, dims[-1], lambda t: rl._fft_real(t, scale))
    if inverse:
        y = y.conj()
    return rl._fft_complex(y, dims[:-1], 1.0, inverse) if len(dims) > 1 else y


def _to_real(op: str, x: Any, s: Any, dim: Any, norm: str | None, inverse: bool) -> Any:
    """Real numbers from half of their transform; or, when not inverse, from half of their inverse transform."""
    x = _to_float(op, x, False)
    sizes, dims = _axes(op, x, s, dim)
    if not dims:
        raise RuntimeError(f"fft.{op}: must transform at least one axis")
    if s is None or s[-1] == -1:
        sizes[-1] = 2 * (x.size(dims[-1]) - 1)
        if sizes[-1] < 1:
            raise RuntimeError(f"fft.{op}: invalid number of data points ({sizes[-1]}) specified; expected at least 1")
    n = sizes[-1]
    x = _resize(x, [*sizes[:-1], n // 2 + 1], dims)
    if len(dims) > 1:
        x = rl._fft_complex(x, dims[:-1], 1.0, inverse)
    if not inverse:
        x = x.conj()
    scale = _scale(op, norm, inverse, math.prod(sizes))
    return _at_end(x, dims[-1], lambda t: rl._fft_to_real(t, n, scale))


# ---------------------------------------------------------------- the functions

_KINDS = {"": (_complex, ""), "r": (_from_real, "Of real numbers: half of the result, whose other half mirrors it."),
          "ir": (_to_real, "The result is real; the input is half of a transform, of 2 (m - 1) numbers by default."),
          "h": (_to_real, "Of the half of a Hermitian signal; the result is real."),
          "ih": (_from_real, "Of a real signal; the result is half of a Hermitian one.")}  # fmt: skip


def _define(prefix: str, run: Any, note: str, inverse: bool) -> None:
    name = f"{prefix}fft"
    word = "inverse transform" if inverse else "transform"

    def one(self: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Any:
        return run(name, self, None if n is None else (n,), (dim,), norm, inverse)

    def two(self: Any, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Any:
        return run(f"{name}2", self, s, dim, norm, inverse)

    def several(self: Any, s: Any = None, dim: Any = None, norm: str | None = None) -> Any:
        return run(f"{name}n", self, s, dim, norm, inverse)

    fields: dict[str, Any] = {"method": False, "out": True}
    for suffix, arguments, body, dims in (
        ("", "int? n=None, int dim=-1", one, "one dim"),
        ("2", "int[1]? s=None, int[1] dim=[-2,-1]", two, "two dims"),
        ("n", "int[1]? s=None, int[1]? dim=None", several, "several dims, all by default"),
    ):
        composite(
            f"fft_{name}{suffix}(Tensor self, {arguments}, str? norm=None) -> Tensor",
            public=f"fft.{name}{suffix}",
            doc=f"The {word} over {dims}. {note}".rstrip(),
            **fields,
        )(body)


for _prefix, _run, _inverse in (
    ("", "", False),
    ("i", "", True),
    ("r", "r", False),
    ("ir", "ir", True),
    ("h", "h", False),
    ("ih", "ih", True),
):
    _define(_prefix, *_KINDS[_run], _inverse)


def _shift(x: Any, dim: Any, back: bool) -> Any:
    dims = list(range(x.dim())) if dim is None else list(dim)
    return x.roll([-(x.size(d) // 2) if back else x.size(d) // 2 for d in dims], dims) if dims else x.clone()


@composite("fft_fftshift(Tensor self, int[1]? dim=None) -> Tensor", public="fft.fftshift", method=False)
def _fftshift(self: Any, dim: Any = None) -> Any:
    """The frequency 0 moved from the front to the middle, over dims (all by default)."""
    return _shift(self, dim, False)


@composite("fft_ifftshift(Tensor self, int[1]? dim=None) -> Tensor", public="fft.ifftshift", method=False)
def _ifftshift(self: Any, dim: Any = None) -> Any:
    """The inverse of fftshift."""
    return _shift(self, dim, True)


_OPTIONS = (
    "*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, "
    "bool requires_grad=False"
)


def _frequencies(op: str, k: Any, n: int, d: float, requires_grad: bool) -> Any:
    result = k * (1 / (n * d))
    return result.requires_grad_() if requires_grad else result


def _frequency_dtype(op: str, n: int, dtype: Any) -> Any:
    dtype = rl.get_default_dtype() if dtype is None else dtype
    if not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(f"fft.{op}: dtype; expected a floating point or complex dtype, got {dtype}")
    if n < 1:
        raise RuntimeError(f"fft.{op}: n; expected at least 1, got {n}")
    return dtype


@composite(f"fft_fftfreq(int n, float d=1.0, {_OPTIONS}) -> Tensor", public="fft.fftfreq", method=False, out=True)
def _fftfreq(
    n: int,
    d: float = 1.0,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin: Any = None,
    grad: bool = False,
) -> Any:
    """The frequencies of fft's result, for samples d apart: 0, 1, ..., -2, -1 over n d."""
    dtype = _frequency_dtype("fftfreq", n, dtype)
    k = rl.arange(n, dtype=dtype, device=device)
    return _frequencies("fftfreq", rl.where(rl.arange(n, device=device) < (n + 1) // 2, k, k - n), n, d, grad)


@composite(f"fft_rfftfreq(int n, float d=1.0, {_OPTIONS}) -> Tensor", public="fft.rfftfreq", method=False, out=True)
def _rfftfreq(
    n: int,
    d: float = 1.0,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin: Any = None,
    grad: bool = False,
) -> Any:
    """The frequencies of rfft's result, for samples d apart: 0, 1, ..., n // 2 over n d."""
    dtype = _frequency_dtype("rfftfreq", n, dtype)
    return _frequencies("rfftfreq", rl.arange(n // 2 + 1, dtype=dtype, device=device), n, d, grad)
