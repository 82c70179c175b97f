"""Sorting, topk, kthvalue, median, nanmedian and mode against PyTorch."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from kernel_ctypes import REAL, KernelError, call, layouts, sample, torch, with_threads

NAN = float("nan")


def random(dtype, *shape, seed=0):
    """Values over the whole range of the dtype, with NaN, infinities and both zeros among floats."""
    generator = torch.Generator().manual_seed(seed)
    if dtype.is_floating_point:
        x = torch.randn(shape, generator=generator).to(dtype)
        if x.numel() > 8:
            flat = x.view(-1)
            special = torch.tensor([NAN, -NAN, float("inf"), -float("inf"), 0.0, -0.0, NAN, 0.0], dtype=dtype)
            flat[torch.randperm(x.numel(), generator=generator)[:8]] = special
        return x
    if dtype == torch.bool:
        return torch.randint(0, 2, shape, generator=generator).bool()
    info = torch.iinfo(dtype)
    return torch.randint(info.min, info.max, shape, generator=generator, dtype=torch.int64).to(dtype)


def bits(x):
    return x.contiguous().flatten().view(torch.uint8)


def sorted_by(x, dim, descending):
    """PyTorch's stable order."""
    indices = x.sort(dim=dim, descending=descending, stable=True).indices
    # Moved as integers: PyTorch may change the bits of a NaN on the way.
    carrier = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[x.element_size()]
    return (x.view(carrier).gather(dim, indices).view(x.dtype) if x.dim() else x), indices


SHAPES = [
    ((), 0), ((1,), 0), ((0,), 0), ((3, 0), 1), ((0, 3), 1), ((3, 0), 0), ((2,), 0), ((7,), 0), ((128,), 0),
    ((129,), 0), ((700,), 0), ((2500,), 0), ((4, 5), 0), ((4, 5), 1), ((40, 50), 0), ((3, 20, 33), 1),
    ((3, 4, 150), 2), ((300, 20), 0),
]  # fmt: skip


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize(("shape", "dim"), SHAPES)
def test_sort(dtype, descending, shape, dim):
    for x in (random(dtype, *shape), sample(dtype, *shape)):
        values, indices = sorted_by(x, dim, descending)
        for tensor, view in layouts(x):
            values, indices = sorted_by(tensor, dim, descending)
            got_values, got_indices = torch.zeros_like(values), torch.zeros_like(indices)
            call("sort", view, dim, descending, got_values, got_indices)
            assert torch.equal(got_indices, indices)
            assert torch.equal(bits(got_values), bits(values))
        only = torch.zeros_like(values)
        call("sort", x, dim, descending, only, None)
        assert torch.equal(bits(only), bits(sorted_by(x, dim, descending)[0]))
        if len(shape) == 2:
            got = torch.zeros(shape[::-1], dtype=torch.int64).t()
            call("sort", x, dim, descending, None, got)
            assert torch.equal(got, sorted_by(x, dim, descending)[1])


def large(kind, n, dtype):
    generator = torch.Generator().manual_seed(1)
    if kind == "random":
        return random(dtype, n)
    if kind == "few":
        return torch.randint(0, 5, (n,), generator=generator).to(dtype)
    if kind == "equal":
        return torch.full((n,), 3).to(dtype)
    if kind == "ascending":
        return torch.arange(n).to(dtype)
    if kind == "descending":
        return torch.arange(n).flip(0).to(dtype)
    # An outlier, and all the rest alike in their leading bits.
    x = torch.randint(0, 1000, (n,), generator=generator).to(dtype)
    x[n // 2] = torch.finfo(dtype).max if dtype.is_floating_point else torch.iinfo(dtype).min
    return x


LARGE = [torch.int8, torch.int16, torch.int32, torch.int64, torch.bfloat16, torch.float16, torch.float32, torch.float64]


@pytest.mark.parametrize("dtype", LARGE)
@pytest.mark.parametrize("kind", ["random", "few", "equal", "ascending", "descending", "outlier"])
@pytest.mark.parametrize("n", [130_000, 131_073, 300_001])
def test_large(dtype, kind, n):
    x = large(kind, n, dtype)
    for descending in (False, True):
        values, indices = sorted_by(x, 0, descending)
        for threads in (1, 4):
            got_values, got_indices = torch.zeros_like(values), torch.zeros_like(indices)
            with_threads(threads, lambda a=got_values, b=got_indices, d=descending: call("sort", x, 0, d, a, b))
            assert torch.equal(got_indices, indices)
            assert torch.equal(bits(got_values), bits(values))
        only, apart = torch.zeros_like(values), torch.zeros(n, 2, dtype=dtype)
        call("sort", x, 0, descending, only, None)
        assert torch.equal(bits(only), bits(values))
        call("sort", x.repeat_interleave(2)[::2], 0, descending, apart[:, 1], None)
        assert torch.equal(bits(apart[:, 1]), bits(values)) and not apart[:, 0].any()


def test_keys_that_do_not_fit_beside_their_index():
    # 64 significant bits, and runs that differ only in the lowest.
    n = 5000
    low = torch.randint(0, 8, (n,), generator=torch.Generator().manual_seed(2))
    for x in (
        torch.where(torch.arange(n) % 2 == 0, low - 2**63, low + 2**62),
        torch.cat([low - 2**63, torch.tensor([2**63 - 1])]),
    ):
        values, indices = sorted_by(x, 0, False)
        got_values, got_indices = torch.zeros_like(values), torch.zeros_like(indices)
        call("sort", x, 0, False, got_values, got_indices)
        assert torch.equal(got_values, values)
        assert torch.equal(got_indices, indices)


def test_nan_of_either_sign_is_greatest():
    x = torch.tensor([2.0, -NAN, 1.0, NAN, -0.0, 0.0])
    values, indices = torch.zeros(6), torch.zeros(6, dtype=torch.int64)
    call("sort", x, 0, False, values, indices)
    assert indices.tolist() == [4, 5, 2, 0, 1, 3]
    assert torch.equal(bits(values), bits(x[indices]))
    call("sort", x, 0, True, values, indices)
    assert indices.tolist() == [1, 3, 0, 2, 4, 5]


@pytest.mark.parametrize("dtype", REAL)
def test_order_of_slices(dtype):
    x = sample(dtype, 30, 2, 3, low=0, high=2)
    for dim in range(3):
        order = torch.zeros(x.shape[dim], dtype=torch.int64)
        call("sort_slices", x, dim, order)
        rows = x.movedim(dim, 0).flatten(1).tolist()
        assert order.tolist() == sorted(range(len(rows)), key=lambda i, rows=rows: rows[i])


def test_errors():
    x = torch.zeros(3, 4)
    out = torch.zeros(3, 4)
    with pytest.raises(KernelError, match="expected a real dtype, got complex64") as error:
        call("sort", torch.zeros(3, dtype=torch.complex64), 0, False, None, None)
    assert error.value.kind is TypeError
    with pytest.raises(KernelError, match="expected values of dtype float32, got float64"):
        call("sort", x, 0, False, out.double(), None)
    with pytest.raises(KernelError, match=r"expected an output of src's shape \[3, 4\] but 3 along dimension 0"):
        call("sort", x, 0, False, out[:2], None)
    with pytest.raises(KernelError, match="no dimension 2"):
        call("sort", x, 2, False, out, None)
