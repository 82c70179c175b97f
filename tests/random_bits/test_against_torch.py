"""Every distribution against PyTorch's CPU generator: equal bits and equal generator states afterwards."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
from rl_random import Failure, Generator, load

torch = pytest.importorskip("torch")

LIB = load()
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
REAL = [torch.bool, *INTEGERS, *FLOATS]
COMPLEX = [torch.complex64, torch.complex128]
SIZES = [*range(1, 101), 1000, 1023, 8191, 8193, 65535, 65537, 200_003]

Draw = Callable[[Any], Any]


def same_bits(a: Any, b: Any) -> bool:
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.is_complex():
        a, b = torch.view_as_real(a), torch.view_as_real(b)
    item = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[a.element_size()]
    return torch.equal(a.contiguous().view(item), b.contiguous().view(item))


def torch_state() -> bytes:
    return torch.get_rng_state().numpy().tobytes()


def compare(make: Callable[[], Any], draw: Draw, call: Callable[[Generator, Any], None], seed: int = 3) -> None:
    """`draw` fills a tensor of `make` with torch (or returns another); `call` fills a second one with the library."""
    torch.manual_seed(seed)
    generator = Generator(LIB, seed)
    want, got = make(), make()
    drawn = draw(want)
    want = want if drawn is None else drawn
    call(generator, got)
    assert same_bits(want, got), f"{int((want != got).sum())} of {want.numel()} differ"
    assert torch_state() == generator.state(), "the generators are at different places"


def by_name(name: str, *arguments: Any) -> Callable[[Generator, Any], None]:
    return lambda generator, out: generator.call(name, *arguments, out)


def nothing(draw: Callable[[Any], Any]) -> Draw:
    def run(tensor: Any) -> None:
        draw(tensor)

    return run


CONTINUOUS = {
    "uniform": (nothing(lambda t: t.uniform_(-2, 3)), by_name("uniform", -2.0, 3.0)),
    "uniform.unit": (nothing(lambda t: t.uniform_()), by_name("uniform", 0.0, 1.0)),
    "normal": (nothing(lambda t: t.normal_(2, 3)), by_name("normal", 2.0, 3.0)),
    "normal.standard": (nothing(lambda t: t.normal_()), by_name("normal", 0.0, 1.0)),
    "log_normal": (nothing(lambda t: t.log_normal_(0.5, 0.7)), by_name("log_normal", 0.5, 0.7)),
    "exponential": (nothing(lambda t: t.exponential_(1.5)), by_name("exponential", 1.5)),
    "cauchy": (nothing(lambda t: t.cauchy_(1, 2)), by_name("cauchy", 1.0, 2.0)),
    "dropout_mask": (
        nothing(lambda t: t.copy_(torch.nn.functional.dropout(torch.ones_like(t), 0.4, True))),
        by_name("dropout_mask", 0.4),
    ),
}


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous(name: str, dtype: Any) -> None:
    for n in SIZES:
        compare(lambda: torch.empty(n, dtype=dtype), *CONTINUOUS[name])


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
@pytest.mark.parametrize("name", ["uniform", "normal", "normal.standard"])
def test_complex(name: str, dtype: Any) -> None:
    draw, call = CONTINUOUS[name]
    if name == "uniform":  # torch has no complex uniform_ but rand
        draw, call = lambda t: torch.rand(t.shape, dtype=t.dtype), by_name("uniform", 0.0, 1.0)
    for n in [1, 2, 7, 8, 9, 16, 33, 1000]:
        compare(lambda: torch.empty(n, dtype=dtype), draw, call)


@pytest.mark.parametrize("dtype", REAL, ids=str)
def test_discrete(dtype: Any) -> None:
    top = 2 if dtype == torch.bool else 100
    for n in SIZES:
        make = lambda: torch.empty(n, dtype=dtype)
        compare(make, nothing(lambda t: t.random_()), by_name("integers"))
        compare(make, nothing(lambda t: t.random_(0, top)), by_name("integers_between", 0, top))
        compare(make, nothing(lambda t: t.bernoulli_(0.3)), by_name("bernoulli", 0.3))
        if dtype != torch.bool:
            compare(make, nothing(lambda t: t.geometric_(0.3)), by_name("geometric", 0.3))


@pytest.mark.parametrize("p", [0.0, 1e-9, 0.5, 1 - 2**-53, 1.0])
def test_bernoulli_extremes(p: float) -> None:
    compare(lambda: torch.empty(5000), nothing(lambda t: t.bernoulli_(p)), by_name("bernoulli", p))


BOUNDS = [
    (0, 1), (0, 2), (0, 3), (0, 100), (-5, 7), (-128, 128), (0, 256), (0, 1000), (0, 2**28 - 1), (0, 2**28),
    (0, 2**28 + 1), (0, 2**31 - 1), (0, 2**31), (0, 2**32), (0, 2**32 + 5), (0, 2**40), (-(2**62), 2**62),
    (-(2**63), 2**63 - 1), (0, 2**63 - 1), (2**53 + 1, 2**53 + 9), (-(2**60) - 3, 2**60 + 77), (3000, 5001), (0, 65505),
    (-65504, 65505), (2049, 2052), (300, 302), (2**25 + 1, 2**25 + 3), (-(2**24) - 7, -(2**24) - 5), (4, 4), (5, 4),
]  # fmt: skip
STARTS = [0, 5, -3, -100, 250, 2**24, 2**53 - 2, 2**62, -(2**63), -(2**63) + 1, -(2**40)]


@pytest.mark.parametrize("dtype", REAL, ids=str)
def test_integer_ranges(dtype: Any) -> None:
    """The same numbers, or the same refusal."""
    cases: list[tuple[str, tuple[int, ...]]] = [("integers_between", bounds) for bounds in BOUNDS]
    cases += [("integers_from", (start,)) for start in STARTS]
    for name, arguments in cases:
        for n in (1, 17, 700):
            make = lambda: torch.empty(n, dtype=dtype)
            bounds = arguments if name == "integers_between" else (*arguments, None)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # torch warns of bounds that the dtype rounds
                try:
                    make().random_(*bounds)
                    allowed = True
                except RuntimeError:
                    allowed = False
                if allowed:
                    compare(make, nothing(lambda t: t.random_(*bounds)), by_name(name, *arguments))
                    continue
            with pytest.raises(Failure) as failure:
                Generator(LIB, 3).call(name, *arguments, make())
            assert failure.value.status == "RUNTIME_ERROR"


LAYOUTS = {
    "transposed": lambda d: torch.zeros(6, 8, dtype=d).t(),
    "columns": lambda d: torch.zeros(20, 3, dtype=d)[:, :2],
    "channels_last": lambda d: torch.zeros(2, 3, 4, 5, dtype=d).contiguous(memory_format=torch.channels_last),
    "permuted": lambda d: torch.zeros(4, 5, 6, dtype=d).permute(2, 0, 1),
    "stepped": lambda d: torch.zeros(4, 5, 6, dtype=d)[::2, 1::2, ::3],
    "permuted and stepped": lambda d: torch.zeros(40, 5, 60, dtype=d).permute(1, 2, 0)[:, ::2],
    "0-dim": lambda d: torch.zeros((), dtype=d),
    "empty": lambda d: torch.zeros(0, 3, dtype=d),
    "size-1 dims": lambda d: torch.zeros(1, 7, 1, 3, dtype=d).transpose(1, 3),
    "column": lambda d: torch.zeros(1000, 2, dtype=d)[:, 0],
    "size-1 inside": lambda d: torch.zeros(5, 1, 4, dtype=d).permute(2, 1, 0),
    "equal strides": lambda d: torch.zeros(64, dtype=d).as_strided((4, 4), (2, 2)),
    "overlapping": lambda d: torch.zeros(200, dtype=d).as_strided((3, 4, 5), (1, 3, 3)),
    "large transposed": lambda d: torch.zeros(100, 300, dtype=d).t(),
    "large stepped": lambda d: torch.zeros(100, 400, dtype=d)[:, ::2],
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_order_of_elements(layout: str) -> None:
    for dtype in FLOATS:
        for name in ["uniform", "normal", "log_normal", "exponential"]:
            compare(lambda: LAYOUTS[layout](dtype), *CONTINUOUS[name])
        compare(lambda: LAYOUTS[layout](dtype), nothing(lambda t: t.bernoulli_(0.3)), by_name("bernoulli", 0.3))
    for dtype in COMPLEX:
        compare(lambda: LAYOUTS[layout](dtype), *CONTINUOUS["normal"])


PROBABILITIES = {
    "dense": lambda t: torch.linspace(0, 1, t.numel()).reshape(t.shape),
    "scalar": lambda t: torch.tensor(0.4),
    "reversed dims": lambda t: (
        torch.linspace(0, 1, t.numel()).reshape(t.shape[::-1]).permute(list(range(t.ndim - 1, -1, -1)))
    ),
    "last dim": lambda t: torch.linspace(0, 1, t.shape[-1] if t.ndim else 1),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", PROBABILITIES)
def test_bernoulli_tensor(layout: str, kind: str) -> None:
    for out_dtype in [torch.bool, torch.int16, torch.bfloat16, torch.float32, torch.float64]:
        for p_dtype in FLOATS:
            make = lambda: LAYOUTS[layout](out_dtype)
            p = PROBABILITIES[kind](make()).to(p_dtype)
            if p.ndim <= make().ndim:
                compare(make, nothing(lambda t: t.bernoulli_(p)), by_name("bernoulli_tensor", p))


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS], ids=str)
def test_permutation(dtype: Any) -> None:
    limit = (
        torch.iinfo(dtype).max + 1
        if dtype in INTEGERS
        else {"torch.float16": 2049, "torch.bfloat16": 257, "torch.float32": 2**24 + 1, "torch.float64": 2**53}[
            str(dtype)
        ]
    )
    for n in [0, 1, 2, 3, 10, 31, 100, 255, 256, 1000, 100_000]:
        if n <= limit:
            compare(
                lambda: torch.empty(n, dtype=dtype),
                lambda t: torch.randperm(len(t), dtype=t.dtype),
                by_name("permutation"),
            )
    if limit < 10**8:
        compare(
            lambda: torch.empty(limit, dtype=dtype),
            lambda t: torch.randperm(limit, dtype=dtype),
            by_name("permutation"),
        )
        with pytest.raises(Failure, match=f"at most {limit}, got {limit + 1}"):
            Generator(LIB, 3).call("permutation", torch.empty(limit + 1, dtype=dtype))


def test_permutation_strided() -> None:
    generator = Generator(LIB, 3)
    out = torch.zeros(50, 3, dtype=torch.int64)
    generator.call("permutation", out[:, 1])
    torch.manual_seed(3)
    assert torch.equal(out[:, 1], torch.randperm(50))
    assert not out[:, 0].any()
    assert not out[:, 2].any()


@pytest.mark.slow
def test_huge_permutation() -> None:
    """From 2^32 / 20 elements on another shuffle is used. Needs 1.8 GB."""
    n = 2**32 // 20
    compare(
        lambda: torch.empty(n, dtype=torch.int32),
        lambda t: torch.randperm(n, dtype=torch.int32),
        by_name("permutation"),
    )


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_poisson(dtype: Any) -> None:
    for n in (1, 9, 40, 3000):
        for rate in (torch.linspace(0, 60, n), torch.linspace(0, 60000, n)):
            rate = rate.to(dtype)
            compare(lambda: torch.zeros(n, dtype=dtype), lambda t: torch.poisson(rate), by_name("poisson", rate))
    rate = torch.linspace(0, 60, 24).to(dtype).reshape(4, 6).t()
    compare(lambda: torch.zeros(6, 4, dtype=dtype), lambda t: torch.poisson(rate), by_name("poisson", rate))


@pytest.mark.parametrize("dtype", FLOATS[2:], ids=str)
def test_binomial(dtype: Any) -> None:
    source = torch.Generator().manual_seed(5)
    prob = torch.rand(4000, generator=source).to(dtype)
    prob[:10], prob[10:20] = 0, 1
    for top in (200, 2_000_000):
        count = torch.randint(0, top, (4000,), generator=source).to(dtype)
        compare(
            lambda: torch.zeros(4000, dtype=dtype),
            lambda t: torch.binomial(count, prob),
            by_name("binomial", count, prob),
        )
    count = torch.randint(1, 50, (7, 9), generator=source).to(dtype).t()
    prob = torch.rand(9, 7, generator=source).to(dtype)
    compare(
        lambda: torch.zeros(9, 7, dtype=dtype), lambda t: torch.binomial(count, prob), by_name("binomial", count, prob)
    )


@pytest.mark.parametrize("dtype", FLOATS[2:], ids=str)
def test_standard_gamma(dtype: Any) -> None:
    alpha = torch.rand(4000, generator=torch.Generator().manual_seed(5)).mul(4).to(dtype)
    alpha[:5] = 0
    alpha[5:50] *= 0.01
    alpha[50:90] *= 100
    make = lambda: torch.zeros(4000, dtype=dtype)
    compare(make, lambda t: torch._standard_gamma(alpha), by_name("standard_gamma", alpha))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_multinomial_with_replacement(dtype: Any) -> None:
    for shape in ((10,), (3, 6), (1, 1), (2, 1000)):
        weights = torch.rand(shape, generator=torch.Generator().manual_seed(5)).to(dtype)
        if shape[-1] > 1:
            weights[..., 0] = 0
        for w in (weights, weights.t().contiguous().t()):
            for samples in (2, 9, 300):
                compare(
                    lambda: torch.zeros((*shape[:-1], samples), dtype=torch.int64),
                    lambda t: torch.multinomial(w, samples, True),
                    by_name("multinomial", w),
                )


@pytest.mark.parametrize("dtype", FLOATS[1:], ids=str)
def test_rrelu(dtype: Any) -> None:
    for lower, upper in ((1 / 8, 1 / 3), (0.1, 0.7)):
        x = torch.linspace(-3, 3, 5000).to(dtype).reshape(50, 100).t()
        noise, got = torch.zeros_like(x), torch.zeros_like(x)
        want_noise = torch.zeros(x.shape, dtype=dtype)
        generator = Generator(LIB, 3)
        generator.call("rrelu", lower, upper, x, noise, got)
        torch.manual_seed(3)
        want = torch.ops.aten.rrelu_with_noise(x, want_noise, lower, upper, True)
        assert same_bits(want, got)
        assert same_bits(want_noise, noise)
        assert torch_state() == generator.state()


@pytest.mark.parametrize("seed", [0, 1, 2**31, 2**63 - 1, -1, 2**64 - 1, 12345])
def test_mixed_sequence_shares_cached_normals(seed: int) -> None:
    torch.manual_seed(seed)
    generator = Generator(LIB, seed)
    draws: list[tuple[Any, Draw, Callable[[Generator, Any], None]]] = []
    for n in (3, 1, 5, 16, 1, 1, 17, 2, 9000):
        for dtype in (torch.float32, torch.float64, torch.bfloat16):
            draws.append((torch.empty(n, dtype=dtype), *CONTINUOUS["normal"]))
            draws.append((torch.empty(n, dtype=dtype), *CONTINUOUS["uniform"]))
            draws.append((torch.empty(n, dtype=dtype), *CONTINUOUS["log_normal"]))
    alpha = torch.rand(7, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    draws.append(
        (torch.empty_like(alpha), lambda t: t.copy_(torch._standard_gamma(alpha)), by_name("standard_gamma", alpha))
    )
    draws.append(
        (torch.empty(7, dtype=torch.int64), nothing(lambda t: t.random_(0, 9)), by_name("integers_between", 0, 9))
    )
    draws.append((torch.empty(3, dtype=torch.float64), *CONTINUOUS["normal"]))
    for want, draw, call in draws:
        got = torch.empty_like(want)
        draw(want)
        call(generator, got)
        assert same_bits(want, got)
        assert torch_state() == generator.state()


def test_states_are_interchangeable() -> None:
    torch.manual_seed(11)
    torch.empty(3).normal_()  # leaves one normal number cached
    torch.rand(700)
    generator = Generator(LIB, 0)
    generator.set_state(torch_state())
    got = torch.empty(5)
    generator.call("normal", 0.0, 1.0, got)
    assert same_bits(torch.randn(5), got)
    other = torch.Generator()
    other.set_state(torch.frombuffer(bytearray(generator.state()), dtype=torch.uint8))
    generator.call("uniform", 0.0, 1.0, got)
    assert same_bits(torch.rand(5, generator=other), got)
    assert other.initial_seed() == LIB.rl_generator_initial_seed(generator.handle) == 11


def test_a_wrong_number_is_noticed() -> None:
    with pytest.raises(AssertionError, match="differ"):
        compare(lambda: torch.empty(20), nothing(lambda t: t.normal_(2, 3)), by_name("normal", 2.0, 3.0000002))
    with pytest.raises(AssertionError, match="different places"):
        compare(lambda: torch.zeros(1), lambda t: torch.zeros(1), by_name("bernoulli", 0.0))
