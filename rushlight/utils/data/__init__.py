"""Datasets, samplers and the DataLoader. Files are loaded when one of their names is first used."""

from __future__ import annotations

import importlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_FILES = {
    "dataloader": "DataLoader",
    "dataset": ("ChainDataset ConcatDataset Dataset IterableDataset StackDataset Subset TensorDataset random_split"),
    "distributed": "DistributedSampler",
    "sampler": ("BatchSampler RandomSampler Sampler SequentialSampler SubsetRandomSampler WeightedRandomSampler"),
    "_utils.collate": "default_collate default_convert",
    "_utils.worker": "get_worker_info",
}
_FILE_OF = {name: file for file, names in _FILES.items() for name in names.split()}
_SUBMODULES = ("_utils", "dataloader", "dataset", "distributed", "sampler")

__all__ = sorted(_FILE_OF)


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
