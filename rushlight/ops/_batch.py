"""Batch rules of records that need more than a line: `batch` and the values as `Operation.batch` describes."""

from __future__ import annotations

from typing import Any

from ._record import rl


def basic_index(batch: Any, self: Any, spec: Any) -> Any:
    """The batch is kept whole, in front of the other items."""
    return batch.again(self, (1, 0, 1, batch.size, *spec))


def basic_index_backward(batch: Any, grad: Any, size: Any, spec: Any) -> Any:
    return batch.again(batch.expanded(0), (batch.size, *size), (1, 0, 1, batch.size, *spec))


def permute(batch: Any, self: Any, dims: Any) -> Any:
    n = batch.dim(0)
    return batch.again(self, (0, *(d % n + 1 for d in dims)))


def permute_inverse(batch: Any, self: Any, dims: Any) -> Any:
    n = batch.dim(0)
    return batch.again(self, (0, *(d % n + 1 for d in dims)))


def transpose_matrix(batch: Any, self: Any) -> Any:
    return self.transpose(-1, -2) if batch.dim(0) == 2 else rl.alias(self)


def expand(batch: Any, self: Any, size: Any, implicit: Any) -> Any:
    return batch.again(batch.aligned(0, len(size)), (batch.size, *size), implicit)


def view(batch: Any, self: Any, size: Any) -> Any:
    return batch.view(self, (batch.size, *_known(size, batch.numel(0))))


def _known(size: Any, numel: int) -> tuple[int, ...]:
    """The size with its -1 replaced, which an empty batch would leave open."""
    if -1 not in size:
        return tuple(size)
    rest = 1
    for s in size:
        rest *= s if s != -1 else 1
    return tuple(numel // rest if s == -1 and rest else s for s in size)


def squeeze(batch: Any, self: Any) -> Any:
    n = batch.dim(0)
    return self.squeeze(tuple(d - n for d in range(n) if self.shape[d + 1] == 1)) if n else rl.alias(self)


def as_strided(batch: Any, self: Any, size: Any, stride: Any, offset: Any) -> Any:
    """Inside vmap a tensor counts as dense; the examples are made so."""
    dense = self if self.is_contiguous() else batch.copied(self.contiguous())
    return dense.as_strided((batch.size, *size), (batch.numel(0), *stride), (offset or 0) + dense.storage_offset())


def cat(batch: Any, tensors: Any, dim: int) -> Any:
    values = batch.all_expanded(0)
    n = max(v.ndim for v in values) - 1
    return batch.again([v for v in values if v.ndim - 1 == n or v.numel()], dim if dim < 0 else dim - n)


def stack(batch: Any, tensors: Any, dim: int) -> Any:
    values = batch.all_expanded(0)
    return batch.again(values, dim if dim < 0 else dim - values[0].ndim)


def cat_backward(batch: Any, grad: Any, sizes: Any, dim: int) -> Any:
    if -1 in sizes:
        return NotImplemented
    return batch.again(grad, sizes, dim if dim < 0 else dim - batch.dim(0))


def repeat(batch: Any, self: Any, repeats: Any) -> Any:
    return batch.again(batch.aligned(0, len(repeats)), (1, *repeats))


def roll(batch: Any, self: Any, shifts: Any, dims: Any) -> Any:
    n = batch.dim(0)
    if dims and n:
        return batch.again(self, shifts, tuple(d if d < 0 else d - n for d in dims))
    return batch.again(batch.flat(0), shifts, (-1,)).reshape(self.shape)


def expand_reduced(batch: Any, self: Any, size: Any, dim: Any, keepdim: bool) -> Any:
    n = len(size)
    reduced = {d % n for d in dim} if dim else set(range(n))
    if not keepdim:
        self = batch.view(self, (batch.size, *(1 if d in reduced else s for d, s in enumerate(size))))
    return self.expand((batch.size, *size))


def flat_form(name: str) -> Any:
    """The form over a dimension of an operation over all elements."""
    return lambda batch, self, *rest: getattr(rl, name)(batch.flat(0), -1, *rest)


def new_of_size(batch: Any, self: Any, size: Any, *rest: Any) -> Any:
    return batch.again(self, (batch.size, *size), *rest)


# ---------------------------------------------------------------- matrix products


def mv(batch: Any, self: Any, vec: Any) -> Any:
    return rl.matmul(self, vec.unsqueeze(-1)).squeeze(-1)


def product_of_batches(batch: Any, self: Any, other: Any) -> Any:
    ndim = max(batch.dim(0), batch.dim(1))
    return rl.matmul(batch.aligned(0, ndim), batch.aligned(1, ndim))


def _added(batch: Any, product: Any, beta: Any, alpha: Any, ndim: int) -> Any:
    if alpha != 1:
        product = product * alpha
    if beta == 0:
        return product
    self = batch.aligned(0, ndim)
    return product + (self if beta == 1 else self * beta)


def addmm(batch: Any, self: Any, mat1: Any, mat2: Any, beta: Any, alpha: Any) -> Any:
    return NotImplemented if batch.inplace else _added(batch, rl.matmul(mat1, mat2), beta, alpha, 2)


def addmv(batch: Any, self: Any, mat: Any, vec: Any, beta: Any, alpha: Any) -> Any:
    return NotImplemented if batch.inplace else _added(batch, mv(batch, mat, vec), beta, alpha, 1)


def baddbmm(batch: Any, self: Any, batch1: Any, batch2: Any, beta: Any, alpha: Any) -> Any:
    return NotImplemented if batch.inplace else _added(batch, rl.matmul(batch1, batch2), beta, alpha, 3)


def linear(batch: Any, input: Any, weight: Any, bias: Any) -> Any:
    if not batch.batched(1) and not batch.batched(2):
        return batch.again(input, weight, bias)
    n = batch.dim(0)
    lead = input.shape[1 if batch.batched(0) else 0 : -1]
    rows = (
        input.reshape((batch.size, -1, input.shape[-1])) if batch.batched(0) else input.reshape((-1, input.shape[-1]))
    )
    weight = weight if batch.dim(1) == 2 else weight.unsqueeze(-2)
    product = rl.matmul(rows, weight.mT)
    size = (*lead, weight.shape[-2]) if batch.dim(1) == 2 else tuple(lead)
    whole = batch.batched(0) or batch.batched(1)
    product = product.reshape((batch.size, *size) if whole else size)
    if bias is None:
        return product
    return product + batch.aligned(2, n)


# ---------------------------------------------------------------- indexing by tensors


def _ahead(indices: Any) -> tuple[int, bool]:
    """The first place with an index tensor, and whether all of them stand side by side."""
    places = [i for i, t in enumerate(indices) if t is not None]
    return places[0], places[-1] - places[0] + 1 == len(places)


def index(batch: Any, self: Any, indices: Any) -> Any:
    if any(t is not None and t.dtype in (rl.bool, rl.uint8) for t in indices):
        return NotImplemented
    first, adjacent = _ahead(indices)
    flags = batch.which(1)
    ndim = max(d for d in batch.dims(1) if d is not None)
    if not any(flags):
        result = batch.again(self, (None, *indices))
        return result if adjacent else result.movedim(ndim, 0)
    aligned = [
        None if t is None else t.reshape((batch.size, *(1,) * (ndim - d), *t.shape[1:])) if b else t
        for t, b, d in zip(indices, flags, batch.dims(1), strict=True)
    ]
    if not batch.batched(0):
        result = batch.again(self, aligned)
        return result.movedim(first, 0) if adjacent else result
    rows = rl.arange(batch.size).reshape((batch.size, *(1,) * ndim))
    result = batch.again(self, (rows, *aligned))
    if adjacent and first:
        moved = tuple(range(1, 1 + ndim))
        result = result.movedim(moved, tuple(d + first for d in moved))
    return result


def index_backward(batch: Any, grad: Any, size: Any, indices: Any) -> Any:
    if any(batch.which(2)) or not batch.batched(0):
        return NotImplemented
    if len(indices) == 1 and indices[0].dtype == rl.bool:
        indices = indices[0].nonzero(as_tuple=True)
    if any(t is not None and t.dtype in (rl.bool, rl.uint8) for t in indices) or not _ahead(indices)[1]:
        return NotImplemented
    return batch.again(grad, (batch.size, *size), (None, *indices))


# ---------------------------------------------------------------- linear algebra


def matrices(batch: Any, *values: Any) -> Any:
    """Operations on matrices with batch dimensions in front: one more of them."""
    tensors = [i for i, v in enumerate(values) if isinstance(v, rl.Tensor)]
    if len(tensors) > 1 and any(batch.dim(i) > 2 for i in tensors):
        return NotImplemented  # batch dimensions that are to be broadcast
    return batch.again(*(batch.expanded(i) if i in tensors else v for i, v in enumerate(values)))
