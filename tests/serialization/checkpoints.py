"""What the tests of save and load share."""

from __future__ import annotations

import collections
import io
import pickle
import struct
import zipfile
from typing import Any

import rushlight

DTYPES = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]


def saved(obj: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    rushlight.save(obj, file, **options)
    return file.getvalue()


def loaded(data: bytes, **options: Any) -> Any:
    return rushlight.load(io.BytesIO(data), **options)


def sample(dtype: str, module: Any = rushlight) -> Any:
    """Six elements that differ in every dtype but bool, with a sign and a fraction where the dtype has them."""
    values: list[Any] = [0, 1, 2, 3, 100, 5]
    if dtype == "bool":
        values = [False, True, True, False, True, False]
    elif dtype.startswith("complex"):
        values = [0j, 1j, 1 + 2j, -3.5, 100 - 0.25j, 5]
    elif dtype.startswith(("float", "bfloat")):
        values = [0.0, -1.5, 2.25, 3.0, float("inf"), 1e-3]
    elif dtype != "uint8":
        values[1] = -1
    return module.tensor(values, dtype=getattr(module, dtype)).reshape(2, 3)


def same(a: Any, b: Any) -> None:
    """Raises unless two tensors, of either framework, agree in dtype, shape and every value."""
    assert str(a.dtype).rpartition(".")[2] == str(b.dtype).rpartition(".")[2]
    assert tuple(a.shape) == tuple(b.shape)
    assert a.tolist() == b.tolist()


def shares(a: Any, b: Any) -> bool:
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


def checkpoint() -> dict[str, Any]:
    weight = rushlight.arange(12, dtype=rushlight.float32).reshape(3, 4)
    return {
        "model": collections.OrderedDict(weight=weight, tied=weight.t(), bias=rushlight.ones(3)),
        "step": rushlight.tensor(7, dtype=rushlight.int64),
        "config": {"lr": 0.1, "name": "net", "betas": (0.9, 0.999), "flags": {1, 2}, "none": None, "big": 1 << 70},
    }


def assert_checkpoint(found: Any) -> None:
    expected = checkpoint()
    assert found["config"] == expected["config"]
    assert list(found["model"]) == list(expected["model"])
    for name, tensor in expected["model"].items():
        same(found["model"][name], tensor)
    same(found["step"], expected["step"])
    assert shares(found["model"]["weight"], found["model"]["tied"])


def archive(pickled: bytes, records: dict[str, bytes] | None = None, **extra: Any) -> bytes:
    """An archive with this data.pkl, made by another writer of zip files than ours."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", extra.get("compression", zipfile.ZIP_STORED)) as zipped:
        zipped.writestr("archive/data.pkl", pickled)
        zipped.writestr("archive/byteorder", extra.get("byteorder", "little"))
        zipped.writestr("archive/version", "3\n")
        for name, data in (records or {}).items():
            zipped.writestr(f"archive/data/{name}", data)
    return file.getvalue()


class Name:
    """A global in a pickle made by hand with `pickled`."""

    def __init__(self, module: str, name: str) -> None:
        self.text = f"c{module}\n{name}\n".encode()


class Call:
    """Name(...)(*args) in such a pickle."""

    def __init__(self, name: Name, *args: Any) -> None:
        self.name, self.args = name, args


class Stored:
    """A reference to a storage in such a pickle."""

    def __init__(self, *identifier: Any) -> None:
        self.identifier = identifier


def encode(obj: Any) -> bytes:
    if isinstance(obj, Name):
        return obj.text
    if isinstance(obj, Call):
        return encode(obj.name) + encode(obj.args) + pickle.REDUCE
    if isinstance(obj, Stored):
        return encode(obj.identifier) + pickle.BINPERSID
    if isinstance(obj, tuple):
        return pickle.MARK + b"".join(map(encode, obj)) + pickle.TUPLE
    if isinstance(obj, list):
        return pickle.EMPTY_LIST + pickle.MARK + b"".join(map(encode, obj)) + pickle.APPENDS
    if isinstance(obj, dict):
        items = b"".join(encode(key) + encode(value) for key, value in obj.items())
        return pickle.EMPTY_DICT + pickle.MARK + items + pickle.SETITEMS
    if isinstance(obj, str):
        return pickle.BINUNICODE + struct.pack("<I", len(obj.encode())) + obj.encode()
    return pickle.dumps(obj, 2)[2:-1]


def pickled(obj: Any) -> bytes:
    return pickle.PROTO + b"\x02" + encode(obj) + pickle.STOP


def tensor_call(
    numel: Any = 6,
    offset: Any = 0,
    size: Any = (2, 3),
    stride: Any = (3, 1),
    key: str = "0",
    storage: str = "FloatStorage",
) -> Call:
    reference = Stored("storage", Name("torch", storage), key, "cpu", numel)
    hooks = Call(Name("collections", "OrderedDict"))
    return Call(Name("torch._utils", "_rebuild_tensor_v2"), reference, offset, size, stride, False, hooks)
