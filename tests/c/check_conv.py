"""Convolutions against sums over taps."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import numpy as np
from arrays import NUMBERS, Maker
from library import TYPE_ERROR, VALUE_ERROR, Library, expect_error


def conv_params(lib: Library, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    values = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    values = {key: value if key == "groups" else [int(v) for v in value] for key, value in values.items()}
    return lib.ffi.new("rl_conv_params*", values)


class Case:
    """A random convolution, and its maps in double precision by definition."""

    def __init__(self, rng: np.random.Generator) -> None:
        while True:
            nd = int(rng.choice([1, 2, 2, 2, 3]))
            self.groups = int(rng.choice([1, 1, 1, 2, 3]))
            self.images = int(rng.choice([0, 1, 2, 5]))
            self.inputs = int(rng.choice([1, 1, 2, 3, 5, 9, 17]))
            self.outputs = int(rng.choice([1, 2, 3, 4, 7, 8, 13, 33]))
            self.kernel = rng.choice([1, 2, 3, 3, 5], nd)
            self.stride = rng.choice([1, 1, 1, 2, 3], nd)
            self.padding = rng.choice([0, 0, 1, 2, 5], nd)
            self.dilation = rng.choice([1, 1, 1, 2, 9], nd)
            self.size = rng.choice([1, 2, 5, 8, 9, 14], nd) if nd < 3 else rng.choice([1, 3, 6, 9], nd)
            span = self.size + 2 * self.padding - self.dilation * (self.kernel - 1) - 1
            if (span >= 0).all():
                break
        self.out = span // self.stride + 1
        self.x_shape = (self.images, self.groups * self.inputs, *map(int, self.size))
        self.w_shape = (self.groups * self.outputs, self.inputs, *map(int, self.kernel))
        self.y_shape = (self.images, self.groups * self.outputs, *map(int, self.out))

    def __str__(self) -> str:
        return f"{self.x_shape} {self.w_shape} s{self.stride} p{self.padding} d{self.dilation} g{self.groups}"

    def windows(self, padded: np.ndarray) -> Any:
        """For each tap: its position in the weight and the part of the padded input that it multiplies."""
        for tap in itertools.product(*map(range, self.kernel)):
            start = np.array(tap) * self.dilation
            stop = start + (self.out - 1) * self.stride + 1
            place = tuple(slice(a, b, s) for a, b, s in zip(start, stop, self.stride, strict=True))
            yield tap, (slice(None), slice(None), *place)

    def pad(self, x: np.ndarray) -> np.ndarray:
        return np.pad(x, [(0, 0), (0, 0), *((int(p), int(p)) for p in self.padding)])

    def grouped(self, array: np.ndarray, axis: int) -> np.ndarray:
        shape = array.shape
        return array.reshape(*shape[:axis], self.groups, shape[axis] // self.groups, *shape[axis + 1 :])

    def forward(self, x: np.ndarray, w: np.ndarray) -> np.ndarray:
        padded = self.pad(x)
        out = np.zeros(self.y_shape, np.result_type(x, w))
        for tap, place in self.windows(padded):
            part = self.grouped(padded[place], 1)
            weight = self.grouped(w[(slice(None), slice(None), *tap)], 0)
            out += np.einsum("ngc...,goc->ngo...", part, weight).reshape(out.shape)
        return out

    def grad_input(self, y: np.ndarray, w: np.ndarray) -> np.ndarray:
        padded = self.pad(np.zeros(self.x_shape, np.result_type(y, w)))
        for tap, place in self.windows(padded):
            weight = self.grouped(w[(slice(None), slice(None), *tap)], 0)
            part = np.einsum("ngo...,goc->ngc...", self.grouped(y, 1), weight)
            padded[place] += part.reshape(padded[place].shape)
        inner = tuple(slice(int(p), int(p) + int(n)) for p, n in zip(self.padding, self.size, strict=True))
        return padded[(slice(None), slice(None), *inner)]

    def grad_weight(self, y: np.ndarray, x: np.ndarray) -> np.ndarray:
        padded = self.pad(x)
        out = np.zeros(self.w_shape, np.result_type(x, y))
        places = int(np.prod(self.out))
        flat_y = self.grouped(y, 1).reshape(self.images, self.groups, self.outputs, places)
        for tap, place in self.windows(padded):
            part = self.grouped(padded[place], 1).reshape(self.images, self.groups, self.inputs, places)
            out[(slice(None), slice(None), *tap)] = np.einsum("ngop,ngcp->goc", flat_y, part).reshape(-1, self.inputs)
        return out


def check_all_maps(lib: Library) -> None:
    rng = np.random.default_rng(0)
    for _ in range(500):
        case, maker = Case(rng), Maker(lib, rng, str(rng.choice(NUMBERS)))
        params = conv_params(lib, case.stride, case.padding, case.dilation, case.groups)
        x, w, g = (maker.maybe(maker.random(shape)) for shape in (case.x_shape, case.w_shape, case.y_shape))
        bias = maker.maybe(maker.random((case.w_shape[0],))) if rng.random() < 0.5 else None
        input_bias = maker.maybe(maker.random((case.x_shape[1],))) if rng.random() < 0.3 else None
        wide_x, wide_w, wide_g = maker.wide(x), maker.wide(w), maker.wide(g)
        size = (1, -1, *[1] * len(case.size))

        def add(
            values: np.ndarray, addend: np.ndarray | None, size: tuple[int, ...] = size, maker: Maker = maker
        ) -> np.ndarray:
            return values if addend is None else values + maker.wide(addend).reshape(size)

        tensor = maker.tensor
        optional = [None if b is None else tensor(b) for b in (bias, input_bias)]
        out = maker.blank(case.y_shape)
        lib.conv(tensor(x), tensor(w), optional[0], params, tensor(out))
        magnitude = case.forward(np.abs(wide_x), np.abs(wide_w)) + 10
        maker.compare(out, add(case.forward(wide_x, wide_w), bias), magnitude, f"forward {maker.name} {case}")

        out = maker.blank(case.x_shape)
        lib.conv_grad_input(tensor(g), tensor(w), optional[1], params, tensor(out))
        magnitude = case.grad_input(np.abs(wide_g), np.abs(wide_w)) + 10
        maker.compare(out, add(case.grad_input(wide_g, wide_w), input_bias), magnitude, f"input {maker.name} {case}")

        out = maker.blank(case.w_shape)
        lib.conv_grad_weight(tensor(g), tensor(x), params, tensor(out))
        magnitude = case.grad_weight(np.abs(wide_g), np.abs(wide_x)) + 1e-6
        maker.compare(out, case.grad_weight(wide_g, wide_x), magnitude, f"weight {maker.name} {case}")

        out = maker.blank((case.w_shape[0],))
        lib.conv_grad_bias(tensor(g), tensor(out))
        axes = (0, *range(2, g.ndim))
        maker.compare(out, wide_g.sum(axes), np.abs(wide_g).sum(axes), f"bias {maker.name} {case}")


def check_large_layers(lib: Library) -> None:
    """Sizes at which channels, rows and images are divided into blocks."""
    rng = np.random.default_rng(1)
    for images, inputs, size, outputs, kernel, stride, padding, groups in (
        (2, 70, (30, 33), 40, 3, 1, 1, 1),
        (9, 130, (7, 7), 72, 3, 1, 1, 1),
        (2, 24, (40, 41), 48, 5, 2, 2, 2),
        (3, 64, (14, 14), 64, 3, 1, 1, 64),
        (1, 3, (64, 65), 17, 7, 2, 3, 1),
        (2, 6, (3000,), 8, 9, 2, 4, 1),
    ):
        case = Case(rng)
        nd = len(size)
        case.images, case.groups, case.inputs, case.outputs = images, groups, inputs // groups, outputs // groups
        case.kernel, case.stride, case.padding = np.full(nd, kernel), np.full(nd, stride), np.full(nd, padding)
        case.dilation, case.size = np.ones(nd, int), np.array(size)
        case.out = (case.size + 2 * padding - kernel) // stride + 1
        case.x_shape, case.w_shape = (images, inputs, *size), (outputs, inputs // groups, *[kernel] * nd)
        case.y_shape = (images, outputs, *map(int, case.out))
        params = conv_params(lib, case.stride, case.padding, case.dilation, groups)
        maker = Maker(lib, rng, "float32")
        x, w, g = (maker.random(shape) for shape in (case.x_shape, case.w_shape, case.y_shape))
        tensor = maker.tensor
        results: list[list[np.ndarray]] = []
        for threads in (1, 2, 4):
            lib.set_num_threads(threads)
            outs = [maker.blank(shape) for shape in (case.y_shape, case.x_shape, case.w_shape, (outputs,))]
            lib.conv(tensor(x), tensor(w), None, params, tensor(outs[0]))
            lib.conv_grad_input(tensor(g), tensor(w), None, params, tensor(outs[1]))
            lib.conv_grad_weight(tensor(g), tensor(x), params, tensor(outs[2]))
            lib.conv_grad_bias(tensor(g), tensor(outs[3]))
            results.append(outs)
        for other in results[1:]:
            for one, two in zip(results[0], other, strict=True):
                assert (one == two).all(), f"the number of threads changes bits: {case}"
        wide_x, wide_w, wide_g = map(maker.wide, (x, w, g))
        axes = (0, *range(2, g.ndim))
        expected = (
            case.forward(wide_x, wide_w),
            case.grad_input(wide_g, wide_w),
            case.grad_weight(wide_g, wide_x),
            wide_g.sum(axes),
        )
        for got, value, what in zip(results[0], expected, ("forward", "input", "weight", "bias"), strict=True):
            error = np.abs(got - value).max() / np.abs(value).max()
            assert error < 1e-5, f"{what} {case}: {error}"
    lib.set_num_threads(2)


def check_infinities_stay_where_they_are(lib: Library) -> None:
    """An infinite input element must not reach taps that do not multiply it."""
    maker = Maker(lib, np.random.default_rng(2), "float32")
    x = np.ones((1, 2, 4, 5), np.float32)
    x[0, 0, 0, 0] = np.inf
    g = np.ones((1, 3, 3, 4), np.float32)
    params = conv_params(lib, [1, 1], [0, 0], [1, 1], 1)
    for inputs in (2, 20):
        wide = np.ones((1, inputs, 4, 5), np.float32)
        wide[:, :2] = x
        gw = maker.blank((3, inputs, 2, 2))
        lib.conv_grad_weight(maker.tensor(g), maker.tensor(wide), params, maker.tensor(gw))
        assert np.isinf(gw[:, 0, 0, 0]).all()
        gw[:, 0, 0, 0] = 12
        assert (gw == 12).all()


def check_errors(lib: Library) -> None:
    def attempt(
        status: int,
        text: str,
        x: Any,
        w: Any,
        out: Any,
        bias: Any = None,
        groups: int = 1,
        dtype: Any = None,
        **other: Any,
    ) -> None:
        values: dict[str, Any] = {"stride": [1, 1], "padding": [0, 0], "dilation": [1, 1], "groups": groups} | other
        params = lib.ffi.new("rl_conv_params*", values)
        arrays = [np.zeros(shape, np.float32) for shape in (x, w, out)]
        if dtype:
            arrays[1] = arrays[1].astype(dtype)
        tensors = [lib.tensor(array) for array in arrays]
        bias_tensor = None if bias is None else lib.tensor(np.zeros(bias, np.float32))
        expect_error(status, text, partial(lib.conv, tensors[0], tensors[1], bias_tensor, params, tensors[2]))
        if bias is None:
            expect_error(status, text, partial(lib.conv_grad_weight, tensors[2], tensors[0], params, tensors[1]))

    attempt(VALUE_ERROR, "[1, 2, 5, 5]", (1, 2, 5, 5), (4, 3, 3, 3), (1, 4, 3, 3))
    attempt(VALUE_ERROR, "[1, 4, 4, 3]", (1, 2, 5, 5), (4, 2, 3, 3), (1, 4, 4, 3))
    attempt(VALUE_ERROR, "groups", (1, 3, 5, 5), (4, 3, 3, 3), (1, 4, 3, 3), groups=2)
    attempt(VALUE_ERROR, "stride", (1, 2, 5, 5), (4, 2, 3, 3), (1, 4, 3, 3), stride=[0, 1])
    attempt(VALUE_ERROR, "padding", (1, 2, 5, 5), (4, 2, 3, 3), (1, 4, 3, 3), padding=[0, -1])
    attempt(VALUE_ERROR, "dimensions", (2, 5), (4, 2), (1, 4))
    attempt(VALUE_ERROR, "bias", (1, 2, 5, 5), (4, 2, 3, 3), (1, 4, 3, 3), bias=(5,))
    attempt(TYPE_ERROR, "float64", (1, 2, 5, 5), (4, 2, 3, 3), (1, 4, 3, 3), dtype=np.float64)
    x = np.zeros((1, 1, 4, 4), np.float32)
    params = conv_params(lib, [1, 1], [0, 0], [1, 1], 1)
    weight = lib.tensor(np.zeros((1, 1, 1, 1), np.float32))
    expect_error(VALUE_ERROR, "memory", partial(lib.conv, lib.tensor(x), weight, None, params, lib.tensor(x)))
