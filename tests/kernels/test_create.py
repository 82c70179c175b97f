"""arange, linspace, logspace, eye and triangle indices against PyTorch, to the bit where it says so."""

from __future__ import annotations

import ctypes

import pytest

pytest.importorskip("torch")

from kernel_ctypes import DTYPES, KernelError, call, lib, torch, with_threads

NUMBERS = [d for d in DTYPES if d != torch.bool]
REAL_NUMBERS = [d for d in NUMBERS if not d.is_complex]
lib.rl_triangle_count.restype = ctypes.c_int64


def number(value):
    if isinstance(value, int):
        return torch.tensor(value, dtype=torch.int64)
    return torch.tensor(value, dtype=torch.complex128 if isinstance(value, complex) else torch.float64)


def arange_count(start, end, step):
    count = ctypes.c_int64(-1)
    call("arange_count", number(start), number(end), number(step), ctypes.byref(count))
    return count.value


def same_bits(a, b):
    return torch.equal(torch.clone(a, memory_format=torch.contiguous_format).view(torch.uint8), b.view(torch.uint8))


@pytest.fixture(autouse=True)
def one_torch_thread():
    # PyTorch's blocks begin anew in every thread.
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("dtype", REAL_NUMBERS)
@pytest.mark.parametrize("n", [0, 1, 7, 8, 15, 16, 31, 32, 33, 100, 4099, 70_001])
def test_arange(dtype, n):
    generator = torch.Generator().manual_seed(n)
    for _ in range(3):
        if dtype.is_floating_point:
            start, step = torch.randn(2, dtype=torch.float64, generator=generator).tolist()
            start *= 10
            end = start + step * (n - 0.5) if n else start
        else:
            start, step = 3, 1 + int(torch.randint(3, (), generator=generator))
            end = start + step * n
        expected = torch.arange(
            start,
            end,
            step,
            dtype=torch.int64 if dtype not in (torch.int64,) and not dtype.is_floating_point else dtype,
        ).to(dtype)
        assert arange_count(start, end, step) == n
        for threads in (1, 3):
            out = torch.zeros(n, dtype=dtype)
            with_threads(threads, lambda out=out, a=start, b=step: call("arange", number(a), number(b), out))
            assert same_bits(out, expected)
        spaced = torch.zeros(2 * n, dtype=dtype)[::2]
        call("arange", number(start), number(step), spaced)
        assert same_bits(spaced, expected)


def test_arange_of_large_integers():
    out = torch.zeros(3, dtype=torch.int64)
    call("arange", number(2**62 + 1), number(2**60 + 1), out)
    assert out.tolist() == [2**62 + 1, 2**62 + 1 + 2**60 + 1, 2**62 + 1 + 2 * (2**60 + 1)]
    assert arange_count(-(2**63), 2**63 - 1, 2**62) == 4
    assert arange_count(2**53, 2**53 + 3, 1) == 3


@pytest.mark.parametrize(("start", "end", "step"), [
    (0.1, 0.5, 0.05), (0, 1, 0.1), (5, 0, -2), (5, 0, -2.5), (0, 0, 1), (1.5, 1.5, -1), (0, 10, 3), (0, -10, -3),
])  # fmt: skip
def test_arange_count(start, end, step):
    assert arange_count(start, end, step) == len(torch.arange(start, end, step))


@pytest.mark.parametrize(("numbers", "message"), [
    ((0, 1, 0), "step must be nonzero"),
    ((0.0, 1.0, 0.0), "step must be nonzero"),
    ((0, 5, -1), "upper bound and lower bound inconsistent with step sign"),
    ((0.0, -5.0, 1.0), "upper bound and lower bound inconsistent with step sign"),
    ((0.0, float("inf"), 1.0), "unsupported range: 0 -> inf"),
    ((float("nan"), 1.0, 1.0), "unsupported range"),
    ((0.0, 1e300, 1e-10), "invalid size, possible overflow"),
    ((-(2**63), 2**63 - 1, 1), "invalid size, possible overflow"),
])  # fmt: skip
def test_arange_count_errors(numbers, message):
    with pytest.raises(KernelError, match=message) as error:
        arange_count(*numbers)
    assert error.value.kind is RuntimeError


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("n", [0, 1, 2, 3, 16, 100, 1001, 70_001])
def test_linspace(dtype, n):
    generator = torch.Generator().manual_seed(n)
    for _ in range(3):
        if dtype.is_complex:
            start, end = (complex(*torch.randn(2, dtype=torch.float64, generator=generator).tolist()) for _ in range(2))
        elif dtype.is_floating_point:
            start, end = torch.randn(2, dtype=torch.float64, generator=generator).tolist()
        else:
            start, end = torch.randint(0, 100, (2,), generator=generator).tolist()
        expected = torch.linspace(start, end, n, dtype=dtype)
        for threads in (1, 3):
            out = torch.zeros(n, dtype=dtype)
            with_threads(threads, lambda out=out, a=start, b=end: call("linspace", number(a), number(b), out))
            if dtype.is_complex:
                torch.testing.assert_close(out, expected, rtol=1e-6, atol=1e-7)
            else:
                assert same_bits(out, expected)
        spaced = torch.zeros(2 * n, dtype=dtype)[::2]
        call("linspace", number(start), number(end), spaced)
        assert same_bits(spaced, out)


def test_linspace_meets_its_ends():
    out = torch.zeros(11)
    call("linspace", number(0.1), number(0.7), out)
    assert out[0] == torch.tensor(0.1)
    assert out[-1] == torch.tensor(0.7)


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("base", [2.0, 10.0, 0.5])
def test_logspace(dtype, base):
    for n in (0, 1, 2, 17, 5000):
        start, end = (complex(0.1, 0.2), complex(1.5, -0.3)) if dtype.is_complex else (0, 2)
        expected = torch.logspace(start, end, n, base, dtype=dtype)
        out = torch.zeros(n, dtype=dtype)
        call("logspace", number(start), number(end), base, out)
        tolerance = {torch.float16: 0, torch.bfloat16: 0, torch.float32: 2e-7, torch.complex64: 1e-6}
        rtol = tolerance.get(dtype, 1e-12)
        torch.testing.assert_close(
            out, expected, rtol=rtol, atol=0 if dtype.is_floating_point or dtype.is_complex else 1
        )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(0, 0), (1, 1), (3, 5), (5, 3), (300, 200)])
def test_eye(dtype, shape):
    out = torch.ones(shape, dtype=dtype)
    call("eye", out)
    assert torch.equal(out, torch.eye(*shape, dtype=dtype))
    out = torch.ones(shape[::-1], dtype=dtype).t()
    call("eye", out)
    assert torch.equal(out, torch.eye(*shape, dtype=dtype))


@pytest.mark.parametrize("upper", [False, True])
def test_triangle_indices(upper):
    make = torch.triu_indices if upper else torch.tril_indices
    for rows in range(5):
        for columns in range(5):
            for diagonal in range(-6, 7):
                expected = make(rows, columns, diagonal)
                count = lib.rl_triangle_count(
                    ctypes.c_int64(rows), ctypes.c_int64(columns), ctypes.c_int64(diagonal), ctypes.c_int(upper)
                )
                assert count == expected.shape[1]
                for dtype in (torch.int64, torch.int32):
                    out = torch.zeros(2, count, dtype=dtype)
                    call("triangle_indices", rows, columns, diagonal, upper, out)
                    assert torch.equal(out, expected.to(dtype))
    assert lib.rl_triangle_count(ctypes.c_int64(3), ctypes.c_int64(3), ctypes.c_int64(2**62), ctypes.c_int(0)) == 9
    assert lib.rl_triangle_count(ctypes.c_int64(3), ctypes.c_int64(3), ctypes.c_int64(-(2**63)), ctypes.c_int(1)) == 9


def test_errors():
    with pytest.raises(KernelError, match="arange: expected a real number dtype, got bool"):
        call("arange", number(0), number(1), torch.zeros(3, dtype=torch.bool))
    with pytest.raises(KernelError, match="expected an output of 1 dimension"):
        call("linspace", number(0), number(1), torch.zeros(3, 3))
