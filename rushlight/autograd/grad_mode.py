"""Switches for recording: context managers that also decorate functions and generators."""

from __future__ import annotations

import functools
import inspect
import warnings

from rushlight._C import (
    enable_grad,
    inference_mode,
    no_grad,
    set_grad_enabled,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator
    from typing import Any

__all__ = ["enable_grad", "inference_mode", "no_grad", "set_grad_enabled", "set_multithreading_enabled"]


def _decorate(switch: Any, func: Callable[..., Any]) -> Callable[..., Any]:
    """The function, run each time inside a fresh context of the same kind as `switch`."""
    if inspect.isclass(func):
        warnings.warn(
            "Decorating classes is deprecated and will be disabled in future versions. You should only decorate "
            "functions or "
            "methods. Decorate the `__init__` method alone to keep what decorating the class does.",
            FutureWarning,
            stacklevel=2,
        )
        cls = func
        return lambda *args, **kwargs: _run(switch, cls, args, kwargs)
    if inspect.isgeneratorfunction(func):
        return _decorate_generator(switch, func)
    if inspect.iscoroutinefunction(func):
        return _decorate_coroutine(switch, func)
    if inspect.isasyncgenfunction(func):
        return _decorate_async_generator(switch, func)

    @functools.wraps(func)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        with switch.clone():
            return func(*args, **kwargs)

    return decorated


def _run(switch: Any, func: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    with switch.clone():
        return func(*args, **kwargs)


def _decorate_generator(switch: Any, func: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(func)
    def decorated(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        return (yield from _drive(switch, func(*args, **kwargs)))

    return decorated


def _drive(switch: Any, steps: Any) -> Generator[Any, Any, Any]:
    """Runs each step of a generator, coroutine or awaitable inside a fresh context.

    Between its steps it is suspended, and so is the mode: the caller keeps its own.
    """
    try:
        with switch.clone():
            response = steps.send(None)
        while True:
            try:
                request = yield response
            except GeneratorExit:
                with switch.clone():
                    steps.close()
                raise
            except BaseException:
                with switch.clone():
                    response = steps.throw(*_current_exception())
            else:
                with switch.clone():
                    response = steps.send(request)
    except StopIteration as stop:
        return stop.value


class _Awaitable:
    def __init__(self, switch: Any, steps: Any) -> None:
        self.switch, self.steps = switch, steps

    def __await__(self) -> Generator[Any, Any, Any]:
        return _drive(self.switch, self.steps)


def _decorate_coroutine(switch: Any, func: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(func)
    async def decorated(*args: Any, **kwargs: Any) -> Any:
        return await _Awaitable(switch, func(*args, **kwargs))

    return decorated


def _decorate_async_generator(switch: Any, func: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(func)
    async def decorated(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        generator = func(*args, **kwargs)
        request = None
        try:
            while True:
                try:
                    response = await _Awaitable(switch, generator.asend(request))
                except StopAsyncIteration:
                    return
                request = yield response
        finally:
            await _Awaitable(switch, generator.aclose())

    return decorated


def _current_exception() -> tuple[BaseException]:
    import sys

    error = sys.exc_info()[1]
    assert error is not None
    return (error,)


class set_multithreading_enabled:
    """Accepted for compatibility: a backward runs in the thread that calls it, whatever the mode."""

    def __init__(self, mode: bool) -> None:
        self.mode = mode

    def __enter__(self) -> None:
        pass

    def __exit__(self, *args: Any) -> None:
        pass

    def clone(self) -> set_multithreading_enabled:
        return set_multithreading_enabled(self.mode)

    def __call__(self, func: Callable[..., Any]) -> Callable[..., Any]:
        return _decorate(self, func)
