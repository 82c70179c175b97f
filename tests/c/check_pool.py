"""Pooling against loops over windows."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import numpy as np
from arrays import FLOATS, Maker
from library import INDEX_ERROR, TYPE_ERROR, VALUE_ERROR, Library, expect_error


def pool_params(
    lib: Library, kernel: Any, stride: Any, padding: Any, dilation: Any, include: int = 1, divisor: int = 0
) -> Any:
    arrays = {"kernel": kernel, "stride": stride, "padding": padding, "dilation": dilation}
    values: dict[str, Any] = {key: [int(v) for v in value] for key, value in arrays.items()}
    return lib.ffi.new("rl_pool_params*", values | {"count_include_pad": include, "divisor_override": divisor})


def positions(size: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, y: Any) -> list[tuple[int, ...]]:
    """Input positions in the window of output position y, in order."""
    ranges = []
    for n, k, s, p, d, at in zip(size, kernel, stride, padding, dilation, y, strict=True):
        ranges.append([x for x in (at * s - p + i * d for i in range(k)) if 0 <= x < n])
    return list(itertools.product(*ranges))


def random_case(rng: np.random.Generator, dilated: bool) -> tuple[Any, ...]:
    while True:
        nd = int(rng.integers(1, 4))
        size = rng.choice([1, 3, 5, 8, 17], nd)
        kernel, stride = rng.choice([1, 2, 2, 3], nd), rng.choice([1, 2, 2, 3, 5], nd)
        dilation = rng.choice([1, 1, 2], nd) if dilated else np.ones(nd, int)
        padding = np.minimum(rng.choice([0, 0, 1], nd), kernel // 2)
        span = size + 2 * padding - dilation * (kernel - 1) - 1
        if (span < 0).any():
            continue
        out = span // stride + 1
        if rng.random() < 0.3:  # as with ceil_mode
            out = np.where((out * stride < size + padding) & (padding == 0), out + 1, out)
        windows = itertools.product(*map(range, out))
        if all(positions(size, kernel, stride, padding, dilation, y) for y in windows):
            return size, kernel, stride, padding, dilation, out


def check_max_pool(lib: Library) -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        size, kernel, stride, padding, dilation, out = random_case(rng, True)
        maker = Maker(lib, rng, str(rng.choice([*FLOATS, "uint8", "int64"])))
        x = maker.random((2, 3, *map(int, size)))
        if maker.dtype.kind == "f" and rng.random() < 0.3:
            x[rng.random(x.shape) < 0.1] = np.nan
            x[rng.random(x.shape) < 0.2] = -np.inf
        wide = maker.wide(x)
        shape = (2, 3, *map(int, out))
        expected, where = np.zeros(shape, wide.dtype), np.zeros(shape, np.int64)
        for y in itertools.product(*map(range, out)):
            for n, c in itertools.product(range(2), range(3)):
                best: Any = None
                for at in positions(size, kernel, stride, padding, dilation, y):
                    value = wide[(n, c, *at)]
                    if best is None or value > best or np.isnan(value):
                        best = value
                        where[(n, c, *y)] = np.ravel_multi_index(at, tuple(size))
                expected[(n, c, *y)] = best
        params = pool_params(lib, kernel, stride, padding, dilation)
        got, indices = maker.blank(shape), Maker(lib, rng, "int64").blank(shape)
        lib.max_pool(maker.tensor(maker.maybe(x)), params, maker.tensor(got), lib.tensor(indices))
        assert np.array_equal(maker.wide(got), expected, equal_nan=maker.dtype.kind == "f"), (
            maker.name,
            size,
            kernel,
            stride,
        )
        assert (indices == where).all(), (maker.name, size, kernel, stride, padding, dilation)
        lib.max_pool(maker.tensor(x), params, maker.tensor(got), None)
        assert np.array_equal(maker.wide(got), expected, equal_nan=maker.dtype.kind == "f")
        if maker.exact:
            continue
        grad = maker.random(shape)
        back = np.zeros((2, 3, int(np.prod(size))))
        magnitude = np.zeros_like(back)
        for n, c in itertools.product(range(2), range(3)):
            np.add.at(back[n, c], where[n, c].ravel(), maker.wide(grad)[n, c].ravel())
            np.add.at(magnitude[n, c], where[n, c].ravel(), np.abs(maker.wide(grad)[n, c].ravel()))
        out_grad = maker.blank(x.shape)
        lib.max_pool_backward(maker.tensor(maker.maybe(grad)), lib.tensor(indices), maker.tensor(out_grad))
        maker.compare(out_grad, back.reshape(x.shape), magnitude.reshape(x.shape), f"max backward {maker.name}")


def check_avg_pool(lib: Library) -> None:
    rng = np.random.default_rng(1)
    for _ in range(300):
        size, kernel, stride, padding, dilation, out = random_case(rng, False)
        maker = Maker(lib, rng, str(rng.choice(FLOATS)))
        include, divisor = int(rng.integers(2)), int(rng.choice([0, 0, 3]))
        x, grad = maker.random((2, 3, *map(int, size))), maker.random((2, 3, *map(int, out)))
        wide, wide_grad = maker.wide(x), maker.wide(grad)
        expected, magnitude = np.zeros(grad.shape), np.zeros(grad.shape)
        back, back_magnitude = np.zeros(x.shape), np.zeros(x.shape)
        for y in itertools.product(*map(range, out)):
            inside = positions(size, kernel, stride, padding, dilation, y)
            ends = [
                min(a * s - p + k, n + p) - (a * s - p)
                for a, s, p, k, n in zip(y, stride, padding, kernel, size, strict=True)
            ]
            count = divisor or (int(np.prod(ends)) if include else len(inside))
            for at in inside:
                expected[(..., *y)] += wide[(..., *at)] / count
                magnitude[(..., *y)] += np.abs(wide[(..., *at)]) / count
                back[(..., *at)] += wide_grad[(..., *y)] / count
                back_magnitude[(..., *at)] += np.abs(wide_grad[(..., *y)]) / count
        params = pool_params(lib, kernel, stride, padding, dilation, include, divisor)
        got, got_back = maker.blank(grad.shape), maker.blank(x.shape)
        lib.avg_pool(maker.tensor(maker.maybe(x)), params, maker.tensor(got))
        maker.compare(
            got, expected, magnitude, f"avg {maker.name} {size} {kernel} {stride} {padding} {include} {divisor}"
        )
        lib.avg_pool_backward(maker.tensor(maker.maybe(grad)), params, maker.tensor(got_back))
        maker.compare(got_back, back, back_magnitude, f"avg backward {maker.name} {size} {kernel} {stride} {padding}")


def check_adaptive_pools(lib: Library) -> None:
    rng = np.random.default_rng(2)
    for _ in range(200):
        nd = int(rng.integers(1, 4))
        size, out = rng.choice([1, 3, 5, 8, 17], nd), rng.choice([1, 1, 2, 3, 7], nd)
        maker = Maker(lib, rng, str(rng.choice(FLOATS)))
        x, grad = maker.random((2, 3, *map(int, size))), maker.random((2, 3, *map(int, out)))
        wide, wide_grad = maker.wide(x), maker.wide(grad)
        mean, magnitude, largest = np.zeros(grad.shape), np.zeros(grad.shape), np.zeros(grad.shape)
        back, back_magnitude = np.zeros(x.shape), np.zeros(x.shape)
        axes = tuple(range(2, 2 + nd))
        for y in itertools.product(*map(range, out)):
            place = (
                slice(None),
                slice(None),
                *(slice(a * n // m, -(-(a + 1) * n // m)) for a, n, m in zip(y, size, out, strict=True)),
            )
            count = np.prod(wide[place].shape[2:])
            mean[(..., *y)] = wide[place].mean(axes)
            magnitude[(..., *y)] = np.abs(wide[place]).mean(axes)
            largest[(..., *y)] = wide[place].max(axes)
            back[place] += wide_grad[(..., *y)].reshape(2, 3, *[1] * nd) / count
            back_magnitude[place] += np.abs(wide_grad[(..., *y)]).reshape(2, 3, *[1] * nd) / count
        got, indices, got_back = maker.blank(grad.shape), np.zeros(grad.shape, np.int64), maker.blank(x.shape)
        lib.adaptive_avg_pool(maker.tensor(maker.maybe(x)), maker.tensor(got))
        maker.compare(got, mean, magnitude, f"adaptive avg {maker.name} {size} {out}")
        lib.adaptive_avg_pool_backward(maker.tensor(maker.maybe(grad)), maker.tensor(got_back))
        maker.compare(got_back, back, back_magnitude, f"adaptive backward {maker.name} {size} {out}")
        lib.adaptive_max_pool(maker.tensor(maker.maybe(x)), maker.tensor(got), lib.tensor(indices))
        assert (maker.wide(got) == largest).all()
        taken = np.take_along_axis(wide.reshape(2, 3, -1), indices.reshape(2, 3, -1), 2)
        assert (taken.reshape(largest.shape) == largest).all()


def check_empty_batches(lib: Library) -> None:
    x, out = np.zeros((0, 3, 6, 6), np.float32), np.zeros((0, 3, 3, 3), np.float32)
    indices = np.zeros((0, 3, 3, 3), np.int64)
    params = pool_params(lib, [2, 2], [2, 2], [0, 0], [1, 1])
    lib.max_pool(lib.tensor(x), params, lib.tensor(out), lib.tensor(indices))
    lib.max_pool_backward(lib.tensor(out), lib.tensor(indices), lib.tensor(x))
    lib.avg_pool(lib.tensor(x), params, lib.tensor(out))
    lib.avg_pool_backward(lib.tensor(out), params, lib.tensor(x))
    lib.adaptive_avg_pool(lib.tensor(x), lib.tensor(out))
    lib.adaptive_avg_pool_backward(lib.tensor(out), lib.tensor(x))


def check_errors(lib: Library) -> None:
    x = lib.tensor(np.zeros((1, 1, 4, 4), np.float32))
    out = lib.tensor(np.zeros((1, 1, 2, 2), np.float32))
    params = pool_params(lib, [2, 2], [2, 2], [0, 0], [1, 1])
    wide = lib.tensor(np.zeros((1, 1, 9, 9), np.float32))
    expect_error(VALUE_ERROR, "[1, 1, 9, 9]", partial(lib.max_pool, x, params, wide, None))
    expect_error(VALUE_ERROR, "kernel", partial(lib.avg_pool, x, pool_params(lib, [0, 2], [2, 2], [0, 0], [1, 1]), out))
    expect_error(TYPE_ERROR, "float64", partial(lib.avg_pool, lib.tensor(np.zeros((1, 1, 4, 4))), params, out))
    ints, ints_out = lib.tensor(np.zeros((1, 1, 4, 4), np.int32)), lib.tensor(np.zeros((1, 1, 2, 2), np.int32))
    expect_error(TYPE_ERROR, "int32", partial(lib.avg_pool, ints, params, ints_out))
    expect_error(TYPE_ERROR, "int64", partial(lib.max_pool, x, params, out, ints_out))
    for index in (-1, 16):
        indices = lib.tensor(np.full((1, 1, 2, 2), index, np.int64))
        expect_error(INDEX_ERROR, str(index), partial(lib.max_pool_backward, out, indices, x))
    flat = lib.tensor(np.zeros((4, 4), np.float32))
    expect_error(VALUE_ERROR, "[4, 4]", partial(lib.max_pool, flat, params, flat, None))
