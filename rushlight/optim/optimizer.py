"""Optimizer, the base class of all optimizers."""

from __future__ import annotations

import warnings
from collections import defaultdict

import rushlight
import rushlight._C as _C
from rushlight import Tensor
from rushlight.utils.hooks import RemovableHandle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = [
    "Optimizer", "register_optimizer_step_post_hook", "register_optimizer_step_pre_hook",
]  # fmt: skip


class _RequiredParameter:
    """The default of a setting that every group must give."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _RequiredParameter()

_global_step_pre_hooks: dict[int, Any] = {}
_global_step_post_hooks: dict[int, Any] = {}


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls ``hook(optimizer, args, kwargs)`` before every step of every optimizer; a result replaces (args,
    kwargs)."""
    return _register_global(_global_step_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls ``hook(optimizer, args, kwargs)`` after every step of every optimizer."""
    return _register_global(_global_step_post_hooks, hook)


def _register_global(hooks: dict[int, Any], hook: Any) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    pending = list(Optimizer.__subclasses__())
    while pending:
        cls = pending.pop()
        pending += cls.__subclasses__()
        _wrap_class_step(cls)
    return handle


def _wrap_class_step(cls: Any) -> None:
    """Makes ``cls.step`` run the global hooks.

    Only done once such a hook exists: without one a step costs nothing more.
    """
    step = cls.__dict__.get("step")
    if step is None or getattr(step, "_runs_global_hooks", False):
        return

    def hooked(self: Any, *args: Any, **kwargs: Any) -> Any:
        # super().step() of a subclass is a part of one and the same step
        if self.__dict__.get("_in_hooked_step", False):
            return step(self, *args, **kwargs)
        self.__dict__["_in_hooked_step"] = True
        try:
            args, kwargs = _run_pre_hooks(self, _global_step_pre_hooks, args, kwargs)
            result = step(self, *args, **kwargs)
            for hook in list(_global_step_post_hooks.values()):
                hook(self, args, kwargs)
            return result
        finally:
            self.__dict__["_in_hooked_step"] = False

    hooked.__name__, hooked.__doc__ = "step", step.__doc__
    hooked._runs_global_hooks = True  # type: ignore[attr-defined]
    cls.step = hooked


def _run_pre_hooks(optimizer: Any, hooks: dict[int, Any], args: Any, kwargs: Any) -> tuple[Any, Any]:
    for hook in list(hooks.values()):
        replaced = hook(optimizer, args, kwargs)
        if replaced is not None:
            if not (isinstance(replaced, tuple) and len(replaced) == 2):
                raise RuntimeError(
                    "step pre-hook: result of the wrong form; expected None or a tuple (args, kwargs), got "
                    f"{replaced!r}"
                )
            args, kwargs = replaced
    return args, kwargs


def _python_gather(params: list[Any], state: Any, keys: tuple[str, ...]) -> Any:
    """The parameters that have a gradient, their gradients and, per key, their state; None when some state is
    missing."""
    chosen, grads = [], []
    kept: list[list[Any]] = [[] for _ in keys]
    for p in params:
        grad = p.grad
        if grad is None:
            continue
        chosen.append(p)
        grads.append(grad)
        if keys:
            s = state.get(p)
            if s is None:
                return None
            for key, values in zip(keys, kept, strict=False):
                value = s.get(key)
                if value is None:
                    return None
                values.append(value)
    return (chosen, grads, *kept)


# ``_C._optim_gather(params, state, keys)`` is the same in C.
gather = getattr(_C, "_optim_gather", _python_gather)


class Optimizer:
    """Base class of all optimizers: parameter groups, state, hooks, saving and loading.

    Args:
        params: an iterable of tensors, of ``(name, tensor)`` pairs, or of dicts that define groups with settings of
            their own.
        defaults: settings used by groups that do not give them.

    A subclass defines ``step``. Raises TypeError and ValueError for parameters that cannot be optimized.
    """

    state: Any
    param_groups: list[dict[str, Any]]
    defaults: dict[str, Any]
    _optimizer_step_pre_hooks: dict[int, Any]
    _optimizer_step_post_hooks: dict[int, Any]

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self._init_hooks()
        if isinstance(params, Tensor):
            raise TypeError(
                f"{type(self).__name__}: params of the wrong type; expected an iterable of Tensors or dicts, got a "
                f"single Tensor; write [tensor]"
            )
        self.state = defaultdict(dict)
        self.param_groups = []
        groups = list(params)
        if not groups:
            raise ValueError(f"{type(self).__name__}: expected at least one parameter, got an empty list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)
        if _global_step_pre_hooks or _global_step_post_hooks:
            _wrap_class_step(type(self))

    def _init_hooks(self) -> None:
        self._optimizer_step_pre_hooks = {}
        self._optimizer_step_post_hooks = {}
        self._optimizer_state_dict_pre_hooks: dict[int, Any] = {}
        self._optimizer_state_dict_post_hooks: dict[int, Any] = {}
        self._optimizer_load_state_dict_pre_hooks: dict[int, Any] = {}
        self._optimizer_load_state_dict_post_hooks: dict[int, Any] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if "_optimizer_step_pre_hooks" not in self.__dict__:
            self._init_hooks()
        self.defaults.setdefault("differentiable", False)

    def __repr__(self) -> str:
        lines = []
        for i, group in enumerate(self.param_groups):
            lines.append(f"\nParameter Group {i}\n")
            lines += [f"    {key}: {group[key]}\n" for key in sorted(group) if key != "params"]
        return f"{type(self).__name__} ({''.join(lines)})"

    # ---------------------------------------------------------------- hooks

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls ``hook(optimizer, args, kwargs)`` before step; a result that is not None replaces (args, kwargs)."""
        return self._register_step_hook(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls ``hook(optimizer, args, kwargs)`` after step."""
        return self._register_step_hook(self._optimizer_step_post_hooks, hook)

    def _register_step_hook(self, hooks: dict[int, Any], hook: Any) -> RemovableHandle:
        handle = RemovableHandle(hooks)
        hooks[handle.id] = hook
        if "_unhooked_step" not in self.__dict__:
            # the instance's own step runs the hooks, so that an optimizer without any pays nothing
            self.__dict__["_unhooked_step"] = self.step
            self.__dict__["step"] = self._hooked_step
        return handle

    def _hooked_step(self, *args: Any, **kwargs: Any) -> Any:
        args, kwargs = _run_pre_hooks(self, self._optimizer_step_pre_hooks, args, kwargs)
        result = self.__dict__["_unhooked_step"](*args, **kwargs)
        for hook in list(self._optimizer_step_post_hooks.values()):
            hook(self, args, kwargs)
        return result

    def register_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Calls ``hook(optimizer)`` before state_dict."""
        return _register(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Calls ``hook(optimizer, state_dict)`` after state_dict; a result that is not None replaces it."""
        return _register(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Calls ``hook(optimizer, state_dict)`` before loading; a result that is not None is loaded instead."""
        return _register(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Calls ``hook(optimizer)`` after loading."""
        return _register(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    # ---------------------------------------------------------------- groups

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds a group: a dict with "params" (a tensor, or a list of tensors or of (name, tensor) pairs) and settings.

        Raises TypeError when it is no dict or holds something else, ValueError for a tensor that is not a leaf or
        stands in another group already.
        """
        name = type(self).__name__
        if not isinstance(param_group, dict):
            raise TypeError(f"{name}: group of the wrong type; expected a dict, got {type(param_group).__name__}")
        params = param_group["params"]
        if isinstance(params, Tensor):
            params = [params]
        elif isinstance(params, set):
            raise TypeError(f"{name}: params of the wrong type; expected an ordered collection, got a set")
        else:
            params = list(params)
        named = [isinstance(p, tuple) for p in params]
        if any(named):
            if not all(named):
                raise ValueError(f"{name}: params; expected all or none of them with a name, got both")
            param_group["param_names"] = [p[0] for p in params]
            params = [p[1] for p in params]
        param_group["params"] = params
        differentiable = self.defaults.get("differentiable", None)
        for p in params:
            if not isinstance(p, Tensor):
                raise TypeError(f"{name}: parameter of the wrong type; expected a Tensor, got {type(p).__name__}")
            if not differentiable and not (p.is_leaf or p.retains_grad):
                raise ValueError(
                    f"{name}: parameter of shape {list(p.shape)} is not a leaf; expected a tensor that is not the "
                    "result of a computation"
                )
        for key, default in self.defaults.items():
            if default is required and key not in param_group:
                raise ValueError(f"{name}: group without {key}; expected a value, since it has no default")
            param_group.setdefault(key, default)
        if len(params) != len(set(params)):
            warnings.warn(
                f"{name}: a parameter stands twice in one group and is updated twice per step; this will be an error",
                stacklevel=3,
            )
        if self.param_groups:
            if ("param_names" in param_group) != ("param_names" in self.param_groups[0]):
                raise ValueError(f"{name}: groups; expected all or none of them with named parameters, got both")
            seen = {p for group in self.param_groups for p in group["params"]}
            if not seen.isdisjoint(params):
                raise ValueError(f"{name}: a parameter stands in more than one group; expected each in one group")
        self.param_groups.append(param_group)

    # ---------------------------------------------------------------- saving and loading

    def state_dict(self) -> dict[str, Any]:
        """State and settings as plain containers: ``{"state": {index: ...}, "param_groups": [...]}``.

        Parameters are replaced by their position over all groups.
        """
        for pre_hook in self._optimizer_state_dict_pre_hooks.values():
            pre_hook(self)
        index: dict[Any, int] = {}
        groups = []
        for group in self.param_groups:
            packed = {k: v for k, v in group.items() if k != "params"}
            for p in group["params"]:
                index.setdefault(id(p), len(index))
            packed["params"] = [index[id(p)] for p in group["params"]]
            groups.append(packed)
        state = {(index[id(k)] if isinstance(k, Tensor) else k): v for k, v in self.state.items()}
        result: dict[str, Any] = {"state": state, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():
            replaced = hook(self, result)
            if replaced is not None:
                result = replaced
        return result

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes back what :meth:`state_dict` returned; the tensors are converted to dtype and device of their
        parameters.

        ValueError when groups differ in number or size.
        """
        state_dict = state_dict.copy()
        for pre_hook in self._optimizer_load_state_dict_pre_hooks.values():
            replaced = pre_hook(self, state_dict)
            if replaced is not None:
                state_dict = replaced
        name = type(self).__name__
        mine, saved = self.param_groups, [dict(g) for g in state_dict["param_groups"]]
        if len(mine) != len(saved):
            raise ValueError(f"{name}.load_state_dict: expected {len(mine)} parameter groups, got {len(saved)}")
        for i, (own, other) in enumerate(zip(mine, saved, strict=False)):
            if len(own["params"]) != len(other["params"]):
                raise ValueError(
                    f"{name}.load_state_dict: group {i}; expected {len(own['params'])} parameters, got "
                    f"{len(other['params'])}"
                )
        place: dict[Any, tuple[Any, dict[str, Any]]] = {}
        for own, other in zip(mine, saved, strict=False):
            for p, key in zip(own["params"], other["params"], strict=False):
                place[key] = (p, other)
        state: Any = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in place:
                p, group = place[key]
                state[p] = _fitted(p, value, group)
            else:
                state[key] = value
        groups = []
        for own, other in zip(mine, saved, strict=False):
            other["params"] = own["params"]
            if "param_names" in own and "param_names" not in other:
                other["param_names"] = own["param_names"]
            groups.append(other)
        self.__setstate__({"state": state, "param_groups": groups})
        for post_hook in self._optimizer_load_state_dict_post_hooks.values():
            post_hook(self)

    # ---------------------------------------------------------------- steps

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drops the gradients of all parameters, or zeroes them in place with ``set_to_none=False``."""
        for group in self.param_groups:
            if set_to_none:
                for p in group["params"]:
                    p.grad = None
                continue
            for p in group["params"]:
                grad = p.grad
                if grad is not None:
                    if grad.grad_fn is not None:
                        grad.detach_()
                    else:
                        grad.requires_grad_(False)
                    grad.zero_()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One update of all parameters from their gradients.

        Args:
            closure: computes the loss again, with gradients, and returns it; then step returns it too.
        """
        loss = None
        if closure is not None:
            with rushlight.enable_grad():
                loss = closure()
        with rushlight.set_grad_enabled(bool(self.defaults.get("differentiable", False))):
            for group in self.param_groups:
                self._step_group(group)
        return loss

    def _step_group(self, group: dict[str, Any]) -> None:
        """The update of one group, with gradients off; the default does parameter by parameter."""
        begin = self._settings(group)
        for p in group["params"]:
            grad = p.grad
            if grad is None:
                continue
            if grad.layout is not rushlight.strided:
                raise RuntimeError(
                    f"{type(self).__name__}: gradient of layout {grad.layout}; expected a dense gradient"
                )
            self._update(p, -grad if group.get("maximize", False) else grad, self.state[p], begin)

    def _settings(self, group: dict[str, Any]) -> Any:
        """What ``_update`` needs of a group; computed once per step."""
        return group

    def _update(self, p: Any, grad: Any, state: dict[str, Any], group: Any) -> None:
        raise NotImplementedError(f"{type(self).__name__}.step: not defined; expected it in the class")


def _register(hooks: dict[int, Any], hook: Any, prepend: bool) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    if prepend:
        rest = list(hooks.items())
        hooks.clear()
        hooks[handle.id] = hook
        hooks.update(rest)
    else:
        hooks[handle.id] = hook
    return handle


def _fitted(p: Any, value: Any, group: dict[str, Any], key: Any = None) -> Any:
    """A saved state as this parameter needs it."""
    if isinstance(value, Tensor):
        if key == "step":
            # counts stay exact, whatever the parameter's dtype
            if group.get("capturable", False) or group.get("fused", False):
                return value.to(dtype=rushlight.float32, device=p.device)
            return value
        if p.is_floating_point():
            return value.to(dtype=p.dtype, device=p.device)
        return value.to(device=p.device)
    if isinstance(value, dict):
        return {k: _fitted(p, v, group, k) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_fitted(p, v, group) for v in value)
    return value


# ---------------------------------------------------------------- checks and helpers of the optimizers


def check_lr(name: str, lr: Any, foreach: Any = None, capturable: bool = False) -> None:
    """ValueError unless lr is at least 0 and, as a tensor, has one element."""
    if isinstance(lr, Tensor):
        if foreach and not capturable:
            raise ValueError(f"{name}: lr as a Tensor with foreach=True; expected capturable=True as well")
        if lr.numel() != 1:
            raise ValueError(f"{name}: lr; expected one element, got shape {list(lr.shape)}")
    if not lr >= 0.0:
        raise ValueError(f"{name}: lr; expected a number of at least 0, got {lr}")


def check_at_least_zero(name: str, **settings: Any) -> None:
    """ValueError for a negative setting."""
    for key, value in settings.items():
        if not value >= 0.0:
            raise ValueError(f"{name}: {key}; expected a number of at least 0, got {value}")


def check_betas(name: str, betas: Any) -> None:
    """ValueError unless both numbers are in [0, 1)."""
    for i in (0, 1):
        if not 0.0 <= betas[i] < 1.0:
            raise ValueError(f"{name}: betas[{i}]; expected a number in [0, 1), got {betas[i]}")


def check_flags(name: str, foreach: Any, fused: Any, differentiable: bool) -> None:
    """RuntimeError for ways of computing that exclude each other."""
    if fused:
        if differentiable:
            raise RuntimeError(f"{name}: fused=True; expected differentiable=False, got True")
        if foreach:
            raise RuntimeError(f"{name}: expected only one of fused and foreach, got both")


def new_step(p: Any = None, on_device: bool = False) -> Tensor:
    """A step count of 0: a float tensor without dimensions."""
    dtype = rushlight.float64 if rushlight.get_default_dtype() == rushlight.float64 else rushlight.float32
    if on_device:
        return rushlight.zeros((), dtype=dtype, device=p.device)
    return rushlight.tensor(0.0, dtype=dtype)


def zeros_like(p: Any) -> Tensor:
    """State of zeros in the layout of a parameter."""
    return rushlight.zeros_like(p, memory_format=rushlight.preserve_format)


def as_real(*tensors: Any) -> tuple[Any, ...]:
    """Complex tensors as real ones with one dimension more, sharing memory; real ones as they are."""
    return tuple(rushlight.view_as_real(t) if t is not None and t.is_complex() else t for t in tensors)


def value_of(x: Any) -> Any:
    """A tensor of one element as a number."""
    return x.item() if isinstance(x, Tensor) else x
