"""Reductions along many short rows, which share a kernel, and down columns of 16-bit floats, against NumPy."""

import numpy as np
import pytest

import rushlight as rl

LENGTHS = [*range(1, 40), 63, 64, 65, 100, 127, 129, 511, 513, 2047, 2048, 2049]


@pytest.mark.parametrize("dtype", [rl.float32, rl.float64, rl.bfloat16, rl.float16])
def test_sums_means_and_extremes_of_rows(dtype):
    rl.manual_seed(1)
    for n in LENGTHS:
        x = rl.randn(37, n).to(dtype)
        wide = x.double().numpy()
        for view, array in ((x, wide), (rl.cat([x, x], 1)[:, :n], wide), (x[::3], wide[::3])):
            total, most, least = view.sum(1), view.amax(1), view.amin(1)
            np.testing.assert_array_equal(most.double().numpy(), array.max(1))
            np.testing.assert_array_equal(least.double().numpy(), array.min(1))
            tolerance = {rl.float64: 1e-14, rl.float32: 2e-6, rl.float16: 1e-3, rl.bfloat16: 8e-3}[dtype]
            scale = np.abs(array).sum(1)
            assert (np.abs(total.double().numpy() - array.sum(1)) <= tolerance * scale).all()
            got = view.mean(1).double().numpy()
            assert (np.abs(got - array.mean(1)) <= tolerance * scale / n).all()


@pytest.mark.parametrize("n", [5, 33, 100])
def test_rows_with_nan_infinities_and_large_numbers(n):
    x = rl.ones(20, n)
    x[3, n - 1] = float("nan")
    x[4, 0] = float("inf")
    x[5, 1] = float("-inf")
    x[6] = 3e38
    x[6, n // 2 :] = -3e38
    x[7] = -0.0
    total = x.sum(1)
    assert total[3].isnan() and total[4].item() == np.inf and total[5].item() == -np.inf
    assert total[6].item() == pytest.approx(x[6].double().sum().item(), abs=1e32)
    assert total[7].item() == 0
    assert x.amax(1)[3].isnan() and x.amin(1)[3].isnan() and x.amin(1)[5].item() == -np.inf
    assert x.nansum(1)[3].item() == n - 1
    assert rl.full((20, n), -np.inf).amax(1).tolist() == [-np.inf] * 20


@pytest.mark.parametrize("columns", [1, 3, 10, 31, 100, 513, 1000])
@pytest.mark.parametrize("dtype", [rl.bfloat16, rl.float16])
def test_sums_of_16_bits_down_columns(dtype, columns):
    rl.manual_seed(2)
    for rows in (1, 2, 5, 63, 64, 65, 1000):
        x = rl.randn(rows, columns).to(dtype)
        array = x.double().numpy()
        for view, wide in ((x, array), (x[::2], array[::2]), (rl.cat([x, x], 1)[:, :columns], array)):
            got = view.sum(0, dtype=rl.float32).double().numpy()
            np.testing.assert_allclose(got, wide.sum(0), atol=1e-5 * np.abs(wide).sum(0).max() + 1e-9, rtol=0)
            assert view.sum(0).dtype == dtype
            close = view.mean(0).double().numpy()
            np.testing.assert_allclose(close, wide.mean(0), atol=1e-6, rtol=8e-3)
    x = rl.full((300, columns), rl.finfo(dtype).max / 2).to(dtype)
    x[::2] *= -1
    assert x.sum(0).abs().max() == 0


INTEGERS = [rl.uint8, rl.int8, rl.int16, rl.int32, rl.int64]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_along_rows_and_down_columns(dtype):
    """The whole range of the dtype: sums and products wrap around in int64, extremes stay in the dtype."""
    random, info = np.random.default_rng(3), rl.iinfo(dtype)
    for n in LENGTHS:
        wide = random.integers(info.min, info.max, (37, n), endpoint=True)
        wide[5], wide[6] = info.min, info.max
        for view, array in ((wide, wide), (wide[::3], wide[::3]), (wide.T.copy().T, wide)):
            x = rl.from_numpy(view).to(dtype)
            for axis in (0, 1):
                least, most = x.aminmax(dim=axis)
                np.testing.assert_array_equal(x.sum(axis).numpy(), array.sum(axis))
                np.testing.assert_array_equal(x.prod(axis).numpy(), array.prod(axis))
                np.testing.assert_array_equal(x.amax(axis).numpy(), array.max(axis))
                np.testing.assert_array_equal(x.amin(axis).numpy(), array.min(axis))
                np.testing.assert_array_equal(least.numpy(), array.min(axis))
                np.testing.assert_array_equal(most.numpy(), array.max(axis))
                np.testing.assert_array_equal(x.any(axis).numpy() != 0, array.any(axis))
                np.testing.assert_array_equal(rl.count_nonzero(x, axis).numpy(), (array != 0).sum(axis))


@pytest.mark.parametrize("dtype", [*INTEGERS, rl.float16, rl.float32, rl.float64])
def test_indices_of_extremes_are_those_of_the_first_of_equals(dtype):
    random = np.random.default_rng(4)
    for n in LENGTHS:
        array = random.integers(0, 4, (37, n))  # many ties
        array[5] = 2
        x = rl.from_numpy(array).to(dtype)
        if dtype.is_floating_point:
            x[6] = -np.inf
            x[7] = np.inf
            x[8, random.integers(0, n, 2)] = np.nan
        wide = x.double().numpy()
        for axis in (0, 1):
            np.testing.assert_array_equal(x.argmax(axis).numpy(), wide.argmax(axis))
            np.testing.assert_array_equal(x.argmin(axis).numpy(), wide.argmin(axis))
            values, places = x.max(axis)
            np.testing.assert_array_equal(values.double().numpy(), wide.max(axis))
            np.testing.assert_array_equal(places.numpy(), wide.argmax(axis))


@pytest.mark.parametrize("dtype", [rl.float16, rl.float32, rl.float64])
def test_norms_and_products_of_rows(dtype):
    rl.manual_seed(5)
    tolerance = {rl.float64: 1e-13, rl.float32: 2e-6, rl.float16: 2e-3}[dtype]
    for n in LENGTHS:
        x = (rl.rand(37, n) / n + 1).to(dtype)
        x[::2] *= -1
        wide = x.double().numpy()
        for axis in (0, 1):
            product = wide.prod(axis)
            fine = np.abs(product) < 60000  # of float16
            np.testing.assert_allclose(x.prod(axis).double().numpy()[fine], product[fine], rtol=tolerance)
            for order in (1, 2, 3, np.inf, -np.inf):
                got = rl.linalg.vector_norm(x, order, axis).double().numpy()
                np.testing.assert_allclose(got, np.linalg.norm(wide, order, axis), rtol=tolerance)


@pytest.mark.parametrize("dtype", [*INTEGERS, rl.float16, rl.bfloat16, rl.float32, rl.float64])
def test_running_extremes_take_the_last_of_equals(dtype):
    random = np.random.default_rng(6)
    for n in (1, 2, 7, 33, 300):
        array = random.integers(0, 9, (7, n))
        x = rl.from_numpy(array).to(dtype)
        for view, wide in ((x, array), (x[::2], array[::2])):
            for axis in (0, 1):
                values, places = view.cummax(axis)
                most = np.maximum.accumulate(wide, axis)
                np.testing.assert_array_equal(values.double().numpy(), most)
                steps = np.indices(wide.shape)[axis]
                last = np.maximum.accumulate(np.where(wide == most, steps, 0), axis)
                np.testing.assert_array_equal(places.numpy(), last)
                assert values.dtype == dtype and places.dtype == rl.int64


@pytest.mark.parametrize("dtype", [rl.uint8, rl.int32, rl.int64, rl.bfloat16, rl.float32, rl.float64])
@pytest.mark.parametrize("n", [255, 256, 300, 1000, 1025])
def test_the_first_few_of_rows_and_columns(dtype, n):
    array = np.random.default_rng(7).integers(0, 200, (9, n))
    for k in (1, 4, 31):
        for view, wide, axis in ((array, array, 1), (array.T.copy(), array.T, 0)):
            x = rl.from_numpy(view).to(dtype)
            for largest in (False, True):
                values, places = x.topk(k, axis, largest)
                order = np.sort(wide, axis)
                expected = np.flip(order, axis) if largest else order
                np.testing.assert_array_equal(values.double().numpy(), np.take(expected, range(k), axis))
                np.testing.assert_array_equal(np.take_along_axis(wide, places.numpy(), axis), values.double().numpy())


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("n", [5, 33, 1000, 5000])
def test_the_first_nan_is_the_extreme_with_its_place(dtype: str, n: int) -> None:
    """As in NumPy, along rows, down columns and over everything."""
    numbers = np.random.default_rng(n)
    for count in (1, 3):
        values = numbers.standard_normal((4, n)).astype(np.float32)
        for row in values:
            row[numbers.integers(0, n, count)] = np.nan
        x = rl.tensor(values).to(getattr(rl, dtype))
        for function, reference in ((rl.argmax, np.argmax), (rl.argmin, np.argmin)):
            np.testing.assert_array_equal(function(x, 1).numpy(), reference(values, 1))
            np.testing.assert_array_equal(function(x.t().contiguous(), 0).numpy(), reference(values, 1))
            assert function(x).item() == reference(values)
        for function in (rl.max, rl.min):
            found = function(x, 1)
            assert found.values.isnan().all()
            np.testing.assert_array_equal(found.indices.numpy(), np.argmax(values, 1))
