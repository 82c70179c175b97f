"""Containers of modules and parameters."""

import operator
from collections import OrderedDict

import pytest


def kinds(m):
    return [type(x).__name__ for x in m]


def test_sequential(torch):
    nn = torch.nn
    s = nn.Sequential(nn.ReLU(), nn.Tanh(), nn.Sigmoid())
    assert kinds(s) == ["ReLU", "Tanh", "Sigmoid"]
    assert len(s) == 3
    assert type(s[-1]) is nn.Sigmoid
    assert kinds(s[1:]) == ["Tanh", "Sigmoid"]
    s[1] = nn.Identity()
    assert kinds(s) == ["ReLU", "Identity", "Sigmoid"]
    del s[0]
    assert list(s._modules) == ["0", "1"]
    s.append(nn.ReLU())
    s.insert(0, nn.Tanh())
    assert kinds(s) == ["Tanh", "Identity", "Sigmoid", "ReLU"]
    s.insert(-1, nn.GELU())
    assert kinds(s) == ["Tanh", "Identity", "Sigmoid", "GELU", "ReLU"]
    assert type(s.pop(0)) is nn.Tanh
    s.extend([nn.SiLU()])
    assert kinds(s) == ["Identity", "Sigmoid", "GELU", "ReLU", "SiLU"]
    del s[1:4]
    assert kinds(s) == ["Identity", "SiLU"]
    assert kinds(s + nn.Sequential(nn.ReLU())) == ["Identity", "SiLU", "ReLU"]
    s += nn.Sequential(nn.ReLU())
    assert kinds(s * 2) == kinds(2 * s) == ["Identity", "SiLU", "ReLU"] * 2
    s *= 2
    assert len(s) == 6
    for bad, error in (
        (lambda: s[10], IndexError),
        (lambda: operator.add(s, [1]), ValueError),
        (lambda: s * "a", TypeError),
        (lambda: s * 0, ValueError),
        (lambda: s.insert(99, nn.ReLU()), IndexError),
        (lambda: s.insert(0, 3), AssertionError),
        (lambda: nn.Sequential(3), TypeError),
    ):
        with pytest.raises(error):
            bad()


def test_sequential_with_names(torch):
    nn = torch.nn
    s = nn.Sequential(OrderedDict(a=nn.ReLU(), b=nn.Tanh()))
    assert type(s.a) is nn.ReLU
    assert type(s[1]) is nn.Tanh
    assert list(s[:1]._modules) == ["a"]
    assert "(a): ReLU()" in repr(s)


def test_module_list(torch):
    nn = torch.nn
    m = nn.ModuleList([nn.ReLU()])
    m.append(nn.Tanh()).extend([nn.Sigmoid(), nn.GELU()])
    m.insert(1, nn.Identity())
    assert kinds(m) == ["ReLU", "Identity", "Tanh", "Sigmoid", "GELU"]
    assert kinds(m[::2]) == ["ReLU", "Tanh", "GELU"]
    m[-1] = nn.SiLU()
    del m[0]
    assert kinds(m) == ["Identity", "Tanh", "Sigmoid", "SiLU"]
    assert list(m._modules) == ["0", "1", "2", "3"]
    assert type(m.pop(1)) is nn.Tanh
    m += [nn.ReLU()]
    assert kinds(operator.add(m, [nn.Tanh()])) == ["Identity", "Sigmoid", "SiLU", "ReLU", "Tanh"]
    assert "0" not in dir(m)
    with pytest.raises(IndexError):
        m[9]
    with pytest.raises(TypeError):
        m.extend(3)
    with pytest.raises(TypeError):
        m.append(3)
    with pytest.raises(NotImplementedError):
        m(1)
    assert nn.ModuleList(nn.Linear(1, 1) for _ in range(3)).state_dict().keys() >= {"2.weight"}


def test_module_list_extended_by_itself(rl):
    m = rl.nn.ModuleList([rl.nn.ReLU(), rl.nn.Tanh()])
    m.extend(m)
    assert kinds(m) == ["ReLU", "Tanh", "ReLU", "Tanh"]


def test_module_dict(torch):
    nn = torch.nn
    m = nn.ModuleDict({"a": nn.ReLU(), "b": nn.Tanh()})
    m["c"] = nn.Sigmoid()
    m.update([("d", nn.GELU())])
    m.update(OrderedDict(a=nn.Identity()))
    assert list(m) == list(m.keys()) == ["a", "b", "c", "d"]
    assert kinds(m.values()) == ["Identity", "Tanh", "Sigmoid", "GELU"]
    assert "b" in m
    assert type(m.pop("b")) is nn.Tanh
    del m["c"]
    assert [k for k, _ in m.items()] == ["a", "d"]
    m.clear()
    assert len(m) == 0
    with pytest.raises(TypeError):
        m.update(3)
    with pytest.raises(ValueError):
        m.update([("x",)])
    with pytest.raises(TypeError):
        m["x"] = 3
    with pytest.raises(KeyError):
        m["a.b"] = nn.ReLU()
    with pytest.raises(KeyError):
        m["missing"]


def test_parameter_list(torch):
    nn = torch.nn
    p = nn.ParameterList([torch.ones(2), nn.Parameter(torch.zeros(3)), "text"])
    assert isinstance(p[0], nn.Parameter)
    assert len(p) == 3
    assert p[2] == "text"
    assert [n for n, _ in p.named_parameters()] == ["0", "1"]
    p.append(torch.ones(1)).extend([torch.ones(1)])
    p += [torch.ones(4)]
    assert [len(x) for x in p[3:]] == [1, 1, 4]
    p[0] = torch.full((2,), 5.0)
    assert p[-6].tolist() == [5, 5]
    for bad in (lambda: p[7], lambda: operator.setitem(p, 7, 1)):
        with pytest.raises(IndexError):
            bad()
    with pytest.raises(TypeError):
        p.extend(torch.ones(2))
    with pytest.raises(RuntimeError):
        p(1)
    assert "(0): Parameter containing" in repr(p)
    assert "of size 2" in repr(p)


def test_parameter_dict(torch):
    nn = torch.nn
    p = nn.ParameterDict({"b": torch.ones(2), "a": torch.zeros(1)})
    assert list(p) == ["a", "b"]  # a plain dict is sorted
    p = nn.ParameterDict(OrderedDict(b=torch.ones(2), a=torch.zeros(1)))
    assert list(p.keys()) == ["b", "a"]
    assert list(reversed(p)) == ["a", "b"]
    assert isinstance(p["b"], nn.Parameter)
    assert p.get("zzz", 3) == 3
    p.setdefault("c", torch.ones(3))
    assert len(p["c"]) == 3
    assert len(p | nn.ParameterDict({"d": torch.ones(1)})) == 4
    p |= nn.ParameterDict({"d": torch.ones(1)})
    assert p.popitem()[0] == "d"
    assert p.pop("c").tolist() == [1, 1, 1]
    assert [k for k, _ in p.items()] == ["b", "a"]
    assert [len(v) for v in p.values()] == [2, 1]
    assert list(p.copy()) == ["b", "a"]
    assert list(p.fromkeys(["x", "y"], torch.ones(1))) == ["x", "y"]
    del p["a"]
    with pytest.raises((KeyError, AttributeError)):
        p["a"]
    p.clear()
    assert len(p) == 0
    with pytest.raises(TypeError):
        p[3] = torch.ones(1)
    with pytest.raises(TypeError):
        p.update(3)
