"""Errors, memory, threads, forks."""

from __future__ import annotations

import os
import threading
import time
from functools import partial
from typing import Any

import numpy as np
from library import MEMORY_ERROR, VALUE_ERROR, Library, expect_error


def stats(lib: Library) -> Any:
    out = lib.ffi.new("rl_memory_stats*")
    lib.c.rl_memory_get_stats(out)
    return out


def check_blocks_are_distinct_and_aligned(lib: Library) -> None:
    rng = np.random.default_rng(0)
    held: dict[int, tuple[int, int]] = {}
    for step in range(20_000):
        if held and rng.random() < 0.5:
            address = list(held)[int(rng.integers(len(held)))]
            size, mark = held.pop(address)
            if size:
                block = np.frombuffer(lib.ffi.buffer(lib.ffi.cast("char*", address), size), np.uint8)
                assert block[0] == mark and block[-1] == mark
            lib.c.rl_deallocate(lib.ffi.cast("void*", address))
            continue
        size = int(rng.integers(0, 1 << int(rng.integers(1, 22))))
        pointer = lib.c.rl_allocate(size)
        address = int(lib.ffi.cast("uintptr_t", pointer))
        assert address % 64 == 0 and address not in held
        mark = step % 251
        if size:
            block = np.frombuffer(lib.ffi.buffer(lib.ffi.cast("char*", pointer), size), np.uint8)
            block[0] = block[-1] = mark
        held[address] = size, mark
    for address in held:
        lib.c.rl_deallocate(lib.ffi.cast("void*", address))


def check_memory_is_counted(lib: Library) -> None:
    lib.c.rl_memory_reset_peak()
    before = stats(lib)
    big = lib.c.rl_allocate(10 << 20)
    during = stats(lib)
    assert during.allocated_bytes - before.allocated_bytes >= 10 << 20
    assert during.allocated_blocks - before.allocated_blocks == 1
    assert during.reserved_bytes >= during.allocated_bytes
    lib.c.rl_deallocate(big)
    after = stats(lib)
    assert after.allocated_bytes == before.allocated_bytes
    assert after.peak_allocated_bytes >= before.allocated_bytes + (10 << 20)
    assert after.cached_blocks >= 1
    again = lib.c.rl_allocate(10 << 20)
    assert again == big, "a large block is reused"
    assert stats(lib).cache_hits > after.cache_hits
    lib.c.rl_deallocate(again)
    lib.c.rl_memory_empty_cache()
    assert stats(lib).reserved_bytes < after.reserved_bytes


def check_refusals(lib: Library) -> None:
    for size in (2**64 - 1, 2**62, 2**47, 2**44):
        assert lib.c.rl_allocate(size) == lib.ffi.NULL
        assert str(size) in lib.error() and "memory" in lib.error(), lib.error()
    lib.c.rl_memory_empty_cache()
    room = stats(lib).reserved_bytes + (32 << 20)
    lib.c.rl_memory_set_limit(room)
    try:
        assert lib.c.rl_allocate(64 << 20) == lib.ffi.NULL
        assert "limit" in lib.error() and str(room) in lib.error()
        small = lib.c.rl_allocate(8 << 20)
        assert small != lib.ffi.NULL
        lib.c.rl_deallocate(small)
    finally:
        lib.c.rl_memory_set_limit(0)
    block = lib.c.rl_allocate(64 << 20)
    assert block != lib.ffi.NULL
    lib.c.rl_deallocate(block)
    # A kernel that cannot get its scratch memory says so.
    a = lib.tensor(np.broadcast_to(np.float16(1), (2**22, 2**22)))
    out = lib.tensor(np.broadcast_to(np.float16(1), (2**22, 2**22)))
    call = partial(lib.matmul, a, a, None, lib.number(1), lib.number(0), out)
    expect_error(MEMORY_ERROR, "memory", call)


def check_blocks_move_between_threads(lib: Library) -> None:
    box: list[Any] = []
    before = stats(lib).allocated_bytes

    def produce() -> None:
        box.extend(lib.c.rl_allocate(100 + i % 5000) for i in range(5000))

    def consume() -> None:
        for block in box:
            lib.c.rl_deallocate(block)

    for work in (produce, consume):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert stats(lib).allocated_bytes == before


def parallel_sum(lib: Library, values: np.ndarray, block: int) -> float:
    sums = np.zeros((values.size + block - 1) // block)

    @lib.ffi.callback("void(void*, int64_t, int64_t)")
    def body(_context: Any, begin: int, end: int) -> None:
        sums[begin // block] += values[begin:end].sum()

    lib.c.rl_parallel_for(values.size, block, body, lib.ffi.NULL)
    return float(sums.sum())


def check_loops_of_several_threads(lib: Library) -> None:
    values = np.arange(10_000, dtype=np.float64)
    lib.set_num_threads(3)
    wrong: list[float] = []

    def work() -> None:
        for block in (1000, 333, 77, 10_000, 50_000):
            total = parallel_sum(lib, values, block)
            if total != values.sum():
                wrong.append(total)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, wrong


def check_nested_loops(lib: Library) -> None:
    lib.set_num_threads(4)
    totals = np.zeros(16)

    @lib.ffi.callback("void(void*, int64_t, int64_t)")
    def body(_context: Any, begin: int, end: int) -> None:
        for i in range(begin, end):
            totals[i] = parallel_sum(lib, np.ones(100), 7)

    lib.c.rl_parallel_for(16, 1, body, lib.ffi.NULL)
    assert (totals == 100).all()


def check_forks(lib: Library) -> None:
    """Threaded work, a fork, threaded work in the child: a hundred times."""
    lib.set_num_threads(4)
    x = np.ones((8, 16, 32, 32), np.float32)
    w = np.ones((16, 16, 3, 3), np.float32)
    out = np.zeros((8, 16, 30, 30), np.float32)
    params = lib.ffi.new("rl_conv_params*", {"stride": [1, 1], "padding": [0, 0], "dilation": [1, 1], "groups": 1})
    tensors = [lib.tensor(array) for array in (x, w, out)]

    def work() -> bool:
        out[:] = 0
        lib.conv(tensors[0], tensors[1], None, params, tensors[2])
        block = lib.c.rl_allocate(5000)
        lib.c.rl_deallocate(block)
        return bool((out == 144).all())

    for _ in range(100):
        assert work()
        child = os.fork()
        if child == 0:
            os._exit(0 if work() else 1)
        deadline = time.monotonic() + 20
        while True:
            pid, status = os.waitpid(child, os.WNOHANG)
            if pid:
                break
            if time.monotonic() > deadline:
                os.kill(child, 9)
                os.waitpid(child, 0)
                raise AssertionError("the child hangs")
            time.sleep(0.0005)
        assert status == 0, status


def check_idle_threads_sleep(lib: Library) -> None:
    lib.set_num_threads(4)
    parallel_sum(lib, np.ones(1000), 10)
    time.sleep(0.05)
    before = time.process_time()
    time.sleep(0.3)
    used = time.process_time() - before
    assert used < 0.03, f"{used:.3f} s of processor time while idle"


def check_thread_numbers(lib: Library) -> None:
    for wrong in (0, -1, 1 << 20):
        expect_error(VALUE_ERROR, str(wrong), partial(lib.set_num_threads, wrong))
    lib.set_num_threads(2)
    assert lib.c.rl_get_num_threads() == 2


def check_errors_are_of_their_thread(lib: Library) -> None:
    lib.c.rl_set_num_threads(0)
    mine = lib.error()
    theirs: list[str] = []
    thread = threading.Thread(target=lambda: theirs.append(lib.error()))
    thread.start()
    thread.join()
    assert mine and theirs == [""]
