"""scikit-learn and SciPy take tensors through the array API standard."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CONSUMERS = Path(__file__).parent / "consumers"


@pytest.mark.parametrize(("package", "version"), [("scipy", "1.17"), ("sklearn", "1.8")])
def test_consumer(package, version):
    pytest.importorskip(package, minversion=version, reason=f"the array API is served by {package} {version} and later")
    script = CONSUMERS / {"scipy": "scipy_cases.py", "sklearn": "scikit_learn_cases.py"}[package]
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "cases, 0 wrong" in done.stdout


def test_array_api_compat():
    compat = pytest.importorskip("array_api_compat")
    import rushlight

    x = rushlight.ones(2, 3)
    assert compat.is_array_api_obj(x)
    assert compat.array_namespace(x) is rushlight.array_api
    assert compat.size(x) == 6 and compat.device(x) == rushlight.device("cpu")
    assert compat.to_device(x, "cpu") is x
