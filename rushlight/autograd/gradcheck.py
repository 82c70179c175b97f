"""Checks of derivatives against finite differences."""

from __future__ import annotations

import sys
import warnings
from itertools import product
from types import ModuleType

import rushlight

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

__all__ = ["GradcheckError", "get_analytical_jacobian", "get_numerical_jacobian", "gradcheck", "gradgradcheck"]


class GradcheckError(RuntimeError):
    """A derivative that does not agree with finite differences."""


def _is_differentiable(value: Any) -> bool:
    return isinstance(value, rushlight.Tensor) and (value.is_floating_point() or value.is_complex())


def _tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _leaves(inputs: Sequence[Any]) -> list[Any]:
    """Tensors that require grad, also those inside lists and tuples."""
    found = []
    for value in inputs:
        if isinstance(value, (tuple, list)):
            found += _leaves(value)
        elif isinstance(value, rushlight.Tensor) and value.requires_grad:
            found.append(value)
    return found


def _outputs(func: Callable[..., Any], inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(o for o in _tuple(func(*inputs)) if _is_differentiable(o))


def _components(tensor: Any) -> list[complex]:
    # A complex number moves in two directions.
    return [1.0, 1j] if tensor.is_complex() else [1.0]


def _numerical_columns(func: Callable[..., Any], inputs: tuple[Any, ...], leaf: Any, eps: float) -> list[list[Any]]:
    """Directional derivatives of every output: for each element of the leaf, one for each component."""
    flat_index = list(product(*(range(n) for n in leaf.shape)))
    data = leaf.data  # shares memory: a write moves the input, and does not count as one to graphs over it
    columns = []
    for index in flat_index:
        directions = []
        for component in _components(leaf):
            old = data[index].item()
            with rushlight.no_grad():
                data[index] = old - eps * component
                low = [o.detach().clone() for o in _outputs(func, inputs)]
                data[index] = old + eps * component
                high = [o.detach().clone() for o in _outputs(func, inputs)]
                data[index] = old
            directions.append([(h - l) / (2 * eps) for h, l in zip(high, low, strict=True)])
        columns.append(directions)
    return columns


def get_numerical_jacobian(fn: Callable[..., Any], inputs: Any, eps: float = 1e-6, output: int = 0) -> list[Any]:
    """The Jacobian of one output by central differences: a matrix (input elements, output elements) for each input.

    For complex inputs an entry is ds/dx + i ds/dy of the two components of the input element, as the conjugate
    Wirtinger convention of gradients has it for a real output.
    """
    inputs = _tuple(inputs)
    result = []
    for leaf in _leaves(inputs):
        columns = _numerical_columns(fn, inputs, leaf, eps)
        rows = [
            sum(d[output].reshape(-1) * c for d, c in zip(dirs, _components(leaf), strict=True)) for dirs in columns
        ]
        result.append(rushlight.stack(rows) if rows else None)
    return result


def get_analytical_jacobian(inputs: Any, output: Any) -> list[Any]:
    """The Jacobian of an output by backward: for each input, a matrix (input elements, output elements)."""
    leaves = _leaves(_tuple(inputs))
    columns: list[list[Any]] = [[] for _ in leaves]
    for index in product(*(range(n) for n in output.shape)):
        seed = rushlight.zeros_like(output)
        seed[index] = 1
        grads = rushlight.autograd.grad(output, leaves, seed, retain_graph=True, allow_unused=True)
        for column, g, leaf in zip(columns, grads, leaves, strict=True):
            column.append(rushlight.zeros_like(leaf).reshape(-1) if g is None else g.detach().reshape(-1))
    return [rushlight.stack(c, 1) if c else None for c in columns]


def _inner(a: Any, b: Any) -> float:
    """Re <a, b>, the product in which a gradient is the adjoint of a derivative."""
    if a.is_complex() or b.is_complex():
        return float(complex((a * b.conj()).sum().item()).real)
    return float((a * b).sum().item())


def _close(a: float, b: float, atol: float, rtol: float) -> bool:
    return abs(a - b) <= atol + rtol * abs(b)


def _gradients(output: Any, leaves: list[Any], seed: Any) -> list[Any]:
    grads = rushlight.autograd.grad(output, leaves, seed, retain_graph=True, allow_unused=True)
    return [rushlight.zeros_like(leaf) if g is None else g for g, leaf in zip(grads, leaves, strict=True)]


def _check_slow(
    func: Callable[..., Any],
    inputs: tuple[Any, ...],
    leaves: list[Any],
    eps: float,
    atol: float,
    rtol: float,
    nondet_tol: float,
) -> None:
    numerical = [_numerical_columns(func, inputs, leaf, eps) for leaf in leaves]
    outputs = _outputs(func, inputs)
    for k, output in enumerate(outputs):
        if not output.requires_grad:
            continue
        for index in product(*(range(n) for n in output.shape)):
            for component in _components(output):
                seed = rushlight.zeros_like(output)
                seed[index] = component
                grads = _gradients(output, leaves, seed)
                again = _gradients(output, leaves, seed)
                for i, (leaf, g, h) in enumerate(zip(leaves, grads, again, strict=True)):
                    _check_deterministic(g, h, k, i, nondet_tol)
                    _compare_entry(leaf, g, numerical[i], k, i, index, component, atol, rtol)


def _check_deterministic(g: Any, h: Any, k: int, i: int, nondet_tol: float) -> None:
    if g.numel() and not bool(((g - h).abs() <= nondet_tol).all().item()):
        raise GradcheckError(
            "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times "
            "gives different "
            "values, although analytical gradient matches numerical gradient. The tolerance for nondeterminism "
            f"was {nondet_tol}. "
            f"(output {k}, input {i})"
        )


def _compare_entry(
    leaf: Any,
    g: Any,
    columns: list[list[Any]],
    k: int,
    i: int,
    index: Any,
    component: complex,
    atol: float,
    rtol: float,
) -> None:
    # Moving element e of the input in a direction d changes Re(conj(seed) output) by the numerical value; the gradient
    # says Re(conj(d) g[e]).
    flat = g.reshape(-1)
    for e, directions in enumerate(columns):
        for d, derivative in zip(_components(leaf), directions, strict=True):
            numeric = derivative[k][index].item()
            numeric = (complex(numeric) * complex(component).conjugate()).real
            analytic = (complex(flat[e].item()) * complex(d).conjugate()).real
            if not _close(analytic, numeric, atol, rtol):
                raise GradcheckError(
                    f"Jacobian mismatch for output {k} with respect to input {i}: at output index {tuple(index)} "
                    "and input "
                    f"element {e} (shapes {tuple(derivative[k].shape)} and {tuple(leaf.shape)})\n"
                    f"numerical: {numeric!r}\nanalytical: {analytic!r}\n(tolerance {atol} + {rtol} x numerical)"
                )


def _check_fast(
    func: Callable[..., Any],
    inputs: tuple[Any, ...],
    leaves: list[Any],
    eps: float,
    atol: float,
    rtol: float,
    nondet_tol: float,
) -> None:
    generator = rushlight.Generator().manual_seed(20)

    def random_like(t: Any) -> Any:
        dtype = t.dtype
        if t.is_complex():
            real = rushlight.float64 if dtype == rushlight.complex128 else rushlight.float32
            u = rushlight.rand(t.shape, generator=generator, dtype=real)
            v = rushlight.rand(t.shape, generator=generator, dtype=real)
            return (u - 0.5) + (v + 0.5) * 1j
        return rushlight.rand(t.shape, generator=generator, dtype=dtype) + 0.5

    outputs = _outputs(func, inputs)
    seeds = [random_like(o) for o in outputs]
    for i, leaf in enumerate(leaves):
        direction = random_like(leaf)
        data = leaf.data
        old = data.clone()
        with rushlight.no_grad():
            data.copy_(old - eps * direction)
            low = [o.detach().clone() for o in _outputs(func, inputs)]
            data.copy_(old + eps * direction)
            high = [o.detach().clone() for o in _outputs(func, inputs)]
            data.copy_(old)
        for k, (output, seed) in enumerate(zip(_outputs(func, inputs), seeds, strict=True)):
            numeric = _inner((high[k] - low[k]) / (2 * eps), seed)
            if output.requires_grad:
                (g,) = _gradients(output, [leaf], seed)
                (h,) = _gradients(output, [leaf], seed)
                _check_deterministic(g, h, k, i, nondet_tol)
                analytic = _inner(g, direction)
            else:
                analytic = 0.0
            scale = max(1.0, float(leaf.numel() * output.numel()) ** 0.5)
            if not _close(analytic, numeric, atol * scale, rtol):
                raise GradcheckError(
                    f"Jacobian mismatch for output {k} with respect to input {i} (fast mode, along one random "
                    "direction; shapes "
                    f"{tuple(output.shape)} and {tuple(leaf.shape)})\nnumerical: {numeric!r}\nanalytical: {analytic!r}"
                )


def _check_inputs(inputs: tuple[Any, ...], leaves: list[Any]) -> None:
    if not leaves:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of the them have "
            "requires_grad=True."
        )
    for i, leaf in enumerate(leaves):
        if not (leaf.dtype == rushlight.float64 or leaf.dtype == rushlight.complex128):
            warnings.warn(
                f"Input #{i} requires gradient and is not a double precision floating point or complex. This check "
                "will likely fail "
                "if all the inputs are not of double precision floating point or complex.",
                stacklevel=3,
            )
        if any(stride == 0 and size > 1 for stride, size in zip(leaf.stride(), leaf.shape, strict=True)):
            raise RuntimeError(
                f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs that are "
                "non-overlapping to be able "
                "to compute the numerical gradients correctly. You should call .contiguous on the input before "
                "passing it to gradcheck."
            )


def _check_layout_and_type(outputs: tuple[Any, ...], leaves: list[Any], check_dtypes: bool) -> None:
    grads = rushlight.autograd.grad(
        outputs, leaves, [rushlight.zeros_like(o) for o in outputs], retain_graph=True, allow_unused=True
    )
    for i, (g, leaf) in enumerate(zip(grads, leaves, strict=True)):
        if g is None:
            continue
        if bool((g != 0).any().item()):
            raise GradcheckError(f"backward not multiplied by grad_output (input {i})")
        if check_dtypes and g.dtype != leaf.dtype:
            raise GradcheckError(f"grad has the wrong dtype; expected {leaf.dtype}, got {g.dtype} (input {i})")
        if tuple(g.shape) != tuple(leaf.shape):
            raise GradcheckError(
                f"grad is incorrect size; expected {tuple(leaf.shape)}, got {tuple(g.shape)} (input {i})"
            )


def _check_undefined(func: Callable[..., Any], inputs: tuple[Any, ...], leaves: list[Any]) -> None:
    """Backward must take a missing gradient of any output, of some and of all, as zeros."""

    def check(outputs: tuple[Any, ...], pick: Callable[[int], bool]) -> None:
        defined = _WithoutGradients.apply(tuple(pick(i) for i in range(len(outputs))), *outputs)
        try:
            grads = rushlight.autograd.grad(
                defined, leaves, [rushlight.ones_like(o) for o in defined], allow_unused=True, retain_graph=True
            )
        except RuntimeError as error:
            raise GradcheckError(
                'Expected backward function to handle undefined output grads. Please look at "Notes about '
                "undefined output "
                f'gradients": it raised {error}'
            ) from error
        if all(not pick(i) for i in range(len(outputs))):
            for i, g in enumerate(grads):
                if g is not None and bool((g != 0).any().item()):
                    raise GradcheckError(
                        "Expected all input grads to be undefined or zero when all output grads are undefined or "
                        f"zero (input {i})"
                    )

    outputs = tuple(o for o in _outputs(func, inputs) if o.requires_grad)
    if not outputs:
        return
    check(outputs, lambda i: False)
    if len(outputs) > 1:
        for missing in range(len(outputs)):
            outputs = tuple(o for o in _outputs(func, inputs) if o.requires_grad)
            check(outputs, lambda i, m=missing: i != m)  # type: ignore[misc]


class _WithoutGradients(rushlight.autograd.Function):
    """The identity; some of its inputs get no gradient."""

    @staticmethod
    def forward(ctx: Any, passed: tuple[bool, ...], *tensors: Any) -> Any:
        ctx.passed = passed
        return tuple(t.clone() for t in tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return (None, *(g if p else None for p, g in zip(ctx.passed, grads, strict=True)))


def _check_no_gradient(func: Callable[..., Any], inputs: tuple[Any, ...], leaves: list[Any], eps: float) -> None:
    for i, leaf in enumerate(leaves):
        for e, directions in enumerate(_numerical_columns(func, inputs, leaf, eps)):
            if any(bool((d != 0).any().item()) for derivative in directions for d in derivative):
                raise GradcheckError(
                    "Numerical gradient for function expected to be zero: its outputs do not require grad, but "
                    "change with "
                    f"element {e} of input {i}"
                )


def _check(func: Callable[..., Any], inputs: tuple[Any, ...], options: dict[str, Any]) -> None:
    leaves = _leaves(inputs)
    _check_inputs(inputs, leaves)
    for leaf in leaves:
        if not leaf.is_leaf:
            leaf.retain_grad()
    outputs = _outputs(func, inputs)
    if not any(o.requires_grad for o in outputs):
        _check_no_gradient(func, inputs, leaves, options["eps"])
        return
    check = _check_fast if options["fast_mode"] else _check_slow
    check(func, inputs, leaves, options["eps"], options["atol"], options["rtol"], options["nondet_tol"])
    differentiable = tuple(o for o in outputs if o.requires_grad)
    _check_layout_and_type(differentiable, leaves, options["check_grad_dtypes"])
    if options["check_undefined_grad"]:
        _check_undefined(func, inputs, leaves)


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Compares the gradients of a function with central differences.

    Args:
        func: takes tensors and returns a tensor or a tuple of tensors.
        inputs: its arguments; those that require grad should be float64 or complex128.
        eps: the step of the differences.
        atol: absolute tolerance.
        rtol: relative tolerance.
        raise_exception: whether a failure raises; otherwise the result is False.
        nondet_tol: how much two runs of the same backward may differ.
        check_undefined_grad: also check that backward takes missing gradients as zeros.
        check_grad_dtypes: also check that gradients have the dtype of their inputs.
        check_batched_grad: also check that batched gradients agree with single ones.
        check_forward_ad: also check the tangents of forward mode.
        check_batched_forward_grad: also check that tangents of a batch of directions agree with single ones.
        check_backward_ad: whether to check gradients at all.
        fast_mode: compare along one random direction instead of entry by entry.

    Raises:
        GradcheckError: a gradient does not agree.
        ValueError: no input requires grad.

    Example::

        >>> x = rushlight.randn(3, dtype=rushlight.float64, requires_grad=True)
        >>> rushlight.autograd.gradcheck(lambda x: x.exp(), x)
        True
    """
    if not check_backward_ad and not check_forward_ad:
        raise ValueError("gradcheck: expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_batched_grad and not check_backward_ad:
        raise ValueError("gradcheck: check_batched_grad=True; expected check_backward_ad=True with it")
    if check_batched_forward_grad and not check_forward_ad:
        raise ValueError("gradcheck: check_batched_forward_grad=True; expected check_forward_ad=True with it")
    options = {
        "eps": eps,
        "atol": atol,
        "rtol": rtol,
        "nondet_tol": nondet_tol,
        "check_undefined_grad": check_undefined_grad,
        "check_grad_dtypes": check_grad_dtypes,
        "fast_mode": fast_mode,
    }
    arguments = _tuple(inputs)
    try:
        if check_forward_ad:
            _check_forward(func, arguments, eps, atol, rtol, fast_mode, check_batched_forward_grad)
        if check_backward_ad:
            _check(func, arguments, options)
        if check_batched_grad:
            _check_batched(func, arguments)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _tangents(func: Callable[..., Any], inputs: tuple[Any, ...], leaf: Any, direction: Any) -> list[Any]:
    """The tangents of the outputs when one input moves in a direction; zeros for outputs that do not follow."""
    from rushlight.func import _rules

    with _rules.entered(_rules.Level()) as level:
        dual = level.dual(leaf.detach(), direction).requires_grad_()  # func may differentiate by it
        result = []
        for o in _outputs(func, tuple(dual if t is leaf else t for t in inputs)):
            found = _rules.unwrap(o)
            own = found is not None and found[0] == level.number
            result.append(found[2].detach() if own else rushlight.zeros_like(o.detach()))
    return result


def _check_forward(
    func: Callable[..., Any],
    inputs: tuple[Any, ...],
    eps: float,
    atol: float,
    rtol: float,
    fast: bool,
    batched: bool,
) -> None:
    from rushlight.func import vmap

    leaves = _leaves(inputs)
    _check_inputs(inputs, leaves)
    for i, leaf in enumerate(leaves):
        columns = _numerical_columns(func, inputs, leaf, eps)
        directions, numerical = [], []
        for index, derivatives in zip(product(*(range(n) for n in leaf.shape)), columns, strict=True):
            for component, derivative in zip(_components(leaf), derivatives, strict=True):
                direction = rushlight.zeros_like(leaf.detach())
                direction[index] = component
                directions.append(direction)
                numerical.append(derivative)
        if fast and directions:  # along the sum of them, with weights
            weights = rushlight.rand(len(directions), dtype=rushlight.float64) + 0.5
            directions = [sum(d * w for d, w in zip(directions, weights, strict=True))]
            numerical = [
                [sum(n[k] * w for n, w in zip(numerical, weights, strict=True)) for k in range(len(numerical[0]))]
            ]
        single = [_tangents(func, inputs, leaf, d) for d in directions]
        for tangents, expected in zip(single, numerical, strict=True):
            for k, (t, n) in enumerate(zip(tangents, expected, strict=True)):
                if not bool(((t - n).abs() <= atol + rtol * n.abs()).all().item()):
                    raise GradcheckError(
                        f"Jacobian computed with forward mode mismatch for output {k} with respect to input {i},\n"
                        f"numerical: {n}\nanalytical: {t}\n(tolerance {atol} + {rtol} x numerical)"
                    )
        if batched and directions:
            together = vmap(lambda d, leaf=leaf: tuple(_tangents(func, inputs, leaf, d)))(rushlight.stack(directions))
            for k, t in enumerate(together):
                expected = rushlight.stack([s[k] for s in single])
                if not bool(((t - expected).abs() <= 1e-6 + 1e-5 * expected.abs()).all().item()):
                    raise GradcheckError(
                        "While computing batched forward gradients, got another result than one by one "
                        f"(output {k}, input {i})"
                    )


def _check_batched(func: Callable[..., Any], inputs: tuple[Any, ...]) -> None:
    leaves = _leaves(inputs)
    for k, output in enumerate(_outputs(func, inputs)):
        if not output.requires_grad:
            continue
        seeds = [rushlight.randn_like(output) for _ in range(3)]
        single = [_gradients(output, leaves, s) for s in seeds]
        batched = rushlight.autograd.grad(
            output, leaves, rushlight.stack(seeds), retain_graph=True, allow_unused=True, is_grads_batched=True
        )
        for i, b in enumerate(batched):
            if b is None:
                continue
            expected = rushlight.stack([s[i] for s in single])
            if not bool(((b - expected).abs() <= 1e-6 + 1e-5 * expected.abs()).all().item()):
                raise GradcheckError(
                    f"While computing batched gradients, got another result than one by one (output {k}, input {i})"
                )


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Compares second derivatives of a function with central differences of its gradients.

    Args:
        func: takes tensors and returns a tensor or a tuple of tensors.
        inputs: its arguments; those that require grad should be float64 or complex128.
        grad_outputs: gradients of the outputs. Default: random ones that require grad, so that the dependence on
            them is checked too.
        gen_non_contig_grad_outputs: whether the random ones are not contiguous.
        check_fwd_over_rev: also check forward mode over the gradient.
        check_rev_over_rev: whether to check gradients of the gradient.

    The other arguments are those of `gradcheck`.

    Example::

        >>> x = rushlight.randn(3, dtype=rushlight.float64, requires_grad=True)
        >>> rushlight.autograd.gradgradcheck(lambda x: x.exp(), x)
        True
    """
    if not check_rev_over_rev and not check_fwd_over_rev:
        raise ValueError("gradgradcheck: expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    arguments = _tuple(inputs)
    if grad_outputs is None:
        outputs = _outputs(func, arguments)
        seeds = []
        for output in outputs:
            seed = rushlight.randn_like(output.detach())
            if gen_non_contig_grad_outputs and seed.dim():
                seed = rushlight.stack([seed, seed], -1)[..., 0]
            seeds.append(seed.detach().requires_grad_())
        grad_outputs = tuple(seeds)
    else:
        grad_outputs = _tuple(grad_outputs)
    count = len(grad_outputs)

    def first_derivative(*values: Any) -> tuple[Any, ...]:
        given, seeds = values[: len(values) - count], values[len(values) - count :]
        leaves = _leaves(given)
        # Leaves of the outer check stay what they are; the inner gradient is recorded with respect to aliases of them.
        outputs = _outputs(func, given)
        pairs = [(o, s) for o, s in zip(outputs, seeds, strict=True) if o.requires_grad]
        grads = rushlight.autograd.grad(
            [o for o, _ in pairs], leaves, [s for _, s in pairs], create_graph=True, allow_unused=True
        )
        # The gradient of a sum is the incoming gradient itself.
        return tuple(g.view_as(g) if any(g is s for s in seeds) else g for g in grads if g is not None)

    def with_grad(*values: Any) -> tuple[Any, ...]:
        with rushlight.enable_grad():  # finite differences run under no_grad
            return first_derivative(*values)

    return gradcheck(
        with_grad,
        arguments + grad_outputs,
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad and check_rev_over_rev,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
    )


class _Function(ModuleType):
    """This module, whose import binds it to the name of the function in rushlight.autograd."""

    def __call__(self, *args: Any, **options: Any) -> bool:
        return gradcheck(*args, **options)


sys.modules[__name__].__class__ = _Function
