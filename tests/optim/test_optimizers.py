"""Every optimizer beside PyTorch's: parameters, state and errors."""

from __future__ import annotations

import copy
import importlib
import pickle
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")
rl = importlib.import_module("rushlight")

SIDES = pytest.mark.parametrize("side", [torch, rl], ids=["torch", "rushlight"])
SHAPES = [(4, 3), (3, 5), (6,)]

CASES = [
    *[
        ("SGD", kw)
        for kw in (
            {},
            {"lr": 0.1, "momentum": 0.9},
            {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
            {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "maximize": True},
            {"weight_decay": 0.1, "maximize": True},
        )
    ],
    *[
        (name, kw)
        for name in ("Adam", "AdamW")
        for kw in (
            {},
            {"lr": 0.1, "betas": (0.8, 0.9), "eps": 1e-4},
            {"lr": 0.1, "weight_decay": 0.1},
            {"lr": 0.1, "amsgrad": True},
            {"lr": 0.1, "maximize": True, "amsgrad": True, "weight_decay": 0.3},
        )
    ],
    ("Adam", {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("Adadelta", {}),
    ("Adadelta", {"lr": 0.5, "rho": 0.7, "weight_decay": 0.1, "maximize": True}),
    ("Adagrad", {}),
    ("Adagrad", {"lr": 0.2, "lr_decay": 0.1, "initial_accumulator_value": 0.3, "weight_decay": 0.1}),
    ("Adamax", {}),
    ("Adamax", {"lr": 0.1, "weight_decay": 0.1, "maximize": True}),
    ("ASGD", {}),
    ("ASGD", {"lr": 0.1, "t0": 3, "lambd": 0.01, "weight_decay": 0.1}),
    ("NAdam", {}),
    ("NAdam", {"lr": 0.1, "momentum_decay": 0.01, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RAdam", {}),
    ("RAdam", {"lr": 0.1, "betas": (0.9, 0.9), "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RMSprop", {}),
    ("RMSprop", {"lr": 0.05, "momentum": 0.9, "centered": True, "weight_decay": 0.1}),
    ("Rprop", {}),
    ("Rprop", {"lr": 0.1, "etas": (0.4, 1.5), "step_sizes": (1e-3, 1.0), "maximize": True}),
    ("Adafactor", {}),
    ("Adafactor", {"lr": 0.1, "weight_decay": 0.1, "eps": (1e-8, 1e-2), "d": 1.5, "maximize": True}),
    ("Muon", {}),
    ("Muon", {"lr": 0.1, "nesterov": False, "adjust_lr_fn": "match_rms_adamw"}),
    ("LBFGS", {"lr": 0.3, "max_iter": 4}),
    ("LBFGS", {"lr": 1, "max_iter": 5, "line_search_fn": "strong_wolfe", "history_size": 3}),
]
NAMES = sorted({name for name, _ in CASES})


def array(value):
    return np.array(value.detach().numpy(), copy=True) if hasattr(value, "detach") else value


def put(side, values, dtype):
    t = side.from_numpy(values.copy()).to(getattr(side, dtype))
    return side.nn.Parameter(t)


def problem(side, shapes, dtype):
    """Parameters and a function that sets their gradients for a quadratic loss."""
    rng = np.random.default_rng(0)
    params = [put(side, rng.standard_normal(s), dtype) for s in shapes]
    goals = [rng.standard_normal(s) for s in shapes]

    def closure():
        loss = 0.0
        for p, goal in zip(params, goals, strict=True):
            diff = array(p).astype(np.float64) - goal
            loss += 0.5 * float((diff**2).sum())
            p.grad = side.from_numpy(diff).to(p.dtype)
        return side.tensor(loss, dtype=params[0].dtype)

    return params, closure


def steps(side, name, kwargs, dtype, count=8):
    shapes = SHAPES[:2] if name == "Muon" else SHAPES
    params, closure = problem(side, shapes, dtype)
    optimizer = getattr(side.optim, name)(params, **kwargs)
    for _ in range(count):
        if name == "LBFGS":
            optimizer.step(closure)
        else:
            closure()
            optimizer.step()
    return params, optimizer, closure


def compare(got, want, tolerance, where=""):
    if isinstance(want, dict):
        assert list(got) == list(want), where
        for k in want:
            compare(got[k], want[k], tolerance, f"{where}[{k}]")
    elif isinstance(want, (list, tuple)):
        assert len(got) == len(want), where
        for i, (g, w) in enumerate(zip(got, want, strict=True)):
            compare(g, w, tolerance, f"{where}[{i}]")
    elif isinstance(want, torch.Tensor):
        assert str(got.dtype).rpartition(".")[2] == str(want.dtype).rpartition(".")[2], where
        np.testing.assert_allclose(array(got), array(want), rtol=tolerance, atol=tolerance, err_msg=where)
    elif isinstance(want, float):
        assert got == pytest.approx(want, rel=tolerance, abs=tolerance), where
    else:
        assert got == want, where


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("name", "kwargs"), CASES, ids=[f"{n}-{k}" for n, k in CASES])
def test_same_steps(name, kwargs, dtype):
    want, want_optimizer, _ = steps(torch, name, kwargs, dtype)
    got, got_optimizer, _ = steps(rl, name, kwargs, dtype)
    tolerance = 1e-9 if dtype == "float64" else 2e-5
    if name == "Muon":
        tolerance = 5e-3  # the iterations run in bfloat16
    if name == "LBFGS" and dtype == "float32":
        # curvatures are differences of nearby numbers, so only the result is compared
        compare(got, want, 1e-4, "parameters")
        return
    compare(got, want, tolerance, "parameters")
    compare(got_optimizer.state_dict(), want_optimizer.state_dict(), max(tolerance, 1e-7), "state")
    assert repr(got_optimizer) == repr(want_optimizer)


@pytest.mark.parametrize("name", NAMES)
def test_resuming_equals_going_on(name):
    kwargs = {"lr": 0.1, "momentum": 0.9} if name == "SGD" else {}
    straight, _, _ = steps(rl, name, kwargs, "float32", 8)
    params, optimizer, closure = steps(rl, name, kwargs, "float32", 4)
    state = pickle.loads(pickle.dumps(optimizer.state_dict()))
    again = getattr(rl.optim, name)(params, **kwargs)
    again.load_state_dict(state)
    for _ in range(4):
        closure()
        again.step(closure if name == "LBFGS" else None)
    for a, b in zip(params, straight, strict=True):
        assert (array(a) == array(b)).all()


@pytest.mark.parametrize("name", [n for n in NAMES if n not in ("Adafactor", "LBFGS", "Muon")])
def test_complex_parameters(name):
    rng = np.random.default_rng(0)
    values = rng.standard_normal((3, 2)) + 1j * rng.standard_normal((3, 2))
    out = []
    for side in (torch, rl):
        p = side.nn.Parameter(side.from_numpy(values.copy()))
        optimizer = getattr(side.optim, name)([p], lr=0.05)
        for _ in range(4):
            p.grad = p.detach() * (0.5 + 0.5j)
            optimizer.step()
        out.append(array(p))
    np.testing.assert_allclose(out[1], out[0], rtol=1e-8)


@pytest.mark.parametrize("name", [n for n in NAMES if n not in ("LBFGS", "Muon")])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision(name, dtype):
    p = rl.nn.Parameter(rl.ones(4, dtype=getattr(rl, dtype)))
    optimizer = getattr(rl.optim, name)([p], lr=0.1)
    p.grad = rl.ones_like(p)
    for _ in range(2):
        optimizer.step()
    assert p.dtype == getattr(rl, dtype)
    assert bool((p <= 1).all())
    assert bool(p.isfinite().all())


@SIDES
@pytest.mark.parametrize("name", [n for n in NAMES if n not in ("LBFGS",)])
def test_parameters_without_gradient_stay(side, name):
    a, b = side.nn.Parameter(side.ones(2, 2)), side.nn.Parameter(side.ones(2, 2))
    optimizer = getattr(side.optim, name)([a, b], lr=0.1)
    a.grad = side.ones(2, 2)
    optimizer.step()
    assert b.tolist() == [[1, 1], [1, 1]]
    assert a.tolist() != b.tolist()
    b.grad = side.ones(2, 2)
    optimizer.step()
    assert b.tolist() != [[1, 1], [1, 1]]


@SIDES
def test_groups_and_names(side):
    nn = side.nn
    m = nn.Linear(2, 2)
    optimizer = side.optim.SGD([{"params": [m.weight], "lr": 0.5}, {"params": m.bias}], lr=0.1)
    assert [g["lr"] for g in optimizer.param_groups] == [0.5, 0.1]
    extra = nn.Parameter(side.ones(1))
    optimizer.add_param_group({"params": [extra], "momentum": 0.3})
    assert optimizer.state_dict()["param_groups"][2]["params"] == [2]
    named = side.optim.Adam(m.named_parameters())
    assert named.param_groups[0]["param_names"] == ["weight", "bias"]
    other = side.optim.Adam(m.parameters())
    other.load_state_dict(named.state_dict())
    assert other.param_groups[0]["params"][0] is m.weight


@SIDES
def test_tensor_settings(side):
    p = side.nn.Parameter(side.ones(2))
    lr = side.tensor(0.5)
    optimizer = side.optim.SGD([p], lr=lr)
    p.grad = side.ones(2)
    optimizer.step()
    assert p.tolist() == [0.5, 0.5]
    lr.fill_(0.25)
    optimizer.step()
    assert p.tolist() == [0.25, 0.25]
    adam = side.optim.Adam([p], lr=side.tensor(0.1), betas=(side.tensor(0.9), side.tensor(0.999)))
    adam.step()
    assert p.tolist() == pytest.approx([0.15, 0.15])


@SIDES
@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_differentiable_step(side, name):
    x = side.ones(2, dtype=side.float64, requires_grad=True)
    p = x.clone()
    p.grad = x**2
    kwargs = {"momentum": 0.5} if name == "SGD" else {}
    optimizer = getattr(side.optim, name)([p], lr=0.1, differentiable=True, **kwargs)
    optimizer.step()
    (g,) = side.autograd.grad(p.sum(), x)
    if name == "SGD":
        # p = x - 0.1 * (x^2), the momentum buffer being detached from nothing but itself
        assert g.tolist() == pytest.approx([1.0, 1.0]) or g.tolist() == pytest.approx([0.8, 0.8])
    else:
        assert all(abs(v - 1.0) < 1e-6 for v in g.tolist())


@SIDES
def test_zero_grad(side):
    p = side.nn.Parameter(side.ones(2))
    optimizer = side.optim.SGD([p], lr=0.1)
    (p * 2).sum().backward()
    optimizer.zero_grad(set_to_none=False)
    assert p.grad.tolist() == [0, 0]
    optimizer.zero_grad()
    assert p.grad is None


@SIDES
def test_closure(side):
    p = side.nn.Parameter(side.ones(1))
    optimizer = side.optim.Adam([p], lr=0.1)

    def closure():
        optimizer.zero_grad()
        loss = (p**2).sum()
        loss.backward()
        return loss

    with side.no_grad():
        assert optimizer.step(closure).item() == 1.0
    assert p.item() == pytest.approx(0.9)


@SIDES
def test_step_hooks(side):
    p = side.nn.Parameter(side.ones(1))
    optimizer = side.optim.SGD([p], lr=0.1)
    log = []
    first = optimizer.register_step_pre_hook(lambda opt, args, kwargs: log.append(("pre", opt is optimizer, p.item())))
    optimizer.register_step_post_hook(lambda opt, args, kwargs: log.append(("post", round(p.item(), 4))))
    p.grad = side.ones(1)
    optimizer.step()
    assert log == [("pre", True, 1.0), ("post", 0.9)]
    first.remove()
    optimizer.step()
    assert len(log) == 3
    optimizer.register_step_pre_hook(lambda opt, args, kwargs: 3)
    with pytest.raises(RuntimeError):
        optimizer.step()


@SIDES
def test_global_step_hooks(side):
    module = importlib.import_module(side.__name__ + ".optim.optimizer")
    log = []
    old = side.optim.SGD([side.nn.Parameter(side.ones(1))], lr=0.1)
    handles = [
        module.register_optimizer_step_pre_hook(lambda opt, args, kwargs: log.append("pre")),
        module.register_optimizer_step_post_hook(lambda opt, args, kwargs: log.append("post")),
    ]
    try:

        class Own(side.optim.Optimizer):
            def __init__(self, params):
                super().__init__(params, {})

            def step(self, closure=None):
                log.append("step")

        old.step()
        Own([side.nn.Parameter(side.ones(1))]).step()
        assert log == ["pre", "post", "pre", "step", "post"]
    finally:
        for h in handles:
            h.remove()
    old.step()
    assert len(log) == 5


@SIDES
def test_state_dict_hooks(side):
    p = side.nn.Parameter(side.ones(1))
    optimizer = side.optim.SGD([p], lr=0.1, momentum=0.9)
    log = []
    optimizer.register_state_dict_pre_hook(lambda opt: log.append("save"))
    optimizer.register_state_dict_post_hook(lambda opt, state: {**state, "more": 1})
    state = optimizer.state_dict()
    assert state["more"] == 1
    optimizer.register_load_state_dict_pre_hook(lambda opt, s: log.append(s["more"]))
    optimizer.register_load_state_dict_post_hook(lambda opt: log.append("done"))
    optimizer.load_state_dict(state)
    assert log == ["save", 1, "done"]


@SIDES
def test_loading_converts_and_checks(side):
    a = side.nn.Parameter(side.ones(2, dtype=side.float64))
    optimizer = side.optim.Adam([a])
    a.grad = side.ones(2, dtype=side.float64)
    optimizer.step()
    b = side.nn.Parameter(side.ones(2))
    other = side.optim.Adam([b])
    other.load_state_dict(optimizer.state_dict())
    state = other.state[b]
    assert state["exp_avg"].dtype == side.float32
    assert state["step"].dtype == side.float32
    assert state["step"].item() == 1
    two = side.nn.Parameter(side.ones(2))
    with pytest.raises(ValueError):
        side.optim.Adam([b, two]).load_state_dict(optimizer.state_dict())
    with pytest.raises(ValueError):
        side.optim.Adam([{"params": [b]}, {"params": [two]}]).load_state_dict(optimizer.state_dict())


@SIDES
def test_replaced_state_is_seen(side):
    p = side.nn.Parameter(side.ones(2))
    optimizer = side.optim.SGD([p], lr=1.0, momentum=0.5)
    p.grad = side.ones(2)
    optimizer.step()
    optimizer.state[p]["momentum_buffer"] = side.full((2,), 10.0)
    optimizer.step()
    assert p.tolist() == [-6, -6]
    optimizer.state.clear()
    optimizer.step()
    assert p.tolist() == [-7, -7]


@SIDES
def test_copies(side):
    p = side.nn.Parameter(side.ones(2))
    optimizer = side.optim.Adam([p], lr=0.1)
    p.grad = side.ones(2)
    optimizer.step()
    for other in (copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))):
        q = other.param_groups[0]["params"][0]
        assert q is not p
        assert other.state[q]["step"].item() == 1
        q.grad = side.ones(2)
        other.step()
        assert p.tolist() == pytest.approx([0.9, 0.9])


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda t, p: t.optim.SGD(p), TypeError),
        (lambda t, p: t.optim.SGD([]), ValueError),
        (lambda t, p: t.optim.SGD([3]), TypeError),
        (lambda t, p: t.optim.SGD([{"params": {p}}]), TypeError),
        (lambda t, p: t.optim.SGD([p * 2]), ValueError),
        (lambda t, p: t.optim.SGD([{"params": [p]}, {"params": [p]}]), ValueError),
        (lambda t, p: t.optim.SGD([("w", p), t.nn.Parameter(t.ones(1))]), ValueError),
        (lambda t, p: t.optim.SGD([p]).add_param_group([p]), TypeError),
        (lambda t, p: t.optim.SGD([p], lr=-1.0), ValueError),
        (lambda t, p: t.optim.SGD([p], momentum=-1.0), ValueError),
        (lambda t, p: t.optim.SGD([p], weight_decay=-1.0), ValueError),
        (lambda t, p: t.optim.SGD([p], nesterov=True), ValueError),
        (lambda t, p: t.optim.SGD([p], lr=t.ones(2)), ValueError),
        (lambda t, p: t.optim.SGD([p], foreach=True, fused=True), RuntimeError),
        (lambda t, p: t.optim.SGD([p], differentiable=True, fused=True), RuntimeError),
        (lambda t, p: t.optim.Adam([p], betas=(1.0, 0.9)), ValueError),
        (lambda t, p: t.optim.Adam([p], eps=-1.0), ValueError),
        (lambda t, p: t.optim.Adam([p], betas=(0.9, t.tensor(0.9))), ValueError),
        (lambda t, p: t.optim.Adam([p], lr=t.tensor(0.1), foreach=True), ValueError),
        (lambda t, p: t.optim.Adadelta([p], rho=1.5), ValueError),
        (lambda t, p: t.optim.Adagrad([p], lr_decay=-1.0), ValueError),
        (lambda t, p: t.optim.Rprop([p], etas=(1.5, 1.2)), ValueError),
        (lambda t, p: t.optim.Adafactor([p], d=0.5), ValueError),
        (lambda t, p: t.optim.Adafactor([p], beta2_decay=0.5), ValueError),
        (lambda t, p: t.optim.Muon([p]), ValueError),
        (lambda t, p: t.optim.LBFGS([{"params": [p]}, {"params": [t.nn.Parameter(t.ones(1))]}]), ValueError),
        (lambda t, p: t.optim.LBFGS([p]).step(), TypeError),
    ],
)
@SIDES
def test_bad_settings(side, make, error):
    with pytest.raises(error):
        make(side, side.nn.Parameter(side.ones(2)))


@SIDES
def test_duplicate_parameters_warn(side):
    p = side.nn.Parameter(side.ones(2))
    with pytest.warns(UserWarning, match=r"duplicate|twice"):
        side.optim.SGD([p, p], lr=0.1)


def test_reference_path_equals_the_native_one(monkeypatch):
    # the tensor formulas are what is recorded for differentiable=True
    for name, kwargs in CASES:
        if name not in ("SGD", "Adam", "AdamW"):
            continue
        for dtype in ("float32", "float64"):
            native, _, _ = steps(rl, name, kwargs, dtype)
            module = importlib.import_module("rushlight.optim.sgd" if name == "SGD" else "rushlight.optim.adam")
            with monkeypatch.context() as patch:
                patch.setattr(module, "_native_step", None)
                reference, _, _ = steps(rl, name, kwargs, dtype)
            compare(
                [array(p).tolist() for p in native], [array(p).tolist() for p in reference], 1e-6, f"{name} {kwargs}"
            )


def test_warnings_are_quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        p = rl.nn.Parameter(rl.ones(2))
        for name in NAMES:
            if name not in ("Muon", "LBFGS"):
                p.grad = rl.ones(2)
                getattr(rl.optim, name)([p]).step()
