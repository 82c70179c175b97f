"""rushlight.testing against torch.testing: what is accepted, what is refused, and with which error."""

from __future__ import annotations

import pytest

import rushlight

torch = pytest.importorskip("torch")

nan = float("nan")
# (actual, expected, options); each is tried in both packages with `t` for the package.
CASES = [
    (lambda t: t.tensor([1.0, 2.0]), lambda t: t.tensor([1.0, 2.0]), {}),
    (lambda t: t.tensor([1.0, 2.0]), lambda t: t.tensor([1.0, 2.000001]), {}),
    (lambda t: t.tensor([1.0, 2.0]), lambda t: t.tensor([1.0, 2.0001]), {}),
    (lambda t: t.tensor([1.0, 2.0]), lambda t: t.tensor([1.0, 2.1]), {"rtol": 0.1, "atol": 0.0}),
    (lambda t: t.tensor([1.0, 2.0]), lambda t: t.tensor([1.0, 2.1]), {"rtol": 0.1}),
    (lambda t: t.tensor([1, 2]), lambda t: t.tensor([1, 3]), {}),
    (lambda t: t.tensor([1, 2]), lambda t: t.tensor([1.0, 2.0]), {}),
    (lambda t: t.tensor([1, 2]), lambda t: t.tensor([1.0, 2.0]), {"check_dtype": False}),
    (lambda t: t.ones(2, 3), lambda t: t.ones(3, 2), {}),
    (lambda t: t.ones(2, 3), lambda t: t.ones(3, 2).t(), {}),
    (lambda t: t.ones(2, 3), lambda t: t.ones(3, 2).t(), {"check_stride": True}),
    (lambda t: t.tensor([nan]), lambda t: t.tensor([nan]), {}),
    (lambda t: t.tensor([nan]), lambda t: t.tensor([nan]), {"equal_nan": True}),
    (lambda t: t.tensor([float("inf")]), lambda t: t.tensor([float("inf")]), {}),
    (lambda t: t.tensor([1j]), lambda t: t.tensor([1.0000001j]), {}),
    (lambda t: t.tensor([True]), lambda t: t.tensor([False]), {}),
    (lambda t: t.zeros(0), lambda t: t.zeros(0), {}),
    (lambda t: 1, lambda t: 1, {}),
    (lambda t: 1, lambda t: 1.0, {}),
    (lambda t: 1, lambda t: 1.0, {"check_dtype": False}),
    (lambda t: 1.0, lambda t: 1.0 + 1e-9, {}),
    (lambda t: 1.0, lambda t: 1.1, {}),
    (lambda t: True, lambda t: False, {}),
    (lambda t: None, lambda t: None, {}),
    (lambda t: None, lambda t: 1, {}),
    (lambda t: [1, t.ones(2)], lambda t: [1, t.ones(2)], {}),
    (lambda t: [1, t.ones(2)], lambda t: [1, t.zeros(2)], {}),
    (lambda t: [1], lambda t: [1, 2], {}),
    (lambda t: {"a": t.ones(1)}, lambda t: {"a": t.ones(1)}, {}),
    (lambda t: {"a": t.ones(1)}, lambda t: {"b": t.ones(1)}, {}),
    (lambda t: t.ones(1), lambda t: 1.0, {}),
    (lambda t: t.ones(()), lambda t: 1.0, {}),
    (lambda t: "a", lambda t: "a", {}),
    (lambda t: t.ones(2), lambda t: [1.0, 1.0], {}),
    (lambda t: t.ones(2, requires_grad=True), lambda t: t.ones(2), {}),
    (lambda t: t.tensor([1.0], dtype=t.float16), lambda t: t.tensor([1.001], dtype=t.float16), {}),
]


def outcome(package, actual, expected, options):
    try:
        package.testing.assert_close(actual(package), expected(package), **options)
    except Exception as error:
        return type(error)
    return None


@pytest.mark.parametrize("case", range(len(CASES)))
def test_assert_close_accepts_what_pytorch_accepts(case):
    assert outcome(rushlight, *CASES[case]) is outcome(torch, *CASES[case])


def test_the_message_of_assert_close():
    with pytest.raises(AssertionError, match=r"Mismatched elements: 1 / 3 \(33.3%\)") as caught:
        rushlight.testing.assert_close(rushlight.tensor([1.0, 2.0, 4.0]), rushlight.tensor([1.0, 2.0, 3.0]))
    assert "Greatest absolute difference: 1.0 at index (2,)" in str(caught.value)
    with pytest.raises(AssertionError, match=r"item \['a'\]\[1\]"):
        rushlight.testing.assert_close({"a": [1, 2]}, {"a": [1, 3]})
    with pytest.raises(AssertionError, match=r"^mine: "):
        rushlight.testing.assert_close(1.0, 2.0, msg=lambda text: "mine: " + text)
    with pytest.raises(AssertionError, match=r"^mine$"):
        rushlight.testing.assert_close(1.0, 2.0, msg="mine")


@pytest.mark.parametrize("dtype", "bool uint8 int8 int64 float16 bfloat16 float32 complex64".split())
def test_make_tensor(dtype):
    kind = getattr(rushlight, dtype)
    x = rushlight.testing.make_tensor(50, 20, dtype=kind, device="cpu")
    assert x.dtype == kind and x.shape == (50, 20) and len(x.reshape(-1).unique() if dtype != "complex64" else x) > 1
    parts = rushlight.view_as_real(x) if x.is_complex() else x
    low, high = {"bool": (0, 1), "uint8": (0, 9)}.get(dtype, (-9, 9))
    assert parts.min().item() >= low and parts.max().item() <= high
    y = rushlight.testing.make_tensor((4, 6), dtype=kind, device="cpu", noncontiguous=True)
    assert not y.is_contiguous() and y.shape == (4, 6)
    z = rushlight.testing.make_tensor(500, dtype=kind, device="cpu", low=0, high=2, exclude_zero=True)
    assert (z != 0).all()


def test_make_tensor_refuses():
    make = rushlight.testing.make_tensor
    with pytest.raises(ValueError, match="low"):
        make(2, dtype=rushlight.float32, device="cpu", low=3, high=1)
    with pytest.raises(ValueError, match="requires_grad"):
        make(2, dtype=rushlight.int64, device="cpu", requires_grad=True)
    with pytest.raises(ValueError, match="noncontiguous"):
        make(2, dtype=rushlight.int64, device="cpu", noncontiguous=True, memory_format=rushlight.contiguous_format)
    assert make(2, dtype=rushlight.float32, device="cpu", requires_grad=True).requires_grad
