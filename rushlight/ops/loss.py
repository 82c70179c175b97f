"""Losses."""

from __future__ import annotations

from typing import Any

from . import _batch_network as _batch
from ._record import native, rl

_CLASSES = """\
Targets that are ignore_index do not count. reduction='mean' divides the sum of l by the weights of the targets
    that count, 'sum' does not, 'none' gives l itself; size_average and reduce are the old way to say it. ValueError for
    sizes that do not fit, RuntimeError for a target that is not int64 or uint8, IndexError for a class outside
    0 to C - 1.

    Shapes: input (N, C, *) or (C), target (N, *) or (); the result (), or the shape of target with reduction='none'."""

# ---------------------------------------------------------------- classes

native(
    "_nn_nll_loss(Tensor input, Tensor target, Tensor? weight=None, bool? size_average=None, int ignore_index=-100, "
    "bool? reduce=None, str reduction='mean') -> Tensor",
    public="nn.functional.nll_loss",
    options={"composite": True},
    formula="l_n = -weight[t] input[n, t], t = target[n]",
    doc=f"""The negative log likelihood of classes, where input holds the logarithm of a probability for each class.

    {_CLASSES}

    >>> input = torch.tensor([[0.5, 0.5], [0.1, 0.9]]).log()
    >>> torch.nn.functional.nll_loss(input, torch.tensor([0, 1]), reduction="none")
    tensor([0.6931, 0.1054])""",
)
native(
    "_nll_loss(Tensor input, Tensor target, Tensor? weight, int ignore_index, int reduction) -> (Tensor, "
    "Tensor total_weight)",
    out=False,
    aten="nll_loss_forward",
    options={"not_differentiable": ("total_weight",)},
    batch=_batch.class_loss,
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
    batch=_batch.nll_loss_backward,
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
    formula="l_n = -weight[t] log(exp(input[n, t]) / sum_c exp(input[n, c])), t = target[n]",
    doc=f"""The cross entropy of classes, where input holds a logit for each: nll_loss of log_softmax.

    target has class indices, or a probability for each class, over which l is averaged then. label_smoothing, from 0 to
    1, is the part of the target that is spread evenly over all classes (Szegedy et al., 2016).

    {_CLASSES} A target of
    probabilities has the shape of input.

    >>> input = torch.tensor([[0.0, 0.0], [200.0, 0.0]])
    >>> torch.nn.functional.cross_entropy(input, torch.tensor([1, 1]), reduction="none")
    tensor([  0.6931, 200.0000])
    >>> torch.nn.functional.cross_entropy(input, torch.tensor([[0.5, 0.5], [1.0, 0.0]]))
    tensor(0.3466)""",
)
native(
    "_cross_entropy(Tensor input, Tensor target, Tensor? weight, int ignore_index, float label_smoothing, int "
    "reduction) "
    "-> (Tensor, Tensor total_weight, Tensor log_sum)",
    out=False,
    options={"not_differentiable": ("total_weight", "log_sum")},
    batch=_batch.class_loss,
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
    batch=_batch.cross_entropy_backward,
    derivative={
        "grad, input": _cross_entropy_second,
    },
    doc="The gradient of cross_entropy.",
)

# ---------------------------------------------------------------- term by term

_FLAGS = "bool? size_average=None, bool? reduce=None, str reduction='mean'"

for _name, _word, _term, _shown in (
    ("mse", "mean squared error", "(input_i - target_i)^2", ("[1., 9.]", "7.")),
    ("l1", "mean absolute error", "|input_i - target_i|", ("[1., 3.]", "2.5000")),
):
    native(
        f"_nn_{_name}_loss(Tensor input, Tensor target, {_FLAGS}, Tensor? weight=None) -> Tensor",
        public=f"nn.functional.{_name}_loss",
        implementation="_nn_mse_loss",
        options={"composite": True},
        formula=f"l_i = {_term}",
        doc=f"""The {_word}; with weight the weighted mean.

    reduction='mean' gives sum(weight * l) / sum(weight), 'sum' the sum of weight * l, 'none' itself; size_average and
    reduce are the old way to say it. Shapes that differ are broadcast with a warning; RuntimeError where they cannot
    be.

    Shapes: input (*), target (*), weight (*); the result (), or (*) with reduction='none'.

    >>> input, target = torch.tensor([1.0, 3.0]), torch.zeros(2)
    >>> torch.nn.functional.{_name}_loss(input, target, reduction="none")
    tensor({_shown[0]})
    >>> torch.nn.functional.{_name}_loss(input, target, weight=torch.tensor([1.0, 3.0]))
    tensor({_shown[1]})""",
    )
native(
    f"_nn_smooth_l1_loss(Tensor input, Tensor target, {_FLAGS}, float beta=1.0) -> Tensor",
    public="nn.functional.smooth_l1_loss",
    options={"composite": True},
    formula="l_i = d_i^2 / (2 beta) if d_i < beta else d_i - beta / 2, d = |input - target|",
    doc="""The smooth L1 loss: squares below a distance of beta, absolute values beyond (Girshick, 2015). With beta
    = 0 it is l1_loss.

    reduction='mean' gives the mean of l, 'sum' its sum, 'none' l itself; size_average and reduce are the old way to
    say it. RuntimeError for a negative beta or shapes that do not broadcast.

    Shapes: input (*), target (*); the result (), or (*) with reduction='none'.

    >>> input, target = torch.tensor([0.5, 4.0]), torch.zeros(2)
    >>> torch.nn.functional.smooth_l1_loss(input, target, reduction="none")
    tensor([0.1250, 3.5000])""",
)
native(
    "_nn_huber_loss(Tensor input, Tensor target, str reduction='mean', float delta=1.0, Tensor? weight=None) -> Tensor",
    public="nn.functional.huber_loss",
    options={"composite": True},
    formula="l_i = d_i^2 / 2 if d_i <= delta else delta (d_i - delta / 2), d = |input - target|",
    doc="""The Huber loss: squares up to a distance of delta, straight lines beyond, so that outliers count less
    (Huber, 1964).

    reduction='mean' gives the mean of weight * l, 'sum' its sum, 'none' itself. RuntimeError for a delta that is not
    above 0 or shapes that do not broadcast.

    Shapes: input (*), target (*), weight (*); the result (), or (*) with reduction='none'.

    >>> input, target = torch.tensor([0.5, 4.0]), torch.zeros(2)
    >>> torch.nn.functional.huber_loss(input, target, reduction="none", delta=2.0)
    tensor([0.1250, 6.0000])""",
)
native(
    f"_nn_binary_cross_entropy_with_logits(Tensor input, Tensor target, Tensor? weight=None, {_FLAGS}, "
    "Tensor? pos_weight=None) -> Tensor",
    public="nn.functional.binary_cross_entropy_with_logits",
    options={"composite": True},
    formula="l_i = -weight_i (pos_weight_i target_i log(s_i) + (1 - target_i) log(1 - s_i)), s = sigmoid(input)",
    doc="""The binary cross entropy of probabilities and logits, computed without overflow.

    target holds probabilities from 0 to 1; pos_weight weighs the positive class. reduction='mean' gives the mean of l,
    'sum' its sum, 'none' l itself; size_average and reduce are the old way to say it. ValueError when input and target
    differ in shape.

    Shapes: input (*), target (*), weight and pos_weight broadcast to (*); the result (), or (*) with reduction='none'.

    >>> input, target = torch.tensor([0.0, -200.0]), torch.tensor([1.0, 1.0])
    >>> torch.nn.functional.binary_cross_entropy_with_logits(input, target, reduction="none")
    tensor([  0.6931, 200.0000])""",
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
    batch=_batch.pointwise_loss_backward,
    derivative={
        "grad, input, target": lambda grad_result, kind, p, grad, input, target, weight, pos_weight, reduction: (
            _pointwise_second(grad_result, kind, p, grad, input, target, weight, pos_weight, reduction)
        )
    },
    doc="The gradient of a pointwise loss by its input.",
)
