"""The two parts of complex numbers, as views."""

from __future__ import annotations

from typing import Any

from ._record import composite, native, rl


@composite("real(Tensor self) -> Tensor", view="view", method=False)
def _real(self: Any) -> Any:
    """The real part, as a view of a complex tensor; a real tensor is its own. Also the attribute ``Tensor.real``.

    Shapes: self of any shape; the result has the same.

    >>> torch.real(torch.tensor([1 + 2j]))
    tensor([1.])
    """
    if not self.is_complex():
        return self
    return rl.view_as_real(rl.conj(self) if self.is_conj() else self).select(-1, 0)


@composite("imag(Tensor self) -> Tensor", view="view", method=False)
def _imag(self: Any) -> Any:
    """The imaginary part, as a view of a complex tensor. Also the attribute ``Tensor.imag``.

    RuntimeError for a real tensor.

    Shapes: self of any shape; the result has the same.

    >>> torch.imag(torch.tensor([1 + 2j]))
    tensor([2.])
    """
    if not self.is_complex():
        raise RuntimeError(f"imag: expected a tensor of complex dtype, got {self.dtype}")
    if self.is_conj():
        return rl._neg_view(rl.view_as_real(rl.conj(self)).select(-1, 1))
    return rl.view_as_real(self).select(-1, 1)


@composite("_complex(Tensor real, Tensor imag) -> Tensor")
def _complex(real: Any, imag: Any) -> Any:
    """real + imag i, of float16, float32 or float64 tensors of one dtype that broadcast; else RuntimeError."""
    for x in (real, imag):
        if x.dtype not in (rl.float16, rl.float32, rl.float64):
            raise RuntimeError(
                f"complex: expected both inputs to be float16, float32 or float64 tensors, got {x.dtype}"
            )
    if real.dtype != imag.dtype:
        raise RuntimeError(f"complex: the dtypes differ; expected {real.dtype} for imag, got {imag.dtype}")
    return rl._ordered_like(rl.view_as_complex(rl.stack(rl.broadcast_tensors(real, imag), -1)), real)


native(
    "complex(Tensor real, Tensor imag) -> Tensor",
    options={"composite": True},
    method=False,
    formula="out = real + imag i",
    doc="""A complex tensor from its parts.

    RuntimeError unless both are float16, for complex32, float32, for complex64, or float64, for complex128.

    Shapes: real and imag broadcast; the result has their common shape.

    >>> torch.complex(torch.tensor([1.0, 2.0]), torch.tensor(3.0))
    tensor([1.+3.j, 2.+3.j])""",
)


@composite(
    "polar(Tensor abs, Tensor angle) -> Tensor",
    method=False,
    out=True,
    formula="out = abs (cos(angle) + i sin(angle))",
)
def _polar(abs: Any, angle: Any) -> Any:
    """A complex tensor from absolute values and angles, in radians.

    RuntimeError unless both are float32, for complex64, or float64, for complex128.

    Shapes: abs and angle broadcast; the result has their common shape.

    >>> z = torch.polar(torch.tensor([2.0, 2.0]), torch.tensor([0.5, 2.0]))
    >>> z.abs(), z.angle()
    (tensor([2., 2.]), tensor([0.5000, 2.0000]))
    """
    if abs.dtype not in (rl.float32, rl.float64) or abs.dtype != angle.dtype:
        raise RuntimeError(f"polar: expected two float32 or two float64 tensors, got {abs.dtype} and {angle.dtype}")
    return rl._complex(abs * angle.cos(), abs * angle.sin())


@composite("isreal(Tensor self) -> Tensor")
def _isreal(self: Any) -> Any:
    """Whether the imaginary part is 0, element by element: true for every real number.

    Shapes: self of any shape; the result, bool, has the same.

    >>> torch.isreal(torch.tensor([1 + 0j, 2j]))
    tensor([ True, False])
    """
    return rl.imag(self) == 0 if self.is_complex() else rl.ones_like(self, dtype=rl.bool)


@composite("resolve_conj(Tensor self) -> Tensor", view="view")
def _resolve_conj(self: Any) -> Any:
    """A copy with the conjugates in memory, of a conjugated view; any other tensor itself.

    Shapes: self of any shape; the result has the same.

    >>> x = torch.tensor([1 + 2j]).conj()
    >>> x.is_conj(), x.resolve_conj().is_conj()
    (True, False)
    """
    return self.clone() if self.is_conj() else self


@composite("resolve_neg(Tensor self) -> Tensor", view="view")
def _resolve_neg(self: Any) -> Any:
    """A copy with the negatives in memory, of a negated view; any other tensor itself.

    Shapes: self of any shape; the result has the same.

    >>> x = torch.tensor([1 + 2j]).conj().imag
    >>> x.is_neg(), x.resolve_neg().is_neg()
    (True, False)
    """
    return self.clone() if self.is_neg() else self


@composite(
    "frexp(Tensor self) -> (Tensor mantissa, Tensor exponent)",
    out=True,
    formula="self = mantissa * 2^exponent, 0.5 <= |mantissa| < 1",
)
def _frexp(self: Any) -> Any:
    """The binary mantissas and exponents of floating point numbers; 0, infinities and NaN stay, with exponent 0.

    NotImplementedError for other than floating point numbers.

    Shapes: self of any shape; mantissa has its shape and dtype, exponent (int32) its shape.

    >>> torch.frexp(torch.tensor([12.0, 0.0, -0.3]))
    rushlight.return_types.frexp(
    mantissa=tensor([ 0.7500,  0.0000, -0.6000]),
    exponent=tensor([ 4,  0, -1], dtype=rushlight.int32))
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
