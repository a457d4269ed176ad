"""What tuning minimises: a declared metric of some rows, with what each row adds to its error.

A goal knows the rows that it is given and nothing else. The search gives it validation rows alone;
test rows reach it once, for the trial that was chosen and the untuned default.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from fairbench.core.arrays import Floats
from fairbench.core.errors import UserError, unknown_name
from fairbench.inference.comparing.tuned_gain import GoalEstimate, Looks
from fairbench.metrics.rates import Rate
from fairbench.metrics.registry import Metric, metrics_of

_COLUMNS = {"prediction", "score", "uncertainty", "sd"}


@dataclass(frozen=True, eq=False)
class GoalRows:
    """Rows with their labels, groups and predictions.

    Attributes
    ----------
    fold, unit, target, group : (n,): the fold in which a row was looked at, the person or cluster
        of persons, the label, and the code of the group.
    columns : what was predicted, (n,) each.
    groups : how many groups there are.
    """

    fold: NDArray[np.int64]
    unit: NDArray[np.int64]
    target: Floats
    group: NDArray[np.int64]
    columns: Mapping[str, Floats]
    groups: int

    def looks(self, fresh: float = np.inf) -> Looks:
        """Return which rows share a person, for a trial that `fresh` new persons will judge."""
        return Looks(self.unit, self.fold, fresh)

    def first(self, folds: int) -> GoalRows:
        """Return the rows of the first folds."""
        kept = self.fold < folds
        columns = {name: values[kept] for name, values in self.columns.items()}
        fold, unit, group = (values[kept] for values in (self.fold, self.unit, self.group))
        return GoalRows(fold, unit, self.target[kept], group, columns, self.groups)


def together(parts: Sequence[GoalRows]) -> GoalRows:
    """Return the rows of several folds."""
    names = ("fold", "unit", "target", "group")
    fold, unit, target, group = (
        np.concatenate([getattr(part, name) for part in parts]) for name in names
    )
    columns = {
        name: np.concatenate([part.columns[name] for part in parts]) for name in parts[0].columns
    }
    return GoalRows(fold, unit, target, group, columns, parts[0].groups)


@dataclass(frozen=True)
class Goal:
    """A metric that is to be small, or large where that is better."""

    metric: Metric

    @property
    def sign(self) -> float:
        """1 where it is to be small, -1 where it is to be large."""
        return -1.0 if self.metric.better == "higher" else 1.0

    @property
    def label(self) -> str:
        """What sentences call it."""
        label = self.metric.label
        return f"{label} gap" if self.metric.is_gap and "gap" not in label else label

    def estimate(self, rows: GoalRows) -> GoalEstimate:
        """Return the metric of some rows.

        Raises
        ------
        UserError : the method gives no column that the metric is made of.
        """
        missing = set(self.metric.needs) - {"groups", *rows.columns}
        if missing:
            raise UserError(
                f"objectives={self.metric.name} needs a {missing.pop()}, which this method gives "
                "none of: take another objective or method"
            )
        if self.metric.rates:
            return self._of_rates(rows)
        columns = [rows.columns[name] for name in self.metric.needs]
        loss = np.asarray(self.metric(rows.target, *columns), float)
        mean, sides = np.array([loss.mean()]), np.array([[self.sign]])
        return GoalEstimate(mean, (loss - mean)[:, None] / len(loss), np.zeros(1), sides, self.sign)

    def _of_rates(self, rows: GoalRows) -> GoalEstimate:
        """Return a rate of everyone, or the largest difference of rates between groups."""
        cells = (2 * rows.target + rows.columns["prediction"]).astype(np.int64)
        groups = [rows.group == g for g in range(rows.groups)]
        masks = groups if self.metric.is_gap else [np.ones(len(cells), bool)]
        rates = [_rate(rate, cells, mask) for rate in self.metric.rates for mask in masks]
        values, influence, least = (
            np.stack(column, axis=-1) for column in zip(*rates, strict=True)
        )
        defined = np.isfinite(values)
        sides = self._sides(defined, len(masks))
        return GoalEstimate(np.where(defined, values, 0), influence, least, sides, self.sign)

    def _sides(self, defined: NDArray[np.bool_], masks: int) -> Floats:
        """Return the weights (sides, R) of rates whose largest sum is the goal's value.

        A gap has two sides for each pair of groups, one of either sign; a rate has one side.

        Parameters
        ----------
        defined : (R,) which rates there are, those of each group after each other.
        masks : how many groups have rates.
        """
        count = len(self.metric.rates)
        if not self.metric.is_gap:
            side = np.full((1, count), self.sign / count)
            return side if defined.all() else side[:0]
        pairs = [
            (masks * rate + a, masks * rate + b)
            for rate in range(count)
            for a, b in combinations(range(masks), 2)
        ]
        sides = [
            sign * (np.eye(len(defined))[a] - np.eye(len(defined))[b])
            for a, b in pairs
            if defined[a] and defined[b]
            for sign in (1.0, -1.0)
        ]
        return np.array(sides).reshape(-1, len(defined))


def _rate(rate: Rate, cells: NDArray[np.int64], mask: NDArray[np.bool_]) -> tuple[Floats, ...]:
    """Return a rate, what each row adds to its error, and the variance that no row can show."""
    top, bottom = (
        np.asarray(weights, float)[cells] * mask for weights in (rate.numerator, rate.denominator)
    )
    size = float(bottom.sum())
    if size == 0:
        return np.array(np.nan), np.zeros(len(cells)), np.array(0.0)
    value = top.sum() / size
    return np.array(value), (top - value * bottom) / size, np.array(1 / size**2)


def goals(names: Sequence[str], task: str) -> tuple[Goal, ...]:
    """Return the goals of some names.

    Raises
    ------
    UserError : none, a name twice, or one that no metric has that can be tuned for.
    """
    if not names:
        raise UserError("objectives= is empty: name one, such as objectives=error_rate")
    if len(set(names)) < len(names):
        raise UserError(f"objectives={','.join(names)} names one twice: name each once")
    valid = {name: metric for name, metric in metrics_of(task).items() if _is_goal(metric)}
    if not valid:
        raise UserError("a task of several classes cannot be tuned: take a binary one")
    for name in names:
        if name not in valid:
            raise unknown_name("objective to tune for", name, valid)
    return tuple(Goal(valid[name]) for name in names)


def _is_goal(metric: Metric) -> bool:
    """Say whether a metric is a mean, a rate, or a gap, and which values of it are good."""
    if metric.is_gap:
        return bool(metric.rates)
    is_mean = metric.interval in ("mean", "heavy_mean", "rate")
    return is_mean and set(metric.needs) <= _COLUMNS and metric.better in ("higher", "lower")
