"""Products of matrices, and functions of matrices."""

from __future__ import annotations

from typing import Any

from . import _batch
from ._record import composite, native, rl
from .linalg import _h, _refuse_low
from .norms import _wrapped
from .systems import linalg_inv

# ---------------------------------------------------------------- products


@composite(
    "addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    inplace=True,
    out=True,
    formula="out_ij = beta * self_ij + alpha * vec1_i vec2_j",
)
def addr(self: Any, vec1: Any, vec2: Any, beta: Any, alpha: Any) -> Any:
    """The outer product of two vectors added to a matrix.

    With beta = 0 self is not read, so that NaN in it does not count. RuntimeError for vec1 or vec2 that is no vector,
    and for a float beta or alpha of integers.

    Shapes: vec1 (n), vec2 (m), self broadcasts to (n, m), the shape of the result.

    >>> torch.addr(torch.tensor([[100], [200]]), torch.tensor([1, 2]), torch.tensor([10, 20]))
    tensor([[110, 120],
            [220, 240]])
    """
    if vec1.dim() != 1 or vec2.dim() != 1:
        raise RuntimeError(f"addr: expected 1-D vec1 and vec2, got shapes {list(vec1.shape)} and {list(vec2.shape)}")
    shape = (vec1.shape[0], vec2.shape[0])
    if self.dim() > 2 or any(have not in (1, want) for have, want in zip(self.shape[::-1], shape[::-1], strict=False)):
        raise RuntimeError(f"addr: self; expected a shape that broadcasts to {list(shape)}, got {list(self.shape)}")
    dtype = rl.promote_types(rl.promote_types(self.dtype, vec1.dtype), vec2.dtype)
    for name, number in (("beta", beta), ("alpha", alpha)):
        if not (dtype.is_floating_point or dtype.is_complex) and isinstance(number, (float, complex)):
            raise RuntimeError(f"addr: {name}; expected an integer for {dtype} tensors, got {number}")
        if isinstance(number, bool) and dtype != rl.bool:
            raise RuntimeError(f"addr: {name}; expected a number, got {number}")
        if isinstance(number, complex) and number.imag and not dtype.is_complex:
            raise RuntimeError(f"addr: {name}; expected a real number for {dtype} tensors, got {number}")
    left, row = vec1.to(dtype).unsqueeze(1), vec2.to(dtype)
    if dtype == rl.bool:
        product = left & row if alpha else rl.zeros(shape, dtype=dtype, device=self.device)
        return product | self.to(dtype) if beta else product
    product = left * row if alpha == 1 else (left * alpha) * row
    if beta == 0:
        return product
    return (self if beta == 1 else self.to(dtype) * beta) + product


@composite(
    "addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    inplace=True,
    out=True,
    formula="out = beta * self + alpha * sum_b batch1_b @ batch2_b",
)
def addbmm(self: Any, batch1: Any, batch2: Any, beta: Any, alpha: Any) -> Any:
    """The sum of the products of a batch of matrices added to a matrix, as one product of wide matrices.

    With beta = 0 self is not read, so that NaN in it does not count. RuntimeError for sizes that do not fit.

    Shapes: batch1 (B, n, k), batch2 (B, k, m), self broadcasts to (n, m), the shape of the result.

    >>> a = torch.tensor([[[1.0, 2.0]], [[3.0, 4.0]]])
    >>> torch.addbmm(torch.tensor([[100.0]]), a, a.transpose(1, 2))
    tensor([[130.]])
    """
    if batch1.dim() != 3 or batch2.dim() != 3:
        raise RuntimeError(
            f"addbmm: expected 3-D batch1 and batch2, got shapes {list(batch1.shape)} and {list(batch2.shape)}"
        )
    count, rows, inner = batch1.shape
    if batch2.shape[0] != count or batch2.shape[1] != inner:
        raise RuntimeError(
            f"addbmm: incompatible batches; expected batch2 of [{count}, {inner}, n], got {list(batch2.shape)}"
        )
    if self.dtype in (rl.float16, rl.bfloat16) and count > 0:  # rounded after each product, as a user's loop would
        result = rl.addmm(self, batch1.select(0, 0), batch2.select(0, 0), beta=beta, alpha=alpha)
        for i in range(1, count):
            result = rl.addmm(result, batch1.select(0, i), batch2.select(0, i), alpha=alpha)
        return result
    left = batch1.transpose(0, 1).reshape(rows, count * inner)
    return rl.addmm(self, left, batch2.reshape(count * inner, batch2.shape[2]), beta=beta, alpha=alpha)


@composite(
    "kron(Tensor self, Tensor other) -> Tensor",
    out=True,
    formula="out[i p + k, j q + l] = self[i, j] other[k, l], other of sizes p, q",
)
def kron(self: Any, other: Any) -> Any:
    """The Kronecker product: each element of self times the whole of other.

    Shapes: self and other, the shorter with ones put in front; each size of the result is the product of theirs.

    >>> torch.kron(torch.tensor([[1, 10]]), torch.tensor([[1, 2], [3, 4]]))
    tensor([[ 1,  2, 10, 20],
            [ 3,  4, 30, 40]])
    """
    n = max(self.dim(), other.dim())
    a, b = (1,) * (n - self.dim()) + tuple(self.shape), (1,) * (n - other.dim()) + tuple(other.shape)
    left = self.reshape([s for size in a for s in (size, 1)])
    right = other.reshape([s for size in b for s in (1, size)])
    return (left * right).reshape([x * y for x, y in zip(a, b, strict=True)])


@composite(
    "linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor",
    public="linalg.cross",
    method=False,
    out=True,
    formula="out = (a_2 b_3 - a_3 b_2, a_3 b_1 - a_1 b_3, a_1 b_2 - a_2 b_1)",
)
def linalg_cross(self: Any, other: Any, dim: int) -> Any:
    """The cross product of vectors of 3 elements.

    RuntimeError unless dim has size 3 in both.

    Shapes: self and other of as many dimensions, with size 3 in dim, the others broadcast; the result has the common
    shape.

    >>> torch.linalg.cross(torch.tensor([1, 0, 0]), torch.tensor([0, 1, 0]))
    tensor([0, 0, 1])
    """
    if self.dim() != other.dim():
        raise RuntimeError(
            "linalg.cross: inputs must have the same number of dimensions; got shapes "
            f"{list(self.shape)} and {list(other.shape)}"
        )
    d = _wrapped("linalg.cross", dim, self.dim())
    if self.dim() == 0 or self.shape[d] != 3 or other.shape[d] != 3:
        raise RuntimeError(
            f"linalg.cross: dimension {dim}; expected length 3, got shapes {list(self.shape)} and {list(other.shape)}"
        )
    a, b = rl.cat([self, self.narrow(d, 0, 2)], d), rl.cat([other, other.narrow(d, 0, 2)], d)
    return a.narrow(d, 1, 3) * b.narrow(d, 2, 3) - a.narrow(d, 2, 3) * b.narrow(d, 1, 3)


@composite(
    "cross(Tensor self, Tensor other, int? dim=None) -> Tensor",
    out=True,
    formula="out = (a_2 b_3 - a_3 b_2, a_3 b_1 - a_1 b_3, a_1 b_2 - a_2 b_1)",
)
def cross(self: Any, other: Any, dim: Any) -> Any:
    """The cross product of vectors of 3 elements; linalg.cross, but along the first dimension of size 3 without
    dim.

    RuntimeError where there is none.

    Shapes: self and other of as many dimensions, with size 3 in dim, the others broadcast; the result has the common
    shape.

    >>> torch.cross(torch.tensor([1, 2, 3]), torch.tensor([3, 2, 1]), dim=0)
    tensor([-4,  8, -4])
    """
    if dim is None:
        dim = next((d for d, size in enumerate(self.shape) if size == 3), None)
        if dim is None:
            raise RuntimeError(f"cross: no dimension of size 3 in input; got shape {list(self.shape)}")
    return linalg_cross(self, other, dim)


@composite(
    "linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor",
    public="linalg.vecdot",
    method=False,
    out=True,
    formula="out = sum_i conj(x_i) y_i",
)
def linalg_vecdot(x: Any, y: Any, dim: int) -> Any:
    """The inner products of vectors along a dimension, with x conjugated.

    RuntimeError for integers and for dtypes that differ.

    Shapes: x and y broadcast; the result is without dim.

    >>> torch.linalg.vecdot(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([10.0, 100.0]))
    tensor([210., 430.])
    """
    _refuse_low("linalg.vecdot", "x", x)
    if x.dtype != y.dtype:
        raise RuntimeError(f"linalg.vecdot: expected x and y of one dtype, got {x.dtype} and {y.dtype}")
    if x.dim() == 1 and y.dim() == 1 and x.shape == y.shape and dim in (0, -1):
        return rl.vdot(x, y)
    return (rl.conj(x) * y).sum(dim)


@composite(
    "linalg_diagonal(Tensor A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor",
    public="linalg.diagonal",
    method=False,
    formula="out_i = A[i, i + offset]",
)
def linalg_diagonal(A: Any, offset: int, dim1: int, dim2: int) -> Any:
    """The diagonal of the last two dimensions (unless dim1 and dim2 name others), put last; a view.

    Shapes: A (*, m, n); the result (*, k), k the length of the diagonal.

    >>> torch.linalg.diagonal(torch.tensor([[1, 2, 3], [4, 5, 6]]), offset=1)
    tensor([2, 6])
    """
    return rl.diagonal(A, offset, dim1, dim2)


def _power(A: Any, n: int, name: str) -> Any:
    if A.dim() < 2 or A.shape[-1] != A.shape[-2]:
        raise RuntimeError(f"{name}: A must be batches of square matrices; got shape {list(A.shape)}")
    if n == 0:
        eye = rl.eye(A.shape[-1], dtype=A.dtype, device=A.device)
        return rl.where(rl.ones_like(A, dtype=rl.bool), eye, A)  # a function of A, if a constant one
    if n < 0:
        A, n = linalg_inv(A), -n
    result = None
    while n:
        if n & 1:
            result = A if result is None else rl.matmul(result, A)
        n >>= 1
        if n:
            A = rl.matmul(A, A)
    return result


@composite(
    "linalg_matrix_power(Tensor self, int n) -> Tensor",
    public="linalg.matrix_power",
    method=False,
    out=True,
    formula="out = self @ self @ ... @ self, n times",
)
def linalg_matrix_power(self: Any, n: int) -> Any:
    """The n-th power of square matrices, by repeated squaring.

    Negative powers are those of the inverse, the power 0 is the identity. RuntimeError for matrices that are not
    square, linalg.LinAlgError for a negative power of a singular one.

    Shapes: self (*, m, m); the result has the same.

    >>> fibonacci = torch.tensor([[1, 1], [1, 0]])
    >>> torch.linalg.matrix_power(fibonacci, 10)
    tensor([[89, 55],
            [55, 34]])
    """
    result = _power(self, n, "linalg.matrix_power")
    return result.clone() if result is self else result


@composite(
    "matrix_power(Tensor self, int n) -> Tensor",
    out=True,
    formula="out = self @ self @ ... @ self, n times",
)
def matrix_power(self: Any, n: int) -> Any:
    """The n-th power of square matrices; linalg.matrix_power is the newer name.

    Shapes: self (*, m, m); the result has the same.

    >>> torch.matrix_power(torch.tensor([[1, 1], [0, 1]]), 5)
    tensor([[1, 5],
            [0, 1]])
    """
    return linalg_matrix_power(self, n)


def _chain_order(sizes: list[int]) -> list[list[int]]:
    """Where to split each chain of matrices for the fewest multiplications (T. Cormen et al., "Introduction to
    Algorithms", section 15.2).
    """
    n = len(sizes) - 1
    cost = [[0] * n for _ in range(n)]
    split = [[0] * n for _ in range(n)]
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            cost[i][j], split[i][j] = min(
                (cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)
            )
    return split


def _chain(tensors: list[Any]) -> Any:
    split = _chain_order([tensors[0].shape[0], *(t.shape[1] for t in tensors)])

    def product(i: int, j: int) -> Any:
        if i == j:
            return tensors[i]
        return rl.matmul(product(i, split[i][j]), product(split[i][j] + 1, j))

    return product(0, len(tensors) - 1)


@composite(
    "linalg_multi_dot(Tensor[] tensors) -> Tensor",
    public="linalg.multi_dot",
    method=False,
    out=True,
    formula="out = A_1 @ A_2 @ ... @ A_n",
)
def linalg_multi_dot(tensors: Any) -> Any:
    """The product of several matrices, in the order of least multiplications (T. Cormen et al., section 15.2).

    RuntimeError for fewer than two tensors, sizes or dtypes that do not fit.

    Shapes: A_1 (n, k) or (k), the middle ones matrices, A_n (l, m) or (l); the result (n, m), without n or m for a
    vector.

    >>> row, matrix = torch.tensor([1, 2]), torch.tensor([[1, 0], [1, 1]])
    >>> torch.linalg.multi_dot([row, matrix, matrix])
    tensor([5, 2])
    """
    if len(tensors) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(tensors)}")
    first, last = tensors[0], tensors[-1]
    if first.dim() not in (1, 2) or last.dim() not in (1, 2):
        raise RuntimeError(
            f"multi_dot(): the first and last tensors must be 1D or 2D; got {first.dim()}D and {last.dim()}D"
        )
    for i, t in enumerate(tensors[1:-1], 1):
        if t.dim() != 2:
            raise RuntimeError(f"multi_dot(): tensor {i} must be 2D; got {t.dim()}D")
    if any(t.dtype != first.dtype for t in tensors):
        raise RuntimeError(f"multi_dot(): expected one dtype for all, got {[str(t.dtype) for t in tensors]}")
    matrices = [*tensors]
    if first.dim() == 1:
        matrices[0] = first.unsqueeze(0)
    if last.dim() == 1:
        matrices[-1] = last.unsqueeze(-1)
    for i in range(len(matrices) - 1):
        if matrices[i].shape[1] != matrices[i + 1].shape[0]:
            raise RuntimeError(
                f"multi_dot(): tensors {i} and {i + 1} cannot be multiplied; got shapes {list(matrices[i].shape)} and "
                f"{list(matrices[i + 1].shape)}"
            )
    result = _chain(matrices)
    if last.dim() == 1:
        result = result.squeeze(-1)
    return result.squeeze(0) if first.dim() == 1 else result


@composite(
    "linalg_vander(Tensor x, *, int? N=None) -> Tensor",
    public="linalg.vander",
    method=False,
    formula="out_ij = x_i^j, j = 0 ... N - 1",
)
def linalg_vander(x: Any, N: Any) -> Any:
    """The matrix of Vandermonde: powers of each element, along a new last dimension.

    N is the size of the last dimension of x unless given. RuntimeError for N of at most 1, and for bool.

    Shapes: x (*, n); the result (*, n, N).

    >>> torch.linalg.vander(torch.tensor([2, 3, 5]))
    tensor([[ 1,  2,  4],
            [ 1,  3,  9],
            [ 1,  5, 25]])
    """
    if x.dtype == rl.bool:
        raise RuntimeError("linalg.vander: x; expected numbers, got bool")
    if x.dim() == 0:
        x = x.unsqueeze(0)
    n = x.shape[-1] if N is None else N
    if n <= 1:
        raise RuntimeError(f"linalg.vander: N; expected a number greater than 1, got {n}")
    # The first power is x itself: with it taken out of the product, its second derivative is none, not a zero.
    column = x.unsqueeze(-1)
    if not (x.is_floating_point() or x.is_complex()):
        column = column.to(rl.int64)
    ones = rl.ones_like(column)
    if n == 2:
        return rl.cat([ones, column], -1)
    return rl.cat([ones, column, column.expand((*x.shape, n - 1)).cumprod(-1).narrow(-1, 1, n - 2)], -1)


def _product(sizes: Any) -> int:
    result = 1
    for size in sizes:
        result *= size
    return result


@composite(
    "linalg_tensorinv(Tensor self, int ind=2) -> Tensor",
    public="linalg.tensorinv",
    method=False,
    out=True,
    formula="tensordot(out, self, ind) = 1",
)
def linalg_tensorinv(self: Any, ind: int) -> Any:
    """The inverse of a tensor as a map from its last dimensions to its first `ind`.

    RuntimeError when both have not as many elements; linalg.LinAlgError when the map is singular.

    Shapes: self (*first, *last), ind dimensions first; the result (*last, *first).

    >>> A = torch.eye(6).reshape(2, 3, 6) * 2
    >>> torch.linalg.tensorinv(A, ind=2).shape
    rushlight.Size([6, 2, 3])
    """
    if ind <= 0:
        raise RuntimeError(f"linalg.tensorinv: ind; expected a positive number, got {ind}")
    first, last = tuple(self.shape[:ind]), tuple(self.shape[ind:])
    if _product(first) != _product(last):
        raise RuntimeError(
            "linalg.tensorinv: expected as many elements in the first `ind` dimensions as in the others, got "
            f"{list(first)} and {list(last)}"
        )
    matrix = self.reshape(_product(first), _product(last))
    return linalg_inv(matrix).reshape(last + first)


@composite(
    "linalg_tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor",
    public="linalg.tensorsolve",
    method=False,
    out=True,
    formula="tensordot(self, X, X.ndim) = other",
)
def linalg_tensorsolve(self: Any, other: Any, dims: Any) -> Any:
    """The solution X of a linear system whose unknowns and right side are tensors.

    `dims` of self are moved to its end first. RuntimeError when the system is not square; linalg.LinAlgError when it
    is singular.

    Shapes: self (*other.shape, *rest), where both parts have as many elements; the result (*rest).

    >>> A = torch.eye(4).reshape(2, 2, 4) * 2
    >>> torch.linalg.tensorsolve(A, torch.tensor([[2.0, 4.0], [6.0, 8.0]]))
    tensor([1., 2., 3., 4.])
    """
    if dims is not None:
        moved = [_wrapped("linalg.tensorsolve", d, self.dim()) for d in dims]
        self = self.permute([d for d in range(self.dim()) if d not in moved] + moved)
    rest = tuple(self.shape[other.dim() :])
    if _product(rest) != _product(self.shape[: other.dim()]):
        raise RuntimeError(
            "linalg.tensorsolve: self; expected prod(shape[other.ndim:]) == prod(shape[:other.ndim]), got "
            f"{list(rest)} and {list(self.shape[: other.dim()])}"
        )
    n = _product(rest)
    return rl.linalg_solve(self.reshape(n, n), other.reshape(-1)).reshape(rest)


# ---------------------------------------------------------------- the exponential


@composite("_matrix_exp_forward(Tensor self) -> Tensor", method=False)
def _matrix_exp_forward(self: Any) -> Any:
    """N. Higham, "The scaling and squaring method for the matrix exponential revisited" (2005), with the Pade
    approximant of degree 13; each matrix of a batch is squared as often as its own norm asks for.
    """
    dtype = self.dtype
    if self.numel() == 0 or self.is_meta:
        return rl.empty_like(self)
    # In double precision, which costs twice but hides the growth of rounding errors by squaring.
    self = self.to(rl.complex128 if self.is_complex() else rl.float64)
    n = self.shape[-1]
    a = self.reshape(-1, n, n)
    norms = a.abs().sum(-2).amax(-1)
    eye = rl.eye(n, dtype=a.dtype, device=a.device)
    bound = 5.371920351148152
    squarings = (norms / bound).log2().ceil().clamp(0, 1000)
    squarings = rl.where(squarings.isnan(), 0.0, squarings)
    a = a * rl.exp2(-squarings).to(a.dtype).unsqueeze(-1).unsqueeze(-1)
    c = _PADE
    a2 = rl.bmm(a, a)
    a4 = rl.bmm(a2, a2)
    a6 = rl.bmm(a4, a2)
    u = rl.bmm(a6, c[13] * a6 + c[11] * a4 + c[9] * a2) + c[7] * a6 + c[5] * a4 + c[3] * a2 + c[1] * eye
    u = rl.bmm(a, u)
    v = rl.bmm(a6, c[12] * a6 + c[10] * a4 + c[8] * a2) + c[6] * a6 + c[4] * a4 + c[2] * a2 + c[0] * eye
    result = rl.linalg_solve_ex(v - u, v + u)[0]
    for i in range(int(squarings.max().item())):
        again = squarings > i
        result = rl.where(again.unsqueeze(-1).unsqueeze(-1), rl.bmm(result, result), result)
    return result.reshape(self.shape).to(dtype)


_PADE = tuple(
    x / 64764752532480000.0
    for x in (
        64764752532480000.0,
        32382376266240000.0,
        7771770303897600.0,
        1187353796428800.0,
        129060195264000.0,
        10559470521600.0,
        670442572800.0,
        33522128640.0,
        1323241920.0,
        40840800.0,
        960960.0,
        16380.0,
        182.0,
        1.0,
    )
)


def _matrix_exp_backward(grad: Any, self: Any) -> Any:
    """R. Mathias, "A chain rule for matrix functions and applications" (1996): a corner of the exponential of a block
    matrix.
    """
    a = _h(self)
    n = a.shape[-1]
    zeros = rl.zeros_like(a)
    blocks = rl.cat([rl.cat([a, grad], -1), rl.cat([zeros, a], -1)], -2)
    return rl.matrix_exp(blocks).narrow(-2, 0, n).narrow(-1, n, n)


native(
    "matrix_exp(Tensor self) -> Tensor",
    batch=_batch.matrices,
    public="matrix_exp linalg.matrix_exp",
    out=False,
    derivative={"self": lambda grad, self: _matrix_exp_backward(grad, self)},
    doc="""The exponential of square matrices, by scaling and squaring with a Pade approximant (N. Higham, 2005).

    Shapes: self (*, n, n); the result has the same.

    >>> torch.matrix_exp(torch.tensor([[0.0, 1.5], [0.0, 0.0]]))
    tensor([[1.0000, 1.5000],
            [0.0000, 1.0000]])""",
    formula="out = sum_k self^k / k!",
)
