"""Times products of square matrices, in microseconds and billions of operations a second.

python benchmarks/products.py --dtype bfloat16 --vs torch 128 256 1024
"""

from __future__ import annotations

import argparse
import importlib
import subprocess
import sys
import time


def measure(framework: str, dtype: str, size: int) -> float:
    """The least time of a call within half a second."""
    torch = importlib.import_module(framework)
    a = torch.randn(size, size).to(getattr(torch, dtype))
    b = torch.randn(size, size).to(getattr(torch, dtype))
    for _ in range(3):
        a @ b
    least, end = float("inf"), time.perf_counter() + 0.5
    while time.perf_counter() < end:
        start = time.perf_counter()
        a @ b
        least = min(least, time.perf_counter() - start)
    return least


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sizes", type=int, nargs="*", default=[64, 128, 256, 512, 1024])
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--impl", default="rushlight", help="the module to time")
    parser.add_argument("--vs", help="another module, timed in a process of its own")
    options = parser.parse_args()
    for size in options.sizes:
        seconds = measure(options.impl, options.dtype, size)
        print(f"{options.impl:10} {size:5} {seconds * 1e6:10.1f} us {2 * size**3 / seconds / 1e9:8.1f} G/s", flush=True)
    if options.vs:
        sizes = map(str, options.sizes)
        subprocess.run([sys.executable, __file__, "--impl", options.vs, "--dtype", options.dtype, *sizes], check=True)


if __name__ == "__main__":
    main()
