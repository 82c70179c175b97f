"""The examples in the docstrings of nn, optim and utils.data run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

rl = importlib.import_module("rushlight")


def modules():
    for package in ("rushlight.nn", "rushlight.optim", "rushlight.utils.data"):
        root = importlib.import_module(package)
        yield package
        for info in pkgutil.walk_packages(root.__path__, package + "."):
            yield info.name


@pytest.mark.parametrize("name", list(modules()))
def test_examples(name):
    module = importlib.import_module(name)
    finder = doctest.DocTestFinder(recurse=True)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for test in finder.find(module, name, extraglobs={"torch": rl, "rl": rl}):
        if test.examples:
            result = runner.run(test)
            assert result.failed == 0, test.name
