"""Names of operations as PyTorch's dispatcher has them: ``rushlight.ops.aten.mm.default``.

Selective checkpointing (`rushlight.utils.checkpoint.create_selective_checkpoint_contexts`) tells what runs by these
names. They are read from the records, so every operation has one. An overload that PyTorch makes for
another type of argument only (``add.Tensor``, ``add.Scalar``, ``sum.dim_IntList``) is the record's that takes it.
"""

from __future__ import annotations

import functools
from typing import Any

from . import _lookup
from ._record import Operation

__all__ = ["OpOverload", "OpOverloadPacket"]


class OpOverload:
    """One overload of an operation; there is one object for each. Calling it runs the operation."""

    def __init__(self, packet: OpOverloadPacket, overload: str) -> None:
        self.overloadpacket = packet
        self.namespace = "aten"
        self._overloadname = overload
        self.__name__ = f"{packet.__name__}.{overload}"

    def name(self) -> str:
        """``aten::mm``, with the overload after a dot where there are several."""
        overload = "" if self._overloadname == "default" else f".{self._overloadname}"
        return f"aten::{self.overloadpacket.__name__}{overload}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.overloadpacket(*args, **kwargs)

    def __str__(self) -> str:
        return f"aten.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='aten.{self.overloadpacket.__name__}', overload='{self._overloadname}')>"


class OpOverloadPacket:
    """All overloads of a name; each is an attribute. Calling it runs the one that takes the arguments."""

    def __init__(self, name: str) -> None:
        self.__name__ = name
        self._records = _named(name)
        if not self._records:
            raise AttributeError(f"rushlight.ops.aten has no operation '{name}'")

    def overloads(self) -> list[str]:
        """The names of the overloads."""
        return [record.overload or "default" for record in self._records]

    def __getattr__(self, name: str) -> OpOverload:
        if name.startswith("__"):
            raise AttributeError(name)
        known = {record.overload or "default": record for record in self._records}
        found = name if name in known else next((k for k in known if _is_by_type(name, k, known[k])), None)
        if found is None:
            raise AttributeError(f"{self} has no overload '{name}'; expected one of {self.overloads()}")
        if found != name:
            return getattr(self, found)
        overload = OpOverload(self, name)
        setattr(self, name, overload)
        return overload

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from rushlight import _C

        return _C.private_operation(self._records[0].name)(*args, **kwargs)

    def __str__(self) -> str:
        return f"aten.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='aten.{self.__name__}')>"


def _is_by_type(name: str, known: str, record: Operation) -> bool:
    """Whether this is PyTorch's name for an overload of ours that takes several types."""
    if known != "default":
        return name.startswith(f"{known}_")
    kinds = {"Tensor|Scalar": ("Tensor", "Scalar"), "Tensor": ("Tensor",), "Scalar": ("Scalar",)}
    return any(
        name.rpartition("_")[2] in kinds.get(argument.type, ())
        and all(part in ("Tensor", "Scalar") for part in name.split("_"))
        for argument in record.arguments
    )


@functools.cache
def _names() -> dict[str, list[Operation]]:
    """The records that each name stands for."""
    names: dict[str, list[Operation]] = {}
    for record in _lookup.all_records().values():
        for name in {record.name, record.aten if isinstance(record.aten, str) and record.aten else record.name}:
            names.setdefault(name, []).append(record)
        if record.inplace:
            names.setdefault(f"{record.name}_", []).append(record)
    return names


def _named(name: str) -> list[Operation]:
    return _names().get(name, [])


@functools.cache
def _packet(name: str) -> OpOverloadPacket:
    return OpOverloadPacket(name)


def __getattr__(name: str) -> OpOverloadPacket:
    if name.startswith("__"):
        raise AttributeError(name)
    return _packet(name)


def of_call(record: Operation, values: tuple[Any, ...]) -> tuple[OpOverload, list[Any], dict[str, Any]]:
    """What PyTorch's dispatcher would call this, and its positional and keyword arguments."""
    if callable(record.aten):
        name, shown = record.aten(*values)
        return _packet(name).default, list(shown), {}
    op = getattr(_packet(record.aten or record.name), record.overload or "default")
    pairs = list(zip(record.arguments, values, strict=True))
    return op, [v for a, v in pairs if not a.keyword_only], {a.name: v for a, v in pairs if a.keyword_only}
