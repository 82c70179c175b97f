"""Tensors that a Module finds by themselves: parameters, buffers and their not yet shaped forms."""

from __future__ import annotations

from collections import OrderedDict

import rushlight
from rushlight import _C, Tensor
from rushlight.overrides import _disabled_torch_function_impl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "Buffer",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "UninitializedTensorMixin",
    "is_lazy",
]


class _ParameterType(type(Tensor)):  # type: ignore[misc]
    # A tensor of a user's own subclass stays what it is when wrapped; the mark makes it count as a Parameter.
    def __instancecheck__(cls, instance: Any) -> bool:
        if type.__instancecheck__(cls, instance):
            return True
        return cls is Parameter and isinstance(instance, Tensor) and getattr(instance, "_is_param", False)


class Parameter(Tensor, metaclass=_ParameterType):
    """A tensor that becomes a parameter of the Module it is assigned to.

    Args:
        data: the values, of any shape; shares memory with the parameter. Default: an empty tensor.
        requires_grad: whether gradients are recorded. Only floating point and complex data can require them.

    Example::

        >>> import rushlight
        >>> w = rushlight.nn.Parameter(rushlight.zeros(2, 3))
        >>> w.requires_grad, tuple(w.shape)
        (True, (2, 3))
    """

    __torch_function__ = staticmethod(_disabled_torch_function_impl)

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Any:
        if data is None:
            data = rushlight.empty(0)
        kind = type(data)
        if kind is Tensor or kind is cls or kind is Parameter:
            return Tensor._make_subclass(cls, data, requires_grad)
        if not isinstance(data, Tensor):
            raise TypeError(f"Parameter: data of the wrong type; expected a Tensor, got {kind.__name__}")
        t = data.detach().requires_grad_(requires_grad)
        if type(t) is not kind:
            raise RuntimeError(
                f"Parameter: detach() of {kind.__name__} changed the type; expected {kind.__name__}, "
                f"got {type(t).__name__}; define __torch_function__ so that detach() keeps the subclass"
            )
        t._is_param = True  # type: ignore[attr-defined]
        return t

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) in memo:
            return memo[id(self)]
        copy = type(self)(self.data.clone(), self.requires_grad)
        memo[id(self)] = copy
        return copy

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        from rushlight._printing import tensor_text

        return "Parameter containing:\n" + tensor_text(self)

    def __reduce_ex__(self, protocol: Any) -> Any:
        state = {k: v for k, v in self.__dict__.items() if k != "_is_param"}
        if state:
            return _rebuild_parameter_with_state, (self.data, self.requires_grad, OrderedDict(), state)
        # hooks do not survive pickling; the empty dict is their place in the format
        return _rebuild_parameter, (self.data, self.requires_grad, OrderedDict())


# operations need not ask this class for an override
_C._set_parameter_type(Parameter)


def _rebuild_parameter(data: Tensor, requires_grad: bool, backward_hooks: Any) -> Any:
    return Parameter(data, requires_grad)


def _rebuild_parameter_with_state(data: Tensor, requires_grad: bool, backward_hooks: Any, state: dict[str, Any]) -> Any:
    p = Parameter(data, requires_grad)
    p.__dict__.update(state)
    return p


class _BufferType(type(Tensor)):  # type: ignore[misc]
    def __instancecheck__(cls, instance: Any) -> bool:
        if type.__instancecheck__(cls, instance):
            return True
        return cls is Buffer and isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False)


class Buffer(Tensor, metaclass=_BufferType):
    """A tensor that becomes a buffer (state without gradient) of the Module it is assigned to.

    Unlike ``register_buffer`` this works by plain assignment. ``persistent=False`` keeps it out of ``state_dict``.
    The result is an ordinary Tensor (or the subclass given) that carries a mark.

    Example::

        >>> import rushlight
        >>> m = rushlight.nn.Module()
        >>> m.seen = rushlight.nn.Buffer(rushlight.zeros(3))
        >>> [name for name, _ in m.named_buffers()]
        ['seen']
    """

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        if data is None:
            data = rushlight.empty(0)
        t = data.detach().requires_grad_(data.requires_grad)
        t.persistent = persistent
        t._is_buffer = True
        return t

    __torch_function__ = staticmethod(_disabled_torch_function_impl)


class UninitializedTensorMixin:
    """State and behaviour of a tensor whose shape is found out at the first forward."""

    _allowed_methods = frozenset(
        (
            "__hash__",
            "size",
            "copy_",
            "is_complex",
            "is_floating_point",
            "half",
            "float",
            "double",
            "char",
            "short",
            "int",
            "long",
            "cuda",
            "cpu",
            "to",
            "get_device",
            "_has_compatible_shallow_copy_type",
            "is_floating_point",
            "bfloat16",
            "type",
            "clone",
            "detach",
            "requires_grad_",
            "_make_subclass",
        )
    )
    cls_to_become: Any = None

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Gives the tensor memory of this shape, in place, and turns it into an ordinary parameter or buffer.

        Shape: ``shape`` is a sequence of ints. Values are not initialised. ``device`` and ``dtype`` default to the
        ones it was created with.
        """
        me: Any = self
        device = me.data.device if device is None else device
        dtype = me.data.dtype if dtype is None else dtype
        me.data = rushlight.empty(shape, device=device, dtype=dtype)
        me.__class__ = self.cls_to_become

    @property
    def shape(self) -> Any:
        raise RuntimeError(
            f"shape: the {type(self).__name__} has no shape yet; expected a materialized tensor, got one whose module "
            "has not run forward; call the module once (or materialize(shape)) first"
        )

    def share_memory_(self) -> Any:
        raise RuntimeError(
            f"share_memory_: the {type(self).__name__} has no memory yet; expected a materialized tensor, got an "
            "uninitialized one; run the module once first"
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self, protocol: Any) -> Any:
        me: Any = self
        return type(self), (me.requires_grad, me.data.device, me.data.dtype)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        # Attribute descriptors (data, grad, dtype ...) and the moves below work without a shape; the rest does not.
        name = getattr(func, "__name__", "")
        if name in cls._allowed_methods or name in ("__get__", "__set__", "__delete__"):
            return super().__torch_function__(func, types, args, kwargs or {})  # type: ignore[misc]
        raise ValueError(
            f"{name}: the operation needs the shape of a lazy tensor; expected a materialized tensor, got "
            f"{cls.__name__}; run forward once before using parameters of a lazy module"
        )


def is_lazy(param: Any) -> bool:
    """Whether ``param`` is an uninitialized parameter or buffer."""
    return isinstance(param, UninitializedTensorMixin)


class UninitializedParameter(UninitializedTensorMixin, Parameter):  # type: ignore[misc, override]
    """A parameter without a shape, for lazy modules. ``materialize(shape)`` turns it into a :class:`Parameter`."""

    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> Any:
        data = rushlight.empty(0, device=device, dtype=dtype)
        return Tensor._make_subclass(cls, data, requires_grad)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) in memo:
            return memo[id(self)]
        copy = type(self)(self.requires_grad, self.data.device, self.data.dtype)
        memo[id(self)] = copy
        return copy


class UninitializedBuffer(UninitializedTensorMixin, Tensor):  # type: ignore[override]
    """A buffer without a shape, for lazy modules. ``materialize(shape)`` turns it into a :class:`Buffer`."""

    cls_to_become = Buffer  # the class of a plain Tensor cannot be assigned to a live object

    def __new__(
        cls, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True
    ) -> Any:
        data = rushlight.empty(0, device=device, dtype=dtype)
        t = Tensor._make_subclass(cls, data, requires_grad)
        t.persistent = persistent
        t._is_buffer = True
        return t

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) in memo:
            return memo[id(self)]
        copy = type(self)(self.requires_grad, self.data.device, self.data.dtype, self.persistent)
        memo[id(self)] = copy
        return copy
