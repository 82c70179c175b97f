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
    doc="""A tensor whose elements are not initialised: they hold what the memory held.

    dtype is the default float dtype unless given. RuntimeError for a negative size.

    Shapes: the result has the shape size.

    >>> torch.empty(2, 3).shape
    rushlight.Size([2, 3])""",
)
native(
    f"zeros(int[] size, {_OPTIONS}) -> Tensor",
    method=False,
    doc="""A tensor of zeros, of the default float dtype unless dtype is given.

    Shapes: the result has the shape size.

    >>> torch.zeros(2, 3, dtype=torch.int64)
    tensor([[0, 0, 0],
            [0, 0, 0]])""",
)
native(
    f"ones(int[] size, {_OPTIONS}) -> Tensor",
    method=False,
    doc="""A tensor of ones, of the default float dtype unless dtype is given.

    Shapes: the result has the shape size.

    >>> torch.ones(2)
    tensor([1., 1.])""",
)
native(
    f"full(int[] size, Tensor|Scalar fill_value, {_OPTIONS}) -> Tensor",
    batch="loop",
    method=False,
    doc="""A tensor with one value everywhere; its dtype follows from the number unless dtype is given.

    Shapes: the result has the shape size.

    >>> torch.full((2, 2), 7), torch.full((2,), 0.5)
    (tensor([[7, 7],
            [7, 7]]), tensor([0.5000, 0.5000]))""",
)
native(
    f"empty_strided(int[] size, int[] stride, {_OPTIONS}) -> Tensor",
    method=False,
    out=False,
    doc="""A tensor of given sizes and strides (in elements), whose elements are not initialised.

    Shapes: the result has the shape size.

    >>> torch.empty_strided((2, 3), (1, 2)).stride()
    (1, 2)""",
)
_LIKE = f"{_OPTIONS}, MemoryFormat? memory_format=None"
native(
    f"empty_like(Tensor self, {_LIKE}) -> Tensor",
    batch="plain",
    method=False,
    out=False,
    doc="""A tensor of the shape, dtype and (where dense) strides of self, whose elements are not initialised.

    Shapes: self of any shape; the result has the same.

    >>> torch.empty_like(torch.zeros(2, 3).t()).stride()
    (1, 3)""",
)
native(
    f"zeros_like(Tensor self, {_LIKE}) -> Tensor",
    batch="plain",
    method=False,
    out=False,
    doc="""Zeros of the shape and dtype of self.

    Shapes: self of any shape; the result has the same.

    >>> torch.zeros_like(torch.tensor([[1, 2], [3, 4]]))
    tensor([[0, 0],
            [0, 0]])""",
)
native(
    f"ones_like(Tensor self, {_LIKE}) -> Tensor",
    batch="plain",
    method=False,
    out=False,
    doc="""Ones of the shape and dtype of self.

    Shapes: self of any shape; the result has the same.

    >>> torch.ones_like(torch.tensor([0.5, 2.0]))
    tensor([1., 1.])""",
)
native(
    f"full_like(Tensor self, Scalar fill_value, {_LIKE}) -> Tensor",
    batch="plain",
    method=False,
    out=False,
    doc="""One value in the shape and dtype of self, to which it is converted.

    Shapes: self of any shape; the result has the same.

    >>> torch.full_like(torch.tensor([1, 2]), 7.5)
    tensor([7, 7])""",
)
native(
    f"new_empty(Tensor self, int[] size, {_OPTIONS}) -> Tensor",
    batch=_batch.new_of_size,
    public="",
    out=False,
    doc="""A tensor of the dtype of self, whose elements are not initialised.

    Shapes: the result has the shape size, whatever that of self.

    >>> torch.zeros(5, dtype=torch.int8).new_empty(2, 3).dtype
    rushlight.int8""",
)
native(
    f"new_zeros(Tensor self, int[] size, {_OPTIONS}) -> Tensor",
    batch=_batch.new_of_size,
    public="",
    out=False,
    doc="""Zeros of the dtype of self.

    Shapes: the result has the shape size, whatever that of self.

    >>> torch.tensor([5, 6, 7]).new_zeros(2)
    tensor([0, 0])""",
)
native(
    f"new_ones(Tensor self, int[] size, {_OPTIONS}) -> Tensor",
    batch=_batch.new_of_size,
    public="",
    out=False,
    doc="""Ones of the dtype of self.

    Shapes: the result has the shape size, whatever that of self.

    >>> torch.tensor([True]).new_ones(2)
    tensor([True, True])""",
)
native(
    f"new_full(Tensor self, int[] size, Scalar fill_value, {_OPTIONS}) -> Tensor",
    batch=_batch.new_of_size,
    public="",
    out=False,
    doc="""One value in the dtype of self, to which it is converted.

    Shapes: the result has the shape size, whatever that of self.

    >>> torch.tensor([5, 6, 7]).new_full((2,), 1.5)
    tensor([1, 1])""",
)
native(
    f"new_empty_strided(Tensor self, int[] size, int[] stride, {_OPTIONS}) -> Tensor",
    batch="loop",
    public="",
    out=False,
    doc="""A tensor of the dtype of self with given sizes and strides (in elements), whose elements are not
    initialised.

    Shapes: the result has the shape size, whatever that of self.

    >>> torch.zeros(5).new_empty_strided((2, 3), (1, 2)).stride()
    (1, 2)""",
)
native(
    f"arange(Scalar end, {_OPTIONS}) -> Tensor",
    method=False,
    doc="""Evenly spaced numbers, step apart, from start (0 by default) up to but without end.

    int64 when start, end and step are integers, else the default float dtype. With a fractional step rounding decides
    whether a number at end is left out; linspace counts instead. RuntimeError for a step of 0 or of the wrong sign.

    Shapes: the result has ceil((end - start) / step) elements.

    >>> torch.arange(4)
    tensor([0, 1, 2, 3])
    >>> torch.arange(1, 2, 0.25)
    tensor([1.0000, 1.2500, 1.5000, 1.7500])
    >>> torch.arange(5, 0, -2)
    tensor([5, 3, 1])""",
)
native(
    f"arange.start(Scalar start, Scalar end, {_OPTIONS}) -> Tensor",
    method=False,
)
native(
    f"arange.start_step(Scalar start, Scalar end, Scalar step, {_OPTIONS}) -> Tensor",
    method=False,
)
native(
    f"linspace(Tensor|Scalar start, Tensor|Scalar end, int steps, {_OPTIONS}) -> Tensor",
    batch="loop",
    method=False,
    formula="out_i = start + i (end - start) / (steps - 1)",
    doc="""Evenly spaced numbers from start to end, both included.

    One step gives start. RuntimeError for negative steps.

    Shapes: the result has steps elements, of the default float dtype unless dtype is given.

    >>> torch.linspace(0, 1, 5)
    tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])""",
)
native(
    f"logspace(Tensor|Scalar start, Tensor|Scalar end, int steps, float base=10.0, {_OPTIONS}) -> Tensor",
    batch="loop",
    method=False,
    formula="out_i = base^(start + i (end - start) / (steps - 1))",
    doc="""Numbers whose logarithms to a base are evenly spaced, from base^start to base^end, both included.

    Shapes: the result has steps elements, of the default float dtype unless dtype is given.

    >>> torch.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    >>> torch.logspace(0, 3, 4, base=2)
    tensor([1., 2., 4., 8.])""",
)
native(
    f"empty_permuted(int[] size, int[] physical_layout, {_OPTIONS}) -> Tensor",
    method=False,
    out=False,
    doc="""A dense tensor whose elements are not initialised, laid out in memory in the order of physical_layout,
    outermost first.

    RuntimeError when physical_layout is no order of the dimensions.

    Shapes: the result has the shape size.

    >>> torch.empty_permuted((2, 3, 5), (0, 2, 1)).stride()
    (15, 1, 3)""",
)
for _name, _word, _shown in (
    ("tril_indices", "below", ("[0, 1, 1]", "[0, 0, 1]")),
    ("triu_indices", "above", ("[0, 0, 0, 1, 1]", "[0, 1, 2, 1, 2]")),
):
    native(
        f"{_name}(int row, int col, int offset=0, {_OPTIONS}) -> Tensor",
        method=False,
        out=False,
        doc=f"""The row and column numbers of a matrix's elements on and {_word} a diagonal, row by row.

    offset > 0 names a diagonal above the main one, offset < 0 one below. int64 unless dtype is given.

    Shapes: row and col are the sizes of the matrix; the result is (2, n) for n elements.

    >>> torch.{_name}(2, 3)
    tensor([{_shown[0]},
            {_shown[1]}])""",
    )
native(
    f"eye(int n, {_OPTIONS}) -> Tensor",
    method=False,
    formula="out_ij = 1 if i = j else 0",
    doc="""The identity matrix.

    Shapes: the result is (n, n), or (n, m) when m is given.

    >>> torch.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    >>> torch.eye(2, 3, dtype=torch.int64)
    tensor([[1, 0, 0],
            [0, 1, 0]])""",
)
native(
    f"eye.m(int n, int m, {_OPTIONS}) -> Tensor",
    method=False,
)

native(
    "fill.Tensor(Tensor self, Tensor value) -> Tensor",
    batch="pointwise",
    inplace=True,
    out=False,
    method=False,
    public="fill Tensor.fill",
    derivative={"self": lambda grad: rl.zeros_like(grad), "value": lambda grad: grad.sum()},
    doc="""One value everywhere in the shape and dtype of self; fill_ writes it into self.

    Shapes: self of any shape, value a number or a 0-dim tensor; the result has the shape of self.

    >>> torch.fill(torch.tensor([1, 2, 3]), 7)
    tensor([7, 7, 7])
    >>> x = torch.zeros(2, 2)
    >>> _ = x[0].fill_(5.0)
    >>> x
    tensor([[5., 5.],
            [0., 0.]])""",
)
native(
    "fill(Tensor self, Scalar value) -> Tensor",
    batch="plain",
    inplace=True,
    out=False,
    method=False,
    public="fill Tensor.fill",
    derivative={"self": lambda grad: rl.zeros_like(grad)},
)
native(
    "zero(Tensor self) -> Tensor",
    batch="plain",
    inplace=True,
    out=False,
    method=False,
    public="zero Tensor.zero",
    derivative={"self": lambda grad: rl.zeros_like(grad)},
    doc="""Zeros in the shape and dtype of self; zero_ writes them into self.

    Shapes: self of any shape; the result has the same.

    >>> torch.tensor([1, 2, 3]).zero_()
    tensor([0, 0, 0])""",
)
