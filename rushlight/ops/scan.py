"""Running sums and products along a dimension, and operations that move whole blocks."""

from __future__ import annotations

from typing import Any

from . import _batch
from ._record import certain, composite, native, rl


def _reversed_sum(grad: Any, dim: int) -> Any:
    """Sums from each position to the end."""
    return grad if grad.dim() == 0 else grad.flip(dim).cumsum(dim).flip(dim)


def _cumprod_backward(grad: Any, self: Any, result: Any, dim: int) -> Any:
    """Sums over the products that contain an element, divided by it; through products without it where it is zero."""
    if self.dim() == 0 or self.numel() == 0:
        return grad
    if not self.is_complex() and certain((self.detach() != 0).all()):
        return _reversed_sum(grad * result, dim) / self
    terms = []
    n = self.size(dim)
    for i in range(n):
        # the running products with element i taken out, from i on
        before = self.narrow(dim, 0, i).prod(dim, True)
        after = self.narrow(dim, i + 1, n - i - 1)
        ones = rl.ones_like(self.narrow(dim, 0, 1))
        running = rl.cat([ones, after], dim).cumprod(dim) * before
        terms.append((grad.narrow(dim, i, n - i) * running.conj()).sum(dim, True))
    return rl.cat(terms, dim)


native(
    "cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
    inplace=True,
    derivative={"self": lambda grad, dim: _reversed_sum(grad, dim)},
    doc="Running sums along a dimension; integers are summed in int64.",
)
native(
    "cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
    inplace=True,
    derivative={"self": lambda grad, self, result, dim: _cumprod_backward(grad, self, result, dim)},
    doc="Running products along a dimension; integers are multiplied in int64.",
)


def _logcumsumexp_backward(grad: Any, self: Any, result: Any, dim: int) -> Any:
    """Sums of grad[j] exp(self[i] - result[j]) over j >= i, by logarithms where the exponentials leave the range."""
    if grad.dim() == 0 or grad.numel() == 0:
        return grad
    size = (rl.real(result) if self.is_complex() else result).detach()
    if not self.is_complex() and rl._C._unwrap(self) is None:
        span = float((size.amax(dim) - size.amin(dim)).max())
        if not span < {rl.float64: 600, rl.float16: 8}.get(self.dtype, 60):
            nothing = -1e30 if self.dtype != rl.float16 else -6e4
            logs = rl.where(grad == 0, 1, grad.abs()).log()
            parts = []
            for part in (grad > 0, grad < 0):
                terms = rl.where(part, logs - result, nothing)
                parts.append((terms.flip(dim).logcumsumexp(dim).flip(dim) + self).exp())
            return parts[0] - parts[1]
    top = size.amax(dim, True)
    return _reversed_sum(grad * (top - result).exp().conj(), dim) * (self - top).exp().conj()


native(
    "logcumsumexp(Tensor self, int dim) -> Tensor",
    derivative={"self": lambda grad, self, result, dim: _logcumsumexp_backward(grad, self, result, dim)},
    doc="log(cumsum(exp(self))) along a dimension without overflow, floating point or complex.",
)
for _name, _word in (("cummax", "greatest"), ("cummin", "least")):
    native(
        f"{_name}(Tensor self, int dim) -> (Tensor values, Tensor indices)",
        out=True,
        options={"not_differentiable": ("indices",)},
        derivative={"self": lambda grad, self_shape, dim, indices: _scattered(grad, self_shape, dim, indices)},
        doc=f"The {_word} elements so far along a dimension, and where they are.",
    )
native(
    "flip(Tensor self, int[] dims) -> Tensor",
    out=False,
    derivative={"self": lambda grad, dims: grad.flip(dims)},
    doc="The elements in reverse order along dimensions.",
)
for _name, _word in (("tril", "below"), ("triu", "above")):
    native(
        f"{_name}(Tensor self, int diagonal=0) -> Tensor",
        batch="plain",
        inplace=True,
        derivative={
            "self": (lambda grad, diagonal: grad.tril(diagonal))
            if _name == "tril"
            else (lambda grad, diagonal: grad.triu(diagonal))
        },
        doc=f"Matrices with zeros except on and {_word} a diagonal.",
    )
native(
    "repeat(Tensor self, int[] repeats) -> Tensor",
    batch=_batch.repeat,
    public="",
    out=False,
    derivative={"self": lambda grad, self_shape, repeats: _repeat_backward(grad, self_shape, repeats)},
    doc="The tensor repeated along its dimensions.",
)


def _scattered(grad: Any, shape: Any, dim: int, indices: Any) -> Any:
    if not shape:
        return grad
    return rl.scatter_add(grad.new_zeros(shape), dim, indices, grad)


def _repeat_backward(grad: Any, shape: Any, repeats: Any) -> Any:
    """Sums over the copies."""
    sizes, dims = [], []
    lead = len(repeats) - len(shape)
    for i, times in enumerate(repeats):
        sizes += [times, shape[i - lead] if i >= lead else 1]
        dims.append(2 * i)
    if not dims:
        return grad
    summed = grad.new_zeros(shape) if grad.numel() == 0 else grad.reshape(sizes).sum(dims)
    return summed.reshape(shape)


@composite("tile(Tensor self, int[] dims) -> Tensor")
def tile(self: Any, dims: Any) -> Any:
    """The tensor repeated; missing leading numbers count as 1."""
    return self.repeat([1] * (self.dim() - len(dims)) + list(dims))


@composite("ravel(Tensor self) -> Tensor", view="view")
def ravel(self: Any) -> Any:
    """All elements in one dimension."""
    return self.contiguous().view(-1)
