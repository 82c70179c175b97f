"""Dual numbers, and autograd.Function under transformations."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
import rushlight.autograd.forward_ad as fwAD
from rushlight.func import functional_call, grad, jvp, linearize, stack_module_state, vmap


def test_dual_numbers_go_through_operations() -> None:
    x, t = torch.randn(3, dtype=torch.float64), torch.randn(3, dtype=torch.float64)
    with fwAD.dual_level():
        dual = fwAD.make_dual(x, t)
        out = fwAD.unpack_dual((dual * dual).sin().sum())
        assert torch.allclose(out.tangent, ((x * x).cos() * 2 * x * t).sum())
        assert torch.equal(out.primal, (x * x).sin().sum())
        assert fwAD.unpack_dual(x).tangent is None
        assert float(dual[0]) == float(x[0]) and dual.tolist() == x.tolist()
        assert fwAD.unpack_dual(dual > 0).tangent is None
        assert fwAD.unpack_dual(dual.detach()).tangent is None
    assert fwAD.unpack_dual(dual).tangent is None
    assert torch.equal(dual + 0, x)


def test_writes_carry_tangents() -> None:
    x, t = torch.randn(3), torch.ones(3)
    with fwAD.dual_level():
        dual = fwAD.make_dual(x.clone(), t.clone())
        y = torch.zeros(2, 3)
        y[0] = dual * 2
        y.mul_(3)
        assert torch.equal(fwAD.unpack_dual(y).tangent, torch.tensor([[6.0] * 3, [0.0] * 3]))
        z = dual.clone()
        z[1:] = 0
        z *= dual
        assert torch.allclose(fwAD.unpack_dual(z).tangent, torch.cat([2 * x[:1], x.new_zeros(2)]))
        assert torch.equal(fwAD.unpack_dual(dual).tangent, t)


def test_levels_are_checked() -> None:
    x = torch.ones(2)
    with pytest.raises(RuntimeError, match="no level"):
        fwAD.make_dual(x, x)
    with pytest.raises(RuntimeError, match="active"):
        fwAD.exit_dual_level()
    with fwAD.dual_level():
        with pytest.raises(RuntimeError, match="Nested"):
            fwAD.enter_dual_level()
        with pytest.raises(RuntimeError, match="size"):
            fwAD.make_dual(x, torch.ones(3))
        with pytest.raises(ValueError, match="floating"):
            fwAD.make_dual(torch.ones(2, dtype=torch.int64), x)


class Cube(torch.autograd.Function):
    """With rules of its own for batches and tangents."""

    @staticmethod
    def forward(x: Any) -> Any:
        return x**3, x.sign()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        (x,) = inputs
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    def backward(ctx: Any, grad: Any, _: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 3 * x**2 * grad

    @staticmethod
    def jvp(ctx: Any, tangent: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 3 * x**2 * tangent, None

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Any) -> Any:
        assert info.batch_size == x.shape[in_dims[0]]
        return Cube.apply(x), (in_dims[0], in_dims[0])


class Generated(torch.autograd.Function):
    """Whose batch rule is made from its methods."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Any, w: Any) -> Any:
        return x * w.sum()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        x, w = ctx.saved_tensors
        return grad * w.sum(), (grad * x).sum() * torch.ones_like(w)


def test_functions_under_transformations() -> None:
    x = torch.randn(4, 3, dtype=torch.float64)
    w = torch.randn(2, dtype=torch.float64)
    assert torch.equal(vmap(lambda r: Cube.apply(r)[0])(x), x**3)
    assert torch.allclose(vmap(grad(lambda r: Cube.apply(r)[0].sum()))(x), 3 * x**2)
    assert torch.allclose(jvp(lambda r: Cube.apply(r)[0], (x,), (x,))[1], 3 * x**3)
    assert torch.allclose(vmap(Generated.apply, in_dims=(0, None))(x, w), x * w.sum())
    by_x, by_w = grad(lambda x, w: vmap(Generated.apply, in_dims=(0, None))(x, w).sum(), argnums=(0, 1))(x, w)
    assert torch.allclose(by_x, w.sum().expand(4, 3)) and torch.allclose(by_w, x.sum().expand(2))
    each = vmap(grad(lambda r, w: Generated.apply(r, w).sum(), argnums=1), in_dims=(0, None))(x, w)
    assert torch.allclose(each, x.sum(1, keepdim=True).expand(4, 2))

    class Bare(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    with pytest.raises(RuntimeError, match="vmap support"):
        vmap(Bare.apply)(x)
    with pytest.raises(RuntimeError, match="jvp"):
        jvp(Bare.apply, (x,), (x,))


def test_gradients_of_each_example_and_ensembles() -> None:
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2)).double()
    params = {n: p.detach() for n, p in net.named_parameters()}
    x, y = torch.randn(6, 3, dtype=torch.float64), torch.randint(0, 2, (6,))

    def loss(params: Any, x: Any, y: Any) -> Any:
        return torch.nn.functional.cross_entropy(functional_call(net, params, (x[None],)), y[None])

    each = vmap(grad(loss), in_dims=(None, 0, 0))(params, x, y)
    for i in range(6):
        net.zero_grad()
        torch.nn.functional.cross_entropy(net(x[i : i + 1]), y[i : i + 1]).backward()
        for name, p in net.named_parameters():
            assert torch.allclose(each[name][i], p.grad)

    models = [torch.nn.Linear(3, 2).double() for _ in range(4)]
    stacked, buffers = stack_module_state(models)
    out = vmap(lambda p, b, x: functional_call(models[0], (p, b), (x,)), in_dims=(0, 0, None))(stacked, buffers, x)
    assert torch.allclose(out, torch.stack([m(x) for m in models]))
    value, derivative = linearize(torch.sin, x)
    assert torch.allclose(derivative(x), x.cos() * x) and torch.equal(value, x.sin())


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_against_pytorch() -> None:
    reference = pytest.importorskip("torch")
    x = torch.randn(3, 4, dtype=torch.float64)
    theirs = reference.from_numpy(x.numpy().copy())

    def same(mine: Any, other: Any) -> None:
        assert torch.allclose(mine, torch.from_numpy(other.detach().numpy().copy()), rtol=1e-10)

    def f(t: Any, x: Any) -> Any:
        return t.nn.functional.softmax(x @ x.mT, -1).logsumexp(0)

    same(torch.func.jacrev(lambda x: f(torch, x))(x), reference.func.jacrev(lambda x: f(reference, x))(theirs))
    same(torch.func.jacfwd(lambda x: f(torch, x))(x), reference.func.jacfwd(lambda x: f(reference, x))(theirs))
    same(
        torch.func.hessian(lambda x: f(torch, x).sum())(x),
        reference.func.hessian(lambda x: f(reference, x).sum())(theirs),
    )


class WrongTangent(torch.autograd.Function):
    @staticmethod
    def forward(x: Any) -> Any:
        return x**3

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return 3 * ctx.saved_tensors[0] ** 2 * grad

    @staticmethod
    def jvp(ctx: Any, tangent: Any) -> Any:
        return 2 * ctx.saved_tensors[0] ** 2 * tangent


@pytest.mark.parametrize("fast_mode", [False, True])
def test_gradcheck_finds_wrong_tangents(fast_mode: bool) -> None:
    from rushlight.autograd import GradcheckError, gradcheck, gradgradcheck

    x = torch.randn(3, dtype=torch.float64, requires_grad=True)
    c = torch.randn(3, dtype=torch.complex128, requires_grad=True)
    options = {"check_forward_ad": True, "fast_mode": fast_mode}
    assert gradcheck(WrongTangent.apply, x, fast_mode=fast_mode)
    with pytest.raises(GradcheckError, match="forward mode"):
        gradcheck(WrongTangent.apply, x, **options)
    assert not gradcheck(WrongTangent.apply, x, raise_exception=False, **options)
    assert gradcheck(lambda x: (x.sin(), x.sum()), x, check_batched_forward_grad=True, **options)
    assert gradcheck(lambda c: (c * c.conj()).exp(), c, **options)
    assert gradcheck(lambda x: x.exp(), x, check_backward_ad=False, **options)
    assert gradgradcheck(lambda x: x.exp(), x, check_fwd_over_rev=True, fast_mode=fast_mode)
    with pytest.raises(ValueError, match="at least one"):
        gradcheck(torch.exp, x, check_backward_ad=False)
