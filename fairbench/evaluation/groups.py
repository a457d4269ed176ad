"""Evaluates group fairness of a classification: rates, their comparisons, and the intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairbench.core.arrays import Floats, Mask
from fairbench.evaluation.intervals import (
    CountIntervals,
    GroupIntervals,
    PosteriorIntervals,
    SurveyIntervals,
    by_pattern,
)
from fairbench.evaluation.many_groups import PooledGroups
from fairbench.evaluation.predictions import Groups
from fairbench.evaluation.table import (
    BELOW_EPSILON,
    DEBIASED,
    NAN,
    OUTSIDE_BAND,
    PAIRS_THAT_DIFFER,
    About,
    MetricTable,
    Setting,
    Statuses,
    Where,
    of_gaps,
    of_pairs,
    without,
)
from fairbench.inference.gaps import probability_below
from fairbench.inference.pooled import Generators
from fairbench.inference.posterior import DIRICHLET, posterior_draws, resampled_counts
from fairbench.inference.survey import Design, SurveyCounts
from fairbench.metrics import registry
from fairbench.metrics.group import debiased

NO_DRAWS = np.empty((0, 0, 4))
RESAMPLES = 200  # of the bias of a gap: a mean, which needs far fewer than an interval


@dataclass(frozen=True, eq=False)
class GroupCounts:
    """The confusion counts of an attribute's groups, and what makes their intervals.

    Attributes
    ----------
    groups : the names of the G groups.
    counts : (..., G, 4); the axes before the groups are those of samples, such as splits, of which
        there may be none.
    intervals : makes the intervals of rates and of what compares them.
    pooled : the joint estimates of all groups' rates; None unless they are asked for.
    """

    attribute: str
    groups: list[str]
    counts: registry.Counts
    intervals: GroupIntervals
    pooled: PooledGroups | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the groups."""
        return tuple(self.groups)

    def sizes(self, rates: Sequence[registry.Rate]) -> NDArray[np.int64]:
        """Return how many rows (R, ..., G) each rate rests on in each group."""
        return self.intervals.rows(rates).astype(np.int64)

    def unseen(self, among: Mask) -> Mask:
        """Return the groups (..., G) that have rows, but are not among those compared."""
        return (self.counts.sum(axis=-1) > 0) & ~among

    def probability_gap_below(self, metric: registry.Metric, epsilon: float, among: Mask) -> Floats:
        """Return the probability (...) that a gap between groups (..., G) is under epsilon."""
        source = self.intervals if self.pooled is None else self.pooled

        def of_groups(groups: list[int], samples: Mask) -> Floats:
            below = source.probability_gap_below(metric, epsilon, groups)
            return np.reshape(below, samples.shape)[samples]

        return by_pattern(among, of_groups)

    def values(self, metric: registry.Metric, among: Mask) -> Floats:
        """Return a gap or smallest ratio (...) among some groups (..., G)."""
        counts = self.intervals.counts_of(metric)
        return by_pattern(among, lambda groups, of: metric(counts[of][..., groups, :]))

    def statuses(
        self, metrics: Sequence[registry.Metric], minimum: int
    ) -> tuple[NDArray[np.int64], Statuses]:
        """Return how many rows (M, ..., G) metrics rest on, and whether that is at least `minimum`.

        Of a metric of several rates, these are those of the rate with the fewest.
        """
        of_rates = [self.sizes(metric.rates) for metric in metrics]
        weakest = [sizes.argmin(axis=0) for sizes in of_rates]
        size = np.stack([sizes.min(axis=0) for sizes in of_rates])
        status = Statuses.ok(size.shape)

        def of_group(*at: int) -> str:
            name = self.groups[at[-1]]
            return f" in group '{name}'" if name else ""

        def none(*at: int) -> str:
            rate = metrics[at[0]].rates[int(weakest[at[0]][at[1:]])]
            return str(rate.empty) + of_group(*at)

        few = (size > 0) & (size < minimum)
        status.flag(few, "insufficient", lambda *at: f"n={size[at]}{of_group(*at)}")
        status.flag(size == 0, "undefined", none)
        return size, status


@dataclass(frozen=True)
class GroupEvaluation:
    """Computes metrics of groups and adds them to `table`.

    Attributes
    ----------
    n_draws : posterior draws.
    design : the weights and clusters of rows; None if there are neither.

    The other attributes are those of :class:`fairbench.evaluation.evaluator.Evaluator`.
    """

    table: MetricTable
    interval: str
    n_draws: int
    alpha: float
    level: float
    epsilon: float
    ratio_band: float
    design: Design | None = None

    def add_counts(self, counts: GroupCounts, generators: Generators) -> None:
        """Add per-group rates, differences and ratios to the reference, and gaps."""
        self._add_rates(counts)
        if len(counts.groups) > 1:
            self._add_pairs(counts)
            self._add_gaps(counts, generators)
            if counts.pooled is not None and len(counts.groups) > 2:
                counts.pooled.add_to(self.table, self.level, counts.sizes)

    def count(
        self,
        groups: Groups,
        target: Floats,
        hard: Floats,
        generators: Generators,
        *,
        times: NDArray[np.int64] | None = None,
    ) -> GroupCounts:
        """Return the counts of an attribute's groups, and what makes their intervals.

        Parameters
        ----------
        groups : the groups in S splits; their counts are (S, G, 4), or (G, 4) where S is 1.
        target : (n,) labels 0 / 1.
        hard : (n,) predictions 0 / 1.
        generators : one for the draws of each split.
        times : (n,) how often each row comes; once by default.
        """
        name = groups.attribute
        names = list(groups.names)
        if self.design is not None:
            cell = (2 * target + hard).astype(np.intp)
            survey = SurveyCounts.of(cell, groups.codes, self.design, groups=len(groups))
            counts: registry.Counts = survey.counts()  # at the groups' effective sizes
            intervals: CountIntervals = SurveyIntervals(counts, NO_DRAWS, self.level, survey=survey)
        else:
            counts = registry.binary_confusion(
                target, hard, groups.codes, n_groups=groups.cells, times=times
            )
            if groups.splits > 1:
                counts = counts.reshape(groups.splits, len(groups), 4)
            intervals = CountIntervals(counts, NO_DRAWS, self.level)
        if self.interval == DIRICHLET:
            draws_of_splits = [
                posterior_draws(of_split, self.n_draws, generator, alpha=self.alpha)
                for of_split, generator in zip(_by_split(counts), generators, strict=True)
            ]
            draws = draws_of_splits[0] if counts.ndim == 2 else np.stack(draws_of_splits, axis=1)
            return GroupCounts(name, names, counts, PosteriorIntervals(counts, draws, self.level))
        pooled = PooledGroups(name, names, counts, self.n_draws, generators)
        return GroupCounts(name, names, counts, intervals, pooled)

    def _add_rates(self, counts: GroupCounts) -> None:
        """Add the rates of every group."""
        metrics = list(registry.metrics_of(registry.BINARY, "rate").values())
        size, statuses = counts.statuses(metrics, self.table.minimum)
        values = [metric(counts.intervals.counts_of(metric)) for metric in metrics]
        self._add(metrics, counts, values, size, statuses, interval=counts.intervals.rates(metrics))

    def _add(
        self,
        metrics: Sequence[registry.Metric],
        where: About,
        values: Floats | Sequence[Floats],
        sizes: NDArray[np.int64],
        statuses: Statuses,
        *,
        interval: tuple[Floats, Floats] | None = None,
        **options: Any,
    ) -> None:
        """Add M metrics, each of arrays (..., G) of samples and groups.

        Parameters
        ----------
        interval : both limits, (M, ..., G) each; NaN without any.
        options : further arguments of :meth:`MetricTable.add`.
        """
        shape = len(metrics), len(self.table.splits), len(where.names)
        if interval is not None:
            options["interval"] = [np.reshape(end, shape) for end in interval]
        self.table.add(
            [metric.name for metric in metrics],
            np.reshape(np.asarray(values), shape),
            np.reshape(sizes, shape),
            where,
            status=statuses.apply(lambda array: np.reshape(array, shape)),
            **options,
        )

    def _add_pairs(self, counts: GroupCounts) -> None:
        """Add the differences of rates from the reference's, and the ratios to it."""
        metrics = list(registry.metrics_of(registry.BINARY, "difference", "ratio").values())
        others = Where(counts.attribute, counts.names[1:])
        size, statuses = counts.statuses(metrics, self.table.minimum)
        statuses = of_pairs(statuses, size)
        size = np.minimum(size[..., :1], size[..., 1:])
        values = np.stack([metric(counts.intervals.counts_of(metric)) for metric in metrics])
        statuses.flag(
            np.isnan(values) & statuses.has_value,
            "undefined",
            lambda m, *_: f"{metrics[m].rates[0].name} of group '{counts.groups[0]}' is 0",
        )
        self._add(
            metrics,
            others,
            values,
            size,
            statuses,
            interval=counts.intervals.pairs(metrics),
            bounded=counts.intervals.bounded,
        )
        ratios = [m for m, metric in enumerate(metrics) if metric.interval == "ratio"]
        outside = counts.intervals.outside([metrics[m] for m in ratios], self.ratio_band)
        self._add(
            [metrics[m] for m in ratios],
            others,
            np.where(np.isnan(values[ratios]), NAN, outside),
            size[ratios],
            statuses[ratios],
            statistic=OUTSIDE_BAND,
            setting=Setting(band=self.ratio_band),
        )

    def _add_gaps(self, counts: GroupCounts, generators: Generators) -> None:
        """Add the largest gaps and smallest ratios, and the further statistics of the gaps."""
        metrics = list(registry.metrics_of(registry.BINARY, "widest").values())
        among = counts.intervals.compared(metrics)
        among[among.sum(axis=-1) < 2] = True
        interval = counts.intervals.gaps(metrics, among, unseen=counts.unseen(among))
        # Draw these before the posteriors of `counts.probability_gap_below`: both use the same
        # generators, whose order has to stay.
        resampled = None
        if len(counts.groups) > 2:
            resampled = _resample(counts.counts, generators)
        values, size, statuses = gaps_of_rates(counts, metrics, among, self.table.minimum)
        whole = Where(counts.attribute)
        self._add(
            metrics,
            whole,
            values,
            size,
            statuses,
            interval=(interval.lower, interval.upper),
            bounded=counts.intervals.bounded,
        )
        # Further statistics are of gaps alone, not of ratios.
        at = [m for m, metric in enumerate(metrics) if metric.is_gap]
        gaps, groups = [metrics[m] for m in at], among[at]
        values, size, statuses = values[at], size[at], statuses[at]
        below = np.stack(
            [
                counts.probability_gap_below(metric, self.epsilon, of_metric)
                for metric, of_metric in zip(gaps, groups, strict=True)
            ]
        )
        # Other intervals than the posterior's bound the posterior probability.
        if not isinstance(counts.intervals, PosteriorIntervals):
            ends = interval.lower[at], interval.upper[at]
            below = probability_below(below, *ends, self.epsilon, level=self.level)
        below = np.where(np.isnan(values), NAN, below)
        setting = Setting(epsilon=self.epsilon)
        self._add(gaps, whole, below, size, statuses, statistic=BELOW_EPSILON, setting=setting)
        if resampled is not None:

            def debiased_gap(metric: registry.Metric, of_metric: Mask) -> Floats:
                return by_pattern(
                    of_metric,
                    lambda compared, of: debiased(
                        metric,
                        counts.counts[of][..., compared, :],
                        resampled[:, of][..., compared, :],
                    ),
                )

            corrected = np.stack(list(map(debiased_gap, gaps, groups)))
            flagged = Statuses.of(statuses, values.shape)
            without_value = np.isnan(corrected) & flagged.has_value
            why = "no resample has the rates of every group"
            flagged.flag(without_value, "undefined", why)
            self._add(gaps, whole, corrected, size, flagged, statistic=DEBIASED)
        if interval.leads is not None:
            surely = interval.leads > 0
            apart = (surely | surely.swapaxes(-1, -2))[at]
            pairs = np.where(np.isnan(values), NAN, apart.sum(axis=(-2, -1)) // 2)
            is_row = ~np.isnan(np.reshape(values, (len(gaps), -1, 1)))
            counted = PAIRS_THAT_DIFFER
            self._add(gaps, whole, pairs, size, statuses, statistic=counted, is_row=is_row)


def gaps_of_rates(
    counts: GroupCounts, metrics: Sequence[registry.Metric], among: Mask, minimum: int
) -> tuple[Floats, NDArray[np.int64], Statuses]:
    """Return the largest gaps, or smallest ratios, among some groups (M, ..., G).

    Returns
    -------
    Of each metric (M, ...): the value, the rows of the smallest group that is compared, and whether
    it rests on `minimum` rows in each, and on everyone.
    """
    values = np.stack([counts.values(*pair) for pair in zip(metrics, among, strict=True)])
    size, of_groups = counts.statuses(metrics, minimum)
    statuses = of_gaps(of_groups, among, size)
    without_value = np.isnan(values) & statuses.has_value

    def all_zero(m: int, *sample: int) -> str:
        groups = among[(m, *sample)]
        whose = f"group '{counts.groups[int(groups.argmax())]}'"
        if groups.sum() > 2:
            whose = "every group"
        return f"{registry.selection_rate.name} of {whose} is 0"

    def why(m: int, *at: int) -> str:
        rates = metrics[m].rates
        fewest = np.argmin([counts.sizes([rate])[(0, *at)] for rate in rates])
        return str(rates[int(fewest)].empty)

    left_out = ~among & (statuses.has_value & ~without_value)[..., None]
    statuses.flag(
        np.asarray(left_out.any(axis=-1)), "insufficient", without(counts.groups, left_out, why)
    )
    statuses.flag(without_value, "undefined", all_zero)
    smallest = np.where(among, size, np.iinfo(np.int64).max).min(axis=-1)
    return values, smallest, statuses


def _by_split(counts: registry.Counts) -> Sequence[registry.Counts]:
    """Return the counts (G, 4) of every split, from those of one or (S, G, 4) of several."""
    return [counts] if counts.ndim == 2 else list(counts)


def _resample(counts: registry.Counts, generators: Generators) -> registry.Counts:
    """Return parametric resamples (T, ..., G, 4) of counts, each split's by its own generator."""
    resamples_of_splits = [
        resampled_counts(of_split, RESAMPLES, generator)
        for of_split, generator in zip(_by_split(counts), generators, strict=True)
    ]
    if counts.ndim == 2:
        return resamples_of_splits[0]
    # The cells come first in memory, so that sums over them add whole arrays.
    cells_first = [np.moveaxis(resamples, -1, 0) for resamples in resamples_of_splits]
    return np.moveaxis(np.stack(cells_first, axis=2), 0, -1)
