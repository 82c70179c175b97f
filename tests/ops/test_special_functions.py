"""Special functions against SciPy, in units in the last place, and PyTorch's rules for dtypes."""

from __future__ import annotations

import math

import numpy as np
import pytest

import rushlight as rl

scipy = pytest.importorskip("scipy.special")

NEAR = np.concatenate([np.linspace(-30, 30, 601), np.geomspace(1e-12, 600, 200), -np.geomspace(1e-12, 600, 200)])
POSITIVE = np.geomspace(1e-10, 600, 500)

FUNCTIONS = {
    "i0": (scipy.i0, NEAR, 8),
    "i0e": (scipy.i0e, NEAR, 8),
    "i1": (scipy.i1, NEAR, 8),
    "i1e": (scipy.i1e, NEAR, 8),
    "modified_bessel_i0": (scipy.i0, NEAR, 8),
    "modified_bessel_i1": (scipy.i1, NEAR, 8),
    "modified_bessel_k0": (scipy.k0, POSITIVE, 16),
    "modified_bessel_k1": (scipy.k1, POSITIVE, 16),
    "scaled_modified_bessel_k0": (scipy.k0e, POSITIVE, 16),
    "scaled_modified_bessel_k1": (scipy.k1e, POSITIVE, 16),
    "spherical_bessel_j0": (lambda x: scipy.spherical_jn(0, x), np.abs(NEAR), 8),
    "ndtri": (scipy.ndtri, np.concatenate([np.linspace(0.001, 0.999, 400), np.geomspace(1e-300, 0.1, 300)]), 16),
    "airy_ai": (lambda x: scipy.airy(x)[0], np.linspace(-4.9, 25, 700), None),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_one_number(name):
    reference, x, ulps = FUNCTIONS[name]
    with np.errstate(all="ignore"):
        want = reference(x)
    got = getattr(rl.special, name)(rl.from_numpy(x)).numpy()
    finite = np.isfinite(want) & (np.abs(want) > 1e-290)
    bound = (ulps * 2.2e-16 if ulps else 4e-14) * np.abs(want) + (0 if ulps else 1e-15)
    assert np.all(np.abs(got - want)[finite] <= bound[finite]), name
    single = getattr(rl.special, name)(rl.from_numpy(x.astype("float32"))).numpy()
    with np.errstate(all="ignore"):
        want = reference(x.astype("float32").astype("float64"))
        ratio = np.abs(single / want - 1)
    fine = np.isfinite(want) & (np.abs(want) > 1e-37) & (np.abs(want) < 3e38)
    assert np.all(ratio[fine] < (1.3e-7 if ulps else 1e-6))


@pytest.mark.parametrize("name", ["bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "airy_ai", "modified_bessel_k0"])
def test_against_many_digits(name):
    mp = pytest.importorskip("mpmath")
    reference = {
        "bessel_j0": lambda x: mp.besselj(0, x),
        "bessel_j1": lambda x: mp.besselj(1, x),
        "bessel_y0": lambda x: mp.bessely(0, x),
        "bessel_y1": lambda x: mp.bessely(1, x),
        "airy_ai": mp.airyai,
        "modified_bessel_k0": lambda x: mp.besselk(0, x),
    }[name]
    x = np.geomspace(0.01, 300, 60) if "airy" not in name else np.linspace(-60, 10, 61)
    got = getattr(rl.special, name)(rl.from_numpy(x)).numpy()
    with mp.workdps(30):
        want = np.array([float(reference(mp.mpf(float(v)))) for v in x])
    # The oscillating ones are right to some units of their amplitude.
    amplitude = (
        1 / np.sqrt(x) if "bessel_j" in name or "bessel_y" in name else np.abs(x) ** 1.25 if "airy" in name else 0
    )
    assert np.all(np.abs(got - want) <= 4e-16 * amplitude + 2e-15 * np.abs(want))


def test_edges():
    inf, nan = math.inf, math.nan
    t = rl.tensor([0.0, inf, -inf, nan, -1.0], dtype=rl.float64)
    s = rl.special
    same = lambda got, want: np.testing.assert_array_equal(got.numpy(), np.array(want))
    same(s.i0(t)[:4], [1, inf, inf, nan])
    same(s.i1(t)[:4], [0, inf, -inf, nan])
    same(s.i0e(t)[:4], [1, 0, 0, nan])
    same(s.modified_bessel_k0(t), [inf, 0, nan, nan, nan])
    same(s.bessel_y0(t), [-inf, 0, nan, nan, nan])
    same(s.ndtri(rl.tensor([0.0, 0.5, 1.0, -0.1, 1.1, nan])), [-inf, 0, inf, nan, nan, nan])
    same(s.chebyshev_polynomial_t(t, -1), [0] * 5)
    same(s.gammainc(rl.tensor([0.0, 1.0, inf, -1.0, 2.0]), rl.tensor([1.0, 0.0, 1.0, 1.0, inf])), [1, 0, 0, nan, 1])
    assert s.i0(rl.zeros(0)).shape == (0,)
    assert s.i0(rl.tensor(1)).dtype == rl.float32
    for name in ("ndtri", "airy_ai", "bessel_j0", "erfcx", "log_ndtr"):
        with pytest.raises(NotImplementedError):
            getattr(s, name)(rl.ones(2, dtype=rl.float16))


def test_incomplete_gamma_functions():
    a, x = np.meshgrid(np.geomspace(1e-3, 3e4, 60), np.geomspace(1e-4, 4e4, 61))
    for name, reference in (("igamma", scipy.gammainc), ("igammac", scipy.gammaincc)):
        got = getattr(rl, name)(rl.from_numpy(a), rl.from_numpy(x)).numpy()
        want = reference(a, x)
        fine = want > 1e-280
        assert np.max(np.abs(got[fine] / want[fine] - 1)) < 5e-12
    for big in (1e7, 1e9):
        z = big + np.linspace(-4, 4, 9) * math.sqrt(big)
        got = rl.igamma(rl.full((9,), big, dtype=rl.float64), rl.from_numpy(z)).numpy()
        assert np.max(np.abs(got / scipy.gammainc(big, z) - 1)) < 1e-9


POLYNOMIALS = {
    "chebyshev_polynomial_t": scipy.eval_chebyt,
    "chebyshev_polynomial_u": scipy.eval_chebyu,
    "shifted_chebyshev_polynomial_t": scipy.eval_sh_chebyt,
    "shifted_chebyshev_polynomial_u": scipy.eval_sh_chebyu,
    "hermite_polynomial_h": scipy.eval_hermite,
    "hermite_polynomial_he": scipy.eval_hermitenorm,
    "laguerre_polynomial_l": scipy.eval_laguerre,
    "legendre_polynomial_p": scipy.eval_legendre,
}


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials(name):
    x = np.linspace(-1, 1, 41) if "laguerre" not in name else np.linspace(0, 10, 41)
    if "shifted" in name:
        x = (x + 1) / 2
    for n in (0, 1, 2, 3, 7, 20, 60, 101):
        got = getattr(rl.special, name)(rl.from_numpy(x), float(n)).numpy()
        want = POLYNOMIALS[name](n, x)
        assert np.allclose(got, want, rtol=1e-9, atol=1e-10 * np.max(np.abs(want))), n


def test_third_and_fourth_kind():
    t = np.linspace(0.1, 3.0, 30)
    x = np.cos(t)
    for n in (0, 1, 5, 80):
        v = rl.special.chebyshev_polynomial_v(rl.from_numpy(x), n).numpy()
        w = rl.special.chebyshev_polynomial_w(rl.from_numpy(x), n).numpy()
        assert np.allclose(v, np.cos((n + 0.5) * t) / np.cos(t / 2), rtol=1e-10, atol=1e-11)
        assert np.allclose(w, np.sin((n + 0.5) * t) / np.sin(t / 2), rtol=1e-10, atol=1e-11)


def test_derivatives_and_sums():
    from rushlight.autograd import gradcheck, gradgradcheck

    x = rl.tensor([-2.5, -0.3, 0.4, 3.0, 11.0], dtype=rl.float64, requires_grad=True)
    for name in ("i0", "i0e", "i1", "i1e"):
        assert gradcheck(getattr(rl.special, name), (x,)) and gradgradcheck(getattr(rl.special, name), (x,))
    p = rl.tensor([0.01, 0.3, 0.7], dtype=rl.float64, requires_grad=True)
    assert gradcheck(rl.special.ndtri, (p,)) and gradgradcheck(rl.special.ndtri, (p,))
    a = rl.tensor([0.5, 2.0, 5.0], dtype=rl.float64)
    y = rl.tensor([0.4, 2.5, 4.0], dtype=rl.float64, requires_grad=True)
    assert gradcheck(lambda y: rl.igamma(a, y), (y,)) and gradgradcheck(lambda y: rl.igammac(a, y), (y,))
    assert np.allclose(rl.mvlgamma(rl.tensor([3.5, 6.0]), 3).numpy(), [scipy.multigammaln(v, 3) for v in (3.5, 6.0)])


@pytest.mark.parametrize("eps", [None, -1.0, float("nan"), 0.0, 0.1, 0.5, 0.7, 2.0])
def test_logit_takes_limits_as_pytorch_does(eps):
    torch = pytest.importorskip("torch")
    numbers = [-1.0, 0.0, 0.05, 0.4, 0.5, 0.6, 0.95, 1.0, 2.0, float("nan"), float("inf")]
    theirs, ours = torch.tensor(numbers, requires_grad=True), rl.tensor(numbers, requires_grad=True)
    a, b = torch.logit(theirs, eps), rl.logit(ours, eps)
    np.testing.assert_allclose(b.detach().numpy(), a.detach().numpy(), rtol=1e-6, atol=1e-7)
