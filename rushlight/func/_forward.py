"""Forward mode: how tangents go through operations.

A view takes the same view of the tangent. A real elementwise operation has a diagonal Jacobian, so its derivative
formula, made for gradients, serves for tangents. Everything else: the gradient g(v) of the operation is linear in v, so
the gradient of <g(v), t> with respect to v is the tangent of the result (J. Townsend, "A new trick for calculating
Jacobian vector products", 2017).
"""

from __future__ import annotations

import rushlight
from rushlight import _C

from ._rules import LEVELS, Call, _replace, _tensors, unwrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _tangent(call: Call, t: Any) -> Any:
    """The tangent of the tensor at this level, or None."""
    found = unwrap(t)
    return found[2] if found is not None and found[0] == call.level.number else None


def _memory(t: Any) -> int:
    """The address of the memory behind the tensor, through all levels."""
    found = unwrap(t)
    while found is not None:
        t = found[1]
        found = unwrap(t)
    address: int = t.untyped_storage().data_ptr()
    return address


def _own(call: Call, arguments: tuple[Any, ...], direction: Any) -> Any:
    """The tangent of a result in memory of its own: it may be written in place."""
    given = {_memory(t) for t in (_tangent(call, a) for a in _tensors(arguments)) if t is not None}
    return direction.clone() if _memory(direction) in given or not direction.is_contiguous() else direction


def differentiate(call: Call, arguments: tuple[Any, ...]) -> Any:
    """The results with their tangents."""
    operation = call.operation
    values = _replace(arguments, call.value)
    if call.inplace:
        return _write(call, arguments, values)
    if operation.view:
        return _paired(call, call.again(values), _view_of_tangent(call, arguments))
    if not operation.derivative and not operation.options.get("composite"):
        return call.again(values)
    formula = _elementwise(call, arguments, values)
    if formula is not None:
        return call.level.dual(formula[0], _own(call, arguments, formula[1]))
    return _twice(call, arguments, values)


def _view_of_tangent(call: Call, arguments: tuple[Any, ...]) -> Any:
    """The same view of the tangent, which is laid out like the value first where the view depends on strides."""

    def laid_out(t: Any) -> Any:
        value, tangent = call.value(t), _tangent(call, t)
        if tangent.stride() == value.stride():
            return tangent
        return rushlight.empty_strided(value.size(), value.stride(), dtype=tangent.dtype).copy_(tangent)

    if call.operation.name != "as_strided":
        try:
            return call.again(_replace(arguments, lambda t: _tangent(call, t)))
        except RuntimeError:  # its strides allow no such view
            pass
    return call.again(_replace(arguments, laid_out))


def _paired(call: Call, values: Any, tangents: Any) -> Any:
    if isinstance(values, _C.Tensor):
        return call.level.dual(values, tangents)
    return tuple(call.level.dual(v, t) for v, t in zip(values, tangents, strict=True))


def _elementwise(call: Call, arguments: tuple[Any, ...], values: tuple[Any, ...]) -> tuple[Any, Any] | None:
    """Value and tangent by the record's own formulas, where these serve."""
    operation = call.operation
    if operation.kind != "elementwise" or any(t.is_complex() for t in _tensors(values)):
        return None
    result = call.again(values)
    if not result.is_floating_point():
        return None
    named = dict(zip((a.name for a in operation.arguments), values, strict=True))
    total: Any = None
    for argument, given in zip(operation.arguments, arguments, strict=True):
        tangent = _tangent(call, given) if isinstance(given, _C.Tensor) else None
        if tangent is None:
            continue
        formula = operation.derivative.get(argument.name)
        if formula is None:
            continue
        part = _apply_formula(formula, named, tangent.to(result.dtype), result)
        if part is None:
            return None
        part = part.to(result.dtype)
        total = part if total is None else total + part
    if total is None:
        return None
    return result, total if total.shape == result.shape else total.expand(result.shape)


def _apply_formula(formula: Any, named: dict[str, Any], tangent: Any, result: Any) -> Any:
    import inspect

    given = {}
    for name in inspect.signature(formula).parameters:
        if name == "grad":
            given[name] = tangent
        elif name == "result":
            given[name] = result
        elif name in named:
            given[name] = named[name]
        elif name.endswith("_shape") and name[:-6] in named:
            given[name] = tuple(getattr(named[name[:-6]], "shape", ()))
        elif name.endswith("_dtype") and isinstance(named.get(name[:-6]), _C.Tensor):
            given[name] = named[name[:-6]].dtype
        else:
            return None
    part = formula(**given)
    return part if isinstance(part, _C.Tensor) else None


def _twice(call: Call, arguments: tuple[Any, ...], values: tuple[Any, ...]) -> Any:
    """Value and tangent by differentiating the gradient."""
    inputs: list[Any] = []
    tangents: list[Any] = []
    keep = _C.is_grad_enabled()

    def start(t: Any) -> Any:
        value, tangent = call.value(t), _tangent(call, t)
        if tangent is None or not (value.is_floating_point() or value.is_complex()):
            return value
        with _C.enable_grad():
            leaf = value.view_as(value) if value.requires_grad else _C._new_leaf(value).requires_grad_()
        inputs.append(leaf)
        tangents.append(tangent)
        return leaf

    on_tape = _replace(arguments, start)
    plain = call.again(values)
    if not inputs:
        return plain
    with _C.enable_grad():
        made = call.again(on_tape)
        results = [made] if isinstance(made, _C.Tensor) else list(made)
        live = [i for i, r in enumerate(results) if isinstance(r, _C.Tensor) and r.requires_grad and r.numel()]
        directions: dict[int, Any] = {}
        if live:
            seeds = [rushlight.zeros_like(results[i]).requires_grad_() for i in live]
            gradients = rushlight.autograd.grad(
                [results[i] for i in live], inputs, seeds, create_graph=True, allow_unused=True
            )
            pairs = [(g, t) for g, t in zip(gradients, tangents, strict=True) if g is not None and g.requires_grad]
            if pairs:
                found = rushlight.autograd.grad(
                    [g for g, _ in pairs],
                    seeds,
                    [t.to(g.dtype).expand(g.shape) for g, t in pairs],
                    create_graph=keep,
                    allow_unused=True,
                )
                directions = {i: d for i, d in zip(live, found, strict=True) if d is not None}
    own = tuple(t for t in inputs if t.is_leaf)

    def finish(i: int, value: Any) -> Any:
        if not isinstance(value, _C.Tensor) or i not in live:
            return value
        direction = directions.get(i)
        if direction is None:
            return call.level.dual(value, rushlight.zeros_like(value))
        if not keep or (direction.requires_grad and not _C._leads_beyond((direction,), own)):
            direction = _C._new_leaf(direction)
        return call.level.dual(value, _own(call, arguments, direction))

    if isinstance(plain, _C.Tensor):
        return finish(0, plain)
    return tuple(finish(i, v) for i, v in enumerate(plain))


def _write(call: Call, arguments: tuple[Any, ...], values: tuple[Any, ...]) -> None:
    """An in-place operation: the new tangent is found before the value is overwritten."""
    target = arguments[0]
    operation = call.operation
    tangent = _tangent(call, target)
    if operation.name.endswith("_"):  # copy_, index_put_, fill_ ...: linear in what is written
        new = _written(call, arguments, values)
    else:
        made = Call(operation, call.index, call.level, False)
        # Of copies where there is a tape: what it saves must outlive the writes below.
        if _C.is_grad_enabled():
            old = values[0].clone()
            arguments = (old if tangent is None else call.level.dual(old, tangent.clone()), *arguments[1:])
        result = differentiate(made, arguments)
        new = _tangent(call, result)
    if new is not None and tangent is None:
        # Before the write, which goes to what the tensor (and its base) stands for from now on.
        _begin(call, target, new)
        values = (call.value(target), *values[1:])
    call.again(values)
    if tangent is not None:
        tangent.zero_() if new is None else tangent.copy_(new)


def _written(call: Call, arguments: tuple[Any, ...], values: tuple[Any, ...]) -> Any:
    """The tangent after an operation that exists in place only: it does to the tangent what it does to the value."""
    target = arguments[0]
    tangent = _tangent(call, target)
    new = rushlight.zeros_like(values[0]) if tangent is None else tangent.clone()
    if call.operation.random:
        return new.zero_()

    def direction(t: Any) -> Any:
        found = _tangent(call, t)
        if found is not None:
            return found
        value = call.value(t)
        return rushlight.zeros_like(value) if value.is_floating_point() or value.is_complex() else value

    directions = _replace(arguments[1:], direction)
    if tangent is None:
        new = _with_examples(new, _tensors(directions))
    call.again((new, *directions))
    return new


def _with_examples(t: Any, others: Any) -> Any:
    """The tensor with a value for each example wherever one of the others has: so they can be written into it."""
    for other in others:
        if unwrap(other) is not None:
            t = t + rushlight.zeros_like(other).sum().to(t.dtype)
    return t


def _begin(call: Call, target: Any, tangent: Any) -> None:
    """A tensor that had no tangent gets one; so does the tensor that it is a view of."""
    base = target._base
    if base is None:
        _C._set_dual(target, call.level.number, tangent)
        return
    if _tangent(call, base) is None:
        whole = rushlight.empty_strided(base.size(), base.stride(), dtype=base.dtype).zero_()
        example = tangent if target.is_complex() == base.is_complex() else tangent.sum().to(base.dtype)
        _C._set_dual(base, call.level.number, _with_examples(whole, (example,)))
    _, _, part, _ = unwrap(target)  # which follows its base
    part.copy_(tangent)


def follow(target: Any) -> None:
    """A view made before its base had a tangent stands from now on for the same views of the base's value and tangent.

    So it has its part of the tangent, and further writes are seen by both.
    """
    level, value, whole, _ = unwrap(target._base)
    if level not in LEVELS:  # over: the base counts as its value
        _C._set_base(target, value)
        return
    _C._set_dual(target, level, _part(whole, target, value), _part(value, target, value))


def _part(t: Any, target: Any, base: Any) -> Any:
    """The view of t, laid out like the base, that the target is of the base."""
    size, stride = target.size(), target.stride()
    ahead = target.storage_offset() * target.element_size() - base.storage_offset() * base.element_size()
    if target.is_complex() == base.is_complex():
        t = t.as_strided(size, stride, t.storage_offset() + ahead // t.element_size())
        t = t.conj() if target.is_conj() != base.is_conj() else t
        return t._neg_view() if target.is_neg() != base.is_neg() else t
    if base.is_complex():
        if base.is_conj():
            raise RuntimeError("forward mode: a real view of a conjugated tensor that had no tangent can't follow it")
        t = rushlight.view_as_real(t)
        return t.as_strided(size, stride, t.storage_offset() + ahead // t.element_size())
    pairs = t.as_strided((*size, 2), (*(2 * s for s in stride), 1), t.storage_offset() + ahead // t.element_size())
    return rushlight.view_as_complex(pairs)
