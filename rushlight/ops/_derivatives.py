"""Derivatives of scalar expressions, found by reverse accumulation over their graph.

A rule gives, for one function, the gradient of each argument from the gradient of the result. For a complex function
that is ``grad * conj(f'(x))``, PyTorch's convention. On real numbers conj is the identity, so one rule serves both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from ._expression import (
    FUNCTIONS,
    MASKS,
    Expression,
    add,
    apply,
    conj,
    constant,
    div,
    mul,
    neg,
    pow,
    sub,
    topological,
    where,
)

Gradients: TypeAlias = "tuple[Expression | None, ...]"
Rule: TypeAlias = Callable[[Expression, tuple[Expression, ...], Expression], Gradients]

_f: Any = type("Functions", (), {name: staticmethod(function) for name, function in FUNCTIONS.items()})


def _unary(slope: Callable[[Expression, Expression], Any]) -> Rule:
    """The rule of a function of one argument, from its derivative at (argument, result)."""
    return lambda g, a, r: (mul(g, conj(slope(a[0], r))),)


def _none(g: Expression, a: tuple[Expression, ...], r: Expression) -> Gradients:
    return (None,) * len(a)


def _zero(g: Expression, a: tuple[Expression, ...], r: Expression) -> Gradients:
    # A gradient of zero, not none: the function is flat, not undefined.
    return tuple(mul(g, 0) for _ in a)


def _at_origin(a: tuple[Expression, ...]) -> Expression:
    return apply("eq", add(mul(a[0], a[0]), mul(a[1], a[1])), constant(0))


def _larger(wins: str) -> Rule:
    """maximum and minimum: equal arguments share the gradient."""

    def rule(g: Expression, a: tuple[Expression, ...], r: Expression) -> Gradients:
        loses = "lt" if wins == "gt" else "gt"
        share = where(apply("eq", *a), mul(g, 0.5), g)
        return where(apply(loses, *a), 0, share), where(apply(wins, *a), 0, share)

    return rule


def _number_wins(compare: str) -> Rule:
    """fmax and fmin: the first argument gets the gradient of equal ones, and NaN gets none."""

    def rule(g: Expression, a: tuple[Expression, ...], r: Expression) -> Gradients:
        first = apply("logical_or", apply(compare, *a), apply("isnan", a[1]))
        return where(first, g, 0), where(first, 0, g)

    return rule


def _pow(g: Expression, a: tuple[Expression, ...], r: Expression) -> Gradients:
    base, exponent = a
    of_base = mul(g, conj(mul(exponent, pow(base, sub(exponent, 1)))))
    # 0 ** 0 and 0 ** positive do not move with the exponent, though log(0) is infinite.
    still = apply("logical_and", apply("eq", base, constant(0)), apply("eq", mul(exponent, 0), constant(0)))
    of_exponent = where(still, 0, mul(g, conj(mul(r, _f.log(base)))))
    if exponent.name == "constant":
        return of_base, None
    return where(apply("eq", exponent, constant(0)), 0, of_base), of_exponent


def _sgn(g: Expression, a: tuple[Expression, ...], r: Expression) -> Gradients:
    # Only the part across the direction of a moves it; nothing of a real number.
    across = sub(g, mul(r, _f.real(mul(g, conj(r)))))
    return (where(apply("eq", a[0], constant(0)), 0, div(across, _f.abs(a[0]))),)


def _quotient(name: str) -> Rule:
    return lambda g, a, r: (g, neg(mul(g, apply(name, *a))))


def _gamma_density(a: Expression, x: Expression) -> Expression:
    return _f.exp((a - 1) * _f.log(x) - x - _f.lgamma(a))


_TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)
_PI = math.pi

RULES: Mapping[str, Rule] = {
    "add": lambda g, a, r: (g, g),
    "sub": lambda g, a, r: (g, neg(g)),
    "mul": lambda g, a, r: (mul(g, conj(a[1])), mul(g, conj(a[0]))),
    "div": lambda g, a, r: (div(g, conj(a[1])), neg(div(mul(g, conj(r)), conj(a[1])))),
    "neg": lambda g, a, r: (neg(g),),
    "positive": lambda g, a, r: (g,),
    "conj": lambda g, a, r: (conj(g),),
    "real": lambda g, a, r: (g,),
    "where": lambda g, a, r: (None, where(a[0], g, 0), where(a[0], 0, g)),
    "pow": _pow,
    "abs": lambda g, a, r: (mul(g, _f.sgn(a[0])),),
    "sgn": _sgn,
    "square": _unary(lambda x, r: 2 * x),
    "reciprocal": _unary(lambda x, r: -(r * r)),
    "sqrt": _unary(lambda x, r: 0.5 / r),
    "rsqrt": _unary(lambda x, r: -0.5 * (r * r * r)),
    "exp": _unary(lambda x, r: r),
    "exp2": _unary(lambda x, r: r * math.log(2)),
    "expm1": _unary(lambda x, r: r + 1),
    "log": _unary(lambda x, r: 1 / x),
    "log2": _unary(lambda x, r: 1 / (x * math.log(2))),
    "log10": _unary(lambda x, r: 1 / (x * math.log(10))),
    "log1p": _unary(lambda x, r: 1 / (x + 1)),
    "sin": _unary(lambda x, r: _f.cos(x)),
    "cos": _unary(lambda x, r: -_f.sin(x)),
    "tan": _unary(lambda x, r: 1 + r * r),
    "asin": _unary(lambda x, r: _f.rsqrt(1 - x * x)),
    "acos": _unary(lambda x, r: -_f.rsqrt(1 - x * x)),
    "atan": _unary(lambda x, r: 1 / (x * x + 1)),
    "sinh": _unary(lambda x, r: _f.cosh(x)),
    "cosh": _unary(lambda x, r: _f.sinh(x)),
    "tanh": _unary(lambda x, r: 1 - r * r),
    "asinh": _unary(lambda x, r: _f.rsqrt(x * x + 1)),
    "acosh": _unary(lambda x, r: _f.rsqrt(x - 1) * _f.rsqrt(x + 1)),
    "atanh": _unary(lambda x, r: 1 / (1 - x * x)),
    "sigmoid": _unary(lambda x, r: r * (1 - r)),
    "erf": _unary(lambda x, r: _TWO_OVER_ROOT_PI * _f.exp(-(x * x))),
    "erfc": _unary(lambda x, r: -_TWO_OVER_ROOT_PI * _f.exp(-(x * x))),
    "erfinv": _unary(lambda x, r: 0.5 * math.sqrt(math.pi) * _f.exp(r * r)),
    "erfcx": _unary(lambda x, r: 2 * x * r - _TWO_OVER_ROOT_PI),
    "ndtr": _unary(lambda x, r: _f.exp(x * x * -0.5) * (1 / math.sqrt(2 * math.pi))),
    "i0": _unary(lambda x, r: _f.i1(x)),
    "i0e": _unary(lambda x, r: _f.i1e(x) - _f.sgn(x) * r),
    "i1": _unary(lambda x, r: where(apply("eq", x, constant(0)), 0.5, _f.i0(x) - r / x)),
    "i1e": _unary(lambda x, r: where(apply("eq", x, constant(0)), 0.5, _f.i0e(x) - r * (_f.sgn(x) + 1 / x))),
    "ndtri": _unary(lambda x, r: math.sqrt(2 * math.pi) * _f.exp(r * r * 0.5)),
    "igamma": lambda g, a, r: (None, mul(g, _gamma_density(*a))),
    "igammac": lambda g, a, r: (None, neg(mul(g, _gamma_density(*a)))),
    "lgamma": _unary(lambda x, r: _f.digamma(x)),
    "digamma": _unary(lambda x, r: _f.polygamma(1, x)),
    "polygamma": lambda g, a, r: (None, mul(g, _f.polygamma(a[0] + 1, a[1]))),
    "zeta": lambda g, a, r: (None, mul(g, -a[0] * _f.zeta(a[0] + 1, a[1]))),
    "to_float16": lambda g, a, r: (g,),
    "to_bfloat16": lambda g, a, r: (g,),
    "relu": lambda g, a, r: (where(apply("gt", r, constant(0)), g, 0),),
    "frac": lambda g, a, r: (g,),
    "maximum": _larger("gt"),
    "minimum": _larger("lt"),
    "fmax": _number_wins("ge"),
    "fmin": _number_wins("le"),
    "atan2": lambda g, a, r: (
        where(_at_origin(a), 0, div(mul(g, a[1]), add(mul(a[0], a[0]), mul(a[1], a[1])))),
        where(_at_origin(a), 0, div(mul(g, neg(a[0])), add(mul(a[0], a[0]), mul(a[1], a[1])))),
    ),
    "hypot": lambda g, a, r: (mul(g, div(a[0], r)), mul(g, div(a[1], r))),
    "copysign": lambda g, a, r: (
        where(apply("eq", a[0], constant(0)), 0, mul(g, div(r, a[0]))),
        mul(g, 0),
    ),
    "fmod": _quotient("trunc_divide"),
    "remainder": _quotient("floor_divide"),
    "nextafter": lambda g, a, r: (where(apply("eq", *a), 0, g), mul(g, 0)),
    "heaviside": _zero,
    **dict.fromkeys(("sign", "floor", "ceil", "round", "trunc", "floor_divide", "trunc_divide"), _zero),
    **dict.fromkeys(
        (
            *sorted(MASKS),
            *(name for name in FUNCTIONS if name.startswith("bitwise_")),
            "gcd",
            "lcm",
            "angle",
            "imag",
            *(name for name in FUNCTIONS if "chebyshev" in name),
            *"k0 k0e k1 k1e j0 j1 y0 y1 spherical_j0 airy_ai hermite_h hermite_he laguerre_l legendre_p".split(),
        ),
        _none,
    ),
}


def gradient(result: Expression, inputs: Sequence[str], grad: Expression) -> dict[str, Expression | None]:
    """Gradients of the inputs for a gradient of the result; None for an input that the result does not depend on.

    >>> from ._expression import variable
    >>> x = variable("x")
    >>> gradient(x * x, ["x"], variable("grad"))["x"]
    add(mul(grad, conj(x)), mul(grad, conj(x)))
    """
    found: dict[int, Expression] = {id(result): grad}
    by_name: dict[str, Expression | None] = dict.fromkeys(inputs)
    for node in reversed(topological([result])):
        g = found.get(id(node))
        if g is None or node.name == "constant":
            continue
        if node.name == "input":
            if node.value in by_name:
                by_name[node.value] = g
            continue
        rule = RULES.get(node.name)
        if rule is None:
            raise ValueError(f"scalar expression: no derivative of {node.name}")
        for argument, part in zip(node.arguments, rule(g, node.arguments, node), strict=True):
            if part is not None:
                before = found.get(id(argument))
                found[id(argument)] = part if before is None else add(before, part)
    return by_name


def derivative(result: Expression, name: str) -> Expression:
    """The derivative by one input, as an expression; 0 when the result does not depend on it.

    >>> from ._expression import variable
    >>> derivative(variable("x").exp(), "x")
    conj(exp(x))
    """
    found = gradient(result, [name], constant(1))[name]
    return constant(0) if found is None else found
