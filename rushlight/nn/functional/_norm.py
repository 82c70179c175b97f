"""Normalisation."""

from __future__ import annotations

import math

import rushlight
from rushlight import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "batch_norm", "group_norm", "instance_norm", "layer_norm", "local_response_norm", "normalize", "rms_norm",
]  # fmt: skip


def _compute_dtype(dtype: Any) -> Any:
    """Statistics of half precision values are computed in float32."""
    return rushlight.float32 if dtype in (rushlight.float16, rushlight.bfloat16) else dtype


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """(input - mean) / sqrt(var + eps) * weight + bias per channel (Ioffe and Szegedy 2015).

    While training, mean and (biased) variance are those of the batch, and the running ones move towards them by
    ``momentum`` in place; otherwise the running ones are used.

    Shapes: input (N, C, *); the other tensors (C). ValueError when a channel has a single value while training.
    """
    if training:
        _check_more_than_one("batch_norm", input.shape)
    if not training and (running_mean is None or running_var is None):
        raise RuntimeError("batch_norm: expected running_mean and running_var in evaluation mode, got None")
    if input.numel() == 0:
        # of nothing there are no statistics
        out = input.clone()
        out = out if weight is None else out * weight[0]
        return out if bias is None else out + bias[0]
    channels = input.shape[1]
    for name, t in (("running_mean", running_mean), ("running_var", running_var), ("weight", weight), ("bias", bias)):
        if t is not None and t.numel() != channels:
            raise RuntimeError(f"batch_norm: {name}; expected {channels} elements (channels of input), got {t.numel()}")
    shape = [1, channels] + [1] * (input.dim() - 2)
    x = input.to(_compute_dtype(input.dtype))
    if training:
        dims = [0, *range(2, input.dim())]
        mean = x.mean(dims)
        var = (x - mean.reshape(shape)).square().mean(dims)
        with rushlight.no_grad():
            count = x.numel() // max(channels, 1)
            if running_mean is not None:
                running_mean.mul_(1 - momentum).add_(mean.detach().to(running_mean.dtype), alpha=momentum)
            if running_var is not None:
                unbiased = var.detach() * (count / max(count - 1, 1))
                running_var.mul_(1 - momentum).add_(unbiased.to(running_var.dtype), alpha=momentum)
    else:
        assert running_mean is not None
        assert running_var is not None
        mean, var = running_mean.to(x.dtype), running_var.to(x.dtype)
    out = (x - mean.reshape(shape)) * (var.reshape(shape) + eps).rsqrt()
    if weight is not None:
        out = out * weight.reshape(shape)
    if bias is not None:
        out = out + bias.reshape(shape)
    return out.to(input.dtype)


def _check_more_than_one(op: str, shape: Any) -> None:
    if len(shape) >= 2 and (shape[0] if len(shape) == 2 else shape[0] * math.prod(shape[2:])) == 1:
        raise ValueError(
            f"{op}: expected more than 1 value per channel when training, got an input of shape {list(shape)}"
        )


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """batch_norm with statistics per channel of every element of the batch (Ulyanov et al. 2016).

    Shapes: input (N, C, *); the other tensors (C). ValueError when there is one spatial element only.

    >>> torch.nn.functional.instance_norm(torch.tensor([[[1.0, 3.0]]]), eps=0.0)
    tensor([[[-1.,  1.]]])
    """
    if use_input_stats and math.prod(input.shape[2:]) == 1:
        raise ValueError(
            "instance_norm: expected more than 1 spatial element when training, got an input of shape "
            f"{list(input.shape)}"
        )
    if not use_input_stats and (running_mean is None or running_var is None):
        raise RuntimeError("instance_norm: expected running_mean and running_var when use_input_stats=False, got None")
    n, c = input.shape[:2]

    def repeated(t: Tensor | None) -> Tensor | None:
        return None if t is None else t.expand(n, c).reshape(n * c).clone()

    mean, var = repeated(running_mean), repeated(running_var)
    flat = input.contiguous().reshape(1, n * c, *input.shape[2:])
    out = rushlight.nn.functional.batch_norm(
        flat, mean, var, repeated(weight), repeated(bias), use_input_stats, momentum, eps
    )
    with rushlight.no_grad():
        # every copy moved by itself; their mean is the new running value
        if running_mean is not None and mean is not None and use_input_stats:
            running_mean.copy_(mean.view(n, c).mean(0))
        if running_var is not None and var is not None and use_input_stats:
            running_var.copy_(var.view(n, c).mean(0))
    return out.reshape(input.shape)


def _check_trailing(
    op: str, input: Tensor, normalized_shape: Any, weight: Any, bias: Any
) -> tuple[list[int], list[int]]:
    """The normalised sizes and the dimensions they stand at."""
    shape = list(normalized_shape)
    if not shape:
        raise RuntimeError(f"{op}: normalized_shape; expected at least 1 size, got []")
    for name, t in (("weight", weight), ("bias", bias)):
        if t is not None and list(t.shape) != shape:
            raise RuntimeError(f"{op}: {name}; expected normalized_shape {shape}, got {list(t.shape)}")
    if list(input.shape[-len(shape) :]) != shape or input.dim() < len(shape):
        raise RuntimeError(
            f"{op}: input; expected shape [*, {', '.join(map(str, shape))}] (normalized_shape), got {list(input.shape)}"
        )
    return shape, list(range(input.dim() - len(shape), input.dim()))


def layer_norm(
    input: Tensor,
    normalized_shape: Any,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """(input - mean) / sqrt(var + eps) * weight + bias over the last dimensions (Ba et al. 2016).

    Shapes: input (*, *normalized_shape), weight and bias normalized_shape. RuntimeError when they do not fit.
    """
    _, dims = _check_trailing("layer_norm", input, normalized_shape, weight, bias)
    x = input.to(_compute_dtype(input.dtype))
    centred = x - x.mean(dims, keepdim=True)
    out = centred * (centred.square().mean(dims, keepdim=True) + eps).rsqrt()
    if weight is not None:
        out = out * weight
    if bias is not None:
        out = out + bias
    return out.to(input.dtype)


def rms_norm(input: Tensor, normalized_shape: Any, weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    """input / sqrt(mean(input^2) + eps) * weight over the last dimensions (Zhang and Sennrich 2019).

    ``eps`` defaults to the machine epsilon of the input's dtype. Shapes as for :func:`layer_norm`.
    """
    _, dims = _check_trailing("rms_norm", input, normalized_shape, weight, None)
    x = input.to(_compute_dtype(input.dtype))
    if eps is None:
        eps = rushlight.finfo(x.dtype).eps
    out = x * (x.square().mean(dims, keepdim=True) + eps).rsqrt()
    if weight is not None:
        out = out * weight
    return out.to(input.dtype)


def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Normalisation over groups of channels of every element of the batch (Wu and He 2018).

    Shapes: input (N, C, *), weight and bias (C). RuntimeError when C is not divisible by num_groups or the input has
    fewer than 2 dimensions, ValueError for a single value per group.
    """
    if input.dim() < 2:
        raise RuntimeError(f"group_norm: input; expected at least 2 dimensions, got {input.dim()}")
    n, c = input.shape[:2]
    _check_more_than_one("group_norm", [n * c // num_groups, num_groups, *input.shape[2:]])
    if c % num_groups != 0:
        raise RuntimeError(f"group_norm: expected channels divisible by num_groups, got {c} and {num_groups}")
    for name, t in (("weight", weight), ("bias", bias)):
        if t is not None and (t.dim() != 1 or t.numel() != c):
            raise RuntimeError(f"group_norm: {name}; expected shape [{c}], got {list(t.shape)}")
    x = input.to(_compute_dtype(input.dtype)).reshape(n, num_groups, c // num_groups * math.prod(input.shape[2:]))
    centred = x - x.mean(2, keepdim=True)
    out = (centred * (centred.square().mean(2, keepdim=True) + eps).rsqrt()).reshape(input.shape)
    shape = [1, c] + [1] * (input.dim() - 2)
    if weight is not None:
        out = out * weight.reshape(shape)
    if bias is not None:
        out = out + bias.reshape(shape)
    return out.to(input.dtype)


def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """input / (k + alpha * mean of the squares of ``size`` neighbouring channels)^beta (Krizhevsky et al. 2012).

    Shapes: (N, C, *) with at least 3 dimensions, otherwise ValueError.

    >>> torch.nn.functional.local_response_norm(torch.tensor([[[1.0], [2.0]]]), 1, alpha=1.0, beta=1.0)
    tensor([[[0.5000],
             [0.4000]]])
    """
    if input.dim() < 3:
        raise ValueError(f"local_response_norm: input; expected at least 3 dimensions, got {input.dim()}")
    if input.numel() == 0:
        return input
    functional = rushlight.nn.functional
    squares = input.mul(input)
    before, after = size // 2, (size - 1) // 2
    if input.dim() == 3:
        squares = functional.pad(squares.unsqueeze(1), (0, 0, before, after))
        squares = functional.avg_pool2d(squares, (size, 1), stride=1).squeeze(1)
    else:
        n, c, h = input.shape[:3]
        squares = squares.reshape(n, 1, c, h, -1)
        squares = functional.pad(squares, (0, 0, 0, 0, before, after))
        squares = functional.avg_pool3d(squares, (size, 1, 1), stride=1).squeeze(1).reshape(input.shape)
    return input / squares.mul(alpha).add(k).pow(beta)


def normalize(input: Tensor, p: float = 2.0, dim: Any = 1, eps: float = 1e-12, out: Tensor | None = None) -> Tensor:
    """input / max(\\|\\|input\\|\\|_p, eps), norms taken along ``dim``. Shapes: any -> the same.

    >>> torch.nn.functional.normalize(torch.tensor([[3.0, 4.0], [0.0, 2.0]]))
    tensor([[0.6000, 0.8000],
            [0.0000, 1.0000]])
    """
    length = rushlight.linalg.vector_norm(input, p, dim, keepdim=True).clamp_min(eps).expand_as(input)
    if out is None:
        return input / length
    return rushlight.div(input, length, out=out)
