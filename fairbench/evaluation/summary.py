"""A whole run: every metric's mean over repeats or folds, with the interval of that mean."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.evaluation.columns import SETTINGS, STATUSES, setting_codes
from fairbench.inference.rates import Limits, quantile
from fairbench.inference.repeats import (
    FOLDS,
    ONE,
    REPEATS,
    SAME,
    RunRates,
    Splits,
    largest_mean_gap,
    mean_limits,
    mean_ratios,
    smallest_mean_ratio,
)
from fairbench.metrics.registry import BINARY, Metric, find, metrics_of
from fairbench.metrics.sequences import TRUNCATED_ROWS

Array = NDArray[np.float64]
Texts: TypeAlias = NDArray[np.object_]
Cells: TypeAlias = NDArray[np.intp]
_BY = ["variant", "metric", "attribute", "group"]
_SPLIT = ["repeat", "fold"]
_COLUMNS = ("mean", "sd", "lower", "upper", "estimand", "n", "repeats")
# Means of these over repeats are normal enough for a t interval, although a repeat has none.
_SMOOTH = ("roc_auc", "rmse", "r2")
_FEW = 5  # rows of an outcome, under which an interval says little of how rows were sampled
_OF_RATES = ": their mean rates"
_OUTSIDE = "the mean lies outside the interval, which is of the groups' mean rates"


def summarise(
    metrics: pd.DataFrame, per: Sequence[str] = (), *, level: float = 0.95, intervals: bool = True
) -> pd.DataFrame:
    """Return mean, sd over repeats, the mean's interval, median n and status of every metric.

    Hold-out repeats share rows: their mean has the corrected resampled t interval. Folds are judged
    as one test set. The mean of a gap is that of the splits' gaps, as papers print it, and its
    interval is that of the gap between the groups' mean rates, which chance does not widen.
    Undefined repeats are left out and counted in the reason.

    Parameters
    ----------
    per : further columns, such as ``run``, each of whose values is summed up by itself.
    level : of the intervals.
    intervals : False leaves them out (NaN). They need the rates of all groups, and the rows of
        ``fit_seconds``, which say how many rows were trained on.

    Returns
    -------
    The columns of `per`, variant, metric, attribute, group, mean, sd, lower, upper, estimand (what
    the interval is of), n, repeats, status (the most frequent that is not ok), reason (with the
    repeats that have one, such as ``no positives (2 of 20)``) and the columns of the settings.
    """
    code, settings = setting_codes(metrics)
    keys = metrics[[*per, *_BY]].assign(_setting=code)
    # Which group each row is of, found once: texts are slow to group by.
    cell = keys.groupby(list(keys), sort=False, observed=True).ngroup().to_numpy()
    means = (
        metrics[["value", "n"]]
        .groupby(cell)
        .agg(mean=("value", "mean"), sd=("value", "std"), n=("n", "median"),
             repeats=("value", "count"))
    )  # fmt: skip
    first = keys.iloc[np.flatnonzero(~pd.Series(cell).duplicated())].reset_index(drop=True)
    place = first.pop("_setting").to_numpy()
    outcomes = settings["outcome"].astype(object).fillna("") if "outcome" in settings else [""]
    outcome = np.asarray(outcomes, object)[place if len(outcomes) > 1 else place * 0]
    lower, upper = np.full((2, len(first)), np.nan)
    estimand = np.full(len(first), "", object)
    if intervals:
        for cells, run in _runs(metrics, cell, first.assign(outcome=outcome), per, level):
            lower[cells], upper[cells], estimand[cells] = run.intervals()
    summary = pd.concat([first, means], axis=1).assign(lower=lower, upper=upper, estimand=estimand)
    statuses = _outside(summary, _statuses(metrics, cell, len(means)))
    summary = pd.concat([summary[[*first, *_COLUMNS]], statuses], axis=1)
    return summary.assign(
        **{name: settings[name].array.take(place) for name in SETTINGS if name in settings}
    )


def _statuses(metrics: pd.DataFrame, group: NDArray[np.intp], groups: int) -> pd.DataFrame:
    """Return status and reason: ok, or what is most frequent and in how many repeats there is any.

    Parameters
    ----------
    group : the number of each row's group, below `groups`.
    """
    status, reason = np.full(groups, "ok", object), np.full(groups, "", object)
    flags = (metrics["status"] != "ok").to_numpy(bool)
    texts = (metrics[name].to_numpy(object)[flags] for name in ("status", "reason"))
    often = Counter(zip(group[flags].tolist(), *texts, strict=True))
    total, flagged = (np.bincount(each, minlength=groups) for each in (group, group[flags]))
    rank = {kind: place for place, kind in enumerate(STATUSES)}
    # The last of a group is written last: the most frequent, of equals the first in this order.
    rarest_first = sorted(often, key=lambda each: (-often[each], rank[each[1]], each[2]))[::-1]
    for place, kind, why in rarest_first:
        status[place], reason[place] = kind, f"{why} ({flagged[place]} of {total[place]})"
    kinds = pd.Categorical(status, list(STATUSES))
    return pd.DataFrame({"status": kinds, "reason": pd.array(reason, dtype="str")})


def _outside(summary: pd.DataFrame, statuses: pd.DataFrame) -> pd.DataFrame:
    """Say of means that lie outside their intervals, where nothing else is wrong with them."""
    mean, slack = summary["mean"].to_numpy(), 1e-12
    outside = mean < summary["lower"].to_numpy() - slack
    outside |= mean > summary["upper"].to_numpy() + slack
    outside &= (statuses["status"] == "ok").to_numpy()
    statuses.loc[outside, "status"] = "insufficient"
    statuses.loc[outside, "reason"] = _OUTSIDE
    return statuses


def _runs(
    metrics: pd.DataFrame, cell: Cells, keys: pd.DataFrame, per: Sequence[str], level: float
) -> Iterator[tuple[Cells, _Run]]:
    """Yield which rows of the summary are of a run, and its values split by split."""
    split = metrics.groupby(_SPLIT, sort=False).ngroup().to_numpy()
    places = metrics[_SPLIT].iloc[np.flatnonzero(~pd.Series(split).duplicated())].to_numpy()
    tables = np.full((4, len(keys), len(places)), np.nan)
    for table, name in zip(tables, ("value", "lower", "upper", "n"), strict=True):
        table[cell, split] = metrics[name].to_numpy(float)
    texts = keys[[*_BY, "outcome"]].astype(str).to_numpy(object).T
    of_run = np.zeros(len(keys), np.intp)
    if per:
        of_run = keys.groupby(list(per), sort=False, observed=True).ngroup().to_numpy()
    for run in range(of_run.max(initial=-1) + 1):
        cells = np.flatnonzero(of_run == run)
        mine = tables[:, cells]
        there = np.isfinite(mine[3]).any(axis=0)
        value, lower, upper, n = mine[:, :, there]
        of_splits = (value, lower, upper, np.nan_to_num(n), places[there])
        variant, metric, attribute, group, outcome = texts[:, cells]
        about = variant, metric, attribute, group, outcome
        yield cells, _Run(*about, *of_splits, level=level)


@dataclass(frozen=True, eq=False)
class _Ends:
    """The ends (C,) of intervals as far as they are known, and which are of groups' mean rates."""

    lower: Array
    upper: Array
    of_rates: NDArray[np.bool_]

    def put(self, cells: int | Cells, limits: Limits, *, of_rates: bool = False) -> None:
        """Write the ends of some intervals."""
        self.lower[cells], self.upper[cells] = limits.lower, limits.upper
        self.of_rates[cells] = of_rates


@dataclass(frozen=True, eq=False)
class _Run:
    """The C metrics of a run in its S splits.

    Attributes
    ----------
    variant, metric, attribute, group, outcome : (C,) what each is about.
    value, lower, upper, n : (C, S), NaN (n: 0) where a split has none.
    places : (S, 2) repeat and fold of every split.
    level : of the intervals.
    """

    variant: Texts
    metric: Texts
    attribute: Texts
    group: Texts
    outcome: Texts
    value: Array
    lower: Array
    upper: Array
    n: Array
    places: NDArray[np.int64]
    level: float

    def intervals(self) -> tuple[Array, Array, Texts]:
        """Return the lower and upper ends (C,), and what each interval is of."""
        ends = _Ends(self.lower[:, 0].copy(), self.upper[:, 0].copy(), np.zeros(len(self.n), bool))
        if self.splits.kind != ONE:
            ends = self._of_values()
            self._of_rates(ends)
            for cells in self._by_attribute():
                self._of_groups(cells, ends)
        none = np.isnan(ends.lower) | np.isnan(ends.upper)
        lower, upper = (np.where(none, np.nan, each) for each in (ends.lower, ends.upper))
        own = self.splits.estimand
        estimand = np.where(ends.of_rates, own + _OF_RATES, own).astype(object)
        return lower, upper, np.where(none, "", estimand)

    @cached_property
    def splits(self) -> Splits:
        """How the splits share rows."""
        repeats, folds = (len(np.unique(column)) for column in self.places.T)
        if folds > 1:
            return Splits(FOLDS, repeats)
        if repeats == 1:
            return Splits(ONE)
        return Splits(SAME if self._same_rows() else REPEATS, repeats, self._test_share())

    def _same_rows(self) -> bool:
        """Say whether all repeats test the same people: as many of each group, of each label."""
        rows = np.isin(self.metric, ("base_rate", "mean_prediction")) & (self.attribute != "")
        alike = rows.any() and (self.n[rows] == self.n[rows][:, :1]).all()
        labels = np.nan_to_num(self.value[rows & (self.metric == "base_rate")])
        return bool(alike and (labels == labels[:, :1]).all())

    def _test_share(self) -> float:
        """Return the share of rows that is tested; one half, which is careful, if unknown."""
        own = (self.attribute == "") & (self.variant == "")
        tested = self.n[own & np.isin(self.metric, ("error_rate", "rmse"))]
        trained = self.n[own & (self.metric == "fit_seconds")]
        if not (tested.any() and trained.any()):
            return 0.5
        return float(tested.mean() / (tested.mean() + trained.mean()))

    def _of_values(self) -> _Ends:
        """Return the ends of means of values that have intervals in the splits, or are smooth."""
        declared = [find(name) for name in self.metric]
        means = mean_limits(
            self.value, self.lower, self.upper, self.splits, level=self.level,
            ratio=np.array([name.endswith("_ratio") for name in self.metric], bool),
        )  # fmt: skip
        positive = np.nan_to_num(self.lower, nan=0.0).min(axis=1) >= 0
        share = np.array([each is not None and _is_at_most_one(each) for each in declared], bool)
        lower = np.where(positive, np.clip(means.lower, 0, None), means.lower)
        upper = np.where(share, np.clip(means.upper, None, 1), means.upper)
        # Of a folded value the splits' own ends are averaged: nothing is gained by repeating.
        folded = np.array([each is not None and _is_folded(each) for each in declared], bool)
        single = folded | (np.isfinite(self.value).sum(axis=1) == 1)
        lower[single], upper[single] = _averaged(self.lower[single]), _averaged(self.upper[single])
        known = np.isfinite(self.lower).any(axis=1) | np.isin(self.metric, _SMOOTH)
        lower[~known], upper[~known] = np.nan, np.nan
        return _Ends(lower, upper, np.zeros(len(lower), bool))

    def _of_rates(self, ends: _Ends) -> None:
        """Write the ends of rates of counts."""
        cells = np.flatnonzero(np.isin(self.metric, _rates_of_counts()))
        cells = cells[np.isfinite(self.value[cells]).any(axis=1)]
        ends.put(cells, self._rates(cells[:, None]).limits().take(0))

    def _rates(self, cells: Cells, rates: int = 1) -> RunRates:
        sizes = self.n[cells] / self._design_effect(cells)[..., None]
        return RunRates(self.value[cells], sizes, self.splits, self.level, rates)

    def _design_effect(self, cells: Cells) -> Array:
        """Return how much wider, squared, weights and clusters make the splits' intervals.

        The median over the splits in which at least five rows have either outcome; 1 of plain
        counts, whose intervals are no wider than the counts make them.
        """
        value, n = self.value[cells], self.n[cells]
        half = (self.upper[cells] - self.lower[cells]) / 2 / quantile(self.level)
        with np.errstate(invalid="ignore", divide="ignore"):
            effect = n * half**2 / (value * (1 - value))
        effect = np.where(n * np.minimum(value, 1 - value) >= _FEW, effect, 1.0)
        whole: Array = np.maximum(np.median(effect, axis=-1), 1.0)
        return np.nan_to_num(whole, nan=1.0)

    def _by_attribute(self) -> Iterator[dict[str, dict[str, int]]]:
        """Yield the metrics of each attribute's groups, by class: metric -> group -> place."""
        found: dict[tuple[str, ...], dict[str, dict[str, int]]] = {}
        wanted = np.isin(self.metric, [*_rates_of_counts(), *_compared()])
        for i in np.flatnonzero(wanted & (self.attribute != "")):
            key = (self.variant[i], self.attribute[i], self.outcome[i])
            of_attribute = found.setdefault(key, {})
            of_attribute.setdefault(self.metric[i], {})[self.group[i]] = int(i)
        yield from found.values()

    def _of_groups(self, cells: dict[str, dict[str, int]], ends: _Ends) -> None:
        """Write the ends of what compares an attribute's groups."""
        for name, places in cells.items():
            metric = _compared().get(name)
            if metric is None or any(rate.name not in cells for rate in metric.rates):
                continue
            of_rates = [np.array(list(cells[rate.name].values())) for rate in metric.rates]
            if metric.interval == "widest":
                self._of_gap(places[""], metric, of_rates, ends)
            elif len(places) == len(of_rates[0]) - 1:
                rates, others = self._rates(of_rates[0]), np.array(list(places.values()))
                is_ratio = metric.interval == "ratio"
                limits = mean_ratios(rates) if is_ratio else rates.against_first()
                ends.put(others, limits, of_rates=is_ratio)

    def _of_gap(self, place: int, metric: Metric, of_rates: list[Cells], ends: _Ends) -> None:
        """Write the ends of a largest gap or smallest ratio, of the groups that have the rates."""
        there = np.all([np.isfinite(self.value[cells]).any(axis=1) for cells in of_rates], axis=0)
        if there.sum() < 2:
            return
        rates = [self._rates(cells[there], len(of_rates)) for cells in of_rates]
        if metric.is_gap:
            limits = largest_mean_gap(*rates)
        elif there.sum() == 2:
            limits = mean_ratios(rates[0]).take(0)
        else:
            limits = smallest_mean_ratio(rates[0])
        ends.put(place, limits, of_rates=True)


@lru_cache(maxsize=1)
def _rates_of_counts() -> list[str]:
    """Return the names of the shares of rows, in which every row counts as one."""
    rates = metrics_of(BINARY, "rate").values()
    found = [each.name for each in rates if [r.weights for r in each.rates] == [(1, 1)]]
    return [*found, "coverage", "empty_sets", "infinite_intervals", TRUNCATED_ROWS.name]


def _compared() -> Mapping[str, Metric]:
    return metrics_of(BINARY, "difference", "ratio", "widest")


def _is_at_most_one(metric: Metric) -> bool:
    return metric.interval in ("rate", "auc") or metric.name == "r2"


def _is_folded(metric: Metric) -> bool:
    """Say whether noise makes a metric's values larger on average, or may."""
    return metric.interval in ("widest", "bootstrap", "none") and metric.name not in _SMOOTH


def _averaged(values: Array) -> Array:
    """Return the means (C,) of the finite values (C, S)."""
    known = np.isfinite(values)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean: Array = np.where(known, values, 0).sum(axis=1) / known.sum(axis=1)
    return mean
