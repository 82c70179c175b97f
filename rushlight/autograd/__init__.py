"""Reverse-mode differentiation of ordinary Python."""

from __future__ import annotations

from rushlight import _C
from rushlight._C import Tensor

from .anomaly_mode import detect_anomaly, set_detect_anomaly
from .function import Function
from .grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled, set_multithreading_enabled
from .variable import Variable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from . import forward_ad, functional, graph
    from .gradcheck import GradcheckError, gradcheck, gradgradcheck

__all__ = [
    "Function",
    "GradcheckError",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "forward_ad",
    "functional",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
]


def _as_tuple(values: Any) -> tuple[Any, ...]:
    if isinstance(values, Tensor) or (isinstance(values, tuple) and hasattr(values, "output_nr")):
        return (values,)  # a tensor, or a GradientEdge
    return tuple(values)


def _grads_for(tensors: tuple[Any, ...], grads: Any) -> tuple[Any, ...]:
    if grads is None:
        return (None,) * len(tensors)
    if isinstance(grads, Tensor):
        return (grads,)
    return tuple(grads)


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Adds the gradients of the sum of some tensors to the ``grad`` of the leaves they come from.

    Args:
        tensors: a tensor or a sequence of tensors (or graph edges).
        grad_tensors: their gradients, of the same shapes; None for scalars.
        retain_graph: whether the graph can be used again. Default: the value of `create_graph`.
        create_graph: whether the gradients are recorded themselves, for higher derivatives.
        inputs: the only leaves to accumulate into. Default: all.

    Raises:
        RuntimeError: a tensor does not require grad, is no scalar and has no gradient, or the graph was used up.

    Example::

        >>> x = rushlight.ones(3, requires_grad=True)
        >>> rushlight.autograd.backward([x.sum(), (2 * x).sum()])
        >>> x.grad
        tensor([3., 3., 3.])
    """
    if grad_variables is not None:
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. Please "
                "only use "
                "`grad_tensors`."
            )
        import warnings

        warnings.warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning, stacklevel=2)
        grad_tensors = grad_variables
    if inputs is not None:
        inputs = _as_tuple(inputs)
        if not inputs:
            raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    tensors = _as_tuple(tensors)
    keep = create_graph if retain_graph is None else retain_graph
    _C._run_backward(tensors, _grads_for(tensors, grad_tensors), keep, create_graph, inputs, True, True)


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """The gradients of the sum of outputs with respect to inputs, as a tuple; no ``grad`` attribute changes.

    Args:
        outputs: a tensor or a sequence of tensors (or graph edges).
        inputs: the tensors (or graph edges) to differentiate by.
        grad_outputs: the gradients of the outputs, of the same shapes; None for scalars.
        retain_graph: whether the graph can be used again. Default: the value of `create_graph`.
        create_graph: whether the gradients are recorded themselves, for higher derivatives.
        allow_unused: whether an input that the outputs do not depend on gets None. Default: the value of
            `materialize_grads`.
        is_grads_batched: the first dimension of each grad_output counts independent gradients; so does that of the
            result.
        materialize_grads: whether zeros stand in for None.

    Raises:
        RuntimeError: as for `backward`, or an input was not used.

    Example::

        >>> x = rushlight.tensor(3.0, requires_grad=True)
        >>> rushlight.autograd.grad(x * x, x)
        (tensor(6.),)
    """
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    if allow_unused is None:
        allow_unused = materialize_grads
    outputs = _as_tuple(outputs)
    inputs = _as_tuple(inputs)
    keep = create_graph if retain_graph is None else retain_graph
    grads = _grads_for(outputs, grad_outputs)
    if is_grads_batched:
        result = _batched_grad(outputs, inputs, grads, keep, create_graph, allow_unused)
    else:
        result = _C._run_backward(outputs, grads, keep, create_graph, inputs, False, allow_unused)
    if materialize_grads:
        import rushlight

        if any(g is None and not isinstance(i, Tensor) for g, i in zip(result, inputs, strict=True)):
            raise RuntimeError("materialize_grads cannot be used when the given input is a GradientEdge")
        result = tuple(rushlight.zeros_like(i) if g is None else g for g, i in zip(result, inputs, strict=True))
    return result


def _batched_grad(
    outputs: tuple[Any, ...],
    inputs: tuple[Any, ...],
    grads: Sequence[Any],
    keep: bool,
    create_graph: bool,
    allow_unused: bool,
) -> tuple[Any, ...]:
    """One backward for all indices of the first dimension of the gradients."""
    import rushlight
    from rushlight.func import vmap

    sizes = {g.shape[0] if g.dim() else -1 for g in grads if g is not None}
    if len(sizes) != 1 or -1 in sizes:
        raise RuntimeError(f"grad: is_grads_batched needs grad_outputs with one batch size; got sizes {sorted(sizes)}")
    batch: int = next(iter(sizes))
    for i, (output, g) in enumerate(zip(outputs, grads, strict=True)):
        if g is not None and tuple(g.shape[1:]) != tuple(output.shape):
            raise RuntimeError(
                "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch "
                "dimension. The sizes "
                "of the remaining dimensions are expected to match the shape of corresponding output, but a "
                "mismatch was detected: "
                f"grad_output[{i}] has a shape of {tuple(g.shape)} and output[{i}] has a shape of "
                f"{tuple(output.shape)}."
            )
    if batch == 0:
        return tuple(rushlight.zeros((0, *i.shape), dtype=i.dtype, device=i.device) for i in inputs)
    unused: list[int] = []

    def one(*rows: Any) -> tuple[Any, ...]:
        given = iter(rows)
        row = tuple(None if g is None else next(given) for g in grads)
        found = _C._run_backward(outputs, row, keep, create_graph, inputs, False, allow_unused)
        unused.extend(i for i, g in enumerate(found) if g is None)
        return tuple(g for g in found if g is not None)

    # Random numbers are those of a forward that is run again: the same for all.
    made = iter(vmap(one, randomness="same")(*(g for g in grads if g is not None)))
    return tuple(None if i in unused else next(made) for i in range(len(inputs)))


def __getattr__(name: str) -> Any:
    # Not needed by most programs: imported at first use.
    if name in ("gradcheck", "gradgradcheck", "GradcheckError"):
        import importlib

        module = importlib.import_module("rushlight.autograd.gradcheck")
        for n in ("gradgradcheck", "GradcheckError", "gradcheck"):
            globals()[n] = getattr(module, n)
        return globals()[name]
    if name in ("forward_ad", "functional", "graph"):
        import importlib

        return importlib.import_module(f"rushlight.autograd.{name}")
    if name == "SavedTensor":
        from .graph import SavedTensor

        return SavedTensor
    raise AttributeError(f"module 'rushlight.autograd' has no attribute {name!r}")
