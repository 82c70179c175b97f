"""Times small operations, where the cost is that of getting to the kernel: nanoseconds a call.

python benchmarks/overhead.py                        everything, on rushlight
python benchmarks/overhead.py --select 'add|mul'     what matches
python benchmarks/overhead.py --vs torch             beside another implementation, each in a process of its own
python benchmarks/overhead.py --json before.json     writes the figures; --compare before.json shows the change
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import math
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Case = Callable[[], Any]


def cases(torch: Any) -> dict[str, Callable[[], Case]]:
    """Name -> a function that prepares the case and returns the call to be timed."""
    nn, F = torch.nn, torch.nn.functional

    def tensors(*shapes: tuple[int, ...], grad: bool = False) -> list[Any]:
        torch.manual_seed(0)
        return [torch.rand(shape).requires_grad_(grad) for shape in shapes]

    def binary(name: str) -> Callable[[], Case]:
        def prepare() -> Case:
            a, b = tensors((4, 4), (4, 4))
            function = getattr(torch, name)
            return lambda: function(a, b)

        return prepare

    def unary(name: str, shape: tuple[int, ...] = (4, 4)) -> Callable[[], Case]:
        def prepare() -> Case:
            (a,) = tensors(shape)
            function = getattr(torch, name)
            return lambda: function(a)

        return prepare

    def on(call: Callable[..., Any], *shapes: tuple[int, ...], grad: bool = False) -> Callable[[], Case]:
        def prepare() -> Case:
            values = tensors(*shapes, grad=grad)
            return lambda: call(*values)

        return prepare

    def adding_in_place() -> Case:
        a, b = tensors((4, 4), (4, 4))
        return lambda: a.add_(b)

    def writing_out() -> Case:
        a, b, out = tensors((4, 4), (4, 4), (4, 4))
        return lambda: torch.add(a, b, out=out)

    def without_grad() -> Case:
        a, b = tensors((4, 4), (4, 4), grad=True)

        def call() -> Any:
            with torch.no_grad():
                return a + b

        return call

    def module(make: Callable[[], Any], *shape: int) -> Callable[[], Case]:
        def prepare() -> Case:
            (x,) = tensors(shape)
            layer = make()
            return lambda: layer(x)

        return prepare

    def backward() -> Case:
        a, b = tensors((4, 4), (4, 4), grad=True)
        return lambda: (a * b + a).sum().backward()

    def long_chain() -> Case:
        (a,) = tensors((4,), grad=True)

        def call() -> None:
            x = a
            for _ in range(100):
                x = x * 1.01
            x.sum().backward()

        return call

    def training(optimizer_name: str) -> Callable[[], Case]:
        def prepare() -> Case:
            torch.manual_seed(0)
            model = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2))
            optimizer = getattr(torch.optim, optimizer_name)(model.parameters(), lr=1e-3)
            x, y = torch.rand(32, 4), torch.rand(32, 2)

            def step() -> None:
                optimizer.zero_grad()
                F.mse_loss(model(x), y).backward()
                optimizer.step()

            return step

        return prepare

    def indexing(index: Any) -> Callable[[], Case]:
        def prepare() -> Case:
            (a,) = tensors((4, 4))
            return lambda: a[index]

        return prepare

    def cross_entropy() -> Case:
        (a,) = tensors((4, 4))
        target = torch.zeros(4, dtype=torch.int64)
        return lambda: F.cross_entropy(a, target)

    def from_list() -> Case:
        values = [1.0, 2.0, 3.0, 4.0]
        return lambda: torch.tensor(values)

    return {
        "add": binary("add"),
        "add operator": on(lambda a, b: a + b, (4, 4), (4, 4)),
        "add broadcast": on(lambda a, b: a + b, (4, 4), (4,)),
        "add recorded": on(lambda a, b: a + b, (4, 4), (4, 4), grad=True),
        "add in no_grad": without_grad,
        "add_": adding_in_place,
        "add out=": writing_out,
        "mul by number": on(lambda a: a * 2.0, (4, 4)),
        "compare with number": on(lambda a: a > 0.5, (4, 4)),
        "exp": unary("exp"),
        "tanh": unary("tanh"),
        "relu": unary("relu"),
        "sum": unary("sum"),
        "sum over dim": on(lambda a: a.sum(1), (4, 4)),
        "mean": unary("mean"),
        "argmax": unary("argmax"),
        "matmul": binary("matmul"),
        "mv": on(lambda a, b: a @ b, (4, 4), (4,)),
        "view": on(lambda a: a.view(16), (4, 4)),
        "reshape": on(lambda a: a.reshape(2, 8), (4, 4)),
        "transpose": on(lambda a: a.t(), (4, 4)),
        "index int": indexing(1),
        "index slice": indexing(slice(1, 3)),
        "index tuple": indexing((slice(None), 1)),
        "cat": on(lambda a, b: torch.cat((a, b)), (4, 4), (4, 4)),
        "softmax": on(lambda a: torch.softmax(a, 1), (4, 4)),
        "cast": on(lambda a: a.to(torch.float64), (4, 4)),
        "clone": on(lambda a: a.clone(), (4, 4)),
        "item": on(lambda a: a.item(), ()),
        "shape": on(lambda a: a.shape, (4, 4)),
        "zeros": lambda: lambda: torch.zeros(4, 4),
        "rand": lambda: lambda: torch.rand(4, 4),
        "tensor of list": from_list,
        "Linear": module(lambda: nn.Linear(4, 4), 4, 4),
        "Sequential of 3": module(lambda: nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4)), 4, 4),
        "LayerNorm": module(lambda: nn.LayerNorm(4), 4, 4),
        "cross_entropy": cross_entropy,
        "backward of 3 operations": backward,
        "100 products and backward": long_chain,
        "training step, SGD": training("SGD"),
        "training step, Adam": training("Adam"),
    }


def nanoseconds(call: Case, seconds: float = 0.15) -> float:
    """The least time a call takes over repeated runs of about 5 ms each."""
    number = 1
    while True:
        start = time.perf_counter_ns()
        for _ in range(number):
            call()
        elapsed = time.perf_counter_ns() - start
        if elapsed > 2_000_000:
            break
        number *= 2
    number = max(1, round(number * 5_000_000 / elapsed))
    best = math.inf
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter_ns()
        for _ in range(number):
            call()
        best = min(best, (time.perf_counter_ns() - start) / number)
    return best


def measure(framework: str, select: str) -> dict[str, float]:
    torch = importlib.import_module(framework)
    torch.set_num_threads(1)
    found: dict[str, float] = {}
    for name, prepare in cases(torch).items():
        if re.search(select, name):
            call = prepare()
            gc.collect()
            gc.disable()
            try:
                found[name] = nanoseconds(call)
            finally:
                gc.enable()
    return found


def measure_apart(framework: str, select: str) -> dict[str, float]:
    command = [sys.executable, __file__, "--framework", framework, "--select", select, "--json", "-"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"overhead.py: measuring {framework} failed")
    result: dict[str, float] = json.loads(done.stdout)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--framework", default="rushlight")
    parser.add_argument("--select", default="", help="regular expression on the names of the cases")
    parser.add_argument("--vs", help="another framework to measure beside it")
    parser.add_argument("--json", help="write the figures to this file (- for standard output, and nothing else)")
    parser.add_argument("--compare", type=Path, help="show the change since the figures in this file")
    options = parser.parse_args()

    if options.json == "-":
        print(json.dumps(measure(options.framework, options.select)))
        return
    figures = measure_apart(options.framework, options.select)
    other: dict[str, float] = {}
    label = ""
    if options.vs:
        other, label = measure_apart(options.vs, options.select), options.vs
    elif options.compare:
        other, label = json.loads(options.compare.read_text()), "before"
    heading = f"{'ns a call':30}{options.framework:>12}"
    print(heading + (f"{label:>12}{'ratio':>9}" if other else ""))
    ratios = []
    for name, value in figures.items():
        line = f"{name:30}{value:12.0f}"
        if name in other:
            ratios.append(other[name] / value)
            line += f"{other[name]:12.0f}{ratios[-1]:8.2f}x"
        print(line)
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"{'geometric mean of ratios':54}{mean:8.2f}x")
    if options.json:
        Path(options.json).write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
