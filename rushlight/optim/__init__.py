"""Optimizers and learning rate schedules. Files are loaded when one of their classes is first used."""

from __future__ import annotations

import importlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# class -> the file it is in
_FILE_OF = {
    "ASGD": "asgd",
    "Adadelta": "adadelta",
    "Adafactor": "_adafactor",
    "Adagrad": "adagrad",
    "Adam": "adam",
    "AdamW": "adamw",
    "Adamax": "adamax",
    "LBFGS": "lbfgs",
    "Muon": "_muon",
    "NAdam": "nadam",
    "Optimizer": "optimizer",
    "RAdam": "radam",
    "RMSprop": "rmsprop",
    "Rprop": "rprop",
    "SGD": "sgd",
}
_SUBMODULES = frozenset(("lr_scheduler", "swa_utils", *_FILE_OF.values()))

__all__ = [*_FILE_OF, "lr_scheduler", "swa_utils"]


def __getattr__(name: str) -> Any:
    file = _FILE_OF.get(name)
    if file is not None:
        value = getattr(importlib.import_module(f"{__name__}.{file}"), name)
    elif name in _SUBMODULES:
        value = importlib.import_module(f"{__name__}.{name}")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
