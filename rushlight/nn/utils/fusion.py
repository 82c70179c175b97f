"""Batch normalisation folded into the layer before it, for evaluation."""

from __future__ import annotations

import copy

import rushlight
from rushlight import Tensor

from ..parameter import Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]


def _check_eval(op: str, *modules: Any) -> None:
    if any(m.training for m in modules):
        raise AssertionError(f"{op}: expected both modules in evaluation mode, got one that trains")


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """Weight and bias of a convolution that does what convolution and normalisation do one after the other."""
    bias = rushlight.zeros_like(bn_rm) if conv_b is None else conv_b
    weight = rushlight.ones_like(bn_rm) if bn_w is None else bn_w
    shift = rushlight.zeros_like(bn_rm) if bn_b is None else bn_b
    scale = weight * (bn_rv + bn_eps).rsqrt()
    shape = [1] * conv_w.dim()
    shape[1 if transpose else 0] = -1
    new_weight = (conv_w * scale.reshape(shape)).to(conv_w.dtype)
    new_bias = ((bias - bn_rm) * scale + shift).to(bias.dtype)
    return Parameter(new_weight, conv_w.requires_grad), Parameter(new_bias, bias.requires_grad)


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """A copy of the convolution with the normalisation after it folded in. Both must be in evaluation mode."""
    _check_eval("fuse_conv_bn_eval", conv, bn)
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("fuse_conv_bn_eval: expected running statistics, got none")
    fused = copy.deepcopy(conv)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, transpose
    )
    return fused


def fuse_linear_bn_weights(
    linear_w: Tensor, linear_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float, bn_w: Tensor, bn_b: Tensor
) -> tuple[Parameter, Parameter]:
    """Weight and bias of a linear layer that does what layer and normalisation do one after the other."""
    bias = rushlight.zeros_like(bn_rm) if linear_b is None else linear_b
    scale = bn_w * (bn_rv + bn_eps).rsqrt()
    new_weight = linear_w * scale.unsqueeze(-1).to(linear_w.dtype)
    new_bias = ((bias - bn_rm) * scale + bn_b).to(bias.dtype)
    return Parameter(new_weight, linear_w.requires_grad), Parameter(new_bias, bias.requires_grad)


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """A copy of the linear layer with the normalisation after it folded in. Both must be in evaluation mode."""
    _check_eval("fuse_linear_bn_eval", linear, bn)
    if not (linear.out_features == bn.num_features or bn.num_features == 1):
        raise AssertionError(
            "fuse_linear_bn_eval: expected out_features == num_features or num_features == 1, got "
            f"{linear.out_features} and "
            f"{bn.num_features}"
        )
    fused = copy.deepcopy(linear)
    fused.weight, fused.bias = fuse_linear_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    return fused
