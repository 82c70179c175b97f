"""Pooling."""

from __future__ import annotations

import math

import rushlight
from rushlight import Tensor

from . import _ops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d", "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d", "adaptive_max_pool2d_with_indices", "adaptive_max_pool3d",
    "adaptive_max_pool3d_with_indices",
    "fractional_max_pool2d", "fractional_max_pool2d_with_indices", "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices", "lp_pool1d", "lp_pool2d", "lp_pool3d", "max_pool1d",
    "max_pool1d_with_indices",
    "max_pool2d", "max_pool2d_with_indices", "max_pool3d", "max_pool3d_with_indices", "max_unpool1d", "max_unpool2d",
    "max_unpool3d",
]  # fmt: skip


def _tuple(x: Any, n: int) -> tuple[Any, ...]:
    return tuple(x) if hasattr(x, "__iter__") else (x,) * n


def _stride(kernel_size: Any, stride: Any) -> Any:
    return kernel_size if stride is None or (hasattr(stride, "__len__") and len(stride) == 0) else stride


# ---------------------------------------------------------------- maximum


def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """Like :func:`max_pool1d`, and where in the input the maxima stand.

    Shapes: (N, C, *spatial) or (C, *spatial); spatial sizes become those of the windows.

    >>> torch.nn.functional.max_pool1d_with_indices(torch.tensor([[1.0, 3.0, 2.0, 4.0]]), 2)
    (tensor([[3., 4.]]), tensor([[1, 3]]))
    """
    out, index = rushlight.max_pool1d_with_indices(
        input, kernel_size, _stride(kernel_size, stride), padding, dilation, ceil_mode
    )
    return out, index


def max_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The maximum of each window. Shapes: (N, C, L) or (C, L) -> (N, C, L') or (C, L')."""
    if return_indices:
        return max_pool1d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)
    return rushlight.max_pool1d(input, kernel_size, _stride(kernel_size, stride), padding, dilation, ceil_mode)


def max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """Like :func:`max_pool2d`, and where in the input plane (row by row) the maxima stand.

    Shapes: (N, C, *spatial) or (C, *spatial); spatial sizes become those of the windows.

    >>> torch.nn.functional.max_pool2d_with_indices(torch.tensor([[[1.0, 3.0], [2.0, 4.0]]]), 2)
    (tensor([[[4.]]]), tensor([[[3]]]))
    """
    out, index = _ops.max_pool2d_with_indices(
        input, kernel_size, _stride(kernel_size, stride), padding, dilation, ceil_mode
    )
    return out, index


def max_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The maximum of each window. Shapes: (N, C, H, W) or (C, H, W) -> (N, C, H', W') or (C, H', W')."""
    if return_indices:
        return max_pool2d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)
    return rushlight.max_pool2d(input, kernel_size, _stride(kernel_size, stride), padding, dilation, ceil_mode)


def max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """Like :func:`max_pool3d`, and where in the input volume the maxima stand.

    Shapes: (N, C, *spatial) or (C, *spatial); spatial sizes become those of the windows.

    >>> torch.nn.functional.max_pool3d_with_indices(torch.arange(8.0).reshape(1, 2, 2, 2), 2)
    (tensor([[[[7.]]]]), tensor([[[[7]]]]))
    """
    out, index = _ops.max_pool3d_with_indices(
        input, kernel_size, _stride(kernel_size, stride), padding, dilation, ceil_mode
    )
    return out, index


def max_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The maximum of each window. Shapes: (N, C, D, H, W) or without N."""
    if return_indices:
        return max_pool3d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)
    return rushlight.max_pool3d(input, kernel_size, _stride(kernel_size, stride), padding, dilation, ceil_mode)


# ---------------------------------------------------------------- adaptive


def _output_size(op: str, output_size: Any, input: Tensor, n: int) -> list[int]:
    """Sizes with None replaced by the input's own."""
    sizes = _tuple(output_size, n)
    if len(sizes) != n:
        raise RuntimeError(f"{op}: output_size; expected {n} sizes, got {len(sizes)}")
    if input.dim() <= n:
        raise ValueError(f"{op}: input; expected more than {n} dimensions, got shape {list(input.shape)}")
    return [own if want is None else want for want, own in zip(sizes, input.shape[-n:], strict=False)]


def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """Means over windows chosen so that the result has ``output_size`` (None keeps a size).

    Shapes: (N, C, H, W) or (C, H, W) -> (N, C, H', W') or (C, H', W').
    """
    return _ops.adaptive_avg_pool2d(input, _output_size("adaptive_avg_pool2d", output_size, input, 2))


def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """Means over windows chosen so that the result has ``output_size``. Shapes: (N, C, D, H, W) or without N."""
    return _ops.adaptive_avg_pool3d(input, _output_size("adaptive_avg_pool3d", output_size, input, 3))


def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """Like :func:`adaptive_max_pool1d`, and where the maxima stand.

    Shapes: (N, C, *spatial) or (C, *spatial); spatial sizes become those of the windows.

    >>> torch.nn.functional.adaptive_max_pool1d_with_indices(torch.tensor([[1.0, 3.0, 2.0, 4.0]]), 2)
    (tensor([[3., 4.]]), tensor([[1, 3]]))
    """
    size = _output_size("adaptive_max_pool1d", output_size, input, 1)[0]
    out, index = rushlight.adaptive_max_pool1d(input, size)
    return out, index


def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Maxima over windows chosen so that the result has ``output_size``. Shapes: (N, C, L) or (C, L)."""
    result = adaptive_max_pool1d_with_indices(input, output_size)
    return result if return_indices else result[0]


def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """Like :func:`adaptive_max_pool2d`, and where the maxima stand.

    Shapes: (N, C, *spatial) or (C, *spatial); spatial sizes become those of the windows.

    >>> torch.nn.functional.adaptive_max_pool2d_with_indices(torch.tensor([[[1.0, 3.0], [2.0, 4.0]]]), 1)
    (tensor([[[4.]]]), tensor([[[3]]]))
    """
    out, index = _ops.adaptive_max_pool2d(input, _output_size("adaptive_max_pool2d", output_size, input, 2))
    return out, index


def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Maxima over windows chosen so that the result has ``output_size``. Shapes: (N, C, H, W) or (C, H, W)."""
    result = adaptive_max_pool2d_with_indices(input, output_size)
    return result if return_indices else result[0]


def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """Like :func:`adaptive_max_pool3d`, and where the maxima stand.

    Shapes: (N, C, *spatial) or (C, *spatial); spatial sizes become those of the windows.

    >>> torch.nn.functional.adaptive_max_pool3d_with_indices(torch.arange(8.0).reshape(1, 2, 2, 2), 1)
    (tensor([[[[7.]]]]), tensor([[[[7]]]]))
    """
    out, index = _ops.adaptive_max_pool3d(input, _output_size("adaptive_max_pool3d", output_size, input, 3))
    return out, index


def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Maxima over windows chosen so that the result has ``output_size``. Shapes: (N, C, D, H, W) or without N."""
    result = adaptive_max_pool3d_with_indices(input, output_size)
    return result if return_indices else result[0]


# ---------------------------------------------------------------- power mean


def _root_of_sum(op: str, pooled: Tensor, norm_type: float, count: int) -> Tensor:
    # the sign stands outside of the root, so that odd powers of negative sums stay real
    return (pooled.sign() * pooled.abs().relu()).mul(count).pow(1.0 / norm_type)


def lp_pool1d(input: Tensor, norm_type: float, kernel_size: int, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """(sum of x^p over each window)^(1/p). Shapes: (N, C, L) or (C, L).

    >>> torch.nn.functional.lp_pool1d(torch.tensor([[3.0, 4.0, 0.0, 2.0]]), 2.0, 2)
    tensor([[5., 2.]])
    """
    out = rushlight.avg_pool1d(input.pow(norm_type), kernel_size, _stride(kernel_size, stride), 0, ceil_mode)
    k = kernel_size if isinstance(kernel_size, int) else kernel_size[0]
    return _root_of_sum("lp_pool1d", out, norm_type, k)


def lp_pool2d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """(sum of x^p over each window)^(1/p). Shapes: (N, C, H, W) or (C, H, W).

    >>> torch.nn.functional.lp_pool2d(torch.tensor([[[3.0, 0.0], [0.0, 4.0]]]), 2.0, 2)
    tensor([[[5.]]])
    """
    out = _ops.avg_pool2d(input.pow(norm_type), kernel_size, _stride(kernel_size, stride), 0, ceil_mode)
    return _root_of_sum("lp_pool2d", out, norm_type, math.prod(_tuple(kernel_size, 2)))


def lp_pool3d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """(sum of x^p over each window)^(1/p). Shapes: (N, C, D, H, W) or without N.

    >>> torch.nn.functional.lp_pool3d(torch.ones(1, 1, 2, 2, 1), 2.0, (2, 2, 1))
    tensor([[[[[2.]]]]])
    """
    out = _ops.avg_pool3d(input.pow(norm_type), kernel_size, _stride(kernel_size, stride), 0, ceil_mode)
    return _root_of_sum("lp_pool3d", out, norm_type, math.prod(_tuple(kernel_size, 3)))


# ---------------------------------------------------------------- unpooling


def _unpool(
    op: str, n: int, input: Tensor, indices: Tensor, kernel_size: Any, stride: Any, padding: Any, output_size: Any
) -> Tensor:
    kernel = _tuple(kernel_size, n)
    strides = kernel if stride is None else _tuple(stride, n)
    pads = _tuple(padding, n)
    if indices.dtype != rushlight.int64:
        raise RuntimeError(f"{op}: dtype of indices; expected int64, got {indices.dtype}")
    if indices.shape != input.shape:
        raise RuntimeError(f"{op}: indices; expected the shape of input {list(input.shape)}, got {list(indices.shape)}")
    if input.dim() not in (n + 1, n + 2):
        raise RuntimeError(f"{op}: input; expected {n + 1} or {n + 2} dimensions, got {input.dim()}")
    default = [(s - 1) * st + k - 2 * p for s, st, k, p in zip(input.shape[-n:], strides, kernel, pads, strict=False)]
    if output_size is None:
        size = default
    else:
        size = list(output_size)
        if len(size) == n + 2:
            size = size[2:]
        if len(size) != n:
            raise ValueError(f"{op}: output_size; expected {n} or {n + 2} sizes, got {len(size)}")
        for d in range(n):
            if not default[d] - strides[d] < size[d] < default[d] + strides[d]:
                raise ValueError(
                    f"{op}: output_size[{d}]; expected a size between {default[d] - strides[d] + 1} and "
                    f"{default[d] + strides[d] - 1}, got {size[d]}"
                )
    lead = list(input.shape[:-n])
    count = math.prod(size)
    if indices.numel() and not indices.is_meta:
        low, high = int(indices.min().item()), int(indices.max().item())
        if low < 0 or high >= count:
            raise RuntimeError(
                f"{op}: index out of range of the output of size {size}; expected 0 to {count - 1}, got "
                f"{low if low < 0 else high}"
            )
    flat = input.new_zeros([*lead, count]) if not input.requires_grad else input.detach().new_zeros([*lead, count])
    out = flat.scatter(-1, indices.flatten(-n), input.flatten(-n)) if input.numel() else flat
    return out.reshape(lead + size)


def max_unpool1d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """The maxima put back to where they stood, zeros elsewhere. Shapes: (N, C, L) or (C, L).

    >>> torch.nn.functional.max_unpool1d(torch.tensor([[3.0, 4.0]]), torch.tensor([[1, 3]]), 2)
    tensor([[0., 3., 0., 4.]])
    """
    return _unpool("max_unpool1d", 1, input, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """The maxima put back to where they stood, zeros elsewhere. Shapes: (N, C, H, W) or (C, H, W).

    >>> torch.nn.functional.max_unpool2d(torch.tensor([[[4.0]]]), torch.tensor([[[3]]]), 2)
    tensor([[[0., 0.],
             [0., 4.]]])
    """
    return _unpool("max_unpool2d", 2, input, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """The maxima put back to where they stood, zeros elsewhere. Shapes: (N, C, D, H, W) or without N.

    >>> torch.nn.functional.max_unpool3d(torch.tensor([[[[4.0]]]]), torch.tensor([[[[3]]]]), (1, 2, 2))
    tensor([[[[0., 0.],
              [0., 4.]]]])
    """
    return _unpool("max_unpool3d", 3, input, indices, kernel_size, stride, padding, output_size)


# ---------------------------------------------------------------- fractional


def _fractional(
    op: str, n: int, input: Tensor, kernel_size: Any, output_size: Any, output_ratio: Any, samples: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Windows whose starts are drawn pseudo-randomly (Graham 2014), one draw per plane and dimension."""
    if output_size is None and output_ratio is None:
        raise ValueError(f"{op}: expected output_size or output_ratio, got neither")
    if input.dim() not in (n + 1, n + 2):
        raise RuntimeError(f"{op}: input; expected {n + 1} or {n + 2} dimensions, got {input.dim()}")
    kernel = _tuple(kernel_size, n)
    sizes = list(input.shape[-n:])
    if output_size is None:
        out_sizes = [int(s * r) for s, r in zip(sizes, _tuple(output_ratio, n), strict=False)]
    else:
        out_sizes = list(_tuple(output_size, n))
    for s, o, k in zip(sizes, out_sizes, kernel, strict=False):
        if not 0 < o + k - 1 <= s:
            raise RuntimeError(
                f"{op}: window {k} is too large; expected output + window - 1 <= {s} (input), got {o + k - 1}"
            )
    batched = input.dim() == n + 2
    batch, channels = (input.shape[0], input.shape[1]) if batched else (1, input.shape[0])
    if samples is None:
        samples = rushlight.rand(batch, channels, n, dtype=input.dtype, device=input.device)
    samples = samples[:batch]
    index: Any = None
    for d in range(n):
        # the draws stand in the order of the dimensions from the last to the first
        u = samples[:, :, n - 1 - d] if n == 2 else samples[:, :, d]
        start = _fractional_starts(u, sizes[d], out_sizes[d], kernel[d])
        window = start.unsqueeze(-1) + rushlight.arange(kernel[d], device=input.device)
        shape = [batch, channels] + [1] * (2 * n)
        shape[2 + d], shape[2 + n + d] = out_sizes[d], kernel[d]
        window = window.reshape(shape)
        index = window if index is None else index * sizes[d] + window
    count, inside = math.prod(out_sizes), math.prod(kernel)
    index = index.expand([batch, channels, *out_sizes, *kernel]).reshape(batch, channels, count, inside)
    planes = input.reshape(batch, channels, math.prod(sizes))
    values = planes.gather(2, index.reshape(batch, channels, count * inside)).reshape(index.shape)
    best, place = values.max(-1)
    where = index.gather(3, place.unsqueeze(-1)).squeeze(-1)
    shape = ([batch] if batched else []) + [channels, *out_sizes]
    return best.reshape(shape), where.reshape(shape)


def _fractional_starts(u: Tensor, size: int, out: int, kernel: int) -> Tensor:
    last = rushlight.full((*u.shape, 1), size - kernel, dtype=rushlight.int64, device=u.device)
    if out == 1:
        return last
    alpha = (size - kernel) / (out - 1)
    steps = rushlight.arange(out - 1, device=u.device).to(u.dtype)
    u = u.unsqueeze(-1)
    starts = ((steps + u) * alpha).trunc() - (u * alpha).trunc()
    return rushlight.cat([starts.long(), last], -1)


def fractional_max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Like :func:`fractional_max_pool2d`, and where the maxima stand.

    Shapes: (N, C, H, W) or (C, H, W); H and W become output_size.

    >>> torch.nn.functional.fractional_max_pool2d_with_indices(torch.rand(1, 5, 5), 2, output_size=3)[1].shape
    rushlight.Size([1, 3, 3])
    """
    return _fractional("fractional_max_pool2d", 2, input, kernel_size, output_size, output_ratio, _random_samples)


def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """Maxima over pseudo-random windows (Graham 2014). Shapes: (N, C, H, W) or (C, H, W).

    >>> torch.nn.functional.fractional_max_pool2d(torch.rand(1, 5, 5), 2, output_size=3).shape
    rushlight.Size([1, 3, 3])
    """
    result = fractional_max_pool2d_with_indices(input, kernel_size, output_size, output_ratio, True, _random_samples)
    return result if return_indices else result[0]


def fractional_max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Like :func:`fractional_max_pool3d`, and where the maxima stand.

    Shapes: (N, C, D, H, W) or (C, D, H, W); D, H and W become output_size.

    >>> torch.nn.functional.fractional_max_pool3d_with_indices(torch.rand(1, 5, 5, 5), 2, output_size=3)[1].shape
    rushlight.Size([1, 3, 3, 3])
    """
    return _fractional("fractional_max_pool3d", 3, input, kernel_size, output_size, output_ratio, _random_samples)


def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """Maxima over pseudo-random windows (Graham 2014). Shapes: (N, C, D, H, W) or without N.

    >>> torch.nn.functional.fractional_max_pool3d(torch.rand(1, 5, 5, 5), 2, output_size=3).shape
    rushlight.Size([1, 3, 3, 3])
    """
    result = fractional_max_pool3d_with_indices(input, kernel_size, output_size, output_ratio, True, _random_samples)
    return result if return_indices else result[0]
