"""Rushlight: a deep-learning framework with PyTorch's names and numbers.

    import rushlight as torch

Importing loads the extension only; NumPy, BLAS and the submodules are loaded at first use.
"""

from __future__ import annotations

import importlib
import types

from . import _C
from ._C import (
    Generator,
    Size,
    Tensor,
    UntypedStorage,
    bfloat16,
    bool,
    can_cast,
    cdouble,
    cfloat,
    channels_last,
    channels_last_3d,
    complex64,
    complex128,
    contiguous_format,
    default_generator,
    device,
    double,
    dtype,
    float,
    float16,
    float32,
    float64,
    get_default_dtype,
    get_num_threads,
    half,
    int,
    int8,
    int16,
    int32,
    int64,
    layout,
    long,
    memory_format,
    preserve_format,
    promote_types,
    result_type,
    set_default_dtype,
    set_num_threads,
    short,
    strided,
    tensor,
    uint8,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__version__ = "0.1.0"

inf = _C.inf
nan = _C.nan
pi = 3.141592653589793
e = 2.718281828459045
newaxis = None

globals().update(_C.operations(""))
_C._nn = types.SimpleNamespace(**_C.operations("nn.functional"))

# Where a name that is not an operation lives; its module is imported when the name is first used.
_LAZY = {
    "_functions": (
        "TypedStorage allclose are_deterministic_algorithms_enabled as_tensor asarray atleast_1d atleast_2d atleast_3d "
        "block_diag broadcast_shapes cartesian_prod chain_matmul finfo from_dlpack from_numpy frombuffer "
        "get_default_device get_rng_state iinfo initial_seed is_complex is_floating_point is_nonzero is_storage "
        "is_tensor manual_seed meshgrid "
        "numel scalar_tensor seed set_default_device set_default_tensor_type set_printoptions set_rng_state "
        "tensordot typename use_deterministic_algorithms get_float32_matmul_precision set_float32_matmul_precision "
        "is_grad_enabled is_inference_mode_enabled is_inference FloatTensor DoubleTensor HalfTensor "
        "BFloat16Tensor LongTensor IntTensor ShortTensor CharTensor ByteTensor BoolTensor is_signed is_conj"
    ),
    "serialization": "save load",
    "autograd.grad_mode": "no_grad enable_grad set_grad_enabled inference_mode",
    "autograd.anomaly_mode": "is_anomaly_enabled is_anomaly_check_nan_enabled set_anomaly_enabled",
    "func._vmap": "vmap",
    "_tensor": "return_types",
}
_LAZY_NAMES = {name: module for module, names in _LAZY.items() for name in names.split()}
_SUBMODULES = frozenset("autograd func nn optim utils overrides serialization linalg masked special random".split())


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"rushlight.{name}")
    module = _LAZY_NAMES.get(name)
    if module is None:
        raise AttributeError(f"module 'rushlight' has no attribute '{name}'")
    value = getattr(importlib.import_module(f"rushlight.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY_NAMES, *_SUBMODULES})
