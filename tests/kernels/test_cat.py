"""cat, triangles, trace, flip, roll, tile and one-hot against PyTorch."""

from __future__ import annotations

import ctypes

import pytest

pytest.importorskip("torch")

from kernel_ctypes import DTYPES, KernelError, call, describe, layouts, sample, torch, with_threads


def make(dtype, shapes):
    return [sample(dtype, *s, seed=i) for i, s in enumerate(shapes)]


CASES = [
    ([(3,), (4,)], 0),
    ([(0,), (4,), (0,)], 0),
    ([(4, 4), (4, 4)], 0),
    ([(4, 4), (4, 4)], 1),
    ([(2, 3, 4), (2, 1, 4), (2, 5, 4)], 1),
    ([(2, 3, 4), (2, 3, 0), (2, 3, 1)], 2),
    ([(0, 3), (0, 4)], 1),
    ([(2, 2)] * 40, 1),
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shapes", "dim"), CASES)
def test_cat(dtype, shapes, dim):
    inputs = make(dtype, shapes)
    expected = torch.cat(inputs, dim)
    out = torch.zeros_like(expected)
    call("cat", len(inputs), inputs, dim, out)
    assert torch.equal(out, expected)
    for views in zip(*[list(layouts(x)) for x in inputs], strict=True):
        expected = torch.cat([t for t, _ in views], dim)
        out = torch.zeros_like(expected)
        call("cat", len(inputs), [v for _, v in views], dim, out)
        assert torch.equal(out, expected)
    if expected.dim() > 1:
        out = torch.zeros_like(expected.t() if expected.dim() == 2 else expected.transpose(0, 1)).transpose(0, 1)
        call("cat", len(inputs), inputs, dim, out)
        assert torch.equal(out, torch.cat(inputs, dim))


def test_cat_converts():
    inputs = [torch.tensor([1, 2]), torch.tensor([0.5]), torch.tensor([True])]
    out = torch.zeros(4)
    call("cat", 3, inputs, 0, out)
    assert out.tolist() == [1, 2, 0.5, 1]


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("rows", [3, 3000, 9_000])
def test_cat_of_large(dim, rows):
    inputs = [torch.arange(rows * 1001.0).view(rows, 1001), torch.arange(rows * 1001.0).view(rows, 1001).neg()]
    inputs.append(inputs[0][:, ::2].repeat(1, 2)[:, :1001].contiguous()[:, :1001])
    expected = torch.cat(inputs, dim)
    for threads in (1, 4):
        out = torch.zeros_like(expected)
        with_threads(threads, lambda out=out: call("cat", 3, inputs, dim, out))
        assert torch.equal(out, expected)


def test_cat_errors():
    a, b = torch.zeros(2, 3), torch.zeros(3, 3)
    with pytest.raises(KernelError, match=r"expected inputs of the shape \[2, 6\] but for dimension 1, got \[3, 3\]"):
        call("cat", 2, [a, b], 1, torch.zeros(2, 6))
    with pytest.raises(KernelError, match="expected an output of size 5 along dimension 0"):
        call("cat", 2, [a, b], 0, torch.zeros(6, 3))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (4, 4), (3, 5), (5, 3), (2, 3, 4, 6), (200, 300)])
def test_triangle(dtype, upper, shape):
    x = sample(dtype, *shape)
    for diagonal in (-7, -2, -1, 0, 1, 3, 9, 2**62, -(2**63)):
        clamped = max(-1000, min(1000, diagonal))
        expected = (torch.triu if upper else torch.tril)(x, clamped)
        for _, view in layouts(x):
            out = torch.ones(shape, dtype=dtype)
            call("triangle", view, diagonal, upper, out)
            assert torch.equal(out, expected)
        out = x.clone()
        call("triangle", out, diagonal, upper, out)
        assert torch.equal(out, expected)
        out = torch.ones_like(x.transpose(-1, -2)).transpose(-1, -2)
        call("triangle", x, diagonal, upper, out)
        assert torch.equal(out, expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_trace(dtype):
    for shape in [(0, 3), (4, 4), (3, 5), (5, 3)]:
        x = sample(dtype, *shape)
        out = torch.ones((), dtype=dtype if dtype.is_floating_point or dtype.is_complex else torch.int64)
        expected = x.diagonal().sum().to(out.dtype)
        for _, view in layouts(x):
            call("trace", view, out)
            assert torch.equal(out, expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "dims"), [
    ((5,), [0]), ((5,), []), ((4, 6), [1]), ((4, 6), [0]), ((4, 6), [0, 1]), ((3, 4, 5), [0, 2]), ((3, 0), [0]),
    ((60, 700), [0, 1]),
])  # fmt: skip
def test_flip(dtype, shape, dims):
    x = sample(dtype, *shape)
    expected = torch.flip(x, dims)
    for _, view in layouts(x):
        out = torch.zeros(shape, dtype=dtype)
        call("flip", view, len(dims), dims, out)
        assert torch.equal(out, expected)
    with pytest.raises(KernelError, match="does not exist or is named twice"):
        call("flip", sample(dtype, 3), 2, [0, 0], torch.zeros(3, dtype=dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "shifts", "dims"), [
    ((5,), [2], [0]), ((5,), [-7], [0]), ((5,), [5], [0]), ((4, 6), [1, -2], [0, 1]), ((4, 6), [1, 2], [1, 1]),
    ((3, 4, 5), [1, 1, 2**40 + 1], [0, 1, 2]), ((0, 3), [1], [0]),
])  # fmt: skip
def test_roll(dtype, shape, shifts, dims):
    x = sample(dtype, *shape)
    expected = torch.roll(x, shifts, dims)
    for _, view in layouts(x):
        out = torch.zeros(shape, dtype=dtype)
        call("roll", view, len(dims), (ctypes.c_int64 * len(shifts))(*shifts), dims, out)
        assert torch.equal(out, expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "repeats"), [
    ((3,), (2,)), ((2, 3), (2, 2)), ((2, 3), (4, 1, 2)), ((2, 1), (1, 5)), ((), (3, 2)), ((2, 3), (0, 2)), ((0,), (3,)),
])  # fmt: skip
def test_tile(dtype, shape, repeats):
    x = sample(dtype, *shape)
    expected = x.repeat(repeats)
    for _, view in layouts(x):
        out = torch.zeros_like(expected)
        call("tile", view, out)
        assert torch.equal(out, expected)
    with pytest.raises(KernelError, match="expected output sizes that are multiples"):
        call("tile", torch.zeros(2), torch.zeros(3))


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_hot(dtype):
    index = torch.tensor([[0, 2, 1], [1, 1, 0]])
    expected = torch.nn.functional.one_hot(index, 4).to(dtype)
    for _, view in layouts(index):
        out = torch.ones(2, 3, 4, dtype=dtype)
        call("one_hot", view, out)
        assert torch.equal(out, expected)
    with pytest.raises(KernelError, match="Class values must be smaller than num_classes"):
        call("one_hot", index, torch.zeros(2, 3, 2, dtype=dtype))
    with pytest.raises(KernelError, match="Class values must be non-negative"):
        call("one_hot", -index, torch.zeros(2, 3, 4, dtype=dtype))


def test_descriptors_with_negative_strides():
    x = sample(torch.float32, 4, 5)
    out = torch.zeros(8, 5)
    call("cat", 2, [describe(x, (0, 1)), describe(x, (0,))], 0, out)
    assert torch.equal(out, torch.cat([x.flip(0, 1), x.flip(0)]))
