"""Elementwise exponentials and logarithms, trigonometric and hyperbolic functions."""

from __future__ import annotations

import math
from typing import Any

from ._expression import atan2, exp, exp2, hypot, isinf, isnan, log, log1p, maximum, real, sin, where
from ._fused import fuse_derivatives
from ._record import TABLE, composite, elementwise, rl
from .elementwise import _conj, _function, _names

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

fuse_derivatives(TABLE)
