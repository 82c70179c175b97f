"""matmul and einsum over batches that broadcast or stand in any order in memory, against NumPy in float64."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight as rl
from rushlight.autograd import gradcheck, gradgradcheck


def array(*shape, dtype=np.float64, seed=0):
    rng = np.random.default_rng([seed, *shape])
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape)).astype(dtype) if np.dtype(dtype).kind == "c" else (3 * x).astype(dtype)


def orders(x):
    """The values in memory of four orders, and going backwards where a size allows it."""
    dims = list(range(x.ndim))
    for order in (dims, dims[::-1], [*dims[1:], dims[0]], [dims[1], dims[0], *dims[2:]]):
        yield rl.from_numpy(np.ascontiguousarray(x.transpose(order))).permute([order.index(d) for d in dims])
    yield rl.from_numpy(np.repeat(x, 2, axis=-1))[..., ::2]


SHAPES = [
    ((3, 1, 4, 5), (1, 2, 5, 6)),
    ((2, 3, 4, 5), (2, 3, 5, 6)),
    ((3, 4, 5), (2, 1, 5, 6)),
    ((2, 3, 4, 5), (3, 5, 1)),
    ((2, 2, 3, 1, 5), (2, 1, 5, 4)),
    ((2, 3, 70, 33), (2, 1, 33, 65)),
    ((0, 3, 4, 5), (1, 3, 5, 2)),
    ((2, 3, 4, 0), (2, 3, 0, 2)),
]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.int64])
@pytest.mark.parametrize("left, right", SHAPES)
def test_matmul_of_batches_in_any_order(left, right, dtype):
    x, y = array(*left, dtype=dtype), array(*right, dtype=dtype, seed=1)
    wide = np.result_type(dtype, np.float64 if np.dtype(dtype).kind == "f" else dtype)
    expected = x.astype(wide) @ y.astype(wide)
    for a in orders(x):
        for b in orders(y):
            got = (a @ b).numpy()
            assert got.shape == expected.shape and got.dtype == dtype
            np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-3 if np.dtype(dtype).itemsize <= 8 else 1e-9)


def test_matmul_with_a_vector_and_batches_that_merge_into_none():
    a = array(6, 2, 4, 5)
    b = array(5)
    strided = rl.from_numpy(a).transpose(0, 1)
    np.testing.assert_allclose((strided @ rl.from_numpy(b)).numpy(), a.transpose(1, 0, 2, 3) @ b)
    row = array(4)
    np.testing.assert_allclose((rl.from_numpy(row) @ strided).numpy(), row @ a.transpose(1, 0, 2, 3))


def test_operands_that_broadcast_are_not_copied():
    one, other = rl.ones(400, 1, 64, 64), rl.ones(1, 2, 64, 64)
    with rl.profiler.profile() as profile:
        one @ other
        rl.einsum("abij,bjk->abik", one.expand(400, 2, 64, 64), other[0])
    names = {event.name for event in profile.events()}
    assert not any("clone" in name or "copy" in name for name in names), names


def test_derivatives_of_products_of_batches():
    a = rl.from_numpy(array(2, 1, 3, 2)).transpose(0, 1).requires_grad_()
    b = rl.from_numpy(array(3, 2, 2, 4)).transpose(0, 1).transpose(0, 1)[:, :1].requires_grad_()
    assert gradcheck(lambda x, y: x @ y, (a, b)) and gradgradcheck(lambda x, y: x @ y, (a, b))
    c = rl.from_numpy(array(3, 1, 2, 2, dtype=np.complex128)).requires_grad_()
    d = rl.from_numpy(array(1, 2, 2, 3, dtype=np.complex128)).requires_grad_()
    assert gradcheck(lambda x, y: x @ y, (c, d))


@pytest.mark.parametrize("in_dims", [(0, 0), (0, None), (None, 0), (1, 0)])
def test_vmap_of_products_of_batches(in_dims):
    a, b = rl.from_numpy(array(4, 4, 1, 3, 2)), rl.from_numpy(array(4, 5, 2, 3))
    if in_dims[0] is None:
        a = a[0]
    if in_dims[1] is None:
        b = b[0]
    got = rl.func.vmap(rl.matmul, in_dims)(a, b)
    count = 4
    for i in range(count):
        x = a if in_dims[0] is None else a.select(in_dims[0], i)
        y = b if in_dims[1] is None else b.select(in_dims[1], i)
        np.testing.assert_allclose(got[i].numpy(), x.numpy() @ y.numpy())


EQUATIONS = [
    ("bhid,bhjd->bhij", [(2, 3, 4, 5), (2, 3, 6, 5)]),
    ("bihj,bhjd->bihd", [(2, 4, 3, 5), (2, 3, 5, 6)]),
    ("bihd,bjhd->bhij", [(2, 4, 3, 5), (2, 6, 3, 5)]),
    ("bi,oij,bj->bo", [(3, 4), (2, 4, 5), (3, 5)]),
    ("ij,ij->", [(4, 5), (4, 5)]),
    ("ij,ji->", [(4, 5), (5, 4)]),
    ("abc,cbd,da->b", [(2, 3, 4), (4, 3, 5), (5, 2)]),
    ("abcd,dcef->fbea", [(2, 3, 4, 5), (5, 4, 2, 3)]),
    ("...ij,...jk->...ik", [(3, 1, 2, 4), (5, 4, 2)]),
    ("i,i->", [(6,), (6,)]),
    ("i,j->ji", [(3,), (4,)]),
    ("iij,jk->k", [(3, 3, 2), (2, 4)]),
    ("bij->bj", [(2, 3, 4)]),
    ("ij->ij", [(2, 3)]),
    (",ij->ji", [(), (2, 3)]),
    ("ab,ab->a", [(1, 4), (3, 4)]),
    ("ab,ab->b", [(0, 4), (1, 4)]),
]


@pytest.mark.parametrize("equation, shapes", EQUATIONS)
def test_einsum_against_numpy(equation, shapes):
    operands = [array(*shape, seed=i) if shape else np.float64(2.5) for i, shape in enumerate(shapes)]
    for layout in ("given", "reversed"):
        tensors = [
            rl.tensor(x)
            if layout == "given"
            else rl.tensor(np.transpose(x).copy()).permute(list(range(np.ndim(x)))[::-1])
            for x in operands
        ]
        if equation == "ab,ab->b":  # sizes 0 and 1 broadcast to 0, which NumPy refuses
            assert rl.einsum(equation, *tensors).tolist() == [0.0] * 4
            continue
        if equation == "ab,ab->a":
            expected = (operands[0] * operands[1]).sum(1)
        else:
            expected = np.einsum(equation, *operands)
        got = rl.einsum(equation, *tensors).numpy()
        assert got.shape == expected.shape
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)
