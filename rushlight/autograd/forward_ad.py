"""Forward mode: dual numbers, whose tangents go through operations beside their values.

Example::

    >>> import rushlight
    >>> import rushlight.autograd.forward_ad as fwAD
    >>> with fwAD.dual_level():
    ...     x = fwAD.make_dual(rushlight.zeros(2), rushlight.ones(2))
    ...     fwAD.unpack_dual(x.sin()).tangent
    tensor([1., 1.])
"""

from __future__ import annotations

from collections import namedtuple

from rushlight import _C
from rushlight.func._rules import LEVELS, Level, unwrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]

UnpackedDualTensor = namedtuple("UnpackedDualTensor", ["primal", "tangent"])
UnpackedDualTensor.__doc__ = "The value of a dual number and its tangent, which is None for a constant."

_OPEN: list[Level] = []


def enter_dual_level() -> int:
    """Begins forward mode; returns the number of the level. RuntimeError inside another level."""
    if _OPEN:
        raise RuntimeError("Nested forward mode AD is not supported at the moment; leave the level that is open first")
    level = Level()
    LEVELS[level.number] = level
    _OPEN.append(level)
    return len(_OPEN) - 1


def exit_dual_level(*, level: int | None = None) -> None:
    """Ends forward mode: tangents are gone. RuntimeError when no level is open, or it is another one."""
    if not _OPEN:
        raise RuntimeError(
            "Trying to exit a forward AD level but no level is currently active; enter_dual_level() first"
        )
    last = len(_OPEN) - 1
    if level is not None and level != last:
        raise RuntimeError(
            f"Trying to exit a forward AD level that was not the last one that was created; expected {last}, got "
            f"{level}"
        )
    del LEVELS[_OPEN.pop().number]


class dual_level:
    """Context within which `make_dual` makes dual numbers."""

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exc: object) -> None:
        exit_dual_level()


def make_dual(tensor: Any, tangent: Any, *, level: int | None = None) -> Any:
    """A tensor with a tangent, of the same shape and dtype.

    Raises:
        RuntimeError: no level is open, or shapes or dtypes differ.
        ValueError: the tensor is not of floating-point or complex dtype.
    """
    if not _OPEN:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    if not (tensor.is_floating_point() or tensor.is_complex()):
        raise ValueError(f"Expected primal to be floating point or complex, but got: {tensor.dtype}")
    if not (tangent.is_floating_point() or tangent.is_complex()):
        raise ValueError(f"Expected tangent to be floating point or complex, but got: {tangent.dtype}")
    if tensor.shape != tangent.shape:
        raise RuntimeError(
            f"make_dual: Trying to set a forward gradient that has a different size than that of the original Tensor, "
            f"this is not supported. Tensor is of size {list(tensor.shape)} while the given forward gradient is of "
            f"size {list(tangent.shape)}."
        )
    if tensor.dtype != tangent.dtype:
        raise RuntimeError(f"make_dual: expected a tangent of dtype {tensor.dtype}, got {tangent.dtype}")
    return _OPEN[-1].dual(tensor, tangent)


def unpack_dual(tensor: Any, *, level: int | None = None) -> UnpackedDualTensor:
    """Value and tangent of a tensor: ``(tensor, None)`` for one that is constant, or outside of every level."""
    found = unwrap(tensor) if isinstance(tensor, _C.Tensor) else None
    if found is None or found[2] is None:
        return UnpackedDualTensor(tensor, None)
    if not _OPEN or found[0] != _OPEN[-1].number:
        return UnpackedDualTensor(found[1], None) if found[0] not in LEVELS else UnpackedDualTensor(tensor, None)
    return UnpackedDualTensor(found[1], found[2])
