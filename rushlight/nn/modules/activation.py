"""Activation modules."""

from __future__ import annotations

import rushlight
from rushlight import Tensor

from .. import functional as F
from .. import init
from ..parameter import Parameter
from .module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "SELU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "PReLU",
    "RReLU",
    "ReLU",
    "ReLU6",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
]  # fmt: skip


def _inplace(inplace: bool) -> str:
    return "inplace=True" if inplace else ""


class _Inplace(Module):
    __constants__ = ["inplace"]  # noqa: RUF012

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        return _inplace(self.inplace)


class Threshold(Module):
    """x where x > threshold, ``value`` elsewhere. Shapes: any -> the same."""

    __constants__ = ["inplace", "threshold", "value"]  # noqa: RUF012

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        return f"threshold={self.threshold}, value={self.value}" + (", inplace=True" if self.inplace else "")


class ReLU(_Inplace):
    """max(0, x) elementwise. Shapes: any -> the same.

    Example::

        >>> import rushlight
        >>> rushlight.nn.ReLU()(rushlight.tensor([-1.0, 2.0])).tolist()
        [0.0, 2.0]
    """

    def forward(self, input: Tensor) -> Tensor:
        # the operations themselves, without the frame of the functional
        return rushlight.relu_(input) if self.inplace else rushlight.relu(input)


class RReLU(Module):
    """Leaky ReLU with a slope drawn from U(lower, upper) while training and their mean otherwise. Shapes: any."""

    __constants__ = ["inplace", "lower", "upper"]  # noqa: RUF012

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"lower={self.lower}, upper={self.upper}" + (", inplace=True" if self.inplace else "")


class Hardtanh(Module):
    """x limited to [min_val, max_val]. Shapes: any -> the same."""

    __constants__ = ["inplace", "max_val", "min_val"]  # noqa: RUF012

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:
        super().__init__()
        if min_value is not None or max_value is not None:
            import warnings

            warnings.warn("Hardtanh: min_value and max_value are now min_val and max_val", FutureWarning, stacklevel=2)
            min_val = min_val if min_value is None else min_value
            max_val = max_val if max_value is None else max_value
        if not max_val > min_val:
            raise AssertionError(f"{type(self).__name__}: expected max_val > min_val, got {max_val} and {min_val}")
        self.min_val = min_val
        self.max_val = max_val
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}" + (", inplace=True" if self.inplace else "")


class ReLU6(Hardtanh):
    """min(max(0, x), 6) elementwise. Shapes: any -> the same."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        return _inplace(self.inplace)


class Sigmoid(Module):
    """1 / (1 + exp(-x)) elementwise. Shapes: any -> the same."""

    def forward(self, input: Tensor) -> Tensor:
        return rushlight.sigmoid(input)


class Hardsigmoid(_Inplace):
    """relu6(x + 3) / 6 elementwise. Shapes: any -> the same."""

    def forward(self, input: Tensor) -> Tensor:
        return F.hardsigmoid(input, self.inplace)

    def extra_repr(self) -> str:
        return ""


class Tanh(Module):
    """tanh(x) elementwise. Shapes: any -> the same."""

    def forward(self, input: Tensor) -> Tensor:
        return rushlight.tanh(input)


class SiLU(_Inplace):
    """x * sigmoid(x) elementwise. Shapes: any -> the same."""

    def forward(self, input: Tensor) -> Tensor:
        return F.silu(input, self.inplace)


class Mish(_Inplace):
    """x * tanh(softplus(x)) elementwise. Shapes: any -> the same."""

    def forward(self, input: Tensor) -> Tensor:
        return F.mish(input, self.inplace)


class Hardswish(_Inplace):
    """x * relu6(x + 3) / 6 elementwise. Shapes: any -> the same."""

    def forward(self, input: Tensor) -> Tensor:
        return F.hardswish(input, self.inplace)

    def extra_repr(self) -> str:
        return ""


class ELU(Module):
    """x where x > 0, alpha * (exp(x) - 1) elsewhere. Shapes: any -> the same."""

    __constants__ = ["alpha", "inplace"]  # noqa: RUF012

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.elu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}" + (", inplace=True" if self.inplace else "")


class CELU(ELU):
    """max(0, x) + min(0, alpha * (exp(x / alpha) - 1)) elementwise. Shapes: any -> the same."""

    def forward(self, input: Tensor) -> Tensor:
        return F.celu(input, self.alpha, self.inplace)


class SELU(_Inplace):
    """The self-normalising ELU (Klambauer et al. 2017), elementwise. Shapes: any -> the same."""

    def forward(self, input: Tensor) -> Tensor:
        return F.selu(input, self.inplace)


class GLU(Module):
    """a * sigmoid(b), with a and b the halves of the input along dim. Shapes: (*, 2 N, *) -> (*, N, *)."""

    __constants__ = ["dim"]  # noqa: RUF012

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class GELU(Module):
    """x * Phi(x), with ``approximate='tanh'`` by its tanh approximation (Hendrycks and Gimpel 2016). Shapes: any."""

    __constants__ = ["approximate"]  # noqa: RUF012

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class Hardshrink(Module):
    """x where \\|x\\| > lambd, 0 elsewhere. Shapes: any -> the same."""

    __constants__ = ["lambd"]  # noqa: RUF012

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return F.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class LeakyReLU(Module):
    """x where x > 0, negative_slope * x elsewhere. Shapes: any -> the same."""

    __constants__ = ["inplace", "negative_slope"]  # noqa: RUF012

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        return f"negative_slope={self.negative_slope}" + (", inplace=True" if self.inplace else "")


class LogSigmoid(Module):
    """log(sigmoid(x)) elementwise. Shapes: any -> the same."""

    def forward(self, input: Tensor) -> Tensor:
        return F.logsigmoid(input)


class Softplus(Module):
    """log(1 + exp(beta * x)) / beta, and x where beta * x > threshold. Shapes: any -> the same."""

    __constants__ = ["beta", "threshold"]  # noqa: RUF012

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class Softshrink(Module):
    """x moved by lambd towards 0, and 0 where \\|x\\| <= lambd. Shapes: any -> the same."""

    __constants__ = ["lambd"]  # noqa: RUF012

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return F.softshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return str(self.lambd)


class PReLU(Module):
    """x where x > 0, a * x elsewhere, with one learned a or one per channel (He et al. 2015). Shapes: (N, C, *)."""

    __constants__ = ["num_parameters"]  # noqa: RUF012

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(rushlight.empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets the slopes to ``init``."""
        init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class Softsign(Module):
    """x / (1 + \\|x\\|) elementwise. Shapes: any -> the same."""

    def forward(self, input: Tensor) -> Tensor:
        return F.softsign(input)


class Tanhshrink(Module):
    """x - tanh(x) elementwise. Shapes: any -> the same."""

    def forward(self, input: Tensor) -> Tensor:
        return F.tanhshrink(input)


class _Dim(Module):
    __constants__ = ["dim"]  # noqa: RUF012

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("dim", None)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmin(_Dim):
    """softmax(-x) along dim. Shapes: any -> the same."""

    def forward(self, input: Tensor) -> Tensor:
        return F.softmin(input, self.dim, _stacklevel=5)


class Softmax(_Dim):
    """exp(x) / sum(exp(x)) along dim. Shapes: any -> the same."""

    def forward(self, input: Tensor) -> Tensor:
        dim = self.dim
        return input.softmax(dim) if dim is not None else F.softmax(input, None, 5)


class LogSoftmax(_Dim):
    """log(softmax(x)) along dim. Shapes: any -> the same."""

    def forward(self, input: Tensor) -> Tensor:
        dim = self.dim
        return input.log_softmax(dim) if dim is not None else F.log_softmax(input, None, 5)


class Softmax2d(Module):
    """Softmax over the channels of every pixel. Shapes: (N, C, H, W) or (C, H, W) -> the same."""

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: input; expected 3 or 4 dimensions, got {input.dim()}")
        return input.softmax(-3)


def __getattr__(name: str) -> Any:
    if name == "MultiheadAttention":
        # public under this path as well
        from .attention import MultiheadAttention

        return MultiheadAttention
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
