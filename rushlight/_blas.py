"""Where the BLAS library is; asked before the first matrix product."""

from __future__ import annotations

import importlib.util
import pathlib


def library_path() -> str | None:
    """The library of the ``scipy-openblas32`` wheel, or None to let the loader search for the system's OpenBLAS."""
    spec = importlib.util.find_spec("scipy_openblas32")
    if spec is None or spec.origin is None:
        return None
    folder = pathlib.Path(spec.origin).parent / "lib"
    for pattern in ("libscipy_openblas*.so", "libscipy_openblas*.dylib", "libscipy_openblas*.dll"):
        for path in sorted(folder.glob(pattern)):
            return str(path)
    return None
