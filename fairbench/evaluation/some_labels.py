"""Evaluates decisions and scores of which all rows have a label, or some, or none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pandas as pd

from fairbench.core.arrays import Codes, Floats, rng
from fairbench.data.columns import tally
from fairbench.data.dataset import Task
from fairbench.evaluation import scores
from fairbench.evaluation import table as tables
from fairbench.evaluation.evaluator import Evaluator
from fairbench.evaluation.groups import (
    CountIntervals,
    GroupCounts,
    LabelledIntervals,
    PosteriorIntervals,
)
from fairbench.evaluation.predictions import Groups, Labelled
from fairbench.inference import few_labels
from fairbench.inference.posterior import FREQUENTIST, posterior_draws
from fairbench.inference.survey import Design, LabelledRows
from fairbench.metrics.registry import BINARY, WIDEST, Rate, metrics_of


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
    times : (n,) how often each row comes; once by default, and wherever labels are missing.
    """

    score: Floats | None
    prediction: Codes
    label: Floats
    groups: Mapping[str, pd.Series]
    cells: pd.Series
    design: Design | None = field(default=None, kw_only=True)
    times: Codes | None = field(default=None, kw_only=True)

    def __len__(self) -> int:
        return len(self.label) if self.times is None else int(self.times.sum())

    @cached_property
    def known(self) -> Codes:
        """The positions of the rows with a label."""
        return np.flatnonzero(~np.isnan(self.label))

    @property
    def labels_known(self) -> int:
        """The number of rows with a label, each counted as often as it comes."""
        return len(self.known) if self.times is None else int(self.times[self.known].sum())

    def completion(self, seed: int) -> Floats | None:
        """Return draws (T, G, 4) of the counts of all rows, whose missing labels scores foretell.

        Without labels, scores are taken for true probabilities. None without scores, and where
        labels are so many that scores say little more.
        """
        if self.score is None:
            return None
        table, generator = self._by(self.cells), rng(seed, "completion")
        if len(self.known):
            return few_labels.calibrated_draws(table, generator)
        return few_labels.plug_in_draws(table, generator)

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
        all_labelled = len(self.known) == len(self.label)
        all_counts = []
        for name, groups in everyone_and_attributes.items():
            if completed is not None:
                # The mean counts over the draws of missing labels.
                members = few_labels.union(self.cells, groups)
                mean = np.einsum("ag,tgc->tac", members, completed).mean(axis=0)
                draws = few_labels.population_draws(completed, members, generator)
                intervals = PosteriorIntervals(mean, evaluator.level, draws)
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
        if not counts_alone and self.score is not None and len(self.known):
            # Of the labels that are known: the same, whatever completes the others.
            of_scores = replace(table, frequentist=evaluator.interval == FREQUENTIST)
            self.add_scores(of_scores, self.score, evaluator.bins)
        metrics = table.frame()
        if not all_labelled:
            # A bootstrap of counts corrects for what chance adds to gaps; where labels are missing,
            # more is unknown.
            is_gap = metrics["metric"].isin(metrics_of(BINARY, *WIDEST))
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
        labelled = self.labelled_rows(table)
        intervals = LabelledIntervals.of(labelled, table.counts(), level, generator)
        return GroupCounts(attribute, list(map(str, table.groups)), intervals.counts, intervals)

    def labelled_rows(self, table: few_labels.PartlyLabelled) -> LabelledRows:
        """Return the rows with what their labels stand for: all of a group for equally many."""
        known = table.labelled
        label = table.label[known].astype(np.int64)
        of_rows = table.score, table.prediction, table.group, table.n_groups
        return LabelledRows(*of_rows, known, label)

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
        known = self.known
        times_known = None if self.times is None else self.times[known]
        n_rows = tally(codes, self.times, least=len(counts.groups))
        n_labels = tally(codes[known], times_known, least=len(counts.groups)).astype(float)
        (successes,), (sizes,) = counts.intervals.effective_counts([rate])
        (counted,) = counts.intervals.rows([rate])
        further = n_rows if len(known) == len(codes) else n_rows - n_labels
        shares: Floats = further / further.sum()
        # How many rows of the rate come with a label; in groups of few labels, rather as in all.
        # Half a standard error less, as the plans that look short are those of lucky counts.
        among = (counted + counted.sum() / self.labels_known) / (n_labels + 1)
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

    def add_scores(self, table: tables.MetricTable, score: Floats, bins: int) -> None:
        """Add the metrics of the scores of the labelled rows."""
        labelled = self.known
        predictions = pd.DataFrame(
            {"score": score[labelled], "prediction": self.prediction[labelled]}
        )
        groups = {name: labels.iloc[labelled] for name, labels in self.groups.items()}
        data = Labelled(self.label[labelled], predictions, groups, Task.BINARY, design=self.design)
        scores.evaluate_scores(table, data, bins)
