"""Samples joined to a batch."""

from __future__ import annotations

import collections.abc
import copy
import sys

import rushlight
from rushlight import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["collate", "default_collate", "default_convert"]


def _numpy() -> Any:
    # no sample is an array when numpy was never loaded
    return sys.modules.get("numpy")


def _unsupported(what: Any) -> TypeError:
    return TypeError(
        "default_collate: element that cannot be batched; expected tensors, numpy arrays, numbers, strings, dicts or "
        f"lists, got {what}"
    )


def _check_array_dtype(array: Any) -> None:
    if array.dtype.kind in "OSUa":
        raise _unsupported(f"an array of dtype {array.dtype}")


def default_convert(data: Any) -> Any:
    """One sample with its numpy arrays as tensors, through containers; other values stay as they are."""
    if isinstance(data, Tensor):
        return data
    numpy = _numpy()
    if numpy is not None and isinstance(data, (numpy.ndarray, numpy.generic)):
        if data.dtype.kind in "OSU":
            return data
        # a number of numpy's is read-only memory: an array of it is not
        return rushlight.as_tensor(numpy.asarray(data) if isinstance(data, numpy.generic) else data)
    if isinstance(data, collections.abc.Mapping):
        return _rebuilt_mapping(data, {k: default_convert(v) for k, v in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(default_convert(v) for v in data))
    if isinstance(data, tuple):
        return [default_convert(v) for v in data]
    if isinstance(data, collections.abc.Sequence) and not isinstance(data, (str, bytes)):
        return _rebuilt_sequence(data, [default_convert(v) for v in data])
    return data


def _rebuilt_mapping(like: Any, values: dict[Any, Any]) -> Any:
    """The values in a mapping of the type of ``like`` where that can be made."""
    try:
        if isinstance(like, collections.abc.MutableMapping):
            # a copy keeps further attributes, such as the factory of a defaultdict
            clone = copy.copy(like)
            clone.update(values)
            return clone
        return type(like)(values)
    except TypeError:
        return values


def _rebuilt_sequence(like: Any, values: list[Any]) -> Any:
    try:
        if isinstance(like, collections.abc.MutableSequence):
            clone = copy.copy(like)
            for i, v in enumerate(values):
                clone[i] = v
            return clone
        return type(like)(values)
    except TypeError:
        return values


def _from_map(batch: Any, kind: type, collate_fn_map: dict[Any, Callable[..., Any]]) -> tuple[bool, Any]:
    if kind in collate_fn_map:
        return True, collate_fn_map[kind](batch, collate_fn_map=collate_fn_map)
    for known, fn in collate_fn_map.items():
        if isinstance(batch[0], known):
            return True, fn(batch, collate_fn_map=collate_fn_map)
    return False, None


def collate(batch: Any, *, collate_fn_map: dict[Any, Callable[..., Any]] | None = None) -> Any:
    """Joins samples by the functions of a map (type, or tuple of types, to function), through containers."""
    first = batch[0]
    kind = type(first)
    if collate_fn_map is not None:
        found, value = _from_map(batch, kind, collate_fn_map)
        if found:
            return value
    if isinstance(first, collections.abc.Mapping):
        joined = {k: collate([d[k] for d in batch], collate_fn_map=collate_fn_map) for k in first}
        return _rebuilt_mapping(first, joined)
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return kind(*(collate(column, collate_fn_map=collate_fn_map) for column in zip(*batch, strict=False)))
    if isinstance(first, collections.abc.Sequence):
        size = len(first)
        for i, sample in enumerate(batch):
            if len(sample) != size:
                raise RuntimeError(
                    f"default_collate: sequences of one batch; expected {size} elements each, got {len(sample)} in "
                    f"sample {i}"
                )
        columns = [collate(column, collate_fn_map=collate_fn_map) for column in zip(*batch, strict=False)]
        return columns if isinstance(first, tuple) else _rebuilt_sequence(first, columns)
    raise _unsupported(kind)


def collate_tensor_fn(batch: Any, *, collate_fn_map: Any = None) -> Tensor:
    return rushlight.stack(batch, 0)


def collate_numpy_array_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
    _check_array_dtype(batch[0])
    return collate([rushlight.as_tensor(b) for b in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch: Any, *, collate_fn_map: Any = None) -> Tensor:
    _check_array_dtype(batch[0])
    numpy = _numpy()
    return rushlight.as_tensor(numpy.asarray(batch))


def collate_float_fn(batch: Any, *, collate_fn_map: Any = None) -> Tensor:
    return rushlight.tensor(batch, dtype=rushlight.float64)


def collate_int_fn(batch: Any, *, collate_fn_map: Any = None) -> Tensor:
    return rushlight.tensor(batch)


def collate_str_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
    return batch


class _DefaultMap(dict):  # type: ignore[type-arg]
    """The default functions; those for numpy are there once numpy is."""

    def ready(self) -> _DefaultMap:
        numpy = _numpy()
        if numpy is not None and numpy.ndarray not in self:
            rest = dict(self)
            self.clear()
            self[Tensor] = rest.pop(Tensor)
            self[numpy.ndarray] = collate_numpy_array_fn
            self[(numpy.bool_, numpy.number, numpy.object_)] = collate_numpy_scalar_fn
            self.update(rest)
        return self


default_collate_fn_map = _DefaultMap(
    {
        Tensor: collate_tensor_fn,
        float: collate_float_fn,
        int: collate_int_fn,
        str: collate_str_fn,
        bytes: collate_str_fn,
    }
)


def default_collate(batch: Any) -> Any:
    """Joins samples to a batch with one dimension more in front.

    Tensors and arrays are stacked, numbers become a tensor (float64 for floats), strings stay a list; containers are
    gone
    through: a list of pairs becomes a pair of batches. TypeError for anything else, RuntimeError for sizes that differ.

    Example::

        >>> import rushlight
        >>> x, y = rushlight.utils.data.default_collate([(1, "a"), (2, "b")])
        >>> x.tolist(), y
        ([1, 2], ('a', 'b'))
    """
    return collate(batch, collate_fn_map=default_collate_fn_map.ready())
