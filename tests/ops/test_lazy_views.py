"""Conjugated and negated views: what they share, what operations make of them, in-place writes and gradients."""

from __future__ import annotations

import copy
import io
from typing import Any

import pytest

import rushlight as rl

NUMBERS = [[1 + 2j, 3 - 1j], [2 + 0.5j, -1j]]


def _made(t: Any = rl) -> Any:
    return t.tensor(NUMBERS, dtype=t.complex128)


BITS = {
    "conj": lambda x: x.conj(),
    "twice": lambda x: x.conj().conj(),
    "H": lambda x: x.H,
    "mH": lambda x: x.mH,
    "adjoint": lambda x: x.adjoint(),
    "transposed": lambda x: x.conj().T,
    "row": lambda x: x.conj()[0],
    "column": lambda x: x.conj()[:, 1],
    "diagonal": lambda x: x.conj().diagonal(),
    "reshape": lambda x: x.conj().reshape(4),
    "detach": lambda x: x.conj().detach(),
    "data": lambda x: x.conj().data,
    "split": lambda x: x.conj().split(1)[1],
    "expand": lambda x: x.conj().expand(3, 2, 2),
    "as_strided": lambda x: x.conj().as_strided((2,), (1,)),
    "real": lambda x: x.conj().real,
    "imag": lambda x: x.conj().imag,
    "imag twice": lambda x: x.conj().imag.unsqueeze(0),
    "neg view": lambda x: x._neg_view(),
    "clone": lambda x: x.conj().clone(),
    "resolve_conj": lambda x: x.conj().resolve_conj(),
    "conj_physical": lambda x: x.conj().conj_physical(),
    "sum": lambda x: x.conj() + 1,
    "real conj": lambda x: x.real.conj(),
    "copy": lambda x: copy.copy(x.conj()),
    "deepcopy": lambda x: copy.deepcopy(x.conj()),
}


@pytest.mark.parametrize("name", BITS)
def test_bits_and_memory_are_pytorchs(name: str) -> None:
    torch = pytest.importorskip("torch")
    x, y = _made(), _made(torch)
    ours, theirs = BITS[name](x), BITS[name](y)
    assert (ours.is_conj(), ours.is_neg()) == (theirs.is_conj(), theirs.is_neg())
    assert ours.tolist() == theirs.tolist()
    assert (ours.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()) == (
        theirs.untyped_storage().data_ptr() == y.untyped_storage().data_ptr()
    )
    assert str(ours) == str(theirs).replace("torch", "rushlight")


WRITES = {
    "add_": lambda x, c: c.add_(1j),
    "setitem": lambda x, c: c.__setitem__(0, 7j),
    "mask": lambda x, c: c.__setitem__(c.real > 1, 7j),
    "fill_": lambda x, c: c.fill_(2j),
    "copy_": lambda x, c: c.copy_(x * 2j),
    "copy to the base": lambda x, c: x.copy_(c),
    "mul_": lambda x, c: c.mul_(x),
    "zero_": lambda x, c: c.zero_(),
    "neg_": lambda x, c: c.neg_(),
    "conj_physical_": lambda x, c: c.conj_physical_(),
    "imag": lambda x, c: c.imag.add_(5),
    "real": lambda x, c: c.real.mul_(5),
    "base": lambda x, c: x.add_(c),
    "transpose": lambda x, c: c.T[0].mul_(3j),
}


@pytest.mark.parametrize("name", WRITES)
def test_writes_reach_the_base(name: str) -> None:
    torch = pytest.importorskip("torch")
    found = []
    for t in (rl, torch):
        x = _made(t)
        c = x.conj()
        WRITES[name](x, c)
        found.append((x.tolist(), c.tolist()))
    assert found[0] == found[1]


def test_out() -> None:
    x = _made()
    c = x.conj()
    assert rl.mul(_made(), 1j, out=c) is c
    assert c.is_conj()
    assert c.equal(_made() * 1j)
    assert x.equal((_made() * 1j).conj())


def test_refusals() -> None:
    c = _made().conj()
    for call, error in (
        (c.numpy, RuntimeError),
        (c.imag.numpy, RuntimeError),
        (c.__dlpack__, BufferError),
        (lambda: c.view(rl.float64), RuntimeError),
        (lambda: rl.view_as_real(c), RuntimeError),
    ):
        with pytest.raises(error):
            call()
    assert (c.numpy(force=True) == c.resolve_conj().numpy()).all()
    assert c[0, 0].item() == 1 - 2j


GRADIENTS = {
    "conj": lambda x: x.conj() * x * 2j,
    "H": lambda x: x.H @ x,
    "imag": lambda x: x.conj().imag * 3,
    "base written": lambda x: _base_written(x),
    "view written": lambda x: _view_written(x),
    "part written": lambda x: _part_written(x),
    "twice": lambda x: (x.conj().conj() * 1j) * x.mH,
}


def _base_written(x: Any) -> Any:
    y = x * 1
    c = y.conj()
    y.mul_(2j)
    return c * c


def _view_written(x: Any) -> Any:
    y = x * 1
    c = y.conj()
    c[0].mul_(2j)
    return y * y * c


def _part_written(x: Any) -> Any:
    y = x * 1
    part = y.conj().imag
    part.mul_(3)
    return y * part


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name: str) -> None:
    torch = pytest.importorskip("torch")
    grads = []
    for t in (rl, torch):
        x = _made(t).requires_grad_()
        result = GRADIENTS[name](x)
        weights = t.arange(1, result.numel() + 1, dtype=t.float64).view(result.shape)
        result.backward(weights * (1 + 2j) if result.is_complex() else weights)
        grads.append(rl.tensor(x.grad.tolist(), dtype=rl.complex128))
    assert rl.allclose(*grads)
    x = _made().requires_grad_()
    assert rl.autograd.gradcheck(GRADIENTS[name], (x,)) and rl.autograd.gradgradcheck(GRADIENTS[name], (x,))


def test_gradients_that_are_lazy() -> None:
    x = _made().requires_grad_()
    g = _made().conj()
    (x * 1).backward(g)
    assert x.grad.equal(g)
    assert not x.grad.is_conj()
    (grad,) = rl.autograd.grad(x.real, x, g.imag)
    assert grad.equal(rl.complex(g.imag, rl.zeros(2, 2, dtype=rl.float64)))


def test_transforms() -> None:
    x = _made()
    assert rl.func.vmap(lambda row: row.conj() * row)(x).equal(x.conj() * x)
    assert rl.func.vmap(lambda row: row * 2)(x.conj()).equal(x.conj() * 2)
    assert rl.func.vmap(lambda row: row.imag * 2)(x.conj()).equal(x.imag * -2)
    assert rl.func.vmap(lambda row: row.conj().imag)(x).equal(-x.imag)
    assert rl.func.vmap(lambda row: rl.view_as_real(row.resolve_conj()))(x.conj())[..., 1].equal(-x.imag)
    assert rl.func.vmap(lambda row: row.clone().conj().add_(1j).conj())(x).equal(x - 1j)
    assert rl.func.grad(lambda x: (x.conj() * x).real.sum())(x).equal(2 * x)
    value, tangent = rl.func.jvp(lambda x: x.conj() * 1j, (x,), (x.conj(),))
    assert value.equal(x.conj() * 1j)
    assert tangent.equal(x * 1j)


def test_forward_mode_writes_through_views() -> None:
    def into(y: Any, x: Any) -> Any:
        y.conj()[0].copy_(x[0])
        return y * 1

    x, direction = _made(), _made().T * 1j
    value, tangent = rl.func.jvp(lambda x: into(rl.zeros(2, 2, dtype=rl.complex128), x), (x,), (direction,))
    assert value.equal(rl.stack([x[0].conj_physical(), 0 * x[0]]))
    assert tangent.equal(rl.stack([direction[0].conj_physical(), 0 * x[0]]))
    value, tangent = rl.func.jvp(lambda x: into(x * 1, x), (x,), (direction,))
    assert tangent.equal(rl.stack([direction[0].conj_physical(), direction[1]]))


def test_files() -> None:
    torch = pytest.importorskip("torch")
    for writer in (rl, torch):
        for reader in (rl, torch):
            x = _made(writer)
            file = io.BytesIO()
            imag = x.clone().conj().imag  # over memory of its own, since PyTorch refuses to save two dtypes over one
            writer.save([x, x.conj(), imag], file)
            file.seek(0)
            plain, conj, imag = reader.load(file)
            assert plain.tolist() == NUMBERS
            assert conj.tolist() == _made(reader).conj().tolist()
            assert imag.tolist() == x.conj().imag.tolist()
