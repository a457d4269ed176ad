"""Everything an audit computes from a table of predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
import pandas as pd

from fairbench.audits.calibration import calibrations
from fairbench.audits.findings import ERROR_RATE, QUESTION_RATE, ErrorBudget
from fairbench.audits.gaps import NEEDS_NO_LABELS, RATE_OF, Bounds, Gap, gaps_of
from fairbench.audits.gate.options import GatedOptions
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
from fairbench.evaluation.groups import GroupCounts
from fairbench.evaluation.impact_ratios import ImpactRatio
from fairbench.evaluation.score_distributions import GroupScores, score_distributions
from fairbench.evaluation.some_labels import SomeLabels
from fairbench.inference.few_labels.assisted import needs_no_label
from fairbench.inference.few_labels.calibration import SIGNED
from fairbench.inference.few_labels.completion import Calibrated
from fairbench.inference.posterior import DIRICHLET
from fairbench.metrics.registry import BINARY, metrics_of


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
    bounds : the tolerance and the error budget of verdicts on gaps and a constraint.
    metrics : all metrics, in the columns that `fairbench.evaluate` returns; from labels alone, if
        there are any.
    assumed : the metrics of counts if all groups' scores are calibrated equally; None where labels
        are complete or too many for that to say more, or there are no scores.
    impact : how often each group is selected, and the ratio to the group it is compared with.
    thresholds : what other thresholds would decide.
    scores : how the scores of each group are distributed.
    within : the gaps over one mix of strata, if within= is given.
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
        return Basis.of(self.table) is Basis.DECISIONS

    @property
    def complete(self) -> bool:
        """Whether all rows have a label."""
        return Basis.of(self.table) is Basis.ALL_LABELS


def assess(
    table: AuditTable, options: Options, *, others: int = 0, only_findings: bool = False
) -> Assessment:
    """Assess a table of predictions.

    Parameters
    ----------
    table, options : the predictions, and what is asked about them.
    others : how many further questions share the error rate with those on gaps and a constraint.
    only_findings : whether to skip all that findings do not need, which takes nearly all of the
        time: metrics, gaps under equal calibration, how many labels are needed, and how many wrong
        labels would undo a verdict. Findings then lack the last two.

    Raises
    ------
    UserError : if the column of labels has none, and there are no scores.
    """
    basis = Basis.of(table)
    if basis is Basis.DECISIONS and options.target:
        raise UserError(
            f"{options.path.name} has neither labels nor scores, but decisions: leave target= "
            "out, and an audit says how often each group is selected"
        )
    check_design(table)
    evaluator = Evaluator(epsilon=options.epsilon, interval=options.interval)
    rows = rows_of(table)
    seed = options.seed
    metrics, counts, decided = _evaluate(rows, basis, evaluator, seed, counts_alone=only_findings)
    gap_metrics = [NEEDS_NO_LABELS] if basis is Basis.DECISIONS else list(RATE_OF)
    fixed = table.fixed
    metrics_within = asked_within(table, [name for name in gap_metrics if name not in fixed])
    questions = len(counts) * len(gap_metrics) + len(options.group) * len(metrics_within) + others
    budget = _budget(table, options, questions)
    bounds = Bounds(options.epsilon, evaluator.minimum_group_size, budget)
    gaps = gaps_of(
        counts,
        bounds,
        decided=decided,
        assumed=basis is Basis.SCORES,
        metrics=gap_metrics,
        names=table.direction.rate_names,
    )
    gaps = [
        Gap(gap.attribute, gap.metric, (), (), assumed=False, rate_name=gap.rate_name, fixed=why)
        if (why := fixed.get(gap.metric, ""))
        else gap
        for gap in gaps
    ]
    metrics_if_alike = None
    if not only_findings:
        metrics_if_alike, gaps = _with_robustness(
            gaps, table, rows, counts, evaluator, bounds, seed
        )
        if metrics_within:
            within = within_metrics(table, options, evaluator)
            metrics = pd.concat([metrics, within], ignore_index=True)
    needs_thresholds = options.constraint or not only_findings
    compared_attributes = () if only_findings else options.group
    return Assessment(
        options=options,
        table=table,
        bounds=bounds,
        sizes=_sizes(table),
        metrics=metrics,
        assumed=metrics_if_alike,
        gaps=gaps,
        calibrations=(
            [] if table.design else list(calibrations(table, compared_attributes, seed=seed))
        ),
        impact=impact_ratios(table),
        thresholds=(
            other_thresholds(table, options, bounds.risk) if needs_thresholds else Thresholds()
        ),
        scores=[] if only_findings else _score_distributions(table, options),
        within=standardised_gaps(table, options, bounds, metrics_within),
    )


def _with_robustness(
    gaps: list[Gap],
    table: AuditTable,
    rows: SomeLabels,
    counts: list[GroupCounts],
    evaluator: Evaluator,
    bounds: Bounds,
    seed: int,
) -> tuple[pd.DataFrame | None, list[Gap]]:
    """Add to gaps what would change their verdicts, and how many labels would settle them.

    Returns
    -------
    The metrics if all groups' scores are calibrated equally, None if that adds nothing; and the
    gaps.
    """
    basis = Basis.of(table)
    metrics_if_alike = None
    completion = _calibrated_alike(rows, basis, evaluator, seed)
    if completion is not None:
        metrics_if_alike, counts_if_alike = rows.evaluate(evaluator, seed, completion)
        gaps = with_supposed(gaps, counts_if_alike, table, completion, bounds.epsilon, seed)
    gaps = with_tipping(gaps, counts, bounds)
    is_posterior = evaluator.interval == DIRICHLET and basis is not Basis.SCORES
    if not (basis is Basis.DECISIONS or table.design or table.sampling or is_posterior):
        gaps = with_needed(gaps, rows, counts, bounds, seed)
    return metrics_if_alike, gaps


def _score_distributions(table: AuditTable, options: Options) -> list[GroupScores]:
    """Return how the scores of each attribute's groups are distributed; nothing without scores."""
    if table.score is None:
        return []
    groups = {name: table.groups[name] for name in options.group}
    return score_distributions(table.score, groups, table.design)


def _budget(table: AuditTable, options: Options, questions: int) -> ErrorBudget:
    """Return the error budget of so many questions, and of a constraint on each attribute.

    An audit that also asks how rows are to be labelled, or whether conditions hold, leaves a part
    of the error rate to that question.
    """
    if options.constraint:
        questions += len(options.group)
    has_question = table.sampling is not None or isinstance(options, GatedOptions)
    return ErrorBudget(questions, ERROR_RATE - QUESTION_RATE if has_question else ERROR_RATE)


class Basis(Enum):
    """What the rates of an audit rest on."""

    ALL_LABELS = "every row has a label"
    SOME_LABELS = "some rows have a label"
    SCORES = "no row has a label, and all have a score"
    DECISIONS = "there are decisions alone"

    @classmethod
    def of(cls, table: AuditTable) -> Basis:
        """Return what the rates of a table rest on."""
        if not table.labels_known:
            return cls.DECISIONS if table.score is None else cls.SCORES
        return cls.ALL_LABELS if table.labels_known == len(table) else cls.SOME_LABELS


def _evaluate(
    rows: SomeLabels, basis: Basis, evaluator: Evaluator, seed: int, *, counts_alone: bool
) -> tuple[pd.DataFrame, list[GroupCounts], list[GroupCounts]]:
    """Return the metrics of rows, and the counts of each attribute's groups, and of decisions.

    Labels that are missing are completed from the scores where there are none at all, or where the
    intervals are the papers', which need a label in every row. What needs no label is counted where
    there are none, as if all decisions were right.
    """
    if basis is Basis.DECISIONS:
        metrics, decided = _evaluate_decisions(rows, evaluator, seed, counts_alone=counts_alone)
        return metrics, decided, decided
    completion = None
    if basis is Basis.SCORES or (basis is Basis.SOME_LABELS and evaluator.interval == DIRICHLET):
        completion = rows.completion(seed)
    metrics, counts = rows.evaluate(evaluator, seed, completion, counts_alone=counts_alone)
    if basis is not Basis.SCORES or evaluator.interval == DIRICHLET:
        return metrics, counts, counts
    counted, decided = _evaluate_decisions(rows, evaluator, seed, counts_alone=counts_alone)
    completed = metrics[~metrics["metric"].isin(_of_decisions())]
    return pd.concat([counted, completed], ignore_index=True), counts, decided


def _evaluate_decisions(
    rows: SomeLabels, evaluator: Evaluator, seed: int, *, counts_alone: bool
) -> tuple[pd.DataFrame, list[GroupCounts]]:
    """Return what is known without labels: the metrics of decisions, and counts that have them."""
    as_if_right = replace(rows, label=rows.prediction.astype(float))
    metrics, counts = as_if_right.evaluate(evaluator, seed, counts_alone=counts_alone)
    return metrics[metrics["metric"].isin(_of_decisions())].reset_index(drop=True), counts


def _of_decisions() -> list[str]:
    """Return the metrics that need no label."""
    metrics = metrics_of(BINARY, "rate", "difference", "ratio", "widest").values()
    return [metric.name for metric in metrics if all(map(needs_no_label, metric.rates))]


def _calibrated_alike(
    rows: SomeLabels, basis: Basis, evaluator: Evaluator, seed: int
) -> Calibrated | None:
    """Return labels completed as if all groups' scores were calibrated equally.

    None if all rows or none have a label, or if intervals are those of the posterior.
    """
    if basis is not Basis.SOME_LABELS or evaluator.interval == DIRICHLET:
        return None
    completion = rows.completion(seed, SIGNED)
    return completion if isinstance(completion, Calibrated) else None


def check_design(table: AuditTable) -> None:
    """Refuse weights and clusters of rows that have a label only in part.

    Raises
    ------
    UserError : some rows have none, and there is something that needs them.
    """
    if table.design is not None and Basis.of(table) in (Basis.SOME_LABELS, Basis.SCORES):
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
        anytime_valid=sampling is not None and sampling.anytime_valid,
        times=table.times,
    )


def _sizes(table: AuditTable) -> list[Size]:
    """Return how many rows and labels each group has."""
    sizes = []
    for attribute, groups in table.groups.items():
        codes = groups.cat.codes.to_numpy(np.intp)
        names = groups.cat.categories
        times_known = None if table.times is None else table.times[table.known]
        n_rows = tally(codes, table.times, least=len(names)).tolist()
        n_labels = tally(codes[table.known], times_known, least=len(names)).tolist()
        sizes += [
            Size(attribute, str(name), rows=rows, labels=labels)
            for name, rows, labels in zip(names, n_rows, n_labels, strict=True)
        ]
    return sizes
