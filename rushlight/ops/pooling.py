"""Pooling."""

from __future__ import annotations

from typing import Any

from ._batch_network import pooling, pooling_of_size
from ._record import native, rl


def _row(n: int) -> tuple[str, str]:
    """For the examples: the shape of a row of 6 numbers in n dimensions, and a window of 3 along it."""
    ones = "1, " * (n - 1)
    return f"1, {ones}6", f"({ones}3)" if n > 1 else "3"


# ---------------------------------------------------------------- maximum

native(
    "_max_pool_backward(Tensor grad, Tensor indices, int[] size, int spatial) -> Tensor",
    order="grad indices",
    batch=pooling_of_size,
    derivative={"grad": lambda grad_result, indices, spatial: _at_indices(grad_result, indices, spatial)},
    doc="Each gradient added where its maximum was found.",
)


def _at_indices(values: Any, indices: Any, spatial: int) -> Any:
    lead = indices.dim() - spatial
    return values.flatten(lead).gather(lead, indices.flatten(lead)).reshape(indices.shape)


_MAXIMUM = "out[p] = max over k of self[stride * p + dilation * k - padding], in every spatial dimension"


def _max_pool(n: int) -> None:
    arguments = (
        f"Tensor self, int[{n}] kernel_size, int[{n}]? stride=None, int[{n}] padding=0, int[{n}] dilation=1, "
        "bool ceil_mode=False"
    )
    row, window = _row(n)
    dimensions = f"{n} spatial dimension" + "s" * (n > 1)
    shapes = f"""Shapes: (N, C, *spatial) or (C, *spatial), {dimensions}; in the result each spatial size L is
        floor((L + 2 padding - dilation (kernel_size - 1) - 1) / stride) + 1, with ceil_mode the ceiling instead of the
        floor, unless the last window would begin in the padding on the right."""
    native(
        f"max_pool{n}d_with_indices({arguments}) -> (Tensor, Tensor indices)",
        order="self",
        public="max_pool1d_with_indices" if n == 1 else "",
        method=False,
        out=n > 1,
        implementation="max_pool_with_indices",
        batch=pooling(n),
        options={"not_differentiable": ("indices",)},
        derivative={"self": lambda grad, self_shape, indices: rl._max_pool_backward(grad, indices, self_shape, n)},
        formula=_MAXIMUM,
        doc=f"""The largest element of each window, and where it stands in the spatial dimensions taken as one.

        {shapes}
        The indices have the shape of the result.

        >>> x = torch.tensor([1.0, 5.0, 2.0, 0.0, 4.0, 3.0]).reshape({row})
        >>> values, indices = torch.nn.functional.max_pool{n}d(x, {window}, return_indices=True)
        >>> values.flatten(), indices.flatten()
        (tensor([5., 4.]), tensor([1, 4]))""",
    )
    native(
        f"_max_pool{n}d({arguments}) -> Tensor",
        order="self",
        implementation="_max_pool",
        batch=pooling(n),
        doc="max_pool without indices.",
    )
    doc = f"""The largest element of each window over {dimensions}; NaN counts as largest.

        stride is kernel_size by default; the padding counts as minus infinity. With return_indices (of
        nn.functional.max_pool{n}d) the result is a pair: the values, and where they stand in the spatial dimensions
        taken as one. RuntimeError for a padding of more than half the window, and when no window fits.

        {shapes}

        >>> x = torch.tensor([1.0, 5.0, 2.0, 0.0, 4.0, 3.0]).reshape({row})
        >>> torch.nn.functional.max_pool{n}d(x, {window}).flatten()
        tensor([5., 4.])
        >>> torch.nn.functional.max_pool{n}d(x, {window}, stride=1).flatten()
        tensor([5., 5., 4., 4.])"""
    native(
        f"max_pool{n}d({arguments}) -> Tensor",
        method=False,
        out=False,
        implementation="max_pool",
        options={"composite": True},
        formula=_MAXIMUM,
        doc=doc,
    )
    native(
        f"_nn_max_pool{n}d({arguments}, bool return_indices=False) -> Any",
        public=f"nn.functional.max_pool{n}d",
        implementation="max_pool",
        options={"composite": True},
        formula=_MAXIMUM,
        doc=doc,
    )


for _n in (1, 2, 3):
    _max_pool(_n)

# ---------------------------------------------------------------- averages

_WINDOWS = (
    "int[] size, int spatial, int[3] kernel_size, int[3]? stride, int[3] padding, bool count_include_pad, int? divisor"
)

native(
    f"_avg_pool_map(Tensor self, {_WINDOWS}) -> Tensor",
    order="self",
    batch=pooling_of_size,
    derivative={
        "self": lambda grad, self_shape, spatial, kernel_size, stride, padding, count_include_pad, divisor: (
            rl._avg_pool_backward(grad, self_shape, spatial, kernel_size, stride, padding, count_include_pad, divisor)
        )
    },
    doc="Average pooling whose output has the given size.",
)
native(
    f"_avg_pool_backward(Tensor grad, {_WINDOWS}) -> Tensor",
    order="grad",
    batch=pooling_of_size,
    derivative={
        "grad": lambda grad_result, grad_shape, spatial, kernel_size, stride, padding, count_include_pad, divisor: (
            rl._avg_pool_map(grad_result, grad_shape, spatial, kernel_size, stride, padding, count_include_pad, divisor)
        )
    },
    doc="The transpose of average pooling; size is that of the pooled input.",
)


def _avg_pool(n: int) -> None:
    divisor = "" if n == 1 else ", int? divisor_override=None"
    derivative: Any = {
        "self": lambda grad, self_shape, kernel_size, stride, padding, count_include_pad: rl._avg_pool_backward(
            grad, self_shape, n, kernel_size, stride, padding, count_include_pad, None
        )
    }
    if n > 1:
        derivative = {
            "self": lambda grad, self_shape, kernel_size, stride, padding, count_include_pad, divisor_override: (
                rl._avg_pool_backward(
                    grad, self_shape, n, kernel_size, stride, padding, count_include_pad, divisor_override
                )
            )
        }
    row, window = _row(n)
    padding = window.replace("1", "0").replace("3", "1")
    override = "; divisor_override is divided by instead" if n > 1 else ""
    native(
        f"avg_pool{n}d(Tensor self, int[{n}] kernel_size, int[{n}]? stride=None, int[{n}] padding=0, "
        f"bool ceil_mode=False, bool count_include_pad=True{divisor}) -> Tensor",
        order="self" if n == 2 else "",
        public=f"nn.functional.avg_pool{n}d" + (" avg_pool1d" if n == 1 else ""),
        method=False,
        out=n > 1,
        implementation="avg_pool",
        batch=pooling(n),
        derivative=derivative,
        formula="out[p] = mean over k of self[stride * p + k - padding], in every spatial dimension",
        doc=f"""The mean of each window over {n} spatial dimension{"s" * (n > 1)}.

        stride is kernel_size by default. The padding is zeros, which count in the number of elements unless
        count_include_pad is False{override}.
        RuntimeError for a padding of more than half the window, and when no window fits.

        Shapes: (N, C, *spatial) or (C, *spatial); in the result each spatial size L is
        floor((L + 2 padding - kernel_size) / stride) + 1, with ceil_mode the ceiling instead of the floor, unless the
        last window would begin in the padding on the right.

        >>> x = torch.tensor([1.0, 5.0, 3.0, 0.0, 5.0, 4.0]).reshape({row})
        >>> torch.nn.functional.avg_pool{n}d(x, {window}).flatten()
        tensor([3., 3.])
        >>> torch.nn.functional.avg_pool{n}d(x, {window}, padding={padding}).flatten()
        tensor([2.0000, 2.6667])
        >>> torch.nn.functional.avg_pool{n}d(x, {window}, None, {padding}, count_include_pad=False).flatten()
        tensor([3.0000, 2.6667])""",
    )


for _n in (1, 2, 3):
    _avg_pool(_n)

# ---------------------------------------------------------------- adaptive

native(
    "_adaptive_avg_pool_map(Tensor self, int[] size, int spatial) -> Tensor",
    order="self",
    batch=pooling_of_size,
    derivative={"self": lambda grad, self_shape, spatial: rl._adaptive_avg_pool_backward(grad, self_shape, spatial)},
    doc="Adaptive average pooling whose output has the given size.",
)
native(
    "_adaptive_avg_pool_backward(Tensor grad, int[] size, int spatial) -> Tensor",
    order="grad",
    batch=pooling_of_size,
    derivative={
        "grad": lambda grad_result, grad_shape, spatial: rl._adaptive_avg_pool_map(grad_result, grad_shape, spatial)
    },
    doc="The transpose of adaptive average pooling; size is that of the pooled input.",
)


def _adaptive(n: int) -> None:
    derivative: Any = {"self": lambda grad, self_shape: rl._adaptive_avg_pool_backward(grad, self_shape, n)}
    row, _ = _row(n)
    size = "(" + "1, " * (n - 1) + "2)" if n > 1 else "2"
    windows = """Window p of an input size L and an output size M reaches from floor(p L / M) to ceil((p + 1) L / M), so
        windows overlap where M does not divide L. output_size is M, a number for all dimensions or one for each;
        functions of nn.functional with "Any output_size" keep a size where it is None."""
    dimensions = f"{n} spatial dimension" + "s" * (n > 1)
    shapes = f"Shapes: (N, C, *spatial) or (C, *spatial), {dimensions}; the result has output_size in their place."
    example = f">>> x = torch.tensor([1.0, 5.0, 3.0, 0.0, 5.0, 4.0]).reshape({row})"
    doc = f"""The means over windows laid out so that the result has output_size.

        {windows}

        {shapes}

        {example}
        >>> torch.nn.functional.adaptive_avg_pool{n}d(x, {size}).flatten()
        tensor([3., 3.])
        >>> torch.nn.functional.adaptive_avg_pool{n}d(x, {size.replace("2", "4")}).flatten()
        tensor([3.0000, 4.0000, 2.5000, 4.5000])"""
    mean = "out[p] = mean of self[floor(p L / M) : ceil((p + 1) L / M)], in every spatial dimension"
    maximum = mean.replace("mean", "max")
    native(
        f"adaptive_avg_pool{n}d(Tensor self, int[{n}] output_size) -> Tensor",
        order="self",
        public="adaptive_avg_pool1d nn.functional.adaptive_avg_pool1d" if n == 1 else "",
        method=False,
        out=n > 1,
        implementation="adaptive_avg_pool",
        batch=pooling(n),
        derivative=derivative,
        formula=mean,
        doc=doc,
    )
    if n > 1:
        native(
            f"_nn_adaptive_avg_pool{n}d(Tensor self, Any output_size) -> Tensor",
            order="self",
            public=f"nn.functional.adaptive_avg_pool{n}d",
            out=False,
            implementation="adaptive_avg_pool",
            batch=pooling(n),
            derivative=dict(derivative),
            formula=mean,
            doc=doc,
        )
    native(
        f"adaptive_max_pool{n}d(Tensor self, int[{n}] output_size) -> (Tensor, Tensor indices)",
        order="self",
        public="adaptive_max_pool1d" if n == 1 else "",
        method=False,
        out=n > 1,
        implementation="adaptive_max_pool",
        batch=pooling(n),
        options={"not_differentiable": ("indices",)},
        derivative={"self": lambda grad, self_shape, indices: rl._max_pool_backward(grad, indices, self_shape, n)},
        formula=maximum,
        doc=f"""The maxima over windows laid out so that the result has output_size, and where they stand.

        {windows}
        An index counts the elements of the spatial dimensions taken as one.

        {shapes}

        {example}
        >>> values, indices = torch.nn.functional.adaptive_max_pool{n}d(x, {size}, return_indices=True)
        >>> values.flatten(), indices.flatten()
        (tensor([5., 5.]), tensor([1, 4]))""",
    )
    native(
        f"_nn_adaptive_max_pool{n}d(Tensor self, Any output_size, bool return_indices=False) -> Any",
        public=f"nn.functional.adaptive_max_pool{n}d",
        implementation="_nn_adaptive_max_pool",
        options={"composite": True},
        formula=maximum,
        doc=f"""The maxima over windows laid out so that the result has output_size.

        {windows}
        With return_indices the result is a pair: the values, and where they stand in the spatial dimensions taken as
        one.

        {shapes}

        {example}
        >>> torch.nn.functional.adaptive_max_pool{n}d(x, {size}).flatten()
        tensor([5., 5.])""",
    )


for _n in (1, 2, 3):
    _adaptive(_n)
