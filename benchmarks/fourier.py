"""Times Fourier transforms beside PyTorch: microseconds a call.

python benchmarks/fourier.py                                        everything, which takes some minutes
python benchmarks/fourier.py --select '^rfft float32 .* one row$'   what matches; names are "transform dtype n layout"
python benchmarks/fourier.py --below 0.8 --threads 2                only what is slower than that ratio, on two threads

The two frameworks take turns in one process and the least time of each counts. The ratio is PyTorch's time over
Rushlight's: 2 is twice PyTorch's speed. With more than one thread set OMP_WAIT_POLICY=passive, or PyTorch's idle
threads keep Rushlight's from their cores.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import math
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

SIZES = [8, 16, 30, 32, 64, 100, 128, 256, 512, 997, 1000, 1024, 4096, 65536, 1000000]
DTYPES = ["float32", "float64"]
NUMBERS = 160_000  # about how many a case of several lines has
Case = Callable[[], Any]

IMAGES = {"256x256": (256, 256), "8x3x224x224": (8, 3, 224, 224)}


def rows_of(n: int) -> int:
    return max(1, NUMBERS // n)


def numbers(torch: Any, sizes: tuple[int, ...], dtype: str, complex: bool) -> Any:
    random = np.random.default_rng(0)
    values = random.standard_normal(sizes)
    if complex:
        values = values + 1j * random.standard_normal(sizes)
    return torch.from_numpy(values.astype({"float32": "c8", "float64": "c16"}[dtype] if complex else dtype))


def line(torch: Any, transform: str, dtype: str, n: int, layout: str) -> Case:
    """A transform of n points, of one line, of rows or down columns."""
    length = n // 2 + 1 if transform == "irfft" else n
    sizes = {"one row": (length,), "rows": (rows_of(n), length), "columns": (length, rows_of(n))}[layout]
    dim = 0 if layout == "columns" else -1
    x = numbers(torch, sizes, dtype, transform != "rfft")
    if transform == "irfft":
        return lambda: torch.fft.irfft(x, n, dim)
    function = getattr(torch.fft, transform)
    return lambda: function(x, None, dim)


def image(torch: Any, transform: str, dtype: str, name: str) -> Case:
    x = numbers(torch, IMAGES[name], dtype, transform != "rfft2")
    function = getattr(torch.fft, transform)
    return lambda: function(x)


def spectrogram(torch: Any, transform: str, dtype: str, n: int) -> Case:
    """16 signals of 16 thousand samples, in windows of n that overlap by three quarters; or their inverse."""
    x = numbers(torch, (16, 16000), dtype, False)
    window = torch.hann_window(n, dtype=x.dtype)
    if transform == "stft":
        return lambda: torch.stft(x, n, window=window, return_complex=True)
    y = torch.stft(x, n, window=window, return_complex=True)
    return lambda: torch.istft(y, n, window=window)


def cases(select: str) -> Iterator[tuple[str, Callable[[Any], Case]]]:
    for dtype in DTYPES:
        for transform in "fft", "rfft", "irfft":
            for n in SIZES:
                for layout in ("one row", "rows", "columns") if n < NUMBERS else ("one row",):
                    name = f"{transform} {dtype} {n} {layout}"
                    if re.search(select, name):
                        yield name, lambda t, a=(transform, dtype, n, layout): line(t, *a)
        for transform in "fft2", "rfft2":
            for size in IMAGES:
                name = f"{transform} {dtype} {size}"
                if re.search(select, name):
                    yield name, lambda t, a=(transform, dtype, size): image(t, *a)
        for transform in "stft", "istft":
            for n in 400, 512:
                name = f"{transform} {dtype} {n}"
                if re.search(select, name):
                    yield name, lambda t, a=(transform, dtype, n): spectrogram(t, *a)


def interleaved(calls: list[Case], seconds: float) -> list[float]:
    """The least seconds of each call, the calls taking turns in runs of about half a millisecond."""
    best, repeats = [], []
    for call in calls:
        call()
        start = time.perf_counter()
        call()
        best.append(time.perf_counter() - start)
        repeats.append(max(1, int(5e-4 / max(best[-1], 1e-6))))
    end = time.perf_counter() + seconds
    rounds = 0
    while rounds < 3 or time.perf_counter() < end:
        for i, call in enumerate(calls):
            start = time.perf_counter()
            for _ in range(repeats[i]):
                call()
            best[i] = min(best[i], (time.perf_counter() - start) / repeats[i])
        rounds += 1
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--select", default="", help='regular expression on "transform dtype n layout"')
    parser.add_argument("--seconds", type=float, default=0.1, help="spent on a case")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--below", type=float, default=math.inf, help="print only ratios under this")
    options = parser.parse_args()

    frameworks = [importlib.import_module(name) for name in ("rushlight", "torch")]
    for framework in frameworks:
        framework.set_num_threads(options.threads)
    gc.disable()
    print(f"{'microseconds a call':36}{'rushlight':>12}{'torch':>12}{'ratio':>9}")
    ratios = []
    for name, prepare in cases(options.select):
        ours, theirs = interleaved([prepare(framework) for framework in frameworks], options.seconds)
        ratios.append(theirs / ours)
        if ratios[-1] < options.below:
            print(f"{name:36}{ours * 1e6:12.2f}{theirs * 1e6:12.2f}{ratios[-1]:8.2f}x", flush=True)
    if ratios:
        print(f"{f'{len(ratios)} cases, geometric mean':60}{math.exp(sum(map(math.log, ratios)) / len(ratios)):8.2f}x")


if __name__ == "__main__":
    main()
