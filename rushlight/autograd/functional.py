"""Jacobians, Hessians and products with them, of functions of tensors."""

from __future__ import annotations

import rushlight

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


def _as_tuple(value: Any, what: str, name: str) -> tuple[bool, tuple[Any, ...]]:
    is_tuple = isinstance(value, tuple)
    values = value if is_tuple else tuple(value) if isinstance(value, list) else (value,)
    for i, v in enumerate(values):
        if not isinstance(v, rushlight.Tensor):
            if is_tuple:
                raise TypeError(
                    f"The {what} given to {name} must be either a Tensor or a tuple of Tensors but the value at "
                    f"index {i} has "
                    f"type {type(v)}."
                )
            raise TypeError(
                f"The {what} given to {name} must be either a Tensor or a tuple of Tensors but the given {what} "
                f"has type {type(v)}."
            )
    return is_tuple, values


def _prepare(inputs: tuple[Any, ...], create_graph: bool, need_graph: bool = True) -> tuple[Any, ...]:
    """Inputs that can be differentiated by: aliases in the caller's graph, or leaves of their own."""
    if create_graph:
        return tuple(i.view_as(i) if i.requires_grad else i.detach().requires_grad_() for i in inputs)
    return tuple(i.detach().requires_grad_(need_graph) for i in inputs)


def _finish(value: Any, create_graph: bool) -> Any:
    if isinstance(value, tuple):
        return tuple(_finish(v, create_graph) for v in value)
    return value if create_graph or value is None else value.detach()


def _check_strict(outputs: Sequence[Any], name: str) -> None:
    for i, o in enumerate(outputs):
        if not o.requires_grad:
            raise RuntimeError(
                f"Output {i} of the user-provided function does not require gradients. The outputs must be "
                "computed in a "
                f"differentiable manner from the input when running in strict mode ({name})."
            )


def _grad(
    outputs: tuple[Any, ...],
    inputs: tuple[Any, ...],
    grad_outputs: tuple[Any, ...] | None = None,
    create_graph: bool = False,
    retain_graph: bool | None = None,
) -> tuple[Any, ...]:
    """autograd.grad that gives None where nothing depends on an input, whatever the outputs are."""
    if grad_outputs is None:
        grad_outputs = (None,) * len(outputs)
    pairs = [(o, g) for o, g in zip(outputs, grad_outputs, strict=True) if o is not None and o.requires_grad]
    if not pairs:
        return (None,) * len(inputs)
    return rushlight.autograd.grad(
        tuple(o for o, _ in pairs),
        inputs,
        tuple(g for _, g in pairs),
        allow_unused=True,
        create_graph=create_graph,
        retain_graph=retain_graph,
    )


def _zeros_for_none(grads: Sequence[Any], like: Sequence[Any], strict: bool, message: str) -> tuple[Any, ...]:
    filled = []
    for i, (g, x) in enumerate(zip(grads, like, strict=True)):
        if g is None and strict:
            raise RuntimeError(message.format(i=i))
        filled.append(rushlight.zeros_like(x) if g is None else g)
    return tuple(filled)


_INDEPENDENT = (
    "The output of the user-provided function is independent of input {i}. This is not allowed in strict mode."
)


def _vector(v: Any, like: tuple[Any, ...], like_is_tuple: bool, what: str, name: str) -> tuple[Any, ...]:
    """A vector that fits some tensors; ones for a single tensor of one element when it is not given."""
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(
                f"The vector v can only be None if the {what} of the function is a single Tensor with one element; "
                f"expected v for {name}, got None."
            )
        return (rushlight.ones_like(like[0]),)
    _, values = _as_tuple(v, "v", name)
    if len(values) != len(like):
        raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got {len(values)}.")
    for i, (a, b) in enumerate(zip(values, like, strict=True)):
        if tuple(a.shape) != tuple(b.shape):
            entry = f"Entry {i} in v" if like_is_tuple else "v"
            raise RuntimeError(f"{entry} has invalid size: should be {tuple(b.shape)} but got {tuple(a.shape)}.")
    return values


def vjp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The outputs of a function and the product of a vector with its Jacobian.

    Args:
        func: takes tensors and returns a tensor or a tuple of tensors.
        inputs: a tensor or a tuple of tensors.
        v: the vector, of the shape of the outputs; may be left out for an output of one element.
        create_graph: whether the results are recorded themselves.
        strict: whether an input that the outputs do not depend on is an error.

    Example::

        >>> x = rushlight.tensor([1.0, 2.0])
        >>> rushlight.autograd.functional.vjp(lambda x: (x * x).sum(), x)
        (tensor(5.), tensor([2., 4.]))
    """
    with rushlight.enable_grad():
        is_tuple, given = _as_tuple(inputs, "inputs", "vjp")
        leaves = _prepare(given, create_graph)
        outputs_tuple, outputs = _as_tuple(func(*leaves), "outputs of the user-provided function", "vjp")
        if strict:
            _check_strict(outputs, "vjp")
        vector = _vector(v, outputs, outputs_tuple, "output", "vjp")
    with rushlight.set_grad_enabled(create_graph or rushlight.is_grad_enabled()):
        grads = _zeros_for_none(_grad(outputs, leaves, vector, create_graph), leaves, strict, _INDEPENDENT)
    outputs, grads = _finish(outputs, create_graph), _finish(grads, create_graph)
    return outputs if outputs_tuple else outputs[0], grads if is_tuple else grads[0]


def jvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The outputs of a function and the product of its Jacobian with a vector, which has the shape of the inputs.

    The product is taken by differentiating the backward, which is linear in the gradients that go into it.

    Example::

        >>> x = rushlight.tensor([1.0, 2.0])
        >>> rushlight.autograd.functional.jvp(lambda x: x * x, x, rushlight.ones(2))
        (tensor([1., 4.]), tensor([2., 4.]))
    """
    with rushlight.enable_grad():
        _, given = _as_tuple(inputs, "inputs", "jvp")
        leaves = _prepare(given, create_graph)
        vector = _vector(v, leaves, isinstance(inputs, tuple), "input", "jvp")
        outputs_tuple, outputs = _as_tuple(func(*leaves), "outputs of the user-provided function", "jvp")
        if strict:
            _check_strict(outputs, "jvp")
        # The gradient as a function of what comes in, which is linear: its own gradient is the product.
        seeds = tuple(rushlight.zeros_like(o, requires_grad=True) for o in outputs)
        grads = _grad(outputs, leaves, seeds, create_graph=True)
        grads = _zeros_for_none(grads, leaves, strict, _INDEPENDENT)
    with rushlight.set_grad_enabled(create_graph or rushlight.is_grad_enabled()):
        products = _zeros_for_none(_grad(grads, seeds, vector, create_graph), outputs, False, "")
    outputs, products = _finish(outputs, create_graph), _finish(products, create_graph)
    return (outputs, products) if outputs_tuple else (outputs[0], products[0])


def jacobian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The Jacobian of a function: for each output and input a tensor of shape ``(*output.shape, *input.shape)``.

    Args:
        func: takes tensors and returns a tensor or a tuple of tensors.
        inputs: a tensor or a tuple of tensors.
        create_graph: whether the Jacobian is recorded itself.
        strict: whether an input that an output does not depend on is an error.
        vectorize: accepted; the rows are computed one after another.
        strategy: ``"reverse-mode"`` (a backward for each element of the outputs) or ``"forward-mode"`` (a product
            for each element of the inputs).

    Returns:
        A tensor; a tuple over the inputs, over the outputs, or a tuple of tuples (outputs, then inputs), as they
        are tuples.

    Example::

        >>> rushlight.autograd.functional.jacobian(lambda x: x * x, rushlight.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """
    if strategy not in ("reverse-mode", "forward-mode"):
        raise ValueError(f"jacobian: expected strategy 'reverse-mode' or 'forward-mode', got {strategy!r}")
    is_tuple, given = _as_tuple(inputs, "inputs", "jacobian")
    if strategy == "forward-mode":
        return _jacobian_by_columns(func, inputs, given, is_tuple, create_graph, strict)
    with rushlight.enable_grad():
        leaves = _prepare(given, create_graph)
        outputs_tuple, outputs = _as_tuple(func(*leaves), "outputs of the user-provided function", "jacobian")
        if strict:
            _check_strict(outputs, "jacobian")
        rows = []
        for i, output in enumerate(outputs):
            columns: list[list[Any]] = [[] for _ in leaves]
            flat = output.reshape(-1)
            for k in range(flat.numel()):
                grads = _grad((flat[k],), leaves, create_graph=create_graph, retain_graph=True)
                for j, (g, leaf) in enumerate(zip(grads, leaves, strict=True)):
                    if g is None and strict:
                        raise RuntimeError(
                            f"Output {i} of the user-provided function is independent of input {j}. This is not "
                            "allowed in "
                            "strict mode."
                        )
                    columns[j].append(rushlight.zeros_like(leaf) if g is None else g)
            rows.append(
                tuple(
                    rushlight.stack(c).reshape((*output.shape, *leaf.shape))
                    if c
                    else output.new_zeros((*output.shape, *leaf.shape))
                    for c, leaf in zip(columns, leaves, strict=True)
                )
            )
    return _nested(_finish(tuple(rows), create_graph), outputs_tuple, is_tuple)


def _nested(rows: tuple[Any, ...], outputs_tuple: bool, inputs_tuple: bool) -> Any:
    per_output = tuple(row if inputs_tuple else row[0] for row in rows)
    return per_output if outputs_tuple else per_output[0]


def _jacobian_by_columns(
    func: Callable[..., Any], inputs: Any, given: tuple[Any, ...], is_tuple: bool, create_graph: bool, strict: bool
) -> Any:
    blocks: list[list[list[Any]]] = []  # input, element, output
    outputs: Any = ()
    outputs_tuple = False
    for j, x in enumerate(given):
        elements = []
        for k in range(x.numel()):
            direction = [rushlight.zeros_like(i) for i in given]
            direction[j].reshape(-1)[k] = 1
            result, products = jvp(func, inputs, tuple(direction) if is_tuple else direction[0], create_graph, strict)
            outputs_tuple = isinstance(result, tuple)
            outputs = result if outputs_tuple else (result,)
            elements.append(list(products) if outputs_tuple else [products])
        blocks.append(elements)
    if not outputs:
        result = func(*given)
        outputs_tuple = isinstance(result, tuple)
        outputs = result if outputs_tuple else (result,)
    rows = []
    for i, output in enumerate(outputs):
        row = []
        for j, x in enumerate(given):
            shape = (*output.shape, *x.shape)
            columns = [element[i] for element in blocks[j]]
            row.append(rushlight.stack(columns, -1).reshape(shape) if columns else output.new_zeros(shape))
        rows.append(tuple(row))
    return _nested(tuple(rows), outputs_tuple, is_tuple)


def _scalar_output(func: Callable[..., Any], name: str) -> Callable[..., Any]:
    def checked(*inputs: Any) -> Any:
        output = func(*inputs)
        if not isinstance(output, rushlight.Tensor):
            raise RuntimeError(
                f"The function given to {name} should return a single Tensor, got {type(output).__name__}"
            )
        if output.numel() != 1:
            raise RuntimeError(
                f"The Tensor returned by the function given to {name} should contain a single element, got shape "
                f"{tuple(output.shape)}"
            )
        return output.reshape(())

    return checked


def hessian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The Hessian of a function with one element: for each pair of inputs a tensor of shape ``(*a.shape, *b.shape)``.

    The arguments are those of `jacobian`.

    Example::

        >>> rushlight.autograd.functional.hessian(lambda x: (x * x * x).sum(), rushlight.tensor([1.0, 2.0]))
        tensor([[ 6.,  0.],
                [ 0., 12.]])
    """
    is_tuple, _ = _as_tuple(inputs, "inputs", "hessian")
    scalar = _scalar_output(func, "hessian")

    def gradient(*values: Any) -> Any:
        leaves = tuple(v if v.requires_grad else v.detach().requires_grad_() for v in values)
        output = scalar(*leaves)
        if strict:
            _check_strict((output,), "hessian")
        grads = _grad((output,), leaves, create_graph=True)
        grads = _zeros_for_none(grads, leaves, strict, _INDEPENDENT)
        return grads if is_tuple else grads[0]

    return jacobian(gradient, inputs, create_graph, strict, vectorize, outer_jacobian_strategy)


def vhp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The output of a function with one element and the product of a vector with its Hessian.

    Example::

        >>> x = rushlight.tensor([1.0, 2.0])
        >>> rushlight.autograd.functional.vhp(lambda x: (x * x * x).sum(), x, rushlight.ones(2))
        (tensor(9.), tensor([ 6., 12.]))
    """
    with rushlight.enable_grad():
        is_tuple, given = _as_tuple(inputs, "inputs", "vhp")
        leaves = _prepare(given, create_graph)
        vector = _vector(v, leaves, is_tuple, "input", "vhp")
        output = _scalar_output(func, "vhp")(*leaves)
        if strict:
            _check_strict((output,), "vhp")
        grads = _grad((output,), leaves, create_graph=True)
        grads = _zeros_for_none(grads, leaves, strict, _INDEPENDENT)
    with rushlight.set_grad_enabled(create_graph or rushlight.is_grad_enabled()):
        products = _zeros_for_none(_grad(grads, leaves, vector, create_graph), leaves, strict, _INDEPENDENT)
    output, products = _finish(output, create_graph), _finish(products, create_graph)
    return output, products if is_tuple else products[0]


def hvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The output of a function with one element and the product of its Hessian with a vector.

    The Hessian of a twice continuously differentiable function is symmetric, so `vhp` gives the same for less; this one
    takes the product from the other side.

    Example::

        >>> x = rushlight.tensor([1.0, 2.0])
        >>> rushlight.autograd.functional.hvp(lambda x: (x * x * x).sum(), x, rushlight.ones(2))
        (tensor(9.), tensor([ 6., 12.]))
    """
    is_tuple, given = _as_tuple(inputs, "inputs", "hvp")
    scalar = _scalar_output(func, "hvp")
    with rushlight.enable_grad():
        leaves = _prepare(given, create_graph)
        vector = _vector(v, leaves, is_tuple, "input", "hvp")
        output = scalar(*leaves)
        if strict:
            _check_strict((output,), "hvp")
        grads = _grad((output,), leaves, create_graph=True)
        grads = _zeros_for_none(grads, leaves, strict, _INDEPENDENT)
        seeds = tuple(rushlight.zeros_like(g, requires_grad=True) for g in grads)
        double = _grad(grads, leaves, seeds, create_graph=True)
        double = _zeros_for_none(double, leaves, strict, _INDEPENDENT)
    with rushlight.set_grad_enabled(create_graph or rushlight.is_grad_enabled()):
        products = _zeros_for_none(_grad(double, seeds, vector, create_graph), leaves, strict, _INDEPENDENT)
    output, products = _finish(output, create_graph), _finish(products, create_graph)
    return output, products if is_tuple else products[0]
