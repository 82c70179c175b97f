"""Random programs of views, in-place writes, reuse and hooks, for comparing two implementations.

A program is drawn from a seed alone, never from what the implementation answers, so both run the same one. Its
outcome is a list of values, or says at which step an error was raised.
"""

from __future__ import annotations

import random


def run(torch, seed, steps=14):
    """Runs program number `seed`; returns (kind, payload): gradients and values, or the failing step."""
    r = random.Random(seed)

    def make(shape):
        # Not a view: PyTorch loses the gradient of a leaf that is one when it is written under no_grad.
        return torch.tensor(
            [[round(r.uniform(-1.5, 1.5), 3) for _ in range(shape[1])] for _ in range(shape[0])], dtype=torch.float64
        )

    leaves = [make((2, 3)).requires_grad_() for _ in range(2)] + [make((2, 3))]
    pool = [leaf * 1 if r.random() < 0.9 else leaf for leaf in leaves]
    seen = []
    handles = []

    def pick():
        return pool[r.randrange(len(pool))]

    def hook(scale):
        def call(g):
            seen.append(g.tolist())
            return g * scale if scale else None

        return call

    def like(t, other):
        """`other` fitted to the shape of t by differentiable operations."""
        if tuple(other.shape) == tuple(t.shape):
            return other
        return other.sum() * 0.25

    step = -1
    try:
        for number in range(steps):
            step = number
            kind = r.randrange(22)
            t, u = pick(), pick()
            if kind in (11, 12, 13, 14, 15, 16) and t.requires_grad:
                t.grad_fn  # PyTorch takes a view that is not up to date for a leaf
            index, amount, grad_off = r.randrange(8), round(r.uniform(0.5, 1.5), 3), r.random()
            if kind == 0:
                pool.append(t * like(t, u))
            elif kind == 1:
                pool.append(t + like(t, u))
            elif kind == 2:
                pool.append(t.tanh())
            elif kind == 3:
                pool.append((t * 0.5).exp())
            elif kind in (4, 5):
                if t.dim() and t.shape[0]:
                    pool.append(t[index % t.shape[0]])
            elif kind == 6:
                if t.dim() and t.shape[0]:
                    pool.append(t[index % 2 :])
            elif kind == 7:
                if t.dim() == 2:
                    pool.append(t.t())
            elif kind == 8:
                if t.dim() and t.shape[0]:
                    pool.append(t.unbind(0)[index % t.shape[0]])
            elif kind == 9:
                pool.append(t.unsqueeze(0).squeeze(0))
            elif kind == 10:
                pool.append(t.reshape(-1))
            elif kind in (11, 12):
                t.mul_(like(t, u) if index < 4 else amount)
            elif kind == 13:
                t.add_(like(t, u))
            elif kind == 14:
                t.copy_(like(t, u).expand(t.shape))
            elif kind == 15:
                t.tanh_()
            elif kind == 16:
                if t.dim() and t.shape[0]:
                    t[index % t.shape[0]] = u.sum() * 0.3
            elif kind == 17:
                if grad_off < 0.3:
                    with torch.no_grad():
                        t.mul_(amount)
                elif grad_off < 0.5:
                    with torch.no_grad():
                        if t.dim() and t.shape[0]:
                            pool.append(t[index % t.shape[0]])
                elif grad_off < 0.7:
                    t.detach().mul_(amount)
                else:
                    pool.append(t.detach())
            elif kind == 18:
                if t.requires_grad and (
                    t.grad_fn is not None or t.is_leaf
                ):  # PyTorch crashes on a view that is not up to date
                    handles.append(t.register_hook(hook(amount if index < 3 else None)))
            elif kind == 19:
                if t.requires_grad and (t.grad_fn is not None or t.is_leaf):
                    t.retain_grad()
            elif kind == 20:
                pool.append(t.expand(2, *t.shape)[index % 2] if index < 5 else t.clone())
            else:
                pool.append(t.sum() * u.sum())
        step = "loss"
        total = None
        for t in pool:
            if t.requires_grad:
                part = (t * t * 0.5).sum() if r.random() < 0.5 else t.sum()
                total = part if total is None else total + part
        if total is None:
            return "values", [t.tolist() for t in pool]
        if r.random() < 0.3:
            step = "grad"
            grads = torch.autograd.grad(total, leaves[:2], create_graph=True, allow_unused=True)
            total = None
            for g in grads:
                if g is not None and g.requires_grad:
                    total = (g * g).sum() if total is None else total + (g * g).sum()
            if total is None:
                return "values", [None if g is None else g.tolist() for g in grads]
        step = "backward"
        total.backward()
    except RuntimeError:
        return "error", step
    result = [t.tolist() for t in pool]
    # The .grad of tensors that are not leaves, when they keep it.
    keeps = [t for t in (*pool, *leaves) if t.retains_grad or t.is_leaf]
    result += [None if t.grad is None else t.grad.tolist() for t in keeps]
    return "values", result + seen


def flatten(values, into):
    for v in values:
        if isinstance(v, list):
            flatten(v, into)
        else:
            into.append(v)
    return into


def same(a, b):
    """True when two outcomes agree: the same error at the same step, or values equal up to rounding."""
    if a[0] != b[0]:
        return False
    if a[0] == "error":
        # PyTorch checks saved values that it does not need, so it may refuse earlier.
        late = ("grad", "backward")
        return a[1] == b[1] or (a[1] in late and b[1] in late)
    x, y = flatten(a[1], []), flatten(b[1], [])
    if len(x) != len(y):
        return False
    for p, q in zip(x, y, strict=True):
        if p is None or q is None:
            if p is not q:
                return False
        elif not (p == q or abs(p - q) <= 1e-9 * max(1.0, abs(p), abs(q)) or (p != p and q != q)):
            return False
    return True
