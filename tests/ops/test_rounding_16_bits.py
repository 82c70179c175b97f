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


@pytest.mark.parametrize("dtype", DTYPES)
def test_floor_divide_takes_the_steps_of_div(dtype):
    (a, ra), (b, rb) = both(dtype, scale=50.0), both(dtype, seed=1, scale=3.0)
    for (x, rx), (y, ry) in [
        ((a, ra), (b, rb)),
        ((a, ra), (b[1], rb[1])),
        ((a, ra), (0.3, 0.3)),
        ((3.0, 3.0), (b, rb)),
    ]:
        assert differ(rl.floor_divide(rx, ry), torch.floor_divide(x, y)) == 0
        assert differ(rx // ry, x // y) == 0
    assert differ(ra.clone().floor_divide_(rb), a.clone().floor_divide_(b)) == 0
    assert differ(rl.div(3.0, rb, rounding_mode="trunc"), torch.div(3.0, b, rounding_mode="trunc")) == 0


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "name", ["exp", "sigmoid", "add", "mul", "div", "addcmul", "hypot", "cumsum", "cumprod", "mean"]
)
def test_a_wider_out_takes_rounded_numbers(dtype, name):
    operands = {"add": 2, "mul": 2, "div": 2, "addcmul": 3, "hypot": 2}.get(name, 1)
    given = [both(dtype, n=40, scale=1.0, seed=i) for i in range(operands)]
    along = (0,) if name in ("cumsum", "cumprod", "mean") else ()
    for wide in ("float32", "float64"):
        theirs, ours = torch.empty(0, dtype=getattr(torch, wide)), rl.empty(0, dtype=getattr(rl, wide))
        getattr(torch, name)(*[x for x, _ in given], *along, out=theirs)
        getattr(rl, name)(*[x for _, x in given], *along, out=ours)
        assert rl.allclose(ours, rl.from_dlpack(theirs), rtol=1e-6, atol=0), name  # a step of bfloat16 is 4e-3


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("decimals", [-2, -1, 1, 2, 3, 5])
def test_round_to_decimals(dtype, decimals):
    x, rx = both(dtype, scale=300.0)
    assert differ(rx.round(decimals=decimals), x.round(decimals=decimals)) == 0
