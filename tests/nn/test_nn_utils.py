"""nn.utils beside PyTorch's, and Parameter and its relatives."""

from __future__ import annotations

import copy
import importlib
import pickle
import warnings

import pytest

torch = pytest.importorskip("torch")

from twins import assert_same, needs, rl, to_rushlight  # noqa: E402

SIDES = pytest.mark.parametrize("side", [torch, rl], ids=["torch", "rushlight"])


def run(side, build, change, batch):
    """Outputs, state and gradients of a changed layer, in training twice and in evaluation."""
    side.manual_seed(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        layer = change(side.nn, build(side.nn).double())
    data = batch if side is torch else to_rushlight(batch)
    first = layer(data)
    state = {k: v.clone() for k, v in layer.state_dict().items()}
    first.square().sum().backward()
    grads = [p.grad for p in layer.parameters()]
    return [first, state, grads, layer(data), layer.eval()(data)]


CHANGES = {
    "old weight_norm": lambda nn, m: nn.utils.weight_norm(m),
    "old weight_norm whole": lambda nn, m: nn.utils.weight_norm(m, dim=None),
    "old spectral_norm": lambda nn, m: nn.utils.spectral_norm(m),
    "weight_norm": lambda nn, m: nn.utils.parametrizations.weight_norm(m),
    "spectral_norm": lambda nn, m: nn.utils.parametrizations.spectral_norm(m, n_power_iterations=2),
    **{
        f"orthogonal {kind} {start}": lambda nn, m, kind=kind, start=start: nn.utils.parametrizations.orthogonal(
            m, orthogonal_map=kind, use_trivialization=start
        )
        for kind in ("matrix_exp", "cayley", "householder")
        for start in (True, False)
    },
}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("shape", [(3, 3), (3, 4), (4, 3)])
def test_normalised_weights(name, shape):
    if name.startswith("orthogonal"):
        needs("geqrf", "tril", "linalg.householder_product", "linalg.solve", "matrix_exp")
    batch = torch.rand(5, shape[0], dtype=torch.float64)
    build = lambda nn: nn.Linear(*shape)
    assert_same(run(rl, build, CHANGES[name], batch), run(torch, build, CHANGES[name], batch), name, tolerance=1e-8)


@pytest.mark.parametrize("name", ["old spectral_norm", "spectral_norm", "weight_norm"])
def test_normalised_convolutions(name):
    for build in (lambda nn: nn.Conv1d(3, 4, 2), lambda nn: nn.ConvTranspose1d(3, 4, 2)):
        batch = torch.rand(2, 3, 6, dtype=torch.float64)
        assert_same(run(rl, build, CHANGES[name], batch), run(torch, build, CHANGES[name], batch), name, tolerance=1e-8)


@SIDES
def test_removal(side):
    nn = side.nn
    x = side.ones(2, 3)
    for make, remove in (
        (nn.utils.weight_norm, nn.utils.remove_weight_norm),
        (nn.utils.spectral_norm, nn.utils.remove_spectral_norm),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            m = make(nn.Linear(3, 4)).eval()
            before = m(x).tolist()
            remove(m)
            assert list(m.state_dict()) in (["weight", "bias"], ["bias", "weight"])
            assert abs(side.tensor(before).sum().item() - m(x).sum().item()) < 1e-4
            with pytest.raises(ValueError):
                remove(m)


@SIDES
def test_parametrize(side):
    nn = side.nn
    parametrize = nn.utils.parametrize

    class Double(nn.Module):
        def forward(self, w):
            return w * 2

        def right_inverse(self, w):
            return w / 2

    class Shrink(nn.Module):
        def forward(self, w):
            return w[:1]

    m = nn.Linear(2, 3)
    kind = type(m)
    original = m.weight.detach().clone()
    parametrize.register_parametrization(m, "weight", Double())
    assert parametrize.is_parametrized(m)
    assert parametrize.is_parametrized(m, "weight")
    assert not parametrize.is_parametrized(m, "bias")
    assert type(m).__name__ == "ParametrizedLinear"
    assert parametrize.type_before_parametrizations(m) is kind
    assert bool((m.weight == original).all())
    assert [n for n, _ in m.named_parameters()] == ["bias", "parametrizations.weight.original"]
    m.weight = side.ones(3, 2)
    assert m.parametrizations.weight.original.tolist() == [[0.5, 0.5]] * 3
    parametrize.register_parametrization(m, "weight", Double())
    assert bool((m.weight == 2 * side.ones(3, 2)).all())
    with parametrize.cached():
        assert m.weight is m.weight
    assert m.weight is not m.weight
    clone = copy.deepcopy(m)
    assert bool((clone.weight == m.weight).all())
    with pytest.raises(RuntimeError):
        pickle.dumps(m)
    with pytest.raises(ValueError):
        parametrize.register_parametrization(m, "nothing", Double())
    with pytest.raises(ValueError):
        parametrize.register_parametrization(nn.Linear(2, 3), "weight", Shrink())
    other = nn.Linear(2, 3)
    parametrize.transfer_parametrizations_and_params(clone, other)
    assert bool((other.weight == clone.weight).all())
    parametrize.remove_parametrizations(m, "weight")
    assert type(m) is kind
    assert m.weight.tolist() == [[2.0, 2.0]] * 3
    assert isinstance(m.weight, nn.Parameter)
    with pytest.raises(ValueError):
        parametrize.remove_parametrizations(m, "weight")


def test_copies_of_parametrized_modules_are_independent():
    m = rl.nn.utils.parametrizations.weight_norm(rl.nn.Linear(2, 3))
    clone = copy.deepcopy(m)
    rl.nn.utils.parametrize.remove_parametrizations(m, "weight")
    assert type(m) is rl.nn.Linear
    assert rl.nn.utils.parametrize.is_parametrized(clone)
    assert bool((clone.weight - m.weight).abs().max() < 1e-6)


def test_clipping():
    shapes = [(3, 2), (4,), ()]
    gen = torch.Generator().manual_seed(1)
    grads = [torch.randn(s, generator=gen) for s in shapes]
    for norm, limit in ((2.0, 0.5), (1.0, 3.0), (float("inf"), 0.2), (2.0, 100.0)):
        want = [torch.nn.Parameter(torch.zeros(s)) for s in shapes]
        got = [rl.nn.Parameter(rl.zeros(s)) for s in shapes]
        for w, g, grad in zip(want, got, grads, strict=True):
            w.grad, g.grad = grad.clone(), to_rushlight(grad)
        assert_same(rl.nn.utils.clip_grad_norm_(got, limit, norm), torch.nn.utils.clip_grad_norm_(want, limit, norm))
        assert_same([g.grad for g in got], [w.grad for w in want])
        rl.nn.utils.clip_grad_value_(got, 0.1)
        torch.nn.utils.clip_grad_value_(want, 0.1)
        assert_same([g.grad for g in got], [w.grad for w in want])
    assert rl.nn.utils.clip_grad_norm_([rl.nn.Parameter(rl.zeros(2))], 1.0).item() == 0.0
    p = rl.nn.Parameter(rl.zeros(1))
    p.grad = rl.tensor([float("nan")])
    with pytest.raises(RuntimeError):
        rl.nn.utils.clip_grad_norm_(p, 1.0, error_if_nonfinite=True)
    with pytest.warns(UserWarning, match="empty"):
        rl.nn.utils.clip_grad_norm_(iter([]), 1.0)


@SIDES
def test_parameters_as_a_vector(side):
    ps = [side.nn.Parameter(side.ones(2, 3)), side.nn.Parameter(side.zeros(2))]
    v = side.nn.utils.parameters_to_vector(ps)
    assert v.tolist() == [1] * 6 + [0] * 2
    side.nn.utils.vector_to_parameters(side.arange(8.0), ps)
    assert ps[1].tolist() == [6, 7]
    with pytest.raises(TypeError):
        side.nn.utils.vector_to_parameters([1.0], ps)


def test_fusion():
    torch.manual_seed(0)
    for conv, bn, data in (
        (torch.nn.Conv2d(3, 4, 3, bias=False), torch.nn.BatchNorm2d(4), torch.rand(2, 3, 6, 6)),
        (torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.rand(5, 3)),
    ):
        bn.running_mean.normal_()
        bn.running_var.uniform_(0.5, 2)
        mine = getattr(rl.nn, type(conv).__name__)(
            *((3, 4, 3) if data.dim() == 4 else (3, 4)), bias=conv.bias is not None
        )
        mine.load_state_dict(to_rushlight(dict(conv.state_dict())))
        norm = getattr(rl.nn, type(bn).__name__)(4)
        norm.load_state_dict(to_rushlight(dict(bn.state_dict())))
        mine.eval(), norm.eval(), conv.eval(), bn.eval()
        fuse = rl.nn.utils.fuse_conv_bn_eval if data.dim() == 4 else rl.nn.utils.fuse_linear_bn_eval
        assert_same(fuse(mine, norm)(to_rushlight(data)), bn(conv(data)))
        with pytest.raises(AssertionError):
            fuse(mine.train(), norm)


@SIDES
def test_functional_call(side):
    nn = side.nn
    m = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    m[1].weight = m[0].weight
    w = m[0].weight
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        call = nn.utils.stateless.functional_call
        out = call(
            m, {"0.weight": side.zeros(2, 2), "0.bias": side.ones(2), "1.bias": side.ones(2)}, (side.ones(1, 2),)
        )
        assert out.tolist() == [[1, 1]]
        assert m[0].weight is w
        out = call(m, {"0.weight": side.zeros(2, 2)}, (side.ones(1, 2),), tie_weights=False)
        assert m[1].weight is w
        with pytest.raises(RuntimeError):
            call(m, {"0.weight": w}, (side.ones(1, 2),), strict=True)
        with pytest.raises(RuntimeError):
            call(m, {"0.weight": side.ones(3, 7)}, (side.ones(1, 2),))
        assert m[0].weight is w


def test_packing():
    gen = torch.Generator().manual_seed(0)
    seqs = [torch.rand(n, 2, generator=gen) for n in (2, 4, 3)]
    mine = to_rushlight(seqs)
    t, r = torch.nn.utils.rnn, rl.nn.utils.rnn
    want, got = t.pack_sequence(seqs, enforce_sorted=False), r.pack_sequence(mine, enforce_sorted=False)
    assert_same(tuple(got), tuple(want))
    assert_same(r.pad_packed_sequence(got, True, 7.0, 6), t.pad_packed_sequence(want, True, 7.0, 6))
    assert_same(r.unpack_sequence(got), t.unpack_sequence(want))
    for side in ("left", "right"):
        assert_same(r.pad_sequence(mine, padding_side=side), t.pad_sequence(seqs, padding_side=side))
        assert_same(
            r.pad_sequence(mine, True, 1.5, padding_side=side), t.pad_sequence(seqs, True, 1.5, padding_side=side)
        )
    assert_same(list(r.unpad_sequence(r.pad_sequence(mine), [2, 4, 3])), seqs)
    assert got.double().data.dtype == rl.float64
    assert got.to("cpu") is got
    for lib, data in ((t, seqs), (r, mine)):
        with pytest.raises(RuntimeError):
            lib.pack_sequence(data)
        with pytest.raises(ValueError):
            lib.pad_packed_sequence(lib.pack_sequence(data, False), total_length=1)


@SIDES
def test_skip_init(side):
    m = side.nn.utils.skip_init(side.nn.Linear, 3, 4)
    assert tuple(m.weight.shape) == (4, 3)
    assert m.weight.device.type == "cpu"
    with pytest.raises(RuntimeError):
        side.nn.utils.skip_init(int)


# ---------------------------------------------------------------- Parameter


@SIDES
def test_parameter(side):
    nn = side.nn
    data = side.ones(2)
    p = nn.Parameter(data)
    assert isinstance(p, side.Tensor)
    assert isinstance(p, nn.Parameter)
    assert not isinstance(data, nn.Parameter)
    assert p.requires_grad
    assert not nn.Parameter(data, requires_grad=False).requires_grad
    data.fill_(3)
    assert p.tolist() == [3, 3]
    assert type(p * 2) is side.Tensor
    assert type(p.detach()) is side.Tensor
    assert repr(p) == "Parameter containing:\ntensor([3., 3.], requires_grad=True)"
    assert nn.Parameter().numel() == 0
    for other in (copy.deepcopy(p), pickle.loads(pickle.dumps(p))):
        assert isinstance(other, nn.Parameter)
        assert other.requires_grad
        assert other.tolist() == [3, 3]
    pair = copy.deepcopy([p, p])
    assert pair[0] is pair[1]
    p.note = "kept"
    assert pickle.loads(pickle.dumps(p)).note == "kept"
    with pytest.raises(RuntimeError):
        nn.Parameter(side.ones(2, dtype=side.int64))


@SIDES
def test_parameter_of_a_subclass(side):
    class Mine(side.Tensor):
        pass

    data = side.ones(2).as_subclass(Mine)
    p = side.nn.Parameter(data)
    assert type(p) is Mine
    assert isinstance(p, side.nn.Parameter)
    assert p.requires_grad


@SIDES
def test_buffer(side):
    nn = side.nn
    b = nn.Buffer(side.ones(2), persistent=False)
    assert isinstance(b, nn.Buffer)
    assert isinstance(b, side.Tensor)
    assert not isinstance(side.ones(2), nn.Buffer)
    m = nn.Module()
    m.b = b
    m.c = nn.Buffer(side.zeros(1))
    assert list(m.state_dict()) == ["c"]
    assert [n for n, _ in m.named_buffers()] == ["b", "c"]


@SIDES
def test_uninitialized(side):
    nn = side.nn
    p = nn.UninitializedParameter()
    assert isinstance(p, nn.Parameter)
    with pytest.raises(RuntimeError):
        p.shape
    with pytest.raises(ValueError):
        p + 1
    p.materialize((2, 3))
    assert type(p) is nn.Parameter
    assert tuple(p.shape) == (2, 3)
    b = nn.UninitializedBuffer()
    b.materialize((4,))
    assert tuple(b.shape) == (4,)
    assert not b.requires_grad


@SIDES
def test_lazy_modules(side):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        m = side.nn.LazyLinear(3)
        assert m.has_uninitialized_params()
        state = m.state_dict()
        other = side.nn.LazyLinear(3)
        other.load_state_dict(state)
        assert other.has_uninitialized_params()
        other.load_state_dict(side.nn.Linear(5, 3).state_dict())
        assert tuple(other.weight.shape) == (3, 5)
        assert tuple(other(side.ones(2, 5)).shape) == (2, 3)
        assert type(other) is side.nn.Linear
        assert other.in_features == 5
        m.to(side.float64)
        assert m(side.ones(2, 4, dtype=side.float64)).dtype == side.float64
        copied = copy.deepcopy(side.nn.LazyConv2d(3, 2))
        assert copied.has_uninitialized_params()
        with pytest.raises(RuntimeError):
            side.nn.LazyConv2d(3, 2)(side.ones(2))


def test_pruning():
    importlib.import_module("torch.nn.utils.prune")
    changes = [
        lambda p, m, t: p.l1_unstructured(m, "weight", 0.3),
        lambda p, m, t: p.random_unstructured(m, "weight", 4),
        lambda p, m, t: p.ln_structured(m, "weight", 2, 2, 0),
        lambda p, m, t: p.random_structured(m, "weight", 0.5, 1),
        lambda p, m, t: p.identity(m, "weight"),
        lambda p, m, t: p.custom_from_mask(m, "weight", t.eye(4, 5)),
    ]
    for change in changes:
        out = []
        for side in (torch, rl):
            prune = side.nn.utils.prune
            side.manual_seed(0)
            m = side.nn.Linear(5, 4)
            change(prune, m, side)
            seen = [m.weight.clone(), {k: v.clone() for k, v in m.state_dict().items()}]
            prune.l1_unstructured(m, "weight", 2)
            prune.ln_structured(m, "weight", 1, 1, 0)
            seen += [m.weight, m(side.ones(2, 5))]
            assert prune.is_pruned(m)
            prune.remove(m, "weight")
            assert not prune.is_pruned(m)
            seen.append(dict(m.state_dict()))
            out.append(seen)
        assert_same(out[1], out[0])
    out = []
    for side in (torch, rl):
        prune = side.nn.utils.prune
        side.manual_seed(0)
        a, b = side.nn.Linear(5, 4), side.nn.Linear(4, 3)
        prune.global_unstructured([(a, "weight"), (b, "weight")], prune.L1Unstructured, amount=0.4)
        out.append([a.weight, b.weight])
        for bad, error in (
            (lambda p=prune, m=a: p.l1_unstructured(m, "weight", -1), ValueError),
            (lambda p=prune, m=a: p.l1_unstructured(m, "weight", 1.5), ValueError),
            (lambda p=prune, m=a: p.l1_unstructured(m, "weight", "half"), TypeError),
            (lambda p=prune, m=b: p.ln_structured(m, "bias", 1, 2, 0), ValueError),
            (lambda p=prune, m=b: p.remove(m, "bias"), ValueError),
        ):
            with pytest.raises(error):
                bad()
        assert list(b._parameters) in (["bias", "weight_orig"], ["weight_orig", "bias"])
    assert_same(out[1], out[0])


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_gradients_of_convolutions(dims):
    data, weight = torch.rand(2, 4, *[7] * dims), torch.rand(6, 2, *[3] * dims)
    options = {"stride": 2, "padding": 1, "groups": 2}
    name = f"conv{dims}d"
    grad = torch.rand(getattr(torch.nn.functional, name)(data, weight, **options).shape)
    for which, args in (("input", (tuple(data.shape), weight, grad)), ("weight", (data, tuple(weight.shape), grad))):
        want = getattr(torch.nn.grad, f"{name}_{which}")(*args, **options)
        assert_same(getattr(rl.nn.grad, f"{name}_{which}")(*to_rushlight(args), **options), want)
