"""How often another method has the best mean on fresh splits, tasks or questions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairbench.core.arrays import Floats

SPLITS, UNITS = "splits", "units"
_HALVINGS = 100
_FEWER = 20  # halvings if there are more than `_MANY` numbers
_MANY = 10_000_000


@dataclass(frozen=True)
class FreshWinner:
    """How often two random halves of the cells have different methods with the best mean.

    Attributes
    ----------
    halved : what was halved: the splits of every task, or the units.
    overall : the share of halvings in which the halves have different winners over all units.
    within_task : the share of tasks and halvings in which the halves have different winners on the
        task; NaN where units were halved.
    methods : the number of methods that could win: those that were run everywhere.
    """

    halved: str
    overall: float
    within_task: float
    methods: int


def fresh_winner(
    values: Floats,
    group: NDArray[np.integer],
    unit: NDArray[np.integer],
    *,
    generator: np.random.Generator,
) -> FreshWinner | None:
    """Halve the splits of all tasks at random, or the units where tasks have one cell each.

    Parameters
    ----------
    values : (M, C) larger is better; methods that lack a cell are left out.
    group : (C,) the task of each cell.
    unit : (K,) the unit of each task.

    Returns
    -------
    The shares; None with fewer than two complete methods or units.
    """
    full = values[np.isfinite(values).all(axis=1)]
    n_cells = np.bincount(group, minlength=len(unit))
    if len(full) < 2:
        return None
    order = np.argsort(group, kind="stable")
    full, group = full[:, order], group[order]
    full = full - full.mean(axis=0)
    starts = np.searchsorted(group, np.arange(len(unit)))
    halvings = _HALVINGS if full.size < _MANY else _FEWER
    if (n_cells > 1).all():
        shares = [
            _halve_splits(full, group, n_cells, starts, unit, generator) for _ in range(halvings)
        ]
        overall, within = np.mean(shares, axis=0)
        return FreshWinner(SPLITS, float(overall), float(within), len(full))
    task_means = np.add.reduceat(full, starts, axis=1) / n_cells
    unit_means = _average_tasks(task_means, unit)
    if unit_means.shape[1] < 2:
        return None
    differs = []
    for _ in range(halvings):
        halves = np.array_split(generator.permutation(unit_means.shape[1]), 2)
        winner, other_winner = (unit_means[:, half].mean(axis=1).argmax() for half in halves)
        differs.append(winner != other_winner)
    return FreshWinner(UNITS, float(np.mean(differs)), float("nan"), len(full))


def _halve_splits(
    values: Floats,
    group: NDArray[np.integer],
    n_cells: NDArray[np.integer],
    starts: NDArray[np.integer],
    unit: NDArray[np.integer],
    generator: np.random.Generator,
) -> tuple[float, float]:
    """Return whether the winner over all units differs between halves, and on which share of tasks.

    Parameters
    ----------
    values : (M, C) values of methods in cells, which are sorted by task.
    group : (C,) the task of each cell.
    n_cells, starts : (K,) how many cells each task has, and where they start.
    unit : (K,) the unit of each task.
    generator : draws the halves.
    """
    shuffled = np.lexsort((generator.random(len(group)), group))
    position = np.arange(len(group)) - starts[group]
    in_first, in_second = position < n_cells[group] // 2, position >= (n_cells[group] + 1) // 2
    winners = []
    for half in (in_first, in_second):
        cells = np.sort(shuffled[half])
        half_starts = np.searchsorted(group[cells], np.arange(len(n_cells)))
        task_means = np.add.reduceat(values[:, cells], half_starts, axis=1) / (n_cells // 2)
        over_units = _average_tasks(task_means, unit).mean(axis=1)
        winners.append((over_units.argmax(), task_means.argmax(axis=0)))
    (winner, task_winners), (other_winner, other_task_winners) = winners
    return float(winner != other_winner), float((task_winners != other_task_winners).mean())


def _average_tasks(task_means: Floats, unit: NDArray[np.integer]) -> Floats:
    """Return the means of units, (M, U), from those of tasks, (M, K)."""
    n_units = int(unit.max()) + 1
    if len(unit) == n_units:
        return task_means[:, np.argsort(unit)]
    members = np.eye(n_units)[unit]
    return np.asarray(task_means @ members / members.sum(axis=0))
