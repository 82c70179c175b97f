"""One member of each family of operations at 2**31 + 5 elements, where 32-bit counts overflow.

    python tests/tools/large_tensors.py [name ...]

Needs 12 GB of memory (two cases 22 GB, left out where there is less) and a few minutes, so it is no part of the test
suite; docs/status.md says when it ran last.
Every case puts known values at the ends and just around 2**31, and checks the result there, by counts or by sums.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any

import rushlight as torch

N = 2**31 + 5
EDGE = 2**31
MARKS = (0, 1, EDGE - 1, EDGE, EDGE + 1, N - 1)
CASES: dict[str, tuple[int, Callable[[], None]]] = {}


def case(gigabytes: int = 12) -> Callable[[Callable[[], None]], None]:
    def register(function: Callable[[], None]) -> None:
        CASES[function.__name__] = (gigabytes, function)

    return register


def marked(dtype: Any = torch.uint8) -> Any:
    """Zeros with 1, 2, 3 ... at the marks."""
    x = torch.zeros(N, dtype=dtype)
    for k, i in enumerate(MARKS):
        x[i] = k + 1
    return x


def at(x: Any) -> list[Any]:
    values: list[Any] = [x[i].item() for i in MARKS]
    return values


EXPECTED = [1, 2, 3, 4, 5, 6]


@case()
def pointwise() -> None:
    x = marked()
    assert at(x + x) == [2 * v for v in EXPECTED]
    assert at(x.eq(4)) == [False, False, False, True, False, False]
    assert at(x.mul_(3)) == [3 * v for v in EXPECTED]


@case()
def broadcasting() -> None:
    x = torch.zeros(N // 3 + 1, 3, dtype=torch.int8)
    x += torch.tensor([1, 2, 3], dtype=torch.int8)
    assert x[-1].tolist() == [1, 2, 3] and x[EDGE // 3].tolist() == [1, 2, 3]


@case()
def casts_and_copies() -> None:
    x = marked()
    assert at(x.to(torch.int8)) == EXPECTED
    flipped = x[:EDGE].reshape(2, EDGE // 2).t().contiguous()
    assert flipped[0].tolist() == [1, 0] and flipped[-1, 1].item() == 3


@case()
def reductions() -> None:
    x = marked()
    assert x.sum().item() == 21 and x.max().item() == 6 and x.argmax().item() == N - 1
    assert x.count_nonzero().item() == 6 and x.any().item() and not x.all().item()
    assert (x == 0).sum().item() == N - 6


@case()
def scans() -> None:
    x = torch.zeros(N, dtype=torch.int8)
    x[0] = x[EDGE] = x[N - 1] = 1
    total = x.cumsum(0, dtype=torch.int8)
    assert [total[i].item() for i in (0, EDGE - 1, EDGE, N - 2, N - 1)] == [1, 1, 2, 2, 3]
    del total
    product = (x + 1).cumprod(0, dtype=torch.int8)
    assert [product[i].item() for i in (0, EDGE - 1, EDGE, N - 2, N - 1)] == [2, 2, 4, 4, 8]


@case(22)
def scans_with_indices() -> None:
    x = marked()
    values, indices = x.cummax(0)
    assert at(values) == EXPECTED and at(indices) == list(MARKS)


@case()
def selecting() -> None:
    x = marked()
    values, indices = x.topk(6)
    assert values.tolist() == [6, 5, 4, 3, 2, 1] and indices.tolist() == list(reversed(MARKS))
    assert x.kthvalue(N).values.item() == 6 and x.kthvalue(N).indices.item() == N - 1
    assert x.median().item() == 0 and x.mode().indices.item() == N - 2


@case(22)  # the indices take 17 GB
def sorting() -> None:
    x = marked()
    values, indices = x.sort()
    assert values[-6:].tolist() == EXPECTED and indices[-6:].tolist() == list(MARKS) and values[-7].item() == 0
    assert indices[:3].tolist() == [2, 3, 4] and indices[-7].item() == N - 2


@case()
def indexing() -> None:
    x = marked()
    index = torch.tensor(MARKS)
    assert x[index].tolist() == EXPECTED and x.take(index).tolist() == EXPECTED
    assert x.index_select(0, index).tolist() == EXPECTED and x.gather(0, index).tolist() == EXPECTED
    assert x[EDGE - 1 : EDGE + 2].tolist() == [3, 4, 5] and x[-1].item() == 6
    assert x.nonzero().flatten().tolist() == list(MARKS)
    assert x[x > 3].tolist() == [4, 5, 6]
    x[index] = 9
    assert at(x) == [9] * 6
    x.scatter_(0, index, 7)
    x.index_fill_(0, index[:1], 1)
    assert at(x) == [1, 7, 7, 7, 7, 7]
    assert at(x.masked_fill_(x == 7, 2)) == [1, 2, 2, 2, 2, 2]


@case()
def shapes() -> None:
    x = marked()
    a, b = x.split([EDGE, 5])
    assert b.tolist() == [4, 5, 0, 0, 6]
    joined = torch.cat([b, a])
    assert joined.numel() == N and joined[:5].tolist() == [4, 5, 0, 0, 6] and joined[-1].item() == 3
    del joined
    assert x.flip(0)[:5].tolist() == [6, 0, 0, 5, 4]
    assert x.roll(1)[:2].tolist() == [6, 1]
    rows = x.as_strided((N - 1, 2), (1, 1))
    assert rows[-1].tolist() == [0, 6]


@case()
def searching() -> None:
    x = marked()
    ascending = torch.zeros(N, dtype=torch.uint8)
    ascending[EDGE:] = 2
    assert torch.searchsorted(ascending, torch.tensor([1, 2, 3], dtype=torch.uint8)).tolist() == [EDGE, EDGE, N]
    del ascending
    assert torch.bincount(x[EDGE - 4 :]).tolist()[1:] == [0, 0, 1, 1, 1, 1]
    assert torch.unique(x).tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert torch.isin(x, torch.tensor([6], dtype=torch.uint8)).sum().item() == 1


@case()
def random_numbers() -> None:
    x = torch.zeros(N, dtype=torch.int8)
    x.bernoulli_(0.5)
    share = x.sum().item() / N
    assert abs(share - 0.5) < 1e-4 and abs(x[EDGE:].float().mean().item()) <= 1


@case()
def matrix_products() -> None:
    rows = EDGE // 8 + 3
    x = torch.zeros(rows, 8, dtype=torch.int8)
    x[-1] = 2
    y = x @ torch.ones(8, 1, dtype=torch.int8)
    assert y[-1].item() == 16 and y[0].item() == 0 and y.shape == (rows, 1)


@case(14)
def pooling_and_softmax() -> None:
    x = torch.zeros(1, 1, 2**16 + 1, 2**15, dtype=torch.bfloat16)
    x[0, 0, -1, -1] = 4
    pooled = torch.nn.functional.max_pool2d(x, (1, 2**15))
    assert pooled[0, 0, -1, 0].item() == 4 and pooled[0, 0, 0, 0].item() == 0
    del pooled
    soft = x[0, 0].softmax(1)
    assert abs(soft[-1].float().sum().item() - 1) < 0.05 and soft[-1, -1].item() > soft[0, 0].item()


@case()
def embedding() -> None:
    table = torch.zeros(EDGE // 16 + 1, 16, dtype=torch.bfloat16)
    table[-1] = 3
    rows = torch.nn.functional.embedding(torch.tensor([0, EDGE // 16]), table)
    assert rows[1].tolist() == [3.0] * 16 and rows[0].sum().item() == 0


def main() -> int:
    wanted = sys.argv[1:] or list(CASES)
    failed = 0
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for name in wanted:
        start = time.monotonic()
        gigabytes, function = CASES[name]
        if memory < gigabytes << 30:
            print(f"{name}: left out, needs {gigabytes} GB of memory")
            continue
        try:
            function()
            result = "ok"
        except (AssertionError, RuntimeError, IndexError, TypeError, AttributeError) as error:
            result = f"FAILED: {type(error).__name__}: {str(error)[:200]}"
            failed += 1
        print(f"{name}: {result} [{time.monotonic() - start:.0f} s]", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
