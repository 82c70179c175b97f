"""Special functions: elementwise operations of rushlight.special."""

from __future__ import annotations

import math
from typing import Any

from ._expression import erfc, erfcx, isnan, log, log1p, ndtr, polygamma, where, zeta
from ._fused import fuse_derivatives
from ._record import TABLE, composite, elementwise, rl
from .elementwise import _conj, _function

_function(
    "sigmoid",
    lambda grad, result: grad * _conj((1 - result) * result),
    "1 / (1 + exp(-self)).",
    aliases="special.expit",
)
_function(
    "erf",
    lambda grad, self: grad * ((self * self).neg().exp() * (2 / math.sqrt(math.pi))),
    "The error function.",
    types="float",
    aliases="special.erf",
)
_function(
    "erfc",
    lambda grad, self: grad * ((self * self).neg().exp() * (-2 / math.sqrt(math.pi))),
    "1 - erf(self), accurate where it is small.",
    types="float",
    aliases="special.erfc",
)
_function(
    "erfinv",
    lambda grad, result: grad * ((result * result).exp() * (math.sqrt(math.pi) / 2)),
    "The inverse of erf.",
    types="float",
    aliases="special.erfinv",
)
_function(
    "special_ndtr",
    lambda grad, self: grad * ((self * self * -0.5).exp() * (1 / math.sqrt(2 * math.pi))),
    "The normal distribution function.",
    expression=lambda self: ndtr(self),
    types="float",
    aliases="special.ndtr",
    inplace=False,
    method=False,
)
_function(
    "special_erfcx",
    lambda grad, self, result: grad * (self * result * 2 - 2 / math.sqrt(math.pi)),
    "exp(self ** 2) * erfc(self), which does not vanish for large self.",
    expression=lambda self: erfcx(self),
    types="wide",
    aliases="special.erfcx",
    inplace=False,
)
_function(
    "special_log_ndtr",
    lambda grad, self: grad * (math.sqrt(2 / math.pi) / rl.special_erfcx(self * -math.sqrt(0.5))),
    "The logarithm of the normal distribution function.",
    expression=lambda self: where(
        self < -1,
        log(erfcx(self * -math.sqrt(0.5)) * 0.5) - self * self * 0.5,
        log1p(erfc(self * math.sqrt(0.5)) * -0.5),
    ),
    types="wide",
    aliases="special.log_ndtr",
    inplace=False,
)
_function(
    "special_entr",
    lambda grad, self: grad * (-self.log() - 1),
    "-self * log(self), 0 at 0 and -inf below.",
    expression=lambda self: where(isnan(self) | (self > 0), -self * log(self), where(self == 0, 0, -math.inf)),
    types="float",
    aliases="special.entr",
    inplace=False,
)
_function(
    "lgamma",
    lambda grad, self: grad * self.digamma(),
    "The logarithm of |gamma(self)|.",
    types="float",
    aliases="special.gammaln",
)
_function(
    "digamma",
    lambda grad, self: grad * rl._polygamma(1, self),
    "The derivative of lgamma.",
    types="float",
    aliases="special.psi special.digamma",
)


def _refuse(name: str, argument: str) -> Any:
    raise NotImplementedError(f"the derivative for '{argument}' of '{name}' is not implemented")


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
        "self": lambda grad: _refuse("special_zeta", "self"),
        "other": lambda grad, self, other: grad * -self * rl.special_zeta(self + 1, other),
    },
    options={"fuse": False},
    doc="Hurwitz' zeta function, the sum of (k + other) ** -self over k >= 0.",
)


@composite("polygamma(int n, Tensor self) -> Tensor", public="polygamma special.polygamma", method=False, out=True)
def _polygamma_body(n: int, self: Any) -> Any:
    """The n-th derivative of digamma."""
    if n < 0:
        raise RuntimeError(f"polygamma(n, x) does not support negative n; expected n >= 0, got {n}")
    return self.digamma() if n == 0 else rl._polygamma(n, self)


@composite("_polygamma_method(Tensor self, int n) -> Tensor", public="Tensor.polygamma", inplace=True)
def _polygamma_method(self: Any, n: int) -> Any:
    """The n-th derivative of digamma; the method has its arguments in the other order."""
    return rl.polygamma(n, self)


@composite("logit(Tensor self, float? eps=None) -> Tensor", public="logit special.logit", inplace=True, out=True)
def _logit(self: Any, eps: float | None = None) -> Any:
    """log(self / (1 - self)), with self limited to [eps, 1 - eps] when eps is given."""
    return rl._logit(self if eps is None else self.clamp(eps, 1 - eps))


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
