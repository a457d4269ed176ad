"""Everything an audit computes from a table of predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.audits.calibration import GroupCalibration, calibrations
from fairbench.audits.findings import ErrorBudget
from fairbench.audits.gaps import NEEDS_NO_LABELS, RATE_OF, Bounds, Gap, gaps_of
from fairbench.audits.impact import ImpactRatio, impact_ratios
from fairbench.audits.labels_needed import Needed, labels_needed
from fairbench.audits.question import Options
from fairbench.audits.score_distributions import GroupScores, score_distributions
from fairbench.audits.stress import Stress, stresses
from fairbench.audits.table import AuditTable
from fairbench.audits.thresholds import Thresholds, other_thresholds
from fairbench.audits.tipping import with_tipping
from fairbench.core.errors import UserError
from fairbench.core.seeds import rng
from fairbench.data.dataset import Task
from fairbench.evaluation.columns import DEBIASED
from fairbench.evaluation.evaluator import Evaluator
from fairbench.evaluation.group_intervals import CountIntervals, group_intervals
from fairbench.evaluation.groups import Counted, GroupEvaluation
from fairbench.evaluation.labelled_intervals import LabelledIntervals
from fairbench.evaluation.predictions import Groups, Labelled
from fairbench.evaluation.scores import ScoreEvaluation
from fairbench.evaluation.table import MetricTable
from fairbench.evaluation.weighted_scores import WeightedScores
from fairbench.inference.few_labels.assisted import LabelledRows
from fairbench.inference.few_labels.calibration import BETA, SIGNED, Calibration
from fairbench.inference.few_labels.completion import (
    Calibrated,
    Completion,
    complete,
    population_draws,
    union,
)
from fairbench.inference.posterior import DIRICHLET, FREQUENTIST, posterior_draws
from fairbench.inference.stratified import strata_sizes, weights
from fairbench.inference.survey import Design
from fairbench.metrics.rates import binary_confusion

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Size:
    """How many rows and labels a group of an attribute has."""

    attribute: str
    group: str
    rows: int
    labels: int

    @property
    def key(self) -> tuple[str, str]:
        """The attribute and the group."""
        return self.attribute, self.group


@dataclass(frozen=True, eq=False)
class Assessment:
    """The result of an audit: everything computed from predictions and the labels there are.

    Attributes
    ----------
    metrics : all metrics, in the columns that `fairbench.evaluate` returns; from labels alone,
        where there are any.
    assumed : the metrics of counts if scores are calibrated alike in all groups; None where labels
        are complete or too many for that to say more, or there are no scores.
    stresses : how far what follows from them holds, where labels leave it open.
    impact : how often each group is selected, and the ratio to the group it is compared with.
    thresholds : what others would decide. scores : how each group's are distributed.
    budget : what the page has for questions about gaps and a constraint.
    """

    options: Options
    table: AuditTable
    sizes: Sequence[Size]
    metrics: pd.DataFrame
    assumed: pd.DataFrame | None
    gaps: Sequence[Gap]
    needed: Sequence[Needed]
    calibrations: Sequence[GroupCalibration]
    stresses: Sequence[Stress]
    impact: Sequence[ImpactRatio] = ()
    thresholds: Thresholds | None = None
    scores: Sequence[GroupScores] = ()
    budget: ErrorBudget = ErrorBudget(1)

    @property
    def labels(self) -> int:
        """The number of rows with a label."""
        return len(self.table.known)

    @property
    def of_decisions(self) -> bool:
        """Whether there are decisions alone, without scores or labels."""
        return self.table.score is None and not self.labels

    @property
    def complete(self) -> bool:
        """Whether all rows have a label."""
        return self.labels == len(self.table)


def assess(
    table: AuditTable, options: Options, *, others: int = 0, only_findings: bool = False
) -> Assessment:
    """Assess a table of predictions.

    Parameters
    ----------
    others : how many questions beside those of gaps and of a constraint share the error rate.
    only_findings : leave out whatever no finding rests on, which takes nearly all of the time:
        metrics, what would follow from scores calibrated alike, how many labels are needed, and
        which wrong ones would undo a verdict. Findings then name neither of the last two.

    Raises
    ------
    UserError : a column of labels that has none, and no scores.
    """
    if table.score is None and not len(table.known):
        if options.target:
            raise UserError(
                f"{options.path.name} has neither labels nor scores, but decisions: leave target= "
                "out, and an audit says how often each group is selected"
            )
        return _of_decisions(table, options, others, only_findings=only_findings)
    if table.design is not None and len(table.known) < len(table):
        raise UserError(
            "weight= and cluster= need a label in every row: of some labels, an audit cannot take "
            "them yet"
        )
    evaluator = Evaluator(epsilon=options.epsilon, interval=options.interval)
    none = not len(table.known)
    papers = options.interval == DIRICHLET and len(table.known) < len(table)
    unasked = none or papers or only_findings
    alike = None if unasked else _calibrated_alike(table, options.seed)
    if none or papers:
        completion = _completion(table, options.seed)
        metrics, counted = _from_posterior(
            table, completion, evaluator, options.seed, measured=not only_findings
        )
    else:
        metrics, counted = _from_labels(table, evaluator, options.seed, measured=not only_findings)
    assumed, supposed = (
        (None, None) if alike is None else _from_posterior(table, alike, evaluator, options.seed)
    )
    constrained = len(options.group) * bool(options.constraint)
    bounds = Bounds(
        options.epsilon,
        evaluator.minimum_group_size,
        ErrorBudget(len(counted) * len(RATE_OF) + constrained + others),
    )
    gaps = gaps_of(counted, supposed, bounds, assumed=none)
    if only_findings:
        return Assessment(
            options,
            table,
            list(_sizes(table)),
            metrics,
            assumed,
            gaps,
            needed=[],
            calibrations=[] if table.design else list(calibrations(table)),
            stresses=[],
            impact=impact_ratios(table, options),
            thresholds=other_thresholds(table, options, bounds.risk) if constrained else None,
            budget=bounds.budget,
        )
    gaps = with_tipping(gaps, counted, bounds)
    few = not (table.design or (options.interval == DIRICHLET and not none))
    return Assessment(
        options,
        table,
        list(_sizes(table)),
        metrics,
        assumed,
        gaps,
        labels_needed(table, counted, gaps, options) if few else [],
        [] if table.design else list(calibrations(table, options.group, seed=options.seed)),
        [] if alike is None else stresses(table, alike, gaps, options.epsilon, options.seed),
        impact_ratios(table, options),
        other_thresholds(table, options, bounds.risk),
        _scores(table, options),
        bounds.budget,
    )


def _scores(table: AuditTable, options: Options) -> list[GroupScores]:
    if table.score is None:
        return []
    groups = {name: table.groups[name] for name in options.group}
    return score_distributions(table.score, groups, table.design)


# What is known of decisions alone.
_OF_DECISIONS = ("selection_rate", NEEDS_NO_LABELS)


def _of_decisions(
    table: AuditTable, options: Options, others: int, *, only_findings: bool
) -> Assessment:
    """Assess decisions without labels: how often each group is selected, and nothing else."""
    evaluator = Evaluator(epsilon=options.epsilon, interval=options.interval)
    # Counted as if every decision were right: what is kept of that rests on the decisions alone.
    decided = replace(table, label=table.prediction.astype(np.float64))
    metrics, counted = _from_labels(decided, evaluator, options.seed, measured=not only_findings)
    kept = metrics["metric"].str.startswith(_OF_DECISIONS)
    budget = ErrorBudget(len(counted) + others)
    bounds = Bounds(options.epsilon, evaluator.minimum_group_size, budget)
    gaps = gaps_of(counted, None, bounds, assumed=False, metrics=[NEEDS_NO_LABELS])
    return Assessment(
        options=options,
        table=table,
        sizes=list(_sizes(table)),
        metrics=metrics[kept].reset_index(drop=True),
        assumed=None,
        gaps=gaps,
        needed=[],
        calibrations=[],
        stresses=[],
        impact=impact_ratios(table, options),
        budget=budget,
    )


def _calibrated_alike(table: AuditTable, seed: int) -> Calibrated | None:
    """Return the posterior if scores are calibrated alike in all groups, of few labels."""
    if len(table.known) == len(table):
        return None
    completion = _completion(table, seed, SIGNED)
    return completion if isinstance(completion, Calibrated) else None


def _completion(table: AuditTable, seed: int, model: Calibration = BETA) -> Completion:
    cells, scored = table.partly_labelled(table.cells), table.score is not None
    return complete(cells, rng(seed, "completion"), has_score=scored, model=model)


_NO_METRICS = pd.DataFrame({"metric": np.empty(0, dtype=str)})


def _from_labels(
    table: AuditTable, evaluator: Evaluator, seed: int, *, measured: bool = True
) -> tuple[pd.DataFrame, list[Counted]]:
    """Return the rows of fairbench.evaluate from the labels there are, and the counts behind.

    Parameters
    ----------
    measured : whether there are rows; the counts alone take a tenth of the time.
    """
    frequentist = evaluator.interval == FREQUENTIST
    rows = MetricTable(evaluator.level, frequentist, minimum=evaluator.minimum_group_size)
    generator, evaluation = rng(seed, "posterior"), _evaluation(rows, evaluator, table.design)
    hard, complete = table.prediction.astype(np.float64), len(table.known) == len(table)
    counted = []
    for name in ("", *table.groups):
        labels = table.groups[name] if name else one_group(len(table))
        if complete:
            groups = Groups.of(name, labels)
            each = evaluation.count(groups, table.label, hard, [generator])
            if measured:
                evaluation.counted(each, [generator])
            counted.append(_with_draws(each, evaluator, seed))
            continue
        each = labelled_counts(table, name, labels, rng(seed, "labels", name), evaluator.level)
        if measured:
            evaluation.counted(each, [generator])
        counted.append(each)
    if not complete:
        rows = _without_debiased(rows)
    if measured:
        _score_rows(rows, table, evaluator.bins)
    return rows.frame() if measured else _NO_METRICS, counted[1:]


def _from_posterior(
    table: AuditTable,
    completion: Completion,
    evaluator: Evaluator,
    seed: int,
    *,
    measured: bool = True,
) -> tuple[pd.DataFrame, list[Counted]]:
    """Return the same from a posterior of the labels that are missing."""
    rows = MetricTable(evaluator.level, frequentist=False, minimum=evaluator.minimum_group_size)
    counts = completion.counts
    generator, evaluation = rng(seed, "posterior"), _evaluation(rows, evaluator, None)
    counted = []
    for name in ("", *table.groups):
        labels = table.groups[name] if name else one_group(len(table))
        members = union(table.cells, labels)
        merged = np.einsum("ag,tgc->tac", members, counts).mean(axis=0)
        draws = population_draws(counts, members, evaluator.draws, generator)
        intervals = group_intervals(merged, draws, evaluator.level, DIRICHLET)
        counted.append(Counted(name, list(map(str, labels.cat.categories)), merged, intervals))
        if measured:
            evaluation.counted(counted[-1], [generator])
    rows = _without_debiased(rows)
    if measured:
        _score_rows(rows, table, evaluator.bins)
    return rows.frame() if measured else _NO_METRICS, counted[1:]


def _without_debiased(rows: MetricTable) -> MetricTable:
    """Drop what a bootstrap of counts corrects: where labels are missing, more is unknown."""
    kept = []
    for block in rows.blocks:
        chosen = [m for m, statistic in enumerate(block.statistics) if statistic != DEBIASED]
        kept += [block.take(chosen)] if chosen else []
    return replace(rows, blocks=kept)


def one_group(rows: int) -> pd.Series:
    """Return the labels of everyone as one group without a name."""
    return pd.Series(pd.Categorical.from_codes(np.zeros(rows, int), [""]))


def _evaluation(rows: MetricTable, evaluator: Evaluator, design: Design | None) -> GroupEvaluation:
    return GroupEvaluation(
        rows,
        evaluator.interval,
        evaluator.draws,
        evaluator.alpha,
        evaluator.level,
        evaluator.epsilon,
        evaluator.ratio_band,
        design,
    )


def _with_draws(counted: Counted, evaluator: Evaluator, seed: int) -> Counted:
    """Return counts with posterior draws of them, of which probabilities are counted."""
    generator = rng(seed, "settled", counted.attribute)
    draws = posterior_draws(counted.counts, evaluator.draws, generator, alpha=evaluator.alpha)
    if not isinstance(counted.intervals, CountIntervals):
        return counted
    return replace(counted, intervals=replace(counted.intervals, draws=draws))


def labelled_counts(
    table: AuditTable,
    attribute: str,
    groups: pd.Series,
    generator: np.random.Generator,
    level: float,
) -> Counted:
    """Return the labelled rows of an attribute's groups, with what makes their intervals."""
    codes, known = groups.cat.codes.to_numpy(np.int64), table.known
    names = list(map(str, groups.cat.categories))
    weight, counted = _standing_for(table, codes), np.ones(len(table), bool)
    if table.sampling is not None:
        strata = codes * (table.sampling.codes.max() + 1) + table.sampling.codes
        counted = np.isin(strata, strata[known])
    place = np.cumsum(counted) - 1
    score = table.prediction.astype(float) if table.score is None else table.score
    labels = LabelledRows(
        score[counted],
        table.prediction[counted],
        codes[counted],
        len(names),
        place[known],
        table.label[known].astype(np.int64),
        weight,
    )
    counts = binary_confusion(
        table.label[known], table.prediction[known], codes[known], n_groups=len(names)
    )
    intervals = LabelledIntervals.of(labels, counts, level, generator)
    if table.sampling is not None and table.sampling.whenever:
        intervals = intervals.whenever_one_stops()
    return Counted(attribute, names, counts, intervals)


def _standing_for(table: AuditTable, codes: NDArray[np.int64]) -> Floats | None:
    """Return how many rows of its group each label stands for, where they were chosen by group."""
    if table.sampling is None:
        return None
    sizes = strata_sizes(codes, table.sampling.codes)
    known = table.known
    labels = np.zeros_like(sizes)
    np.add.at(labels, (codes[known], table.sampling.codes[known]), 1)
    each: Floats = weights(sizes, labels)[codes[known], table.sampling.codes[known]]
    return each


def _score_rows(rows: MetricTable, table: AuditTable, bins: int) -> None:
    known = table.known
    if table.score is None or not len(known):
        return
    if table.sampling is not None:
        whenever, codes = table.sampling.whenever, table.sampling.codes
        weighted = WeightedScores(rows, table.label, table.score, codes, bins, whenever)
        weighted.run(table.groups)
        return
    columns = {"score": table.score, "prediction": table.prediction}
    label, groups = table.label, table.groups
    if len(known) < len(table):
        columns = {name: values[known] for name, values in columns.items()}
        label = label[known]
        groups = {name: labels.iloc[known] for name, labels in groups.items()}
    predictions = pd.DataFrame(columns, copy=False)
    data = Labelled(label, predictions, groups, Task.BINARY, design=table.design)
    ScoreEvaluation(rows, bins).run(data)


def _sizes(table: AuditTable) -> list[Size]:
    known = ~np.isnan(table.label)
    sizes = []
    for attribute, groups in table.groups.items():
        codes, names = groups.cat.codes.to_numpy(), groups.cat.categories
        rows = np.bincount(codes, minlength=len(names))
        labels = np.bincount(codes[known], minlength=len(names))
        sizes += [
            Size(attribute, str(name), int(n), int(m))
            for name, n, m in zip(names, rows, labels, strict=True)
        ]
    return sizes
