"""Neural networks: modules, their functional forms, initialisers and helpers.

Importing this package loads only Module and Parameter; everything else is loaded at its first use.
"""

from __future__ import annotations

import importlib

from .modules import _FILE_OF as _MODULES
from .modules.module import Module
from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SUBMODULES = ("common_types", "functional", "grad", "init", "modules", "parameter", "utils")

__all__ = [
    "Buffer",
    "Module",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    *_MODULES,
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        modules = importlib.import_module(f"{__name__}.modules")
        value = getattr(modules, name)
    elif name in _SUBMODULES:
        value = importlib.import_module(f"{__name__}.{name}")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_SUBMODULES})


def factory_kwargs(kwargs: Any) -> dict[str, Any]:
    """``device``, ``dtype`` and ``memory_format`` out of keyword arguments, checked; for modules of a user's own.

    Raises TypeError for any other name, or when one is given both directly and inside ``factory_kwargs``.
    """
    if kwargs is None:
        return {}
    names = {"device", "dtype", "memory_format"}
    unknown = set(kwargs) - names - {"factory_kwargs"}
    if unknown:
        raise TypeError(f"factory_kwargs: unknown names; expected {sorted(names)}, got {sorted(unknown)}")
    result = dict(kwargs.get("factory_kwargs", {}))
    for name in names & set(kwargs):
        if name in result:
            raise TypeError(f"factory_kwargs: {name} given twice; expected it once")
        result[name] = kwargs[name]
    return result
