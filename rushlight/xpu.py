"""Intel's GPUs: this build has none."""

from __future__ import annotations


def is_available() -> bool:
    """False."""
    return False


def device_count() -> int:
    """0."""
    return 0


def manual_seed(seed: int) -> None:
    """Does nothing without a device."""


def empty_cache() -> None:
    """Does nothing without a device."""
