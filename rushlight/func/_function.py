"""autograd.Function under vmap and forward mode."""

from __future__ import annotations

from collections import namedtuple

import rushlight
from rushlight import _C
from rushlight.autograd.function import Function, FunctionCtx, _base_setup_context

from ._rules import LEVELS, Level, entered, unwrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

VmapInfo = namedtuple("VmapInfo", ["batch_size", "randomness"])
VmapInfo.__doc__ = "What the vmap staticmethod of a Function is told: the number of examples, and vmap's randomness."


def apply(cls: Any, args: tuple[Any, ...]) -> Any:
    """``cls.apply(*args)`` where some arguments are wrapped."""
    number = max(found[0] for found in (unwrap(a) for a in args if isinstance(a, _C.Tensor)) if found is not None)
    level = LEVELS.get(number)
    if level is None:
        return cls.apply(*(_value(number, a) for a in args))
    rule = _forward_mode if level.size is None else _batched
    if _C.is_grad_enabled() and any(isinstance(a, _C.Tensor) and a.requires_grad for a in args):
        return _recorded(cls, level, rule, args)
    return rule(cls, level, args)


def _recorded(cls: Any, level: Level, rule: Any, args: tuple[Any, ...]) -> Any:
    """With a node on the tape of this level; what the arguments stand for has its own."""
    if cls.setup_context is _base_setup_context:
        raise RuntimeError(
            f"In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must "
            f"override the setup_context staticmethod; {cls.__name__} does not. For more details, please see "
            "Function's documentation"
        )

    class Recorded(cls):  # type: ignore[misc]
        @staticmethod
        def forward(*values: Any) -> Any:
            with _C.enable_grad():
                own = (_C._new_leaf(v) if _belongs(level.number, v) else v for v in values)
                return rule(cls, level, tuple(own))

    Recorded.__name__ = cls.__name__
    return _C._function_apply(Recorded, _base_setup_context, args)


def _value(number: int, a: Any) -> Any:
    found = unwrap(a) if isinstance(a, _C.Tensor) else None
    return found[1] if found is not None and found[0] == number else a


def _belongs(number: int, a: Any) -> bool:
    found = unwrap(a) if isinstance(a, _C.Tensor) else None
    return found is not None and found[0] == number


def _batched(cls: Any, level: Level, args: tuple[Any, ...]) -> Any:
    name = cls.__name__
    has_rule = cls.vmap is not Function.vmap
    if cls.generate_vmap_rule:
        if has_rule:
            raise RuntimeError(
                f"You tried to vmap over {name}, but it has both generate_vmap_rule=True and an overriden vmap "
                "staticmethod. Please set generate_vmap_rule=False or delete the overriden vmap staticmethod to avoid "
                "ambiguity."
            )
        if cls.setup_context is _base_setup_context:
            raise RuntimeError(
                f"generate_vmap_rule of {name} needs a forward without ctx and a setup_context staticmethod"
            )
        return _generated(cls, level, args)
    if not has_rule:
        raise RuntimeError(
            f"You tried to vmap over {name}, but it does not have vmap support. Please override and implement the vmap "
            "staticmethod or set generate_vmap_rule=True."
        )
    in_dims = tuple(0 if _belongs(level.number, a) else None for a in args)
    values = tuple(_value(level.number, a) for a in args)
    made = cls.vmap(VmapInfo(level.size, level.randomness), in_dims, *values)
    if not isinstance(made, tuple) or len(made) != 2:
        raise RuntimeError(
            f"Expected the vmap staticmethod to have two returns, an output and out_dims with pytree structure "
            f"compatible with the output; {name}.vmap returned {type(made).__name__}"
        )
    outputs, out_dims = made
    if isinstance(outputs, tuple):
        dims = out_dims if isinstance(out_dims, tuple) else (out_dims,) * len(outputs)
        return tuple(_wrapped(level, o, d) for o, d in zip(outputs, dims, strict=True))
    return _wrapped(level, outputs, out_dims)


def _wrapped(level: Level, output: Any, dim: Any) -> Any:
    if dim is None or not isinstance(output, _C.Tensor):
        return output
    return level.batch(output if dim == 0 else output.movedim(dim, 0))


class _Context(FunctionCtx):
    """A ctx that only remembers."""

    def __init__(self) -> None:
        self.to_save = ()
        self.saved_for_forward = ()
        self.dirty_tensors = ()
        self.non_differentiable = ()
        self.materialize_grads = True
        self.needs_input_grad: tuple[bool, ...] = ()
        self.saved_tensors: tuple[Any, ...] = ()


def _generated(cls: Any, level: Level, args: tuple[Any, ...]) -> Any:
    """The rule of a Function whose forward, setup_context and backward are vmapped themselves."""
    flags = tuple(_belongs(level.number, a) for a in args)
    size = level.size
    out_flags: list[bool] = []
    state: dict[str, Any] = {}

    def wrap(inner: Level, values: Any, batched: Any) -> list[Any]:
        return [inner.batch(v) if b and isinstance(v, _C.Tensor) else v for v, b in zip(values, batched, strict=True)]

    def split(inner: Level, values: Any) -> tuple[list[Any], list[bool]]:
        batched = [_belongs(inner.number, v) for v in values]
        return [_value(inner.number, v) for v in values], batched

    class Batched(Function):
        @staticmethod
        def forward(*values: Any) -> Any:
            with entered(Level(size, level.randomness)) as inner:
                made = cls.forward(*wrap(inner, values, flags))
                state["single"] = not isinstance(made, tuple)
                outputs, out_flags[:] = split(inner, (made,) if state["single"] else made)
            return tuple(outputs)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            own = _Context()
            own.needs_input_grad = ctx.needs_input_grad
            with entered(Level(size, level.randomness)) as inner:
                results = wrap(inner, output, out_flags)
                cls.setup_context(
                    own, tuple(wrap(inner, inputs, flags)), results[0] if state["single"] else tuple(results)
                )
                saved, ctx.saved_flags = split(inner, own.to_save)
                marked = [id(t) for t in own.non_differentiable]
                ctx.mark_non_differentiable(*(o for o, r in zip(output, results, strict=True) if id(r) in marked))
            ctx.save_for_backward(*saved)
            ctx.set_materialize_grads(own.materialize_grads)
            ctx.own = own

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            own = ctx.own
            with entered(Level(size, level.randomness)) as inner:
                own.saved_tensors = tuple(wrap(inner, ctx.saved_tensors, ctx.saved_flags))
                made = cls.backward(own, *wrap(inner, grads, out_flags))
                values, batched = split(inner, made if isinstance(made, tuple) else (made,))
            result = []
            for value, has, flag in zip(values, batched, flags, strict=True):
                if isinstance(value, _C.Tensor) and flag and not has:
                    value = value.unsqueeze(0).expand((size, *value.shape))
                elif isinstance(value, _C.Tensor) and has and not flag:
                    value = value.sum(0)
                result.append(value)
            return tuple(result)

    Batched.__name__ = cls.__name__
    outputs = Batched.apply(*(_value(level.number, a) for a in args))
    wrapped = tuple(level.batch(o) if f else o for o, f in zip(outputs, out_flags, strict=True))
    return wrapped[0] if state["single"] else wrapped


def _forward_mode(cls: Any, level: Level, args: tuple[Any, ...]) -> Any:
    if cls.jvp is Function.jvp:
        raise RuntimeError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD. "
            f"({cls.__name__})"
        )
    values = tuple(_value(level.number, a) for a in args)
    outputs = cls.apply(*values)
    context = _Context()
    context.needs_input_grad = tuple(isinstance(v, _C.Tensor) and v.requires_grad for v in values)
    with _C.no_grad():
        if cls.setup_context is _base_setup_context:
            cls.forward(context, *values)
        else:
            cls.setup_context(context, values, outputs)
    context.saved_tensors = tuple(context.saved_for_forward or ())
    tangents = []
    for a, v in zip(args, values, strict=True):
        found = unwrap(a) if isinstance(a, _C.Tensor) else None
        if found is not None and found[0] == level.number:
            tangents.append(found[2])
        elif isinstance(v, _C.Tensor) and context.materialize_grads and (v.is_floating_point() or v.is_complex()):
            tangents.append(rushlight.zeros_like(v))
        else:
            tangents.append(None)
    directions = cls.jvp(context, *tangents)
    if not isinstance(outputs, tuple):
        return outputs if directions is None else level.dual(outputs, directions)
    if not isinstance(directions, tuple):
        directions = (directions,)
    return tuple(
        o if d is None or not isinstance(o, _C.Tensor) else level.dual(o, d)
        for o, d in zip(outputs, directions, strict=True)
    )
