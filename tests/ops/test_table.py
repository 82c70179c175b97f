"""Every record of the pointwise, reduction, scan, sorting and matrix families, found in the table and tried by itself.

A record needs no test of its own to be checked here: its results must not depend on memory layout, ``out=`` and the
in-place twin must agree with them, its derivatives with finite differences to second order, and vmap and forward mode
with loops and gradients.
"""

from __future__ import annotations

import ast
import itertools
import warnings
from typing import Any

import pytest

import rushlight as torch
from rushlight import _C
from rushlight.func import jvp, vmap
from rushlight.func._rules import rule_of
from rushlight.ops._lookup import all_records
from rushlight.ops._record import Operation

RECORDS = all_records()
FAMILIES = ("reduction", "scan", "sorting", "matrix")
DOMAINS = ((0.2, 0.8), (1.2, 2.8), (-0.8, -0.2))
SHAPES = ((3, 3), (3,), (2, 3, 3))
BATCH = 3

# Arguments that have no default, by name: what they are tried with.
GIVEN: dict[str, Any] = {
    "dim": 0, "dims": [0], "keepdim": False, "k": 2,
    "order": 1, "ord": 2.0, "repeats": [2, 1], "size": [3, 3], "diagonal": 0,
    "n": 3, "unbiased": True, "stable": True, "dtype": torch.float64, "factor": 2.0,
}  # fmt: skip


def arguments_of(operation: Operation) -> list[Any] | None:
    """Everything but the tensors (which stay None); None where a value is missing."""
    values: list[Any] = []
    for a in operation.arguments:
        if a.type in ("Tensor", "Tensor|Scalar") and not a.optional:
            values.append(None)
        elif a.default is not None:
            values.append(_default(a.default))
        elif a.type == "str" and operation.name.endswith("einsum"):
            return None
        elif a.name in GIVEN:
            values.append([0] if a.type == "int[]" and a.name == "dim" else GIVEN[a.name])
        elif a.type == "Scalar":
            values.append(0.5)
        elif a.optional:
            values.append(None)
        else:
            return None
    return values


def _default(text: str) -> Any:
    if text.startswith("'"):
        return text.strip("'")
    return float("inf") if text == "inf" else ast.literal_eval(text)


class Sample:
    """A record with tensors that it accepts."""

    def __init__(self, operation: Operation, shapes: tuple[Any, ...], domain: tuple[float, float]) -> None:
        self.operation = operation
        self.places = [
            i for i, a in enumerate(operation.arguments) if a.type in ("Tensor", "Tensor|Scalar") and not a.optional
        ]
        given = arguments_of(operation)
        assert given is not None
        self.given = given
        low, high = domain
        self.tensors = [torch.rand(s, dtype=torch.float64) * (high - low) + low for s in shapes]
        for k, place in enumerate(self.places):
            if operation.arguments[place].name == "condition":
                self.tensors[k] = self.tensors[k] > (low + high) / 2
        self.function = _C.private_operation(operation.name)

    def __call__(self, *tensors: Any, out: Any = None) -> Any:
        values = list(self.given)
        for place, tensor in zip(self.places, tensors, strict=True):
            values[place] = tensor
        positional = [v for v, a in zip(values, self.operation.arguments, strict=True) if not a.keyword_only]
        named = {a.name: v for v, a in zip(values, self.operation.arguments, strict=True) if a.keyword_only}
        if out is not None:
            named["out"] = out
        return self.function(*positional, **named)


def sample(name: str, shapes: Any = SHAPES) -> Sample | None:
    """The first sample of random tensors that the operation takes and answers with finite numbers."""
    operation = RECORDS[name]
    if arguments_of(operation) is None or operation.random:
        return None
    count = sum(a.type in ("Tensor", "Tensor|Scalar") and not a.optional for a in operation.arguments)
    if {"size", "keepdim"} <= {a.name for a in operation.arguments}:
        shapes = ((3,),)  # reduced, and to be repeated to the given size
    domains = (operation.gradient_domain,) if operation.gradient_domain else DOMAINS
    for domain in domains:
        for combination in itertools.product(shapes, repeat=count):
            torch.manual_seed(len(name))
            found = Sample(operation, combination, domain)
            try:
                results = tensors_of(found(*found.tensors))
            except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError):
                continue
            if results and all(r.isfinite().all() for r in results if r.is_floating_point()):
                return found
    return None


def tensors_of(results: Any) -> list[Any]:
    items = results if isinstance(results, (tuple, list)) else (results,)
    return [r for r in items if isinstance(r, torch.Tensor)]


def same(a: Any, b: Any, rtol: float = 1e-10) -> bool:
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(same(x, y, rtol) for x, y in zip(a, b, strict=True))
    if not isinstance(a, torch.Tensor):
        return bool(a == b)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.is_floating_point() or a.is_complex():
        return torch.allclose(a, b, rtol=rtol, atol=1e-12, equal_nan=True)
    return torch.equal(a, b)


def has_derivative(found: Sample, i: int) -> bool:
    """False for an argument by which PyTorch refuses to differentiate as well, with NotImplementedError."""
    if not found.tensors[i].is_floating_point():
        return False
    tensors = [t.detach().clone() for t in found.tensors]
    tensors[i].requires_grad_()
    results = [r for r in tensors_of(found(*tensors)) if r.requires_grad]
    try:
        for r in results:
            r.sum().backward(retain_graph=True)
    except NotImplementedError:
        return False
    return True


POINTWISE = [n for n, r in RECORDS.items() if r.kind == "elementwise"]
OTHERS = [
    n for n, r in RECORDS.items() if r.kind != "elementwise" and r.module in FAMILIES and arguments_of(r) is not None
]
DIFFERENTIABLE = [n for n in POINTWISE + OTHERS if RECORDS[n].derivative]


def of_floats(name: str) -> bool:
    return "float" in str(RECORDS[name].options.get("types", "float")).split()


@pytest.mark.parametrize("name", [n for n in POINTWISE if of_floats(n)])
def test_pointwise_results_do_not_depend_on_layout(name: str) -> None:
    found = sample(name, ((4, 6),))
    assert found, f"{name}: no sample of its gradient_domain, or of the usual ones, gives finite results"
    want = found(*found.tensors)
    strided = [t.t().contiguous().t() for t in found.tensors]
    assert same(found(*strided), want, 0)
    gaps = [torch.stack([t, t], -1)[..., 0] for t in found.tensors]
    assert same(found(*gaps), want, 0)
    for i, j in ((0, 0), (3, 5)):
        assert same(found(*(t[i, j] for t in found.tensors)), want[i, j], 0)
    empty = found(*(t[:0] for t in found.tensors))
    assert empty.shape == (0, 6) and empty.dtype == want.dtype
    rows = [found.tensors[0], *(t[:1] for t in found.tensors[1:])]
    wide = [found.tensors[0], *(t[:1].expand(4, 6).contiguous() for t in found.tensors[1:])]
    assert same(found(*rows), found(*wide), 0)
    operation = found.operation
    if operation.out:
        target = torch.empty((0,), dtype=want.dtype)
        assert found(*found.tensors, out=target) is target and same(target, want, 0)
    if operation.inplace and want.dtype == torch.float64:
        first = found.tensors[0].clone()
        write = _C.private_operation(operation.name + "_")
        values = list(found.given)
        for place, tensor in zip(found.places, [first, *found.tensors[1:]], strict=True):
            values[place] = tensor
        positional = [v for v, a in zip(values, operation.arguments, strict=True) if not a.keyword_only]
        named = {a.name: v for v, a in zip(values, operation.arguments, strict=True) if a.keyword_only}
        assert write(*positional, **named) is first and same(first, want, 0)
    if operation.reference is not None:
        expected = operation.reference(*(t.numpy() for t in found.tensors))
        assert torch.allclose(want, torch.from_numpy(expected), rtol=1e-12)


@pytest.mark.parametrize("name", POINTWISE + OTHERS)
def test_lazy_inputs_count_as_their_numbers(name: str) -> None:
    found = sample(name)
    if found is None:
        pytest.skip("needs tensors other than random numbers: compared by tests of its own")
    negated = [torch._neg_view(-t) if t.is_floating_point() else t for t in found.tensors]
    assert same(found(*negated), found(*found.tensors), 0)
    numbers = [torch.complex(t, t.flip(-1)) if t.is_floating_point() else t for t in found.tensors]
    try:
        want = found(*numbers)
    except (RuntimeError, TypeError):
        return  # not for complex numbers
    assert same(found(*(t.resolve_conj().conj() for t in (n.conj() for n in numbers))), want, 0)


WITH_OUTPUTS = [
    n
    for n, r in RECORDS.items()
    if (r.out or r.inplace) and not (r.random or r.writes_self or r.module == "older") and arguments_of(r) is not None
]


def overlapping(x: torch.Tensor, shape: Any) -> Any:
    """(a view with the values of x, a view of this shape that shares memory with it), in several ways."""
    n, count = x.numel(), torch.Size(shape).numel()
    for shift in (0, 1, -1, n // 2):
        memory = torch.zeros(2 * (n + count), dtype=x.dtype)
        first = memory[count : count + n].view(x.shape)
        yield first.copy_(x), memory[count + shift : 2 * count + shift].view(shape)
    if n > 1 and tuple(shape) == tuple(x.shape):
        for view in (lambda t: t.flip(0) if t.dim() == 0 else t[::-1], lambda t: t.transpose(0, -1)):
            first = x.clone()
            if view(first).shape == first.shape:
                yield first, view(first)


@pytest.mark.parametrize("name", WITH_OUTPUTS)
def test_outputs_that_overlap_an_input_are_right_or_refused(name: str) -> None:
    found = sample(name)
    if found is None:
        pytest.skip("needs tensors other than random numbers")
    operation = found.operation
    results = tensors_of(found(*found.tensors))

    def tried(call: Any, expected: Any) -> None:
        try:
            got = call()
        except RuntimeError as error:
            refusal = str(error)
        else:
            assert same(got, expected, 0)
            return
        assert any(word in refusal for word in ("overlap", "memory", "alias"))

    for k, x in enumerate(found.tensors):
        for i, result in enumerate(results if operation.out else ()):
            if result.dtype != x.dtype or not result.numel() * x.numel():
                continue
            for first, target in overlapping(x, result.shape):
                tensors = [first if j == k else t for j, t in enumerate(found.tensors)]
                expected = tensors_of(found(*(t.clone() for t in tensors)))[i]
                outs = [target if j == i else torch.empty(0, dtype=r.dtype) for j, r in enumerate(results)]
                tried(lambda t=tensors, o=outs: (found(*t, out=o[0] if len(o) == 1 else tuple(o)), o)[1][i], expected)
        if operation.inplace and k > 0 and x.dtype == found.tensors[0].dtype and results[0].dtype == x.dtype:
            written = Sample.__new__(Sample)
            written.__dict__.update(found.__dict__, function=_C.private_operation(operation.name + "_"))
            for first, target in overlapping(x, found.tensors[0].shape):
                tensors = [first if j == k else t for j, t in enumerate(found.tensors)]
                tensors[0] = target
                copies = [t.clone() for t in tensors]
                try:
                    expected = tensors_of(written(*copies))[0]
                except (RuntimeError, IndexError):
                    continue
                tried(lambda t=tensors: written(*t), expected)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_derivatives_are_differences_to_second_order(name: str) -> None:
    found = sample(name)
    if found is None:
        pytest.skip("needs tensors other than random numbers: compared by tests of its own")
    inputs = [t.requires_grad_() if has_derivative(found, i) else t for i, t in enumerate(found.tensors)]

    def differentiable(*tensors: Any) -> Any:
        return tuple(r for r in tensors_of(found(*tensors)) if r.is_floating_point())

    if not any(r.requires_grad for r in differentiable(*inputs)):
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert torch.autograd.gradcheck(differentiable, inputs, atol=1e-6, rtol=1e-4, check_forward_ad=True)
        assert torch.autograd.gradgradcheck(differentiable, inputs, atol=1e-6, rtol=1e-4, check_fwd_over_rev=True)


def test_what_runs_example_by_example_says_so() -> None:
    """A record has a batch rule, or its family's, or names the loop. It prints those that do: pytest -rP."""
    loops = []
    for name, record in RECORDS.items():
        composite = record.kind == "composite" or record.options.get("composite")
        if composite or record.random or not any(a.type.startswith("Tensor") for a in record.arguments):
            continue  # made of other operations, or drawn anew, or never given a batch
        if rule_of(record) == "loop":
            assert record.batch == "loop", f"{name} has no batch rule; write one, or batch='loop'"
            loops.append(name)
    print("example by example:", *loops)
    in_networks = {n for n in loops if RECORDS[n].module in ("network", "pooling", "normalization", "loss", "matrix")}
    assert not in_networks


def test_the_loop_over_examples_is_right_and_silent() -> None:
    x = torch.randn(4, 5, dtype=torch.float64)
    index = torch.tensor([[2, 1, 0], [0, 2, 2], [1, 1, 0], [4, 3, 4]])
    programs = {
        "take": lambda x, i: x.take(i),
        "put": lambda x, i: x.put(i, x[:3], accumulate=True),
        "index_put_": lambda x, i: x.clone().index_put_((i,), x[:3], accumulate=True),
        "masked_scatter": lambda x, i: x.masked_scatter(x > 0, x * 2),
        "histc": lambda x, i: torch.histc(x, 3, -1, 1),
        "bincount": lambda x, i: torch.bincount(i, minlength=5),
        "searchsorted": lambda x, i: torch.searchsorted(x.sort()[0], i.double()),
        "isin": lambda x, i: torch.isin(i, i[:1]),
        "median": lambda x, i: x.median(),
    }
    for name, program in programs.items():
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            got = vmap(program)(x, index)
        assert got.equal(torch.stack([program(*row) for row in zip(x, index, strict=True)])), name


@pytest.mark.parametrize("name", [n for n in POINTWISE if of_floats(n)] + OTHERS)
def test_vmap_and_forward_mode_follow(name: str) -> None:
    found = sample(name)
    if found is None:
        pytest.skip("needs tensors other than random numbers: compared by tests of its own")
    operation = found.operation
    if operation.batch == "dynamic":
        with pytest.raises(RuntimeError, match="dynamic shape"):
            vmap(found)(*(torch.stack([t] * BATCH) for t in found.tensors))
        return
    if not tensors_of(found(*found.tensors)) or (operation.inplace is False and operation.name.endswith("_")):
        return
    batches = [torch.stack([t + 0.05 * i if t.is_floating_point() else t for i in range(BATCH)]) for t in found.tensors]
    rows = [tensors_of(found(*(b[i] for b in batches))) for i in range(BATCH)]
    got = tensors_of(vmap(lambda *t: tuple(tensors_of(found(*t))))(*batches))
    assert same(got, [torch.stack([r[k] for r in rows]) for k in range(len(rows[0]))])
    if not all(has_derivative(found, i) for i in range(len(found.tensors))):
        return
    inputs = [t.clone().requires_grad_() for t in found.tensors]
    results = [r for r in tensors_of(found(*inputs)) if r.is_floating_point() and r.requires_grad]
    if not results:
        return
    weights = [torch.rand_like(r.detach()) for r in results]
    loss = sum((r * w).sum() for r, w in zip(results, weights, strict=True))
    gradients = torch.autograd.grad(loss, inputs, allow_unused=True, materialize_grads=True)
    directions = tuple(torch.rand_like(t) for t in found.tensors)

    def weighted(*tensors: Any) -> Any:
        floats = [r for r in tensors_of(found(*tensors)) if r.is_floating_point()]
        return sum((r * w).sum() for r, w in zip(floats[: len(weights)], weights, strict=True))

    tangent = jvp(weighted, tuple(found.tensors), directions)[1]
    assert same(tangent, sum((g * d).sum() for g, d in zip(gradients, directions, strict=True)), 1e-8)


def test_the_walk_reaches_most_of_the_table() -> None:
    reached = [n for n in DIFFERENTIABLE if sample(n) is not None]
    assert len(reached) > 0.8 * len(DIFFERENTIABLE), sorted({*DIFFERENTIABLE} - {*reached})
