"""Reductions and normalisations of the elements where a mask is true: the functions of rushlight.masked.

Common to all: mask is a bool tensor that broadcasts to the input, or None for all elements. Elements that are masked
out count as the identity of the operation, and that is the result where all are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._record import composite, rl
from .statistics import within_range

_REDUCTION = "*, bool keepdim=False, ScalarType? dtype=None, Tensor? mask=None) -> Tensor"
_SCAN = "*, ScalarType? dtype=None, Tensor? mask=None) -> Tensor"


def _masked(
    name: str, arguments: str, sentence: str, formula: str, call: str, shown: str
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A record; `call` holds the positional arguments of its example, `shown` the result."""
    after = "has the shape of input"
    if "keepdim" in arguments:
        after = f"is without dim{' (by default all)' * ('dim=None' in arguments)}, or has size 1 there with keepdim"
    doc = f"""{sentence}

    mask is a bool tensor; elements where it is false take no part. None stands for all. IndexError for a mask of more
    dimensions than input.

    Shapes: input (*), mask broadcasts to it; the result {after}.

    >>> x, mask = torch.tensor([1.0, 2.0, 4.0]), torch.tensor([True, False, True])
    >>> torch.masked.{name}({call}, mask=mask)
    tensor({shown})"""
    return composite(
        f"_masked_{name}({arguments}", public=f"masked.{name}", method=False, formula=f"out = {formula}", doc=doc
    )


def _kept(input: Any, mask: Any, fill: Any) -> Any:
    """The input with fill where the mask is false."""
    return input if mask is None else rl.where(_fitted(input, mask), input, fill)


def _fitted(input: Any, mask: Any) -> Any:
    if mask.dim() > input.dim():
        raise IndexError(f"mask has {mask.dim()} dimensions; expected at most {input.dim()}, those of the input")
    return mask.expand(input.shape).to(rl.bool)


def _real(input: Any) -> bool:
    return bool(input.is_floating_point() or input.is_complex())


def _dims(dim: Any, ndim: int) -> tuple[int, ...]:
    """Dimensions counted from 0, all of them for None and ()."""
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return tuple(range(ndim))
    found: list[int] = []
    for d in dim if isinstance(dim, (tuple, list)) else (dim,):
        limit = max(ndim, 1)
        if not -limit <= d < limit:
            raise IndexError(f"dim; expected it between {-limit} and {limit - 1}, got {d}")
        if d % limit in found:
            raise RuntimeError(f"dim={d % limit} appears twice in {dim}")
        found.append(d % limit)
    return tuple(found)


def _one(dim: Any) -> int:
    return int(dim[0]) if isinstance(dim, (tuple, list)) else int(dim)


def _extreme(dtype: Any, sign: int, name: str) -> Any:
    """The number of a dtype that no number is above (sign 1) or below (-1)."""
    if dtype == rl.bool:
        raise NotImplementedError(f"masked.{name}: not implemented for bool")
    if dtype.is_floating_point or dtype.is_complex:
        return sign * float("inf")
    info = rl.iinfo(dtype)
    return info.max if sign > 0 else info.min


def _integers_wide(input: Any, dtype: Any) -> Any:
    return dtype if dtype is not None else input.dtype if _real(input) else rl.int64


@_masked(
    "sum",
    f"Tensor input, Any dim=None, {_REDUCTION}",
    "Sums over dimensions, 0 where nothing is left; integers are summed in int64.",
    "sum of the x_i that are left",
    "x",
    "5.",
)
def _sum(input: Any, dim: Any, keepdim: bool, dtype: Any, mask: Any) -> Any:
    dims = _dims(dim, input.dim())
    return _kept(input, mask, 0).sum(dims, keepdim, dtype=_integers_wide(input, dtype))


@_masked(
    "prod",
    f"Tensor input, Any dim=None, {_REDUCTION}",
    "Products over dimensions, 1 where nothing is left; integers are multiplied in int64.",
    "product of the x_i that are left",
    "x",
    "4.",
)
def _prod(input: Any, dim: Any, keepdim: bool, dtype: Any, mask: Any) -> Any:
    result = _kept(input, mask, 1).to(_integers_wide(input, dtype))
    for d in sorted(_dims(dim, input.dim()), reverse=True):
        result = result.prod(d, keepdim) if result.dim() else result
    return result


for _name, _sign, _word, _none, _shown in (
    ("amax", -1, "greatest", "-inf or the least integer", "4."),
    ("amin", 1, "least", "inf or the greatest integer", "1."),
):
    _masked(
        _name,
        f"Tensor input, Any dim=None, {_REDUCTION}",
        f"The {_word} elements over dimensions, {_none} where nothing is left.",
        f"{_name[1:]} of the x_i that are left",
        "x",
        _shown,
    )(
        lambda input, dim, keepdim, dtype, mask, _n=_name, _s=_sign: _extremes(
            input if dtype is None else input.to(dtype), dim, keepdim, mask, _n, _s
        )
    )
for _name, _sign, _word, _shown in (("argmax", -1, "greatest", "2."), ("argmin", 1, "least", "0.")):
    _masked(
        _name,
        f"Tensor input, int? dim=None, {_REDUCTION}",
        f"Where the {_word} elements are, the first of equals, as numbers of dtype, or of the input's.",
        f"arg{_name[3:]} of the x_i that are left",
        "x, 0",
        _shown,
    )(
        lambda input, dim, keepdim, dtype, mask, _n=_name, _s=_sign: getattr(
            _kept(input, mask, _extreme(input.dtype, _s, _n)), _n
        )(dim, keepdim).to(dtype or input.dtype)
    )


def _extremes(input: Any, dim: Any, keepdim: bool, mask: Any, name: str, sign: int) -> Any:
    dims = _dims(dim, input.dim())
    fill = _extreme(input.dtype, sign, name)
    return getattr(_kept(input, mask, fill), name)(dims, keepdim)


@_masked(
    "mean",
    f"Tensor input, Any dim=None, {_REDUCTION}",
    "Means over dimensions, NaN where nothing is left. ValueError for integers without dtype.",
    "sum / count of the x_i that are left",
    "x",
    "2.5000",
)
def _mean(input: Any, dim: Any, keepdim: bool, dtype: Any, mask: Any) -> Any:
    dtype = dtype or input.dtype
    if not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(f"masked.mean: dtype; expected floating point or complex, got {dtype}")
    dims = _dims(dim, input.dim())
    if mask is None:
        return input.mean(dims, keepdim, dtype=dtype)
    count = _fitted(input, mask).sum(dims, keepdim)
    kept = _kept(input, mask, 0)
    return within_range(lambda x: x.sum(dims, keepdim) / count, kept if dtype is None else kept.to(dtype))


@_masked(
    "median",
    f"Tensor input, int dim=-1, {_REDUCTION}",
    "The lower medians along a dimension, NaN where nothing is left: ValueError for integers then.",
    "middle of the x_i that are left, in order",
    "x",
    "1.",
)
def _median(input: Any, dim: int, keepdim: bool, dtype: Any, mask: Any) -> Any:
    dtype = dtype or input.dtype
    input = input.to(dtype)
    if _real(input):
        if mask is None:
            return input.nanmedian(dim, keepdim)[0]
        return _kept(input, mask, float("nan")).nanmedian(dim, keepdim)[0]
    if mask is None:
        return input.median(dim, keepdim)[0]
    count = _fitted(input, mask).sum(dim, True)
    if not bool((count > 0).all()):
        raise ValueError(
            "masked.median: expected at least one element where the mask is true, in every row of integers"
        )
    ordered = _kept(input, mask, _extreme(input.dtype, 1, "median")).sort(dim)[0]
    middle = ordered.gather(dim, (count - 1) // 2)
    return middle if keepdim else middle.squeeze(dim)


@_masked(
    "norm",
    f"Tensor input, float? ord=2.0, Any dim=None, {_REDUCTION}",
    "Vector norms over dimensions, 0 where nothing is left; for ord inf, -inf and 0 as in linalg.vector_norm.",
    "(sum |x_i|^ord of those that are left)^(1/ord)",
    "x",
    "4.1231",
)
def _norm(input: Any, ord: Any, dim: Any, keepdim: bool, dtype: Any, mask: Any) -> Any:
    ord = 2.0 if ord is None else ord
    kept = _kept(input, mask, float("inf") if ord == float("-inf") else 0)
    return rl.linalg.vector_norm(kept, ord, _dims(dim, input.dim()), keepdim, dtype=dtype)


_MOMENT = "Tensor input, Any dim=None, bool? unbiased=None, *, Scalar? correction=None, " + _REDUCTION[3:]


@_masked(
    "var",
    _MOMENT,
    "Variances over dimensions, the count corrected by 1 unless told; integers become floating point.",
    "(sum |x_i - mean|^2) / max(0, count - correction) of those that are left",
    "x",
    "4.5000",
)
def _var(input: Any, dim: Any, unbiased: Any, correction: Any, keepdim: bool, dtype: Any, mask: Any) -> Any:
    return _variance("var", input, dim, unbiased, correction, keepdim, dtype, mask)


@_masked(
    "std",
    _MOMENT,
    "Standard deviations over dimensions, the count corrected by 1 unless told; integers become floating point.",
    "sqrt((sum |x_i - mean|^2) / max(0, count - correction)) of those that are left",
    "x",
    "2.1213",
)
def _std(input: Any, dim: Any, unbiased: Any, correction: Any, keepdim: bool, dtype: Any, mask: Any) -> Any:
    return _variance("std", input, dim, unbiased, correction, keepdim, dtype, mask)


def _variance(
    name: str, input: Any, dim: Any, unbiased: Any, correction: Any, keepdim: bool, dtype: Any, mask: Any
) -> Any:
    if unbiased is not None and correction is not None:
        raise ValueError(f"masked.{name}: expected unbiased or correction, got both")
    less = correction if correction is not None else int(unbiased is None or unbiased)
    if dtype is None:
        dtype = input.dtype if _real(input) else rl.float32
    if not (dtype.is_floating_point or dtype.is_complex):
        dtype = rl.float32
    x = input.to(dtype)
    dims = _dims(dim, input.dim())
    if mask is None:
        return getattr(x, name)(dims, correction=less, keepdim=keepdim).to(dtype)
    mask = _fitted(input, mask)
    count = mask.sum(dims, True)
    distance = rl.where(mask, x - rl.where(mask, x, 0).sum(dims, True) / count, 0)
    square = distance * distance.conj()
    if square.is_complex():
        square = rl.view_as_real(square)[..., 0]
    total = square.sum(dims, keepdim)
    count = mask.sum(dims, keepdim)
    result = total / (count - less).clamp(min=0)
    return (result.sqrt() if name == "std" else result).to(dtype)


@_masked(
    "logsumexp",
    f"Tensor input, Any dim=None, {_REDUCTION}",
    "Logarithms of sums of exponentials over dimensions, without overflow; -inf where nothing is left.",
    "log(sum exp(x_i) of those that are left)",
    "x",
    "4.0486",
)
def _logsumexp(input: Any, dim: Any, keepdim: bool, dtype: Any, mask: Any) -> Any:
    dtype = dtype or input.dtype
    kept = _kept(input, mask, _extreme(input.dtype, -1, "logsumexp"))
    return rl.logsumexp(kept, _dims(dim, input.dim()), keepdim).to(dtype)


@_masked(
    "cumsum",
    f"Tensor input, Any dim, {_SCAN}",
    "Running sums along a dimension, of the input's dtype unless dtype is given.",
    "sum of x_1 ... x_i that are left",
    "x, 0",
    "[1., 1., 5.]",
)
def _cumsum(input: Any, dim: Any, dtype: Any, mask: Any) -> Any:
    return _kept(input, mask, 0).cumsum(_one(dim), dtype=dtype or input.dtype)


@_masked(
    "cumprod",
    f"Tensor input, Any dim, {_SCAN}",
    "Running products along a dimension, of the input's dtype unless dtype is given.",
    "product of x_1 ... x_i that are left",
    "x, 0",
    "[1., 1., 4.]",
)
def _cumprod(input: Any, dim: Any, dtype: Any, mask: Any) -> Any:
    return _kept(input, mask, 1).cumprod(_one(dim), dtype=dtype or input.dtype)


@_masked(
    "softmax",
    f"Tensor input, Any dim, {_SCAN}",
    "Exponentials along a dimension divided by their sum, 0 where masked out; NaN where nothing is left.",
    "exp(x_i) / sum_j exp(x_j), over those that are left",
    "x, 0",
    "[0.0474, 0.0000, 0.9526]",
)
def _softmax(input: Any, dim: Any, dtype: Any, mask: Any) -> Any:
    return _kept(input, mask, _extreme(input.dtype, -1, "softmax")).softmax(_one(dim), dtype)


@_masked(
    "log_softmax",
    f"Tensor input, Any dim, {_SCAN}",
    "The logarithms of masked.softmax, -inf where masked out.",
    "x_i - log(sum_j exp(x_j)), over those that are left",
    "x, 0",
    "[-3.0486,    -inf, -0.0486]",
)
def _log_softmax(input: Any, dim: Any, dtype: Any, mask: Any) -> Any:
    return _kept(input, mask, _extreme(input.dtype, -1, "log_softmax")).log_softmax(_one(dim), dtype)


@_masked(
    "softmin",
    f"Tensor input, Any dim, {_SCAN}",
    "softmax of the negated elements, 0 where masked out.",
    "exp(-x_i) / sum_j exp(-x_j), over those that are left",
    "x, 0",
    "[0.9526, 0.0000, 0.0474]",
)
def _softmin(input: Any, dim: Any, dtype: Any, mask: Any) -> Any:
    return (-_kept(input, mask, _extreme(input.dtype, 1, "softmin"))).softmax(_one(dim), dtype)


@_masked(
    "normalize",
    f"Tensor input, float ord, Any dim, *, float eps=1e-12, {_SCAN[3:]}",
    "The elements divided by their norm along a dimension, or by eps where that is smaller; 0 where masked out.",
    "x_i / max(|x|_ord, eps), over those that are left",
    "x, 2.0, 0",
    "[0.2425, 0.0000, 0.9701]",
)
def _normalize(input: Any, ord: float, dim: Any, eps: float, dtype: Any, mask: Any) -> Any:
    norm = rl.masked.norm(input, ord, _one(dim), keepdim=True, dtype=dtype, mask=mask)
    return _kept(input, mask, 0) / norm.maximum(norm.new_full((), eps))


@composite(
    "_masked_logaddexp(Tensor input, Tensor other, *, ScalarType? dtype=None, Tensor? input_mask=None, "
    "Tensor? other_mask=None) -> Tensor",
    public="masked.logaddexp",
    method=False,
    formula="out = log(exp(input) + exp(other))",
)
def _logaddexp(input: Any, other: Any, dtype: Any, input_mask: Any, other_mask: Any) -> Any:
    """The logarithm of the sum of two exponentials, element by element, each with a mask of its own.

    Where a mask is false the other one is left, and -inf where both are.

    Shapes: input and other broadcast, each mask to its own; the result has the common shape.

    >>> x, mask = torch.tensor([0.0, 3.0]), torch.tensor([True, False])
    >>> torch.masked.logaddexp(x, torch.zeros(2), input_mask=mask)
    tensor([0.6931, 0.0000])
    """
    dtype = dtype or input.dtype
    low = _extreme(dtype, -1, "logaddexp")
    return rl.logaddexp(_kept(input.to(dtype), input_mask, low), _kept(other.to(dtype), other_mask, low))
