"""The generator by itself: seeds, states, known numbers, refusals, the same bits on every instruction set."""

from __future__ import annotations

import ctypes
import hashlib
import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rl_random import STATE_BYTES, Failure, Generator, describe, load

LIB = load()
FLOAT_NAMES = ("float16", "float32", "float64")


def of(array: np.ndarray, dtype: str | None = None) -> Any:
    strides = tuple(step // array.itemsize for step in array.strides)
    return describe(array.ctypes.data, dtype or str(array.dtype), array.shape, strides)


def digest(*arrays: np.ndarray) -> str:
    return hashlib.sha256(b"".join(a.tobytes() for a in arrays)).hexdigest()[:16]


def draw_sample() -> str:
    """A digest of numbers that need no function of the C library's libm, from blocks large enough for threads."""
    generator = Generator(LIB, 2026)
    parts = []
    for n in (5, 16, 17, 1000, 150_001):
        for dtype in FLOAT_NAMES:
            out = np.zeros(n, dtype)
            generator.call("uniform", -1.5, 2.25, of(out))
            parts.append(out.copy())
        out = np.zeros(n, np.uint16)
        generator.call("uniform", -1.5, 2.25, of(out, "bfloat16"))
        parts.append(out.copy())
        out = np.zeros(n, np.int64)
        for bounds in ((0, 10), (-5, 2**20), (0, 2**40 + 1)):
            generator.call("integers_between", *bounds, of(out))
            parts.append(out.copy())
        generator.call("permutation", of(out))
        parts.append(out.copy())
        flags = np.zeros(n, np.bool_)
        generator.call("bernoulli", 0.3, of(flags))
        parts.append(flags.copy())
        if n >= 16:
            out = np.zeros(n, np.float32)
            generator.call("normal", 0.5, 2.0, of(out))
            parts.append(out.copy())
    return digest(*parts, np.frombuffer(generator.state(), np.uint8))


def draw_libm_sample() -> str:
    """The same for numbers made with libm's functions, whose bits may depend on its version."""
    generator = Generator(LIB, 2026)
    parts = []
    for n in (5, 16, 1000, 150_001):
        for dtype in ("float32", "float64"):
            for name, arguments in (
                ("normal", (0.5, 2.0)),
                ("log_normal", (0.5, 0.25)),
                ("exponential", (1.5,)),
                ("cauchy", (0.0, 1.0)),
                ("geometric", (0.1,)),
            ):
                out = np.zeros(n, dtype)
                generator.call(name, *arguments, of(out))
                parts.append(out.copy())
    return digest(*parts, np.frombuffer(generator.state(), np.uint8))


def test_the_twister_of_the_standard() -> None:
    """ISO C++ gives the 10000th number of mt19937 with its default seed."""
    generator = Generator(LIB, 5489)
    for _ in range(9999):
        LIB.rl_generator_random32(generator.handle)
    assert LIB.rl_generator_random32(generator.handle) == 4123659995


def test_the_words_are_numpys() -> None:
    legacy = np.random.RandomState(77)
    words = np.frombuffer(legacy.bytes(4 * 2000), np.uint32)
    generator = Generator(LIB, 77)
    assert [LIB.rl_generator_random32(generator.handle) for _ in range(1500)] == words[:1500].tolist()
    high, low = int(words[1500]), int(words[1501])
    assert LIB.rl_generator_random64(generator.handle) == high << 32 | low
    # In bulk: float32 takes the low 24 bits of a word.
    out = np.zeros(400, np.float32)
    generator.call("uniform", 0.0, 1.0, of(out))
    assert np.array_equal(out, (words[1502:1902] & 0xFFFFFF).astype(np.float32) / np.float32(2**24))


def test_recorded_numbers() -> None:
    assert draw_sample() == "5074fdceb00d1ed2"


LEVELS = ["default", "avx2", "avx512"]


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("level", LEVELS)
def test_every_instruction_set_and_thread_count_draws_the_same(level: str, threads: int) -> None:
    program = (
        f"import test_generator as t; t.LIB.rl_set_num_threads({threads}); "
        "print(t.LIB.rl_cpu_level().decode(), t.draw_sample(), t.draw_libm_sample())"
    )
    environment = {**os.environ, "RUSHLIGHT_CPU_LEVEL": level, "PYTHONPATH": str(Path(__file__).parent)}
    result = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=300
    )
    assert result.returncode == 0, result.stderr
    words = result.stdout.split()
    if words[0] != level:  # the library says so on stderr and uses its best
        pytest.skip(f"this machine has no {level}")
    assert words[1:] == [draw_sample(), draw_libm_sample()]


def test_seeds() -> None:
    first, second = Generator(LIB, 9), Generator(LIB, 9)
    assert first.state() == second.state()
    out = np.zeros(3)
    first.call("normal", 0.0, 1.0, of(out))
    assert first.state() != second.state()
    LIB.rl_generator_set_seed(first.handle, 9)  # also forgets the cached normal number
    assert first.state() == second.state()
    seed = ctypes.c_uint64()
    first.check(LIB.rl_generator_seed(first.handle, ctypes.byref(seed)))
    assert LIB.rl_generator_initial_seed(first.handle) == seed.value
    assert first.state() == Generator(LIB, seed.value).state()
    before = seed.value
    first.check(LIB.rl_generator_seed(first.handle, ctypes.byref(seed)))
    assert seed.value != before


def test_clones_are_equal_and_separate() -> None:
    generator = Generator(LIB, 4)
    out = np.zeros(3)
    generator.call("normal", 0.0, 1.0, of(out))
    clone = generator.clone()
    assert clone.state() == generator.state()
    clone.call("normal", 0.0, 1.0, of(out))
    assert clone.state() != generator.state()


def test_the_default_generator_is_the_null_generator() -> None:
    LIB.rl_default_generator.restype = ctypes.c_void_p
    handle = LIB.rl_default_generator()
    LIB.rl_generator_set_seed(None, 31)
    assert LIB.rl_generator_initial_seed(handle) == 31
    out, want = np.zeros(7, np.float32), np.zeros(7, np.float32)
    assert LIB.rl_random_uniform(None, ctypes.c_double(0), ctypes.c_double(1), ctypes.byref(of(out))) == 0
    Generator(LIB, 31).call("uniform", 0.0, 1.0, of(want))
    assert np.array_equal(out, want)


def test_bad_states_are_refused_and_change_nothing() -> None:
    generator = Generator(LIB, 6)
    good = generator.state()
    # seed, left, seeded, next
    for fields in (
        (6, 0, 1, 0),
        (6, 625, 1, 0),
        (6, -1, 1, 0),
        (6, 1, 0, 0),
        (6, 1, 1, 625),
        (6, 600, 1, 300),
        (6, 2, 1, 2**63),
    ):
        with pytest.raises(Failure, match="set_state: not the state of a Mersenne Twister"):
            generator.set_state(struct.pack("<QiiQ", *fields) + good[24:])
        assert generator.state() == good
    for size in (0, 5048, STATE_BYTES - 1, STATE_BYTES + 1):
        with pytest.raises(Failure, match=f"expected 5056 bytes, got {size}"):
            generator.set_state(bytes(size))
    generator.set_state(struct.pack("<QiiQ", 6, 1, 1, 624) + good[24:])  # a used-up block
    out = np.zeros(2000, np.float32)
    generator.call("uniform", 0.0, 1.0, of(out))
    assert np.unique(out).size > 1990


def test_strides_of_any_sign_write_only_their_elements() -> None:
    want = np.zeros(12, np.float32)
    Generator(LIB, 8).call("uniform", 0.0, 1.0, of(want))
    memory = np.full((4, 9), -1.0, np.float32)
    view = memory[::-1, 2:8:2]
    Generator(LIB, 8).call("uniform", 0.0, 1.0, of(view))
    assert np.array_equal(view.ravel(), want)
    assert (memory == -1).sum() == 36 - 12


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("uniform", (1.0, 0.0), "expected from <= to, got from=1 and to=0"),
        ("uniform", (NAN, 1.0), "from is out of range for float32"),
        ("uniform", (0.0, INF), "to is out of range for float32"),
        ("uniform", (-3e38, 3e38), "too wide for float32"),
        ("normal", (0.0, -1.0), "expected std >= 0, got -1"),
        ("normal", (0.0, NAN), "expected std >= 0, got nan"),
        ("log_normal", (0.0, 0.0), "expected std > 0, got 0"),
        ("exponential", (0.0,), "expected lambda > 0, got 0"),
        ("exponential", (NAN,), "expected lambda > 0, got nan"),
        ("cauchy", (0.0, 0.0), "expected sigma > 0, got 0"),
        ("geometric", (0.0,), "expected 0 < p < 1, got 0"),
        ("geometric", (1.0,), "expected 0 < p < 1, got 1"),
        ("bernoulli", (1.5,), "expected 0 <= p <= 1, got 1.5"),
        ("bernoulli", (NAN,), "expected 0 <= p <= 1, got nan"),
        ("dropout_mask", (1.0,), "expected 0 <= p < 1, got 1"),
        ("integers_between", (3, 3), "expected from < to, got from=3 and to=3"),
    ],
)
@pytest.mark.parametrize("n", [4, 0])
def test_parameters_out_of_range(name: str, arguments: tuple[Any, ...], text: str, n: int) -> None:
    generator = Generator(LIB, 1)
    before = generator.state()
    with pytest.raises(Failure, match=text) as failure:
        generator.call(name, *arguments, of(np.zeros(n, np.float32)))
    assert failure.value.status == "RUNTIME_ERROR"
    assert generator.state() == before


@pytest.mark.parametrize(
    ("name", "arguments", "dtypes"),
    [
        ("uniform", (0.0, 1.0), ("bool", "int64")),
        ("normal", (0.0, 1.0), ("uint8", "int32")),
        ("log_normal", (0.0, 1.0), ("int64", "complex64")),
        ("exponential", (1.0,), ("int64", "complex128")),
        ("cauchy", (0.0, 1.0), ("bool", "complex64")),
        ("geometric", (0.5,), ("bool", "complex64")),
        ("bernoulli", (0.5,), ("complex64",)),
        ("dropout_mask", (0.5,), ("int64", "complex64")),
        ("integers", (), ("complex64",)),
        ("integers_between", (0, 2), ("complex128",)),
        ("integers_from", (0,), ("complex64",)),
        ("permutation", (), ("bool", "complex64")),
    ],
)
def test_dtypes_that_have_no_such_numbers(name: str, arguments: tuple[Any, ...], dtypes: tuple[str, ...]) -> None:
    for dtype in dtypes:
        with pytest.raises(Failure, match=f"not defined for this dtype; expected .*, got {dtype}") as failure:
            Generator(LIB, 1).call(name, *arguments, of(np.zeros(4, dtype)))
        assert failure.value.status == "TYPE_ERROR"


def test_tensor_parameters_out_of_range() -> None:
    generator = Generator(LIB, 1)
    out = np.zeros(2, np.float32)
    for p in (-0.5, 1.5, NAN):
        with pytest.raises(Failure, match="expected 0 <= p <= 1"):
            generator.call("bernoulli_tensor", of(np.array([0.5, p], np.float32)), of(out))
    for rate in (-1.0, NAN, INF, 1e30):
        with pytest.raises(Failure, match="expected 0 <= rate <= 2\\^62"):
            generator.call("poisson", of(np.array([0.5, rate], np.float32)), of(out))
    index = np.zeros(3, np.int64)
    for weights, text in (
        ((1.0, -1.0), "got -1"),
        ((NAN, 1.0), "got nan"),
        ((INF, 1.0), "got inf"),
        ((0.0, 0.0), "sum to 0"),
    ):
        with pytest.raises(Failure, match=text):
            generator.call("multinomial", of(np.array(weights, np.float32)), of(index))
    with pytest.raises(Failure, match="there is no class to sample"):
        generator.call("multinomial", of(np.zeros(0, np.float32)), of(index))
    with pytest.raises(Failure, match=r"got \[2, 2\] with \[3\]"):
        generator.call("multinomial", of(np.ones((2, 2), np.float32)), of(index))
    with pytest.raises(Failure, match=r"expected a shape that fits \[2\], got \[3\]"):
        generator.call("bernoulli_tensor", of(np.full(3, 0.5, np.float32)), of(out))
    with pytest.raises(Failure, match="expected float32, got float64"):
        generator.call("poisson", of(np.ones(2)), of(out))


def test_binomial_ends_for_numbers_that_are_none() -> None:
    count = np.array([NAN, INF, 5.0, -1.0, 3.0], np.float64)
    prob = np.array([0.5, 0.5, NAN, 0.5, 2.0], np.float64)
    out = np.zeros(5)
    Generator(LIB, 1).call("binomial", of(count), of(prob), of(out))
    assert np.isnan(out[[0, 2]]).all()
    assert out[1:].tolist()[0] == INF
    assert out[3:].tolist() == [0.0, 3.0]


def test_an_expanded_output_is_refused() -> None:
    memory = np.zeros(1, np.float32)
    out = np.lib.stride_tricks.as_strided(memory, (4,), (0,))
    for name, arguments in (("uniform", (0.0, 1.0)), ("normal", (0.0, 1.0)), ("bernoulli", (0.5,)), ("integers", ())):
        with pytest.raises(Failure, match=r"several elements of out share one place in memory.* strides \[0\]"):
            Generator(LIB, 1).call(name, *arguments, of(out))
