"""Padding modules."""

from __future__ import annotations

from rushlight import Tensor

from .. import functional as F
from .module import Module
from .utils import _ntuple, _pair, _quadruple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d",
    "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d",
    "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]  # fmt: skip

_sextuple = _ntuple(6)


class _PadNd(Module):
    """Pads the last dimensions: ``padding`` is one number, or (left, right, top, bottom, front, back) as far as
    needed."""

    __constants__ = ["padding"]  # noqa: RUF012
    _tuple: Any = None
    _mode = "constant"
    _dims: tuple[int, ...] = ()

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = type(self)._tuple(padding)

    def forward(self, input: Tensor) -> Tensor:
        if self._dims and input.dim() not in self._dims:
            raise ValueError(
                f"{type(self).__name__}: input; expected {self._dims[0]} or {self._dims[1]} dimensions, got "
                f"{input.dim()}"
            )
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPadNd(_PadNd):
    __constants__ = ["padding", "value"]  # noqa: RUF012

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd):
    """Pads the last dimension with a value. Shapes: (N, C, W) or (C, W)."""

    _tuple = staticmethod(_pair)


class ConstantPad2d(_ConstantPadNd):
    """Pads the last two dimensions with a value. Shapes: (N, C, H, W) or (C, H, W).

    Example::

        >>> import rushlight
        >>> tuple(rushlight.nn.ConstantPad2d((1, 2, 0, 0), 3.5)(rushlight.zeros(1, 2, 2)).shape)
        (1, 2, 5)
    """

    _tuple = staticmethod(_quadruple)


class ConstantPad3d(_ConstantPadNd):
    """Pads the last three dimensions with a value. Shapes: (N, C, D, H, W) or (C, D, H, W)."""

    _tuple = staticmethod(_sextuple)


class _ZeroPadNd(_ConstantPadNd):
    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad1d(_ZeroPadNd):
    """Pads the last dimension with zeros. Shapes: (N, C, W) or (C, W)."""

    _tuple = staticmethod(_pair)


class ZeroPad2d(_ZeroPadNd):
    """Pads the last two dimensions with zeros. Shapes: (N, C, H, W) or (C, H, W)."""

    _tuple = staticmethod(_quadruple)


class ZeroPad3d(_ZeroPadNd):
    """Pads the last three dimensions with zeros. Shapes: (N, C, D, H, W) or (C, D, H, W)."""

    _tuple = staticmethod(_sextuple)


class ReflectionPad1d(_PadNd):
    """Pads the last dimension by reflection at its border. Shapes: (N, C, W) or (C, W)."""

    _tuple = staticmethod(_pair)
    _mode = "reflect"


class ReflectionPad2d(_PadNd):
    """Pads the last two dimensions by reflection at their borders. Shapes: (N, C, H, W) or (C, H, W)."""

    _tuple = staticmethod(_quadruple)
    _mode = "reflect"


class ReflectionPad3d(_PadNd):
    """Pads the last three dimensions by reflection at their borders. Shapes: (N, C, D, H, W) or (C, D, H, W)."""

    _tuple = staticmethod(_sextuple)
    _mode = "reflect"


class ReplicationPad1d(_PadNd):
    """Pads the last dimension with its border value. Shapes: (N, C, W) or (C, W)."""

    _tuple = staticmethod(_pair)
    _mode = "replicate"


class ReplicationPad2d(_PadNd):
    """Pads the last two dimensions with their border values. Shapes: (N, C, H, W) or (C, H, W)."""

    _tuple = staticmethod(_quadruple)
    _mode = "replicate"


class ReplicationPad3d(_PadNd):
    """Pads the last three dimensions with their border values. Shapes: (N, C, D, H, W) or (C, D, H, W)."""

    _tuple = staticmethod(_sextuple)
    _mode = "replicate"


class CircularPad1d(_PadNd):
    """Pads the last dimension with its other end. Shapes: (N, C, W) or (C, W)."""

    _tuple = staticmethod(_pair)
    _mode = "circular"
    _dims = (2, 3)


class CircularPad2d(_PadNd):
    """Pads the last two dimensions with their other ends. Shapes: (N, C, H, W) or (C, H, W)."""

    _tuple = staticmethod(_quadruple)
    _mode = "circular"
    _dims = (3, 4)


class CircularPad3d(_PadNd):
    """Pads the last three dimensions with their other ends. Shapes: (N, C, D, H, W) or (C, D, H, W)."""

    _tuple = staticmethod(_sextuple)
    _mode = "circular"
    _dims = (4, 5)
