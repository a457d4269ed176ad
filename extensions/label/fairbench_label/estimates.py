"""Metrics of groups that are being labelled while one looks: whose labels, and when it ends.

Which group gets the next label may depend on the labels before, and so may when labelling ends:
every interval is to be had for a number of labels that was fixed beforehand, and as one of a
sequence that holds whenever one stops. :class:`LabelledRates` and :class:`LabelledMeans` have one
metric of all groups; :class:`GroupSampling` says to an audit how its rows were chosen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import special

from fairbench.core.arrays import Codes, Floats, Mask, Rows, divide
from fairbench.data.dataset import Task
from fairbench.evaluation import regression, scores
from fairbench.evaluation import table as tables
from fairbench.evaluation.by_group import BINS, FEWEST_LABELS, Row
from fairbench.evaluation.groups import GroupCounts, LabelledIntervals
from fairbench.evaluation.metric_batches import Batch, declared_batches
from fairbench.evaluation.predictions import AllGroups, Labelled
from fairbench.evaluation.some_labels import SomeLabels, one_group
from fairbench.inference.few_labels import PartlyLabelled
from fairbench.inference.posterior import Beta, centred
from fairbench.inference.rates import Limits, quantile, rate_limits, rate_sequence
from fairbench.inference.survey import FEWEST, Design, LabelledRows
from fairbench.metrics.registry import BINARY, Metric, Rate, metrics_of
from fairbench.reporting.group_tables import sentence_of
from fairbench_label.active import Normal

_said = partial(sentence_of, "fairbench_label:labelling")
_CALIBRATION = "expected_calibration_error"
_LEVEL = 0.95


# Intervals of rates that hold whenever one stops, and of the group that was found to be extreme.
#
# Who looks after every label and stops when the answer pleases has made many attempts. An
# interval for a number of labels fixed beforehand is then wrong too often; a confidence sequence
# is not: its intervals hold at all numbers of labels together, whatever decided which label was
# next.


def sequence_limits(successes: ArrayLike, size: ArrayLike, *, level: ArrayLike = 0.95) -> Limits:
    """Return rates with intervals that hold at all sizes together.

    Parameters
    ----------
    successes, size : counts, as in :func:`fairbench.inference.rates.rate_limits`, which is to be
        used where the size was fixed beforehand.
    level : the probability that no interval of a growing sample ever misses the rate.

    Returns
    -------
    The rates and both ends. Of no rows, the rate is NaN and the interval is [0, 1].

    Notes
    -----
    Robbins (1970), "Statistical methods related to the law of the iterated logarithm"; see
    :func:`fairbench.inference.rates.rate_sequence`. It takes 1.6 times the width of an
    interval of a fixed size at 30 rows, 1.75 times at 300.
    """
    return rate_sequence(successes, size, -np.log1p(-np.asarray(level, float)))


def together(level: float, groups: int) -> float:
    """Return the level of each group's interval at which the intervals of all groups hold at once.

    The groups have no row in common (Šidák 1967).
    """
    return float(level ** (1 / max(groups, 1)))


def found_limits(pointwise: Limits, simultaneous: Limits, *, lowest: bool) -> Limits:
    """Return intervals that hold for whichever group is found to be the extreme one.

    The observed value of the most extreme group is, on average, more extreme than its true value,
    because it was selected for that. So the limit towards the other groups is a simultaneous one;
    the other limit needs no correction, since selection biases the value only outwards.

    Parameters
    ----------
    pointwise, simultaneous : limits (G,) of each group by itself, and of all groups at once.
    lowest : whether the group with the lowest value is sought; otherwise that with the highest.
    """
    lower = pointwise.lower if lowest else simultaneous.lower
    upper = simultaneous.upper if lowest else pointwise.upper
    return Limits(pointwise.value, lower, upper)


def candidates(simultaneous: Limits, *, lowest: bool) -> Mask:
    """Return which groups (G,) may be the lowest (or highest): the others surely are not."""
    if lowest:
        return np.asarray(simultaneous.lower <= simultaneous.upper.min())
    return np.asarray(simultaneous.upper >= simultaneous.lower.max())


_START = 30.0


def lasting_level(level: float, rows: ArrayLike) -> Floats:
    """Return the level at which an interval of a fixed number of rows is one of a sequence.

    It is for means that are not rates. The intervals of all numbers of rows then hold at once, if
    means of 30 rows and more are normal. They are narrowest, 1.6 times the width of one
    interval, from a hundred rows to a thousand. With three rows or fewer the level is the largest
    of which a quantile exists, that of eight standard errors.

    Notes
    -----
    Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas (2024), "Time-uniform central limit theory and
    asymptotic confidence sequences", whose normal mixture is as much information as 30 rows.
    """
    n = np.maximum(np.asarray(rows, float), 1.0)
    reach = np.sqrt((n + _START) / n * np.log((n + _START) / (_START * (1 - level) ** 2)))
    return np.asarray(np.minimum(1 - 2 * special.ndtr(-reach), 1 - np.finfo(float).eps))


def _level_of_mean(level: float, labels: int, anytime_valid: bool) -> float:
    """Return the level of an interval of a mean of labels that is to hold at a level."""
    return float(lasting_level(level, labels)) if anytime_valid else level


class LastingIntervals(LabelledIntervals):
    """Intervals from labels that hold whenever labelling is stopped, even because of the labels."""

    @classmethod
    def lasting(cls, intervals: LabelledIntervals) -> LastingIntervals:
        """Return the intervals of the same labels that hold whenever labelling is stopped."""
        return cls(**{field.name: getattr(intervals, field.name) for field in fields(cls)})

    def of_counts(self, successes: ArrayLike, sizes: ArrayLike, level: ArrayLike) -> Limits:
        """Return rates of counts with intervals that hold at all numbers of labels together."""
        return sequence_limits(successes, sizes, level=level)

    def _shares(self, rates: Sequence[Rate], levels: Floats) -> Limits:
        counts = self.effective_counts(rates)
        without_labels = np.array([[rate.needs_no_label] for rate in rates])
        fixed = rate_limits(*counts, level=levels)
        return fixed.where(without_labels, self.of_counts(*counts, levels))

    def correlation(self, *rates: Rate) -> Floats | float:
        """Return the correlations (G, G) of the errors of a rate, or of a mean, in two groups.

        Groups have distinct rows, so that their errors are uncorrelated: 0. But somebody who may
        stop at any time may stop after few rows, just when both groups' intervals miss in opposite
        directions. With few rows the correlation is therefore -1: widths add.
        """
        if all(rate.needs_no_label for rate in rates):
            return 0.0
        few = np.any(self.rows(rates) < FEWEST, axis=0)
        return np.where(few[:, None] | few, -1.0, 0.0)

    def _correlation_of(self, first: Rate, second: Rate) -> Floats | float:
        return np.where((self.rows([first, second]) < FEWEST).any(axis=0), 1.0, 0.0)


# How rows were chosen for labelling, where some groups were labelled more often than others.


@dataclass(frozen=True, eq=False)
class GroupSampling:
    """Groups were labelled at rates that depended on results; rows within a group, at random.

    Estimates within one such group need no correction. Estimates over several groups have to weight
    each group by its share of rows rather than by its share of labels: post-stratification.

    Attributes
    ----------
    by : the attribute, or combination of attributes, whose groups were chosen among.
    arms : (n,) categorical, the group of every row.
    notes : what a reader of the figures should know about how labels came about.
    anytime_valid : whether intervals have to hold whenever labelling stops, as they must if the
        labels so far may have decided when to stop.
    """

    by: str
    arms: pd.Series
    notes: tuple[str, ...] = ()
    anytime_valid: bool = False

    @property
    def stopping(self) -> str:
        """When labelling may stop for the figures to hold, as a sentence."""
        return _said("whenever" if self.anytime_valid else "said_before")

    @property
    def codes(self) -> Codes:
        """The position of every row's group."""
        return self.arms.cat.codes.to_numpy(np.int64)

    def unlabelled(self, known: Rows) -> list[str]:
        """Return the groups that have none of the rows `known`."""
        labels = np.bincount(self.codes[known], minlength=len(self.arms.cat.categories))
        return [str(name) for name in self.arms.cat.categories[labels == 0]]

    def chosen(self, rows: SomeLabels) -> ChosenRows:
        """Return rows with the group that each was chosen in."""
        given = {of.name: getattr(rows, of.name) for of in fields(SomeLabels)}
        return ChosenRows(**given, strata=self.codes, anytime_valid=self.anytime_valid)

    def calibrations(
        self, attribute: str, groups: pd.Series, score: Floats, label: Floats
    ) -> Iterator[Row]:
        """Yield the calibration of every group of an attribute.

        As :func:`fairbench.evaluation.by_group.group_calibrations` does, with labels weighted by
        the rows that they stand for.
        """
        labelled = np.flatnonzero(~np.isnan(label))
        codes = groups.cat.codes.to_numpy(np.int64)
        sizes = _strata_sizes(codes, self.codes)
        for g, name in enumerate(groups.cat.categories):
            rows = labelled[codes[labelled] == g]
            chosen = np.bincount(self.codes[rows], minlength=sizes.shape[1])
            if len(rows) < FEWEST_LABELS or not _are_represented(sizes[g], chosen):
                chosen = np.zeros_like(chosen)
            weight = _weights(sizes[g], chosen)[self.codes[rows]]
            of_labels = score[rows], label[rows], weight
            mean, share = (float(divide(weight @ of, weight.sum())) for of in of_labels[:2])
            above, strata = score[rows] - label[rows], self.codes[rows]
            total, squares = (np.bincount(strata, of, len(chosen)) for of in (above, above**2))
            error = _stratified_error(chosen, total, squares, sizes[g])
            at = partial(self._normal, mean - share, error, len(rows))
            about = {"attribute": attribute, "group": str(name), "labels": len(rows)}
            measured = {"score": mean, "share": share, "excess": mean - share}
            interval = dict(zip(("lower", "upper"), at(_LEVEL), strict=True))
            bins = _bins(*of_labels, _level_of_mean(_LEVEL, len(rows), self.anytime_valid))
            yield {**about, **measured, **interval, "bins": bins, "fit": tables.NAN, "at": at}

    def _normal(self, value: float, error: float, labels: int, level: float) -> tuple[float, float]:
        """Return the normal interval of a value at a level."""
        tail = (1 + _level_of_mean(level, labels, self.anytime_valid)) / 2
        half_width = NormalDist().inv_cdf(tail) * error
        return value - half_width, value + half_width


@dataclass(frozen=True, eq=False)
class ChosenRows(SomeLabels):
    """Rows of which groups were labelled at rates of their own.

    Attributes
    ----------
    strata : (n,) codes of these groups.
    anytime_valid : whether intervals hold whenever labelling stops, even because of the labels.
    """

    strata: Codes = field(kw_only=True)
    anytime_valid: bool = field(default=False, kw_only=True)

    def labelled_counts(
        self, attribute: str, groups: pd.Series, generator: np.random.Generator, level: float
    ) -> GroupCounts:
        """Return the counts of an attribute's groups, with lasting intervals where they must."""
        counted = super().labelled_counts(attribute, groups, generator, level)
        assert isinstance(counted.intervals, LabelledIntervals)
        if not self.anytime_valid:
            return counted
        return replace(counted, intervals=LastingIntervals.lasting(counted.intervals))

    def labelled_rows(self, table: PartlyLabelled) -> LabelledRows:
        """Return the rows, each label for as many of its group as were chosen from at one rate.

        A group with rows that no label stands for has none: what needs labels is unknown of it.
        """
        rows = super().labelled_rows(table)
        of_labels = rows.group[rows.rows], self.strata[rows.rows]
        sizes = _strata_sizes(rows.group, self.strata)
        n_labels = np.zeros_like(sizes)
        np.add.at(n_labels, of_labels, 1)
        kept = _are_represented(sizes, n_labels)[of_labels[0]]
        weight = _weights(sizes, n_labels)[of_labels]
        return replace(rows, rows=rows.rows[kept], label=rows.label[kept], weight=weight[kept])

    def add_scores(self, table: tables.MetricTable, score: Floats, bins: int) -> None:
        """Add the rows of scores, everyone's and each group's, where labels are no random sample.

        Rows of one of the strata (n,) were chosen among one another, so that a label stands for as
        many rows of its group as were chosen from; a group with a stratum without a label has no
        metric. Of calibration errors, whose intervals are of random samples, the values alone are
        added.
        """
        losses = [name for name, m in metrics_of(BINARY, "mean").items() if m.needs == ("score",)]
        for attribute, labels in {"": one_group(len(self.label)), **self.groups}.items():
            codes = labels.cat.codes.to_numpy()
            for code, name in enumerate(labels.cat.categories):
                rows = np.flatnonzero(codes == code)
                labelled = rows[~np.isnan(self.label[rows])]
                (sizes,) = _strata_sizes(np.zeros_like(rows), self.strata[rows])
                chosen = np.bincount(self.strata[labelled], minlength=len(sizes))
                if not _are_represented(sizes, chosen):
                    labelled = labelled[:0]
                weight = _weights(sizes, chosen)[self.strata[labelled]]
                level = _level_of_mean(table.level, len(labelled), self.anytime_valid)
                of_group = replace(table.without_rows(), level=level)
                whose = pd.Series(pd.Categorical([str(name)] * len(labelled), [str(name)]))
                groups = {attribute: whose} if attribute else {}  # everyone has rows anyway
                design = Design.of(len(labelled), weight=weight) if len(labelled) else None
                columns = pd.DataFrame({"score": score[labelled]})
                data = Labelled(self.label[labelled], columns, groups, Task.BINARY, design=design)
                scores.evaluate_scores(of_group, data, bins)
                for block in of_group.blocks_of({*losses, "roc_auc", _CALIBRATION}.__contains__):
                    if block.attribute == attribute:
                        table.blocks.append(_values_of_block(block))


def _values_of_block(block: tables.Block) -> tables.Block:
    """Return the values of a block, calibration errors without intervals."""
    block = block.subset([m for m, name in enumerate(block.statistics) if name == tables.VALUE])
    is_calibration = np.array([name == _CALIBRATION for name in block.metrics])[:, None, None]
    value, *ends = block.limits
    lower, upper = (np.where(is_calibration, tables.NAN, end) for end in ends)
    status = block.status.copy(value.shape)
    of_calibration = np.broadcast_to(is_calibration, value.shape) & status.is_ok
    status.reason[of_calibration] = tables.without_interval(_CALIBRATION)
    return replace(block, limits=Limits(value, lower, upper), status=status)


# Post-stratification: labels of groups that were sampled at unequal rates, each weighted.


def _strata_sizes(group: Codes, stratum: Codes) -> Codes:
    """Return how many rows each group has in each stratum, (G, S)."""
    n_groups = group.max(initial=0) + 1
    n_strata = stratum.max(initial=0) + 1
    sizes = np.bincount(group * n_strata + stratum, minlength=n_groups * n_strata)
    return sizes.reshape(n_groups, n_strata)


def _are_represented(sizes: Codes, labels: Codes) -> Mask:
    """Return which groups (...) have a label in each stratum (..., S) that they have rows in."""
    return np.asarray(((labels > 0) | (sizes == 0)).all(axis=-1))


def _weights(sizes: Codes, labels: Codes) -> Floats:
    """Return how many rows a label of each stratum stands for, 0 where there is none."""
    return np.nan_to_num(divide(sizes, labels))


def _stratified_error(
    labels: Codes, total: NDArray[Any], squares: NDArray[Any], sizes: Codes
) -> float:
    """Return the standard error of a post-stratified mean.

    Parameters
    ----------
    labels : (S,) numbers of labels in each stratum. Strata without labels are left out; those with
        one label get the mean variance of the others.
    total, squares : (S,) sums of the labels' values, and of their squares.
    sizes : (S,) numbers of rows in each stratum.
    """
    used, several = labels > 0, labels > 1
    if not several.any():
        return float("nan")
    variance = (squares - total**2 / np.maximum(labels, 1)) / (np.maximum(labels, 2) - 1)
    common = np.average(variance[several], weights=labels[several] - 1)
    spread = np.where(several, variance, common)[used]
    share = sizes[used] / sizes[used].sum()
    return float(np.sqrt((share**2 * spread / labels[used]).sum()))


def _bins(score: Floats, label: Floats, weight: Floats, level: float) -> list[Row]:
    """Return the bins of the scores (n,) that have labels, each of which stands for some rows.

    The share of weighted labels is as uncertain as that of (sum w)^2 / sum w^2 of equal weight.
    """
    cell = np.minimum((score * BINS).astype(np.int64), BINS - 1)[weight > 0]
    columns = np.stack([np.ones_like(weight), score, label, weight]) * weight
    sums = [np.bincount(cell, column, BINS) for column in columns[:, weight > 0]]
    labels = np.bincount(cell, minlength=BINS)
    size, scores, positives, squares = np.stack(sums)[:, labels > 0]
    share, effective = positives / size, size**2 / squares
    lower, upper = Beta(1 + share * effective, 1 + (1 - share) * effective).interval(level)
    bins = {"size": labels[labels > 0], "score": scores / size, "share": share}
    return list(pd.DataFrame({**bins, "lower": lower, "upper": upper}).to_dict("records"))


# A metric of groups from the rows that have labels, while more of them are being labelled.

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

    def limits(self, level: float) -> Limits:
        """Return the rates (A,) with intervals, all that is possible of too few rows."""
        intervals = replace(self.intervals, level=level)
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
    anytime_valid : whether intervals hold whenever labelling stops.
    """

    metric: Metric
    target: Floats
    columns: Mapping[str, Floats]
    groups: pd.Series
    anytime_valid: bool

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
        return self.groups.value_counts(sort=False).to_numpy(np.int64)

    @property
    def _sizes(self) -> Floats:
        """The labelled rows of everyone and of each group (1 + A,)."""
        return np.append(len(self.target), self.rows).astype(float)

    def limits(self, level: float) -> Limits:
        """Return the means (A,) with intervals; limits are infinite if there are too few rows."""
        if not len(self.target):
            return Limits(*np.outer([np.nan, -np.inf, np.inf], np.ones(len(self.rows))))
        value, lower, upper = self._limits(level, self.anytime_valid).take(slice(1, None))
        lower = np.where(np.isnan(lower), self.metric.least, lower)
        return Limits(value, lower, np.where(np.isnan(upper), np.inf, upper))

    def everyone(self, sizes: Rows, level: float) -> tuple[float, float, float] | None:
        """Return the mean of all rows with its interval; None for an area, or an unlabelled group.

        It is the mean of the groups' means, weighted by their rows. The distances to the limits of
        independent intervals add as squares (Zou and Donner 2008).

        Parameters
        ----------
        sizes : (A,) all rows of each group, with a label and without.
        """
        limits = self.limits(level)
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
