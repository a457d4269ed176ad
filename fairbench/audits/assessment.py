"""Everything an audit computes from a table of predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from fairbench.audits.calibration import calibrations
from fairbench.audits.findings import ERROR_RATE, QUESTION_RATE, ErrorBudget
from fairbench.audits.gaps import NEEDS_NO_LABELS, RATE_OF, Bounds, Gap, gaps_of
from fairbench.audits.gate.asking import GatedOptions
from fairbench.audits.impact import impact_ratios
from fairbench.audits.labels_needed import with_needed
from fairbench.audits.question import Options
from fairbench.audits.stress import with_supposed
from fairbench.audits.table import AuditTable
from fairbench.audits.thresholds import Thresholds, other_thresholds
from fairbench.audits.tipping import with_tipping
from fairbench.audits.within import (
    StandardisedGap,
    asked_within,
    standardised_gaps,
    within_metrics,
)
from fairbench.core.errors import UserError
from fairbench.data.distinct_rows import tally
from fairbench.evaluation.evaluator import Evaluator
from fairbench.evaluation.group_calibration import GroupCalibration
from fairbench.evaluation.impact_ratios import ImpactRatio
from fairbench.evaluation.score_distributions import GroupScores, score_distributions
from fairbench.evaluation.some_labels import SomeLabels
from fairbench.inference.few_labels.calibration import SIGNED
from fairbench.inference.few_labels.completion import Calibrated
from fairbench.inference.posterior import DIRICHLET


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
    bounds : what verdicts are given by; the budget is of questions about gaps and a constraint.
    metrics : all metrics, in the columns that `fairbench.evaluate` returns; from labels alone,
        where there are any.
    assumed : the metrics of counts if scores are calibrated alike in all groups; None where labels
        are complete or too many for that to say more, or there are no scores.
    impact : how often each group is selected, and the ratio to the group it is compared with.
    thresholds : what others would decide. scores : how each group's are distributed.
    within : the gaps over one mix of strata, where that is asked for.
    """

    options: Options
    table: AuditTable
    bounds: Bounds
    sizes: Sequence[Size]
    metrics: pd.DataFrame
    assumed: pd.DataFrame | None
    gaps: Sequence[Gap]
    calibrations: Sequence[GroupCalibration]
    impact: Sequence[ImpactRatio]
    thresholds: Thresholds
    scores: Sequence[GroupScores]
    within: Sequence[StandardisedGap] = ()

    @property
    def labels(self) -> int:
        """The number of rows with a label."""
        return self.table.labels_known

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
    labels, seed = table.labels_known, options.seed
    of_decisions = table.score is None and not labels
    if of_decisions and options.target:
        raise UserError(
            f"{options.path.name} has neither labels nor scores, but decisions: leave target= "
            "out, and an audit says how often each group is selected"
        )
    some_missing = labels < len(table) and not of_decisions
    check_design(table)
    evaluator = Evaluator(epsilon=options.epsilon, interval=options.interval)
    from_scores, papers = some_missing and not labels, options.interval == DIRICHLET
    rows, completion, alike = rows_of(table), None, None
    if from_scores or (some_missing and papers):
        completion = rows.completion(seed)
    elif some_missing and not only_findings:
        of_few = rows.completion(seed, SIGNED)
        alike = of_few if isinstance(of_few, Calibrated) else None
    # Decisions alone are counted as if right: what is kept of that rests on the decisions alone.
    judged = replace(rows, label=table.prediction.astype(float)) if of_decisions else rows
    metrics, counted = judged.evaluated(evaluator, seed, completion, counts_alone=only_findings)
    if of_decisions:
        kept = metrics["metric"].str.startswith(("selection_rate", NEEDS_NO_LABELS))
        metrics = metrics[kept].reset_index(drop=True)
    asked = [NEEDS_NO_LABELS] if of_decisions else list(RATE_OF)
    constrained = len(options.group) * bool(options.constraint)
    has_question = table.sampling is not None or isinstance(options, GatedOptions)
    rate = ERROR_RATE - QUESTION_RATE if has_question else ERROR_RATE
    inside = asked_within(table, asked)
    questions = len(counted) * len(asked) + constrained + others + len(options.group) * len(inside)
    budget = ErrorBudget(questions, rate)
    bounds = Bounds(options.epsilon, evaluator.minimum_group_size, budget)
    names, assumed = table.direction.rate_names, None
    gaps = gaps_of(counted, bounds, assumed=from_scores, metrics=asked, names=names)
    if alike is not None:
        assumed, supposed = rows.evaluated(evaluator, seed, alike)
        gaps = with_supposed(gaps, supposed, table, alike, bounds.epsilon, seed)
    if not only_findings:
        gaps = with_tipping(gaps, counted, bounds)
        if not (of_decisions or table.design or (papers and not from_scores)):
            gaps = with_needed(gaps, rows, counted, bounds.epsilon, seed)
    if inside and not only_findings:
        metrics = pd.concat([metrics, within_metrics(table, options, evaluator)], ignore_index=True)
    compared = () if only_findings else options.group
    thresholds, scores = Thresholds(), list[GroupScores]()
    if constrained or not only_findings:
        thresholds = other_thresholds(table, options, bounds.risk)
    if table.score is not None and not only_findings:
        singles = {name: table.groups[name] for name in options.group}
        scores = score_distributions(table.score, singles, table.design)
    return Assessment(
        options,
        table,
        bounds,
        _sizes(table),
        metrics,
        assumed,
        gaps,
        [] if table.design else list(calibrations(table, compared, seed=seed)),
        impact_ratios(table),
        thresholds,
        scores,
        standardised_gaps(table, options, bounds, inside),
    )


def check_design(table: AuditTable) -> None:
    """Refuse weights and clusters of rows that have a label only in part.

    Raises
    ------
    UserError : some rows have none, and there is something that needs them.
    """
    of_decisions = table.score is None and not len(table.known)
    if table.design is not None and len(table.known) < len(table) and not of_decisions:
        raise UserError(
            "weight= and cluster= need a label in every row: of some labels, an audit cannot take "
            "them yet"
        )


def rows_of(table: AuditTable) -> SomeLabels:
    """Return the rows of a table, with how they were chosen for labelling."""
    sampling = table.sampling
    return SomeLabels(
        table.score,
        table.prediction,
        table.label,
        table.groups,
        table.cells,
        table.design,
        None if sampling is None else sampling.codes,
        whenever=sampling is not None and sampling.whenever,
        times=table.times,
    )


def _sizes(table: AuditTable) -> list[Size]:
    sizes = []
    for attribute, groups in table.groups.items():
        codes, names = groups.cat.codes.to_numpy(np.intp), groups.cat.categories
        known, times = table.known, table.times
        rows = tally(codes, times, least=len(names))
        of_known = None if times is None else times[known]
        labels = tally(codes[known], of_known, least=len(names))
        sizes += [
            Size(attribute, str(name), *counts)
            for name, *counts in zip(names, rows.tolist(), labels.tolist(), strict=True)
        ]
    return sizes
