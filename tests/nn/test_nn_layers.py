"""Every layer beside PyTorch's: initial values, repr, outputs, buffers and gradients."""

from __future__ import annotations

import warnings

import pytest

torch = pytest.importorskip("torch")

from twins import assert_same, gradients, rl, tensors, to_rushlight  # noqa: E402

GEN = torch.Generator().manual_seed(7)


def x(*shape, low=-2.0, high=2.0):
    return lambda dtype: (torch.rand(shape, generator=GEN, dtype=dtype) * (high - low) + low).requires_grad_()


def ints(high, *shape, dtype=torch.int64):
    return lambda _: torch.randint(0, high, shape, generator=GEN, dtype=dtype)


def signs(*shape):
    return lambda dtype: torch.randint(0, 2, shape, generator=GEN).to(dtype) * 2 - 1


def fixed(value):
    return lambda dtype: value


OFFSETS = fixed(torch.tensor([0, 4, 9]))

# (class, constructor arguments, keyword arguments, makers of the inputs)
CASES = [
    ("Identity", (), {}, [x(3)]),
    ("Linear", (3, 4), {}, [x(5, 3)]),
    ("Linear", (3, 4), {"bias": False}, [x(2, 5, 3)]),
    ("Bilinear", (3, 4, 2), {}, [x(5, 3), x(5, 4)]),
    ("LazyLinear", (4,), {}, [x(5, 3)]),
    *[
        (f"Conv{n}d", (4, 6, 3), kw, [x(2, 4, *[7] * n)])
        for n in (1, 2, 3)
        for kw in (
            {},
            {"stride": 2, "padding": 1, "dilation": 2, "groups": 2},
            {"padding": "same", "bias": False},
            {"padding": 2, "padding_mode": "reflect"},
            {"padding": 2, "padding_mode": "replicate"},
            {"padding": "same", "padding_mode": "circular"},
        )
    ],
    ("Conv2d", (4, 6, (3, 2)), {"stride": (2, 1)}, [x(4, 7, 5)]),
    *[
        (f"ConvTranspose{n}d", (4, 6, 3), kw, [x(2, 4, *[4] * n)])
        for n in (1, 2, 3)
        for kw in ({}, {"stride": 2, "padding": 1, "output_padding": 1, "groups": 2, "dilation": 2})
    ],
    ("ConvTranspose2d", (4, 6, 3), {"stride": 2}, [x(2, 4, 4, 4), fixed([10, 9])]),
    *[(f"LazyConv{n}d", (6, 3), {}, [x(2, 4, *[5] * n)]) for n in (1, 2, 3)],
    *[(f"LazyConvTranspose{n}d", (6, 3), {}, [x(2, 4, *[5] * n)]) for n in (1, 2, 3)],
    *[
        (f"{lazy}BatchNorm{n}d", () if lazy else (4,), kw, [x(3, 4, *[3] * n)])
        for lazy in ("", "Lazy")
        for n in (1, 2, 3)
        for kw in ({}, {"momentum": None, "affine": False}, {"track_running_stats": False}, {"bias": False})
    ],
    ("BatchNorm1d", (4,), {"eps": 0.1, "momentum": 0.3}, [x(5, 4)]),
    *[
        (f"{lazy}InstanceNorm{n}d", () if lazy else (4,), kw, [x(3, 4, *[3] * n)])
        for lazy in ("", "Lazy")
        for n in (1, 2, 3)
        for kw in ({}, {"affine": True, "track_running_stats": True})
    ],
    ("InstanceNorm1d", (4,), {}, [x(4, 3)]),
    ("LayerNorm", (4,), {}, [x(3, 4)]),
    ("LayerNorm", ((3, 4),), {"bias": False}, [x(2, 3, 4)]),
    ("LayerNorm", (4,), {"elementwise_affine": False}, [x(3, 4)]),
    ("GroupNorm", (2, 4), {}, [x(3, 4, 5)]),
    ("GroupNorm", (4, 4), {"affine": False}, [x(3, 4, 5, 2)]),
    ("RMSNorm", (4,), {}, [x(3, 4)]),
    ("RMSNorm", ((3, 4),), {"eps": 0.1, "elementwise_affine": False}, [x(2, 3, 4)]),
    ("LocalResponseNorm", (3,), {"alpha": 0.1}, [x(2, 5, 4)]),
    ("LocalResponseNorm", (2,), {"k": 2.0}, [x(2, 5, 4, 3)]),
    ("Dropout", (0.4,), {}, [x(5, 6)]),
    ("Dropout", (), {"p": 1.0}, [x(5, 6)]),
    ("Dropout", (), {"inplace": True, "p": 0.0}, [x(5, 6)]),
    ("Dropout1d", (0.4,), {}, [x(3, 4, 5)]),
    ("Dropout2d", (0.4,), {}, [x(3, 4, 5, 2)]),
    ("Dropout3d", (0.4,), {}, [x(3, 4, 5, 2, 2)]),
    ("AlphaDropout", (0.4,), {}, [x(5, 6)]),
    ("FeatureAlphaDropout", (0.4,), {}, [x(5, 6, 3)]),
    *[
        (name, (), {}, [x(3, 4)])
        for name in (
            "ReLU", "ReLU6", "Sigmoid", "Tanh", "SiLU", "Mish", "Hardswish", "Hardsigmoid", "Hardtanh", "ELU", "CELU",
            "SELU", "GLU", "GELU", "Hardshrink", "Softshrink", "LeakyReLU", "LogSigmoid", "Softplus", "Softsign",
            "Tanhshrink", "PReLU", "RReLU",
        )
    ],
    ("Threshold", (0.1, 5.0), {}, [x(3, 4)]),
    ("GELU", ("tanh",), {}, [x(3, 4)]),
    ("ELU", (0.5,), {}, [x(3, 4)]),
    ("CELU", (2.0,), {}, [x(3, 4)]),
    ("Hardtanh", (-0.5, 0.7), {}, [x(3, 4)]),
    ("LeakyReLU", (0.3,), {}, [x(3, 4)]),
    ("Softplus", (2.0, 1.0), {}, [x(3, 4)]),
    ("PReLU", (4,), {}, [x(3, 4, 2)]),
    ("GLU", (0,), {}, [x(4, 3)]),
    ("Softmax", (1,), {}, [x(3, 4)]),
    ("Softmin", (0,), {}, [x(3, 4)]),
    ("LogSoftmax", (-1,), {}, [x(3, 4)]),
    ("Softmax2d", (), {}, [x(2, 3, 4, 5)]),
    *[
        (f"MaxPool{n}d", (3,), kw, [x(2, 3, *[9] * n)])
        for n in (1, 2, 3)
        for kw in (
            {},
            {"stride": 2, "padding": 1, "ceil_mode": True},
            {"dilation": 2, "stride": 1, "return_indices": True},
        )
    ],
    *[
        (f"AvgPool{n}d", (3,), kw, [x(2, 3, *[8] * n)])
        for n in (1, 2, 3)
        for kw in ({}, {"stride": 2, "padding": 1, "ceil_mode": True, "count_include_pad": False})
    ],
    ("AvgPool2d", (2,), {"divisor_override": 3}, [x(3, 8, 8)]),
    *[(f"AdaptiveAvgPool{n}d", (3,), {}, [x(2, 3, *[7] * n)]) for n in (1, 2, 3)],
    *[(f"AdaptiveMaxPool{n}d", (3,), {"return_indices": True}, [x(2, 3, *[7] * n)]) for n in (1, 2, 3)],
    ("AdaptiveAvgPool2d", ((None, 2),), {}, [x(3, 7, 5)]),
    *[(f"LPPool{n}d", (2, 3), {"stride": 2}, [x(2, 3, *[8] * n, low=0.1)]) for n in (1, 2, 3)],
    ("FractionalMaxPool2d", (2,), {"output_size": (3, 4), "return_indices": True}, [x(2, 3, 8, 9)]),
    ("FractionalMaxPool3d", (2,), {"output_ratio": 0.5}, [x(2, 3, 8, 8, 8)]),
    *[(f"MaxUnpool{n}d", (2,), {}, [x(2, 3, *[3] * n), ints(6**n, 2, 3, *[3] * n)]) for n in (1, 2, 3)],
    *[
        (f"{kind}Pad{n}d", (tuple(range(2 * n)), *more), {}, [x(2, 3, *[7] * n)])
        for kind, more in [("Constant", (1.5,)), *((k, ()) for k in ("Zero", "Reflection", "Replication", "Circular"))]
        for n in (1, 2, 3)
    ],
    ("ConstantPad2d", (-1, 0.0), {}, [x(3, 5, 6)]),
    ("Flatten", (), {}, [x(2, 3, 4)]),
    ("Flatten", (0, 1), {}, [x(2, 3, 4)]),
    ("Unflatten", (1, (2, 3)), {}, [x(2, 6, 4)]),
    ("Embedding", (7, 3), {}, [ints(7, 4, 5)]),
    ("Embedding", (7, 3), {"padding_idx": -2}, [ints(7, 4, 5)]),
    ("Embedding", (7, 3), {"max_norm": 0.5, "norm_type": 1.0}, [ints(7, 4)]),
    ("Embedding", (7, 3), {"scale_grad_by_freq": True}, [ints(7, 40)]),
    ("EmbeddingBag", (7, 3), {}, [ints(7, 4, 5)]),
    ("EmbeddingBag", (7, 3), {"mode": "sum", "padding_idx": 2}, [ints(7, 9), fixed(torch.tensor([0, 4, 4]))]),
    ("EmbeddingBag", (7, 3), {"mode": "max"}, [ints(7, 9), fixed(torch.tensor([0, 4, 6]))]),
    ("EmbeddingBag", (7, 3), {"mode": "sum", "include_last_offset": True}, [ints(7, 9), OFFSETS]),
    ("EmbeddingBag", (7, 3), {"mode": "sum"}, [ints(7, 2, 5), fixed(None), x(2, 5)]),
    *[(f"{kind}Cell", (3, 4), kw, [x(5, 3)]) for kind in ("RNN", "GRU", "LSTM") for kw in ({}, {"bias": False})],
    ("RNNCell", (3, 4), {"nonlinearity": "relu"}, [x(3), x(4)]),
    ("GRUCell", (3, 4), {}, [x(5, 3), x(5, 4)]),
    ("LSTMCell", (3, 4), {}, [x(5, 3), lambda d: (x(5, 4)(d), x(5, 4)(d))]),
    *[
        (kind, (3, 4), kw, [x(6, 2, 3)])
        for kind in ("RNN", "GRU", "LSTM")
        for kw in ({}, {"num_layers": 2, "bidirectional": True}, {"batch_first": True, "bias": False})
    ],
    ("LSTM", (3, 5), {"proj_size": 2, "num_layers": 2, "bidirectional": True}, [x(6, 2, 3)]),
    ("RNN", (3, 4), {"nonlinearity": "relu"}, [x(6, 3), x(1, 4)]),
    ("MultiheadAttention", (8, 2), {}, [x(5, 3, 8), x(6, 3, 8), x(6, 3, 8)]),
    (
        "MultiheadAttention",
        (8, 2),
        {"kdim": 4, "vdim": 6, "add_bias_kv": True, "add_zero_attn": True, "batch_first": True},
        [x(3, 5, 8), x(3, 6, 4), x(3, 6, 6)],
    ),
    ("TransformerEncoderLayer", (8, 2, 16), {"dropout": 0.0}, [x(5, 3, 8)]),
    ("TransformerEncoderLayer", (8, 2, 16), {"dropout": 0.0, "norm_first": True, "activation": "gelu"}, [x(5, 3, 8)]),
    ("TransformerDecoderLayer", (8, 2, 16), {"dropout": 0.0}, [x(5, 3, 8), x(6, 3, 8)]),
    ("Transformer", (8, 2, 1, 1, 16), {"dropout": 0.0}, [x(5, 3, 8), x(6, 3, 8)]),
    ("L1Loss", (), {}, [x(3, 4), x(3, 4)]),
    ("MSELoss", (), {"reduction": "sum"}, [x(3, 4), x(3, 4)]),
    ("SmoothL1Loss", (), {"beta": 0.5}, [x(3, 4), x(3, 4)]),
    ("HuberLoss", (), {"delta": 0.5, "reduction": "none"}, [x(3, 4), x(3, 4)]),
    ("NLLLoss", (), {"weight": torch.tensor([1.0, 2.0, 0.5, 3.0])}, [x(5, 4), ints(4, 5)]),
    ("NLLLoss2d", (), {}, [x(2, 4, 3, 3), ints(4, 2, 3, 3)]),
    ("CrossEntropyLoss", (), {}, [x(5, 4), ints(4, 5)]),
    ("CrossEntropyLoss", (), {"label_smoothing": 0.2, "ignore_index": 2}, [x(5, 4, 3), ints(4, 5, 3)]),
    ("CrossEntropyLoss", (), {"weight": torch.tensor([1.0, 2.0, 0.5, 3.0])}, [x(5, 4), x(5, 4, low=0.0, high=1.0)]),
    ("BCELoss", (), {}, [x(3, 4, low=0.01, high=0.99), x(3, 4, low=0.0, high=1.0)]),
    ("BCEWithLogitsLoss", (), {"pos_weight": torch.tensor([1.0, 2.0, 0.5, 3.0])}, [x(5, 4), x(5, 4, low=0.0)]),
    ("KLDivLoss", (), {"reduction": "batchmean"}, [x(3, 4), x(3, 4, low=0.1)]),
    ("KLDivLoss", (), {"reduction": "sum", "log_target": True}, [x(3, 4), x(3, 4)]),
    ("PoissonNLLLoss", (), {"full": True}, [x(3, 4), x(3, 4, low=0.1, high=4.0)]),
    ("GaussianNLLLoss", (), {"full": True}, [x(3, 4), x(3, 4), x(3, 4, low=0.1)]),
    ("HingeEmbeddingLoss", (), {}, [x(3, 4), signs(3, 4)]),
    ("MarginRankingLoss", (), {"margin": 0.3}, [x(5), x(5), signs(5)]),
    ("CosineEmbeddingLoss", (), {"margin": 0.2}, [x(5, 3), x(5, 3), signs(5)]),
    ("SoftMarginLoss", (), {}, [x(3, 4), signs(3, 4)]),
    ("MultiMarginLoss", (), {"p": 2}, [x(5, 4), ints(4, 5)]),
    ("MultiLabelMarginLoss", (), {}, [x(2, 4), fixed(torch.tensor([[3, 0, -1, 1], [1, -1, 0, 0]]))]),
    ("MultiLabelSoftMarginLoss", (), {}, [x(3, 4), x(3, 4, low=0.0, high=1.0)]),
    ("TripletMarginLoss", (), {"swap": True}, [x(5, 3), x(5, 3), x(5, 3)]),
    ("TripletMarginWithDistanceLoss", (), {}, [x(5, 3), x(5, 3), x(5, 3)]),
    ("CTCLoss", (), {}, [x(9, 2, 5), lambda d: ints(4, 2, 3)(d) + 1, fixed((9, 8)), fixed((3, 2))]),
    ("LinearCrossEntropyLoss", (3, 4), {"bias": True}, [x(5, 3), ints(4, 5)]),
    ("AdaptiveLogSoftmaxWithLoss", (8, 10, [3, 6]), {"div_value": 2.0}, [x(6, 8), ints(10, 6)]),
    ("CosineSimilarity", (), {}, [x(3, 4), x(3, 4)]),
    ("PairwiseDistance", (), {"p": 3.0, "keepdim": True}, [x(3, 4), x(3, 4)]),
    ("PixelShuffle", (2,), {}, [x(2, 8, 3, 4)]),
    ("PixelUnshuffle", (2,), {}, [x(2, 2, 6, 4)]),
    ("ChannelShuffle", (3,), {}, [x(2, 6, 3, 4)]),
    ("Fold", ((6, 5), 2), {"stride": 2, "padding": 1}, [x(2, 12, 12)]),
    ("Unfold", (2,), {"stride": 2, "padding": 1, "dilation": 2}, [x(2, 3, 6, 5)]),
    ("Upsample", (), {"scale_factor": 2.5}, [x(2, 3, 4)]),
    ("Upsample", (), {"size": (7, 3), "mode": "bilinear"}, [x(2, 3, 4, 5)]),
    ("Upsample", (), {"scale_factor": 1.7, "mode": "bicubic", "align_corners": True}, [x(2, 3, 4, 5)]),
    ("Upsample", (), {"size": (3, 5, 2), "mode": "trilinear", "align_corners": True}, [x(2, 3, 4, 5, 3)]),
    ("Upsample", (), {"scale_factor": 2, "mode": "linear"}, [x(2, 3, 5)]),
    ("UpsamplingNearest2d", (), {"scale_factor": 2}, [x(2, 3, 4, 5)]),
    ("UpsamplingBilinear2d", (), {"size": 7}, [x(2, 3, 4, 5)]),
]  # fmt: skip

NOT_LAYERS = {
    "Buffer", "Container", "CrossMapLRN2d", "LinearCrossEntropyOptions", "Module", "ModuleDict", "ModuleList",
    "Parameter", "ParameterDict",
    "ParameterList", "RNNBase", "RNNCellBase", "Sequential", "TransformerDecoder", "TransformerEncoder",
    "UninitializedBuffer", "UninitializedParameter",
}  # fmt: skip


def test_every_layer_has_a_case():
    missing = set(rl.nn.__all__) - {name for name, *_ in CASES} - NOT_LAYERS
    assert not missing


def label(case):
    return f"{case[0]}-{case[1]}-{case[2]}" if len(str(case[2])) < 80 else f"{case[0]}-{case[1]}"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("case", CASES, ids=label)
def test_layer(case, dtype):
    name, args, kwargs, makers = case
    if name in ("LSTM", "GRU", "RNN") and dtype == torch.float32 and kwargs.get("proj_size"):
        pytest.skip("PyTorch takes another path for float32 projections")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(11)
        want_module = getattr(torch.nn, name)(*args, **kwargs)
        rl.manual_seed(11)
        got_module = getattr(rl.nn, name)(*to_rushlight(args), **to_rushlight(kwargs))
        lazy = name.startswith("Lazy")
        if not lazy:
            assert_same(dict(got_module.state_dict()), dict(want_module.state_dict()), "initial values", exact=True)
            assert repr(got_module) == repr(want_module)
        want_module.to(dtype)
        got_module.to(to_rushlight(dtype))
        for training in (True, False):
            want_module.train(training)
            got_module.train(training)
            inputs = [make(dtype) for make in makers]
            if name == "CTCLoss":
                inputs[0] = inputs[0].detach().log_softmax(2).requires_grad_()
            mine = to_rushlight(inputs)
            torch.manual_seed(3)
            want = want_module(*inputs)
            rl.manual_seed(3)
            got = got_module(*mine)
            if lazy and training:
                assert type(got_module).__name__ == type(want_module).__name__ == name[4:]
                assert repr(got_module) == repr(want_module)
            assert_same(got, want, f"output, training={training}")
            assert_same(dict(got_module.state_dict()), dict(want_module.state_dict()), "state after forward")
            leaves = [t for t in tensors(inputs, torch.Tensor) if t.requires_grad] + list(want_module.parameters())
            own = [t for t in tensors(mine, rl.Tensor) if t.requires_grad] + list(got_module.parameters())
            if leaves:
                assert_same(
                    [g for g in gradients(got, own, rl, rl.Tensor) if g is not None],
                    [g for g in gradients(want, leaves, torch, torch.Tensor) if g is not None],
                    f"gradients, training={training}",
                    tolerance=2e-4 if dtype == torch.float32 else 1e-8,
                )


@pytest.mark.parametrize("name", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("enforce_sorted", [False, True])
def test_packed_sequences(name, bidirectional, enforce_sorted):
    lengths = [5, 3, 1] if enforce_sorted else [3, 5, 1]
    kwargs = {"num_layers": 2, "bidirectional": bidirectional}
    torch.manual_seed(1)
    want_module = getattr(torch.nn, name)(4, 3, **kwargs).double()
    got_module = getattr(rl.nn, name)(4, 3, **kwargs).double()
    got_module.load_state_dict(to_rushlight(dict(want_module.state_dict())))
    padded = torch.rand(5, 3, 4, dtype=torch.float64)
    pack = torch.nn.utils.rnn.pack_padded_sequence
    want, want_state = want_module(pack(padded, lengths, enforce_sorted=enforce_sorted))
    got, got_state = got_module(
        rl.nn.utils.rnn.pack_padded_sequence(to_rushlight(padded), lengths, enforce_sorted=enforce_sorted)
    )
    assert_same(tuple(got), tuple(want))
    assert_same(got_state, want_state)
    assert_same(
        rl.nn.utils.rnn.pad_packed_sequence(got, total_length=7),
        torch.nn.utils.rnn.pad_packed_sequence(want, total_length=7),
    )


def test_attention_masks():
    torch.manual_seed(0)
    want_module = torch.nn.MultiheadAttention(8, 2).double()
    got_module = rl.nn.MultiheadAttention(8, 2).double()
    got_module.load_state_dict(to_rushlight(dict(want_module.state_dict())))
    q = torch.rand(4, 3, 8, dtype=torch.float64)
    causal = torch.nn.Transformer.generate_square_subsequent_mask(4, dtype=torch.float64)
    padding = torch.tensor([[False, False, True, True]] * 3)
    for kwargs in (
        {"attn_mask": causal},
        {"attn_mask": causal == 0, "need_weights": False},
        {"key_padding_mask": padding},
        {"attn_mask": causal, "need_weights": False, "is_causal": True},
        {"attn_mask": causal, "average_attn_weights": False},
    ):
        if kwargs.get("attn_mask") is not None and kwargs["attn_mask"].dtype == torch.bool:
            kwargs["attn_mask"] = ~kwargs["attn_mask"]
        want = want_module(q, q, q, **kwargs)
        mine = to_rushlight(q)  # one object, as on the other side
        got = got_module(mine, mine, mine, **to_rushlight(kwargs))
        assert_same(got, want)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("boolean", [True, False])
def test_fully_masked_queries_give_zero(training, need_weights, boolean):
    m = rl.nn.MultiheadAttention(4, 2, bias=False).train(training)
    q = rl.ones(2, 1, 4, requires_grad=True)
    mask = rl.tensor([[True, True], [False, False]])
    if not boolean:
        mask = rl.zeros(2, 2).masked_fill(mask, float("-inf"))
    out, _ = m(q, q, q, attn_mask=mask, need_weights=need_weights)
    assert out[0].tolist() == [[0.0] * 4]
    assert bool(out.isfinite().all())
    (g,) = rl.autograd.grad(out.sum(), q)
    assert bool(g.isfinite().all())


def test_encoder_stack():
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0)
    want_module = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).double()
    got_module = rl.nn.TransformerEncoder(rl.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0), 2).double()
    got_module.load_state_dict(to_rushlight(dict(want_module.state_dict())))
    src = torch.rand(5, 3, 8, dtype=torch.float64)
    mask = torch.nn.Transformer.generate_square_subsequent_mask(5, dtype=torch.float64)
    padding = torch.zeros(3, 5, dtype=torch.float64)
    padding[1, 3:] = float("-inf")
    assert_same(got_module(*to_rushlight((src, mask, padding))), want_module(src, mask, padding))


def test_cross_map_normalisation_is_the_local_one():
    # PyTorch's keeps one channel too many in the window of a middle channel
    data = rl.rand(2, 7, 3, 4, dtype=rl.float64)
    a = rl.nn.CrossMapLRN2d(5, alpha=0.3, k=2.0)(data)
    b = rl.nn.LocalResponseNorm(5, alpha=0.3, k=2.0)(data)
    assert bool((a - b).abs().max() < 1e-12)


BAD = [
    ("Linear", (3, 4), {}, lambda t: [t.ones(2, 5)], RuntimeError),
    ("Conv2d", (3, 4, 3), {"groups": 2}, None, ValueError),
    ("Conv2d", (4, 6, 3), {"padding": "half"}, None, ValueError),
    ("Conv2d", (4, 6, 3), {"padding": "same", "stride": 2}, None, ValueError),
    ("Conv2d", (4, 6, 3), {"padding_mode": "mirror"}, None, ValueError),
    ("ConvTranspose2d", (4, 6, 3), {"padding_mode": "reflect"}, None, ValueError),
    ("ConvTranspose2d", (4, 6, 3), {}, lambda t: [t.ones(1, 4, 3, 3), [99, 9]], ValueError),
    ("BatchNorm2d", (4,), {}, lambda t: [t.ones(2, 4)], ValueError),
    ("BatchNorm1d", (4,), {}, lambda t: [t.ones(1, 4)], ValueError),
    ("InstanceNorm1d", (4,), {"affine": True}, lambda t: [t.ones(2, 3, 5)], ValueError),
    ("GroupNorm", (3, 4), {}, None, ValueError),
    ("LayerNorm", (4,), {}, lambda t: [t.ones(2, 3)], RuntimeError),
    ("Dropout", (1.5,), {}, None, ValueError),
    ("Embedding", (3, 2), {"padding_idx": 5}, None, AssertionError),
    ("Embedding", (3, 2), {}, lambda t: [t.tensor([5])], IndexError),
    ("Embedding", (3, 2), {}, lambda t: [t.tensor([-1])], IndexError),
    ("Embedding", (3, 2), {}, lambda t: [t.tensor([0.5])], RuntimeError),
    ("EmbeddingBag", (3, 2), {"mode": "median"}, lambda t: [t.tensor([[1]])], ValueError),
    ("CrossEntropyLoss", (), {}, lambda t: [t.ones(2, 3), t.tensor([0, 3])], IndexError),
    ("CrossEntropyLoss", (), {}, lambda t: [t.ones(2, 3), t.tensor([0, 1, 2])], ValueError),
    ("CrossEntropyLoss", (), {}, lambda t: [t.ones(2, 3), t.tensor([0.0, 1.0])], RuntimeError),
    ("CrossEntropyLoss", (), {"label_smoothing": 2.0}, lambda t: [t.ones(2, 3), t.tensor([0, 1])], RuntimeError),
    ("CrossEntropyLoss", (), {"reduction": "all"}, lambda t: [t.ones(2, 3), t.tensor([0, 1])], ValueError),
    ("NLLLoss", (), {}, lambda t: [t.ones(2, 3, 4), t.tensor([[0, 1], [0, 1]])], RuntimeError),
    ("BCELoss", (), {}, lambda t: [t.ones(2), t.ones(3)], ValueError),
    ("BCELoss", (), {}, lambda t: [t.ones(2) * 2, t.ones(2)], RuntimeError),
    ("BCEWithLogitsLoss", (), {}, lambda t: [t.ones(2), t.ones(2, 1)], ValueError),
    ("MultiMarginLoss", (), {"p": 3}, None, ValueError),
    ("TripletMarginLoss", (), {"margin": -1.0}, None, ValueError),
    ("LSTM", (3, 4), {"num_layers": 0}, None, ValueError),
    ("LSTM", (3, 4), {"proj_size": 4}, None, ValueError),
    ("GRU", (3, 4), {"proj_size": 2}, None, ValueError),
    ("RNN", (3, 4), {"nonlinearity": "sin"}, None, ValueError),
    ("LSTM", (3, 4), {}, lambda t: [t.ones(2, 2, 5)], RuntimeError),
    ("LSTM", (3, 4), {}, lambda t: [t.ones(2, 2, 3), (t.ones(2, 2, 4), t.ones(1, 2, 4))], RuntimeError),
    ("LSTMCell", (3, 4), {}, lambda t: [t.ones(2, 2, 3)], ValueError),
    ("GRUCell", (3, 4), {}, lambda t: [t.ones(2, 5)], RuntimeError),
    ("MultiheadAttention", (5, 2), {}, None, AssertionError),
    ("MultiheadAttention", (0, 2), {}, None, ValueError),
    ("AdaptiveLogSoftmaxWithLoss", (8, 10, [6, 3]), {}, None, ValueError),
    ("Softmax2d", (), {}, lambda t: [t.ones(2)], ValueError),
    ("CircularPad1d", (1,), {}, lambda t: [t.ones(2)], ValueError),
    ("ReflectionPad1d", (9,), {}, lambda t: [t.ones(1, 2, 3)], RuntimeError),
    ("MaxUnpool2d", (2,), {}, lambda t: [t.ones(1, 1, 2, 2), t.full((1, 1, 2, 2), 99)], RuntimeError),
    ("FractionalMaxPool2d", (2,), {}, None, ValueError),
    ("Unflatten", (1, 3), {}, None, TypeError),
    ("Hardtanh", (1.0, 0.0), {}, None, AssertionError),
    ("Bilinear", (0, 3, 2), {}, None, ValueError),
    ("Upsample", (), {"scale_factor": 2, "mode": "bilinear"}, lambda t: [t.ones(1, 1, 4)], NotImplementedError),
    ("Upsample", (), {"mode": "nearest"}, lambda t: [t.ones(1, 1, 4)], ValueError),
    ("PixelShuffle", (2,), {}, lambda t: [t.ones(1, 3, 4, 4)], RuntimeError),
    ("Fold", ((4, 5), 2), {}, lambda t: [t.ones(1, 3, 12)], RuntimeError),
]


@pytest.mark.parametrize("case", BAD, ids=lambda c: f"{c[0]}-{c[1]}-{c[2]}")
@pytest.mark.parametrize("side", ["rushlight", "torch"])
@pytest.mark.filterwarnings("ignore")
def test_bad_input(case, side):
    name, args, kwargs, inputs, error = case
    lib = torch if side == "torch" else rl

    def run():
        module = getattr(lib.nn, name)(*args, **kwargs)
        if inputs is not None:
            module(*inputs(lib))

    with pytest.raises(error):
        run()
