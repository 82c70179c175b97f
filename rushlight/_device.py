"""``with device(...)`` and set_default_device."""

from __future__ import annotations

from typing import Any

from . import _C

_stack: list[Any] = []


def _enter(device: Any) -> None:
    _stack.append(_C._swap_default_device(device))


def _exit(*_: object) -> None:
    _C._swap_default_device(_stack.pop())
