"""Bessel, Airy and incomplete gamma functions, the normal distribution's inverse, orthogonal polynomials.

They are computed in float64, one number at a time (native/cpu/special_math.cpp names the formulas).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ._expression import FUNCTIONS
from ._fused import fuse_derivatives
from ._record import TABLE, composite, elementwise, refused, rl

_BESSEL = "self^2 * out'' + self * out' + ({}self^2 - {}) * out = 0"
"""The differential equation; "-" before self^2 makes it that of the modified functions."""

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
    formula="out = sum of (self^2 / 4)^k / (k!)^2 over k = 0, 1, 2, ...",
    doc="""The modified Bessel function of the first kind of order 0.

    >>> torch.i0(torch.tensor([0.0, 1.0]))
    tensor([1.0000, 1.2661])""",
)
_special(
    "i0e",
    "i0e",
    """The modified Bessel function of the first kind of order 0, scaled so that it does not overflow.

    >>> torch.special.i0e(torch.tensor([0.0, 1000.0]))
    tensor([1.0000, 0.0126])""",
    lambda grad, self, result: grad * (rl.special_i1e(self) - self.sgn() * result),
    types="float",
    formula="out = e^-|self| * i0(self)",
)
_special(
    "i1",
    "i1",
    """The modified Bessel function of the first kind of order 1.

    >>> torch.special.i1(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.5652])""",
    _i1_backward,
    types="float",
    formula="out = self / 2 * sum of (self^2 / 4)^k / (k! * (k + 1)!) over k = 0, 1, 2, ...",
)
_special(
    "i1e",
    "i1e",
    """The modified Bessel function of the first kind of order 1, scaled so that it does not overflow.

    >>> torch.special.i1e(torch.tensor([0.0, 1000.0]))
    tensor([0.0000, 0.0126])""",
    _i1e_backward,
    types="float",
    formula="out = e^-|self| * i1(self)",
)
_special(
    "ndtri",
    "ndtri",
    """The quantiles of the standard normal distribution, the inverse of ndtr; NaN outside [0, 1].

    >>> torch.special.ndtri(torch.tensor([0.5, 0.975, 1.0]))
    tensor([0.0000, 1.9600,    inf])""",
    lambda grad, result: grad * ((result * result * 0.5).exp() * math.sqrt(2 * math.pi)),
    formula="ndtr(out) = self",
)
_FIRST, _SECOND = "Bessel function of the first kind", "Bessel function of the second kind"
for _name, _function, _doc, _formula, _shown in (
    ("airy_ai", "airy_ai", "Airy's function Ai.", "out'' = self * out", "0.1353, 0.0349"),
    ("bessel_j0", "j0", f"The {_FIRST} of order 0.", _BESSEL.format("", 0), "0.7652, 0.2239"),
    ("bessel_j1", "j1", f"The {_FIRST} of order 1.", _BESSEL.format("", 1), "0.4401, 0.5767"),
    ("bessel_y0", "y0", f"The {_SECOND} of order 0; NaN below 0.", _BESSEL.format("", 0), "0.0883, 0.5104"),
    ("bessel_y1", "y1", f"The {_SECOND} of order 1; NaN below 0.", _BESSEL.format("", 1), "-0.7812, -0.1070"),
    ("modified_bessel_i0", "i0", f"The modified {_FIRST} of order 0.", _BESSEL.format("-", 0), "1.2661, 2.2796"),
    ("modified_bessel_i1", "i1", f"The modified {_FIRST} of order 1.", _BESSEL.format("-", 1), "0.5652, 1.5906"),
    (
        "modified_bessel_k0",
        "k0",
        f"The modified {_SECOND} of order 0; NaN below 0.",
        _BESSEL.format("-", 0),
        "0.4210, 0.1139",
    ),
    (
        "modified_bessel_k1",
        "k1",
        f"The modified {_SECOND} of order 1; NaN below 0.",
        _BESSEL.format("-", 1),
        "0.6019, 0.1399",
    ),
    (
        "scaled_modified_bessel_k0",
        "k0e",
        "modified_bessel_k0 scaled so that it does not vanish for large self.",
        "out = e^self * modified_bessel_k0(self)",
        "1.1445, 0.8416",
    ),
    (
        "scaled_modified_bessel_k1",
        "k1e",
        "modified_bessel_k1 scaled so that it does not vanish for large self.",
        "out = e^self * modified_bessel_k1(self)",
        "1.6362, 1.0335",
    ),
    (
        "spherical_bessel_j0",
        "spherical_j0",
        "The spherical Bessel function of the first kind of order 0; 1 at 0.",
        "out = sin(self) / self",
        "0.8415, 0.4546",
    ),
):
    _special(
        _name,
        _function,
        f"""{_doc} Without derivative.

        >>> torch.special.{_name}(torch.tensor([1.0, 2.0]))
        tensor([{_shown}])""",
        formula=_formula,
    )

# Each with its polynomial of order 2, and that one's values at 0.5 and 2.
for _name, _function, _doc, _second, _shown in (
    (
        "chebyshev_polynomial_t",
        "chebyshev_t",
        "Chebyshev's polynomials of the first kind",
        "2 x^2 - 1",
        "-0.5000,  7.0000",
    ),
    ("chebyshev_polynomial_u", "chebyshev_u", "Chebyshev's polynomials of the second kind", "4 x^2 - 1", " 0., 15."),
    (
        "chebyshev_polynomial_v",
        "chebyshev_v",
        "Chebyshev's polynomials of the third kind",
        "4 x^2 - 2 x - 1",
        "-1., 11.",
    ),
    (
        "chebyshev_polynomial_w",
        "chebyshev_w",
        "Chebyshev's polynomials of the fourth kind",
        "4 x^2 + 2 x - 1",
        " 1., 19.",
    ),
    *(
        (f"shifted_chebyshev_polynomial_{_k}", f"shifted_chebyshev_{_k}", *_rest)
        for _k, *_rest in (
            ("t", "Chebyshev's polynomials of the first kind at 2 x - 1", "8 x^2 - 8 x + 1", "-1., 17."),
            ("u", "Chebyshev's polynomials of the second kind at 2 x - 1", "16 x^2 - 16 x + 3", "-1., 35."),
            ("v", "Chebyshev's polynomials of the third kind at 2 x - 1", "16 x^2 - 20 x + 5", "-1., 29."),
            ("w", "Chebyshev's polynomials of the fourth kind at 2 x - 1", "16 x^2 - 12 x + 1", "-1., 41."),
        )
    ),
    ("hermite_polynomial_h", "hermite_h", "Hermite's polynomials, the physicists'", "4 x^2 - 2", "-1., 14."),
    ("hermite_polynomial_he", "hermite_he", "Hermite's polynomials, the probabilists'", "x^2 - 1", "-0.7500,  3.0000"),
    ("laguerre_polynomial_l", "laguerre_l", "Laguerre's polynomials", "x^2 / 2 - 2 x + 1", " 0.1250, -1.0000"),
    ("legendre_polynomial_p", "legendre_p", "Legendre's polynomials", "(3 x^2 - 1) / 2", "-0.1250,  5.5000"),
):
    elementwise(
        f"special_{_name}(Tensor|Scalar self, Tensor|Scalar n) -> Tensor",
        lambda self, n, _function=_function: FUNCTIONS[_function](self, n),
        types="wide",
        compute="float",
        public=f"special.{_name}",
        method=False,
        formula=f"out = P_n(self); P_2(x) = {_second}",
        doc=f"""{_doc}, of order n.

        The fraction of n is cut off; of negative order the result is 0. Without derivative.

        >>> torch.special.{_name}(torch.tensor([0.5, 2.0]), 2)
        tensor([{_shown}])""",
    )


def _by_other(sign: int) -> _Formula:
    return lambda grad, self, other: grad * (_density(self, other) * sign)


def _density(self: Any, other: Any) -> Any:
    return ((self - 1) * other.log() - other - self.lgamma()).exp()


for _name, _alias, _sign, _word, _range, _shown in (
    ("igamma", "special.gammainc", 1, "lower", "from 0 to other", "0.6321, 0.0000"),
    ("igammac", "special.gammaincc", -1, "upper", "from other on", "0.3679, 1.0000"),
):
    elementwise(
        f"{_name}(Tensor self, Tensor other) -> Tensor",
        lambda self, other, _name=_name: FUNCTIONS[_name](self, other),
        types="float",
        inplace=True,
        public=f"{_name} {_alias} Tensor.{_name}",
        derivative={
            **refused(_name, "self"),
            "other": _by_other(_sign),
        },
        options={"fuse": False},
        formula=f"out = integral of t^(self - 1) e^-t dt {_range} / gamma(self)",
        doc=f"""The regularised {_word} incomplete gamma function of order self at other; NaN for negative numbers.

        >>> torch.{_name}(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 0.0]))
        tensor([{_shown}])""",
    )


@composite(
    "mvlgamma(Tensor self, int p) -> Tensor",
    public="mvlgamma special.multigammaln Tensor.mvlgamma",
    inplace=True,
    out=True,
    formula="out = p * (p - 1) / 4 * log(pi) + sum of lgamma(self - j / 2) over j = 0, ..., p - 1",
)
def _mvlgamma(self: Any, p: int) -> Any:
    """The logarithm of the multivariate gamma function of dimension p (DLMF 35.3.4).

    RuntimeError for p < 1. It is finite for self > (p - 1) / 2.

    Shapes: self of any shape; the result has the same. Integers become floating point.

    >>> torch.mvlgamma(torch.tensor([1.0, 2.0]), p=1)
    tensor([0., 0.])
    >>> torch.mvlgamma(torch.tensor([2.0]), p=2)
    tensor([0.4516])
    """
    if p < 1:
        raise RuntimeError(f"mvlgamma: p; expected at least 1, got {p}")
    x = self if self.is_floating_point() else self.to(rl.get_default_dtype())
    shifts = rl.arange(p, dtype=x.dtype) * -0.5
    return (x.unsqueeze(-1) + shifts).lgamma().sum(-1) + p * (p - 1) / 4 * math.log(math.pi)


fuse_derivatives(TABLE)
