"""Everything an audit computes from a table of predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.audits.calibration import calibrations
from fairbench.audits.findings import ERROR_RATE, QUESTION_RATE, ErrorBudget
from fairbench.audits.gaps import NEEDS_NO_LABELS, RATE_OF, Bounds, Gap, gaps_of
from fairbench.audits.impact import impact_ratios
from fairbench.audits.labels_needed import Needed, labels_needed
from fairbench.audits.question import Options
from fairbench.audits.stress import Stress, stresses
from fairbench.audits.table import AuditTable
from fairbench.audits.thresholds import Thresholds, other_thresholds
from fairbench.audits.tipping import with_tipping
from fairbench.core.errors import UserError
from fairbench.core.seeds import rng
from fairbench.data.dataset import Task
from fairbench.evaluation.columns import DEBIASED
from fairbench.evaluation.evaluator import Evaluator
from fairbench.evaluation.group_calibration import GroupCalibration
from fairbench.evaluation.group_intervals import CountIntervals, group_intervals
from fairbench.evaluation.groups import Counted
from fairbench.evaluation.impact_ratios import ImpactRatio
from fairbench.evaluation.labelled_intervals import LabelledIntervals
from fairbench.evaluation.predictions import Groups, Labelled
from fairbench.evaluation.score_distributions import GroupScores, score_distributions
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
from fairbench.metrics.rates import binary_confusion
from fairbench.metrics.registry import BINARY, metrics_of

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
    needed: Sequence[Needed] = ()
    calibrations: Sequence[GroupCalibration] = ()
    stresses: Sequence[Stress] = ()
    impact: Sequence[ImpactRatio] = ()
    thresholds: Thresholds = Thresholds()
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
    labels, seed = len(table.known), options.seed
    of_decisions = table.score is None and not labels
    if of_decisions and options.target:
        raise UserError(
            f"{options.path.name} has neither labels nor scores, but decisions: leave target= "
            "out, and an audit says how often each group is selected"
        )
    some_missing = labels < len(table) and not of_decisions
    if table.design is not None and some_missing:
        raise UserError(
            "weight= and cluster= need a label in every row: of some labels, an audit cannot take "
            "them yet"
        )
    evaluator = Evaluator(epsilon=options.epsilon, interval=options.interval)
    from_scores, papers = some_missing and not labels, options.interval == DIRICHLET
    completion = alike = assumed = supposed = None
    if from_scores or (some_missing and papers):
        completion = _completion(table, seed)
    elif some_missing and not only_findings:
        of_few = _completion(table, seed, SIGNED)
        alike = of_few if isinstance(of_few, Calibrated) else None
    # Decisions alone are counted as if right: what is kept of that rests on the decisions alone.
    judged = replace(table, label=table.prediction.astype(float)) if of_decisions else table
    metrics, counted = _measured(judged, evaluator, seed, completion, measured=not only_findings)
    if of_decisions:
        kept = metrics["metric"].str.startswith(("selection_rate", NEEDS_NO_LABELS))
        metrics = metrics[kept].reset_index(drop=True)
    if alike is not None:
        assumed, supposed = _measured(table, evaluator, seed, alike)
    asked = [NEEDS_NO_LABELS] if of_decisions else list(RATE_OF)
    constrained = len(options.group) * bool(options.constraint)
    rate = ERROR_RATE if table.sampling is None else ERROR_RATE - QUESTION_RATE
    budget = ErrorBudget(len(counted) * len(asked) + constrained + others, rate)
    bounds = Bounds(options.epsilon, evaluator.minimum_group_size, budget)
    gaps = gaps_of(counted, supposed, bounds, assumed=from_scores, metrics=asked)
    found = Assessment(
        options,
        table,
        _sizes(table),
        metrics,
        assumed,
        gaps if only_findings else with_tipping(gaps, counted, bounds),
        impact=impact_ratios(table),
        budget=budget,
    )
    if not table.design:
        compared = () if only_findings else options.group
        found = replace(found, calibrations=list(calibrations(table, compared, seed=seed)))
    if constrained or not only_findings:
        found = replace(found, thresholds=other_thresholds(table, options, bounds.risk))
    if only_findings:
        return found
    singles = {name: table.groups[name] for name in options.group}
    simulated = not (of_decisions or table.design or (papers and not from_scores))
    return replace(
        found,
        needed=labels_needed(table, counted, found.gaps, options) if simulated else [],
        stresses=[] if alike is None else stresses(table, alike, gaps, options.epsilon, seed),
        scores=(
            [] if table.score is None else score_distributions(table.score, singles, table.design)
        ),
    )


def _completion(table: AuditTable, seed: int, model: Calibration = BETA) -> Completion:
    cells, scored = table.partly_labelled(table.cells), table.score is not None
    return complete(cells, rng(seed, "completion"), has_score=scored, model=model)


def _measured(
    table: AuditTable,
    evaluator: Evaluator,
    seed: int,
    completion: Completion | None,
    *,
    measured: bool = True,
) -> tuple[pd.DataFrame, list[Counted]]:
    """Return the rows of fairbench.evaluate, and the counts of each attribute behind them.

    Parameters
    ----------
    completion : a posterior of the labels that are missing; None of the labels there are.
    measured : whether there are rows; the counts alone take a tenth of the time.
    """
    all_labelled, hard = len(table.known) == len(table), table.prediction.astype(np.float64)
    frequentist = completion is None and evaluator.interval == FREQUENTIST
    rows = MetricTable(evaluator.level, frequentist, minimum=evaluator.minimum_group_size)
    evaluation = evaluator.of_groups(rows, table.design if completion is None else None)
    generator, counted = rng(seed, "posterior"), []
    for name, groups in {"": one_group(len(table)), **table.groups}.items():
        if completion is not None:
            members, names = union(table.cells, groups), list(map(str, groups.cat.categories))
            mean = np.einsum("ag,tgc->tac", members, completion.counts).mean(axis=0)
            draws = population_draws(completion.counts, members, evaluator.draws, generator)
            intervals = group_intervals(mean, draws, evaluator.level, DIRICHLET)
            counts = Counted(name, names, mean, intervals)
        elif all_labelled:
            counts = evaluation.count(Groups.of(name, groups), table.label, hard, [generator])
        else:
            of_labels = rng(seed, "labels", name)
            counts = labelled_counts(table, name, groups, of_labels, evaluator.level)
        if measured:
            evaluation.counted(counts, [generator])
        counted.append(_with_draws(counts, evaluator, seed) if all_labelled else counts)
    if not measured:
        return pd.DataFrame({"metric": np.empty(0, dtype=str)}), counted[1:]
    if table.score is not None and len(table.known):
        _score_rows(rows, table, table.score, evaluator.bins)
    metrics = rows.frame()
    if not all_labelled:
        # What a bootstrap of counts corrects: where labels are missing, more is unknown.
        of_counts = metrics["metric"].isin(metrics_of(BINARY, "widest"))
        metrics = metrics[~of_counts | (metrics["statistic"] != DEBIASED)].reset_index(drop=True)
    return metrics, counted[1:]


def one_group(rows: int) -> pd.Series:
    """Return the labels of everyone as one group without a name."""
    return pd.Series(pd.Categorical.from_codes(np.zeros(rows, int), [""]))


def _with_draws(counted: Counted, evaluator: Evaluator, seed: int) -> Counted:
    """Return counts with posterior draws of them, of which probabilities are counted."""
    if not isinstance(counted.intervals, CountIntervals):
        return counted
    generator = rng(seed, "settled", counted.attribute)
    draws = posterior_draws(counted.counts, evaluator.draws, generator, alpha=evaluator.alpha)
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
    weight, kept = None, np.ones(len(table), bool)
    if table.sampling is not None:
        # Each label stands for as many rows of its group as were chosen from at one rate.
        strata, sizes = table.sampling.codes, strata_sizes(codes, table.sampling.codes)
        labels = np.zeros_like(sizes)
        np.add.at(labels, (codes[known], strata[known]), 1)
        weight = weights(sizes, labels)[codes[known], strata[known]]
        kept = labels[codes, strata] > 0
    place = np.cumsum(kept) - 1
    score = table.prediction.astype(float) if table.score is None else table.score
    label = table.label[known].astype(np.int64)
    labelled = LabelledRows(
        score[kept], table.prediction[kept], codes[kept], len(names), place[known], label, weight
    )
    counts = binary_confusion(label, table.prediction[known], codes[known], n_groups=len(names))
    intervals = LabelledIntervals.of(labelled, counts, level, generator)
    if table.sampling is not None and table.sampling.whenever:
        intervals = intervals.whenever_one_stops()
    return Counted(attribute, names, counts, intervals)


def _score_rows(rows: MetricTable, table: AuditTable, score: Floats, bins: int) -> None:
    """Add the metrics of scores, of the labelled rows."""
    if table.sampling is not None:
        whenever, codes = table.sampling.whenever, table.sampling.codes
        WeightedScores(rows, table.label, score, codes, bins, whenever).run(table.groups)
        return
    known = table.known
    predictions = pd.DataFrame({"score": score[known], "prediction": table.prediction[known]})
    groups = {name: labels.iloc[known] for name, labels in table.groups.items()}
    data = Labelled(table.label[known], predictions, groups, Task.BINARY, design=table.design)
    ScoreEvaluation(rows, bins).run(data)


def _sizes(table: AuditTable) -> list[Size]:
    known = ~np.isnan(table.label)
    return [
        Size(attribute, str(name), int(rows), int(labels))
        for attribute, groups in table.groups.items()
        for (name, rows), labels in zip(
            groups.value_counts(sort=False).items(),
            groups[known].value_counts(sort=False),
            strict=True,
        )
    ]
