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
    doc="""The sum of all elements, or of those along dimensions.

    Integers and bool are summed in int64; dtype converts before. dim=None and dim=() stand for all dimensions. The
    result does not depend on the number of threads.

    Shapes: self (*); the result is without the dimensions summed over, or has size 1 there with keepdim.

    >>> x = torch.tensor([[1, 2, 3], [4, 5, 6]])
    >>> x.sum(), x.sum(0), x.sum(1, keepdim=True)
    (tensor(21), tensor([5, 7, 9]), tensor([[ 6],
            [15]]))""",
    formula="out = sum_i x_i",
)
native(
    "sum.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    derivative={"self": lambda grad, self_shape, dim, keepdim: rl._expand_reduced(grad, self_shape, dim, keepdim)},
)
native(
    "nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    derivative={
        "self": lambda grad, self, self_shape, dim, keepdim: (
            rl._expand_reduced(grad, self_shape, dim, keepdim) * rl.isnan(self).logical_not()
        )
    },
    formula="out = sum_i (0 if x_i is NaN else x_i)",
    doc="""Sums over dimensions (by default all) that count NaN as zero; of floating point numbers and integers.

    Shapes: self (*); the result is without the dimensions summed over, or has size 1 there with keepdim.

    >>> torch.nansum(torch.tensor([1.0, float("nan"), 2.0]))
    tensor(3.)""",
)
native(
    "mean(Tensor self, *, ScalarType? dtype=None) -> Tensor",
    batch=lambda batch, self, dtype: batch.flat(0).mean(-1, dtype=dtype),
    derivative={"self": lambda grad, self_shape: rl._mean_backward(grad, self_shape, None, False)},
    formula="out = (sum_i x_i) / n",
    doc="""The mean of all elements, or of those along dimensions; right whenever the mean itself can be
    represented.

    RuntimeError for integers, unless dtype says in which floating point dtype to compute. The mean of nothing is NaN.

    Shapes: self (*); the result is without the dimensions averaged over, or has size 1 there with keepdim.

    >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    >>> x.mean(), x.mean(1)
    (tensor(3.5000), tensor([2., 5.]))""",
)
native(
    "mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    derivative={"self": lambda grad, self_shape, dim, keepdim: rl._mean_backward(grad, self_shape, dim, keepdim)},
)
native(
    "prod(Tensor self, *, ScalarType? dtype=None) -> Tensor",
    batch=lambda batch, self, dtype: batch.flat(0).prod(-1, dtype=dtype),
    derivative={"self": lambda grad, self, result: _prod_all_backward(grad, self, result)},
    formula="out = x_1 * ... * x_n",
    doc="""The product of all elements, or of those along one dimension.

    Integers and bool are multiplied in int64; dtype converts before. The product of nothing is 1.

    Shapes: self (*); the result is without dim, or has size 1 there with keepdim.

    >>> x = torch.tensor([[1, 2, 3], [4, 5, 6]])
    >>> x.prod(), x.prod(0)
    (tensor(720), tensor([ 4, 10, 18]))""",
)
native(
    "prod.dim(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    derivative={"self": lambda grad, self, result, dim, keepdim: _prod_backward(grad, self, result, dim, keepdim)},
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


for _name, _word, _shown in (("amax", "greatest", "[4, 6]"), ("amin", "least", "[3, 1]")):
    native(
        f"{_name}(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
        derivative={
            "self": lambda grad, self, result, dim, keepdim: _extreme_backward(grad, self, result, dim, keepdim)
        },
        formula=f"out = {_name[1:]}_i x_i",
        doc=f"""The {_word} elements over dimensions, by default all; NaN if there is one.

    The gradient is shared equally among ties, other than that of {_name[1:]} along a dimension. RuntimeError or
    IndexError where there are no elements.

    Shapes: self (*); the result is without the dimensions, or has size 1 there with keepdim.

    >>> torch.{_name}(torch.tensor([[4, 3], [1, 6]]), 1)
    tensor({_shown})""",
    )
for _name, _word, _of_all, _values, _at in (
    ("max", "greatest", "6", "[4, 6]", "[0, 1]"),
    ("min", "least", "1", "[3, 1]", "[1, 0]"),
):
    native(
        f"{_name}(Tensor self) -> Tensor",
        batch=_batch.flat_form("a" + _name),
        derivative={"self": lambda grad, self, result: _extreme_backward(grad, self, result, None, False)},
        formula=f"out = {_name}_i x_i",
        doc=f"""The {_word} element; NaN if there is one. With a dim, the {_word} along it and where they are, the first
    of equals; with another tensor, {_name}imum(self, other).

    The gradient is shared equally among ties; along a dim the element named by the index gets it. RuntimeError or
    IndexError where there are no elements.

    Shapes: self (*); the result is (); with dim, values and indices (int64) are without dim, or have size 1 there with
    keepdim.

    >>> x = torch.tensor([[4, 3], [1, 6]])
    >>> x.{_name}()
    tensor({_of_all})
    >>> x.{_name}(1)
    rushlight.return_types.{_name}(
    values=tensor({_values}),
    indices=tensor({_at}))""",
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
    )
    native(
        f"arg{_name}(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
        formula=f"self[out] = {_name}_i x_i",
        doc=f"""Where the {_word} element is: the first of equals, the first NaN before all.

    Without dim the index counts all elements, row by row. RuntimeError or IndexError where there are no elements.

    Shapes: self (*); the result, int64, is (), or without dim, or with size 1 there with keepdim.

    >>> x = torch.tensor([[4, 3], [1, 6]])
    >>> x.arg{_name}(), x.arg{_name}(1)
    (tensor({3 if _name == "max" else 2}), tensor({_at}))""",
    )
native(
    "aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)",
    out=True,
    derivative={
        "self": lambda grad_min, grad_max, self, min, max, dim, keepdim: (
            _extreme_backward(grad_min, self, min, dim, keepdim) + _extreme_backward(grad_max, self, max, dim, keepdim)
        )
    },
    formula="min = min_i x_i, max = max_i x_i",
    doc="""The least and the greatest element, of all or along a dimension; NaN if there is one.

    RuntimeError for tensors without elements. The gradient is shared equally among ties.

    Shapes: self (*); both results are without dim, or have size 1 there with keepdim.

    >>> torch.aminmax(torch.tensor([3, 1, 2]))
    rushlight.return_types.aminmax(
    min=tensor(1),
    max=tensor(3))""",
)

for _name, _word, _operator, _shown in (
    ("any", "some element differs", "or", "(tensor(True), tensor([True, True]))"),
    ("all", "all elements differ", "and", "(tensor(False), tensor([False, True]))"),
):
    native(
        f"{_name}(Tensor self) -> Tensor",
        batch=_batch.flat_form(_name),
        formula=f"out = x_1 != 0 {_operator} ... {_operator} x_n != 0",
        doc=f"""Whether {_word} from zero, of all or along dimensions; NaN does.

    Of no elements it is {_name == "all"}.

    Shapes: self (*); the result, bool (uint8 for uint8), is without the dimensions, or has size 1 there with keepdim.

    >>> x = torch.tensor([[0, 1], [1, 1]])
    >>> x.{_name}(), x.{_name}(1)
    {_shown}""",
    )
    native(
        f"{_name}.dim(Tensor self, int dim, bool keepdim=False) -> Tensor",
    )
    native(
        f"{_name}.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
    )
native(
    "count_nonzero(Tensor self, int[1]? dim=None) -> Tensor",
    out=False,
    formula="out = sum_i (1 if x_i != 0 else 0)",
    doc="""How many elements differ from zero, of all or along dimensions; NaN does.

    Shapes: self (*); the result, int64, is without the dimensions counted over.

    >>> x = torch.tensor([[0, 1, 2], [0, 0, 3]])
    >>> x.count_nonzero(), x.count_nonzero(0)
    (tensor(3), tensor([0, 1, 2]))""",
)


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
_SPREADS = (
    ("var", _var_backward, "variance", "out = (sum_i |x_i - mean|^2) / max(0, n - correction)", "4.", "2.6667"),
    (
        "std",
        _std_backward,
        "standard deviation",
        "out = sqrt((sum_i |x_i - mean|^2) / max(0, n - correction))",
        "2.",
        "1.6330",
    ),
)
for _name, _backward, _word, _formula, _shown, _biased in _SPREADS:
    _about = """unbiased=True stands for correction 1 (Bessel's, the default), False for 0. With correction 1 the result
    for a single element is NaN. Of complex numbers it is real. RuntimeError for integers.

    Shapes: self (*); results are without the dimensions (by default all are), or have size 1 there with keepdim."""
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
            batch=None if _overload else _batch.flat_form(_name),
            derivative={"self": _single[_overload]},
            formula="" if _overload else _formula,
            doc=""
            if _overload
            else f"""The {_word} of all elements, or of those along dimensions.

    {_about}

    >>> x = torch.tensor([1.0, 3.0, 5.0])
    >>> x.{_name}(), x.{_name}(correction=0)
    (tensor({_shown}), tensor({_biased}))""",
        )
        native(
            f"{_name}_mean{_overload}(Tensor self, {_arguments}) -> (Tensor, Tensor mean)",
            batch=None if _overload else _batch.flat_form(f"{_name}_mean"),
            method=False,
            derivative={"self": _pair[_overload]},
            formula="" if _overload else _formula,
            doc=""
            if _overload
            else f"""The {_word} and the mean, of all elements or of those along dimensions.

    {_about}

    >>> torch.{_name}_mean(torch.tensor([1.0, 3.0, 5.0]))
    (tensor({_shown}), tensor(3.))""",
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
    doc="""The logarithm of a sum of exponentials over dimensions, without overflow; of floating point and complex
    numbers.

    Integers become the default float dtype.

    Shapes: self (*); the result is without the dimensions summed over, or has size 1 there with keepdim.

    >>> torch.tensor([1000.0, 1000.0]).logsumexp(0)
    tensor(1000.6932)""",
    formula="out = log(sum_i exp(x_i))",
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
