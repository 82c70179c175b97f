"""Modules as functions of their parameters; linear approximations; functions without in-place writes."""

from __future__ import annotations

import functools

import rushlight
from rushlight import _C
from rushlight.utils._pytree import tree_flatten, tree_map, tree_unflatten

from ._grad import jvp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

__all__ = ["functional_call", "functionalize", "linearize", "stack_module_state"]


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: Any,
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Calls a module with other parameters and buffers in place of its own, which stay as they are.

    Args:
        parameter_and_buffer_dicts: a dict from names to tensors, or a sequence of such dicts.
        args: a tuple of arguments, or a single one.
        tie_weights: whether a replaced tensor also replaces those tied to it.
        strict: whether every parameter and buffer must be given, and no other name.

    Raises:
        ValueError: one name stands in two dicts.
        KeyError, RuntimeError: as `rushlight.nn.utils.stateless.functional_call`.
    """
    if isinstance(parameter_and_buffer_dicts, dict):
        replaced = parameter_and_buffer_dicts
    elif isinstance(parameter_and_buffer_dicts, (tuple, list)):
        replaced = {}
        for d in parameter_and_buffer_dicts:
            if not isinstance(d, dict):
                raise ValueError(
                    f"Expected all elements of parameter_and_buffer_dicts to be dictionaries, got {type(d).__name__}"
                )
            repeated = sorted(replaced.keys() & d.keys())
            if repeated:
                raise ValueError(
                    f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous"
                )
            replaced.update(d)
    else:
        raise ValueError(
            f"Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got "
            f"{type(parameter_and_buffer_dicts)}"
        )
    from rushlight.nn.utils import stateless

    return stateless._functional_call(
        module, replaced, () if args is None else args, kwargs, tie_weights=tie_weights, strict=strict
    )


def stack_module_state(models: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters and the buffers of modules of one class, each stacked along a new first dimension, for `vmap`
    over an ensemble.

    Example::

        >>> import rushlight
        >>> models = [rushlight.nn.Linear(2, 3) for _ in range(5)]
        >>> params, buffers = rushlight.func.stack_module_state(models)
        >>> params["weight"].shape
        rushlight.Size([5, 3, 2])
    """
    if len(models) == 0:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if not (all(m.training for m in models) or all(not m.training for m in models)):
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    first = type(models[0])
    if not all(type(m) is first for m in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")

    def stacked(named: list[dict[str, Any]]) -> dict[str, Any]:
        result = {}
        for name, one in named[0].items():
            tensors = [d[name] for d in named]
            needs = {t.requires_grad for t in tensors}
            if len(needs) > 1:
                raise RuntimeError(
                    f"Expected {name} from each model to have the same .requires_grad; got {sorted(needs)}"
                )
            joined = rushlight.stack([t.detach() for t in tensors])
            result[name] = joined.requires_grad_() if one.requires_grad else joined
        return result

    return stacked([dict(m.named_parameters()) for m in models]), stacked([dict(m.named_buffers()) for m in models])


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """``func(*primals)`` and the linear function of tangents that is its derivative there.

    Example::

        >>> import rushlight
        >>> y, derivative = rushlight.func.linearize(rushlight.sin, rushlight.zeros(2))
        >>> derivative(rushlight.ones(2))
        tensor([1., 1.])
    """
    output = func(*primals)
    leaves, spec = tree_flatten(primals)

    def jvp_fn(*tangents: Any) -> Any:
        given, other = tree_flatten(tangents)
        if other != spec:
            raise RuntimeError(f"linearize: expected tangents of the primals' structure {spec}, got {other}")
        for p, t in zip(leaves, given, strict=True):
            if p.shape != t.shape or p.dtype != t.dtype:
                raise RuntimeError(
                    f"linearize: expected a tangent of shape {tuple(p.shape)} and dtype {p.dtype}, got "
                    f"{tuple(t.shape)} and {t.dtype}"
                )
        return jvp(func, primals, tangents)[1]

    return output, jvp_fn


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """A function with the results of ``func`` that writes to none of its arguments until it is done.

    ``func`` runs on copies, and what it wrote is copied into the arguments at the end. ``remove`` is ``"mutations"`` or
    ``"mutations_and_views"``; imperative execution has no program to take views out of, so both do the same.
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            "functionalize(f, remove='mutations'): received invalid argument for kwarg. "
            f"Expected 'mutations' or 'mutations_and_views', got {remove!r}"
        )

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        leaves, spec = tree_flatten((args, kwargs))
        copies = [t.clone() if isinstance(t, _C.Tensor) else t for t in leaves]
        before = [t._version if isinstance(t, _C.Tensor) else 0 for t in copies]
        new_args, new_kwargs = tree_unflatten(copies, spec)
        result = func(*new_args, **new_kwargs)
        originals = {}
        for old, new, version in zip(leaves, copies, before, strict=True):
            if isinstance(old, _C.Tensor):
                originals[id(new)] = old
                if new._version != version:
                    old.copy_(new)
        return tree_map(lambda t: originals.get(id(t), t), result)

    return wrapped
