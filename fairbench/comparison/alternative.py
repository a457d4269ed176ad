"""A model in use against the less discriminatory one that was chosen on other rows.

What is said of both is said once, of rows that chose nothing, so that having chosen needs no
correction. Where the same rows have judged other candidates before, all intervals hold for all of
these at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from fairbench.comparison.choice import Judged, as_named
from fairbench.comparison.run_predictions import Shared, SharedRows
from fairbench.core.errors import UserError, unknown_name
from fairbench.evaluation.tuning_goals import Goal, GoalRows
from fairbench.experiments.drawn_search import Family
from fairbench.inference.comparing.further_search import chance_of_better, further_gain, least_gap
from fairbench.inference.comparing.selection import Tails
from fairbench.inference.comparing.tuned_gain import gain_limits
from fairbench.inference.rates import rate_limits
from fairbench.metrics.rates import ERROR_RATE
from fairbench.metrics.registry import BINARY, Metric, metrics_of

Estimate: TypeAlias = tuple[float, float, float]  # a value, and the limits of its interval
FURTHER = (1, 10, 100)  # candidates


def gap_named(name: str) -> Metric:
    """Return the gap between groups of a name.

    Raises
    ------
    UserError : there is none.
    """
    gaps = {key: each for key, each in metrics_of(BINARY, "widest").items() if each.is_gap}
    if name not in gaps:
        raise unknown_name("gap", name, gaps)
    return gaps[name]


@dataclass(frozen=True)
class Tried:
    """What was tried, and what became of it on validation rows.

    Attributes
    ----------
    what : the learner, intervention, method and options, as they are typed; or the run's id.
    label : the same for a reader.
    gap, error : of its predictions of validation rows; NaN where there is a reason for none.
    family : what it was drawn from; empty of the model in use, and of what was not drawn.
    seconds : of CPU time that its fit took.
    """

    what: str
    label: str
    gap: float
    error: float
    group_at_prediction: bool
    family: str = ""
    seconds: float = np.nan
    reason: str = ""


@dataclass(frozen=True)
class Flips:
    """Whose decisions another model changes.

    Attributes
    ----------
    group : the name of the group; empty for everyone.
    people : how many there are. gained, lost : for how many 0 becomes 1, and 1 becomes 0.
    share : the share of decisions that change, with its interval.
    """

    group: str
    people: int
    gained: int
    lost: int
    share: Estimate


@dataclass(frozen=True)
class BothModels:
    """The model in use and the chosen one on rows that chose nothing.

    Attributes
    ----------
    gaps, errors : of the model in use, and of the chosen one.
    gap_change, error_change : the chosen one's less that of the model in use, on the same rows.
    flips : of every group, and of everyone last.
    level : of every interval; `looks` : for how many candidates that these rows judged they hold.
    """

    metric: Metric
    people: int
    gaps: tuple[Estimate, Estimate]
    errors: tuple[Estimate, Estimate]
    gap_change: Estimate
    error_change: Estimate
    flips: Sequence[Flips]
    level: float
    looks: int
    notes: Sequence[str]

    @property
    def verdict(self) -> str:
        """Whether the chosen one's gap is surely ``smaller`` or ``larger``, or that is ``open``."""
        _, lower, upper = self.gap_change
        return "smaller" if upper < 0 else "larger" if lower > 0 else "open"


def compared(
    rows: SharedRows, metric: Metric, *, level: float = 0.95, looks: int = 1
) -> BothModels:
    """Return how two models compare on rows that chose neither.

    Parameters
    ----------
    rows : predictions (n, 2) of the model in use and of the chosen one, in one split.
    looks : how many candidates these rows have judged, this one among them.
    """
    notes: list[str] = []
    each = 1 - (1 - level) / looks
    used, chosen = as_named(rows, metric, notes, level=each)
    changes = [_change(rows, goal, each) for goal in (Goal(metric), Goal(ERROR_RATE))]
    return BothModels(
        metric=metric,
        people=len(rows.row),
        gaps=(_estimate(used[0]), _estimate(chosen[0])),
        errors=(_estimate(used[1]), _estimate(chosen[1])),
        gap_change=changes[0],
        error_change=changes[1],
        flips=_flips(rows, each),
        level=level,
        looks=looks,
        notes=notes,
    )


def _estimate(judged: Judged) -> Estimate:
    return judged.value, *judged.naive


def _change(rows: SharedRows, goal: Goal, level: float) -> Estimate:
    """Return how much larger a metric of the second model is than the first's, on the same rows."""
    first, second = (_of(rows, place) for place in (0, 1))
    one, two = goal.estimate(first), goal.estimate(second)
    tail = (1 - level) / 2
    lower, upper = gain_limits(one, two, first.looks(), Tails(tail, tail))
    return two.value - one.value, max(-upper, -1.0), min(-lower, 1.0)


def _of(rows: SharedRows, place: int) -> GoalRows:
    """Return the rows as one of the models predicts them, in one split."""
    return GoalRows(
        np.zeros(len(rows.row), np.int64),
        rows.row,
        rows.target.astype(float),
        rows.group,
        {"prediction": rows.prediction[:, place].astype(float)},
        len(rows.names),
    )


def _flips(rows: SharedRows, level: float) -> list[Flips]:
    used, chosen = rows.prediction.T
    groups = [(name, rows.group == code) for code, name in enumerate(rows.names)]
    counted = []
    for name, members in [*groups, ("", np.ones(len(used), bool))]:
        people = int(members.sum())
        if people:
            gained, lost = (
                int((members & (used == before) & (chosen != before)).sum()) for before in (0, 1)
            )
            changed = np.array([gained + lost], float)
            limits = rate_limits(changed, np.array([people], float), level=level)
            share = tuple(float(part[0]) for part in limits)
            counted.append(Flips(name, people, gained, lost, (share[0], share[1], share[2])))
    return counted


@dataclass(frozen=True)
class SearchCertificate:
    """What further search of the same kind may still gain.

    Attributes
    ----------
    tried : how many candidates were drawn.
    chance : that one more is chosen instead, at most.
    seen : the gap of what is chosen now on the validation rows, on which the next choice is made.
    gap : an upper limit of its true gap, which further search lowers at most to 0.
    level : of all that is said here, together.
    whole : whether there is no other candidate.
    """

    tried: int
    chance: float
    seen: float
    gap: float
    level: float
    whole: bool

    @classmethod
    def of(
        cls, tried: int, seen: float, gap: float, *, level: float, whole: bool = False
    ) -> SearchCertificate:
        """Return what is certain after some draws.

        Parameters
        ----------
        gap : the upper limit of a two-sided interval of this level: half of what may go wrong is
            above it, and the other half is left for the chance.
        """
        chance = 0.0 if whole else float(chance_of_better(tried, risk=(1 - level) / 2))
        return cls(tried, chance, seen, gap, level, whole)

    def gain(self, more: int) -> float:
        """Return by how much further draws lower the true gap on average, at most."""
        return float(further_gain(self.gap, self.chance, more=more))

    def seen_gain(self, more: int) -> float:
        """Return the same of the gap on the validation rows."""
        return float(further_gain(self.seen, self.chance, more=more))


# Why a search ended.
WORTH, WHOLE, TRIALS, SECONDS = "worth", "whole", "trials", "cpu_seconds"


@dataclass(frozen=True)
class Searched:
    """How candidates were drawn, and when it was enough.

    Attributes
    ----------
    families : what is drawn, each as likely as any other.
    left_out : why combinations of components were not drawn, by what they are made of.
    ended : why, one of `WORTH`, `WHOLE`, `TRIALS` and `SECONDS`.
    worth : the lowering of the gap for which one more candidate would be made.
    folder : of the study, with which the same command goes on.
    """

    families: Sequence[Family]
    left_out: Mapping[str, str]
    certificate: SearchCertificate
    ended: str
    worth: float
    folder: str
    seed: int


@dataclass(frozen=True)
class Alternative:
    """What came of the search for a less discriminatory alternative.

    Attributes
    ----------
    tried : the model in use first, then every candidate.
    place : of what was chosen; 0 where no candidate is better.
    within : by how much its error may be above that of the model in use.
    chosen_by : how many validation rows chose.
    runs : the ids of the runs of the model in use, and of the chosen one if it is another.
    label : what a decision for label 1 says.
    read : protected attributes that are features, too, which all these models read.
    search : how candidates were drawn; None of finished runs, which were not.
    """

    data: str
    protect: str
    tried: Sequence[Tried]
    place: int
    within: float
    chosen_by: int
    comparison: BothModels
    runs: tuple[str, ...]
    label: str = "1"
    read: tuple[str, ...] = ()
    search: Searched | None = None
    notes: Sequence[str] = ()

    @property
    def in_use(self) -> Tried:
        """The model in use."""
        return self.tried[0]

    @property
    def selected(self) -> Tried:
        """What was chosen."""
        return self.tried[self.place]

    def allows(self, tried: Tried) -> bool:
        """Say whether a candidate's error on the validation rows is within what is allowed."""
        return bool(tried.error <= self.in_use.error + self.within + 1e-9)

    @property
    def without_group(self) -> Tried | None:
        """Of candidates that need no group at prediction time, the one that would be chosen."""
        kept = [self.in_use, *(t for t in self.tried[1:] if not t.group_at_prediction)]
        place = least_gap([t.gap for t in kept], [t.error for t in kept], within=self.within)
        return kept[place] if place else None


def of_stored(
    shared: Shared,
    metric: Metric,
    *,
    within: float,
    level: float,
    named: bool,
    names: Mapping[str, str],
    without_group: bool = False,
) -> Alternative:
    """Return the less discriminatory alternative among finished runs.

    Parameters
    ----------
    named : whether the first run is the model in use; else it is the one of least validation error.
    names : a label for each run, by id.
    without_group : whether runs that need a person's group at prediction time are left out.

    Raises
    ------
    UserError : no validation rows apart from the test rows, or several splits.
    """
    if shared.choosing is None:
        raise UserError(
            "these runs have no validation rows to choose by, apart from their test rows: run them "
            "with split.repeats=1 split.validation=0.25"
        )
    if len(shared.judging.counts) > 1:
        raise UserError(
            f"these runs have {len(shared.judging.counts)} fits each, and it is single models that "
            "are compared: run them with split.repeats=1 split.validation=0.25"
        )
    goals = Goal(metric), Goal(ERROR_RATE)
    values = np.array(
        [
            [goal.estimate(_of(shared.choosing, place)).value for goal in goals]
            for place in range(len(shared.runs))
        ]
    )
    used = 0 if named else int(values[:, 1].argmin())
    needs = [bool(run.environment.get("group_at_prediction", False)) for run in shared.runs]
    order = [
        used,
        *(p for p in range(len(values)) if p != used and not (without_group and needs[p])),
    ]
    if len(order) < 2:
        raise UserError("without_group=true leaves no run beside the model in use: leave it out")
    place = least_gap(*values[order].T, within=within)
    rows = replace(shared.judging, prediction=shared.judging.prediction[:, [used, order[place]]])
    pair = [shared.runs[p] for p in dict.fromkeys((used, order[place]))]
    return Alternative(
        data=pair[0].choices["dataset"],
        protect=pair[0].protect,
        tried=[
            Tried(
                what=shared.runs[p].id,
                label=f"{names[shared.runs[p].id]} ({shared.runs[p].id})",
                gap=float(values[p, 0]),
                error=float(values[p, 1]),
                group_at_prediction=needs[p],
            )
            for p in order
        ],
        place=place,
        within=within,
        chosen_by=len(shared.choosing.row),
        comparison=compared(rows, metric, level=level),
        runs=tuple(run.id for run in pair),
        label=pair[0].people().about.positive_label or "1",
        notes=[*shared.notes, *([_UNNAMED] if not named else [])],
    )


_UNNAMED = (
    "No run was named as the model in use: it is the one of least error on the validation rows "
    "(in_use=RUN names another)."
)
