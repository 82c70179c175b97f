"""Files made to do harm: no code runs, no memory outside a storage is reached, no memory is taken without measure."""

from __future__ import annotations

import builtins
import io
import os
import pickle
import struct
import sys
import time
import zipfile
from typing import Any

import pytest
from checkpoints import Call, Name, Stored, archive, checkpoint, loaded, pickled, saved, tensor_call

import rushlight

ERRORS = (RuntimeError, pickle.UnpicklingError)


class Runs:
    """Pickles as a call of any function."""

    def __init__(self, function: Any, *args: Any) -> None:
        self.function, self.args = function, args

    def __reduce__(self) -> Any:
        return self.function, self.args


MARKER = "rushlight-was-here"
ATTACKS = {
    "os.system": (lambda path: Runs(os.system, f"touch {path}"), r"(posix|nt)\.system"),
    "eval": (lambda path: Runs(eval, f"open({str(path)!r}, 'w')"), r"builtins\.eval"),
    "exec": (lambda path: Runs(exec, f"open({str(path)!r}, 'w')"), r"builtins\.exec"),
    "open": (lambda path: Runs(open, str(path), "w"), r"(io|_io|builtins)\.open"),
    "getattr": (lambda path: Runs(getattr, "text", "upper"), r"builtins\.getattr"),
    "import": (lambda path: Runs(builtins.__import__, "this"), r"builtins\.__import__"),
    "nested": (lambda path: {"a": [Runs(list, (Runs(os.system, f"touch {path}"),))]}, r"(posix|nt)\.system"),
    "popen": (lambda path: Runs(os.popen, f"touch {path}"), r"os\.popen"),
}


@pytest.mark.parametrize("weights_only", [True, False, None])
@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
@pytest.mark.parametrize("attack", ATTACKS)
def test_code_is_refused_by_name(attack, protocol, weights_only, tmp_path):
    make, name = ATTACKS[attack]
    path = tmp_path / MARKER
    data = archive(pickle.dumps({"model": make(path), "more": [make(path)]}, protocol))
    with pytest.raises(pickle.UnpicklingError, match=name):
        loaded(data, weights_only=weights_only)
    assert not path.exists()


def test_all_refused_names_are_listed():
    data = archive(pickle.dumps([Runs(os.system, "true"), Runs(eval, "1"), Runs(os.popen, "true")]))
    with pytest.raises(pickle.UnpicklingError, match=r"(posix|nt)\.system, builtins\.eval, os\.popen"):
        loaded(data)


def test_allowing_a_name_of_a_blocked_module_does_not_help():
    with rushlight.serialization.safe_globals([os.system]), pytest.raises(ValueError, match="never allowed"):
        loaded(saved(1))


def test_old_format_runs_no_code_either(tmp_path):
    head = pickle.dumps(0x1950A86A20F9469CFC6C, 2) + pickle.dumps(1001, 2) + pickle.dumps({"little_endian": True}, 2)
    data = head + pickle.dumps(Runs(os.system, f"touch {tmp_path / MARKER}"), 2) + pickle.dumps([], 2)
    with pytest.raises(pickle.UnpicklingError, match=r"(posix|nt)\.system"):
        loaded(data)
    data = pickle.dumps(Runs(os.system, f"touch {tmp_path / MARKER}"), 2)
    with pytest.raises(pickle.UnpicklingError, match=r"(posix|nt)\.system"):
        loaded(data)
    assert not (tmp_path / MARKER).exists()


BAD_TENSORS = {
    "offset": {"offset": 1},
    "huge offset": {"offset": 1 << 62},
    "offset over 64 bits": {"offset": 1 << 80},
    "negative offset": {"offset": -1},
    "size": {"size": (3, 3)},
    "huge size": {"size": (1 << 40, 1 << 40)},
    "size with overflow": {"size": (1 << 33, 1 << 33), "stride": (0, 0)},
    "negative size": {"size": (-2, -3)},
    "stride": {"stride": (4, 1)},
    "huge stride": {"stride": (1 << 62, 1)},
    "wrapping stride": {"stride": ((1 << 64) - 3, 1)},
    "negative stride": {"stride": (-3, 1), "offset": 3},
    "too few strides": {"stride": (1,)},
    "sizes that are not ints": {"size": (2.0, 3)},
    "a size that is not a tuple": {"size": "23"},
    "no size": {"size": None},
    "65 dims": {"size": (1,) * 65, "stride": (1,) * 65},
    "wrong dtype": {"storage": "DoubleStorage", "numel": 6},
    "numel": {"numel": 7},
    "negative numel": {"numel": -6},
    "huge numel": {"numel": 1 << 59},
    "numel over 64 bits": {"numel": 1 << 100},
    "key outside the archive": {"key": "../../version"},
}


@pytest.mark.parametrize("case", BAD_TENSORS)
def test_tensors_that_leave_their_storage(case):
    with pytest.raises(ERRORS):
        loaded(archive(pickled(tensor_call(**BAD_TENSORS[case])), {"0": bytes(24)}))


def test_tensors_at_the_edge_of_their_storage_are_fine():
    good = (
        {"offset": 5, "size": (1, 1), "stride": (100, 100)},
        {"offset": 3, "size": (3,), "stride": (1,)},
        {"size": (0, 9)},
    )
    for case in good:
        assert tuple(loaded(archive(pickled(tensor_call(**case)), {"0": bytes(24)})).shape) == case["size"]


def test_a_storage_used_with_two_sizes_stays_within_bounds():
    whole = tensor_call(numel=6)
    more = tensor_call(numel=600, size=(600,), stride=(1,))
    with pytest.raises(ERRORS):
        loaded(archive(pickled([whole, more]), {"0": bytes(24)}))


STRANGE = {
    "calls a tensor": Call(Name("torch", "Tensor"), 3),
    "calls a dtype": Call(Name("torch", "float32")),
    "calls a storage type": Call(Name("torch", "FloatStorage"), 10),
    "bytearray of a size": Call(Name("__builtin__", "bytearray"), 1 << 40),
    "bytes of a size": Call(Name("__builtin__", "bytes"), 1 << 40),
    "list of a range": Call(Name("__builtin__", "list"), Call(Name("__builtin__", "xrange"), 0, 1 << 60, 1)),
    "codec": Call(Name("_codecs", "encode"), "x", "rot13"),
    "fraction": Call(Name("fractions", "Fraction"), "1e99999999"),
    "defaultdict": Call(Name("collections", "defaultdict"), Name("torch", "device")),
    "unhashable key": {(1, "a"): 2, ("x", "y"): Call(Name("__builtin__", "set"), [[]])},
    "storage without tuple": Stored("storage"),
    "storage of another kind": Stored("module", 1, 2, 3, 4),
    "storage with a name": Stored("storage", "FloatStorage", "0", "cpu", 6),
    "device": Call(Name("torch", "device"), "nonsense"),
    "location": Call(Name("torch._utils", "_rebuild_parameter"), 3, True, None),
    "rebuild of a list": Call(Name("torch._utils", "_rebuild_tensor_v2"), [1], 0, (1,), (1,), False, None),
    "unknown location": Call(
        Name("torch._utils", "_rebuild_tensor_v2"),
        Stored("storage", Name("torch", "FloatStorage"), "0", "tape:3", 6),
        0,
        (6,),
        (1,),
        False,
        None,
    ),
    "dtype of numpy": Call(Name("numpy", "dtype"), "O8", False, True),
    "dtype list of numpy": Call(Name("numpy", "dtype"), [("a", "f4")], False, True),
    "scalar of numpy": Call(Name("numpy.core.multiarray", "scalar"), Call(Name("numpy", "dtype"), "f8"), b"123"),
}


@pytest.mark.parametrize("case", STRANGE)
def test_strange_requests(case):
    with pytest.raises(ERRORS):
        loaded(archive(pickled({"x": STRANGE[case]}), {"0": bytes(24)}))


def test_attributes_cannot_be_set_on_just_anything():
    for target in (
        Name("torch._utils", "_rebuild_tensor_v2"),
        Name("torch", "float32"),
        Name("collections", "OrderedDict"),
        [1],
    ):
        data = (
            pickle.PROTO
            + b"\x02"
            + pickled(target)[2:-1]
            + pickled({"__defaults__": (1,)})[2:-1]
            + pickle.BUILD
            + pickle.STOP
        )
        with pytest.raises(pickle.UnpicklingError):
            loaded(archive(data))
    namespace = pickled(Call(Name("argparse", "Namespace")))[2:-1] + pickled({"__class__": 1})[2:-1] + pickle.BUILD
    with pytest.raises(ERRORS, match="__class__"):
        loaded(archive(pickle.PROTO + b"\x02" + namespace + pickle.STOP))


def test_numpy_states_that_do_not_fit():
    import numpy as np

    build = Name("numpy.core.multiarray", "_reconstruct")
    for state in (
        (1, (10,), Call(Name("numpy", "dtype"), "f8"), False, b"short"),
        (1, (-1,), Call(Name("numpy", "dtype"), "f8"), False, bytes(8)),
        (1, (1 << 60, 8), Call(Name("numpy", "dtype"), "f8"), False, b""),
        (1, (1,), 3, False, b"x"),
        (1, (1,)),
    ):
        array = pickled(Call(build, Name("numpy", "ndarray"), (0,), b"b"))[2:-1]
        with pytest.raises(ERRORS):
            loaded(archive(pickle.PROTO + b"\x02" + array + pickled(state)[2:-1] + pickle.BUILD + pickle.STOP))
    with pytest.raises(pickle.UnpicklingError, match=r"Python objects|numpy\.dtype"):
        loaded(archive(pickle.dumps(np.array([object], dtype=object), 2)))
    with pytest.raises(pickle.UnpicklingError):
        loaded(archive(pickle.dumps(np.zeros(1, [("a", "f4")]), 2)))


def test_declared_lengths_beyond_the_file():
    for opcode, size in (
        (b"X", "<I"),
        (b"B", "<I"),
        (b"T", "<i"),
        (b"\x8d", "<Q"),
        (b"\x8e", "<Q"),
        (b"\x96", "<Q"),
        (b"\x8b", "<i"),
    ):
        data = b"\x80\x05" + opcode + struct.pack(size, 0x7FFFFFFF) + b"x" * 20
        with pytest.raises(pickle.UnpicklingError, match="truncated at byte"):
            loaded(archive(data))
    with pytest.raises(pickle.UnpicklingError):
        loaded(archive(b"\x80\x02T" + struct.pack("<i", -5) + b"xxxxxxx."))


def test_large_memo_indices_take_no_memory():
    data = b"\x80\x02K\x01r" + struct.pack("<I", 0xFFFFFFFF) + b"0j" + struct.pack("<I", 0xFFFFFFFF) + b"."
    assert loaded(archive(data)) == 1


@pytest.mark.parametrize("opcodes", [b"]" * 200_000 + b"a" * 199_999, b")" + b"\x85" * 200_000, b"(" * 200_000])
def test_deep_nesting(opcodes):
    try:
        loaded(archive(b"\x80\x02" + opcodes + b"."))
    except pickle.UnpicklingError:
        pass


@pytest.mark.parametrize(
    "use", [b"}%sNs", b"(%s\x91", b"c__builtin__\nset\n](%se\x85R", b"c__builtin__\nfrozenset\n](%se\x85R"]
)
def test_keys_nested_deep_or_doubling(use):
    start = time.monotonic()
    for key in (b")" + b"\x85" * 200_000, b")" + b"2\x86" * 60):
        with pytest.raises(pickle.UnpicklingError, match="nested too deeply"):
            loaded(archive(b"\x80\x02" + use.replace(b"%s", key) + b"."))
    assert time.monotonic() - start < 20


@pytest.mark.parametrize("seed", range(20))
def test_random_pickles_end_in_an_error_or_data(seed):
    import random

    rng = random.Random(seed)
    base = bytearray(pickle.dumps(checkpoint_like(), seed % 6))
    for _ in range(100):
        data = bytearray(base)
        for _ in range(rng.randrange(1, 6)):
            action = rng.randrange(3)
            at = rng.randrange(len(data))
            if action == 0:
                data[at] = rng.randrange(256)
            elif action == 1:
                del data[at : at + rng.randrange(1, 9)]
            else:
                data[at:at] = rng.randbytes(rng.randrange(1, 5))
        try:
            loaded(archive(bytes(data)), weights_only=bool(seed % 2))
        except (*ERRORS, UserWarning):
            pass


def checkpoint_like() -> Any:
    return {"a": [1, 2.5, None, "text", b"bytes"], "b": {1: (True, {2, 3})}, "c": complex(1, 2), "d": 1 << 90}


def rewritten(data: bytes, change: Any) -> bytes:
    changed = bytearray(data)
    change(changed)
    return bytes(changed)


def test_two_records_of_one_name():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as zipped:
        zipped.writestr("archive/data.pkl", pickle.dumps(1, 2))
        with pytest.warns(UserWarning, match="Duplicate name"):
            zipped.writestr("archive/data.pkl", pickle.dumps(2, 2))
    with pytest.raises(RuntimeError, match=r"two records are named 'archive/data\.pkl'"):
        loaded(file.getvalue())


def test_records_that_overlap():
    data = saved(rushlight.zeros(4))
    second = data.rindex(b"PK\x01\x02", 0, data.rindex(b"PK\x01\x02"))

    def move(changed: bytearray) -> None:
        struct.pack_into("<I", changed, second + 42, 0)

    with pytest.raises(RuntimeError, match=r"overlaps|another header"):
        loaded(rewritten(data, move))


def test_bombs():
    start = time.monotonic()
    bomb = archive(pickle.dumps(0, 2), {"0": bytes(1 << 26)}, compression=zipfile.ZIP_DEFLATED)
    assert len(bomb) < 1 << 17
    with pytest.raises(RuntimeError, match="would grow from"):
        loaded(bomb)
    pickled_bomb = archive(b"\x80\x02" + b"N0" * (1 << 24) + b"N.", compression=zipfile.ZIP_DEFLATED)
    with pytest.raises(RuntimeError, match="would grow from"):
        loaded(pickled_bomb)
    assert time.monotonic() - start < 20


def test_a_directory_that_promises_too_much():
    data = saved(checkpoint())
    end = data.rindex(b"PK\x05\x06")
    for count, size, offset in (
        (0xFFFE, 100, 0),
        (1, 1 << 31, 0),
        (1, 100, 1 << 31),
        (5, 46, 0),
        (0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF),
    ):
        changed = bytearray(data)
        struct.pack_into("<2H2I", changed, end + 8, count, count, size, offset)
        with pytest.raises(RuntimeError, match=r"damaged|truncated"):
            loaded(bytes(changed))


def test_numbers_with_many_digits_are_refused_quickly():
    start = time.monotonic()
    for data in (
        b"I" + b"9" * 1_000_000 + b"\n.",
        b"L" + b"9" * 1_000_000 + b"L\n.",
        b"F1" + b"0" * 1_000_000 + b"\n.",
    ):
        try:
            loaded(archive(data))
        except pickle.UnpicklingError:
            pass
    assert time.monotonic() - start < 20


def test_nothing_of_the_file_is_imported():
    name = "antigravity"
    assert name not in sys.modules
    with pytest.raises(pickle.UnpicklingError, match="antigravity"):
        loaded(archive(pickled(Name(name, "x"))))
    assert name not in sys.modules
