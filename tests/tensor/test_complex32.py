"""complex32: two float16 in one element, kept and moved as such and computed in complex64, beside PyTorch."""

from __future__ import annotations

import io
import itertools
from typing import Any

import pytest

import rushlight as rl

pytestmark = [
    pytest.mark.filterwarnings("ignore:ComplexHalf support"),
    pytest.mark.filterwarnings("ignore:Casting complex values"),
]

DTYPES = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex32 complex64 complex128".split()
NUMBERS = [1 + 2j, 3.5 - 1j, 0j, -0.25 + 7j]


def _made(t: Any) -> Any:
    return t.tensor(NUMBERS, dtype=t.complex32)


def test_the_dtype() -> None:
    c = rl.complex32
    assert rl.chalf is c
    assert (str(c), c.itemsize, c.is_complex, c.is_floating_point, c.is_signed) == (
        "rushlight.complex32",
        4,
        True,
        False,
        True,
    )
    assert (c.to_real(), rl.float16.to_complex(), rl.bfloat16.to_complex(), c.to_complex()) == (
        rl.float16,
        c,
        rl.complex64,
        c,
    )
    assert (rl.finfo(c).max, rl.finfo(c).bits, rl.finfo(c).dtype) == (65504.0, 16, "float16")
    assert _made(rl).type() == "rushlight.ComplexHalfTensor"
    assert _made(rl).element_size() == 4
    assert repr(_made(rl)[:2]) == "tensor([1.0000+2.j, 3.5000-1.j], dtype=rushlight.complex32)"


def test_parts_round_to_float16() -> None:
    x = rl.tensor([1 / 3 - 2049j, 1e6 + 1e-9j], dtype=rl.complex32)
    assert x.tolist() == [0.333251953125 - 2048j, complex(float("inf"), 0)]
    assert x[0].item() == 0.333251953125 - 2048j


def test_promotion() -> None:
    torch = pytest.importorskip("torch")
    for name in DTYPES:
        ours, theirs = getattr(rl, name), getattr(torch, name)
        pair = str(rl.promote_types(rl.complex32, ours)), str(rl.promote_types(ours, rl.complex32))
        expected = str(torch.promote_types(torch.complex32, theirs)).replace("torch", "rushlight")
        assert pair == (expected, expected)
        assert rl.can_cast(rl.complex32, ours) == torch.can_cast(torch.complex32, theirs)
        assert rl.can_cast(ours, rl.complex32) == torch.can_cast(theirs, torch.complex32)
        for number in (True, 2, 0.5, 1j):
            expected = str(torch.result_type(torch.ones(2, dtype=theirs), number)).replace("torch", "rushlight")
            assert str(rl.result_type(rl.ones(2, dtype=ours), number)) == expected


@pytest.mark.parametrize("name", DTYPES)
def test_conversions(name: str) -> None:
    torch = pytest.importorskip("torch")
    there = _made(torch).to(getattr(torch, name))
    here = _made(rl).to(getattr(rl, name))
    assert here.dtype == getattr(rl, name)
    assert here.tolist() == there.tolist()
    assert here.chalf().tolist() == there.chalf().tolist()
    # Beyond the length of a tile, and strided.
    many = rl.arange(3000).remainder(100).to(getattr(rl, name)).view(30, 100).t()
    assert many.chalf().dtype == rl.complex32
    assert many.chalf().to(rl.complex64).equal(many.to(rl.complex64))


def test_conversion_keeps_memory_format() -> None:
    x = rl.ones(2, 3, 4, 5).chalf(memory_format=rl.channels_last)
    assert x.is_contiguous(memory_format=rl.channels_last)


@pytest.mark.parametrize("name", ["randn", "rand"])
def test_random_numbers_are_pytorchs(name: str) -> None:
    torch = pytest.importorskip("torch")
    for shape in ((5,), (7, 30)):
        rl.manual_seed(3), torch.manual_seed(3)
        ours, theirs = getattr(rl, name)(shape, dtype=rl.complex32), getattr(torch, name)(shape, dtype=torch.complex32)
        assert ours.tolist() == theirs.tolist()


CALLS = {
    "creation": lambda t: t.stack(
        [make(dtype=t.complex32) for make in (lambda **d: t.zeros(3, **d), lambda **d: t.full((3,), 2j, **d))]
    ),
    "ones": lambda t: t.ones(3, dtype=t.complex32),
    "complex": lambda t: t.complex(t.tensor([1.0, 2]).half(), t.tensor([3.0, 4]).half()),
    "view_as_real": lambda t: t.view_as_real(_made(t)),
    "view_as_complex": lambda t: t.view_as_complex(t.tensor([[1.0, 2], [3, 4]], dtype=t.float16)),
    "imag": lambda t: _made(t).imag,
    "view": lambda t: _made(t).view(t.int32),
    "index": lambda t: _made(t)[t.tensor([2, 0, 2])],
    "mask": lambda t: _made(t)[t.tensor([True, False, True, True])],
    "index_put": lambda t: _made(t).index_put((t.tensor([1, 1, 2, 0]),), _made(t), accumulate=True),
    "index_add": lambda t: _made(t).index_add(0, t.tensor([0, 0]), _made(t)[:2], alpha=2),
    "index_fill": lambda t: _made(t).index_fill(0, t.tensor([1]), 5j),
    "cat": lambda t: t.cat([_made(t), t.ones(2).half(), t.ones(2, dtype=t.complex64)]),
    "roll": lambda t: _made(t).roll(1),
    "nonzero": lambda t: _made(t).nonzero(),
    "where": lambda t: t.where(_made(t) == 0, 1j, _made(t)),
    "tril": lambda t: _made(t).view(2, 2).tril(),
    "eq": lambda t: _made(t) == t.tensor([1 + 2j, 3.5, 0, 1]),
    "isnan": lambda t: t.isnan(t.tensor([complex("nan"), 1j], dtype=t.complex32)),
    "arithmetic": lambda t: (_made(t) * _made(t) - 2 * _made(t) + 1j) * t.tensor(0.1, dtype=t.float64),
    "mixed": lambda t: _made(t) + t.ones(4, dtype=t.float32),
    "addcmul": lambda t: _made(t).addcmul(_made(t), _made(t), value=2),
    "in place": lambda t: _made(t).mul_(1j).add_(_made(t), alpha=3).neg_(),
    "abs": lambda t: _made(t).abs(),
    "sgn": lambda t: _made(t).sgn(),
    "norm": lambda t: t.linalg.vector_norm(_made(t)),
    "norm 1": lambda t: t.linalg.vector_norm(_made(t), 1),
    "norm inf": lambda t: t.linalg.vector_norm(_made(t), float("inf")),
    "any": lambda t: t.stack([_made(t).any(), _made(t).all()]),
    "count": lambda t: _made(t).count_nonzero(),
    "embedding": lambda t: t.nn.functional.embedding(t.tensor([1, 1, 0]), _made(t).view(2, 2)),
    "half with a complex number": lambda t: t.ones(2).half() * 1j,
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_beside_pytorch(name: str) -> None:
    torch = pytest.importorskip("torch")
    here, there = CALLS[name](rl), CALLS[name](torch)
    assert str(here.dtype).partition(".")[2] == str(there.dtype).partition(".")[2]
    if name == "isnan" or not (here.is_complex() or here.is_floating_point()):
        assert here.tolist() == there.tolist()
        return
    wide = here.to(rl.complex128).flatten().tolist(), there.to(torch.complex128).flatten().tolist()
    assert here.shape == tuple(there.shape)
    for ours, theirs in zip(*wide, strict=True):
        assert ours == pytest.approx(theirs, rel=1e-3)


REFUSED = {
    "div": lambda t: _made(t) / 2,
    "exp": lambda t: _made(t).exp(),
    "square": lambda t: _made(t).square(),
    "sum": lambda t: _made(t).sum(),
    "mean": lambda t: _made(t).mean(),
    "prod": lambda t: _made(t).prod(),
    "cumsum": lambda t: _made(t).cumsum(0),
    "logical_not": lambda t: _made(t).logical_not(),
    "matmul": lambda t: _made(t) @ _made(t),
    "mm": lambda t: _made(t).view(2, 2) @ _made(t).view(2, 2),
    "flip": lambda t: _made(t).flip(0),
    "trace": lambda t: _made(t).view(2, 2).trace(),
    "eye": lambda t: t.eye(2, dtype=t.complex32),
    "linspace": lambda t: t.linspace(0, 1, 3, dtype=t.complex32),
    "arange": lambda t: t.arange(3, dtype=t.complex32),
    "gather": lambda t: _made(t).gather(0, t.tensor([0])),
    "scatter": lambda t: _made(t).scatter(0, t.tensor([0]), _made(t)[:1]),
    "scatter_add": lambda t: _made(t).scatter_add(0, t.tensor([0]), _made(t)[:1]),
    "take": lambda t: _made(t).take(t.tensor([0])),
    "put": lambda t: _made(t).put(t.tensor([0]), _made(t)[:1]),
    "masked_scatter": lambda t: _made(t).masked_scatter(t.ones(4, dtype=t.bool), _made(t)),
    "unique": lambda t: _made(t).unique(),
    "lerp": lambda t: _made(t).lerp(_made(t), 0.5),
    "angle": lambda t: _made(t).angle(),
    "sort": lambda t: _made(t).sort(),
    "dropout": lambda t: t.nn.functional.dropout(_made(t)),
    "numpy": lambda t: _made(t).numpy(),
    "default dtype": lambda t: t.set_default_dtype(t.complex32),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_as_by_pytorch(name: str) -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(Exception) as theirs:
        REFUSED[name](torch)
    with pytest.raises(theirs.type):
        REFUSED[name](rl)


@pytest.mark.parametrize("name", ["mul", "abs", "index", "cat", "to", "real", "add"])
def test_gradients(name: str) -> None:
    torch = pytest.importorskip("torch")
    functions: dict[str, Any] = {
        "mul": lambda t, x: x * x * (2 + 1j),
        "abs": lambda t, x: x.abs(),
        "index": lambda t, x: x[[0, 0, 1]],
        "cat": lambda t, x: t.cat([x, x]),
        "to": lambda t, x: x.to(t.complex64),
        "real": lambda t, x: x.real,
        "add": lambda t, x: x + 1,
    }
    grads = []
    for t in (rl, torch):
        x = _made(t).requires_grad_()
        result = functions[name](t, x)
        result.backward(t.ones_like(result))
        assert x.grad.dtype == t.complex32
        grads.append(x.grad.tolist())
    assert grads[0] == grads[1]


def test_default_dtype_of_complex_numbers() -> None:
    rl.set_default_dtype(rl.float16)
    try:
        assert rl.tensor([1j]).dtype == rl.complex32
    finally:
        rl.set_default_dtype(rl.float32)


def test_exchange() -> None:
    torch = pytest.importorskip("torch")
    x = _made(rl)
    assert rl.from_dlpack(x).tolist() == torch.from_dlpack(x).tolist() == NUMBERS
    assert rl.from_dlpack(_made(torch)).tolist() == NUMBERS
    for writer, reader in itertools.product((rl, torch), repeat=2):
        file = io.BytesIO()
        whole = _made(writer)
        parts = (
            whole.view(writer.float16)[1:] if writer is rl else None
        )  # PyTorch refuses to save two dtypes over one storage
        writer.save({"x": whole, "parts": parts, "rest": whole[1:]}, file)
        file.seek(0)
        read = reader.load(file)
        assert read["x"].dtype == reader.complex32
        assert read["x"].tolist() == NUMBERS
        assert read["rest"].tolist() == NUMBERS[1:]
        if parts is not None:
            assert read["parts"].tolist() == parts.tolist()
