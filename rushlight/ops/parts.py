"""The two parts of complex numbers, as views."""

from __future__ import annotations

from typing import Any

from ._record import composite, rl


@composite("real(Tensor self) -> Tensor", view="view", method=False)
def _real(self: Any) -> Any:
    """The real part, a view of a complex tensor; a real tensor is its own. Also the attribute ``Tensor.real``.

    Example::

        >>> rushlight.real(rushlight.tensor([1 + 2j]))
        tensor([1.])
    """
    return rl.view_as_real(self).select(-1, 0) if self.is_complex() else self


@composite("imag(Tensor self) -> Tensor", view="view", method=False)
def _imag(self: Any) -> Any:
    """The imaginary part, a view of a complex tensor. Also the attribute ``Tensor.imag``.

    Raises:
        RuntimeError: the tensor is real.

    Example::

        >>> rushlight.imag(rushlight.tensor([1 + 2j]))
        tensor([2.])
    """
    if not self.is_complex():
        raise RuntimeError(f"imag: expected a tensor of complex dtype, got {self.dtype}")
    return rl.view_as_real(self).select(-1, 1)
