"""Intel's MKL: this build uses OpenBLAS."""

from __future__ import annotations


def is_available() -> bool:
    """False."""
    return False
