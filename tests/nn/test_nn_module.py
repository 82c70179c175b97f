"""Module: members, state, hooks, conversion, text."""

import copy
import gc
import pickle
import warnings
import weakref

import pytest


def net(torch):
    nn = torch.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(3, 4)
            self.block = nn.Sequential(nn.ReLU(), nn.Linear(4, 2))
            self.register_buffer("count", torch.zeros(2))
            self.register_buffer("scratch", torch.ones(1), persistent=False)

        def forward(self, x):
            return self.block(self.first(x))

    return Net()


def test_names_of_members(torch):
    m = net(torch)
    assert [n for n, _ in m.named_parameters()] == ["first.weight", "first.bias", "block.1.weight", "block.1.bias"]
    assert [n for n, _ in m.named_buffers()] == ["count", "scratch"]
    assert [n for n, _ in m.named_modules()] == ["", "first", "block", "block.0", "block.1"]
    assert [n for n, _ in m.named_children()] == ["first", "block"]
    assert [n for n, _ in m.named_parameters(prefix="p", recurse=False)] == []
    assert [n for n, _ in m.block.named_parameters("p")] == ["p.1.weight", "p.1.bias"]
    assert len(list(m.parameters())) == 4
    assert len(list(m.modules())) == 5
    assert list(m.state_dict()) == ["count", "first.weight", "first.bias", "block.1.weight", "block.1.bias"]
    assert "first" in dir(m)
    assert "count" in dir(m)
    assert "0" not in dir(m.block)


def test_shared_members_are_listed_once(torch):
    nn = torch.nn
    a = nn.Linear(2, 2)
    m = nn.Sequential(a, a)
    m.add_module("tied", nn.Linear(2, 2))
    m.tied.weight = a.weight
    assert [n for n, _ in m.named_parameters()] == ["0.weight", "0.bias", "tied.bias"]
    names = [n for n, _ in m.named_parameters(remove_duplicate=False)]
    assert names == ["0.weight", "0.bias", "1.weight", "1.bias", "tied.weight", "tied.bias"]
    assert [n for n, _ in m.named_modules(remove_duplicate=False)] == ["", "0", "1", "tied"]
    assert [n for n, _ in m.named_modules()] == ["", "0", "tied"]


def test_assignment_rules(torch):
    nn = torch.nn
    m = nn.Module()
    m.w = nn.Parameter(torch.ones(2))
    m.b = nn.Buffer(torch.zeros(2))
    m.sub = nn.Linear(1, 1)
    m.plain = 5
    assert list(m._parameters) == ["w"]
    assert list(m._buffers) == ["b"]
    assert list(m._modules) == ["sub"]
    assert m.plain == 5
    with pytest.raises(TypeError):
        m.w = torch.ones(2)
    with pytest.raises(TypeError):
        m.sub = 3
    with pytest.raises(TypeError):
        m.b = "text"
    m.b = torch.ones(2)
    assert m.b.tolist() == [1, 1]
    m.w = None
    m.sub = None
    m.b = None
    assert m.w is None
    assert m.sub is None
    assert list(m.state_dict()) == []
    # a member of one kind takes the name of another kind away
    m.x = torch.ones(1)
    m.x = nn.Parameter(torch.ones(1))
    assert "x" in m._parameters
    assert "x" not in m.__dict__
    m.x = nn.ReLU() if False else None
    del m.x
    assert not hasattr(m, "x")
    with pytest.raises(AttributeError):
        del m.missing
    with pytest.raises(AttributeError):
        m.missing


def test_nothing_works_before_init(torch):
    nn = torch.nn

    class Late(nn.Module):
        def __init__(self, value):
            self.member = value
            super().__init__()

    for value in (nn.Parameter(torch.ones(1)), nn.ReLU(), nn.Buffer(torch.ones(1))):
        with pytest.raises(AttributeError):
            Late(value)
    assert Late(3).__dict__["training"] is True


@pytest.mark.parametrize("method", ["register_parameter", "register_buffer", "add_module"])
def test_names_that_cannot_be_used(torch, method):
    m = torch.nn.Module()
    m.taken = 1
    register = getattr(m, method)
    for name, error in ((3, TypeError), ("a.b", KeyError), ("", KeyError), ("taken", KeyError)):
        with pytest.raises(error):
            register(name, None)
    with pytest.raises(TypeError):
        register("x", "no member")
    register("fine", None)
    assert m.fine is None


def test_a_result_is_no_parameter(torch):
    m = torch.nn.Module()
    w = torch.nn.Parameter(torch.ones(2))
    with pytest.raises(TypeError):
        m.register_parameter("w", w * 2)


def test_paths(torch):
    m = net(torch)
    assert m.get_submodule("") is m
    assert m.get_submodule("block.1") is m.block[1]
    assert m.get_parameter("block.1.bias") is m.block[1].bias
    assert m.get_buffer("count") is m.count
    for call in (
        lambda: m.get_submodule("block.7"),
        lambda: m.get_submodule("count"),
        lambda: m.get_parameter("block.7.weight"),
        lambda: m.get_parameter("count"),
        lambda: m.get_buffer("first.weight"),
    ):
        with pytest.raises(AttributeError):
            call()
    new = torch.nn.Tanh()
    m.set_submodule("block.0", new)
    assert m.block[0] is new
    m.set_submodule("extra", new)
    assert m.extra is new
    with pytest.raises(AttributeError):
        m.set_submodule("unknown", new, strict=True)
    with pytest.raises(AttributeError):
        m.set_submodule("nowhere.at.all", new)
    with pytest.raises(ValueError):
        m.set_submodule("", new)
    with pytest.raises(ValueError):
        m.set_submodule("block.0", 3)


def test_no_arguments_for_the_base_class(torch):
    with pytest.raises(TypeError):
        torch.nn.Module(3)
    with pytest.raises(TypeError):
        torch.nn.Module(size=3)

    class Base:
        def __init__(self, size):
            self.size = size

    class Both(torch.nn.Module, Base):
        call_super_init = True

    assert Both(size=3).size == 3


def test_forward_is_required(torch):
    with pytest.raises(NotImplementedError):
        torch.nn.Module()(1)


def test_modes(torch):
    m = net(torch)
    assert m.eval() is m
    assert not any(x.training for x in m.modules())
    m.train()
    assert all(x.training for x in m.modules())
    with pytest.raises(ValueError):
        m.train("yes")
    m.requires_grad_(False)
    assert not any(p.requires_grad for p in m.parameters())
    seen = []
    m.apply(lambda x: seen.append(type(x).__name__))
    assert seen == ["Linear", "ReLU", "Linear", "Sequential", "Net"]


def test_zero_grad(torch):
    m = torch.nn.Linear(2, 1)
    m(torch.ones(1, 2)).sum().backward()
    m.zero_grad(set_to_none=False)
    assert m.weight.grad.tolist() == [[0.0, 0.0]]
    m.zero_grad()
    assert m.weight.grad is None


# ---------------------------------------------------------------- conversion


def test_dtype_conversion_keeps_identity(torch):
    m = torch.nn.BatchNorm1d(3)
    w = m.weight
    m(torch.ones(2, 3)).sum().backward()
    assert m.double() is m
    assert m.weight is w
    assert w.dtype == torch.float64
    assert w.grad.dtype == torch.float64
    assert m.running_mean.dtype == torch.float64
    assert m.num_batches_tracked.dtype == torch.int64
    m.to(torch.float16)
    assert m.bias.dtype == torch.float16
    m.to(dtype=torch.float32)
    assert m.float().bias.dtype == torch.float32
    assert m.half().bfloat16().bias.dtype == torch.bfloat16
    m.to(torch.zeros(1, dtype=torch.float64))
    assert m.weight.dtype == torch.float64
    m.to("cpu", torch.float32)
    assert m.weight.dtype == torch.float32
    assert w.is_leaf
    assert w.requires_grad
    with pytest.raises(TypeError):
        m.to(torch.int64)
    with pytest.raises(TypeError):
        m.to(nonsense=3)


def test_tying_survives_conversion_and_copies(torch):
    nn = torch.nn
    m = nn.ModuleDict({"a": nn.Linear(2, 2), "b": nn.Linear(2, 2)})
    m["b"].weight = m["a"].weight
    m.double()
    assert m["b"].weight is m["a"].weight
    for other in (copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
        assert other["b"].weight is other["a"].weight
        assert other["a"].weight is not m["a"].weight
        assert other["a"].weight.tolist() == m["a"].weight.tolist()
        assert isinstance(other["a"].weight, nn.Parameter)


def test_tying_survives_assign(rl):
    nn = rl.nn
    m = nn.ModuleDict({"a": nn.Linear(2, 2), "b": nn.Linear(2, 2)})
    m["b"].weight = m["a"].weight
    state = {k: v.clone() for k, v in m.state_dict().items()}
    state["b.weight"].fill_(7)
    m.load_state_dict(state, assign=True)
    assert m["b"].weight is m["a"].weight
    # as when values are copied, the last name decides
    assert m["a"].weight.tolist() == [[7, 7], [7, 7]]


def test_meta_and_to_empty(torch):
    m = torch.nn.Linear(2, 3, device="meta")
    assert m.weight.device.type == "meta"
    m.to_empty(device="cpu")
    assert m.weight.device.type == "cpu"
    assert tuple(m.weight.shape) == (3, 2)
    assert isinstance(m.weight, torch.nn.Parameter)


# ---------------------------------------------------------------- state


def test_state_dict_round_trip(torch):
    m, other = net(torch), net(torch)
    result = other.load_state_dict(m.state_dict())
    assert repr(result) == "<All keys matched successfully>"
    x = torch.ones(2, 3)
    assert other(x).tolist() == m(x).tolist()
    state = m.state_dict()
    assert state._metadata["block.1"] == {"version": 1}
    assert not state["first.weight"].requires_grad
    assert m.state_dict(keep_vars=True)["first.weight"] is m.first.weight
    assert list(m.first.state_dict(prefix="p.")) == ["p.weight", "p.bias"]
    # the state shares memory with the module
    with torch.no_grad():
        m.first.bias.fill_(5)
    assert state["first.bias"].tolist() == [5] * 4


def test_positional_state_dict_arguments_are_deprecated(torch):
    m = torch.nn.Linear(1, 1)
    with pytest.warns(FutureWarning):
        out = m.state_dict({}, "p.")
    assert list(out) == ["p.weight", "p.bias"]


def test_missing_and_unexpected_keys(torch):
    m = net(torch)
    state = m.state_dict()
    del state["first.weight"]
    state["new.key"] = torch.ones(1)
    state["block.1.other"] = torch.ones(1)
    result = m.load_state_dict(state, strict=False)
    assert result.missing_keys == ["first.weight"]
    assert sorted(result.unexpected_keys) == ["block.1.other", "new.key"]
    with pytest.raises(RuntimeError) as error:
        m.load_state_dict(state)
    for name in ("first.weight", "new.key", "block.1.other", "Net"):
        assert name in str(error.value)


def test_wrong_size_names_key_and_shapes(torch):
    m = net(torch)
    state = m.state_dict()
    state["block.1.weight"] = torch.ones(5, 4)
    with pytest.raises(RuntimeError) as error:
        m.load_state_dict(state)
    text = str(error.value)
    assert "block.1.weight" in text
    assert "[5, 4]" in text
    assert "[2, 4]" in text
    with pytest.raises(RuntimeError):
        m.load_state_dict({"first.weight": "no tensor"}, strict=False)
    with pytest.raises(TypeError):
        m.load_state_dict([1])


def test_values_are_copied_not_shared(torch):
    m = torch.nn.Linear(2, 1)
    state = {"weight": torch.ones(1, 2, dtype=torch.float64), "bias": torch.zeros(1)}
    w = m.weight
    m.load_state_dict(state)
    assert m.weight is w
    assert w.dtype == torch.float32
    state["weight"].fill_(9)
    assert w.tolist() == [[1, 1]]


def test_assign(torch):
    m = torch.nn.Linear(2, 1)
    m.weight.requires_grad_(False)
    state = {"weight": torch.ones(1, 2, dtype=torch.float64), "bias": torch.zeros(1)}
    m.load_state_dict(state, assign=True)
    assert m.weight.dtype == torch.float64
    assert isinstance(m.weight, torch.nn.Parameter)
    assert not m.weight.requires_grad
    assert m.bias.requires_grad
    assert "assign_to_params_buffers" not in repr(getattr(state, "_metadata", ""))


def test_extra_state(torch):
    class Extra(torch.nn.Module):
        def __init__(self, value):
            super().__init__()
            self.value = value

        def get_extra_state(self):
            return {"value": self.value}

        def set_extra_state(self, state):
            self.value = state["value"]

    a, b = torch.nn.Sequential(Extra(3)), torch.nn.Sequential(Extra(4))
    assert a.state_dict() == {"0._extra_state": {"value": 3}}
    b.load_state_dict(a.state_dict())
    assert b[0].value == 3
    with pytest.raises(RuntimeError):
        b.load_state_dict({})
    with pytest.raises(RuntimeError):
        torch.nn.Sequential(torch.nn.ReLU()).load_state_dict(a.state_dict())


def test_state_dict_hooks(torch):
    m = torch.nn.Sequential(torch.nn.Linear(1, 1))
    calls = []
    m.register_state_dict_pre_hook(lambda mod, prefix, keep: calls.append(("pre", prefix, keep)))
    handle = m[0].register_state_dict_post_hook(
        lambda mod, state, prefix, meta: state.__setitem__(prefix + "more", torch.ones(1))
    )
    assert list(m.state_dict()) == ["0.weight", "0.bias", "0.more"]
    handle.remove()
    assert list(m.state_dict()) == ["0.weight", "0.bias"]
    assert calls == [("pre", "", False)] * 2
    m.register_state_dict_post_hook(lambda *a: 3)
    with pytest.raises(RuntimeError):
        m.state_dict()


def test_load_state_dict_hooks(torch):
    m = torch.nn.Sequential(torch.nn.Linear(1, 1))
    seen = []

    def rename(mod, state, prefix, metadata, strict, missing, unexpected, errors):
        seen.append((mod is m[0], prefix))
        state[prefix + "weight"] = state.pop(prefix + "w")

    m[0].register_load_state_dict_pre_hook(rename)
    m.register_load_state_dict_post_hook(lambda mod, keys: keys.missing_keys.clear())
    m.load_state_dict({"0.w": torch.ones(1, 1)})
    assert seen == [(True, "0.")]
    assert m[0].weight.item() == 1


# ---------------------------------------------------------------- hooks


def test_forward_hooks_in_order(torch):
    m = torch.nn.Identity()
    log = []
    m.register_forward_pre_hook(lambda mod, args: log.append("pre1"))
    m.register_forward_pre_hook(lambda mod, args: log.append("pre0"), prepend=True)
    m.register_forward_pre_hook(lambda mod, args: (args[0] + 1,))
    m.register_forward_hook(lambda mod, args, out: log.append(("post", out.item())))
    m.register_forward_hook(lambda mod, args, out: out * 10)
    m.register_forward_hook(lambda mod, args, out: log.append("first"), prepend=True)
    assert m(torch.tensor(1.0)).item() == 20
    assert log == ["pre0", "pre1", "first", ("post", 2.0)]


def test_hooks_with_keywords(torch):
    class Scale(torch.nn.Module):
        def forward(self, x, *, by=1):
            return x * by

    m = Scale()
    m.register_forward_pre_hook(lambda mod, args, kwargs: (args, {"by": kwargs["by"] + 1}), with_kwargs=True)
    seen = []
    m.register_forward_hook(lambda mod, args, kwargs, out: seen.append(kwargs), with_kwargs=True)
    assert m(torch.tensor(2.0), by=3).item() == 8
    assert seen == [{"by": 4}]
    m.register_forward_pre_hook(lambda mod, args, kwargs: 3, with_kwargs=True)
    with pytest.raises(RuntimeError):
        m(torch.tensor(2.0), by=3)


def test_handles(torch):
    m = torch.nn.Identity()
    with m.register_forward_hook(lambda mod, args, out: out + 1):
        assert m(1) == 2
    assert m(1) == 1
    handle = m.register_forward_hook(lambda mod, args, out: out + 1)
    handle.remove()
    handle.remove()
    assert m(1) == 1


def test_always_called_hook(torch):
    class Bad(torch.nn.Module):
        def forward(self):
            raise RuntimeError("no")

    m = Bad()
    seen = []
    m.register_forward_hook(lambda mod, args, out: seen.append("plain"))
    m.register_forward_hook(lambda mod, args, out: seen.append(out), always_call=True)
    with pytest.raises(RuntimeError, match="no"):
        m()
    assert seen == [None]


def test_full_backward_hook(torch):
    m = torch.nn.Linear(2, 1, bias=False)
    with torch.no_grad():
        m.weight.copy_(torch.tensor([[2.0, 3.0]]))
    seen = []
    m.register_full_backward_hook(lambda mod, gi, go: seen.append((gi[0].tolist(), go[0].tolist())))
    m.register_full_backward_pre_hook(lambda mod, go: (go[0] * 2,))
    x = torch.ones(1, 2, requires_grad=True)
    m(x).sum().backward()
    assert seen == [([[4.0, 6.0]], [[2.0]])]
    assert x.grad.tolist() == [[4.0, 6.0]]
    assert m.weight.grad.tolist() == [[2.0, 2.0]]


def test_full_backward_hook_replaces_gradients(torch):
    m = torch.nn.Identity()
    m.register_full_backward_hook(lambda mod, gi, go: (gi[0] * 10, None))
    a, b = torch.ones(2, requires_grad=True), 3

    class Two(torch.nn.Module):
        def forward(self, x, y):
            return x * y

    m = Two()
    m.register_full_backward_hook(lambda mod, gi, go: (gi[0] * 10, gi[1]))
    m(a, b).sum().backward()
    assert a.grad.tolist() == [30.0, 30.0]
    bad = torch.nn.Identity()
    bad.register_full_backward_hook(lambda mod, gi, go: (gi[0], gi[0]))
    with pytest.raises(RuntimeError):
        bad(a).sum().backward()


def test_full_backward_hook_without_input_gradient(torch):
    m = torch.nn.Linear(2, 1)
    seen = []
    m.register_full_backward_hook(lambda mod, gi, go: seen.append((gi, go[0].tolist())))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        m(torch.ones(1, 2)).sum().backward()
    assert seen == [((None,), [[1.0]])]


def test_hooks_see_the_value_at_the_border_with_in_place_layers(rl):
    nn = rl.nn
    first = nn.Linear(2, 2)
    seen = []
    first.register_full_backward_hook(lambda mod, gi, go: seen.append(go[0].tolist()))
    net = nn.Sequential(first, nn.ReLU(inplace=True))
    with rl.no_grad():
        first.weight.copy_(rl.tensor([[1.0, 0.0], [0.0, -1.0]]))
        first.bias.zero_()
    net(rl.ones(1, 2)).sum().backward()
    # the gradient of what first returned: the second element was negative
    assert seen == [[[1.0, 0.0]]]


def test_hooked_in_place_module(rl):
    relu = rl.nn.ReLU(inplace=True)
    seen = []
    relu.register_full_backward_hook(lambda mod, gi, go: seen.append((gi[0].tolist(), go[0].tolist())))
    x = rl.tensor([1.0, -1.0], requires_grad=True)
    relu(x * 1).sum().backward()
    assert seen == [([1.0, 0.0], [1.0, 1.0])]
    assert x.grad.tolist() == [1.0, 0.0]


def test_outer_hooks_run_before_inner_ones(torch):
    inner = torch.nn.Linear(1, 1)
    outer = torch.nn.Sequential(inner)
    log = []
    inner.register_full_backward_pre_hook(lambda mod, go: log.append(("inner", go[0].item())))
    outer.register_full_backward_pre_hook(lambda mod, go: (log.append("outer"), (go[0] * 2,))[1])
    outer(torch.ones(1, 1, requires_grad=True)).sum().backward()
    assert log == ["outer", ("inner", 2.0)]


def test_kinds_of_backward_hooks_do_not_mix(torch):
    m = torch.nn.Identity()
    m.register_full_backward_hook(lambda *a: None)
    with pytest.raises(RuntimeError):
        m.register_backward_hook(lambda *a: None)
    m = torch.nn.Identity()
    m.register_backward_hook(lambda *a: None)
    with pytest.raises(RuntimeError):
        m.register_full_backward_hook(lambda *a: None)


def test_legacy_backward_hook(torch):
    m = torch.nn.Linear(2, 1)
    seen = []
    m.register_backward_hook(lambda mod, gi, go: seen.append(go[0].tolist()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        m(torch.ones(1, 2)).sum().backward()
    assert seen == [[[1.0]]]


def test_global_hooks(torch):
    from importlib import import_module

    module = import_module(torch.__name__ + ".nn.modules.module")
    m = torch.nn.Linear(1, 1)
    log = []
    handles = [
        module.register_module_forward_pre_hook(lambda mod, args: log.append("pre")),
        module.register_module_forward_hook(lambda mod, args, out: log.append("post")),
        module.register_module_full_backward_hook(lambda mod, gi, go: log.append("back")),
        module.register_module_full_backward_pre_hook(lambda mod, go: log.append("pre-back")),
        module.register_module_parameter_registration_hook(lambda mod, name, p: log.append("param " + name)),
        module.register_module_buffer_registration_hook(lambda mod, name, b: log.append("buffer " + name)),
        module.register_module_module_registration_hook(lambda mod, name, s: log.append("module " + name)),
    ]
    try:
        m(torch.ones(1, 1, requires_grad=True)).sum().backward()
        assert log == ["pre", "post", "pre-back", "back"]
        log.clear()
        m.register_parameter("p", torch.nn.Parameter(torch.ones(1)))
        m.register_buffer("b", torch.ones(1))
        m.sub = torch.nn.Identity()
        assert log == ["param p", "buffer b", "module sub"]
    finally:
        for h in handles:
            h.remove()
    log.clear()
    m(torch.ones(1, 1))
    assert log == []


# ---------------------------------------------------------------- text, copies, errors


def test_repr(torch):
    nn = torch.nn
    m = nn.Sequential(nn.Linear(2, 3), nn.ModuleList([nn.ReLU(), nn.ReLU(), nn.Tanh()]))
    assert repr(m) == (
        "Sequential(\n"
        "  (0): Linear(in_features=2, out_features=3, bias=True)\n"
        "  (1): ModuleList(\n"
        "    (0-1): 2 x ReLU()\n"
        "    (2): Tanh()\n"
        "  )\n"
        ")"
    )
    assert repr(nn.Module()) == "Module()"

    class Two(nn.Module):
        def extra_repr(self):
            return "a\nb"

    assert repr(Two()) == "Two(\n  a\n  b\n)"


def test_copies_and_pickles(torch):
    m = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    for other in (copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
        x = torch.ones(3, 2)
        assert other.eval()(x).tolist() == m.eval()(x).tolist()
        other[0].weight.data.fill_(0)
        assert m[0].weight.abs().sum().item() > 0
    shallow = copy.copy(m)
    assert shallow[0] is m[0]


def test_old_pickles_get_their_hooks(rl):
    m = rl.nn.Identity()
    state = {k: v for k, v in m.__dict__.items() if "hooks" not in k and k != "_non_persistent_buffers_set"}
    other = rl.nn.Identity.__new__(rl.nn.Identity)
    other.__setstate__(state)
    assert other(3) == 3
    assert list(other.state_dict()) == []


def test_weak_references_and_collection(rl):
    m = net(rl)
    m.block.owner = [m]  # a cycle through a plain attribute
    ref = weakref.ref(m)
    del m
    gc.collect()
    assert ref() is None


def test_subclass_behind_a_mixin(torch):
    class Mixin:
        def greet(self):
            return "hello"

    class Net(Mixin, torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(1, 1)
            self.value = 3

        def forward(self, x):
            return self.layer(x)

    m = Net()
    assert m.greet() == "hello"
    assert m.value == 3
    assert tuple(m(torch.ones(2, 1)).shape) == (2, 1)
    assert list(m.state_dict()) == ["layer.weight", "layer.bias"]


def test_errors_name_module_and_operands(rl):
    m = net(rl)
    with pytest.raises(RuntimeError) as error:
        m(rl.ones(2, 5))
    notes = "\n".join(error.value.__notes__)
    assert "Net.first" in notes
    assert "float32[2, 5]" in notes
    with pytest.raises(RuntimeError) as error:
        rl.nn.Sequential(rl.nn.Identity(), m)(rl.ones(2, 5))
    assert "Sequential.1.first" in "\n".join(error.value.__notes__)


def test_compile_is_called_with_forward(rl):
    if not hasattr(rl, "compile"):
        pytest.skip("rushlight has no compile yet")
    m = rl.nn.Identity()
    m.compile()
    assert m(3) == 3
