"""Lookups in tables, and functionals that are one operation: dropout, relu, gelu."""

from __future__ import annotations

from typing import Any

from . import _batch_network
from ._record import native, rl

_LOOKUP = """The row of padding_idx gets no gradient; with scale_grad_by_freq a gradient is divided by how often
    its row was used. sparse changes nothing. {more}IndexError for an index outside the table.

    Shapes: indices (*) of integers, weight (V, D); the result (*, D).

    >>> weight = torch.tensor([[0.0, 0.5], [1.0, 1.5], [2.0, 2.5]])
    >>> torch.{call}
    tensor([[2.0000, 2.5000],
            [0.0000, 0.5000]])"""

native(
    "_nn_embedding(Tensor input, Tensor weight, int? padding_idx=None, float? max_norm=None, float norm_type=2.0, "
    "bool scale_grad_by_freq=False, bool sparse=False) -> Tensor",
    public="nn.functional.embedding",
    options={"composite": True},
    doc="The rows of a table at the indices.\n\n    "
    + _LOOKUP.format(
        more="max_norm first scales the rows used\n    down to that norm_type-norm, in place. ",
        call="nn.functional.embedding(torch.tensor([2, 0]), weight)",
    ),
)
native(
    "embedding(Tensor weight, Tensor indices, int padding_idx=-1, bool scale_grad_by_freq=False, bool "
    "sparse=False) -> Tensor",
    batch=_batch_network.embedding,
    method=False,
    out=False,
    derivative={
        "weight": lambda grad, weight_shape, indices, padding_idx, scale_grad_by_freq: rl._embedding_backward(
            grad, indices, weight_shape[0], padding_idx, scale_grad_by_freq
        )
    },
    doc="The rows of a table at the indices: nn.functional.embedding with the table first.\n\n    "
    + _LOOKUP.format(more="", call="embedding(weight, torch.tensor([2, 0]))"),
)


def _embedding_second(incoming: Any, indices: Any, padding_idx: int, scale_grad_by_freq: bool) -> Any:
    rows = rl.embedding(incoming, indices)
    if padding_idx >= 0:
        rows = rows.masked_fill((indices == padding_idx).unsqueeze(-1), 0)
    if scale_grad_by_freq:
        flat = indices.reshape(-1).long()
        counts = rl.bincount(flat).index_select(0, flat).reshape(indices.shape).unsqueeze(-1)
        rows = rows / counts.to(rows.dtype)
    return rows


native(
    "_embedding_backward(Tensor grad, Tensor indices, int rows, int padding_idx, bool scale_grad_by_freq) -> Tensor",
    batch=_batch_network.embedding_backward,
    derivative={
        "grad": lambda grad_result, indices, padding_idx, scale_grad_by_freq: _embedding_second(
            grad_result, indices, padding_idx, scale_grad_by_freq
        )
    },
    doc="The gradient of embedding by its table.",
)

native(
    "embedding_renorm_(Tensor self, Tensor indices, float max_norm, float norm_type) -> Tensor",
    batch="loop",
    public="embedding_renorm_",
    method=False,
    writes_self=True,
    doc="""Scales the rows of a table that the indices name and whose norm exceeds max_norm down to that norm, in
    place.

    Shapes: self (V, D), indices of any shape; the result is self. norm_type is the p of the norm.

    >>> table = torch.tensor([[3.0, 4.0], [30.0, 40.0]])
    >>> torch.embedding_renorm_(table, torch.tensor([0]), 1.0, 2.0)
    tensor([[ 0.6000,  0.8000],
            [30.0000, 40.0000]])""",
)

# ---------------------------------------------------------------- bags

_SUM, _MEAN, _MAX = range(3)  # modes, as the kernels number them
_BAGS = (
    "Tensor indices, Tensor offsets, int mode, bool include_last_offset, Tensor? per_sample_weights, "
    "int padding_idx, bool scale_grad_by_freq"
)


def _bag_table(
    grad: Any,
    weight_shape: Any,
    indices: Any,
    offsets: Any,
    mode: int,
    include_last_offset: bool,
    per_sample_weights: Any,
    padding_idx: int,
    scale_grad_by_freq: bool,
    bag_size: Any,
    max_indices: Any,
) -> Any:
    return rl._embedding_bag_backward(
        grad,
        weight_shape[0],
        indices,
        offsets,
        mode,
        include_last_offset,
        per_sample_weights,
        padding_idx,
        scale_grad_by_freq,
        bag_size,
        max_indices,
    )


native(
    f"_embedding_bag(Tensor weight, {_BAGS}) -> (Tensor, Tensor bag_size, Tensor max_indices)",
    batch="loop",
    out=False,
    options={"not_differentiable": ("bag_size", "max_indices")},
    derivative={
        "weight": _bag_table,
        "per_sample_weights": lambda grad, weight, indices, offsets, include_last_offset, padding_idx: (
            rl._embedding_bag_weights_backward(grad, weight, indices, offsets, include_last_offset, padding_idx)
        ),
    },
    doc="Sums, means or maxima of the rows of each bag, how many rows took part, and where the maxima stand.",
)


def _embedding_bag_second(
    grad_result: Any,
    indices: Any,
    offsets: Any,
    mode: int,
    include_last_offset: bool,
    per_sample_weights: Any,
    padding_idx: int,
    scale_grad_by_freq: bool,
    bag_size: Any,
    max_indices: Any,
) -> Any:
    """The bags of the incoming gradient's rows."""
    if mode == _MAX:
        return grad_result.gather(0, max_indices) * (bag_size > 0).unsqueeze(1).to(grad_result.dtype)
    if not scale_grad_by_freq:
        return rl._embedding_bag(
            grad_result, indices, offsets, mode, include_last_offset, per_sample_weights, padding_idx, False
        )[0]
    flat = indices.long()
    share = (1 / rl.bincount(flat).index_select(0, flat)).to(grad_result.dtype)
    if per_sample_weights is not None:
        share = share * per_sample_weights
    sums = rl._embedding_bag(grad_result, indices, offsets, _SUM, include_last_offset, share, padding_idx, False)[0]
    return sums / bag_size.clamp(min=1).unsqueeze(1).to(sums.dtype) if mode == _MEAN else sums


native(
    f"_embedding_bag_backward(Tensor grad, int rows, {_BAGS}, Tensor bag_size, Tensor max_indices) -> Tensor",
    batch="loop",
    derivative={
        "grad": _embedding_bag_second,
        "per_sample_weights": lambda grad_result, grad, indices, offsets, include_last_offset, padding_idx: (
            rl._embedding_bag_weights_backward(grad, grad_result, indices, offsets, include_last_offset, padding_idx)
        ),
    },
    doc="The gradient of a bag by its table.",
)
native(
    "_embedding_bag_weights_backward(Tensor grad, Tensor weight, Tensor indices, Tensor offsets, bool "
    "include_last_offset, "
    "int padding_idx) -> Tensor",
    batch="loop",
    derivative={
        "grad": lambda grad_result, weight, indices, offsets, include_last_offset, padding_idx: rl._embedding_bag(
            weight, indices, offsets, _SUM, include_last_offset, grad_result, padding_idx, False
        )[0],
        "weight": lambda grad_result, grad, weight_shape, indices, offsets, include_last_offset, padding_idx: _bag_rows(
            grad, weight_shape[0], indices, offsets, include_last_offset, grad_result, padding_idx
        ),
    },
    doc="The gradient of a bag by the weights of its rows.",
)


def _bag_rows(grad: Any, rows: int, indices: Any, offsets: Any, last: bool, weights: Any, padding_idx: int) -> Any:
    return rl._embedding_bag_backward(
        grad, rows, indices, offsets, _SUM, last, weights, padding_idx, False, indices, indices
    )


native(
    "_nn_dropout(Tensor input, float p=0.5, bool training=True, bool inplace=False) -> Tensor",
    public="nn.functional.dropout",
    random=True,
    options={"composite": True},
    doc="""Zeroes each element with probability p while training, and scales the others by 1 / (1 - p), which keeps
    the mean (Srivastava et al., 2014).

    ValueError when p is outside [0, 1].

    Shapes: input of any shape; the result has the same. When not training it is input.

    >>> torch.nn.functional.dropout(torch.ones(1000), 0.75).unique()
    tensor([0., 4.])""",
)
native(
    "_nn_relu(Tensor input, bool inplace=False) -> Tensor",
    public="nn.functional.relu",
    options={"composite": True},
    formula="out = max(0, input)",
    doc="""The rectified linear unit: positive numbers stay, others become 0.

    Shapes: input of any shape; the result has the same.

    >>> torch.nn.functional.relu(torch.tensor([-2.0, 0.0, 3.0]))
    tensor([0., 0., 3.])""",
)
native(
    "_nn_gelu(Tensor input, str approximate='none') -> Tensor",
    public="nn.functional.gelu",
    options={"composite": True},
    formula="out = input * (1 + erf(input / sqrt(2))) / 2",
    doc="""The Gaussian error linear unit: input times the probability that a standard normal number is below it
    (Hendrycks and Gimpel, 2016). approximate="tanh" takes a formula with tanh that differs by at most 0.0005.

    Shapes: input of any shape; the result has the same.

    >>> torch.nn.functional.gelu(torch.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.1587,  0.0000,  0.8413])""",
)
