"""The testers are tested: they accept right derivatives and refuse wrong ones."""

import pytest


def wrong_function(torch, factor=2.0, second=None):
    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            if second is not None:
                return Second.apply(grad, x)
            return grad * factor * x * x

    class Second(torch.autograd.Function):
        @staticmethod
        def forward(ctx, grad, x):
            ctx.save_for_backward(grad, x)
            return grad * 3 * x * x

        @staticmethod
        def backward(ctx, gg):
            grad, x = ctx.saved_tensors
            return gg * 3 * x * x, gg * grad * second * x

    return Wrong.apply


def inputs(torch):
    return torch.tensor([0.5, -1.5, 2.0], dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize("fast", [False, True])
def test_right_derivatives(torch, fast):
    x = inputs(torch)
    y = torch.tensor([[1.0], [2.0]], dtype=torch.float64, requires_grad=True)
    check, check2 = torch.autograd.gradcheck, torch.autograd.gradgradcheck
    for f in (lambda x, y: x * y, lambda x, y: (x.exp() * y, y.tanh()), lambda x, y: (x * x).sum() * y):
        assert check(f, (x, y), fast_mode=fast)
        assert check2(f, (x, y), fast_mode=fast)
    assert x.grad is None and x.tolist() == [0.5, -1.5, 2.0]


@pytest.mark.parametrize("fast", [False, True])
def test_wrong_derivative(torch, fast):
    f = wrong_function(torch)
    with pytest.raises(torch.autograd.gradcheck.__globals__["GradcheckError"], match="Jacobian mismatch"):
        torch.autograd.gradcheck(f, inputs(torch), fast_mode=fast)
    assert torch.autograd.gradcheck(f, inputs(torch), raise_exception=False, fast_mode=fast) is False
    assert torch.autograd.gradcheck(wrong_function(torch, 3.0), inputs(torch), fast_mode=fast)


@pytest.mark.parametrize("fast", [False, True])
def test_wrong_second_derivative(torch, fast):
    f = wrong_function(torch, second=5.0)
    assert torch.autograd.gradcheck(f, inputs(torch), fast_mode=fast)
    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        torch.autograd.gradgradcheck(f, inputs(torch), fast_mode=fast)
    assert torch.autograd.gradgradcheck(wrong_function(torch, second=6.0), inputs(torch), fast_mode=fast)


@pytest.mark.parametrize("fast", [False, True])
def test_complex(torch, fast):
    z = torch.tensor([0.5 + 1j, -1.0 - 0.25j], dtype=torch.complex128, requires_grad=True)
    x = torch.tensor([0.5, 2.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda z, x: z * z * x, (z, x), fast_mode=fast)
    assert torch.autograd.gradcheck(lambda z: torch.view_as_real(z * z.conj())[..., 0], z, fast_mode=fast)

    class WrongConjugate(torch.autograd.Function):
        @staticmethod
        def forward(ctx, z):
            ctx.save_for_backward(z)
            return z * z

        @staticmethod
        def backward(ctx, grad):
            (z,) = ctx.saved_tensors
            return grad * 2 * z  # the conjugate of 2z is right

    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        torch.autograd.gradcheck(WrongConjugate.apply, z, fast_mode=fast)


def test_nondeterminism(torch):
    class Shaky(torch.autograd.Function):
        calls = 0

        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            Shaky.calls += 1
            return grad * (2 + 1e-8 * (Shaky.calls % 2))

    with pytest.raises(RuntimeError, match="not reentrant"):
        torch.autograd.gradcheck(Shaky.apply, inputs(torch))
    assert torch.autograd.gradcheck(Shaky.apply, inputs(torch), nondet_tol=1e-6)


@pytest.mark.filterwarnings("ignore:Backwards compatibility")
def test_undefined_gradients(torch):
    class Two(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, a, b):
            if a is None and b is None:
                raise RuntimeError("no gradient at all")
            return (0 if a is None else a * 2) + (0 if b is None else b * 3)

    with pytest.raises(RuntimeError, match="Expected backward function to handle undefined output grads"):
        torch.autograd.gradcheck(Two.apply, inputs(torch))
    assert torch.autograd.gradcheck(Two.apply, inputs(torch), check_undefined_grad=False)


def test_inputs(torch):
    with pytest.raises(ValueError, match="at least one input tensor to require gradient"):
        torch.autograd.gradcheck(lambda x: x, torch.ones(3, dtype=torch.float64))
    with pytest.warns(UserWarning, match="not a double precision"):
        torch.autograd.gradcheck(lambda x: x * 2, torch.ones(3, requires_grad=True), eps=1e-3, atol=1e-2)


def test_a_gradient_that_is_not_multiplied(torch):
    class Bad(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.sum()

        @staticmethod
        def backward(ctx, grad):
            return torch.ones(3, dtype=torch.float64)

    with pytest.raises(RuntimeError, match="backward not multiplied by grad_output"):
        torch.autograd.gradcheck(Bad.apply, inputs(torch))


def test_detached_function(torch):
    with pytest.raises(RuntimeError):
        torch.autograd.gradcheck(lambda x: x.detach() * 2, inputs(torch))
