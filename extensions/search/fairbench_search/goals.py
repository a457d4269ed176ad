"""What tuning is asked for, and what it minimises: a declared metric, with its error row by row.

A goal knows the rows that it is given and nothing else. The search gives it validation rows alone;
test rows reach it once, for the trial that was chosen and the untuned default.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from fairbench.core.arrays import Codes, Floats, Mask
from fairbench.core.errors import UserError
from fairbench.core.options import check_declared, option
from fairbench.core.text import said
from fairbench.metrics.registry import Metric, Rate, metrics_of, unknown_metric
from fairbench_search.gains import GoalEstimate, GoalRows

FORMATS = ("text", "json", "html", "markdown", "latex")  # in which an answer is printed
_COLUMNS = {"prediction", "score", "uncertainty", "sd"}


def refusal(name: str, /, **values: object) -> UserError:
    """Return the error that a sentence tells."""
    return UserError(said("fairbench_search", name, **values))


@dataclass(frozen=True)
class Tuning:
    """How options are tuned, and how the answer is printed: ``hydra.sweeper.*`` of the sweeper.

    Attributes
    ----------
    objectives : What is to be small on validation rows: rates, mean losses, gaps between groups;
        what is better large, such as accuracy, is to be large.
    weights : Of several objectives, what is chosen has the smallest sum, with these weights.
    trials : How many trials are made at most, beside the untuned default.
    cpu_seconds : After how many CPU seconds of fitting no further trial is begun.
    level : How sure the intervals are.
    study : A name: another one is another search, with other trials.
    format : How the result is printed.
    """

    objectives: tuple[str, ...] = option(("error_rate",), shown="[METRIC,...]")
    weights: tuple[float, ...] = option((), shown="[NUMBER,...]")
    trials: int = option(50, least=1)
    cpu_seconds: float | None = option(None, above=0)
    level: float = option(0.95, share=True)
    study: str = option("", shown="NAME")
    format: str = option("text", choices=FORMATS)

    def __post_init__(self) -> None:
        """Refuse values that mean nothing, before anything is composed."""
        check_declared(self)
        weights, objectives = len(self.weights), len(self.objectives)
        if weights and weights != objectives:
            raise refusal("weights", weights=weights, objectives=objectives)
        if self.weights and not (min(self.weights) >= 0 < max(self.weights)):
            raise UserError("weights= must be at least 0, and one above it")

    def score(self, values: Floats) -> Floats:
        """Return the sums that are to be small, (..., M) -> (...)."""
        return np.asarray(values @ np.array(self.weights or [1.0] * len(self.objectives)))


@dataclass(frozen=True)
class Goal:
    """A metric that tuning minimises, or maximises if higher is better."""

    metric: Metric

    @property
    def sign(self) -> float:
        """1 if the metric is minimised, -1 if it is maximised."""
        return -1.0 if self.metric.better == "higher" else 1.0

    @property
    def label(self) -> str:
        """Its name in sentences."""
        label = self.metric.label
        return f"{label} gap" if self.metric.is_gap and "gap" not in label else label

    def estimate(self, rows: GoalRows) -> GoalEstimate:
        """Return the metric of some rows.

        Raises
        ------
        UserError : the method gives no column that the metric is made of.
        """
        missing = set(self.metric.needs) - {"groups", *map(str, rows)}
        if missing:
            raise refusal("no_such_column", name=self.metric.name, need=missing.pop())
        if self.metric.rates:
            return self._estimate_rates(rows)
        columns = [rows[name].to_numpy() for name in ("target", *self.metric.needs)]
        loss = np.asarray(self.metric(*columns), float)
        mean = np.array([loss.mean()])
        influence = (loss - mean)[:, None] / len(loss)
        return GoalEstimate(mean, influence, np.zeros(1), np.array([[self.sign]]), self.sign)

    def _estimate_rates(self, rows: GoalRows) -> GoalEstimate:
        """Return a rate of everyone, or the largest difference of rates between groups.

        Notes
        -----
        Both are value = max over sides of side . rates, where `rates` are the values of each rate
        in each group, and a side holds a weight for each of them.
        """
        cells = (2 * rows["target"] + rows["prediction"]).to_numpy(np.int64)
        groups = [np.ones(len(cells), bool)]
        if self.metric.is_gap:
            group = rows["group"].cat
            groups = [group.codes.to_numpy() == g for g in range(len(group.categories))]
        parts = [(rate, in_group) for rate in self.metric.rates for in_group in groups]
        estimates = [rate_estimate(rate, cells, in_group) for rate, in_group in parts]
        rates, influence, least = (np.stack(of, axis=-1) for of in zip(*estimates, strict=True))
        defined = np.isfinite(rates)
        if not self.metric.is_gap:
            # The one side (1, R) of a mean of R rates, or none (0, R) if one is undefined.
            side = np.full((1, len(rates)), self.sign / len(rates))
            sides = side if defined.all() else side[:0]
        else:
            # Both signs of each of P differences (2 P, R), of two groups that both have the rate.
            unit, names = np.eye(len(rates)), [rate.name for rate, _ in parts]
            pairs = combinations(np.flatnonzero(defined).tolist(), 2)
            alike = [(first, second) for first, second in pairs if names[first] == names[second]]
            one_way = np.array([unit[first] - unit[second] for first, second in alike])
            sides = np.concatenate([one_way, -one_way]).reshape(-1, len(rates))
        return GoalEstimate(np.where(defined, rates, 0), influence, least, sides, self.sign)


def rate_estimate(rate: Rate, cells: Codes, in_group: Mask) -> tuple[Floats, Floats, Floats]:
    """Return a rate of the rows (n,) of a group, by their confusion cells (n,).

    Returns
    -------
    The rate, NaN if its denominator has no rows of the group; the contribution (n,) of each row to
    its error; and the variance that remains even if no row shows any.

    Notes
    -----
    A rate is r = sum t / sum b, with t and b the weights of each row's cell in its numerator
    and denominator. A row adds (t - r b) / sum b to its error.
    """
    weights = np.array([rate.numerator, rate.denominator], float)
    top, bottom = weights[:, cells] * in_group
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
            raise unknown_metric("objective to tune for", name, valid)
    return tuple(Goal(valid[name]) for name in names)


def _is_goal(metric: Metric) -> bool:
    """Say whether a metric is a mean, a rate, or a gap, and which values of it are good."""
    if metric.is_gap:
        return bool(metric.rates)
    is_mean = metric.interval in ("mean", "heavy_mean", "rate")
    return is_mean and set(metric.needs) <= _COLUMNS and metric.better in ("higher", "lower")
