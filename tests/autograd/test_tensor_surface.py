"""Attributes of tensors that belong to the tape."""

import pytest


def test_requires_grad(torch):
    x = torch.ones(3)
    assert not x.requires_grad and x.is_leaf and x.grad_fn is None and x.grad is None
    assert x.requires_grad_() is x
    assert x.requires_grad
    x.requires_grad = False
    assert not x.requires_grad
    assert torch.ones(3, requires_grad=True).requires_grad


def test_requires_grad_is_for_floating_point(torch):
    for make in (
        lambda: torch.ones(3, dtype=torch.int64).requires_grad_(),
        lambda: torch.ones(3, dtype=torch.bool).requires_grad_(),
    ):
        with pytest.raises(RuntimeError, match="only Tensors of floating point"):
            make()
    x = torch.ones(3, dtype=torch.int64)
    with pytest.raises(RuntimeError, match="only Tensors of floating point"):
        x.requires_grad = True
    with pytest.raises(RuntimeError, match="requires_grad must be a bool"):
        torch.ones(3).requires_grad = 1


def test_requires_grad_of_a_computed_tensor_is_fixed(torch):
    y = torch.ones(3, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="you can only change requires_grad flags of leaf variables"):
        y.requires_grad_(False)
    with pytest.raises(RuntimeError, match="you can only change requires_grad flags of leaf variables"):
        y.requires_grad = False
    assert y.requires_grad_() is y


def test_grad_attribute(torch):
    x = torch.ones(3, requires_grad=True)
    x.grad = torch.tensor([1.0, 2.0, 3.0])
    (x * 2).sum().backward()
    assert x.grad.tolist() == [3.0, 4.0, 5.0]
    x.grad = None
    assert x.grad is None
    x.grad = torch.ones(3)
    del x.grad
    assert x.grad is None
    for value, error, text in [
        (torch.ones(2), RuntimeError, r"attempting to assign a gradient of size '\[2\]' to a tensor of size '\[3\]'"),
        (3, TypeError, "assigned grad expected to be a Tensor or None but got grad of type"),
        (torch.ones(3, dtype=torch.float64), RuntimeError, "attempting to assign a gradient with dtype"),
        (x, RuntimeError, "can't assign Variable as its own grad"),
    ]:
        with pytest.raises(error, match=text):
            x.grad = value


def test_leaves_and_results(torch):
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    assert x.is_leaf and not y.is_leaf
    assert y.requires_grad
    assert not (torch.ones(3) * 2).requires_grad
    assert (torch.ones(3) * 2).is_leaf
    assert x.output_nr == 0
    a, b = y.split([1, 2])
    assert (a.output_nr, b.output_nr) == (0, 1)
    with pytest.raises(AttributeError):
        y.grad_fn = None


def test_results_that_are_not_differentiable(torch):
    x = torch.tensor([1.0, -2.0, 3.0], requires_grad=True)
    assert not (x > 0).requires_grad
    assert not x.argmax().requires_grad
    values, indices = x.max(0)
    assert values.requires_grad and not indices.requires_grad
    values.backward()
    assert x.grad.tolist() == [0.0, 0.0, 1.0]


def test_base_and_views(torch):
    x = torch.ones(2, 3)
    v = x[0]
    assert v._base is x and v._is_view()
    assert x._base is None and not x._is_view()
    assert v[1:]._base is x
    assert not x.detach()._is_view()
    assert not (x + 1)._is_view()


def test_deepcopy_is_for_leaves(torch):
    import copy

    x = torch.ones(3, requires_grad=True)
    (x * 2).sum().backward()
    c = copy.deepcopy(x)
    assert c.requires_grad and c.grad.tolist() == [2.0, 2.0, 2.0]
    with pytest.raises(RuntimeError, match="Only Tensors created explicitly by the user"):
        copy.deepcopy(x * 2)


def test_numpy_needs_detach(torch):
    with pytest.raises(RuntimeError, match="Can't call numpy\\(\\) on Tensor that requires grad"):
        torch.ones(3, requires_grad=True).numpy()
