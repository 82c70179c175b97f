"""Matrix products and inner products."""

from __future__ import annotations

from functools import partial

import numpy as np
from arrays import COMPLEX, NUMBERS, Maker
from library import RUNTIME_ERROR, TYPE_ERROR, VALUE_ERROR, Library, expect_error


def check_products(lib: Library) -> None:
    rng = np.random.default_rng(0)
    sizes = [0, 1, 1, 2, 3, 4, 5, 8, 16, 17, 33]
    for trial in range(1500):
        maker = Maker(lib, rng, str(rng.choice(NUMBERS)))
        m, n, k = (int(size) for size in rng.choice(sizes, 3))
        if trial % 50 == 0:
            m, n, k = (int(size) for size in rng.choice([1, 64, 150, 257], 3))
        batch = tuple(int(size) for size in rng.choice([1, 2, 3], int(rng.integers(0, 3))))
        a, b = maker.maybe(maker.random((*batch, m, k))), maker.maybe(maker.random((*batch, k, n)))
        if batch and rng.random() < 0.3:
            b = np.broadcast_to(maker.random((k, n)), (*batch, k, n))
        out = maker.blank((*batch, m, n))
        alpha, beta = complex(rng.choice([1, 1, 2, 0, -3])), complex(rng.choice([0, 1, 2]))
        if maker.name in COMPLEX:
            alpha, beta = alpha * (1 - 0.5j), beta * (0.5 + 2j)
        kind = rng.choice(["none", "full", "row", "out"])
        add = None
        if kind == "full":
            add = maker.maybe(maker.random(out.shape))
        elif kind == "row":
            add = np.broadcast_to(maker.random((n,)), out.shape)
        elif kind == "out":
            out[...] = maker.random(out.shape)
            add = out
        before = None if add is None else maker.wide(add).copy()
        lib.matmul(
            maker.tensor(a),
            maker.tensor(b),
            None if add is None else maker.tensor(add),
            lib.number(alpha),
            lib.number(beta),
            maker.tensor(out),
        )
        wide_a, wide_b = maker.wide(a), maker.wide(b)
        scale = alpha if maker.name in COMPLEX else int(alpha.real)
        expected = scale * np.matmul(wide_a, wide_b)
        magnitude = abs(alpha) * np.matmul(np.abs(wide_a), np.abs(wide_b))
        if before is not None and beta != 0:
            expected = expected + (beta if maker.name in COMPLEX else int(beta.real)) * before
            magnitude = magnitude + abs(beta) * np.abs(before)
        maker.compare(out, expected, magnitude, f"{maker.name} {a.shape} {b.shape} {kind} {alpha} {beta}")


def check_zero_factors_read_nothing(lib: Library) -> None:
    nan = np.full((3, 3), np.nan)
    out = np.full((3, 3), np.nan)
    eye = np.eye(3)
    lib.matmul(lib.tensor(eye), lib.tensor(eye), lib.tensor(nan), lib.number(1), lib.number(0), lib.tensor(out))
    assert (out == eye).all()
    lib.matmul(lib.tensor(nan), lib.tensor(nan), lib.tensor(eye), lib.number(0), lib.number(2), lib.tensor(out))
    assert (out == 2 * eye).all()
    out[:] = np.nan
    lib.matmul(lib.tensor(nan), lib.tensor(nan), None, lib.number(0), lib.number(0), lib.tensor(out))
    assert (out == 0).all()
    empty = np.empty((3, 0))
    out[:] = np.nan
    lib.matmul(lib.tensor(empty), lib.tensor(empty.T), lib.tensor(eye), lib.number(1), lib.number(3), lib.tensor(out))
    assert (out == 3 * eye).all()


def check_output_over_operands(lib: Library) -> None:
    rng = np.random.default_rng(1)
    one, zero = lib.number(1), lib.number(0)
    x = rng.standard_normal((9, 9))
    before = x.copy()
    tensor = lib.tensor(x)
    lib.matmul(tensor, tensor, None, one, zero, tensor)
    assert np.allclose(x, before @ before)
    x = before.copy()
    lib.matmul(lib.tensor(before), lib.tensor(before), lib.tensor(x.T), one, one, lib.tensor(x))
    assert np.allclose(x, before @ before + before.T)


def check_threads_change_no_bits(lib: Library) -> None:
    rng = np.random.default_rng(2)
    for dtype in (np.float32, np.float64, np.float16):
        for m, n, k in ((500, 400, 300), (1, 4000, 900), (4000, 1, 900), (33, 900, 900), (200, 100, 9000)):
            a, b = rng.standard_normal((m, k)).astype(dtype), rng.standard_normal((k, n)).astype(dtype)
            results = []
            for threads in (1, 2, 4):
                lib.set_num_threads(threads)
                out = np.empty((m, n), dtype)
                lib.matmul(lib.tensor(a), lib.tensor(b), None, lib.number(1), lib.number(0), lib.tensor(out))
                results.append(out)
            assert all((result == results[0]).all() for result in results), (dtype, m, n, k)
        x = rng.standard_normal(300_000).astype(dtype)
        dots = []
        for threads in (1, 2, 4):
            lib.set_num_threads(threads)
            out = np.empty((), dtype)
            lib.dot(lib.tensor(x), lib.tensor(x), 0, lib.tensor(out))
            dots.append(float(out))
        assert dots[0] == dots[1] == dots[2]
    lib.set_num_threads(2)


def check_inner_products(lib: Library) -> None:
    rng = np.random.default_rng(3)
    for name in NUMBERS:
        maker = Maker(lib, rng, name)
        for size in (0, 1, 2, 7, 100, 1000, 70_000):
            for conjugate in (0, 1):
                a, b = maker.maybe(maker.random((size,))), maker.maybe(maker.random((size,)))
                if name == "float16":
                    a, b = (a * np.float16(0.1)), b
                out = np.zeros((), maker.dtype)
                lib.dot(maker.tensor(a), maker.tensor(b), conjugate, maker.tensor(out))
                wide_a, wide_b = maker.wide(a), maker.wide(b)
                expected = np.asarray(np.sum((np.conj(wide_a) if conjugate else wide_a) * wide_b))
                maker.compare(out, expected, np.sum(np.abs(wide_a * wide_b)), f"{name} {size} {conjugate}")


def check_errors(lib: Library) -> None:
    def attempt(
        status: int, text: str, a: np.ndarray, b: np.ndarray, out: np.ndarray, add: np.ndarray | None = None
    ) -> None:
        tensors = [lib.tensor(a), lib.tensor(b), None if add is None else lib.tensor(add)]
        expect_error(status, text, partial(lib.matmul, *tensors, lib.number(1), lib.number(1), lib.tensor(out)))

    zeros = np.zeros
    attempt(VALUE_ERROR, "[2, 3]", zeros((2, 3)), zeros((4, 5)), zeros((2, 5)))
    attempt(VALUE_ERROR, "[2, 4]", zeros((2, 3)), zeros((3, 5)), zeros((2, 4)))
    attempt(VALUE_ERROR, "[3]", zeros(3), zeros((3, 5)), zeros(5))
    attempt(VALUE_ERROR, "[6, 2, 3]", zeros((6, 2, 3)), zeros((5, 3, 2)), zeros((6, 2, 2)))
    attempt(VALUE_ERROR, "[1, 2]", zeros((2, 2)), zeros((2, 2)), zeros((2, 2)), zeros((1, 2)))
    attempt(TYPE_ERROR, "float64", zeros((2, 2)), zeros((2, 2), np.float32), zeros((2, 2)))
    attempt(TYPE_ERROR, "bool", zeros((2, 2), bool), zeros((2, 2), bool), zeros((2, 2), bool))
    elsewhere = lib.ffi.new("char[]", b"/nowhere.so")
    expect_error(RUNTIME_ERROR, "/nowhere.so", partial(lib.set_blas_library, elsewhere))
    assert lib.c.rl_blas_symbol(lib.ffi.new("char[]", b"cblas_sgemm")) != lib.ffi.NULL
    assert lib.c.rl_blas_symbol(lib.ffi.new("char[]", b"no_such_thing")) == lib.ffi.NULL
    assert "no_such_thing" in lib.error()
