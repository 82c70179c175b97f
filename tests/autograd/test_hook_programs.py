"""Random programs of hooks, modes and functions: what PyTorch computes, in its order, or its refusal."""

import gc

import hook_programs as programs
import pytest


@pytest.mark.parametrize("block", range(6))
def test_random_programs_of_hooks(rl, block):
    torch = pytest.importorskip("torch")
    different, kinds = [], []
    for seed in range(block * 50, block * 50 + 50):
        expected, got = programs.run(torch, seed), programs.run(rl, seed)
        kinds.append(expected.kind)
        if expected.kind == "error" and got.kind == "values":  # PyTorch also checks saved values that it does not need
            expected = programs.copied(torch, seed)
        if not programs.same(got, expected):
            different.append(seed)
    assert not different
    assert kinds.count("values") > 25 and kinds.count("broken") < 5


def test_programs_leave_no_cycles(rl, no_gc):
    """All tensors and nodes go by their reference counts."""
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        left = {}
        for seed in range(100):
            programs.run(rl, seed)
            gc.collect()
            kinds = {type(x) for x in gc.garbage}
            if any(issubclass(kind, (rl.Tensor, rl.autograd.graph.Node)) for kind in kinds):
                left[seed] = sorted(kind.__name__ for kind in kinds)
            gc.garbage.clear()
    finally:
        gc.set_debug(0)
    assert not left


def test_hooks_see_none_where_there_is_no_gradient(torch):
    """A hook is called whenever its node runs, also when no gradient arrives."""

    class Sparing(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.set_materialize_grads(False)
            return x * 2, y * 3

        @staticmethod
        def backward(ctx, g, h):
            return None if g is None else g * 2, None if h is None else h * 3

    seen = []
    a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    a.register_hook(lambda g: seen.append(("a", g)))
    a.register_post_accumulate_grad_hook(lambda p: seen.append(("stored", p.grad)))
    x, y = Sparing.apply(a + 0, b)
    x.register_hook(lambda g: seen.append(("x", g)))
    y.sum().backward()
    assert seen == [("x", None), ("a", None), ("stored", None)]
    assert a.grad is None and b.grad.tolist() == [3, 3]


def test_node_hooks_see_gradients_of_the_inputs_shape(torch):
    seen = []
    a, b = torch.ones(2, 3, requires_grad=True), torch.tensor(2.0, requires_grad=True)
    y = a - b
    y.grad_fn.register_hook(lambda inputs, outputs: seen.extend(tuple(g.shape) for g in inputs))
    y.sum().backward()
    assert seen == [(2, 3), ()]


def test_detached_after_it_was_saved(torch):
    x = torch.ones(2, requires_grad=True) * 2
    y = x.sin()
    x.detach_()
    with pytest.raises(RuntimeError, match="detached in-place"):
        y.sum().backward()


def test_set_has_no_derivative(torch):
    leaf = torch.ones(2, requires_grad=True)
    for start, source in ((leaf + 0, torch.zeros(2)), (torch.zeros(2), leaf + 0)):
        start.set_(source)
        assert start.requires_grad
        with pytest.raises(RuntimeError, match="derivative for set_"):
            start.sum().backward()
    with torch.no_grad():
        kept = (leaf * 3).set_(torch.zeros(2))
    assert not kept.requires_grad


def test_a_view_asks_its_base(torch):
    base = torch.ones(2, requires_grad=True) + 0
    with torch.no_grad():
        view = base[:1]
    assert view.requires_grad
    base.detach_()
    assert not view.requires_grad


@pytest.mark.parametrize("mode", ["grad", "no_grad"])
def test_a_view_of_a_base_that_is_detached_and_written(torch, mode):
    """What was written is constant, so the view is: its gradient goes nowhere."""
    leaf = torch.ones(2, 2, requires_grad=True)
    base = leaf * 3
    view, other, parts = base[0], base[1], base.unbind()
    base.detach_()
    assert view.requires_grad
    view.sum().backward(retain_graph=True)  # nothing is written yet
    assert leaf.grad.tolist() == [[3, 3], [0, 0]]
    with torch.no_grad() if mode == "no_grad" else torch.enable_grad():
        base.mul_(2)
    assert view.requires_grad and other.tolist() == [6, 6]
    (view * 2).sum().backward()
    assert leaf.grad.tolist() == [[3, 3], [0, 0]]
    with pytest.raises(RuntimeError, match="multiple views"):
        parts[0].sum().backward()


def test_a_view_made_under_no_grad_of_a_base_that_is_detached(torch):
    base = torch.ones(2, requires_grad=True) + 0
    with torch.no_grad():
        view = base[:1]
    assert (view * 2).requires_grad
    base.detach_()
    assert not (view * 2).requires_grad and not view.clone().requires_grad


def test_an_inference_tensor_times_a_view_with_no_place_in_the_graph(torch):
    x = torch.ones(2, 2, requires_grad=True).exp()
    with torch.inference_mode():
        view = x[0]
        constant = view * 2
    product = constant * view  # nothing is saved for the view
    assert product.requires_grad
    with pytest.raises(RuntimeError, match="cannot be saved"):
        constant * x
