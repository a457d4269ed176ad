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

from fairbench.core.arrays import Floats
from fairbench.evaluation.abstention import SHARES
from fairbench.evaluation.columns import (
    BELOW_EPSILON,
    PAIRS_THAT_DIFFER,
    SETTINGS,
    STATUSES,
    VALUE,
    setting_codes,
)
from fairbench.inference.gaps import probability_below
from fairbench.inference.rates import Limits, quantile, rate_limits
from fairbench.inference.repeats import (
    FOLDS,
    ONE,
    REPEATS,
    SAME,
    RunRates,
    Splits,
    finite_mean,
    largest_mean_gap,
    mean_limits,
    mean_ratios,
    smallest_mean_ratio,
)
from fairbench.metrics.registry import BINARY, Metric, declared, find, metrics_of
from fairbench.metrics.sequences import TRUNCATED_ROWS

Texts: TypeAlias = NDArray[np.object_]
Cells: TypeAlias = NDArray[np.intp]
_BY = ["variant", "metric", "statistic", "attribute", "group"]
_SPLIT = ["repeat", "fold"]
_COLUMNS = ("mean", "sd", "lower", "upper", "estimand", "n", "repeats")
# Means of these over repeats are normal enough for a t interval where a repeat has none of its own.
_SMOOTH = ("roc_auc", "rmse", "r2")
_FEW = 5  # rows of an outcome, under which an interval says little of how rows were sampled
_OF_RATES = ": their mean rates"
_OUTSIDE = "the mean lies outside the interval, which is of the groups' mean rates"


def summarise(
    metrics: pd.DataFrame, per: Sequence[str] = (), *, level: float = 0.95, intervals: bool = True
) -> pd.DataFrame:
    """Return mean, sd over repeats, the mean's interval, median n and status of every metric.

    The interval is of what these fits make of new people, on average (see
    :mod:`fairbench.inference.repeats`). The mean of a gap is that of the splits' gaps, as papers
    print it, and its interval is that of the gap between the groups' mean rates, which chance does
    not widen.
    Undefined repeats are left out and counted in the reason.

    Parameters
    ----------
    per : further columns, such as ``run``, each of whose values is summarised by itself.
    level : of the intervals.
    intervals : False leaves them out (NaN). They need the rates of all groups, and the rows of
        ``fit_seconds``, which say how many rows were trained on.

    Returns
    -------
    The columns of `per`, variant, metric, statistic, attribute, group, mean, sd, lower, upper,
    estimand (what the interval is of), n, repeats, status (the most frequent that is not ok),
    reason (with the repeats that have one, such as ``no positives (2 of 20)``) and the columns of
    the settings.
    """
    code, settings = setting_codes(metrics)
    keys = metrics[[*per, *_BY]].assign(_setting=code)
    # The rows that are summarised together have one number. It is found once, as grouping by
    # texts is slow.
    cell = keys.groupby(list(keys), sort=False, observed=True).ngroup().to_numpy()
    means = (
        metrics[["value", "n"]]
        .groupby(cell)
        .agg(mean=("value", "mean"), sd=("value", "std"), n=("n", "median"),
             repeats=("value", "count"))
    )  # fmt: skip
    rows = keys.iloc[np.flatnonzero(~pd.Series(cell).duplicated())].reset_index(drop=True)
    place = rows["_setting"].to_numpy()
    outcomes = settings["outcome"].astype(object).fillna("") if "outcome" in settings else [""]
    outcome = np.asarray(outcomes, object)[place if len(outcomes) > 1 else place * 0]
    lower, upper = np.full((2, len(rows)), np.nan)
    estimand = np.full(len(rows), "", object)
    if intervals:
        about = rows.assign(outcome=outcome)
        for cells, run in _runs(metrics, cell, about, per, level):
            lower[cells], upper[cells], estimand[cells] = run.intervals()
        means["mean"] = _within_intervals(
            about, means["mean"].to_numpy(), lower, upper, settings, level
        )
    del rows["_setting"]
    summary = pd.concat([rows, means], axis=1).assign(lower=lower, upper=upper, estimand=estimand)
    statuses = _flag_outside(summary, _statuses(metrics, cell, len(means)))
    summary = pd.concat([summary[[*rows, *_COLUMNS]], statuses], axis=1)
    return summary.assign(
        **{name: settings[name].array.take(place) for name in SETTINGS if name in settings}
    )


def _within_intervals(
    keys: pd.DataFrame,
    mean: Floats,
    lower: Floats,
    upper: Floats,
    settings: pd.DataFrame,
    level: float,
) -> Floats:
    """Return the means (C,), with probabilities of small gaps no surer than the gaps' intervals.

    The papers' posterior, whose tables do not count the pairs that differ, stays as it is.
    """
    statistic = keys["statistic"].to_numpy(object)
    below = np.flatnonzero(statistic == BELOW_EPSILON)
    if not len(below):
        return mean
    of_gap = keys.drop(columns=["statistic", "_setting"])
    gap = of_gap.groupby(list(of_gap), sort=False, observed=True).ngroup().to_numpy()
    value, counted = np.full(gap.max() + 1, -1), np.zeros(gap.max() + 1, bool)
    values = np.flatnonzero(statistic == VALUE)
    value[gap[values]] = values
    counted[gap[statistic == PAIRS_THAT_DIFFER]] = True
    below = below[counted[gap[below]]]
    epsilon = settings["epsilon"].to_numpy(float)[keys["_setting"].to_numpy()[below]]
    place, bounded = value[gap[below]], mean.copy()
    ends = lower[place], upper[place]
    bounded[below] = probability_below(mean[below], ends[0], ends[1], epsilon, level=level)
    return bounded


def _statuses(metrics: pd.DataFrame, group: NDArray[np.intp], groups: int) -> pd.DataFrame:
    """Return the most frequent flag of each group, or ok, and a reason with how many rows have one.

    Parameters
    ----------
    group : the number of each row's group, below `groups`.
    """
    flagged = np.flatnonzero((metrics["status"] != "ok").to_numpy(bool))
    place, kinds = group[flagged].tolist(), list(metrics["status"].to_numpy(object)[flagged])
    often = Counter(zip(place, kinds, metrics["reason"].to_numpy(object)[flagged], strict=True))
    rank = {kind: code for code, kind in enumerate(STATUSES)}
    # The most frequent status; of several as frequent, the first in this order.
    chosen: dict[int, tuple[int, int, str]] = {}
    for (at, kind, why), count in often.items():
        candidate = (-count, rank[kind], why)
        chosen[at] = min(chosen.get(at, candidate), candidate)
    total, flags = (np.bincount(array, minlength=groups) for array in (group, group[flagged]))
    code, reason = np.zeros(groups, np.int8), np.full(groups, "", object)
    for at, (_, kind_code, why) in chosen.items():
        code[at], reason[at] = kind_code, f"{why} ({flags[at]} of {total[at]})"
    statuses = pd.Categorical.from_codes(code, list(STATUSES))
    return pd.DataFrame({"status": statuses, "reason": pd.array(reason, dtype="str")})


def _flag_outside(summary: pd.DataFrame, statuses: pd.DataFrame) -> pd.DataFrame:
    """Flag means that lie outside their intervals, where nothing else is wrong with them."""
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
    """Yield each run's rows in the summary, and its values in every split."""
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
        run_tables = tables[:, cells]
        has_split = np.isfinite(run_tables[3]).any(axis=0)
        value, lower, upper, n = run_tables[:, :, has_split]
        of_splits = (value, lower, upper, np.nan_to_num(n), places[has_split])
        variant, metric, statistic, attribute, group, outcome = texts[:, cells]
        # Only the value of a metric has the intervals that are known for the metric's name.
        of_values = np.where(statistic == VALUE, metric, "").astype(object)
        about = variant, of_values, attribute, group, outcome
        yield cells, _Run(*about, *of_splits, level=level)


@dataclass(frozen=True, eq=False)
class _Ends:
    """The ends (C,) of intervals as far as they are known, and which are of groups' mean rates."""

    lower: Floats
    upper: Floats
    of_rates: NDArray[np.bool_]

    def put(self, cells: Cells, limits: Limits, *, of_rates: bool = False) -> None:
        """Write the ends of some intervals."""
        self.lower[cells], self.upper[cells] = limits.lower, limits.upper
        self.of_rates[cells] = of_rates


@dataclass(frozen=True, eq=False)
class _Run:
    """The C metrics of a run in its S splits.

    Attributes
    ----------
    variant, metric, attribute, group, outcome : (C,) what each is about; no metric is named of
        what is not its value.
    value, lower, upper, n : (C, S), NaN (n: 0) where a split has none.
    places : (S, 2) repeat and fold of every split.
    level : of the intervals.
    """

    variant: Texts
    metric: Texts
    attribute: Texts
    group: Texts
    outcome: Texts
    value: Floats
    lower: Floats
    upper: Floats
    n: Floats
    places: NDArray[np.int64]
    level: float

    def intervals(self) -> tuple[Floats, Floats, Texts]:
        """Return the lower and upper ends (C,), and what each interval is of."""
        ends = _Ends(self.lower[:, 0].copy(), self.upper[:, 0].copy(), np.zeros(len(self.n), bool))
        if self.splits.kind != ONE:
            ends = self._of_values()
            self._of_rates(ends)
            for cells in self._by_attribute():
                self._of_groups(cells, ends)
        no_interval = np.isnan(ends.lower) | np.isnan(ends.upper)
        lower, upper = (np.where(no_interval, np.nan, array) for array in (ends.lower, ends.upper))
        of_splits = self.splits.estimand
        estimand = np.where(ends.of_rates, of_splits + _OF_RATES, of_splits).astype(object)
        return lower, upper, np.where(no_interval, "", estimand)

    @cached_property
    def splits(self) -> Splits:
        """How the splits share rows."""
        repeats, folds = (len(np.unique(column)) for column in self.places.T)
        if folds > 1:
            return Splits(FOLDS, repeats, 1 / folds)
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
        of_everyone = (self.attribute == "") & (self.variant == "")
        tested = self.n[of_everyone & np.isin(self.metric, ("error_rate", "rmse"))]
        trained = self.n[of_everyone & (self.metric == "fit_seconds")]
        if not (tested.any() and trained.any()):
            return 0.5
        return float(tested.mean() / (tested.mean() + trained.mean()))

    def _of_values(self) -> _Ends:
        """Return the ends of means of values that have intervals in the splits, or are smooth."""
        metrics = [find(name) for name in self.metric]
        means = mean_limits(
            self.value, self.lower, self.upper, self.splits, level=self.level,
            ratio=np.array([name.endswith("_ratio") for name in self.metric], bool),
            chance=np.where(self.metric == "roc_auc", 0.5, np.nan),
        )  # fmt: skip
        positive = np.nan_to_num(self.lower, nan=0.0).min(axis=1) >= 0
        share = np.array([_is_share(name) for name in self.metric], bool)
        lower = np.where(positive, np.clip(means.lower, 0, None), means.lower)
        upper = np.where(share, np.clip(means.upper, None, 1), means.upper)
        # Of a folded value the splits' own ends are averaged: nothing is gained by repeating.
        folded = np.array([metric is not None and _is_folded(metric) for metric in metrics], bool)
        single = folded | (np.isfinite(self.value).sum(axis=1) == 1)
        for ends, split_ends in ((lower, self.lower), (upper, self.upper)):
            ends[single] = finite_mean(split_ends[single])
        has_ends = np.isfinite(self.lower).any(axis=1) | np.isin(self.metric, _SMOOTH)
        lower[~has_ends], upper[~has_ends] = np.nan, np.nan
        return _Ends(lower, upper, np.zeros(len(lower), bool))

    def _of_rates(self, ends: _Ends) -> None:
        """Write the ends of rates of counts."""
        cells = np.flatnonzero(np.isin(self.metric, _rates_of_counts()))
        cells = cells[np.isfinite(self.value[cells]).any(axis=1)]
        ends.put(cells, self._rates(cells[:, None]).limits().take(0))

    def _rates(self, cells: Cells, rates: int = 1) -> RunRates:
        sizes = self.n[cells] / self._design_effect(cells)[..., None]
        return RunRates(self.value[cells], sizes, self.splits, self.level, rates)

    def _design_effect(self, cells: Cells) -> Floats:
        """Return how much wider, squared, weights and clusters make the splits' intervals.

        The median over the splits in which at least five rows have either outcome; 1 of plain
        counts, whose intervals are no wider than the counts make them.
        """
        value, n = self.value[cells], self.n[cells]
        half = (self.upper[cells] - self.lower[cells]) / 2 / quantile(self.level)
        with np.errstate(invalid="ignore", divide="ignore"):
            effect = n * half**2 / (value * (1 - value))
        effect = np.where(n * np.minimum(value, 1 - value) >= _FEW, effect, 1.0)
        wide = effect > 1  # the limits of few rows are wider than a normal interval, too
        if wide.any():
            of_counts = rate_limits(value[wide] * n[wide], n[wide], level=self.level)
            plain = (of_counts.upper - of_counts.lower) / 2 / quantile(self.level)
            effect[wide] = (half[wide] / plain) ** 2
        whole: Floats = np.maximum(np.median(effect, axis=-1), 1.0)
        return np.nan_to_num(whole, nan=1.0)

    def _by_attribute(self) -> Iterator[dict[str, dict[str, int]]]:
        """Yield the metrics of each attribute's groups, by class: metric -> group -> place."""
        attributes: dict[tuple[str, ...], dict[str, dict[str, int]]] = {}
        wanted = np.isin(self.metric, [*_rates_of_counts(), *_compared()])
        for i in np.flatnonzero(wanted & (self.attribute != "")):
            key = (self.variant[i], self.attribute[i], self.outcome[i])
            of_attribute = attributes.setdefault(key, {})
            of_attribute.setdefault(self.metric[i], {})[self.group[i]] = int(i)
        yield from attributes.values()

    def _of_groups(self, cells: dict[str, dict[str, int]], ends: _Ends) -> None:
        """Write the ends of what compares an attribute's groups, all of a kind together."""
        pairs: dict[str, list[tuple[Cells, Cells]]] = {}
        gaps: dict[tuple[bool, int, bytes], list[tuple[int, Cells]]] = {}
        for name, places in cells.items():
            metric = _compared().get(name)
            if metric is None or any(rate.name not in cells for rate in metric.rates):
                continue
            of_rates = np.array([list(cells[rate.name].values()) for rate in metric.rates])
            if metric.interval != "widest":
                others = np.array(list(places.values()))
                if len(others) == of_rates.shape[1] - 1:
                    pairs.setdefault(metric.interval, []).append((others, of_rates[0]))
                continue
            has_rates = np.isfinite(self.value[of_rates]).any(axis=-1).all(axis=0)
            if has_rates.sum() > 1:
                key = metric.is_gap, len(of_rates), has_rates.tobytes()
                gaps.setdefault(key, []).append((places[""], of_rates[:, has_rates]))
        for kind, several in pairs.items():
            others, of_rate = (np.stack(column) for column in zip(*several, strict=True))
            rates, is_ratio = self._rates(of_rate), kind == "ratio"
            limits = mean_ratios(rates) if is_ratio else rates.against_first()
            ends.put(others, limits, of_rates=is_ratio)
        for (is_gap, count, _), of_gaps in gaps.items():
            at = np.array([place for place, _ in of_gaps])
            of_rates = np.stack([cells_of_gap for _, cells_of_gap in of_gaps], axis=1)
            ends.put(at, self._gaps(of_rates, count, is_gap=is_gap), of_rates=True)

    def _gaps(self, of_rates: Cells, count: int, *, is_gap: bool) -> Limits:
        """Return largest gaps or smallest ratios (M,), of cells (rates, M, G)."""
        rates = [self._rates(rate, count) for rate in of_rates]
        if is_gap:
            return largest_mean_gap(*rates)
        if of_rates.shape[-1] == 2:
            return mean_ratios(rates[0]).take(0)
        return smallest_mean_ratio(rates[0])


@lru_cache(maxsize=1)
def _rates_of_counts() -> list[str]:
    """Return the names of the shares of rows, in which every row counts as one."""
    rates = metrics_of(BINARY, "rate").values()
    names = [rate.name for rate in rates if [term.weights for term in rate.rates] == [(1, 1)]]
    return [*names, "coverage", "empty_sets", "infinite_intervals", TRUNCATED_ROWS.name]


def _compared() -> Mapping[str, Metric]:
    return metrics_of(BINARY, "difference", "ratio", "widest")


def _is_share(metric: str) -> bool:
    """Say whether a metric is never above 1."""
    return metric.startswith(("reliability_", "individual_fairness_")) or metric in _at_most_one()


@lru_cache(maxsize=1)
def _at_most_one() -> frozenset[str]:
    """Return the names of what is never above 1, such as shares and what compares them."""
    bounded = [metric for metric in declared() if metric.at_most == 1]
    shares = [metric.name for metric in bounded if metric.interval != "explained"]
    compared = {f"{name}_{form}" for name in shares for form in ("gap", "difference")}
    return frozenset({metric.name for metric in bounded} | compared | SHARES)


def _is_folded(metric: Metric) -> bool:
    """Say whether noise makes a metric's values larger on average, or may."""
    return metric.interval in ("widest", "bootstrap", "none") and metric.name not in _SMOOTH
