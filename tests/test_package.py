"""What the package weighs and what importing it costs."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import rushlight

PACKAGE = Path(rushlight.__file__).resolve().parent
SANITIZED = "RUSHLIGHT_SANITIZED" in os.environ

COST_OF_IMPORT = """
import json, resource, sys, time
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.perf_counter()
import rushlight
seconds = time.perf_counter() - start
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
maps = open("/proc/self/maps").read()
print(json.dumps({"seconds": seconds, "kilobytes": after - before, "modules": sorted(sys.modules),
                  "blas": "openblas" in maps}))
"""


def cost_of_import() -> dict:
    done = subprocess.run([sys.executable, "-c", COST_OF_IMPORT], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs /proc")
@pytest.mark.skipif("RUSHLIGHT_SANITIZED" in os.environ, reason="sanitizers take time and memory")
def test_import_loads_neither_numpy_nor_blas():
    found = cost_of_import()
    assert not found["blas"]
    heavy = {"numpy", "scipy_openblas32", "ctypes", "pickle", "multiprocessing", "zipfile", "torch", "rushlight.nn"}
    assert heavy.isdisjoint(found["modules"])


@pytest.mark.skipif(SANITIZED, reason="sanitizers cost time and memory")
@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs /proc")
def test_import_is_quick_and_small():
    # The least of several runs: what disturbs one only makes it longer. Under load the bound leaves room.
    runs = [cost_of_import() for _ in range(7)]
    assert min(run["seconds"] for run in runs) < 0.06
    assert min(run["kilobytes"] for run in runs) < 25_000


@pytest.mark.skipif(SANITIZED, reason="sanitized libraries are larger")
def test_the_wheel_stays_small(tmp_path):
    """What a wheel would hold, compressed: libraries without symbols, Python files, headers."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(PACKAGE.rglob("*")):
            if path.is_dir() or "__pycache__" in path.parts:
                continue
            if path.suffix == ".so" and shutil.which("strip"):
                stripped = tmp_path / path.name
                subprocess.run(["strip", "-o", str(stripped), str(path)], check=True)
                archive.write(stripped, path.name)
            else:
                archive.write(path, str(path.relative_to(PACKAGE)))
    assert len(packed.getvalue()) < 12_000_000


def test_version_is_stated_once():
    text = (PACKAGE.parent / "pyproject.toml").read_text() if (PACKAGE.parent / "pyproject.toml").exists() else None
    if text is None:
        pytest.skip("not a checkout")
    assert f'version = "{rushlight.__version__}"' in text
    assert f"VERSION {rushlight.__version__} " in (PACKAGE.parent / "CMakeLists.txt").read_text()


def test_the_header_ships_with_the_package():
    assert (PACKAGE / "include" / "rushlight.h").exists()
    assert list((PACKAGE / "lib").glob("librushlight.*"))
