"""Factors of matrices that are cut into blocks: against NumPy in float64, with any number of threads the same bits."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight as rl
from rushlight.autograd import gradcheck, gradgradcheck

linalg = rl.linalg
EPS = {np.float32: 1e-3, np.float64: 1e-10, np.complex64: 1e-3, np.complex128: 1e-10}
SHAPES = [(160, 160), (201, 201), (400, 170), (170, 400), (333, 332)]


def array(*shape, dtype=np.float64, seed=0):
    rng = np.random.default_rng([seed, *shape])
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape)).astype(dtype) if np.dtype(dtype).kind == "c" else x.astype(dtype)


def same_with_any_threads(function, *inputs):
    threads = rl.get_num_threads()
    results = []
    try:
        for count in (1, 2, 3):
            rl.set_num_threads(count)
            results.append(function(*inputs))
    finally:
        rl.set_num_threads(threads)
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            assert a.numpy().tobytes() == b.numpy().tobytes()
    return results[0]


@pytest.mark.parametrize("dtype", list(EPS))
@pytest.mark.parametrize("shape", SHAPES)
def test_lu_of_blocks(shape, dtype):
    x = array(*shape, dtype=dtype)
    for a in (rl.from_numpy(x), rl.from_numpy(np.ascontiguousarray(x.T)).T):
        lu, pivots = same_with_any_threads(linalg.lu_factor, a)
        p, lower, upper = rl.lu_unpack(lu, pivots)
        product = p.numpy() @ lower.numpy().astype(np.complex128) @ upper.numpy()
        assert np.abs(product - x).max() < EPS[dtype] * np.abs(x).max()
        limit = 1 if np.dtype(dtype).kind == "f" else 2**0.5
        assert np.abs(lower.numpy()).max() <= limit * (1 + 1e-6)  # the largest of each column was the pivot


def test_pivots_are_those_of_the_plain_algorithm():
    x = array(250, 250)
    _, pivots, _ = linalg.lu_factor_ex(rl.from_numpy(x))
    a, expected = x.copy(), []
    for j in range(250):
        best = j + int(np.abs(a[j:, j]).argmax())
        expected.append(best + 1)
        a[[j, best]] = a[[best, j]]
        a[j + 1 :, j] /= a[j, j]
        a[j + 1 :, j + 1 :] -= np.outer(a[j + 1 :, j], a[j, j + 1 :])
    assert pivots.tolist() == expected


@pytest.mark.parametrize("where", [0, 31, 100, 199])
def test_the_first_zero_pivot_is_named(where):
    x = np.triu(array(200, 200)) + 20 * np.eye(200)
    x[:, where] = 0
    x[where + 1 :, where + 1 :] *= 2
    lu = linalg.lu_factor_ex(rl.from_numpy(x))
    assert lu.info.item() == where + 1
    with pytest.raises(linalg.LinAlgError, match=str(where + 1)):
        linalg.inv(rl.from_numpy(x))
    assert rl.from_numpy(x).det().item() == 0


@pytest.mark.parametrize("dtype", list(EPS))
@pytest.mark.parametrize("n", [13, 64, 160, 301])
def test_inverse_and_solutions(n, dtype):
    x = array(n, n, dtype=dtype) + (2 * n**0.5 * np.eye(n)).astype(dtype)
    wide = x.astype(np.complex128 if np.dtype(dtype).kind == "c" else np.float64)
    for a in (rl.from_numpy(x), rl.from_numpy(np.ascontiguousarray(x.T)).T):
        (inverse,) = same_with_any_threads(lambda m: (linalg.inv(m),), a)
        np.testing.assert_allclose(inverse.numpy(), np.linalg.inv(wide), atol=EPS[dtype])
        out = rl.empty(n, n, dtype=inverse.dtype).T
        np.testing.assert_array_equal(linalg.inv(a, out=out).numpy(), inverse.numpy())
        for count in (1, 200):
            b = array(n, count, dtype=dtype, seed=1)
            (solution,) = same_with_any_threads(lambda m, r: (linalg.solve(m, r),), a, rl.from_numpy(b))
            np.testing.assert_allclose(solution.numpy(), np.linalg.solve(wide, b), atol=EPS[dtype])


@pytest.mark.parametrize("name", ["solve", "solve from the right", "det", "slogdet"])
def test_derivatives_from_the_factors_are_those_of_solving_again(name):
    functions = {
        "solve": lambda a, b: linalg.solve(a, b),
        "solve from the right": lambda a, b: linalg.solve(a, b, left=False),
        "det": lambda a, b: linalg.det(a / 2),
        "slogdet": lambda a, b: linalg.slogdet(a)[1],
    }
    function = functions[name]
    n = 17
    a = rl.from_numpy(array(2, n, n) / 5 + 2 * np.eye(n)).requires_grad_()
    b = rl.from_numpy(array(2, n, n, seed=1)).requires_grad_()
    (first,) = rl.autograd.grad(function(a, b).sum(), [a])
    (again,) = rl.autograd.grad(function(a, b).sum(), [a], create_graph=True)
    assert again.requires_grad and not first.requires_grad
    np.testing.assert_allclose(first.numpy(), again.detach().numpy(), rtol=1e-10, atol=1e-10)
    one = (a[:1].detach().requires_grad_(), b[:1].detach().requires_grad_())
    assert gradcheck(lambda x, y: function(x, y).sum(), one) and gradgradcheck(lambda x, y: function(x, y).sum(), one)


@pytest.mark.parametrize("dtype", list(EPS))
@pytest.mark.parametrize("n", [160, 257])
@pytest.mark.parametrize("uplo", ["L", "U"])
def test_eigenvectors_of_large_matrices(n, dtype, uplo):
    x = array(n, n, dtype=dtype)
    x = x + x.conj().T
    wide = x.astype(np.complex128)
    one = rl.from_numpy(np.tril(x) if uplo == "L" else np.triu(x))
    values, vectors = same_with_any_threads(lambda m: linalg.eigh(m, UPLO=uplo), one)
    v, w = vectors.numpy().astype(np.complex128), values.numpy()
    scale = np.abs(w).max()
    np.testing.assert_allclose(w, np.linalg.eigvalsh(wide), atol=EPS[dtype] / 10 * scale)
    assert np.abs(v.conj().T @ v - np.eye(n)).max() < EPS[dtype]
    assert np.abs(wide @ v - v * w).max() < EPS[dtype] / 10 * scale


@pytest.mark.parametrize("factor", [0.0, 1e-30, 1e25])
def test_eigenvectors_of_numbers_of_extreme_size(factor):
    x = array(170, 170)
    x = ((x + x.T) * factor).astype(np.float32)
    values, vectors = linalg.eigh(rl.from_numpy(x))
    v = vectors.numpy().astype(np.float64)
    assert np.abs(v.T @ v - np.eye(170)).max() < 1e-4
    np.testing.assert_allclose(values.numpy(), np.linalg.eigvalsh(x.astype(np.float64)), atol=1e-4 * factor)
