"""range, which counts to its end: the older arange."""

from __future__ import annotations

import math
import warnings
from typing import Any

from . import _C


def range(
    start: float,
    end: float,
    step: float = 1,
    *,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> _C.Tensor:
    """start, start + step, ... up to end, which is included; of the default dtype.

    Raises:
        RuntimeError: the step is 0, or leads away from the end.
    """
    import rushlight

    warnings.warn("range counts to its end, unlike Python's; arange stops before", UserWarning, stacklevel=2)
    if step == 0:
        raise RuntimeError("range: step must be nonzero")
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"range: unsupported range: {start} -> {end}")
    if (end - start) * step < 0:
        raise RuntimeError(f"range: upper bound and lower bound inconsistent with step sign: {start}, {end}, {step}")
    count = int((end - start) / step) + 1
    kind = dtype or (out.dtype if out is not None else _C.get_default_dtype())
    wide = rushlight.arange(count, dtype=_C.int64 if not kind.is_floating_point else _C.float64)
    if kind.is_floating_point:
        made = (wide * step + start).to(kind)
    else:
        made = (wide * int(step) + int(start)).to(kind)
    made = made.to(device or rushlight.get_default_device())
    if out is not None:
        return out.resize_(made.shape).copy_(made)
    return made.requires_grad_() if requires_grad else made
