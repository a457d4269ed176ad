"""Dataclasses with the findings of an atlas, which a page shows and a file keeps."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from fairbench.comparison.atlas.claim_values import Claim, MarginsBySize
from fairbench.comparison.rank.answer import ResolutionPlan
from fairbench.inference.comparing.fresh_winners import FreshWinner


@dataclass(frozen=True)
class AtlasTask:
    """A data set with a protected attribute, and the facts known before anything is fitted.

    `family` names the data sets that share its people or its source.
    """

    dataset: str
    protect: str
    family: str
    rows: float
    features: float
    positive_share: float
    smallest_group_share: float
    groups: float


@dataclass(frozen=True)
class AtlasApproach:
    """What one could deploy, and what it costs.

    Attributes
    ----------
    name : the learner, intervention and method with their options, as pages show it.
    group_at_prediction : whether a person's group must be known to predict.
    tasks : the number of tasks on which it was run.
    fit_seconds, predict_seconds : CPU seconds for one split, medians over tasks.
    relative_cost : its fit seconds divided by the reference's, the geometric mean over tasks.
    """

    name: str
    learner: str
    intervention: str
    method: str
    options: str
    group_at_prediction: bool
    tasks: int
    fit_seconds: float
    predict_seconds: float
    relative_cost: float


@dataclass(frozen=True)
class Standing:
    """Where one approach stands in one metric, across data sets.

    Attributes
    ----------
    approach : the name of the approach.
    tasks, families : the numbers of tasks and families on which it was compared with the reference.
    mean : the metric's mean over families, adjusted for families on which it was not run; each
        family counts alike.
    difference, lower, upper : this approach minus the reference, the mean over families, with an
        interval that holds simultaneously with those of all pairs. The limits are infinite where
        it was measured on too few families.
    first_rank, last_rank : the best and the worst rank that it can have, simultaneously with the
        ranks of the others.
    may_be_best : whether it may have the best mean.
    best_new : the probability that it is the best on a new task.
    near_new : the probability that it is within epsilon of the best on a new task.
    near_percent : `near_new` in words.
    """

    approach: str
    tasks: int
    families: int
    mean: float
    difference: float
    lower: float
    upper: float
    first_rank: int
    last_rank: int
    may_be_best: bool
    best_new: float
    near_new: float
    near_percent: str


@dataclass(frozen=True)
class Explanation:
    """How an approach's difference from the reference changes with a fact about data sets.

    Attributes
    ----------
    fact : ``rows`` (their logarithm), ``positive_share``, ``smallest_group_share`` or
        ``reference_error`` (the reference's error rate).
    slope, lower, upper : the change of the difference per standard deviation of the fact, with an
        interval that holds simultaneously over all approaches and facts of a metric.
    verdict : ``better where larger``, ``worse where larger`` or ``not resolved``.
    """

    approach: str
    fact: str
    slope: float
    lower: float
    upper: float
    verdict: str


@dataclass(frozen=True)
class FewTaskDifference:
    """The difference from the reference of an approach that was run on too few tasks to be ranked.

    Attributes
    ----------
    tasks, families : the numbers of tasks and families on which it was compared with the reference.
    difference, lower, upper : this approach minus the reference, the mean over the families of
        these tasks alone, with its own 95 % interval for new splits of them. It does not speak for
        other data sets.
    """

    approach: str
    tasks: int
    families: int
    difference: float
    lower: float
    upper: float


@dataclass(frozen=True)
class MetricStandings:
    """The ranking in one metric of the approaches that were run on enough tasks, the better first.

    Attributes
    ----------
    metric, label : the metric's name and what tables call it.
    epsilon : the largest difference that does not matter in practice.
    reference : the approach that the others are compared with.
    standings : one `Standing` for each approach, the best mean first.
    may_be_best : the names of the approaches that may be the best.
    surely_near : the names of the approaches that are surely within epsilon of the best.
    pairs : the number of pairs of approaches.
    told_apart : the number of pairs that surely differ.
    plans : the further runs that would tell the best-looking approach from each that may be the
        best.
    fresh : how often another approach has the best mean on fresh splits.
    found, on_new_task, unresolved, resolving : sentences on these results, worded as by
        ``fairbench rank``.
    unseen : the share of families that statements leave out, and the sentence that says so.
    explanations : the slopes of differences on facts about data sets.
    few : the approaches without a rank, which were run on too few tasks.
    """

    metric: str
    label: str
    epsilon: float
    reference: str
    standings: tuple[Standing, ...]
    may_be_best: tuple[str, ...]
    surely_near: tuple[str, ...]
    pairs: int
    told_apart: int
    plans: tuple[ResolutionPlan, ...]
    fresh: FreshWinner | None
    found: tuple[str, ...]
    on_new_task: tuple[str, ...]
    unresolved: tuple[str, ...]
    resolving: tuple[str, ...]
    unseen: tuple[float, str]
    explanations: tuple[Explanation, ...]
    few: tuple[FewTaskDifference, ...] = ()

    @property
    def sentences(self) -> tuple[str, ...]:
        """All sentences on the ranking; which approaches may be the best is stated once."""
        is_said = 1 < len(self.may_be_best) < len(self.standings)
        return (*self.found, *self.on_new_task, *self.unresolved[is_said:], *self.resolving)


@dataclass(frozen=True)
class FrontierPoint:
    """Error and gap of an approach, or of one setting of it, on one task.

    The intervals of all points of a task and gap are simultaneous, at 95 %. The gap is the mean
    over splits of the gap on test rows, which chance makes larger than the true one.
    """

    dataset: str
    protect: str
    learner: str
    intervention: str
    options: str
    setting: str
    gap_metric: str
    error: float
    error_lower: float
    error_upper: float
    gap: float
    gap_lower: float
    gap_upper: float


@dataclass(frozen=True)
class MeanFrontierPoint:
    """The mean change of error and gap by an intervention, or by thresholds for each group.

    Both intervals of a point are simultaneous, at 95 %.

    Attributes
    ----------
    intervention, setting : the intervention or the thresholds, with the values of their options;
        one of the two is empty.
    group_at_prediction : whether the group of a person must be known to predict.
    error, error_lower, error_upper : its error minus that of the unconstrained model, the mean
        over families.
    gap, gap_lower, gap_upper : its gap minus that of the unconstrained model, the mean over
        families.
    """

    intervention: str
    setting: str
    group_at_prediction: bool
    gap_metric: str
    tasks: int
    families: int
    error: float
    error_lower: float
    error_upper: float
    gap: float
    gap_lower: float
    gap_upper: float


@dataclass(frozen=True)
class UnprocessingMargin:
    """An intervention against thresholds for each group of the unconstrained model, on one task.

    Attributes
    ----------
    gap : the intervention's gap, the mean over splits.
    margin, lower, upper : the intervention's error minus that of thresholds with the same gap;
        above 0, thresholds win. Thresholds are chosen on all other splits and judged on each. The
        intervals of all interventions of a task and gap are simultaneous, at 95 %.
    excess : the gap of thresholds minus the intervention's; above 0 where thresholds cannot reach
        so small a gap.
    verdict : the verdict on "thresholds do no worse", by the simultaneous interval.
    alone : the verdict on it by the margin's own 95 % interval.
    """

    dataset: str
    protect: str
    family: str
    learner: str
    intervention: str
    options: str
    gap_metric: str
    gap: float
    margin: float
    lower: float
    upper: float
    excess: float
    verdict: str
    alone: str


@dataclass(frozen=True)
class TaskVerdict:
    """Whether thresholds for each group do no worse than any intervention on a task.

    Attributes
    ----------
    compared : the number of interventions and strengths that thresholds were compared with.
    holds, fails : the numbers of these comparisons whose simultaneous verdict is so.
    verdict : fails if thresholds surely do worse than one of them, and holds if they do no worse
        than each, by the margin's own interval.
    """

    dataset: str
    protect: str
    gap_metric: str
    compared: int
    holds: int
    fails: int
    verdict: str


@dataclass(frozen=True)
class AtlasFindings:
    """All findings of an atlas.

    Attributes
    ----------
    by_size : the comparison of thresholds and interventions on small and on large data sets.
    reference : the name of the approach that the others are compared with.
    runs, repeats : the number of runs, and of splits of each task.
    notes : sentences on runs that are left out.
    fewest_tasks : the number of tasks on which an approach must have been run to be ranked.
    """

    tasks: tuple[AtlasTask, ...]
    approaches: tuple[AtlasApproach, ...]
    standings: tuple[MetricStandings, ...]
    frontiers: tuple[FrontierPoint, ...]
    margins: tuple[UnprocessingMargin, ...]
    verdicts: tuple[TaskVerdict, ...]
    claims: tuple[Claim, ...]
    mean_frontiers: tuple[MeanFrontierPoint, ...] = ()
    by_size: MarginsBySize | None = None
    reference: str = ""
    runs: int = 0
    repeats: int = 0
    notes: tuple[str, ...] = field(default=())
    fewest_tasks: int = 0

    @property
    def few(self) -> tuple[AtlasApproach, ...]:
        """Return the approaches that were run on too few tasks to be ranked."""
        return tuple(approach for approach in self.approaches if approach.tasks < self.fewest_tasks)

    @property
    def families(self) -> int:
        """Return the number of families that the tasks belong to."""
        return len({task.family for task in self.tasks})

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, None for numbers that are unknown."""
        plain_values: dict[str, Any] = _plain(asdict(self))
        return plain_values


def _plain(value: Any) -> Any:
    """Return a value in plain types for JSON, with None for numbers that are unknown."""
    if isinstance(value, Mapping):
        return {name: _plain(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
