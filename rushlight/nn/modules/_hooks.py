"""Hooks of a module: registration, the call that runs them, and what a failing call says."""

from __future__ import annotations

import warnings

from rushlight.utils.hooks import BackwardHook, RemovableHandle

from ._base import (
    ModuleBase,
    global_backward_hooks,
    global_backward_pre_hooks,
    global_forward_hooks,
    global_forward_pre_hooks,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_global_forward_hooks_always_called: dict[int, bool] = {}
_global_forward_hooks_with_kwargs: dict[int, bool] = {}
_global_is_full_backward_hook: bool | None = None
global_buffer_registration_hooks: dict[int, Any] = {}
global_module_registration_hooks: dict[int, Any] = {}
global_parameter_registration_hooks: dict[int, Any] = {}


def _insert(hooks: dict[int, Any], handle: RemovableHandle, hook: Any, prepend: bool) -> None:
    if not prepend:
        hooks[handle.id] = hook
        return
    rest = list(hooks.items())
    hooks.clear()
    hooks[handle.id] = hook
    hooks.update(rest)


def _register(hooks: dict[int, Any], hook: Any, prepend: bool) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    _insert(hooks, handle, hook, prepend)
    return handle


def _register_global(hooks: dict[int, Any], hook: Any) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls ``hook(module, name, buffer)`` whenever a buffer is registered; a result that is not None replaces it."""
    return _register_global(global_buffer_registration_hooks, hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls ``hook(module, name, submodule)`` whenever a submodule is registered; a result that is not None replaces
    it."""
    return _register_global(global_module_registration_hooks, hook)


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls ``hook(module, name, param)`` whenever a parameter is registered; a result that is not None replaces it."""
    return _register_global(global_parameter_registration_hooks, hook)


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls ``hook(module, args)`` before every forward of every module; a result that is not None replaces args."""
    return _register_global(global_forward_pre_hooks, hook)


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Calls ``hook(module, args, output)`` after every forward of every module; a result that is not None replaces
    it."""
    handle = RemovableHandle(
        global_forward_hooks, extra_dict=[_global_forward_hooks_with_kwargs, _global_forward_hooks_always_called]
    )
    global_forward_hooks[handle.id] = hook
    if with_kwargs:
        _global_forward_hooks_with_kwargs[handle.id] = True
    if always_call:
        _global_forward_hooks_always_called[handle.id] = True
    return handle


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """The legacy form of :func:`register_module_full_backward_hook`, which sees the last node of a module only."""
    global _global_is_full_backward_hook
    if _global_is_full_backward_hook is True:
        raise RuntimeError(
            "register_module_backward_hook: full backward hooks are registered globally; expected one kind of global "
            "backward hook, got both"
        )
    _global_is_full_backward_hook = False
    return _register_global(global_backward_hooks, hook)


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls ``hook(module, grad_output)`` before the backward of every module; a result that is not None replaces
    it."""
    return _register_global(global_backward_pre_hooks, hook)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls ``hook(module, grad_input, grad_output)`` for every module; a result that is not None replaces
    grad_input."""
    global _global_is_full_backward_hook
    if _global_is_full_backward_hook is False:
        raise RuntimeError(
            "register_module_full_backward_hook: legacy backward hooks are registered globally; expected one kind of "
            "global backward hook, got both"
        )
    _global_is_full_backward_hook = True
    return _register_global(global_backward_hooks, hook)


class HooksMixin(ModuleBase):  # type: ignore[misc]
    """The part of Module that deals with hooks."""

    __slots__ = ()

    def register_backward_hook(self: Any, hook: Callable[..., Any]) -> RemovableHandle:
        """The legacy form of :meth:`register_full_backward_hook`: it sees only the last node of the forward.

        Raises RuntimeError when a full backward hook is registered already.
        """
        if self._is_full_backward_hook is True:
            raise RuntimeError(
                f"register_backward_hook: {type(self).__name__} has full backward hooks; expected one kind of backward "
                "hook, got both"
            )
        self.__dict__["_is_full_backward_hook"] = False
        return _register(self._backward_hooks, hook, False)

    def register_full_backward_hook(self: Any, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Calls ``hook(module, grad_input, grad_output)`` when gradients with respect to the inputs are known.

        Both are tuples over the positional inputs and the outputs, with None for what is no tensor or needs no
        gradient. A result that is not None replaces grad_input.
        Raises RuntimeError when a legacy backward hook is registered already.
        """
        if self._is_full_backward_hook is False:
            raise RuntimeError(
                f"register_full_backward_hook: {type(self).__name__} has legacy backward hooks; expected one kind of "
                "backward hook, got both"
            )
        self.__dict__["_is_full_backward_hook"] = True
        return _register(self._backward_hooks, hook, prepend)

    def register_full_backward_pre_hook(self: Any, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Calls ``hook(module, grad_output)`` before the backward of the module; a result replaces grad_output."""
        return _register(self._backward_pre_hooks, hook, prepend)

    def register_forward_pre_hook(
        self: Any, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Calls ``hook(module, args)`` before forward; a result that is not None replaces args.

        With ``with_kwargs`` the call is ``hook(module, args, kwargs)`` and the result a pair ``(args, kwargs)``.

        Example::

            >>> import rushlight
            >>> m = rushlight.nn.Identity()
            >>> handle = m.register_forward_pre_hook(lambda module, args: (args[0] * 2,))
            >>> m(rushlight.ones(2)).tolist()
            [2.0, 2.0]
        """
        handle = RemovableHandle(self._forward_pre_hooks, extra_dict=self._forward_pre_hooks_with_kwargs)
        _insert(self._forward_pre_hooks, handle, hook, prepend)
        if with_kwargs:
            self._forward_pre_hooks_with_kwargs[handle.id] = True
        return handle

    def register_forward_hook(
        self: Any,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Calls ``hook(module, args, output)`` after forward; a result that is not None replaces the output.

        With ``with_kwargs`` the call is ``hook(module, args, kwargs, output)``. With ``always_call`` the hook also runs
        when forward raised (then the output is None).
        """
        handle = RemovableHandle(
            self._forward_hooks, extra_dict=[self._forward_hooks_with_kwargs, self._forward_hooks_always_called]
        )
        _insert(self._forward_hooks, handle, hook, prepend)
        if with_kwargs:
            self._forward_hooks_with_kwargs[handle.id] = True
        if always_call:
            self._forward_hooks_always_called[handle.id] = True
        return handle

    def register_state_dict_post_hook(self: Any, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls ``hook(module, state_dict, prefix, local_metadata)`` at the end of state_dict; it may change it in
        place."""
        hook._from_public_api = True  # type: ignore[attr-defined]
        return _register(self._state_dict_hooks, hook, False)

    def _register_state_dict_hook(self: Any, hook: Callable[..., Any]) -> RemovableHandle:
        # Unlike the public form its result may replace the dict.
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "_register_state_dict_hook: the hook is registered by register_state_dict_post_hook; expected a hook "
                "of one kind, got the same one twice"
            )
        return _register(self._state_dict_hooks, hook, False)

    def register_state_dict_pre_hook(self: Any, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls ``hook(module, prefix, keep_vars)`` before state_dict collects."""
        return _register(self._state_dict_pre_hooks, hook, False)

    def _register_load_state_dict_pre_hook(
        self: Any, hook: Callable[..., Any], with_module: bool = False
    ) -> RemovableHandle:
        if with_module:
            hook = _BoundToModule(hook, self)
        return _register(self._load_state_dict_pre_hooks, hook, False)

    def register_load_state_dict_pre_hook(self: Any, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls ``hook(module, state_dict, prefix, local_metadata, strict, missing, unexpected, error_msgs)`` before
        this module loads its part of a state_dict; the hook may change the dict in place."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def register_load_state_dict_post_hook(self: Any, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls ``hook(module, incompatible_keys)`` after loading; the hook may change the two lists in place."""
        return _register(self._load_state_dict_post_hooks, hook, False)

    # ---------------------------------------------------------------- the call

    def _call_with_hooks(self: Any, *args: Any, **kwargs: Any) -> Any:
        called: set[int] = set()
        try:
            return self._run_hooks(called, args, kwargs)
        except Exception as error:
            if isinstance(error, (RuntimeError, TypeError, ValueError, IndexError)):
                self._explain_failure(error, args, kwargs)
            self._run_always_called(called, args, kwargs)
            raise

    def _run_hooks(self: Any, called: set[int], args: Any, kwargs: Any) -> Any:
        full, legacy = _split_backward_hooks(self)
        pre = [*global_backward_pre_hooks.values(), *self._backward_pre_hooks.values()]
        for hooks, with_kwargs in (
            (global_forward_pre_hooks, ()),
            (self._forward_pre_hooks, self._forward_pre_hooks_with_kwargs),
        ):
            for key, hook in list(hooks.items()):
                if key in with_kwargs:
                    replaced = hook(self, args, kwargs)
                    if replaced is None:
                        continue
                    if not (isinstance(replaced, tuple) and len(replaced) == 2):
                        raise RuntimeError(
                            "forward pre-hook: result of the wrong form; expected None or a tuple (args, kwargs), got "
                            f"{type(replaced).__name__}"
                        )
                    args, kwargs = replaced
                else:
                    replaced = hook(self, args)
                    if replaced is not None:
                        args = replaced if isinstance(replaced, tuple) else (replaced,)

        gate = None
        if full or pre:
            gate = BackwardHook(self, full, pre)
            args = gate.setup_input_hook(args)
        result = self.forward(*args, **kwargs)
        for hooks, with_kwargs in (
            (global_forward_hooks, _global_forward_hooks_with_kwargs),
            (self._forward_hooks, self._forward_hooks_with_kwargs),
        ):
            for key, hook in list(hooks.items()):
                called.add(key)
                replaced = hook(self, args, kwargs, result) if key in with_kwargs else hook(self, args, result)
                if replaced is not None:
                    result = replaced
        if gate is not None:
            result = gate.setup_output_hook(result)
        if legacy:
            _attach_legacy_hooks(self, legacy, result)
        return result

    def _run_always_called(self: Any, called: set[int], args: Any, kwargs: Any) -> None:
        # forward raised: the hooks that asked for it still see the call, and their own errors must not hide its error
        for hooks, always, with_kwargs in (
            (global_forward_hooks, _global_forward_hooks_always_called, _global_forward_hooks_with_kwargs),
            (self._forward_hooks, self._forward_hooks_always_called, self._forward_hooks_with_kwargs),
        ):
            for key, hook in list(hooks.items()):
                if key not in always or key in called:
                    continue
                called.add(key)
                try:
                    if key in with_kwargs:
                        hook(self, args, kwargs, None)
                    else:
                        hook(self, args, None)
                except Exception as error:
                    warnings.warn(
                        f"forward hook with always_call=True raised {error!r} while an error of forward was on its way",
                        stacklevel=2,
                    )

    def _explain_failure(self: Any, error: Any, args: Any, kwargs: Any) -> None:
        """Adds a note to an exception that left forward: the path of the innermost module and its inputs."""
        chain = getattr(error, "_rushlight_modules", None)
        try:
            if chain is None:
                chain = [(self, describe_call(args, kwargs))]
                error._rushlight_modules = chain
            elif chain[-1][0] is not self:
                chain.append((self, ""))
            note = _failure_note(chain)
            notes = getattr(error, "__notes__", None)
            if notes is None:
                notes = error.__notes__ = []
            old = getattr(error, "_rushlight_note", None)
            if old in notes:
                notes[notes.index(old)] = note
            else:
                notes.append(note)
            error._rushlight_note = note
        except Exception:
            # an exotic exception type that takes no attributes keeps its own text
            return


def _failure_note(chain: list[tuple[Any, str]]) -> str:
    path = type(chain[-1][0]).__name__
    for parent, child in zip(reversed(chain), reversed(chain[:-1]), strict=False):
        for name, module in parent[0].named_modules():
            if module is child[0]:
                path += "." + name
                break
        else:
            path += f" > {type(child[0]).__name__}"
    inner, call = chain[0]
    extra = inner.extra_repr() if not inner._modules else ""
    return f"in module {path} ({type(inner).__name__}({extra})), called with ({call})"


def describe_call(args: Any, kwargs: Any) -> str:
    """The operands of a call in short: ``float32[2, 3], dim=1``."""
    parts = [describe(a) for a in args]
    parts += [f"{k}={describe(v)}" for k, v in kwargs.items()]
    return ", ".join(parts)


def describe(value: Any) -> str:
    """One operand in short; a tensor as dtype and shape."""
    from rushlight import Tensor

    if isinstance(value, Tensor):
        device = "" if value.device.type == "cpu" else f" on {value.device}"
        return f"{str(value.dtype).rpartition('.')[2]}{list(value.shape)}{device}"
    if isinstance(value, (tuple, list)) and len(value) <= 4:
        inner = ", ".join(describe(v) for v in value)
        return f"({inner})" if isinstance(value, tuple) else f"[{inner}]"
    if value is None or isinstance(value, (bool, int, float, complex)):
        return repr(value)
    return type(value).__name__


class _BoundToModule:
    """A load_state_dict pre-hook that gets its module first; the module is held weakly."""

    def __init__(self, hook: Any, module: Any) -> None:
        import weakref

        self.hook = hook
        self.module = weakref.ref(module)

    def __call__(self, *args: Any) -> Any:
        return self.hook(self.module(), *args)

    def __getstate__(self) -> dict[str, Any]:
        return {"hook": self.hook, "module": self.module()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        import weakref

        self.hook = state["hook"]
        self.module = weakref.ref(state["module"])


def _split_backward_hooks(module: Any) -> tuple[list[Any], list[Any]]:
    full: list[Any] = []
    legacy: list[Any] = []
    if global_backward_hooks:
        (full if _global_is_full_backward_hook is True else legacy).extend(global_backward_hooks.values())
    if module._backward_hooks:
        (full if module._is_full_backward_hook is True else legacy).extend(module._backward_hooks.values())
    return full, legacy


def _attach_legacy_hooks(module: Any, hooks: list[Any], result: Any) -> None:
    from rushlight import Tensor

    if not isinstance(result, Tensor) and not (
        isinstance(result, tuple) and all(isinstance(r, Tensor) for r in result)
    ):
        warnings.warn(
            "register_backward_hook on a module that does not return a Tensor or a tuple of Tensors is ignored; use "
            "register_full_backward_hook",
            FutureWarning,
            stacklevel=3,
        )
        return
    first = result if isinstance(result, Tensor) else (result[0] if result else None)
    node = None if first is None else first.grad_fn
    if node is None:
        return
    for hook in hooks:
        node.register_hook(_LegacyHook(hook, module))


class _LegacyHook:
    def __init__(self, hook: Any, module: Any) -> None:
        self.hook, self.module = hook, module

    def __call__(self, grad_input: Any, grad_output: Any) -> Any:
        return self.hook(self.module, grad_input, grad_output)
