"""The graph of recorded operations: its nodes, edges and hooks."""

from __future__ import annotations

import contextlib
import weakref
from collections import namedtuple

from rushlight import _C
from rushlight._C import Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Sequence
    from typing import Any

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]

GradientEdge = namedtuple("GradientEdge", ["node", "output_nr", "ownership_token"], defaults=[None])
GradientEdge.__doc__ = "A place in the graph that gradients flow through: a node and the number of one of its outputs."

_InputMetadata = namedtuple("_InputMetadata", ["shape", "dtype", "device"])


def get_gradient_edge(tensor: Any) -> GradientEdge:
    """The edge through which the gradient of this tensor flows; ``grad(inputs=)`` and ``backward`` take it in its
    place.

    Raises:
        RuntimeError: the tensor does not require grad.
    """
    node, output_nr = _C._gradient_edge(tensor)
    return GradientEdge(node, output_nr)


def increment_version(tensor: Any) -> None:
    """Says that the memory of a tensor (or of several) was written without the framework's knowledge."""
    for t in (tensor,) if isinstance(tensor, _C.Tensor) else tensor:
        _C._increment_version(t)


class SavedTensor:
    """What a node saved, as it is kept: ``node._raw_saved_self``, or an element of ``node._raw_saved_tensors``.

    Raises:
        RuntimeError: it is made by a user.

    Example::

        >>> x = rushlight.ones(2, requires_grad=True)
        >>> y = x * x
        >>> y.grad_fn._raw_saved_self.register_hooks(lambda t: t.tolist(), rushlight.tensor)
        >>> y.grad_fn._raw_saved_self.data, y.grad_fn._saved_self
        ([1.0, 1.0], tensor([1., 1.], grad_fn=<AccumulateGrad>))
    """

    _node: Any
    _position: int

    def __init__(self) -> None:
        raise RuntimeError("SavedTensor: expected to come from a node; it cannot be made from Python")

    def register_hooks(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        """Packs the tensor now; ``unpack_hook`` gives it back when it is used.

        Raises:
            RuntimeError: there are hooks already, or the tensor was freed or written in place.
            TypeError: a hook cannot be called.
        """
        if not callable(pack_hook) or not callable(unpack_hook):
            raise TypeError(f"register_hooks: expected two functions, got {pack_hook!r} and {unpack_hook!r}")
        self._node._saved_hooks(self._position, pack_hook, unpack_hook)

    def unpack(self) -> Any:
        """The tensor, with its place in the graph.

        Raises:
            RuntimeError: it was freed, or written in place.
        """
        return self._node._saved_unpack(self._position)

    @property
    def data(self) -> Any:
        """What is kept: the tensor, what the pack hook returned, or None after it was freed."""
        return self._node._saved_packed(self._position)[0]

    @property
    def unpack_hook(self) -> Any:
        """The hook that gives the tensor back, or None."""
        return self._node._saved_packed(self._position)[1]


def _saved_tensor(node: Any, position: int) -> SavedTensor:
    saved = object.__new__(SavedTensor)
    saved._node, saved._position = node, position
    return saved


class saved_tensors_hooks:
    """Context in which every tensor that is saved for backward goes through ``pack_hook``, and ``unpack_hook`` when
    it is used.

    Example::

        >>> x = rushlight.ones(2, requires_grad=True)
        >>> with rushlight.autograd.graph.saved_tensors_hooks(lambda t: t.detach().numpy(), rushlight.from_numpy):
        ...     y = (x * x).sum()
    """

    def __init__(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        if not callable(pack_hook) or not callable(unpack_hook):
            raise TypeError("saved_tensors_hooks: expected two callables")
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        _C._push_saved_tensors_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, *args: Any) -> None:
        _C._pop_saved_tensors_hooks()


class save_on_cpu(saved_tensors_hooks):
    """Keeps tensors that are saved for backward in the memory of the host, and brings them back when they are used."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack(tensor: Any) -> tuple[Any, Any]:
            return tensor.device, tensor.detach().cpu()

        def unpack(packed: tuple[Any, Any]) -> Any:
            device, tensor = packed
            return tensor.to(device)

        super().__init__(pack, unpack)


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Generator[None, None, None]:
    """Context in which entering `saved_tensors_hooks` raises an error with this message."""
    before = _C._disable_saved_tensors_hooks(error_message)
    try:
        yield
    finally:
        _C._disable_saved_tensors_hooks(before)


class _Kept:
    """A saved tensor, or a copy of it from before it was written."""

    __slots__ = ("__weakref__", "tensor")

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor


class _AllowMutation:
    """The state of one `allow_mutation_on_saved_tensors` context."""

    def __init__(self) -> None:
        self.kept: dict[int, list[weakref.ref[_Kept]]] = {}
        self.open = True

    def pack(self, tensor: Any) -> _Kept:
        kept = _Kept(tensor.detach())
        self.kept.setdefault(tensor.untyped_storage().data_ptr(), []).append(weakref.ref(kept))
        return kept

    def unpack(self, kept: _Kept) -> Any:
        if not self.open:
            raise AssertionError(
                "allow_mutation_on_saved_tensors: backward runs outside the context in which the graph was recorded; "
                "expected it inside"
            )
        return kept.tensor

    def before_write(self, tensor: Any) -> None:
        for reference in self.kept.pop(tensor.untyped_storage().data_ptr(), ()):
            kept = reference()
            if kept is not None:
                with _C.no_grad():
                    kept.tensor = kept.tensor.clone()

    def clear(self) -> None:
        """Forgets which tensors were saved."""
        self.kept.clear()


_mutation: _AllowMutation | None = None


@contextlib.contextmanager
def allow_mutation_on_saved_tensors() -> Generator[_AllowMutation, None, None]:
    """Context in which tensors that are saved for backward may be written: they are copied right before.

    Forward and backward must both be inside.

    Raises:
        RuntimeError: the context is entered inside itself.

    Example::

        >>> with rushlight.autograd.graph.allow_mutation_on_saved_tensors():
        ...     x = rushlight.ones(2, requires_grad=True)
        ...     y = x.exp()
        ...     z = y.sin()
        ...     _ = y.zero_()
        ...     z.sum().backward()
    """
    global _mutation
    if _mutation is not None:
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    state = _mutation = _AllowMutation()
    _C._watch_writes(state.before_write)
    try:
        with saved_tensors_hooks(state.pack, state.unpack):
            yield state
    finally:
        _C._watch_writes(None)
        state.open = False
        state.clear()
        _mutation = None


class _MultiHandle:
    """Removes several hooks together."""

    def __init__(self, handles: Iterable[Any]) -> None:
        self.handles = tuple(handles)

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()

    def __enter__(self) -> _MultiHandle:
        return self

    def __exit__(self, *args: Any) -> None:
        self.remove()


def register_multi_grad_hook(tensors: Sequence[Any], fn: Callable[..., Any], *, mode: str = "all") -> Any:
    """Calls a hook when the gradients of several tensors are known.

    Args:
        tensors: tensors that require grad.
        fn: with ``mode="all"``, ``fn(grads)`` is called once all gradients of a backward are there (None for a
            tensor that the backward does not reach); with ``mode="any"``, ``fn(grad)`` at the first of them.
        mode: ``"all"`` or ``"any"``.

    Returns:
        A handle whose ``remove()`` takes the hook away.
    """
    if mode not in ("all", "any"):
        raise ValueError(f"register_multi_grad_hook: expected mode 'all' or 'any', got {mode!r}")
    key = object()  # what the hooks know of a backward is forgotten with it
    if mode == "any":

        def on_any(grad: Any) -> None:
            notes = _C._run_notes()
            if key not in notes:
                notes[key] = True
                fn(grad)

        return _MultiHandle(t.register_hook(on_any) for t in tensors)

    # The hooks hang on the nodes, so they only know the names of these, and a leaf, whose node may come later, weakly.
    def name_of(tensor: Any) -> Any:
        get_gradient_edge(tensor)  # refuses what has no place in a graph
        return weakref.ref(tensor) if tensor.is_leaf else _C._node_name(tensor)

    names = [name_of(t) for t in tensors]

    def will_run(name: Any) -> bool:
        if isinstance(name, weakref.ref):
            leaf = name()
            name = None if leaf is None else _C._node_name(leaf)
        return name is not None and _C._will_run(name)

    def on_grad(index: int, grad: Any) -> None:
        notes = _C._run_notes()
        if key not in notes:
            notes[key] = [None] * len(names), sum(map(will_run, names))
        grads, expected = notes[key]
        grads[index] = grad
        notes[key] = grads, expected - 1
        if expected == 1:
            fn(grads)

    return _MultiHandle(t.register_hook(lambda grad, i=i: on_grad(i, grad)) for i, t in enumerate(tensors))
