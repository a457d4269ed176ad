"""What algorithms are compared by: metrics of confusion tables, turned so that more is better."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from fairbench.core.errors import UserError, unknown_name
from fairbench.metrics.confusion import total
from fairbench.metrics.group import (
    GROUP_METRICS,
    PAIRWISE,
    GroupMetric,
    difference,
    disparate_impact,
)
from fairbench.metrics.rates import (
    Counts,
    Rate,
    accuracy,
    balanced_accuracy,
    error_rate,
    f1_score,
    positive_predictive_value,
    true_negative_rate,
    true_positive_rate,
)

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Objective:
    """A function of tables (..., G, 4) -> (...) whose larger values are the better ones.

    `rates` are what it compares between groups or takes of everyone, (..., G, 4) -> (..., G).
    """

    name: str
    function: Callable[[Counts], Values]
    rates: tuple[Callable[[Counts], Values], ...] = ()

    def __call__(self, tables: Counts) -> Values:
        """Return the objective of every set of group tables."""
        return self.function(tables)


def _of_everyone(rate: Callable[[Counts], Values], sign: int = 1) -> Callable[[Counts], Values]:
    return lambda tables: sign * rate(total(tables))[..., 0]


def _fairness(metric: GroupMetric) -> Callable[[Counts], Values]:
    return lambda tables: -metric(tables)


def _impact(tables: Counts) -> Values:
    """Return the disparate impact or its inverse, whichever is at most 1."""
    ratio = disparate_impact(tables)
    with np.errstate(divide="ignore"):
        return np.minimum(ratio, 1 / ratio)


def _signed(rate: Rate) -> Callable[[Counts], Values]:
    def function(tables: Counts) -> Values:
        values = difference(rate, tables)
        if values.shape[-1] != 1:
            raise UserError(
                f"a signed difference of {rate.name} needs two groups, not {values.shape[-1] + 1}"
            )
        return np.asarray(values[..., 0])

    return function


def _all() -> Iterator[Objective]:
    best = (accuracy, true_positive_rate, true_negative_rate, positive_predictive_value, f1_score)
    for rate in best:
        yield Objective(rate.name, _of_everyone(rate), (rate,))
    yield Objective("balanced_accuracy", _of_everyone(balanced_accuracy), (balanced_accuracy,))
    yield Objective("error_rate", _of_everyone(error_rate, -1), (error_rate,))
    for name, gap in GROUP_METRICS.items():
        yield Objective(name, _fairness(gap) if gap.is_gap else _impact, gap.rates)
    for name, rate in PAIRWISE.items():
        yield Objective(f"{name}_difference", _signed(rate), (rate,))


OBJECTIVES: Mapping[str, Objective] = MappingProxyType({each.name: each for each in _all()})


def objective(name: str) -> Objective:
    """Return the objective of a name.

    Rates of everyone (``accuracy`` ...); gaps between groups with a minus sign
    (``equal_opportunity`` ...); ``disparate_impact`` as the smaller of ratio and inverse; signed
    differences of two groups, the other group's minus the reference's
    (``equal_opportunity_difference`` ...), which the published code uses: there a gap in favour of
    the other group counts as better than none.
    """
    if name not in OBJECTIVES:
        raise unknown_name("objective", name, OBJECTIVES)
    return OBJECTIVES[name]
