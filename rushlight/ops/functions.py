"""Functions of the tensor namespace that are a functional under another signature.

PyTorch's library functions take a reduction as a number (0 none, 1 mean, 2 sum) and flags by position, where
nn.functional takes words and keywords.
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
    "int reduction=1) -> Tensor",
    method=False,
)
def _bce(self: Any, target: Any, weight: Any, pos_weight: Any, reduction: int) -> Any:
    """The cross entropy of probabilities given by their logits; reduction 0 none, 1 mean, 2 sum."""
    return _functional().binary_cross_entropy_with_logits(
        self, target, weight, reduction=_word(reduction), pos_weight=pos_weight
    )


@composite(
    "cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=1) -> Tensor",
    method=False,
)
def _cosine_embedding(input1: Any, input2: Any, target: Any, margin: float, reduction: int) -> Any:
    """1 - cosine for pairs with target 1, max(0, cosine - margin) for those with -1."""
    return _functional().cosine_embedding_loss(input1, input2, target, margin, reduction=_word(reduction))


@composite(
    "ctc_loss(Tensor log_probs, Tensor targets, Any input_lengths, Any target_lengths, int blank=0, "
    "int reduction=1, bool zero_infinity=False) -> Tensor",
    method=False,
)
def _ctc(log_probs: Any, targets: Any, inputs: Any, lengths: Any, blank: int, reduction: int, zero: bool) -> Any:
    """The connectionist temporal classification loss (Graves et al. 2006); reduction 0 none, 1 mean, 2 sum."""
    return _functional().ctc_loss(log_probs, targets, inputs, lengths, blank, _word(reduction), zero)


@composite(
    "hinge_embedding_loss(Tensor self, Tensor target, float margin=1.0, int reduction=1) -> Tensor", method=False
)
def _hinge(self: Any, target: Any, margin: float, reduction: int) -> Any:
    """self where the target is 1, max(0, margin - self) where it is -1."""
    return _functional().hinge_embedding_loss(self, target, margin, reduction=_word(reduction))


@composite("kl_div(Tensor self, Tensor target, int reduction=1, *, bool log_target=False) -> Tensor", method=False)
def _kl(self: Any, target: Any, reduction: int, log_target: bool) -> Any:
    """The Kullback-Leibler divergence of log-probabilities self from target; reduction 0 none, 1 mean, 2 sum."""
    found = _functional().kl_div(self, target, reduction="none", log_target=log_target)
    return {"none": lambda: found, "mean": found.mean, "sum": found.sum}[_word(reduction)]()


@composite(
    "margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=1) -> Tensor",
    method=False,
)
def _ranking(input1: Any, input2: Any, target: Any, margin: float, reduction: int) -> Any:
    """max(0, -target * (input1 - input2) + margin)."""
    return _functional().margin_ranking_loss(input1, input2, target, margin, reduction=_word(reduction))


@composite(
    "poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, int reduction) -> Tensor",
    method=False,
)
def _poisson(input: Any, target: Any, log_input: bool, full: bool, eps: float, reduction: int) -> Any:
    """The negative log likelihood of a Poisson distribution; reduction 0 none, 1 mean, 2 sum."""
    return _functional().poisson_nll_loss(input, target, log_input, full, eps=eps, reduction=_word(reduction))


@composite(
    "triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, float p=2.0, "
    "float eps=1e-06, bool swap=False, int reduction=1) -> Tensor",
    method=False,
)
def _triplet(
    anchor: Any, positive: Any, negative: Any, margin: float, p: float, eps: float, swap: bool, reduction: int
) -> Any:
    """max(0, |anchor - positive| - |anchor - negative| + margin); reduction 0 none, 1 mean, 2 sum."""
    return _functional().triplet_margin_loss(
        anchor, positive, negative, margin, p, eps, swap, reduction=_word(reduction)
    )


# ---------------------------------------------------------------- distances, arrangements


@composite("bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor", method=False)
def _bilinear(input1: Any, input2: Any, weight: Any, bias: Any) -> Any:
    """input1^T weight input2 + bias for every output feature."""
    return _functional().bilinear(input1, input2, weight, bias)


@composite("cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor", method=False)
def _cosine(x1: Any, x2: Any, dim: int, eps: float) -> Any:
    """The cosine of the angle between vectors along a dimension."""
    return _functional().cosine_similarity(x1, x2, dim, eps)


@composite("pixel_shuffle(Tensor self, int upscale_factor) -> Tensor", method=False)
def _pixel_shuffle(self: Any, factor: int) -> Any:
    """(*, C r^2, H, W) -> (*, C, H r, W r)."""
    return _functional().pixel_shuffle(self, factor)


@composite("pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor", method=False)
def _pixel_unshuffle(self: Any, factor: int) -> Any:
    """(*, C, H r, W r) -> (*, C r^2, H, W)."""
    return _functional().pixel_unshuffle(self, factor)


for _name in ("channel_shuffle", "native_channel_shuffle"):

    @composite(f"{_name}(Tensor self, int groups) -> Tensor", method=False)
    def _channel_shuffle(self: Any, groups: int) -> Any:
        """The channels (dimension 1) of `groups` groups interleaved."""
        return _functional().channel_shuffle(self, groups)


@composite("affine_grid_generator(Tensor theta, int[] size, bool align_corners) -> Tensor", method=False)
def _affine_grid(theta: Any, size: Any, align_corners: bool) -> Any:
    """The sampling points of an affine map (Jaderberg et al. 2015)."""
    return _functional().affine_grid(theta, list(size), align_corners)


# ---------------------------------------------------------------- convolutions, normalizations


@composite(
    "convolution(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, "
    "bool transposed, int[] output_padding, int groups) -> Tensor",
    method=False,
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
    """A convolution or transposed convolution over one to three spatial dimensions."""
    n = weight.dim() - 2
    if not 1 <= n <= 3:
        raise RuntimeError(f"convolution: weight; expected 3 to 5 dimensions, got shape {list(weight.shape)}")
    stride, padding, dilation = list(stride), list(padding), list(dilation)
    if transposed:
        function = getattr(_functional(), f"conv_transpose{n}d")
        return function(input, weight, bias, stride, padding, list(output_padding), groups, dilation)
    return getattr(_functional(), f"conv{n}d")(input, weight, bias, stride, padding, dilation, groups)


@composite("conv_tbc(Tensor self, Tensor weight, Tensor bias, int pad=0) -> Tensor", method=False)
def _conv_tbc(self: Any, weight: Any, bias: Any, pad: int) -> Any:
    """A convolution of (time, batch, channels) with (width, input channels, output channels)."""
    return _functional().conv_tbc(self, weight, bias, pad)


@composite(
    "instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, "
    "bool use_input_stats, float momentum, float eps, bool cudnn_enabled) -> Tensor",
    method=False,
)
def _instance_norm(
    input: Any, weight: Any, bias: Any, mean: Any, var: Any, use_input: bool, momentum: float, eps: float, cudnn: bool
) -> Any:
    """batch_norm with statistics per channel of every element of the batch (Ulyanov et al. 2016)."""
    return _functional().instance_norm(input, mean, var, weight, bias, use_input, momentum, eps)


@composite("norm_except_dim(Tensor v, int pow=2, int dim=0) -> Tensor", method=False)
def _norm_except_dim(v: Any, pow: int, dim: int) -> Any:
    """The norm over every dimension but one, which keeps its place; over all of them for dim=-1."""
    if dim == -1:
        return (v.abs() ** pow).sum() ** (1 / pow)
    others = [d for d in range(v.dim()) if d != dim]
    return (v.abs() ** pow).sum(others, True) ** (1 / pow) if others else v.abs()


# ---------------------------------------------------------------- random


@composite("native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)", method=False)
def _native_dropout(input: Any, p: float, train: bool | None) -> Any:
    """dropout, and the mask of what stayed."""
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
    _text = {
        "alpha_dropout": "Dropout that keeps mean and variance of what SELU gives (Klambauer et al. 2017).",
        "feature_dropout": "Dropout of whole channels.",
        "feature_alpha_dropout": "alpha_dropout of whole channels.",
    }[_name]
    composite(f"{_name}(Tensor input, float p, bool train) -> Tensor", method=False, random=True, doc=_text)(_plain)
    composite(
        f"{_name}_(Tensor self, float p, bool train) -> Tensor",
        method=False,
        random=True,
        writes_self=True,
        doc=_text + " In place.",
    )(_inplace)


def _drop(name: str, input: Any, p: float, train: bool, inplace: bool) -> Any:
    made = getattr(_functional(), name)(input, p, train)
    return input.copy_(made) if inplace else made


@composite(
    "rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, "
    "Generator? generator=None) -> Tensor",
    method=False,
    random=True,
)
def _rrelu(self: Any, lower: Any, upper: Any, training: bool, generator: Any) -> Any:
    """self where it is positive, self times a random slope from [lower, upper] elsewhere; their mean in evaluation."""
    return _leaky(self, lower, upper, training, generator)


@composite(
    "rrelu_(Tensor self, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, "
    "Generator? generator=None) -> Tensor",
    method=False,
    random=True,
    writes_self=True,
)
def _rrelu_(self: Any, lower: Any, upper: Any, training: bool, generator: Any) -> Any:
    """rrelu in place."""
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


@composite(f"lstm_cell(Tensor input, Tensor[] hx, {_CELL}) -> (Tensor, Tensor)", method=False)
def _lstm_cell(input: Any, hx: Any, *weights: Any) -> Any:
    """One step of an LSTM: input (N, I) and states (N, H) -> new states."""
    return _functional().lstm_cell(input, hx, *weights)


@composite(f"gru_cell(Tensor input, Tensor hx, {_CELL}) -> Tensor", method=False)
def _gru_cell(input: Any, hx: Any, *weights: Any) -> Any:
    """One step of a GRU: input (N, I) and state (N, H) -> new state."""
    return _functional().gru_cell(input, hx, *weights)


@composite(f"rnn_tanh_cell(Tensor input, Tensor hx, {_CELL}) -> Tensor", method=False)
def _rnn_tanh_cell(input: Any, hx: Any, *weights: Any) -> Any:
    """tanh(w_ih x + b_ih + w_hh h + b_hh)."""
    return _functional().rnn_tanh_cell(input, hx, *weights)


@composite(f"rnn_relu_cell(Tensor input, Tensor hx, {_CELL}) -> Tensor", method=False)
def _rnn_relu_cell(input: Any, hx: Any, *weights: Any) -> Any:
    """relu(w_ih x + b_ih + w_hh h + b_hh)."""
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
    composite(
        f"{_mode}.input(Tensor input, {_hx}, {_LAYER}, bool batch_first) -> {_results}",
        method=False,
        doc="Layers of recurrent cells over (time, batch, features); the outputs and the last states.",
    )(_padded)
    composite(
        f"{_mode}.data(Tensor data, Tensor batch_sizes, {_hx}, {_LAYER}) -> {_results}",
        method=False,
        doc="The same over a packed sequence.",
    )(_packed)
