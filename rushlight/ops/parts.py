"""The two parts of complex numbers, as views."""

from __future__ import annotations

from typing import Any

from ._record import composite, native, rl


@composite("real(Tensor self) -> Tensor", view="view", method=False)
def _real(self: Any) -> Any:
    """The real part, a view of a complex tensor; a real tensor is its own. Also the attribute ``Tensor.real``.

    Example::

        >>> rushlight.real(rushlight.tensor([1 + 2j]))
        tensor([1.])
    """
    return rl.view_as_real(self).select(-1, 0) if self.is_complex() else self


@composite("imag(Tensor self) -> Tensor", view="view", method=False)
def _imag(self: Any) -> Any:
    """The imaginary part, a view of a complex tensor. Also the attribute ``Tensor.imag``.

    Raises:
        RuntimeError: the tensor is real.

    Example::

        >>> rushlight.imag(rushlight.tensor([1 + 2j]))
        tensor([2.])
    """
    if not self.is_complex():
        raise RuntimeError(f"imag: expected a tensor of complex dtype, got {self.dtype}")
    return rl.view_as_real(self).select(-1, 1)


@composite("_complex(Tensor real, Tensor imag) -> Tensor")
def _complex(real: Any, imag: Any) -> Any:
    """real + imag i, of float32 or float64 tensors of one dtype that broadcast; RuntimeError for other dtypes."""
    for x in (real, imag):
        if x.dtype not in (rl.float32, rl.float64):
            raise RuntimeError(f"complex: expected both inputs to be float32 or float64 tensors, got {x.dtype}")
    if real.dtype != imag.dtype:
        raise RuntimeError(f"complex: the dtypes differ; expected {real.dtype} for imag, got {imag.dtype}")
    return rl.view_as_complex(rl.stack(rl.broadcast_tensors(real, imag), -1))


native(
    "complex(Tensor real, Tensor imag) -> Tensor",
    options={"composite": True},
    method=False,
    doc="real + imag i, of two float32 or two float64 tensors that broadcast; RuntimeError for other dtypes.",
)


@composite("polar(Tensor abs, Tensor angle) -> Tensor", method=False, out=True)
def _polar(abs: Any, angle: Any) -> Any:
    """abs (cos(angle) + i sin(angle)); dtypes as for `complex`."""
    if abs.dtype not in (rl.float32, rl.float64) or abs.dtype != angle.dtype:
        raise RuntimeError(f"polar: expected two float32 or two float64 tensors, got {abs.dtype} and {angle.dtype}")
    return rl._complex(abs * angle.cos(), abs * angle.sin())


@composite("isreal(Tensor self) -> Tensor")
def _isreal(self: Any) -> Any:
    """Whether the imaginary part is 0: true for every real number."""
    return rl.imag(self) == 0 if self.is_complex() else rl.ones_like(self, dtype=rl.bool)


@composite("resolve_conj(Tensor self) -> Tensor", view="view")
def _resolve_conj(self: Any) -> Any:
    """The tensor itself: conjugates are always in memory here."""
    return self


@composite("resolve_neg(Tensor self) -> Tensor", view="view")
def _resolve_neg(self: Any) -> Any:
    """The tensor itself: negatives are always in memory here."""
    return self


@composite("frexp(Tensor self) -> (Tensor mantissa, Tensor exponent)", out=True)
def _frexp(self: Any) -> Any:
    """mantissa in [0.5, 1) and exponent (int32) with self = mantissa * 2 ** exponent; 0, infinity and NaN stay.

    NotImplementedError for other than floating-point numbers.
    """
    if not self.is_floating_point():
        raise NotImplementedError(f'"frexp" not implemented for {self.dtype}; expected a floating-point dtype')
    x = self.detach().to(rl.float64)
    tiny = x.abs() < 2.0**-1022
    bits = rl.where(tiny, x * 2.0**54, x).view(rl.int64)
    exponent = ((bits >> 52) & 2047) - 1022 - 54 * tiny.to(rl.int64)
    exponent = rl.where((x == 0) | ~x.isfinite(), 0, exponent)
    half = exponent // 2
    wide = rl.float64 if self.dtype == rl.float64 else rl.float32
    # 2 ** exponent may be out of range where its halves are not
    mantissa = self * (-half).to(wide).exp2().to(wide) * (half - exponent).to(wide).exp2()
    return mantissa.to(self.dtype), exponent.to(rl.int32)
