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

ALL = "bool int float complex"
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
    doc="The sum self + alpha * other.",
)
elementwise(
    "sub(Tensor|Scalar self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor",
    lambda self, other, alpha: self - other * alpha,
    types="int float complex",
    inplace=True,
    public=_names("sub", "subtract"),
    derivative={
        "self": lambda grad: grad,
        "other": lambda grad, alpha: -grad if alpha == 1 else grad * _conj(-alpha),
    },
    options={"checked": True, "weights": "alpha"},
    doc="The difference self - alpha * other.",
)
elementwise(
    "rsub(Tensor self, Tensor|Scalar other, Scalar alpha=1) -> Tensor",
    lambda self, other, alpha: other - self * alpha,
    types="int float complex",
    method=False,
    derivative={
        "self": lambda grad, alpha: -grad if alpha == 1 else grad * _conj(-alpha),
        "other": lambda grad: grad,
    },
    options={"checked": True, "weights": "alpha"},
    doc="The difference other - alpha * self.",
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
    doc="The product self * other.",
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
    doc="The quotient self / other; of integers too it is a float.",
)
elementwise(
    "floor_divide(Tensor|Scalar self, Tensor|Scalar other) -> Tensor",
    lambda self, other: self // other,
    types="int float",
    options={"wide": ("other",)},
    inplace=True,
    doc="The whole number below self / other.",
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
    doc='The quotient, rounded towards zero with rounding_mode="trunc", down with "floor".',
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
    doc="What is left of self after taking away whole multiples of other; it has the sign of other.",
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
    doc="What is left of self after taking away whole multiples of other; it has the sign of self.",
)
_function(
    "neg",
    lambda grad: -grad,
    "-self.",
    types="int float complex",
    compute="promote",
    aliases="negative",
    options={"refusal": "RuntimeError"},
)


@composite("positive(Tensor self) -> Tensor")
def _positive(self: Any) -> Any:
    """self; RuntimeError for bool."""
    if self.dtype == rl.bool:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return self


_function(
    "abs",
    lambda grad, self: grad * self.sgn(),
    "The absolute value; of a complex number a real one.",
    types="int float complex",
    compute="promote",
    result="real",
    aliases="absolute",
    options={"fuse": False},
)
_function("sign", _zeros, "-1, 0 or 1 by the sign; NaN has none and stays NaN.", types=REAL, compute="promote")
_function(
    "sgn",
    lambda grad, self, result: (
        rl.where(self == 0, 0, (grad - result * rl.view_as_real(grad * _conj(result)).select(-1, 0)) / self.abs())
        if self.is_complex()
        else _zeros(grad)
    ),
    "self / |self|, and 0 at 0.",
    types=ALL,
    compute="promote",
    options={"fuse": False},
)
_function(
    "square",
    lambda grad, self: grad * (_conj(self) * 2),
    "self * self; of bool in int64.",
    types="int float complex",
    compute="number",
)
_function("reciprocal", lambda grad, result: -grad * _conj(result * result), "1 / self.")
_function("sqrt", lambda grad, result: grad / (2 * _conj(result)), "The square root.")
_function("rsqrt", lambda grad, result: -0.5 * grad * _conj(result * result * result), "1 / sqrt(self).")


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
    doc="self to the power of the exponent.",
)


@composite("float_power(Tensor|Scalar self, Tensor|Scalar exponent) -> Tensor", method=True, out=True)
def _float_power(self: Any, exponent: Any) -> Any:
    """The power computed in float64, or complex128."""
    if not (hasattr(self, "to") or hasattr(exponent, "to")):
        raise TypeError("float_power(): expected a tensor among self and exponent, got two numbers")
    complex_ = any(
        isinstance(x, complex) or getattr(getattr(x, "dtype", None), "is_complex", False) for x in (self, exponent)
    )
    dtype = rl.complex128 if complex_ else rl.float64
    base, power = (x.to(dtype) if hasattr(x, "to") else x for x in (self, exponent))
    if not hasattr(base, "to"):
        base = rl.full((), base, dtype=dtype)
    return rl.pow(base, power)


@composite("_float_power_inplace(Tensor self, Tensor|Scalar exponent) -> Tensor", public="Tensor.float_power_")
def _float_power_inplace(self: Any, exponent: Any) -> Any:
    """float_power written into self, whose dtype must be that of the result."""
    # A copy, since what is saved for backward must outlive the write.
    result = rl.float_power(self.clone() if rl.is_grad_enabled() else self, exponent)
    if result.dtype != self.dtype:
        raise RuntimeError(
            f"float_power_: the base has the wrong dtype; expected {result.dtype}, that of the result, got {self.dtype}"
        )
    return self.copy_(result)


elementwise(
    "addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    lambda self, tensor1, tensor2, value: self + tensor1 * value * tensor2,
    types="int float complex",
    inplace=True,
    derivative={
        "self": lambda grad: grad,
        "tensor1": lambda grad, tensor2, value: grad * _conj(tensor2 if value == 1 else tensor2 * value),
        "tensor2": lambda grad, tensor1, value: grad * _conj(tensor1 if value == 1 else tensor1 * value),
    },
    options={"fuse": False},
    doc="self + value * tensor1 * tensor2.",
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
    doc="self + value * tensor1 / tensor2.",
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
    doc="self + weight * (end - self), exactly end at weight 1.",
)

# ---------------------------------------------------------------- exponentials and logarithms

_function("exp", lambda grad, result: grad * _conj(result), "e to the power of self.")
_function(
    "exp2", lambda grad, result: grad * _conj(result * math.log(2)), "2 to the power of self.", aliases="special.exp2"
)
_function(
    "expm1", lambda grad, result: grad * _conj(result + 1), "exp(self) - 1, accurate near 0.", aliases="special.expm1"
)
_function("log", lambda grad, self: grad / _conj(self), "The natural logarithm.")
_function("log2", lambda grad, self: grad / _conj(self * math.log(2)), "The logarithm to base 2.")
_function("log10", lambda grad, self: grad / _conj(self * math.log(10)), "The logarithm to base 10.")
_function(
    "log1p", lambda grad, self: grad / _conj(self + 1), "log(1 + self), accurate near 0.", aliases="special.log1p"
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
    doc="log(exp(self) + exp(other)).",
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
    doc="log2(2 ** self + 2 ** other).",
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
    doc="self * log(other), and 0 where self is 0.",
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
    doc="self * log1p(other), and 0 where self is 0.",
)


@composite("ldexp(Tensor self, Tensor other) -> Tensor", inplace=True, out=True)
def _ldexp(self: Any, other: Any) -> Any:
    """self * 2 ** other."""
    return self * rl.pow(2.0, other)


# ---------------------------------------------------------------- trigonometric and hyperbolic functions

_function("sin", lambda grad, self: grad * _conj(self.cos()), "The sine.")
_function("cos", lambda grad, self: grad * -_conj(self.sin()), "The cosine.")
_function("tan", lambda grad, result: grad * _conj(1 + result * result), "The tangent.")
_function("asin", lambda grad, self: grad * _conj((1 - self * self).rsqrt()), "The inverse sine.", aliases="arcsin")
_function("acos", lambda grad, self: grad * -_conj((1 - self * self).rsqrt()), "The inverse cosine.", aliases="arccos")
_function("atan", lambda grad, self: grad / _conj(self * self + 1), "The inverse tangent.", aliases="arctan")
_function("sinh", lambda grad, self: grad * _conj(self.cosh()), "The hyperbolic sine.")
_function("cosh", lambda grad, self: grad * _conj(self.sinh()), "The hyperbolic cosine.")
_function("tanh", lambda grad, result: grad * _conj(1 - result * result), "The hyperbolic tangent.")
_function(
    "asinh",
    lambda grad, self: grad * _conj((self * self + 1).rsqrt()),
    "The inverse hyperbolic sine.",
    aliases="arcsinh",
)
_function(
    "acosh",
    lambda grad, self: grad * _conj((self - 1).rsqrt() * (self + 1).rsqrt()),
    "The inverse hyperbolic cosine.",
    aliases="arccosh",
)
_function(
    "atanh", lambda grad, self: grad / _conj(1 - self * self), "The inverse hyperbolic tangent.", aliases="arctanh"
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
    doc="The angle of the point (other, self), within [-pi, pi]. At the origin its gradient is 0.",
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
    doc="sqrt(self ** 2 + other ** 2), without overflow on the way.",
)
_function(
    "sinc",
    lambda grad, self: rl.where(
        self == 0,
        0,
        grad * ((math.pi * self * (math.pi * self).cos() - (math.pi * self).sin()) / (math.pi * self * self)).conj(),
    ),
    "sin(pi self) / (pi self), and 1 at 0.",
    expression=lambda self: where(self == 0, 1, sin(self * math.pi) / (self * math.pi)),
    aliases="special.sinc",
)
_function(
    "deg2rad",
    lambda grad: grad * (math.pi / 180),
    "Degrees as radians.",
    expression=lambda self: self * (math.pi / 180),
    types="float",
)
_function(
    "rad2deg",
    lambda grad: grad * (180 / math.pi),
    "Radians as degrees.",
    expression=lambda self: self * (180 / math.pi),
    types="float",
)

# ---------------------------------------------------------------- rounding and parts

for _name, _doc in (
    ("floor", "The whole number below."),
    ("ceil", "The whole number above."),
    ("trunc", "The number without its fraction."),
    ("round", "The nearest whole number; halves go to the even one."),
):
    _function(
        _name,
        _zeros,
        _doc,
        types="int float",
        compute="promote",
        aliases={"trunc": "fix"}.get(_name, ""),
    )
_function("frac", lambda grad: grad, "The fraction, with the sign of self.", types="float", compute="promote")


@composite("special_round(Tensor self, *, int decimals=0) -> Tensor", public="special.round", method=False, out=True)
def _special_round(self: Any, decimals: int = 0) -> Any:
    """round of floating-point numbers; NotImplementedError for integers."""
    if not self.is_floating_point():
        raise NotImplementedError(f'"round" not implemented for {self.dtype}; expected a floating-point dtype')
    return self.round(decimals=decimals)


@composite("round.decimals(Tensor self, *, int decimals) -> Tensor", inplace=True, out=True)
def _round_decimals(self: Any, decimals: int) -> Any:
    """Rounded to that many decimals; to tens, hundreds, ... when negative."""
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
    doc="|self| with the sign of other.",
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
    doc="The next number from self in the direction of other.",
)
elementwise(
    "heaviside(Tensor self, Tensor values) -> Tensor",
    lambda self, values: heaviside(self, values),
    types=REAL,
    inplace=True,
    doc="0 below 0, 1 above, and values at 0.",
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
    doc="The complex conjugate, in memory of its own; the tensor itself when it is real.",
)
_function(
    "angle",
    lambda grad, self: (
        rl.where(self == 0, 0, self * grad * 1j / (self.abs() * self.abs())) if self.is_complex() else _zeros(grad)
    ),
    "The angle of a complex number; pi for negative real ones.",
    result="real",
    inplace=False,
    options={"fuse": False},
)

# ---------------------------------------------------------------- comparisons and logic

for _name, _aliases, _types, _doc in (
    ("eq", "", ALL, "self == other."),
    ("ne", "not_equal", ALL, "self != other."),
    ("lt", "less", REAL, "self < other."),
    ("le", "less_equal", REAL, "self <= other."),
    ("gt", "greater", REAL, "self > other."),
    ("ge", "greater_equal", REAL, "self >= other."),
):
    elementwise(
        f"{_name}(Tensor self, Tensor|Scalar other) -> Tensor",
        lambda self, other, _f=FUNCTIONS[_name]: _f(self, other),
        types=_types,
        result="bool",
        inplace=True,
        public=_names(_name, _aliases),
        doc=_doc,
    )
for _name, _doc in (("and", "Both are nonzero."), ("or", "One is nonzero."), ("xor", "Exactly one is nonzero.")):
    elementwise(
        f"logical_{_name}(Tensor self, Tensor other) -> Tensor",
        lambda self, other, _f=FUNCTIONS[f"logical_{_name}"]: _f(self, other),
        types=ALL,
        result="bool",
        inplace=True,
        doc=_doc,
    )
    elementwise(
        f"bitwise_{_name}(Tensor|Scalar self, Tensor|Scalar other) -> Tensor",
        lambda self, other, _f=FUNCTIONS[f"bitwise_{_name}"]: _f(self, other),
        types="bool int",
        inplace=True,
        doc=f"self {_name} other, bit by bit.",
    )
_function("logical_not", None, "Where self is 0.", types=ALL, compute="promote", result="bool")
_function("bitwise_not", None, "All bits inverted.", types="bool int", compute="promote")
for _name, _doc in (
    ("left", "self with its bits moved up."),
    ("right", "self with its bits moved down, the sign kept."),
):
    elementwise(
        f"bitwise_{_name}_shift(Tensor|Scalar self, Tensor|Scalar other) -> Tensor",
        lambda self, other, _f=FUNCTIONS[f"bitwise_{_name}_shift"]: _f(self, other),
        types="int",
        inplace=True,
        doc=_doc,
    )
for _name, _types, _doc in (
    ("isnan", ALL, "Where self is not a number."),
    ("isinf", ALL, "Where self is infinite."),
    ("isfinite", ALL, "Where self is neither infinite nor NaN."),
    ("isposinf", REAL, "Where self is inf."),
    ("isneginf", REAL, "Where self is -inf."),
    ("signbit", REAL, "Where the sign is negative, that of zero too."),
):
    _function(_name, None, _doc, types=_types, compute="promote", result="bool", inplace=False)

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
    doc="self where the condition holds, other elsewhere.",
)
composite(
    "_where_method(Tensor self, Tensor condition, Tensor|Scalar other) -> Tensor",
    public="Tensor.where",
    method=False,
    doc="self where the condition is true, other elsewhere.",
)(lambda self, condition, other: rl.where(condition, self, other))
composite("where.condition(Tensor condition) -> Any", method=False)(
    lambda condition: rl.nonzero(condition, as_tuple=True)
)


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
        doc=f"The {'larger' if _wins == 'gt' else 'smaller'} of the two; NaN when one is NaN.",
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
        doc=f"The {'larger' if _name == 'fmax' else 'smaller'} of the two, and the other when one is NaN.",
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
    doc="self, but at least min.",
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
    doc="self, but at most max.",
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
    doc="self limited to [min, max]; either may be missing.",
)
for _name, _doc in (("gcd", "The greatest common divisor."), ("lcm", "The least common multiple.")):
    elementwise(
        f"{_name}(Tensor self, Tensor other) -> Tensor",
        lambda self, other, _f=FUNCTIONS[_name]: _f(self, other),
        types="int",
        inplace=True,
        doc=_doc,
    )


@composite(
    "nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor", inplace=True, out=True
)
def _nan_to_num(self: Any, nan: float | None = None, posinf: float | None = None, neginf: float | None = None) -> Any:
    """self with NaN replaced by `nan` (0), infinities by `posinf` and `neginf` (the dtype's largest and smallest)."""
    if not self.dtype.is_floating_point:
        return self.clone()
    limits = rl.finfo(self.dtype)
    x = rl.where(self.isnan(), 0.0 if nan is None else nan, self)
    x = rl.where(self.isposinf(), limits.max if posinf is None else posinf, x)
    return rl.where(self.isneginf(), limits.min if neginf is None else neginf, x)


fuse_derivatives(TABLE)
