"""Gradients of convolutions as functions of their own."""

from __future__ import annotations

import rushlight
from rushlight import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight"]


def _gradient(name: str, input: Any, weight: Any, wanted: str, grad_output: Tensor, options: tuple[Any, ...]) -> Tensor:
    """The gradient of the convolution ``name`` with respect to one operand, given by its size alone."""
    other = weight if wanted == "input" else input
    size = input if wanted == "input" else weight
    operand = rushlight.zeros(tuple(size), dtype=other.dtype, device=other.device, requires_grad=True)
    with rushlight.enable_grad():
        pair = (operand, other) if wanted == "input" else (other, operand)
        out = getattr(rushlight.nn.functional, name)(*pair, None, *options)
    return rushlight.autograd.grad(out, operand, grad_output)[0]


def conv1d_input(
    input_size: Any,
    weight: Tensor,
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of conv1d with respect to an input of size ``input_size``."""
    return _gradient("conv1d", input_size, weight, "input", grad_output, (stride, padding, dilation, groups))


def conv1d_weight(
    input: Tensor,
    weight_size: Any,
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of conv1d with respect to a weight of size ``weight_size``."""
    return _gradient("conv1d", input, weight_size, "weight", grad_output, (stride, padding, dilation, groups))


def conv2d_input(
    input_size: Any,
    weight: Tensor,
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of conv2d with respect to an input of size ``input_size``.

    Example::

        >>> import rushlight
        >>> weight, grad = rushlight.ones(1, 1, 2, 2), rushlight.ones(1, 1, 1, 1)
        >>> rushlight.nn.grad.conv2d_input((1, 1, 2, 2), weight, grad).tolist()
        [[[[1.0, 1.0], [1.0, 1.0]]]]
    """
    return _gradient("conv2d", input_size, weight, "input", grad_output, (stride, padding, dilation, groups))


def conv2d_weight(
    input: Tensor,
    weight_size: Any,
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of conv2d with respect to a weight of size ``weight_size``."""
    return _gradient("conv2d", input, weight_size, "weight", grad_output, (stride, padding, dilation, groups))


def conv3d_input(
    input_size: Any,
    weight: Tensor,
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of conv3d with respect to an input of size ``input_size``."""
    return _gradient("conv3d", input_size, weight, "input", grad_output, (stride, padding, dilation, groups))


def conv3d_weight(
    input: Tensor,
    weight_size: Any,
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of conv3d with respect to a weight of size ``weight_size``."""
    return _gradient("conv3d", input, weight_size, "weight", grad_output, (stride, padding, dilation, groups))
