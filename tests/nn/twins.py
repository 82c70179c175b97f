"""The same values on both sides: rushlight and PyTorch, which is the reference."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest
import torch

rl: Any = importlib.import_module("rushlight")

TOLERANCE = {
    "float16": 2e-3,
    "bfloat16": 2e-2,
    "float32": 2e-5,
    "float64": 1e-10,
    "complex64": 2e-5,
    "complex128": 1e-10,
}


def needs(*names: str) -> None:
    """Skips a test while rushlight lacks one of these names (with dots for those of a submodule)."""
    for name in names:
        module: Any = rl
        for part in name.split("."):
            module = getattr(module, part, None)
        if module is None:
            pytest.skip(f"rushlight has no {name} yet")


def to_rushlight(value: Any) -> Any:
    """A value of PyTorch's side on rushlight's side, through containers."""
    if isinstance(value, torch.Tensor):
        if rl.Tensor is torch.Tensor:
            return value.detach().clone().requires_grad_(value.requires_grad)
        if value.dtype == torch.bfloat16:
            t = rl.from_numpy(value.detach().float().numpy().copy()).to(rl.bfloat16)
        else:
            t = rl.from_numpy(np.array(value.detach().contiguous().numpy(), copy=True))
        return t.requires_grad_() if value.requires_grad else t
    if isinstance(value, tuple):
        return tuple(to_rushlight(v) for v in value)
    if isinstance(value, list):
        return [to_rushlight(v) for v in value]
    if isinstance(value, dict):
        return {k: to_rushlight(v) for k, v in value.items()}
    if isinstance(value, torch.dtype):
        return getattr(rl, str(value).partition(".")[2])
    return value


def to_torch(value: Any) -> Any:
    """A tensor of rushlight's side as one of PyTorch's."""
    if rl.Tensor is torch.Tensor:
        return value.detach()
    if value.dtype == rl.bfloat16:
        return torch.from_numpy(np.array(value.detach().to(rl.float32).numpy(), copy=True)).to(torch.bfloat16)
    return torch.from_numpy(np.array(value.detach().numpy(), copy=True))


def assert_same(
    got: Any, want: Any, where: str = "result", exact: bool = False, tolerance: float | None = None
) -> None:
    """Equal structure, shapes, dtypes and (within the tolerance of the dtype) values."""
    if isinstance(want, torch.Tensor):
        assert isinstance(got, rl.Tensor), f"{where}: {type(got)}"
        got = to_torch(got)
        assert got.dtype == want.dtype, where
        assert got.shape == want.shape, where
        if exact:
            assert torch.equal(got, want.detach()), f"{where}: not bit-equal"
            return
        tol = tolerance if tolerance is not None else TOLERANCE.get(str(want.dtype).partition(".")[2], 0.0)
        torch.testing.assert_close(
            got, want.detach(), rtol=tol, atol=tol, equal_nan=True, msg=lambda m: f"{where}: {m}"
        )
    elif isinstance(want, dict):
        assert list(got) == list(want), where
        for k in want:
            assert_same(got[k], want[k], f"{where}[{k}]", exact, tolerance)
    elif isinstance(want, (list, tuple)):
        assert len(got) == len(want), where
        for i, (g, w) in enumerate(zip(got, want, strict=True)):
            assert_same(g, w, f"{where}[{i}]", exact, tolerance)
    else:
        assert got == want or (got != got and want != want), f"{where}: {got!r} instead of {want!r}"


def tensors(value: Any, kind: Any) -> list[Any]:
    """All tensors of a type in a structure."""
    if isinstance(value, kind):
        return [value]
    if isinstance(value, dict):
        return [t for v in value.values() for t in tensors(v, kind)]
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in tensors(v, kind)]
    return []


def gradients(outputs: Any, inputs: list[Any], side: Any, kind: Any) -> list[Any]:
    """Gradients of a fixed weighting of all outputs."""
    total = None
    for i, out in enumerate(tensors(outputs, kind)):
        if not out.requires_grad:
            continue
        weight = torch.linspace(0.5, 1.5, max(out.numel(), 1), dtype=torch.float64)[: out.numel()].reshape(
            tuple(out.shape)
        )
        weight = weight * (i + 1)
        if side is not torch:
            weight = to_rushlight(weight)
        real = out.real if out.is_complex() else out
        term = (real.to(weight.dtype) * weight).sum()
        total = term if total is None else total + term
    if total is None:
        return []
    return list(side.autograd.grad(total, inputs, allow_unused=True))
