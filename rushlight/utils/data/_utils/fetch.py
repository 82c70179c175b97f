"""From keys to a batch."""

from __future__ import annotations

import rushlight

from .collate import default_collate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class MapFetcher:
    """Samples of a dataset with random access."""

    def __init__(self, dataset: Any, auto_collation: bool, collate_fn: Any, drop_last: bool) -> None:
        self.dataset = dataset
        self.auto_collation = auto_collation
        self.collate_fn = collate_fn
        self.many = callable(getattr(dataset, "__getitems__", None))
        self.tensors, self.indices = (
            _tensors_of(dataset) if auto_collation and collate_fn is default_collate else (None, None)  # type: ignore[var-annotated]
        )

    def fetch(self, keys: Any) -> Any:
        if self.tensors is not None:
            if self.indices is not None:
                keys = [self.indices[i] for i in keys]
            index = rushlight.tensor(keys, dtype=rushlight.int64)
            return [t.index_select(0, index) for t in self.tensors]
        if not self.auto_collation:
            data = self.dataset[keys]
        elif self.many:
            data = self.dataset.__getitems__(keys)
        else:
            dataset = self.dataset
            data = [dataset[k] for k in keys]
        return self.collate_fn(data)


def _tensors_of(dataset: Any) -> tuple[Any, Any]:
    """The tensors behind a plain TensorDataset, or behind a Subset of one and then its indices: a batch of them is one
    lookup per tensor instead of one per sample, with the same values."""
    from ..dataset import Subset, TensorDataset

    if type(dataset) is TensorDataset:
        tensors, indices = dataset.tensors, None
    elif type(dataset) is Subset and type(dataset.dataset) is TensorDataset:
        tensors, indices = dataset.dataset.tensors, dataset.indices
        if not isinstance(indices, (list, tuple, range)) or not all(type(i) is int and i >= 0 for i in indices):
            return None, None
    else:
        return None, None
    return (tensors, indices) if all(type(t) is rushlight.Tensor for t in tensors) else (None, None)


class IterableFetcher:
    """The next samples of a stream; the keys only say how many."""

    def __init__(self, dataset: Any, auto_collation: bool, collate_fn: Any, drop_last: bool) -> None:
        self.iterator = iter(dataset)
        self.auto_collation = auto_collation
        self.collate_fn = collate_fn
        self.drop_last = drop_last
        self.ended = False

    def fetch(self, keys: Any) -> Any:
        if self.ended:
            raise StopIteration
        if not self.auto_collation:
            return self.collate_fn(next(self.iterator))
        data = []
        for _ in keys:
            try:
                data.append(next(self.iterator))
            except StopIteration:
                self.ended = True
                break
        if not data or (self.drop_last and len(data) < len(keys)):
            raise StopIteration
        return self.collate_fn(data)
