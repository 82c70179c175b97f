"""Searching, counting, unique and reductions into places, against NumPy."""

import numpy as np
import pytest

import rushlight as rl
from rushlight.autograd import gradcheck, gradgradcheck

NAN = float("nan")


def same(tensor, array):
    array = np.asarray(array)
    assert tuple(tensor.shape) == array.shape
    np.testing.assert_array_equal(tensor.numpy(), array)


@pytest.fixture
def random():
    return np.random.default_rng(3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.uint8])
def test_searchsorted(random, dtype):
    s = np.sort(random.integers(0, 20, 15)).astype(dtype)
    v = random.integers(0, 22, (4, 5)).astype(dtype)
    for side in ("left", "right"):
        want = np.searchsorted(s, v, side)
        same(rl.searchsorted(rl.from_numpy(s), rl.from_numpy(v), side=side), want)
        same(rl.searchsorted(rl.from_numpy(s), rl.from_numpy(v.T), right=side == "right"), want.T)
        same(rl.bucketize(rl.from_numpy(v), rl.from_numpy(s), right=side == "right"), want)
    order = random.permutation(15)
    mixed = np.empty_like(s)
    mixed[order] = s
    same(rl.searchsorted(rl.from_numpy(mixed), rl.from_numpy(v), sorter=rl.from_numpy(order)), np.searchsorted(s, v))
    rows = np.sort(random.integers(0, 9, (4, 3)), 1).astype(dtype)
    want = np.stack([np.searchsorted(a, b) for a, b in zip(rows, v, strict=True)])
    same(rl.searchsorted(rl.from_numpy(rows), rl.from_numpy(v), out_int32=True), want.astype(np.int32))
    assert rl.searchsorted(rl.from_numpy(s), 3).item() == np.searchsorted(s, 3)
    assert rl.bucketize(2.5, rl.from_numpy(s)).item() == np.searchsorted(s, 2.5)


def test_searching_refuses():
    s, v = rl.tensor([1.0, 2.0]), rl.tensor([1.0])
    for bad in (
        lambda: rl.searchsorted(s, v, side="left", right=True),
        lambda: rl.searchsorted(s, v, side="middle"),
        lambda: rl.searchsorted(rl.tensor(1.0), v),
        lambda: rl.searchsorted(rl.ones(2, 2), 1.0),
        lambda: rl.searchsorted(rl.ones(2, 2), rl.ones(3, 2)),
        lambda: rl.searchsorted(s, v, sorter=rl.tensor([0, 5])),
        lambda: rl.searchsorted(s, v, sorter=rl.tensor([0])),
        lambda: rl.searchsorted(s, v, out=rl.zeros(1)),
        lambda: rl.bucketize(v, rl.ones(2, 2)),
    ):
        with pytest.raises(RuntimeError):
            bad()


def test_isin(random):
    a, b = random.integers(0, 30, (5, 6)), random.integers(0, 30, 12)
    for invert in (False, True):
        same(rl.isin(rl.from_numpy(a), rl.from_numpy(b), invert=invert), np.isin(a, b, invert=invert))
        same(rl.isin(rl.from_numpy(a), 3, invert=invert), np.isin(a, 3, invert=invert))
        same(rl.isin(3, rl.from_numpy(b), invert=invert), np.isin(3, b, invert=invert))
    same(rl.isin(rl.tensor([1.0, NAN, 2.5]), rl.tensor([NAN, 1.0])), [True, False, False])
    same(rl.isin(rl.tensor([1, 2]), 1.5), [False, False])
    same(rl.isin(rl.tensor([1, 2]), rl.zeros(0)), [False, False])
    with pytest.raises(RuntimeError):
        rl.isin(rl.tensor([True]), rl.tensor([True]))


@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.float32, np.bool_])
def test_unique(random, dtype):
    a = random.integers(0, 4, (6, 7)).astype(dtype)
    t = rl.from_numpy(a)
    for got, want in zip(
        t.unique(return_inverse=True, return_counts=True),
        np.unique(a, return_inverse=True, return_counts=True),
        strict=True,
    ):
        same(got.reshape(-1), want.reshape(-1))
    assert t.unique(return_inverse=True)[1].shape == (6, 7)
    for dim in (0, 1, -1):
        for got, want in zip(
            t.unique(dim=dim, return_inverse=True, return_counts=True),
            np.unique(a, axis=dim, return_inverse=True, return_counts=True),
            strict=True,
        ):
            same(got.reshape(-1), want.reshape(-1))
    same(t.t().unique(), np.unique(a))


def test_unique_of_little():
    values, counts = rl.tensor([NAN, 1.0, NAN, -0.0, 0.0]).unique(return_counts=True)
    assert counts.tolist() == [2, 1, 1, 1] and values[2:].isnan().all()
    assert rl.zeros(0).unique(return_counts=True)[1].shape == (0,)
    assert rl.zeros(0, 3).unique(dim=0).shape == (0, 3)
    assert rl.tensor(5).unique(return_inverse=True)[1].shape == ()
    with pytest.raises(RuntimeError):
        rl.zeros(0, 3).unique(dim=1)
    with pytest.raises(IndexError):
        rl.tensor(5).unique(dim=0)
    with pytest.raises(NotImplementedError):
        rl.tensor([1j]).unique()


def test_unique_consecutive():
    t = rl.tensor([1, 1, 2, 2, 2, 1])
    values, inverse, counts = t.unique_consecutive(return_inverse=True, return_counts=True)
    assert (values.tolist(), inverse.tolist(), counts.tolist()) == ([1, 2, 1], [0, 0, 1, 1, 1, 2], [2, 3, 1])
    rows = rl.tensor([[1, 2], [1, 2], [1, 3], [1, 2]])
    assert rows.unique_consecutive(dim=0).tolist() == [[1, 2], [1, 3], [1, 2]]
    assert rl.zeros(0).unique_consecutive().shape == (0,)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int32, np.int64])
def test_bincount(random, dtype):
    a = random.integers(0, 12, 40).astype(dtype)
    w = random.normal(size=40)
    t = rl.from_numpy(a)
    same(t.bincount(), np.bincount(a))
    same(t.bincount(minlength=20), np.bincount(a, minlength=20))
    np.testing.assert_allclose(t.bincount(rl.from_numpy(w)).numpy(), np.bincount(a, w), rtol=1e-14)
    assert t.bincount(rl.ones(40)).dtype == rl.float32 and t.bincount(rl.ones(40).int()).dtype == rl.float64
    assert rl.zeros(0, dtype=rl.int64).bincount(minlength=3).tolist() == [0, 0, 0]
    for bad in (lambda: (-t.long()).bincount(), lambda: t.reshape(2, 20).bincount(), lambda: t.bincount(minlength=-1)):
        with pytest.raises(RuntimeError):
            bad()


def test_histograms(random):
    a = random.normal(size=(50, 3))
    w = random.random((50, 3))
    t, u = rl.from_numpy(a), rl.from_numpy(w)
    for density in (False, True):
        for bins, range_ in ((10, None), (7, (-1.0, 2.0)), (1, (0.0, 0.0))):
            got = rl.histogram(t, bins, range=range_, weight=u, density=density)
            want, edges = np.histogram(a, bins, range_, weights=w, density=density)
            np.testing.assert_allclose(got.hist.numpy(), want, rtol=1e-12)
            np.testing.assert_allclose(got.bin_edges.numpy(), edges, rtol=1e-12)
        edges = np.array([-2, -0.5, 0, 0.1, 3])
        got = rl.histogram(t, rl.from_numpy(edges), density=density)
        np.testing.assert_allclose(got.hist.numpy(), np.histogram(a, edges, density=density)[0], rtol=1e-12)
        got = rl.histogramdd(t, [3, 4, 2], weight=u[:, 0], density=density)
        want, edges = np.histogramdd(a, [3, 4, 2], weights=w[:, 0], density=density)
        np.testing.assert_allclose(got.hist.numpy(), want, rtol=1e-12)
        for g, e in zip(got.bin_edges, edges, strict=True):
            np.testing.assert_allclose(g.numpy(), e, rtol=1e-12)
    same(t.histc(6, -1, 1), np.histogram(a, 6, (-1, 1))[0].astype(float))
    assert rl.histc(rl.ones(3), 4).tolist() == [0, 0, 3, 0]
    assert rl.histc(rl.tensor([1.0, NAN]), 4, 0, 2).tolist() == [0, 0, 1, 0]
    assert rl.histc(rl.zeros(0), 2).tolist() == [0, 0]
    for bad in (
        lambda: rl.histc(rl.tensor([1.0, NAN]), 4),
        lambda: rl.histc(rl.ones(2), 0),
        lambda: rl.histc(rl.ones(2), 3, 2, 1),
        lambda: rl.histogram(t, 0),
        lambda: rl.histogram(t, 2, range=(1.0,)),
        lambda: rl.histogram(t, 2, range=(2.0, 1.0)),
        lambda: rl.histogram(t, rl.ones(2, 2).double()),
        lambda: rl.histogram(t, rl.ones(2)),
        lambda: rl.histogramdd(t, [2, 2]),
        lambda: rl.histogramdd(t[0], [2]),
        lambda: rl.histogramdd(t, 2, weight=u),
    ):
        with pytest.raises(RuntimeError):
            bad()


UFUNCS = {"sum": np.add, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum}


@pytest.mark.parametrize("reduce", ["sum", "prod", "amax", "amin", "mean"])
@pytest.mark.parametrize("include_self", [True, False])
def test_reductions_into_places(random, reduce, include_self):
    a, src = random.normal(size=(4, 5)), random.normal(size=(3, 5))
    index = random.integers(0, 4, (3, 5))
    lists = [[[a[i, j]] if include_self else [] for j in range(5)] for i in range(4)]
    for i in range(3):
        for j in range(5):
            lists[index[i, j]][j].append(src[i, j])
    function = np.mean if reduce == "mean" else UFUNCS[reduce].reduce
    want = np.array([[function(lists[i][j]) if lists[i][j] else a[i, j] for j in range(5)] for i in range(4)])
    t = rl.from_numpy(a)
    got = t.scatter_reduce(0, rl.from_numpy(index), rl.from_numpy(src), reduce, include_self=include_self)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-13)
    if reduce == "sum":
        return
    rows = random.integers(0, 4, 3)
    want = a.copy()
    for i in range(4):
        parts = [*([a[i]] if include_self else []), *src[rows == i]]
        if len(parts):
            want[i] = np.mean(parts, 0) if reduce == "mean" else UFUNCS[reduce].reduce(parts, 0)
    got = t.index_reduce(0, rl.from_numpy(rows), rl.from_numpy(src), reduce, include_self=include_self)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-13)
    t.index_reduce_(0, rl.from_numpy(rows), rl.from_numpy(src), reduce, include_self=include_self)
    np.testing.assert_allclose(t.numpy(), want, rtol=1e-13)


@pytest.mark.parametrize("reduce", ["sum", "prod", "amax", "amin", "mean"])
@pytest.mark.parametrize("include_self", [True, False])
def test_derivatives_of_reductions_into_places(reduce, include_self):
    self = rl.tensor([[1.5, 0.0], [2.0, -1.0], [0.5, 3.0]], dtype=rl.float64, requires_grad=True)
    index = rl.tensor([[0, 1], [0, 2], [1, 2], [0, 1]])
    # one zero, two zeros and none among the factors of an element; a row beyond the index
    src = rl.tensor(
        [[0.0, 4.0], [2.0, 0.0], [-1.0, 0.0], [1.25, 0.7], [9.0, 9.0]], dtype=rl.float64, requires_grad=True
    )

    def scattered(a, b):
        return a.scatter_reduce(0, index, b, reduce, include_self=include_self)

    if reduce in ("amax", "amin"):  # no zeros that tie
        src = (src.detach() + rl.arange(10).reshape(5, 2) * 0.01).requires_grad_()
    assert gradcheck(scattered, (self, src))
    if reduce != "sum":  # whose gradient is the incoming one itself
        assert gradgradcheck(scattered, (self, src))
    if reduce != "sum":
        rows = rl.tensor([2, 0, 0, 2, 1])

        def indexed(a, b):
            return a.index_reduce(0, rows, b, reduce, include_self=include_self)

        assert gradcheck(indexed, (self, src))
        assert gradgradcheck(indexed, (self, src))


def test_reductions_into_places_refuse():
    x, i, s = rl.zeros(3), rl.tensor([0, 1, 1]), rl.ones(3)
    for kind, bad in (
        (RuntimeError, lambda: x.scatter_reduce(0, i, s, "most")),
        (RuntimeError, lambda: x.index_reduce(0, i, s, "sum")),
        (RuntimeError, lambda: x.index_reduce(0, i, s.double(), "mean")),
        (RuntimeError, lambda: x.index_reduce(0, i, s[:2], "mean")),
        (IndexError, lambda: x.index_reduce(0, i[:, None], s, "mean")),
        (IndexError, lambda: x.index_reduce(0, -i, s, "mean")),
        (NotImplementedError, lambda: x.bool().scatter_reduce(0, i, s.bool(), "mean")),
    ):
        with pytest.raises(kind):
            bad()


def test_medians():
    x = rl.tensor([[3.0, 1.0], [2.0, 4.0]], dtype=rl.float64, requires_grad=True)
    assert x.median().item() == 2 and rl.tensor([1.0, NAN, 0.0]).nanmedian().item() == 0
    assert rl.tensor([1.0, NAN]).median().isnan() and rl.zeros(0).median().isnan()
    assert gradcheck(lambda t: t.median(), (x,))
    (grad,) = rl.autograd.grad(rl.median(y := rl.tensor([1.0, 2.0, 2.0], requires_grad=True)), y)
    assert grad.tolist() == [0, 0.5, 0.5]
    same(rl.from_numpy(np.arange(7)).median(), np.int64(3))


def test_a_tensor_fills_at_indices():
    x = rl.randn(3, 4, dtype=rl.float64, requires_grad=True)
    v = rl.tensor(2.0, dtype=rl.float64, requires_grad=True)
    index = rl.tensor([1, 1, 3])
    assert gradcheck(lambda a, b: a.index_fill(1, index, b) ** 2, (x, v))
    y = rl.zeros(3)
    assert y.index_fill_(0, rl.tensor([0, 2]), rl.tensor(5)) is y
    assert y.tolist() == [5, 0, 5]
    with pytest.raises(RuntimeError):
        y.index_fill(0, index, rl.ones(1))


def test_grids_in_both_orders():
    x, y = np.arange(3), np.arange(4)
    for order in ("ij", "xy"):
        for got, want in zip(
            rl.meshgrid(rl.from_numpy(x), rl.from_numpy(y), indexing=order),
            np.meshgrid(x, y, indexing=order),
            strict=True,
        ):
            same(got, want)


@pytest.mark.parametrize("reduce", ["sum", "mean", "prod", "max", "min"])
@pytest.mark.parametrize("initial", [None, 10])
def test_segments(random, reduce, initial):
    a = random.normal(size=(2, 6, 3))
    lengths = np.array([[2, 0, 4], [1, 5, 0]])
    function = {"sum": np.sum, "mean": np.sum, "prod": np.prod, "max": np.max, "min": np.min}[reduce]
    nothing = {"sum": 0, "mean": 0, "prod": 1, "max": -np.inf, "min": np.inf}[reduce] if initial is None else initial
    want = np.empty((2, 3, 3))
    for i in range(2):
        at = 0
        for k, n in enumerate(lengths[i]):
            part = np.concatenate([np.full((1, 3), float(nothing)), a[i, at : at + n]])
            want[i, k] = function(part, axis=0)
            if reduce == "mean" and (n or initial is None):
                want[i, k] = want[i, k] / n if n else NAN
            at += n
    got = rl.segment_reduce(rl.from_numpy(a), reduce, lengths=rl.from_numpy(lengths), axis=1, initial=initial)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-13)
    row = rl.from_numpy(a[0])
    by_offsets = rl.segment_reduce(row, reduce, offsets=rl.tensor([0, 2, 2, 6]), initial=initial)
    np.testing.assert_allclose(by_offsets.numpy(), want[0], rtol=1e-13)
    x = row[:, 0].clone().requires_grad_()
    parts = rl.tensor([2, 4])
    assert gradcheck(lambda t: rl.segment_reduce(t, reduce, lengths=parts, initial=initial), (x,))


def test_segments_refuse():
    d = rl.ones(5)
    for bad in (
        lambda: rl.segment_reduce(d, "sum"),
        lambda: rl.segment_reduce(d, "most", lengths=rl.tensor([5])),
        lambda: rl.segment_reduce(d, "sum", lengths=rl.tensor([4])),
        lambda: rl.segment_reduce(d, "sum", lengths=rl.tensor([6, -1])),
        lambda: rl.segment_reduce(d, "sum", lengths=rl.tensor([[5]])),
    ):
        with pytest.raises(RuntimeError):
            bad()
