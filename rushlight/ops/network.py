"""Convolutions, and softmax with its logarithm."""

from __future__ import annotations

import math
from typing import Any

from . import _batch_network as _batch
from ._record import composite, native, rl

# ---------------------------------------------------------------- convolutions

# Three bilinear maps that express each other's derivatives: `_conv_map(input, weight)`,
# `_conv_grad_input(grad, weight)` and `_conv_grad_weight(grad, input)`. None of them conjugates.
_GEOMETRY = "int[] size, int[3] stride, int[3] padding, int[3] dilation, int groups"

native(
    f"_conv_map(Tensor input, Tensor weight, {_GEOMETRY}) -> Tensor",
    order="input weight",
    flops=lambda result, weight: 2 * result * math.prod(weight[1:]),
    batch=_batch.convolution_map,
    derivative={
        "input": lambda grad, weight, input_shape, stride, padding, dilation, groups: rl._conv_grad_input(
            grad, rl.conj(weight), input_shape, stride, padding, dilation, groups
        ),
        "weight": lambda grad, input, weight_shape, stride, padding, dilation, groups: rl._conv_grad_weight(
            grad, rl.conj(input), weight_shape, stride, padding, dilation, groups
        ),
    },
    doc="The convolution whose output has the given size.",
)
native(
    f"_conv_grad_input(Tensor grad, Tensor weight, {_GEOMETRY}) -> Tensor",
    order="grad weight",
    flops=lambda grad, weight: 2 * math.prod(grad) * math.prod(weight[1:]),
    batch=_batch.convolution_map,
    derivative={
        "grad": lambda grad_result, weight, grad_shape, stride, padding, dilation, groups: rl._conv_map(
            grad_result, rl.conj(weight), grad_shape, stride, padding, dilation, groups
        ),
        "weight": lambda grad_result, grad, weight_shape, stride, padding, dilation, groups: rl._conv_grad_weight(
            rl.conj(grad), grad_result, weight_shape, stride, padding, dilation, groups
        ),
    },
    doc="The transpose of `_conv_map` as a map of its input, whose size is given.",
)
native(
    f"_conv_grad_weight(Tensor grad, Tensor input, {_GEOMETRY}) -> Tensor",
    order="grad input",
    flops=lambda result, grad: 2 * math.prod(grad) * (result // grad[1]),
    batch=_batch.convolution_weight,
    derivative={
        "grad": lambda grad_result, input, grad_shape, stride, padding, dilation, groups: rl._conv_map(
            rl.conj(input), grad_result, grad_shape, stride, padding, dilation, groups
        ),
        "input": lambda grad_result, grad, input_shape, stride, padding, dilation, groups: rl._conv_grad_input(
            rl.conj(grad), grad_result, input_shape, stride, padding, dilation, groups
        ),
    },
    doc="The transpose of `_conv_map` as a map of its weight, whose size is given.",
)
native(
    "_conv_grad_bias(Tensor grad, int spatial) -> Tensor",
    batch=_batch.convolution_bias,
    derivative={"grad": lambda grad_result, grad_shape, spatial: _to_channels(grad_result, spatial).expand(grad_shape)},
    doc="Sums over all dimensions but the channels.",
)


def _to_channels(values: Any, spatial: int) -> Any:
    """One value per channel, against `spatial` trailing dimensions."""
    return rl.reshape(values, [-1] + [1] * spatial)


def _conv(spatial: int) -> None:
    n = spatial
    name = f"conv{n}d"
    dimensions = f"{n} spatial dimension{'s' * (n > 1)}"
    ones = "1, " * (n - 1)  # the examples are rows of numbers in n dimensions
    native(
        f"{name}(Tensor input, Tensor weight, Tensor? bias=None, int[{n}] stride=1, int[{n}] padding=0, "
        f"int[{n}] dilation=1, int groups=1) -> Tensor",
        order="input weight",
        flops=lambda result, weight: 2 * result * math.prod(weight[1:]),
        public=f"{name} nn.functional.{name}",
        method=False,
        out=False,
        batch=_batch.convolution(groups_at=3),
        aten=lambda input, weight, bias, stride, padding, dilation, groups: (
            "convolution",
            (input, weight, bias, stride, padding, dilation, False, (0,) * n, groups),
        ),
        derivative={
            "input": lambda grad, weight, input_shape, stride, padding, dilation, groups: rl._conv_grad_input(
                grad, rl.conj(weight), input_shape, stride, padding, dilation, groups
            ),
            "weight": lambda grad, input, weight_shape, stride, padding, dilation, groups: rl._conv_grad_weight(
                grad, rl.conj(input), weight_shape, stride, padding, dilation, groups
            ),
            "bias": lambda grad: rl._conv_grad_bias(grad, n),
        },
        formula="out[o, p] = bias[o] + sum over c, k of weight[o, c, k] input[c, stride * p + dilation * k - padding]",
        doc=f"""The convolution over {dimensions}. The kernel is not flipped: cross-correlation in mathematics.

        The input is padded with zeros. padding='same' gives a result of the size of the input (with stride 1), 'valid'
        means none. Of the C channels and O results, both divided into groups, each group sees its own alone.
        RuntimeError when sizes or dtypes do not fit.

        Shapes: input (N, C, *spatial) or (C, *spatial), weight (O, C / groups, *kernel), bias (O); the result (N, O,
        *) or (O, *), where size L becomes floor((L + 2 padding - dilation (kernel - 1) - 1) / stride) + 1.

        >>> x = torch.tensor([1.0, 2.0, 4.0, 8.0]).reshape(1, 1, {ones}4)
        >>> weight = torch.tensor([-1.0, 1.0]).reshape(1, 1, {ones}2)
        >>> torch.nn.functional.{name}(x, weight).flatten()
        tensor([1., 2., 4.])
        >>> torch.nn.functional.{name}(x, weight, stride=2).flatten()
        tensor([1., 4.])
        >>> torch.nn.functional.{name}(x, weight, padding="same").flatten()
        tensor([ 1.,  2.,  4., -8.])""",
    )

    @composite(
        f"{name}.padding(Tensor input, Tensor weight, Tensor? bias=None, int[{n}] stride=1, str padding='valid', "
        f"int[{n}] dilation=1, int groups=1) -> Tensor",
        public=f"{name} nn.functional.{name}",
        method=False,
    )
    def with_named_padding(
        input: Any, weight: Any, bias: Any, stride: Any, padding: str, dilation: Any, groups: int
    ) -> Any:
        conv = getattr(rl, name)
        if padding == "valid":
            return conv(input, weight, bias, stride, 0, dilation, groups)
        if padding != "same":
            raise RuntimeError(f"{name}: Invalid padding string: '{padding}'; expected 'valid' or 'same'")
        strides = stride if isinstance(stride, tuple) else (stride,) * n
        dilations = dilation if isinstance(dilation, tuple) else (dilation,) * n
        if any(s != 1 for s in strides):
            raise RuntimeError(
                f"{name}: padding='same' is not supported for strided convolutions, got stride={strides}"
            )
        if len(dilations) == 1:
            dilations = dilations * n
        if weight.dim() != n + 2:
            return conv(input, weight, bias, stride, 0, dilation, groups)  # which says what is wrong
        total = [d * (k - 1) for d, k in zip(dilations, weight.shape[2:], strict=True)]
        widths = [w for t in reversed(total) for w in (0, t % 2)]
        if any(widths):
            # an odd total has one more on the right
            input = rl.nn.functional.pad(input, widths)
        return conv(input, weight, bias, stride, [t // 2 for t in total], dilation, groups)

    transposed = f"conv_transpose{n}d"
    native(
        f"{transposed}(Tensor input, Tensor weight, Tensor? bias=None, int[{n}] stride=1, int[{n}] padding=0, "
        f"int[{n}] output_padding=0, int groups=1, int[{n}] dilation=1) -> Tensor",
        order="input weight",
        flops=lambda input, weight: 2 * math.prod(input) * math.prod(weight[1:]),
        public=f"{transposed} nn.functional.{transposed}",
        method=False,
        out=False,
        batch=_batch.convolution(groups_at=3),
        aten=lambda input, weight, bias, stride, padding, output_padding, groups, dilation: (
            "convolution",
            (input, weight, bias, stride, padding, dilation, True, output_padding, groups),
        ),
        derivative={
            "input": lambda grad, weight, input_shape, stride, padding, dilation, groups: rl._conv_map(
                grad, rl.conj(weight), input_shape, stride, padding, dilation, groups
            ),
            "weight": lambda grad, input, weight_shape, stride, padding, dilation, groups: rl._conv_grad_weight(
                rl.conj(input), grad, weight_shape, stride, padding, dilation, groups
            ),
            "bias": lambda grad: rl._conv_grad_bias(grad, n),
        },
        formula="out[o, q] = bias[o] + sum of input[c, p] weight[c, o, k], q = stride * p + dilation * k - padding",
        doc=f"""The transposed convolution over {dimensions}: the gradient of a convolution by its input.

        Every element of the input adds its multiple of the kernel to the result. padding takes as much away on every
        side; output_padding, less than stride or dilation, adds at the end, and so chooses among the sizes that a
        convolution takes to that of the input. RuntimeError when sizes or dtypes do not fit.

        Shapes: input (N, C, *spatial) or (C, *spatial), weight (C, O / groups, *kernel), bias (O); the result (N, O,
        *) or (O, *), where size L becomes (L - 1) stride - 2 padding + dilation (kernel - 1) + output_padding + 1.

        >>> x = torch.tensor([1.0, 10.0]).reshape(1, 1, {ones}2)
        >>> weight = torch.tensor([1.0, 2.0]).reshape(1, 1, {ones}2)
        >>> torch.nn.functional.{transposed}(x, weight).flatten()
        tensor([ 1., 12., 20.])
        >>> torch.nn.functional.{transposed}(x, weight, stride=2).flatten()
        tensor([ 1.,  2., 10., 20.])""",
    )


for _n in (1, 2, 3):
    _conv(_n)

# ---------------------------------------------------------------- softmax


def _softmax_derivative(name: str) -> Any:
    backward = f"_{name}_backward"
    return {
        "self": lambda grad, result, dim, self_dtype: getattr(rl, backward)(grad, result, dim, self_dtype),
    }


def _softmax_second(grad_result: Any, grad: Any, result: Any, dim: Any) -> Any:
    """y * (g - sum(g y)) by y."""
    d = _softmax_dim(dim, result.dim())
    inner = (grad * result).sum(d, True)
    outer = (grad_result * result).sum(d, True)
    return grad_result * (grad - inner) - grad * outer


def _real(grad: Any) -> Any:
    """Of the gradient of a complex input that was converted to a real dtype."""
    return grad.real if grad.is_complex() else grad


def _softmax_dim(dim: Any, ndim: int) -> int:
    if dim is None:
        return 0 if ndim in (0, 1, 3) else 1
    return int(dim)


for _name, _word, _formula, _shown in (
    (
        "softmax",
        "Exponentials along a dimension divided by their sum, so that they are probabilities",
        "out_i = exp(x_i) / sum_j exp(x_j)",
        ("[0.2500, 0.7500]", "[1., 0.]"),
    ),
    (
        "log_softmax",
        "The logarithm of softmax along a dimension, which does not underflow",
        "out_i = x_i - log(sum_j exp(x_j))",
        ("[-1.3863, -0.2877]", "[    0., -2000.]"),
    ),
):
    _about = f"""dtype converts the input first.

    Shapes: self of any shape; the result has the same.

    >>> torch.tensor([1.0, 3.0]).log().{_name}(0)
    tensor({_shown[0]})
    >>> torch.nn.functional.{_name}(torch.tensor([1000.0, -1000.0]), dim=0)
    tensor({_shown[1]})"""
    native(
        f"{_name}(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
        public=f"{_name} special.{_name}",
        aten=f"_{_name}",
        derivative=_softmax_derivative(_name),
        formula=_formula,
        doc=f"{_word}.\n\n    {_about}",
    )
    native(
        f"_nn_{_name}(Tensor self, int? dim=None, int _stacklevel=3, ScalarType? dtype=None) -> Tensor",
        public=f"nn.functional.{_name}",
        implementation=_name,
        aten=f"_{_name}",
        out=False,
        derivative=_softmax_derivative(_name),
        formula=_formula,
        doc=f"""{_word}.

    Without dim it is 0 for 0, 1 or 3 dimensions and otherwise 1, with a warning. {_about}""",
    )
native(
    "_softmax_backward(Tensor grad, Tensor result, int? dim, ScalarType dtype) -> Tensor",
    batch="dims",
    derivative={
        "grad": lambda grad_result, result, dim, grad_dtype: rl._softmax_backward(
            _real(grad_result), result, dim, grad_dtype
        ),
        "result": lambda grad_result, grad, result, dim: _softmax_second(_real(grad_result), grad, result, dim),
    },
    doc="The gradient of softmax from that of its result.",
)
native(
    "_log_softmax_backward(Tensor grad, Tensor result, int? dim, ScalarType dtype) -> Tensor",
    batch="dims",
    derivative={
        "grad": lambda grad_result, result, dim: (
            _real(grad_result) - (_real(grad_result) * result.exp()).sum(_softmax_dim(dim, result.dim()), True)
        ),
        "result": lambda grad_result, grad, result, dim: (
            -_real(grad_result) * result.exp() * grad.sum(_softmax_dim(dim, result.dim()), True)
        ),
    },
    doc="The gradient of log_softmax from that of its result.",
)
