"""The single hook through which classes and modes see operations: ``__torch_function__``.

A class with a ``__torch_function__`` class method is asked instead of the operation whenever one of its instances is an
argument. A mode (`TorchFunctionMode`) is asked for every operation while it is active.
"""

from __future__ import annotations

import functools

from . import _C
from ._C import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

_modes: list[Any] = []


def _disabled_torch_function_impl(func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    with DisableTorchFunctionSubclass():
        return func(*args, **(kwargs or {}))


_C._set_disabled_torch_function(_disabled_torch_function_impl)


class DisableTorchFunctionSubclass:
    """Inside, operations run as if no argument had an override and no mode were active."""

    def __enter__(self) -> None:
        self._old = _C._swap_overrides_disabled(True)

    def __exit__(self, *_: object) -> None:
        _C._swap_overrides_disabled(self._old)


DisableTorchFunction = DisableTorchFunctionSubclass


def _handler(value: Any) -> Any:
    """The override of one argument, or None."""
    kind = type(value)
    if kind is Tensor:
        return None
    found = getattr(kind, "__torch_function__", None)
    return None if found is None or getattr(found, "__func__", found) is _disabled_torch_function_impl else found


def _flatten(values: Iterable[Any]) -> Iterable[Any]:
    for v in values:
        if isinstance(v, (list, tuple)):
            yield from _flatten(v)
        else:
            yield v


def _overloaded(values: Iterable[Any]) -> list[Any]:
    """The arguments with overrides, one per class: subclasses before their bases, else from left to right."""
    chosen: list[Any] = []
    seen: set[type] = set()
    for v in _flatten(values):
        if type(v) in seen or _handler(v) is None:
            continue
        seen.add(type(v))
        at = next((i for i, old in enumerate(chosen) if issubclass(type(v), type(old))), len(chosen))
        chosen.insert(at, v)
    return chosen


def _dispatch(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Called by the extension for an operation with an overriding argument or under a mode."""
    overloaded = _overloaded([*args, *kwargs.values()])
    types = tuple(type(v) for v in overloaded)
    if _modes:
        mode = _modes.pop()
        old = _C._set_mode_depth(len(_modes))
        try:
            result = mode.__torch_function__(func, types, args, kwargs)
        finally:
            _modes.append(mode)
            _C._set_mode_depth(old)
        if result is not NotImplemented:
            return result
    for v in overloaded:
        result = _handler(v)(func, types, args, kwargs)
        if result is not NotImplemented:
            return result
    if not overloaded:
        with DisableTorchFunctionSubclass():
            return func(*args, **kwargs)
    name = getattr(func, "__name__", repr(func))
    raise TypeError(
        f"no implementation found for '{name}': the __torch_function__ of {', '.join(t.__name__ for t in types)} "
        f"all returned NotImplemented"
    )


def _convert(result: Any, cls: type) -> Any:
    if cls is Tensor:
        return result
    if isinstance(result, Tensor) and not isinstance(result, cls):
        return result.as_subclass(cls)
    if isinstance(result, (tuple, list)):
        converted = [_convert(r, cls) for r in result]
        make = getattr(type(result), "_make", type(result))  # a named tuple takes its fields one by one
        return make(converted)
    return result


def _default_torch_function(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """Tensor's own override: run the operation and give the results the subclass."""
    if not all(issubclass(cls, t) for t in types):
        return NotImplemented
    with DisableTorchFunctionSubclass():
        result = func(*args, **(kwargs or {}))
    return result if func in _plain_results() else _convert(result, cls)


@functools.cache
def _plain_results() -> set[Any]:
    """What gives other tensors than results of the class: they stay what they are."""
    return {Tensor._base.__get__, Tensor.grad.__get__}  # type: ignore[union-attr]


class TorchFunctionMode:
    """A context in which every operation goes through ``__torch_function__`` of this object.

    Inside the method, the mode itself is off, so calling ``func(*args, **kwargs)`` runs the operation.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError(
            f"{type(self).__name__}: a mode defines __torch_function__(self, func, types, args, kwargs)"
        )

    def __enter__(self) -> Any:
        _modes.append(self)
        _C._set_mode_depth(len(_modes))
        return self

    def __exit__(self, *_: object) -> None:
        _modes.remove(self)
        _C._set_mode_depth(len(_modes))


def has_torch_function(values: Iterable[Any]) -> bool:
    """Whether some argument overrides operations, or a mode is active."""
    return bool(_modes) or any(_handler(v) is not None for v in values)


def has_torch_function_unary(value: Any) -> bool:
    """has_torch_function of one argument."""
    return has_torch_function((value,))


def has_torch_function_variadic(*values: Any) -> bool:
    """has_torch_function of several arguments."""
    return has_torch_function(values)


def handle_torch_function(func: Callable[..., Any], relevant: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
    """Asks the overrides of the relevant arguments for a function written in Python."""
    del relevant
    return _dispatch(func, args, kwargs)


def is_tensor_like(value: Any) -> bool:
    """A tensor, or an object that overrides operations."""
    return isinstance(value, Tensor) or hasattr(type(value), "__torch_function__")


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[[Any], Any]:
    """Decorates a Python function so that overrides of the arguments `dispatcher` names are asked first."""

    def decorate(func: Any) -> Any:
        @functools.wraps(func)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return func(*args, **kwargs)

        return wrapped

    return decorate


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that changes nothing: every operation runs as it is."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def get_overridable_functions() -> dict[Any, list[Any]]:
    """The functions and methods that overrides see, by the namespace they are in."""
    import rushlight

    spaces = (rushlight, rushlight.nn.functional, rushlight.linalg, rushlight.special, Tensor)
    kinds = (_C.Operation, type(vars(Tensor)["add"]))
    found: dict[Any, list[Any]] = {}
    for space in spaces:
        members = (getattr(space, name, None) for name in sorted(dir(space)))
        found[space] = [m for m in members if isinstance(m, kinds)]
    return found


def get_ignored_functions() -> set[Any]:
    """Functions of the package that overrides do not see, since they take no tensor or ask about one."""
    import rushlight

    return {
        value
        for name in dir(rushlight)
        if not name.startswith("_")
        and callable(value := getattr(rushlight, name, None))
        and not isinstance(value, (type, _C.Operation))
    }


def get_default_nowrap_functions() -> set[Any]:
    """Functions whose results keep their class when a subclass of Tensor calls them: the gradient's attribute."""
    return {vars(Tensor)["grad"].__get__}


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Whether a function is a method of Tensor, or reads an attribute of one."""
    return any(func is v or func == getattr(v, "__get__", None) for v in vars(Tensor).values())


def resolve_name(f: Callable[..., Any]) -> str | None:
    """The full name of an overridable function, such as 'rushlight.add'; None for others."""
    for space, functions in get_overridable_functions().items():
        if any(f is g for g in functions):
            base = "rushlight.Tensor" if space is Tensor else space.__name__
            return f"{base}.{f.__name__}"
    return None
