"""Kernels that bound their working memory: sorting of 8-bit elements by counts, scans and softmax piece by piece."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight

SHAPES = [(129,), (3000,), (70_000,), (5, 300), (300, 5), (2, 40_000, 2)]


def bytes_of(dtype, shape, high, seed=0):
    values = np.random.default_rng(seed).integers(0, high, shape)
    return values > high // 2 if dtype is np.bool_ else values.astype(dtype)


@pytest.mark.parametrize("high", [2, 256])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.bool_])
def test_sort_bytes(dtype, shape, high):
    array = bytes_of(dtype, shape, high)
    whole = rushlight.from_numpy(array)
    for x, a in ((whole, array), (whole.transpose(0, -1), array.swapaxes(0, -1))):
        along = int(np.argmax(a.shape))
        order = np.argsort(a, along, kind="stable")
        values, indices = x.sort(dim=along, stable=True)
        assert np.array_equal(indices.numpy(), order)
        assert np.array_equal(values.numpy(), np.take_along_axis(a, order, along))
        values, indices = x.sort(dim=along, descending=True, stable=True)
        backwards = np.argsort(255 - a.astype(np.int32), along, kind="stable")
        assert np.array_equal(indices.numpy(), backwards)
        assert np.array_equal(values.numpy(), np.take_along_axis(a, backwards, along))
        if dtype is np.bool_:
            continue
        n = a.shape[along]
        for k in (1, n // 3, n):
            assert np.array_equal(x.kthvalue(k, along).indices.numpy(), np.take(order, k - 1, along))
            top = x.topk(k, along)
            assert np.array_equal(top.indices.numpy(), np.take(backwards, range(k), along))
        assert np.array_equal(x.median(along).indices.numpy(), np.take(order, (n - 1) // 2, along))


@pytest.mark.parametrize("n", [40_000, 140_000])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.bool_, np.int16])
def test_mode_and_unique_of_narrow_integers(dtype, n):
    array = bytes_of(dtype, (n,), 200)
    if dtype is np.int16:
        array = (array - 100) * 300  # from end to end
    x = rushlight.from_numpy(array)
    values, inverse, counts = np.unique(array, return_inverse=True, return_counts=True)
    ours, places, how_often = rushlight.unique(x, return_inverse=True, return_counts=True)
    assert ours.dtype == x.dtype and ours.tolist() == values.tolist() and how_often.tolist() == counts.tolist()
    assert np.array_equal(places.numpy(), inverse) and rushlight.unique(x).tolist() == values.tolist()
    assert rushlight.unique(x.view(2, -1), return_inverse=True)[1].shape == (2, n // 2)
    assert rushlight.msort(x).tolist() == np.sort(array).tolist()
    most = values[counts.argmax()]
    found = x.mode()
    assert found.values.item() == most and found.indices.item() == np.flatnonzero(array == most)[-1]


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_unique_and_msort_of_long_floats(dtype):
    array = (np.random.default_rng(3).integers(-300, 300, 140_000) / 2).astype(dtype)
    x = rushlight.from_numpy(array)
    values, counts = np.unique(array, return_counts=True)
    ours, how_often = rushlight.unique(x, return_counts=True)
    assert np.array_equal(ours.numpy(), values) and np.array_equal(how_often.numpy(), counts)
    assert np.array_equal(rushlight.msort(x).numpy(), np.sort(array))


KINDS = [np.bool_, np.uint8, np.int8, np.int64, np.float16, np.float32, np.float64]


@pytest.mark.parametrize("wanted", ["uint8", "int16", "int64", "float16", "float32", "float64"])
@pytest.mark.parametrize("dtype", KINDS)
def test_sums_and_scans_in_another_dtype_are_those_of_the_converted(dtype, wanted):
    """The conversion is left to the kernel where it can be: no bit may show it."""

    def same(a, b):
        assert np.array_equal(a.numpy(), b.numpy(), equal_nan=True)

    array = (np.random.default_rng(4).integers(-2, 3, (600, 300)) * 0.75).astype(dtype)
    x, d = rushlight.from_numpy(array), getattr(rushlight, wanted)
    for f in (rushlight.sum, rushlight.prod, rushlight.nansum):
        for dims in ((), (0,), (1,)):
            same(f(x, *dims, dtype=d), f(x.to(d), *dims, dtype=d))
    for f in (rushlight.cumsum, rushlight.cumprod):
        for dim in (0, 1):
            same(f(x, dim, dtype=d), f(x.to(d), dim, dtype=d))
    if wanted.startswith("float"):
        assert rushlight.equal(x.mean(dtype=d), x.to(d).mean())
    elif dtype not in (np.float16, np.float32, np.float64):
        with np.errstate(over="ignore"):
            assert np.array_equal(x.cumsum(1, dtype=d).numpy(), array.cumsum(1, dtype=wanted))


@pytest.mark.parametrize("shape", [(300_000,), (3, 100_000), (100_000, 3), (2, 70_000, 2)], ids=str)
@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int32])
def test_scans_in_slabs(dtype, shape):
    array = np.random.default_rng(1).integers(-3 if dtype != np.uint8 else 0, 4, shape).astype(dtype)
    dim = int(np.argmax(shape))
    x = rushlight.from_numpy(array)
    assert np.array_equal(x.cumsum(dim).numpy(), array.cumsum(dim, dtype=np.int64))
    assert np.array_equal(x.cumsum(dim, dtype=x.dtype).numpy(), array.cumsum(dim, dtype=dtype))
    wide = x.to(rushlight.int64)
    for name in ("cummax", "cummin"):
        values, indices = getattr(x, name)(dim)
        expected = getattr(wide, name)(dim)  # works in int64 as it is, without slabs
        extreme = (np.maximum if name == "cummax" else np.minimum).accumulate(array, dim)
        assert np.array_equal(values.numpy(), extreme)
        assert np.array_equal(indices.numpy(), expected.indices.numpy())


def test_running_maximum_keeps_nan_across_slabs():
    x = rushlight.zeros(300_000, dtype=rushlight.bfloat16)
    x[140_000] = float("nan")
    values, indices = x.cummax(0)
    assert not values[:140_000].isnan().any() and values[140_000:].isnan().all()
    assert indices[139_999].item() == 139_999 and (indices[140_000:] == 140_000).all()


@pytest.mark.parametrize(("shape", "dim"), [((700, 600), 1), ((600, 700), 0), ((3, 5, 40_000), 1)], ids=str)
def test_softmax_in_pieces(shape, dim):
    array = np.random.default_rng(2).standard_normal(shape).astype(np.float32)
    x = rushlight.from_numpy(array).to(rushlight.bfloat16).requires_grad_()
    exact = rushlight.from_numpy(x.detach().to(rushlight.float64).numpy()).requires_grad_()
    for name in ("softmax", "log_softmax"):
        got, want = getattr(x, name)(dim), getattr(exact, name)(dim)
        np.testing.assert_allclose(got.detach().float().numpy(), want.detach().numpy(), rtol=1e-2)
        weights = rushlight.arange(shape[dim], dtype=rushlight.float64).reshape(
            [-1 if d == dim else 1 for d in range(len(shape))]
        )
        weights = (weights * 0.7).cos()
        mine = rushlight.autograd.grad((got * weights.to(rushlight.bfloat16)).sum(dtype=rushlight.float32), x)[0]
        theirs = rushlight.autograd.grad((want * weights).sum(), exact)[0]
        assert (mine.double() - theirs).abs().max() <= 2e-2 * theirs.abs().max() + 1e-3
