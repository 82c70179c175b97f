"""x[mask] and x[mask] = value where the mask has one element for each of x, against NumPy; and their gradients."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight as rl

DTYPES = [np.bool_, np.uint8, np.int32, np.float16, np.float32, np.float64, np.complex64]
LAYOUTS = {
    "dense": lambda x: x,
    "transposed": lambda x: np.ascontiguousarray(x.T).T,
    "stepping": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "backwards": lambda x: x[::-1, ::-1],
}


def arrays(dtype, shape=(60, 70)):
    generator = np.random.default_rng(0)
    x = generator.integers(0, 100, shape)
    return (x > 50 if dtype is np.bool_ else x.astype(dtype)), generator.random(shape) > 0.4


def layouts(x, mask):
    for name, of_x in LAYOUTS.items():
        for other, of_mask in LAYOUTS.items():
            yield of_x(x), of_mask(mask), f"{name}, {other}"


@pytest.mark.parametrize("dtype", DTYPES)
def test_reading(dtype):
    for x, mask, what in layouts(*arrays(dtype)):
        got = rl.from_numpy(x)[rl.from_numpy(mask)]
        assert np.array_equal(got.numpy(), x[mask]), what
    assert rl.from_numpy(arrays(dtype)[0])[rl.zeros(60, 70, dtype=rl.bool)].shape == (0,)
    assert rl.zeros(0, 3)[rl.zeros(0, 3, dtype=rl.bool)].shape == (0,)


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_value_written(dtype):
    number = np.array(1 if dtype is np.bool_ else 7, dtype)
    for x, mask, what in layouts(*arrays(dtype)):
        want = x.copy()
        want[mask] = number
        where = rl.from_numpy(mask)
        for value in (number.item(), rl.tensor(number), rl.tensor(number).reshape(1)):
            got = rl.from_numpy(np.array(x, order="K"))
            before = got._version
            got[where] = value
            assert np.array_equal(got.numpy(), want) and got._version == before + 1, what
        put = rl.from_numpy(x.copy()).index_put_((where,), rl.tensor(number))
        assert np.array_equal(put.numpy(), want), what


def test_the_mask_written_into_and_the_value_in_the_tensor():
    x, _ = arrays(np.bool_)
    got = rl.from_numpy(x.copy())
    got[got] = False
    assert not got.any()
    base = rl.from_numpy(x.reshape(-1).copy())
    want = x.reshape(-1).copy()
    mask = want[:-1].copy()
    want[1:][mask] = True
    base[1:][base[:-1]] = True
    assert np.array_equal(base.numpy(), want)
    y = rl.arange(6.0)
    y[y > 2] = y[1]
    assert y.tolist() == [0, 1, 2, 1, 1, 1]


def test_wrong_masks_and_values():
    x = rl.zeros(2, 3)
    for mask in (rl.ones(3, 2, dtype=rl.bool), rl.ones(2, 3, 1, dtype=rl.bool)):
        with pytest.raises(IndexError):
            x[mask]
        with pytest.raises(IndexError):
            x[mask] = 1
    for value in (rl.ones(2), rl.ones(2, 3)):
        with pytest.raises((IndexError, RuntimeError)):
            x[rl.ones(2, 3, dtype=rl.bool)] = value
    with pytest.raises(RuntimeError):
        rl.zeros(3, dtype=rl.uint8)[rl.ones(3, dtype=rl.bool)] = 300
    with pytest.raises(RuntimeError):
        rl.zeros(1).expand(3)[rl.ones(3, dtype=rl.bool)] = 1
    with pytest.raises(RuntimeError):
        rl.zeros(3, requires_grad=True)[rl.ones(3, dtype=rl.bool)] = 1


def test_gradients():
    values, mask = arrays(np.float64, (5, 6))
    x, where = rl.from_numpy(values).requires_grad_(), rl.from_numpy(mask)
    weight = rl.arange(float(mask.sum()), dtype=rl.float64)
    (x[where] * weight).sum().backward()
    want = np.zeros((5, 6))
    want[mask] = weight.numpy()
    assert np.array_equal(x.grad.numpy(), want)
    value = rl.tensor(2.0, dtype=rl.float64, requires_grad=True)

    def written(x, value):
        y = x * 1
        y[where] = value
        return y * y

    x = rl.randn(5, 6, dtype=rl.float64, requires_grad=True)
    assert rl.autograd.gradcheck(written, (x, value)) and rl.autograd.gradgradcheck(written, (x, value))
    assert rl.autograd.gradcheck(lambda x: x[where] ** 2, x) and rl.autograd.gradgradcheck(lambda x: x[where] ** 2, x)
    rows = rl.func.jacrev(lambda x: x[where] ** 2)(x)
    assert rows.shape == (int(mask.sum()), 5, 6)
    assert np.allclose(rows.detach().sum(0).numpy(), 2 * x.detach().numpy() * mask)
    assert np.array_equal(rl.vmap(lambda x: x[where])(rl.stack([x, 2 * x])).detach().numpy()[1], 2 * x[where].detach())
