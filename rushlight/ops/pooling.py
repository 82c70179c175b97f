"""Pooling."""

from __future__ import annotations

from typing import Any

from ._record import native, rl

# ---------------------------------------------------------------- maximum

native(
    "_max_pool_backward(Tensor grad, Tensor indices, int[] size, int spatial) -> Tensor",
    derivative={"grad": lambda grad_result, indices, spatial: _at_indices(grad_result, indices, spatial)},
    doc="Each gradient added where its maximum was found.",
)


def _at_indices(values: Any, indices: Any, spatial: int) -> Any:
    lead = indices.dim() - spatial
    return values.flatten(lead).gather(lead, indices.flatten(lead)).reshape(indices.shape)


def _max_pool(n: int) -> None:
    arguments = (
        f"Tensor self, int[{n}] kernel_size, int[{n}]? stride=None, int[{n}] padding=0, int[{n}] dilation=1, "
        "bool ceil_mode=False"
    )
    native(
        f"max_pool{n}d_with_indices({arguments}) -> (Tensor, Tensor indices)",
        public="max_pool1d_with_indices" if n == 1 else "",
        method=False,
        out=n > 1,
        implementation="max_pool_with_indices",
        options={"not_differentiable": ("indices",)},
        derivative={"self": lambda grad, self_shape, indices: rl._max_pool_backward(grad, indices, self_shape, n)},
        doc="The largest element of each window and where it stands in the spatial dimensions taken as one.",
    )
    native(f"_max_pool{n}d({arguments}) -> Tensor", implementation="_max_pool", doc="max_pool without indices.")
    doc = f"""The largest element of each window over {n} spatial dimension{"s" * (n > 1)}; NaN counts as largest.

        Shapes: (N, C, *spatial) or (C, *spatial)."""
    native(
        f"max_pool{n}d({arguments}) -> Tensor",
        method=False,
        out=False,
        implementation="max_pool",
        options={"composite": True},
        doc=doc,
    )
    native(
        f"_nn_max_pool{n}d({arguments}, bool return_indices=False) -> Any",
        public=f"nn.functional.max_pool{n}d",
        implementation="max_pool",
        options={"composite": True},
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
    derivative={
        "self": lambda grad, self_shape, spatial, kernel_size, stride, padding, count_include_pad, divisor: (
            rl._avg_pool_backward(grad, self_shape, spatial, kernel_size, stride, padding, count_include_pad, divisor)
        )
    },
    doc="Average pooling whose output has the given size.",
)
native(
    f"_avg_pool_backward(Tensor grad, {_WINDOWS}) -> Tensor",
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
    native(
        f"avg_pool{n}d(Tensor self, int[{n}] kernel_size, int[{n}]? stride=None, int[{n}] padding=0, "
        f"bool ceil_mode=False, bool count_include_pad=True{divisor}) -> Tensor",
        public=f"nn.functional.avg_pool{n}d" + (" avg_pool1d" if n == 1 else ""),
        method=False,
        out=n > 1,
        implementation="avg_pool",
        derivative=derivative,
        doc=f"""The mean of each window over {n} spatial dimension{"s" * (n > 1)}.

        Shapes: (N, C, *spatial) or (C, *spatial).""",
    )


for _n in (1, 2, 3):
    _avg_pool(_n)

# ---------------------------------------------------------------- adaptive

native(
    "_adaptive_avg_pool_map(Tensor self, int[] size, int spatial) -> Tensor",
    derivative={"self": lambda grad, self_shape, spatial: rl._adaptive_avg_pool_backward(grad, self_shape, spatial)},
    doc="Adaptive average pooling whose output has the given size.",
)
native(
    "_adaptive_avg_pool_backward(Tensor grad, int[] size, int spatial) -> Tensor",
    derivative={
        "grad": lambda grad_result, grad_shape, spatial: rl._adaptive_avg_pool_map(grad_result, grad_shape, spatial)
    },
    doc="The transpose of adaptive average pooling; size is that of the pooled input.",
)


def _adaptive(n: int) -> None:
    derivative: Any = {"self": lambda grad, self_shape: rl._adaptive_avg_pool_backward(grad, self_shape, n)}
    doc = f"""Means over windows chosen so that the result has output_size (None keeps a size).

        Shapes: (N, C, *spatial) or (C, *spatial), {n} spatial dimension{"s" * (n > 1)}."""
    native(
        f"adaptive_avg_pool{n}d(Tensor self, int[{n}] output_size) -> Tensor",
        public="adaptive_avg_pool1d nn.functional.adaptive_avg_pool1d" if n == 1 else "",
        method=False,
        out=n > 1,
        implementation="adaptive_avg_pool",
        derivative=derivative,
        doc=doc,
    )
    if n > 1:
        native(
            f"_nn_adaptive_avg_pool{n}d(Tensor self, Any output_size) -> Tensor",
            public=f"nn.functional.adaptive_avg_pool{n}d",
            out=False,
            implementation="adaptive_avg_pool",
            derivative=dict(derivative),
            doc=doc,
        )
    native(
        f"adaptive_max_pool{n}d(Tensor self, int[{n}] output_size) -> (Tensor, Tensor indices)",
        public="adaptive_max_pool1d" if n == 1 else "",
        method=False,
        out=n > 1,
        implementation="adaptive_max_pool",
        options={"not_differentiable": ("indices",)},
        derivative={"self": lambda grad, self_shape, indices: rl._max_pool_backward(grad, indices, self_shape, n)},
        doc="Maxima over windows chosen so that the result has output_size, and where they stand.",
    )
    native(
        f"_nn_adaptive_max_pool{n}d(Tensor self, Any output_size, bool return_indices=False) -> Any",
        public=f"nn.functional.adaptive_max_pool{n}d",
        implementation="_nn_adaptive_max_pool",
        options={"composite": True},
        doc="Maxima over windows chosen so that the result has output_size (None keeps a size).",
    )


for _n in (1, 2, 3):
    _adaptive(_n)
