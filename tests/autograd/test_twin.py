"""The engine against its readable twin, docs/engine_twin.py, on random graphs."""

import importlib.util
import random
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def twin():
    path = Path(__file__).parents[2] / "docs" / "engine_twin.py"
    spec = importlib.util.spec_from_file_location("engine_twin", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Native:
    """The real engine in the words of the twin."""

    def __init__(self, rl):
        self.rl = rl

    def Tensor(self, value, requires_grad=False):
        return self.rl.tensor(value, dtype=self.rl.float64, requires_grad=requires_grad)

    def hook(self, t, f):
        t.register_hook(f)

    def retain(self, t):
        t.retain_grad()

    def needs(self, t):
        return t.requires_grad

    def number(self, t):
        return None if t is None else float(t.item())


class Python:
    def __init__(self, twin):
        self.Tensor = twin.Tensor

    def hook(self, t, f):
        t.node.hooks.append(f)

    def retain(self, t):
        if t.node.leaf is None:
            t.node.retained.append(t)

    def needs(self, t):
        return t.node is not None

    def number(self, t):
        return None if t is None else float(t.value)


def program(side, seed):
    r = random.Random(seed)
    leaves = [side.Tensor(round(r.uniform(-1, 1), 3), requires_grad=k < 3) for k in range(4)]
    pool = list(leaves)
    seen, retained = [], []
    factor = side.Tensor(1.5)

    def hook(g, scale):
        seen.append(side.number(g))
        return g * factor if scale else None

    try:
        for _ in range(r.randrange(4, 20)):
            kind, a, b = r.randrange(9), r.choice(pool), r.choice(pool)
            if kind < 2:
                pool.append(a + b)
            elif kind < 4:
                pool.append(a * b)
            elif kind == 4:
                pool.append(r.choice([lambda: a.sin(), lambda: a.cos(), lambda: -a])())
            elif kind == 5:
                pool.append((a * factor).exp() if r.random() < 0.2 else (a * a).exp() * b.cos())
            elif kind == 6:
                a.mul_(b)
            elif kind == 7 and side.needs(a):
                scale = r.random() < 0.5
                side.hook(a, lambda g, s=scale: hook(g, s))
            elif kind == 8 and side.needs(a) and not any(a is t for t in (*leaves, *retained)):
                side.retain(a)
                retained.append(a)
        roots = [t for t in pool[4:] if side.needs(t)]
        if not roots:
            return "nothing"
        total = roots[0]
        for t in roots[1:]:
            total = total + t * t
        create_graph = r.random() < 0.4
        total.backward(create_graph=create_graph)
        if create_graph:
            first = [t.grad for t in leaves[:3] if t.grad is not None and side.needs(t.grad)]
            if first:
                second = first[0]
                for g in first[1:]:
                    second = second + g * g
                (second * factor).backward()
    except RuntimeError:
        return "refused"
    return [side.number(t) for t in pool] + [side.number(t.grad) for t in leaves[:3]] + seen


def equal(a, b):
    if isinstance(a, str) or isinstance(b, str):
        return a == b
    return len(a) == len(b) and all(
        (p is None and q is None) or (p is not None and q is not None and abs(p - q) <= 1e-9 * max(1, abs(p), abs(q)))
        for p, q in zip(a, b, strict=True)
    )


def test_random_graphs(rl, twin):
    outcomes = []
    for seed in range(400):
        try:
            expected = program(Python(twin), seed)
        except OverflowError:
            continue
        assert equal(program(Native(rl), seed), expected), seed
        outcomes.append(expected if isinstance(expected, str) else "values")
    assert outcomes.count("values") > 150 and outcomes.count("refused") > 20
