"""Prediction-powered rates: scores of all rows, corrected by labelled ones (Angelopoulos et al.).

Valid whatever the scores are worth: "Prediction-powered inference" (Science, 2023) and its tuned
form, PPI++ (2023, section 6), for ratios of means through their estimating equation.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fairbench.inference.few_labels.frequentist import RateEstimate
from fairbench.inference.few_labels.table import PartlyLabelled
from fairbench.metrics.rates import Rate

Floats = NDArray[np.float64]
# Enough for the two tuned weights to settle; the first is the untuned estimate's.
_ROUNDS = 3


def prediction_powered(
    table: PartlyLabelled, rate: Rate, *, power: float | None = None
) -> RateEstimate:
    """Estimate a rate of every group in the pool, labelled rows being a random sample of it.

    With m = numerator - rate * denominator of a row and f its expectation under the score, the
    estimate solves power mean_all(f) + mean_labelled(m - power f) = 0. The error is that of the
    labelled mean, with the finite pool's correction.

    Parameters
    ----------
    power : how far scores are trusted, lambda: 1 is the plain form, 0 uses labelled rows alone;
        without it, it is tuned to the smallest error within [0, 1], which takes 20 labels a group
        or more.

    Returns
    -------
    Estimates; NaN for a group with fewer than two labels or where the rate is undefined.
    """
    pairs = [_group(table, rate, power, group) for group in range(table.n_groups)]
    value, error = np.array(pairs).T
    return RateEstimate(value, error)


def _group(
    table: PartlyLabelled, rate: Rate, power: float | None, group: int
) -> tuple[float, float]:
    rows = np.flatnonzero(table.group == group)
    known = ~np.isnan(table.label[rows])
    if known.sum() < 2:
        return float("nan"), float("nan")
    observed = _terms(rate, table.label[rows[known]], table.prediction[rows[known]])
    expected = _terms(rate, table.score[rows], table.prediction[rows])
    weight = 1.0 if power is None else power
    for _ in range(1 if power is not None else _ROUNDS):
        value, error, best = _solve(observed, expected, known, weight)
        weight = best if power is None else power
    return value, error


def _solve(
    observed: Floats, expected: Floats, known: NDArray[np.bool_], weight: float
) -> tuple[float, float, float]:
    """Return the estimate, its error, and the weight that would make the error smallest.

    Parameters
    ----------
    observed : (2, L) numerator and denominator of labelled rows. expected : (2, n) of all rows.
    """
    corrected = observed - weight * expected[:, known]
    top, bottom = corrected.mean(axis=1) + weight * expected.mean(axis=1)
    if bottom <= 0:
        return float("nan"), float("nan"), weight
    value = top / bottom
    m, f = (terms[0] - value * terms[1] for terms in (observed, expected[:, known]))
    labelled, rows = len(m), len(known)
    variance = np.var(m - weight * f, ddof=1) / labelled * (1 - labelled / rows)
    spread = np.var(f, ddof=1)
    best = float(np.clip(np.cov(m, f)[0, 1] / spread, 0, 1)) if spread > 0 else 0.0
    return float(value), float(np.sqrt(variance) / bottom), best


def _terms(rate: Rate, probability: Floats, prediction: NDArray[np.int64]) -> Floats:
    """Return expected numerator and denominator of rows with a probability of label 1, (2, n)."""
    weights = np.array([rate.numerator, rate.denominator], dtype=np.float64)
    terms: Floats = weights[:, prediction] * (1 - probability)
    terms += weights[:, 2 + prediction] * probability
    return terms
