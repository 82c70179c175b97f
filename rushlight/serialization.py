"""save and load: objects with tensors, in PyTorch's file format.

A file is a zip archive: `data.pkl` is a pickle whose tensors refer to records `data/0`, `data/1` ... with the bytes of
their storages. PyTorch reads what `save` writes and `load` reads what PyTorch writes, the format before version 1.6
included. `load` runs no code from a file, checks every record's checksum, and says where a damaged file is damaged.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import secrets
import stat
import struct
import sys
import warnings
import zlib
from collections.abc import Callable, Iterator
from pickle import UnpicklingError
from typing import IO, Any, Literal

import rushlight
from rushlight._pickle_reader import Constructors, Reader, UnknownObject
from rushlight._zip_records import Record, RecordReader, RecordWriter
from rushlight.storage import TypedStorage

__all__ = [
    "UnknownObject",
    "add_safe_globals",
    "clear_safe_globals",
    "get_crc32_options",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "safe_globals",
    "save",
    "set_crc32_options",
]

DEFAULT_PROTOCOL = 2
_LEGACY_MAGIC, _LEGACY_PROTOCOL = 0x1950A86A20F9469CFC6C, 1001
# Names that no allow-list makes safe.
_BLOCKED_MODULES = frozenset(
    {"sys", "os", "posix", "nt", "subprocess", "shutil", "socket", "ctypes", "importlib", "runpy"}
)

_safe_globals: list[Any] = []
_verify_checksums = True

FileLike = str | os.PathLike[str] | IO[bytes]


# ---------------------------------------------------------------------------------------------------------------- save


def save(
    obj: object,
    f: FileLike,
    pickle_module: Any = pickle,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
) -> None:
    """Writes `obj` to the file `f`, a path or an object with `write`.

    Tensors that share memory share it in the file too; of a storage, only the span that the saved tensors use is
    written. A path is replaced as a whole once everything is written and on the disk: an error, or the end of the
    process at any moment, leaves what was there before.

    Raises RuntimeError when the folder does not exist, OSError when it cannot be written, and what pickle raises for an
    object that cannot be pickled.

    >>> import io, rushlight as torch
    >>> file = io.BytesIO()
    >>> torch.save({"step": 3, "weight": torch.ones(2)}, file)
    >>> _ = file.seek(0)
    >>> torch.load(file)
    {'step': 3, 'weight': tensor([1., 1.])}
    """
    if pickle_module is not pickle:
        raise ValueError(
            f"save: pickle_module must be pickle; got {getattr(pickle_module, '__name__', pickle_module)!r}"
        )
    if not _use_new_zipfile_serialization:
        raise ValueError("save: only the zip format is written; files in the format before PyTorch 1.6 can be read")
    if not isinstance(pickle_protocol, int) or not 2 <= pickle_protocol <= pickle.HIGHEST_PROTOCOL:
        raise ValueError(f"save: pickle_protocol must be 2 to {pickle.HIGHEST_PROTOCOL}; got {pickle_protocol!r}")
    if isinstance(f, (str, os.PathLike)):
        with _replacing(os.fspath(f)) as file:
            _write_archive(obj, file, pickle_protocol)
    elif hasattr(f, "write"):
        _write_archive(obj, f, pickle_protocol)
        flush = getattr(f, "flush", None)
        if flush is not None:
            flush()
    else:
        raise AttributeError(f"save: expected a path or an object with write(), got {type(f).__name__}")


def _write_archive(obj: object, file: IO[bytes], protocol: int) -> None:
    from rushlight._pickle_writer import dump

    data, spans = dump(obj, protocol)
    writer = RecordWriter(file)
    writer.write("archive/data.pkl", data)
    writer.write("archive/.format_version", b"1")
    writer.write("archive/.storage_alignment", b"64")
    writer.write("archive/byteorder", sys.byteorder.encode())
    for span in spans:
        writer.write(f"archive/data/{span.key}", _bytes_of(span.storage)[span.begin : span.end])
    writer.write("archive/version", b"3\n")
    # Tells equal files from different ones without reading them: a digest of the checksums, 40 digits as in PyTorch.
    digest = [zlib.crc32(struct.pack(f"<{len(writer.checksums)}I", *writer.checksums), salt) for salt in range(4)]
    writer.write("archive/.data/serialization_id", "".join(f"{part:010}" for part in digest).encode())
    writer.close()


def _bytes_of(storage: Any) -> memoryview:
    """The storage's memory, which the view keeps alive."""
    return memoryview(storage)


@contextlib.contextmanager
def _replacing(path: str) -> Iterator[IO[bytes]]:
    """A file that takes the place of `path` once the block has ended well."""
    target = os.path.realpath(path)  # a link is written through, not replaced
    folder, name = os.path.split(target)
    if not os.path.isdir(folder):
        raise RuntimeError(f"save: the folder {folder} does not exist")
    try:
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        mode = None
    if mode is not None and not stat.S_ISREG(mode):
        with open(target, "wb") as file:  # a device or a pipe; a folder raises IsADirectoryError
            yield file
        return
    temporary = os.path.join(folder, f".{name[:200]}.{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            os.chmod(temporary, stat.S_IMODE(mode))
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    if hasattr(os, "O_DIRECTORY"):
        with contextlib.suppress(OSError):  # not every file system can sync a folder
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


# ---------------------------------------------------------------------------------------------------------------- load


def load(
    f: FileLike,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Reads what `save`, here or in PyTorch, wrote to `f`: a path, or a binary file object with `read` and `seek`.

    No code from the file is run. It may name tensors, containers, numbers, paths, dates, NumPy arrays and scalars, and
    what `add_safe_globals` allows; any other name is refused with an UnpicklingError that lists all of them. With
    weights_only=False, objects of unknown classes become `UnknownObject`s that hold their data.

    map_location: where storages go: a device, its name, a dict from names to names, or a function of (storage, name).
    mmap: map the file into memory instead of reading it. Needs a path; checksums of storages are then not checked.

    Raises RuntimeError for a damaged file, with the byte at which it is cut off or the record that fails its checksum,
    and UnpicklingError for a pickle that is damaged or asks for what is not allowed.
    """
    if pickle_module is not None and pickle_module is not pickle:
        raise ValueError("load: pickle_module cannot be chosen, since load() has a reader of its own that runs no code")
    encoding = pickle_load_args.pop("encoding", "utf-8")
    for name in ("errors", "fix_imports"):
        pickle_load_args.pop(name, None)
    if pickle_load_args:
        raise TypeError(f"load: unexpected keyword arguments {sorted(pickle_load_args)}")
    if mmap and not isinstance(f, (str, os.PathLike)):
        raise ValueError("load: mmap=True needs a path; got a file object")
    request = _Request(map_location, encoding, keep_unknown=weights_only is False, mmap=bool(mmap))
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            result = _load_file(file, repr(os.fspath(f)), request)
    elif hasattr(f, "read") and hasattr(f, "seek"):
        result = _load_file(f, _label(f), request)
    else:
        raise AttributeError(f"load: expected a path or a file object with read() and seek(), got {type(f).__name__}")
    if request.unknown:
        names = ", ".join(request.unknown)
        warnings.warn(
            f"load: objects of classes that load() does not know were read as data only: {names}", stacklevel=2
        )
    return result


def _label(file: Any) -> str:
    name = getattr(file, "name", None)
    return repr(name) if isinstance(name, str) else type(file).__name__


def _load_file(file: IO[bytes], label: str, request: _Request) -> Any:
    start = file.tell()
    magic = file.read(4)
    file.seek(start)
    if not magic:
        raise EOFError(f"load: {label} is empty")
    if b"PK\x03\x04".startswith(magic):
        return _load_archive(RecordReader(file, label, _verify_checksums), file, label, request)
    return _load_legacy(file.read(), label, request)


class _Request:
    """What the caller of load asked for."""

    def __init__(self, map_location: Any, encoding: str, keep_unknown: bool, mmap: bool) -> None:
        self.encoding, self.keep_unknown, self.mmap = encoding, keep_unknown, mmap
        self.unknown: dict[str, Any] = {}
        self._map_location = map_location
        self._target: str | None = None
        if isinstance(map_location, (str, rushlight.device)):
            self._target = str(rushlight.device(map_location))
        elif map_location is not None and not callable(map_location) and not hasattr(map_location, "get"):
            raise TypeError(
                f"load: map_location must be a device, a name, a dict or a function; got {type(map_location).__name__}"
            )
        self.to_meta = self._target == "meta"

    def place(self, storage: Any, location: str) -> Any:
        """The storage, moved from `location` as the file has it to where map_location wants it."""
        if self._target is not None:
            location = self._target
        elif self._map_location is None:
            pass
        elif callable(self._map_location):
            result = self._map_location(storage, location)
            if result is not None:
                return result.untyped() if isinstance(result, TypedStorage) else result
        else:
            location = str(self._map_location.get(location, location))
        if location.split(":")[0] == "cpu":
            return storage
        raise RuntimeError(
            f"load: a storage belongs on {location!r}, which is not a device here; use map_location='cpu' to put it on "
            "the CPU"
        )


def _constructors(pickle_bytes: bytes) -> Constructors:
    from rushlight._safe_constructors import with_user_globals

    return with_user_globals(_safe_globals, _BLOCKED_MODULES, b"numpy" in pickle_bytes)


def _finish(value: Any) -> Any:
    """Storages saved by themselves come out untyped when they went in so."""
    return value.untyped() if type(value) is _StoredBytes else value


class _StoredBytes(TypedStorage):
    """A storage that the file gives no dtype."""


def _storage_identifier(identifier: Any, length: int) -> tuple[Any, ...]:
    from rushlight._safe_constructors import StorageType

    good = (
        type(identifier) is tuple
        and len(identifier) == length
        and identifier[0] in ("storage", b"storage")
        and isinstance(identifier[1], StorageType)
        and all(type(part) in (str, bytes) for part in identifier[2:4])
        and type(identifier[4]) is int
        and 0 <= identifier[4] < 1 << 60
    )
    if not good:
        raise UnpicklingError(f"load: a reference to a storage that is not one: {identifier!r:.200}")
    return tuple(part.decode("ascii", "replace") if isinstance(part, bytes) else part for part in identifier[1:])


def _typed(storage: Any, kind: Any) -> TypedStorage:
    wrap = _StoredBytes if kind.name == "UntypedStorage" else TypedStorage
    return wrap(wrap_storage=storage, dtype=kind.dtype)


def _empty_storage(nbytes: int, what: str) -> Any:
    try:
        return rushlight.empty(nbytes, dtype=rushlight.uint8).untyped_storage()
    except (MemoryError, RuntimeError) as error:
        raise RuntimeError(f"load: {what} needs {nbytes} bytes of memory: {error}") from error


def _root(reader: RecordReader, label: str) -> str:
    """The folder that holds all records of a checkpoint."""
    roots = {name.partition("/")[0] for name in reader.records if name.endswith("/data.pkl") and name.count("/") == 1}
    if any(name.endswith("/constants.pkl") for name in reader.records):
        raise RuntimeError(f"load: {label} is a TorchScript archive, which is not supported")
    if len(roots) != 1:
        raise RuntimeError(f"load: {label} is a zip archive without one record data.pkl; it is not a checkpoint")
    return roots.pop()


def _load_archive(reader: RecordReader, file: IO[bytes], label: str, request: _Request) -> Any:
    root = _root(reader, label)
    order = sys.byteorder
    if f"{root}/byteorder" in reader.records:
        order = reader.read(f"{root}/byteorder", 16).decode("ascii", "replace")  # type: ignore[assignment]
        if order not in ("little", "big"):
            raise RuntimeError(f"load: {label}: unknown byte order {order!r}; expected 'little' or 'big'")
    mapped = _map_file(file) if request.mmap else None
    loaded: dict[str, Any] = {}

    def load_storage(key: str, nbytes: int, kind: Any) -> Any:
        name = f"{root}/data/{key}"
        record = reader.records.get(name)
        if record is None:
            raise RuntimeError(f"load: {label}: record {name!r} is missing")
        if record.size != nbytes:
            # Checked before memory is asked for, which the file could otherwise make as large as it likes.
            raise RuntimeError(f"load: {label}: record {name!r} has {record.size} bytes; expected {nbytes}")
        if mapped is not None and nbytes and order == sys.byteorder:
            storage = _mapped_storage(reader, record, mapped, kind.dtype.itemsize)
            if storage is not None:
                return storage
        storage = _empty_storage(nbytes, f"{label}: record {name!r}")
        view = _bytes_of(storage)
        reader.read_into(name, view)
        if order != sys.byteorder:
            _swap_bytes(view, kind.dtype)
        return storage

    def persistent_load(identifier: Any) -> Any:
        kind, key, location, numel = _storage_identifier(identifier, 5)
        nbytes = numel * kind.dtype.itemsize
        if key not in loaded:
            if request.to_meta:
                loaded[key] = _meta_storage(nbytes)
            else:
                loaded[key] = request.place(load_storage(key, nbytes, kind), location)
        return _typed(loaded[key], kind)

    data = reader.read(f"{root}/data.pkl")
    pickle_reader = Reader(
        data,
        _constructors(data),
        persistent_load,
        label=f"{label}, record {root + '/data.pkl'!r}",
        encoding=request.encoding,
        keep_unknown=request.keep_unknown,
        finish=_finish,
    )
    result = pickle_reader.load()
    if _verify_checksums:
        # What no tensor refers to is still part of a sound file. A mapped file is not read through.
        for name in reader.records:
            if name.startswith(f"{root}/data/") and (
                request.mmap or request.to_meta or name[len(root) + 6 :] in loaded
            ):
                continue
            reader.verify(name)
    request.unknown.update(pickle_reader.unknown)
    return result


def _meta_storage(nbytes: int) -> Any:
    return rushlight.empty(nbytes, dtype=rushlight.uint8, device="meta").untyped_storage()


def _map_file(file: IO[bytes]) -> memoryview:
    import mmap

    # A private mapping: tensors may be written, the file stays as it is.
    return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))


def _mapped_storage(reader: RecordReader, record: Record, mapped: memoryview, itemsize: int) -> Any:
    begin = reader.data_offset(record)
    if record.stored_size != record.size or record.method != 0 or begin % itemsize:
        return None
    return rushlight.UntypedStorage._from_buffer(mapped[begin : begin + record.size])


def _swap_bytes(view: memoryview, dtype: Any) -> None:
    size = dtype.itemsize // 2 if dtype.is_complex else dtype.itemsize
    for i in range(size // 2):
        j = size - 1 - i
        low, high = bytes(view[i::size]), bytes(view[j::size])
        view[i::size], view[j::size] = high, low


# ------------------------------------------------------------------------------- the format before PyTorch 1.6


def _load_legacy(data: bytes, label: str, request: _Request) -> Any:
    """Five pickles (magic number, version, system, the object, its storages' keys), then the storages' bytes."""
    position = 0
    if not data.startswith(b"\x80"):
        raise UnpicklingError(f"load: {label} is neither a zip archive nor a pickle; it begins with {data[:8]!r}")
    constructors = _constructors(data)
    loaded: dict[str, Any] = {}
    dtypes: dict[str, Any] = {}
    sizes: dict[str, int] = {}

    def persistent_load(identifier: Any) -> Any:
        if type(identifier) is tuple and identifier and identifier[0] in ("module", b"module"):
            raise UnpicklingError(
                f"load: {label} refers to the class {identifier[1]!r:.100}, which load() does not use"
            )
        kind, key, location, numel, view = _storage_identifier(identifier, 6)
        nbytes = numel * kind.dtype.itemsize
        if key not in loaded:
            if nbytes > len(data):
                raise UnpicklingError(f"load: {label}: storage {key!r} needs {nbytes} bytes, more than the file has")
            dtypes[key], sizes[key] = kind.dtype, nbytes
            if request.to_meta:
                loaded[key] = _meta_storage(nbytes)
            else:
                loaded[key] = request.place(_empty_storage(nbytes, f"{label}: storage {key!r}"), location)
        if view is None:
            return _typed(loaded[key], kind)
        if not (
            type(view) is tuple and len(view) == 3 and type(view[0]) in (str, bytes)
            and type(view[1]) is type(view[2]) is int and view[1] >= 0 and view[2] >= 0
            and (view[1] + view[2]) * kind.dtype.itemsize <= sizes[key]
        ):  # fmt: skip
            raise UnpicklingError(
                f"load: {label}: a view of storage {key!r} that does not lie within it: {view!r:.100}"
            )
        # A part under a name of its own, as files from before PyTorch 0.4 have it.
        part = _typed(loaded[key], kind)
        part._begin, part._size = view[1], view[2]
        return part

    def read(persistent: Callable[[Any], Any] | None = None) -> Any:
        nonlocal position
        reader = Reader(
            data,
            constructors,
            persistent,
            label=label,
            position=position,
            encoding=request.encoding,
            keep_unknown=request.keep_unknown,
            finish=_finish,
        )
        result = reader.load()
        position = reader.position
        if persistent is not None:
            request.unknown.update(reader.unknown)
        return result

    if read() != _LEGACY_MAGIC:
        raise RuntimeError(f"load: {label} is a pickle, but not one of a checkpoint")
    version = read()
    if version != _LEGACY_PROTOCOL:
        raise RuntimeError(f"load: {label} has protocol version {version!r:.50}; expected {_LEGACY_PROTOCOL}")
    system = read()
    order: Literal["little", "big"] = (
        "big" if isinstance(system, dict) and system.get("little_endian") is False else "little"
    )
    result = read(persistent_load)
    keys = read()
    if not isinstance(keys, list) or not all(type(key) is str for key in keys):
        raise UnpicklingError(f"load: {label}: the list of storages is not one")
    for key in keys:
        if key not in loaded:
            raise UnpicklingError(f"load: {label}: no tensor refers to storage {key!r}")
        # The bytes follow their number of elements.
        if position + 8 > len(data):
            raise RuntimeError(
                f"load: {label}: truncated at byte {len(data)}: storage {key!r} begins at byte {position}"
            )
        numel = int.from_bytes(data[position : position + 8], order, signed=True)
        begin, position = position + 8, position + 8 + sizes[key]
        if numel * dtypes[key].itemsize != sizes[key]:
            raise RuntimeError(
                f"load: {label}: damaged: storage {key!r} has {numel} elements; expected {sizes[key]} bytes"
            )
        if position > len(data):
            raise RuntimeError(
                f"load: {label}: truncated at byte {len(data)}: storage {key!r} needs {sizes[key]} bytes from byte "
                f"{begin}"
            )
        if not request.to_meta:
            view = _bytes_of(loaded[key])
            view[:] = data[begin:position]
            if order != sys.byteorder:
                _swap_bytes(view, dtypes[key])
    if set(keys) != set(loaded):
        raise UnpicklingError(f"load: {label}: storages {sorted(set(loaded) - set(keys))} have no bytes in the file")
    return result


# ----------------------------------------------------------------------------------------------------------- allow-list


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Lets `load` use these classes and functions, each given as itself or as (itself, "module.name in the file").

    What a file does with them is then up to it, so allow only what is harmless with any arguments.
    """
    for entry in safe_globals:
        value, name = entry if isinstance(entry, tuple) else (entry, None)
        if not callable(value) or (name is not None and not isinstance(name, str)):
            raise TypeError(f"add_safe_globals: expected classes, functions or (callable, name) pairs; got {entry!r}")
        if name is None and not hasattr(value, "__qualname__"):
            raise TypeError(f"add_safe_globals: {value!r} has no name; give (callable, name)")
        if entry not in _safe_globals:
            _safe_globals.append(entry)


def get_safe_globals() -> list[Any]:
    """What add_safe_globals has allowed."""
    return list(_safe_globals)


def clear_safe_globals() -> None:
    """Takes back all that add_safe_globals has allowed."""
    _safe_globals.clear()


class safe_globals:
    """Allows these classes and functions within a `with` block.

    >>> class Config: pass
    >>> with safe_globals([Config]):
    ...     Config in get_safe_globals()
    True
    """

    def __init__(self, safe_globals: list[Any]) -> None:
        self._wanted = safe_globals
        self._before: list[Any] = []

    def __enter__(self) -> None:
        self._before = get_safe_globals()
        add_safe_globals(self._wanted)

    def __exit__(self, *_: object) -> None:
        _safe_globals[:] = self._before


def get_unsafe_globals_in_checkpoint(f: FileLike) -> list[str]:
    """The names in a checkpoint that `load` would refuse, as "module.name"."""
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            return get_unsafe_globals_in_checkpoint(file)
    start = f.tell()
    archive = RecordReader(f, _label(f), _verify_checksums)
    data = archive.read(f"{_root(archive, _label(f))}/data.pkl")
    f.seek(start)
    reader = Reader(data, _constructors(data), label=_label(f))
    return reader.unknown_names()


def get_crc32_options() -> bool:
    """Whether load verifies checksums."""
    return _verify_checksums


def set_crc32_options(compute_crc32: bool) -> None:
    """Turns the verification of checksums by `load` off or on (on by default). `save` always writes them.

    Files that PyTorch wrote with this option off have no valid checksums.
    """
    global _verify_checksums
    _verify_checksums = bool(compute_crc32)
