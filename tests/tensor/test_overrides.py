"""What `__torch_function__` of subclasses and of other classes is asked for, beside PyTorch."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import rushlight

BINARY = "add sub mul truediv floordiv mod pow matmul and_ or_ xor lshift rshift lt le gt ge eq ne".split()
INPLACE = "iadd isub imul ifloordiv imod ipow iand ior ixor ilshift irshift itruediv".split()


class Recorder:
    """Runs the same expressions in a framework and notes the callables that overrides receive."""

    def __init__(self, framework: Any) -> None:
        self.framework = framework
        self.calls: list[tuple[str, list[str]]] = []
        recorder = self

        def note(func: Any, args: Any) -> None:
            names = [n for n in dir(framework.Tensor) if getattr(framework.Tensor, n, None) is func]
            recorder.calls.append((min(names, default=func.__name__), [type(a).__name__ for a in args]))

        class Subclass(framework.Tensor):
            @classmethod
            def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                note(func, args)
                return super().__torch_function__(func, types, args, kwargs or {})

        class Other:
            @classmethod
            def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                note(func, args)
                return 1

        self.Subclass, self.Other = Subclass, Other

    def plain(self, op: str = "") -> Any:
        values = self.framework.arange(1, 10).reshape(3, 3)
        return values.double() if op in ("matmul", "itruediv") else values

    def tensor(self, op: str = "") -> Any:
        return self.plain(op).as_subclass(self.Subclass)

    def record(self, function: Callable[[Any], Any]) -> list[tuple[str, list[str]]]:
        self.calls = []
        try:
            function(self)
        except (TypeError, RuntimeError) as e:
            self.calls.append((type(e).__name__, []))
        return self.calls


def expressions() -> Iterator[tuple[str, Callable[[Recorder], Any]]]:
    for name in BINARY + INPLACE:
        op = getattr(operator, name)
        yield f"{name} of two", lambda r, op=op, n=name: op(r.tensor(n), r.tensor(n))
        if name != "matmul":
            yield f"{name} with a number", lambda r, op=op, n=name: op(r.tensor(n), 2)
            yield f"{name} of a number", lambda r, op=op, n=name: op(2, r.tensor(n))
        yield f"{name} of a plain tensor", lambda r, op=op, n=name: op(r.plain(n), r.tensor(n))
        yield f"{name} with a plain tensor", lambda r, op=op, n=name: op(r.tensor(n), r.plain(n))
        yield f"{name} with another class", lambda r, op=op, n=name: op(r.plain(n), r.Other())
        yield f"{name} of another class", lambda r, op=op, n=name: op(r.Other(), r.plain(n))
    for name in "neg pos abs invert index".split():
        yield name, lambda r, n=name: getattr(operator, n)(r.tensor())
    numbers = (bool, int, float, complex)
    for function in (*numbers, len, iter, hash, repr, format):
        yield function.__name__, lambda r, f=function: f(r.tensor()[0, 0] if f in numbers else r.tensor())
    yield "in", lambda r: 1 in r.tensor()
    yield "getitem", lambda r: r.tensor()[0]
    yield "setitem", lambda r: operator.setitem(r.tensor(), 0, 1)
    yield "setitem of another class", lambda r: operator.setitem(r.plain(), 0, r.Other())
    yield "getitem by another class", lambda r: r.plain()[r.Other()]
    yield "getitem by a list with another class", lambda r: r.plain()[[r.Other(), 0]]
    yield "getitem by a tuple", lambda r: r.plain()[r.tensor()[0] - 1, 0]
    for name in "shape dtype device layout requires_grad grad grad_fn is_leaf data T mT ndim itemsize names".split():
        if name != "names":
            yield f"attribute {name}", lambda r, n=name: getattr(r.tensor("matmul"), n)
    yield "attribute set", lambda r: setattr(r.tensor("matmul"), "requires_grad", True)
    for name in (
        "size stride dim ndimension numel nelement element_size data_ptr storage_offset get_device is_contiguous "
        "is_floating_point is_complex is_signed is_inference is_conj is_neg tolist detach clone untyped_storage "
        "requires_grad_ sum t contiguous cpu"
    ).split():
        yield f"method {name}", lambda r, n=name: getattr(r.tensor("matmul"), n)()


EXPRESSIONS = dict(expressions())


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_an_override_is_asked_as_in_pytorch(name: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch, whose calls of overrides are compared, is not installed")
    ours = Recorder(rushlight).record(EXPRESSIONS[name])
    theirs = Recorder(torch).record(EXPRESSIONS[name])
    aliases = {
        "__rtruediv__": "__rdiv__",
        "__neg__": "neg",
        "__pos__": "positive",
        "__abs__": "abs",
        "ndimension": "dim",
        "nelement": "numel",
    }
    canonical = [[(aliases.get(n, n), kinds) for n, kinds in calls] for calls in (ours, theirs)]
    assert canonical[0] == canonical[1]


def test_without_an_override_nothing_is_asked() -> None:
    class Plain(rushlight.Tensor):
        __torch_function__ = rushlight.overrides._disabled_torch_function_impl

    x = rushlight.arange(3).as_subclass(Plain)
    assert type(x + 1) is rushlight.Tensor
    assert x.shape == (3,) and x.tolist() == [0, 1, 2]


@pytest.mark.parametrize("other", [None, "text", object()])
def test_operands_that_no_operator_takes(other: Any) -> None:
    class Kept(rushlight.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return super().__torch_function__(func, types, args, kwargs or {})

    x = rushlight.ones(2).as_subclass(Kept)
    assert (x == other) is False and (x != other) is True and (other == x) is False
    for name in [*BINARY[:5], "lt", "ge"]:
        with pytest.raises(TypeError, match=r"not supported between|unsupported operand|an index"):
            getattr(operator, name)(x, other)
    with pytest.raises(TypeError):
        x += other
