"""What was searched for on some rows, judged on others: an alternative model, or a tuned one.

A model in use is compared with a less discriminatory one on rows that were not used for the choice,
so that it needs no correction (:func:`compare_models`). If the same rows have judged other
candidates before, intervals are simultaneous over all candidates. A tuning study has the gain that
its validation rows promise, and the one that test rows show (:class:`TuningResult`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from fairbench.comparison.choice import Judged, LowerAndUpper, estimate_every_run
from fairbench.comparison.runs import Shared, SharedRows
from fairbench.core.errors import UserError, unknown_name
from fairbench.evaluation.tuning_goals import Goal, GoalRows, Tuning, together
from fairbench.experiments.pipeline import PlannedRun
from fairbench.experiments.tuning import Family, Trial, label_rows
from fairbench.inference.rates import rate_limits
from fairbench.inference.selection import Tails
from fairbench.inference.tuned_gain import (
    GoalEstimate,
    JudgingRows,
    chance_of_better,
    chosen_tails,
    further_gain,
    gain_limits,
    least_gap,
    stack_noise,
    value_limits,
)
from fairbench.metrics.registry import BINARY, Metric, metrics_of
from fairbench.results.predictions import TEST
from fairbench.results.runs import Run

Estimate: TypeAlias = tuple[float, float, float]  # a value, and the limits of its interval
FURTHER = (1, 10, 100)  # numbers of further candidates for which the gain is bounded


def gap_named(name: str) -> Metric:
    """Return the gap between groups that has a name.

    Raises
    ------
    UserError : there is none.
    """
    gaps = {key: metric for key, metric in metrics_of(BINARY, "widest").items() if metric.is_gap}
    if name not in gaps:
        raise unknown_name("gap", name, gaps)
    return gaps[name]


@dataclass(frozen=True)
class Tried:
    """A candidate, or the model in use, with its metrics on validation rows.

    Attributes
    ----------
    what : the learner, intervention, method and options, as typed; or the run's id.
    label : its name for readers.
    gap, error : its values on validation rows; NaN if it failed, for which `reason` is given.
    family : the family it was drawn from; empty for the model in use, and if it was not drawn.
    seconds : CPU time of its fit.
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
    """The number of decisions that change between two models, in one group or for everyone.

    Attributes
    ----------
    group : the name of the group; empty for everyone.
    people : the number of people in the group.
    gained, lost : the numbers of people for whom 0 becomes 1, and 1 becomes 0.
    share : the share of decisions that change, with its interval.
    """

    group: str
    people: int
    gained: int
    lost: int
    share: Estimate


@dataclass(frozen=True)
class BothModels:
    """The model in use and the chosen one, on rows that were not used for the choice.

    Attributes
    ----------
    gaps, errors : the gap and the error of the model in use, and of the chosen model.
    gap_change, error_change : the chosen model's value minus that of the model in use.
    flips : the changed decisions in every group, and last those of everyone.
    level : the level of every interval.
    looks : the number of candidates that the intervals are simultaneous over.
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
        """``smaller`` or ``larger`` if the chosen one's gap surely is, else ``open``."""
        _, lower, upper = self.gap_change
        return "smaller" if upper < 0 else "larger" if lower > 0 else "open"


def compare_models(
    rows: SharedRows, metric: Metric, *, level: float = 0.95, looks: int = 1
) -> BothModels:
    """Return the comparison of two models on rows that were not used for the choice.

    Parameters
    ----------
    rows : predictions (n, 2) of the model in use and of the chosen one, in one split.
    looks : the number of candidates that these rows have judged, this one among them.
    """
    notes: list[str] = []
    level_of_each = 1 - (1 - level) / looks
    in_use, chosen = estimate_every_run(rows, metric, notes, level=level_of_each)
    changes = [
        _change(rows, goal, level_of_each)
        for goal in (Goal(metric), Goal(metrics_of(BINARY)["error_rate"]))
    ]
    return BothModels(
        metric=metric,
        people=len(rows.row),
        gaps=(_estimate(in_use[0]), _estimate(chosen[0])),
        errors=(_estimate(in_use[1]), _estimate(chosen[1])),
        gap_change=changes[0],
        error_change=changes[1],
        flips=_count_flips(rows, level_of_each),
        level=level,
        looks=looks,
        notes=notes,
    )


def _estimate(judged: Judged) -> Estimate:
    return judged.value, *judged.naive


def _change(rows: SharedRows, goal: Goal, level: float) -> Estimate:
    """Return a metric of the second model minus that of the first, on the same rows."""
    first, second = (_rows_of_model(rows, model_index) for model_index in (0, 1))
    first_estimate, second_estimate = goal.estimate(first), goal.estimate(second)
    tail = (1 - level) / 2
    lower, upper = gain_limits(first_estimate, second_estimate, first.judging_rows(), (tail, tail))
    return second_estimate.value - first_estimate.value, max(-upper, -1.0), min(-lower, 1.0)


def _rows_of_model(rows: SharedRows, model_index: int) -> GoalRows:
    """Return the rows with the predictions of one of the models, as one split."""
    return GoalRows(
        np.zeros(len(rows.row), np.int64),
        rows.row,
        rows.target.astype(float),
        rows.group,
        {"prediction": rows.prediction[:, model_index].astype(float)},
        len(rows.names),
    )


def _count_flips(rows: SharedRows, level: float) -> list[Flips]:
    """Return the numbers of changed decisions in every group, and last of everyone."""
    in_use, chosen = rows.prediction.T
    groups = [(name, rows.group == code) for code, name in enumerate(rows.names)]
    flips = []
    for name, members in [*groups, ("", np.ones(len(in_use), bool))]:
        people = int(members.sum())
        if people:
            gained, lost = (
                int((members & (in_use == before) & (chosen != before)).sum()) for before in (0, 1)
            )
            changed = np.array([gained + lost], float)
            limits = rate_limits(changed, np.array([people], float), level=level)
            value, lower, upper = (float(limit[0]) for limit in limits)
            flips.append(Flips(name, people, gained, lost, (value, lower, upper)))
    return flips


@dataclass(frozen=True)
class SearchCertificate:
    """An upper limit of what a further search of the same kind can gain.

    Attributes
    ----------
    tried : the number of candidates drawn.
    chance : upper limit of the probability that one more candidate would be chosen instead.
    seen : the gap of the chosen candidate on the validation rows, by which candidates are chosen.
    gap : upper limit of its true gap; further search can lower it to 0 at most.
    level : the joint confidence level of all limits of the certificate.
    whole : whether every candidate was tried.
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
        """Return the certificate after some draws.

        Parameters
        ----------
        gap : the upper limit of a two-sided interval of this level: it uses half of the risk
            1 - `level`, and the other half is left for the chance.
        """
        chance = 0.0 if whole else float(chance_of_better(tried, risk=(1 - level) / 2))
        return cls(tried, chance, seen, gap, level, whole)

    def gain(self, more: int) -> float:
        """Return the most by which further draws lower the true gap, on average."""
        return float(further_gain(self.gap, self.chance, more=more))

    def seen_gain(self, more: int) -> float:
        """Return the most by which further draws lower the gap on validation rows, on average."""
        return float(further_gain(self.seen, self.chance, more=more))


# Why a search ended.
WORTH, WHOLE, TRIALS, SECONDS = "worth", "whole", "trials", "cpu_seconds"


@dataclass(frozen=True)
class Searched:
    """The draws of a search, and why it ended.

    Attributes
    ----------
    families : the families that are drawn from, with equal probability.
    left_out : combination of components -> why it was not drawn from.
    ended : the reason, one of `WORTH`, `WHOLE`, `TRIALS` and `SECONDS`.
    worth : the expected lowering of the gap below which the search stops.
    folder : the folder of the study; the same command continues it.
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
    """The result of the search for a less discriminatory alternative.

    Attributes
    ----------
    tried : the model in use first, then every candidate.
    chosen_index : the position of the chosen model in `tried`; 0 if no candidate is better.
    within : how much larger its error may be than that of the model in use.
    chosen_by : the number of validation rows used for the choice.
    runs : the ids of the runs of the model in use, and of the chosen one if it is another.
    label : the meaning of label 1.
    read : the protected attributes that are also features of all these models.
    search : how candidates were drawn; None if they are finished runs.
    """

    data: str
    protect: str
    tried: Sequence[Tried]
    chosen_index: int
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
        """The chosen one."""
        return self.tried[self.chosen_index]

    def allows(self, tried: Tried) -> bool:
        """Return whether a candidate's error on the validation rows is small enough."""
        return bool(tried.error <= self.in_use.error + self.within + 1e-9)

    @property
    def without_group(self) -> Tried | None:
        """The candidate that would be chosen among those that need no group at prediction time."""
        allowed = [
            self.in_use,
            *(candidate for candidate in self.tried[1:] if not candidate.group_at_prediction),
        ]
        index = least_gap(
            [candidate.gap for candidate in allowed],
            [candidate.error for candidate in allowed],
            within=self.within,
        )
        return allowed[index] if index else None


def alternative_among_runs(
    shared: Shared,
    metric: Metric,
    *,
    within: float,
    level: float,
    in_use_is_named: bool,
    names: Mapping[str, str],
    without_group: bool = False,
) -> Alternative:
    """Return the less discriminatory alternative among finished runs.

    Parameters
    ----------
    in_use_is_named : whether the first run is the model in use; else the model in use is the run
        of least error on the validation rows.
    names : a label for each run, by id.
    without_group : whether runs that need a person's group at prediction time are left out.

    Raises
    ------
    UserError : no validation rows apart from the test rows, or several splits.
    """
    choosing = _validation_rows(shared)
    goals = Goal(metric), Goal(metrics_of(BINARY)["error_rate"])
    # Gap and error of every run on the validation rows.
    values = np.array(
        [
            [goal.estimate(_rows_of_model(choosing, run_index)).value for goal in goals]
            for run_index in range(len(shared.runs))
        ]
    )
    in_use = 0 if in_use_is_named else int(values[:, 1].argmin())
    run_order = _in_use_first(shared.runs, in_use, without_group=without_group)
    if len(run_order) < 2:
        raise UserError("without_group=true leaves no run beside the model in use: leave it out")
    tried = []
    for run_index in run_order:
        run = shared.runs[run_index]
        gap, error = values[run_index]
        tried.append(
            Tried(
                what=run.id,
                label=f"{names[run.id]} ({run.id})",
                gap=float(gap),
                error=float(error),
                group_at_prediction=_needs_group(run),
            )
        )
    chosen_index = least_gap(*values[run_order].T, within=within)
    chosen = run_order[chosen_index]
    rows = replace(shared.judging, prediction=shared.judging.prediction[:, [in_use, chosen]])
    pair = [shared.runs[run_index] for run_index in dict.fromkeys((in_use, chosen))]
    return Alternative(
        data=pair[0].choices["dataset"],
        protect=pair[0].protect,
        tried=tried,
        chosen_index=chosen_index,
        within=within,
        chosen_by=len(choosing.row),
        comparison=compare_models(rows, metric, level=level),
        runs=tuple(run.id for run in pair),
        label=pair[0].people().about.positive_label or "1",
        notes=[*shared.notes, *([] if in_use_is_named else [_UNNAMED])],
    )


def _needs_group(run: Run) -> bool:
    """Return whether a run needs a person's group at prediction time."""
    return bool(run.environment.get("group_at_prediction", False))


def _in_use_first(runs: Sequence[Run], in_use: int, *, without_group: bool) -> list[int]:
    """Return the positions of the runs that may be chosen, that of the model in use first.

    Parameters
    ----------
    without_group : whether other runs that need a group at prediction time are left out.
    """
    others = [
        index
        for index, run in enumerate(runs)
        if index != in_use and not (without_group and _needs_group(run))
    ]
    return [in_use, *others]


def _validation_rows(shared: Shared) -> SharedRows:
    """Return the validation rows of runs of a single fit.

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
    return shared.choosing


_UNNAMED = (
    "No run was named as the model in use: it is the one of least error on the validation rows "
    "(in_use=RUN names another)."
)


# The result of tuning: the chosen trial, the gain that validation rows promise, and the test.
#
# Test rows are read here, and for two runs alone: that of the chosen trial, and that of the
# untuned default. Both are ordinary runs of the results folder, evaluated like any other.


@dataclass(frozen=True)
class PromisedGain:
    """The gain in one objective that validation rows promise of the chosen trial.

    Attributes
    ----------
    goal : the objective.
    default, value : the metric of the untuned default and of the chosen trial.
    naive, corrected : intervals of the value, without and with correction for the choice.
    gain : how much better the chosen trial is than the default on these rows.
    expected : the interval of its expected gain on new people, corrected for the choice.
    fresh : prediction interval of the gain on the test rows, including their sampling error.
    """

    goal: Goal
    default: float
    value: float
    naive: LowerAndUpper
    corrected: LowerAndUpper
    gain: float
    expected: LowerAndUpper
    fresh: LowerAndUpper


@dataclass(frozen=True)
class GainOnTestRows:
    """The gain in one objective on test rows, with the values of both runs and its interval."""

    default: float
    value: float
    gain: float
    interval: LowerAndUpper


@dataclass(frozen=True, eq=False)
class TuningResult:
    """The result of a study.

    Attributes
    ----------
    trials : all trials, the untuned default first.
    position : the index in `trials` of the chosen trial; it is never the default.
    level : the level of all intervals.
    test_rows : the number of test rows.
    promises : the gain that validation rows promise, one entry for each objective.
    tested : the gain on test rows, one entry for each objective; empty until they are read.
    """

    trials: Sequence[Trial]
    position: int
    level: float
    test_rows: int
    promises: tuple[PromisedGain, ...]
    tested: tuple[GainOnTestRows, ...] = ()

    @property
    def best(self) -> Trial:
        """The chosen trial."""
        return self.trials[self.position]


def choose_trial(trials: Sequence[Trial], goals: Sequence[Goal], tuning: Tuning) -> int:
    """Return the position of the finished trial with the smallest weighted sum of objectives.

    Raises
    ------
    UserError : no trial has a value.
    """
    scores = np.full(len(trials), np.inf)
    for position, trial in enumerate(trials):
        if position and not (trial.error or trial.stopped):
            objectives = np.array([estimate.value for estimate in trial.estimates(goals)])
            scores[position] = float(tuning.score(objectives))
    if not np.isfinite(scores).any():
        if len(trials) == 1:
            raise UserError("no trial was begun: cpu_seconds= was spent on the untuned default")
        errors = [trial.error for trial in trials if trial.error]
        why = f"; the first error: {errors[0]}" if errors else ": all were stopped early"
        raise UserError(f"none of {len(trials) - 1} trials has a value{why}")
    return int(scores.argmin())


def estimate_promise(
    trials: Sequence[Trial], goals: Sequence[Goal], tuning: Tuning, *, test_rows: int
) -> TuningResult:
    """Choose a trial, and estimate the gain that validation rows promise of it.

    Parameters
    ----------
    trials : all trials, the untuned default first.
    test_rows : the number of test rows that will be read.
    """
    position = choose_trial(trials, goals, tuning)
    default = trials[0].estimates(goals)
    chosen = trials[position].estimates(goals)
    tails_of_goals = _tails_of_goals(_distinct(trials), goals, tuning, test_rows)
    judging_rows = _rows_of(trials[0]).judging_rows(test_rows)
    uncorrected = _uncorrected_tails(tuning.level)
    promises = []
    for goal, default_estimate, chosen_estimate, (gain, fresh, value) in zip(
        goals, default, chosen, tails_of_goals, strict=True
    ):
        naive = value_limits(chosen_estimate, judging_rows, uncorrected)
        corrected = value_limits(chosen_estimate, judging_rows, value)
        promises.append(
            PromisedGain(
                goal=goal,
                default=goal.sign * default_estimate.value,
                value=goal.sign * chosen_estimate.value,
                naive=_clip_to_range(goal, naive),
                corrected=_clip_to_range(goal, corrected),
                gain=default_estimate.value - chosen_estimate.value,
                expected=gain_limits(default_estimate, chosen_estimate, judging_rows, gain),
                fresh=gain_limits(
                    default_estimate, chosen_estimate, judging_rows, fresh, fresh=True
                ),
            )
        )
    return TuningResult(trials, position, tuning.level, test_rows, tuple(promises))


def _rows_of(trial: Trial) -> GoalRows:
    """Return the rows that a trial was judged on; a trial without an error has them."""
    assert trial.rows is not None
    return trial.rows


def _uncorrected_tails(level: float) -> Tails:
    """Return the tails of an interval without a correction for the choice."""
    return (1 - level) / 2, (1 - level) / 2


def _clip_to_range(goal: Goal, limits: LowerAndUpper) -> LowerAndUpper:
    """Return limits on the metric's own scale, clipped to its range."""
    lower, upper = limits if goal.sign > 0 else (-limits[1], -limits[0])
    least = 0.0 if goal.metric.rates else float(goal.metric.least)
    return max(lower, least), min(upper, 1.0 if goal.metric.rates else np.inf)


def _distinct(trials: Sequence[Trial]) -> list[Trial]:
    """Return the default and the trials without errors, one for each setting of the options."""
    trial_of_values = {
        str(sorted(trial.values.items())): trial for trial in trials if not trial.error
    }
    return list(trial_of_values.values())


def _tails_of_goals(
    trials: Sequence[Trial], goals: Sequence[Goal], tuning: Tuning, test_rows: int
) -> list[tuple[Tails, Tails, Tails]]:
    """Return the tails of each goal's limits for the trial chosen; the default comes first."""
    estimates = [trial.estimates(goals) for trial in trials]
    codes = np.unique(_rows_of(trials[0]).unit)
    judging_rows = [_judging_rows(_rows_of(trial), codes) for trial in trials]
    noise = stack_noise(estimates, judging_rows, len(codes))
    values = np.array(
        [[estimate.value for estimate in trial_estimates] for trial_estimates in estimates]
    )
    unseen = np.array(
        [[estimate.least_of_value for estimate in trial_estimates] for trial_estimates in estimates]
    )
    fresh = np.array(
        [
            [
                _fresh_variance(*pair, test_rows)
                for pair in zip(estimates[0], trial_estimates, strict=True)
            ]
            for trial_estimates in estimates[1:]
        ]
    )
    weights = np.array(tuning.weights or [1.0] * len(goals))
    return chosen_tails(
        values[1:],
        values[0],
        noise=noise[1:],
        default_noise=noise[0],
        unseen=unseen[1:],
        fresh=fresh,
        weights=weights,
        level=tuning.level,
    )


def _judging_rows(rows: GoalRows, codes: NDArray[np.int64]) -> JudgingRows:
    """Return which people and which fold each row is of, people as positions in `codes`."""
    return JudgingRows(np.searchsorted(codes, rows.unit).astype(np.int64), rows.fold)


def _fresh_variance(default: GoalEstimate, tuned: GoalEstimate, test_rows: int) -> float:
    """Return the variance of the gain over draws of `test_rows` fresh rows."""
    count = len(tuned.linear)
    scaled = default.linear[:count] * (len(default.linear) / count)
    return float(((scaled - tuned.linear) ** 2).sum() + tuned.least_of_value) * count / test_rows


def add_test_results(
    tuned: TuningResult, goals: Sequence[Goal], default: PlannedRun, chosen: PlannedRun
) -> TuningResult:
    """Return the result with the gain on the test rows of both finished runs."""
    default_rows = _read_test_rows(default)
    chosen_rows = _read_test_rows(chosen)
    judging_rows = default_rows.judging_rows()
    uncorrected = _uncorrected_tails(tuned.level)
    tested = []
    for goal in goals:
        default_estimate = goal.estimate(default_rows)
        chosen_estimate = goal.estimate(chosen_rows)
        tested.append(
            GainOnTestRows(
                default=goal.sign * default_estimate.value,
                value=goal.sign * chosen_estimate.value,
                gain=default_estimate.value - chosen_estimate.value,
                interval=gain_limits(default_estimate, chosen_estimate, judging_rows, uncorrected),
            )
        )
    return replace(tuned, tested=tuple(tested))


def _read_test_rows(run: PlannedRun) -> GoalRows:
    """Return the test rows of a finished run, with its predictions."""
    table = run.folder.predictions()
    table = table[table["part"] == TEST]
    keys = ("repeat", "fold", "part", "row")
    folds = []
    for number, (_, fold_table) in enumerate(table.groupby(["repeat", "fold"])):
        columns = {
            str(name): fold_table[name].to_numpy(float) for name in fold_table if name not in keys
        }
        rows = fold_table["row"].to_numpy(np.intp)
        folds.append(label_rows(run.dataset, run.study.protect, rows, columns, number))
    return together(folds)
