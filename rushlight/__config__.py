"""How the package was built."""

from __future__ import annotations

import platform
import sys

from . import _C, __version__


def show() -> str:
    """The versions and the instruction set in use, one a line."""
    return (
        f"Rushlight {__version__} built with:\n"
        f"  - Python {sys.version.split()[0]} on {platform.system()} {platform.machine()}\n"
        f"  - kernels for {_C._cpu_level()}\n"
        f"  - BLAS and LAPACK: OpenBLAS\n"
    )


def parallel_info() -> str:
    """The number of threads."""
    return f"rushlight thread pool: get_num_threads() : {_C.get_num_threads()}\n"
