"""Modules called with parameters and buffers that are not their own."""

from __future__ import annotations

import warnings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["functional_call"]


def _places(module: Any) -> dict[str, tuple[Any, str]]:
    """Full name of every parameter and buffer -> the dict that holds it and its key."""
    out = {}
    for prefix, m in module.named_modules(remove_duplicate=False):
        dot = prefix + "." if prefix else ""
        for members in (m._parameters, m._buffers):
            for key, value in members.items():
                if value is not None:
                    out[dot + key] = (members, key)
    return out


def _functional_call(
    module: Any,
    values: dict[str, Any],
    args: Any,
    kwargs: dict[str, Any] | None,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    op = "functional_call"
    places = _places(module)
    unknown = [n for n in values if n not in places]
    missing = [n for n in places if n not in values]
    if strict and (unknown or missing):
        raise RuntimeError(
            f"{op}: expected all names of {type(module).__name__}; missing {missing}, unexpected {unknown}"
        )
    named = dict(values)
    if tie_weights:
        groups: dict[int, list[str]] = {}
        for name, (members, key) in places.items():
            groups.setdefault(id(members[key]), []).append(name)
        for names in groups.values():
            given = [n for n in names if n in values]
            if len({id(values[n]) for n in given}) > 1:
                raise ValueError(
                    f"{op}: {given} are one tensor in the module; expected one value for them, got several"
                )
            if given:
                named.update((n, values[given[0]]) for n in names)
    # an unknown name may be a plain attribute
    swapped: list[tuple[dict[str, Any], str, Any]] = []
    plain: list[tuple[Any, str, Any]] = []
    try:
        for name, value in named.items():
            if name in places:
                members, key = places[name]
                swapped.append((members, key, members[key]))
                members[key] = value
            else:
                path, _, attribute = name.rpartition(".")
                owner = module.get_submodule(path)
                if not hasattr(owner, attribute):
                    raise AttributeError(
                        f"{op}: {type(owner).__name__} has no attribute '{attribute}'; expected the path {name!r}"
                    )
                plain.append((owner, attribute, getattr(owner, attribute)))
                owner.__dict__[attribute] = value
        if not isinstance(args, tuple):
            args = (args,)
        return module(*args, **(kwargs or {}))
    finally:
        # what forward assigned to a swapped buffer is a result for the caller's dict, not for the module
        for members, key, old in reversed(swapped):
            members[key] = old
        for owner, attribute, old in reversed(plain):
            owner.__dict__[attribute] = old


def functional_call(
    module: Any,
    parameters_and_buffers: dict[str, Any],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Calls a module with other parameters and buffers, by name, which are put in place for this one call.

    Deprecated: use ``rushlight.func.functional_call``.
    """
    warnings.warn(
        "nn.utils.stateless.functional_call is deprecated; use rushlight.func.functional_call",
        FutureWarning,
        stacklevel=2,
    )
    return _functional_call(
        module, parameters_and_buffers, () if args is None else args, kwargs, tie_weights=tie_weights, strict=strict
    )
