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


# Up to which 1-norm the Taylor polynomials of degree 2, 4, 8 and 12 are exact enough (P. Bader, S. Blanes, F. Casas,
# "Computing the matrix exponential with an optimized Taylor polynomial approximation", 2019, table 1), and that of
# degree 18. Where results are rounded to float32 the error is kept a thousand times smaller, as it grows by squaring.
_TAYLOR_LIMITS = {True: (2.580e-8, 3.397e-4, 4.991e-2, 0.2996, 1.090), False: (2e-5, 9e-3, 0.25, 0.85, 2.0)}
_ROOT = 177**0.5
_TAYLOR_8 = (
    (1 + _ROOT) / 132,
    (1 + _ROOT) / 528,
    2 / 3,
    (-271 + 29 * _ROOT) / 210,
    11 * (-1 + _ROOT) / 840,
    11 * (-9 + _ROOT) / 3360,
    (89 - _ROOT) / 2240,
    (857 - 58 * _ROOT) / 630,
)
# Coefficients of 1, A, A^2, A^3 (and A^6) in the matrices that are multiplied; same place, equations 26 and 32
_TAYLOR_12 = (
    (-0.01860232051462055322, -0.00500702322573317730, -0.57342012296052226390, -0.13339969394389205970),
    (4.6, 0.99287510353848683614, -0.13244556105279963884, 0.00172990000000000000),
    (0.21169311829980944294, 0.15822438471572672537, 0.16563516943672741501, 0.01078627793157924250),
    (0.0, -0.13181061013830184015, -0.02027855540589259079, -0.00675951846863086359),
)
_TAYLOR_18 = (
    (0.0, -0.100365581030144618291, -0.00802924648241156932449, -8.92138498045729985177e-4, 0.0),
    (0.0, 0.397849749499645077844, 1.36783778460411720168, 0.498289622525382669416, -6.37898194594723280150e-4),
    (
        -10.9676396052962061844,
        1.68015813878906206114,
        0.0571779846478865511061,
        -0.00698210122488052056106,
        3.34975017086070470649e-5,
    ),
    (
        -0.0904316832390810593223,
        -0.0676404519071381882256,
        0.0675961301770459654925,
        0.0295552570429315521194,
        -1.39180257516060693404e-5,
    ),
    (0.0, 0.0, -0.0923364619367118555360, -0.0169364939002081722752, -1.40086798182036094347e-5),
)


@composite("_matrix_exp_forward(Tensor self) -> Tensor", method=False)
def _matrix_exp_forward(self: Any) -> Any:
    """Scaling and squaring with the Taylor polynomials of P. Bader, S. Blanes and F. Casas (2019), which take the
    fewest products; the matrices of a batch in groups of one degree.
    """
    dtype = self.dtype
    if self.numel() == 0 or self.is_meta:
        return rl.empty_like(self)
    limits = _TAYLOR_LIMITS[dtype in (rl.float64, rl.complex128)]
    # In double precision, which costs twice but hides the growth of rounding errors by squaring.
    n = self.shape[-1]
    a = self.to(rl.complex128 if self.is_complex() else rl.float64).reshape(-1, n, n)
    if n == 1:
        return a.exp().reshape(self.shape).to(dtype)
    norms = a.abs().sum(-2).amax(-1)
    steps = rl.bucketize(norms, rl.tensor(limits[:-1], dtype=rl.float64, device=a.device))
    kinds = [int(steps.item())] if a.shape[0] == 1 else steps.unique().tolist()
    if len(kinds) == 1:
        result = _exponential(a, norms, kinds[0], limits[-1])
    else:
        result = rl.empty_like(a)
        for kind in kinds:
            index = (steps == kind).nonzero().squeeze(-1)
            result.index_copy_(0, index, _exponential(a[index], norms[index], kind, limits[-1]))
    return result.reshape(self.shape).to(dtype)


def _exponential(a: Any, norms: Any, kind: int, limit: float) -> Any:
    """The exponential of matrices (batch, n, n), by the polynomial number `kind`; only the last one takes matrices of
    any norm, and `limit` is its own."""
    if kind < 2:
        a2 = rl.bmm(a, a)
        if kind == 0:
            return _plus_identity(a2.mul_(0.5).add_(a), 1.0)
        right = _plus_identity(a2 / 24 + a / 6, 0.5)
        return _plus_identity(rl.baddbmm(a, a2, right), 1.0)
    if kind == 2:
        x = _TAYLOR_8
        a2 = rl.bmm(a, a)
        a4 = rl.bmm(a2, x[0] * a + x[1] * a2)
        right = _plus_identity(x[4] * a + x[5] * a2 + x[6] * a4, x[3])
        return _plus_identity(rl.baddbmm(a2.mul(x[7]).add_(a), a4.add_(a2, alpha=x[2]), right), 1.0)
    powers = a.new_empty((3 if kind == 3 else 4, *a.shape))
    powers[0] = a
    squarings = None
    if kind == 4:
        # Norms above 1e45 are brought down first: their powers may not be finite.
        before = (norms.log2().ceil() - 150).clamp(0, 1000).nan_to_num(0.0)
        if bool((before > 0).any()):
            powers[0] *= rl.exp2(-before).reshape(-1, 1, 1)
    rl.bmm(powers[0], powers[0], out=powers[1])
    rl.bmm(powers[1], powers[0], out=powers[2])
    if kind == 4:
        rl.bmm(powers[2], powers[2], out=powers[3])
        squarings = before + _squarings(powers, norms * rl.exp2(-before), limit)
    table = _TAYLOR_12 if kind == 3 else _TAYLOR_18
    factors = rl.tensor([row[1:] for row in table], dtype=a.dtype, device=a.device)
    terms = rl.mm(factors, powers.reshape(powers.shape[0], -1)).reshape(len(table), *a.shape)
    for term, row in zip(terms, table, strict=True):
        if row[0]:
            _plus_identity(term, row[0])
    first, second, third = terms[0], terms[1], terms[2]
    if kind == 3:
        middle = rl.baddbmm(third, terms[3], terms[3])
        return rl.baddbmm(first, second.add_(middle), middle)
    middle = rl.baddbmm(terms[3], first, terms[4])
    return _squared(rl.baddbmm(second, third.add_(middle), middle), squarings)


def _plus_identity(x: Any, factor: float) -> Any:
    x.diagonal(0, -2, -1).add_(factor)
    return x


def _squarings(powers: Any, first: Any, limit: float) -> Any:
    """How often each matrix, of the norms `first`, is halved, from its powers 1, 2, 3 and 6, which are scaled
    accordingly.

    Of small matrices, whose products cost little, |A| decides. Else the terms from the 19th on, which are left out, are
    at most x^k where x = max over r < 6 of d (|A^r| / d^r)^(1/19) and d = |A^6|^(1/6): less than |A|^k, and less
    halving is needed (as in A. Al-Mohy and N. Higham, "A new scaling and squaring algorithm for the matrix
    exponential", 2009). Rounding errors of the powers grow with |A| all the same, so x is a part of |A| at least.
    """
    size = first
    if powers.shape[-1] >= 32:
        second, third, sixth = (p.abs().sum(-2).amax(-1) for p in powers[1:])
        least = first / (4 if limit < 2 else 64)
        d = rl.maximum(sixth ** (1 / 6), least).clamp(min=1e-300)
        x, xx, xxx = first / d, second / d**2, third / d**3
        size = d * rl.stack([rl.ones_like(d), x, xx, xxx, xxx * x, xxx * xx]).amax(0) ** (1 / 19)
    count = (size / limit).log2().ceil().clamp(0, 1000)
    count = rl.where(rl.isfinite(size), count, 0.0)
    if bool((count > 0).any()):
        factors = rl.exp2(-count).reshape(-1, 1, 1)
        for power, exponent in zip(powers, (1, 2, 3, 6), strict=True):
            power *= factors**exponent
    return count


def _squared(x: Any, counts: Any) -> Any:
    """Each matrix squared as often as its own count says."""
    most, least = int(counts.max().item()), int(counts.min().item())
    for _ in range(least):
        x = rl.bmm(x, x)
    if most == least:
        return x
    order = counts.argsort(descending=True)
    counts, sorted_x = counts[order], x[order]
    for i in range(least, most):
        some = sorted_x[: int((counts > i).sum().item())]
        some.copy_(rl.bmm(some, some))
    return x.index_copy_(0, order, sorted_x)


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
    doc="""The exponential of square matrices, by scaling and squaring with Taylor polynomials (P. Bader, S. Blanes and
    F. Casas, 2019), in double precision for every dtype.

    Shapes: self (*, n, n); the result has the same.

    >>> torch.matrix_exp(torch.tensor([[0.0, 1.5], [0.0, 0.0]]))
    tensor([[1.0000, 1.5000],
            [0.0000, 1.0000]])""",
    formula="out = sum_k self^k / k!",
)
