"""Losses and their gradients against PyTorch in float64."""

from __future__ import annotations

import math

import pytest

pytest.importorskip("torch")

from kernel_ctypes import KernelError, call, layouts, torch, with_threads

torch.set_num_threads(1)

F = torch.nn.functional
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
TOLERANCE = {torch.float16: 2e-3, torch.bfloat16: 1.6e-2, torch.float32: 2e-6, torch.float64: 1e-13}
REDUCTIONS = ["none", "mean", "sum"]
INF = math.inf


def randn(shape, dtype, seed, scale=2.0):
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(shape, dtype=torch.float64, generator=generator) * scale).to(dtype)


def close(actual, expected, tol):
    torch.testing.assert_close(actual, expected.to(actual.dtype), rtol=tol, atol=tol, equal_nan=True)


def incoming(loss, dtype):
    return randn(loss.shape, dtype, 77)


CLASS_SHAPES = [(5,), (1, 3), (6, 4), (700, 10), (64, 300), (2, 4, 3), (3, 5, 7, 6), (2, 3, 700), (0, 4), (2, 0, 3)]


def classes(shape, ignore):
    target_shape = shape[2:] if len(shape) == 1 else (shape[0], *shape[2:])
    count = shape[0] if len(shape) == 1 else shape[1]
    generator = torch.Generator().manual_seed(5)
    target = torch.randint(0, max(1, count), target_shape, generator=generator)
    if ignore is not None and target.numel() > 2:
        target.view(-1)[::3] = ignore
    return target, count


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("shape", CLASS_SHAPES)
def test_class_losses(shape, weighted, reduction, dtype):
    how = REDUCTIONS.index(reduction)
    tol = TOLERANCE[dtype]
    for ignore in (-100, 1):
        target, count = classes(shape, ignore)
        if 0 in shape and shape[1] == 0:
            target = target[:0].reshape(0, *target.shape[1:])
            shape = (0, *shape[1:])
        w = (randn((count,), dtype, 3).abs() + 0.1) if weighted else None
        x = randn(shape, dtype, 0)
        logits = x.double().clone().requires_grad_()
        wide_w = None if w is None else w.double()
        options = {"weight": wide_w, "ignore_index": ignore, "reduction": reduction}
        class_dim = 0 if len(shape) == 1 else 1
        for smoothing in (None, 0.0, 0.1):
            source = logits.log_softmax(class_dim).detach().requires_grad_() if smoothing is None else logits
            if smoothing is None:
                expected = F.nll_loss(source, target, **options)
            else:
                if 0 in shape:
                    continue
                expected = F.cross_entropy(source, target, label_smoothing=smoothing, **options)
            source.grad = None
            g = incoming(expected, dtype)
            expected.backward(g.double())
            for values, descriptor in layouts(source.detach().to(dtype)):
                if not torch.equal(values, source.detach().to(dtype)):
                    continue
                if smoothing is None and descriptor.shape and shape != tuple(values.shape):
                    continue
                out = torch.full(expected.shape, 7.0).to(dtype)
                total = torch.zeros((), dtype=torch.float64)
                dx = torch.full(shape, 7.0).to(dtype)
                if smoothing is None:
                    call("nll_loss", descriptor, target, w, ignore, how, out, total)
                    call("nll_loss_backward", g, target, w, ignore, how, total, dx)
                else:
                    sums = torch.zeros(target.shape, dtype=torch.float64 if dtype == torch.float64 else torch.float32)
                    call("cross_entropy", descriptor, target, w, ignore, smoothing, how, out, total, sums)
                    call("cross_entropy_backward", g, descriptor, sums, target, w, ignore, smoothing, how, total, dx)
                close(out, expected.detach(), tol * 4)
                close(dx, source.grad, tol * 8)


def test_class_loss_details():
    x = torch.randn(3, 4).log_softmax(1)
    out, total = torch.zeros(()), torch.zeros(())
    call("nll_loss", x, torch.tensor([0, 1, 2], dtype=torch.uint8), None, -100, 1, out, total)
    close(out, F.nll_loss(x, torch.tensor([0, 1, 2])), 1e-6)
    assert total.item() == 3
    call("nll_loss", x, torch.tensor([-100] * 3), None, -100, 1, out, total)
    assert out.isnan() and total.item() == 0
    call("nll_loss", x, torch.tensor([-100] * 3), None, -100, 2, out, None)
    assert out.item() == 0
    confident = torch.tensor([[0.0, -12.0]])
    call("cross_entropy", confident, torch.tensor([0]), None, -100, 0.0, 1, out, None, None)
    close(out, torch.tensor(math.log1p(math.exp(-12.0))), 1e-12)
    large = torch.tensor([[1e38, -1e38, 0.0]])
    call("cross_entropy", large, torch.tensor([0]), None, -100, 0.0, 1, out, None, None)
    assert out.item() == 0


def test_class_losses_refuse():
    x = torch.randn(3, 4)
    out = torch.zeros(())
    good = torch.tensor([0, 1, 2])
    for target, weight, kind, text in (
        (torch.tensor([0, 4, 1]), None, IndexError, "target is out of range; expected 0 to 3 .* got 4 at position 1"),
        (torch.tensor([0, 1, -1]), None, IndexError, "expected 0 to 3 .* got -1 at position 2"),
        (torch.tensor([0, 1]), None, ValueError, r"target has the wrong shape; .*\[3, 4\], got \[2\]"),
        (good, torch.ones(3), ValueError, r"weight has the wrong shape; expected one for each of 4 classes, got \[3\]"),
        (good.int(), None, TypeError, "expected int64 or uint8, got int32"),
    ):
        for name, rest in (("nll_loss", ()), ("cross_entropy", (0.0,))):
            with pytest.raises(KernelError, match=text) as error:
                call(name, x, target, weight, -100, *rest, 1, out, None, *([None] if rest else []))
            assert error.value.kind is kind
    with pytest.raises(KernelError, match="expected one element"):
        call("nll_loss", x, good, None, -100, 1, torch.zeros(3), None)
    with pytest.raises(KernelError, match="target is out of range"):
        call("nll_loss_backward", out, torch.tensor([0, 9, 1]), None, -100, 2, None, torch.zeros(3, 4))


MSE, L1, SMOOTH_L1, HUBER, BCE, BCE_LOGITS, KL, KL_LOG, SOFT_MARGIN = range(9)
KINDS = [
    (MSE, 0.0, lambda x, t, w, pos, r: (x - t) ** 2),
    (L1, 0.0, lambda x, t, w, pos, r: (x - t).abs()),
    (SMOOTH_L1, 0.7, lambda x, t, w, pos, r: F.smooth_l1_loss(x, t, beta=0.7, reduction="none")),
    (SMOOTH_L1, 0.0, lambda x, t, w, pos, r: F.smooth_l1_loss(x, t, beta=0.0, reduction="none")),
    (HUBER, 0.7, lambda x, t, w, pos, r: F.huber_loss(x, t, delta=0.7, reduction="none")),
    (BCE, 0.0, lambda x, t, w, pos, r: F.binary_cross_entropy(x, t, reduction="none")),
    (
        BCE_LOGITS,
        0.0,
        lambda x, t, w, pos, r: F.binary_cross_entropy_with_logits(x, t, pos_weight=pos, reduction="none"),
    ),
    (KL, 0.0, lambda x, t, w, pos, r: F.kl_div(x, t, reduction="none")),
    (KL_LOG, 0.0, lambda x, t, w, pos, r: F.kl_div(x, t, reduction="none", log_target=True)),
    (SOFT_MARGIN, 0.0, lambda x, t, w, pos, r: torch.logaddexp(-t * x, x * 0)),
]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kind, p, formula", KINDS, ids=lambda v: str(v) if not callable(v) else "")
def test_pointwise_losses(kind, p, formula, dtype):
    tol = TOLERANCE[dtype] * 3
    for shape in ((), (7,), (3, 4), (50, 700), (0,)):
        x, t = randn(shape, dtype, 0), randn(shape, dtype, 1)
        if kind in (BCE, KL):
            t = t.double().sigmoid().to(dtype)
            if t.numel() > 2:
                t.view(-1)[0] = 0
        if kind == BCE:
            x = x.double().sigmoid().to(dtype)
            if x.numel() > 2:
                x.view(-1)[:3] = torch.tensor([0.0, 1.0, 0.5]).to(dtype)
        for weighted in (False, True):
            w = randn(shape, dtype, 2) if weighted else None
            pos = randn(shape, dtype, 3).abs() if weighted and kind == BCE_LOGITS else None
            for how, reduction in enumerate(REDUCTIONS):
                source = x.double().clone().requires_grad_()
                terms = formula(source, t.double(), None, None if pos is None else pos.double(), None)
                terms = terms * w.double() if weighted else terms
                expected = terms if how == 0 else getattr(terms, reduction)()
                g = incoming(expected, dtype)
                expected.backward(g.double())
                for values, descriptor in layouts(x):
                    if not torch.equal(values, x):
                        continue
                    out = torch.full(expected.shape, 7.0).to(dtype)
                    call("pointwise_loss", kind, p, descriptor, t, w, pos, how, out)
                    close(out, expected.detach(), tol)
                    dx = torch.full(shape, 7.0).to(dtype)
                    call("pointwise_loss_backward", kind, p, g, descriptor, t, w, pos, how, dx)
                    exact = source.grad
                    if (
                        kind == BCE and x.numel() > 2
                    ):  # at 0 and 1 the derivative is a huge number that depends on rounding
                        exact, dx = exact.reshape(-1)[2:], dx.reshape(-1)[2:]
                    close(dx, exact, tol * 4)


def test_pointwise_details():
    out = torch.zeros(())
    call("pointwise_loss", MSE, 0.0, torch.tensor([1e19, 0.0]), torch.tensor([-1e19, 0.0]), None, None, 1, out)
    close(out, torch.tensor(2e38), 1e-6)
    call(
        "pointwise_loss",
        BCE_LOGITS,
        0.0,
        torch.tensor([1e30, -1e30, 200.0]),
        torch.tensor([1.0, 0.0, 1.0]),
        None,
        None,
        2,
        out,
    )
    assert out.item() == 0
    call("pointwise_loss", MSE, 0.0, torch.zeros(0), torch.zeros(0), None, None, 1, out)
    assert out.isnan()
    x, t = torch.randn(5, 4), torch.randn(4)
    call("pointwise_loss", MSE, 0.0, x, t.expand(5, 4), None, None, 1, out)
    close(out, ((x - t) ** 2).mean(), 1e-6)
    for args, kind, text in (
        (
            (MSE, 0.0, x, t, None, None, 1, out),
            ValueError,
            r"mse_loss: the target has the wrong shape; expected \[5, 4\], got \[4\]",
        ),
        ((MSE, 0.0, x.long(), x, None, None, 1, out), TypeError, "expected floating point, got int64"),
        ((MSE, 0.0, x, x, None, None, 1, x), ValueError, "expected one element"),
        ((99, 0.0, x, x, None, None, 1, out), ValueError, "expected 0 to 8, got 99"),
    ):
        with pytest.raises(KernelError, match=text) as error:
            call("pointwise_loss", *args)
        assert error.value.kind is kind


def test_bits_do_not_depend_on_threads():
    x, t = torch.randn(200000), torch.rand(200000)
    logits, target = torch.randn(20000, 30), torch.randint(0, 30, (20000,))

    def run():
        results = []
        for kind in range(9):
            out = torch.zeros(())
            call("pointwise_loss", kind, 1.0, x.sigmoid() if kind == BCE else x, t, None, None, 1, out)
            results.append(out)
        out, sums, dx = torch.zeros(()), torch.zeros(20000), torch.zeros(20000, 30)
        total = torch.zeros(())
        call("cross_entropy", logits, target, None, -100, 0.1, 1, out, total, sums)
        call("cross_entropy_backward", torch.ones(()), logits, sums, target, None, -100, 0.1, 1, total, dx)
        return [*results, out, sums, dx]

    first, *others = [with_threads(n, run) for n in (1, 2, 4)]
    for other in others:
        for a, b in zip(first, other, strict=True):
            assert torch.equal(a, b)
