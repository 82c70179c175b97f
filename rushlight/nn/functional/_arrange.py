"""Channels rearranged, and products of several inputs."""

from __future__ import annotations

import rushlight
from rushlight import Tensor
from rushlight.ops._record import rl

__all__ = [
    "bilinear", "channel_shuffle", "conv_tbc", "native_channel_shuffle", "pixel_shuffle", "pixel_unshuffle",
]  # fmt: skip


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x1^T A x2 + b.

    Shapes: (*, I), (*, J), weight (K, I, J), bias (K) -> (*, K). RuntimeError when they do not fit.

    >>> torch.nn.functional.bilinear(torch.tensor([1.0, 2.0]), torch.tensor([3.0]), torch.tensor([[[1.0], [10.0]]]))
    tensor([63.])
    """
    op = "bilinear"
    if input1.dim() == 0 or input1.shape[:-1] != input2.shape[:-1]:
        raise RuntimeError(
            f"{op}: expected inputs of one shape but for the last size, got {list(input1.shape)} and "
            f"{list(input2.shape)}"
        )
    if weight.dim() != 3 or list(weight.shape[1:]) != [input1.shape[-1], input2.shape[-1]]:
        raise RuntimeError(
            f"{op}: weight; expected shape [K, {input1.shape[-1]}, {input2.shape[-1]}], got {list(weight.shape)}"
        )
    if bias is not None and bias.numel() != weight.shape[0]:
        raise RuntimeError(f"{op}: bias; expected {weight.shape[0]} elements, got {bias.numel()}")
    if input1.dtype in (rushlight.float16, rushlight.bfloat16):
        # summed in float32; the product of input1 and weight is rounded, as PyTorch does
        dtype, wide = input1.dtype, rushlight.float32
        first = rushlight.einsum("...i,kij->...kj", [input1.to(wide), weight.to(wide)]).to(dtype)
        low = (first.to(wide) * input2.to(wide).unsqueeze(-2)).sum(-1).to(dtype)
        return low if bias is None else low + bias
    lead = list(input1.shape[:-1])
    x1 = input1.reshape(-1, input1.shape[-1])
    x2 = input2.reshape(-1, input2.shape[-1])
    k, i, j = weight.shape
    # (N, I) x (I, K J) -> (N, K, J), then against x2
    half = (x1 @ weight.permute(1, 0, 2).reshape(i, k * j)).reshape(-1, k, j)
    out = (half * x2.unsqueeze(1)).sum(-1)
    if bias is not None:
        out = out + bias
    return out.reshape([*lead, k])


def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Interleaves ``groups`` groups of channels.

    Shapes: (N, C, *) -> the same. RuntimeError when C is not divisible.

    >>> torch.nn.functional.channel_shuffle(torch.arange(4).reshape(1, 4, 1), 2).flatten()
    tensor([0, 2, 1, 3])
    """
    op = "channel_shuffle"
    if input.dim() < 3:
        raise RuntimeError(f"{op}: input; expected at least 3 dimensions, got {input.dim()}")
    if groups <= 0:
        raise RuntimeError(f"{op}: groups; expected a positive int, got {groups}")
    n, c = input.shape[:2]
    if c % groups:
        raise RuntimeError(f"{op}: expected channels divisible by groups, got {c} and {groups}")
    x = input.reshape(n, groups, c // groups, *input.shape[2:])
    return rl._ordered_like(x.transpose(1, 2).contiguous().reshape(input.shape), input)


def native_channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """The same as :func:`channel_shuffle`.

    Shapes: (N, C, *); the result has the same.

    >>> torch.nn.functional.native_channel_shuffle(torch.arange(4).reshape(1, 4, 1), 2).flatten()
    tensor([0, 2, 1, 3])
    """
    return channel_shuffle(input, groups)


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """(*, C r^2, H, W) -> (*, C, H r, W r) (Shi et al.

    2016). RuntimeError when the channels are not divisible by r^2.

    Shapes: (*, C r^2, H, W) -> (*, C, H r, W r), r = upscale_factor.

    >>> torch.nn.functional.pixel_shuffle(torch.arange(4).reshape(4, 1, 1), 2)
    tensor([[[0, 1],
             [2, 3]]])
    """
    op, r = "pixel_shuffle", upscale_factor
    if input.dim() < 3:
        raise RuntimeError(f"{op}: input; expected at least 3 dimensions, got {input.dim()}")
    if r <= 0:
        raise RuntimeError(f"{op}: upscale_factor; expected a positive int, got {r}")
    *lead, c, h, w = input.shape
    if c % (r * r):
        raise RuntimeError(f"{op}: expected channels divisible by {r * r} (upscale_factor^2), got {c}")
    n = len(lead)
    x = input.reshape(*lead, c // (r * r), r, r, h, w)
    x = x.permute(*range(n), n, n + 3, n + 1, n + 4, n + 2)
    # a copy even where the factor is 1
    x = x.clone(memory_format=rushlight.contiguous_format).reshape(*lead, c // (r * r), h * r, w * r)
    return rl._ordered_like(x, input)


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """(*, C, H r, W r) -> (*, C r^2, H, W). RuntimeError when height or width is not divisible by r.

    Shapes: (*, C, H r, W r) -> (*, C r^2, H, W), r = downscale_factor.

    >>> torch.nn.functional.pixel_unshuffle(torch.arange(4).reshape(1, 2, 2), 2).flatten()
    tensor([0, 1, 2, 3])
    """
    op, r = "pixel_unshuffle", downscale_factor
    if input.dim() < 3:
        raise RuntimeError(f"{op}: input; expected at least 3 dimensions, got {input.dim()}")
    if r <= 0:
        raise RuntimeError(f"{op}: downscale_factor; expected a positive int, got {r}")
    *lead, c, h, w = input.shape
    if h % r or w % r:
        raise RuntimeError(f"{op}: expected height and width divisible by {r}, got {h} and {w}")
    n = len(lead)
    x = input.reshape(*lead, c, h // r, r, w // r, r)
    x = x.permute(*range(n), n, n + 2, n + 4, n + 1, n + 3)
    x = x.clone(memory_format=rushlight.contiguous_format).reshape(*lead, c * r * r, h // r, w // r)
    return rl._ordered_like(x, input)


def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """conv1d over an input of shape (T, B, C_in), with a weight (kernel, C_in, C_out) and a bias (C_out).

    Shapes: input (T, N, C), weight (K, C, O), bias (O) -> (T + 2 pad - K + 1, N, O).

    >>> torch.nn.functional.conv_tbc(torch.ones(3, 1, 1), torch.ones(2, 1, 1), torch.zeros(1)).flatten()
    tensor([2., 2.])
    """
    if input.dim() != 3 or weight.dim() != 3 or bias.dim() != 1:
        raise RuntimeError(
            "conv_tbc: expected input (T, B, C_in), weight (K, C_in, C_out) and bias (C_out), got "
            f"{list(input.shape)}, "
            f"{list(weight.shape)} and {list(bias.shape)}"
        )
    if input.shape[2] != weight.shape[1] or weight.shape[2] != bias.shape[0]:
        raise RuntimeError(
            f"conv_tbc: channels; expected {weight.shape[1]} of input and {weight.shape[2]} of bias (weight), got "
            f"{input.shape[2]} and {bias.shape[0]}"
        )
    out = rushlight.nn.functional.conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, 1, pad)
    return out.permute(2, 0, 1)
