"""Bessel, Airy and incomplete gamma functions, the normal distribution's inverse, orthogonal polynomials.

They are computed in float64, one number at a time (native/cpu/special_math.cpp names the formulas).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ._expression import FUNCTIONS
from ._fused import fuse_derivatives
from ._record import TABLE, composite, elementwise, rl

_Formula = Callable[..., Any]


def _special(name: str, function: str, doc: str, derivative: _Formula | None = None, **fields: Any) -> None:
    elementwise(
        f"special_{name}(Tensor self) -> Tensor",
        lambda self: FUNCTIONS[function](self),
        **{
            "types": "wide",
            "compute": "float",
            "public": f"special.{name}",
            "method": False,
            "derivative": {"self": derivative} if derivative else {},
            "options": {"fuse": False},
            "doc": doc,
            **fields,
        },
    )


def _i1_backward(grad: Any, self: Any, result: Any) -> Any:
    zero = self == 0
    return grad * rl.where(zero, 0.5, self.i0() - result / rl.where(zero, 1, self))


def _i1e_backward(grad: Any, self: Any, result: Any) -> Any:
    zero = self == 0
    return grad * rl.where(zero, 0.5, rl.special_i0e(self) - result * (self.sgn() + 1 / rl.where(zero, 1, self)))


elementwise(
    "i0(Tensor self) -> Tensor",
    lambda self: FUNCTIONS["i0"](self),
    types="float",
    compute="float",
    inplace=True,
    public="i0 special.i0 Tensor.i0",
    derivative={"self": lambda grad, self: grad * rl.special_i1(self)},
    options={"fuse": False},
    doc="The modified Bessel function of the first kind of order 0.",
)
_special(
    "i0e",
    "i0e",
    "exp(-|self|) i0(self).",
    lambda grad, self, result: grad * (rl.special_i1e(self) - self.sgn() * result),
    types="float",
)
_special("i1", "i1", "The modified Bessel function of the first kind of order 1.", _i1_backward, types="float")
_special("i1e", "i1e", "exp(-|self|) i1(self).", _i1e_backward, types="float")
_special(
    "ndtri",
    "ndtri",
    "The inverse of ndtr: NaN outside [0, 1].",
    lambda grad, result: grad * ((result * result * 0.5).exp() * math.sqrt(2 * math.pi)),
)
for _name, _function, _doc in (
    ("airy_ai", "airy_ai", "Airy's function Ai."),
    ("bessel_j0", "j0", "The Bessel function of the first kind of order 0."),
    ("bessel_j1", "j1", "The Bessel function of the first kind of order 1."),
    ("bessel_y0", "y0", "The Bessel function of the second kind of order 0; NaN below 0."),
    ("bessel_y1", "y1", "The Bessel function of the second kind of order 1; NaN below 0."),
    ("modified_bessel_i0", "i0", "The modified Bessel function of the first kind of order 0."),
    ("modified_bessel_i1", "i1", "The modified Bessel function of the first kind of order 1."),
    ("modified_bessel_k0", "k0", "The modified Bessel function of the second kind of order 0; NaN below 0."),
    ("modified_bessel_k1", "k1", "The modified Bessel function of the second kind of order 1; NaN below 0."),
    ("scaled_modified_bessel_k0", "k0e", "exp(self) modified_bessel_k0(self)."),
    ("scaled_modified_bessel_k1", "k1e", "exp(self) modified_bessel_k1(self)."),
    ("spherical_bessel_j0", "spherical_j0", "sin(self) / self, the spherical Bessel function of order 0."),
):
    _special(_name, _function, f"{_doc} Without derivative.")

for _name, _function, _doc in (
    *((f"chebyshev_polynomial_{k}", f"chebyshev_{k}", f"Chebyshev's polynomials {k.upper()}") for k in "tuvw"),
    *(
        (
            f"shifted_chebyshev_polynomial_{k}",
            f"shifted_chebyshev_{k}",
            f"Chebyshev's polynomials {k.upper()} of 2 self - 1",
        )
        for k in "tuvw"
    ),
    ("hermite_polynomial_h", "hermite_h", "Hermite's polynomials, the physicists'"),
    ("hermite_polynomial_he", "hermite_he", "Hermite's polynomials, the probabilists'"),
    ("laguerre_polynomial_l", "laguerre_l", "Laguerre's polynomials"),
    ("legendre_polynomial_p", "legendre_p", "Legendre's polynomials"),
):
    elementwise(
        f"special_{_name}(Tensor|Scalar self, Tensor|Scalar n) -> Tensor",
        lambda self, n, _function=_function: FUNCTIONS[_function](self, n),
        types="wide",
        compute="float",
        public=f"special.{_name}",
        method=False,
        doc=f"{_doc}, of order n (its fraction is cut off; 0 for negative ones). Without derivative.",
    )


def _no_derivative(name: str) -> _Formula:
    def refuse(grad: Any) -> Any:
        raise NotImplementedError(f"the derivative for '{name}: input' is not implemented")

    return refuse


def _by_other(sign: int) -> _Formula:
    return lambda grad, self, other: grad * (_density(self, other) * sign)


def _density(self: Any, other: Any) -> Any:
    return ((self - 1) * other.log() - other - self.lgamma()).exp()


for _name, _alias, _sign, _word in (
    ("igamma", "special.gammainc", 1, "lower"),
    ("igammac", "special.gammaincc", -1, "upper"),
):
    elementwise(
        f"{_name}(Tensor self, Tensor other) -> Tensor",
        lambda self, other, _name=_name: FUNCTIONS[_name](self, other),
        types="float",
        inplace=True,
        public=f"{_name} {_alias} Tensor.{_name}",
        derivative={
            "self": _no_derivative(_name),
            "other": _by_other(_sign),
        },
        options={"fuse": False},
        doc=f"The regularised {_word} incomplete gamma function of order self at other; NaN for negative numbers.",
    )


@composite(
    "mvlgamma(Tensor self, int p) -> Tensor",
    public="mvlgamma special.multigammaln Tensor.mvlgamma",
    inplace=True,
    out=True,
)
def _mvlgamma(self: Any, p: int) -> Any:
    """The logarithm of the multivariate gamma function of dimension p (DLMF 35.3.4); RuntimeError for p < 1."""
    if p < 1:
        raise RuntimeError(f"mvlgamma: p; expected at least 1, got {p}")
    x = self if self.is_floating_point() else self.to(rl.get_default_dtype())
    shifts = rl.arange(p, dtype=x.dtype) * -0.5
    return (x.unsqueeze(-1) + shifts).lgamma().sum(-1) + p * (p - 1) / 4 * math.log(math.pi)


fuse_derivatives(TABLE)
