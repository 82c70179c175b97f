"""searchsorted, isin, runs for unique, bincount, histograms and repeat_interleave against PyTorch and NumPy."""

from __future__ import annotations

import ctypes

import numpy
import pytest

pytest.importorskip("torch")

from kernel_ctypes import DTYPES, REAL, KernelError, call, layouts, sample, torch, with_threads

NAN = float("nan")


def counted(flags):
    count = ctypes.c_int64()
    call("mask_count", flags, None, ctypes.byref(count))
    return count.value


@pytest.mark.parametrize("dtype", [d for d in REAL if d != torch.bool])
@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 17, 100])
def test_searchsorted(dtype, right, n):
    sequence = sample(dtype, n, low=-40, high=41).sort().values
    for shape in [(), (5,), (3, 7), (0,), (2, 3, 4)]:
        values = sample(dtype, *shape, seed=1, low=-42, high=43)
        expected = torch.searchsorted(sequence, values, right=right)
        for _, view in layouts(values):
            for _, other in layouts(sequence):
                for kind in (torch.int64, torch.int32):
                    out = torch.zeros(shape, dtype=kind)
                    call("searchsorted", other, view, None, right, out)
                    assert torch.equal(out, expected.to(kind))
    shuffled = sample(dtype, n, seed=3, low=-40, high=41)
    sorter = shuffled.sort(stable=True).indices
    values = sample(dtype, 50, seed=4, low=-42, high=43)
    out = torch.zeros(50, dtype=torch.int64)
    call("searchsorted", shuffled, values, sorter, right, out)
    assert torch.equal(out, torch.searchsorted(shuffled, values, right=right, sorter=sorter))


@pytest.mark.parametrize("right", [False, True])
def test_searchsorted_rows(right):
    sequence = sample(torch.float32, 3, 4, 9, low=-9, high=10).sort().values
    for n in (0, 1, 13):
        values = sample(torch.float32, 3, 4, n, seed=2, low=-10, high=11)
        expected = torch.searchsorted(sequence, values, right=right)
        for _, view in layouts(values):
            for _, other in layouts(sequence):
                out = torch.zeros(3, 4, n, dtype=torch.int64)
                call("searchsorted", other, view, None, right, out)
                assert torch.equal(out, expected)
    shuffled = sample(torch.float32, 3, 4, 9, seed=5)
    sorter = shuffled.sort(stable=True).indices
    values = sample(torch.float32, 3, 4, 1, seed=6)
    out = torch.zeros(3, 4, 1, dtype=torch.int64)
    call("searchsorted", shuffled, values, sorter, right, out)
    assert torch.equal(out, torch.searchsorted(shuffled, values, right=right, sorter=sorter))


def test_searchsorted_special():
    sequence = torch.tensor([1.0, 2.0, 3.0])
    out = torch.zeros(2, dtype=torch.int64)
    call("searchsorted", sequence, torch.tensor([NAN, float("inf")]), None, False, out)
    assert out.tolist() == [3, 3]
    with pytest.raises(KernelError, match="sorter index out of range"):
        call("searchsorted", sequence, torch.zeros(2), torch.tensor([0, 1, 3]), False, out)
    with pytest.raises(KernelError, match="one real dtype, got float32 and float64"):
        call("searchsorted", sequence, torch.zeros(2, dtype=torch.float64), None, False, out)
    with pytest.raises(KernelError, match="shapes do not fit"):
        call("searchsorted", torch.zeros(2, 3), torch.zeros(3, 2), None, False, torch.zeros(3, 2, dtype=torch.int64))


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("invert", [False, True])
def test_isin(dtype, invert):
    for n in (0, 1, 5, 30):
        test = sample(dtype, n, seed=7, low=-20, high=21).sort().values
        x = sample(dtype, 6, 20, seed=8, low=-20, high=21)
        expected = numpy.isin(x.double().numpy(), test.double().numpy(), invert=invert)
        for _, view in layouts(x):
            out = torch.zeros(6, 20, dtype=torch.bool)
            call("isin", view, test, invert, out)
            assert (out.numpy() == expected).all()


def test_isin_nan():
    out = torch.zeros(3, dtype=torch.bool)
    call("isin", torch.tensor([NAN, 1.0, -0.0]), torch.tensor([0.0, 1.0, NAN]), False, out)
    assert out.tolist() == [False, True, True]


def unique(x, dim, order):
    n = x.shape[dim]
    flags = torch.zeros(n, dtype=torch.bool)
    call("run_flags", x, dim, order, flags)
    count = counted(flags)
    first, lengths = torch.zeros(count, dtype=torch.int64), torch.zeros(count, dtype=torch.int64)
    inverse = torch.zeros(n, dtype=torch.int64)
    call("run_fill", flags, order, first, inverse, lengths)
    return x.index_select(dim, first), inverse, lengths


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("n", [0, 1, 2, 50, 3000])
def test_unique(dtype, n):
    x = sample(dtype, n)
    order = torch.zeros(n, dtype=torch.int64)
    call("sort", x, 0, False, None, order)
    expected = torch.unique(x, return_inverse=True, return_counts=True)
    for got, wanted in zip(unique(x, 0, order), expected, strict=True):
        assert torch.equal(got, wanted)
    expected = torch.unique_consecutive(x, return_inverse=True, return_counts=True)
    for got, wanted in zip(unique(x, 0, None), expected, strict=True):
        assert torch.equal(got, wanted)


@pytest.mark.parametrize("dtype", [d for d in DTYPES if not d.is_complex])
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_unique_slices(dtype, dim):
    x = sample(dtype, 12, 3, 2, low=0, high=2)
    x = torch.cat([x, x.flip(0)], 0)
    order = torch.zeros(x.shape[dim], dtype=torch.int64)
    call("sort_slices", x, dim, order)
    expected = torch.unique(x, dim=dim, return_inverse=True, return_counts=True)
    for got, wanted in zip(unique(x, dim, order), expected, strict=True):
        assert torch.equal(got, wanted)
    expected = torch.unique_consecutive(x, dim=dim, return_inverse=True, return_counts=True)
    for got, wanted in zip(unique(x, dim, None), expected, strict=True):
        assert torch.equal(got, wanted)


def test_unique_nan():
    x = torch.tensor([2.0, NAN, -0.0, 0.0, NAN])
    order = torch.zeros(5, dtype=torch.int64)
    call("sort", x, 0, False, None, order)
    values, inverse, counts = unique(x, 0, order)
    assert counts.tolist() == [2, 1, 1, 1]
    assert inverse.tolist() == [1, 2, 0, 0, 3]
    assert values[2:].isnan().all()


@pytest.mark.parametrize("n", [0, 1, 1000, 300_000])
def test_bincount(n):
    x = torch.randint(0, 300, (n,), generator=torch.Generator().manual_seed(1))
    weights = torch.randn(n, generator=torch.Generator().manual_seed(2))
    for threads in (1, 4):
        out = torch.full((310,), -1)
        with_threads(threads, lambda out=out: call("bincount", x, None, out))
        assert torch.equal(out, torch.bincount(x, minlength=310))
        spaced = torch.full((620,), -1)[::2]
        with_threads(threads, lambda out=spaced: call("bincount", x, None, out))
        assert torch.equal(spaced, out)
        for dtype in (torch.float32, torch.float64):
            sums = torch.full((310,), -1, dtype=dtype)
            typed = weights.to(dtype)
            with_threads(threads, lambda sums=sums, w=typed: call("bincount", x, w, sums))
            assert torch.equal(sums, torch.bincount(x, weights.to(dtype), minlength=310))
        for dtype in (torch.uint8, torch.int8, torch.int16, torch.int32):
            narrow = (x % 128).to(dtype)
            for view in (narrow, narrow.repeat_interleave(2)[::2]):
                with_threads(threads, lambda out=out, view=view: call("bincount", view, None, out))
                assert torch.equal(out, torch.bincount(x % 128, minlength=310))


def test_bincount_errors():
    out = torch.zeros(3, dtype=torch.int64)
    for bad in (3, -1):
        with pytest.raises(KernelError, match=f"index {bad} is out of bounds for dimension 0 with size 3"):
            call("bincount", torch.tensor([0, bad]), None, out)
        with pytest.raises(KernelError, match=f"index {bad} is out of bounds for dimension 0 with size 3"):
            call("bincount", torch.tensor([0, bad], dtype=torch.int8), torch.zeros(2), torch.zeros(3))
    with pytest.raises(KernelError, match=r"expected weights of input's shape \[2\], got \[3\]"):
        call("bincount", torch.tensor([0, 1]), torch.zeros(3), torch.zeros(3))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_histc(dtype):
    generator = torch.Generator().manual_seed(4)
    for low, high, bins in ((0.0, 1.0, 10), (-1.0, 1.0, 7), (0.1, 0.9, 13), (-3.0, 5.0, 100), (0.3, 0.4, 1)):
        edges = torch.linspace(low, high, bins + 1, dtype=dtype)
        near = [torch.nextafter(edges, torch.full_like(edges, far)) for far in (-9.0, 9.0)]
        x = torch.cat(
            [edges, *near, torch.randn(200_000, generator=generator).to(dtype), torch.tensor([NAN]).to(dtype)]
        )
        for threads in (1, 3):
            out = torch.full((bins,), -1, dtype=dtype)
            with_threads(threads, lambda out=out: call("histc", x, low, high, out))
            assert torch.equal(out, torch.histc(x, bins, low, high))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_histc_of_short_floats(dtype):
    x = torch.arange(-8, 9).to(dtype) / 4
    out = torch.zeros(4, dtype=dtype)
    call("histc", x, -1.0, 1.0, out)
    assert out.tolist() == [2, 2, 2, 3]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("weighted", [False, True])
def test_histogram(dtype, weighted):
    generator = torch.Generator().manual_seed(5)
    x = torch.randn(100_000, generator=generator).to(dtype)
    weights = torch.rand(100_000, generator=generator).to(dtype) if weighted else None
    for edges, uniform in (
        (torch.linspace(-2, 2, 12, dtype=dtype), True),
        (torch.tensor([-1.5, -1.0, 0.25, 2.0], dtype=dtype), False),
    ):
        expected, _ = torch.histogram(
            torch.cat([x, edges]),
            edges,
            weight=None if weights is None else torch.cat([weights, torch.ones_like(edges)]),
        )
        results = []
        for threads in (1, 4):
            out = torch.zeros(len(edges) - 1, dtype=dtype)
            data = torch.cat([x, edges])[:, None]
            w = None if weights is None else torch.cat([weights, torch.ones_like(edges)])
            with_threads(threads, lambda out=out, d=data, w=w: call("histogramdd", d, 1, [edges], w, uniform, out))
            torch.testing.assert_close(out, expected, rtol=1e-5, atol=0)
            results.append(out)
        assert torch.equal(*results)
    data = torch.randn(5000, 2, generator=generator).to(dtype)
    edges = [torch.linspace(-1, 1, 5, dtype=dtype), torch.tensor([-3.0, 0.0, 1.0], dtype=dtype)]
    out = torch.zeros(4, 2, dtype=dtype)
    call("histogramdd", data, 2, edges, None, False, out)
    assert torch.equal(out, torch.histogramdd(data, edges).hist)


def test_repeat_interleave():
    repeats = torch.tensor([2, 0, 3, 1])
    out = torch.zeros(6, dtype=torch.int64)
    call("repeat_interleave", repeats, out)
    assert torch.equal(out, torch.repeat_interleave(repeats))
    with pytest.raises(KernelError, match="repeats can not be negative"):
        call("repeat_interleave", torch.tensor([1, -1]), out)
    with pytest.raises(KernelError, match="expected an output of 7 elements, got 6"):
        call("repeat_interleave", torch.tensor([7]), out)
    with pytest.raises(KernelError, match="too large"):
        call("repeat_interleave", torch.tensor([2**62, 2**62]), out)
