"""The Python array API standard, version 2024.12, over rushlight's tensors.

``x.__array_namespace__()`` returns this module. Functions, signatures and results are the standard's
(https://data-apis.org/array-api/2024.12); docs/differences.md lists what is missing. The extensions are the submodules
``linalg`` and ``fft``.

    >>> import rushlight
    >>> x = rushlight.arange(6.0).reshape(2, 3)
    >>> x.__array_namespace__().mean(x, axis=1)
    tensor([1., 4.])
"""

from __future__ import annotations

import builtins
import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import rushlight as _rl
from rushlight import (
    Tensor,
    bool,
    complex64,
    complex128,
    e,
    float32,
    float64,
    inf,
    int8,
    int16,
    int32,
    int64,
    nan,
    newaxis,
    pi,
    uint8,
)

from ._kinds import _INDEX, _is_number, _kind_of, _numbers_to_tensors, _sum_dtype, isdtype

if TYPE_CHECKING:
    from . import fft, linalg

VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")
__array_api_version__ = "2024.12"

_Axis = builtins.int | tuple[builtins.int, ...] | None


def __getattr__(name: str) -> Any:
    if name in ("linalg", "fft"):
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(n for n in (*__all__, "linalg", "fft", "__array_api_version__", "__array_namespace_info__"))


# ---------------------------------------------------------------- inspection


class __array_namespace_info__:
    """What this namespace can do, as the standard's inspection functions."""

    def capabilities(self) -> dict[str, Any]:
        """Boolean indexing, shapes that depend on data, and the greatest number of dimensions."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Any:
        """Where arrays are made."""
        return _rl.get_default_device()

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """The dtypes of arrays made from Python numbers."""
        real = _rl.get_default_dtype()
        return {
            "real floating": real,
            "complex floating": real.to_complex(),
            "integral": int64,
            "indexing": _INDEX,
        }

    def devices(self) -> list[Any]:
        """The devices there are."""
        return [_rl.device("cpu")]

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        """The dtypes by name, of one kind or of several."""
        every = {
            "bool": bool,
            "int8": int8,
            "int16": int16,
            "int32": int32,
            "int64": int64,
            "uint8": uint8,
            "float32": float32,
            "float64": float64,
            "complex64": complex64,
            "complex128": complex128,
        }
        return {n: d for n, d in every.items() if kind is None or isdtype(d, kind)}


# ---------------------------------------------------------------- creation


def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None) -> Tensor:
    """start, start + step, ... before stop; from 0 when only one bound is given. Empty when step leads away."""
    if stop is None:
        start, stop = 0, start
    if (step > 0 and stop <= start) or (step < 0 and stop >= start):
        whole = builtins.all(isinstance(v, builtins.int) for v in (start, stop, step))
        return _rl.empty(0, dtype=dtype or (int64 if whole else None), device=device)
    return _rl.arange(start, stop, step, dtype=dtype, device=device)


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: Any = None) -> Tensor:
    """The object as an array; copied if `copy` is True, never if it is False."""
    return _rl.asarray(obj, dtype=dtype, device=device, copy=copy)


def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """An array that is not initialised."""
    return _rl.empty(shape, dtype=dtype, device=device)


def empty_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """An array of x's shape that is not initialised."""
    return _rl.empty_like(x, dtype=dtype, device=device)


def eye(
    n_rows: builtins.int,
    n_cols: builtins.int | None = None,
    /,
    *,
    k: builtins.int = 0,
    dtype: Any = None,
    device: Any = None,
) -> Tensor:
    """Ones on a diagonal, k above the main one."""
    n_cols = n_rows if n_cols is None else n_cols
    made = _rl.zeros(n_rows, n_cols, dtype=dtype, device=device)
    if -n_rows < k < n_cols:
        made.diagonal(k).fill_(1)
    return made


def from_dlpack(x: Any, /, *, device: Any = None, copy: Any = None) -> Tensor:
    """An array over the memory of an object with __dlpack__."""
    return _rl.from_dlpack(x, device=device, copy=copy)


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """One value everywhere."""
    return _rl.full((shape,) if isinstance(shape, builtins.int) else shape, fill_value, dtype=dtype, device=device)


def full_like(x: Tensor, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """One value in x's shape."""
    return _rl.full_like(x, fill_value, dtype=dtype, device=device)


def linspace(
    start: Any,
    stop: Any,
    /,
    num: builtins.int,
    *,
    dtype: Any = None,
    device: Any = None,
    endpoint: builtins.bool = True,
) -> Tensor:
    """num values from start to stop, which is included if `endpoint`."""
    if not endpoint:
        return _rl.linspace(start, stop, num + 1, dtype=dtype, device=device)[:num]
    return _rl.linspace(start, stop, num, dtype=dtype, device=device)


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> tuple[Tensor, ...]:
    """Coordinate grids of vectors."""
    if not arrays:
        return ()
    return tuple(_rl.meshgrid(*arrays, indexing=indexing))


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Ones."""
    return _rl.ones(shape, dtype=dtype, device=device)


def ones_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Ones in x's shape."""
    return _rl.ones_like(x, dtype=dtype, device=device)


def tril(x: Tensor, /, *, k: builtins.int = 0) -> Tensor:
    """Zeros above the k-th diagonal."""
    return _rl.tril(x, k)


def triu(x: Tensor, /, *, k: builtins.int = 0) -> Tensor:
    """Zeros below the k-th diagonal."""
    return _rl.triu(x, k)


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Zeros."""
    return _rl.zeros(shape, dtype=dtype, device=device)


def zeros_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Zeros in x's shape."""
    return _rl.zeros_like(x, dtype=dtype, device=device)


# ---------------------------------------------------------------- dtypes


def astype(x: Tensor, dtype: Any, /, *, copy: builtins.bool = True, device: Any = None) -> Tensor:
    """x in another dtype; x itself if that is its own, unless `copy`."""
    return x.to(device=device or x.device, dtype=dtype, copy=copy)


def broadcast_arrays(*arrays: Tensor) -> list[Tensor]:
    """The arrays in their common shape."""
    shape = _rl.broadcast_shapes(*(a.shape for a in arrays))
    return [a.expand(shape) for a in arrays]


def broadcast_to(x: Tensor, /, shape: Any) -> Tensor:
    """x in a shape that it broadcasts to."""
    return x.expand(tuple(shape))


def can_cast(from_: Any, to: Any, /) -> builtins.bool:
    """Whether promotion leads from a dtype, or an array's, to another."""
    source = from_.dtype if isinstance(from_, Tensor) else from_
    try:
        return _rl.promote_types(source, to) == to
    except TypeError:
        return False


class _Float(NamedTuple):
    bits: builtins.int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: Any


class _Integer(NamedTuple):
    bits: builtins.int
    max: builtins.int
    min: builtins.int
    dtype: Any


def finfo(type: Any, /) -> Any:
    """The limits of a floating point dtype, or of an array's."""
    dtype = type.dtype if isinstance(type, Tensor) else type
    i = _rl.finfo(dtype)
    return _Float(i.bits, i.eps, i.max, i.min, i.smallest_normal, dtype.to_real())


def iinfo(type: Any, /) -> Any:
    """The limits of an integer dtype, or of an array's."""
    dtype = type.dtype if isinstance(type, Tensor) else type
    i = _rl.iinfo(dtype)
    return _Integer(i.bits, i.max, i.min, dtype)


def result_type(*arrays_and_dtypes: Any) -> Any:
    """The dtype that arrays, dtypes and Python numbers promote to."""
    dtypes = [v.dtype if isinstance(v, Tensor) else v for v in arrays_and_dtypes if not _is_number(v)]
    if not dtypes:
        raise ValueError("result_type: expected at least one array or dtype")
    found = dtypes[0]
    for d in dtypes[1:]:
        found = _rl.promote_types(found, d)
    for number in filter(_is_number, arrays_and_dtypes):
        found = _rl.result_type(_rl.empty(0, dtype=found), number)
    return found


# ---------------------------------------------------------------- functions of elements


def _unary(name: str, function: Callable[[Tensor], Tensor], doc: str) -> Callable[[Tensor], Tensor]:
    def call(x: Tensor, /) -> Tensor:
        return function(x)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = doc
    return call


def _binary(name: str, function: Callable[[Any, Any], Tensor], doc: str) -> Callable[[Any, Any], Tensor]:
    def call(x1: Any, x2: Any, /) -> Tensor:
        return function(*_numbers_to_tensors(name, x1, x2))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = doc
    return call


def _real_too(function: Callable[[Tensor], Tensor], otherwise: Callable[[Tensor], Tensor]) -> Any:
    return lambda x: function(x) if x.is_complex() else otherwise(x)


def _rounded(function: Callable[[Tensor], Tensor]) -> Any:
    return lambda x: function(x) if x.is_floating_point() or x.is_complex() else x.clone()


abs = _unary("abs", lambda x: _rl.abs(x), "Absolute values.")
acos = _unary("acos", lambda x: _rl.acos(x), "Arc cosines.")
acosh = _unary("acosh", lambda x: _rl.acosh(x), "Inverse hyperbolic cosines.")
add = _binary("add", lambda a, b: _rl.add(a, b), "Sums.")
asin = _unary("asin", lambda x: _rl.asin(x), "Arc sines.")
asinh = _unary("asinh", lambda x: _rl.asinh(x), "Inverse hyperbolic sines.")
atan = _unary("atan", lambda x: _rl.atan(x), "Arc tangents.")
atan2 = _binary("atan2", lambda a, b: _rl.atan2(a, b), "Angles of the points (x2, x1).")
atanh = _unary("atanh", lambda x: _rl.atanh(x), "Inverse hyperbolic tangents.")
bitwise_and = _binary("bitwise_and", lambda a, b: _rl.bitwise_and(a, b), "Bits set in both.")
bitwise_invert = _unary("bitwise_invert", lambda x: _rl.bitwise_not(x), "Every bit exchanged.")
bitwise_left_shift = _binary("bitwise_left_shift", lambda a, b: _rl.bitwise_left_shift(a, b), "Bits moved up.")
bitwise_or = _binary("bitwise_or", lambda a, b: _rl.bitwise_or(a, b), "Bits set in one or both.")
bitwise_right_shift = _binary("bitwise_right_shift", lambda a, b: _rl.bitwise_right_shift(a, b), "Bits moved down.")
bitwise_xor = _binary("bitwise_xor", lambda a, b: _rl.bitwise_xor(a, b), "Bits set in one of the two.")
ceil = _unary("ceil", _rounded(lambda x: _rl.ceil(x)), "The next whole numbers up.")
# Results are never lazily conjugated: consumers hand them to NumPy.
conj = _unary("conj", lambda x: _rl.conj(x).resolve_conj(), "Complex conjugates.")
copysign = _binary("copysign", lambda a, b: _rl.copysign(a, b), "x1 with the signs of x2.")
cos = _unary("cos", lambda x: _rl.cos(x), "Cosines.")
cosh = _unary("cosh", lambda x: _rl.cosh(x), "Hyperbolic cosines.")
divide = _binary("divide", lambda a, b: _rl.div(a, b), "Quotients.")
equal = _binary("equal", lambda a, b: _rl.eq(a, b), "Where both are equal.")
exp = _unary("exp", lambda x: _rl.exp(x), "Exponentials.")
expm1 = _unary("expm1", lambda x: _rl.expm1(x), "exp(x) - 1.")
floor = _unary("floor", _rounded(lambda x: _rl.floor(x)), "The next whole numbers down.")
floor_divide = _binary("floor_divide", lambda a, b: _rl.floor_divide(a, b), "Quotients rounded down.")
greater = _binary("greater", lambda a, b: _rl.gt(a, b), "Where x1 > x2.")
greater_equal = _binary("greater_equal", lambda a, b: _rl.ge(a, b), "Where x1 >= x2.")
hypot = _binary("hypot", lambda a, b: _rl.hypot(a, b), "sqrt(x1^2 + x2^2).")
imag = _unary("imag", _real_too(lambda x: _rl.view_as_real(x)[..., 1], lambda x: _rl.zeros_like(x)), "Imaginary parts.")
isfinite = _unary("isfinite", lambda x: _rl.isfinite(x), "Where x is finite.")
isinf = _unary("isinf", lambda x: _rl.isinf(x), "Where x is infinite.")
isnan = _unary("isnan", lambda x: _rl.isnan(x), "Where x is NaN.")
less = _binary("less", lambda a, b: _rl.lt(a, b), "Where x1 < x2.")
less_equal = _binary("less_equal", lambda a, b: _rl.le(a, b), "Where x1 <= x2.")
log = _unary("log", lambda x: _rl.log(x), "Natural logarithms.")
log10 = _unary("log10", lambda x: _rl.log10(x), "Logarithms to base 10.")
log1p = _unary("log1p", lambda x: _rl.log1p(x), "log(1 + x).")
log2 = _unary("log2", lambda x: _rl.log2(x), "Logarithms to base 2.")
logaddexp = _binary("logaddexp", lambda a, b: _rl.logaddexp(a, b), "log(exp(x1) + exp(x2)).")
logical_and = _binary("logical_and", lambda a, b: _rl.logical_and(a, b), "Where both are true.")
logical_not = _unary("logical_not", lambda x: _rl.logical_not(x), "Where x is false.")
logical_or = _binary("logical_or", lambda a, b: _rl.logical_or(a, b), "Where one or both are true.")
logical_xor = _binary("logical_xor", lambda a, b: _rl.logical_xor(a, b), "Where one of the two is true.")
maximum = _binary("maximum", lambda a, b: _rl.maximum(a, b), "The greater elements.")
minimum = _binary("minimum", lambda a, b: _rl.minimum(a, b), "The lesser elements.")
multiply = _binary("multiply", lambda a, b: _rl.mul(a, b), "Products.")
negative = _unary("negative", lambda x: _rl.neg(x), "-x.")
nextafter = _binary("nextafter", lambda a, b: _rl.nextafter(a, b), "The next representable numbers towards x2.")
not_equal = _binary("not_equal", lambda a, b: _rl.ne(a, b), "Where the two differ.")
positive = _unary("positive", lambda x: x.clone(), "+x.")
pow = _binary("pow", lambda a, b: _rl.pow(a, b), "Powers.")
real = _unary("real", _real_too(lambda x: _rl.view_as_real(x)[..., 0], lambda x: x), "Real parts.")
reciprocal = _unary("reciprocal", lambda x: _rl.reciprocal(x), "1 / x.")
remainder = _binary("remainder", lambda a, b: _rl.remainder(a, b), "Remainders with the signs of x2.")
round = _unary(
    "round",
    _rounded(_real_too(lambda x: _rl.view_as_complex(_rl.view_as_real(x).round()), lambda x: _rl.round(x))),
    "The nearest whole numbers, ties to even.",
)
sign = _unary("sign", lambda x: _rl.sgn(x), "-1, 0 or 1 by the sign; x / |x| of complex numbers.")
signbit = _unary("signbit", lambda x: _rl.signbit(x), "Where the sign bit is set.")
sin = _unary("sin", lambda x: _rl.sin(x), "Sines.")
sinh = _unary("sinh", lambda x: _rl.sinh(x), "Hyperbolic sines.")
sqrt = _unary("sqrt", lambda x: _rl.sqrt(x), "Square roots.")
square = _unary("square", lambda x: _rl.square(x), "Squares.")
subtract = _binary("subtract", lambda a, b: _rl.sub(a, b), "Differences.")
tan = _unary("tan", lambda x: _rl.tan(x), "Tangents.")
tanh = _unary("tanh", lambda x: _rl.tanh(x), "Hyperbolic tangents.")
trunc = _unary("trunc", _rounded(lambda x: _rl.trunc(x)), "x without fractions.")


def clip(x: Tensor, /, min: Any = None, max: Any = None) -> Tensor:
    """x limited to [min, max], in x's dtype."""
    bounds = [b for b in (min, max) if isinstance(b, Tensor)]
    shape = _rl.broadcast_shapes(x.shape, *(b.shape for b in bounds))
    made = x.expand(shape).clone()
    if min is not None:
        made = _rl.where(made < min, min if isinstance(min, Tensor) else _rl.tensor(min, dtype=x.dtype), made)
    if max is not None:
        made = _rl.where(made > max, max if isinstance(max, Tensor) else _rl.tensor(max, dtype=x.dtype), made)
    for b in bounds:
        if b.is_floating_point():
            made = _rl.where(b.isnan(), nan, made)
    return made.to(x.dtype)


# ---------------------------------------------------------------- indexing


def take(x: Tensor, indices: Tensor, /, *, axis: builtins.int | None = None) -> Tensor:
    """The elements at indices of an axis, which a vector need not name."""
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"take: axis; expected one for an array of {x.ndim} dimensions")
        axis = 0
    if indices.ndim != 1:
        raise ValueError(f"take: indices; expected one dimension, got {indices.ndim}")
    size = x.shape[axis]
    return _rl.index_select(x, axis, _rl.where(indices < 0, indices + size, indices).to(int64))


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: builtins.int = -1) -> Tensor:
    """For every line along the axis, the elements at its own indices."""
    wrapped = _rl.where(indices < 0, indices + x.shape[axis], indices).to(int64)
    return _rl.take_along_dim(x, wrapped, axis)


# ---------------------------------------------------------------- linear algebra


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The matrix product."""
    a, b = _promoted(x1, x2)
    return _rl.matmul(a, b)


def matrix_transpose(x: Tensor, /) -> Tensor:
    """The last two axes exchanged."""
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose: expected at least 2 dimensions, got {x.ndim}")
    return x.transpose(-1, -2)


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: Any = 2) -> Tensor:
    """Sums of products over pairs of axes."""
    a, b = _promoted(x1, x2)
    return _rl.tensordot(a, b, dims=axes)


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: builtins.int = -1) -> Tensor:
    """Sums of conj(x1) * x2 along an axis."""
    a, b = _promoted(x1, x2)
    if x1.shape[axis] != x2.shape[axis]:
        raise ValueError(f"vecdot: axis {axis}; expected equal sizes, got {x1.shape[axis]} and {x2.shape[axis]}")
    a, b = broadcast_arrays(a.movedim(axis, -1), b.movedim(axis, -1))
    return (_rl.conj(a) * b).sum(-1, dtype=a.dtype)


def _promoted(*arrays: Tensor) -> tuple[Tensor, ...]:
    dtype = result_type(*arrays)
    return tuple(a.to(dtype) for a in arrays)


# ---------------------------------------------------------------- shapes


def concat(arrays: Any, /, *, axis: builtins.int | None = 0) -> Tensor:
    """The arrays one after another along an axis; as vectors if that is None."""
    if axis is None:
        return _rl.cat([a.reshape(-1) for a in arrays], 0)
    return _rl.cat(list(arrays), axis)


def expand_dims(x: Tensor, /, axis: Any = 0) -> Tensor:
    """New axes of size 1, at these places of the result."""
    places = (axis,) if isinstance(axis, builtins.int) else tuple(axis)
    n = x.ndim + len(places)
    for place in places:
        if not -n <= place < n:
            raise IndexError(f"expand_dims: axis; expected {-n} to {n - 1}, got {place}")
    for place in sorted(p % n for p in places):
        x = x.unsqueeze(place)
    return x


def flip(x: Tensor, /, *, axis: _Axis = None) -> Tensor:
    """The order along axes (all by default) reversed."""
    axes = tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, builtins.int) else axis
    return _rl.flip(x, axes)


def moveaxis(x: Tensor, source: Any, destination: Any, /) -> Tensor:
    """Axes moved to other places."""
    return _rl.movedim(x, source, destination)


def permute_dims(x: Tensor, /, axes: Any) -> Tensor:
    """The axes in another order."""
    return _rl.permute(x, tuple(axes))


def repeat(x: Tensor, repeats: Any, /, *, axis: builtins.int | None = None) -> Tensor:
    """Every element several times: one number for all, or one each."""
    if axis is None:
        x, axis = x.reshape(-1), 0
    if isinstance(repeats, Tensor):
        repeats = repeats.to(int64)
        if repeats.numel() == 1:
            repeats = builtins.int(repeats)
    elif not isinstance(repeats, builtins.int):
        repeats = _rl.tensor(list(repeats), dtype=int64)
    return _rl.repeat_interleave(x, repeats, axis)


def reshape(x: Tensor, /, shape: Any, *, copy: Any = None) -> Tensor:
    """The elements in another shape; ValueError if `copy` is False and that needs a copy."""
    if copy is False:
        try:
            return x.view(tuple(shape))
        except RuntimeError as error:
            raise ValueError(f"reshape: copy=False, but {error}") from None
    return x.clone().reshape(tuple(shape)) if copy else x.reshape(tuple(shape))


def roll(x: Tensor, /, shift: Any, *, axis: Any = None) -> Tensor:
    """The elements moved along axes; what falls off comes back at the other end."""
    if axis is None:
        return _rl.roll(x.reshape(-1), shift, 0).reshape(x.shape)
    if isinstance(shift, builtins.int) and not isinstance(axis, builtins.int):
        shift = (shift,) * len(axis)
    return _rl.roll(x, shift, axis)


def squeeze(x: Tensor, /, axis: Any) -> Tensor:
    """Axes of size 1 taken away; ValueError for others."""
    axes = (axis,) if isinstance(axis, builtins.int) else tuple(axis)
    for a in axes:
        if x.shape[a] != 1:
            raise ValueError(f"squeeze: axis {a}; expected size 1, got {x.shape[a]}")
    return _rl.squeeze(x, axes)


def stack(arrays: Any, /, *, axis: builtins.int = 0) -> Tensor:
    """The arrays along a new axis."""
    return _rl.stack(list(arrays), axis)


def tile(x: Tensor, repetitions: Any, /) -> Tensor:
    """The array several times along each axis."""
    return _rl.tile(x, tuple(repetitions))


def unstack(x: Tensor, /, *, axis: builtins.int = 0) -> tuple[Tensor, ...]:
    """The parts along an axis."""
    return tuple(_rl.unbind(x, axis))


# ---------------------------------------------------------------- searching


def _extreme(function: Any, x: Tensor, axis: Any, keepdims: builtins.bool) -> Tensor:
    if axis is None:
        found = function(x.reshape(-1), 0)
        return found.reshape((1,) * x.ndim) if keepdims else found
    return function(x, axis, keepdims)


def argmax(x: Tensor, /, *, axis: builtins.int | None = None, keepdims: builtins.bool = False) -> Tensor:
    """The index of the first greatest element."""
    return _extreme(_rl.argmax, x, axis, keepdims)


def argmin(x: Tensor, /, *, axis: builtins.int | None = None, keepdims: builtins.bool = False) -> Tensor:
    """The index of the first least element."""
    return _extreme(_rl.argmin, x, axis, keepdims)


def count_nonzero(x: Tensor, /, *, axis: _Axis = None, keepdims: builtins.bool = False) -> Tensor:
    """How many elements are not 0."""
    return sum(x != 0, axis=axis, keepdims=keepdims)


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """The indices of the elements that are not 0, one array per axis."""
    if x.ndim == 0:
        raise ValueError("nonzero: expected at least one dimension, got none")
    return tuple(_rl.nonzero(x, as_tuple=True))


def searchsorted(x1: Tensor, x2: Tensor, /, *, side: str = "left", sorter: Tensor | None = None) -> Tensor:
    """Where elements of x2 would stand in the sorted vector x1."""
    a, b = _promoted(x1, x2)
    return _rl.searchsorted(a, b, side=side, sorter=sorter)


def where(condition: Tensor, x1: Any, x2: Any, /) -> Tensor:
    """x1 where the condition is true, x2 elsewhere."""
    return _rl.where(condition, *_numbers_to_tensors("where", x1, x2))


# ---------------------------------------------------------------- sets


class _All(NamedTuple):
    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class _Counts(NamedTuple):
    values: Tensor
    counts: Tensor


class _Inverse(NamedTuple):
    values: Tensor
    inverse_indices: Tensor


def unique_all(x: Tensor, /) -> Any:
    """The distinct values in ascending order, where each is first, which one every element is, and how often.

    Every NaN is a value of its own.
    """
    order = _order(x.reshape(-1), -1, False)
    line = x.reshape(-1)[order]
    first = _rl.ones(line.shape[0], dtype=bool)
    first[1:] = line[1:] != line[:-1]
    starts = first.nonzero()[:, 0]
    ends = _rl.cat([starts[1:], _rl.tensor([line.shape[0]])]) if starts.numel() else starts
    inverse = _rl.empty(line.shape[0], dtype=int64)
    inverse[order] = first.cumsum(0) - 1
    return _All(line[first], order[first], inverse.reshape(x.shape), ends - starts)


def unique_counts(x: Tensor, /) -> Any:
    """The distinct values, and how often each is there."""
    found = unique_all(x)
    return _Counts(found.values, found.counts)


def unique_inverse(x: Tensor, /) -> Any:
    """The distinct values, and which of them every element is."""
    found = unique_all(x)
    return _Inverse(found.values, found.inverse_indices)


def unique_values(x: Tensor, /) -> Tensor:
    """The distinct values."""
    values: Tensor = unique_all(x).values
    return values


# ---------------------------------------------------------------- sorting


def _order(x: Tensor, axis: builtins.int, descending: builtins.bool) -> Tensor:
    if not x.is_complex():
        return _rl.sort(x, dim=axis, descending=descending, stable=True)[1]
    parts = _rl.view_as_real(x)  # by real part, then by imaginary part
    order = _rl.sort(parts[..., 1], dim=axis, descending=descending, stable=True)[1]
    again = _rl.sort(parts[..., 0].gather(axis, order), dim=axis, descending=descending, stable=True)[1]
    return order.gather(axis, again)


def argsort(
    x: Tensor, /, *, axis: builtins.int = -1, descending: builtins.bool = False, stable: builtins.bool = True
) -> Tensor:
    """The indices that sort an axis."""
    return _order(x, axis, descending)


def sort(
    x: Tensor, /, *, axis: builtins.int = -1, descending: builtins.bool = False, stable: builtins.bool = True
) -> Tensor:
    """The elements in order along an axis."""
    if x.is_complex():
        return x.gather(axis, _order(x, axis, descending))
    return _rl.sort(x, dim=axis, descending=descending, stable=stable)[0]


# ---------------------------------------------------------------- statistics


def _axes(x: Tensor, axis: Any) -> tuple[builtins.int, ...]:
    """The axes as they are meant: all for None, none for an empty tuple."""
    chosen = tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, builtins.int) else tuple(axis)
    for a in chosen:
        if not -x.ndim <= a < x.ndim:
            raise IndexError(f"axis; expected {-x.ndim} to {x.ndim - 1}, got {a}")
    return tuple(sorted({a % x.ndim for a in chosen}))


def _reduce(function: Any, x: Tensor, axis: Any, keepdims: builtins.bool) -> Tensor:
    """A reduction of one axis, over several: the later ones first."""
    for a in reversed(_axes(x, axis)):
        x = function(x, a, keepdims)
    return x


def cumulative_sum(
    x: Tensor, /, *, axis: builtins.int | None = None, dtype: Any = None, include_initial: builtins.bool = False
) -> Tensor:
    """The sums of the first elements along an axis, from none on if `include_initial`."""
    return _cumulative(_rl.cumsum, 0, x, axis, dtype, include_initial)


def cumulative_prod(
    x: Tensor, /, *, axis: builtins.int | None = None, dtype: Any = None, include_initial: builtins.bool = False
) -> Tensor:
    """The products of the first elements along an axis, from none on if `include_initial`."""
    return _cumulative(_rl.cumprod, 1, x, axis, dtype, include_initial)


def _cumulative(function: Any, initial: Any, x: Tensor, axis: Any, dtype: Any, include: builtins.bool) -> Tensor:
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"axis; expected one for an array of {x.ndim} dimensions")
        axis = 0
    made: Tensor = function(x, axis, dtype=dtype or _sum_dtype(x.dtype))
    if include:
        shape = list(x.shape)
        shape[axis] = 1
        made = _rl.cat([made.new_full(shape, initial), made], axis)
    return made


def max(x: Tensor, /, *, axis: _Axis = None, keepdims: builtins.bool = False) -> Tensor:
    """The greatest elements."""
    axes = _axes(x, axis)
    return _rl.amax(x, axes, keepdims) if axes else x.clone()


def mean(x: Tensor, /, *, axis: _Axis = None, keepdims: builtins.bool = False) -> Tensor:
    """The means."""
    axes = _axes(x, axis)
    return _rl.mean(x, axes, keepdims) if axes else x.clone()


def min(x: Tensor, /, *, axis: _Axis = None, keepdims: builtins.bool = False) -> Tensor:
    """The least elements."""
    axes = _axes(x, axis)
    return _rl.amin(x, axes, keepdims) if axes else x.clone()


def prod(x: Tensor, /, *, axis: _Axis = None, dtype: Any = None, keepdims: builtins.bool = False) -> Tensor:
    """The products."""
    return _reduce(lambda t, a, k: _rl.prod(t, a, k), x.to(dtype or _sum_dtype(x.dtype)), axis, keepdims)


def std(x: Tensor, /, *, axis: _Axis = None, correction: float = 0.0, keepdims: builtins.bool = False) -> Tensor:
    """The standard deviations; sums are divided by N - correction."""
    axes = _axes(x, axis)
    return _rl.std(x, axes, correction=correction, keepdim=keepdims) if axes else _rl.zeros_like(x)


def sum(x: Tensor, /, *, axis: _Axis = None, dtype: Any = None, keepdims: builtins.bool = False) -> Tensor:
    """The sums."""
    axes, kind = _axes(x, axis), dtype or _sum_dtype(x.dtype)
    return _rl.sum(x, axes, keepdims, dtype=kind) if axes else x.to(kind, copy=True)


def var(x: Tensor, /, *, axis: _Axis = None, correction: float = 0.0, keepdims: builtins.bool = False) -> Tensor:
    """The variances; sums are divided by N - correction."""
    axes = _axes(x, axis)
    return _rl.var(x, axes, correction=correction, keepdim=keepdims) if axes else _rl.zeros_like(x)


# ---------------------------------------------------------------- utilities


def all(x: Tensor, /, *, axis: _Axis = None, keepdims: builtins.bool = False) -> Tensor:
    """Whether every element is true."""
    return _reduce(lambda t, a, k: _rl.all(t, a, k), x != 0, axis, keepdims)


def any(x: Tensor, /, *, axis: _Axis = None, keepdims: builtins.bool = False) -> Tensor:
    """Whether some element is true."""
    return _reduce(lambda t, a, k: _rl.any(t, a, k), x != 0, axis, keepdims)


def diff(
    x: Tensor,
    /,
    *,
    axis: builtins.int = -1,
    n: builtins.int = 1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
) -> Tensor:
    """The n-th differences along an axis."""
    return _rl.diff(x, n, axis, prepend, append)


__all__ = sorted(
    n
    for n, v in globals().items()
    if not n.startswith("_")
    and n not in ("Any", "Callable", "NamedTuple", "TYPE_CHECKING", "Tensor", "VERSIONS", "annotations")
    and n not in ("builtins", "importlib")
)
