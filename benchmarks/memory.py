"""Peak memory of training steps: how far the resident set of a fresh process grows, in MB.

python benchmarks/memory.py                    on rushlight
python benchmarks/memory.py --vs torch         beside another implementation, each case in a process of its own
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

Step = Callable[[], Any]


def deep(torch: Any, layers: int = 1000, width: int = 64, rows: int = 256) -> Step:
    """Forward and backward through linear layers with tanh between them."""
    nn = torch.nn
    net = nn.Sequential(*(m for _ in range(layers) for m in (nn.Linear(width, width), nn.Tanh())))
    x = torch.rand(rows, width)
    return lambda: net(x).sum().backward()


def checkpointed(torch: Any) -> Step:
    """The same in 20 checkpoints."""
    nn = torch.nn
    net = nn.Sequential(*(nn.Sequential(nn.Linear(64, 64), nn.Tanh()) for _ in range(1000)))
    x = torch.rand(256, 64, requires_grad=True)
    call = importlib.import_module(f"{torch.__name__}.utils.checkpoint").checkpoint_sequential
    call(net[:2], 1, x, use_reentrant=False).sum().backward()  # modules are loaded
    return lambda: call(net, 20, x, use_reentrant=False).sum().backward()


def attention(torch: Any) -> Step:
    """Four layers of a transformer."""
    nn = torch.nn
    layer = nn.TransformerEncoderLayer(64, 4, 256, batch_first=True)
    net = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
    x = torch.rand(8, 128, 64)
    return lambda: net(x).sum().backward()


def convolutions(torch: Any) -> Step:
    """Twenty convolutions of 3x3 with batch normalisation."""
    nn = torch.nn
    net = nn.Sequential(
        *(m for _ in range(20) for m in (nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU()))
    )
    x = torch.rand(8, 16, 32, 32)
    return lambda: net(x).sum().backward()


CASES: dict[str, Callable[[Any], Step]] = {
    "deep": deep,
    "checkpointed": checkpointed,
    "attention": attention,
    "convolutions": convolutions,
}


def status(field: str) -> float:
    """A line of /proc/self/status, in MB."""
    text = Path("/proc/self/status").read_text()
    return int(text.split(f"{field}:")[1].split()[0]) / 1024


def measure(name: str, module: str) -> dict[str, float]:
    """Growth of the peak in the first and in the third step. A small step of the same kind came before."""
    torch = importlib.import_module(module)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    deep(torch, layers=2, rows=8)()  # libraries are loaded
    step = CASES[name](torch)
    gc.collect()
    gc.disable()
    grown = {}
    before = status("VmRSS")
    for number in (1, 2, 3):
        Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
        step()
        grown[str(number)] = status("VmHWM") - before
    return {"first": grown["1"], "third": grown["3"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--impl", default="rushlight")
    parser.add_argument("--vs", help="another implementation")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        print(json.dumps(measure(options.case, options.impl)))
        return
    modules = [options.impl] + ([options.vs] if options.vs else [])
    print(f"{'MB, first and third step':26}" + "".join(f"{m:>20}" for m in modules))
    for name in CASES:
        cells = []
        for module in modules:
            command = [sys.executable, __file__, "--case", name, "--impl", module]
            found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            cells.append(f"{found['first']:9.1f} {found['third']:9.1f}")
        print(f"{name:26}" + "".join(f"{c:>20}" for c in cells))


if __name__ == "__main__":
    main()
