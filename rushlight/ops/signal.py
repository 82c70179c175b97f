"""Window functions and short-time Fourier transforms."""

from __future__ import annotations

import math
import warnings
from typing import Any

from ._record import composite, rl

_OPTIONS = (
    "*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, "
    "bool requires_grad=False"
)


def _window(op: str, n: int, periodic: bool, options: tuple[Any, ...], f: Any) -> Any:
    """f(k, m) over k = 0 ... n - 1, where m is the greatest k of the symmetric window."""
    dtype, _, device, _, requires_grad = options
    dtype = rl.get_default_dtype() if dtype is None else dtype
    if not dtype.is_floating_point:
        raise RuntimeError(f"{op}: dtype; expected a floating-point dtype, got {dtype}")
    if n < 0:
        raise RuntimeError(f"{op}: window_length; expected at least 0, got {n}")
    if n < 2:
        window = rl.ones(n, dtype=dtype, device=device)
    else:
        wide = rl.float64 if dtype == rl.float64 else rl.float32
        k = rl.arange(n, dtype=wide, device=device)
        window = f(k, n if periodic else n - 1).to(dtype)
    return window.requires_grad_() if requires_grad else window


def _cosines(k: Any, m: int, *factors: float) -> Any:
    angle = k * (2 * math.pi / m)
    total = factors[0] - factors[1] * angle.cos()
    for j, factor in enumerate(factors[2:], 2):
        total = total + (-1) ** j * factor * (angle * j).cos()
    return total


def _named(name: str, extra: str, formula: str, sentence: str, example: str, f: Any) -> None:
    def body(window_length: int, periodic: bool = True, *rest: Any) -> Any:
        parameters, options = rest[: len(rest) - 5], rest[-5:]
        return _window(name, window_length, periodic, options, lambda k, m: f(k, m, *parameters))

    composite(
        f"{name}(int window_length, bool periodic=True, {extra}{_OPTIONS}) -> Tensor",
        method=False,
        formula=f"out_k = {formula}, k = 0 ... window_length - 1",
        doc=f"""{sentence}

    m is window_length, so that the window continued periodically has no double point, or window_length - 1 when not
    periodic: a symmetric window. RuntimeError for a negative length and a dtype that is not floating point.

    Shapes: the result has window_length elements, of the default float dtype unless dtype is given.

    {example}""",
    )(body)


_named(
    "hann_window",
    "",
    "0.5 - 0.5 cos(2 pi k / m)",
    "The window of Julius von Hann: one period of a cosine, raised to 0 at both ends.",
    """>>> torch.hann_window(4), torch.hann_window(5, periodic=False)
    (tensor([0.0000, 0.5000, 1.0000, 0.5000]), tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000]))""",
    lambda k, m: _cosines(k, m, 0.5, 0.5),
)
_named(
    "hamming_window",
    "float alpha=0.54, float beta=0.46, ",
    "alpha - beta cos(2 pi k / m)",
    "The window of Richard Hamming: a raised cosine that does not quite reach 0, for a lower first side lobe.",
    """>>> torch.hamming_window(4)
    tensor([0.0800, 0.5400, 1.0000, 0.5400])""",
    lambda k, m, alpha, beta: _cosines(k, m, alpha, beta),
)
_named(
    "blackman_window",
    "",
    "0.42 - 0.5 cos(2 pi k / m) + 0.08 cos(4 pi k / m)",
    "The window of Ralph Blackman: two cosines, for side lobes lower than those of hann_window.",
    """>>> torch.blackman_window(4)[1:]
    tensor([0.3400, 1.0000, 0.3400])""",
    lambda k, m: _cosines(k, m, 0.42, 0.5, 0.08),
)
_named(
    "bartlett_window",
    "",
    "1 - |2 k / m - 1|",
    "The window of Maurice Bartlett: a triangle with 0 at both ends.",
    """>>> torch.bartlett_window(4), torch.bartlett_window(5, periodic=False)
    (tensor([0.0000, 0.5000, 1.0000, 0.5000]), tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000]))""",
    lambda k, m: 1 - (k * (2 / m) - 1).abs(),
)
_named(
    "kaiser_window",
    "float beta=12.0, ",
    "i0(beta sqrt(1 - (2 k / m - 1)^2)) / i0(beta)",
    "The window of James Kaiser, which holds nearly all energy in the main lobe; the greater beta, the wider that is.",
    """>>> torch.kaiser_window(4, True, 2.0)
    tensor([0.4387, 0.8348, 1.0000, 0.8348])""",
    lambda k, m, beta: (
        ((1 - (k * (2 / m) - 1).square()).clamp(min=0).sqrt() * beta).i0() / rl.full((), beta, dtype=k.dtype).i0()
    ),
)


def _padded_window(op: str, window: Any, win_length: int, n_fft: int, like: Any) -> Any:
    """The window, or one of ones, centred among n_fft numbers; None for ones everywhere."""
    if window is None:
        if win_length == n_fft:
            return None
        dtype = {rl.complex64: rl.float32, rl.complex128: rl.float64}.get(like.dtype, like.dtype)
        window = rl.ones(win_length, dtype=dtype, device=like.device)
    if win_length == n_fft:
        return window
    left = (n_fft - win_length) // 2
    zeros = window.new_zeros
    return rl.cat([zeros(left), window, zeros(n_fft - win_length - left)])


def _lengths(op: str, n_fft: int, hop: int | None, win: int | None, window: Any) -> tuple[int, int]:
    hop = n_fft // 4 if hop is None else hop
    win = n_fft if win is None else win
    if hop <= 0:
        raise RuntimeError(f"{op}: hop_length; expected more than 0, got {hop}")
    if not 0 < win <= n_fft:
        raise RuntimeError(f"{op}: win_length; expected 0 < win_length <= n_fft = {n_fft}, got {win}")
    if window is None:
        warnings.warn(
            f"{op}: a window was not provided; frames are cut out as they are, so that frequencies leak into each "
            "other. window=rushlight.hann_window(win_length) is the usual one",
            stacklevel=3,
        )
    elif window.dim() != 1 or window.size(0) != win:
        raise RuntimeError(f"{op}: window; expected a 1-d tensor of size win_length = {win}, got {list(window.shape)}")
    return hop, win


@composite(
    "stft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool center=True, "
    "str pad_mode='reflect', bool normalized=False, bool? onesided=None, bool? return_complex=None, "
    "bool? align_to_window=None) -> Tensor",
    formula="out[f, t] = sum over k of window[k] self[t * hop_length + k] exp(-2 pi i f k / n_fft)",
)
def _stft(
    self: Any,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Any = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Any:
    """The short-time Fourier transform: transforms of frames of n_fft samples, hop_length apart, each times the
    window.

    hop_length is n_fft // 4 and win_length n_fft by default; a shorter window is centred in the frame, and without one
    it is ones. center pads the signal by n_fft // 2 at both ends in the way of pad_mode, so that frame t is centred at
    t * hop_length. normalized divides by sqrt(n_fft). onesided (the default for real signals) leaves the negative
    frequencies out. RuntimeError for sizes that do not fit, and for real signals without return_complex.

    Shapes: self (time) or (batch, time), window (win_length); the result (frequencies, frames) or (batch, frequencies,
    frames), complex, or with return_complex=False real with a last dimension of 2.

    >>> x = torch.tensor([1.0, 0.0, -1.0, 0.0, 1.0, 0.0, -1.0, 0.0])  # a quarter of the sampling frequency
    >>> torch.stft(x, 4, 2, window=torch.ones(4), center=False, return_complex=True).abs()
    tensor([[0., 0., 0.],
            [2., 2., 2.],
            [0., 0., 0.]])
    """
    complex_input = self.is_complex() or (window is not None and window.is_complex())
    if return_complex is None:
        if not complex_input:
            raise RuntimeError("stft: requires the return_complex parameter be given for real inputs; expected True")
        return_complex = True
    if not (self.is_floating_point() or self.is_complex()):
        raise RuntimeError(f"stft: input; expected a tensor of floating point or complex values, got {self.dtype}")
    if not 1 <= self.dim() <= 2:
        raise RuntimeError(f"stft: input; expected a 1D or 2D tensor, got {self.dim()}D")
    if align_to_window is not None and center:
        raise RuntimeError("stft: align_to_window should only be set when center = False")
    hop, win = _lengths("stft", n_fft, hop_length, win_length, window)
    x = self if self.dim() == 2 else self.unsqueeze(0)
    if center:
        x = rl.nn.functional.pad(x.unsqueeze(1), (n_fft // 2, n_fft // 2), pad_mode).squeeze(1)
    length = x.size(-1)
    if not 0 < n_fft <= length:
        raise RuntimeError(f"stft: n_fft; expected 0 < n_fft <= {length}, got {n_fft}")
    if align_to_window:
        left = (n_fft - win) // 2
        x = rl.nn.functional.pad(x, (left, n_fft - win - left))
    if onesided is None:
        onesided = not complex_input
    elif onesided and complex_input:
        raise RuntimeError("stft: cannot have onesided output if window or input is complex")
    frames = x.unfold(-1, n_fft, hop)
    factors = _padded_window("stft", window, win, n_fft, x)
    if factors is not None:
        frames = frames * factors
    norm = "ortho" if normalized else None
    result = rl.fft.rfft(frames, norm=norm) if onesided else rl.fft.fft(frames, norm=norm)
    result = result.transpose(-1, -2)
    if self.dim() == 1:
        result = result.squeeze(0)
    return result if return_complex else rl.view_as_real(result)


@composite(
    "istft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool center=True, "
    "bool normalized=False, bool? onesided=None, int? length=None, bool return_complex=False) -> Tensor",
    formula="out[s] = sum_t w[s - t h] y_t[s - t h] / sum_t w[s - t h]^2, y_t = irfft(self[:, t]), h = hop_length",
)
def _istft(
    self: Any,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Any = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Any:
    """The signal whose stft is nearest the input (D. W. Griffin and J. S. Lim, 1984).

    The arguments are those of stft; center takes the padding away again, and length cuts the signal off or pads it
    with zeros. RuntimeError where the windows leave a sample uncovered, and for sizes that do not fit.

    Shapes: self (frequencies, frames) or (batch, frequencies, frames), complex; the result (time) or (batch, time).

    >>> x, window = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]), torch.hann_window(4)
    >>> X = torch.stft(x, 4, window=window, return_complex=True)
    >>> torch.dist(torch.istft(X, 4, window=window), x) < 1e-5
    tensor(True)
    """
    if not self.is_complex():
        raise RuntimeError(
            f"istft: input; expected a complex tensor, as stft(return_complex=True) gives, got {self.dtype}"
        )
    if self.numel() == 0:
        raise RuntimeError(f"istft: input; expected elements, got shape {list(self.shape)}")
    if self.dim() not in (2, 3):
        raise RuntimeError(f"istft: input; expected 2 or 3 dimensions, got {self.dim()}")
    x = self if self.dim() == 3 else self.unsqueeze(0)
    if onesided is None:
        onesided = x.size(1) != n_fft
    expected = n_fft // 2 + 1 if onesided else n_fft
    if x.size(1) != expected:
        raise RuntimeError(f"istft: frequencies; expected {expected} for n_fft = {n_fft}, got {x.size(1)}")
    if return_complex and onesided:
        raise RuntimeError("istft: cannot have onesided input when the result is complex")
    hop, win = _lengths("istft", n_fft, hop_length, win_length, window)
    if not return_complex and window is not None and window.is_complex():
        raise RuntimeError("istft: complex windows need return_complex=True")
    factors = _padded_window("istft", window, win, n_fft, x)
    norm = "ortho" if normalized else None
    x = x.transpose(1, 2)
    if return_complex:
        y = rl.fft.ifft(x, norm=norm)
    else:  # the other half mirrors it
        y = rl.fft.irfft(x[..., : n_fft // 2 + 1], n_fft, norm=norm)
    frames, total = y.size(1), n_fft + hop * (y.size(1) - 1)
    if factors is not None:
        y = y * factors
        squares = (factors * factors).expand(frames, n_fft)
    else:
        squares = rl.ones(frames, n_fft, dtype={rl.complex64: rl.float32}.get(self.dtype, rl.float64))
    places = (rl.arange(frames).unsqueeze(1) * hop + rl.arange(n_fft)).reshape(-1)
    signal = y.new_zeros(y.size(0), total).index_add(1, places, y.reshape(y.size(0), -1))
    weight = squares.new_zeros(total).index_add(0, places, squares.reshape(-1))
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else total - n_fft // 2 if center else total
    signal, weight = signal[:, start:end], weight[start:end]
    least = float(weight.detach().abs().min()) if weight.numel() else 0.0
    if not least > 1e-11:
        raise RuntimeError(f"istft: the windows overlap nowhere at a sample; expected a sum above 1e-11, got {least}")
    signal = signal / weight
    if length is not None and signal.size(1) < length:
        signal = rl.cat([signal, signal.new_zeros(signal.size(0), length - signal.size(1))], 1)
    return signal if self.dim() == 3 else signal.squeeze(0)
