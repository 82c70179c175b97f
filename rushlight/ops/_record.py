"""What an operation is: the record, and the functions that make one.

A record says all there is to know about one overload of one operation. Four kinds, cheapest first:

* ``@composite(schema)``: a Python function made of other operations.
* ``elementwise(schema, expression, ...)``: a scalar expression; the family does shapes, promotion, strides, variants.
* ``native(schema, ...)``: an implementation in ``native/tensor`` named ``op_<name>`` (dots become underscores).
* ``fused(schema, fallback=...)``: a native one that must have a composite as its oracle.

Schemas are in PyTorch's notation, ``add(Tensor self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor``. A name after
a dot is an overload: ``sum`` and ``sum.dim`` are one Python function. Types: Tensor, Tensor?, Tensor[], Tensor?[],
Tensor|Scalar, Scalar, int, int[], int[2], float, float[], bool, str, ScalarType (a dtype), Device, Generator, Layout,
MemoryFormat, Any, Any[] (all that follow, the last argument); each may end in ``?``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

Derivative = dict[str, Callable[..., Any] | None]

KINDS = ("composite", "elementwise", "native", "fused")

_ARGUMENT = re.compile(r"^(?P<type>[A-Za-z|]+(?:\?)?(?:\[\d*\])?\??) (?P<name>\w+)(?:=(?P<default>.+))?$")


@dataclass
class Argument:
    """One parameter of a schema."""

    type: str  # without the final "?"
    name: str
    optional: bool  # None is accepted
    default: str | None  # source text of the default, None when required
    keyword_only: bool


@dataclass
class Operation:
    """The record of one overload. Fields are those of the functions below."""

    name: str
    overload: str
    schema: str
    arguments: list[Argument]
    results: list[tuple[str, str]]  # (type, name or "")
    kind: str
    module: str
    expression: Callable[..., Any] | None = None
    body: Callable[..., Any] | None = None
    options: dict[str, Any] = field(default_factory=dict)
    derivative: Derivative = field(default_factory=dict)
    public: tuple[str, ...] = ()
    method: bool = True
    inplace: bool = False
    out: bool = True
    view: str = ""  # "", "view" or "multi"
    # Arguments, by name: results are in channels last where one of them is (a list of tensors: all of them).
    order: str = ""
    writes_self: bool = False
    random: bool = False
    implementation: str = ""
    doc: str = ""
    formula: str = ""
    reference: Callable[..., Any] | None = None
    samples: Callable[..., Iterable[Any]] | None = None
    batch: Any = None  # how vmap runs it; see `batch rules` below
    errors: Callable[..., Iterable[Any]] | None = None
    # PyTorch's dispatcher's name for it, where that is another; or a function of the arguments: (name, arguments).
    aten: str | Callable[..., tuple[str, tuple[Any, ...]]] = ""
    # Floating-point operations of a call, for the profiler: a function of `result`, its number of elements,
    # and of the shapes of arguments, by name. Elementwise records count one for each element.
    flops: Callable[..., int] | None = None
    gradient_domain: tuple[float, float] | None = None
    tolerance: dict[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def full_name(self) -> str:
        """``name`` or ``name.overload``."""
        return f"{self.name}.{self.overload}" if self.overload else self.name

    @property
    def symbol(self) -> str:
        """The C++ identifier of the record."""
        return self.full_name.replace(".", "_")


TABLE: dict[str, Operation] = {}
"""Every record, by full name, in the order of definition."""

FINISHED: set[str] = set()
"""Modules whose elementwise derivatives have been fused: a record that comes later would be left out."""


def parse_schema(schema: str) -> tuple[str, str, list[Argument], list[tuple[str, str]]]:
    """Splits a schema into name, overload, arguments and results.

    Raises:
        ValueError: the text is not a schema.
    """
    match = re.match(r"^(\w+)(?:\.(\w+))?\((.*?)\) -> (.+)$", schema)
    if not match:
        raise ValueError(f"not a schema: {schema}")
    name, overload, inside, returns = match.groups()
    arguments: list[Argument] = []
    keyword_only = False
    for part in _split(inside):
        if part == "*":
            keyword_only = True
            continue
        found = _ARGUMENT.match(part)
        if not found:
            raise ValueError(f"{name}: not an argument: {part!r}")
        kind = found["type"]
        optional = kind.endswith("?")
        arguments.append(
            Argument(kind[:-1] if optional else kind, found["name"], optional, found["default"], keyword_only)
        )
    results: list[tuple[str, str]] = []
    for part in _split(returns.removeprefix("(").removesuffix(")")):
        kind, _, label = part.partition(" ")
        results.append((kind, label))
    return name, overload or "", arguments, results


def _split(text: str) -> list[str]:
    """Splits at commas outside brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "([") - (c in ")]")
        if c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    parts.append(text[start:].strip())
    return [p for p in parts if p]


def _module_being_read() -> str:
    """The module of records whose import is going on: also when a helper of another module makes the record."""
    frame: Any = sys._getframe(2)
    module: str = frame.f_globals["__name__"]
    while frame is not None and frame.f_code.co_name != "<module>":
        frame = frame.f_back
    if frame is not None and frame.f_globals["__name__"].startswith("rushlight.ops."):
        module = frame.f_globals["__name__"]
    return module.rpartition(".")[2]


def _record(kind: str, schema: str, **fields: Any) -> Operation:
    name, overload, arguments, results = parse_schema(schema)
    module = _module_being_read()
    if kind == "elementwise" and module in FINISHED:
        raise ValueError(
            f"{name}: an elementwise record must stand above fuse_derivatives(TABLE), the last line of its module"
        )
    if "public" not in fields:
        fields["public"] = () if name.startswith("_") else (name,)
    elif isinstance(fields["public"], str):
        fields["public"] = tuple(fields["public"].split())
    if "method" not in fields:
        fields["method"] = bool(arguments) and arguments[0].name == "self" and not name.startswith("_")
    if fields.get("view") or kind == "composite" or any(t != "Tensor" for t, _ in results):
        fields.setdefault("out", False)
    operation = Operation(name, overload, schema, arguments, results, kind, module, **fields)
    if operation.full_name in TABLE:
        raise ValueError(f"{operation.full_name}: defined twice")
    TABLE[operation.full_name] = operation
    return operation


def elementwise(
    schema: str,
    expression: Callable[..., Any],
    *,
    types: str,
    compute: str = "promote",
    result: str = "same",
    **fields: Any,
) -> Operation:
    """A record whose kernel is a scalar expression over its inputs.

    Args:
        schema: the signature. Its arguments of type Tensor, Tensor|Scalar and Scalar are the expression's inputs.
        expression: takes scalar proxies of those names and returns the scalar result.
        types: compute dtypes that have a kernel, names separated by spaces, or groups: ``bool``, ``int`` (the five
            integer dtypes), ``float`` (float32, float64), ``complex`` (complex64, complex128). float16 and bfloat16
            compute in float32, unless ``wide`` (float32, float64, and no 16-bit floats) is there instead of ``float``;
            complex32 computes in complex64 where it is named.
        compute: how the compute dtype follows from the inputs: ``promote`` (PyTorch's result type), ``float`` (the
            same, but integers become the default float dtype), ``number`` (bool becomes int64) or
            ``tensor`` (the result type of the tensors alone, to
            which numbers are converted).
        result: dtype of the result: ``same`` as the promoted type, ``bool``, or ``real`` (of complex: the real type).
            With ``options={"checked": True}`` the C++ function of the record's name looks at the arguments first, and
            calls ``run_elementwise`` (native/tensor/ops_elementwise.cpp).
        fields: the fields of `Operation` (derivative, inplace, doc, ...). Where the result is float16 or bfloat16,
            numbers and operands of other dtypes are rounded to it first, as in PyTorch;
            ``options={"wide": ("other",)}`` names operands that are not when they are a single element.
    """
    options = {"types": types, "compute": compute, "result": result}
    options.update(fields.pop("options", {}))
    return _record("elementwise", schema, expression=expression, options=options, **fields)


def native(schema: str, **fields: Any) -> Operation:
    """A record whose implementation is C++: ``RL_OP(<symbol>)`` in native/tensor (or ``implementation=`` names it)."""
    return _record("native", schema, **fields)


def fused(schema: str, *, fallback: Callable[..., Any], **fields: Any) -> Operation:
    """A native record that has a composite twin: its oracle, and its derivative when none is given."""
    return _record("fused", schema, body=fallback, **fields)


def composite(schema: str, **fields: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorates a Python function made of other operations; it is called with all arguments, by position."""

    def define(body: Callable[..., Any]) -> Callable[..., Any]:
        operation = _record_composite(schema, body, fields)
        if not operation.doc and body.__doc__:
            operation.doc = body.__doc__
        return body

    return define


def _record_composite(schema: str, body: Callable[..., Any], fields: dict[str, Any]) -> Operation:
    name, overload, arguments, results = parse_schema(schema)
    fields.setdefault("public", () if name.startswith("_") else (name,))
    if isinstance(fields["public"], str):
        fields["public"] = tuple(fields["public"].split())
    fields.setdefault("method", bool(arguments) and arguments[0].name == "self" and not name.startswith("_"))
    fields.setdefault("out", False)
    module = body.__module__.rpartition(".")[2]
    operation = Operation(name, overload, schema, arguments, results, "composite", module, body=body, **fields)
    if operation.full_name in TABLE:
        raise ValueError(f"{operation.full_name}: defined twice")
    TABLE[operation.full_name] = operation
    return operation


# Batch rules: what `vmap` does with an operation that is no composite. Values have the batch in their first dimension.
#
# * None: elementwise records align their arguments; an operation on one tensor with an argument called dim counts its
#   dimensions from the end.
# * "loop": it runs once for each example, and the results are stacked.
# * "pointwise": arguments meet element by element.
# * "dims", "dims:index": every tensor gets a batch dimension (but those named, which must not be batched), and dims are
#   counted from the end; sizes get the batch in front.
# * "plain:weight": the values as they are, when those named are not batched.
# * "dynamic": the result's shape depends on the values, so it is refused.
# * a function of (batch, *values), `batch` as in rushlight/func/_rules.py, that returns values or NotImplemented.


class _Namespace:
    """``rl.where(...)`` inside a derivative or body means ``rushlight.where``, looked up when it runs.

    Records are read at build time, when the package cannot be imported yet.
    """

    def __init__(self, path: str) -> None:
        self._path = path

    def __getattr__(self, name: str) -> Any:
        import importlib

        module = importlib.import_module(self._path)
        if not hasattr(module, "_C"):
            # The build's stand-in for the package: the same records must be read with and without an extension.
            raise AttributeError(f"rl.{name}: operations cannot run while the build reads their records")
        value = getattr(module, name, None)
        if value is None:
            value = importlib.import_module("rushlight._C").private_operation(name)
        setattr(self, name, value)
        return value


rl: Any = _Namespace("rushlight")
"""The package, for derivatives and bodies; private operations (leading underscore) are found here too."""


def certain(condition: Any) -> bool:
    """Whether a tensor of one bool is true; False inside vmap, where it may differ from example to example.

    For choices between two ways to the same result, the general one last, and for checks.
    """
    return rl._C._unwrap(condition) is None and bool(condition)


def refused(name: str, *arguments: str) -> dict[str, Callable[..., Any]]:
    """The derivative of an operation that has none by these arguments: results require grad, backward raises.

    Without it the gradient would be missing from sums in which such a result is one of several terms, and nobody would
    be told. ``autograd`` adds to the message where the operation was recorded.
    """

    def of(argument: str) -> Callable[..., Any]:
        def refuse(grad: Any) -> Any:
            raise NotImplementedError(
                f"the derivative for '{argument}' of '{name}' is not implemented; detach() what counts as constant"
            )

        return refuse

    return {argument: of(argument) for argument in arguments}


def differentiated(x: Any) -> bool:
    """Whether somebody may ask for the derivative by this tensor: on the tape, or in forward mode or vmap."""
    return rl._C._unwrap(x) is not None or (x.requires_grad and rl._C.is_grad_enabled())
