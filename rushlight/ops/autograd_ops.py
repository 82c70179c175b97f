"""Operations that the tape itself needs: sums to a shape, and gradients through views of a storage."""

from __future__ import annotations

from ._record import native, rl

native(
    "sum_to_size(Tensor self, int[] size) -> Tensor",
    options={"composite": True},
    public="",
    out=False,
    doc="""The sum over the dimensions along which a tensor of this size was broadcast to the shape of self: what
    the gradient of a broadcast needs.

    RuntimeError when size does not broadcast to the shape of self.

    Shapes: self of any shape; the result has shape size.

    >>> torch.ones(2, 3).sum_to_size(1, 3)
    tensor([[2., 2., 2.]])""",
)

# A geometry is a place in a storage: shape, strides and offset, in elements of the tensor's own dtype. The three
# operations below are linear, and each is the adjoint of another.
_GEOMETRY = (
    "int[] base_shape, int[] base_strides, int base_offset, int[] shape, int[] strides, int offset, ScalarType dtype"
)

native(
    f"_geometry_gather(Tensor self, {_GEOMETRY}) -> Tensor",
    batch="loop",
    out=False,
    derivative={
        "self": lambda grad, self_dtype, base_shape, base_strides, base_offset, shape, strides, offset: (
            rl._geometry_scatter(grad, base_shape, base_strides, base_offset, shape, strides, offset, self_dtype)
        )
    },
    doc="What a view (shape, strides, offset, dtype) of a storage shows when the base in it has these values.",
)
native(
    f"_geometry_scatter(Tensor self, {_GEOMETRY}) -> Tensor",
    batch="loop",
    out=False,
    derivative={
        "self": lambda grad, self_dtype, base_shape, base_strides, base_offset, shape, strides, offset: (
            rl._geometry_gather(grad, base_shape, base_strides, base_offset, shape, strides, offset, self_dtype)
        )
    },
    doc="The base (of this dtype) that is zero except where a view shows these values; overlapping values are summed.",
)
native(
    f"_geometry_replace(Tensor self, Tensor? source, {_GEOMETRY}) -> Tensor",
    batch="loop",
    out=False,
    derivative={
        "self": lambda grad, base_shape, base_strides, base_offset, shape, strides, offset, dtype: rl._geometry_replace(
            grad, None, base_shape, base_strides, base_offset, shape, strides, offset, dtype
        ),
        "source": lambda grad, base_shape, base_strides, base_offset, shape, strides, offset, dtype: (
            rl._geometry_gather(grad, base_shape, base_strides, base_offset, shape, strides, offset, dtype)
        ),
    },
    doc="The base with what a view (of this dtype) shows replaced by source, or by zeros.",
)
