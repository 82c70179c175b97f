"""Softmax and its logarithm against PyTorch in float64, over dtypes, layouts and numbers of threads."""

from __future__ import annotations

import math

import pytest

pytest.importorskip("torch")

from kernel_ctypes import KernelError, call, layouts, torch, with_threads

torch.set_num_threads(1)

NAN, INF = math.nan, math.inf
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
TOLERANCE = {torch.float16: 2e-3, torch.bfloat16: 1.6e-2, torch.float32: 6e-7, torch.float64: 1e-14}
SHAPES = [
    (),
    (1,),
    (5,),
    (16,),
    (17,),
    (3, 10),
    (10, 3),
    (4, 64),
    (64, 70),
    (2, 3, 4),
    (3, 5000),
    (5000, 3),
    (2, 300, 90),
    (0,),
    (0, 3),
    (3, 0),
]
NAMES = ["softmax", "log_softmax"]


def dims(shape):
    return range(-max(1, len(shape)), max(1, len(shape)))


def run(name, x, dim, dtype, shape):
    out = torch.full(shape, 7.0).to(dtype)
    call(name, x, dim, out)
    return out


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", SHAPES)
def test_forward_and_backward(dtype, shape):
    torch.manual_seed(0)
    x = (4 * torch.randn(shape, dtype=torch.float64)).to(dtype)
    g = torch.randn(shape, dtype=torch.float64).to(dtype)
    tol = TOLERANCE[dtype]
    for name in NAMES:
        for dim in dims(shape):
            for values, descriptor in layouts(x):
                expected = getattr(values.double(), name)(dim).to(dtype)
                torch.testing.assert_close(run(name, descriptor, dim, dtype, shape), expected, rtol=tol, atol=tol / 2)
            y = getattr(x.double(), name)(dim).to(dtype)
            source = x.double().clone().requires_grad_()
            getattr(source, name)(dim).backward(g.double())
            for grad, descriptor in layouts(g):
                if torch.equal(grad, g):
                    out = torch.full(shape, 7.0).to(dtype)
                    call(name + "_backward", descriptor, y, dim, out)
                    torch.testing.assert_close(out, source.grad.to(dtype), rtol=tol * 4, atol=tol * 8)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("n", [2, 16, 33, 300])
def test_special_values(dtype, n):
    rows = torch.zeros(7, n, dtype=dtype)
    rows[0] = -INF
    rows[1, 0] = INF
    rows[2, 1] = NAN
    rows[3, 0] = -INF
    rows[4] = 30000
    rows[5, 0] = 60000
    rows[6, 1] = -60000
    for name in NAMES:
        for x, dim in ((rows, 1), (rows.t().contiguous(), 0)):
            expected = getattr(x.double(), name)(dim).to(dtype)
            torch.testing.assert_close(run(name, x, dim, dtype, x.shape), expected, rtol=1e-2, atol=0, equal_nan=True)


def test_exp_is_accurate():
    x = torch.cat([torch.linspace(-110, 0, 400001), torch.linspace(-1e-3, 0, 10001)]).reshape(-1, 1)
    pairs = torch.cat([x, torch.full_like(x, 0)], 1)
    exact = pairs.double().softmax(1)
    ulp = torch.maximum(exact.abs() * 2.0**-23, torch.tensor(2.0**-149, dtype=torch.float64))
    actual = run("softmax", pairs, 1, torch.float32, pairs.shape)
    assert ((actual.double() - exact).abs() / ulp).max() < 2.0
    wide = pairs.double() * 6.7
    exact = wide.softmax(1)
    actual = run("softmax", wide, 1, torch.float64, wide.shape)
    assert ((actual - exact).abs() <= 4 * 2.0**-52 * exact + 2.0**-1073).all()


def test_converted_dtypes():
    x = torch.tensor([1, 2, 3])
    torch.testing.assert_close(run("softmax", x, 0, torch.float32, (3,)), x.float().softmax(0))
    torch.testing.assert_close(run("softmax", x.half(), 0, torch.float64, (3,)), x.double().softmax(0))
    out = torch.zeros(6)[::2]
    call("log_softmax", x.float(), 0, out)
    torch.testing.assert_close(out, x.float().log_softmax(0))
    y = x.float()
    call("softmax", y, 0, y)
    torch.testing.assert_close(y, x.float().softmax(0))


@pytest.mark.parametrize("shape, dim", [((400, 1000), 0), ((400, 1000), 1), ((30, 20, 500), 1)])
def test_bits_do_not_depend_on_threads(shape, dim):
    torch.manual_seed(0)
    x, g = torch.randn(shape), torch.randn(shape)
    for name in NAMES:
        y = run(name, x, dim, torch.float32, shape)

        def back(name=name, y=y):
            out = torch.zeros(shape)
            call(name + "_backward", g, y, dim, out)
            return out

        for compute in (lambda name=name: run(name, x, dim, torch.float32, shape), back):
            results = [with_threads(n, compute) for n in (1, 2, 4)]
            assert torch.equal(results[0], results[1]) and torch.equal(results[0], results[2])


def test_rows_do_not_depend_on_each_other():
    x = torch.randn(64, 100)
    whole = run("softmax", x, 1, torch.float32, x.shape)
    assert torch.equal(whole[:1], run("softmax", x[:1].contiguous(), 1, torch.float32, (1, 100)))


def test_refuses():
    x = torch.ones(2, 3)
    for args, kind, text in (
        (("softmax", x, 2, x), IndexError, "softmax: dim is out of range; expected -2 to 1, got 2"),
        (("softmax", x, 0, torch.ones(3, 2)), ValueError, r"expected \[2, 3\], got \[3, 2\]"),
        (("log_softmax", x.to(torch.complex64), 0, x), TypeError, "expected a real dtype, got complex64"),
        (("softmax", x.long(), 0, x.long()), TypeError, "expected floating point, got int64"),
    ):
        with pytest.raises(KernelError, match=text) as error:
            call(*args)
        assert error.value.kind is kind
