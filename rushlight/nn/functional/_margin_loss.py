"""Losses about margins, pairs, triplets and alignments."""

from __future__ import annotations

import rushlight
from rushlight import Tensor
from rushlight.ops._record import certain

from .. import _reduction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = [
    "cosine_embedding_loss", "ctc_loss", "hinge_embedding_loss", "margin_ranking_loss", "multi_margin_loss",
    "multilabel_margin_loss", "multilabel_soft_margin_loss", "soft_margin_loss", "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
]  # fmt: skip


def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """input where target is 1, max(0, margin - input) where it is -1; reduced. Shapes: (*), (*) -> () or (*).

    >>> torch.nn.functional.hinge_embedding_loss(torch.tensor([0.5, 0.25]), torch.tensor([1.0, -1.0]), reduction="none")
    tensor([0.5000, 0.7500])
    """
    reduction = _reduction.resolve("hinge_embedding_loss", size_average, reduce, reduction)
    zero = rushlight.zeros_like(input)
    loss = rushlight.where(target != 1, (margin - input).clamp_min(0), zero) + rushlight.where(
        target != -1, input, zero
    )
    return _reduction.apply(loss, reduction)


def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, -target * (input1 - input2) + margin), reduced. Shapes: three times (N) or () -> ().

    >>> x, y = torch.tensor([3.0, 1.0]), torch.tensor([1.0, 2.0])
    >>> torch.nn.functional.margin_ranking_loss(x, y, torch.tensor([1.0, 1.0]), reduction="none")
    tensor([0., 1.])
    """
    reduction = _reduction.resolve("margin_ranking_loss", size_average, reduce, reduction)
    if not input1.dim() == input2.dim() == target.dim():
        raise RuntimeError(
            "margin_ranking_loss: expected inputs and target of as many dimensions, got shapes "
            f"{list(input1.shape)}, {list(input2.shape)} and {list(target.shape)}"
        )
    return _reduction.apply((-target * (input1 - input2) + float(margin)).clamp_min(0), reduction)


def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """log(1 + exp(-target * input)), reduced. Shapes: (*), (*) -> () or (*).

    >>> torch.nn.functional.soft_margin_loss(torch.tensor([0.0, 1.0]), torch.tensor([1.0, -1.0]), reduction="none")
    tensor([0.6931, 1.3133])
    """
    reduction = _reduction.resolve("soft_margin_loss", size_average, reduce, reduction)
    return _reduction.apply((-target * input).exp().log1p(), reduction)


def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """1 - cos(x1, x2) where target is 1, max(0, cos(x1, x2) - margin) where it is -1; reduced.

    Shapes: (N, D), (N, D), (N) -> (), or (D), (D), () -> (). RuntimeError for other shapes.

    >>> x, y = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 2.0]])
    >>> torch.nn.functional.cosine_embedding_loss(x, y, torch.tensor([1.0]))
    tensor(1.)
    """
    op = "cosine_embedding_loss"
    reduction = _reduction.resolve(op, size_average, reduce, reduction)
    if target.dim() not in (0, 1) or not input1.dim() == input2.dim() == target.dim() + 1:
        raise RuntimeError(
            f"{op}: expected inputs (N, D) and target (N), or (D) and (), got shapes {list(input1.shape)}, "
            f"{list(input2.shape)} and {list(target.shape)}"
        )
    dim = target.dim()
    dot = (input1 * input2).sum(dim)
    length = ((input1.square().sum(dim) + 1e-12) * (input2.square().sum(dim) + 1e-12)).sqrt()
    cos = dot / length
    zero = rushlight.zeros_like(cos)
    loss = rushlight.where(target == 1, 1 - cos, zero) + rushlight.where(
        target == -1, (cos - margin).clamp_min(0), zero
    )
    return _reduction.apply(loss, reduction)


def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """sum over classes i != y of weight[y] * max(0, margin - x[y] + x[i])^p / C; reduced.

    Shapes: (N, C), int64 (N) -> () or (N); also (C), (). ValueError for p other than 1 or 2.

    >>> torch.nn.functional.multi_margin_loss(torch.tensor([[0.5, 0.25]]), torch.tensor([0]))
    tensor(0.3750)
    """
    op = "multi_margin_loss"
    reduction = _reduction.resolve(op, size_average, reduce, reduction)
    if p not in (1, 2):
        raise ValueError(f"{op}: p; expected 1 or 2, got {p}")
    if weight is not None and weight.dim() != 1:
        raise ValueError(f"{op}: weight; expected 1 dimension, got {weight.dim()}")
    if input.dim() > 2 or (input.numel() == 0 and input.dim() < 2) or 0 in input.shape[1:]:
        raise RuntimeError(f"{op}: input; expected shape (N, C) or (C) with classes, got {list(input.shape)}")
    scores = input.reshape(-1, input.shape[-1] if input.dim() else 1)
    labels = target.reshape(-1)
    if target.dim() > 1 or labels.numel() != scores.shape[0]:
        raise RuntimeError(f"{op}: target; expected shape [{scores.shape[0]}], got {list(target.shape)}")
    classes = scores.shape[1]
    if weight is not None and weight.numel() != classes:
        raise RuntimeError(f"{op}: weight; expected {classes} elements, got {weight.numel()}")
    if not labels.is_meta and labels.numel() and certain(((labels < 0) | (labels >= classes)).any()):
        raise RuntimeError(f"{op}: target class out of range; expected 0 to {classes - 1}")
    right = scores.gather(1, labels.unsqueeze(1))
    loss = (margin - right + scores).clamp_min(0)
    if p == 2:
        loss = loss * loss
    if weight is not None:
        loss = loss * weight[labels].unsqueeze(1)
    others = rushlight.arange(classes, device=labels.device) != labels.unsqueeze(1)
    loss = rushlight.where(others, loss, rushlight.zeros_like(loss)).sum(1) / classes
    if reduction == "none" and input.dim() < 2 and target.dim() == 0:
        return loss.reshape(())
    return _reduction.apply(loss, reduction)


def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """sum over target classes y and other classes i of max(0, 1 - x[y] + x[i]) / C; reduced.

    Shapes: (N, C), int64 (N, C) -> () or (N); also without N. The classes of a row end at the first negative number.

    >>> torch.nn.functional.multilabel_margin_loss(torch.tensor([[0.5, 0.25]]), torch.tensor([[0, -1]]))
    tensor(0.3750)
    """
    op = "multilabel_margin_loss"
    reduction = _reduction.resolve(op, size_average, reduce, reduction)
    if input.dim() > 2 or 0 in input.shape[1:] or (input.dim() < 2 and input.numel() == 0):
        raise RuntimeError(f"{op}: input; expected shape (N, C) or (C) with classes, got {list(input.shape)}")
    if input.shape != target.shape and not (input.dim() < 2 and target.dim() < 2 and input.numel() == target.numel()):
        raise RuntimeError(f"{op}: target; expected shape {list(input.shape)}, got {list(target.shape)}")
    classes = input.shape[-1] if input.dim() else 1
    x, y = input.reshape(-1, classes), target.reshape(-1, classes)
    position = rushlight.arange(classes, device=y.device)
    valid = position < rushlight.where(y < 0, position, classes).amin(1, keepdim=True)
    index = rushlight.where(valid, y, rushlight.zeros_like(y))
    if not y.is_meta and index.numel() and certain((index >= classes).any()):
        raise RuntimeError(
            f"{op}: target class out of range; expected at most {classes - 1}, got {int(index.max().item())}"
        )
    is_target = rushlight.zeros(x.shape, dtype=rushlight.int64, device=x.device)
    is_target = is_target.scatter_add(1, index, valid.to(rushlight.int64)) > 0
    picked = x.gather(1, index)
    # [row, target position, class]
    hinge = (1 - picked.unsqueeze(2) + x.unsqueeze(1)).clamp_min(0)
    counted = valid.unsqueeze(2) & ~is_target.unsqueeze(1)
    loss = rushlight.where(counted, hinge, rushlight.zeros_like(hinge)).sum((1, 2)) / classes
    if input.dim() < 2 and reduction == "none":
        return loss.reshape(())
    return _reduction.apply(loss, reduction)


def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Binary cross entropy of logits, averaged over the last dimension; reduced.

    Shapes: (N, C), (N, C) -> () or (N).

    >>> torch.nn.functional.multilabel_soft_margin_loss(torch.tensor([[0.0, 100.0]]), torch.tensor([[1.0, 1.0]]))
    tensor(0.3466)
    """
    reduction = _reduction.resolve("multilabel_soft_margin_loss", size_average, reduce, reduction)
    log_sigmoid = rushlight.nn.functional.logsigmoid
    loss = -(target * log_sigmoid(input) + (1 - target) * log_sigmoid(-input))
    if weight is not None:
        loss = loss * weight
    classes = input.dim() - 1  # of the input, whatever target and weight broadcast it to
    return _reduction.apply(loss.sum(classes) / input.size(classes), reduction)


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, d(anchor, positive) - d(anchor, negative) + margin) with p-norm distances (Balntas et al. 2016); reduced.

    ``swap`` takes d(positive, negative) when that is smaller. Shapes: three times (N, D) or (D) -> ().

    >>> anchor, near, far = torch.tensor([[0.0]]), torch.tensor([[1.0]]), torch.tensor([[3.0]])
    >>> torch.nn.functional.triplet_margin_loss(anchor, near, far, margin=5.0)
    tensor(3.)
    """
    op = "triplet_margin_loss"
    reduction = _reduction.resolve(op, size_average, reduce, reduction)
    if margin <= 0:
        raise ValueError(f"{op}: margin; expected a positive number, got {margin}")
    _check_triplet(op, anchor, positive, negative)
    distance = rushlight.nn.functional.pairwise_distance
    near = distance(anchor, positive, p, eps)
    far = distance(anchor, negative, p, eps)
    if swap:
        far = rushlight.minimum(far, distance(positive, negative, p, eps))
    return _reduction.apply((margin + near - far).clamp_min(0), reduction)


def _check_triplet(op: str, anchor: Tensor, positive: Tensor, negative: Tensor) -> None:
    if not anchor.dim() == positive.dim() == negative.dim():
        raise RuntimeError(
            f"{op}: expected three inputs of as many dimensions, got shapes {list(anchor.shape)}, "
            f"{list(positive.shape)} and "
            f"{list(negative.shape)}"
        )


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """:func:`triplet_margin_loss` with a distance of the user's own (by default the Euclidean one)."""
    op = "triplet_margin_with_distance_loss"
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{op}: unknown reduction; expected 'none', 'mean' or 'sum', got {reduction!r}")
    if margin <= 0:
        raise ValueError(f"{op}: margin; expected a positive number, got {margin}")
    _check_triplet(op, anchor, positive, negative)
    if distance_function is None:
        distance_function = rushlight.nn.functional.pairwise_distance
    near = distance_function(anchor, positive)
    far = distance_function(anchor, negative)
    if swap:
        far = rushlight.minimum(far, distance_function(positive, negative))
    return _reduction.apply((margin + near - far).clamp_min(0), reduction)


# log of 0 as a number that adds without nan; far below any sum of real log probabilities
_NEVER = -1e30


def _lengths(op: str, name: str, lengths: Any, count: int) -> list[int]:
    values = [int(v) for v in (lengths.reshape(-1).tolist() if isinstance(lengths, Tensor) else lengths)]
    if len(values) != count:
        raise RuntimeError(f"{op}: {name}; expected {count} lengths (the batch), got {len(values)}")
    if any(v < 0 for v in values):
        raise RuntimeError(f"{op}: {name}; expected lengths >= 0, got {min(values)}")
    return values


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """-log of the probability of the target sequences, summed over all alignments (Graves et al. 2006); reduced.

    Shapes: log_probs (T, N, C) or (T, C), targets int (N, S) or all of them in one row, lengths (N) -> () or (N).
    ``mean`` divides by the target lengths first. ``zero_infinity`` drops the loss of targets longer than their input.

    >>> torch.nn.functional.ctc_loss(torch.tensor([[[0.5, 0.5]]]).log(), torch.tensor([[1]]), [1], [1])
    tensor(0.6931)
    """
    op = "ctc_loss"
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{op}: unknown reduction; expected 'none', 'mean' or 'sum', got {reduction!r}")
    if log_probs.dim() not in (2, 3):
        raise RuntimeError(f"{op}: log_probs; expected shape (T, N, C) or (T, C), got {list(log_probs.shape)}")
    if targets.is_floating_point() or targets.is_complex() or targets.dtype == rushlight.bool:
        raise RuntimeError(f"{op}: dtype of targets; expected an integer dtype, got {targets.dtype}")
    batched = log_probs.dim() == 3
    if not batched:
        log_probs = log_probs.unsqueeze(1)
        input_lengths = input_lengths.reshape(1) if isinstance(input_lengths, Tensor) else input_lengths
        targets = targets if targets.dim() == 2 else targets.unsqueeze(0)
    steps, count, classes = log_probs.shape
    in_len = _lengths(op, "input_lengths", input_lengths, count)
    out_len = _lengths(op, "target_lengths", target_lengths, count)
    if not 0 <= blank < classes:
        raise RuntimeError(f"{op}: blank out of range; expected 0 to {classes - 1}, got {blank}")
    if in_len and max(in_len) > steps:
        raise RuntimeError(f"{op}: input_lengths; expected at most {steps} (log_probs), got {max(in_len)}")
    labels = targets.long()
    longest = max(out_len, default=0)
    if labels.dim() == 1:
        if sum(out_len) != labels.numel():
            raise RuntimeError(f"{op}: targets; expected {sum(out_len)} (sum of lengths), got {labels.numel()}")
        rows = labels.split(out_len)
        labels = (
            rushlight.stack([rushlight.cat([r, r.new_full((longest - r.numel(),), blank)]) for r in rows])
            if count
            else labels.reshape(0, 0)
        )
    elif labels.shape[0] != count or labels.shape[1] < longest:
        raise RuntimeError(f"{op}: targets; expected at least shape {[count, longest]}, got {list(targets.shape)}")
    labels = labels[:, :longest]
    device = log_probs.device
    n_labels = rushlight.tensor(out_len, dtype=rushlight.int64, device=device)
    # blank, label, blank, ... blank: the states of the alignment
    states = labels.new_full((count, 2 * longest + 1), blank)
    states[:, 1::2] = labels
    position = rushlight.arange(2 * longest + 1, device=device)
    # skipping a blank is allowed between different labels
    may_skip = rushlight.zeros_like(states, dtype=rushlight.bool)
    if longest > 1:
        may_skip[:, 3::2] = labels[:, 1:] != labels[:, :-1]
    used = position.unsqueeze(0) <= 2 * n_labels.unsqueeze(1)
    emit = log_probs.clamp(min=_NEVER).gather(2, states.unsqueeze(0).expand(steps, -1, -1)) if steps else log_probs
    never = (
        emit.new_full((count, 2 * longest + 1), _NEVER)
        if steps
        else log_probs.new_full((count, 2 * longest + 1), _NEVER)
    )
    start = (position < 2).unsqueeze(0) & used
    # before the first step one stands in front of state 0 or 1
    alpha = None
    finals: list[Any] = [None] * count
    for n in range(count):
        if in_len[n] == 0:
            finals[n] = never.new_zeros(()) if out_len[n] == 0 else never.new_full((), _NEVER)
    for t in range(max(in_len, default=0)):
        if alpha is None:
            alpha = rushlight.where(start, emit[t], never)
        else:
            one = rushlight.cat([never[:, :1], alpha[:, :-1]], 1)
            two = rushlight.cat([never[:, :2], alpha[:, :-2]], 1) if longest else never
            two = rushlight.where(may_skip, two, never)
            high = rushlight.maximum(rushlight.maximum(alpha, one), two).detach()
            total = ((alpha - high).exp() + (one - high).exp() + (two - high).exp()).log() + high
            alpha = rushlight.where(used, (total + emit[t]).clamp(min=_NEVER), never)
        for n in range(count):
            if in_len[n] == t + 1:
                last = alpha[n, 2 * out_len[n]]
                finals[n] = last if out_len[n] == 0 else rushlight.logaddexp(last, alpha[n, 2 * out_len[n] - 1])
    loss = -rushlight.stack(finals) if count else log_probs.new_zeros((0,))
    impossible = loss > -_NEVER / 10
    if steps and log_probs.requires_grad:
        # The input stands for log_softmax of something: by convention the gradient contains that of its
        # normalisation, a term of value 0 here. It vanishes again in the backward of log_softmax.
        within = rushlight.arange(steps, device=device).unsqueeze(1) < rushlight.tensor(in_len, device=device)
        mass = rushlight.where(within, log_probs.exp().sum(2), log_probs.new_zeros(())).sum(0)
        loss = loss + (mass - mass.detach())
    loss = loss.masked_fill(impossible, 0.0 if zero_infinity else float("inf"))
    if reduction == "mean":
        return (loss / n_labels.clamp(min=1).to(loss.dtype)).mean()
    if reduction == "sum":
        return loss.sum()
    return loss if batched else loss.squeeze(0)
