"""Batch rules of network operations: examples become further rows, further channels or further groups of one call."""

from __future__ import annotations

from typing import Any

from ._record import rl

NONE, MEAN = 0, 1  # reductions, as the kernels number them


def _rows(batch: Any, position: int) -> Any:
    """The examples below each other: (batch, N, ...) as (batch * N, ...)."""
    return batch.expanded(position).flatten(0, 1)


def _apart(batch: Any, result: Any) -> Any:
    """What `_rows` put together, for one result or several."""
    if isinstance(result, tuple):
        return tuple(_apart(batch, r) for r in result)
    return result.unflatten(0, (batch.size, result.shape[0] // batch.size if batch.size else 0))


# ---------------------------------------------------------------- pooling


def pooling(spatial: int) -> Any:
    """Windows over the last dimensions of the first argument, channel by channel."""

    def rule(batch: Any, self: Any, *rest: Any) -> Any:
        if batch.dim(0) == spatial + 1:
            return batch.again(self, *rest)
        return _apart(batch, batch.again(self.flatten(0, 1), *rest))

    return rule


def pooling_of_size(batch: Any, *values: Any) -> Any:
    """The same where tensors are followed by the size of the result and the number of its spatial dimensions."""
    count = next(i for i, v in enumerate(values) if not isinstance(v, rl.Tensor))
    size, spatial, *rest = values[count:]
    if len(size) == spatial + 1:
        return batch.again(*map(batch.expanded, range(count)), (batch.size, *size), spatial, *rest)
    rows = [_rows(batch, i) for i in range(count)]
    return _apart(batch, batch.again(*rows, (batch.size * size[0], *size[1:]), spatial, *rest))


# ---------------------------------------------------------------- convolutions


def _channels(batch: Any, position: int, spatial: int) -> Any:
    """The examples beside each other: (N, batch * C, *spatial), or (batch * C, *spatial)."""
    value = batch.expanded(position)
    if batch.dim(position) == spatial + 1:
        return value.flatten(0, 1)
    return value.movedim(0, 1).flatten(1, 2)


def _channels_apart(batch: Any, result: Any, spatial: int) -> Any:
    where = result.ndim - spatial - 1
    return result.unflatten(where, (batch.size, result.shape[where] // batch.size if batch.size else 0)).movedim(
        where, 0
    )


def convolution(groups_at: int) -> Any:
    """Weights of each example's own are groups of their own; shared ones take the examples as rows.

    `groups_at` is where the number of groups stands among the arguments after input, weight and bias.
    """

    def rule(batch: Any, input: Any, weight: Any, bias: Any, *rest: Any) -> Any:
        spatial = batch.dim(1) - 2
        if not batch.batched(1) and not batch.batched(2):
            if batch.dim(0) == spatial + 1:
                return batch.again(input, weight, bias, *rest)
            return _apart(batch, batch.again(_rows(batch, 0), weight, bias, *rest))
        more = list(rest)
        more[groups_at] *= batch.size
        bias = None if bias is None else batch.expanded(2).flatten()
        result = batch.again(_channels(batch, 0, spatial), batch.expanded(1).flatten(0, 1), bias, *more)
        return _channels_apart(batch, result, spatial)

    return rule


def convolution_map(batch: Any, a: Any, weight: Any, size: Any, *rest: Any) -> Any:
    """`_conv_map`, `_conv_grad_input`: bilinear in a tensor of channels and a weight."""
    spatial = batch.dim(1) - 2
    single = len(size) == spatial + 1
    if not batch.batched(1):
        if single:
            return batch.again(a, weight, (batch.size, *size), *rest)
        return _apart(batch, batch.again(_rows(batch, 0), weight, (batch.size * size[0], *size[1:]), *rest))
    lead = size[:-spatial]
    size = (*lead[:-1], batch.size * lead[-1], *size[-spatial:])
    result = batch.again(
        _channels(batch, 0, spatial), batch.expanded(1).flatten(0, 1), size, *rest[:-1], rest[-1] * batch.size
    )
    return _channels_apart(batch, result, spatial)


def convolution_weight(batch: Any, a: Any, b: Any, size: Any, *rest: Any) -> Any:
    """`_conv_grad_weight`: one group for each example."""
    spatial = len(size) - 2
    a, b = _channels(batch, 0, spatial), _channels(batch, 1, spatial)
    size = (batch.size * size[0], *size[1:])
    return _apart(batch, batch.again(a, b, size, *rest[:-1], rest[-1] * batch.size))


def convolution_bias(batch: Any, grad: Any, spatial: int) -> Any:
    """Sums over all but the channels and the batch."""
    return grad.sum([d for d in range(1, grad.ndim) if d != grad.ndim - spatial - 1])


# ---------------------------------------------------------------- normalisation


def _per_channel(batch: Any, position: int, value: Any) -> Any:
    return None if value is None else batch.expanded(position).flatten()


def _beside(batch: Any, position: int) -> Any:
    return batch.expanded(position).movedim(0, 1).flatten(1, 2)


def _beside_apart(batch: Any, result: Any) -> Any:
    return result.unflatten(1, (batch.size, result.shape[1] // batch.size if batch.size else 0)).movedim(1, 0)


def batch_norm_train(
    batch: Any, input: Any, running_mean: Any, running_var: Any, weight: Any, bias: Any, momentum: float, eps: float
) -> Any:
    if running_mean is not None or running_var is not None:
        return NotImplemented  # one example after the other moves them
    out, mean, rstd = batch.again(
        _beside(batch, 0), None, None, _per_channel(batch, 3, weight), _per_channel(batch, 4, bias), momentum, eps
    )
    return _beside_apart(batch, out), _apart(batch, mean), _apart(batch, rstd)


def batch_norm_eval(batch: Any, input: Any, mean: Any, var: Any, weight: Any, bias: Any, eps: float) -> Any:
    channels = [_per_channel(batch, 1 + i, v) for i, v in enumerate((mean, var, weight, bias))]
    return _beside_apart(batch, batch.again(_beside(batch, 0), *channels, eps))


def batch_norm_backward(
    batch: Any, grad: Any, input: Any, weight: Any, mean: Any, spread: Any, training: bool, eps: float, needs: Any
) -> Any:
    channels = [_per_channel(batch, 2 + i, v) for i, v in enumerate((weight, mean, spread))]
    by_input, *others = batch.again(_beside(batch, 0), _beside(batch, 1), *channels, training, eps, needs)
    return (
        None if by_input is None else _beside_apart(batch, by_input),
        *(None if g is None else _apart(batch, g) for g in others),
    )


def _wanted(needs: Any, i: int) -> bool:
    return not isinstance(needs, tuple) or i >= len(needs) or needs[i]


def _sum(t: Any, dims: list[int]) -> Any:
    return t.sum(dims) if dims else t  # no dims would mean all


def layer_norm_backward(
    batch: Any, grad: Any, input: Any, dims: int, weight: Any, bias: Any, mean: Any, rstd: Any, eps: float, needs: Any
) -> Any:
    """The gradients of weight and bias are summed example by example.

    They are made from the input alone, as mean and rstd count as constants on a tape.
    """
    grad, input, mean, rstd = (batch.expanded(i) for i in (0, 1, 5, 6))
    rows = list(range(1, input.ndim - dims))
    by_weight = by_bias = by_input = None
    if weight is not None and _wanted(needs, 1):
        by_weight = _sum(grad * rl._layer_norm(input, dims, None, None, eps)[0], rows).to(weight.dtype)
    if bias is not None and _wanted(needs, 2):
        by_bias = _sum(grad, rows).to(bias.dtype)
    if _wanted(needs, 0):
        if batch.batched(3):
            grad, weight = grad * batch.aligned(3, input.ndim - 1), None
        by_input = batch.again(grad, input, dims, weight, None, mean, rstd, eps, (True, False, False))[0]
    return by_input, by_weight, by_bias


def rms_norm_backward(
    batch: Any, grad: Any, input: Any, dims: int, weight: Any, rstd: Any, eps: float, needs: Any
) -> Any:
    grad, input, rstd = (batch.expanded(i) for i in (0, 1, 4))
    by_weight = by_input = None
    if weight is not None and _wanted(needs, 1):
        normalized = rl._rms_norm(input, dims, None, eps)[0]
        by_weight = _sum(grad * normalized, list(range(1, input.ndim - dims))).to(weight.dtype)
    if _wanted(needs, 0):
        if batch.batched(3):
            grad, weight = grad * batch.aligned(3, input.ndim - 1), None
        by_input = batch.again(grad, input, dims, weight, rstd, eps, (True, False))[0]
    return by_input, by_weight


def group_norm(batch: Any, input: Any, groups: int, weight: Any, bias: Any, eps: float) -> Any:
    channels = _per_channel(batch, 2, weight), _per_channel(batch, 3, bias)
    results = batch.again(_beside(batch, 0), groups * batch.size, *channels, eps)
    return tuple(_beside_apart(batch, r) for r in results)


def group_norm_backward(
    batch: Any, grad: Any, input: Any, groups: int, weight: Any, bias: Any, mean: Any, rstd: Any, eps: float, needs: Any
) -> Any:
    channels = _per_channel(batch, 3, weight), _per_channel(batch, 4, bias)
    beside = [_beside(batch, i) for i in (0, 1, 5, 6)]
    by_input, *others = batch.again(*beside[:2], groups * batch.size, *channels, *beside[2:], eps, needs)
    return (
        None if by_input is None else _beside_apart(batch, by_input),
        *(None if g is None else _apart(batch, g) for g in others),
    )


# ---------------------------------------------------------------- losses by class


def _classes(batch: Any, single: bool, positions: tuple[int, ...]) -> list[Any]:
    """Arguments with one more dimension of rows; an example without rows is a row."""
    return [batch.expanded(p) if single else _rows(batch, p) for p in positions]


def _counted(batch: Any, target: Any, weight: Any, ignore_index: int) -> Any:
    """The sum of the weights of the targets that count, for each example."""
    counts = target.reshape((batch.size, -1)) != ignore_index
    if weight is None:
        return counts.sum(-1)
    index = target.reshape((batch.size, -1)).where(counts, 0).long()
    return (weight.index_select(0, index.flatten()).reshape(index.shape) * counts).sum(-1)


def class_loss(batch: Any, input: Any, target: Any, weight: Any, ignore_index: int, *rest: Any) -> Any:
    """`_nll_loss`, `_cross_entropy`: losses one by one, reduced here."""
    if batch.batched(2):
        return NotImplemented
    single, reduction = batch.dim(0) == 1, rest[-1]
    input, target = _classes(batch, single, (0, 1))
    each, _, *log_sum = batch.again(input, target, weight, ignore_index, *rest[:-1], NONE)
    total = _counted(batch, target, weight, ignore_index).to(log_sum[0].dtype if log_sum else each.dtype)
    log_sum = log_sum if single else [_apart(batch, s) for s in log_sum]
    if reduction == NONE:
        return each if single else _apart(batch, each), total, *log_sum
    loss = each.reshape((batch.size, -1)).sum(-1)
    return (loss / total).to(loss.dtype) if reduction == MEAN else loss, total, *log_sum


def _one_by_one(batch: Any, grad: int, single: bool, reduction: int, total: int, shape: Any) -> Any:
    """The gradients of losses that are not reduced, from that of what was; `shape` is that of an example's losses.

    `grad` and `total` are positions of arguments.
    """
    if reduction == NONE:
        return batch.expanded(grad) if single else _rows(batch, grad)
    value = batch.expanded(grad)
    if reduction == MEAN:
        value = value / batch.expanded(total)
    value = value.reshape((batch.size, *(1,) * len(shape))).expand((batch.size, *shape))
    return value if single else value.flatten(0, 1)


def nll_loss_backward(
    batch: Any, grad: Any, size: Any, target: Any, weight: Any, ignore_index: int, reduction: int, total: Any
) -> Any:
    if batch.batched(3):
        return NotImplemented
    single = len(size) == 1
    (targets,) = _classes(batch, single, (2,))
    shape = () if single else (size[0], *size[2:])
    grads = _one_by_one(batch, 0, single, reduction, 6, shape)
    size = (batch.size, *size) if single else (batch.size * size[0], *size[1:])
    unused = rl.ones((), dtype=grads.dtype)
    result = batch.again(grads, size, targets, weight, ignore_index, NONE, unused)
    return result if single else _apart(batch, result)


def cross_entropy_backward(
    batch: Any,
    grad: Any,
    input: Any,
    log_sum: Any,
    target: Any,
    weight: Any,
    ignore_index: int,
    label_smoothing: float,
    reduction: int,
    total: Any,
) -> Any:
    if batch.batched(4):
        return NotImplemented
    single = batch.dim(1) == 1
    inputs, log_sums, targets = _classes(batch, single, (1, 2, 3))
    shape = inputs.shape[1:1] if single else (inputs.shape[0] // max(batch.size, 1), *inputs.shape[2:])
    grads = _one_by_one(batch, 0, single, reduction, 8, shape)
    unused = rl.ones((), dtype=log_sums.dtype)
    result = batch.again(
        grads.to(input.dtype), inputs, log_sums, targets, weight, ignore_index, label_smoothing, NONE, unused
    )
    return result if single else _apart(batch, result)


def pointwise_loss(
    batch: Any, kind: int, p: float, input: Any, target: Any, weight: Any, pos_weight: Any, reduction: int
) -> Any:
    if batch.batched(4) or batch.batched(5) or batch.dim(2) != batch.dim(3):
        return NotImplemented
    each = batch.again(kind, p, batch.expanded(2), batch.expanded(3), weight, pos_weight, NONE)
    if reduction == NONE:
        return each
    flat = each.reshape((batch.size, -1))
    return flat.mean(-1) if reduction == MEAN else flat.sum(-1)


def pointwise_loss_backward(
    batch: Any, kind: int, p: float, grad: Any, input: Any, target: Any, weight: Any, pos_weight: Any, reduction: int
) -> Any:
    if batch.batched(5) or batch.batched(6) or batch.dim(3) != batch.dim(4):
        return NotImplemented
    inputs, grads = batch.expanded(3), batch.expanded(2)
    if reduction != NONE:
        grads = grads.reshape((batch.size, *(1,) * batch.dim(3))).expand(inputs.shape)
        if reduction == MEAN:
            grads = grads / max(batch.numel(3), 1)
    return batch.again(kind, p, grads, inputs, batch.expanded(4), weight, pos_weight, NONE)


# ---------------------------------------------------------------- tables


def embedding(batch: Any, weight: Any, indices: Any, padding_idx: int, by_frequency: bool, sparse: bool) -> Any:
    if batch.batched(0) or by_frequency:  # frequencies are those within an example
        return NotImplemented
    return batch.again(weight, indices, padding_idx, by_frequency, sparse)


def embedding_backward(batch: Any, grad: Any, indices: Any, rows: int, padding_idx: int, by_frequency: bool) -> Any:
    """A table for each example, one below the other."""
    shift = (rl.arange(batch.size) * rows).reshape((batch.size, *(1,) * batch.dim(1)))
    indices = batch.expanded(1)
    result = batch.again(batch.expanded(0), indices + shift.to(indices.dtype), batch.size * rows, -1, by_frequency)
    result = result.unflatten(0, (batch.size, rows))
    if padding_idx < 0:
        return result
    keep = (rl.arange(rows) != padding_idx).unsqueeze(-1)
    return result * keep.to(result.dtype)
