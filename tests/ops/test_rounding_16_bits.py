"""float16 and bfloat16: where PyTorch rounds numbers, operands of other dtypes and the steps of an operation."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
import rushlight as rl  # noqa: E402

DTYPES = ["float16", "bfloat16"]


def both(dtype, n=3000, scale=5.0, seed=0):
    x = (torch.randn(n, generator=torch.Generator().manual_seed(seed)) * scale).to(getattr(torch, dtype))
    return x, rl.from_dlpack(x)


def differ(ours, theirs):
    assert str(ours.dtype).split(".")[1] == str(theirs.dtype).split(".")[1]
    a, b = torch.from_numpy(ours.float().numpy()), theirs.float()
    return int((~((a == b) | (a.isnan() & b.isnan()))).sum())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode", ["trunc", "floor"])
def test_rounded_quotients(dtype, mode):
    (a, ra), (b, rb) = both(dtype), both(dtype, seed=1, scale=1.0)
    b[::50] = 0
    for (x, rx), (y, ry) in [((a, ra), (b, rb)), ((a, ra), (b[1], rb[1])), ((a[0], ra[0]), (b, rb))]:
        ours = rl.div(rx, ry, rounding_mode=mode)
        assert differ(ours, torch.div(x, y, rounding_mode=mode)) == 0
    assert differ(rl.div(ra, 2.3, rounding_mode=mode), torch.div(a, 2.3, rounding_mode=mode)) == 0
    strided = rl.div(ra[::3], rb[::3], rounding_mode=mode)
    assert differ(strided, torch.div(a[::3], b[::3], rounding_mode=mode)) == 0
    x = ra.clone().requires_grad_()
    rl.div(x, rb, rounding_mode=mode).sum().backward()
    assert not x.grad.any()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "name", ["add", "sub", "mul", "div", "rsub", "pow", "fmod", "remainder", "eq", "lt", "ge", "floor_divide"]
)
def test_numbers_are_rounded_as_in_pytorch(dtype, name):
    x, rx = both(dtype)
    x[0] = 2.3
    assert differ(getattr(rl, name)(rx, 2.3), getattr(torch, name)(x, 2.3)) == 0
    if name != "rsub":
        zero_dim, ours = torch.tensor(2.3, dtype=torch.float64), rl.tensor(2.3, dtype=rl.float64)
        assert differ(getattr(rl, name)(rx, ours), getattr(torch, name)(x, zero_dim)) == 0
        if name != "floor_divide":
            assert differ(getattr(rl, name)(ours, rx), getattr(torch, name)(zero_dim, x)) == 0


@pytest.mark.parametrize("dtype", DTYPES)
def test_integers_are_rounded_before_they_are_added(dtype):
    x, rx = both(dtype, scale=1000.0)
    i = torch.arange(3000) * 5
    assert differ(rx + rl.from_dlpack(i), x + i) == 0
    assert differ(rl.from_dlpack(i) * rx, i * x) == 0


@pytest.mark.parametrize("dtype", DTYPES)
def test_losses_in_steps(dtype):
    (x, rx), (t, rt) = both(dtype, n=500), both(dtype, n=500, seed=2)
    for reduction in ("none", "mean", "sum"):
        for name in ("binary_cross_entropy_with_logits", "hinge_embedding_loss"):
            ours = getattr(rl.nn.functional, name)(rx, rt, reduction=reduction)
            assert differ(ours, getattr(torch.nn.functional, name)(x, t, reduction=reduction)) <= (name[0] == "b") * 2
