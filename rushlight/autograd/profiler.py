"""The profiler, with the options of one continuous run; `rushlight.profiler` has schedules besides."""

from __future__ import annotations

import functools
import threading

from rushlight import _C

from .profiler_util import EventList, FunctionEvent, FunctionEventAvg, _events

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Callable
    from typing import Any

__all__ = ["EventList", "FunctionEvent", "FunctionEventAvg", "emit_itt", "emit_nvtx", "profile", "record_function"]


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


class _ModuleRanges:
    """Notes the calls of modules, in every thread."""

    def __init__(self) -> None:
        from rushlight.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

        self._open = threading.local()
        self._handles = (
            register_module_forward_pre_hook(self._begin),
            register_module_forward_hook(self._end, always_call=True),
        )

    def _begin(self, module: Any, inputs: Any) -> None:
        calls = self._open.__dict__.setdefault("calls", [])
        calls.append(_C._profiler_push(f"nn.Module: {type(module).__name__}", True))

    def _end(self, module: Any, inputs: Any, output: Any) -> None:
        if calls := self._open.__dict__.get("calls"):
            _C._profiler_pop(calls.pop())

    def remove(self) -> None:
        for handle in self._handles:
            handle.remove()


class emit_itt:
    """Context that would mark operations for Intel's VTune. There is no collector here, so nothing is emitted.

    Raises:
        RuntimeError: it is entered a second time.
    """

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled = enabled
        self.record_shapes = record_shapes
        self.entered = False

    def __enter__(self) -> emit_itt | None:
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError(f"{type(self).__name__}: the context manager is not reentrant; make another")
        self.entered = True
        return self

    def __exit__(self, *args: object) -> None:
        pass


class emit_nvtx(emit_itt):
    """Context that would mark operations for NVIDIA's profilers.

    Raises:
        AssertionError: there is no CUDA.
    """

    def __enter__(self) -> emit_itt | None:
        if self.enabled:
            raise AssertionError("emit_nvtx: CUDA is not available; expected a build with CUDA")
        return None


class profile:
    """Context that notes every operation, backward node and `record_function` range with its time.

    Args:
        enabled: False makes it do nothing.
        record_shapes: whether shapes of arguments are kept.
        with_flops: whether floating-point operations are counted: of products, convolutions and elementwise arithmetic.
        profile_memory: whether each event gets the bytes that the allocator handed out less those it took back.
        with_stack: whether the lines that ran an operation are kept.
        with_modules: whether calls of modules are kept, with what runs inside them.

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
        self.with_flops = with_flops
        self.with_modules = with_modules
        self.function_events: EventList | None = None
        self.entered = False

    def __enter__(self) -> profile:
        if not self.enabled:
            return self
        if self.entered:
            raise RuntimeError("profile: a profiler cannot be entered a second time; make another")
        self.entered = True
        self._modules = _ModuleRanges() if self.with_modules else None
        self._origin = _C._profiler_start(self.record_shapes or self.with_flops, self.profile_memory, self.with_stack)
        return self

    def __exit__(self, *args: object) -> None:
        if self.enabled:
            _, raw = _C._profiler_stop()
            if self._modules is not None:
                self._modules.remove()
            events = _events(raw, self._origin, self.with_flops)
            if not self.record_shapes:
                for event in events:
                    event.input_shapes = None
            self.function_events = EventList(events, profile_memory=self.profile_memory)

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
