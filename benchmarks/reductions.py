"""Times reductions, scans, sorting and indexed reading and writing beside PyTorch: microseconds a call, one thread.

python benchmarks/reductions.py                                     everything, which takes an hour
python benchmarks/reductions.py --select '^(sum|argmax) int64 '     what matches; names are "operation dtype shape"
python benchmarks/reductions.py --below 0.8                         only what is slower than that ratio

The two frameworks take turns in one process and the least time of each counts. The ratio is PyTorch's time over
Rushlight's: 2 is twice PyTorch's speed.
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

FLOATS = "float16 bfloat16 float32 float64".split()
NUMBERS = "uint8 int32 int64".split() + FLOATS
DTYPES = ["bool", *NUMBERS]
# name -> sizes of the tensor, the dimension worked along (None: all of it), whether it is stored the other way round
SHAPES: dict[str, tuple[tuple[int, ...], int | None, bool]] = {
    "whole": ((1000000,), None, False),
    "rows of 8": ((100000, 8), 1, False),
    "rows of 32": ((30000, 32), 1, False),
    "rows of 1000": ((1000, 1000), 1, False),
    "columns of 8": ((8, 100000), 0, False),
    "columns of 32": ((32, 30000), 0, False),
    "columns of 1000": ((1000, 1000), 0, False),
    "middle": ((64, 512, 64), 1, False),
    "transposed": ((1000, 1000), 1, True),
}
Case = Callable[[], Any]


class Operand:
    """The values of one case, the same in both frameworks."""

    def __init__(self, torch: Any, dtype: str, shape: str) -> None:
        self.torch, self.dtype = torch, dtype
        sizes, dim, transposed = SHAPES[shape]
        self.dim = 0 if dim is None else dim
        self.whole = dim is None
        random = np.random.default_rng(0)
        if dtype == "bool":
            values = random.random(sizes) < 0.5
        elif dtype in FLOATS:
            values = random.random(sizes).astype(np.float32) + 0.5  # products of some hundreds stay normal
        else:
            values = random.integers(0, 100, sizes)
        self.x = self.tensor(values).to(getattr(torch, dtype))
        if transposed:
            self.x = self.x.t().contiguous().t()
        self.n = sizes[self.dim]
        self.places = self.tensor(random.integers(0, self.n, sizes))
        self.rows = self.tensor(random.integers(0, self.n, self.n))
        self.mask = self.tensor(random.random(sizes) < 0.5)
        self.bins = self.tensor(np.linspace(0.5 if dtype in FLOATS else 0, 1.5 if dtype in FLOATS else 100, 1000)).to(
            self.x.dtype
        )

    def tensor(self, values: Any) -> Any:
        return self.torch.from_numpy(np.ascontiguousarray(values))

    def along(self, function: Callable[..., Any], *before: Any, **named: Any) -> Case:
        """A function of the tensor and, unless all of it is reduced, a dimension."""
        x, dim = self.x, self.dim
        if self.whole:
            return lambda: function(x, *before, **named)
        return lambda: function(x, *before, dim=dim, **named)

    def scan(self, function: Callable[..., Any], *before: Any) -> Case:
        """A function that always takes a dimension."""
        x, dim = self.x, self.dim
        return lambda: function(x, *before, dim=dim)


def reducing(name: str, *before: Any, **named: Any) -> Callable[[Operand], Case]:
    return lambda o: o.along(getattr(o.torch, name), *before, **named)


def scanning(name: str, *before: Any) -> Callable[[Operand], Case]:
    return lambda o: o.scan(getattr(o.torch, name), *before)


def norm(order: float) -> Callable[[Operand], Case]:
    return lambda o: o.along(o.torch.linalg.vector_norm, order)


def logsumexp(o: Operand) -> Case:
    return lambda: o.torch.logsumexp(o.x, o.dim)


def gather(o: Operand) -> Case:
    return lambda: o.torch.gather(o.x, o.dim, o.places)


def scattered(name: str) -> Callable[[Operand], Case]:
    def prepare(o: Operand) -> Case:
        into = o.torch.zeros_like(o.x)
        method = getattr(into, name)
        return lambda: method(o.dim, o.places, o.x)

    return prepare


def index_add(o: Operand) -> Case:
    into = o.torch.zeros_like(o.x)
    return lambda: into.index_add_(o.dim, o.rows, o.x)


def index_put(o: Operand) -> Case:
    into, x = o.torch.zeros_like(o.x).transpose(0, o.dim), o.x.transpose(0, o.dim)
    return lambda: into.index_put_((o.rows,), x, accumulate=True)


def embedding(o: Operand) -> Case:
    rows = o.tensor(np.random.default_rng(1).integers(0, o.x.shape[0], o.x.shape[0]))
    return lambda: o.torch.nn.functional.embedding(rows, o.x)


FAST = list(SHAPES)
MATRICES = [shape for shape in SHAPES if shape != "whole"]
# operation -> dtypes, shapes, what prepares the call
OPERATIONS: dict[str, tuple[list[str], list[str], Callable[[Operand], Case]]] = {
    **{name: (DTYPES, FAST, reducing(name)) for name in "sum prod amax amin all any count_nonzero".split()},
    **{name: (NUMBERS, FAST, reducing(name)) for name in "aminmax argmax argmin".split()},
    **{name: (FLOATS, FAST, reducing(name)) for name in "mean var std nansum".split()},
    "norm 1": (FLOATS, FAST, norm(1)),
    "norm 2": (FLOATS, FAST, norm(2)),
    "norm inf": (FLOATS, FAST, norm(math.inf)),
    "logsumexp": (FLOATS, FAST, logsumexp),
    **{name: (NUMBERS, MATRICES, scanning(name)) for name in "max min median mode".split()},
    "kthvalue": (NUMBERS, FAST, scanning("kthvalue", 3)),
    "topk": (NUMBERS, FAST, scanning("topk", 4)),
    **{name: (FLOATS, FAST, scanning(name)) for name in "softmax log_softmax logcumsumexp".split()},
    **{name: (NUMBERS, FAST, scanning(name)) for name in "cumsum cumprod cummax sort argsort".split()},
    "unique": (NUMBERS, ["whole"], lambda o: lambda: o.torch.unique(o.x)),
    "searchsorted": (NUMBERS, ["whole"], lambda o: lambda: o.torch.searchsorted(o.bins, o.x)),
    "bucketize": (NUMBERS, ["whole"], lambda o: lambda: o.torch.bucketize(o.x, o.bins)),
    "bincount": (["uint8", "int32", "int64"], ["whole"], lambda o: lambda: o.torch.bincount(o.x)),
    "histc": (["float32", "float64"], ["whole"], lambda o: lambda: o.torch.histc(o.x, 100)),
    "gather": (DTYPES, FAST, gather),
    "take_along_dim": (DTYPES, FAST, lambda o: lambda: o.torch.take_along_dim(o.x, o.places, o.dim)),
    "scatter": (DTYPES, FAST, scattered("scatter_")),
    "scatter_add": (NUMBERS, FAST, scattered("scatter_add_")),
    "index_select": (DTYPES, FAST, lambda o: lambda: o.torch.index_select(o.x, o.dim, o.rows)),
    "index_add": (NUMBERS, FAST, index_add),
    "index_put accumulate": (NUMBERS, FAST, index_put),
    "masked_select": (DTYPES, FAST, lambda o: lambda: o.torch.masked_select(o.x, o.mask)),
    "masked_fill": (DTYPES, FAST, lambda o: lambda: o.torch.masked_fill(o.x, o.mask, 1)),
    "where": (DTYPES, FAST, lambda o: lambda: o.torch.where(o.mask, o.x, o.x)),
    "nonzero": (DTYPES, ["whole", "rows of 8", "rows of 1000", "transposed"], lambda o: lambda: o.torch.nonzero(o.x)),
    "embedding": (FLOATS, [shape for shape in MATRICES if shape != "middle"], embedding),
    "cat": (DTYPES, FAST, lambda o: lambda: o.torch.cat([o.x, o.x, o.x], o.dim)),
    "stack": (DTYPES, FAST, lambda o: lambda: o.torch.stack([o.x, o.x, o.x], o.dim)),
    "flip": (DTYPES, FAST, lambda o: lambda: o.torch.flip(o.x, [o.dim])),
    "roll": (DTYPES, FAST, lambda o: lambda: o.torch.roll(o.x, 3, o.dim)),
    "repeat": (DTYPES, FAST, lambda o: lambda: o.x.repeat(*(2 if d == o.dim else 1 for d in range(o.x.ndim)))),
    "tril": (DTYPES, MATRICES, lambda o: lambda: o.torch.tril(o.x)),
}


def case_names(select: str) -> Iterator[tuple[str, str, str]]:
    for operation, (dtypes, shapes, _) in OPERATIONS.items():
        for dtype in dtypes:
            for shape in shapes:
                if re.search(select, f"{operation} {dtype} {shape}"):
                    yield operation, dtype, shape


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
    parser.add_argument("--select", default="", help='regular expression on "operation dtype shape"')
    parser.add_argument("--seconds", type=float, default=0.3, help="spent on a case")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--below", type=float, default=math.inf, help="print only ratios under this")
    options = parser.parse_args()

    frameworks = [importlib.import_module(name) for name in ("rushlight", "torch")]
    for framework in frameworks:
        framework.set_num_threads(options.threads)
    gc.disable()
    print(f"{'microseconds a call':44}{'rushlight':>12}{'torch':>12}{'ratio':>9}")
    ratios = []
    for operation, dtype, shape in case_names(options.select):
        prepare, name = OPERATIONS[operation][2], f"{operation} {dtype} {shape}"
        try:
            calls = [prepare(Operand(framework, dtype, shape)) for framework in frameworks]
            ours, theirs = interleaved(calls, options.seconds)
        except (RuntimeError, NotImplementedError) as error:  # not defined for the dtype
            print(f"{name:44}{str(error).splitlines()[0]}")
            continue
        ratios.append(theirs / ours)
        if ratios[-1] < options.below:
            print(f"{name:44}{ours * 1e6:12.1f}{theirs * 1e6:12.1f}{ratios[-1]:8.2f}x", flush=True)
    if ratios:
        print(f"{f'{len(ratios)} cases, geometric mean':68}{math.exp(sum(map(math.log, ratios)) / len(ratios)):8.2f}x")


if __name__ == "__main__":
    main()
