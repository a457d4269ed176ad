"""Intervals for the candidate that was chosen from many because its value was smallest.

The last part is about tuning: what the chosen trial gains over the default, and what more trials
may (:func:`gain_limits`, :func:`further_gain`).

The smallest of many noisy values is, on average, smaller than its true value (the winner's curse).
The bias depends on which candidates could have been chosen, and on the joint distribution of their
errors, which the rows that all of them are evaluated on show. Therefore the choice is repeated on
draws of all errors, and the interval is the shortest that covers whichever candidate is chosen.

The true values, around which errors are drawn, are unknown. The choice is repeated under several
suppositions about them, and the interval has to hold under each. Locally simultaneous inference
(Zrnic and Fithian 2024, arXiv 2212.09009) requires this for all truths in a region; here it is
required for some, and the simulations of benchmarks/coverage show the resulting coverage. The
suppositions are:

- Objectives are as observed, or nearer to the chosen one's by 1.5 or 3 standard errors of the
  difference. Those within reach become equal to it: selection by chance is strongest among equal
  candidates. Others stay behind, are hardly ever chosen, and so hardly widen the interval.
- A gap near 0 cannot be observed much smaller than it is. Equal objectives are therefore set to
  their observed mean and a little more, and are folded like the observed gaps.
- Values with a bound are as observed, at the bound if it is within reach, or all equal and larger
  than observed. Only draws in which some candidate is within all bounds count.
- There was no choice: the interval is never shorter than that of a candidate fixed beforehand.

If many candidates could have been chosen, the chosen one is hardly ever observed too large. The
limit on that side then needs little of the error rate, and the other limit gets more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from fairbench.core.arrays import Floats, Mask, rng
from fairbench.inference.survey import sums

# By how many standard errors candidates are supposed to be nearer to the chosen one, or to a bound.
_AS_OBSERVED, _MODERATE, _FAR = 0.0, 1.5, 3.0
# The part of the error rate that is spent on the suppositions; the rest is kept for truths that
# none of them describes.
_KEPT = 0.9
_ROUNDING = 1e-9
_AS_SHORT = 1.003  # a more symmetric interval may be longer than the shortest by this factor
_RARELY = (
    0.02  # a supposition is skipped if some candidate is within all bounds less often than this
)


@dataclass(frozen=True, eq=False)
class Candidates:
    """Estimates of k candidates, one of which is chosen, and draws of their joint errors.

    The objective of a candidate is the largest size of m signed differences ``parts @ contrasts``
    (or the one signed value itself), smaller being better.

    Attributes
    ----------
    parts : (k, B) estimates that differences are taken of, such as the rates of B groups.
    part_noise : (T, k, B) normal draws around 0 of the parts' errors, of all candidates together.
    contrasts : (m, B) the weights of the parts in each difference.
    values : (k, C) other quantities, each of which must be at most its bound.
    value_noise : (T, k, C) the errors of the values in the same draws.
    bounds : (C,) the largest allowed values; infinity for what is only reported.
    folded : whether signs do not matter; otherwise m is 1 and the objective has a sign.
    """

    parts: Floats
    part_noise: Floats
    contrasts: Floats
    values: Floats
    value_noise: Floats
    bounds: Floats
    folded: bool = True

    @cached_property
    def differences(self) -> Floats:
        """The signed differences, (k, m)."""
        return np.asarray(self.parts @ self.contrasts.T)

    @cached_property
    def objectives(self) -> Floats:
        """The objectives of the candidates, which are minimised, (k,)."""
        sizes: Floats = np.abs(self.differences) if self.folded else self.differences
        return np.asarray(sizes.max(axis=1))

    @cached_property
    def errors(self) -> Floats:
        """Standard errors of the differences, (k, m)."""
        covariance = np.einsum("tkb,tkc->kbc", self.part_noise, self.part_noise, optimize=True)
        variance = np.einsum("mb,kbc,mc->km", self.contrasts, covariance, self.contrasts)
        return np.asarray(np.sqrt(variance / len(self.part_noise)))

    @cached_property
    def value_errors(self) -> Floats:
        """Standard errors of the values, (k, C)."""
        return np.asarray(np.sqrt((self.value_noise**2).mean(axis=0)))

    @cached_property
    def widest(self) -> NDArray[np.intp]:
        """The position of each candidate's largest difference, (k,)."""
        sizes = np.abs(self.differences) if self.folded else self.differences
        return np.asarray(sizes.argmax(axis=1))

    @cached_property
    def signs(self) -> Floats:
        """The sign of each candidate's largest difference, (k,): 1 where signs matter."""
        widest = self.differences[np.arange(len(self.parts)), self.widest]
        return np.where(self.folded & (widest < 0), -1.0, 1.0)

    @cached_property
    def eligible(self) -> Mask:
        """Whether every value is within its bound, (k,)."""
        return np.asarray((self.values <= self.bounds).all(axis=1))

    def widest_noise(self) -> Floats:
        """Return the draws of the error of each candidate's largest difference, (T, k)."""
        noise = np.einsum("tkb,kb->tk", self.part_noise, self.contrasts[self.widest], optimize=True)
        return np.asarray(noise * self.signs)


def _critical(tail: Any) -> Any:
    """Return the standard normal quantile that is exceeded with probability `tail`."""
    return -special.ndtri(tail)


def _chance_above(quantile: Any) -> Any:
    """Return the probability that a standard normal variable exceeds a quantile."""
    return special.ndtr(-quantile)


# The error probability beyond the lower and beyond the upper limit; 0.025 each for one fixed
# candidate at 95 %.
Tails: TypeAlias = tuple[float, float]


def choose(candidates: Candidates) -> int | None:
    """Return the position of the smallest objective within all bounds; None if none is within."""
    allowed = np.flatnonzero(candidates.eligible & np.isfinite(candidates.objectives))
    if not len(allowed):
        return None
    return int(allowed[candidates.objectives[allowed].argmin()])


def correction(candidates: Candidates, *, level: float = 0.95) -> tuple[list[Tails], float, Mask]:
    """Return the tails that make the chosen candidate's intervals hold at a level.

    Each interval holds at that level for the candidate that :func:`choose` returns, whichever it
    is. The error rate is divided between the two limits such that the interval is shortest.

    Returns
    -------
    tails : those of the objective's interval, and of the interval of each other quantity.
    simultaneous : the tail above each upper limit with which all upper limits hold at once.
    plausible : (k,) which candidates could have been chosen with other rows.

    Raises
    ------
    ValueError : no candidate is within the bounds.
    """
    chosen = choose(candidates)
    if chosen is None:
        raise ValueError("no candidate is within the bounds: none is chosen")
    choices = list(_simulate_choices(candidates, chosen))
    (without_choice, _, _), missed = choices[0], 1 - level
    tails = [
        _shortest(
            without_choice[:, quantity],
            [(errors[:, quantity], allowed * missed) for errors, _, allowed in choices[1:]],
            missed,
        )
        for quantity in range(without_choice.shape[1])
    ]
    # The quantile of the lowest error of any quantity in a draw.
    lowest = [
        float(np.sort(errors.min(axis=1))[int(allowed * missed * len(errors))])
        for errors, _, allowed in choices
    ]
    plausible = np.any([may_be_chosen for _, may_be_chosen, _ in choices], axis=0)
    return tails, float(_chance_above(-min(lowest))), plausible


def _simulate_choices(candidates: Candidates, chosen: int) -> Iterator[tuple[Floats, Mask, float]]:
    """Yield the choice made again in draws of all errors, under every supposition.

    Under the first supposition there is no choice: it is always the candidate `chosen`.

    Yields
    ------
    errors : (T', 1 + C) the errors of the chosen one's objective and values, in standard errors, in
        the draws in which a candidate is within the bounds.
    plausible : (k,) which candidates are chosen in any draw.
    allowed : the share of the error rate that may be spent under this supposition. The rest is
        kept for suppositions that were not made; it is 0 if the other candidates do not matter.
    """
    noise, value_noise = candidates.widest_noise(), candidates.value_noise
    spread = np.sqrt((noise**2).mean(axis=0))
    spread = np.where(spread > 0, spread, 1)
    value_spread = np.where(candidates.value_errors > 0, candidates.value_errors, 1)
    n_candidates = len(candidates.parts)
    draws = np.arange(len(noise))

    def standardise(objective_errors: Floats, winners: NDArray[np.intp]) -> Floats:
        """Return the errors of the winner of each draw, in standard errors, (T, 1 + C)."""
        value_errors = value_noise[draws, winners] / value_spread[winners]
        return np.column_stack([objective_errors / spread[winners], value_errors])

    without_choice = standardise(noise[:, chosen], np.full(len(noise), chosen))
    yield without_choice, np.arange(n_candidates) == chosen, 1.0
    for supposed_values in _supposed_values(candidates):
        within: Mask = np.asarray((value_noise <= candidates.bounds - supposed_values).all(axis=2))
        has_winner = within.any(axis=1)
        if has_winner.mean() < _RARELY:
            continue
        for truth in _supposed_objectives(candidates, chosen, noise):
            observed = np.abs(truth + noise) if candidates.folded else truth + noise
            winners = np.where(within, observed, np.inf).argmin(axis=1)
            errors = standardise(observed[draws, winners] - truth[winners], winners)
            is_same = (np.abs(errors - without_choice) < _ROUNDING).all(axis=1)
            same_share = float((has_winner & is_same).mean())
            plausible = np.bincount(winners[has_winner], minlength=n_candidates) > 0
            yield errors[has_winner], plausible, _KEPT + (1 - _KEPT) * same_share


def _supposed_objectives(candidates: Candidates, chosen: int, noise: Floats) -> Iterator[Floats]:
    """Yield supposed true objectives, (k,): as observed, and nearer to the chosen candidate's.

    The observed distances understate how easily another candidate could have been chosen, because
    chance spreads the candidates. Objectives that come to equal the chosen one's are set to their
    mean and a little more: a gap near 0 cannot be observed much smaller than it is.
    """
    objectives = candidates.objectives
    distance = objectives - objectives[chosen]
    error = np.sqrt(((noise - noise[:, [chosen]]) ** 2).mean(axis=0))
    for reach in (_AS_OBSERVED, _MODERATE, _FAR):
        shrunk = _shrink_to_zero(distance, reach * error)
        is_equal = shrunk == 0
        error_of_mean = noise[:, is_equal].mean(axis=1).std()
        common = objectives[is_equal].mean() + _MODERATE * error_of_mean
        yield np.maximum(common + shrunk, 0) if candidates.folded else common + shrunk


def _supposed_values(candidates: Candidates) -> Iterator[Floats]:
    """Yield supposed true values, (k, C): as observed, at their bounds, and equal and larger.

    Notes
    -----
    Values at their bounds, or nearer to them if these are out of reach, guard against a choice
    among candidates whose values are all close to the bound: there chance decides which are
    allowed, and so selects values that are too small. Values near their bounds that are equal, and
    larger than observed, guard against a bound that all candidates exceed by a little: the allowed
    ones are then allowed by chance alone, which is where their values are most misleading.
    """
    values = candidates.values
    yield values
    bounded = np.isfinite(candidates.bounds)
    if not bounded.any():
        return
    beyond = np.where(bounded, values - candidates.bounds, 0)
    reach = _FAR * candidates.value_errors
    shrunk = _shrink_to_zero(beyond, reach)
    yield np.where(bounded, np.where(bounded, candidates.bounds, 0) + shrunk, values)
    near = bounded & (np.abs(beyond) <= reach)
    count = np.maximum(near.sum(axis=0), 1)
    mean = (values * near).sum(axis=0) / count
    error = ((candidates.value_noise * near).sum(axis=1) / count).std(axis=0)
    yield np.where(near, mean + _MODERATE * error, values)


def _shrink_to_zero(numbers: Floats, amount: Floats) -> Floats:
    """Return numbers whose sizes are reduced by an amount, to 0 at least."""
    return np.asarray(np.sign(numbers) * np.maximum(np.abs(numbers) - amount, 0))


def _shortest(
    without_choice: Floats, choices: Sequence[tuple[Floats, float]], missed: float
) -> Tails:
    """Return the tails of the shortest interval that holds often enough under each supposition.

    Parameters
    ----------
    without_choice : (T,) errors without a choice, in the same draws. The probability that they are
        beyond a limit is known, so that they serve as control variates.
    choices : errors under each supposition, with the share of them that may be missed.
    missed : the error rate of one interval.
    """
    lower = missed * np.concatenate([np.geomspace(1e-3, 0.5, 40), np.linspace(0.5, 0.95, 46)[1:]])
    below, above = _critical(lower), _critical(missed - lower)
    steps = np.linspace(0, 4, 500) + _critical(missed)
    for errors, allowed in choices:
        excess_below = _share_above(errors, below) - _share_above(without_choice, below)
        left_for_upper = allowed - lower - excess_below
        share_above = _share_above(-errors, steps)
        share_without_choice = _share_above(-without_choice, steps)
        chance = _chance_above(steps) + share_above - share_without_choice
        chance = np.maximum.accumulate(chance[::-1])[::-1]
        needed = np.append(steps, np.inf)[np.searchsorted(-chance, -left_for_upper)]
        above = np.maximum(above, needed)
    width = below + above
    # Of the intervals that are almost the shortest, take the most symmetric one.
    asymmetry = np.where(width <= _AS_SHORT * width.min(), np.abs(lower - missed / 2), np.inf)
    best = int(asymmetry.argmin())
    return float(lower[best]), float(_chance_above(above[best]))


def _share_above(errors: Floats, limits: Floats) -> Floats:
    """Return the shares of errors that are above limits."""
    return np.asarray(1 - np.searchsorted(np.sort(errors), limits, side="right") / len(errors))


def joint_noise(factor: Floats, *, draws: int, generator: np.random.Generator) -> Floats:
    """Return normal draws with the covariance ``factor.T @ factor``.

    Parameters
    ----------
    factor : (n, ...) the contribution of every row to the error of each estimate.
    draws : the number of draws.
    generator : the random generator.

    Returns
    -------
    (draws, ...) the draws.
    """
    flat = np.asarray(factor, np.float32).reshape(len(factor), -1)
    if 2 * flat.shape[1] < min(len(flat), draws):
        values, vectors = np.linalg.eigh((flat.T @ flat).astype(float))
        flat = (vectors * np.sqrt(np.maximum(values, 0))).T.astype(np.float32)
    weights = generator.standard_normal((draws, len(flat)), dtype=np.float32)
    return np.asarray(weights @ flat, float).reshape(draws, *factor.shape[1:])


# Which of several algorithms are better: every pair, ranks, and the probability to be best.

# The verdicts of every comparison of methods, runs and models: of the first against the other.
BETTER, WORSE, ALIKE, OPEN = "better", "worse", "alike", "open"


def verdict_of(lower: float, upper: float) -> str:
    """Return whether the limits of a gain are above 0, under 0, or neither."""
    return BETTER if lower > 0 else WORSE if upper < 0 else OPEN


@dataclass(frozen=True, eq=False)
class Pairs:
    """Probabilities of the events of every pair of R algorithms, (R, R) each, NaN on the diagonal.

    Attributes
    ----------
    outperforms : P(row >> column), better in some objective and worse in none.
    equivalent : P(row ~ column), practically equivalent in all.
    traded : P(each is better in some objective).
    """

    outperforms: Floats
    equivalent: Floats
    traded: Floats

    def verdicts(self, certainty: float) -> NDArray[np.str_]:
        """Return the verdict on the row of every pair (R, R) that is at least so probable."""
        events = {BETTER: self.outperforms, WORSE: self.outperforms.T, ALIKE: self.equivalent}
        return np.select([event >= certainty for event in events.values()], list(events), OPEN)


def outperforms(values: Floats, rope: Floats) -> NDArray[np.bool_]:
    """Return, for every pair, whether known values of the row outperform the column's.

    Parameters
    ----------
    values : (R, m) objectives, the larger the better.
    rope : (m,) largest differences that are practically equivalent.
    """
    difference = values[:, None] - values[None]
    better, worse = (difference > rope).any(axis=-1), (difference < -rope).any(axis=-1)
    return np.asarray(better & ~worse)


def ranking(outperforms: NDArray[np.float64], certainty: float = 0.95) -> NDArray[np.int64]:
    """Return each algorithm's rank: 1 plus the number of algorithms that outperform it.

    Parameters
    ----------
    outperforms : (R, R) probabilities P(row >> column); the diagonal is not looked at.
    certainty : the probability from which one algorithm counts as outperforming another.

    Returns
    -------
    (R,) ranks; algorithms that the same number of others outperform are tied. An algorithm that
    trades one objective for another outperforms nobody by it.
    """
    beats = outperforms >= certainty
    np.fill_diagonal(beats, False)
    return 1 + beats.sum(axis=0)


def in_order(ranks: NDArray[np.int64], outperforms: Floats) -> NDArray[np.intp]:
    """Return positions by rank; of a tie first who more likely outperforms than is outperformed.

    Parameters
    ----------
    ranks : (R,) ranks, as `ranking` returns them.
    outperforms : (R, R) probabilities P(row >> column); the diagonal is not looked at.
    """
    is_pair = (ranks[:, None] == ranks) & ~np.eye(len(ranks), dtype=bool)
    ahead = np.where(is_pair, outperforms - outperforms.T, 0.0)
    return np.lexsort((-ahead.sum(axis=1), -(ahead > 0).sum(axis=1), ranks))


def standings(
    values: Floats,
    test_share: float,
    *,
    rope: float,
    draws: StudentDraws,
) -> tuple[Floats, Floats]:
    """Return the probabilities that each of M methods is the best, or practically as good.

    The methods were measured in the same splits.

    Parameters
    ----------
    values : (R, M) finite; in split r, the value of method m, the larger the better.
    test_share : the share of the rows that a split tests, which sets how much splits overlap.
    rope : the largest difference that does not matter in practice, in the unit of `values`.
    draws : draws made by :func:`student_draws` for R splits.

    Returns
    -------
    best : (M,) probability of having the largest expected value; equal methods share it.
    near : (M,) probability that the expected value is within the rope of the largest.

    Both are NaN of a single split, which says nothing of how values vary.
    """
    splits, methods = values.shape
    if splits < 2:
        return np.full(methods, np.nan), np.full(methods, np.nan)
    # Rounding must not decide between methods that are equal in every split.
    distinct, column, copies = np.unique(values, axis=1, return_inverse=True, return_counts=True)
    drawn = posterior_draws(distinct, test_share, draws).T
    largest = drawn.max(axis=0)
    is_largest = drawn == largest
    is_largest[1:] &= ~np.logical_or.accumulate(is_largest)[:-1]  # of equal ones the first
    wins, near = (
        np.count_nonzero(array, axis=1) / drawn.shape[1]
        for array in (is_largest, drawn >= largest - rope)
    )
    column = column.reshape(-1)
    return (wins / copies)[column], near[column]


# The random numbers of T draws from a posterior of R splits, whatever was measured in them:
# standard normals (R, T), and chi-squares (T,) with R - 1 degrees of freedom.
StudentDraws: TypeAlias = tuple[Floats, Floats]


def student_draws(splits: int, draws: int, generator: np.random.Generator) -> StudentDraws:
    """Return draws for quantities measured in `splits` splits, 2 at least."""
    normal = generator.standard_normal((draws, splits)).T
    return normal, generator.chisquare(splits - 1, size=draws)


def posterior_draws(values: Floats, test_share: float, draws: StudentDraws) -> Floats:
    """Draw the expected values of methods from their joint posterior.

    A multivariate Student t with R - 1 degrees of freedom, the means as its location and
    (1/R + rho / (1 - rho)) S as its scale: S is the methods' covariance over splits, and the second
    summand is Nadeau and Bengio's (2003, Machine Learning 52, equation 9) for splits that share
    training rows. Each difference of two has the Bayesian correlated t-test (Corani and Benavoli
    2015; Benavoli et al. 2017, JMLR 18, equation 6) as its margin. That the methods share one
    degree of freedom count is a choice: S has rank R - 1 at most, and few splits say little of how
    many methods vary together.

    Parameters
    ----------
    values : (R, M), R at least 2.
    test_share : rho, between 0 (independent splits) and 1, both excluded at the top.
    draws : draws made by :func:`student_draws` for R splits.

    Returns
    -------
    (T, M) values, a view of an array with the draws last: sums and maxima over methods run over
    contiguous memory.
    """
    normal, chisquare = draws
    location = values.mean(axis=0)
    drawn: Floats = (values - location).T @ normal
    drawn *= np.sqrt(inflation(len(values), test_share) / chisquare)
    drawn += location[:, None]
    return drawn.T


def inflation(splits: Any, test_share: float) -> Any:
    """Return the factor from the variance over overlapping splits to that of their mean.

    Notes
    -----
    It is Nadeau and Bengio's factor 1/J + s / (1 - s), for J splits and the share s of test rows
    that two hold-outs have in common: the variance of the mean is 1/J + (1 - 1/J) s times that of
    one split, and the variance between splits is 1 - s times that of one split. It is conservative,
    as the variance between splits also contains that of their fits.
    """
    return 1 / splits + test_share / (1 - test_share)


_RIVALS = 20


def not_told_from_best(candidates: Candidates, *, level: float = 0.95) -> NDArray[np.bool_]:
    """Return which candidates (k,) may be the best within the bounds.

    The truly best one is among them with at least this probability. A candidate is left out where
    one of its values is surely beyond its bound, or where another candidate is surely within and
    its objective surely smaller; candidates are compared by the error of their difference, as they
    are judged on the same rows (Gupta 1965; Hsu 1984, "multiple comparisons with the best", with
    Bonferroni's critical value). The twenty smallest objectives are compared with all others.
    """
    count, m = candidates.differences.shape
    spent = 1 - level
    bounded = max(int(np.isfinite(candidates.bounds).sum()), 1)
    beyond = _critical(0.2 * spent / bounded)
    # Of a rival one statement can be wrong: that it is within, or, where it is, that it is smaller.
    per_rival = 0.8 * spent / max(count - 1, 1)
    reach = _critical(per_rival / ((1 + candidates.folded) * m))
    surely = _critical(per_rival)
    spread = candidates.value_errors
    kept = (candidates.values - beyond * spread <= candidates.bounds).all(axis=1)
    within = (candidates.values + surely * spread <= candidates.bounds).all(axis=1)
    within |= np.isinf(candidates.bounds).all()
    rivals = np.flatnonzero(within)
    rivals = rivals[np.argsort(candidates.objectives[rivals], kind="stable")][:_RIVALS]
    for rival in rivals:
        kept &= ~_behind(candidates, int(rival), reach)
    return np.asarray(kept)


def larger_than(candidates: Candidates, index: int, *, level: float = 0.95) -> NDArray[np.bool_]:
    """Return whose objectives (k,) are surely larger than one candidate's, all at once."""
    count, m = candidates.differences.shape
    statements = (1 + candidates.folded) * m * max(count - 1, 1)
    return _behind(candidates, index, _critical((1 - level) / statements))


def _behind(candidates: Candidates, index: int, reach: float) -> NDArray[np.bool_]:
    """Return whose objectives (k,) are larger than one candidate's by more than their errors.

    Whichever of its differences is the other's largest, in whichever direction.

    Parameters
    ----------
    candidates : the candidates.
    index : the position of the other candidate.
    reach : how many standard errors of the difference are subtracted.
    """
    other_noise = candidates.part_noise[:, index] @ candidates.contrasts.T
    covariance = candidates.widest_noise().T @ other_noise / len(other_noise)
    widest_errors = candidates.errors[np.arange(len(candidates.parts)), candidates.widest]
    behind = np.ones(len(candidates.parts), bool)
    for sign in (1.0, -1.0) if candidates.folded else (1.0,):
        variance = (
            widest_errors[:, None] ** 2 + candidates.errors[index] ** 2 - 2 * sign * covariance
        )
        ahead = candidates.objectives[:, None] - sign * candidates.differences[index]
        behind &= (ahead - reach * np.sqrt(np.maximum(variance, 0)) > 0).all(axis=1)
    behind[index] = False
    return behind


# Intervals for the gain of tuning: the best of many trials against the untuned default.
#
# The trial was chosen on validation rows, so that on average it looks better on them than it is.
# Two intervals of its gain over the untuned default are computed, both corrected for the choice
# (:func:`correction`): one of the expected gain on new people, and a wider one of the gain that a
# given number of fresh test rows will show, which adds their sampling error.
#
# All trials are judged on the same rows, so that only the differences between them add to the
# noise. The mean over folds is judged as one set of rows, which estimates the mean of these fits
# (Bayle et al. 2020, NeurIPS 33). A gap between groups is the largest of several signed
# differences. The gain is therefore the maximum over the default's differences of the minimum over
# the tuned trial's, and the limits of the gain are the same maximum and minimum of limits. They
# hold whichever signs the true differences have.
#
# The trials were proposed one after the other, each depending on the results of those before, so
# that their errors are not distributed like those of trials that were fixed beforehand. A fifth of
# each trial's variance is treated as independent noise, however similar the trials are;
# docs/howto/tune.md has the resulting coverage.

Interval = tuple[float, float]
_INDEPENDENT = 0.2  # the share of a trial's variance that is treated as independent noise
_DRAWS = 2000


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


@dataclass(frozen=True, eq=False)
class JudgingRows:
    """The rows that candidates were judged on, and the number of fresh test rows to come.

    Attributes
    ----------
    unit : (n,) codes of the independent units: people, or clusters of them.
    fold : (n,) codes of the fold in which each row was judged; a person may be in several.
    fresh : the number of fresh test rows.
    """

    unit: NDArray[np.int64]
    fold: NDArray[np.int64]
    fresh: float = np.inf

    @cached_property
    def _unit_and_fold(self) -> NDArray[np.int64]:
        """Codes of the pairs of a unit and a fold, (n,)."""
        pairs = np.stack([self.unit, self.fold], axis=1)
        return np.unique(pairs, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)

    def spread(self, influence: Floats, *, fresh: bool) -> Floats:
        """Return the covariance matrix of errors, (n, D) -> (D, D).

        Parameters
        ----------
        influence : the contribution of each row to each error.
        fresh : whether the sampling variance of the fresh rows is added.
        """
        by_unit = sums(influence.T, self.unit, int(self.unit.max()) + 1)
        covariance = by_unit @ by_unit.T
        if fresh:
            code = self._unit_and_fold
            by_pair = sums(influence.T, code, int(code.max()) + 1)
            covariance = covariance + by_pair @ by_pair.T * self.rows_per_fresh_row
        return covariance

    @property
    def rows_per_fresh_row(self) -> float:
        """The number of rows judged on, divided by that of fresh rows."""
        return len(self.unit) / self.fresh


def value_limits(estimate: GoalEstimate, rows: JudgingRows, tails: Tails) -> Interval:
    """Return the limits of a value, on the scale on which small is good."""
    spread = rows.spread(estimate.influence, fresh=False) + np.diag(estimate.least)
    error = np.sqrt(np.einsum("ap,pq,aq->a", estimate.sides, spread, estimate.sides))
    centre = estimate.sides @ estimate.parts
    below, above = map(_critical, tails)
    return float((centre - below * error).max()), float((centre + above * error).max())


def gain_limits(
    default: GoalEstimate,
    tuned: GoalEstimate,
    rows: JudgingRows,
    tails: Tails,
    *,
    fresh: bool = False,
) -> Interval:
    """Return the limits of how much smaller the tuned value is than the default's.

    Parameters
    ----------
    default, tuned : the estimates of both on the same rows.
    rows : these rows.
    tails : the chance that the limits may fail on either side.
    fresh : whether to return limits of the gain that fresh rows will show; otherwise limits of the
        expected gain.

    Notes
    -----
    With the default's sums a and the tuned trial's sums b, the gain is max_a min_b (a - b). Its
    limits are the same maximum and minimum of the limits of a - b.
    """
    count = len(default.parts)
    spread = rows.spread(np.hstack([default.influence, tuned.influence]), fresh=fresh)
    least = tuned.least * (1 + rows.rows_per_fresh_row if fresh else 1)
    a, b = default.sides, tuned.sides
    variance_a = np.einsum("ap,pq,aq->a", a, spread[:count, :count], a)
    variance_b = np.einsum("bp,pq,bq->b", b, spread[count:, count:] + np.diag(least), b)
    covariance = a @ spread[:count, count:] @ b.T
    variance = variance_a[:, None] + variance_b - 2 * covariance
    error = np.sqrt(np.maximum(variance, 0))
    centre = (a @ default.parts)[:, None] - b @ tuned.parts
    below, above = map(_critical, tails)
    lower = (centre - below * error).max(axis=0).min()
    return float(lower), float((centre + above * error).min(axis=1).max())


def chosen_tails(
    values: Floats,
    default: Floats,
    *,
    noise: Floats,
    default_noise: Floats,
    unseen: Floats,
    fresh: Floats,
    weights: Floats,
    level: float = 0.95,
    seed: int = 0,
) -> list[tuple[Tails, Tails, Tails]]:
    """Return the tails with which limits hold for the trial that was chosen, for each metric.

    Parameters
    ----------
    values : (k, M) values of k trials by M metrics, small being good. All trials were judged on the
        same rows or, if stopped, some of them.
    default : (M,) values of the default.
    noise : (k, M, U) the contribution of each unit to the errors of a trial's values.
    default_noise : (M, U) the contribution of each unit to the errors of the default's values.
    unseen : (k, M) least variances, added for events that did not occur in the rows.
    fresh : (k, M) the variance of the gain that comes from fresh rows.
    weights : (M,) weights of the metrics in the score; the trial with the smallest score is chosen.
    level : the level of the intervals.
    seed : of the draws.

    Returns
    -------
    For each metric the tails of the expected gain, of the gain on fresh rows, and of the value.
    """
    generator = rng(seed, "tuning", len(values))
    both = np.concatenate([noise, default_noise[None]])
    factor = np.moveaxis(both, -1, 0).reshape(both.shape[-1], -1)
    errors = joint_noise(factor, draws=_DRAWS, generator=generator).reshape(-1, *both.shape[:2])
    trial_errors, default_errors = errors[:, :-1], errors[:, -1:]
    unseen_errors = np.sqrt(unseen) * generator.standard_normal(trial_errors.shape)
    of_gain = trial_errors - default_errors + unseen_errors
    # A part of the same variance is independent between trials.
    spread = np.sqrt((of_gain**2).mean(axis=0))
    independent = spread * generator.standard_normal(of_gain.shape)
    of_gain = np.sqrt(1 - _INDEPENDENT) * of_gain + np.sqrt(_INDEPENDENT) * independent
    of_value = trial_errors + unseen_errors
    of_fresh = of_gain + np.sqrt(fresh) * generator.standard_normal(of_gain.shape)
    gains, count = values - default, len(weights)
    (_, *tails), _, _ = correction(
        Candidates(
            parts=(gains @ weights)[:, None],
            part_noise=(of_gain @ weights)[..., None],
            contrasts=np.ones((1, 1)),
            values=np.hstack([gains, gains, values]),
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


def stack_noise(
    estimates: Sequence[Sequence[GoalEstimate]], rows: Sequence[JudgingRows], units: int
) -> Floats:
    """Return the contribution of each unit to the error of every value, (k, M, U).

    Parameters
    ----------
    estimates : the estimates of each of k candidates, one for each of M metrics.
    rows : the rows that each candidate was judged on; one that was stopped was judged on the first
        folds alone.
    units : the number of units of all rows.
    """
    return np.stack(
        [
            np.stack([sums(metric.linear, judging.unit, units) for metric in metrics])
            for metrics, judging in zip(estimates, rows, strict=True)
        ]
    )


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
