"""Jacobians, Hessians and products with them."""

import pytest

X = [0.5, -1.0, 2.0]


def tensors(torch):
    x = torch.tensor(X, dtype=torch.float64)
    y = torch.tensor([[1.0], [3.0]], dtype=torch.float64)
    return x, y


def close(a, b):
    return a.reshape(-1).tolist() == pytest.approx(b.reshape(-1).tolist())


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_jacobian_of_one_input(torch):
    x, _ = tensors(torch)
    for strategy in ("reverse-mode", "forward-mode"):
        kwargs = {"strategy": strategy, "vectorize": strategy == "forward-mode"}
        j = torch.autograd.functional.jacobian(lambda x: x * x, x, **kwargs)
        assert tuple(j.shape) == (3, 3)
        assert close(j, torch.tensor([[1.0, 0, 0], [0, -2.0, 0], [0, 0, 4.0]]))
        assert not j.requires_grad
    assert not x.requires_grad


def test_jacobian_of_tuples(torch):
    x, y = tensors(torch)
    j = torch.autograd.functional.jacobian(lambda x, y: (x.sum() * y, y * y * x[0]), (x, y))
    assert [[tuple(b.shape) for b in row] for row in j] == [[(2, 1, 3), (2, 1, 2, 1)], [(2, 1, 3), (2, 1, 2, 1)]]
    assert close(j[0][0], torch.tensor([[1.0, 1, 1], [3, 3, 3]]))
    assert close(j[1][0], torch.tensor([[1.0, 0, 0], [9, 0, 0]]))
    assert close(j[1][1], torch.tensor([[1.0, 0], [0, 3.0]]))


def test_hessian(torch):
    x, y = tensors(torch)
    h = torch.autograd.functional.hessian(lambda x: (x * x * x).sum(), x)
    assert close(h, torch.tensor([[3.0, 0, 0], [0, -6.0, 0], [0, 0, 12.0]]))
    h = torch.autograd.functional.hessian(lambda x, y: (x.sum() * y * y).sum(), (x, y))
    assert close(h[0][0], torch.zeros(9))
    assert close(h[0][1], torch.tensor([[2.0, 6], [2, 6], [2, 6]]))
    assert close(h[1][1], torch.tensor([[3.0, 0], [0, 3.0]]))


def test_products(torch):
    f = torch.autograd.functional
    x, _ = tensors(torch)
    v = torch.tensor([1.0, 10.0, 100.0], dtype=torch.float64)
    out, g = f.vjp(lambda x: x * x, x, v)
    assert close(out, x * x) and close(g, 2 * x * v)
    out, g = f.jvp(lambda x: x * x * x[0], x, v)
    assert close(g, 2 * x * v * x[0] + x * x * v[0])
    out, g = f.vhp(lambda x: (x * x * x).sum(), x, v)
    assert close(out, (x * x * x).sum()) and close(g, 6 * x * v)
    out, g = f.hvp(lambda x: (x * x * x).sum(), x, v)
    assert close(g, 6 * x * v)
    assert f.vjp(lambda x: x.sum(), x)[1].tolist() == [1.0, 1.0, 1.0]


def test_create_graph(torch):
    x, _ = tensors(torch)
    x.requires_grad_()
    j = torch.autograd.functional.jacobian(lambda x: x * x * x, x, create_graph=True)
    assert j.requires_grad
    (g,) = torch.autograd.grad(j.sum(), x)
    assert close(g, 6 * x.detach())
    h = torch.autograd.functional.hessian(lambda x: (x * x * x).sum(), x, create_graph=True)
    (g,) = torch.autograd.grad(h.sum(), x)
    assert close(g, 6 * torch.ones(3))


def test_independent_inputs(torch):
    f = torch.autograd.functional
    x, y = tensors(torch)
    j = f.jacobian(lambda x, y: x * 2, (x, y))
    assert close(j[1], torch.zeros(6))
    with pytest.raises(RuntimeError, match="independent of input 1"):
        f.jacobian(lambda x, y: x * 2, (x, y), strict=True)
    with pytest.raises(RuntimeError, match="does not require gradients"):
        f.jacobian(lambda x: x.detach(), x, strict=True)


def test_errors(torch):
    f = torch.autograd.functional
    x, _ = tensors(torch)
    with pytest.raises(TypeError, match="The inputs given to jacobian must be either a Tensor or a tuple of Tensors"):
        f.jacobian(lambda x: x, 3)
    with pytest.raises(RuntimeError, match="should contain a single element"):
        f.hessian(lambda x: x * 2, x)
    with pytest.raises(RuntimeError, match="v has invalid size"):
        f.vjp(lambda x: x * 2, x, torch.ones(2))
    with pytest.raises(RuntimeError, match="The vector v can only be None"):
        f.vjp(lambda x: x * 2, x)
