"""Evaluates decisions about two classes where all rows have a label, or some, or none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.core.arrays import Floats
from fairbench.core.seeds import rng
from fairbench.data.dataset import Task
from fairbench.data.distinct_rows import tally
from fairbench.evaluation.columns import DEBIASED
from fairbench.evaluation.evaluator import Evaluator
from fairbench.evaluation.group_intervals import CountIntervals, group_intervals
from fairbench.evaluation.groups import GroupCounts, GroupEvaluation
from fairbench.evaluation.labelled_intervals import LabelledIntervals
from fairbench.evaluation.predictions import Groups, Labelled
from fairbench.evaluation.scores import ScoreEvaluation
from fairbench.evaluation.table import MetricTable
from fairbench.evaluation.weighted_scores import WeightedScores
from fairbench.inference.few_labels.assisted import LabelledRows
from fairbench.inference.few_labels.calibration import BETA, Calibration
from fairbench.inference.few_labels.completion import (
    Completion,
    complete,
    population_draws,
    union,
)
from fairbench.inference.few_labels.table import PartlyLabelled
from fairbench.inference.posterior import DIRICHLET, FREQUENTIST, posterior_draws
from fairbench.inference.stratified import strata_sizes, weights
from fairbench.inference.survey import Design
from fairbench.metrics.rates import Rate
from fairbench.metrics.registry import BINARY, metrics_of

Codes = NDArray[np.int64]


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

    def completion(self, seed: int, model: Calibration = BETA) -> Completion:
        """Return what is known of all rows, with the labels that are missing drawn many times."""
        has_score = self.score is not None
        return complete(
            self._by(self.cells), rng(seed, "completion"), has_score=has_score, model=model
        )

    def evaluate(
        self,
        evaluator: Evaluator,
        seed: int,
        completion: Completion | None = None,
        *,
        counts_alone: bool = False,
    ) -> tuple[pd.DataFrame, list[GroupCounts]]:
        """Evaluate the rows as fairbench.evaluate does, and count each attribute's groups.

        Parameters
        ----------
        completion : a posterior of the labels that are missing; None uses the known labels alone.
        counts_alone : whether to leave the table empty: making it takes nine tenths of the time.

        Returns
        -------
        The table of metrics, and the counts of each attribute that it is made of.
        """
        everyone_and_attributes = {"": one_group(len(self.prediction)), **self.groups}
        frequentist = completion is None and evaluator.interval == FREQUENTIST
        table = MetricTable(evaluator.level, frequentist, minimum=evaluator.minimum_group_size)
        design = self.design if completion is None else None
        evaluation = evaluator.group_evaluation(table, design)
        generator = rng(seed, "posterior")
        all_counts = []
        for name, groups in everyone_and_attributes.items():
            if completion is not None:
                counts = self._completed_counts(name, groups, completion, evaluator, generator)
            elif self._all_labelled:
                counts = self._plain_counts(name, groups, evaluation, generator)
            else:
                labels_generator = rng(seed, "labels", name)
                counts = self.labelled_counts(name, groups, labels_generator, evaluator.level)
            if not counts_alone:
                evaluation.add_counts(counts, [generator])
            all_counts.append(counts)
        if self._all_labelled:
            all_counts = [_with_draws(counts, evaluator, seed) for counts in all_counts]
        if not counts_alone and self.score is not None and not np.isnan(self.label).all():
            self._add_scores(table, self.score, evaluator.bins)
        metrics = table.frame()
        if not self._all_labelled:
            metrics = _without_debiased_gaps(metrics)
        return metrics, all_counts[1:]

    @property
    def _all_labelled(self) -> bool:
        return not np.isnan(self.label).any()

    def _completed_counts(
        self,
        attribute: str,
        groups: pd.Series,
        completion: Completion,
        evaluator: Evaluator,
        generator: np.random.Generator,
    ) -> GroupCounts:
        """Return the mean counts of an attribute's groups over the draws of missing labels."""
        members = union(self.cells, groups)
        mean = np.einsum("ag,tgc->tac", members, completion.counts).mean(axis=0)
        draws = population_draws(completion.counts, members, evaluator.draws, generator)
        intervals = group_intervals(mean, draws, evaluator.level, DIRICHLET)
        return GroupCounts(attribute, list(map(str, groups.cat.categories)), mean, intervals)

    def _plain_counts(
        self,
        attribute: str,
        groups: pd.Series,
        evaluation: GroupEvaluation,
        generator: np.random.Generator,
    ) -> GroupCounts:
        """Return the counts of an attribute's groups where all rows have a label."""
        hard = self.prediction.astype(np.float64)
        return evaluation.count(
            Groups.of(attribute, groups), self.label, hard, [generator], times=self.times
        )

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
        if self.anytime_valid:
            intervals = intervals.as_anytime_valid()
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
            further_size: Floats = np.fmax(size, sizes)
            return further_size

        return successes, sizes, n_labels, shares, size_after

    def _by(self, groups: pd.Series) -> PartlyLabelled:
        """Return the rows by one choice of groups; decisions stand in for scores."""
        score = self.prediction.astype(np.float64) if self.score is None else self.score
        codes, names = groups.cat.codes.to_numpy(np.int64), tuple(groups.cat.categories)
        return PartlyLabelled(score, self.prediction, codes, self.label, tuple(map(str, names)))

    def _add_scores(self, table: MetricTable, score: Floats, bins: int) -> None:
        """Add the metrics of the scores of the labelled rows."""
        if self.strata is not None:
            weighted = WeightedScores(
                table, self.label, score, self.strata, bins, self.anytime_valid
            )
            weighted.run(self.groups)
            return
        labelled = np.flatnonzero(~np.isnan(self.label))
        predictions = pd.DataFrame(
            {"score": score[labelled], "prediction": self.prediction[labelled]}
        )
        groups = {name: labels.iloc[labelled] for name, labels in self.groups.items()}
        data = Labelled(self.label[labelled], predictions, groups, Task.BINARY, design=self.design)
        ScoreEvaluation(table, bins).run(data)


def _without_debiased_gaps(metrics: pd.DataFrame) -> pd.DataFrame:
    """Leave out the gaps less what chance adds to them.

    That is what a bootstrap of counts corrects; where labels are missing, more is unknown.
    """
    is_gap = metrics["metric"].isin(metrics_of(BINARY, "widest"))
    kept = ~is_gap | (metrics["statistic"] != DEBIASED)
    return metrics[kept].reset_index(drop=True)


def _with_draws(counts: GroupCounts, evaluator: Evaluator, seed: int) -> GroupCounts:
    """Add posterior draws to counts, from which probabilities are estimated."""
    if not isinstance(counts.intervals, CountIntervals):
        return counts
    generator = rng(seed, "settled", counts.attribute)
    draws = posterior_draws(counts.counts, evaluator.draws, generator, alpha=evaluator.alpha)
    return replace(counts, intervals=replace(counts.intervals, draws=draws))
