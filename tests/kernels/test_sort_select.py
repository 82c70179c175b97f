"""topk, kthvalue, median, nanmedian and mode, which follow from the stable order, against PyTorch."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from kernel_ctypes import REAL, KernelError, call, layouts, sample, torch, with_threads
from test_sort import NAN, bits, random, sorted_by

KTH, MEDIAN, NANMEDIAN, MODE = range(4)
SHAPES = [
    ((), 0),
    ((1,), 0),
    ((7,), 0),
    ((4, 5), 0),
    ((4, 5), 1),
    ((3, 20, 33), 1),
    ((6, 1500), 1),
    ((1500, 6), 0),
    ((0, 3), 1),
]


def kept(values, indices, dim, keep):
    return values.narrow(dim, *keep) if values.dim() else values, indices.narrow(
        dim, *keep
    ) if indices.dim() else indices


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize(("shape", "dim"), SHAPES)
def test_topk(dtype, largest, shape, dim):
    n = shape[dim] if shape else 1
    for x in (random(dtype, *shape), sample(dtype, *shape)):
        for k in {0, 1, n // 3, min(n, 10), n} if shape else {1}:
            for tensor, view in layouts(x):
                values, indices = kept(*sorted_by(tensor, dim, largest), dim, (0, k))
                got_values, got_indices = torch.zeros_like(values), torch.zeros_like(indices)
                call("topk", view, dim, k, largest, got_values, got_indices)
                assert torch.equal(got_indices, indices)
                assert torch.equal(bits(got_values), bits(values))


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.float64, torch.int8, torch.float16, torch.int16])
@pytest.mark.parametrize("order", ["random", "ascending", "descending", "equal"])
def test_topk_of_long_rows(dtype, order):
    n = 200_001
    if order == "random":
        x = random(dtype, n)
    else:
        x = (
            torch.full((n,), 7)
            if order == "equal"
            else torch.arange(n)
            if order == "ascending"
            else torch.arange(n).flip(0)
        )
        x = x.to(dtype)
    for k in (1, 10, 3000, 100_000):
        for largest in (False, True):
            values, indices = kept(*sorted_by(x, 0, largest), 0, (0, k))
            for threads in (1, 3):
                got_values, got_indices = torch.zeros_like(values), torch.zeros_like(indices)
                with_threads(threads, lambda a=got_values, b=got_indices: call("topk", x, 0, k, largest, a, b))
                assert torch.equal(got_indices, indices)
                assert torch.equal(bits(got_values), bits(values))


def select(view, like, dim, kind, k=0):
    shape = [1 if d == dim else s for d, s in enumerate(like.shape)]
    values, indices = torch.zeros(shape, dtype=like.dtype), torch.zeros(shape, dtype=torch.int64)
    call("select", view, dim, kind, k, values, indices)
    only = torch.zeros_like(values)
    call("select", view, dim, kind, k, only, None)
    assert torch.equal(bits(only), bits(values))
    return values, indices


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize(("shape", "dim"), SHAPES)
def test_kthvalue_and_medians(dtype, shape, dim):
    n = shape[dim] if shape else 1
    for x in (random(dtype, *shape), sample(dtype, *shape)):
        for tensor, view in layouts(x):
            order = sorted_by(tensor, dim, False)
            for k in {1, n // 2 + 1, n}:
                values, indices = kept(*order, dim, (k - 1, 1))
                got_values, got_indices = select(view, tensor, dim, KTH, k)
                assert torch.equal(got_indices, indices)
                assert torch.equal(bits(got_values), bits(values))
            if dtype == torch.bool:
                continue
            for kind, name in ((MEDIAN, "median"), (NANMEDIAN, "nanmedian")):
                wanted = getattr(tensor, name)(dim=dim, keepdim=True)
                got_values, got_indices = select(view, tensor, dim, kind)
                torch.testing.assert_close(got_values, wanted.values, equal_nan=True, rtol=0, atol=0)
                # PyTorch may name another element that is equal; the first NaN is fixed.
                at = tensor.gather(dim, got_indices) if shape else tensor
                torch.testing.assert_close(at, wanted.values, equal_nan=True, rtol=0, atol=0)
                if dtype.is_floating_point and kind == MEDIAN:
                    nan = wanted.values.isnan()
                    assert torch.equal(got_indices[nan], wanted.indices[nan])


def test_nans_in_medians():
    x = torch.tensor([3.0, NAN, 1.0, -NAN, 2.0])
    assert select(x, x, 0, MEDIAN)[1].item() == 1
    assert select(x, x, 0, NANMEDIAN)[0].item() == 2
    x = torch.tensor([-NAN, NAN])
    values, indices = select(x, x, 0, NANMEDIAN)
    assert values.isnan().all()
    assert indices.item() == 0


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize(("shape", "dim"), SHAPES)
def test_mode(dtype, shape, dim):
    x = sample(dtype, *shape)
    for tensor, view in layouts(x):
        values, indices = select(view, tensor, dim, MODE)
        wanted = tensor.mode(dim, keepdim=True).values
        assert torch.equal(values, wanted)
        if shape:
            positions = torch.arange(shape[dim]).view([-1 if d == dim else 1 for d in range(len(shape))])
            last = torch.where(tensor == wanted, positions, -1).amax(dim, keepdim=True)
            assert torch.equal(indices, last)


@pytest.mark.parametrize("dtype", [d for d in REAL if d != torch.bool])
def test_select_of_long_rows(dtype):
    for x in (random(dtype, 300_001), sample(dtype, 300_001)):
        values, indices = sorted_by(x, 0, False)
        for view in (x, x.repeat_interleave(3)[::3]):
            for k in (1, 1000, 150_001, 300_000, 300_001):
                got_values, got_indices = select(view, x, 0, KTH, k)
                assert got_indices.item() == indices[k - 1].item()
                assert torch.equal(bits(got_values), bits(values[k - 1 : k]))
        nans = int(x.isnan().sum()) if dtype.is_floating_point else 0
        place = indices[(300_001 - nans - 1) // 2]
        assert select(x, x, 0, NANMEDIAN)[1].item() == place.item()
        assert select(x, x, 0, MEDIAN)[1].item() == (x.isnan().nonzero()[0].item() if nans else place.item())


@pytest.mark.parametrize("dtype", [torch.int32, torch.float32])
def test_select_of_millions(dtype):
    x = random(dtype, (1 << 22) + 3)
    values, indices = sorted_by(x, 0, False)
    for k in (1, 1 << 21, (1 << 21) + 1, x.numel() - 6, x.numel()):
        got_values, got_indices = select(x, x, 0, KTH, k)
        assert got_indices.item() == indices[k - 1].item()
        assert torch.equal(bits(got_values), bits(values[k - 1 : k]))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.float16, torch.bfloat16, torch.int32])
def test_mode_of_long_rows(dtype):
    x = torch.randint(-100, 100, (300_001,), generator=torch.Generator().manual_seed(3)).abs().to(dtype)
    if dtype.is_floating_point:
        x[5:20000] = NAN  # no two of them are equal
    wanted = x.mode(0).values
    values, indices = select(x, x, 0, MODE)
    assert values.item() == wanted.item() and indices.item() == (x == wanted).nonzero()[-1].item()
    if dtype.is_floating_point:
        assert select(x[:100_000] * NAN, x[:100_000], 0, MODE)[1].item() == 0
        x[:] = NAN
        assert select(x, x, 0, MODE)[1].item() == 0


def test_errors():
    x, out, indices = torch.zeros(3, 4), torch.zeros(3, 1), torch.zeros(3, 1, dtype=torch.int64)
    with pytest.raises(KernelError, match="selected index k out of range; expected 0 to 4, got 5") as error:
        call("topk", x, 1, 5, True, out, indices)
    assert error.value.kind is RuntimeError
    for k in (0, 5):
        with pytest.raises(KernelError, match="out of range for dimension 1; expected 1 to 4"):
            call("select", x, 1, KTH, k, out, indices)
    with pytest.raises(KernelError, match="Expected reduction dim 1 to have non-zero size") as error:
        call("select", x[:, :0], 1, MEDIAN, 0, out, indices)
    assert error.value.kind is IndexError
