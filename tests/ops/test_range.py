"""Results that their dtype holds, of operands whose sum or squares it does not.

The expected numbers are worked out by hand, or by NumPy in long double.
"""

import numpy as np
import pytest

import rushlight as rl
from rushlight.nn import functional

GREAT = {rl.float32: 3e38, rl.float64: 1.7e308, rl.float16: 6e4, rl.bfloat16: 3e38}
each_dtype = pytest.mark.parametrize("dtype", GREAT, ids=str)


def great(shape, dtype):
    return rl.full(shape, GREAT[dtype], dtype=dtype)


def assert_all(result, expected):
    """All elements are the expected number within 1 %, which an overflow is far from."""
    assert result.numel() > 0
    assert np.allclose(np.array(result.double().tolist()) / expected, 1, rtol=0.01), (result, expected)


@each_dtype
@pytest.mark.parametrize("spatial", [1, 2, 3])
def test_means_of_windows(spatial, dtype):
    x = great((2, 3) + (9,) * spatial, dtype)
    pool = getattr(functional, f"avg_pool{spatial}d")
    adaptive = getattr(functional, f"adaptive_avg_pool{spatial}d")
    for result in (
        pool(x, 4),
        pool(x, 3, 2),
        adaptive(x, 4),
        adaptive(x, 1),
        functional.interpolate(x, 4, mode="area"),
    ):
        assert_all(result, GREAT[dtype])
    if spatial == 2:
        assert_all(adaptive(x.contiguous(memory_format=rl.channels_last), 2), GREAT[dtype])


def test_an_infinite_element_makes_only_its_own_windows_infinite():
    x = great((1, 1, 8), rl.float32)
    x[0, 0, 5] = float("inf")
    x[0, 0, 0] = float("nan")
    assert functional.avg_pool1d(x, 2)[0, 0, 1:].tolist() == [
        GREAT[rl.float32].__class__(x[0, 0, 1]),
        float("inf"),
        float(x[0, 0, 1]),
    ]
    assert functional.adaptive_avg_pool1d(x, 4).isnan().tolist() == [[[True, False, False, False]]]


@each_dtype
def test_means_of_what_is_left(dtype):
    x = great((50, 3), dtype)
    x[::7] = float("nan")
    assert_all(x.nanmean(), GREAT[dtype])
    assert_all(x.nanmean(0), GREAT[dtype])
    assert_all(rl.masked.mean(x, 0, mask=~x.isnan()), GREAT[dtype])
    assert_all(rl.func.vmap(rl.nanmean)(x[1:3]), GREAT[dtype])
    assert x.nanmean(0).dtype == dtype


def test_a_mean_of_infinite_elements_stays_infinite_and_has_its_derivative():
    assert rl.tensor([float("inf"), 1.0]).nanmean().item() == float("inf")
    x = great((4,), rl.float32).requires_grad_()
    x.nanmean().backward()
    assert x.grad.tolist() == [0.25] * 4


@pytest.mark.parametrize("dtype", [rl.float32, rl.float64], ids=str)
def test_covariances(dtype):
    scale = GREAT[dtype]
    assert_all(rl.cov(great((3, 5), dtype)) + 1, 1)  # of constants
    x = [[1.0, 2.0, 3.0, 5.0], [3.0, 2.0, 5.0, 4.0]]
    result = rl.corrcoef(rl.tensor(x, dtype=dtype) * (scale / 5))
    assert np.allclose(result.numpy(), np.corrcoef(x), atol=1e-6)


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0, float("inf")])
@pytest.mark.parametrize("dtype", [rl.float32, rl.float64], ids=str)
def test_distances(dtype, p):
    scale = GREAT[dtype] / 16
    expected = 2 * scale * 3 ** (1 / p)
    for rows in (2, 30):  # 30 go through a matrix product
        assert_all(rl.cdist(great((rows, 3), dtype) / 16, -great((40, 3), dtype) / 16, p), expected)


@each_dtype
def test_distances_of_many_points(dtype):
    scale = GREAT[dtype] / 4
    assert_all(rl.cdist(great((30, 3), dtype) / 4, -great((40, 3), dtype) / 4), 2 * scale * 3**0.5)


@each_dtype
def test_integrals(dtype):
    y = great((4,), dtype)
    assert_all(rl.trapezoid(y, dx=0.25), 0.75 * GREAT[dtype])
    assert_all(rl.trapezoid(y, rl.tensor([0, 0.25, 0.5, 0.75], dtype=dtype)), 0.75 * GREAT[dtype])
    expected = rl.tensor([0.25, 0.5, 0.75], dtype=rl.float64) * (GREAT[dtype] / 1e4)
    assert rl.allclose(rl.cumulative_trapezoid(y, dx=0.25).double() / 1e4, expected, rtol=0.01)
    y.requires_grad_()
    rl.trapezoid(y, dx=0.25).backward()
    assert y.grad.tolist() == [0.125, 0.25, 0.25, 0.125]


@each_dtype
def test_angles(dtype):
    x = great((2, 5), dtype).requires_grad_()
    turned = x.detach() * rl.tensor([1, -1, 1, -1, 1], dtype=dtype)
    assert_all(functional.cosine_similarity(x, x.detach()), 1)
    cosines = functional.cosine_similarity(x, turned)
    assert_all(cosines, 0.2)
    cosines.sum().backward()
    assert x.grad.isfinite().all()


@each_dtype
def test_steps(dtype):
    great_number = GREAT[dtype]
    line = rl.linspace(-great_number, great_number, 5, dtype=dtype).double().numpy() / great_number
    assert np.allclose(line, [-1, -0.5, 0, 0.5, 1], atol=0.01)
    exponent = np.log10(great_number) * 0.999
    last = rl.logspace(-exponent, exponent, 3, dtype=dtype)[-1].double().item()
    assert np.isclose(np.log10(last), exponent, rtol=0.01)
