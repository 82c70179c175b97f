"""Products of float32 and float64 matrices beside NumPy's long doubles: sizes about the kernel's tiles, all layouts."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight as torch

DTYPES = [np.float32, np.float64]
SIZES = [2, 3, 13, 14, 15, 16, 17, 28, 29, 31, 32, 33, 64, 65, 100, 129, 200]
TERMS = [1, 2, 7, 16, 33, 100, 192, 193, 384, 385, 800]  # a part of a sum has 384 (float32) or 192 terms


def layout(rng, rows, columns, dtype):
    """A matrix of random numbers: row-major, transposed, a part of a larger one, or with gaps in both directions."""
    kind = rng.integers(4)
    if kind == 0:
        return rng.standard_normal((rows, columns)).astype(dtype)
    if kind == 1:
        return rng.standard_normal((columns, rows)).astype(dtype).T
    if kind == 2:
        return rng.standard_normal((2 * rows, columns + 5)).astype(dtype)[::2, 2:-3]
    return rng.standard_normal((2 * rows, 3 * columns)).astype(dtype)[::2, ::3]


def check(out, a, b, alpha=1.0, beta=0.0, add=None):
    """Within the rounding of a sum in order, a bound far above what is measured."""
    wide = np.longdouble
    expected = alpha * (a.astype(wide) @ b.astype(wide))
    magnitude = abs(alpha) * (np.abs(a).astype(wide) @ np.abs(b).astype(wide))
    if beta:
        expected = expected + beta * add.astype(wide)
        magnitude = magnitude + abs(beta) * np.abs(add)
    assert (np.abs(out - expected) <= 8 * np.finfo(a.dtype).eps * magnitude).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seed", range(12))
def test_addmm_in_every_layout(dtype, seed):
    rng = np.random.default_rng(seed)
    for trial in range(25):
        m, n, k = int(rng.choice(SIZES)), int(rng.choice(SIZES)), int(rng.choice(TERMS))
        a, b, out = layout(rng, m, k, dtype), layout(rng, k, n, dtype), layout(rng, m, n, dtype)
        rows, columns = [(m, n), (1, n), (m, 1), (1, 1)][trial % 4]
        add = layout(rng, rows, columns, dtype)
        alpha, beta = float(rng.choice([1, -2])), float(rng.choice([0, 1, 0.5]))
        if beta == 0:
            out[...] = np.nan  # neither this nor the added matrix is read
            add[...] = np.nan
        torch.addmm(*map(torch.from_numpy, (add, a, b)), beta=beta, alpha=alpha, out=torch.from_numpy(out))
        check(out, a, b, alpha, beta, add)


@pytest.mark.parametrize("dtype", DTYPES)
def test_addmm_in_place_and_batches(dtype):
    rng = np.random.default_rng(0)
    a, b, c = (rng.standard_normal(s).astype(dtype) for s in ((150, 900), (900, 77), (150, 77)))
    out = torch.from_numpy(c.copy()).addmm_(torch.from_numpy(a), torch.from_numpy(b), beta=2)
    check(out.numpy(), a, b, 1, 2, c)
    # Batches whose matrices interleave in memory, as attention's do.
    p, v = rng.standard_normal((2, 50, 3, 40)).astype(dtype), rng.standard_normal((2, 3, 40, 33)).astype(dtype)
    out = torch.einsum("bihj,bhjd->bihd", torch.from_numpy(p), torch.from_numpy(v)).numpy()
    for i in range(2):
        for h in range(3):
            check(out[i, :, h], p[i, :, h], v[i, h])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("m", "n", "k"), [(500, 400, 300), (33, 900, 900), (900, 20, 1000), (257, 129, 801)])
def test_threads_change_no_bits(dtype, m, n, k):
    generator = torch.Generator().manual_seed(0)
    kind = {"dtype": getattr(torch, np.dtype(dtype).name), "generator": generator}
    a, b = torch.randn(m, k, **kind), torch.randn(k, n, **kind)
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        alone = a @ b
        torch.set_num_threads(2)
        assert torch.equal(a @ b, alone)
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize("dtype", DTYPES)
def test_infinities_and_nan_reach_their_rows_and_columns_alone(dtype):
    a, b = np.ones((40, 500), dtype), np.ones((500, 70), dtype)
    a[3, 400], b[450, 65] = np.inf, np.nan
    out = (torch.from_numpy(a) @ torch.from_numpy(b)).numpy()
    expected = np.full((40, 70), 500, dtype)
    expected[3], expected[:, 65] = np.inf, np.nan
    np.testing.assert_array_equal(out, expected)


@pytest.mark.skipif(torch.backends.cpu.get_cpu_capability() != "AVX512", reason="other levels use OpenBLAS's kernels")
@pytest.mark.parametrize("dtype", DTYPES)
def test_blocks_and_layouts_change_no_bits(dtype):
    """A corner of the product is the product of the corners, and transposed operands give the same, to the bit."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        m, n, k = rng.integers(20, 300, 3).tolist()
        a = torch.from_numpy(rng.standard_normal((m, k)).astype(dtype))
        b = torch.from_numpy(rng.standard_normal((k, n)).astype(dtype))
        whole = a @ b
        rows, columns = int(rng.integers(10, m)), int(rng.integers(10, n))
        assert torch.equal(whole[:rows, :columns], a[:rows] @ b[:, :columns])
        assert torch.equal(whole, a.t().contiguous().t() @ b.t().contiguous().t())
