"""Elementwise operations: a scalar expression each, from which kernels, fused derivatives and traces come.

Lambdas of expressions see scalars: names like ``exp`` or ``where`` in them mean the scalar functions of `_expression`.
Lambdas of derivatives are written for tensors, and are traced as scalars too, which makes one fused kernel of each.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ._expression import (
    FUNCTIONS,
    atan2,
    conj,
    copysign,
    exp,
    exp2,
    floor,
    fmod,
    heaviside,
    hypot,
    isinf,
    isnan,
    log,
    log1p,
    maximum,
    minimum,
    nextafter,
    real,
    sin,
    to_bfloat16,
    to_float16,
    trunc,
    trunc_divide,
    where,
)
from ._fused import fuse_derivatives
from ._record import TABLE, composite, elementwise, native, rl

ALL = "bool int float complex complex32"
REAL = "bool int float"


def _conj(x: Any) -> Any:
    """The conjugate of a tensor, a number or a scalar expression, without an operation where it changes nothing."""
    if isinstance(x, complex):
        return x.conjugate()
    if isinstance(x, (int, float)):
        return x
    return x.conj() if x.is_complex() else x


def _zeros(grad: Any) -> Any:
    return rl.zeros_like(grad)


def _function(
    name: str,
    derivative: Callable[..., Any] | None,
    doc: str,
    *,
    expression: Callable[..., Any] | None = None,
    types: str = "float complex",
    compute: str = "float",
    aliases: str = "",
    elsewhere: str = "",
    **fields: Any,
) -> None:
    """A function of one tensor, with its in-place twin.

    Aliases are functions and methods alike; ``elsewhere`` are full paths of further names.
    """
    fields.setdefault("inplace", True)
    elementwise(
        f"{name}(Tensor self) -> Tensor",
        expression or (lambda self: FUNCTIONS[name](self)),
        types=types,
        compute=compute,
        derivative={"self": derivative} if derivative else {},
        doc=doc,
        public=(*_names(name, aliases), *elsewhere.split()),
        **{"method": not name.startswith(("_", "special_")), **fields},
    )


def _names(name: str, aliases: str) -> tuple[str, ...]:
    plain = [alias for alias in aliases.split() if "." not in alias]
    own = () if name.startswith(("_", "special_")) else (name,)
    return (*own, *aliases.split(), *(f"Tensor.{alias}" for alias in plain))


# ---------------------------------------------------------------- arithmetic

elementwise(
    "add(Tensor|Scalar self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor",
    lambda self, other, alpha: self + other * alpha,
    types=ALL,
    inplace=True,
    derivative={
        "self": lambda grad: grad,
        "other": lambda grad, alpha: grad if alpha == 1 else grad * _conj(alpha),
    },
    options={"weights": "alpha"},
    formula="out = self + alpha * other",
    doc="""The sum, with the second operand scaled by alpha.

    >>> torch.add(torch.tensor([1, 2]), torch.tensor([[10], [20]]), alpha=2)
    tensor([[21, 22],
            [41, 42]])""",
)
elementwise(
    "sub(Tensor|Scalar self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor",
    lambda self, other, alpha: self - other * alpha,
    types="int float complex complex32",
    inplace=True,
    public=_names("sub", "subtract"),
    derivative={
        "self": lambda grad: grad,
        "other": lambda grad, alpha: -grad if alpha == 1 else grad * _conj(-alpha),
    },
    options={"checked": True, "weights": "alpha"},
    formula="out = self - alpha * other",
    doc="""The difference, with the second operand scaled by alpha.

    >>> torch.sub(torch.tensor([5.0, 6.0]), 2, alpha=0.5)
    tensor([4., 5.])""",
)
elementwise(
    "rsub(Tensor self, Tensor|Scalar other, Scalar alpha=1) -> Tensor",
    lambda self, other, alpha: other - self * alpha,
    types="int float complex complex32",
    method=False,
    derivative={
        "self": lambda grad, alpha: -grad if alpha == 1 else grad * _conj(-alpha),
        "other": lambda grad: grad,
    },
    options={"checked": True, "weights": "alpha"},
    formula="out = other - alpha * self",
    doc="""The difference with its operands exchanged.

    >>> torch.rsub(torch.tensor([1, 2]), 10)
    tensor([9, 8])""",
)
elementwise(
    "mul(Tensor|Scalar self, Tensor|Scalar other) -> Tensor",
    lambda self, other: self * other,
    types=ALL,
    options={"wide": ("other",)},
    inplace=True,
    public=_names("mul", "multiply"),
    derivative={
        "self": lambda grad, other: grad * _conj(other),
        "other": lambda grad, self: grad * _conj(self),
    },
    formula="out = self * other",
    doc="""The product of two tensors, or of a tensor and a number.

    >>> torch.mul(torch.tensor([1, 2, 3]), 0.5)
    tensor([0.5000, 1.0000, 1.5000])""",
)
elementwise(
    "div(Tensor|Scalar self, Tensor|Scalar other) -> Tensor",
    lambda self, other: self / other,
    types="float complex",
    compute="float",
    options={"wide": ("other",)},
    inplace=True,
    public=_names("div", "divide true_divide"),
    derivative={
        "self": lambda grad, other: grad / _conj(other),
        "other": lambda grad, self, other: -grad * _conj((self / other) / other),
    },
    formula="out = self / other",
    doc="""The quotient; that of integers too is a float. Division by 0 gives infinity or NaN.

    >>> torch.div(torch.tensor([6, -7, 0]), torch.tensor([4, 0, 0]))
    tensor([1.5000,   -inf,    nan])""",
)
elementwise(
    "floor_divide(Tensor|Scalar self, Tensor|Scalar other) -> Tensor",
    lambda self, other: self // other,
    types="int float",
    options={"wide": ("other",)},
    inplace=True,
    formula="out = floor(self / other)",
    doc="""The greatest whole number that is not above the quotient.

    RuntimeError for integers divided by 0.

    >>> torch.floor_divide(torch.tensor([7, -7]), 2)
    tensor([ 3, -4])""",
)
elementwise(
    "_div_trunc(Tensor self, Tensor|Scalar other) -> Tensor",
    lambda self, other: trunc_divide(self, other),
    types="int float",
    inplace=True,
    derivative={"self": _zeros, "other": _zeros},
    doc="The quotient without its fraction.",
)
elementwise(
    "_div_floor(Tensor self, Tensor|Scalar other) -> Tensor",
    lambda self, other: self // other,
    types="int float",
    inplace=True,
    derivative={"self": _zeros, "other": _zeros},
    doc="floor_divide as div has it, whose derivative is 0.",
)


def _floor_in_steps(rounded: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    def expression(self: Any, other: Any) -> Any:
        rest = fmod(self, other)
        quotient = rounded(rounded(self - rest) / other)
        quotient = where((rest != 0) & ((rest < 0) != (other < 0)), rounded(quotient - 1), quotient)
        whole = floor(quotient)
        whole = where(rounded(quotient - whole) > 0.5, rounded(whole + 1), whole)
        return where(other == 0, self / other, where(quotient == 0, copysign(0.0, self / other), whole))

    return expression


for _dtype, _rounded in (("float16", to_float16), ("bfloat16", to_bfloat16)):
    # PyTorch divides tensors of these dtypes in steps of the dtype, but by a single number in float32.
    elementwise(
        f"_div_trunc_{_dtype}(Tensor self, Tensor|Scalar other) -> Tensor",
        lambda self, other, _rounded=_rounded: trunc(_rounded(self / other)),
        types="float32",
        derivative={"self": _zeros, "other": _zeros},
        doc=f"The quotient, rounded to {_dtype}, without its fraction.",
    )
    elementwise(
        f"_div_floor_{_dtype}(Tensor self, Tensor|Scalar other) -> Tensor",
        _floor_in_steps(_rounded),
        types="float32",
        derivative={"self": _zeros, "other": _zeros},
        doc=f"The whole number below the quotient, each step rounded to {_dtype}.",
    )
native(
    "div.mode(Tensor self, Tensor|Scalar other, *, str? rounding_mode) -> Tensor",
    options={"composite": True},
    inplace=True,
    doc="""The quotient, rounded towards zero with rounding_mode="trunc", down with "floor", not at all with None.

    >>> torch.div(torch.tensor([7, -7]), 2, rounding_mode="trunc")
    tensor([ 3, -3])""",
)
elementwise(
    "remainder(Tensor|Scalar self, Tensor|Scalar other) -> Tensor",
    lambda self, other: self % other,
    types="int float",
    inplace=True,
    derivative={
        "self": lambda grad: grad,
        "other": lambda grad, self, other: -grad * rl._div_floor(self, other),
    },
    options={"fuse": False},
    formula="out = self - floor(self / other) * other",
    doc="""What is left of self after taking away whole multiples of other; it has the sign of other, as Python's %
    has.

    RuntimeError for integers and 0.

    >>> torch.remainder(torch.tensor([7, -7]), 3)
    tensor([1, 2])""",
)
elementwise(
    "fmod(Tensor self, Tensor|Scalar other) -> Tensor",
    lambda self, other: fmod(self, other),
    types="int float",
    inplace=True,
    derivative={
        "self": lambda grad: grad,
        "other": lambda grad, self, other: -grad * rl._div_trunc(self, other),
    },
    options={"fuse": False},
    formula="out = self - trunc(self / other) * other",
    doc="""What is left of self after taking away whole multiples of other; it has the sign of self, as C's fmod
    has.

    RuntimeError for integers and 0.

    >>> torch.fmod(torch.tensor([7, -7]), 3)
    tensor([ 1, -1])""",
)
_function(
    "neg",
    lambda grad: -grad,
    """The negative of each number; RuntimeError for bool.

    >>> torch.neg(torch.tensor([1.5, -2.0]))
    tensor([-1.5000,  2.0000])""",
    types="int float complex complex32",
    compute="promote",
    aliases="negative",
    options={"refusal": "RuntimeError"},
    formula="out = -self",
)


@composite("positive(Tensor self) -> Tensor", formula="out = self")
def _positive(self: Any) -> Any:
    """The tensor itself, as the + before it means; RuntimeError for bool.

    Shapes: self of any shape; the result is self.

    >>> +torch.tensor([-1, 2])
    tensor([-1,  2])
    """
    if self.dtype == rl.bool:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return self


_function(
    "abs",
    lambda grad, self: grad * self.sgn(),
    """The absolute value; of a complex number the modulus, which is real.

    >>> torch.abs(torch.tensor([3 + 4j, -2]))
    tensor([5., 2.])""",
    types="int float complex complex32",
    compute="promote",
    result="real",
    aliases="absolute",
    options={"fuse": False},
    formula="out = sqrt(Re(self)^2 + Im(self)^2)",
)
_function(
    "sign",
    _zeros,
    """-1, 0 or 1 by the sign; NaN has none and stays NaN.

    >>> torch.sign(torch.tensor([-2.5, 0.0, 7.0]))
    tensor([-1.,  0.,  1.])""",
    types=REAL,
    compute="promote",
    formula="out = 1 if self > 0, -1 if self < 0, 0 if self = 0",
)
_function(
    "sgn",
    lambda grad, self, result: (
        rl.where(self == 0, 0, (grad - result * rl.view_as_real(grad * _conj(result)).select(-1, 0)) / self.abs())
        if self.is_complex()
        else _zeros(grad)
    ),
    """The sign, of complex numbers the number of modulus 1 in their direction; 0 at 0.

    >>> torch.sgn(torch.tensor([3 + 4j, 0]))
    tensor([0.6000+0.8000j, 0.0000+0.0000j])""",
    types=ALL,
    compute="promote",
    options={"fuse": False},
    formula="out = self / |self|",
)
_function(
    "square",
    lambda grad, self: grad * (_conj(self) * 2),
    """The square of each number.

    >>> torch.square(torch.tensor([-3, 2]))
    tensor([9, 4])""",
    types="int float complex",
    compute="number",
    formula="out = self^2",
)
_function(
    "reciprocal",
    lambda grad, result: -grad * _conj(result * result),
    """The reciprocal of each number; infinity at 0.

    >>> torch.reciprocal(torch.tensor([4, -2, 0]))
    tensor([ 0.2500, -0.5000,     inf])""",
    formula="out = 1 / self",
)
_function(
    "sqrt",
    lambda grad, result: grad / (2 * _conj(result)),
    """The square root; NaN for negative numbers, unless they are complex.

    >>> torch.sqrt(torch.tensor([9.0, 2.0, -1.0]))
    tensor([3.0000, 1.4142,    nan])
    >>> torch.sqrt(torch.tensor([-1 + 0j]))
    tensor([0.+1.j])""",
    formula="out = sqrt(self)",
)
_function(
    "rsqrt",
    lambda grad, result: -0.5 * grad * _conj(result * result * result),
    """The reciprocal of the square root; infinity at 0, NaN below.

    >>> torch.rsqrt(torch.tensor([4.0, 0.0, -1.0]))
    tensor([0.5000,    inf,    nan])""",
    formula="out = 1 / sqrt(self)",
)


def _pow_self(grad: Any, self: Any, exponent: Any) -> Any:
    if isinstance(exponent, (int, float, complex)):
        if exponent == 0:
            return _zeros(grad)
        return grad * _conj(self * 2 if exponent == 2 else exponent * self ** (exponent - 1))
    return rl.where(exponent == 0, 0, grad * _conj(exponent * self ** (exponent - 1)))


def _pow_exponent(grad: Any, self: Any, exponent: Any, result: Any) -> Any:
    if isinstance(self, (int, float, complex)):
        if self == 0:
            return rl.where(exponent >= 0, 0, grad * -math.inf)
        logarithm = math.log(self) if not isinstance(self, complex) and self > 0 else rl.log(rl.full((), self))
        return grad * _conj(result * logarithm)
    still = (self == 0) & ((exponent.real if exponent.is_complex() else exponent) >= 0)
    return rl.where(still, 0, grad * _conj(result * self.log()))


elementwise(
    "pow(Tensor|Scalar self, Tensor|Scalar exponent) -> Tensor",
    lambda self, exponent: self**exponent,
    types="int float complex",
    inplace=True,
    derivative={"self": _pow_self, "exponent": _pow_exponent},
    options={"checked": True, "fuse": False},
    formula="out = self^exponent",
    doc="""The power of a base; either may be a number. RuntimeError for integers to a negative power.

    >>> torch.pow(torch.tensor([1, 2, 3]), 2)
    tensor([1, 4, 9])
    >>> torch.pow(2, torch.tensor([-1.0, 0.0, 3.0]))
    tensor([0.5000, 1.0000, 8.0000])""",
)


def _power_dtype(*operands: Any) -> Any:
    complex_ = any(isinstance(x, complex) or getattr(getattr(x, "dtype", None), "is_complex", False) for x in operands)
    return rl.complex128 if complex_ else rl.float64


@composite(
    "float_power(Tensor|Scalar self, Tensor|Scalar exponent) -> Tensor",
    method=True,
    out=True,
    formula="out = self^exponent",
)
def _float_power(self: Any, exponent: Any) -> Any:
    """The power computed in float64, or complex128 when base or exponent is complex.

    TypeError when both are numbers.

    Shapes: self and exponent broadcast; the result has their common shape.

    >>> torch.float_power(torch.tensor([2, 10]), -1)
    tensor([0.5000, 0.1000], dtype=rushlight.float64)
    """
    if not (hasattr(self, "to") or hasattr(exponent, "to")):
        raise TypeError("float_power(): expected a tensor among self and exponent, got two numbers")
    dtype = _power_dtype(self, exponent)
    base, power = (x.to(dtype) if hasattr(x, "to") else x for x in (self, exponent))
    if not hasattr(base, "to"):
        base = rl.full((), base, dtype=dtype)
    return rl.pow(base, power)


@composite(
    "_float_power_inplace(Tensor self, Tensor|Scalar exponent) -> Tensor",
    public="Tensor.float_power_",
    formula="self = self^exponent",
)
def _float_power_inplace(self: Any, exponent: Any) -> Any:
    """float_power written into self, whose dtype must be that of the result (RuntimeError).

    Shapes: self of any shape, to which exponent broadcasts; the result is self.

    >>> torch.tensor([2.0, 3.0], dtype=torch.float64).float_power_(3)
    tensor([ 8., 27.], dtype=rushlight.float64)
    """
    dtype = _power_dtype(self, exponent)
    if dtype != self.dtype:
        raise RuntimeError(
            f"float_power_: the base has the wrong dtype; expected {dtype}, that of the result, got {self.dtype}"
        )
    return self.pow_(exponent.to(dtype) if hasattr(exponent, "to") else exponent)


elementwise(
    "addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    lambda self, tensor1, tensor2, value: self + tensor1 * value * tensor2,
    types="int float complex complex32",
    inplace=True,
    derivative={
        "self": lambda grad: grad,
        "tensor1": lambda grad, tensor2, value: grad * _conj(tensor2 if value == 1 else tensor2 * value),
        "tensor2": lambda grad, tensor1, value: grad * _conj(tensor1 if value == 1 else tensor1 * value),
    },
    options={"fuse": False},
    formula="out = self + value * tensor1 * tensor2",
    doc="""A tensor plus the product of two others, scaled by value.

    >>> torch.addcmul(torch.tensor([1.0, 1.0]), torch.tensor([2.0, 3.0]), torch.tensor([4.0, 5.0]), value=0.5)
    tensor([5.0000, 8.5000])""",
)
elementwise(
    "addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    lambda self, tensor1, tensor2, value: self + tensor1 * value / tensor2,
    types="float complex",
    inplace=True,
    derivative={
        "self": lambda grad: grad,
        "tensor1": lambda grad, tensor2, value: grad * _conj(value / tensor2),
        "tensor2": lambda grad, tensor1, tensor2, value: -grad * _conj(tensor1 / tensor2 * value / tensor2),
    },
    formula="out = self + value * tensor1 / tensor2",
    doc="""A tensor plus the quotient of two others, scaled by value; NotImplementedError for integers.

    >>> torch.addcdiv(torch.tensor([1.0, 1.0]), torch.tensor([2.0, 3.0]), torch.tensor([4.0, 2.0]), value=10)
    tensor([ 6., 16.])""",
)
elementwise(
    "lerp(Tensor self, Tensor end, Tensor|Scalar weight) -> Tensor",
    lambda self, end, weight: where(abs(weight) < 0.5, self + weight * (end - self), end - (end - self) * (1 - weight)),
    types="float complex",
    inplace=True,
    derivative={
        "self": lambda grad, weight: grad * _conj(1 - weight),
        "end": lambda grad, weight: grad * _conj(weight),
        "weight": lambda grad, self, end: grad * _conj(end - self),
    },
    options={"checked": True, "fuse": False, "wide": ("weight",)},
    formula="out = self + weight * (end - self)",
    doc="""Linear interpolation: self at weight 0, exactly end at weight 1, beyond them outside [0, 1].

    >>> torch.lerp(torch.tensor([0.0, 10.0]), torch.tensor([4.0, 20.0]), 0.25)
    tensor([ 1.0000, 12.5000])""",
)

# ---------------------------------------------------------------- exponentials and logarithms

_function(
    "exp",
    lambda grad, result: grad * _conj(result),
    """The exponential function.

    >>> torch.exp(torch.tensor([0.0, 1.0, -1000.0]))
    tensor([1.0000, 2.7183, 0.0000])""",
    formula="out = e^self",
)
_function(
    "exp2",
    lambda grad, result: grad * _conj(result * math.log(2)),
    """The power of 2.

    >>> torch.exp2(torch.tensor([0.0, 3.0, -1.0]))
    tensor([1.0000, 8.0000, 0.5000])""",
    aliases="special.exp2",
    formula="out = 2^self",
)
_function(
    "expm1",
    lambda grad, result: grad * _conj(result + 1),
    """The exponential function minus 1, accurate near 0, where e^self is so close to 1 that the difference
    loses its digits.

    >>> x = torch.tensor([1e-8])
    >>> x.expm1(), x.exp() - 1
    (tensor([1.0000e-08]), tensor([0.]))""",
    aliases="special.expm1",
    formula="out = e^self - 1",
)
_function(
    "log",
    lambda grad, self: grad / _conj(self),
    """The natural logarithm; -inf at 0, NaN below, unless self is complex.

    >>> torch.log(torch.tensor([1.0, 10.0, 0.0, -1.0]))
    tensor([0.0000, 2.3026,   -inf,    nan])""",
    formula="out = log(self)",
)
_function(
    "log2",
    lambda grad, self: grad / _conj(self * math.log(2)),
    """The logarithm to base 2.

    >>> torch.log2(torch.tensor([8.0, 0.25]))
    tensor([ 3., -2.])""",
    formula="out = log(self) / log(2)",
)
_function(
    "log10",
    lambda grad, self: grad / _conj(self * math.log(10)),
    """The logarithm to base 10.

    >>> torch.log10(torch.tensor([1000.0, 0.01]))
    tensor([ 3., -2.])""",
    formula="out = log(self) / log(10)",
)
_function(
    "log1p",
    lambda grad, self: grad / _conj(self + 1),
    """The logarithm of 1 + self, accurate near 0, where 1 + self loses the digits of self.

    >>> x = torch.tensor([1e-8])
    >>> x.log1p(), (1 + x).log()
    (tensor([1.0000e-08]), tensor([0.]))""",
    aliases="special.log1p",
    formula="out = log(1 + self)",
)


def _log_add_exp(self: Any, other: Any) -> Any:
    first = real(self) >= real(other)
    high, low = where(first, self, other), where(first, other, self)
    return where(isinf(self) & (self == other), self, high + log1p(exp(low - high)))


elementwise(
    "logaddexp(Tensor self, Tensor other) -> Tensor",
    _log_add_exp,
    types="float complex",
    derivative={
        "self": lambda grad, self, other: grad / _conj(1 + (other - self).exp()),
        "other": lambda grad, self, other: grad / _conj(1 + (self - other).exp()),
    },
    formula="out = log(e^self + e^other)",
    doc="""The logarithm of a sum of exponentials, which do not overflow on the way.

    >>> torch.logaddexp(torch.tensor([0.0, 1000.0]), torch.tensor([0.0, 1000.0]))
    tensor([6.9315e-01, 1.0007e+03])""",
)
elementwise(
    "logaddexp2(Tensor self, Tensor other) -> Tensor",
    lambda self, other: where(
        isinf(self) & (self == other),
        self,
        maximum(self, other) + log1p(exp2(-abs(self - other))) * (1 / math.log(2)),
    ),
    types="float",
    derivative={
        "self": lambda grad, self, other: grad / (1 + (other - self).exp2()),
        "other": lambda grad, self, other: grad / (1 + (self - other).exp2()),
    },
    formula="out = log2(2^self + 2^other)",
    doc="""The logarithm to base 2 of a sum of powers of 2, which do not overflow on the way.

    >>> torch.logaddexp2(torch.tensor([0.0, 1000.0]), torch.tensor([0.0, 1000.0]))
    tensor([1.0000e+00, 1.0010e+03])""",
)
elementwise(
    "xlogy(Tensor|Scalar self, Tensor|Scalar other) -> Tensor",
    lambda self, other: where(isnan(other), other, where(self == 0, 0, self * log(other))),
    types="float",
    compute="float",
    inplace=True,
    public="xlogy special.xlogy",
    derivative={
        "self": lambda grad, self, other: grad * rl.where((self == 0) & (other <= 0), 0, rl.log(other)),
        "other": lambda grad, self, other: grad * self / other,
    },
    formula="out = self * log(other)",
    doc="""A number times a logarithm, and 0 where self is 0, as entropies need it; NaN where other is NaN.

    >>> torch.xlogy(torch.tensor([0.0, 2.0]), torch.tensor([0.0, 1.0]))
    tensor([0., 0.])""",
)
elementwise(
    "special_xlog1py(Tensor|Scalar self, Tensor|Scalar other) -> Tensor",
    lambda self, other: where(isnan(other), other, where(self == 0, 0, self * log1p(other))),
    types="float",
    compute="float",
    method=False,
    public="special.xlog1py",
    derivative={
        "self": lambda grad, self, other: grad * rl.where((self == 0) & (other <= -1), 0, rl.log1p(other)),
        "other": lambda grad, self, other: grad * self / (other + 1),
    },
    formula="out = self * log(1 + other)",
    doc="""A number times log1p, and 0 where self is 0; NaN where other is NaN.

    >>> torch.special.xlog1py(torch.tensor([0.0, 2.0]), torch.tensor([-1.0, 1.0]))
    tensor([0.0000, 1.3863])""",
)


@composite("ldexp(Tensor self, Tensor other) -> Tensor", inplace=True, out=True, formula="out = self * 2^other")
def _ldexp(self: Any, other: Any) -> Any:
    """A number times a power of 2, as it is stored in floating point.

    Shapes: self and other broadcast; the result has their common shape. Integers become floating point.

    >>> torch.ldexp(torch.tensor([0.5, 0.75]), torch.tensor([3, 4]))
    tensor([ 4., 12.])
    """
    return self * rl.pow(2.0, other)


# ---------------------------------------------------------------- trigonometric and hyperbolic functions

_function(
    "sin",
    lambda grad, self: grad * _conj(self.cos()),
    """The sine of an angle in radians.

    >>> torch.sin(torch.tensor([0.0, torch.pi / 6, torch.pi / 2]))
    tensor([0.0000, 0.5000, 1.0000])""",
    formula="out = sin(self)",
)
_function(
    "cos",
    lambda grad, self: grad * -_conj(self.sin()),
    """The cosine of an angle in radians.

    >>> torch.cos(torch.tensor([0.0, torch.pi / 3, torch.pi]))
    tensor([ 1.0000,  0.5000, -1.0000])""",
    formula="out = cos(self)",
)
_function(
    "tan",
    lambda grad, result: grad * _conj(1 + result * result),
    """The tangent of an angle in radians.

    >>> torch.tan(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 1.5574])""",
    formula="out = sin(self) / cos(self)",
)
_function(
    "asin",
    lambda grad, self: grad * _conj((1 - self * self).rsqrt()),
    """The inverse sine, in [-pi / 2, pi / 2]; NaN outside [-1, 1].

    >>> torch.asin(torch.tensor([0.0, 0.5, 1.0, 2.0]))
    tensor([0.0000, 0.5236, 1.5708,    nan])""",
    aliases="arcsin",
    formula="sin(out) = self",
)
_function(
    "acos",
    lambda grad, self: grad * -_conj((1 - self * self).rsqrt()),
    """The inverse cosine, in [0, pi]; NaN outside [-1, 1].

    >>> torch.acos(torch.tensor([1.0, 0.5, -1.0, 2.0]))
    tensor([0.0000, 1.0472, 3.1416,    nan])""",
    aliases="arccos",
    formula="cos(out) = self",
)
_function(
    "atan",
    lambda grad, self: grad / _conj(self * self + 1),
    """The inverse tangent, in (-pi / 2, pi / 2).

    >>> torch.atan(torch.tensor([0.0, 1.0, float("inf")]))
    tensor([0.0000, 0.7854, 1.5708])""",
    aliases="arctan",
    formula="tan(out) = self",
)
_function(
    "sinh",
    lambda grad, self: grad * _conj(self.cosh()),
    """The hyperbolic sine.

    >>> torch.sinh(torch.tensor([0.0, 1.0, -1.0]))
    tensor([ 0.0000,  1.1752, -1.1752])""",
    formula="out = (e^self - e^-self) / 2",
)
_function(
    "cosh",
    lambda grad, self: grad * _conj(self.sinh()),
    """The hyperbolic cosine.

    >>> torch.cosh(torch.tensor([0.0, 1.0, -1.0]))
    tensor([1.0000, 1.5431, 1.5431])""",
    formula="out = (e^self + e^-self) / 2",
)
_function(
    "tanh",
    lambda grad, result: grad * _conj(1 - result * result),
    """The hyperbolic tangent, in [-1, 1].

    >>> torch.tanh(torch.tensor([0.0, 1.0, -100.0]))
    tensor([ 0.0000,  0.7616, -1.0000])""",
    formula="out = (e^self - e^-self) / (e^self + e^-self)",
)
_function(
    "asinh",
    lambda grad, self: grad * _conj((self * self + 1).rsqrt()),
    """The inverse hyperbolic sine.

    >>> torch.asinh(torch.tensor([0.0, 1.0, -1.0]))
    tensor([ 0.0000,  0.8814, -0.8814])""",
    aliases="arcsinh",
    formula="out = log(self + sqrt(self^2 + 1))",
)
_function(
    "acosh",
    lambda grad, self: grad * _conj((self - 1).rsqrt() * (self + 1).rsqrt()),
    """The inverse hyperbolic cosine; NaN below 1.

    >>> torch.acosh(torch.tensor([1.0, 2.0, 0.5]))
    tensor([0.0000, 1.3170,    nan])""",
    aliases="arccosh",
    formula="out = log(self + sqrt(self^2 - 1))",
)
_function(
    "atanh",
    lambda grad, self: grad / _conj(1 - self * self),
    """The inverse hyperbolic tangent; infinite at -1 and 1, NaN beyond.

    >>> torch.atanh(torch.tensor([0.0, 0.5, 1.0, 2.0]))
    tensor([0.0000, 0.5493,    inf,    nan])""",
    aliases="arctanh",
    formula="out = log((1 + self) / (1 - self)) / 2",
)
elementwise(
    "atan2(Tensor self, Tensor other) -> Tensor",
    lambda self, other: atan2(self, other),
    types="float",
    compute="float",
    inplace=True,
    public=_names("atan2", "arctan2"),
    derivative={
        "self": lambda grad, self, other: rl.where(
            self * self + other * other == 0, 0, grad * (other / (self * self + other * other))
        ),
        "other": lambda grad, self, other: rl.where(
            self * self + other * other == 0, 0, grad * (-self / (self * self + other * other))
        ),
    },
    formula="tan(out) = self / other",
    doc="""The angle of the point (other, self) from the x axis, in radians within [-pi, pi]. At the origin its
    gradient is 0.

    >>> torch.atan2(torch.tensor([1.0, 1.0, -1.0]), torch.tensor([1.0, -1.0, 0.0]))
    tensor([ 0.7854,  2.3562, -1.5708])""",
)
elementwise(
    "hypot(Tensor self, Tensor other) -> Tensor",
    lambda self, other: hypot(self, other),
    types="float",
    inplace=True,
    derivative={
        "self": lambda grad, self, result: grad * (self / result),
        "other": lambda grad, other, result: grad * (other / result),
    },
    formula="out = sqrt(self^2 + other^2)",
    doc="""The hypotenuse of a right triangle, without overflow on the way.

    >>> torch.hypot(torch.tensor([3.0, 3e30]), torch.tensor([4.0, 4e30]))
    tensor([5.0000e+00, 5.0000e+30])""",
)
_function(
    "sinc",
    lambda grad, self: rl.where(
        self == 0,
        0,
        grad * ((math.pi * self * (math.pi * self).cos() - (math.pi * self).sin()) / (math.pi * self * self)).conj(),
    ),
    """The normalised sinc function; 1 at 0.

    >>> torch.sinc(torch.tensor([0.0, 0.5, 2.5]))
    tensor([1.0000, 0.6366, 0.1273])""",
    expression=lambda self: where(self == 0, 1, sin(self * math.pi) / (self * math.pi)),
    aliases="special.sinc",
    formula="out = sin(pi * self) / (pi * self)",
)
_function(
    "deg2rad",
    lambda grad: grad * (math.pi / 180),
    """Degrees as radians.

    >>> torch.deg2rad(torch.tensor([180.0, 90.0]))
    tensor([3.1416, 1.5708])""",
    expression=lambda self: self * (math.pi / 180),
    types="float",
    formula="out = self * pi / 180",
)
_function(
    "rad2deg",
    lambda grad: grad * (180 / math.pi),
    """Radians as degrees.

    >>> torch.rad2deg(torch.tensor([torch.pi, torch.pi / 2]))
    tensor([180.,  90.])""",
    expression=lambda self: self * (180 / math.pi),
    types="float",
    formula="out = self * 180 / pi",
)

# ---------------------------------------------------------------- rounding and parts

for _name, _doc, _formula, _shown in (
    ("floor", "The greatest whole number that is not above self.", "max {n: n <= self}", "-3.,  2., -1.,  2."),
    ("ceil", "The least whole number that is not below self.", "min {n: n >= self}", "-2.,  3., -0.,  2."),
    ("trunc", "The number without its fraction.", "sign(self) * floor(|self|)", "-2.,  2., -0.,  2."),
    (
        "round",
        "The nearest whole number; halves go to the even one.",
        "floor(self + 1/2), or even",
        "-2.,  2., -0.,  2.",
    ),
):
    _function(
        _name,
        _zeros,
        f"{_doc} Integers stay.\n\n>>> torch.{_name}(torch.tensor([-2.5, 2.5, -0.5, 2.0]))\ntensor([{_shown}])",
        formula=f"out = {_formula}",
        types="int float",
        compute="promote",
        aliases={"trunc": "fix"}.get(_name, ""),
    )
_function(
    "frac",
    lambda grad: grad,
    """The fraction of a number, with its sign.

    >>> torch.frac(torch.tensor([2.75, -2.75]))
    tensor([ 0.7500, -0.7500])""",
    types="float",
    compute="promote",
    formula="out = self - trunc(self)",
)


@composite(
    "special_round(Tensor self, *, int decimals=0) -> Tensor",
    public="special.round",
    method=False,
    out=True,
    formula="out = round(self * 10^decimals) / 10^decimals",
)
def _special_round(self: Any, decimals: int = 0) -> Any:
    """The nearest number with that many decimals, halves to the even one; floating point only
    (NotImplementedError).

    Shapes: self of any shape; the result has the same.

    >>> torch.special.round(torch.tensor([0.5, 1.5, 2.75]))
    tensor([0., 2., 3.])
    """
    if not self.is_floating_point():
        raise NotImplementedError(f'"round" not implemented for {self.dtype}; expected a floating-point dtype')
    return self.round(decimals=decimals)


@composite(
    "round.decimals(Tensor self, *, int decimals) -> Tensor",
    inplace=True,
    out=True,
    formula="out = round(self * 10^decimals) / 10^decimals",
)
def _round_decimals(self: Any, decimals: int) -> Any:
    """The nearest number with that many decimals; with negative decimals the nearest ten, hundred, ...

    >>> torch.round(torch.tensor([1234.5678]), decimals=-2)
    tensor([1200.])
    """
    if decimals == 0:
        return self.round()
    scale = 10.0 ** abs(decimals)
    return (self * scale).round() / scale if decimals > 0 else (self / scale).round() * scale


elementwise(
    "copysign(Tensor self, Tensor|Scalar other) -> Tensor",
    lambda self, other: copysign(self, other),
    types="float",
    compute="float",
    inplace=True,
    derivative={
        "self": lambda grad, self, result: rl.where(self == 0, 0, grad * (result / self)),
        "other": _zeros,
    },
    formula="out = |self| if other >= +0 else -|self|",
    doc="""The absolute value of self with the sign of other, which zeros have too.

    >>> torch.copysign(torch.tensor([1.0, -2.0, 3.0]), torch.tensor([-0.0, 0.0, -5.0]))
    tensor([-1.,  2., -3.])""",
)
elementwise(
    "nextafter(Tensor self, Tensor other) -> Tensor",
    lambda self, other: nextafter(self, other),
    types="float",
    inplace=True,
    derivative={
        "self": lambda grad, self, other: rl.where(self == other, 0, grad),
        "other": lambda grad: _zeros(grad),
    },
    formula="out = the nearest number to self between self and other",
    doc="""The next number of the dtype from self in the direction of other.

    >>> torch.nextafter(torch.tensor(1.0), torch.tensor(2.0)) - 1 == torch.finfo(torch.float32).eps
    tensor(True)""",
)
elementwise(
    "heaviside(Tensor self, Tensor values) -> Tensor",
    lambda self, values: heaviside(self, values),
    types=REAL,
    inplace=True,
    formula="out = 0 if self < 0, 1 if self > 0, values if self = 0",
    doc="""The step function: 0 below 0, 1 above, and values at 0.

    RuntimeError unless both have one dtype.

    >>> torch.heaviside(torch.tensor([-1.5, 0.0, 2.0]), torch.tensor(0.5))
    tensor([0.0000, 0.5000, 1.0000])""",
    options={"checked": True},
)
_function(
    "_conj_physical",
    lambda grad: _conj(grad),
    "The complex conjugate.",
    expression=lambda self: conj(self),
    types=ALL,
    compute="promote",
)
native(
    "conj_physical(Tensor self) -> Tensor",
    options={"composite": True},
    inplace=True,
    formula="out = Re(self) - Im(self) i",
    doc="""The complex conjugate, in memory of its own; the tensor itself when it is real.

    Shapes: self of any shape; the result has the same.

    >>> torch.conj_physical(torch.tensor([1 + 2j, 3]))
    tensor([1.-2.j, 3.-0.j])""",
)
_function(
    "angle",
    lambda grad, self: (
        rl.where(self == 0, 0, self * grad * 1j / (self.abs() * self.abs())) if self.is_complex() else _zeros(grad)
    ),
    """The angle of a complex number from the real axis, in radians within [-pi, pi]; of real numbers pi below
    0, else 0.

    >>> torch.angle(torch.tensor([1j, 1 + 1j, -1]))
    tensor([1.5708, 0.7854, 3.1416])""",
    result="real",
    inplace=False,
    options={"fuse": False},
    formula="out = atan2(Im(self), Re(self))",
)

# ---------------------------------------------------------------- comparisons and logic

for _name, _aliases, _types, _relation, _shown in (
    ("eq", "", ALL, "equal to", "False,  True, False"),
    ("ne", "not_equal", ALL, "different from", " True, False,  True"),
    ("lt", "less", REAL, "less than", " True, False, False"),
    ("le", "less_equal", REAL, "less than or equal to", " True,  True, False"),
    ("gt", "greater", REAL, "greater than", "False, False, False"),
    ("ge", "greater_equal", REAL, "greater than or equal to", "False,  True, False"),
):
    _sign = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}[_name]
    elementwise(
        f"{_name}(Tensor self, Tensor|Scalar other) -> Tensor",
        lambda self, other, _f=FUNCTIONS[_name]: _f(self, other),
        types=_types,
        result="bool",
        inplace=True,
        public=_names(_name, _aliases),
        formula=f"out = (self {_sign} other)",
        doc=f"""Whether self is {_relation} other, element by element; also the operator {_sign}. NaN equals nothing.

        >>> torch.{_name}(torch.tensor([1.0, 2.0, float("nan")]), 2)
        tensor([{_shown}])""",
    )
for _name, _which, _shown, _bits in (
    ("and", "both numbers are", "False, False,  True", "tensor([4, 8])"),
    ("or", "one of two numbers is", "False,  True,  True", "tensor([ 7, 12])"),
    ("xor", "exactly one of two numbers is", "False,  True, False", "tensor([3, 4])"),
):
    elementwise(
        f"logical_{_name}(Tensor self, Tensor other) -> Tensor",
        lambda self, other, _f=FUNCTIONS[f"logical_{_name}"]: _f(self, other),
        types="bool int float complex",
        result="bool",
        inplace=True,
        formula=f"out = (self != 0) {_name} (other != 0)",
        doc=f"""Whether {_which} different from 0.

        >>> torch.logical_{_name}(torch.tensor([0, 0, 2]), torch.tensor([0, 1, 1]))
        tensor([{_shown}])""",
    )
    elementwise(
        f"bitwise_{_name}(Tensor|Scalar self, Tensor|Scalar other) -> Tensor",
        lambda self, other, _f=FUNCTIONS[f"bitwise_{_name}"]: _f(self, other),
        types="bool int",
        inplace=True,
        formula=f"out = self {_name} other, in every bit",
        doc=f"""The bits of two whole numbers combined by {_name}.

        >>> torch.bitwise_{_name}(torch.tensor([0b101, 0b1100]), torch.tensor([0b110, 0b1000]))
        {_bits}""",
    )
_function(
    "logical_not",
    None,
    """Whether a number is 0.

    >>> torch.logical_not(torch.tensor([0.0, 0.5, -2.0]))
    tensor([ True, False, False])""",
    types="bool int float complex",
    compute="promote",
    result="bool",
    formula="out = (self = 0)",
)
_function(
    "bitwise_not",
    None,
    """All bits inverted, of bool the negation.

    >>> torch.bitwise_not(torch.tensor([0, 5, -1]))
    tensor([-1, -6,  0])""",
    types="bool int",
    compute="promote",
    formula="out = -self - 1",
)
for _name, _doc, _formula, _shown in (
    ("left", "The bits of a whole number moved up; zeros come in.", "self * 2^other", " 28, -28"),
    ("right", "The bits of a whole number moved down; the sign comes in.", "floor(self / 2^other)", " 1, -2"),
):
    elementwise(
        f"bitwise_{_name}_shift(Tensor|Scalar self, Tensor|Scalar other) -> Tensor",
        lambda self, other, _f=FUNCTIONS[f"bitwise_{_name}_shift"]: _f(self, other),
        types="int",
        inplace=True,
        formula=f"out = {_formula}",
        doc=f"{_doc}\n\n>>> torch.bitwise_{_name}_shift(torch.tensor([7, -7]), 2)\ntensor([{_shown}])",
    )
for _name, _types, _doc, _formula, _shown in (
    ("isnan", ALL, "is NaN; of complex numbers, in one of its parts", "self != self", " True, False, False, False"),
    (
        "isinf",
        ALL,
        "is infinite; of complex numbers, in one of its parts",
        "|self| = inf",
        "False,  True,  True, False",
    ),
    ("isfinite", ALL, "is neither infinite nor NaN", "|self| < inf", "False, False, False,  True"),
    ("isposinf", REAL, "is positive infinity", "self = inf", "False,  True, False, False"),
    ("isneginf", REAL, "is negative infinity", "self = -inf", "False, False,  True, False"),
    ("signbit", REAL, "has a minus sign, as -0.0 has", "copysign(1, self) < 0", "False, False,  True,  True"),
):
    _function(
        _name,
        None,
        f"""Whether a number {_doc}.

        >>> torch.{_name}(torch.tensor([float("nan"), float("inf"), -float("inf"), -0.0]))
        tensor([{_shown}])""",
        formula=f"out = ({_formula})",
        types=_types,
        compute="promote",
        result="bool",
        inplace=False,
    )

# ---------------------------------------------------------------- choice

elementwise(
    "where(Tensor condition, Tensor|Scalar self, Tensor|Scalar other) -> Tensor",
    lambda condition, self, other: where(condition, self, other),
    types=ALL,
    method=False,
    derivative={
        "self": lambda grad, condition: rl.where(condition, grad, 0),
        "other": lambda grad, condition: rl.where(condition, 0, grad),
    },
    options={"checked": True, "fuse": False},
    formula="out = self if condition else other",
    doc="""self where the condition holds, other elsewhere. The gradient goes to the one that was taken.

    The condition is bool (or uint8); self and other have their promoted dtype in the result.

    >>> x = torch.tensor([-1.0, 2.0])
    >>> torch.where(x > 0, x, 0.0)
    tensor([0., 2.])""",
)
composite(
    "_where_method(Tensor self, Tensor condition, Tensor|Scalar other) -> Tensor",
    public="Tensor.where",
    method=False,
    formula="out = self if condition else other",
    doc="""self where the condition holds, other elsewhere.

    Shapes: condition, self and other broadcast; the result has their common shape.

    >>> torch.tensor([1, 2, 3]).where(torch.tensor([True, False, True]), 0)
    tensor([1, 0, 3])""",
)(lambda self, condition, other: rl.where(condition, self, other))
composite(
    "where.condition(Tensor condition) -> Any",
    method=False,
    doc="""The indices of the elements that are not 0, as nonzero with as_tuple=True gives them: one vector for
    each dimension.

    >>> torch.where(torch.tensor([[0, 1], [1, 0]]))
    (tensor([0, 1]), tensor([1, 0]))""",
)(lambda condition: rl.nonzero(condition, as_tuple=True))


for _name, _wins, _loses in (("maximum", "gt", "lt"), ("minimum", "lt", "gt")):
    elementwise(
        f"{_name}(Tensor self, Tensor other) -> Tensor",
        lambda self, other, _f=FUNCTIONS[_name]: _f(self, other),
        types=REAL,
        derivative={
            "self": lambda grad, self, other, _loses=_loses: rl.where(
                getattr(self, _loses)(other), 0, rl.where(self == other, grad * 0.5, grad)
            ),
            "other": lambda grad, self, other, _wins=_wins: rl.where(
                getattr(self, _wins)(other), 0, rl.where(self == other, grad * 0.5, grad)
            ),
        },
        formula=f"out = {_name[:3]}(self, other)",
        doc=f"""The {"larger" if _wins == "gt" else "smaller"} of two numbers; NaN when one is NaN.

        Equal numbers share the gradient.

        >>> torch.{_name}(torch.tensor([1.0, 4.0, float("nan")]), torch.tensor([2.0, 3.0, 5.0]))
        tensor([{"2., 4." if _wins == "gt" else "1., 3."}, nan])""",
    )
for _name, _compare in (("fmax", "ge"), ("fmin", "le")):
    elementwise(
        f"{_name}(Tensor self, Tensor other) -> Tensor",
        lambda self, other, _f=FUNCTIONS[_name]: _f(self, other),
        types=REAL,
        derivative={
            "self": lambda grad, self, other, _c=_compare: rl.where(
                getattr(self, _c)(other).logical_or(other.isnan()), grad, 0
            ),
            "other": lambda grad, self, other, _c=_compare: rl.where(
                getattr(self, _c)(other).logical_or(other.isnan()), 0, grad
            ),
        },
        formula=f"out = {_name[1:]}(self, other)",
        doc=f"""The {"larger" if _name == "fmax" else "smaller"} of two numbers, and the other when one is NaN.

        >>> torch.{_name}(torch.tensor([1.0, 4.0, float("nan")]), torch.tensor([2.0, 3.0, 5.0]))
        tensor([{"2., 4." if _name == "fmax" else "1., 3."}, 5.])""",
    )
# Limits: NaN in self stays, and a NaN limit gives NaN.
elementwise(
    "clamp_min(Tensor self, Tensor|Scalar min) -> Tensor",
    lambda self, min: maximum(self, min),
    types=REAL,
    inplace=True,
    derivative={
        "self": lambda grad, self, min: rl.where(self >= min, grad, 0),
        "min": lambda grad, self, min: rl.where(self < min, grad, 0),
    },
    formula="out = max(self, min)",
    doc="""Numbers below min become min.

    >>> torch.clamp_min(torch.tensor([-1.0, 2.0]), 0)
    tensor([0., 2.])""",
)
elementwise(
    "clamp_max(Tensor self, Tensor|Scalar max) -> Tensor",
    lambda self, max: minimum(self, max),
    types=REAL,
    inplace=True,
    derivative={
        "self": lambda grad, self, max: rl.where(self <= max, grad, 0),
        "max": lambda grad, self, max: rl.where(self > max, grad, 0),
    },
    formula="out = min(self, max)",
    doc="""Numbers above max become max.

    >>> torch.clamp_max(torch.tensor([-1.0, 2.0]), 0)
    tensor([-1.,  0.])""",
)
elementwise(
    "_clamp(Tensor self, Tensor|Scalar min, Tensor|Scalar max) -> Tensor",
    lambda self, min, max: minimum(maximum(self, min), max),
    types="int float",
    inplace=True,
    derivative={
        "self": lambda grad, self, min, max: rl.where(rl.logical_and(self >= min, self <= max), grad, 0),
        "min": lambda grad, self, min, max: rl.where(rl.logical_and(self < min, min < max), grad, 0),
        "max": lambda grad, self, min, max: rl.where(rl.logical_or(self > max, max < min), grad, 0),
    },
    doc="self limited to [min, max]; max where min > max.",
)
native(
    "clamp(Tensor self, Tensor|Scalar? min=None, Tensor|Scalar? max=None) -> Tensor",
    options={"composite": True},
    inplace=True,
    public=_names("clamp", "clip"),
    formula="out = min(max(self, min), max)",
    doc="""Numbers limited to [min, max]; either limit may be missing. Where min > max the result is max; NaN
    stays.

    RuntimeError when both limits are missing.

    Shapes: self and limits that are tensors broadcast; the result has their common shape.

    >>> torch.clamp(torch.tensor([-2, 0, 5]), min=-1, max=3)
    tensor([-1,  0,  3])""",
)
for _name, _doc, _formula, _shown in (
    ("gcd", "The greatest common divisor; not negative.", "max {d: d divides self and other}", "6, 1, 5"),
    ("lcm", "The least common multiple; not negative.", "|self * other| / gcd(self, other)", "36, 35,  0"),
):
    elementwise(
        f"{_name}(Tensor self, Tensor other) -> Tensor",
        lambda self, other, _f=FUNCTIONS[_name]: _f(self, other),
        types="int",
        inplace=True,
        formula=f"out = {_formula}",
        doc=f"{_doc}\n\n>>> torch.{_name}(torch.tensor([12, 5, 0]), torch.tensor([18, 7, 5]))\ntensor([{_shown}])",
    )


@composite(
    "nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor",
    inplace=True,
    out=True,
    formula="out = self if |self| < inf, else its replacement",
)
def _nan_to_num(self: Any, nan: float | None = None, posinf: float | None = None, neginf: float | None = None) -> Any:
    """Numbers in place of NaN and the infinities: nan (0 by default), posinf and neginf (the dtype's largest
    and smallest).

    Shapes: self of any shape; the result has the same.

    >>> torch.nan_to_num(torch.tensor([float("nan"), float("-inf"), 1.0]), neginf=-9.0)
    tensor([ 0., -9.,  1.])
    """
    if not self.dtype.is_floating_point:
        return self.clone()
    limits = rl.finfo(self.dtype)
    x = rl.where(self.isnan(), 0.0 if nan is None else nan, self)
    x = rl.where(self.isposinf(), limits.max if posinf is None else posinf, x)
    return rl.where(self.isneginf(), limits.min if neginf is None else neginf, x)


fuse_derivatives(TABLE)
