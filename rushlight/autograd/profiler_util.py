"""What a profile consists of: events, their averages and tables."""

from __future__ import annotations

import json
import os
from collections import defaultdict, namedtuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

__all__ = ["EventList", "FunctionEvent", "FunctionEventAvg", "Interval"]


class Interval:
    """A stretch of time in microseconds since the start of the profile."""

    def __init__(self, start: float, end: float) -> None:
        self.start = start
        self.end = end

    def elapsed_us(self) -> float:
        return self.end - self.start

    def __repr__(self) -> str:
        return f"Interval(start={self.start}, end={self.end})"


def _time_text(us: float) -> str:
    if us >= 1e6:
        return f"{us / 1e6:.3f}s"
    if us >= 1e3:
        return f"{us / 1e3:.3f}ms"
    return f"{us:.3f}us"


def _memory_text(count: float) -> str:
    for unit, size in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if abs(count) >= size:
            return f"{count / size:.2f} {unit}"
    return f"{count:.0f} B"


class _Figures:
    """What an event and an average have in common. Times are in microseconds; there is no device but the host."""

    key: str
    count: int
    cpu_time_total: float
    self_cpu_time_total: float
    cpu_memory_usage: int
    self_cpu_memory_usage: int
    device_time_total = self_device_time_total = device_time = 0.0
    cuda_time_total = self_cuda_time_total = cuda_time = 0.0
    device_memory_usage = self_device_memory_usage = 0
    cuda_memory_usage = self_cuda_memory_usage = 0
    flops = 0

    @property
    def cpu_time(self) -> float:
        """The average time of one call."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def cpu_time_str(self) -> str:
        return _time_text(self.cpu_time)

    @property
    def cpu_time_total_str(self) -> str:
        return _time_text(self.cpu_time_total)

    @property
    def self_cpu_time_total_str(self) -> str:
        return _time_text(self.self_cpu_time_total)


class FunctionEvent(_Figures):
    """One operation, backward node or range of the user.

    Attributes:
        name: ``aten::mul``, ``MulBackward0``, or the name of the range.
        time_range: when it ran.
        thread: in which thread.
        cpu_parent, cpu_children: the events around and inside it.
        input_shapes: with ``record_shapes``, one list for each argument.
        stack: with ``with_stack``, the lines outside the package, innermost first.
        sequence_nr: of the node that recorded it, or -1.
        scope: 0 for an operation, 1 for a backward node, 2 for a range of the user, 3 for the call of a module.
        flops: with ``with_flops``, the floating-point operations, of which a multiplication with an addition is two.
        module_hierarchy: with ``with_modules``, the classes of the modules around it, outermost first, by dots.
    """

    def __init__(self, number: int, raw: tuple[Any, ...], origin: int, with_flops: bool = False) -> None:
        name, kind, thread, start, end, _, memory, sequence, node, shapes, stack, record, elements = raw
        self.id = number
        self.name = self.key = self.trace_name = name
        self.thread = thread
        self.time_range = Interval((start - origin) / 1e3, (end - origin) / 1e3)
        self.cpu_parent: FunctionEvent | None = None
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_memory_usage = memory
        self.sequence_nr = sequence if 0 < sequence < (1 << 63) else -1
        self.node_id = node
        self.input_shapes = shapes
        self.stack = [f"{file}({line}): {function}" for file, line, function in stack] if stack else []
        self.scope = {"o": 0, "b": 1, "u": 2, "m": 3}[kind]
        self.flops = _flops(record, shapes, elements) if with_flops and record else 0
        self.count = 1
        self.kernels: list[Any] = []
        self.is_async = self.is_remote = False
        self.fwd_thread = thread
        self.device_index = -1
        self.is_user_annotation = kind == "u"

    @property
    def cpu_time_total(self) -> float:  # type: ignore[override]
        return self.time_range.elapsed_us()

    @property
    def self_cpu_time_total(self) -> float:  # type: ignore[override]
        return self.cpu_time_total - sum(c.cpu_time_total for c in self.cpu_children)

    @property
    def self_cpu_memory_usage(self) -> int:  # type: ignore[override]
        return int(self.cpu_memory_usage - sum(c.cpu_memory_usage for c in self.cpu_children))

    @property
    def module_hierarchy(self) -> str:
        event, names = self.cpu_parent, []
        while event is not None:
            if event.scope == 3:
                names.append(event.name.removeprefix("nn.Module: "))
            event = event.cpu_parent
        return ".".join(reversed(names))

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} cpu_time={self.cpu_time_str} cpu_start_us="
            f"{self.time_range.start:.3f} thread={self.thread} input_shapes={self.input_shapes}>"
        )


class FunctionEventAvg(_Figures):
    """All events of one name (and shapes, and lines) together."""

    def __init__(self) -> None:
        self.key = ""
        self.count = 0
        self.cpu_time_total = self.self_cpu_time_total = 0.0
        self.cpu_memory_usage = self.self_cpu_memory_usage = 0
        self.input_shapes: Any = None
        self.stack: list[str] = []
        self.scope = self.flops = 0
        self.is_user_annotation = False

    def add(self, other: Any) -> FunctionEventAvg:
        """Counts an event, or another average, in."""
        if not self.count:
            self.key, self.input_shapes, self.stack, self.scope = (
                other.key,
                other.input_shapes,
                other.stack,
                other.scope,
            )
            self.is_user_annotation = other.is_user_annotation
        self.count += other.count
        self.flops += other.flops
        self.cpu_time_total += other.cpu_time_total
        self.self_cpu_time_total += other.self_cpu_time_total
        self.cpu_memory_usage += other.cpu_memory_usage
        self.self_cpu_memory_usage += other.self_cpu_memory_usage
        return self

    def __iadd__(self, other: Any) -> FunctionEventAvg:
        return self.add(other)

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} cpu_time="
            f"{self.cpu_time_str} count={self.count} input_shapes={self.input_shapes}>"
        )


def _flops(record: tuple[str, str, str], shapes: Any, elements: int) -> int:
    """The floating-point operations of one call: what its record says, or one for each element."""
    from rushlight.ops import _lookup, _trace

    operation = _lookup.record(*record)
    if operation.flops is None:
        return elements if operation.kind == "elementwise" and operation.derivative else 0
    known = {a.name: shape for a, shape in zip(operation.arguments, shapes, strict=True)} | {"result": elements}
    return operation.flops(*(known[name] for name in _trace.parameter_names(operation.flops)))


def _events(raw: Iterable[tuple[Any, ...]], origin: int, with_flops: bool = False) -> list[FunctionEvent]:
    events: list[FunctionEvent] = []
    for number, item in enumerate(raw):
        event = FunctionEvent(number, item, origin, with_flops)
        if item[5] >= 0:
            event.cpu_parent = events[item[5]]
            event.cpu_parent.cpu_children.append(event)
        events.append(event)
    return events


_Column = namedtuple("_Column", ["title", "text", "left"])


class EventList(list):  # type: ignore[type-arg]
    """Events, or averages of them."""

    def __init__(self, events: Iterable[Any] = (), *, profile_memory: bool = False) -> None:
        super().__init__(events)
        self._profile_memory = profile_memory

    @property
    def self_cpu_time_total(self) -> float:
        """The time of everything, each part counted once."""
        return float(sum(e.self_cpu_time_total for e in self))

    def key_averages(
        self, group_by_input_shapes: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """The events added up by name, and by shapes and the innermost lines if asked for."""
        groups: dict[Any, FunctionEventAvg] = defaultdict(FunctionEventAvg)
        for event in self:
            key = (
                event.key,
                event.scope,
                str(event.input_shapes) if group_by_input_shapes else "",
                tuple(event.stack[:group_by_stack_n]),
            )
            groups[key].add(event)
        for average in groups.values():
            average.stack = average.stack[:group_by_stack_n]
            if not group_by_input_shapes:
                average.input_shapes = None
        return EventList(groups.values(), profile_memory=self._profile_memory)

    def total_average(self) -> FunctionEventAvg:
        """Everything added up."""
        total = FunctionEventAvg()
        for event in self:
            total.add(event)
        total.key = "Total"
        return total

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
    ) -> str:
        """A text table.

        Args:
            sort_by: an attribute of the rows, the largest first: ``cpu_time``, ``cpu_time_total``,
                ``self_cpu_time_total``, ``cpu_memory_usage``, ``self_cpu_memory_usage``, ``count``.
            row_limit: how many rows; -1 for all.
            max_src_column_width, max_name_column_width, max_shapes_column_width: where text is cut.
            header: text above the table.
            top_level_events_only: leave out events inside others (of a list that is not averaged).
        """
        rows = list(self)
        if top_level_events_only:
            rows = [e for e in rows if getattr(e, "cpu_parent", None) is None]
        if sort_by is not None:
            if rows and not hasattr(rows[0], sort_by):
                raise AttributeError(
                    f"table: cannot sort by {sort_by!r}; expected an attribute such as 'cpu_time_total'"
                )
            rows.sort(key=lambda e: getattr(e, sort_by), reverse=True)
        total = self.self_cpu_time_total

        def share(part: float) -> str:
            return f"{100 * part / total:.2f}%" if total else "0.00%"

        def cut(text: str, width: int, keep_end: bool = False) -> str:
            if width < 0 or len(text) <= width:
                return text
            return "..." + text[3 - width :] if keep_end else text[: width - 3] + "..."

        columns = [
            _Column("Name", lambda e: cut(e.key, max_name_column_width), True),
            _Column("Self CPU %", lambda e: share(e.self_cpu_time_total), False),
            _Column("Self CPU", lambda e: _time_text(e.self_cpu_time_total), False),
            _Column("CPU total %", lambda e: share(e.cpu_time_total), False),
            _Column("CPU total", lambda e: _time_text(e.cpu_time_total), False),
            _Column("CPU time avg", lambda e: _time_text(e.cpu_time), False),
        ]
        if self._profile_memory:
            columns += [
                _Column("CPU Mem", lambda e: _memory_text(e.cpu_memory_usage), False),
                _Column("Self CPU Mem", lambda e: _memory_text(e.self_cpu_memory_usage), False),
            ]
        if any(e.flops for e in rows):
            columns.append(_Column("Total FLOPs", lambda e: str(e.flops) if e.flops else "--", False))
        columns.append(_Column("# of Calls", lambda e: str(e.count), False))
        if any(e.input_shapes for e in rows):
            columns.append(
                _Column("Input Shapes", lambda e: cut(str(e.input_shapes or []), max_shapes_column_width), True)
            )
        if any(e.stack for e in rows):
            columns.append(
                _Column(
                    "Source Location",
                    lambda e: cut(e.stack[0], max_src_column_width, True) if e.stack else "",
                    True,
                )
            )
        shown = rows if row_limit < 0 else rows[:row_limit]
        cells = [[c.text(e) for c in columns] for e in shown]
        widths = [max([len(c.title), *(len(row[i]) for row in cells)]) for i, c in enumerate(columns)]
        line = "  ".join("-" * w for w in widths)

        def one(texts: Iterable[str]) -> str:
            return "  ".join(
                t.ljust(w) if c.left else t.rjust(w) for t, w, c in zip(texts, widths, columns, strict=True)
            ).rstrip()

        text = [line, one(c.title for c in columns), line, *(one(row) for row in cells), line]
        if header is not None:
            text.insert(0, header)
        return "\n".join(text) + f"\nSelf CPU time total: {_time_text(total)}\n"

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Writes the events as JSON for chrome://tracing and Perfetto; compressed when the path ends in ``.gz``."""
        _write(path, json.dumps(self._trace()))

    def _trace(self, metadata: dict[str, Any] | None = None) -> dict[str, Any]:
        categories = ("cpu_op", "backward", "user_annotation", "python_function")
        pid = os.getpid()
        events: list[dict[str, Any]] = []
        for e in self:
            args: dict[str, Any] = {"External id": e.id}
            if e.sequence_nr >= 0:
                args["Sequence number"] = e.sequence_nr
            if e.input_shapes is not None:
                args["Input Dims"] = e.input_shapes
            if e.stack:
                args["Call stack"] = ";".join(reversed(e.stack))
            if self._profile_memory:
                args["Bytes"] = e.cpu_memory_usage
            events.append(
                {
                    "ph": "X",
                    "cat": categories[e.scope],
                    "name": e.name,
                    "pid": pid,
                    "tid": e.thread,
                    "ts": e.time_range.start,
                    "dur": e.time_range.elapsed_us(),
                    "args": args,
                }
            )
        # Arrows from forward operations to the backward of what they recorded.
        recorded = {e.sequence_nr: e for e in self if e.scope == 0 and e.sequence_nr >= 0}
        for e in self:
            source = recorded.get(e.sequence_nr) if e.scope == 1 else None
            if source is None:
                continue
            flow = {"cat": "fwdbwd", "name": "fwdbwd", "id": e.sequence_nr, "pid": pid}
            events.append({**flow, "ph": "s", "tid": source.thread, "ts": source.time_range.start})
            events.append({**flow, "ph": "f", "bp": "e", "tid": e.thread, "ts": e.time_range.start})
        return {"schemaVersion": 1, **(metadata or {}), "displayTimeUnit": "ms", "traceEvents": events}

    def export_stacks(self, path: str | os.PathLike[str], metric: str = "self_cpu_time_total") -> None:
        """Writes lines ``outermost;...;innermost value`` for flame graphs, of the events that have stacks."""
        if metric not in ("self_cpu_time_total", "self_cuda_time_total", "self_device_time_total"):
            raise ValueError(f"export_stacks: expected the metric self_cpu_time_total, got {metric!r}")
        totals: dict[str, float] = defaultdict(float)
        for e in self:
            if e.stack:
                totals[";".join(s.replace(" ", "_").replace(";", "_") for s in reversed(e.stack))] += getattr(e, metric)
        _write(path, "".join(f"{stack} {int(value)}\n" for stack, value in totals.items() if int(value) > 0))

    def __str__(self) -> str:
        return self.table()


def _write(path: str | os.PathLike[str], text: str) -> None:
    name = os.fspath(path)
    if name.endswith(".gz"):
        import gzip

        with gzip.open(name, "wt", encoding="utf-8") as compressed:
            compressed.write(text)
    else:
        with open(name, "w", encoding="utf-8") as file:
            file.write(text)
