"""Reductions and normalisations of the elements where a mask is true.

Example::

    >>> import rushlight
    >>> x = rushlight.tensor([1.0, 2.0, 6.0])
    >>> rushlight.masked.mean(x, mask=rushlight.tensor([True, True, False])).item()
    1.5
"""

from __future__ import annotations

from . import _C

globals().update(_C.operations("masked"))
