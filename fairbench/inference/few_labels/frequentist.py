"""Rates of the labelled rows alone, and what an estimate or a posterior says about a difference."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairbench.core.arrays import Floats
from fairbench.core.errors import UserError
from fairbench.inference.few_labels.table import PartlyLabelled
from fairbench.inference.posterior import central_interval
from fairbench.metrics.rates import Counts, Rate


@dataclass(frozen=True)
class RateEstimate:
    """A rate of every group; NaN where it is undefined.

    Attributes
    ----------
    value, error : (G,) estimates and standard errors, independent between groups.
    """

    value: Floats
    error: Floats

    def differences(self) -> RateEstimate:
        """Return every other group minus the reference, (G - 1,)."""
        error = np.hypot(self.error[1:], self.error[0])
        return RateEstimate(self.value[1:] - self.value[0], error)


def frequentist(counts: Counts, rate: Rate) -> RateEstimate:
    """Estimate a rate of every group by that of its labelled rows.

    The variance is the delta method's for a ratio of multinomial sums, which is p (1 - p) / n for
    a proportion: none at all where all labelled rows agree, so the interval is then too short.

    Parameters
    ----------
    counts : (G, 4) labelled TN, FP, FN, TP.
    """
    value = rate(counts)
    residual = np.array(rate.numerator) - value[:, None] * np.array(rate.denominator)
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.sqrt((counts * residual**2).sum(axis=-1)) / (counts @ np.array(rate.denominator))
    return RateEstimate(value, error)


def beta_parameters(counts: Counts, rate: Rate, prior: float = 1.0) -> tuple[Floats, Floats]:
    """Return the parameters of each group's Beta posterior, (..., 4) counts -> two (...).

    Parameters
    ----------
    prior : both parameters of the Beta prior: 1, uniform, is what the paper states; its tables
        agree with 1/2.

    Raises
    ------
    UserError : a rate that is no proportion of rows, such as the F1 score.
    """
    top, bottom = np.array(rate.numerator), np.array(rate.denominator)
    if (bottom > 1).any() or (top > bottom).any():
        raise UserError(f"{rate.name} is no proportion of rows; beta_binomial needs one")
    successes = counts @ top
    return prior + successes, prior + counts @ bottom - successes


def beta_binomial(
    counts: Counts,
    rate: Rate,
    generator: np.random.Generator,
    *,
    prior: float = 1.0,
    draws: int = 2048,
) -> Floats:
    """Draw a rate of every group from its Beta posterior, (..., G, 4) -> (T, ..., G)."""
    successes, failures = beta_parameters(counts, rate, prior)
    return generator.beta(successes, failures, size=(draws, *successes.shape))


@dataclass(frozen=True)
class Summary:
    """A difference between two groups, unprivileged minus reference.

    Attributes
    ----------
    estimate : the mean of the difference.
    direction : the sign of the estimate, -1, 0 or 1.
    certainty : the probability that the difference has that sign.
    sd : the standard deviation of the difference.
    lower, upper : its interval.
    practically_fair : the probability that its size is under epsilon.
    """

    estimate: float
    direction: int
    certainty: float
    sd: float
    lower: float
    upper: float
    practically_fair: float


def summarise(draws: Floats, epsilon: float = 0.02, *, level: float = 0.95) -> Summary:
    """Summarise equally weighted draws (T,); any NaN makes everything NaN.

    Parameters
    ----------
    epsilon : the size under which a difference makes no practical difference.
    """
    if np.isnan(draws).any():
        return _undefined()
    estimate = float(draws.mean())
    lower, upper = central_interval(draws, level)
    return Summary(
        estimate=estimate,
        direction=int(np.sign(estimate)),
        certainty=float((np.sign(draws) == np.sign(estimate)).mean()),
        sd=float(draws.std()),
        lower=float(lower),
        upper=float(upper),
        practically_fair=float((np.abs(draws) < epsilon).mean()),
    )


def summarise_normal(
    estimate: float, error: float, epsilon: float = 0.02, *, level: float = 0.95
) -> Summary:
    """Summarise an estimate whose error is normal, as by the central limit theorem."""
    if np.isnan(estimate) or np.isnan(error):
        return _undefined()
    from scipy.stats import norm

    difference = norm(estimate, max(error, np.finfo(float).tiny))
    lower, upper = difference.interval(level)
    return Summary(
        estimate=estimate,
        direction=int(np.sign(estimate)),
        certainty=float(max(difference.sf(0), difference.cdf(0))),
        sd=error,
        lower=float(lower),
        upper=float(upper),
        practically_fair=float(difference.cdf(epsilon) - difference.cdf(-epsilon)),
    )


def _undefined() -> Summary:
    """Return the summary of a difference that is not defined."""
    nan = float("nan")
    return Summary(nan, 0, nan, nan, nan, nan, nan)


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
    estimates = [_estimate_group(table, rate, power, group) for group in range(table.n_groups)]
    value, error = np.array(estimates).T
    return RateEstimate(value, error)


def _estimate_group(
    table: PartlyLabelled, rate: Rate, power: float | None, group: int
) -> tuple[float, float]:
    """Return the estimate of one group, and its error."""
    rows = np.flatnonzero(table.group == group)
    has_label = ~np.isnan(table.label[rows])
    if has_label.sum() < 2:
        return float("nan"), float("nan")
    observed = _terms(rate, table.label[rows[has_label]], table.prediction[rows[has_label]])
    expected = _terms(rate, table.score[rows], table.prediction[rows])
    weight = 1.0 if power is None else power
    for _ in range(1 if power is not None else _ROUNDS):
        value, error, best = _solve(observed, expected, has_label, weight)
        weight = best if power is None else power
    return value, error


def _solve(
    observed: Floats, expected: Floats, has_label: NDArray[np.bool_], weight: float
) -> tuple[float, float, float]:
    """Return the estimate, its error, and the weight that would make the error smallest.

    Parameters
    ----------
    observed : (2, L) numerator and denominator of labelled rows.
    expected : (2, n) of all rows.
    """
    corrected = observed - weight * expected[:, has_label]
    top, bottom = corrected.mean(axis=1) + weight * expected.mean(axis=1)
    if bottom <= 0:
        return float("nan"), float("nan"), weight
    value = top / bottom
    m, f = (terms[0] - value * terms[1] for terms in (observed, expected[:, has_label]))
    labelled, rows = len(m), len(has_label)
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
