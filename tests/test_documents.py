"""The code in the documents runs, and what they link to exists."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md")])


def blocks(path: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


# Design notes quote fragments; everywhere else a block `python` is a whole program.
CODE = [
    (path, number, code)
    for path in DOCUMENTS
    if path.parent.name != "design"
    for number, code in enumerate(blocks(path))
]


@pytest.mark.parametrize("path, number, code", CODE, ids=[f"{p.relative_to(ROOT)}-{n}" for p, n, _ in CODE])
def test_code_runs(path, number, code, tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, f"{path}, block {number}:\n{done.stderr}"


def test_the_readme_has_its_training_script():
    assert sum("optimizer.step()" in code for path, _, code in CODE if path.name == "README.md") == 1


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(path):
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        if "://" not in target:
            assert (path.parent / target).exists(), f"{path} links to {target}, which does not exist"
