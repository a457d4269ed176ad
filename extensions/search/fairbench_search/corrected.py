"""Intervals for the candidate that was chosen from many because its value was smallest.

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
from scipy import special

from fairbench.core.arrays import Floats, Mask, Rows

# By how many standard errors candidates are supposed to be nearer to the chosen one, or to a bound.
_AS_OBSERVED, _MODERATE, _FAR = 0.0, 1.5, 3.0
# The part of the error rate that is spent on the suppositions; the rest is kept for truths that
# none of them describes.
_KEPT = 0.9
_ROUNDING = 1e-9
_AS_SHORT = 1.003  # a more symmetric interval may be longer than the shortest by this factor
# A supposition is skipped if some candidate is within all bounds less often than this.
_RARELY = 0.02


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
    degrees : the degrees of freedom of the errors' sizes: few where few splits show them.
    """

    parts: Floats
    part_noise: Floats
    contrasts: Floats
    values: Floats
    value_noise: Floats
    bounds: Floats
    folded: bool = True
    degrees: float = np.inf

    @cached_property
    def differences(self) -> Floats:
        """The signed differences, (k, m)."""
        return np.asarray(self.parts @ self.contrasts.T)

    @cached_property
    def sizes(self) -> Floats:
        """The differences, without their signs where these do not matter, (k, m)."""
        return np.abs(self.differences) if self.folded else self.differences

    @cached_property
    def objectives(self) -> Floats:
        """The objectives of the candidates, which are minimised, (k,)."""
        return np.asarray(self.sizes.max(axis=1))

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
    def widest(self) -> Rows:
        """The position of each candidate's largest difference, (k,)."""
        return np.asarray(self.sizes.argmax(axis=1))

    @cached_property
    def eligible(self) -> Mask:
        """Whether every value is within its bound, (k,)."""
        return np.asarray((self.values <= self.bounds).all(axis=1))

    def widest_noise(self) -> Floats:
        """Return the draws of the error of each candidate's largest difference, (T, k)."""
        noise = np.einsum("tkb,kb->tk", self.part_noise, self.contrasts[self.widest], optimize=True)
        widest = self.differences[np.arange(len(self.parts)), self.widest]
        return np.where(self.folded & (widest < 0), -noise, noise)


def critical(tail: Any, degrees: float = np.inf) -> Any:
    """Return the quantile, normal or Student's, that is exceeded with probability `tail`."""
    return -(special.ndtri(tail) if np.isinf(degrees) else special.stdtrit(degrees, tail))


def _chance_above(quantile: Any) -> Any:
    """Return the probability that a standard normal variable exceeds a quantile."""
    return special.ndtr(-quantile)


# The error probability beyond the lower and beyond the upper limit; 0.025 each for one fixed
# candidate at 95 %.
Tails: TypeAlias = tuple[float, float]


def uncorrected_tails(level: float) -> Tails:
    """Return the tails of an interval without a correction for the choice."""
    return (1 - level) / 2, (1 - level) / 2


def choose(candidates: Candidates) -> int | None:
    """Return the position of the smallest objective within all bounds; None if none is within."""
    allowed = np.flatnonzero(candidates.eligible & np.isfinite(candidates.objectives))
    if not len(allowed):
        return None
    return int(allowed[candidates.objectives[allowed].argmin()])


def correction(candidates: Candidates, *, level: float = 0.95) -> list[Tails]:
    """Return the tails that make the chosen candidate's intervals hold at a level.

    Each interval holds at that level for the candidate that :func:`choose` returns, whichever it
    is. The error rate is divided between the two limits such that the interval is shortest.

    Returns
    -------
    The tails of the objective's interval, and of the interval of each other quantity.

    Raises
    ------
    ValueError : no candidate is within the bounds.
    """
    chosen = choose(candidates)
    if chosen is None:
        raise ValueError("no candidate is within the bounds: none is chosen")
    (without_choice, _), *choices = _simulate_choices(candidates, chosen)
    missed = 1 - level
    tails = []
    for quantity, alone in enumerate(without_choice.T):
        supposed = [(errors[:, quantity], allowed * missed) for errors, allowed in choices]
        tails.append(_shortest(alone, supposed, missed))
    return tails


def _simulate_choices(candidates: Candidates, chosen: int) -> Iterator[tuple[Floats, float]]:
    """Yield the choice made again in draws of all errors, under every supposition.

    Under the first supposition there is no choice: it is always the candidate `chosen`.

    Yields
    ------
    errors : (T', 1 + C) the errors of the chosen one's objective and values, in standard errors, in
        the draws in which a candidate is within the bounds.
    allowed : the share of the error rate that may be spent under this supposition. The rest is
        kept for suppositions that were not made; it is 0 if the other candidates do not matter.
    """
    noise, value_noise = candidates.widest_noise(), candidates.value_noise
    spread = np.sqrt((noise**2).mean(axis=0))
    spread = np.where(spread > 0, spread, 1)
    value_spread = np.where(candidates.value_errors > 0, candidates.value_errors, 1)
    draws = np.arange(len(noise))

    def standardise(objective_errors: Floats, winners: Rows) -> Floats:
        """Return the errors of the winner of each draw, in standard errors, (T, 1 + C)."""
        value_errors = value_noise[draws, winners] / value_spread[winners]
        return np.column_stack([objective_errors / spread[winners], value_errors])

    without_choice = standardise(noise[:, chosen], np.full(len(noise), chosen))
    yield without_choice, 1.0
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
            yield errors[has_winner], _KEPT + (1 - _KEPT) * same_share


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


def _shortest(alone: Floats, choices: Sequence[tuple[Floats, float]], missed: float) -> Tails:
    """Return the tails of the shortest interval that holds often enough under each supposition.

    Parameters
    ----------
    alone : (T,) errors without a choice, in the same draws. The probability that they are
        beyond a limit is known, so that they serve as control variates.
    choices : errors under each supposition, with the share of them that may be missed.
    missed : the error rate of one interval.
    """
    lower = missed * np.concatenate([np.geomspace(1e-3, 0.5, 40), np.linspace(0.5, 0.95, 46)[1:]])
    below, above = critical(lower), critical(missed - lower)
    steps = np.linspace(0, 4, 500) + critical(missed)
    for errors, allowed in choices:
        excess_below = _share_above(errors, below) - _share_above(alone, below)
        left_for_upper = allowed - lower - excess_below
        share_above = _share_above(-errors, steps)
        share_alone = _share_above(-alone, steps)
        chance = _chance_above(steps) + share_above - share_alone
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


_RIVALS = 20
_SMALLER = 0.8  # of the error rate, for who is smaller; the rest is for who is beyond a bound


def not_told_from_best(candidates: Candidates, *, level: float = 0.95) -> Mask:
    """Return which candidates (k,) may be the best within the bounds.

    The truly best one is among them with at least this probability. A candidate is left out where
    one of its values is surely beyond its bound, or where another candidate is surely within and
    its objective surely smaller; candidates are compared by the error of their difference, as they
    are judged on the same rows (Gupta 1965; Hsu 1984, "multiple comparisons with the best", with
    Bonferroni's critical value). The twenty smallest objectives are compared with all others.
    """
    count, m = candidates.differences.shape
    spent, degrees = 1 - level, candidates.degrees
    bounded = max(int(np.isfinite(candidates.bounds).sum()), 1)
    beyond = critical((1 - _SMALLER) * spent / bounded, degrees)
    # Of a rival one statement can be wrong: that it is within, or, where it is, that it is smaller.
    per_rival = _SMALLER * spent / max(count - 1, 1)
    reach = critical(per_rival / ((1 + candidates.folded) * m), degrees)
    surely = critical(per_rival, degrees)
    spread = candidates.value_errors
    kept = (candidates.values - beyond * spread <= candidates.bounds).all(axis=1)
    within = (candidates.values + surely * spread <= candidates.bounds).all(axis=1)
    within |= np.isinf(candidates.bounds).all()
    rivals = np.flatnonzero(within)
    rivals = rivals[np.argsort(candidates.objectives[rivals], kind="stable")][:_RIVALS]
    for rival in rivals:
        kept &= ~_behind(candidates, int(rival), reach)
    return np.asarray(kept)


def _behind(candidates: Candidates, index: int, reach: float) -> Mask:
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
    variances = widest_errors[:, None] ** 2 + candidates.errors[index] ** 2
    for sign in (1.0, -1.0) if candidates.folded else (1.0,):
        variance = variances - 2 * sign * covariance
        ahead = candidates.objectives[:, None] - sign * candidates.differences[index]
        behind &= (ahead - reach * np.sqrt(np.maximum(variance, 0)) > 0).all(axis=1)
    behind[index] = False
    return behind
