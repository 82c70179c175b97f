"""Reading derivatives from the records, and writing them down as lists of operations."""

import pytest


def trace(rl, formula, *values, targets=1):
    from rushlight.ops import _trace

    return _trace.trace(formula, values, targets, int(targets > 1))


def test_every_formula_of_every_record_can_be_read(rl):
    from rushlight.ops import _lookup, _trace

    count = 0
    for operation in _lookup.all_records().values():
        for targets, sources, formula, _ in _trace.derivative(operation.module, operation.name, operation.overload):
            assert targets and callable(formula)
            assert len(sources) == len(_trace.parameter_names(formula))
            count += 1
    assert count > 50


def test_operators_and_methods(rl):
    g = rl.ones(2, 3)
    guards, instructions, results = trace(rl, lambda grad, other: -(grad * other).sum(0, keepdim=True), g, g)
    assert guards == []
    assert len(instructions) == 3
    assert results == [("t", 2)]


def test_functions(rl):
    from rushlight.ops._record import rl as namespace

    g = rl.ones(2, 3)
    _, instructions, _ = trace(rl, lambda grad, a: namespace.where(a > 0, grad, 0.0), g, g)
    assert len(instructions) == 2


def test_numbers_and_shapes_pass_through_without_guards(rl):
    g = rl.ones(2, 3)
    guards, instructions, _ = trace(
        rl, lambda grad, alpha, self_shape: (grad * alpha).expand(self_shape), g, 2.0, (2, 3)
    )
    assert guards == []
    assert instructions[0][2][1] == ("p", 1)
    assert instructions[1][2][1] == ("p", 2)


def test_a_branch_on_a_number_makes_a_guard(rl):
    g = rl.ones(2)
    formula = lambda grad, alpha: grad if alpha == 1 else grad * alpha
    assert trace(rl, formula, g, 1) == ([("equal", 1, 1)], [], [("p", 0)])
    guards, instructions, _ = trace(rl, formula, g, 3)
    assert guards == [("equal", 1, 3)] and len(instructions) == 1


def test_shape_arithmetic_makes_a_guard(rl):
    g = rl.ones(())
    guards, instructions, _ = trace(rl, lambda grad, self_shape: grad / (self_shape[0] * len(self_shape)), g, (3, 4))
    assert guards == [("equal", 1, (3, 4))]
    assert instructions[0][2][1] == ("c", 6)
    guards, _, _ = trace(rl, lambda grad: grad.view(grad.shape[0], 1) if grad.dim() == 1 else grad, rl.ones(3))
    assert guards == [("shape", 0, (3,))]
    guards, _, _ = trace(rl, lambda grad: grad.conj() if grad.is_complex() else grad, rl.ones(3))
    assert guards == [("dtype", 0, rl.float32)]


def test_none_and_several_results(rl):
    g = rl.ones(2)
    guards, _, results = trace(rl, lambda grad, w: (grad * 2, None if w is None else grad * w), g, None, targets=2)
    assert guards == [("none", 1, None)]
    assert results == [("t", 0), ("c", None)]


def test_what_cannot_be_written_down(rl):
    g = rl.ones(2)
    for formula in (
        lambda grad: grad if grad.sum() > 0 else -grad,
        lambda grad: grad * (grad * 2).shape[0],
        lambda grad: grad * grad.item(),
        lambda grad: grad.mul_(2),
        lambda grad: grad * rl.ones(2),
        lambda grad: grad[0],
    ):
        assert trace(rl, formula, g) is None


def test_gradients_follow_changing_numbers_and_shapes(rl):
    # Whatever was traced first must not be replayed for other values.
    for alpha in (1, 2, 1, 0.5, -3, 2):
        x = rl.ones(2, requires_grad=True)
        rl.add(rl.zeros(2), x, alpha=alpha).sum().backward()
        assert x.grad.tolist() == [float(alpha)] * 2
    for shape in ((2,), (3, 2), (2, 1, 2), (), (0,), (2,), (4, 1)) * 4:
        x = rl.ones(shape, requires_grad=True)
        x.mean().backward()
        n = max(1, x.numel())
        assert all(v == pytest.approx(1 / n) for v in x.grad.reshape(-1).tolist())
    for n in range(1, 40):  # more shapes than a formula keeps lists for
        x = rl.ones(n, 2, requires_grad=True)
        (x.sum(0) * rl.tensor([1.0, 2.0])).sum().backward()
        assert x.grad.tolist() == [[1.0, 2.0]] * n


def test_wrong_parameter_name(rl):
    from rushlight.ops import _lookup, _trace

    operation = _lookup.record("elementwise", "mul", "")
    with pytest.raises(ValueError, match="derivative of mul: unknown parameter 'nothing'; its inputs are self, other"):
        _trace._source(operation, "nothing", ["grad", "nothing"])


def test_results_of_real_operations_are_known_to_be_real(rl):
    formula = lambda grad, a: (grad * a).conj() if (grad * a).is_complex() else grad * a
    guards, instructions, _ = trace(rl, formula, rl.ones(2), rl.ones(2))
    assert guards == [("dtype", 0, rl.float32), ("dtype", 1, rl.float32)]
    assert len(instructions) == 2
    assert trace(rl, formula, rl.ones(2), rl.ones(2, dtype=rl.complex64)) is None
    assert trace(rl, lambda grad: grad if (grad * 1j).is_complex() else -grad, rl.ones(2)) is None
