"""Named records in a zip archive, as checkpoints keep them: stored, aligned to 64 bytes, each with a checksum.

The writer knows every size beforehand and never seeks, so it can write to a pipe. The reader trusts nothing: every
offset is checked against the file, records may not overlap or share a name, and every record's checksum is verified.
"""

from __future__ import annotations

import io
import struct
import zlib
from typing import IO, NamedTuple, Protocol

ALIGNMENT = 64
# Sizes and offsets from here on go into a zip64 field. A module variable, so that a test can lower it.
ZIP64_LIMIT = 0xFFFFFFFF

_LOCAL = struct.Struct("<4s5H3I2H")
_CENTRAL = struct.Struct("<4s6H3I5H2I")
_END = struct.Struct("<4s4H2IH")
_END64 = struct.Struct("<4sQ2H2I4Q")
_LOCATOR64 = struct.Struct("<4sIQI")
_LOCAL_MAGIC, _CENTRAL_MAGIC, _END_MAGIC = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"
_END64_MAGIC, _LOCATOR64_MAGIC = b"PK\x06\x06", b"PK\x06\x07"

_UTF8_NAME = 1 << 11
_ENCRYPTED = 1
_STORED, _DEFLATED = 0, 8
_DATE = (1980 - 1980) << 9 | 1 << 5 | 1  # no time of writing, so that equal contents make equal files
# A deflated record may grow this much; what grows more was made to exhaust the memory of its reader.
_MAX_EXPANSION, _FREE_EXPANSION = 100, 1 << 20


class Writable(Protocol):
    def write(self, data: bytes, /) -> object: ...


class RecordWriter:
    """Writes records one after the other to `file`; `close` adds the directory."""

    def __init__(self, file: Writable) -> None:
        self._file = file
        self._position = 0
        self._directory: list[bytes] = []
        self.checksums: list[int] = []

    def _put(self, data: bytes | memoryview) -> None:
        # A raw file may take less than it is given.
        view = memoryview(data)
        while len(view):
            written = self._file.write(view)  # type: ignore[arg-type]
            if not isinstance(written, int) or written >= len(view):
                break
            view = view[written:]
        self._position += len(data)

    def write(self, name: str, data: bytes | memoryview) -> None:
        encoded = name.encode()
        start, size, checksum = self._position, len(data), zlib.crc32(data)
        large = size >= ZIP64_LIMIT
        extra = struct.pack("<2H2Q", 1, 16, size, size) if large else b""
        begin = start + _LOCAL.size + len(encoded) + len(extra) + 4
        padding = -begin % ALIGNMENT
        extra += struct.pack("<2s H", b"FB", padding) + b"Z" * padding
        short = 0xFFFFFFFF if large else size
        version = 45 if large else 20
        fields = (version, _UTF8_NAME, _STORED, 0, _DATE, checksum, short, short, len(encoded), len(extra))
        self._put(_LOCAL.pack(_LOCAL_MAGIC, *fields) + encoded + extra)
        self._put(data)

        far = start >= ZIP64_LIMIT
        sizes = struct.pack("<2Q", size, size) if large else b""
        sizes += struct.pack("<Q", start) if far else b""
        extra = struct.pack("<2H", 1, len(sizes)) + sizes if sizes else b""
        version = 45 if sizes else 20
        self._directory.append(
            _CENTRAL.pack(
                _CENTRAL_MAGIC, version, version, _UTF8_NAME, _STORED, 0, _DATE, checksum, short, short, len(encoded),
                len(extra), 0, 0, 0, 0, 0xFFFFFFFF if far else start,
            ) + encoded + extra
        )  # fmt: skip
        self.checksums.append(checksum)

    def close(self) -> None:
        start, count = self._position, len(self._directory)
        self._put(b"".join(self._directory))
        size = self._position - start
        if start >= ZIP64_LIMIT or size >= ZIP64_LIMIT or count >= 0xFFFF:
            end64 = self._position
            self._put(_END64.pack(_END64_MAGIC, _END64.size - 12, 45, 45, 0, 0, count, count, size, start))
            self._put(_LOCATOR64.pack(_LOCATOR64_MAGIC, 0, end64, 1))
            start = size = 0xFFFFFFFF
            count = 0xFFFF
        self._put(_END.pack(_END_MAGIC, 0, 0, count, count, size, start, 0))


class Record(NamedTuple):
    name: str
    method: int
    checksum: int
    stored_size: int
    size: int
    offset: int  # of the local header
    limit: int  # where the next record or the directory begins


class RecordReader:
    """The records of the archive in `file`, a seekable binary file that ends with the archive.

    Raises RuntimeError with the record's name, or the byte at which the file ends too early.
    """

    def __init__(self, file: IO[bytes], label: str, verify: bool = True) -> None:
        self._file, self._label, self._verify = file, label, verify
        self._start = file.tell()
        self.file_size = file.seek(0, io.SEEK_END) - self._start
        self.records = self._read_directory()

    def _fail(self, text: str) -> RuntimeError:
        return RuntimeError(f"load: {self._label}: {text}")

    def _read(self, offset: int, size: int, what: str) -> bytes:
        if offset < 0 or offset + size > self.file_size:
            raise self._fail(f"truncated at byte {self.file_size}: {what} needs bytes {offset} to {offset + size}")
        self._file.seek(self._start + offset)
        data = self._file.read(size)
        if len(data) != size:
            raise self._fail(f"truncated at byte {offset + len(data)}: {what} needs {size} bytes from byte {offset}")
        return data

    def _find_end(self) -> tuple[int, tuple[int, int, int]]:
        """The position of the end record, and (number of records, size and offset of the directory)."""
        tail_size = min(self.file_size, _END.size + 0xFFFF)
        tail = self._read(self.file_size - tail_size, tail_size, "the end of the archive")
        at = len(tail)
        while (at := tail.rfind(_END_MAGIC, 0, at)) >= 0:
            if at + _END.size <= len(tail):
                _, disk, disk2, here, count, size, offset, comment = _END.unpack_from(tail, at)
                if at + _END.size + comment == len(tail) and disk == disk2 == 0 and here == count:
                    break
        else:
            raise self._fail(f"truncated at byte {self.file_size}{self._unfinished_record()}")
        end = self.file_size - tail_size + at
        if 0xFFFFFFFF not in (size, offset) and count != 0xFFFF:
            return end, (count, size, offset)
        locator = self._read(end - _LOCATOR64.size, _LOCATOR64.size, "the zip64 locator")
        magic, _, end64, _ = _LOCATOR64.unpack(locator)
        if magic != _LOCATOR64_MAGIC:
            if count == 0xFFFF and 0xFFFFFFFF not in (size, offset):
                return end, (count, size, offset)
            raise self._fail("damaged: the archive's zip64 locator is missing")
        magic, _, _, _, _, _, here, count, size, offset = _END64.unpack(self._read(end64, _END64.size, "the zip64 end"))
        if magic != _END64_MAGIC or here != count:
            raise self._fail("damaged: the archive's zip64 end record is not one")
        return end64, (count, size, offset)

    def _unfinished_record(self) -> str:
        """Which record a file without a directory ends in, as far as the headers of its records tell."""
        position = 0
        while position + _LOCAL.size <= self.file_size:
            header = _LOCAL.unpack(self._read(position, _LOCAL.size, "a header"))
            if header[0] != _LOCAL_MAGIC or header[2] & 8:
                break
            name_size, extra_size, size = header[9], header[10], header[7]
            begin = position + _LOCAL.size + name_size + extra_size
            if size == 0xFFFFFFFF or begin > self.file_size:
                break
            if begin + size > self.file_size:
                name = self._read(position + _LOCAL.size, name_size, "a name").decode("utf-8", "replace")
                return f", inside record {name!r}, which has {size} bytes from byte {begin}"
            position = begin + size
        return ", before the archive's directory"

    def _read_directory(self) -> dict[str, Record]:
        end, (count, size, offset) = self._find_end()
        if offset + size > end or count * _CENTRAL.size > size:
            raise self._fail(f"damaged: its directory ({count} records, {size} bytes from byte {offset}) does not fit")
        data = self._read(offset, size, "the archive's directory")
        found: list[Record] = []
        position = 0
        for number in range(count):
            try:
                entry = _CENTRAL.unpack_from(data, position)
                magic, _, _, flags, method, _, _, checksum, stored, full, name_size, extra_size, comment_size = entry[
                    :13
                ]
                disk, begin = entry[13], entry[16]
                if magic != _CENTRAL_MAGIC:
                    raise ValueError
                position += _CENTRAL.size
                raw = data[position : position + name_size]
                extra = data[position + name_size : position + name_size + extra_size]
                position += name_size + extra_size + comment_size
                if position > size or disk:
                    raise ValueError
                name = raw.decode("utf-8")
                stored, full, begin = self._zip64_values(extra, stored, full, begin)
            except (struct.error, ValueError, IndexError):
                raise self._fail(f"damaged: entry {number} of its directory is not one") from None
            if flags & _ENCRYPTED or method not in (_STORED, _DEFLATED):
                raise self._fail(f"record {name!r} is encrypted or compressed in a way that is not supported")
            if method == _STORED and stored != full:
                raise self._fail(f"damaged: record {name!r} has two sizes, {stored} and {full}")
            found.append(Record(name, method, checksum, stored, full, begin, 0))
        if position != size:
            raise self._fail(f"damaged: its directory has {size - position} bytes too many")
        records: dict[str, Record] = {}
        limit = offset
        for record in sorted(found, key=lambda r: r.offset, reverse=True):
            if record.name in records:
                raise self._fail(f"two records are named {record.name!r}")
            if record.offset + _LOCAL.size + len(record.name.encode()) + record.stored_size > limit:
                raise self._fail(f"damaged: record {record.name!r} overlaps what follows it")
            records[record.name] = record._replace(limit=limit)
            limit = record.offset
        return {record.name: records[record.name] for record in found}

    @staticmethod
    def _zip64_values(extra: bytes, stored: int, full: int, begin: int) -> tuple[int, int, int]:
        position = 0
        while position + 4 <= len(extra):
            kind, size = struct.unpack_from("<2H", extra, position)
            position += 4
            if kind == 1:
                values = list(struct.unpack(f"<{size // 8}Q", extra[position : position + size // 8 * 8]))
                full = values.pop(0) if full == 0xFFFFFFFF else full
                stored = values.pop(0) if stored == 0xFFFFFFFF else stored
                begin = values.pop(0) if begin == 0xFFFFFFFF else begin
                break
            position += size
        return stored, full, begin

    def data_offset(self, record: Record) -> int:
        """Where the record's bytes begin in the file, counted from the archive's start."""
        header = _LOCAL.unpack(self._read(record.offset, _LOCAL.size, f"the header of record {record.name!r}"))
        name_size, extra_size = int(header[9]), int(header[10])
        name = self._read(record.offset + _LOCAL.size, name_size, f"the name of record {record.name!r}")
        begin = record.offset + _LOCAL.size + name_size + extra_size
        if header[0] != _LOCAL_MAGIC or name != record.name.encode() or header[3] != record.method:
            raise self._fail(f"damaged: record {record.name!r} has another header than the directory says")
        if begin + record.stored_size > record.limit:
            raise self._fail(f"damaged: record {record.name!r} overlaps what follows it")
        return begin

    def _check(self, record: Record, checksum: int) -> None:
        if self._verify and checksum != record.checksum:
            raise self._fail(
                f"record {record.name!r} fails its checksum: expected {record.checksum:08x}, got {checksum:08x}; "
                "the file is damaged"
            )

    def read(self, name: str, limit: int | None = None) -> bytes:
        """The whole record. `limit`: how many bytes the caller is ready to take."""
        record = self.records.get(name)
        if record is None:
            raise self._fail(f"record {name!r} is missing")
        if limit is not None and record.size > limit:
            raise self._fail(f"record {name!r} has {record.size} bytes; expected at most {limit}")
        begin = self.data_offset(record)
        data = self._read(begin, record.stored_size, f"record {name!r}")
        if record.method == _DEFLATED:
            data = self._inflate(record, data)
        self._check(record, zlib.crc32(data))
        return data

    def read_into(self, name: str, target: memoryview) -> None:
        """Fills `target`, whose size must be the record's."""
        record = self.records.get(name)
        if record is None:
            raise self._fail(f"record {name!r} is missing")
        if record.size != len(target):
            raise self._fail(f"record {name!r} has {record.size} bytes; expected {len(target)}")
        readinto = getattr(self._file, "readinto", None)
        if record.method != _STORED or readinto is None:
            target[:] = self.read(name)
            return
        begin = self.data_offset(record)
        self._file.seek(self._start + begin)
        filled = 0
        while filled < len(target):
            count = readinto(target[filled:])
            if not count:
                raise self._fail(
                    f"truncated at byte {begin + filled}: record {name!r} needs {len(target)} bytes from byte {begin}"
                )
            filled += count
        if self._verify:
            self._check(record, zlib.crc32(target))

    def _inflate(self, record: Record, data: bytes) -> bytes:
        if record.size > record.stored_size * _MAX_EXPANSION + _FREE_EXPANSION:
            raise self._fail(
                f"record {record.name!r} would grow from {record.stored_size} to {record.size} bytes, which no sound "
                "checkpoint does"
            )
        stream = zlib.decompressobj(-15)
        try:
            full = stream.decompress(data, record.size + 1)
        except zlib.error as error:
            raise self._fail(f"record {record.name!r} cannot be decompressed: {error}") from None
        if len(full) != record.size:
            raise self._fail(f"record {record.name!r} does not have the {record.size} bytes that the directory says")
        return full

    def verify(self, name: str) -> None:
        """Reads a record for its checksum alone, in pieces."""
        record = self.records[name]
        if record.method != _STORED:
            self.read(name)
            return
        begin, checksum, done = self.data_offset(record), 0, 0
        while done < record.size:
            piece = self._read(begin + done, min(1 << 20, record.size - done), f"record {name!r}")
            checksum = zlib.crc32(piece, checksum)
            done += len(piece)
        self._check(record, checksum)
