"""Evaluating predictions: arrays in, one long table of metrics out; never sees a model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.core.arrays import Floats, Mask
from fairbench.core.errors import UserError, check_choice, check_minimum, check_share
from fairbench.data.dataset import Task
from fairbench.evaluation import abstention, regression, scores, uncertainties
from fairbench.evaluation import table as tables
from fairbench.evaluation.groups import (
    CountIntervals,
    GroupCounts,
    PosteriorIntervals,
    SurveyIntervals,
)
from fairbench.evaluation.many_groups import EXCEPTIONAL, SHOWN
from fairbench.evaluation.predictions import Groups, Labelled
from fairbench.evaluation.table import NAN, Block, MetricTable, Setting, Statuses
from fairbench.inference import posterior
from fairbench.inference.gaps import probability_below
from fairbench.inference.pooled import Generators, Pooled, adjusted_p_values
from fairbench.inference.survey import Design, SurveyCounts
from fairbench.metrics import registry
from fairbench.metrics.group import FORMS, average_gaps, group_weighted
from fairbench.metrics.registry import BINARY, WIDEST, Counts, Metric, metrics_of
from fairbench.metrics.uncertainty import spread_diagram

_NO_DESIGN = (
    "interval=dirichlet knows neither weights nor clusters: use interval=frequentist, the default"
)
CANDIDATES = tuple(i / 100 for i in range(26))  # inclusion of 75 to 100 %


@dataclass(frozen=True)
class Evaluator:
    """Settings of an evaluation: which metrics are computed, and how.

    Attributes
    ----------
    interval : ``frequentist`` intervals hold in repeated samples, for few rows too; ``dirichlet``
        ones are the papers' posterior, a Dirichlet distribution of each group's confusion counts.
        Of several repeats or folds, means of rates and their gaps have frequentist ones all the
        same, and each split has the posterior's.
    draws : posterior draws.
    alpha : Dirichlet pseudo-count of each confusion cell (1 uniform).
    level : probability of the intervals.
    epsilon : a gap under this is practically fair; P(gap < epsilon) is reported.
    ratio_band : a ratio further than this from 1 is flagged (Kuzucu et al. 2024 use 0.2).
    negligible_sd : ratios over a group whose mean variance may be below the square of this are not
        printed; in a regression it is a share of the target's standard deviation.
    bins : bins of the reliability diagram and the calibration error.
    spread_groups : numbers of groups of the spread diagram.
    spread_residual : ``probability`` (target minus score) or ``label`` (minus the hard label, as
        FairlyUncertain's figures have it).
    coverage_levels : levels of prediction intervals, and of sets of labels, whose coverage is
        counted.
    abstention_rates : shares abstained on, for the curves.
    feature_shift_rates : shares abstained on at which the features of the rows kept are compared
        with everyone's.
    choose_on : the rows on which the abstention rate is chosen: ``validation`` (without validation
        rows, no rate is chosen) or, as the papers do, ``test``.
    choose_by : the metrics whose sum the chosen rate minimises, each divided by its value without
        abstention.
    relaxations : gaps up to which thresholds for each group, chosen on the validation rows, may
        miss parity; 1 leaves the score unprocessed. What they make of the error is reported.
    neighbours : the largest number of nearest neighbours with whose predictions each row's is
        compared, of all other rows at most; 0, the default, saves the seconds that finding them
        takes.
    minimum_group_size : rates resting on fewer rows are flagged ``insufficient``.
    intersections : the largest number of sensitive attributes that are combined.
    weights : whether a run's rows are weighted by the data set's weights, so that metrics describe
        the population that the rows stand for. Clusters are taken into account in any case.
    """

    interval: str = posterior.FREQUENTIST
    draws: int = 1000
    alpha: float = 1.0
    level: float = 0.95
    epsilon: float = 0.05
    ratio_band: float = 0.2
    negligible_sd: float = 0.001
    bins: int = 15
    spread_groups: Sequence[int] = (10,)
    spread_residual: str = "probability"
    coverage_levels: Sequence[float] = (0.5, 0.8, 0.9, 0.95)
    abstention_rates: Sequence[float] = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5)
    feature_shift_rates: Sequence[float] = ()
    choose_on: str = "validation"
    choose_by: Sequence[str] = abstention.OBJECTIVES
    relaxations: Sequence[float] = ()
    neighbours: int = 0
    minimum_group_size: int = 10
    intersections: int = 2
    weights: bool = False

    def __post_init__(self) -> None:
        """Refuse settings that would make a metric meaningless."""
        check_choice("evaluator.interval", self.interval, posterior.INTERVALS)
        check_choice("evaluator.spread_residual", self.spread_residual, ("probability", "label"))
        check_choice("evaluator.choose_on", self.choose_on, ("validation", "test"))
        if not self.choose_by or set(self.choose_by) - set(abstention.OBJECTIVES):
            raise UserError(f"evaluator.choose_by names any of {', '.join(abstention.OBJECTIVES)}")
        for name in ("abstention_rates", "feature_shift_rates"):
            if not all(0 <= rate < 1 for rate in getattr(self, name)):
                raise UserError(f"evaluator.{name} must be at least 0 and under 1")
        if not all(0 < level < 1 for level in self.coverage_levels):
            raise UserError("evaluator.coverage_levels must be between 0 and 1")
        if not all(0 <= relaxation <= 1 for relaxation in self.relaxations):
            raise UserError("evaluator.relaxations must be between 0 and 1")
        if self.weights and self.interval != posterior.FREQUENTIST:
            raise UserError(_NO_DESIGN)
        if not self.alpha > 0:
            raise UserError(f"evaluator.alpha is {self.alpha}; it must be over 0")
        check_share("evaluator.level", self.level)
        check_minimum("evaluator.epsilon", self.epsilon, 0)
        check_share("evaluator.ratio_band", self.ratio_band, zero=True)
        check_minimum("evaluator.negligible_sd", self.negligible_sd, 0)
        least = {"draws": 100, "neighbours": 0, "bins": 1}
        for name, at_least in {**least, "minimum_group_size": 0, "intersections": 0}.items():
            check_minimum(f"evaluator.{name}", getattr(self, name), at_least, whole=True)
        check_minimum("evaluator.spread_groups", min(self.spread_groups, default=1), 1)

    def table(
        self,
        data: Labelled,
        generators: Generators,
        *,
        validation: Labelled | None = None,
        protect: str = "",
        splits: Sequence[int] = (0,),
    ) -> MetricTable:
        """Return the metrics of the rows of several splits.

        Parameters
        ----------
        data : predictions, with the labels and groups that they are judged by.
        generators : one for the posterior draws of each split.
        validation : the rows that an abstention rate and thresholds are chosen on.
        protect : the attribute whose groups rates and thresholds are judged by; the first by
            default.
        splits : the number of each split in the table.

        Raises
        ------
        UserError : weights or clusters, and the papers' posterior, which knows of neither.
        """
        frequentist, minimum = self.interval == posterior.FREQUENTIST, self.minimum_group_size
        if data.design is not None and not frequentist:
            raise UserError(_NO_DESIGN)
        table = MetricTable(self.level, frequentist, tuple(splits), minimum)
        # Metrics that know weights and clusters are added to `table`, all others to `unweighted`,
        # whose rows follow at the end, marked where rows have a design.
        unweighted = table.without_rows() if data.design else table
        attribute = protect or next(iter(data.groups), "")
        if data.task is Task.BINARY:
            self._add_all_counts(table, data, generators)
            scores.evaluate_scores(table, data, self.bins, self.coverage_levels)
        elif data.task is Task.MULTICLASS:
            for label, blocks_of in self._labels_of_classes(table, data, generators):
                of_label = table.without_rows()
                # Drawn as if nothing had been drawn before.
                self._add_all_counts(of_label, label, deepcopy(generators))
                scores.evaluate_scores(of_label, label, self.bins, self.coverage_levels)
                table.blocks.extend(blocks_of(of_label))
            scores.evaluate_sets(table, data, self.coverage_levels)
        else:
            regression.evaluate_regression(table, data, self.coverage_levels)
        if "uncertainty" in data.predictions and data.task is not Task.MULTICLASS:
            by_score = self.spread_residual == "probability" and "score" in data.predictions
            residual = data.target - data.column("score" if by_score else "prediction")
            for bins in self.spread_groups:
                _add_spread_diagram(unweighted, data, residual, bins)
        is_known = "uncertainty" in data.predictions and attribute in data.groups
        if is_known and data.task is not Task.REGRESSION:
            # The error of the rows kept at each rate of abstention, and of labels its gaps.
            tested, chooser = data, data if self.choose_on == "test" else validation
            left_out: tuple[str, ...] = ()
            if data.task is Task.MULTICLASS:
                tested, chooser = _as_label(data), None
                left_out = ("abstention_statistical_parity", "abstention_equalized_odds")
            added, about = table.without_rows(), (self.abstention_rates, CANDIDATES, attribute)
            abstention.evaluate_abstention(added, tested, chooser, *about, self.choose_by)
            unweighted.blocks.extend(added.blocks_of(lambda name: name not in left_out))
        if data.task is Task.BINARY:
            chosen_on = validation, self.relaxations, attribute
            abstention.evaluate_group_thresholds(unweighted, data, *chosen_on)
        abstention.evaluate_feature_shift(unweighted, data, self.feature_shift_rates)
        regression.evaluate_against_truth(unweighted, data)
        uncertainties.evaluate_uncertainties(unweighted, data, self.ratio_band, self.negligible_sd)
        uncertainties.evaluate_individual(unweighted, data, self.neighbours, attribute)
        if data.design is not None:
            table.add_unweighted(unweighted.blocks, data.design)
        return table

    def count(
        self,
        groups: Groups,
        target: Floats,
        hard: Floats,
        generators: Generators,
        *,
        design: Design | None = None,
        times: NDArray[np.int64] | None = None,
    ) -> GroupCounts:
        """Return the counts of an attribute's groups, and what makes their intervals.

        Parameters
        ----------
        groups : the groups in S splits; their counts are (S, G, 4), or (G, 4) where S is 1.
        target : (n,) labels 0 / 1.
        hard : (n,) predictions 0 / 1.
        generators : one for the draws of each split.
        design : the weights and clusters of rows; None if there are neither.
        times : (n,) how often each row comes; once by default.
        """
        name = groups.attribute
        names = list(groups.names)
        if design is not None:
            cell = (2 * target + hard).astype(np.intp)
            survey = SurveyCounts.of(cell, groups.codes, design, groups=len(groups))
            counts: Counts = survey.counts()  # at the groups' effective sizes
            intervals: CountIntervals = SurveyIntervals(counts, self.level, survey=survey)
        else:
            counts = registry.binary_confusion(
                target, hard, groups.codes, n_groups=groups.cells, times=times
            )
            if groups.splits > 1:
                counts = counts.reshape(groups.splits, len(groups), 4)
            intervals = CountIntervals(counts, self.level)
        if self.interval == posterior.DIRICHLET:
            draw = partial(posterior.posterior_draws, draws=self.draws, alpha=self.alpha)
            draws = _draws_of_splits(draw, counts, generators)
            return GroupCounts(name, names, counts, PosteriorIntervals(counts, self.level, draws))
        return GroupCounts(name, names, counts, intervals, self.draws, generators)

    def add_counts(self, table: MetricTable, counts: GroupCounts, generators: Generators) -> None:
        """Add per-group rates, differences and ratios to the reference, and gaps."""
        _add_rates(table, counts)
        if len(counts.groups) > 1:
            _add_pairs(table, counts, self.ratio_band)
            _add_gaps(table, counts, generators, self.epsilon)
            if counts.draws and len(counts.groups) > 2:
                _add_pooled(table, counts)

    def _add_all_counts(self, table: MetricTable, data: Labelled, generators: Generators) -> None:
        """Add the metrics of counts of labels 0 and 1, of everyone and of each attribute."""
        hard = data.column("prediction")
        for groups in (data.everyone, *data.coded.values()):
            counts = self.count(groups, data.target, hard, generators, design=data.design)
            self.add_counts(table, counts, generators)

    def _labels_of_classes(
        self, table: MetricTable, data: Labelled, generators: Generators
    ) -> Iterator[tuple[Labelled, Callable[[MetricTable], Iterable[Block]]]]:
        """Yield labels 0 and 1 to be evaluated, and what gives the blocks of each that are kept.

        These are what all classes have together, and every class against the rest, with the class
        as label 1, whose rows have its name in the column `outcome`. With two classes, the second's
        rows equal those of the binary task. What is of several classes alone, and averages, are
        added to the table in between.
        """
        if len(data.classes) > 2:
            hits = _as_label(data)
            hits = replace(hits, predictions=hits.predictions[["prediction"]])
            yield hits, lambda of: of.blocks_of(lambda name: _is_of(name, _WHOLE))
            scores.evaluate_class_scores(table, data.with_weight(), self.bins)
        for k, name in enumerate(data.classes):
            is_last_of_two = len(data.classes) == 2 and k == 1
            yield _as_label(data, k), partial(_blocks_of_class, name, shared=is_last_of_two)
        for groups in data.coded.values():
            if len(groups) > 1:
                self._add_averages(table, data, groups, generators)

    def _add_averages(
        self, table: MetricTable, data: Labelled, groups: Groups, generators: Generators
    ) -> None:
        """Add all forms of the average of the classes' gaps between the groups of one attribute.

        The lower limit of an average is the average of the classes' simultaneous lower limits, as
        no gap is negative, however noisy. Its upper limit is the average of their pointwise upper
        limits: the error of an average is at most the average error, and the largest gap is that of
        one class.
        """
        widest = metrics_of(BINARY, "widest")
        metrics = [widest[name] for name in _GAPS]

        def count(label: Labelled, level: float = table.level) -> GroupCounts:
            """Return the counts of a label, drawn as if nothing had been drawn before."""
            of_rows = label.target, label.column("prediction"), deepcopy(generators)
            return replace(self, level=level).count(groups, *of_rows, design=data.design)

        def gaps_of(
            counts: GroupCounts, metrics: Sequence[Metric] = metrics
        ) -> tuple[Floats, NDArray[np.int64], Statuses]:
            """Return gaps with both limits (3, M, S), their rows (M, S), and their statuses."""
            _, interval, values, sizes, statuses = counts.gaps(metrics, table.minimum)
            shape = len(metrics), len(table.splits)
            limits = np.reshape([values, interval.lower, interval.upper], (3, *shape))
            return limits, sizes.reshape(shape), statuses.apply(lambda array: array.reshape(shape))

        def add(name: str, limits: Floats, n: NDArray[np.int64], status: Statuses) -> None:
            value, lower, upper = limits[..., None]
            about = n[:, None], groups.attribute
            table.add(name, value, *about, interval=(lower, upper), status=status[:, None])

        labels = [_as_label(data, k) for k in range(len(data.classes))]
        counts_of_classes = [count(label) for label in labels]
        of_classes, sizes, statuses = zip(*map(gaps_of, counts_of_classes), strict=True)
        limits = np.stack(of_classes)  # (C, 3, M, S)
        # Bonferroni's correction, so that the intervals of all classes hold at once.
        wider_level = 1 - (1 - table.level) / len(labels)
        limits[:, 1] = [gaps_of(count(label, wider_level))[0][1] for label in labels]
        no_gap = np.isnan(limits[:, 0])
        fewest = np.where(no_gap, np.iinfo(np.int64).max, sizes).min(axis=0)
        n_rows = np.where(no_gap.all(axis=0), 0, fewest)
        for m, metric in enumerate(metrics):
            totals = (registry.total(of.intervals.counts_of(metric)) for of in counts_of_classes)
            shares = np.array([registry.base_rate(of).reshape(1, -1) for of in totals])
            of_metric = [of_class[m] for of_class in statuses]
            status = _status(of_metric, no_gap[:, m].all(axis=0), data.classes)
            for form in FORMS:
                averages = average_gaps(form, limits[:, :, m], shares)
                add(f"{metric.name}_{form}", averages, n_rows[m], status)
        # The parity whose classes are weighted within each group has no interval. It rests on all
        # rows of the groups, as each class's selection rate does.
        parity = _GAPS.index("statistical_parity")
        of_parity = np.stack([c.intervals.counts_of(metrics[parity]) for c in counts_of_classes])
        among = counts_of_classes[0].intervals.compared([metrics[parity]])[0]
        sums = np.where(among, group_weighted(of_parity), NAN)
        value = np.fmax.reduce(sums, axis=-1) - np.fmin.reduce(sums, axis=-1)
        of_groups = np.full((3, len(table.splits)), NAN)
        of_groups[0] = np.where(among.sum(axis=-1) < 2, NAN, value)
        name = "statistical_parity_group_weighted"
        add(name, of_groups, sizes[0][parity], statuses[0][parity])
        micro, rows, status = gaps_of(count(_as_label(data)), [widest["accuracy_gap"]])
        add("equal_opportunity_micro", micro[:, 0], rows[0], status[0])


def _blocks_of_class(name: str, table: MetricTable, *, shared: bool) -> Iterator[Block]:
    """Yield the blocks of a class against the rest, after those of all classes if it has them."""
    if shared:
        yield from table.blocks_of(lambda metric: _is_of(metric, _TOGETHER))
    for block in table.blocks_of(lambda metric: not _is_of(metric, _TOGETHER)):
        settings = tuple(setting._replace(outcome=name) for setting in block.settings)
        yield replace(block, settings=settings)


def _add_spread_diagram(table: MetricTable, data: Labelled, residual: Floats, bins: int) -> None:
    """Add the spread diagram in some bins, and what sums it up, of every split.

    It shows how large errors, the `residual` (n,), are where much or little is claimed.
    """
    uncertainty = data.column("uncertainty")
    bad = ~(np.isfinite(residual) & np.isfinite(uncertainty) & (uncertainty >= 0))
    totals = np.full((2, data.splits, 1), NAN)
    points = np.full((2, bins, data.splits), NAN)
    size = np.zeros((bins, data.splits), np.int64)
    status = data.statuses(bad, "uncertainty").copy(totals.shape)
    for s in np.flatnonzero(status.is_ok[0]):
        rows = data.slices[s]
        spread = spread_diagram(residual[rows], uncertainty[rows], bins)
        count = len(spread.size)
        totals[:, s, 0] = spread.error(), spread.rank_correlation()
        size[:count, s] = spread.size
        points[:, :count, s] = spread.predicted, spread.empirical
    status.flag(np.isnan(totals) & status.is_ok, "undefined", "one side is constant")
    names = ("spread_error", "spread_rank_correlation")
    table.add(names, totals, data.sizes, setting=Setting(bins=bins), status=status)
    settings = [Setting(bins=bins, bin=i) for i in range(bins)]
    has_rows = size[..., None] > 0
    if not has_rows.any():
        return
    for name, values in zip(("spread_predicted", "spread_empirical"), points, strict=True):
        named = (name,) * bins
        table.add(named, values[..., None], size[..., None], setting=settings, is_row=has_rows)


# Rates of groups, and what compares them.

RESAMPLES = 200  # of the bias of a gap: a mean, which needs far fewer than an interval


def _add_rates(table: MetricTable, counts: GroupCounts) -> None:
    """Add the rates of every group."""
    rates = metrics_of(BINARY, "rate")
    metrics = list(rates.values())
    size, statuses = counts.statuses(metrics, table.minimum)
    values = [metric(counts.intervals.counts_of(metric)) for metric in metrics]
    limits, about = counts.intervals.rates(metrics), (counts.attribute, counts.groups)
    table.add(list(rates), values, size, *about, interval=limits, status=statuses)


def _add_pairs(table: MetricTable, counts: GroupCounts, band: float) -> None:
    """Add the differences of rates from the reference's, and the ratios to it."""
    declared = metrics_of(BINARY, "difference", "ratio")
    metrics = list(declared.values())
    intervals, about = counts.intervals, (counts.attribute, counts.groups[1:])
    size, statuses = counts.statuses(metrics, table.minimum)
    statuses = statuses.of_pairs(size)
    size = np.minimum(size[..., :1], size[..., 1:])
    values = np.stack([metric(intervals.counts_of(metric)) for metric in metrics])
    statuses.flag(
        np.isnan(values) & statuses.has_value,
        "undefined",
        lambda m, *_: f"{metrics[m].rates[0].name} of group '{counts.groups[0]}' is 0",
    )
    names, limits, bounded = list(declared), intervals.pairs(metrics), intervals.bounded
    table.add(names, values, size, *about, interval=limits, status=statuses, bounded=bounded)
    at = [m for m, metric in enumerate(metrics) if metric.interval == "ratio"]
    ratios = [metrics[m] for m in at]
    outside = np.where(np.isnan(values[at]), NAN, intervals.outside(ratios, band))
    table.add(
        [names[m] for m in at],
        outside,
        size[at],
        *about,
        status=statuses[at],
        statistic=tables.OUTSIDE_BAND,
        setting=Setting(band=band),
    )


def _add_gaps(
    table: MetricTable, counts: GroupCounts, generators: Generators, epsilon: float
) -> None:
    """Add the largest gaps and smallest ratios, and the further statistics of the gaps."""
    widest = metrics_of(BINARY, *WIDEST)
    metrics, intervals = list(widest.values()), counts.intervals
    among, interval, values, size, statuses = counts.gaps(metrics, table.minimum)
    # Draw these before the posteriors of `counts.probability_gap_below`: both use the same
    # generators, whose order has to stay.
    resampled = None
    if len(counts.groups) > 2:
        draw = partial(_resampled_counts, draws=RESAMPLES)
        resampled = _draws_of_splits(draw, counts.counts, generators)
    ends, bounded = interval[:2], intervals.bounded
    table.add(
        list(widest),
        values,
        size,
        counts.attribute,
        interval=ends,
        status=statuses,
        bounded=bounded,
    )
    # Further statistics are of gaps alone, not of ratios.
    at = [m for m, metric in enumerate(metrics) if metric.better == "lower"]
    gaps = list(zip([metrics[m] for m in at], among[at], strict=True))
    values, size, statuses = values[at], size[at], statuses[at]

    def add(statistic: str, of_gaps: Floats, statuses: Statuses, **options: Any) -> None:
        names = [metric.name for metric, _ in gaps]
        of_gaps = np.where(np.isnan(values), NAN, of_gaps)
        about = names, of_gaps, size, counts.attribute
        table.add(*about, status=statuses, statistic=statistic, **options)

    below = np.stack([counts.probability_gap_below(*gap, epsilon) for gap in gaps])
    # Other intervals than the posterior's bound the posterior probability.
    if not isinstance(intervals, PosteriorIntervals):
        ends = interval.lower[at], interval.upper[at]
        below = probability_below(below, *ends, epsilon, level=table.level)
    add(tables.BELOW_EPSILON, below, statuses, setting=Setting(epsilon=epsilon))
    if resampled is not None:
        corrected = np.stack([counts.debiased(*gap, resampled) for gap in gaps])
        flagged = statuses.copy(values.shape)
        without_value = np.isnan(corrected) & flagged.has_value
        flagged.flag(without_value, "undefined", "no resample has the rates of every group")
        add(tables.DEBIASED, corrected, flagged)
    if interval.leads is not None:
        surely = interval.leads > 0
        apart = (surely | surely.swapaxes(-1, -2))[at].sum(axis=(-2, -1)) // 2
        add(tables.PAIRS_THAT_DIFFER, apart, statuses, is_row=~np.isnan(values))


def _add_pooled(table: MetricTable, counts: GroupCounts) -> None:
    """Add each group's rates as pooled with the others', and its probability to be the worst."""
    rates = list(SHOWN)
    posterior = Pooled.stacked([counts.pooled[rate.name] for rate in rates])
    sizes = np.reshape(counts.sizes(rates), posterior.mean.shape)
    statuses, unlike = Statuses.ok(sizes.shape), np.zeros(sizes.shape, bool)
    for rate_and_split in np.ndindex(sizes.shape[:-1]):
        surprise = posterior.surprise[rate_and_split]
        if (surprise < EXCEPTIONAL).any():  # adjusting only makes them larger
            unlike[rate_and_split] = adjusted_p_values(surprise) < EXCEPTIONAL
    reason = "unlike the other groups: read its own rate, not the pooled one"
    statuses.flag(unlike, "insufficient", reason)
    statuses.flag(
        sizes == 0, "insufficient", lambda r, *_: f"{rates[r].empty}: from the other groups alone"
    )
    nobody = np.logical_not(sizes.any(axis=-1, keepdims=True))
    statuses.flag(nobody, "undefined", lambda r, *_: rates[r].empty)
    valued = statuses.has_value
    names, about = [rate.name for rate in rates], (sizes, counts.attribute, counts.groups)
    mean, interval = np.where(valued, posterior.mean, NAN), posterior.interval(table.level)
    table.add(names, mean, *about, statistic=tables.POOLED, interval=interval, status=statuses)
    largest = np.array(list(SHOWN.values()))[:, None, None]
    worst = np.where(largest, posterior.worst(largest=True), posterior.worst(largest=False))
    certain = Statuses.where(valued, Statuses.ok(sizes.shape), statuses)
    worst = np.where(valued, worst, NAN)
    table.add(names, worst, *about, statistic=tables.WORST, status=certain)


def _resampled_counts(
    counts: NDArray[Any], draws: int, generator: np.random.Generator
) -> NDArray[np.int64]:
    """Draw (T, G, 4) multinomial counts around the observed shares (parametric bootstrap).

    It is a view of an array with the cells first, so that sums run over contiguous memory.
    """
    size = counts.sum(axis=-1)
    shares = counts / np.maximum(size, 1)[..., None]
    shares[size == 0, 0] = 1.0
    resampled: NDArray[np.int64] = generator.multinomial(
        size.astype(np.int64), shares, size=(draws, *size.shape)
    )
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(resampled, -1, 0)), 0, -1)


def _draws_of_splits(draw: Callable[..., Counts], counts: Counts, generators: Generators) -> Counts:
    """Return draws (T, ..., G, 4) from counts, each split's by its own generator."""
    splits = counts.reshape(-1, *counts.shape[-2:])
    draws_of_splits = [
        draw(of_split, generator=generator)
        for of_split, generator in zip(splits, generators, strict=True)
    ]
    if counts.ndim == 2:
        return draws_of_splits[0]
    # The cells come first in memory, so that sums over them add whole arrays.
    cells_first = [np.moveaxis(draws, -1, 0) for draws in draws_of_splits]
    return np.moveaxis(np.stack(cells_first, axis=2), 0, -1)


# Several classes: each against the rest, and averages over them.

_WHOLE = ("accuracy", "error_rate")  # shares of right and wrong predictions of any class
# Metrics of all classes at once, which no single class has against the rest.
_TOGETHER = (*_WHOLE, "balanced_accuracy", "log_loss", "brier_score", "nll")
_GAPS = ("statistical_parity", "equal_opportunity")


def _as_label(data: Labelled, k: int | None = None) -> Labelled:
    """Return predictions of one class against the rest: label 1 is the class, 0 all others.

    Without a class they are of correctness: the label is always 1, the prediction 1 where right.
    """
    kept = ("uncertainty", "uncertainty") if k is None else (f"score_{k}", "score")
    hard = data.column("prediction") == (data.target if k is None else k)
    columns = {"prediction": hard.astype(np.float64)}
    if kept[0] in data.predictions:
        columns[kept[1]] = data.column(kept[0])
    label = np.ones(len(data)) if k is None else (data.target == k).astype(np.float64)
    predictions = pd.DataFrame(columns)
    return replace(data, target=label, predictions=predictions, task=Task.BINARY, classes=())


def _is_of(name: str, metrics: Sequence[str]) -> bool:
    """Say whether a name is that of one of some metrics, or of what compares groups by one."""
    return any(name == metric or name.startswith(f"{metric}_") for metric in metrics)


def _status(of_classes: Sequence[Statuses], no_value: Mask, classes: Sequence[str]) -> Statuses:
    """Return statuses (S,) that name the classes without a gap, of few rows or of some groups.

    Parameters
    ----------
    no_value : (S,) whether no class has a gap.
    """
    status = Statuses.ok(no_value.shape)
    flawed = np.stack([~statuses.is_ok for statuses in of_classes])

    def why(s: int) -> str:
        first = int(flawed[:, s].argmax())
        count = int(flawed[:, s].sum())
        others = f"; {count - 1} more flagged" if count > 1 else ""
        return f"class '{classes[first]}': {of_classes[first].reason[s]}{others}"

    status.flag(flawed.any(axis=0) & ~no_value, "insufficient", why)
    status.flag(flawed.any(axis=0) & no_value, "undefined", why)
    return status
