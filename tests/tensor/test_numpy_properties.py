"""Random index expressions, broadcasts, reductions and promotions against NumPy and torch.result_type.

About 10,000 examples in a minute; RUSHLIGHT_EXAMPLES=10 runs ten times as many, with other examples each time.
"""

import operator
import os

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import rushlight as rl

TIMES = int(os.environ.get("RUSHLIGHT_EXAMPLES", "1"))


def examples(n):
    return settings(
        max_examples=n * TIMES, derandomize=TIMES == 1, deadline=None, database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
    )  # fmt: skip


DTYPES = (
    np.bool_,
    np.uint8,
    np.int8,
    np.int16,
    np.int32,
    np.int64,
    np.float32,
    np.float64,
    np.complex64,
    np.complex128,
)


# ---------------------------------------------------------------- arrays in any layout


def filled(shape, dtype=np.float64):
    """Different numbers, where the dtype has them."""
    return np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)


@st.composite
def layouts(draw, array):
    """A tensor of the array's values with other strides: transposed, with gaps, or backwards."""
    kind = draw(st.sampled_from(["plain", "order", "gaps", "backwards"]))
    x = rl.from_numpy(array.copy())
    if kind == "order" and array.ndim:
        order = draw(st.permutations(range(array.ndim)))
        x = rl.from_numpy(np.ascontiguousarray(array.transpose(order))).permute(
            [order.index(d) for d in range(len(order))]
        )
    elif kind == "gaps" and array.ndim:
        wide = rl.zeros([2 * n + 1 for n in array.shape], dtype=x.dtype)
        view = wide[tuple(slice(1, None, 2) for _ in array.shape)]
        view.copy_(x)
        x = view
    elif kind == "backwards" and array.ndim:
        d = draw(st.integers(0, array.ndim - 1))
        x = rl.from_numpy(np.ascontiguousarray(np.flip(array, d)))[(slice(None),) * d + (slice(None, None, -1),)]
    assert x.tolist() == array.tolist()
    return x


SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)


# ---------------------------------------------------------------- index expressions


@st.composite
def index_arrays(draw, size, shape):
    """Integers within a dimension, of a shape that broadcasts to `shape`."""
    own = draw(st.sampled_from([shape, shape[len(shape) // 2 :], tuple(1 for _ in shape)]))
    if size == 0:
        own = (0,) if 0 in shape or shape == () else own
        assume(int(np.prod(own)) == 0)
        return np.zeros(own, np.int64)
    return draw(hnp.arrays(draw(st.sampled_from([np.int64, np.int32])), own, elements=st.integers(-size, size - 1)))


@st.composite
def index_expressions(draw, shape):
    """A tuple that indexes an array of this shape: ints, slices, None, an ellipsis, masks and arrays."""
    advanced = draw(st.booleans())
    common = draw(hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=3))
    kinds = (
        ["int", "slice", "slice", "array", "array", "mask", "none"] if advanced else ["int", "slice", "slice", "none"]
    )
    parts, dim, arrays = [], 0, 0
    gap = draw(st.integers(0, 2 * len(shape)))  # where an ellipsis stands, if at all
    stop = draw(st.integers(0, len(shape)))
    while dim < stop or dim == gap:
        if dim == gap:
            parts.append(Ellipsis)
            dim, gap, stop = draw(st.integers(dim, len(shape))), -1, len(shape)
            continue
        size = shape[dim]
        kind = draw(st.sampled_from(kinds))
        if kind == "none":
            parts.append(None)
            continue
        if kind == "int" and size:
            parts.append(draw(st.integers(-size, size - 1)))
        elif kind == "array":
            parts.append(draw(index_arrays(size, common)))
            arrays += 1
        elif kind == "mask" and arrays == 0:
            end = gap if dim < gap < len(shape) else len(shape)
            covered = draw(st.integers(1, min(2, end - dim)))
            mask = draw(hnp.arrays(np.bool_, shape[dim : dim + covered]))
            count = int(mask.sum())
            # further arrays have to broadcast with the positions of the mask
            common = (count,)
            parts.append(mask)
            arrays += 1
            dim += covered - 1
        else:
            start, end = (draw(st.none() | st.integers(-size - 1, size + 1)) for _ in range(2))
            parts.append(slice(start, end, draw(st.none() | st.sampled_from([1, 2, 3, -1, -2]))))
        dim += 1
    return tuple(parts)


def as_rushlight(index):
    return tuple(rl.from_numpy(p.copy()) if isinstance(p, np.ndarray) else p for p in index)


def split(array, index):
    """The view that the integers select, and what is left of the index.

    NumPy counts integers beside arrays among the arrays, PyTorch applies them before, tensors without dimensions too.
    """
    index = tuple(int(p) if isinstance(p, np.ndarray) and p.ndim == 0 else p for p in index)
    covered = [
        p.ndim if isinstance(p, np.ndarray) and p.dtype == np.bool_ else p is not None and p is not Ellipsis
        for p in index
    ]
    if sum(covered) == array.ndim:  # NumPy sees a gap between arrays even where an ellipsis stands for nothing
        index = tuple(p for p in index if p is not Ellipsis)
    first = tuple(
        p if isinstance(p, int) or p is Ellipsis else slice(None)
        for p in index
        if p is not None
        for _ in range(p.ndim if isinstance(p, np.ndarray) and p.dtype == np.bool_ else 1)
    )
    if Ellipsis not in first:
        first = (*first, Ellipsis)
    return array[first], tuple(p for p in index if not isinstance(p, int))


def place(array, index):
    """What the index reads, or None when its arrays do not broadcast."""
    view, rest = split(array, index)
    try:
        return np.asarray(view[rest])
    except IndexError:
        return None


@st.composite
def indexed(draw, dtypes=(np.float64,)):
    shape = draw(SHAPES)
    array = filled(shape, draw(st.sampled_from(dtypes)))
    return array, draw(layouts(array)), draw(index_expressions(shape))


@given(indexed(DTYPES))
@examples(2650)
def test_reading(case):
    array, x, index = case
    want = place(array, index)
    if want is None:
        with pytest.raises(IndexError):
            x[as_rushlight(index)]
        return
    got = x[as_rushlight(index)]
    assert tuple(got.shape) == want.shape
    assert got.tolist() == want.tolist()


@given(indexed(), st.data())
@examples(2650)
def test_writing(case, data):
    array, x, index = case
    want = array.copy()
    read = place(want, index)
    if read is None:
        with pytest.raises(IndexError):
            x[as_rushlight(index)] = 0
        return
    shape = read.shape
    repeated = any(isinstance(p, np.ndarray) and p.dtype != np.bool_ for p in index)
    drop = data.draw(st.integers(0, len(shape)))
    own = tuple(1 if data.draw(st.booleans()) else n for n in shape[drop:])
    value = np.asarray(-1.0 - filled(own))
    if repeated:  # which of several values stays is not defined in NumPy
        value = np.full(own, -1.0)
    if data.draw(st.booleans()):
        value = np.float64(-7.0)
    view, rest = split(want, index)
    view[rest] = value
    x[as_rushlight(index)] = float(value) if value.ndim == 0 else rl.from_numpy(value)
    assert x.tolist() == want.tolist()


@given(st.data())
@examples(700)
def test_adding_at_indices(data):
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=4))
    array = filled(shape)
    x = data.draw(layouts(array))
    common = data.draw(hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=4))
    count = data.draw(st.integers(1, len(shape)))
    index = tuple(data.draw(index_arrays(n, common)) for n in shape[:count])
    want = array.copy()
    value = np.asarray(1.0 + filled(np.shape(array[index])))
    np.add.at(want, index, value)
    x.index_put_(as_rushlight(index), rl.from_numpy(value), accumulate=True)
    assert x.tolist() == want.tolist()


@given(indexed(), st.data())
@examples(500)
def test_gradients_of_reading(case, data):
    """The gradient of a reading has, at each place, how often that was read."""
    array, x, index = case
    assume(place(array, index) is not None)
    x = x.detach().requires_grad_()
    got = x[as_rushlight(index)]
    (grad,) = rl.autograd.grad(got.sum(), x)
    want = np.zeros_like(array)
    view, rest = split(want, index)
    np.add.at(view, rest, 1.0)
    assert grad.tolist() == want.tolist()


# ---------------------------------------------------------------- broadcasting

OPERATORS = (operator.add, operator.sub, operator.mul, operator.eq, operator.lt)


@given(hnp.mutually_broadcastable_shapes(num_shapes=3, max_dims=4, max_side=4, min_side=0), st.data())
@examples(800)
def test_broadcasting(shapes, data):
    arrays = [np.asarray(filled(s) - 3) for s in shapes.input_shapes]
    tensors = [data.draw(layouts(a)) for a in arrays]
    for f in OPERATORS:
        got, want = f(tensors[0], tensors[1]), f(arrays[0], arrays[1])
        assert tuple(got.shape) == want.shape
        assert got.tolist() == want.tolist()
    got = rl.where(tensors[0] > 0, tensors[1], tensors[2])
    assert got.tolist() == np.where(arrays[0] > 0, arrays[1], arrays[2]).tolist()
    assert rl.broadcast_shapes(*shapes.input_shapes) == shapes.result_shape
    assert [t.tolist() for t in rl.broadcast_tensors(*tensors)] == [a.tolist() for a in np.broadcast_arrays(*arrays)]


# ---------------------------------------------------------------- reductions

REDUCTIONS = {
    "sum": np.sum, "prod": np.prod, "mean": np.mean, "amax": np.max, "amin": np.min, "any": np.any, "all": np.all,
    "argmax": np.argmax, "argmin": np.argmin, "std": np.std, "var": np.var, "count_nonzero": np.count_nonzero,
    "median": lambda a, axis=None, keepdims=False: np.quantile(a, 0.5, axis, method="lower", keepdims=keepdims),
}  # fmt: skip
ONE_DIM = {"prod", "argmax", "argmin", "median"}
WANTED = {"amax", "amin", "argmax", "argmin", "median"}  # that something is left to take


@given(st.data())
@examples(1500)
def test_reductions(data):
    name = data.draw(st.sampled_from(sorted(REDUCTIONS)))
    dtypes = (np.float32, np.float64) if name in ("mean", "std", "var", "median") else (
        np.uint8, np.int32, np.int64, np.float32, np.float64, *([] if "arg" in name or name in WANTED else [np.bool_]),
    )  # fmt: skip
    dtype = data.draw(st.sampled_from(dtypes))
    shape = data.draw(SHAPES)
    least, most = {np.bool_: (0, 1), np.uint8: (0, 3)}.get(dtype, (-3, 3))
    if name == "prod" and np.dtype(dtype).kind == "f":  # 3**24 is rounded, and 3**81 * 0 depends on the order
        least, most = -1, 1
    numbers = st.integers(least, most)
    array = data.draw(hnp.arrays(dtype, shape, elements=numbers))
    x = data.draw(layouts(array))
    if len(shape) and data.draw(st.booleans()):
        axes = data.draw(st.sets(st.integers(0, len(shape) - 1), min_size=1))
        axes = tuple(a - len(shape) if data.draw(st.booleans()) else a for a in sorted(axes))
        if name in ONE_DIM:
            axes = axes[0]
    else:
        axes = None
    keep = data.draw(st.booleans()) and axes is not None and name != "count_nonzero"
    reduced = [n for d, n in enumerate(shape) if axes is None or d in np.atleast_1d(axes) % len(shape)]
    if name in WANTED:
        assume(0 not in reduced)
    if 0 in reduced and name in ("mean", "std", "var"):
        assume(False)
    arguments = {} if axes is None else {"dim": axes}
    if keep:
        arguments["keepdim"] = True
    if name in ("std", "var"):
        arguments["correction"] = 0
    got = getattr(x, name)(**arguments)
    if name == "median" and axes is not None:
        got = got[0]
    options = {"keepdims": True} if keep else {}
    want = np.asarray(REDUCTIONS[name](array, axis=axes, **options))
    if want.dtype == np.uint64:  # NumPy's sums and products of uint8; ours, as PyTorch's, are int64 and wrap there
        want = want.astype(np.int64)
    assert tuple(got.shape) == want.shape
    if name in ("mean", "std", "var"):
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-5, atol=1e-6)
    else:
        assert got.tolist() == want.tolist()


@given(st.data())
@examples(500)
def test_scans_and_sorting(data):
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=5))
    array = data.draw(hnp.arrays(np.float64, shape, elements=st.integers(-3, 3) | st.just(float("nan"))))
    x = data.draw(layouts(np.nan_to_num(array)))
    d = data.draw(st.integers(-len(shape), len(shape) - 1))
    clean = np.nan_to_num(array)
    assert x.cumsum(d).tolist() == clean.cumsum(d).tolist()
    assert x.flip(d).tolist() == np.flip(clean, d).tolist()
    assert x.roll(2, d).tolist() == np.roll(clean, 2, d).tolist()
    t = rl.from_numpy(array)
    values, order = t.sort(dim=d, stable=True)
    np.testing.assert_array_equal(values.numpy(), np.sort(array, d))
    np.testing.assert_array_equal(order.numpy(), np.argsort(array, d, kind="stable"))
    np.testing.assert_array_equal(rl.take_along_dim(t, order, d).numpy(), np.sort(array, d))


# ---------------------------------------------------------------- promotion

NAMES = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128".split()
OPERANDS = st.tuples(st.sampled_from(NAMES), st.sampled_from([(), (1,), (2, 1)])) | st.sampled_from(
    [True, 2, 1.5, 1 + 1j]
)


@given(OPERANDS, OPERANDS)
@examples(700)
def test_promotion(a, b):
    torch = pytest.importorskip("torch")
    assume(isinstance(a, tuple) or isinstance(b, tuple))
    pairs = [
        tuple(m.ones(v[1], dtype=getattr(m, v[0])) if isinstance(v, tuple) else v for v in (a, b)) for m in (rl, torch)
    ]
    want = str(torch.result_type(*pairs[1])).removeprefix("torch.")
    assume(want != "complex32")
    assert str(rl.result_type(*pairs[0])) == f"rushlight.{want}"
    assert str((pairs[0][0] * pairs[0][1]).dtype) == f"rushlight.{want}"
    got = rl.where(rl.tensor([True, False]), *pairs[0])
    assert str(got.dtype) == f"rushlight.{want}"
