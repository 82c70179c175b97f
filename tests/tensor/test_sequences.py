"""Sequences that are no tuples: as indices, as data, as subscripts of einsum."""

from __future__ import annotations

import array
import warnings
from typing import Any

import numpy as np
import pytest

import rushlight as rl

INDICES = {
    "slices": [slice(None), slice(0, 2)],
    "lists": [[0, 1], [1, 2]],
    "tuples": [(0, 1), (1, 2)],
    "a list beside a number": [0, [1]],
    "an ellipsis": [..., 0],
    "none": [None, 0],
    "a bool beside a list": [True, [0]],
    "one list": [[0, 1]],
    "a list of a list of a list": [[[0, 1]]],
    "empty lists": [[], []],
    "a range": [range(2), 0],
    "an array": [np.array([0, 1]), 0],
}


@pytest.mark.parametrize("name", INDICES)
def test_a_sequence_of_sequences_stands_for_a_tuple(name: str) -> None:
    """NumPy's indexing by the tuple is the second source; PyTorch agrees, and warns as we do."""
    index, values = INDICES[name], np.arange(60.0).reshape(5, 3, 4)
    wanted = values[tuple(np.array(i, dtype=int) if isinstance(i, list) and not i else i for i in index)]
    x = rl.tensor(values)
    with pytest.warns(UserWarning, match="tuple"):
        np.testing.assert_array_equal(x[index].numpy(), wanted)
    with pytest.warns(UserWarning, match="tuple"):
        x[index] = -1.0
    assert (x == -1).sum() == wanted.size


@pytest.mark.parametrize("index", [[0, 1], [True, False, True, False, True], [[0]] * 33, range(2), []])
def test_other_sequences_are_index_tensors(index: Any) -> None:
    values = np.arange(60.0).reshape(5, 3, 4)
    kind = bool if index and index[0] is True else int
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(rl.tensor(values)[index].numpy(), values[np.array(index, dtype=kind)])


@pytest.mark.parametrize("index", [{0: 1}, {1}, object(), 1.5, [1.5, [0]]])
@pytest.mark.filterwarnings("ignore:x.seq.")
def test_what_is_no_index_is_refused(index: Any) -> None:
    with pytest.raises(IndexError, match="only integers, slices"):
        rl.zeros(5, 3)[index]


@pytest.mark.parametrize("index", ["a", b"a", ["a", 0]])
@pytest.mark.filterwarnings("ignore:x.seq.")
def test_text_is_no_index(index: Any) -> None:
    with pytest.raises(TypeError):
        rl.zeros(5, 3)[index]


@pytest.mark.parametrize(
    ("data", "dtype", "values"),
    [
        (array.array("d", [1.5, 2.5]), rl.float32, [1.5, 2.5]),
        (array.array("h", [1, -2]), rl.int64, [1, -2]),
        (bytearray(b"ab"), rl.int64, [97, 98]),
        (memoryview(b"abc"), rl.int64, [97, 98, 99]),
        (memoryview(array.array("f", [0.5])), rl.float32, [0.5]),
        (np.array([1.5]), rl.float64, [1.5]),
        ([np.float32(0.5), 2], rl.float64, [0.5, 2.0]),
    ],
)
def test_buffers_are_sequences_of_numbers_and_arrays_keep_their_dtype(data: Any, dtype: Any, values: Any) -> None:
    if isinstance(data, list):
        dtype = rl.tensor(data).dtype  # of NumPy numbers among Python's: whatever it is, the values are theirs
    for made in (rl.tensor(data), rl.as_tensor(data)):
        assert made.dtype == dtype
        assert made.tolist() == values


def test_bytes_are_no_data() -> None:
    with pytest.raises(TypeError, match="bytes"):
        rl.tensor(b"ab")


def test_einsum_by_sublists() -> None:
    a, b = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    x, y = rl.tensor(a), rl.tensor(b)
    np.testing.assert_array_equal(rl.einsum(x, [0, 1], y, [1, 2], [0, 2]).numpy(), a @ b)
    np.testing.assert_array_equal(rl.einsum(x, [0, 1], y, [1, 2]).numpy(), a @ b)
    np.testing.assert_array_equal(rl.einsum(x, [..., 51], [51, ...]).numpy(), a.T)
    np.testing.assert_array_equal(rl.einsum(x, [27, 0]).numpy(), a.T)  # sorted: capitals first
    assert rl.einsum(x, (0, 1), []).item() == a.sum()
    for wrong in ([0, 52], [0, -1]):
        with pytest.raises(ValueError, match="subscript"):
            rl.einsum(x, wrong)
    with pytest.raises(TypeError):
        rl.einsum(x, [0, "a"])


def test_a_result_built_as_a_view_of_its_own_memory_is_no_view() -> None:
    batch = rl.rand(2, 3, 4, 4)
    for made in (
        batch @ batch.mT,
        rl.rot90(rl.rand(3, 3)),
        rl.polar(rl.rand(3), rl.rand(3)),
        rl.kron(rl.rand(2, 2), rl.rand(2, 2)),
        rl.fft.irfft(rl.rand(5, dtype=rl.complex64)),
    ):
        assert not made._is_view()
        made.detach_()
    for view in (batch.reshape(6, 16), batch.flatten(), batch.swapaxes(0, 1), rl.atleast_3d(rl.rand(3))):
        assert view._is_view()
        with pytest.raises(RuntimeError, match="detach"):
            view.detach_()


def test_a_write_into_such_a_result_reaches_what_it_was_built_from() -> None:
    x = rl.rand(2, 3, 4, dtype=rl.float64, requires_grad=True)
    y = x @ x.mT
    z = y * 2
    y += 1
    with pytest.raises(RuntimeError):
        (y.square() * y.add_(1)).sum().backward()
    z.sum().backward()
    assert x.grad is not None


def test_broadcast_tensors_returns_what_has_the_shape_already() -> None:
    x, y = rl.rand(2, 3, requires_grad=True), rl.rand(3)
    a, b = rl.broadcast_tensors(x, y)
    assert a is x and a.is_leaf
    assert b.shape == (2, 3) and b._is_view()


def test_tensors_of_one_element_count_as_numbers_in_a_list() -> None:
    assert rl.tensor([rl.tensor([1.5]), 2.0]).tolist() == [1.5, 2.0]
    assert rl.tensor([rl.tensor([[1]]), rl.tensor(2)]).tolist() == [1, 2]
    assert rl.tensor([[rl.tensor(1), rl.tensor(2.5)]]).tolist() == [[1.0, 2.5]]
    with pytest.raises(ValueError, match=r"only one element tensors.*stack"):
        rl.tensor([rl.zeros(3), rl.zeros(3)])
