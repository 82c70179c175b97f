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
    copysign,
    floor,
    fmod,
    to_bfloat16,
    to_float16,
    trunc,
    trunc_divide,
    where,
)
from ._fused import fuse_derivatives
from ._record import TABLE, composite, elementwise, native, refused, rl

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
    options={"wide": ("other",), "checked": True, "fuse": False},
    inplace=True,
    derivative=refused("floor_divide", "self", "other"),
    formula="out = floor(self / other)",
    doc="""The greatest whole number that is not above the quotient.

    RuntimeError for integers divided by 0. Without derivative; div with rounding_mode="floor" has the derivative 0.

    >>> torch.floor_divide(torch.tensor([7, -7]), 2)
    tensor([ 3, -4])""",
)
elementwise(
    "_div_trunc(Tensor|Scalar self, Tensor|Scalar other) -> Tensor",
    lambda self, other: trunc_divide(self, other),
    types="int float",
    inplace=True,
    derivative={"self": _zeros, "other": _zeros},
    doc="The quotient without its fraction.",
)
elementwise(
    "_div_floor(Tensor|Scalar self, Tensor|Scalar other) -> Tensor",
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
        f"_div_trunc_{_dtype}(Tensor|Scalar self, Tensor|Scalar other) -> Tensor",
        lambda self, other, _rounded=_rounded: trunc(_rounded(self / other)),
        types="float32",
        derivative={"self": _zeros, "other": _zeros},
        doc=f"The quotient, rounded to {_dtype}, without its fraction.",
    )
    elementwise(
        f"_div_floor_{_dtype}(Tensor|Scalar self, Tensor|Scalar other) -> Tensor",
        _floor_in_steps(_rounded),
        types="float32",
        derivative={"self": _zeros, "other": _zeros},
        doc=f"The whole number below the quotient, each step rounded to {_dtype}.",
    )
native(
    "div.mode(Tensor|Scalar self, Tensor|Scalar other, *, str? rounding_mode) -> Tensor",
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


# What pow is for the exponents 3 and -2 (elementwise_power in native/cpu/elementwise_table.cpp).
elementwise(
    "_cube(Tensor self) -> Tensor",
    lambda self: self * self * self,
    types="float",
    method=False,
    derivative={"self": lambda grad, self: grad * (3 * self * self)},
    doc="The third power.",
)
elementwise(
    "_reciprocal_square(Tensor self) -> Tensor",
    lambda self: 1 / (self * self),
    types="float",
    method=False,
    derivative={"self": lambda grad, self, result: grad * (-2 * result / self)},
    doc="The power of -2.",
)
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
    compute="tensor",
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
    compute="tensor",
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
    compute="tensor",
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

fuse_derivatives(TABLE)
