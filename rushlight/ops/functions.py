"""Functions of the tensor namespace that are a functional under another signature.

PyTorch's library functions take a reduction as a number (0 none, 1 mean, 2 sum) and flags by position, where
nn.functional takes words and keywords; left out, it is 0.
"""

from __future__ import annotations

from typing import Any

from ._record import composite, rl

_WORDS = ("none", "mean", "sum")


def _functional() -> Any:
    from rushlight.nn import functional

    return functional


def _word(reduction: int) -> str:
    if not 0 <= reduction < len(_WORDS):
        raise ValueError(f"{reduction} is not a valid value for reduction; expected 0 (none), 1 (mean) or 2 (sum)")
    return _WORDS[reduction]


# ---------------------------------------------------------------- losses


@composite(
    "binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, "
    "int reduction=0) -> Tensor",
    method=False,
    formula="l_i = -weight_i (pos_weight_i target_i log(s_i) + (1 - target_i) log(1 - s_i)), s = sigmoid(self)",
)
def _bce(self: Any, target: Any, weight: Any, pos_weight: Any, reduction: int) -> Any:
    """The binary cross entropy of probabilities and logits, with the reduction as a number: 0 none, 1 mean, 2 sum.

    nn.functional.binary_cross_entropy_with_logits says more.

    Shapes: self (*), target (*); the result (), or (*) with reduction 0.

    >>> torch.binary_cross_entropy_with_logits(torch.tensor([0.0, -200.0]), torch.tensor([1.0, 1.0]), reduction=0)
    tensor([  0.6931, 200.0000])
    """
    return _functional().binary_cross_entropy_with_logits(
        self, target, weight, reduction=_word(reduction), pos_weight=pos_weight
    )


@composite(
    "cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=0) -> Tensor",
    method=False,
    formula="l = 1 - cos(input1, input2) if target is 1, max(0, cos(input1, input2) - margin) if it is -1",
)
def _cosine_embedding(input1: Any, input2: Any, target: Any, margin: float, reduction: int) -> Any:
    """A loss that turns vectors of pairs with target 1 to one another, and those with -1 apart.

    reduction is a number: 0 none, 1 mean, 2 sum.

    Shapes: input1 (N, D), input2 (N, D), target (N), or (D), (D), (); the result (), or (N) with reduction 0.

    >>> x1, x2 = torch.tensor([[1.0, 0.0], [1.0, 0.0]]), torch.tensor([[3.0, 4.0], [3.0, 4.0]])
    >>> torch.cosine_embedding_loss(x1, x2, torch.tensor([1, -1]), reduction=0)
    tensor([0.4000, 0.6000])
    """
    return _functional().cosine_embedding_loss(input1, input2, target, margin, reduction=_word(reduction))


@composite(
    "ctc_loss(Tensor log_probs, Tensor targets, Any input_lengths, Any target_lengths, int blank=0, "
    "int reduction=0, bool zero_infinity=False) -> Tensor",
    method=False,
    formula="l = -log(sum of exp(sum_t log_probs[t, path_t]) over all paths that give the target)",
)
def _ctc(log_probs: Any, targets: Any, inputs: Any, lengths: Any, blank: int, reduction: int, zero: bool) -> Any:
    """The connectionist temporal classification loss, of sequences whose alignment in time is unknown (Graves et
    al., 2006).

    A path gives what is left when repetitions are merged and then blanks taken out. reduction is a number: 0 none, 1
    mean over the batch of l / target length, 2 sum. zero_infinity counts targets too long for their input as 0.

    Shapes: log_probs (T, N, C), targets (N, S) or all one after the other, lengths (N); the result (), or (N) with
    reduction 0.

    >>> log_probs = torch.full((2, 1, 2), 0.5).log()  # 2 steps, blank and one letter: 3 of 4 paths give "1"
    >>> torch.ctc_loss(log_probs, torch.tensor([[1]]), torch.tensor([2]), torch.tensor([1]), reduction=0)
    tensor([0.2877])
    """
    return _functional().ctc_loss(log_probs, targets, inputs, lengths, blank, _word(reduction), zero)


@composite(
    "hinge_embedding_loss(Tensor self, Tensor target, float margin=1.0, int reduction=0) -> Tensor",
    method=False,
    formula="l_i = self_i if target_i is 1, max(0, margin - self_i) if it is -1",
)
def _hinge(self: Any, target: Any, margin: float, reduction: int) -> Any:
    """A loss of distances: they shall be small where the target is 1, and at least margin where it is -1.

    reduction is a number: 0 none, 1 mean, 2 sum.

    Shapes: self (*), target (*); the result (), or (*) with reduction 0.

    >>> torch.hinge_embedding_loss(torch.tensor([2.0, 0.25]), torch.tensor([1, -1]), reduction=0)
    tensor([2.0000, 0.7500])
    """
    return _functional().hinge_embedding_loss(self, target, margin, reduction=_word(reduction))


@composite(
    "kl_div(Tensor self, Tensor target, int reduction=0, *, bool log_target=False) -> Tensor",
    method=False,
    formula="l_i = target_i (log(target_i) - self_i); exp(target_i) (target_i - self_i) with log_target",
)
def _kl(self: Any, target: Any, reduction: int, log_target: bool) -> Any:
    """The Kullback-Leibler divergence of the distribution with logarithms self from the distribution target.

    reduction is a number: 0 none, 1 mean over all elements, 2 sum, which is the divergence.

    Shapes: self and target broadcast; the result (), or the common shape with reduction 0.

    >>> torch.kl_div(torch.tensor([0.5, 0.5]).log(), torch.tensor([0.25, 0.75]), reduction=2)
    tensor(0.1308)
    """
    found = _functional().kl_div(self, target, reduction="none", log_target=log_target)
    return {"none": lambda: found, "mean": found.mean, "sum": found.sum}[_word(reduction)]()


@composite(
    "margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=0) -> Tensor",
    method=False,
    formula="l_i = max(0, -target_i (input1_i - input2_i) + margin)",
)
def _ranking(input1: Any, input2: Any, target: Any, margin: float, reduction: int) -> Any:
    """A loss of pairs of scores: where the target is 1 the first shall be greater by margin, where it is -1 the
    second.

    reduction is a number: 0 none, 1 mean, 2 sum.

    Shapes: input1, input2 and target broadcast; the result (), or the common shape with reduction 0.

    >>> x1, x2 = torch.tensor([1.0, 3.0]), torch.tensor([2.0, 1.0])
    >>> torch.margin_ranking_loss(x1, x2, torch.tensor([1, 1]), margin=0.5, reduction=0)
    tensor([1.5000, 0.0000])
    """
    return _functional().margin_ranking_loss(input1, input2, target, margin, reduction=_word(reduction))


@composite(
    "poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, int reduction) -> Tensor",
    method=False,
    formula="l_i = exp(input_i) - target_i input_i, or input_i - target_i log(input_i + eps) without log_input",
)
def _poisson(input: Any, target: Any, log_input: bool, full: bool, eps: float, reduction: int) -> Any:
    """The negative log likelihood of counts under Poisson distributions whose rates, or their logarithms, are
    given.

    full adds Stirling's approximation of log(target!) for targets above 1. reduction is a number: 0 none, 1 mean, 2
    sum.

    Shapes: input (*), target (*); the result (), or (*) with reduction 0.

    >>> torch.poisson_nll_loss(torch.tensor([0.0, 1.0]), torch.tensor([1.0, 2.0]), True, False, 1e-8, 0)
    tensor([1.0000, 0.7183])
    """
    return _functional().poisson_nll_loss(input, target, log_input, full, eps=eps, reduction=_word(reduction))


@composite(
    "triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, float p=2.0, "
    "float eps=1e-06, bool swap=False, int reduction=0) -> Tensor",
    method=False,
    formula="l = max(0, |anchor - positive|_p - |anchor - negative|_p + margin)",
)
def _triplet(
    anchor: Any, positive: Any, negative: Any, margin: float, p: float, eps: float, swap: bool, reduction: int
) -> Any:
    """A loss of triplets of vectors: the positive shall be nearer to the anchor than the negative, by margin.

    swap takes the distance of positive and negative where it is the smaller one. reduction is a number: 0 none, 1
    mean, 2 sum.

    Shapes: anchor, positive and negative (N, D) or (D); the result (), or (N) with reduction 0.

    >>> anchor, positive, negative = torch.zeros(1, 2), torch.tensor([[3.0, 4.0]]), torch.tensor([[0.0, 2.5]])
    >>> torch.triplet_margin_loss(anchor, positive, negative, reduction=1)
    tensor(3.5000)
    """
    return _functional().triplet_margin_loss(
        anchor, positive, negative, margin, p, eps, swap, reduction=_word(reduction)
    )


# ---------------------------------------------------------------- distances, arrangements


@composite(
    "bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor",
    method=False,
    formula="out_o = sum_ij input1_i weight_oij input2_j + bias_o",
)
def _bilinear(input1: Any, input2: Any, weight: Any, bias: Any) -> Any:
    """A bilinear map of two inputs.

    Shapes: input1 (*, I), input2 (*, J), weight (O, I, J), bias (O); the result (*, O).

    >>> weight = torch.tensor([[[1.0, 0.0], [0.0, 1.0]]])  # the inner product
    >>> torch.bilinear(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0]]), weight)
    tensor([[11.]])
    """
    return _functional().bilinear(input1, input2, weight, bias)


@composite(
    "cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor",
    method=False,
    formula="out = sum_i x1_i x2_i / (max(|x1|, eps) max(|x2|, eps))",
)
def _cosine(x1: Any, x2: Any, dim: int, eps: float) -> Any:
    """The cosine of the angle between vectors along a dimension.

    Shapes: x1 and x2 broadcast; the result is without dim.

    >>> torch.cosine_similarity(torch.tensor([[3.0, 4.0]]), torch.tensor([[1.0, 0.0]]))
    tensor([0.6000])
    """
    return _functional().cosine_similarity(x1, x2, dim, eps)


@composite(
    "pixel_shuffle(Tensor self, int upscale_factor) -> Tensor",
    method=False,
    formula="out[c, h r + i, w r + j] = self[c r^2 + i r + j, h, w]",
)
def _pixel_shuffle(self: Any, factor: int) -> Any:
    """Channels rearranged to pixels, for images r times as high and wide (Shi et al., 2016).

    Shapes: self (*, C r^2, H, W); the result (*, C, H r, W r).

    >>> torch.pixel_shuffle(torch.arange(4).reshape(4, 1, 1), 2)
    tensor([[[0, 1],
             [2, 3]]])
    """
    return _functional().pixel_shuffle(self, factor)


@composite(
    "pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor",
    method=False,
    formula="out[c r^2 + i r + j, h, w] = self[c, h r + i, w r + j]",
)
def _pixel_unshuffle(self: Any, factor: int) -> Any:
    """Pixels rearranged to channels: the inverse of pixel_shuffle.

    Shapes: self (*, C, H r, W r); the result (*, C r^2, H, W).

    >>> torch.pixel_unshuffle(torch.arange(4).reshape(1, 2, 2), 2).flatten()
    tensor([0, 1, 2, 3])
    """
    return _functional().pixel_unshuffle(self, factor)


for _name in ("channel_shuffle", "native_channel_shuffle"):

    @composite(
        f"{_name}(Tensor self, int groups) -> Tensor",
        method=False,
        formula="out[:, c groups + g] = self[:, g (C / groups) + c]",
        doc=f"""The channels (dimension 1) of groups interleaved, so that the next grouped convolution mixes them.

    X. Zhang et al., "ShuffleNet" (2018). RuntimeError when groups does not divide the channels.

    Shapes: self (N, C, *); the result has the same.

    >>> torch.{_name}(torch.arange(4).reshape(1, 4, 1), 2).flatten()
    tensor([0, 2, 1, 3])""",
    )
    def _channel_shuffle(self: Any, groups: int) -> Any:
        return _functional().channel_shuffle(self, groups)


@composite(
    "affine_grid_generator(Tensor theta, int[] size, bool align_corners) -> Tensor",
    method=False,
    formula="out[n, y, x] = theta[n] @ (x, y, 1), x and y from -1 to 1",
)
def _affine_grid(theta: Any, size: Any, align_corners: bool) -> Any:
    """The points at which grid_sample looks to apply affine maps to images (Jaderberg et al., 2015).

    With align_corners -1 and 1 are the centres of the outer pixels, else their outer edges.

    Shapes: theta (N, 2, 3) with size (N, C, H, W), or (N, 3, 4) with (N, C, D, H, W); the result (N, H, W, 2) or (N,
    D, H, W, 3).

    >>> identity = torch.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    >>> torch.affine_grid_generator(identity, (1, 1, 1, 3), True)
    tensor([[[[-1.,  0.],
              [ 0.,  0.],
              [ 1.,  0.]]]])
    """
    return _functional().affine_grid(theta, list(size), align_corners)


# ---------------------------------------------------------------- convolutions, normalizations


@composite(
    "convolution(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, "
    "bool transposed, int[] output_padding, int groups) -> Tensor",
    method=False,
    formula="out[o, p] = bias[o] + sum over c, k of weight[o, c, k] input[c, stride * p + dilation * k - padding]",
)
def _convolution(
    input: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
) -> Any:
    """A convolution over one to three spatial dimensions, or a transposed one, with every argument given.

    nn.functional.conv2d and conv_transpose2d have defaults and say more. RuntimeError for other weights than of 3 to 5
    dimensions.

    Shapes: input (N, C, *spatial), weight (O, C / groups, *kernel), or (C, O / groups, *kernel) when transposed, bias
    (O); the result (N, O, *).

    >>> x, weight = torch.tensor([[[1.0, 2.0, 4.0, 8.0]]]), torch.tensor([[[-1.0, 1.0]]])
    >>> torch.convolution(x, weight, None, [1], [0], [1], False, [0], 1)
    tensor([[[1., 2., 4.]]])
    """
    n = weight.dim() - 2
    if not 1 <= n <= 3:
        raise RuntimeError(f"convolution: weight; expected 3 to 5 dimensions, got shape {list(weight.shape)}")
    stride, padding, dilation = list(stride), list(padding), list(dilation)
    if transposed:
        function = getattr(_functional(), f"conv_transpose{n}d")
        return function(input, weight, bias, stride, padding, list(output_padding), groups, dilation)
    return getattr(_functional(), f"conv{n}d")(input, weight, bias, stride, padding, dilation, groups)


@composite(
    "conv_tbc(Tensor self, Tensor weight, Tensor bias, int pad=0) -> Tensor",
    method=False,
    formula="out[t, n, o] = bias[o] + sum over k, c of self[t + k - pad, n, c] weight[k, c, o]",
)
def _conv_tbc(self: Any, weight: Any, bias: Any, pad: int) -> Any:
    """A convolution over time, of sequences with the time first and the channels last.

    Shapes: self (T, N, C), weight (K, C, O), bias (O); the result (T + 2 pad - K + 1, N, O).

    >>> x, weight = torch.tensor([1.0, 2.0, 4.0]).reshape(3, 1, 1), torch.tensor([-1.0, 1.0]).reshape(2, 1, 1)
    >>> torch.conv_tbc(x, weight, torch.zeros(1)).flatten()
    tensor([1., 2.])
    """
    return _functional().conv_tbc(self, weight, bias, pad)


@composite(
    "instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, "
    "bool use_input_stats, float momentum, float eps, bool cudnn_enabled) -> Tensor",
    method=False,
    formula="out = (input - mean) / sqrt(var + eps) * weight + bias, per channel and element of the batch",
)
def _instance_norm(
    input: Any, weight: Any, bias: Any, mean: Any, var: Any, use_input: bool, momentum: float, eps: float, cudnn: bool
) -> Any:
    """Instance normalisation: each channel of each element of the batch moved to mean 0 and variance 1 (Ulyanov et
    al., 2016).

    Without use_input_stats the running statistics are used, else they move by momentum where given. cudnn_enabled
    changes nothing.

    Shapes: input (N, C, *), the other tensors (C); the result has the shape of input.

    >>> x = torch.tensor([[[1.0, 5.0], [10.0, 30.0]]])
    >>> torch.instance_norm(x, None, None, None, None, True, 0.1, 0.0, False)
    tensor([[[-1.,  1.],
             [-1.,  1.]]])
    """
    return _functional().instance_norm(input, mean, var, weight, bias, use_input, momentum, eps)


@composite(
    "norm_except_dim(Tensor v, int pow=2, int dim=0) -> Tensor",
    method=False,
    formula="out_i = (sum |v[i, ...]|^pow)^(1/pow)   (for dim 0)",
)
def _norm_except_dim(v: Any, pow: int, dim: int) -> Any:
    """The norm over every dimension but one, which keeps its place; over all of them for dim=-1.

    Shapes: v (*); the result has size 1 in every dimension but dim, and is () for dim=-1.

    >>> torch.norm_except_dim(torch.tensor([[3.0, 4.0], [0.0, 5.0]]))
    tensor([[5.],
            [5.]])
    """
    if dim == -1:
        return (v.abs() ** pow).sum() ** (1 / pow)
    others = [d for d in range(v.dim()) if d != dim]
    return (v.abs() ** pow).sum(others, True) ** (1 / pow) if others else v.abs()


# ---------------------------------------------------------------- random


@composite(
    "native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)",
    method=False,
    formula="out = input * mask / (1 - p)",
)
def _native_dropout(input: Any, p: float, train: bool | None) -> Any:
    """Dropout, and the mask of what stayed (Srivastava et al., 2014).

    Each element is dropped with probability p; with train=False none is, and nothing is scaled.

    Shapes: input of any shape; both results have the same, the mask is bool.

    >>> out, mask = torch.native_dropout(torch.ones(100), 0.5, True)
    >>> out.unique(), mask.dtype
    (tensor([0., 2.]), rushlight.bool)
    """
    if train is False:
        return input, rl.ones_like(input, dtype=rl.bool)
    mask = rl.empty_like(input).bernoulli_(1 - p)
    return input * mask * (0.0 if p == 1 else 1 / (1 - p)), mask.bool()


for _name in ("alpha_dropout", "feature_dropout", "feature_alpha_dropout"):

    def _body(name: str) -> Any:
        functional = {"feature_dropout": "dropout2d"}.get(name, name)

        def body(input: Any, p: float, train: bool) -> Any:
            return _drop(functional, input, p, train, False)

        def body_(self: Any, p: float, train: bool) -> Any:
            return _drop(functional, self, p, train, True)

        return body, body_

    _plain, _inplace = _body(_name)
    _text, _formula, _example = {
        "alpha_dropout": (
            "Dropout that keeps the mean and the variance of what SELU gives (Klambauer et al., 2017)",
            "out = a (mask input + (1 - mask) c) + b, c = -1.7581, a = ((1 - p) (1 + p c^2))^-0.5, b = -a p c",
            "torch.alpha_dropout(torch.ones(100), 0.5, True).unique()\n    tensor([-0.7792,  1.6656])",
        ),
        "feature_dropout": (
            "Dropout of whole channels, those of dimension 1 (Tompson et al., 2015)",
            "out = mask input / (1 - p), one mask for a channel",
            "torch.feature_dropout(torch.ones(1, 100, 2, 2), 0.5, True).mean((2, 3)).unique()\n    tensor([0., 2.])",
        ),
        "feature_alpha_dropout": (
            "alpha_dropout of whole channels, those of dimension 1",
            "out = a (mask input + (1 - mask) c) + b, c = -1.7581, a = ((1 - p) (1 + p c^2))^-0.5, b = -a p c",
            "torch.feature_alpha_dropout(torch.ones(1, 100, 2, 2), 0.5, True).unique()\n    tensor([-0.7792,  1.6656])",
        ),
    }[_name]
    _about = "p is the probability of being dropped; without train nothing is. ValueError for a p outside 0 to 1."
    composite(
        f"{_name}(Tensor input, float p, bool train) -> Tensor",
        method=False,
        random=True,
        formula=_formula,
        doc=f"{_text}.\n\n    {_about}\n\n    Shapes: input (N, C, *); the result has the same.\n\n    >>> {_example}",
    )(_plain)
    composite(
        f"{_name}_(Tensor self, float p, bool train) -> Tensor",
        method=False,
        random=True,
        writes_self=True,
        formula=_formula.replace("out =", "self =").replace("input", "self"),
        doc=f"{_text}; in place.\n\n    {_about}\n\n    Shapes: self (N, C, *).\n\n    "
        f">>> {_example.replace(_name, f'{_name}_')}",
    )(_inplace)


def _drop(name: str, input: Any, p: float, train: bool, inplace: bool) -> Any:
    made = getattr(_functional(), name)(input, p, train)
    return input.copy_(made) if inplace else made


@composite(
    "rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, "
    "Generator? generator=None) -> Tensor",
    method=False,
    random=True,
    formula="out = self if self > 0 else slope * self",
)
def _rrelu(self: Any, lower: Any, upper: Any, training: bool, generator: Any) -> Any:
    """relu with a random slope below 0, drawn evenly from [lower, upper] for each element (Xu et al., 2015).

    Without training the slope is the middle, (lower + upper) / 2.

    Shapes: self of any shape; the result has the same.

    >>> torch.rrelu(torch.tensor([-1.0, 2.0]), 0.1, 0.3)
    tensor([-0.2000,  2.0000])
    """
    return _leaky(self, lower, upper, training, generator)


@composite(
    "rrelu_(Tensor self, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, "
    "Generator? generator=None) -> Tensor",
    method=False,
    random=True,
    writes_self=True,
    formula="self = self if self > 0 else slope * self",
)
def _rrelu_(self: Any, lower: Any, upper: Any, training: bool, generator: Any) -> Any:
    """rrelu in place, which changes self and returns it.

    Shapes: self of any shape.

    >>> x = torch.tensor([-1.0, 2.0])
    >>> _ = torch.rrelu_(x, 0.1, 0.3)
    >>> x
    tensor([-0.2000,  2.0000])
    """
    old = self.clone() if rl.is_grad_enabled() else self  # what is saved for backward must outlive the write
    return self.copy_(_leaky(old, lower, upper, training, generator))


def _leaky(x: Any, lower: Any, upper: Any, training: bool, generator: Any) -> Any:
    if generator is None:
        return _functional().rrelu(x, lower, upper, training)
    if not training:
        return rl.leaky_relu(x, (lower + upper) / 2)
    return rl.where(x <= 0, x * rl.empty_like(x).uniform_(lower, upper, generator=generator), x)


# ---------------------------------------------------------------- recurrent cells and layers

_CELL = "Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None"


@composite(
    f"lstm_cell(Tensor input, Tensor[] hx, {_CELL}) -> (Tensor, Tensor)",
    method=False,
    formula="c' = sigmoid(f) c + sigmoid(i) tanh(g), h' = sigmoid(o) tanh(c'), (i, f, g, o) = w_ih x + w_hh h + biases",
)
def _lstm_cell(input: Any, hx: Any, *weights: Any) -> Any:
    """One step of a long short-term memory: the new hidden state and cell state (Hochreiter and Schmidhuber, 1997).

    Shapes: input (N, I), hx two of (N, H), w_ih (4 H, I), w_hh (4 H, H), biases (4 H); the results (N, H) and (N, H).

    >>> x, h, c = torch.zeros(1, 2), torch.zeros(1, 1), torch.ones(1, 1)
    >>> torch.lstm_cell(x, (h, c), torch.zeros(4, 2), torch.zeros(4, 1))  # every gate is half open
    (tensor([[0.2311]]), tensor([[0.5000]]))
    """
    return _functional().lstm_cell(input, hx, *weights)


@composite(
    f"gru_cell(Tensor input, Tensor hx, {_CELL}) -> Tensor",
    method=False,
    formula="h' = (1 - z) n + z h, n = tanh(w_in x + r (w_hn h)), (r, z) = sigmoid(w_ih x + w_hh h), plus biases",
)
def _gru_cell(input: Any, hx: Any, *weights: Any) -> Any:
    """One step of a gated recurrent unit: the new state (Cho et al., 2014).

    The rows of the weights are those of r, z and n; the bias b_hn stands inside the bracket after r.

    Shapes: input (N, I), hx (N, H), w_ih (3 H, I), w_hh (3 H, H), biases (3 H); the result (N, H).

    >>> x, h = torch.zeros(1, 2), torch.ones(1, 1)
    >>> torch.gru_cell(x, h, torch.zeros(3, 2), torch.zeros(3, 1))  # every gate is half open
    tensor([[0.5000]])
    """
    return _functional().gru_cell(input, hx, *weights)


@composite(
    f"rnn_tanh_cell(Tensor input, Tensor hx, {_CELL}) -> Tensor",
    method=False,
    formula="h' = tanh(w_ih x + b_ih + w_hh h + b_hh)",
)
def _rnn_tanh_cell(input: Any, hx: Any, *weights: Any) -> Any:
    """One step of a recurrent network with tanh: the new state (Elman, 1990).

    Shapes: input (N, I), hx (N, H), w_ih (H, I), w_hh (H, H), biases (H); the result (N, H).

    >>> torch.rnn_tanh_cell(torch.ones(1, 1), torch.zeros(1, 1), torch.tensor([[0.5]]), torch.tensor([[1.0]]))
    tensor([[0.4621]])
    """
    return _functional().rnn_tanh_cell(input, hx, *weights)


@composite(
    f"rnn_relu_cell(Tensor input, Tensor hx, {_CELL}) -> Tensor",
    method=False,
    formula="h' = max(0, w_ih x + b_ih + w_hh h + b_hh)",
)
def _rnn_relu_cell(input: Any, hx: Any, *weights: Any) -> Any:
    """One step of a recurrent network with relu: the new state.

    Shapes: input (N, I), hx (N, H), w_ih (H, I), w_hh (H, H), biases (H); the result (N, H).

    >>> torch.rnn_relu_cell(torch.ones(1, 1), torch.ones(1, 1), torch.tensor([[0.5]]), torch.tensor([[2.0]]))
    tensor([[2.5000]])
    """
    return _functional().rnn_relu_cell(input, hx, *weights)


_LAYER = "Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional"


def _layers(mode: str, x: Any, sizes: Any, states: Any, arguments: Any) -> Any:
    from rushlight.nn.functional._recurrent import run_layers

    params, biases, layers, dropout, train, both, *rest = arguments
    cells = layers * (2 if both else 1)
    each = len(params) // cells if cells else 0
    expected = (4, 5) if biases else (2, 3)
    if each * cells != len(params) or each not in expected:
        raise RuntimeError(
            f"{mode.lower()}: params; expected {expected[0]} tensors for each of {cells} cells, got {len(params)}"
        )
    weights = []
    for i in range(cells):
        w = list(params[i * each : (i + 1) * each])
        pair = w[2:4] if biases else [None, None]
        weights.append([w[0], w[1], *pair, w[-1] if each == expected[1] else None])
    batch_first = bool(rest and rest[0])
    out, last = run_layers(
        mode,
        x.transpose(0, 1) if batch_first else x,
        None if sizes is None else sizes.tolist(),
        states,
        weights,
        dropout,
        train,
        both,
    )
    return (out.transpose(0, 1) if batch_first else out), last


for _mode in ("rnn_tanh", "rnn_relu", "gru", "lstm"):

    def _recurrent(mode: str) -> Any:
        several = mode == "lstm"

        def padded(input: Any, hx: Any, *arguments: Any) -> Any:
            out, states = _layers(mode.upper(), input, None, tuple(hx) if several else (hx,), arguments)
            return (out, *states)

        def packed(data: Any, batch_sizes: Any, hx: Any, *arguments: Any) -> Any:
            out, states = _layers(mode.upper(), data, batch_sizes, tuple(hx) if several else (hx,), arguments)
            return (out, *states)

        return padded, packed

    _padded, _packed = _recurrent(_mode)
    _hx, _results = (
        ("Tensor[] hx", "(Tensor, Tensor, Tensor)") if _mode == "lstm" else ("Tensor hx", "(Tensor, Tensor)")
    )
    _cell, _params, _shown = {
        "rnn_tanh": ("rnn_tanh_cell", "torch.tensor([[0.5]]), torch.tensor([[0.0]])", "[0.4621, 0.4621, 0.4621]"),
        "rnn_relu": ("rnn_relu_cell", "torch.tensor([[0.5]]), torch.tensor([[1.0]])", "[1.5000, 2.0000, 2.5000]"),
        "gru": ("gru_cell", "torch.zeros(3, 1), torch.zeros(3, 1)", "[0.5000, 0.2500, 0.1250]"),
        "lstm": ("lstm_cell", "torch.zeros(4, 1), torch.zeros(4, 1)", "[0.2311, 0.1225, 0.0622]"),
    }[_mode]
    _states, _given = ("two of (L, N, H)", "(hx, hx)") if _mode == "lstm" else ("(L, N, H)", "hx")
    composite(
        f"{_mode}.input(Tensor input, {_hx}, {_LAYER}, bool batch_first) -> {_results}",
        method=False,
        formula=f"h_t = {_cell}(x_t, h_(t-1)), layer by layer",
        doc=f"""Layers of {_cell} over sequences: the outputs of the last layer and the last states of all.

    params holds w_ih, w_hh and, with biases, b_ih and b_hh of each layer (and direction) in turn. dropout is the
    probability that an element between layers is dropped while training. Given batch_sizes, the sequences are packed:
    the elements of all at step 0, at step 1, ..., batch_sizes[t] of them. RuntimeError for another number of params.

    Shapes: input (T, N, I), or (N, T, I) when batch_first, or packed (sum of lengths, I); hx {_states} for L layers,
    twice as many when bidirectional; output (T, N, H), or (T, N, 2 H), and states of the shape of hx.

    >>> hx = torch.ones(1, 1, 1)
    >>> params = [{_params}]
    >>> out = torch.{_mode}(torch.ones(3, 1, 1), {_given}, params, False, 1, 0.0, False, False, False)
    >>> out[0].flatten()
    tensor({_shown})""",
    )(_padded)
    composite(
        f"{_mode}.data(Tensor data, Tensor batch_sizes, {_hx}, {_LAYER}) -> {_results}",
        method=False,
    )(_packed)
