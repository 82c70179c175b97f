"""What Module inherits from the extension: attribute fallback and the call without hooks, both on the hot path.

``rushlight._C._ModuleBase`` is the same in C. Its contract, which the class below spells out:
- ``__getattr__`` looks into ``_parameters``, ``_buffers`` and ``_modules`` of the instance dict, in that order;
- ``__call__`` calls ``self.forward`` when none of the dicts ``_forward_hooks``, ``_forward_pre_hooks``,
  ``_backward_hooks``, ``_backward_pre_hooks`` of the instance and none of the global dicts
  (``_C._set_module_hook_dicts``) has an entry, and ``self._call_with_hooks`` otherwise; an exception from forward
  goes through ``self._explain_failure(error, args, kwargs)``.
"""

from __future__ import annotations

import rushlight._C as _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Hooks of register_module_*: one dict per kind, shared by all modules.
global_forward_pre_hooks: dict[int, Any] = {}
global_forward_hooks: dict[int, Any] = {}
global_backward_pre_hooks: dict[int, Any] = {}
global_backward_hooks: dict[int, Any] = {}


class _PythonModuleBase:
    def __getattr__(self, name: str) -> Any:
        d = self.__dict__
        for kind in ("_parameters", "_buffers", "_modules"):
            members = d.get(kind)
            if members is not None and name in members:
                return members[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        me: Any = self
        if (
            me._forward_hooks
            or me._forward_pre_hooks
            or me._backward_hooks
            or me._backward_pre_hooks
            or global_forward_hooks
            or global_forward_pre_hooks
            or global_backward_hooks
            or global_backward_pre_hooks
        ):
            return me._call_with_hooks(*args, **kwargs)
        try:
            return me.forward(*args, **kwargs)
        except (RuntimeError, TypeError, ValueError, IndexError) as error:
            me._explain_failure(error, args, kwargs)
            raise


if hasattr(_C, "_ModuleBase"):
    ModuleBase: Any = _C._ModuleBase
    _C._set_module_hook_dicts(
        (global_forward_pre_hooks, global_forward_hooks, global_backward_pre_hooks, global_backward_hooks)
    )
else:
    ModuleBase = _PythonModuleBase
