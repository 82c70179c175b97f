"""Norms, distances, products of matrices, and functions of matrices."""

from __future__ import annotations

from typing import Any

from . import _batch
from ._record import composite, native, rl
from .linalg import _check_matrix, _h, _real_dtype, _refuse_low, _to_shapes, linalg_inv
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
    return (squares - 2 * rl.matmul(x1, x2.transpose(-2, -1))).clamp_min(0).sqrt()


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


# ---------------------------------------------------------------- products


@composite(
    "addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    inplace=True,
    out=True,
    formula="out_ij = beta * self_ij + alpha * vec1_i vec2_j",
)
def addr(self: Any, vec1: Any, vec2: Any, beta: Any, alpha: Any) -> Any:
    """The outer product of two vectors added to a matrix.

    With beta = 0 self is not read, so that NaN in it does not count. RuntimeError for vec1 or vec2 that is no vector,
    and for a float beta or alpha of integers.

    Shapes: vec1 (n), vec2 (m), self broadcasts to (n, m), the shape of the result.

    >>> torch.addr(torch.tensor([[100], [200]]), torch.tensor([1, 2]), torch.tensor([10, 20]))
    tensor([[110, 120],
            [220, 240]])
    """
    if vec1.dim() != 1 or vec2.dim() != 1:
        raise RuntimeError(f"addr: expected 1-D vec1 and vec2, got shapes {list(vec1.shape)} and {list(vec2.shape)}")
    shape = (vec1.shape[0], vec2.shape[0])
    if self.dim() > 2 or any(have not in (1, want) for have, want in zip(self.shape[::-1], shape[::-1], strict=False)):
        raise RuntimeError(f"addr: self; expected a shape that broadcasts to {list(shape)}, got {list(self.shape)}")
    dtype = rl.promote_types(rl.promote_types(self.dtype, vec1.dtype), vec2.dtype)
    for name, number in (("beta", beta), ("alpha", alpha)):
        if not (dtype.is_floating_point or dtype.is_complex) and isinstance(number, (float, complex)):
            raise RuntimeError(f"addr: {name}; expected an integer for {dtype} tensors, got {number}")
        if isinstance(number, bool) and dtype != rl.bool:
            raise RuntimeError(f"addr: {name}; expected a number, got {number}")
    left, row = vec1.to(dtype).unsqueeze(1), vec2.to(dtype)
    if dtype == rl.bool:
        product = left & row if alpha else rl.zeros(shape, dtype=dtype, device=self.device)
        return product | self.to(dtype) if beta else product
    product = left * row if alpha == 1 else (left * alpha) * row
    if beta == 0:
        return product
    return (self if beta == 1 else self.to(dtype) * beta) + product


@composite(
    "addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    inplace=True,
    out=True,
    formula="out = beta * self + alpha * sum_b batch1_b @ batch2_b",
)
def addbmm(self: Any, batch1: Any, batch2: Any, beta: Any, alpha: Any) -> Any:
    """The sum of the products of a batch of matrices added to a matrix, as one product of wide matrices.

    With beta = 0 self is not read, so that NaN in it does not count. RuntimeError for sizes that do not fit.

    Shapes: batch1 (B, n, k), batch2 (B, k, m), self broadcasts to (n, m), the shape of the result.

    >>> a = torch.tensor([[[1.0, 2.0]], [[3.0, 4.0]]])
    >>> torch.addbmm(torch.tensor([[100.0]]), a, a.transpose(1, 2))
    tensor([[130.]])
    """
    if batch1.dim() != 3 or batch2.dim() != 3:
        raise RuntimeError(
            f"addbmm: expected 3-D batch1 and batch2, got shapes {list(batch1.shape)} and {list(batch2.shape)}"
        )
    count, rows, inner = batch1.shape
    if batch2.shape[0] != count or batch2.shape[1] != inner:
        raise RuntimeError(
            f"addbmm: incompatible batches; expected batch2 of [{count}, {inner}, n], got {list(batch2.shape)}"
        )
    if self.dtype in (rl.float16, rl.bfloat16) and count > 0:  # rounded after each product, as a user's loop would
        result = rl.addmm(self, batch1.select(0, 0), batch2.select(0, 0), beta=beta, alpha=alpha)
        for i in range(1, count):
            result = rl.addmm(result, batch1.select(0, i), batch2.select(0, i), alpha=alpha)
        return result
    left = batch1.transpose(0, 1).reshape(rows, count * inner)
    return rl.addmm(self, left, batch2.reshape(count * inner, batch2.shape[2]), beta=beta, alpha=alpha)


@composite(
    "kron(Tensor self, Tensor other) -> Tensor",
    out=True,
    formula="out[i p + k, j q + l] = self[i, j] other[k, l], other of sizes p, q",
)
def kron(self: Any, other: Any) -> Any:
    """The Kronecker product: each element of self times the whole of other.

    Shapes: self and other, the shorter with ones put in front; each size of the result is the product of theirs.

    >>> torch.kron(torch.tensor([[1, 10]]), torch.tensor([[1, 2], [3, 4]]))
    tensor([[ 1,  2, 10, 20],
            [ 3,  4, 30, 40]])
    """
    n = max(self.dim(), other.dim())
    a, b = (1,) * (n - self.dim()) + tuple(self.shape), (1,) * (n - other.dim()) + tuple(other.shape)
    left = self.reshape([s for size in a for s in (size, 1)])
    right = other.reshape([s for size in b for s in (1, size)])
    return (left * right).reshape([x * y for x, y in zip(a, b, strict=True)])


@composite(
    "linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor",
    public="linalg.cross",
    method=False,
    out=True,
    formula="out = (a_2 b_3 - a_3 b_2, a_3 b_1 - a_1 b_3, a_1 b_2 - a_2 b_1)",
)
def linalg_cross(self: Any, other: Any, dim: int) -> Any:
    """The cross product of vectors of 3 elements.

    RuntimeError unless dim has size 3 in both.

    Shapes: self and other of as many dimensions, with size 3 in dim, the others broadcast; the result has the common
    shape.

    >>> torch.linalg.cross(torch.tensor([1, 0, 0]), torch.tensor([0, 1, 0]))
    tensor([0, 0, 1])
    """
    if self.dim() != other.dim():
        raise RuntimeError(
            "linalg.cross: inputs must have the same number of dimensions; got shapes "
            f"{list(self.shape)} and {list(other.shape)}"
        )
    d = _wrapped("linalg.cross", dim, self.dim())
    if self.dim() == 0 or self.shape[d] != 3 or other.shape[d] != 3:
        raise RuntimeError(
            f"linalg.cross: dimension {dim}; expected length 3, got shapes {list(self.shape)} and {list(other.shape)}"
        )
    a, b = rl.cat([self, self.narrow(d, 0, 2)], d), rl.cat([other, other.narrow(d, 0, 2)], d)
    return a.narrow(d, 1, 3) * b.narrow(d, 2, 3) - a.narrow(d, 2, 3) * b.narrow(d, 1, 3)


@composite(
    "cross(Tensor self, Tensor other, int? dim=None) -> Tensor",
    out=True,
    formula="out = (a_2 b_3 - a_3 b_2, a_3 b_1 - a_1 b_3, a_1 b_2 - a_2 b_1)",
)
def cross(self: Any, other: Any, dim: Any) -> Any:
    """The cross product of vectors of 3 elements; linalg.cross, but along the first dimension of size 3 without
    dim.

    RuntimeError where there is none.

    Shapes: self and other of as many dimensions, with size 3 in dim, the others broadcast; the result has the common
    shape.

    >>> torch.cross(torch.tensor([1, 2, 3]), torch.tensor([3, 2, 1]), dim=0)
    tensor([-4,  8, -4])
    """
    if dim is None:
        dim = next((d for d, size in enumerate(self.shape) if size == 3), None)
        if dim is None:
            raise RuntimeError(f"cross: no dimension of size 3 in input; got shape {list(self.shape)}")
    return linalg_cross(self, other, dim)


@composite(
    "linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor",
    public="linalg.vecdot",
    method=False,
    out=True,
    formula="out = sum_i conj(x_i) y_i",
)
def linalg_vecdot(x: Any, y: Any, dim: int) -> Any:
    """The inner products of vectors along a dimension, with x conjugated.

    RuntimeError for integers and for dtypes that differ.

    Shapes: x and y broadcast; the result is without dim.

    >>> torch.linalg.vecdot(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([10.0, 100.0]))
    tensor([210., 430.])
    """
    _refuse_low("linalg.vecdot", "x", x)
    if x.dtype != y.dtype:
        raise RuntimeError(f"linalg.vecdot: expected x and y of one dtype, got {x.dtype} and {y.dtype}")
    if x.dim() == 1 and y.dim() == 1 and x.shape == y.shape and dim in (0, -1):
        return rl.vdot(x, y)
    return (rl.conj(x) * y).sum(dim)


@composite(
    "linalg_diagonal(Tensor A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor",
    public="linalg.diagonal",
    method=False,
    formula="out_i = A[i, i + offset]",
)
def linalg_diagonal(A: Any, offset: int, dim1: int, dim2: int) -> Any:
    """The diagonal of the last two dimensions (unless dim1 and dim2 name others), put last; a view.

    Shapes: A (*, m, n); the result (*, k), k the length of the diagonal.

    >>> torch.linalg.diagonal(torch.tensor([[1, 2, 3], [4, 5, 6]]), offset=1)
    tensor([2, 6])
    """
    return rl.diagonal(A, offset, dim1, dim2)


def _power(A: Any, n: int, name: str) -> Any:
    if A.dim() < 2 or A.shape[-1] != A.shape[-2]:
        raise RuntimeError(f"{name}: A must be batches of square matrices; got shape {list(A.shape)}")
    if n == 0:
        eye = rl.eye(A.shape[-1], dtype=A.dtype, device=A.device)
        return rl.where(rl.ones_like(A, dtype=rl.bool), eye, A)  # a function of A, if a constant one
    if n < 0:
        A, n = linalg_inv(A), -n
    result = None
    while n:
        if n & 1:
            result = A if result is None else rl.matmul(result, A)
        n >>= 1
        if n:
            A = rl.matmul(A, A)
    return result


@composite(
    "linalg_matrix_power(Tensor self, int n) -> Tensor",
    public="linalg.matrix_power",
    method=False,
    out=True,
    formula="out = self @ self @ ... @ self, n times",
)
def linalg_matrix_power(self: Any, n: int) -> Any:
    """The n-th power of square matrices, by repeated squaring.

    Negative powers are those of the inverse, the power 0 is the identity. RuntimeError for matrices that are not
    square, linalg.LinAlgError for a negative power of a singular one.

    Shapes: self (*, m, m); the result has the same.

    >>> fibonacci = torch.tensor([[1, 1], [1, 0]])
    >>> torch.linalg.matrix_power(fibonacci, 10)
    tensor([[89, 55],
            [55, 34]])
    """
    result = _power(self, n, "linalg.matrix_power")
    return result.clone() if result is self else result


@composite(
    "matrix_power(Tensor self, int n) -> Tensor",
    out=True,
    formula="out = self @ self @ ... @ self, n times",
)
def matrix_power(self: Any, n: int) -> Any:
    """The n-th power of square matrices; linalg.matrix_power is the newer name.

    Shapes: self (*, m, m); the result has the same.

    >>> torch.matrix_power(torch.tensor([[1, 1], [0, 1]]), 5)
    tensor([[1, 5],
            [0, 1]])
    """
    return linalg_matrix_power(self, n)


def _chain_order(sizes: list[int]) -> list[list[int]]:
    """Where to split each chain of matrices for the fewest multiplications (T. Cormen et al., "Introduction to
    Algorithms", section 15.2).
    """
    n = len(sizes) - 1
    cost = [[0] * n for _ in range(n)]
    split = [[0] * n for _ in range(n)]
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            cost[i][j], split[i][j] = min(
                (cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)
            )
    return split


def _chain(tensors: list[Any]) -> Any:
    split = _chain_order([tensors[0].shape[0], *(t.shape[1] for t in tensors)])

    def product(i: int, j: int) -> Any:
        if i == j:
            return tensors[i]
        return rl.matmul(product(i, split[i][j]), product(split[i][j] + 1, j))

    return product(0, len(tensors) - 1)


@composite(
    "linalg_multi_dot(Tensor[] tensors) -> Tensor",
    public="linalg.multi_dot",
    method=False,
    out=True,
    formula="out = A_1 @ A_2 @ ... @ A_n",
)
def linalg_multi_dot(tensors: Any) -> Any:
    """The product of several matrices, in the order of least multiplications (T. Cormen et al., section 15.2).

    RuntimeError for fewer than two tensors, sizes or dtypes that do not fit.

    Shapes: A_1 (n, k) or (k), the middle ones matrices, A_n (l, m) or (l); the result (n, m), without n or m for a
    vector.

    >>> row, matrix = torch.tensor([1, 2]), torch.tensor([[1, 0], [1, 1]])
    >>> torch.linalg.multi_dot([row, matrix, matrix])
    tensor([5, 2])
    """
    if len(tensors) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(tensors)}")
    first, last = tensors[0], tensors[-1]
    if first.dim() not in (1, 2) or last.dim() not in (1, 2):
        raise RuntimeError(
            f"multi_dot(): the first and last tensors must be 1D or 2D; got {first.dim()}D and {last.dim()}D"
        )
    for i, t in enumerate(tensors[1:-1], 1):
        if t.dim() != 2:
            raise RuntimeError(f"multi_dot(): tensor {i} must be 2D; got {t.dim()}D")
    if any(t.dtype != first.dtype for t in tensors):
        raise RuntimeError(f"multi_dot(): expected one dtype for all, got {[str(t.dtype) for t in tensors]}")
    matrices = [*tensors]
    if first.dim() == 1:
        matrices[0] = first.unsqueeze(0)
    if last.dim() == 1:
        matrices[-1] = last.unsqueeze(-1)
    for i in range(len(matrices) - 1):
        if matrices[i].shape[1] != matrices[i + 1].shape[0]:
            raise RuntimeError(
                f"multi_dot(): tensors {i} and {i + 1} cannot be multiplied; got shapes {list(matrices[i].shape)} and "
                f"{list(matrices[i + 1].shape)}"
            )
    result = _chain(matrices)
    if last.dim() == 1:
        result = result.squeeze(-1)
    return result.squeeze(0) if first.dim() == 1 else result


@composite(
    "linalg_vander(Tensor x, *, int? N=None) -> Tensor",
    public="linalg.vander",
    method=False,
    formula="out_ij = x_i^j, j = 0 ... N - 1",
)
def linalg_vander(x: Any, N: Any) -> Any:
    """The matrix of Vandermonde: powers of each element, along a new last dimension.

    N is the size of the last dimension of x unless given. RuntimeError for N of at most 1, and for bool.

    Shapes: x (*, n); the result (*, n, N).

    >>> torch.linalg.vander(torch.tensor([2, 3, 5]))
    tensor([[ 1,  2,  4],
            [ 1,  3,  9],
            [ 1,  5, 25]])
    """
    if x.dtype == rl.bool:
        raise RuntimeError("linalg.vander: x; expected numbers, got bool")
    if x.dim() == 0:
        x = x.unsqueeze(0)
    n = x.shape[-1] if N is None else N
    if n <= 1:
        raise RuntimeError(f"linalg.vander: N; expected a number greater than 1, got {n}")
    # The first power is x itself: with it taken out of the product, its second derivative is none, not a zero.
    column = x.unsqueeze(-1)
    if not (x.is_floating_point() or x.is_complex()):
        column = column.to(rl.int64)
    ones = rl.ones_like(column)
    if n == 2:
        return rl.cat([ones, column], -1)
    return rl.cat([ones, column, column.expand((*x.shape, n - 1)).cumprod(-1).narrow(-1, 1, n - 2)], -1)


def _product(sizes: Any) -> int:
    result = 1
    for size in sizes:
        result *= size
    return result


@composite(
    "linalg_tensorinv(Tensor self, int ind=2) -> Tensor",
    public="linalg.tensorinv",
    method=False,
    out=True,
    formula="tensordot(out, self, ind) = 1",
)
def linalg_tensorinv(self: Any, ind: int) -> Any:
    """The inverse of a tensor as a map from its last dimensions to its first `ind`.

    RuntimeError when both have not as many elements; linalg.LinAlgError when the map is singular.

    Shapes: self (*first, *last), ind dimensions first; the result (*last, *first).

    >>> A = torch.eye(6).reshape(2, 3, 6) * 2
    >>> torch.linalg.tensorinv(A, ind=2).shape
    rushlight.Size([6, 2, 3])
    """
    if ind <= 0:
        raise RuntimeError(f"linalg.tensorinv: ind; expected a positive number, got {ind}")
    first, last = tuple(self.shape[:ind]), tuple(self.shape[ind:])
    if _product(first) != _product(last):
        raise RuntimeError(
            "linalg.tensorinv: expected as many elements in the first `ind` dimensions as in the others, got "
            f"{list(first)} and {list(last)}"
        )
    matrix = self.reshape(_product(first), _product(last))
    return linalg_inv(matrix).reshape(last + first)


@composite(
    "linalg_tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor",
    public="linalg.tensorsolve",
    method=False,
    out=True,
    formula="tensordot(self, X, X.ndim) = other",
)
def linalg_tensorsolve(self: Any, other: Any, dims: Any) -> Any:
    """The solution X of a linear system whose unknowns and right side are tensors.

    `dims` of self are moved to its end first. RuntimeError when the system is not square; linalg.LinAlgError when it
    is singular.

    Shapes: self (*other.shape, *rest), where both parts have as many elements; the result (*rest).

    >>> A = torch.eye(4).reshape(2, 2, 4) * 2
    >>> torch.linalg.tensorsolve(A, torch.tensor([[2.0, 4.0], [6.0, 8.0]]))
    tensor([1., 2., 3., 4.])
    """
    if dims is not None:
        moved = [_wrapped("linalg.tensorsolve", d, self.dim()) for d in dims]
        self = self.permute([d for d in range(self.dim()) if d not in moved] + moved)
    rest = tuple(self.shape[other.dim() :])
    if _product(rest) != _product(self.shape[: other.dim()]):
        raise RuntimeError(
            "linalg.tensorsolve: self; expected prod(shape[other.ndim:]) == prod(shape[:other.ndim]), got "
            f"{list(rest)} and {list(self.shape[: other.dim()])}"
        )
    n = _product(rest)
    return rl.linalg_solve(self.reshape(n, n), other.reshape(-1)).reshape(rest)


# ---------------------------------------------------------------- the exponential


@composite("_matrix_exp_forward(Tensor self) -> Tensor", method=False)
def _matrix_exp_forward(self: Any) -> Any:
    """N. Higham, "The scaling and squaring method for the matrix exponential revisited" (2005), with the Pade
    approximant of degree 13; each matrix of a batch is squared as often as its own norm asks for.
    """
    dtype = self.dtype
    if self.numel() == 0 or self.is_meta:
        return rl.empty_like(self)
    # In double precision, which costs twice but hides the growth of rounding errors by squaring.
    self = self.to(rl.complex128 if self.is_complex() else rl.float64)
    n = self.shape[-1]
    a = self.reshape(-1, n, n)
    norms = a.abs().sum(-2).amax(-1)
    eye = rl.eye(n, dtype=a.dtype, device=a.device)
    bound = 5.371920351148152
    squarings = (norms / bound).log2().ceil().clamp(0, 1000)
    squarings = rl.where(squarings.isnan(), 0.0, squarings)
    a = a * rl.exp2(-squarings).to(a.dtype).unsqueeze(-1).unsqueeze(-1)
    c = _PADE
    a2 = rl.bmm(a, a)
    a4 = rl.bmm(a2, a2)
    a6 = rl.bmm(a4, a2)
    u = rl.bmm(a6, c[13] * a6 + c[11] * a4 + c[9] * a2) + c[7] * a6 + c[5] * a4 + c[3] * a2 + c[1] * eye
    u = rl.bmm(a, u)
    v = rl.bmm(a6, c[12] * a6 + c[10] * a4 + c[8] * a2) + c[6] * a6 + c[4] * a4 + c[2] * a2 + c[0] * eye
    result = rl.linalg_solve_ex(v - u, v + u)[0]
    for i in range(int(squarings.max().item())):
        again = squarings > i
        result = rl.where(again.unsqueeze(-1).unsqueeze(-1), rl.bmm(result, result), result)
    return result.reshape(self.shape).to(dtype)


_PADE = tuple(
    x / 64764752532480000.0
    for x in (
        64764752532480000.0,
        32382376266240000.0,
        7771770303897600.0,
        1187353796428800.0,
        129060195264000.0,
        10559470521600.0,
        670442572800.0,
        33522128640.0,
        1323241920.0,
        40840800.0,
        960960.0,
        16380.0,
        182.0,
        1.0,
    )
)


def _matrix_exp_backward(grad: Any, self: Any) -> Any:
    """R. Mathias, "A chain rule for matrix functions and applications" (1996): a corner of the exponential of a block
    matrix.
    """
    a = _h(self)
    n = a.shape[-1]
    zeros = rl.zeros_like(a)
    blocks = rl.cat([rl.cat([a, grad], -1), rl.cat([zeros, a], -1)], -2)
    return rl.matrix_exp(blocks).narrow(-2, 0, n).narrow(-1, n, n)


native(
    "matrix_exp(Tensor self) -> Tensor",
    batch=_batch.matrices,
    public="matrix_exp linalg.matrix_exp",
    out=False,
    derivative={"self": lambda grad, self: _matrix_exp_backward(grad, self)},
    doc="""The exponential of square matrices, by scaling and squaring with a Pade approximant (N. Higham, 2005).

    Shapes: self (*, n, n); the result has the same.

    >>> torch.matrix_exp(torch.tensor([[0.0, 1.5], [0.0, 0.0]]))
    tensor([[1.0000, 1.5000],
            [0.0000, 1.0000]])""",
    formula="out = sum_k self^k / k!",
)
