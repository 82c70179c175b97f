"""Parameters as one vector."""

from __future__ import annotations

import rushlight
from rushlight import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def _check_devices(op: str, params: list[Tensor]) -> None:
    devices = {str(p.device) for p in params}
    if len(devices) > 1:
        raise TypeError(f"{op}: expected parameters on one device, got {sorted(devices)}")


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All elements of the parameters in one vector. TypeError for parameters on several devices."""
    params = list(parameters)
    _check_devices("parameters_to_vector", params)
    return rushlight.cat([p.view(-1) if p.is_contiguous() else p.reshape(-1) for p in params])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Makes the slices of a vector the data of the parameters. TypeError when ``vec`` is no Tensor."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"vector_to_parameters: vec; expected a Tensor, got {type(vec).__name__}")
    params = list(parameters)
    _check_devices("vector_to_parameters", params)
    offset = 0
    for p in params:
        n = p.numel()
        p.data = vec[offset : offset + n].view_as(p).data
        offset += n
