"""Resizing and sampling of images.

All resizing is separable: one dimension after the other, each output position a weighted sum of a few input positions.
"""

from __future__ import annotations

import math
import warnings

import rushlight
from rushlight import Tensor
from rushlight.ops._record import rl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "affine_grid", "grid_sample", "interpolate", "upsample", "upsample_bilinear", "upsample_nearest",
]  # fmt: skip

_LINEAR = {"linear": 1, "bilinear": 2, "trilinear": 3}


def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resizes the spatial dimensions of an image or signal.

    Args:
        size, scale_factor: of the output, one number or one per spatial dimension; exactly one of the two.
        mode: "nearest", "nearest-exact", "area" (any dimensions), "linear" (1), "bilinear", "bicubic" (2),
            "trilinear" (3).
        align_corners: for the linear modes and bicubic: the centres of the corner pixels fall together.
        recompute_scale_factor: compute with the ratio of the sizes instead of the given scale_factor.
        antialias: average over the source pixels when shrinking (bilinear and bicubic).

    Shapes: (N, C, *) with 1 to 3 spatial dimensions -> (N, C, *'). ValueError for arguments that do not fit.

    >>> torch.nn.functional.interpolate(torch.tensor([[[1.0, 2.0]]]), scale_factor=2)
    tensor([[[1., 1., 2., 2.]]])
    """
    op = "interpolate"
    if mode in ("nearest", "area", "nearest-exact"):
        if align_corners is not None:
            raise ValueError(
                f"{op}: align_corners is for linear, bilinear, bicubic and trilinear; got it with mode={mode!r}"
            )
    elif align_corners is None:
        align_corners = False
    dims = input.dim() - 2
    if dims < 1:
        raise ValueError(f"{op}: input; expected shape (N, C, *), got {list(input.shape)}")
    factors: Any = None
    if size is not None and scale_factor is not None:
        raise ValueError(f"{op}: expected only one of size and scale_factor, got both")
    if size is not None:
        sizes = list(size) if isinstance(size, (list, tuple)) else [size] * dims
        if len(sizes) != dims:
            raise ValueError(f"{op}: size; expected {dims} numbers for shape {list(input.shape)}, got {len(sizes)}")
        for s in sizes:
            if not hasattr(s, "__index__") and not isinstance(s, Tensor):
                raise TypeError(f"{op}: size; expected ints, got {type(s).__name__}")
        sizes = [int(s) for s in sizes]
    elif scale_factor is not None:
        factors = list(scale_factor) if isinstance(scale_factor, (list, tuple)) else [scale_factor] * dims
        if len(factors) != dims:
            raise ValueError(
                f"{op}: scale_factor; expected {dims} numbers for shape {list(input.shape)}, got {len(factors)}"
            )
        sizes = [math.floor(float(s) * float(f)) for s, f in zip(input.shape[2:], factors, strict=False)]
    else:
        raise ValueError(f"{op}: expected size or scale_factor, got neither")
    if recompute_scale_factor:
        if size is not None:
            raise ValueError(f"{op}: recompute_scale_factor is for scale_factor; got it with size")
        factors = None
    if mode == "area":
        return _area(input, sizes)
    if dims not in (1, 2, 3):
        raise NotImplementedError(f"{op}: expected 1 to 3 spatial dimensions, got {dims}")
    if antialias and not (mode in ("bilinear", "bicubic") and dims == 2):
        raise ValueError(
            f"{op}: antialias is for bilinear and bicubic with 2 spatial dimensions; got {mode!r} with {dims}"
        )
    if mode not in ("nearest", "nearest-exact", "bicubic", *_LINEAR):
        raise NotImplementedError(f"{op}: unknown mode {mode!r}")
    wanted = 2 if mode == "bicubic" else _LINEAR.get(mode)
    if wanted is not None and wanted != dims:
        raise NotImplementedError(f"{op}: mode {mode!r} is for {wanted} spatial dimensions, got {dims}")
    if any(s <= 0 for s in sizes) or 0 in input.shape[1:]:
        raise RuntimeError(f"{op}: expected sizes above 0, got input shape {list(input.shape)} and output size {sizes}")
    out = input.to(rushlight.float32) if input.dtype in (rushlight.float16, rushlight.bfloat16) else input
    for i in range(dims):
        factor = None if factors is None else float(factors[i])
        d = 2 + i
        if out.size(d) == sizes[i] and mode.startswith("nearest") and factor in (None, 1.0):
            continue
        if mode.startswith("nearest"):
            out = out.index_select(d, _nearest(out, d, sizes[i], factor, mode == "nearest-exact"))
        elif antialias:
            out = _resample_dense(out, d, sizes[i], factor, bool(align_corners), mode == "bicubic")
        elif mode == "bicubic":
            out = _cubic(out, d, sizes[i], factor, bool(align_corners))
        else:
            out = _linear(out, d, sizes[i], factor, bool(align_corners))
    out = rl._ordered_like(out.to(input.dtype), input)
    return out.clone() if out is input else out


def _area(input: Tensor, sizes: list[int]) -> Tensor:
    functional = rushlight.nn.functional
    if len(sizes) == 1:
        return functional.adaptive_avg_pool1d(input, sizes[0])
    if len(sizes) == 2:
        return functional.adaptive_avg_pool2d(input, sizes)
    if len(sizes) == 3:
        return functional.adaptive_avg_pool3d(input, sizes)
    raise NotImplementedError(f"interpolate: expected 1 to 3 spatial dimensions, got {len(sizes)}")


def _position_dtype(x: Tensor) -> Any:
    return rushlight.float64 if x.dtype == rushlight.float64 else rushlight.float32


def _nearest(x: Tensor, d: int, out: int, factor: float | None, exact: bool) -> Tensor:
    scale = 1.0 / factor if factor is not None and factor > 0 else x.size(d) / out
    # float32 as the reference does: the rounding decides which of two pixels is taken
    position = rushlight.arange(out, device=x.device).to(rushlight.float32)
    if exact:
        position = position + 0.5
    return (position * scale).floor().to(rushlight.int64).clamp(max=x.size(d) - 1)


def _source_position(x: Tensor, d: int, out: int, factor: float | None, align: bool) -> Tensor:
    position = rushlight.arange(out, device=x.device).to(_position_dtype(x))
    if align:
        return position * ((x.size(d) - 1) / (out - 1) if out > 1 else 0.0)
    scale = 1.0 / factor if factor is not None and factor > 0 else x.size(d) / out
    return (position + 0.5) * scale - 0.5


def _along(weight: Tensor, x: Tensor, d: int) -> Tensor:
    return weight.to(x.dtype).reshape([-1] + [1] * (x.dim() - d - 1))


def _linear(x: Tensor, d: int, out: int, factor: float | None, align: bool) -> Tensor:
    position = _source_position(x, d, out, factor, align).clamp(min=0)
    low = position.floor().to(rushlight.int64).clamp(max=x.size(d) - 1)
    high = (low + 1).clamp(max=x.size(d) - 1)
    share = (position - low.to(position.dtype)).clamp(0, 1)
    w = _along(share, x, d)
    return x.index_select(d, low) * (1 - w) + x.index_select(d, high) * w


def _cubic_weights(t: Tensor, a: float) -> list[Tensor]:
    """Keys' kernel at the distances 1 + t, t, 1 - t and 2 - t."""

    def near(v: Tensor) -> Tensor:
        return ((a + 2) * v - (a + 3)) * v * v + 1

    def far(v: Tensor) -> Tensor:
        return ((a * v - 5 * a) * v + 8 * a) * v - 4 * a

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


def _cubic(x: Tensor, d: int, out: int, factor: float | None, align: bool) -> Tensor:
    position = _source_position(x, d, out, factor, align)
    base = position.floor()
    first = base.to(rushlight.int64) - 1
    total: Any = None
    for k, w in enumerate(_cubic_weights(position - base, -0.75)):
        term = x.index_select(d, (first + k).clamp(0, x.size(d) - 1)) * _along(w, x, d)
        total = term if total is None else total + term
    return total


def _resample_dense(x: Tensor, d: int, out: int, factor: float | None, align: bool, cubic: bool) -> Tensor:
    """Antialiased resampling along d as a product with a matrix of filter weights."""
    size = x.size(d)
    if align:
        scale = (size - 1) / (out - 1) if out > 1 else 0.0
    else:
        scale = 1.0 / factor if factor is not None and factor > 0 else size / out
    support = (2.0 if cubic else 1.0) * max(scale, 1.0)
    inverse = 1.0 / scale if scale >= 1.0 else 1.0
    dtype = _position_dtype(x)
    centre = (rushlight.arange(out, device=x.device).to(dtype) + 0.5) * scale
    low = (centre - support + 0.5).trunc().clamp(min=0).unsqueeze(1)
    high = (centre + support + 0.5).trunc().clamp(max=size).unsqueeze(1)
    j = rushlight.arange(size, device=x.device).to(dtype).unsqueeze(0)
    distance = ((j - centre.unsqueeze(1) + 0.5) * inverse).abs()
    if cubic:
        a = -0.5
        near = ((a + 2) * distance - (a + 3)) * distance * distance + 1
        far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
        weight = rushlight.where(distance < 1, near, rushlight.where(distance < 2, far, rushlight.zeros_like(far)))
    else:
        weight = (1 - distance).clamp(min=0)
    weight = rushlight.where((j >= low) & (j < high), weight, rushlight.zeros_like(weight))
    weight = (weight / weight.sum(1, keepdim=True)).to(x.dtype)
    return (x.movedim(d, -1) @ weight.t()).movedim(-1, d)


def upsample(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None
) -> Tensor:
    """Deprecated name of :func:`interpolate`."""
    warnings.warn("upsample is deprecated; use interpolate", stacklevel=2)
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """Deprecated: :func:`interpolate` with mode "nearest"."""
    warnings.warn("upsample_nearest is deprecated; use interpolate", stacklevel=2)
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """Deprecated: :func:`interpolate` with mode "bilinear" and aligned corners."""
    warnings.warn("upsample_bilinear is deprecated; use interpolate", stacklevel=2)
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


# ---------------------------------------------------------------- sampling at points


def affine_grid(theta: Tensor, size: Any, align_corners: bool | None = None) -> Tensor:
    """The sampling points of an affine map, for :func:`grid_sample` (Jaderberg et al. 2015).

    Shapes: theta (N, 2, 3), size (N, C, H, W) -> (N, H, W, 2), or theta (N, 3, 4), size (N, C, D, H, W) -> (N, D, H,
    W, 3).

    >>> identity = torch.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    >>> torch.nn.functional.affine_grid(identity, (1, 1, 1, 2), align_corners=True)
    tensor([[[[-1.,  0.],
              [ 1.,  0.]]]])
    """
    op = "affine_grid"
    if align_corners is None:
        warnings.warn(f"{op}: align_corners is False by default; pass it to silence this warning", stacklevel=2)
        align_corners = False
    if not theta.is_floating_point():
        raise ValueError(f"{op}: dtype of theta; expected floating point, got {theta.dtype}")
    dims = len(size) - 2
    if dims not in (2, 3):
        raise NotImplementedError(f"{op}: size; expected 4 or 5 numbers, got {len(size)}")
    if theta.dim() != 3 or tuple(theta.shape[-2:]) != (dims, dims + 1):
        raise ValueError(
            f"{op}: theta; expected shape [N, {dims}, {dims + 1}] for size {list(size)}, got {list(theta.shape)}"
        )
    if min(size) <= 0:
        raise ValueError(f"{op}: size; expected positive numbers, got {list(size)}")
    spatial = [int(s) for s in size[2:]]
    axes = []
    for i, n in enumerate(reversed(spatial)):
        steps = rushlight.linspace(-1, 1, n, dtype=theta.dtype, device=theta.device) if n > 1 else theta.new_zeros(1)
        if not align_corners:
            steps = steps * ((n - 1) / n)
        shape = [1] * dims
        shape[dims - 1 - i] = n
        axes.append(steps.reshape(shape).expand(spatial))
    axes.append(theta.new_ones(spatial))
    points = rushlight.stack(axes, -1).reshape(1, -1, dims + 1)
    return (points @ theta.transpose(1, 2)).reshape(int(size[0]), *spatial, dims)


# 16-bit floats are rounded at every step, so the steps are PyTorch's: others in two dimensions than in three.


def _unnormalize(x: Tensor, size: int, align: bool, dims: int) -> Tensor:
    if dims == 2:
        return (x + 1) * ((size - 1) / 2) if align else (x + 1) * (size / 2) - 0.5
    return (x + 1) / 2 * (size - 1) if align else ((x + 1) * size - 1) / 2


def _reflect(x: Tensor, twice_low: int, twice_high: int, dims: int) -> Tensor:
    if twice_low == twice_high:
        return x * 0
    low, span = twice_low / 2, (twice_high - twice_low) / 2
    x = (x - low).abs()
    if dims == 2:  # there and back again
        rest = x - (x / (2 * span)).trunc() * (2 * span)
        return (rest + low).minimum(2 * span - rest + low)
    flips = (x / span).floor()
    rest = x.fmod(span)
    return rushlight.where(flips.remainder(2) == 0, rest + low, span - rest + low)


def _limit(x: Tensor, size: int, padding_mode: str, align: bool, dims: int) -> Tensor:
    if padding_mode == "border":
        return x.clamp(0, size - 1)
    if padding_mode == "reflection":
        x = _reflect(x, 0, 2 * (size - 1), dims) if align else _reflect(x, -1, 2 * size - 1, dims)
        return x.clamp(0, size - 1)
    return x


def _take(input: Tensor, index: list[Tensor], sizes: list[int]) -> Tensor:
    """Values of input (N, C, *sizes) at integer points (N, *out); 0 outside."""
    inside: Any = None
    flat: Any = None
    for i, n in zip(index, sizes, strict=False):
        ok = (i >= 0) & (i < n)
        inside = ok if inside is None else inside & ok
        i = i.clamp(0, n - 1)
        flat = i if flat is None else flat * n + i
    n, c = input.shape[:2]
    out_shape = list(flat.shape[1:])
    picked = input.reshape(n, c, -1).gather(2, flat.reshape(n, 1, -1).expand(-1, c, -1)).reshape(n, c, *out_shape)
    return picked * inside.unsqueeze(1).to(picked.dtype)


def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """The values of ``input`` at the points of ``grid``, whose coordinates (x, y, z) run from -1 to 1.

    Args:
        mode: "bilinear", "nearest" or "bicubic" (2-d only).
        padding_mode: what stands outside: "zeros", the "border", or a "reflection".
        align_corners: -1 and 1 are the centres (True) or the outer edges (False) of the corner pixels.

    Shapes: input (N, C, H, W), grid (N, H', W', 2) -> (N, C, H', W'); or with D and 3 coordinates.

    >>> image, middle = torch.tensor([[[[10.0, 20.0]]]]), torch.zeros(1, 1, 1, 2)
    >>> torch.nn.functional.grid_sample(image, middle, align_corners=True)
    tensor([[[[15.]]]])
    """
    op = "grid_sample"
    if mode not in ("bilinear", "nearest", "bicubic"):
        raise ValueError(f"{op}: unknown mode; expected 'bilinear', 'nearest' or 'bicubic', got {mode!r}")
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(
            f"{op}: unknown padding_mode; expected 'zeros', 'border' or 'reflection', got {padding_mode!r}"
        )
    if align_corners is None:
        warnings.warn(f"{op}: align_corners is False by default; pass it to silence this warning", stacklevel=2)
        align_corners = False
    dims = input.dim() - 2
    if dims not in (2, 3) or grid.dim() != input.dim():
        raise RuntimeError(
            f"{op}: expected input and grid of 4 or 5 dimensions each, got {list(input.shape)} and {list(grid.shape)}"
        )
    if grid.shape[-1] != dims or grid.shape[0] != input.shape[0]:
        raise RuntimeError(
            f"{op}: grid; expected shape [{input.shape[0]}, *, {dims}] for input {list(input.shape)}, got "
            f"{list(grid.shape)}"
        )
    if 0 in input.shape[2:]:
        raise RuntimeError(f"{op}: input; expected spatial sizes other than 0, got {list(input.shape)}")
    if mode == "bicubic" and dims == 3:
        raise RuntimeError(f"{op}: bicubic; expected an input of 4 dimensions, got 5")
    if input.dtype != grid.dtype:
        raise RuntimeError(f"{op}: expected input and grid of one dtype, got {input.dtype} and {grid.dtype}")
    sizes = list(input.shape[2:])
    # coordinates in the order of the dimensions
    points = [_unnormalize(grid[..., dims - 1 - d], sizes[d], align_corners, dims) for d in range(dims)]
    if mode == "bicubic":
        return _sample_cubic(input, points, sizes, padding_mode, align_corners)
    points = [_limit(p, n, padding_mode, align_corners, dims) for p, n in zip(points, sizes, strict=False)]
    if mode == "nearest":
        return _take(input, [p.round().to(rushlight.int64) for p in points], sizes)
    lows = [p.floor() for p in points]
    total: Any = None
    for corner in range(1 << dims):
        weight: Any = None
        index: list[Tensor] = []
        for d in reversed(range(dims)):
            upper = corner >> (dims - 1 - d) & 1  # the last dimension changes fastest
            share = points[d] - lows[d]
            w = share if upper else 1 - share
            weight = w if weight is None else weight * w
            index.insert(0, lows[d].to(rushlight.int64) + upper)
        term = _take(input, index, sizes) * weight.unsqueeze(1)
        total = term if total is None else total + term
    return total


def _sample_cubic(input: Tensor, points: list[Tensor], sizes: list[int], padding_mode: str, align: bool) -> Tensor:
    lows = [p.floor() for p in points]
    weights = [_cubic_weights(p - low, -0.75) for p, low in zip(points, lows, strict=False)]
    total: Any = None
    for i in range(4):
        row: Any = None
        for j in range(4):
            index = [
                _limit(lows[d] + (k - 1), sizes[d], padding_mode, align, 2).to(rushlight.int64)
                for d, k in ((0, i), (1, j))
            ]
            term = _take(input, index, sizes) * weights[1][j].unsqueeze(1)
            row = term if row is None else row + term
        term = row * weights[0][i].unsqueeze(1)
        total = term if total is None else total + term
    return total
