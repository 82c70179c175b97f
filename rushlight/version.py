"""The version, and what the build was made for."""

from __future__ import annotations

from . import __version__

debug = False
cuda: str | None = None
hip: str | None = None
rocm: str | None = None
xpu: str | None = None
git_version: str | None = None

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "rocm", "xpu"]
