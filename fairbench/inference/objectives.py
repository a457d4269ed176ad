"""Objectives: the metrics by which algorithms are compared, turned so that more is better."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from fairbench.core.errors import UserError, unknown_name
from fairbench.metrics.rates import Counts, total
from fairbench.metrics.registry import BINARY, Metric, metrics_of

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Objective:
    """A function of tables (..., G, 4) -> (...) whose larger values are the better ones.

    `rates` are what it compares between groups or takes of everyone, (..., G, 4) -> (..., G);
    `epsilon` is the difference that makes no difference in practice.
    """

    name: str
    function: Callable[[Counts], Values]
    rates: tuple[Callable[[Counts], Values], ...] = ()
    epsilon: float = 0.01

    def __call__(self, tables: Counts) -> Values:
        """Return the objective of every set of group tables."""
        return self.function(tables)


def _of_everyone(metric: Metric) -> Callable[[Counts], Values]:
    return lambda tables: metric.larger_is_better(metric(total(tables))[..., 0])


def _between_groups(metric: Metric) -> Callable[[Counts], Values]:
    return lambda tables: metric.larger_is_better(metric(tables))


def _signed(metric: Metric) -> Callable[[Counts], Values]:
    def function(tables: Counts) -> Values:
        values = metric(tables)
        if values.shape[-1] != 1:
            raise UserError(
                f"a signed difference of {metric.rates[0].name} needs two groups, not "
                f"{values.shape[-1] + 1}"
            )
        return np.asarray(values[..., 0])

    return function


def _all() -> Iterator[Objective]:
    for metric in metrics_of(BINARY, "rate").values():
        if metric.direction:
            function = _of_everyone(metric)
            yield Objective(metric.name, function, (metric.function,), metric.epsilon)
    for metric in metrics_of(BINARY, "widest").values():
        yield Objective(metric.name, _between_groups(metric), metric.rates, metric.epsilon)
    for metric in metrics_of(BINARY, "difference").values():
        yield Objective(metric.name, _signed(metric), metric.rates, metric.epsilon)


@lru_cache(maxsize=1)
def objectives() -> Mapping[str, Objective]:
    """Return every objective by name, as the metrics of classifications declare them."""
    return MappingProxyType({each.name: each for each in _all()})


def objective(name: str) -> Objective:
    """Return the objective of a name.

    Rates of everyone (``accuracy`` ...); gaps between groups with a minus sign
    (``equal_opportunity`` ...); ``disparate_impact`` as the smaller of ratio and inverse; signed
    differences of two groups, the other group's minus the reference's
    (``equal_opportunity_difference`` ...), which the published code uses: there a gap in favour of
    the other group counts as better than none.
    """
    if name not in objectives():
        raise unknown_name("objective", name, objectives())
    return objectives()[name]
