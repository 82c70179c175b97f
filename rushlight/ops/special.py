"""Special functions: elementwise operations of rushlight.special."""

from __future__ import annotations

import math
from typing import Any

from ._expression import erfc, erfcx, isnan, log, log1p, ndtr, polygamma, where, zeta
from ._fused import fuse_derivatives
from ._record import TABLE, composite, elementwise, refused, rl
from .elementwise import _conj, _function

_function(
    "sigmoid",
    lambda grad, result: grad * _conj((1 - result) * result),
    """The logistic function, from 0 to 1.

    >>> torch.sigmoid(torch.tensor([-1.0, 0.0, 1.0]))
    tensor([0.2689, 0.5000, 0.7311])""",
    aliases="special.expit",
    formula="out = 1 / (1 + e^-self)",
)
_function(
    "erf",
    lambda grad, self: grad * ((self * self).neg().exp() * (2 / math.sqrt(math.pi))),
    """The error function.

    >>> torch.erf(torch.tensor([0.0, 1.0, -10.0]))
    tensor([ 0.0000,  0.8427, -1.0000])""",
    types="float",
    aliases="special.erf",
    formula="out = 2 / sqrt(pi) * integral of e^(-t^2) dt from 0 to self",
)
_function(
    "erfc",
    lambda grad, self: grad * ((self * self).neg().exp() * (-2 / math.sqrt(math.pi))),
    """The complement of the error function, accurate for large self, where it is small.

    >>> torch.erfc(torch.tensor([0.0, 5.0]))
    tensor([1.0000e+00, 1.5375e-12])""",
    types="float",
    aliases="special.erfc",
    formula="out = 1 - erf(self)",
)
_function(
    "erfinv",
    lambda grad, result: grad * ((result * result).exp() * (math.sqrt(math.pi) / 2)),
    """The inverse of the error function: infinite at -1 and 1, NaN beyond.

    >>> torch.erfinv(torch.tensor([0.0, 0.5, 1.0, 2.0]))
    tensor([0.0000, 0.4769,    inf,    nan])""",
    types="float",
    aliases="special.erfinv",
    formula="erf(out) = self",
)
_function(
    "special_ndtr",
    lambda grad, self: grad * ((self * self * -0.5).exp() * (1 / math.sqrt(2 * math.pi))),
    """The distribution function of the standard normal distribution.

    >>> torch.special.ndtr(torch.tensor([0.0, 1.96, -1.96]))
    tensor([0.5000, 0.9750, 0.0250])""",
    expression=lambda self: ndtr(self),
    types="float",
    aliases="special.ndtr",
    inplace=False,
    method=False,
    formula="out = (1 + erf(self / sqrt(2))) / 2",
)
_function(
    "special_erfcx",
    lambda grad, self, result: grad * (self * result * 2 - 2 / math.sqrt(math.pi)),
    """The complement of the error function, scaled so that it does not vanish for large self.

    >>> torch.special.erfcx(torch.tensor([0.0, 100.0]))
    tensor([1.0000, 0.0056])""",
    expression=lambda self: erfcx(self),
    types="wide",
    aliases="special.erfcx",
    inplace=False,
    formula="out = e^(self^2) * erfc(self)",
)
_function(
    "special_log_ndtr",
    lambda grad, self: grad * (math.sqrt(2 / math.pi) / rl.special_erfcx(self * -math.sqrt(0.5))),
    """The logarithm of the normal distribution function, accurate far below 0, where that is 0 to rounding.

    >>> torch.special.log_ndtr(torch.tensor([0.0, -50.0]))
    tensor([-6.9315e-01, -1.2548e+03])""",
    expression=lambda self: where(
        self < -1,
        log(erfcx(self * -math.sqrt(0.5)) * 0.5) - self * self * 0.5,
        log1p(erfc(self * math.sqrt(0.5)) * -0.5),
    ),
    types="wide",
    aliases="special.log_ndtr",
    inplace=False,
    formula="out = log(ndtr(self))",
)
_function(
    "special_entr",
    lambda grad, self: grad * (-self.log() - 1),
    """The term of Shannon's entropy, in nats: 0 at 0 and -inf below.

    >>> torch.special.entr(torch.tensor([0.5, 0.0, -1.0]))
    tensor([0.3466, 0.0000,   -inf])""",
    expression=lambda self: where(isnan(self) | (self > 0), -self * log(self), where(self == 0, 0, -math.inf)),
    types="float",
    aliases="special.entr",
    inplace=False,
    formula="out = -self * log(self)",
)
_function(
    "lgamma",
    lambda grad, self: grad * self.digamma(),
    """The logarithm of the absolute value of the gamma function; infinite at 0, -1, -2, ...

    >>> torch.lgamma(torch.tensor([1.0, 5.0, 0.0]))
    tensor([0.0000, 3.1781,    inf])""",
    types="float",
    aliases="special.gammaln",
    formula="out = log(|gamma(self)|)",
)
_function(
    "digamma",
    lambda grad, self: grad * rl._polygamma(1, self),
    """The logarithmic derivative of the gamma function.

    >>> torch.digamma(torch.tensor([1.0, 2.0]))
    tensor([-0.5772,  0.4228])""",
    types="float",
    aliases="special.psi special.digamma",
    formula="out = gamma'(self) / gamma(self)",
)


elementwise(
    "_polygamma(Scalar order, Tensor self) -> Tensor",
    lambda order, self: polygamma(order, self),
    types="float",
    compute="float",
    inplace=False,
    derivative={"self": lambda grad, order, self: grad * rl._polygamma(order + 1, self)},
    options={"fuse": False},
    doc="The derivative of digamma of some order.",
)
elementwise(
    "special_zeta(Tensor|Scalar self, Tensor|Scalar other) -> Tensor",
    lambda self, other: zeta(self, other),
    types="wide",
    compute="float",
    method=False,
    public="special.zeta",
    derivative={
        **refused("special_zeta", "self"),
        "other": lambda grad, self, other: grad * -self * rl.special_zeta(self + 1, other),
    },
    options={"fuse": False},
    formula="out = sum of (k + other)^-self over k = 0, 1, 2, ...",
    doc="""The zeta function of Hurwitz; that of Riemann for other = 1. NaN for self < 1. Differentiable by other
    only.

    >>> torch.special.zeta(torch.tensor([2.0, 4.0]), 1)
    tensor([1.6449, 1.0823])""",
)


@composite(
    "polygamma(int n, Tensor self) -> Tensor",
    public="polygamma special.polygamma",
    method=False,
    out=True,
    formula="out = d^n/dx^n digamma(x) at x = self",
)
def _polygamma_body(n: int, self: Any) -> Any:
    """The n-th derivative of the digamma function.

    RuntimeError for a negative n.

    Shapes: self of any shape; the result has the same. Integers become floating point.

    >>> torch.polygamma(1, torch.tensor([1.0, 2.0]))
    tensor([1.6449, 0.6449])
    """
    if n < 0:
        raise RuntimeError(f"polygamma(n, x) does not support negative n; expected n >= 0, got {n}")
    return self.digamma() if n == 0 else rl._polygamma(n, self)


@composite(
    "_polygamma_method(Tensor self, int n) -> Tensor",
    public="Tensor.polygamma",
    inplace=True,
    formula="out = d^n/dx^n digamma(x) at x = self",
)
def _polygamma_method(self: Any, n: int) -> Any:
    """The n-th derivative of the digamma function; the method has its arguments in the other order.

    Shapes: self of any shape; the result has the same.

    >>> torch.tensor([1.0, 2.0]).polygamma(1)
    tensor([1.6449, 0.6449])
    """
    return rl.polygamma(n, self)


@composite(
    "logit(Tensor self, float? eps=None) -> Tensor",
    public="logit special.logit",
    inplace=True,
    out=True,
    formula="out = log(self / (1 - self))",
)
def _logit(self: Any, eps: float | None = None) -> Any:
    """The logarithm of the odds, the inverse of sigmoid. self is limited to [eps, 1 - eps] when eps is given;
    else the result is infinite at 0 and 1, NaN outside.

    Shapes: self of any shape; the result has the same. Integers become floating point.

    >>> torch.logit(torch.tensor([0.5, 0.9, 1.0]))
    tensor([0.0000, 2.1972,    inf])
    >>> torch.logit(torch.tensor([1.0]), eps=0.1)
    tensor([2.1972])
    """
    if eps is None or not eps >= 0:  # as PyTorch takes it: negative numbers and NaN limit nothing
        return rl._logit(self)
    if eps > 0.5:  # the limits cross: what lies below the first is not compared with the second
        return rl._logit(rl.where(self < eps, eps, self.clamp_max(1 - eps)))
    return rl._logit(self.clamp(eps, 1 - eps))


elementwise(
    "_logit(Tensor self) -> Tensor",
    lambda self: log(self / (1 - self)),
    types="float",
    compute="float",
    derivative={
        "self": lambda grad, self: rl.where(
            rl.logical_and(self >= 0, self <= 1), grad / (self * (1 - self)), float("nan")
        )
    },
    options={"fuse": False},
    doc="log(self / (1 - self)).",
)


fuse_derivatives(TABLE)
