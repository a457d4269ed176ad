"""What an atlas of runs says, as plain values that a page shows and a file keeps."""

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
    name : in words, made of the other texts.
    group_at_prediction : whether a person's group must be known to predict.
    tasks : on how many tasks it was run.
    fit_seconds, predict_seconds : medians over tasks of CPU seconds of a split.
    relative_cost : the geometric mean over tasks of its fit seconds over the reference's.
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
    approach : its name.
    tasks, families : on how many it was compared with the reference.
    mean : over families, each of which counts alike, as if it had been run on all of them.
    difference, lower, upper : from the reference, the mean over families; all differences of all
        pairs hold together. Negative where this approach has the smaller value; infinite ends of
        what was measured on too few families.
    first_rank, last_rank : the ranks that it can have, all at once.
    may_be_best : whether it may have the best mean.
    best_new, near_new : the probability to be the best on a new task, and to be within epsilon of
        the best there; `near_percent` is the second in words.
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
    """Whether a fact about data sets tells where an approach does better than the reference.

    Attributes
    ----------
    fact : ``rows`` (their logarithm), ``positive_share``, ``smallest_group_share`` or
        ``reference_error`` (the reference's error rate).
    slope, lower, upper : by how much the difference grows when the fact grows by one standard
        deviation, with an interval; those of all approaches and facts of a metric hold at once.
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
    """How an approach that was run on too few tasks to be ranked does on those.

    Attributes
    ----------
    tasks, families : on how many it was compared with the reference.
    difference, lower, upper : from the reference, the mean over the families of these tasks alone,
        with its own 95 % interval for new splits of them; it says nothing of other data sets.
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
    standings : of the approaches, the best mean first.
    may_be_best : the names of those that may be the best. surely_near : of those that are surely
        within epsilon of the best.
    pairs : how many pairs there are. told_apart : how many of them surely differ.
    plans : what would tell the best-looking approach from each that may be the best.
    fresh : how often the best mean is another approach's on fresh splits.
    found, on_new_task, unresolved, resolving : the same in the sentences of ``fairbench rank``.
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
    explanations: tuple[Explanation, ...]
    few: tuple[FewTaskDifference, ...] = ()

    @property
    def sentences(self) -> tuple[str, ...]:
        """All that is said of the ranking; which may be the best is said once."""
        is_said = 1 < len(self.may_be_best) < len(self.standings)
        return (*self.found, *self.on_new_task, *self.unresolved[is_said:], *self.resolving)


@dataclass(frozen=True)
class FrontierPoint:
    """Error and gap of an approach, or of one setting of it, on one task.

    The bands of all points of a task and gap hold at once, at 95 %. The gap is the mean over
    splits of what a split's test rows show, which chance makes larger than the truth.
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
    """What an intervention, or thresholds of each group, change over data sets: error and gap.

    Attributes
    ----------
    intervention, setting : what it is, with its options' values; one of the two is empty.
    group_at_prediction : whether it needs the group of whoever is decided about.
    error, error_lower, error_upper : its error minus that of the unconstrained model, the mean
        over families; both intervals of a point hold together, at 95 %.
    gap, gap_lower, gap_upper : the same of the gap.
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
    gap : of the intervention, the mean over splits.
    margin, lower, upper : by how much its error is larger than that of thresholds with the same
        gap, so that above 0 thresholds win. They are chosen on the other splits and judged on
        each; the intervals of all interventions of a task and gap hold at once, at 95 %.
    excess : by how much the gap of thresholds is larger where they cannot reach as small a one.
    verdict : of "thresholds do no worse", by that interval; `alone` : by its own 95 % interval.
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
    """Whether thresholds of each group do no worse than any intervention on a task.

    They fail if they surely do worse than one of the `compared` interventions and strengths, and
    hold if they do no worse than each by itself. `holds` and `fails` count the single verdicts,
    which hold at once.
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
    """Everything that is said of an atlas.

    `fewest_tasks` is on how many an approach must have been run to be ranked.
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
        """Return of how many families the tasks are."""
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
