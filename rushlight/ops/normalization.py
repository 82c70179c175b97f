"""Normalisation. The gradients are one operation each, whose own derivative is made of ordinary operations."""

from __future__ import annotations

from typing import Any

from . import _batch_network as _batch
from ._record import composite, native, rl

_GRADIENTS = "(Tensor grad_input, Tensor grad_weight, Tensor grad_bias)"


def _sum_to(values: Any, dims: Any, like: Any) -> Any:
    """Sums over dims, in the shape of a parameter."""
    return (values.sum(dims) if dims else values).reshape(like.shape)


def _statistics(x: Any, dims: Any, eps: float, centred: bool) -> tuple[Any, Any]:
    """x moved to mean 0 (if wanted) and scaled to mean square 1, and the scale."""
    if centred:
        x = x - x.mean(dims, True)
    rstd = ((x * x).mean(dims, True) + eps).rsqrt()
    return x * rstd, rstd


def _second(
    to_input: Any, to_weight: Any, to_bias: Any, grad: Any, x: Any, weight: Any, dims: Any, eps: float, centred: bool
) -> tuple[Any, Any, Any]:
    """Derivatives of grad_input = r (h - mean(h) - y mean(h y)), grad_weight = sum(grad y) and grad_bias = sum(grad),
    where y = (x - mean(x)) r and h = grad * weight, by grad, x and weight.

    `to_...` are the incoming gradients of the three, and weight broadcasts against x; `dims` are those of the
    statistics. Without `centred` the means of h and x are left out.
    """
    y, r = _statistics(x, dims, eps, centred)

    def off_mean(t: Any) -> Any:
        return t - t.mean(dims, True) if centred else t

    h = grad if weight is None else grad * weight
    a_centred, h_centred = off_mean(to_input), off_mean(h)
    p, q = (to_input * y).mean(dims, True), (h * y).mean(dims, True)
    by_h = r * (a_centred - y * p)
    by_grad = by_h if weight is None else by_h * weight
    c = (a_centred * h).mean(dims, True)
    by_x = -(r * r) * (y * (c - 3 * p * q) + q * a_centred + p * h_centred)
    by_weight = None
    if weight is not None:
        by_weight = by_h * grad
    if to_weight is not None:
        by_grad = by_grad + to_weight * y
        w = to_weight * grad
        by_x = by_x + r * (off_mean(w) - y * (w * y).mean(dims, True))
    if to_bias is not None:
        by_grad = by_grad + to_bias
    return by_grad, by_x, by_weight


def _wide(*tensors: Any) -> list[Any]:
    """Half precision tensors as float32."""
    half = (rl.float16, rl.bfloat16)
    return [t.float() if t is not None and t.dtype in half else t for t in tensors]


def _incoming(to_input: Any, x: Any) -> Any:
    """The gradient of grad_input: a number when grad_input was not wanted."""
    return to_input if to_input.dim() == x.dim() else rl.zeros_like(x)


def _finish(gradients: tuple[Any, Any, Any], grad: Any, x: Any, weight: Any, rows: Any) -> tuple[Any, Any, Any]:
    by_grad, by_x, by_weight = gradients
    if weight is not None and by_weight is not None:
        by_weight = _sum_to(by_weight, rows, weight).to(weight.dtype)
    return by_grad.to(grad.dtype).expand(grad.shape), by_x.to(x.dtype).expand(x.shape), by_weight


# ---------------------------------------------------------------- batches

_STATS = "Tensor? running_mean, Tensor? running_var, Tensor? weight, Tensor? bias"

native(
    "_nn_batch_norm(Tensor input, Tensor? running_mean, Tensor? running_var, Tensor? weight=None, Tensor? bias=None, "
    "bool training=False, float momentum=0.1, float eps=1e-05) -> Tensor",
    public="nn.functional.batch_norm",
    options={"composite": True},
    formula="out = (input - mean) / sqrt(var + eps) * weight + bias, per channel",
    doc="""Batch normalisation: every channel (dimension 1) moved to mean 0 and scaled to variance 1 (Ioffe and
    Szegedy, 2015).

    While training, mean and (biased) variance are those of the batch, and running_mean and running_var move in place
    by momentum towards the mean and the unbiased variance; otherwise the running ones are used. ValueError while
    training with one value per channel, RuntimeError for running statistics, weight or bias of another size than C.

    Shapes: input (N, C, *), the other tensors (C); the result has the shape of input.

    >>> x = torch.tensor([[1.0, 10.0], [3.0, 30.0]])
    >>> mean, var = torch.zeros(2), torch.ones(2)
    >>> torch.nn.functional.batch_norm(x, mean, var, training=True)
    tensor([[-1.0000, -1.0000],
            [ 1.0000,  1.0000]])
    >>> mean, var
    (tensor([0.2000, 2.0000]), tensor([ 1.1000, 20.9000]))""",
)
native(
    "batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, "
    "float momentum, float eps, bool cudnn_enabled) -> Tensor",
    method=False,
    options={"composite": True},
    formula="out = (input - mean) / sqrt(var + eps) * weight + bias, per channel",
    doc="""Batch normalisation with every argument given, and weight and bias before the statistics;
    nn.functional.batch_norm has defaults and says more.

    cudnn_enabled is accepted and changes nothing.

    Shapes: input (N, C, *), the other tensors (C); the result has the shape of input.

    >>> x = torch.tensor([[3.0, 0.0], [5.0, 8.0]])
    >>> mean, var = torch.tensor([1.0, 0.0]), torch.tensor([4.0, 16.0])
    >>> torch.batch_norm(x, None, None, mean, var, False, 0.1, 0.0, True)
    tensor([[1., 0.],
            [2., 2.]])""",
)
native(
    "native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, "
    "bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
    method=False,
    out=True,
    options={"composite": True},
    formula="out = (input - mean) / sqrt(var + eps) * weight + bias, per channel",
    doc="""Batch normalisation, the mean of the batch that it used, and 1 / sqrt(var + eps).

    The statistics are empty when not training.

    Shapes: input (N, C, *), weight, bias and running statistics (C); the results (N, C, *), (C) and (C).

    >>> x = torch.tensor([[1.0, 10.0], [5.0, 30.0]])
    >>> _, mean, rstd = torch.native_batch_norm(x, None, None, None, None, True, 0.1, 0.0)
    >>> mean, rstd
    (tensor([ 3., 20.]), tensor([0.5000, 0.1000]))""",
)
native(
    f"_batch_norm_train(Tensor input, {_STATS}, float momentum, float eps) -> (Tensor, Tensor mean, Tensor rstd)",
    out=False,
    aten="native_batch_norm",
    options={"not_differentiable": ("mean", "rstd")},
    batch=_batch.batch_norm_train,
    derivative={
        "input, weight, bias": lambda grad, input, weight, mean, rstd, eps, needs: rl._batch_norm_backward(
            grad, input, weight, mean, rstd, True, eps, needs
        )
    },
    doc="batch_norm by the batch's own statistics.",
)
native(
    "_batch_norm_eval(Tensor input, Tensor running_mean, Tensor running_var, Tensor? weight, Tensor? bias, float eps) "
    "-> Tensor",
    out=False,
    aten="native_batch_norm",
    batch=_batch.batch_norm_eval,
    derivative={
        "input, weight, bias": lambda grad, input, weight, running_mean, running_var, eps, needs: (
            rl._batch_norm_backward(grad, input, weight, running_mean, running_var, False, eps, needs)
        )
    },
    doc="batch_norm by given statistics.",
)


def _batch_norm_second(
    grad_grad_input: Any,
    grad_grad_weight: Any,
    grad_grad_bias: Any,
    grad: Any,
    input: Any,
    weight: Any,
    mean: Any,
    spread: Any,
    training: bool,
    eps: float,
) -> Any:
    shape = [1, -1] + [1] * (input.dim() - 2)
    rows = [0, *range(2, input.dim())]

    def per_channel(t: Any) -> Any:
        return t.reshape(shape) if t is not None and t.dim() else t

    a, b, c, g, x, w = _wide(_incoming(grad_grad_input, input), grad_grad_weight, grad_grad_bias, grad, input, weight)
    b, c, w = per_channel(b), per_channel(c), per_channel(w)
    if training:
        return _finish(_second(a, b, c, g, x, w, rows, eps, True), grad, input, weight, rows)
    m, s = _wide(mean, spread)
    r = (per_channel(s) + eps).rsqrt()
    y = (x - per_channel(m)) * r
    scaled = a * r
    by_grad = (scaled if w is None else scaled * w) + b * y + c
    return _finish((by_grad, b * g * r, scaled * g if w is not None else None), grad, input, weight, rows)


native(
    "_batch_norm_backward(Tensor grad, Tensor input, Tensor? weight, Tensor mean, Tensor spread, bool "
    "training, float eps, "
    f"Any needs) -> {_GRADIENTS}",
    order="input",
    out=False,
    batch=_batch.batch_norm_backward,
    derivative={
        "grad, input, weight": _batch_norm_second,
    },
    doc="The gradients of batch_norm; spread is 1 / std of the batch while training, else the running variance.",
)

# ---------------------------------------------------------------- layers

_LAYER = "Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05"
_LAYER_FORMULA = "out = (input - mean) / sqrt(var + eps) * weight + bias"
_LAYER_DOC = """Layer normalisation: the last dimensions moved to mean 0 and scaled to variance 1 (Ba et al., 2016).

    Mean and (biased) variance are taken over the dimensions of normalized_shape, for each of the leading positions by
    itself. RuntimeError when the shapes do not fit.

    Shapes: input (*, *normalized_shape), weight and bias normalized_shape; the result has the shape of input.

    >>> torch.nn.functional.layer_norm(torch.tensor([[1.0, 2.0, 3.0], [0.0, 0.0, 9.0]]), [3])
    tensor([[-1.2247,  0.0000,  1.2247],
            [-0.7071, -0.7071,  1.4142]])
"""

native(
    f"_nn_layer_norm({_LAYER}) -> Tensor",
    public="nn.functional.layer_norm",
    out=False,
    implementation="layer_norm",
    options={"composite": True},
    formula=_LAYER_FORMULA,
    doc=_LAYER_DOC,
)
native(
    f"layer_norm({_LAYER}, bool cudnn_enable=True) -> Tensor",
    method=False,
    out=False,
    options={"composite": True},
    formula=_LAYER_FORMULA,
    doc=_LAYER_DOC,
)
native(
    "native_layer_norm(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, float eps) "
    "-> (Tensor, Tensor, Tensor)",
    method=False,
    out=True,
    options={"composite": True},
    formula="out = (input - mean) / sqrt(var + eps) * weight + bias",
    doc="""Layer normalisation, the means that it used, and 1 / sqrt(var + eps).

    Shapes: input (*, *normalized_shape), weight and bias normalized_shape; the result has the shape of input, the
    statistics that shape with 1 for each normalised dimension.

    >>> x = torch.tensor([[1.0, 5.0], [10.0, 30.0]])
    >>> torch.native_layer_norm(x, [2], None, None, 0.0)
    (tensor([[-1.,  1.],
            [-1.,  1.]]), tensor([[ 3.],
            [20.]]), tensor([[0.5000],
            [0.1000]]))""",
)


def _layer_norm_second(
    grad_grad_input: Any,
    grad_grad_weight: Any,
    grad_grad_bias: Any,
    grad: Any,
    input: Any,
    weight: Any,
    dims: int,
    eps: float,
    centred: bool = True,
) -> Any:
    lead = input.dim() - dims
    a, b, c, g, x, w = _wide(_incoming(grad_grad_input, input), grad_grad_weight, grad_grad_bias, grad, input, weight)
    found = _second(a, b, c, g, x, w, list(range(lead, input.dim())), eps, centred)
    return _finish(found, grad, input, weight, list(range(lead)))


native(
    "_layer_norm(Tensor input, int dims, Tensor? weight, Tensor? bias, float eps) -> (Tensor, Tensor mean, "
    "Tensor rstd)",
    batch="plain:weight,bias",
    out=False,
    aten="native_layer_norm",
    options={"not_differentiable": ("mean", "rstd")},
    derivative={
        "input, weight, bias": lambda grad, input, dims, weight, bias, mean, rstd, eps, needs: rl._layer_norm_backward(
            grad, input, dims, weight, bias, mean, rstd, eps, needs
        )
    },
    doc="layer_norm over the last `dims` dimensions, with its statistics.",
)
native(
    "_layer_norm_backward(Tensor grad, Tensor input, int dims, Tensor? weight, Tensor? bias, Tensor mean, Tensor rstd, "
    f"float eps, Any needs) -> {_GRADIENTS}",
    out=False,
    batch=_batch.layer_norm_backward,
    derivative={
        "grad, input, weight": _layer_norm_second,
    },
    doc="The gradients of layer_norm.",
)

# ---------------------------------------------------------------- root mean squares

native(
    "rms_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor",
    public="rms_norm nn.functional.rms_norm",
    method=False,
    out=False,
    options={"composite": True},
    formula="out = input / sqrt(mean(input^2) + eps) * weight",
    doc="""Root mean square normalisation: the last dimensions scaled to mean square 1, without moving the mean
    (Zhang and Sennrich, 2019).

    eps is the machine epsilon of the computation's dtype by default. RuntimeError when the shapes do not fit.

    Shapes: input (*, *normalized_shape), weight normalized_shape; the result has the shape of input.

    >>> torch.rms_norm(torch.tensor([[1.0, 7.0], [3.0, -4.0]]), [2])
    tensor([[ 0.2000,  1.4000],
            [ 0.8485, -1.1314]])""",
)
native(
    "_rms_norm(Tensor input, int dims, Tensor? weight, float eps) -> (Tensor, Tensor rstd)",
    batch="plain:weight",
    out=False,
    options={"not_differentiable": ("rstd",)},
    derivative={
        "input, weight": lambda grad, input, dims, weight, rstd, eps, needs: rl._rms_norm_backward(
            grad, input, dims, weight, rstd, eps, needs
        )
    },
    doc="rms_norm over the last `dims` dimensions, with its scale.",
)
native(
    "_rms_norm_backward(Tensor grad, Tensor input, int dims, Tensor? weight, Tensor rstd, float eps, Any needs) "
    "-> (Tensor grad_input, Tensor grad_weight)",
    out=False,
    batch=_batch.rms_norm_backward,
    derivative={
        "grad, input, weight": lambda grad_grad_input, grad_grad_weight, grad, input, weight, dims, eps: (
            _layer_norm_second(grad_grad_input, grad_grad_weight, None, grad, input, weight, dims, eps, False)
        )
    },
    doc="The gradients of rms_norm.",
)

# ---------------------------------------------------------------- groups of channels

_GROUP = "Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05"
_GROUP_FORMULA = "out = (input - mean) / sqrt(var + eps) * weight + bias, per group of channels"
_GROUP_DOC = """Group normalisation: each group of channels moved to mean 0 and scaled to variance 1 (Wu and He, 2018).

    The C channels are split in order into num_groups groups; mean and (biased) variance are those of one group of one
    element of the batch. RuntimeError when C is not divisible by num_groups.

    Shapes: input (N, C, *), weight and bias (C); the result has the shape of input.

    >>> x = torch.tensor([[1.0, 5.0, 10.0, 30.0]])
    >>> torch.nn.functional.group_norm(x, 2)
    tensor([[-1.0000,  1.0000, -1.0000,  1.0000]])
    >>> torch.nn.functional.group_norm(x, 2, weight=torch.tensor([1.0, 1.0, 2.0, 2.0]))
    tensor([[-1.0000,  1.0000, -2.0000,  2.0000]])
"""

native(
    f"_nn_group_norm({_GROUP}) -> Tensor",
    order="input",
    public="nn.functional.group_norm",
    out=False,
    implementation="group_norm",
    options={"composite": True},
    formula=_GROUP_FORMULA,
    doc=_GROUP_DOC,
)
native(
    f"group_norm({_GROUP}, bool cudnn_enabled=True) -> Tensor",
    order="input",
    method=False,
    out=False,
    options={"composite": True},
    formula=_GROUP_FORMULA,
    doc=_GROUP_DOC,
)


def _group_norm_second(
    grad_grad_input: Any,
    grad_grad_weight: Any,
    grad_grad_bias: Any,
    grad: Any,
    input: Any,
    weight: Any,
    groups: int,
    eps: float,
) -> Any:
    n, channels = input.shape[0], input.shape[1]
    shape = [n, groups, channels // groups, -1] if input.numel() else [n, groups, channels // groups, 0]

    def per_channel(t: Any) -> Any:
        return t.reshape(1, groups, channels // groups, 1) if t is not None and t.dim() else t

    a, b, c, g, x, w = _wide(_incoming(grad_grad_input, input), grad_grad_weight, grad_grad_bias, grad, input, weight)
    a, g, x = a.reshape(shape), g.reshape(shape), x.reshape(shape)
    by_grad, by_x, by_weight = _second(a, per_channel(b), per_channel(c), g, x, per_channel(w), [2, 3], eps, True)
    by_grad, by_x = by_grad.expand(shape).reshape(input.shape), by_x.expand(shape).reshape(input.shape)
    if by_weight is not None:
        by_weight = by_weight.sum([0, 3]).reshape(weight.shape).to(weight.dtype)
    return by_grad.to(grad.dtype), by_x.to(input.dtype), by_weight


native(
    "_group_norm(Tensor input, int groups, Tensor? weight, Tensor? bias, float eps) "
    "-> (Tensor, Tensor mean, Tensor rstd)",
    order="input",
    out=False,
    aten="native_group_norm",
    options={"not_differentiable": ("mean", "rstd")},
    batch=_batch.group_norm,
    derivative={
        "input, weight, bias": lambda grad, input, groups, weight, bias, mean, rstd, eps, needs: (
            rl._group_norm_backward(grad, input, groups, weight, bias, mean, rstd, eps, needs)
        )
    },
    doc="group_norm with its statistics.",
)
native(
    "_group_norm_backward(Tensor grad, Tensor input, int groups, Tensor? weight, Tensor? bias, Tensor mean, "
    "Tensor rstd, "
    f"float eps, Any needs) -> {_GRADIENTS}",
    order="input",
    out=False,
    batch=_batch.group_norm_backward,
    derivative={
        "grad, input, weight": _group_norm_second,
    },
    doc="The gradients of group_norm.",
)


@composite(
    "native_group_norm(Tensor input, Tensor? weight, Tensor? bias, int N, int C, int HxW, int group, float eps) "
    "-> (Tensor, Tensor, Tensor)",
    method=False,
    formula="out = (input - mean) / sqrt(var + eps) * weight + bias, per group of channels",
)
def native_group_norm(input: Any, weight: Any, bias: Any, N: int, C: int, HxW: int, group: int, eps: float) -> Any:
    """Group normalisation of N x C x HxW elements, the groups' means that it used, and 1 / sqrt(var + eps).

    RuntimeError for an input that is not contiguous.

    Shapes: input of N * C * HxW elements, weight and bias (C); the result has the shape of input, the statistics (N,
    group).

    >>> x = torch.tensor([[[1.0], [5.0], [10.0], [30.0]]])
    >>> torch.native_group_norm(x, None, None, 1, 4, 1, 2, 0.0)[1:]
    (tensor([[ 3., 20.]]), tensor([[0.5000, 0.1000]]))
    """
    if not input.is_contiguous():
        raise RuntimeError(f"native_group_norm: expected a contiguous input, got strides {input.stride()}")
    out, mean, rstd = rl._group_norm(input.reshape(N, C, HxW), group, weight, bias, eps)
    if weight is None or weight.dtype == input.dtype:
        mean, rstd = mean.to(input.dtype), rstd.to(input.dtype)
    if input.requires_grad:  # the statistics have derivatives too
        groups = input.reshape(N, group, C // group * HxW)
        mean = groups.mean(2)
        rstd = (groups.var(2, unbiased=False) + eps).rsqrt()
    return out.reshape(input.shape), mean.reshape(N, group), rstd.reshape(N, group)
