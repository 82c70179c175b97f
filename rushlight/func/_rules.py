"""What operations do with wrapped tensors: batches of vmap, dual numbers of forward mode.

``run`` is called in place of an operation's implementation when one of its arguments is wrapped. It takes the innermost
level among the arguments, works on the values that its tensors stand for, and wraps the results again; the values may
be wrapped at outer levels themselves, whose turn comes when the rule calls operations on them.

A batch lies along the first dimension of a value, so that dimensions counted from the end stay what they were. How a
record is batched is said by its ``batch`` field, or follows from its family; otherwise the operation runs once for each
example. docs/design/0007-transforms.md tells more.
"""

from __future__ import annotations

import contextlib

import rushlight
from rushlight import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from rushlight.ops._record import Operation

    from .._C import Tensor

unwrap = _C._unwrap


class Level:
    """One vmap or one forward-mode level in progress."""

    _next = 1

    def __init__(self, size: int | None = None, randomness: str = "error") -> None:
        self.number = Level._next
        Level._next += 1
        self.size = size  # of the batch; None in forward mode
        self.randomness = randomness

    def batch(self, value: Tensor, copied: bool = False) -> Tensor:
        """A tensor that stands for the examples along the first dimension of the value."""
        return _C._wrap(value, self.number, None, copied)

    def dual(self, value: Tensor, tangent: Tensor) -> Tensor:
        """A tensor that stands for value + tangent * epsilon."""
        return _C._wrap(value, self.number, tangent)


LEVELS: dict[int, Level] = {}
"""The levels in progress, innermost last."""


@contextlib.contextmanager
def entered(level: Level) -> Iterator[Level]:
    """The level is in progress within the block."""
    LEVELS[level.number] = level
    batched = 0 if level.size is None else 1
    _C._add_vmap_depth(batched)
    try:
        yield level
    finally:
        _C._add_vmap_depth(-batched)
        del LEVELS[level.number]


@contextlib.contextmanager
def _left(level: Level) -> Iterator[None]:
    """The level is not in progress within the block: its rule draws random numbers for all examples."""
    batched = 0 if level.size is None else 1
    saved = dict(LEVELS)
    del LEVELS[level.number]
    _C._add_vmap_depth(-batched)
    try:
        yield
    finally:
        _C._add_vmap_depth(batched)
        LEVELS.clear()
        LEVELS.update(saved)


def _tensors(arguments: tuple[Any, ...]) -> Iterator[Any]:
    for a in arguments:
        if isinstance(a, _C.Tensor):
            yield a
        elif isinstance(a, (tuple, list)):
            yield from (t for t in a if isinstance(t, _C.Tensor))


def _replace(arguments: tuple[Any, ...], change: Callable[[Any], Any]) -> tuple[Any, ...]:
    """The arguments with every tensor changed, those in lists as well."""
    return tuple(
        change(a)
        if isinstance(a, _C.Tensor)
        else tuple(change(t) if isinstance(t, _C.Tensor) else t for t in a)
        if isinstance(a, (tuple, list))
        else a
        for a in arguments
    )


def run(index: int, module: str, name: str, overload: str, inplace: bool, arguments: tuple[Any, ...]) -> Any:
    """The results of operation number ``index`` on arguments of which some are wrapped."""
    from rushlight.ops._lookup import record

    operation = record(module, name, overload)
    inner, left = 0, False
    for t in _tensors(arguments):
        left = left or (t._base is not None and unwrap(t._base) is not None)
        found = unwrap(t)
        if found is not None and found[0] > inner:
            inner = found[0]
    if not inner and left:  # views that stayed behind in forward mode, which is over: ordinary tensors again
        return _C._run_operation(index, inplace, arguments)
    if not inner and not operation.random:
        raise RuntimeError(
            f"{operation.full_name}: got a tensor made inside vmap or forward mode that stands for no value: the "
            "operation that made it does not follow transformations"
        )
    level = LEVELS.get(inner)
    if operation.random:
        drawing = [n for n in LEVELS if LEVELS[n].size is not None]
        if drawing and drawing[-1] > inner:
            level = LEVELS[drawing[-1]]
    call = Call(operation, index, level, inplace)
    if level is None:
        return call.after_the_end(inner, arguments)
    if level.size is None:
        from ._forward import differentiate

        return differentiate(call, arguments)
    return batch(call, arguments)


class Call:
    """One operation at one level."""

    def __init__(self, operation: Operation, index: int, level: Any, inplace: bool) -> None:
        self.operation = operation
        self.index = index
        self.level = level
        self.inplace = inplace
        self.copied = False

    @property
    def size(self) -> int:
        """Examples in the batch."""
        size: int = self.level.size
        return size

    def again(self, arguments: tuple[Any, ...], inplace: bool | None = None) -> Any:
        """Runs the operation on other arguments, in the order of the schema."""
        inplace = self.inplace if inplace is None else inplace
        if self.operation.random and self.level is not None and self.level.number in LEVELS:
            with _left(self.level):
                return _C._run_operation(self.index, inplace, arguments)
        return _C._run_operation(self.index, inplace, arguments)

    def value(self, t: Any) -> Any:
        """What the tensor stands for at this level; itself when it is not wrapped here."""
        found = unwrap(t)
        return found[1] if found is not None and found[0] == self.level.number else t

    def batched(self, t: Any) -> bool:
        """Whether the tensor has a value for each example."""
        found = unwrap(t)
        return found is not None and found[0] == self.level.number

    def wrap(self, result: Any) -> Any:
        """Results along whose first dimension the examples lie, as tensors of one example's shape."""
        if isinstance(result, _C.Tensor):
            return self.level.batch(result, self.copied)
        if isinstance(result, (tuple, list)):
            return tuple(self.wrap(r) for r in result)
        return result

    def expanded(self, t: Any) -> Any:
        """The value with the batch in its first dimension, whether the tensor is batched or not."""
        return self.value(t) if self.batched(t) else t.unsqueeze(0).expand((self.size, *t.shape))

    def after_the_end(self, number: int, arguments: tuple[Any, ...]) -> Any:
        """A tensor of a level that is over: its value in forward mode, an error after vmap."""

        def value(t: Any) -> Any:
            found = unwrap(t)
            if found is None or found[0] != number:
                return t
            if found[2] is None:
                raise RuntimeError(
                    f"{self.operation.name}: a tensor from inside a vmapped function (one example's shape "
                    f"{tuple(t.shape)}) was used after vmap had returned; return it from the function instead"
                )
            return found[1]

        return self.again(_replace(arguments, value))


# ---------------------------------------------------------------- vmap


def batch(call: Call, arguments: tuple[Any, ...]) -> Any:
    """The results for a whole batch."""
    operation = call.operation
    if call.inplace:
        _check_write(call, arguments)
    if operation.random:
        return _random(call, arguments)
    rule = rule_of(operation)
    if callable(rule):
        values = tuple(
            call.value(a)
            if isinstance(a, _C.Tensor)
            else tuple(call.value(t) if isinstance(t, _C.Tensor) else t for t in a)
            if isinstance(a, (tuple, list)) and any(isinstance(t, _C.Tensor) for t in a)
            else a
            for a in arguments
        )
        result = rule(Batch(call, arguments), *values)
        if result is not NotImplemented:
            return call.wrap(result) if not call.inplace else None
    elif rule == "pointwise":
        return _pointwise(call, arguments)
    elif rule == "dynamic":
        raise RuntimeError(
            f"vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over "
            f"{operation.name}, whose result may have another shape for each example. Please voice your support by "
            "moving it out of the vmapped function, or mask instead of selecting"
        )
    else:
        kind, _, single = rule.partition(":")
        fits = not any(call.batched(t) for t in _named(operation, arguments, single.split(",") if single else ()))
        if fits and kind == "plain":
            result = call.again(_replace(arguments, call.value))
            return None if call.inplace else call.wrap(result)
        if fits and kind == "dims":
            shifted = _from_the_end(call, arguments, single.split(",") if single else [])
            if shifted is not None:
                result = call.again(shifted)
                return None if call.inplace else call.wrap(result)
    return _loop(call, arguments)


def rule_of(operation: Operation) -> Any:
    """The batch rule that a record names, or that follows from its family."""
    if operation.batch is not None:
        return operation.batch
    return "pointwise" if operation.kind == "elementwise" else "dims" if _one_tensor_with_dims(operation) else "loop"


class Batch:
    """What a record's batch rule gets in front of the arguments' values, in which the batch is the first dimension."""

    def __init__(self, call: Call, arguments: tuple[Any, ...]) -> None:
        self.size = call.size
        self._call = call
        self._arguments = arguments

    def batched(self, position: int) -> bool:
        """Whether argument number ``position`` has a value for each example."""
        a = self._arguments[position]
        return isinstance(a, _C.Tensor) and self._call.batched(a)

    def dim(self, position: int) -> int:
        """The number of dimensions of one example of that argument."""
        n: int = self._arguments[position].ndim
        return n

    def expanded(self, position: int) -> Any:
        """The value of that argument with a batch dimension in any case."""
        return self._call.expanded(self._arguments[position])

    def aligned(self, position: int, ndim: int) -> Any:
        """The value with dimensions of size 1 after the batch, up to ``ndim`` for one example."""
        t = self._arguments[position]
        value = self._call.value(t)
        if not self._call.batched(t) or t.ndim >= ndim:
            return value
        return value.reshape((self.size, *(1,) * (ndim - t.ndim), *t.shape))

    def numel(self, position: int) -> int:
        """The number of elements of one example of that argument."""
        n: int = self._arguments[position].numel()
        return n

    def all_expanded(self, position: int) -> list[Any]:
        """The values of a list of tensors, all with a batch dimension."""
        return [self._call.expanded(t) for t in self._arguments[position]]

    def which(self, position: int) -> list[bool]:
        """Which tensors of a list have a value for each example."""
        return [isinstance(t, _C.Tensor) and self._call.batched(t) for t in self._arguments[position]]

    def dims(self, position: int) -> list[int | None]:
        """The numbers of dimensions of one example of the tensors of a list; None for None."""
        return [None if t is None else t.ndim for t in self._arguments[position]]

    def view(self, value: Any, size: Any) -> Any:
        """A view of the value in another shape; a copy, which may not be written in place, where there is none."""
        result = value.reshape(size)
        if result.numel() and result.untyped_storage().data_ptr() != value.untyped_storage().data_ptr():
            self._call.copied = True
        return result

    def copied(self, value: Any) -> Any:
        """The value, which is not the tensor's own memory."""
        self._call.copied = True
        return value

    @property
    def inplace(self) -> bool:
        """Whether the result is to be written into the first argument."""
        return self._call.inplace

    def flat(self, position: int) -> Any:
        """The value with one example's elements in one dimension."""
        return self._call.expanded(self._arguments[position]).reshape((self.size, -1))

    def again(self, *values: Any) -> Any:
        """The operation itself on these values."""
        return self._call.again(values)


def _named(operation: Operation, arguments: tuple[Any, ...], names: Any) -> Iterator[Any]:
    for argument, value in zip(operation.arguments, arguments, strict=True):
        if argument.name in names:
            yield from _tensors((value,))


def _check_write(call: Call, arguments: tuple[Any, ...]) -> None:
    found = unwrap(arguments[0])
    if found is None or found[0] != call.level.number:
        raise RuntimeError(
            f"vmap: inplace arithmetic(self, *extra_args) is not possible because there exists a Tensor `other` in "
            f"extra_args that has more elements than `self`. This happened due to `other` being vmapped over but "
            f"`self` not being vmapped over at level {call.level.number}. ({call.operation.name}_ on shape "
            f"{tuple(arguments[0].shape)}) Please try to use out-of-place operators instead, or make self with "
            "new_zeros, zeros_like or a clone of a batched tensor"
        )
    if found[3]:
        raise RuntimeError(
            f"vmap: {call.operation.name}_ would write to a view that had to be copied for the batch (shape "
            f"{tuple(arguments[0].shape)}); use an out-of-place operation"
        )


_DIM_NAMES = ("dim", "dims", "dim0", "dim1", "dim2", "axis", "axes", "dimension", "start_dim", "end_dim")
_SIZE_NAMES = ("input_sizes", "input_size", "self_size", "size", "sizes", "shape")


def _one_tensor_with_dims(operation: Operation) -> bool:
    """An argument called dim of an operation on one tensor counts that tensor's dimensions."""
    tensors = [a for a in operation.arguments if a.type.startswith("Tensor")]
    names = {a.name for a in operation.arguments}
    return (
        len(tensors) == 1
        and tensors[0].type == "Tensor"
        and any(n in names for n in _DIM_NAMES)
        and not any(a.name in _SIZE_NAMES and a.type == "int[]" for a in operation.arguments)
    )


def _from_the_end(call: Call, arguments: tuple[Any, ...], single: list[str]) -> tuple[Any, ...] | None:
    """The arguments with values for tensors and dims counted from the end; None when they cannot be."""
    operation = call.operation
    first = next(_tensors(arguments))
    ndim = first.ndim
    for argument, value in zip(operation.arguments, arguments, strict=True):
        if argument.name in _SIZE_NAMES and argument.type == "int[]":
            ndim = len(value)
    if any(t.ndim == 0 for t in _tensors(arguments)) or ndim == 0:
        return None
    new: list[Any] = []
    flatten = False
    for argument, value in zip(operation.arguments, arguments, strict=True):
        if argument.name in _DIM_NAMES:
            if isinstance(value, int) and not isinstance(value, bool):
                extra = 1 if operation.name in ("unsqueeze", "stack") else 0
                value = value if value < 0 else value - (ndim + extra)
            elif isinstance(value, (tuple, list)) and value:
                value = tuple(d if d < 0 else d - ndim for d in value)
            elif argument.type == "int":  # no dim: all elements
                flatten, value = True, -1
            else:
                value = tuple(range(-ndim, 0))
        elif argument.name in _SIZE_NAMES and argument.type == "int[]":
            value = (call.size, *value)
        elif isinstance(value, _C.Tensor):
            value = value if argument.name in single else call.expanded(value)
        elif isinstance(value, (tuple, list)) and any(isinstance(t, _C.Tensor) for t in value):
            value = tuple(call.expanded(t) for t in value)
        new.append(value)
    if flatten:
        names = [a.name for a in operation.arguments]
        if "keepdim" in names and new[names.index("keepdim")]:
            return None
        new[0] = new[0].flatten(1)
    return tuple(new)


def _pointwise(call: Call, arguments: tuple[Any, ...]) -> Any:
    """Examples that meet element by element: values with dimensions of size 1 where an example has fewer."""
    tensors = list(_tensors(arguments))
    ndim = max(t.ndim for t in tensors)
    dtypes = {t.dtype for t in tensors}
    cast = None
    if len(dtypes) > 1 and ndim and any(t.ndim == 0 and call.batched(t) for t in tensors):
        # One example's number does not decide the dtype beside tensors with dimensions; its batch would.
        cast = _promoted(tensors)

    def align(t: Any) -> Any:
        if not call.batched(t):
            return t
        value = call.value(t)
        if t.ndim == 0 and cast is not None:
            value = value.to(cast)
        if t.ndim < ndim:
            value = value.reshape((call.size, *(1,) * (ndim - t.ndim), *t.shape))
        return value

    result = call.again(_replace(arguments, align))
    return None if call.inplace else call.wrap(result)


def _promoted(tensors: list[Any]) -> Any:
    """The dtype of an operation between these, from empty stand-ins."""
    result = rushlight.empty((1,) * tensors[0].ndim, dtype=tensors[0].dtype)
    for t in tensors[1:]:
        other = rushlight.empty((1,) * t.ndim, dtype=t.dtype)
        result = rushlight.empty((1,) * max(t.ndim, result.ndim), dtype=rushlight.result_type(result, other))
    return result.dtype


def _loop(call: Call, arguments: tuple[Any, ...]) -> Any:
    """One example after the other."""
    operation = call.operation
    if call.size == 0:
        raise RuntimeError(
            f"vmap: {operation.name} has no rule for whole batches, and a batch of no examples has no result to take "
            "the shape from; expected a batch of at least one"
        )
    rows = []
    for i in range(call.size):
        one = _replace(arguments, lambda t, i=i: call.value(t).select(0, i) if call.batched(t) else t)  # type: ignore[misc]
        rows.append(call.again(one))
    return None if call.inplace else _stacked(call, rows)


def _stacked(call: Call, rows: list[Any]) -> Any:
    first = rows[0]
    if isinstance(first, _C.Tensor):
        if any(r.shape != first.shape for r in rows):
            raise RuntimeError(
                f"vmap: We do not support batching operators that can output dynamic shape: {call.operation.name} gave "
                f"shapes {tuple(first.shape)} and {next(tuple(r.shape) for r in rows if r.shape != first.shape)}"
            )
        return call.level.batch(rushlight.stack(rows), True)
    if isinstance(first, (tuple, list)):
        return tuple(_stacked(call, [r[k] for r in rows]) for k in range(len(first)))
    if first is None or all(r == first for r in rows):
        return first
    raise RuntimeError(
        f"vmap: It looks like you're using the result of {call.operation.name} as a Python value, and it is not the "
        "same for all examples of the batch"
    )


# ---------------------------------------------------------------- random numbers inside vmap


def _random(call: Call, arguments: tuple[Any, ...]) -> Any:
    operation = call.operation
    kind = call.level.randomness
    if kind == "error":
        raise RuntimeError(
            f"vmap: called random operation {operation.name} while in randomness error mode. Please either use the "
            "'same' or 'different' randomness flags on vmap or perform the randomness operation out of vmap"
        )
    tensors = list(_tensors(arguments))
    if kind == "same":
        if not any(call.batched(t) for t in tensors):
            return call.again(arguments)
        generator = rushlight.default_generator
        start = generator.get_state()
        rows = []
        for i in range(call.size):
            generator.set_state(start)
            rows.append(call.again(_replace(arguments, lambda t, i=i: call.value(t)[i] if call.batched(t) else t)))  # type: ignore[misc]
        return None if call.inplace else _stacked(call, rows)
    if call.inplace or tensors:
        # Draws element by element: one call for all examples.
        if operation.batch is None or operation.batch == "pointwise":
            ndim = max(t.ndim for t in tensors)

            def align(t: Any) -> Any:
                value = call.expanded(t)
                return value.reshape((call.size, *(1,) * (ndim - t.ndim), *t.shape)) if t.ndim < ndim else value

            result = call.again(_replace(arguments, align))
            return None if call.inplace else call.wrap(result)
        return _loop(call, arguments)
    names = [a.name for a in operation.arguments]
    if "size" in names:
        i = names.index("size")
        return call.wrap(call.again((*arguments[:i], (call.size, *arguments[i]), *arguments[i + 1 :])))
    return _stacked(call, [call.again(arguments) for _ in range(call.size)])
