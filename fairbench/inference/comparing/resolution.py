"""How many more tasks, splits or questions would tell two methods apart.

The variance of two methods' paired difference over units has two parts: the true differences
between units, and the noise of the splits or questions that are averaged. More units reduce both,
more splits only the noise. Splits that share rows have a part of their noise in common. That part
varies from unit to unit like the true differences, and no number of splits reduces it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from fairbench.core.arrays import Floats
from fairbench.inference.comparing.sign_flips import FEWEST, as_student

POWER = 0.8  # the probability with which a planned comparison tells the two methods apart
MOST = 10_000_000  # the largest number of units that is planned


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


@dataclass(frozen=True)
class VarianceParts:
    """The variance of a unit's paired difference, and the part of it that is noise.

    Attributes
    ----------
    unit : the variance over units.
    noise : the part of it that comes from splits or questions, at most `unit`.
    """

    unit: float
    noise: float

    def times_as_many(self, difference: float, units: float, critical: float) -> float:
        """Return the factor by which the same units need more splits to tell a difference from 0.

        Infinite where no number of splits is enough.
        """
        allowed = (difference / float(reach(np.asarray(units), critical))) ** 2
        left = allowed - (self.unit - self.noise)
        return self.noise / left if left > 0 else float("inf")


def variance_parts(
    difference: Floats, group: NDArray[np.integer], unit: NDArray[np.integer]
) -> VarianceParts | None:
    """Return the parts of the variance of one pair's difference; None without two cells a task.

    Parameters
    ----------
    difference : (C,) the difference in every cell; NaN where there is none.
    group : (C,) the task of each cell.
    unit : (K,) the unit of each task.
    """
    measured = np.isfinite(difference)
    values, task = difference[measured], group[measured]
    cells = np.bincount(task, minlength=len(unit))
    if not (cells > 1).any() or not measured.any():
        return None
    of_task = np.bincount(task, values, len(unit)) / np.maximum(cells, 1)
    squares = np.bincount(task, (values - of_task[task]) ** 2, len(unit))
    has, several = cells > 0, cells > 1
    within = squares[several].sum() / (cells[several] - 1).sum()  # of tasks with one cell, too
    task_noise = np.where(several, squares / np.maximum(cells - 1, 1), within) / np.maximum(
        cells, 1
    )
    tasks = np.bincount(unit[has], minlength=int(unit.max()) + 1)
    has_tasks = tasks > 0
    of_unit = np.bincount(unit[has], of_task[has], len(tasks))[has_tasks] / tasks[has_tasks]
    noise = np.bincount(unit[has], task_noise[has], len(tasks))[has_tasks] / tasks[has_tasks] ** 2
    if len(of_unit) < 2:
        return None
    variance = float(of_unit.var(ddof=1))
    return VarianceParts(variance, min(float(noise.mean()), variance))
