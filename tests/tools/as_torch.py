"""Runs other libraries' tests on Rushlight: a pytest plugin under which ``import torch`` imports rushlight.

::

    PYTHONPATH=tests/tools:. python -m pytest -p as_torch path/to/the/tests/of/a/library

Libraries that only decorate functions for TorchScript or a compiler find decorators that return the function; what is
absent otherwise (sparse tensors, distributions, ...) fails as a missing attribute, so that it shows.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
from collections.abc import Sequence
from typing import Any

import rushlight


class _Loader(importlib.abc.Loader):
    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return importlib.import_module("rushlight" + spec.name.removeprefix("torch"))

    def exec_module(self, module: types.ModuleType) -> None:
        pass


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != "torch" and not fullname.startswith("torch."):
            return None
        try:
            importlib.import_module("rushlight" + fullname.removeprefix("torch"))
        except ModuleNotFoundError:
            return None
        return importlib.util.spec_from_loader(fullname, _Loader())


def _decorator(function: Any = None, *args: Any, **options: Any) -> Any:
    return function if callable(function) else _decorator


def _stand_in(name: str, decorators: str, **values: Any) -> None:
    """A module under torch whose functions decorate without effect, where Rushlight has none."""
    if hasattr(rushlight, name):
        return
    module = types.ModuleType(f"torch.{name}")
    for decorator in decorators.split():
        setattr(module, decorator, _decorator)
    for key, value in values.items():
        setattr(module, key, value)
    sys.modules[module.__name__] = module
    setattr(rushlight, name, module)


sys.meta_path.insert(0, _Finder())
_stand_in(
    "jit",
    "script trace ignore export unused interface script_method script_if_tracing",
    is_scripting=lambda: False,
    is_tracing=lambda: False,
    ScriptModule=type("ScriptModule", (rushlight.nn.Module,), {}),
    ScriptFunction=type("ScriptFunction", (), {}),
)
_stand_in("compiler", "disable allow_in_graph", is_compiling=lambda: False)
