"""Linear algebra against definitions (A = L L^H and so on), NumPy and hand calculation; edges first."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import rushlight as rl
from rushlight.autograd import gradcheck, gradgradcheck

linalg = rl.linalg
FLOATS = [rl.float32, rl.float64, rl.complex64, rl.complex128]
EPS = {rl.float32: 2e-5, rl.float64: 1e-12, rl.complex64: 2e-5, rl.complex128: 1e-12}


def near(a, b, dtype, scale=1.0):
    a, b = np.asarray(a.numpy()), np.asarray(b.numpy() if isinstance(b, rl.Tensor) else b)
    assert a.shape == b.shape
    assert a.size == 0 or np.abs(a - b).max() <= EPS[dtype] * scale * max(1.0, np.abs(b).max())


def matrix(*shape, dtype=rl.float64, seed=0):
    rng = np.random.default_rng(seed)
    a = rng.standard_normal(shape)
    if dtype.is_complex:
        a = a + 1j * rng.standard_normal(shape)
    return rl.from_numpy(a).to(dtype)


def positive(*shape, dtype=rl.float64, seed=0):
    a = matrix(*shape, dtype=dtype, seed=seed)
    return a @ a.mH + rl.eye(shape[-1], dtype=dtype) * shape[-1]


def layouts(a):
    """The same matrix in memory in four ways."""
    yield a
    yield a.mT.contiguous().mT
    wide = rl.zeros(*a.shape[:-1], 2 * a.shape[-1], dtype=a.dtype)
    wide[..., ::2] = a
    yield wide[..., ::2]
    yield a.unsqueeze(0).expand(2, *a.shape)[1]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("n", [0, 1, 2, 5, 40])
@pytest.mark.parametrize("upper", [False, True])
def test_cholesky_is_a_factor(dtype, n, upper):
    for a in layouts(positive(3, n, n, dtype=dtype)):
        c = linalg.cholesky(a, upper=upper)
        near(c.mH @ c if upper else c @ c.mH, a, dtype, 10)
        near(c, c.triu() if upper else c.tril(), dtype)
        if n:
            near(rl.cholesky_inverse(c, upper) @ a, np.broadcast_to(np.eye(n), (3, n, n)), dtype, 50)
            b = matrix(3, n, 2, dtype=dtype, seed=1)
            near(a @ rl.cholesky_solve(b, c, upper), b, dtype, 50)


def test_cholesky_reads_one_triangle():
    a = positive(4, 4)
    wrong = a.tril() + matrix(4, 4, seed=3).triu(1)
    near(linalg.cholesky(wrong), linalg.cholesky(a), rl.float64)


def test_errors_name_the_batch_element_and_the_step():
    a = rl.eye(3).expand(4, 3, 3).clone()
    a[2, 1, 1] = -1
    with pytest.raises(linalg.LinAlgError, match=r"linalg.cholesky: \(Batch element 2\).*order 2"):
        linalg.cholesky(a)
    _, info = linalg.cholesky_ex(a)
    assert info.tolist() == [0, 0, 2, 0]
    a[2, 1, 1] = 0
    with pytest.raises(linalg.LinAlgError, match=r"\(Batch element 2\).*2"):
        linalg.inv(a)
    with pytest.raises(RuntimeError, match="singular"):
        linalg.solve(a[2], rl.ones(3))
    assert linalg.inv_ex(a)[1].tolist() == [0, 0, 2, 0]
    assert issubclass(linalg.LinAlgError, RuntimeError)


@pytest.mark.parametrize("bad", ["ndim", "square", "integers", "half"])
@pytest.mark.parametrize("function", ["cholesky", "inv", "det", "slogdet", "eigh", "eig", "matrix_exp"])
def test_bad_matrices_are_refused(bad, function):
    a = {
        "ndim": rl.ones(3),
        "square": rl.ones(2, 3),
        "integers": rl.ones(2, 2, dtype=rl.int64),
        "half": rl.eye(2, dtype=rl.float16),
    }[bad]
    if bad == "half" and function == "matrix_exp":
        pytest.skip("takes float16")
    with pytest.raises(RuntimeError):
        getattr(linalg, function)(a)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(0, 0), (1, 1), (4, 4), (3, 6), (6, 3), (2, 5, 5), (0, 3, 3), (33, 20)])
def test_lu(dtype, shape):
    for a in layouts(matrix(*shape, dtype=dtype)):
        p, lower, upper = linalg.lu(a)
        near(p @ lower @ upper, a, dtype, 10)
        lu, pivots = linalg.lu_factor(a)
        assert pivots.dtype == rl.int32
        q, lower2, upper2 = rl.lu_unpack(lu, pivots)
        near(q @ lower2 @ upper2, a, dtype, 10)
        assert rl.lu_unpack(lu, pivots, unpack_data=False).L.shape == (0,)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("left", "adjoint"), list(itertools.product([True, False], repeat=2)))
def test_solve_with_factors(dtype, left, adjoint):
    a, b = matrix(2, 1, 4, 4, dtype=dtype), matrix(3, 4, 4, dtype=dtype, seed=1)
    x = linalg.lu_solve(*linalg.lu_factor(a), b, left=left, adjoint=adjoint)
    op = a.mH if adjoint else a
    near(op @ x if left else x @ op, b.expand(2, 3, 4, 4), dtype, 100)


def test_pivots_outside_the_matrix_are_refused():
    lu, pivots = linalg.lu_factor(matrix(3, 3))
    with pytest.raises(RuntimeError, match="pivots"):
        linalg.lu_solve(lu, pivots + 5, rl.ones(3, 1, dtype=rl.float64))
    with pytest.raises(RuntimeError, match="pivots"):
        rl.lu_unpack(lu, pivots - 4)


@pytest.mark.parametrize("dtype", FLOATS)
def test_solve(dtype):
    a = matrix(3, 5, 5, dtype=dtype)
    b = matrix(3, 5, 2, dtype=dtype, seed=1)
    near(a @ linalg.solve(a, b), b, dtype, 100)
    near(linalg.solve(a, b.mT, left=False) @ a, b.mT, dtype, 100)
    v = matrix(3, 5, dtype=dtype, seed=2)
    near((a @ linalg.solve(a, v).unsqueeze(-1)).squeeze(-1), v, dtype, 100)
    one = matrix(5, dtype=dtype, seed=3)
    near(a[0] @ linalg.solve(a[0], one), one, dtype, 100)
    near(a @ linalg.solve(a, b[0]), b[0].expand(3, 5, 2), dtype, 100)
    near(linalg.inv(a) @ a, np.broadcast_to(np.eye(5), (3, 5, 5)), dtype, 100)
    out = rl.empty(0, dtype=dtype)
    assert linalg.inv(a, out=out) is out
    near(out, linalg.inv(a), dtype)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("upper", "left", "unit"), list(itertools.product([True, False], repeat=3)))
def test_triangular_systems_in_every_layout(dtype, upper, left, unit):
    full = matrix(4, 4, dtype=dtype) + 3 * rl.eye(4, dtype=dtype)
    t = full.triu() if upper else full.tril()
    if unit:
        t = t - rl.diag(rl.diag(t)) + rl.eye(4, dtype=dtype)
    b = matrix(2, 4, 4, dtype=dtype, seed=1)
    for a, right in itertools.product(layouts(full), layouts(b)):
        x = linalg.solve_triangular(a, right, upper=upper, left=left, unitriangular=unit)
        near(t @ x if left else x @ t, b, dtype, 200)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (4, 4), (6, 3), (3, 6), (2, 5, 2), (40, 33)])
def test_qr(dtype, shape):
    m, n = shape[-2:]
    a = matrix(*shape, dtype=dtype)
    for mode, k in (("reduced", min(m, n)), ("complete", m)):
        q, r = linalg.qr(a, mode)
        assert q.shape == (*shape[:-1], k) and r.shape == (*shape[:-2], k, n)
        near(q @ r, a, dtype, 10)
        near(q.mH @ q, np.broadcast_to(np.eye(k), (*shape[:-2], k, k)), dtype, 10)
        near(r, r.triu(), dtype)
    q, r = linalg.qr(a, "r")
    assert q.shape == (0,)
    near(r, linalg.qr(a)[1], dtype, 10)
    h, tau = rl.geqrf(a)
    if m >= n:
        near(linalg.householder_product(h, tau), linalg.qr(a)[0], dtype, 10)
    if m and n:
        c = matrix(*shape[:-2], m, 3, dtype=dtype, seed=1)
        q = linalg.qr(a, "complete")[0]
        near(rl.ormqr(h, tau, c), q @ c, dtype, 10)
        near(rl.ormqr(h, tau, c, True, True), q.mH @ c, dtype, 10)
        near(rl.ormqr(h, tau, c.mT, False), c.mT @ q, dtype, 10)
    with pytest.raises(RuntimeError, match="mode"):
        linalg.qr(a, "other")


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("n", [0, 1, 3, 30])
def test_eigenvalues(dtype, n):
    a = positive(2, n, n, dtype=dtype)
    for uplo in "LU":
        w, v = linalg.eigh(a, uplo)
        assert not w.is_complex() and w.shape == (2, n)
        near(v @ rl.diag_embed(w.to(dtype)) @ v.mH, a, dtype, 50)
        near(linalg.eigvalsh(a, uplo), w, dtype, 50)
    b = matrix(2, n, n, dtype=dtype, seed=4)
    w, v = linalg.eig(b)
    assert w.is_complex() and v.is_complex()
    near(b.to(v.dtype) @ v, v * w.unsqueeze(-2), dtype, 50)
    near(linalg.eigvals(b).abs().sum(-1), w.abs().sum(-1), dtype, 50)


def test_eigenvalues_of_a_rotation_and_of_nan():
    w, _ = linalg.eig(rl.tensor([[0.0, -1.0], [1.0, 0.0]]))
    assert sorted(w.tolist(), key=lambda z: z.imag) == [-1j, 1j]
    with pytest.raises(RuntimeError, match="infs or NaNs"):
        linalg.eig(rl.tensor([[float("nan")]]))
    with pytest.raises(RuntimeError, match="UPLO"):
        linalg.eigh(rl.eye(2), "X")


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (4, 4), (6, 3), (3, 6), (2, 5, 2), (40, 33)])
def test_svd(dtype, shape):
    m, n = shape[-2:]
    k = min(m, n)
    a = matrix(*shape, dtype=dtype)
    for full in (True, False):
        u, s, vh = linalg.svd(a, full_matrices=full)
        assert u.shape[-1] == (m if full else k) and vh.shape[-2] == (n if full else k)
        near(u[..., :k] @ rl.diag_embed(s.to(dtype)) @ vh[..., :k, :], a, dtype, 20)
        near(u.mH @ u, np.broadcast_to(np.eye(u.shape[-1]), (*shape[:-2], u.shape[-1], u.shape[-1])), dtype, 20)
    near(linalg.svdvals(a), s, dtype, 20)
    if a.numel():
        near(s, np.linalg.svd(a.numpy(), compute_uv=False), dtype, 20)
    with pytest.raises(RuntimeError, match="driver"):
        linalg.svd(a, driver="gesvd")


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("dtype", [rl.float32, rl.float64, rl.complex64, rl.complex128], ids=str)
def test_singular_values_of_what_is_not_finite_are_refused(dtype, bad):
    # LAPACK's iterations over infinite elements may never end.
    for place in ((0, 0), (1, 0), (2, 2)):
        a = rl.stack([rl.eye(3, dtype=dtype), rl.eye(3, dtype=dtype)])
        a[(1, *place)] = bad
        for function in (rl.linalg.svd, rl.linalg.svdvals, rl.linalg.matrix_rank, rl.linalg.pinv, rl.linalg.cond):
            with pytest.raises(rl.linalg.LinAlgError, match=r"Batch element 1.*non-finite"):
                function(a)
        for driver in ("gelsd", "gelss"):
            with pytest.raises(rl.linalg.LinAlgError, match="full rank"):
                rl.linalg.lstsq(a, a, driver=driver)


def test_names_of_results():
    r = linalg.svd(rl.eye(2))
    assert r.U is r[0] and r.S is r[1] and r.Vh is r[2]
    assert linalg.eigh(rl.eye(2)).eigenvalues.tolist() == [1, 1]
    assert linalg.slogdet(rl.eye(2)).logabsdet.item() == 0
    assert linalg.lu_factor_ex(rl.eye(2)).info.item() == 0
    assert rl.qr(rl.eye(2)).R.shape == (2, 2)
    assert rl.svd(rl.eye(2)).V.shape == (2, 2)
    assert linalg.lstsq(rl.eye(2), rl.eye(2)).solution.shape == (2, 2)


@pytest.mark.parametrize("dtype", FLOATS)
def test_determinants(dtype):
    a = matrix(3, 4, 4, dtype=dtype)
    near(linalg.det(a), np.linalg.det(a.numpy()), dtype, 20)
    sign, size = linalg.slogdet(a)
    near(sign * size.exp(), np.linalg.det(a.numpy()), dtype, 20)
    assert linalg.det(rl.ones(0, 0, dtype=dtype)).item() == 1
    assert linalg.det(rl.zeros(2, 2, dtype=dtype)).item() == 0
    assert linalg.slogdet(rl.zeros(2, 2, dtype=dtype)).logabsdet.item() == float("-inf")
    assert rl.logdet(rl.diag(rl.tensor([-1.0, 2.0]))).isnan().item()


def test_gradient_of_a_singular_determinant_is_the_adjugate():
    a = rl.tensor([[1.0, 2.0], [2.0, 4.0]], dtype=rl.float64, requires_grad=True)
    linalg.det(a).backward()
    near(a.grad, np.array([[4.0, -2.0], [-2.0, 1.0]]), rl.float64)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("hermitian", [False, True])
def test_ldl(dtype, hermitian):
    a = matrix(2, 5, 5, dtype=dtype)
    a = a + (a.mH if hermitian else a.mT)
    ld, pivots = linalg.ldl_factor(a, hermitian=hermitian)
    b = matrix(2, 5, 3, dtype=dtype, seed=1)
    near(a @ linalg.ldl_solve(ld, pivots, b, hermitian=hermitian), b, dtype, 100)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("driver", [None, "gels", "gelsy", "gelsd", "gelss"])
@pytest.mark.parametrize(("m", "n"), [(6, 3), (3, 6), (4, 4)])
def test_least_squares_agrees_with_numpy(dtype, driver, m, n):
    a, b = matrix(2, m, n, dtype=dtype), matrix(2, m, 2, dtype=dtype, seed=1)
    x, residuals, rank, values = linalg.lstsq(a, b, driver=driver)
    for i in range(2):
        want = np.linalg.lstsq(a[i].numpy(), b[i].numpy(), rcond=None)
        near(x[i], want[0], dtype, 100)
        if residuals.numel():
            near(residuals[i], want[1], dtype, 100)
        if values.numel():
            near(values[i], want[3], dtype, 50)
    assert rank.tolist() == ([] if driver == "gels" else [min(m, n)] * 2)
    assert (residuals.numel() > 0) == (m > n and driver in ("gels", "gelsd", "gelss"))


def test_least_squares_of_a_vector_and_of_nothing():
    a = matrix(5, 2)
    b = matrix(5, seed=1)
    near(linalg.lstsq(a, b).solution, np.linalg.lstsq(a.numpy(), b.numpy(), rcond=None)[0], rl.float64, 10)
    assert linalg.lstsq(rl.zeros(0, 3), rl.zeros(0, 2)).solution.tolist() == [[0, 0]] * 3
    with pytest.raises(RuntimeError, match="driver"):
        linalg.lstsq(a, b, driver="other")


def test_pseudoinverse_rank_condition():
    a = matrix(5, 3) @ matrix(3, 4, seed=1)
    p = linalg.pinv(a)
    near(p, np.linalg.pinv(a.numpy(), rcond=1e-12), rl.float64, 100)
    near(a @ p @ a, a, rl.float64, 100)
    assert linalg.matrix_rank(a).item() == 3
    assert linalg.matrix_rank(rl.zeros(0, 3)).item() == 0
    assert linalg.matrix_rank(rl.diag(rl.tensor([1.0, 0.1, 0.01])), tol=0.05).item() == 2
    assert linalg.matrix_rank(rl.diag(rl.tensor([1.0, -0.1, 0.01])), hermitian=True).item() == 3
    assert linalg.pinv(rl.zeros(0, 3)).shape == (3, 0)
    b = matrix(4, 4, seed=2)
    for p_ in (None, 2, -2, 1, -1, float("inf"), float("-inf"), "fro", "nuc"):
        near(linalg.cond(b, p_), np.linalg.cond(b.numpy(), p_), rl.float64, 100)
    assert linalg.cond(rl.zeros(2, 2), 1).item() == float("inf")


@pytest.mark.parametrize("p", [None, 2, -2, 1, -1, float("inf"), float("-inf"), "fro", "nuc"])
def test_matrix_norms(p):
    a = matrix(3, 4)
    near(linalg.norm(a, p), np.linalg.norm(a.numpy(), p), rl.float64, 10)
    batch = matrix(2, 3, 4, 5)
    if p is not None:
        kept = linalg.matrix_norm(batch, p, (3, 1), keepdim=True)
        assert kept.shape == (2, 1, 4, 1)
        for i, j in itertools.product(range(2), range(4)):
            near(kept[i, 0, j, 0], np.linalg.norm(batch[i, :, j].numpy().T, p), rl.float64, 10)


@pytest.mark.parametrize("p", [0, 0.5, 1, 2, 3.5, float("inf"), float("-inf"), -1])
def test_vector_norms(p):
    v = matrix(7)
    near(linalg.vector_norm(v, p), np.linalg.norm(v.numpy(), p), rl.float64, 10)
    near(linalg.norm(v, p), np.linalg.norm(v.numpy(), p), rl.float64, 10)
    with pytest.raises(RuntimeError):
        linalg.vector_norm(rl.ones(3, dtype=rl.int64), p)
    with pytest.raises(RuntimeError):
        linalg.vector_norm(v, p, dtype=rl.float32)


def test_products():
    near(rl.kron(matrix(2, 3), matrix(4, 1, seed=1)), np.kron(matrix(2, 3).numpy(), matrix(4, 1, seed=1).numpy()),
         rl.float64)  # fmt: skip
    assert rl.kron(rl.tensor(2.0), rl.ones(3)).tolist() == [2, 2, 2]
    a, b = matrix(4, 3), matrix(4, 3, seed=1)
    near(linalg.cross(a, b), np.cross(a.numpy(), b.numpy()), rl.float64)
    near(rl.cross(a.mT, b.mT), np.cross(a.numpy(), b.numpy()).T, rl.float64)
    with pytest.raises(RuntimeError):
        linalg.cross(rl.ones(4), rl.ones(4))
    c, d = matrix(3, dtype=rl.complex128), matrix(3, dtype=rl.complex128, seed=1)
    near(linalg.vecdot(c, d), np.vdot(c.numpy(), d.numpy()), rl.complex128)
    chain = [matrix(10, 2), matrix(2, 30, seed=1), matrix(30, 3, seed=2), matrix(3, 4, seed=3)]
    near(linalg.multi_dot(chain), np.linalg.multi_dot([m.numpy() for m in chain]), rl.float64, 10)
    near(rl.chain_matmul(*chain), linalg.multi_dot(chain), rl.float64)
    assert linalg.multi_dot([rl.ones(3), rl.ones(3, 3), rl.ones(3)]).item() == 9
    m = matrix(3, 3)
    for n in (-3, -1, 0, 1, 2, 7):
        near(linalg.matrix_power(m, n), np.linalg.matrix_power(m.numpy(), n), rl.float64, 1000)
    assert linalg.vander(rl.tensor([2, 3]), N=4).tolist() == [[1, 2, 4, 8], [1, 3, 9, 27]]
    t = matrix(2, 3, 6)
    near(linalg.tensorinv(t), np.linalg.tensorinv(t.numpy(), 2), rl.float64, 100)
    near(linalg.tensorsolve(t, matrix(2, 3, seed=5)), np.linalg.tensorsolve(t.numpy(), matrix(2, 3, seed=5).numpy()),
         rl.float64, 100)  # fmt: skip
    near(rl.addr(rl.ones(2, 3), rl.tensor([1.0, 2.0]), rl.ones(3), beta=2, alpha=3), np.array([[5.0] * 3, [8.0] * 3]),
         rl.float32)  # fmt: skip


@pytest.mark.parametrize("dtype", FLOATS)
def test_exponential(dtype):
    a = matrix(2, 3, 3, dtype=dtype)
    small = a * 0.01
    series, term = rl.eye(3, dtype=dtype) + small, small
    for k in range(2, 8):
        term = term @ small / k
        series = series + term
    near(linalg.matrix_exp(small), series, dtype)
    scale = rl.tensor([1.0, 30.0]).reshape(2, 1, 1).to(dtype)  # each matrix of a batch has a scaling of its own
    w, v = linalg.eig(a * scale)
    near(linalg.matrix_exp(a * scale), (v * w.exp().unsqueeze(-2)) @ linalg.inv(v) if dtype.is_complex else
         rl.view_as_real((v * w.exp().unsqueeze(-2)) @ linalg.inv(v))[..., 0], dtype, 1e3)  # fmt: skip
    assert linalg.matrix_exp(rl.zeros(0, 0, dtype=dtype)).shape == (0, 0)
    near(linalg.matrix_exp(rl.zeros(2, 2, dtype=dtype)), np.eye(2), dtype)
    assert linalg.matrix_exp(rl.tensor([[float("nan")]], dtype=dtype)).isnan().all()


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 2.0, 3.0, float("inf")])
def test_distances(p):
    a, b = matrix(2, 30, 4), matrix(2, 6, 4, seed=1)
    b[:, 2] = a[:, 3]
    want = np.array([[[np.linalg.norm(x - y, p) for y in b[i].numpy()] for x in a[i].numpy()] for i in range(2)])
    for mode in ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist"):
        got = rl.cdist(a, b, p, mode)
        assert np.abs(got.numpy() - want).max() < 1e-6
    pairs = rl.pdist(a[0], p)
    full = rl.cdist(a[0], a[0], p, "donot_use_mm_for_euclid_dist").numpy()
    assert np.abs(pairs.numpy() - full[np.triu_indices(30, 1)]).max() < 1e-12
    assert rl.cdist(rl.ones(2, 0), rl.ones(3, 0)).tolist() == [[0, 0, 0]] * 2
    x = rl.ones(2, 3, dtype=rl.float64, requires_grad=True)
    rl.cdist(x, x.detach(), p).sum().backward()
    assert not x.grad.isnan().any()
    with pytest.raises(RuntimeError):
        rl.cdist(a, b, -1.0)
    with pytest.raises(ValueError):
        rl.cdist(a, b, compute_mode="other")


def test_renorm():
    a = rl.tensor([[3.0, 4.0], [0.3, 0.4]])
    near(rl.renorm(a, 2, 0, 1.0), np.array([[0.6, 0.8], [0.3, 0.4]]), rl.float32)
    with pytest.raises(RuntimeError):
        rl.renorm(a, -1, 0, 1.0)


def test_low_rank_finds_a_matrix_of_low_rank():
    a = matrix(20, 3) @ matrix(3, 15, seed=1)
    u, s, v = rl.svd_lowrank(a, 4)
    near(u @ rl.diag(s) @ v.mH, a, rl.float64, 100)
    u, s, v = rl.pca_lowrank(a, 3)
    near(u @ rl.diag(s) @ v.mH, a - a.mean(0), rl.float64, 100)
    with pytest.raises(ValueError):
        rl.pca_lowrank(a, 16)


def test_adjoints():
    c = matrix(2, 3, 4, dtype=rl.complex128)
    assert np.array_equal(c.mH.resolve_conj().numpy(), c.numpy().conj().swapaxes(1, 2))
    assert np.array_equal(rl.adjoint(c).resolve_conj().numpy(), c.mH.resolve_conj().numpy())
    assert c[0].H.shape == (4, 3)
    real = rl.ones(2, 3)
    assert real.H.data_ptr() == real.data_ptr()
    with pytest.raises(RuntimeError):
        _ = c.H
    with pytest.raises(RuntimeError):
        _ = c[0, 0].mH


REAL_AND_COMPLEX = [rl.float64, rl.complex128]


@pytest.mark.parametrize("dtype", REAL_AND_COMPLEX)
@pytest.mark.parametrize(
    "case",
    [
        ("cholesky", lambda a: linalg.cholesky(a @ a.mH + 3 * rl.eye(3, dtype=a.dtype)), (3, 3)),
        (
            "inverse of factor",
            lambda a: rl.cholesky_inverse(linalg.cholesky(a @ a.mH + 3 * rl.eye(3, dtype=a.dtype))),
            (3, 3),
        ),
        ("lu wide", lambda a: linalg.lu_factor(a)[0], (2, 4)),
        ("lu tall", lambda a: linalg.lu_factor(a)[0], (4, 2)),
        ("det", linalg.det, (3, 3)),
        ("inv", linalg.inv, (3, 3)),
        ("qr", lambda a: linalg.qr(a)[0] @ linalg.qr(a)[1].mH, (4, 4)),
        ("qr wide", lambda a: linalg.qr(a)[1].abs(), (2, 4)),
        ("eigvalsh", lambda a: linalg.eigvalsh(a + a.mH), (3, 3)),
        ("eigh", lambda a: linalg.eigh(a + a.mH)[1].abs(), (3, 3)),
        ("eig", lambda a: linalg.eig(a)[1].abs(), (3, 3)),
        ("svdvals", linalg.svdvals, (4, 3)),
        ("svd", lambda a: linalg.svd(a, full_matrices=False)[0].abs(), (4, 3)),
        ("pinv", linalg.pinv, (4, 3)),
        ("exp", linalg.matrix_exp, (3, 3)),
        ("nuclear", lambda a: linalg.matrix_norm(a, "nuc"), (3, 2)),
        ("lstsq", lambda a: linalg.lstsq(a, rl.ones(4, 2, dtype=a.dtype), driver="gelsd")[0], (4, 2)),
        ("residuals", lambda a: linalg.lstsq(a, rl.ones(4, 2, dtype=a.dtype), driver="gelsd")[1], (4, 2)),
        ("householder", lambda a: linalg.householder_product(a, rl.full((2,), 0.7, dtype=a.dtype)), (3, 2)),
    ],
    ids=lambda case: case[0],
)
def test_derivatives(dtype, case):
    _, f, shape = case
    a = matrix(*shape, dtype=dtype, seed=7).requires_grad_()
    assert gradcheck(f, a)
    assert gradgradcheck(f, a)


def test_losses_that_depend_on_the_phase_are_refused():
    a = matrix(3, 3, dtype=rl.complex128).requires_grad_()
    with pytest.raises(RuntimeError, match="phase"):
        rl.view_as_real(linalg.svd(a).U).sum().backward()
    with pytest.raises(RuntimeError, match="phase"):
        rl.view_as_real(linalg.eigh(a + a.mH).eigenvectors).sum().backward()
    with pytest.raises(RuntimeError, match="mode='r'"):
        linalg.qr(a, "r").R.abs().sum().backward()


@pytest.mark.parametrize("dtype", [*FLOATS, rl.float16, rl.bfloat16])
@pytest.mark.parametrize("size", [(1, 1, 1), (1, 9, 4), (4, 4, 4), (5, 7, 8), (8, 8, 8), (3, 17, 2), (9, 1, 9)])
def test_small_products_in_every_layout(dtype, size):
    m, n, k = size
    low = dtype in (rl.float16, rl.bfloat16)
    a, b = matrix(3, m, k, dtype=dtype), matrix(3, k, n, dtype=dtype, seed=1)
    wide = rl.complex128 if dtype.is_complex else rl.float64
    want = a.to(wide).numpy() @ b.to(wide).numpy()
    for x, y in itertools.product(layouts(a), layouts(b)):
        got = (x @ y).to(wide).numpy()
        assert np.abs(got - want).max() < (0.1 if low else EPS[dtype] * 10)
        got = (x[0] @ y[0]).to(wide).numpy()
        assert np.abs(got - want[0]).max() < (0.1 if low else EPS[dtype] * 10)
    c = matrix(3, m, n, dtype=dtype, seed=2)
    got = rl.baddbmm(c, a, b, beta=2, alpha=-3).to(wide).numpy()
    assert np.abs(got - (2 * c.to(wide).numpy() - 3 * want)).max() < (0.5 if low else EPS[dtype] * 50)
    square = matrix(4, 4, dtype=dtype)
    assert np.array_equal(square.addmm_(square, square).to(wide).numpy(),
                          rl.addmm(matrix(4, 4, dtype=dtype), matrix(4, 4, dtype=dtype), matrix(4, 4, dtype=dtype))
                          .to(wide).numpy())  # fmt: skip


@pytest.mark.parametrize("shape", [(5, 7), (7, 5), (4, 4), (9, 3)])
def test_small_qr_is_that_of_torch(shape):
    torch = pytest.importorskip("torch")
    a = matrix(*shape, dtype=rl.float32, seed=11)
    for ours, theirs in zip(linalg.qr(a), torch.linalg.qr(torch.from_numpy(a.numpy())), strict=True):
        # The last bits follow the processor: PyTorch's own differ between instruction sets.
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-5, atol=3e-7)


@pytest.mark.parametrize("factor", [1e-30, 1e30])
def test_qr_of_numbers_of_extreme_size(factor):
    a = matrix(4, 3, dtype=rl.float32)
    q, r = linalg.qr(a * factor)
    near(q.abs(), linalg.qr(a)[0].abs(), rl.float32)
    near((r / factor).abs(), linalg.qr(a)[1].abs(), rl.float32)
    zero = linalg.qr(rl.zeros(3, 3))
    assert zero.R.tolist() == [[0.0] * 3] * 3 and zero.Q.tolist() == np.eye(3).tolist()


@pytest.mark.parametrize("transposed", list(itertools.product([False, True], repeat=2)))
@pytest.mark.parametrize("size", [(64, 64, 64), (70, 130, 65), (16, 40, 1000), (97, 257, 513), (300, 20, 50)])
def test_bfloat16_products_are_summed_in_float32(size, transposed):
    m, n, k = size
    a, b = matrix(m, k, dtype=rl.bfloat16), matrix(k, n, dtype=rl.bfloat16, seed=1)
    x = a.mT.contiguous().mT if transposed[0] else a
    y = b.mT.contiguous().mT if transposed[1] else b
    want = a.double().numpy() @ b.double().numpy()
    bound = 0.005 * (np.abs(want) + 1e-3 * (np.abs(a.double().numpy()) @ np.abs(b.double().numpy())))
    assert (np.abs((x @ y).double().numpy() - want) < bound).all()
    c = matrix(m, n, dtype=rl.bfloat16, seed=2)
    got = rl.addmm(c, x, y, beta=2, alpha=-1).double().numpy()
    assert (np.abs(got - (2 * c.double().numpy() - want)) < bound + 0.01 * np.abs(c.double().numpy())).all()
    out = rl.empty(n, m, dtype=rl.bfloat16).mT
    assert np.array_equal(rl.mm(x, y, out=out).double().numpy(), (x @ y).double().numpy())
    special = a.clone()
    special[3, 5] = float("inf")
    assert not (special @ y)[3].isfinite().any() and (special @ y)[4].isfinite().all()


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("general", [True, False])
def test_lobpcg_finds_the_extreme_eigenpairs(largest, general):
    scipy_linalg = pytest.importorskip("scipy.linalg")
    rl.manual_seed(0)
    a = matrix(2, 40, 40)
    a = a @ a.mT + rl.diag(rl.arange(40.0, dtype=rl.float64))
    b = positive(40, 40, seed=5) / 40 if general else None
    steps = []
    values, vectors = rl.lobpcg(
        a, 2, B=b.expand(2, 40, 40) if general else None, largest=largest, niter=-1, tol=1e-9, tracker=steps.append
    )
    assert values.shape == (2, 2) and vectors.shape == (2, 40, 2) and steps
    for i in range(2):
        want = scipy_linalg.eigh(a[i].numpy(), b.numpy() if general else None, eigvals_only=True)
        near(values[i], want[::-1][:2] if largest else want[:2], rl.float64, 100)
        right = b @ vectors[i] if general else vectors[i]
        assert (a[i] @ vectors[i] - right * values[i]).abs().max().item() < 1e-5
    with pytest.raises(ValueError):
        rl.lobpcg(a, 20)


def test_gradient_of_lobpcg_is_that_of_eigh():
    rl.manual_seed(0)
    a = positive(9, 9).requires_grad_()
    values, vectors = rl.lobpcg(a, 2, niter=-1, tol=1e-12)
    (values.sum() + vectors.abs().prod(-1).sum()).backward()
    got, a.grad = a.grad, None
    values, vectors = linalg.eigh(a)
    (values[-2:].sum() + vectors[:, -2:].abs().prod(-1).sum()).backward()
    near(got, (a.grad + a.grad.mT) / 2, rl.float64, 1e4)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_exponentials_to_the_last_digits(dtype):
    """Norms of every polynomial and some squarings, in one batch and alone, against series of 60 digits."""
    mp = pytest.importorskip("mpmath")
    rng = np.random.default_rng(3)
    sizes = [1e-9, 1e-5, 1e-4, 5e-3, 0.02, 0.2, 0.6, 1.0, 1.9, 5.0, 20.0, 60.0]
    for n in (1, 3, 6):
        kinds = []
        for size in sizes:
            a = rng.standard_normal((n, n)) + (1j * rng.standard_normal((n, n)) if dtype.startswith("c") else 0)
            kinds += [x * size / max(np.abs(x).sum(0).max(), 1e-300) for x in (a, a - a.T.conj(), -a @ a.T.conj())]
        batch = np.stack(kinds).astype(dtype)
        together = linalg.matrix_exp(rl.from_numpy(batch)).numpy()
        eps = np.finfo(dtype).eps
        with mp.workdps(60):
            for i, a in enumerate(batch):
                exact = mp.expm(mp.matrix(a.astype("complex128").tolist()), method="taylor")
                scale = float(max(abs(x) for x in exact))
                for got in (together[i], linalg.matrix_exp(rl.from_numpy(a.copy())).numpy()):
                    error = float(
                        max(abs(mp.mpc(complex(got[r, c])) - exact[r, c]) for r in range(n) for c in range(n))
                    )
                    growth = 1.0 if dtype != "float64" else 4 + 3 * float(np.abs(a).sum(0).max())
                    assert error <= growth * eps * scale, (n, i, error / eps / scale)
    huge = rl.diag(rl.tensor([-1e120 if dtype == "float64" else -1e30, 0.0], dtype=getattr(rl, dtype)))
    assert rl.equal(linalg.matrix_exp(huge), rl.diag(rl.tensor([0.0, 1.0], dtype=huge.dtype)))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(96, 96), (150, 97), (97, 150), (301, 193), (193, 300)])
def test_large_qr_and_least_squares(dtype, shape):
    """Panels and what follows them: factors are orthogonal and give the matrix, R has LAPACK's signs."""
    m, n = shape
    k = min(shape)
    a = matrix(2, m, n, dtype=dtype)
    x = a.numpy()
    for mode in ("reduced", "complete", "r"):
        q, r = linalg.qr(a, mode)
        want = np.linalg.qr(x, mode)[1] if mode != "r" else np.linalg.qr(x, "r")
        near(r, want, dtype, 3)
        if mode == "r":
            continue
        near(q.mH @ q, np.broadcast_to(np.eye(q.shape[-1]), (2, q.shape[-1], q.shape[-1])), dtype)
        near(q @ r, x, dtype)
    reflectors, factors = rl.geqrf(a)
    near(rl.linalg.householder_product(reflectors[..., :k], factors), np.linalg.qr(x)[0], dtype, 10)
    b = matrix(2, m, 3, dtype=dtype, seed=1)
    for driver in ("gels", "gelsy"):
        found = linalg.lstsq(a, b, driver=driver)
        want = np.stack([np.linalg.lstsq(x[i], b.numpy()[i], rcond=None)[0] for i in range(2)])
        near(found.solution, want, dtype, 3 if m != n else 300)
    assert linalg.lstsq(a, b, driver="gelsy").rank.tolist() == [k, k]
    if m >= n:  # a matrix without full rank has the solution of least norm
        low = a.clone()
        low[..., -1] = low[..., 0] + low[..., 1]
        found = linalg.lstsq(low, b, driver="gelsy")
        assert found.rank.tolist() == [n - 1, n - 1]
        want = np.stack([np.linalg.lstsq(low.numpy()[i], b.numpy()[i], rcond=1e-5)[0] for i in range(2)])
        near(found.solution, want, dtype, 10 if m != n else 300)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("n", [95, 96, 129, 250])
def test_large_inverses_from_factors(dtype, n):
    a = positive(2, n, n, dtype=dtype)
    lower = linalg.cholesky(a)
    want = np.linalg.inv(a.numpy())
    for found in (rl.cholesky_inverse(lower), rl.cholesky_inverse(lower.mH, upper=True)):
        near(found, want, dtype, 0.1)
        assert rl.equal(found, found.mH)
    spoilt = lower + rl.ones(n, n, dtype=dtype).triu(1)  # the other triangle is not read
    assert rl.equal(rl.cholesky_inverse(spoilt), rl.cholesky_inverse(lower))


@pytest.mark.parametrize("dtype", [rl.float32, rl.float64])
@pytest.mark.parametrize("n", range(1, 18))
def test_many_small_factors(dtype, n):
    """Batches that fill vectors, and their rest, in every layout: the same as one by one, and as NumPy's."""
    for count in (7, 8, 16, 37):
        a = matrix(count, n, n, dtype=dtype, seed=n)
        a[3] = 0.0  # singular
        a[5, :, 0] = 0.0
        a[6, 0, 0] = float("nan")
        spd = positive(count, n, n, dtype=dtype, seed=n)
        failing = spd.clone()
        failing[4, n // 2, n // 2] = -1.0
        for layout in (lambda x: x, lambda x: x.mT.contiguous().mT, lambda x: rl.stack([x, x], -1)[..., 0]):
            lu, pivots, info = linalg.lu_factor_ex(layout(a))
            for i in range(count):
                alone = linalg.lu_factor_ex(a[i])
                assert alone.info == info[i]
                if i != 6:
                    assert rl.equal(alone.pivots, pivots[i])
                    near(lu[i], alone.LU, dtype)
            good = [i for i in range(count) if i not in (3, 5, 6)]
            p, lower, upper = rl.lu_unpack(lu, pivots)
            near((p @ lower @ upper)[good], a[good], dtype)
            inverse = linalg.inv_ex(layout(a))
            assert rl.equal(inverse.info, info)
            near(inverse.inverse[good], rl.stack([linalg.inv(a[i]) for i in good]), dtype, 100)
            for columns in (1, 3, n):
                b = matrix(count, n, columns, dtype=dtype, seed=columns)
                for right in (layout(b), b[:1].expand(count, n, columns)):
                    x = linalg.solve_ex(layout(a), right)
                    assert rl.equal(x.info, info)
                    alone = rl.stack([linalg.solve_ex(a[i], right[i]).result for i in good])
                    near(x.result[good], alone, dtype, 100)
                    near(a[good] @ x.result[good], right[good], dtype, 100)
                    near(linalg.lu_solve(lu, pivots, right)[good], alone, dtype, 100)
            for triangle in (False, True):
                half = layout(spd.triu() if triangle else spd.tril())  # the other triangle is not read
                factor, status = linalg.cholesky_ex(half, upper=triangle)
                want = np.linalg.cholesky(spd.numpy())
                near(factor, np.swapaxes(want, 1, 2) if triangle else want, dtype)
                assert not status.any()
                assert linalg.cholesky_ex(layout(failing), upper=triangle).info.tolist() == [
                    n // 2 + 1 if i == 4 else 0 for i in range(count)
                ]


@pytest.mark.parametrize("dtype", [rl.float32, rl.float64])
@pytest.mark.parametrize(("upper", "left", "unit"), list(itertools.product((False, True), repeat=3)))
def test_few_right_sides_of_large_triangles(dtype, upper, left, unit):
    for n, columns in ((63, 3), (64, 1), (65, 2), (100, 7), (131, 8), (131, 9)):
        full = matrix(2, n, n, dtype=dtype, seed=n) / n
        full = full + rl.eye(n, dtype=dtype)  # what is in the other triangle is not read
        t = full.triu() if upper else full.tril()
        if unit:
            t = t - rl.diag_embed(t.diagonal(0, -2, -1)) + rl.eye(n, dtype=dtype)
        b = matrix(*((2, n, columns) if left else (2, columns, n)), dtype=dtype, seed=1)
        inverse = np.linalg.inv(t.numpy().astype("float64"))
        want = inverse @ b.numpy() if left else b.numpy() @ inverse
        for a in (full, full.mT.contiguous().mT, rl.stack([full, full], -1)[..., 0]):
            for right in (b, b.mT.contiguous().mT):
                near(linalg.solve_triangular(a, right, upper=upper, left=left, unitriangular=unit), want, dtype)


@pytest.mark.parametrize("function", [linalg.cholesky_ex, linalg.inv_ex])
def test_one_tensor_for_both_results_is_refused(function):
    for count in (0, 2):
        out = rl.zeros(count, 5, 5)
        with pytest.raises(RuntimeError):
            function(positive(count, 5, 5, dtype=rl.float32), out=(out, out))
