"""Scalar expressions: tracing, simplification, derivatives, printing, and the fused derivatives made from them."""

from __future__ import annotations

import math

import pytest

import rushlight
from rushlight.ops import _expression as e
from rushlight.ops._derivatives import RULES, derivative, gradient
from rushlight.ops._lookup import all_records

x, y = e.variable("x"), e.variable("y")

MATH = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": lambda a, b: a / b,
    "neg": lambda a: -a, "square": lambda a: a * a, "reciprocal": lambda a: 1 / a, "rsqrt": lambda a: a**-0.5,
    "pow": lambda a, b: a**b, "where": lambda c, a, b: a if c else b, "conj": lambda a: a, "positive": lambda a: a,
    "real": lambda a: a, "exp2": lambda a: 2.0**a, "sigmoid": lambda a: 1 / (1 + math.exp(-a)), "abs": abs,
    "maximum": max, "minimum": min, "fmax": max, "fmin": min, "relu": lambda a: max(a, 0.0),
    "ndtr": lambda a: 0.5 * math.erfc(-a * math.sqrt(0.5)), "erfcx": lambda a: math.exp(a * a) * math.erfc(a),
    "sgn": lambda a: (a > 0) - (a < 0), "sign": lambda a: (a > 0) - (a < 0), "frac": lambda a: a - math.trunc(a),
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b, "logical_and": lambda a, b: bool(a and b),
    "logical_or": lambda a, b: bool(a or b), "isnan": math.isnan, "log": math.log, "log2": math.log2,
    "trunc_divide": lambda a, b: math.trunc(a / b), "floor_divide": lambda a, b: a // b,
    "remainder": lambda a, b: a % b, "fmod": math.fmod,
}  # fmt: skip


def evaluate(expression, **inputs):
    """The value of an expression, by Python's own mathematics."""
    values = {}
    for node in e.topological([expression]):
        if node.name == "input":
            values[id(node)] = inputs[node.value]
        elif node.name == "constant":
            values[id(node)] = node.value
        else:
            function = MATH.get(node.name) or getattr(math, node.name)
            values[id(node)] = function(*(values[id(a)] for a in node.arguments))
    return values[id(expression)]


def test_equal_nodes_are_one():
    assert (x * y + 1) is (x * y + 1)
    assert (x + 1) is not (x + 1.0)
    assert e.constant(0.0) is not e.constant(-0.0)
    assert e.constant(math.nan) is e.constant(math.nan)


def test_simplification():
    assert (x * 1) is x
    assert (x + 0) is x
    assert (x - 0) is x
    assert (x / 1) is x
    assert e.neg(e.neg(x)) is x
    assert (x - -y) is (x + y)
    assert (x * -1) is -x
    assert (x**1) is x
    assert (x**2) is (x * x)
    assert e.where(x > 0, y, y) is y
    assert e.where(True, x, y) is x
    assert (e.constant(2) * 3 + 1).value == 7
    assert repr(x * 0) == "mul(x, 0)"  # x may be infinite


def test_tracing():
    assert e.trace(lambda a, b: a * b + exp(a))[0] is e.variable("a") * e.variable("b") + e.variable("a").exp()  # noqa: F821
    assert e.trace(lambda grad, result: grad * (1 - result * result)) == (
        e.variable("grad") * (1 - e.variable("result") * e.variable("result")),
    )
    with pytest.raises(TypeError, match="use where"):
        e.trace(lambda a: a if a > 0 else -a)
    with pytest.raises(AttributeError, match="no function 'cumsum'"):
        x.cumsum(0)
    with pytest.raises(TypeError, match="pow: expected 2 operands, got 1"):
        e.apply("pow", x)


def test_program():
    t = (x - y).exp()
    program = e.to_program([t * t, t + 1], ["x", "y"])
    assert program.steps == (
        ("sub", (e.Ref(0), e.Ref(1))),
        ("exp", (e.Ref(2),)),
        ("mul", (e.Ref(3), e.Ref(3))),
        ("add", (e.Ref(3), 1)),
    )
    assert program.results == (e.Ref(4), e.Ref(5))


def test_printing():
    t = x.tanh()
    statements, texts = e.CppPrinter().print([t * (1 - t)], {"x": "a"})
    assert statements == ["const auto t0 = m::tanh(a);"]
    assert texts == ["m::mul(t0, m::sub(T(1), t0))"]
    # constants beside real parts of complex numbers are real
    assert e.CppPrinter().print([e.where(abs(x) < 0.5, x, y)], {"x": "a", "y": "b"})[1] == [
        "m::where(m::lt(m::abs(a), R(0.5)), a, b)"
    ]
    assert e.CppPrinter().print([x + math.inf], {"x": "a"})[1] == ["m::add(a, T(__builtin_inf()))"]
    source = e.TensorPrinter().print("f", ["x"], [t * t])
    assert source == "def f(x):\n    t1 = rl.tanh(x)\n    return (t1 * t1)\n"


DOMAINS = {"acosh": (1.2, 3.0), "atanh": (-0.8, 0.8), "asin": (-0.8, 0.8), "acos": (-0.8, 0.8)}


@pytest.mark.parametrize(
    "name",
    "exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal square sin cos tan asin acos atan sinh cosh tanh asinh"
    " acosh atanh sigmoid erf erfc erfcx ndtr abs relu frac".split(),
)
def test_derivatives_of_one_argument(name):
    low, high = DOMAINS.get(name, (0.2, 2.7))
    f = e.apply(name, x)
    slope = derivative(f, "x")
    for k in range(7):
        at = low + (high - low) * (k + 0.37) / 7
        h = 1e-6
        expected = (evaluate(f, x=at + h) - evaluate(f, x=at - h)) / (2 * h)
        assert evaluate(slope, x=at) == pytest.approx(expected, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("name", "add sub mul div pow atan2 hypot copysign maximum minimum fmax fmin fmod".split())
def test_derivatives_of_two_arguments(name):
    f = e.apply(name, x, y)
    found = gradient(f, ["x", "y"], e.constant(1.0))
    for a, b in ((1.3, 2.1), (2.2, 0.7), (0.4, 1.9)):
        h = 1e-6
        by_x = (evaluate(f, x=a + h, y=b) - evaluate(f, x=a - h, y=b)) / (2 * h)
        by_y = (evaluate(f, x=a, y=b + h) - evaluate(f, x=a, y=b - h)) / (2 * h)
        assert evaluate(found["x"], x=a, y=b) == pytest.approx(by_x, rel=1e-6, abs=1e-6)
        assert evaluate(found["y"], x=a, y=b) == pytest.approx(by_y, rel=1e-6, abs=1e-6)


def test_chains():
    f = (x * x).tanh() * (x + y).exp() / (1 + x.square())
    once = derivative(f, "x")
    twice = derivative(once, "x")
    for a, b in ((0.3, 0.5), (-0.7, 0.2)):
        h = 1e-5
        assert evaluate(once, x=a, y=b) == pytest.approx(
            (evaluate(f, x=a + h, y=b) - evaluate(f, x=a - h, y=b)) / (2 * h), rel=1e-7
        )
        assert evaluate(twice, x=a, y=b) == pytest.approx(
            (evaluate(once, x=a + h, y=b) - evaluate(once, x=a - h, y=b)) / (2 * h), rel=1e-6
        )
    assert derivative(y, "x").value == 0


def test_every_function_has_a_rule():
    assert set(e.FUNCTIONS) == set(RULES)


def test_fused_derivatives_exist_and_are_used():
    table = all_records()
    fused = [op for op in table.values() if "_backward" in op.name and op.kind == "elementwise"]
    assert len(fused) > 50
    assert "_tanh_backward" in table
    v = rushlight.tensor([0.3, -1.2], requires_grad=True)
    v.tanh().sum().backward()
    assert v.grad.tolist() == pytest.approx([1 - math.tanh(0.3) ** 2, 1 - math.tanh(-1.2) ** 2], rel=1e-6)


@pytest.mark.parametrize(
    "name",
    "tanh sigmoid sin asin atanh rsqrt expm1 log1p sinc erf erfinv selu silu hardswish log_sigmoid acosh _gelu".split(),
)
def test_fused_derivatives_to_second_order(name):
    low, high = {"acosh": (1.2, 3.0)}.get(name, (0.1, 0.9))
    values = [low + (high - low) * k / 4 for k in range(5)]
    v = rushlight.tensor(values, dtype=rushlight.float64, requires_grad=True)
    function = getattr(rushlight, name, None) or rushlight._C.private_operation(name)
    assert rushlight.autograd.gradcheck(function, (v,))
    assert rushlight.autograd.gradgradcheck(function, (v,))
