"""Initialisers: functions that fill a tensor in place and return it. None of them is recorded by autograd."""

from __future__ import annotations

import math
import warnings

import rushlight
from rushlight import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "calculate_gain", "constant_", "dirac_", "eye_", "kaiming_normal_", "kaiming_uniform_", "normal_", "ones_",
    "orthogonal_", "sparse_", "trunc_normal_", "uniform_", "xavier_normal_", "xavier_uniform_", "zeros_",
]  # fmt: skip


def calculate_gain(nonlinearity: str, param: Any = None) -> float:
    """The factor by which weights are scaled for a nonlinearity: 1 for linear and sigmoid, 5/3 for tanh, sqrt(2) for
    relu.

    ``param`` is the negative slope of ``leaky_relu`` (0.01 by default). ValueError for an unknown name.

    Example::

        >>> import rushlight
        >>> rushlight.nn.init.calculate_gain("leaky_relu", 0.2)
        1.3867504905630728
    """
    if nonlinearity in (
        "linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "sigmoid",
    ):  # fmt: skip
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        if param is None:
            slope = 0.01
        elif isinstance(param, (int, float)) and not isinstance(param, bool):
            slope = param
        else:
            raise ValueError(f"calculate_gain: negative slope; expected a number, got {param!r}")
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity == "selu":
        return 3.0 / 4
    raise ValueError(f"calculate_gain: unknown nonlinearity {nonlinearity!r}; expected e.g. 'relu', 'tanh' or 'linear'")


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Fills with draws from U(a, b)."""
    with rushlight.no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Fills with draws from N(mean, std^2)."""
    with rushlight.no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Any = None
) -> Tensor:
    """Fills with draws from N(mean, std^2) limited to [a, b], by rejection.

    Where [a, b] has most of the probability the proposals are normal, otherwise uniform.
    """
    if tensor.device.type == "meta":
        return tensor

    def below(x: float) -> float:
        return (1.0 + math.erf((x - mean) / std / math.sqrt(2.0))) / 2.0

    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            f"trunc_normal_: mean {mean} is more than 2 std from [{a}, {b}]; the distribution may be wrong",
            stacklevel=2,
        )
    with rushlight.no_grad():
        if below(b) - below(a) > 0.3:
            # the limits as the tensor's dtype has them
            low, high = (rushlight.tensor(x, dtype=tensor.dtype).item() for x in (a, b))
            tensor.normal_(mean, std, generator=generator)
            while bool((outside := (tensor < low) | (tensor > high)).any()):
                again = rushlight.empty_like(tensor).normal_(mean, std, generator=generator)
                tensor.copy_(rushlight.where(outside, again, tensor))
            return tensor
        # log density relative to its maximum within the limits
        peak = -0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2
        rejected = None
        while rejected is None or bool(rejected.any()):
            proposal = rushlight.empty_like(tensor).uniform_(a, b, generator=generator)
            tensor.copy_(proposal if rejected is None else rushlight.where(rejected, proposal, tensor))
            density = proposal.sub(mean).div_(std).pow_(2).mul_(-0.5).sub_(peak)
            above = rushlight.empty_like(tensor).uniform_(generator=generator).log_().gt(density)
            rejected = above if rejected is None else rejected & above
        return tensor


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fills with one value."""
    with rushlight.no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Fills with 1."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fills with 0."""
    with rushlight.no_grad():
        return tensor.zero_()


def eye_(tensor: Tensor) -> Tensor:
    """Fills a matrix with the identity. ValueError unless it has 2 dimensions."""
    _check_dims("eye_", tensor, (2,))
    with rushlight.no_grad():
        return tensor.copy_(rushlight.eye(*tensor.shape, dtype=tensor.dtype, device=tensor.device))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fills a convolution weight of shape (out, in, *kernel) so that it passes its input through, per group.

    ValueError unless it has 3 to 5 dimensions and ``out`` is divisible by ``groups``.
    """
    _check_dims("dirac_", tensor, (3, 4, 5))
    shape = tensor.shape
    if shape[0] % groups != 0:
        raise ValueError(f"dirac_: expected shape[0] divisible by groups, got {shape[0]} and {groups}")
    per_group = shape[0] // groups
    centre = [s // 2 for s in shape[2:]]
    with rushlight.no_grad():
        tensor.zero_()
        for g in range(groups):
            for d in range(min(per_group, shape[1])):
                place = (g * per_group + d, d, *centre)
                tensor[place] = 1
        return tensor


def _check_dims(op: str, tensor: Tensor, allowed: tuple[int, ...]) -> None:
    if tensor.dim() not in allowed:
        wanted = " or ".join(str(n) for n in allowed)
        raise ValueError(f"{op}: expected a tensor of {wanted} dimensions, got shape {list(tensor.shape)}")


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    if tensor.dim() < 2:
        raise ValueError(f"init: fan in and fan out need at least 2 dimensions; got shape {list(tensor.shape)}")
    kernel = math.prod(tensor.shape[2:])
    return tensor.shape[1] * kernel, tensor.shape[0] * kernel


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"init: unknown mode; expected 'fan_in' or 'fan_out', got {mode!r}")
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return fan_in if mode == "fan_in" else fan_out


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Fills with U(-a, a), a = gain * sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio 2010)."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    a = math.sqrt(3.0) * (gain * math.sqrt(2.0 / float(fan_in + fan_out)))
    return uniform_(tensor, -a, a, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Fills with N(0, std^2), std = gain * sqrt(2 / (fan_in + fan_out)) (Glorot and Bengio 2010)."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / float(fan_in + fan_out)), generator)


def _no_elements(op: str, tensor: Tensor) -> bool:
    if 0 in tensor.shape:
        warnings.warn(f"{op}: the tensor of shape {list(tensor.shape)} has no elements to fill", stacklevel=3)
        return True
    return False


def kaiming_uniform_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    """Fills with U(-bound, bound), bound = gain * sqrt(3 / fan) (He et al. 2015). ``a`` is the slope of leaky_relu."""
    if _no_elements("kaiming_uniform_", tensor):
        return tensor
    std = calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    """Fills with N(0, std^2), std = gain / sqrt(fan) (He et al. 2015). ``a`` is the slope of leaky_relu."""
    if _no_elements("kaiming_normal_", tensor):
        return tensor
    std = calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))
    return normal_(tensor, 0.0, std, generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """Fills with a (semi) orthogonal matrix times gain (Saxe et al. 2013), all dimensions but the first taken as
    columns.

    ValueError for fewer than 2 dimensions.
    """
    if tensor.dim() < 2:
        raise ValueError(f"orthogonal_: expected at least 2 dimensions, got shape {list(tensor.shape)}")
    if tensor.numel() == 0:
        return tensor
    rows = tensor.shape[0]
    cols = tensor.numel() // rows
    with rushlight.no_grad():
        flat = tensor.new_empty((rows, cols)).normal_(0, 1, generator=generator)
        if rows < cols:
            flat.t_()
        q, r = rushlight.linalg.qr(flat)
        # the sign that makes the distribution uniform (Mezzadri 2006)
        q *= rushlight.diag(r, 0).sign()
        if rows < cols:
            q.t_()
        tensor.view_as(q).copy_(q)
        return tensor.mul_(gain)


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Tensor:
    """Fills a matrix with N(0, std^2) and zeroes the fraction ``sparsity`` of each column (Martens 2010)."""
    _check_dims("sparse_", tensor, (2,))
    rows, cols = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with rushlight.no_grad():
        tensor.normal_(0, std, generator=generator)
        for column in range(cols):
            tensor[rushlight.randperm(rows)[:zeros], column] = 0
    return tensor


def _deprecated(new: Any) -> Any:
    old_name = new.__name__[:-1]

    def old(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(f"init.{old_name} is deprecated; use init.{new.__name__}", FutureWarning, stacklevel=2)
        return new(*args, **kwargs)

    old.__name__ = old_name
    old.__doc__ = f"Deprecated name of :func:`{new.__name__}`."
    return old


uniform = _deprecated(uniform_)
normal = _deprecated(normal_)
constant = _deprecated(constant_)
eye = _deprecated(eye_)
dirac = _deprecated(dirac_)
xavier_uniform = _deprecated(xavier_uniform_)
xavier_normal = _deprecated(xavier_normal_)
kaiming_uniform = _deprecated(kaiming_uniform_)
kaiming_normal = _deprecated(kaiming_normal_)
orthogonal = _deprecated(orthogonal_)
sparse = _deprecated(sparse_)
