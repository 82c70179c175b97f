"""What a worker process knows about itself."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["WorkerInfo", "get_worker_info"]

_worker_info: WorkerInfo | None = None


class WorkerInfo:
    """``id``, ``num_workers``, ``seed`` and ``dataset`` of a worker process; cannot be changed."""

    _names: tuple[str, ...]

    def __init__(self, **kwargs: Any) -> None:
        self.__dict__.update(kwargs)
        self.__dict__["_names"] = tuple(kwargs)

    def __setattr__(self, name: str, value: Any) -> None:
        raise RuntimeError(f"WorkerInfo: attribute {name!r} set; expected no change")

    def __repr__(self) -> str:
        return f"WorkerInfo({', '.join(f'{n}={self.__dict__[n]}' for n in self._names)})"


def get_worker_info() -> WorkerInfo | None:
    """The :class:`WorkerInfo` of this process, None in the main process."""
    return _worker_info
