"""The table of operations: one record per operation, by family.

The build reads these modules (``tools/generate.py``); the running package imports one only when a derivative, a Python
body or documentation of its records is asked for.
"""

MODULES = (
    "elementwise",
    "transcendental",
    "comparison",
    "activation",
    "special",
    "special_functions",
    "fft",
    "signal",
    "calculus",
    "shape",
    "indexing",
    "reduction",
    "scan",
    "sorting",
    "creation",
    "matrix",
    "linalg",
    "systems",
    "spectra",
    "norms",
    "products",
    "network",
    "pooling",
    "normalization",
    "loss",
    "embedding",
    "random",
    "arrange",
    "copies",
    "counting",
    "statistics",
    "masked",
    "parts",
    "autograd_ops",
    "tensor",
    "functions",
    "older",
)
"""Modules that hold records, in table order."""


def __getattr__(name: str) -> object:
    if name == "aten":
        import importlib

        return importlib.import_module("rushlight.ops.aten")
    raise AttributeError(f"module 'rushlight.ops' has no attribute '{name}'")
