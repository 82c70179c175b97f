"""backward and grad."""

import threading

import pytest


def same(a, b):
    return a.tolist() == b.tolist()


def test_gradients_of_a_small_graph(torch):
    w = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    b = torch.tensor([0.5, -1.0], requires_grad=True)
    ((w * b + w).sum() * 2).backward()
    assert w.grad.tolist() == [[3.0, 0.0], [3.0, 0.0]]
    assert b.grad.tolist() == [8.0, 12.0]
    assert w.grad.is_contiguous()


def test_gradients_accumulate_in_the_same_tensor(torch):
    x = torch.ones(3, requires_grad=True)
    (x * 2).sum().backward()
    first = x.grad
    version = first._version
    (x * 3).sum().backward()
    assert x.grad is first
    assert first.tolist() == [5.0, 5.0, 5.0]
    assert first._version == version + 1


def test_a_tensor_used_many_times(torch):
    x = torch.tensor(2.0, requires_grad=True)
    y = x * x
    z = y * x + y
    z.backward()
    assert x.grad.item() == 3 * 4 + 2 * 2


def test_second_backward_is_refused(torch):
    x = torch.ones(3, requires_grad=True)
    y = (x * x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


def test_second_backward_works_when_nothing_was_saved(torch):
    x = torch.ones(3, requires_grad=True)
    y = (x + 1).sum()
    y.backward()
    y.backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


def test_retain_graph(torch):
    x = torch.ones(3, requires_grad=True)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [4.0, 4.0, 4.0]
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_non_scalar_root(torch):
    x = torch.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        (x * 2).backward()
    (x * 2).backward(torch.tensor([1.0, 2.0, 3.0]))
    assert x.grad.tolist() == [2.0, 4.0, 6.0]


def test_errors_of_roots(torch):
    x = torch.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="does not require grad and does not have a grad_fn"):
        torch.ones(3).sum().backward()
    with pytest.raises(
        RuntimeError,
        match=r"Mismatch in shape: grad_output\[0\] has a shape of .*\[2\].* and output\[0\] has a shape of .*\[3\]",
    ):
        (x * 2).backward(torch.ones(2))
    with pytest.raises(
        RuntimeError, match="For complex Tensors, both grad_output and output are required to have the same dtype"
    ):
        (x * 2).backward(torch.ones(3, dtype=torch.complex64))
    with pytest.raises(RuntimeError, match="got 2 tensors and 1 gradients"):
        torch.autograd.backward([x.sum(), (x * 2).sum()], [None])


def test_grad_of_another_dtype_is_converted(torch):
    x = torch.ones(3, requires_grad=True)
    (x * 2).backward(torch.ones(3, dtype=torch.float64))
    assert x.grad.dtype == torch.float32
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


def test_grad_function(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = torch.tensor([3.0, 4.0], requires_grad=True)
    z = x * y
    gx, gy = torch.autograd.grad(z.sum(), (x, y))
    assert gx.tolist() == [3.0, 4.0]
    assert gy.tolist() == [1.0, 2.0]
    assert x.grad is None and y.grad is None
    assert not gx.requires_grad


def test_grad_with_respect_to_an_intermediate(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 3
    z = (y * y).sum()
    gy, gx = torch.autograd.grad(z, (y, x), retain_graph=True)
    assert gy.tolist() == [6.0, 12.0]
    assert gx.tolist() == [18.0, 36.0]
    (gy,) = torch.autograd.grad(z, y)
    assert gy.tolist() == [6.0, 12.0]
    assert x.grad is None


def test_grad_with_respect_to_the_output_itself(torch):
    x = torch.tensor(3.0, requires_grad=True)
    assert torch.autograd.grad(x, x)[0].item() == 1.0
    y = x * 2
    assert [g.item() for g in torch.autograd.grad(y, (y, x))] == [1.0, 2.0]


def test_unused_inputs(torch):
    x = torch.ones(2, requires_grad=True)
    y = torch.ones(3, requires_grad=True)
    z = (x * 2).sum()
    with pytest.raises(
        RuntimeError,
        match="The differentiated Tensor at index 1 appears to not have been used",
    ):
        torch.autograd.grad(z, (x, y), retain_graph=True)
    gx, gy = torch.autograd.grad(z, (x, y), allow_unused=True, retain_graph=True)
    assert gx.tolist() == [2.0, 2.0] and gy is None
    gx, gy = torch.autograd.grad(z, (x, y), materialize_grads=True, retain_graph=True)
    assert gy.tolist() == [0.0, 0.0, 0.0]
    with pytest.raises(ValueError, match="allow_unused to be True or not passed"):
        torch.autograd.grad(z, (x, y), allow_unused=False, materialize_grads=True)
    with pytest.raises(RuntimeError, match="One of the differentiated Tensors does not require grad"):
        torch.autograd.grad(z, torch.ones(3))


def test_backward_with_inputs_touches_only_those(torch):
    x = torch.ones(2, requires_grad=True)
    w = torch.ones(2, requires_grad=True)
    y = x * w
    (y * y).sum().backward(inputs=[x])
    assert x.grad.tolist() == [2.0, 2.0]
    assert w.grad is None
    y = x * w
    (y * y).sum().backward(inputs=y)
    assert y.grad.tolist() == [2.0, 2.0]
    assert w.grad is None
    assert x.grad.tolist() == [2.0, 2.0]
    with pytest.raises(RuntimeError, match="cannot be empty"):
        (x * w).sum().backward(inputs=[])


def test_only_needed_branches_run(torch):
    x = torch.ones(2, requires_grad=True)
    w = torch.ones(2, requires_grad=True)
    ran = []
    a, b = x * 2, w * 3
    b.register_hook(lambda g: ran.append("b"))
    a.register_hook(lambda g: ran.append("a"))
    torch.autograd.grad((a * b).sum(), x)
    assert ran == ["a"]


def test_several_roots(torch):
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    z = y * y
    torch.autograd.backward([z.sum(), y, z], [None, torch.ones(2), torch.tensor([1.0, 0.0])])
    assert x.grad.tolist() == [4 * 2 + 2 + 8.0, 4 * 2 + 2.0]


def test_broadcast_gradients_have_the_inputs_shape(torch):
    a = torch.ones(3, 1, requires_grad=True)
    b = torch.ones(4, requires_grad=True)
    c = torch.ones((), requires_grad=True)
    (a * b + c).sum().backward()
    assert a.grad.tolist() == [[4.0], [4.0], [4.0]]
    assert b.grad.tolist() == [3.0] * 4
    assert c.grad.item() == 12.0


def test_real_input_of_a_complex_function(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * torch.tensor([1j, 2 + 1j])
    y.backward(torch.tensor([1 + 1j, 1j]))
    assert x.grad.dtype == torch.float32
    assert x.grad.tolist() == [1.0, 1.0]


def test_complex_root_needs_a_gradient(torch):
    x = torch.ones(1, requires_grad=True)
    y = (x * 1j).sum()
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for real scalar outputs"):
        y.backward()


def test_gradients_do_not_share_memory(torch):
    a = torch.zeros(3, requires_grad=True)
    b = torch.zeros(3, requires_grad=True)
    (a + b).sum().backward()
    a.grad.mul_(5)
    assert b.grad.tolist() == [1.0, 1.0, 1.0]
    assert a.grad.stride() == (1,)
    given = torch.ones(3)
    c = torch.zeros(3, requires_grad=True)
    c.backward(given)
    c.grad.mul_(7)
    assert given.tolist() == [1.0, 1.0, 1.0]
    d = torch.zeros(3, requires_grad=True)
    e = torch.zeros(3, requires_grad=True)
    (d + e).backward(given)
    d.grad.mul_(7)
    assert e.grad.tolist() == given.tolist() == [1.0, 1.0, 1.0]


def test_gradient_has_the_layout_of_the_parameter(torch):
    w = torch.ones(2, 3).t().requires_grad_()
    (w * torch.ones(3, 2)).sum().backward()
    assert w.grad.stride() == w.stride() == (1, 3)


def test_second_derivatives(torch):
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    (g,) = torch.autograd.grad((x * x * x).sum(), x, create_graph=True)
    assert g.requires_grad
    assert g.tolist() == [3.0, 12.0, 27.0]
    (h,) = torch.autograd.grad(g.sum(), x, create_graph=True)
    assert h.tolist() == [6.0, 12.0, 18.0]
    (t,) = torch.autograd.grad(h.sum(), x)
    assert t.tolist() == [6.0, 6.0, 6.0]


def test_second_derivative_through_a_saved_result(torch):
    x = torch.tensor([0.5, -1.0], dtype=torch.float64, requires_grad=True)
    (g,) = torch.autograd.grad(x.exp().sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x, create_graph=True)
    (t,) = torch.autograd.grad(h.sum(), x)
    assert t.tolist() == pytest.approx(x.detach().exp().tolist())
    (g,) = torch.autograd.grad(x.tanh().sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    y = x.detach().tanh()
    assert h.tolist() == pytest.approx((-2 * y * (1 - y * y)).tolist())


def test_a_chain_of_a_million_nodes(torch):
    if torch.__name__ == "torch":
        pytest.skip("only slow there")
    x = torch.ones(1, requires_grad=True)
    y = x
    for _ in range(1_000_000):
        y = y + 1
    y.sum().backward()
    assert x.grad.item() == 1.0
    del y  # released without recursion


def test_a_long_chain_is_released_without_backward(rl):
    x = rl.ones(1, requires_grad=True)
    y = x
    for _ in range(300_000):
        y = (y * 2).exp()
    del y


def test_backward_inside_backward(torch):
    x = torch.tensor(2.0, requires_grad=True)
    inner = []

    def hook(grad):
        with torch.enable_grad():
            z = torch.tensor(3.0, requires_grad=True)
            (z * z).backward()
            inner.append(z.grad.item())

    y = x * x
    y.register_hook(hook)
    (y * 3).backward()
    assert inner == [6.0]
    assert x.grad.item() == 12.0


def test_nested_backward_over_a_shared_graph(torch):
    x = torch.tensor(2.0, requires_grad=True)
    shared = x * x
    other = shared * 5
    inner = []
    top = shared * 3
    top.register_hook(lambda g: inner.append(torch.autograd.grad(other, x, retain_graph=True)[0].item()))
    (top + shared).backward()
    assert inner == [20.0]
    assert x.grad.item() == 16.0


def test_threads_over_a_shared_graph(rl):
    x = rl.ones(64, requires_grad=True)
    shared = (x * 2).exp() * 3
    expected = rl.autograd.grad((shared * 2).sum(), x, retain_graph=True)[0].tolist()
    wrong = []

    def work():
        for _ in range(300):
            (g,) = rl.autograd.grad((shared * 2).sum(), x, retain_graph=True)
            if g.tolist() != expected:
                wrong.append(g)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_an_error_in_a_hook_leaves_everything_usable(torch):
    x = torch.ones(2, requires_grad=True)
    y = x * x
    fail = [True]

    def hook(g):
        if fail[0]:
            raise KeyboardInterrupt

    y.register_hook(hook)
    z = (y * 2).sum()
    with pytest.raises(KeyboardInterrupt):
        z.backward(retain_graph=True)
    assert x.grad is None
    assert torch.is_grad_enabled()
    fail[0] = False
    z.backward()
    assert x.grad.tolist() == [4.0, 4.0]


@pytest.mark.filterwarnings("ignore:Using backward.. with create_graph")
def test_grad_mode_during_backward(torch):
    x = torch.ones(2, requires_grad=True)
    modes = []
    y = x * 2
    y.register_hook(lambda g: modes.append((torch.is_grad_enabled(), g.requires_grad)))
    y.sum().backward(retain_graph=True)
    (y * y).sum().backward(create_graph=True)
    assert modes == [(False, False), (True, True)]


def test_zero_size_and_zero_dim(torch):
    x = torch.ones(0, 3, requires_grad=True)
    (x * 2).sum().backward()
    assert tuple(x.grad.shape) == (0, 3)
    s = torch.tensor(3.0, requires_grad=True)
    (s * s).backward()
    assert s.grad.item() == 6.0
    assert s.grad.dim() == 0


def test_batched_gradients(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * x
    (j,) = torch.autograd.grad(y, x, torch.eye(2), is_grads_batched=True)
    assert j.tolist() == [[2.0, 0.0], [0.0, 4.0]]


def test_batched_gradients_are_one_backward(torch):
    x, w, other = (torch.rand(3, 3, dtype=torch.float64, requires_grad=True) for _ in range(3))
    runs = []
    y = (x @ w).tanh()
    y.register_hook(lambda g: runs.append(tuple(g.shape)))
    z = y.softmax(0)[1:].cumsum(1)
    seeds = torch.eye(6, dtype=torch.float64).reshape(6, 2, 3)
    got = torch.autograd.grad(
        z, (x, other, w), seeds, is_grads_batched=True, allow_unused=True, retain_graph=True, create_graph=True
    )
    assert runs == [(3, 3)] and got[1] is None
    for i in range(6):
        one = torch.autograd.grad(z, (x, w), seeds[i], retain_graph=True)
        assert torch.allclose(got[0][i], one[0]) and torch.allclose(got[2][i], one[1])
    (second,) = torch.autograd.grad(got[0].pow(2).sum(), x)
    jacobian = torch.autograd.functional.jacobian(
        lambda x: (x @ w).tanh().softmax(0)[1:].cumsum(1).reshape(-1), x, create_graph=True
    )
    assert torch.allclose(second, torch.autograd.grad(jacobian.pow(2).sum(), x)[0])


def test_set_data_of_another_shape(torch):
    x = torch.ones(2, requires_grad=True)
    (x * 2).sum().backward()
    x.grad = None
    x.data = torch.ones(3)
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"])
def test_dtypes(torch, dtype):
    x = torch.ones(3, dtype=getattr(torch, dtype), requires_grad=True)
    y = x * 2 + x
    y.backward(torch.ones_like(x))
    assert x.grad.dtype == x.dtype
    assert x.grad.tolist() == [3.0, 3.0, 3.0]


def test_error_names_the_forward_line(rl):
    x = rl.ones(3, requires_grad=True)
    y = (x * x).sum()  # the line
    y.backward()
    with pytest.raises(RuntimeError) as info:
        y.backward()
    text = str(info.value)
    assert "MulBackward0 was recorded at" in text
    assert "test_engine.py:" in text
    assert "y = (x * x).sum()  # the line" in text
    assert "in test_error_names_the_forward_line" in text


def test_non_scalar_root_names_the_line(rl):
    x = rl.ones(3, requires_grad=True)
    y = x * 2  # not a scalar
    with pytest.raises(RuntimeError) as info:
        y.backward()
    assert "y = x * 2  # not a scalar" in str(info.value)
    assert "got shape [3]" in str(info.value)
