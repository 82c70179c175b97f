"""Parametrizations: a parameter computed from others each time it is read."""

from __future__ import annotations

import contextlib
import copy
import threading

from rushlight import Tensor

from ..modules.container import ModuleDict, ModuleList
from ..modules.module import Module
from ..parameter import Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

__all__ = [
    "ParametrizationList", "cached", "is_parametrized", "register_parametrization", "remove_parametrizations",
    "transfer_parametrizations_and_params", "type_before_parametrizations",
]  # fmt: skip


class _Cache(threading.local):
    depth = 0

    def __init__(self) -> None:
        self.values: dict[tuple[int, str], Any] = {}


_cache = _Cache()


@contextlib.contextmanager
def cached() -> Iterator[None]:
    """Inside of this context a parametrized tensor is computed only once."""
    _cache.depth += 1
    try:
        yield
    finally:
        _cache.depth -= 1
        if not _cache.depth:
            _cache.values = {}


def _register(module: Any, name: str, value: Tensor) -> None:
    if isinstance(value, Parameter):
        module.register_parameter(name, value)
    else:
        module.register_buffer(name, value)


def _replace_data(old: Any, new: Tensor) -> None:
    """Gives a registered tensor new values, keeping the object that optimizers know."""
    old.data = new.detach() if isinstance(new, Tensor) else new


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, and the tensors they start from ("original", or "original0", "original1",
    ...)."""

    original: Any
    unsafe: bool

    def __init__(self, modules: Sequence[Module], original: Any, unsafe: bool = False) -> None:
        if not modules:
            raise ValueError("ParametrizationList: expected at least one parametrization, got none")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        import rushlight

        with rushlight.no_grad():
            new: Any = original
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    with contextlib.suppress(NotImplementedError):
                        new = module.right_inverse(new)
                # else: the value is taken as it is
        if not isinstance(new, Tensor) and not isinstance(new, (list, tuple)):
            raise ValueError(
                f"ParametrizationList: right_inverse; expected a Tensor or a sequence of them, got {type(new).__name__}"
            )
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if self.is_tensor:
            if original.dtype != new.dtype:  # type: ignore[union-attr]
                raise ValueError(
                    f"ParametrizationList: right_inverse changed the dtype; expected {original.dtype}, got {new.dtype}"  # type: ignore[union-attr]
                )
            with rushlight.no_grad():
                if new is not original:
                    _replace_data(original, new)  # type: ignore[arg-type]
            _register(self, "original", original)
        else:
            for i, part in enumerate(new):
                if not isinstance(part, Tensor):
                    raise ValueError(
                        f"ParametrizationList: right_inverse; expected Tensors, got {type(part).__name__} at {i}"
                    )
                if isinstance(original, Parameter):
                    part = Parameter(part, original.requires_grad)
                _register(self, f"original{i}", part)
        if not unsafe:
            value = self()
            if not isinstance(value, Tensor):
                raise ValueError(f"ParametrizationList: forward; expected a Tensor, got {type(value).__name__}")
            if value.dtype != dtype:
                raise ValueError(f"ParametrizationList: forward changed the dtype; expected {dtype}, got {value.dtype}")
            if value.shape != shape:
                raise ValueError(
                    f"ParametrizationList: forward changed the shape; expected {list(shape)}, got {list(value.shape)}"
                )

    def right_inverse(self, value: Tensor) -> None:
        """Sets the originals so that forward gives ``value``, by the right_inverse of all parametrizations."""
        import rushlight

        with rushlight.no_grad():
            new: Any = value
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        f"right_inverse: {type(module).__name__} does not define it; expected it for an assignment"
                    )
                new = module.right_inverse(new)
            if self.is_tensor:
                if not isinstance(new, Tensor):
                    raise ValueError(f"right_inverse: expected a Tensor, got {type(new).__name__}")
                if self.original.dtype != new.dtype:
                    raise ValueError(f"right_inverse: expected dtype {self.original.dtype}, got {new.dtype}")
                _replace_data(self.original, new)
                return
            if not isinstance(new, (list, tuple)):
                raise ValueError(f"right_inverse: expected a sequence of Tensors, got {type(new).__name__}")
            if len(new) != self.ntensors:
                raise ValueError(f"right_inverse: expected {self.ntensors} Tensors, got {len(new)}")
            for i, part in enumerate(new):
                original = getattr(self, f"original{i}")
                if not isinstance(part, Tensor):
                    raise ValueError(f"right_inverse: expected Tensors, got {type(part).__name__} at {i}")
                if original.dtype != part.dtype:
                    raise ValueError(f"right_inverse: expected dtype {original.dtype} at {i}, got {part.dtype}")
                _replace_data(original, part)

    def forward(self) -> Any:
        modules = iter(self)
        first = next(modules)
        if self.is_tensor:
            x = first(self.original)
        else:
            x = first(*(getattr(self, f"original{i}") for i in range(self.ntensors)))
        for module in modules:
            x = module(x)
        return x


def _inject_class(module: Any) -> None:
    """Gives a module a class of its own, which can hold the property."""
    cls = type(module)

    def default_deepcopy(self: Any, memo: dict[int, Any]) -> Any:
        known = memo.get(id(self))
        if known is not None:
            return known
        replica = cls.__new__(cls)  # type: ignore[call-overload]
        memo[id(self)] = replica
        replica.__dict__ = copy.deepcopy(self.__dict__, memo)
        # a class of its own as well: what is removed from one must not be missing in the other
        _inject_class(replica)
        for name in replica.parametrizations:
            _inject_property(replica, name)
        return replica

    def getstate(self: Any) -> Any:
        raise RuntimeError(
            f"{cls.__name__}: a parametrized module cannot be pickled; expected its state_dict() or the module without "
            "parametrizations"
        )

    members: dict[str, Any] = {"__getstate__": getstate}
    if not hasattr(cls, "__deepcopy__"):
        members["__deepcopy__"] = default_deepcopy
    make: Any = type
    module.__class__ = make(f"Parametrized{cls.__name__}", (cls,), members)


def _inject_property(module: Any, tensor_name: str) -> None:
    def value(self: Any) -> Any:
        if not _cache.depth:
            return self.parametrizations[tensor_name]()
        key = (id(self), tensor_name)
        tensor = _cache.values.get(key)
        if tensor is None:
            tensor = self.parametrizations[tensor_name]()
            _cache.values[key] = tensor
        return tensor

    def set_value(self: Any, new: Tensor) -> None:
        self.parametrizations[tensor_name].right_inverse(new)

    setattr(type(module), tensor_name, property(value, set_value))


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Makes ``module.<tensor_name>`` the result of a parametrization of what was there; returns the module.

    The original is then ``module.parametrizations.<tensor_name>.original``. A parametrization with ``right_inverse``
    makes assignment possible. Without ``unsafe`` dtype and shape must stay the same (ValueError).

    Example::

        >>> import rushlight
        >>> from rushlight.nn.utils import parametrize
        >>> class Positive(rushlight.nn.Module):
        ...     def forward(self, x):
        ...         return x.abs()
        >>> layer = parametrize.register_parametrization(rushlight.nn.Linear(2, 2), "weight", Positive())
        >>> bool((layer.weight >= 0).all())
        True
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        existing: Any = module.parametrizations[tensor_name]
        if not unsafe:
            value = getattr(module, tensor_name)
            new = parametrization(value)
            _check_same(new, value)
            if hasattr(parametrization, "right_inverse"):
                try:
                    inverse = parametrization.right_inverse(new)
                except NotImplementedError:
                    inverse = new
                if isinstance(inverse, Tensor) and inverse.dtype != value.dtype:
                    raise ValueError(
                        f"register_parametrization: right_inverse; expected dtype {value.dtype}, got {inverse.dtype}"
                    )
                if isinstance(inverse, Tensor) and inverse.shape != value.shape:
                    raise ValueError(
                        f"register_parametrization: right_inverse; expected shape {list(value.shape)}, got "
                        f"{list(inverse.shape)}"
                    )
        existing.append(parametrization)
        existing.unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        original = getattr(module, tensor_name)
        entries = ParametrizationList([parametrization], original, unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _inject_class(module)
            module.parametrizations = ModuleDict()
        _inject_property(module, tensor_name)
        module.parametrizations[tensor_name] = entries
    else:
        raise ValueError(
            f"register_parametrization: {type(module).__name__} has no parameter, buffer or parametrized tensor "
            f"'{tensor_name}'; expected the name of one"
        )
    return module


def _check_same(new: Any, value: Tensor) -> None:
    if not isinstance(new, Tensor):
        raise ValueError(f"register_parametrization: forward; expected a Tensor, got {type(new).__name__}")
    if new.dtype != value.dtype:
        raise ValueError(
            f"register_parametrization: forward changed the dtype; expected {value.dtype}, got {new.dtype}"
        )
    if new.shape != value.shape:
        raise ValueError(
            f"register_parametrization: forward changed the shape; expected {list(value.shape)}, got {list(new.shape)}"
        )


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether a module has parametrizations, or one of this tensor."""
    entries: Any = getattr(module, "parametrizations", None)
    if entries is None or not isinstance(entries, ModuleDict):
        return False
    return len(entries) > 0 if tensor_name is None else tensor_name in entries


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Removes the parametrizations of a tensor; returns the module.

    With ``leave_parametrized`` the tensor keeps its present value, otherwise the original comes back (ValueError when
    that is not a single tensor).
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"remove_parametrizations: '{tensor_name}' of {type(module).__name__} has no parametrization")
    holder: Any = module
    entries = holder.parametrizations[tensor_name]
    import rushlight

    if entries.is_tensor:
        original = entries.original
        if leave_parametrized:
            with rushlight.no_grad():
                value = getattr(module, tensor_name)
                # the object an optimizer knows stays, where its kind allows
                if type(original) is Tensor or isinstance(original, Parameter):
                    original.data = value.detach()
                else:
                    original = Parameter(value) if original.requires_grad else value
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value.detach()) if value.requires_grad else value
    else:
        raise ValueError(
            "remove_parametrizations: leave_parametrized=False needs a single original tensor; expected True, since "
            f"there are {entries.ntensors}"
        )
    delattr(type(module), tensor_name)
    del holder.parametrizations[tensor_name]
    _register(module, tensor_name, original)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        holder.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """The class of a module, without the one that parametrizations gave it."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Copies the parametrizations (of one tensor or all) and their originals to another module, and returns it."""
    if not is_parametrized(from_module):
        return to_module
    source: Any = from_module
    target: Any = to_module
    names = [tensor_name] if tensor_name is not None else list(source.parametrizations)
    for name in names:
        if not hasattr(target, name):
            setattr(target, name, copy.deepcopy(getattr(source, name)))
        for parametrization in source.parametrizations[name]:
            register_parametrization(target, name, copy.deepcopy(parametrization))
        mine, theirs = target.parametrizations[name], source.parametrizations[name]
        for key in ["original"] if theirs.is_tensor else [f"original{i}" for i in range(theirs.ntensors)]:
            getattr(mine, key).data = getattr(theirs, key).detach().clone()
    return to_module
