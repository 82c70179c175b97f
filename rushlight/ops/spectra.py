"""Linear algebra by eigenvalues and singular values: spectra, pseudoinverses, ranks, low-rank approximations.

Derivatives follow the conventions of `linalg`.
"""

from __future__ import annotations

from typing import Any

from . import _batch
from ._record import certain, composite, differentiated, native, rl
from .linalg import _check_matrix, _h, _im, _re, _real_dtype, _unused
from .systems import _is_vector

# ---------------------------------------------------------------- eigenvalues


def _off_diagonal(a: Any) -> Any:
    n = a.shape[-1]
    return a.masked_fill(rl.eye(n, dtype=rl.bool, device=a.device), 0)


def _differences(values: Any) -> Any:
    """E[i, j] = values[j] - values[i], with 1 on the diagonal."""
    n = values.shape[-1]
    gaps = values.unsqueeze(-2) - values.unsqueeze(-1)
    return gaps.masked_fill(rl.eye(n, dtype=rl.bool, device=values.device), 1)


def _check_phase(name: str, diagonal: Any, scale: Any) -> None:
    """Refuses a loss that depends on the phase of a vector: its gradient along the phase is not zero."""
    if diagonal.numel() == 0:
        return
    imaginary = _im(diagonal).abs().amax()
    limit = 1e-2
    if certain(~(imaginary <= limit + limit * scale.abs().amax())):
        raise RuntimeError(
            f"{name}: the loss depends on the phase of the vectors, which is not determined; it must be the same "
            "when they are multiplied by numbers of absolute value 1"
        )


def _eigh_backward(g_w: Any, g_v: Any, w: Any, v: Any) -> Any:
    if _unused(g_v):
        return rl.matmul(v * g_w.to(v.dtype).unsqueeze(-2), _h(v))
    inner = rl.matmul(_h(v), g_v)
    if v.is_complex():
        _check_phase("linalg.eigh", inner.diagonal(0, -2, -1), inner)
    inner = _off_diagonal((inner - _h(inner)) * 0.5 / _differences(w).to(v.dtype)) + rl.diag_embed(g_w.to(v.dtype))
    return rl.matmul(v, rl.matmul(inner, _h(v)))


def _eigvalsh_vectors(A: Any, UPLO: str, v: Any) -> Any:
    return v if v.numel() == A.numel() else rl._linalg_eigh(A, UPLO, True)[1]


native(
    "_linalg_eigh(Tensor A, str UPLO='L', bool compute_v=True) -> (Tensor eigenvalues, Tensor eigenvectors)",
    batch=_batch.matrices,
    derivative={
        "A": lambda grad_eigenvalues, grad_eigenvectors, eigenvalues, eigenvectors: _eigh_backward(
            grad_eigenvalues, grad_eigenvectors, eigenvalues, eigenvectors
        )
    },
    out=True,
    doc="Eigenvalues and eigenvectors of Hermitian matrices.",
)


@composite(
    "linalg_eigh(Tensor self, str UPLO='L') -> (Tensor eigenvalues, Tensor eigenvectors)",
    public="linalg.eigh",
    method=False,
    out=True,
    formula="self = V diag(w) V.mH",
)
def linalg_eigh(self: Any, UPLO: str) -> Any:
    """The eigenvalues w in ascending order and orthonormal eigenvectors V, as columns, of Hermitian (or symmetric)
    matrices.

    Only the triangle that UPLO ('L' or 'U') names is read. Vectors are unique only up to their sign (or phase), and up
    to rotation where eigenvalues are equal; derivatives hold for losses that do not depend on that.

    Shapes: self (*, n, n); eigenvalues (*, n), real, eigenvectors (*, n, n).

    >>> A = torch.tensor([[0.5, 1.0], [1.0, 0.5]])
    >>> w, V = torch.linalg.eigh(A)
    >>> w, torch.dist((V * w) @ V.mH, A) < 1e-6
    (tensor([-0.5000,  1.5000]), tensor(True))
    """
    return tuple(rl._linalg_eigh(self, UPLO, True))


@composite(
    "linalg_eigvalsh(Tensor self, str UPLO='L') -> Tensor",
    public="linalg.eigvalsh",
    method=False,
    out=True,
    formula="self v = w v",
)
def linalg_eigvalsh(self: Any, UPLO: str) -> Any:
    """The eigenvalues of Hermitian (or symmetric) matrices, in ascending order.

    Only the triangle that UPLO ('L' or 'U') names is read.

    Shapes: self (*, n, n); the result (*, n), real.

    >>> torch.linalg.eigvalsh(torch.tensor([[0.5, 1.0], [1.0, 0.5]]))
    tensor([-0.5000,  1.5000])
    """
    return rl._linalg_eigh(self, UPLO, differentiated(self))[0]


def _eig_backward(g_w: Any, g_v: Any, w: Any, v: Any, real: bool) -> Any:
    """C. Boeddeker et al., "On the computation of complex-valued gradients with application to statistically optimum
    beamforming" (2017), section 4.
    """
    if _unused(g_v):
        inner = rl.diag_embed(g_w)
    else:
        vh_g = rl.matmul(_h(v), g_v)
        diagonal = vh_g.diagonal(0, -2, -1)
        _check_phase("linalg.eig", diagonal, vh_g)
        vh_g = vh_g - rl.matmul(_h(v), v) * _re(diagonal).unsqueeze(-2).to(v.dtype)
        inner = _off_diagonal(vh_g / rl.conj(_differences(w))) + rl.diag_embed(g_w)
    result = rl.linalg_solve(_h(v), rl.matmul(inner, _h(v)))
    return _re(result) if real else result


native(
    "_linalg_eig(Tensor A, bool compute_v=True) -> (Tensor eigenvalues, Tensor eigenvectors)",
    batch=_batch.matrices,
    derivative={
        "A": lambda grad_eigenvalues, grad_eigenvectors, eigenvalues, eigenvectors, A_dtype: _eig_backward(
            grad_eigenvalues, grad_eigenvectors, eigenvalues, eigenvectors, not A_dtype.is_complex
        )
    },
    out=True,
    doc="Eigenvalues and eigenvectors of square matrices.",
)


@composite(
    "linalg_eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)",
    public="linalg.eig",
    method=False,
    out=True,
    formula="self @ V = V diag(w)",
)
def linalg_eig(self: Any) -> Any:
    """The eigenvalues w and eigenvectors V, columns of norm 1, of square matrices; complex, in no order.

    Vectors are unique only up to their phase; derivatives hold for losses that do not depend on it. For Hermitian
    matrices eigh is faster and more accurate.

    Shapes: self (*, n, n); eigenvalues (*, n), eigenvectors (*, n, n), both complex.

    >>> w, V = torch.linalg.eig(torch.tensor([[0.0, -0.5], [0.5, 0.0]]))  # half of a quarter turn
    >>> w
    tensor([0.+0.5000j, 0.-0.5000j])
    """
    return tuple(rl._linalg_eig(self, True))


@composite(
    "linalg_eigvals(Tensor self) -> Tensor",
    public="linalg.eigvals",
    method=False,
    out=True,
    formula="self v = w v",
)
def linalg_eigvals(self: Any) -> Any:
    """The eigenvalues of square matrices; complex, in no order.

    Shapes: self (*, n, n); the result (*, n), complex.

    >>> torch.linalg.eigvals(torch.tensor([[0.0, -0.5], [0.5, 0.0]]))
    tensor([0.+0.5000j, 0.-0.5000j])
    """
    return rl._linalg_eig(self, differentiated(self))[0]


# ---------------------------------------------------------------- singular values


def _svd_backward(g_u: Any, g_s: Any, g_vh: Any, U: Any, S: Any, Vh: Any, full: bool) -> Any:
    """J. Townsend, "Differentiating the singular value decomposition" (2016); the complex part is Z. Wan and S. Zhang,
    "Automatic differentiation for complex valued SVD" (2019).
    """
    m, n = U.shape[-2], Vh.shape[-1]
    k = S.shape[-1]
    if _unused(g_u) and _unused(g_vh):
        if full:
            U, Vh = U.narrow(-1, 0, k), Vh.narrow(-2, 0, k)
        return rl.matmul(U * g_s.to(U.dtype).unsqueeze(-2), Vh)
    if full:  # the other vectors are any basis of the rest
        U, g_u, Vh, g_vh = U.narrow(-1, 0, k), g_u.narrow(-1, 0, k), Vh.narrow(-2, 0, k), g_vh.narrow(-2, 0, k)
    V = _h(Vh)
    s = S.to(U.dtype)
    uhg = rl.matmul(_h(U), g_u)
    vhg = _h(rl.matmul(g_vh, V))
    squares = _differences(S * S).to(U.dtype)
    if U.is_complex():
        _check_phase("linalg.svd", (uhg + vhg).diagonal(0, -2, -1), uhg.abs() + vhg.abs())
    inner = _off_diagonal((uhg - _h(uhg)) / squares) * s.unsqueeze(-2)
    inner = inner + s.unsqueeze(-1) * _off_diagonal((vhg - _h(vhg)) / squares)
    diagonal = g_s.to(U.dtype)
    if U.is_complex():
        phase = uhg.diagonal(0, -2, -1)
        diagonal = diagonal + (phase - rl.conj(phase)) * 0.5 / s
    inner = inner + rl.diag_embed(diagonal)
    if m == n:
        return rl.matmul(U, rl.matmul(inner, Vh))
    if m > n:
        return rl.matmul(rl.matmul(U, inner) + (g_u - rl.matmul(U, uhg)) / s.unsqueeze(-2), Vh)
    return rl.matmul(U, rl.matmul(inner, Vh) + (g_vh - rl.matmul(_h(vhg), Vh)) / s.unsqueeze(-1))


native(
    "_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor Vh)",
    batch=_batch.matrices,
    derivative={
        "A": lambda grad_U, grad_S, grad_Vh, U, S, Vh, full_matrices: _svd_backward(
            grad_U, grad_S, grad_Vh, U, S, Vh, full_matrices
        )
    },
    out=True,
    doc="The singular value decomposition, or the values alone.",
)


def _check_driver(name: str, driver: Any) -> None:
    if driver is not None:
        raise RuntimeError(f"{name}: keyword argument driver= is only for CUDA inputs; expected None, got {driver!r}")


@composite(
    "linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)",
    public="linalg.svd",
    method=False,
    out=True,
    formula="A = U @ diag(S) @ Vh",
)
def linalg_svd(A: Any, full_matrices: bool, driver: Any) -> Any:
    """The singular value decomposition: singular values S in descending order, orthonormal columns U and rows Vh.

    With full_matrices U and Vh are square. Vectors are unique only up to their sign (or phase), and up to rotation
    where values are equal; derivatives hold for losses that do not depend on that. driver is for CUDA: RuntimeError.

    Shapes: A (*, m, n), k = min(m, n); U (*, m, m), S (*, k), real, Vh (*, n, n), or (*, m, k) and (*, k, n) without
    full_matrices.

    >>> A = torch.tensor([[0.0, 2.5], [1.0, 0.0], [0.0, 0.0]])
    >>> U, S, Vh = torch.linalg.svd(A, full_matrices=False)
    >>> S, U.shape, torch.dist((U * S) @ Vh, A) < 1e-6
    (tensor([2.5000, 1.0000]), rushlight.Size([3, 2]), tensor(True))
    """
    _check_driver("linalg.svd", driver)
    return tuple(rl._linalg_svd(A, full_matrices, True))


@composite(
    "linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor",
    public="linalg.svdvals",
    method=False,
    out=True,
    formula="S_i = sqrt(i-th greatest eigenvalue of A.mH A)",
)
def linalg_svdvals(A: Any, driver: Any) -> Any:
    """The singular values, in descending order.

    driver is for CUDA: RuntimeError.

    Shapes: A (*, m, n); the result (*, min(m, n)), real.

    >>> torch.linalg.svdvals(torch.tensor([[0.0, 2.5], [-0.5, 0.0]]))
    tensor([2.5000, 0.5000])
    """
    _check_driver("linalg.svdvals", driver)
    return rl._linalg_svd(A, False, differentiated(A))[1]


@composite(
    "svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)",
    out=True,
    formula="self = U @ diag(S) @ V.mH",
)
def svd(self: Any, some: bool, compute_uv: bool) -> Any:
    """The singular value decomposition, with V instead of Vh; linalg.svd is the newer name.

    With some (the default) U and V have min(m, n) columns, else they are square; zeros when compute_uv is False.

    Shapes: self (*, m, n), k = min(m, n); U (*, m, k), S (*, k), V (*, n, k), or (*, m, m) and (*, n, n).

    >>> U, S, V = torch.svd(torch.tensor([[0.0, 2.5], [1.0, 0.0]]))
    >>> S
    tensor([2.5000, 1.0000])
    """
    if self.dim() < 2:
        raise RuntimeError(f"svd: expected at least 2 dimensions, got shape {list(self.shape)}")
    if compute_uv:
        u, s, vh = rl._linalg_svd(self, not some, True)
        return u, s, _h(vh)
    m, n = self.shape[-2], self.shape[-1]
    s = linalg_svdvals(self, None)
    return self.new_zeros((*self.shape[:-2], m, m)), s, self.new_zeros((*self.shape[:-2], n, n))


# ---------------------------------------------------------------- pseudoinverses, ranks, condition


def _pinv_backward(grad: Any, inverse: Any, A: Any) -> Any:
    """G. Golub and V. Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares problems whose
    variables separate" (1973).
    """
    gh, ph = _h(grad), _h(inverse)
    first = rl.matmul(ph, rl.matmul(grad, ph))
    second = rl.matmul(gh, rl.matmul(inverse, ph))
    second = second - rl.matmul(A, rl.matmul(inverse, second))
    third = rl.matmul(rl.matmul(ph, inverse), gh)
    third = third - rl.matmul(rl.matmul(third, inverse), A)
    return second + third - first


@composite("_pinv_forward(Tensor A, Tensor atol, Tensor rtol, bool hermitian) -> Tensor", method=False)
def _pinv_forward(A: Any, atol: Any, rtol: Any, hermitian: bool) -> Any:
    """The pseudoinverse from singular values (eigenvalues when hermitian) above max(atol, rtol * the largest)."""
    if A.numel() == 0:
        return A.new_zeros((*A.shape[:-2], A.shape[-1], A.shape[-2]))
    if hermitian:
        s, v = rl._linalg_eigh(A, "L", True)
        u, size = v, s.abs()
    else:
        u, s, vh = rl._linalg_svd(A, False, True)
        v, size = _h(vh), s
    limit = rl.maximum(atol.unsqueeze(-1), rtol.unsqueeze(-1) * size.amax(-1, True))
    scale = rl.where(size > limit, s.reciprocal(), 0.0).to(A.dtype)
    return rl.matmul(v * scale.unsqueeze(-2), _h(u))


native(
    "_linalg_pinv(Tensor A, Tensor atol, Tensor rtol, bool hermitian) -> Tensor",
    batch=_batch.matrices,
    derivative={"A": lambda grad, A, result: _pinv_backward(grad, result, A)},
    doc="The pseudoinverse, with tolerances as tensors.",
)


def _tolerances(name: str, A: Any, atol: Any, rtol: Any) -> tuple[Any, Any]:
    """Both as tensors; the relative one is eps * max(m, n) unless an absolute one is given."""
    real = rl.float64 if A.dtype in (rl.float64, rl.complex128) else rl.float32

    def tensor(x: Any) -> Any:
        if isinstance(x, rl.Tensor):
            if x.is_complex():
                raise RuntimeError(f"{name}: tolerances; expected real numbers, got {x.dtype}")
            return x.to(real) if x.dtype != real else x
        return rl.tensor(float(x), dtype=real, device=A.device)

    if rtol is None:
        default = rl.finfo(real).eps * max(A.shape[-2], A.shape[-1])
        if atol is None:
            return tensor(0.0), tensor(default)
        absolute = tensor(atol)
        return absolute, rl.where(absolute > 0, 0.0, default).to(real)
    return tensor(0.0 if atol is None else atol), tensor(rtol)


@composite(
    "linalg_pinv(Tensor self, Any? rcond=None, bool hermitian=False, *, Any? atol=None, Any? rtol=None) -> Tensor",
    public="linalg.pinv",
    method=False,
    out=True,
    formula="out = V diag(1 / S_i, or 0 where S_i is small) U.mH, of self = U diag(S) V.mH",
)
def linalg_pinv(self: Any, rcond: Any, hermitian: bool, atol: Any, rtol: Any) -> Any:
    """The Moore-Penrose pseudoinverse of matrices.

    Singular values (eigenvalues, when hermitian) up to max(atol, rtol * the greatest) count as 0. rtol is the dtype's
    epsilon times max(m, n), or 0 when atol is given; rcond is an older name of rtol.

    Shapes: self (*, m, n); the result (*, n, m).

    >>> torch.linalg.pinv(torch.tensor([[1.0, 2.0], [2.0, 4.0]]))  # of rank 1
    tensor([[0.0400, 0.0800],
            [0.0800, 0.1600]])
    """
    _check_matrix("linalg.pinv", self)
    if rcond is not None:
        atol, rtol = 0.0, rcond
    return rl._linalg_pinv(self, *_tolerances("linalg.pinv", self, atol, rtol), hermitian)


@composite(
    "pinverse(Tensor self, float rcond=1e-15) -> Tensor",
    formula="out = V diag(1 / S_i, or 0 where S_i <= rcond * S_1) U.mH, of self = U diag(S) V.mH",
)
def pinverse(self: Any, rcond: float) -> Any:
    """The Moore-Penrose pseudoinverse of matrices; linalg.pinv is the newer name.

    Shapes: self (*, m, n); the result (*, n, m).

    >>> torch.pinverse(torch.tensor([[2.0, 1.0], [2.0, 3.0]]))
    tensor([[ 0.7500, -0.2500],
            [-0.5000,  0.5000]])
    """
    return linalg_pinv(self, rcond, False, None, None)


@composite(
    "linalg_matrix_rank(Tensor self, Any? tol=None, bool hermitian=False, *, Any? atol=None, Any? rtol=None) -> Tensor",
    public="linalg.matrix_rank",
    method=False,
    out=True,
    formula="out = how many S_i > max(atol, rtol * S_1)",
)
def linalg_matrix_rank(self: Any, tol: Any, hermitian: bool, atol: Any, rtol: Any) -> Any:
    """The rank of matrices: how many singular values (eigenvalues in size, when hermitian) are not small.

    rtol is the dtype's epsilon times max(m, n), or 0 when atol is given; tol is an older name of atol.

    Shapes: self (*, m, n); the result (*) int64.

    >>> torch.linalg.matrix_rank(torch.tensor([[1.0, 2.0], [2.0, 4.0]]))
    tensor(1)
    """
    _check_matrix("linalg.matrix_rank", self)
    if tol is not None:
        atol, rtol = tol, 0.0
    if self.numel() == 0:
        return rl.zeros(self.shape[:-2], dtype=rl.int64, device=self.device)
    size = linalg_eigvalsh(self.detach(), "L").abs() if hermitian else linalg_svdvals(self.detach(), None)
    absolute, relative = _tolerances("linalg.matrix_rank", self, atol, rtol)
    limit = rl.maximum(absolute.unsqueeze(-1), relative.unsqueeze(-1) * size.amax(-1, True))
    return (size > limit).sum(-1)


# ---------------------------------------------------------------- least squares


def _lstsq_backward(g_x: Any, g_r: Any, A: Any, B: Any, X: Any, needs: tuple[bool, ...]) -> Any:
    """X = pinv(A) B by the derivative of pseudoinverses; residuals are stationary in X."""
    g_a = g_b = None
    if not _unused(g_x):
        inverse = rl.linalg_pinv(A)
        if needs[0]:
            g_a = _pinv_backward(rl.matmul(g_x, _h(B)), inverse, A)
        if needs[1]:
            g_b = rl.matmul(_h(inverse), g_x)
    if g_r.numel() > 0 and not _unused(g_r):
        rest = (rl.matmul(A, X) - B) * (2 * g_r).to(A.dtype).unsqueeze(-2)
        if needs[0]:
            more = rl.matmul(rest, _h(X))
            g_a = more if g_a is None else g_a + more
        if needs[1]:
            g_b = -rest if g_b is None else g_b - rest
    return g_a, g_b


native(
    "_linalg_lstsq(Tensor A, Tensor B, float rcond, str driver) -> "
    "(Tensor solution, Tensor residuals, Tensor rank, Tensor singular_values)",
    batch=_batch.matrices,
    options={"not_differentiable": ("rank", "singular_values")},
    derivative={
        "A, B": lambda grad_solution, grad_residuals, A, B, solution, needs: _lstsq_backward(
            grad_solution, grad_residuals, A, B, solution, needs
        )
    },
    doc="Least squares with one right side a matrix, by the LAPACK routine that driver names.",
)


@composite(
    "linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None) -> "
    "(Tensor solution, Tensor residuals, Tensor rank, Tensor singular_values)",
    public="linalg.lstsq",
    method=False,
    out=True,
    formula="X = argmin |self @ X - b|, the Frobenius norm",
)
def linalg_lstsq(self: Any, b: Any, rcond: Any, driver: Any) -> Any:
    """Least squares: the solution of linear systems with more (or fewer) equations than unknowns.

    driver is 'gelsy' (the default), 'gelsd' or 'gelss', which take matrices of any rank (singular values up to rcond
    times the greatest count as 0), or 'gels', which needs full rank. What a driver does not give among residuals, rank
    and singular values is empty; residuals are squared, given for m > n at full rank. RuntimeError for other drivers
    and sizes that do not fit.

    Shapes: self (*, m, n), b (*, m, k) or vectors (*, m); solution (*, n, k) or (*, n), residuals (*, k) or empty,
    rank (*) or empty, singular_values (*, min(m, n)) or empty.

    >>> A = torch.tensor([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])  # a line: 1.5 + 2 t for t = 0, 1, 2
    >>> torch.linalg.lstsq(A, torch.tensor([[1.5], [3.5], [5.5]])).solution
    tensor([[1.5000],
            [2.0000]])
    """
    _check_matrix("linalg.lstsq", self)
    if b.dim() < 1 or not 0 <= self.dim() - b.dim() <= 1:
        raise RuntimeError(
            "linalg.lstsq: b; expected as many dimensions as A or one less, got shapes "
            f"{list(b.shape)} and {list(self.shape)}"
        )
    if self.dtype != b.dtype:
        raise RuntimeError(f"linalg.lstsq: expected A and b of one dtype, got {self.dtype} and {b.dtype}")
    name = "gelsy" if driver is None else driver
    if name not in ("gels", "gelsy", "gelsd", "gelss"):
        raise RuntimeError(f"linalg.lstsq: driver; expected gels, gelsy, gelsd or gelss, got {driver!r}")
    vector = _is_vector(self, b)
    right = b.unsqueeze(-1) if vector else b
    if right.shape[-2] != self.shape[-2]:
        raise RuntimeError(
            "linalg.lstsq: the rows of A and b differ; expected A.shape[-2] == b.shape[-2] (b.shape[-1] for vectors), "
            f"got shapes {list(self.shape)} and {list(b.shape)}"
        )
    batch = rl.broadcast_shapes(self.shape[:-2], right.shape[:-2])
    a = self.expand(tuple(batch) + tuple(self.shape[-2:]))
    right = right.expand(tuple(batch) + tuple(right.shape[-2:]))
    if rcond is None:
        rcond = rl.finfo(_real_dtype(self.dtype)).eps * max(self.shape[-2], self.shape[-1])
    x, residuals, rank, values = rl._linalg_lstsq(a, right, float(rcond), name)
    return x.squeeze(-1) if vector else x, residuals, rank, values


# ---------------------------------------------------------------- low rank


def _range_basis(A: Any, q: int, niter: int, M: Any) -> Any:
    """An orthonormal basis of nearly the range of A (- M): algorithm 4.4 of Halko, Martinsson and Tropp."""

    def apply(x: Any) -> Any:
        return rl.matmul(A, x) if M is None else rl.matmul(A, x) - rl.matmul(M, x)

    def apply_adjoint(x: Any) -> Any:
        return rl.matmul(_h(A), x) if M is None else rl.matmul(_h(A), x) - rl.matmul(_h(M), x)

    basis = rl.linalg_qr(apply(rl.randn(A.shape[-1], q, dtype=A.dtype, device=A.device)))[0]
    for _ in range(niter):
        basis = rl.linalg_qr(apply_adjoint(basis))[0]
        basis = rl.linalg_qr(apply(basis))[0]
    return basis


def _svd_lowrank(A: Any, q: int, niter: int, M: Any) -> Any:
    if M is not None:
        M = M.expand(A.shape)
    wide = A.shape[-2] < A.shape[-1]
    if wide:
        A, M = _h(A), None if M is None else _h(M)
    basis = _range_basis(A, q, niter, M)
    small = rl.matmul(_h(basis), A)
    if M is not None:
        small = small - rl.matmul(_h(basis), M)
    u, s, vh = rl._linalg_svd(small, False, True)
    u, v = rl.matmul(basis, u), _h(vh)
    return (v, s, u) if wide else (u, s, v)


@composite(
    "svd_lowrank(Tensor A, int? q=6, int? niter=2, Tensor? M=None) -> (Tensor, Tensor, Tensor)",
    method=False,
    random=True,
    formula="U @ diag(S) @ V.mH = nearly A, or A - M",
)
def svd_lowrank(A: Any, q: Any, niter: Any, M: Any) -> Any:
    """An approximation of low rank q of a matrix by random projections: the greatest singular values and their
    vectors.

    niter iterations sharpen it where singular values fall slowly. Random numbers are drawn. N. Halko, P. Martinsson
    and J. Tropp, "Finding structure with randomness" (2011), algorithm 5.1.

    Shapes: A (*, m, n), M broadcasts to it; U (*, m, q), S (*, q), V (*, n, q).

    >>> A = torch.arange(6.0).reshape(6, 1) @ torch.ones(1, 4)  # of rank 1
    >>> U, S, V = torch.svd_lowrank(A, q=1)
    >>> U.shape, S, V.shape
    (rushlight.Size([6, 1]), tensor([14.8324]), rushlight.Size([4, 1]))
    """
    return _svd_lowrank(A, 6 if q is None else q, 2 if niter is None else niter, M)


@composite(
    "pca_lowrank(Tensor A, int? q=None, bool center=True, int niter=2) -> (Tensor, Tensor, Tensor)",
    method=False,
    random=True,
    formula="U @ diag(S) @ V.mH = nearly A - mean of its rows",
)
def pca_lowrank(A: Any, q: Any, center: bool, niter: int) -> Any:
    """The principal components of the rows of A: an approximation of low rank, whose columns V are the directions.

    q is min(6, m, n) unless given; without center the mean stays. Random numbers are drawn, as by svd_lowrank.
    ValueError for a q outside 0 to min(m, n).

    Shapes: A (*, m, n); U (*, m, q), S (*, q), V (*, n, q).

    >>> points = torch.tensor([[0.0, 0.0], [3.0, 4.0], [6.0, 8.0]])
    >>> U, S, V = torch.pca_lowrank(points, q=1)
    >>> S, V.abs()
    (tensor([7.0711]), tensor([[0.6000],
            [0.8000]]))
    """
    m, n = A.shape[-2], A.shape[-1]
    if q is None:
        q = min(6, m, n)
    if not 0 <= q <= min(m, n):
        raise ValueError(f"pca_lowrank: q; expected a number between 0 and min(m, n) = {min(m, n)}, got {q}")
    if niter < 0:
        raise ValueError(f"pca_lowrank: niter; expected a number of at least 0, got {niter}")
    if not (A.is_floating_point() or A.is_complex()):
        raise ValueError(f"pca_lowrank: A; expected floating point or complex elements, got {A.dtype}")
    return _svd_lowrank(A - A.mean(-2, True) if center else A, q, niter, None)
