"""Handles of registered hooks, and the gate that runs a module's backward hooks."""

from __future__ import annotations

import warnings
import weakref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["BackwardHook", "RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]


class RemovableHandle:
    """Removes a hook again; also a context manager that removes it on exit.

    Args:
        hooks_dict: the dict the hook was put into under ``handle.id``; held weakly where it can be.
        extra_dict: further dict(s) that have an entry under the same id.
    """

    next_id = 0
    id: int

    def __init__(self, hooks_dict: Any, *, extra_dict: Any = None) -> None:
        self.hooks_dict_ref = _reference(hooks_dict)
        self.id = RemovableHandle.next_id
        RemovableHandle.next_id += 1
        extra: tuple[Any, ...]
        if extra_dict is None:
            extra = ()
        elif isinstance(extra_dict, list):
            extra = tuple(extra_dict)
        else:
            extra = (extra_dict,)
        self.extra_dict_ref = tuple(_reference(d) for d in extra)

    def remove(self) -> None:
        """Removes the hook; does nothing when it is gone already."""
        for reference in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = reference()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __getstate__(self) -> Any:
        if not self.extra_dict_ref:
            return (self.hooks_dict_ref(), self.id)
        return (self.hooks_dict_ref(), self.id, tuple(r() for r in self.extra_dict_ref))

    def __setstate__(self, state: Any) -> None:
        self.hooks_dict_ref = _reference({} if state[0] is None else state[0])
        self.id = state[1]
        RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)
        self.extra_dict_ref = tuple(_reference({} if d is None else d) for d in (state[2] if len(state) > 2 else ()))

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *args: Any) -> None:
        self.remove()


class HookDict(dict):  # type: ignore[type-arg]
    """A dict that can be referred to weakly, so that a handle does not keep a module's hooks alive."""

    __slots__ = ("__weakref__",)

    def prepend(self, key: int, value: Any) -> None:
        """Puts an entry before all others."""
        rest = list(self.items())
        self.clear()
        self[key] = value
        self.update(rest)


def _reference(hooks: Any) -> Any:
    try:
        return weakref.ref(hooks)
    except TypeError:
        # a plain dict takes no weak reference
        return lambda: hooks


def unserializable_hook(f: Any) -> Any:
    """Decorator: marks a hook that cannot be pickled with its tensor."""
    f.__torch_unserializable__ = True
    return f


def warn_if_has_hooks(tensor: Any) -> None:
    """Warns when a tensor that is about to be serialized has hooks, which will be lost."""
    hooks = getattr(tensor, "_backward_hooks", None)
    if hooks:
        for hook in hooks.values():
            if not hasattr(hook, "__torch_unserializable__"):
                warnings.warn(
                    f"backward hook {hook!r} on a tensor will not be serialized; decorate it with "
                    "rushlight.utils.hooks.unserializable_hook to silence this warning",
                    stacklevel=2,
                )


class BackwardHook:
    """Puts two identity nodes around one call of a module, which see all its gradients at once.

    The output gate runs ``pre_hooks(module, grad_output)`` and keeps grad_output; the input gate then runs
    ``hooks(module, grad_input, grad_output)``. When no input requires grad, the output gate runs both. Because the
    gates are nodes of the tape, hooks see the gradient of the value at the border of the call, whatever happens to it
    later.
    """

    def __init__(self, module: Any, user_hooks: list[Any], user_pre_hooks: list[Any]) -> None:
        self.module = module
        self.user_hooks = user_hooks
        self.user_pre_hooks = user_pre_hooks
        self.grad_output: Any = None
        self.input_positions: list[int] | None = None
        self.input_count = 0
        self.output_positions: list[int] = []
        self.output_count = 0

    def setup_input_hook(self, args: Any) -> Any:
        self.input_count = len(args)
        result, positions = _gate(args, self._on_grad_input, getattr(self.module, "inplace", False))
        self.input_positions = positions or None
        return tuple(result)

    def setup_output_hook(self, result: Any) -> Any:
        single = not isinstance(result, tuple)
        values = (result,) if single else result
        self.output_count = len(values)
        if single and _takes_hook(result):
            result._module_hooked = True
            self.output_positions = [0]
            result.register_hook(lambda grad: self._on_grad_output((grad,))[0])
            return result
        gated, self.output_positions = _gate(values, self._on_grad_output, False)
        if not self.output_positions:
            return result
        if single:
            return gated[0]
        return type(result)(*gated) if hasattr(result, "_fields") else tuple(gated)

    def _on_grad_output(self, grads: Any) -> Any:
        grad_output = _spread(grads, self.output_positions, self.output_count)
        for hook in self.user_pre_hooks:
            replaced = hook(self.module, grad_output)
            if replaced is not None:
                grad_output = _checked("grad_output", replaced, self.output_count)
        self.grad_output = grad_output
        if self.input_positions is None:
            grad_input = (None,) * self.input_count
            for hook in self.user_hooks:
                if hook(self.module, grad_input, grad_output) is not None:
                    raise RuntimeError(
                        f"full backward hook: returned a gradient although no input of "
                        f"{type(self.module).__name__} requires one; expected None"
                    )
            self.grad_output = None
        return tuple(grad_output[i] for i in self.output_positions)

    def _on_grad_input(self, grads: Any) -> Any:
        positions = self.input_positions or []
        if self.grad_output is None:
            raise RuntimeError(
                f"full backward hook: gradient of the input of {type(self.module).__name__} arrived before that of its "
                "output; expected backward to pass through the output of the module"
            )
        grad_input = _spread(grads, positions, self.input_count)
        for hook in self.user_hooks:
            replaced = hook(self.module, grad_input, self.grad_output)
            if replaced is not None:
                grad_input = _checked("grad_input", replaced, self.input_count)
        self.grad_output = None
        return tuple(grad_input[i] for i in positions)


def _spread(values: Any, positions: list[int], count: int) -> tuple[Any, ...]:
    full: list[Any] = [None] * count
    for i, v in zip(positions, values, strict=False):
        full[i] = v
    return tuple(full)


def _checked(what: str, replaced: Any, count: int) -> tuple[Any, ...]:
    if not isinstance(replaced, tuple):
        replaced = (replaced,)
    if len(replaced) != count:
        raise RuntimeError(
            f"full backward hook: returned the wrong number of gradients for {what}; expected {count}, got "
            f"{len(replaced)}"
        )
    return replaced


def _takes_hook(result: Any) -> bool:
    """Whether a hook of the tensor itself can stand for a gate: not for a leaf, which outlives the call, nor for the
    result of an inner module with hooks, which must be asked after the outer one."""
    from rushlight import Tensor

    if not isinstance(result, Tensor) or result.grad_fn is None:
        return False
    return not getattr(result, "_module_hooked", False)


def _gate(values: Any, on_backward: Any, copy: bool) -> tuple[list[Any], list[int]]:
    """The values with their grad-requiring tensors passed through one gate node, and where those stand."""
    from rushlight import Tensor, is_grad_enabled

    out = list(values)
    if not is_grad_enabled():  # type: ignore[misc]
        return out, []
    positions = [i for i, v in enumerate(out) if isinstance(v, Tensor)]
    if not any(out[i].requires_grad for i in positions):
        return out, []
    results = _gate_function().apply(on_backward, copy, *[out[i] for i in positions])
    for i, r in zip(positions, results, strict=False):
        out[i] = r
    return out, positions


_gate_class: Any = None


def _gate_function() -> Any:
    # made at first use, so that importing nn does not import autograd
    global _gate_class
    if _gate_class is None:
        from rushlight.autograd import Function

        class ModuleGate(Function):
            """Identity whose backward hands its gradients to a callback."""

            @staticmethod
            def forward(ctx: Any, on_backward: Any, copy: bool, *tensors: Any) -> Any:
                ctx.on_backward = on_backward
                ctx.set_materialize_grads(False)
                ctx.mark_non_differentiable(*[t for t in tensors if not t.requires_grad])
                return tuple(t.clone() if copy else t.view_as(t) for t in tensors)

            @staticmethod
            def backward(ctx: Any, *grads: Any) -> Any:
                return (None, None, *ctx.on_backward(grads))

        _gate_class = ModuleGate
    return _gate_class
