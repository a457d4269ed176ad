"""Evaluates decisions about two classes where all rows have a label, or some, or none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import special

from fairbench.core.arrays import Floats
from fairbench.core.seeds import rng
from fairbench.data.dataset import Task
from fairbench.data.distinct_rows import tally
from fairbench.evaluation.columns import DEBIASED
from fairbench.evaluation.evaluator import Evaluator
from fairbench.evaluation.group_intervals import CountIntervals, group_intervals
from fairbench.evaluation.groups import Counted
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
from fairbench.inference.few_labels.importance import sobol
from fairbench.inference.few_labels.table import PartlyLabelled
from fairbench.inference.further_labels import WORLDS, KnownRates
from fairbench.inference.posterior import DIRICHLET, FREQUENTIST, posterior_draws
from fairbench.inference.stratified import strata_sizes, weights
from fairbench.inference.survey import Design
from fairbench.metrics.rates import Rate
from fairbench.metrics.registry import BINARY, metrics_of

Codes = NDArray[np.int64]


def one_group(rows: int) -> pd.Series:
    """Return the labels of everyone as one group without a name."""
    return pd.Series(pd.Categorical.from_codes(np.zeros(rows, int), [""]))


@dataclass(frozen=True, eq=False)
class SomeLabels:
    """Decisions about rows of groups, and labels where they are known.

    Attributes
    ----------
    score : (n,) probability of label 1, where there are scores.
    prediction, label : (n,) decisions, and labels, NaN where unknown.
    groups : attribute -> (n,) categorical labels, the reference first.
    cells : (n,) combinations of all attributes.
    design : weights of the rows and which of them belong together, where either is known.
    strata : (n,) codes of groups that were labelled at rates of their own; None where rows were
        labelled at random among all.
    whenever : whether labelling may have been stopped because of what labels said.
    times : (n,) how often each row comes; once by default. Of some labels every row comes once.
    """

    score: Floats | None
    prediction: Codes
    label: Floats
    groups: Mapping[str, pd.Series]
    cells: pd.Series
    design: Design | None = None
    strata: Codes | None = None
    whenever: bool = False
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
        cells, scored = self._by(self.cells), self.score is not None
        return complete(cells, rng(seed, "completion"), has_score=scored, model=model)

    def evaluated(
        self,
        evaluator: Evaluator,
        seed: int,
        completion: Completion | None = None,
        *,
        counts_alone: bool = False,
    ) -> tuple[pd.DataFrame, list[Counted]]:
        """Return the rows of fairbench.evaluate, and the counts of each attribute behind them.

        Parameters
        ----------
        completion : a posterior of the labels that are missing; None of the labels there are.
        counts_alone : whether to leave out the rows, which take nine tenths of the time.
        """
        all_labelled, hard = not np.isnan(self.label).any(), self.prediction.astype(np.float64)
        frequentist = completion is None and evaluator.interval == FREQUENTIST
        rows = MetricTable(evaluator.level, frequentist, minimum=evaluator.minimum_group_size)
        evaluation = evaluator.of_groups(rows, self.design if completion is None else None)
        generator, counted = rng(seed, "posterior"), []
        for name, groups in {"": one_group(len(hard)), **self.groups}.items():
            if completion is not None:
                members, names = union(self.cells, groups), list(map(str, groups.cat.categories))
                mean = np.einsum("ag,tgc->tac", members, completion.counts).mean(axis=0)
                draws = population_draws(completion.counts, members, evaluator.draws, generator)
                intervals = group_intervals(mean, draws, evaluator.level, DIRICHLET)
                counts = Counted(name, names, mean, intervals)
            elif all_labelled:
                of_groups = Groups.of(name, groups)
                counts = evaluation.count(
                    of_groups, self.label, hard, [generator], times=self.times
                )
            else:
                counts = self.counted(name, groups, rng(seed, "labels", name), evaluator.level)
            if not counts_alone:
                evaluation.counted(counts, [generator])
            counted.append(_with_draws(counts, evaluator, seed) if all_labelled else counts)
        if not counts_alone and self.score is not None and not np.isnan(self.label).all():
            self._add_scores(rows, self.score, evaluator.bins)
        metrics = rows.frame()
        if not all_labelled:
            # What a bootstrap of counts corrects: where labels are missing, more is unknown.
            of_counts = metrics["metric"].isin(metrics_of(BINARY, "widest"))
            kept = ~of_counts | (metrics["statistic"] != DEBIASED)
            metrics = metrics[kept].reset_index(drop=True)
        return metrics, counted[1:]

    def counted(
        self, attribute: str, groups: pd.Series, generator: np.random.Generator, level: float
    ) -> Counted:
        """Return the labelled rows of an attribute's groups, with what makes their intervals."""
        rows = self._by(groups)
        has_label, weight, kept = rows.labelled, None, np.ones(len(rows.label), bool)
        if self.strata is not None:
            # Each label stands for as many rows of its group as were chosen from at one rate.
            sizes = strata_sizes(rows.group, self.strata)
            labels = np.zeros_like(sizes)
            np.add.at(labels, (rows.group[has_label], self.strata[has_label]), 1)
            weight = weights(sizes, labels)[rows.group[has_label], self.strata[has_label]]
            kept = labels[rows.group, self.strata] > 0
        labelled = LabelledRows(
            rows.score[kept],
            rows.prediction[kept],
            rows.group[kept],
            rows.n_groups,
            (np.cumsum(kept) - 1)[has_label],
            rows.label[has_label].astype(np.int64),
            weight,
        )
        intervals = LabelledIntervals.of(labelled, rows.counts(), level, generator)
        if self.whenever:
            intervals = intervals.whenever_one_stops()
        return Counted(attribute, list(map(str, rows.groups)), intervals.counts, intervals)

    def known_rates(
        self, rate: Rate, counted: Counted, compared: Sequence[int], generator: np.random.Generator
    ) -> KnownRates:
        """Return what is known of a rate in some groups, and what a label of a random row adds.

        Parameters
        ----------
        counted : the counts of the attribute; of no labels, if scores are right.
        compared : positions of the groups.
        """
        groups, names = self.groups[counted.attribute].cat.codes.to_numpy(), len(counted.groups)
        rows, labelled_rows = tally(groups, self.times, least=names), ~np.isnan(self.label)
        if not isinstance(counted.intervals, CountIntervals):
            draws = counted.intervals.draws
            draws = draws[generator.permutation(len(draws))[:WORLDS]]
            # Draws are shares of everyone; a label is as many rows of the rate as a row of the
            # group.
            shares = (rate.size(draws) / draws.sum(axis=-1)).mean(axis=0)
            added = (shares * rows / self.rows)[compared]
            luck = special.ndtri(sobol(len(compared), WORLDS, generator))[: len(draws)]
            return KnownRates(0, 0, rate(draws)[:, compared], added, luck)
        (successes,), (sizes,) = counted.intervals.effective_counts([rate])
        times_labelled = None if self.times is None else self.times[labelled_rows]
        labelled = tally(groups[labelled_rows], times_labelled, least=names)
        worth = sizes / np.maximum(labelled, 1)
        worth = np.where(labelled > 0, worth, sizes.sum() / self.labels)
        left = rows if labelled_rows.all() else rows - labelled
        x, n, added = successes[compared], sizes[compared], (worth * left / left.sum())[compared]
        truth, luck = np.split(sobol(2 * len(x), WORLDS, generator), 2, axis=1)
        rates = special.betaincinv(x + 0.5, n - x + 0.5, truth)
        return KnownRates(x, n, rates, added, special.ndtri(luck))

    def _by(self, groups: pd.Series) -> PartlyLabelled:
        """Return the rows by one choice of groups; decisions stand in for scores."""
        score = self.prediction.astype(np.float64) if self.score is None else self.score
        codes, names = groups.cat.codes.to_numpy(np.int64), tuple(groups.cat.categories)
        return PartlyLabelled(score, self.prediction, codes, self.label, tuple(map(str, names)))

    def _add_scores(self, rows: MetricTable, score: Floats, bins: int) -> None:
        """Add the metrics of scores, of the labelled rows."""
        if self.strata is not None:
            weighted = WeightedScores(rows, self.label, score, self.strata, bins, self.whenever)
            weighted.run(self.groups)
            return
        labelled = np.flatnonzero(~np.isnan(self.label))
        predictions = pd.DataFrame(
            {"score": score[labelled], "prediction": self.prediction[labelled]}
        )
        groups = {name: labels.iloc[labelled] for name, labels in self.groups.items()}
        data = Labelled(self.label[labelled], predictions, groups, Task.BINARY, design=self.design)
        ScoreEvaluation(rows, bins).run(data)


def _with_draws(counted: Counted, evaluator: Evaluator, seed: int) -> Counted:
    """Return counts with posterior draws of them, by which probabilities are estimated."""
    if not isinstance(counted.intervals, CountIntervals):
        return counted
    generator = rng(seed, "settled", counted.attribute)
    draws = posterior_draws(counted.counts, evaluator.draws, generator, alpha=evaluator.alpha)
    return replace(counted, intervals=replace(counted.intervals, draws=draws))
