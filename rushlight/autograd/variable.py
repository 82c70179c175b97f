"""``Variable``, an old name of Tensor, and the handle of the engine."""

from __future__ import annotations

from rushlight import _C
from rushlight._C import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["Variable"]


class _VariableMeta(type):
    def __instancecheck__(cls, other: object) -> bool:
        return isinstance(other, Tensor)


class _Engine:
    """What programs ask of the engine."""

    @staticmethod
    def queue_callback(callback: Callable[[], Any]) -> None:
        """Calls a function at the end of the backward that is running in this thread.

        Raises:
            RuntimeError: none is running.
        """
        if not _C._at_end_of_run(callback):
            raise RuntimeError("queue_callback: final callbacks can only be installed during backward pass")


class Variable(metaclass=_VariableMeta):
    """An old name: ``Variable(tensor, requires_grad)`` gives a tensor."""

    _execution_engine = _Engine()

    def __new__(cls, data: Any, requires_grad: bool = False) -> Any:
        return data.detach().requires_grad_(requires_grad)
