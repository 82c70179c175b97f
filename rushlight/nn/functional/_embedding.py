"""Lookups in tables."""

from __future__ import annotations

import warnings

import rushlight
from rushlight import Tensor

__all__ = ["embedding", "embedding_bag", "one_hot"]


def _renormalize(weight: Tensor, index: Tensor, max_norm: float, norm_type: float) -> None:
    """Scales the looked up rows that are longer than max_norm down, in place."""
    with rushlight.no_grad():
        rows = index.reshape(-1).unique()
        chosen = weight.index_select(0, rows)
        length = rushlight.linalg.vector_norm(chosen, norm_type, 1, keepdim=True)
        scale = rushlight.where(length > max_norm, max_norm / (length + 1e-7), rushlight.ones_like(length))
        weight.index_copy_(0, rows, chosen * scale)


def _positive_padding(op: str, padding_idx: int | None, rows: int) -> int | None:
    if padding_idx is None:
        return None
    if not -rows <= padding_idx < rows:
        raise AssertionError(f"{op}: padding_idx out of range; expected {-rows} to {rows - 1}, got {padding_idx}")
    return padding_idx + rows if padding_idx < 0 else padding_idx


def _check_index(op: str, input: Tensor, rows: int) -> None:
    if input.dtype not in (rushlight.int64, rushlight.int32):
        raise RuntimeError(f"{op}: dtype of the indices; expected int64 or int32, got {input.dtype}")
    if not input.is_meta:
        outside = (input < 0) | (input >= rows)
        if bool(outside.any()):
            raise IndexError(f"{op}: index out of range; expected 0 to {rows - 1}, got {input[outside][0].item()}")


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of ``weight`` at the indices ``input``.

    Shapes: integers (*), weight (V, D) -> (*, D). The row of ``padding_idx`` gets no gradient. ``max_norm`` first
    scales the rows used down to that length, in place. IndexError for an index outside the table.
    """
    if weight.dim() != 2:
        raise RuntimeError(f"embedding: weight; expected a matrix, got shape {list(weight.shape)}")
    padding_idx = _positive_padding("embedding", padding_idx, weight.size(0))
    _check_index("embedding", input, weight.size(0))
    if max_norm is not None:
        _renormalize(weight, input, max_norm, norm_type)
    index = input.long()
    if scale_grad_by_freq and weight.requires_grad and rushlight.is_grad_enabled():
        counts = rushlight.bincount(index.reshape(-1), minlength=weight.size(0)).clamp(min=1)
        rows = weight.index_select(0, index.reshape(-1))
        share = (1 / counts.to(weight.dtype))[index.reshape(-1)].unsqueeze(1)
        # the value of the row, with its gradient divided by the number of uses
        rows = rows.detach() + share * (rows - rows.detach())
    else:
        rows = weight.index_select(0, index.reshape(-1))
    out = rows.reshape(*index.shape, weight.size(1))
    if padding_idx is not None and out.requires_grad:
        out = rushlight.where((index == padding_idx).unsqueeze(-1), out.detach(), out)
    return out


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """The sum, mean or maximum of the rows of each bag of indices.

    Shapes: integers (B, N), or (N,) with ``offsets`` (B,), weight (V, D) -> (B, D). ``per_sample_weights`` has the
    shape of input and is for ``mode='sum'`` only. An empty bag gives zeros.
    """
    op = "embedding_bag"
    if weight.dtype == rushlight.int64 and input.is_floating_point():
        warnings.warn(f"{op}: the order of arguments is (input, weight, ...)", stacklevel=2)
        weight, input = input, weight
    if per_sample_weights is not None and input.shape != per_sample_weights.shape:
        raise ValueError(
            f"{op}: per_sample_weights; expected the shape of input {list(input.shape)}, got "
            f"{list(per_sample_weights.shape)}"
        )
    if weight.dim() != 2:
        raise ValueError(f"{op}: weight; expected a matrix, got shape {list(weight.shape)}")
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError(f"{op}: offsets; expected None for a 2-d input, got a {type(offsets).__name__}")
        bags, length = input.shape
        bag_of = rushlight.arange(bags, device=input.device).repeat_interleave(length)
        input = input.reshape(-1)
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.reshape(-1)
    elif input.dim() == 1:
        if offsets is None:
            raise ValueError(f"{op}: offsets; expected a tensor for a 1-d input, got None")
        if offsets.dim() != 1:
            raise ValueError(f"{op}: offsets; expected 1 dimension, got {offsets.dim()}")
        starts = offsets.long()
        if starts.numel() and not starts.is_meta:
            if starts[0].item() != 0:
                raise RuntimeError(f"{op}: offsets[0]; expected 0, got {starts[0].item()}")
            if starts[-1].item() > input.numel():
                raise RuntimeError(
                    f"{op}: offsets[-1]; expected at most {input.numel()} (the indices), got {starts[-1].item()}"
                )
        if include_last_offset:
            if starts.numel() == 0:
                raise RuntimeError(f"{op}: offsets; expected at least 1 with include_last_offset, got 0")
            input = input[: int(starts[-1].item())]
            if per_sample_weights is not None:
                per_sample_weights = per_sample_weights[: input.numel()]
            starts = starts[:-1]
        bags = starts.numel()
        positions = rushlight.arange(input.numel(), device=input.device)
        bag_of = rushlight.searchsorted(starts, positions, right=True) - 1
    else:
        raise ValueError(f"{op}: input; expected 1 or 2 dimensions, got {input.dim()}")
    if mode not in ("sum", "mean", "max"):
        raise ValueError(f"{op}: unknown mode; expected 'sum', 'mean' or 'max', got {mode!r}")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError(f"{op}: scale_grad_by_freq; expected False with mode='max', got True")
    if mode == "max" and sparse:
        raise ValueError(f"{op}: sparse; expected False with mode='max', got True")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(f"{op}: per_sample_weights; expected mode='sum', got {mode!r}")
    padding_idx = _positive_padding(op, padding_idx, weight.size(0))
    if max_norm is not None:
        _check_index(op, input, weight.size(0))
        _renormalize(weight, input, max_norm, norm_type)
    if padding_idx is not None:
        kept = (input != padding_idx).nonzero().squeeze(1)
        input, bag_of = input[kept], bag_of[kept]
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights[kept]
    rows = embedding(input, weight, None, None, norm_type, scale_grad_by_freq, False)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(1)
    out = rows.new_zeros((bags, weight.size(1)))
    if mode == "max":
        where = bag_of.unsqueeze(1).expand_as(rows)
        return out.scatter_reduce(0, where, rows, "amax", include_self=False)
    out = out.index_add(0, bag_of, rows)
    if mode == "mean":
        counts = rushlight.bincount(bag_of, minlength=bags).clamp(min=1)
        out = out / counts.unsqueeze(1).to(out.dtype)
    return out


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Class indices as rows with a single 1.

    Shapes: int64 (*) -> int64 (*, num_classes); by default num_classes is the largest index + 1.
    RuntimeError for another dtype, a negative index or an index that is not below num_classes.

    Example::

        >>> import rushlight
        >>> rushlight.nn.functional.one_hot(rushlight.tensor([0, 2])).tolist()
        [[1, 0, 0], [0, 0, 1]]
    """
    if tensor.dtype != rushlight.int64:
        raise RuntimeError(f"one_hot: dtype; expected int64, got {tensor.dtype}")
    if tensor.numel() == 0:
        if num_classes <= 0:
            raise RuntimeError("one_hot: no indices to find the number of classes from; expected num_classes > 0")
        return tensor.new_zeros((*tensor.shape, num_classes))
    low, high = int(tensor.min().item()), int(tensor.max().item())
    if low < 0:
        raise RuntimeError(f"one_hot: expected indices >= 0, got {low}")
    if num_classes == -1:
        num_classes = high + 1
    elif num_classes < 1:
        raise RuntimeError(f"one_hot: num_classes; expected a positive int, got {num_classes}")
    elif high >= num_classes:
        raise RuntimeError(f"one_hot: expected indices below num_classes {num_classes}, got {high}")
    out = tensor.new_zeros((*tensor.shape, num_classes))
    return out.scatter_(-1, tensor.unsqueeze(-1), 1)
