"""Systems of linear equations, LDL and QR factorisations."""

from __future__ import annotations

from typing import Any

from . import _batch
from ._record import composite, native, refused, rl
from .linalg import _adjoint_solve, _h

# ---------------------------------------------------------------- systems


def _is_vector(a: Any, b: Any) -> bool:
    return bool(b.dim() == 1 or (a.dim() - 1 == b.dim() and a.shape[:-1] == b.shape))


def _solve_backward(
    grad: Any, A: Any, B: Any, X: Any, LU: Any, pivots: Any, left: bool, needs: tuple[bool, ...]
) -> Any:
    vector = _is_vector(A, B)
    if vector:
        grad, X = grad.unsqueeze(-1), X.unsqueeze(-1)
    g_b = _adjoint_solve(grad, A, LU, pivots, grad, left)
    g_a = None
    if needs[0]:
        g_a = (-rl.matmul(g_b, _h(X)) if left else -rl.matmul(_h(X), g_b)).sum_to_size(A.shape)
    if vector:
        g_b = g_b.squeeze(-1)
    return g_a, g_b.sum_to_size(B.shape) if needs[1] else None


native(
    "_linalg_solve_ex(Tensor A, Tensor B, bool left=True, bool check_errors=False) -> "
    "(Tensor result, Tensor LU, Tensor pivots, Tensor info)",
    batch=_batch.matrices,
    options={"not_differentiable": ("LU", "pivots", "info")},
    derivative={
        "A, B": lambda grad_result, A, B, result, LU, pivots, left, needs: _solve_backward(
            grad_result, A, B, result, LU, pivots, left, needs
        )
    },
    doc="The solution of a linear system, the factors of A, and where the factorisation failed.",
)


@composite(
    "linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor info)",
    public="linalg.solve_ex",
    method=False,
    out=True,
    formula="A X = B, or X A = B when not left",
)
def linalg_solve_ex(A: Any, B: Any, left: bool, check_errors: bool) -> Any:
    """The solution of linear systems, and where a matrix is singular.

    info is 0, or the position (from 1) of the first zero on the diagonal of U, where A = P L U; with check_errors
    linalg.LinAlgError is raised instead.

    Shapes: A (*, n, n), B (*, n, k) or vectors (*, n); result has the shape of B, with batch dimensions broadcast,
    info (*) int32.

    >>> torch.linalg.solve_ex(torch.tensor([[2.0, 0.0], [0.0, 4.0]]), torch.tensor([2.0, 4.0]))
    rushlight.return_types.linalg_solve_ex(
    result=tensor([1., 1.]),
    info=tensor(0, dtype=rushlight.int32))
    """
    x, _, _, info = rl._linalg_solve_ex(A, B, left, check_errors)
    return x, info


@composite(
    "linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor",
    public="linalg.solve",
    method=False,
    out=True,
    formula="A X = B, or X A = B when not left",
)
def linalg_solve(A: Any, B: Any, left: bool) -> Any:
    """The solution of linear systems with square matrices.

    B is a vector when it has one dimension, or the batch of A and a dimension of size n. linalg.LinAlgError when A is
    singular.

    Shapes: A (*, n, n), B (*, n, k) or vectors (*, n); the result has the shape of B, with batch dimensions broadcast.

    >>> torch.linalg.solve(torch.tensor([[2.0, 1.0], [0.0, 4.0]]), torch.tensor([4.0, 8.0]))
    tensor([1., 2.])
    """
    return rl._linalg_solve_ex(A, B, left, True)[0]


native(
    "linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)",
    batch=_batch.matrices,
    public="linalg.inv_ex",
    method=False,
    out=True,
    options={"not_differentiable": ("info",)},
    derivative={"A": lambda grad_inverse, inverse: -rl.matmul(_h(inverse), rl.matmul(grad_inverse, _h(inverse)))},
    formula="A @ inverse = 1",
    doc="""The inverse of square matrices, and where one is singular.

    info is 0, or the position (from 1) of the first zero on the diagonal of U, where A = P L U; with check_errors
    linalg.LinAlgError is raised instead.

    Shapes: A (*, n, n); inverse (*, n, n), info (*) int32.

    >>> torch.linalg.inv_ex(torch.tensor([[2.0, 1.0], [2.0, 3.0]]))
    rushlight.return_types.linalg_inv_ex(
    inverse=tensor([[ 0.7500, -0.2500],
            [-0.5000,  0.5000]]),
    info=tensor(0, dtype=rushlight.int32))""",
)


@composite(
    "linalg_inv(Tensor A) -> Tensor",
    public="linalg.inv",
    method=False,
    out=True,
    formula="A @ out = 1",
)
def linalg_inv(A: Any) -> Any:
    """The inverse of square matrices; linalg.solve is faster and more accurate where the inverse is only
    multiplied.

    linalg.LinAlgError when a matrix is singular.

    Shapes: A (*, n, n); the result has the same.

    >>> torch.linalg.inv(torch.tensor([[2.0, 1.0], [2.0, 3.0]]))
    tensor([[ 0.7500, -0.2500],
            [-0.5000,  0.5000]])
    """
    return rl.linalg_inv_ex(A, check_errors=True)[0]


@composite(
    "inverse(Tensor self) -> Tensor",
    out=True,
    formula="self @ out = 1",
)
def inverse(self: Any) -> Any:
    """The inverse of square matrices; the same as linalg.inv.

    linalg.LinAlgError when a matrix is singular.

    Shapes: self (*, n, n); the result has the same.

    >>> torch.inverse(torch.tensor([[2.0, 1.0], [2.0, 3.0]]))
    tensor([[ 0.7500, -0.2500],
            [-0.5000,  0.5000]])
    """
    return rl.linalg_inv_ex(self, check_errors=True)[0]


def _triangle(a: Any, upper: bool, unit: bool) -> Any:
    return a.triu(1 if unit else 0) if upper else a.tril(-1 if unit else 0)


def _triangular_backward(grad: Any, A: Any, B: Any, X: Any, upper: bool, left: bool, unit: bool, needs: Any) -> Any:
    g_b = rl.linalg_solve_triangular(_h(A), grad, upper=not upper, left=left, unitriangular=unit)
    g_a = None
    if needs[0]:
        g_a = -rl.matmul(g_b, _h(X)) if left else -rl.matmul(_h(X), g_b)
        g_a = _triangle(g_a.sum_to_size(A.shape), upper, unit)
    return g_a, g_b.sum_to_size(B.shape) if needs[1] else None


native(
    "linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> Tensor",
    batch=_batch.matrices,
    public="linalg.solve_triangular",
    method=False,
    derivative={
        "self, B": lambda grad, self, B, result, upper, left, unitriangular, needs: _triangular_backward(
            grad, self, B, result, upper, left, unitriangular, needs
        )
    },
    formula="self X = B, or X self = B when not left",
    doc="""The solution of systems with triangular matrices, by substitution; the other triangle is not read.

    With unitriangular the diagonal counts as ones. A zero on the diagonal gives infinities or NaN, no error.

    Shapes: self (*, n, n), B (*, n, k), or (*, k, n) when not left; the result has the shape of B, with batch
    dimensions broadcast.

    >>> A = torch.tensor([[2.0, 1.0], [0.0, 4.0]])
    >>> torch.linalg.solve_triangular(A, torch.tensor([[4.0], [8.0]]), upper=True)
    tensor([[1.],
            [2.]])""",
)


@composite(
    "triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False) -> "
    "(Tensor solution, Tensor cloned_coefficient)",
    out=True,
    formula="A X = self, or A.mT X = self with transpose",
)
def triangular_solve(self: Any, A: Any, upper: bool, transpose: bool, unitriangular: bool) -> Any:
    """The solution of systems with triangular matrices, and a copy of A; linalg.solve_triangular is the newer name.

    Shapes: self (*, n, k), A (*, n, n); solution (*, n, k), cloned_coefficient (*, n, n).

    >>> A = torch.tensor([[2.0, 1.0], [0.0, 4.0]])
    >>> torch.triangular_solve(torch.tensor([[4.0], [8.0]]), A).solution
    tensor([[1.],
            [2.]])
    """
    if self.dim() < 2 or A.dim() < 2:
        raise RuntimeError(
            "triangular_solve: expected matrices of at least 2 dimensions, got shapes "
            f"{list(self.shape)} and {list(A.shape)}"
        )
    matrix = A.transpose(-2, -1) if transpose else A
    x = rl.linalg_solve_triangular(matrix, self, upper=upper != transpose, unitriangular=unitriangular)
    return x, A.expand(x.shape[:-2] + A.shape[-2:]).clone()


# ---------------------------------------------------------------- LDL

native(
    "linalg_ldl_factor_ex(Tensor self, *, bool hermitian=False, bool check_errors=False) -> "
    "(Tensor LD, Tensor pivots, Tensor info)",
    batch=_batch.matrices,
    public="linalg.ldl_factor_ex",
    method=False,
    out=True,
    formula="self = L D L.mT, or L D L.mH when hermitian",
    doc="""The LDL factorisation of symmetric (or Hermitian) matrices in one matrix, by the pivoting of Bunch and
    Kaufman (1977).

    D has blocks of 1 or 2 on its diagonal, as LAPACK's sytrf says by pivots. Only the lower triangle is read. info is
    0, or the position (from 1) of a zero on the diagonal; with check_errors linalg.LinAlgError is raised instead.

    Shapes: self (*, n, n); LD (*, n, n), pivots (*, n) int32, info (*) int32.

    >>> torch.linalg.ldl_factor_ex(torch.tensor([[4.0, 2.0], [2.0, 5.0]]))
    rushlight.return_types.linalg_ldl_factor_ex(
    LD=tensor([[4.0000, 0.0000],
            [0.5000, 4.0000]]),
    pivots=tensor([1, 2], dtype=rushlight.int32),
    info=tensor(0, dtype=rushlight.int32))""",
)


@composite(
    "linalg_ldl_factor(Tensor self, *, bool hermitian=False) -> (Tensor LD, Tensor pivots)",
    public="linalg.ldl_factor",
    method=False,
    out=True,
    formula="self = L D L.mT, or L D L.mH when hermitian",
)
def linalg_ldl_factor(self: Any, hermitian: bool) -> Any:
    """The LDL factorisation of symmetric (or Hermitian) matrices in one matrix, and the pivots; they need not be
    definite.

    linalg.LinAlgError when D is singular. See linalg.ldl_factor_ex.

    Shapes: self (*, n, n); LD (*, n, n), pivots (*, n) int32.

    >>> LD, pivots = torch.linalg.ldl_factor(torch.tensor([[4.0, 2.0], [2.0, 5.0]]))
    >>> LD
    tensor([[4.0000, 0.0000],
            [0.5000, 4.0000]])
    """
    return tuple(rl.linalg_ldl_factor_ex(self, hermitian=hermitian, check_errors=True)[:2])


native(
    "linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor",
    batch=_batch.matrices,
    public="linalg.ldl_solve",
    method=False,
    derivative=refused("linalg.ldl_solve", "LD", "B"),
    formula="A X = B",
    doc="""The solution of systems whose symmetric (or Hermitian) matrix A is given by linalg.ldl_factor.

    Shapes: LD (*, n, n), pivots (*, n), B (*, n, k); the result (*, n, k), with batch dimensions broadcast.

    >>> LD, pivots = torch.linalg.ldl_factor(torch.tensor([[4.0, 2.0], [2.0, 5.0]]))
    >>> torch.linalg.ldl_solve(LD, pivots, torch.tensor([[8.0], [12.0]]))
    tensor([[1.],
            [2.]])""",
)


# ---------------------------------------------------------------- QR

native(
    "geqrf(Tensor self) -> (Tensor a, Tensor tau)",
    batch=_batch.matrices,
    out=True,
    derivative=refused("geqrf", "self"),
    formula="self = H_1 H_2 ... H_k R, H_i = 1 - tau_i v_i v_i.mH",
    doc="""The QR decomposition as LAPACK keeps it: R in the upper triangle of a, the Householder vectors v_i below
    it.

    v_i begins with i - 1 zeros and a one, which are not stored. linalg.qr gives the matrices.

    Shapes: self (*, m, n); a (*, m, n), tau (*, min(m, n)).

    >>> a, tau = torch.geqrf(torch.tensor([[3.0, 1.0], [4.0, 2.0]]))
    >>> a.triu(), tau.shape
    (tensor([[-5.0000, -2.2000],
            [ 0.0000,  0.4000]]), rushlight.Size([2]))""",
)


def _reflectors_backward(grad: Any, a: Any, tau: Any) -> tuple[Any, Any]:
    """The gradients of reflectors and factors, from that of the first columns of their product H1 H2 ... Hk.

    With P_i = H_i ... H_k, and G_i the gradient of P_i, that of H_i is G_i P_(i+1).mH, and H_i = I - tau_i v_i v_i.mH.
    """
    rows, width, k = a.shape[-2], grad.shape[-1], tau.shape[-1]
    eye = rl.eye(rows, width, dtype=a.dtype, device=a.device).expand(grad.shape)
    vectors = []
    for i in range(k):
        column = a.narrow(-1, i, 1)
        head = rl.zeros_like(column.narrow(-2, 0, i + 1)) + rl.eye(i + 1, 1, dtype=a.dtype, device=a.device).flip(0)
        vectors.append(rl.cat([head, column.narrow(-2, i + 1, rows - i - 1)], -2))
    products = [eye]
    for i in range(k - 1, -1, -1):
        v, p = vectors[i], products[-1]
        products.append(p - tau.narrow(-1, i, 1).unsqueeze(-1) * rl.matmul(v, rl.matmul(_h(v), p)))
    columns, factors = [], []
    for i in range(k):
        v, p, t = vectors[i], products[k - 1 - i], tau.narrow(-1, i, 1).unsqueeze(-1)
        mv = rl.matmul(grad, rl.matmul(_h(p), v))
        mhv = rl.matmul(p, rl.matmul(_h(grad), v))
        factors.append(-rl.matmul(_h(v), mv).squeeze(-1))
        g = -rl.conj(t) * mv - t * mhv
        columns.append(rl.cat([rl.zeros_like(g.narrow(-2, 0, i + 1)), g.narrow(-2, i + 1, rows - i - 1)], -2))
        grad = grad - rl.conj(t) * rl.matmul(v, rl.matmul(_h(v), grad))
    if k < a.shape[-1]:
        columns.append(rl.zeros_like(a.narrow(-1, k, a.shape[-1] - k)))
    g_tau = rl.cat(factors, -1) if factors else rl.zeros_like(tau)
    return (rl.cat(columns, -1) if columns else rl.zeros_like(a)), g_tau


native(
    "linalg_householder_product(Tensor input, Tensor tau) -> Tensor",
    batch=_batch.matrices,
    public="linalg.householder_product",
    method=False,
    derivative={"input, tau": lambda grad, input, tau: _reflectors_backward(grad, input, tau)},
    formula="out = the first n columns of H_1 H_2 ... H_k, H_i = 1 - tau_i v_i v_i.mH",
    doc="""The product of Householder reflectors whose vectors stand below the diagonal of input: Q, of what geqrf
    gives.

    Shapes: input (*, m, n), tau (*, k) with k <= n <= m; the result (*, m, n).

    >>> torch.linalg.householder_product(*torch.geqrf(torch.tensor([[3.0, 0.0], [4.0, 5.0]])))
    tensor([[-0.6000, -0.8000],
            [-0.8000,  0.6000]])""",
)


@composite(
    "orgqr(Tensor self, Tensor input2) -> Tensor",
    out=True,
    formula="out = the first n columns of H_1 H_2 ... H_k, H_i = 1 - tau_i v_i v_i.mH",
)
def orgqr(self: Any, input2: Any) -> Any:
    """The product of Householder reflectors, as geqrf gives them; linalg.householder_product is the newer name.

    Shapes: self (*, m, n), input2 (*, k) with k <= n <= m; the result (*, m, n).

    >>> torch.orgqr(*torch.geqrf(torch.tensor([[3.0, 0.0], [4.0, 5.0]])))
    tensor([[-0.6000, -0.8000],
            [-0.8000,  0.6000]])
    """
    return rl.linalg_householder_product(self, input2)


def _ormqr_backward(
    grad: Any, a: Any, tau: Any, c: Any, left: bool, transpose: bool, needs: tuple[bool, ...]
) -> tuple[Any, Any, Any]:
    g_c = rl.ormqr(a, tau, grad, left, not transpose) if needs[2] else None
    if not (needs[0] or needs[1]):
        return None, None, g_c
    if left:
        g_q = rl.matmul(c, _h(grad)) if transpose else rl.matmul(grad, _h(c))
    else:
        g_q = rl.matmul(_h(grad), c) if transpose else rl.matmul(_h(c), grad)
    return (*_reflectors_backward(g_q, a, tau), g_c)


native(
    "ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) -> Tensor",
    batch=_batch.matrices,
    derivative={
        "self, input2, input3": lambda grad, self, input2, input3, left, transpose, needs: _ormqr_backward(
            grad, self, input2, input3, left, transpose, needs
        )
    },
    formula="out = Q @ input3, or input3 @ Q when not left; Q.mH for Q with transpose",
    doc="""A matrix times the Q of Householder reflectors self and their factors input2, as geqrf gives them,
    without making Q.

    Q is the whole m x m matrix here.

    Shapes: self (*, m, n), input2 (*, k), input3 (*, m, l), or (*, l, m) when not left; the result has the shape of
    input3.

    >>> a = torch.tensor([[3.0, 1.0], [4.0, 2.0]])
    >>> torch.ormqr(*torch.geqrf(a), a, transpose=True).diagonal()  # of R
    tensor([-5.0000,  0.4000])""",
)


def _qr_backward(g_q: Any, g_r: Any, Q: Any, R: Any, mode: str) -> Any:
    """J. Roberts and Z. Roberts, "QR and LQ decomposition matrix backpropagation algorithms" (2020)."""
    if mode == "r":
        raise RuntimeError(
            "linalg.qr: the derivative depends on Q, which is not computed with mode='r'; use mode='reduced'"
        )
    m, n = Q.shape[-2], R.shape[-1]
    if mode == "complete" and m > n:
        raise RuntimeError(
            "linalg.qr: the decomposition is not differentiable with mode='complete' when there are more rows than "
            f"columns; got {m} rows and {n} columns"
        )
    rest: Any = None
    if m < n:
        right = rl.matmul(Q, R.narrow(-1, m, n - m))
        g_right = g_r.narrow(-1, m, n - m)
        rest = rl.matmul(Q, g_right)
        g_q = g_q + rl.matmul(right, _h(g_right))
        R, g_r = R.narrow(-1, 0, m), g_r.narrow(-1, 0, m)
    inner = (rl.matmul(g_r, _h(R)) - rl.matmul(_h(Q), g_q)).triu()
    inner = inner + _h(inner) - rl._real_diagonal(inner)
    result = rl.linalg_solve_triangular(_h(R), g_q + rl.matmul(Q, inner), upper=False, left=False)
    return result if rest is None else rl.cat([result, rest], -1)


native(
    "linalg_qr(Tensor A, str mode='reduced') -> (Tensor Q, Tensor R)",
    batch=_batch.matrices,
    public="linalg.qr",
    method=False,
    out=True,
    derivative={"A": lambda grad_Q, grad_R, Q, R, mode: _qr_backward(grad_Q, grad_R, Q, R, mode)},
    formula="A = Q @ R",
    doc="""The QR decomposition: Q with orthonormal columns, R upper triangular.

    mode 'reduced' gives Q as many columns as R has rows, 'complete' makes it square, 'r' leaves it empty. The diagonal
    of R may be negative. Without derivative for 'r', and for 'complete' with m > n.

    Shapes: A (*, m, n), k = min(m, n); Q (*, m, k), R (*, k, n), or Q (*, m, m), R (*, m, n) when complete.

    >>> Q, R = torch.linalg.qr(torch.tensor([[1.5, 1.0], [2.0, 3.0]]))
    >>> Q, R
    (tensor([[-0.6000, -0.8000],
            [-0.8000,  0.6000]]), tensor([[-2.5000, -3.0000],
            [ 0.0000,  1.0000]]))""",
)


@composite(
    "qr(Tensor self, bool some=True) -> (Tensor Q, Tensor R)",
    out=True,
    formula="self = Q @ R",
)
def qr(self: Any, some: bool) -> Any:
    """The QR decomposition; linalg.qr, with mode 'reduced', or 'complete' when not some.

    Shapes: self (*, m, n), k = min(m, n); Q (*, m, k), R (*, k, n), or Q (*, m, m), R (*, m, n) when not some.

    >>> Q, R = torch.qr(torch.ones(3, 2), some=False)
    >>> Q.shape, R.shape
    (rushlight.Size([3, 3]), rushlight.Size([3, 2]))
    """
    return tuple(rl.linalg_qr(self, "reduced" if some else "complete"))


@composite(
    "adjoint(Tensor self) -> Tensor",
    view="view",
    formula="out_ij = conj(self_ji)",
)
def adjoint(self: Any) -> Any:
    """The conjugate transpose of the last two dimensions, a view.

    RuntimeError for vectors.

    Shapes: self (*, n, m); the result (*, m, n).

    >>> torch.adjoint(torch.tensor([[1j, 2.0], [3.0, 4.0]]))
    tensor([[0.-1.j, 3.-0.j],
            [2.-0.j, 4.-0.j]])
    """
    if self.dim() == 1:
        raise RuntimeError(f"adjoint: expected matrices or batches of matrices, got shape {list(self.shape)}")
    return rl.conj(self if self.dim() == 0 else self.transpose(-2, -1))
