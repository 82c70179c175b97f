"""Initialisers: the same draws as PyTorch's, and their errors."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from twins import assert_same, needs, rl  # noqa: E402

CASES = [
    ("uniform_", (3, 4), (-0.3, 0.7)),
    ("normal_", (3, 4), (0.5, 2.0)),
    ("trunc_normal_", (30, 4), (0.1, 1.0, -0.5, 0.9)),
    ("trunc_normal_", (30, 4), (0.1, 1.0, 0.5, 0.7)),
    ("trunc_normal_", (30, 4), ()),
    ("constant_", (3, 4), (0.3,)),
    ("ones_", (3,), ()),
    ("zeros_", (3,), ()),
    ("eye_", (3, 5), ()),
    ("dirac_", (4, 3, 3), ()),
    ("dirac_", (4, 2, 3, 4), (2,)),
    ("dirac_", (4, 2, 3, 4, 2), ()),
    ("xavier_uniform_", (3, 4), ()),
    ("xavier_normal_", (3, 4, 2), (1.4,)),
    ("kaiming_uniform_", (3, 4), ()),
    ("kaiming_uniform_", (3, 4, 3, 3), (0.2, "fan_out", "leaky_relu")),
    ("kaiming_normal_", (3, 4), (0, "fan_in", "relu")),
    ("sparse_", (10, 4), (0.3,)),
]


@pytest.mark.parametrize(("name", "shape", "args"), CASES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_same_values(name, shape, args, dtype):
    torch.manual_seed(4)
    want = getattr(torch.nn.init, name)(torch.empty(shape, dtype=getattr(torch, dtype)), *args)
    rl.manual_seed(4)
    tensor = rl.empty(shape, dtype=getattr(rl, dtype)).requires_grad_()
    got = getattr(rl.nn.init, name)(tensor, *args)
    assert got is tensor
    assert tensor.is_leaf
    assert_same(got, want, exact=True)


def test_generator_argument():
    for name in ("uniform_", "normal_", "xavier_uniform_", "kaiming_normal_", "trunc_normal_"):
        a = getattr(rl.nn.init, name)(rl.empty(4, 5), generator=rl.Generator().manual_seed(3))
        b = getattr(rl.nn.init, name)(rl.empty(4, 5), generator=rl.Generator().manual_seed(3))
        assert a.tolist() == b.tolist()


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4), (3, 2, 2)])
def test_orthogonal(shape):
    needs("linalg.qr")
    torch.manual_seed(4)
    want = torch.nn.init.orthogonal_(torch.empty(shape, dtype=torch.float64), 1.5)
    rl.manual_seed(4)
    assert_same(rl.nn.init.orthogonal_(rl.empty(shape, dtype=rl.float64), 1.5), want, tolerance=1e-9)


def test_gains():
    for name in ("linear", "conv2d", "sigmoid", "tanh", "relu", "leaky_relu", "selu"):
        assert rl.nn.init.calculate_gain(name) == torch.nn.init.calculate_gain(name)
    assert rl.nn.init.calculate_gain("leaky_relu", 0.3) == torch.nn.init.calculate_gain("leaky_relu", 0.3)


@pytest.mark.parametrize(
    "call",
    [
        lambda t: t.nn.init.calculate_gain("sine"),
        lambda t: t.nn.init.calculate_gain("leaky_relu", "a"),
        lambda t: t.nn.init.eye_(t.empty(3)),
        lambda t: t.nn.init.dirac_(t.empty(3, 3)),
        lambda t: t.nn.init.dirac_(t.empty(3, 3, 3), 2),
        lambda t: t.nn.init.xavier_uniform_(t.empty(3)),
        lambda t: t.nn.init.kaiming_normal_(t.empty(3, 3), mode="fan"),
        lambda t: t.nn.init.orthogonal_(t.empty(3)),
        lambda t: t.nn.init.sparse_(t.empty(3), 0.1),
    ],
)
@pytest.mark.parametrize("side", [torch, rl], ids=["torch", "rushlight"])
def test_errors(call, side):
    with pytest.raises(ValueError):
        call(side)


def test_empty_tensor_warns():
    with pytest.warns(UserWarning, match="no elements"):
        rl.nn.init.kaiming_uniform_(rl.empty(0, 3))


def test_old_names_are_deprecated(rl):
    with pytest.warns(FutureWarning):
        rl.nn.init.uniform(rl.empty(2))
