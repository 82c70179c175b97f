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
    formula="out_i = x_1 + ... + x_i",
    doc="""Running sums along a dimension.

    Integers and bool are summed in int64; dtype converts before.

    Shapes: self of any shape; the result has the same.

    >>> torch.tensor([[1, 2, 3], [4, 5, 6]]).cumsum(1)
    tensor([[ 1,  3,  6],
            [ 4,  9, 15]])""",
)
native(
    "cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
    inplace=True,
    derivative={"self": lambda grad, self, result, dim: _cumprod_backward(grad, self, result, dim)},
    formula="out_i = x_1 * ... * x_i",
    doc="""Running products along a dimension.

    Integers and bool are multiplied in int64; dtype converts before.

    Shapes: self of any shape; the result has the same.

    >>> torch.arange(1, 6).cumprod(0)
    tensor([  1,   2,   6,  24, 120])""",
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
    formula="out_i = log(exp(x_1) + ... + exp(x_i))",
    doc="""Logarithms of running sums of exponentials along a dimension, without overflow; floating point or
    complex.

    Shapes: self of any shape; the result has the same.

    >>> torch.tensor([1000.0, 1000.0, -1000.0]).logcumsumexp(0)
    tensor([1000.0000, 1000.6932, 1000.6932])""",
)
for _name, _word, _values, _at in (
    ("cummax", "greatest", "[2, 2, 5, 5]", "[0, 0, 2, 2]"),
    ("cummin", "least", "[2, 1, 1, 1]", "[0, 1, 1, 3]"),
):
    native(
        f"{_name}(Tensor self, int dim) -> (Tensor values, Tensor indices)",
        out=True,
        options={"not_differentiable": ("indices",)},
        derivative={"self": lambda grad, self_shape, dim, indices: _scattered(grad, self_shape, dim, indices)},
        formula=f"values_i = {_name[3:]}(x_1, ..., x_i)",
        doc=f"""The {_word} elements so far along a dimension, and where they are, the last of equals.

    NaN stays from where it comes.

    Shapes: self of any shape; values and indices (int64) have the same.

    >>> torch.{_name}(torch.tensor([2, 1, 5, 1]), 0)
    rushlight.return_types.{_name}(
    values=tensor({_values}),
    indices=tensor({_at}))""",
    )
native(
    "flip(Tensor self, int[] dims) -> Tensor",
    order="self",
    out=False,
    derivative={"self": lambda grad, dims: grad.flip(dims)},
    formula="out[i] = self[n - 1 - i], in every one of dims",
    doc="""The elements in reverse order along dimensions, as a copy.

    RuntimeError when a dimension is given twice.

    Shapes: self of any shape; the result has the same.

    >>> torch.tensor([[1, 2, 3], [4, 5, 6]]).flip(1)
    tensor([[3, 2, 1],
            [6, 5, 4]])
    >>> torch.tensor([[1, 2, 3], [4, 5, 6]]).flip((0, 1))
    tensor([[6, 5, 4],
            [3, 2, 1]])""",
)
for _name, _word, _relation, _shown in (
    ("tril", "below", "<=", ("[1, 0, 0]", "[4, 5, 0]")),
    ("triu", "above", ">=", ("[1, 2, 3]", "[0, 5, 6]")),
):
    native(
        f"{_name}(Tensor self, int diagonal=0) -> Tensor",
        batch="plain",
        inplace=True,
        derivative={
            "self": (lambda grad, diagonal: grad.tril(diagonal))
            if _name == "tril"
            else (lambda grad, diagonal: grad.triu(diagonal))
        },
        formula=f"out_ij = x_ij if j - i {_relation} diagonal else 0",
        doc=f"""The matrix with zeros everywhere except on and {_word} a diagonal.

    diagonal > 0 names one above the main diagonal, diagonal < 0 one below. RuntimeError for fewer than two dimensions.

    Shapes: self (*, n, m); the result has the same.

    >>> torch.{_name}(torch.tensor([[1, 2, 3], [4, 5, 6]]))
    tensor([{_shown[0]},
            {_shown[1]}])""",
    )
native(
    "repeat(Tensor self, int[] repeats) -> Tensor",
    batch=_batch.repeat,
    public="",
    out=False,
    derivative={"self": lambda grad, self_shape, repeats: _repeat_backward(grad, self_shape, repeats)},
    formula="out[i] = self[i mod n], in every dimension",
    doc="""The tensor repeated along its dimensions, as a copy.

    More numbers than dimensions put new dimensions in front; RuntimeError for fewer, and for negative ones.

    Shapes: self (*); each size of the result is that of self times its number.

    >>> torch.tensor([1, 2]).repeat(3)
    tensor([1, 2, 1, 2, 1, 2])
    >>> torch.tensor([1, 2]).repeat(2, 2)
    tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])""",
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


@composite(
    "tile(Tensor self, int[] dims) -> Tensor",
    formula="out[i] = self[i mod n], in every dimension",
)
def tile(self: Any, dims: Any) -> Any:
    """The tensor repeated along its dimensions, as a copy; missing leading numbers count as 1.

    Shapes: self (*); each size of the result is that of self times its number.

    >>> torch.tile(torch.tensor([[1, 2], [3, 4]]), (2,))
    tensor([[1, 2, 1, 2],
            [3, 4, 3, 4]])
    """
    return self.repeat([1] * (self.dim() - len(dims)) + list(dims))


@composite(
    "ravel(Tensor self) -> Tensor",
    view="view",
    formula="out[(i_1 n_2 + i_2) n_3 + ...] = self[i_1, i_2, ...], sizes n",
)
def ravel(self: Any) -> Any:
    """All elements row by row in one dimension: a view of a contiguous tensor, else a copy.

    Shapes: self of any shape, the result of one dimension.

    >>> torch.tensor([[1, 2], [3, 4]]).t().ravel()
    tensor([1, 3, 2, 4])
    """
    return self.contiguous().view(-1)
