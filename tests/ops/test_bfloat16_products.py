"""Products of bfloat16 matrices: each kernel that the processor has against NumPy's float64, in every layout.

Run as a program it checks the kernels of the level that RUSHLIGHT_CPU_LEVEL names, and prints the level in use.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import rushlight as rl

SIZES = [
    (1, 600, 70), (600, 1, 64), (600, 1, 65), (17, 33, 65), (64, 64, 64), (16, 16, 33), (31, 15, 512), (128, 256, 256),
    (300, 520, 1100), (1100, 40, 513), (530, 270, 1056),
]  # fmt: skip


def matrix(*shape: int, seed: int = 0) -> rl.Tensor:
    return rl.from_numpy(np.random.default_rng(seed).standard_normal(shape)).to(rl.bfloat16)


def layouts(x: rl.Tensor) -> list[rl.Tensor]:
    *batch, m, n = x.shape
    spread = rl.zeros(*batch, 2 * m, 3 * n, dtype=x.dtype)
    spread[..., ::2, ::3] = x
    return [x, x.mT.contiguous().mT, spread[..., ::2, ::3]]


def check(got: rl.Tensor, want: np.ndarray, magnitude: np.ndarray) -> None:
    """Rounded once to 8 bits, after a sum in float32."""
    assert (np.abs(got.double().numpy() - want) <= 2.0**-8 * np.abs(want) + 1e-5 * magnitude).all()


def check_products() -> None:
    for m, n, k in SIZES:
        a, b, c = matrix(m, k), matrix(k, n, seed=1), matrix(m, n, seed=2)
        x, y, z = (t.double().numpy() for t in (a, b, c))
        first = a @ b
        check(first, x @ y, np.abs(x) @ np.abs(y))
        magnitude = 3 * (np.abs(x) @ np.abs(y)) + np.abs(z)
        pairs = itertools.product(layouts(a), layouts(b))
        for (left, right), add in zip(pairs, itertools.cycle(layouts(c)), strict=False):
            assert rl.equal(left @ right, first)
            check(rl.addmm(add, left, right, beta=2, alpha=-3), 2 * z - 3 * x @ y, magnitude)
            for out in layouts(rl.zeros(m, n, dtype=rl.bfloat16)):
                assert rl.equal(rl.mm(left, right, out=out), first)


def test_each_kernel_in_every_layout() -> None:
    used = []
    for level in ("amx", "avx512", "avx2"):
        done = subprocess.run(
            [sys.executable, __file__], env={**os.environ, "RUSHLIGHT_CPU_LEVEL": level}, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        used.append(done.stdout.strip())
    assert used[-1] in ("avx2", "default", "neon")


@pytest.mark.parametrize("size", [(20, 40, 36), (130, 70, 96)])
def test_batches_have_the_bits_of_their_matrices(size: tuple[int, int, int]) -> None:
    m, n, k = size
    a, b, c = matrix(3, 2, m, k), matrix(3, 1, k, n, seed=1), matrix(3, 2, m, n, seed=2)
    for left, right in itertools.product(layouts(a), layouts(b)):
        got = left @ right
        for i, j in itertools.product(range(3), range(2)):
            assert rl.equal(got[i, j], a[i, j] @ b[i, 0])
    got = rl.baddbmm(c[:, 0], a[:, 0], b[:, 0], beta=0.5)
    for i in range(3):
        assert rl.equal(got[i], rl.addmm(c[i, 0], a[i, 0], b[i, 0], beta=0.5))


def test_neither_threads_nor_position_change_the_bits() -> None:
    a, b = matrix(700, 640), matrix(640, 300, seed=1)
    want, threads = a @ b, rl.get_num_threads()
    assert rl.equal(a[33:90] @ b[:, 17:100], want[33:90, 17:100])
    try:
        for count in (1, 2, 3):
            rl.set_num_threads(count)
            assert rl.equal(a @ b, want)
    finally:
        rl.set_num_threads(threads)
    others: list[rl.Tensor] = []
    workers = [threading.Thread(target=lambda: others.append(a @ b)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(others) == 3 and all(rl.equal(other, want) for other in others)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_forked_process_multiplies_too() -> None:
    program = (
        "import os, rushlight as rl\n"
        "a = rl.ones(300, 300, dtype=rl.bfloat16); want = a @ a\n"
        "child = os.fork()\n"
        "if child == 0: os._exit(0 if rl.equal(a @ a, want) and want[0, 0] == 300 else 1)\n"
        "raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


def test_numbers_that_are_not_finite_stay_in_their_rows() -> None:
    a, b = matrix(40, 70), matrix(70, 50, seed=1)
    a[3, 5], a[7, 69] = float("inf"), float("nan")
    bad = ~(a @ b).isfinite()
    assert bad[3].all() and bad[7].all() and bad.sum() == 2 * 50


if __name__ == "__main__":
    check_products()
    print(rl._C._cpu_level())
