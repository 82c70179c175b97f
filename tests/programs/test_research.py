"""Whole programs, as researchers write them, give PyTorch's figures: training, meta-learning, transforms, physics."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from research import PROGRAMS

import rushlight


def figures(framework: Any, name: str, dtype: str) -> list[np.ndarray]:
    before = framework.get_default_dtype()
    framework.set_default_dtype(getattr(framework, dtype))
    try:
        results = PROGRAMS[name](framework)
    finally:
        framework.set_default_dtype(before)
    return [np.asarray(r.detach().numpy() if isinstance(r, framework.Tensor) else r) for r in results]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_gives_the_figures_of_pytorch(name: str) -> None:
    """In double precision, so that a difference is one of meaning and not of rounding."""
    torch = pytest.importorskip("torch", reason="PyTorch, which the figures are compared with, is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's own deprecations inside forward mode
        theirs = figures(torch, name, "float64")
    ours = figures(rushlight, name, "float64")
    assert len(ours) == len(theirs) > 0
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_runs_twice_to_the_same_bits(name: str) -> None:
    for first, second in zip(figures(rushlight, name, "float32"), figures(rushlight, name, "float32"), strict=True):
        np.testing.assert_array_equal(first, second)
