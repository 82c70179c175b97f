"""CUDA: this build has none. The switches keep their values for programs that set them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


class _Matmul:
    allow_tf32 = False
    allow_fp16_reduced_precision_reduction = True
    allow_bf16_reduced_precision_reduction = True
    allow_fp16_accumulation = False
    fp32_precision = "none"


matmul = _Matmul()
_sdp = {"flash": True, "mem_efficient": True, "math": True, "cudnn": True}


def is_built() -> bool:
    """False."""
    return False


def flash_sdp_enabled() -> bool:
    """What enable_flash_sdp was told."""
    return _sdp["flash"]


def enable_flash_sdp(enabled: bool) -> None:
    """Accepted: attention has one kernel here."""
    _sdp["flash"] = bool(enabled)


def mem_efficient_sdp_enabled() -> bool:
    """What enable_mem_efficient_sdp was told."""
    return _sdp["mem_efficient"]


def enable_mem_efficient_sdp(enabled: bool) -> None:
    """Accepted: attention has one kernel here."""
    _sdp["mem_efficient"] = bool(enabled)


def math_sdp_enabled() -> bool:
    """What enable_math_sdp was told."""
    return _sdp["math"]


def enable_math_sdp(enabled: bool) -> None:
    """Accepted: attention has one kernel here."""
    _sdp["math"] = bool(enabled)


def cudnn_sdp_enabled() -> bool:
    """What enable_cudnn_sdp was told."""
    return _sdp["cudnn"]


def enable_cudnn_sdp(enabled: bool) -> None:
    """Accepted: attention has one kernel here."""
    _sdp["cudnn"] = bool(enabled)


def is_flash_attention_available() -> bool:
    """False."""
    return False


@contextlib.contextmanager
def sdp_kernel(
    enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True, enable_cudnn: bool = True
) -> Iterator[None]:
    """The switches of attention kernels for the length of a block."""
    old = dict(_sdp)
    _sdp.update(flash=enable_flash, math=enable_math, mem_efficient=enable_mem_efficient, cudnn=enable_cudnn)
    try:
        yield
    finally:
        _sdp.update(old)
