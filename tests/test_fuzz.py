"""A short run of the differential fuzz: no difference from PyTorch but those of tests/tools/fuzz_accepted.py."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="compares with PyTorch")

TOOL = Path(__file__).parent / "tools" / "fuzz_functions.py"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="every function is called in a process of its own, by fork")
def test_odd_calls_do_what_they_do_in_pytorch():
    # Strides and aliasing of results are left out: they differ in ways not settled yet.
    kinds = "value refuses accepts type crash"
    command = [sys.executable, str(TOOL), "--seed", "5", "--every", "20", "--calls", "3", "--kinds", kinds]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
