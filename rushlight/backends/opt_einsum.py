"""The order of contractions in einsum, which chooses it by itself."""

from __future__ import annotations

enabled = True
strategy = "auto"


def is_available() -> bool:
    """False: the package of this name is not used."""
    return False


def get_opt_einsum() -> None:
    """None: the package of this name is not used."""
    return
