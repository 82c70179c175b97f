"""Recurrent modules."""

from __future__ import annotations

import math
import warnings

import rushlight
from rushlight import Tensor

from .. import functional as F
from .. import init
from ..functional import _recurrent
from ..parameter import Parameter
from .module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


class RNNBase(Module):
    """What RNN, LSTM and GRU share.

    Parameters of layer k are ``weight_ih_l{k}``, ``weight_hh_l{k}``, ``bias_ih_l{k}``, ``bias_hh_l{k}`` (and
    ``weight_hr_l{k}`` of a projection), with the suffix ``_reverse`` for the backward direction.
    """

    __constants__ = [  # noqa: RUF012
        "batch_first", "bias", "bidirectional", "dropout", "hidden_size", "input_size", "mode", "num_layers",
        "proj_size",
    ]  # fmt: skip

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        if not isinstance(dropout, (int, float)) or isinstance(dropout, bool) or not 0 <= dropout <= 1:
            raise ValueError(f"{name}: dropout; expected a probability in [0, 1], got {dropout!r}")
        if dropout > 0 and num_layers == 1:
            warnings.warn(
                f"{name}: dropout acts between layers; expected num_layers > 1, got 1 layer and dropout={dropout}",
                stacklevel=2,
            )
        if not isinstance(hidden_size, int):
            raise TypeError(f"{name}: hidden_size; expected an int, got {type(hidden_size).__name__}")
        if hidden_size <= 0:
            raise ValueError(f"{name}: hidden_size; expected a positive int, got {hidden_size}")
        if num_layers <= 0:
            raise ValueError(f"{name}: num_layers; expected a positive int, got {num_layers}")
        if proj_size < 0:
            raise ValueError(f"{name}: proj_size; expected an int of at least 0, got {proj_size}")
        if proj_size >= hidden_size:
            raise ValueError(f"{name}: proj_size; expected less than hidden_size {hidden_size}, got {proj_size}")
        if mode not in _GATES:
            raise ValueError(f"{name}: unknown mode; expected one of {sorted(_GATES)}, got {mode!r}")
        rows = _GATES[mode] * hidden_size
        directions = 2 if bidirectional else 1
        state_size = proj_size if proj_size > 0 else hidden_size
        self._flat_weights_names: list[str] = []
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            for direction in range(directions):
                in_size = input_size if layer == 0 else state_size * directions
                shapes: list[tuple[str, tuple[int, ...]]] = [
                    ("weight_ih", (rows, in_size)),
                    ("weight_hh", (rows, state_size)),
                ]
                if bias:
                    shapes += [("bias_ih", (rows,)), ("bias_hh", (rows,))]
                if proj_size > 0:
                    shapes.append(("weight_hr", (proj_size, hidden_size)))
                suffix = f"_l{layer}" + ("_reverse" if direction else "")
                names = [n + suffix for n, _ in shapes]
                for full, (_, shape) in zip(names, shapes, strict=False):
                    setattr(self, full, Parameter(rushlight.empty(shape, device=device, dtype=dtype)))
                self._flat_weights_names += names
                self._all_weights.append(names)
        self.reset_parameters()

    @property
    def _flat_weights(self) -> list[Any]:
        return [getattr(self, n) for n in self._flat_weights_names]

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters per layer and direction."""
        return [[getattr(self, n) for n in names] for names in self._all_weights]

    def flatten_parameters(self) -> None:
        """Does nothing: parameters need no common memory here."""

    def reset_parameters(self) -> None:
        """Draws new values from U(-1/sqrt(hidden_size), 1/sqrt(hidden_size))."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def _weights(self) -> list[list[Any]]:
        """Per layer and direction [w_ih, w_hh, b_ih, b_hh, w_hr]."""
        out = []
        for names in self._all_weights:
            w = [getattr(self, n) for n in names]
            biases = w[2:4] if self.bias else [None, None]
            out.append([w[0], w[1], *biases, w[-1] if self.proj_size > 0 else None])
        return out

    def _state_size(self, h: bool) -> int:
        return self.proj_size if h and self.proj_size > 0 else self.hidden_size

    def _check_state(self, what: str, state: Tensor, batch: int, h: bool) -> None:
        directions = 2 if self.bidirectional else 1
        wanted = [self.num_layers * directions, batch, self._state_size(h)]
        if list(state.shape) != wanted:
            raise RuntimeError(f"{type(self).__name__}: {what}; expected shape {wanted}, got {list(state.shape)}")

    def _zero_state(self, input: Tensor, batch: int, h: bool) -> Tensor:
        directions = 2 if self.bidirectional else 1
        return rushlight.zeros(
            (self.num_layers * directions, batch, self._state_size(h)), dtype=input.dtype, device=input.device
        )

    def _run(self, input: Any, hx: Any) -> tuple[Any, Any]:
        """forward of all modes; states are tuples here."""
        from ..utils.rnn import PackedSequence

        count = 2 if self.mode == "LSTM" else 1
        name = type(self).__name__
        if isinstance(input, PackedSequence):
            data, batch_sizes, sorted_indices, unsorted_indices = input
            if data.dim() != 2:
                raise RuntimeError(f"{name}: packed data; expected 2 dimensions, got {data.dim()}")
            sizes: list[int] | None = batch_sizes.tolist()
            assert sizes is not None
            batch, batched, x = sizes[0], True, data
        else:
            if input.dim() not in (2, 3):
                raise ValueError(f"{name}: input; expected 2 (unbatched) or 3 dimensions, got {input.dim()}")
            sizes, sorted_indices, unsorted_indices = None, None, None
            batched = input.dim() == 3
            x = input
            if not batched:
                x = x.unsqueeze(1)
            elif self.batch_first:
                x = x.transpose(0, 1)
            batch = x.size(1)
        if x.size(-1) != self.input_size:
            raise RuntimeError(f"{name}: input; expected {self.input_size} features (last size), got {x.size(-1)}")
        if x.dtype != self._parameters[self._flat_weights_names[0]].dtype:
            raise ValueError(
                f"{name}: dtype of input; expected {self._parameters[self._flat_weights_names[0]].dtype} (the "
                f"parameters), got {x.dtype}"
            )
        if hx is None:
            states = tuple(self._zero_state(x, batch, i == 0) for i in range(count))
        else:
            states = tuple(hx) if count == 2 else (hx,)
            if len(states) != count:
                raise RuntimeError(f"{name}: hx; expected a pair (h_0, c_0), got {len(states)} values")
            dims = 3 if batched else 2
            for i, s in enumerate(states):
                if s.dim() != dims:
                    raise RuntimeError(f"{name}: {'hc'[i]}_0; expected {dims} dimensions for this input, got {s.dim()}")
            if not batched:
                states = tuple(s.unsqueeze(1) for s in states)
            elif sorted_indices is not None:
                states = tuple(s.index_select(1, sorted_indices) for s in states)
        for i, s in enumerate(states):
            self._check_state("hc"[i] + "_0", s, batch, i == 0)
        out, last = _recurrent.run_layers(
            self.mode, x, sizes, states, self._weights(), self.dropout, self.training, self.bidirectional
        )
        if sizes is not None:
            packed = PackedSequence(out, batch_sizes, sorted_indices, unsorted_indices)
            if unsorted_indices is not None:
                last = tuple(s.index_select(1, unsorted_indices) for s in last)
            return packed, last
        if not batched:
            return out.squeeze(1), tuple(s.squeeze(1) for s in last)
        return (out.transpose(0, 1) if self.batch_first else out), last

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        out, last = self._run(input, hx)
        return out, last[0]

    def extra_repr(self) -> str:
        s = f"{self.input_size}, {self.hidden_size}"
        if self.proj_size != 0:
            s += f", proj_size={self.proj_size}"
        if self.num_layers != 1:
            s += f", num_layers={self.num_layers}"
        if self.bias is not True:
            s += f", bias={self.bias}"
        if self.batch_first is not False:
            s += f", batch_first={self.batch_first}"
        if self.dropout != 0:
            s += f", dropout={self.dropout}"
        if self.bidirectional is not False:
            s += f", bidirectional={self.bidirectional}"
        return s


class RNN(RNNBase):
    """h_t = tanh(W_ih x_t + b_ih + W_hh h_(t-1) + b_hh), in several layers and directions (Elman 1990).

    Args:
        input_size, hidden_size, num_layers, nonlinearity ("tanh" or "relu"), bias, batch_first, dropout (between
        layers), bidirectional.

    Shapes: (T, N, I), or (N, T, I) with batch_first, or (T, I), or a PackedSequence; state (layers * directions, N, H)
    -> outputs (T, N, directions * H) and the last state.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueError("RNN: proj_size is for LSTM; expected no such argument")
        if len(args) > 3:
            self_nonlinearity = args[3]
            args = args[:3] + args[4:]
        else:
            self_nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if self_nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"RNN: unknown nonlinearity; expected 'tanh' or 'relu', got {self_nonlinearity!r}")
        super().__init__("RNN_" + self_nonlinearity.upper(), *args, **kwargs)
        self.nonlinearity = self_nonlinearity


class LSTM(RNNBase):
    """Long short-term memory (Hochreiter and Schmidhuber 1997), in several layers and directions.

    Arguments as :class:`RNN`, and ``proj_size``: the outputs are projected to this size (Sak et al. 2014).
    Shapes: as :class:`RNN`, with a pair of states (h, c).

    Example::

        >>> import rushlight
        >>> out, (h, c) = rushlight.nn.LSTM(10, 20, 2)(rushlight.zeros(5, 3, 10))
        >>> tuple(out.shape), tuple(h.shape)
        ((5, 3, 20), (2, 3, 20))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        return self._run(input, hx)


class GRU(RNNBase):
    """Gated recurrent units (Cho et al.

    2014), in several layers and directions. Arguments and shapes as :class:`RNN`.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueError("GRU: proj_size is for LSTM; expected no such argument")
        super().__init__("GRU", *args, **kwargs)


class RNNCellBase(Module):
    """What the cells share: weight_ih, weight_hh, bias_ih and bias_hh."""

    __constants__ = ["bias", "hidden_size", "input_size"]  # noqa: RUF012

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        if hidden_size <= 0:
            raise ValueError(f"{type(self).__name__}: hidden_size; expected a positive int, got {hidden_size}")
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        self.weight_ih = Parameter(rushlight.empty((rows, input_size), device=device, dtype=dtype))
        self.weight_hh = Parameter(rushlight.empty((rows, hidden_size), device=device, dtype=dtype))
        if bias:
            self.bias_ih = Parameter(rushlight.empty(rows, device=device, dtype=dtype))
            self.bias_hh = Parameter(rushlight.empty(rows, device=device, dtype=dtype))
        else:
            self.register_parameter("bias_ih", None)
            self.register_parameter("bias_hh", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new values from U(-1/sqrt(hidden_size), 1/sqrt(hidden_size))."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def _prepare(self, input: Tensor, states: Any, count: int) -> tuple[Tensor, Any, bool]:
        """Input and states with a batch dimension, and whether there was one."""
        name = type(self).__name__
        dims = input.dim()
        if dims not in (1, 2):
            raise ValueError(f"{name}: input; expected 1 or 2 dimensions, got {dims}")
        if states is not None:
            for i in range(count):
                s = states[i]
                if s.dim() not in (1, 2):
                    raise ValueError(f"{name}: hx[{i}]; expected 1 or 2 dimensions, got {s.dim()}")
        batched = dims == 2
        x = input if batched else input.unsqueeze(0)
        if x.shape[1] != self.input_size:
            raise RuntimeError(f"{name}: input; expected {self.input_size} features, got {x.shape[1]}")
        if states is None:
            zeros = rushlight.zeros((x.shape[0], self.hidden_size), dtype=x.dtype, device=x.device)
            return x, (zeros,) * count, batched
        if not batched:
            states = tuple(s.unsqueeze(0) if s.dim() == 1 else s for s in states)
        for s in states:
            if s.shape[0] != x.shape[0] or s.shape[1] != self.hidden_size:
                raise RuntimeError(f"{name}: hx; expected shape {[x.shape[0], self.hidden_size]}, got {list(s.shape)}")
        return x, states, batched

    def extra_repr(self) -> str:
        s = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            s += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            s += f", nonlinearity={self.nonlinearity}"
        return s


class RNNCell(RNNCellBase):
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh). Shapes: (N, I) or (I), state (N, H) or (H) -> the new state."""

    __constants__ = ["bias", "hidden_size", "input_size", "nonlinearity"]  # noqa: RUF012

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"RNNCell: unknown nonlinearity; expected 'tanh' or 'relu', got {self.nonlinearity!r}")
        x, (h,), batched = self._prepare(input, None if hx is None else (hx,), 1)
        cell = F.rnn_tanh_cell if self.nonlinearity == "tanh" else F.rnn_relu_cell
        h = cell(x, h, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return h if batched else h.squeeze(0)


class LSTMCell(RNNCellBase):
    """One step of an LSTM. Shapes: (N, I) or (I), pair of states (N, H) or (H) -> the new pair (h, c)."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: Any = None) -> tuple[Tensor, Tensor]:
        x, state, batched = self._prepare(input, hx, 2)
        h, c = F.lstm_cell(x, state, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return (h, c) if batched else (h.squeeze(0), c.squeeze(0))


class GRUCell(RNNCellBase):
    """One step of a GRU. Shapes: (N, I) or (I), state (N, H) or (H) -> the new state."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        x, (h,), batched = self._prepare(input, None if hx is None else (hx,), 1)
        h = F.gru_cell(x, h, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return h if batched else h.squeeze(0)
