"""Evaluates abstention: error and fairness of the rows that are kept, at every rate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairbench.data.dataset import Task
from fairbench.evaluation.group_intervals import CountIntervals
from fairbench.evaluation.predictions import Labelled
from fairbench.evaluation.table import (
    NAN,
    NO_SETTING,
    OK,
    MetricTable,
    Setting,
    Status,
    Where,
    invalid_rows,
    no_rows,
    undefined,
)
from fairbench.inference.rates import rate_limits
from fairbench.inference.scores import coverage_area_limits
from fairbench.metrics.abstention import area_under_risk_coverage, feature_shift, keep_weights
from fairbench.metrics.rates import error_rate, total
from fairbench.metrics.registry import BINARY, metrics_of

Array = NDArray[np.float64]
CHOSEN_HERE = "no interval: the share was chosen on these very rows"
OBJECTIVES = ("error_rate", "statistical_parity", "equalized_odds")


@dataclass(frozen=True)
class AbstentionEvaluation:
    """Computes abstention for the groups of one attribute, and adds its rows to a table.

    Attributes
    ----------
    rates : shares of rows abstained on, for the curves.
    candidates : shares among which the best is chosen (the papers: up to a quarter).
    objectives : what the best minimises the normalised sum of, among `OBJECTIVES`.
    """

    table: MetricTable
    rates: Sequence[float]
    candidates: Sequence[float]
    attribute: str
    objectives: Sequence[str] = OBJECTIVES

    def run(self, test: Labelled, chooser: Labelled | None) -> None:
        """Add curves, area under the risk-coverage curve and, with a `chooser`, the best rate.

        `chooser` holds the rows the rate is chosen on: validation rows, or, as the papers have it,
        the test rows themselves.
        """
        loss, uncertainty = test.target != test.column("prediction"), test.column("uncertainty")
        area = area_under_risk_coverage(loss, uncertainty)
        ends = (NAN, NAN)
        if self.table.frequentist and np.isfinite(uncertainty).all():
            limits = coverage_area_limits(loss, uncertainty, level=self.table.level)
            ends = float(limits.lower), float(limits.upper)
        self.table.add("area_under_risk_coverage", area, len(test), interval=ends)
        for rate in self.rates:
            self._at(test, rate, "abstention", Setting(rate=rate))
        if chooser is not None:
            rate = self._best_rate(chooser)
            self.table.add("abstention_chosen_rate", rate, len(chooser), Where(self.attribute))
            metrics = ("error_rate", *metrics_of(BINARY, "widest"))
            lacking = CHOSEN_HERE if chooser is test else ""
            self._at(test, rate, "abstained", NO_SETTING, metrics, lacking=lacking)

    def _best_rate(self, chooser: Labelled) -> float:
        """Return the candidate with the least sum of objectives over their values without."""
        everything = _values(self._counts(chooser, 0.0), self.objectives)
        sums = [
            _normalised_sum(_values(self._counts(chooser, rate), self.objectives), everything)
            for rate in self.candidates
        ]
        return float(self.candidates[int(np.argmin(sums))])

    def _counts(self, data: Labelled, rate: float) -> Array:
        """Return the (G, 4) confusion counts of the rows kept, fractional where rows tie."""
        labels = data.groups[self.attribute].cat
        cell = (labels.codes.to_numpy() * 2 + data.target) * 2 + data.column("prediction")
        weights = keep_weights(data.column("uncertainty"), rate)
        groups = len(labels.categories)
        counts = np.bincount(cell.astype(np.int64), weights=weights, minlength=4 * groups)
        return np.asarray(counts, np.float64).reshape(groups, 4)

    def _at(
        self,
        data: Labelled,
        rate: float,
        prefix: str,
        setting: Setting,
        metrics: Sequence[str] = OBJECTIVES,
        *,
        lacking: str = "",
    ) -> None:
        """Add what is left at a share of rows abstained on; `lacking`: why nothing has an interval.

        Intervals take as given which rows are kept, as their uncertainties alone say.
        """
        counts = self._counts(data, rate)
        sure = self.table.frequentist and not lacking
        add = partial(self.table.add, setting=setting, lacking=lacking)
        kept, where = _rows(counts.sum()), Where(self.attribute)
        missing = undefined("a group of the rows kept lacks what it is a share of")
        for name, value in zip(metrics, _values(counts, metrics), strict=True):
            status = missing if np.isnan(value) else OK
            ends = _ends(name, counts, self.table.level) if sure and status == OK else (NAN, NAN)
            add(f"{prefix}_{name}", value, kept, where, interval=ends, status=status)
        self._groups_at(data, counts, prefix, add, sure)

    def _groups_at(
        self, data: Labelled, counts: Array, prefix: str, add: Callable[..., None], sure: bool
    ) -> None:
        """Add each group's error rate among the rows kept, and its share of rows abstained on."""
        labels = data.groups[self.attribute].cat
        everyone = np.bincount(labels.codes, minlength=len(labels.categories))
        left, wrong = counts.sum(axis=1), error_rate.successes(counts)
        errors = self._shares(wrong, left, sure)
        abstained = self._shares(everyone - left, everyone, sure)
        for g, name in enumerate(map(str, labels.categories)):
            where, size = Where(self.attribute, name), int(everyone[g])
            error, share = float(error_rate(counts[g])), float(1 - left[g] / size) if size else NAN
            nothing = undefined(f"no rows kept in group '{name}'")
            status = nothing if np.isnan(error) else OK
            rows = _rows(left[g])
            add(f"{prefix}_error_rate", error, rows, where, interval=errors[g], status=status)
            status = OK if size else undefined(no_rows(name))
            add(f"{prefix}_rate", share, size, where, interval=abstained[g], status=status)

    def _shares(self, rows: Array, sizes: NDArray[Any], sure: bool) -> list[tuple[float, float]]:
        """Return the ends of the intervals of shares; NaN where nothing is sure."""
        if not sure:
            return [(NAN, NAN)] * len(sizes)
        limits = rate_limits(rows, sizes, level=self.table.level)
        return list(zip(limits.lower.tolist(), limits.upper.tolist(), strict=True))


def _ends(metric: str, counts: Array, level: float) -> tuple[float, float]:
    """Return the ends of the interval of everyone's error rate, or of a gap, of counts (G, 4)."""
    if metric == "error_rate":
        everyone = total(counts)[0]
        limits = rate_limits(error_rate.successes(everyone), everyone.sum(), level=level)
        return float(limits.lower), float(limits.upper)
    intervals = CountIntervals(counts, np.empty((0, 0, 4)), level)
    lower, upper = intervals.gap(metrics_of(BINARY, "widest")[metric], list(range(len(counts))))
    return float(lower), float(upper)


def _values(counts: Array, metrics: Sequence[str]) -> list[float]:
    """Return the overall error rate, or group metrics, of (G, 4) counts."""
    gaps = metrics_of(BINARY, "widest")
    return [
        float(error_rate(total(counts))[0] if name == "error_rate" else gaps[name](counts))
        for name in metrics
    ]


def _rows(count: float) -> int:
    """Return a fractional count as the number of rows it takes, blind to rounding errors."""
    return ceil(count - 1e-9)


def _normalised_sum(values: Sequence[float], units: Sequence[float]) -> float:
    """Return the sum of values over their units, infinite where one has ceased to exist.

    What does not exist for all rows either (NaN among the units) has no say.
    """
    ratios = [
        a / b if b > 0 else float(a > 0) if a >= 0 else np.nan
        for a, b in zip(values, units, strict=True)
        if not np.isnan(b)
    ]
    return np.inf if np.isnan(ratios).any() else sum(ratios)


def can_abstain(data: Labelled) -> bool:
    """Say whether the predictions order abstention on a classification."""
    return data.task is Task.BINARY and "uncertainty" in data.predictions


def evaluate_feature_shift(table: MetricTable, data: Labelled, rates: Sequence[float]) -> None:
    """Add the shift of every feature at each abstention rate, and their mean.

    `n` is the number of rows kept: of a random choice of few rows, too, features shift somewhat.
    """
    if data.features is None or "uncertainty" not in data.predictions or not rates:
        return
    uncertainty = data.column("uncertainty")
    invalid = invalid_rows(~np.isfinite(uncertainty), "uncertainty")
    kept = np.stack([keep_weights(uncertainty, rate) for rate in rates])
    shifts = feature_shift(data.features, kept)
    if invalid != OK:
        shifts = np.full_like(shifts, NAN)
    missing = invalid if invalid != OK else undefined("no value among the rows kept")
    for rate, weights, shift in zip(rates, kept, shifts, strict=True):
        n, setting = round(weights.sum()), Setting(rate=rate)
        known = shift[~np.isnan(shift)]
        mean = float(known.mean()) if len(known) else NAN
        table.add("mean_feature_shift", mean, n, setting=setting, status=_status(mean, missing))
        for name, value in zip(data.features.columns, shift, strict=True):
            row, status = setting._replace(feature=str(name)), _status(value, missing)
            table.add("feature_shift", value, n, setting=row, status=status)


def _status(value: float, missing: Status) -> Status:
    return missing if np.isnan(value) else OK
