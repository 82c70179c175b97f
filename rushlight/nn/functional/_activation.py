"""Activation functions."""

from __future__ import annotations

import warnings

import rushlight
from rushlight import Tensor

from . import _ops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "celu", "elu", "glu", "gumbel_softmax", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "log_softmax", "mish",
    "relu", "relu6", "rrelu", "rrelu_", "selu", "sigmoid", "silu", "softmax", "softmin", "softsign", "tanh",
    "tanhshrink", "threshold",
]  # fmt: skip


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(0, x) elementwise, of any shape."""
    return rushlight.relu_(input) if inplace else rushlight.relu(input)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """x where x > threshold, ``value`` elsewhere.

    Shapes: any; the result has the same.

    >>> torch.nn.functional.threshold(torch.tensor([0.5, 2.0]), 1.0, -7.0)
    tensor([-7.,  2.])
    """
    return rushlight.threshold_(input, threshold, value) if inplace else rushlight.threshold(input, threshold, value)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(0, x), 6) elementwise.

    Shapes: any; the result has the same.

    >>> torch.nn.functional.relu6(torch.tensor([-1.0, 3.0, 9.0]))
    tensor([0., 3., 6.])
    """
    return hardtanh(input, 0.0, 6.0, inplace)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """x limited to [min_val, max_val]. ValueError when min_val > max_val.

    Shapes: any; the result has the same.

    >>> torch.nn.functional.hardtanh(torch.tensor([-3.0, 0.5, 3.0]))
    tensor([-1.0000,  0.5000,  1.0000])
    """
    if min_val > max_val:
        raise ValueError(f"hardtanh: expected min_val <= max_val, got {min_val} and {max_val}")
    return _ops.hardtanh_(input, min_val, max_val) if inplace else _ops.hardtanh(input, min_val, max_val)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """a * sigmoid(b), with a and b the two halves of the input along ``dim``. RuntimeError for a 0-dim input.

    Shapes: (*, 2 n, *) -> (*, n, *), the size of dim.

    >>> torch.nn.functional.glu(torch.tensor([2.0, 3.0, 0.0, 100.0]))
    tensor([1., 3.])
    """
    if input.dim() == 0:
        raise RuntimeError("glu: expected at least 1 dimension to split, got a 0-dim tensor")
    if input.size(dim) % 2:
        raise RuntimeError(f"glu: expected an even size at dimension {dim}, got {input.size(dim)}")
    a, b = input.chunk(2, dim)
    return a * b.sigmoid()


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """x * relu6(x + 3) / 6 elementwise.

    Shapes: any; the result has the same.

    >>> torch.nn.functional.hardswish(torch.tensor([-4.0, 0.0, 1.0, 4.0]))
    tensor([-0.0000, 0.0000, 0.6667, 4.0000])
    """
    return _ops.hardswish_(input) if inplace else _ops.hardswish(input)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """relu6(x + 3) / 6 elementwise.

    Shapes: any; the result has the same.

    >>> torch.nn.functional.hardsigmoid(torch.tensor([-4.0, 0.0, 1.5, 4.0]))
    tensor([0.0000, 0.5000, 0.7500, 1.0000])
    """
    return _ops.hardsigmoid_(input) if inplace else _ops.hardsigmoid(input)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where x > 0, alpha * (exp(x) - 1) elsewhere.

    Shapes: any; the result has the same.

    >>> torch.nn.functional.elu(torch.tensor([-100.0, 0.0, 2.0]), alpha=0.5)
    tensor([-0.5000,  0.0000,  2.0000])
    """
    return _ops.elu_(input, alpha) if inplace else _ops.elu(input, alpha)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """The self-normalising ELU of Klambauer et al. (2017), elementwise.

    Shapes: any; the result has the same.

    >>> torch.nn.functional.selu(torch.tensor([-100.0, 0.0, 1.0]))
    tensor([-1.7581,  0.0000,  1.0507])
    """
    return rushlight.selu_(input) if inplace else rushlight.selu(input)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """max(0, x) + min(0, alpha * (exp(x / alpha) - 1)) elementwise.

    Shapes: any; the result has the same.

    >>> torch.nn.functional.celu(torch.tensor([-100.0, 0.0, 2.0]), alpha=0.5)
    tensor([-0.5000,  0.0000,  2.0000])
    """
    return rushlight.celu_(input, alpha) if inplace else rushlight.celu(input, alpha)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x where x > 0, negative_slope * x elsewhere.

    Shapes: any; the result has the same.

    >>> torch.nn.functional.leaky_relu(torch.tensor([-2.0, 3.0]), 0.1)
    tensor([-0.2000,  3.0000])
    """
    return _ops.leaky_relu_(input, negative_slope) if inplace else _ops.leaky_relu(input, negative_slope)


def rrelu(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    """Leaky ReLU whose slope is drawn from U(lower, upper) while training, and their mean otherwise.

    Shapes: any; the result has the same.

    >>> torch.nn.functional.rrelu(torch.tensor([-2.0, 3.0]), 0.25, 0.75)
    tensor([-1.,  3.])
    """
    if lower > upper:
        raise RuntimeError(f"rrelu: expected lower <= upper, got {lower} and {upper}")
    if not training:
        return leaky_relu(input, (lower + upper) / 2, inplace)
    # one draw, in double precision, for each element that is not positive
    drawn = input <= 0
    slope = rushlight.ones_like(input, memory_format=rushlight.contiguous_format)
    count = int(drawn.sum().item())
    low, high = (rushlight.tensor(x, dtype=input.dtype).item() for x in (lower, upper))
    draws = rushlight.empty(count, dtype=rushlight.float64, device=input.device).uniform_(low, high)
    slope[drawn] = draws.to(slope.dtype)
    return input.mul_(slope) if inplace else input * slope


def rrelu_(input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False) -> Tensor:
    """:func:`rrelu` in place."""
    return rrelu(input, lower, upper, training, True)


def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x) elementwise.

    Shapes: any; the result has the same.

    >>> torch.nn.functional.tanhshrink(torch.tensor([0.0, 1.0, 100.0]))
    tensor([ 0.0000,  0.2384, 99.0000])
    """
    return input - input.tanh()


def softsign(input: Tensor) -> Tensor:
    """x / (1 + \\|x\\|) elementwise.

    Shapes: any; the result has the same.

    >>> torch.nn.functional.softsign(torch.tensor([-1.0, 0.0, 3.0]))
    tensor([-0.5000,  0.0000,  0.7500])
    """
    return input / (input.abs() + 1)


def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + exp(-x)) elementwise.

    Shapes: any; the result has the same.

    >>> torch.nn.functional.sigmoid(torch.tensor([-1.0, 0.0, 1.0]))
    tensor([0.2689, 0.5000, 0.7311])
    """
    return rushlight.sigmoid(input)


def tanh(input: Tensor) -> Tensor:
    """tanh(x) elementwise.

    Shapes: any; the result has the same.

    >>> torch.nn.functional.tanh(torch.tensor([0.0, 1.0, -100.0]))
    tensor([ 0.0000,  0.7616, -1.0000])
    """
    return rushlight.tanh(input)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x * sigmoid(x) elementwise.

    Shapes: any; the result has the same.

    >>> torch.nn.functional.silu(torch.tensor([0.0, 1.0, 100.0]))
    tensor([  0.0000,   0.7311, 100.0000])
    """
    return _ops.silu_(input) if inplace else _ops.silu(input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """x * tanh(softplus(x)) elementwise.

    Shapes: any; the result has the same.

    >>> torch.nn.functional.mish(torch.tensor([0.0, 1.0, 100.0]))
    tensor([  0.0000,   0.8651, 100.0000])
    """
    return _ops.mish_(input) if inplace else _ops.mish(input)


def _softmax_dim(name: str, ndim: int, stacklevel: int) -> int:
    warnings.warn(f"{name}: choosing dim by itself is deprecated; pass dim=X", stacklevel=stacklevel + 1)
    return 0 if ndim in (0, 1, 3) else 1


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """exp(x) / sum(exp(x)) along ``dim``; ``dtype`` converts the input first.

    Example::

        >>> import rushlight
        >>> rushlight.nn.functional.softmax(rushlight.zeros(4), dim=0).tolist()
        [0.25, 0.25, 0.25, 0.25]
    """
    if dim is None:
        dim = _softmax_dim("softmax", input.dim(), _stacklevel)
    return input.softmax(dim) if dtype is None else input.softmax(dim, dtype=dtype)


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """softmax of -x along ``dim``.

    Shapes: any; the result has the same.

    >>> torch.nn.functional.softmin(torch.tensor([0.0, 0.0, 1000.0]), dim=0)
    tensor([0.5000, 0.5000, 0.0000])
    """
    if dim is None:
        dim = _softmax_dim("softmin", input.dim(), _stacklevel)
    return (-input).softmax(dim) if dtype is None else (-input).softmax(dim, dtype=dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """log(softmax(x)) along ``dim``, without overflow."""
    if dim is None:
        dim = _softmax_dim("log_softmax", input.dim(), _stacklevel)
    return input.log_softmax(dim) if dtype is None else input.log_softmax(dim, dtype=dtype)


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """A sample of the Gumbel-softmax distribution (Jang et al. 2016) along ``dim``.

    ``hard=True`` returns one-hot samples whose gradient is that of the soft sample.

    Shapes: any; the result has the same.

    >>> torch.nn.functional.gumbel_softmax(torch.zeros(2, 3), hard=True).sum(1)
    tensor([1., 1.])
    """
    if eps != 1e-10:
        warnings.warn("gumbel_softmax: eps is deprecated and has no effect", stacklevel=2)
    noise = -rushlight.empty_like(logits).exponential_().log()
    soft = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    one_hot = rushlight.zeros_like(logits).scatter_(dim, index, 1.0)
    return one_hot - soft.detach() + soft
