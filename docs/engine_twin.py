"""The engine in a hundred lines of Python: what native/autograd does, for reading.

Values are floats or NumPy arrays. The order of evaluation, the accumulation of gradients, in-place writes with version
counters, hooks, retained gradients and derivatives of derivatives are those of the real engine; speed, views and
broadcasting are left out. tests/autograd/test_twin.py compares the two on random graphs.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

_numbers = itertools.count()
_recording = True


@contextlib.contextmanager
def recording(on: bool) -> Iterator[None]:
    global _recording
    before, _recording = _recording, on
    try:
        yield
    finally:
        _recording = before


class Node:
    """One recorded operation: edges to the nodes of its inputs, saved values, and how to go back."""

    def __init__(self, name: str, edges: list[Node | None], saved: list[Any], backward: Callable[..., Any]) -> None:
        self.name, self.edges, self.backward = name, edges, backward
        self.saved = [(t, t.version if t else 0) for t in saved]  # the version tells whether somebody wrote into it
        self.sequence = next(_numbers)
        self.leaf: Tensor | None = None
        self.hooks: list[Callable[[Tensor], Tensor | None]] = []
        self.retained: list[Tensor] = []

    def unpack(self) -> list[Any]:
        for tensor, version in self.saved:
            if tensor and tensor.version != version:
                raise RuntimeError(f"a value saved by {self.name} has been modified by an inplace operation")
        return [tensor for tensor, _ in self.saved]


class Tensor:
    """A value, the node that made it (for a leaf, the node that stores its gradient), and its gradient."""

    def __init__(self, value: Any, requires_grad: bool = False) -> None:
        self.value, self.version, self.grad, self.node = value, 0, None, None
        if requires_grad:
            self.node = Node("AccumulateGrad", [], [], lambda g: ())
            self.node.leaf, self.node.sequence = self, 1 << 62  # a leaf stores its gradient as soon as it is complete

    grad: Tensor | None
    node: Node | None

    def __add__(self, other: Tensor) -> Tensor:
        return record("add", self.value + other.value, [self, other], [], lambda g: (g, g))

    def __mul__(self, other: Tensor) -> Tensor:
        saved = [self if other.node else None, other if self.node else None]  # what no gradient needs is not kept
        return record("mul", self.value * other.value, [self, other], saved, lambda g, a, b: (b and g * b, a and g * a))

    def __neg__(self) -> Tensor:
        return record("neg", -self.value, [self], [], lambda g: (-g,))

    def sin(self) -> Tensor:
        return record("sin", math.sin(self.value), [self], [self], lambda g, a: (g * a.cos(),))

    def cos(self) -> Tensor:
        return record("cos", math.cos(self.value), [self], [self], lambda g, a: (-(g * a.sin()),))

    def exp(self) -> Tensor:
        result = record("exp", math.exp(self.value), [self], [], lambda g, y: (g * y,))
        if result.node:
            result.node.saved = [(result, result.version)]  # a cycle; the real engine saves a copy without the node
        return result

    def mul_(self, other: Tensor) -> Tensor:
        """In place: the tensor goes on from a new node, whose first edge is the old one."""
        old = Tensor(self.value)
        old.node = self.node
        if self.node is not None and self.node.leaf is not None and _recording:
            raise RuntimeError("a leaf that requires grad is written in place")
        result = old * other
        self.value, self.node, self.version = result.value, result.node, self.version + 1
        return self

    def backward(self, create_graph: bool = False) -> None:
        run(self, Tensor(1.0), create_graph)


def record(name: str, value: Any, inputs: list[Tensor], saved: list[Any], backward: Callable[..., Any]) -> Tensor:
    result = Tensor(value)
    if _recording and any(t.node for t in inputs):
        result.node = Node(name, [t.node for t in inputs], saved, backward)
    return result


def run(root: Tensor, gradient: Tensor, create_graph: bool) -> None:
    """Counts how many edges lead to each node, then takes ready nodes by sequence number, the youngest first."""
    if root.node is None:
        raise RuntimeError("the root does not require grad")
    waiting: dict[Node, int] = {root.node: 0}
    stack = [root.node]
    while stack:
        for node in stack.pop().edges:
            if node is not None:
                if node not in waiting:
                    waiting[node] = 0
                    stack.append(node)
                waiting[node] += 1
    gradients = {root.node: gradient}
    ready = [(-root.node.sequence, id(root.node), root.node)]
    with recording(create_graph):
        while ready:
            node = heapq.heappop(ready)[2]
            grad = gradients.pop(node, None)
            if grad is not None:
                for hook in node.hooks:
                    grad = hook(grad) or grad
                for tensor in [*node.retained, *([node.leaf] if node.leaf else [])]:
                    tensor.grad = grad if tensor.grad is None else tensor.grad + grad
            parts = node.backward(grad, *node.unpack()) if grad is not None else [None] * len(node.edges)
            for edge, part in zip(node.edges, parts, strict=False):
                if edge is None:
                    continue
                if part is not None:
                    gradients[edge] = gradients[edge] + part if edge in gradients else part
                waiting[edge] -= 1
                if waiting[edge] == 0:
                    heapq.heappush(ready, (-edge.sequence, id(edge), edge))
