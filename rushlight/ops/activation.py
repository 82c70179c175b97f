"""Activation functions: elementwise operations of neural networks."""

from __future__ import annotations

import math
from typing import Any

from ._expression import exp, expm1, log1p, logical_and, maximum, minimum, ndtr, sigmoid, tanh, where
from ._fused import fuse_derivatives
from ._record import TABLE, composite, elementwise, native, rl
from .elementwise import _conj, _function

_function(
    "relu",
    lambda grad, result: rl.where(result <= 0, 0, grad),
    """The rectified linear unit: positive numbers stay, others become 0 (NaN stays NaN). At 0 the derivative
    is 0.

    >>> torch.relu(torch.tensor([-2.0, 0.0, 3.0]))
    tensor([0., 0., 3.])""",
    types="int float",
    compute="promote",
    elsewhere="nn.functional.relu_",
    formula="out = max(0, self)",
)
elementwise(
    "threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor",
    lambda self, threshold, value: where(self <= threshold, value, self),
    types="int float",
    compute="tensor",
    inplace=True,
    method=False,
    derivative={"self": lambda grad, self, threshold: rl.where(self <= threshold, 0, grad)},
    public="threshold nn.functional.threshold_",
    formula="out = self if self > threshold else value",
    doc="""Numbers above the threshold stay, others become value.

    >>> torch.threshold(torch.tensor([0.5, 1.0, 2.0]), 1.0, -7.0)
    tensor([-7., -7.,  2.])""",
)
elementwise(
    "hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor",
    lambda self, min_val, max_val: minimum(maximum(self, min_val), max_val),
    types="int8 int16 int32 int64 float",
    compute="tensor",
    inplace=True,
    method=False,
    derivative={
        "self": lambda grad, self, min_val, max_val: rl.where(rl.logical_or(self <= min_val, self >= max_val), 0, grad)
    },
    public="hardtanh nn.functional.hardtanh_",
    formula="out = min(max(self, min_val), max_val)",
    doc="""self limited to [min_val, max_val]. At the limits the derivative is 0.

    >>> torch.nn.functional.hardtanh(torch.tensor([-3.0, 0.5, 3.0]))
    tensor([-1.0000,  0.5000,  1.0000])""",
)
elementwise(
    "leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor",
    lambda self, negative_slope: where(self > 0, self, self * negative_slope),
    types="float",
    inplace=True,
    method=False,
    derivative={"self": lambda grad, self, negative_slope: rl.where(self > 0, grad, grad * negative_slope)},
    public="leaky_relu nn.functional.leaky_relu_",
    formula="out = self if self > 0 else negative_slope * self",
    doc="""relu with a slope below 0 as well, so that negative inputs get a gradient (Maas, Hannun and Ng, 2013).

    >>> torch.nn.functional.leaky_relu(torch.tensor([-2.0, 3.0]), 0.1)
    tensor([-0.2000,  3.0000])""",
)
elementwise(
    "_prelu(Tensor self, Tensor weight) -> Tensor",
    lambda self, weight: where(self > 0, self, self * weight),
    types="float",
    derivative={
        "self": lambda grad, self, weight: rl.where(self > 0, grad, grad * weight),
        "weight": lambda grad, self: rl.where(self > 0, 0, grad * self),
    },
    doc="self where it is positive, self * weight elsewhere.",
)


@composite(
    "prelu(Tensor self, Tensor weight) -> Tensor",
    public="prelu nn.functional.prelu",
    formula="out = self if self > 0 else weight * self",
)
def _prelu_body(self: Any, weight: Any) -> Any:
    """relu with a learnt slope below 0 (He et al., 2015).

    RuntimeError when weight has more than one dimension, or another number of elements than 1 and the channels.

    Shapes: self (N, C, ...), weight () or (1) for one slope, (C) for one per channel; the result has the shape of
    self.

    >>> x = torch.tensor([[-1.0, -1.0, 2.0]])
    >>> torch.prelu(x, torch.tensor([0.5, 0.25, 0.0]))
    tensor([[-0.5000, -0.2500,  2.0000]])
    """
    if weight.ndim > 1:
        raise RuntimeError(f"prelu: expected `weight` to be a scalar or 1-dimensional, got {weight.ndim} dimensions")
    if weight.numel() != 1:
        channels = self.shape[1] if self.ndim > 1 else 1
        if self.ndim == 0:
            raise RuntimeError("prelu: a 0-dim input takes one weight; expected 1 element, got " + str(weight.numel()))
        if channels != weight.numel():
            raise RuntimeError(
                f"prelu: Mismatch of parameter numbers and input channel size: {weight.numel()} and {channels}"
            )
        if self.ndim > 2:
            weight = weight.view((-1,) + (1,) * (self.ndim - 2))
    elif weight.ndim > self.ndim:
        weight = weight.view(())
    return rl._prelu(self, weight)


elementwise(
    "elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor",
    lambda self, alpha, scale, input_scale: where(self > 0, self * scale, expm1(self * input_scale) * (alpha * scale)),
    types="float",
    inplace=True,
    method=False,
    derivative={
        "self": lambda grad, self, alpha, scale, input_scale: rl.where(
            self > 0, grad * scale, grad * ((self * input_scale).exp() * (alpha * scale * input_scale))
        )
    },
    options={"fuse": False},
    public="elu nn.functional.elu_",
    formula="out = scale * self if self > 0 else scale * alpha * (exp(input_scale * self) - 1)",
    doc="""The exponential linear unit (Clevert, Unterthiner and Hochreiter, 2016).

    >>> torch.nn.functional.elu(torch.tensor([-100.0, 0.0, 2.0]), alpha=0.5)
    tensor([-0.5000,  0.0000,  2.0000])""",
)
elementwise(
    "celu(Tensor self, Scalar alpha=1.0) -> Tensor",
    lambda self, alpha: where(self > 0, self, expm1(self / alpha) * alpha),
    types="float",
    compute="tensor",
    inplace=True,
    derivative={"self": lambda grad, self, alpha: rl.where(self > 0, grad, grad * (self / alpha).exp())},
    public="celu nn.functional.celu_",
    formula="out = self if self > 0 else alpha * (exp(self / alpha) - 1)",
    doc="""An exponential linear unit whose derivative is continuous for every alpha (Barron, 2017).

    RuntimeError when alpha is 0.

    >>> torch.celu(torch.tensor([-100.0, 0.0, 2.0]), alpha=0.5)
    tensor([-0.5000,  0.0000,  2.0000])""",
    options={"checked": True},
)
_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946
_function(
    "selu",
    lambda grad, self: rl.where(self > 0, grad * _SELU_SCALE, grad * (self.exp() * (_SELU_ALPHA * _SELU_SCALE))),
    """The scaled exponential linear unit: through layers of it, activations tend to mean 0 and variance 1
    (Klambauer et al., 2017).

    >>> torch.selu(torch.tensor([-100.0, 0.0, 1.0]))
    tensor([-1.7581,  0.0000,  1.0507])""",
    expression=lambda self: where(self > 0, self * _SELU_SCALE, expm1(self) * (_SELU_ALPHA * _SELU_SCALE)),
    types="float",
    compute="promote",
    elsewhere="nn.functional.selu_",
    method=False,
    formula="out = scale * (self if self > 0 else alpha * (exp(self) - 1)), alpha = 1.6733, scale = 1.0507",
)
elementwise(
    "softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor",
    lambda self, beta, threshold: where(self * beta > threshold, self, log1p(exp(self * beta)) / beta),
    types="float",
    method=False,
    derivative={
        "self": lambda grad, self, beta, threshold: rl.where(
            self * beta > threshold, grad, grad * (self * beta).sigmoid()
        )
    },
    public="softplus nn.functional.softplus",
    formula="out = log(1 + exp(beta * self)) / beta",
    doc="""A smooth relu; the larger beta, the closer. Where beta * self > threshold it is self, which it equals to
    rounding.

    >>> torch.nn.functional.softplus(torch.tensor([-100.0, 0.0, 100.0]))
    tensor([3.7835e-44, 6.9315e-01, 1.0000e+02])""",
)
_function(
    "log_sigmoid",
    lambda grad, self: grad * (-self).sigmoid(),
    """The logarithm of the logistic function, which does not overflow.

    >>> torch.nn.functional.logsigmoid(torch.tensor([-200.0, 0.0, 200.0]))
    tensor([-200.0000,   -0.6931,    0.0000])""",
    expression=lambda self: minimum(self, 0) - log1p(exp(-abs(self))),
    types="float",
    compute="promote",
    inplace=False,
    elsewhere="nn.functional.logsigmoid",
    method=False,
    formula="out = log(1 / (1 + exp(-self)))",
)
_function(
    "silu",
    lambda grad, self: grad * _conj(self.sigmoid() * (1 + self * (1 - self.sigmoid()))),
    """The sigmoid linear unit, also called swish (Elfwing, Uchibe and Doya, 2017).

    >>> torch.nn.functional.silu(torch.tensor([-20.0, 0.0, 1.0, 20.0]))
    tensor([-4.1223e-08,  0.0000e+00,  7.3106e-01,  2.0000e+01])""",
    expression=lambda self: self * sigmoid(self),
    compute="promote",
    method=False,
    formula="out = self * sigmoid(self)",
)


def _softplus(x: Any) -> Any:
    return where(x > 20, x, log1p(exp(x)))


def _mish_slope(x: Any) -> Any:
    t = rl.tanh(rl.softplus(x))
    return t + x * (1 - t * t) * rl.sigmoid(x)


_function(
    "mish",
    lambda grad, self: grad * _mish_slope(self),
    """A smooth activation that is not monotone below 0 (Misra, 2019).

    >>> torch.nn.functional.mish(torch.tensor([-20.0, 0.0, 1.0, 20.0]))
    tensor([-4.1223e-08,  0.0000e+00,  8.6510e-01,  2.0000e+01])""",
    expression=lambda self: self * tanh(_softplus(self)),
    types="float",
    compute="promote",
    method=False,
    options={"fuse": False},
    formula="out = self * tanh(log(1 + exp(self)))",
)
_function(
    "hardswish",
    lambda grad, self: rl.where(self <= -3, 0, rl.where(self < 3, grad * (self / 3 + 0.5), grad)),
    """silu with straight pieces in place of the sigmoid (Howard et al., 2019).

    >>> torch.nn.functional.hardswish(torch.tensor([-3.0, 0.0, 1.0, 4.0]))
    tensor([-0.0000, 0.0000, 0.6667, 4.0000])""",
    expression=lambda self: self * minimum(maximum(self + 3, 0), 6) / 6,
    types="float",
    compute="promote",
    method=False,
    formula="out = self * min(max(self + 3, 0), 6) / 6",
)
_function(
    "hardsigmoid",
    lambda grad, self: rl.where(rl.logical_and(self > -3, self < 3), grad * (1 / 6), 0),
    """The sigmoid replaced by a straight line from 0 at -3 to 1 at 3.

    >>> torch.nn.functional.hardsigmoid(torch.tensor([-3.0, 0.0, 1.5, 4.0]))
    tensor([0.0000, 0.5000, 0.7500, 1.0000])""",
    expression=lambda self: minimum(maximum(self + 3, 0), 6) / 6,
    types="float",
    compute="promote",
    method=False,
    formula="out = min(max(self + 3, 0), 6) / 6",
)
elementwise(
    "hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor",
    lambda self, lambd: where(logical_and(self >= -lambd, self <= lambd), 0, self),
    types="float",
    derivative={"self": lambda grad, self, lambd: rl.where(rl.logical_and(self >= -lambd, self <= lambd), 0, grad)},
    public="hardshrink nn.functional.hardshrink",
    formula="out = self if |self| > lambd else 0",
    doc="""Numbers of an absolute value up to lambd become 0, others stay.

    >>> torch.nn.functional.hardshrink(torch.tensor([-1.0, 0.5, 0.6]))
    tensor([-1.0000,  0.0000,  0.6000])""",
)
elementwise(
    "_softshrink(Tensor self, Scalar lambd=0.5) -> Tensor",
    lambda self, lambd: where(self > lambd, self - lambd, where(self < -lambd, self + lambd, self * 0)),
    aten="softshrink",
    types="float",
    method=False,
    derivative={"self": lambda grad, self, lambd: rl.where(rl.logical_and(self >= -lambd, self <= lambd), 0, grad)},
    doc="softshrink without the test of lambd.",
)


@composite(
    "softshrink(Tensor self, float lambd=0.5) -> Tensor",
    public="softshrink nn.functional.softshrink",
    method=False,
    out=True,
    formula="out = sign(self) * max(|self| - lambd, 0)",
)
def _softshrink_body(self: Any, lambd: float = 0.5) -> Any:
    """Numbers moved by lambd towards 0, and 0 within it: the proximal map of lambd * |x|.

    RuntimeError for a negative lambd.

    Shapes: self of any shape; the result has the same.

    >>> torch.nn.functional.softshrink(torch.tensor([-2.0, 0.5, 1.0]))
    tensor([-1.5000,  0.0000,  0.5000])
    """
    if lambd < 0:
        raise RuntimeError(f"softshrink: lambd; expected a number of at least 0, got {lambd}")
    return rl._softshrink(self, lambd)


_GAUSS = 1 / math.sqrt(2 * math.pi)
_GELU_A, _GELU_B = math.sqrt(2 / math.pi), 0.044715
_function(
    "_gelu",
    lambda grad, self: grad * (rl.special_ndtr(self) + self * ((self * self * -0.5).exp() * _GAUSS)),
    "self times the normal distribution function of self.",
    expression=lambda self: self * ndtr(self),
    types="float",
    compute="promote",
    aten="gelu",
)


def _gelu_tanh_slope(x: Any) -> Any:
    t = ((x + x * x * x * _GELU_B) * _GELU_A).tanh()
    return (1 + t) * 0.5 + x * ((1 - t * t) * (1 + x * x * (3 * _GELU_B))) * (0.5 * _GELU_A)


_function(
    "_gelu_tanh",
    lambda grad, self: grad * _gelu_tanh_slope(self),
    "gelu by its tanh approximation.",
    expression=lambda self: self * 0.5 * (1 + tanh((self + self * self * self * _GELU_B) * _GELU_A)),
    types="float",
    compute="promote",
    aten="gelu",
)
native(
    "gelu(Tensor self, *, str approximate='none') -> Tensor",
    options={"composite": True},
    method=False,
    inplace=True,
    formula="out = self * (1 + erf(self / sqrt(2))) / 2",
    doc="""The Gaussian error linear unit: self times the probability that a standard normal number is below it
    (Hendrycks and Gimpel, 2016). approximate="tanh" takes a formula with tanh that differs by at most 0.0005.

    Shapes: self of any shape; the result has the same.

    >>> torch.nn.functional.gelu(torch.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.1587,  0.0000,  0.8413])""",
)

fuse_derivatives(TABLE)
