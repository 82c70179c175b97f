"""Many threads that record and differentiate at once."""

import threading

import pytest


def run_all(count, work):
    errors = []

    def guarded(k):
        try:
            work(k)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(k,)) for k in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if errors:
        raise errors[0]


@pytest.mark.parametrize("size", [3, 40000])
def test_shared_leaves_and_graphs(rl, size):
    """Sums of small integers are exact in any order. The large tensors let other threads run inside kernels."""
    w = rl.ones(size, requires_grad=True)
    shared = (w * 2 + w * w).relu()
    rounds, threads = (40, 8) if size < 100 else (6, 4)

    def work(k):
        for i in range(rounds):
            ((w * (k + 1)).sum() + shared.sum()).backward(retain_graph=True)
            (g,) = rl.autograd.grad((w * w * w).sum(), w, create_graph=True)
            assert float(rl.autograd.grad(g.sum(), w)[0][0]) == 6.0
            if i % 3 == 0:
                with rl.no_grad():
                    assert not (w * 2).requires_grad

    run_all(threads, work)
    expected = rounds * (sum(k + 1 for k in range(threads)) + 4 * threads)
    assert bool((w.grad == expected).all())


def test_hooks_functions_and_nested_backwards(rl):
    class Square(rl.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            with rl.enable_grad():
                y = x.detach().requires_grad_()
                (inner,) = rl.autograd.grad((y * y).sum(), y)  # a backward inside the backward
            return g * inner

    calls = [0] * 8

    def work(k):
        x = rl.full((4,), float(k + 1), requires_grad=True)
        for _ in range(30):
            x.grad = None
            y = Square.apply(x)
            y.register_hook(lambda g: calls.__setitem__(k, calls[k] + 1))
            y.sum().backward()
            assert x.grad.tolist() == [2.0 * (k + 1)] * 4

    run_all(8, work)
    assert calls == [30] * 8


def test_checkpoints_and_saved_hooks(rl):
    from rushlight.utils.checkpoint import checkpoint

    w = rl.full((5,), 0.5, dtype=rl.float64, requires_grad=True)
    shared = checkpoint(lambda w: w.exp().sin(), w, use_reentrant=False)
    expected = rl.autograd.grad(w.exp().sin().sum(), w)[0]

    def work(k):
        for _ in range(15):
            (g,) = rl.autograd.grad(shared.sum(), w, retain_graph=True)
            assert rl.equal(g, expected)
            with rl.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
                y = w.exp().sin()
            assert rl.equal(rl.autograd.grad(y.sum(), w)[0], expected)

    run_all(6, work)
