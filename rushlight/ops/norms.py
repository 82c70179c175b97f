"""Norms and distances."""

from __future__ import annotations

from typing import Any

from . import _batch
from ._record import certain, composite, native, rl
from .linalg import _check_matrix, _real_dtype, _to_shapes
from .spectra import linalg_svdvals

# ---------------------------------------------------------------- norms


def _norm_input(name: str, x: Any, dtype: Any) -> Any:
    """x in the dtype that the norm is computed in."""
    if not (x.is_floating_point() or x.is_complex()):
        raise RuntimeError(f"{name}: input; expected floating point or complex elements, got {x.dtype}")
    if dtype is None:
        return x
    if not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(f"{name}: dtype; expected floating point or complex, got {dtype}")
    if dtype.is_complex != x.is_complex():
        kind = "complex" if x.is_complex() else "real"
        raise RuntimeError(f"{name}: dtype; expected a {kind} dtype for {kind} inputs, got {dtype}")
    if rl.promote_types(x.dtype, dtype) != dtype:
        raise RuntimeError(f"{name}: dtype; expected one that holds {x.dtype} without narrowing, got {dtype}")
    return x.to(dtype)


@composite(
    "linalg_vector_norm(Tensor x, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) "
    "-> Tensor",
    public="linalg.vector_norm",
    method=False,
    out=True,
    formula="out = (sum_i |x_i|^ord)^(1/ord)",
)
def linalg_vector_norm(x: Any, ord: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    """The norm of vectors: over all elements, or over dimensions.

    ord may be any number: inf and -inf give the greatest and the least |x_i|, 0 the number of elements other than 0.
    dtype converts before. RuntimeError for integers. Where the norm is 0 the derivative is 0.

    Shapes: x (*); the result, which is real, is without dim (by default all), or has size 1 there with keepdim.

    >>> x = torch.tensor([3.0, -4.0])
    >>> torch.linalg.vector_norm(x), torch.linalg.vector_norm(x, 1), torch.linalg.vector_norm(x, float("inf"))
    (tensor(5.), tensor(7.), tensor(4.))
    """
    x = _norm_input("linalg.vector_norm", x, dtype)
    if isinstance(ord, complex):
        raise RuntimeError(f"linalg.vector_norm: ord; expected a real number, got {ord}")
    return rl._vector_norm(x, float(ord), dim if dim != () else None, keepdim)


@composite(
    "linalg_matrix_norm(Tensor self, Any ord='fro', int[2] dim=[-2, -1], bool keepdim=False, *, "
    "ScalarType? dtype=None) -> Tensor",
    public="linalg.matrix_norm",
    method=False,
    out=True,
    formula="'fro': out = sqrt(sum_ij |a_ij|^2), 'nuc': sum S, 2: S_1, 1: max_j sum_i |a_ij|, inf: max_i sum_j |a_ij|",
)
def linalg_matrix_norm(self: Any, ord: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    """A norm of matrices: of Frobenius, nuclear, spectral, or the greatest sum of a column or a row.

    ord is 'fro' (the default), 'nuc', 2, 1, inf, or -2, -1, -inf, which take the least instead of the greatest; S are
    the singular values. RuntimeError for another ord, for integers, and for fewer than two dimensions.

    Shapes: self (*, m, n), or matrices in two other dimensions dim; the result, real, is without them, or has sizes 1
    there with keepdim.

    >>> A = torch.tensor([[1.0, 2.0], [4.0, -2.0]])
    >>> torch.linalg.matrix_norm(A), torch.linalg.matrix_norm(A, 1), torch.linalg.matrix_norm(A, float("inf"))
    (tensor(5.), tensor(5.), tensor(6.))
    """
    name = "linalg.matrix_norm"
    if self.dim() < 2:
        raise RuntimeError(f"{name}: A; expected at least 2 dimensions, got shape {list(self.shape)}")
    if len(dim) != 2:
        raise RuntimeError(f"{name}: dim; expected 2 dimensions, got {tuple(dim)}")
    rows, columns = (_wrapped(name, d, self.dim()) for d in dim)
    if rows == columns:
        raise RuntimeError(f"{name}: dims must be different; got {tuple(dim)}")
    if ord == "fro":
        x = _norm_input(name, self, dtype)
        return rl._vector_norm(x, 2.0, (rows, columns), keepdim)
    nuclear = ord == "nuc"
    order = 0.0 if isinstance(ord, str) else float(ord)
    if not nuclear and abs(order) not in (1.0, 2.0, float("inf")):
        raise RuntimeError(f"{name}: ord; expected 'fro', 'nuc', inf, -inf, 1, -1, 2 or -2, got {ord!r}")
    x = _norm_input(name, self, dtype)
    if nuclear or abs(order) == 2.0:
        rest = [d for d in range(x.dim()) if d not in (rows, columns)]
        values = linalg_svdvals(x.permute([*rest, rows, columns]), None)
        if nuclear or (values.shape[-1] == 0 and order > 0):  # no values: the norm is 0
            result = values.sum(-1)
        else:
            result = values.amax(-1) if order > 0 else values.amin(-1)
        if keepdim:
            for d in sorted((rows, columns)):
                result = result.unsqueeze(d)
        return result
    # The dimension that is summed over, and the one whose extreme is taken.
    summed, other = (rows, columns) if abs(order) == 1.0 else (columns, rows)
    sums = rl._vector_norm(x, 1.0, (summed,), True)
    if order > 0:
        result = sums.amax(other, True) if x.shape[other] else sums.sum(other, True)
    else:
        result = sums.amin(other, True)
    if not keepdim:
        for d in sorted((rows, columns), reverse=True):
            result = result.squeeze(d)
    return result


def _wrapped(name: str, dim: int, ndim: int) -> int:
    size = max(ndim, 1)
    if not -size <= dim < size:
        raise IndexError(f"{name}: dim; expected it between {-size} and {size - 1}, got {dim}")
    return dim % size


@composite(
    "linalg_norm(Tensor self, Any? ord=None, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) "
    "-> Tensor",
    public="linalg.norm",
    method=False,
    out=True,
    formula="vectors: out = (sum_i |x_i|^ord)^(1/ord); matrices: as linalg.matrix_norm",
)
def linalg_norm(self: Any, ord: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    """A norm of vectors or of matrices, as the number of dimensions says.

    Without ord it is the Euclidean norm of all elements, or over dim. With ord it is a vector norm over one dimension,
    and a matrix norm over two. RuntimeError for ord without dim and other than 1 or 2 dimensions.

    Shapes: self (*); the result, real, is without dim, or has size 1 there with keepdim.

    >>> A = torch.tensor([[3.0, 0.0], [0.0, -4.0]])
    >>> torch.linalg.norm(A), torch.linalg.norm(A, 1), torch.linalg.norm(A, 1, dim=1)
    (tensor(5.), tensor(4.), tensor([3., 4.]))
    """
    if dim is not None and len(dim) not in (1, 2):
        raise RuntimeError(f"linalg.norm: dim; expected 1 or 2 dimensions, got {tuple(dim)}")
    if ord is None:
        return linalg_vector_norm(self, 2, dim, keepdim, dtype)
    if dim is None and self.dim() not in (1, 2):
        raise RuntimeError(
            f"linalg.norm: when ord is given without dim, the input must be 1D or 2D; got shape {list(self.shape)}"
        )
    if isinstance(ord, str) or (len(dim) == 2 if dim is not None else self.dim() == 2):
        if dim is None:
            dim = (0, 1)
        return linalg_matrix_norm(self, ord, dim, keepdim, dtype)
    return linalg_vector_norm(self, ord, dim, keepdim, dtype)


@composite(
    "norm(Tensor self, Any? p='fro', int[1]? dim=None, bool keepdim=False, ScalarType? dtype=None) -> Tensor",
    out=True,
    formula="out = (sum_i |x_i|^p)^(1/p)",
)
def norm(self: Any, p: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    """The norm of all elements or over dimensions; linalg.vector_norm and linalg.matrix_norm are the newer names.

    p='fro', the default, is 2; 'nuc' is the sum of the singular values of matrices in two dimensions. RuntimeError for
    integers.

    Shapes: self (*); the result, real, is without dim, or has size 1 there with keepdim.

    >>> torch.norm(torch.tensor([[3.0, 4.0], [0.0, 5.0]]), dim=1)
    tensor([5., 5.])
    """
    if p == "nuc":
        return linalg_matrix_norm(self, "nuc", tuple(range(self.dim())) if dim is None else dim, keepdim, dtype)
    if isinstance(p, str) and p != "fro":
        raise RuntimeError(f"norm: p; expected a number, 'fro' or 'nuc', got {p!r}")
    return linalg_vector_norm(self, 2 if p is None or p == "fro" else p, dim, keepdim, dtype)


@composite(
    "nuclear_norm(Tensor self, int[2]? dim=None, bool keepdim=False) -> Tensor",
    method=False,
    out=True,
    formula="out = sum_i S_i, S the singular values",
)
def nuclear_norm(self: Any, dim: Any, keepdim: bool) -> Any:
    """The sum of the singular values of matrices; linalg.matrix_norm with 'nuc' is the newer name.

    Shapes: self (m, n), or matrices in two dimensions dim; the result is without them, or has sizes 1 there with
    keepdim.

    >>> torch.nuclear_norm(torch.tensor([[0.0, 2.5], [-0.5, 0.0]]))
    tensor(3.)
    """
    return norm(self, "nuc", dim, keepdim, None)


@composite(
    "frobenius_norm(Tensor self, int[1]? dim=None, bool keepdim=False) -> Tensor",
    method=False,
    out=True,
    formula="out = sqrt(sum_i |x_i|^2)",
)
def frobenius_norm(self: Any, dim: Any, keepdim: bool) -> Any:
    """The root of the sum of squares over dimensions; linalg.vector_norm is the newer name.

    Shapes: self (*); the result, real, is without dim, or has size 1 there with keepdim.

    >>> torch.frobenius_norm(torch.tensor([[3.0, 4.0], [0.0, 5.0]]), dim=1)
    tensor([5., 5.])
    """
    return linalg_vector_norm(self, 2, dim, keepdim, None)


@composite(
    "dist(Tensor self, Tensor other, Scalar p=2) -> Tensor",
    out=True,
    formula="out = (sum_i |self_i - other_i|^p)^(1/p)",
)
def dist(self: Any, other: Any, p: Any) -> Any:
    """The norm of the difference of two tensors, over all elements.

    Shapes: self and other broadcast; the result ().

    >>> torch.dist(torch.tensor([1.0, 1.0]), torch.tensor([4.0, 5.0]))
    tensor(5.)
    """
    return linalg_vector_norm(self - other, p, None, False, None)


@composite(
    "renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor",
    inplace=True,
    out=True,
    formula="out[i] = self[i] min(1, maxnorm / |self[i]|_p)   (for dim 0)",
)
def renorm(self: Any, p: Any, dim: int, maxnorm: Any) -> Any:
    """Slices along a dimension, those whose p-norm is above maxnorm scaled down to it.

    RuntimeError for a p that is not above 0, a negative maxnorm, and fewer than two dimensions.

    Shapes: self (*) of at least two dimensions; the result has the same.

    >>> torch.renorm(torch.tensor([[0.5, 0.0], [6.0, 8.0]]), p=2, dim=0, maxnorm=5.0)
    tensor([[0.5000, 0.0000],
            [3.0000, 4.0000]])
    """
    if isinstance(p, complex) or p <= 0:
        raise RuntimeError(f"renorm: p; expected a positive number, got {p}")
    if isinstance(maxnorm, complex) or maxnorm < 0:
        raise RuntimeError(f"renorm: maxnorm; expected a number of at least 0, got {maxnorm}")
    if self.dim() < 2:
        raise RuntimeError(f"renorm: input; expected at least 2 dimensions, got shape {list(self.shape)}")
    kept = _wrapped("renorm", dim, self.dim())
    wide = self.float() if self.dtype in (rl.float16, rl.bfloat16) else self
    norms = rl._vector_norm(wide, float(p), tuple(d for d in range(self.dim()) if d != kept), True)
    factor = rl.where(norms > maxnorm, maxnorm / (norms + 1e-7), 1.0)
    return self * factor.to(self.dtype)


@composite(
    "linalg_cond(Tensor self, Any? p=None) -> Tensor",
    public="linalg.cond",
    method=False,
    out=True,
    formula="out = |self| |self^-1|; for 2 it is S_1 / S_n",
)
def linalg_cond(self: Any, p: Any) -> Any:
    """The condition number of matrices: how much relative errors of a system may grow.

    p names the matrix norm: None or 2, -2 (S_n / S_1), 'fro', 'nuc', inf, -inf, 1 or -1. Infinite for singular
    matrices, or very large by rounding. RuntimeError for another p, and for matrices that are not square unless p is 2
    or -2.

    Shapes: self (*, m, n); the result (*), real.

    >>> torch.linalg.cond(torch.tensor([[4.0, 0.0], [0.0, 0.5]]))
    tensor(8.)
    """
    _check_matrix("linalg.cond", self)
    if p is None or p in (2, -2):
        s = linalg_svdvals(self, None)
        if s.shape[-1] == 0:
            return self.new_zeros(self.shape[:-2], dtype=s.dtype)
        first, last = s.select(-1, 0), s.select(-1, -1)
        return last / first if p == -2 else first / last
    if isinstance(p, str) and p not in ("fro", "nuc"):
        raise RuntimeError(f"linalg.cond: p; expected None, 'fro', 'nuc', inf, -inf, 1, -1, 2 or -2, got {p!r}")
    if not isinstance(p, str) and abs(float(p)) not in (1.0, float("inf")):
        raise RuntimeError(f"linalg.cond: p; expected None, 'fro', 'nuc', inf, -inf, 1, -1, 2 or -2, got {p!r}")
    if self.shape[-1] != self.shape[-2]:
        raise RuntimeError(f"linalg.cond(ord={p}): A must be batches of square matrices; got shape {list(self.shape)}")
    if self.numel() == 0:
        return rl.zeros(self.shape[:-2], dtype=_real_dtype(self.dtype), device=self.device)
    inverse, info = rl.linalg_inv_ex(self)
    result = linalg_matrix_norm(self, p, (-2, -1), False, None) * linalg_matrix_norm(inverse, p, (-2, -1), False, None)
    return rl.where(info == 0, result, float("inf"))


# ---------------------------------------------------------------- distances


@composite(
    "pairwise_distance(Tensor x1, Tensor x2, float p=2.0, float eps=1e-6, bool keepdim=False) -> Tensor",
    public="pairwise_distance nn.functional.pairwise_distance",
    method=False,
    formula="out = (sum_i |x1_i - x2_i + eps|^p)^(1/p)",
)
def pairwise_distance(x1: Any, x2: Any, p: float, eps: float, keepdim: bool) -> Any:
    """The p-norm of the difference of vectors, over the last dimension.

    eps keeps the derivative away from 0, where it is not defined.

    Shapes: x1 (*, D), x2 (*, D) broadcast; the result (*), or (*, 1) with keepdim.

    >>> x1, x2 = torch.tensor([[0.0, 0.0], [1.0, 1.0]]), torch.tensor([[3.0, 4.0], [1.0, 1.0]])
    >>> torch.pairwise_distance(x1, x2, eps=0.0)
    tensor([5., 0.])
    """
    return linalg_vector_norm(x1 - x2 + eps, p, (-1,), keepdim, None)


def _distance_backward(grad: Any, difference: Any, result: Any, p: float) -> Any:
    """The gradient of |difference|_p over the last dimension, 0 where it is 0."""
    g, norm_ = grad.unsqueeze(-1), result.unsqueeze(-1)
    if p == 0.0:
        return rl.zeros_like(difference)
    if p == 1.0:
        return difference.sgn() * g
    if p == float("inf"):
        return difference.sgn() * (difference.abs() == norm_) * g
    scale = (g / norm_.pow(p - 1)).masked_fill(norm_ == 0, 0)
    if p == 2.0:
        return difference * scale
    return (difference.sgn() * difference.abs().pow(p - 1)).masked_fill(difference == 0, 0) * scale


def _cdist_backward(grad: Any, x1: Any, x2: Any, result: Any, p: float, needs: tuple[bool, ...]) -> Any:
    if x1.numel() == 0 or x2.numel() == 0:
        return rl.zeros_like(x1), rl.zeros_like(x2)
    if p == 2.0:  # without the differences of all pairs
        scale = (grad / result).masked_fill(result == 0, 0)
        g1 = x1 * scale.sum(-1).unsqueeze(-1) - rl.matmul(scale, x2) if needs[0] else None
        g2 = x2 * scale.sum(-2).unsqueeze(-1) - rl.matmul(scale.transpose(-2, -1), x1) if needs[1] else None
    else:
        g = _distance_backward(grad, x1.unsqueeze(-2) - x2.unsqueeze(-3), result, p)
        g1, g2 = (g.sum(-2) if needs[0] else None), (-g.sum(-3) if needs[1] else None)
    return _to_shapes((g1, g2), x1.shape, x2.shape)


@composite("_cdist_product(Tensor x1, Tensor x2) -> Tensor", method=False)
def _cdist_product(x1: Any, x2: Any) -> Any:
    """Euclidean distances of all pairs of rows by a matrix product."""
    if x1.shape[-1] == 0 or x1.shape[-2] == 0 or x2.shape[-2] == 0:
        batch = rl.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
        return x1.new_zeros((*batch, x1.shape[-2], x2.shape[-2]))
    # Around their mean the squares are smaller, and so is what cancels.
    center = x2.mean(-2, True)
    if x1.dim() == x2.dim():
        x1, x2 = x1 - center, x2 - center
    squares = (x1 * x1).sum(-1, True) + (x2 * x2).sum(-1, True).transpose(-2, -1)
    result = (squares - 2 * rl.matmul(x1, x2.transpose(-2, -1))).clamp_min(0).sqrt()
    if not (x1.is_meta or certain(result.isfinite().all())):
        if x1.dtype in (rl.float16, rl.bfloat16):
            return rl._cdist(x1.float(), x2.float(), 2.0, False).to(x1.dtype)
        return rl._cdist(x1, x2, 2.0, False)  # the squares overflow
    return result


native(
    "_cdist(Tensor x1, Tensor x2, float p, bool product) -> Tensor",
    batch=_batch.matrices,
    derivative={"x1, x2": lambda grad, x1, x2, p, result, needs: _cdist_backward(grad, x1, x2, result, p, needs)},
    doc="Distances of all pairs of rows of two batches.",
)
_CDIST_MODES = (
    "use_mm_for_euclid_dist_if_necessary",
    "use_mm_for_euclid_dist",
    "donot_use_mm_for_euclid_dist",
)


@composite(
    "cdist(Tensor x1, Tensor x2, float p=2.0, str compute_mode='use_mm_for_euclid_dist_if_necessary') -> Tensor",
    method=False,
    formula="out_ij = (sum_k |x1_ik - x2_jk|^p)^(1/p)",
)
def cdist(x1: Any, x2: Any, p: float, compute_mode: str) -> Any:
    """The p-norm distance of every row of x1 to every row of x2.

    For p = 2 a matrix product is used when there are more than 25 rows, unless compute_mode forbids it: faster, but
    less exact for rows close together. RuntimeError for a negative p, sizes or dtypes that differ; ValueError for
    another compute_mode.

    Shapes: x1 (*, n, D), x2 (*, m, D), batch dimensions broadcast; the result (*, n, m).

    >>> x1, x2 = torch.tensor([[0.0, 0.0], [3.0, 0.0]]), torch.tensor([[3.0, 4.0]])
    >>> torch.cdist(x1, x2), torch.cdist(x1, x2, p=1)
    (tensor([[5.],
            [4.]]), tensor([[7.],
            [4.]]))
    """
    if compute_mode not in _CDIST_MODES:
        raise ValueError(f"cdist: compute_mode; expected one of {', '.join(_CDIST_MODES)}, got {compute_mode!r}")
    for name, x in (("x1", x1), ("x2", x2)):
        if not x.is_floating_point():
            raise RuntimeError(f"cdist: {name}; expected floating point elements, got {x.dtype}")
        if x.dim() < 2:
            raise RuntimeError(f"cdist: {name}; expected at least 2 dimensions, got shape {list(x.shape)}")
    if x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(f"cdist: expected the same number of columns, got {list(x1.shape)} and {list(x2.shape)}")
    if p < 0:
        raise RuntimeError(f"cdist: p; expected a number of at least 0, got {p}")
    if x1.dtype != x2.dtype:
        raise RuntimeError(f"cdist: expected x1 and x2 of one dtype, got {x1.dtype} and {x2.dtype}")
    many = x1.shape[-2] > 25 or x2.shape[-2] > 25
    product = p == 2.0 and (compute_mode == _CDIST_MODES[1] or (many and compute_mode == _CDIST_MODES[0]))
    if not product and x1.dtype in (rl.float16, rl.bfloat16):
        raise NotImplementedError(f"cdist: expected float32 or float64, got {x1.dtype}")
    return rl._cdist(x1, x2, p, product)


@composite(
    "pdist(Tensor self, float p=2.0) -> Tensor",
    public="pdist nn.functional.pdist",
    method=False,
    formula="out = (sum_k |x_ik - x_jk|^p)^(1/p), for all i < j",
)
def pdist(self: Any, p: float) -> Any:
    """The distances of all pairs of rows, in the order (0, 1), (0, 2), ..., (1, 2), ...

    RuntimeError for a negative p and for other than two dimensions.

    Shapes: self (n, D); the result (n (n - 1) / 2).

    >>> torch.pdist(torch.tensor([[0.0, 0.0], [3.0, 0.0], [3.0, 4.0]]))
    tensor([3., 5., 4.])
    """
    if self.dim() != 2:
        raise RuntimeError(f"pdist: input; expected 2 dimensions, got shape {list(self.shape)}")
    if not self.is_floating_point():
        raise RuntimeError(f"pdist: input; expected floating point elements, got {self.dtype}")
    if p < 0:
        raise RuntimeError(f"pdist: p; expected a number of at least 0, got {p}")
    n = self.shape[0]
    first, second = rl.triu_indices(n, n, 1, device=self.device).unbind(0)
    if self.shape[1] == 0:
        return self.new_zeros((n * (n - 1) // 2,))
    return rl._row_distance(self.index_select(0, first), self.index_select(0, second), p)


@composite("_row_distance_forward(Tensor x1, Tensor x2, float p) -> Tensor", method=False)
def _row_distance_forward(x1: Any, x2: Any, p: float) -> Any:
    """Distances of corresponding rows."""
    return rl._vector_norm(x1 - x2, p, (-1,), False)


native(
    "_row_distance(Tensor x1, Tensor x2, float p) -> Tensor",
    batch="loop",
    derivative={
        "x1": lambda grad, x1, x2, p, result: _distance_backward(grad, x1 - x2, result, p),
        "x2": lambda grad, x1, x2, p, result: -_distance_backward(grad, x1 - x2, result, p),
    },
    doc="Distances of corresponding rows, whose gradient is 0 where they are equal.",
)
