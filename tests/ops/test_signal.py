"""Windows, short-time transforms, integrals and parts of numbers, against NumPy, SciPy and PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight as rl

RNG = np.random.default_rng(3)
signal = pytest.importorskip("scipy.signal")


@pytest.mark.parametrize("sym", [True, False])
@pytest.mark.parametrize("M", [0, 1, 2, 7, 64])
def test_windows(M, sym):
    w, s = rl.signal.windows, signal.windows
    options = {"sym": sym, "dtype": rl.float64}
    for name, arguments in (
        ("hann", {}), ("hamming", {}), ("blackman", {}), ("bartlett", {}), ("cosine", {}), ("nuttall", {}),
        ("gaussian", {"std": 2.5}), ("kaiser", {"beta": 5.0}), ("exponential", {"tau": 2.0}),
        ("general_hamming", {"alpha": 0.6}), ("general_cosine", {"a": [0.4, 0.5, 0.1]}),
    ):  # fmt: skip
        got = getattr(w, name)(M, **arguments, **options).numpy()
        assert np.allclose(got, getattr(s, name)(M, **arguments, sym=sym) if M else [], atol=1e-12), name
    for name in ("hann", "hamming", "blackman", "bartlett"):
        got = getattr(rl, f"{name}_window")(M, periodic=not sym, dtype=rl.float64).numpy()
        assert np.allclose(got, getattr(s, name)(M, sym=sym) if M else [], atol=1e-12), name
    got = rl.kaiser_window(M, not sym, 5.0, dtype=rl.float64).numpy()
    assert np.allclose(got, s.kaiser(M, 5.0, sym=sym) if M else [])


def test_window_errors():
    for wrong in (
        lambda: rl.signal.windows.hann(-1),
        lambda: rl.signal.windows.hann(3, dtype=rl.int64),
        lambda: rl.signal.windows.gaussian(3, std=0),
        lambda: rl.signal.windows.exponential(3, center=1.0),
    ):
        with pytest.raises(ValueError):
            wrong()
    with pytest.raises(RuntimeError):
        rl.hann_window(3, dtype=rl.int64)


@pytest.mark.filterwarnings("ignore:i?stft. a window was not provided")
@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("normalized", [True, False])
def test_short_time_transforms(center, normalized):
    torch = pytest.importorskip("torch")
    x = RNG.standard_normal((2, 400))
    for n_fft, hop, win in ((64, 16, 64), (63, 20, 50), (32, None, 32)):
        window = np.hanning(win + 2)[1:-1]
        arguments = {"n_fft": n_fft, "hop_length": hop, "win_length": win, "center": center, "normalized": normalized}
        ours = rl.stft(rl.from_numpy(x), **arguments, window=rl.from_numpy(window), return_complex=True)
        theirs = torch.stft(
            torch.from_numpy(x),
            **arguments,
            window=torch.from_numpy(window),
            return_complex=True,
        )
        assert np.allclose(ours.numpy(), theirs.numpy())
        if not center and win < n_fft:  # no window covers the first sample
            continue
        back = rl.istft(ours, **arguments, window=rl.from_numpy(window))
        want = torch.istft(theirs, **arguments, window=torch.from_numpy(window))
        assert np.allclose(back.numpy(), want.numpy())
        assert np.allclose(back.numpy(), x[:, : back.size(1)])
    with pytest.raises(RuntimeError):
        rl.stft(rl.from_numpy(x), 64)
    with pytest.raises(RuntimeError):
        rl.stft(rl.from_numpy(x), 640, return_complex=True, center=False)


def test_frames_without_a_window_warn():
    x = rl.ones(64)
    with pytest.warns(UserWarning, match=r"^stft: a window was not provided"):
        spectrum = rl.stft(x, 16, return_complex=True)
    with pytest.warns(UserWarning, match=r"^istft: a window was not provided"):
        assert np.allclose(rl.istft(spectrum, 16).numpy(), 1, atol=1e-6)


def test_no_differences_are_taken_of_what_diff_would_join():
    x = rl.tensor([1.0, 4.0, 9.0])
    assert x.diff(0, prepend=rl.zeros(1), append=rl.zeros(1)).tolist() == x.tolist()
    assert x.diff(1, prepend=rl.zeros(1), append=rl.zeros(1)).tolist() == [1, 3, 5, -9]


def test_integrals_and_gradients():
    y, x = RNG.standard_normal((3, 7, 4)), np.sort(RNG.standard_normal(7))
    t = rl.from_numpy(y)
    assert np.allclose(rl.trapezoid(t, dim=1).numpy(), np.trapezoid(y, axis=1))
    assert np.allclose(rl.trapz(t, rl.from_numpy(x), dim=1).numpy(), np.trapezoid(y, x, axis=1))
    cumulative = rl.cumulative_trapezoid(t, rl.from_numpy(x), dim=1).numpy()
    assert np.allclose(cumulative[:, -1], np.trapezoid(y, x, axis=1))
    for got, want in zip(rl.gradient(t, spacing=0.5), np.gradient(y, 0.5), strict=True):
        assert np.allclose(got.numpy(), want)
    for order in (1, 2):
        got = rl.gradient(t, spacing=[rl.from_numpy(x)], dim=1, edge_order=order)[0].numpy()
        assert np.allclose(got, np.gradient(y, x, axis=1, edge_order=order))
    logs = rl.logcumsumexp(t, 1).numpy()
    assert np.allclose(logs, np.log(np.cumsum(np.exp(y), 1)))


def test_parts():
    x = np.array([0.0, -0.0, 1.0, -3.5, 1e-310, 5e-324, 1.7e308, np.inf, np.nan])
    mantissa, exponent = rl.frexp(rl.from_numpy(x))
    want = np.frexp(x)
    np.testing.assert_array_equal(mantissa.numpy(), want[0])
    finite = np.isfinite(x)
    assert np.array_equal(exponent.numpy()[finite], want[1][finite]) and exponent.dtype == rl.int32
    z = rl.complex(rl.tensor([3.0, 1.0]), rl.tensor([4.0, 0.0]))
    assert z.dtype == rl.complex64 and rl.isreal(z).tolist() == [False, True]
    assert rl.polar(z.abs(), z.angle()).tolist() == pytest.approx([3 + 4j, 1 + 0j], rel=1e-6)
    for wrong in (lambda: rl.complex(rl.ones(2), rl.ones(2).double()), lambda: rl.ones(2).float_power_(2)):
        with pytest.raises(RuntimeError):
            wrong()
    assert rl.tensor([True]).square().dtype == rl.int64
    a, b = rl.tensor([1 + 2j, 900.0]), rl.tensor([0.5 - 1j, 900.0])
    assert np.allclose(rl.logaddexp(a, b).numpy(), [np.log(np.exp(1 + 2j) + np.exp(0.5 - 1j)), 900 + np.log(2)])
