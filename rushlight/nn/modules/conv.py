"""Convolution modules."""

from __future__ import annotations

import math

import rushlight
from rushlight import Tensor

from .. import functional as F
from .. import init
from ..parameter import Parameter, UninitializedParameter
from .lazy import LazyModuleMixin
from .module import Module
from .utils import _pair, _reverse_repeat_tuple, _single, _triple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "LazyConv1d", "LazyConv2d",
    "LazyConv3d", "LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d",
]  # fmt: skip

_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    __constants__ = [  # noqa: RUF012
        "dilation", "groups", "in_channels", "kernel_size", "out_channels", "output_padding", "padding", "padding_mode",
        "stride",
    ]  # fmt: skip
    weight: Tensor

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: tuple[int, ...],
        stride: tuple[int, ...],
        padding: Any,
        dilation: tuple[int, ...],
        transposed: bool,
        output_padding: tuple[int, ...],
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        if groups <= 0:
            raise ValueError(f"{name}: groups; expected a positive int, got {groups}")
        for what, channels in (("in_channels", in_channels), ("out_channels", out_channels)):
            if channels % groups != 0:
                raise ValueError(f"{name}: expected {what} divisible by groups, got {channels} and {groups}")
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(f"{name}: unknown padding; expected numbers, 'same' or 'valid', got {padding!r}")
            if padding == "same" and any(s != 1 for s in stride):
                raise ValueError(f"{name}: padding='same'; expected stride 1, got {stride}")
        if padding_mode not in _MODES:
            raise ValueError(f"{name}: unknown padding_mode; expected one of {_MODES}, got {padding_mode!r}")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.transposed = transposed
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        # what F.pad wants: the last dimension first, both sides of each
        if isinstance(padding, str):
            both = [0, 0] * len(kernel_size)
            if padding == "same":
                for d, k, i in zip(dilation, kernel_size, range(len(kernel_size) - 1, -1, -1), strict=False):
                    total = d * (k - 1)
                    both[2 * i] = total // 2
                    both[2 * i + 1] = total - total // 2
            self._reversed_padding_repeated_twice: Any = both
        else:
            self._reversed_padding_repeated_twice = _reverse_repeat_tuple(padding, 2)
        shape = (in_channels, out_channels // groups) if transposed else (out_channels, in_channels // groups)
        self.weight = Parameter(rushlight.empty((*shape, *kernel_size), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(rushlight.empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new values: weight and bias from U(-k, k), k = 1 / sqrt(fan_in)."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        s = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        if self.padding != (0,) * len(self.padding):
            s += f", padding={self.padding}"
        if self.dilation != (1,) * len(self.dilation):
            s += f", dilation={self.dilation}"
        if self.output_padding != (0,) * len(self.output_padding):
            s += f", output_padding={self.output_padding}"
        if self.groups != 1:
            s += f", groups={self.groups}"
        if self.bias is None:
            s += ", bias=False"
        if self.padding_mode != "zeros":
            s += f", padding_mode={self.padding_mode}"
        return s

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("padding_mode", "zeros")


class _Conv(_ConvNd):
    _tuple: Any = None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        many = type(self)._tuple
        super().__init__(
            in_channels,
            out_channels,
            many(kernel_size),
            many(stride),
            padding if isinstance(padding, str) else many(padding),
            many(dilation),
            False,
            many(0),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _padded(self, input: Tensor) -> Tensor:
        return F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)


class Conv1d(_Conv):
    """Cross-correlation over one dimension.

    Args:
        in_channels, out_channels, kernel_size, stride, dilation: of the convolution.
        padding: zeros added on both sides, or "same" or "valid".
        groups: channels are split into so many independent groups.
        bias: whether a bias per output channel is learned.
        padding_mode: "zeros", "reflect", "replicate" or "circular".

    Shapes: (N, C_in, L) or (C_in, L) -> (N, C_out, L') or (C_out, L').
    """

    _tuple = staticmethod(_single)

    def forward(self, input: Tensor) -> Tensor:
        if self.padding_mode != "zeros":
            return F.conv1d(self._padded(input), self.weight, self.bias, self.stride, 0, self.dilation, self.groups)
        return F.conv1d(input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


class Conv2d(_Conv):
    """Cross-correlation over two dimensions; arguments as :class:`Conv1d`, each one number or a pair.

    Shapes: (N, C_in, H, W) or (C_in, H, W) -> (N, C_out, H', W') or (C_out, H', W').

    Example::

        >>> import rushlight
        >>> tuple(rushlight.nn.Conv2d(3, 8, 3, padding=1)(rushlight.zeros(1, 3, 6, 6)).shape)
        (1, 8, 6, 6)
    """

    _tuple = staticmethod(_pair)

    def forward(self, input: Tensor) -> Tensor:
        if self.padding_mode != "zeros":
            return F.conv2d(self._padded(input), self.weight, self.bias, self.stride, 0, self.dilation, self.groups)
        return F.conv2d(input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


class Conv3d(_Conv):
    """Cross-correlation over three dimensions; arguments as :class:`Conv1d`.

    Shapes: (N, C_in, D, H, W) or without N.
    """

    _tuple = staticmethod(_triple)

    def forward(self, input: Tensor) -> Tensor:
        if self.padding_mode != "zeros":
            return F.conv3d(self._padded(input), self.weight, self.bias, self.stride, 0, self.dilation, self.groups)
        return F.conv3d(input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


class _ConvTransposeNd(_ConvNd):
    _tuple: Any = None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(f"{type(self).__name__}: padding_mode; expected 'zeros', got {padding_mode!r}")
        many = type(self)._tuple
        super().__init__(
            in_channels,
            out_channels,
            many(kernel_size),
            many(stride),
            many(padding),
            many(dilation),
            True,
            many(output_padding),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _output_padding(self, input: Tensor, output_size: Any) -> Any:
        """The padding on one side that leads to ``output_size``; the default one when that is None."""
        if output_size is None:
            return self.output_padding
        n = len(self.kernel_size)
        name = type(self).__name__
        sizes = list(output_size)
        if len(sizes) == input.dim():
            sizes = sizes[-n:]
        if len(sizes) != n:
            raise ValueError(f"{name}: output_size; expected {n} or {input.dim()} sizes, got {len(sizes)}")
        padding = []
        for d in range(n):
            least = (
                (input.size(d - n) - 1) * self.stride[d]
                - 2 * self.padding[d]
                + self.dilation[d] * (self.kernel_size[d] - 1)
                + 1
            )
            most = least + self.stride[d] - 1
            if not least <= sizes[d] <= most:
                raise ValueError(f"{name}: output_size[{d}]; expected {least} to {most}, got {sizes[d]}")
            padding.append(sizes[d] - least)
        return padding


class ConvTranspose1d(_ConvTransposeNd):
    """The transpose (gradient) of :class:`Conv1d`. ``output_padding`` is added to one side of the output shape.

    Shapes: (N, C_in, L) or (C_in, L) -> (N, C_out, L') or (C_out, L').
    """

    _tuple = staticmethod(_single)

    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        return F.conv_transpose1d(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            self._output_padding(input, output_size),
            self.groups,
            self.dilation,
        )


class ConvTranspose2d(_ConvTransposeNd):
    """The transpose (gradient) of :class:`Conv2d`. Shapes: (N, C_in, H, W) or (C_in, H, W)."""

    _tuple = staticmethod(_pair)

    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        return F.conv_transpose2d(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            self._output_padding(input, output_size),
            self.groups,
            self.dilation,
        )


class ConvTranspose3d(_ConvTransposeNd):
    """The transpose (gradient) of :class:`Conv3d`. Shapes: (N, C_in, D, H, W) or without N."""

    _tuple = staticmethod(_triple)

    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        return F.conv_transpose3d(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            self._output_padding(input, output_size),
            self.groups,
            self.dilation,
        )


class _LazyConvXdMixin(LazyModuleMixin):
    def reset_parameters(self: Any) -> None:
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()

    def initialize_parameters(self: Any, input: Tensor, *args: Any, **kwargs: Any) -> None:
        """Takes in_channels from the input and gives the parameters their shape and values."""
        if not self.has_uninitialized_params():
            return
        n = len(self.kernel_size)
        if input.dim() not in (n + 1, n + 2):
            raise RuntimeError(
                f"{type(self).__name__}: input; expected {n + 1} or {n + 2} dimensions, got shape {list(input.shape)}"
            )
        self.in_channels = input.shape[-n - 1]
        if self.in_channels % self.groups != 0:
            raise ValueError(
                f"{type(self).__name__}: expected in_channels divisible by groups, got {self.in_channels} and "
                f"{self.groups}"
            )
        if self.transposed:
            shape = (self.in_channels, self.out_channels // self.groups)
        else:
            shape = (self.out_channels, self.in_channels // self.groups)
        self.weight.materialize((*shape, *self.kernel_size))
        if self.bias is not None:
            self.bias.materialize((self.out_channels,))
        self.reset_parameters()


class _LazyConv(_LazyConvXdMixin):
    def __init__(
        self: Any,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        # in_channels 0 and no bias: there is nothing yet that could be initialised
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode, device, dtype)
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_channels = out_channels
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)


class _LazyConvTranspose(_LazyConvXdMixin):
    def __init__(
        self: Any,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode, device, dtype
        )
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_channels = out_channels
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)


class LazyConv1d(_LazyConv, Conv1d):
    """Conv1d whose in_channels is found from its first input."""

    cls_to_become = Conv1d


class LazyConv2d(_LazyConv, Conv2d):
    """Conv2d whose in_channels is found from its first input."""

    cls_to_become = Conv2d


class LazyConv3d(_LazyConv, Conv3d):
    """Conv3d whose in_channels is found from its first input."""

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):
    """ConvTranspose1d whose in_channels is found from its first input."""

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):
    """ConvTranspose2d whose in_channels is found from its first input."""

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):
    """ConvTranspose3d whose in_channels is found from its first input."""

    cls_to_become = ConvTranspose3d
