"""The standard's extension fft."""

from __future__ import annotations

from typing import Any

import rushlight as _rl
from rushlight import Tensor


def _one(name: str, doc: str) -> Any:
    def call(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
        result: Tensor = getattr(_rl.fft, name)(x, n, axis, norm)
        return result.resolve_conj()

    call.__name__ = call.__qualname__ = name
    call.__doc__ = doc
    return call


def _several(name: str, doc: str) -> Any:
    def call(x: Tensor, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Tensor:
        return getattr(_rl.fft, name)(x, s, axes, norm)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = doc
    return call


fft = _one("fft", "The discrete Fourier transform along an axis.")
ifft = _one("ifft", "The inverse of fft.")
rfft = _one("rfft", "fft of real input: the terms of frequencies from 0 on.")
irfft = _one("irfft", "The inverse of rfft.")
hfft = _one("hfft", "fft of input with Hermitian symmetry, whose result is real.")
ihfft = _one("ihfft", "The inverse of hfft.")
fftn = _several("fftn", "fft along several axes.")
ifftn = _several("ifftn", "The inverse of fftn.")
rfftn = _several("rfftn", "rfft along the last axis and fft along others.")
irfftn = _several("irfftn", "The inverse of rfftn.")


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies of fft's terms, for samples d apart."""
    return _rl.fft.fftfreq(n, d, dtype=dtype, device=device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies of rfft's terms, for samples d apart."""
    return _rl.fft.rfftfreq(n, d, dtype=dtype, device=device)


def fftshift(x: Tensor, /, *, axes: Any = None) -> Tensor:
    """Frequency 0 in the middle."""
    return _rl.fft.fftshift(x, axes)


def ifftshift(x: Tensor, /, *, axes: Any = None) -> Tensor:
    """The inverse of fftshift."""
    return _rl.fft.ifftshift(x, axes)


__all__ = "fft fftfreq fftn fftshift hfft ifft ifftn ifftshift ihfft irfft irfftn rfft rfftfreq rfftn".split()
