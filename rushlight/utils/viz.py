"""Pictures of recorded graphs."""

from __future__ import annotations

import os
from html import escape

import rushlight

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

__all__ = ["Graph", "graph"]


class _Box:
    """One node of the picture."""

    def __init__(self, lines: list[str], kind: str) -> None:
        self.lines = lines
        self.kind = kind  # "operation", "parameter", "leaf" or "root"
        self.edges: list[int] = []  # boxes that the gradient goes on to


_COLOURS = {"operation": "#e8e8e8", "parameter": "#cfe2f3", "leaf": "#fff2cc", "root": "#d9ead3"}


class Graph:
    """What `graph` found: its text in the language of Graphviz, and pictures."""

    def __init__(self, boxes: list[_Box]) -> None:
        self.boxes = boxes

    @property
    def dot(self) -> str:
        """The graph as Graphviz text. Arrows go the way of the forward pass."""
        lines = ["digraph {", "  node [shape=box, style=filled, fontname=monospace, fontsize=10]"]
        for i, box in enumerate(self.boxes):
            label = "\\n".join(line.replace("\\", "\\\\").replace('"', '\\"') for line in box.lines)
            lines.append(f'  n{i} [label="{label}", fillcolor="{_COLOURS[box.kind]}"]')
        lines += [f"  n{to} -> n{i}" for i, box in enumerate(self.boxes) for to in box.edges]
        return "\n".join([*lines, "}", ""])

    def svg(self) -> str:
        """The graph as SVG, laid out in rows; it needs no other program."""
        return _draw(self.boxes)

    def _repr_svg_(self) -> str:
        return self.svg()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a picture; the ending of the path says which kind.

        ``.dot`` and ``.gv`` are Graphviz text. ``.svg`` is laid out by Graphviz where it is installed, else by this
        module. Other endings, ``.png`` and ``.pdf`` among them, need Graphviz.

        Raises:
            RuntimeError: Graphviz is needed and is not there.
        """
        name = os.fspath(path)
        ending = os.path.splitext(name)[1].lstrip(".").lower()
        if not ending:
            raise ValueError(f"viz: expected a path that ends in .svg, .png, .pdf or .dot, got {name!r}")
        if ending in ("dot", "gv"):
            content = self.dot.encode()
        else:
            content = self._by_graphviz(ending)
        with open(name, "wb") as file:
            file.write(content)

    def _by_graphviz(self, ending: str) -> bytes:
        import shutil

        missing = None if shutil.which("dot") else "the program 'dot' of Graphviz"
        if missing is None:
            try:
                import graphviz  # type: ignore[import-not-found,unused-ignore]
            except ImportError:
                missing = "the Python package 'graphviz' (pip install rushlight[viz])"
            else:
                return bytes(graphviz.Source(self.dot).pipe(format=ending))
        if ending == "svg":
            return self.svg().encode()
        raise RuntimeError(
            f"viz: a .{ending} file needs {missing}, which is not installed; expected it, or a path that ends in .svg "
            "or .dot"
        )


def graph(
    roots: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    params: Any = None,
    profile: Any = None,
    most: int = 5000,
) -> Graph:
    """The graph behind a tensor: operations with the shapes of their results, parameters by name.

    Args:
        roots: a tensor that requires grad, or several.
        path: where to write it, by `Graph.save`; None only returns it.
        params: names for leaves: a module, or a dict of names and tensors.
        profile: a finished profiler that saw the backward: operations are shown with the time their backward took.
        most: how many nodes to draw.

    Returns:
        The `Graph`, with ``dot`` and ``svg()``; notebooks show it as a picture.

    Raises:
        RuntimeError: a root does not require grad, or the graph has more nodes than `most`.

    Example::

        >>> net = rushlight.nn.Linear(2, 1)
        >>> picture = rushlight.utils.viz.graph(net(rushlight.ones(3, 2)).sum(), params=net)
        >>> "weight" in picture.dot and "SumBackward0" in picture.dot
        True
    """
    tensors = [roots] if isinstance(roots, rushlight.Tensor) else list(roots)
    names = _names(params)
    times = _times(profile)
    boxes: list[_Box] = []
    places: dict[Any, int] = {}
    stack: list[Any] = []

    def place(node: Any) -> int:
        if node not in places:
            if len(boxes) >= most:
                raise RuntimeError(f"viz: the graph has more nodes than asked for; expected at most {most}")
            places[node] = len(boxes)
            boxes.append(_box(node, names, times))
            stack.append(node)
        return places[node]

    for k, tensor in enumerate(tensors):
        if not tensor.requires_grad:
            raise RuntimeError(f"viz: root {k} does not require grad, so there is no graph behind it")
        root = _Box([f"result {k}" if len(tensors) > 1 else "result", _shape(tensor.shape, tensor.dtype)], "root")
        boxes.append(root)
        root.edges.append(place(rushlight.autograd.graph.get_gradient_edge(tensor).node))
    while stack:
        node = stack.pop()
        box = boxes[places[node]]
        box.edges = [place(n) for n, _ in node.next_functions if n is not None]
    result = Graph(boxes)
    if path is not None:
        result.save(path)
    return result


def _names(params: Any) -> dict[int, str]:
    if params is None:
        return {}
    pairs: Iterable[tuple[str, Any]]
    if hasattr(params, "named_parameters"):
        pairs = params.named_parameters()
    elif isinstance(params, dict):
        pairs = params.items()
    else:
        raise TypeError(f"viz: params must be a module or a dict of names and tensors, got {type(params).__name__}")
    return {id(tensor): name for name, tensor in pairs}


def _times(profile: Any) -> dict[int, float]:
    if profile is None:
        return {}
    events = profile.events() if hasattr(profile, "events") else profile.function_events
    times: dict[int, float] = {}
    for event in events or ():
        if event.scope == 1:
            times[event.node_id] = times.get(event.node_id, 0.0) + event.cpu_time_total
    return times


def _shape(shape: Iterable[int], dtype: Any) -> str:
    return f"{str(dtype).removeprefix('rushlight.')} {list(shape)}"


def _box(node: Any, names: Mapping[int, str], times: Mapping[int, float]) -> _Box:
    leaf = getattr(node, "variable", None)
    if leaf is not None:
        name = names.get(id(leaf))
        kind = "parameter" if name is not None or isinstance(leaf, rushlight.nn.Parameter) else "leaf"
        lines = [name or kind, _shape(leaf.shape, leaf.dtype)]
    else:
        kind = "operation"
        lines = [node.name().rpartition("::")[2]]
        lines += [_shape(m.shape, m.dtype) for m in node._input_metadata[:2]]
        if len(node._input_metadata) > 2:
            lines[-1] += f" and {len(node._input_metadata) - 2} more"
    if id(node) in times:
        lines.append(f"backward {times[id(node)]:.1f} us")
    return _Box(lines, kind)


# ---------------------------------------------------------------- rows


def _rows(boxes: list[_Box]) -> list[int]:
    """The row of each box: below everything that it is made from."""
    waiting = [0] * len(boxes)
    for box in boxes:
        for to in box.edges:
            waiting[to] += 1
    order = [i for i, n in enumerate(waiting) if n == 0]
    for i in order:
        for to in boxes[i].edges:
            waiting[to] -= 1
            if waiting[to] == 0:
                order.append(to)
    rows = [0] * len(boxes)
    for i in reversed(order):
        rows[i] = max((rows[to] + 1 for to in boxes[i].edges), default=0)
    # A leaf stands right above its first user.
    for i in order:
        for to in boxes[i].edges:
            if not boxes[to].edges:
                users = [k for k, box in enumerate(boxes) if to in box.edges] if len(boxes) < 500 else [i]
                rows[to] = min(rows[k] for k in users) - 1
    return rows


def _draw(boxes: list[_Box]) -> str:
    rows = _rows(boxes)
    by_row: dict[int, list[int]] = {}
    for i, row in enumerate(rows):
        by_row.setdefault(row, []).append(i)
    line, letter, gap, pad = 13, 6.3, 24, 6
    widths = [max(len(t) for t in box.lines) * letter + 2 * pad for box in boxes]
    heights = [len(box.lines) * line + 2 * pad for box in boxes]
    middle: dict[int, tuple[float, float]] = {}
    y = float(gap)
    # Rows from the top; within one, boxes in the order of the middle of what they are made from.
    for row in sorted(by_row):
        members = by_row[row]
        members.sort(
            key=lambda i: sum(middle[t][0] for t in boxes[i].edges if t in middle) / max(1, len(boxes[i].edges))
        )
        x = -(sum(widths[i] for i in members) + gap * (len(members) - 1)) / 2
        height = max(heights[i] for i in members)
        for i in members:
            middle[i] = (x + widths[i] / 2, y + height / 2)
            x += widths[i] + gap
        y += height + 2 * gap
    left = min(middle[i][0] - widths[i] / 2 for i in middle) - gap
    right = max(middle[i][0] + widths[i] / 2 for i in middle) + gap
    text = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{left:.0f} 0 {right - left:.0f} {y:.0f}" '
        f'width="{right - left:.0f}" height="{y:.0f}" font-family="monospace" font-size="10">',
        '<defs><marker id="a" markerWidth="8" markerHeight="8" refX="7" refY="3" orient="auto">'
        '<path d="M0,0 L7,3 L0,6 z"/></marker></defs>',
    ]
    for i, box in enumerate(boxes):
        for to in box.edges:
            (x1, y1), (x2, y2) = middle[to], middle[i]
            text.append(
                f'<line x1="{x1:.1f}" y1="{y1 + heights[to] / 2:.1f}" x2="{x2:.1f}" y2="{y2 - heights[i] / 2:.1f}" '
                'stroke="#555" marker-end="url(#a)"/>'
            )
    for i, box in enumerate(boxes):
        x, top = middle[i][0] - widths[i] / 2, middle[i][1] - heights[i] / 2
        text.append(
            f'<rect x="{x:.1f}" y="{top:.1f}" width="{widths[i]:.1f}" height="{heights[i]}" rx="3" '
            f'fill="{_COLOURS[box.kind]}" stroke="#555"/>'
        )
        for k, content in enumerate(box.lines):
            at = f'x="{middle[i][0]:.1f}" y="{top + pad + (k + 0.8) * line:.1f}"'
            text.append(f'<text {at} text-anchor="middle">{escape(content)}</text>')
    return "\n".join([*text, "</svg>", ""])
