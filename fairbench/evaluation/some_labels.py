"""Evaluates decisions and scores of which all rows have a label, or some, or none.

Groups may be labelled while one looks (:class:`LabelledRates`, :class:`LabelledMeans`).
:class:`SomeLabels` has the rows of an audit, of which groups may have been labelled more often than
others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd

from fairbench.core.arrays import Codes, Floats, Rows, rng
from fairbench.data.columns import tally
from fairbench.data.dataset import Task
from fairbench.evaluation import regression, scores
from fairbench.evaluation import table as tables
from fairbench.evaluation.evaluator import Evaluator
from fairbench.evaluation.groups import (
    CountIntervals,
    GroupCounts,
    LabelledIntervals,
    PosteriorIntervals,
)
from fairbench.evaluation.metric_batches import Batch, declared_batches
from fairbench.evaluation.predictions import AllGroups, Groups, Labelled
from fairbench.inference import few_labels
from fairbench.inference.posterior import FREQUENTIST, Beta, Normal, centred, posterior_draws
from fairbench.inference.rates import Limits, lasting_level, quantile
from fairbench.inference.survey import Design, LabelledRows, strata_sizes, weights
from fairbench.metrics.registry import BINARY, Metric, Rate, metrics_of

_CALIBRATION = "expected_calibration_error"


# A metric of groups from the rows that have labels, while more of them are being labelled.
#
# Which group gets the next label may depend on the labels before, and so may when labelling ends:
# every interval is to be had for a number of labels that was fixed beforehand, and as one of a
# sequence that holds whenever one stops.

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
        return self.groups.value_counts(sort=False).to_numpy(np.int64)

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


# Evaluates decisions about two classes where all rows have a label, or some, or none.


def one_group(n_rows: int) -> pd.Series:
    """Return the group labels of everyone as one group without a name."""
    return pd.Series(pd.Categorical.from_codes(np.zeros(n_rows, int), [""]))


@dataclass(frozen=True, eq=False)
class SomeLabels:
    """Decisions about rows of groups, and labels where they are known.

    Attributes
    ----------
    score : (n,) probability of label 1, where there are scores.
    prediction : (n,) decisions 0 / 1.
    label : (n,) labels 0 / 1, NaN where unknown.
    groups : attribute -> (n,) categorical labels, the reference first.
    cells : (n,) combinations of all attributes.
    design : the weights and clusters of rows; None if there are neither.
    strata : (n,) codes of groups that were labelled at rates of their own; None where rows were
        labelled at random among all.
    anytime_valid : whether intervals hold whenever labelling stops, even because of the labels.
    times : (n,) how often each row comes; once by default, and wherever labels are missing.
    """

    score: Floats | None
    prediction: Codes
    label: Floats
    groups: Mapping[str, pd.Series]
    cells: pd.Series
    design: Design | None = None
    strata: Codes | None = None
    anytime_valid: bool = False
    times: Codes | None = None

    @property
    def labels(self) -> int:
        """How many rows have a label."""
        labelled = ~np.isnan(self.label)
        return int(labelled.sum() if self.times is None else self.times[labelled].sum())

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.label) if self.times is None else int(self.times.sum())

    def completion(
        self, seed: int, model: few_labels.Calibration = few_labels.BETA
    ) -> tuple[Floats, few_labels.CalibrationPosterior | None]:
        """Return what is known of all rows, with the labels that are missing drawn many times."""
        has_score = self.score is not None
        return few_labels.complete(
            self._by(self.cells), rng(seed, "completion"), has_score=has_score, model=model
        )

    def evaluate(
        self,
        evaluator: Evaluator,
        seed: int,
        completed: Floats | None = None,
        *,
        counts_alone: bool = False,
    ) -> tuple[pd.DataFrame, list[GroupCounts]]:
        """Evaluate the rows as fairbench.evaluate does, and count each attribute's groups.

        Parameters
        ----------
        completed : (T, G, 4) draws of the cells' counts with the labels that are missing; None uses
            the known labels alone.
        counts_alone : whether to leave the table empty: making it takes nine tenths of the time.

        Returns
        -------
        The table of metrics, and the counts of each attribute that it is made of.
        """
        everyone_and_attributes = {"": one_group(len(self.prediction)), **self.groups}
        frequentist = completed is None and evaluator.interval == FREQUENTIST
        minimum = evaluator.minimum_group_size
        table = tables.MetricTable(evaluator.level, frequentist, minimum=minimum)
        design = self.design if completed is None else None
        generator = rng(seed, "posterior")
        all_labelled = not np.isnan(self.label).any()
        all_counts = []
        for name, groups in everyone_and_attributes.items():
            if completed is not None:
                # The mean counts over the draws of missing labels.
                members = few_labels.union(self.cells, groups)
                mean = np.einsum("ag,tgc->tac", members, completed).mean(axis=0)
                count = evaluator.draws
                draws = few_labels.population_draws(completed, members, count, generator)
                intervals = PosteriorIntervals(mean, draws, evaluator.level)
                names = list(map(str, groups.cat.categories))
                counts = GroupCounts(name, names, mean, intervals)
            elif all_labelled:
                coded, hard = Groups.of(name, groups), self.prediction.astype(np.float64)
                counts = evaluator.count(
                    *(coded, self.label, hard, [generator]), design=design, times=self.times
                )
                if frequentist:
                    # Posterior draws, from which probabilities are estimated.
                    settled = rng(seed, "settled", name)
                    given = counts.counts, evaluator.draws, settled
                    draws = posterior_draws(*given, alpha=evaluator.alpha)
                    counts = replace(counts, intervals=replace(counts.intervals, draws=draws))
            else:
                labels_generator = rng(seed, "labels", name)
                counts = self.labelled_counts(name, groups, labels_generator, evaluator.level)
            if not counts_alone:
                evaluator.add_counts(table, counts, [generator])
            all_counts.append(counts)
        if not counts_alone and self.score is not None and not np.isnan(self.label).all():
            # Of the labels that are known: the same, whatever completes the others.
            of_scores = replace(table, frequentist=evaluator.interval == FREQUENTIST)
            self._add_scores(of_scores, self.score, evaluator.bins)
        metrics = table.frame()
        if not all_labelled:
            # A bootstrap of counts corrects for what chance adds to gaps; where labels are missing,
            # more is unknown.
            is_gap = metrics["metric"].isin(metrics_of(BINARY, "widest"))
            kept = ~is_gap | (metrics["statistic"] != tables.DEBIASED)
            metrics = metrics[kept].reset_index(drop=True)
        return metrics, all_counts[1:]

    def labelled_counts(
        self, attribute: str, groups: pd.Series, generator: np.random.Generator, level: float
    ) -> GroupCounts:
        """Return the counts of an attribute's groups where some rows have a label.

        Their intervals are those of the labelled rows, helped by the scores of all.
        """
        table = self._by(groups)
        has_label = table.labelled
        weight = None
        kept = np.ones(len(table.label), bool)
        if self.strata is not None:
            # Each label stands for as many rows of its group as were chosen from at one rate.
            sizes = strata_sizes(table.group, self.strata)
            n_labels = np.zeros_like(sizes)
            np.add.at(n_labels, (table.group[has_label], self.strata[has_label]), 1)
            weight = weights(sizes, n_labels)[table.group[has_label], self.strata[has_label]]
            kept = n_labels[table.group, self.strata] > 0
        labelled = LabelledRows(
            table.score[kept],
            table.prediction[kept],
            table.group[kept],
            table.n_groups,
            (np.cumsum(kept) - 1)[has_label],
            table.label[has_label].astype(np.int64),
            weight,
        )
        intervals = LabelledIntervals.of(labelled, table.counts(), level, generator)
        intervals = replace(intervals, anytime_valid=self.anytime_valid)
        return GroupCounts(attribute, list(map(str, table.groups)), intervals.counts, intervals)

    def known_counts(
        self, rate: Rate, counts: GroupCounts
    ) -> tuple[Floats, Floats, Floats, Floats, Callable[[float], Floats]]:
        """Return what is known of a rate in groups, and what labels of further rows add.

        Returns
        -------
        Of each group (G,): the effective successes and size, the labels, the share of further
        labels that it gets, and, as a function of the number of these, its effective size then.

        Notes
        -----
        Scores that leave the part v of a rate's variance make n labels of N rows worth
        n / (v + (1 - v) n / N), which is ever less for each, as fewer rows are without a label.
        """
        assert isinstance(counts.intervals, CountIntervals)
        codes = self.groups[counts.attribute].cat.codes.to_numpy()
        known = ~np.isnan(self.label)
        times_known = None if self.times is None else self.times[known]
        n_rows = tally(codes, self.times, least=len(counts.groups))
        n_labels = tally(codes[known], times_known, least=len(counts.groups)).astype(float)
        (successes,), (sizes,) = counts.intervals.effective_counts([rate])
        (counted,) = counts.intervals.rows([rate])
        further = n_rows if known.all() else n_rows - n_labels
        shares: Floats = further / further.sum()
        # How many rows of the rate come with a label; in groups of few labels, rather as in all.
        # Half a standard error less, as the plans that look short are those of lucky counts.
        among = (counted + counted.sum() / self.labels) / (n_labels + 1)
        error = np.sqrt(among * np.fmax(1 - among, 0) / (n_labels + 1))
        among = np.fmax(among - error / 2, among / 2)
        labelled = n_labels / n_rows
        left = (counted / np.fmax(sizes, 1e-9) - labelled) / np.fmax(1 - labelled, 1e-9)
        left = np.where((sizes > counted) & (labelled < 1), np.clip(left, 0, 1), 1)

        def size_after(labels: float) -> Floats:
            more = labels * shares
            part = np.fmin((n_labels + more) / n_rows, 1)
            size = (counted + more * among) / (left + (1 - left) * part)
            return np.fmax(size, sizes)

        return successes, sizes, n_labels, shares, size_after

    def _by(self, groups: pd.Series) -> few_labels.PartlyLabelled:
        """Return the rows by one choice of groups; decisions stand in for scores."""
        score = self.prediction.astype(np.float64) if self.score is None else self.score
        codes, names = groups.cat.codes.to_numpy(np.int64), tuple(groups.cat.categories)
        return few_labels.PartlyLabelled(
            score, self.prediction, codes, self.label, tuple(map(str, names))
        )

    def _add_scores(self, table: tables.MetricTable, score: Floats, bins: int) -> None:
        """Add the metrics of the scores of the labelled rows."""
        if self.strata is not None:
            self._add_weighted_scores(table, score, self.strata, bins)
            return
        labelled = np.flatnonzero(~np.isnan(self.label))
        predictions = pd.DataFrame(
            {"score": score[labelled], "prediction": self.prediction[labelled]}
        )
        groups = {name: labels.iloc[labelled] for name, labels in self.groups.items()}
        data = Labelled(self.label[labelled], predictions, groups, Task.BINARY, design=self.design)
        scores.evaluate_scores(table, data, bins)

    def _add_weighted_scores(
        self, table: tables.MetricTable, score: Floats, arms: Codes, bins: int
    ) -> None:
        """Add the rows of scores, everyone's and each group's, where labels are no random sample.

        Rows of one of the strata (n,) were chosen among one another, so that a label stands for as
        many rows of its group as were chosen from; strata without a label are left out. Of
        calibration errors, whose intervals are of random samples, the values alone are added.
        """
        losses = [name for name, m in metrics_of(BINARY, "mean").items() if m.needs == ("score",)]
        for attribute, labels in {"": one_group(len(self.label)), **self.groups}.items():
            codes = labels.cat.codes.to_numpy()
            for code, name in enumerate(labels.cat.categories):
                rows = np.flatnonzero(codes == code)
                labelled = rows[~np.isnan(self.label[rows])]
                (sizes,) = strata_sizes(np.zeros_like(rows), arms[rows])
                chosen = np.bincount(arms[labelled], minlength=len(sizes))
                weight = weights(sizes, chosen)[arms[labelled]]
                level = table.level
                if self.anytime_valid:
                    level = float(lasting_level(level, len(labelled)))
                of_group = replace(table.without_rows(), level=level)
                whose = pd.Series(pd.Categorical([str(name)] * len(labelled), [str(name)]))
                data = Labelled(
                    self.label[labelled],
                    pd.DataFrame({"score": score[labelled]}),
                    {attribute: whose} if attribute else {},  # everyone has rows anyway
                    Task.BINARY,
                    design=Design.of(len(labelled), weight=weight) if len(labelled) else None,
                )
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
