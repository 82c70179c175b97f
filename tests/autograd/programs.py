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


def rich(torch, seed, steps=16):
    """A program over more kinds of steps. A step that is refused is noted, and the program goes on.

    Returns (kind, payload, refused): as `run`, and the numbers of the refused steps; or "broken" where PyTorch fails by
    an assertion of its own, refuses to write into memory that it also
    reads, or gets values so large that rounding decides.
    """
    r = random.Random(seed)
    f64 = torch.float64

    def make():
        return torch.tensor([[round(r.uniform(-1.5, 1.5), 3) for _ in range(3)] for _ in range(2)], dtype=f64)

    leaves = [make().requires_grad_(), make().requires_grad_(), make()]
    pool = [leaf * 1 for leaf in leaves]
    seen, refused = [], []

    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            total = y.detach().sum()
            ctx.mark_non_differentiable(total)
            return x * y, total

        @staticmethod
        def backward(ctx, g, _):
            x, y = ctx.saved_tensors
            return g * y, g * x

    class AddTo(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.mark_dirty(x)
            x.add_(y)
            return x

        @staticmethod
        def backward(ctx, g):
            return g, g * 2

    def fitted(t, other):
        return other if tuple(other.shape) == tuple(t.shape) else other.sum() * 0.25

    def hook(scale):
        def call(g):
            seen.append(g.tolist())
            return g * scale if scale else None

        return call

    def step(kind, t, u, index, amount):
        rows = t.shape[0] if t.dim() else 0
        at = index % rows if rows else 0
        if kind == 0:
            pool.append(t * fitted(t, u))
        elif kind == 1:
            pool.append(t + fitted(t, u))
        elif kind == 2:
            pool.append(t.sin() if index < 4 else t.sigmoid())
        elif kind == 3:
            pool.append(torch.where(t > 0, t, fitted(t, u)) if index < 4 else t.clamp(-0.7, 0.7))
        elif kind == 4 and rows:
            pool.append(t[at] if index < 3 else t[index % 2 :] if index < 6 else t[::2])
        elif kind == 5 and rows:
            pool.append(t[torch.tensor([at, 0, at])])
        elif kind == 6 and rows:
            pool.append(t[t.detach() > -9] if index < 2 else t.index_select(0, torch.tensor([at])))
        elif kind == 7 and t.dim() == 2:
            pool.append(t.t() if index < 4 else t.diagonal())
        elif kind == 8 and rows:
            pool.append((t.unbind(0) if index < 3 else t.split(1) if index < 6 else t.chunk(2))[0])
        elif kind == 9:
            pool.append(t.unsqueeze(-1).squeeze(-1) if index < 4 else t.reshape(-1))
        elif kind == 10:
            pool.append(t.expand(2, *t.shape)[index % 2] if index < 4 else t.clone())
        elif kind == 11 and rows:
            pool.append(torch.cat([t, t * 2])[: 2 * rows - 1] if index < 4 else torch.stack([t, t.detach()]).sum(0))
        elif kind == 12:
            t.mul_(fitted(t, u) if index < 3 else amount)
        elif kind == 13:
            t.add_(fitted(t, u), alpha=amount)
        elif kind == 14:
            t.copy_(fitted(t, u).expand(t.shape))
        elif kind == 15:
            (t.sin_, t.sigmoid_, t.zero_, t.relu_)[index % 4]()
        elif kind == 16 and rows:
            t[at] = u.sum() * 0.3
        elif kind == 17 and rows:
            t[torch.tensor([at])] = u.sum() * 0.2
        elif kind == 18 and rows:
            if index < 4:
                t.index_add_(0, torch.tensor([at]), t.detach()[:1] * amount)
            else:
                t.masked_fill_(t.detach() > 0.4, amount)
        elif kind == 19:
            with torch.no_grad():
                if index < 3:
                    t.mul_(amount)
                elif index < 5 and rows:
                    pool.append(t[at])
                elif index < 6:
                    t.zero_()
                else:
                    pool.append(t * 2)
        elif kind == 20:
            if index < 4:
                t.detach().mul_(amount)
            else:
                pool.append(t.detach())
        elif kind == 21 and t.requires_grad and (t.grad_fn is not None or t.is_leaf):
            t.register_hook(hook(amount if index < 4 else None))
        elif kind == 22 and t.requires_grad and (t.grad_fn is not None or t.is_leaf):
            t.retain_grad()
        elif kind == 23:
            pool.append(Twice.apply(t, fitted(t, u).expand(t.shape))[index % 2])
        elif kind == 24 and not any(p.retains_grad for p in pool):  # which PyTorch crashes on
            pool.append(AddTo.apply(t, u.detach().sum() * 0.1 + fitted(t, u).expand(t.shape)))
        elif kind == 25 and t.requires_grad and t.grad_fn is not None:
            t.grad_fn.register_hook(lambda gi, go: seen.append([g.tolist() for g in go if g is not None]) and None)
        elif kind == 26:
            with torch.autograd.graph.saved_tensors_hooks(lambda x: x.detach().clone(), lambda x: x):
                pool.append(t * fitted(t, u) + t.exp())
        elif kind == 27 and t.dim() == 2:
            pool.append(t @ t.t() if index < 4 else t.sum(0) * t.mean(1, keepdim=True))
        elif kind == 28 and rows:
            pool.append(t.view(-1)[:rows] if index < 4 else t.narrow(0, at, 1))
        elif kind == 29:
            part = (t.sum() * u.sum() * 0.1).tanh()
            if part.requires_grad and index < 3:
                part.backward(retain_graph=True)
            else:
                pool.append(part)

    for number in range(steps):
        kind = r.randrange(30)
        t, u = pool[r.randrange(len(pool))], pool[r.randrange(len(pool))]
        index, amount = r.randrange(8), round(r.uniform(0.5, 1.5), 3)
        try:
            if 12 <= kind <= 18 and t.requires_grad:
                t.grad_fn  # PyTorch takes a view that is not up to date for a leaf
            step(kind, t, u, index, amount)
        except RuntimeError as error:
            if "INTERNAL ASSERT" in str(error) or "single memory location" in str(error):
                return "broken", number, refused
            refused.append(number)
    chosen = [t for t in pool if r.random() < 0.7 and t.requires_grad]
    flags = [r.random() < 0.5 for _ in pool]
    twice, single = r.random() < 0.25, r.random() < 0.2
    try:
        at = "loss"
        total = None
        for t, flag in zip(chosen, flags, strict=False):
            part = (t * t * 0.5).sum() if flag else t.sum()
            total = part if total is None else total + part
        if total is None:
            return "values", [t.tolist() for t in pool], refused
        if twice:
            at = "grad"
            grads = torch.autograd.grad(total, leaves[:2], create_graph=True, allow_unused=True)
            total = None
            for g in grads:
                if g is not None and g.requires_grad:
                    total = (g * g).sum() if total is None else total + (g * g).sum()
            if total is None:
                return "values", [None if g is None else g.tolist() for g in grads], refused
        at = "backward"
        total.backward(inputs=leaves[:2] if single else None)
    except RuntimeError:
        return "error", at, refused
    result = [t.tolist() for t in pool]
    if any(not abs(v) < 1e6 for v in flatten(result, [])):
        return "broken", "values for which rounding decides", refused
    keeps = [t for t in (*pool, *leaves) if t.retains_grad or t is leaves[0] or t is leaves[1]]
    result += [None if t.grad is None else t.grad.tolist() for t in keeps]
    return "values", result + seen, refused


def copied(torch, seed):
    """`rich` with a copy kept of whatever is saved: what the gradients are when no write can disturb them."""
    with torch.autograd.graph.saved_tensors_hooks(lambda x: x.detach().clone(), lambda x: x):
        return rich(torch, seed)


def flatten(values, into):
    for v in values:
        if isinstance(v, list):
            flatten(v, into)
        else:
            into.append(v)
    return into


def same(a, b):
    """True when two outcomes agree: the same error at the same step, or values equal up to rounding."""
    if b[0] == "broken":
        return True
    if a[0] != b[0] or a[2:] != b[2:]:
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
        elif not (
            p == q or min(abs(p), abs(q)) > 1e6 or abs(p - q) <= 1e-9 * max(1.0, abs(p), abs(q)) or (p != p and q != q)
        ):
            return False
    return True
