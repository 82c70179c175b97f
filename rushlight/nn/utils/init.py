"""Modules without initial values."""

from __future__ import annotations

import inspect

from ..modules.module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["skip_init"]


def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Any:
    """Builds a module without computing initial values: its parameters hold whatever memory holds.

    The class must take ``device``, otherwise RuntimeError.
    """
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"skip_init: expected a subclass of Module, got {module_cls!r}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError(f"skip_init: {module_cls.__name__} takes no device; expected a module that does")
    device = kwargs.pop("device", "cpu")
    return module_cls(*args, **kwargs, device="meta").to_empty(device=device)
