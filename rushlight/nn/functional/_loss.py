"""Losses that compare an input with a target element by element or class by class."""

from __future__ import annotations

import math
import warnings

import rushlight
from rushlight import Tensor
from rushlight.ops._record import certain

from .. import _reduction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cross_entropy", "gaussian_nll_loss", "huber_loss",
    "kl_div", "l1_loss", "linear_cross_entropy", "mse_loss", "nll_loss", "poisson_nll_loss", "smooth_l1_loss",
]  # fmt: skip


def _same_size(op: str, input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Both operands at their common shape; the user hears of it when broadcasting was needed."""
    if input.shape == target.shape:
        return input, target
    warnings.warn(
        f"{op}: input of shape {list(input.shape)} and target of shape {list(target.shape)} differ and are broadcast, "
        "which is likely a mistake; make the shapes equal",
        stacklevel=3,
    )
    a, b = rushlight.broadcast_tensors(input, target)  # type: ignore[arg-type, call-arg]
    return a, b


def _weighted(op: str, loss: Tensor, weight: Tensor, input: Tensor, reduction: str) -> tuple[Tensor, Tensor]:
    if weight.shape != input.shape:
        raise ValueError(f"{op}: weight; expected the shape of input {list(input.shape)}, got {list(weight.shape)}")
    return loss * weight, weight


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """(input - target)^2, reduced. Shapes: (*), (*) -> () or (*) with ``reduction='none'``.

    With ``weight`` (the shape of input) the mean is the weighted mean.

    Example::

        >>> import rushlight
        >>> rushlight.nn.functional.mse_loss(rushlight.zeros(2), rushlight.ones(2)).item()
        1.0
    """
    reduction = _reduction.resolve("mse_loss", size_average, reduce, reduction)
    a, b = _same_size("mse_loss", input, target)
    loss = (a - b).square()
    if weight is not None:
        loss, weight = _weighted("mse_loss", loss, weight, input, reduction)
        if reduction == "mean":
            return loss.sum() / weight.sum()
    return _reduction.apply(loss, reduction)


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """\\|input - target\\|, reduced. Shapes: (*), (*) -> () or (*) with ``reduction='none'``."""
    reduction = _reduction.resolve("l1_loss", size_average, reduce, reduction)
    a, b = _same_size("l1_loss", input, target)
    loss = (a - b).abs()
    if weight is not None:
        loss, weight = _weighted("l1_loss", loss, weight, input, reduction)
        if reduction == "mean":
            return loss.sum() / weight.sum()
    return _reduction.apply(loss, reduction)


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """d^2 / (2 beta) where d = \\|input - target\\| < beta, and d - beta / 2 elsewhere; reduced.

    RuntimeError when beta < 0.
    """
    reduction = _reduction.resolve("smooth_l1_loss", size_average, reduce, reduction)
    a, b = _same_size("smooth_l1_loss", input, target)
    if beta < 0:
        raise RuntimeError(f"smooth_l1_loss: expected beta >= 0, got {beta}")
    d = (a - b).abs()
    if beta == 0:
        return _reduction.apply(d, reduction)
    return _reduction.apply(rushlight.where(d < beta, 0.5 * d * d / beta, d - 0.5 * beta), reduction)


def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """d^2 / 2 where d = \\|input - target\\| <= delta, and delta * (d - delta / 2) elsewhere; reduced.

    RuntimeError when delta <= 0.
    """
    reduction = _reduction.resolve("huber_loss", None, None, reduction)
    a, b = _same_size("huber_loss", input, target)
    if delta <= 0:
        raise RuntimeError(f"huber_loss: expected delta > 0, got {delta}")
    d = (a - b).abs()
    loss = rushlight.where(d <= delta, 0.5 * d * d, delta * (d - 0.5 * delta))
    if weight is not None:
        loss, weight = _weighted("huber_loss", loss, weight, input, reduction)
    return _reduction.apply(loss, reduction)


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """target * (log(target) - input), with input a log probability; reduced.

    ``reduction='batchmean'`` divides the sum by the first size, which is the divergence by its definition.

    Shapes: input and target alike; the result (), or their shape with reduction='none'.

    >>> torch.nn.functional.kl_div(torch.tensor([0.5, 0.5]).log(), torch.tensor([1.0, 0.0]), reduction="sum")
    tensor(0.6931)
    """
    if size_average is not None or reduce is not None:
        reduction = _reduction.legacy_get_string(size_average, reduce)
    if reduction not in ("none", "mean", "sum", "batchmean"):
        raise ValueError(f"kl_div: unknown reduction; expected 'none', 'batchmean', 'mean' or 'sum', got {reduction!r}")
    if reduction == "mean":
        warnings.warn(
            "kl_div: reduction='mean' divides by the number of elements; reduction='batchmean' is the KL divergence",
            stacklevel=2,
        )
    loss = target.exp() * (target - input) if log_target else rushlight.xlogy(target, target) - target * input
    if reduction == "batchmean":
        return loss.sum() / input.size(0) if input.dim() != 0 else loss.sum()
    return _reduction.apply(loss, reduction)


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """-weight[target] * input[target], with input a log probability per class; reduced.

    Shapes: (N, C, d1, ...), (N, d1, ...) -> () or the shape of target with ``reduction='none'``; also (C), ().
    ``mean`` divides by the sum of the weights of the targets. Targets equal to ``ignore_index`` do not count.
    Raises ValueError for sizes that do not fit, RuntimeError for a target that is not int64 or uint8 and IndexError
    for a class outside 0 to C - 1.
    """
    reduction = _reduction.resolve("nll_loss", size_average, reduce, reduction)
    return _nll_loss("nll_loss", input, target, weight, ignore_index, reduction)


def _nll_loss(op: str, input: Tensor, target: Tensor, weight: Any, ignore_index: int, reduction: str) -> Tensor:
    _check_classes(op, input, target, weight)
    class_dim = 0 if input.dim() == 1 else 1
    classes = input.shape[class_dim]
    target = target.long()
    counted = target != ignore_index
    index = target * counted
    if not input.is_meta and certain(((index < 0) | (index >= classes)).any()):
        wrong = target[(index < 0) | (index >= classes)].reshape(-1)[0].item()
        raise IndexError(f"{op}: target class out of range; expected 0 to {classes - 1}, got {wrong}")
    picked = input.gather(class_dim, index.unsqueeze(class_dim)).squeeze(class_dim)
    scale = counted.to(input.dtype)
    if weight is not None:
        scale = weight[index] * scale
    # where, not a product: an ignored position may hold an infinity
    loss = rushlight.where(counted, -picked * scale, rushlight.zeros_like(picked))
    if reduction == "none":
        return loss
    if reduction == "sum":
        return loss.sum()
    return loss.sum() / scale.sum()


def _check_classes(op: str, input: Tensor, target: Tensor, weight: Any) -> None:
    if input.dim() < 1:
        raise ValueError(f"{op}: input; expected at least 1 dimension, got {input.dim()}")
    shape, wanted = list(target.shape), list(input.shape)
    if input.dim() == 1:
        if target.dim() > 1 or target.numel() != 1:
            raise ValueError(f"{op}: target; expected shape [] for an input of shape {wanted}, got {shape}")
    elif target.dim() == 0 or shape[0] != wanted[0]:
        raise ValueError(f"{op}: batch size of target; expected {wanted[0]} (input), got shape {shape}")
    if target.dtype not in (rushlight.int64, rushlight.uint8):
        raise RuntimeError(f"{op}: dtype of target; expected int64 or uint8, got {target.dtype}")
    if input.dim() > 1 and shape != wanted[:1] + wanted[2:]:
        raise RuntimeError(
            f"{op}: target; expected shape {wanted[:1] + wanted[2:]} for an input of shape {wanted}, got {shape}"
        )
    classes = wanted[0 if input.dim() == 1 else 1]
    if weight is not None and (weight.dim() != 1 or weight.numel() != classes):
        raise RuntimeError(f"{op}: weight; expected shape [{classes}] (one per class), got {list(weight.shape)}")


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Cross entropy of logits and class indices, or class probabilities when target has the shape of input.

    Shapes: (N, C, d1, ...), (N, d1, ...) or (N, C, d1, ...) -> () or (N, d1, ...) with ``reduction='none'``.
    Raises what :func:`nll_loss` does, and RuntimeError for a label_smoothing outside [0, 1], for probabilities of an
    integer dtype or when ``ignore_index`` is given for probabilities.

    Example::

        >>> import rushlight
        >>> loss = rushlight.nn.functional.cross_entropy(rushlight.zeros(2, 4), rushlight.tensor([1, 3]))
        >>> round(loss.item(), 4)
        1.3863
    """
    reduction = _reduction.resolve("cross_entropy", size_average, reduce, reduction)
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(f"cross_entropy: label_smoothing out of range; expected [0, 1], got {label_smoothing}")
    class_dim = 0 if input.dim() == 1 else 1
    if input.shape == target.shape:
        return _cross_entropy_of_probabilities(
            input, target, weight, ignore_index, reduction, label_smoothing, class_dim
        )
    if input.dim() < 1:
        raise ValueError(f"cross_entropy: input; expected at least 1 dimension, got {input.dim()}")
    log_p = input.log_softmax(class_dim)
    nll = _nll_loss("cross_entropy", log_p, target, weight, ignore_index, reduction)
    if label_smoothing == 0.0:
        return nll
    classes = input.shape[class_dim]
    target = target.long()
    ignored = target == ignore_index
    if weight is not None:
        smooth = -(log_p * weight.reshape([-1] + [1] * (input.dim() - class_dim - 1))).sum(class_dim)
    else:
        smooth = -log_p.sum(class_dim)
    smooth = smooth.masked_fill(ignored, 0.0)
    if reduction == "mean":
        if weight is not None:
            smooth = smooth.sum() / (weight[target.masked_fill(ignored, 0)] * ~ignored).sum()
        else:
            smooth = smooth.sum() / (~ignored).sum()
    elif reduction == "sum":
        smooth = smooth.sum()
    return smooth * (label_smoothing / classes) + nll * (1 - label_smoothing)


def _cross_entropy_of_probabilities(
    input: Tensor, target: Tensor, weight: Any, ignore_index: int, reduction: str, smoothing: float, class_dim: int
) -> Tensor:
    if not target.is_floating_point():
        raise RuntimeError(
            "cross_entropy: a target of the shape of input holds probabilities; expected a floating point dtype, got "
            f"{target.dtype}"
        )
    if ignore_index >= 0:
        raise RuntimeError(
            f"cross_entropy: ignore_index is for class indices; expected none for probabilities, got {ignore_index}"
        )
    classes = input.shape[class_dim] if input.dim() else 1
    if weight is not None and (weight.dim() != 1 or weight.numel() != classes):
        raise RuntimeError(
            f"cross_entropy: weight; expected shape [{classes}] (one per class), got {list(weight.shape)}"
        )
    if smoothing > 0.0:
        target = target * (1 - smoothing) + smoothing / classes
    product = input.log_softmax(class_dim) * target
    if weight is not None:
        product = product * weight.reshape([-1] + [1] * (input.dim() - class_dim - 1))
    if reduction == "none":
        return -product.sum(class_dim)
    total = -product.sum()
    if reduction == "sum":
        return total
    # of no positions the mean is nan, as that of any empty tensor
    return total / (input.numel() / classes) if input.numel() else total * math.nan


def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> Tensor:
    """cross_entropy(linear(input, linear_weight, linear_bias), target): a classifier's last layer and its loss.

    Shapes: input (N, in_features), linear_weight (C, *out, in_features), target (N, *out) or probabilities.
    """
    op = "linear_cross_entropy"
    if input.dim() not in (1, 2):
        raise RuntimeError(f"{op}: input; expected shape (N, in_features) or (in_features), got {list(input.shape)}")
    if linear_weight.dim() < 2 or linear_weight.shape[-1] != input.shape[-1]:
        raise RuntimeError(
            f"{op}: linear_weight; expected shape [C, ..., {input.shape[-1]}] for input {list(input.shape)}, got "
            f"{list(linear_weight.shape)}"
        )
    if input.dim() == 1 and linear_weight.dim() > 2:
        raise RuntimeError(
            f"{op}: linear_weight of shape {list(linear_weight.shape)}; expected a batched input, got "
            f"{list(input.shape)}"
        )
    logits = rushlight.nn.functional.linear(input, linear_weight.flatten(0, -2), None)
    logits = logits.unflatten(-1, linear_weight.shape[:-1])
    if linear_bias is not None:
        logits = logits + linear_bias
    return cross_entropy(
        logits,
        target,
        weight=weight,
        reduction=reduction,
        ignore_index=-100 if ignore_index is None else ignore_index,
        label_smoothing=label_smoothing,
    )


def _check_equal(op: str, input: Tensor, target: Tensor) -> None:
    if input.shape != target.shape:
        raise ValueError(
            f"{op}: target; expected the shape of input {list(input.shape)}, got {list(target.shape)}; "
            "reshape one of them, since broadcasting would change the loss"
        )


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """-(target * log(input) + (1 - target) * log(1 - input)), logarithms cut off at -100; reduced.

    Shapes: (*), (*) -> () or (*). ValueError for shapes that differ, RuntimeError for an input outside [0, 1].

    >>> torch.nn.functional.binary_cross_entropy(torch.tensor([0.5, 0.25]), torch.tensor([1.0, 0.0]), reduction="none")
    tensor([0.6931, 0.2877])
    """
    reduction = _reduction.resolve("binary_cross_entropy", size_average, reduce, reduction)
    _check_equal("binary_cross_entropy", input, target)
    if not input.is_meta and not bool(((input >= 0) & (input <= 1)).all()):
        raise RuntimeError("binary_cross_entropy: input; expected probabilities in [0, 1], got values outside of it")
    loss = (target - 1) * (-input).log1p().clamp(min=-100) - target * input.log().clamp(min=-100)
    if weight is not None:
        loss = loss * weight
    return _reduction.apply(loss, reduction)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """binary_cross_entropy(sigmoid(input), target), computed without overflow.

    ``pos_weight`` multiplies the loss of positive targets and is broadcast. ValueError for shapes that differ.
    """
    op = "binary_cross_entropy_with_logits"
    reduction = _reduction.resolve(op, size_average, reduce, reduction)
    _check_equal(op, input, target)
    log_sigmoid = rushlight.nn.functional.logsigmoid(input)
    if pos_weight is not None:
        loss = (1 - target) * input - ((pos_weight - 1) * target + 1) * log_sigmoid
    else:
        loss = (1 - target) * input - log_sigmoid
    if weight is not None:
        loss = loss * weight
    return _reduction.apply(loss, reduction)


def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """exp(input) - target * input, the negative log likelihood of a Poisson distribution with rate exp(input); reduced.

    ``log_input=False`` takes the rate itself; ``full`` adds Stirling's term for targets above 1.

    Shapes: input and target alike; the result (), or their shape with reduction='none'.

    >>> torch.nn.functional.poisson_nll_loss(torch.tensor([0.0, 1.0]), torch.tensor([2.0, 0.0]), reduction="none")
    tensor([1.0000, 2.7183])
    """
    reduction = _reduction.resolve("poisson_nll_loss", size_average, reduce, reduction)
    loss = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        loss = loss + stirling.masked_fill(target <= 1, 0)
    return _reduction.apply(loss, reduction)


def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Tensor | float, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    """(log(var) + (input - target)^2 / var) / 2, the negative log likelihood of a normal distribution; reduced.

    Shapes: input (N, *), target (N, *); var is a number, or has the shape of input but for one size of 1 or no last
    size. ValueError for a negative var or a var that does not fit.

    >>> torch.nn.functional.gaussian_nll_loss(torch.tensor([1.0]), torch.tensor([3.0]), torch.tensor([1.0]))
    tensor(2.)
    """
    if isinstance(var, (int, float)):
        if var < 0:
            raise ValueError(f"gaussian_nll_loss: expected var >= 0, got {var}")
        variance = rushlight.full_like(input, var)
    else:
        variance = var
        if not variance.is_meta and bool((variance < 0).any()):
            raise ValueError("gaussian_nll_loss: expected var >= 0 everywhere, got a negative entry")
    if variance.shape != input.shape:
        if input.shape[:-1] == variance.shape:
            variance = variance.unsqueeze(-1)
        elif variance.dim() != input.dim() or [
            v for v, i in zip(variance.shape, input.shape, strict=False) if v != i
        ] != [1]:
            raise ValueError(
                f"gaussian_nll_loss: var; expected a shape that fits {list(input.shape)} (input), got "
                f"{list(variance.shape)}"
            )
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"gaussian_nll_loss: unknown reduction; expected 'none', 'mean' or 'sum', got {reduction!r}")
    variance = variance.clone()
    # the gradient passes straight through the limit, so that a variance below it can still grow
    with rushlight.no_grad():
        variance.clamp_(min=eps)
    loss = 0.5 * (variance.log() + (input - target) ** 2 / variance)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return _reduction.apply(loss, reduction)
