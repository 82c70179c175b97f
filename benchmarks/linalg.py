"""Times linear algebra, Fourier transforms and their derivatives, and prints how much faster than another module.

python benchmarks/linalg.py --vs torch --groups "^(4|256)$" --select "solve|eigh"

Each module runs in a process of its own. The two take turns, several times a case, and the least time of each counts;
the ratio is the other's time over ours, so more than 1 says that we are faster.
"""

from __future__ import annotations

import argparse
import importlib
import re
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

Call = Callable[[], Any]
ROUNDS = 4


def matrices(torch: Any, count: int, n: int, columns: int | None = None) -> Any:
    """A batch of matrices, one without a batch dimension."""
    shape = (n, columns or n)
    return torch.randn(*shape) if count == 1 else torch.randn(count, *shape)


def positive(torch: Any, count: int, n: int) -> Any:
    """Symmetric positive-definite matrices."""
    a = matrices(torch, count, n)
    return a @ a.mT / n + torch.eye(n)


def factorisations(torch: Any, count: int, n: int) -> dict[str, Call]:
    """Calls on `count` matrices of n x n."""
    a, spd, b = matrices(torch, count, n), positive(torch, count, n), matrices(torch, count, n, 4)
    general = a / n**0.5 + 2 * torch.eye(n)
    tall = matrices(torch, count, 2 * n, n)
    tall_b = matrices(torch, count, 2 * n, 4)
    factor, upper, la = torch.linalg.cholesky(spd), general.triu(), torch.linalg
    lu, pivots = la.lu_factor(general)
    calls = {
        "solve": lambda: la.solve(general, b),
        "inv": lambda: la.inv(general),
        "det": lambda: la.det(general),
        "slogdet": lambda: la.slogdet(general),
        "lu_factor": lambda: la.lu_factor(general),
        "lu_solve": lambda: la.lu_solve(lu, pivots, b),
        "cholesky": lambda: la.cholesky(spd),
        "cholesky_solve": lambda: torch.cholesky_solve(b, factor),
        "cholesky_inverse": lambda: torch.cholesky_inverse(factor),
        "solve_triangular": lambda: la.solve_triangular(upper, b, upper=True),
        "qr": lambda: la.qr(a),
        "lstsq": lambda: la.lstsq(tall, tall_b),
        "matrix_exp": lambda: la.matrix_exp(general),
        "eigh": lambda: la.eigh(spd),
        "eigvalsh": lambda: la.eigvalsh(spd),
        "lu": lambda: la.lu(general),
        "matrix_power 7": lambda: la.matrix_power(a / n**0.5, 7),
    }
    if count * n**3 < 4e8:
        calls["svd"] = lambda: la.svd(a)
        calls["svdvals"] = lambda: la.svdvals(a)
        calls["pinv"] = lambda: la.pinv(a)
    return calls


def derivatives(torch: Any, count: int, n: int) -> dict[str, Call]:
    """Forward and backward of calls on `count` matrices of n x n."""
    spd, b = positive(torch, count, n).requires_grad_(), matrices(torch, count, n, 4).requires_grad_()
    la = torch.linalg

    def gradient(call: Callable[..., Any], *inputs: Any) -> Call:
        weights = [torch.ones_like(x) for x in parts(call(*inputs))]
        return lambda: torch.autograd.grad(parts(call(*inputs)), inputs, weights)

    def parts(value: Any) -> tuple[Any, ...]:
        return tuple(value) if isinstance(value, tuple) else (value,)

    calls = {
        "solve": gradient(la.solve, spd, b),
        "inv": gradient(la.inv, spd),
        "slogdet": gradient(lambda a: la.slogdet(a)[1], spd),
        "cholesky": gradient(la.cholesky, spd),
        "qr": gradient(la.qr, spd),
        "eigh": gradient(lambda a: (la.eigh(a)[0], la.eigh(a)[1].abs()), spd),
    }
    if count * n**3 < 4e8:
        calls["svd"] = gradient(lambda a: (la.svd(a)[1], la.svd(a)[0].abs()), spd)
    return calls


def sums(torch: Any) -> dict[str, Call]:
    """Sums of products by letters, and products whose batch dimensions broadcast."""
    q, k, p = torch.randn(4, 8, 256, 64), torch.randn(4, 8, 256, 64), torch.randn(4, 256, 8, 256)
    v, wide = torch.randn(4, 8, 256, 64), torch.randn(4, 256, 8, 64)
    x, y, w = torch.randn(128, 64), torch.randn(128, 96), torch.randn(32, 64, 96)
    square, line = torch.randn(512, 512), torch.randn(2000)
    many, small = torch.randn(200, 32, 48), torch.randn(48, 64)
    one, batch = torch.randn(16, 1, 64, 64), torch.randn(1, 16, 64, 64)
    layer = torch.nn.Linear(64, 96)
    cases: list[tuple[str, tuple[Any, ...]]] = [
        ("bhid,bhjd->bhij", (q, k)),
        ("bihj,bhjd->bihd", (p, v)),
        ("bihd,bjhd->bhij", (wide, wide)),
        ("bi,oij,bj->bo", (x, w, y)),
        ("i,j->ij", (line, line)),
        ("ii->", (square,)),
        ("ij->ji", (square,)),
        ("ij,ij->", (square, square)),
        ("ij,jk->ik", (square, square)),
        ("bij,jk->bik", (many, small)),
        ("bij,bij->b", (many, many)),
        ("bij->bj", (many,)),
    ]
    calls: dict[str, Call] = {
        f"einsum {text}": lambda text=text, args=args: torch.einsum(text, *args) for text, args in cases
    }
    calls["matmul 16,1 @ 1,16"] = lambda: one @ batch
    calls["matmul (200,32,48) @ (48,64)"] = lambda: many @ small
    calls["matmul transposed batch"] = lambda: wide.transpose(1, 2) @ wide.permute(0, 2, 3, 1)
    calls["tensordot"] = lambda: torch.tensordot(many, w, dims=([1], [0]))
    calls["linear (4,8,256,64)"] = lambda: layer(q)
    calls["linear of a transpose"] = lambda: layer(wide.transpose(1, 2))
    big, vector = torch.randn(2048, 2048), torch.randn(2048)
    calls["matvec 2048"] = lambda: big @ vector
    return calls


def transforms(torch: Any) -> dict[str, Call]:
    """Fourier transforms of float32 and complex64, about 160 thousand numbers each."""
    calls: dict[str, Call] = {}
    for n in (4, 8, 16, 32, 64, 100, 128, 256, 512, 997, 1000, 1024, 4096, 65536):
        rows = max(1, 160_000 // n)
        z = torch.randn(rows, n, dtype=torch.complex64)
        x, half = torch.randn(rows, n), torch.randn(rows, n // 2 + 1, dtype=torch.complex64)
        calls[f"fft {rows}x{n}"] = lambda z=z: torch.fft.fft(z)
        calls[f"fft of reals {rows}x{n}"] = lambda x=x: torch.fft.fft(x)
        calls[f"rfft {rows}x{n}"] = lambda x=x: torch.fft.rfft(x)
        calls[f"irfft {rows}x{n}"] = lambda half=half, n=n: torch.fft.irfft(half, n)
    plane, reals = torch.randn(512, 512, dtype=torch.complex64), torch.randn(512, 512)
    calls["fft2 512x512"] = lambda: torch.fft.fft2(plane)
    calls["rfft2 512x512"] = lambda: torch.fft.rfft2(reals)
    calls["fft 512x512 dim 0"] = lambda: torch.fft.fft(plane, dim=0)
    return calls


SIZES = {"4": (10_000, 4), "8": (1000, 8), "16": (1000, 16), "32": (500, 32), "256": (1, 256), "1024": (1, 1024)}


def groups(torch: Any) -> dict[str, Callable[[], dict[str, Call]]]:
    """The cases by group: they are made only when one of the group is asked for."""
    made: dict[str, Callable[[], dict[str, Call]]] = {}
    for name, (count, n) in SIZES.items():
        made[name] = lambda count=count, n=n: factorisations(torch, count, n)
        if n < 1024:
            made[f"{name} grad"] = lambda count=count, n=n: derivatives(torch, count, n)
    made["sums"] = lambda: sums(torch)
    made["fft"] = lambda: transforms(torch)
    return made


def least(call: Call, seconds: float) -> float:
    """The least time of a call, of as many as fit in `seconds` and at least two."""
    best, end, done = float("inf"), time.perf_counter() + seconds, 0
    while done < 2 or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
        done += 1
    return best


def serve(framework: str, seconds: float, dtype: str) -> None:
    """Answers requests: a group lists its cases, a case is timed."""
    torch = importlib.import_module(framework)
    torch.set_default_dtype(getattr(torch, dtype))
    torch.manual_seed(0)
    known, calls, current = groups(torch), {}, ""
    print(*known, sep="\t", flush=True)
    for line in sys.stdin:
        group, _, case = line.rstrip("\n").partition("\t")
        if group != current:
            calls, current = known[group](), group
        if not case:
            print(*calls, sep="\t", flush=True)
        else:
            print(least(calls[case], seconds), flush=True)


def ask(worker: subprocess.Popen[str], request: str = "") -> list[str]:
    """One line there, one line back."""
    assert worker.stdin and worker.stdout
    if request:
        worker.stdin.write(request + "\n")
        worker.stdin.flush()
    answer = worker.stdout.readline()
    if not answer:
        raise RuntimeError(f"{worker.args!r} ended while it was asked for {request!r}")
    return answer.rstrip("\n").split("\t")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--impl", default="rushlight", help="the module to time")
    parser.add_argument("--vs", default="torch", help="the module to compare with")
    parser.add_argument("--groups", default="", help="a regular expression for groups of cases")
    parser.add_argument("--select", default="", help="a regular expression for 'group/case'")
    parser.add_argument("--below", type=float, default=float("inf"), help="print cases with a lower ratio only")
    parser.add_argument("--least", type=float, default=0.02, help="seconds a case and turn")
    parser.add_argument("--dtype", default="float32", help="float32 or float64")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.impl, options.least, options.dtype)
        return
    command = [sys.executable, __file__, "--serve", "--least", str(options.least), "--dtype", options.dtype, "--impl"]
    workers = [
        subprocess.Popen([*command, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for name in (options.impl, options.vs)
    ]
    known, _ = (ask(worker) for worker in workers)
    for group in known:
        if not re.search(options.groups, group):
            continue
        cases, _ = (ask(worker, group) for worker in workers)
        for case in cases:
            if not re.search(options.select, f"{group}/{case}"):
                continue
            times = [float("inf")] * len(workers)
            for _ in range(ROUNDS):
                for i, worker in enumerate(workers):
                    times[i] = min(times[i], float(ask(worker, f"{group}\t{case}")[0]))
            ratio = times[1] / times[0]
            if ratio < options.below:
                print(
                    f"{group + '/' + case:45} {times[0] * 1e6:11.1f} us {times[1] * 1e6:11.1f} us {ratio:6.2f}",
                    flush=True,
                )
    for worker in workers:
        assert worker.stdin
        worker.stdin.close()
        worker.wait()


if __name__ == "__main__":
    main()
