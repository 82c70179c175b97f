"""Tensors from sizes and numbers."""

from __future__ import annotations

from . import _batch
from ._record import native, rl

_OPTIONS = (
    "*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, "
    "bool requires_grad=False"
)

native(
    f"empty(int[] size, {_OPTIONS}, MemoryFormat? memory_format=None) -> Tensor",
    method=False,
    doc="A tensor whose elements are not initialised.",
)
native(f"zeros(int[] size, {_OPTIONS}) -> Tensor", method=False, doc="A tensor of zeros.")
native(f"ones(int[] size, {_OPTIONS}) -> Tensor", method=False, doc="A tensor of ones.")
native(
    f"full(int[] size, Tensor|Scalar fill_value, {_OPTIONS}) -> Tensor",
    method=False,
    doc="A tensor with one value everywhere.",
)
native(
    f"empty_strided(int[] size, int[] stride, {_OPTIONS}) -> Tensor",
    method=False,
    out=False,
    doc="A tensor with given strides, not initialised.",
)
_LIKE = f"{_OPTIONS}, MemoryFormat? memory_format=None"
native(
    f"empty_like(Tensor self, {_LIKE}) -> Tensor",
    batch="plain",
    method=False,
    out=False,
    doc="An uninitialised tensor of the input's shape and dtype.",
)
native(
    f"zeros_like(Tensor self, {_LIKE}) -> Tensor",
    batch="plain",
    method=False,
    out=False,
    doc="Zeros of the input's shape and dtype.",
)
native(
    f"ones_like(Tensor self, {_LIKE}) -> Tensor",
    batch="plain",
    method=False,
    out=False,
    doc="Ones of the input's shape and dtype.",
)
native(
    f"full_like(Tensor self, Scalar fill_value, {_LIKE}) -> Tensor",
    batch="plain",
    method=False,
    out=False,
    doc="One value in the input's shape and dtype.",
)
native(
    f"new_empty(Tensor self, int[] size, {_OPTIONS}) -> Tensor",
    batch=_batch.new_of_size,
    public="",
    out=False,
    doc="An uninitialised tensor of the input's dtype.",
)
native(
    f"new_zeros(Tensor self, int[] size, {_OPTIONS}) -> Tensor",
    batch=_batch.new_of_size,
    public="",
    out=False,
    doc="Zeros of the input's dtype.",
)
native(
    f"new_ones(Tensor self, int[] size, {_OPTIONS}) -> Tensor",
    batch=_batch.new_of_size,
    public="",
    out=False,
    doc="Ones of the input's dtype.",
)
native(
    f"new_full(Tensor self, int[] size, Scalar fill_value, {_OPTIONS}) -> Tensor",
    batch=_batch.new_of_size,
    public="",
    out=False,
    doc="One value in the input's dtype.",
)
native(
    f"new_empty_strided(Tensor self, int[] size, int[] stride, {_OPTIONS}) -> Tensor",
    public="",
    out=False,
    doc="An uninitialised tensor of the input's dtype with given strides.",
)
native(f"arange(Scalar end, {_OPTIONS}) -> Tensor", method=False, doc="0, 1, ... below end.")
native(
    f"arange.start(Scalar start, Scalar end, {_OPTIONS}) -> Tensor",
    method=False,
    doc="start, start + 1, ... below end.",
)
native(
    f"arange.start_step(Scalar start, Scalar end, Scalar step, {_OPTIONS}) -> Tensor",
    method=False,
    doc="start, start + step, ... before end.",
)
native(
    f"linspace(Tensor|Scalar start, Tensor|Scalar end, int steps, {_OPTIONS}) -> Tensor",
    method=False,
    doc="steps values from start to end, evenly spaced, both included.",
)
native(
    f"logspace(Tensor|Scalar start, Tensor|Scalar end, int steps, float base=10.0, {_OPTIONS}) -> Tensor",
    method=False,
    doc="base to the powers of linspace.",
)
native(
    f"empty_permuted(int[] size, int[] physical_layout, {_OPTIONS}) -> Tensor",
    method=False,
    out=False,
    doc="A dense tensor, not initialised, whose dimensions lie in memory in the order of physical_layout, the "
    "outermost first.",
)
for _name, _word in (("tril_indices", "below"), ("triu_indices", "above")):
    native(
        f"{_name}(int row, int col, int offset=0, {_OPTIONS}) -> Tensor",
        method=False,
        out=False,
        doc=f"The coordinates of a row x col matrix's elements on and {_word} a diagonal, as two rows.",
    )
native(f"eye(int n, {_OPTIONS}) -> Tensor", method=False, doc="The identity matrix.")
native(f"eye.m(int n, int m, {_OPTIONS}) -> Tensor", method=False, doc="n x m with ones on the diagonal.")

native(
    "fill.Tensor(Tensor self, Tensor value) -> Tensor",
    batch="pointwise",
    inplace=True,
    out=False,
    method=False,
    public="fill Tensor.fill",
    derivative={"self": lambda grad: rl.zeros_like(grad), "value": lambda grad: grad.sum()},
    doc="The input's shape with the value of a 0-dim tensor.",
)
native(
    "fill(Tensor self, Scalar value) -> Tensor",
    batch="plain",
    inplace=True,
    out=False,
    method=False,
    public="fill Tensor.fill",
    derivative={"self": lambda grad: rl.zeros_like(grad)},
    doc="The input's shape with one value.",
)
native(
    "zero(Tensor self) -> Tensor",
    batch="plain",
    inplace=True,
    out=False,
    method=False,
    public="zero Tensor.zero",
    derivative={"self": lambda grad: rl.zeros_like(grad)},
    doc="Zeros in the input's shape.",
)
