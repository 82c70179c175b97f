"""Where the time and the memory of a program go.

``profile`` notes every operation, backward node and ``record_function`` range; it costs nothing while it is off.
"""

from __future__ import annotations

import enum
import json
import os
import time

from .autograd.profiler import profile as _Run
from .autograd.profiler import record_function
from .autograd.profiler_util import EventList, _write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

__all__ = [
    "ProfilerAction",
    "ProfilerActivity",
    "kineto_available",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]


class ProfilerActivity(enum.Enum):
    """What is watched: the host only."""

    CPU = 0
    CUDA = 1


class ProfilerAction(enum.Enum):
    """What a profiler does during one step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


_RECORDING = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


def supported_activities() -> set[ProfilerActivity]:
    """What this build can watch."""
    return {ProfilerActivity.CPU}


def kineto_available() -> bool:
    """False: the profiler is the package's own."""
    return False


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], ProfilerAction]:
    """What to do in which step, for `profile`: wait, warm up and record, again and again.

    Args:
        wait: steps of a cycle in which nothing is done.
        warmup: steps whose events are thrown away.
        active: steps that are recorded.
        repeat: how many cycles; 0 for no end.
        skip_first: steps before the first cycle.
        skip_first_wait: nonzero leaves out the wait of the first cycle.

    Example::

        >>> plan = rushlight.profiler.schedule(wait=1, warmup=1, active=2, repeat=1)
        >>> [plan(step).name for step in range(5)]
        ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active <= 0:
        raise AssertionError(
            f"schedule: expected wait, warmup, repeat, skip_first >= 0 and active > 0, got {wait}, {warmup}, {repeat}, "
            f"{skip_first} and {active}"
        )
    if warmup == 0:
        import warnings

        warnings.warn("schedule: without warmup the first step bears costs of the start", stacklevel=2)

    def plan(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"schedule: expected a step >= 0, got {step}")
        step -= skip_first
        if step < 0:
            return ProfilerAction.NONE
        if skip_first_wait:
            step += wait
        cycle = wait + warmup + active
        if repeat and step // cycle >= repeat:
            return ProfilerAction.NONE
        position = step % cycle
        if position < wait:
            return ProfilerAction.NONE
        if position < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if position < cycle - 1 else ProfilerAction.RECORD_AND_SAVE

    return plan


def _always(_: int) -> ProfilerAction:
    return ProfilerAction.RECORD


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[profile], None]:
    """An ``on_trace_ready`` that writes each trace into a folder, under a name that TensorBoard looks for."""

    def handler(p: profile) -> None:
        import socket

        os.makedirs(dir_name, exist_ok=True)
        name = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        ending = ".pt.trace.json.gz" if use_gzip else ".pt.trace.json"
        p.export_chrome_trace(os.path.join(dir_name, f"{name}.{time.time_ns()}{ending}"))

    return handler


class profile:
    """Context that notes operations, backward nodes and named ranges.

    Args:
        activities: `ProfilerActivity.CPU`, the only one there is.
        schedule: what to do in which step; a function of the step's number, made by `schedule`. Default: record
            everything.
        on_trace_ready: called with the profiler at the end of each cycle of recording, and at the end.
        record_shapes: whether shapes of arguments are kept.
        profile_memory: whether each event gets the bytes that the allocator handed out less those it took back.
        with_stack: whether the lines that ran an operation are kept.
        with_flops: whether floating-point operations are counted: of products, convolutions and elementwise arithmetic.
        with_modules: whether calls of modules are kept, with what runs inside them.
        acc_events: whether `events` has those of all cycles, not only of the last.

    Example::

        >>> x = rushlight.ones(4, 4, requires_grad=True)
        >>> with rushlight.profiler.profile(record_shapes=True) as p:
        ...     (x @ x).sum().backward()
        >>> text = p.key_averages(group_by_input_shape=True).table(sort_by="cpu_time_total", row_limit=5)
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[..., Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Any = None,
    ) -> None:
        chosen = set(activities) if activities is not None else supported_activities()
        if not chosen:
            raise AssertionError("profile: no valid activities; expected {ProfilerActivity.CPU}")
        if ProfilerActivity.CUDA in chosen or use_cuda:
            import warnings

            warnings.warn("profile: CUDA is not available; only the host is profiled", stacklevel=2)
        self.activities = chosen
        self.schedule = schedule or _always
        self.record_steps = schedule is not None
        self.on_trace_ready = on_trace_ready
        self.options: dict[str, Any] = {
            "record_shapes": record_shapes,
            "profile_memory": profile_memory,
            "with_stack": with_stack,
            "with_flops": with_flops,
            "with_modules": with_modules,
        }
        self.acc_events = acc_events
        self.step_num = 0
        self.current_action = self.schedule(0)
        self.metadata: dict[str, Any] = {}
        self._run: _Run | None = None
        self._events: EventList | None = None
        self._step: record_function | None = None

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *args: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begins with step 0."""
        self._transition(ProfilerAction.NONE, self.current_action)
        self._open_step()

    def stop(self) -> None:
        """Ends; a trace that is being recorded is finished."""
        self._close_step()
        recording = self._run is not None
        self._collect()
        if recording and self.on_trace_ready:
            self.on_trace_ready(self)
        self.current_action = ProfilerAction.NONE

    def step(self) -> None:
        """Says that the next step begins."""
        self._close_step()
        before = self.current_action
        self.step_num += 1
        self.current_action = self.schedule(self.step_num)
        self._transition(before, self.current_action)
        self._open_step()

    def set_custom_trace_id_callback(self, callback: Callable[[], str]) -> None:
        """Accepted: traces have no ids."""

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[ProfilerActivity]) -> None:
        """Pauses recording, or goes on."""
        from . import _C

        if self._run is not None:
            _C._profiler_toggle(enable)

    def _transition(self, before: ProfilerAction, now: ProfilerAction) -> None:
        if self._run is not None and (before is ProfilerAction.RECORD_AND_SAVE or now not in _RECORDING):
            self._collect()
            if before is ProfilerAction.RECORD_AND_SAVE and self.on_trace_ready:
                self.on_trace_ready(self)
        if self._run is None and now in _RECORDING:
            self._run = _Run(**self.options)
            self._run.__enter__()

    def _collect(self) -> None:
        run, self._run = self._run, None
        if run is None:
            return
        run.__exit__()
        fresh = run._finished()
        if self.acc_events and self._events is not None:
            self._events.extend(fresh)
        else:
            self._events = fresh

    def _open_step(self) -> None:
        if self.record_steps and self._run is not None:
            self._step = record_function(f"ProfilerStep#{self.step_num}")
            self._step.__enter__()

    def _close_step(self) -> None:
        step, self._step = self._step, None
        if step is not None:
            step.__exit__()

    def events(self) -> EventList:
        """The events of the last recording.

        Raises:
            RuntimeError: nothing was recorded yet.
        """
        if self._events is None:
            raise RuntimeError("profile: nothing was recorded; expected the profiler to have run through active steps")
        return self._events

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """The events added up by name, and by shapes and the innermost lines if asked for."""
        return self.events().key_averages(group_by_input_shape, group_by_stack_n)

    def add_metadata(self, key: str, value: str) -> None:
        """Adds text to exported traces."""
        self.metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Adds a JSON value to exported traces."""
        self.metadata[key] = json.loads(value)

    preset_metadata_json = add_metadata_json

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Writes JSON for chrome://tracing and Perfetto; compressed when the path ends in ``.gz``."""
        _write(path, json.dumps(self.events()._trace(self.metadata)))

    def export_stacks(self, path: str | os.PathLike[str], metric: str = "self_cpu_time_total") -> None:
        """Writes the stacks for flame graphs; needs ``with_stack``."""
        self.events().export_stacks(path, metric)

    def export_memory_timeline(self, path: str | os.PathLike[str], device: str | None = None) -> None:
        """Writes ``[[microseconds], [bytes]]`` as JSON, what events took so far; needs ``profile_memory``."""
        if not self.options["profile_memory"]:
            raise ValueError("export_memory_timeline: expected profile_memory=True")
        top = sorted((e for e in self.events() if e.cpu_parent is None), key=lambda e: e.time_range.end)
        total, times, sizes = 0, [], []
        for e in top:
            total += e.cpu_memory_usage
            times.append(e.time_range.end)
            sizes.append(total)
        _write(path, json.dumps([times, sizes]))
