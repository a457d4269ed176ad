"""Settings of comparisons: objectives, how overlapping folds are pooled, and bounds of a choice."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from fairbench.core.arrays import Floats
from fairbench.core.errors import UserError, check_minimum, check_share, unknown_name
from fairbench.core.options import option
from fairbench.inference.comparing.objectives import objective
from fairbench.inference.effective_counts import (
    mean_relative_shrinkage,
    mean_shrinkage,
    relative_rho,
    shrinkage,
)
from fairbench.metrics.registry import BINARY, Metric, find, metrics_of, unknown_metric

AVERAGE, AT_MOST, RELATIVE, RELATIVE_UP = "average", "1/K", "relative", "relative_up"
MEAN, GROUP = "mean", "group"
AVERAGED, TYPICAL = "averaged", "typical"
# What a posterior is about, in words.
SPREADS = {AVERAGED: "the mean of all repeats", TYPICAL: "one repeat"}


@dataclass(frozen=True)
class Settings:
    """Options for comparing two runs: those of `fairbench compare`."""

    objectives: tuple[str, ...] = option(
        ("accuracy", "equal_opportunity"),
        "The metrics by which runs are compared; of a gap between groups, smaller is better.",
        shown="[METRIC,...]",
    )
    rope: tuple[float, ...] = option(
        (),
        "Up to which difference of each objective two runs are practically equal; by default what "
        "each metric declares, 0.01 for most.",
        shown="[NUMBER,...]",
    )
    rho: str = option(
        AVERAGE,
        "The correlation between folds: average (over 0 to 1/K), 1/K, a number, or from half-split "
        "runs and those of a reference learner: relative (the reference's own being 1/K) or "
        "relative_up (averaged over 0 to the relative one).",
    )
    rho_per: str = option(
        GROUP,
        "There is one relative correlation for each group, or one from the variance ratios' mean "
        "over groups and objectives.",
        choices=(GROUP, MEAN),
    )
    reference: str = option(
        "",
        "The half-split run of the reference learner, by id or name; the one of learner=svm "
        "without intervention by default.",
        shown="RUN",
    )
    repeats: str = option(
        AVERAGED,
        "Several repeats are averaged, which says what holds of these fitted models on new "
        "people; or, as the paper does, each is compared by itself and the typical one is shown.",
        choices=(AVERAGED, TYPICAL),
    )
    paired: bool = option(
        True,
        "Compare through the joint table of both runs' predictions on the same rows; otherwise by "
        "two independent posteriors, as the paper does.",
    )
    predictive: bool = option(
        False, "Draw counts after the probabilities, as the published code does."
    )
    alpha: float = option(1.0, "The prior pseudo-count of a cell of the confusion matrix.")
    draws: int = option(10000, "How many posterior draws are made.")
    level: float = option(
        0.95, "The level of intervals, and of the region of the most credible differences."
    )
    protect: tuple[str, ...] = option(
        (), "The sensitive attributes whose groups are compared; those of the first run by default."
    )
    seed: int = option(0, "The seed of all random draws.", least=0)

    def __post_init__(self) -> None:
        """Refuse settings that mean nothing, before any run is read."""
        for name in self.objectives:
            objective(name)
        self.shrinkage(10, 1.0)
        if self.rho_per not in (MEAN, GROUP):
            raise unknown_name("rho_per", self.rho_per, (MEAN, GROUP))
        if self.repeats not in (AVERAGED, TYPICAL):
            raise unknown_name("repeats", self.repeats, (AVERAGED, TYPICAL))
        check_minimum("draws", self.draws, 100)
        check_minimum("alpha", self.alpha, 0)
        check_share("level", self.level)

    @property
    def relative(self) -> bool:
        """Whether rho comes from half-split runs."""
        return self.rho in (RELATIVE, RELATIVE_UP)

    def shrinkage(self, folds: int, ratio: float | Floats | None = None) -> Floats:
        """Return the share of the rows of `folds` pooled folds that counts as independent.

        Parameters
        ----------
        ratio : the run's variance divided by the reference learner's, a number or (G, 1); a
            relative rho needs it.
        """
        if folds == 1:
            return np.asarray(1.0)
        if self.rho == AVERAGE:
            return np.asarray(mean_shrinkage(folds))
        if self.relative:
            return self._relative(folds, ratio)
        try:
            return shrinkage(1 / folds if self.rho == AT_MOST else float(self.rho), folds)
        except ValueError:
            valid = f"{AVERAGE}, {AT_MOST}, {RELATIVE}, {RELATIVE_UP}, or a number"
            raise UserError(f"rho is '{self.rho}'; valid: {valid}") from None

    def _relative(self, folds: int, ratio: float | Floats | None) -> Floats:
        if ratio is None:
            raise UserError(f"rho={self.rho} needs half-split runs, which this comparison has not")
        if self.rho == RELATIVE_UP:
            return mean_relative_shrinkage(ratio, folds)
        return shrinkage(relative_rho(ratio, folds), folds)


_COMPARISON = re.compile(r"\s*(\w+)\s*(<=|>=|<|>)\s*([-+.\w]+)\s*")


@dataclass(frozen=True)
class Bound:
    """An upper or lower bound of a rate over everyone."""

    metric: Metric
    operator: str
    limit: float

    @classmethod
    def read(cls, text: str) -> Bound:
        """Return the bound that a comparison such as ``error_rate<=0.15`` means.

        Raises
        ------
        UserError : no comparison, an unknown rate, or a limit that no rate can have.
        """
        match = _COMPARISON.fullmatch(text)
        if not match:
            raise UserError(f"where={text} is no comparison: write one such as error_rate<=0.15")
        name, operator, number = match.groups()
        if name not in _rates():
            raise unknown_name("rate in where=", name, _rates())
        try:
            limit = float(number)
        except ValueError:
            limit = np.nan
        if not 0 <= limit <= 1:
            raise UserError(f"where={text}: a rate is compared with a number between 0 and 1")
        return cls(_rates()[name], operator, limit)

    @property
    def sign(self) -> float:
        """1 where the rate must be small, -1 where it must be large."""
        return 1.0 if self.operator.startswith("<") else -1.0

    def __str__(self) -> str:
        """Return the bound as it is typed."""
        return f"{self.metric.name}{self.operator}{self.limit:g}"


def _rates() -> dict[str, Metric]:
    """Return the metrics that are one share of rows, by name."""
    metrics = metrics_of(BINARY, "rate")
    return {name: metric for name, metric in metrics.items() if _is_share(metric)}


def _is_share(metric: Metric) -> bool:
    weights = [*metric.rates[0].numerator, *metric.rates[0].denominator]
    return len(metric.rates) == 1 and set(weights) <= {0, 1}


def minimised_metric(name: str) -> Metric:
    """Return a metric by name, if smaller values are better: a gap, or an overall rate.

    Raises
    ------
    UserError : another metric, or none of this name.
    """
    gaps = {key: metric for key, metric in metrics_of(BINARY, "widest").items() if metric.is_gap}
    minimisable = gaps | {
        key: metric for key, metric in _rates().items() if metric.better == "lower"
    }
    if name in minimisable:
        return minimisable[name]
    if find(name) is None:
        raise unknown_metric("metric to minimise", name, minimisable)
    raise UserError(
        f"minimise={name}: only gaps between groups, and rates that are better low, can be "
        f"minimised: {', '.join(sorted(minimisable))}"
    )
