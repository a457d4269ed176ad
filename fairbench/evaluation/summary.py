"""A run's metrics as means over its repeats or folds, and the three that it is first looked at by.

:func:`summarise` makes the table of means with their intervals; `HEADLINES` names the error, the
log loss and the gap of a task.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.core.arrays import Floats, divide
from fairbench.core.errors import UserError, note
from fairbench.evaluation import table as tables
from fairbench.evaluation.abstention import SHARES
from fairbench.inference import repeats
from fairbench.inference.gaps import probability_below
from fairbench.inference.rates import Limits, quantile, rate_limits
from fairbench.metrics import registry

# The first columns of a table of runs: error, uncertainty, and differences between groups.
HEADLINES: Mapping[str, Mapping[str, str]] = {
    registry.BINARY: {"error": "error_rate", "log loss": "log_loss", "gap": "equalized_odds"},
    registry.MULTICLASS: {
        "error": "error_rate",
        "log loss": "log_loss",
        "gap": "equal_opportunity_class_mean",
    },
    registry.REGRESSION: {"error": "rmse", "log loss": "nll", "gap": "statistical_parity"},
}
# What stands beside a gap among more than two groups, which chance makes larger.
DEBIASED_MEANS = (
    f"{tables.DEBIASED}: the gap less what chance adds to the largest of more than two groups"
)
_PLACES = (*tables.SETTINGS, "group")  # what a metric may have several values of
# The rows of a metric that are its value, where there are such.
_USUAL: Mapping[str, tuple[Any, ...]] = {
    "statistic": (tables.VALUE,),
    "outcome": (np.nan,),
    "binning": (np.nan, "width"),
    "group": ("",),
    "attribute": ("",),
}
_KEYS = ("run", "variant", "metric", "attribute", "group", "outcome")
_UNKNOWN = (float("nan"), float("nan"), float("nan"))
Estimate = tuple[float, float, float]


def headline_of(runs: Iterable[Any]) -> str:
    """Return the headline gap of runs; empty, with a note if they differ, for the usual one."""
    names = {run.headline: run.id for run in runs}
    if len(names) < 2:
        return next(iter(names), "")
    different = " and ".join(f"{name or 'the usual one'} of run {names[name]}" for name in names)
    note(f"runs have different headlines, {different}: the usual one is shown")
    return ""


class Headlines:
    """What a run is first looked at by, found in one pass over the rows of its summary.

    Parameters
    ----------
    summary : the summary of a run, as :func:`fairbench.evaluation.summary.summarise` returns it.
    protect : the attribute, or combination, whose groups gaps are between.
    gap : the gap that it is first looked at by; the usual one of its task by default.
    """

    def __init__(self, summary: pd.DataFrame, protect: str, gap: str = "") -> None:
        self._summary, self._protect, self._gap = summary, protect, gap
        names = ("variant", "group", "attribute", "metric", "statistic", "binning")
        columns = [summary[name].tolist() for name in names]
        of_class = summary["outcome"].notna().tolist()
        # (metric, statistic) -> attribute -> places of the rows of everyone, or of all groups.
        self._places: dict[tuple[str, str], dict[str, list[int]]] = {}
        rows = enumerate(zip(*columns, strict=True))
        for place, (variant, group, attribute, metric, statistic, binning) in rows:
            if variant == group == "" and attribute in ("", protect):
                places = self._places.setdefault((metric, statistic), {}).setdefault(attribute, [])
                if binning != "mass" and not of_class[place]:
                    places.append(place)

    def _row(self, metric: str) -> tuple[str, int] | None:
        """Return attribute and place of the one row of a metric; of everyone, if there is one."""
        of_metric = self._places.get((metric, tables.VALUE), {})
        attribute = min(of_metric, default="")
        places = of_metric.get(attribute, [])
        return (attribute, places[0]) if len(places) == 1 else None

    def estimate(self, metric: str) -> Estimate:
        """Return a metric of everyone, or of the protected groups, with its interval; NaN if none.

        Raises
        ------
        UserError : there are several values, such as one for each rate of abstention.
        """
        table, row = self._summary, self._row(metric)
        if row is None:
            table = rows_of(table, metric, self._protect)
            if len(table) > 1:
                raise several_values(metric, table)
        if not len(table):
            return _UNKNOWN
        place = row[1] if row else 0
        mean, lower, upper = (float(table[name].iat[place]) for name in ("mean", "lower", "upper"))
        return mean, lower, upper

    @cached_property
    def task(self) -> str:
        """What the run predicts."""
        return task_of(self._summary)

    @cached_property
    def names(self) -> dict[str, str]:
        """The metrics that are its ``error``, ``log loss`` and ``gap``."""
        usual = HEADLINES[self.task]
        return {**usual, "gap": self._gap or usual["gap"]}

    @cached_property
    def usual(self) -> dict[str, Estimate]:
        """The ``error``, ``log loss`` and ``gap``: the mean, and the ends of its interval."""
        return {name: self.estimate(metric) for name, metric in self.names.items()}

    @cached_property
    def debiased_gap(self) -> float:
        """The gap less what chance adds to it; NaN between two groups."""
        metric = self.names["gap"]
        row = self._row(metric)
        if row is None or metric not in _gaps():
            return _UNKNOWN[0]
        places = self._places.get((metric, tables.DEBIASED), {}).get(row[0], [])
        return float(self._summary["mean"].iat[places[-1]]) if places else _UNKNOWN[0]


def rows_of(table: pd.DataFrame, name: str, protect: str) -> pd.DataFrame:
    """Return the rows of a metric, one in each split, or several where it has several values.

    They are of everyone, or else of all groups of `protect` together, or of what compares each
    with the first; of a gap that is stored only less what chance adds to it, that. ``coverage@0.9``
    means the rows of a setting, a class or a group.
    """
    metric, *at = name.split(registry.AT)
    chosen = (table["metric"] == metric) & (table["variant"] == "")
    rows = table[chosen & table["attribute"].isin(["", protect])]
    for value in at:
        texts = rows[[*_PLACES]].astype(str).replace(r"\.0$", "", regex=True)
        rows = rows[(texts == value.removesuffix(".0")).any(axis=1)]
    for column, usual in _USUAL.items():
        is_usual = rows[column].isin(usual)
        rows = rows[is_usual] if is_usual.any() else rows
    return rows


def several_values(name: str, rows: pd.DataFrame) -> UserError:
    """Return the error that rows of a metric are several in a split, with some that are one."""
    varies = next(column for column in _PLACES if rows[column].nunique() > 1)
    named = [f"{name}{registry.AT}{value}" for value in rows[varies].dropna().unique()]
    return UserError(
        f"{name} has several values in a split, one for each {varies}: name one, such as "
        + " or ".join(named[:2])
    )


def task_of(summary: pd.DataFrame) -> str:
    """Return what a run predicts, by the metrics that it has."""
    if not (summary["metric"] == HEADLINES[registry.BINARY]["error"]).any():
        return registry.REGRESSION
    of_classes = (summary["metric"] == "base_rate") & summary["outcome"].notna()
    return registry.MULTICLASS if of_classes.any() else registry.BINARY


FITS = ("constraint_active", *tables.COSTS)


def headline(summary: pd.DataFrame, protect: str) -> pd.DataFrame:
    """Return the most important rows: of everyone, gaps of `protect`, its groups, the fits.

    Those of single classes have a table of their own.
    """
    summary = tables.values_of(summary)
    summary = summary[(summary["variant"] == "") & summary["outcome"].isna()]
    overall = summary["attribute"] == ""
    protected, grouped = summary["attribute"] == protect, summary["group"] != ""
    mass = (summary["binning"] == "mass").to_numpy(bool)

    def shown(where: str) -> pd.Series:
        """Return which rows are of metrics that the table shows there."""
        return summary["metric"].isin([of.name for of in registry.declared() if where in of.shown])

    parts = [
        summary[overall & shown("everyone") & ~mass],
        summary[protected & ~grouped & shown("gaps")],
        summary[protected & grouped & shown("groups")],
        summary[overall & summary["metric"].isin(FITS)],
    ]
    return pd.concat(parts, ignore_index=True)


def debiased_gaps(rows: pd.DataFrame, summary: pd.DataFrame) -> Floats:
    """Return the means of gaps (n,) less what chance adds to them; NaN of what has no such mean.

    Parameters
    ----------
    rows : n rows of the summary's values.
    summary : the whole summary, of one run or of several.
    """
    keys = [name for name in _KEYS if name in summary]
    debiased = summary[(summary["statistic"] == tables.DEBIASED) & summary["metric"].isin(_gaps())]
    mean_of = dict(zip(_as_texts(debiased[keys]), debiased["mean"], strict=True))
    return np.array([mean_of.get(key, np.nan) for key in _as_texts(rows[keys])], float)


def _gaps() -> list[str]:
    """Return the metrics of gaps to whose value chance adds."""
    widest = registry.metrics_of(registry.BINARY, *registry.WIDEST)
    return [name for name, metric in widest.items() if metric.better == "lower"]


def _as_texts(keys: pd.DataFrame) -> list[tuple[str, ...]]:
    return list(zip(*(keys[name].astype(str) for name in keys), strict=True))


# A whole run: every metric's mean over repeats or folds, with the interval of that mean.

Texts: TypeAlias = NDArray[np.object_]
Cells: TypeAlias = NDArray[np.intp]
_BY = ["variant", "metric", "statistic", "attribute", "group"]
_SPLIT = ["repeat", "fold"]
_COLUMNS = ("mean", "sd", "lower", "upper", "estimand", "n", "repeats")
_FEW = 5  # rows of an outcome; with fewer, an interval's width says little about the design
_OF_RATES = ": their mean rates"
_OUTSIDE = "the mean lies outside the interval, which is of the groups' mean rates"


def summarise(
    metrics: pd.DataFrame, per: Sequence[str] = (), *, level: float = 0.95, intervals: bool = True
) -> pd.DataFrame:
    """Return mean, sd over repeats, the mean's interval, median n and status of every metric.

    The interval's estimand is the average value that these fits would have on new people (see
    :mod:`fairbench.inference.repeats`). The mean of a gap is the mean of the splits' gaps, as
    papers print it. Its interval is that of the gap between the groups' mean rates, which, unlike
    a split's gap, noise does not make larger on average. Undefined repeats are left out; the
    reason counts them.

    Parameters
    ----------
    per : further columns, such as ``run``, each of whose values is summarised by itself.
    level : the probability of the intervals.
    intervals : False leaves them out (NaN). Intervals need the rates of all groups in `metrics`,
        and its rows of ``fit_seconds``, whose `n` is the number of training rows.

    Returns
    -------
    The columns of `per`, variant, metric, statistic, attribute, group, mean, sd, lower, upper,
    estimand (what the interval covers), n, repeats, status (the most frequent that is not ok),
    reason (with the repeats that have one, such as ``no positives (2 of 20)``) and the columns of
    the settings.
    """
    code, settings = tables.setting_codes(metrics)
    keys = [*per, *_BY]
    # Rows that are summarised together share a cell number.
    columns = [metrics[name].array for name in keys]
    cell, first = tables.numbered([*columns, code], len(code))
    summary = {name: column.take(first) for name, column in zip(keys, columns, strict=True)}
    numbers = _numbers(metrics["value"].to_numpy(float), metrics["n"].to_numpy(float), cell)
    statuses, reasons = _statuses(metrics, cell, len(first))
    lower, upper = np.full((2, len(first)), np.nan)
    estimand = np.full(len(first), "", object)
    if intervals:
        about = {name: np.asarray(summary[name].astype(str), object) for name in _BY}
        about["outcome"] = np.full(len(first), "", object)
        if "outcome" in settings:
            outcomes = settings["outcome"].astype(object).fillna("").to_numpy()
            about["outcome"] = outcomes[code[first]]
        run, _ = tables.numbered((summary[name] for name in per), len(first))
        for cells, of_run in _runs(metrics, cell, about, run, level):
            lower[cells], upper[cells], estimand[cells] = of_run.intervals()
        if "epsilon" in settings:
            epsilon = settings["epsilon"].to_numpy(float)[code[first]]
            limits = Limits(numbers["mean"], lower, upper)
            numbers["mean"] = _within_intervals(about, run, limits, epsilon, level)
    # Means that lie outside their intervals and have no other flag.
    slack, mean = 1e-12, numbers["mean"]
    outside = ((mean < lower - slack) | (mean > upper + slack)) & (statuses == 0)
    statuses[outside] = tables.STATUSES.index("insufficient")
    reasons[outside] = _OUTSIDE
    summary |= {**numbers, "lower": lower, "upper": upper, "estimand": estimand}
    summary["status"] = pd.Categorical.from_codes(statuses, list(tables.STATUSES))
    summary["reason"] = reasons
    summary |= {
        name: settings[name].array.take(code[first]) for name in tables.SETTINGS if name in settings
    }
    ordered = dict.fromkeys([*keys, *_COLUMNS, "status", "reason", *summary])
    return pd.DataFrame(summary, columns=[*ordered])


def _numbers(value: Floats, n: Floats, cell: Cells) -> dict[str, Any]:
    """Return the means, sds, medians of n and counts of the values of each cell.

    Parameters
    ----------
    value, n, cell : (n,) the cell of each value; every cell has one.
    """
    order = np.lexsort((n, cell))
    size = np.bincount(cell)
    starts = np.cumsum(size) - size
    median = (n[order][starts + (size - 1) // 2] + n[order][starts + size // 2]) / 2
    has_value = ~np.isnan(value)
    count = np.bincount(cell, has_value)
    # Differences from the first value are averaged, so that equal values have no spread.
    origin = np.zeros(len(size))
    finite = np.flatnonzero(np.isfinite(value))[::-1]
    origin[cell[finite]] = value[finite]
    shifted = np.where(has_value, value - origin[cell], 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        shift = np.bincount(cell, shifted) / count
        squared = np.where(has_value, shifted - shift[cell], 0.0) ** 2
        variance = np.where(count > 1, np.bincount(cell, squared) / (count - 1), np.nan)
    mean = origin + shift
    return {"mean": mean, "sd": np.sqrt(variance), "n": median, "repeats": count.astype(np.int64)}


def _within_intervals(
    about: Mapping[str, Texts], run: Cells, limits: Limits, epsilon: Floats, level: float
) -> Floats:
    """Return the means (C,), with probabilities of small gaps bounded by the gaps' intervals.

    Probabilities from the papers' posterior, whose tables do not count the pairs that differ, are
    not changed.

    Parameters
    ----------
    about : (C,) the metric, statistic, attribute, group ... of each mean.
    run : (C,) the run of each mean.
    limits : the means, with the limits of their intervals.
    epsilon : (C,) the gap under which a probability is, NaN of other means.
    """
    statistic = about["statistic"]
    if not (statistic == tables.PAIRS_THAT_DIFFER).any():
        return limits.value
    keys = (texts for name, texts in about.items() if name != "statistic")
    gap, _ = tables.numbered([run, *keys], len(run))
    counts_pairs = np.isin(gap, gap[statistic == tables.PAIRS_THAT_DIFFER])
    probabilities = np.flatnonzero((statistic == tables.BELOW_EPSILON) & counts_pairs)
    values = np.flatnonzero(statistic == tables.VALUE)
    value_row = np.zeros(len(gap), np.intp)
    value_row[gap[values]] = values
    of_gaps = limits.take(value_row[gap[probabilities]])
    bounded = limits.value.copy()
    bounded[probabilities] = probability_below(
        bounded[probabilities], *of_gaps[1:], epsilon[probabilities], level=level
    )
    return bounded


def _statuses(metrics: pd.DataFrame, cell: Cells, n_cells: int) -> tuple[NDArray[np.int8], Texts]:
    """Return each cell's most frequent flag, or ok, and a reason that counts the flagged rows.

    Parameters
    ----------
    cell : (n,) the row of the summary, below `n_cells`, that each row of `metrics` is part of.
    """
    statuses = np.zeros(n_cells, np.int8)
    reasons = np.full(n_cells, "", object)
    kind_of = np.array([tables.STATUSES.index(name) for name in pd.unique(metrics["status"])])
    kind = kind_of[pd.factorize(metrics["status"])[0]]
    flagged = np.flatnonzero(kind)
    if not len(flagged):
        return statuses, reasons
    why, texts = pd.factorize(np.asarray(metrics["reason"].array.take(flagged), object), sort=True)
    cells, kinds = cell[flagged], kind[flagged]
    total, flags = np.bincount(cell), np.bincount(cells, minlength=n_cells)
    # The most frequent status; ties go to the first in the order of `STATUSES`.
    different, count = np.unique(np.stack([cells, kinds, why]), axis=1, return_counts=True)
    most = np.lexsort((different[2], different[1], -count, different[0]))
    most = most[np.diff(different[0][most], prepend=-1) > 0]
    for i, code, reason in different[:, most].T.tolist():
        statuses[i], reasons[i] = code, f"{texts[reason]} ({flags[i]} of {total[i]})"
    return statuses, reasons


def _runs(
    metrics: pd.DataFrame, cell: Cells, about: Mapping[str, Texts], run: Cells, level: float
) -> Iterator[tuple[Cells, _Runs]]:
    """Yield the rows in the summary of runs with the same splits, and their values in every split.

    Parameters
    ----------
    cell : the row in the summary of each row of `metrics`.
    about : the metric, statistic, attribute, group ... of each row of the summary.
    run : the run of each row of the summary.
    """
    split, first = tables.numbered((metrics[name].array for name in _SPLIT), len(metrics))
    split_keys = metrics[_SPLIT].to_numpy()[first]
    numbers = np.full((4, len(run), len(split_keys)), np.nan)
    for column, name in zip(numbers, ("value", "lower", "upper", "n"), strict=True):
        column[cell, split] = metrics[name].to_numpy(float)
    # Only the value of a metric has the intervals that are known for the metric's name.
    metric = np.where(about["statistic"] == tables.VALUE, about["metric"], "").astype(object)
    keys = {**about, "metric": metric}
    most = np.array([_most_of(name) for name in about["metric"]], float)
    places = (run, *(about[name] for name in ("variant", "attribute", "outcome")))
    place = np.where(about["attribute"] == "", -1, tables.numbered(places, len(run))[0])
    alike: dict[tuple[repeats.Splits, bytes], list[int]] = {}
    for number in range(run.max(initial=-1) + 1):
        cells = run == number
        has_split = np.isfinite(numbers[3, cells]).any(axis=0)
        value, _, _, n = numbers[:, cells][:, :, has_split]
        of_run = {name: of_cells[cells] for name, of_cells in keys.items()}
        splits = _splits_of(of_run, value, np.nan_to_num(n), split_keys[has_split])
        alike.setdefault((splits, has_split.tobytes()), []).append(number)
    for (splits, has_split_bytes), of_runs in alike.items():
        cells = np.flatnonzero(np.isin(run, of_runs))
        has_split = np.frombuffer(has_split_bytes, bool)
        value, lower, upper, n = numbers[:, cells][:, :, has_split]
        limits, n = Limits(value, lower, upper), np.nan_to_num(n)
        yield cells, _Runs(place[cells], metric[cells], most[cells], limits, n, splits, level)


def _splits_of(
    keys: Mapping[str, NDArray[Any]], value: Floats, n: Floats, split_keys: NDArray[np.int64]
) -> repeats.Splits:
    """Return how the splits of a run share rows.

    Parameters
    ----------
    keys : (C,) the metric, attribute ... of each metric of the run.
    value, n : (C, S) the values in each split, and how many rows they rest on.
    split_keys : (S, 2) repeat and fold of every split.
    """
    n_repeats, folds = (len(np.unique(column)) for column in split_keys.T)
    if folds > 1:
        return repeats.Splits(repeats.FOLDS, n_repeats, 1 / folds)
    if n_repeats == 1:
        return repeats.Splits(repeats.ONE)
    metric, everyone = keys["metric"], keys["attribute"] == ""
    # All repeats seem to test the same people if every group has the same size and the same base
    # rate in all of them.
    is_base_rate = ~everyone & (metric == "base_rate")
    sizes = n[is_base_rate | ~everyone & (metric == "mean_prediction")]
    base_rates = np.nan_to_num(value[is_base_rate])
    same = len(sizes) and (sizes == sizes[:, :1]).all() and (base_rates == base_rates[:, :1]).all()
    # The share of rows in the test sets; one half, a cautious value, if unknown.
    everyone &= keys["variant"] == ""
    tested = n[everyone & ((metric == "error_rate") | (metric == "rmse"))]
    trained = n[everyone & (metric == "fit_seconds")]
    share = 0.5
    if tested.any() and trained.any():
        share = float(tested.mean() / (tested.mean() + trained.mean()))
    return repeats.Splits(repeats.SAME if same else repeats.REPEATS, n_repeats, share)


# The numbers of some metrics' cells, the limits of each, and whether the estimand is the comparison
# of the groups' mean rates, rather than the mean of the splits' values.
_CellLimits = tuple[Cells, Limits, bool]


@dataclass(frozen=True, eq=False)
class _Runs:
    """The C metrics of runs in S splits, which share rows in the same way in each run.

    Attributes
    ----------
    place : (C,) a number for the run, variant, attribute and class of each cell; -1 of everyone.
    metric : (C,) the metrics; empty where a cell is another statistic than the metric's value.
    most : (C,) what each metric, or another statistic of it, is at most.
    limits, n : (C, S) values with their limits, NaN (n: 0) where a split lacks the metric.
    splits : how the splits share rows.
    level : the probability of the intervals.
    """

    place: Cells
    metric: Texts
    most: Floats
    limits: Limits
    n: Floats
    splits: repeats.Splits
    level: float

    def intervals(self) -> tuple[Floats, Floats, Texts]:
        """Return the lower and upper limits (C,), and each interval's estimand."""
        lower, upper = self.limits.lower[:, 0], self.limits.upper[:, 0]
        of_mean_rates = np.zeros(len(self.n), bool)
        if self.splits.kind != repeats.ONE:
            lower, upper = self._value_limits()
            for cells, limits, of_rates in (self._rate_limits(), *self._comparison_limits()):
                _, lower[cells], upper[cells] = limits
                of_mean_rates[cells] = of_rates
        no_interval = np.isnan(lower) | np.isnan(upper)
        mean_estimand = repeats.ESTIMANDS[self.splits.kind]
        rates_estimand = mean_estimand + _OF_RATES
        estimand = np.where(of_mean_rates, rates_estimand, mean_estimand).astype(object)
        lower, upper = (np.where(no_interval, np.nan, end) for end in (lower, upper))
        return lower, upper, np.where(no_interval, "", estimand)

    def _value_limits(self) -> tuple[Floats, Floats]:
        """Return the limits (C,) of the means of values; NaN where they cannot be computed.

        They are computed from the splits' own intervals: where rows are too few for one, the spread
        of the repeats says too little. Limits from rates of counts replace some later.
        """
        traits = np.array([_traits_of(name) for name in self.metric], float).reshape(-1, 4).T
        least, is_ratio, is_folded, chance = traits
        means = repeats.mean_limits(
            *self.limits, self.splits, level=self.level, ratio=is_ratio > 0, chance=chance
        )
        # Where no value can be negative, or every split's interval excludes such, the mean is not.
        known = np.isfinite(self.limits.lower)
        never_negative = known.any(axis=1) & ~(self.limits.lower < 0).any(axis=1) | (least >= 0)
        lower = np.where(never_negative, np.clip(means.lower, 0, None), means.lower)
        upper = np.minimum(means.upper, self.most)
        # For a folded value, such as the absolute value of a difference, the splits' own limits are
        # averaged: repeats do not narrow them. If only one split has a value, the average is that
        # split's interval.
        is_averaged = (is_folded > 0) | (np.isfinite(self.limits.value).sum(axis=1) == 1)
        lower[is_averaged] = repeats.finite_mean(self.limits.lower[is_averaged])
        upper[is_averaged] = repeats.finite_mean(self.limits.upper[is_averaged])
        is_known = known.any(axis=1)
        return np.where(is_known, lower, np.nan), np.where(is_known, upper, np.nan)

    def _rate_limits(self) -> _CellLimits:
        """Return the limits of the mean rates of counts."""
        cells = np.flatnonzero(np.isin(self.metric, _rates_of_counts()))
        cells = cells[np.isfinite(self.limits.value[cells]).any(axis=1)]
        return cells, self._rates(cells[:, None]).limits().take(0), False

    def _rates(self, cells: Cells, n_rates: int = 1) -> repeats.RunRates:
        """Return the rates in some cells; intervals hold for `n_rates` of them at once."""
        sizes = self.n[cells] / self._design_effect(cells)[..., None]
        return repeats.RunRates(self.limits.value[cells], sizes, self.splits, self.level, n_rates)

    def _design_effect(self, cells: Cells) -> Floats:
        """Return the design effect of each cell: the variance factor of weights and clusters.

        It is the median over the splits in which at least five rows have either outcome, and is 1
        for plain counts, whose intervals are as wide as those of simple random samples.
        """
        value, n = self.limits.value[cells], self.n[cells]
        error = (self.limits.upper[cells] - self.limits.lower[cells]) / 2 / quantile(self.level)
        effect = divide(n * error**2, value * (1 - value))
        effect = np.where(n * np.minimum(value, 1 - value) >= _FEW, effect, 1.0)
        # Intervals from few rows are wider than normal ones without any design: compare those that
        # look wide with the interval of the same counts.
        is_wide = effect > 1
        if is_wide.any():
            counts = rate_limits(value[is_wide] * n[is_wide], n[is_wide], level=self.level)
            error_of_counts = (counts.upper - counts.lower) / 2 / quantile(self.level)
            effect[is_wide] = (error[is_wide] / error_of_counts) ** 2
        return np.nan_to_num(np.maximum(np.median(effect, axis=-1), 1.0), nan=1.0)

    def _comparison_limits(self) -> Iterator[_CellLimits]:
        """Yield the limits of comparisons of groups: of pairs, then of gaps.

        Comparisons of as many groups are computed in one batch, whatever the attribute.
        """
        pairs: dict[tuple[str, int], list[tuple[Cells, Cells]]] = {}
        gaps: dict[tuple[str, bool, int, int], list[tuple[int, Cells]]] = {}
        for metric, cells, rates in self._comparisons():
            if metric.interval in registry.WIDEST:
                has_rates = np.isfinite(self.limits.value[rates]).any(axis=-1).all(axis=0)
                if (groups := has_rates.sum()) > 1:
                    key = metric.interval, metric.better == "lower", len(rates), groups
                    gaps.setdefault(key, []).append((cells[0], rates[:, has_rates]))
            elif len(cells) == rates.shape[1] - 1:
                pairs.setdefault((metric.interval, len(cells)), []).append((cells, rates[0]))
        for (kind, _), several in pairs.items():
            others, rate_cells = (np.stack(column) for column in zip(*several, strict=True))
            of_pairs, is_ratio = self._rates(rate_cells), kind == "ratio"
            limits = of_pairs.ratios_to_first() if is_ratio else of_pairs.against_first()
            yield others, limits, is_ratio
        for (interval, is_gap, n_rates, groups), batch in gaps.items():
            gap_cells = np.array([cell for cell, _ in batch])
            rate_cells = np.stack([cells_of_gap for _, cells_of_gap in batch], axis=1)
            is_mean = interval == "widest_mean"
            at_once = 1 if is_mean else n_rates
            of_rates = [self._rates(cells_of_rate, at_once) for cells_of_rate in rate_cells]
            if is_mean:
                limits = repeats.largest_mean_gap(repeats.RunMeans.of(*of_rates))
            elif is_gap:
                limits = repeats.largest_mean_gap(*of_rates)
            elif groups == 2:
                limits = of_rates[0].ratios_to_first().take(0)
            else:
                limits = of_rates[0].smallest_ratio()
            yield gap_cells, limits, True

    def _comparisons(self) -> Iterator[tuple[registry.Metric, Cells, Cells]]:
        """Yield each metric that compares groups, its cells, and those of its rates (R, G)."""
        declared = registry.metrics_of(registry.BINARY, "difference", "ratio", *registry.WIDEST)
        # By place: metric -> its cells, in the order of the groups.
        attributes: dict[int, dict[str, list[int]]] = {}
        for cell in np.flatnonzero((self.place >= 0) & (self.metric != "")).tolist():
            of_place = attributes.setdefault(int(self.place[cell]), {})
            of_place.setdefault(self.metric[cell], []).append(cell)
        for metrics in attributes.values():
            for name, cells in metrics.items():
                metric = declared.get(name)
                if metric is not None and all(rate.name in metrics for rate in metric.rates):
                    rates = np.array([metrics[rate.name] for rate in metric.rates])
                    yield metric, np.array(cells), rates


@lru_cache(maxsize=1)
def _rates_of_counts() -> list[str]:
    """Return the names of the shares of rows, in which every row counts as one."""
    rates = registry.metrics_of(registry.BINARY, "rate").values()
    names = [rate.name for rate in rates if [term.weights for term in rate.rates] == [(1, 1)]]
    return [*names, "coverage", "empty_sets", "infinite_intervals", "truncated_rows"]


@lru_cache(maxsize=1)
def _at_most_one() -> frozenset[str]:
    """Return the names of metrics that are never above 1: shares, their gaps and differences."""
    bounded = [metric for metric in registry.declared() if metric.at_most == 1]
    shares = [metric.name for metric in bounded if metric.interval != "explained"]
    compared = {f"{name}_{form}" for name in shares for form in ("gap", "difference")}
    return frozenset({metric.name for metric in bounded} | compared | SHARES)


def _most_of(name: str) -> float:
    """Return what a metric is at most."""
    is_share = name in _at_most_one() or name.startswith(("reliability_", "individual_fairness_"))
    return 1.0 if is_share else np.inf


@lru_cache(maxsize=4096)
def _traits_of(name: str) -> tuple[float, bool, bool, float]:
    """Return what limits of means of a metric depend on.

    These are its least value; whether it is a ratio, and whether noise may bias it upwards, as it
    does a largest gap; and its value by chance.
    """
    metric = registry.find(name)
    of_noise = metric is not None and metric.interval in (*registry.WIDEST, "none")
    least = -np.inf if metric is None else metric.least
    chance = 0.5 if name == "roc_auc" else np.nan
    return least, name.endswith("_ratio"), of_noise, chance
