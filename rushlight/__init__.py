"""Rushlight: a deep-learning framework with PyTorch's names and numbers.

    import rushlight as torch

Importing loads the extension only; NumPy, BLAS and the submodules are loaded at first use.
"""

from __future__ import annotations

import importlib
import types as _types

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
    chalf,
    channels_last,
    channels_last_3d,
    complex32,
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
    jagged,
    layout,
    long,
    memory_format,
    preserve_format,
    promote_types,
    result_type,
    set_default_dtype,
    set_num_threads,
    short,
    sparse_bsc,
    sparse_bsr,
    sparse_coo,
    sparse_csc,
    sparse_csr,
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
_C._nn = _types.SimpleNamespace(**_C.operations("nn.functional"))

legacy_contiguous_format = contiguous_format

# Where a name that is not an operation lives; its module is imported when the name is first used.
_LAZY = {
    "_functions": (
        "allclose as_tensor asarray atleast_1d atleast_2d atleast_3d "
        "block_diag broadcast_shapes cartesian_prod chain_matmul cond detach detach_ "
        "empty_permuted finfo from_dlpack from_file from_numpy frombuffer get_default_device get_device "
        "get_rng_state iinfo initial_seed is_complex is_floating_point is_neg is_nonzero is_storage is_tensor "
        "manual_seed meshgrid "
        "numel scalar_tensor seed set_default_device set_default_tensor_type set_printoptions set_rng_state "
        "sym_float sym_int sym_ite sym_max sym_min sym_not sym_sqrt sym_sum "
        "tensordot thread_safe_generator to_dlpack typename while_loop AcceleratorError OutOfMemoryError "
        "is_grad_enabled is_inference_mode_enabled is_inference FloatTensor DoubleTensor HalfTensor "
        "BFloat16Tensor LongTensor IntTensor ShortTensor CharTensor ByteTensor BoolTensor is_signed is_conj"
    ),
    "_settings": (
        "are_deterministic_algorithms_enabled compiled_with_cxx11_abi get_deterministic_debug_mode get_device_module "
        "get_float32_matmul_precision get_num_interop_threads has_lapack has_mkl has_openmp has_spectral "
        "init_num_threads is_deterministic_algorithms_warn_only_enabled is_vulkan_available is_warn_always_enabled "
        "set_deterministic_debug_mode set_float32_matmul_precision set_flush_denormal set_num_interop_threads "
        "set_warn_always use_deterministic_algorithms"
    ),
    "storage": (
        "TypedStorage Storage BoolStorage ByteStorage CharStorage ShortStorage IntStorage LongStorage HalfStorage "
        "BFloat16Storage FloatStorage DoubleStorage ComplexFloatStorage ComplexDoubleStorage"
    ),
    "_range": "range",
    "overrides": "DisableTorchFunction DisableTorchFunctionSubclass",
    "serialization": "save load",
    "_lobpcg": "lobpcg",
    "autograd.grad_mode": "no_grad enable_grad set_grad_enabled inference_mode",
    "autograd.anomaly_mode": "is_anomaly_enabled is_anomaly_check_nan_enabled set_anomaly_enabled",
    "func._vmap": "vmap",
}
_LAZY_NAMES = {name: module for module, names in _LAZY.items() for name in names.split()}
_SUBMODULES = frozenset(
    "__config__ accelerator array_api autograd backends cpu cuda fft func linalg masked mps nn ops optim overrides "
    "profiler random return_types serialization signal special storage testing types utils version xpu".split()
)


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"rushlight.{name}")
    if name == "torch":  # PyTorch has itself as an attribute, too
        return importlib.import_module(__name__)
    module = _LAZY_NAMES.get(name)
    if module is None:
        raise AttributeError(f"module 'rushlight' has no attribute '{name}'")
    value = getattr(importlib.import_module(f"rushlight.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY_NAMES, *_SUBMODULES})
