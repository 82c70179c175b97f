"""The parts of Tensor that are not about speed: repr, iteration, pickling, copying, the legacy constructor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from . import _C
from ._C import Size, Tensor


def _repr(self: Tensor) -> str:
    from ._printing import tensor_text

    kind = type(self)
    if kind is Tensor:
        return tensor_text(self)
    return tensor_text(self, "tensor" if kind.__name__ == "Tensor" else kind.__name__)


def _format(self: Tensor, spec: str) -> str:
    if self.dim() == 0 and not self.is_meta and type(self) is Tensor:
        return format(self.item(), spec)
    return object.__format__(self, spec)


def _iter(self: Tensor) -> Iterator[Any]:
    if self.dim() == 0:
        raise TypeError("iteration over a 0-d tensor")
    return iter(self.unbind(0))


def _reversed(self: Tensor) -> Any:
    return self if self.dim() == 0 else self.flip(0)


def _contains(self: Tensor, element: Any) -> bool:
    if isinstance(element, (Tensor, int, float, complex)):
        return bool((element == self).any().item())  # type: ignore[union-attr]
    raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}.")


def _reduce_ex(self: Tensor, protocol: int) -> Any:
    from ._utils import reduce_tensor

    return reduce_tensor(self, protocol)


def _deepcopy(self: Tensor, memo: dict[int, Any]) -> Tensor:
    """A copy with the storage copied once for all tensors that share it.

    Raises:
        RuntimeError: the tensor is the result of a recorded computation.
    """
    import copy

    found = memo.get(id(self))
    if found is not None:
        return found
    if self.grad_fn is not None:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the "
            "moment; detach() or clone() first"
        )
    storage = self.untyped_storage()
    key = ("rushlight storage", storage.data_ptr(), storage.nbytes())
    copied = memo.get(key)  # type: ignore[call-overload]
    if copied is None:
        copied = storage.clone()
        memo[key] = copied  # type: ignore[index]
    plain = _C._from_storage(copied, self.dtype, self.storage_offset(), tuple(self.shape), self.stride())
    if self.is_conj() or self.is_neg():
        plain = self.detach().clone()
    if type(self) is Tensor:
        result = plain
        result.requires_grad_(self.requires_grad) if self.requires_grad else None
    else:
        result = Tensor._make_subclass(type(self), plain, self.requires_grad)
    memo[id(self)] = result
    if self.grad is not None:
        result.grad = copy.deepcopy(self.grad, memo)
    for name, value in self.__dict__.items():
        result.__dict__[name] = copy.deepcopy(value, memo)
    return result


def new(self: Tensor, *args: Any, **kwargs: Any) -> Any:
    """The legacy constructor in this tensor's dtype."""
    return make(Tensor, args, self.dtype, **kwargs)


def _new(cls: type, *args: Any, device: Any = None, requires_grad: bool = False) -> Any:
    """Tensor(sizes...), Tensor(data), Tensor(tensor): the legacy constructor, of the default dtype."""
    return make(cls, args, _C.get_default_dtype(), device, requires_grad)


def make(cls: type, args: tuple[Any, ...], kind: Any, device: Any = None, requires_grad: bool = False) -> Any:
    """A tensor as the legacy constructor makes it, in a dtype."""
    if len(args) == 1:
        untyped = getattr(args[0], "_untyped_storage", args[0])
        if isinstance(untyped, _C.UntypedStorage):
            count = untyped.nbytes() // kind.itemsize
            return _C._from_storage(untyped, kind, 0, (count,), (1,))
        if isinstance(args[0], (bool, float, complex, str)):
            raise TypeError(f"new(): data must be a sequence (got {type(args[0]).__name__})")
    if device is not None and str(device) not in ("cpu", "meta"):
        raise RuntimeError(f"legacy constructor expects device type: cpu but device type: {device} was passed")
    if not args:
        made = _C._empty((0,), kind, device)
    elif len(args) == 1 and isinstance(args[0], Tensor):
        source = args[0]
        if source.dtype != kind and cls is Tensor:
            raise TypeError(f"new(): expected a tensor of {kind}, got one of {source.dtype}")
        made = source.detach()
        if cls is Tensor:
            return made
    elif len(args) == 1 and isinstance(args[0], (Size,)):
        made = _C._empty(tuple(args[0]), kind, device)
    elif len(args) == 1 and not isinstance(args[0], int):
        made = _C._from_data(list(args[0]) if isinstance(args[0], range) else args[0], kind, True)
    elif all(isinstance(a, int) for a in args):
        made = _C._empty(args, kind, device)
    else:
        raise TypeError(f"new(): expected sizes (ints), a sequence or a tensor, got {[type(a).__name__ for a in args]}")
    if cls is not Tensor:
        return Tensor._make_subclass(cls, made, requires_grad)
    return made.requires_grad_() if requires_grad else made
