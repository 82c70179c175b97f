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
    doc="The complex conjugate; the tensor itself when it is real.",
    formula="a - b i",
)

native(
    "mm(Tensor self, Tensor mat2) -> Tensor",
    batch=lambda batch, self, mat2: rl.matmul(self, mat2),
    derivative={
        "self": lambda grad, mat2: rl.mm(grad, rl._adjoint(mat2)),
        "mat2": lambda grad, self: rl.mm(rl._adjoint(self), grad),
    },
    doc="The product of two matrices.",
)
native(
    "bmm(Tensor self, Tensor mat2) -> Tensor",
    batch=lambda batch, self, mat2: rl.matmul(self, mat2),
    derivative={
        "self": lambda grad, mat2: rl.bmm(grad, rl._adjoint(mat2)),
        "mat2": lambda grad, self: rl.bmm(rl._adjoint(self), grad),
    },
    doc="The products of two batches of matrices.",
)
native(
    "mv(Tensor self, Tensor vec) -> Tensor",
    batch=_batch.mv,
    derivative={
        "self": lambda grad, vec: grad.unsqueeze(1) * rl.conj(vec),
        "vec": lambda grad, self: rl.mv(rl._adjoint(self), grad),
    },
    doc="The product of a matrix and a vector.",
)
native(
    "dot(Tensor self, Tensor tensor) -> Tensor",
    batch=lambda batch, self, tensor: (self * tensor).sum(-1),
    derivative={
        "self": lambda grad, tensor: grad * rl.conj(tensor),
        "tensor": lambda grad, self: grad * rl.conj(self),
    },
    doc="The inner product of two vectors, without conjugation.",
)
native(
    "vdot(Tensor self, Tensor other) -> Tensor",
    batch=lambda batch, self, other: (rl.conj(self) * other).sum(-1),
    derivative={
        "self": lambda grad, other: rl.conj(grad) * other,
        "other": lambda grad, self: grad * self,
    },
    doc="The inner product of two vectors with the first conjugated.",
)
native(
    "addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    batch=_batch.addmm,
    inplace=True,
    derivative={
        "self": lambda grad, beta: rl._scale_conj(grad, beta),
        "mat1": lambda grad, mat2, alpha: rl._scale_conj(rl.mm(grad, rl._adjoint(mat2)), alpha),
        "mat2": lambda grad, mat1, alpha: rl._scale_conj(rl.mm(rl._adjoint(mat1), grad), alpha),
    },
    doc="beta * self + alpha * (mat1 @ mat2).",
)
native(
    "_scale_conj(Tensor self, Scalar factor) -> Tensor",
    options={"composite": True},
    doc="self times the conjugate of a number; self when it is 1.",
)
native(
    "addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    batch=_batch.addmv,
    inplace=True,
    derivative={
        "self": lambda grad, beta: rl._scale_conj(grad, beta),
        "mat": lambda grad, vec, alpha: rl._scale_conj(grad.unsqueeze(1) * rl.conj(vec), alpha),
        "vec": lambda grad, mat, alpha: rl._scale_conj(rl.mv(rl._adjoint(mat), grad), alpha),
    },
    doc="beta * self + alpha * (mat @ vec).",
)
native(
    "baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    batch=_batch.baddbmm,
    inplace=True,
    derivative={
        "self": lambda grad, beta: rl._scale_conj(grad, beta),
        "batch1": lambda grad, batch2, alpha: rl._scale_conj(rl.bmm(grad, rl._adjoint(batch2)), alpha),
        "batch2": lambda grad, batch1, alpha: rl._scale_conj(rl.bmm(rl._adjoint(batch1), grad), alpha),
    },
    doc="beta * self + alpha * (batch1 @ batch2), batchwise.",
)
native(
    "matmul(Tensor self, Tensor other) -> Tensor",
    public="matmul linalg.matmul",
    options={"composite": True},
    doc="The matrix product, with batch dimensions broadcast.",
)
native(
    "linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor",
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
    doc="input @ weight.T + bias, over the last dimension of the input.",
)


@composite("outer(Tensor self, Tensor vec2) -> Tensor", public="outer ger Tensor.ger", out=True)
def outer(self: Any, vec2: Any) -> Any:
    """The outer product of two vectors."""
    if self.dim() != 1 or vec2.dim() != 1:
        raise RuntimeError(f"outer: Expected 1-D argument self and vec2, but got {self.dim()}-D and {vec2.dim()}-D")
    return self.unsqueeze(1) * vec2


@composite("einsum(str equation, Tensor[] operands) -> Tensor", method=False)
def einsum(equation: str, operands: tuple[Any, ...]) -> Any:
    """Sums of products written with index letters, as in ``"ij,jk->ik"``; ``...`` stands for broadcast dimensions."""
    from rushlight._einsum import einsum as contract

    return contract(equation, list(operands))
