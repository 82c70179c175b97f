"""scikit-learn with array-API dispatch: estimators and metrics give with tensors what they give with NumPy arrays.

    python tests/consumers/scikit_learn_cases.py

Left out, since they take tensors of no library, PyTorch's included: RobustScaler, QuantileTransformer,
PowerTransformer, SplineTransformer, LinearRegression, KernelRidge, matthews_corrcoef, roc_curve, roc_auc_score, chi2.
QuadraticDiscriminantAnalysis gives NumPy arrays.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import sklearn
from cases import Case, run
from sklearn import (
    calibration,
    decomposition,
    discriminant_analysis,
    kernel_approximation,
    linear_model,
    metrics,
    mixture,
    model_selection,
    naive_bayes,
    pipeline,
    preprocessing,
)
from sklearn.metrics import cluster, pairwise

warnings.simplefilter("ignore")
sklearn.set_config(array_api_dispatch=True)
numbers = np.random.default_rng(0)
ROWS, OTHERS = numbers.standard_normal((60, 4)), numbers.standard_normal((20, 4))
CLASSES = (ROWS[:, 0] + 0.3 * numbers.standard_normal(60) > 0).astype(np.int64)
TARGETS = ROWS @ np.array([1.0, 2.0, -1.0, 0.5]) + 0.1 * numbers.standard_normal(60)
THREE, GUESSED = numbers.integers(0, 3, 60), numbers.integers(0, 3, 60)
CHANCES, WEIGHTS = numbers.random(60), numbers.random(60)
DECIDED = (CHANCES > 0.5).astype(np.int64)
POSITIVE = np.abs(ROWS) + 0.1
MEASURED, PREDICTED = np.abs(TARGETS) + 0.1, np.abs(TARGETS + numbers.standard_normal(60)) + 0.1
SHARES = numbers.dirichlet(np.ones(3), 60)
LABELS, LABELS_GUESSED = ((numbers.random((60, 3)) > 0.5).astype(np.int64) for _ in range(2))

CASES: dict[str, Case] = {}


def transformer(model: Any) -> None:
    CASES[repr(model)] = lambda c: sklearn.clone(model).fit(c(ROWS)).transform(c(OTHERS))


def predictor(model: Any, targets: Any) -> None:
    CASES[repr(model)] = lambda c: sklearn.clone(model).fit(c(ROWS), c(targets)).predict(c(OTHERS))


def classifier(model: Any) -> None:
    predictor(model, CLASSES)
    scores = "predict_proba" if hasattr(model, "predict_proba") else "decision_function"
    CASES[f"{model!r}.{scores}"] = lambda c: getattr(sklearn.clone(model).fit(c(ROWS), c(CLASSES)), scores)(c(OTHERS))


def metric(module: Any, name: str, *data: Any, **options: Any) -> None:
    function = getattr(module, name)
    shown = ", ".join(str(v) if isinstance(v, str) else k for k, v in options.items())
    CASES[f"{name}({data[0].dtype}, {shown})"] = lambda c: function(
        *map(c, data), **{k: c(v) if isinstance(v, np.ndarray) else v for k, v in options.items()}
    )


for step in (
    preprocessing.Binarizer(),
    preprocessing.MaxAbsScaler(),
    preprocessing.MinMaxScaler(),
    preprocessing.Normalizer(),
    preprocessing.StandardScaler(),
    preprocessing.PolynomialFeatures(2),
    decomposition.PCA(2, svd_solver="full"),
    decomposition.PCA(2, svd_solver="covariance_eigh"),
    decomposition.PCA(2, svd_solver="randomized", random_state=0),
    kernel_approximation.Nystroem(n_components=10, random_state=0),
    pipeline.make_pipeline(preprocessing.StandardScaler(), decomposition.PCA(2)),
):
    transformer(step)
for model in (
    linear_model.Ridge(solver="svd"),
    linear_model.RidgeCV(),
    linear_model.PoissonRegressor(),
    model_selection.GridSearchCV(linear_model.Ridge(solver="svd"), {"alpha": [0.1, 1.0]}),
):
    predictor(model, MEASURED)
for model in (
    linear_model.RidgeClassifier(solver="svd"),
    linear_model.RidgeClassifierCV(),
    linear_model.LogisticRegression(solver="lbfgs"),
    discriminant_analysis.LinearDiscriminantAnalysis(),
    naive_bayes.GaussianNB(),
    calibration.CalibratedClassifierCV(discriminant_analysis.LinearDiscriminantAnalysis(), method="temperature"),
):
    classifier(model)
CASES |= {
    "KernelCenterer": lambda c: preprocessing.KernelCenterer().fit(c(ROWS @ ROWS.T)).transform(c(OTHERS @ ROWS.T)),
    "GaussianMixture": lambda c: (
        mixture.GaussianMixture(2, random_state=0, init_params="random").fit(c(ROWS)).predict_proba(c(OTHERS))
    ),
    "LabelEncoder": lambda c: preprocessing.LabelEncoder().fit_transform(c(THREE)),
    "LabelBinarizer": lambda c: preprocessing.LabelBinarizer().fit_transform(c(THREE)),
    "cross_val_predict": lambda c: model_selection.cross_val_predict(
        discriminant_analysis.LinearDiscriminantAnalysis(), c(ROWS), c(CLASSES)
    ),
    "train_test_split": lambda c: model_selection.train_test_split(c(ROWS), random_state=0)[1],
}

for name in ("accuracy_score", "balanced_accuracy_score", "cohen_kappa_score", "confusion_matrix", "hamming_loss"):
    metric(metrics, name, CLASSES, DECIDED)
    metric(metrics, name, THREE.astype(np.int32), GUESSED.astype(np.int32))
metric(metrics, "zero_one_loss", CLASSES, DECIDED)
metric(metrics, "class_likelihood_ratios", CLASSES, DECIDED)
metric(metrics, "multilabel_confusion_matrix", LABELS, LABELS_GUESSED)
for name in ("f1_score", "jaccard_score", "precision_score", "recall_score", "precision_recall_fscore_support"):
    metric(metrics, name, CLASSES, DECIDED)
    metric(metrics, name, THREE, GUESSED, average="macro")
metric(metrics, "fbeta_score", CLASSES, DECIDED, beta=0.5)
for name in ("brier_score_loss", "log_loss", "average_precision_score", "precision_recall_curve", "det_curve"):
    metric(metrics, name, CLASSES, CHANCES)
metric(metrics, "d2_log_loss_score", CLASSES, CHANCES)
metric(metrics, "log_loss", THREE.astype(np.int32), SHARES)
metric(metrics, "max_error", MEASURED, PREDICTED)
for name in (
    "explained_variance_score",
    "mean_absolute_error",
    "mean_absolute_percentage_error",
    "mean_gamma_deviance",
    "mean_pinball_loss",
    "mean_poisson_deviance",
    "mean_squared_error",
    "mean_squared_log_error",
    "mean_tweedie_deviance",
    "median_absolute_error",
    "r2_score",
    "root_mean_squared_error",
    "root_mean_squared_log_error",
    "d2_absolute_error_score",
    "d2_pinball_score",
    "d2_tweedie_score",
):
    metric(metrics, name, MEASURED, PREDICTED)
    metric(metrics, name, MEASURED, PREDICTED, sample_weight=WEIGHTS)
for name in ("dcg_score", "ndcg_score", "label_ranking_loss"):
    metric(metrics, name, LABELS, SHARES)
for name in ("adjusted_rand_score", "mutual_info_score"):
    metric(cluster, name, THREE, GUESSED)
metric(cluster, "entropy", THREE)
for name in (
    "additive_chi2_kernel",
    "chi2_kernel",
    "cosine_distances",
    "cosine_similarity",
    "euclidean_distances",
    "laplacian_kernel",
    "linear_kernel",
    "manhattan_distances",
    "paired_cosine_distances",
    "paired_euclidean_distances",
    "paired_manhattan_distances",
    "polynomial_kernel",
    "rbf_kernel",
    "sigmoid_kernel",
):
    metric(pairwise, name, POSITIVE, POSITIVE[::-1])
for name in ("euclidean", "cosine", "manhattan"):
    metric(pairwise, "pairwise_distances", ROWS, OTHERS, metric=name)
metric(pairwise, "pairwise_kernels", ROWS, OTHERS, metric="rbf")

# The sign of a component is free, and the solver of another library chooses another.
run(CASES, up_to_sign=frozenset(name for name in CASES if "PCA(" in name))
