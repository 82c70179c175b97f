"""Module, the base class of everything with parameters."""

from __future__ import annotations

import warnings

import rushlight
from rushlight import Tensor

from ..parameter import Buffer, Parameter, is_lazy
from ._hooks import (
    global_buffer_registration_hooks,
    global_module_registration_hooks,
    global_parameter_registration_hooks,
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from ._state import StateMixin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from typing_extensions import Self

__all__ = [
    "Module",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]

_HOOK_DICTS = (
    "_non_persistent_buffers_set",
    "_backward_pre_hooks",
    "_backward_hooks",
    "_is_full_backward_hook",
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)


def _type_name(value: Any) -> str:
    """A type as people write it: ``rushlight.FloatTensor`` for tensors, the module path for the rest."""
    if isinstance(value, Tensor):
        return str(value.type())
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


class Module(StateMixin):
    """Base class of all neural network modules: define ``forward`` and assign parameters and submodules in
    ``__init__``.

    Parameters, buffers and submodules assigned as attributes are found again by name: they move with :meth:`to`, are
    saved by :meth:`state_dict` and handed to an optimizer by :meth:`parameters`.

    Example::

        >>> import rushlight
        >>> class Net(rushlight.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.layer = rushlight.nn.Linear(4, 2)
        ...     def forward(self, x):
        ...         return self.layer(x).relu()
        >>> tuple(Net()(rushlight.ones(3, 4)).shape)
        (3, 2)
    """

    dump_patches: bool = False
    _version: int = 1
    training: bool
    call_super_init: bool = False
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init and (args or kwargs):
            given = f"keyword argument '{next(iter(kwargs))}'" if kwargs else f"{len(args)} positional arguments"
            raise TypeError(f"{type(self).__name__}.__init__: Module takes no arguments; expected none, got {given}")
        # straight into the instance dict: __setattr__ would look at every value
        self.__dict__.update(
            training=True,
            _parameters={},
            _buffers={},
            _non_persistent_buffers_set=set(),
            _backward_pre_hooks={},
            _backward_hooks={},
            _is_full_backward_hook=None,
            _forward_hooks={},
            _forward_hooks_with_kwargs={},
            _forward_hooks_always_called={},
            _forward_pre_hooks={},
            _forward_pre_hooks_with_kwargs={},
            _state_dict_hooks={},
            _state_dict_pre_hooks={},
            _load_state_dict_pre_hooks={},
            _load_state_dict_post_hooks={},
            _modules={},
        )
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What a call of the module computes; every subclass defines it."""
        raise NotImplementedError(
            f"{type(self).__name__}.forward: not defined; expected a method forward(self, ...) in the class"
        )

    def _call_impl(self, *args: Any, **kwargs: Any) -> Any:
        return self._call_with_hooks(*args, **kwargs)

    # ---------------------------------------------------------------- members

    def register_buffer(self, name: str, tensor: Any, persistent: bool = True) -> None:
        """Adds a tensor that is state but no parameter, such as a running mean; readable as attribute ``name``.

        Args:
            tensor: the buffer, or None to reserve the name.
            persistent: whether it is part of state_dict.

        Raises TypeError for a name or value of the wrong type and KeyError for a name that cannot be used.
        """
        self._check_member_name("register_buffer", "buffer", name, "_buffers")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"register_buffer: buffer '{name}' of the wrong type; expected a Tensor or None, got "
                f"{_type_name(tensor)}"
            )
        for hook in global_buffer_registration_hooks.values():
            replaced = hook(self, name, tensor)
            if replaced is not None:
                tensor = replaced
        self._buffers[name] = tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_parameter(self, name: str, param: Any) -> None:
        """Adds a parameter, readable as attribute ``name``; None reserves the name.

        Raises TypeError for a name or value of the wrong type, KeyError for a name that cannot be used and ValueError
        when the parameter is the result of a computation.
        """
        self._check_member_name("register_parameter", "parameter", name, "_parameters")
        if param is not None:
            if not isinstance(param, Parameter):
                raise TypeError(
                    f"register_parameter: '{name}' of the wrong type; expected a Parameter or None, got "
                    f"{_type_name(param)}"
                )
            if param.grad_fn is not None:
                raise ValueError(
                    f"register_parameter: '{name}' is not a leaf; expected a Parameter made directly from data, got "
                    f"the result of {param.grad_fn.name()}; compute it in forward() instead"
                )
        for hook in global_parameter_registration_hooks.values():
            replaced = hook(self, name, param)
            if replaced is not None:
                param = replaced
        self._parameters[name] = param

    def add_module(self, name: str, module: Any) -> None:
        """Adds a submodule, readable as attribute ``name``; None reserves the name.

        Raises TypeError for a name or value of the wrong type and KeyError for a name that cannot be used.
        """
        if module is not None and not isinstance(module, Module):
            raise TypeError(
                f"add_module: '{name}' of the wrong type; expected a Module or None, got {_type_name(module)}"
            )
        self._check_member_name("add_module", "module", name, "_modules")
        for hook in global_module_registration_hooks.values():
            replaced = hook(self, name, module)
            if replaced is not None:
                module = replaced
        self._modules[name] = module

    def register_module(self, name: str, module: Any) -> None:
        """Alias of :meth:`add_module`."""
        self.add_module(name, module)

    def _check_member_name(self, op: str, what: str, name: Any, kind: str) -> None:
        members = self.__dict__.get(kind)
        if members is None:
            raise AttributeError(
                f"{op}: {type(self).__name__} is not initialised; expected super().__init__() before the first {what}"
            )
        if not isinstance(name, str):
            raise TypeError(f"{op}: name of the wrong type; expected a str, got {type(name).__name__}")
        if "." in name or name == "":
            raise KeyError(f"{op}: name that cannot be used; expected a non-empty str without '.', got {name!r}")
        if name not in members and hasattr(self, name):
            raise KeyError(f"{op}: the attribute '{name}' exists already; expected a new name, got {name!r}")

    def get_submodule(self, target: str) -> Module:
        """The submodule with this dotted path; "" is the module itself. AttributeError when there is none."""
        module: Any = self
        if target == "":
            return module
        done = type(self).__name__
        for name in target.split("."):
            if not hasattr(module, name):
                raise AttributeError(f"get_submodule: {done} has no attribute '{name}'; expected the path {target!r}")
            module = getattr(module, name)
            if not isinstance(module, Module):
                raise AttributeError(
                    f"get_submodule: '{name}' of {done} is no module; expected a Module, got {_type_name(module)}"
                )
            done += "." + name
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Puts a module at a dotted path. Its parent must exist; with ``strict`` so must the place itself.

        Raises ValueError for an empty path or something that is no module, AttributeError when the path leads nowhere.
        """
        if target == "":
            raise ValueError("set_submodule: empty path; expected the dotted name of a submodule, got ''")
        if not isinstance(module, Module):
            raise ValueError(f"set_submodule: value of the wrong type; expected a Module, got {_type_name(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if hasattr(parent, name):
            old = getattr(parent, name)
            if not isinstance(old, Module):
                raise AttributeError(
                    f"set_submodule: {target!r} is no module; expected a Module in this place, got {_type_name(old)}"
                )
        elif strict:
            raise AttributeError(
                f"set_submodule: {type(parent).__name__} has no attribute '{name}'; expected the existing path "
                f"{target!r}"
            )
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter with this dotted path. AttributeError when there is none."""
        return self._get_member("get_parameter", target, Parameter, "Parameter")

    def get_buffer(self, target: str) -> Tensor:
        """The buffer with this dotted path. AttributeError when there is none."""
        path, _, name = target.rpartition(".")
        value = self._get_member("get_buffer", target, Tensor, "buffer")
        if name not in self.get_submodule(path)._buffers:
            raise AttributeError(f"get_buffer: {target!r} is no buffer; expected a buffer, got {_type_name(value)}")
        return value

    def _get_member(self, op: str, target: str, kind: Any, what: str) -> Any:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(
                f"{op}: {type(module).__name__} has no attribute '{name}'; expected the path {target!r}"
            )
        value = getattr(module, name)
        if not isinstance(value, kind):
            raise AttributeError(f"{op}: {target!r} is no {what}; expected a {what}, got {_type_name(value)}")
        return value

    # ---------------------------------------------------------------- attributes

    def __setattr__(self, name: str, value: Any) -> None:
        d = self.__dict__
        params = d.get("_parameters")
        is_tensor = isinstance(value, Tensor)
        if is_tensor and isinstance(value, Parameter):
            if params is None:
                raise AttributeError(
                    f"{type(self).__name__} is not initialised; expected super().__init__() before parameter '{name}'"
                )
            self._forget(name, "_parameters")
            self.register_parameter(name, value)
            return
        if params is not None and name in params:
            if value is not None:
                raise TypeError(
                    f"cannot assign to parameter '{name}' of {type(self).__name__}; expected a Parameter or None, got "
                    f"{_type_name(value)}"
                )
            self.register_parameter(name, None)
            return
        modules = d.get("_modules")
        if isinstance(value, Module):
            if modules is None:
                raise AttributeError(
                    f"{type(self).__name__} is not initialised; expected super().__init__() before submodule '{name}'"
                )
            self._forget(name, "_modules")
            for hook in global_module_registration_hooks.values():
                replaced = hook(self, name, value)
                if replaced is not None:
                    value = replaced
            modules[name] = value
            return
        if modules is not None and name in modules:
            if value is not None:
                raise TypeError(
                    f"cannot assign to submodule '{name}' of {type(self).__name__}; expected a Module or None, got "
                    f"{_type_name(value)}"
                )
            for hook in global_module_registration_hooks.values():
                replaced = hook(self, name, value)
                if replaced is not None:
                    value = replaced
            modules[name] = value
            return
        buffers = d.get("_buffers")
        if buffers is not None and name in buffers:
            if value is not None and not is_tensor:
                raise TypeError(
                    f"cannot assign to buffer '{name}' of {type(self).__name__}; expected a Tensor, Buffer or None, "
                    f"got {_type_name(value)}"
                )
            if is_tensor and isinstance(value, Buffer):
                self.register_buffer(name, value, value.persistent)
                return
            for hook in global_buffer_registration_hooks.values():
                replaced = hook(self, name, value)
                if replaced is not None:
                    value = replaced
            buffers[name] = value
            return
        if is_tensor and isinstance(value, Buffer):
            if buffers is None:
                raise AttributeError(
                    f"{type(self).__name__} is not initialised; expected super().__init__() before buffer '{name}'"
                )
            self._forget(name, "_buffers")
            self.register_buffer(name, value, value.persistent)
            return
        object.__setattr__(self, name, value)

    def _forget(self, name: str, keep: str) -> None:
        """Removes a name from everywhere but ``keep``, since a member is about to take it."""
        d = self.__dict__
        d.pop(name, None)
        for kind in ("_parameters", "_buffers", "_modules"):
            if kind != keep:
                d[kind].pop(name, None)
        if keep != "_buffers":
            d["_non_persistent_buffers_set"].discard(name)

    def __delattr__(self, name: str) -> None:
        if name in self._parameters:
            del self._parameters[name]
        elif name in self._buffers:
            del self._buffers[name]
            self._non_persistent_buffers_set.discard(name)
        elif name in self._modules:
            del self._modules[name]
        else:
            object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        names = {*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers}
        # names such as "0" are no attributes one could write
        return sorted(n for n in names if not n[:1].isdigit())

    def __getstate__(self) -> dict[str, Any]:
        # the default refuses objects with a C layout of their own
        return self.__dict__

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for name in _HOOK_DICTS:
            if name not in self.__dict__:
                default: Any = {}
                if name == "_non_persistent_buffers_set":
                    default = set()
                elif name == "_is_full_backward_hook":
                    default = None
                self.__dict__[name] = default

    # ---------------------------------------------------------------- walking

    def named_modules(
        self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """All modules in the tree with their dotted names, this one (named ``prefix``) first."""
        if memo is None:
            memo = set()
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                inner = f"{prefix}.{name}" if prefix else name
                yield from module.named_modules(memo, inner, remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """All modules in the tree, this one first; each once unless ``remove_duplicate=False``."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The direct submodules with their names, each once."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        """The direct submodules, each once."""
        for _, module in self.named_children():
            yield module

    def _named_members(
        self,
        get_members_fn: Callable[[Any], Any],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        modules: Any = [(prefix, self)]
        if recurse:
            modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
        seen = set()
        for module_prefix, module in modules:
            for name, value in get_members_fn(module):
                if value is None or value in seen:
                    continue
                if remove_duplicate:
                    seen.add(value)
                yield (f"{module_prefix}.{name}" if module_prefix else name), value

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """All parameters with their dotted names; ``recurse=False`` gives only this module's own."""
        yield from self._named_members(lambda m: m._parameters.items(), prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """All parameters, each once."""
        for _, param in self.named_parameters(recurse=recurse):
            yield param

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """All buffers with their dotted names; ``recurse=False`` gives only this module's own."""
        yield from self._named_members(lambda m: m._buffers.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """All buffers, each once."""
        for _, buf in self.named_buffers(recurse=recurse):
            yield buf

    def apply(self, fn: Callable[[Module], Any]) -> Self:
        """Calls ``fn`` on every submodule, then on the module itself, and returns the module."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    # ---------------------------------------------------------------- conversion

    def _apply(self, fn: Callable[[Any], Any], recurse: bool = True) -> Self:
        if recurse:
            for module in self.children():
                module._apply(fn)
        for name, param in self._parameters.items():
            if param is None:
                continue
            grad: Any = None if is_lazy(param) else param.grad
            # the conversion must not be recorded, and its result is the parameter's memory, not a new value of it
            with rushlight.no_grad():
                converted = fn(param)
                new_grad: Any = None if grad is None else fn(grad)
            target = param
            if converted is not param and _same_kind(param, converted):
                # a gradient of the old dtype would not fit the new data
                param.grad = None
                param.data = converted
            elif converted is not param:
                target = Parameter(converted, param.requires_grad)
                self._parameters[name] = target
            if grad is not None:
                target.grad = new_grad.requires_grad_(grad.requires_grad)
        for name, buf in self._buffers.items():
            if buf is not None:
                self._buffers[name] = fn(buf)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Moves and converts parameters and buffers in place: ``to(device)``, ``to(dtype)``, ``to(tensor)`` or both.

        ``dtype`` must be floating point or complex and is applied to floating point and complex members only.
        ``memory_format`` is applied to 4-d and 5-d members. Returns the module; TypeError for another dtype.
        """
        device, dtype, non_blocking, memory_format = _parse_to(args, kwargs)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(f"{type(self).__name__}.to: dtype; expected a floating point or complex dtype, got {dtype}")
        if dtype is not None and dtype.is_complex:
            warnings.warn(
                "Module.to: complex modules are new, and some modules may not work with complex parameters",
                stacklevel=2,
            )

        def convert(t: Any) -> Any:
            wanted = dtype if dtype is not None and (t.is_floating_point() or t.is_complex()) else None
            if memory_format is not None and t.dim() in (4, 5):
                return t.to(
                    device=device if device is not None else t.device,
                    dtype=wanted if wanted is not None else t.dtype,
                    non_blocking=non_blocking,
                    memory_format=memory_format,
                )
            if wanted is not None:
                return t.to(device=device if device is not None else t.device, dtype=wanted, non_blocking=non_blocking)
            return t if device is None else t.to(device=device, non_blocking=non_blocking)

        return self._apply(convert)

    def to_empty(self, *, device: Any, recurse: bool = True) -> Self:
        """Moves parameters and buffers to a device without copying their values, for modules built on ``meta``."""
        return self._apply(lambda t: rushlight.empty_like(t, device=device), recurse=recurse)

    def type(self, dst_type: Any) -> Self:
        """Converts all parameters and buffers to a dtype."""
        return self._apply(lambda t: t.type(dst_type))

    def _convert_floating(self, dtype: Any) -> Self:
        return self._apply(lambda t: t.to(dtype) if t.is_floating_point() else t)

    def float(self) -> Self:
        """Converts floating point parameters and buffers to float32."""
        return self._convert_floating(rushlight.float32)

    def double(self) -> Self:
        """Converts floating point parameters and buffers to float64."""
        return self._convert_floating(rushlight.float64)

    def half(self) -> Self:
        """Converts floating point parameters and buffers to float16."""
        return self._convert_floating(rushlight.float16)

    def bfloat16(self) -> Self:
        """Converts floating point parameters and buffers to bfloat16."""
        return self._convert_floating(rushlight.bfloat16)

    def cpu(self) -> Self:
        """Moves parameters and buffers to the CPU."""
        return self._apply(lambda t: t.cpu())

    def cuda(self, device: Any = None) -> Self:
        """Moves parameters and buffers to a CUDA device."""
        return self._apply(lambda t: t.cuda(device))

    def share_memory(self) -> Self:
        """Moves parameters and buffers into shared memory."""
        return self._apply(lambda t: t.share_memory_())

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compiles ``forward`` with :func:`rushlight.compile`; calls keep going through the module's hooks."""
        object.__setattr__(self, "forward", rushlight.compile(self.forward, *args, **kwargs))

    # ---------------------------------------------------------------- modes and gradients

    def train(self, mode: bool = True) -> Self:
        """Sets training mode for the whole tree. ValueError when ``mode`` is no bool."""
        if not isinstance(mode, bool):
            raise ValueError(f"train: mode of the wrong type; expected a bool, got {type(mode).__name__}")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """Sets evaluation mode: the same as ``train(False)``."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Sets ``requires_grad`` of all parameters."""
        for p in self.parameters():
            p.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drops the gradients of all parameters, or zeroes them with ``set_to_none=False``."""
        for p in self.parameters():
            if p.grad is None:
                continue
            if set_to_none:
                p.grad = None
            else:
                if p.grad.grad_fn is not None:
                    p.grad.detach_()
                else:
                    p.grad.requires_grad_(False)
                p.grad.zero_()

    # ---------------------------------------------------------------- text

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """What stands between the parentheses of repr; subclasses return their settings."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        single = not self._modules and len(lines) == 1
        for name, module in self._modules.items():
            lines.append(f"({name}): " + _indent(repr(module)))
        body = ""
        if single:
            body = lines[0]
        elif lines:
            body = "\n  " + "\n  ".join(lines) + "\n"
        return f"{self._get_name()}({body})"

    def _replicate_for_data_parallel(self) -> Self:
        replica = self.__new__(type(self))
        replica.__dict__ = self.__dict__.copy()
        replica._parameters = {}
        replica._buffers = replica._buffers.copy()
        replica._modules = replica._modules.copy()
        replica._is_replica = True
        return replica


def _indent(text: str) -> str:
    return text.replace("\n", "\n  ")


def _same_kind(param: Any, converted: Any) -> bool:
    """Whether ``param.data = converted`` is possible: only a change of device type needs a new Parameter."""
    if is_lazy(param):
        return True
    return bool(param.device.type == converted.device.type)


def _parse_to(args: Any, kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """Arguments of ``Module.to`` as (device, dtype, non_blocking, memory_format)."""
    rest = list(args)
    given = dict(kwargs)
    device = dtype = None
    if "tensor" in given:
        rest.insert(0, given.pop("tensor"))
    first = rest[0] if rest else None
    if isinstance(first, Tensor):
        device, dtype = first.device, first.dtype
        rest.pop(0)
    elif isinstance(first, rushlight.dtype):
        dtype = rest.pop(0)
    elif rest:
        device = rest.pop(0)
        if rest and isinstance(rest[0], rushlight.dtype):
            dtype = rest.pop(0)
        elif rest and rest[0] is None:
            rest.pop(0)
    non_blocking = rest.pop(0) if rest else given.pop("non_blocking", False)
    if rest:
        rest.pop(0)  # copy: the conversion is in place anyway
    given.pop("copy", None)
    if "device" in given:
        device = given.pop("device")
    if "dtype" in given:
        dtype = given.pop("dtype")
    memory_format = given.pop("memory_format", None)
    if given or rest:
        raise TypeError(
            f"Module.to: unknown argument; expected device, dtype, non_blocking or memory_format, got "
            f"{next(iter(given)) if given else rest[0]!r}"
        )
    if dtype is not None and not isinstance(dtype, rushlight.dtype):
        raise TypeError(f"Module.to: dtype of the wrong type; expected a dtype, got {type(dtype).__name__}")
    if device is not None and not isinstance(device, rushlight.device):
        device = rushlight.device(device)  # type: ignore[unreachable]
    return device, dtype, bool(non_blocking), memory_format
