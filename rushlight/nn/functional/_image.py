"""Padding, and windows of images."""

from __future__ import annotations

import rushlight
from rushlight import Tensor
from rushlight.ops._record import rl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["fold", "pad", "unfold"]


def pad(input: Tensor, pad: Any, mode: str = "constant", value: float | None = None) -> Tensor:
    """Pads the last dimensions, the last one first: ``pad`` is (left, right, top, bottom, front, back, ...).

    Args:
        mode: "constant" (any number of dimensions; negative numbers crop), "reflect", "replicate" or "circular" (the
            last one, two or three dimensions of an input with one or two dimensions more).
        value: of the constant padding, 0 by default.

    RuntimeError when ``pad`` does not fit the input, NotImplementedError for an unknown mode or number of dimensions.

    Example::

        >>> import rushlight
        >>> rushlight.nn.functional.pad(rushlight.ones(2), (1, 2)).tolist()
        [0.0, 1.0, 1.0, 0.0, 0.0]
    """
    widths = [int(p) for p in pad]
    if len(widths) % 2:
        raise RuntimeError(f"pad: expected an even number of widths, got {len(widths)}")
    if len(widths) > 2 * input.dim():
        raise RuntimeError(
            f"pad: expected at most {2 * input.dim()} widths for shape {list(input.shape)}, got {len(widths)}"
        )
    if mode == "constant":
        return rushlight.constant_pad_nd(input, widths, 0 if value is None else value)
    if value is not None and value != 0:
        raise RuntimeError(f"pad: value is for mode='constant'; expected None with mode={mode!r}, got {value}")
    dims = len(widths) // 2
    if mode not in ("reflect", "replicate", "circular"):
        raise NotImplementedError(
            f"pad: unknown mode; expected 'constant', 'reflect', 'replicate' or 'circular', got {mode!r}"
        )
    if not 1 <= dims <= 3 or input.dim() not in (dims + 1, dims + 2):
        raise NotImplementedError(
            f"pad: mode {mode!r} pads the last 1, 2 or 3 dimensions of an input with 1 or 2 more; got {len(widths)} "
            f"widths for shape {list(input.shape)}"
        )
    for size in input.shape[input.dim() - dims - 1 :]:
        if size == 0:
            raise RuntimeError(f"pad: mode {mode!r}; expected sizes other than 0, got shape {list(input.shape)}")
    # all widths are checked before anything is computed
    sides = [(input.dim() - 1 - i, widths[2 * i], widths[2 * i + 1]) for i in range(dims)]
    for d, left, right in sides:
        _check_widths(mode, input, d, left, right)
    out = input
    for d, left, right in sides:
        if left or right:
            out = _padded(mode, out, d, left, right)
    return out.clone() if out is input else out if mode == "circular" else rl._ordered_like(out, input)


def _check_widths(mode: str, input: Tensor, d: int, left: int, right: int) -> None:
    size = input.size(d)
    if mode == "reflect" and (left >= size or right >= size):
        raise RuntimeError(f"pad: reflection; expected widths below {size} at dimension {d}, got ({left}, {right})")
    if mode == "circular" and (left > size or right > size):
        raise RuntimeError(f"pad: circular; expected widths up to {size} at dimension {d}, got ({left}, {right})")
    if size + left + right < 1:
        raise RuntimeError(
            f"pad: nothing is left; expected widths above {-size} at dimension {d}, got ({left}, {right})"
        )


def _padded(mode: str, input: Tensor, d: int, left: int, right: int) -> Tensor:
    """One dimension padded: its middle between copies of parts of it, or position by position."""
    size = input.size(d)
    start, end = max(-left, 0), size - max(-right, 0)
    if mode == "circular" or start >= end:
        return input.index_select(d, _source(mode, input, d, left, right))
    parts = [input.narrow(d, start, end - start)]
    for width, edge, inside, last in ((left, 0, 1, False), (right, size - 1, size - 1 - right, True)):
        if width <= 0:
            continue
        if mode == "reflect":
            part = input.narrow(d, inside, width).flip(d)
        else:
            part = input.narrow(d, edge, 1).expand(*input.shape[:d], width, *input.shape[d + 1 :]).contiguous()
        parts.insert(len(parts) if last else 0, part)
    return rushlight.cat(parts, d) if len(parts) > 1 else parts[0].clone()


def _source(mode: str, input: Tensor, d: int, left: int, right: int) -> Tensor:
    """For every position of the padded dimension the position it is copied from."""
    size = input.size(d)
    position = rushlight.arange(-left, size + right, device=input.device)
    if mode == "replicate":
        return position.clamp(0, size - 1)
    if mode == "circular":
        # what negative widths crop is not part of the circle
        start, end = max(-left, 0), size - max(-right, 0)
        return (position - start).remainder(end - start) + start
    position = position.abs()
    return (size - 1) - ((size - 1) - position).abs()


def _pairs(op: str, name: str, value: Any) -> tuple[int, int]:
    pair = tuple(value) if hasattr(value, "__iter__") else (value, value)
    if len(pair) == 1:
        pair = pair * 2
    if len(pair) != 2:
        raise RuntimeError(f"{op}: {name}; expected a number or a pair, got {len(pair)} numbers")
    return pair


class _Windows:
    """Geometry of the windows that unfold and fold share."""

    def __init__(self, op: str, size: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> None:
        self.kernel = _pairs(op, "kernel_size", kernel_size)
        self.dilation = _pairs(op, "dilation", dilation)
        self.padding = _pairs(op, "padding", padding)
        self.stride = _pairs(op, "stride", stride)
        for name, pair, least in (
            ("kernel_size", self.kernel, 1),
            ("dilation", self.dilation, 1),
            ("stride", self.stride, 1),
            ("padding", self.padding, 0),
        ):
            if min(pair) < least:
                raise RuntimeError(f"{op}: {name}; expected numbers of at least {least}, got {pair}")
        self.padded = tuple(s + 2 * p for s, p in zip(size, self.padding, strict=False))
        self.count = tuple(
            (s - d * (k - 1) - 1) // st + 1
            for s, d, k, st in zip(self.padded, self.dilation, self.kernel, self.stride, strict=False)
        )
        if min(self.count) < 1:
            raise RuntimeError(
                f"{op}: no window fits; expected a kernel {self.kernel} with dilation {self.dilation} inside of the "
                f"padded size {self.padded}, got {self.count} windows"
            )

    def index(self, d: int, device: Any) -> Tensor:
        """Positions of dimension d, ordered by place in the window, then by window."""
        inside = rushlight.arange(self.kernel[d], device=device) * self.dilation[d]
        start = rushlight.arange(self.count[d], device=device) * self.stride[d]
        return (inside.unsqueeze(1) + start).reshape(-1)


def unfold(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """The windows of an image as columns.

    Shapes: (N, C, H, W) or (C, H, W) -> (N, C * kh * kw, L) or without N. RuntimeError when no window fits.

    >>> torch.nn.functional.unfold(torch.tensor([[[[1.0, 2.0, 3.0]]]]), (1, 2))
    tensor([[[1., 2.],
             [2., 3.]]])
    """
    if input.dim() not in (3, 4) or 0 in input.shape[-3:]:
        raise RuntimeError(f"unfold: input; expected shape (N, C, H, W) or (C, H, W), got {list(input.shape)}")
    x = input if input.dim() == 4 else input.unsqueeze(0)
    w = _Windows("unfold", x.shape[2:], kernel_size, dilation, padding, stride)
    p = w.padding
    if p != (0, 0):
        x = pad(x, (p[1], p[1], p[0], p[0]))
    n, c = x.shape[:2]
    x = x.index_select(2, w.index(0, x.device)).index_select(3, w.index(1, x.device))
    x = x.reshape(n, c, w.kernel[0], w.count[0], w.kernel[1], w.count[1]).permute(0, 1, 2, 4, 3, 5)
    x = x.reshape(n, c * w.kernel[0] * w.kernel[1], w.count[0] * w.count[1])
    return x if input.dim() == 4 else x.squeeze(0)


def fold(
    input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """The sum of windows given as columns, the transpose of :func:`unfold`.

    Shapes: (N, C * kh * kw, L) or without N -> (N, C, *output_size) or without N.

    >>> torch.nn.functional.fold(torch.ones(1, 2, 2), (1, 3), (1, 2))
    tensor([[[[1., 2., 1.]]]])
    """
    size = _pairs("fold", "output_size", output_size)
    if input.dim() not in (2, 3) or 0 in input.shape[-2:]:
        raise RuntimeError(f"fold: input; expected shape (N, C * kernel, L) or without N, got {list(input.shape)}")
    w = _Windows("fold", size, kernel_size, dilation, padding, stride)
    x = input if input.dim() == 3 else input.unsqueeze(0)
    kernel, count = w.kernel[0] * w.kernel[1], w.count[0] * w.count[1]
    if x.shape[1] % kernel:
        raise RuntimeError(f"fold: channels; expected a multiple of the kernel's {kernel} elements, got {x.shape[1]}")
    if x.shape[2] != count:
        raise RuntimeError(f"fold: columns; expected {count} windows for output_size {size}, got {x.shape[2]}")
    n, c = x.shape[0], x.shape[1] // kernel
    x = x.reshape(n, c, w.kernel[0], w.kernel[1], w.count[0], w.count[1]).permute(0, 1, 2, 4, 3, 5)
    x = x.reshape(n, c, w.kernel[0] * w.count[0], w.kernel[1] * w.count[1])
    x = x.new_zeros((n, c, w.padded[0], x.shape[3])).index_add(2, w.index(0, x.device), x)
    x = x.new_zeros((n, c, w.padded[0], w.padded[1])).index_add(3, w.index(1, x.device), x)
    p = w.padding
    x = x[:, :, p[0] : p[0] + size[0], p[1] : p[1] + size[1]]
    x = x.contiguous()
    return x if input.dim() == 3 else x.squeeze(0)
