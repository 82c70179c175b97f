"""Functions with a backward of their own."""

from __future__ import annotations

import functools

from rushlight import _C
from rushlight._C import _FunctionBase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["BackwardCFunction", "Function", "FunctionCtx", "FunctionMeta", "InplaceFunction", "once_differentiable"]


class FunctionCtx:
    """What `forward` and `backward` of a `Function` share."""

    to_save: Any
    saved_for_forward: Any
    dirty_tensors: Any
    non_differentiable: Any
    materialize_grads: bool

    def save_for_backward(self, *tensors: Any) -> None:
        """Keeps tensors (or None) for backward, where ``ctx.saved_tensors`` has them.

        Only inputs and outputs of forward should be saved here, once, from forward or setup_context. In-place
        changes of a saved tensor are found out in backward.
        """
        self.to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Keeps tensors for jvp."""
        for tensor in tensors:
            if tensor is not None and not isinstance(tensor, _C.Tensor):
                raise TypeError(f"save_for_forward: expected tensors or None, got {type(tensor).__name__}")
        self.saved_for_forward = tensors

    def mark_dirty(self, *args: Any) -> None:
        """Says that forward changed these inputs in place. They must be returned as outputs."""
        self.dirty_tensors = args

    def mark_non_differentiable(self, *args: Any) -> None:
        """Says that these outputs have no gradient."""
        self.non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """Whether backward gets zeros (the default) or None for outputs that no gradient came for."""
        self.materialize_grads = value


class BackwardCFunction(_FunctionBase, FunctionCtx):  # type: ignore[misc]
    """The node class behind a `Function`; its instances are the ``ctx``."""

    _forward_cls: Any

    def apply(self, *args: Any) -> Any:
        cls = self._forward_cls
        backward_fn, vjp_fn = cls.backward, cls.vjp
        if backward_fn is not Function.backward and vjp_fn is not Function.vjp:
            raise RuntimeError(
                f"Implementing both 'backward' and 'vjp' for a custom Function is not allowed ({cls.__name__}). "
                "You should only implement one of them."
            )
        return (vjp_fn if vjp_fn is not Function.vjp else backward_fn)(self, *args)

    def apply_jvp(self, *args: Any) -> Any:
        return self._forward_cls.jvp(self, *args)


class FunctionMeta(type):
    """Gives each `Function` class its node class."""

    def __init__(cls, name: str, bases: tuple[type, ...], attributes: dict[str, Any]) -> None:
        cls._backward_cls = type(name + "Backward", (BackwardCFunction,), {"_forward_cls": cls})
        super().__init__(name, bases, attributes)


class Function(metaclass=FunctionMeta):
    """Base of operations with a hand-written derivative.

    A subclass has static methods ``forward(ctx, *args)`` (or ``forward(*args)`` with ``setup_context(ctx, inputs,
    output)``) and ``backward(ctx, *grad_outputs)``, which returns one gradient for each argument of forward, None
    where there is none. It is used through ``apply``.

    Example::

        >>> class Exp(rushlight.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         y = x.exp()
        ...         ctx.save_for_backward(y)
        ...         return y
        ...     @staticmethod
        ...     def backward(ctx, grad):
        ...         (y,) = ctx.saved_tensors
        ...         return grad * y
        >>> x = rushlight.zeros(2, requires_grad=True)
        >>> Exp.apply(x).sum().backward()
        >>> x.grad
        tensor([1., 1.])
    """

    _backward_cls: Any
    generate_vmap_rule = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError(
            f"{type(self).__name__}: a Function is not instantiated. Its methods are static: call "
            f"{type(self).__name__}.apply(...)"
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd "
            "function "
            "with static forward method: call its apply()."
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Computes the outputs. Runs without recording."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Fills the context after a forward that does not take one."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Computes the gradients of the inputs from those of the outputs."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """Computes the tangents of the outputs from those of the inputs."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        """Computes the outputs of batched inputs."""
        raise NotImplementedError("To use autograd.Function with vmap, you must override the vmap staticmethod.")

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Runs forward and records it."""
        if kwargs:
            args = _bind_keywords(cls, args, kwargs)
        for a in args:
            if isinstance(a, _C.Tensor) and _C._unwrap(a) is not None:
                from rushlight.func import _function

                return _function.apply(cls, args)
        return _C._function_apply(cls, _base_setup_context, args)


_base_setup_context = Function.setup_context


def _bind_keywords(cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Keyword arguments and defaults of a forward without ctx, put into positional order."""
    import inspect

    if cls.setup_context is _base_setup_context:
        raise TypeError(f"{cls.__name__}.apply() takes no keyword arguments, got {', '.join(map(repr, kwargs))}")
    bound = inspect.signature(cls.forward).bind(*args, **kwargs)
    bound.apply_defaults()
    return bound.args


class InplaceFunction(Function):
    """A Function with a flag for in-place use."""

    def __init__(self, inplace: bool = False) -> None:
        self.inplace = inplace


def once_differentiable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a backward that cannot itself be differentiated: trying to raises an error."""

    @functools.wraps(fn)
    def wrapper(ctx: Any, *args: Any) -> Any:
        with _C.no_grad():
            outputs = fn(ctx, *args)
        if not _C.is_grad_enabled():
            return outputs
        # The outputs depend on what requires grad only through `args` and the saved tensors; a node that raises
        # stands for it.
        requires_grad = any(isinstance(a, _C.Tensor) and a.requires_grad for a in args)
        if not requires_grad:
            return outputs
        as_tuple = outputs if isinstance(outputs, tuple) else (outputs,)
        message = "trying to differentiate twice a function that was marked with @once_differentiable"
        guarded = _C._delayed_error(message, tuple(as_tuple))
        return guarded if isinstance(outputs, tuple) else guarded[0]

    return wrapper
