"""Dropout in its forms.

The noise is drawn as ``bernoulli_(1 - p)`` over a fresh tensor, so that seeds agree with PyTorch.
"""

from __future__ import annotations

import math
import warnings

import rushlight
from rushlight import Tensor

__all__ = ["alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout"]

# negative saturation value of SELU, scale * alpha
_ALPHA = 1.7580993408473766


def _drop(op: str, input: Tensor, p: float, training: bool, inplace: bool, feature: bool, alpha: bool) -> Tensor:
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"{op}: p out of range; expected a probability in [0, 1], got {p}")
    if feature and training and input.dim() < 2:
        raise RuntimeError(f"{op}: expected at least 2 dimensions (batch and channel), got {input.dim()}")
    if p == 0 or not training or input.numel() == 0:
        return input
    if p == 1:
        zeros = rushlight.zeros((), dtype=input.dtype, device=input.device)
        return input.mul_(zeros) if inplace else input.mul(zeros)
    if feature:
        noise = input.new_empty([*input.shape[:2], *([1] * (input.dim() - 2))])
    else:
        noise = rushlight.empty_like(input)
    noise.bernoulli_(1 - p)
    if not alpha:
        noise.div_(1 - p)
        return input.mul_(noise) if inplace else input.mul(noise)
    a = 1.0 / math.sqrt((_ALPHA * _ALPHA * p + 1) * (1 - p))
    shift = noise.add(-1).mul_(_ALPHA * a).add_(_ALPHA * a * p)
    noise.mul_(a)
    return input.mul_(noise).add_(shift) if inplace else input.mul(noise).add(shift)


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeroes each element with probability p while training and scales the rest by 1 / (1 - p).

    ValueError when p is outside [0, 1].
    """
    return _drop("dropout", input, p, training, inplace, False, False)


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout that keeps zero mean and unit variance under SELU (Klambauer et al. 2017).

    Shapes: any; the result has the same.

    >>> torch.nn.functional.alpha_dropout(torch.tensor([1.0, 2.0]), 0.5, training=False)
    tensor([1., 2.])
    """
    return _drop("alpha_dropout", input, p, training, inplace, False, True)


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Alpha dropout of whole channels (dimension 1).

    Shapes: (N, C, *); the result has the same.

    >>> torch.nn.functional.feature_alpha_dropout(torch.tensor([[1.0, 2.0]]), 0.5, training=False)
    tensor([[1., 2.]])
    """
    return _drop("feature_alpha_dropout", input, p, training, inplace, True, True)


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeroes whole channels of an input of shape (N, C, L) or (C, L) with probability p.

    Shapes: (N, C, L) or (C, L); the result has the same.

    >>> torch.nn.functional.dropout1d(torch.ones(3, 5), 0.5).unique(dim=1).shape
    rushlight.Size([3, 1])
    """
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout1d: p out of range; expected a probability in [0, 1], got {p}")
    if input.dim() not in (2, 3):
        raise RuntimeError(f"dropout1d: expected 2 or 3 dimensions, got {input.dim()}")
    return _drop_channels("dropout1d", input, p, training, inplace, batched=input.dim() == 3)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeroes whole channels of an input of shape (N, C, H, W) with probability p.

    Shapes: (N, C, H, W); the result has the same.

    >>> torch.nn.functional.dropout2d(torch.ones(1, 1, 2, 2), 1.0).flatten()
    tensor([0., 0., 0., 0.])
    """
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout2d: p out of range; expected a probability in [0, 1], got {p}")
    if input.dim() not in (3, 4):
        warnings.warn(f"dropout2d: expected 3 or 4 dimensions, got {input.dim()}", stacklevel=2)
    if input.dim() == 3:
        warnings.warn(
            "dropout2d: a 3-d input is read as (N, C, L), whose channels are dropped; use dropout1d for that",
            stacklevel=2,
        )
    return _drop("dropout2d", input, p, training, inplace, True, False)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeroes whole channels of an input of shape (N, C, D, H, W) or (C, D, H, W) with probability p.

    Shapes: (N, C, D, H, W) or (C, D, H, W); the result has the same.

    >>> torch.nn.functional.dropout3d(torch.ones(1, 1, 2, 2, 1), 1.0).flatten()
    tensor([0., 0., 0., 0.])
    """
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout3d: p out of range; expected a probability in [0, 1], got {p}")
    if input.dim() not in (4, 5):
        warnings.warn(f"dropout3d: expected 4 or 5 dimensions, got {input.dim()}", stacklevel=2)
    return _drop_channels("dropout3d", input, p, training, inplace, batched=input.dim() == 5)


def _drop_channels(op: str, input: Tensor, p: float, training: bool, inplace: bool, batched: bool) -> Tensor:
    if batched:
        return _drop(op, input, p, training, inplace, True, False)
    result = _drop(op, input.unsqueeze_(0) if inplace else input.unsqueeze(0), p, training, inplace, True, False)
    return result.squeeze_(0) if inplace else result.squeeze(0)
