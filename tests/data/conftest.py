"""Tests that take `torch` run on rushlight and, where it is installed, on PyTorch: what they say holds for both."""

from __future__ import annotations

import importlib

import pytest


@pytest.fixture(params=["rushlight", "torch"])
def torch(request):
    if request.param == "torch":
        return pytest.importorskip("torch")
    return importlib.import_module("rushlight")


@pytest.fixture
def rl():
    return importlib.import_module("rushlight")
