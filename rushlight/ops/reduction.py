"""Reductions over dimensions."""

from __future__ import annotations

from typing import Any

from . import _batch
from ._record import composite, native, rl

native(
    "_expand_reduced(Tensor self, int[] size, int[1]? dim, bool keepdim) -> Tensor",
    batch=_batch.expand_reduced,
    view="view",
    derivative={"self": lambda grad, dim, keepdim: grad.sum(dim, keepdim)},
    doc="A reduced tensor repeated along the dimensions it was reduced over.",
)
native(
    "_mean_backward(Tensor grad, int[] size, int[1]? dim, bool keepdim) -> Tensor",
    options={"composite": True},
    doc="The gradient of a mean: repeated and divided by the number of elements.",
)

native(
    "sum(Tensor self, *, ScalarType? dtype=None) -> Tensor",
    batch=lambda batch, self, dtype: batch.flat(0).sum(-1, dtype=dtype),
    derivative={"self": lambda grad, self_shape: grad.expand(self_shape)},
    doc="The sum of all elements; integers are summed in int64.",
    formula="sum_i x_i",
)
native(
    "sum.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    derivative={"self": lambda grad, self_shape, dim, keepdim: rl._expand_reduced(grad, self_shape, dim, keepdim)},
    doc="Sums over dimensions.",
)
native(
    "nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    derivative={
        "self": lambda grad, self, self_shape, dim, keepdim: (
            rl._expand_reduced(grad, self_shape, dim, keepdim) * rl.isnan(self).logical_not()
        )
    },
    doc="Sums that count NaN as zero.",
)
native(
    "mean(Tensor self, *, ScalarType? dtype=None) -> Tensor",
    batch=lambda batch, self, dtype: batch.flat(0).mean(-1, dtype=dtype),
    derivative={"self": lambda grad, self_shape: rl._mean_backward(grad, self_shape, None, False)},
    doc="The mean of all elements; right whenever the mean itself can be represented.",
)
native(
    "mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    derivative={"self": lambda grad, self_shape, dim, keepdim: rl._mean_backward(grad, self_shape, dim, keepdim)},
    doc="Means over dimensions.",
)
native(
    "prod(Tensor self, *, ScalarType? dtype=None) -> Tensor",
    batch=lambda batch, self, dtype: batch.flat(0).prod(-1, dtype=dtype),
    derivative={"self": lambda grad, self, result: _prod_all_backward(grad, self, result)},
    doc="The product of all elements.",
)
native(
    "prod.dim(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    derivative={"self": lambda grad, self, result, dim, keepdim: _prod_backward(grad, self, result, dim, keepdim)},
    doc="Products along a dimension.",
)


def _prod_all_backward(grad: Any, self: Any, result: Any) -> Any:
    if self.dim() == 0:
        return grad
    return _prod_backward(grad, self.reshape(-1), result, 0, False).reshape(self.shape)


def _prod_backward(grad: Any, self: Any, result: Any, dim: int, keepdim: bool) -> Any:
    """Each element's factor is the product of the others, from both sides, so that zeros are no special case."""
    if self.dim() == 0:
        return grad
    if not keepdim:
        grad = grad.unsqueeze(dim)
    if self.is_complex():
        self = self.conj()
    if self.size(dim) == 0:
        return grad.expand(self.shape)
    ones = rl.ones_like(self.narrow(dim, 0, 1))
    n = self.size(dim)
    before = rl.cat([ones, self.narrow(dim, 0, n - 1)], dim).cumprod(dim)
    after = rl.cat([ones, self.narrow(dim, 1, n - 1).flip(dim)], dim).cumprod(dim).flip(dim)
    return grad * (before * after)


def _extreme_backward(grad: Any, self: Any, result: Any, dim: Any, keepdim: bool) -> Any:
    """The gradient of a maximum or minimum, shared equally among ties."""
    shape = self.shape
    chosen = rl._expand_reduced(result, shape, dim, keepdim)
    mask = (self == chosen) | (self.isnan() & chosen.isnan())
    count = rl._expand_reduced(mask.sum(dim, keepdim), shape, dim, keepdim)
    return rl._expand_reduced(grad, shape, dim, keepdim) * (mask / count).to(grad.dtype)


def _indexed_backward(grad: Any, shape: Any, dim: int, indices: Any, keepdim: bool) -> Any:
    """The gradient put where each value was taken from."""
    if not shape:
        return grad
    if not keepdim:
        grad, indices = grad.unsqueeze(dim), indices.unsqueeze(dim)
    return rl.scatter(grad.new_zeros(shape), dim, indices, grad)


for _name, _word in (("amax", "greatest"), ("amin", "least")):
    native(
        f"{_name}(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
        derivative={
            "self": lambda grad, self, result, dim, keepdim: _extreme_backward(grad, self, result, dim, keepdim)
        },
        doc=f"The {_word} elements over dimensions; the gradient is shared equally among ties.",
    )
for _name, _word in (("max", "greatest"), ("min", "least")):
    native(
        f"{_name}(Tensor self) -> Tensor",
        batch=_batch.flat_form("a" + _name),
        derivative={"self": lambda grad, self, result: _extreme_backward(grad, self, result, None, False)},
        doc=f"The {_word} element; the gradient is shared equally among ties.",
    )
    composite(f"{_name}.other(Tensor self, Tensor other) -> Tensor", out=True)(
        (lambda self, other: rl.maximum(self, other))
        if _name == "max"
        else (lambda self, other: rl.minimum(self, other))
    )
    native(
        f"{_name}.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        out=True,
        options={"not_differentiable": ("indices",)},
        derivative={
            "self": lambda grad, self_shape, dim, indices, keepdim: _indexed_backward(
                grad, self_shape, dim, indices, keepdim
            )
        },
        doc=f"The {_word} elements along a dimension and where they are (the first of equals).",
    )
    native(
        f"arg{_name}(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
        doc=f"Where the {_word} element is: the first of equals, the first NaN before all.",
    )
native(
    "aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)",
    out=True,
    derivative={
        "self": lambda grad_min, grad_max, self, min, max, dim, keepdim: (
            _extreme_backward(grad_min, self, min, dim, keepdim) + _extreme_backward(grad_max, self, max, dim, keepdim)
        )
    },
    doc="The least and the greatest elements.",
)

for _name, _word in (("any", "some element differs"), ("all", "all elements differ")):
    native(f"{_name}(Tensor self) -> Tensor", batch=_batch.flat_form(_name), doc=f"Whether {_word} from zero.")
    native(
        f"{_name}.dim(Tensor self, int dim, bool keepdim=False) -> Tensor",
        doc=f"Whether {_word} from zero, along a dimension.",
    )
    native(
        f"{_name}.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
        doc=f"Whether {_word} from zero, over dimensions.",
    )
native("count_nonzero(Tensor self, int[1]? dim=None) -> Tensor", out=False, doc="How many elements differ from zero.")


def _var_backward(grad: Any, self: Any, correction: Any, dim: Any, keepdim: bool) -> Any:
    dims = dim if dim is not None and dim != () else tuple(range(self.dim()))
    n = 1
    for d in dims:
        n *= self.size(d) if self.dim() else 1
    degrees = n - (1 if correction is None else correction)
    centered = self - self.mean(dims, True)
    wide = rl._expand_reduced(grad, self.shape, dim, keepdim)
    if degrees <= 0:
        return wide * float("nan") * centered if n else wide * centered
    return wide * (2.0 / degrees) * centered


def _std_backward(grad: Any, self: Any, result: Any, correction: Any, dim: Any, keepdim: bool) -> Any:
    """Equal values have a standard deviation of 0, where the gradient is taken as 0."""
    scaled = (grad / (result * 2)).masked_fill(result == 0, 0)
    return _var_backward(scaled, self, correction, dim, keepdim)


def _mean_part(grad: Any, self: Any, dim: Any, keepdim: bool) -> Any:
    return rl._mean_backward(grad, self.shape, dim, keepdim)


_FORMS = (
    ("", "bool unbiased=True", None, "unbiased"),
    (".dim", "int[1]? dim, bool unbiased=True, bool keepdim=False", "dim", "unbiased"),
    (".correction", "int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False", "dim", "correction"),
)
for _name, _backward in (("var", _var_backward), ("std", _std_backward)):
    _first = "grad, self" if _name == "var" else "grad, self, result"
    _single = {
        "": eval(f"lambda {_first}, unbiased: _b({_first}, int(unbiased), None, False)", {"_b": _backward}),
        ".dim": eval(
            f"lambda {_first}, dim, unbiased, keepdim: _b({_first}, int(unbiased), dim, keepdim)", {"_b": _backward}
        ),
        ".correction": eval(
            f"lambda {_first}, dim, correction, keepdim: _b({_first}, correction, dim, keepdim)", {"_b": _backward}
        ),
    }
    _both_first = "grad, grad_mean, self" if _name == "var" else "grad, grad_mean, self, result"
    _call = "self" if _name == "var" else "self, result"
    _m = {"_b": _backward, "_m": _mean_part}
    _pair = {
        "": eval(
            f"lambda {_both_first}, unbiased: _b(grad, {_call}, int(unbiased), None, False) + _m(grad_mean, self, "
            f"None, False)",
            _m,
        ),
        ".dim": eval(
            f"lambda {_both_first}, dim, unbiased, keepdim: _b(grad, {_call}, int(unbiased), dim, keepdim) + "
            f"_m(grad_mean, self, dim, keepdim)",
            _m,
        ),
        ".correction": eval(
            f"lambda {_both_first}, dim, correction, keepdim: _b(grad, {_call}, correction, dim, keepdim) + "
            f"_m(grad_mean, self, dim, keepdim)",
            _m,
        ),
    }
    for _overload, _arguments, _, _ in _FORMS:  # type: ignore[assignment]
        native(
            f"{_name}{_overload}(Tensor self, {_arguments}) -> Tensor",
            derivative={"self": _single[_overload]},
            doc="The variance." if _name == "var" else "The standard deviation.",
        )
        native(
            f"{_name}_mean{_overload}(Tensor self, {_arguments}) -> (Tensor, Tensor mean)",
            method=False,
            derivative={"self": _pair[_overload]},
            doc="The variance and the mean." if _name == "var" else "The standard deviation and the mean.",
        )

native(
    "logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
    public="logsumexp special.logsumexp",
    derivative={
        "self": lambda grad, self, self_shape, result, dim, keepdim: (
            rl._expand_reduced(grad, self_shape, dim, keepdim)
            * rl._logsumexp_weights(self, rl._expand_reduced(result, self_shape, dim, keepdim))
        )
    },
    doc="The logarithm of the sum of exponentials, without overflow.",
    formula="log sum_i exp(x_i)",
)


@composite("_logsumexp_weights(Tensor self, Tensor total) -> Tensor", method=False)
def _logsumexp_weights(self: Any, total: Any) -> Any:
    """exp(x - total), and 0 where every x is -inf; conjugated, as derivatives want it."""
    weights = (self - total.masked_fill(total == float("-inf"), 0)).exp()
    return weights.conj() if weights.is_complex() else weights


native(
    "_vector_norm(Tensor self, float ord, int[1]? dim, bool keepdim) -> Tensor",
    derivative={
        "self": lambda grad, self, result, ord, dim, keepdim: _norm_backward(grad, self, result, ord, dim, keepdim)
    },
    doc="(sum |x|^ord)^(1/ord) over dimensions.",
)


def _norm_backward(grad: Any, self: Any, result: Any, p: float, dim: Any, keepdim: bool) -> Any:
    """The sub-gradient 0 where the norm is 0."""
    shape = self.shape
    g = rl._expand_reduced(grad, shape, dim, keepdim)
    norm = rl._expand_reduced(result, shape, dim, keepdim)
    if p == 0:
        return rl.zeros_like(self) * g
    if p == 2:
        return g * (self / norm).masked_fill(norm == 0, 0)
    if p == 1:
        return self.sgn() * g
    if p in (float("inf"), float("-inf")):
        size = self.abs()
        if self.is_complex():  # the norm rounds absolute values in its own way
            dims = () if dim is None else dim
            most = size.amax(dims, keepdim) if p > 0 else size.amin(dims, keepdim)
            norm = rl._expand_reduced(most, shape, dim, keepdim)
        mask = size == norm
        count = rl._expand_reduced(mask.sum(dim, keepdim), shape, dim, keepdim)
        return self.sgn() * (mask / count).to(g.dtype) * g
    if p < 1:
        scaled = self.sgn() * self.abs().pow(p - 1).masked_fill(self == 0, 0)
        return scaled * g * norm.pow(1 - p)
    if p < 2:
        scaled = self.sgn() * self.abs().pow(p - 1)
        return scaled * (g / norm.pow(p - 1)).masked_fill(norm == 0, 0)
    scaled = self * self.abs().pow(p - 2)
    return scaled * (g / norm.pow(p - 1)).masked_fill(norm == 0, 0)
