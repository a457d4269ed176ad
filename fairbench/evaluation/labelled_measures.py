"""A metric of groups from the rows that have labels, while more of them are being labelled.

Which group gets the next label may depend on the labels before, and so may when labelling ends:
every interval is to be had for a number of labels that was fixed beforehand, and as one of a
sequence that holds whenever one stops.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.core.arrays import Floats
from fairbench.evaluation import regression, scores
from fairbench.evaluation.labelled_intervals import LabelledIntervals
from fairbench.evaluation.metric_batches import Batch, declared_batches
from fairbench.evaluation.predictions import AllGroups
from fairbench.inference.active.intervals import lasting_level
from fairbench.inference.beta import Beta, Normal, centred
from fairbench.inference.rates import Limits, quantile
from fairbench.metrics.registry import Metric

Rows = NDArray[np.int64]
# Labels that what is known before any label is worth. It steers which row is next, and has no part
# in what is reported.
PRIOR = 2.0


@dataclass(frozen=True, eq=False)
class LabelledRates:
    """A rate of A groups, from labels that are helped by scores.

    Attributes
    ----------
    expected : (A,) the rates that scores lead one to expect; see `expected_rates`.
    """

    metric: Metric
    intervals: LabelledIntervals
    expected: Floats

    @property
    def rows(self) -> Rows:
        """The labelled rows (A,) in the denominators of the metric's rates."""
        sizes = [rate.size(self.intervals.counts) for rate in self.metric.rates]
        return np.asarray(np.min(sizes, axis=0)).astype(np.int64)

    def limits(self, level: float, *, anytime_valid: bool) -> Limits:
        """Return the rates (A,) with intervals, all that is possible of too few rows.

        If `anytime_valid`, they hold whenever labelling stops; otherwise, at a number of labels
        that was fixed beforehand.
        """
        intervals = replace(self.intervals, level=level, anytime_valid=anytime_valid)
        lower, upper = (ends[0] for ends in intervals.rates([self.metric]))
        with np.errstate(invalid="ignore"):
            value = self.metric(intervals.counts_of(self.metric))
        return Limits(value, np.nan_to_num(lower, nan=0.0), np.nan_to_num(upper, nan=1.0))

    @property
    def posterior(self) -> Beta:
        """What is known (A,), of a prior that is centred on the scores (Ji et al. 2021)."""
        value = np.nan_to_num(np.asarray(self.metric(self.intervals.counts), float), nan=0.5)
        prior = centred(np.clip(self.expected, 0.01, 0.99), PRIOR)
        return prior.after(value * self.rows, (1 - value) * self.rows)


def expected_rates(
    metric: Metric, score: Floats | None, prediction: Rows, codes: Rows, groups: int
) -> Floats:
    """Return the rates (A,) that scores lead one to expect; a half without scores.

    Parameters
    ----------
    score : (n,) the scores of all rows.
    prediction : (n,) the predictions 0 / 1 of all rows.
    codes : (n,) the position of each row's group.
    groups : A, how many groups there are.
    """
    if score is None:
        return np.full(groups, 0.5)
    cell = 4 * codes + prediction
    counts = np.bincount(cell, 1 - score, 4 * groups) + np.bincount(cell + 2, score, 4 * groups)
    return np.asarray(np.nan_to_num(metric(counts.reshape(groups, 4)), nan=0.5))


@dataclass(frozen=True, eq=False)
class LabelledMeans:
    """A mean, or an area, of A groups, from the n rows that have labels.

    Attributes
    ----------
    target : (n,) the labels.
    columns : (n,) each, by the names that metrics need.
    groups : (n,) categorical, the group of every row.
    """

    metric: Metric
    target: Floats
    columns: Mapping[str, Floats]
    groups: pd.Series

    @cached_property
    def _batch(self) -> Batch:
        """The mean of everyone and of each group, (1, 1 + A)."""
        all_groups = AllGroups.of(len(self.target), {"": self.groups})
        kinds = {**scores.KINDS, **regression.KINDS}
        (batch,) = declared_batches([self.metric], self.target, self.columns, all_groups, kinds)
        return batch

    @property
    def rows(self) -> Rows:
        """The labelled rows (A,)."""
        rows: Rows = self.groups.value_counts(sort=False).to_numpy(np.int64)
        return rows

    @property
    def _sizes(self) -> Floats:
        """The labelled rows of everyone and of each group (1 + A,)."""
        return np.append(len(self.target), self.rows).astype(float)

    def limits(self, level: float, *, anytime_valid: bool) -> Limits:
        """Return the means (A,) with intervals; limits are infinite if there are too few rows."""
        if not len(self.target):
            nothing = np.full(len(self.rows), np.nan)
            return Limits(nothing, np.full_like(nothing, -np.inf), np.full_like(nothing, np.inf))
        value, lower, upper = self._limits(level, anytime_valid).take(slice(1, None))
        lower = np.where(np.isnan(lower), self.metric.least, lower)
        return Limits(value, lower, np.where(np.isnan(upper), np.inf, upper))

    def everyone(
        self, sizes: Rows, level: float, *, anytime_valid: bool
    ) -> tuple[float, float, float] | None:
        """Return the mean of all rows with its interval; None for an area, or an unlabelled group.

        It is the mean of the groups' means, weighted by their rows. The distances to the limits of
        independent intervals add as squares (Zou and Donner 2008).

        Parameters
        ----------
        sizes : (A,) all rows of each group, with a label and without.
        """
        limits = self.limits(level, anytime_valid=anytime_valid)
        if self.metric.interval != "mean" or np.isnan(limits.value).any():
            return None
        share = sizes / sizes.sum()
        value = float(share @ limits.value)
        to_lower, to_upper = limits.value - limits.lower, limits.upper - limits.value
        down, up = (float(np.linalg.norm(share * distance)) for distance in (to_lower, to_upper))
        return value, value - down, value + up

    def _limits(self, level: float, anytime_valid: bool) -> Limits:
        """Return the mean of everyone who has a label and of each group (1 + A,)."""
        sizes = self._sizes
        levels = lasting_level(level, sizes) if anytime_valid else np.full(len(sizes), level)
        with np.errstate(invalid="ignore", divide="ignore"):
            _, lower, upper = self._batch.limits(levels[None])
        return Limits(self._batch.value[0], lower[0], upper[0])

    @property
    def posterior(self) -> Normal:
        """What is known (A,), of a prior that is the mean and spread of everyone with a label."""
        groups = len(self.rows)
        if not len(self.target):
            return Normal.of(np.zeros(groups), 1.0, np.full(groups, PRIOR))
        value, lower, upper = self._limits(0.95, anytime_valid=False)
        spread = ((upper - lower) / (2 * quantile(0.95))) ** 2 * self._sizes
        common = np.nanmean(spread) if np.isfinite(spread).any() else 1.0
        centre = np.nan_to_num(value[0])
        strength = self._sizes[1:] + PRIOR
        mean = self.rows * np.where(np.isfinite(value), value, centre)[1:] + PRIOR * centre
        spread = np.where(np.isfinite(spread), spread, common)[1:]
        return Normal.of(mean / strength, spread, strength)


LabelledMeasure = LabelledRates | LabelledMeans
