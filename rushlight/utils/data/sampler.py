"""Samplers: the order in which a DataLoader asks for samples. Random ones draw the same numbers as PyTorch's."""

from __future__ import annotations

import itertools
from types import GenericAlias

import rushlight

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

__all__ = [
    "BatchSampler", "RandomSampler", "Sampler", "SequentialSampler", "SubsetRandomSampler", "WeightedRandomSampler",
]  # fmt: skip


class Sampler:
    """Base class of samplers: define ``__iter__`` over keys, and ``__len__`` where it is known."""

    __class_getitem__: Any = classmethod(GenericAlias)

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__}.__iter__: not defined; expected it in the class")


class SequentialSampler(Sampler):
    """0, 1, 2, ... up to the length of the dataset."""

    def __init__(self, data_source: Any) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


def new_seed(generator: Any = None) -> int:
    """An int64 drawn from a generator (the default one): what a fresh generator is seeded with."""
    return int(rushlight.empty((), dtype=rushlight.int64).random_(generator=generator).item())


class RandomSampler(Sampler):
    """Indices in random order, or drawn with replacement.

    Args:
        num_samples: how many; the length of the dataset by default. More than that are drawn in several permutations.
        generator: the source of the permutations; by default a new one per pass, seeded from the default generator.

    Raises TypeError for a replacement that is no bool and ValueError for num_samples that is no positive int.
    """

    def __init__(
        self, data_source: Any, replacement: bool = False, num_samples: int | None = None, generator: Any = None
    ) -> None:
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(replacement, bool):
            raise TypeError(f"RandomSampler: replacement; expected a bool, got {replacement!r}")
        if not isinstance(self.num_samples, int) or self.num_samples <= 0:
            raise ValueError(f"RandomSampler: num_samples; expected a positive int, got {self.num_samples!r}")

    @property
    def num_samples(self) -> int:
        """How many indices a pass has."""
        # the dataset may grow between passes
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        n = len(self.data_source)
        generator = self.generator
        if generator is None:
            generator = rushlight.Generator()
            generator.manual_seed(new_seed())
        if self.replacement:
            # in runs of 32, as the draws of the reference
            for _ in range(self.num_samples // 32):
                yield from rushlight.randint(high=n, size=(32,), dtype=rushlight.int64, generator=generator).tolist()
            yield from rushlight.randint(
                high=n, size=(self.num_samples % 32,), dtype=rushlight.int64, generator=generator
            ).tolist()
        else:
            for _ in range(self.num_samples // n):
                yield from rushlight.randperm(n, generator=generator).tolist()
            yield from rushlight.randperm(n, generator=generator).tolist()[: self.num_samples % n]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler):
    """Given indices in random order."""

    def __init__(self, indices: Sequence[int], generator: Any = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for i in rushlight.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler):
    """Indices drawn with given weights (which need not add up to 1).

    Raises ValueError for num_samples that is no positive int, a replacement that is no bool or weights that are no
    vector.
    """

    def __init__(
        self, weights: Sequence[float], num_samples: int, replacement: bool = True, generator: Any = None
    ) -> None:
        if not isinstance(num_samples, int) or isinstance(num_samples, bool) or num_samples <= 0:
            raise ValueError(f"WeightedRandomSampler: num_samples; expected a positive int, got {num_samples!r}")
        if not isinstance(replacement, bool):
            raise ValueError(f"WeightedRandomSampler: replacement; expected a bool, got {replacement!r}")
        tensor = rushlight.as_tensor(weights, dtype=rushlight.float64)
        if tensor.dim() != 1:
            raise ValueError(f"WeightedRandomSampler: weights; expected 1 dimension, got shape {list(tensor.shape)}")
        self.weights = tensor
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        drawn = rushlight.multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator)
        yield from drawn.tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler):
    """Lists of ``batch_size`` indices of another sampler; the last may be shorter, or is dropped with ``drop_last``.

    Example::

        >>> import rushlight
        >>> list(rushlight.utils.data.BatchSampler(range(5), batch_size=2, drop_last=False))
        [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0:
            raise ValueError(f"BatchSampler: batch_size; expected a positive int, got {batch_size!r}")
        if not isinstance(drop_last, bool):
            raise ValueError(f"BatchSampler: drop_last; expected a bool, got {drop_last!r}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        while batch := list(itertools.islice(indices, self.batch_size)):
            if len(batch) < self.batch_size and self.drop_last:
                return
            yield batch

    def __len__(self) -> int:
        n = len(self.sampler)  # type: ignore[arg-type]
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)
