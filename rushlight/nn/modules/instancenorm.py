"""Instance normalisation modules."""

from __future__ import annotations

import warnings

from rushlight import Tensor

from .. import functional as F
from .batchnorm import _LazyNormBase, _NormBase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LazyInstanceNorm1d", "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
]  # fmt: skip


class _InstanceNorm(_NormBase):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

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
        # old states hold statistics although the default was, and is, not to track them
        if version is None and not self.track_running_stats:
            old = [prefix + n for n in ("running_mean", "running_var") if prefix + n in state_dict]
            if old:
                error_msgs.append(
                    f"{', '.join(old)}: statistics that {type(self).__name__} does not track; expected none, or a "
                    "module with track_running_stats=True (remove the keys to load the rest)"
                )
                for key in old:
                    # reported already
                    state_dict.pop(key)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        unbatched_dim = min(self._dims)
        feature_dim = input.dim() - unbatched_dim
        if input.size(feature_dim) != self.num_features:
            message = (
                f"{type(self).__name__}: input; expected {self.num_features} channels at dimension {feature_dim}, got "
                f"shape {list(input.shape)}"
            )
            if self.affine:
                raise ValueError(message)
            warnings.warn(message + "; num_features is not used, since affine=False", stacklevel=2)
        if input.dim() == unbatched_dim:
            return self._apply_norm(input.unsqueeze(0)).squeeze(0)
        return self._apply_norm(input)

    def _apply_norm(self, input: Tensor) -> Tensor:
        return F.instance_norm(
            input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            self.momentum if self.momentum is not None else 0.0,
            self.eps,
        )


class InstanceNorm1d(_InstanceNorm):
    """Normalises every channel of every element of the batch by itself (Ulyanov et al. 2016).

    Arguments as :class:`BatchNorm1d`, without affine map and running statistics by default.
    Shapes: (N, C, L) or (C, L) -> the same.
    """

    _dims = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Normalises every channel of every element of the batch by itself.

    Shapes: (N, C, H, W) or (C, H, W) -> the same.
    """

    _dims = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Normalises every channel of every element of the batch by itself. Shapes: (N, C, D, H, W) or (C, D, H, W)."""

    _dims = (4, 5)


class _LazyInstanceNorm(_LazyNormBase, _InstanceNorm):
    def initialize_parameters(self, input: Tensor) -> None:
        """Takes num_features from the input and gives everything its shape and values."""
        # an input without batch has its channels first
        batched = input if input.dim() != min(self._dims) else input.unsqueeze(0)
        super().initialize_parameters(batched)
        self.num_features = batched.shape[1]


class LazyInstanceNorm1d(_LazyInstanceNorm):
    """InstanceNorm1d whose num_features is found from its first input."""

    cls_to_become = InstanceNorm1d
    _dims = (2, 3)


class LazyInstanceNorm2d(_LazyInstanceNorm):
    """InstanceNorm2d whose num_features is found from its first input."""

    cls_to_become = InstanceNorm2d
    _dims = (3, 4)


class LazyInstanceNorm3d(_LazyInstanceNorm):
    """InstanceNorm3d whose num_features is found from its first input."""

    cls_to_become = InstanceNorm3d
    _dims = (4, 5)
