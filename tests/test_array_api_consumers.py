"""scikit-learn and SciPy take tensors through the array API standard."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SCIPY = """
import numpy as np, rushlight as rl
from scipy import integrate, special, stats
rng = np.random.default_rng(0)
a = rng.uniform(0.1, 0.9, (4, 5))
x = rl.from_numpy(a)
def same(name, mine, theirs, tolerance=1e-10):
    assert isinstance(mine, rl.Tensor), (name, type(mine))
    np.testing.assert_allclose(mine.numpy(), theirs, rtol=tolerance, atol=1e-12, err_msg=name)
    print(name)
same("special.logsumexp", special.logsumexp(x, axis=1), special.logsumexp(a, axis=1))
same("special.softmax", special.softmax(x, axis=1), special.softmax(a, axis=1))
same("stats.zscore", stats.zscore(x, axis=0), stats.zscore(a, axis=0))
same("stats.gmean", stats.gmean(x, axis=0), stats.gmean(a, axis=0))
same("stats.hmean", stats.hmean(x, axis=0), stats.hmean(a, axis=0))
same("stats.skew", stats.skew(x, axis=0), stats.skew(a, axis=0))
same("stats.kurtosis", stats.kurtosis(x, axis=0), stats.kurtosis(a, axis=0))
same("stats.moment", stats.moment(x, 3, axis=0), stats.moment(a, 3, axis=0))
same("stats.variation", stats.variation(x, axis=0), stats.variation(a, axis=0))
same("stats.entropy", stats.entropy(x, axis=0), stats.entropy(a, axis=0))
same("integrate.trapezoid", integrate.trapezoid(x, axis=0), integrate.trapezoid(a, axis=0))
"""

SKLEARN = """
import numpy as np, rushlight as rl, sklearn
from sklearn.preprocessing import MinMaxScaler, MaxAbsScaler, Normalizer, StandardScaler, Binarizer
from sklearn.metrics import accuracy_score, mean_squared_error, mean_absolute_error, r2_score
from sklearn.metrics.pairwise import euclidean_distances, cosine_similarity
sklearn.set_config(array_api_dispatch=True)
rng = np.random.default_rng(0)
a = rng.standard_normal((20, 4))
x = rl.from_numpy(a)
def same(name, mine, theirs, tolerance=1e-8):
    mine = mine.numpy() if isinstance(mine, rl.Tensor) else mine
    np.testing.assert_allclose(mine, theirs, rtol=tolerance, atol=1e-10, err_msg=name)
    print(name)
for kind in (MinMaxScaler, MaxAbsScaler, Normalizer, Binarizer, StandardScaler):
    mine = kind().fit(x).transform(x)
    assert isinstance(mine, rl.Tensor), kind
    same(kind.__name__, mine, kind().fit(a).transform(a))
b = rng.standard_normal((20, 4))
y = rl.from_numpy(b)
same("mean_squared_error", mean_squared_error(x, y), mean_squared_error(a, b))
same("mean_absolute_error", mean_absolute_error(x, y), mean_absolute_error(a, b))
same("r2_score", r2_score(x, y), r2_score(a, b))
same("accuracy_score", accuracy_score(rl.tensor([0, 1, 1]), rl.tensor([0, 1, 0])), 2 / 3, 1e-6)
same("euclidean_distances", euclidean_distances(x, y), euclidean_distances(a, b))
same("cosine_similarity", cosine_similarity(x, y), cosine_similarity(a, b))
"""

SKLEARN_LINALG = """
import numpy as np, rushlight as rl, sklearn
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
sklearn.set_config(array_api_dispatch=True)
rng = np.random.default_rng(0)
a = rng.standard_normal((60, 5))
x = rl.from_numpy(a)
t = a @ np.arange(1.0, 6.0) + 3
mine = Ridge(solver="svd").fit(x, rl.from_numpy(t))
np.testing.assert_allclose(mine.coef_.numpy(), Ridge(solver="svd").fit(a, t).coef_, rtol=1e-8)
mine = PCA(n_components=2, svd_solver="full").fit_transform(x)
assert isinstance(mine, rl.Tensor)
np.testing.assert_allclose(mine.numpy(), PCA(n_components=2, svd_solver="full").fit_transform(a), rtol=1e-6, atol=1e-9)
c = (a[:, 0] > 0).astype(np.int64)
mine = LinearDiscriminantAnalysis(solver="svd").fit(x, rl.from_numpy(c)).predict(x)
assert (mine.numpy() == LinearDiscriminantAnalysis(solver="svd").fit(a, c).predict(a)).mean() > 0.99
"""


def run(code):
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr


def test_scipy():
    pytest.importorskip("scipy")
    run(SCIPY)


def test_scikit_learn():
    pytest.importorskip("sklearn")
    run(SKLEARN)


def test_scikit_learn_with_linear_algebra():
    pytest.importorskip("sklearn")
    run(SKLEARN_LINALG)


def test_array_api_compat():
    compat = pytest.importorskip("array_api_compat")
    import rushlight

    x = rushlight.ones(2, 3)
    assert compat.is_array_api_obj(x)
    assert compat.array_namespace(x) is rushlight.array_api
    assert compat.size(x) == 6 and compat.device(x) == rushlight.device("cpu")
    assert compat.to_device(x, "cpu") is x
