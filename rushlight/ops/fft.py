"""Discrete Fourier transforms: three linear maps, and the functions of rushlight.fft made of them.

X[k] = sum over j of x[j] exp(-2 pi i j k / n). ``norm`` says which direction divides by n: "backward" (the default) the
inverse one, "forward" the other, "ortho" both by sqrt(n). Integers become the default float dtype, real numbers complex
ones; float16 and bfloat16 are refused. A size ``n`` (or ``s``, one per dim) cuts the input off or pads it with zeros.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from ._record import composite, native, rl

native(
    "_fft_complex(Tensor self, int[] dims, float scale, bool inverse) -> Tensor",
    out=False,
    derivative={"self": lambda grad, dims, scale, inverse: rl._fft_complex(grad, dims, scale, not inverse)},
    doc="scale times the transform of complex numbers over dims.",
)
native(
    "_fft_real(Tensor self, int[] dims, float scale) -> Tensor",
    out=False,
    derivative={
        "self": lambda grad, self_shape, dims, scale: rl._fft_to_real(
            _weigh(grad, dims[-1], self_shape[dims[-1]], 0.5), dims, self_shape[dims[-1]], scale
        )
    },
    doc="scale times the transform of real numbers over dims: n // 2 + 1 values, no mirror images, in the last one.",
)
native(
    "_fft_to_real(Tensor self, int[] dims, int n, float scale) -> Tensor",
    out=False,
    derivative={"self": lambda grad, dims, n, scale: _weigh(rl._fft_real(grad, dims, scale), dims[-1], n, 2.0)},
    doc="scale times the inverse transform over dims, of the half in the last of them that determines n real numbers.",
)


def _weigh(x: Any, dim: int, n: int, weight: float) -> Any:
    """Half a transform along dim, times weight where it stands for its mirror image too."""
    inner = x.size(dim) - (2 - n % 2)
    if inner <= 0:
        return x
    parts = [x.narrow(dim, 0, 1), x.narrow(dim, 1, inner) * weight]
    if n % 2 == 0:
        parts.append(x.narrow(dim, 1 + inner, 1))
    return rl.cat(parts, dim)


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
    if dim is not None and len(dim) == 1 and (s is None or len(s) == 1):
        d = dim[0]  # the usual call takes the least time
        shape = x.shape
        if not -len(shape) <= d < len(shape):
            _wrap(op, x, d)
        size = shape[d] if s is None or s[0] == -1 else s[0]
        if size < 1:
            raise RuntimeError(f"fft.{op}: invalid number of data points ({size}) specified; expected at least 1")
        return [size], [d % len(shape)]
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
    shape = x.shape
    for size, d in zip(sizes, dims, strict=True):
        have = shape[d]
        if have > size:
            x = x.narrow(d, 0, size)
        elif have < size:
            missing = list(x.shape)
            missing[d] = size - have
            x = rl.cat([x, x.new_zeros(missing)], d)
    return x


def _complex(op: str, x: Any, s: Any, dim: Any, norm: str | None, inverse: bool) -> Any:
    x = _to_float(op, x, False)
    sizes, dims = _axes(op, x, s, dim)
    if s is not None:
        x = _resize(x, sizes, dims)
    return rl._fft_complex(x, dims, _scale(op, norm, inverse, math.prod(sizes)), inverse)


def _from_real(op: str, x: Any, s: Any, dim: Any, norm: str | None, inverse: bool) -> Any:
    """The transform of real numbers: halved over the last of dims, complete over the others; or its conjugate."""
    x = _to_float(op, x, True)
    sizes, dims = _axes(op, x, s, dim)
    if not dims:
        raise RuntimeError(f"fft.{op}: must transform at least one axis")
    if s is not None:
        x = _resize(x, sizes, dims)
    scale = _scale(op, norm, inverse, math.prod(sizes))
    if not inverse:
        return rl._fft_real(x, dims, scale)
    y = rl._fft_real(x, dims[-1:], scale).conj()
    return rl._fft_complex(y, dims[:-1], 1.0, True) if len(dims) > 1 else y


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
    if s is not None:
        x = _resize(x, [*sizes[:-1], n // 2 + 1], dims)
    if not inverse:
        x = x.conj()
    return rl._fft_to_real(x, dims, n, _scale(op, norm, inverse, math.prod(sizes)))


# ---------------------------------------------------------------- the functions

_FORWARD = "X[k] = sum over j of x[j] exp(-2 pi i j k / n)"
_INVERSE = "x[j] = (sum over k of X[k] exp(2 pi i j k / n)) / n"


class _Kind(NamedTuple):
    """One of the six transforms; `example` and `example2` are an argument and the result, over one dim and over two."""

    run: Any
    inverse: bool
    sentence: str
    formula: str
    note: str
    sizes: str
    example: tuple[str, str]
    example2: tuple[str, str]


_SAME = "the result has the shape of self, with the sizes given"
_HALF = "the last of the dims, of n numbers, becomes n // 2 + 1"
_WHOLE = "the last of the dims, of m numbers, becomes n, which is 2 (m - 1) by default"
_REAL = "Takes real numbers alone; the other half of the result mirrors this one and is left out."
_SQUARE = "torch.tensor([[1.0, 2.0], [3.0, 4.0]])"
_SPECTRUM = "torch.tensor([[10, -2], [-4, 0]])"
_KINDS = {
    "": _Kind(
        _complex,
        False,
        "The discrete Fourier transform",
        _FORWARD,
        "The result is complex, also of real numbers, of which rfft is faster (Cooley and Tukey, 1965).",
        _SAME,
        ("torch.tensor([1.0, 2.0, 0.0, 0.0])", "tensor([ 3.+0.j,  1.-2.j, -1.+0.j,  1.+2.j])"),
        (_SQUARE, "tensor([[10.+0.j, -2.+0.j],\n        [-4.+0.j,  0.+0.j]])"),
    ),
    "i": _Kind(
        _complex,
        True,
        "The inverse discrete Fourier transform",
        _INVERSE,
        "The result is complex.",
        _SAME,
        ("torch.tensor([3, 1 - 2j, -1, 1 + 2j])", "tensor([1.+0.j, 2.+0.j, 0.+0.j, 0.+0.j])"),
        (_SPECTRUM, "tensor([[1.+0.j, 2.+0.j],\n        [3.+0.j, 4.+0.j]])"),
    ),
    "r": _Kind(
        _from_real,
        False,
        "The discrete Fourier transform of real numbers",
        _FORWARD + ", 0 <= k <= n // 2 in the last of the dims",
        _REAL,
        _HALF,
        ("torch.tensor([1.0, 2.0, 0.0, 0.0])", "tensor([ 3.+0.j,  1.-2.j, -1.+0.j])"),
        (_SQUARE, "tensor([[10.+0.j, -2.+0.j],\n        [-4.+0.j,  0.+0.j]])"),
    ),
    "ir": _Kind(
        _to_real,
        True,
        "Real numbers from the half of their discrete Fourier transform that rfft gives, and its inverse,",
        _INVERSE + ", where X[n - k] = conj(X[k])",
        "Whether n was even or odd is not seen in self, so the size is to be given to get an odd one back.",
        _WHOLE,
        ("torch.tensor([3, 1 - 2j, -1])", "tensor([1., 2., 0., 0.])"),
        (_SPECTRUM, "tensor([[1., 2.],\n        [3., 4.]])"),
    ),
    "h": _Kind(
        _to_real,
        False,
        "The real discrete Fourier transform of a Hermitian signal, given by its half,",
        _FORWARD + ", where x[n - j] = conj(x[j])",
        "Whether n was even or odd is not seen in self, so the size is to be given to get an odd one.",
        _WHOLE,
        ("torch.tensor([1, 2j, 3])", "tensor([ 4.,  2.,  4., -6.])"),
        (_SQUARE, "tensor([[10., -2.],\n        [-4.,  0.]])"),
    ),
    "ih": _Kind(
        _from_real,
        True,
        "Half of the inverse discrete Fourier transform of real numbers, which is Hermitian,",
        _INVERSE + ", 0 <= j <= n // 2 in the last of the dims",
        _REAL,
        _HALF,
        ("torch.tensor([4.0, 2.0, 4.0, -6.0])", "tensor([1.-0.j, 0.+2.j, 3.-0.j])"),
        (_SPECTRUM, "tensor([[1.-0.j, 2.-0.j],\n        [3.+0.j, 4.+0.j]])"),
    ),
}


def _define(prefix: str, kind: _Kind) -> None:
    name = f"{prefix}fft"
    run, inverse = kind.run, kind.inverse

    def one(self: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Any:
        return run(name, self, None if n is None else (n,), (dim,), norm, inverse)

    def two(self: Any, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Any:
        return run(f"{name}2", self, s, dim, norm, inverse)

    def several(self: Any, s: Any = None, dim: Any = None, norm: str | None = None) -> Any:
        return run(f"{name}n", self, s, dim, norm, inverse)

    fields: dict[str, Any] = {"method": False, "out": True}
    for suffix, arguments, body, dims, size in (
        ("", "int? n=None, int dim=-1", one, "one dim", "n"),
        (
            "2",
            "int[1]? s=None, int[1] dim=[-2,-1]",
            two,
            "two dims",
            "s, one size per dim (-1 keeps it),",
        ),
        (
            "n",
            "int[1]? s=None, int[1]? dim=None",
            several,
            "several dims, by default all, or as many of the last as s has sizes",
            "s, one size per dim (-1 keeps it),",
        ),
    ):
        argument, result = kind.example2 if suffix else kind.example
        composite(
            f"fft_{name}{suffix}(Tensor self, {arguments}, str? norm=None) -> Tensor",
            public=f"fft.{name}{suffix}",
            formula=kind.formula,
            doc=f"""{kind.sentence} over {dims}.

{kind.note} {size} cuts self off at the end or pads it with zeros.
norm says which direction divides by the number of elements: "backward" (the default) the inverse one, "forward" the
other, "ortho" both by its square root. Integers become the default float dtype. RuntimeError for float16, bfloat16, a
size below 1, a dim given twice or another norm; IndexError for a dim that self does not have.

Shapes: self (*) of any number of dimensions from 1; {kind.sizes}.

>>> torch.fft.{name}{suffix}({argument})
{result}
""",
            **fields,
        )(body)


for _prefix, _kind in _KINDS.items():
    _define(_prefix, _kind)


def _shift(x: Any, dim: Any, back: bool) -> Any:
    dims = list(range(x.dim())) if dim is None else list(dim)
    return x.roll([-(x.size(d) // 2) if back else x.size(d) // 2 for d in dims], dims) if dims else x.clone()


@composite(
    "fft_fftshift(Tensor self, int[1]? dim=None) -> Tensor",
    public="fft.fftshift",
    method=False,
    formula="out[i] = self[(i - n // 2) mod n], in every one of dims",
)
def _fftshift(self: Any, dim: Any = None) -> Any:
    """A transform reordered so that frequency 0 stands in the middle: the halves of every dim (all by default)
    exchanged.

    Shapes: self of any shape; the result has the same.

    >>> torch.fft.fftshift(torch.tensor([0, 1, 2, -2, -1]))
    tensor([-2, -1,  0,  1,  2])
    >>> torch.fft.fftshift(torch.tensor([[0, 1], [2, 3]]), dim=1)
    tensor([[1, 0],
            [3, 2]])
    """
    return _shift(self, dim, False)


@composite(
    "fft_ifftshift(Tensor self, int[1]? dim=None) -> Tensor",
    public="fft.ifftshift",
    method=False,
    formula="out[i] = self[(i + n // 2) mod n], in every one of dims",
)
def _ifftshift(self: Any, dim: Any = None) -> Any:
    """The inverse of fftshift: frequency 0 moved from the middle to the front of every dim (all by default).

    For even sizes it is fftshift itself.

    Shapes: self of any shape; the result has the same.

    >>> torch.fft.ifftshift(torch.tensor([-2, -1, 0, 1, 2]))
    tensor([ 0,  1,  2, -2, -1])
    """
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


@composite(
    f"fft_fftfreq(int n, float d=1.0, {_OPTIONS}) -> Tensor",
    public="fft.fftfreq",
    method=False,
    out=True,
    formula="out[k] = (k if k < (n + 1) // 2 else k - n) / (n d)",
)
def _fftfreq(
    n: int,
    d: float = 1.0,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin: Any = None,
    grad: bool = False,
) -> Any:
    """The frequencies that belong to the results of fft, for samples a time d apart, in cycles per unit of d.

    The first half is from 0 upwards, the second are the negative ones. RuntimeError for n below 1 and for a dtype of
    integers.

    Shapes: the result has n elements, of the default float dtype unless dtype says another.

    >>> torch.fft.fftfreq(5, d=0.1)
    tensor([ 0.,  2.,  4., -4., -2.])
    """
    dtype = _frequency_dtype("fftfreq", n, dtype)
    k = rl.arange(n, dtype=dtype, device=device)
    return _frequencies("fftfreq", rl.where(rl.arange(n, device=device) < (n + 1) // 2, k, k - n), n, d, grad)


@composite(
    f"fft_rfftfreq(int n, float d=1.0, {_OPTIONS}) -> Tensor",
    public="fft.rfftfreq",
    method=False,
    out=True,
    formula="out[k] = k / (n d)",
)
def _rfftfreq(
    n: int,
    d: float = 1.0,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin: Any = None,
    grad: bool = False,
) -> Any:
    """The frequencies that belong to the results of rfft, for samples a time d apart, in cycles per unit of d.

    RuntimeError for n below 1 and for a dtype of integers.

    Shapes: the result has n // 2 + 1 elements, of the default float dtype unless dtype says another.

    >>> torch.fft.rfftfreq(5, d=0.1)
    tensor([0., 2., 4.])
    """
    dtype = _frequency_dtype("rfftfreq", n, dtype)
    return _frequencies("rfftfreq", rl.arange(n // 2 + 1, dtype=dtype, device=device), n, d, grad)
