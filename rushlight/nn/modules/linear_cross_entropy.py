"""A classifier's last layer together with its loss."""

from __future__ import annotations

import math

from rushlight import Tensor

from .. import functional as F
from .linear import Linear
from .loss import _WeightedLoss

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["LinearCrossEntropyLoss", "LinearCrossEntropyOptions"]


class LinearCrossEntropyOptions:
    """How :class:`LinearCrossEntropyLoss` may trade time for memory. The result does not depend on it."""

    def __init__(
        self,
        allow_retain_graph: bool = False,
        batch_chunk_size: int | None = None,
        chunking_method: str | None = "auto",
        acc_policy: str = "auto",
        acc_dtype: Any = None,
    ) -> None:
        if acc_policy not in ("accurate", "balanced", "compact", "auto"):
            raise ValueError(
                "LinearCrossEntropyOptions: acc_policy; expected 'accurate', 'balanced', 'compact' or 'auto', got "
                f"{acc_policy!r}"
            )
        self.allow_retain_graph = allow_retain_graph
        self.batch_chunk_size = batch_chunk_size
        self.chunking_method = chunking_method
        self.acc_policy = acc_policy
        self.acc_dtype = acc_dtype

    def __repr__(self) -> str:
        return f"LinearCrossEntropyOptions({', '.join(f'{k}={v!r}' for k, v in self.__dict__.items())})"


class LinearCrossEntropyLoss(_WeightedLoss):
    """cross_entropy(linear(input), target), with the layer as part of the loss.

    Args:
        in_features, num_classes, out_features: the layer maps in_features to (num_classes, *out_features).
        bias: of the layer. The other arguments are those of :class:`CrossEntropyLoss`.

    Shapes: (N, in_features), targets (N, *out_features) -> ().
    """

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: Any = None,
        dtype: Any = None,
        reduction: str = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: LinearCrossEntropyOptions | None = None,
    ) -> None:
        super().__init__(weight, None, None, reduction)
        self.in_features = in_features
        self.num_classes = num_classes
        self.out_features = tuple(out_features)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        self.options = options
        self.linear = Linear(in_features, num_classes * math.prod(self.out_features), bias, device, dtype)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        shape = (self.num_classes, *self.out_features)
        bias = self.linear.bias
        return F.linear_cross_entropy(
            input,
            self.linear.weight.reshape(*shape, self.in_features),
            target,
            linear_bias=None if bias is None else bias.reshape(shape),
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            options=self.options,
        )

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, num_classes={self.num_classes}, out_features={self.out_features}, "
            f"bias={self.linear.bias is not None}, reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )
