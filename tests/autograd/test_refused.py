"""Operations without a derivative: their results require grad, and backward says what is missing and where."""

import pytest


def results(torch):
    x = torch.tensor([1.0, 0.5, 2.0, 4.0], requires_grad=True)
    ones, matrix = torch.ones(4), torch.eye(2, requires_grad=True)
    factors, pivots = torch.linalg.ldl_factor(torch.eye(2))
    points = torch.rand(5, 2, requires_grad=True)
    return {
        "heaviside": lambda: torch.heaviside(x, ones),
        "heaviside of numbers": lambda: torch.heaviside(ones, x),
        "floor_divide": lambda: x // 2,
        "floor_divide of a number": lambda: 2 // x,
        "floor_divide_": lambda: (x * 1).floor_divide_(2),
        "geqrf": lambda: torch.geqrf(matrix).a,
        "ldl_solve": lambda: torch.linalg.ldl_solve(factors, pivots, matrix),
        "unique": lambda: x.unique(),
        "unique, with counts": lambda: torch.unique(x, return_inverse=True, return_counts=True)[0],
        "unique, slices": lambda: torch.unique(points, dim=0),
        "unique_consecutive": lambda: torch.unique_consecutive(x),
        "histogram": lambda: torch.histogram(x, 3).hist,
        "histogram, edges": lambda: torch.histogram(x, 3).bin_edges,
        "histogram, weights": lambda: torch.histogram(ones, 3, weight=x).hist,
        "histogramdd": lambda: torch.histogramdd(points, [2, 2]).hist,
        "zeta": lambda: torch.special.zeta(x + 1, ones),
        "igamma": lambda: torch.igamma(x, ones),
    }


NAMES = list(results(__import__("rushlight")))


@pytest.mark.parametrize("name", NAMES)
def test_backward_refuses(torch, name):
    out = results(torch)[name]()
    assert out.requires_grad
    with pytest.raises(RuntimeError, match=r"derivative (for|of) .* is not implemented"):
        (out.sum() * 2).backward()
    with torch.no_grad():
        assert not results(torch)[name]().requires_grad


@pytest.mark.parametrize("name", NAMES)
def test_the_message_names_the_line(rl, name):
    out = results(rl)[name]()
    with pytest.raises(NotImplementedError, match=r"not implemented; detach\(\)(.|\n)*recorded at .*test_refused\.py:"):
        out.sum().backward()


def test_transforms_refuse(rl):
    values = rl.ones(3)
    with pytest.raises(NotImplementedError, match="heaviside"):
        rl.func.grad(lambda x: rl.heaviside(x, values).sum())(rl.ones(3))
    with pytest.raises(NotImplementedError, match="heaviside"):
        rl.func.jvp(lambda x: rl.heaviside(x, values), (values,), (values,))
    with pytest.raises(NotImplementedError, match="floor_divide"):
        rl.func.vmap(rl.func.grad(lambda x: (x // 2).sum()))(rl.ones(2, 3))
    assert rl.func.vmap(lambda x: x // 2)(rl.arange(4)).tolist() == [0, 0, 1, 1]


def test_division_with_rounding_has_the_derivative_zero(torch):
    x = torch.tensor([3.0, 5.0], requires_grad=True)
    for mode in ("floor", "trunc"):
        (grad,) = torch.autograd.grad(torch.div(x, 2, rounding_mode=mode).sum(), x)
        assert grad.tolist() == [0, 0]
    (grad,) = torch.autograd.grad((x % 2).sum(), x)
    assert grad.tolist() == [1, 1]
