"""The documentation builds, and its index has every public operation."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import rushlight
from rushlight import _C

pytest.importorskip("markdown")
ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    out = tmp_path_factory.mktemp("documentation") / "html"
    done = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "build.py"), "--out", str(out)],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return out


def test_every_operation_is_in_the_index(built):
    text = (built / "index_of_operations.html").read_text()
    for space in ("", "nn.functional", "linalg", "special"):
        title = "rushlight" + (f".{space}" if space else "")
        section = text.split(f'<h2 id="{title}">')[1].split("<h2")[0]
        listed = set(re.findall(r">([\w]+)</a>", section))
        assert set(_C.operations(space)) <= listed, space
    methods = text.split('<h2 id="Tensor">')[1].split("<h2")[0]
    kind = type(vars(rushlight.Tensor)["add"])
    ours = {n for n, v in vars(rushlight.Tensor).items() if isinstance(v, kind)}
    assert ours - set(re.findall(r">([\w]+)</a>", methods)) == set()


def test_the_index_leads_somewhere(built):
    links = set(re.findall(r'operations.html#(\w+)"', (built / "index_of_operations.html").read_text()))
    places = set(re.findall(r'<h2 id="(\w+)"', (built / "operations.html").read_text()))
    assert links and links <= places
