"""Metrics of several classes: likelihoods, and group fairness as averages over the classes.

Each class j against the rest has a table of TN, FP, FN, TP for every group s (Barrainkua et al.,
AISTATS 2024, section 8, equation 4). Groups are compared in each table as with two classes: gap_j
is the largest difference between two groups in AR_sj, the share predicted as j (statistical
parity), or in TPR_sj, the share of j that is predicted as j (equal opportunity). The classes are
then combined:

- weighted: sum_j p(y = j) gap_j, where p(y = j) is how often j is the label of anyone. These are
  the paper's macro forms, (9) to (12); the name is scikit-learn's for such weights;
- group_weighted: each group's rates are summed first, with its own labels as weights, and the
  largest difference between two groups is taken of the sums sum_j p(y = j | s) AR_sj: the paper's
  macro-micro form (13), (14). Of true positive rates such a sum is the group's accuracy, because
  p(y = j | s) TPR_sj is its share of rows that are j and predicted as j; so (15) and (16) equal (7)
  and (8), which are the micro form;
- micro: the classes' tables are added up first, (7) and (8). Shares of predictions all become 1
  over the number of classes, so that (5) and (6) are 0 for every classifier, and are left out;
- class_mean: the plain mean over the classes, which that paper does not have;
- largest: the largest gap of any class (Denis, Elie, Hebiri, Hu 2021).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from fairbench.core.arrays import Floats
from fairbench.metrics.group import gap
from fairbench.metrics.probability import brier_rows, expected_calibration_error, log_loss_rows
from fairbench.metrics.registry import Counts, Rate, accuracy, base_rate, selection_rate, total

FORMS = ("class_mean", "weighted", "largest")


def one_vs_rest(counts: Counts) -> Counts:
    """Return the TN, FP, FN, TP of every class against the rest, (..., G, C, C) -> (C, ..., G, 4).

    Parameters
    ----------
    counts : rows by group, true class and predicted class.
    """
    hit = np.einsum("...kk->...k", counts)
    label, predicted = counts.sum(axis=-1), counts.sum(axis=-2)
    everyone = counts.sum(axis=(-2, -1))[..., None]
    cells = (everyone - label - predicted + hit, predicted - hit, label - hit, hit)
    return np.moveaxis(np.stack(cells, axis=-1), -2, 0)


def right_or_wrong(counts: Counts) -> Counts:
    """Return the tables (..., G, 4) with right predictions as TP and wrong predictions as FN."""
    right = np.einsum("...kk->...", counts)
    wrong = counts.sum(axis=(-2, -1)) - right
    return np.stack([np.zeros_like(right), np.zeros_like(right), wrong, right], axis=-1)


def average_gaps(form: str, gaps: Floats, shares: Floats) -> Floats:
    """Return a form of the classes' gaps (C, ...); gaps of NaN are left out.

    Parameters
    ----------
    form : one of `FORMS`.
    shares : (C, ...) how often each class is the label.

    Notes
    -----
    ``weighted``: Barrainkua et al., AISTATS 2024, section 8, equations (9) and (11).
    """
    if form == "largest":
        return np.fmax.reduce(gaps)
    weight = np.where(np.isnan(gaps), 0.0, shares if form == "weighted" else 1.0)
    with np.errstate(invalid="ignore"):
        mean: Floats = (weight * np.nan_to_num(gaps)).sum(axis=0) / weight.sum(axis=0)
    return mean


def combined_gap(form: str, rate: Rate, counts: Counts) -> Floats:
    """Return a form of the classes' gaps in a rate, (..., G, C, C) -> (...)."""
    tables = one_vs_rest(counts)
    return average_gaps(form, gap(rate, tables), base_rate(total(tables))[..., 0])


def group_weighted(tables: Counts) -> Floats:
    """Return sum_j p(y = j | s) AR_sj of every group s, (C, ..., G, 4) -> (..., G).

    It is how often a row's label and the prediction of another row of its group, drawn at random,
    are the same class; NaN of an empty group.
    """
    return (base_rate(tables) * selection_rate(tables)).sum(axis=0)


def group_weighted_gap(counts: Counts) -> Floats:
    """Return the widest gap (...) between groups in what :func:`group_weighted` returns."""
    return _widest(group_weighted(one_vs_rest(counts)))


def micro_gap(counts: Counts) -> Floats:
    """Return the widest gap (...) in the true positive rate of all classes added up."""
    return _widest(accuracy(right_or_wrong(counts)))


def _widest(values: Floats) -> Floats:
    return values.max(axis=-1) - values.min(axis=-1)


def class_log_loss(target: ArrayLike, scores: ArrayLike, *, floor: float = 1e-15) -> Floats:
    """Return each row's -log p of its class, p clipped to [floor, 1 - floor].

    Parameters
    ----------
    target : (n,) codes.
    scores : (n, C); of two classes it is the log loss of a label.
    """
    code, p = np.asarray(target, np.intp), np.asarray(scores, float)
    if p.shape[1] == 2:
        return log_loss_rows(code, p[:, 1], floor=floor)
    of_label = np.take_along_axis(p, code[:, None], axis=1)[:, 0]
    return -np.log(np.clip(of_label, floor, 1 - floor))


def class_brier(target: ArrayLike, scores: ArrayLike) -> Floats:
    """Return half of each row's sum of squared differences, over the classes; at most 1.

    Brier (1950) has the whole sum. Halved, it is the score of a label where there are two classes.

    Parameters
    ----------
    target : (n,) codes.
    scores : (n, C) probabilities.
    """
    code, p = np.asarray(target, np.intp), np.asarray(scores, float)
    if p.shape[1] == 2:
        return brier_rows(code, p[:, 1])
    return ((p - (code[:, None] == np.arange(p.shape[1]))) ** 2).sum(axis=1) / 2


def error_of_classes(counts: Counts) -> Floats:
    """Return the share of wrong predictions, (..., C, C) -> (...)."""
    return 1 - accuracy(right_or_wrong(counts))


def classwise_calibration_error(target: ArrayLike, scores: ArrayLike, *, bins: int = 15) -> float:
    """Return the mean over the classes of their expected calibration errors (Kull et al. 2019)."""
    code = np.asarray(target)
    p = np.asarray(scores, float)
    errors = [expected_calibration_error(code == k, p[:, k], bins=bins) for k in range(p.shape[1])]
    return float(np.mean(errors))
