"""SciPy with SCIPY_ARRAY_API=1: its functions give with tensors what they give with NumPy arrays.

    SCIPY_ARRAY_API=1 python tests/consumers/scipy_cases.py

Left out: functions that take tensors of no library, PyTorch's included (stats.anderson, signal.argrelmax,
signal.zoom_fft, interpolate.PchipInterpolator); those that give NumPy arrays for tensors, PyTorch's included (linalg,
spectral analysis, find_peaks, ...); and interpolate.RBFInterpolator, which calls a function `diag` that the standard
does not have.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.optimize.elementwise
from cases import Case, run
from scipy import (
    cluster,
    constants,
    differentiate,
    fft,
    integrate,
    interpolate,
    ndimage,
    optimize,
    signal,
    special,
    stats,
)
from scipy.spatial import transform

warnings.simplefilter("ignore")
numbers = np.random.default_rng(0)
PART = numbers.uniform(0.1, 0.9, (4, 6))
WAVE, OTHER = numbers.standard_normal(32), numbers.standard_normal(32)
PICTURE = numbers.standard_normal((8, 9))
GRID, INSIDE = np.arange(32.0), np.array([1.5, 2.5])
NUMERATOR, DENOMINATOR = signal.butter(3, 0.3)
SECTIONS = signal.butter(3, 0.3, output="sos")
Rotation = transform.Rotation

CASES: dict[str, Case] = {}


def functions(module: Any, names: str, *data: Any, **options: Any) -> None:
    """One case for each name, with the same arguments."""
    for name in names.split():
        call = getattr(module, name)
        CASES[f"{module.__name__}.{name}"] = lambda c, call=call: call(*map(c, data), **options)


functions(
    special,
    "entr erf erfc exp2 exp10 expit expm1 exprel gamma gammaln i0 i0e i1 i1e j0 j1 k0 k1 y0 y1 log1p log_ndtr loggamma "
    "logit ndtr ndtri psi rgamma sinc cbrt ellipk ellipe erfinv erfcinv spence",
    PART,
)
functions(
    special,
    "betaln binom boxcox chdtr chdtrc gammainc gammaincc huber inv_boxcox kl_div pdtr poch pseudo_huber rel_entr stdtr "
    "stdtrit xlog1py xlogy",
    PART,
    PART * 1.1,
)
functions(special, "betainc betaincc fdtr nctdtr", PART, PART * 1.05, PART * 1.1)
functions(special, "hyp2f1", PART, PART * 1.1, PART * 1.2, PART * 0.9)
functions(special, "logsumexp softmax log_softmax", PART, axis=1)

functions(
    stats,
    "bayes_mvs circmean circstd circvar describe differential_entropy expectile iqr jarque_bera kstat kstatvar "
    "kurtosis kurtosistest lmoment median_abs_deviation mode moment normaltest rankdata sem shapiro "
    "sigmaclip skew skewtest tmax tmean tmin tsem tstd tvar variation zscore",
    WAVE,
)
functions(stats, "entropy gmean gstd gzscore hmean", np.abs(WAVE))
functions(
    stats,
    "alexandergovern ansari bartlett brunnermunzel cramervonmises_2samp epps_singleton_2samp f_oneway fligner "
    "kendalltau kruskal ks_2samp levene linregress mannwhitneyu mood pearsonr ranksums siegelslopes somersd spearmanr "
    "theilslopes ttest_ind ttest_rel weightedtau wilcoxon",
    WAVE,
    OTHER,
)
functions(stats, "friedmanchisquare", WAVE, OTHER, WAVE * OTHER)
functions(stats, "combine_pvalues false_discovery_control", PART[0])
CASES |= {
    "stats.ttest_1samp": lambda c: stats.ttest_1samp(c(WAVE), 0.1),
    "stats.chisquare": lambda c: stats.chisquare(c([10.0, 12.0, 9.0])),
    "stats.power_divergence": lambda c: stats.power_divergence(c([10.0, 12.0, 9.0]), lambda_=1.5),
    "stats.directional_stats": lambda c: stats.directional_stats(c(PICTURE)).mean_direction,
    "stats.quantile": lambda c: stats.quantile(c(WAVE), 0.3),
    "stats.pearsonr by rows": lambda c: stats.pearsonr(c(PART), c(PART**2), axis=1),
    "stats.boxcox_llf": lambda c: stats.boxcox_llf(0.4, c(np.abs(WAVE))),
    "stats.trim_mean": lambda c: stats.trim_mean(c(WAVE), 0.1),
    "stats.bootstrap": lambda c: (
        stats.bootstrap(
            (c(WAVE),), lambda x, axis: x.mean(axis), n_resamples=20, rng=np.random.default_rng(1)
        ).standard_error
    ),
}

functions(
    signal,
    "detrend envelope gausspulse hilbert medfilt wiener cspline1d qspline1d",
    WAVE,
)
functions(signal, "convolve correlate fftconvolve oaconvolve", WAVE, OTHER)
functions(signal, "lfilter filtfilt", NUMERATOR, DENOMINATOR, WAVE)
functions(signal, "bilinear freqz lfilter_zi", NUMERATOR, DENOMINATOR)
functions(signal, "sosfilt sosfiltfilt", SECTIONS, WAVE)
functions(signal, "freqz_sos sosfilt_zi sosfreqz", SECTIONS)
CASES |= {
    "signal.convolve2d": lambda c: signal.convolve2d(c(PICTURE), c(PART)),
    "signal.deconvolve": lambda c: signal.deconvolve(c(WAVE), c(OTHER[:3])),
    "signal.group_delay": lambda c: signal.group_delay((c(NUMERATOR), c(DENOMINATOR))),
    "signal.resample": lambda c: signal.resample(c(WAVE), 20),
    "signal.resample_poly": lambda c: signal.resample_poly(c(WAVE), 3, 2),
    "signal.savgol_filter": lambda c: signal.savgol_filter(c(WAVE), 5, 2),
    "signal.upfirdn": lambda c: signal.upfirdn(c(OTHER[:5]), c(WAVE), 2, 1),
    "signal.vectorstrength": lambda c: signal.vectorstrength(c(WAVE), c([2.0, 3.0])),
    "signal.zpk2tf": lambda c: signal.zpk2tf(c([0.5]), c([0.2, 0.3]), 2.0),
}

functions(
    fft, "dct dctn dst dstn fft fft2 fftn fftshift hfft idct idst ifft ihfft irfft rfft rfftn irfftn hfft2", PICTURE
)
CASES["fft.fht"] = lambda c: fft.fht(c(WAVE), 0.1, 0.2)

functions(integrate, "cumulative_simpson cumulative_trapezoid trapezoid", PART)
CASES |= {
    "integrate.romb": lambda c: integrate.romb(c(np.arange(9.0))),
    "integrate.cubature": lambda c: integrate.cubature(lambda x: (x**2).sum(-1), c([0.0, 0.0]), c([1.0, 1.0])).estimate,
    "integrate.tanhsinh": lambda c: integrate.tanhsinh(lambda x: x * x, c([0.0, 1.0]), c([1.0, 2.0])).integral,
    "differentiate.derivative": lambda c: differentiate.derivative(lambda x: x**3, c([1.0, 2.0])).df,
    "differentiate.jacobian": lambda c: differentiate.jacobian(lambda x: x**2, c([1.0, 2.0])).df,
    "optimize.elementwise.find_root": lambda c: (
        scipy.optimize.elementwise.find_root(lambda x: x * x - 2, (c([0.0]), c([2.0]))).x
    ),
    "optimize.elementwise.find_minimum": lambda c: (
        scipy.optimize.elementwise.find_minimum(lambda x: (x - 0.3) ** 2, (c([0.0]), c([0.1]), c([2.0]))).x
    ),
    "optimize.elementwise.bracket_root": lambda c: (
        scipy.optimize.elementwise.bracket_root(lambda x: x * x * x - 2, c([0.0])).bracket
    ),
}
functions(optimize, "rosen rosen_der rosen_hess", WAVE)

functions(ndimage, "center_of_mass laplace prewitt sobel spline_filter uniform_filter", PICTURE)
functions(ndimage, "grey_dilation grey_erosion maximum_filter median_filter", PICTURE, size=3)
functions(ndimage, "fourier_gaussian gaussian_filter gaussian_laplace", PICTURE, sigma=1.0)
functions(ndimage, "binary_dilation binary_erosion binary_fill_holes binary_opening label", PICTURE > 0)
functions(ndimage, "distance_transform_edt", PICTURE > 0)
CASES |= {
    "ndimage.percentile_filter": lambda c: ndimage.percentile_filter(c(PICTURE), 50, size=3),
    "ndimage.rank_filter": lambda c: ndimage.rank_filter(c(PICTURE), 1, size=3),
    "ndimage.rotate": lambda c: ndimage.rotate(c(PICTURE), 30),
    "ndimage.shift": lambda c: ndimage.shift(c(PICTURE), 0.5),
    "ndimage.zoom": lambda c: ndimage.zoom(c(PICTURE), 2),
}

functions(cluster.vq, "whiten", PART)
functions(cluster.vq, "kmeans kmeans2 vq", PART, PART[:2])
functions(cluster.hierarchy, "linkage ward", PART)
CASES |= {
    "cluster.hierarchy.cophenet": lambda c: cluster.hierarchy.cophenet(cluster.hierarchy.linkage(c(PART))),
    "cluster.hierarchy.fcluster": lambda c: cluster.hierarchy.fcluster(cluster.hierarchy.linkage(c(PART)), 0.3),
    "cluster.hierarchy.leaves_list": lambda c: cluster.hierarchy.leaves_list(cluster.hierarchy.linkage(c(PART))),
    "Rotation.as_matrix": lambda c: Rotation.from_quat(c(PICTURE[:, :4])).as_matrix(),
    "Rotation.as_quat": lambda c: Rotation.from_rotvec(c(PICTURE[:, :3])).as_quat(),
    "Rotation.apply": lambda c: Rotation.from_rotvec(c(PICTURE[:, :3])).apply(c(PICTURE[:, 3:6])),
    "Rotation.mean": lambda c: Rotation.from_rotvec(c(PICTURE[:, :3])).mean().as_quat(),
    "Rotation products": lambda c: (
        Rotation.from_euler("xyz", c(PICTURE[:, :3])) * Rotation.from_rotvec(c(PICTURE[:, 3:6]))
    ).as_rotvec(),
    "RigidTransform": lambda c: transform.RigidTransform.from_translation(c(PICTURE[:, :3])).as_matrix(),
}

for kind in ("Akima1DInterpolator", "CubicSpline", "make_interp_spline"):
    CASES[f"interpolate.{kind}"] = lambda c, kind=kind: getattr(interpolate, kind)(c(GRID), c(WAVE))(c(INSIDE))
CASES |= {
    "interpolate.BSpline": lambda c: interpolate.BSpline(c(np.arange(8.0)), c(WAVE[:4]), 3)(c([3.5])),
    "interpolate.PPoly": lambda c: interpolate.PPoly(c(WAVE[:8].reshape(4, 2)), c([0.0, 1.0, 2.0]))(c([0.5])),
    "interpolate.RegularGridInterpolator": lambda c: interpolate.RegularGridInterpolator(
        (c(np.arange(8.0)), c(np.arange(9.0))), c(PICTURE)
    )(c([[1.5, 2.5]])),
    "interpolate.interpn": lambda c: interpolate.interpn(
        (c(np.arange(8.0)), c(np.arange(9.0))), c(PICTURE), c([[1.5, 2.5]])
    ),
    "constants.convert_temperature": lambda c: constants.convert_temperature(c(WAVE), "C", "K"),
    "constants.lambda2nu": lambda c: constants.lambda2nu(c(np.abs(WAVE))),
}

run(CASES)
