"""The names a checkpoint may use, and what each of them builds: tensors, plain data, NumPy arrays, paths, dates.

Each constructor checks its arguments itself, since they come from the file.
"""

from __future__ import annotations

import argparse
import collections
import datetime
import decimal
import fractions
import functools
import pathlib
import re
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import rushlight
from rushlight import _utils
from rushlight._pickle_reader import OBJECT_PROTOCOL, Constructors, check_key
from rushlight.storage import STORAGE_NAMES, TypedStorage

if TYPE_CHECKING:
    import numpy

_SEQUENCES = (list, tuple, set, frozenset, collections.deque)


class StorageType:
    """Stands for a name like torch.FloatStorage."""

    def __init__(self, name: str, dtype: Any) -> None:
        self.name, self.dtype = name, dtype

    def __repr__(self) -> str:
        return self.name


def _refuse(name: str, args: tuple[Any, ...]) -> TypeError:
    return TypeError(f"{name} with arguments of types ({', '.join(type(a).__name__ for a in args)}) is not known")


def _exactly(name: str, build: Callable[..., Any], *kinds: tuple[type, ...]) -> Callable[..., Any]:
    """A constructor that takes arguments of exactly these types, each signature a tuple of types."""

    def call(*args: Any) -> Any:
        if not any(
            len(args) == len(kind) and all(type(a) is k for a, k in zip(args, kind, strict=True)) for kind in kinds
        ):
            raise _refuse(name, args)
        return build(*args)

    return call


def _collection(kind: type) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        if not args:
            return kind()
        if len(args) != 1 or not isinstance(args[0], (*_SEQUENCES, dict)):
            raise _refuse(kind.__name__, args)
        return kind(map(check_key, args[0]) if kind in (set, frozenset) else args[0])

    return call


def _ordered_dict(*args: Any) -> Any:
    if not args:
        return collections.OrderedDict()
    if len(args) != 1 or not isinstance(args[0], (list, tuple, dict)):
        raise _refuse("OrderedDict", args)
    pairs = args[0].items() if isinstance(args[0], dict) else args[0]
    if not all(isinstance(pair, (list, tuple)) and len(pair) == 2 for pair in pairs):
        raise _refuse("OrderedDict", args)
    return collections.OrderedDict((check_key(pair[0]), pair[1]) for pair in pairs)


def _counter(*args: Any) -> Any:
    if len(args) > 1 or (args and not isinstance(args[0], dict)):
        raise _refuse("Counter", args)
    counter: collections.Counter[Any] = collections.Counter()
    for key, count in args[0].items() if args else ():
        counter[key] = count
    return counter


_FACTORIES = (list, dict, set, tuple, int, float, bool, str, collections.OrderedDict, type(None))


def _default_dict(*args: Any) -> Any:
    if len(args) > 1 or (args and args[0] is not None and args[0] not in _FACTORIES):
        raise TypeError("a defaultdict whose factory is not a plain type is not known")
    return collections.defaultdict(*args)


def _deque(*args: Any) -> Any:
    if len(args) not in (0, 1, 2) or (args and not isinstance(args[0], (list, tuple))):
        raise _refuse("deque", args)
    if len(args) == 2 and args[1] is not None and type(args[1]) is not int:
        raise _refuse("deque", args)
    return collections.deque(*args)


def _fraction(numerator: Any, denominator: int = 1) -> fractions.Fraction:
    # As pickle writes it; text with an exponent could ask for a number that fills the memory.
    if type(numerator) is str and not re.fullmatch(r"-?\d{1,4000}(/\d{1,4000})?", numerator):
        raise TypeError("Fraction: expected 'numerator/denominator'")
    return fractions.Fraction(numerator) if type(numerator) is str else fractions.Fraction(numerator, denominator)


def _encode(*args: Any) -> bytes:
    if len(args) != 2 or type(args[0]) is not str or args[1] not in ("latin1", "latin-1"):
        raise _refuse("_codecs.encode", args)
    return args[0].encode("latin-1")


def _byte_array(*args: Any) -> bytearray:
    if not args:
        return bytearray()
    if len(args) == 2 and type(args[0]) is str and args[1] in ("latin1", "latin-1"):
        return bytearray(args[0], "latin-1")
    if len(args) == 1 and type(args[0]) is bytes:
        return bytearray(args[0])
    raise _refuse("bytearray", args)


def _path(kind: type) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        if not all(type(part) is str for part in args):
            raise _refuse("Path", args)
        return kind(*args)

    return call


def _size(*args: Any) -> Any:
    if len(args) != 1 or not isinstance(args[0], (list, tuple)) or not all(type(n) is int for n in args[0]):
        raise _refuse("torch.Size", args)
    return rushlight.Size(args[0])


def _from_type(func: Any, new_type: Any, args: Any, state: Any, *, constructors: Constructors) -> Any:
    call = constructors.call_of(func)
    if call is None or not getattr(func, "__name__", "").startswith("_rebuild") or type(args) is not tuple:
        raise TypeError("_rebuild_from_type_v2 with an unknown function")
    tensor = call(*args)
    if not (isinstance(new_type, type) and issubclass(new_type, rushlight.Tensor)):
        raise TypeError("_rebuild_from_type_v2 with a class that is not a Tensor")
    if type(tensor) is not new_type:
        tensor = rushlight.Tensor._make_subclass(new_type, tensor, tensor.requires_grad)
    return _utils._set_state(tensor, state)


def _update(target: Any, state: Any) -> None:
    _utils._set_state(target, state)


# ---- NumPy, which is imported only when a file needs it


def _numpy_dtype(*args: Any) -> Any:
    import numpy

    if (
        not args
        or type(args[0]) is not str
        or not re.fullmatch(r"[<>=|]?[?bBhHiIlLqQefdgcFDGSUVmM]\d{0,9}|bool", args[0])
    ):
        raise _refuse(f"numpy.dtype({args[0]!r})" if args else "numpy.dtype", args)
    if len(args) > 1 and not all(a in (False, True, 0, 1) for a in args[1:3]):
        raise _refuse("numpy.dtype", args)
    # A copy: the state that follows changes it in place, and NumPy's own instances are shared.
    dtype = numpy.dtype(args[0])
    return numpy.dtype(dtype.str, copy=True)


def _numpy_dtype_state(dtype: Any, state: Any) -> None:
    if (
        type(state) is not tuple
        or len(state) not in (8, 9)
        or state[0] not in (3, 4)
        or state[1] not in ("<", ">", "=", "|")
    ):
        raise TypeError("numpy.dtype: a state that is not known")
    if state[2:5] != (None, None, None):
        raise TypeError("numpy.dtype: structured types are not known")
    if not all(type(n) is int for n in state[5:8]) or state[5] not in (-1, dtype.itemsize) or state[7] not in (0, 8):
        raise TypeError("numpy.dtype: a state that does not fit the type")
    if len(state) == 9 and dtype.kind in "mM":
        unit = state[8]
        count = unit[1] if type(unit) is tuple and len(unit) == 2 and unit[0] in (None, {}) else None
        if type(count) is not tuple or len(count) != 4 or type(count[0]) not in (str, bytes):
            raise TypeError("numpy.dtype: a time unit that is not known")
        if not all(type(n) is int and 0 < n < 1 << 31 for n in count[1:]):
            raise TypeError("numpy.dtype: a time unit that is not known")
    elif len(state) == 9 and state[8] not in (None, {}):
        raise TypeError("numpy.dtype: metadata is not known")
    dtype.__setstate__(state)


def _numpy_data(dtype: Any, count: int, data: Any) -> numpy.ndarray[Any, Any]:
    import numpy

    if not isinstance(dtype, numpy.dtype) or dtype.hasobject:
        raise TypeError("NumPy data of Python objects is not known")
    if type(data) is str:  # written by Python 2
        data = data.encode("latin-1")
    if not isinstance(data, (bytes, bytearray)) or len(data) != count * dtype.itemsize:
        raise TypeError(f"NumPy data: expected {count * dtype.itemsize} bytes")
    if count * dtype.itemsize == 0:
        return numpy.zeros(count, dtype)
    return numpy.frombuffer(bytearray(data), dtype)


def _numpy_scalar(*args: Any) -> Any:
    if len(args) != 2:
        raise _refuse("numpy scalar", args)
    return _numpy_data(args[0], 1, args[1])[0]


def _numpy_reconstruct(*args: Any) -> Any:
    import numpy

    if len(args) != 3 or args[0] is not _NUMPY_ARRAY or args[1] != (0,):
        raise _refuse("numpy _reconstruct", args)
    return numpy.empty(0, numpy.int8)


def _count(shape: Any) -> int:
    if type(shape) is not tuple or len(shape) > 32 or not all(type(n) is int and 0 <= n < 1 << 62 for n in shape):
        raise TypeError("NumPy array: a shape that is not one")
    return functools.reduce(lambda a, b: a * b, shape, 1)


def _numpy_array_state(array: Any, state: Any) -> None:
    if type(state) is not tuple or len(state) != 5:
        raise TypeError("NumPy array: a state that is not known")
    _, shape, dtype, fortran, data = state
    flat = _numpy_data(dtype, _count(shape), data)
    array.__setstate__((1, shape, flat.dtype, bool(fortran), flat.tobytes()))


def _numpy_from_buffer(*args: Any) -> Any:
    if len(args) != 4 or args[3] not in ("C", "F"):
        raise _refuse("numpy _frombuffer", args)
    data, dtype, shape, order = args
    return _numpy_data(dtype, _count(shape), data).reshape(shape, order=order)


class _NumpyArray:
    """Stands for numpy.ndarray, so that NumPy need not be imported to know the name."""


_NUMPY_ARRAY = _NumpyArray()


@functools.cache
def table() -> Constructors:
    """The names that load() knows without add_safe_globals."""
    known = Constructors()
    known.names.update(OBJECT_PROTOCOL)

    for name in ("list", "tuple", "set", "frozenset"):
        kind = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}[name]
        known.add([f"builtins.{name}"], kind, _collection(kind))
    known.add(["builtins.dict"], dict, _exactly("dict", dict, (), (dict,)))
    known.add(["builtins.int"], int, _exactly("int", int, ()))
    known.add(["builtins.float"], float, _exactly("float", float, ()))
    known.add(["builtins.str"], str, _exactly("str", str, ()))
    known.add(["builtins.bool"], bool, _exactly("bool", bool, ()))
    known.add(["builtins.bytes"], bytes, _exactly("bytes", bytes, (), (bytes,)))
    known.add(["builtins.bytearray"], bytearray, _byte_array)
    known.add(["builtins.complex"], complex, _exactly("complex", complex, (float, float)))
    known.add(["builtins.range"], range, _exactly("range", range, (int, int, int), (int, int), (int,)))
    any_int = (int, type(None))
    slices = [(a, b, c) for a in any_int for b in any_int for c in any_int]
    known.add(["builtins.slice"], slice, _exactly("slice", slice, *slices))
    known.add(["builtins.Ellipsis"], Ellipsis)
    known.add(["builtins.NotImplemented"], NotImplemented)
    known.add(["_codecs.encode"], _encode, _encode)
    known.add(["collections.OrderedDict"], collections.OrderedDict, _ordered_dict)
    known.add(["collections.Counter"], collections.Counter, _counter)
    known.add(["collections.defaultdict"], collections.defaultdict, _default_dict)
    known.add(["collections.deque"], collections.deque, _deque)
    known.add(["argparse.Namespace"], argparse.Namespace, _exactly("Namespace", argparse.Namespace, ()))
    known.add(["types.SimpleNamespace"], types.SimpleNamespace, _exactly("SimpleNamespace", types.SimpleNamespace, ()))
    known.builds[argparse.Namespace] = known.builds[types.SimpleNamespace] = _update
    for dictionary in (collections.OrderedDict, collections.Counter, collections.defaultdict):
        known.builds[dictionary] = _update

    here, pure = pathlib.Path, pathlib.PurePath
    for name in ("PosixPath", "WindowsPath", "Path"):
        # A path of the other system has no concrete class here.
        kind = (
            here
            if name in (type(here()).__name__, "Path")
            else pathlib.PureWindowsPath
            if name[0] == "W"
            else pathlib.PurePosixPath
        )
        known.add([f"pathlib.{name}", f"pathlib._local.{name}"], kind, _path(kind))
    for kind in (pure, pathlib.PurePosixPath, pathlib.PureWindowsPath):
        known.add([f"pathlib.{kind.__name__}", f"pathlib._local.{kind.__name__}"], kind, _path(kind))

    known.add(["datetime.timedelta"], datetime.timedelta, _exactly("timedelta", datetime.timedelta, (int, int, int)))
    known.add(["datetime.date"], datetime.date, _exactly("date", datetime.date, (bytes,)))
    known.add(
        ["datetime.datetime"], datetime.datetime,
        _exactly("datetime", datetime.datetime, (bytes,), (bytes, datetime.timezone)),
    )  # fmt: skip
    known.add(["datetime.time"], datetime.time, _exactly("time", datetime.time, (bytes,), (bytes, datetime.timezone)))
    known.add(
        ["datetime.timezone"], datetime.timezone,
        _exactly("timezone", datetime.timezone, (datetime.timedelta,), (datetime.timedelta, str)),
    )  # fmt: skip
    known.add(["decimal.Decimal"], decimal.Decimal, _exactly("Decimal", decimal.Decimal, (str,)))
    known.add(["fractions.Fraction"], fractions.Fraction, _exactly("Fraction", _fraction, (str,), (int, int)))

    for core in ("core", "_core"):
        known.add([f"numpy.{core}.multiarray.scalar"], _numpy_scalar, _numpy_scalar)
        known.add([f"numpy.{core}.multiarray._reconstruct"], _numpy_reconstruct, _numpy_reconstruct)
        known.add([f"numpy.{core}.numeric._frombuffer"], _numpy_from_buffer, _numpy_from_buffer)
    known.add(["numpy.ndarray"], _NUMPY_ARRAY)
    known.add(["numpy.dtype"], _numpy_dtype, _numpy_dtype)

    for name, dtype_name in STORAGE_NAMES.items():
        known.add([f"torch.{name}"], StorageType(name, getattr(rushlight, dtype_name)))
        known.add([f"torch.{dtype_name}"], getattr(rushlight, dtype_name))
    known.add(["torch.complex32"], rushlight.complex32)  # written over bytes: files have no storage class for it
    bytes_type = StorageType("UntypedStorage", rushlight.uint8)
    known.add(["torch.UntypedStorage", "torch.storage.UntypedStorage"], bytes_type)
    known.add(["torch.TypedStorage", "torch.storage.TypedStorage"], TypedStorage)
    known.add(["torch.Size"], rushlight.Size, _size)
    known.add(["torch.device"], rushlight.device, _exactly("torch.device", rushlight.device, (str,), (str, int)))
    known.add(["torch.Tensor", "torch._tensor.Tensor"], rushlight.Tensor)
    known.add(["torch.nn.parameter.Parameter"], rushlight.nn.Parameter)
    for name in ("strided", "contiguous_format", "channels_last", "preserve_format"):
        if hasattr(rushlight, name):
            known.add([f"torch.{name}"], getattr(rushlight, name))
            known.add([f"torch.serialization._get_layout.{name}"], getattr(rushlight, name))

    def get_layout(*args: Any) -> Any:
        if args != ("torch.strided",):
            raise _refuse(f"torch layout {args}", args)
        return rushlight.strided

    known.add(["torch.serialization._get_layout"], get_layout, get_layout)
    for function in (
        _utils._rebuild_tensor, _utils._rebuild_tensor_v2, _utils._rebuild_tensor_v3, _utils._rebuild_parameter,
        _utils._rebuild_parameter_with_state, _utils._rebuild_meta_tensor_no_storage,
    ):  # fmt: skip
        known.add([f"torch._utils.{function.__name__}"], function, function)
    return known


def with_user_globals(allowed: list[Any], blocked: frozenset[str], uses_numpy: bool) -> Constructors:
    """The table with what the user allowed: objects, or (object, "module.name") pairs.

    `uses_numpy`: the file names something of NumPy, so that importing it is not for nothing.
    """
    known = table().copy()
    for entry in allowed:
        value, name = entry if isinstance(entry, tuple) else (entry, f"{entry.__module__}.{entry.__qualname__}")
        if name.split(".")[0] in blocked:
            raise ValueError(f"load: {name} is in a module whose names are never allowed")
        if isinstance(value, type):
            known.add([name], value, value, functools.partial(value.__new__, value))
            known.builds[value] = _user_build
        else:
            known.add([name], value, value)
    known.add(["torch._tensor._rebuild_from_type_v2"], _from_type, functools.partial(_from_type, constructors=known))
    if uses_numpy:
        import numpy

        known.builds[numpy.ndarray] = _numpy_array_state
        known.builds[numpy.dtype] = _numpy_dtype_state
    return known


def _user_build(target: Any, state: Any) -> None:
    setstate = getattr(target, "__setstate__", None)
    if setstate is not None:
        setstate(state)
        return
    slots = None
    if isinstance(state, tuple) and len(state) == 2:
        state, slots = state
    if state:
        target.__dict__.update(state)
    for name, value in (slots or {}).items():
        setattr(target, name, value)
