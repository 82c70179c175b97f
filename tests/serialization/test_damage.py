"""Damaged files: the message says where, and no damage passes as data."""

from __future__ import annotations

import io
import pickle
import re
import zipfile

import pytest
from checkpoints import archive, assert_checkpoint, checkpoint, loaded, pickled, saved, tensor_call

import rushlight
from rushlight import serialization

ERRORS = (RuntimeError, pickle.UnpicklingError)


def big_checkpoint() -> bytes:
    return saved({**checkpoint(), "large": rushlight.arange(20_000, dtype=rushlight.int32)})


def test_truncated_anywhere():
    data = big_checkpoint()
    assert_checkpoint(loaded(data))
    for size in [*range(1, len(data), 997), *range(1, 40), *range(len(data) - 40, len(data))]:
        with pytest.raises(RuntimeError, match=f"truncated at byte {size}[:,]"):
            loaded(data[:size])


def test_truncation_names_the_record_cut():
    data = big_checkpoint()
    with pytest.raises(
        RuntimeError, match=r"truncated at byte 5000, inside record 'archive/data/3', which has 80000 bytes"
    ):
        loaded(data[:5000])


def test_empty_file(tmp_path):
    with pytest.raises(EOFError, match="is empty"):
        loaded(b"")
    (tmp_path / "x.pt").write_bytes(b"")
    with pytest.raises(EOFError, match=r"x\.pt' is empty"):
        rushlight.load(tmp_path / "x.pt")


def test_bytes_after_the_end():
    with pytest.raises(RuntimeError, match=r"truncated|damaged"):
        loaded(saved(checkpoint()) + b"\x00")


def test_a_flipped_byte_of_a_record_names_it():
    data = bytearray(big_checkpoint())
    with zipfile.ZipFile(io.BytesIO(data)) as zipped:
        for info in zipped.infolist():
            begin = info.header_offset + 30 + data[info.header_offset + 26] + data[info.header_offset + 28]
            for offset in {0, info.file_size // 2, info.file_size - 1}:
                data[begin + offset] ^= 0x10
                with pytest.raises(RuntimeError, match=rf"record '{re.escape(info.filename)}' fails its checksum"):
                    loaded(bytes(data))
                data[begin + offset] ^= 0x10
    assert_checkpoint(loaded(bytes(data)))


def test_a_flipped_bit_anywhere_is_noticed_or_harmless():
    data = bytearray(saved(checkpoint()))
    for position in range(len(data)):
        bit = 1 << position % 8
        data[position] ^= bit
        try:
            found = loaded(bytes(data))
        except ERRORS:
            pass
        else:
            assert_checkpoint(found)  # padding, dates and the like
        data[position] ^= bit


def test_checksums_can_be_left_unverified():
    data = bytearray(saved(rushlight.zeros(4)))
    with zipfile.ZipFile(io.BytesIO(data)) as zipped:
        info = zipped.getinfo("archive/data/0")
    begin = info.header_offset + 30 + data[info.header_offset + 26] + data[info.header_offset + 28]
    data[begin] = 1
    with pytest.raises(RuntimeError, match="fails its checksum"):
        loaded(bytes(data))
    serialization.set_crc32_options(False)
    try:
        assert not serialization.get_crc32_options()
        assert loaded(bytes(data))[0].item() != 0
    finally:
        serialization.set_crc32_options(True)


@pytest.mark.parametrize(
    "garbage", [b"P", b"not a checkpoint", b"\x80\x02.", b"\x00" * 100, b"PK\x03\x04" + b"\x00" * 60]
)
def test_garbage(garbage):
    with pytest.raises(ERRORS):
        loaded(garbage)


def test_other_zip_archives():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as zipped:
        zipped.writestr("readme.txt", "hello")
    with pytest.raises(RuntimeError, match="not a checkpoint"):
        loaded(file.getvalue())


def test_records_missing_or_of_the_wrong_size():
    with pytest.raises(RuntimeError, match="record 'archive/data/0' is missing"):
        loaded(archive(pickled(tensor_call())))
    with pytest.raises(RuntimeError, match="record 'archive/data/0' has 20 bytes; expected 24"):
        loaded(archive(pickled(tensor_call()), {"0": bytes(20)}))
    assert loaded(archive(pickled(tensor_call()), {"0": bytes(24)})).tolist() == [[0, 0, 0], [0, 0, 0]]


def test_truncated_and_flipped_old_format():
    torch = pytest.importorskip("torch", reason="PyTorch, which writes the old format, is not installed")
    file = io.BytesIO()
    torch.save({"x": torch.arange(6), "y": [1, "two"]}, file, _use_new_zipfile_serialization=False)
    data = file.getvalue()
    assert loaded(data)["x"].tolist() == [0, 1, 2, 3, 4, 5]
    for size in range(1, len(data)):
        with pytest.raises((RuntimeError, pickle.UnpicklingError, EOFError)):
            loaded(data[:size])
    with pytest.raises(RuntimeError, match=f"truncated at byte {len(data) - 1}"):
        loaded(data[:-1])
    flipped = bytearray(data)
    for position in range(len(data)):
        flipped[position] ^= 1 << position % 8
        try:
            loaded(bytes(flipped))  # this format has no checksums: wrong values may pass, but nothing else
        except ERRORS:
            pass
        flipped[position] ^= 1 << position % 8
