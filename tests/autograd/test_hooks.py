"""Hooks on tensors and nodes."""

import weakref

import pytest


def test_hooks_run_in_order_and_may_replace(torch):
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    seen = []
    y.register_hook(lambda g: seen.append(("first", g.tolist())))
    y.register_hook(lambda g: g * 10)
    y.register_hook(lambda g: seen.append(("last", g.tolist())))
    y.sum().backward()
    assert seen == [("first", [1.0, 1.0]), ("last", [10.0, 10.0])]
    assert x.grad.tolist() == [20.0, 20.0]


def test_hook_on_a_leaf(torch):
    x = torch.ones(2, requires_grad=True)
    x.register_hook(lambda g: g * 3)
    (x * 2).sum().backward()
    assert x.grad.tolist() == [6.0, 6.0]
    (g,) = torch.autograd.grad((x * 2).sum(), x)
    assert g.tolist() == [6.0, 6.0]


def test_removal(torch):
    x = torch.ones(2, requires_grad=True)
    handle = x.register_hook(lambda g: g * 3)
    handle.remove()
    handle.remove()
    with x.register_hook(lambda g: g * 5):
        (x * 2).sum().backward()
    assert x.grad.tolist() == [10.0, 10.0]
    (x * 2).sum().backward()
    assert x.grad.tolist() == [12.0, 12.0]


def test_a_hook_that_removes_itself(torch):
    x = torch.ones(2, requires_grad=True)
    calls = []

    def once(g):
        calls.append(1)
        handle.remove()

    handle = x.register_hook(once)
    x.register_hook(lambda g: calls.append(2))
    (x * 2).sum().backward()
    (x * 2).sum().backward()
    assert calls == [1, 2, 2]


def test_bad_hook_results(torch):
    x = torch.ones(3, requires_grad=True)
    for hook, error, text in [
        (lambda g: g[:1], RuntimeError, "has changed the size of value"),
        (lambda g: g.double(), RuntimeError, "has changed the type of value"),
        (
            lambda g: 3,
            TypeError,
            "expected Variable, but hook returned|expected Variable, but hook '<lambda>' returned 'int'",
        ),
    ]:
        with x.register_hook(hook), pytest.raises(error, match=text):
            (x * 2).sum().backward()
    assert x.grad is None


def test_registration_is_refused(torch):
    with pytest.raises(RuntimeError, match="cannot register a hook on a tensor that doesn't require gradient"):
        torch.ones(3).register_hook(lambda g: g)
    with pytest.raises(RuntimeError, match="cannot register a hook on a tensor that doesn't require gradient"):
        torch.ones(3).register_post_accumulate_grad_hook(lambda p: None)
    x = torch.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="post accumulate grad hooks cannot be registered on non-leaf tensors"):
        (x * 2).register_post_accumulate_grad_hook(lambda p: None)


def test_retain_grad(torch):
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.retain_grad()
    y.retain_grad()
    assert y.retains_grad
    z = y * y
    z.sum().backward()
    assert y.grad.tolist() == [4.0, 4.0]
    assert z.retains_grad is False
    x.retain_grad()
    assert x.retains_grad is False
    with pytest.raises(RuntimeError, match="can't retain_grad on Tensor that has requires_grad=False"):
        torch.ones(3).retain_grad()


def test_retained_grad_accumulates_and_sees_hooks(torch):
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: g * 10)
    y.sum().backward(retain_graph=True)
    assert y.grad.tolist() == [10.0, 10.0]
    y.sum().backward()
    assert y.grad.tolist() == [20.0, 20.0]
    assert x.grad.tolist() == [40.0, 40.0]


def test_a_retaining_tensor_may_die_first(torch):
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.retain_grad()
    z = y * 3
    del y
    z.sum().backward()
    assert x.grad.tolist() == [6.0, 6.0]


def test_hooks_around_an_inplace_operation(torch):
    x = torch.ones(2, requires_grad=True)
    y = x * 1
    seen = []
    y.retain_grad()
    y.register_hook(lambda g: seen.append(g.tolist()))
    y.mul_(3)
    y.sum().backward()
    assert y.grad.tolist() == [1.0, 1.0]  # of the value now
    assert seen == [[3.0, 3.0]]  # of the value when the hook was registered
    assert x.grad.tolist() == [3.0, 3.0]


def test_post_accumulate_grad_hook(torch):
    x = torch.ones(2, requires_grad=True)
    seen = []

    def hook(p):
        assert p is x
        seen.append(p.grad.tolist())
        p.grad = None

    handle = x.register_post_accumulate_grad_hook(hook)
    (x * 2).sum().backward()
    assert seen == [[2.0, 2.0]]
    assert x.grad is None
    handle.remove()
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_node_hooks(torch):
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    seen = []
    y.grad_fn.register_prehook(lambda grads: seen.append(("pre", len(grads), grads[0].tolist())))
    y.grad_fn.register_prehook(lambda grads: (grads[0] * 2,))
    y.grad_fn.register_hook(lambda inputs, outputs: seen.append(("post", inputs[0].tolist(), outputs[0].tolist())))
    y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] * 5, *inputs[1:]))
    y.sum().backward()
    assert seen == [("pre", 1, [1.0, 1.0]), ("post", [4.0, 4.0], [2.0, 2.0])]
    assert x.grad.tolist() == [20.0, 20.0]


def test_node_hook_with_the_wrong_number_of_values(torch):
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.grad_fn.register_hook(lambda inputs, outputs: (None,) * 5)
    with pytest.raises(RuntimeError, match="incorrect number of values"):
        y.sum().backward()


def test_multi_grad_hook(torch):
    a = torch.ones(2, requires_grad=True)
    b = torch.ones(2, requires_grad=True)
    seen = []
    handle = torch.autograd.graph.register_multi_grad_hook(
        (a, b), lambda grads: seen.append([g if g is None else g.tolist() for g in grads])
    )
    (a * b * 2).sum().backward()
    assert seen == [[[2.0, 2.0], [2.0, 2.0]]]
    (a * 3).sum().backward()
    assert seen[1:] == [[[3.0, 3.0], None]]
    handle.remove()
    (a * b).sum().backward()
    assert len(seen) == 2
    anyone = []
    torch.autograd.graph.register_multi_grad_hook((a, b), lambda g: anyone.append(g.tolist()), mode="any")
    (a * b).sum().backward()
    assert anyone == [[1.0, 1.0]]


@pytest.mark.parametrize("mode", ["all", "any"])
@pytest.mark.parametrize("of_leaves", [True, False])
def test_multi_grad_hook_keeps_no_cycle(rl, no_gc, mode, of_leaves):
    a, b = rl.ones(2, requires_grad=True), rl.ones(2, requires_grad=True)
    c, d = (a, b) if of_leaves else (a * 2, b * 3)
    calls = []
    rl.autograd.graph.register_multi_grad_hook([c, d], lambda g: calls.append(mode), mode=mode)
    (c * d).sum().backward()
    gone = [weakref.ref(t) for t in (a, b, c, d)]
    del a, b, c, d
    assert calls == [mode] and [r() for r in gone] == [None] * 4


def test_multi_grad_hook_when_a_tensor_is_gone(torch):
    a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    y, dropped = a * 2, b * 3
    seen = []
    torch.autograd.graph.register_multi_grad_hook(
        [y, dropped, b], lambda grads: seen.append([g if g is None else g.tolist() for g in grads])
    )
    del dropped
    others = [torch.ones(2, requires_grad=True) * 3 for _ in range(20)]  # where the node that is gone was
    (y + sum(others)).sum().backward()
    assert seen == [[[1.0, 1.0], None, None]]


def test_a_retained_gradient_with_a_graph_is_a_copy(torch):
    x = torch.ones(2, requires_grad=True)
    y = x + 0
    y.retain_grad()
    (grad,) = torch.autograd.grad((y * y).sum(), x, create_graph=True)
    with torch.no_grad():
        grad.add_(5)
    assert y.grad.tolist() == [2, 2] and y.grad.grad_fn is not None


def test_saved_tensors_hooks(torch):
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    packed = []

    def pack(t):
        packed.append(t.tolist())
        return t.tolist()

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda values: torch.tensor(values)):
        y = x * x
        z = y.exp()
    z.sum().backward()
    e = [pytest.approx(v) for v in z.detach().tolist()]
    assert packed[:2] == [[2.0, 3.0], [2.0, 3.0]]
    assert x.grad.tolist() == pytest.approx([4 * z[0].item(), 6 * z[1].item()])
    assert packed[2] == e


def test_second_derivative_through_packed_tensors(torch):
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t):
        y = (x * x * x).sum()
        (g,) = torch.autograd.grad(y, x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    assert h.tolist() == [12.0, 18.0]


def test_disabled_saved_tensors_hooks(torch):
    hooks = torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t)
    with torch.autograd.graph.disable_saved_tensors_hooks("not here"), pytest.raises(RuntimeError, match="not here"):
        hooks.__enter__()


def test_save_on_cpu(torch):
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    with torch.autograd.graph.save_on_cpu():
        y = x * x
    y.sum().backward()
    assert x.grad.tolist() == [4.0, 6.0]


# ---------------------------------------------------------------- saved tensors one by one


def test_raw_saved_tensors(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * x
    saved = y.grad_fn._raw_saved_self
    assert type(saved) is torch.autograd.SavedTensor
    assert saved.unpack() is x and saved.unpack_hook is None and saved.data.tolist() == [1.0, 2.0]
    saved.register_hooks(lambda t: t.tolist(), lambda numbers: torch.tensor(numbers) * 3)
    assert saved.data == [1.0, 2.0] and y.grad_fn._saved_self.tolist() == [3.0, 6.0]
    assert saved.unpack().requires_grad
    with pytest.raises(RuntimeError, match="hooks"):
        saved.register_hooks(lambda t: t, lambda t: t)
    y.sum().backward()
    assert x.grad.tolist() == [1.0 + 3.0, 2.0 + 6.0]
    assert saved.data is None
    with pytest.raises(RuntimeError, match="second time"):
        saved.unpack()
    with pytest.raises(RuntimeError, match="freed"):
        y.grad_fn._raw_saved_other.register_hooks(lambda t: t, lambda t: t)
    with pytest.raises(AttributeError):
        y.grad_fn._raw_saved_nothing
    with pytest.raises((RuntimeError, TypeError)):
        torch.autograd.SavedTensor()


def test_raw_saved_tensors_refuse(torch):
    x = torch.ones(2, requires_grad=True)
    y = x.clone() * x  # stays alive: PyTorch's objects do not keep the node
    with pytest.raises(TypeError):
        y.grad_fn._raw_saved_self.register_hooks(3, 4)
    with pytest.raises(RuntimeError, match="modifying its input"):
        y.grad_fn._raw_saved_self.register_hooks(lambda t: t.detach().add_(1), lambda t: t)


def test_raw_saved_results(rl):
    x = rl.tensor([1.0, 2.0], dtype=rl.float64, requires_grad=True)
    y = x.exp()
    y.grad_fn._raw_saved_result.register_hooks(lambda t: t.detach().clone(), lambda t: t)
    (g,) = rl.autograd.grad(y.sum(), x, create_graph=True)
    assert rl.autograd.grad(g.sum(), x)[0].equal(x.exp())
    z = x.clone()
    z.sigmoid_()
    assert {"_raw_saved_result", "_saved_result"} <= set(dir(z.grad_fn))
    values, _indices = x.max(0)
    values.grad_fn._raw_saved_indices.register_hooks(lambda t: t, lambda t: t)
    assert not values.grad_fn._saved_indices.requires_grad


def test_raw_saved_tensors_of_a_function(torch):
    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a * b

        @staticmethod
        def backward(ctx, g):
            a, b = ctx.saved_tensors
            return g * b, g * a

    a, b = (torch.tensor(v, requires_grad=True) for v in (2.0, 3.0))
    y = Product.apply(a, b)
    y.grad_fn._raw_saved_tensors[1].register_hooks(lambda t: t.item(), lambda v: torch.tensor(v * 10))
    y.backward()
    assert a.grad.item() == 30.0 and b.grad.item() == 2.0


@pytest.mark.parametrize(
    "write", ["mul_(2)", "clamp_(0)", "ldexp_(torch.tensor(2))", "nan_to_num_()", "float_power_(2)"]
)
def test_hooks_of_a_view_from_before_a_write_to_it_see_nothing(torch, write):
    x = torch.tensor([[1.0, -2.0], [3.0, 0.5]], dtype=torch.float64, requires_grad=True)
    y = x * 2
    v, seen = y[0], []
    v.register_hook(lambda g: seen.append("before"))
    eval(f"v.{write}", {"v": v, "torch": torch})
    v.register_hook(lambda g: seen.append(g.tolist()))
    expected = x.detach().clone()
    (y.sum() + 2 * v.sum()).backward()
    assert x.grad[1].tolist() == [2.0, 2.0]
    assert "before" not in seen
    assert expected.equal(x.detach())
