"""The state of the default generator."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from ._C import default_generator
from ._functions import get_rng_state, initial_seed, manual_seed, seed, set_rng_state, thread_safe_generator

__all__ = [
    "default_generator",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
    "thread_safe_generator",
]


@contextlib.contextmanager
def fork_rng(devices: object = None, enabled: bool = True) -> Iterator[None]:
    """Restores the generator's state at the end of the block."""
    del devices
    if not enabled:
        yield
        return
    state = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(state)
