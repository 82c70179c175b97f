"""The accelerator of this process: none."""

from __future__ import annotations

from typing import Any


def is_available() -> bool:
    """False."""
    return False


def device_count() -> int:
    """0."""
    return 0


def current_accelerator(check_available: bool = False) -> None:
    """None."""
    return


def current_device_index() -> int:
    """RuntimeError: there is no accelerator."""
    raise RuntimeError("accelerator.current_device_index: there is no accelerator in this build")


def synchronize(device: Any = None) -> None:
    """RuntimeError: there is no accelerator."""
    raise RuntimeError("accelerator.synchronize: there is no accelerator in this build")


def empty_cache() -> None:
    """Does nothing without a device."""
