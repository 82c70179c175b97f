"""Counting masks, nonzero, masked_select and masked_scatter against PyTorch."""

from __future__ import annotations

import ctypes

import pytest

pytest.importorskip("torch")

from kernel_ctypes import DTYPES, KernelError, call, describe, layouts, lib, sample, torch, with_threads

SHAPES = [
    (),
    (1,),
    (7,),
    (0,),
    (3, 0, 2),
    (3, 4),
    (2, 3, 5),
    (1024,),
    (1025,),
    (5000,),
    (40, 3, 50),
    (2, 2047),
    (70, 300),
]


def counted(mask):
    blocks = lib.rl_mask_blocks(ctypes.c_int64(mask.owner.numel()))
    offsets = torch.full((blocks + 1,), -7, dtype=torch.int64)
    count = ctypes.c_int64(-1)
    call("mask_count", mask, ctypes.c_void_p(offsets.data_ptr()), ctypes.byref(count))
    assert offsets[-1] == -7
    return ctypes.c_void_p(offsets.data_ptr()), count.value, offsets


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_count_and_nonzero(dtype, shape):
    x = sample(dtype, *shape, low=-1, high=2)
    for tensor, view in layouts(x):
        expected = tensor.nonzero()
        pointer, count, _offsets = counted(view)
        assert count == expected.shape[0]
        for offsets in (pointer, None):
            for out in (
                torch.zeros(count, len(shape), dtype=torch.int64),
                torch.zeros(len(shape), count, dtype=torch.int64).t(),
            ):
                call("nonzero", view, offsets, out)
                assert torch.equal(out, expected)


@pytest.mark.parametrize("shape", [(5000,), (70, 300)])
@pytest.mark.parametrize("density", [0.0, 0.01, 0.5, 1.0])
def test_densities_and_threads(shape, density):
    mask = torch.rand(shape, generator=torch.Generator().manual_seed(3)) < density
    expected = mask.nonzero()
    for threads in (1, 2, 4):
        out = torch.zeros_like(expected)
        with_threads(threads, lambda out=out: call("nonzero", mask, None, out))
        assert torch.equal(out, expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_masked_select_and_scatter(dtype, shape):
    x = sample(dtype, *shape)
    mask = sample(torch.bool, *shape, seed=1)
    expected = x.masked_select(mask)
    source = sample(dtype, expected.numel() + 3, seed=2)
    wanted = x.masked_scatter(mask, source)
    for _, view in layouts(x):
        for _, mask_view in layouts(mask):
            pointer, count, _offsets = counted(mask_view)
            for offsets in (pointer, None):
                out = torch.zeros(count, dtype=dtype)
                call("masked_select", view, mask_view, offsets, out)
                assert torch.equal(out, expected)
            got = x.clone()
            call("masked_scatter", got, mask_view, pointer, source)
            assert torch.equal(got, wanted)
    spaced = torch.zeros(2 * expected.numel(), dtype=dtype)[::2]
    call("masked_select", x, mask, None, spaced)
    assert torch.equal(spaced, expected)
    if len(shape) == 2:
        got = x.t().contiguous().t()
        call("masked_scatter", got, mask, None, source.flip(0).contiguous().flip(0))
        assert torch.equal(got, wanted)
        call("masked_scatter", got, mask, None, source.repeat(2, 1)[:, : expected.numel() + 1].t()[:, :1])
        assert torch.equal(got, wanted)


def test_broadcast_mask():
    x = sample(torch.float32, 3, 4)
    row = torch.tensor([True, False, True, True]).expand(3, 4)
    out = torch.zeros(9)
    call("masked_select", x, row, None, out)
    assert torch.equal(out, x[row])


def test_nan_and_negative_zero():
    x = torch.tensor([0.0, -0.0, float("nan"), 1.0])
    out = torch.zeros(2, 1, dtype=torch.int64)
    call("nonzero", x, None, out)
    assert out.flatten().tolist() == [2, 3]


def test_bool_memory_that_holds_other_bytes():
    mask = torch.tensor([0, 2, 255, 0, 1] * 999, dtype=torch.uint8).view(torch.bool)
    _pointer, count, _offsets = counted(describe(mask))
    assert count == 3 * 999


def test_errors():
    x = torch.zeros(4)
    mask = torch.tensor([True, False, True, True])
    with pytest.raises(KernelError, match="the mask has 3 elements set, and source has only 2") as error:
        call("masked_scatter", x, mask, None, torch.ones(2))
    assert error.value.kind is RuntimeError
    assert (x == 0).all()
    with pytest.raises(KernelError, match="expected a mask of dtype bool, got uint8"):
        call("masked_select", x, mask.view(torch.uint8), None, torch.zeros(3))
    with pytest.raises(KernelError, match=r"expected an output of shape \[3\], got \[2\]"):
        call("masked_select", x, mask, None, torch.zeros(2))
    with pytest.raises(KernelError, match=r"expected an int64 output of shape \[3, 1\]"):
        call("nonzero", mask, None, torch.zeros(2, 1, dtype=torch.int64))
