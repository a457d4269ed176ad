"""Intervals for the gain of a search: the best of many trials against the model in use.

The trial was chosen on validation rows, so that on average it looks better on them than it is.
Two intervals of its gain over the untuned default are computed, both corrected for the choice
(:func:`correction`): one of the expected gain on new people, and a wider one of the gain that a
given number of fresh test rows will show, which adds their sampling error.

All trials are judged on the same rows, so that only the differences between them add to the
noise. The mean over folds is judged as one set of rows, which estimates the mean of these fits
(Bayle et al. 2020, NeurIPS 33). A gap between groups is the largest of several signed
differences. The gain is therefore the maximum over the default's differences of the minimum over
the tuned trial's, and the limits of the gain are the same maximum and minimum of limits. They
hold whichever signs the true differences have.

The trials were proposed one after the other, each depending on the results of those before, so
that their errors are not distributed like those of trials that were fixed beforehand. A fifth of
each trial's variance is treated as independent noise, however similar the trials are;
the README beside it has the resulting coverage.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from fairbench.core.arrays import Floats, rng
from fairbench.inference.survey import sums
from fairbench.inference.verdicts import BETTER, OPEN, WORSE
from fairbench_search.corrected import Candidates, Tails, correction, critical, joint_noise

Interval = tuple[float, float]
_ROUNDING = 1e-9
_INDEPENDENT = 0.2  # the share of a trial's variance that is treated as independent noise
_DRAWS = 2000


def verdict_of(lower: float, upper: float) -> str:
    """Return whether the limits of a gain are above 0, under 0, or neither."""
    return BETTER if lower > 0 else WORSE if upper < 0 else OPEN


# Rows that candidates are judged on, with what one of them predicts: ``fold``, that they were in;
# ``unit``, the code of the person or cluster of persons; ``target``, the label; ``group``,
# categorical; and a column of numbers for everything that was predicted, such as ``prediction``.
GoalRows: TypeAlias = pd.DataFrame


@dataclass(frozen=True, eq=False)
class GoalEstimate:
    """A metric of one candidate on some rows, as the largest of several weighted sums of means.

    Attributes
    ----------
    parts : (P,) means, such as the rates of groups.
    influence : (n, P) the contribution of each row to the error of each mean.
    least : (P,) least variances of the means, added for events that did not occur in the rows: the
        variance from one more row with another outcome.
    sides : (A, P) weights of the means in each sum; the value is the largest of ``sides @ parts``,
        smaller being better.
    sign : 1 where the metric is better small, -1 where it is better large.
    """

    parts: Floats
    influence: Floats
    least: Floats
    sides: Floats
    sign: float = 1.0

    @cached_property
    def value(self) -> float:
        """The value, which is minimised; NaN where it is undefined."""
        return float((self.sides @ self.parts).max(initial=-np.inf)) if len(self.sides) else np.nan

    @cached_property
    def side(self) -> Floats:
        """The weights of the largest sum, (P,)."""
        return np.asarray(self.sides[int((self.sides @ self.parts).argmax())])

    @cached_property
    def linear(self) -> Floats:
        """The contribution of each row to the error of the value, (n,)."""
        return np.asarray(self.influence @ self.side)

    @cached_property
    def least_of_value(self) -> float:
        """The least variance of the value, added for events that did not occur in the rows."""
        return float(self.side**2 @ self.least)


def _spread(influence: Floats, rows: GoalRows, fresh: float = np.inf) -> Floats:
    """Return the covariance matrix of errors, (n, D) -> (D, D).

    Parameters
    ----------
    influence : the contribution of each row to each error.
    rows : the rows that candidates were judged on; a person may be in several folds.
    fresh : how many fresh rows add their sampling variance.
    """
    unit = rows["unit"].to_numpy()
    by_unit = sums(influence.T, unit, int(unit.max()) + 1)
    covariance = by_unit @ by_unit.T
    if np.isfinite(fresh):
        code = rows.groupby(["unit", "fold"]).ngroup().to_numpy()
        by_pair = sums(influence.T, code, int(code.max()) + 1)
        covariance = covariance + by_pair @ by_pair.T * (len(rows) / fresh)
    return np.asarray(covariance)


def value_limits(estimate: GoalEstimate, rows: GoalRows, tails: Tails) -> Interval:
    """Return the limits of a value, on the scale on which small is good."""
    spread = _spread(estimate.influence, rows) + np.diag(estimate.least)
    error = np.sqrt(np.einsum("ap,pq,aq->a", estimate.sides, spread, estimate.sides))
    centre = estimate.sides @ estimate.parts
    below, above = map(critical, tails)
    return float((centre - below * error).max()), float((centre + above * error).max())


def gain_limits(
    default: GoalEstimate,
    tuned: GoalEstimate,
    rows: GoalRows,
    tails: Tails,
    *,
    fresh: float = np.inf,
) -> Interval:
    """Return the limits of how much smaller the tuned value is than the default's.

    Parameters
    ----------
    default, tuned : the estimates of both on the same rows.
    rows : these rows.
    tails : the chance that the limits may fail on either side.
    fresh : for how many fresh rows the limits are of the gain that they will show; by default they
        are of the expected gain.

    Notes
    -----
    With the default's sums a and the tuned trial's sums b, the gain is max_a min_b (a - b). Its
    limits are the same maximum and minimum of the limits of a - b.
    """
    count = len(default.parts)
    spread = _spread(np.hstack([default.influence, tuned.influence]), rows, fresh)
    least = tuned.least * (1 + len(rows.unit) / fresh)
    a, b = default.sides, tuned.sides
    variance_a = np.einsum("ap,pq,aq->a", a, spread[:count, :count], a)
    variance_b = np.einsum("bp,pq,bq->b", b, spread[count:, count:] + np.diag(least), b)
    covariance = a @ spread[:count, count:] @ b.T
    variance = variance_a[:, None] + variance_b - 2 * covariance
    error = np.sqrt(np.maximum(variance, 0))
    centre = (a @ default.parts)[:, None] - b @ tuned.parts
    below, above = map(critical, tails)
    lower = (centre - below * error).max(axis=0).min()
    return float(lower), float((centre + above * error).min(axis=1).max())


def chosen_tails(
    values: Floats,
    *,
    noise: Floats,
    unseen: Floats,
    fresh: Floats,
    weights: Floats,
    level: float = 0.95,
) -> list[tuple[Tails, Tails, Tails]]:
    """Return the tails with which limits hold for the trial that was chosen, for each metric.

    Parameters
    ----------
    values : (1 + k, M) values of the default and of k trials by M metrics, small being good. All
        were judged on the same rows or, if stopped, some of them.
    noise : (1 + k, M, U) the contribution of each unit to the errors of these values.
    unseen : (1 + k, M) least variances, added for events that did not occur in the rows.
    fresh : (1 + k, M) the variance of the gain that comes from fresh rows.
    weights : (M,) weights of the metrics in the score; the trial with the smallest score is chosen.
    level : the level of the intervals.

    Returns
    -------
    For each metric the tails of the expected gain, of the gain on fresh rows, and of the value.
    """
    generator = rng(0, "tuning", len(values) - 1)
    both = np.roll(noise, -1, axis=0)  # the default last
    factor = np.moveaxis(both, -1, 0).reshape(both.shape[-1], -1)
    errors = joint_noise(factor, draws=_DRAWS, generator=generator).reshape(-1, *both.shape[:2])
    trial_errors, default_errors = errors[:, :-1], errors[:, -1:]
    unseen_errors = np.sqrt(unseen[1:]) * generator.standard_normal(trial_errors.shape)
    of_gain = trial_errors - default_errors + unseen_errors
    # A part of the same variance is independent between trials.
    spread = np.sqrt((of_gain**2).mean(axis=0))
    independent = spread * generator.standard_normal(of_gain.shape)
    of_gain = np.sqrt(1 - _INDEPENDENT) * of_gain + np.sqrt(_INDEPENDENT) * independent
    of_value = trial_errors + unseen_errors
    of_fresh = of_gain + np.sqrt(fresh[1:]) * generator.standard_normal(of_gain.shape)
    gains, count = values[1:] - values[0], len(weights)
    _, *tails = correction(
        Candidates(
            parts=(gains @ weights)[:, None],
            part_noise=(of_gain @ weights)[..., None],
            contrasts=np.ones((1, 1)),
            values=np.hstack([gains, gains, values[1:]]),
            value_noise=np.concatenate([of_gain, of_fresh, of_value], axis=2),
            bounds=np.full(3 * count, np.inf),
            folded=False,
        ),
        level=level,
    )
    # The tails of a gain are those of its opposite, a change of the value, mirrored.
    mirrored = [(above, below) for below, above in tails[: 2 * count]]
    parts = mirrored[:count], mirrored[count:], tails[2 * count :]
    return list(zip(*parts, strict=True))


# An upper bound of the gain from further search that holds at any stopping time.
#
# Candidates are independent draws from one stated distribution, judged one after the other on the
# same rows; the best so far is kept. The probability that a draw is better than the best of t is
# unknown, but small for large t. The bound below holds for all t at once, also if the search is
# stopped because of it, at a budget or by hand (Hays, Laufer, Barocas and Raghavan, "Statistical
# Guarantees in the Search for Less Discriminatory Algorithms", ICLR 2026, arXiv 2512.23943, lemma
# 3.2 and algorithm 1).
#
# Why it holds. The chance that one more draw is below the best of t is stochastically at most the
# smallest V of t uniform numbers. For each v, 1{V > v} / (1 - v)^t is a martingale in t that
# begins at 1, and so is its mean over v between 0 and 1, ((1 - V)^-(t - 1) - 1) / (t - 1). By
# Ville's inequality it is ever above 1 / risk with a chance of at most `risk`; solved for V, this
# is the bound. Draws that fail, or that may not be used, count as draws that are never the best.
#
# The gain is bounded as well. A further draw changes nothing unless it is the new best, and then
# lowers the gap by at most the present gap, since no gap is below 0. The paper multiplies the
# chance by the observed gap, and assumes that the bias of the choice does not shrink. Here it is
# multiplied by an upper limit of the true gap, from rows that were not used in the choice, which
# needs no such assumption.


def chance_of_better(tried: ArrayLike, *, risk: float) -> Floats:
    """Return an upper bound of the chance that one more draw is better than all so far.

    Parameters
    ----------
    tried : how many draws there were, at least 1; a number or an array of numbers.
    risk : the chance that the truth is ever above the bound, over all numbers of draws.
    """
    before = np.asarray(tried, float) - 1
    with np.errstate(divide="ignore", invalid="ignore"):
        bound = -np.expm1(-np.log1p(before / risk) / before)
    return np.asarray(np.where(before > 0, bound, -np.expm1(-1 / risk)))


def further_gain(gap: ArrayLike, chance: ArrayLike, *, more: int = 1) -> Floats:
    """Return an upper bound of the expected amount by which further draws lower the gap.

    Parameters
    ----------
    gap : the gap of the best so far, or an upper limit of it.
    chance : an upper bound of the chance that one more draw is better.
    more : how many further draws there are.
    """
    none_better = (1 - np.asarray(chance, float)) ** more
    return np.asarray(gap * (1 - none_better))


def is_enough(gap: float, tried: int, *, worth: float, risk: float) -> bool:
    """Return whether one more draw lowers the gap, on average, by less than it is worth.

    Parameters
    ----------
    gap : the observed gap of the best so far.
    tried : how many draws there were.
    worth : the smallest lowering of the gap for which another candidate is made.
    risk : the chance that the bound fails, as in :func:`chance_of_better`.
    """
    if tried < 1:
        return False
    return bool(further_gain(gap, chance_of_better(tried, risk=risk)) < worth)


def least_gap(gaps: ArrayLike, errors: ArrayLike, *, within: float) -> int:
    """Return the index of the smallest gap whose error is at most `within` above the first's.

    Parameters
    ----------
    gaps, errors : (k,) values of the model in use, which comes first, and of the candidates; NaN
        for candidates that cannot be used. The model in use stays if none has a smaller gap; of
        equal gaps, the one with the smaller error is taken.
    within : the largest additional error that is allowed.
    """
    gap, error = np.asarray(gaps, float), np.asarray(errors, float)
    allowed = np.isfinite(gap) & (error <= error[0] + within + _ROUNDING)
    allowed[0] = True
    order = np.lexsort((np.arange(len(gap)) > 0, error, np.where(allowed, gap, np.inf)))
    return int(order[0]) if gap[order[0]] < gap[0] else 0
