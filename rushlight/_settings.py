"""Settings of the process, and questions about the build."""

from __future__ import annotations

import warnings
from typing import Any

from . import _C

has_lapack = True
has_openmp = True
has_mkl = False
has_spectral = True

_values: dict[str, Any] = {
    "deterministic": False,
    "warn_only": False,
    "fill_uninitialized": True,
    "precision": "highest",
    "warn_always": False,
    "interop_threads": 0,
}

# ---------------------------------------------------------------- determinism


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Accepted for programs that ask: every operation is deterministic always."""
    if not isinstance(mode, bool):
        raise TypeError(f"use_deterministic_algorithms(): argument 'mode' must be bool, not {type(mode).__name__}")
    _values.update(deterministic=mode, warn_only=bool(warn_only))


def are_deterministic_algorithms_enabled() -> bool:
    """What use_deterministic_algorithms was told."""
    return bool(_values["deterministic"])


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """What use_deterministic_algorithms was told of warn_only."""
    return bool(_values["warn_only"])


_DEBUG_MODES = ("default", "warn", "error")


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """use_deterministic_algorithms by number or word: 0 "default", 1 "warn", 2 "error".

    Raises:
        TypeError: neither a number nor a word.
        RuntimeError: another number or word.
    """
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(f"set_deterministic_debug_mode: debug_mode; expected str or int, got {type(debug_mode)}")
    known = debug_mode in _DEBUG_MODES if isinstance(debug_mode, str) else 0 <= debug_mode < len(_DEBUG_MODES)
    if not known:
        raise RuntimeError(
            f"set_deterministic_debug_mode: debug_mode; expected 0 (default), 1 (warn) or 2 (error), got {debug_mode}"
        )
    number = _DEBUG_MODES.index(debug_mode) if isinstance(debug_mode, str) else debug_mode
    use_deterministic_algorithms(number > 0, warn_only=number == 1)


def get_deterministic_debug_mode() -> int:
    """0, 1 or 2, as of set_deterministic_debug_mode."""
    return (1 if _values["warn_only"] else 2) if _values["deterministic"] else 0


# ---------------------------------------------------------------- numbers


def get_float32_matmul_precision() -> str:
    """What set_float32_matmul_precision was told."""
    return str(_values["precision"])


def set_float32_matmul_precision(precision: str) -> None:
    """Accepted for programs that ask: products of float32 are float32 always."""
    if precision not in ("highest", "high", "medium"):
        raise RuntimeError(f"Float32 precision must be 'highest', 'high' or 'medium', got {precision}")
    _values["precision"] = precision


def set_flush_denormal(mode: bool) -> bool:
    """Whether this thread's arithmetic turns denormal numbers into 0; returns whether the processor can do that."""
    if not isinstance(mode, bool):
        raise RuntimeError(f"set_flush_denormal: mode; expected a bool, got {type(mode).__name__}")
    return bool(_C._set_flush_denormal(mode))


# ---------------------------------------------------------------- threads, warnings


def get_num_interop_threads() -> int:
    """How many threads operations may run on at once: set_num_interop_threads, or the number of threads."""
    return int(_values["interop_threads"]) or _C.get_num_threads()


def set_num_interop_threads(threads: int) -> None:
    """Accepted for programs that ask: operations start no further operations in other threads."""
    if not isinstance(threads, int) or isinstance(threads, bool):
        raise TypeError(f"set_num_interop_threads: expected an int, got {type(threads).__name__}")
    if threads <= 0:
        raise RuntimeError(f"set_num_interop_threads: expected a positive integer, got {threads}")
    _values["interop_threads"] = threads


def init_num_threads() -> None:
    """Does nothing: the number of threads is settled when the first operation runs."""


def set_warn_always(mode: bool) -> None:
    """Whether warnings that appear once per process appear each time."""
    if not isinstance(mode, bool):
        raise RuntimeError(f"set_warn_always: expected a bool, got {type(mode).__name__}")
    _values["warn_always"] = mode
    if mode:
        warnings.filterwarnings("always", module="rushlight")


def is_warn_always_enabled() -> bool:
    """What set_warn_always was told."""
    return bool(_values["warn_always"])


# ---------------------------------------------------------------- devices, build


def get_device_module(device: Any = None) -> Any:
    """The module of a device type: rushlight.cpu."""
    import rushlight

    kind = _C.device(device).type if device is not None else "cpu"
    if kind != "cpu":
        raise RuntimeError(f"get_device_module: there is no module of device type '{kind}'; expected 'cpu'")
    return rushlight.cpu


def is_vulkan_available() -> bool:
    """False."""
    return False


def compiled_with_cxx11_abi() -> bool:
    """True: the extension uses the standard library's present string type."""
    return True
