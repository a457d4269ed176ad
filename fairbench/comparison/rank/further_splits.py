"""Where further fits are spent: methods that may be the best, on the tasks whose splits scatter.

Fits are made in rounds. A round gives every method that still may be the best further splits of
some tasks; then all pairs of all methods are compared again, and whatever is surely worse than
another method is dropped for good. Round r may be wrong with chance 5 % / (r (r + 1)), which adds
up to 5 % over all rounds, however many there are.

Which tasks get splits in which round follows from the spread of the first round's splits around
each method's mean, and from what a split costs, and from no later score. Spreads say nothing of
which method is ahead, as long as splits scatter alike to either side: turning all deviations round
leaves them as they are. So the number of splits behind a comparison does not depend on how it came
out, and each round's comparison is what it would be of splits decided upon in advance. Dropping
methods changes no comparison of those that remain, and pairs of dropped ones count among those that
are compared at once, so that levels do not depend on who is left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from fairbench.comparison.rank.answer import WRONG, PairedDifference, Ranking, units_of
from fairbench.comparison.rank.question import RankOptions
from fairbench.comparison.rank.table import ScoreTable
from fairbench.inference.comparing.resolution import units_needed, variance_parts
from fairbench.inference.comparing.sign_flips import as_student

SHRUNK = 0.8  # each round reduces the variance from splits to at most this share of it
_STEP = 5  # each step gives a task one fifth more splits
_SURE = 0.05  # error probability of the bound on the spread between families


def wrong_of_round(number: int) -> float:
    """Return the chance with which round `number`, from 1, may drop the best method."""
    return WRONG / (number * (number + 1))


@dataclass(frozen=True)
class TaskNoise:
    """How much of the variance of means is due to a task's splits, and what a split costs.

    Attributes
    ----------
    task : the name of the task.
    splits : the number of its splits in the first round.
    noise : variance of one split's score around the method's mean, without what all methods share.
    weight : the task's weight in the mean over families.
    seconds : the seconds that one split of one method takes, the mean over methods.
    """

    task: str
    splits: int
    noise: float
    weight: float
    seconds: float

    def variance(self, splits: int) -> float:
        """Return the variance that the task adds to a mean if it has so many splits."""
        return self.weight**2 * self.noise / splits


def noise_of_tasks(
    table: ScoreTable, options: RankOptions, seconds: Mapping[str, float]
) -> list[TaskNoise]:
    """Return the noise of every task that has two splits or more.

    Parameters
    ----------
    seconds : task -> the seconds that a split of one method takes.

    Notes
    -----
    In M methods' scores of one task, split s deviates by d_ms from the mean over methods in that
    split. The noise is the mean over methods of the variance of d_ms over splits, times
    M / (M - 1) as the mean over methods holds each method itself.
    """
    (scores,) = table.scores
    units = units_of(table, options)
    values = scores.larger_is_better
    families = np.bincount(units.unit)
    weights = 1 / len(families) / families[units.unit]
    if not units.equal_weights:
        weights = np.full(len(units.unit), 1 / len(units.unit))
    noises = []
    for number, name in enumerate(table.tasks):
        task_values = values[:, units.group == number]
        task_values = task_values[:, np.isfinite(task_values).any(axis=0)]
        # Methods with every split of the first round.
        task_values = task_values[np.isfinite(task_values).all(axis=1)]
        if task_values.shape[1] < 2 or len(task_values) < 2:
            continue
        deviations = task_values - task_values.mean(axis=0)
        noise = (
            float(deviations.var(axis=1, ddof=1).mean()) * len(task_values) / (len(task_values) - 1)
        )
        splits = task_values.shape[1]
        weight = float(weights[number])
        noises.append(TaskNoise(name, splits, noise, weight, seconds[name]))
    return noises


def splits_of_round(tasks: Sequence[TaskNoise], number: int) -> dict[str, int]:
    """Return the number of splits of each task after round `number`, counted from 1.

    Every round leaves 80 % of the variance that splits bring to a mean, at the least cost: the
    next splits are those that take most of it away for each second.
    """
    splits = {task.task: task.splits for task in tasks}
    total_variance = sum(task.variance(task.splits) for task in tasks)
    variance_left = total_variance
    target = total_variance * SHRUNK ** (number - 1)
    noisy = [task for task in tasks if task.noise > 0]
    while variance_left > target * (1 + 1e-12) and noisy:

        def gain(task: TaskNoise) -> float:
            now = splits[task.task]
            next_splits = now + -(-now // _STEP)
            reduction = task.variance(now) - task.variance(next_splits)
            return reduction / ((next_splits - now) * max(task.seconds, 1e-9))

        best = max(noisy, key=gain)
        now = splits[best.task]
        splits[best.task] = now + -(-now // _STEP)
        variance_left += best.variance(splits[best.task]) - best.variance(now)
    return splits


def seconds_of(
    tasks: Sequence[TaskNoise], before: Mapping[str, int], after: Mapping[str, int], methods: int
) -> float:
    """Return about how many seconds of fits a round takes for so many methods."""
    return methods * sum(
        task.seconds * (after[task.task] - before[task.task])
        for task in tasks
        if after[task.task] > before[task.task]
    )


@dataclass(frozen=True)
class RivalBound:
    """Whether further splits of the same tasks can tell a rival from the leader.

    Attributes
    ----------
    rival : the name of the rival.
    difference : the leader's score minus the rival's.
    units : the number of families, or of tasks.
    floor : the smallest half width that the interval can surely have, however many the splits.
    units_needed : the number of units that would tell the two apart in four of five cases, if they
        differ as they seem to, or by epsilon if that is more; infinite if no number would.
    """

    rival: str
    difference: PairedDifference
    units: int
    floor: float
    units_needed: float

    @property
    def is_out_of_reach(self) -> bool:
        """Whether no number of splits tells the two apart, if they differ as they seem to."""
        return abs(self.difference.value) < self.floor


def rival_bounds(
    answer: Ranking, table: ScoreTable, options: RankOptions, rivals: Sequence[str]
) -> list[RivalBound]:
    """Return for every rival of the leader how far splits can help.

    The variance of a paired difference over families is bounded from below by a chi-square limit at
    95 %, less what its splits bring; what is left, no number of splits takes away.
    """
    values = answer.scores.larger_is_better
    units = units_of(table, options)
    index_of = dict(zip(answer.methods, answer.order.tolist(), strict=True))
    leader = next(name for name in answer.methods if name in {answer.leader, *rivals})
    bounds = []
    for rival in rivals:
        if rival == leader:
            continue
        difference = answer.difference(leader, rival)
        parts = variance_parts(
            values[index_of[leader]] - values[index_of[rival]], units.group, units.unit
        )
        freedom = max(difference.units - 1, 1)
        variance, least_variance = 0.0, 0.0
        if parts is not None:
            variance = max(parts.unit - parts.noise, 0.0)
            lower_limit = parts.unit * freedom / float(special.chdtri(freedom, _SURE))
            least_variance = max(lower_limit - parts.noise, 0.0)
        quantile = float(as_student(answer.held.critical, freedom))
        gap = max(abs(difference.value), answer.epsilon)
        needed = units_needed(np.array([np.sqrt(variance)]), gap, answer.held.critical)
        floor = quantile * float(np.sqrt(least_variance / difference.units))
        bounds.append(RivalBound(rival, difference, difference.units, floor, float(needed[0])))
    return bounds
