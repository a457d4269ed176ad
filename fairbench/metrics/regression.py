"""Errors, likelihoods and distributional parity of regressions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from fairbench.metrics.registry import REGRESSION, Metric

Values = NDArray[np.float64]


def absolute_error_rows(target: ArrayLike, prediction: ArrayLike) -> Values:
    """Return each row's absolute error."""
    losses: Values = np.abs(np.asarray(target, float) - np.asarray(prediction, float))
    return losses


MAE = Metric(
    name="mae",
    label="MAE",
    sentence="The mean absolute difference between prediction and target.",
    task=REGRESSION,
    better="lower",
    needs=("prediction",),
    interval="mean",
    function=absolute_error_rows,
    relative=True,
    shown=("everyone",),
)


def predicted_rows(target: ArrayLike, prediction: ArrayLike) -> Values:
    """Return each row's prediction, whatever its target."""
    return np.asarray(prediction, float)


MEAN_PREDICTION = Metric(
    name="mean_prediction",
    label="mean prediction",
    sentence="What is predicted on average.",
    task=REGRESSION,
    better="neither",
    needs=("prediction",),
    interval="mean",
    function=predicted_rows,
)


def root_mean_squared_error(target: ArrayLike, prediction: ArrayLike) -> float:
    """Return the root of the mean squared error."""
    y, m = np.asarray(target, float), np.asarray(prediction, float)
    return float(np.sqrt(((y - m) ** 2).mean()))


RMSE = Metric(
    name="rmse",
    label="RMSE",
    sentence="The root of the mean squared difference between prediction and target.",
    task=REGRESSION,
    better="lower",
    needs=("prediction",),
    interval="none",
    function=root_mean_squared_error,
    relative=True,
    shown=("everyone", "groups"),
)


def r2_score(target: ArrayLike, prediction: ArrayLike) -> float:
    """Return the coefficient of determination; NaN where the target is constant."""
    y, m = np.asarray(target, float), np.asarray(prediction, float)
    total = ((y - y.mean()) ** 2).sum()
    return float(1 - ((y - m) ** 2).sum() / total) if total > 0 else float("nan")


R2 = Metric(
    name="r2",
    label="R2",
    sentence="The share of the target's variance that the predictions explain.",
    task=REGRESSION,
    better="higher",
    needs=("prediction",),
    interval="none",
    function=r2_score,
    undefined="target is constant in {part}",
    shown=("everyone",),
)


def normal_nll_rows(target: ArrayLike, mean: ArrayLike, sd: ArrayLike) -> Values:
    """Return each row's -log N(target; mean, sd), the constant included; NaN where sd <= 0."""
    y, m, s = (np.asarray(a, float) for a in (target, mean, sd))
    with np.errstate(invalid="ignore", divide="ignore"):
        losses = np.log(s) + ((y - m) / s) ** 2 / 2 + np.log(2 * np.pi) / 2
        return np.where(s > 0, losses, np.nan)


NLL = Metric(
    name="nll",
    label="NLL of the uncertainty",
    sentence="The mean negative log-likelihood of the targets under the predicted normals.",
    task=REGRESSION,
    better="lower",
    needs=("prediction", "sd_or_uncertainty"),
    interval="mean",
    function=normal_nll_rows,
    shown=("everyone",),
)


def crps_normal_rows(target: ArrayLike, mean: ArrayLike, sd: ArrayLike) -> Values:
    """Return each row's continuous ranked probability score of N(mean, sd); NaN where sd <= 0.

    sd [z (2 Phi(z) - 1) + 2 phi(z) - 1 / sqrt(pi)], z = (target - mean) / sd (Gneiting, Raftery
    2007, equation 21); in the target's unit, 0 at best.
    """
    y, m, s = (np.asarray(a, float) for a in (target, mean, sd))
    with np.errstate(invalid="ignore", divide="ignore"):
        z = (y - m) / s
        density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
        scores = s * (z * (2 * ndtr(z) - 1) + 2 * density - 1 / np.sqrt(np.pi))
        return np.where(s > 0, scores, np.nan)


CRPS = Metric(
    name="crps",
    label="CRPS",
    sentence="How far the predicted normals are from the targets, in the target's unit.",
    task=REGRESSION,
    better="lower",
    needs=("prediction", "sd"),
    interval="mean",
    function=crps_normal_rows,
)


def normal_quantile(level: float) -> float:
    """Return how many sds a central normal interval of probability `level` reaches either way."""
    return float(ndtri((1 + level) / 2))


def kolmogorov_smirnov(a: ArrayLike, b: ArrayLike) -> float:
    """Return the largest distance of two empirical distribution functions; NaN if one is empty."""
    x, y = np.sort(np.asarray(a, float)), np.sort(np.asarray(b, float))
    if not (len(x) and len(y)):
        return float("nan")
    points = np.concatenate([x, y])
    cdf_x = np.searchsorted(x, points, side="right") / len(x)
    cdf_y = np.searchsorted(y, points, side="right") / len(y)
    return float(np.abs(cdf_x - cdf_y).max())


def distribution_parity(samples: Sequence[ArrayLike]) -> float:
    """Return the largest Kolmogorov-Smirnov distance between two groups' predictions.

    Statistical parity of a regression (FairlyUncertain, section 6; Agarwal et al. 2019), exact at
    the sorted values. NaN if a group is empty.
    """
    distances = [kolmogorov_smirnov(a, b) for i, a in enumerate(samples) for b in samples[i + 1 :]]
    return float(np.max(distances)) if distances else float("nan")


STATISTICAL_PARITY = Metric(
    name="statistical_parity",
    label="statistical parity",
    sentence="The largest distance between the distributions of two groups' predictions.",
    task=REGRESSION,
    better="lower",
    needs=("prediction", "groups"),
    interval="none",
    function=distribution_parity,
    shown=("gaps",),
    special=True,
)
LABEL_PARITY = Metric(
    name="label_parity",
    label="label parity",
    sentence="The largest distance between the distributions of two groups' targets.",
    task=REGRESSION,
    better="neither",
    needs=("groups",),
    interval="none",
    function=distribution_parity,
    shown=("gaps",),
    special=True,
)
