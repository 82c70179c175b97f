"""Type stubs from the operation records: rushlight/_C.pyi and rushlight/__init__.pyi."""

from __future__ import annotations

import keyword
import re
from typing import Any

TYPES = {
    "Tensor": "Tensor",
    "Tensor|Scalar": "Tensor | Number",
    "Tensor[]": "Sequence[Tensor]",
    "Tensor?[]": "Sequence[Tensor | None]",
    "Scalar": "Number",
    "int": "int",
    "float": "float",
    "bool": "bool",
    "str": "str",
    "ScalarType": "dtype",
    "Device": "device | str",
    "Generator": "Generator",
    "Layout": "layout",
    "MemoryFormat": "memory_format",
    "float[]": "Sequence[float]",
    "Any": "Any",
}

# What is not an operation. The names of dtypes hide Python's own inside the module, hence the aliases.
COMMON = """from builtins import bool as _bool, complex as _complex, float as _float, int as _int
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

Number: TypeAlias = _bool | _int | _float | _complex

class dtype:
    itemsize: _int
    is_floating_point: _bool
    is_complex: _bool
    is_signed: _bool
    def to_real(self) -> dtype: ...
    def to_complex(self) -> dtype: ...

class layout: ...
class memory_format: ...

class device:
    type: str
    index: _int | None
    def __init__(self, type: str | device, index: _int | None = None) -> None: ...
    def __enter__(self) -> device: ...
    def __exit__(self, *args: object) -> None: ...

class Size(tuple[_int, ...]):
    def numel(self) -> _int: ...

class UntypedStorage:
    device: device
    def __init__(self, size: Any = 0, device: Any = None) -> None: ...
    def nbytes(self) -> _int: ...
    def size(self) -> _int: ...
    def data_ptr(self) -> _int: ...
    @staticmethod
    def _from_buffer(source: Any) -> UntypedStorage: ...
    def __getattr__(self, name: str) -> Any: ...

class Generator:
    device: device
    def __init__(self, device: Any = None) -> None: ...
    def manual_seed(self, seed: _int) -> Generator: ...
    def seed(self) -> _int: ...
    def initial_seed(self) -> _int: ...
    def get_state(self) -> Tensor: ...
    def set_state(self, state: Tensor) -> Generator: ...

default_generator: Generator
"""

DTYPES = (
    "bool uint8 int8 int16 short int32 int int64 long float16 half bfloat16 float32 float float64 double "
    "complex32 chalf complex64 cfloat "
    "complex128 cdouble"
).split()

TENSOR = """
class Tensor:
    shape: Size
    dtype: dtype
    device: device
    layout: layout
    ndim: _int
    itemsize: _int
    nbytes: _int
    data: Any
    grad: Tensor | None
    grad_fn: Any
    requires_grad: _bool
    is_leaf: _bool
    retains_grad: _bool
    output_nr: _int
    T: Tensor
    mT: Tensor
    is_meta: _bool
    is_cpu: _bool
    is_cuda: _bool
    _version: _int
    _base: Tensor | None
    def __new__(cls, *args: Any, **kwargs: Any) -> Any: ...
    @staticmethod
    def _make_subclass(cls: Any, data: Any, require_grad: _bool = False) -> Any: ...
    def size(self, dim: _int | None = None) -> Any: ...
    def stride(self, dim: _int | None = None) -> Any: ...
    def dim(self) -> _int: ...
    def numel(self) -> _int: ...
    def nelement(self) -> _int: ...
    def element_size(self) -> _int: ...
    def data_ptr(self) -> _int: ...
    def storage_offset(self) -> _int: ...
    def is_contiguous(self, memory_format: memory_format = ...) -> _bool: ...
    def untyped_storage(self) -> UntypedStorage: ...
    def is_floating_point(self) -> _bool: ...
    def is_complex(self) -> _bool: ...
    def is_signed(self) -> _bool: ...
    def is_inference(self) -> _bool: ...
    def is_conj(self) -> _bool: ...
    def item(self) -> Any: ...
    def tolist(self) -> Any: ...
    def backward(self, *args: Any, **kwargs: Any) -> None: ...
    def detach(self) -> Tensor: ...
    def detach_(self) -> Tensor: ...
    def requires_grad_(self, requires_grad: _bool = True) -> Tensor: ...
    def __len__(self) -> _int: ...
    def __bool__(self) -> _bool: ...
    def __int__(self) -> _int: ...
    def __float__(self) -> _float: ...
    def __index__(self) -> _int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __getitem__(self, index: Any) -> Tensor: ...
    def __setitem__(self, index: Any, value: Any) -> None: ...
    def __hash__(self) -> _int: ...
    def __getattr__(self, name: str) -> Any: ...
"""
BINARY = "add sub mul truediv floordiv mod matmul pow and or xor lshift rshift".split()
COMPARE = "lt le gt ge eq ne".split()


def parameter(arg: Any, function: bool) -> str:
    """One parameter as Python text."""
    kind = "int[]" if re.match(r"int\[\d*\]", arg.type) else arg.type
    text = "_int | Sequence[_int]" if kind == "int[]" else TYPES[kind]
    text = re.sub(r"(?<![\w.])(int|float|bool)(?!\w)", r"_\1", text)
    if arg.optional or arg.default == "None":
        text += " | None"
    name = "input" if arg.name == "self" and function else arg.name
    if keyword.iskeyword(name):
        name += "_"
    return f"{name}: {text}" + ("" if arg.default is None else " = ...")


def result(op: Any) -> str:
    """The result as Python text."""
    kinds = ["Any" if t == "Any" else "tuple[Tensor, ...]" if t == "Tensor[]" else "Tensor" for t, _ in op.results]
    return kinds[0] if len(kinds) == 1 else "Any"


def signature(name: str, overloads: list[Any], function: bool, indent: str) -> str:
    """A def; several overloads, and varargs of ints, are left open."""
    open_list = any(a.type == "int[]" and not a.keyword_only for op in overloads for a in op.arguments)
    results = {result(op) for op in overloads}
    returns = results.pop() if len(results) == 1 else "Any"
    if len(overloads) > 1 or open_list:
        first = "" if function else "self, "
        return f"{indent}def {name}({first}*args: Any, **kwargs: Any) -> {returns}: ..."
    op = overloads[0]
    parts, starred = [], False
    for i, a in enumerate(op.arguments):
        if i == 0 and not function:
            parts.append("self")
            continue
        if a.keyword_only and not starred:
            parts.append("*")
            starred = True
        parts.append(parameter(a, function))
    if function and op.out and not name.endswith("_"):
        parts += ([] if starred else ["*"]) + ["out: Any = ..."]
    return f"{indent}def {name}({', '.join(parts)}) -> {returns}: ..."


def generate(table: dict[str, Any]) -> dict[str, str]:
    """File name -> text."""
    groups: dict[str, list[Any]] = {}
    for op in table.values():
        groups.setdefault(op.name, []).append(op)
    functions: dict[str, str] = {}
    methods: dict[str, str] = {}
    for overloads in groups.values():
        op = overloads[0]
        for path in {p for o in overloads for p in o.public}:
            namespace, _, name = path.rpartition(".")
            if keyword.iskeyword(name):
                continue
            if namespace == "":
                functions[name] = signature(name, overloads, True, "")
                if op.inplace:
                    functions[name + "_"] = signature(name + "_", overloads, True, "")
            elif namespace == "Tensor":
                methods[name] = signature(name, overloads, False, "    ")
        if any(o.method for o in overloads):
            methods[op.name] = signature(op.name, overloads, False, "    ")
            if op.inplace:
                methods[op.name + "_"] = signature(op.name + "_", overloads, False, "    ")
    tensor = [TENSOR.rstrip("\n")]
    for name in BINARY:
        tensor.append(f"    def __{name}__(self, other: Any) -> Tensor: ...")
        tensor.append(f"    def __r{name}__(self, other: Any) -> Tensor: ...")
        if name != "matmul":
            tensor.append(f"    def __i{name}__(self, other: Any) -> Tensor: ...")
    tensor += [f"    def __{name}__(self, other: Any) -> Tensor: ...  # type: ignore[override]" for name in COMPARE]
    tensor += [f"    def __{name}__(self) -> Tensor: ..." for name in ("neg", "pos", "abs", "invert")]
    known = set(re.findall(r"def (\w+)\(", TENSOR)) | set(re.findall(r"^    (\w+):", TENSOR, re.M))
    # a method named like a builtin type would hide it from the annotations after it
    tensor += [text for name, text in sorted(methods.items()) if name not in known]
    body = "# mypy: ignore-errors\n" + COMMON + "\n".join(tensor) + "\n\n"
    body += "\n".join(f"{name}: dtype" for name in DTYPES) + "\n"
    body += "strided: layout\ncontiguous_format: memory_format\npreserve_format: memory_format\n"
    body += "channels_last: memory_format\nchannels_last_3d: memory_format\ninf: _float\nnan: _float\n"
    body += (
        "def tensor(data: Any, *, dtype: Any = None, device: Any = None, requires_grad: _bool = False) -> Tensor: ...\n"
    )
    body += "def __getattr__(name: str) -> Any: ...\n"
    names = sorted(
        {*re.findall(r"^class (\w+)", COMMON, re.M), "Tensor", "tensor", "default_generator", *DTYPES, "strided"}
    )
    names += ["contiguous_format", "preserve_format", "channels_last", "channels_last_3d", "inf", "nan"]
    package = "# mypy: ignore-errors\n"
    package += "from builtins import bool as _bool, complex as _complex, float as _float, int as _int\n"
    package += "from collections.abc import Sequence\nfrom typing import Any\n\n"
    package += "".join(f"from ._C import {n} as {n}\n" for n in names)
    package += "from ._C import Number as Number\n"
    package += "from . import autograd as autograd, nn as nn, optim as optim, utils as utils\n\n"
    package += "__version__: str\npi: _float\ne: _float\nnewaxis: None\n"
    package += "\n".join(text for name, text in sorted(functions.items()) if name not in names) + "\n"
    package += "def __getattr__(name: str) -> Any: ...\n"
    return {"rushlight/_C.pyi": body, "rushlight/__init__.pyi": package}
