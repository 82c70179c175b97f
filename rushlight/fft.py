"""Discrete Fourier transforms."""

from __future__ import annotations

from . import _C

globals().update(_C.operations("fft"))
