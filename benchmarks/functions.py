"""Times elementary functions over tensors: picoseconds an element, one thread.

python benchmarks/functions.py                                 float32 of 65,536 elements, on rushlight
python benchmarks/functions.py --vs torch                      beside another, each in a process of its own
python benchmarks/functions.py --dtype float64 --size 4194304  others
python benchmarks/functions.py --select '^(exp|tanh)$'         what matches
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from overhead import nanoseconds

WHOLE, POSITIVE, UNIT = (-4.0, 4.0), (0.1, 4.0), (0.01, 0.99)
RANGES = {
    **dict.fromkeys("exp exp2 expm1 tanh sinh cosh sigmoid silu softplus mish gelu".split(), WHOLE),
    **dict.fromkeys("sin cos tan atan asinh erf erfc elu gelu_tanh log_sigmoid".split(), WHOLE),
    **dict.fromkeys("log log2 log10 log1p rsqrt lgamma".split(), POSITIVE),
    **dict.fromkeys("asin acos atanh logit erfinv".split(), UNIT),
    "acosh": (1.0, 4.0),
    **dict.fromkeys("atan2 hypot pow logaddexp xlogy".split(), POSITIVE),
    "pow 2.5": POSITIVE,
    "softmax": WHOLE,
    "logsumexp": WHOLE,
    **dict.fromkeys((f"{name} backward" for name in "tanh sigmoid gelu softplus silu".split()), WHOLE),
}


def prepare(torch: Any, name: str, dtype: str, size: int) -> Callable[[], Any]:
    """The call to be timed."""
    low, high = RANGES[name]
    torch.manual_seed(0)
    x, y = (torch.rand(size, dtype=getattr(torch, dtype)) * (high - low) + low for _ in range(2))
    F = torch.nn.functional
    if name.endswith(" backward"):
        word = name.split()[0]
        x.requires_grad_()
        result = getattr(F, word)(x)
        return lambda: torch.autograd.grad(result, x, y, retain_graph=True)
    if name in ("atan2", "hypot", "pow", "logaddexp", "xlogy"):
        function = getattr(torch, name)
        return lambda: function(x, y)
    special: dict[str, Callable[[], Any]] = {
        "pow 2.5": lambda: torch.pow(x, 2.5),
        "gelu_tanh": lambda: F.gelu(x, approximate="tanh"),
        "log_sigmoid": lambda: F.logsigmoid(x),
        "softmax": lambda: torch.softmax(x.view(-1, 256), 1),
        "logsumexp": lambda: torch.logsumexp(x.view(-1, 256), 1),
    }
    if name in special:
        return special[name]
    function = getattr(torch, name, None) or getattr(F, name)
    return lambda: function(x)


def measure(framework: str, select: str, dtype: str, size: int, seconds: float) -> dict[str, float]:
    torch = importlib.import_module(framework)
    torch.set_num_threads(1)
    names = [name for name in RANGES if re.search(select, name)]
    return {name: nanoseconds(prepare(torch, name, dtype, size), seconds) * 1000 / size for name in names}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--framework", default="rushlight")
    parser.add_argument("--select", default="", help="regular expression on the names of the functions")
    parser.add_argument("--vs", help="another framework to measure beside it")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--size", type=int, default=65536, help="elements, a multiple of 256")
    parser.add_argument("--seconds", type=float, default=0.05, help="spent on a function")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON and nothing else")
    options = parser.parse_args()

    if options.json:
        print(json.dumps(measure(options.framework, options.select, options.dtype, options.size, options.seconds)))
        return
    frameworks = [options.framework, *([options.vs] if options.vs else [])]
    figures: list[dict[str, float]] = []
    for framework in frameworks:
        command = [sys.executable, __file__, *sys.argv[1:], "--framework", framework, "--json"]
        figures.append(json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout))
    print(
        f"{'ps an element':20}"
        + "".join(f"{framework:>12}" for framework in frameworks)
        + (f"{'ratio':>9}" if options.vs else "")
    )
    ratios = []
    for name in figures[0]:
        line = f"{name:20}" + "".join(f"{column[name]:12.0f}" for column in figures)
        if len(figures) > 1:
            ratios.append(figures[1][name] / figures[0][name])
            line += f"{ratios[-1]:8.2f}x"
        print(line)
    if ratios:
        print(f"{'geometric mean':44}{math.exp(sum(map(math.log, ratios)) / len(ratios)):8.2f}x")


if __name__ == "__main__":
    main()
