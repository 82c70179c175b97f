"""autograd.Function."""

import pytest


def make_exp(torch):
    class Exp(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, grad):
            (y,) = ctx.saved_tensors
            return grad * y

    return Exp


def test_first_and_second_derivative(torch):
    exp = make_exp(torch).apply
    x = torch.tensor([0.0, 1.0], dtype=torch.float64, requires_grad=True)
    y = exp(x)
    assert y.grad_fn.name() == "ExpBackward"
    assert isinstance(y.grad_fn, torch.autograd.graph.Node) or torch.__name__ == "torch"
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x, create_graph=True)
    (t,) = torch.autograd.grad(h.sum(), x)
    e = x.detach().exp().tolist()
    assert g.tolist() == h.tolist() == t.tolist() == pytest.approx(e)


def test_context_attributes_and_other_arguments(torch):
    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor, name, w=None):
            ctx.factor = factor
            assert ctx.needs_input_grad == (True, False, False, True)
            return x * factor + w

        @staticmethod
        def backward(ctx, grad):
            assert ctx.needs_input_grad == (True, False, False, True)
            return grad * ctx.factor, None, None, grad

    x = torch.ones(2, requires_grad=True)
    w = torch.ones(2, requires_grad=True)
    Scale.apply(x, 3.0, "name", w).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0] and w.grad.tolist() == [1.0, 1.0]


def test_setup_context(torch):
    class Mul(torch.autograd.Function):
        @staticmethod
        def forward(x, y):
            return x * y

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)
            ctx.shape = output.shape

        @staticmethod
        def backward(ctx, grad):
            x, y = ctx.saved_tensors
            return grad * y, grad * x

    x = torch.tensor([2.0], requires_grad=True)
    y = torch.tensor([3.0], requires_grad=True)
    Mul.apply(x, y).backward()
    assert (x.grad.item(), y.grad.item()) == (3.0, 2.0)


def test_several_results(torch):
    class Two(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, "text", x * 3

        @staticmethod
        def backward(ctx, a, text, b):
            assert text is None
            return a * 2 + b * 3

    x = torch.ones(2, requires_grad=True)
    a, text, b = Two.apply(x)
    assert text == "text"
    assert (a.output_nr, b.output_nr) == (0, 2)
    (a + b).sum().backward()
    assert x.grad.tolist() == [5.0, 5.0]
    x.grad = None
    a, _, b = Two.apply(x)
    b.sum().backward()  # the missing gradient came as zeros
    assert x.grad.tolist() == [3.0, 3.0]


def test_materialize_grads(torch):
    seen = []

    class Two(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, a, b):
            seen.append((a, b))
            return b * 3

    x = torch.ones(2, requires_grad=True)
    _, b = Two.apply(x)
    b.sum().backward()
    assert seen[0][0] is None


def test_mark_non_differentiable(torch):
    class Split(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y, z = x * 2, x.floor()
            ctx.mark_non_differentiable(z)
            return y, z

        @staticmethod
        def backward(ctx, a, b):
            return a * 2 + b

    x = torch.ones(2, requires_grad=True)
    y, z = Split.apply(x)
    assert y.requires_grad and not z.requires_grad
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_mark_dirty(torch):
    class AddOne(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.add_(1)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad * 7

    w = torch.ones(2, requires_grad=True)
    x = w * 1
    y = AddOne.apply(x)
    assert y is x
    assert x.grad_fn.name() == "AddOneBackward"
    x.sum().backward()
    assert w.grad.tolist() == [7.0, 7.0]
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad has been used in an in-place operation"):
        AddOne.apply(torch.ones(2, requires_grad=True))
    w.grad = None
    x = w * 1
    v = x[:1]
    AddOne.apply(v)
    x.sum().backward()
    assert w.grad.tolist() == [7.0, 1.0]


def test_dirty_inputs_must_be_returned(torch):
    class Bad(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad

    with pytest.raises(
        RuntimeError, match="Some elements marked as dirty during the forward method were not returned as output"
    ):
        Bad.apply(torch.ones(2, requires_grad=True) * 1)


def test_an_input_returned_as_it_is(torch):
    class Same(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad * 5

    x = torch.ones(2, requires_grad=True)
    y = Same.apply(x)
    assert y is not x and y.data_ptr() == x.data_ptr()
    y.sum().backward()
    assert x.grad.tolist() == [5.0, 5.0]


def test_a_view_returned_from_forward(torch):
    class First(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x[0]

        @staticmethod
        def backward(ctx, grad):
            return torch.cat([grad.reshape(1), torch.zeros(1)])

    x = torch.ones(2, requires_grad=True)
    y = First.apply(x * 1)
    y.backward()
    assert x.grad.tolist() == [1.0, 0.0]
    with pytest.raises(RuntimeError, match="is a view and is being modified inplace"):
        First.apply(x * 1).mul_(2)


def test_wrong_number_of_gradients(torch):
    class Bad(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x + y

        @staticmethod
        def backward(ctx, grad):
            return (grad,) * Bad.count

    x = torch.ones(2, requires_grad=True)
    Bad.count = 1
    with pytest.raises(
        RuntimeError, match=r"BadBackward returned an incorrect number of gradients \(expected 2, got 1\)"
    ):
        Bad.apply(x, x).sum().backward()
    Bad.count = 3
    with pytest.raises(
        RuntimeError, match=r"BadBackward returned an incorrect number of gradients \(expected 2, got 3\)"
    ):
        Bad.apply(x, x).sum().backward()


def test_trailing_nones_are_fine(torch):
    class Fine(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2, None, None

    x = torch.ones(2, requires_grad=True)
    Fine.apply(x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_wrong_gradients(torch):
    class Bad(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, n):
            return x * n

        @staticmethod
        def backward(ctx, grad):
            return Bad.result(grad)

    x = torch.ones(2, requires_grad=True)
    for result, error, text in [
        (
            lambda g: (g, g),
            RuntimeError,
            "returned a gradient different than None at position 2, but the corresponding forward input was not",
        ),
        (lambda g: (3, None), RuntimeError, "expected Variable or None"),
        (
            lambda g: (g[:1].expand(3), None),
            RuntimeError,
            r"BadBackward returned an invalid gradient at index 0 - got \[3\] but expected shape compatible with \[2\]",
        ),
    ]:
        Bad.result = staticmethod(result)
        with pytest.raises(error, match=text):
            Bad.apply(x, 2).sum().backward()


def test_errors_name_the_function(rl):
    class Bad(rl.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad, grad

    x = rl.ones(2, requires_grad=True)
    y = Bad.apply(x)  # here
    with pytest.raises(RuntimeError) as info:
        y.sum().backward()
    assert "y = Bad.apply(x)  # here" in str(info.value)


def test_save_for_backward_takes_tensors(torch):
    class Bad(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, 3)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad

    with pytest.raises(TypeError, match="save_for_backward can only save variables, but argument 1 is of type"):
        Bad.apply(torch.ones(2, requires_grad=True))


def test_saved_none(torch):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(None, x)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            nothing, x = ctx.saved_tensors
            assert nothing is None and x.requires_grad
            return grad * 2

    x = torch.ones(2, requires_grad=True)
    F.apply(x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_saved_tensor_modified_and_freed(torch):
    exp = make_exp(torch).apply
    x = torch.zeros(2, requires_grad=True)
    y = exp(x)
    y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    y = exp(x)
    y.sum().backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.sum().backward()


def test_once_differentiable(torch):
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * 2 * x

    x = torch.tensor([3.0], requires_grad=True)
    y = Square.apply(x)
    (g,) = torch.autograd.grad((y * y).sum(), x, create_graph=True)
    assert g.item() == 2 * 9 * 6
    with pytest.raises(
        RuntimeError, match="trying to differentiate twice a function that was marked with @once_differentiable"
    ):
        g.backward()


def test_recording_inside_forward_is_off(torch):
    modes = []

    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            modes.append(torch.is_grad_enabled())
            y = x * 2
            assert not y.requires_grad
            return y

        @staticmethod
        def backward(ctx, grad):
            modes.append(torch.is_grad_enabled())
            return grad * 2

    x = torch.ones(1, requires_grad=True)
    F.apply(x).backward()
    F.apply(x).backward(create_graph=True)
    assert modes == [False, False, False, True]
    with torch.no_grad():
        assert not F.apply(x).requires_grad


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
def test_not_instantiated(torch):
    with pytest.raises(RuntimeError):
        make_exp(torch)()(torch.ones(1))


def test_missing_methods(torch):
    class Empty(torch.autograd.Function):
        pass

    class NoBackward(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    with pytest.raises(NotImplementedError, match="You must implement the forward"):
        Empty.apply(torch.ones(1))
    with pytest.raises(NotImplementedError, match="You must implement either the backward or vjp"):
        NoBackward.apply(torch.ones(1, requires_grad=True)).backward()


def test_backward_with_gradient_penalty(torch):
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * 3 * x * x

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (g,) = torch.autograd.grad(Cube.apply(x).sum(), x, create_graph=True)
    (g * g).sum().backward()
    assert x.grad.tolist() == [36.0, 288.0]


def test_a_hook_on_a_function_node(torch):
    exp = make_exp(torch).apply
    x = torch.zeros(2, requires_grad=True)
    y = exp(x)
    y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] * 2,))
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_long_chain_of_functions(rl):
    exp = make_exp(rl).apply
    x = rl.zeros(1, requires_grad=True)
    y = x
    for _ in range(20_000):
        y = exp(y * 0)
    y.backward()
    del y


def test_vjp_name(torch):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def vjp(ctx, grad):
            return grad * 2

    x = torch.ones(1, requires_grad=True)
    F.apply(x).backward()
    assert x.grad.item() == 2.0
