"""Adaptive softmax."""

from __future__ import annotations

from collections import namedtuple

import rushlight
from rushlight import Tensor

from .. import functional as F
from .container import ModuleList, Sequential
from .linear import Linear
from .module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["AdaptiveLogSoftmaxWithLoss"]

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """An approximation of softmax for many classes sorted by frequency (Grave et al. 2016).

    The classes below ``cutoffs[0]`` and one entry per further cluster form the head; a cluster's classes are reached
    through it, with features divided by ``div_value`` once more per cluster.

    Shapes: (N, in_features) or (in_features), targets (N) or () -> named tuple (output (N) or (), loss ()).
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Any,
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        cuts = list(cutoffs)
        if not cuts:
            raise ValueError("AdaptiveLogSoftmaxWithLoss: cutoffs; expected at least one, got none")
        if (
            cuts != sorted(cuts)
            or min(cuts) <= 0
            or max(cuts) > n_classes - 1
            or len(set(cuts)) != len(cuts)
            or any(int(c) != c for c in cuts)
        ):
            raise ValueError(
                f"AdaptiveLogSoftmaxWithLoss: cutoffs; expected increasing ints between 1 and {n_classes - 1}, got "
                f"{cuts}"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cuts, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        options = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **options)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            hidden = int(in_features // (div_value ** (i + 1)))
            classes = self.cutoffs[i + 1] - self.cutoffs[i]
            self.tail.append(
                Sequential(
                    Linear(in_features, hidden, bias=False, **options), Linear(hidden, classes, bias=False, **options)
                )
            )

    def reset_parameters(self) -> None:
        """Draws new values for all layers."""
        self.head.reset_parameters()
        for first, second in self.tail:
            first.reset_parameters()
            second.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> Any:
        name = type(self).__name__
        dims = target_.dim()
        if dims == 1:
            if input_.size(0) != target_.size(0):
                raise RuntimeError(
                    f"{name}: expected one batch size, got {input_.size(0)} (input) and {target_.size(0)} (target)"
                )
            if input_.dim() != 2:
                raise RuntimeError(f"{name}: input; expected 2 dimensions for a 1-d target, got {input_.dim()}")
        elif dims == 0:
            if input_.dim() != 1:
                raise RuntimeError(f"{name}: input; expected 1 dimension for a 0-d target, got {input_.dim()}")
        else:
            raise RuntimeError(f"{name}: target; expected 0 or 1 dimensions, got {dims}")
        input = input_ if dims else input_.unsqueeze(0)
        target = target_ if dims else target_.unsqueeze(0)
        if target.numel() and not bool(((target >= 0) & (target < self.n_classes)).all()):
            raise RuntimeError(
                f"{name}: target out of range; expected 0 to {self.n_classes - 1}, got values from "
                f"{target.min().item()} to "
                f"{target.max().item()}"
            )
        # position in the head: the class itself, or the entry of its cluster
        entry = target
        output = input.new_zeros(target.shape)
        for i in range(self.n_clusters):
            low, high = self.cutoffs[i], self.cutoffs[i + 1]
            inside = (target >= low) & (target < high)
            rows = inside.nonzero().squeeze(1)
            if rows.numel() == 0:
                continue
            entry = rushlight.where(inside, self.shortlist_size + i, entry)
            log_p = F.log_softmax(self.tail[i](input.index_select(0, rows)), dim=1)
            picked = log_p.gather(1, (target.index_select(0, rows) - low).unsqueeze(1)).squeeze(1)
            output = output.index_add(0, rows, picked)
        head = F.log_softmax(self.head(input), dim=1)
        output = output + head.gather(1, entry.unsqueeze(1)).squeeze(1)
        loss = (-output).mean()
        return _ASMoutput(output if dims else output.squeeze(0), loss)

    def _get_full_log_prob(self, input: Tensor, head_output: Tensor) -> Tensor:
        head = F.log_softmax(head_output, dim=1)
        parts = [head[:, : self.shortlist_size]]
        for i in range(self.n_clusters):
            cluster = F.log_softmax(self.tail[i](input), dim=1)
            parts.append(cluster + head[:, self.shortlist_size + i].unsqueeze(1))
        return rushlight.cat(parts, 1)

    def log_prob(self, input: Tensor) -> Tensor:
        """Log probabilities of all classes. Shapes: (N, in_features) -> (N, n_classes)."""
        return self._get_full_log_prob(input, self.head(input))

    def predict(self, input: Tensor) -> Tensor:
        """The most likely class, as ``log_prob(input).argmax(1)``. Shapes: (N, in_features) -> (N)."""
        return self.log_prob(input).argmax(1)
