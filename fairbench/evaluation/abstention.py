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
from fairbench.metrics.registry import BINARY, Metric, metrics_of

Array = NDArray[np.float64]
Ends = tuple[Array, Array]
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
        uncertainty = test.column("uncertainty")
        order = np.argsort(uncertainty, kind="stable")  # sorted once, for all that sorts them
        loss = (test.target != test.column("prediction"))[order]
        uncertainty = uncertainty[order]
        area = area_under_risk_coverage(loss, uncertainty)
        ends = (NAN, NAN)
        if self.table.frequentist and np.isfinite(uncertainty).all():
            limits = coverage_area_limits(loss, uncertainty, level=self.table.level)
            ends = float(limits.lower), float(limits.upper)
        self.table.add("area_under_risk_coverage", area, len(test), interval=ends)
        self._at(test, self.rates, "abstention", [Setting(rate=rate) for rate in self.rates])
        if chooser is not None:
            rate = self._best_rate(chooser)
            self.table.add("abstention_chosen_rate", rate, len(chooser), Where(self.attribute))
            gaps, lacking = list(metrics_of(BINARY, "widest")), CHOSEN_HERE * (chooser is test)
            self._at(test, [rate], "abstained", [NO_SETTING], gaps, lacking=lacking)

    def _best_rate(self, chooser: Labelled) -> float:
        """Return the candidate with the least sum of objectives over their values without."""
        counts = self._counts(chooser, [0.0, *self.candidates])
        everything, *values = _values(counts, self.objectives).tolist()
        sums = [_normalised_sum(each, everything) for each in values]
        return float(self.candidates[int(np.argmin(sums))])

    def _counts(self, data: Labelled, rates: Sequence[float]) -> Array:
        """Return the (K, G, 4) counts of the rows kept at each rate, fractional where rows tie."""
        labels = data.groups[self.attribute].cat
        cell = (labels.codes.to_numpy() * 2 + data.target) * 2 + data.column("prediction")
        cell, groups = cell.astype(np.int64), len(labels.categories)
        kept = keep_weights(data.column("uncertainty"), rates)
        counts = [np.bincount(cell, weights=each, minlength=4 * groups) for each in kept]
        return np.reshape(np.asarray(counts, np.float64), (len(rates), groups, 4))

    def _at(
        self,
        data: Labelled,
        rates: Sequence[float],
        prefix: str,
        settings: Sequence[Setting],
        gaps: Sequence[str] = OBJECTIVES[1:],
        *,
        lacking: str = "",
    ) -> None:
        """Add what is left at shares of rows abstained on; `lacking`: why nothing has an interval.

        Intervals take as given which rows are kept, as their uncertainties alone say.
        """
        counts, metrics = self._counts(data, rates), ["error_rate", *gaps]
        level = None if lacking or not self.table.frequentist else self.table.level
        everyone, widest = counts.sum(axis=1), metrics_of(BINARY, "widest")
        ends = [_share_ends(error_rate.successes(everyone), everyone.sum(axis=1), level)]
        ends += _gap_ends(counts, [widest[name] for name in gaps], level)
        lower, upper = (np.stack(each, axis=-1) for each in zip(*ends, strict=True))
        found = np.stack([_values(counts, metrics), lower, upper], axis=-1).tolist()
        of_groups, kept = self._of_groups(data, counts, level), counts.sum(axis=(1, 2)).tolist()
        missing = undefined("a group of the rows kept lacks what it is a share of")
        where = Where(self.attribute)
        for k, setting in enumerate(settings):
            add = partial(self.table.add, setting=setting, lacking=lacking)
            for name, (value, *interval) in zip(metrics, found[k], strict=True):
                status = missing if value != value else OK
                add(
                    f"{prefix}_{name}",
                    value,
                    _rows(kept[k]),
                    where,
                    interval=interval,
                    status=status,
                )
            for name, size, rows in of_groups:
                self._add_group(add, prefix, name, size, rows[k])

    def _of_groups(
        self, data: Labelled, counts: Array, level: float | None
    ) -> list[tuple[str, int, list[list[float]]]]:
        """Return each group's name and size, and at each rate how many of its rows are kept.

        Then follow its error rate among these and its share of rows abstained on, both with ends.
        """
        labels = data.groups[self.attribute].cat
        size = np.bincount(labels.codes, minlength=len(labels.categories))
        left, wrong = counts.sum(axis=2), error_rate.successes(counts)
        with np.errstate(invalid="ignore"):
            share = 1 - left / size
        errors = [error_rate(counts), *_share_ends(wrong, left, level)]
        columns = np.stack([left, *errors, share, *_share_ends(size - left, size, level)], axis=-1)
        names = map(str, labels.categories)
        return list(zip(names, size.tolist(), columns.swapaxes(0, 1).tolist(), strict=True))

    def _add_group(
        self, add: Callable[..., None], prefix: str, name: str, size: int, row: Sequence[float]
    ) -> None:
        """Add a group's error rate among the rows kept, and its share of rows abstained on."""
        left, error, lower, upper, share, least, most = row
        where = Where(self.attribute, name)
        status = undefined(f"no rows kept in group '{name}'") if error != error else OK
        ends = lower, upper
        add(f"{prefix}_error_rate", error, _rows(left), where, interval=ends, status=status)
        status = OK if size else undefined(no_rows(name))
        add(f"{prefix}_rate", share, size, where, interval=(least, most), status=status)


def _share_ends(rows: Array, sizes: NDArray[Any], level: float | None) -> Ends:
    """Return the ends of the intervals of shares; NaN at no level."""
    if level is None:
        return np.full_like(rows, NAN), np.full_like(rows, NAN)
    return rate_limits(rows, sizes, level=level)[1:]


def _gap_ends(counts: Array, metrics: Sequence[Metric], level: float | None) -> list[Ends]:
    """Return the ends (K,) of the intervals of largest gaps; NaN at no level."""
    if level is None:
        nothing = np.full(len(counts), NAN)
        return [(nothing, nothing)] * len(metrics)
    rates = {rate.name: rate for metric in metrics for rate in metric.rates}
    intervals = CountIntervals(counts, np.empty((0, 0, 4)), level, list(rates.values()))
    found = intervals.gaps(metrics, np.ones((len(metrics), counts.shape[1]), bool))
    return [(gap.lower, gap.upper) for gap in found]


def _values(counts: Array, metrics: Sequence[str]) -> Array:
    """Return overall error rates, or group metrics, of (K, G, 4) counts, (K, metrics)."""
    gaps = metrics_of(BINARY, "widest")
    values = [
        error_rate(total(counts))[:, 0] if name == "error_rate" else gaps[name](counts)
        for name in metrics
    ]
    return np.stack(values, axis=-1)


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
