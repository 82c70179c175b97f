"""In-place writes and views."""

import weakref

import pytest


def test_inplace_on_an_intermediate(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    y.mul_(3)
    y.add_(1)
    y.sum().backward()
    assert x.grad.tolist() == [6.0, 6.0]


def test_the_old_value_is_saved_before_the_write(torch):
    w = torch.tensor([2.0, 3.0], requires_grad=True)
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x + 0
    y.mul_(w)
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 3.0]
    assert w.grad.tolist() == [1.0, 2.0]


def test_the_result_is_saved_after_the_write(torch):
    x = torch.tensor([0.0, 1.0], dtype=torch.float64, requires_grad=True)
    y = x + 0
    y.exp_()
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    assert g.tolist() == pytest.approx(x.detach().exp().tolist())
    (h,) = torch.autograd.grad(g.sum(), x)
    assert h.tolist() == pytest.approx(x.detach().exp().tolist())


def test_a_tensor_that_did_not_require_grad(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = torch.zeros(2)
    y.add_(x)
    assert y.requires_grad and not y.is_leaf
    (y * y).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_modified_saved_tensor_is_found_out(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    z = y * y
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()
    y = x.sigmoid()
    y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    y = x * 1
    y.mul_(y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_a_write_through_a_view_or_detach_is_found_out(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    for write in (lambda y: y[0].zero_(), lambda y: y.detach().zero_(), lambda y: y.view(2, 1).zero_()):
        y = x.exp()
        with torch.no_grad():
            write(y)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()


def test_data_has_a_version_of_its_own(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x.exp()
    y.data.zero_()
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 0.0]
    x.data.mul_(2)
    assert x.tolist() == [2.0, 4.0]
    assert x._version == 0


def test_error_names_the_lines_and_shapes(rl):
    x = rl.ones(3, requires_grad=True)
    y = x.sigmoid()  # saved here
    y.mul_(2)  # written here
    with pytest.raises(RuntimeError) as info:
        y.sum().backward()
    text = str(info.value)
    assert "one of the variables needed for gradient computation has been modified by an inplace operation" in text
    assert "float32 tensor of shape [3], saved by SigmoidBackward0, is at version 1; expected version 0" in text
    assert "y = x.sigmoid()  # saved here" in text
    assert "overwritten by mul_ at" in text
    assert "y.mul_(2)  # written here" in text
    y = x.exp()
    y[1:] = 0  # and here
    with pytest.raises(RuntimeError, match=r"(?s)overwritten by (copy|fill)_ at .*y\[1:\] = 0  # and here"):
        y.sum().backward()
    assert "out-of-place" in text


def test_leaves(torch):
    x = torch.ones(2, requires_grad=True)
    text = "a leaf Variable that requires grad is being used in an in-place operation"
    with pytest.raises(RuntimeError, match=text):
        x.add_(1)
    with pytest.raises(
        RuntimeError, match="a view of a leaf Variable that requires grad is being used in an in-place operation"
    ):
        x[0].add_(1)
    with pytest.raises(
        RuntimeError, match="a view of a leaf Variable that requires grad is being used in an in-place operation"
    ):
        x.view(2, 1).mul_(2)
    with torch.no_grad():
        x.add_(1)
        x[0] = 5
    assert x.tolist() == [5.0, 2.0]
    assert x.is_leaf and x.grad_fn is None


def test_write_to_a_view_reaches_the_base(torch):
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 1
    v = y[1:]
    v.mul_(10)
    assert type(y.grad_fn).__name__ == "CopySlices"
    assert v.grad_fn.name().startswith("AsStrided")
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 10.0, 10.0]


def test_write_to_the_base_reaches_views(torch):
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 1
    v = y[1:]
    y.mul_(10)
    v.sum().backward()
    assert x.grad.tolist() == [0.0, 10.0, 10.0]


def test_write_through_one_view_reaches_another(torch):
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    w = torch.tensor([5.0, 7.0], requires_grad=True)
    y = x * 1
    row, column, turned = y[0], y[:, 0], y.t()
    row.mul_(w)
    assert column.requires_grad
    (column * torch.tensor([10.0, 100.0])).sum().backward(retain_graph=True)
    assert x.grad.tolist() == [[50.0, 0.0], [100.0, 0.0]]
    assert w.grad.tolist() == [10.0, 0.0]
    (turned * turned).sum().backward()
    assert w.grad.tolist() == [10.0 + 2 * 5.0, 2 * 2 * 7.0 * 2.0]


def test_view_of_a_view(torch):
    x = torch.ones(2, 3, requires_grad=True)
    y = x * 1
    v = y[0][1:]
    assert v._base is y
    v.mul_(4)
    (y * y).sum().backward()
    assert x.grad.tolist() == [[2.0, 32.0, 32.0], [2.0, 2.0, 2.0]]


def test_base_that_did_not_require_grad(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = torch.zeros(3)
    v = y[:2]
    other = y[1:]
    v.copy_(x * 3)
    assert y.requires_grad and other.requires_grad
    (other * torch.tensor([10.0, 100.0])).sum().backward()
    assert x.grad.tolist() == [0.0, 30.0]


def test_setitem(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = torch.zeros(2, 2)
    y[0] = x
    y[1, 0] = x[1] * 3
    (y * y).sum().backward()
    assert x.grad.tolist() == [2.0, 2 * 2 + 2 * 6 * 3]


def test_overwritten_part_gets_no_gradient(torch):
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 2
    y[1] = 0
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 0.0, 2.0]
    x.grad = None
    y = x * 2
    y.zero_()
    assert y.requires_grad
    y.sum().backward()
    assert x.grad is None or x.grad.tolist() == [0.0, 0.0, 0.0]


def test_in_place_without_a_derivative(torch):
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 2
    y.fill_(3)
    (y * y).sum().backward()
    assert x.grad is None or x.grad.tolist() == [0.0, 0.0, 0.0]


def test_second_derivative_through_a_write_to_a_view(torch):
    x = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64, requires_grad=True)
    y = x * x
    y[1:].mul_(x[:2])
    y[0].exp_()
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (h,) = torch.autograd.grad((g * g).sum(), x)
    x0, x1, x2 = x.tolist()
    e = 2.718281828459045 ** (x0 * x0)
    assert g.tolist() == pytest.approx([2 * x0 * e + x1 * x1, 2 * x0 * x1 + x2 * x2, 2 * x1 * x2])
    g0, g1, g2 = g.tolist()
    h0 = 2 * (g0 * (2 * e + 4 * x0 * x0 * e) + g1 * 2 * x1)
    h1 = 2 * (g0 * 2 * x1 + g1 * 2 * x0 + g2 * 2 * x2)
    h2 = 2 * (g1 * 2 * x2 + g2 * 2 * x1)
    assert h.tolist() == pytest.approx([h0, h1, h2])


def test_multi_output_views(torch):
    x = torch.ones(2, 3, requires_grad=True)
    for views in (lambda y: y.unbind(), lambda y: y.split(1), lambda y: y.chunk(2)):
        y = x.clone()
        v = views(y)[0]
        with pytest.raises(RuntimeError, match="is a view and is being modified inplace"):
            v.mul_(2)
        w = views(y)[0].narrow(0, 0, 1)
        with pytest.raises(RuntimeError, match="is a view and is being modified inplace"):
            w.mul_(2)
        with torch.no_grad():
            v.mul_(2)


def test_multi_output_view_without_grad(torch):
    y = torch.ones(2, 3)
    a, _ = y.unbind()
    a.mul_(2)
    assert y.tolist() == [[2.0, 2.0, 2.0], [1.0, 1.0, 1.0]]


def test_view_made_under_no_grad(torch):
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    with torch.no_grad():
        v = y[0]
    assert v.requires_grad
    assert v.grad_fn is None
    with pytest.raises(RuntimeError, match="view was created in no_grad mode"):
        v.mul_(2)
    with torch.no_grad():
        v.mul_(2)
    assert y.tolist() == [4.0, 2.0, 2.0]


def test_inference_tensors(torch):
    x = torch.ones(3, requires_grad=True)
    y = x * 1
    with torch.inference_mode():
        t = torch.ones(3)
        view = y[0:1]
    assert t.is_inference() and not view.is_inference()
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode is not allowed"):
        t.mul_(2)
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        x * t
    with pytest.raises(
        RuntimeError, match="Setting requires_grad=True on inference tensor outside InferenceMode is not allowed"
    ):
        t.requires_grad_()
    with pytest.raises(RuntimeError, match="view was created in inference mode"):
        view.mul_(2)
    assert not (t * 2).requires_grad
    assert (x + t).requires_grad
    with torch.inference_mode():
        t.mul_(2)
        assert not (x * t).requires_grad


def test_detach(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    d = y.detach()
    assert not d.requires_grad and d.is_leaf
    d[0] = 7
    assert y.tolist() == [7.0, 4.0]
    assert y._version == d._version == 1
    assert y.detach_() is y
    assert not y.requires_grad and y.is_leaf
    with pytest.raises(RuntimeError, match="Can't detach views in-place"):
        (x * 2)[0].detach_()


def test_copy_from_another_dtype(torch):
    x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    y = torch.zeros(2)
    y.copy_(x)
    (y * y).sum().backward()
    assert x.grad.dtype == torch.float64
    assert x.grad.tolist() == [2.0, 4.0]


def test_inplace_broadcast_operand(torch):
    b = torch.tensor(3.0, requires_grad=True)
    y = torch.ones(2, 2)
    y[0].mul_(b)
    y.sum().backward()
    assert b.grad.item() == 2.0


def test_view_of_transposed_memory(torch):
    x = torch.arange(6.0).view(2, 3).t().clone().t().detach().requires_grad_()
    y = x * 1
    v = y.t()[1:]
    v.mul_(3)
    (y * torch.arange(6.0).view(2, 3)).sum().backward()
    assert x.grad.tolist() == [[0.0, 3.0, 6.0], [3.0, 12.0, 15.0]]


def test_expanded_view_after_a_write_to_the_base(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1
    e = y.expand(3, 2)
    y.mul_(2)
    e.sum().backward()
    assert x.grad.tolist() == [6.0, 6.0]


def test_complex_seen_as_real(torch):
    x = torch.tensor([1 + 2j, 3 + 4j], requires_grad=True)
    y = x * 1
    r = torch.view_as_real(y)
    r[:, 0].mul_(5)
    y.backward(torch.tensor([1 + 1j, 2 + 3j]))
    assert x.grad.tolist() == [5 + 1j, 10 + 3j]


def test_out_arguments(torch):
    x = torch.ones(3, requires_grad=True)
    for run in (lambda: torch.add(x, 1, out=torch.ones(3)), lambda: torch.add(torch.ones(3), 1, out=x)):
        with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
            run()
    with torch.no_grad():
        torch.add(torch.ones(3), 1, out=x)
    assert x.tolist() == [2.0, 2.0, 2.0]


def test_views_in_place(torch):
    x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True)
    y = x * 2
    before = y.grad_fn
    y.t_()
    assert tuple(y.shape) == (3, 2)
    assert y.grad_fn is not before
    (y * torch.tensor([[1.0], [10.0], [100.0]])).sum().backward()
    assert x.grad.tolist() == [[2.0, 20.0, 200.0]] * 2
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        x.t_()


def test_as_strided(torch):
    x = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0], requires_grad=True)
    y = x * 1
    v = y.as_strided((2, 3), (1, 1), 1)  # its elements overlap
    w = v * torch.tensor([[1.0, 10.0, 100.0], [1000.0, 10000.0, 100000.0]])
    y.mul_(3)  # the view's node keeps no values
    w.sum().backward()
    assert x.grad.tolist() == [0.0, 1.0, 1010.0, 10100.0, 100000.0]


def test_many_outputs(torch):
    x = torch.ones(70_000, requires_grad=True)
    last = x.unbind()[69_999]
    assert last.output_nr == 69_999
    (last * 3).backward()
    assert x.grad[69_999].item() == 3.0 and x.grad.sum().item() == 3.0


@pytest.mark.parametrize(
    "write, twin",
    [
        (lambda t: t.clamp_(0.2, 0.8), lambda t: t.clamp(0.2, 0.8)),
        (lambda t: t.float_power_(2.0), lambda t: t.float_power(2.0)),
        (lambda t: t.ldexp_(t.new_ones(3)), lambda t: t.ldexp(t.new_ones(3))),
        (lambda t: t.logit_(), lambda t: t.logit()),
        (lambda t: t.polygamma_(1), lambda t: t.polygamma(1)),
        (lambda t: t.detach().clone().ldexp_(t), lambda t: t.detach().ldexp(t)),
    ],
)
def test_in_place_compositions_save_the_old_value(torch, write, twin):
    def gradient(f):
        x = torch.tensor([0.1, 0.5, 0.9], dtype=torch.float64, requires_grad=True)
        y = f(x * 1)
        (y * y).sum().backward()
        return x.grad

    assert torch.equal(gradient(write), gradient(twin))


def test_rrelu_in_place(rl):
    x = rl.tensor([-1.0, 2.0], requires_grad=True)
    y = x * 1
    rl.nn.functional.rrelu(y, 0.25, 0.25, inplace=True).sum().backward()
    assert x.grad.tolist() == [0.25, 1.0]


@pytest.mark.parametrize("history", [False, True])
@pytest.mark.parametrize("through", ["itself", "a view", "a view that was saved", "a function"])
def test_a_write_into_what_was_saved_keeps_no_cycle(rl, no_gc, history, through):
    """What is written with a result of nodes that saved it would keep them, and they it."""

    class Assign(rl.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.mark_dirty(x)
            return x.copy_(y)

        @staticmethod
        def backward(ctx, g):
            return None, g

    w = rl.ones(2, requires_grad=True)
    h = w * 1 if history else rl.ones(2)
    product = (h[:1] if through == "a view that was saved" else h) * w
    if through == "a view":
        h[:1].add_(product[:1])
    elif through == "a function":
        Assign.apply(h, product)
    else:
        h.add_(product)
    assert h.requires_grad
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        h.sum().backward()
    gone = [weakref.ref(w), weakref.ref(h)]
    del w, h, product
    assert [r() for r in gone] == [None, None]
