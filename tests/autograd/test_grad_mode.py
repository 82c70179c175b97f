"""no_grad and its kin."""

import threading

import pytest


def test_context_managers(torch):
    x = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        assert not torch.is_grad_enabled()
        assert not (x * 2).requires_grad
        with torch.enable_grad():
            assert (x * 2).requires_grad
        assert not torch.is_grad_enabled()
    assert torch.is_grad_enabled()
    with torch.set_grad_enabled(False):
        assert not torch.is_grad_enabled()
    assert torch.is_grad_enabled()


def test_exceptions_restore_the_mode(torch):
    with pytest.raises(ZeroDivisionError), torch.no_grad():
        1 / 0
    assert torch.is_grad_enabled()


def test_set_grad_enabled_acts_at_once(torch):
    torch.set_grad_enabled(False)
    try:
        assert not torch.is_grad_enabled()
    finally:
        torch.set_grad_enabled(True)
    assert torch.is_grad_enabled()


def test_decorators(torch):
    x = torch.ones(2, requires_grad=True)

    @torch.no_grad()
    def f(a, *, b=1):
        "doc"
        return a * b

    @torch.no_grad
    def g(a):
        return a * 2

    @torch.enable_grad()
    def h(a):
        return a * 2

    @torch.set_grad_enabled(False)
    def k(a):
        return a * 2

    assert torch.is_grad_enabled()
    assert f.__name__ == "f" and f.__doc__ == "doc"
    assert not f(x, b=3).requires_grad
    assert not g(x).requires_grad
    assert not k(x).requires_grad
    with torch.no_grad():
        assert h(x).requires_grad

    class Model:
        @torch.no_grad()
        def method(self, a):
            return a * 2

    assert not Model().method(x).requires_grad


def test_decorated_functions_may_recurse(torch):
    modes = []

    @torch.no_grad()
    def f(depth):
        if depth:
            f(depth - 1)
        modes.append(torch.is_grad_enabled())

    f(3)
    assert modes == [False] * 4
    assert torch.is_grad_enabled()


def test_generators(torch):
    @torch.no_grad()
    def g():
        modes.append(torch.is_grad_enabled())
        received = yield 1
        modes.append((torch.is_grad_enabled(), received))
        try:
            yield 2
        except ValueError:
            modes.append(("thrown", torch.is_grad_enabled()))
            yield 3
        return 4

    modes = []
    it = g()
    assert next(it) == 1
    assert torch.is_grad_enabled()
    assert it.send("hello") == 2
    assert it.throw(ValueError) == 3
    with pytest.raises(StopIteration) as stop:
        next(it)
    assert stop.value.value == 4
    assert modes == [False, (False, "hello"), ("thrown", False)]
    assert torch.is_grad_enabled()


def test_decorated_class_warns(torch):
    with pytest.warns(FutureWarning, match="Decorating classes is deprecated"):

        @torch.no_grad()
        class A:
            def __init__(self):
                self.mode = torch.is_grad_enabled()

    assert A().mode is False


def test_inference_mode(torch):
    x = torch.ones(2, requires_grad=True)
    with torch.inference_mode():
        assert torch.is_inference_mode_enabled() and not torch.is_grad_enabled()
        y = x * 2
        assert y.is_inference() and not y.requires_grad
        with torch.inference_mode(False):
            assert not torch.is_inference_mode_enabled()
            assert not torch.ones(2).is_inference()
    assert not torch.is_inference_mode_enabled() and torch.is_grad_enabled()

    @torch.inference_mode()
    def f(a):
        return a * 2

    @torch.inference_mode
    def g(a):
        return a * 2

    assert f(x).is_inference() and g(x).is_inference()
    with torch.inference_mode(mode=False):
        assert not torch.is_inference_mode_enabled()


def test_one_object_entered_again(rl):
    switch = rl.no_grad()
    with switch, switch:
        assert not rl.is_grad_enabled()
    assert rl.is_grad_enabled()


def test_the_mode_belongs_to_the_thread(torch):
    seen = []
    with torch.no_grad():
        t = threading.Thread(target=lambda: seen.append(torch.is_grad_enabled()))
        t.start()
        t.join()
    assert seen == [True]


def test_types(torch):
    assert isinstance(torch.no_grad(), torch.no_grad)
    with pytest.raises(TypeError):
        torch.set_grad_enabled()


def test_coroutines(rl):
    import asyncio

    seen = []

    @rl.no_grad()
    async def quiet(n):
        for _ in range(n):
            seen.append(rl.is_grad_enabled())
            await asyncio.sleep(0)
        return n

    @rl.no_grad()
    async def numbers():
        for i in range(2):
            seen.append(rl.is_grad_enabled())
            await asyncio.sleep(0)
            yield i

    async def loud():
        for _ in range(3):
            seen.append(not rl.is_grad_enabled())
            await asyncio.sleep(0)

    async def main():
        results = await asyncio.gather(quiet(3), loud(), quiet(2))
        items = [i async for i in numbers()]
        return results, items, rl.is_grad_enabled()

    assert asyncio.run(main()) == ([3, None, 2], [0, 1], True)
    assert not any(seen) and len(seen) == 10


def test_an_error_in_a_decorated_coroutine(rl):
    import asyncio

    @rl.set_grad_enabled(False)
    async def fails():
        await asyncio.sleep(0)
        raise KeyError("expected")

    with rl.enable_grad():
        with pytest.raises(KeyError):
            asyncio.run(fails())
        assert rl.is_grad_enabled()
