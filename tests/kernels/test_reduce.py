"""Reductions against PyTorch (float64 where it rounds), over dtypes, layouts, sets of dims and numbers of threads."""

from __future__ import annotations

import itertools
import math

import pytest

pytest.importorskip("torch")

from kernel_ctypes import DTYPES, REAL, KernelError, call, describe, layouts, sample, torch, with_threads

torch.set_num_threads(1)

FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
COMPLEX = [torch.complex64, torch.complex128]
INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
NAN, INF = math.nan, math.inf

SHAPES = [(), (1,), (7,), (4, 4), (3, 70), (70, 3), (5, 1, 6), (2, 3, 4, 5), (33, 40), (600, 2), (2, 700), (40, 3, 50)]


def dim_sets(ndim):
    for count in range(ndim + 1):
        yield from itertools.combinations(range(ndim), count)


def keepdim_shape(shape, dims):
    return [1 if d in dims else s for d, s in enumerate(shape)]


def reduce(name, x, dims, dtype, *args):
    """The kernel's result over dims, given a tensor or a descriptor (whose owner has the shape)."""
    shape = x.shape if isinstance(x, torch.Tensor) else x.owner.shape
    out = torch.full(keepdim_shape(shape, dims), 7).to(dtype)
    call(name, x, *args, out)
    return out


def assert_close(actual, expected, rtol, atol=0.0):
    assert actual.shape == expected.shape and actual.dtype == expected.dtype
    torch.testing.assert_close(actual, expected, rtol=rtol, atol=atol, equal_nan=True)


TOLERANCE = {
    torch.float16: 1e-3,
    torch.bfloat16: 8e-3,
    torch.float32: 3e-7,
    torch.float64: 1e-15,
    torch.complex64: 3e-7,
    torch.complex128: 1e-15,
}


def wide(dtype):
    return torch.complex128 if dtype.is_complex else torch.float64


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_sums_of_whole_numbers_are_exact(dtype, shape):
    x = sample(dtype, *shape)
    out_dtype = dtype if dtype.is_floating_point or dtype.is_complex else torch.int64
    for (values, descriptor), dims in itertools.product(layouts(x), dim_sets(len(shape))):
        expected = values.to(wide(dtype)).sum(dims, keepdim=True) if dims else values.to(wide(dtype))
        assert torch.equal(reduce("sum", descriptor, dims, out_dtype), expected.to(out_dtype))
        if dtype not in COMPLEX:
            count = (values != 0).to(torch.int64)
            count = count.sum(dims, keepdim=True) if dims else count
            assert torch.equal(reduce("count_nonzero", descriptor, dims, torch.int64), count)
            assert torch.equal(reduce("any", descriptor, dims, torch.bool), count > 0)
            total = math.prod(shape[d] for d in dims)
            assert torch.equal(reduce("all", descriptor, dims, torch.bool), count == total)


@pytest.mark.parametrize("dtype", DTYPES)
def test_prod(dtype):
    out_dtype = dtype if dtype.is_floating_point or dtype.is_complex else torch.int64
    for shape in [(), (6,), (3, 4), (4, 70), (70, 4), (2, 3, 4), (40, 3, 30)]:
        x = sample(dtype, *shape, low=-1, high=3)
        if dtype != torch.bool:
            x = torch.where(x == 0, torch.ones_like(x), x) if not dtype.is_complex else x * 0 + x / (x.abs() + (x == 0))
        for (values, descriptor), dims in itertools.product(layouts(x), dim_sets(len(shape))):
            work = wide(dtype) if dtype.is_floating_point or dtype.is_complex else torch.int64
            expected = values.to(work)
            for d in dims:
                expected = expected.prod(d, keepdim=True)
            actual = reduce("prod", descriptor, dims, out_dtype)
            assert_close(actual, expected.to(out_dtype), TOLERANCE.get(dtype, 0) * 10, 1e-6 if dtype.is_complex else 0)


@pytest.mark.parametrize("dtype", FLOATS + COMPLEX)
@pytest.mark.parametrize("shape", [*SHAPES, (5000,), (3, 9000), (9000, 3), (1030, 70)])
def test_floating_reductions(dtype, shape):
    torch.manual_seed(1)
    x = torch.randn(shape, dtype=wide(dtype)).to(dtype)
    real = x.real.dtype if dtype.is_complex else dtype
    tol = TOLERANCE[dtype]
    for (values, descriptor), dims in itertools.product(layouts(x), dim_sets(len(shape))):
        exact = values.to(wide(dtype))
        over = list(dims) if dims else list(range(len(shape), len(shape) + 1))
        exact = exact if dims else exact.unsqueeze(-1)

        def back(t, dims=dims):
            return t if dims else t.squeeze(-1)

        scale = back(exact.abs().sum(over, keepdim=True)).max().item()
        n = max(1, exact.numel() // max(1, back(exact.sum(over, keepdim=True)).numel()))
        assert_close(
            reduce("sum", descriptor, dims, dtype), back(exact.sum(over, keepdim=True)).to(dtype), tol, 2e-7 * scale
        )
        assert_close(
            reduce("mean", descriptor, dims, dtype),
            back(exact.mean(over, keepdim=True)).to(dtype),
            tol,
            2e-7 * scale / n,
        )
        for p in (0.0, 1.0, 2.0, 3.0, 0.5, -1.5, INF, -INF):
            expected = back(torch.linalg.vector_norm(exact.abs(), p, over, keepdim=True))
            assert_close(reduce("norm", descriptor, dims, real, p), expected.to(real), max(tol, 5e-14))
        squares = back((exact.abs() ** 2).sum(over, keepdim=True))
        assert_close(reduce("sum_of_squares", descriptor, dims, real), squares.to(real), tol * 2)
        for correction in (0.0, 1.0):
            if n <= correction:
                continue
            var = back(exact.var(over, correction=correction, keepdim=True))
            assert_close(reduce("var", descriptor, dims, real, correction), var.to(real), max(tol, 1e-13), 1e-300)
            std = torch.full(keepdim_shape(shape, dims), 7).to(real)
            mean = torch.full(keepdim_shape(shape, dims), 7).to(dtype)
            call("std_mean", descriptor, correction, std, mean)
            assert_close(std, var.sqrt().to(real), max(tol, 1e-13), 1e-300)
            assert_close(mean, back(exact.mean(over, keepdim=True)).to(dtype), tol, 2e-7 * scale / n)
        if not dtype.is_complex:
            lse = back(exact.logsumexp(over, keepdim=True))
            assert_close(
                reduce("logsumexp", descriptor, dims, dtype),
                lse.to(dtype),
                max(tol, 1e-14),
                1e-7 if tol > 1e-10 else 1e-14,
            )


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("shape", [*SHAPES[1:], (5000,), (3, 9000), (9000, 3)])
def test_extremes(dtype, shape):
    x = sample(dtype, *shape, low=-9, high=9)
    for (values, descriptor), dims in itertools.product(layouts(x), dim_sets(len(shape))):
        work = values.to(torch.float64)
        low, high = (work.amin(dims, keepdim=True), work.amax(dims, keepdim=True)) if dims else (work, work)
        assert torch.equal(reduce("amax", descriptor, dims, dtype), high.to(dtype))
        assert torch.equal(reduce("amin", descriptor, dims, dtype), low.to(dtype))
        outs = [torch.zeros(keepdim_shape(shape, dims), dtype=dtype) for _ in range(2)]
        call("aminmax", descriptor, *outs)
        assert torch.equal(outs[0], low.to(dtype)) and torch.equal(outs[1], high.to(dtype))
        # The first of equals, in row-major order of the reduced dims.
        kept = [d for d in range(len(shape)) if d not in dims]
        flat = work.permute(*kept, *dims).reshape([shape[d] for d in kept] + [-1])
        for name, best in (("max", flat == flat.amax(-1, keepdim=True)), ("min", flat == flat.amin(-1, keepdim=True))):
            first = best.to(torch.uint8).argmax(-1).reshape(keepdim_shape(shape, dims))
            assert torch.equal(reduce("arg" + name, descriptor, dims, torch.int64), first)
            found = torch.full(keepdim_shape(shape, dims), 7).to(dtype)
            indices = torch.full(keepdim_shape(shape, dims), 7)
            call(name + "_with_indices", descriptor, found, indices)
            assert torch.equal(indices, first) and torch.equal(found, (high if name == "max" else low).to(dtype))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("n", [3, 15, 16, 17, 63, 64, 65, 200, 3000, 5000])
@pytest.mark.parametrize("columns", [1, 3, 40])
def test_nan_wins_and_the_first_one_is_named(dtype, n, columns):
    for at in {0, 1, n // 2, n - 1}:
        x = torch.arange(n * columns).remainder(50).to(dtype).reshape(n, columns)
        x[at] = NAN
        x[n - 1, 0] = NAN
        for values in (x, x.t().contiguous().t()):
            for name in ("amax", "amin"):
                assert reduce(name, values, (0,), dtype).isnan().all()
            for name in ("argmax", "argmin"):
                assert (reduce(name, values, (0,), torch.int64) == at).all()
            assert reduce("norm", values, (0,), dtype, INF).isnan().all()
            assert reduce("logsumexp", values, (0,), dtype).isnan().all()
            assert reduce("sum", values, (0,), dtype).isnan().all()
            assert reduce("var", values, (0,), dtype, 1.0).isnan().all()
            expected = values.double().nansum(0, keepdim=True).to(dtype)
            assert_close(reduce("nansum", values, (0,), dtype), expected, 1e-7)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_infinities(dtype):
    for values in ([INF, 1.0], [-INF, 1.0], [INF, -INF], [INF, INF], [-INF, -INF], [NAN, INF]):
        for repeat in (1, 40):
            x = torch.tensor(values * repeat, dtype=dtype)
            for name, expected in (
                ("sum", x.sum()),
                ("mean", x.mean()),
                ("prod", x.prod()),
                ("amax", x.amax()),
                ("amin", x.amin()),
                ("logsumexp", x.logsumexp(0)),
            ):
                for t, dims in ((x, (0,)), (x.reshape(-1, 1), (0,)), (x.reshape(-1, 1).expand(-1, 5), (0,))):
                    actual = reduce(name, t, dims, dtype)
                    assert_close(actual, expected.expand(actual.shape), 1e-6)
            assert reduce("var", x, (0,), dtype, 1.0).isnan().all()


def test_representable_results_do_not_overflow():
    big = torch.tensor([3e38, 3e38, 3e38])
    assert reduce("mean", big, (0,), torch.float32).item() == big[0].item()
    assert reduce("mean", big.reshape(3, 1).expand(3, 40), (0,), torch.float32).eq(big[0]).all()
    assert reduce("sum", torch.tensor([3e38, 3e38, -3e38]), (0,), torch.float32).item() == big[0].item()
    assert reduce("sum", torch.tensor([3e38, 3e38, -3e38] * 1000), (0,), torch.float32).item() == INF
    assert reduce("sum", torch.tensor([3e38, 3e38, -3e38, -3e38] * 1000), (0,), torch.float32).item() == 0
    assert reduce("mean", torch.ones(100000, dtype=torch.float16), (0,), torch.float16).item() == 1
    assert reduce("mean", torch.full((1000,), 60000, dtype=torch.float16), (0,), torch.float16).item() == 60000
    huge = torch.tensor([1.5e308, 1.7e308, 1.6e308], dtype=torch.float64)
    assert_close(reduce("mean", huge, (0,), torch.float64), torch.tensor([1.6e308], dtype=torch.float64), 1e-15)
    assert reduce("sum", torch.cat([huge, -huge]), (0,), torch.float64).item() == 0
    assert_close(reduce("norm", torch.tensor([3e30, 4e30]), (0,), torch.float32, 2.0), torch.tensor([5e30]), 1e-7)
    assert_close(reduce("norm", torch.tensor([3e-30, 4e-30]), (0,), torch.float32, 2.0), torch.tensor([5e-30]), 1e-7)
    for scale in (1e-310, 1e-200, 1e200, 4e307):
        x = torch.tensor([3 * scale, 4 * scale], dtype=torch.float64)
        tol = 1e-12 if scale < 1e-300 else 1e-15
        for p, expected in (
            (2.0, 5 * scale),
            (1.0, 7 * scale),
            (5.0, (3**5 + 4**5) ** 0.2 * scale),
            (-2.0, 2.4 * scale),
        ):
            if expected < INF and p * 1 != 0 and expected < 1.7e308:
                actual = reduce("norm", x, (0,), torch.float64, p)
                assert_close(actual, torch.tensor([expected], dtype=torch.float64), tol)
        assert_close(reduce("std", x, (0,), torch.float64, 0.0), torch.tensor([scale / 2], dtype=torch.float64), tol)
    x = torch.tensor([1e30, -1e30, 3e30])
    assert_close(reduce("std", x, (0,), torch.float32, 1.0), x.double().std().float().reshape(1), 1e-6)
    assert_close(
        reduce("norm", torch.tensor([3e20, 4e20]), (0,), torch.float32, 20.0).double(),
        torch.tensor([(0.75**20 + 1) ** 0.05 * 4e20]).double(),
        1e-6,
    )


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("value", [0.1, 1 / 3, 1e4 + 1 / 7, -3e-5])
def test_variance_of_equal_values_is_zero(dtype, value):
    for n in (2, 3, 7, 100, 5000, 70001):
        x = torch.full((n,), value, dtype=dtype)
        assert reduce("var", x, (0,), dtype, 1.0).item() == 0
        assert reduce("std", x.reshape(n, 1).expand(n, 6), (0,), dtype, 0.0).eq(0).all()


def test_variance_far_from_zero():
    torch.manual_seed(0)
    x = 1e4 + torch.randn(100000) * 1e-2
    assert_close(reduce("var", x, (0,), torch.float32, 1.0), x.double().var().float().reshape(1), 1e-6)
    y = 1e8 + torch.randn(100000, dtype=torch.float64) * 1e-4
    exact = (y - 1e8).var().reshape(1)
    assert_close(reduce("var", y, (0,), torch.float64, 1.0), exact, 1e-10)
    y[0] = -1e12
    exact = (y / 1e12).var().reshape(1) * 1e24
    assert_close(reduce("var", y, (0,), torch.float64, 1.0), exact, 1e-12)


def test_zero_sizes():
    for shape, dims in (((0,), (0,)), ((0, 4), (0,)), ((4, 0), (1,)), ((3, 0, 2), (1,)), ((0, 0), (0, 1))):
        x = torch.zeros(shape)
        for name, expected, args in (
            ("sum", 0.0, ()),
            ("nansum", 0.0, ()),
            ("prod", 1.0, ()),
            ("mean", NAN, ()),
            ("norm", 0.0, (2.0,)),
            ("norm", 0.0, (INF,)),
            ("norm", 0.0, (0.0,)),
            ("norm", 0.0, (3.0,)),
            ("var", NAN, (1.0,)),
            ("logsumexp", -INF, ()),
        ):
            actual = reduce(name, x, dims, torch.float32, *args)
            assert_close(actual, torch.full_like(actual, expected), 0)
        assert (reduce("prod", x.long(), dims, torch.int64) == 1).all()
        assert reduce("all", x, dims, torch.bool).all() and not reduce("any", x, dims, torch.bool).any()
        for name in ("amax", "argmax", "amin"):
            with pytest.raises(KernelError, match="nothing to reduce") as error:
                reduce(name, x, dims, torch.int64 if name == "argmax" else torch.float32)
            assert error.value.kind is ValueError
    for name in ("sum", "amax"):
        assert reduce(name, torch.zeros(0, 3), (1,), torch.float32).shape == (0, 1)


def test_converted_dtypes():
    x = torch.tensor([1.7, -2.9, 3.5, NAN])
    assert reduce("sum", x[:3], (0,), torch.int64).item() == 2
    assert reduce("sum", x[:3], (0,), torch.bool).item() is True
    assert reduce("prod", torch.tensor([2, 128, 3]), (0,), torch.bool).item() is True
    assert reduce("sum", torch.tensor([100, 100, 100]), (0,), torch.int8).item() == 44
    assert reduce("sum", torch.tensor([2**62, 2**62]), (0,), torch.int64).item() == -(2**63)
    assert reduce("sum", torch.tensor([3, 4]), (0,), torch.float32).item() == 7
    assert reduce("mean", torch.tensor([True, False]), (0,), torch.float64).item() == 0.5
    assert reduce("sum", torch.tensor([1.0, 2.0]), (0,), torch.complex64).item() == 3
    tiny = torch.full((1000,), 1e-4)
    assert_close(reduce("sum", tiny, (0,), torch.float64), tiny.double().sum().reshape(1), 1e-12)


def test_outputs_with_strides():
    x = torch.arange(60.0).reshape(3, 4, 5)
    out = torch.zeros(5, 8, 3).permute(2, 1, 0)[:, ::2, :1]
    call("sum", x, out)
    assert torch.equal(out, x.sum(2, keepdim=True))
    store = torch.zeros(3)
    call("sum", x, describe(store.reshape(3, 1, 1), (0,)))
    assert torch.equal(store.flip(0), x.sum((1, 2)))
    mean, var = torch.zeros(3, 1, 2)[:, :, :1], torch.zeros(3, 1, 1)
    call("var_mean", x.reshape(3, 20, 1), 1.0, var, mean)
    assert_close(var.flatten(), x.reshape(3, 20).var(1), 1e-6)
    assert_close(mean.flatten(), x.reshape(3, 20).mean(1), 1e-6)


@pytest.mark.parametrize(
    "shape, dims",
    [
        ((1 << 20,), (0,)),
        ((300, 1000), (0,)),
        ((300, 1000), (1,)),
        ((200000, 7), (0,)),
        ((200000, 7), (1,)),
        ((50, 60, 70), (0, 2)),
        ((3, 400000), (1,)),
    ],
)
def test_bits_do_not_depend_on_threads(shape, dims):
    torch.manual_seed(2)
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.complex64):
        x = torch.randn(shape, dtype=dtype)
        real = torch.float32 if dtype.is_complex else dtype
        names = [
            ("sum", (), dtype),
            ("mean", (), dtype),
            ("norm", (2.0,), real),
            ("var", (1.0,), real),
            ("prod", (), dtype),
        ]
        if not dtype.is_complex:
            names += [("logsumexp", (), dtype), ("argmax", (), torch.int64), ("amin", (), dtype)]
        for name, args, out_dtype in names:
            results = [with_threads(n, lambda: reduce(name, x, dims, out_dtype, *args)) for n in (1, 2, 4)]
            assert results[0].isfinite().all()
            for other in results[1:]:
                assert torch.equal(results[0], other), name


def test_refuses():
    x = torch.ones(2, 3)
    for name, tensors, kind, text in (
        ("sum", (x, torch.ones(2)), ValueError, "number of dimensions; expected 2, got 1"),
        ("sum", (x, torch.ones(2, 2)), ValueError, r"expected the sizes of the input \[2, 3\] or 1, got \[2, 2\]"),
        (
            "sum",
            (x.to(torch.complex64), torch.ones(2, 1)),
            TypeError,
            "a complex output for a complex input, got float32",
        ),
        ("mean", (x, torch.ones(2, 1, dtype=torch.int64)), TypeError, "mean: .* got int64"),
        ("amax", (x.to(torch.complex64), torch.ones(2, 1)), TypeError, "a real dtype, got complex64"),
        ("argmax", (x, torch.ones(2, 1)), TypeError, "int64 for indices, got float32"),
    ):
        with pytest.raises(KernelError, match=text) as error:
            call(name, *tensors)
        assert error.value.kind is kind
    with pytest.raises(KernelError, match="floating point or complex input, got int64"):
        call("norm", x.long(), 2.0, torch.ones(1, 1))
