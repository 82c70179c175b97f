"""Compositions that join, divide, turn and compare tensors."""

from __future__ import annotations

from typing import Any

from ._record import composite, rl


@composite("flipud(Tensor self) -> Tensor")
def flipud(self: Any) -> Any:
    """The first dimension in reverse order, as a copy.

    RuntimeError for a tensor without dimensions.

    Shapes: self (n, *); the result has the same.

    >>> torch.flipud(torch.tensor([[1, 2], [3, 4]]))
    tensor([[3, 4],
            [1, 2]])
    """
    if self.dim() < 1:
        raise RuntimeError(f"flipud: Input must be >= 1-d, got {self.dim()}-d")
    return self.flip(0)


@composite("fliplr(Tensor self) -> Tensor")
def fliplr(self: Any) -> Any:
    """The second dimension in reverse order, as a copy.

    RuntimeError for fewer than two dimensions.

    Shapes: self (n, m, *); the result has the same.

    >>> torch.fliplr(torch.tensor([[1, 2], [3, 4]]))
    tensor([[2, 1],
            [4, 3]])
    """
    if self.dim() < 2:
        raise RuntimeError(f"fliplr: Input must be >= 2-d, got {self.dim()}-d")
    return self.flip(1)


@composite("rot90(Tensor self, int k=1, int[] dims=[0,1]) -> Tensor")
def rot90(self: Any, k: int, dims: Any) -> Any:
    """The plane of two dimensions turned k times by 90 degrees, from the first dimension towards the second, as a
    copy.

    A negative k turns the other way. RuntimeError unless dims are two different ones.

    Shapes: self (n, m), or any with two dimensions dims; for an odd k their sizes are exchanged.

    >>> x = torch.tensor([[1, 2], [3, 4]])
    >>> torch.rot90(x), torch.rot90(x, -1)
    (tensor([[2, 4],
            [1, 3]]), tensor([[3, 1],
            [4, 2]]))
    """
    if len(dims) != 2:
        raise RuntimeError(f"rot90: expected total rotation dims == 2, but got dims = {len(dims)}")
    if self.dim() < 2:
        raise RuntimeError(f"rot90: expected total dims >= 2, but got total dims = {self.dim()}")
    if dims[0] == dims[1] or abs(dims[0] - dims[1]) == self.dim():
        raise RuntimeError(
            f"rot90: expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}"
        )
    for d in dims:
        if not -self.dim() <= d < self.dim():
            raise RuntimeError(f"rot90: Rotation dim out of range, dim = {d}")
    k %= 4
    if k == 0:
        return self.clone(memory_format=rl.contiguous_format)
    if k == 2:
        return self.flip(dims)
    return self.flip(dims[1]).transpose(*dims) if k == 1 else self.flip(dims[0]).transpose(*dims)


@composite("hstack(Tensor[] tensors) -> Tensor", method=False, out=True)
def hstack(tensors: Any) -> Any:
    """Tensors joined side by side: along the first dimension for vectors, else along the second.

    RuntimeError for no tensors, and for sizes that do not fit.

    Shapes: tensors (n_i) or (n, m_i, *), 0-dim ones count as vectors; the result (sum n_i) or (n, sum m_i, *).

    >>> torch.hstack([torch.tensor([1, 2]), torch.tensor([3])])
    tensor([1, 2, 3])
    >>> torch.hstack([torch.tensor([[1], [2]]), torch.tensor([[3], [4]])])
    tensor([[1, 3],
            [2, 4]])
    """
    if not tensors:
        raise RuntimeError("hstack expects a non-empty TensorList")
    items = [rl.atleast_1d(t) for t in tensors]
    return rl.cat(items, 0 if items[0].dim() == 1 else 1)


@composite("vstack(Tensor[] tensors) -> Tensor", public="vstack row_stack", method=False, out=True)
def vstack(tensors: Any) -> Any:
    """Tensors joined below each other, along the first dimension; vectors are rows.

    RuntimeError for no tensors, and for sizes that do not fit.

    Shapes: tensors (m) or (n_i, m, *); the result (sum n_i, m, *).

    >>> torch.vstack([torch.tensor([1, 2]), torch.tensor([[3, 4], [5, 6]])])
    tensor([[1, 2],
            [3, 4],
            [5, 6]])
    """
    if not tensors:
        raise RuntimeError("vstack expects a non-empty TensorList")
    return rl.cat([rl.atleast_2d(t) for t in tensors], 0)


@composite("dstack(Tensor[] tensors) -> Tensor", method=False, out=True)
def dstack(tensors: Any) -> Any:
    """Tensors joined behind each other, along the third dimension; vectors and matrices get one of size 1.

    RuntimeError for no tensors, and for sizes that do not fit.

    Shapes: tensors (m), (n, m) or (n, m, k_i, *); the result (1, m, k) or (n, m, k, *), k the sum of k_i.

    >>> torch.dstack([torch.tensor([1, 2]), torch.tensor([3, 4])])
    tensor([[[1, 3],
             [2, 4]]])
    """
    if not tensors:
        raise RuntimeError("dstack expects a non-empty TensorList")
    return rl.cat([rl.atleast_3d(t) for t in tensors], 2)


@composite("column_stack(Tensor[] tensors) -> Tensor", method=False, out=True)
def column_stack(tensors: Any) -> Any:
    """Tensors joined side by side, along the second dimension; vectors are columns.

    RuntimeError for no tensors, and for sizes that do not fit.

    Shapes: tensors (n) or (n, m_i, *); the result (n, sum m_i, *).

    >>> torch.column_stack([torch.tensor([1, 2]), torch.tensor([[3, 4], [5, 6]])])
    tensor([[1, 3, 4],
            [2, 5, 6]])
    """
    if not tensors:
        raise RuntimeError("column_stack expects a non-empty TensorList")
    return rl.cat([t.reshape(t.numel(), 1) if t.dim() <= 1 else t for t in tensors], 1)


@composite(
    "inner(Tensor self, Tensor other) -> Tensor",
    out=True,
    formula="out[i, j] = sum_k self[i, k] other[j, k]",
)
def inner(self: Any, other: Any) -> Any:
    """Inner products over the last dimensions: of two vectors a number, of matrices those of all pairs of rows.

    RuntimeError when the last sizes differ; the product where one has no dimension.

    Shapes: self (*A, n), other (*B, n); the result (*A, *B).

    >>> torch.inner(torch.tensor([1, 2]), torch.tensor([10, 100]))
    tensor(210)
    >>> torch.inner(torch.tensor([[1, 2], [3, 4]]), torch.tensor([10, 100]))
    tensor([210, 430])
    """
    if self.dim() == 0 or other.dim() == 0:
        return self * other
    if self.size(-1) != other.size(-1):
        raise RuntimeError(
            "inner() the last dimension must match on both input tensors but got shapes "
            f"{list(self.shape)} and {list(other.shape)}"
        )
    return rl.tensordot(self, other, ([-1], [-1]))


@composite(
    "isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> Tensor",
    formula="out = |self - other| <= atol + rtol |other|",
)
def isclose(self: Any, other: Any, rtol: float, atol: float, equal_nan: bool) -> Any:
    """Whether two tensors are close, element by element.

    Infinities are close to themselves alone, NaN to NaN with equal_nan. RuntimeError for dtypes that differ and for
    negative tolerances.

    Shapes: self and other broadcast; the result, bool, has their common shape.

    >>> torch.isclose(torch.tensor([1.0, 1.1]), torch.tensor([1.000001, 1.0]))
    tensor([ True, False])
    """
    if self.dtype != other.dtype:
        raise RuntimeError(f"isclose: expected both tensors to have one dtype, got {self.dtype} and {other.dtype}")
    if not (rtol >= 0 and atol >= 0):
        raise RuntimeError(f"isclose: rtol and atol must be at least zero, got {rtol} and {atol}")
    close = self == other
    if equal_nan and (self.dtype.is_floating_point or self.dtype.is_complex):
        close = close | (self.isnan() & other.isnan())
    if rtol == 0 and atol == 0:
        return close
    if not (self.dtype.is_floating_point or self.dtype.is_complex):
        self, other = self.double(), other.double()
    error = (self - other).abs()
    return close | (error.isfinite() & (error <= atol + (rtol * other).abs()))


@composite(
    "_allclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> Any",
    public="Tensor.allclose",
    formula="out = all of |self - other| <= atol + rtol |other|",
)
def _allclose(self: Any, other: Any, rtol: float, atol: float, equal_nan: bool) -> Any:
    """Whether all elements of two tensors are close; see isclose.

    Shapes: self and other broadcast; the result is a Python bool.

    >>> x, y = torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.1])
    >>> x.allclose(y), x.allclose(y, rtol=0.1)
    (False, True)
    """
    return rl.allclose(self, other, rtol, atol, equal_nan)


@composite(
    "diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor",
    out=True,
    formula="out_i = x_(i+1) - x_i, n times",
)
def diff(self: Any, n: int, dim: int, prepend: Any, append: Any) -> Any:
    """Differences of neighbours along a dimension, n times; of bool whether they differ.

    prepend and append are joined to self before, unless n is 0. RuntimeError for a negative n, and for a tensor
    without dimensions.

    Shapes: self (*); in the result dim is smaller by n.

    >>> x = torch.tensor([1, 4, 9, 16])
    >>> x.diff(), x.diff(n=2), x.diff(prepend=torch.tensor([0]))
    (tensor([3, 5, 7]), tensor([2, 2]), tensor([1, 3, 5, 7]))
    """
    if self.dim() == 0:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    if n == 0:
        return self.clone()
    parts = [t for t in (prepend, self, append) if t is not None]
    joined = rl.cat(parts, dim) if len(parts) > 1 else self
    for _ in range(min(n, joined.size(dim))):
        size = joined.size(dim) - 1
        later, earlier = joined.narrow(dim, 1, size), joined.narrow(dim, 0, size)
        joined = later.logical_xor(earlier) if joined.dtype == rl.bool else later - earlier
    return joined


@composite(
    "take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor",
    out=True,
    formula="out[i][j] = self[indices[i][j]][j]   (for dim 0)",
)
def take_along_dim(self: Any, indices: Any, dim: Any) -> Any:
    """Elements picked along a dimension, as the indices of argsort name them, with the other dimensions broadcast.

    Negative indices count from the end. Without dim the indices count all elements, from 0. RuntimeError for indices
    that are not int64.

    Shapes: self and indices of as many dimensions, which broadcast but for dim; in the result dim has the size of
    indices.

    >>> x = torch.tensor([[30, 10, 20]])
    >>> torch.take_along_dim(x, x.argsort(1), 1)
    tensor([[10, 20, 30]])
    """
    if indices.dtype != rl.int64:
        raise RuntimeError(f"take_along_dim(): dtype of indices should be Long but got {indices.dtype}")
    if dim is None:
        return self.reshape(-1).gather(0, indices.reshape(-1))
    if self.dim() != indices.dim():
        raise RuntimeError(
            "take_along_dim(): input and indices should have the same number of dimensions, "
            f"but got {self.dim()} dimensions for input, and {indices.dim()} dimensions for indices"
        )
    if self.dim() == 0:
        return self.gather(dim, rl.where(indices < 0, indices + 1, indices))
    if not -self.dim() <= dim < self.dim():
        raise IndexError(f"take_along_dim: dim; expected it between {-self.dim()} and {self.dim() - 1}, got {dim}")
    dim %= self.dim()
    indices = rl.where(indices < 0, indices + self.size(dim), indices)
    beside = [[*t.shape[:dim], 1, *t.shape[dim + 1 :]] for t in (self, indices)]
    shape = list(rl.broadcast_shapes(*beside))
    source = self.expand([*shape[:dim], self.size(dim), *shape[dim + 1 :]])
    index = indices.expand([*shape[:dim], indices.size(dim), *shape[dim + 1 :]])
    return source.gather(dim, index)


@composite(
    "trace(Tensor self) -> Tensor",
    formula="out = sum_i self_ii",
)
def trace(self: Any) -> Any:
    """The sum of a matrix's diagonal.

    RuntimeError for other than two dimensions.

    Shapes: self (n, m); the result ().

    >>> torch.trace(torch.tensor([[1, 2], [3, 4]]))
    tensor(5)
    """
    if self.dim() != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {self.dim()}")
    return self.diagonal().sum()
