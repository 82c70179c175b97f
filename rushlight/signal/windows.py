"""Window functions: M numbers, symmetric, or (``sym=False``) one period of a symmetric window of M + 1."""

from __future__ import annotations

import math
from collections.abc import Iterable

import rushlight
from rushlight import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming", "hamming", "hann",
    "kaiser", "nuttall",
]  # fmt: skip


def _checked(name: str, M: int, options: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """Options for making tensors, and whether the result requires grad."""
    dtype = options.get("dtype")
    dtype = rushlight.get_default_dtype() if dtype is None else dtype
    layout = options.get("layout", rushlight.strided)
    if M < 0:
        raise ValueError(f"{name}: M; expected a non-negative window length, got {M}")
    if layout not in (None, rushlight.strided):
        raise ValueError(f"{name}: layout; expected rushlight.strided, got {layout}")
    if dtype not in (rushlight.float32, rushlight.float64):
        raise ValueError(f"{name}: dtype; expected float32 or float64, got {dtype}")
    unknown = set(options) - {"dtype", "layout", "device", "requires_grad"}
    if unknown:
        raise TypeError(f"{name}: got an unexpected keyword argument {sorted(unknown)[0]!r}")
    return {"dtype": dtype, "device": options.get("device")}, bool(options.get("requires_grad", False))


def _done(window: Tensor, requires_grad: bool) -> Tensor:
    return window.requires_grad_() if requires_grad else window


def _period(M: int, sym: bool) -> int:
    return M if not sym and M > 1 else M - 1


def exponential(M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, **options: Any) -> Tensor:
    """exp(-|k - center| / tau). ValueError for tau <= 0, and for a center of a symmetric window."""
    make, requires_grad = _checked("exponential", M, options)
    if tau <= 0:
        raise ValueError(f"exponential: tau; expected a positive number, got {tau}")
    if sym and center is not None:
        raise ValueError("exponential: center; expected None for a symmetric window")
    if center is None:
        center = _period(M, sym) / 2
    k = rushlight.arange(M, **make)
    return _done((-(k - center).abs() / tau).exp(), requires_grad)


def cosine(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """sin(pi (k + 1/2) / M)."""
    make, requires_grad = _checked("cosine", M, options)
    step = math.pi / max(_period(M, sym) + 1, 1)
    return _done(((rushlight.arange(M, **make) + 0.5) * step).sin(), requires_grad)


def gaussian(M: int, *, std: float = 1.0, sym: bool = True, **options: Any) -> Tensor:
    """exp(-((k - centre) / std)^2 / 2). ValueError for std <= 0."""
    make, requires_grad = _checked("gaussian", M, options)
    if std <= 0:
        raise ValueError(f"gaussian: std; expected a positive number, got {std}")
    k = (rushlight.arange(M, **make) - _period(M, sym) / 2) / (std * math.sqrt(2))
    return _done((-(k * k)).exp(), requires_grad)


def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, **options: Any) -> Tensor:
    """i0(beta sqrt(1 - x^2)) / i0(beta), x from -1 to 1. ValueError for beta < 0."""
    make, requires_grad = _checked("kaiser", M, options)
    if beta < 0:
        raise ValueError(f"kaiser: beta; expected a number of at least 0, got {beta}")
    if M < 2:
        return _done(rushlight.ones(M, **make), requires_grad)
    x = rushlight.arange(M, **make) * (2 / _period(M, sym)) - 1
    top = ((1 - x * x).clamp(min=0).sqrt() * beta).i0()
    return _done(top / rushlight.full((), beta, **make).i0(), requires_grad)


def bartlett(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """1 - |x|, x from -1 to 1."""
    make, requires_grad = _checked("bartlett", M, options)
    if M < 2:
        return _done(rushlight.ones(M, **make), requires_grad)
    return _done(1 - (rushlight.arange(M, **make) * (2 / _period(M, sym)) - 1).abs(), requires_grad)


def general_cosine(M: int, *, a: Iterable[float], sym: bool = True, **options: Any) -> Tensor:
    """Sum over j of (-1)^j a[j] cos(2 pi j k / (M - 1)). TypeError for an `a` that is no list."""
    make, requires_grad = _checked("general_cosine", M, options)
    if not isinstance(a, Iterable):
        raise TypeError("general_cosine: a; expected a list of numbers")
    factors = list(a)
    if not factors:
        raise ValueError("general_cosine: a; expected at least one number, got none")
    if M < 2:
        return _done(rushlight.ones(M, **make), requires_grad)
    angle = rushlight.arange(M, **make) * (2 * math.pi / _period(M, sym))
    total = rushlight.full((M,), factors[0], **make)
    for j, factor in enumerate(factors[1:], 1):
        total = total + (angle * j).cos() * ((-1) ** j * factor)
    return _done(total, requires_grad)


def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, **options: Any) -> Tensor:
    """alpha - (1 - alpha) cos(2 pi k / (M - 1))."""
    return general_cosine(M, a=[alpha, 1.0 - alpha], sym=sym, **options)


def hamming(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """0.54 - 0.46 cos(2 pi k / (M - 1))."""
    return general_hamming(M, sym=sym, **options)


def hann(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """0.5 - 0.5 cos(2 pi k / (M - 1))."""
    return general_hamming(M, alpha=0.5, sym=sym, **options)


def blackman(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """0.42 - 0.5 cos(2 pi k / (M - 1)) + 0.08 cos(4 pi k / (M - 1))."""
    return general_cosine(M, a=[0.42, 0.5, 0.08], sym=sym, **options)


def nuttall(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """A. H. Nuttall's four-term window of least side lobes (1981)."""
    return general_cosine(M, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], sym=sym, **options)
