"""The standard's extension linalg."""

from __future__ import annotations

from typing import Any, NamedTuple

import rushlight as _rl
from rushlight import Tensor

from . import matmul, matrix_transpose, tensordot, vecdot
from . import sum as _sum
from ._kinds import _sum_dtype


class _Eigh(NamedTuple):
    eigenvalues: Tensor
    eigenvectors: Tensor


class _QR(NamedTuple):
    Q: Tensor
    R: Tensor


class _Slogdet(NamedTuple):
    sign: Tensor
    logabsdet: Tensor


class _SVD(NamedTuple):
    U: Tensor
    S: Tensor
    Vh: Tensor


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """The triangular factor of positive definite matrices."""
    return _rl.linalg.cholesky(x, upper=upper)


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The cross product of vectors of three elements."""
    return _rl.linalg.cross(x1, x2, dim=axis)


def det(x: Tensor, /) -> Tensor:
    """Determinants."""
    return _rl.linalg.det(x)


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """The diagonals of matrices."""
    return _rl.diagonal(x, offset, -2, -1)


def eigh(x: Tensor, /) -> Any:
    """Eigenvalues and eigenvectors of symmetric or Hermitian matrices."""
    return _Eigh(*_rl.linalg.eigh(x))


def eigvalsh(x: Tensor, /) -> Tensor:
    """Eigenvalues of symmetric or Hermitian matrices."""
    return _rl.linalg.eigvalsh(x)


def inv(x: Tensor, /) -> Tensor:
    """Inverses."""
    return _rl.linalg.inv(x)


def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """Norms of matrices."""
    return _rl.linalg.matrix_norm(x, ord, (-2, -1), keepdims)


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """Powers of square matrices."""
    return _rl.linalg.matrix_power(x, n)


def matrix_rank(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """How many singular values exceed rtol times the greatest."""
    values = _rl.linalg.svdvals(x)
    if rtol is None:
        rtol = max(x.shape[-2:]) * _rl.finfo(x.dtype).eps
    bound = values.amax(-1, keepdim=True) * (rtol.unsqueeze(-1) if isinstance(rtol, Tensor) else rtol)
    return (values > bound).sum(-1)


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Products of all pairs of two vectors' elements."""
    return _rl.outer(x1, x2)


def pinv(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """Pseudo-inverses (Moore and Penrose)."""
    if rtol is None:
        rtol = max(x.shape[-2:]) * _rl.finfo(x.dtype).eps
    return _rl.linalg.pinv(x, rtol=rtol)


def qr(x: Tensor, /, *, mode: str = "reduced") -> Any:
    """The factors of matrices into orthonormal columns and a triangle."""
    return _QR(*_rl.linalg.qr(x, mode))


def slogdet(x: Tensor, /) -> Any:
    """The signs and logarithms of determinants."""
    return _Slogdet(*_rl.linalg.slogdet(x))


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The solution of x1 @ y = x2; x2 is a vector only when it has one dimension."""
    if x2.ndim == 1:
        return _rl.linalg.solve(x1, x2.unsqueeze(-1)).squeeze(-1)
    shape = _rl.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    return _rl.linalg.solve(x1.expand(*shape, *x1.shape[-2:]), x2.expand(*shape, *x2.shape[-2:]))


def svd(x: Tensor, /, *, full_matrices: bool = True) -> Any:
    """The singular value decomposition."""
    return _SVD(*_rl.linalg.svd(x, full_matrices))


def svdvals(x: Tensor, /) -> Tensor:
    """Singular values."""
    return _rl.linalg.svdvals(x)


def trace(x: Tensor, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """The sums of diagonals."""
    return _sum(diagonal(x, offset=offset), axis=-1, dtype=dtype or _sum_dtype(x.dtype))


def vector_norm(x: Tensor, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Tensor:
    """Norms of vectors along axes, or of all elements."""
    if axis == ():
        return x.abs() if ord else (x != 0).to(x.abs().dtype)
    return _rl.linalg.vector_norm(x, ord, axis, keepdims)


__all__ = [
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eigh",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]
