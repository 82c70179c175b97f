"""What a call accepts: numbers where a list is wanted, bools among numbers, numbers of a wider kind, dtypes."""

import numpy as np
import pytest

import rushlight as rl


def test_only_a_lone_list_of_integers_is_taken_apart():
    x = rl.arange(6.0)
    assert x.reshape(2, 3).shape == (2, 3) and rl.zeros(2, 3).shape == (2, 3)
    for call in (
        lambda: rl.reshape(x, 6),
        lambda: rl.tile(x, 2),
        lambda: rl.flip(x, 0),
        lambda: rl.permute(x, 0),
        lambda: rl.broadcast_to(x, 6),
        lambda: rl.randint(3, 2, 2),
    ):
        with pytest.raises(TypeError):
            call()


def test_a_bool_is_a_number_but_does_not_lead_a_list():
    x = rl.tensor([[0.25, 0.5], [0.75, 1.5]])
    np.testing.assert_array_equal(rl.isclose(x, x + 0.5, True).numpy(), np.isclose(x.numpy(), x.numpy() + 0.5, 1.0))
    np.testing.assert_array_equal(rl.nan_to_num(rl.tensor([np.nan, 2.0]), True).numpy(), [1.0, 2.0])
    assert rl.zeros(2, True).shape == (2, 1)
    with pytest.raises(TypeError):
        rl.zeros(True, 2)


@pytest.mark.parametrize("name", ["addcmul", "addcdiv"])
def test_a_factor_has_the_dtype_of_the_tensors(name):
    x = rl.tensor([1.0, 2.0])
    function = getattr(rl, name)
    with pytest.raises(RuntimeError, match="overflow"):
        function(x, x, x, value=1j)
    assert function(x, x, x, value=2).dtype == rl.float32
    z = function(x.to(rl.complex64), x, x, value=1j)
    assert z[0].item() == 1 + 1j
    with pytest.raises(RuntimeError):
        rl.lerp(x, x, 1j)
    with pytest.raises(RuntimeError, match="addr: beta; expected a real number"):
        rl.addr(rl.eye(2), x, x, beta=1j)


def test_a_factor_of_integers_is_an_integer():
    i = rl.tensor([1, 2])
    assert rl.addcmul(i, i, i, value=1.5).tolist() == [2, 6]
    with pytest.raises(NotImplementedError, match="Long"):
        rl.celu(i, 0.5)


def test_as_tensor_takes_its_dtype_by_name():
    with pytest.raises(TypeError):
        rl.as_tensor([1.0], rl.float64)
    assert rl.as_tensor([1.0], dtype=rl.float64).dtype == rl.float64
    with pytest.raises(TypeError, match="dtype"):
        rl.as_tensor([1.0], dtype=rl.ones(2))


def test_conversions_take_a_memory_format_by_name():
    x = rl.ones(1, 2, 2, 2)
    assert x.double(memory_format=rl.channels_last).stride() == (8, 1, 4, 2)
    with pytest.raises(TypeError):
        x.double(rl.channels_last)
    with pytest.raises(TypeError):
        x.cpu(rl.channels_last)


def test_a_dtype_may_be_a_type_of_python_and_nothing_else():
    for kind, dtype in ((float, rl.float64), (int, rl.int64), (bool, rl.bool), (complex, rl.complex128)):
        assert rl.tensor([1], dtype=kind).dtype == rl.as_tensor([1], dtype=kind).dtype == dtype
    for wrong in (object(), "float32", 5, rl.ones(2)):
        for function in (rl.tensor, rl.as_tensor, rl.asarray):
            with pytest.raises(TypeError, match="dtype"):
                function([1], dtype=wrong)
