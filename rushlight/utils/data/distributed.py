"""The sampler of a process among several."""

from __future__ import annotations

import math

import rushlight

from .sampler import Sampler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler):
    """Every num_replicas-th index, from ``rank`` on, of an order that all processes share.

    Args:
        num_replicas, rank: of the processes; by default those of the process group.
        shuffle: a new order per epoch, from ``seed`` and the number given to :meth:`set_epoch`.
        drop_last: drop the tail instead of repeating indices, so that all processes have as many.

    ValueError for a rank outside 0 to num_replicas - 1.
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if num_replicas is None or rank is None:
            group: Any = getattr(rushlight, "distributed", None)
            if group is None or not group.is_initialized():
                raise RuntimeError(
                    "DistributedSampler: no process group; expected num_replicas and rank, got "
                    f"num_replicas={num_replicas} and rank={rank}"
                )
            num_replicas = group.get_world_size() if num_replicas is None else num_replicas
            rank = group.get_rank() if rank is None else rank
        assert num_replicas is not None
        assert rank is not None
        if rank >= num_replicas or rank < 0:
            raise ValueError(f"DistributedSampler: rank; expected 0 to {num_replicas - 1}, got {rank}")
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        size = len(dataset)
        if drop_last and size % num_replicas != 0:
            self.num_samples = math.ceil((size - num_replicas) / num_replicas)
        else:
            self.num_samples = math.ceil(size / num_replicas)
        self.total_size = self.num_samples * num_replicas
        self.shuffle = shuffle
        self.seed = seed

    def __iter__(self) -> Iterator[int]:
        size = len(self.dataset)
        if self.shuffle:
            generator = rushlight.Generator()
            generator.manual_seed(self.seed + self.epoch)
            indices = rushlight.randperm(size, generator=generator).tolist()
        else:
            indices = list(range(size))
        if self.drop_last:
            indices = indices[: self.total_size]
        else:
            missing = self.total_size - len(indices)
            if missing > 0:
                repeats = math.ceil(missing / max(len(indices), 1))
                indices += (indices * repeats)[:missing]
        return iter(indices[self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Chooses the order of the next pass; call it before every epoch, with the same number in all processes."""
        self.epoch = epoch
