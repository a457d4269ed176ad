"""How often another method has the best mean on fresh splits, tasks or questions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairbench.core.arrays import Floats

SPLITS, UNITS = "splits", "units"
_HALVINGS = 100
_FEWER = 20  # where cells are many
_MANY = 10_000_000  # numbers


@dataclass(frozen=True)
class FreshWinner:
    """How often half of the cells names another winner by its mean than the other half does.

    Attributes
    ----------
    halved : what was halved: the splits of every task, or the units.
    overall : the share of halvings in which the winner over all units is another one.
    within_task : the same of a single task, over all tasks; NaN of halved units.
    methods : how many could win: those that were run everywhere.
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
    None where fewer than two methods, or than two units, are complete.
    """
    full = values[np.isfinite(values).all(axis=1)]
    cells = np.bincount(group, minlength=len(unit))
    if len(full) < 2:
        return None
    order = np.argsort(group, kind="stable")
    full, group = full[:, order], group[order]
    full = full - full.mean(axis=0)
    starts = np.searchsorted(group, np.arange(len(unit)))
    halvings = _HALVINGS if full.size < _MANY else _FEWER
    if (cells > 1).all():
        shares = [_of_splits(full, group, cells, starts, unit, generator) for _ in range(halvings)]
        overall, within = np.mean(shares, axis=0)
        return FreshWinner(SPLITS, float(overall), float(within), len(full))
    of_task = np.add.reduceat(full, starts, axis=1) / cells
    of_unit = _averaged(of_task, unit)
    if of_unit.shape[1] < 2:
        return None
    differs = []
    for _ in range(halvings):
        halves = np.array_split(generator.permutation(of_unit.shape[1]), 2)
        winner, other_winner = (of_unit[:, half].mean(axis=1).argmax() for half in halves)
        differs.append(winner != other_winner)
    return FreshWinner(UNITS, float(np.mean(differs)), float("nan"), len(full))


def _of_splits(
    values: Floats,
    group: NDArray[np.integer],
    cells: NDArray[np.integer],
    starts: NDArray[np.integer],
    unit: NDArray[np.integer],
    generator: np.random.Generator,
) -> tuple[float, float]:
    """Say whether the winner over all units is another one, and of what share of the tasks."""
    shuffled = np.lexsort((generator.random(len(group)), group))
    place = np.arange(len(group)) - starts[group]
    winners = []
    for half in (place < cells[group] // 2, place >= (cells[group] + 1) // 2):
        chosen = np.sort(shuffled[half])
        begins = np.searchsorted(group[chosen], np.arange(len(cells)))
        of_task = np.add.reduceat(values[:, chosen], begins, axis=1) / (cells // 2)
        winners.append((_averaged(of_task, unit).mean(axis=1).argmax(), of_task.argmax(axis=0)))
    (winner, task_winners), (other_winner, other_task_winners) = winners
    return float(winner != other_winner), float((task_winners != other_task_winners).mean())


def _averaged(of_task: Floats, unit: NDArray[np.integer]) -> Floats:
    """Return the means of units, (M, U), from those of tasks, (M, K)."""
    members = np.eye(int(unit.max()) + 1)[unit] if len(unit) != int(unit.max()) + 1 else None
    if members is None:
        return of_task[:, np.argsort(unit)]
    return np.asarray(of_task @ members / members.sum(axis=0))
