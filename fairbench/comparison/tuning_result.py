"""The result of tuning: the chosen trial, the gain that validation rows promise, and the test.

Test rows are read here, and for two runs alone: that of the chosen trial, and that of the untuned
default. Both are ordinary runs of the results folder, evaluated like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fairbench.core.errors import UserError
from fairbench.evaluation.tuning_goals import Goal, GoalRows, together
from fairbench.experiments.pipeline import PlannedRun
from fairbench.experiments.tuning_settings import Tuning
from fairbench.experiments.tuning_trials import Trial, label_rows
from fairbench.inference.comparing.selection import Tails
from fairbench.inference.comparing.tuned_gain import (
    GoalEstimate,
    JudgingRows,
    Trials,
    gain_limits,
    stack_noise,
    value_limits,
)
from fairbench.results.predictions import TEST

LowerAndUpper = tuple[float, float]


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
    candidates = _as_candidates(_distinct(trials), goals, tuning, test_rows)
    tails_of_goals = candidates.tails(level=tuning.level)
    judging_rows = _rows_of(trials[0]).judging_rows(test_rows)
    uncorrected = _uncorrected_tails(tuning.level)
    promises = []
    for goal, default_estimate, chosen_estimate, tails_of_goal in zip(
        goals, default, chosen, tails_of_goals, strict=True
    ):
        naive = value_limits(chosen_estimate, judging_rows, uncorrected)
        corrected = value_limits(chosen_estimate, judging_rows, tails_of_goal.value)
        promises.append(
            PromisedGain(
                goal=goal,
                default=goal.sign * default_estimate.value,
                value=goal.sign * chosen_estimate.value,
                naive=_clip_to_range(goal, naive),
                corrected=_clip_to_range(goal, corrected),
                gain=default_estimate.value - chosen_estimate.value,
                expected=gain_limits(
                    default_estimate, chosen_estimate, judging_rows, tails_of_goal.gain
                ),
                fresh=gain_limits(
                    default_estimate, chosen_estimate, judging_rows, tails_of_goal.fresh, fresh=True
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
    return Tails((1 - level) / 2, (1 - level) / 2)


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


def _as_candidates(
    trials: Sequence[Trial], goals: Sequence[Goal], tuning: Tuning, test_rows: int
) -> Trials:
    """Return the trials as candidates of the choice; the first of `trials` is the default."""
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
    return Trials(values[1:], values[0], noise[1:], noise[0], unseen[1:], fresh, weights)


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
