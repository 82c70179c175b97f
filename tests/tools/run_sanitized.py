"""Runs pytest on a build with address and undefined-behaviour sanitizers.

    python tests/tools/run_sanitized.py build/sanitize -- tests -k softmax

The folder named first is a CMake build whose libraries lie in its package/rushlight; the rest of the package is linked
there from the checkout. The sanitizer's run-time library must be the first in the process, so it is preloaded, and the
leak check is off because the interpreter itself keeps memory to its end.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def runtime_library(build: Path, name: str) -> str:
    compiler = "c++"
    for line in (build / "CMakeCache.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("CMAKE_CXX_COMPILER:"):
            compiler = line.split("=", 1)[1]
    return subprocess.run(
        [compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True
    ).stdout.strip()


def link_package(package: Path) -> None:
    for entry in package.iterdir():
        if entry.is_symlink() and not entry.exists():
            entry.unlink()
    for source in (ROOT / "rushlight").iterdir():
        native = source.suffix == ".so" or source.name in ("lib", "include", "__pycache__")
        target = package / source.name
        if not native and not target.exists():
            target.symlink_to(source)


def main() -> int:
    build = Path(sys.argv[1]).resolve()
    arguments = sys.argv[3:] or ["tests"]
    package = build / "package" / "rushlight"
    link_package(package)
    environment = dict(os.environ)
    environment["PYTHONPATH"] = str(package.parent)
    environment["LD_PRELOAD"] = " ".join(
        runtime_library(build, name) for name in ("libasan.so", "libubsan.so", "libstdc++.so")
    )
    environment["ASAN_OPTIONS"] = "detect_leaks=0:allocator_may_return_null=1:handle_segv=0:" + environment.get(
        "ASAN_OPTIONS", ""
    )
    environment["UBSAN_OPTIONS"] = "print_stacktrace=1:halt_on_error=1:" + environment.get("UBSAN_OPTIONS", "")
    environment["RUSHLIGHT_SANITIZED"] = "1"
    environment["RUSHLIGHT_LIBRARY"] = str(package / "lib" / "librushlight.so")  # for the tests of the kernels
    where = "import rushlight._C as c; print(c.__file__)"
    found = subprocess.run(
        [sys.executable, "-c", where], env=environment, cwd=package.parent, capture_output=True, text=True
    )
    if found.returncode or str(package) not in found.stdout:
        print(
            f"run_sanitized.py: the sanitized extension is not the one imported\n{found.stdout}{found.stderr}",
            file=sys.stderr,
        )
        return 1
    # The pytest script, not python -m pytest, which would put the checkout and its usual libraries first on the path.
    pytest = Path(sys.executable).parent / "pytest"
    return subprocess.run([sys.executable, str(pytest), *arguments], env=environment, cwd=ROOT).returncode


if __name__ == "__main__":
    raise SystemExit(main())
