"""Functions of the tensor namespace that take reductions by number and flags by position, against PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight

torch = pytest.importorskip("torch")

GENERATOR = np.random.default_rng(3)


def r(*shape):
    return GENERATOR.standard_normal(shape).astype(np.float32)


def signs(n):
    return np.where(GENERATOR.random(n) < 0.5, -1.0, 1.0).astype(np.float32)


def cell(gates, hidden=4, features=3):
    return [r(gates * hidden, features), r(gates * hidden, hidden), r(gates * hidden), r(gates * hidden)]


def layers(gates, count, directions, hidden=4, features=3, biases=True):
    found = []
    for layer in range(count):
        width = features if layer == 0 else hidden * directions
        for _ in range(directions):
            found += cell(gates, hidden, width)[: 4 if biases else 2]
    return found


PACKED = np.array([3, 2, 2, 1])
# name, arguments; arrays become tensors
CALLS = [
    *(("binary_cross_entropy_with_logits", [r(3, 4), abs(r(3, 4)) % 1, r(4), abs(r(4)), n]) for n in (0, 1, 2)),
    *(("cosine_embedding_loss", [r(5, 3), r(5, 3), signs(5), 0.2, n]) for n in (0, 1, 2)),
    *(("hinge_embedding_loss", [r(5), signs(5), 0.7, n]) for n in (0, 1, 2)),
    *(("kl_div", [r(4, 3), abs(r(4, 3)), n]) for n in (0, 1, 2)),
    *(("margin_ranking_loss", [r(5), r(5), signs(5), 0.3, n]) for n in (0, 1, 2)),
    *(("poisson_nll_loss", [abs(r(5)), abs(r(5)), flag, True, 1e-8, 1]) for flag in (True, False)),
    *(("triplet_margin_loss", [r(5, 3), r(5, 3), r(5, 3), 1.0, 2.0, 1e-6, swap, 2]) for swap in (True, False)),
    ("ctc_loss", [r(6, 2, 4), np.array([[1, 2], [3, 1]]), (6, 5), (2, 1), 0, 1]),
    ("ctc_loss", [r(6, 2, 4), np.array([[1, 2], [3, 1]]), np.array([6, 5]), np.array([2, 1]), 0, 0, True]),
    ("bilinear", [r(4, 3), r(4, 2), r(5, 3, 2), r(5)]),
    ("cosine_similarity", [r(4, 3), r(4, 3)]),
    ("pairwise_distance", [r(4, 3), r(4, 3), 1.0]),
    ("pdist", [r(5, 3), 2.0]),
    ("pixel_shuffle", [r(1, 8, 2, 3), 2]),
    ("pixel_unshuffle", [r(1, 2, 4, 6), 2]),
    ("channel_shuffle", [r(1, 6, 2, 2), 3]),
    ("native_channel_shuffle", [r(1, 6, 2, 2), 3]),
    ("constant_pad_nd", [r(2, 3), (1, 2, 0, -1), 7.0]),
    ("affine_grid_generator", [r(2, 2, 3), (2, 1, 3, 4), False]),
    ("grid_sampler", [r(1, 2, 4, 5), r(1, 3, 3, 2), 0, 1, True]),
    ("grid_sampler_2d", [r(1, 2, 4, 5), r(1, 3, 3, 2), 1, 0, False]),
    ("convolution", [r(1, 2, 7), r(4, 2, 3), r(4), (2,), (1,), (1,), False, (0,), 1]),
    ("convolution", [r(1, 2, 5, 5), r(4, 1, 3, 3), None, (1, 1), (1, 1), (2, 2), False, (0, 0), 2]),
    ("convolution", [r(1, 2, 5, 5), r(2, 3, 3, 3), r(3), (2, 2), (0, 0), (1, 1), True, (1, 1), 1]),
    ("conv_tbc", [r(6, 2, 3), r(3, 3, 4), r(4), 1]),
    ("instance_norm", [r(2, 3, 5), r(3), r(3), None, None, True, 0.1, 1e-5, False]),
    ("native_group_norm", [r(2, 4, 5), r(4), r(4), 2, 4, 5, 2, 1e-5]),
    ("norm_except_dim", [r(3, 4, 2), 2, 1]),
    ("norm_except_dim", [r(3, 4, 2), 2, -1]),
    ("alpha_dropout", [r(3, 4), 0.5, False]),
    ("feature_dropout", [r(2, 3, 4, 4), 0.5, False]),
    ("feature_alpha_dropout", [r(2, 3, 4, 4), 0.5, False]),
    ("native_dropout", [r(3, 4), 0.5, False]),
    ("rrelu", [r(3, 4)]),
    ("gru_cell", [r(2, 3), r(2, 4), *cell(3)]),
    ("rnn_tanh_cell", [r(2, 3), r(2, 4), *cell(1)]),
    ("rnn_relu_cell", [r(2, 3), r(2, 4), *cell(1)]),
    ("lstm_cell", [r(2, 3), [r(2, 4), r(2, 4)], *cell(4)]),
    ("rnn_tanh", [r(5, 2, 3), r(1, 2, 4), layers(1, 1, 1), True, 1, 0.0, False, False, False]),
    ("rnn_relu", [r(2, 5, 3), r(4, 2, 4), layers(1, 2, 2), True, 2, 0.0, False, True, True]),
    ("gru", [r(5, 2, 3), r(2, 2, 4), layers(3, 2, 1, biases=False), False, 2, 0.0, False, False, False]),
    ("gru", [r(8, 3), PACKED, r(2, 3, 4), layers(3, 1, 2), True, 1, 0.0, False, True]),
    ("lstm", [r(5, 2, 3), [r(2, 2, 4), r(2, 2, 4)], layers(4, 1, 2), True, 1, 0.0, False, True, False]),
    ("lstm", [r(8, 3), PACKED, [r(1, 3, 4), r(1, 3, 4)], layers(4, 1, 1), True, 1, 0.0, False, False]),
    ("detach", [r(3)]),
    ("add", [2, r(3)]),
    ("sub", [2.5, r(3)]),
    ("mul", [3, r(3)]),
    ("div", [1.0, r(3)]),
    ("floor_divide", [7.0, r(3)]),
]


def converted(package, value):
    if isinstance(value, np.ndarray):
        return package.tensor(value)
    if isinstance(value, list):
        return [converted(package, v) for v in value]
    return value


def flat(value):
    return [v for part in value for v in flat(part)] if isinstance(value, (tuple, list)) else [value]


@pytest.mark.parametrize("number", range(len(CALLS)), ids=lambda n: f"{CALLS[n][0]}-{n}")
@pytest.mark.filterwarnings("ignore")
def test_against_pytorch(number):
    name, arguments = CALLS[number]
    mine = flat(getattr(rushlight, name)(*(converted(rushlight, a) for a in arguments)))
    theirs = flat(getattr(torch, name)(*(converted(torch, a) for a in arguments)))
    assert len(mine) == len(theirs)
    for a, b in zip(mine, theirs, strict=True):
        assert tuple(a.shape) == tuple(b.shape)
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=2e-5, atol=2e-6)


def test_random_ones_draw_as_pytorch():
    for name in ("alpha_dropout", "feature_dropout", "feature_alpha_dropout", "rrelu"):
        x = r(2, 3, 4, 4)
        arguments = (0.1, 0.3, True) if name == "rrelu" else (0.5, True)
        rushlight.manual_seed(5)
        torch.manual_seed(5)
        mine = getattr(rushlight, name)(rushlight.tensor(x), *arguments)
        theirs = getattr(torch, name)(torch.tensor(x), *arguments)
        np.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=1e-5, atol=1e-6, err_msg=name)
        y = rushlight.tensor(x)
        rushlight.manual_seed(5)
        assert getattr(rushlight, name + "_")(y, *arguments) is y
        np.testing.assert_array_equal(y.numpy(), mine.numpy())


def test_gradients_pass_through():
    x = rushlight.randn(3, 4, requires_grad=True)
    rushlight.kl_div(x, rushlight.rand(3, 4), 2).backward()
    assert x.grad is not None and x.grad.shape == (3, 4)
    y = rushlight.randn(5, 2, 3, requires_grad=True)
    out, h = rushlight.gru(y, rushlight.zeros(1, 2, 4), [rushlight.randn(*s) for s in ((12, 3), (12, 4), (12,), (12,))],
                           True, 1, 0.0, True, False, False)  # fmt: skip
    (out.sum() + h.sum()).backward()
    assert y.grad.abs().sum() > 0


@pytest.mark.parametrize("reduction", [-1, 3])
def test_other_reductions_are_refused(reduction):
    with pytest.raises(ValueError, match="reduction"):
        rushlight.kl_div(rushlight.ones(2), rushlight.ones(2), reduction)


def test_wrong_number_of_weights():
    with pytest.raises(RuntimeError, match="params"):
        rushlight.gru(rushlight.ones(5, 2, 3), rushlight.zeros(1, 2, 4), [rushlight.ones(12, 3)] * 3,
                      True, 1, 0.0, True, False, False)  # fmt: skip


def test_losses_keep_every_element_unless_told_to_reduce():
    x, y = np.log(GENERATOR.random((3, 4)).astype(np.float32)), GENERATOR.random((3, 4)).astype(np.float32)
    calls = {
        "binary_cross_entropy_with_logits": lambda m: (m.from_numpy(x), m.from_numpy(y)),
        "kl_div": lambda m: (m.from_numpy(x), m.from_numpy(y)),
        "hinge_embedding_loss": lambda m: (m.from_numpy(x), m.sign(m.from_numpy(y) - 0.5)),
        "margin_ranking_loss": lambda m: (m.from_numpy(x), m.from_numpy(y), m.ones(3, 4)),
        "cosine_embedding_loss": lambda m: (m.from_numpy(x), m.from_numpy(y), m.tensor([1, -1, 1])),
        "triplet_margin_loss": lambda m: (m.from_numpy(x), m.from_numpy(y), m.from_numpy(y[::-1].copy())),
        "ctc_loss": lambda m: (
            m.from_numpy(x).reshape(3, 1, 4).log_softmax(2),
            m.tensor([[1]]),
            m.tensor([3]),
            m.tensor([1]),
        ),
    }
    for name, arguments in calls.items():
        theirs, ours = getattr(torch, name)(*arguments(torch)), getattr(rushlight, name)(*arguments(rushlight))
        assert ours.shape == tuple(theirs.shape) != (), name
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-5, atol=1e-6, err_msg=name)
