"""What is saved comes back: every dtype, layout, kind of object, and the sharing of memory."""

from __future__ import annotations

import argparse
import collections
import datetime
import decimal
import fractions
import io
import pathlib
import pickle
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from checkpoints import DTYPES, assert_checkpoint, checkpoint, loaded, same, sample, saved, shares

import rushlight
from rushlight import serialization
from rushlight.storage import TypedStorage


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype(dtype, protocol):
    tensor = sample(dtype)
    same(loaded(saved(tensor, pickle_protocol=protocol)), tensor)


@pytest.mark.parametrize(
    "view",
    [
        lambda t: t,
        lambda t: t.t(),
        lambda t: t[1:, ::2],
        lambda t: t[:0],
        lambda t: t[1, 2],
        lambda t: t[:1].expand(4, 3),
        lambda t: t.unsqueeze(0).transpose(0, 2),
    ],
    ids=["whole", "transposed", "sliced", "empty", "0-dim", "expanded", "3-dim"],
)
def test_every_layout(view):
    tensor = view(sample("float32"))
    found = loaded(saved(tensor))
    same(found, tensor)
    assert found.stride() == tensor.stride()


def test_only_the_span_used_is_written():
    base = rushlight.arange(1_000_000, dtype=rushlight.float32)
    data = saved(base[500_000:500_010])
    assert len(data) < 2000
    found = loaded(data)
    assert found.tolist() == list(range(500_000, 500_010))
    assert found.untyped_storage().nbytes() == 40
    assert found.storage_offset() == 0


def test_tensors_saved_together_share_one_span():
    base = rushlight.arange(1000, dtype=rushlight.float64)
    data = saved([base[100:110], base[105:120:3], base[100:110]])
    a, b, c = loaded(data)
    assert a.untyped_storage().nbytes() == (118 - 100) * 8  # elements 100 to 117
    assert shares(a, b)
    a[5] = -1
    assert b[0].item() == -1
    assert c[5].item() == -1
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert [name for name in archive.namelist() if "/data/" in name] == ["archive/data/0"]


def test_one_tensor_twice_comes_back_as_one_object():
    tensor = rushlight.ones(2)
    a, b = loaded(saved([tensor, tensor]))
    assert a is b


def test_sharing_under_two_dtypes():
    tensor = rushlight.arange(8, dtype=rushlight.float32)
    integers, floats = loaded(saved([tensor[3:5].view(rushlight.int32), tensor[2:7]]))
    same(floats, tensor[2:7])
    same(integers, tensor[3:5].view(rushlight.int32))
    assert shares(integers, floats)


def test_equal_contents_make_equal_files():
    assert saved(checkpoint()) == saved(checkpoint())


def test_parameters_and_grad():
    parameter = rushlight.nn.Parameter(rushlight.ones(2))
    frozen = rushlight.nn.Parameter(rushlight.ones(3), requires_grad=False)
    leaf = rushlight.ones(4, requires_grad=True)
    found = loaded(saved([parameter, frozen, leaf]))
    assert [type(t) for t in found] == [rushlight.nn.Parameter, rushlight.nn.Parameter, rushlight.Tensor]
    assert [t.requires_grad for t in found] == [True, False, True]
    assert all(t.is_leaf for t in found)


def test_tied_parameters_stay_tied():
    weight = rushlight.nn.Parameter(rushlight.ones(2, 2))
    found = loaded(saved({"a": weight, "b": weight.detach(), "c": weight.data}))
    assert shares(found["a"], found["b"])
    assert shares(found["a"], found["c"])


def test_attributes_of_tensors_are_kept():
    tensor = rushlight.ones(2)
    tensor.note = {"unit": "m"}
    parameter = rushlight.nn.Parameter(rushlight.ones(2))
    parameter.rank = 3
    a, b = loaded(saved([tensor, parameter]))
    assert a.note == {"unit": "m"}
    assert b.rank == 3


def test_meta_tensors():
    found = loaded(saved(rushlight.empty(2, 3, device="meta", dtype=rushlight.float16)))
    assert found.device.type == "meta"
    assert (tuple(found.shape), found.dtype) == ((2, 3), rushlight.float16)


def test_storages():
    tensor = rushlight.arange(4, dtype=rushlight.int16)
    storage, again = loaded(saved([tensor.untyped_storage(), tensor]))
    assert type(storage) is rushlight.UntypedStorage
    assert storage.nbytes() == 8
    assert storage.data_ptr() == again.untyped_storage().data_ptr()
    typed = loaded(saved({"s": TypedStorage(wrap_storage=tensor.untyped_storage(), dtype=rushlight.int16)}))["s"]
    assert typed.tolist() == [0, 1, 2, 3]


def test_negative_strides_are_saved_as_a_dense_copy():
    flipped = rushlight.arange(4)[::-1]
    first, second = loaded(saved([flipped, flipped.detach()]))
    assert first.tolist() == second.tolist() == [3, 2, 1, 0]


PLAIN = [
    None,
    True,
    0,
    -1,
    1 << 31,
    -(1 << 63),
    1 << 200,
    1.5,
    float("inf"),
    1 + 2j,
    "text \u00e9\U0001f600",
    "",
    b"",
    b"\x00\xff",
    bytearray(b"abc"),
    [],
    [1, [2, [3]]],
    (),
    (1,),
    (1, 2, 3, 4),
    {},
    {"a": {1: (2,)}},
    {1, 2},
    frozenset({"x"}),
    {(1, (2, 3)): 4},
    range(3, 10, 2),
    slice(1, None, 2),
    ...,
    collections.OrderedDict(b=1, a=2),
    collections.Counter("hello"),
    collections.deque([1, 2], maxlen=5),
    datetime.datetime(2024, 2, 29, 1, 2, 3, 4),
    datetime.date(1999, 1, 1),
    datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc),
    datetime.timedelta(days=-1, seconds=5),
    datetime.time(3),
    decimal.Decimal("1.10"),
    fractions.Fraction(-2, 3),
    pathlib.Path("/tmp/x.pt"),
    pathlib.PurePosixPath("a/b"),
    pathlib.PureWindowsPath("c:/a"),
    argparse.Namespace(lr=0.1, layers=[1, 2]),
    np.float32(1.5),
    np.int64(-3),
    np.bool_(True),
    np.complex128(1 + 2j),
    np.str_("abc"),
    np.datetime64("2024-01-01"),
    np.dtype("float32"),
    np.dtype(">i4"),
    np.dtype("M8[ns]"),
]


@pytest.mark.parametrize("protocol", [2, 4])
@pytest.mark.parametrize("obj", PLAIN, ids=lambda o: f"{type(o).__name__}-{o!r:.20}")
def test_plain_objects(obj, protocol):
    found = loaded(saved({"x": obj}, pickle_protocol=protocol))["x"]
    assert type(found) is type(obj)
    assert found == obj


def test_default_dict_keeps_its_factory():
    original = collections.defaultdict(list, a=[1])
    found = loaded(saved(original))
    assert (found, found.default_factory) == (original, list)


@pytest.mark.parametrize("protocol", [2, 4, 5])
@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=">i2").reshape(2, 3),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.zeros((0, 3), np.float16),
        np.array(3j),
        np.array(["a", "bcd"]),
        np.array([b"x"]),
        np.array(["2024-01-01"], dtype="M8[D]"),
    ],
    ids=lambda a: str(a.dtype),
)
def test_numpy_arrays(array, protocol):
    found = loaded(saved([array, array], pickle_protocol=protocol))
    assert found[0] is found[1]
    assert found[0].dtype == pickle.loads(pickle.dumps(array, protocol)).dtype  # NumPy turns some to native byte order
    np.testing.assert_array_equal(found[0], array)
    found[0][...] = found[0]  # writable


def test_framework_objects():
    objects = [rushlight.Size([2, 3]), rushlight.device("cpu"), rushlight.float32, rushlight.bool, rushlight.complex128]
    found = loaded(saved(objects))
    assert found == objects
    assert [type(o) for o in found] == [type(o) for o in objects]


def test_a_list_that_contains_itself():
    original: list = [1]
    original.append(original)
    found = loaded(saved(original))
    assert found[1] is found


def test_state_dict_metadata_and_optimizer_state():
    model = rushlight.nn.Sequential(rushlight.nn.Linear(3, 2), rushlight.nn.Linear(2, 1))
    optimizer = rushlight.optim.Adam(model.parameters(), lr=0.1)
    model(rushlight.ones(4, 3)).sum().backward()
    optimizer.step()
    found = loaded(saved({"model": model.state_dict(), "optimizer": optimizer.state_dict()}))
    assert found["model"]._metadata == model.state_dict()._metadata
    for name, value in model.state_dict().items():
        same(found["model"][name], value)
    other = rushlight.optim.Adam(model.parameters(), lr=0.5)
    other.load_state_dict(found["optimizer"])
    assert other.param_groups[0]["lr"] == 0.1
    same(other.state_dict()["state"][0]["exp_avg"], optimizer.state_dict()["state"][0]["exp_avg"])


def test_python_zipfile_finds_the_archive_sound():
    with zipfile.ZipFile(io.BytesIO(saved(checkpoint()))) as archive:
        assert archive.testzip() is None
        for info in archive.infolist():
            assert info.compress_type == zipfile.ZIP_STORED
        assert archive.read("archive/version") == b"3\n"
        assert archive.read("archive/byteorder") == sys.byteorder.encode()


def test_records_begin_at_multiples_of_64():
    data = saved(checkpoint())
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for info in archive.infolist():
            name_size, extra_size = np.frombuffer(data, "<u2", 2, info.header_offset + 26)
            assert (info.header_offset + 30 + int(name_size) + int(extra_size)) % 64 == 0


def test_archives_beyond_4_gib_use_zip64(monkeypatch):
    monkeypatch.setattr("rushlight._zip_records.ZIP64_LIMIT", 16)
    data = saved(checkpoint())
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
    assert_checkpoint(loaded(data))


def test_paths_and_mmap(tmp_path):
    path = tmp_path / "x.pt"
    rushlight.save(checkpoint(), path)
    for given in (path, str(path)):
        assert_checkpoint(rushlight.load(given))
    mapped = rushlight.load(path, mmap=True)
    assert_checkpoint(mapped)
    before = path.read_bytes()
    mapped["model"]["weight"].fill_(-1)  # a private mapping: the file is left alone
    assert path.read_bytes() == before
    with pytest.raises(ValueError, match="mmap=True needs a path"):
        rushlight.load(io.BytesIO(before), mmap=True)


def test_file_objects():
    class OnlyWrites:
        def __init__(self):
            self.parts = []

        def write(self, data):
            self.parts.append(bytes(data))
            return len(data)

    class WritesLittle(OnlyWrites):
        def write(self, data):
            return super().write(data[:7])

    for kind in (OnlyWrites, WritesLittle):
        sink = kind()
        rushlight.save(checkpoint(), sink)
        assert_checkpoint(loaded(b"".join(sink.parts)))

    file = io.BytesIO(b"before" + saved(checkpoint()))
    file.seek(6)
    assert_checkpoint(rushlight.load(file))
    with pytest.raises(AttributeError, match="expected a path or an object with write"):
        rushlight.save(1, 3)
    with pytest.raises(AttributeError, match="expected a path or a file object"):
        rushlight.load(3)


def test_map_location():
    data = saved(checkpoint())
    assert_checkpoint(loaded(data, map_location="cpu"))
    assert_checkpoint(loaded(data, map_location=rushlight.device("cpu")))
    assert_checkpoint(loaded(data, map_location={"cuda:0": "cpu"}))
    seen = []
    assert_checkpoint(loaded(data, map_location=lambda storage, location: seen.append((storage.nbytes(), location))))
    assert seen == [(48, "cpu"), (12, "cpu"), (8, "cpu")]
    meta = loaded(data, map_location="meta")
    assert meta["model"]["weight"].device.type == "meta"
    assert tuple(meta["model"]["tied"].shape) == (4, 3)
    with pytest.raises(TypeError, match="map_location must be"):
        loaded(data, map_location=3)


def test_arguments():
    with pytest.raises(ValueError, match="pickle_protocol must be 2 to 5; got 1"):
        saved(1, pickle_protocol=1)
    with pytest.raises(ValueError, match="pickle_module"):
        rushlight.save(1, io.BytesIO(), pickle_module=io)
    with pytest.raises(ValueError, match="pickle_module"):
        loaded(saved(1), pickle_module=io)
    with pytest.raises(TypeError, match="unexpected keyword arguments"):
        loaded(saved(1), nonsense=1)
    with pytest.raises((pickle.PicklingError, AttributeError)):
        saved(lambda: 0)


class Config:
    def __init__(self, lr):
        self.lr = lr


class Slotted:
    __slots__ = ("x",)


def test_safe_globals():
    serialization.clear_safe_globals()
    slotted = Slotted()
    slotted.x = 5
    data = saved([Config(0.1), slotted])
    with pytest.raises(pickle.UnpicklingError, match=r"test_round_trip\.Config, .*test_round_trip\.Slotted"):
        loaded(data)
    assert serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(data)) == [
        f"{Config.__module__}.Config",
        f"{Config.__module__}.Slotted",
    ]
    with serialization.safe_globals([Config, Slotted]):
        config, found = loaded(data)
        assert (type(config), config.lr, found.x) == (Config, 0.1, 5)
        assert serialization.get_safe_globals() == [Config, Slotted]
    assert serialization.get_safe_globals() == []
    with serialization.safe_globals([(Config, f"{Config.__module__}.Slotted"), Config]):
        assert [type(o) for o in loaded(data)] == [Config, Config]


def test_unknown_classes_are_read_as_data_on_request():
    data = saved([Config(0.1), {"again": Config(0.2)}])
    with pytest.warns(UserWarning, match=r"test_round_trip\.Config"):
        first, second = loaded(data, weights_only=False)
    assert isinstance(first, serialization.UnknownObject)
    assert (first.lr, second["again"].lr) == (0.1, 0.2)
    assert "Config" in repr(first)
    with pytest.raises(AttributeError, match="holds only its data"):
        first.step()


def test_a_new_process_reads_the_file(tmp_path):
    rushlight.save(checkpoint(), tmp_path / "x.pt")
    code = "import sys, rushlight; print(rushlight.load(sys.argv[1])['model']['weight'].sum().item())"
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "x.pt")], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "66.0"
