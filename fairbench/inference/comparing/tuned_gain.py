"""What tuning gains: intervals for the best of many trials against what was not tuned.

Validation rows chose the trial, so that it looks better on them than it is: its luck was chosen
with it. Two intervals are made of its gain over the untuned default, both corrected for the choice
(`selection.py` beside it): one of the expected gain on new people, and a wider one of
the gain that a given number of fresh test rows will show, which have a luck of their own.

All trials are judged on the same rows, so that only what they do differently adds to the noise. The
mean over folds is judged as one set of rows, which estimates the mean of these very fits (Bayle et
al. 2020, NeurIPS 33). A gap between groups is a largest size of differences: the gain is the
largest over the default's differences of the smallest over the tuned one's, and its interval is the
same of their limits, which no sign that is not known can make too narrow.

The trials were proposed one after the other, each after a look at those before, so that their
errors are not those of trials that were listed before looking. A fifth of the variance of each
counts as noise of its own, however much it resembles the others; the coverage of this is measured
in benchmarks/tuning.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import special

from fairbench.core.arrays import Floats
from fairbench.core.seeds import rng
from fairbench.inference.comparing.selection import Candidates, Tails, correction, joint_noise

Ends = tuple[float, float]
_OWN = 0.2  # the share of a trial's variance that counts as a luck of its own
_DRAWS = 2000


@dataclass(frozen=True, eq=False)
class GoalEstimate:
    """A metric of one candidate on some rows, as the largest of some sums of means.

    Attributes
    ----------
    parts : (P,) means, such as the rates of groups.
    influence : (n, P) what each row adds to the error of each mean.
    least : (P,) variances of the means that the rows cannot show: those of one more row of another
        kind.
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
        """What is minimised; NaN where it does not exist."""
        return float((self.sides @ self.parts).max(initial=-np.inf)) if len(self.sides) else np.nan

    @cached_property
    def side(self) -> Floats:
        """The sum that is the largest, (P,)."""
        return np.asarray(self.sides[int((self.sides @ self.parts).argmax())])

    @cached_property
    def linear(self) -> Floats:
        """What each row adds to the error of the value, (n,)."""
        return np.asarray(self.influence @ self.side)

    @cached_property
    def least_of_value(self) -> float:
        """The variance of the value that the rows cannot show."""
        return float(self.side**2 @ self.least)


@dataclass(frozen=True, eq=False)
class Looks:
    """The rows that candidates were judged on, and how many fresh ones will judge.

    Attributes
    ----------
    unit : (n,) codes of what is independent: people, or clusters of them.
    fold : (n,) codes of the fold in which each row was judged; a person may be in several.
    fresh : the number of fresh test rows that there will be.
    """

    unit: NDArray[np.int64]
    fold: NDArray[np.int64]
    fresh: float = np.inf

    @cached_property
    def units(self) -> int:
        """How many units there are."""
        return int(self.unit.max()) + 1

    @cached_property
    def _unit_and_fold(self) -> NDArray[np.int64]:
        """Codes of the pairs of a unit and a fold, (n,)."""
        pairs = np.stack([self.unit, self.fold], axis=1)
        return np.unique(pairs, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)

    def by_unit(self, influence: Floats) -> Floats:
        """Return the sums over units of what rows add, (n, ...) -> (U, ...)."""
        return _sums(self.unit, influence, self.units)

    def spread(self, influence: Floats, *, fresh: bool) -> Floats:
        """Return the covariance of errors, (n, D) -> (D, D), of fresh rows' errors as well."""
        of_units = self.by_unit(influence)
        covariance = of_units.T @ of_units
        if fresh:
            code = self._unit_and_fold
            sums = _sums(code, influence, int(code.max()) + 1)
            covariance = covariance + sums.T @ sums * self.rows_per_fresh_row
        return np.asarray(covariance)

    @property
    def rows_per_fresh_row(self) -> float:
        """How many rows were judged for each fresh row that there will be."""
        return len(self.unit) / self.fresh


def _sums(code: NDArray[np.int64], values: Floats, count: int) -> Floats:
    """Return the sums of rows of one code, (n, ...) -> (count, ...)."""
    flat = np.asarray(values, float).reshape(len(values), -1)
    sums = [np.bincount(code, column, count) for column in flat.T]
    return np.asarray(np.stack(sums, axis=1), float).reshape(count, *values.shape[1:])


def value_limits(estimate: GoalEstimate, looks: Looks, tails: Tails) -> Ends:
    """Return the limits of a value, on the scale on which small is good."""
    spread = looks.spread(estimate.influence, fresh=False) + np.diag(estimate.least)
    error = np.sqrt(np.einsum("ap,pq,aq->a", estimate.sides, spread, estimate.sides))
    centre = estimate.sides @ estimate.parts
    below, above = _critical(tails)
    return float((centre - below * error).max()), float((centre + above * error).max())


def gain_limits(
    default: GoalEstimate, tuned: GoalEstimate, looks: Looks, tails: Tails, *, fresh: bool = False
) -> Ends:
    """Return the limits of how much smaller the tuned value is than the default's.

    Parameters
    ----------
    default, tuned : the estimates of both on the same rows.
    looks : these rows.
    tails : the chance that the limits may fail on either side.
    fresh : whether the limits are of the gain that fresh rows will show, rather than of the
        expected gain.

    Notes
    -----
    The gain is the largest over the default's sums a of the smallest over the tuned one's sums b of
    a - b, and so are its limits: of those of a - b.
    """
    count = len(default.parts)
    spread = looks.spread(np.hstack([default.influence, tuned.influence]), fresh=fresh)
    least = tuned.least * (1 + looks.rows_per_fresh_row if fresh else 1)
    a, b = default.sides, tuned.sides
    variance_a = np.einsum("ap,pq,aq->a", a, spread[:count, :count], a)
    variance_b = np.einsum("bp,pq,bq->b", b, spread[count:, count:] + np.diag(least), b)
    covariance = a @ spread[:count, count:] @ b.T
    variance = variance_a[:, None] + variance_b - 2 * covariance
    error = np.sqrt(np.maximum(variance, 0))
    centre = (a @ default.parts)[:, None] - b @ tuned.parts
    below, above = _critical(tails)
    lower = (centre - below * error).max(axis=0).min()
    return float(lower), float((centre + above * error).min(axis=1).max())


def _critical(tails: Tails) -> Ends:
    return float(-special.ndtri(tails.lower)), float(-special.ndtri(tails.upper))


@dataclass(frozen=True)
class ChosenTails:
    """The tails with which limits hold for the trial that was chosen.

    Attributes
    ----------
    gain : the tails of the expected gain.
    fresh : the tails of the gain on fresh rows.
    value : the tails of the value.
    """

    gain: Tails
    fresh: Tails
    value: Tails


@dataclass(frozen=True, eq=False)
class Trials:
    """k trials and the default, judged by M metrics on the same rows or, if stopped, some of them.

    Attributes
    ----------
    values : (k, M) values of the trials, small being good.
    default : (M,) values of the default.
    noise : (k, M, U) what each unit adds to the errors of a trial's values.
    default_noise : (M, U) what each unit adds to the errors of the default's values.
    unseen : (k, M) variances that the rows cannot show.
    fresh : (k, M) the variance of the gain that comes from fresh rows.
    weights : (M,) weights of the metrics in the sum of which the smallest is chosen.
    """

    values: Floats
    default: Floats
    noise: Floats
    default_noise: Floats
    unseen: Floats
    fresh: Floats
    weights: Floats

    def tails(self, *, level: float = 0.95, seed: int = 0) -> list[ChosenTails]:
        """Return, for each metric, the tails with which intervals hold for the chosen trial."""
        generator = rng(seed, "tuning", len(self.values))
        count = len(self.weights)
        gain, value = self._draws(generator)
        fresh = gain + np.sqrt(self.fresh) * generator.standard_normal(gain.shape)
        score = (self.values - self.default) @ self.weights
        made = correction(
            Candidates(
                parts=score[:, None],
                part_noise=(gain @ self.weights)[..., None],
                contrasts=np.ones((1, 1)),
                values=np.hstack([self.values - self.default] * 2 + [self.values]),
                value_noise=np.concatenate([gain, fresh, value], axis=2),
                bounds=np.full(3 * count, np.inf),
                folded=False,
            ),
            level=level,
        )
        parts = [made.values[i * count : (i + 1) * count] for i in range(3)]
        return [
            ChosenTails(_mirror(gain_tails), _mirror(fresh_tails), value_tails)
            for gain_tails, fresh_tails, value_tails in zip(*parts, strict=True)
        ]

    def _draws(self, generator: np.random.Generator) -> tuple[Floats, Floats]:
        """Return draws of the errors of what the trials gain, and of their values, (T, k, M)."""
        every = np.concatenate([self.noise, self.default_noise[None]])
        shape = every.shape[:2]
        factor = np.moveaxis(every, -1, 0).reshape(every.shape[-1], -1)
        drawn = joint_noise(factor, draws=_DRAWS, generator=generator).reshape(-1, *shape)
        values = drawn[:, :-1]
        unseen = np.sqrt(self.unseen) * generator.standard_normal(values.shape)
        return self._with_independent_part(
            values - drawn[:, -1:] + unseen, generator
        ), values + unseen

    def _with_independent_part(self, drawn: Floats, generator: np.random.Generator) -> Floats:
        """Return draws of the same variance, a part of which is independent between trials."""
        spread = np.sqrt((drawn**2).mean(axis=0))
        independent = spread * generator.standard_normal(drawn.shape)
        return np.asarray(np.sqrt(1 - _OWN) * drawn + np.sqrt(_OWN) * independent)


def _mirror(tails: Tails) -> Tails:
    """Return the tails of a value's opposite."""
    return Tails(tails.upper, tails.lower)


def stack_noise(
    estimates: Sequence[Sequence[GoalEstimate]], looks: Sequence[Looks], units: int
) -> Floats:
    """Return what each unit adds to the error of every value, (k, M, U).

    Parameters
    ----------
    estimates : the estimates of each of k candidates, one for each of M metrics.
    looks : the rows that each candidate was judged on; one that was stopped was judged on the first
        folds alone.
    units : how many units all rows have.
    """
    return np.stack(
        [
            np.stack([_sums(look.unit, metric.linear, units) for metric in metrics])
            for metrics, look in zip(estimates, looks, strict=True)
        ]
    )
