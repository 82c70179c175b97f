"""Weight normalisation by hooks (the older form; see ``parametrizations.weight_norm``)."""

from __future__ import annotations

import warnings

import rushlight
from rushlight import Tensor

from ..parameter import Parameter, UninitializedParameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["WeightNorm", "remove_weight_norm", "weight_norm"]


def norm_except_dim(v: Tensor, dim: int) -> Tensor:
    """The norms of the slices along ``dim`` (of everything when it is -1), of a shape that broadcasts."""
    if dim == -1:
        return rushlight.linalg.vector_norm(v)
    others = [d for d in range(v.dim()) if d != dim % v.dim()]
    return rushlight.linalg.vector_norm(v, 2, others, keepdim=True) if others else v.abs()


def weight_from(v: Tensor, g: Tensor, dim: int) -> Tensor:
    """g * v / ||v||."""
    return v * (g / norm_except_dim(v, dim))


class WeightNorm:
    """The hook that computes the weight before each forward."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module: Any) -> Tensor:
        return weight_from(getattr(module, self.name + "_v"), getattr(module, self.name + "_g"), self.dim)

    @staticmethod
    def apply(module: Any, name: str, dim: int | None) -> WeightNorm:
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, WeightNorm) and hook.name == name:
                raise RuntimeError(f"weight_norm: '{name}' is normalised already; expected a plain parameter")
        fn = WeightNorm(name, dim)
        weight = getattr(module, name)
        if isinstance(weight, UninitializedParameter):
            raise ValueError(f"weight_norm: '{name}' has no shape yet; expected a module that has run forward once")
        del module._parameters[name]
        module.register_parameter(name + "_g", Parameter(norm_except_dim(weight, fn.dim).data))
        module.register_parameter(name + "_v", Parameter(weight.data))
        setattr(module, name, fn.compute_weight(module))
        module.register_forward_pre_hook(fn)
        return fn

    def remove(self, module: Any) -> None:
        weight = self.compute_weight(module)
        delattr(module, self.name)
        del module._parameters[self.name + "_g"]
        del module._parameters[self.name + "_v"]
        setattr(module, self.name, Parameter(weight.data))

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Splits a weight into magnitude ``<name>_g`` and direction ``<name>_v`` (Salimans and Kingma 2016); returns the
    module.

    Deprecated: use ``rushlight.nn.utils.parametrizations.weight_norm``.
    """
    warnings.warn(
        "nn.utils.weight_norm is deprecated; use nn.utils.parametrizations.weight_norm", FutureWarning, stacklevel=2
    )
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module: Any, name: str = "weight") -> Any:
    """Undoes :func:`weight_norm`; returns the module. ValueError when the weight is not normalised."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"remove_weight_norm: '{name}' of {type(module).__name__} is not normalised")
