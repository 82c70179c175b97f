"""The demo learns, writes its files, and goes the same way on PyTorch."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import rushlight

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "digits.py"

pytestmark = [
    pytest.mark.skipif(
        any(importlib.util.find_spec(name) is None for name in ("sklearn", "matplotlib", "tqdm")),
        reason="the packages of the extra `demo` are not installed",
    ),
    pytest.mark.skipif("RUSHLIGHT_SANITIZED" in os.environ, reason="other libraries in the demo trip the sanitizers"),
]


def run(folder: Path, *arguments: str) -> str:
    command = [sys.executable, str(SCRIPT), "--out", str(folder), *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, timeout=600).stdout


def losses(folder: Path, *arguments: str) -> list[float]:
    run(folder, "--steps", "50", "--log-losses", str(folder / "losses.txt"), *arguments)
    return [float(line) for line in (folder / "losses.txt").read_text().split()]


def test_the_demo_learns_to_read_digits(tmp_path):
    printed = run(tmp_path)
    accuracy = float(re.search(r"test accuracy: ([\d.]+)%", printed).group(1))
    assert accuracy >= 98
    for name in ("loss.png", "predictions.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
    state = rushlight.load(tmp_path / "digits.pt")
    assert state["features.0.weight"].shape == (24, 1, 3, 3)


def test_the_same_losses_on_pytorch(tmp_path):
    torch = pytest.importorskip("torch", reason="PyTorch, which the losses are compared with, is not installed")
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    ours, theirs = losses(tmp_path / "a"), losses(tmp_path / "b", "--framework", "torch")
    assert len(ours) == len(theirs) == 50
    assert max(abs(a - b) for a, b in zip(ours, theirs, strict=True)) < 1e-4
    state = torch.load(tmp_path / "a" / "digits.pt")
    other = torch.load(tmp_path / "b" / "digits.pt")
    assert list(state) == list(other)
    assert all(torch.allclose(state[name], other[name], atol=1e-3) for name in state)


def test_the_same_losses_twice(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    assert losses(tmp_path / "a") == losses(tmp_path / "b")
