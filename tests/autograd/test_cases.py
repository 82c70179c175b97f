"""Small inputs on which frameworks have gone wrong."""

import pytest


def test_masked_branch_follows_the_chain_rule(torch):
    x = torch.tensor([-1.0, -4.0], requires_grad=True)
    torch.where(x > 0, x.sqrt(), x).sum().backward()
    assert all(g != g for g in x.grad.tolist())


def test_norm_at_the_origin(torch):
    x = torch.zeros(2, requires_grad=True)
    if not hasattr(x, "norm"):
        pytest.skip("norm is not there yet")
    x.norm().backward()
    assert x.grad.tolist() == [0.0, 0.0]


def test_ties_share_or_pick(torch):
    def gradient(f, values):
        x = torch.tensor(values, requires_grad=True)
        f(x).sum().backward()
        return x.grad.tolist()

    assert gradient(lambda x: x.max(), [1.0, 1.0, 0.0]) == [0.5, 0.5, 0.0]
    assert gradient(lambda x: x.amax(), [1.0, 1.0, 0.0]) == [0.5, 0.5, 0.0]
    assert gradient(lambda x: x.max(dim=0).values, [1.0, 1.0, 0.0]) == [1.0, 0.0, 0.0]
    assert gradient(lambda x: x.relu(), [0.0]) == [0.0]
    assert gradient(lambda x: torch.maximum(x, torch.zeros(1)), [0.0]) == [0.5]
    assert gradient(lambda x: x.abs(), [0.0]) == [0.0]


def test_multi_view_output_and_a_view_of_it(torch):
    x = torch.ones(2, 3, requires_grad=True)
    y = x.clone()
    v = y.unbind()
    w = v[0].narrow(0, 0, 2)
    with pytest.raises(RuntimeError, match="view"):
        w.mul_(2)


def test_user_gradient_is_not_captured(torch):
    x = torch.zeros(3, requires_grad=True)
    g = torch.ones(3)
    (x * 1).backward(g)
    x.grad.mul_(5)
    assert g.tolist() == [1.0, 1.0, 1.0]
    x.grad = None
    h = torch.ones(1).expand(3)
    x.backward(h)
    assert x.grad.stride() == (1,)
    x.grad.mul_(5)
    assert h.tolist() == [1.0, 1.0, 1.0]


def test_a_write_through_numpy_is_documented_behaviour(torch):
    x = torch.ones(2, requires_grad=True)
    y = x.exp()
    y.detach().numpy()[:] = 0
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 0.0]
