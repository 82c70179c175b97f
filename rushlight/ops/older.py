"""Older signatures that PyTorch still takes: the number that scales comes before the tensors."""

from __future__ import annotations

from typing import Any

from ._record import composite, rl


def _warn(name: str, old: str, new: str) -> None:
    import warnings

    warnings.warn(f"This overload of {name} is deprecated:\n\t{name}({old})\nwrite {name}({new})", stacklevel=4)


@composite("add.scaled(Tensor self, Scalar alpha, Tensor other) -> Tensor", inplace=True)
def _add(self: Any, alpha: Any, other: Any) -> Any:
    """The sum self + alpha * other, in an older order of arguments; warns."""
    _warn("add", "Number alpha, Tensor other", "Tensor other, *, Number alpha")
    return rl.add(self, other, alpha=alpha)


@composite("sub.scaled(Tensor self, Scalar alpha, Tensor other) -> Tensor", inplace=True)
def _sub(self: Any, alpha: Any, other: Any) -> Any:
    """The difference self - alpha * other, in an older order of arguments; warns."""
    _warn("sub", "Number alpha, Tensor other", "Tensor other, *, Number alpha")
    return rl.sub(self, other, alpha=alpha)


@composite("addcmul.scaled(Tensor self, Scalar value, Tensor tensor1, Tensor tensor2) -> Tensor", inplace=True)
def _addcmul(self: Any, value: Any, tensor1: Any, tensor2: Any) -> Any:
    """self + value * tensor1 * tensor2, in an older order of arguments; warns."""
    _warn("addcmul", "Number value, Tensor tensor1, Tensor tensor2", "Tensor tensor1, Tensor tensor2, *, Number value")
    return rl.addcmul(self, tensor1, tensor2, value=value)


@composite("addcdiv.scaled(Tensor self, Scalar value, Tensor tensor1, Tensor tensor2) -> Tensor", inplace=True)
def _addcdiv(self: Any, value: Any, tensor1: Any, tensor2: Any) -> Any:
    """self + value * tensor1 / tensor2, in an older order of arguments; warns."""
    _warn("addcdiv", "Number value, Tensor tensor1, Tensor tensor2", "Tensor tensor1, Tensor tensor2, *, Number value")
    return rl.addcdiv(self, tensor1, tensor2, value=value)
