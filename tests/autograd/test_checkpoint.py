"""utils.checkpoint: the same numbers, less memory, errors that explain."""

import functools
import importlib
import itertools
import weakref

import pytest


@pytest.fixture
def ck(torch):
    return importlib.import_module(f"{torch.__name__}.utils.checkpoint")


def bits(tensor):
    return tensor.detach().numpy().tobytes()


def network(torch, width=6, layers=4):
    torch.manual_seed(3)
    nn = torch.nn
    return nn.Sequential(*(nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Dropout(0.4)) for _ in range(layers)))


def run(torch, call, net, x):
    """Loss and gradients as bytes; the random numbers start anew."""
    torch.manual_seed(7)
    net.zero_grad()
    x = x.clone().requires_grad_()
    loss = call(net, x).pow(2).sum()
    after = torch.rand(1)
    loss.backward()
    return [bits(loss), bits(after), bits(torch.rand(1)), bits(x.grad), *(bits(p.grad) for p in net.parameters())]


@pytest.mark.parametrize("reentrant", [False, True])
def test_the_same_bits_as_a_plain_run(torch, ck, reentrant):
    net, x = network(torch), torch.linspace(-1, 1, 18).reshape(3, 6)
    plain = run(torch, lambda net, x: net(x), net, x)

    def each(net, x):
        for part in net:
            x = ck.checkpoint(part, x, use_reentrant=reentrant)
        return x

    assert run(torch, each, net, x) == plain
    assert run(torch, lambda net, x: ck.checkpoint(net, x, use_reentrant=reentrant), net, x) == plain
    assert run(torch, lambda net, x: ck.checkpoint_sequential(net, 2, x, use_reentrant=reentrant), net, x) == plain
    for stop in (False, True):
        with ck.set_checkpoint_early_stop(stop):
            assert run(torch, each, net, x) == plain


def test_nested_checkpoints(torch, ck):
    net, x = network(torch), torch.linspace(-1, 1, 18).reshape(3, 6)

    def nested(parts, x):
        if len(parts) == 1:
            return parts[0](x)
        half = len(parts) // 2
        for part in (parts[:half], parts[half:]):
            x = ck.checkpoint(nested, part, x, use_reentrant=False)
        return x

    assert run(torch, lambda net, x: nested(list(net), x), net, x) == run(torch, lambda net, x: net(x), net, x)


def test_recurrent_and_normalised_parts(torch, ck):
    torch.manual_seed(0)
    nn = torch.nn
    norm = nn.LayerNorm(4)
    gru = nn.LSTM(4, 4, num_layers=2)
    attention = nn.MultiheadAttention(4, 2, batch_first=True)
    parameters = [*norm.parameters(), *gru.parameters(), *attention.parameters()]
    x = torch.randn(3, 5, 4)

    def body(x):
        y = gru(norm(x))[0]
        return attention(y, y, y, need_weights=False)[0]

    def gradients(y):
        return [bits(g) for g in torch.autograd.grad(y.sum(), parameters)]

    assert gradients(ck.checkpoint(body, x, use_reentrant=False)) == gradients(body(x))


def test_keyword_arguments_and_structures(torch, ck):
    x, y = torch.ones(2, requires_grad=True), torch.full((2,), 3.0, requires_grad=True)

    def f(a, pair, *, scale, shift=None):
        return {"out": a * pair[0] * scale, "shift": shift}

    result = ck.checkpoint(f, x, (y, "text"), scale=y, shift=5, use_reentrant=False)
    assert result["shift"] == 5
    result["out"].sum().backward()
    assert x.grad.tolist() == [9.0, 9.0] and y.grad.tolist() == [6.0, 6.0]


def test_second_derivatives(torch, ck):
    x = torch.tensor([0.3, 0.7], dtype=torch.float64, requires_grad=True)

    def f(x):
        return (x.tanh() * x.exp()).sin()

    def second(y):
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        return torch.autograd.grad(g.pow(2).sum(), x)[0]

    assert torch.equal(second(ck.checkpoint(f, x, use_reentrant=False)), second(f(x)))


def test_retain_graph_and_inputs(torch, ck):
    x = torch.ones(3, requires_grad=True)
    y = ck.checkpoint(lambda x: x.exp().exp(), x, use_reentrant=False).sum()
    y.backward(retain_graph=True)
    first = x.grad.clone()
    y.backward(inputs=[x])
    assert torch.equal(x.grad, 2 * first)
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_how_often_the_function_runs(torch, ck):
    calls = []

    def f(x):
        calls.append(1)
        y = x.exp().exp()
        calls.append(2)
        return y

    x = torch.ones(2, requires_grad=True)
    ck.checkpoint(f, x, use_reentrant=False).sum().backward()
    assert calls == [1, 2, 1]  # the second run stops once the last saved tensor is there
    calls.clear()
    ck.checkpoint(f, x, use_reentrant=False, early_stop=False).sum().backward()
    assert calls == [1, 2, 1, 2]
    calls.clear()
    with torch.no_grad():
        ck.checkpoint(f, x, use_reentrant=False)
    assert calls == [1, 2]


def test_random_state_may_be_left_alone(torch, ck):
    x = torch.ones(64, requires_grad=True)

    def gradient(preserve):
        x.grad = None
        torch.manual_seed(1)
        y = ck.checkpoint(
            lambda x: torch.nn.functional.dropout(x.exp(), 0.5), x, use_reentrant=False, preserve_rng_state=preserve
        )
        kept = y != 0
        y.sum().backward()
        return torch.equal(x.grad != 0, kept)

    assert gradient(True)
    assert not gradient(False)


def test_contexts(torch, ck):
    seen = []

    class Context:
        def __init__(self, name):
            self.name = name

        def __enter__(self):
            seen.append(self.name)

        def __exit__(self, *args):
            seen.append(f"end of {self.name}")

    x = torch.ones(2, requires_grad=True)
    y = ck.checkpoint(
        lambda x: x.exp(), x, use_reentrant=False, context_fn=lambda: (Context("forward"), Context("second"))
    )
    assert seen == ["forward", "end of forward"]
    y.sum().backward()
    assert seen[2:] == ["second", "end of second"]
    assert len(ck.noop_context_fn()) == 2


def counting(torch, first, later):
    calls = [0]

    def f(x):
        calls[0] += 1
        return first(x) if calls[0] == 1 else later(x)

    return f


@pytest.mark.parametrize("debug", [False, True])
def test_another_number_of_tensors(torch, ck, debug):
    x = torch.ones(2, requires_grad=True)
    f = counting(torch, lambda x: x.exp().exp(), lambda x: x.exp())
    y = ck.checkpoint(f, x, use_reentrant=False, debug=debug)
    with pytest.raises(ck.CheckpointError, match="exp" if debug else "number of tensors"):
        y.sum().backward()
    f = counting(torch, lambda x: x.exp(), lambda x: x.exp().exp())
    y = ck.checkpoint(f, x, use_reentrant=False, early_stop=False)
    with pytest.raises(ck.CheckpointError, match="more tensors"):
        y.sum().backward()


def test_other_tensors(torch, ck):
    x = torch.ones(2, requires_grad=True)
    f = counting(torch, lambda x: x.exp(), lambda x: torch.cat([x, x]).exp())
    with pytest.raises(ck.CheckpointError, match=r"(?s)position 0.*\[2\].*\[4\]"):
        ck.checkpoint(f, x, use_reentrant=False).sum().backward()
    f = counting(torch, lambda x: x.exp(), lambda x: x.double().exp())
    with pytest.raises(ck.CheckpointError, match="float64"):
        ck.checkpoint(f, x, use_reentrant=False).sum().backward()


def test_debug_lists_the_operations_with_lines(rl):
    ck = rl.utils.checkpoint
    x = rl.ones(2, requires_grad=True)
    f = counting(rl, lambda x: x.exp().sin(), lambda x: x.exp())
    with ck.set_checkpoint_debug_enabled(True):
        y = ck.checkpoint(f, x, use_reentrant=False)
    with pytest.raises(
        ck.CheckpointError, match=r"(?s)forward:\n  exp of \[2\] at .*test_checkpoint.*sin.*recomputation"
    ):
        y.sum().backward()


def test_refusals(torch, ck):
    x = torch.ones(2, requires_grad=True)
    f = lambda x: x.exp()
    with pytest.raises(ValueError, match="foo"):
        ck.checkpoint(f, x, use_reentrant=True, foo=1)
    with pytest.raises(ValueError, match="context_fn"):
        ck.checkpoint(f, x, use_reentrant=True, context_fn=lambda: None)
    with pytest.raises(ValueError, match="debug"):
        ck.checkpoint(f, x, use_reentrant=True, debug=True)
    with pytest.raises(ValueError, match="determinism_check"):
        ck.checkpoint(f, x, use_reentrant=False, determinism_check="some")
    with pytest.warns(UserWarning, match="use_reentrant"):
        ck.checkpoint(f, x)
    with pytest.warns(UserWarning, match="use_reentrant"):
        ck.checkpoint_sequential([f, f], 2, x)
    with pytest.raises(ValueError):
        ck.checkpoint_sequential([f], 2, x, use_reentrant=False)
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
        ck.checkpoint(f, torch.ones(2), use_reentrant=True)
    y = ck.checkpoint(f, x, use_reentrant=True)
    with pytest.raises(RuntimeError, match="use_reentrant=True"):
        torch.autograd.grad(y.sum(), x)
    y = ck.checkpoint(f, x, use_reentrant=True)
    with pytest.raises(RuntimeError, match="inputs"):
        y.sum().backward(inputs=[x])
    y = ck.checkpoint(lambda x: x.detach(), x, use_reentrant=True)
    with pytest.raises(RuntimeError, match="none of"):
        y.sum().backward()


def test_an_overwritten_argument_is_noticed(torch, ck):
    x = torch.ones(2, requires_grad=True)
    a = x * 2
    y = ck.checkpoint(lambda a: a.exp(), a, use_reentrant=False)
    a.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_saved_attributes_compute_again(torch, ck):
    x = torch.ones(2, requires_grad=True)
    y = ck.checkpoint(lambda x: x.exp(), x, use_reentrant=False)
    assert torch.equal(y.grad_fn._saved_result, y)
    assert torch.equal(y.grad_fn._saved_result, y)
    y.sum().backward()


def test_helpers(torch, ck):
    assert ck.DefaultDeviceType.get_device_type() in ("cpu", "cuda")
    assert ck.get_device_states(torch.ones(1)) == ([], [])
    x = torch.ones(2, requires_grad=True)
    (y, z) = ck.detach_variable((x * 2, 3))
    assert z == 3 and y.is_leaf and y.requires_grad
    with pytest.raises(RuntimeError):
        ck.detach_variable(x)
    assert issubclass(ck.CheckpointError, RuntimeError)


# ---------------------------------------------------------------- memory


def peak(rl, f):
    rl._C._memory_reset_peak()
    before = rl._C._memory_stats()["allocated_bytes"]
    f()
    return rl._C._memory_stats()["peak_allocated_bytes"] - before


@pytest.mark.parametrize("reentrant", [False, True])
def test_memory_is_lower(rl, reentrant):
    ck = rl.utils.checkpoint
    size, layers = 1 << 16, 32

    def part(x):
        for _ in range(8):
            x = x.sin()
        return x

    def step(checkpointed):
        x = rl.ones(size, requires_grad=True)
        y = x
        for _ in range(layers // 8 * 2):
            y = ck.checkpoint(part, y, use_reentrant=reentrant) if checkpointed else part(y)
        y.sum().backward()

    step(False)
    plain, less = peak(rl, lambda: step(False)), peak(rl, lambda: step(True))
    assert plain > 64 * size * 4
    assert less < 25 * size * 4  # 8 borders, 8 values of one part, and a few gradients


def test_nested_memory_is_lower_still(rl):
    ck = rl.utils.checkpoint
    size = 1 << 16

    def nested(n, x):
        if n == 1:
            return x.sin()
        x = ck.checkpoint(nested, n // 2, x, use_reentrant=False)
        return ck.checkpoint(nested, n // 2, x, use_reentrant=False)

    def step():
        nested(64, rl.ones(size, requires_grad=True)).sum().backward()

    step()
    assert peak(rl, step) < 16 * size * 4  # logarithmic: the plain run keeps 64


def test_nothing_is_left(rl, no_gc):
    ck = rl.utils.checkpoint

    def step(retain):
        x = rl.ones(100, requires_grad=True)
        alive = weakref.ref(x)
        y = ck.checkpoint(
            lambda x: ck.checkpoint(lambda x: x.exp().sin(), x, use_reentrant=False).exp(), x, use_reentrant=False
        )
        y.sum().backward(retain_graph=retain)
        return alive

    step(False)
    before = rl._C._memory_stats()["allocated_blocks"]
    for retain in (False, True):
        assert step(retain)() is None
    assert rl._C._memory_stats()["allocated_blocks"] == before


# ---------------------------------------------------------------- some results are kept


def test_the_documented_program(torch, ck):
    x, y = (torch.linspace(-1, 2, 100).reshape(10, 10) * s for s in (0.3, -0.2))
    ops_to_save = [torch.ops.aten.mm.default, torch.ops.aten.addmm.default]
    seen = []

    def policy_fn(ctx, op, *args, **kwargs):
        assert not ctx.is_recompute and ctx.op_output.shape == (10, 10)
        seen.append((op, [tuple(a.shape) for a in args if isinstance(a, torch.Tensor)]))
        return ck.CheckpointPolicy.MUST_SAVE if op in ops_to_save else ck.CheckpointPolicy.PREFER_RECOMPUTE

    def fn(x, y):
        return torch.sigmoid(torch.matmul(torch.matmul(x, y), y)) * y

    def gradients(call):
        leaves = [t.detach().clone().requires_grad_() for t in (x, y)]
        out = call(*leaves)
        return [bits(out), *(bits(g) for g in torch.autograd.grad(out.sum(), leaves))]

    for policy in (policy_fn, ops_to_save):
        contexts = functools.partial(ck.create_selective_checkpoint_contexts, policy)
        got = gradients(lambda *a, c=contexts: ck.checkpoint(fn, *a, use_reentrant=False, context_fn=c))
        assert got == gradients(fn)
    square = [(10, 10)] * 2
    mm, mul = torch.ops.aten.mm.default, torch.ops.aten.mul.Tensor
    assert seen == [(mm, square), (mm, square), (torch.ops.aten.sigmoid.default, square[:1]), (mul, square)]


def test_modules_under_a_policy(torch, ck):
    nn = torch.nn
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(1, 2, 3),
        nn.ReLU(inplace=True),
        nn.Flatten(1),
        nn.Linear(8, 4),
        nn.LayerNorm(4),
        nn.Linear(4, 2, False),
    )
    x = torch.linspace(-1, 1, 48).reshape(3, 1, 4, 4)
    aten = torch.ops.aten
    kept = [aten.addmm.default, aten.native_layer_norm.default, aten.mm.default]
    named = {str(op) for op in [*kept, aten.convolution.default]}
    seen = []

    def policy(ctx, op, *args, **kwargs):
        seen.extend([str(op)] if str(op) in named else [])
        return op in kept

    plain = run(torch, lambda net, x: net(x), net, x)
    contexts = functools.partial(ck.create_selective_checkpoint_contexts, policy)
    got = run(torch, lambda net, x: ck.checkpoint(net, x, use_reentrant=False, context_fn=contexts), net, x)
    assert got == plain
    assert seen == [
        "aten.convolution.default",
        "aten.addmm.default",
        "aten.native_layer_norm.default",
        "aten.mm.default",
    ]


def products(rl, ck, policy, function, *leaves):
    """How many products of matrices were computed inside the checkpoint, by forward and by recomputation."""
    contexts = functools.partial(ck.create_selective_checkpoint_contexts, policy)
    counts = []
    for use in (lambda y: None, lambda y: y.sum().backward()):
        with rl.profiler.profile() as p:
            use(ck.checkpoint(function, *leaves, use_reentrant=False, context_fn=contexts, early_stop=False))
        # What runs for a source of results runs inside the call that asked it.
        counts.append(sum(e.name == "aten::mm" and e.cpu_parent.name == "aten::mm" for e in p.events() if e.cpu_parent))
    return counts[0], counts[1] - counts[0]


def test_what_is_kept_is_not_computed_again(rl):
    ck = importlib.import_module("rushlight.utils.checkpoint")
    x = rl.rand(4, 4, requires_grad=True)
    function = lambda x: ((x @ x).exp() @ x).sin() @ x
    assert products(rl, ck, [rl.ops.aten.mm.default], function, x) == (3, 0)
    assert products(rl, ck, [rl.ops.aten.exp.default], function, x) == (3, 3)
    middle = itertools.cycle([False, True, False])
    policy = lambda ctx, op, *args, **kwargs: op is rl.ops.aten.mm.default and next(middle)
    assert products(rl, ck, policy, function, x) == (3, 2)


def test_selective_checkpoints_nest(torch, ck):
    net, x = network(torch), torch.linspace(-1, 1, 18).reshape(3, 6)
    contexts = functools.partial(ck.create_selective_checkpoint_contexts, [torch.ops.aten.addmm.default])
    call = functools.partial(ck.checkpoint, use_reentrant=False, context_fn=contexts)

    def each(x):
        for part in net:
            x = call(part, x)
        return x

    assert run(torch, lambda net, x: call(each, x), net, x) == run(torch, lambda net, x: net(x), net, x)


def test_a_kept_result_that_was_written(torch, ck):
    x = torch.rand(3, 3, requires_grad=True)
    function = lambda x: (x @ x).mul_(2).exp()
    contexts = functools.partial(ck.create_selective_checkpoint_contexts, [torch.ops.aten.mm.default])
    y = ck.checkpoint(function, x, use_reentrant=False, context_fn=contexts)
    with pytest.raises(RuntimeError, match=r"mutated|written in place"):
        y.sum().backward()


def test_a_draw_that_is_kept_leaves_later_draws_alone(rl):
    ck = importlib.import_module("rushlight.utils.checkpoint")
    net, x = network(rl), rl.linspace(-1, 1, 18).reshape(3, 6)
    plain = run(rl, lambda net, x: net(x), net, x)
    first = iter([True] + [False] * 100)
    policy = lambda ctx, op, *args, **kwargs: op is rl.ops.aten._dropout_mask.default and next(first)
    contexts = functools.partial(ck.create_selective_checkpoint_contexts, policy)
    assert run(rl, lambda net, x: ck.checkpoint(net, x, use_reentrant=False, context_fn=contexts), net, x) == plain


def test_backward_twice_through_kept_results(rl):
    ck = importlib.import_module("rushlight.utils.checkpoint")
    x = rl.rand(3, 3, requires_grad=True)
    contexts = functools.partial(ck.create_selective_checkpoint_contexts, [rl.ops.aten.mm.default])
    y = ck.checkpoint(lambda x: (x @ x).exp(), x, use_reentrant=False, context_fn=contexts).sum()
    (once,) = rl.autograd.grad(y, x, create_graph=True)
    (twice,) = rl.autograd.grad(once.sum(), x)
    (plain,) = rl.autograd.grad((x @ x).exp().sum(), x, create_graph=True)
    assert once.equal(plain)
    assert twice.equal(rl.autograd.grad(plain.sum(), x)[0])


def test_refusals_of_selective_checkpoints(torch, ck):
    aten = torch.ops.aten
    with pytest.raises(ValueError, match=r"aten.add"):
        ck.create_selective_checkpoint_contexts([aten.add])
    with pytest.raises(TypeError, match="list of op"):
        ck.create_selective_checkpoint_contexts(3)
    with pytest.raises(AttributeError):
        aten.no_such_operation
    with pytest.raises(AttributeError):
        aten.add.no_such_overload
    for name in ck.__all__:
        assert hasattr(ck, name)


def test_other_operations_in_the_recomputation(rl):
    ck = importlib.import_module("rushlight.utils.checkpoint")
    x = rl.rand(3, requires_grad=True)
    calls = iter([lambda x: x.exp().sin(), lambda x: x.sin().exp()])
    contexts = functools.partial(ck.create_selective_checkpoint_contexts, [rl.ops.aten.exp.default])
    y = ck.checkpoint(lambda x: next(calls)(x), x, use_reentrant=False, context_fn=contexts)
    with pytest.raises(ck.CheckpointError, match=r"operation 0 is another one.*expected exp, got sin"):
        y.sum().backward()
    contexts = functools.partial(ck.create_selective_checkpoint_contexts, lambda *args, **kwargs: 5)
    with pytest.raises(
        TypeError, match=r"expected the policy to return a CheckpointPolicy, got 5 for aten.exp.default"
    ):
        ck.checkpoint(lambda x: x.exp(), x, use_reentrant=False, context_fn=contexts)


def test_names_of_overloads(rl):
    aten = rl.ops.aten
    assert aten.add.Tensor is aten.add.Scalar is aten.add.default
    assert aten.sum.dim_IntList is aten.sum.dim is not aten.sum.default
    assert aten.mm.default.name() == "aten::mm" and str(aten.sum.dim) == "aten.sum.dim"
    assert aten.mm.default(rl.eye(2), rl.eye(2)).equal(rl.eye(2))
    assert aten.relu_.default is not aten.relu.default


def test_one_recomputation_for_a_group_of_backwards(torch, ck):
    count = 0

    def function(x):
        nonlocal count
        count += 1
        return x.exp(), x.sin()

    x = torch.rand(3, requires_grad=True)
    a, b = ck.checkpoint(function, x, use_reentrant=False)
    with ck.GraphExecGroup():
        a.sum().backward()
        b.sum().backward()
        with pytest.raises(RuntimeError, match="nested"), ck.GraphExecGroup():
            pass
    assert count == 2
    assert torch.allclose(x.grad, x.detach().exp() + x.detach().cos())
