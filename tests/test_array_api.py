"""The array namespace against array-api-strict: names, signatures, and the results of every function."""

from __future__ import annotations

import builtins
import inspect
import warnings

import numpy as np
import pytest

import rushlight as rl

strict = pytest.importorskip("array_api_strict")
ours = rl.ones(1).__array_namespace__()


@pytest.fixture(autouse=True)
def standard_of_2024():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        strict.set_array_api_strict_flags(api_version="2024.12")
        yield
        strict.reset_array_api_strict_flags()


# What the standard has and this namespace does not; docs/differences.md says why.
MISSING = {"uint16", "uint32", "uint64"}
# Of the reference alone, or of the standard after 2024.12.
NOT_STANDARD = {
    "ArrayAPIStrictFlags",
    "Device",
    "ModuleType",
    "broadcast_shapes",
    "get_array_api_strict_flags",
    "isin",
    "reset_array_api_strict_flags",
    "set_array_api_strict_flags",
}
NAMES = sorted(n for n in dir(strict) if not n.startswith("_") and n not in NOT_STANDARD)
EXTENSIONS = {
    "linalg": (
        "cholesky cross det diagonal eigh eigvalsh inv matmul matrix_norm matrix_power matrix_rank matrix_transpose "
        "outer pinv qr slogdet solve svd svdvals tensordot trace vecdot vector_norm"
    ).split(),
    "fft": "fft fftfreq fftn fftshift hfft ifft ifftn ifftshift ihfft irfft irfftn rfft rfftfreq rfftn".split(),
}


def test_every_name_is_there():
    assert [n for n in NAMES if not hasattr(ours, n) and n not in MISSING] == []
    assert set(ours.__all__) - set(NAMES) - {"linalg", "fft", "isdtype"} == set()


def parameters(function):
    return [(p.name, p.kind) for p in inspect.signature(function).parameters.values()]


@pytest.mark.parametrize("name", [n for n in NAMES if inspect.isfunction(getattr(strict, n))])
def test_signatures(name):
    assert parameters(getattr(ours, name)) == parameters(getattr(strict, name))


@pytest.mark.parametrize("path", [f"{space}.{n}" for space, names in EXTENSIONS.items() for n in names])
def test_signatures_of_extensions(path):
    space, name = path.split(".")
    mine, theirs = getattr(getattr(ours, space), name), getattr(getattr(strict, space), name)
    assert [p[0] for p in parameters(mine)] == [p[0] for p in parameters(theirs)]


# ---------------------------------------------------------------- values

FLOATS, COMPLEX = ["float32", "float64"], ["complex64", "complex128"]
INTEGERS, BOOL = ["int8", "int16", "int32", "int64", "uint8"], ["bool"]
REAL, ALL = INTEGERS + FLOATS, BOOL + INTEGERS + FLOATS + COMPLEX
GENERATOR = np.random.default_rng(7)


def data(dtype, *shape, low=-4.0, high=4.0):
    if dtype == "bool":
        return GENERATOR.random(shape) < 0.5
    if "int" in dtype:
        return GENERATOR.integers(0 if dtype[0] == "u" else builtins.max(int(low), -4), 5, shape).astype(dtype)
    values = GENERATOR.uniform(low, high, shape)
    if "complex" in dtype:
        values = values + 1j * GENERATOR.uniform(low, high, shape)
    return values.astype(dtype)


def both(call, *arrays):
    """The results of a call in the two namespaces, as NumPy arrays."""
    found = call(ours, *(rl.from_numpy(np.array(a)) for a in arrays))
    wanted = call(strict, *(strict.asarray(np.array(a)) for a in arrays))
    return found, wanted


def flat(value):
    if isinstance(value, (tuple, list)):
        return [v for part in value for v in flat(part)]
    return [value]


def check(call, *arrays, tolerance=1e-5):
    for mine, theirs in zip(*(flat(v) for v in both(call, *arrays)), strict=True):
        if isinstance(theirs, strict._array_object.Array):
            reference = np.asarray(theirs._array)
            kind = str(reference.dtype)
            assert isinstance(mine, rl.Tensor)
            if kind != "uint64":  # sums of uint8 are int64 here
                assert str(mine.dtype).rpartition(".")[2] == kind
            assert tuple(mine.shape) == reference.shape
            np.testing.assert_allclose(mine.numpy(), reference, rtol=tolerance, atol=tolerance)
        else:
            assert mine == theirs


UNARY = {
    "abs": REAL + COMPLEX,
    "acos": (FLOATS + COMPLEX, -1, 1),
    "acosh": (FLOATS + COMPLEX, 1, 4),
    "asin": (FLOATS + COMPLEX, -1, 1),
    "asinh": FLOATS + COMPLEX,
    "atan": FLOATS + COMPLEX,
    "atanh": (FLOATS + COMPLEX, -0.9, 0.9),
    "bitwise_invert": BOOL + INTEGERS,
    "ceil": REAL,
    "conj": REAL + COMPLEX,
    "cos": FLOATS + COMPLEX,
    "cosh": FLOATS + COMPLEX,
    "exp": FLOATS + COMPLEX,
    "expm1": FLOATS + COMPLEX,
    "floor": REAL,
    "imag": COMPLEX,
    "isfinite": REAL + COMPLEX,
    "isinf": REAL + COMPLEX,
    "isnan": REAL + COMPLEX,
    "log": (FLOATS + COMPLEX, 0.1, 4),
    "log10": (FLOATS + COMPLEX, 0.1, 4),
    "log1p": (FLOATS + COMPLEX, -0.9, 4),
    "log2": (FLOATS + COMPLEX, 0.1, 4),
    "logical_not": BOOL,
    "negative": REAL + COMPLEX,
    "positive": REAL + COMPLEX,
    "real": REAL + COMPLEX,
    "reciprocal": FLOATS + COMPLEX,
    "round": REAL + COMPLEX,
    "sign": REAL + COMPLEX,
    "signbit": FLOATS,
    "sin": FLOATS + COMPLEX,
    "sinh": FLOATS + COMPLEX,
    "sqrt": (FLOATS + COMPLEX, 0, 4),
    "square": REAL + COMPLEX,
    "tan": FLOATS + COMPLEX,
    "tanh": FLOATS + COMPLEX,
    "trunc": REAL,
}


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_array(name):
    dtypes, low, high = UNARY[name] if isinstance(UNARY[name], tuple) else (UNARY[name], -4, 4)
    for dtype in dtypes:
        for shape in ((3, 4), (), (0, 2)):
            check(lambda xp, x: getattr(xp, name)(x), data(dtype, *shape, low=low, high=high), tolerance=1e-4)


BINARY = {
    "add": REAL + COMPLEX,
    "atan2": FLOATS,
    "bitwise_and": BOOL + INTEGERS,
    "bitwise_or": BOOL + INTEGERS,
    "bitwise_xor": BOOL + INTEGERS,
    "copysign": FLOATS,
    "divide": FLOATS + COMPLEX,
    "equal": ALL,
    "floor_divide": FLOATS,
    "greater": REAL,
    "greater_equal": REAL,
    "hypot": FLOATS,
    "less": REAL,
    "less_equal": REAL,
    "logaddexp": FLOATS,
    "logical_and": BOOL,
    "logical_or": BOOL,
    "logical_xor": BOOL,
    "maximum": REAL,
    "minimum": REAL,
    "multiply": REAL + COMPLEX,
    "nextafter": FLOATS,
    "not_equal": ALL,
    "pow": FLOATS,
    "remainder": FLOATS,
    "subtract": REAL + COMPLEX,
}


@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_arrays(name):
    for dtype in BINARY[name]:
        low = 0.5 if name == "pow" else -4
        a, b = data(dtype, 3, 1, low=low), data(dtype, 4, low=low)
        check(lambda xp, x, y: getattr(xp, name)(x, y), a, b, tolerance=1e-4)
        number = True if dtype == "bool" else 2 if "int" in dtype else 1.5
        check(lambda xp, x, n=number: getattr(xp, name)(x, n), a, tolerance=1e-4)
        check(lambda xp, x, n=number: getattr(xp, name)(n, x), a, tolerance=1e-4)
    with pytest.raises(TypeError):
        getattr(ours, name)(1, 2)


def test_shifts_and_mixed_dtypes():
    for dtype in INTEGERS:
        a, b = data(dtype, 5), np.array([0, 1, 2, 0, 1], dtype=dtype)
        check(lambda xp, x, y: xp.bitwise_left_shift(x, y), a, b)
        check(lambda xp, x, y: xp.bitwise_right_shift(x, y), a, b)
    for first, second in (("int8", "int32"), ("uint8", "int8"), ("float32", "float64"), ("float32", "complex128")):
        check(lambda xp, x, y: xp.add(x, y), data(first, 3), data(second, 3))


def test_where_and_clip():
    for dtype in ALL:
        check(lambda xp, c, x, y: xp.where(c, x, y), data("bool", 3, 4), data(dtype, 4), data(dtype, 3, 1))
    for dtype in [*FLOATS, "int32"]:
        check(lambda xp, x: xp.clip(x, -1, 2), data(dtype, 3, 4))
        check(lambda xp, x: xp.clip(x, max=1), data(dtype, 3, 4))
        check(lambda xp, x, low, high: xp.clip(x, low, high), data(dtype, 3, 4), data(dtype, 4), data(dtype, 3, 1) + 9)


def test_creation():
    for call in (
        lambda xp: xp.arange(5),
        lambda xp: xp.arange(1, 7, 2),
        lambda xp: xp.arange(5, 1, -1),
        lambda xp: xp.arange(5, 1),
        lambda xp: xp.arange(0.0, 1.0, 0.25),
        lambda xp: xp.arange(3, dtype=xp.float32),
        lambda xp: xp.asarray([[1, 2], [3, 4]]),
        lambda xp: xp.asarray(True),
        lambda xp: xp.asarray([1, 2], dtype=xp.complex64),
        lambda xp: xp.eye(3),
        lambda xp: xp.eye(3, 4, k=1),
        lambda xp: xp.eye(4, 2, k=-2, dtype=xp.int8),
        lambda xp: xp.eye(2, 2, k=5),
        lambda xp: xp.full((2, 3), 7),
        lambda xp: xp.full(3, 1.5, dtype=xp.float32),
        lambda xp: xp.full((), True),
        lambda xp: xp.linspace(0.0, 1.0, 5, dtype=xp.float64),
        lambda xp: xp.linspace(0.0, 1.0, 5, endpoint=False, dtype=xp.float64),
        lambda xp: xp.ones((2, 2), dtype=xp.float32),
        lambda xp: xp.zeros((0, 3), dtype=xp.int16),
        lambda xp: xp.meshgrid(xp.arange(2), xp.arange(3)),
        lambda xp: xp.meshgrid(xp.arange(2), xp.arange(3), indexing="ij"),
        lambda xp: xp.isdtype(xp.float32, "real floating"),
        lambda xp: xp.isdtype(xp.float32, ("integral", xp.float32)),
        lambda xp: xp.isdtype(xp.bool, "numeric"),
        lambda xp: xp.can_cast(xp.int8, xp.int16),
        lambda xp: xp.can_cast(xp.int16, xp.int8),
        lambda xp: float(xp.finfo(xp.float32).eps),
        lambda xp: int(xp.iinfo(xp.int16).max),
        lambda xp: (xp.pi, xp.e, xp.inf, xp.newaxis),
    ):
        before = rl.get_default_dtype()
        rl.set_default_dtype(rl.float64)  # the reference's default
        try:
            check(call)
        finally:
            rl.set_default_dtype(before)
    for dtype in [*FLOATS, "int32", "bool"]:
        x = data(dtype, 3, 4)
        check(lambda xp, x: xp.full_like(x, 1), x)
        check(lambda xp, x: [xp.ones_like(x), xp.zeros_like(x)], x)
        check(lambda xp, x: [xp.tril(x), xp.tril(x, k=1), xp.triu(x, k=-1)], x)
        assert ours.empty_like(rl.from_numpy(x)).shape == (3, 4)
    assert ours.empty((2, 3)).shape == (2, 3)
    assert ours.from_dlpack(np.arange(3)).tolist() == [0, 1, 2]


def test_dtypes():
    x = data("float32", 2, 3)
    check(lambda xp, x: xp.astype(x, xp.int32), x)
    check(lambda xp, x, y: xp.broadcast_arrays(x, y), data("float32", 3, 1), data("float32", 4))
    check(lambda xp, x: xp.broadcast_to(x, (4, 2, 3)), x)
    t = rl.from_numpy(x)
    assert ours.astype(t, rl.float32, copy=False) is t and ours.astype(t, rl.float32) is not t
    assert ours.result_type(t, 1) == rl.float32 and ours.result_type(rl.int8, rl.uint8) == rl.int16
    assert ours.result_type(rl.int8, 1.0) == rl.get_default_dtype() and ours.result_type(t, 1j) == rl.complex64
    with pytest.raises(ValueError, match="kind"):
        ours.isdtype(rl.float32, "float")


def test_indexing():
    x = data("float64", 3, 4)
    check(lambda xp, x, i: xp.take(x, i, axis=1), x, np.array([2, 0, 0]))
    check(lambda xp, x, i: xp.take(x, i), x[0], np.array([3, 1]))
    check(lambda xp, x, i: xp.take_along_axis(x, i), x, np.array([[1, 0], [3, 2], [0, 0]]))
    check(lambda xp, x, i: xp.take_along_axis(x, i, axis=0), x, np.array([[1, 0, 2, 2]]))
    with pytest.raises(ValueError, match="axis"):
        ours.take(rl.ones(2, 2), rl.tensor([0]))


def test_shapes():
    x = data("int32", 2, 3, 4)
    for call in (
        lambda xp, x: xp.concat([x, x], axis=1),
        lambda xp, x: xp.concat([x, x], axis=None),
        lambda xp, x: xp.expand_dims(x, axis=1),
        lambda xp, x: xp.expand_dims(x, axis=-1),
        lambda xp, x: xp.flip(x),
        lambda xp, x: xp.flip(x, axis=(0, -1)),
        lambda xp, x: xp.matrix_transpose(x),
        lambda xp, x: xp.moveaxis(x, 0, -1),
        lambda xp, x: xp.moveaxis(x, (0, 1), (-1, 0)),
        lambda xp, x: xp.permute_dims(x, (2, 0, 1)),
        lambda xp, x: xp.repeat(x, 2),
        lambda xp, x: xp.repeat(x, 2, axis=1),
        lambda xp, x: xp.repeat(x, xp.asarray([1, 0, 2]), axis=1),
        lambda xp, x: xp.reshape(x, (4, -1)),
        lambda xp, x: xp.reshape(x, (24,), copy=True),
        lambda xp, x: xp.roll(x, 3),
        lambda xp, x: xp.roll(x, (1, -1), axis=(0, 2)),
        lambda xp, x: xp.roll(x, 1, axis=1),
        lambda xp, x: xp.squeeze(x[:1, :, :], 0),
        lambda xp, x: xp.stack([x, x], axis=1),
        lambda xp, x: xp.tile(x, (2, 1, 1)),
        lambda xp, x: xp.tile(x, (2,)),
        lambda xp, x: xp.unstack(x, axis=1),
        lambda xp, x: xp.diff(x),
        lambda xp, x: xp.diff(x, axis=0, n=1, prepend=xp.zeros((1, 3, 4), dtype=xp.int32)),
    ):
        check(call, x)
    t = rl.from_numpy(x)
    assert ours.reshape(t, (24,), copy=False).data_ptr() == t.data_ptr()
    with pytest.raises(ValueError, match="copy"):
        ours.reshape(t.transpose(0, 1), (24,), copy=False)
    with pytest.raises(ValueError, match="size 1"):
        ours.squeeze(t, 0)


def test_linear_algebra():
    for dtype in ("float64", "complex128", "int32"):
        a, b = data(dtype, 2, 3, 4), data(dtype, 4, 5)
        check(lambda xp, x, y: xp.matmul(x, y), a, b)
        check(lambda xp, x, y: xp.tensordot(x, y, axes=1), a, b)
        check(lambda xp, x, y: xp.tensordot(x, y, axes=((2, 1), (0, 1))), a, data(dtype, 4, 3))
        check(lambda xp, x, y: xp.vecdot(x, y), a, data(dtype, 3, 4))
        check(lambda xp, x, y: xp.vecdot(x, y, axis=-2), a, data(dtype, 3, 1))


REDUCTIONS = ["max", "mean", "min", "prod", "std", "sum", "var", "all", "any", "count_nonzero"]


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name):
    dtypes = ALL if name in ("all", "any", "count_nonzero") else REAL if name not in ("mean", "std", "var") else FLOATS
    if name in ("sum", "prod"):
        dtypes = REAL + COMPLEX
    for dtype in dtypes:
        x = data(dtype, 2, 3, 4)
        for axis in (None, 0, -1, (0, 2), ()):
            check(lambda xp, x, a=axis: getattr(xp, name)(x, axis=a), x, tolerance=1e-4)
            check(lambda xp, x, a=axis: getattr(xp, name)(x, axis=a, keepdims=True), x, tolerance=1e-4)
    if name in ("sum", "prod", "all", "any"):
        check(lambda xp, x: getattr(xp, name)(x, axis=0), np.zeros((0, 3)))
    if name in ("std", "var"):
        check(lambda xp, x: getattr(xp, name)(x, axis=1, correction=1.0), data("float64", 3, 4))
    if name in ("sum", "prod"):
        check(lambda xp, x: getattr(xp, name)(x, dtype=xp.float64), data("int8", 3, 4))


@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod"])
def test_cumulative(name):
    for dtype in REAL + COMPLEX:
        check(lambda xp, x: getattr(xp, name)(x), data(dtype, 5))
        for axis in (0, -1):
            x = data(dtype, 3, 4)
            check(lambda xp, x, a=axis: getattr(xp, name)(x, axis=a), x, tolerance=1e-4)
            check(lambda xp, x, a=axis: getattr(xp, name)(x, axis=a, include_initial=True), x, tolerance=1e-4)
    with pytest.raises(ValueError, match="axis"):
        getattr(ours, name)(rl.ones(2, 2))


def test_searching_and_sorting():
    for dtype in REAL:
        x = data(dtype, 3, 5)
        for call in (
            lambda xp, x: xp.argmax(x),
            lambda xp, x: xp.argmax(x, axis=1, keepdims=True),
            lambda xp, x: xp.argmin(x, axis=0),
            lambda xp, x: xp.argmin(x, keepdims=True),
            lambda xp, x: xp.nonzero(x),
            lambda xp, x: xp.sort(x),
            lambda xp, x: xp.sort(x, axis=0, descending=True),
            lambda xp, x: xp.argsort(x),
            lambda xp, x: xp.argsort(x, axis=0),
        ):
            check(call, x)
    sorted_values = np.array([1.0, 2.0, 2.0, 5.0])
    probes = np.array([[0.0, 2.0], [5.0, 6.0]])
    check(lambda xp, x, y: xp.searchsorted(x, y), sorted_values, probes)
    check(lambda xp, x, y: xp.searchsorted(x, y, side="right"), sorted_values, probes)
    order = np.array([3, 0, 2, 1])
    check(lambda xp, x, y, s: xp.searchsorted(x, y, sorter=s), np.array([2.0, 5.0, 2.0, 1.0]), probes, order)
    descending = ours.argsort(rl.tensor([1, 2, 1, 2]), descending=True)
    assert descending.tolist() == [1, 3, 0, 2]


def test_sets():
    for dtype in REAL + BOOL:
        x = data(dtype, 4, 5)
        check(lambda xp, x: xp.unique_values(x), x)
        check(lambda xp, x: xp.unique_all(x), x)
        check(lambda xp, x: xp.unique_counts(x), x)
        check(lambda xp, x: xp.unique_inverse(x), x)
    nan = float("nan")
    found = ours.unique_all(rl.tensor([nan, 1.0, nan, 1.0]))
    assert found.counts.tolist() == [2, 1, 1] and found.values[0].item() == 1.0
    assert ours.unique_counts(rl.tensor([1j, 1, 1j])).counts.tolist() == [2, 1]
    assert ours.unique_all(rl.zeros(0)).values.shape == (0,)


def test_the_array_object():
    x = rl.ones(2, 3)
    assert x.__array_namespace__(api_version="2023.12") is ours
    with pytest.raises(ValueError, match="api_version"):
        x.__array_namespace__(api_version="1999.12")
    assert x.__dlpack_device__() == (1, 0) and x.to_device("cpu") is x
    info = ours.__array_namespace_info__()
    assert info.capabilities()["boolean indexing"] is True and info.devices() == [rl.device("cpu")]
    assert info.default_dtypes()["integral"] == rl.int64 and info.default_device() == rl.device("cpu")
    assert set(info.dtypes(kind="integral")) == {"int8", "int16", "int32", "int64", "uint8"}
    assert "linalg" in dir(ours) and "sum" in dir(ours)


# ---------------------------------------------------------------- extensions


def positive(dtype, n):
    a = data(dtype, 2, n, n)
    return a @ np.conj(np.swapaxes(a, -1, -2)) + n * np.eye(n)


LINALG = {
    "cholesky": lambda xp, x, p: [xp.linalg.cholesky(p), xp.linalg.cholesky(p, upper=True)],
    "cross": lambda xp, x, p: xp.linalg.cross(x, xp.flip(x, axis=0)),
    "det": lambda xp, x, p: xp.linalg.det(x),
    "diagonal": lambda xp, x, p: xp.linalg.diagonal(x, offset=1),
    "eigh": lambda xp, x, p: xp.linalg.eigh(p)[0],
    "eigvalsh": lambda xp, x, p: xp.linalg.eigvalsh(p),
    "inv": lambda xp, x, p: xp.linalg.inv(p),
    "matrix_norm": lambda xp, x, p: [xp.linalg.matrix_norm(x, ord=o, keepdims=True) for o in ("fro", 1, "nuc", 2)],
    "matrix_power": lambda xp, x, p: [xp.linalg.matrix_power(x, 3), xp.linalg.matrix_power(p, -1)],
    "matrix_rank": lambda xp, x, p: [xp.linalg.matrix_rank(p), xp.linalg.matrix_rank(x * 0)],
    "outer": lambda xp, x, p: xp.linalg.outer(x[0, 0, :], x[1, 1, :]),
    "pinv": lambda xp, x, p: xp.linalg.pinv(x[:, :, :2]),
    "slogdet": lambda xp, x, p: xp.linalg.slogdet(x),
    "solve": lambda xp, x, p: [xp.linalg.solve(p, x), xp.linalg.solve(p, x[0, :, 0])],
    "svdvals": lambda xp, x, p: xp.linalg.svdvals(x),
    "trace": lambda xp, x, p: xp.linalg.trace(x),
    "vector_norm": lambda xp, x, p: [xp.linalg.vector_norm(x), xp.linalg.vector_norm(x, axis=1, ord=1, keepdims=True)],
    "qr": lambda xp, x, p: xp.matmul(*xp.linalg.qr(x)),
    "svd": lambda xp, x, p: [v.shape for v in xp.linalg.svd(x[:, :, :2], full_matrices=False)],
}


@pytest.mark.parametrize("name", LINALG)
def test_linalg(name):
    for dtype in ("float64", "complex128"):
        check(LINALG[name], data(dtype, 2, 3, 3), positive(dtype, 3), tolerance=1e-6)


FFT = {
    "fft": lambda xp, x, c: [xp.fft.fft(x_) for x_ in (c,)] + [xp.fft.fft(c, n=3, axis=0, norm="ortho")],
    "ifft": lambda xp, x, c: xp.fft.ifft(c, n=7),
    "rfft": lambda xp, x, c: xp.fft.rfft(x),
    "irfft": lambda xp, x, c: xp.fft.irfft(c, n=6),
    "hfft": lambda xp, x, c: xp.fft.hfft(c),
    "ihfft": lambda xp, x, c: xp.fft.ihfft(x),
    "fftn": lambda xp, x, c: [xp.fft.fftn(c), xp.fft.fftn(c, s=(3, 4), axes=(0, 1))],
    "ifftn": lambda xp, x, c: xp.fft.ifftn(c, axes=(1,)),
    "rfftn": lambda xp, x, c: xp.fft.rfftn(x),
    "irfftn": lambda xp, x, c: xp.fft.irfftn(c),
    "fftfreq": lambda xp, x, c: xp.fft.fftfreq(5, d=0.5, dtype=xp.float64),
    "rfftfreq": lambda xp, x, c: xp.fft.rfftfreq(6, dtype=xp.float64),
    "fftshift": lambda xp, x, c: [xp.fft.fftshift(x), xp.fft.fftshift(x, axes=1)],
    "ifftshift": lambda xp, x, c: xp.fft.ifftshift(x, axes=(0,)),
}


@pytest.mark.parametrize("name", FFT)
def test_fft(name):
    check(FFT[name], data("float64", 4, 5), data("complex128", 4, 5), tolerance=1e-9)
