"""Means, quantiles and covariances."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._record import certain, composite, rl


@composite(
    "nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    out=True,
    formula="out = sum of self_i / n over the n elements that are not NaN",
)
def nanmean(self: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    """The mean of the numbers that are not NaN; NaN where there are none.

    RuntimeError unless self is floating point or complex.

    Shapes: any; the result without dim (all by default), or with size 1 there with keepdim.

    >>> torch.nanmean(torch.tensor([1.0, float("nan"), 3.0]))
    tensor(2.)
    """
    if not (self.is_floating_point() or self.is_complex()):
        raise RuntimeError(f"nanmean: expected floating point or complex elements, got {self.dtype}")
    count = self.isnan().logical_not().sum(dim, keepdim)
    return within_range(lambda x: x.nansum(dim, keepdim) / count, self if dtype is None else self.to(dtype))


def within_range(linear: Callable[[Any], Any], x: Any) -> Any:
    """linear(x), a linear function; where one of its sums overflows, from smaller numbers."""
    result = linear(x)
    if x.is_meta or certain(result.isinf().logical_not().all()):
        return result
    if x.dtype == rl.float16:  # has too few small numbers
        again = linear(x.float()).to(result.dtype)
    else:
        again = linear(x * 2.0**-63) * 2.0**63
    return rl.where(result.isinf(), again, result)


_QUANTILE = "int? dim=None, bool keepdim=False, *, str interpolation='linear') -> Tensor"
for _name, _skips, _of, _shown in (
    ("quantile", False, "", "nan"),
    ("nanquantile", True, ", NaN left out", "3."),
):
    composite(
        f"{_name}(Tensor self, Tensor|Scalar q, {_QUANTILE}",
        out=True,
        formula="out = x_k + (x_(k+1) - x_k) (r - k), r = q (n - 1), k = floor(r), x_0 <= ... <= x_(n-1)",
        doc=f"""The values below which the fractions q of the elements lie, along a dimension or of all elements{_of}.

    q is a number or a vector. Between two elements the result is 'linear' (the formula), the 'lower', 'higher' or
    'nearest' one, or their 'midpoint'. RuntimeError unless self is float32 or float64, q of that dtype and between 0
    and 1.

    Shapes: self (*), q () or (m); the result is without dim (by default all are), or has size 1 there with keepdim, and
    begins with a dimension of size m when q is a vector.

    >>> x = torch.tensor([4.0, 1.0, 2.0])
    >>> torch.{_name}(x, torch.tensor([0.5, 0.75]))
    tensor([2., 3.])
    >>> torch.{_name}(torch.tensor([4.0, float("nan"), 2.0]), 0.5)
    tensor({_shown})""",
    )(
        lambda self, q, dim, keepdim, interpolation, _n=_name, _s=_skips: _quantile(
            self, q, dim, keepdim, interpolation, _n, _s
        )
    )


def _quantile(self: Any, q: Any, dim: Any, keepdim: bool, interpolation: str, name: str, skip_nan: bool) -> Any:
    if self.dtype not in (rl.float32, rl.float64):
        raise RuntimeError(f"{name}: expected dtype float32 or float64, got {self.dtype}")
    if not hasattr(q, "dtype"):
        if not 0 <= q <= 1:
            raise RuntimeError(f"{name}: q; expected numbers from 0 to 1, got {q}")
        q = rl.tensor(q, dtype=self.dtype)
    if q.dtype != self.dtype:
        raise RuntimeError(f"{name}: dtype of q; expected {self.dtype}, got {q.dtype}")
    if q.dim() > 1:
        raise RuntimeError(f"{name}: q; expected a number or a vector, got shape {list(q.shape)}")
    if interpolation not in ("linear", "lower", "higher", "midpoint", "nearest"):
        raise RuntimeError(
            f"{name}: interpolation; expected 'linear', 'lower', 'higher', 'midpoint' or 'nearest', got "
            f"{interpolation!r}"
        )
    if certain(~((q >= 0) & (q <= 1)).all()):
        raise RuntimeError(f"{name}: q; expected numbers from 0 to 1, got {q.tolist()}")
    if self.numel() == 0:
        raise RuntimeError(f"{name}: expected at least one element, got shape {list(self.shape)}")
    flat = self if self.dim() else self.reshape(1)
    rows = self.reshape(-1) if dim is None else flat.movedim(dim, -1)
    n = rows.size(-1)
    ordered = rows.sort(-1)[0]
    # positions are computed in the dtype, as in PyTorch, as long as it has a number for each
    wide = q.reshape(-1).to(self.dtype if n <= 1 << 24 else rl.float64)
    empty = rows.detach().isnan()
    if skip_nan:
        last = (n - 1 - empty.sum(-1, True)).clamp(min=0).to(wide.dtype)
        rank = wide * last
    else:  # NaN come last, so that the last element is one where there is any
        rank = rl.where(empty.any(-1, True), n - 1, wide)
        rank = rl.where(empty.any(-1, True), rank, wide * (n - 1))
    if interpolation in ("lower", "higher", "nearest"):
        rounded = {"lower": rank.floor, "higher": rank.ceil, "nearest": rank.round}[interpolation]()
        result = ordered.gather(-1, rounded.to(rl.int64))
    else:
        low = rank.floor()
        weight = rank - low if interpolation == "linear" else rl.full_like(rank, 0.5)
        below = ordered.gather(-1, low.to(rl.int64))
        result = below.lerp(ordered.gather(-1, rank.ceil().to(rl.int64)), weight.to(self.dtype))
    if dim is None:
        return _shaped(result, q, [1] * self.dim() if keepdim else [])
    result = result.movedim(-1, 0)
    shape = list(result.shape[1:])
    if keepdim and self.dim():
        shape.insert(dim % self.dim(), 1)
    return _shaped(result, q, shape)


def _shaped(result: Any, q: Any, shape: list[int]) -> Any:
    return result.reshape([*q.shape, *shape])


@composite(
    "cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) -> Tensor",
    formula="C = sum of w_k (x_k - mean) (x_k - mean)^H / (n - correction) over the columns x_k",
)
def cov(self: Any, correction: int, fweights: Any, aweights: Any) -> Any:
    """The covariance matrix of variables, whose observations are the columns of a matrix; a vector is one
    variable.

    fweights are integers, how often each column counts, aweights its importance; w is their product and n the sum of
    w. With aweights, correction is multiplied by their mean under w. RuntimeError for more than two dimensions, bool,
    or weights that do not fit or are negative.

    Shapes: self (variables, observations) or (observations), weights (observations); the result (variables,
    variables) or ().

    >>> torch.cov(torch.tensor([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    if self.dim() > 2:
        raise RuntimeError(f"cov: expected at most two dimensions, got {self.dim()}")
    if self.dtype == rl.bool:
        raise RuntimeError("cov: not for bool")
    x = self.reshape(1, -1) if self.dim() < 2 else self
    n = x.size(1)
    for name, weights in (("fweights", fweights), ("aweights", aweights)):
        if weights is None:
            continue
        if weights.dim() > 1:
            raise RuntimeError(f"cov: {name}; expected a vector, got shape {list(weights.shape)}")
        real = weights.is_floating_point()
        if real != (name == "aweights") or weights.is_complex() or weights.dtype == rl.bool:
            raise RuntimeError(
                f"cov: dtype of {name}; expected {'real floating point' if name == 'aweights' else 'integers'}, got "
                f"{weights.dtype}"
            )
        if weights.numel() != n:
            raise RuntimeError(f"cov: {name}; expected {n} numbers, one per column, got {weights.numel()}")
        if n and certain((weights < 0).any()):
            raise RuntimeError(f"cov: {name}; expected no negative numbers")
    weights = fweights if aweights is None else aweights if fweights is None else fweights * aweights
    total = rl.tensor(n) if weights is None else weights.sum()
    if weights is not None and certain(total == 0):
        raise RuntimeError("cov: the weights sum up to zero")
    mean = within_range(lambda x: x.sum(1) / total, x if weights is None else x * weights)
    if aweights is not None and correction != 0:
        degrees = total - correction * (weights * aweights).sum() / total
    else:
        degrees = total - correction
    if certain(~(degrees > 0)) if isinstance(degrees, rl.Tensor) else not degrees > 0:
        import warnings

        warnings.warn("cov: expected more degrees of freedom than 0", stacklevel=3)
        degrees = rl.zeros_like(degrees)
    centred = x - mean.unsqueeze(1)
    weighted = centred if weights is None else centred * weights
    return (rl.matmul(centred, weighted.t().conj()) / degrees).squeeze()


@composite("corrcoef(Tensor self) -> Tensor", formula="R_ij = C_ij / sqrt(C_ii C_jj), C = cov(self)")
def corrcoef(self: Any) -> Any:
    """Pearson's correlation coefficients of variables, whose observations are the columns of a matrix; a
    vector is one variable.

    Shapes: self (variables, observations) or (observations); the result (variables, variables) or ().

    >>> torch.corrcoef(torch.tensor([[1.0, 2.0, 3.0], [6.0, 4.0, 2.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    if self.dim() > 2:
        raise RuntimeError(f"corrcoef: expected at most two dimensions, got {self.dim()}")
    c = rl.cov(self)
    if self.dim() and self.size(-1) > 1 and not (c.is_meta or certain(c.isfinite().all())):
        # the squares may overflow, which those of shares of the greatest do not
        greatest = self.detach().abs().amax(-1, keepdim=True)
        c = rl.cov(self / rl.where(greatest > 0, greatest, 1))
    if c.dim() == 0:
        return c / c
    variance = c.diag()
    if c.is_complex():
        variance = rl.view_as_real(variance)[..., 0]
    deviation = variance.sqrt()
    c = c / deviation.unsqueeze(1) / deviation.unsqueeze(0)
    if c.is_complex():
        return rl.view_as_complex(rl.view_as_real(c).clamp(-1, 1))
    return c.clamp(-1, 1)
