"""Small inputs on which frameworks have gone wrong, and more of the kind of each."""

# ruff: noqa: PT012

import gc
import math
import warnings
import weakref

import pytest


def gradient(torch, f, values):
    x = torch.tensor(values, requires_grad=True)
    y = f(x)
    (y if y.dim() == 0 else y.sum()).backward()
    return x.grad.tolist()


# A01: a masked branch poisons the gradient


def test_masked_branch_follows_the_chain_rule(torch):
    assert all(math.isnan(g) for g in gradient(torch, lambda x: torch.where(x > 0, x.sqrt(), x), [-1.0, -4.0]))


def test_anomaly_mode_names_the_masked_branch(rl):
    x = rl.tensor([-1.0, -4.0], requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with rl.autograd.detect_anomaly(), pytest.raises(RuntimeError) as error:
            rl.where(x > 0, x.sqrt(), x).sum().backward()
    text = str(error.value)
    assert "SqrtBackward0" in text and "WhereBackward0" in text and "test_cases.py" in text
    assert "sqrt was the first operation to make a NaN: 2" in text


@pytest.mark.parametrize(
    "name, f",
    [
        ("LogBackward0", lambda torch, x: torch.where(x > 0, x.log(), x)),
        ("ReciprocalBackward0", lambda torch, x: torch.where(x != 0, x.reciprocal(), x)),
        ("DivBackward0", lambda torch, x: torch.where(x != 0, x / x, x)),
        ("SqrtBackward0", lambda torch, x: x.sqrt().masked_fill(x <= 0, 0.0)),
        ("AcosBackward0", lambda torch, x: torch.where(x.abs() < 0, (x + 2).acos(), x)),
        ("TanhBackward0", lambda torch, x: torch.where(x > 0, (x.sqrt() * 2).tanh(), x)),
    ],
)
def test_masked_branches_of_other_operations(rl, name, f):
    x = rl.tensor([-1.0, 0.0], requires_grad=True)
    with (
        warnings.catch_warnings(),
        rl.autograd.set_detect_anomaly(True),
        pytest.raises(RuntimeError, match=f"{name}' returned nan values in its 0th output") as error,
    ):
        warnings.simplefilter("ignore")
        f(rl, x).sum().backward()
    assert "masked this branch" in str(error.value) or "first operation to make" in str(error.value)


# A02: norms where they have a corner


ORIGIN = {
    "vector_norm": lambda torch, x: torch.linalg.vector_norm(x),
    "norm": lambda torch, x: x.norm(),
    "norm of ones": lambda torch, x: x.norm(1),
    "norm of cubes": lambda torch, x: x.norm(3),
    "norm along a dimension": lambda torch, x: x.norm(2, dim=0),
    "cdist": lambda torch, x: torch.cdist(x[None], torch.zeros(1, 2)),
    "cdist of ones": lambda torch, x: torch.cdist(x[None], torch.zeros(1, 2), p=1),
    "dist": lambda torch, x: torch.dist(x, torch.zeros(2)),
    "std": lambda torch, x: x.std(),
    "std_mean": lambda torch, x: torch.std_mean(x)[0],
    "var": lambda torch, x: x.var(),
    "pdist": lambda torch, x: torch.nn.functional.pdist(torch.stack([x, x])),
    "normalize": lambda torch, x: torch.nn.functional.normalize(x, dim=0) * 0,
    "atan2": lambda torch, x: torch.atan2(x, x),
    "abs": lambda torch, x: x.abs(),
}


@pytest.mark.parametrize("name", ORIGIN)
def test_norm_at_the_origin(torch, name):
    try:
        assert gradient(torch, lambda x: ORIGIN[name](torch, x), [0.0, 0.0]) == [0.0, 0.0]
    except AttributeError as error:
        if torch.__name__ == "rushlight":
            pytest.skip(str(error))
        raise


def test_hand_written_norm_is_nan(torch):
    assert all(math.isnan(g) for g in gradient(torch, lambda x: x.pow(2).sum().sqrt(), [0.0, 0.0]))


def test_logit_and_hardswish_at_their_ends(torch):
    assert gradient(torch, torch.logit, [0.0, 1.0]) == [math.inf, math.inf]
    assert all(math.isnan(g) for g in gradient(torch, torch.logit, [-1.0, 2.0]))
    assert gradient(torch, torch.nn.functional.hardswish, [-3.0, 3.0]) == [0.0, 1.0]


# A04: ties share or pick


def test_ties_share_or_pick(torch):
    def g(f, values):
        return gradient(torch, f, values)

    assert g(lambda x: x.max(), [1.0, 1.0, 0.0]) == [0.5, 0.5, 0.0]
    assert g(lambda x: x.amax(), [1.0, 1.0, 0.0]) == [0.5, 0.5, 0.0]
    assert g(lambda x: x.max(dim=0).values, [1.0, 1.0, 0.0]) == [1.0, 0.0, 0.0]
    assert g(lambda x: x.relu(), [0.0]) == [0.0]
    assert g(lambda x: torch.maximum(x, torch.zeros(1)), [0.0]) == [0.5]
    assert g(lambda x: x.abs(), [0.0]) == [0.0]
    assert g(lambda x: x.clamp(min=0), [0.0]) == [1.0]  # as PyTorch 2.13 has it
    # the same question elsewhere
    assert g(lambda x: x.amin(), [1.0, 0.0, 0.0]) == [0.0, 0.5, 0.5]
    assert g(lambda x: x.min(dim=0).values, [1.0, 0.0, 0.0]) == [0.0, 1.0, 0.0]
    assert g(lambda x: torch.fmax(x, torch.zeros(1)), [0.0]) == [1.0]
    assert g(lambda x: x.cummax(0).values, [1.0, 1.0]) == [1.0, 1.0]
    assert g(lambda x: x.topk(1).values, [1.0, 1.0]) == [1.0, 0.0]
    assert g(lambda x: torch.nn.functional.max_pool1d(x[None], 2), [1.0, 1.0]) == [1.0, 0.0]


# A06: an error that names both ends


def test_overwritten_saved_tensor_names_both_ends(rl):
    x = rl.ones(3, requires_grad=True)
    y = x.sigmoid()  # saved here
    y.mul_(2)  # written here
    with pytest.raises(RuntimeError) as error:
        y.sum().backward()
    text = str(error.value)
    assert "SigmoidBackward0 was recorded at" in text and "# saved here" in text
    assert "overwritten by mul_ at" in text and "# written here" in text
    assert "[3]" in text and "out-of-place" in text


def test_the_writer_is_known_after_many_other_writes(rl):
    x = rl.ones(3, requires_grad=True)
    y = x.exp()
    y.add_(1)  # written here
    others = [rl.zeros(1) for _ in range(1000)]
    for o in others:
        o.add_(1)
    with pytest.raises(RuntimeError, match="# written here"):
        y.sum().backward()


@pytest.mark.parametrize(
    "writer, write",
    [
        ("zero_", lambda y: y.zero_()),
        ("copy_", lambda y: y.copy_(y.detach() * 2)),
        ("fill_", lambda y: y[0].fill_(1)),
        ("add_", lambda y: y.detach().add_(1)),
        ("sigmoid_", lambda y: y.sigmoid_()),
    ],
)
def test_every_way_to_write_is_named(rl, writer, write):
    x = rl.ones(3, requires_grad=True)
    y = x.exp()
    z = y.exp()
    write(y)
    with pytest.raises(RuntimeError, match=f"overwritten by {writer} at .*test_cases.py"):
        (z.sum() + y.sum()).backward()


# A08: writes that bypass the version counter


@pytest.mark.parametrize("write", [lambda y: y.data.zero_(), lambda y: y.detach().numpy().__setitem__(slice(None), 0)])
def test_writes_that_no_counter_sees(torch, write):
    x = torch.ones(2, requires_grad=True)
    y = x.exp()
    write(y)
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("write", [lambda y: y.data.zero_(), lambda y: y.detach().numpy().__setitem__(slice(None), 0)])
@pytest.mark.parametrize("f", [lambda x, y: y, lambda x, y: y * y, lambda x, y: (y + 0).prod() * y.sum()])
def test_anomaly_mode_catches_them(rl, write, f):
    x = rl.ones(2, requires_grad=True)
    with warnings.catch_warnings(), rl.autograd.set_detect_anomaly(True):
        warnings.simplefilter("ignore")
        y = x.exp()
        z = f(x, y)
        write(y)
        with pytest.raises(RuntimeError, match=r"(?s)without its version counter.*test_cases.py"):
            z.sum().backward()


def test_anomaly_mode_catches_writes_to_parameters_and_lists(rl):
    w, x = rl.ones(2, 2, requires_grad=True), rl.ones(2, 2, requires_grad=True)
    with warnings.catch_warnings(), rl.autograd.set_detect_anomaly(True):
        warnings.simplefilter("ignore")
        y = x @ w
        w.data.mul_(2)
        with pytest.raises(RuntimeError, match="MmBackward0"):
            y.sum().backward()


# A09: in-place writes to one of several views


MULTI_VIEWS = {
    "unbind": lambda y: y.unbind(),
    "split": lambda y: y.split(1),
    "chunk": lambda y: y.chunk(2),
    "sizes": lambda y: y.split([1, 1]),
    "iteration": lambda y: list(y),
}


WRITES = {
    "itself": lambda v: v.mul_(2),
    "a view of it": lambda v: v.narrow(0, 0, 1).mul_(2),
    "zero_": lambda v: v.zero_(),
    "an element": lambda v: v.__setitem__(0, 5.0),
    "copy_": lambda v: v.copy_(v.detach() * 0),
    "a reshaped view": lambda v: v.view(-1).add_(1),
}


@pytest.mark.parametrize("how", MULTI_VIEWS)
@pytest.mark.parametrize("write", WRITES)
def test_multi_view_output_and_a_view_of_it(torch, how, write):
    x = torch.ones(2, 3, requires_grad=True)
    y = x.clone()
    v = MULTI_VIEWS[how](y)
    with pytest.raises(RuntimeError, match="view"):
        WRITES[write](v[0])
    y.mul_(3)
    with pytest.raises(RuntimeError, match="view"):
        (v[0] * 1).sum().backward()


# A11: retain_grad and hooks around an in-place write


def test_retain_grad_and_hooks_around_a_write(torch):
    seen = []
    x = torch.ones(2, requires_grad=True)
    y = x * 1
    y.retain_grad()
    y.register_hook(lambda g: seen.append(g.tolist()))
    y.mul_(3)
    y.sum().backward()
    assert y.grad.tolist() == [1.0, 1.0]
    assert seen == [[3.0, 3.0]]
    assert x.grad.tolist() == [3.0, 3.0]


# A14: gradients must not share memory


def two_inputs(torch=None):
    return {
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "cat": lambda a, b: torch.cat([a, b]),
        "stack": lambda a, b: torch.stack([a, b]),
        "lerp": lambda a, b: torch.lerp(a, b, 0.5),
        "copy": lambda a, b: (a * 1).copy_(b) + a,
        "expand": lambda a, b: a.expand(2, 3) + b,
        "clone": lambda a, b: a.clone() + b.clone(),
        "views": lambda a, b: a.view(3, 1).squeeze() + b,
        "twice": lambda a, b: a + a + b,
        "loss": lambda a, b: torch.nn.functional.mse_loss(a, b * 2),
        "cast": lambda a, b: a.double() + b.double(),
        "contiguous": lambda a, b: a.to(torch.float32) + b.contiguous(),
    }


@pytest.mark.parametrize("name", two_inputs())
def test_gradients_do_not_share_memory(torch, name):
    a, b = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    two_inputs(torch)[name](a, b).sum().backward()
    before = b.grad.tolist()
    assert a.grad.stride() == b.grad.stride() == (1,)
    a.grad.mul_(5)
    assert b.grad.tolist() == before


@pytest.mark.parametrize(
    "f", [lambda a: a * 1, lambda a: a.clone(), lambda a: a + 0, lambda a: a.view(3), lambda a: a.expand(3)]
)
def test_user_gradient_is_not_captured(rl, f):
    a = rl.ones(3, requires_grad=True)
    g = rl.ones(3)
    f(a).backward(g)
    a.grad.mul_(5)
    assert g.tolist() == [1.0, 1.0, 1.0]


def test_expanded_user_gradient_becomes_dense(torch):
    x = torch.zeros(3, requires_grad=True)
    h = torch.ones(1).expand(3)
    x.backward(h)
    assert x.grad.stride() == (1,)
    x.grad.mul_(5)
    assert h.tolist() == [1.0, 1.0, 1.0]


# A16: create_graph into .grad


def written(x):
    y = x * 1
    y[:50].mul_(y[50:].detach().clone())
    return y.tanh()


CYCLIC = {
    "tanh": lambda torch, x: x.tanh(),
    "mul": lambda torch, x: x * x,
    "view": lambda torch, x: x.view(10, 10).t().exp(),
    "matmul": lambda torch, x: x.view(10, 10) @ x.view(10, 10),
    "chain": lambda torch, x: x.sigmoid().tanh(),
    "in place": lambda torch, x: (x * 1).tanh_(),
    "write to a view": lambda torch, x: written(x),
    "cat": lambda torch, x: torch.cat([x, x]).tanh(),
    "layer_norm": lambda torch, x: torch.nn.functional.layer_norm(x, (100,)),
    "softmax": lambda torch, x: x.softmax(0),
}


@pytest.mark.parametrize("name", CYCLIC)
@pytest.mark.parametrize("again", [False, True])
def test_create_graph_into_grad_leaves_nothing(rl, no_gc, name, again):
    def f(x):
        return CYCLIC[name](rl, x)

    f(rl.ones(100, requires_grad=True)).sum().backward()  # what the first use keeps for good
    before = rl._C._memory_stats()["allocated_blocks"]
    x = rl.ones(100, requires_grad=True)
    alive = weakref.ref(x)
    y = f(x)
    y.backward(rl.ones_like(y), create_graph=True)
    if again:
        x.grad.pow(2).sum().backward()
    del x, y
    assert alive() is None
    assert rl._C._memory_stats()["allocated_blocks"] == before


def test_create_graph_through_modules_and_functions(rl, no_gc):
    class Square(rl.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return 2 * g * ctx.saved_tensors[0]

    nn = rl.nn
    net = nn.Sequential(nn.Conv1d(2, 2, 1), nn.BatchNorm1d(2), nn.GELU(), nn.Flatten(), nn.Linear(6, 1))
    gru = nn.GRU(2, 2)
    x = rl.ones(4, requires_grad=True)
    alive = [weakref.ref(p) for p in (net[0].weight, net[4].bias, gru.weight_ih_l0, x)]
    net(rl.ones(2, 2, 3)).sum().backward(create_graph=True)
    gru(rl.ones(2, 2, 2))[0].sum().backward(create_graph=True)
    y = Square.apply(x)
    y.retain_grad()
    y.register_hook(lambda g: g * 2)
    y.sum().backward(create_graph=True)
    del net, gru, x, y
    left = [i for i, a in enumerate(alive) if a() is not None]
    gc.collect()
    assert not left


@pytest.mark.parametrize("p", [math.inf, -math.inf])
@pytest.mark.parametrize("dim", [None, 0, (0, 1)])
def test_greatest_absolute_value_of_complex_numbers(torch, p, dim):
    """The gradient finds the element that the norm found, though the two may round absolute values differently."""
    torch.manual_seed(0)
    z = torch.randn(40, 5, dtype=torch.complex128, requires_grad=True)
    torch.linalg.vector_norm(z, p, dim).sum().backward()
    chosen = (z.grad != 0).sum(0) if dim == 0 else (z.grad != 0).sum()
    assert bool((chosen == 1).all())
    assert bool(torch.isfinite(torch.view_as_real(z.grad)).all())
