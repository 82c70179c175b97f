"""Losses."""

from __future__ import annotations

from typing import Any

from . import _batch
from ._record import native, rl

_CLASSES = """Shapes: input (N, C, *), target (N, *) -> () or the shape of target with reduction='none'; also (C), ().

    ValueError for sizes that do not fit, RuntimeError for a target that is not int64 or uint8, IndexError for a class
    outside 0 to C - 1."""

# ---------------------------------------------------------------- classes

native(
    "_nn_nll_loss(Tensor input, Tensor target, Tensor? weight=None, bool? size_average=None, int ignore_index=-100, "
    "bool? reduce=None, str reduction='mean') -> Tensor",
    public="nn.functional.nll_loss",
    options={"composite": True},
    doc=f"-weight[target] * input[target], with input a log probability per class; reduced.\n\n    {_CLASSES}",
)
native(
    "_nll_loss(Tensor input, Tensor target, Tensor? weight, int ignore_index, int reduction) -> (Tensor, "
    "Tensor total_weight)",
    out=False,
    aten="nll_loss_forward",
    options={"not_differentiable": ("total_weight",)},
    derivative={
        "input": lambda grad, input_shape, target, weight, ignore_index, reduction, total_weight: rl._nll_loss_backward(
            grad, input_shape, target, weight, ignore_index, reduction, total_weight
        )
    },
    doc="nll_loss, and the weights of the targets that count.",
)
native(
    "_nll_loss_backward(Tensor grad, int[] size, Tensor target, Tensor? weight, int ignore_index, int reduction, "
    "Tensor total_weight) -> Tensor",
    derivative={
        "grad": lambda grad_result, target, weight, ignore_index, reduction: rl._nll_loss(
            grad_result, target, weight, ignore_index, reduction
        )[0]
    },
    doc="The gradient of nll_loss.",
)

native(
    "_nn_cross_entropy(Tensor input, Tensor target, Tensor? weight=None, bool? size_average=None, int "
    "ignore_index=-100, "
    "bool? reduce=None, str reduction='mean', float label_smoothing=0.0) -> Tensor",
    public="nn.functional.cross_entropy",
    options={"composite": True},
    doc=f"""Cross entropy of logits and class indices, or class probabilities in the shape of input; reduced.

    {_CLASSES}""",
)
native(
    "_cross_entropy(Tensor input, Tensor target, Tensor? weight, int ignore_index, float label_smoothing, int "
    "reduction) "
    "-> (Tensor, Tensor total_weight, Tensor log_sum)",
    out=False,
    options={"not_differentiable": ("total_weight", "log_sum")},
    derivative={
        "input": lambda grad, input, log_sum, target, weight, ignore_index, label_smoothing, reduction, total_weight: (
            rl._cross_entropy_backward(
                grad, input, log_sum, target, weight, ignore_index, label_smoothing, reduction, total_weight
            )
        )
    },
    doc="cross_entropy by class indices, with what its backward needs.",
)


def _cross_entropy_second(
    grad_result: Any,
    grad: Any,
    input: Any,
    target: Any,
    weight: Any,
    ignore_index: int,
    label_smoothing: float,
    reduction: int,
    total_weight: Any,
) -> tuple[Any, Any]:
    """The gradient is u - softmax(input) sum(u), where u = grad u1 is that of the log probabilities."""
    k = 0 if input.dim() == 1 else 1
    ones = rl.ones_like(grad)
    u1 = rl._nll_loss_backward(ones, input.shape, target, weight, ignore_index, reduction, total_weight.to(grad.dtype))
    if label_smoothing > 0:
        counted = (
            (target != ignore_index)
            .to(input.dtype)
            .reshape([n for i, n in enumerate(input.shape) if i != k])
            .unsqueeze(k)
        )
        share = counted * (-label_smoothing / input.shape[k])
        if weight is not None:
            share = share * weight.reshape([-1] + [1] * (input.dim() - k - 1))
        if reduction == 1:
            share = share / total_weight.to(input.dtype)
        u1 = u1 * (1 - label_smoothing) + share
    p = input.softmax(k)
    v = grad_result - (p * grad_result).sum(k, True)
    if reduction == 0 and input.dim() > 1:
        u, by_grad = u1 * grad.unsqueeze(k), (u1 * v).sum(k)
    else:
        u, by_grad = u1 * grad, (u1 * v).sum()
    return by_grad, -u.sum(k, True) * p * v


native(
    "_cross_entropy_backward(Tensor grad, Tensor input, Tensor log_sum, Tensor target, Tensor? weight, int "
    "ignore_index, "
    "float label_smoothing, int reduction, Tensor total_weight) -> Tensor",
    derivative={
        "grad, input": _cross_entropy_second,
    },
    doc="The gradient of cross_entropy.",
)

# ---------------------------------------------------------------- term by term

_FLAGS = "bool? size_average=None, bool? reduce=None, str reduction='mean'"
_TERMS = "Shapes: (*), (*) -> () or (*) with reduction='none'."

for _name, _word in (("mse", "(input - target)^2"), ("l1", "|input - target|")):
    native(
        f"_nn_{_name}_loss(Tensor input, Tensor target, {_FLAGS}, Tensor? weight=None) -> Tensor",
        public=f"nn.functional.{_name}_loss",
        implementation="_nn_mse_loss",
        options={"composite": True},
        doc=f"{_word}, reduced; with weight the mean is the weighted mean. {_TERMS}",
    )
native(
    f"_nn_smooth_l1_loss(Tensor input, Tensor target, {_FLAGS}, float beta=1.0) -> Tensor",
    public="nn.functional.smooth_l1_loss",
    options={"composite": True},
    doc=f"d^2 / (2 beta) where d = |input - target| < beta, and d - beta / 2 elsewhere; reduced. {_TERMS}",
)
native(
    "_nn_huber_loss(Tensor input, Tensor target, str reduction='mean', float delta=1.0, Tensor? weight=None) -> Tensor",
    public="nn.functional.huber_loss",
    options={"composite": True},
    doc=f"d^2 / 2 where d = |input - target| <= delta, and delta (d - delta / 2) elsewhere; reduced. {_TERMS}",
)
native(
    f"_nn_binary_cross_entropy_with_logits(Tensor input, Tensor target, Tensor? weight=None, {_FLAGS}, "
    "Tensor? pos_weight=None) -> Tensor",
    public="nn.functional.binary_cross_entropy_with_logits",
    options={"composite": True},
    doc=f"Binary cross entropy of sigmoid(input), without overflow; reduced. {_TERMS}",
)

_MSE, _L1, _SMOOTH_L1, _HUBER, _BCE, _BCE_LOGITS = range(6)  # kinds, as the kernels number them

native(
    "_pointwise_loss(int kind, float p, Tensor input, Tensor target, Tensor? weight, Tensor? pos_weight, int "
    "reduction) "
    "-> Tensor",
    out=False,
    batch=_batch.pointwise_loss,
    derivative={
        "input": lambda grad, kind, p, input, target, weight, pos_weight, reduction: rl._pointwise_loss_backward(
            kind, p, grad, input, target, weight, pos_weight, reduction
        ),
        # Only the losses of a difference come here with a target that requires grad: they are symmetric.
        "target": lambda grad, kind, p, input, target, weight, pos_weight, reduction: rl._pointwise_loss_backward(
            kind, p, grad, target, input, weight, pos_weight, reduction
        ),
    },
    doc="A loss whose terms are computed element by element, reduced.",
)


def _curvature(kind: int, p: float, input: Any, target: Any) -> Any:
    """The second derivative of a term by its input."""
    if kind == _MSE:
        return 2.0
    if kind == _L1:
        return 0.0
    if kind == _SMOOTH_L1:
        return ((input - target).abs() < p).to(input.dtype) * (1 / p)
    if kind == _HUBER:
        return ((input - target).abs() <= p).to(input.dtype)
    s = input.sigmoid()
    return s * (1 - s)


def _pointwise_second(
    incoming: Any, kind: int, p: float, grad: Any, input: Any, target: Any, weight: Any, pos_weight: Any, reduction: int
) -> tuple[Any, Any, Any]:
    ones = rl.ones_like(grad)
    slope = rl._pointwise_loss_backward(kind, p, ones, input, target, weight, pos_weight, reduction)
    by_grad = incoming * slope
    if reduction:
        by_grad = by_grad.sum()
    by_input = incoming * grad * _curvature(kind, p, input, target)
    if reduction == 1:
        by_input = by_input / max(input.numel(), 1)
    return by_grad, by_input, -by_input


native(
    "_pointwise_loss_backward(int kind, float p, Tensor grad, Tensor input, Tensor target, Tensor? weight, "
    "Tensor? pos_weight, int reduction) -> Tensor",
    derivative={
        "grad, input, target": lambda grad_result, kind, p, grad, input, target, weight, pos_weight, reduction: (
            _pointwise_second(grad_result, kind, p, grad, input, target, weight, pos_weight, reduction)
        )
    },
    doc="The gradient of a pointwise loss by its input.",
)
