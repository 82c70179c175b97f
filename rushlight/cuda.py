"""CUDA: this build has none. Questions are answered so, seeds and caches are left alone, and the rest raises."""

from __future__ import annotations

from typing import Any

default_generators: tuple[Any, ...] = ()
has_half = False
has_magma = False


def is_available() -> bool:
    """False."""
    return False


def is_initialized() -> bool:
    """False."""
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """False."""
    return False


def is_tf32_supported() -> bool:
    """False."""
    return False


def device_count() -> int:
    """0."""
    return 0


def get_arch_list() -> list[str]:
    """No architectures."""
    return []


def manual_seed(seed: int) -> None:
    """Does nothing without a device."""


def manual_seed_all(seed: int) -> None:
    """Does nothing without a device."""


def seed() -> None:
    """Does nothing without a device."""


def seed_all() -> None:
    """Does nothing without a device."""


def get_rng_state_all() -> list[Any]:
    """The states of no devices."""
    return []


def set_rng_state_all(new_states: Any) -> None:
    """Does nothing without a device."""


def empty_cache() -> None:
    """Does nothing without a device."""


def ipc_collect() -> None:
    """Does nothing without a device."""


def memory_allocated(device: Any = None) -> int:
    """0."""
    return 0


def max_memory_allocated(device: Any = None) -> int:
    """0."""
    return 0


def memory_reserved(device: Any = None) -> int:
    """0."""
    return 0


def max_memory_reserved(device: Any = None) -> int:
    """0."""
    return 0


def reset_peak_memory_stats(device: Any = None) -> None:
    """Does nothing without a device."""


def _absent(name: str) -> Any:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError(f"cuda.{name}: this build of rushlight has no CUDA; torch.cuda.is_available() is False")

    refuse.__name__ = name
    refuse.__doc__ = "AssertionError: there is no CUDA device."
    return refuse


init = _absent("init")
synchronize = _absent("synchronize")
current_device = _absent("current_device")
current_stream = _absent("current_stream")
default_stream = _absent("default_stream")
get_device_name = _absent("get_device_name")
get_device_capability = _absent("get_device_capability")
get_device_properties = _absent("get_device_properties")
mem_get_info = _absent("mem_get_info")
get_rng_state = _absent("get_rng_state")
set_rng_state = _absent("set_rng_state")
initial_seed = _absent("initial_seed")
set_device = _absent("set_device")
