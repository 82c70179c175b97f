"""OpenMP: this build has a thread pool of its own."""

from __future__ import annotations


def is_available() -> bool:
    """False."""
    return False
