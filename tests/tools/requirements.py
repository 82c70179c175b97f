"""Prints the requirements that pyproject.toml states: the run-time ones and those of the extras named as arguments.

    python tests/tools/requirements.py test demo

`--build` adds what a build without isolation needs. A developer build is not installed as a package, so pip cannot be
asked for `.[test]`.
"""

from __future__ import annotations

import sys
from pathlib import Path

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    from pip._vendor import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]


def requirements(extras: list[str], build: bool) -> list[str]:
    document = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = document["project"]
    found = list(project["dependencies"])
    for extra in extras:
        if extra not in project["optional-dependencies"]:
            raise SystemExit(f"requirements.py: pyproject.toml has no extra {extra!r}")
        found += project["optional-dependencies"][extra]
    if build:
        tools = document["tool"]["scikit-build"]
        found += [f"cmake{tools['cmake']['version']}", f"ninja{tools['ninja']['version']}"]
    return found


if __name__ == "__main__":
    names = sys.argv[1:]
    print("\n".join(requirements([n for n in names if n != "--build"], "--build" in names)))
