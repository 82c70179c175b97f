"""vmap: a function of one example becomes a function of a batch."""

from __future__ import annotations

import functools

import rushlight
from rushlight import _C
from rushlight.utils._pytree import broadcast_prefix, tree_flatten, tree_unflatten

from ._rules import Level, entered, unwrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["vmap"]


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """A function that applies ``func`` to each example of a batch, in whole-batch operations where there are rules.

    Args:
        func: takes tensors (and nested containers of them) and returns tensors.
        in_dims: the dimension of each argument along which the examples lie; None for arguments that all examples
            share. A nested structure like the arguments', or a prefix of it.
        out_dims: the dimension of each output along which the results are put.
        randomness: what random operations do: ``"error"``, ``"different"`` numbers for each example, or the
            ``"same"`` for all.
        chunk_size: at most so many examples at a time. Default: all.

    Raises:
        ValueError: the arguments do not fit `in_dims`, or have different batch sizes; an output is no tensor.
        RuntimeError: ``func`` uses the value of a tensor in Python (``item``, ``if``), which differs by example.

    Example::

        >>> import rushlight
        >>> x, y = rushlight.arange(6.0).reshape(2, 3), rushlight.ones(3)
        >>> rushlight.vmap(rushlight.dot, in_dims=(0, None))(x, y)
        tensor([ 3., 12.])
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if chunk_size is not None and not chunk_size > 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        size, dims, leaves, spec = _inputs(in_dims, args, func)
        options = tree_flatten(kwargs)
        # Keyword arguments are always batched along their first dimension.
        for leaf in options[0]:
            if isinstance(leaf, _C.Tensor):
                size = _same_size(size, leaf, 0, func)
        if size is None:
            raise ValueError(
                f"vmap({_name(func)}, in_dims={in_dims}, ...)(<inputs>): Expected at least one Tensor to vmap over; "
                "got none with a dimension in in_dims"
            )
        if chunk_size is not None and size > chunk_size:
            return _chunks(func, size, chunk_size, dims, leaves, spec, options, out_dims, randomness)
        return _run(func, size, dims, leaves, spec, options, out_dims, randomness)

    return wrapped


def _name(func: Any) -> str:
    return getattr(func, "__name__", repr(func))


def _same_size(size: int | None, leaf: Any, dim: int, func: Any) -> int:
    got: int = leaf.shape[dim]
    if size is not None and size != got:
        raise ValueError(
            f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"[{size}, {got}] for the mapped dimension (of the arguments of {_name(func)})"
        )
    return got


def _inputs(in_dims: Any, args: tuple[Any, ...], func: Any) -> tuple[int | None, list[Any], list[Any], Any]:
    start = f"vmap({_name(func)}, in_dims={in_dims}, ...)(<inputs>): "
    if not isinstance(in_dims, (int, tuple, list)) or isinstance(in_dims, bool):
        raise ValueError(
            f"{start}expected `in_dims` to be int or a (potentially nested) tuple matching the structure of inputs, "
            f"got: {type(in_dims)}."
        )
    leaves, spec = tree_flatten(args)
    if not leaves:
        return None, [], leaves, spec
    dims = broadcast_prefix(tuple(in_dims) if isinstance(in_dims, list) else in_dims, spec)
    if dims is None:
        raise ValueError(
            f"{start}in_dims is not compatible with the structure of inputs. Inputs have structure {spec}."
        )
    size: int | None = None
    for i, (leaf, dim) in enumerate(zip(leaves, dims, strict=True)):
        if dim is None:
            continue
        if not isinstance(dim, int) or isinstance(dim, bool):
            raise ValueError(
                f"{start}Got in_dim={dim} for an input but in_dim must be either an integer dimension or None."
            )
        if not isinstance(leaf, _C.Tensor):
            if isinstance(in_dims, int):
                dims[i] = None
                continue
            raise ValueError(
                f"{start}Got in_dim={dim} for an input but the input is of type {type(leaf)}. We cannot "
                "vmap over non-Tensor arguments, please use None as the respective in_dim"
            )
        if not -leaf.ndim <= dim < leaf.ndim:
            raise ValueError(
                f"{start}Got in_dim={dim} for some input, but that input is a Tensor of dimensionality "
                f"{leaf.ndim} so expected in_dim to satisfy -{leaf.ndim} <= in_dim < {leaf.ndim}."
            )
        size = _same_size(size, leaf, dim, func)
    return size, dims, leaves, spec


def _run(
    func: Any, size: int, dims: list[Any], leaves: list[Any], spec: Any, options: Any, out_dims: Any, randomness: str
) -> Any:
    with entered(Level(size, randomness)) as level:

        def batch(leaf: Any, dim: Any) -> Any:
            if dim is None or not isinstance(leaf, _C.Tensor):
                return leaf
            return level.batch(leaf if dim == 0 else leaf.movedim(dim, 0))

        args = tree_unflatten([batch(x, d) for x, d in zip(leaves, dims, strict=True)], spec)
        kwargs = tree_unflatten([batch(x, 0) for x in options[0]], options[1])
        outputs, out_spec = tree_flatten(func(*args, **kwargs))
        places = _places(out_dims, outputs, out_spec, func)
        return tree_unflatten(
            [_unbatch(level, out, dim, func) for out, dim in zip(outputs, places, strict=True)], out_spec
        )


def _places(out_dims: Any, outputs: list[Any], spec: Any, func: Any) -> list[Any]:
    start = f"vmap({_name(func)}, ..., out_dims={out_dims})"
    for out in outputs:
        if not isinstance(out, _C.Tensor):
            raise ValueError(
                f"vmap({_name(func)}, ...): `{_name(func)}` must only return Tensors, got type {type(out)}. "
                "Did you mean to set out_dims= to None for output?"
            )
    if isinstance(out_dims, (tuple, list)) and spec.type is None:
        out_dims = out_dims[0] if len(out_dims) == 1 else out_dims
    places = broadcast_prefix(out_dims, spec)
    if places is None or any(p is not None and not isinstance(p, int) for p in places):
        raise ValueError(
            f"{start}: out_dims is not compatible with the structure of outputs: it is "
            f"{type(out_dims).__name__}, the outputs have structure {spec}."
        )
    return places


def _unbatch(level: Level, out: Any, dim: Any, func: Any) -> Any:
    found = unwrap(out)
    if found is None or found[0] != level.number:
        if dim is None:
            return out
        value = out.unsqueeze(0).expand((level.size, *out.shape))
    else:
        if dim is None:
            raise ValueError(
                f"vmap({_name(func)}, ..., out_dims={dim}): `{_name(func)}` returned a batched tensor for an "
                "output with out_dims=None; expected an output that is the same for all examples"
            )
        value = found[1]
    if not -value.ndim <= dim < value.ndim:
        raise IndexError(f"vmap: out_dim {dim} is out of range for an output of {value.ndim} dimensions with the batch")
    return value if dim == 0 else value.movedim(0, dim)


def _chunks(
    func: Any,
    size: int,
    chunk: int,
    dims: list[Any],
    leaves: list[Any],
    spec: Any,
    options: Any,
    out_dims: Any,
    randomness: str,
) -> Any:
    parts: list[list[Any]] = []
    out_spec: Any = None
    for start in range(0, size, chunk):
        length = min(chunk, size - start)
        cut = [
            x.narrow(d, start, length) if d is not None and isinstance(x, _C.Tensor) else x
            for x, d in zip(leaves, dims, strict=True)
        ]
        cut_options = [x.narrow(0, start, length) if isinstance(x, _C.Tensor) else x for x in options[0]]
        result = _run(func, length, dims, cut, spec, (cut_options, options[1]), out_dims, randomness)
        flat, out_spec = tree_flatten(result)
        parts.append(flat)
    places = broadcast_prefix(out_dims, out_spec) or []
    if isinstance(out_dims, (tuple, list)) and out_spec.type is None:
        places = [out_dims[0]]
    joined = [
        rows[0] if place is None else rushlight.cat(rows, place)
        for rows, place in zip(zip(*parts, strict=True), places, strict=True)
    ]
    return tree_unflatten(joined, out_spec)
