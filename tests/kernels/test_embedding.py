"""Embeddings and bags of them, forward and backward, against PyTorch."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from kernel_ctypes import DTYPES, KernelError, call, describe, layouts, sample, torch, with_threads

FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
SUM, MEAN, MAX = range(3)
MODES = {"sum": SUM, "mean": MEAN, "max": MAX}
functional = torch.nn.functional


def indices_of(n, rows, seed=0):
    return torch.randint(0, rows, (n,), generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (5,), (2, 3), (0,), (2, 0, 3)])
def test_embedding(dtype, shape):
    weight = sample(dtype, 7, 4)
    indices = indices_of(torch.Size(shape).numel(), 7).view(shape)
    expected = weight[indices]
    for _, view in layouts(weight):
        for _, other in layouts(indices):
            out = torch.zeros(expected.shape, dtype=dtype)
            call("embedding", view, other, out)
            assert torch.equal(out, expected)


def test_embedding_out_of_range():
    weight, out = torch.zeros(3, 2), torch.zeros(2, 2)
    for bad in (3, -1):
        for name, args in {
            "embedding": (weight, torch.tensor([0, bad]), out),
            "embedding_renorm": (weight, torch.tensor([0, bad]), 1.0, 2.0),
            "embedding_backward": (out, torch.tensor([0, bad]), -1, False, weight),
        }.items():
            with pytest.raises(KernelError, match=f"index {bad} is out of bounds for dimension 0 with size 3") as error:
                call(name, *args)
            assert error.value.kind is IndexError


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("order", [2.0, 1.0, 3.5, float("inf"), 0.0])
def test_renorm(dtype, order):
    weight = torch.randn(6, 9, generator=torch.Generator().manual_seed(0)).to(dtype)
    indices = torch.tensor([[0, 3, 3], [5, 0, 3]])
    expected = torch.embedding_renorm_(weight.clone(), indices.flatten(), 0.9, order)
    for make in (lambda: weight.clone(), lambda: weight.t().contiguous().t()):
        got = make()
        call("embedding_renorm", got, indices, 0.9, order)
        torch.testing.assert_close(got, expected)
        assert torch.equal(got[[1, 2, 4]], weight[[1, 2, 4]])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("padding", [-1, 2])
@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("size", [0, 1, 4, 100])
def test_embedding_backward(dtype, padding, scale, size):
    rows = 6
    for shape in ((0,), (40,), (5, 8)):
        indices = indices_of(torch.Size(shape).numel(), rows - 1).view(shape)
        grad = sample(dtype, *shape, size, seed=1, low=-2, high=3)
        expected = torch.ops.aten.embedding_dense_backward(grad.double(), indices, rows, padding, scale).to(dtype)
        tolerance = {"rtol": 2e-2, "atol": 2e-2} if dtype in FLOATS[:2] and scale else {"rtol": 1e-6, "atol": 1e-6}
        for _, view in layouts(grad):
            for out in (torch.ones(rows, size, dtype=dtype), torch.ones(size, rows, dtype=dtype).t()):
                call("embedding_backward", view, indices, padding, scale, out)
                torch.testing.assert_close(out, expected, **tolerance)


def test_backward_of_expanded_gradients():
    indices = indices_of(50, 5).view(5, 10)
    grad = torch.ones(()).expand(5, 10, 3)
    out = torch.zeros(5, 3)
    call("embedding_backward", grad, indices, -1, False, out)
    assert torch.equal(out, torch.bincount(indices.flatten(), minlength=5).float()[:, None].expand(5, 3))


@pytest.mark.parametrize("dtype", FLOATS)
def test_backward_has_the_same_bits_for_any_number_of_threads(dtype):
    indices = indices_of(3000, 100)
    grad = torch.randn(3000, 64, generator=torch.Generator().manual_seed(3)).to(dtype)

    def run():
        out = torch.zeros(100, 64, dtype=dtype)
        call("embedding_backward", grad, indices, -1, False, out)
        return out

    first = with_threads(1, run)
    # In order, which index_add on one thread keeps too.
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    wanted = torch.zeros(100, 64, dtype=dtype)
    for row, g in zip(indices.tolist(), grad, strict=True):
        wanted[row] += g
    torch.set_num_threads(before)
    assert torch.equal(first, wanted)
    for threads in (2, 4):
        assert torch.equal(with_threads(threads, run), first)


def bags(rows=6):
    indices = indices_of(20, rows, seed=2)
    return indices, torch.tensor([0, 3, 3, 9, 20])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("padding", [-1, 2])
@pytest.mark.parametrize("include_last", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_bags(dtype, mode, padding, include_last, weighted):
    if weighted and mode != "sum":
        return
    rows, size = 6, 5
    indices, offsets = bags()
    weight = sample(dtype, rows, size, low=-3, high=4).requires_grad_()
    factors = sample(dtype, 20, seed=5, low=-2, high=3).requires_grad_() if weighted else None
    wide = weight.detach().double().requires_grad_()
    wide_factors = factors.detach().double().requires_grad_() if weighted else None
    # PyTorch takes -1 for the last row.
    expected, _, sizes, places = torch.embedding_bag(
        wide, indices, offsets, False, MODES[mode], False, wide_factors, include_last, None if padding < 0 else padding
    )
    count = expected.shape[0]
    for _, view in layouts(weight.detach()):
        out = torch.ones(count, size, dtype=dtype)
        bag_size = torch.full((count,), -1)
        max_indices = torch.full((count, size), -1) if mode == "max" else None
        call(
            "embedding_bag", view, indices, offsets, MODES[mode], include_last,
            None if factors is None else factors.detach(), padding, out, bag_size, max_indices,
        )  # fmt: skip
        torch.testing.assert_close(out, expected.detach().to(dtype))
        counted = [
            sum(int(i) != padding for i in part)
            for part in torch.tensor_split(
                indices, offsets[1:].tolist() if not include_last else offsets[1:-1].tolist()
            )
        ]
        assert bag_size.tolist() == counted
        if mode == "max":
            # PyTorch counts an untouched last row when the last offset ends the last bag.
            assert torch.equal(max_indices, places[:count])
    if mode == "max":
        assert torch.equal(sizes[:count], bag_size)

    grad = sample(dtype, count, size, seed=7, low=-2, high=3)
    inputs = [wide] if factors is None else [wide, wide_factors]
    expected_grads = torch.autograd.grad(expected, inputs, grad.double())
    for _, view in layouts(grad):
        for threads in (1, 4):
            out = torch.ones(rows, size, dtype=dtype)
            with_threads(
                threads,
                lambda view=view, out=out: call(
                    "embedding_bag_backward",
                    view,
                    indices,
                    offsets,
                    MODES[mode],
                    include_last,
                    None if factors is None else factors.detach(),
                    padding,
                    False,
                    max_indices,
                    out,
                ),
            )
            rough = {"rtol": 2e-2, "atol": 2e-2} if dtype in FLOATS[:2] else {"rtol": 1e-6, "atol": 1e-6}
            torch.testing.assert_close(out, expected_grads[0].to(dtype), **rough)
        if factors is not None:
            out = torch.ones(20, dtype=dtype)
            call("embedding_bag_weights_backward", view, weight.detach(), indices, offsets, include_last, padding, out)
            torch.testing.assert_close(out, expected_grads[1].to(dtype))


def test_bags_scaled_by_frequency():
    indices, offsets = bags()
    weight = torch.randn(6, 5, dtype=torch.float64).requires_grad_()
    for mode in ("sum", "mean"):
        # PyTorch divides every row by the frequency of the first one; each row has its own.
        expected = functional.embedding_bag(indices, weight, offsets, mode=mode)
        grad = torch.randn(expected.shape, dtype=torch.float64)
        (wanted,) = torch.autograd.grad(expected, weight, grad)
        wanted = wanted / torch.bincount(indices, minlength=6).clamp(min=1)[:, None]
        out = torch.zeros(6, 5, dtype=torch.float64)
        call("embedding_bag_backward", grad, indices, offsets, MODES[mode], False, None, -1, True, None, out)
        torch.testing.assert_close(out, wanted)


def test_bag_errors():
    weight, out = torch.zeros(4, 2), torch.zeros(2, 2)
    indices = torch.tensor([0, 1, 2])
    for offsets, message in (
        ([1, 2], r"offsets\[0\] has to be 0"),
        ([0, 4], "offsets must not fall nor exceed the 3 indices; got 4 after 0"),
        ([0, -1], "got -1 after 0"),
    ):
        with pytest.raises(KernelError, match=message) as error:
            call("embedding_bag", weight, indices, torch.tensor(offsets), SUM, False, None, -1, out, None, None)
        assert error.value.kind is RuntimeError
    with pytest.raises(KernelError, match="for mode='sum' alone"):
        call("embedding_bag", weight, indices, torch.tensor([0, 1]), MEAN, False, torch.ones(3), -1, out, None, None)
    with pytest.raises(KernelError, match="index 4 is out of bounds for dimension 0 with size 4"):
        call("embedding_bag", weight, indices + 2, torch.tensor([0, 1]), SUM, False, None, -1, out, None, None)
    with pytest.raises(KernelError, match=r"expected an output of dtype float32 and shape \[1, 2\]"):
        call("embedding_bag", weight, indices, torch.tensor([0]), SUM, False, None, -1, out, None, None)
    assert describe(weight).dtype == 8
