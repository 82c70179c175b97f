"""Checkpointing: parts of a network whose intermediate results are computed again in backward instead of kept.

Training memory falls from one result per operation to one per checkpointed part, for the price of a second forward.
"""

from __future__ import annotations

import contextlib
import enum
import sys
import threading
import warnings
import weakref

import rushlight
from rushlight import _C
from rushlight.autograd import Function
from rushlight.autograd.graph import saved_tensors_hooks
from rushlight.overrides import TorchFunctionMode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Sequence
    from typing import Any

__all__ = [
    "SAC_IGNORED_OPS",
    "CheckpointError",
    "CheckpointFunction",
    "CheckpointPolicy",
    "DefaultDeviceType",
    "GraphExecGroup",
    "SelectiveCheckpointContext",
    "check_backward_validity",
    "checkpoint",
    "checkpoint_sequential",
    "create_selective_checkpoint_contexts",
    "detach_variable",
    "get_device_states",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
    "set_device_states",
]


class CheckpointError(RuntimeError):
    """The second run of a checkpointed function did not do what the first did."""


class DefaultDeviceType:
    """The device whose random state is kept when the arguments do not tell; ``"cpu"`` here unless it is set."""

    _type = "cpu"

    @staticmethod
    def set_device_type(device: str = "cpu") -> None:
        DefaultDeviceType._type = device

    @staticmethod
    def get_device_type() -> str:
        return DefaultDeviceType._type


def noop_context_fn() -> tuple[Any, Any]:
    """Two contexts that do nothing: what `checkpoint` runs forward and recomputation in by default."""
    return contextlib.nullcontext(), contextlib.nullcontext()


_early_stop: bool | None = None
_debug: bool | None = None


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool) -> Generator[None, None, None]:
    """Context in which recomputation stops, or does not stop, once all it is for is there; overrides ``early_stop``."""
    global _early_stop
    before = _early_stop
    _early_stop = enable
    try:
        yield
    finally:
        _early_stop = before


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Generator[None, None, None]:
    """Context that sets ``debug`` of every `checkpoint` inside; None leaves it to the calls."""
    global _debug
    before = _debug
    _debug = enabled
    try:
        yield
    finally:
        _debug = before


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The inputs, with tensors as leaves of the same memory that require grad where the originals do."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"detach_variable: expected a tuple, got {type(inputs).__name__}")
    detached = []
    for value in inputs:
        if isinstance(value, rushlight.Tensor):
            requires_grad = value.requires_grad
            value = value.detach()
            value.requires_grad = requires_grad
        detached.append(value)
    return tuple(detached)


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warns when no input requires grad."""
    if not any(isinstance(i, rushlight.Tensor) and i.requires_grad for i in inputs):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)


def get_device_states(*args: Any) -> tuple[list[int], list[Any]]:
    """The devices of the arguments other than the host, and the states of their generators: none here."""
    return [], []


def set_device_states(devices: Sequence[int], states: Sequence[Any], *, device_type: str | None = None) -> None:
    """Puts the generators of devices into states from `get_device_states`."""
    if devices:
        raise RuntimeError(f"set_device_states: there are no such devices; expected [], got {list(devices)}")


# ---------------------------------------------------------------- with a backward inside the backward


class CheckpointFunction(Function):
    """The variant with ``use_reentrant=True``: backward runs the function again and a backward through it."""

    @staticmethod
    def forward(ctx: Any, run_function: Callable[..., Any], preserve_rng_state: bool, *args: Any) -> Any:
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.rng_state = rushlight.get_rng_state() if preserve_rng_state else None
        ctx.positions = [i for i, a in enumerate(args) if isinstance(a, rushlight.Tensor)]
        ctx.others = [None if isinstance(a, rushlight.Tensor) else a for a in args]
        ctx.save_for_backward(*(args[i] for i in ctx.positions))
        with rushlight.no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        if _C._run_is_selective():
            raise RuntimeError(
                "checkpoint: with use_reentrant=True neither grad() nor backward(inputs=...) can be used; use "
                "use_reentrant=False, or backward() without inputs"
            )
        args = list(ctx.others)
        for position, tensor in zip(ctx.positions, ctx.saved_tensors, strict=True):
            args[position] = tensor
        detached = detach_variable(tuple(args))
        with _random_state(ctx.rng_state), rushlight.enable_grad():
            outputs = ctx.run_function(*detached)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        roots = [
            (o, g) for o, g in zip(outputs, grads, strict=True) if isinstance(o, rushlight.Tensor) and o.requires_grad
        ]
        if not roots:
            raise RuntimeError("checkpoint: none of the outputs requires grad, so there is nothing to checkpoint")
        rushlight.autograd.backward([o for o, _ in roots], [g for _, g in roots])
        return (None, None, *(a.grad if isinstance(a, rushlight.Tensor) else None for a in detached))


@contextlib.contextmanager
def _random_state(state: Any) -> Generator[None, None, None]:
    """The random numbers of then; afterwards those of now go on. With None nothing changes."""
    if state is None:
        yield
        return
    now = rushlight.get_rng_state()
    rushlight.set_rng_state(state)
    try:
        yield
    finally:
        rushlight.set_rng_state(now)


# ---------------------------------------------------------------- with saved tensors that are computed again


class _KeepInputs(Function):
    """A node that is in no graph; it saves the arguments of a checkpointed function as any operation would.

    So a write into one of them is noticed, and an enclosing checkpoint does not keep them.
    """

    @staticmethod
    def forward(ctx: Any, keep: list[Any], anchor: Any, *args: Any) -> Any:
        ctx.save_for_backward(*(a for a in args if isinstance(a, rushlight.Tensor)))
        places = [isinstance(a, rushlight.Tensor) for a in args]
        others = [None if p else a for p, a in zip(places, args, strict=True)]

        def restore() -> list[Any]:
            tensors = iter(ctx.saved_tensors)
            return [next(tensors) if p else a for p, a in zip(places, others, strict=True)]

        keep.append(restore)
        return rushlight.empty(0)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise AssertionError("the node that keeps the inputs of a checkpoint is in no graph")


class _Holder:
    """Stands in the graph for a tensor that is not kept."""

    __slots__ = ("__weakref__", "index")

    def __init__(self, index: int) -> None:
        self.index = index


class _Stop(BaseException):
    """Everything that is needed has been computed again."""


def _shape_dtype_device(tensor: Any) -> dict[str, Any]:
    return {"shape": tensor.shape, "dtype": tensor.dtype, "device": tensor.device}


_DETERMINISM_CHECKS: dict[str, Callable[[Any], Any]] = {"default": _shape_dtype_device, "none": lambda tensor: None}


class _Frame:
    """One call of a checkpointed function: what it takes to run it again, and what came of that."""

    def __init__(self, rerun: Callable[[], Any], early_stop: bool, describe: Callable[[Any], Any]) -> None:
        self.rerun = rerun
        self.early_stop = early_stop
        self.describe = describe
        self.descriptions: list[Any] = []
        self.holders: list[weakref.ref[_Holder]] = []
        # Values of the backward numbered `run`. They go with the places in the graph that they are for.
        self.values: weakref.WeakKeyDictionary[_Holder, Any] = weakref.WeakKeyDictionary()
        self.run = 0
        self.lock = threading.RLock()
        self.traces: list[_Trace] = []

    def pack(self, tensor: Any) -> _Holder:
        holder = _Holder(len(self.holders))
        self.holders.append(weakref.ref(holder))
        self.descriptions.append(self.describe(tensor))
        return holder

    def unpack(self, holder: _Holder) -> Any:
        with self.lock:
            group = GraphExecGroup._current_group()
            run = id(group) if group else _C._current_run()
            if self.run != run or holder not in self.values:
                self.recompute()
                self.run = run
                # What is called must not keep what is done with.
                (group._at_end if group else _C._at_end_of_run)(_forget_later(weakref.ref(self)))
            value = self.values[holder]
            if run == 0:
                self.forget()
            return value

    def forget(self) -> None:
        self.values = weakref.WeakKeyDictionary()
        self.run = 0

    def recompute(self) -> None:
        self.forget()
        values = self.values
        count = 0

        def pack(tensor: Any) -> Any:
            nonlocal count
            index = count
            count += 1
            if index >= len(self.holders):
                raise self.error("more tensors were saved in the recomputation than in forward", len(self.holders))
            holder = self.holders[index]()
            tensor = tensor.detach()
            if holder is not None:
                was, now = self.descriptions[index], self.describe(tensor)
                if was != now:
                    raise self.error(
                        f"the tensor saved at position {index} is another one in the recomputation", was, now
                    )
                values[holder] = tensor
            if self.early_stop and count == len(self.holders):
                raise _Stop
            return tensor  # for a backward inside the function

        try:
            with saved_tensors_hooks(pack, lambda tensor: tensor), rushlight.enable_grad():
                self.rerun()
        except _Stop:
            pass
        if count != len(self.holders):
            raise self.error(
                "a different number of tensors was saved in forward and in the recomputation", len(self.holders), count
            )

    def error(self, what: str, expected: Any, got: Any = None) -> CheckpointError:
        text = f"checkpoint: {what}; expected {expected}" + ("" if got is None else f", got {got}")
        text += (
            ". The function must do the same both times: it may not depend on state that changes in between, such as "
            "counters, random numbers that preserve_rng_state does not cover, or the mode of a module"
        )
        if not self.traces:
            return CheckpointError(text + ". With debug=True this error lists what was done each time.")
        for title, trace in zip(("forward", "recomputation"), self.traces, strict=False):
            text += f"\n\nOperations of the {title}:\n" + ("\n".join(trace.lines) or "none")
        return CheckpointError(text)


def _forget_later(frame: weakref.ref[_Frame]) -> Callable[[], None]:
    def forget() -> None:
        alive = frame()
        if alive is not None:
            alive.forget()

    return forget


class GraphExecGroup:
    """Context in which calls of backward, over parts of the graph that do not overlap, compute each part again once.

    It is for ``use_reentrant=False`` and does nothing otherwise.

    Raises:
        RuntimeError: a group is entered inside another.

    Example::

        >>> from rushlight.utils.checkpoint import GraphExecGroup, checkpoint
        >>> x = rushlight.ones(2, requires_grad=True)
        >>> a, b = checkpoint(lambda x: (x.exp(), x.sin()), x, use_reentrant=False)
        >>> with GraphExecGroup():
        ...     a.sum().backward()
        ...     b.sum().backward()
    """

    _current = threading.local()

    def __enter__(self) -> GraphExecGroup:
        if self._current_group() is not None:
            raise RuntimeError("GraphExecGroup: groups cannot be nested; expected to be outside of any")
        self._ends: list[Callable[[], None]] = []
        self._current.group = self
        return self

    def __exit__(self, *args: object) -> None:
        self._current.group = None
        for end in self._ends:
            end()

    def _at_end(self, end: Callable[[], None]) -> None:
        self._ends.append(end)

    @classmethod
    def _current_group(cls) -> GraphExecGroup | None:
        return getattr(cls._current, "group", None)


class _Trace(TorchFunctionMode):
    """Writes down the operations that run inside, with their lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__name__", "") == "__get__":  # of an attribute
            return func(*args, **(kwargs or {}))
        frame: Any = sys._getframe(1)
        while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "rushlight":
            frame = frame.f_back
        line = f"  {getattr(func, '__name__', func)}"
        shapes = ", ".join(str(list(a.shape)) for a in args if isinstance(a, rushlight.Tensor))
        if shapes:
            line += f" of {shapes}"
        if frame is not None:
            line += f" at {frame.f_code.co_filename}:{frame.f_lineno}, in {frame.f_code.co_name}"
        self.lines.append(line)
        return func(*args, **(kwargs or {}))


# ---------------------------------------------------------------- some results kept, the others computed again


class CheckpointPolicy(enum.Enum):
    """What selective checkpointing does with the result of an operation.

    There is no difference between MUST and PREFER outside a compiler, and the host is where results are anyhow, so
    ``..._SAVE`` and ``..._CPU_OFFLOAD`` keep it, ``..._RECOMPUTE`` computes it again.
    """

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


_RECOMPUTED = (CheckpointPolicy.MUST_RECOMPUTE, CheckpointPolicy.PREFER_RECOMPUTE)

SAC_IGNORED_OPS: set[Any] = set()
"""Operations that no policy is asked about; users may add to them. Views and writes are not asked about in any case."""


class SelectiveCheckpointContext:
    """What a policy is told besides the operation: ``is_recompute``, and the operation's result."""

    def __init__(self, *, is_recompute: bool, op_output: Any = None) -> None:
        self.is_recompute = is_recompute
        self.op_output = op_output


def _each_tensor(result: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(result, rushlight.Tensor):
        return change(result)
    if isinstance(result, (tuple, list)):
        return tuple(_each_tensor(r, change) for r in result)
    return result


class _Kept:
    """The result of an operation, to be brought back in place of running it."""

    def __init__(self, result: Any, random: bool) -> None:
        # Detached: the result itself is about to get a node, which would keep what is kept here.
        self.result = _each_tensor(result, lambda t: t.detach())
        self.versions = self._versions()
        self.rng_state = rushlight.get_rng_state() if random else None

    def _versions(self) -> list[int]:
        versions: list[int] = []
        _each_tensor(self.result, lambda t: versions.append(t._version))
        return versions

    def bring_back(self, name: str, may_be_written: bool) -> Any:
        if not may_be_written and self.versions != self._versions():
            raise RuntimeError(
                f"checkpoint: the result of {name} was kept and has been written in place since, so it is no longer "
                f"what the recomputation needs; expected version {self.versions}, got {self._versions()}. Clone it "
                "before writing, compute it again, or pass allow_cache_entry_mutation=True"
            )
        if self.rng_state is not None:
            rushlight.set_rng_state(self.rng_state)  # of after the draw, which others follow
        return _each_tensor(self.result, lambda t: t.detach())


class _Source:
    """A context that is asked for the results of operations. Those inside run under the context around this one."""

    def __enter__(self) -> _Source:
        self.outer = _C._set_source(self._run)
        return self

    def __exit__(self, *args: object) -> None:
        _C._set_source(self.outer)

    def _run(self, index: int, module: str, name: str, overload: str, inplace: bool, arguments: Any) -> Any:
        from rushlight.ops._lookup import record

        inner = _C._set_source(self.outer)
        try:
            return self.results(
                record(module, name, overload), lambda: _C._run_operation(index, False, arguments), arguments
            )
        finally:
            _C._set_source(inner)

    def results(self, record: Any, compute: Callable[[], Any], arguments: Any) -> Any:
        raise NotImplementedError


class _Keeping(_Source):
    """The first run: what ran, in order, with the results that the policy keeps."""

    def __init__(self, policy: Callable[..., Any], ran: list[tuple[str, _Kept | None]]) -> None:
        self.policy = policy
        self.ran = ran

    def results(self, record: Any, compute: Callable[[], Any], arguments: Any) -> Any:
        from rushlight.ops import aten

        result = compute()
        op, positional, keyword = aten.of_call(record, arguments)
        kept = None
        if op not in SAC_IGNORED_OPS:
            context = SelectiveCheckpointContext(is_recompute=False, op_output=result)
            policy = self.policy(context, op, *positional, **keyword)
            if isinstance(policy, bool):
                policy = CheckpointPolicy.MUST_SAVE if policy else CheckpointPolicy.PREFER_RECOMPUTE
            if not isinstance(policy, CheckpointPolicy):
                raise TypeError(
                    "create_selective_checkpoint_contexts: expected the policy to return a CheckpointPolicy, got "
                    f"{policy!r} for {op}"
                )
            if policy not in _RECOMPUTED:
                kept = _Kept(result, record.random)
        self.ran.append((record.full_name, kept))
        return result


class _BringingBack(_Source):
    """The second run: the same operations in the same order, without computing those whose results were kept."""

    def __init__(self, ran: list[tuple[str, _Kept | None]], may_be_written: bool) -> None:
        self.ran = ran
        self.may_be_written = may_be_written

    def __enter__(self) -> _Source:
        self.position = 0
        return super().__enter__()

    def results(self, record: Any, compute: Callable[[], Any], arguments: Any) -> Any:
        was, kept = self.ran[self.position] if self.position < len(self.ran) else ("nothing", None)
        if was != record.full_name:
            raise CheckpointError(
                f"checkpoint: operation {self.position} is another one in the recomputation; expected {was}, got "
                f"{record.full_name}. The function must do the same both times"
            )
        self.position += 1
        return kept.bring_back(record.full_name, self.may_be_written) if kept else compute()


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Any, allow_cache_entry_mutation: bool = False
) -> tuple[Any, Any]:
    """The two contexts of a `checkpoint` that keeps the results of some operations and computes the others again.

    Operations have the names of PyTorch's dispatcher, `rushlight.ops.aten`: a linear layer is ``addmm`` or, without
    bias, ``mm``; any convolution is ``convolution``; products of matrices are ``mm`` or ``bmm``. Views, in-place writes
    and reads as Python numbers always run again; no policy is asked about them.

    Args:
        policy_fn_or_list: a function of (`SelectiveCheckpointContext`, operation, arguments...) that returns a
            `CheckpointPolicy`, or a list of the operations to keep the results of.
        allow_cache_entry_mutation: whether a kept result that was written in place is brought back as it is now.

    Returns:
        A pair of context managers: ``context_fn=functools.partial(create_selective_checkpoint_contexts, policy)``.

    Raises:
        ValueError: an element of the list is no overload of an operation.
        TypeError: neither a function nor a list; or, in forward, the policy returns something else.
        RuntimeError: in backward, a result that was kept has been written in place.
        CheckpointError: in backward, other operations run than the first time.

    Example::

        >>> import functools
        >>> from rushlight.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts
        >>> keep_products = functools.partial(create_selective_checkpoint_contexts, [rushlight.ops.aten.mm.default])
        >>> x = rushlight.ones(2, 2, requires_grad=True)
        >>> y = checkpoint(lambda x: (x @ x).sigmoid() * x, x, use_reentrant=False, context_fn=keep_products)
        >>> y.sum().backward()
    """
    from rushlight.ops.aten import OpOverload, OpOverloadPacket

    if isinstance(policy_fn_or_list, list):
        for op in policy_fn_or_list:
            if not isinstance(op, OpOverload):
                hint = f"; write {op}.default" if isinstance(op, OpOverloadPacket) else ""
                raise ValueError(
                    f"create_selective_checkpoint_contexts: expected overloads of operations, got {op!r}{hint}"
                )
        keep = set(policy_fn_or_list)

        def policy(context: Any, op: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
            return CheckpointPolicy.MUST_SAVE if op in keep else CheckpointPolicy.PREFER_RECOMPUTE
    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise TypeError(
            "create_selective_checkpoint_contexts: expected a policy function or a list of operations, got "
            f"{type(policy_fn_or_list).__name__}"
        )
    ran: list[tuple[str, _Kept | None]] = []
    return _Keeping(policy, ran), _BringingBack(ran, allow_cache_entry_mutation)


def _checkpoint_saved(
    function: Callable[..., Any],
    preserve_rng_state: bool,
    context_fn: Callable[[], tuple[Any, Any]],
    determinism_check: str,
    debug: bool,
    early_stop: bool,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    if determinism_check not in _DETERMINISM_CHECKS:
        raise ValueError(
            f"checkpoint: expected determinism_check to be one of {list(_DETERMINISM_CHECKS)}, got "
            f"{determinism_check!r}"
        )
    if debug and context_fn is not noop_context_fn:
        raise ValueError("checkpoint: debug=True needs the default context_fn; expected noop_context_fn")
    traces: list[_Trace] = [_Trace(), _Trace()] if debug else []
    forward_context, recompute_context = traces if traces else context_fn()
    if not rushlight.is_grad_enabled():
        with forward_context:
            return function(*args, **kwargs)
    state = rushlight.get_rng_state() if preserve_rng_state else None
    keep: list[Callable[[], list[Any]]] = []
    names = tuple(kwargs)
    _KeepInputs.apply(keep, rushlight.empty(0, requires_grad=True), *args, *kwargs.values())
    restore = keep[0]

    def rerun() -> None:
        values = restore()
        positional = values[: len(values) - len(names)]
        with _random_state(state), recompute_context:
            function(*positional, **dict(zip(names, values[len(positional) :], strict=True)))

    if _early_stop is not None:
        early_stop = _early_stop
    frame = _Frame(rerun, early_stop, _DETERMINISM_CHECKS[determinism_check])
    frame.traces = traces
    with saved_tensors_hooks(frame.pack, frame.unpack), forward_context:
        return function(*args, **kwargs)


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], tuple[Any, Any]] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """Calls a function without keeping what it saves for backward; backward calls it a second time.

    Loss and gradients are the same to the bit, with dropout too.

    Args:
        function: what to run; it must do the same when it is run again with the same arguments.
        args: its arguments. Tensors inside other containers are kept as they are.
        use_reentrant: False, which is recommended: every tensor that would be saved is computed again when backward
            first needs one. True: backward runs a backward of its own through the function; the arguments must have a
            tensor that requires grad, and neither ``grad()`` nor ``backward(inputs=)`` can be used.
        preserve_rng_state: whether the second call sees the random numbers of the first. Default: True.
        context_fn: returns two context managers, for the first and the second call.
        determinism_check: ``"default"`` compares shapes, dtypes and devices of what is computed again; ``"none"``
            does not.
        debug: whether an error lists the operations of both calls.
        early_stop: whether the second call ends as soon as the last needed tensor is there.
        kwargs: keyword arguments of the function, with ``use_reentrant=False`` only.

    Raises:
        CheckpointError: in backward, when the second call saves other tensors than the first.
        ValueError: an option that does not go with ``use_reentrant=True``.

    Example::

        >>> from rushlight.utils.checkpoint import checkpoint
        >>> x = rushlight.ones(2, requires_grad=True)
        >>> checkpoint(lambda x: x.exp().log(), x, use_reentrant=False).sum().backward()
        >>> x.grad
        tensor([1., 1.])
    """
    if use_reentrant is None:
        warnings.warn(
            "checkpoint: use_reentrant was not given and is taken for True; pass use_reentrant=False, which is "
            "recommended, or True",
            stacklevel=2,
        )
        use_reentrant = True
    preserve_rng_state = kwargs.pop("preserve_rng_state", True)
    if _debug is not None:
        debug = _debug
    if not use_reentrant:
        return _checkpoint_saved(
            function, preserve_rng_state, context_fn, determinism_check, debug, early_stop, args, kwargs
        )
    if kwargs:
        raise ValueError(
            f"checkpoint: use_reentrant=True takes no keyword arguments for the function; expected none, got "
            f"{', '.join(kwargs)}"
        )
    if context_fn is not noop_context_fn or debug:
        raise ValueError("checkpoint: context_fn and debug need use_reentrant=False; expected use_reentrant=False")
    return CheckpointFunction.apply(function, preserve_rng_state, *args)


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Runs functions one after another, in segments that are checkpointed each, except for the last.

    Args:
        functions: a ``Sequential``, or a sequence of modules or functions.
        segments: into how many parts to cut it, each of the same number of functions.
        input: what the first function gets.
        use_reentrant: as for `checkpoint`.
        preserve_rng_state: as for `checkpoint`.

    Raises:
        ValueError: there are more segments than functions, or an option is unknown.

    Example::

        >>> net = rushlight.nn.Sequential(*[rushlight.nn.Linear(4, 4) for _ in range(6)])
        >>> y = rushlight.utils.checkpoint.checkpoint_sequential(net, 3, rushlight.ones(2, 4), use_reentrant=False)
    """
    if use_reentrant is None:
        warnings.warn(
            "checkpoint_sequential: use_reentrant was not given and is taken for True; pass use_reentrant=False, "
            "which is recommended, or True",
            stacklevel=2,
        )
        use_reentrant = True
    preserve_rng_state = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError(f"checkpoint_sequential: expected no other options, got {', '.join(kwargs)}")
    if isinstance(functions, rushlight.nn.Sequential):
        functions = list(functions.children())
    functions = list(functions)
    size = len(functions) // segments if segments > 0 else 0
    if size == 0:
        raise ValueError(f"checkpoint_sequential: expected 1 to {len(functions)} segments, got {segments}")

    def run(first: int, last: int) -> Callable[[Any], Any]:
        def forward(value: Any) -> Any:
            for f in functions[first:last]:
                value = f(value)
            return value

        return forward

    start = size * (segments - 1)
    for first in range(0, start, size):
        input = checkpoint(
            run(first, first + size), input, use_reentrant=use_reentrant, preserve_rng_state=preserve_rng_state
        )
    return run(start, len(functions))(input)
