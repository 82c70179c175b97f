"""Helpers around modules. Submodules are loaded at their first use."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_FILES = {
    "clip_grad": "clip_grad_norm clip_grad_norm_ clip_grad_value_ clip_grads_with_norm_ get_total_norm",
    "convert_parameters": "parameters_to_vector vector_to_parameters",
    "fusion": "fuse_conv_bn_eval fuse_conv_bn_weights fuse_linear_bn_eval fuse_linear_bn_weights",
    "init": "skip_init",
    "memory_format": "convert_conv2d_weight_memory_format convert_conv3d_weight_memory_format",
    "spectral_norm": "remove_spectral_norm spectral_norm",
    "weight_norm": "remove_weight_norm weight_norm",
}
_FILE_OF = {name: file for file, names in _FILES.items() for name in names.split()}
_SUBMODULES = ("parametrizations", "parametrize", "prune", "rnn", "stateless")

__all__ = sorted([*_FILE_OF, "parametrizations", "parametrize", "rnn", "stateless"])


class _Package(ModuleType):
    # Importing the file weight_norm would put the module where the function of that name belongs.
    def __setattr__(self, name: str, value: Any) -> None:
        if not (isinstance(value, ModuleType) and name in _FILE_OF):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    file = _FILE_OF.get(name)
    if file is not None:
        value = getattr(importlib.import_module(f"{__name__}.{file}"), name)
    elif name in _SUBMODULES or name in _FILES:
        value = importlib.import_module(f"{__name__}.{name}")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value
