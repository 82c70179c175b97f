"""Containers of modules and of parameters."""

from __future__ import annotations

import operator
from collections import OrderedDict
from itertools import chain, islice

from rushlight import Tensor

from ..parameter import Parameter
from .module import Module, _indent, _type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from typing_extensions import Self

__all__ = ["Container", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]


class Container(Module):
    """Deprecated container of modules given by keyword."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__()
        for key, value in kwargs.items():
            self.add_module(key, value)


def _position(op: str, index: Any, length: int) -> int:
    """An index as a position from 0; IndexError when it is outside."""
    i = operator.index(index)
    if not -length <= i < length:
        raise IndexError(f"{op}: index {i} is out of range; expected {-length} to {length - 1}, got {i}")
    return i + length if i < 0 else i


class _ModuleSequence(Module):
    """What Sequential and ModuleList share: submodules under the names "0", "1", ..."""

    def _key(self, index: Any) -> str:
        # Sequential may have names of its own, so a position is looked up among the keys
        i = _position(type(self).__name__, index, len(self._modules))
        return next(islice(self._modules, i, None))

    def _renumber(self, modules: Iterable[Any]) -> None:
        self.__dict__["_modules"] = {str(i): m for i, m in enumerate(modules)}

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __dir__(self) -> list[str]:
        return [n for n in super().__dir__() if not n.isdigit()]


class Sequential(_ModuleSequence):
    """Modules that run one after another, each on the result of the one before.

    Args:
        args: modules, or one OrderedDict of names and modules.

    Example::

        >>> import rushlight
        >>> net = rushlight.nn.Sequential(rushlight.nn.Linear(4, 8), rushlight.nn.ReLU(), rushlight.nn.Linear(8, 2))
        >>> tuple(net(rushlight.ones(3, 4)).shape)
        (3, 2)
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            for key, module in args[0].items():
                self.add_module(key, module)
        else:
            for i, module in enumerate(args):
                self.add_module(str(i), module)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(self._modules.items())[index]))
        return self._modules[self._key(index)]

    def __setitem__(self, index: Any, module: Module) -> None:
        setattr(self, self._key(index), module)

    def __delitem__(self, index: Any) -> None:
        if isinstance(index, slice):
            for key in list(self._modules)[index]:
                delattr(self, key)
        else:
            delattr(self, self._key(index))
        self._renumber(self._modules.values())

    def __add__(self, other: Any) -> Sequential:
        if not isinstance(other, Sequential):
            raise ValueError(f"Sequential + other: expected a Sequential, got {_type_name(other)}")
        return Sequential(*self, *other)

    def __iadd__(self, other: Any) -> Self:
        if not isinstance(other, Sequential):
            raise ValueError(f"Sequential += other: expected a Sequential, got {_type_name(other)}")
        return self.extend(other)

    def __mul__(self, count: int) -> Sequential:
        return Sequential(*_repeat("Sequential * n", self, count))

    def __rmul__(self, count: int) -> Sequential:
        return self * count

    def __imul__(self, count: int) -> Self:
        first = len(self)
        for module in _repeat("Sequential *= n", self, count)[first:]:
            self.append(module)
        return self

    def pop(self, key: Any) -> Module:
        """Removes the module at a position (or slice) and returns it."""
        module = self[key]
        del self[key]
        return module

    def append(self, module: Module) -> Self:
        """Adds a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index: int, module: Module) -> Self:
        """Puts a module before a position. IndexError when it is out of range."""
        if not isinstance(module, Module):
            raise AssertionError(f"Sequential.insert: expected a Module, got {_type_name(module)}")
        n = len(self)
        if not -n <= index <= n:
            raise IndexError(f"Sequential.insert: index {index} is out of range; expected {-n} to {n}, got {index}")
        modules = list(self)
        modules.insert(index, module)
        self._renumber(modules)
        return self

    def extend(self, sequential: Iterable[Module]) -> Self:
        """Adds all modules of another sequence at the end."""
        for module in list(sequential):
            self.append(module)
        return self

    def forward(self, input: Any) -> Any:
        for module in self._modules.values():
            input = module(input)
        return input


def _repeat(op: str, modules: Any, count: Any) -> list[Any]:
    if not isinstance(count, int):
        raise TypeError(f"{op}: count of the wrong type; expected an int, got {type(count).__name__}")
    if count <= 0:
        raise ValueError(f"{op}: count out of range; expected a positive int, got {count}")
    return list(modules) * count


class ModuleList(_ModuleSequence):
    """A list of modules whose parameters are found.

    Example::

        >>> import rushlight
        >>> layers = rushlight.nn.ModuleList(rushlight.nn.Linear(4, 4) for _ in range(3))
        >>> len(layers), len(list(layers.parameters()))
        (3, 6)
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self += modules

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        return self._modules[self._key(index)]

    def __setitem__(self, index: Any, module: Module) -> None:
        setattr(self, str(_position("ModuleList", index, len(self))), module)

    def __delitem__(self, index: Any) -> None:
        modules = list(self)
        if isinstance(index, slice):
            del modules[index]
        else:
            del modules[_position("ModuleList", index, len(self))]
        self._renumber(modules)

    def __iadd__(self, modules: Iterable[Module]) -> Self:
        return self.extend(modules)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList(chain(self, other))

    def __repr__(self) -> str:
        """Runs of modules with one and the same repr are printed once."""
        texts = [repr(m) for m in self]
        if not texts:
            return self._get_name() + "()"
        groups: list[list[Any]] = []
        for i, text in enumerate(texts):
            if groups and groups[-1][2] == text:
                groups[-1][1] = i
            else:
                groups.append([i, i, text])
        lines = []
        for start, end, text in groups:
            if start == end:
                lines.append(f"({start}): " + _indent(text))
            else:
                lines.append(f"({start}-{end}): {end - start + 1} x " + _indent(text))
        return self._get_name() + "(\n  " + "\n  ".join(lines) + "\n)"

    def insert(self, index: int, module: Module) -> None:
        """Puts a module before a position, as ``list.insert``."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"ModuleList.insert: expected a Module or None, got {_type_name(module)}")
        modules = list(self)
        modules.insert(index, module)
        self._renumber(modules)

    def append(self, module: Module) -> Self:
        """Adds a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def pop(self, key: Any) -> Module:
        """Removes the module at a position and returns it."""
        module = self[key]
        del self[key]
        return module

    def extend(self, modules: Iterable[Module]) -> Self:
        """Adds all modules at the end. TypeError when ``modules`` cannot be iterated."""
        if not hasattr(modules, "__iter__"):
            raise TypeError(f"ModuleList.extend: expected an iterable of modules, got {_type_name(modules)}")
        for i, module in enumerate(list(modules), len(self)):
            self.add_module(str(i), module)
        return self


def _key_value_pairs(op: str, given: Any) -> list[tuple[Any, Any]]:
    """The pairs of a mapping or of an iterable of pairs, checked."""
    if hasattr(given, "keys"):
        return [(k, given[k]) for k in given.keys()]  # noqa: SIM118
    if not hasattr(given, "__iter__"):
        raise TypeError(f"{op}: expected a mapping or an iterable of (key, value) pairs, got {type(given).__name__}")
    pairs = []
    for i, item in enumerate(given):
        if not hasattr(item, "__iter__"):
            raise TypeError(f"{op}: element #{i}; expected a (key, value) pair, got {type(item).__name__}")
        pair = tuple(item)
        if len(pair) != 2:
            raise ValueError(f"{op}: element #{i}; expected a (key, value) pair, got {len(pair)} values")
        pairs.append(pair)
    return pairs


class ModuleDict(Module):
    """A dict of modules whose parameters are found; it keeps the order of insertion.

    Example::

        >>> import rushlight
        >>> act = rushlight.nn.ModuleDict({"relu": rushlight.nn.ReLU(), "tanh": rushlight.nn.Tanh()})
        >>> list(act)
        ['relu', 'tanh']
    """

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Module:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def __or__(self, other: ModuleDict) -> ModuleDict:
        new = ModuleDict(self)
        new.update(other)
        return new

    def clear(self) -> None:
        """Removes everything."""
        self._modules.clear()

    def pop(self, key: str) -> Module:
        """Removes a key and returns its module. KeyError when there is none."""
        return self._modules.pop(key)

    def keys(self) -> Any:
        """The keys."""
        return self._modules.keys()

    def items(self) -> Any:
        """The pairs of key and module."""
        return self._modules.items()

    def values(self) -> Any:
        """The modules."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Adds the pairs of a mapping or of an iterable of pairs; existing keys get the new module."""
        for key, module in _key_value_pairs("ModuleDict.update", modules):
            self[key] = module


def _member_repr(value: Any, parameter_name: str) -> str:
    if isinstance(value, Tensor):
        device = "" if value.device.type == "cpu" else f" ({value.device})"
        kind = parameter_name if isinstance(value, Parameter) else "Tensor"
        size = "x".join(str(s) for s in value.size())
        return f"{kind} containing: [{_tensor_kind(value)} of size {size}{device}]"
    return f"Object of type: {type(value).__name__}"


def _tensor_kind(value: Any) -> str:
    return str(value.dtype)


class ParameterList(Module):
    """A list of parameters (and other values) that are found; tensors are turned into parameters.

    Example::

        >>> import rushlight
        >>> p = rushlight.nn.ParameterList([rushlight.ones(2), rushlight.zeros(3)])
        >>> [tuple(x.shape) for x in p]
        [(2,), (3,)]
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self += values

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            out = type(self)()
            for i in range(*index.indices(self._size)):
                out.append(self[i])
            return out
        return getattr(self, str(_position("ParameterList", index, self._size)))

    def __setitem__(self, index: Any, value: Any) -> None:
        name = str(_position("ParameterList", index, self._size))
        if isinstance(value, Tensor) and not isinstance(value, Parameter):
            value = Parameter(value)
        setattr(self, name, value)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter(self[i] for i in range(self._size))

    def __iadd__(self, values: Iterable[Any]) -> Self:
        return self.extend(values)

    def __dir__(self) -> list[str]:
        return [n for n in super().__dir__() if not n.isdigit()]

    def append(self, value: Any) -> Self:
        """Adds a value at the end; a tensor becomes a parameter."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values: Iterable[Any]) -> Self:
        """Adds all values at the end. TypeError when ``values`` cannot be iterated or is a single tensor."""
        if not hasattr(values, "__iter__") or isinstance(values, Tensor):
            raise TypeError(f"ParameterList.extend: expected an iterable of values, got {type(values).__name__}")
        for value in list(values):
            self.append(value)
        return self

    def extra_repr(self) -> str:
        return "\n".join(f"  ({i}): " + _member_repr(v, "Parameter") for i, v in enumerate(self))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterList: called; expected a use of its elements, since it computes nothing")


class ParameterDict(Module):
    """A dict of parameters (and other values) that are found; tensors are turned into parameters.

    Example::

        >>> import rushlight
        >>> p = rushlight.nn.ParameterDict({"scale": rushlight.ones(2)})
        >>> "scale" in p, len(p)
        (True, 1)
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def _key_to_attr(self, key: Any) -> str:
        if not isinstance(key, str):
            raise TypeError(f"ParameterDict: key of the wrong type; expected a str, got {type(key).__name__}")
        return key

    def __getitem__(self, key: str) -> Any:
        if key not in self._keys:
            raise KeyError(key)
        return getattr(self, self._key_to_attr(key))

    def __setitem__(self, key: str, value: Any) -> None:
        attribute = self._key_to_attr(key)
        self._keys[key] = None
        if isinstance(value, Tensor) and not isinstance(value, Parameter):
            value = Parameter(value)
        setattr(self, attribute, value)

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, self._key_to_attr(key))

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self._keys))

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def __or__(self, other: ParameterDict) -> ParameterDict:
        new = self.copy()
        new.update(other)
        return new

    def __ror__(self, other: ParameterDict) -> ParameterDict:
        new = other.copy()
        new.update(self)
        return new

    def __ior__(self, other: ParameterDict) -> Self:
        self.update(other)
        return self

    def copy(self) -> ParameterDict:
        """A new dict with the same values."""
        return ParameterDict(OrderedDict((k, self[k]) for k in self._keys))

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The value of a key, which is set to ``default`` when missing."""
        if key not in self._keys:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Removes everything."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key: str) -> Any:
        """Removes a key and returns its value. KeyError when there is none."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Removes the last pair and returns it."""
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a key, or ``default``."""
        return self[key] if key in self._keys else default

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """A new dict with these keys, all with the value ``default``."""
        return ParameterDict((k, default) for k in keys)

    def keys(self) -> Any:
        """The keys."""
        return self._keys.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """The pairs of key and value."""
        return ((k, self[k]) for k in self._keys)

    def values(self) -> Iterable[Any]:
        """The values."""
        return (self[k] for k in self._keys)

    def update(self, parameters: Any) -> None:
        """Adds the pairs of a mapping (sorted by key when it has no order of its own) or of an iterable of pairs."""
        pairs = _key_value_pairs("ParameterDict.update", parameters)
        if hasattr(parameters, "keys") and not isinstance(parameters, (OrderedDict, ParameterDict)):
            pairs.sort()
        for key, value in pairs:
            self[key] = value

    def extra_repr(self) -> str:
        return "\n".join(f"  ({k}): " + _member_repr(v, "Parameter") for k, v in self.items())

    def __call__(self, input: Any) -> Any:
        raise RuntimeError("ParameterDict: called; expected a use of its elements, since it computes nothing")
