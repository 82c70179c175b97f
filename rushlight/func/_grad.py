"""Derivatives of functions: grad, vjp, jvp, Jacobians, Hessians."""

from __future__ import annotations

import functools

import rushlight
from rushlight import _C
from rushlight.utils._pytree import tree_flatten, tree_map, tree_unflatten

from ._rules import Level, entered, unwrap
from ._vmap import vmap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "vjp"]


def _start(t: Any) -> Any:
    """The tensor as the beginning of a graph of its own, still linked to what it came from."""
    if not isinstance(t, _C.Tensor):
        return t
    if t.requires_grad:
        return t.view_as(t)
    if not (t.is_floating_point() or t.is_complex()):
        return t
    return _C._new_leaf(t).requires_grad_()


def _needed_inside(t: Any) -> bool:
    """Whether what a wrapped tensor stands for requires grad: then its computations are recorded there."""
    found = unwrap(t) if isinstance(t, _C.Tensor) else None
    return found is not None and any(
        part is not None and (part.requires_grad or _needed_inside(part)) for part in found[1:3]
    )


def _own_leaves(inputs: list[Any]) -> tuple[Any, ...]:
    return tuple(t for t in inputs if isinstance(t, _C.Tensor) and t.is_leaf)


def _released(value: Any, own: tuple[Any, ...]) -> Any:
    """The tensor without a graph, when that graph leads nowhere but to the leaves made here."""
    if isinstance(value, _C.Tensor) and value.requires_grad and not _C._leads_beyond((value,), own):
        return _C._new_leaf(value)
    return value


def _gradients(outputs: list[Any], inputs: list[Any], seeds: list[Any], keep: bool | None = None) -> list[Any]:
    """Gradients with zeros for inputs that were not used; recorded where somebody outside may need that."""
    wanted = [i for i in inputs if isinstance(i, _C.Tensor) and i.requires_grad]
    live = [(o, s) for o, s in zip(outputs, seeds, strict=True) if o.requires_grad]
    if not live:
        return [rushlight.zeros_like(i) for i in inputs]
    ends = tuple(o for o, _ in live)
    record = any(map(_needed_inside, ends)) or _C._leads_beyond(ends, _own_leaves(inputs))
    found = rushlight.autograd.grad(
        [o for o, _ in live],
        wanted,
        [s for _, s in live],
        retain_graph=True if keep else None,
        create_graph=record,
        allow_unused=True,
    )
    by_input = {id(i): g for i, g in zip(wanted, found, strict=True)}
    return [by_input.get(id(i)) if by_input.get(id(i)) is not None else rushlight.zeros_like(i) for i in inputs]


def _differentiated(argnums: Any, args: tuple[Any, ...], what: str) -> tuple[int, ...]:
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    if not numbers:
        raise RuntimeError(f"{what}: argnums must be non-empty; got {argnums!r}")
    result = []
    for n in numbers:
        if not isinstance(n, int) or isinstance(n, bool):
            raise RuntimeError(f"{what}: argnums must be int or Tuple[int, ...], got: {type(n)}")
        if not -len(args) <= n < len(args):
            raise RuntimeError(
                f"{what}: Got argnum={n}, but only {len(args)} positional inputs; expected an argument's position"
            )
        result.append(n % len(args))
    if len(set(result)) != len(result):
        raise RuntimeError(f"{what}: argnums elements must be unique, got {argnums}")
    return tuple(result)


def grad_and_value(func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that returns the gradient and the value of ``func``.

    Args:
        func: returns a tensor with one element, or with ``has_aux`` a pair of that and anything else.
        argnums: the position (or positions) of the arguments to differentiate by; they may be nested containers.

    The result of the function is ``(gradient, value)`` or ``(gradient, (value, aux))``. RuntimeError when ``func`` does
    not return a scalar tensor.

    Example::

        >>> import rushlight
        >>> rushlight.func.grad_and_value(lambda x: (x * x).sum())(rushlight.tensor([1.0, 2.0]))
        (tensor([2., 4.]), tensor(5.))
    """

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        numbers = _differentiated(argnums, args, "grad")
        with _C.enable_grad():
            new = list(args)
            for n in numbers:
                new[n] = tree_map(_start, args[n])
            picked = new[argnums] if isinstance(argnums, int) else tuple(new[n] for n in numbers)
            inputs, spec = tree_flatten(picked)
            for leaf in inputs:
                if not isinstance(leaf, _C.Tensor):
                    raise ValueError(f"grad: expected all inputs to be differentiated to be Tensors, got {type(leaf)}")
            output = func(*new, **kwargs)
            aux = None
            if has_aux:
                if not isinstance(output, tuple) or len(output) != 2:
                    raise RuntimeError(
                        "grad_and_value(f)(*args): output of function f should be a tuple: (output, aux) if has_aux is "
                        f"True; got {type(output).__name__}"
                    )
                output, aux = output
            if not isinstance(output, _C.Tensor):
                raise RuntimeError(
                    "grad_and_value(f)(*args): Expected f(*args) to return a tensor, got unsupported type "
                    f"{type(output)}"
                )
            if output.dim() != 0:
                raise RuntimeError(
                    "grad_and_value(f)(*args): Expected f(*args) to return a scalar tensor, got tensor with "
                    f"{output.dim()} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
                )
            if not output.is_floating_point():
                raise RuntimeError(
                    f"grad can be implicitly created only for real scalar outputs but got {output.dtype}"
                )
            found = _gradients([output], inputs, [rushlight.ones_like(output)])
        own = _own_leaves(inputs)
        gradient = tree_unflatten([_released(g, own) for g in found], spec)
        output = _released(output, own)
        if has_aux:
            return gradient, (output, tree_map(lambda t: _released(t, own), aux))
        return gradient, output

    return wrapped


def grad(func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that returns the gradient of ``func`` (and ``aux`` when `has_aux`), as in `grad_and_value`.

    Example::

        >>> import rushlight
        >>> rushlight.func.grad(rushlight.func.grad(lambda x: x**3))(rushlight.tensor(2.0))
        tensor(12.)
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        gradient, value = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return wrapped


def _tensors_of(value: Any, what: str) -> tuple[list[Any], Any]:
    leaves, spec = tree_flatten(value)
    for leaf in leaves:
        if not isinstance(leaf, _C.Tensor):
            raise RuntimeError(f"{what}: Expected all tensors, got an object of type {type(leaf)}")
    if not leaves:
        raise RuntimeError(f"{what}: Expected at least one tensor, got none")
    return leaves, spec


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """``func(*primals)`` and a function from gradients of its outputs to gradients of the primals.

    Returns ``(outputs, vjp_fn)`` or, with `has_aux`, ``(outputs, vjp_fn, aux)``. ``vjp_fn(cotangents)`` returns a
    tuple with one entry for each primal (the gradient itself when there is one primal: as a tuple of one).

    Example::

        >>> import rushlight
        >>> y, back = rushlight.func.vjp(rushlight.sin, rushlight.zeros(2))
        >>> back(rushlight.ones(2))
        (tensor([1., 1.]),)
    """
    with _C.enable_grad():
        new = tree_map(_start, primals)
        inputs, spec = tree_flatten(new)
        results = func(*new)
        aux = None
        if has_aux:
            if not isinstance(results, tuple) or len(results) != 2:
                raise RuntimeError(
                    "vjp(f, *primals): output of function f should be a tuple: (output, aux) if has_aux is True"
                )
            results, aux = results
        outputs, out_spec = _tensors_of(results, "vjp(f, *primals)")
    own = _own_leaves(inputs)

    def vjp_fn(*cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        given = cotangents[0] if len(cotangents) == 1 else cotangents
        seeds, seed_spec = tree_flatten(given)
        if seed_spec != out_spec and len(seeds) != len(outputs):
            raise RuntimeError(
                f"Expected pytree structure of cotangents to be the same as pytree structure of outputs to the "
                f"function. cotangents: {seed_spec}, primal output: {out_spec}"
            )
        with _C.enable_grad():
            tensors = [i for i in inputs if isinstance(i, _C.Tensor)]
            live = [(o, s) for o, s in zip(outputs, seeds, strict=True) if o.requires_grad]
            wanted = [i for i in tensors if i.requires_grad]
            found: Any = [None] * len(wanted)
            if live and wanted:
                ends = tuple(o for o, _ in live)
                outer = (
                    any(isinstance(s, _C.Tensor) and (s.requires_grad or _needed_inside(s)) for s in seeds)
                    or any(map(_needed_inside, ends))
                    or _C._leads_beyond(ends, own)
                )
                found = rushlight.autograd.grad(
                    [o for o, _ in live],
                    wanted,
                    [s for _, s in live],
                    retain_graph=retain_graph,
                    create_graph=outer,
                    allow_unused=True,
                )
            by_input = {id(i): g for i, g in zip(wanted, found, strict=True)}
            result = []
            for i in inputs:
                g = by_input.get(id(i))
                result.append(_released(rushlight.zeros_like(i) if g is None else g, own))
        return tree_unflatten(result, spec)

    shown = tree_unflatten([_released(o, own) for o in outputs], out_spec)
    if has_aux:
        return shown, vjp_fn, tree_map(lambda t: _released(t, own), aux)
    return shown, vjp_fn


def jvp(func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """``func(*primals)`` and its derivative in the direction of the tangents, in forward mode.

    Args:
        primals, tangents: tuples of the same structure and shapes.
        strict: whether an output that does not depend on the primals is an error. Default: its tangent is zeros.

    Example::

        >>> import rushlight
        >>> rushlight.func.jvp(rushlight.sin, (rushlight.zeros(2),), (rushlight.ones(2),))
        (tensor([0., 0.]), tensor([1., 1.]))
    """
    if not isinstance(primals, tuple) or not isinstance(tangents, tuple):
        raise RuntimeError(
            f"jvp(f, primals, tangents): Expected primals and tangents to be tuples, got {type(primals).__name__} and "
            f"{type(tangents).__name__}. E.g. it should be valid to call f(*primals)."
        )
    values, spec = _tensors_of(primals, "jvp(f, primals, tangents)")
    directions, other = _tensors_of(tangents, "jvp(f, primals, tangents)")
    if spec != other:
        raise RuntimeError(
            f"jvp(f, primals, tangents): Expected primals and tangents to have the same python structure. For "
            f"example, if primals is a tuple of 3 tensors, tangents also must be. Got primals with structure {spec} "
            f"and tangents with structure {other}"
        )
    for v, t in zip(values, directions, strict=True):
        if v.shape != t.shape:
            raise RuntimeError(
                f"jvp(f, primals, tangents): expected tangents of the primals' shapes, got {tuple(t.shape)} for a "
                f"primal of shape {tuple(v.shape)}"
            )
    with entered(Level()) as level:
        duals = [level.dual(v, t) for v, t in zip(values, directions, strict=True)]
        output = func(*tree_unflatten(duals, spec))
        aux = None
        if has_aux:
            if not isinstance(output, tuple) or len(output) != 2:
                raise RuntimeError(
                    "jvp(f, primals, tangents): output of function f should be a tuple: (output, aux) if has_aux is "
                    "True"
                )
            output, aux = output
        results, out_spec = _tensors_of(output, "jvp(f, primals, tangents)")
        pairs = [_split(level, r, strict) for r in results]
        first = tree_unflatten([p for p, _ in pairs], out_spec)
        second = tree_unflatten([t for _, t in pairs], out_spec)
        if has_aux:
            return first, second, tree_map(lambda t: _split(level, t, False)[0], aux)
        return first, second


def _split(level: Level, t: Any, strict: bool) -> tuple[Any, Any]:
    found = unwrap(t) if isinstance(t, _C.Tensor) else None
    if found is not None and found[0] == level.number:
        return found[1], found[2]
    if strict:
        raise RuntimeError(
            "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not allowed "
            "with strict=True."
        )
    return t, rushlight.zeros_like(t) if isinstance(t, _C.Tensor) else None


def _basis(leaves: list[Any]) -> list[Any]:
    """For all leaves together, unit directions: of each leaf's shape, one row for each number of all of them."""
    sizes = [leaf.numel() for leaf in leaves]
    total = sum(sizes)
    rows, start = [], 0
    for leaf, n in zip(leaves, sizes, strict=True):
        part = rushlight.zeros((total, n), dtype=leaf.dtype, device=leaf.device)
        if n:
            part.diagonal(-start).fill_(1)
        rows.append(part.reshape((total, *leaf.shape)))
        start += n
    return rows


def jacrev(
    func: Callable[..., Any],
    argnums: Any = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable[..., Any]:
    """The Jacobian of ``func`` by reverse mode: a function that returns, for each output, its derivatives.

    Shapes: for an output of shape O and an argument of shape I, O + I. The structure is that of the outputs, with that
    of the chosen arguments inside. Cheaper than `jacfwd` when there are fewer outputs than inputs.

    Example::

        >>> import rushlight
        >>> rushlight.func.jacrev(lambda x: x * x)(rushlight.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        numbers = _differentiated(argnums, args, "jacrev")

        def chosen(*picked: Any) -> Any:
            new = list(args)
            for n, value in zip(numbers, picked, strict=True):
                new[n] = value
            return func(*new, **kwargs)

        found = vjp(chosen, *(args[n] for n in numbers), has_aux=has_aux)
        output, back = found[0], found[1]
        outputs, out_spec = _tensors_of(output, "jacrev")
        basis = _basis(outputs)
        rows = vmap(lambda *seeds: back(tree_unflatten(seeds, out_spec)), chunk_size=chunk_size)(*basis)
        per_input, in_spec = tree_flatten(rows[0] if isinstance(argnums, int) else rows)
        result = []
        start = 0
        for out in outputs:
            stop = start + out.numel()
            blocks = [g[start:stop].reshape((*out.shape, *g.shape[1:])) for g in per_input]
            result.append(tree_unflatten(blocks, in_spec))
            start = stop
        jacobian = tree_unflatten(result, out_spec)
        return (jacobian, found[2]) if has_aux else jacobian

    return wrapped


def jacfwd(
    func: Callable[..., Any],
    argnums: Any = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """The Jacobian of ``func`` by forward mode, as `jacrev`. Cheaper when there are fewer inputs than outputs."""

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        numbers = _differentiated(argnums, args, "jacfwd")
        picked = args[argnums] if isinstance(argnums, int) else tuple(args[n] for n in numbers)
        inputs, in_spec = _tensors_of(picked, "jacfwd")

        def chosen(*leaves: Any) -> Any:
            value = tree_unflatten(leaves, in_spec)
            new = list(args)
            for n, v in zip(numbers, (value,) if isinstance(argnums, int) else value, strict=True):
                new[n] = v
            return func(*new, **kwargs)

        def direction(*tangents: Any) -> Any:
            found = jvp(chosen, tuple(inputs), tangents, has_aux=has_aux)
            return (found[1], found[0], found[2]) if has_aux else (found[1], found[0])

        columns = vmap(direction, randomness=randomness, chunk_size=chunk_size)(*_basis(inputs))
        outputs, out_spec = tree_flatten(columns[0])
        result = []
        for out in outputs:
            blocks = []
            start = 0
            for leaf in inputs:
                stop = start + leaf.numel()
                block = out[start:stop].movedim(0, -1)
                blocks.append(block.reshape((*out.shape[1:], *leaf.shape)))
                start = stop
            result.append(tree_unflatten(blocks, in_spec))
        jacobian = tree_unflatten(result, out_spec)
        return (jacobian, tree_map(lambda t: t[0], columns[2])) if has_aux else jacobian

    return wrapped


def hessian(func: Callable[..., Any], argnums: Any = 0) -> Callable[..., Any]:
    """The Hessian of ``func``: forward mode over reverse mode.

    Example::

        >>> import rushlight
        >>> rushlight.func.hessian(lambda x: (x**3).sum())(rushlight.tensor([1.0, 2.0]))
        tensor([[ 6.,  0.],
                [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)
