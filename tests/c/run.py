"""Checks the kernel library by itself: a C99 program, then Python through cffi against NumPy.

    python tests/c/run.py LIBRARY [--blas BLAS] [--only NAME]

LIBRARY is librushlight.so. Prints a line for each failing check; the exit status says whether there was one.
"""

from __future__ import annotations

import argparse
import importlib
import os
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from library import INCLUDE, Library  # noqa: E402

MODULES = ("check_core", "check_matmul", "check_conv", "check_pool")


def find_blas() -> str | None:
    """The OpenBLAS library of the scipy-openblas32 package, if that is installed."""
    try:
        import scipy_openblas32
    except ImportError:
        return None
    folder = Path(scipy_openblas32.get_lib_dir())
    return str(next(iter(sorted(folder.glob("libscipy_openblas*.so*")))))


def run_c(library: str, blas: str | None) -> bool:
    """Compiles check.c as strict C99 against the header alone, and runs it."""
    with tempfile.TemporaryDirectory() as folder:
        program = str(Path(folder) / "check")
        compiler = os.environ.get("CC", "cc")
        flags = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-O1", "-g"]
        place = str(Path(library).resolve().parent)
        command = [compiler, *flags, "-I", str(INCLUDE), str(HERE / "check.c"), "-o", program, library]
        command += [f"-Wl,-rpath,{place}", *os.environ.get("CHECK_LDFLAGS", "").split(), "-lm"]
        if subprocess.run(command).returncode:
            print("check.c does not compile")
            return False
        return subprocess.run([program, *([blas] if blas else [])]).returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("--blas", default=None)
    parser.add_argument("--only", default="", help="run only the checks whose name contains this")
    options = parser.parse_args()
    blas = options.blas or find_blas()
    library = str(Path(options.library).resolve())
    failed = passed = 0
    if not options.only:
        failed += not run_c(library, blas)
        passed += not failed
    lib = Library(library)
    if blas:
        lib.set_blas_library(lib.ffi.new("char[]", blas.encode()))
    for module_name in MODULES:
        module = importlib.import_module(module_name)
        for name, function in vars(module).items():
            if not name.startswith("check_") or not callable(function) or options.only not in name:
                continue
            try:
                function(lib)
                passed += 1
            except Exception:
                failed += 1
                print(f"FAILED {module_name}.{name}")
                traceback.print_exc()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
