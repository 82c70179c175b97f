"""The named tuples that operations with several results return, by the operation's name."""

from __future__ import annotations

from typing import Any

from . import _C


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _C._return_type(name)
