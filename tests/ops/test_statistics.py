"""Quantiles, covariances and masked reductions, against NumPy."""

import warnings

import numpy as np
import pytest

import rushlight as rl
from rushlight.autograd import gradcheck, gradgradcheck

NAN = float("nan")


@pytest.fixture
def random():
    return np.random.default_rng(5)


def close(tensor, array, rtol=1e-12):
    array = np.asarray(array)
    assert tuple(tensor.shape) == array.shape
    np.testing.assert_allclose(tensor.numpy(), array, rtol=rtol, atol=1e-14)


@pytest.mark.parametrize("method", ["linear", "lower", "higher", "midpoint", "nearest"])
@pytest.mark.parametrize("dim", [None, 0, 1, -1])
def test_quantiles(random, method, dim):
    a = random.normal(size=(3, 5, 4))
    q = np.array([0.0, 0.13, 0.5, 0.9, 1.0])
    t = rl.from_numpy(a)
    for keep in (False, True):
        close(
            t.quantile(rl.from_numpy(q), dim, keep, interpolation=method),
            np.quantile(a, q, dim, keepdims=keep, method=method),
        )
        close(t.quantile(0.3, dim, keep, interpolation=method), np.quantile(a, 0.3, dim, keepdims=keep, method=method))
    a[0, 1, 2] = a[2, 3, 3] = NAN
    a[:, 4, 0] = NAN
    t = rl.from_numpy(a)
    close(t.quantile(rl.from_numpy(q), dim, interpolation=method), np.quantile(a, q, dim, method=method))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = np.nanquantile(a, q, dim, method=method)
    close(t.nanquantile(rl.from_numpy(q), dim, interpolation=method), want)


def test_quantiles_of_little_and_bad_arguments():
    x = rl.tensor([1.0, 2.0])
    assert rl.tensor(3.0).quantile(0.2, 0, True).shape == ()
    assert rl.tensor([3.0]).quantile(rl.tensor([0.2, 0.4]), 0, True).shape == (2, 1)
    assert rl.tensor([NAN]).nanquantile(0.5).isnan()
    for bad in (
        lambda: rl.tensor([1]).quantile(0.5),
        lambda: x.quantile(1.5),
        lambda: x.quantile(rl.tensor([0.5, -0.1])),
        lambda: x.quantile(rl.tensor([0.5]).double()),
        lambda: x.quantile(rl.ones(1, 1)),
        lambda: x.quantile(0.5, interpolation="cubic"),
        lambda: rl.zeros(0).quantile(0.5),
    ):
        with pytest.raises(RuntimeError):
            bad()
    with pytest.raises(IndexError):
        x.quantile(0.5, 1)


def test_derivatives_of_quantiles():
    x = rl.randn(4, 5, dtype=rl.float64, requires_grad=True)
    q = rl.tensor([0.1, 0.66], dtype=rl.float64)
    for method in ("linear", "lower", "midpoint"):
        assert gradcheck(lambda t, m=method: t.quantile(q, 1, interpolation=m) ** 2, (x,))
        assert gradgradcheck(lambda t, m=method: t.quantile(q, 1, interpolation=m) ** 2, (x,))


@pytest.mark.parametrize("dtype", [np.float64, np.complex128, np.int64])
def test_covariances(random, dtype):
    a = (random.normal(size=(3, 8)) * 9).astype(dtype)
    if dtype == np.complex128:
        a = a + 1j * random.normal(size=(3, 8))
    t = rl.from_numpy(a)
    f, w = random.integers(1, 4, 8), random.random(8)
    rtol = 1e-5 if dtype == np.int64 else 1e-12  # integers become float32
    close(t.cov(), np.cov(a), rtol)
    close(t[0].cov(), np.cov(a[0]), rtol)
    close(t.corrcoef(), np.corrcoef(a), rtol)
    if dtype == np.int64:
        return
    for correction in (0, 1, 2):
        close(
            t.cov(correction=correction, fweights=rl.from_numpy(f), aweights=rl.from_numpy(w)),
            np.cov(a, ddof=correction, fweights=f, aweights=w),
        )
        close(t.cov(correction=correction, fweights=rl.from_numpy(f)), np.cov(a, ddof=correction, fweights=f))
    close(t.cov(aweights=rl.from_numpy(w)), np.cov(a, aweights=w))


def test_covariances_refuse():
    x = rl.randn(2, 3)
    for bad in (
        lambda: rl.zeros(2, 2, 2).cov(),
        lambda: x.bool().cov(),
        lambda: x.cov(fweights=rl.ones(3)),
        lambda: x.cov(aweights=rl.ones(3).int()),
        lambda: x.cov(aweights=rl.ones(2)),
        lambda: x.cov(aweights=-rl.ones(3)),
        lambda: x.cov(fweights=rl.zeros(3).int()),
        lambda: rl.zeros(2, 2, 2).corrcoef(),
    ):
        with pytest.raises(RuntimeError):
            bad()
    with pytest.warns(UserWarning, match="degrees"):
        assert not x[:, :1].cov().isfinite().any()


def test_nanmean():
    a = np.array([[1.0, NAN, 4.0], [NAN, NAN, NAN]])
    t = rl.from_numpy(a)
    close(t.nanmean(), 2.5)
    close(t.nanmean(1), [2.5, NAN])
    close(t.nanmean(0, True), [[1, NAN, 4]])
    with pytest.raises(RuntimeError):
        rl.tensor([1]).nanmean()


MASKED = {
    "sum": np.sum,
    "prod": np.prod,
    "amax": np.max,
    "amin": np.min,
    "mean": np.mean,
    "var": lambda v: np.var(v, ddof=1),
    "std": lambda v: np.std(v, ddof=1),
    "median": lambda v: np.sort(v)[(len(v) - 1) // 2],
    "norm": np.linalg.norm,
    "logsumexp": lambda v: np.log(np.exp(v).sum()),
}


@pytest.mark.parametrize("name", MASKED)
def test_masked_reductions(random, name):
    a, mask = random.normal(size=(4, 6)), random.random((4, 6)) < 0.6
    mask[:, :2] = True
    f = getattr(rl.masked, name)
    x, m = rl.from_numpy(a), rl.from_numpy(mask)
    keyed = {"dim": 1}
    close(f(x, **keyed, mask=m), [MASKED[name](r[k]) for r, k in zip(a, mask, strict=True)])
    close(f(x, **keyed), [MASKED[name](r) for r in a])
    assert f(x, **keyed, keepdim=True, mask=m).shape == (4, 1)
    close(f(x, **keyed, mask=m[0]), [MASKED[name](r[mask[0]]) for r in a])
    if name != "median":
        close(f(x, dim=(0, 1), mask=m), MASKED[name](a[mask]))
        close(f(x, mask=m), MASKED[name](a[mask]))
    x.requires_grad_()
    assert gradcheck(lambda t: f(t, **keyed, mask=m), (x,))
    (grad,) = rl.autograd.grad(f(x, **keyed, mask=m).sum(), x)
    assert (grad[~m] == 0).all()


def test_masked_results_of_nothing():
    x, none = rl.ones(2, 3), rl.zeros(2, 3).bool()
    for name, want in (
        ("sum", 0.0), ("prod", 1.0), ("amax", -np.inf), ("amin", np.inf), ("mean", NAN), ("median", NAN), ("var", NAN),
        ("norm", 0.0), ("logsumexp", -np.inf), ("argmax", 0.0),
    ):  # fmt: skip
        np.testing.assert_array_equal(getattr(rl.masked, name)(x, dim=1, mask=none).numpy(), [want, want])
    assert rl.masked.amax(x.int(), 1, mask=none).tolist() == [-(2**31)] * 2
    with pytest.raises(ValueError):
        rl.masked.median(x.int(), 1, mask=none)
    with pytest.raises(ValueError):
        rl.masked.mean(x.int())
    with pytest.raises(IndexError):
        rl.masked.sum(x, 2)
    with pytest.raises(IndexError):
        rl.masked.sum(x, mask=rl.ones(1, 2, 3).bool())
    with pytest.raises(RuntimeError):
        rl.masked.sum(x, mask=rl.ones(3, 3).bool())
    with pytest.raises(ValueError):
        rl.masked.var(x, 1, True, correction=1)


def test_masked_scans_and_normalisations(random):
    a, mask = random.normal(size=(4, 6)), random.random((4, 6)) < 0.6
    mask[:, :1] = True
    x, m = rl.from_numpy(a), rl.from_numpy(mask)
    close(rl.masked.cumsum(x, 1, mask=m), np.where(mask, a, 0).cumsum(1))
    close(rl.masked.cumprod(x, 1, mask=m), np.where(mask, a, 1).cumprod(1))
    e = np.where(mask, np.exp(a), 0)
    close(rl.masked.softmax(x, 1, mask=m), e / e.sum(1, keepdims=True))
    close(rl.masked.log_softmax(x, 1, mask=m).exp(), e / e.sum(1, keepdims=True))
    e = np.where(mask, np.exp(-a), 0)
    close(rl.masked.softmin(x, 1, mask=m), e / e.sum(1, keepdims=True))
    kept = np.where(mask, a, 0)
    close(rl.masked.normalize(x, 2.0, 1, mask=m), kept / np.linalg.norm(kept, axis=1, keepdims=True))
    assert (rl.masked.argmin(x, 1, mask=m) == rl.from_numpy(np.where(mask, a, np.inf).argmin(1))).all()
    b = random.normal(size=(4, 6))
    want = np.log(np.where(mask, np.exp(a), 0) + np.exp(b))
    close(rl.masked.logaddexp(x, rl.from_numpy(b), input_mask=m), want)


def test_logsumexp_of_complex_numbers(random):
    a = random.normal(size=(3, 4)) + 1j * random.normal(size=(3, 4))
    close(rl.from_numpy(a).logsumexp(1), np.log(np.exp(a).sum(1)))
    close(rl.from_numpy(a + 800).logsumexp(0, True), np.log(np.exp(a).sum(0, keepdims=True)) + 800)
    x = rl.from_numpy(a).requires_grad_()
    assert gradcheck(lambda t: t.logsumexp(1), (x,)) and gradgradcheck(lambda t: t.logsumexp(1), (x,))
