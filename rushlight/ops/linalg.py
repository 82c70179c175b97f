"""Linear algebra: Cholesky and LU factorisations, inverses, determinants.

Derivatives are those of M. Giles, "An extended collection of matrix derivative results for forward and reverse mode
algorithmic differentiation" (2008), unless a record names another source. They are written for complex matrices with
PyTorch's convention: a gradient is the conjugate of the derivative. Where a factorisation is unique only up to a
choice (the sign or phase of a singular vector), the derivative is that of losses that do not depend on the choice, and
others are refused where that can be seen.
"""

from __future__ import annotations

from typing import Any

from . import _batch
from ._record import certain, composite, native, rl


def _h(a: Any) -> Any:
    """The conjugate transpose."""
    return rl._adjoint(a)


def _re(a: Any) -> Any:
    """The real parts."""
    return rl.view_as_real(a).select(-1, 0) if a.is_complex() else a


def _im(a: Any) -> Any:
    """The imaginary parts of complex numbers."""
    return rl.view_as_real(a).select(-1, 1)


def _real_dtype(dtype: Any) -> Any:
    return {rl.complex64: rl.float32, rl.complex128: rl.float64}.get(dtype, dtype)


def _unused(grad: Any) -> bool:
    """Whether an incoming gradient is the zero that stands for none."""
    return not grad.requires_grad and certain((grad == 0).all())


def _adjoint_solve(grad: Any, A: Any, LU: Any, pivots: Any, B: Any, left: bool = True) -> Any:
    """The solution of A.mH X = B, from the factors of A where nobody can ask for a derivative of it."""
    watched = (grad.requires_grad or A.requires_grad) and rl._C.is_grad_enabled()
    if not watched and A.shape[-1] >= 16 and not any(rl._C._unwrap(x) is not None for x in (grad, A, LU)):
        return rl.linalg_lu_solve(LU, pivots, B, left=left, adjoint=True)
    return rl.linalg_solve(_h(A), B, left=left)


def _refuse_low(name: str, what: str, x: Any) -> None:
    if not (x.is_floating_point() or x.is_complex()):
        raise RuntimeError(f"{name}: {what}; expected floating point or complex elements, got {x.dtype}")


def _check_matrix(name: str, A: Any) -> None:
    if A.dim() < 2:
        raise RuntimeError(f"{name}: A; expected at least 2 dimensions, got shape {list(A.shape)}")
    _refuse_low(name, "A", A)


# ---------------------------------------------------------------- Cholesky


def _cholesky_backward(grad: Any, factor: Any, upper: bool) -> Any:
    """I. Murray, "Differentiation of the Cholesky decomposition" (2016)."""
    lower, g = (_h(factor), _h(grad)) if upper else (factor, grad)
    p = rl.matmul(_h(lower), g).tril()
    p = p + _h(p.tril(-1)) if not p.is_complex() else p.tril(-1) + _h(p.tril(-1)) + rl._real_diagonal(p)
    half = rl.linalg_solve_triangular(_h(lower), p, upper=True)
    return rl.linalg_solve_triangular(lower, half, upper=False, left=False) * 0.5


@composite("_real_diagonal(Tensor self) -> Tensor", method=False)
def _real_diagonal(self: Any) -> Any:
    """The real parts of the diagonal as diagonal matrices of self's dtype."""
    return rl.diag_embed(_re(self.diagonal(0, -2, -1)).to(self.dtype))


native(
    "linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)",
    batch=_batch.matrices,
    public="linalg.cholesky_ex",
    method=False,
    out=True,
    options={"not_differentiable": ("info",)},
    derivative={"self": lambda grad_L, L, upper: _cholesky_backward(grad_L, L, upper)},
    formula="L @ L.mH = self, or L.mH @ L = self when upper (L is upper triangular then)",
    doc="""The Cholesky factor of Hermitian positive-definite matrices, and where a matrix is not positive-definite.

    info is 0, or the order of the first leading minor that is not positive; the factor is of no use then. With
    check_errors linalg.LinAlgError is raised instead. Only the triangle named by upper is read.

    Shapes: self (*, n, n); L (*, n, n), info (*) int32.

    >>> torch.linalg.cholesky_ex(torch.tensor([[4.0, 2.0], [2.0, 5.0]]))
    rushlight.return_types.linalg_cholesky_ex(
    L=tensor([[2., 0.],
            [1., 2.]]),
    info=tensor(0, dtype=rushlight.int32))
    >>> torch.linalg.cholesky_ex(torch.tensor([[1.0, 2.0], [2.0, 1.0]])).info
    tensor(2, dtype=rushlight.int32)""",
)


@composite(
    "linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor",
    public="linalg.cholesky",
    method=False,
    out=True,
    formula="L @ L.mH = self, or L.mH @ L = self when upper (L is upper triangular then)",
)
def linalg_cholesky(self: Any, upper: bool) -> Any:
    """The Cholesky factor of Hermitian positive-definite matrices: a triangle that is their square root.

    Only the triangle named by upper is read. linalg.LinAlgError when a matrix is not positive-definite.

    Shapes: self (*, n, n); the result has the same.

    >>> torch.linalg.cholesky(torch.tensor([[4.0, 2.0], [2.0, 5.0]]))
    tensor([[2., 0.],
            [1., 2.]])
    """
    return rl.linalg_cholesky_ex(self, upper=upper, check_errors=True)[0]


@composite(
    "cholesky(Tensor self, bool upper=False) -> Tensor",
    out=True,
    formula="L @ L.mH = self, or L.mH @ L = self when upper (L is upper triangular then)",
)
def cholesky(self: Any, upper: bool) -> Any:
    """The Cholesky factor of Hermitian positive-definite matrices; linalg.cholesky is the newer name.

    linalg.LinAlgError when a matrix is not positive-definite.

    Shapes: self (*, n, n); the result has the same.

    >>> torch.cholesky(torch.tensor([[4.0, 2.0], [2.0, 5.0]]), upper=True)
    tensor([[2., 1.],
            [0., 2.]])
    """
    return rl.linalg_cholesky_ex(self, upper=upper, check_errors=True)[0]


def _cholesky_solve_backward(grad: Any, factor: Any, X: Any, upper: bool, needs: tuple[bool, ...]) -> Any:
    """As of any factor, not only of triangular ones: A = L L.mH gives (gA + gA.mH) L."""
    g_b = rl.cholesky_solve(grad, factor, upper)
    g_factor = None
    if needs[1]:
        g_a = rl.matmul(g_b, _h(X))
        g_a = -(g_a + _h(g_a))
        g_factor = rl.matmul(factor, g_a) if upper else rl.matmul(g_a, factor)
    return g_b, g_factor


native(
    "cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor",
    batch=_batch.matrices,
    derivative={
        "self, input2": lambda grad, input2, result, upper, needs, self_shape, input2_shape: _to_shapes(
            _cholesky_solve_backward(grad, input2, result, upper, needs), self_shape, input2_shape
        )
    },
    formula="A X = self, A = L @ L.mH for the factor L = input2 (A = L.mH @ L when upper)",
    doc="""The solution of systems whose matrix A is given by its Cholesky factor.

    Shapes: self (*, n, k), input2 (*, n, n), batch dimensions broadcast; the result (*, n, k).

    >>> factor = torch.tensor([[2.0, 0.0], [1.0, 2.0]])  # of [[4, 2], [2, 5]]
    >>> torch.cholesky_solve(torch.tensor([[6.0], [7.0]]), factor)
    tensor([[1.],
            [1.]])""",
)


def _to_shapes(grads: tuple[Any, ...], *shapes: Any) -> tuple[Any, ...]:
    """Each gradient summed over what was broadcast."""
    return tuple(g if g is None else g.sum_to_size(s) for g, s in zip(grads, shapes, strict=True))


native(
    "cholesky_inverse(Tensor self, bool upper=False) -> Tensor",
    batch=_batch.matrices,
    derivative={"self": lambda grad, self, upper, result: _cholesky_inverse_backward(grad, self, upper, result)},
    formula="out = inverse of (self @ self.mH), or of (self.mH @ self) when upper",
    doc="""The inverse of matrices that are given by their Cholesky factor.

    Shapes: self (*, n, n); the result has the same.

    >>> torch.cholesky_inverse(torch.tensor([[2.0, 0.0], [1.0, 2.0]]))  # of [[4, 2], [2, 5]]
    tensor([[ 0.3125, -0.1250],
            [-0.1250,  0.2500]])""",
)


def _cholesky_inverse_backward(grad: Any, factor: Any, upper: bool, inverse: Any) -> Any:
    common = -rl.matmul(inverse, rl.matmul(grad + _h(grad), inverse))
    return rl.matmul(factor, common) if upper else rl.matmul(common, factor)


# ---------------------------------------------------------------- LU


def _permute_back(rows: Any, pivots: Any) -> Any:
    """P @ rows, for P L U = A."""
    order = rl.argsort(rl._lu_permutation(pivots, rows.shape[-2]), -1).unsqueeze(-1).expand(rows.shape)
    return rl.gather(rows, -2, order)


def _permute(rows: Any, pivots: Any) -> Any:
    """P.mT @ rows."""
    return rl.gather(rows, -2, rl._lu_permutation(pivots, rows.shape[-2]).unsqueeze(-1).expand(rows.shape))


def _lu_backward(grad: Any, lu: Any, pivots: Any) -> Any:
    """The gradient of A from that of the factors, kept in one matrix; rectangles are split as in S. Axelsson's note."""
    m, n = lu.shape[-2], lu.shape[-1]
    k = min(m, n)
    lower, upper = lu.narrow(-1, 0, k), lu.narrow(-2, 0, k)
    square_l = rl._unit_lower(lower.narrow(-2, 0, k))
    square_u = upper.narrow(-1, 0, k).triu()
    g = grad.narrow(-2, 0, k).narrow(-1, 0, k)
    g_l, g_u = g.tril(-1), g.triu()
    rest: Any = None
    if n > m:  # U = [U1 U2]
        rest = rl.linalg_solve_triangular(_h(square_l), grad.narrow(-1, k, n - k), upper=True, unitriangular=True)
        g_l = g_l - rl.matmul(rest, _h(upper.narrow(-1, k, n - k))).tril(-1)
    elif m > n:  # L = [L1; L2]
        rest = rl.linalg_solve_triangular(_h(square_u), grad.narrow(-2, k, m - k), upper=False, left=False)
        g_u = g_u - rl.matmul(_h(lower.narrow(-2, k, m - k)), rest).triu()
    inner = rl.matmul(_h(square_l), g_l).tril(-1) + rl.matmul(g_u, _h(square_u)).triu()
    inner = rl.linalg_solve_triangular(_h(square_l), inner, upper=True, unitriangular=True)
    inner = rl.linalg_solve_triangular(_h(square_u), inner, upper=False, left=False)
    if n > m:
        inner = rl.cat([inner, rest], -1)
    elif m > n:
        inner = rl.cat([inner, rest], -2)
    return _permute_back(inner, pivots)


@composite("_unit_lower(Tensor self) -> Tensor", method=False)
def _unit_lower(self: Any) -> Any:
    """The strictly lower triangle with ones on the diagonal."""
    return self.tril(-1) + rl.eye(self.shape[-2], self.shape[-1], dtype=self.dtype, device=self.device)


native(
    "_lu_permutation(Tensor pivots, int rows) -> Tensor",
    batch=_batch.matrices,
    doc="The order of rows that pivots stand for: row i of L U is that row of A.",
)
native(
    "linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> "
    "(Tensor LU, Tensor pivots, Tensor info)",
    batch=_batch.matrices,
    public="linalg.lu_factor_ex",
    method=False,
    out=True,
    options={"not_differentiable": ("pivots", "info")},
    derivative={"A": lambda grad_LU, LU, pivots: _lu_backward(grad_LU, LU, pivots)},
    formula="A = P L U",
    doc="""The LU factorisation with both factors in one matrix, as systems are solved with it, and where it fails.

    LU has U in its upper triangle and L, whose diagonal is ones, below. Step i exchanged row i and row pivots[i],
    counted from 1; RuntimeError without pivot, which is not for CPUs. info is 0, or the position (from 1) of the first
    zero on the diagonal of U; with check_errors linalg.LinAlgError is raised instead.

    Shapes: A (*, m, n); LU (*, m, n), pivots (*, min(m, n)) int32, info (*) int32.

    >>> torch.linalg.lu_factor_ex(torch.tensor([[2.0, 1.0], [4.0, 6.0]]))
    rushlight.return_types.linalg_lu_factor_ex(
    LU=tensor([[ 4.0000,  6.0000],
            [ 0.5000, -2.0000]]),
    pivots=tensor([2, 2], dtype=rushlight.int32),
    info=tensor(0, dtype=rushlight.int32))""",
)


@composite(
    "linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)",
    public="linalg.lu_factor",
    method=False,
    out=True,
    formula="A = P L U",
)
def linalg_lu_factor(A: Any, pivot: bool) -> Any:
    """The LU factorisation with both factors in one matrix, as linalg.lu_solve takes it, and the pivots.

    linalg.LinAlgError when U is singular. See linalg.lu_factor_ex.

    Shapes: A (*, m, n); LU (*, m, n), pivots (*, min(m, n)) int32.

    >>> LU, pivots = torch.linalg.lu_factor(torch.tensor([[2.0, 1.0], [4.0, 6.0]]))
    >>> LU, pivots
    (tensor([[ 4.0000,  6.0000],
            [ 0.5000, -2.0000]]), tensor([2, 2], dtype=rushlight.int32))
    """
    lu, pivots, _ = rl.linalg_lu_factor_ex(A, pivot=pivot, check_errors=True)
    return lu, pivots


@composite(
    "lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) -> "
    "(Tensor P, Tensor L, Tensor U)",
    method=False,
    out=True,
    formula="P @ L @ U = A, of LU_data, LU_pivots = linalg.lu_factor(A)",
)
def lu_unpack(LU_data: Any, LU_pivots: Any, unpack_data: bool, unpack_pivots: bool) -> Any:
    """The matrices P, L and U of a factorisation kept in one matrix; those not asked for are empty.

    RuntimeError for pivots that are not int32.

    Shapes: LU_data (*, m, n), LU_pivots (*, k), k = min(m, n); P (*, m, m), L (*, m, k), U (*, k, n).

    >>> P, L, U = torch.lu_unpack(*torch.linalg.lu_factor(torch.tensor([[2.0, 1.0], [4.0, 6.0]])))
    >>> L, U
    (tensor([[1.0000, 0.0000],
            [0.5000, 1.0000]]), tensor([[ 4.,  6.],
            [ 0., -2.]]))
    """
    if unpack_pivots and LU_pivots.dtype != rl.int32:
        raise RuntimeError(f"lu_unpack: LU_pivots; expected int32, got {LU_pivots.dtype}")
    m, n = LU_data.shape[-2], LU_data.shape[-1]
    k = min(m, n)
    empty = LU_data.new_empty((0,))
    p, lower, upper = empty, empty, empty
    if unpack_data:
        lower = rl._unit_lower(LU_data.narrow(-1, 0, k))
        upper = LU_data.narrow(-2, 0, k).triu()
    if unpack_pivots:
        order = rl._lu_permutation(LU_pivots, m)
        p = rl.zeros((*LU_data.shape[:-1], m), dtype=LU_data.dtype, device=LU_data.device)
        p = rl.scatter(p, -2, order.unsqueeze(-2), rl.ones_like(order.unsqueeze(-2), dtype=LU_data.dtype))
    return p, lower, upper


@composite(
    "linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)",
    public="linalg.lu",
    method=False,
    out=True,
    formula="A = P @ L @ U",
)
def linalg_lu(A: Any, pivot: bool) -> Any:
    """The LU decomposition with partial pivoting: a permutation, a unit lower and an upper triangular matrix.

    Shapes: A (*, m, n); P (*, m, m), L (*, m, k), U (*, k, n) with k = min(m, n).

    >>> torch.linalg.lu(torch.tensor([[2.0, 1.0], [4.0, 6.0]]))
    rushlight.return_types.linalg_lu(
    P=tensor([[0., 1.],
            [1., 0.]]),
    L=tensor([[1.0000, 0.0000],
            [0.5000, 1.0000]]),
    U=tensor([[ 4.,  6.],
            [ 0., -2.]]))
    """
    lu, pivots, _ = rl.linalg_lu_factor_ex(A, pivot=pivot)
    return lu_unpack(lu, pivots, True, True)


@composite(
    "lu(Tensor self, bool pivot=True, bool get_infos=False, *, Any? out=None) -> Any",
    formula="self = P L U",
)
def lu(self: Any, pivot: bool, get_infos: bool, out: Any) -> Any:
    """The LU factorisation and its pivots, with info too when get_infos; linalg.lu_factor_ex is the newer name.

    Singular matrices raise no error. TypeError when out has another number of tensors.

    Shapes: self (*, m, n); LU (*, m, n), pivots (*, min(m, n)) int32, info (*) int32.

    >>> torch.lu(torch.tensor([[2.0, 1.0], [4.0, 6.0]]))
    (tensor([[ 4.0000,  6.0000],
            [ 0.5000, -2.0000]]), tensor([2, 2], dtype=rushlight.int32))
    """
    made = rl._lu_with_info(self, pivot, False)
    made = made if get_infos else (made.LU, made.pivots)
    if out is None:
        return made
    if len(out) != len(made):
        raise TypeError(f"lu: out; expected {len(made)} tensors, got {len(out)}")
    return tuple(to.resize_(value.shape).copy_(value) for to, value in zip(out, made, strict=True))


@composite(
    "_lu_with_info(Tensor self, bool pivot=True, bool check_errors=True) -> (Tensor LU, Tensor pivots, Tensor info)"
)
def _lu_with_info(self: Any, pivot: bool, check_errors: bool) -> Any:
    """linalg.lu_factor_ex."""
    return tuple(rl.linalg_lu_factor_ex(self, pivot=pivot, check_errors=check_errors))


def _lu_solve_backward(grad: Any, lu: Any, pivots: Any, x: Any, left: bool, adjoint: bool) -> Any:
    """The gradient of A as in solving, then that of A = P L U."""
    g_b = rl.linalg_lu_solve(lu, pivots, grad, left=left, adjoint=not adjoint)
    if left:
        g_a = -rl.matmul(x, _h(g_b)) if adjoint else -rl.matmul(g_b, _h(x))
    else:
        g_a = -rl.matmul(_h(g_b), x) if adjoint else -rl.matmul(_h(x), g_b)
    while g_a.dim() > lu.dim():
        g_a = g_a.sum(0)
    g_a = _permute(rl._sum_to_batch(g_a, lu), pivots)
    return rl.matmul(g_a, _h(lu.triu())).tril(-1) + rl.matmul(_h(rl._unit_lower(lu)), g_a).triu()


@composite("_sum_to_batch(Tensor self, Tensor like) -> Tensor", method=False)
def _sum_to_batch(self: Any, like: Any) -> Any:
    """The sum over the dimensions along which `like` was broadcast to self's shape."""
    return self.sum_to_size(like.shape)


native(
    "linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> Tensor",
    batch=_batch.matrices,
    public="linalg.lu_solve",
    method=False,
    derivative={
        "LU": lambda grad, LU, pivots, result, left, adjoint: _lu_solve_backward(
            grad, LU, pivots, result, left, adjoint
        ),
        "B": lambda grad, LU, pivots, B_shape, left, adjoint: rl.linalg_lu_solve(
            LU, pivots, grad, left=left, adjoint=not adjoint
        ).sum_to_size(B_shape),
    },
    formula="A X = B, or X A = B when not left; A.mH for A when adjoint",
    doc="""The solution of systems whose matrix A is given by linalg.lu_factor, for which several B need one
    factorisation.

    Shapes: LU (*, n, n), pivots (*, n), B (*, n, k), or (*, k, n) when not left; the result has the shape of B, with
    batch dimensions broadcast.

    >>> LU, pivots = torch.linalg.lu_factor(torch.tensor([[2.0, 1.0], [4.0, 6.0]]))
    >>> torch.linalg.lu_solve(LU, pivots, torch.tensor([[4.0], [16.0]]))
    tensor([[1.],
            [2.]])""",
)


@composite(
    "lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor",
    out=True,
    formula="A X = self",
)
def lu_solve(self: Any, LU_data: Any, LU_pivots: Any) -> Any:
    """The solution of systems whose matrix A is given by its LU factorisation; linalg.lu_solve is the newer name.

    Shapes: self (*, n, k), LU_data (*, n, n), LU_pivots (*, n); the result (*, n, k).

    >>> factors = torch.linalg.lu_factor(torch.tensor([[2.0, 1.0], [4.0, 6.0]]))
    >>> torch.lu_solve(torch.tensor([[4.0], [16.0]]), *factors)
    tensor([[1.],
            [2.]])
    """
    return rl.linalg_lu_solve(LU_data, LU_pivots, self)


# ---------------------------------------------------------------- determinants


def _det_backward(grad: Any, A: Any, result: Any, LU: Any, pivots: Any) -> Any:
    """conj(det) A^-H, and for singular matrices the adjugate from singular values."""
    if A.shape[-1] == 1:
        return grad.unsqueeze(-1).unsqueeze(-1)
    singular = result == 0
    if A.numel() == 0:
        return rl.zeros_like(A)
    if certain(~singular.any()):
        eye = rl.eye(A.shape[-1], dtype=A.dtype, device=A.device)
        scaled = (grad * rl.conj(result)).unsqueeze(-1).unsqueeze(-1) * eye
        return _adjoint_solve(grad, A, LU, pivots, scaled)
    n = A.shape[-1]
    u, s, vh = rl._linalg_svd(A, True, True)
    others = s.unsqueeze(-2).expand((*s.shape, n)).masked_fill(rl.eye(n, dtype=rl.bool, device=A.device), 1).prod(-1)
    phase = rl.conj(rl._linalg_det(u)[0] * rl._linalg_det(vh)[0]) * grad
    return rl.matmul(u * (others.to(A.dtype) * phase.unsqueeze(-1)).unsqueeze(-2), vh)


native(
    "_linalg_det(Tensor A) -> (Tensor result, Tensor LU, Tensor pivots)",
    batch=_batch.matrices,
    options={"not_differentiable": ("LU", "pivots")},
    derivative={"A": lambda grad_result, A, result, LU, pivots: _det_backward(grad_result, A, result, LU, pivots)},
    doc="The determinant, and the factors it comes from.",
)


def _slogdet_backward(grad_sign: Any, grad_log: Any, A: Any, sign: Any, LU: Any, pivots: Any) -> Any:
    g = grad_log
    if A.is_complex():
        g = rl.complex(grad_log, _im(rl.conj(sign) * grad_sign))
    eye = rl.eye(A.shape[-1], dtype=A.dtype, device=A.device)
    return _adjoint_solve(g, A, LU, pivots, g.unsqueeze(-1).unsqueeze(-1) * eye)


native(
    "_linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor pivots)",
    batch=_batch.matrices,
    options={"not_differentiable": ("LU", "pivots")},
    derivative={
        "A": lambda grad_sign, grad_logabsdet, A, sign, LU, pivots: _slogdet_backward(
            grad_sign, grad_logabsdet, A, sign, LU, pivots
        )
    },
    doc="The sign (or phase) of the determinant and the logarithm of its size, and the factors.",
)


@composite(
    "linalg_det(Tensor A) -> Tensor",
    public="linalg.det",
    method=False,
    out=True,
    formula="out = product of the diagonal of U, with a sign for each exchange of rows, of A = P L U",
)
def linalg_det(A: Any) -> Any:
    """The determinant of square matrices.

    slogdet does not overflow where this does. RuntimeError for matrices that are not square.

    Shapes: A (*, n, n); the result (*).

    >>> torch.linalg.det(torch.tensor([[0.0, 2.0], [3.0, 1.0]]))
    tensor(-6.)
    """
    return rl._linalg_det(A)[0]


@composite(
    "det(Tensor self) -> Tensor",
    formula="out = product of the diagonal of U, with a sign for each exchange of rows, of self = P L U",
)
def det(self: Any) -> Any:
    """The determinant of square matrices; the same as linalg.det.

    Shapes: self (*, n, n); the result (*).

    >>> torch.det(torch.tensor([[0.0, 2.0], [3.0, 1.0]]))
    tensor(-6.)
    """
    return rl._linalg_det(self)[0]


@composite(
    "linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)",
    public="linalg.slogdet",
    method=False,
    out=True,
    formula="det(A) = sign * exp(logabsdet)",
)
def linalg_slogdet(A: Any) -> Any:
    """The sign of the determinant of square matrices, or its phase, and the logarithm of its absolute value.

    Of singular matrices they are 0 and -inf.

    Shapes: A (*, n, n); sign (*), logabsdet (*), which is real.

    >>> torch.linalg.slogdet(torch.tensor([[0.0, 1e30], [1e30, 0.0]]))
    rushlight.return_types.linalg_slogdet(
    sign=tensor(-1.),
    logabsdet=tensor(138.1551))
    """
    return tuple(rl._linalg_slogdet(A)[:2])


@composite(
    "slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)",
    out=True,
    formula="det(self) = sign * exp(logabsdet)",
)
def slogdet(self: Any) -> Any:
    """The sign of the determinant of square matrices, or its phase, and the logarithm of its absolute value;
    linalg.slogdet.

    Shapes: self (*, n, n); sign (*), logabsdet (*), which is real.

    >>> torch.slogdet(torch.tensor([[0.0, 2.0], [3.0, 1.0]]))
    rushlight.return_types.slogdet(
    sign=tensor(-1.),
    logabsdet=tensor(1.7918))
    """
    return tuple(rl._linalg_slogdet(self)[:2])


@composite(
    "logdet(Tensor self) -> Tensor",
    formula="out = log(det(self))",
)
def logdet(self: Any) -> Any:
    """The logarithm of the determinant of square matrices, without overflow; NaN when it is negative, -inf when it
    is 0.

    Shapes: self (*, n, n); the result (*).

    >>> torch.logdet(torch.tensor([[3.0, 0.0], [1.0, 2.0]]))
    tensor(1.7918)
    """
    sign, size = rl._linalg_slogdet(self)[:2]
    if self.is_complex():
        return sign.log() + size
    return rl.where(sign == -1.0, float("nan"), size)
