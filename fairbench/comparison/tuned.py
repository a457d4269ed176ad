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
from fairbench.experiments.tuning_trials import Trial, labelled
from fairbench.inference.comparing.selection import Tails
from fairbench.inference.comparing.tuned_gain import (
    GoalEstimate,
    Looks,
    Trials,
    gain_limits,
    stack_noise,
    value_limits,
)
from fairbench.results.predictions import TEST

Ends = tuple[float, float]


@dataclass(frozen=True)
class Promise:
    """What validation rows say of one objective of the chosen trial.

    Attributes
    ----------
    default, value : the values of the default and of the chosen trial.
    naive, corrected : intervals of the value, without and with correction for the choice.
    gain : how much better the chosen trial is than the default on these rows.
    expected : the interval of its expected gain on new people, corrected for the choice.
    fresh : prediction interval of the gain on the test rows, including their sampling error.
    """

    goal: Goal
    default: float
    value: float
    naive: Ends
    corrected: Ends
    gain: float
    expected: Ends
    fresh: Ends


@dataclass(frozen=True)
class Tested:
    """What test rows say of one objective: the values, and the gain with its own interval."""

    default: float
    value: float
    gain: float
    interval: Ends


@dataclass(frozen=True, eq=False)
class Tuned:
    """The answer of a study.

    Attributes
    ----------
    trials : the default first.
    place : of the chosen trial among them, never the default.
    level : of all intervals.
    test_rows : the number of test rows.
    promises, tested : for each objective.
    """

    trials: Sequence[Trial]
    place: int
    level: float
    test_rows: int
    promises: tuple[Promise, ...]
    tested: tuple[Tested, ...] = ()

    @property
    def best(self) -> Trial:
        """The chosen trial."""
        return self.trials[self.place]


def chosen_place(trials: Sequence[Trial], goals: Sequence[Goal], tuning: Tuning) -> int:
    """Return the position of the finished trial with the smallest weighted sum of objectives.

    Raises
    ------
    UserError : no trial has a value.
    """
    scores = np.full(len(trials), np.inf)
    for place, trial in enumerate(trials):
        if place and not (trial.error or trial.stopped):
            objectives = np.array([estimate.value for estimate in trial.estimates(goals)])
            scores[place] = float(tuning.score(objectives))
    if not np.isfinite(scores).any():
        if len(trials) == 1:
            raise UserError("no trial was begun: cpu_seconds= was spent on the untuned default")
        errors = [trial.error for trial in trials if trial.error]
        why = f"; the first error: {errors[0]}" if errors else ": all were stopped early"
        raise UserError(f"none of {len(trials) - 1} trials has a value{why}")
    return int(scores.argmin())


def promised(
    trials: Sequence[Trial], goals: Sequence[Goal], tuning: Tuning, *, test_rows: int
) -> Tuned:
    """Return the chosen trial, and what validation rows promise of it.

    Parameters
    ----------
    trials : the untuned default first.
    test_rows : the number of test rows that will be read.
    """
    place = chosen_place(trials, goals, tuning)
    default, chosen = (trials[trial_place].estimates(goals) for trial_place in (0, place))
    distinct_trials = _distinct(trials)
    tails_of_goals = _as_candidates(distinct_trials, goals, tuning, test_rows).tails(
        level=tuning.level
    )
    rows = _rows(trials[0])
    looks, plain = rows.looks(test_rows), _plain(tuning.level)
    promises = []
    for goal, default_estimate, chosen_estimate, tails_of_goal in zip(
        goals, default, chosen, tails_of_goals, strict=True
    ):
        limits = [
            value_limits(chosen_estimate, looks, tails_of_value)
            for tails_of_value in (plain, tails_of_goal.value)
        ]
        naive, corrected = (_clipped(goal, limit) for limit in limits)
        promises.append(
            Promise(
                goal,
                goal.sign * default_estimate.value,
                goal.sign * chosen_estimate.value,
                naive,
                corrected,
                default_estimate.value - chosen_estimate.value,
                gain_limits(default_estimate, chosen_estimate, looks, tails_of_goal.gain),
                gain_limits(
                    default_estimate, chosen_estimate, looks, tails_of_goal.fresh, fresh=True
                ),
            )
        )
    return Tuned(trials, place, tuning.level, test_rows, tuple(promises))


def _rows(trial: Trial) -> GoalRows:
    assert trial.rows is not None
    return trial.rows


def _plain(level: float) -> Tails:
    return Tails((1 - level) / 2, (1 - level) / 2)


def _clipped(goal: Goal, ends: Ends) -> Ends:
    """Return limits on the metric's own scale, clipped to its range."""
    lower, upper = ends if goal.sign > 0 else (-ends[1], -ends[0])
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
    codes = np.unique(_rows(trials[0]).unit)
    looks = [_looks(_rows(trial), codes) for trial in trials]
    noise = stack_noise(estimates, looks, len(codes))
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


def _looks(rows: GoalRows, codes: NDArray[np.int64]) -> Looks:
    return Looks(np.searchsorted(codes, rows.unit).astype(np.int64), rows.fold)


def _fresh_variance(default: GoalEstimate, tuned: GoalEstimate, test_rows: int) -> float:
    """Return the variance of the gain over draws of `test_rows` fresh rows."""
    count = len(tuned.linear)
    scaled = default.linear[:count] * (len(default.linear) / count)
    return float(((scaled - tuned.linear) ** 2).sum() + tuned.least_of_value) * count / test_rows


def judged(tuned: Tuned, goals: Sequence[Goal], default: PlannedRun, chosen: PlannedRun) -> Tuned:
    """Return the answer with what the test rows say of the two runs, which are finished."""
    default_rows, chosen_rows = (_tested(run) for run in (default, chosen))
    looks, plain = default_rows.looks(), _plain(tuned.level)
    tested = []
    for goal in goals:
        default_estimate, chosen_estimate = goal.estimate(default_rows), goal.estimate(chosen_rows)
        tested.append(
            Tested(
                goal.sign * default_estimate.value,
                goal.sign * chosen_estimate.value,
                default_estimate.value - chosen_estimate.value,
                gain_limits(default_estimate, chosen_estimate, looks, plain),
            )
        )
    return replace(tuned, tested=tuple(tested))


def _tested(run: PlannedRun) -> GoalRows:
    """Return what a finished run predicts of its test rows."""
    table = run.folder.predictions()
    table = table[table["part"] == TEST]
    keys = ("repeat", "fold", "part", "row")
    parts = []
    for number, (_, fold_table) in enumerate(table.groupby(["repeat", "fold"])):
        columns = {
            str(name): fold_table[name].to_numpy(float) for name in fold_table if name not in keys
        }
        rows = fold_table["row"].to_numpy(np.intp)
        parts.append(labelled(run.dataset, run.study.protect, rows, columns, number))
    return together(parts)
