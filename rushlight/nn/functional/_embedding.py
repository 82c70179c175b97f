"""Lookups in tables."""

from __future__ import annotations

import warnings

import rushlight
from rushlight import Tensor
from rushlight.ops._record import certain

from . import _ops

__all__ = ["embedding", "embedding_bag", "one_hot"]


def _positive_padding(op: str, padding_idx: int | None, rows: int) -> int | None:
    if padding_idx is None:
        return None
    if not -rows <= padding_idx < rows:
        raise AssertionError(f"{op}: padding_idx out of range; expected {-rows} to {rows - 1}, got {padding_idx}")
    return padding_idx + rows if padding_idx < 0 else padding_idx


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
    out: Tensor = _ops._nn_embedding(input, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse)
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

    >>> torch.nn.functional.embedding_bag(torch.tensor([[0, 2]]), torch.tensor([[1.0], [3.0], [5.0]]))
    tensor([[3.]])
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
        offsets = rushlight.arange(bags, device=input.device) * length
        input = input.reshape(-1)
        include_last_offset = False  # every row is a bag
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.reshape(-1)
    elif input.dim() == 1:
        if offsets is None:
            raise ValueError(f"{op}: offsets; expected a tensor for a 1-d input, got None")
        if offsets.dim() != 1:
            raise ValueError(f"{op}: offsets; expected 1 dimension, got {offsets.dim()}")
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
        with rushlight.no_grad():
            rushlight.embedding_renorm_(weight, input, max_norm, norm_type)
    out: Tensor = _ops._embedding_bag(
        weight,
        input,
        offsets,
        ("sum", "mean", "max").index(mode),
        include_last_offset,
        per_sample_weights,
        -1 if padding_idx is None else padding_idx,
        scale_grad_by_freq,
    )[0]
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
    if certain((tensor < 0).any()):
        raise RuntimeError(f"one_hot: expected indices >= 0, got {int(tensor.min())}")
    if num_classes == -1:
        num_classes = int(tensor.max()) + 1
    elif num_classes < 1:
        raise RuntimeError(f"one_hot: num_classes; expected a positive int, got {num_classes}")
    elif certain((tensor >= num_classes).any()):
        raise RuntimeError(f"one_hot: expected indices below num_classes {num_classes}, got {int(tensor.max())}")
    out = tensor.new_zeros((*tensor.shape, num_classes))
    return out.scatter(-1, tensor.unsqueeze(-1), 1)
