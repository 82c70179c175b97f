"""The profiler, with the options of one continuous run; `rushlight.profiler` has schedules besides."""

from __future__ import annotations

import functools

from rushlight import _C

from .profiler_util import EventList, FunctionEvent, FunctionEventAvg, _events

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Callable
    from typing import Any

__all__ = ["EventList", "FunctionEvent", "FunctionEventAvg", "profile", "record_function"]


class record_function:
    """A named range in the profile: a context manager and a decorator. It costs next to nothing without a profiler.

    Args:
        name: the name of the range.
        args: text kept with it.

    Example::

        >>> with rushlight.autograd.profiler.profile() as p:
        ...     with rushlight.autograd.profiler.record_function("both"):
        ...         y = rushlight.ones(2).exp().log()
        >>> [e.name for e in p.function_events]
        ['both', 'aten::ones', 'aten::exp', 'aten::log']
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name
        self.args = args
        self._open: list[int] = []

    def __enter__(self) -> record_function:
        self._open.append(_C._profiler_push(self.name))
        return self

    def __exit__(self, *args: object) -> None:
        _C._profiler_pop(self._open.pop())

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name, self.args):
                return function(*args, **kwargs)

        return inside


class profile:
    """Context that notes every operation, backward node and `record_function` range with its time.

    Args:
        enabled: False makes it do nothing.
        record_shapes: whether shapes of arguments are kept.
        with_flops: accepted; operations are not counted.
        profile_memory: whether each event gets the bytes that the allocator handed out less those it took back.
        with_stack: whether the lines that ran an operation are kept.
        with_modules: accepted; there is no TorchScript whose modules it could name.

    Example::

        >>> x = rushlight.ones(3, requires_grad=True)
        >>> with rushlight.autograd.profiler.profile() as p:
        ...     (x * x).sum().backward()
        >>> {"aten::mul", "aten::sum", "MulBackward0", "SumBackward0"} <= {e.key for e in p.key_averages()}
        True
        >>> text = p.key_averages().table(sort_by="self_cpu_time_total")
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cpu: bool = True,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cuda: bool = False,
        experimental_config: Any = None,
        acc_events: bool = False,
        custom_trace_id_callback: Any = None,
    ) -> None:
        if use_device not in (None, "cpu") or use_cuda:
            raise ValueError(f"profile: expected the device cpu, got {use_device or 'cuda'}")
        self.enabled = enabled
        self.record_shapes = record_shapes
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.function_events: EventList | None = None
        self.entered = False

    def __enter__(self) -> profile:
        if not self.enabled:
            return self
        if self.entered:
            raise RuntimeError("profile: a profiler cannot be entered a second time; make another")
        self.entered = True
        self._origin = _C._profiler_start(self.record_shapes, self.profile_memory, self.with_stack)
        return self

    def __exit__(self, *args: object) -> None:
        if self.enabled:
            _, raw = _C._profiler_stop()
            self.function_events = EventList(_events(raw, self._origin), profile_memory=self.profile_memory)

    def _finished(self) -> EventList:
        if self.function_events is None:
            raise RuntimeError(
                "profile: the profiler did not finish running; expected it to have been entered and left"
            )
        return self.function_events

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """The events added up by name, as `EventList.key_averages`."""
        return self._finished().key_averages(group_by_input_shape, group_by_stack_n)

    def table(self, sort_by: str | None = None, row_limit: int = 100, **options: Any) -> str:
        """A text table of all events, as `EventList.table`."""
        return self._finished().table(sort_by=sort_by, row_limit=row_limit, **options)

    def total_average(self) -> FunctionEventAvg:
        """Everything added up."""
        return self._finished().total_average()

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Writes JSON for chrome://tracing and Perfetto."""
        self._finished().export_chrome_trace(path)

    def export_stacks(self, path: str | os.PathLike[str], metric: str = "self_cpu_time_total") -> None:
        """Writes the stacks for flame graphs; needs ``with_stack``."""
        self._finished().export_stacks(path, metric)

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of everything, each part counted once."""
        return self._finished().self_cpu_time_total

    def __str__(self) -> str:
        return "<unfinished profile>" if self.function_events is None else str(self.function_events)

    __repr__ = __str__
