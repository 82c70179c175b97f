"""Compositions that join, divide, turn and compare tensors."""

from __future__ import annotations

from typing import Any

from ._record import composite, rl


@composite("flipud(Tensor self) -> Tensor")
def flipud(self: Any) -> Any:
    """The first dimension in reverse order."""
    if self.dim() < 1:
        raise RuntimeError(f"flipud: Input must be >= 1-d, got {self.dim()}-d")
    return self.flip(0)


@composite("fliplr(Tensor self) -> Tensor")
def fliplr(self: Any) -> Any:
    """The second dimension in reverse order."""
    if self.dim() < 2:
        raise RuntimeError(f"fliplr: Input must be >= 2-d, got {self.dim()}-d")
    return self.flip(1)


@composite("rot90(Tensor self, int k=1, int[] dims=[0,1]) -> Tensor")
def rot90(self: Any, k: int, dims: Any) -> Any:
    """The plane of two dimensions turned k times by 90 degrees, from the first towards the second."""
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
    """Tensors side by side: along the first dimension for vectors, else the second."""
    if not tensors:
        raise RuntimeError("hstack expects a non-empty TensorList")
    items = [rl.atleast_1d(t) for t in tensors]
    return rl.cat(items, 0 if items[0].dim() == 1 else 1)


@composite("vstack(Tensor[] tensors) -> Tensor", public="vstack row_stack", method=False, out=True)
def vstack(tensors: Any) -> Any:
    """Tensors below each other; vectors are rows."""
    if not tensors:
        raise RuntimeError("vstack expects a non-empty TensorList")
    return rl.cat([rl.atleast_2d(t) for t in tensors], 0)


@composite("dstack(Tensor[] tensors) -> Tensor", method=False, out=True)
def dstack(tensors: Any) -> Any:
    """Tensors behind each other, along the third dimension."""
    if not tensors:
        raise RuntimeError("dstack expects a non-empty TensorList")
    return rl.cat([rl.atleast_3d(t) for t in tensors], 2)


@composite("column_stack(Tensor[] tensors) -> Tensor", method=False, out=True)
def column_stack(tensors: Any) -> Any:
    """Tensors side by side; vectors are columns."""
    if not tensors:
        raise RuntimeError("column_stack expects a non-empty TensorList")
    return rl.cat([t.reshape(t.numel(), 1) if t.dim() <= 1 else t for t in tensors], 1)


@composite("inner(Tensor self, Tensor other) -> Tensor", out=True)
def inner(self: Any, other: Any) -> Any:
    """Sums of products over the last dimensions."""
    if self.dim() == 0 or other.dim() == 0:
        return self * other
    if self.size(-1) != other.size(-1):
        raise RuntimeError(
            "inner() the last dimension must match on both input tensors but got shapes "
            f"{list(self.shape)} and {list(other.shape)}"
        )
    return rl.tensordot(self, other, ([-1], [-1]))


@composite("isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> Tensor")
def isclose(self: Any, other: Any, rtol: float, atol: float, equal_nan: bool) -> Any:
    """Whether |self - other| <= atol + rtol * |other|, element by element."""
    if self.dtype != other.dtype:
        raise RuntimeError(f"isclose: expected both tensors to have one dtype, got {self.dtype} and {other.dtype}")
    if rtol < 0 or atol < 0:
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
)
def _allclose(self: Any, other: Any, rtol: float, atol: float, equal_nan: bool) -> Any:
    """Whether all elements are close."""
    return rl.allclose(self, other, rtol, atol, equal_nan)


@composite("diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor", out=True)
def diff(self: Any, n: int, dim: int, prepend: Any, append: Any) -> Any:
    """Differences of neighbours along a dimension, n times."""
    if self.dim() == 0:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    parts = [t for t in (prepend, self, append) if t is not None]
    joined = rl.cat(parts, dim) if len(parts) > 1 else self
    if n == 0:
        return joined.clone()
    for _ in range(min(n, joined.size(dim))):
        size = joined.size(dim) - 1
        later, earlier = joined.narrow(dim, 1, size), joined.narrow(dim, 0, size)
        joined = later.logical_xor(earlier) if joined.dtype == rl.bool else later - earlier
    return joined


@composite("take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor", out=True)
def take_along_dim(self: Any, indices: Any, dim: Any) -> Any:
    """Elements picked along a dimension, with the other dimensions broadcast; of the flattened tensor without dim."""
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


@composite("trace(Tensor self) -> Tensor")
def trace(self: Any) -> Any:
    """The sum of a matrix's diagonal."""
    if self.dim() != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {self.dim()}")
    return self.diagonal().sum()
