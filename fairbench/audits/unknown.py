"""What follows for everyone, where labels exist only for those who were selected."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.audits.gaps import LARGE, OPEN, RATE_OF, SMALL, UNKNOWN, Bounds
from fairbench.audits.question import Options
from fairbench.audits.table import AuditTable
from fairbench.inference.partial.ends import Ends, GapBounds, gap_bounds
from fairbench.inference.partial.selected import NOTHING, SelectedLabels
from fairbench.metrics.rates import Rate, base_rate

Codes = NDArray[np.int64]

CANNOT = "cannot be known"  # however many rows and labels there are
RATES: tuple[Rate, ...] = (*RATE_OF.values(), base_rate)
_BANDS = 5
_LABELS_OF_BAND = 30
_HALVINGS = 20
_LARGEST_FACTOR = 1e4


@dataclass(frozen=True)
class BoundedRate:
    """A rate of a group among everyone: its bounds and an interval that holds them.

    Attributes
    ----------
    rows, others : how many rows the group has, and how many of them were not selected.
    bounds, interval : whatever the labels of the others are.
    assumed, assumed_interval : if they resemble those of the selected as far as is assumed.
    """

    attribute: str
    group: str
    rate: str
    rows: int
    others: int
    bounds: tuple[float, float]
    interval: tuple[float, float]
    assumed: tuple[float, float] | None = None
    assumed_interval: tuple[float, float] | None = None


@dataclass(frozen=True)
class BoundedGap:
    """A gap among everyone.

    Attributes
    ----------
    groups : those that are compared. low, high : of a large gap, who is surely ahead of whom.
    bounds, verdict : whatever is not known. assumed, assumed_verdict : as far as is assumed.
    factor_verdict : the verdict if missing labels are like those of similar selected people.
    factor : the factor between their odds up to which that verdict, if it is one, holds; None where
        it holds whatever the missing labels are.
    """

    attribute: str
    metric: str
    groups: Sequence[str]
    bounds: GapBounds
    verdict: str
    low: str = ""
    high: str = ""
    assumed: GapBounds | None = None
    assumed_verdict: str = ""
    factor_verdict: str = ""
    factor: float | None = None


@dataclass(frozen=True, eq=False)
class UnknownLabels:
    """What can be said of everyone from the labels of those who were selected."""

    options: Options
    rows: int
    selected: int
    rates: Sequence[BoundedRate]
    gaps: Sequence[BoundedGap]


def unknown_labels(table: AuditTable, options: Options) -> UnknownLabels:
    """Return bounds of every rate and gap among all rows of a table, selected or not."""
    selected = np.ones(len(table), bool) if table.selected is None else table.selected
    bounds = Bounds(options.epsilon, 1, len(table.groups) * len(RATE_OF))
    rates: list[BoundedRate] = []
    gaps: list[BoundedGap] = []
    for attribute, groups in table.groups.items():
        counted = _counted(table, groups, selected)
        names = list(map(str, groups.cat.categories))
        rates += _rates(attribute, names, counted, options.odds)
        gaps += [
            _gap(attribute, metric, names, counted, options.odds, bounds) for metric in RATE_OF
        ]
    return UnknownLabels(options, len(table), int(selected.sum()), rates, gaps)


def _counted(table: AuditTable, groups: pd.Series, selected: NDArray[np.bool_]) -> SelectedLabels:
    """Count rows by group, decision, and band of scores with labels enough to say something."""
    codes = groups.cat.codes.to_numpy(np.int64)
    known = np.isfinite(table.label)
    place = np.stack([codes, table.prediction, np.zeros_like(codes)])
    if table.score is not None:
        for group in range(len(groups.cat.categories)):
            for decision in (0, 1):
                mine = (codes == group) & (table.prediction == decision)
                place[2, mine] = _bands(table.score[mine], known[mine])
    shape = (len(groups.cat.categories), 2, _BANDS)

    def count(rows: NDArray[np.bool_]) -> NDArray[np.float64]:
        counts = np.zeros(shape)
        np.add.at(counts, tuple(place[:, rows]), 1.0)
        return counts

    return SelectedLabels(
        count(~selected), count(selected), count(known), count(known & (table.label == 1))
    )


def _bands(score: NDArray[np.float64], known: NDArray[np.bool_]) -> Codes:
    """Return bands of scores, with as many labels in each."""
    bands = int(np.clip(known.sum() // _LABELS_OF_BAND, 1, _BANDS))
    if bands == 1:
        return np.zeros(len(score), np.int64)
    edges = np.quantile(score[known], np.arange(1, bands) / bands)
    return np.searchsorted(edges, score, side="right").astype(np.int64)


def _rates(
    attribute: str, names: Sequence[str], counted: SelectedLabels, odds: float
) -> Iterator[BoundedRate]:
    others, rows = (
        each.sum(axis=(1, 2)).astype(int)
        for each in (counted.others, counted.others + counted.selected)
    )
    for rate in RATES:
        plain, assumed = counted.ends(rate), counted.ends(rate, odds=odds)
        for g, name in enumerate(names):
            yield BoundedRate(
                attribute,
                name,
                rate.name,
                int(rows[g]),
                int(others[g]),
                *both_ends(plain, g),
                *both_ends(assumed, g),
            )


def both_ends(ends: Ends, group: int) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the bounds of a group and an interval that holds them."""
    lower, upper = ends.interval()
    return (
        (float(ends.lower[group]), float(ends.upper[group])),
        (float(lower[group]), float(upper[group])),
    )


def _gap(
    attribute: str,
    metric: str,
    names: Sequence[str],
    counted: SelectedLabels,
    odds: float,
    bounds: Bounds,
) -> BoundedGap:
    rate = RATE_OF[metric]
    compared = np.flatnonzero(~np.isnan(counted.ends(rate).lower)).tolist()
    groups = [names[g] for g in compared]
    if len(compared) < 2:
        nothing = GapBounds(np.nan, np.nan, (np.nan, np.nan), np.nan, np.nan)
        return BoundedGap(attribute, metric, groups, nothing, UNKNOWN)

    def at(factor: float) -> tuple[Ends, GapBounds, str]:
        ends = counted.ends(rate, odds=factor).take(compared)
        found = gap_bounds(ends, risk=bounds.risk)
        return ends, found, verdict_of(found, bounds.epsilon)

    ends, plain, verdict = at(NOTHING)
    _, assumed, assumed_verdict = at(odds)
    first = at(1.0)[2]
    low, high = ahead(ends)
    return BoundedGap(
        attribute,
        metric,
        groups,
        plain,
        verdict,
        groups[low],
        groups[high],
        assumed,
        assumed_verdict,
        first,
        _largest_factor(lambda factor: at(factor)[2] == first, first),
    )


def ahead(ends: Ends) -> tuple[int, int]:
    """Return the groups of which the second is the most surely ahead, whatever is not known."""
    low, high = int(np.argmin(ends.upper)), int(np.argmax(ends.lower))
    return low, high


def verdict_of(found: GapBounds, epsilon: float) -> str:
    """Return the verdict that bounds allow; of some, no number of rows would change it."""
    if found.at_most < epsilon:
        return SMALL
    if found.at_least > epsilon:
        return LARGE
    least, most = found.size
    return OPEN if most < epsilon or least > epsilon else CANNOT


def _largest_factor(holds: Callable[[float], bool], verdict: str) -> float | None:
    """Return the largest factor between odds with which a verdict holds, None if all do."""
    if verdict not in (SMALL, LARGE) or holds(NOTHING):
        return None
    low, high = 0.0, float(np.log(_LARGEST_FACTOR))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(float(np.exp(middle))) else (low, middle)
    return float(np.exp(low))
