"""Datasets."""

from __future__ import annotations

import bisect
import itertools
import math
import warnings
from types import GenericAlias

import rushlight
from rushlight import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

__all__ = [
    "ChainDataset", "ConcatDataset", "Dataset", "IterableDataset", "StackDataset", "Subset", "TensorDataset",
    "random_split",
]  # fmt: skip


class Dataset:
    """Base class of datasets: define ``__getitem__`` (key to sample) and ``__len__``.

    ``__getitems__`` (a list of keys to a list of samples) may be defined for faster batches. Datasets add up with
    ``+``.
    """

    # Dataset[int] in annotations and as a base class
    __class_getitem__: Any = classmethod(GenericAlias)

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__}.__getitem__: not defined; expected it in the class")

    def __add__(self, other: Dataset) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset):
    """Base class of datasets that are streams: define ``__iter__``.

    Use it where random access is costly or impossible.
    """

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__}.__iter__: not defined; expected it in the class")

    def __add__(self, other: Dataset) -> ChainDataset:  # type: ignore[override]
        return ChainDataset([self, other])


class TensorDataset(Dataset):
    """Tensors of one first size; a sample is the tuple of their rows. ValueError-like AssertionError when sizes differ.

    Example::

        >>> import rushlight
        >>> data = rushlight.utils.data.TensorDataset(rushlight.zeros(3, 2), rushlight.arange(3))
        >>> len(data), data[1][1].item()
        (3, 1)
    """

    tensors: tuple[Tensor, ...]

    def __init__(self, *tensors: Tensor) -> None:
        if not all(t.size(0) == tensors[0].size(0) for t in tensors):
            raise AssertionError(
                f"TensorDataset: expected tensors of one first size, got {[list(t.shape) for t in tensors]}"
            )
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(t[index] for t in self.tensors)

    def __len__(self) -> int:
        return int(self.tensors[0].size(0))


class StackDataset(Dataset):
    """Datasets of one length side by side: a sample is the tuple (or dict, when given by keyword) of their samples."""

    datasets: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args:
            if kwargs:
                raise ValueError("StackDataset: expected datasets by position or by keyword, got both")
            self._length = len(args[0])
            self._check(args)
            self.datasets = args
        elif kwargs:
            first = next(iter(kwargs.values()))
            self._length = len(first)
            self._check(kwargs.values())
            self.datasets = kwargs
        else:
            raise ValueError("StackDataset: expected at least one dataset, got none")

    def _check(self, datasets: Iterable[Any]) -> None:
        lengths = [len(d) for d in datasets]
        if any(n != self._length for n in lengths):
            raise ValueError(f"StackDataset: expected datasets of one length, got {lengths}")

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {k: d[index] for k, d in self.datasets.items()}
        return tuple(d[index] for d in self.datasets)

    def __getitems__(self, indices: list[Any]) -> list[Any]:
        if isinstance(self.datasets, dict):
            rows: list[Any] = [{} for _ in indices]
            for key, dataset in self.datasets.items():
                for row, sample in zip(rows, _samples("StackDataset", dataset, indices), strict=False):
                    row[key] = sample
            return rows
        columns = [_samples("StackDataset", d, indices) for d in self.datasets]
        return list(zip(*columns, strict=False))

    def __len__(self) -> int:
        return int(self._length)


def _samples(op: str, dataset: Any, indices: list[Any]) -> list[Any]:
    if not callable(getattr(dataset, "__getitems__", None)):
        return [dataset[i] for i in indices]
    samples = list(dataset.__getitems__(indices))
    if len(samples) != len(indices):
        raise ValueError(
            f"{op}: __getitems__ of {type(dataset).__name__}; expected {len(indices)} samples, got {len(samples)}"
        )
    return samples


class ConcatDataset(Dataset):
    """Datasets one after another. Streams cannot be part of it (AssertionError)."""

    datasets: list[Dataset]
    cumulative_sizes: list[int]

    @staticmethod
    def cumsum(sequence: Iterable[Any]) -> list[int]:
        """The running sums of the lengths."""
        return list(itertools.accumulate(len(d) for d in sequence))

    def __init__(self, datasets: Iterable[Dataset]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("ConcatDataset: expected at least one dataset, got none")
        for d in self.datasets:
            if isinstance(d, IterableDataset):
                raise AssertionError("ConcatDataset: expected datasets with random access, got an IterableDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, idx: int) -> Any:
        if idx < 0:
            if -idx > len(self):
                raise ValueError(f"ConcatDataset: index out of range; expected at least {-len(self)}, got {idx}")
            idx += len(self)
        i = bisect.bisect_right(self.cumulative_sizes, idx)
        if i > 0:
            idx -= self.cumulative_sizes[i - 1]
        return self.datasets[i][idx]


class ChainDataset(IterableDataset):
    """Streams one after another."""

    def __init__(self, datasets: Iterable[Dataset]) -> None:
        super().__init__()
        self.datasets = datasets

    def __iter__(self) -> Iterator[Any]:
        for d in self.datasets:
            if not isinstance(d, IterableDataset):
                raise AssertionError(f"ChainDataset: expected IterableDatasets, got {type(d).__name__}")
            yield from d

    def __len__(self) -> int:
        total = 0
        for d in self.datasets:
            if not isinstance(d, IterableDataset):
                raise AssertionError(f"ChainDataset: expected IterableDatasets, got {type(d).__name__}")
            total += len(d)  # type: ignore[arg-type]
        return total


class Subset(Dataset):
    """The samples of a dataset at given indices."""

    dataset: Any
    indices: Sequence[int]

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, list):
            return self.dataset[[self.indices[i] for i in idx]]
        return self.dataset[self.indices[idx]]

    def __getitems__(self, indices: list[int]) -> list[Any]:
        return _samples("Subset", self.dataset, [self.indices[i] for i in indices])

    def __len__(self) -> int:
        return len(self.indices)


def random_split(dataset: Any, lengths: Sequence[int | float], generator: Any = None) -> list[Subset]:
    """Splits a dataset at random into parts of given lengths, or of given shares that add up to 1.

    ValueError when the lengths do not add up to that of the dataset.

    Example::

        >>> import rushlight
        >>> parts = rushlight.utils.data.random_split(range(10), [0.8, 0.2])
        >>> [len(p) for p in parts]
        [8, 2]
    """
    total = sum(lengths)
    size = len(dataset)
    if math.isclose(total, 1) and total <= 1:
        sizes = []
        for i, share in enumerate(lengths):
            if share < 0 or share > 1:
                raise ValueError(f"random_split: share {i}; expected a number in [0, 1], got {share}")
            sizes.append(math.floor(size * share))
        # what rounding left over goes to the parts in turn
        for i in range(size - sum(sizes)):
            sizes[i % len(sizes)] += 1
        for i, n in enumerate(sizes):
            if n == 0:
                warnings.warn(f"random_split: part {i} is empty", stacklevel=2)
        lengths = sizes
    if sum(lengths) != size:
        raise ValueError(f"random_split: lengths; expected a sum of {size} (the dataset), got {sum(lengths)}")
    if generator is None:
        generator = rushlight.default_generator
    order = rushlight.randperm(int(sum(lengths)), generator=generator).tolist()
    ends = itertools.accumulate(int(n) for n in lengths)
    return [Subset(dataset, order[end - int(n) : end]) for end, n in zip(ends, lengths, strict=False)]
