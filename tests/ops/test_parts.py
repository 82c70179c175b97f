"""Real and imaginary parts."""

import importlib

import pytest


@pytest.fixture(params=["rushlight", "torch"])
def torch(request):
    if request.param == "torch":
        return pytest.importorskip("torch")
    return importlib.import_module("rushlight")


def test_views(torch):
    z = torch.tensor([1 + 2j, 3 - 4j])
    assert z.real.tolist() == torch.real(z).tolist() == [1.0, 3.0]
    assert z.imag.tolist() == torch.imag(z).tolist() == [2.0, -4.0]
    z.real[0] = 7
    z.imag = torch.tensor([5.0, 6.0])
    assert z.tolist() == [7 + 5j, 3 + 6j]
    z.real = 0
    assert z.tolist() == [5j, 6j]
    assert torch.zeros((), dtype=torch.complex128).real.dtype == torch.float64
    assert torch.zeros(0, dtype=torch.complex64).imag.shape == (0,)


def test_real_tensors(torch):
    x = torch.ones(2)
    assert x.real.data_ptr() == x.data_ptr() and torch.real(x).tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError):
        torch.imag(x)
    with pytest.raises(RuntimeError):
        x.imag


def test_gradients(torch):
    z = torch.tensor([1 + 2j, 3 - 4j], dtype=torch.complex128, requires_grad=True)
    (z.real * 2 + z.imag * 3).sum().backward()
    assert z.grad.tolist() == [2 + 3j, 2 + 3j]
    assert torch.autograd.gradgradcheck(lambda z: z.real * z.imag * z.real, z)
    w = z * 1
    w.real = w.imag.detach()
    z.grad = None
    w.real.sum().backward()
    assert z.grad.tolist() == [0j, 0j]
