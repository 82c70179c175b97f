"""Small inputs on which frameworks have gone wrong, each with the right result."""

from __future__ import annotations

import math
import operator
import time

import numpy as np
import pytest

import rushlight as torch
import rushlight.nn.functional as F

INF = float("inf")
NAN = float("nan")
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
SIGNED = [torch.int8, torch.int16, torch.int32, torch.int64]


# T01: matrix products whose output is also an input


def square() -> torch.Tensor:
    return torch.arange(9.0).view(3, 3)


PRODUCT = [[15.0, 18.0, 21.0], [42.0, 54.0, 66.0], [69.0, 90.0, 111.0]]  # arange(9).view(3, 3) times itself


def product_is_right(call, target, expected):
    call()
    assert target.tolist() == expected


@pytest.mark.parametrize("name", ["mm", "matmul"])
def test_t01_product_into_its_own_operand(name):
    x = square()
    product_is_right(lambda: getattr(torch, name)(x, x, out=x), x, PRODUCT)
    x = square()
    other = square()
    product_is_right(lambda: getattr(torch, name)(x, other, out=x), x, PRODUCT)
    x = square()
    product_is_right(lambda: getattr(torch, name)(other, x, out=x), x, PRODUCT)


def test_t01_matrix_times_vector_into_the_vector():
    v = torch.tensor([1.0, 2.0, 3.0])
    product_is_right(lambda: torch.mv(square(), v, out=v), v, [8.0, 26.0, 44.0])


def test_t01_batched_product_into_its_own_operand():
    x = torch.stack([square(), square()])
    product_is_right(lambda: torch.bmm(x, x, out=x), x, [PRODUCT, PRODUCT])


def test_t01_addmm_in_place_on_its_own_operand():
    x = square()
    expected = (np.arange(9.0).reshape(3, 3) + np.array(PRODUCT)).tolist()
    product_is_right(lambda: x.addmm_(x, x), x, expected)


def test_t01_addmv_in_place_on_its_own_operand():
    v = torch.tensor([1.0, 2.0, 3.0])
    product_is_right(lambda: v.addmv_(square(), v), v, [9.0, 28.0, 47.0])


def test_t01_baddbmm_in_place_on_its_own_operand():
    x = torch.stack([square(), square()])
    expected = (np.arange(9.0).reshape(3, 3) + np.array(PRODUCT)).tolist()
    product_is_right(lambda: x.baddbmm_(x, x), x, [expected, expected])


# T02: in-place writes into an expanded tensor

OVERLAPPING = {
    "masked_fill_": lambda a: a.masked_fill_(torch.tensor([[True, False, False], [False] * 3]), 5),
    "index_fill_": lambda a: a.index_fill_(0, torch.tensor([0]), 5),
    "index_put_": lambda a: a.index_put_((torch.tensor([0]), torch.tensor([0])), torch.tensor(5.0)),
    "setitem_array": lambda a: a.__setitem__((torch.tensor([0]), torch.tensor([0])), 5),
    "setitem_mask": lambda a: a.__setitem__(torch.tensor([[True, False, False], [False] * 3]), 5),
    "setitem_element": lambda a: a.__setitem__((0, 0), 5),
    "setitem_row": lambda a: a.__setitem__(0, torch.ones(3)),
    "setitem_of_a_row": lambda a: a.__setitem__((slice(0, 1), slice(None)), 5),
    "index_add_": lambda a: a.index_add_(0, torch.tensor([0]), torch.ones(1, 3)),
    "index_copy_": lambda a: a.index_copy_(0, torch.tensor([0]), torch.ones(1, 3)),
    "scatter_": lambda a: a.scatter_(0, torch.tensor([[0, 0, 0]]), torch.ones(1, 3)),
    "scatter_add_": lambda a: a.scatter_add_(0, torch.tensor([[0, 0, 0]]), torch.ones(1, 3)),
    "masked_scatter_": lambda a: a.masked_scatter_(torch.tensor([[True, False, False], [False] * 3]), torch.ones(1)),
    "copy_": lambda a: a.copy_(torch.ones(2, 3)),
    "iadd": lambda a: a.__iadd__(1),
    "mul_": lambda a: a.mul_(2),
    "exp_": lambda a: a.exp_(),
    "relu_": lambda a: a.relu_(),
    "clamp_": lambda a: a.clamp_(min=1),
    "put_": lambda a: a.put_(torch.tensor([0]), torch.tensor([5.0])),
}


@pytest.mark.parametrize("name", OVERLAPPING)
def test_t02_write_into_an_expanded_tensor_is_refused(name):
    base = torch.zeros(1, 3)
    a = base.expand(2, 3)
    with pytest.raises(RuntimeError):
        OVERLAPPING[name](a)
    assert base.tolist() == [[0.0, 0.0, 0.0]]


def test_t02_writes_that_hit_each_element_once_are_allowed():
    base = torch.zeros(1, 3)
    base.expand(1, 3)[0, 1] = 5
    assert base.tolist() == [[0.0, 5.0, 0.0]]


# T04: unsigned tensor against a negative signed one


@pytest.mark.parametrize("other", SIGNED)
def test_t04_unsigned_against_negative(other):
    a = torch.tensor([1, 2, 3], dtype=torch.uint8)
    b = torch.tensor(-19, dtype=other)
    assert torch.le(a, b).tolist() == [False] * 3
    assert torch.lt(a, b).tolist() == [False] * 3
    assert torch.eq(a, b).tolist() == [False] * 3
    assert torch.ne(a, b).tolist() == [True] * 3
    assert torch.ge(a, b).tolist() == [True] * 3
    assert torch.gt(a, b).tolist() == [True] * 3
    assert torch.gt(b, a).tolist() == [False] * 3
    assert torch.eq(torch.tensor([237], dtype=torch.uint8), b).tolist() == [False]  # 237 is -19 wrapped


# T05: Python integers outside the tensor's range


def test_t05_comparisons_are_mathematically_right():
    assert (torch.tensor(1, dtype=torch.int8) < 256).item() is True
    assert (torch.tensor([0, 1], dtype=torch.uint8) == 256).tolist() == [False, False]
    assert (torch.tensor([0, 1], dtype=torch.uint8) != 256).tolist() == [True, True]
    assert (torch.tensor([0, 1], dtype=torch.uint8) > -1).tolist() == [True, True]
    assert (torch.tensor([0, 255], dtype=torch.uint8) <= -1).tolist() == [False, False]
    assert (torch.tensor(1, dtype=torch.int16) >= -32769).item() is True
    assert (torch.tensor(1, dtype=torch.int32) < 2**31).item() is True


def test_t05_isin_compares_too():
    x = torch.tensor([1, 2], dtype=torch.uint8)
    assert torch.isin(x, 257).tolist() == [False, False] and torch.isin(x, -255).tolist() == [False, False]
    assert torch.isin(257, x).item() is False and torch.isin(x, 300, invert=True).tolist() == [True, True]


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, *SIGNED, *FLOATS])
@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 2**64, 2**70, -(2**200), 10**400])
def test_t05_integers_beyond_64_bits(dtype, number):
    x = torch.tensor([0, 1], dtype=dtype)
    for op in (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne):
        assert op(x, number).tolist() == [op(0, number), op(1, number)]
        assert op(number, x).tolist() == [op(number, 0), op(number, 1)]
    assert torch.lt(x, number).tolist() == [number > 0] * 2 and x.eq(number).tolist() == [False] * 2
    edge = torch.tensor([torch.iinfo(torch.int64).max])
    assert (edge == 2**63).tolist() == [False] and (edge < 2**63).tolist() == [True]
    with pytest.raises((RuntimeError, OverflowError)):
        x + number
    with pytest.raises((RuntimeError, OverflowError)):
        x.fill_(number)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.fill_(300),
        lambda x: x.masked_fill_(torch.tensor([True, False]), 300),
        lambda x: x.index_fill_(0, torch.tensor([0]), 300),
        lambda x: x.new_full((2,), 300),
        lambda x: torch.full_like(x, 300),
        lambda x: torch.full((2,), 300, dtype=torch.uint8),
        lambda x: x.__setitem__(0, 300),
        lambda x: x.__setitem__(torch.tensor([0]), 300),
        lambda x: x.__setitem__(torch.tensor([True, False]), 300),
        lambda x: x.__setitem__(0, -1),
        lambda x: x.__setitem__(0, NAN),
        lambda x: x.index_fill_(0, torch.tensor([0]), INF),
        lambda x: x.fill_(1j),
        lambda x: torch.where(torch.tensor([True, False]), x, 300),
        lambda x: x.scatter_(0, torch.tensor([0]), 300),
        lambda x: x.scatter_(0, torch.tensor([0]), NAN),
        lambda x: x.scatter_(0, torch.tensor([0]), 300, reduce="add"),
        lambda x: torch.full((2,), 300, out=x),
        lambda x: torch.linspace(0, 300, 2, dtype=torch.uint8),
        lambda x: torch.linspace(0, 1e30, 2, dtype=torch.int64),
        lambda x: torch.linspace(NAN, 1, 2, dtype=torch.int32),
        lambda x: torch.logspace(0, 1e30, 2, dtype=torch.int64),
        lambda x: torch.arange(1e30, 2e30, 1e30, dtype=torch.int32),
        lambda x: torch.addmv(x, x.new_ones(2, 2), x, beta=300),
        lambda x: torch.addmm(x, x.new_ones(2, 2), x.new_ones(2, 2), alpha=-1),
        lambda x: torch.baddbmm(x, x.new_ones(1, 2, 2), x.new_ones(1, 2, 2), alpha=1j),
    ],
)
def test_t05_a_number_that_does_not_fit_is_refused_everywhere(call):
    x = torch.zeros(2, dtype=torch.uint8)
    with pytest.raises(RuntimeError):
        call(x)
    assert x.tolist() == [0, 0]


@pytest.mark.parametrize(
    "call",
    [
        lambda: torch.tensor(1, dtype=torch.int16) // 32768,
        lambda: torch.tensor(1, dtype=torch.int8) + 128,
        lambda: torch.tensor([1], dtype=torch.uint8) * 256,
        lambda: torch.tensor([1], dtype=torch.uint8) - (-1),
        lambda: torch.tensor([1], dtype=torch.int32) + 2**31,
        lambda: torch.tensor([1], dtype=torch.int8).add_(300),
    ],
)
def test_t05_arithmetic_with_an_integer_out_of_range_is_refused(call):
    with pytest.raises(RuntimeError):
        call()


# T07: a mean whose sum does not fit


def test_t07_mean_whose_sum_does_not_fit():
    assert torch.ones(100000, dtype=torch.float16).mean().item() == 1.0
    large = torch.tensor([3e38, 3e38, 3e38])
    assert large.mean().item() == large[0].item()
    assert torch.stack([large, large]).mean(0).tolist() == large.tolist()
    assert torch.stack([large, large]).mean(1).tolist() == large[:2].tolist()
    bf = torch.full((1000,), 3e38, dtype=torch.bfloat16)
    assert bf.mean().item() == bf[0].item()


# T09: normalisation at large finite input


def test_t09_layer_norm_of_large_input():
    x = torch.tensor([1e30, -1e30, 3e30])
    exact = x.double().numpy()
    expected = (exact - exact.mean()) / np.sqrt(exact.var() + 1e-5)
    np.testing.assert_allclose(F.layer_norm(x, (3,)).numpy(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("value", [1.7e308, -1.7e308, 1e155, 1e-320])
def test_t09_normalisation_of_constant_rows(value):
    x = torch.full((2, 4), value, dtype=torch.float64, requires_grad=True)
    for y in (F.layer_norm(x, (4,)), F.group_norm(x, 2), F.batch_norm(x, None, None, training=True)):
        assert y.tolist() == [[0] * 4] * 2
    F.layer_norm(x, (4,)).sum().backward()
    assert x.grad.tolist() == [[0] * 4] * 2


# T11: NaN wins


@pytest.mark.parametrize("dtype", FLOATS)
def test_t11_nan_wins_at_every_lane_and_tail(dtype):
    step = 1 if dtype is torch.float32 else 7
    for n in range(1, 71, step):
        for k in range(0, n, step):
            x = torch.zeros(n, dtype=dtype)
            x[k] = NAN
            for y in (x.max(), x.amax(), x.min(), x.amin()):
                assert math.isnan(y.item()), (n, k)
            assert x.argmax().item() == k
            assert x.argmin().item() == k
            assert torch.isnan(x.clamp(min=torch.tensor(NAN, dtype=dtype))).all()


def test_t11_nan_wins_along_either_dim():
    for rows, cols in ((3, 5), (17, 33), (40, 9)):
        for k in range(rows):
            x = torch.zeros(rows, cols)
            x[k, :] = NAN
            for values, index in (x.max(0), x.min(0), x.t().max(1), x.t().min(1)):
                assert torch.isnan(values).all()
                assert index.tolist() == [k] * cols
            assert torch.isnan(x.amax(0)).all() and torch.isnan(x.t().amin(1)).all()


def test_t11_first_nan_is_the_index():
    x = torch.tensor([1.0, NAN, 3.0, NAN])
    assert x.argmax().item() == 1 and x.argmin().item() == 1
    assert x.max(0).indices.item() == 1 and x.min(0).indices.item() == 1


# T13: NaN is the greatest, whatever its sign bit


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_t13_nan_is_greatest_in_sort_and_topk(dtype, sign):
    x = torch.tensor([2.0, math.copysign(NAN, sign), 1.0], dtype=dtype)
    values, index = x.sort()
    assert values[:2].tolist() == [1.0, 2.0] and math.isnan(values[2].item())
    assert index.tolist() == [2, 0, 1]
    values, index = x.sort(descending=True)
    assert math.isnan(values[0].item()) and values[1:].tolist() == [2.0, 1.0]
    assert index.tolist() == [1, 0, 2]
    assert math.isnan(x.topk(1).values.item()) and x.topk(1).indices.item() == 1
    assert x.topk(1, largest=False).values.item() == 1.0
    assert x.kthvalue(2).values.item() == 2.0
    assert x.argsort().tolist() == [2, 0, 1]


# T14: reductions over and beside empty dims


def test_t14_reductions_over_and_beside_empty_dims():
    values, index = torch.zeros(2, 0).max(0)
    assert values.shape == (0,) and index.shape == (0,) and index.dtype == torch.int64
    with pytest.raises(IndexError):
        torch.zeros(0, 4).argmax(0)
    assert torch.zeros(0, 4).argmax(1).shape == (0,)
    with pytest.raises(IndexError, match="0"):
        torch.zeros(0).max(0)
    with pytest.raises((IndexError, RuntimeError)):
        torch.zeros(0).max()
    assert math.isnan(torch.zeros(0).mean().item())
    assert torch.zeros(0).sum().item() == 0.0 and torch.zeros(0).prod().item() == 1.0
    assert torch.zeros(0, 3).sum(0).tolist() == [0.0] * 3
    assert torch.zeros(0).all().item() is True and torch.zeros(0).any().item() is False


# T15: an empty tuple of dims reduces everything


@pytest.mark.parametrize(
    "name",
    [
        "sum",
        "mean",
        "amax",
        "amin",
        "std",
        "var",
        "nansum",
        "logsumexp",
        "all",
        "any",
        "nanmean",
        "count_nonzero",
        "norm",
    ],
)
def test_t15_empty_tuple_of_dims_reduces_everything(name):
    assert getattr(torch.ones(2, 3), name)(dim=()).shape == ()


# T17: the count of a floating range


def test_t17_count_of_a_floating_range():
    assert len(torch.arange(0.1, 0.5, 0.05)) == 8
    assert len(torch.arange(0, 1, 0.1)) == 10
    assert len(torch.arange(1.0, 2.0, 0.1, dtype=torch.float16)) == 10


# T18: floats that do not fit an integer saturate


def test_t18_floats_that_do_not_fit_saturate():
    x = torch.tensor([NAN, INF, -INF, 3e9])
    assert x.to(torch.int32).tolist() == [0, 2147483647, -2147483648, 2147483647]
    assert x.to(torch.int64).tolist() == [0, 2**63 - 1, -(2**63), 3000000000]
    assert x.to(torch.int16).tolist() == [0, 32767, -32768, 32767]
    assert x.to(torch.int8).tolist() == [0, 127, -128, 127]


WRITES = {
    "to": lambda x, d: x.to(d),
    "copy_": lambda x, d: torch.zeros(len(x), dtype=d).copy_(x),
    "strided copy_": lambda x, d: torch.zeros(2 * len(x), dtype=d)[::2].copy_(x),
    "strided source": lambda x, d: x.repeat_interleave(3)[::3].to(d),
    "one by one": lambda x, d: torch.stack([v.to(d) for v in x]),
    "assignment": lambda x, d: assigned(torch.zeros(len(x), dtype=d), slice(None), x),
    "elements": lambda x, d: torch.stack([assigned(torch.zeros((), dtype=d), (), v) for v in x]),
    "index": lambda x, d: assigned(torch.zeros(len(x), dtype=d), torch.arange(len(x)), x.to(d)),
    "out": lambda x, d: torch.zeros(len(x), dtype=d).copy_(torch.add(x, 0)),
    "tensor": lambda x, d: torch.as_tensor(x, dtype=d),
    "full": lambda x, d: torch.cat([torch.full((1,), v, dtype=d) for v in x]),
    "fill_": lambda x, d: torch.cat([torch.zeros(1, dtype=d).fill_(v) for v in x]),
    "masked_fill": lambda x, d: torch.cat([torch.zeros(1, dtype=d).masked_fill(torch.tensor([True]), v) for v in x]),
}


def assigned(target, index, value):
    target[index] = value
    return target


@pytest.mark.parametrize("how", WRITES)
@pytest.mark.parametrize("dtype", [torch.uint8, *SIGNED])
def test_t18_every_path_saturates(dtype, how):
    low, high = torch.iinfo(dtype).min, torch.iinfo(dtype).max
    values = [NAN, INF, -INF, 1e30, -1e30, 300.0, -5.0, -1.5, 3e9]
    wanted = [0 if v != v else max(low, min(high, int(max(min(v, 1e19), -1e19)))) for v in values]
    for source in (torch.float32, torch.float64):
        x = torch.tensor(values * 5, dtype=source)
        assert WRITES[how](x, dtype).tolist() == wanted * 5


@pytest.mark.parametrize("dtype", FLOATS)
def test_t18_long_and_short_tensors_agree(dtype):
    pattern = [NAN, INF, -INF, 300.0, -300.0, 1.5, -1.5]
    x = torch.tensor(pattern * 11, dtype=dtype)
    expected = [0, 127, -128, 127, -128, 1, -1]
    assert x.to(torch.int8).tolist() == expected * 11
    assert [torch.tensor(v, dtype=dtype).to(torch.int8).item() for v in pattern] == expected


# T20: integer division by zero


@pytest.mark.parametrize(
    "call",
    [
        lambda: torch.tensor([1]) // 0,
        lambda: torch.tensor([1]).fmod(0),
        lambda: torch.tensor([1]) % torch.tensor([0]),
        lambda: torch.tensor([1]).div(torch.tensor([0]), rounding_mode="trunc"),
        lambda: torch.tensor([1], dtype=torch.uint8) % 0,
        lambda: torch.ones(1000, dtype=torch.int32).floor_divide_(torch.zeros(1000, dtype=torch.int32)),
    ],
)
def test_t20_integer_division_by_zero(call):
    with pytest.raises((RuntimeError, ZeroDivisionError)):
        call()


@pytest.mark.parametrize("dtype", SIGNED)
def test_t20_smallest_integer_by_minus_one_is_survived(dtype):
    x = torch.tensor([torch.iinfo(dtype).min], dtype=dtype)
    assert (x % -1).tolist() == [0]
    assert x.fmod(-1).tolist() == [0]
    (x // -1).tolist()  # no representable answer: only that the process lives


# T23: a mask together with an integer or an ellipsis


def test_t23_mask_with_integer_or_ellipsis():
    assert torch.ones(2, 3, 4)[torch.ones(2, 3, dtype=torch.bool), 2].shape == (6,)
    assert torch.arange(4).view(1, 2, 2)[torch.tensor([[True, True]]), ..., 0].tolist() == [0, 2]


# T26: a negative step


def test_t26_negative_step():
    assert torch.arange(5)[::-1].tolist() == [4, 3, 2, 1, 0]
    assert torch.arange(10)[8:1:-3].tolist() == [8, 5, 2]
    x = torch.zeros(3)
    x[::-1] = torch.tensor([1.0, 2.0, 3.0])
    assert x.tolist() == [3.0, 2.0, 1.0]
    y = torch.arange(3.0).requires_grad_()
    (y[::-1] * torch.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert y.grad.tolist() == [100.0, 10.0, 1.0]
    z = torch.arange(12).view(3, 4)
    assert z[::-2, ::-1].tolist() == np.arange(12).reshape(3, 4)[::-2, ::-1].tolist()


# T28: uniform numbers are below their upper end


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_t28_uniform_is_half_open(dtype):
    torch.manual_seed(0)
    x = torch.rand(10**7, dtype=dtype)
    assert not (x == 1).any() and not (x < 0).any()


def test_t28_narrow_uniform_is_half_open():
    torch.manual_seed(0)
    upper = torch.tensor(1.0000002)
    assert not (torch.empty(10**7).uniform_(1, 1.0000002) >= upper).any()


# T31: an output of the wrong size


def test_t31_output_of_the_wrong_size():
    b = torch.zeros(4)
    with pytest.raises(RuntimeError, match="2"):
        torch.add(torch.tensor([1.0, 2, 3]), torch.tensor([4.0, 5, 6]), out=b[:2])
    assert b.tolist() == [0.0] * 4
    grown = torch.empty(0)
    torch.add(torch.tensor([1.0, 2, 3]), torch.tensor([4.0, 5, 6]), out=grown)
    assert grown.tolist() == [5.0, 7.0, 9.0]


# T33: the layout of an input changes no bit

LAYOUTS = {
    "transposed": lambda: torch.randn(7, 9).t(),
    "strided": lambda: torch.randn(14, 9)[::2],
    "expanded": lambda: torch.randn(1, 9).expand(7, 9),
    "reversed": lambda: torch.randn(7, 9)[::-1],
}
VALUE_OPERATIONS = (
    "abs neg exp log1p sqrt sin tanh sigmoid relu floor sign square erf sum mean prod amax amin std var argmax sort "
    "argsort softmax log_softmax logsumexp any isnan clone median nonzero"
).split()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", VALUE_OPERATIONS)
def test_t33_layout_changes_no_bit(name, layout):
    torch.manual_seed(1)
    v = LAYOUTS[layout]()
    arguments = (1,) if name in ("softmax", "log_softmax", "logsumexp", "sort", "argsort", "median") else ()
    op = getattr(torch, name)
    results = []
    for x in (v, v.contiguous()):
        r = op(x, *arguments)
        results.append([t.numpy().tobytes() for t in (r if isinstance(r, tuple) else (r,))])
    assert results[0] == results[1]


# T30: quantiles of more than 2^24 elements


@pytest.mark.slow
def test_t30_quantile_of_many_elements():
    torch.manual_seed(0)
    assert abs(torch.quantile(torch.rand(2**24 + 1), 0.5).item() - 0.5) < 1e-3


# I01: negative strides in NumPy arrays


def test_i01_negative_strides():
    assert torch.tensor(np.arange(3)[::-1]).tolist() == [2, 1, 0]
    assert torch.from_numpy(np.zeros((1, 3))[::-1]).tolist() == [[0.0, 0.0, 0.0]]
    array = np.arange(3)
    x = torch.from_numpy(array[::-1])
    assert x.tolist() == [2, 1, 0]
    x[0] = 7
    assert array.tolist() == [0, 1, 7]


# I03: a list of arrays


def test_i03_list_of_arrays():
    arrays = [np.full((256, 256), i, dtype=np.float32) for i in range(10)]
    start = time.perf_counter()
    x = torch.tensor(arrays)
    elapsed = time.perf_counter() - start
    assert x.dtype == torch.float32 and x.shape == (10, 256, 256)
    assert x[:, 0, 0].tolist() == [float(i) for i in range(10)]
    assert elapsed < 1.0  # an element by element walk of 655,360 numbers through Python takes longer than a stack


# I05: Python floats keep 64 bits


def test_i05_python_floats_keep_64_bits():
    assert torch.tensor([39.14223403241], dtype=torch.float64).item() == 39.14223403241
    assert torch.full((2,), 0.1, dtype=torch.float64).tolist() == [0.1, 0.1]
    assert (torch.ones(1, dtype=torch.float64) * 0.1).item() == 0.1


# M03: sizes beyond 64 bits


@pytest.mark.parametrize("call", [lambda: torch.empty(2 * 10**20), lambda: torch.ones(2, 2, 1, 2**61)])
def test_m03_sizes_that_do_not_fit(call):
    with pytest.raises((RuntimeError, OverflowError, TypeError), match=r"overflow|too large|too big|64|fit"):
        call()


# M04: printing


def test_m04_printing():
    big = torch.zeros(1, dtype=torch.int8).expand(10**9)
    start = time.perf_counter()
    text = repr(big)
    assert time.perf_counter() - start < 1.0  # a scan of the elements takes seconds
    assert text == "tensor([0, 0, 0,  ..., 0, 0, 0], dtype=torch.int8)".replace("torch.", _prefix())
    assert repr(torch.tensor(425245252)) == "tensor(425245252)"
    assert repr(torch.tensor([1, 10**15])) == "tensor([               1, 1000000000000000])"


def _prefix() -> str:
    return str(torch.int8)[: -len("int8")]


# M06: an index out of range


@pytest.mark.parametrize(
    "call",
    [
        lambda: torch.ones(3)[10],
        lambda: torch.ones(3)[-4],
        lambda: torch.ones(3)[torch.tensor([13])],
        lambda: torch.ones(3)[torch.tensor([-4])],
        lambda: torch.take(torch.ones(3), torch.tensor([13])),
        lambda: torch.ones(3).index_select(0, torch.tensor([13])),
    ],
)
def test_m06_index_out_of_range(call):
    with pytest.raises(IndexError, match=r"10|13|-4") as caught:
        call()
    assert "3" in str(caught.value)


def test_m06_assignment_out_of_range_writes_nothing():
    x = torch.ones(3)
    with pytest.raises(IndexError):
        x[torch.tensor([0, 13])] = 5.0
    with pytest.raises(IndexError):
        x[3] = 5.0
    assert x.tolist() == [1.0] * 3


# P01 to P06


def test_p01_failed_resize_leaves_the_tensor():
    array = np.zeros(2)
    x = torch.from_numpy(array)
    with pytest.raises(RuntimeError):
        x.resize_(100)
    assert x.shape == (2,) and x.tolist() == [0.0, 0.0]
    x[0] = 3.0
    assert array[0] == 3.0


@pytest.mark.parametrize("dtype", FLOATS)
def test_p02_nan_has_no_sign(dtype):
    for n in (1, 5, 40):
        x = torch.full((n,), NAN, dtype=dtype)
        assert x.sign().isnan().all() and x.sgn().isnan().all() and (-x).sign_().isnan().all()
        assert x[::2].sign().isnan().all()
    assert torch.tensor([2.0, -3.0, 0.0, INF, -INF], dtype=dtype).sign().tolist() == [1.0, -1.0, 0.0, 1.0, -1.0]


@pytest.mark.parametrize("data", [[-1], 300, [300], -1, [[0, 256]]])
def test_p04_values_out_of_range_are_refused(data):
    with pytest.raises((RuntimeError, OverflowError, ValueError)):
        torch.tensor(data, dtype=torch.uint8)


def test_p06_sum_has_the_same_bits_for_any_number_of_threads():
    torch.manual_seed(0)
    x = torch.randn(10**6)
    before = torch.get_num_threads()
    bits = set()
    try:
        for n in (1, 2, 3, 4):
            torch.set_num_threads(n)
            bits.add(x.sum().numpy().tobytes())
    finally:
        torch.set_num_threads(before)
    assert len(bits) == 1


P06 = {
    "mean": lambda x, y: x.mean(),
    "var": lambda x, y: x.var(),
    "norm": lambda x, y: x.norm(),
    "prod": lambda x, y: (x * 0.001 + 1).prod(),
    "logsumexp": lambda x, y: x.logsumexp(0),
    "cumsum": lambda x, y: x.cumsum(0),
    "softmax": lambda x, y: x.softmax(0),
    "dot": lambda x, y: x.dot(x),
    "mm": lambda x, y: y @ y,
    "mv": lambda x, y: y @ y[0],
    "sum of columns": lambda x, y: y.sum(0),
    "sum of rows": lambda x, y: y.sum(1),
    "mse_loss": lambda x, y: F.mse_loss(x, x * 2),
    "cross_entropy": lambda x, y: F.cross_entropy(y, torch.arange(500)),
    "batch_norm": lambda x, y: F.batch_norm(y, None, None, training=True),
    "layer_norm": lambda x, y: F.layer_norm(y, (500,)),
    "conv2d": lambda x, y: F.conv2d(y.view(1, 1, 500, 500), y[:3, :3].reshape(1, 1, 3, 3)),
    "index_add": lambda x, y: torch.zeros(10).index_add(0, x.abs().long().clamp(max=9), x),
    "scatter_add": lambda x, y: torch.zeros(10).scatter_add(0, x.abs().long().clamp(max=9), x),
    "bincount": lambda x, y: torch.bincount(x.abs().long(), x),
}


@pytest.mark.parametrize("name", P06)
def test_p06_other_operations_too(name):
    torch.manual_seed(0)
    x, y = torch.randn(2 * 10**5), torch.randn(500, 500)
    before = torch.get_num_threads()
    bits = set()
    try:
        for n in (1, 2, 3):
            torch.set_num_threads(n)
            bits.add(P06[name](x, y).numpy().tobytes())
    finally:
        torch.set_num_threads(before)
    assert len(bits) == 1


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64])
def test_linspace_is_symmetric(dtype):
    """From b to a come the numbers from a to b backwards, and from -x to x the same with either sign.

    But for the middle of an odd count, which is counted from the end as in PyTorch: it may be a rounding off the mean.
    """
    numbers = np.random.default_rng(0)
    for n in (2, 3, 4, 5, 17, 60, 301, 40001):
        a, b = numbers.uniform(-10, 10, 2).tolist()
        line, back = torch.linspace(a, b, n, dtype=dtype), torch.linspace(b, a, n, dtype=dtype).flip(0)
        around = torch.linspace(-a, a, n, dtype=dtype)
        mirrored = torch.arange(n) != n // 2 if n % 2 else torch.ones(n, dtype=torch.bool)
        assert torch.equal(line[mirrored], back[mirrored])
        assert torch.equal(around[mirrored], -around.flip(0)[mirrored])
        if dtype in (torch.float32, torch.float64):
            wanted = np.linspace(a, b, n)
            np.testing.assert_allclose(line.double().numpy(), wanted, rtol=0, atol=2e-6)
