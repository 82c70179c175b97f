"""Scans against PyTorch, over dtypes, layouts and numbers of threads."""

from __future__ import annotations

import math

import pytest

pytest.importorskip("torch")

from kernel_ctypes import DTYPES, REAL, KernelError, call, describe, layouts, sample, torch, with_threads

torch.set_num_threads(1)

NAN, INF = math.nan, math.inf
SHAPES = [(), (1,), (9,), (4, 5), (5, 1), (3, 70), (70, 3), (2, 3, 4), (10, 3000), (3000, 10), (0,), (0, 3), (3, 0)]
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128]


def dims(shape):
    return range(-max(1, len(shape)), max(1, len(shape)))


def scan(name, x, dim, dtype, shape=None):
    out = torch.full(shape if shape is not None else x.shape, 7).to(dtype)
    call(name, x, dim, out)
    return out


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_sums_and_products(dtype, shape):
    out_dtype = torch.int64 if dtype not in FLOATS else dtype
    x = sample(dtype, *shape)
    for values, descriptor in layouts(x):
        for dim in dims(shape):
            expected = values.to(torch.complex128 if dtype.is_complex else torch.float64).cumsum(dim).to(out_dtype)
            assert torch.equal(scan("cumsum", descriptor, dim, out_dtype, shape), expected)
    x = sample(dtype, *shape, low=1, high=3)
    x = x / x.abs() if dtype.is_complex else x  # products stay in range
    for values, descriptor in layouts(x):
        for dim in dims(shape):
            small = values if dtype in FLOATS else values.long()
            expected = small.cumprod(dim)
            actual = scan("cumprod", descriptor, dim, out_dtype, shape)
            tolerance = {"rtol": 1e-3, "atol": 1e-4} if dtype == torch.complex64 else {}
            torch.testing.assert_close(actual, expected, equal_nan=True, **tolerance)


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("shape", SHAPES)
def test_extremes(dtype, shape):
    x = sample(dtype, *shape, low=-5, high=5)
    special = [x]
    if dtype.is_floating_point and x.numel() > 4:
        holes = x.clone()
        holes.view(-1)[1::4] = NAN
        special.append(holes)
    for base in special:
        for values, descriptor in layouts(base):
            for dim in dims(shape):
                for name in ("cummax", "cummin"):
                    expected = getattr(torch, name)(values, dim)
                    out, indices = torch.zeros(shape, dtype=dtype), torch.full(shape, 7)
                    call(name, descriptor, dim, out, indices)
                    torch.testing.assert_close(out, expected[0], rtol=0, atol=0, equal_nan=True)
                    assert torch.equal(indices, expected[1])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", SHAPES)
def test_logcumsumexp(dtype, shape):
    torch.manual_seed(0)
    wide = torch.complex128 if dtype.is_complex else torch.float64
    x = (3 * torch.randn(shape, dtype=wide)).to(dtype)
    for values, descriptor in layouts(x):
        for dim in dims(shape):
            expected = values.to(wide).logcumsumexp(dim).to(dtype)
            actual = scan("logcumsumexp", descriptor, dim, dtype, shape)
            if dtype.is_complex:  # angles are equal up to full turns
                actual, expected = actual.exp() / (1 + actual.abs()), expected.exp() / (1 + actual.abs())
            torch.testing.assert_close(actual, expected, rtol=1e-2 if dtype.itemsize == 2 else 3e-5, atol=1e-5)


def test_special_values():
    x = torch.tensor([-INF, -INF, 1.0, 1000.0, 1000.0, INF, 2.0, NAN, 1.0])
    torch.testing.assert_close(scan("logcumsumexp", x, 0, torch.float32), x.logcumsumexp(0), equal_nan=True)
    x = torch.tensor([1.0, INF, 2.0, -INF, 3.0])
    torch.testing.assert_close(scan("cumsum", x, 0, torch.float32), x.cumsum(0), equal_nan=True)
    x = torch.full((100000,), 0.1)
    expected = x.double().cumsum(0).float()
    torch.testing.assert_close(scan("cumsum", x, 0, torch.float32), expected, rtol=1e-7, atol=0)
    x = torch.tensor([1.0, 2.0, 3.0, 4.0])
    call("cumsum", x, 0, x)
    assert x.tolist() == [1, 3, 6, 10]
    out = torch.zeros(8)[::2]
    call("cumsum", torch.tensor([1, 2, 3, 4]), 0, out)
    assert out.tolist() == [1, 3, 6, 10]
    assert scan("cumsum", torch.tensor([100, 100]), 0, torch.int8).tolist() == [100, -56]
    assert scan("cumsum", torch.tensor([True, True, False]), 0, torch.int64).tolist() == [1, 2, 2]
    flipped = torch.zeros(4)
    call("cumsum", torch.ones(4), 0, describe(flipped, (0,)))
    assert flipped.tolist() == [4, 3, 2, 1]


@pytest.mark.parametrize("shape, dim", [((300, 1000), 0), ((300, 1000), 1), ((20, 300, 50), 1), ((1000000,), 0)])
def test_bits_do_not_depend_on_threads(shape, dim):
    x = torch.randn(shape)
    for name in ("cumsum", "cumprod", "logcumsumexp"):
        results = [with_threads(n, lambda: scan(name, x, dim, torch.float32)) for n in (1, 2, 4)]
        assert torch.equal(results[0], results[1]) and torch.equal(results[0], results[2])


def test_refuses():
    x = torch.ones(2, 3)
    for args, kind, text in (
        (("cumsum", x, 2, x), IndexError, "cumsum: dim is out of range; expected -2 to 1, got 2"),
        (("cumsum", x, 0, torch.ones(3, 2)), ValueError, r"expected \[2, 3\], got \[3, 2\]"),
        (("cumsum", x.to(torch.complex64), 0, x), TypeError, "got float32"),
        (("cummax", x, 0, torch.ones(2, 3), torch.ones(2, 3)), TypeError, "expected int64, got float32"),
        (("logcumsumexp", x, 0, torch.ones(2, 3).long()), TypeError, "got int64"),
    ):
        with pytest.raises(KernelError, match=text) as error:
            call(*args)
        assert error.value.kind is kind
