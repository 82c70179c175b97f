"""The reduction of a loss: names, checks and the older spelling by two flags."""

from __future__ import annotations

import warnings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def legacy_get_string(size_average: Any, reduce: Any, emit_warning: bool = True) -> str:
    """The name of the reduction that the older flags size_average and reduce ask for."""
    size_average = True if size_average is None else size_average
    reduce = True if reduce is None else reduce
    name = "none" if not reduce else ("mean" if size_average else "sum")
    if emit_warning:
        warnings.warn(f"size_average and reduce are deprecated; use reduction='{name}'", stacklevel=3)
    return name


def resolve(op: str, size_average: Any, reduce: Any, reduction: str) -> str:
    """The reduction of a call, checked. ValueError for an unknown name."""
    if size_average is not None or reduce is not None:
        reduction = legacy_get_string(size_average, reduce)
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{op}: unknown reduction; expected 'none', 'mean' or 'sum', got {reduction!r}")
    return reduction


def apply(loss: Any, reduction: str) -> Any:
    """A loss per element, reduced."""
    if reduction == "mean":
        return loss.mean()
    if reduction == "sum":
        return loss.sum()
    return loss
