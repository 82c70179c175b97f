"""save replaces a file as a whole or leaves it alone."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time

import pytest
from checkpoints import assert_checkpoint, checkpoint

import rushlight


class Broken:
    def __reduce__(self):
        raise ArithmeticError("cannot be pickled")


def test_a_failed_save_leaves_the_old_file_and_no_rest(tmp_path):
    path = tmp_path / "x.pt"
    rushlight.save(checkpoint(), path)
    with pytest.raises(ArithmeticError, match="cannot be pickled"):
        rushlight.save({"a": rushlight.ones(3), "b": Broken()}, path)
    assert os.listdir(tmp_path) == ["x.pt"]
    assert_checkpoint(rushlight.load(path))


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_errors_of_the_system_leave_the_old_file(tmp_path, monkeypatch, failing):
    path = tmp_path / "x.pt"
    rushlight.save(checkpoint(), path)

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, failing, fail)
    with pytest.raises(OSError, match="No space left"):
        rushlight.save([1], path)
    monkeypatch.undo()
    assert os.listdir(tmp_path) == ["x.pt"]
    assert_checkpoint(rushlight.load(path))


def test_data_are_on_the_disk_before_the_name_changes(tmp_path, monkeypatch):
    events = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda fd: (events.append("sync"), fsync(fd)))
    monkeypatch.setattr(os, "replace", lambda a, b: (events.append("rename"), replace(a, b)))
    rushlight.save([1], tmp_path / "x.pt")
    assert events == ["sync", "rename", "sync"]


def test_killed_while_saving(tmp_path):
    path = tmp_path / "x.pt"
    rushlight.save(checkpoint(), path)
    code = (
        "import sys, rushlight\n"
        "data = [rushlight.zeros(1 << 22) for _ in range(8)]\n"
        "print('ready', flush=True)\n"
        "while True: rushlight.save(data, sys.argv[1])\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "y.pt")], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(0.5)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    if (tmp_path / "y.pt").exists():
        assert len(rushlight.load(tmp_path / "y.pt")) == 8
    assert_checkpoint(rushlight.load(path))


def test_mode_and_links_are_kept(tmp_path):
    path = tmp_path / "x.pt"
    rushlight.save([1], path)
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask
    path.chmod(0o640)
    link = tmp_path / "link.pt"
    link.symlink_to(path)
    rushlight.save([2], link)
    assert link.is_symlink()
    assert rushlight.load(path) == [2]
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_devices_are_written_not_replaced():
    rushlight.save(checkpoint(), os.devnull)
    assert not stat.S_ISREG(os.stat(os.devnull).st_mode)


def test_a_pipe(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = subprocess.Popen(["cat", str(path)], stdout=subprocess.PIPE)
    rushlight.save(checkpoint(), path)
    data, _ = reader.communicate(timeout=20)
    (tmp_path / "x.pt").write_bytes(data)
    assert_checkpoint(rushlight.load(tmp_path / "x.pt"))


def test_folders(tmp_path):
    with pytest.raises(RuntimeError, match=r"the folder .*missing does not exist"):
        rushlight.save(1, tmp_path / "missing" / "x.pt")
    with pytest.raises(IsADirectoryError):
        rushlight.save(1, tmp_path)
    with pytest.raises(FileNotFoundError):
        rushlight.load(tmp_path / "missing.pt")


def test_a_name_as_long_as_names_may_be(tmp_path):
    path = tmp_path / ("x" * 255)
    rushlight.save([1], path)
    assert rushlight.load(path) == [1]


def test_a_name_in_the_working_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rushlight.save([1], "x.pt")
    assert rushlight.load("x.pt") == [1]
