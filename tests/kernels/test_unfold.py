"""im2col, col2im and the gradient of Tensor.unfold against PyTorch."""

from __future__ import annotations

import ctypes

import pytest

pytest.importorskip("torch")

from kernel_ctypes import DTYPES, KernelError, call, layouts, sample, torch, with_threads


class Window(ctypes.Structure):
    """rl_window."""

    _fields_ = [(name, ctypes.c_int64 * 2) for name in ("kernel", "dilation", "padding", "stride")]

    def __init__(self, kernel, dilation=(1, 1), padding=(0, 0), stride=(1, 1)):
        super().__init__(*[(ctypes.c_int64 * 2)(*v) for v in (kernel, dilation, padding, stride)])
        self.options = {"dilation": dilation, "padding": padding, "stride": stride}


WINDOWS = [
    ((2, 3, 5, 6), Window((2, 3))),
    ((1, 1, 4, 4), Window((3, 3), padding=(1, 1))),
    ((2, 2, 7, 9), Window((3, 2), (2, 3), (2, 1), (2, 3))),
    ((1, 2, 3, 3), Window((1, 1), padding=(2, 3), stride=(3, 2))),
    ((0, 2, 4, 4), Window((2, 2))),
    ((2, 1, 2, 2), Window((5, 5), padding=(3, 4))),
    ((3, 8, 40, 40), Window((3, 3), padding=(1, 1))),
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "window"), WINDOWS)
def test_im2col_and_col2im(dtype, shape, window):
    x = sample(dtype, *shape)
    kernel = tuple(window.kernel)
    # Complex128 takes all values exactly, and PyTorch lacks some dtypes.
    wide = x.to(torch.complex128)
    if shape[0]:
        columns = torch.nn.functional.unfold(wide, kernel, **window.options)
    else:
        columns = torch.zeros(0, 8, 9, dtype=torch.complex128)
    expected = (columns.real if not dtype.is_complex else columns).to(dtype)
    for _, view in layouts(x):
        out = torch.ones_like(expected)
        call("im2col", view, ctypes.byref(window), out)
        assert torch.equal(out, expected)
        spaced = torch.ones(*expected.shape[:2], 2 * expected.shape[2], dtype=dtype)[..., ::2]
        call("im2col", view, ctypes.byref(window), spaced)
        assert torch.equal(spaced, expected)

    columns = sample(dtype, *expected.shape, seed=1)
    if shape[0]:
        image = torch.nn.functional.fold(columns.to(torch.complex128), shape[2:], kernel, **window.options)
    else:
        image = torch.zeros(shape, dtype=torch.complex128)
    image = image if dtype.is_complex else image.real
    if dtype in (torch.uint8, torch.int8):
        image = image.to(torch.int64)
    for _, view in layouts(columns):
        for threads in (1, 4):
            out = torch.ones(shape, dtype=dtype)
            with_threads(threads, lambda out=out, view=view: call("col2im", view, ctypes.byref(window), out))
            assert torch.equal(out, image.to(dtype))


def test_errors():
    with pytest.raises(KernelError, match="would not be positive") as error:
        call("im2col", torch.zeros(1, 1, 2, 2), ctypes.byref(Window((3, 3))), torch.zeros(1, 9, 0))
    assert error.value.kind is RuntimeError
    with pytest.raises(KernelError, match=r"expected columns of shape \[1, 4, 4\], got \[1, 4, 5\]"):
        call("im2col", torch.zeros(1, 1, 3, 3), ctypes.byref(Window((2, 2))), torch.zeros(1, 4, 5))
    with pytest.raises(KernelError, match="stride above 0"):
        call("im2col", torch.zeros(1, 1, 3, 3), ctypes.byref(Window((2, 2), stride=(0, 1))), torch.zeros(1, 4, 4))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64, torch.bfloat16])
@pytest.mark.parametrize(("shape", "dim", "size", "step"), [
    ((7,), 0, 3, 1), ((7,), 0, 3, 2), ((7,), 0, 2, 3), ((4, 6, 5), 1, 4, 2), ((4, 6, 5), 0, 4, 1), ((4, 6, 5), 2, 1, 1),
    ((2, 3), 1, 0, 1),
])  # fmt: skip
def test_unfold_backward(dtype, shape, dim, size, step):
    x = sample(dtype, *shape).requires_grad_()
    windows = x.unfold(dim, size, step)
    grad = sample(dtype, *windows.shape, seed=1)
    (expected,) = torch.autograd.grad(windows, x, grad)
    for _, view in layouts(grad):
        out = torch.ones(shape, dtype=dtype)
        call("unfold_backward", view, dim, size, step, out)
        assert torch.equal(out, expected)
