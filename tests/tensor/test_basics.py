"""What every tensor does: promotion, broadcasting, indexing, views, copies, overrides, printing, threads and forks."""

from __future__ import annotations

import copy
import gc
import operator
import os
import pickle
import subprocess
import sys
import textwrap
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import rushlight as torch
import rushlight.nn.functional as F
from rushlight.overrides import DisableTorchFunctionSubclass, TorchFunctionMode

# Type promotion

PROMOTED = """
bool bool bool
bool uint8 uint8
bool int8 int8
bool int64 int64
bool float16 float16
bool bfloat16 bfloat16
bool complex64 complex64
uint8 uint8 uint8
uint8 int8 int16
uint8 int16 int16
uint8 int32 int32
uint8 int64 int64
uint8 float16 float16
uint8 bfloat16 bfloat16
uint8 float32 float32
int8 int16 int16
int8 int64 int64
int8 float16 float16
int16 int32 int32
int16 bfloat16 bfloat16
int32 int64 int64
int32 float16 float16
int32 float32 float32
int64 float16 float16
int64 bfloat16 bfloat16
int64 float32 float32
int64 float64 float64
int64 complex64 complex64
float16 bfloat16 float32
float16 float32 float32
float16 float64 float64
float16 complex64 complex64
float16 complex128 complex128
bfloat16 float32 float32
bfloat16 float64 float64
bfloat16 complex64 complex64
float32 float64 float64
float32 complex64 complex64
float32 complex128 complex128
float64 complex64 complex128
float64 complex128 complex128
complex64 complex128 complex128
""".split()
TRIPLES = [tuple(PROMOTED[i : i + 3]) for i in range(0, len(PROMOTED), 3)]


@pytest.mark.parametrize("left, right, result", TRIPLES)
def test_promotion_of_two_tensors(left, right, result):
    a, b, r = (getattr(torch, name) for name in (left, right, result))
    assert torch.promote_types(a, b) == r
    assert torch.promote_types(b, a) == r
    x, y = torch.ones(3, dtype=a), torch.ones(3, dtype=b)
    assert (x + y).dtype == r and (y * x).dtype == r
    assert torch.result_type(x, y) == r
    assert (x == y).dtype == torch.bool
    assert torch.cat([x, y]).dtype == r


SCALARS = [
    ("int8", 2, "int8"),
    ("uint8", True, "uint8"),
    ("bool", 2, "int64"),
    ("bool", 2.0, "float32"),
    ("bool", True, "bool"),
    ("int64", 2.0, "float32"),
    ("int32", 2j, "complex64"),
    ("float16", 2, "float16"),
    ("float16", 2.0, "float16"),
    ("bfloat16", 2.0, "bfloat16"),
    ("float64", 2.0, "float64"),
    ("float64", 2j, "complex128"),
    ("float32", 2j, "complex64"),
    ("complex64", 2.0, "complex64"),
]


@pytest.mark.parametrize("dtype, scalar, result", SCALARS)
def test_promotion_with_a_python_number(dtype, scalar, result):
    x = torch.ones(3, dtype=getattr(torch, dtype))
    assert (x * scalar).dtype == getattr(torch, result)
    assert (scalar * x).dtype == getattr(torch, result)


def test_a_zero_dim_tensor_only_decides_by_kind():
    ints, halves = torch.ones(3, dtype=torch.int8), torch.ones(3, dtype=torch.float16)
    assert (ints + torch.tensor(1)).dtype == torch.int8
    assert (ints + torch.tensor(1.0, dtype=torch.float64)).dtype == torch.float64
    assert (halves + torch.tensor(1.0, dtype=torch.float64)).dtype == torch.float16
    assert (torch.tensor(1, dtype=torch.int8) + torch.tensor(1)).dtype == torch.int64


def test_true_division_and_floor_division():
    a = torch.tensor([7, -7])
    assert (a / 2).tolist() == [3.5, -3.5] and (a / 2).dtype == torch.float32
    assert (a // 2).tolist() == [3, -4] and (a // 2).dtype == torch.int64
    assert (a % 4).tolist() == [3, 1]


def test_in_place_results_must_fit_the_kind():
    with pytest.raises(RuntimeError):
        torch.ones(2, dtype=torch.int64).add_(1.5)
    with pytest.raises(RuntimeError):
        torch.ones(2).add_(1j)
    x = torch.ones(2, dtype=torch.float16)
    x += torch.ones(2, dtype=torch.float64)
    assert x.dtype == torch.float16 and x.tolist() == [2.0, 2.0]


# Broadcasting

BINARY = ["add", "sub", "mul", "div", "maximum", "pow", "eq", "lt", "atan2", "fmod", "where"]


@pytest.mark.parametrize("name", BINARY)
def test_shapes_that_do_not_broadcast_are_named(name):
    a, b = torch.ones(2, 3), torch.ones(2, 4)
    arguments = (a > 0, a, b) if name == "where" else (a, b)
    with pytest.raises(RuntimeError) as caught:
        getattr(torch, name)(*arguments)
    text = str(caught.value)
    assert name in text and "2, 3" in text and "2, 4" in text, text


@given(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, max_side=4))
@settings(max_examples=100, derandomize=True, deadline=None)
def test_broadcasting_agrees_with_numpy(shapes):
    a, b = (np.arange(float(np.prod(s))).reshape(s) for s in shapes.input_shapes)
    result = torch.from_numpy(a) - torch.from_numpy(b)
    assert tuple(result.shape) == shapes.result_shape
    assert np.array_equal(result.numpy(), a - b)


# Indexing


@st.composite
def indexed_arrays(draw):
    """An array and an index expression for it: integers, slices, None, an ellipsis, at most one index array."""
    shape = draw(hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=5))
    parts: list[object] = []
    left = draw(st.integers(0, len(shape)))
    advanced = draw(st.sampled_from(["none", "array", "mask"]))
    dim = 0
    while dim < left:
        size = shape[dim]
        kind = draw(st.sampled_from(["int", "slice", "none", "advanced"]))
        if kind == "none":
            parts.append(None)
            continue
        if kind == "advanced" and advanced == "array":
            # an integer beside an index array moves dims in NumPy and PyTorch alike; one array keeps the rule plain
            parts.append(
                draw(
                    hnp.arrays(
                        np.int64, draw(hnp.array_shapes(max_dims=2, max_side=3)), elements=st.integers(-size, size - 1)
                    )
                )
            )
            advanced = "none"
        elif kind == "advanced" and advanced == "mask":
            parts.append(draw(hnp.arrays(np.bool_, (size,))))
            advanced = "none"
        elif kind == "int":
            parts.append(draw(st.integers(-size, size - 1)))
        else:
            parts.append(draw(st.slices(size)))
        dim += 1
    if draw(st.booleans()):
        parts.append(Ellipsis)
    array = np.arange(float(np.prod(shape))).reshape(shape)
    return array, tuple(parts)


def test_further_ellipses_stand_for_what_is_left():
    x = torch.zeros(2, 3, 4)
    assert x[..., ...].shape == (2, 3, 4)
    assert x[..., 0, ...].shape == (2, 3)
    assert x[0, ..., ...].shape == (3, 4)
    assert x[..., None, ...].shape == (2, 3, 4, 1)
    with pytest.raises(IndexError):
        x[..., ..., 0]


def as_torch(index):
    return tuple(torch.from_numpy(p) if isinstance(p, np.ndarray) else p for p in index)


def plain(index):
    """Whether NumPy and PyTorch place the indexed dims alike (they differ for integers beside an index array)."""
    return not (any(isinstance(p, np.ndarray) for p in index) and any(isinstance(p, int) for p in index))


@given(indexed_arrays())
@settings(max_examples=300, derandomize=True, deadline=None)
def test_reading_by_index_agrees_with_numpy(case):
    array, index = case
    if not plain(index):
        index = tuple(slice(p, p + 1 or None) if isinstance(p, int) else p for p in index)
    result = torch.from_numpy(array)[as_torch(index)]
    expected = array[index]
    assert tuple(result.shape) == np.shape(expected)
    assert np.array_equal(result.numpy(), expected)


@given(indexed_arrays(), st.booleans())
@settings(max_examples=300, derandomize=True, deadline=None)
def test_writing_by_index_agrees_with_numpy(case, scalar):
    array, index = case
    if not plain(index):
        index = tuple(slice(p, p + 1 or None) if isinstance(p, int) else p for p in index)
    expected = array.copy()
    x = torch.from_numpy(array.copy())
    shape = np.shape(array[index])
    if scalar or any(isinstance(p, np.ndarray) and p.dtype != np.bool_ for p in index):  # repeated places: one value
        expected[index] = -1.5
        x[as_torch(index)] = -1.5
    else:
        values = -1.0 - np.arange(float(np.prod(shape))).reshape(shape)
        expected[index] = values
        x[as_torch(index)] = torch.from_numpy(np.asarray(values))
    assert np.array_equal(x.numpy(), expected)


@pytest.mark.parametrize(
    "index",
    [
        (np.array([0, 1]), slice(None), np.array([2, 3])),
        (slice(None), np.array([[0], [2]]), np.array([1, 3])),
        (np.array([1, 0]), 1),
        (np.ones((2, 3), dtype=bool),),
        (slice(None), np.eye(3, 4, dtype=bool)),
        (Ellipsis, np.array([0, 0, 1])),
    ],
)
def test_several_index_arrays_agree_with_numpy(index):
    array = np.arange(24.0).reshape(2, 3, 4)
    assert np.array_equal(torch.from_numpy(array)[as_torch(index)].numpy(), array[index])


def test_an_integer_selects_before_index_arrays_are_placed():
    array = np.arange(24.0).reshape(2, 3, 4)
    x = torch.from_numpy(array)
    assert np.array_equal(x[0, :, torch.tensor([0, 2])].numpy(), array[0][:, [0, 2]])  # NumPy gives its transpose


@pytest.mark.parametrize("index", [(0, 0, 0, 0), "a", 1.5, (slice(None, None, 0),)])
def test_bad_indices_are_refused(index):
    with pytest.raises((IndexError, TypeError, ValueError)):
        torch.ones(2, 3, 4)[index]


# Views

VIEWS = {
    "view": lambda x: x.view(4, 3),
    "reshape": lambda x: x.reshape(12),
    "t": lambda x: x.t(),
    "permute": lambda x: x.permute(1, 0),
    "slice": lambda x: x[1:, ::2],
    "select": lambda x: x[1],
    "narrow": lambda x: x.narrow(1, 1, 2),
    "unsqueeze": lambda x: x.unsqueeze(0),
    "expand": lambda x: x.unsqueeze(0).expand(2, 3, 4),
    "diagonal": lambda x: x.diagonal(),
    "chunk": lambda x: x.chunk(2, 1)[1],
    "split": lambda x: x.split(1)[2],
    "unbind": lambda x: x.unbind()[1],
    "flatten": lambda x: x.flatten(),
    "unfold": lambda x: x.unfold(1, 2, 1),
    "as_strided": lambda x: x.as_strided((2, 2), (1, 4), 1),
    "detach": lambda x: x.detach(),
    "reversed": lambda x: x[::-1],
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_share_memory(name):
    x = torch.arange(12.0).view(3, 4)
    v = VIEWS[name](x)
    assert v.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    before = v.tolist()
    x.add_(100)
    assert v.tolist() == (np.array(before) + 100).tolist()


def test_copies_do_not_share_memory():
    x = torch.arange(12.0).view(3, 4)
    for c in (x.clone(), x[torch.tensor([0, 1, 2])], x.t().contiguous(), x.double(), torch.tensor(x.tolist())):
        before = c.tolist()
        x.add_(1)
        assert c.tolist() == before


def test_numpy_shares_memory_both_ways():
    a = np.zeros(3)
    x = torch.from_numpy(a)
    a[1] = 5.0
    assert x.tolist() == [0.0, 5.0, 0.0]
    x.numpy()[2] = 7.0
    assert a.tolist() == [0.0, 5.0, 7.0]


# Copies, pickles, references

DTYPES = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128".split()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("through", ["pickle", "copy", "deepcopy"])
def test_copies_keep_everything(dtype, through):
    x = torch.tensor([[0, 1, 1], [1, 0, 1]], dtype=getattr(torch, dtype)).t()
    y = {"pickle": lambda t: pickle.loads(pickle.dumps(t)), "copy": copy.copy, "deepcopy": copy.deepcopy}[through](x)
    assert y.dtype == x.dtype and y.shape == x.shape and y.stride() == x.stride()
    assert torch.equal(x, y)
    assert (y.data_ptr() == x.data_ptr()) is (through == "copy")


def test_deepcopy_keeps_sharing_and_requires_grad():
    x = torch.arange(6.0).requires_grad_()
    pair = copy.deepcopy([x, x])
    assert pair[0] is pair[1] and pair[0].requires_grad and pair[0] is not x
    base = torch.zeros(4)
    a, b = copy.deepcopy((base, base[1:]))
    a[2] = 9.0
    assert b.tolist() == [0.0, 9.0, 0.0]
    assert base.tolist() == [0.0] * 4


def test_deepcopy_of_a_computed_tensor_is_refused():
    with pytest.raises(RuntimeError):
        copy.deepcopy(torch.ones(2, requires_grad=True) * 2)


def test_weak_references_and_cycles():
    x = torch.ones(3)
    ref = weakref.ref(x)
    assert ref() is x
    del x
    assert ref() is None
    x = torch.ones(3)
    x.loop = [x]
    ref = weakref.ref(x)
    del x
    gc.collect()
    assert ref() is None


def test_cycles_through_hooks_and_gradients_are_collected():
    x = torch.ones(3, requires_grad=True)
    x.register_hook(lambda g, x=x: g * 2)
    (x * 2).sum().backward()
    assert x.grad.tolist() == [4.0] * 3
    ref = weakref.ref(x)
    del x
    gc.collect()
    assert ref() is None


# Overrides


class Logged:
    """Not a tensor: answers every function with its name."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func.__name__, types, kwargs or {}


def test_torch_function_of_a_class():
    x = torch.ones(2)
    name, types, kwargs = torch.add(x, Logged(), alpha=2)
    assert name == "add" and Logged in types and kwargs == {"alpha": 2}
    assert torch.cat([x, Logged()])[0] == "cat"
    assert F.softmax(Logged(), 0)[0] == "softmax"
    assert torch.sum(Logged())[0] == "sum"


class Sub(torch.Tensor):
    pass


class Counting(torch.Tensor):
    calls: list[str] = []  # noqa: RUF012

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.calls.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs or {})


def test_results_of_a_subclass_are_of_the_subclass():
    x = torch.arange(4.0).as_subclass(Sub)
    assert type(x) is Sub
    for y in (x + 1, 1 - x, x.sum(), x[1:], x.view(2, 2), torch.exp(x), F.relu(x), torch.cat([x, torch.ones(1)])):
        assert type(y) is Sub
    assert all(type(y) is Sub for y in x.split(2))
    assert type(x.max(0).values) is Sub and type(x.sort().indices) is Sub
    assert type(torch.ones(2) + torch.ones(2)) is torch.Tensor
    assert type(x.shape) is torch.Size and x.tolist() == [0.0, 1.0, 2.0, 3.0]


def test_a_subclass_sees_each_call_once():
    x = torch.ones(3).as_subclass(Counting)
    Counting.calls.clear()
    y = torch.add(x, 1)
    assert Counting.calls == ["add"] and type(y) is Counting
    with DisableTorchFunctionSubclass():
        z = torch.add(x, 1)
    assert type(z) is torch.Tensor


def test_torch_function_mode():
    class Mode(TorchFunctionMode):
        def __init__(self):
            super().__init__()
            self.seen = []

        def __torch_function__(self, func, types, args=(), kwargs=None):
            self.seen.append(func.__name__)
            return func(*args, **(kwargs or {}))

    with Mode() as outer:
        x = torch.ones(2)
        y = torch.add(x, x)
        with Mode() as inner:
            torch.mul(x, x)
    torch.sub(x, x)
    assert y.tolist() == [2.0, 2.0]
    assert "ones" in outer.seen and "add" in outer.seen and "mul" in outer.seen and "sub" not in outer.seen
    assert inner.seen == ["mul"]


def test_a_mode_ends_with_an_exception():
    class Refuse(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            raise KeyError(func.__name__)

    x = torch.ones(2)
    with pytest.raises(KeyError), Refuse():
        torch.add(x, x)
    assert torch.add(x, x).tolist() == [2.0, 2.0]


# Printing; the name of the package stands for "torch" in what is printed

PRINTED = [
    (lambda: torch.tensor(3.5), "tensor(3.5000)"),
    (lambda: torch.tensor(7), "tensor(7)"),
    (lambda: torch.tensor(True), "tensor(True)"),
    (lambda: torch.tensor([]), "tensor([])"),
    (lambda: torch.tensor([1.0, 2.0, 3.0]), "tensor([1., 2., 3.])"),
    (lambda: torch.tensor([1.0, 2.5, -3.25]), "tensor([ 1.0000,  2.5000, -3.2500])"),
    (lambda: torch.tensor([1, -20, 300]), "tensor([  1, -20, 300])"),
    (lambda: torch.tensor([[1, 2], [3, 4]]), "tensor([[1, 2],\n        [3, 4]])"),
    (lambda: torch.tensor([True, False]), "tensor([ True, False])"),
    (lambda: torch.tensor([1e-5, 1.0]), "tensor([1.0000e-05, 1.0000e+00])"),
    (lambda: torch.tensor([1e10]), "tensor([1.0000e+10])"),
    (lambda: torch.tensor([float("nan"), 1.0]), "tensor([nan, 1.])"),
    (lambda: torch.tensor([0.0, -0.0, float("-inf")]), "tensor([0., -0., -inf])"),
    (lambda: torch.tensor([float("nan"), 1.5]), "tensor([   nan, 1.5000])"),
    (lambda: torch.tensor([float("inf"), -1.5]), "tensor([    inf, -1.5000])"),
    (lambda: torch.tensor([1.5], dtype=torch.float64), "tensor([1.5000], dtype=torch.float64)"),
    (lambda: torch.tensor([1, 2], dtype=torch.int8), "tensor([1, 2], dtype=torch.int8)"),
    (lambda: torch.tensor([1 + 2j]), "tensor([1.+2.j])"),
    (lambda: torch.zeros(0, 3), "tensor([], size=(0, 3))"),
    (lambda: torch.ones(2, requires_grad=True), "tensor([1., 1.], requires_grad=True)"),
    (lambda: torch.arange(2000), "tensor([   0,    1,    2,  ..., 1997, 1998, 1999])"),
    (lambda: torch.zeros(1, 1, 2), "tensor([[[0., 0.]]])"),
]


@pytest.mark.parametrize("make, text", PRINTED)
def test_printed_text(make, text):
    assert repr(make()) == text.replace("torch.", str(torch.int8)[: -len("int8")])


# Threads and forks


def train_step():
    torch.manual_seed(3)
    w1 = torch.randn(16, 3, 3, 3, requires_grad=True)
    w2 = torch.randn(10, 16, requires_grad=True)
    x = torch.randn(8, 3, 32, 32)
    h = F.relu(F.conv2d(x, w1, padding=1)).mean((2, 3))
    loss = F.cross_entropy(h @ w2.t(), torch.arange(8))
    loss.backward()
    with torch.no_grad():
        for w in (w1, w2):
            w -= 0.1 * w.grad
    return torch.cat([loss.detach().reshape(1), w1.detach().flatten(), w2.detach().flatten()])


def seeded(*shape):
    torch.manual_seed(2)
    return torch.randn(*shape)


THREADED = {
    "sum": lambda: seeded(1000003).sum(),
    "sum_rows": lambda: seeded(1003, 517).sum(1),
    "sum_columns": lambda: seeded(1003, 517).sum(0),
    "mean": lambda: seeded(1000003).mean(),
    "softmax": lambda: F.softmax(seeded(301, 1999), 1),
    "softmax_columns": lambda: F.softmax(seeded(301, 1999), 0),
    "conv2d": lambda: F.conv2d(seeded(4, 8, 33, 31), seeded(16, 8, 3, 3), padding=1),
    "train_step": train_step,
}


@pytest.mark.parametrize("name", THREADED)
def test_results_do_not_depend_on_the_number_of_threads(name):
    before = torch.get_num_threads()
    bits = []
    try:
        for n in (1, 2, 4):
            torch.set_num_threads(n)
            bits.append(THREADED[name]().numpy().tobytes())
    finally:
        torch.set_num_threads(before)
    assert bits[0] == bits[1] and bits[0] == bits[2]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_fork_after_threaded_work():
    program = """
        import os, signal, warnings
        warnings.simplefilter("ignore")
        import rushlight as torch
        torch.set_num_threads(4)
        x = torch.ones(1000000)
        for i in range(20):
            assert (x * 2).sum().item() == 2000000
            child = os.fork()
            if child == 0:
                signal.alarm(20)
                y = torch.ones(300, 300)
                ok = (x + i).sum().item() == 1000000 * (1 + i) and (y @ y).sum().item() == 27000000
                os._exit(0 if ok else 1)
            assert os.waitpid(child, 0)[1] == 0, i
        print("done")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(torch.__file__))},
    )
    assert done.returncode == 0 and done.stdout == "done\n", done.stderr


@pytest.mark.parametrize(("name", "tensors"), [("add", 1), ("sub", 1), ("addcmul", 2), ("addcdiv", 2)])
def test_older_signatures_with_the_number_first(name, tensors):
    x, others = torch.tensor([1.0, 2.0]), [torch.tensor([3.0, 5.0])] * tensors
    keyword = "alpha" if tensors == 1 else "value"
    want = getattr(x, name)(*others, **{keyword: 2})
    with pytest.warns(UserWarning, match="deprecated"):
        assert torch.equal(getattr(x, name)(2, *others), want)
    with pytest.warns(UserWarning, match="deprecated"):
        assert torch.equal(getattr(torch, name)(x, 2, *others), want)
    with pytest.warns(UserWarning, match="deprecated"):
        assert getattr(x, name + "_")(2, *others) is x
    assert torch.equal(x, want)


def test_operators_refuse_what_they_do_not_mean():
    with pytest.raises(TypeError):
        operator.add(torch.Size([2]), [3])
    with pytest.raises(TypeError):
        pow(torch.tensor([2]), 3, 5)
    with pytest.raises(TypeError, match="float32"):
        ~torch.tensor([1.0])
    with pytest.raises(RuntimeError):
        +torch.tensor([True])
    x = torch.tensor([1.0])
    assert +x is x and operator.add(torch.Size([2]), (3,)) == (2, 3) and pow(torch.tensor([2]), 3).tolist() == [8]


def test_complex_numbers_without_an_imaginary_part_are_real():
    assert float(torch.tensor(1.5 + 0j)) == 1.5 and int(torch.tensor([2 + 0j])) == 2
    for convert in (float, int):
        with pytest.raises(RuntimeError, match="complex"):
            convert(torch.tensor(1j))
