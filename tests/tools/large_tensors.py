"""One member of each family of operations at 2**31 + 5 elements, where 32-bit counts overflow.

    python tests/tools/large_tensors.py [name ...]

Needs 15 GB of memory (three cases 22 GB, left out where there is less) and half an hour, so it is no part of the test
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


@case()
def narrow_scans() -> None:
    x = marked()
    total = x.cumsum(0, dtype=torch.int32)
    assert at(total) == [1, 3, 6, 10, 15, 21]
    del total
    total = x.cumsum(0, dtype=torch.uint8)
    assert at(total) == [1, 3, 6, 10, 15, 21]
    assert at(x.logical_not().cumprod(0, dtype=torch.int8)) == [0] * 6
    assert x.diff().nonzero().flatten().tolist()[-3:] == [EDGE, EDGE + 1, N - 2]


@case(14)
def searching_for_many() -> None:
    x = marked()
    boundaries = torch.tensor([2, 4, 6], dtype=torch.uint8)
    assert at(torch.bucketize(x, boundaries, out_int32=True)) == [0, 0, 1, 1, 2, 2]
    assert at(torch.searchsorted(boundaries, x, right=True, out_int32=True)) == [0, 1, 1, 2, 2, 3]


@case()
def sorting_of_values() -> None:
    ordered = torch.msort(marked())
    assert ordered[-7:].tolist() == [0, *EXPECTED] and ordered[: N - 6].max().item() == 0


@case(10)
def sorting_of_16_bits() -> None:
    x = marked(torch.bfloat16)
    assert x.kthvalue(N - 1).values.item() == 5 and x.kthvalue(N - 1).indices.item() == EDGE + 1
    assert x.median().item() == 0 and x.mode(0).indices.item() == N - 2
    x[EDGE] = float("nan")
    assert x.nanmedian().item() == 0 and x.median(0).indices.item() == EDGE
    ordered = torch.msort(x)
    assert ordered[-7:-1].tolist() == [0, 1, 2, 3, 5, 6] and ordered[-1].isnan().item()


@case(10)
def selecting_of_floats() -> None:
    x = marked(torch.float32)
    x[EDGE + 1] = float("-inf")
    assert x.kthvalue(1).indices.item() == EDGE + 1 and x.kthvalue(N - 1).indices.item() == EDGE
    assert x.median().item() == 0 and x.topk(2).indices.tolist() == [N - 1, EDGE]


@case(10)
def uniques() -> None:
    x = marked()
    values, counts = torch.unique(x, return_counts=True)
    assert values.tolist() == [0, *EXPECTED] and counts.tolist() == [N - 6, 1, 1, 1, 1, 1, 1]
    values, counts = torch.unique_consecutive(x, return_counts=True)
    assert values.tolist() == [1, 2, 0, 3, 4, 5, 0, 6] and counts.tolist() == [1, 1, EDGE - 3, 1, 1, 1, 2, 1]
    del x
    x = marked(torch.int16)
    x[EDGE] = -1
    values, counts = torch.unique(x, return_counts=True)
    assert values.tolist() == [-1, 0, 1, 2, 3, 5, 6] and counts.tolist() == [1, N - 6, 1, 1, 1, 1, 1]


@case(22)
def uniques_with_inverse() -> None:
    values, inverse, counts = torch.unique(marked(), return_inverse=True, return_counts=True)
    assert values.tolist() == [0, *EXPECTED] and counts.tolist() == [N - 6, 1, 1, 1, 1, 1, 1]
    assert at(inverse) == EXPECTED


@case()
def histograms() -> None:
    x = marked()
    assert torch.bincount(x).tolist() == [N - 6, 1, 1, 1, 1, 1, 1]
    x = x.to(torch.bfloat16)
    x[0] = float("nan")
    assert torch.histc(x.eq(0).to(torch.bfloat16), bins=2).tolist() == [6, float(torch.tensor(N - 6.0).bfloat16())]
    assert torch.histc(x, bins=3, min=2, max=5).tolist() == [1, 1, 2]


@case()
def indexing_with_many() -> None:
    x = marked()
    last = torch.tensor([N - 1]).expand(N)
    assert x.gather(0, last).min().item() == 6
    assert x.index_select(0, torch.tensor([EDGE]).expand(EDGE + 1))[-1].item() == 4
    picked = x[torch.tensor([1, N - 1])[:, None].expand(2, EDGE // 2 + 1)]
    assert picked.shape == (2, EDGE // 2 + 1) and picked[:, -1].tolist() == [2, 6]
    del picked
    everything = torch.ones(N, dtype=torch.bool)
    chosen = x[everything]
    assert chosen.numel() == N and at(chosen) == EXPECTED
    everything[0] = False
    assert x.masked_select(everything)[-1].item() == 6 and everything.count_nonzero().item() == N - 1
    del chosen
    x.masked_scatter_(everything, x.flip(0))
    assert x[:3].tolist() == [1, 6, 0] and x[-1].item() == 2


@case()
def writing_by_index() -> None:
    x = torch.zeros(N, dtype=torch.uint8)
    marks = torch.tensor(MARKS)
    x.index_put_((marks,), torch.tensor(EXPECTED, dtype=torch.uint8))
    x.index_put_((marks,), torch.tensor(1, dtype=torch.uint8), accumulate=True)
    assert at(x) == [2, 3, 4, 5, 6, 7]
    x.scatter_add_(0, marks, torch.ones(6, dtype=torch.uint8))
    x.index_add_(0, marks, torch.ones(6, dtype=torch.uint8))
    assert at(x) == [4, 5, 6, 7, 8, 9]
    x.put_(marks, torch.tensor(EXPECTED, dtype=torch.uint8))
    x.index_copy_(0, marks[-1:], torch.tensor([9], dtype=torch.uint8))
    x.scatter_reduce_(0, marks, torch.full((6,), 4, dtype=torch.uint8), "amax")
    assert at(x) == [4, 4, 4, 4, 5, 9]
    total = torch.zeros(2, dtype=torch.uint8)
    total.scatter_add_(0, torch.tensor([1]).expand(N), x)
    assert total.tolist() == [0, 30]
    x[torch.tensor([[0], [EDGE]]), None] = 1
    x[-1:] = 2
    x[EDGE + 1 :: 3] = 3
    assert x[EDGE - 1 :].tolist() == [4, 1, 3, 0, 0, 3]


@case()
def halves() -> None:
    x = torch.ones(2, EDGE // 2 + 1, dtype=torch.int8)
    x[1, -1] = 5
    wide = torch.cat([x, x[:, :3]], 1)
    assert wide.shape == (2, EDGE // 2 + 4) and wide[1, -4:].tolist() == [5, 1, 1, 1]
    del wide
    tall = torch.cat([x, x])
    assert tall[1::2, -1].tolist() == [5, 5]
    del tall
    stacked = torch.stack([x[0], x[1]], 1)
    assert stacked[-1].tolist() == [1, 5] and stacked.sum(dtype=torch.int64).item() == EDGE + 6


@case()
def moving() -> None:
    x = torch.ones(2**16 + 1, 2**15, dtype=torch.int8)
    x[-1, -1] = 3
    lower = x.tril(-1)
    assert lower[-1].tolist() == x[-1].tolist() and lower[0].sum().item() == 0
    assert lower[: 2**15].sum().item() == 2**15 * (2**15 - 1) // 2
    del lower
    assert x.triu(1)[-1].sum().item() == 0
    turned = x.roll((1, 1), (0, 1))
    assert turned[0, 0].item() == 3
    del turned
    assert x.flip(0, 1)[0, 0].item() == 3
    assert x.rot90()[0, -1].item() == 3
    padded = torch.nn.functional.pad(x, (1, 1, 0, 1), value=2)
    assert padded[-1].min().item() == 2 and padded[-2, -2].item() == 3 and padded[0, 0].item() == 2
    del padded
    repeated = x[-3:].repeat(2**15 // 3 * 2 + 4, 1)
    assert repeated.numel() > EDGE and repeated[-1, -1].item() == 3
    del repeated
    assert x.diagonal().sum().item() == 2**15
    eye = torch.eye(2**16 + 1, 2**15 + 1, dtype=torch.int8)
    assert eye.sum().item() == 2**15 + 1 and eye[2**15, -1].item() == 1


@case()
def stepping() -> None:
    x = marked()
    assert x[::-1][:5].tolist() == [6, 0, 0, 5, 4] and x[::2].sum().item() == 1 + 4 + 6
    assert x[EDGE - 1 :: 2].tolist() == [3, 5, 0] and x[:: EDGE + 1].tolist() == [1, 5]
    assert x.as_strided((2, 2), (EDGE, 1)).tolist() == [[1, 2], [4, 5]]
    assert x.unfold(0, 2, EDGE).tolist() == [[1, 2], [4, 5]]
    y = x[::2].clone()
    assert y[EDGE // 2 : EDGE // 2 + 3].tolist() == [4, 0, 6]
    x[1::2] = 7
    assert at(x) == [1, 7, 7, 4, 7, 6]
    assert repr(x).endswith("tensor([1, 7, 0,  ..., 0, 7, 6], dtype=" + str(torch.uint8) + ")")
    assert repr(x[: N - 1].view(-1, 4)[-1]).startswith("tensor([") and x.tensor_split(3)[2][-1].item() == 6


@case()
def random_fills() -> None:
    torch.manual_seed(0)
    x = torch.rand(N, dtype=torch.bfloat16)
    tail = x[EDGE - 10 :].float()
    assert tail.unique().numel() > 5 and abs(x[: 1 << 20].float().mean().item() - 0.5) < 1e-2
    assert (x == 1).sum().item() == 0
    x.normal_()
    assert x[EDGE - 10 :].unique().numel() > 5
    del x
    y = torch.randint(0, 100, (N,), dtype=torch.int8)
    assert y[EDGE - 50 :].unique().numel() > 20 and y.max().item() == 99
    y.bernoulli_(0.25)
    assert abs(y.count_nonzero().item() / N - 0.25) < 1e-4
    del y
    assert torch.randperm(100).sort().values.tolist() == list(range(100))


@case(14)
def long_permutations() -> None:
    order = torch.randperm(EDGE - 1, dtype=torch.int32)
    assert order.min().item() == 0 and order.max().item() == EDGE - 2
    assert order.sum(dtype=torch.int64).item() == (EDGE - 1) * (EDGE - 2) // 2


@case()
def sequences() -> None:
    x = torch.linspace(0, 1, N, dtype=torch.bfloat16)
    assert x[0].item() == 0 and x[-1].item() == 1 and x[N // 2].item() == 0.5
    del x
    assert torch.full((N,), 3, dtype=torch.int8)[-1].item() == 3
    y = torch.arange(0, N / 2**22, 2.0**-22, dtype=torch.bfloat16)
    assert y.numel() == N and y[-1].item() == 512 and y[EDGE // 2].item() == 256


@case()
def numpy_and_dlpack() -> None:
    import numpy as np

    x = marked()
    array = x.numpy()
    assert array.size == N and [int(array[i]) for i in MARKS] == EXPECTED
    assert at(torch.tensor(array)) == EXPECTED
    shared = torch.from_numpy(array)
    shared[EDGE] = 9
    assert x[EDGE].item() == 9 and int(np.from_dlpack(x)[EDGE]) == 9 and torch.from_dlpack(array)[EDGE].item() == 9
    assert at(torch.frombuffer(array, dtype=torch.uint8)) == [1, 2, 3, 9, 5, 6]
    assert torch.from_numpy(array[::-1])[0].item() == 6 and torch.asarray(array[EDGE:])[0].item() == 9


@case()
def files() -> None:
    import tempfile

    # 4.3 GB in one record: sizes and offsets of 64 bits in the archive
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "large.pt")
        torch.save({"x": marked(torch.bfloat16), "after": torch.arange(3)}, path)
        loaded = torch.load(path)
        assert at(loaded["x"]) == EXPECTED and loaded["after"].tolist() == [0, 1, 2]
        del loaded
        loaded = torch.load(path, mmap=True)
        assert at(loaded["x"]) == EXPECTED and loaded["after"].tolist() == [0, 1, 2]


@case()
def long_products() -> None:
    x = marked(torch.int8)
    assert torch.dot(x, x).item() == 91 and (x[None] @ x[:, None]).item() == 91
    assert torch.mv(x[None].expand(2, N), x).tolist() == [91, 91]
    del x
    y = marked(torch.bfloat16)
    assert torch.dot(y, y).item() == 91 and (y[None] @ y[:, None]).item() in (91, 91.5)


@case(10)
def long_products_of_floats() -> None:
    x = marked(torch.float32)
    assert torch.dot(x, x).item() == 91 and (x[None] @ x[:, None]).item() == 91
    assert torch.mv(x[None], x).item() == 91 and torch.vdot(x, x).item() == 91 and abs(x.norm().item() - 91**0.5) < 1e-6
    assert torch.einsum("i,i->", x, x).item() == 91


@case()
def large_products() -> None:
    x = torch.ones(2**16 + 1, 1, dtype=torch.int8)
    x[-1] = 3
    y = x @ x[: 2**15 + 1].t()
    assert y.numel() > EDGE and y[-1].min().item() == 3 and y[-2].max().item() == 1
    del y
    z = torch.outer(x[:, 0].bfloat16(), torch.ones(2**15 + 1).bfloat16())
    assert z[-1].min().item() == 3 and z[0].max().item() == 1
    z.addmm_(x.bfloat16(), torch.ones(1, 2**15 + 1, dtype=torch.bfloat16))
    assert z[-1].min().item() == 6 and z[0].max().item() == 2
    assert torch.mv(z, torch.ones(2**15 + 1, dtype=torch.bfloat16))[0].item() == 2**16


@case(10)
def large_products_of_floats() -> None:
    x = torch.ones(2**16 + 1, 2)
    x[-1] = 3
    y = x @ torch.ones(2, 2**15 + 1)
    assert y[-1].min().item() == 6 and y[-2].max().item() == 2
    assert torch.mv(y, torch.ones(2**15 + 1))[-1].item() == 6 * (2**15 + 1)
    assert torch.mv(y.t(), torch.ones(2**16 + 1))[0].item() == 2 * 2**16 + 6


@case(9)
def far_lines() -> None:
    store = torch.empty(EDGE + 300)
    far = store.as_strided((2, 200), (EDGE + 1, 1))
    near = torch.arange(400.0).view(2, 200) % 17
    far.copy_(near)
    tall, wide, row = (
        torch.arange(1000.0).view(200, 5) % 7,
        torch.arange(600.0).view(300, 2) % 5,
        torch.arange(200.0) % 3,
    )
    assert torch.equal(far @ tall, near @ tall) and torch.equal(wide @ far, wide @ near)
    assert torch.equal(tall.t() @ far.t(), tall.t() @ near.t()) and torch.equal(far.t() @ wide.t(), near.t() @ wide.t())
    assert torch.equal(far @ row, near @ row) and torch.equal(far.t() @ row[:2], near.t() @ row[:2])
    assert torch.equal(far @ far.t(), near @ near.t()) and torch.equal(far.t() @ far, near.t() @ near)
    assert torch.equal(tall.t() @ far[0], tall.t() @ near[0]) and torch.equal(wide @ far[:, 1], wide @ near[:, 1])
    torch.mm(wide[:2], near, out=far)
    assert torch.equal(far, wide[:2] @ near)


@case(14)
def convolutions() -> None:
    F = torch.nn.functional
    x = marked(torch.bfloat16).view(1, 1, N)
    weight = torch.ones(1, 1, 3, dtype=torch.bfloat16)
    y = F.conv1d(x, weight, padding=1)[0, 0]
    assert y.shape == (N,) and y[EDGE - 1 : EDGE + 2].tolist() == [7, 12, 9] and y[-2:].tolist() == [6, 6]
    del y
    assert F.conv1d(x, weight, stride=EDGE)[0, 0].tolist() == [3, 9]
    plane = x.view(-1)[: 2**15 * 2**16].view(1, 1, 2**15, 2**16)
    z = F.conv2d(plane, torch.ones(1, 1, 1, 2, dtype=torch.bfloat16), stride=(2**14, 1))
    assert z.shape == (1, 1, 2, 2**16 - 1) and z[0, 0, 0, 0].item() == 3
    z = F.conv2d(plane, torch.ones(1, 1, 2, 2, dtype=torch.bfloat16), stride=(1, 2))
    assert z[0, 0, -1, -1].item() == 3 and z[0, 0, 0, 0].item() == 3


@case(14)
def pooling_with_indices() -> None:
    F = torch.nn.functional
    x = torch.zeros(1, 1, 2**16 + 1, 2**15, dtype=torch.bfloat16)
    x[0, 0, -1, -2] = 4
    pooled, indices = F.max_pool2d(x, (1, 2**15), return_indices=True)
    assert pooled[0, 0, -1, 0].item() == 4 and indices[0, 0, -1, 0].item() == x.numel() - 2
    assert indices[0, 0, -2, 0].item() == x.numel() - 2**16
    pooled, indices = F.max_pool1d(x.view(1, 1, -1), 2**15, return_indices=True)
    assert indices[0, 0, -1].item() == x.numel() - 2
    pooled, indices = F.adaptive_max_pool2d(x, 1, return_indices=True)
    assert pooled.item() == 4 and indices.item() == x.numel() - 2
    assert F.avg_pool2d(x, (1, 2**15), divisor_override=1)[0, 0, -1, 0].item() == 4
    assert F.adaptive_avg_pool2d(x, (2**16 + 1, 1))[0, 0, -1, 0].item() == 2.0**-13


@case(14)
def normalising() -> None:
    F = torch.nn.functional
    x = torch.zeros(2**16 + 1, 2**15, dtype=torch.bfloat16)
    x[-1, ::2] = 2
    y = F.layer_norm(x, (2**15,))
    assert y[-1, -2:].tolist() == [1, -1] and y[0].abs().max().item() == 0
    del y
    y = x.log_softmax(1)
    assert y[-1, 0].item() > y[-1, 1].item() and y[0, 0].item() == y[0, -1].item()
    del y
    target = torch.zeros(2**16 + 1, dtype=torch.int64)
    target[-1] = 1
    loss = F.cross_entropy(x, target, reduction="none")
    assert abs(loss[-1].item() - 11.83) < 0.1 and abs(loss[0].item() - 10.4) < 0.1


@case(14)
def gradients() -> None:
    x = marked(torch.bfloat16).requires_grad_()
    (x * x).sum().backward()
    assert x.grad is not None and at(x.grad) == [2 * v for v in EXPECTED]


@case(14)
def reductions_along_dims() -> None:
    x = torch.zeros(N // 3 + 1, 3, dtype=torch.int8)
    x[-1] = torch.tensor([1, 2, 3], dtype=torch.int8)
    assert x.sum(0).tolist() == [1, 2, 3] and x.amax(0).tolist() == [1, 2, 3] and x.argmax(0).tolist() == [N // 3] * 3
    assert x.sum(1, dtype=torch.int8)[-1].item() == 6 and x.amax(1)[-1].item() == 3
    assert x.any(0).tolist() == [True] * 3 and x.aminmax(dim=0).max.tolist() == [1, 2, 3]
    del x
    y = marked(torch.bfloat16)
    assert y.sum().item() == 21 and y.norm().item() == torch.tensor(91**0.5).bfloat16().item() and y.amax().item() == 6
    assert y[: N - 1].view(-1, 4).sum(0, dtype=torch.float32).tolist() == [5, 7, 0, 3]
    assert y.logsumexp(0).item() == torch.tensor(21.488).bfloat16().item()
    assert abs(y.var().item() - 91 / N) < 1e-9 and (y + 1).prod().item() == 5056 and y.mean().item() > 0
    assert torch.equal(y, y) and y.isfinite().all().item() and torch.allclose(y[EDGE - 5 :], y[EDGE - 5 :])


@case(14)
def optimizer_steps() -> None:
    x = marked(torch.bfloat16)
    x.grad = x.clone()
    torch.optim.SGD([x], lr=0.5).step()
    assert at(x) == [v / 2 for v in EXPECTED]
    assert abs(torch.nn.utils.clip_grad_norm_([x], 1e9).item() - 91**0.5) < 0.05


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
        except Exception as error:
            result = f"FAILED: {type(error).__name__}: {str(error)[:200]}"
            failed += 1
        print(f"{name}: {result} [{time.monotonic() - start:.0f} s]", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
