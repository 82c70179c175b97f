"""vmap, grad, jvp and what they make together, against loops over examples and against finite differences."""

from __future__ import annotations

import itertools
from typing import Any

import programs_of_tensors
import pytest

import rushlight as torch
from rushlight.func import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap

PROGRAMS = programs_of_tensors.PROGRAMS
BATCH = 3


def close(a: Any, b: Any, rtol: float = 1e-10) -> bool:
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(close(x, y, rtol) for x, y in zip(a, b, strict=True))
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    return torch.equal(a, b) if not a.is_floating_point() else torch.allclose(a, b, rtol=rtol, atol=1e-10)


def loop(f: Any, args: Any, dims: Any) -> Any:
    size = next(a.shape[d] for a, d in zip(args, dims, strict=True) if d is not None)
    rows = [f(*(a if d is None else a.select(d, i) for a, d in zip(args, dims, strict=True))) for i in range(size)]
    if isinstance(rows[0], (tuple, list)):
        return tuple(torch.stack([r[k] for r in rows]) for k in range(len(rows[0])))
    return torch.stack(rows)


def placed(shape: Any, dim: Any) -> Any:
    if dim is None:
        return torch.randn(shape, dtype=torch.float64)
    return torch.randn((BATCH, *shape) if dim == 0 else (*shape, BATCH), dtype=torch.float64)


def all_dims(count: int) -> Any:
    return [d for d in itertools.product([0, None, -1], repeat=count) if any(x is not None for x in d)]


def scalar(f: Any) -> Any:
    """A smooth number made of the floating-point results."""

    def loss(*args: Any) -> Any:
        out = f(*args)
        parts = [o for o in (out if isinstance(out, (tuple, list)) else (out,)) if o.is_floating_point()]
        return sum(((p.double() * 0.7).sin().sum() for p in parts), args[0].sum() * 0)

    return loss


@pytest.mark.parametrize("name", PROGRAMS)
def test_vmap_equals_a_loop(name: str) -> None:
    f, shapes = PROGRAMS[name]
    torch.manual_seed(0)
    for dims in all_dims(len(shapes)):
        args = [placed(s, d) for s, d in zip(shapes, dims, strict=True)]
        got = vmap(f, in_dims=dims)(*args)
        assert close(got, loop(f, args, dims)), f"in_dims {dims}"


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_through_vmap_and_inside_it(name: str) -> None:
    f, shapes = PROGRAMS[name]
    torch.manual_seed(1)
    loss = scalar(f)
    numbers = tuple(range(len(shapes)))
    for dims in all_dims(len(shapes)):
        args = [placed(s, d) for s, d in zip(shapes, dims, strict=True)]

        def plain(*one: Any) -> Any:
            leaves = [x.detach().clone().requires_grad_() for x in one]
            return torch.autograd.grad(loss(*leaves), leaves, allow_unused=True, materialize_grads=True)

        inside = vmap(grad(loss, argnums=numbers), in_dims=dims)(*args)
        assert close(inside, loop(plain, args, dims)), f"vmap(grad), in_dims {dims}"

        leaves = [a.clone().requires_grad_() for a in args]
        want = torch.autograd.grad(loop(loss, leaves, dims).sum(), leaves, allow_unused=True, materialize_grads=True)

        def total(*a: Any, dims: Any = dims) -> Any:
            return vmap(loss, in_dims=dims)(*a).sum()

        assert close(grad(total, argnums=numbers)(*args), want), f"grad(vmap), in_dims {dims}"
        directions = tuple(torch.randn_like(a) for a in args)
        exact = sum((w * d).sum() for w, d in zip(want, directions, strict=True))
        assert close(jvp(total, tuple(args), directions)[1], exact), f"jvp(vmap), in_dims {dims}"


@pytest.mark.parametrize("name", PROGRAMS)
def test_tangents_are_differences(name: str) -> None:
    f, shapes = PROGRAMS[name]
    torch.manual_seed(2)
    loss = scalar(f)
    args = tuple(torch.randn(s, dtype=torch.float64) for s in shapes)
    directions = tuple(torch.randn(s, dtype=torch.float64) for s in shapes)
    value, tangent = jvp(loss, args, directions)
    assert close(value, loss(*args))
    step = 1e-6
    ahead, behind = (loss(*(a + s * step * d for a, d in zip(args, directions, strict=True))) for s in (1, -1))
    assert torch.allclose(tangent, (ahead - behind) / (2 * step), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", [n for n, (_, s) in PROGRAMS.items() if len(s) == 1 and len(s[0]) < 3])
def test_jacobians_and_hessians_agree(name: str) -> None:
    f, (shape,) = PROGRAMS[name]
    torch.manual_seed(3)
    x = torch.randn(shape, dtype=torch.float64)
    out = f(x)
    first = out if isinstance(out, torch.Tensor) else out[0]
    if not first.is_floating_point():
        return

    def one(x: Any) -> Any:
        got = f(x)
        return got if isinstance(got, torch.Tensor) else got[0]

    reverse, forward = jacrev(one)(x), jacfwd(one)(x)
    assert close(reverse, forward)
    rows = []
    for i in range(first.numel()):
        leaf = x.clone().requires_grad_()
        flat = one(leaf).reshape(-1)[i]
        (row,) = torch.autograd.grad(flat, leaf, allow_unused=True, materialize_grads=True)
        rows.append(row)
    assert close(reverse, torch.stack(rows).reshape((*first.shape, *x.shape)))
    loss = scalar(one)
    whole = hessian(loss)(x)
    assert close(whole, jacrev(jacrev(loss))(x), 1e-8)
    assert close(whole.reshape(x.numel(), -1), whole.reshape(x.numel(), -1).T, 1e-8)


def test_results_carry_no_graph_of_their_own() -> None:
    x = torch.randn(3)
    for result in (
        grad(lambda x: (x**3).sum())(x),
        jacrev(torch.sin)(x),
        vmap(grad(lambda x: (x**2).sum()))(torch.randn(2, 3)),
        hessian(lambda x: (x**3).sum())(x),
        vjp(torch.sin, x)[0],
        vjp(torch.sin, x)[1](x)[0],
    ):
        assert not result.requires_grad and result.grad_fn is None


def test_results_stay_differentiable_by_what_is_outside() -> None:
    w = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    x = torch.randn(4, dtype=torch.float64)
    gradient = grad(lambda x: (w * x**3).sum())(x)
    assert gradient.requires_grad
    (by_w,) = torch.autograd.grad(gradient.sum(), w)
    assert close(by_w, (3 * x**2).sum())
    (by_w,) = torch.autograd.grad(vmap(grad(lambda x: w * w * x**3))(x).sum(), w)
    assert close(by_w, (2 * w * 3 * x**2).sum().detach())


def test_nesting_keeps_levels_apart() -> None:
    x, y = torch.tensor(2.0), torch.tensor(3.0)
    assert grad(lambda x: x * grad(lambda y: x + y)(y))(x).item() == 1
    assert jvp(lambda x: x * jvp(lambda y: x * y, (y,), (torch.tensor(1.0),))[1], (x,), (torch.tensor(1.0),))[
        1
    ].item() == pytest.approx(4)
    a = torch.randn(2, 3, 4)
    assert close(vmap(vmap(vmap(torch.sin)))(a), a.sin(), 1e-6)
    outer = vmap(lambda r: vmap(lambda s: r * s)(a[0, 0]))(a[0, 1])
    assert close(outer, torch.outer(a[0, 1], a[0, 0]), 1e-6)
    third = grad(grad(grad(lambda t: t**4)))(torch.tensor(2.0))
    assert third.item() == pytest.approx(48)


def test_out_dims_nested_containers_and_chunks() -> None:
    x = torch.randn(5, 3)
    got = vmap(lambda d: {"twice": d["x"] * 2, "sum": (d["x"].sum(), d["y"])}, in_dims=({"x": 0, "y": None},))(
        {"x": x, "y": torch.ones(2)}
    )
    assert close(got["twice"], x * 2, 1e-6) and got["sum"][1].shape == (5, 2)
    assert vmap(torch.sin, in_dims=1, out_dims=1)(x).shape == (5, 3)
    assert vmap(lambda r: (r, r.sum()), out_dims=(1, 0))(x)[0].shape == (3, 5)
    assert vmap(lambda r: torch.ones(2), out_dims=None)(x).shape == (2,)
    assert close(vmap(torch.sin, chunk_size=2)(x), x.sin(), 1e-6)
    assert close(jacrev(torch.sin, chunk_size=2)(x[0]), torch.diag(x[0].cos()), 1e-6)


def test_random_numbers_inside_vmap() -> None:
    x = torch.zeros(4, 1000)
    with pytest.raises(RuntimeError, match="randomness"):
        vmap(lambda r: r + torch.rand(1000))(x)
    same = vmap(lambda r: r + torch.rand(1000), randomness="same")(x)
    assert all(torch.equal(same[0], row) for row in same)
    different = vmap(lambda r: r + torch.rand(1000), randomness="different")(x)
    assert not torch.equal(different[0], different[1])
    torch.manual_seed(5)
    masks = vmap(lambda r: torch.nn.functional.dropout(r + 1, 0.5), randomness="different")(x)
    assert not torch.equal(masks[0], masks[1]) and set(masks.unique().tolist()) == {0.0, 2.0}
    masks = vmap(lambda r: torch.nn.functional.dropout(r + 1, 0.5), randomness="same")(x)
    assert torch.equal(masks[0], masks[1])


def test_mistakes_are_told() -> None:
    x = torch.randn(3, 2)
    with pytest.raises(ValueError, match="at least one"):
        vmap(torch.sin, in_dims=None)(x) if False else vmap(torch.sin, in_dims=(None,))(x)
    with pytest.raises(ValueError, match="same size"):
        vmap(torch.add)(x, torch.randn(4, 2))
    with pytest.raises(ValueError, match="in_dim"):
        vmap(torch.sin, in_dims=5)(x)
    with pytest.raises(ValueError, match="structure"):
        vmap(torch.sin, in_dims=(0, 0))(x)
    with pytest.raises(RuntimeError, match="item"):
        vmap(lambda r: r.sum().item())(x)
    with pytest.raises(RuntimeError, match="vmap"):
        vmap(lambda r: r if r.sum() > 0 else -r)(x)
    with pytest.raises(RuntimeError, match="dynamic shape"):
        vmap(torch.nonzero)(x)
    with pytest.raises(RuntimeError, match="inplace"):
        vmap(lambda r, s: s.add_(r), in_dims=(0, None))(x, torch.zeros(2))
    with pytest.raises(ValueError, match="must only return Tensors"):
        vmap(lambda r: 3)(x)
    with pytest.raises(RuntimeError, match="scalar"):
        grad(torch.sin)(x)
    with pytest.raises(RuntimeError, match="argnum"):
        grad(torch.sum, argnums=3)(x)
    with pytest.raises(RuntimeError, match="tuples"):
        jvp(torch.sin, x, x)
    with pytest.raises(RuntimeError, match="structure"):
        jvp(torch.add, (x, x), (x,))
    escaped = []
    vmap(lambda r: escaped.append(r) or r)(x)
    with pytest.raises(RuntimeError, match="after vmap"):
        escaped[0] + 1
    with pytest.raises(RuntimeError, match="no examples"):
        vmap(lambda r: torch.histc(r, 2))(torch.zeros(0, 3))
    assert vmap(torch.sin)(torch.zeros(0, 3)).shape == (0, 3)


def _written_parts(x: Any, w: Any) -> Any:
    y = w[0].clone()
    y[1] = x[0] * x[1]
    y[1:].add_((x * x)[:2])
    return y.sin().sum()


def _written_whole(x: Any, w: Any) -> Any:
    y = (w @ x) * 1
    y.mul_(x)
    y[1:].mul_(y[0].clone())
    return y.cos().sum()


def _normalized(x: Any, w: Any) -> Any:
    return torch.nn.functional.layer_norm(w @ x, (3,), x).sin().sum()


@pytest.mark.parametrize("function", [_written_parts, _written_whole, _normalized])
def test_all_ways_to_a_hessian_agree_with_differences(function: Any) -> None:
    x = torch.tensor([0.3, -0.7, 0.9], dtype=torch.float64)
    w = torch.tensor([[0.2, -0.5, 0.8], [1.1, 0.3, -0.4], [-0.6, 0.7, 0.1]], dtype=torch.float64)
    gradient = grad(function)
    step = 1e-5 * torch.eye(3, dtype=torch.float64)
    expected = torch.stack([(gradient(x + d, w) - gradient(x - d, w)) / 2e-5 for d in step])
    for outer, inner in itertools.product((jacrev, jacfwd), repeat=2):
        assert torch.allclose(outer(inner(function))(x, w), expected, rtol=1e-6, atol=1e-8)
    v = torch.tensor([1.0, 2.0, 0.5], dtype=torch.float64)

    def along(x: Any) -> Any:
        return jvp(lambda x: function(x, w), (x,), (v * x,))[1]

    third = torch.stack([(along(x + d) - along(x - d)) / 2e-5 for d in step])
    for way in (grad, jacrev, jacfwd):
        assert torch.allclose(way(along)(x), third, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("part", [slice(1, None), slice(None), 1])
def test_a_write_of_a_dual_number_keeps_an_inner_tape(part: Any) -> None:
    """The tensor written into depends on x only, what is written also on w: grad by x, then forward mode by w."""
    x = torch.tensor([0.3, -0.7, 0.9], dtype=torch.float64)
    w = torch.tensor([[0.2, -0.5, 0.8], [1.1, 0.3, -0.4], [-0.6, 0.7, 0.1]], dtype=torch.float64)

    def function(x: Any, w: Any) -> Any:
        y = x * 1
        y[part].add_((w @ x)[part])
        return y.sin().sum()

    for inner in (grad(function), jacrev(grad(function)), hessian(function), jacrev(hessian(function))):
        tangent = jvp(lambda w, f=inner: f(x, w), (w,), (0.3 * w,))[1]
        differences = (inner(x, w * (1 + 3e-6)) - inner(x, w * (1 - 3e-6))) / 2e-5
        assert torch.allclose(tangent, differences, rtol=1e-6, atol=1e-9)
