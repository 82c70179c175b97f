"""Pruning: parameters multiplied with a mask of zeros and ones.

A pruned parameter ``name`` is kept as ``name_orig``; the buffer ``name_mask`` holds the mask, and ``name`` is their
product, computed before each forward. Pruning again combines the masks.
"""

from __future__ import annotations

import rushlight
from rushlight import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

__all__ = [
    "BasePruningMethod", "CustomFromMask", "Identity", "L1Unstructured", "LnStructured", "PruningContainer",
    "RandomStructured", "RandomUnstructured", "custom_from_mask", "global_unstructured", "identity", "is_pruned",
    "l1_unstructured", "ln_structured", "random_structured", "random_unstructured", "remove",
]  # fmt: skip


class BasePruningMethod:
    """Base class of pruning methods: define ``compute_mask(t, default_mask)`` and ``PRUNING_TYPE``.

    ``PRUNING_TYPE`` is "unstructured" (single elements), "structured" (slices along a dimension) or "global".
    """

    PRUNING_TYPE: Any = None
    _tensor_name: str

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask of a tensor, given the one that is there already (all ones at first)."""
        raise NotImplementedError(f"{type(self).__name__}.compute_mask: not defined; expected it in the class")

    def apply_mask(self, module: Any) -> Tensor:
        """The product of original and mask."""
        original = getattr(module, self._tensor_name + "_orig")
        mask = getattr(module, self._tensor_name + "_mask")
        return mask.to(dtype=original.dtype) * original

    @classmethod
    def apply(cls, module: Any, name: str, *args: Any, importance_scores: Tensor | None = None, **kwargs: Any) -> Any:
        """Prunes ``module.name``; ``importance_scores`` (the parameter by default) decide what goes."""
        found = _find(module, name)
        method = cls(*args, **kwargs)
        method._tensor_name = name
        if found is not None:
            key, old = found
            del module._forward_pre_hooks[key]
            container = old if isinstance(old, PruningContainer) else PruningContainer(old)
            container.add_pruning_method(method)
            method = container
        original = getattr(module, name)
        if importance_scores is not None and importance_scores.shape != original.shape:
            raise AssertionError(
                f"prune: importance_scores; expected the shape {list(original.shape)}, got "
                f"{list(importance_scores.shape)}"
            )
        scores = original if importance_scores is None else importance_scores
        if found is None:
            module.register_parameter(name + "_orig", module._parameters.pop(name))
            default = rushlight.ones_like(original)
        else:
            default = getattr(module, name + "_mask").detach().clone()
        try:
            with rushlight.no_grad():
                mask = method.compute_mask(scores, default_mask=default)
            module.register_buffer(name + "_mask", mask)
            setattr(module, name, method.apply_mask(module))
            module.register_forward_pre_hook(method)
        except Exception:
            if found is None:
                # the module is left as it was
                module.register_parameter(name, module._parameters.pop(name + "_orig"))
            raise
        return method

    def prune(self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None) -> Tensor:
        """A pruned copy of a tensor, without any module."""
        if importance_scores is not None and importance_scores.shape != t.shape:
            raise AssertionError(
                f"prune: importance_scores; expected the shape {list(t.shape)}, got {list(importance_scores.shape)}"
            )
        scores = t if importance_scores is None else importance_scores
        default = rushlight.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(scores, default_mask=default)

    def remove(self, module: Any) -> None:
        """Makes the pruning permanent: the parameter holds the product, mask and original go."""
        name = self._tensor_name
        if not hasattr(module, name + "_mask"):
            raise AssertionError(f"prune.remove: '{name}' of {type(module).__name__} is not pruned")
        weight = self.apply_mask(module)
        delattr(module, name)
        original = module._parameters.pop(name + "_orig")
        original.data = weight.data
        del module._buffers[name + "_mask"]
        module.register_parameter(name, original)


def _find(module: Any, name: str) -> tuple[int, BasePruningMethod] | None:
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            return key, hook
    return None


class PruningContainer(BasePruningMethod):
    """Several pruning methods of one parameter, one after another, each on what the others have left."""

    def __init__(self, *args: BasePruningMethod) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        if len(args) == 1 and hasattr(args[0], "_tensor_name"):
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod | None) -> None:
        """Adds a method for the same parameter. TypeError for something else, ValueError for another parameter."""
        if not isinstance(method, BasePruningMethod) and method is not None:
            raise TypeError(f"PruningContainer: expected a BasePruningMethod, got {type(method).__name__}")
        if method is not None and self._tensor_name != method._tensor_name:
            raise ValueError(
                f"PruningContainer: expected a method for '{self._tensor_name}', got one for '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)  # type: ignore[operator]

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Any:
        return iter(self._pruning_methods)

    def __getitem__(self, index: Any) -> Any:
        return self._pruning_methods[index]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask after the last method, which looks only at what is left."""
        method = self._pruning_methods[-1]
        mask = default_mask.to(dtype=t.dtype)
        if method.PRUNING_TYPE == "unstructured":
            place: Any = mask == 1
        elif method.PRUNING_TYPE == "structured":
            # the slices that are not all zero
            dim = method.dim % t.dim()  # type: ignore[attr-defined]
            others = [d for d in range(t.dim()) if d != dim]
            kept = mask.sum(dim=others) != 0 if others else mask != 0
            place = (*([slice(None)] * dim), kept)
        elif method.PRUNING_TYPE == "global":
            place = tuple([slice(None)] * t.dim())
        else:
            raise ValueError(f"prune: unknown PRUNING_TYPE {method.PRUNING_TYPE!r} of {type(method).__name__}")
        new = mask.clone()
        new[place] = method.compute_mask(t[place], default_mask=mask[place]).to(new.dtype)
        return new


class Identity(BasePruningMethod):
    """Prunes nothing; only makes mask and original."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return default_mask


def _check_amount(amount: Any, size: int | None = None) -> None:
    if not isinstance(amount, (int, float)) or isinstance(amount, bool):
        raise TypeError(f"prune: amount; expected a number, got {type(amount).__name__}")
    if (isinstance(amount, int) and amount < 0) or (not isinstance(amount, int) and not 0.0 <= amount <= 1.0):
        raise ValueError(f"prune: amount; expected an int of at least 0 or a share in [0, 1], got {amount}")
    if size is not None and isinstance(amount, int) and amount > size:
        raise ValueError(f"prune: amount; expected at most {size}, got {amount}")


def _count(amount: Any, size: int) -> int:
    return int(amount) if isinstance(amount, int) else round(amount * size)


class RandomUnstructured(BasePruningMethod):
    """Prunes elements at random: ``amount`` is their number (int) or share (float)."""

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: Any) -> None:
        _check_amount(amount)
        self.amount = amount

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        size = t.nelement()
        _check_amount(self.amount, size)
        count = _count(self.amount, size)
        mask = default_mask.clone()
        if count:
            chosen = rushlight.topk(rushlight.rand_like(t).view(-1), k=count)
            mask.view(-1)[chosen[1]] = 0
        return mask


class L1Unstructured(BasePruningMethod):
    """Prunes the elements of least absolute value: ``amount`` is their number (int) or share (float)."""

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: Any) -> None:
        _check_amount(amount)
        self.amount = amount

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        size = t.nelement()
        _check_amount(self.amount, size)
        count = _count(self.amount, size)
        mask = default_mask.clone()
        if count:
            chosen = rushlight.topk(t.abs().view(-1), k=count, largest=False)
            mask.view(-1)[chosen[1]] = 0
        return mask


def _check_dim(t: Tensor, dim: int) -> None:
    if not -t.dim() <= dim < t.dim():
        raise IndexError(f"prune: dim; expected {-t.dim()} to {t.dim() - 1}, got {dim}")


def _slices_mask(t: Tensor, dim: int, values: Tensor, count: int) -> Tensor:
    """Ones, with zeros in the slices along ``dim`` that are not among the ``count`` largest values."""
    kept = rushlight.topk(values, k=count, largest=True)[1]
    mask = rushlight.zeros_like(t)
    place: list[Any] = [slice(None)] * t.dim()
    place[dim] = kept
    mask[tuple(place)] = 1
    return mask


class RandomStructured(BasePruningMethod):
    """Prunes slices along ``dim`` at random: ``amount`` is their number (int) or share (float)."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: Any, dim: int = -1) -> None:
        _check_amount(amount)
        self.amount = amount
        self.dim = dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if t.dim() <= 1:
            raise ValueError(f"prune: structured pruning needs at least 2 dimensions, got {t.dim()}")
        _check_dim(t, self.dim)
        size = t.shape[self.dim]
        _check_amount(self.amount, size)
        count = _count(self.amount, size)
        if count == 0:
            return default_mask
        mask = _slices_mask(t, self.dim, rushlight.rand(size), size - count)
        return mask * default_mask.to(dtype=mask.dtype)


class LnStructured(BasePruningMethod):
    """Prunes the slices along ``dim`` of least n-norm: ``amount`` is their number (int) or share (float)."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: Any, n: Any, dim: int = -1) -> None:
        _check_amount(amount)
        self.amount = amount
        self.n = n
        self.dim = dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if t.dim() <= 1:
            raise ValueError(f"prune: structured pruning needs at least 2 dimensions, got {t.dim()}")
        _check_dim(t, self.dim)
        size = t.shape[self.dim]
        _check_amount(self.amount, size)
        count = _count(self.amount, size)
        if count == 0:
            return default_mask
        others = [d for d in range(t.dim()) if d != self.dim % t.dim()]
        norms = rushlight.linalg.vector_norm(t, 2 if self.n == "fro" else self.n, others)
        mask = _slices_mask(t, self.dim, norms, size - count)
        return mask * default_mask.to(dtype=mask.dtype)


class CustomFromMask(BasePruningMethod):
    """Prunes by a given mask."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"prune: mask; expected the shape {list(default_mask.shape)}, got {list(self.mask.shape)}"
            )
        return default_mask * self.mask.to(dtype=default_mask.dtype)


def identity(module: Any, name: str) -> Any:
    """Makes mask and original without pruning anything; returns the module."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Any, name: str, amount: Any) -> Any:
    """Prunes elements at random; returns the module."""
    RandomUnstructured.apply(module, name, amount=amount)
    return module


def l1_unstructured(module: Any, name: str, amount: Any, importance_scores: Tensor | None = None) -> Any:
    """Prunes the elements of least absolute value; returns the module.

    Example::

        >>> import rushlight
        >>> layer = rushlight.nn.Linear(2, 2)
        >>> int((rushlight.nn.utils.prune.l1_unstructured(layer, "weight", amount=1).weight == 0).sum())
        1
    """
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Any, name: str, amount: Any, dim: int) -> Any:
    """Prunes slices along ``dim`` at random; returns the module."""
    RandomStructured.apply(module, name, amount=amount, dim=dim)
    return module


def ln_structured(
    module: Any, name: str, amount: Any, n: Any, dim: int, importance_scores: Tensor | None = None
) -> Any:
    """Prunes the slices along ``dim`` of least n-norm; returns the module."""
    LnStructured.apply(module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Any, name: str, mask: Tensor) -> Any:
    """Prunes by a given mask; returns the module."""
    CustomFromMask.apply(module, name, mask=mask)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Any, str]], pruning_method: Any, importance_scores: Any = None, **kwargs: Any
) -> None:
    """Prunes several parameters as if they were one: a share of all elements together.

    Args:
        parameters: pairs (module, name).
        pruning_method: a class with ``PRUNING_TYPE = "unstructured"``, otherwise TypeError.
        importance_scores: a dict from pair to scores; the parameters by default.
        kwargs: of the method.
    """
    pairs = list(parameters)
    scores = {} if importance_scores is None else importance_scores
    if not isinstance(scores, dict):
        raise TypeError(f"global_unstructured: importance_scores; expected a dict, got {type(scores).__name__}")
    flat = rushlight.cat([scores.get((m, n), getattr(m, n)).reshape(-1) for m, n in pairs])
    masks = [getattr(m, n + "_mask", rushlight.ones_like(getattr(m, n))).reshape(-1) for m, n in pairs]
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            f"global_unstructured: expected a method of PRUNING_TYPE 'unstructured', got {method.PRUNING_TYPE!r} "
            f"({pruning_method.__name__})"
        )
    container = PruningContainer()
    container._tensor_name = method._tensor_name = "temp"
    container.add_pruning_method(method)
    with rushlight.no_grad():
        final = container.compute_mask(flat, rushlight.cat(masks))
    start = 0
    for m, n in pairs:
        p = getattr(m, n)
        custom_from_mask(m, n, final[start : start + p.numel()].view_as(p))
        start += p.numel()


def remove(module: Any, name: str) -> Any:
    """Makes the pruning of a parameter permanent; returns the module. ValueError when it is not pruned."""
    found = _find(module, name)
    if found is None:
        raise ValueError(f"prune.remove: '{name}' of {type(module).__name__} is not pruned")
    key, hook = found
    hook.remove(module)
    del module._forward_pre_hooks[key]
    return module


def is_pruned(module: Any) -> bool:
    """Whether some parameter of the module or of a submodule is pruned."""
    return any(isinstance(hook, BasePruningMethod) for m in module.modules() for hook in m._forward_pre_hooks.values())
