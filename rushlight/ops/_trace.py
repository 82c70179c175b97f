"""Derivatives for the tape: what they need, and their bodies as lists of operations.

The tape asks twice. At the first recording of an operation, `derivative` says which values each formula needs. At
the first backward, `trace` calls the formula once with proxies. Operations on tensor proxies are written down; the
tape then replays them without entering Python. When a formula looks at a number, a shape or a dtype, the proxy
notes what it saw as a guard: the list holds only while the guards do, and other values get a list of their own. A
formula that does anything else (uses the data of a tensor, calls an operation in place, ...) is simply called each
time.
"""

from __future__ import annotations

from typing import Any

from rushlight import _C

from ._lookup import record
from ._record import Argument, Operation, _Namespace, parse_schema

_Tensor: Any = _C.Tensor
_SUFFIXES = {"_shape": "shape", "_shapes": "shapes", "_dtype": "dtype", "_strides": "strides", "_offset": "offset"}
_varying: dict[Any, frozenset[int]] = {}  # by formula: parameters that may be tensor, number or None


def parameter_names(formula: Any) -> list[str]:
    """The parameters that a formula asks for; those with defaults are its own."""
    code = formula.__code__
    count = code.co_argcount - len(formula.__defaults__ or ())
    return list(code.co_varnames[:count])


def _source(operation: Operation, name: str, names: list[str]) -> tuple[str, int]:
    inputs = [a.name for a in operation.arguments]
    results = [n for _, n in operation.results]
    # In the record of a backward operation, which has an input `grad`, that name means the input only when the formula
    # names the incoming gradient otherwise.
    incoming = {"grads", "grad_result", *(f"grad_{n}" for n in results if n)}
    if name == "grad" and not incoming.intersection(names):
        return "grad", 0
    if name in inputs:
        return "argument", inputs.index(name)
    if name in ("grad", "grad_result"):
        return "grad", 0
    if name in ("grads", "needs"):
        return name, 0
    if name == "result":
        return "result", 0
    if name in results:
        return "result", results.index(name)
    if name.startswith("grad_") and name[5:] in results:
        return "grad", results.index(name[5:])
    for suffix, kind in _SUFFIXES.items():
        if name.endswith(suffix) and name.removesuffix(suffix) in inputs:
            return kind, inputs.index(name.removesuffix(suffix))
    raise ValueError(
        f"derivative of {operation.full_name}: unknown parameter {name!r}; its inputs are {', '.join(inputs)}"
    )


def derivative(
    module: str, name: str, overload: str
) -> list[tuple[tuple[int, ...], tuple[tuple[str, int], ...], Any, bool]]:
    """The formulas of one operation: (input numbers, parameter sources, callable, returns a tuple)."""
    operation = record(module, name, overload)
    inputs = [a.name for a in operation.arguments]
    formulas = []
    for key, formula in operation.derivative.items():
        if formula is None:
            continue
        targets = tuple(inputs.index(part.strip()) for part in key.split(","))
        names = parameter_names(formula)
        sources = tuple(_source(operation, n, names) for n in names)
        varying = set()
        for position, (kind, index) in enumerate(sources):
            if kind == "argument":
                argument = operation.arguments[index]
                if argument.optional or "|" in argument.type:
                    varying.add(position)
        _varying[formula] = frozenset(varying)
        formulas.append((targets, sources, formula, len(targets) > 1))
    return formulas


# ---------------------------------------------------------------- proxies


class Untraceable(Exception):
    """The formula does something that is not a list of operations."""


class _Trace:
    def __init__(self) -> None:
        self.instructions: list[tuple[int, int, list[Any]]] = []
        self.temporaries = 0
        self.guards: list[tuple[str, int, Any]] = []
        self.values: tuple[Any, ...] = ()  # of the parameters
        self.makes_complex = False  # some operation may give a complex result from real ones

    def all_real(self) -> bool:
        """Whether every value is real, given that the parameters are; notes them as guards if so."""
        numbers = [(i, v) for i, v in enumerate(self.values) if isinstance(v, (int, float, complex))]
        tensors = [(i, v) for i, v in enumerate(self.values) if isinstance(v, _Tensor)]
        if self.makes_complex or any(type(v) is complex for _, v in numbers) or any(v.is_complex() for _, v in tensors):
            return False
        for i, v in numbers:
            self.guard("kind", i, v)
        for i, v in tensors:
            self.guard("dtype", i, v.dtype)
        return True

    def guard(self, kind: str, parameter: int, value: Any) -> None:
        if not any(k == kind and p == parameter for k, p, _ in self.guards):
            self.guards.append((kind, parameter, value))

    def emit(self, index: int, result_count: int, result_type: str, operands: list[Any]) -> Any:
        first = self.temporaries
        self.instructions.append((index, first, operands))
        self.temporaries += result_count
        if result_count > 1:
            return tuple(TensorProxy(self, ("t", first + k)) for k in range(result_count))
        if result_type.endswith("[]"):
            return ListProxy(self, ("t", first))
        if result_type != "Tensor":
            raise Untraceable
        return TensorProxy(self, ("t", first))


class Proxy:
    """Stands for a value while a formula is traced."""

    _trace: _Trace
    _operand: tuple[Any, ...]


class TensorProxy(Proxy):
    """A tensor: a parameter of the formula, whose shape and dtype are known, or a result, of which nothing is."""

    def __init__(self, trace: _Trace, operand: tuple[Any, ...], value: Any = None) -> None:
        self._trace = trace
        self._operand = operand
        self._value = value

    @property  # type: ignore[misc]
    def __class__(self) -> Any:  # isinstance(x, Tensor) in a formula
        return _Tensor

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _call_function(func, args, kwargs or {})

    def _known(self, kind: str, value: Any) -> Any:
        if self._value is None:
            raise Untraceable
        self._trace.guard(kind, self._operand[1], value)
        return value

    @property
    def shape(self) -> tuple[int, ...]:
        if self._value is None:
            raise Untraceable
        return tuple(self._known("shape", tuple(self._value.shape)))

    def size(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self.shape[dim]

    def dim(self) -> int:
        return len(self.shape)

    ndim = property(dim)

    def numel(self) -> int:
        count = 1
        for n in self.shape:
            count *= n
        return count

    @property
    def dtype(self) -> Any:
        if self._value is None:
            raise Untraceable
        return self._known("dtype", self._value.dtype)

    def is_complex(self) -> bool:
        if self._value is None and self._trace.all_real():
            return False
        return bool(self.dtype.is_complex)

    def is_floating_point(self) -> bool:
        return bool(self.dtype.is_floating_point)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name.endswith("_") or not _C._overloads(name):
            raise Untraceable(name)
        return lambda *args, **kwargs: _call(name, (self, *args), kwargs)

    @property
    def real(self) -> Any:
        return _call("real", (self,), {})

    @property
    def mT(self) -> Any:
        return _call("transpose", (self, -2, -1), {})

    def __add__(self, other: Any) -> Any:
        return _call("add", (self, other), {})

    def __radd__(self, other: Any) -> Any:
        return _call("add", (other, self), {})

    def __sub__(self, other: Any) -> Any:
        return _call("sub", (self, other), {})

    def __rsub__(self, other: Any) -> Any:
        return _call("sub", (other, self), {})

    def __mul__(self, other: Any) -> Any:
        return _call("mul", (self, other), {})

    def __rmul__(self, other: Any) -> Any:
        return _call("mul", (other, self), {})

    def __truediv__(self, other: Any) -> Any:
        return _call("div", (self, other), {})

    def __rtruediv__(self, other: Any) -> Any:
        return _call("div", (other, self), {})

    def __pow__(self, other: Any) -> Any:
        return _call("pow", (self, other), {})

    def __rpow__(self, other: Any) -> Any:
        return _call("pow", (other, self), {})

    def __matmul__(self, other: Any) -> Any:
        return _call("matmul", (self, other), {})

    def __rmatmul__(self, other: Any) -> Any:
        return _call("matmul", (other, self), {})

    def __neg__(self) -> Any:
        return _call("neg", (self,), {})

    def __abs__(self) -> Any:
        return _call("abs", (self,), {})

    def __and__(self, other: Any) -> Any:
        return _call("bitwise_and", (self, other), {})

    def __or__(self, other: Any) -> Any:
        return _call("bitwise_or", (self, other), {})

    def __invert__(self) -> Any:
        return _call("bitwise_not", (self,), {})

    def __lt__(self, other: Any) -> Any:
        return _call("lt", (self, other), {})

    def __le__(self, other: Any) -> Any:
        return _call("le", (self, other), {})

    def __gt__(self, other: Any) -> Any:
        return _call("gt", (self, other), {})

    def __ge__(self, other: Any) -> Any:
        return _call("ge", (self, other), {})

    def __eq__(self, other: object) -> Any:
        return _call("eq", (self, other), {})

    def __ne__(self, other: object) -> Any:
        return _call("ne", (self, other), {})

    __hash__ = object.__hash__

    def _refuse(self, *args: Any) -> Any:
        raise Untraceable

    __bool__ = __int__ = __float__ = __index__ = __len__ = __iter__ = __getitem__ = __setitem__ = _refuse
    __iadd__ = __isub__ = __imul__ = __itruediv__ = _refuse


class ListProxy(Proxy):
    """A list of tensors whose length is not known: the result of split, unbind and the like, or a parameter."""

    def __init__(self, trace: _Trace, operand: tuple[Any, ...]) -> None:
        self._trace = trace
        self._operand = operand

    def __getitem__(self, position: Any) -> Any:
        if not isinstance(position, int) or position < 0 or self._operand[0] != "t":
            raise Untraceable
        return TensorProxy(self._trace, ("e", self._operand[1], position))

    def _refuse(self, *args: Any) -> Any:
        raise Untraceable

    __bool__ = __len__ = __iter__ = _refuse


def _revealing(names: str) -> Any:
    """Gives a class the methods of the value behind it; using one notes the value as a guard."""

    def decorate(cls: Any) -> Any:
        for name in names.split():

            def method(self: Any, *args: Any, _name: str = name) -> Any:
                plain = [a._reveal() if isinstance(a, ValueProxy) else a for a in args]
                return getattr(self._reveal(), _name)(*plain)

            setattr(cls, name, method)
        return cls

    return decorate


@_revealing(
    """__add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __truediv__ __rtruediv__ __floordiv__ __rfloordiv__ __mod__
    __rmod__ __pow__ __rpow__ __neg__ __pos__ __abs__ __lt__ __le__ __gt__ __ge__ __eq__ __ne__ __bool__ __int__
    __float__ __complex__ __index__ __round__ __trunc__ __len__ __getitem__ __iter__ __contains__ __and__ __or__
    __hash__ __str__ __repr__"""
)
class ValueProxy(Proxy):
    """A number or a tuple of numbers: handed on to operations as it is, or looked at under a guard."""

    def __init__(self, trace: _Trace, operand: tuple[Any, ...], value: Any) -> None:
        self._trace = trace
        self._operand = operand
        self._value = value

    def _reveal(self) -> Any:
        self._trace.guard("equal", self._operand[1], self._value)
        return self._value

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        self._trace.guard("kind", self._operand[1], self._value)
        return type(self._value)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reveal(), name)


# ---------------------------------------------------------------- calls


def _is(value: Any, cls: Any) -> bool:
    return issubclass(type(value), cls)  # isinstance asks __class__, which the proxies answer for their values


def _plain(value: Any) -> Any:
    return value._value if _is(value, ValueProxy) else value


def _find_trace(values: Any) -> _Trace | None:
    for v in values:
        if _is(v, Proxy):
            return v._trace
        if type(v) in (tuple, list):
            found = _find_trace(v)
            if found is not None:
                return found
    return None


def _is_int(value: Any) -> bool:
    return type(_plain(value)) is int


def _operand(argument: Argument, value: Any) -> Any:
    """The value as an operand for this argument, or None when it does not fit."""
    kind = argument.type
    if value is None:
        return ("c", None) if argument.optional or kind == "Any" else None
    if _is(value, TensorProxy):
        return value._operand if kind in ("Tensor", "Tensor|Scalar") else None
    if _is(value, ListProxy):
        return value._operand if kind.startswith("Tensor") and kind.endswith("[]") else None
    plain = _plain(value)
    if isinstance(plain, _Tensor):
        return None
    as_it_is = value._operand if _is(value, ValueProxy) else ("c", plain)
    number = isinstance(plain, (int, float, complex))
    if kind in ("Tensor", "Tensor|Scalar", "Scalar"):
        # The kernels of scalar expressions take numbers for tensors (`1 - x`), which `_bind` allows.
        return as_it_is if number and kind != "Tensor" else None
    if kind == "int":
        return as_it_is if type(plain) is int else None
    if kind == "float":
        return as_it_is if number and not isinstance(plain, complex) else None
    if kind == "bool":
        return as_it_is if type(plain) is bool else None
    if kind.startswith("int["):
        if _is(value, ValueProxy) and kind != "int[]":
            value._trace.guard("kind", value._operand[1], plain)  # a number is repeated, a list is not
        if type(plain) is int and kind != "int[]":
            return ("l", [as_it_is] * int(kind[4:-1]))
        if _is(value, ValueProxy):
            return as_it_is if isinstance(plain, tuple) else None
        if type(value) in (tuple, list) and all(_is_int(v) for v in value):
            return ("l", [v._operand if _is(v, ValueProxy) else ("c", v) for v in value])
        return None
    if kind == "float[]":
        return as_it_is if isinstance(plain, (tuple, list)) else None
    if kind.startswith("Tensor"):
        if type(value) in (tuple, list) and all(v is None or _is(v, TensorProxy) for v in value):
            return ("T", [("c", None) if v is None else v._operand for v in value])
        return None
    return as_it_is


def _bind(
    arguments: list[Argument], args: tuple[Any, ...], kwargs: dict[str, Any], takes_numbers: bool
) -> list[Any] | None:
    positional = [a for a in arguments if not a.keyword_only]
    given: dict[str, Any] = {}
    if len(args) > len(positional) or (len(args) > 1 and len(args) == len(positional) and _is_int(args[-1])):
        # x.expand(2, 3) and the like: the ints at the end are one list
        lists = [i for i, a in enumerate(positional) if a.type == "int[]"]
        if lists and all(_is_int(v) for v in args[lists[0] :]):
            args = (*args[: lists[0]], args[lists[0] :])
    if len(args) > len(positional):
        return None
    for argument, value in zip(positional, args, strict=False):
        given[argument.name] = value
    for name, value in kwargs.items():
        key = "self" if name == "input" and "self" not in given else name
        if key in given:
            return None
        given[key] = value
    operands: list[Any] = []
    for argument in arguments:
        if argument.name not in given:
            if argument.default is None:
                return None
            operands.append(("d",))
            continue
        value = given.pop(argument.name)
        operand = _operand(argument, value)
        if operand is None and takes_numbers and isinstance(_plain(value), (int, float, complex)):
            operand = value._operand if _is(value, ValueProxy) else ("c", value)
        if operand is None:
            return None
        operands.append(operand)
    return None if given else operands


def _call(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    trace = _find_trace((*args, *kwargs.values()))
    if trace is None:
        raise Untraceable
    for index, schema, result_count, takes_numbers in _C._overloads(name):
        _, _, arguments, results = parse_schema(schema)
        operands = _bind(arguments, args, kwargs, takes_numbers)
        if operands is not None:
            if "complex" in name or any(o[0] == "c" and type(o[1]) is complex for o in operands):
                trace.makes_complex = True
            return trace.emit(index, result_count, results[0][0], operands)
    raise Untraceable(name)


def _call_function(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    schemas = getattr(func, "schemas", None)
    if not schemas:
        raise Untraceable
    name = schemas[0].partition("(")[0].partition(".")[0]
    if func.__name__.endswith("_") and not name.endswith("_"):
        raise Untraceable  # the in-place form
    return _call(name, args, kwargs)


class _Functions:
    """The namespace ``rl`` while a formula is traced: calls with proxies are written down before their arguments
    are looked at.

    Calls without proxies go through, so that another thread may run formulas of the same module meanwhile.
    """

    def __init__(self, real: Any) -> None:
        self._real = real

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._real, name)
        if not hasattr(value, "schemas"):
            return value

        def call(*args: Any, **kwargs: Any) -> Any:
            if _find_trace((*args, *kwargs.values())) is None:
                return value(*args, **kwargs)
            return _call_function(value, args, kwargs)

        return call


# ---------------------------------------------------------------- tracing


def _result_operand(value: Any) -> Any:
    if value is None:
        return ("c", None)
    if _is(value, TensorProxy) or _is(value, ListProxy):
        return value._operand
    if type(value) in (tuple, list) and all(v is None or _is(v, TensorProxy) for v in value):
        return ("T", [("c", None) if v is None else v._operand for v in value])
    raise Untraceable


def trace(formula: Any, values: tuple[Any, ...], target_count: int, returns_tuple: int) -> Any:
    """The formula as (guards, instructions, results), or None when it cannot be written that way.

    Args:
        formula: the callable of a record.
        values: what its parameters are this time.
        target_count: how many inputs it serves.
        returns_tuple: whether it returns one gradient for each of them, or a single one.
    """
    record_of = _Trace()
    record_of.values = values
    varying = _varying.get(formula, frozenset())
    proxies: list[Any] = []
    for i, value in enumerate(values):
        operand = ("p", i)
        if isinstance(value, _Tensor):
            if i in varying:
                record_of.guard("tensor", i, None)
            proxies.append(TensorProxy(record_of, operand, value))
        elif value is None:
            record_of.guard("none", i, None)
            proxies.append(None)
        elif type(value) is tuple and value and all(isinstance(v, _Tensor) for v in value):
            proxies.append(ListProxy(record_of, operand))
        elif isinstance(value, (bool, int, float, complex)) or (
            type(value) is tuple and all(isinstance(v, (int, float)) and type(v) is not bool for v in value)
        ):
            if i in varying:
                record_of.guard("number" if not isinstance(value, tuple) else "not none", i, None)
            proxies.append(ValueProxy(record_of, operand, value))
        elif isinstance(value, (tuple, str)) or type(value).__name__ in ("dtype", "memory_format", "layout", "device"):
            record_of.guard("equal", i, value)
            proxies.append(value)
        else:
            return None
    scope = formula.__globals__
    namespace = scope.get("rl")
    if isinstance(namespace, _Namespace):
        scope["rl"] = _Functions(namespace)
    try:
        result = formula(*proxies)
        if returns_tuple:
            if type(result) is not tuple or len(result) != target_count:
                return None
            results = [_result_operand(r) for r in result]
        else:
            results = [_result_operand(result)]
    except Exception:  # whatever a proxy cannot do; a real mistake shows when the formula is called with tensors
        return None
    finally:
        if isinstance(namespace, _Namespace):
            scope["rl"] = namespace
    return record_of.guards, record_of.instructions, results
