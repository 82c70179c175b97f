"""Linear algebra."""

from __future__ import annotations

from . import _C

globals().update(_C.operations("linalg"))
