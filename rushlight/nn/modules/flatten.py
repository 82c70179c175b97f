"""Modules that only reshape."""

from __future__ import annotations

from rushlight import Tensor

from .module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Flatten", "Unflatten"]


class Flatten(Module):
    """Joins the dimensions start_dim to end_dim into one.

    Shapes: (*, S_start, ..., S_end, *) -> (*, S_start * ... * S_end, *).

    Example::

        >>> import rushlight
        >>> tuple(rushlight.nn.Flatten()(rushlight.zeros(32, 1, 5, 5)).shape)
        (32, 25)
    """

    __constants__ = ["end_dim", "start_dim"]  # noqa: RUF012

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Splits the dimension ``dim`` into ``unflattened_size``.

    Shapes: (*, S, *) -> (*, U_1, ..., U_n, *), with S = U_1 * ... * U_n; one U may be -1.
    """

    __constants__ = ["dim", "unflattened_size"]  # noqa: RUF012

    def __init__(self, dim: Any, unflattened_size: Any) -> None:
        super().__init__()
        if isinstance(dim, int):
            self._require_sizes(unflattened_size)
        elif isinstance(dim, str):
            self._require_named(unflattened_size)
        else:
            raise TypeError(f"Unflatten: dim of the wrong type; expected an int, got {type(dim).__name__}")
        self.dim = dim
        self.unflattened_size = unflattened_size

    def _require_named(self, sizes: Any) -> None:
        if not isinstance(sizes, tuple):
            raise TypeError(
                f"Unflatten: unflattened_size; expected a tuple of (name, size) pairs, got {type(sizes).__name__}"
            )
        for i, pair in enumerate(sizes):
            if not isinstance(pair, tuple):
                raise TypeError(
                    f"Unflatten: unflattened_size; expected a tuple of (name, size) pairs, got {type(pair).__name__} "
                    f"at {i}"
                )

    def _require_sizes(self, sizes: Any) -> None:
        if not isinstance(sizes, (tuple, list)):
            raise TypeError(f"Unflatten: unflattened_size; expected a tuple of ints, got {type(sizes).__name__}")
        for i, size in enumerate(sizes):
            if not isinstance(size, int):
                raise TypeError(
                    f"Unflatten: unflattened_size; expected a tuple of ints, got {type(size).__name__} at {i}"
                )

    def forward(self, input: Tensor) -> Tensor:
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
