"""Evaluates group fairness of a classification, with intervals from the posterior of the counts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.evaluation.table import (
    NAN,
    OK,
    MetricTable,
    Setting,
    Status,
    Where,
    insufficient,
    undefined,
)
from fairbench.inference.posterior import central_interval, posterior_draws, resampled_counts
from fairbench.metrics.group import debiased
from fairbench.metrics.rates import Counts, Rate, binary_confusion, selection_rate
from fairbench.metrics.registry import BINARY, Metric, metrics_of

Array = NDArray[np.float64]


RESAMPLES = 200  # of the bias of a gap: a mean, which needs far fewer than an interval


@dataclass(frozen=True)
class Counted:
    """The confusion counts (G, 4) of an attribute's groups, and posterior draws (T, G, 4)."""

    attribute: str
    groups: list[str]
    counts: Counts
    draws: Array

    @cached_property
    def _sizes(self) -> dict[str, list[int]]:
        return {}

    def sizes(self, rate: Rate) -> list[int]:
        """Return how many rows a rate rests on in each group."""
        if rate.name not in self._sizes:
            self._sizes[rate.name] = rate.size(self.counts).astype(int).tolist()
        return self._sizes[rate.name]

    def weakest(self, rates: tuple[Rate, ...], among: Iterable[int]) -> tuple[int, int, Rate]:
        """Return (rows, group, rate) of the rate and group that rest on the fewest rows."""
        sizes = [(self.sizes(rate)[g], g, rate) for rate in rates for g in among]
        return min(sizes, key=lambda each: each[0])

    def status(self, rates: tuple[Rate, ...], minimum: int, among: Iterable[int]) -> Status:
        """Say whether `rates` are defined, and rest on at least `minimum` rows, in every group."""
        size, g, rate = self.weakest(rates, among)
        if size >= max(minimum, 1):
            return OK
        where = f" in group '{self.groups[g]}'" if self.groups[g] else ""
        return insufficient(f"n={size}{where}") if size else undefined(rate.empty + where)


@dataclass(frozen=True)
class GroupEvaluation:
    """Computes metrics and adds them to `table`; the other attributes are the Evaluator's."""

    table: MetricTable
    n_draws: int
    alpha: float
    level: float
    epsilon: float
    ratio_band: float
    minimum: int

    def overall(self, target: Array, hard: Array, generator: np.random.Generator) -> None:
        """Add the rates of everyone together."""
        everyone = pd.Series(pd.Categorical.from_codes(np.zeros(len(target), int), [""]))
        self._rates(self._count("", target, hard, everyone, generator))

    def attribute(
        self,
        name: str,
        target: Array,
        hard: Array,
        labels: pd.Series,
        generator: np.random.Generator,
    ) -> None:
        """Add per-group rates, differences and ratios to the reference, and gaps."""
        self.counted(self._count(name, target, hard, labels, generator), generator)

    def counted(self, counted: Counted, generator: np.random.Generator) -> None:
        """Add the same rows of counts whose posterior is drawn already."""
        self._rates(counted)
        if len(counted.groups) > 1:
            self._pairs(counted)
            self._gaps(counted, generator)

    def _count(
        self,
        name: str,
        target: Array,
        hard: Array,
        labels: pd.Series,
        generator: np.random.Generator,
    ) -> Counted:
        groups = [str(label) for label in labels.cat.categories]
        counts = binary_confusion(target, hard, labels.cat.codes.to_numpy(), n_groups=len(groups))
        draws = posterior_draws(counts, self.n_draws, generator, alpha=self.alpha)
        return Counted(name, groups, counts, draws)

    def _rates(self, counted: Counted) -> None:
        metrics = metrics_of(BINARY, "rate")
        samples = np.stack([metric(counted.draws) for metric in metrics.values()], axis=1)
        lower, upper = central_interval(samples, self.level)
        for i, (name, metric) in enumerate(metrics.items()):
            rates, values = metric.rates, metric(counted.counts)
            for g, group in enumerate(counted.groups):
                self.table.add(
                    name,
                    values[g],
                    counted.weakest(rates, [g])[0],
                    Where(counted.attribute, group),
                    interval=(lower[i, g], upper[i, g]),
                    status=counted.status(rates, self.minimum, [g]),
                )

    def _pairs(self, counted: Counted) -> None:
        for metric in metrics_of(BINARY, "difference", "ratio").values():
            values, samples = metric(counted.counts), metric(counted.draws)
            lower, upper = central_interval(samples, self.level)
            outside = (np.abs(samples - 1) > self.ratio_band).mean(axis=0)
            for g, value in enumerate(values, start=1):
                where = Where(counted.attribute, counted.groups[g])
                n = counted.weakest(metric.rates, [0, g])[0]
                status = self._pair_status(counted, metric, g, value)
                interval = (lower[g - 1], upper[g - 1])
                self.table.add(metric.name, value, n, where, interval=interval, status=status)
                if metric.interval == "ratio":
                    self.table.add(
                        f"{metric.name}_outside_band",
                        NAN if np.isnan(value) else outside[g - 1],
                        n,
                        where,
                        setting=Setting(band=self.ratio_band),
                        status=status,
                    )

    def _pair_status(self, counted: Counted, metric: Metric, g: int, value: float) -> Status:
        status = counted.status(metric.rates, self.minimum, [0, g])
        if np.isnan(value) and status.kind != "undefined":
            return undefined(f"{metric.rates[0].name} of group '{counted.groups[0]}' is 0")
        return status

    def _gaps(self, counted: Counted, generator: np.random.Generator) -> None:
        metrics = metrics_of(BINARY, "widest")
        samples = np.stack([metric(counted.draws) for metric in metrics.values()], axis=1)
        lower, upper = central_interval(samples, self.level)
        many, where = len(counted.groups) > 2, Where(counted.attribute)
        resampled = resampled_counts(counted.counts, RESAMPLES, generator) if many else None
        for i, (name, metric) in enumerate(metrics.items()):
            value, everyone = float(metric(counted.counts)), range(len(counted.groups))
            n = counted.weakest(metric.rates, everyone)[0]
            status = counted.status(metric.rates, self.minimum, everyone)
            if np.isnan(value) and status.kind != "undefined":
                zero = "every group" if many else f"group '{counted.groups[0]}'"
                status = undefined(f"{selection_rate.name} of {zero} is 0")
            interval = (lower[i], upper[i])
            self.table.add(name, value, n, where, interval=interval, status=status)
            if not metric.is_gap:
                continue
            below = NAN if np.isnan(value) else float((samples[:, i] < self.epsilon).mean())
            setting = Setting(epsilon=self.epsilon)
            self.table.add(f"{name}_below", below, n, where, setting=setting, status=status)
            if resampled is not None:
                corrected = debiased(metric, counted.counts, resampled)
                if np.isnan(corrected) and status.kind != "undefined":
                    status = undefined("no resample has the rates of every group")
                self.table.add(f"{name}_debiased", corrected, n, where, status=status)
