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
    "max(0, self).",
    types="int float",
    compute="promote",
    elsewhere="nn.functional.relu_",
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
    doc="self where it is above the threshold, value elsewhere.",
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
    doc="self limited to [min_val, max_val].",
)
elementwise(
    "leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor",
    lambda self, negative_slope: where(self > 0, self, self * negative_slope),
    types="float",
    inplace=True,
    method=False,
    derivative={"self": lambda grad, self, negative_slope: rl.where(self > 0, grad, grad * negative_slope)},
    public="leaky_relu nn.functional.leaky_relu_",
    doc="self where it is positive, self * negative_slope elsewhere.",
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


@composite("prelu(Tensor self, Tensor weight) -> Tensor", public="prelu nn.functional.prelu")
def _prelu_body(self: Any, weight: Any) -> Any:
    """self where it is positive, self * weight elsewhere; one weight, or one for each channel (dimension 1)."""
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
    doc="scale * self where it is positive, scale * alpha * (exp(input_scale * self) - 1) elsewhere.",
)
elementwise(
    "celu(Tensor self, Scalar alpha=1.0) -> Tensor",
    lambda self, alpha: where(self > 0, self, expm1(self / alpha) * alpha),
    types="float",
    inplace=True,
    derivative={"self": lambda grad, self, alpha: rl.where(self > 0, grad, grad * (self / alpha).exp())},
    public="celu nn.functional.celu_",
    doc="self where it is positive, alpha * (exp(self / alpha) - 1) elsewhere.",
    options={"checked": True},
)
_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946
_function(
    "selu",
    lambda grad, self: rl.where(self > 0, grad * _SELU_SCALE, grad * (self.exp() * (_SELU_ALPHA * _SELU_SCALE))),
    "The self-normalising ELU.",
    expression=lambda self: where(self > 0, self * _SELU_SCALE, expm1(self) * (_SELU_ALPHA * _SELU_SCALE)),
    types="float",
    compute="promote",
    elsewhere="nn.functional.selu_",
    method=False,
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
    doc="log(1 + exp(beta * self)) / beta, and self where beta * self > threshold.",
)
_function(
    "log_sigmoid",
    lambda grad, self: grad * (-self).sigmoid(),
    "log(sigmoid(self)).",
    expression=lambda self: minimum(self, 0) - log1p(exp(-abs(self))),
    types="float",
    compute="promote",
    inplace=False,
    elsewhere="nn.functional.logsigmoid",
    method=False,
)
_function(
    "silu",
    lambda grad, self: grad * _conj(self.sigmoid() * (1 + self * (1 - self.sigmoid()))),
    "self * sigmoid(self).",
    expression=lambda self: self * sigmoid(self),
    compute="promote",
    method=False,
)


def _softplus(x: Any) -> Any:
    return where(x > 20, x, log1p(exp(x)))


def _mish_slope(x: Any) -> Any:
    t = rl.tanh(rl.softplus(x))
    return t + x * (1 - t * t) * rl.sigmoid(x)


_function(
    "mish",
    lambda grad, self: grad * _mish_slope(self),
    "self * tanh(softplus(self)).",
    expression=lambda self: self * tanh(_softplus(self)),
    types="float",
    compute="promote",
    method=False,
    options={"fuse": False},
)
_function(
    "hardswish",
    lambda grad, self: rl.where(self <= -3, 0, rl.where(self < 3, grad * (self / 3 + 0.5), grad)),
    "self * relu6(self + 3) / 6.",
    expression=lambda self: self * minimum(maximum(self + 3, 0), 6) / 6,
    types="float",
    compute="promote",
    method=False,
)
_function(
    "hardsigmoid",
    lambda grad, self: rl.where(rl.logical_and(self > -3, self < 3), grad * (1 / 6), 0),
    "relu6(self + 3) / 6.",
    expression=lambda self: minimum(maximum(self + 3, 0), 6) / 6,
    types="float",
    compute="promote",
    method=False,
)
elementwise(
    "hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor",
    lambda self, lambd: where(logical_and(self >= -lambd, self <= lambd), 0, self),
    types="float",
    derivative={"self": lambda grad, self, lambd: rl.where(rl.logical_and(self >= -lambd, self <= lambd), 0, grad)},
    public="hardshrink nn.functional.hardshrink",
    doc="self where |self| > lambd, 0 elsewhere.",
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
)
def _softshrink_body(self: Any, lambd: float = 0.5) -> Any:
    """self moved by lambd towards 0, and 0 where |self| <= lambd; RuntimeError for a negative lambd."""
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
    doc='self times the normal distribution function of self; approximate="tanh" is faster and a little different.',
)

fuse_derivatives(TABLE)
