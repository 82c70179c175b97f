"""Lookups in tables, and functionals that are one operation: dropout, relu, gelu."""

from __future__ import annotations

from typing import Any

from ._record import native, rl

_LOOKUP_DOC = """The rows of weight at the indices.

    Shapes: integers (*), weight (V, D) -> (*, D). The row of padding_idx gets no gradient. IndexError for an index
    outside the table."""

native(
    "_nn_embedding(Tensor input, Tensor weight, int? padding_idx=None, float? max_norm=None, float norm_type=2.0, "
    "bool scale_grad_by_freq=False, bool sparse=False) -> Tensor",
    public="nn.functional.embedding",
    options={"composite": True},
    doc=_LOOKUP_DOC + " max_norm first scales the rows used down to that length, in place.",
)
native(
    "embedding(Tensor weight, Tensor indices, int padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False) -> Tensor",
    method=False,
    out=False,
    derivative={
        "weight": lambda grad, weight_shape, indices, padding_idx, scale_grad_by_freq: rl._embedding_backward(
            grad, indices, weight_shape[0], padding_idx, scale_grad_by_freq
        )
    },
    doc=_LOOKUP_DOC,
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
    derivative={
        "grad": lambda grad_result, indices, padding_idx, scale_grad_by_freq: _embedding_second(
            grad_result, indices, padding_idx, scale_grad_by_freq
        )
    },
    doc="The gradient of embedding by its table.",
)

native(
    "_nn_dropout(Tensor input, float p=0.5, bool training=True, bool inplace=False) -> Tensor",
    public="nn.functional.dropout",
    random=True,
    options={"composite": True},
    doc="""Zeroes each element with probability p while training and scales the rest by 1 / (1 - p).

    ValueError when p is outside [0, 1].""",
)
native(
    "_nn_relu(Tensor input, bool inplace=False) -> Tensor",
    public="nn.functional.relu",
    options={"composite": True},
    doc="max(0, x) elementwise.",
)
native(
    "_nn_gelu(Tensor input, str approximate='none') -> Tensor",
    public="nn.functional.gelu",
    options={"composite": True},
    doc="x times the normal distribution function of x; approximate='tanh' is faster and a little different.",
)
