"""The CPU as a device: one, with one stream that is always done."""

from __future__ import annotations

from typing import Any

from .backends.cpu import get_cpu_capability


class Stream:
    """The only order operations run in."""

    def __init__(self, priority: int = -1) -> None:
        del priority

    def wait_stream(self, stream: Any) -> None:
        """Does nothing: operations are done when their call returns."""

    def record_event(self) -> None:
        """Does nothing."""

    def wait_event(self, event: Any) -> None:
        """Does nothing."""


class Event:
    """A moment, which has always passed."""

    def query(self) -> bool:
        """True."""
        return True

    def record(self, stream: Any = None) -> None:
        """Does nothing."""

    def synchronize(self) -> None:
        """Does nothing."""

    def wait(self, stream: Any = None) -> None:
        """Does nothing."""


class StreamContext:
    """The stream of a block."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None


_current = Stream()


def is_available() -> bool:
    """True."""
    return True


def is_initialized() -> bool:
    """True."""
    return True


def synchronize(device: Any = None) -> None:
    """Does nothing: operations are done when their call returns."""


def current_device() -> str:
    """'cpu'."""
    return "cpu"


def current_stream(device: Any = None) -> Stream:
    """The stream."""
    return _current


def stream(stream: Any) -> StreamContext:
    """A block in a stream."""
    return StreamContext(stream)


def set_device(device: Any) -> None:
    """Does nothing: there is one."""


def device_count() -> int:
    """1."""
    return 1


def get_capabilities() -> dict[str, Any]:
    """The processor's name and the instruction set in use."""
    import platform

    return {"architecture": platform.machine(), "capability": get_cpu_capability()}
