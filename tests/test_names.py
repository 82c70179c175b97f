"""Every public name of PyTorch is here, or is listed with a reason in docs/differences.md."""

from __future__ import annotations

import importlib
import pathlib
import re
import types
import typing

import pytest

reference = pytest.importorskip("torch")
importlib.import_module("torch.utils.data")

SPACES = (
    "",
    "Tensor",
    "linalg",
    "fft",
    "special",
    "nn",
    "nn.functional",
    "nn.init",
    "optim",
    "autograd",
    "utils.data",
    "testing",
    "storage",
    "random",
    "types",
    "overrides",
    "utils.dlpack",
)
DOCUMENT = pathlib.Path(__file__).parents[1] / "docs" / "differences.md"


def space(package, path):
    found = package
    for part in filter(None, path.split(".")):
        found = getattr(found, part)
    return found


def is_theirs(path, owner, name):
    """Whether a name of a module is meant for users, and not something the module imported or documents with."""
    value = getattr(owner, name)
    imported = isinstance(value, (str, dict, bool, typing.TypeVar)) or value is reference.Tensor
    if path not in ("", "Tensor") and imported:
        return False
    if isinstance(value, types.ModuleType):
        return value.__name__.startswith("torch.") and not value.__name__.startswith("torch._")
    home = getattr(value, "__module__", None)
    return not isinstance(home, str) or home.split(".")[0] == "torch"


def names(path):
    owner = space(reference, path)
    return sorted(n for n in dir(owner) if not n.startswith("_") and is_theirs(path, owner, n))


def absent():
    """What the document lists: namespace -> name -> reason."""
    block = re.search(r"```absent\n(.*?)```", DOCUMENT.read_text(), re.S)
    assert block, "docs/differences.md has no block of absent names"
    listed: dict[str, dict[str, str]] = {path: {} for path in SPACES}
    reason = ""
    for line in block[1].splitlines():
        if line.startswith("# "):
            reason = line[2:]
        elif line:
            path, _, rest = line.partition(": ")
            path = "" if path == "torch" else path.removeprefix("torch.")
            for name in rest.split():
                assert name not in listed[path], f"{path}.{name} is listed twice"
                listed[path][name] = reason
    return listed


@pytest.mark.parametrize("path", SPACES, ids=lambda p: p or "torch")
def test_every_name_is_present_or_listed(path):
    listed = absent()[path]
    ours = space(importlib.import_module("rushlight"), path)
    have = {n for n in names(path) if hasattr(ours, n)}
    assert sorted(have & set(listed)) == [], "names that are listed as absent are present"
    theirs = space(reference, path)
    assert [n for n in listed if not hasattr(theirs, n)] == [], "names are listed that PyTorch does not have"
    assert sorted(set(names(path)) - have - set(listed)) == []


@pytest.mark.parametrize("path", [p for p in SPACES if p not in ("Tensor",)], ids=lambda p: p or "torch")
def test_dir_lists_what_can_be_had(path):
    ours = space(importlib.import_module("rushlight"), path)
    for name in dir(ours):
        assert getattr(ours, name, None) is not None or name in ("newaxis", "cuda", "hip", "xpu", "rocm"), name
