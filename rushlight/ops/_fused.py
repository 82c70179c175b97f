"""Fused derivatives: from the derivative lambda of an elementwise record to one kernel, with derivatives of its own.

``tanh`` has the derivative ``grad * (1 - result * result)``. Traced as a scalar expression it becomes the record
``_tanh_backward(Tensor grad, Tensor result)``, one pass over memory instead of three. The derivatives of that record
are found symbolically and run as ordinary operations, which are differentiable in turn.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

from ._derivatives import gradient
from ._expression import Expression, tensor_function, topological, trace, variable
from ._record import FINISHED, Operation, elementwise, rl

_FLOATS = frozenset({"float", "wide", "complex", "complex32", "float32", "float64", "complex64", "complex128"})


def fuse_derivatives(table: dict[str, Operation]) -> None:
    """Adds a record for each derivative of an elementwise record that is more than one operation, and uses it."""
    for operation in [op for op in table.values() if op.kind == "elementwise"]:
        if operation.options.get("fuse", True) and operation.options["result"] == "same":
            for name, formula in list(operation.derivative.items()):
                if formula is not None:
                    _fuse(operation, name, formula)
    FINISHED.add(sys._getframe(1).f_globals["__name__"].rpartition(".")[2])


def _fuse(operation: Operation, name: str, formula: Callable[..., Any]) -> None:
    code = inspect.signature(formula)
    names = [p.name for p in code.parameters.values() if p.default is inspect.Parameter.empty]
    types = {argument.name: argument.type for argument in operation.arguments}
    if any(n not in ("grad", "result") and n not in types for n in names) or len(names) > 4 or "grad" not in names:
        return
    try:
        (result,) = trace(formula, names)
    except (AttributeError, TypeError, ImportError):
        # It calls more than scalar functions, or branches. A helper using `rl` fails with an ImportError at build time
        # and a TypeError in the built package, so that both come to the same decision.
        return
    functions = [node for node in topological([result]) if node.name not in ("input", "constant", "conj")]
    if len(functions) < 2:
        return
    symbol = f"_{operation.name.strip('_')}_backward"
    if sum(f is not None for f in operation.derivative.values()) > 1:
        symbol += f"_{name}"
    schema = ", ".join(f"{types.get(n, 'Tensor')} {n}" for n in names)
    # Of an activation with corners, the derivative is flat where it depends on the input by comparisons alone: a zero
    # gradient, as in PyTorch, not none.
    flat = [n for n in names if n != "grad" and types.get(n, "Tensor").startswith("Tensor")]
    flat = flat if operation.module == "activation" else []
    fused = elementwise(
        f"{symbol}({schema}) -> Tensor",
        lambda *inputs, _result=result: _result,
        types=" ".join(word for word in operation.options["types"].split() if word in _FLOATS),
        method=False,
        derivative=_LazyDerivatives(symbol, names, result, flat),
        doc=f"The gradient of {operation.name}" + (f" by {name}." if symbol.endswith(name) else "."),
    )
    fused.module = operation.module  # importing that module makes this record
    operation.derivative[name] = _caller(symbol, names)


def _caller(symbol: str, names: list[str]) -> Callable[..., Any]:
    scope: dict[str, Any] = {"rl": rl}
    exec(f"def gradient({', '.join(names)}): return rl.{symbol}({', '.join(names)})", scope)
    function: Callable[..., Any] = scope["gradient"]
    return function


class _LazyDerivatives(dict[str, "Callable[..., Any] | None"]):
    """The derivatives of a fused derivative, found when somebody asks: importing the records must be quick."""

    def __init__(self, symbol: str, names: list[str], result: Expression, flat: list[str]) -> None:
        super().__init__()
        self._wanted: tuple[str, list[str], Expression, list[str]] | None = (symbol, names, result, flat)

    def _fill(self) -> None:
        if self._wanted is not None:
            wanted, self._wanted = self._wanted, None
            self.update(_derivatives_of(*wanted))

    def items(self) -> Any:
        self._fill()
        return super().items()

    def values(self) -> Any:
        self._fill()
        return super().values()

    def keys(self) -> Any:
        self._fill()
        return super().keys()

    def __iter__(self) -> Any:
        self._fill()
        return super().__iter__()

    def __len__(self) -> int:
        self._fill()
        return super().__len__()

    def __contains__(self, name: object) -> bool:
        self._fill()
        return super().__contains__(name)

    def __getitem__(self, name: str) -> Callable[..., Any] | None:
        self._fill()
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        self._fill()
        return super().get(name, default)


def _derivatives_of(
    symbol: str, names: list[str], result: Expression, flat: list[str]
) -> dict[str, Callable[..., Any] | None]:
    found = gradient(result, names, variable("grad_result"))
    derivatives: dict[str, Callable[..., Any] | None] = {}
    for name, part in found.items():
        if part is not None:
            used = [n for n in ("grad_result", *names) if n == "grad_result" or _uses(part, n)]
            derivatives[name] = tensor_function(f"{symbol.strip('_')}_by_{name}", used, [part], rl)
        elif name in flat:
            derivatives[name] = lambda grad_result: rl.zeros_like(grad_result)
    return derivatives


def _uses(expression: Expression, name: str) -> bool:
    return any(node.name == "input" and node.value == name for node in topological([expression]))
