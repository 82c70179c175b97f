"""PyTorch reads what save writes, and load reads what PyTorch writes."""

from __future__ import annotations

import collections
import io
import struct
import warnings
import zipfile
from typing import Any

import pytest
from checkpoints import DTYPES, assert_checkpoint, checkpoint, loaded, same, sample, saved, shares

import rushlight
from rushlight import serialization

torch = pytest.importorskip("torch", reason="PyTorch, whose files are compared with, is not installed")


def torch_saved(obj: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    torch.save(obj, file, **options)
    return file.getvalue()


def torch_loaded(data: bytes, **options: Any) -> Any:
    return torch.load(io.BytesIO(data), weights_only=True, **options)


def torch_checkpoint() -> dict[str, Any]:
    weight = torch.arange(12, dtype=torch.float32).reshape(3, 4)
    original = checkpoint()
    return {
        "model": collections.OrderedDict(weight=weight, tied=weight.t(), bias=torch.ones(3)),
        "step": torch.tensor(7),
        "config": original["config"],
    }


def test_pytorch_reads_a_checkpoint():
    assert_checkpoint(torch_loaded(saved(checkpoint())))


@pytest.mark.parametrize("old_format", [False, True])
def test_load_reads_a_checkpoint_of_pytorch(old_format):
    data = torch_saved(torch_checkpoint(), _use_new_zipfile_serialization=not old_format)
    assert_checkpoint(loaded(data))
    meta = loaded(data, map_location="meta")
    assert meta["model"]["weight"].device.type == "meta"


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_in_both_directions(dtype):
    same(torch_loaded(saved(sample(dtype))), sample(dtype, torch))
    same(loaded(torch_saved(sample(dtype, torch))), sample(dtype))
    same(loaded(torch_saved(sample(dtype, torch), _use_new_zipfile_serialization=False)), sample(dtype))


def test_pytorch_reads_spans_and_sharing():
    base = rushlight.arange(1000, dtype=rushlight.float64)
    a, b, integers = torch_loaded(saved([base[100:110], base[105:120:3], base[106:108].view(rushlight.int64)]))
    assert a.tolist() == list(range(100, 110))
    assert b.tolist() == [105, 108, 111, 114, 117]
    assert integers.view(torch.float64).tolist() == [106, 107]
    assert shares(a, b)
    assert shares(a, integers)


def test_pytorch_reads_parameters_attributes_meta_and_objects():
    parameter = rushlight.nn.Parameter(rushlight.ones(2), requires_grad=False)
    noted = rushlight.nn.Parameter(rushlight.ones(2))
    noted.note = "x"
    tensor = rushlight.ones(3)
    tensor.note = "y"
    objects = [
        parameter,
        noted,
        tensor,
        rushlight.empty(2, device="meta"),
        rushlight.Size([1]),
        rushlight.device("cpu"),
        rushlight.float16,
        {"storage": rushlight.tensor([1.0, 2.0]).untyped_storage()},
    ]
    found = torch_loaded(saved(objects))
    assert type(found[0]) is torch.nn.Parameter
    assert not found[0].requires_grad
    assert (found[1].note, found[2].note) == ("x", "y")
    assert found[3].device.type == "meta"
    assert found[4:7] == [torch.Size([1]), torch.device("cpu"), torch.float16]
    assert found[7]["storage"]._untyped_storage.nbytes() == 8


def test_load_reads_what_pytorch_writes_of_these():
    parameter = torch.nn.Parameter(torch.ones(2))
    noted = torch.nn.Parameter(torch.ones(2), requires_grad=False)
    noted.note = "x"
    tensor = torch.ones(3)
    tensor.note = "y"
    base = torch.arange(6.0)
    conjugated = torch.tensor([1 + 2j]).conj()
    objects = [
        parameter,
        noted,
        tensor,
        torch.empty(2, device="meta"),
        torch.Size([1]),
        torch.device("cpu"),
        torch.float16,
        torch.strided,
        base[1:3],
        base[::2],
        conjugated,
        conjugated.clone().imag,
    ]
    found = loaded(torch_saved(objects))
    assert type(found[0]) is rushlight.nn.Parameter
    assert found[0].requires_grad
    assert not found[1].requires_grad
    assert (found[1].note, found[2].note) == ("x", "y")
    assert found[3].device.type == "meta"
    assert found[4:8] == [rushlight.Size([1]), rushlight.device("cpu"), rushlight.float16, rushlight.strided]
    assert (found[8].tolist(), found[9].tolist()) == ([1, 2], [0, 2, 4])
    assert shares(found[8], found[9])
    assert found[10].tolist() == [1 - 2j]
    assert found[11].tolist() == [-2.0]


def test_storages_of_pytorch():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's typed storages are deprecated there
        data = torch_saved([torch.ones(2).storage(), torch.ones(3).untyped_storage()])
    typed, untyped = loaded(data)
    assert typed.tolist() == [1.0, 1.0]
    assert untyped.nbytes() == 12


def test_a_module_of_pytorch_is_refused_by_name():
    data = torch_saved(torch.nn.Linear(2, 2))
    with pytest.raises(Exception, match=r"torch\.nn\.modules\.linear\.Linear"):
        loaded(data)
    with pytest.warns(UserWarning, match=r"torch\.nn\.modules\.linear\.Linear"):
        found = loaded(data, weights_only=False)
    assert found.in_features == 2
    assert tuple(found._parameters["weight"].shape) == (2, 2)


def test_dtypes_that_do_not_exist_here_are_refused_by_name():
    with pytest.raises(Exception, match=r"torch\.float8_e4m3fn"):
        loaded(torch_saved(torch.ones(2).to(torch.float8_e4m3fn)))


def test_pytorch_reads_zip64(monkeypatch):
    monkeypatch.setattr("rushlight._zip_records.ZIP64_LIMIT", 16)
    assert_checkpoint(torch_loaded(saved(checkpoint())))


def test_pytorch_maps_the_file(tmp_path):
    rushlight.save(checkpoint(), tmp_path / "x.pt")
    assert_checkpoint(torch.load(tmp_path / "x.pt", mmap=True))
    torch.save(torch_checkpoint(), tmp_path / "y.pt")
    assert_checkpoint(rushlight.load(tmp_path / "y.pt", mmap=True))


def test_same_records_as_pytorch():
    with (
        zipfile.ZipFile(io.BytesIO(saved(checkpoint()))) as ours,
        zipfile.ZipFile(io.BytesIO(torch_saved(torch_checkpoint()))) as theirs,
    ):
        assert sorted(ours.namelist()) == sorted(theirs.namelist())
        for name in theirs.namelist():
            if not name.endswith("serialization_id"):
                assert ours.read(name) == theirs.read(name), name


def test_a_checkpoint_of_another_byte_order():
    data = torch_saved(torch.tensor([1.5, -2.0]))
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        records = {name: archive.read(name) for name in archive.namelist()}
    records["archive/byteorder"] = b"big"
    records["archive/data/0"] = struct.pack(">2f", 1.5, -2.0)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, record in records.items():
            archive.writestr(name, record)
    assert loaded(file.getvalue()).tolist() == [1.5, -2.0]
    # Byte order counts per number, of which a complex element has two.
    storage = rushlight.tensor([1 + 2j]).untyped_storage()
    serialization._swap_bytes(serialization._bytes_of(storage), rushlight.complex64)
    assert bytes(serialization._bytes_of(storage)) == struct.pack(">2f", 1, 2)


def test_compressed_archives():
    data = torch_saved(torch_checkpoint())
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    assert_checkpoint(loaded(file.getvalue()))


def test_torchscript_is_named():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scripted = torch.jit.script(torch.nn.Linear(1, 1))
        file = io.BytesIO()
        torch.jit.save(scripted, file)
    with pytest.raises(RuntimeError, match="TorchScript"):
        loaded(file.getvalue())
