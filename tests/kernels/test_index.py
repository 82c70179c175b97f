"""Advanced indexing, index_*, gather, scatter, take and put against PyTorch."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from kernel_ctypes import DTYPES, REAL, KernelError, call, describe, layouts, sample, torch, with_threads

SET, SUM, PROD, MEAN, AMAX, AMIN = range(6)


def indexed_shape(shape, dims, at, index_shape):
    kept = [s for d, s in enumerate(shape) if d not in dims]
    return kept[:at] + list(index_shape) + kept[at:]


def reference(x, indices, dims, at):
    """Indexing by PyTorch with the indexed dims in front, then moved to `at`."""
    front = x.permute([*dims, *[d for d in range(x.dim()) if d not in dims]])[tuple(indices)]
    b = indices[0].dim()
    n = front.dim() - b
    order = [b + d for d in range(at)] + list(range(b)) + [b + d for d in range(at, n)]
    return front.permute(order)


CASES = [
    ((7,), (0,), 0, (5,)),
    ((7,), (0,), 0, ()),
    ((7, 3), (0,), 0, (4, 2)),
    ((7, 3), (1,), 1, (4,)),
    ((5, 6), (0, 1), 0, (9,)),
    ((5, 6, 4), (0, 2), 0, (3, 2)),
    ((5, 6, 4), (1, 2), 1, (7,)),
    ((5, 6, 4), (1,), 1, (2, 2)),
    ((3, 4, 5, 6), (1, 2), 1, (8,)),
    ((3, 4, 5, 6), (0, 1, 2, 3), 0, (2, 3)),
    ((3, 4, 5, 6), (3,), 3, (2,)),
    ((0, 4), (1,), 1, (2,)),
    ((4, 0), (0,), 0, (2,)),
    ((4, 3), (0,), 0, (0,)),
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "dims", "at", "index_shape"), CASES)
def test_get_and_put(dtype, shape, dims, at, index_shape):
    source = sample(dtype, *shape)
    indices = [
        torch.randint(-shape[d], shape[d], index_shape, generator=torch.Generator().manual_seed(d)) for d in dims
    ]
    expected = reference(source, indices, dims, at)
    for _, x in layouts(source):
        out = torch.zeros(expected.shape, dtype=dtype)
        call("index_get", x, len(dims), indices, list(dims), at, out)
        assert torch.equal(out, expected)
    out = torch.zeros([2 * s for s in expected.shape], dtype=dtype)[tuple(slice(None, None, 2) for _ in expected.shape)]
    call("index_get", source, len(dims), indices, list(dims), at, out)
    assert torch.equal(out, expected)

    values = sample(dtype, *expected.shape, seed=1)
    for accumulate in (False, True):
        # One at a time and in order, so that the last value stays.
        wanted = source.clone()
        view = wanted.permute([*dims, *[d for d in range(len(shape)) if d not in dims]])
        b = len(index_shape)
        moved = values.permute([*range(at, at + b), *range(at), *range(at + b, values.dim())])
        for p in torch.cartesian_prod(*[torch.arange(s) for s in index_shape]).view(-1, b) if b else [()]:
            p = tuple(int(i) for i in p)
            where = tuple(int(i[p]) for i in indices)
            view[where] = view[where] + moved[p] if accumulate else moved[p]
        for _, y in layouts(values):
            got = source.clone()
            call("index_put", got, len(dims), indices, list(dims), at, y, accumulate)
            assert torch.equal(got, wanted)
        if len(shape) > 1:
            got = (
                source.t().contiguous().t() if len(shape) == 2 else source.transpose(0, 1).contiguous().transpose(0, 1)
            )
            call("index_put", got, len(dims), indices, list(dims), at, values, accumulate)
            assert torch.equal(got, wanted)


def test_broadcast_indices_and_values():
    x = sample(torch.float32, 6, 7)
    i = torch.tensor([[1], [4]]).expand(2, 3)
    j = torch.tensor([0, -1, 2]).expand(2, 3)
    out = torch.zeros(2, 3)
    call("index_get", x, 2, [i, j], [0, 1], 0, out)
    assert torch.equal(out, x[i, j])
    call("index_put", x, 2, [i, j], [0, 1], 0, torch.tensor(9.0).expand(2, 3), False)
    assert (x[i, j] == 9).all()


@pytest.mark.parametrize("bad", [7, -6, 2**62, -(2**63)])
def test_index_out_of_range(bad):
    x = sample(torch.float32, 3, 5)
    index = torch.tensor([0, bad, 99])
    message = f"index {bad} is out of bounds for dimension 1 with size 5"
    for name, args in {
        "index_get": (x, 1, [index], [1], 1, torch.zeros(3, 3)),
        "index_put": (x, 1, [index], [1], 1, torch.ones(3, 3), False),
        "index_select": (x, 1, index, torch.zeros(3, 3)),
        "index_copy": (x, 1, index, torch.ones(3, 3)),
        "index_add": (x, 1, index, torch.ones(3, 3), None),
        "index_fill": (x, 1, index, torch.tensor(1.0)),
        "index_reduce": (x, 1, index, torch.ones(3, 3), AMAX, True),
    }.items():
        before = x.clone()
        with pytest.raises(KernelError) as error:
            call(name, *args)
        assert error.value.kind is IndexError
        assert str(error.value) == message
        assert torch.equal(x, before)
    index = torch.tensor([[0, bad, 1]])
    for name, args in {
        "gather": (x, 1, index, torch.zeros(1, 3)),
        "scatter": (x, 1, index, torch.ones(1, 3), SET, True),
    }.items():
        with pytest.raises(KernelError) as error:
            call(name, *args)
        assert error.value.kind is RuntimeError
        assert str(error.value) == message


def test_negative_index_is_refused_where_pytorch_refuses_it():
    x = sample(torch.float32, 3)
    index = torch.tensor([-1])
    for name, args in {
        "index_select": (x, 0, index, torch.zeros(1)),
        "index_add": (x, 0, index, torch.ones(1), None),
        "index_copy": (x, 0, index, torch.ones(1)),
        "gather": (x, 0, index, torch.zeros(1)),
        "scatter": (x, 0, index, torch.ones(1), SUM, True),
    }.items():
        with pytest.raises(KernelError, match="index -1 is out of bounds for dimension 0 with size 3"):
            call(name, *args)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_one_index(dtype, dim):
    x = sample(dtype, 4, 5, 6)
    index = torch.tensor([1, 3, 1, 0, 2, 3])
    expected = x.index_select(dim, index)
    source = sample(dtype, *expected.shape, seed=2)
    for _, view in layouts(x):
        out = torch.zeros_like(expected)
        call("index_select", view, dim, index, out)
        assert torch.equal(out, expected)
    got = x.clone()
    call("index_add", got, dim, index, source, None)
    assert torch.equal(got, x.index_add(dim, index, source))
    if dtype != torch.bool:
        got = x.clone()
        call("index_add", got, dim, index, source, torch.tensor(2, dtype=dtype))
        assert torch.equal(got, x.index_add(dim, index, source, alpha=2))
    got = x.clone()
    call("index_fill", got, dim, index - x.shape[dim], torch.tensor(1, dtype=dtype))
    assert torch.equal(got, x.index_fill(dim, index, 1))
    unique = torch.tensor([2, 0, 3])
    got = x.clone()
    call("index_copy", got, dim, unique, source.narrow(dim, 0, 3))
    assert torch.equal(got, x.index_copy(dim, unique, source.narrow(dim, 0, 3)))


@pytest.mark.filterwarnings("ignore:index_reduce")
@pytest.mark.parametrize("dtype", [d for d in REAL if d != torch.bool])
@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize(("name", "mode"), [("prod", PROD), ("mean", MEAN), ("amax", AMAX), ("amin", AMIN)])
def test_index_reduce(dtype, include_self, name, mode):
    x = sample(dtype, 4, 5)
    for dim in (0, 1):
        index = torch.tensor([1, 3, 1, 0, 3, 1])
        source = sample(dtype, *[6 if d == dim else s for d, s in enumerate(x.shape)], seed=3, low=-2, high=3)
        got = x.clone()
        call("index_reduce", got, dim, index, source, mode, include_self)
        expected = x.index_reduce(dim, index, source, name, include_self=include_self)
        torch.testing.assert_close(got, expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("shape", "index_shape", "dim"),
    [
        ((5,), (9,), 0),
        ((4, 5), (4, 7), 1),
        ((4, 5), (6, 3), 0),
        ((3, 4, 5), (2, 9, 5), 1),
        ((3, 4, 5), (3, 4, 2), 2),
        ((), (), 0),
        ((3, 0), (3, 0), 0),
        ((3, 4), (0, 4), 0),
    ],
)
def test_gather_and_scatter(dtype, shape, index_shape, dim):
    x = sample(dtype, *shape)
    size = shape[dim] if shape else 1
    index = torch.randint(0, max(size, 1), index_shape, generator=torch.Generator().manual_seed(5))
    expected = x.gather(dim, index)
    for _, view in layouts(x):
        for _, other in layouts(index):
            out = torch.zeros(index_shape, dtype=dtype)
            call("gather", view, dim, other, out)
            assert torch.equal(out, expected)
    source = sample(dtype, *[s + 1 for s in index_shape], seed=6, low=-2, high=3)
    one = torch.tensor(1, dtype=dtype)
    # The last of equal indices stays, whichever PyTorch keeps.
    got, wanted = x.clone(), x.clone()
    call("scatter", got, dim, index, source, SET, True)
    positions = torch.cartesian_prod(*[torch.arange(s) for s in index_shape]).view(-1, len(shape)) if shape else [()]
    for p in positions:
        p = [int(i) for i in p]
        where = list(p)
        if shape:
            where[dim] = int(index[tuple(p)])
        wanted[tuple(where)] = source[tuple(p)]
    assert torch.equal(got, wanted)
    got = x.clone()
    call("scatter", got, dim, index, one, SET, True)
    assert torch.equal(got, x.scatter(dim, index, 1))
    for include_self in (True, False):
        for name, mode in (("sum", SUM), ("prod", PROD), ("mean", MEAN), ("amax", AMAX), ("amin", AMIN)):
            if (dtype.is_complex and mode in (AMAX, AMIN)) or (dtype == torch.bool and mode == MEAN):
                with pytest.raises(KernelError, match="does not take dtype"):
                    call("scatter", x.clone(), dim, index, source, mode, include_self)
                continue
            expected = x.scatter_reduce(dim, index, source, name, include_self=include_self)
            for _, view in layouts(source):
                got = x.clone()
                call("scatter", got, dim, index, view, mode, include_self)
                torch.testing.assert_close(got, expected)


@pytest.mark.parametrize(("name", "mode"), [("amax", AMAX), ("amin", AMIN)])
def test_extremes_propagate_nan(name, mode):
    nan = float("nan")
    x = torch.tensor([1.0, nan, 3.0, 4.0])
    index = torch.tensor([0, 0, 1, 2, 2, 3])
    source = torch.tensor([2.0, nan, 5.0, 2.0, 7.0, 1.0])
    got = x.clone()
    call("scatter", got, 0, index, source, mode, True)
    torch.testing.assert_close(got, x.scatter_reduce(0, index, source, name), equal_nan=True)


@pytest.mark.parametrize("dtype", DTYPES)
def test_take_and_put(dtype):
    x = sample(dtype, 4, 5)
    index = torch.tensor([[0, -1, 19], [7, 7, -20]])
    for _, view in layouts(x):
        out = torch.zeros(2, 3, dtype=dtype)
        call("take", view, index, out)
        assert torch.equal(out, x.take(index))
    source = sample(dtype, 2, 3, seed=4)
    for make in (lambda: x.clone(), lambda: x.t().contiguous().t()):
        got = make()
        call("put", got, index, source, True)
        assert torch.equal(got, x.clone().put_(index, source, accumulate=True))
    distinct = torch.tensor([[0, -1, 18], [7, 6, -10]])
    got = x.clone()
    call("put", got, distinct, source, False)
    assert torch.equal(got, x.clone().put_(distinct, source))
    for bad in (20, -21):
        with pytest.raises(KernelError) as error:
            call("put", got, torch.tensor([0, bad]), source[0, :2], False)
        assert str(error.value) == f"out of range: tried to access index {bad} on a tensor of 20 elements"
        with pytest.raises(KernelError, match="out of range"):
            call("take", x, torch.tensor([0, bad]), torch.zeros(2, dtype=dtype))


BIG = 200_000


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int16, torch.complex64, torch.bool])
def test_same_bits_for_any_number_of_threads(dtype):
    generator = torch.Generator().manual_seed(9)
    index = torch.randint(0, 1000, (BIG,), generator=generator)
    values = torch.randn(BIG, generator=generator).to(dtype)
    rows = torch.randn(2000, 600, generator=generator).to(dtype)
    row_index = torch.randint(0, 50, (2000,), generator=generator)
    columns = torch.randint(0, 600, (2000, 600), generator=generator)

    def everything():
        results = []
        for mode in (SET, SUM):
            out = torch.zeros(1000, dtype=dtype)
            call("scatter", out, 0, index, values, mode, True)
            results.append(out)
            out = torch.zeros(1000, dtype=dtype)
            call("index_put", out, 1, [index - 1000], [0], 0, values, mode == SUM)
            results.append(out)
            out = torch.zeros(1000, dtype=dtype)
            call("put", out, index, values, mode == SUM)
            results.append(out)
            out = torch.zeros(50, 600, dtype=dtype)
            call("index_put", out, 1, [row_index], [0], 0, rows, mode == SUM)
            results.append(out)
            out = torch.zeros(2000, 600, dtype=dtype)
            call("scatter", out, 1, columns, rows, mode, True)
            results.append(out)
            out = torch.zeros(600, 600, dtype=dtype)
            call("scatter", out, 0, columns, rows, mode, True)
            results.append(out)
            out = torch.zeros(600, 50, dtype=dtype)
            call("index_put", out, 1, [row_index], [1], 1, rows.t(), mode == SUM)
            results.append(out)
        out = torch.zeros(BIG, dtype=dtype)
        call("take", rows, index, out)
        results.append(out)
        out = torch.zeros(2000, 600, dtype=dtype)
        call("gather", rows, 1, columns, out)
        assert torch.equal(out, rows.gather(1, columns))
        results.append(out)
        return results

    first = with_threads(1, everything)
    if dtype == torch.float32:
        last = torch.zeros(1000)
        last.numpy()[index.numpy()] = values.numpy()  # NumPy keeps the last of equal indices
        assert torch.equal(first[0], last)
        torch.testing.assert_close(first[7], torch.zeros(1000).index_add(0, index, values))
    for threads in (2, 4):
        for one, other in zip(first, with_threads(threads, everything), strict=True):
            assert torch.equal(
                one.view(torch.uint8) if dtype != torch.complex64 else torch.view_as_real(one),
                other.view(torch.uint8) if dtype != torch.complex64 else torch.view_as_real(other),
            )


def test_large_slices_and_many_positions():
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(3, 200_000, generator=generator)
    index = torch.tensor([2, 0])
    out = torch.zeros(2, 200_000)
    call("index_select", x, 0, index, out)
    assert torch.equal(out, x[index])
    wide = torch.randn(300, 1000, generator=generator)
    columns = torch.randint(0, 1000, (1500,), generator=generator)
    out = torch.zeros(300, 1500)
    call("index_select", wide, 1, columns, out)
    assert torch.equal(out, wide[:, columns])
    out = torch.zeros(1500, 300).t()
    call("index_select", wide, 1, columns, out)
    assert torch.equal(out, wide[:, columns])
    got = describe(wide, (0, 1))
    out = torch.zeros(300, 1500)
    call("index_get", got, 1, [columns - 1000], [1], 1, out)
    assert torch.equal(out, wide.flip(0, 1)[:, columns])


def test_shapes_that_do_not_fit():
    x = torch.zeros(3, 4)
    index = torch.tensor([0, 1])
    with pytest.raises(KernelError, match=r"shapes do not fit"):
        call("index_get", x, 1, [index], [0], 0, torch.zeros(3, 4))
    with pytest.raises(KernelError, match="expected indices of dtype int64, got int32"):
        call("index_get", x, 1, [index.int()], [0], 0, torch.zeros(2, 4))
    with pytest.raises(KernelError, match="dtypes differ; expected float32, got float64"):
        call("index_get", x, 1, [index], [0], 0, torch.zeros(2, 4, dtype=torch.float64))
    with pytest.raises(KernelError, match="does not fit"):
        call("gather", x, 0, torch.zeros(2, 5, dtype=torch.int64), torch.zeros(2, 5))
    with pytest.raises(KernelError, match="expected tensors of as many dimensions"):
        call("gather", x, 0, index, torch.zeros(2))
