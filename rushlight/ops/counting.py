"""Searching, counting and finding what is the same."""

from __future__ import annotations

from typing import Any

from ._record import composite, native, rl

native(
    "_repeated_positions(Tensor repeats, int total) -> Tensor",
    doc="0 repeats[0] times, 1 repeats[1] times and so on, total numbers in all.",
)


@composite("repeat_interleave(Tensor repeats, *, int? output_size=None) -> Tensor", method=False)
def repeat_interleave(repeats: Any, output_size: Any) -> Any:
    """0 repeats[0] times, 1 repeats[1] times and so on."""
    if repeats.dim() != 1:
        raise RuntimeError(f"repeat_interleave: repeats; expected a vector, got shape {list(repeats.shape)}")
    if repeats.dtype not in (rl.int64, rl.int32):
        raise RuntimeError(f"repeat_interleave: repeats; expected dtype int64 or int32, got {repeats.dtype}")
    if repeats.numel() and int(repeats.min()) < 0:
        raise RuntimeError(f"repeat_interleave: repeats; expected no negative numbers, got {int(repeats.min())}")
    counts = repeats.to(rl.int64)
    total = int(counts.sum())
    if output_size is not None and output_size != total:
        raise RuntimeError(f"repeat_interleave: output_size; expected {total}, got {output_size}")
    return rl._repeated_positions(counts, total).to(repeats.dtype)


@composite(
    "repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, int? output_size=None) -> Tensor"
)
def repeat_interleave_tensor(self: Any, repeats: Any, dim: Any, output_size: Any) -> Any:
    """Each slice of a dimension (each element, without dim) as many times as its number in repeats says."""
    if dim is None:
        self, dim = self.reshape(-1), 0
    elif self.dim() == 0:
        self = self.reshape(1)
    if repeats.dim() == 0 or (repeats.dim() == 1 and repeats.size(0) == 1):
        repeats = repeats.reshape(1).expand(self.size(dim))
    elif repeats.dim() != 1:
        raise RuntimeError(f"repeat_interleave: repeats; expected 0 or 1 dimensions, got {repeats.dim()}")
    elif repeats.size(0) != self.size(dim):
        raise RuntimeError(
            f"repeat_interleave: repeats; expected {self.size(dim)} numbers, one per slice of dimension {dim}, got "
            f"{repeats.size(0)}"
        )
    return self.index_select(dim, rl.repeat_interleave(repeats, output_size=output_size))


@composite("repeat_interleave.self_int(Tensor self, int repeats, int? dim=None, *, int? output_size=None) -> Tensor")
def repeat_interleave_int(self: Any, repeats: int, dim: Any, output_size: Any) -> Any:
    """Each slice of a dimension (each element, without dim) repeats times."""
    if repeats < 0:
        raise RuntimeError(f"repeat_interleave: repeats; expected at least 0, got {repeats}")
    if dim is None or self.dim() == 0:
        self = self.reshape(-1)
        dim = 0 if dim is None else dim
    if not -self.dim() <= dim < self.dim():
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-self.dim()}, {self.dim() - 1}], but got {dim})"
        )
    dim %= self.dim()
    total = self.size(dim) * repeats
    if output_size is not None and output_size != total:
        raise RuntimeError(f"repeat_interleave: output_size; expected {total}, got {output_size}")
    shape = [*self.shape[: dim + 1], repeats, *self.shape[dim + 1 :]]
    wide = self.unsqueeze(dim + 1).expand(shape)
    return wide.clone(memory_format=rl.contiguous_format).reshape([*self.shape[:dim], total, *self.shape[dim + 1 :]])
