"""Probabilities that each method is the best, or near the best, on a new task.

Nothing is assumed of the scores: a new task is like one of those observed, and the share of them on
which a method came near the best is counted. With few tasks such shares are too extreme. They are
therefore shrunk towards those of the other methods by a beta-binomial model, whose two parameters
are learned from all methods: the more similar the shares, the more they are shrunk. Few units
cannot show how much to shrink: with fewer than :data:`FEW`, a probability over :data:`MOST_OF_FEW`
is printed as that or more. The probabilities are about scores measured like those observed, with as
many splits or questions.

If a method was not run on a task, its difference from the others is drawn from the tasks that it
was run on, so that every method has all rivals everywhere. A task with drawn rivals is less
informative: a method's tasks are weighted by the share of the variance of its lead over the best
rival that is not due to the draws, the share of information that is not missing (Orchard and
Woodbury 1972).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.random import Generator
from scipy import special

from fairbench.core.arrays import Floats, Mask
from fairbench.inference.survey import sums
from fairbench_rank.sign_flips import FEWEST, Codes, as_student

FEW, MOST_OF_FEW = 9, 0.65
_FILLINGS = 20  # draws of scores that are missing
_STRENGTHS = np.geomspace(0.3, 300, 16)  # how many units the other methods are worth
_MEANS = 24  # values of the mean of the beta distribution that are weighed
_FEW_NEAR = 2  # a power by which few methods near the best are likelier than many


@dataclass(frozen=True, eq=False)
class OnNewTask:
    """The probabilities of M methods on a new task.

    Attributes
    ----------
    best : (M,) probabilities to be the best, which equal methods share.
    near : (M,) probabilities to be near the best.
    few : whether there were so few units that a probability of `MOST_OF_FEW` to be near stands for
        that or more.
    """

    best: Floats
    near: Floats
    few: bool = False


def on_new_task(values: Floats, unit: Codes, *, epsilon: float, generator: Generator) -> OnNewTask:
    """Return the probabilities to be the best on a task of a new unit, or within `epsilon` of it.

    Parameters
    ----------
    values : (M, T) scores of methods on tasks, larger is better. Scores that are NaN are drawn from
        how the method differs from the others on its other tasks.
    unit : (T,) whole numbers from 0: the family of each task, or the task. Units have equal
        weights.
    epsilon : the difference from the best within which a method is near it.
    generator : draws the scores that are missing.
    """
    measured = np.isfinite(values)
    fillings = 1 if measured.all() else _FILLINGS
    effects = method_effects(values, measured.astype(float), 20)
    # Means over fillings, (M, T): the shares in which each method is best and near the best, its
    # lead over the best rival, and the square of the lead.
    means = np.zeros((4, *values.shape))
    for _ in range(fillings):
        rivals = values
        if fillings > 1:
            rivals = _fill_missing(values, measured, effects, generator)
        largest = rivals.max(axis=0)
        is_best = rivals >= largest
        is_near = rivals >= largest - epsilon - 1e-12
        lead = _lead(rivals)
        means += np.stack([is_best / is_best.sum(axis=0), is_near, lead, lead**2]) / fillings
    best_share, near_share, mean_lead, squared_lead = means
    units = int(unit.max()) + 1
    n_tasks = sums(measured.astype(float), unit, units)
    n_units = (n_tasks > 0).sum(axis=1).astype(float)

    def mean_over_units(share: Floats) -> Floats:
        by_unit = sums(np.where(measured, share, 0.0), unit, units)
        return np.asarray((by_unit / np.maximum(n_tasks, 1)).sum(axis=1) / np.maximum(n_units, 1))

    size = n_units * _explained_share(mean_lead, squared_lead, measured, fillings)
    near = _shrink_together(mean_over_units(near_share) * size, size)
    if units < FEW:
        near = np.minimum(near, MOST_OF_FEW)
    best = _best_probabilities(mean_over_units(best_share) * size, size)
    return OnNewTask(best, near, few=units < FEW)


def _lead(rivals: Floats) -> Floats:
    """Return by how much each of several methods is ahead of the best of the others, (M, T)."""
    second_best, best = np.partition(rivals, len(rivals) - 2, axis=0)[-2:]
    with np.errstate(invalid="ignore"):
        ahead = rivals - np.where(rivals >= best, second_best, best)
    return np.where(np.isfinite(ahead), ahead, 0.0)


def _explained_share(mean: Floats, square: Floats, measured: Mask, fillings: int) -> Floats:
    """Return the share of the variance of each method's lead that is not due to drawn rivals, (M,).

    Parameters
    ----------
    mean, square : (M, T) means over the fillings of the lead on the best rival, and of its square.
    measured : (M, T) where there are scores.
    fillings : how often missing scores were drawn.
    """
    if fillings == 1:
        return np.ones(len(mean))
    n_tasks = np.maximum(measured.sum(axis=1), 1)

    def mean_over_tasks(array: Floats) -> Floats:
        return np.asarray(np.where(measured, array, 0.0).sum(axis=1) / n_tasks)

    by_draws = mean_over_tasks((square - mean**2) * fillings / (fillings - 1))
    variance = np.maximum(mean_over_tasks(square) - mean_over_tasks(mean) ** 2, by_draws)
    share = np.divide(by_draws, variance, out=np.zeros_like(by_draws), where=variance > 0)
    return np.asarray(1 - share)


def method_effects(values: Floats, weight: Floats, steps: int) -> Floats:
    """Return the effects (M,) of methods, where a score is a method's effect plus a unit's.

    They are fitted by least squares: a unit's effect is the weighted mean over methods of what
    their scores are above the methods' effects, and a method's that over units, in turn.

    Parameters
    ----------
    values, weight : (M, U) the scores, and their weights; 0 where there is none.
    """
    filled, effects = np.where(weight > 0, values, 0.0), np.zeros(len(values))
    of_unit, of_method = (np.maximum(weight.sum(axis=axis), 1e-300) for axis in (0, 1))
    for _ in range(steps):
        unit_effects = (weight * (filled - effects[:, None])).sum(axis=0) / of_unit
        effects = (weight * (filled - unit_effects)).sum(axis=1) / of_method
    return np.asarray(effects)


def _fill_missing(values: Floats, measured: Mask, effects: Floats, generator: Generator) -> Floats:
    """Return the scores, with a draw for each that is missing.

    A draw is the method's effect, plus how much the methods that were run on the task are above
    their own effects there, plus the method's lead on the same methods on another task, drawn at
    random. A draw from a model's residuals would vary too little: a residual is a part of its
    task's mean.
    """
    filled = values.copy()
    above_effect = np.where(measured, values - effects[:, None], 0.0)
    for method in np.flatnonzero(~measured.all(axis=1)):
        present, missing = np.flatnonzero(measured[method]), np.flatnonzero(~measured[method])
        if not len(present):
            filled[method, missing] = -np.inf
            continue
        donor = generator.choice(present, len(missing))
        on_both = measured[:, missing] & measured[:, donor]
        n_methods = measured[:, missing].sum(axis=0)
        with np.errstate(invalid="ignore"):
            task_effect = above_effect[:, missing].sum(axis=0) / n_methods
            others_on_donor = np.where(on_both, above_effect[:, donor], 0.0)
            donor_effect = others_on_donor.sum(axis=0) / on_both.sum(axis=0)
        lead = above_effect[method, donor] - np.where(on_both.any(axis=0), donor_effect, 0.0)
        level = effects[method] + np.where(n_methods > 0, task_effect, 0.0)
        filled[method, missing] = level + lead
    return filled


def _shrink_together(count: Floats, size: Floats) -> Floats:
    """Return probabilities of methods that succeeded `count` of `size` times, (M,).

    Means and strengths of a beta prior are weighed by how well they explain all counts. Some method
    is always near the best, so that the mean is at least 1 / M.
    """
    least = 1 / len(count)
    mean = (least + (1 - least) * (np.arange(_MEANS) + 0.5) / _MEANS)[:, None]
    of_success, of_failure = _STRENGTHS * mean, _STRENGTHS * (1 - mean)
    success, failure = count[:, None, None], (size - count)[:, None, None]
    before = special.betaln(of_success, of_failure)
    likelihood = (special.betaln(of_success + success, of_failure + failure) - before).sum(axis=0)
    posterior = (of_success + success) / (_STRENGTHS + success + failure)
    prior = (1 - mean) ** _FEW_NEAR * _STRENGTHS / (_STRENGTHS + 1)
    weight = np.exp(likelihood - likelihood.max()) * prior
    return np.asarray((posterior * weight).sum(axis=(1, 2)) / weight.sum())


def _best_probabilities(count: Floats, size: Floats) -> Floats:
    """Return probabilities that sum to 1, of methods that were the best `count` of `size` times.

    With a symmetric Dirichlet prior, whose strength is weighed as above.
    """
    share = count / np.maximum(size, 1)
    total = float(size.max())
    wins = share * total / max(share.sum(), 1e-300)
    pseudo_counts = _STRENGTHS / len(count)
    likelihood = special.gammaln(_STRENGTHS) - special.gammaln(_STRENGTHS + total)
    of_none = special.gammaln(pseudo_counts)
    likelihood = likelihood + sum(special.gammaln(pseudo_counts + won) - of_none for won in wins)
    weight = np.exp(likelihood - likelihood.max())
    posterior = (wins[:, None] + pseudo_counts) / (total + _STRENGTHS)
    return np.asarray((posterior * weight).sum(axis=1) / weight.sum())


# How often another method has the best mean on fresh splits, tasks or questions.

SPLITS, UNITS = "splits", "units"
_HALVINGS = 100
_FEWER = 20  # halvings if there are more than `_MANY` numbers
_MANY = 10_000_000


def fresh_winner(
    values: Floats, group: Codes, unit: Codes, *, generator: Generator
) -> dict[str, Any] | None:
    """Halve the splits of all tasks at random, or the units where tasks have one cell each.

    Parameters
    ----------
    values : (M, C) larger is better; methods that lack a cell are left out.
    group : (C,) the task of each cell.
    unit : (K,) the unit of each task.

    Returns
    -------
    ``halved``, the splits of every task, or the units; ``overall``, the share of halvings in which
    two random halves of the cells have different methods with the best mean over all units;
    ``within_task``, the share of tasks and halvings in which the halves have different winners on
    the task, NaN where units were halved; and the number of ``methods`` that could win, those that
    were run everywhere. None with fewer than two complete methods or units.
    """
    full = values[np.isfinite(values).all(axis=1)]
    n_cells, n_tasks = np.bincount(group, minlength=len(unit)), np.bincount(unit)
    several = bool((n_cells > 1).all())
    if len(full) < 2 or (not several and len(n_tasks) < 2):
        return None
    order = np.argsort(group, kind="stable")
    full, group = (full - full.mean(axis=0))[:, order], group[order]
    # Of a split of a task: its position, by which the first half and the second are told apart.
    position = np.arange(len(group)) - np.searchsorted(group, np.arange(len(unit)))[group]
    in_halves = position < n_cells[group] // 2, position >= (n_cells[group] + 1) // 2

    def winners(cells: Codes, size: Codes) -> tuple[Codes, Floats]:
        """Return the best of each task in some cells, and what methods have over all units."""
        task_means = sums(full[:, cells], group[cells], len(unit)) / size
        return task_means.argmax(axis=0), sums(task_means, unit, len(n_tasks)) / n_tasks

    _, unit_means = winners(np.arange(len(group)), n_cells)
    differ = []
    for _ in range(_HALVINGS if full.size < _MANY else _FEWER):
        within = np.nan
        if several:
            shuffled = np.lexsort((generator.random(len(group)), group))
            found = [winners(shuffled[half], n_cells // 2) for half in in_halves]
            within = (found[0][0] != found[1][0]).mean()
            halves = [of_half for _, of_half in found]
        else:
            units = np.array_split(generator.permutation(len(n_tasks)), 2)
            halves = [unit_means[:, half] for half in units]
        winner, other_winner = (half.mean(axis=1).argmax() for half in halves)
        differ.append((winner != other_winner, within))
    overall, within_task = np.mean(differ, axis=0).tolist()
    told = {"halved": SPLITS if several else UNITS, "overall": overall}
    return {**told, "within_task": within_task, "methods": len(full)}


# How many more tasks, splits or questions would tell two methods apart.
#
# The variance of two methods' paired difference over units has two parts: the true differences
# between units, and the noise of the splits or questions that are averaged. More units reduce
# both, more splits only the noise. Splits that share rows have a part of their noise in common.
# That part varies from unit to unit like the true differences, and no number of splits reduces
# it.

POWER = 0.8  # the probability with which a planned comparison tells the two methods apart
MOST = 10_000_000  # the largest number of units that is planned
_SURE = 0.05  # error probability of the bound on the spread between units


def reach(units: Floats, critical: float) -> Floats:
    """Return the difference that is told from 0 with the power 0.8 by a number of units.

    It is in standard deviations of a unit's paired difference.

    Parameters
    ----------
    units : (...) numbers of units.
    critical : the normal quantile of the intervals.
    """
    freedom = np.maximum(units - 1, 1.0)
    quantiles: Floats = as_student(critical, freedom) + special.stdtrit(freedom, POWER)
    return np.asarray(quantiles / np.sqrt(units))


def usual_spread(error: Floats | float, units: Floats | float) -> Floats:
    """Return the sd of a unit's paired difference from the standard error of the mean.

    It is a little larger than the sample's, which with few units is too small more often than too
    large.
    """
    freedom = np.maximum(np.asarray(units, float) - 1, 1.0)
    return np.asarray(error * np.sqrt(units * freedom / (freedom - 2 / 3)))


def units_needed(spread: Floats, difference: float, critical: float) -> Floats:
    """Return the numbers of units (P,) that tell a true difference from 0 with the power 0.8.

    Parameters
    ----------
    spread : (P,) standard deviations of a unit's paired difference.
    difference : the true difference.
    critical : the normal quantile of the intervals.

    Returns
    -------
    The numbers; infinite where `MOST` units are too few.
    """
    wanted = np.broadcast_to(difference / np.maximum(spread, 1e-300), spread.shape)
    low, high = np.full(spread.shape, float(FEWEST) - 1), np.full(spread.shape, float(MOST))
    while (high - low > 1).any():
        middle = np.floor((low + high) / 2)
        enough = reach(middle, critical) <= wanted
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return np.where(reach(high, critical) <= wanted, high, np.inf)


# The variance of a unit's paired difference over units, and the part of it, at most all, that comes
# from splits or questions.
VarianceParts: TypeAlias = tuple[float, float]


def times_as_many(parts: VarianceParts, difference: float, units: float, critical: float) -> float:
    """Return the factor by which the same units need more splits to tell a difference from 0.

    Infinite where no number of splits is enough.
    """
    variance, noise = parts
    allowed = (difference / float(reach(np.asarray(units), critical))) ** 2
    left = allowed - (variance - noise)
    return noise / left if left > 0 else float("inf")


def least_half_width(parts: VarianceParts, units: int, critical: float) -> float:
    """Return the smallest half width that an interval can surely have, whatever the splits.

    The variance over units is bounded from below by a chi-square limit at 95 %, less what its
    splits bring; what is left, no number of splits takes away.
    """
    variance, noise = parts
    freedom = max(units - 1, 1)
    lower_limit = variance * freedom / float(special.chdtri(freedom, _SURE))
    return float(as_student(critical, freedom) * np.sqrt(max(lower_limit - noise, 0.0) / units))


def variance_parts(difference: Floats, group: Codes, unit: Codes) -> VarianceParts | None:
    """Return the parts of the variance of one pair's difference; None without two cells a task.

    Parameters
    ----------
    difference : (C,) the difference in every cell; NaN where there is none.
    group : (C,) the task of each cell.
    unit : (K,) the unit of each task.
    """
    cells = pd.DataFrame({"task": group, "value": difference}).dropna()
    tasks = cells.groupby("task")["value"].agg(["size", "mean", "var"])
    freedom, unit_of_task = tasks["size"] - 1, unit[tasks.index]
    means = tasks["mean"].groupby(unit_of_task).mean()
    if not freedom.any() or len(means) < 2:
        return None
    within = (tasks["var"] * freedom).sum() / freedom.sum()  # of tasks with one cell, too
    task_noise = (tasks["var"].fillna(within) / tasks["size"]).groupby(unit_of_task)
    noise = (task_noise.sum() / task_noise.size() ** 2).mean()
    variance = float(means.var())
    return variance, min(float(noise), variance)
