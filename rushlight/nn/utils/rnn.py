"""Sequences of different lengths: padding, packing and back."""

from __future__ import annotations

import itertools
from collections import namedtuple

import rushlight
from rushlight import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "PackedSequence", "invert_permutation", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence", "unpad_sequence",
]  # fmt: skip

_Fields = namedtuple("_Fields", ["data", "batch_sizes", "sorted_indices", "unsorted_indices"])


class PackedSequence(_Fields):
    """Sequences of different lengths, step by step, without padding: what :func:`pack_padded_sequence` returns.

    Fields:
        data: (sum of lengths, *), first the first elements of all sequences, then the second ones, and so on.
        batch_sizes: int64 on the CPU, how many sequences reach each step.
        sorted_indices, unsorted_indices: from the given order to the one by length and back, or None.
    """

    __slots__ = ()

    def __new__(
        cls,
        data: Tensor,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> PackedSequence:
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes is not None:
            if batch_sizes.device.type != "cpu":
                raise ValueError(
                    f"PackedSequence: batch_sizes; expected a tensor on the CPU, got one on {batch_sizes.device}"
                )
            return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)
        # data and batch_sizes as one pair: the form of old pickles
        pair: Any = data
        if not (isinstance(pair, (list, tuple)) and len(pair) == 2):
            raise AssertionError("PackedSequence: expected data and batch_sizes, got data alone")
        return super().__new__(cls, pair[0], pair[1], sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The sequences with data moved or converted as by ``Tensor.to``; indices follow to the device only."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        index_kwargs = {k: v for k, v in kwargs.items() if k not in ("device", "dtype")}

        def move(t: Tensor | None) -> Tensor | None:
            return None if t is None else t.to(data.device, **index_kwargs)

        return type(self)(data, self.batch_sizes, move(self.sorted_indices), move(self.unsorted_indices))

    def _converted(self, name: str) -> PackedSequence:
        return self.to(getattr(rushlight, name))

    def cpu(self, *args: Any, **kwargs: Any) -> PackedSequence:
        return self.to(*args, device="cpu", **kwargs)

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        return self.to(*args, device="cuda", **kwargs)

    def double(self) -> PackedSequence:
        return self._converted("float64")

    def float(self) -> PackedSequence:
        return self._converted("float32")

    def half(self) -> PackedSequence:
        return self._converted("float16")

    def long(self) -> PackedSequence:
        return self._converted("int64")

    def int(self) -> PackedSequence:
        return self._converted("int32")

    def short(self) -> PackedSequence:
        return self._converted("int16")

    def char(self) -> PackedSequence:
        return self._converted("int8")

    def byte(self) -> PackedSequence:
        return self._converted("uint8")

    def pin_memory(self) -> PackedSequence:
        def pin(t: Tensor | None) -> Tensor | None:
            return None if t is None else t.pin_memory()

        return type(self)(
            self.data.pin_memory(), self.batch_sizes, pin(self.sorted_indices), pin(self.unsorted_indices)
        )

    @property
    def is_cuda(self) -> bool:
        return bool(self.data.is_cuda)

    def is_pinned(self) -> bool:
        return bool(self.data.is_pinned())


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that undoes ``permutation``."""
    if permutation is None:
        return None
    out = rushlight.empty_like(permutation)
    out.scatter_(0, permutation, rushlight.arange(0, permutation.numel(), device=permutation.device))
    return out


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Packs padded sequences.

    Args:
        input: (T, N, *), or (N, T, *) with ``batch_first``.
        lengths: N lengths of at least 1, longest first when ``enforce_sorted``.

    RuntimeError for lengths that do not fit or are not sorted.
    """
    op = "pack_padded_sequence"
    if not isinstance(lengths, Tensor):
        lengths = rushlight.as_tensor(lengths, dtype=rushlight.int64, device="cpu")
    if lengths.dim() != 1:
        raise RuntimeError(f"{op}: lengths; expected 1 dimension, got {lengths.dim()}")
    sorted_indices = None
    if not enforce_sorted:
        lengths, sorted_indices = rushlight.sort(lengths, descending=True)
        sorted_indices = sorted_indices.to(input.device)
        input = input.index_select(0 if batch_first else 1, sorted_indices)
    x = input.transpose(0, 1) if batch_first else input
    values = lengths.tolist()
    if input.numel() == 0:
        raise RuntimeError(f"{op}: input; expected elements, got shape {list(input.shape)}")
    if len(values) != x.size(1):
        raise RuntimeError(f"{op}: lengths; expected {x.size(1)} (the batch), got {len(values)}")
    if values[-1] <= 0:
        raise RuntimeError(f"{op}: lengths; expected lengths of at least 1, got {min(values)}")
    if any(a < b for a, b in itertools.pairwise(values)):
        raise RuntimeError(
            f"{op}: lengths; expected them longest first, got {values}; pass enforce_sorted=False to have them sorted"
        )
    if values[0] > x.size(0):
        raise RuntimeError(f"{op}: lengths; expected at most {x.size(0)} steps (input), got {values[0]}")
    pieces, sizes = [], []
    running = len(values)
    for t in range(values[0]):
        while values[running - 1] <= t:
            running -= 1
        pieces.append(x[t, :running])
        sizes.append(running)
    return PackedSequence(rushlight.cat(pieces), rushlight.tensor(sizes, dtype=rushlight.int64), sorted_indices, None)


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """The inverse of :func:`pack_padded_sequence`: padded sequences (T, N, *) and their lengths.

    ``total_length`` pads to that many steps; ValueError when it is less than the longest sequence.
    """
    data, batch_sizes, _, unsorted_indices = sequence
    sizes = batch_sizes.tolist()
    steps = len(sizes)
    if total_length is not None:
        if total_length < steps:
            raise ValueError(
                f"pad_packed_sequence: total_length; expected at least {steps} (the longest sequence), got "
                f"{total_length}"
            )
        steps = total_length
    rows = []
    for piece in data.split(sizes):
        missing = sizes[0] - piece.shape[0]
        if missing:
            piece = rushlight.cat([piece, piece.new_full((missing, *piece.shape[1:]), padding_value)])
        rows.append(piece)
    out = rushlight.stack(rows)
    if steps > len(sizes):
        out = rushlight.cat([out, out.new_full((steps - len(sizes), *out.shape[1:]), padding_value)])
    lengths = rushlight.tensor([sum(1 for s in sizes if s > n) for n in range(sizes[0])], dtype=rushlight.int64)
    if batch_first:
        out = out.transpose(0, 1)
    if unsorted_indices is not None:
        out = out.index_select(0 if batch_first else 1, unsorted_indices)
        lengths = lengths[unsorted_indices.cpu()]
    return out, lengths


def pad_sequence(
    sequences: Any, batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    """Stacks sequences (T_i, *) of different lengths into (T, N, *), or (N, T, *) with ``batch_first``.

    Example::

        >>> import rushlight
        >>> rushlight.nn.utils.rnn.pad_sequence([rushlight.ones(1), rushlight.ones(2)], batch_first=True).tolist()
        [[1.0, 0.0], [1.0, 1.0]]
    """
    op = "pad_sequence"
    if isinstance(sequences, Tensor):
        sequences = sequences.unbind(0)
    if not hasattr(sequences, "__iter__"):
        raise RuntimeError(f"{op}: sequences; expected an iterable of tensors, got {type(sequences).__name__}")
    items = list(sequences)
    if not items:
        raise RuntimeError(f"{op}: sequences; expected at least one, got none")
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"{op}: padding_side; expected 'left' or 'right', got {padding_side!r}")
    tail = list(items[0].shape[1:])
    for s in items:
        if list(s.shape[1:]) != tail:
            raise RuntimeError(f"{op}: expected sequences of shape [*, {tail}], got {list(s.shape)}")
    longest = max(s.shape[0] for s in items)
    shape = [len(items), longest, *tail] if batch_first else [longest, len(items), *tail]
    out = items[0].new_full(shape, padding_value)
    for n, s in enumerate(items):
        span = slice(0, s.shape[0]) if padding_side == "right" else slice(longest - s.shape[0], longest)
        if batch_first:
            out[n, span] = s
        else:
            out[span, n] = s
    return out


def unpad_sequence(padded_sequences: Tensor, lengths: Any, batch_first: bool = False) -> list[Tensor]:
    """The inverse of :func:`pad_sequence`: the sequences without their padding."""
    x = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    values = lengths.tolist() if isinstance(lengths, Tensor) else list(lengths)
    return [row[: int(n)] for row, n in zip(x, values, strict=False)]


def pack_sequence(sequences: Any, enforce_sorted: bool = True) -> PackedSequence:
    """Packs a list of sequences (T_i, *), longest first when ``enforce_sorted``."""
    lengths = [s.size(0) for s in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The inverse of :func:`pack_sequence`."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
