"""Times work on images and on their inner parts beside PyTorch: microseconds a call.

python benchmarks/images.py                                everything
python benchmarks/images.py --select '^pad'                what matches; names are "case shape"
python benchmarks/images.py --threads 2

Inner parts are slices whose rows lie apart in memory, as crops and borders are. The two frameworks take turns in one
process and the least time of each counts; the ratio is PyTorch's time over Rushlight's.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import math
import re
from collections.abc import Callable
from typing import Any

from reductions import interleaved

SHAPES = [(8, 3, 32, 32), (4, 64, 56, 56), (1, 3, 512, 512), (64, 64, 8, 8)]


def cases(torch: Any, shape: tuple[int, ...]) -> dict[str, Callable[[], Any]]:
    functional = torch.nn.functional
    torch.manual_seed(0)
    x = torch.randn(*shape)
    last = x.contiguous(memory_format=torch.channels_last)
    inner = torch.zeros(*shape[:2], shape[2] + 4, shape[3] + 4)[:, :, 2:-2, 2:-2]
    grid = torch.rand(shape[0], *shape[2:], 2) * 2 - 1
    weight = torch.randn(shape[1], shape[1], 3, 3)
    found: dict[str, Callable[[], Any]] = {
        "copy into inner": lambda: inner.copy_(x),
        "copy of inner": lambda: inner.contiguous(),
        "inner + 1": lambda: inner + 1.0,
        "inner.mul_": lambda: inner.mul_(1.0),
        "inner.fill_": lambda: inner.fill_(0.0),
        "add into inner": lambda: torch.add(x, 1.0, out=inner),
        "flip": lambda: x.flip(3),
        "cat": lambda: torch.cat([x, x], 1),
        "grid_sample": lambda: functional.grid_sample(x, grid, align_corners=False),
        "max_pool2d": lambda: functional.max_pool2d(x, 2),
        "conv2d": lambda: functional.conv2d(x, weight, padding=1),
        "conv2d, channels last": lambda: functional.conv2d(last, weight, padding=1),
        "max_pool2d, channels last": lambda: functional.max_pool2d(last, 2),
        "cat, channels last": lambda: torch.cat([last, last], 1),
    }
    for mode in ("constant", "reflect", "replicate", "circular"):
        found[f"pad, {mode}"] = lambda mode=mode: functional.pad(x, (2, 2, 2, 2), mode=mode)
    for mode in ("nearest", "bilinear", "bicubic"):
        for factor in (0.5, 2.0):
            name = f"interpolate by {factor:g}, {mode}"
            found[name] = lambda mode=mode, factor=factor: functional.interpolate(x, scale_factor=factor, mode=mode)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--select", default="", help='regular expression on "case shape"')
    parser.add_argument("--seconds", type=float, default=0.2, help="spent on a case")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()

    frameworks = [importlib.import_module(name) for name in ("rushlight", "torch")]
    for framework in frameworks:
        framework.set_num_threads(options.threads)
    gc.disable()
    print(f"{'microseconds a call':44}{'rushlight':>12}{'torch':>12}{'ratio':>9}")
    ratios = []
    for shape in SHAPES:
        ours, theirs = (cases(framework, shape) for framework in frameworks)
        for case, call in ours.items():
            name = f"{case} {'x'.join(map(str, shape))}"
            if not re.search(options.select, name):
                continue
            mine, other = interleaved([call, theirs[case]], options.seconds)
            ratios.append(other / mine)
            print(f"{name:44}{mine * 1e6:12.1f}{other * 1e6:12.1f}{ratios[-1]:8.2f}x", flush=True)
    if ratios:
        print(f"{f'{len(ratios)} cases, geometric mean':68}{math.exp(sum(map(math.log, ratios)) / len(ratios)):8.2f}x")


if __name__ == "__main__":
    main()
