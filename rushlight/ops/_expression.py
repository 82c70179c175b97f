"""Scalar expressions: what an elementwise operation computes, written once.

A record gives a lambda over named inputs, for example ``lambda self, other: where(self < other, other, self)``.
:func:`trace` calls it with :class:`Expression` inputs and returns a graph of three kinds of node: input, constant, and
application of a named function. Equal nodes are the same object, so a shared subexpression is found by identity.

The graph is printed as C++ for the ahead-of-time kernels (:class:`CppPrinter`), differentiated (:func:`gradient`), and
turned into a list of tensor operations (:func:`to_program`), so that the derivative of a fused derivative is ordinary
differentiable code. Adding a language for kernels means adding a printer, nothing else.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

Number: TypeAlias = bool | int | float | complex
Operand: TypeAlias = "Expression | Number"


def _words(text: str) -> list[str]:
    return text.split()


#: Functions whose value is true or false, whatever the type of their arguments.
MASKS = frozenset(
    _words(
        """eq ne lt le gt ge logical_and logical_or logical_xor logical_not isnan isinf isfinite isposinf isneginf
        signbit to_bool"""
    )
)


#: Functions whose value is real even for complex arguments.
REAL_RESULTS = frozenset({"abs", "real", "imag", "angle"})


class Expression:
    """A node: ``name`` is "input", "constant" or the function, ``value`` the input's name or the constant's number."""

    __slots__ = ("arguments", "name", "value")
    _known: ClassVar[dict[tuple[Any, ...], Expression]] = {}

    def __init__(self, name: str, arguments: tuple[Expression, ...], value: Any) -> None:
        self.name, self.arguments, self.value = name, arguments, value

    @staticmethod
    def make(name: str, arguments: tuple[Expression, ...] = (), value: Any = None) -> Expression:
        """The one node with this content."""
        # repr keeps 0.0 and -0.0, 1 and 1.0 and True apart, and makes NaN equal to itself
        key = (name, tuple(map(id, arguments)), type(value), repr(value))
        node = Expression._known.get(key)
        if node is None:
            node = Expression._known[key] = Expression(name, arguments, value)
        return node

    @property
    def is_mask(self) -> bool:
        """True when the value is a truth value rather than a number of the compute type."""
        return self.name in MASKS or (self.name == "constant" and isinstance(self.value, bool))

    def is_number(self, *numbers: float) -> bool:
        """True for a constant equal to one of the numbers."""
        return self.name == "constant" and not isinstance(self.value, bool) and self.value in numbers

    def __bool__(self) -> bool:
        raise TypeError("a scalar expression has no truth value while it is traced; use where(condition, a, b)")

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        if self.name == "input":
            return str(self.value)
        if self.name == "constant":
            return repr(self.value)
        return f"{self.name}({', '.join(map(repr, self.arguments))})"

    # Python's operators mean what they mean for tensors.
    def __add__(self, other: Operand) -> Expression:
        return add(self, other)

    def __radd__(self, other: Operand) -> Expression:
        return add(other, self)

    def __sub__(self, other: Operand) -> Expression:
        return sub(self, other)

    def __rsub__(self, other: Operand) -> Expression:
        return sub(other, self)

    def __mul__(self, other: Operand) -> Expression:
        return mul(self, other)

    def __rmul__(self, other: Operand) -> Expression:
        return mul(other, self)

    def __truediv__(self, other: Operand) -> Expression:
        return div(self, other)

    def __rtruediv__(self, other: Operand) -> Expression:
        return div(other, self)

    def __floordiv__(self, other: Operand) -> Expression:
        return apply("floor_divide", self, other)

    def __mod__(self, other: Operand) -> Expression:
        return apply("remainder", self, other)

    def __pow__(self, other: Operand) -> Expression:
        return pow(self, other)

    def __rpow__(self, other: Operand) -> Expression:
        return pow(other, self)

    def __neg__(self) -> Expression:
        return neg(self)

    def __abs__(self) -> Expression:
        return apply("abs", self)

    def __invert__(self) -> Expression:
        return apply("logical_not" if self.is_mask else "bitwise_not", self)

    def __and__(self, other: Operand) -> Expression:
        return apply("logical_and" if self.is_mask else "bitwise_and", self, other)

    def __or__(self, other: Operand) -> Expression:
        return apply("logical_or" if self.is_mask else "bitwise_or", self, other)

    def __xor__(self, other: Operand) -> Expression:
        return apply("logical_xor" if self.is_mask else "bitwise_xor", self, other)

    def __lshift__(self, other: Operand) -> Expression:
        return apply("bitwise_left_shift", self, other)

    def __rshift__(self, other: Operand) -> Expression:
        return apply("bitwise_right_shift", self, other)

    def __lt__(self, other: Operand) -> Expression:
        return apply("lt", self, other)

    def __le__(self, other: Operand) -> Expression:
        return apply("le", self, other)

    def __gt__(self, other: Operand) -> Expression:
        return apply("gt", self, other)

    def __ge__(self, other: Operand) -> Expression:
        return apply("ge", self, other)

    def __eq__(self, other: Operand) -> Expression:  # type: ignore[override]
        return apply("eq", self, other)

    def __ne__(self, other: Operand) -> Expression:  # type: ignore[override]
        return apply("ne", self, other)

    def is_complex(self) -> bool:
        """True: the expression must hold for complex numbers too."""
        return True

    def derivative(self, name: str) -> Expression:
        """The derivative by the input of this name."""
        from ._derivatives import derivative

        return derivative(self, name)

    def __getattr__(self, name: str) -> Callable[..., Expression]:
        # Derivative lambdas are written for tensors, whose functions are methods too: grad.conj(), self.exp().
        if name.startswith("_") or name not in FUNCTIONS:
            raise AttributeError(
                f"scalar expression: no function {name!r}; expected one of {', '.join(sorted(FUNCTIONS))}"
            )
        return lambda *others: FUNCTIONS[name](self, *others)


def variable(name: str) -> Expression:
    """The input of this name."""
    return Expression.make("input", (), name)


def constant(number: Number) -> Expression:
    """A constant; it takes the compute type when printed."""
    return Expression.make("constant", (), number)


def lift(operand: Operand) -> Expression:
    """The operand as a node."""
    if isinstance(operand, Expression):
        return operand
    if isinstance(operand, (bool, int, float, complex)):
        return constant(operand)
    raise TypeError(f"scalar expression: expected an expression or a number, got {type(operand).__name__}")


def apply(name: str, *operands: Operand) -> Expression:
    """Function `name` applied to the operands, with no simplification."""
    arity = ARITY[name]
    if len(operands) != arity:
        raise TypeError(f"{name}: expected {arity} operands, got {len(operands)}")
    return Expression.make(name, tuple(map(lift, operands)))


# ---- functions that simplify what they can without changing a value (x * 0 stays: x may be infinite)


def _plain(node: Expression) -> bool:
    return node.name == "constant" and isinstance(node.value, (int, float)) and not isinstance(node.value, bool)


def add(self: Operand, other: Operand) -> Expression:
    """self + other."""
    a, b = lift(self), lift(other)
    if _plain(a) and _plain(b):
        return constant(a.value + b.value)
    if b.is_number(0) and not a.is_mask:
        return a
    if a.is_number(0) and not b.is_mask:
        return b
    if b.name == "neg":
        return sub(a, b.arguments[0])
    return apply("add", a, b)


def sub(self: Operand, other: Operand) -> Expression:
    """self - other."""
    a, b = lift(self), lift(other)
    if _plain(a) and _plain(b):
        return constant(a.value - b.value)
    if b.is_number(0) and not a.is_mask:
        return a
    if b.name == "neg":
        return add(a, b.arguments[0])
    return apply("sub", a, b)


def mul(self: Operand, other: Operand) -> Expression:
    """self * other."""
    a, b = lift(self), lift(other)
    if _plain(a) and _plain(b):
        return constant(a.value * b.value)
    if b.is_number(1) and not a.is_mask:
        return a
    if a.is_number(1) and not b.is_mask:
        return b
    if b.is_number(-1) and not a.is_mask:
        return neg(a)
    if a.is_number(-1) and not b.is_mask:
        return neg(b)
    return apply("mul", a, b)


def div(self: Operand, other: Operand) -> Expression:
    """self / other, the true quotient."""
    a, b = lift(self), lift(other)
    if b.is_number(1) and not a.is_mask:
        return a
    return apply("div", a, b)


def neg(self: Operand) -> Expression:
    """-self."""
    a = lift(self)
    if _plain(a):
        return constant(-a.value)
    if a.name == "neg":
        return a.arguments[0]
    return apply("neg", a)


def pow(self: Operand, exponent: Operand) -> Expression:
    """self ** exponent; small whole powers become products."""
    a, b = lift(self), lift(exponent)
    if b.is_number(1):
        return a
    if b.is_number(2):
        return mul(a, a)
    if b.is_number(-1):
        return apply("reciprocal", a)
    return apply("pow", a, b)


def where(condition: Operand, self: Operand, other: Operand) -> Expression:
    """self where the condition holds, other elsewhere."""
    c, a, b = lift(condition), lift(self), lift(other)
    if a is b:
        return a
    if c.name == "constant":
        return a if c.value else b
    if not c.is_mask:
        c = apply("to_bool", c)
    return apply("where", c, a, b)


def conj(self: Operand) -> Expression:
    """The complex conjugate; a real number itself."""
    a = lift(self)
    if a.is_mask or _plain(a):
        return a
    if a.name == "conj":
        return a.arguments[0]
    return apply("conj", a)


UNARY = _words(
    """abs sign sgn exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal square sin cos tan asin acos atan sinh
    cosh tanh asinh acosh atanh sigmoid erf erfc erfcx erfinv ndtr lgamma digamma relu positive logical_not bitwise_not
    floor ceil round trunc frac isnan isinf isfinite isposinf isneginf signbit real imag angle to_bool
    to_float16 to_bfloat16 i0 i0e i1 i1e k0 k0e k1 k1e j0 j1 y0 y1 spherical_j0 airy_ai ndtri"""
)
BINARY = _words(
    """floor_divide trunc_divide remainder fmod atan2 maximum minimum fmax fmin eq ne lt le gt ge logical_and logical_or
    logical_xor bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift copysign hypot nextafter gcd
    lcm heaviside zeta polygamma igamma igammac chebyshev_t chebyshev_u chebyshev_v chebyshev_w shifted_chebyshev_t
    shifted_chebyshev_u shifted_chebyshev_v shifted_chebyshev_w hermite_h hermite_he laguerre_l legendre_p"""
)
ARITY: dict[str, int] = {
    **dict.fromkeys(UNARY, 1),
    **dict.fromkeys(BINARY, 2),
    **dict.fromkeys(("neg", "conj"), 1),
    **dict.fromkeys(("add", "sub", "mul", "div", "pow"), 2),
    "where": 3,
}


def _named(name: str) -> Callable[..., Expression]:
    def function(*operands: Operand) -> Expression:
        return apply(name, *operands)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name} of scalars, as the tensor operation of that name."
    return function


#: Every function by name; :func:`trace` makes them visible to the lambda under these names.
FUNCTIONS: dict[str, Callable[..., Expression]] = {name: _named(name) for name in (*UNARY, *BINARY)}
FUNCTIONS.update({f.__name__: f for f in (add, sub, mul, div, neg, pow, where, conj)})


class _ScalarNamespace:
    """``rl`` of a lambda that is traced."""

    def __getattr__(self, name: str) -> Callable[..., Expression]:
        try:
            return FUNCTIONS[name.removeprefix("special").removeprefix("_")]
        except KeyError:
            raise AttributeError(f"scalar expression: no function {name!r}") from None


_SCALAR_NAMESPACE = _ScalarNamespace()


def __getattr__(name: str) -> Callable[..., Expression]:
    try:
        return FUNCTIONS[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None


# ---- tracing


def trace(function: Callable[..., Any], inputs: Sequence[str] | None = None) -> tuple[Expression, ...]:
    """Calls a lambda once with inputs named after its parameters; returns its results as a tuple.

    Free names of the lambda that name a function of this module (``exp``, ``where``) mean the scalar function, whatever
    the defining module calls by that name, and so does ``rl.exp``; thus one lambda serves tensors and scalars.

    >>> trace(lambda x: exp(x) * 1)
    (exp(x),)
    """
    names = list(inspect.signature(function).parameters) if inputs is None else list(inputs)
    scalar = function
    if inspect.isfunction(function):
        scope = {**function.__globals__, **FUNCTIONS, "rl": _SCALAR_NAMESPACE}
        scalar = type(function)(
            function.__code__, scope, function.__name__, function.__defaults__, function.__closure__
        )
        scalar.__kwdefaults__ = function.__kwdefaults__
    result = scalar(*map(variable, names))
    results = result if isinstance(result, tuple) else (result,)
    return tuple(map(lift, results))


def topological(results: Iterable[Expression]) -> list[Expression]:
    """Every node once, arguments before their users."""
    order: list[Expression] = []
    seen: set[int] = set()
    stack: list[tuple[Expression, bool]] = [(result, False) for result in reversed(list(results))]
    while stack:
        node, ready = stack.pop()
        if ready:
            order.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack.extend((argument, False) for argument in reversed(node.arguments) if id(argument) not in seen)
    unique: dict[int, Expression] = {}
    for node in order:
        unique.setdefault(id(node), node)
    return list(unique.values())


def inputs_of(*results: Expression) -> list[str]:
    """Names of the inputs that the results depend on, in order of appearance."""
    return [node.value for node in topological(results) if node.name == "input"]


def substitute(result: Expression, values: Mapping[str, Operand]) -> Expression:
    """The expression with inputs replaced."""
    new: dict[int, Expression] = {}
    for node in topological([result]):
        if node.name == "input":
            new[id(node)] = lift(values[node.value]) if node.value in values else node
        elif node.name == "constant":
            new[id(node)] = node
        else:
            new[id(node)] = FUNCTIONS[node.name](*(new[id(argument)] for argument in node.arguments))
    return new[id(result)]


# ---- programs of tensor operations


@dataclass(frozen=True)
class Ref:
    """A value of a program: an input, or the result of a step (numbered after the inputs)."""

    index: int


@dataclass(frozen=True)
class Program:
    """Steps of (tensor operation, operands) whose operands are Python numbers or :class:`Ref`."""

    inputs: tuple[str, ...]
    steps: tuple[tuple[str, tuple[Ref | Number, ...]], ...]
    results: tuple[Ref | Number, ...]


def to_program(results: Expression | Sequence[Expression], inputs: Sequence[str] | None = None) -> Program:
    """The expression as tensor operations, every shared subexpression computed once.

    >>> x = variable("x")
    >>> to_program(x * x + 1).steps
    (('mul', (Ref(index=0), Ref(index=0))), ('add', (Ref(index=1), 1)))
    """
    roots = (results,) if isinstance(results, Expression) else tuple(results)
    names = tuple(inputs_of(*roots) if inputs is None else inputs)
    place: dict[int, Ref | Number] = {}
    steps: list[tuple[str, tuple[Ref | Number, ...]]] = []
    for node in topological(roots):
        if node.name == "input":
            place[id(node)] = Ref(names.index(node.value))
        elif node.name == "constant":
            place[id(node)] = node.value
        else:
            operands = tuple(place[id(argument)] for argument in node.arguments)
            if node.name == "to_bool":
                steps.append(("ne", (operands[0], 0)))
            else:
                steps.append((node.name, operands))
            place[id(node)] = Ref(len(names) + len(steps) - 1)
    return Program(names, tuple(steps), tuple(place[id(root)] for root in roots))


# ---- printing


def count_uses(nodes: Iterable[Expression]) -> dict[int, int]:
    """How many arguments of the nodes each node is."""
    uses: dict[int, int] = {}
    for node in nodes:
        for argument in node.arguments:
            uses[id(argument)] = uses.get(id(argument), 0) + 1
    return uses


class CppPrinter:
    """Prints expressions as C++ statements: every function is ``m::name`` of a policy, constants are ``T(value)``."""

    def __init__(self, prefix: str = "m::", compute_type: str = "T", real_type: str = "R") -> None:
        self.prefix, self.compute_type, self.real_type = prefix, compute_type, real_type
        self._real: set[int] = set()  # nodes whose value is of the real type

    def number(self, value: Number, real: bool = False) -> str:
        """A constant of the compute type, or of its real type."""
        kept = self.compute_type
        self.compute_type = self.real_type if real else kept
        try:
            return self._number(value)
        finally:
            self.compute_type = kept

    def _number(self, value: Number) -> str:
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, complex):
            return f"{self.compute_type}({self.real(value.real)}, {self.real(value.imag)})"
        if isinstance(value, int) and abs(value) < 2**31:
            return f"{self.compute_type}({value})"
        return f"{self.compute_type}({self.real(float(value))})"

    @staticmethod
    def real(value: float) -> str:
        """A double literal with the same bits."""
        if math.isnan(value):
            return '__builtin_nan("")'
        if math.isinf(value):
            return "-__builtin_inf()" if value < 0 else "__builtin_inf()"
        return repr(float(value))

    def call(self, node: Expression, operands: Sequence[str]) -> str:
        """The application of one function to printed operands."""
        typed = list(operands)
        others = [a for a in node.arguments if a.name != "constant" and not a.is_mask]
        real = bool(others) and all(id(a) in self._real for a in others)
        if node.name in REAL_RESULTS or (real and not node.is_mask):
            self._real.add(id(node))
        for i, argument in enumerate(node.arguments):
            if real and argument.name == "constant" and not argument.is_mask:
                typed[i] = self.number(argument.value, real=True)
            wants_mask = node.name.startswith("logical_") or (node.name == "where" and i == 0)
            if argument.is_mask and not wants_mask and node.name != "to_bool":
                typed[i] = f"{self.compute_type}({operands[i]})"
            elif wants_mask and not argument.is_mask:
                typed[i] = f"{self.prefix}to_bool({operands[i]})"
        return f"{self.prefix}{node.name}({', '.join(typed)})"

    def print(self, results: Sequence[Expression], names: Mapping[str, str]) -> tuple[list[str], list[str]]:
        """Statements that define shared values, and one expression text per result."""
        order = topological(results)
        uses = count_uses(order)
        text: dict[int, str] = {}
        statements: list[str] = []
        for node in order:
            if node.name == "input":
                text[id(node)] = names[node.value]
            elif node.name == "constant":
                text[id(node)] = self.number(node.value)
            else:
                call = self.call(node, [text[id(argument)] for argument in node.arguments])
                if uses.get(id(node), 0) > 1:
                    statements.append(f"const auto t{len(statements)} = {call};")
                    call = f"t{len(statements) - 1}"
                text[id(node)] = call
        return statements, [text[id(result)] for result in results]


class TensorPrinter:
    """Prints expressions as Python code over tensors, in which every operation is differentiable."""

    OPERATORS: ClassVar[dict[str, str]] = {
        "add": "+",
        "sub": "-",
        "mul": "*",
        "div": "/",
        "lt": "<",
        "le": "<=",
        "gt": ">",
        "ge": ">=",
        "eq": "==",
        "ne": "!=",
    }

    # Scalar functions whose tensor operation has another name, or is differentiable under another name.
    NAMES: ClassVar[dict[str, str]] = {
        "trunc_divide": "_div_trunc",
        "floor_divide": "_div_floor",
        "polygamma": "_polygamma",
        "zeta": "special_zeta",
        "ndtr": "special_ndtr",
        "erfcx": "special_erfcx",
    }

    def __init__(self, namespace: str = "rl") -> None:
        self.namespace = namespace

    def call(self, node: Expression, operands: Sequence[str]) -> str:
        """One tensor operation."""
        if node.name in self.OPERATORS:
            return f"({operands[0]} {self.OPERATORS[node.name]} {operands[1]})"
        if node.name == "neg":
            return f"(-{operands[0]})"
        if node.name == "to_bool":
            return f"({operands[0]} != 0)"
        if node.name == "conj":
            return f"conjugate({operands[0]})"
        return f"{self.namespace}.{self.NAMES.get(node.name, node.name)}({', '.join(operands)})"

    def print(self, name: str, parameters: Sequence[str], results: Sequence[Expression]) -> str:
        """The source of a function of tensors."""
        order = topological(results)
        uses = count_uses(order)
        text: dict[int, str] = {}
        lines = [f"def {name}({', '.join(parameters)}):"]
        for node in order:
            if node.name == "input":
                text[id(node)] = node.value
            elif node.name == "constant":
                text[id(node)] = f"({node.value!r})" if str(node.value).startswith("-") else repr(node.value)
            else:
                call = self.call(node, [text[id(argument)] for argument in node.arguments])
                if uses.get(id(node), 0) > 1:
                    lines.append(f"    t{len(lines)} = {call}")
                    call = f"t{len(lines) - 1}"
                text[id(node)] = call
        values = [text[id(result)] for result in results]
        lines.append(f"    return {values[0] if len(values) == 1 else '(' + ', '.join(values) + ')'}")
        return "\n".join(lines) + "\n"


def _conjugate(value: Any) -> Any:
    """The conjugate of a tensor or a number, without an operation where it changes nothing."""
    if isinstance(value, (int, float)):
        return value
    if isinstance(value, complex):
        return value.conjugate()
    return value.conj() if value.is_complex() else value


def tensor_function(
    name: str, parameters: Sequence[str], results: Sequence[Expression], namespace: Any
) -> Callable[..., Any]:
    """The expression as a function of tensors; `namespace` finds the operations."""
    source = TensorPrinter().print(name, parameters, results)
    scope: dict[str, Any] = {"rl": namespace, "conjugate": _conjugate}
    exec(compile(source, f"<derivative {name}>", "exec"), scope)
    function: Callable[..., Any] = scope[name]
    return function
