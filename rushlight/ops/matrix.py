"""Matrix products and what is made of them."""

from __future__ import annotations

from typing import Any

from . import _batch
from ._record import composite, native, rl

native(
    "_adjoint(Tensor self) -> Tensor",
    options={"composite": True},
    doc="The conjugate transpose of the last two dimensions; a view for real tensors.",
)
native(
    "_scale(Tensor self, Scalar factor) -> Tensor",
    options={"composite": True},
    doc="self * factor; self when the factor is 1.",
)
native(
    "_fold(Tensor self) -> Tensor",
    options={"composite": True},
    view="view",
    doc="All dimensions but the last merged into one.",
)
native(
    "conj(Tensor self) -> Tensor",
    options={"composite": True},
    out=False,
    view="view",
    doc="""The complex conjugate: a view that is conjugated when it is read; the tensor itself when it is real.

    Shapes: self of any shape; the result has the same.

    >>> torch.tensor([1 + 2j, 3 - 1j]).conj()
    tensor([1.-2.j, 3.+1.j])""",
    formula="out = a - b i, of a + b i",
)
native(
    "_conj(Tensor self) -> Tensor",
    batch="plain",
    view="view",
    public="",
    method=False,
    derivative={"self": lambda grad: rl._conj_physical(grad)},
    doc="The complex conjugate of a complex tensor, a view.",
)
native(
    "_neg_view(Tensor self) -> Tensor",
    batch="plain",
    view="view",
    public="_neg_view Tensor._neg_view",
    method=False,
    derivative={"self": lambda grad: -grad},
    doc="""The negatives, a view that is negated when it is read.

    RuntimeError for bool.

    Shapes: self of any shape; the result has the same.

    >>> torch.tensor([1.0, -2.0])._neg_view()
    tensor([-1.,  2.])""",
    formula="out = -self",
)

native(
    "mm(Tensor self, Tensor mat2) -> Tensor",
    flops=lambda result, self: 2 * result * self[-1],
    batch=lambda batch, self, mat2: rl.matmul(self, mat2),
    derivative={
        "self": lambda grad, mat2: rl.mm(grad, rl._adjoint(mat2)),
        "mat2": lambda grad, self: rl.mm(rl._adjoint(self), grad),
    },
    formula="out_ij = sum_k self_ik mat2_kj",
    doc="""The product of two matrices; matmul also takes vectors and batches.

    RuntimeError when the inner sizes or the dtypes differ.

    Shapes: self (n, k), mat2 (k, m); the result (n, m).

    >>> torch.mm(torch.tensor([[1, 2], [3, 4]]), torch.tensor([[10], [100]]))
    tensor([[210],
            [430]])""",
)
native(
    "bmm(Tensor self, Tensor mat2) -> Tensor",
    flops=lambda result, self: 2 * result * self[-1],
    batch=lambda batch, self, mat2: rl.matmul(self, mat2),
    derivative={
        "self": lambda grad, mat2: rl.bmm(grad, rl._adjoint(mat2)),
        "mat2": lambda grad, self: rl.bmm(rl._adjoint(self), grad),
    },
    formula="out_bij = sum_k self_bik mat2_bkj",
    doc="""The products of two batches of matrices, one by one.

    RuntimeError when the sizes of the batches, the inner sizes or the dtypes differ; matmul broadcasts batches.

    Shapes: self (B, n, k), mat2 (B, k, m); the result (B, n, m).

    >>> torch.bmm(torch.tensor([[[1, 2]], [[3, 4]]]), torch.tensor([[[1], [1]], [[10], [100]]])).flatten()
    tensor([  3, 430])""",
)
native(
    "_product_of_batches(Tensor self, Tensor other) -> Tensor",
    flops=lambda result, self: 2 * result * self[-1],
    batch=_batch.product_of_batches,
    aten=lambda self, other: ("bmm", (self, other)),
    derivative={
        "self": lambda grad, other, self_shape: rl.matmul(grad, rl._adjoint(other)).sum_to_size(self_shape),
        "other": lambda grad, self, other_shape: rl.matmul(rl._adjoint(self), grad).sum_to_size(other_shape),
    },
    doc="""What matmul does with batches whose layouts no single stride describes: several dimensions that broadcast
    or stand in another order in memory, which are read where they are.""",
)
native(
    "mv(Tensor self, Tensor vec) -> Tensor",
    flops=lambda result, self: 2 * result * self[-1],
    batch=_batch.mv,
    derivative={
        "self": lambda grad, vec: grad.unsqueeze(1) * rl.conj(vec),
        "vec": lambda grad, self: rl.mv(rl._adjoint(self), grad),
    },
    formula="out_i = sum_k self_ik vec_k",
    doc="""The product of a matrix and a vector.

    Shapes: self (n, k), vec (k); the result (n).

    >>> torch.mv(torch.tensor([[1, 2], [3, 4]]), torch.tensor([10, 100]))
    tensor([210, 430])""",
)
native(
    "dot(Tensor self, Tensor tensor) -> Tensor",
    flops=lambda self: 2 * self[0],
    batch=lambda batch, self, tensor: (self * tensor).sum(-1),
    derivative={
        "self": lambda grad, tensor: grad * rl.conj(tensor),
        "tensor": lambda grad, self: grad * rl.conj(self),
    },
    formula="out = sum_k self_k tensor_k",
    doc="""The inner product of two vectors, without conjugation.

    RuntimeError when the sizes or the dtypes differ.

    Shapes: self (n), tensor (n); the result ().

    >>> torch.dot(torch.tensor([1, 2]), torch.tensor([10, 100]))
    tensor(210)""",
)
native(
    "vdot(Tensor self, Tensor other) -> Tensor",
    flops=lambda self: 2 * self[0],
    batch=lambda batch, self, other: (rl.conj(self) * other).sum(-1),
    derivative={
        "self": lambda grad, other: rl.conj(grad) * other,
        "other": lambda grad, self: grad * self,
    },
    formula="out = sum_k conj(self_k) other_k",
    doc="""The inner product of two vectors, the first one conjugated.

    Shapes: self (n), other (n); the result ().

    >>> torch.vdot(torch.tensor([1j, 2]), torch.tensor([1j, 3]))
    tensor(7.+0.j)""",
)
native(
    "addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    flops=lambda result, mat1: 2 * result * mat1[-1],
    batch=_batch.addmm,
    inplace=True,
    derivative={
        "self": lambda grad, beta: rl._scale_conj(grad, beta),
        "mat1": lambda grad, mat2, alpha: rl._scale_conj(rl.mm(grad, rl._adjoint(mat2)), alpha),
        "mat2": lambda grad, mat1, alpha: rl._scale_conj(rl.mm(rl._adjoint(mat1), grad), alpha),
    },
    formula="out = beta * self + alpha * (mat1 @ mat2)",
    doc="""The product of two matrices added to a third.

    With beta = 0 self is not read, so that NaN in it does not count.

    Shapes: mat1 (n, k), mat2 (k, m), self broadcasts to (n, m), the shape of the result.

    >>> a = torch.tensor([[1, 2], [3, 4]])
    >>> torch.addmm(torch.tensor([100, 200]), a, a, alpha=10)
    tensor([[170, 300],
            [250, 420]])""",
)
native(
    "_scale_conj(Tensor self, Scalar factor) -> Tensor",
    options={"composite": True},
    doc="self times the conjugate of a number; self when it is 1.",
)
native(
    "addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    flops=lambda result, mat: 2 * result * mat[-1],
    batch=_batch.addmv,
    inplace=True,
    derivative={
        "self": lambda grad, beta: rl._scale_conj(grad, beta),
        "mat": lambda grad, vec, alpha: rl._scale_conj(grad.unsqueeze(1) * rl.conj(vec), alpha),
        "vec": lambda grad, mat, alpha: rl._scale_conj(rl.mv(rl._adjoint(mat), grad), alpha),
    },
    formula="out = beta * self + alpha * (mat @ vec)",
    doc="""The product of a matrix and a vector added to a vector.

    With beta = 0 self is not read, so that NaN in it does not count.

    Shapes: mat (n, k), vec (k), self broadcasts to (n), the shape of the result.

    >>> torch.addmv(torch.tensor([1, 2]), torch.tensor([[1, 2], [3, 4]]), torch.tensor([10, 100]))
    tensor([211, 432])""",
)
native(
    "baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    flops=lambda result, batch1: 2 * result * batch1[-1],
    batch=_batch.baddbmm,
    inplace=True,
    derivative={
        "self": lambda grad, beta: rl._scale_conj(grad, beta),
        "batch1": lambda grad, batch2, alpha: rl._scale_conj(rl.bmm(grad, rl._adjoint(batch2)), alpha),
        "batch2": lambda grad, batch1, alpha: rl._scale_conj(rl.bmm(rl._adjoint(batch1), grad), alpha),
    },
    formula="out_b = beta * self_b + alpha * (batch1_b @ batch2_b)",
    doc="""The products of two batches of matrices, one by one, added to a third batch.

    With beta = 0 self is not read, so that NaN in it does not count.

    Shapes: batch1 (B, n, k), batch2 (B, k, m), self broadcasts to (B, n, m), the shape of the result.

    >>> a = torch.tensor([[[1, 2]], [[3, 4]]])
    >>> torch.baddbmm(torch.tensor(0.5), a.float(), a.float().transpose(1, 2), beta=2).flatten()
    tensor([ 6., 26.])""",
)
native(
    "matmul(Tensor self, Tensor other) -> Tensor",
    public="matmul linalg.matmul",
    options={"composite": True},
    formula="out_ij = sum_k self_ik other_kj",
    doc="""The matrix product, of vectors, matrices and batches of matrices; the operator @.

    A vector counts as a row on the left and as a column on the right, and that dimension disappears. RuntimeError when
    the inner sizes or the dtypes differ, or batch dimensions do not broadcast.

    Shapes: self (*, n, k) or (k), other (*, k, m) or (k), with batch dimensions that broadcast; the result (*, n, m),
    without n or m for a vector.

    >>> a = torch.tensor([[1, 2], [3, 4]])
    >>> a @ torch.tensor([10, 100])
    tensor([210, 430])
    >>> torch.matmul(torch.zeros(7, 1, 2, 3), torch.zeros(5, 3, 4)).shape
    rushlight.Size([7, 5, 2, 4])""",
)
native(
    "linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor",
    flops=lambda result, input: 2 * result * input[-1],
    batch=_batch.linear,
    public="nn.functional.linear",
    method=False,
    aten=lambda input, weight, bias: (
        ("mm", (input, weight.t())) if bias is None else ("addmm", (bias, input, weight.t()))
    ),
    derivative={
        "input": lambda grad, weight: rl.matmul(grad, rl.conj(weight)),
        "weight": lambda grad, input: rl.mm(rl._fold(grad).t(), rl.conj(rl._fold(input))),
        "bias": lambda grad: grad,
    },
    formula="out = input @ weight.T + bias",
    doc="""The affine map of a fully connected layer, over the last dimension of the input.

    RuntimeError when the sizes or the dtypes differ.

    Shapes: input (*, k), weight (m, k) or (k), bias (m) or (); the result (*, m), or (*).

    >>> weight = torch.tensor([[1.0, 2.0], [3.0, 4.0], [0.0, 1.0]])
    >>> torch.nn.functional.linear(torch.tensor([10.0, 1.0]), weight, torch.tensor([0.0, 0.0, 0.5]))
    tensor([12.0000, 34.0000,  1.5000])""",
)


@composite(
    "outer(Tensor self, Tensor vec2) -> Tensor",
    public="outer ger Tensor.ger",
    out=True,
    formula="out_ij = self_i vec2_j",
)
def outer(self: Any, vec2: Any) -> Any:
    """The outer product of two vectors.

    RuntimeError for tensors that are not vectors.

    Shapes: self (n), vec2 (m); the result (n, m).

    >>> torch.outer(torch.tensor([1, 2]), torch.tensor([10, 20, 30]))
    tensor([[10, 20, 30],
            [20, 40, 60]])
    """
    if self.dim() != 1 or vec2.dim() != 1:
        raise RuntimeError(f"outer: Expected 1-D argument self and vec2, but got {self.dim()}-D and {vec2.dim()}-D")
    return self.unsqueeze(1) * vec2


@composite(
    "einsum(str equation, Tensor[] operands) -> Tensor",
    method=False,
    formula='"ij,jk->ik": out_ik = sum_j x_ij y_jk',
)
def einsum(equation: str, operands: tuple[Any, ...]) -> Any:
    """Sums of products written with index letters, one group for each operand (Einstein's convention).

    Letters that the result has not are summed over; one given twice in an operand takes its diagonal; "..." stands for
    dimensions that broadcast. Without "->" the result has the letters that occur once, in alphabetical order.
    RuntimeError for sizes of one letter that differ.

    Shapes: each operand has as many dimensions as its letters; the result has those after "->".

    >>> a = torch.tensor([[1, 2], [3, 4]])
    >>> torch.einsum("ij,j->i", a, torch.tensor([10, 100]))
    tensor([210, 430])
    >>> torch.einsum("ii", a), torch.einsum("ij->ji", a)
    (tensor(5), tensor([[1, 3],
            [2, 4]]))
    """
    from rushlight._einsum import einsum as contract

    return contract(equation, list(operands))


@composite("einsum.sublist(Tensor operand, Any[] more) -> Tensor", method=False)
def einsum_sublist(operand: Any, more: tuple[Any, ...]) -> Any:
    """einsum with a list of numbers in [0, 52) behind each operand in place of letters, ... for an ellipsis.

    A last list names the dimensions of the result.
    """
    from rushlight._einsum import from_sublists

    return rl.einsum(*from_sublists(operand, *more))
