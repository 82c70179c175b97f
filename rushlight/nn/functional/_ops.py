"""Operations that have no public name of their own, as attributes: ``_ops.elu`` is the operation "elu"."""

from __future__ import annotations

from rushlight._C import private_operation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def __getattr__(name: str) -> Any:
    operation = private_operation(name)
    globals()[name] = operation
    return operation
