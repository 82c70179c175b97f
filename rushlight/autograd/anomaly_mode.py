"""Anomaly mode: backward that says where a NaN came from, and notices writes that nobody counted."""

from __future__ import annotations

import sys
import warnings

from rushlight import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "detect_anomaly",
    "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled",
    "set_anomaly_enabled",
    "set_detect_anomaly",
]

_PACKAGE = __file__.removesuffix("autograd/anomaly_mode.py")


def is_anomaly_enabled() -> bool:
    """True inside `detect_anomaly`."""
    return bool(_C._is_anomaly_enabled())


def is_anomaly_check_nan_enabled() -> bool:
    """True when anomaly mode looks for NaN."""
    return bool(_C._is_anomaly_check_nan_enabled())


def set_anomaly_enabled(mode: bool, check_nan: bool = True) -> None:
    """Switches anomaly mode on or off."""
    _C._set_anomaly_enabled(mode, check_nan)


class detect_anomaly:
    """Context in which the tape checks what it does; for debugging, as it makes every operation slower.

    Operations recorded inside keep the stack of Python calls that led to them, and a backward inside

    * raises RuntimeError when a gradient holds a NaN, naming the node and its line, the operation of the forward pass
      that made the first NaN, and the branch that was masked away where that is the reason;
    * raises RuntimeError when a tensor that was saved for it has been written through ``.data`` or a NumPy array;
    * warns with the stack of the forward call when a node fails.

    Args:
        check_nan: whether gradients and results are searched for NaN.

    Example::

        >>> x = rushlight.tensor([-1.0], requires_grad=True)
        >>> with rushlight.autograd.detect_anomaly():  # doctest: +SKIP
        ...     rushlight.where(x > 0, x.sqrt(), x).sum().backward()
    """

    def __init__(self, check_nan: bool = True) -> None:
        self.prev = is_anomaly_enabled()
        self.prev_check_nan = is_anomaly_check_nan_enabled()
        self.check_nan = check_nan
        warnings.warn(
            "Anomaly Detection has been enabled: it makes every operation slower, and is meant for debugging.",
            stacklevel=2,
        )

    def __enter__(self) -> None:
        set_anomaly_enabled(True, self.check_nan)

    def __exit__(self, *args: object) -> None:
        set_anomaly_enabled(self.prev, self.prev_check_nan)


class set_detect_anomaly:
    """Switches anomaly mode when called; as a context manager it restores the mode at the end.

    Args:
        mode: whether anomaly mode is on.
        check_nan: whether gradients and results are searched for NaN.
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.prev = is_anomaly_enabled()
        self.prev_check_nan = is_anomaly_check_nan_enabled()
        set_anomaly_enabled(mode, check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *args: object) -> None:
        set_anomaly_enabled(self.prev, self.prev_check_nan)


def _stack() -> list[str]:
    """The calls that led here, as text, without those inside the package."""
    import traceback

    frames = traceback.StackSummary.extract(traceback.walk_stack(sys._getframe(1)), lookup_lines=False)
    frames.reverse()
    outside = [f for f in frames if not f.filename.startswith(_PACKAGE)]
    return traceback.StackSummary.from_list(outside).format()


def _warn(node: Any) -> None:
    """The warning about a node that failed."""
    text = f"Error detected in {node.name()}."
    stack = node.metadata.get("traceback_")
    if stack is None:
        text += " No stack of its forward call is known: enable anomaly mode for the forward pass too."
    else:
        text += " Traceback of the forward call that caused the error:\n" + "".join(stack)
    warnings.warn(text, stacklevel=1)
    parent = node.metadata.get("parent_")
    while parent is not None:
        text = f"The calculation before was induced by {parent.name()}."
        stack = parent.metadata.get("traceback_")
        if stack is not None:
            text += " Traceback of the forward call that induced it:\n" + "".join(stack)
        warnings.warn(text, stacklevel=1)
        parent = parent.metadata.get("parent_")
