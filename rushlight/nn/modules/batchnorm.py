"""Batch normalisation modules."""

from __future__ import annotations

import rushlight
from rushlight import Tensor

from .. import functional as F
from .. import init
from ..parameter import Parameter, UninitializedBuffer, UninitializedParameter
from .lazy import LazyModuleMixin
from .module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d"]


class _NormBase(Module):
    """What batch and instance normalisation share: running statistics and an affine map per channel."""

    _version = 2
    __constants__ = ["affine", "eps", "momentum", "num_features", "track_running_stats"]  # noqa: RUF012
    _dims: tuple[int, ...] = ()

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        self.register_parameter("weight", None)
        self.register_parameter("bias", None)
        if affine:
            self.weight = Parameter(rushlight.empty(num_features, device=device, dtype=dtype))
            if bias:
                self.bias = Parameter(rushlight.empty(num_features, device=device, dtype=dtype))
        if track_running_stats:
            self.register_buffer("running_mean", rushlight.zeros(num_features, device=device, dtype=dtype))
            self.register_buffer("running_var", rushlight.ones(num_features, device=device, dtype=dtype))
            self.register_buffer("num_batches_tracked", rushlight.tensor(0, dtype=rushlight.int64, device=device))
        else:
            self.register_buffer("running_mean", None)
            self.register_buffer("running_var", None)
            self.register_buffer("num_batches_tracked", None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Running mean 0, running variance 1, no batches seen."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Resets the statistics, and the affine map to the identity."""
        self.reset_running_stats()
        if self.affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def _check_input_dim(self, input: Tensor) -> None:
        if self._dims and input.dim() not in self._dims:
            wanted = " or ".join(str(n) for n in self._dims)
            raise ValueError(f"{type(self).__name__}: input; expected {wanted} dimensions, got {input.dim()}")

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        version = local_metadata.get("version")
        key = prefix + "num_batches_tracked"
        # states of version 1 did not count batches
        if (version is None or version < 2) and self.track_running_stats and key not in state_dict:
            count = self.num_batches_tracked
            known = count is not None and count.device.type != "meta"
            state_dict[key] = count if known else rushlight.tensor(0, dtype=rushlight.int64)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )


class _BatchNorm(_NormBase):
    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        momentum = 0.0 if self.momentum is None else self.momentum
        training = self.training
        if training and self.track_running_stats:
            count = self.num_batches_tracked
            if count is not None:
                count.add_(1)
                if self.momentum is None:
                    momentum = 1.0 / float(count)  # cumulative average
        mean, var = self.running_mean, self.running_var
        if not training:
            # without running statistics those of the batch are used in evaluation mode as well
            training = mean is None and var is None
        elif not self.track_running_stats:
            mean = var = None
        return F.batch_norm(input, mean, var, self.weight, self.bias, training, momentum, self.eps)


class BatchNorm1d(_BatchNorm):
    """Normalises every channel over the batch (Ioffe and Szegedy 2015).

    Args:
        num_features: number of channels C.
        eps: added to the variance.
        momentum: share of the new value in the running statistics; None averages over all batches.
        affine, bias: learn a scale (and a shift) per channel.
        track_running_stats: keep running statistics for evaluation mode.

    Shapes: (N, C) or (N, C, L) -> the same. ValueError for other dimensions, or one value per channel while training.
    """

    _dims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Normalises every channel over the batch; arguments as :class:`BatchNorm1d`. Shapes: (N, C, H, W) -> the same.

    Example::

        >>> import rushlight
        >>> tuple(rushlight.nn.BatchNorm2d(3)(rushlight.randn(2, 3, 4, 4)).shape)
        (2, 3, 4, 4)
    """

    _dims = (4,)


class BatchNorm3d(_BatchNorm):
    """Normalises every channel over the batch; arguments as :class:`BatchNorm1d`.

    Shapes: (N, C, D, H, W) -> the same.
    """

    _dims = (5,)


class _LazyNormBase(LazyModuleMixin, _NormBase):
    weight: UninitializedParameter
    bias: UninitializedParameter

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        # nothing has a shape yet: the members are added below
        super().__init__(0, eps, momentum, False, False)
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = UninitializedParameter(device=device, dtype=dtype)
            if bias:
                self.bias = UninitializedParameter(device=device, dtype=dtype)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(device=device, dtype=dtype)
            self.running_var = UninitializedBuffer(device=device, dtype=dtype)
            self.num_batches_tracked = rushlight.tensor(0, dtype=rushlight.int64, device=device)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Takes num_features from the input and gives everything its shape and values."""
        if self.has_uninitialized_params():
            self.num_features = input.shape[1]
            if self.affine:
                self.weight.materialize((self.num_features,))
                if self.bias is not None:
                    self.bias.materialize((self.num_features,))
            if self.track_running_stats:
                self.running_mean.materialize((self.num_features,))
                self.running_var.materialize((self.num_features,))
            self.reset_parameters()


class LazyBatchNorm1d(_LazyNormBase, _BatchNorm):
    """BatchNorm1d whose num_features is found from its first input."""

    cls_to_become = BatchNorm1d
    _dims = (2, 3)


class LazyBatchNorm2d(_LazyNormBase, _BatchNorm):
    """BatchNorm2d whose num_features is found from its first input."""

    cls_to_become = BatchNorm2d
    _dims = (4,)


class LazyBatchNorm3d(_LazyNormBase, _BatchNorm):
    """BatchNorm3d whose num_features is found from its first input."""

    cls_to_become = BatchNorm3d
    _dims = (5,)
