"""Fourier transforms against sums in long double, NumPy and PyTorch: sizes, layouts, norms, errors, derivatives."""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path

import numpy as np
import pytest

import rushlight as rl

RNG = np.random.default_rng(7)
SIZES = [
    1,
    2,
    3,
    4,
    5,
    6,
    7,
    8,
    9,
    10,
    11,
    12,
    13,
    15,
    16,
    17,
    24,
    25,
    30,
    31,
    32,
    49,
    61,
    64,
    67,
    77,
    96,
    100,
    121,
    122,
]
LONGER = [128, 169, 210, 243, 256, 360, 509, 512, 625, 1000, 1009, 1024, 1331, 2018]


TWO_PI = 2 * (np.longdouble(np.pi) + np.longdouble(1.2246467991473532e-16))


@functools.lru_cache(None)
def roots(n):
    angle = np.arange(n).astype(np.longdouble) * TWO_PI / n
    k = np.outer(np.arange(n), np.arange(n)) % n
    return np.cos(angle)[k], np.sin(angle)[k]


def exact(x, inverse=False):
    """The definition, in long double over the last axis; NumPy for long lines."""
    n = x.shape[-1]
    if n > 128:
        wide = x.astype("complex128")
        return np.fft.ifft(wide, norm="forward") if inverse else np.fft.fft(wide)
    c, s = roots(n)
    s = s if inverse else -s
    re, im = x.real.astype(np.longdouble), x.imag.astype(np.longdouble)
    return (re @ c - im @ s) + 1j * (re @ s + im @ c)


def signal(*shape, dtype="complex128"):
    x = RNG.standard_normal(shape)
    if dtype.startswith("complex"):
        x = x + 1j * RNG.standard_normal(shape)
    return x.astype(dtype)


def error(got, want):
    scale = float(np.sqrt(np.mean(np.abs(want) ** 2))) or 1.0
    return float(np.max(np.abs(got.numpy().astype(np.clongdouble) - want))) / scale


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_every_kind_of_size(dtype):
    eps = np.finfo(dtype).eps
    for n in SIZES + LONGER:
        bound = eps * 4 * (1 + np.log2(n)) * (4 if n in (67, 122, 127, 509, 1009, 2018) else 1)
        for lines in (1, 37) if n > 128 else (1, 5, 37):
            x = signal(lines, n, dtype=dtype)
            assert error(rl.fft.fft(rl.from_numpy(x)), exact(x)) < bound, (n, lines)
            assert error(rl.fft.ifft(rl.from_numpy(x), norm="forward"), exact(x, True)) < bound, (n, lines)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_real_signals(dtype):
    eps = np.finfo(dtype).eps
    for n in SIZES + LONGER:
        bound = eps * 4 * (1 + np.log2(n)) * (4 if n in (67, 122, 127, 509, 1009, 2018) else 1)
        for lines in (1, 19):
            x = signal(lines, n, dtype=dtype)
            y = rl.fft.rfft(rl.from_numpy(x))
            assert error(y, exact(x.astype("clongdouble"))[:, : n // 2 + 1]) < bound, (n, lines)
            assert error(rl.fft.irfft(y, n), x.astype("clongdouble")) < 2 * bound, (n, lines)


@pytest.mark.parametrize("n", [1 << 15, 3 * 5 * 7 * 11 * 13, 1 << 20, 99991])
def test_long_lines(n):
    x = signal(n, dtype="complex64")
    want = np.fft.fft(x.astype("complex128"))
    assert error(rl.fft.fft(rl.from_numpy(x)), want) < 2e-5 / 8
    wide = x.astype("complex128")
    assert error(rl.fft.fft(rl.from_numpy(wide)), want) < 1e-13
    assert error(rl.fft.ifft(rl.fft.fft(rl.from_numpy(wide))), wide) < 1e-13
    real = x.real.copy()
    assert error(rl.fft.rfft(rl.from_numpy(real)), np.fft.rfft(real.astype("float64"))) < 2e-5 / 8


def test_layouts_and_dims():
    x = signal(6, 10, 33, 4)
    t = rl.from_numpy(x)
    for dim in range(4):
        assert np.allclose(rl.fft.fft(t, dim=dim).numpy(), np.fft.fft(x, axis=dim))
        assert np.allclose(
            rl.fft.ifft(t[:, ::2].transpose(0, 2), dim=dim).numpy(), np.fft.ifft(x[:, ::2].swapaxes(0, 2), axis=dim)
        )
        assert np.allclose(rl.fft.rfft(t.real, dim=dim).numpy(), np.fft.rfft(x.real, axis=dim))
        for size in (1, 3, 8, 40):
            assert np.allclose(rl.fft.fft(t, size, dim).numpy(), np.fft.fft(x, size, dim))
            assert np.allclose(rl.fft.irfft(t, size, dim).numpy(), np.fft.irfft(x, size, dim))
            assert np.allclose(rl.fft.hfft(t, size, dim).numpy(), np.fft.hfft(x, size, dim))
    for norm in ("forward", "backward", "ortho"):
        assert np.allclose(rl.fft.fftn(t, norm=norm).numpy(), np.fft.fftn(x, norm=norm))
        assert np.allclose(rl.fft.ifft2(t, norm=norm).numpy(), np.fft.ifft2(x, norm=norm))
        assert np.allclose(
            rl.fft.rfftn(t.real, s=(5, 8), norm=norm).numpy(), np.fft.rfftn(x.real, s=(5, 8), axes=(2, 3), norm=norm)
        )
        assert np.allclose(
            rl.fft.irfftn(t, s=(5, 8), dim=(0, 2), norm=norm).numpy(),
            np.fft.irfftn(x, s=(5, 8), axes=(0, 2), norm=norm),
        )
    assert rl.fft.fft(rl.zeros(0, 4)).shape == (0, 4)
    assert rl.fft.fft(t.expand(2, 6, 10, 33, 4)).shape == (2, 6, 10, 33, 4)


def test_types_and_errors():
    assert rl.fft.fft(rl.arange(4)).dtype == rl.complex64
    assert rl.fft.rfft(rl.ones(4, dtype=rl.bool)).dtype == rl.complex64
    assert rl.fft.fft(rl.ones(4, dtype=rl.float64)).dtype == rl.complex128
    out = rl.empty(3, dtype=rl.complex64)
    assert rl.fft.fft(rl.ones(3), out=out) is out
    assert out.tolist() == pytest.approx([3, 0, 0], abs=1e-6)
    x = rl.ones(4, 4)
    for wrong in (
        lambda: rl.fft.fft(x.half()),
        lambda: rl.fft.rfft(x.to(rl.complex64)),
        lambda: rl.fft.fft(x, 0),
        lambda: rl.fft.fft(x, norm="other"),
        lambda: rl.fft.fftn(x, dim=(0, 0)),
        lambda: rl.fft.fftn(x, s=(2, 2), dim=(0,)),
        lambda: rl.fft.fftn(x, s=(2, 2, 2)),
        lambda: rl.fft.irfft(x[:, :1]),
        lambda: rl.fft.rfftn(x, dim=()),
    ):
        with pytest.raises(RuntimeError):
            wrong()
    with pytest.raises(IndexError):
        rl.fft.fft(x, dim=2)


@pytest.mark.parametrize("n", [7, 8])
def test_derivatives(n):
    from rushlight.autograd import gradcheck, gradgradcheck

    x = rl.from_numpy(signal(2, n)).requires_grad_()
    y = rl.from_numpy(signal(2, n, dtype="float64")).requires_grad_()
    for function in (rl.fft.fft, rl.fft.ifft2, rl.fft.irfft, rl.fft.hfft):
        assert gradcheck(function, (x,)) and gradgradcheck(function, (x,))
    for function in (rl.fft.rfft, rl.fft.ihfft, rl.fft.fft, rl.fft.rfft2):
        assert gradcheck(function, (y,)) and gradgradcheck(function, (y,))


def test_the_cache_is_bounded_and_threads_do_not_matter():
    lib = ctypes.CDLL(str(next((Path(rl.__file__).parent / "lib").glob("librushlight.so*"))))
    lib.rl_fft_cache_bytes.restype = ctypes.c_int64
    lib.rl_fft_set_cache_limit.argtypes = [ctypes.c_int64]
    x = rl.from_numpy(signal(1 << 16))
    first = rl.fft.fft(x).numpy()
    assert 0 < lib.rl_fft_cache_bytes() <= 32 << 20
    try:
        lib.rl_fft_set_cache_limit(0)
        assert lib.rl_fft_cache_bytes() == 0
        threads = rl.get_num_threads()
        rl.set_num_threads(1)
        assert np.array_equal(rl.fft.fft(x).numpy(), first)
        rl.set_num_threads(threads)
        assert lib.rl_fft_cache_bytes() == 0
    finally:
        lib.rl_fft_set_cache_limit(32 << 20)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("n", [2, 3, 4, 7, 8, 9, 12, 16, 18, 33])
def test_many_short_lines_in_every_layout(n, dtype):
    """Vectors that reach past a line's end spoil no other line, whether lines are dense, apart or backwards."""
    rng = np.random.default_rng(n)
    tolerance = 3e-6 if dtype == np.complex64 else 1e-14
    for rows in (1, 5, 16, 37):
        wide = (rng.standard_normal((rows, n + 3)) + 1j * rng.standard_normal((rows, n + 3))).astype(dtype)
        for x in (np.ascontiguousarray(wide[:, :n]), wide[:, :n], wide[::2, :n], np.asfortranarray(wide[:, :n])):
            a = rl.from_numpy(x)
            near = {"rtol": 0, "atol": tolerance * n**0.5 * 4}
            np.testing.assert_allclose(rl.fft.fft(a).numpy(), np.fft.fft(x), **near)
            np.testing.assert_allclose(rl.fft.ifft(a, norm="forward").numpy(), np.fft.ifft(x, norm="forward"), **near)
            half = x[:, : n // 2 + 1]
            np.testing.assert_allclose(
                rl.fft.irfft(rl.from_numpy(half), n, norm="forward").numpy(),
                np.fft.irfft(half, n, norm="forward"),
                **near,
            )
            real = np.ascontiguousarray(x.real)
            np.testing.assert_allclose(rl.fft.rfft(rl.from_numpy(real)).numpy(), np.fft.rfft(real), **near)
            room = np.full((x.shape[0], 2 * n), 7, dtype)  # what lies between the lines stays
            out = rl.from_numpy(room)[:, :n]
            rl.fft.fft(a, out=out)
            np.testing.assert_allclose(out.numpy(), np.fft.fft(x), **near)
            assert (room[:, n:] == 7).all()


class _Descriptor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("ndim", ctypes.c_int32),
        ("dtype", ctypes.c_uint8),
        ("device", ctypes.c_uint8),
        ("reserved", ctypes.c_uint8 * 2),
    ]


def _described(x: np.ndarray) -> _Descriptor:
    numbers = ctypes.c_int64 * x.ndim
    steps = [step // x.itemsize for step in x.strides]
    return _Descriptor(x.ctypes.data, numbers(*x.shape), numbers(*steps), x.ndim, 10, 0)  # 10: RL_COMPLEX64


@pytest.mark.parametrize("n", [2, 4, 9, 18])
def test_the_kernel_writes_between_no_lines(n):
    lib = ctypes.CDLL(str(next((Path(rl.__file__).parent / "lib").glob("librushlight.so*"))))
    x = (np.arange(37 * n).reshape(37, n) % 11 + 2j).astype(np.complex64)
    room = np.full((37, n + 3), 7, np.complex64)
    out = room[:, :n]
    dim = ctypes.byref(ctypes.c_int(1))
    status = lib.rl_fft(ctypes.byref(_described(x)), dim, 1, 0, ctypes.c_double(1.0), ctypes.byref(_described(out)))
    assert status == 0
    np.testing.assert_allclose(out, np.fft.fft(x), atol=1e-3)
    assert (room[:, n:] == 7).all()


@pytest.mark.parametrize("n", range(1, 34))
def test_the_kernel_writes_after_no_tensor(n):
    lib = ctypes.CDLL(str(next((Path(rl.__file__).parent / "lib").glob("librushlight.so*"))))
    dim, one = ctypes.byref(ctypes.c_int(1)), ctypes.c_double(1.0)
    for lines in (1, 2, 7, 8, 16, 17, 32, 33):
        x = (np.arange(lines * n).reshape(lines, n) % 11 + 2j).astype(np.complex64)
        room = np.full((lines * n + 64,), 7, np.complex64)
        out = room[32:-32].reshape(lines, n)
        assert lib.rl_fft(ctypes.byref(_described(x)), dim, 1, 0, one, ctypes.byref(_described(out))) == 0
        np.testing.assert_allclose(out, np.fft.fft(x), atol=1e-3)
        assert (room[:32] == 7).all() and (room[-32:] == 7).all()
        signal = np.ascontiguousarray(x.real)
        real = _described(signal)
        real.dtype = 8  # RL_FLOAT32
        room = np.full((lines * (n // 2 + 1) + 64,), 7, np.complex64)
        half = room[32:-32].reshape(lines, n // 2 + 1)
        assert lib.rl_fft_real(ctypes.byref(real), dim, 1, one, ctypes.byref(_described(half))) == 0
        np.testing.assert_allclose(half, np.fft.rfft(signal), atol=1e-3)
        assert (room[:32] == 7).all() and (room[-32:] == 7).all()


@functools.lru_cache(None)
def turns(n):
    """exp(-2 pi i j k / n) in long double."""
    c, s = roots(n)
    return c - 1j * s


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_all_sizes_to_300_in_every_layout(dtype):
    """Lines alone, lines that leave lanes empty, columns, and both with gaps, against sums in long double."""
    eps = np.finfo(dtype).eps
    for n in range(1, 301):
        lines = 19 if n % 7 < 2 else 3
        x = (RNG.standard_normal((lines, n)) + 1j * RNG.standard_normal((lines, n))).astype(
            "complex64" if dtype == "float32" else "complex128"
        )
        wide, real = x.astype("clongdouble"), np.ascontiguousarray(x.real)
        forward, backward = wide @ turns(n), wide @ turns(n).conj()
        spectrum = (wide.real @ turns(n))[:, : n // 2 + 1]
        bound = eps * 4 * (1 + np.log2(n)) * (4 if n > 61 else 1)
        for gaps in (False, True):
            a, b = rl.from_numpy(x), rl.from_numpy(real)
            columns, real_columns = (
                rl.from_numpy(np.ascontiguousarray(x.T)),
                rl.from_numpy(np.ascontiguousarray(real.T)),
            )
            if gaps:
                a, b = rl.stack([a, 3 + a], -1)[..., 0], rl.stack([b, 3 + b], -1)[..., 0]
                columns = rl.stack([columns, 3 + columns], -1)[..., 0]
                real_columns = rl.stack([real_columns, 3 + real_columns], -1)[..., 0]
            assert error(rl.fft.fft(a), forward) < bound, n
            assert error(rl.fft.fft(a[0]), forward[0]) < bound, n
            assert error(rl.fft.ifft(a, norm="forward"), backward) < bound, n
            assert error(rl.fft.fft(columns, dim=0).T, forward) < bound, n
            assert error(rl.fft.ifft(columns, dim=0, norm="forward").T, backward) < bound, n
            assert error(rl.fft.rfft(b), spectrum) < bound, n
            assert error(rl.fft.rfft(b[1]), spectrum[1]) < bound, n
            assert error(rl.fft.rfft(real_columns, dim=0).T, spectrum) < bound, n
            half = rl.from_numpy(spectrum.astype(x.dtype))
            if gaps:
                half = rl.stack([half, 3 + half], -1)[..., 0]
            assert error(rl.fft.irfft(half, n), real) < 2 * bound, n
            assert error(rl.fft.irfft(half[0], n), real[0]) < 2 * bound, n
            assert error(rl.fft.irfft(half.T.contiguous(), n, dim=0).T, real) < 2 * bound, n


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_images_one_at_a_time(dtype):
    """Several dims of many small images are done image by image, of one image dim by dim."""
    for shape, dims in (
        ((5, 3, 14, 10), (2, 3)),
        ((5, 3, 9, 16), (3, 2)),
        ((4, 7, 6, 5), (0, 2, 3)),
        ((33, 40), (0, 1)),
    ):
        x = RNG.standard_normal(shape).astype(dtype)
        tolerance = {"rtol": 0, "atol": np.finfo(dtype).eps * 10 * x.size**0.5}
        for view in (x, np.swapaxes(x, 0, 1)):
            t = rl.from_numpy(view)
            want = np.fft.rfftn(view.astype("float64"), axes=dims)
            got = rl.fft.rfftn(t, dim=dims)
            np.testing.assert_allclose(got.numpy(), want, **tolerance)
            np.testing.assert_allclose(rl.fft.fftn(t, dim=dims).numpy(), np.fft.fftn(view, axes=dims), **tolerance)
            np.testing.assert_allclose(
                rl.fft.irfftn(got, [view.shape[d] for d in dims], dims).numpy(), view, **tolerance
            )
