"""Normalisation layers against PyTorch in float64: values, gradients, layouts, extreme inputs, numbers of threads."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from kernel_ctypes import KernelError, call, layouts, torch, with_threads

torch.set_num_threads(1)

F = torch.nn.functional
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
TOLERANCE = {torch.float16: 3e-3, torch.bfloat16: 2e-2, torch.float32: 3e-6, torch.float64: 1e-12}


def randn(shape, dtype, seed, scale=1.0, shift=0.0):
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(shape, dtype=torch.float64, generator=generator) * scale + shift).to(dtype)


def leaf(x):
    return None if x is None else x.double().clone().requires_grad_()


def empty(x, dtype=None):
    return None if x is None else torch.full(x.shape, 7.0).to(dtype or x.dtype)


def close(actual, expected, tol, atol=None):
    expected = expected.to(actual.dtype)
    torch.testing.assert_close(actual, expected, rtol=tol, atol=tol if atol is None else atol, equal_nan=True)


def stat_dtype(dtype):
    return torch.float64 if dtype == torch.float64 else torch.float32


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize(
    "shape, dims",
    [
        ((3,), 1),
        ((5, 4), 1),
        ((7, 33), 1),
        ((2, 3, 40), 2),
        ((2, 3, 40), 1),
        ((300, 70), 1),
        ((3, 6000), 1),
        ((0, 4), 1),
    ],
)
def test_layer_norm(shape, dims, affine, dtype):
    x, g = randn(shape, dtype, 0, 2, 3), randn(shape, dtype, 1)
    w, b = (randn(shape[-dims:], dtype, 2), randn(shape[-dims:], dtype, 3)) if affine else (None, None)
    xs, ws, bs = leaf(x), leaf(w), leaf(b)
    expected = F.layer_norm(xs, shape[-dims:], ws, bs, 1e-5)
    expected.backward(g.double())
    tol = TOLERANCE[dtype]
    rows = shape[: len(shape) - dims]
    for values, descriptor in layouts(x):
        if not torch.equal(values, x):
            continue
        y, mean, rstd = empty(x), torch.zeros(rows, dtype=stat_dtype(dtype)), torch.zeros(rows, dtype=stat_dtype(dtype))
        call("layer_norm", descriptor, dims, w, b, 1e-5, y, mean, rstd)
        close(y, expected.detach(), tol)
        flat = x.double().flatten(len(rows))
        if x.numel() == 0:
            continue
        close(mean, flat.mean(-1), 1e-6)
        close(rstd, 1 / (flat.var(-1, correction=0) + 1e-5).sqrt(), 1e-6)
        dx, dw, db = empty(x), empty(w), empty(b)
        call("layer_norm_backward", g, descriptor, dims, mean, rstd, w, dx, dw, db)
        close(dx, xs.grad, tol * 4)
        if affine:
            scale = max(1.0, x.numel() ** 0.5)
            close(dw, ws.grad, tol * 4, tol * scale)
            close(db, bs.grad, tol * 4, tol * scale)
        call("layer_norm_backward", g, descriptor, dims, mean, rstd, w, dx, None, None)
        close(dx, xs.grad, tol * 4)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("shape, dims", [((3,), 1), ((5, 4), 1), ((2, 3, 40), 2), ((300, 70), 1)])
def test_rms_norm(shape, dims, affine, dtype):
    x, g = randn(shape, dtype, 0, 2, 1), randn(shape, dtype, 1)
    w = randn(shape[-dims:], dtype, 2) if affine else None
    xs, ws = leaf(x), leaf(w)
    expected = F.rms_norm(xs, shape[-dims:], ws, 1e-6)
    expected.backward(g.double())
    tol = TOLERANCE[dtype]
    y, rstd = empty(x), torch.zeros(shape[: len(shape) - dims], dtype=stat_dtype(dtype))
    call("rms_norm", x, dims, w, 1e-6, y, rstd)
    close(y, expected.detach(), tol)
    dx, dw = empty(x), empty(w)
    call("rms_norm_backward", g, x, dims, rstd, w, dx, dw)
    close(dx, xs.grad, tol * 4)
    if affine:
        close(dw, ws.grad, tol * 4, tol * max(1.0, x.numel() ** 0.5))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize(
    "shape, groups",
    [((2, 6), 3), ((2, 6, 5), 2), ((3, 8, 4, 5), 1), ((3, 8, 4, 5), 8), ((4, 6, 70, 3), 3), ((0, 6, 2), 3)],
)
def test_group_norm(shape, groups, affine, dtype):
    x, g = randn(shape, dtype, 0, 2, 1), randn(shape, dtype, 1)
    w, b = (randn(shape[1:2], dtype, 2), randn(shape[1:2], dtype, 3)) if affine else (None, None)
    xs, ws, bs = leaf(x), leaf(w), leaf(b)
    expected = F.group_norm(xs, groups, ws, bs, 1e-5) if x.numel() else xs * 0
    expected.backward(g.double())
    tol = TOLERANCE[dtype]
    for values, descriptor in layouts(x):
        if not torch.equal(values, x):
            continue
        y, mean, rstd = empty(x), torch.zeros(shape[0], groups), torch.zeros(shape[0], groups)
        if dtype == torch.float64:
            mean, rstd = mean.double(), rstd.double()
        call("group_norm", descriptor, groups, w, b, 1e-5, y, mean, rstd)
        close(y, expected.detach(), tol)
        dx, dw, db = empty(x), empty(w), empty(b)
        call("group_norm_backward", g, descriptor, groups, mean, rstd, w, dx, dw, db)
        close(dx, xs.grad, tol * 4)
        if affine and x.numel():
            scale = max(1.0, x.numel() ** 0.5)
            close(dw, ws.grad, tol * 4, tol * scale)
            close(db, bs.grad, tol * 4, tol * scale)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(
    "shape", [(5, 3), (200, 70), (4, 3, 7), (3, 5, 6, 7), (16, 4, 40, 30), (2, 600, 3), (3, 2, 2, 3, 4)]
)
def test_batch_norm(shape, training, affine, dtype):
    x, g = randn(shape, dtype, 0, 2, 1), randn(shape, dtype, 1)
    c = shape[1:2]
    w, b = (randn(c, dtype, 2), randn(c, dtype, 3)) if affine else (None, None)
    running = randn(c, torch.float32, 4), randn(c, torch.float32, 5).abs() + 0.5
    tol = TOLERANCE[dtype]
    inputs = list(layouts(x))
    if len(shape) > 2:
        order = [0, *range(2, len(shape)), 1]
        back = [0, len(shape) - 1, *range(1, len(shape) - 1)]
        last = x.permute(order).contiguous().permute(back)
        inputs.append((last, last))
    for values, descriptor in inputs:
        if not torch.equal(values, x):
            continue
        xs, ws, bs = leaf(x), leaf(w), leaf(b)
        expected_running = [r.double() for r in running]
        expected = F.batch_norm(xs, *expected_running, ws, bs, training, 0.1, 1e-5)
        expected.backward(g.double())
        mean, var = (r.clone() for r in running)
        save = [torch.zeros(c, dtype=stat_dtype(dtype)) for _ in range(2)]
        channels_last = descriptor is values
        y = empty(x).permute(order).contiguous().permute(back) if channels_last else empty(x)
        call("batch_norm", descriptor, w, b, mean, var, training, 0.1, 1e-5, y, *save)
        close(y, expected.detach(), tol)
        close(mean, expected_running[0], 1e-6)
        close(var, expected_running[1], 1e-6)
        dx, dw, db = empty(x), empty(w), empty(b)
        call("batch_norm_backward", g, descriptor, w, mean, var, *save, training, 1e-5, dx, dw, db)
        close(dx, xs.grad, tol * 4)
        if affine:
            scale = max(1.0, x.numel() ** 0.5)
            close(dw, ws.grad, tol * 4, tol * scale)
            close(db, bs.grad, tol * 4, tol * scale)


def test_batch_norm_without_running_statistics():
    x = randn((8, 3, 4), torch.float32, 0)
    y = empty(x)
    call("batch_norm", x, None, None, None, None, True, 0.1, 1e-5, y, None, None)
    close(y, F.batch_norm(x, None, None, training=True), 1e-5)
    call("batch_norm", torch.zeros(0, 3, 4), None, None, None, None, True, 0.1, 1e-5, torch.zeros(0, 3, 4), None, None)
    with pytest.raises(KernelError, match="evaluation needs running statistics") as error:
        call("batch_norm", x, None, None, None, None, False, 0.1, 1e-5, y, None, None)
    assert error.value.kind is ValueError


@pytest.mark.parametrize(
    "dtype, scale",
    [
        (torch.float32, 1e30),
        (torch.float32, 1e38),
        (torch.float32, 1e-30),
        (torch.float32, 1e6),
        (torch.bfloat16, 1e30),
        (torch.float64, 1e200),
        (torch.float64, 1e-200),
    ],
)
def test_extreme_inputs_give_the_exact_answer(dtype, scale):
    base = torch.tensor([[1.0, -1.0, 3.0, 0.5], [2.0, 2.0, -3.0, 1.0], [-3.0, 3.0, -2.0, 0.25]], dtype=torch.float64)
    x = (base * scale).to(dtype)
    eps = 0.0 if scale < 1 else 1e-5
    exact = x.double() / scale
    exact_eps = eps / scale / scale
    tol = {torch.float32: 1e-6, torch.bfloat16: 1e-2, torch.float64: 1e-14}[dtype]
    expected = F.layer_norm(exact, (4,), eps=exact_eps)
    y = empty(x)
    mean, rstd = torch.zeros(3, dtype=stat_dtype(dtype)), torch.zeros(3, dtype=stat_dtype(dtype))
    call("layer_norm", x, 1, None, None, eps, y, mean, rstd)
    close(y, expected, tol)
    call("rms_norm", x, 1, None, eps, y, None)
    close(y, exact / (exact.pow(2).mean(1, keepdim=True) + exact_eps).sqrt(), tol)
    call("group_norm", x.reshape(1, 3, 4), 3, None, None, eps, y.view(1, 3, 4), None, None)
    close(y, expected, tol)
    if dtype != torch.float64:
        z = empty(x.t())
        call("batch_norm", x.t(), None, None, None, None, True, 0.1, eps, z.view(4, 3), None, None)
        close(z.t(), expected, tol)
    g = randn((3, 4), dtype, 9)
    leaf_x = exact.clone().requires_grad_()
    F.layer_norm(leaf_x, (4,), eps=exact_eps).backward(g.double())
    dx = empty(x)
    call("layer_norm", x, 1, None, None, eps, y, mean, rstd)
    if 1e-30 <= scale <= 1e30:
        call("layer_norm_backward", g, x, 1, mean, rstd, None, dx, None, None)
        close(dx.double() * scale, leaf_x.grad.to(dtype).double(), tol * 10)


@pytest.mark.parametrize("value", [0.1, 1e4 + 1 / 3, -7.7e-7, 3e30])
def test_equal_values(value):
    x = torch.full((3, 1000), value)
    y, mean, rstd = empty(x), torch.zeros(3), torch.zeros(3)
    call("layer_norm", x, 1, None, None, 1e-5, y, mean, rstd)
    assert (mean == x[0, 0]).all() and (y == 0).all()
    close(rstd, torch.full((3,), 1e-5).rsqrt(), 1e-6)


def test_bits_do_not_depend_on_threads():
    x, g, w, b = (
        randn((64, 32, 20, 20), torch.float32, 0),
        randn((64, 32, 20, 20), torch.float32, 1),
        torch.randn(32),
        torch.randn(32),
    )

    def run():
        results = []
        for view, name, args in (
            (x, "batch_norm", (None, None, True, 0.1)),
            (x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2), "batch_norm", (None, None, True, 0.1)),
        ):
            y, mean, rstd = empty(x), torch.zeros(32), torch.zeros(32)
            call(name, view, w, b, *args, 1e-5, y, mean, rstd)
            dx, dw, db = empty(x), empty(w), empty(b)
            call("batch_norm_backward", g, view, w, None, None, mean, rstd, True, 1e-5, dx, dw, db)
            results += [y, mean, rstd, dx, dw, db]
        y, mean, rstd = empty(x), torch.zeros(64, 4), torch.zeros(64, 4)
        call("group_norm", x, 4, w, b, 1e-5, y, mean, rstd)
        dx, dw, db = empty(x), empty(w), empty(b)
        call("group_norm_backward", g, x, 4, mean, rstd, w, dx, dw, db)
        results += [y, mean, dx, dw, db]
        rows, grads = x.view(-1, 400), g.view(-1, 400)
        y, mean, rstd = empty(rows), torch.zeros(2048), torch.zeros(2048)
        call("layer_norm", rows, 1, None, None, 1e-5, y, mean, rstd)
        dx, dw, db = empty(rows), torch.zeros(400), torch.zeros(400)
        call("layer_norm_backward", grads, rows, 1, mean, rstd, None, dx, dw, db)
        return [*results, y, mean, rstd, dx, dw, db]

    first, *others = [with_threads(n, run) for n in (1, 2, 4)]
    for other in others:
        for a, c in zip(first, other, strict=True):
            assert torch.equal(a, c)


def test_refuses():
    x = torch.ones(2, 3)
    for args, kind, text in (
        (("layer_norm", x.long(), 1, None, None, 1e-5, x, None, None), TypeError, "layer_norm: .* got int64"),
        (("layer_norm", x, 3, None, None, 1e-5, x, None, None), ValueError, "expected 1 to 2, got 3"),
        (
            ("layer_norm", x, 1, torch.ones(4), None, 1e-5, x, None, None),
            ValueError,
            r"weight .* expected 3 elements, got shape \[4\]",
        ),
        (("group_norm", x, 2, None, None, 1e-5, x, None, None), ValueError, "expected a multiple of 2, got 3 channels"),
        (
            ("batch_norm", torch.ones(3), None, None, None, None, True, 0.1, 1e-5, x, None, None),
            ValueError,
            r"expected \[N, C, ...\], got \[3\]",
        ),
    ):
        with pytest.raises(KernelError, match=text) as error:
            call(*args)
        assert error.value.kind is kind
