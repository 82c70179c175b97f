"""Recurrent cells and layers as functions.

A cell maps an input (N, I) and a state (N, H) to a new state; a layer runs a cell over time, in one or both
directions. The input's part of all steps is one product; only the state's part runs step by step.
"""

from __future__ import annotations

import rushlight
from rushlight import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["gru_cell", "lstm_cell", "rnn_relu_cell", "rnn_tanh_cell"]


def _lstm_gates(gates: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    i, f, g, o = gates.chunk(4, -1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def _gru_gates(gi: Tensor, gh: Tensor, h: Tensor) -> Tensor:
    ir, iz, in_ = gi.chunk(3, -1)
    hr, hz, hn = gh.chunk(3, -1)
    r = (ir + hr).sigmoid()
    z = (iz + hz).sigmoid()
    n = (in_ + r * hn).tanh()
    return (h - n) * z + n


def lstm_cell(
    input: Tensor, hx: Any, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """One step of an LSTM. Shapes: (N, I), two states (N, H), weights (4 H, I) and (4 H, H) -> new states."""
    linear = rushlight.nn.functional.linear
    h, c = hx
    return _lstm_gates(linear(input, w_ih, b_ih) + linear(h, w_hh, b_hh), c)


def gru_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """One step of a GRU. Shapes: (N, I), state (N, H), weights (3 H, I) and (3 H, H) -> new state."""
    linear = rushlight.nn.functional.linear
    return _gru_gates(linear(input, w_ih, b_ih), linear(hx, w_hh, b_hh), hx)


def rnn_tanh_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """tanh(W_ih x + b_ih + W_hh h + b_hh). Shapes: (N, I), state (N, H), weights (H, I) and (H, H) -> new state."""
    linear = rushlight.nn.functional.linear
    return (linear(input, w_ih, b_ih) + linear(hx, w_hh, b_hh)).tanh()


def rnn_relu_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """relu(W_ih x + b_ih + W_hh h + b_hh). Shapes: (N, I), state (N, H), weights (H, I) and (H, H) -> new state."""
    linear = rushlight.nn.functional.linear
    return (linear(input, w_ih, b_ih) + linear(hx, w_hh, b_hh)).relu()


def _step(mode: str, gates: Tensor, state: Any, w_hh: Tensor, b_hh: Tensor | None, w_hr: Tensor | None) -> Any:
    """A new state from the input's part of the gates. The state is (h,), or (h, c) of an LSTM."""
    linear = rushlight.nn.functional.linear
    h = state[0]
    if mode == "LSTM":
        out, c = _lstm_gates(gates + linear(h, w_hh, b_hh), state[1])
        if w_hr is not None:
            out = linear(out, w_hr)
        return out, c
    if mode == "GRU":
        return (_gru_gates(gates, linear(h, w_hh, b_hh), h),)
    total = gates + linear(h, w_hh, b_hh)
    return (total.tanh() if mode == "RNN_TANH" else total.relu(),)


def _run_direction(mode: str, x: Tensor, state: Any, weights: list[Any], reverse: bool) -> tuple[Tensor, Any]:
    """One layer in one direction over x (T, N, I): the outputs (T, N, H) and the last state."""
    w_ih, w_hh, b_ih, b_hh, w_hr = weights
    gates = rushlight.nn.functional.linear(x, w_ih, b_ih).unbind(0)
    out = []
    for g in reversed(gates) if reverse else gates:
        state = _step(mode, g, state, w_hh, b_hh, w_hr)
        out.append(state[0])
    if reverse:
        out.reverse()
    if not out:
        return x.new_zeros((0, x.shape[1], state[0].shape[-1])), state
    return rushlight.stack(out), state


def _run_packed(
    mode: str, x: Tensor, sizes: list[int], state: Any, weights: list[Any], reverse: bool
) -> tuple[Tensor, Any]:
    """The same over packed data, where ``sizes[t]`` sequences are still running at step t."""
    w_ih, w_hh, b_ih, b_hh, w_hr = weights
    gates = rushlight.nn.functional.linear(x, w_ih, b_ih).split(sizes)
    out = []
    if reverse:
        # sequences join in as the steps go back to where they end
        first = state
        current = tuple(s[: sizes[-1]] for s in first)
        for t in range(len(sizes) - 1, -1, -1):
            have = current[0].shape[0]
            if sizes[t] > have:
                current = tuple(rushlight.cat([s, f[have : sizes[t]]]) for s, f in zip(current, first, strict=False))
            current = _step(mode, gates[t], current, w_hh, b_hh, w_hr)
            out.append(current[0])
        out.reverse()
        return rushlight.cat(out), current
    finished: list[Any] = []
    current = state
    for t, size in enumerate(sizes):
        if size < current[0].shape[0]:
            finished.append(tuple(s[size:] for s in current))
            current = tuple(s[:size] for s in current)
        current = _step(mode, gates[t], current, w_hh, b_hh, w_hr)
        out.append(current[0])
    finished.append(current)
    finished.reverse()
    last = tuple(rushlight.cat([f[i] for f in finished]) for i in range(len(current)))
    return rushlight.cat(out), last


def run_layers(
    mode: str,
    x: Tensor,
    sizes: list[int] | None,
    states: tuple[Tensor, ...],
    weights: list[list[Any]],
    dropout: float,
    training: bool,
    bidirectional: bool,
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """A stack of recurrent layers.

    Args:
        mode: "LSTM", "GRU", "RNN_TANH" or "RNN_RELU".
        x: (T, N, I), or packed data (sum of sizes, I) with ``sizes``.
        states: each (layers * directions, N, H).
        weights: per layer and direction [w_ih, w_hh, b_ih, b_hh, w_hr], None for what is absent.

    Returns the outputs of the last layer and the last states.
    """
    directions = 2 if bidirectional else 1
    layers = len(weights) // directions
    lasts: list[Any] = []
    for layer in range(layers):
        outs = []
        for direction in range(directions):
            k = layer * directions + direction
            state = tuple(s[k] for s in states)
            if sizes is None:
                out, last = _run_direction(mode, x, state, weights[k], direction == 1)
            else:
                out, last = _run_packed(mode, x, sizes, state, weights[k], direction == 1)
            outs.append(out)
            lasts.append(last)
        x = outs[0] if directions == 1 else rushlight.cat(outs, -1)
        if dropout > 0 and training and layer < layers - 1:
            x = rushlight.nn.functional.dropout(x, dropout, True)
    return x, tuple(rushlight.stack([last[i] for last in lasts]) for i in range(len(states)))
