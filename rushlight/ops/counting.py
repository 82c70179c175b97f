"""Searching, counting and finding what is the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._record import composite, differentiated, native, rl

if TYPE_CHECKING:
    from collections.abc import Sequence

native(
    "_repeated_positions(Tensor repeats, int total) -> Tensor",
    batch="loop",
    doc="0 repeats[0] times, 1 repeats[1] times and so on, total numbers in all.",
)


@composite("repeat_interleave(Tensor repeats, *, int? output_size=None) -> Tensor", method=False)
def repeat_interleave(repeats: Any, output_size: Any) -> Any:
    """Each slice of a dimension (each element, without dim) repeated, the copies one after the other.

    Without self the numbers 0, 1, ... themselves are repeated.

    repeats is a number, or a vector of one number per slice. output_size, the total, spares looking at them;
    RuntimeError for another total, negative numbers and another count of them.

    Shapes: self (*), repeats () or (n), n the size of dim; in the result dim has their sum, without dim it is a vector.

    >>> torch.repeat_interleave(torch.tensor([[1, 2], [3, 4]]), 2, dim=0)
    tensor([[1, 2],
            [1, 2],
            [3, 4],
            [3, 4]])
    >>> torch.repeat_interleave(torch.tensor([5, 6]), torch.tensor([1, 3]))
    tensor([5, 6, 6, 6])
    >>> torch.repeat_interleave(torch.tensor([1, 3]))
    tensor([0, 1, 1, 1])
    """
    if repeats.dim() != 1:
        raise RuntimeError(f"repeat_interleave: repeats; expected a vector, got shape {list(repeats.shape)}")
    if repeats.dtype not in (rl.int64, rl.int32):
        raise RuntimeError(f"repeat_interleave: repeats; expected dtype int64 or int32, got {repeats.dtype}")
    if repeats.numel() and int(repeats.min()) < 0:
        raise RuntimeError(f"repeat_interleave: repeats; expected no negative numbers, got {int(repeats.min())}")
    counts = repeats.to(rl.int64)
    total = int(counts.sum())
    if output_size is not None and output_size != total:
        raise RuntimeError(f"repeat_interleave: output_size; expected {total}, got {output_size}")
    return rl._repeated_positions(counts, total).to(repeats.dtype)


@composite(
    "repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, int? output_size=None) -> Tensor"
)
def repeat_interleave_tensor(self: Any, repeats: Any, dim: Any, output_size: Any) -> Any:
    if dim is None:
        self, dim = self.reshape(-1), 0
    elif self.dim() == 0:
        self = self.reshape(1)
    if repeats.dim() == 0 or (repeats.dim() == 1 and repeats.size(0) == 1):
        repeats = repeats.reshape(1).expand(self.size(dim))
    elif repeats.dim() != 1:
        raise RuntimeError(f"repeat_interleave: repeats; expected 0 or 1 dimensions, got {repeats.dim()}")
    elif repeats.size(0) != self.size(dim):
        raise RuntimeError(
            f"repeat_interleave: repeats; expected {self.size(dim)} numbers, one per slice of dimension {dim}, got "
            f"{repeats.size(0)}"
        )
    return self.index_select(dim, rl.repeat_interleave(repeats, output_size=output_size))


@composite("repeat_interleave.self_int(Tensor self, int repeats, int? dim=None, *, int? output_size=None) -> Tensor")
def repeat_interleave_int(self: Any, repeats: int, dim: Any, output_size: Any) -> Any:
    if repeats < 0:
        raise RuntimeError(f"repeat_interleave: repeats; expected at least 0, got {repeats}")
    if dim is None or self.dim() == 0:
        self = self.reshape(-1)
        dim = 0 if dim is None else dim
    if not -self.dim() <= dim < self.dim():
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-self.dim()}, {self.dim() - 1}], but got {dim})"
        )
    dim %= self.dim()
    total = self.size(dim) * repeats
    if output_size is not None and output_size != total:
        raise RuntimeError(f"repeat_interleave: output_size; expected {total}, got {output_size}")
    shape = [*self.shape[: dim + 1], repeats, *self.shape[dim + 1 :]]
    wide = self.unsqueeze(dim + 1).expand(shape)
    return wide.clone(memory_format=rl.contiguous_format).reshape([*self.shape[:dim], total, *self.shape[dim + 1 :]])


# ---------------------------------------------------------------- searching

_SEARCH = "bool out_int32=False, bool right=False"
native(
    f"searchsorted(Tensor sorted_sequence, Tensor|Scalar self, *, {_SEARCH}, str? side=None, Tensor? sorter=None) "
    "-> Tensor",
    batch="loop",
    method=False,
    formula="out = how many elements of the sequence are < self, or <= self with right",
    doc="""Where each value would go into a sequence sorted along its last dimension, so that it stays sorted.

    It goes before equal elements, or after them with right=True or side='right'. The sequence is one for all values,
    or there is one per row; sorter is the order in which it is sorted, when it is not.

    Shapes: sorted_sequence (n) and self of any shape, or (*, n) and (*, m); the result has the shape of self, int64,
    or int32 with out_int32.

    >>> sequence = torch.tensor([10, 20, 20, 30])
    >>> values = torch.tensor([5, 20, 25])
    >>> torch.searchsorted(sequence, values), torch.searchsorted(sequence, values, right=True)
    (tensor([0, 1, 3]), tensor([0, 3, 3]))""",
)
native(
    f"bucketize(Tensor|Scalar self, Tensor boundaries, *, {_SEARCH}) -> Tensor",
    batch="loop",
    method=False,
    formula="out = how many boundaries are < self, or <= self with right",
    doc="""The number of the interval between boundaries, a sorted vector, that each value lies in.

    Boundaries belong to the interval on their left, with right=True to the one on their right.

    Shapes: self of any shape, boundaries (n); the result has the shape of self, int64, or int32 with out_int32.

    >>> boundaries = torch.tensor([10, 20])
    >>> torch.bucketize(torch.tensor([5, 10, 15, 25]), boundaries)
    tensor([0, 0, 1, 2])""",
)
native(
    "_isin(Tensor elements, Tensor sorted, bool invert) -> Tensor",
    batch="loop",
    doc="Whether elements occur in a sorted vector of the same dtype.",
)
for _overload, _elements, _test, _one in (
    ("", "Tensor elements", "Tensor test_elements", "test_elements"),
    (".Tensor_Scalar", "Tensor elements", "Scalar test_element", "test_element"),
    (".Scalar_Tensor", "Scalar element", "Tensor test_elements", "test_elements"),
):
    composite(
        f"isin{_overload}({_elements}, {_test}, *, bool assume_unique=False, bool invert=False) -> Tensor",
        method=False,
        out=True,
        doc=""
        if _overload
        else """Whether each of the elements is one of test_elements, or with invert, is none of them.

    assume_unique is accepted and changes nothing. RuntimeError for bool and complex numbers.

    Shapes: elements (*), test_elements of any shape, either may be a number; the result, bool, has the shape of
    elements.

    >>> torch.isin(torch.tensor([1, 2, 3]), torch.tensor([3, 1, 7]))
    tensor([ True, False,  True])""",
    )(lambda elements, tests, assume_unique, invert: _is_in(elements, tests, invert))


def _is_in(elements: Any, tests: Any, invert: bool) -> Any:
    dtype = rl.result_type(elements, tests)
    for given in (elements, tests):
        if hasattr(given, "dtype") and (given.dtype == rl.bool or given.is_complex()):
            raise RuntimeError(f"isin: expected integers or real floating point numbers, got {given.dtype}")
        if isinstance(given, int) and not (
            dtype.is_floating_point or rl.iinfo(dtype).min <= given <= rl.iinfo(dtype).max
        ):
            dtype = rl.int64  # a number that the elements cannot be is compared, not refused
    elements, tests = (t.to(dtype) if hasattr(t, "dtype") else rl.tensor(t, dtype=dtype) for t in (elements, tests))
    return rl._isin(elements, rl._sorted(tests.reshape(-1), 0), invert)


# ---------------------------------------------------------------- what is the same

native(
    "_sorted_slices(Tensor self, int dim) -> Tensor",
    doc="The order that sorts the slices along a dimension lexicographically.",
)
native(
    "_runs(Tensor self, int dim, Tensor? order, bool ordered, bool inverse) -> (Tensor, Tensor, Tensor)",
    batch="loop",
    out=False,
    doc="Runs of equal slices along a dimension (of elements of a vector for -1): where each begins, the run that each "
    "slice belongs to if inverse, and their lengths. order: the slices in the order in which they are to be read, in "
    "which self is already when it is ordered.",
)


def _refuse(name: str) -> Any:
    raise NotImplementedError(f"the derivative of '{name}' is not implemented; detach() what counts as constant")


native(
    "_without_derivative(Tensor self, Tensor source, str name) -> Tensor",
    batch="plain",
    out=False,
    derivative={"source": lambda grad, name: _refuse(name)},
    doc="A copy of self, which an operation without a derivative made of source.",
)


def _made_of(sources: Sequence[Any], name: str, *results: Any) -> Any:
    """The results of an operation without a derivative, that require grad if one of these tensors does."""
    for source in sources:
        if source is not None and differentiated(source):
            results = tuple(rl._without_derivative(r, source, name) for r in results)
            break
    return results if len(results) > 1 else results[0]


def _parts(values: Any, inverse: Any, counts: Any, return_inverse: bool, return_counts: bool) -> Any:
    parts = (values, *([inverse] if return_inverse else []), *([counts] if return_counts else []))
    return parts if len(parts) > 1 else values


def _slices(self: Any, dim: int, name: str) -> tuple[Any, int]:
    """The dimension as a number from 0; nothing may be empty but it."""
    if self.is_complex():
        raise NotImplementedError(f"{name}: not implemented for {self.dtype}")
    if self.dim() == 0:
        raise IndexError(f"{name}: dim; expected None for a tensor without dimensions, got {dim}")
    if not -self.dim() <= dim < self.dim():
        raise IndexError(f"{name}: dim; expected it between {-self.dim()} and {self.dim() - 1}, got {dim}")
    dim %= self.dim()
    if any(n == 0 for d, n in enumerate(self.shape) if d != dim):
        raise RuntimeError(f"{name}: expected sizes other than 0 beside dimension {dim}, got {list(self.shape)}")
    return self, dim


def _unique_narrow(flat: Any, return_inverse: bool) -> tuple[Any, Any, Any]:
    """The integers of 8 or 16 bits that occur, in ascending order, where among them each element is, how often."""
    signed = flat.dtype in (rl.int8, rl.int16)
    low, size = (-128 if signed else 0), 256
    if flat.dtype == rl.int16:
        low, size = -(1 << 15), 1 << 16

    def keys(piece: Any) -> Any:
        return (piece.to(rl.int32) - low) if signed else piece.to(rl.uint8)

    pieces = flat.split(1 << 24)  # keys may take more memory than the elements
    counts = sum(rl.bincount(keys(piece), minlength=size) for piece in pieces)
    found = counts.nonzero().flatten()
    inverse = None
    if return_inverse:
        places = (counts != 0).cumsum(0) - 1
        inverse = rl.empty(flat.shape, dtype=rl.int64)
        for piece, part in zip(pieces, inverse.split(1 << 24), strict=True):
            rl.index_select(places, 0, keys(piece).to(rl.int32), out=part)
    return (found + low).to(flat.dtype), inverse, counts[found]


@composite(
    "unique(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False, int? dim=None) -> Any",
)
def unique(self: Any, sorted: bool, return_inverse: bool, return_counts: bool, dim: Any) -> Any:
    """The different elements, or slices along a dimension, in ascending order.

    With return_inverse also where among them each element is, with return_counts also how often each occurs. Every NaN
    differs from all others. They are in order also without sorted. NotImplementedError for complex numbers.

    Shapes: self (*); the values (n), the inverse (*), the counts (n); along dim the values have n slices there, and
    the inverse has the size of dim.

    >>> torch.unique(torch.tensor([3, 1, 3, 2]), return_inverse=True, return_counts=True)
    (tensor([1, 2, 3]), tensor([2, 0, 2, 1]), tensor([1, 1, 2]))
    >>> torch.unique(torch.tensor([[3, 1], [0, 2], [3, 1]]), dim=0)
    tensor([[0, 2],
            [3, 1]])
    """
    if dim is None:
        if self.is_complex():
            raise NotImplementedError(f"unique: not implemented for {self.dtype}")
        flat = self.detach().reshape(-1)
        if flat.numel() >= 1 << 16 and not flat.is_floating_point() and flat.itemsize <= 2:
            values, inverse, counts = _unique_narrow(flat, return_inverse)
        elif return_inverse:
            ordered, order = flat.sort()
            first, inverse, counts = rl._runs(ordered, -1, order, True, True)
            values = flat[first]
        else:
            ordered = rl._sorted(flat, 0)
            first, inverse, counts = rl._runs(ordered, -1, None, False, False)
            values = ordered[first]
        if return_inverse:
            inverse = inverse.reshape(self.shape)
    else:
        slices, dim = _slices(self.detach(), dim, "unique")
        order = rl._sorted_slices(slices, dim)
        first, inverse, counts = rl._runs(slices, dim, order, False, return_inverse)
        values = slices.index_select(dim, first)
    return _parts(_made_of([self], "unique", values), inverse, counts, return_inverse, return_counts)


@composite(
    "unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None) -> Any",
)
def unique_consecutive(self: Any, return_inverse: bool, return_counts: bool, dim: Any) -> Any:
    """The elements, or slices along a dimension, without those that equal the one before.

    With return_inverse also which of the results stands for each element, with return_counts also how many.
    NotImplementedError for complex numbers.

    Shapes: self (*); the values (n), the inverse (*), the counts (n); along dim the values have n slices there, and
    the inverse has the size of dim.

    >>> torch.unique_consecutive(torch.tensor([1, 1, 2, 1, 1, 1]), return_counts=True)
    (tensor([1, 2, 1]), tensor([2, 1, 3]))
    """
    if dim is None:
        if self.is_complex():
            raise NotImplementedError(f"unique_consecutive: not implemented for {self.dtype}")
        flat = self.detach().reshape(-1)
        first, inverse, counts = rl._runs(flat, -1, None, False, return_inverse)
        if return_inverse:
            inverse = inverse.reshape(self.shape)
        values = flat[first]
    else:
        slices, dim = _slices(self.detach(), dim, "unique_consecutive")
        first, inverse, counts = rl._runs(slices, dim, None, False, return_inverse)
        values = slices.index_select(dim, first)
    return _parts(_made_of([self], "unique_consecutive", values), inverse, counts, return_inverse, return_counts)


# ---------------------------------------------------------------- counting

native(
    "bincount(Tensor self, Tensor? weights=None, int minlength=0) -> Tensor",
    batch="loop",
    out=False,
    formula="out_k = how many self_i = k, or the sum of their weights",
    doc="""How often each number from 0 to the greatest occurs in a vector of integers that are not negative.

    At least minlength numbers are counted. The sums of weights are float64, of float32 weights float32. RuntimeError
    for negative numbers and for other than one dimension.

    Shapes: self (n), weights (n); the result (max(minlength, greatest + 1)), int64 without weights.

    >>> torch.bincount(torch.tensor([0, 2, 2, 5]))
    tensor([1, 0, 2, 0, 0, 1])
    >>> torch.bincount(torch.tensor([0, 1, 1]), weights=torch.tensor([0.5, 1.0, 2.0]))
    tensor([0.5000, 3.0000])""",
)
native(
    "histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor",
    batch="loop",
    formula="out_k = how many elements are in [min + k w, min + (k + 1) w), w = (max - min) / bins",
    doc="""How many elements lie in each of equal bins between min and max, the last of which is closed.

    They reach from the least to the greatest element when both are 0. Elements beyond them and NaN are not counted.

    Shapes: self of any shape; the result (bins), of the dtype of self.

    >>> torch.histc(torch.tensor([0.0, 1.0, 1.5, 4.0, 9.0]), bins=4, min=0, max=4)
    tensor([1., 2., 0., 1.])""",
)
native(
    "_histogram(Tensor self, Tensor[] edges, Tensor? weight, bool uniform) -> Tensor",
    batch="loop",
    out=False,
    doc="Weighted counts of the rows of a matrix over the bins between edges, one vector per column.",
)


def _edges(points: Any, counts: Any, range: Any, name: str) -> list[Any]:
    """Bin edges per column of points: evenly spaced over range, or from the least to the greatest number."""
    columns = points.size(1)
    if range is not None and len(range) != 2 * columns:
        raise RuntimeError(f"{name}: range; expected {2 * columns} numbers, got {len(range)}")
    edges = []
    for d, n in enumerate(counts):
        if n <= 0:
            raise RuntimeError(f"{name}: bins; expected more than 0, got {n} for dimension {d}")
        if range is not None:
            low, high = float(range[2 * d]), float(range[2 * d + 1])
        elif points.size(0):
            low, high = (float(t) for t in points[:, d].aminmax())
        else:
            low, high = 0.0, 1.0
        # a NaN or an infinity
        if low - low != 0 or high - high != 0:
            raise RuntimeError(f"{name}: expected a finite range, got [{low}, {high}] for dimension {d}")
        if low > high:
            raise RuntimeError(f"{name}: expected a range that ascends, got [{low}, {high}] for dimension {d}")
        if low == high:
            low, high = low - 0.5, high + 0.5
        edges.append(rl.linspace(low, high, n + 1, dtype=points.dtype))
    return edges


def _count(points: Any, edges: Any, weight: Any, density: bool, uniform: bool, name: str) -> Any:
    """points: (n, columns)."""
    if points.dtype not in (rl.float32, rl.float64):
        raise NotImplementedError(f"{name}: not implemented for {points.dtype}")
    for d, e in enumerate(edges):
        if e.dtype != points.dtype:
            raise RuntimeError(f"{name}: dtype of bins; expected {points.dtype}, got {e.dtype} for dimension {d}")
        if e.dim() != 1 or e.numel() == 0:
            raise RuntimeError(f"{name}: bins; expected a vector of edges, got shape {list(e.shape)} for dimension {d}")
    if weight is not None:
        if weight.dtype != points.dtype:
            raise RuntimeError(f"{name}: dtype of weight; expected {points.dtype}, got {weight.dtype}")
        weight = weight.detach().reshape(-1)
    hist = rl._histogram(points, edges, weight, uniform)
    if density:
        hist = hist / hist.sum()
        for d, e in enumerate(edges):
            shape = [1] * len(edges)
            shape[d] = -1
            hist = hist / e.diff().reshape(shape)
    return hist


def _weight_fits(weight: Any, shape: Any, name: str) -> None:
    if weight is not None and tuple(weight.shape) != tuple(shape):
        raise RuntimeError(f"{name}: shape of weight; expected {list(shape)}, got {list(weight.shape)}")


_HISTOGRAM = "Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor bin_edges)"


@composite(
    f"histogram(Tensor self, int bins=100, *, float[]? range=None, {_HISTOGRAM}",
    out=True,
    formula="hist_k = sum of the weights of the elements in [edge_k, edge_(k+1))",
)
def histogram(self: Any, bins: int, range: Any, weight: Any, density: bool) -> Any:
    """Weighted counts over bins, and the edges of the bins: equal ones between two numbers, or those between the
    elements of a sorted vector.

    range has the two numbers, by default the least and the greatest element; the last bin is closed. With density, the
    counts are divided by their sum and the widths of the bins. RuntimeError for a weight of another shape,
    NotImplementedError for other dtypes than float32 and float64.

    Shapes: self (*), weight (*), bins a number or (n + 1); hist (n), bin_edges (n + 1).

    >>> torch.histogram(torch.tensor([0.0, 1.0, 1.5, 4.0]), bins=2)
    rushlight.return_types.histogram(
    hist=tensor([3., 1.]),
    bin_edges=tensor([0., 2., 4.]))
    >>> torch.histogram(torch.tensor([0.0, 1.0, 1.5, 4.0]), torch.tensor([0.0, 1.0, 4.0])).hist
    tensor([1., 3.])
    """
    _weight_fits(weight, self.shape, "histogram")
    points = self.detach().reshape(-1, 1)
    edges = _edges(points, [bins], range, "histogram")
    hist = _count(points, edges, weight, density, True, "histogram")
    return _made_of([self, weight], "histogram", hist, edges[0])


@composite(f"histogram.bins_tensor(Tensor self, Tensor bins, *, {_HISTOGRAM}", out=True)
def histogram_edges(self: Any, bins: Any, weight: Any, density: bool) -> Any:
    _weight_fits(weight, self.shape, "histogram")
    points = self.detach().reshape(-1, 1)
    hist = _count(points, [bins], weight, density, False, "histogram")
    return _made_of([self, bins, weight], "histogram", hist, bins.clone())


@composite(
    "histogramdd(Tensor self, Any bins, float[]? range=None, Tensor? weight=None, bool density=False) "
    "-> (Tensor hist, Any bin_edges)",
    method=False,
    formula="hist_(k, l, ...) = sum of the weights of points in bin k of the first coordinate, l of the second, ...",
)
def histogramdd(self: Any, bins: Any, range: Any, weight: Any, density: bool) -> Any:
    """Weighted counts of points, whose coordinates stand in the last dimension, over a grid of bins, and the edges
    per dimension.

    bins is their number in every dimension, or a list of numbers, or of vectors of edges; range has the least and the
    greatest number of each dimension, one after the other. With density, the counts are divided by their sum and the
    volumes of the bins. RuntimeError for fewer than two dimensions, and for bins that are not as many as coordinates.

    Shapes: self (*, D), weight (*); hist (n_1, ..., n_D), bin_edges D vectors (n_d + 1).

    >>> points = torch.tensor([[0.0, 0.0], [1.0, 0.0], [2.0, 4.0]])
    >>> torch.histogramdd(points, [2, 2]).hist
    tensor([[1., 0.],
            [1., 1.]])
    """
    if self.dim() < 2:
        raise RuntimeError(f"histogramdd: expected at least 2 dimensions, got {self.dim()}")
    columns = self.size(-1)
    _weight_fits(weight, self.shape[:-1], "histogramdd")
    points = self.detach().reshape(self.shape[:-1].numel(), columns)
    if isinstance(bins, int):
        bins = [bins] * columns
    if not isinstance(bins, (tuple, list)):
        raise TypeError(f"histogramdd: bins; expected an int, ints or tensors, got {type(bins).__name__}")
    if len(bins) != columns:
        raise RuntimeError(f"histogramdd: bins; expected {columns}, one per coordinate, got {len(bins)}")
    uniform = all(isinstance(b, int) for b in bins)
    edges = _edges(points, bins, range, "histogramdd") if uniform else list(bins)
    hist = _count(points, edges, weight, density, uniform, "histogramdd")
    hist, *edges = _made_of([self, weight], "histogramdd", hist, *edges)
    return hist, tuple(edges)


_SEGMENTS = {"sum": ("sum", 0.0), "mean": ("sum", 0.0), "prod": ("prod", 1.0)} | {
    name: (f"a{name}", sign * float("inf")) for name, sign in (("max", -1), ("min", 1))
}


@composite(
    "segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, Tensor? offsets=None, "
    "int axis=0, bool unsafe=False, Scalar? initial=None) -> Tensor",
    method=False,
    formula="out_k = reduce(data[b], ..., data[e - 1]), b = lengths_0 + ... + lengths_(k-1), e = b + lengths_k",
)
def segment_reduce(
    data: Any, reduce: str, lengths: Any, indices: Any, offsets: Any, axis: int, unsafe: bool, initial: Any
) -> Any:
    """Reductions of consecutive segments of a dimension: 'sum', 'mean', 'prod', 'max' or 'min'.

    lengths are those of the segments, one row for each index of the dimensions before axis; they add up to the size of
    axis, unless unsafe. offsets say instead where each segment begins, and the end of the last. initial is what every
    segment begins with, by default nothing: an empty one is the identity then, or NaN for means. RuntimeError for
    other reductions and lengths that do not fit, NotImplementedError for integers.

    Shapes: data (*, n, ...) with axis after *, lengths (*, k); the result (*, k, ...).

    >>> torch.segment_reduce(torch.tensor([1.0, 2.0, 3.0, 4.0]), "sum", lengths=torch.tensor([1, 0, 3]))
    tensor([1., 0., 9.])
    """
    if reduce not in _SEGMENTS:
        raise RuntimeError(f"segment_reduce: reduce; expected one of {', '.join(_SEGMENTS)}, got {reduce!r}")
    if not data.is_floating_point():
        raise NotImplementedError(f"segment_reduce: not implemented for {data.dtype}")
    if indices is not None or (lengths is None) == (offsets is None):
        raise RuntimeError("segment_reduce: expected either lengths or offsets")
    if lengths is None:
        lengths = offsets.diff(dim=-1)
    axis %= max(data.dim(), 1)
    if lengths.dim() != axis + 1 or lengths.shape[:-1] != data.shape[:axis]:
        raise RuntimeError(
            f"segment_reduce: shape of lengths; expected {[*data.shape[:axis], -1]} for axis {axis}, got "
            f"{list(lengths.shape)}"
        )
    n = data.size(axis)
    if not unsafe and bool((lengths < 0).any() | (lengths.sum(-1) != n).any()):
        raise RuntimeError(f"segment_reduce: lengths; expected no negative ones, with sum {n}, got {lengths.tolist()}")
    how, nothing = _SEGMENTS[reduce]
    position = rl.arange(n, dtype=lengths.dtype).expand([*data.shape[:axis], n]).contiguous()
    segment = rl.searchsorted(lengths.cumsum(-1), position, right=True)
    rest = [1] * (data.dim() - axis - 1)
    start = data.new_full([*lengths.shape, *data.shape[axis + 1 :]], nothing if initial is None else initial)
    result = start.scatter_reduce(axis, segment.reshape([*segment.shape, *rest]).expand(data.shape), data, how)
    if reduce != "mean":
        return result
    count = lengths.reshape([*lengths.shape, *rest])
    return result / count if initial is None else rl.where(count == 0, result, result / count)
