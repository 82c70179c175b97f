"""What the running package asks of the records: bodies, docstrings, signatures. Imported at the first such question."""

from __future__ import annotations

import ast
import importlib
import inspect
from typing import Any

from ._record import TABLE, Operation, parse_schema


def record(module: str, name: str, overload: str) -> Operation:
    """The record of one overload; imports its module."""
    importlib.import_module(f"rushlight.ops.{module}")
    return TABLE[f"{name}.{overload}" if overload else name]


def body(module: str, name: str, overload: str) -> Any:
    """The Python body of a composite or fused record."""
    found = record(module, name, overload).body
    if found is None:
        raise AttributeError(f"{name} has no Python body")
    return found


def all_records() -> dict[str, Operation]:
    """Every record, by full name; imports all their modules."""
    from . import MODULES

    for module in MODULES:
        importlib.import_module(f"rushlight.ops.{module}")
    return TABLE


def docstring(name: str) -> str:
    """The documentation of all overloads of a name."""
    from ._documentation import docstring

    return docstring(operation for operation in all_records().values() if operation.name == name)


def signature(schema: str, style: str) -> inspect.Signature:
    """The Python signature of a schema; ``self`` is called ``input`` in a function."""
    _, _, arguments, _ = parse_schema(schema)
    parameters = []
    for a in arguments:
        name = "input" if a.name == "self" and style == "function" else a.name
        kind = inspect.Parameter.KEYWORD_ONLY if a.keyword_only else inspect.Parameter.POSITIONAL_OR_KEYWORD
        default: Any = inspect.Parameter.empty
        if a.default is not None:
            try:
                default = ast.literal_eval(a.default)
            except ValueError:  # a name, such as contiguous_format
                default = a.default
        parameters.append(inspect.Parameter(name, kind, default=default))
    return inspect.Signature(parameters)
