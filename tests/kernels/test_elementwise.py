"""Elementwise kernels against PyTorch: every operation and dtype, layouts, conversions, accuracy, instruction sets."""

from __future__ import annotations

import ctypes
import itertools
import math
import os
import random
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

pytest.importorskip("torch")
import numpy as np
from kernel_ctypes import DTYPES, STATUS, Descriptor, KernelError, call, describe, lib, torch, with_threads

F = torch.nn.functional
BOOL, INT = DTYPES[:1], DTYPES[1:6]
FLOAT, COMPLEX = DTYPES[6:10], DTYPES[10:]
WIDE = [torch.float32, torch.float64]
REAL, ALL = BOOL + INT + FLOAT, DTYPES
NAN, INF = math.nan, math.inf
SPECIAL = [0.0, -0.0, INF, -INF, NAN, 1, -1, 0.5, -0.5, 2, -2, 1.5, 2.5, -2.5, 3, 1e-6, -1e-6]
SPECIAL_COMPLEX = [
    0,
    1,
    -1,
    1j,
    -1j,
    2,
    -2,
    complex(-2, -0.0),
    complex(2, -0.0),
    2j,
    -2j,
    0.5,
    -0.5,
    complex(0.5, -0.0),
]

Pointer = ctypes.POINTER(Descriptor)
lib.rl_elementwise_name.restype = ctypes.c_char_p


def elementwise(name, compute, inputs, outputs):
    op = lib.rl_elementwise_find(name.encode())
    assert op >= 0, name
    sources = [x if isinstance(x, Descriptor) else describe(x) for x in inputs]
    targets = [x if isinstance(x, Descriptor) else describe(x) for x in outputs]
    status = lib.rl_elementwise(
        op,
        DTYPES.index(compute),
        len(sources),
        (Pointer * len(sources))(*map(ctypes.pointer, sources)),
        len(targets),
        (Pointer * len(targets))(*map(ctypes.pointer, targets)),
    )
    if status:
        raise KernelError(STATUS[status], lib.rl_last_error().decode())


def run(name, compute, *inputs):
    op = lib.rl_elementwise_find(name.encode())
    dtype = DTYPES[lib.rl_elementwise_result_dtype(op, DTYPES.index(compute), 0)]
    out = torch.empty(torch.broadcast_shapes(*[x.shape for x in inputs]), dtype=dtype)
    elementwise(name, compute, inputs, [out])
    return out


def values(dtype, n=700, low=-9.0, high=9.0, seed=0):
    """Random numbers that begin with the special ones of the dtype."""
    g = torch.Generator().manual_seed(seed)
    if dtype == torch.bool:
        return torch.rand(n, generator=g) < 0.5
    if not dtype.is_floating_point and not dtype.is_complex:
        return torch.randint(0 if dtype == torch.uint8 else int(low), int(high), (n,), generator=g).to(dtype)
    x = torch.rand(n, dtype=torch.float64, generator=g) * (high - low) + low
    if dtype.is_complex:
        x = torch.complex(x, torch.rand(n, dtype=torch.float64, generator=g) * (high - low) + low)
        x[: len(SPECIAL_COMPLEX)] = torch.tensor(SPECIAL_COMPLEX)[:n]
    else:
        x[: len(SPECIAL)] = torch.tensor(SPECIAL, dtype=torch.float64)[:n]
    return x.to(dtype)


def pairs(dtype, **options):
    """Two arrays in which every pair of special numbers meets."""
    a, b = values(dtype, **options), values(dtype, seed=1, **options)
    if dtype.is_floating_point:
        n = len(SPECIAL)
        a[: n * n], b[: n * n] = a[:n].repeat_interleave(n), b[:n].repeat(n)
    return a, b


def close(got, expected, ulps):
    """Equal, or within so many units in the last place; complex numbers as a whole."""
    if got.dtype != expected.dtype:
        assert expected.dtype in (torch.float16, torch.bfloat16), (got.dtype, expected.dtype)
        got = got.to(expected.dtype)
    if not expected.is_floating_point() and not expected.is_complex():
        assert torch.equal(got, expected)
        return
    eps = torch.finfo(expected.dtype).eps
    tiny = max(torch.finfo(expected.dtype).tiny, 6e-8 if expected.dtype == torch.float16 else 0)
    if expected.is_complex():
        got, expected = torch.view_as_real(got).double(), torch.view_as_real(expected).double()
        size = expected.abs().amax(-1, keepdim=True).expand_as(expected)
    else:
        got, expected = got.double(), expected.double()
        size = expected.abs()
    good = (got == expected) | ((got - expected).abs() <= ulps * eps * size + tiny) | (got.isnan() & expected.isnan())
    worst = (~good).nonzero()[:3].tolist()
    assert good.all(), [(i, got[tuple(i)].item(), expected[tuple(i)].item()) for i in worst]


def without_zeros(x):
    return torch.where(x == 0, torch.ones_like(x), x) if not x.dtype.is_floating_point else x


def nonnegative(x):
    return x.abs()


def nan_stays(function):
    """Where PyTorch gives 0 for NaN."""
    return lambda x: torch.where(x != x, x, function(x)) if x.is_floating_point() else function(x)


# (name, PyTorch's function, dtypes, tolerance in ulps, options: range and preparation of operands, compute dtype)
UNARY = [
    ("neg", torch.neg, INT + FLOAT + COMPLEX, 0, {}),
    ("abs", torch.abs, INT + FLOAT + COMPLEX, 2, {}),
    ("sign", nan_stays(torch.sign), REAL, 0, {}),
    ("sgn", nan_stays(torch.sgn), ALL, 4, {}),
    ("square", torch.square, INT + FLOAT + COMPLEX, 8, {}),
    ("floor", torch.floor, INT + FLOAT, 0, {}),
    ("ceil", torch.ceil, INT + FLOAT, 0, {}),
    ("trunc", torch.trunc, INT + FLOAT, 0, {}),
    ("round", torch.round, INT + FLOAT, 0, {}),
    ("frac", torch.frac, FLOAT, 0, {}),
    ("_conj_physical", torch.conj_physical, ALL, 0, {}),
    ("angle", torch.angle, ALL, 4, {"float": True}),
    ("logical_not", torch.logical_not, ALL, 0, {}),
    ("bitwise_not", torch.bitwise_not, BOOL + INT, 0, {}),
    ("isnan", torch.isnan, ALL, 0, {}),
    ("isinf", torch.isinf, ALL, 0, {}),
    ("isfinite", torch.isfinite, ALL, 0, {}),
    ("isposinf", torch.isposinf, REAL, 0, {}),
    ("isneginf", torch.isneginf, REAL, 0, {}),
    ("signbit", torch.signbit, REAL, 0, {}),
    ("relu", torch.relu, INT + FLOAT, 0, {}),
    ("selu", F.selu, FLOAT, 8, {}),
    ("silu", F.silu, FLOAT + COMPLEX, 8, {}),
    ("mish", F.mish, FLOAT, 16, {}),
    ("log_sigmoid", F.logsigmoid, FLOAT, 64, {}),
    ("hardswish", F.hardswish, FLOAT, 8, {}),
    ("hardsigmoid", F.hardsigmoid, FLOAT, 8, {}),
    ("hardtanh__default", F.hardtanh, INT[1:] + FLOAT, 0, {}),
    ("leaky_relu__default", F.leaky_relu, FLOAT, 4, {}),
    ("elu__default", F.elu, FLOAT, 8, {}),
    ("celu__default", F.celu, FLOAT, 8, {}),
    ("softplus__default", F.softplus, FLOAT, 64, {}),
    ("hardshrink__default", F.hardshrink, FLOAT, 0, {}),
    ("_softshrink__default", F.softshrink, FLOAT, 4, {}),
    ("sinc", torch.sinc, ALL, 1000, {"float": True}),
    ("deg2rad", torch.deg2rad, REAL, 4, {"float": True}),
    ("rad2deg", torch.rad2deg, REAL, 4, {"float": True}),
    *(
        (name, getattr(torch, name), ALL, 8, {"float": True})
        for name in "exp exp2 expm1 sin cos tan sinh cosh tanh asinh atan sigmoid reciprocal sqrt rsqrt".split()
    ),
    *(
        (name, getattr(torch, name), ALL, 8, {"float": True, "low": -3.0})
        for name in "log log2 log10 log1p asin acos acosh atanh".split()
    ),
    *(
        (name, getattr(torch, name), REAL, 64, {"float": True, "low": -4.0, "high": 4.0})
        for name in "erf erfc erfinv lgamma".split()
    ),
    ("digamma", torch.digamma, REAL, 3000, {"float": True}),
]
BINARY = [
    ("add__default", torch.add, ALL, 0, {}),
    ("sub__default", torch.sub, INT + FLOAT + COMPLEX, 0, {}),
    ("rsub__default", torch.rsub, INT + FLOAT + COMPLEX, 0, {}),
    ("mul", torch.mul, ALL, 4, {}),
    ("div", torch.div, ALL, 8, {"float": True}),
    ("floor_divide", torch.floor_divide, INT + FLOAT, 2, {"second": without_zeros}),
    ("_div_floor", lambda a, b: torch.div(a, b, rounding_mode="floor"), INT + FLOAT, 2, {"second": without_zeros}),
    ("_div_trunc", lambda a, b: torch.div(a, b, rounding_mode="trunc"), INT + WIDE, 0, {"second": without_zeros}),
    ("remainder", torch.remainder, INT + FLOAT, 0, {"second": without_zeros}),
    ("fmod", torch.fmod, INT + FLOAT, 0, {"second": without_zeros}),
    ("pow", torch.pow, INT, 0, {"second": nonnegative}),
    ("pow", torch.pow, FLOAT, 8, {}),
    ("maximum", torch.maximum, REAL, 0, {}),
    ("minimum", torch.minimum, REAL, 0, {}),
    ("fmax", torch.fmax, REAL, 0, {}),
    ("fmin", torch.fmin, REAL, 0, {}),
    ("clamp_min", lambda a, b: torch.clamp(a, min=b), INT + FLOAT, 0, {}),
    ("clamp_max", lambda a, b: torch.clamp(a, max=b), INT + FLOAT, 0, {}),
    ("logaddexp", torch.logaddexp, WIDE, 8, {}),
    ("xlogy", torch.xlogy, REAL, 8, {"float": True}),
    ("special_xlog1py", torch.special.xlog1py, REAL, 8, {"float": True}),
    ("atan2", torch.atan2, REAL, 4, {"float": True}),
    ("hypot", torch.hypot, FLOAT, 4, {}),
    ("copysign", torch.copysign, REAL, 0, {"float": True}),
    ("nextafter", torch.nextafter, WIDE, 0, {}),
    ("heaviside", torch.heaviside, REAL, 0, {}),
    ("gcd", torch.gcd, INT, 0, {}),
    ("lcm", torch.lcm, INT, 0, {}),
    *((name, getattr(torch, name), ALL, 0, {}) for name in ("eq", "ne")),
    *((name, getattr(torch, name), REAL, 0, {}) for name in ("lt", "le", "gt", "ge")),
    *((f"logical_{name}", getattr(torch, f"logical_{name}"), ALL, 0, {}) for name in ("and", "or", "xor")),
    *((f"bitwise_{name}", getattr(torch, f"bitwise_{name}"), BOOL + INT, 0, {}) for name in ("and", "or", "xor")),
    *(
        (f"bitwise_{name}_shift", getattr(torch, f"bitwise_{name}_shift"), INT, 0, {"low": -100, "high": 70})
        for name in ("left", "right")
    ),
]


def compute_dtype(dtype, options):
    return torch.float32 if options.get("float") and not dtype.is_floating_point and not dtype.is_complex else dtype


@pytest.mark.parametrize(
    ("name", "reference", "dtypes", "ulps", "options"), UNARY, ids=lambda x: x if isinstance(x, str) else ""
)
def test_unary(name, reference, dtypes, ulps, options):
    span = {k: v for k, v in options.items() if k in ("low", "high")}
    for dtype in dtypes:
        x = values(dtype, **span)
        close(run(name, compute_dtype(dtype, options), x), reference(x), ulps)


@pytest.mark.parametrize(
    ("name", "reference", "dtypes", "ulps", "options"), BINARY, ids=lambda x: x if isinstance(x, str) else ""
)
def test_binary(name, reference, dtypes, ulps, options):
    span = {k: v for k, v in options.items() if k in ("low", "high")}
    for dtype in dtypes:
        a, b = pairs(dtype, **span)
        b = options.get("second", lambda x: x)(b)
        compute = compute_dtype(dtype, options)
        close(run(name, compute, a, b), reference(a, b), ulps)
        for scalar in (b[5], b[16]):
            close(run(name, compute, a, scalar), reference(a, scalar.expand_as(a)), ulps)
        close(run(name, compute, a[9], b), reference(a[9].expand_as(b), b), ulps)


@pytest.mark.parametrize("dtype", ALL)
def test_where(dtype):
    a, b = pairs(dtype)
    condition = torch.arange(len(a)) % 3 == 0
    close(run("where", dtype, condition, a, b), torch.where(condition, a, b), 0)
    close(run("where", dtype, condition, a[1], b), torch.where(condition, a[1], b), 0)
    close(run("where", dtype, condition, a, b[1]), torch.where(condition, a, b[1]), 0)
    close(run("where", dtype, condition, a[1], b[0]), torch.where(condition, a[1], b[0]), 0)


@pytest.mark.parametrize("dtype", INT + FLOAT + COMPLEX)
def test_scaled_operands(dtype):
    a, b = (x[17:] for x in pairs(dtype))
    c = values(dtype, seed=2)[17:]
    two = torch.tensor(2, dtype=dtype)
    close(run("add", dtype, a, b, two), a + b * 2, 0)
    close(run("sub", dtype, a, b, two), a - b * 2, 0)
    if dtype in WIDE or dtype in INT:
        close(run("addcmul", dtype, a, b, c, two), a + 2 * b * c, 0)
    if not dtype.is_complex:
        close(run("_clamp", dtype, a, b, c), torch.clamp(a, b, c), 0)


@pytest.mark.parametrize("exponent", [2, 2.0, 0.5, -0.5, -1.0, 3, 1, 0])
@pytest.mark.parametrize("dtype", [torch.int32, *FLOAT, *COMPLEX])
def test_powers_with_operations_of_their_own(exponent, dtype):
    if dtype == torch.int32 and (isinstance(exponent, float) or exponent < 0):
        return
    x = values(dtype)
    x = x[x != 0] if dtype.is_complex else x[x.isfinite()]
    close(run("pow", dtype, x, torch.tensor(exponent)), x**exponent, 8 if not dtype.is_complex else 64)


def test_the_operations_compared_here_exist():
    names = set()
    for op in itertools.count():
        name = lib.rl_elementwise_name(op)
        if name is None:
            break
        names.add(name.decode())
    compared = {row[0] for row in UNARY + BINARY} | {"where", "add", "sub", "addcmul", "_clamp"}
    assert compared <= names  # the others are compared through the package, tests/ops/test_table.py


# ---- layouts, conversions, broadcasting

SHAPES = [
    (),
    (1,),
    (7,),
    (3, 4),
    (64, 65),
    (130, 257),
    (2, 3, 4, 5),
    (33, 3, 70),
    (5, 1, 300),
    (0, 3),
    (300, 300),
    (3, 20000),
    (999, 3, 7),
]


def arranged(x, how):
    """The tensor's values in another layout."""
    n = x.dim()
    if n == 0 or x.numel() == 0:
        return x
    if how == "permuted":
        order = list(range(n))
        random.shuffle(order)
        back = [order.index(i) for i in range(n)]
        return x.permute(order).contiguous().permute(back)
    if how == "spaced":
        out = torch.zeros([2 * s + 1 for s in x.shape], dtype=x.dtype)[tuple(slice(1, 2 * s + 1, 2) for s in x.shape)]
    elif how == "padded":
        out = torch.zeros([s + 3 for s in x.shape], dtype=x.dtype)[tuple(slice(1, s + 1) for s in x.shape)]
    else:
        return x
    out.copy_(x)
    return out


def flipped_descriptor(x):
    """The tensor's values read backwards, through negative strides."""
    dims = tuple(d for d in range(x.dim()) if x.shape[d] > 1)
    return describe(x.flip(dims).contiguous(), dims)


@pytest.mark.parametrize("seed", range(150))
def test_layouts_and_dtypes(seed):
    random.seed(seed)
    shape = SHAPES[seed % len(SHAPES)]
    dtypes = random.choices(ALL, k=2)
    compute = torch.promote_types(*dtypes)
    name, reference = random.choice(
        [("add__default", torch.add), ("mul", torch.mul), ("maximum", torch.maximum), ("eq", torch.eq)]
    )
    if compute.is_complex and name == "maximum":
        name, reference = "eq", torch.eq
    inputs = []
    for k, dtype in enumerate(dtypes):
        own = [1 if random.random() < 0.15 else s for s in shape][
            random.randrange(len(shape) + 1) if random.random() < 0.1 else 0 :
        ]
        x = values(dtype, max(1, math.prod(own)), seed=2 * seed + k)[: math.prod(own)].reshape(own)
        inputs.append(arranged(torch.nan_to_num(x), random.choice(["", "permuted", "spaced", "padded"])))
    exact = compute not in (torch.float16, torch.bfloat16)
    expected = reference(*(x.to(compute) for x in inputs)).expand(shape)
    targets = [expected.dtype, expected.dtype]
    if exact and not (expected.dtype.is_floating_point or expected.dtype.is_complex):
        targets.append(random.choice(ALL))
    for dtype in targets:
        out = arranged(torch.zeros(shape, dtype=dtype), random.choice(["", "permuted", "spaced", "padded"]))
        elementwise(name, compute, inputs, [out])
        close(out, expected.to(dtype), 4)
        backwards = [flipped_descriptor(x) for x in inputs]
        again = torch.zeros(shape, dtype=dtype)
        elementwise(
            name, compute, backwards, [describe(again, tuple(d for d in range(again.dim()) if again.shape[d] > 1))]
        )
        turned = again.flip(tuple(d for d in range(again.dim()) if again.shape[d] > 1)) if again.dim() else again
        assert torch.equal(torch.nan_to_num(turned), torch.nan_to_num(out))


@pytest.mark.filterwarnings("ignore:Casting complex values to real")
@pytest.mark.parametrize("source", ALL)
@pytest.mark.parametrize("target", ALL)
def test_casts(source, target):
    x = values(source, 5000)
    integers = not target.is_floating_point and not target.is_complex and target != torch.bool
    if integers and (source.is_floating_point or source.is_complex):
        x = torch.nan_to_num(x, nan=0, posinf=1, neginf=0)  # PyTorch leaves numbers that do not fit to the processor
        if target == torch.uint8:
            x = torch.view_as_complex(torch.view_as_real(x).abs()) if source.is_complex else x.abs()
    expected = x.to(target)
    for how in ("", "spaced", "permuted"):
        for shape in ((5000,), (50, 100), (2500, 2), (2, 2500), (1, 5000)):
            given = arranged(x.reshape(shape), how)
            for into in ("", "spaced", "permuted"):
                out = arranged(torch.zeros(shape, dtype=target), into)
                call("copy", given, out)
                assert torch.equal(torch.nan_to_num(out), torch.nan_to_num(expected.reshape(shape))), (how, into, shape)


def test_casts_out_of_range():
    x = torch.tensor(
        [NAN, INF, -INF, 3e9, -3e9, 1e30, -1e30, 300.7, -1.5, 2147483648.0, -2147483648.0], dtype=torch.float64
    )
    out = torch.zeros(len(x), dtype=torch.int32)
    call("copy", x, out)
    top, low = 2**31 - 1, -(2**31)
    assert out.tolist() == [0, top, low, top, low, top, low, 300, -1, top, low]
    out = torch.zeros(len(x), dtype=torch.int64)
    call("copy", x, out)
    assert out.tolist()[:7] == [0, 2**63 - 1, -(2**63), 3000000000, -3000000000, 2**63 - 1, -(2**63)]
    out = torch.zeros(3, dtype=torch.uint8)
    call("copy", torch.tensor([-1.0, 256.0, 511.5]), out)
    assert out.tolist() == [0, 255, 255]


@pytest.mark.parametrize("dtype", ALL)
def test_fill(dtype):
    for shape in ((), (3,), (0, 2), (200, 300)):
        for how in ("", "spaced", "permuted"):
            out = arranged(torch.zeros(shape, dtype=dtype), how)
            call("fill", out, torch.tensor(1, dtype=torch.int64))
            assert torch.equal(out, torch.ones(shape, dtype=dtype))


def test_copies_of_many_shapes_without_touching_the_rest():
    for shape, order in itertools.product(
        [(5, 7), (64, 64), (65, 130), (3, 200, 41), (2, 3, 4, 5), (17, 3, 1000)], ("", "permuted")
    ):
        x = torch.arange(math.prod(shape), dtype=torch.float32).reshape(shape)
        wide = torch.full([s + 4 for s in shape], -1.0)
        inside = wide[tuple(slice(2, s + 2) for s in shape)]
        call("copy", arranged(x, order) if order else x.transpose(0, -1).contiguous().transpose(0, -1), inside)
        assert torch.equal(inside, x)
        assert (wide == -1).sum() == wide.numel() - x.numel() + (x == -1).sum()


def test_in_place():
    for shape in ((5,), (300, 200)):
        x, y = torch.randn(shape), torch.randn(shape)
        expected = x - y
        elementwise("sub__default", torch.float32, [x, y], [x])
        assert torch.equal(x, expected)
        z = torch.arange(math.prod(shape), dtype=torch.int32).reshape(shape)
        expected = z.double().exp().to(torch.float32).clamp(max=3).to(torch.int32)
        elementwise("exp", torch.float32, [z.clone()], [z])
        assert torch.equal(z.clamp(max=3), expected)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_change_nothing(threads):
    x, y = torch.randn(500, 700), torch.randn(700, 500)
    expected = with_threads(1, lambda: run("atan2", torch.float32, x, y.t()))
    assert torch.equal(with_threads(threads, lambda: run("atan2", torch.float32, x, y.t())), expected)


# ---- errors


@pytest.mark.parametrize("name", ["floor_divide", "remainder", "fmod", "_div_trunc", "_div_floor"])
@pytest.mark.parametrize("dtype", INT)
def test_division_by_zero(name, dtype):
    for n in (3, 100_000):
        a, b = torch.ones(n, dtype=dtype), torch.ones(n, dtype=dtype)
        b[n // 2] = 0
        with pytest.raises(KernelError, match="ZeroDivisionError") as info:
            run(name, dtype, a, b)
        assert info.value.kind is RuntimeError


def test_the_most_negative_number():
    for dtype in (torch.int8, torch.int16, torch.int32, torch.int64):
        low = torch.tensor([torch.iinfo(dtype).min], dtype=dtype)
        minus = torch.tensor([-1], dtype=dtype)
        for name in ("floor_divide", "_div_trunc", "mul"):
            assert run(name, dtype, low, minus).equal(low)
        assert run("remainder", dtype, low, minus).item() == 0
        assert run("fmod", dtype, low, minus).item() == 0
        assert run("neg", dtype, low).equal(low)
        assert run("abs", dtype, low).equal(low)


def test_bad_calls():
    a = torch.ones(2, 3)
    with pytest.raises(
        KernelError, match=r"add__default: input 1 does not fit the output; expected shape \[2, 3\], got \[4\]"
    ):
        elementwise("add__default", torch.float32, [a, torch.ones(4)], [torch.ones(2, 3)])
    with pytest.raises(KernelError, match=r"exp: not implemented for int64") as info:
        elementwise("exp", torch.int64, [a], [a.clone()])
    assert info.value.kind is TypeError
    with pytest.raises(
        KernelError, match=r"exp: wrong number of operands; expected 1 inputs and 1 outputs, got 2 and 1"
    ):
        elementwise("exp", torch.float32, [a, a], [a.clone()])
    with pytest.raises(
        KernelError, match=r"fill_: the value is not a single element; expected shape \[\], got \[2, 3\]"
    ):
        call("fill", a.clone(), a)
    assert lib.rl_elementwise_find(b"nonsense") == -1
    assert lib.rl_elementwise_name(-1) is None


# ---- accuracy: in units of the last place of the result, against wider precision

ACCURACY = [
    # name, NumPy's function, range, ulps allowed in float32 and float64
    ("exp", np.exp, (-103, 88.7), 1.1, 1.1),
    ("exp2", np.exp2, (-148, 127.9), 1.1, 1.2),
    ("expm1", np.expm1, (-30, 88), 1.5, 1.8),
    ("log", np.log, (1e-30, 10), 1.1, 2.0),
    ("log2", np.log2, (1e-30, 10), 2.0, 3.0),
    ("log10", np.log10, (1e-30, 10), 2.0, 2.4),
    ("log1p", np.log1p, (-0.99, 3), 1.6, 2.1),
    ("sin", np.sin, (-1000, 1000), 1.7, 1.0),
    ("cos", np.cos, (-1000, 1000), 1.7, 1.0),
    ("tan", np.tan, (-1000, 1000), 2.0, 2.2),
    ("sin", np.sin, (-1e8, 1e8), 1.7, 1.0),
    ("asin", np.arcsin, (-1, 1), 2.0, 2.0),
    ("acos", np.arccos, (-1, 1), 1.2, 1.5),
    ("atan", np.arctan, (-5, 5), 2.0, 1.5),
    ("sinh", np.sinh, (-88, 88), 1.6, 3.0),
    ("cosh", np.cosh, (-88, 88), 1.5, 1.6),
    ("tanh", np.tanh, (-5, 5), 1.5, 2.5),
    ("asinh", np.arcsinh, (-50, 50), 0.6, 2.5),
    ("acosh", np.arccosh, (1, 50), 0.6, 3.0),
    ("atanh", np.arctanh, (-0.999, 0.999), 0.6, 2.5),
    ("sigmoid", lambda x: 1 / (1 + np.exp(-x)), (-80, 80), 1.6, 2.3),
    ("rsqrt", lambda x: 1 / np.sqrt(x), (1e-30, 10), 1.6, 1.6),
]
needs_long_double = pytest.mark.skipif(
    np.finfo(np.longdouble).nmant < 63, reason="needs a long double wider than double"
)


def check_accuracy(name, reference, span, single, double):
    g = np.random.default_rng(0)
    for dtype, allowed in ((np.float32, single), (np.float64, double)):
        x = np.concatenate([g.uniform(*span, 30000), g.uniform(0.5, 1.5, 6000) * min(1, span[1])]).astype(dtype)
        x = x[(x > span[0]) & (x < span[1])]
        got = run(name, torch.float32 if dtype is np.float32 else torch.float64, torch.from_numpy(x)).numpy()
        with np.errstate(all="ignore"):
            exact = reference(x.astype(np.longdouble))
            unit = np.exp2(np.floor(np.log2(np.maximum(np.abs(exact), np.finfo(dtype).tiny)))) * np.finfo(dtype).eps
        errors = np.abs(got.astype(np.longdouble) - exact) / unit
        assert errors.max() <= allowed, (name, float(errors.max()), x[errors.argmax()])


@needs_long_double
@pytest.mark.parametrize(("name", "reference", "span", "single", "double"), ACCURACY)
def test_accuracy(name, reference, span, single, double):
    check_accuracy(name, reference, span, single, double)


def inverse_tail(mp, c, guess):
    """x with erfc(x) = c, from a number near it."""
    x = mp.mpf(guess)
    for _ in range(8):
        x += (mp.log(mp.erfc(x)) - mp.log(c)) * mp.erfc(x) * mp.sqrt(mp.pi) / 2 * mp.exp(x * x)
    return x


def exact_erfinv(mp, y, guess):
    return y if y == 0 else mp.sign(y) * inverse_tail(mp, 1 - abs(y), abs(guess))


def exact_ndtri(mp, p, guess):
    x = inverse_tail(mp, 2 * min(p, 1 - p), abs(guess) / mp.sqrt(2)) * mp.sqrt(2)
    return x if p > 0.5 else -x


def tails(n):
    """Numbers within (0, 1) that come near both ends."""
    g = np.random.default_rng(3)
    return np.concatenate([g.uniform(0, 1, n), 1 - 10 ** g.uniform(-15, 0, n // 2), 10 ** g.uniform(-15, 0, n // 2)])


def span(low, high, n):
    return np.random.default_rng([n, hash((low, high)) % 2**32]).uniform(low, high, n)


# name; exact function of mpmath, the arguments and the result as a guess; arguments; ulps in float32 and float64
MANY_DIGITS = [
    ("erf", lambda mp, x, _: mp.erf(x), lambda: [span(-6, 6, 3000)], 1.6, 1.6),
    ("erf", lambda mp, x, _: mp.erf(x), lambda: [10 ** span(-30, 0, 300)], 1.6, 1.6),
    ("erfc", lambda mp, x, _: mp.erfc(x), lambda: [span(-6, 9, 3000)], 2, 3),
    ("erfc", lambda mp, x, _: mp.erfc(x), lambda: [10 ** span(-30, 0, 300)], 2, 3),
    ("erfc", lambda mp, x, _: mp.erfc(x), lambda: [span(9, 26.5, 1000)], 2, 3),
    ("erfinv", exact_erfinv, lambda: [tails(1000) * np.where(span(-1, 1, 2000) < 0, -1, 1)], 2, 2.5),
    ("special_ndtri", exact_ndtri, lambda: [np.concatenate([tails(1000), 10 ** span(-300, -15, 500)])], 1, 4),
    ("lgamma", lambda mp, x, _: mp.log(abs(mp.gamma(x))), lambda: [span(-20, 60, 3000)], 2, None),
    ("lgamma", lambda mp, x, _: mp.loggamma(x), lambda: [span(0.9, 2.1, 2000)], 2, None),
    ("lgamma", lambda mp, x, _: mp.loggamma(x), lambda: [10 ** span(-30, 30, 500)], 2, None),
    ("atan2", lambda mp, y, x, _: mp.atan2(y, x), lambda: [span(-5, 5, 2000), 10 ** span(-4, 4, 2000) - 1], 2, 2),
    ("pow", lambda mp, x, y, _: x**y, lambda: [10 ** span(-10, 10, 2000), span(-3, 3, 2000)], 1, 1.2),
    ("pow", lambda mp, x, y, _: x**y, lambda: [span(0.5, 2, 2000), span(-100, 100, 2000)], 1, 1.2),
    ("pow", lambda mp, x, y, _: x**y, lambda: [1 + span(-1e-6, 1e-6, 2000), span(-1e7, 1e7, 2000)], 1, 1.2),
]  # fmt: skip


def check_many_digits(mp, name, exact, arguments, single, double):
    for dtype, ulps in ((torch.float32, single), (torch.float64, double)):
        if ulps is None:
            continue
        operands = [torch.from_numpy(x).to(dtype) for x in arguments()]
        got = run(name, dtype, *operands).tolist()
        with mp.workdps(40):
            for *points, result in zip(*(x.tolist() for x in operands), got, strict=True):
                if name in ("erfinv", "special_ndtri") and points[0] in (0, 1, -1):
                    continue
                want = exact(mp, *(mp.mpf(x) for x in points), result)
                if abs(want) > torch.finfo(dtype).max:
                    continue
                unit = math.ulp(float(want))
                if dtype == torch.float32:
                    unit = max(math.ldexp(1.0, math.frexp(float(want))[1] - 24), 2.0**-149)
                assert abs(result - want) <= ulps * unit, (name, dtype, points, result)


@pytest.mark.parametrize(("name", "exact", "arguments", "single", "double"), MANY_DIGITS)
def test_accuracy_against_many_digits(name, exact, arguments, single, double):
    check_many_digits(pytest.importorskip("mpmath"), name, exact, arguments, single, double)


def test_remainders_of_float64_are_exact():
    g = np.random.default_rng(5)
    b = g.uniform(-1, 1, 3000) * 10.0 ** g.integers(-3, 3, 3000) + 1e-9
    a = np.concatenate(
        [g.uniform(-1, 1, 2000) * 10.0 ** g.integers(-3, 12, 2000), b[2000:] * g.integers(-999, 999, 1000)]
    )
    x, y = torch.from_numpy(a), torch.from_numpy(b)
    pairs = [(Fraction(p), Fraction(q)) for p, q in zip(a.tolist(), b.tolist(), strict=True)]
    assert run("floor_divide", torch.float64, x, y).tolist() == [float(p // q) for p, q in pairs]
    assert run("remainder", torch.float64, x, y).tolist() == [
        float(r + q if r and (r < 0) != (q < 0) else r) for r, q in ((Fraction(math.fmod(p, q)), q) for p, q in pairs)
    ]
    assert run("fmod", torch.float64, x, y).tolist() == [math.fmod(p, q) for p, q in pairs]


# The bounds of ACCURACY hold for every float32; the reference is computed in double.
DENSE = {name: (reference, single) for name, reference, _, single, _ in ACCURACY} | {
    "sigmoid": (lambda x: np.where(x < 0, np.exp(x), 1) / (1 + np.exp(-np.abs(x))), 1.6),
    "erf": (lambda x: torch.erf(torch.from_numpy(x)).numpy(), 1.6),
    "erfc": (lambda x: torch.erfc(torch.from_numpy(x)).numpy(), 2.0),
    "erfinv": (lambda x: torch.erfinv(torch.from_numpy(x)).numpy(), 2.0),
    "lgamma": (lambda x: torch.lgamma(torch.from_numpy(x)).numpy(), 2.0),
}


def check_all_over(name, step):
    reference, ulps = DENSE[name]
    x = np.arange(0, 2**32, step, dtype=np.uint32).view(np.float32)
    x = np.concatenate([x, np.array([*SPECIAL, 2.0**-149, -(2.0**-149), 2.0**-126, -(2.0**-126)], np.float32)])
    got = run(name, torch.float32, torch.from_numpy(x)).numpy()
    with np.errstate(all="ignore"):
        exact = reference(x.astype(np.float64))
        rounded = exact.astype(np.float32)
    special = ~np.isfinite(rounded) | (exact == 0)
    # Just below the greatest number infinity is as near as the number.
    near_overflow = np.isinf(got) & (np.abs(exact) > 3.4028e38)
    same = np.isnan(got) & np.isnan(rounded) | (got == rounded) & (np.signbit(got) == np.signbit(rounded))
    near_overflow |= np.isinf(rounded) & (np.abs(got) > 3.4028e38) & (np.signbit(got) == np.signbit(rounded))
    wrong = special & ~same & ~near_overflow
    assert not wrong.any(), (name, x[wrong][:3], got[wrong][:3], rounded[wrong][:3])
    plain = ~special & ~near_overflow
    x, got, exact = x[plain], got[plain].astype(np.float64), exact[plain]
    unit = np.ldexp(1.0, np.maximum(np.frexp(exact)[1] - 24, -149))
    errors = np.abs(got - exact) / unit
    assert errors.max() <= ulps, (name, errors.max(), x[errors.argmax()])


@pytest.mark.parametrize("name", DENSE)
def test_accuracy_all_over_float32(name):
    check_all_over(name, 4093)


_LEVEL = """
import sys
sys.path.insert(0, sys.argv[1])
import mpmath
import test_elementwise as t
t.lib.rl_cpu_level.restype = t.ctypes.c_char_p
for row in t.ACCURACY:
    t.check_accuracy(*row)
for name in t.DENSE:
    t.check_all_over(name, 65521)
for row in t.MANY_DIGITS:
    t.check_many_digits(mpmath, *row)
print(t.lib.rl_cpu_level().decode())
"""


@needs_long_double
@pytest.mark.parametrize("level", ["default", "avx2"])
def test_accuracy_of_other_instruction_sets(level):
    done = subprocess.run(
        [sys.executable, "-c", _LEVEL, str(Path(__file__).parent)],
        env={**os.environ, "RUSHLIGHT_CPU_LEVEL": level},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["default"] or level != "default"


@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("name", sorted({row[0] for row in ACCURACY} | {"erf", "erfc", "silu", "sinc", "log_sigmoid"}))
def test_value_does_not_depend_on_its_place(name, dtype):
    x = values(dtype, 1500)
    x[::97] *= 1e9  # beyond what vector code of sin holds for
    whole = run(name, dtype, x).nan_to_num(nan=7.0)
    for start, stop in [(0, 1), (1, 3), (5, 12), (16, 31), (90, 98), (96, 97), (97, 98), (3, 600), (700, 1499)]:
        part = run(name, dtype, x[start:stop].clone()).nan_to_num(nan=7.0)
        assert torch.equal(part, whole[start:stop]), (start, stop)
    assert torch.equal(run(name, dtype, x[::3]).nan_to_num(nan=7.0), whole[::3])
    assert torch.equal(run(name, dtype, x.flip(0)).nan_to_num(nan=7.0), whole.flip(0))
    elementwise(name, dtype, [x], [x])
    assert torch.equal(x.nan_to_num(nan=7.0), whole)


_HASHES = """
import hashlib, sys
sys.path.insert(0, sys.argv[1])
import test_elementwise as t
from kernel_ctypes import lib, torch
lib.rl_cpu_level.restype = t.ctypes.c_char_p
all_over, exact = hashlib.sha256(), hashlib.sha256()
for name, _, dtypes, ulps, options in t.UNARY + t.BINARY:
    if name in ("lgamma", "digamma"):
        continue  # the C library's
    for dtype in dtypes:
        if dtype.is_complex:
            continue
        operands = t.pairs(dtype) if any(name == row[0] for row in t.BINARY) else (t.values(dtype),)
        if "second" in options:
            operands = (operands[0], options["second"](operands[1]))
        out = t.run(name, t.compute_dtype(dtype, options), *operands)
        out = torch.nan_to_num(out, nan=7.0) if out.dtype.is_floating_point else out
        for digest in (all_over, exact) if ulps == 0 else (all_over,):
            digest.update(out.view(torch.uint8).numpy().tobytes())
print(lib.rl_cpu_level().decode(), all_over.hexdigest(), exact.hexdigest())
"""


def test_instruction_sets_give_the_same_bits():
    """Those that fuse products with sums, for all functions; every one, for functions that are exact."""
    here = str(Path(__file__).parent)
    fusing, exact = set(), set()
    for level in ("default", "avx2", "avx512"):
        done = subprocess.run(
            [sys.executable, "-c", _HASHES, here],
            env={**os.environ, "RUSHLIGHT_CPU_LEVEL": level},
            capture_output=True,
            text=True,
            check=True,
        )
        used, digest, exact_digest = done.stdout.split()
        exact.add(exact_digest)
        if used != "default":
            fusing.add(digest)
    assert len(exact) == 1
    assert len(fusing) <= 1
