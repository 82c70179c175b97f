"""Apple's Metal: this build has none."""

from __future__ import annotations


def is_built() -> bool:
    """False."""
    return False


def is_available() -> bool:
    """False."""
    return False


def is_macos13_or_newer(minor: int = 0) -> bool:
    """False: the question is for Metal only."""
    return False


def is_macos_or_newer(major: int, minor: int) -> bool:
    """False: the question is for Metal only."""
    return False
