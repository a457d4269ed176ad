"""Everything an audit computes from a table of predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.audit.calibration import GroupCalibration, calibrations
from fairbench.audit.completion import Complete, Completion, complete, population_draws, union
from fairbench.audit.gaps import Check, Gap, checks, gaps_of
from fairbench.audit.group_sampling import WeightedScores
from fairbench.audit.labels_needed import Needed, labels_needed
from fairbench.audit.options import Options
from fairbench.audit.reading import AuditTable
from fairbench.core.errors import UserError
from fairbench.core.seeds import rng
from fairbench.evaluation.evaluator import Evaluator
from fairbench.evaluation.group_intervals import CountIntervals, group_intervals
from fairbench.evaluation.groups import Counted, GroupEvaluation, one_group
from fairbench.evaluation.scores import ScoreEvaluation
from fairbench.evaluation.table import MetricTable
from fairbench.inference.posterior import DIRICHLET, FREQUENTIST, posterior_draws

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
    completion : how labels that are missing were filled in.
    metrics : all metrics, in the columns that `fairbench.evaluate` returns.
    """

    options: Options
    table: AuditTable
    completion: Completion
    sizes: Sequence[Size]
    metrics: pd.DataFrame
    gaps: Sequence[Gap]
    needed: Sequence[Needed]
    calibrations: Sequence[GroupCalibration]
    checks: Sequence[Check]

    @property
    def labels(self) -> int:
        """The number of rows with a label."""
        return len(self.table.known)


def assess(table: AuditTable, options: Options) -> Assessment:
    """Assess a table of predictions.

    Raises
    ------
    UserError : neither labels nor scores.
    """
    if table.score is None and not len(table.known):
        raise UserError(f"{options.path.name} has neither labels nor scores: nothing can be said")
    partly, generator = table.partly_labelled(table.cells), rng(options.seed, "completion")
    if table.design is not None and len(table.known) < len(table):
        raise UserError(
            "weight= and cluster= need a label in every row: of some labels, an audit cannot take "
            "them yet"
        )
    completion = complete(partly, generator, has_score=table.score is not None)
    unions = {name: union(table.cells, labels) for name, labels in table.groups.items()}
    interval = options.interval if isinstance(completion, Complete) else DIRICHLET
    evaluator = Evaluator(epsilon=options.epsilon, interval=interval)
    metrics, counted = _metrics(table, completion, unions, evaluator, options.seed)
    assumed = not len(table.known)
    gaps = gaps_of(counted, options.epsilon, evaluator.minimum_group_size, assumed=assumed)
    return Assessment(
        options,
        table,
        completion,
        list(_sizes(table)),
        metrics,
        gaps,
        [] if table.design else labels_needed(completion, gaps, unions, options),
        [] if table.design else list(calibrations(table)),
        list(checks(table, gaps)),
    )


def _metrics(
    table: AuditTable,
    completion: Completion,
    unions: Mapping[str, Floats],
    evaluator: Evaluator,
    seed: int,
) -> tuple[pd.DataFrame, list[Counted]]:
    """Return the rows of fairbench.evaluate, and the counts behind them."""
    frequentist = evaluator.interval == FREQUENTIST
    rows = MetricTable(level=evaluator.level, frequentist=frequentist)
    generator, counts = rng(seed, "posterior"), completion.counts
    evaluation = GroupEvaluation(
        rows,
        evaluator.interval,
        evaluator.draws,
        evaluator.alpha,
        evaluator.level,
        evaluator.epsilon,
        evaluator.ratio_band,
        evaluator.minimum_group_size,
        table.design,
    )
    everyone = np.ones((1, counts.shape[1]))
    names = {name: list(map(str, each.cat.categories)) for name, each in table.groups.items()}
    counted = []
    for name, members in {"": everyone, **unions}.items():
        if isinstance(completion, Complete) and evaluator.interval == FREQUENTIST:
            labels = table.groups.get(name, one_group(len(table)))
            hard = table.prediction.astype(np.float64)
            each = evaluation.count(name, table.label, hard, labels, generator)
            evaluation.counted(each, generator)
            counted.append(_with_draws(each, evaluator, seed))
            continue
        merged = np.einsum("ag,tgc->tac", members, counts).mean(axis=0)
        draws = population_draws(counts, members, evaluator.draws, generator)
        intervals = group_intervals(merged, draws, evaluator.level, evaluator.interval)
        counted.append(Counted(name, names.get(name, [""]), merged, intervals))
        evaluation.counted(counted[-1], generator)
    _score_rows(rows, table, evaluator.bins)
    frame = rows.frame()
    if len(counts) > 1:
        # What a bootstrap of the completed counts would correct for is not what is unknown here.
        frame = frame[~frame["metric"].str.endswith("_debiased")].reset_index(drop=True)
    return frame, counted[1:]


def _with_draws(counted: Counted, evaluator: Evaluator, seed: int) -> Counted:
    """Return counts with posterior draws of them, from which it follows what is settled."""
    generator = rng(seed, "settled", counted.attribute)
    draws = posterior_draws(counted.counts, evaluator.draws, generator, alpha=evaluator.alpha)
    if not isinstance(counted.intervals, CountIntervals):
        return counted
    return replace(counted, intervals=replace(counted.intervals, draws=draws))


def _score_rows(rows: MetricTable, table: AuditTable, bins: int) -> None:
    known = table.known
    if table.score is None or not len(known):
        return
    if table.sampling is not None:
        WeightedScores(rows, table.label, table.score, table.sampling.codes, bins).run(table.groups)
        return
    predictions = pd.DataFrame({"score": table.score[known], "prediction": table.prediction[known]})
    if table.design is not None:
        scores = ScoreEvaluation(rows, table.label, predictions, bins, design=table.design)
        scores.run(table.groups)
        return
    groups = {name: each.iloc[known].reset_index(drop=True) for name, each in table.groups.items()}
    ScoreEvaluation(rows, table.label[known], predictions, bins).run(groups)


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
