"""Modules that find out the shapes of their parameters at the first forward."""

from __future__ import annotations

import warnings

from ..parameter import is_lazy
from .module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["LazyModuleMixin"]


# A Module itself, so that the memory layout of a lazy class is that of the class it becomes.
class LazyModuleMixin(Module):
    """Makes a module lazy: its parameters get their shape at the first call, then it becomes ``cls_to_become``.

    A subclass creates :class:`UninitializedParameter` members and defines ``initialize_parameters(*args, **kwargs)``,
    which takes the arguments of forward and materializes them.
    """

    cls_to_become: Any = None

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(self._infer_parameters, with_kwargs=True)
        warnings.warn("Lazy modules are new, and their behaviour may still change", stacklevel=2)

    def _save_to_state_dict(self: Any, destination: Any, prefix: str, keep_vars: bool) -> None:
        # detach() would need a shape
        for members in (self._parameters, self._buffers):
            for name, value in members.items():
                if value is not None and name not in self._non_persistent_buffers_set:
                    destination[prefix + name] = value if is_lazy(value) or keep_vars else value.detach()

    def _lazy_load_hook(
        self: Any,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        import rushlight

        for name, value in (*self._parameters.items(), *self._buffers.items()):
            key = prefix + name
            if key in state_dict and value is not None:
                given = state_dict[key]
                # loading decides the shape as a first forward would
                if is_lazy(value) and not is_lazy(given):
                    with rushlight.no_grad():
                        value.materialize(given.shape)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Materializes the parameters for these arguments of forward; every lazy module defines it."""
        raise NotImplementedError(f"{type(self).__name__}.initialize_parameters: not defined; expected it in the class")

    def has_uninitialized_params(self: Any) -> bool:
        """Whether some parameter or buffer has no shape yet."""
        return any(is_lazy(v) for v in (*self._parameters.values(), *self._buffers.values()))

    def _infer_parameters(self: Any, module: Any, args: Any, kwargs: Any = None) -> None:
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(
                f"{type(self).__name__}: parameters without shape after initialize_parameters; expected all of them "
                "to be materialized"
            )
        module._initialize_hook.remove()
        module._load_hook.remove()
        delattr(module, "_initialize_hook")
        delattr(module, "_load_hook")
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become

    def _replicate_for_data_parallel(self) -> Any:
        raise RuntimeError(
            f"{type(self).__name__}: replicated before its first forward; expected a dry run that gives its "
            "parameters a shape"
        )
