"""Linear algebra."""

from __future__ import annotations

from . import _C


class LinAlgError(RuntimeError):
    """A matrix for which a decomposition or a solution does not exist, or could not be found."""


globals().update(_C.operations("linalg"))
