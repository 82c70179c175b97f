"""Differences and integrals of sampled functions."""

from __future__ import annotations

from typing import Any

from ._record import composite, rl
from .statistics import within_range


def _spans(op: str, y: Any, x: Any, dim: int) -> Any:
    """The distances between sample points, shaped to go with y's steps along dim."""
    if y.dtype == rl.bool or x.dtype == rl.bool:
        raise RuntimeError(f"{op}: received a bool input for `x` or `y`, but bool is not supported")
    if x.dim() == 1 and y.dim() > 0:
        if x.size(0) != y.size(dim):
            raise RuntimeError(
                f"{op}: there must be one `x` value for each sample point; expected {y.size(dim)}, got {x.size(0)}"
            )
        return (x[1:] - x[:-1]).view([-1 if d == dim % y.dim() else 1 for d in range(y.dim())])
    if x.dim() == 0:
        raise RuntimeError(f"{op}: expected `x` of one or more dimensions, got a scalar tensor")
    if x.dim() < y.dim():
        x = x.view([1] * (y.dim() - x.dim()) + list(x.shape))
    return x.narrow(dim, 1, x.size(dim) - 1) - x.narrow(dim, 0, x.size(dim) - 1)


def _sums(y: Any, dim: int) -> Any:
    n = y.size(dim)
    return y.narrow(dim, 1, n - 1) + y.narrow(dim, 0, n - 1)


def _is_short(op: str, y: Any, dim: int) -> bool:
    if y.dtype == rl.bool:
        raise RuntimeError(f"{op}: received a bool input for `y`, but bool is not supported")
    return bool(y.size(dim) == 0)


def _empty(y: Any, dim: int, keep: bool) -> Any:
    shape = list(y.shape)
    if keep:
        shape[dim] = 0
    else:
        del shape[dim % y.dim()]
    return y.new_zeros(shape)


def _define(name: str, cumulative: bool, aliases: str) -> None:
    def with_x(y: Any, x: Any, dim: int = -1) -> Any:
        if _is_short(name, y, dim):
            return _empty(y, dim, cumulative)
        spans = _spans(name, y, x, dim)

        def integral(y: Any) -> Any:
            parts = spans * _sums(y, dim)
            return (parts.cumsum(dim) if cumulative else parts.sum(dim)) / 2

        return within_range(integral, y)

    def with_dx(y: Any, dx: Any = 1, dim: int = -1) -> Any:
        if _is_short(name, y, dim):
            return _empty(y, dim, cumulative)

        def integral(y: Any) -> Any:
            sums = _sums(y, dim)
            return (sums.cumsum(dim) if cumulative else sums.sum(dim)) * (dx / 2)

        return within_range(integral, y)

    what, index, shape = "The integral", "< n - 1", "is without dim"
    if cumulative:
        what, index, shape = "Running integrals", "<= i", "has one element less in dim"
    for alias in (name, *aliases.split()):
        composite(
            f"{alias}.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor",
            method=False,
            formula=f"out{'_i' * cumulative} = sum of (x_(j+1) - x_j) (y_j + y_(j+1)) / 2 over j {index}",
            doc=f"""{what} of samples by the trapezoidal rule along a dimension: taken at the points x, or dx apart.

Shapes: y (*), x (n), n the size of dim, or of a shape that broadcasts to that of y; the result {shape}.

>>> y = torch.tensor([1.0, 2.0, 4.0])
>>> torch.{alias}(y, dx=2.0), torch.{alias}(y, torch.tensor([0.0, 1.0, 3.0]))
{"(tensor([3., 9.]), tensor([1.5000, 7.5000]))" if cumulative else "(tensor(9.), tensor(7.5000))"}
""",
        )(with_x)
        composite(
            f"{alias}.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor",
            method=False,
        )(with_dx)


_define("trapezoid", False, "trapz")
_define("cumulative_trapezoid", True, "")


def _gradient_along(f: Any, spacing: Any, dim: int, edge_order: int) -> Any:
    n = f.size(dim)

    def at(start: int, count: int = 1) -> Any:
        return f.narrow(dim, start, count)

    if not hasattr(spacing, "dim"):
        h = spacing
        inner = (at(2, n - 2) - at(0, n - 2)) / (2 * h)
        if edge_order == 1:
            first, last = (at(1) - at(0)) / h, (at(n - 1) - at(n - 2)) / h
        else:
            first = (-1.5 * at(0) + 2 * at(1) - 0.5 * at(2)) / h
            last = (1.5 * at(n - 1) - 2 * at(n - 2) + 0.5 * at(n - 3)) / h
        return rl.cat([first, inner, last], dim)
    steps = (spacing[1:] - spacing[:-1]).view([-1 if d == dim else 1 for d in range(f.dim())])
    left, right = steps.narrow(dim, 0, n - 2), steps.narrow(dim, 1, n - 2)
    # The parabola through three points (B. Fornberg, 1988)
    inner = (
        at(2, n - 2) * (left / (right * (left + right)))
        + at(1, n - 2) * ((right - left) / (left * right))
        - at(0, n - 2) * (right / (left * (left + right)))
    )
    s = [steps.narrow(dim, i, 1) for i in (0, n - 2)]
    if edge_order == 1:
        first, last = (at(1) - at(0)) / s[0], (at(n - 1) - at(n - 2)) / s[1]
    else:
        a, b = s[0], steps.narrow(dim, 1, 1)
        first = -(2 * a + b) / (a * (a + b)) * at(0) + (a + b) / (a * b) * at(1) - a / (b * (a + b)) * at(2)
        a, b = s[1], steps.narrow(dim, n - 3, 1)
        last = (2 * a + b) / (a * (a + b)) * at(n - 1) - (a + b) / (a * b) * at(n - 2) + a / (b * (a + b)) * at(n - 3)
    return rl.cat([first, inner, last], dim)


@composite(
    "gradient(Tensor self, *, Any spacing=None, Any dim=None, int edge_order=1) -> Tensor[]",
    method=False,
    formula="out_i = (self_{i+1} - self_{i-1}) / (2 spacing)",
)
def _gradient(self: Any, spacing: Any = None, dim: Any = None, edge_order: int = 1) -> Any:
    """Estimates of the derivatives of a sampled function, along the dims given, or all.

    Inside, differences of both neighbours, exact for parabolas also at uneven distances (Fornberg, 1988); at the
    ends, one-sided differences of order edge_order, 1 or 2. spacing is the distance of samples: one number, a number
    for each dim, or coordinates (a vector for each dim).

    RuntimeError when a dimension has less than edge_order + 1 samples, or spacing does not fit.

    Shapes: self of any shape; a tuple with a tensor of that shape for each dim.

    >>> torch.gradient(torch.tensor([1.0, 4.0, 9.0, 16.0]))
    (tensor([3., 4., 6., 7.]),)
    """
    dims = list(range(self.dim())) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    dims = [d % self.dim() if -self.dim() <= d < self.dim() else d for d in dims]
    for d in dims:
        if not 0 <= d < self.dim():
            raise IndexError(f"gradient: dim is out of range; expected {-self.dim()} to {self.dim() - 1}, got {d}")
    if len(set(dims)) != len(dims):
        raise RuntimeError(f"gradient: dim {tuple(dims)} appears multiple times in the list of dims")
    if edge_order not in (1, 2):
        raise RuntimeError(f"gradient: only supports edge_order=1 and edge_order=2; got {edge_order}")
    if spacing is None:
        spacing = 1
    if isinstance(spacing, (list, tuple)):
        spacings = list(spacing)
        if len(spacings) != len(dims):
            raise RuntimeError(
                f"gradient: expected spacing to be unspecified, a scalar, or a list of length {len(dims)}, one entry "
                f"for each dim; got {len(spacings)}"
            )
    else:
        spacings = [spacing] * len(dims)
    results = []
    for d, step in zip(dims, spacings, strict=True):
        if self.size(d) < edge_order + 1:
            raise RuntimeError(
                f"gradient: expected each dimension size to be at least edge_order+1 = {edge_order + 1}, "
                f"got {self.size(d)}"
            )
        if hasattr(step, "dim") and (step.dim() != 1 or step.size(0) != self.size(d)):
            raise RuntimeError(
                f"gradient: expected coordinates of shape [{self.size(d)}] for dim {d}, got {list(step.shape)}"
            )
        results.append(_gradient_along(self, step, d, edge_order))
    return tuple(results)
