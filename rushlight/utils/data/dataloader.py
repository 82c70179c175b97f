"""The DataLoader: batches of a dataset."""

from __future__ import annotations

import itertools
import warnings
from types import GenericAlias

import rushlight

from ._utils.collate import default_collate, default_convert
from ._utils.fetch import IterableFetcher, MapFetcher
from ._utils.worker import get_worker_info
from .dataset import IterableDataset
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler, new_seed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]


class _DatasetKind:
    Map = 0
    Iterable = 1


class _InfiniteConstantSampler(Sampler):
    """Asks a stream for the next sample again and again."""

    def __iter__(self) -> Iterator[None]:
        return itertools.repeat(None)


class DataLoader:
    """Iterates over batches of a dataset.

    Args:
        dataset: with ``__getitem__`` and ``__len__``, or an :class:`IterableDataset`.
        batch_size: samples per batch; None gives samples as they are.
        shuffle: a new random order per pass.
        sampler: an iterable of indices instead of shuffle.
        batch_sampler: an iterable of lists of indices instead of batch_size, shuffle, sampler and drop_last.
        num_workers: 0, the samples are made in this process; more are not there yet (ValueError).
        collate_fn: joins a list of samples to a batch; by default :func:`default_collate`.
        drop_last: leave out a last batch that is not full.
        generator: of the random order and the seeds of workers.
        pin_memory, timeout, worker_init_fn, multiprocessing_context, prefetch_factor, persistent_workers, in_order: of
            workers and devices; checked, and without effect in one process.

    Raises ValueError for arguments that exclude each other or are out of range.

    Example::

        >>> import rushlight
        >>> from rushlight.utils.data import DataLoader, TensorDataset
        >>> loader = DataLoader(TensorDataset(rushlight.arange(5)), batch_size=2)
        >>> [batch[0].tolist() for batch in loader]
        [[0, 1], [2, 3], [4]]
    """

    __class_getitem__: Any = classmethod(GenericAlias)
    __initialized = False

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[list[Any]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        if num_workers < 0:
            raise ValueError(f"DataLoader: num_workers; expected an int of at least 0, got {num_workers}")
        if timeout < 0:
            raise ValueError(f"DataLoader: timeout; expected a number of at least 0, got {timeout}")
        if num_workers == 0 and prefetch_factor is not None:
            raise ValueError(
                f"DataLoader: prefetch_factor is for workers; expected None with num_workers=0, got {prefetch_factor}"
            )
        if prefetch_factor is not None and prefetch_factor < 0:
            raise ValueError(f"DataLoader: prefetch_factor; expected an int of at least 0, got {prefetch_factor}")
        if persistent_workers and num_workers == 0:
            raise ValueError(
                "DataLoader: persistent_workers is for workers; expected False with num_workers=0, got True"
            )
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.in_order = in_order
        if multiprocessing_context is not None and num_workers == 0:
            raise ValueError(
                "DataLoader: multiprocessing_context is for workers; expected None with num_workers=0, got "
                f"{multiprocessing_context!r}"
            )
        if num_workers > 0:
            raise ValueError(
                f"DataLoader: worker processes are not available yet; expected num_workers=0, got {num_workers}"
            )
        self.multiprocessing_context = multiprocessing_context
        if isinstance(dataset, IterableDataset):
            self._dataset_kind = _DatasetKind.Iterable
            if shuffle not in (False, None):
                raise ValueError(
                    f"DataLoader: an IterableDataset has its own order; expected no shuffle, got shuffle={shuffle}"
                )
            if sampler is not None:
                raise ValueError(
                    f"DataLoader: an IterableDataset has its own order; expected no sampler, got {sampler}"
                )
            if batch_sampler is not None:
                raise ValueError(
                    f"DataLoader: an IterableDataset has its own order; expected no batch_sampler, got {batch_sampler}"
                )
        else:
            shuffle = bool(shuffle)
            self._dataset_kind = _DatasetKind.Map
        if sampler is not None and shuffle:
            raise ValueError("DataLoader: expected only one of sampler and shuffle, got both")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "DataLoader: expected batch_sampler without batch_size, shuffle, sampler and drop_last"
                )
            batch_size = None
            drop_last = False
        elif batch_size is None and drop_last:
            raise ValueError("DataLoader: drop_last is for batches; expected False with batch_size=None, got True")
        if sampler is None:
            if self._dataset_kind == _DatasetKind.Iterable:
                sampler = _InfiniteConstantSampler()
            elif shuffle:
                sampler = RandomSampler(dataset, generator=generator)
            else:
                sampler = SequentialSampler(dataset)
        if batch_size is not None and batch_sampler is None:
            indices: Any = sampler
            batch_sampler = BatchSampler(indices, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator
        if collate_fn is None:
            collate_fn = default_collate if batch_sampler is not None else default_convert
        self.collate_fn = collate_fn
        self.persistent_workers = persistent_workers
        self._iterator: Any = None
        self._IterableDataset_len_called: int | None = None
        if pin_memory:
            cuda = getattr(rushlight, "cuda", None)
            if cuda is None or not cuda.is_available():
                warnings.warn("DataLoader: pin_memory has no effect, since there is no accelerator", stacklevel=2)
        self.__initialized = True

    def __setattr__(self, attr: str, val: Any) -> None:
        if self.__initialized and attr in (
            "batch_size",
            "batch_sampler",
            "sampler",
            "drop_last",
            "dataset",
            "persistent_workers",
        ):
            raise ValueError(f"DataLoader: {attr} set after construction; expected a new DataLoader instead")
        super().__setattr__(attr, val)

    def _get_iterator(self) -> _BaseDataLoaderIter:
        # with workers there will be a second kind of iterator
        return _SingleProcessDataLoaderIter(self)

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.batch_sampler if self._auto_collation else self.sampler

    def __iter__(self) -> _BaseDataLoaderIter:
        return self._get_iterator()

    def __len__(self) -> int:
        """The number of batches. Of a stream it follows from the stream's own length, where it has one."""
        if self._dataset_kind == _DatasetKind.Iterable:
            length = self._IterableDataset_len_called = len(self.dataset)
            if self.batch_size is not None:
                length = length // self.batch_size if self.drop_last else -(-length // self.batch_size)
            return length
        return len(self._index_sampler)

    def check_worker_number_rationality(self) -> None:
        """Does nothing: there are no workers."""


class _BaseDataLoaderIter:
    """One pass over a DataLoader."""

    def __init__(self, loader: DataLoader) -> None:
        self._dataset = loader.dataset
        self._dataset_kind = loader._dataset_kind
        self._IterableDataset_len_called = loader._IterableDataset_len_called
        self._auto_collation = loader._auto_collation
        self._drop_last = loader.drop_last
        self._index_sampler = loader._index_sampler
        self._num_workers = loader.num_workers
        self._timeout = loader.timeout
        self._collate_fn = loader.collate_fn
        self._sampler_iter = iter(self._index_sampler)
        # drawn whether or not there are workers: the random numbers after it do not depend on their number
        self._base_seed = new_seed(loader.generator)
        self._num_yielded = 0

    def __iter__(self) -> _BaseDataLoaderIter:
        return self

    def _next_index(self) -> Any:
        return next(self._sampler_iter)

    def _next_data(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__}._next_data: not defined; expected it in the class")

    def __next__(self) -> Any:
        data = self._next_data()
        self._num_yielded += 1
        expected = self._IterableDataset_len_called
        if self._dataset_kind == _DatasetKind.Iterable and expected is not None and self._num_yielded > expected:
            warnings.warn(
                f"DataLoader: length {expected} was reported for {self._dataset}, but sample {self._num_yielded} was "
                "fetched",
                stacklevel=2,
            )
        return data

    def __len__(self) -> int:
        return len(self._index_sampler)

    def __getstate__(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__}: cannot be pickled; expected the DataLoader instead")


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    def __init__(self, loader: DataLoader) -> None:
        super().__init__(loader)
        kind = MapFetcher if self._dataset_kind == _DatasetKind.Map else IterableFetcher
        self._fetcher: Any = kind(self._dataset, self._auto_collation, self._collate_fn, self._drop_last)

    def _next_data(self) -> Any:
        return self._fetcher.fetch(self._next_index())
