"""Walking the graph, and what keeps it alive."""

import functools
import gc
import weakref

import pytest


def test_walk(torch):
    x = torch.ones(3, requires_grad=True)
    y = x * 2 + torch.ones(3)
    node = y.grad_fn
    assert node.name() == "AddBackward0" == type(node).__name__
    (mul, index), (nothing, zero) = node.next_functions
    assert mul.name() == "MulBackward0" and index == 0
    assert nothing is None and zero == 0
    (leaf, _), (number, _) = mul.next_functions
    assert (
        leaf.name() == "torch::autograd::AccumulateGrad"
        and type(leaf).__name__ == "AccumulateGrad"
        and leaf.variable is x
    )
    assert number is None
    assert leaf.next_functions == ()
    assert repr(node).startswith("<AddBackward0 object at 0x")
    assert node is y.grad_fn
    assert node in {node}


def test_names(torch):
    x = torch.rand(2, 3, requires_grad=True)
    for make, name in [
        (lambda: x.exp(), "ExpBackward0"),
        (lambda: x.sum(), "SumBackward0"),
        (lambda: x.sum(0), "SumBackward1"),
        (lambda: x.t(), "TBackward0"),
        (lambda: x.view(6), "ViewBackward0"),
        (lambda: x.log_softmax(1), "LogSoftmaxBackward0"),
        (lambda: x.expand(4, 2, 3), "ExpandBackward0"),
        (lambda: x.clone(), "CloneBackward0"),
        (lambda: x.unbind()[0], "UnbindBackward0"),
    ]:
        assert make().grad_fn.name() == name


def test_shared_accumulator(torch):
    x = torch.ones(3, requires_grad=True)
    y = x * x
    assert y.grad_fn.next_functions[0][0] is y.grad_fn.next_functions[1][0]


def test_saved_values(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    w = torch.tensor([3.0, 4.0], requires_grad=True)
    node = (x * w).grad_fn
    assert node._saved_self is x and node._saved_other is w
    y = x.exp()
    saved = y.grad_fn._saved_result
    assert saved.tolist() == y.tolist()
    assert saved.grad_fn is y.grad_fn
    with pytest.raises(AttributeError):
        node._saved_nothing
    y.sum().backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.grad_fn._saved_result


def test_metadata(torch):
    y = torch.ones(3, requires_grad=True) * 2
    y.grad_fn.metadata["key"] = 5
    assert y.grad_fn.metadata == {"key": 5}


def test_gradient_edges(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 3
    edge = torch.autograd.graph.get_gradient_edge(y)
    assert edge.node is y.grad_fn and edge.output_nr == 0
    z = (y * y).sum()
    (g,) = torch.autograd.grad(z, [edge], retain_graph=True)
    assert g.tolist() == [6.0, 12.0]
    leaf = torch.autograd.graph.get_gradient_edge(x)
    (g,) = torch.autograd.grad(z, [leaf])
    assert g.tolist() == [18.0, 36.0]
    torch.autograd.backward([torch.autograd.graph.get_gradient_edge(x * 2)], [torch.ones(2)])
    assert x.grad.tolist() == [2.0, 2.0]
    with pytest.raises(RuntimeError, match="does not require grad"):
        torch.autograd.graph.get_gradient_edge(torch.ones(2))


def test_increment_version(torch):
    x = torch.ones(2)
    torch.autograd.graph.increment_version(x)
    assert x._version == 1


def test_forward_line(rl):
    x = rl.ones(3, requires_grad=True)
    y = x * 2
    file, line, function = y.grad_fn.forward_line()
    assert file.endswith("test_graph.py") and function.endswith("test_forward_line")
    assert y.grad_fn.forward_line()[1] == line == test_forward_line.__code__.co_firstlineno + 2


def alive(make):
    """Which of the objects that make() names are still there when it is over."""
    references = make()
    return [name for name, r in references.items() if r() is not None]


def test_a_graph_goes_with_its_last_user(rl, no_gc):
    def plain():
        x = rl.ones(3, requires_grad=True)
        y = (x * x).exp()
        y.sum().backward()
        return {"x": weakref.ref(x), "y": weakref.ref(y)}

    def without_backward():
        x = rl.ones(3, requires_grad=True)
        y = (x * x).tanh()
        return {"x": weakref.ref(x), "y": weakref.ref(y)}

    def in_place():
        x = rl.ones(3, requires_grad=True)
        y = x * 1
        y.exp_()
        y[1:].mul_(x[0])
        v = y[0]
        v.mul_(2)
        return {"x": weakref.ref(x), "y": weakref.ref(y), "v": weakref.ref(v)}

    def in_place_with_itself():
        x = rl.ones(3, requires_grad=True)
        y = x * 1
        y.mul_(y)
        return {"x": weakref.ref(x), "y": weakref.ref(y)}

    def hooks():
        x = rl.ones(3, requires_grad=True)
        y = x * 2
        y.retain_grad()
        y.register_hook(lambda g: g * 2)
        y.sum().backward()
        return {"x": weakref.ref(x), "y": weakref.ref(y)}

    def second_order():
        x = rl.ones(3, requires_grad=True)
        (g,) = rl.autograd.grad(x.tanh().sum(), x, create_graph=True)
        (h,) = rl.autograd.grad((g * g).sum(), x, create_graph=True)
        return {"x": weakref.ref(x), "g": weakref.ref(g), "h": weakref.ref(h)}

    for make in (plain, without_backward, in_place, in_place_with_itself, hooks, second_order):
        assert alive(make) == [], make.__name__


def test_create_graph_into_grad_makes_no_cycle(rl, no_gc):
    def tanh():
        x = rl.ones(3, requires_grad=True)
        y = x.tanh()
        y.backward(rl.ones_like(y), create_graph=True)
        return {"x": weakref.ref(x), "grad": weakref.ref(x.grad)}

    def saved_leaf():
        x = rl.ones(3, requires_grad=True)
        (x * x).sum().backward(create_graph=True)
        return {"x": weakref.ref(x), "grad": weakref.ref(x.grad)}

    def saved_view_of_a_leaf():
        x = rl.ones(3, requires_grad=True)
        (x[0] * x[1]).backward(create_graph=True)
        return {"x": weakref.ref(x), "grad": weakref.ref(x.grad)}

    def two_leaves():
        x = rl.ones(3, requires_grad=True)
        w = rl.ones(3, requires_grad=True)
        (x * w).exp().sum().backward(create_graph=True)
        return {"x": weakref.ref(x), "w": weakref.ref(w)}

    def list_argument():
        x = rl.ones(3, requires_grad=True)
        (rl.cat([x, x]) * rl.stack([x, x]).view(6)).sum().backward(create_graph=True)
        return {"x": weakref.ref(x)}

    def retained():
        x = rl.ones(3, requires_grad=True)
        y = x * 2
        y.retain_grad()
        (y * y).sum().backward(create_graph=True)
        return {"x": weakref.ref(x), "y": weakref.ref(y)}

    def twice():
        x = rl.ones(3, requires_grad=True)
        for _ in range(2):
            (x * x).sum().backward(create_graph=True)
        return {"x": weakref.ref(x)}

    for make in (tanh, saved_leaf, saved_view_of_a_leaf, two_leaves, list_argument, retained, twice):
        assert alive(make) == [], make.__name__


@pytest.mark.filterwarnings("ignore:Using backward")
def test_create_graph_into_grad_stays_differentiable(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (x * x * x).sum().backward(create_graph=True)
    g = x.grad
    (h,) = torch.autograd.grad((g * g).sum(), x)
    assert h.tolist() == [36.0, 288.0]  # d (3x^2)^2 / dx = 36 x^3


def test_cycles_of_users_are_collected(rl):
    x = rl.ones(3, requires_grad=True)
    y = x * 2
    y.grad_fn.metadata["self"] = y
    y.itself = y
    r = weakref.ref(y)
    del y
    gc.collect()
    assert r() is None
    x = rl.ones(3, requires_grad=True)
    x.register_hook(functools.partial(print, x))
    r = weakref.ref(x)
    del x
    gc.collect()
    assert r() is None


def test_a_released_graph_frees_what_it_saved(rl, no_gc):
    x = rl.ones(3, requires_grad=True)
    w = rl.ones(3)
    r = weakref.ref(w)
    y = (x * w).sum()
    del w
    assert r() is not None
    y.backward()
    assert r() is None


def test_shapes_do_not_keep_data_alive(rl, no_gc):
    x = rl.ones(3, requires_grad=True)
    y = x * 2
    r = weakref.ref(y)
    z = y.sum()
    del y
    assert r() is None
    z.backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


def test_saved_tensors_may_be_written_where_that_is_allowed(torch):
    allow = torch.autograd.graph.allow_mutation_on_saved_tensors
    with allow():
        x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
        y = x.exp()
        z = y.sin()
        y.zero_()
        (g,) = torch.autograd.grad(z.sum(), x, create_graph=True)
        assert torch.allclose(g, x.exp() * x.exp().cos())
        y = x.exp()
        y.mul_(3)
        v = y[0]
        v.mul_(v.detach())  # the operand shares memory with what is written
        (g,) = torch.autograd.grad((y * y).sum(), x)
        e = x.detach().exp()
        assert torch.allclose(g, torch.stack([2 * (3 * e[0]) ** 4, 18 * e[1] ** 2]))
        w = torch.ones(2, dtype=torch.float64, requires_grad=True)
        z = (x * w).sum()
        with torch.no_grad():
            w.mul_(2)
        assert torch.autograd.grad(z, x)[0].tolist() == [1.0, 1.0]
        y = x.exp()
        with pytest.raises(RuntimeError, match="cannot be nested"), allow():
            pass
    with pytest.raises(AssertionError, match="allow_mutation_on_saved_tensors"):
        y.sum().backward()
    y = x.exp()
    y.zero_()
    with pytest.raises(RuntimeError, match="inplace"):
        y.sum().backward()


def test_a_copy_is_made_only_of_what_is_written(rl, no_gc):
    with rl.autograd.graph.allow_mutation_on_saved_tensors():
        x = rl.ones(1000, requires_grad=True)
        y = x.exp()
        assert y.grad_fn._saved_result.data_ptr() == y.data_ptr()
        other = rl.ones(3)
        other.add_(1)
        assert y.grad_fn._saved_result.data_ptr() == y.data_ptr()
        y.add_(1)
        y.sum().backward()
        assert rl.equal(x.grad, x.detach().exp())


def test_nodes_can_be_called(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * torch.tensor([3.0, 4.0])
    first, second = y.grad_fn(torch.ones(2))
    assert first.tolist() == [3.0, 4.0] and second is None
    assert y.sum().grad_fn(torch.tensor(2.0)).tolist() == [2.0, 2.0]
    leaf = y.grad_fn.next_functions[0][0]
    assert leaf(torch.ones(2)) == ()
    leaf(torch.ones(2))
    assert x.grad.tolist() == [2.0, 2.0]
