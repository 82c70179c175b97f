"""Copies of views, writing into views of copies, pieces and arrangements, against NumPy and itertools."""

import itertools

import numpy as np
import pytest

import rushlight as rl
from rushlight.autograd import gradcheck, gradgradcheck


def same(tensor, array):
    array = np.asarray(array)
    assert tuple(tensor.shape) == array.shape
    np.testing.assert_array_equal(tensor.numpy(), array)


@pytest.fixture
def x():
    return rl.arange(24.0).reshape(2, 3, 4)


@pytest.mark.parametrize(
    ("copy", "view"),
    [
        (lambda t: rl.alias_copy(t), lambda a: a),
        (lambda t: rl.as_strided_copy(t, (2, 2), (1, 3), 1), lambda a: a.ravel()[[[1, 4], [2, 5]]]),
        (lambda t: rl.diagonal_copy(t, 1), lambda a: np.diagonal(a, 1)),
        (lambda t: rl.expand_copy(t[:, :1], (2, 5, 4)), lambda a: np.broadcast_to(a[:, :1], (2, 5, 4))),
        (lambda t: rl.narrow_copy(t, 2, 1, 2), lambda a: a[:, :, 1:3]),
        (lambda t: rl.permute_copy(t, (2, 0, 1)), lambda a: a.transpose(2, 0, 1)),
        (lambda t: rl.select_copy(t, 1, -1), lambda a: a[:, -1]),
        (lambda t: rl.slice_copy(t, 2, 1, None, 2), lambda a: a[..., 1::2]),
        (lambda t: rl.squeeze_copy(t[:1], 0), lambda a: a[0]),
        (lambda t: rl.t_copy(t[0]), lambda a: a[0].T),
        (lambda t: rl.transpose_copy(t, 0, 2), lambda a: a.swapaxes(0, 2)),
        (lambda t: rl.unfold_copy(t, 2, 2, 2), lambda a: a.reshape(2, 3, 2, 2)),
        (lambda t: rl.unsqueeze_copy(t, 1), lambda a: a[:, None]),
        (lambda t: rl.view_copy(t, (4, 6)), lambda a: a.reshape(4, 6)),
    ],
)
def test_a_copy_has_the_view_s_values_and_memory_of_its_own(x, copy, view):
    made = copy(x)
    want = view(x.numpy().copy())
    same(made, want)
    x.zero_()
    same(made, want)


def test_lists_of_copies_and_their_outputs(x):
    for made, want in (
        (rl.split_copy(x, 2, 1), np.split(x.numpy(), [2], 1)),
        (rl.split_with_sizes_copy(x, (1, 3), 2), np.split(x.numpy(), [1], 2)),
        (rl.unbind_copy(x, 1), [x.numpy()[:, i] for i in range(3)]),
    ):
        assert len(made) == len(want)
        for m, w in zip(made, want, strict=True):
            same(m, w)
            assert m.data_ptr() != x.data_ptr()
    outs = [rl.zeros(2, 4) for _ in range(3)]
    assert rl.unbind_copy(x, 1, out=outs) is None
    same(outs[2], x.numpy()[:, 2])
    with pytest.raises(RuntimeError, match="expected 3"):
        rl.unbind_copy(x, 1, out=outs[:2])


def test_scatters_write_into_a_copy(x):
    a = x.numpy().copy()
    b = a.copy()
    b[:, 1] = -1
    same(x.select_scatter(-rl.ones(2, 4), 1, 1), b)
    b = a.copy()
    b[..., 1::2] = -2
    same(x.slice_scatter(rl.full((2, 3, 2), -2.0), 2, 1, None, 2), b)
    b = a.copy()
    b[0, 0], b[1, 1] = 7, 8
    same(x.diagonal_scatter(rl.tensor([[7.0, 8.0]] * 4)), _diagonal(a))
    b = a.ravel().copy()
    b[[1, 3, 5]] = 9
    same(x.as_strided_scatter(rl.full((3,), 9.0), (3,), (2,), 1), b.reshape(a.shape))
    same(x, a)
    for bad in (
        lambda: x.select_scatter(rl.ones(4), 1, 1),
        lambda: x.slice_scatter(rl.ones(2, 3, 3), 2, 1, 3),
        lambda: x.diagonal_scatter(rl.ones(4, 3)),
        lambda: x.as_strided_scatter(rl.ones(2), (3,), (2,)),
    ):
        with pytest.raises(RuntimeError, match="expected"):
            bad()


def _diagonal(a):
    b = a.copy()
    b[0, 0], b[1, 1] = 7, 8
    return b


def test_scatters_of_views_keep_strides():
    x = rl.arange(12.0).reshape(3, 4).t()
    out = x.as_strided_scatter(rl.full((2,), -1.0), (2,), (5,))
    assert out.stride() == x.stride()
    same(out, [[-1, 4, 8], [1, -1, 9], [2, 6, 10], [3, 7, 11]])


def test_derivatives_of_copies_and_scatters():
    x = rl.randn(3, 4, dtype=rl.float64, requires_grad=True)
    y = rl.randn(3, 2, dtype=rl.float64, requires_grad=True)
    d = rl.randn(3, dtype=rl.float64, requires_grad=True)
    for f, args in (
        (lambda a, b: a.slice_scatter(b, 1, 0, 4, 2), (x, y)),
        (lambda a, b: a.diagonal_scatter(b), (x, d)),
        (lambda a, b: a.as_strided_scatter(b, (3,), (5,)), (x, d)),
        (lambda a: a.roll((1, -1), (0, 1)) ** 2, (x,)),
        (lambda a: a.roll(5) ** 2, (x,)),
        (lambda a: rl.unfold_copy(a, 1, 3, 1) ** 2, (x,)),
        (lambda a: sum(p.sum() ** 2 for p in a.unsafe_split(3, 1)), (x,)),
        (lambda a: a.diag_embed(1) ** 2, (x,)),
    ):
        assert gradcheck(f, args)
        assert gradgradcheck(f, args)


def test_diagonals():
    v, m = np.arange(3), np.arange(12).reshape(3, 4)
    for k in (-2, 0, 1):
        same(rl.diag(rl.from_numpy(v), k), np.diag(v, k))
        same(rl.diag(rl.from_numpy(m), k), np.diag(m, k))
        same(rl.diagflat(rl.from_numpy(m), k), np.diagflat(m, k))
        for row in range(3):
            same(rl.from_numpy(m).diag_embed(k)[row], np.diag(m[row], k))
    assert rl.zeros(2, 3).diag_embed(0, 0, -1).shape == (3, 2, 3)
    assert rl.zeros(0).diag().shape == (0, 0)
    with pytest.raises(RuntimeError):
        rl.zeros(()).diag()
    with pytest.raises(RuntimeError):
        rl.zeros(3).diag_embed(0, 1, 1)


def test_pieces(x):
    a = x.numpy()
    for sections, axis in ((2, 2), (3, 2), (5, 2), ([1, 2], 1), ([0, 2, 9], 2), ([-1], 2)):
        got, want = x.tensor_split(sections, axis), np.array_split(a, sections, axis)
        assert len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            same(g, w)
            assert (
                g.numel() == 0
                or g.storage_offset() * 4 == w.__array_interface__["data"][0] - a.__array_interface__["data"][0]
            )
    assert [t.shape for t in rl.tensor_split(x, rl.tensor([1, 2]), 1)] == [(2, 1, 4)] * 3
    assert len(rl.tensor_split(x, indices_or_sections=2)) == 2
    for split, reference, at in ((rl.hsplit, np.hsplit, [1]), (rl.vsplit, np.vsplit, [1]), (rl.dsplit, np.dsplit, 2)):
        for g, w in zip(split(x, at), reference(a, at), strict=True):
            same(g, w)
    same(rl.hsplit(rl.arange(4), 2)[1], [2, 3])
    for bad in (
        lambda: x.hsplit(2),
        lambda: rl.zeros(3).vsplit(1),
        lambda: rl.zeros(2, 2).dsplit(1),
        lambda: rl.zeros(()).hsplit(1),
        lambda: x.tensor_split(0),
    ):
        with pytest.raises(RuntimeError):
            bad()
    pieces = x.unsafe_split_with_sizes((1, 3), 2)
    pieces[1].zero_()
    assert x[..., 1:].abs().sum() == 0 and x[..., 0].abs().sum() > 0
    assert len(x.unsafe_chunk(3, 2)) == 2


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32, np.complex128, np.bool_])
def test_roll(dtype):
    a = np.arange(60).reshape(3, 4, 5).astype(dtype)
    for view in (a, a.transpose(2, 0, 1), a[:, ::2], a[:0]):
        t = rl.from_numpy(view)
        same(t.roll(7), np.roll(view, 7))
        same(t.roll(-2, 1), np.roll(view, -2, 1))
        same(t.roll((1, 2, -9), (0, 1, 0)), np.roll(view, (1, 2, -9), (0, 1, 0)))
    with pytest.raises(RuntimeError):
        rl.from_numpy(a).roll((1, 2))
    with pytest.raises(IndexError):
        rl.from_numpy(a).roll(1, 3)
    with pytest.raises(IndexError):
        rl.tensor(1.0).roll(1, 0)


def test_ranges_and_triangles():
    np.testing.assert_allclose(rl.logspace(-1, 2, 7, dtype=rl.float64).numpy(), np.logspace(-1, 2, 7), rtol=1e-14)
    np.testing.assert_allclose(
        rl.logspace(rl.tensor(0.0), 8, 5, base=2).numpy(), np.logspace(0, 8, 5, base=2), rtol=1e-6
    )
    assert rl.logspace(4.3, -3, 2, 3.0, dtype=rl.int64).tolist() == [81, 0]
    assert rl.logspace(0, 1, 0).shape == (0,)
    with pytest.raises(RuntimeError):
        rl.logspace(0, 1, -1)
    for rows, columns, k in ((3, 4, 0), (4, 2, 1), (2, 5, -1), (3, 3, 7), (3, 3, -7), (0, 3, 0)):
        same(rl.tril_indices(rows, columns, k), np.stack(np.tril_indices(rows, k, columns)))
        same(
            rl.triu_indices(rows, columns, k, dtype=rl.int32),
            np.stack(np.triu_indices(rows, k, columns)).astype(np.int32),
        )
    with pytest.raises(RuntimeError):
        rl.tril_indices(-1, 2)
    assert rl.empty_permuted((2, 3, 4), (1, 2, 0)).stride() == (1, 8, 2)
    for bad in ((0, 1), (0, 1, 1), (0, 1, 3)):
        with pytest.raises(RuntimeError):
            rl.empty_permuted((2, 3, 4), bad)


def test_positions():
    a = np.array([[0, 3, 0], [1, 0, 2]])
    t = rl.from_numpy(a)
    same(t.argwhere(), np.argwhere(a))
    assert t.nonzero_static(size=2).tolist() == [[0, 1], [1, 0]]
    assert t.nonzero_static(size=4, fill_value=9).tolist() == [[0, 1], [1, 0], [1, 2], [9, 9]]
    assert rl.tensor(5).argwhere().shape == (1, 0)
    flat = np.array([[0, 5, 23], [7, 11, 2]])
    for g, w in zip(rl.unravel_index(rl.from_numpy(flat), (2, 3, 4)), np.unravel_index(flat, (2, 3, 4)), strict=True):
        same(g, w)
    with pytest.raises(TypeError):
        rl.unravel_index(rl.zeros(2), (2,))
    with pytest.raises(ValueError):
        rl.unravel_index(rl.arange(2), (-2,))


@pytest.mark.parametrize("n", [0, 1, 4])
@pytest.mark.parametrize("r", [0, 1, 2, 3, 5])
def test_combinations(n, r):
    v = np.arange(n) * 1.5
    for again, reference in ((False, itertools.combinations), (True, itertools.combinations_with_replacement)):
        got = rl.combinations(rl.from_numpy(v), r, again)
        want = [] if r == 0 else list(reference(v, r))
        assert got.tolist() == [list(w) for w in want]
    with pytest.raises(RuntimeError):
        rl.combinations(rl.zeros(2, 2))


def test_vander():
    v = np.array([2, -1, 0, 3])
    for n in (None, 0, 1, 2, 5):
        for up in (False, True):
            same(rl.vander(rl.from_numpy(v), n, up), np.vander(v, n, up))
    with pytest.raises(RuntimeError):
        rl.vander(rl.zeros(()))


def test_padding_with_a_value(x):
    a = x.numpy()
    same(rl.constant_pad_nd(x, (1, 2, 0, 3), 5), np.pad(a, ((0, 0), (0, 3), (1, 2)), constant_values=5))
    same(rl.constant_pad_nd(x, (-1, 1), 0.5), np.pad(a[..., 1:], ((0, 0), (0, 0), (0, 1)), constant_values=0.5))
    for bad in ((1,), (1,) * 8, (-3, -3)):
        with pytest.raises(RuntimeError):
            rl.constant_pad_nd(x, bad)


@pytest.mark.parametrize("dim", [None, 0, 1, -1])
def test_repeats(dim):
    a = np.arange(12).reshape(3, 4)
    t = rl.from_numpy(a)
    same(t.repeat_interleave(3, dim), np.repeat(a, 3, dim))
    same(t.repeat_interleave(0, dim), np.repeat(a, 0, dim))
    n = a.size if dim is None else a.shape[dim]
    times = np.arange(n) % 3
    same(t.repeat_interleave(rl.from_numpy(times), dim), np.repeat(a, times, dim))
    same(t.repeat_interleave(rl.tensor(2), dim), np.repeat(a, 2, dim))
    same(
        t.repeat_interleave(rl.from_numpy(times), dim, output_size=int(np.repeat(a, times, dim).shape[dim or 0])),
        np.repeat(a, times, dim),
    )
    for bad in (-1, rl.tensor([1, 2]), rl.ones(n), rl.full((n,), -1)):
        with pytest.raises(RuntimeError):
            t.repeat_interleave(bad, dim)


def test_repeated_positions():
    assert rl.repeat_interleave(rl.tensor([2, 0, 3])).tolist() == [0, 0, 2, 2, 2]
    assert rl.repeat_interleave(rl.tensor([], dtype=rl.int32)).dtype == rl.int32
    with pytest.raises(RuntimeError):
        rl.repeat_interleave(rl.tensor([2, 1]), output_size=4)


def test_to_meta_keeps_layout_and_history():
    cases = [
        (rl.ones(2, 3).t(), {}, (1, 3)),
        (rl.ones(2, 3, 4, 5).to(memory_format=rl.channels_last), {}, (60, 1, 15, 3)),
        (rl.ones(2, 3, 4, 5), {"memory_format": rl.channels_last}, (60, 1, 15, 3)),
        (rl.ones(6)[::2], {}, (1,)),
        (rl.ones(1, 3).expand(4, 3), {}, (3, 1)),
    ]
    for x, options, strides in cases:
        assert x.to("meta", **options).stride() == strides and x.to("meta", **options).is_meta
    x = rl.ones(2, requires_grad=True)
    y = x.to("meta", rl.float64)
    assert y.requires_grad and y.dtype == rl.float64
    with pytest.raises(NotImplementedError, match="meta"):
        y.sum().backward()


@pytest.mark.parametrize("name", ["empty_like", "zeros_like", "ones_like", "rand_like", "randn_like"])
def test_likes_of_every_format(name):
    like, x = getattr(rl, name), rl.ones(2, 3, 4, 5)
    assert like(x, memory_format=rl.channels_last).stride() == (60, 1, 15, 3)
    assert like(x.transpose(1, 2), memory_format=rl.contiguous_format).stride() == (60, 15, 5, 1)
    assert like(x.transpose(1, 2)).stride() == like(x.transpose(1, 2), device="meta").stride() == (60, 5, 20, 1)
    with pytest.raises(RuntimeError, match="rank 5"):
        like(x, memory_format=rl.channels_last_3d)


def test_results_keep_the_order_of_their_inputs():
    x = rl.arange(120.0).reshape(2, 3, 4, 5).to(memory_format=rl.channels_last)
    assert (-x[:, 1:]).stride() == (40, 1, 10, 2)  # not dense, but ordered
    assert (x[:, :1].contiguous(memory_format=rl.channels_last)).clone().stride() == (20, 1, 5, 1)
    assert (rl.ones(1, 3, 4, 5).expand(2, 3, 4, 5) * x).stride() == x.stride()  # what is expanded has no order
    y = x.clone().requires_grad_()
    assert rl.autograd.grad((y * y).sum(), y)[0].stride() == x.stride()


def test_resize_takes_a_memory_format():
    x = rl.arange(24.0)
    assert x.resize_(1, 3, 2, 4, memory_format=rl.channels_last).stride() == (24, 1, 12, 3)
    assert x[0, :, 0, 0].tolist() == [0.0, 1.0, 2.0]
    last = rl.ones(1, 2, 3, 4).to(memory_format=rl.channels_last)
    assert x.resize_as_(last).stride() == (24, 12, 4, 1)
    assert x.resize_as_(last, memory_format=rl.preserve_format).stride() == last.stride()
    assert rl.ones(1, 2, 3, 4).cpu(memory_format=rl.channels_last).stride() == last.stride()
    for error, sizes, options in (
        (RuntimeError, (2, 2), {"memory_format": rl.channels_last}),
        (RuntimeError, (2, 2), {"memory_format": rl.preserve_format}),
        (TypeError, (2, 2), {"memory_format": 2}),
        (TypeError, (2, 2), {"size": 3}),
    ):
        with pytest.raises(error):
            x.resize_(*sizes, **options)
        assert x.shape == (1, 2, 3, 4)


def test_what_already_has_the_format_is_not_copied():
    torch = pytest.importorskip("torch")

    def layouts(m):
        for shape in ((2, 3, 4), (2, 3, 4, 5), (1, 3, 4, 5), (2, 1, 4, 5), (2, 3, 1, 1), (1, 1, 1, 1), (2, 3, 2, 4, 5)):
            row_major = m.zeros(shape)
            yield row_major
            yield row_major.transpose(-1, -2)
            yield row_major.transpose(0, 1)
            yield row_major[..., ::2]
            yield row_major[:, ::2]
            yield m.zeros((1, *shape[1:])).expand(shape)
            yield m.zeros((shape[0], 1, *shape[2:])).expand(shape)
            if len(shape) == 4:
                channels_last = row_major.contiguous(memory_format=m.channels_last)
                yield channels_last
                yield channels_last[..., ::2]
                yield channels_last[:, :1]
                yield channels_last[..., :1]

    for theirs, ours in zip(layouts(torch), layouts(rl), strict=True):
        for name in ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d"):
            for call in ("contiguous", "to", "float"):
                results = []
                for x, m in ((theirs, torch), (ours, rl)):
                    try:
                        arguments = (m.float32,) if call == "to" else ()
                        y = getattr(x, call)(*arguments, memory_format=getattr(m, name))
                        results.append((y.data_ptr() == x.data_ptr(), y.stride()))
                    except RuntimeError:
                        results.append("RuntimeError")
                assert results[0] == results[1], (tuple(theirs.shape), theirs.stride(), call, name)


def test_the_diagonal_of_an_expanded_tensor_is_not_filled():
    for x in (rl.zeros(1, 3).expand(3, 3), rl.zeros(3, 1).expand(3, 3)):
        with pytest.raises(RuntimeError, match=r"fill_diagonal_: .* expanded to \[3, 3\]"):
            x.fill_diagonal_(1.0)


def test_numbers_that_are_not_tolerances():
    with pytest.raises(RuntimeError, match="isclose: rtol and atol must be at least zero, got nan"):
        rl.isclose(rl.ones(2), rl.ones(2), rtol=float("nan"))
