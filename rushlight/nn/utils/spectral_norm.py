"""Spectral normalisation by hooks (the older form; see ``parametrizations.spectral_norm``)."""

from __future__ import annotations

import rushlight
from rushlight import Tensor

from .. import functional as F
from ..parameter import Parameter, UninitializedParameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["SpectralNorm", "remove_spectral_norm", "spectral_norm"]


class SpectralNorm:
    """The hook that divides the weight by an estimate of its largest singular value before each forward."""

    _version = 1

    def __init__(self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        if n_power_iterations <= 0:
            raise ValueError(f"spectral_norm: n_power_iterations; expected a positive int, got {n_power_iterations}")
        self.name = name
        self.dim = dim
        self.n_power_iterations = n_power_iterations
        self.eps = eps

    def reshape_weight_to_matrix(self, weight: Tensor) -> Tensor:
        if self.dim != 0:
            weight = weight.permute(self.dim, *[d for d in range(weight.dim()) if d != self.dim])
        return weight.reshape(weight.size(0), -1)

    def compute_weight(self, module: Any, do_power_iteration: bool) -> Tensor:
        weight = getattr(module, self.name + "_orig")
        u = getattr(module, self.name + "_u")
        v = getattr(module, self.name + "_v")
        matrix = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            with rushlight.no_grad():
                for _ in range(self.n_power_iterations):
                    # in place, so that copies of the module that share the buffers see it
                    v.copy_(F.normalize(rushlight.mv(matrix.t(), u), dim=0, eps=self.eps))
                    u.copy_(F.normalize(rushlight.mv(matrix, v), dim=0, eps=self.eps))
                if self.n_power_iterations > 0:
                    # backward must see these values, whatever the next forward does to the buffers
                    u, v = u.clone(), v.clone()
        sigma = rushlight.dot(u, rushlight.mv(matrix, v))
        return weight / sigma

    def remove(self, module: Any) -> None:
        with rushlight.no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        delattr(module, self.name)
        for suffix in ("_u", "_v", "_orig"):
            delattr(module, self.name + suffix)
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, do_power_iteration=module.training))

    @staticmethod
    def apply(module: Any, name: str, n_power_iterations: int, dim: int, eps: float) -> SpectralNorm:
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, SpectralNorm) and hook.name == name:
                raise RuntimeError(f"spectral_norm: '{name}' is normalised already; expected a plain parameter")
        fn = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if weight is None:
            raise ValueError(f"spectral_norm: '{name}' of {type(module).__name__} is None; expected a parameter")
        if isinstance(weight, UninitializedParameter):
            raise ValueError(f"spectral_norm: '{name}' has no shape yet; expected a module that has run forward once")
        with rushlight.no_grad():
            matrix = fn.reshape_weight_to_matrix(weight)
            h, w = matrix.size()
            u = F.normalize(weight.new_empty(h).normal_(0, 1), dim=0, eps=eps)
            v = F.normalize(weight.new_empty(w).normal_(0, 1), dim=0, eps=eps)
        delattr(module, name)
        module.register_parameter(name + "_orig", weight)
        # a plain tensor, so that the name exists before the first forward
        setattr(module, name, weight.data)
        module.register_buffer(name + "_u", u)
        module.register_buffer(name + "_v", v)
        module.register_forward_pre_hook(fn)
        module._register_state_dict_hook(_MarkVersion(fn))
        return fn


class _MarkVersion:
    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn

    def __call__(self, module: Any, state_dict: Any, prefix: str, local_metadata: dict[str, Any]) -> None:
        entry = local_metadata.setdefault("spectral_norm", {})
        entry[self.fn.name + ".version"] = self.fn._version


def spectral_norm(
    module: Any, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Any:
    """Divides a weight by its largest singular value, estimated by power iteration (Miyato et al. 2018); returns the
    module.

    ``dim`` is the dimension of the outputs: 1 for transposed convolutions, 0 otherwise.
    """
    if dim is None:
        from ..modules.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d

        dim = 1 if isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)) else 0
    SpectralNorm.apply(module, name, n_power_iterations, dim, eps)
    return module


def remove_spectral_norm(module: Any, name: str = "weight") -> Any:
    """Undoes :func:`spectral_norm`; returns the module. ValueError when the weight is not normalised."""
    for key, hook in list(module._forward_pre_hooks.items()):
        if isinstance(hook, SpectralNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            for other, state_hook in list(module._state_dict_hooks.items()):
                if isinstance(state_hook, _MarkVersion) and state_hook.fn.name == name:
                    del module._state_dict_hooks[other]
            return module
    raise ValueError(f"remove_spectral_norm: '{name}' of {type(module).__name__} is not normalised")
