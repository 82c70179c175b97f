"""Tangents of views: random programs of views and in-place writes of dual numbers, beside PyTorch."""

from __future__ import annotations

import random
from typing import Any

import pytest

import rushlight


def view(t: Any, choice: random.Random) -> Any:
    """A random view of the tensor."""
    kind = choice.randrange(8)
    if kind == 0 and t.dim():
        return t[choice.randrange(t.shape[0])]
    if kind == 1 and t.dim() and t.shape[0] > 1:
        start = choice.randrange(t.shape[0] - 1)
        return t[start : start + choice.randint(1, 2)]
    if kind == 2 and t.dim() > 1:
        return t.transpose(0, -1)
    if kind == 3:
        return t.unsqueeze(choice.randint(0, t.dim()))
    if kind == 4 and t.dim() and t.shape[-1] > 1:
        return t[..., :: choice.randint(1, 2)]
    if kind == 5 and t.is_complex():
        return choice.choice((t.real, t.imag))
    if kind == 6 and t.dim() > 1 and t.shape[0] == t.shape[1]:
        return t.diagonal()
    if kind == 7:
        return t.narrow(0, 0, max(1, t.shape[0] - 1)) if t.dim() and t.shape[0] else t.view(t.shape)
    return t.view(t.shape)


def write(framework: Any, t: Any, dual: Any, choice: random.Random) -> None:
    """A random write into the tensor, of a dual number or of a plain one."""
    kind = choice.randrange(6)
    value = dual.sum() if kind % 2 else framework.tensor(choice.uniform(-1, 1), dtype=framework.float64)
    value = value.to(t.dtype)  # PyTorch fails where a real tangent is copied into complex numbers
    if kind < 2:
        t.copy_(value.expand(t.shape))
    elif kind < 4:
        t.mul_(value)
    elif kind == 4:
        t.zero_()
    else:
        t.add_(value)


def run(framework: Any, seed: int) -> list[Any]:
    """Values and tangents of all tensors after each step."""
    choice = random.Random(seed)
    forward = framework.autograd.forward_ad
    seen: list[Any] = []
    with forward.dual_level():
        dual = forward.make_dual(framework.tensor([1.5, -0.5]).double(), framework.tensor([1.0, 2.0]).double())
        dtype = choice.choice((framework.float64, framework.complex128))
        shape = choice.choice(((4,), (3, 3), (2, 3, 2)))
        numbers = [choice.uniform(-1, 1) for _ in range(12)]
        whole = framework.tensor(numbers[: 4 if len(shape) == 1 else 9 if len(shape) == 2 else 12], dtype=dtype)
        tensors = [whole.reshape(shape).clone()]
        if choice.random() < 0.2:
            tensors[0] = forward.make_dual(tensors[0], framework.ones_like(tensors[0]))
        for _ in range(choice.randint(3, 9)):
            t = choice.choice(tensors)
            step = choice.random()
            if step < 0.55:
                tensors.append(view(t, choice))
            elif step < 0.9:
                write(framework, t, dual, choice)
            else:
                tensors.append(t * 2)
            for one in tensors:
                primal, tangent = forward.unpack_dual(one)
                zero = framework.zeros_like(primal)
                seen.append(
                    [x.resolve_conj().reshape(-1).tolist() for x in (primal, zero if tangent is None else tangent)]
                )
    after = [framework.ones(()).double() * 2 + t.real.sum() if t.is_complex() else t.sum() + 2 for t in tensors]
    seen.append([float(x) for x in after])  # once the level is over they count as their values
    return seen


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # PyTorch's own, when it first loads forward mode
@pytest.mark.parametrize("first", range(0, 400, 40))
def test_views_written_with_dual_numbers_have_the_tangents_of_pytorch(first: int) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch, whose tangents are compared, is not installed")
    for seed in range(first, first + 40):
        ours, theirs = run(rushlight, seed), run(torch, seed)
        assert len(ours) == len(theirs)
        for mine, other in zip(ours, theirs, strict=True):
            assert mine == pytest.approx(other) if isinstance(mine[0], float) else True
            for a, b in zip(mine, other, strict=True):
                assert a == pytest.approx(b), f"seed {seed}"


def test_a_view_made_before_another_was_written_has_its_part_of_the_tangent() -> None:
    """By hand: the tangent (1, 2) is written at the places 0 and 1; a view of the places 1 and 2 sees (2, 0)."""
    forward = rushlight.autograd.forward_ad
    with forward.dual_level():
        x = rushlight.zeros(4)
        first, second = x[:2], x[1:3]
        first.copy_(forward.make_dual(rushlight.tensor([5.0, 6.0]), rushlight.tensor([1.0, 2.0])))
        assert forward.unpack_dual(second).tangent.tolist() == [2.0, 0.0]
        assert forward.unpack_dual(second * 3).tangent.tolist() == [6.0, 0.0]
        assert forward.unpack_dual(second[0]).tangent.item() == 2.0
    assert (second * 2).tolist() == [12.0, 0.0]
    z = rushlight.zeros(2, dtype=rushlight.complex64)
    imaginary, real = z.imag, z.real
    with forward.dual_level():
        imaginary.copy_(forward.make_dual(rushlight.tensor([5.0, 6.0]), rushlight.tensor([1.0, 2.0])))
        assert forward.unpack_dual(z).tangent.tolist() == [1j, 2j]
        assert forward.unpack_dual(real).tangent.tolist() == [0.0, 0.0]


def test_a_view_first_used_after_the_level_counts_as_its_value() -> None:
    forward = rushlight.autograd.forward_ad
    x = rushlight.zeros(4)
    first, second = x[:2], x[1:3]
    with forward.dual_level():
        first.copy_(forward.make_dual(rushlight.tensor([5.0, 6.0]), rushlight.tensor([1.0, 2.0])))
    assert (second + 1).tolist() == [7.0, 1.0]
    second.add_(1)
    assert second.tolist() == [7.0, 1.0] and (first * 1).tolist() == [5.0, 7.0]
