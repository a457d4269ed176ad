"""A run's metrics as means over its repeats or folds, and the three that it is first looked at by.

:func:`summarise` makes the table of means with their intervals; `HEADLINES` names the error, the
log loss and the gap of a task.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.core.arrays import Floats
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
_KEYS = ("run", "variant", "metric", "attribute", "group", "outcome")
_UNKNOWN = (float("nan"), float("nan"), float("nan"))
Estimate = tuple[float, float, float]


class Headlines:
    """What a run is first looked at by, found in one pass over the rows of its summary.

    Parameters
    ----------
    summary : the summary of a run, as :func:`fairbench.evaluation.summary.summarise` returns it.
    protect : the attribute, or combination, whose groups gaps are between.
    """

    def __init__(self, summary: pd.DataFrame, protect: str) -> None:
        self._summary = summary
        names = ("variant", "group", "attribute", "metric", "statistic", "binning")
        columns = [summary[name].tolist() for name in names]
        of_class = summary["outcome"].notna().tolist()
        # (metric, statistic) -> attribute -> places of the rows of everyone, or of all groups.
        self._places: dict[tuple[str, str], dict[str, list[int]]] = {}
        for place, (variant, group, attribute, *kind, binning) in enumerate(
            zip(*columns, strict=True)
        ):
            if variant == group == "" and attribute in ("", protect):
                places = self._places.setdefault((kind[0], kind[1]), {}).setdefault(attribute, [])
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

        A metric with several settings, such as rates of abstention, counts as none.
        """
        if (row := self._row(metric)) is None:
            return _UNKNOWN
        mean, lower, upper = (
            float(self._summary[name].iat[row[1]]) for name in ("mean", "lower", "upper")
        )
        return mean, lower, upper

    @cached_property
    def task(self) -> str:
        """What the run predicts."""
        return task_of(self._summary)

    @cached_property
    def usual(self) -> dict[str, Estimate]:
        """The ``error``, ``log loss`` and ``gap``: the mean, and the ends of its interval."""
        return {name: self.estimate(metric) for name, metric in HEADLINES[self.task].items()}

    @cached_property
    def debiased_gap(self) -> float:
        """The gap less what chance adds to it; NaN between two groups."""
        metric = HEADLINES[self.task]["gap"]
        row = self._row(metric)
        if row is None or metric not in _gaps():
            return _UNKNOWN[0]
        places = self._places.get((metric, tables.DEBIASED), {}).get(row[0], [])
        return float(self._summary["mean"].iat[places[-1]]) if places else _UNKNOWN[0]


def headlines(summary: pd.DataFrame, protect: str) -> dict[str, Estimate]:
    """Return the usual :class:`Headlines` of a run."""
    return Headlines(summary, protect).usual


def task_of(summary: pd.DataFrame) -> str:
    """Return what a run predicts, by the metrics that it has."""
    if not (summary["metric"] == HEADLINES[registry.BINARY]["error"]).any():
        return registry.REGRESSION
    of_classes = (summary["metric"] == "base_rate") & summary["outcome"].notna()
    return registry.MULTICLASS if of_classes.any() else registry.BINARY


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
    widest = registry.metrics_of(registry.BINARY, "widest")
    return [name for name, metric in widest.items() if metric.is_gap]


def _as_texts(keys: pd.DataFrame) -> list[tuple[str, ...]]:
    return list(zip(*(keys[name].astype(str) for name in keys), strict=True))


# A whole run: every metric's mean over repeats or folds, with the interval of that mean.

Texts: TypeAlias = NDArray[np.object_]
Cells: TypeAlias = NDArray[np.intp]
_BY = ["variant", "metric", "statistic", "attribute", "group"]
_SPLIT = ["repeat", "fold"]
_COLUMNS = ("mean", "sd", "lower", "upper", "estimand", "n", "repeats")
# Means of these over repeats are normal enough for a t interval where a repeat has none of its own.
_SMOOTH = ("roc_auc", "rmse", "r2")
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
    keys = metrics[[*per, *_BY]].assign(_setting=code)
    # Rows that are summarised together share a cell number. Grouping by texts is slow, so that
    # these numbers are computed once.
    cell = keys.groupby(list(keys), sort=False, observed=True).ngroup().to_numpy()
    means = (
        metrics[["value", "n"]]
        .groupby(cell)
        .agg(mean=("value", "mean"), sd=("value", "std"), n=("n", "median"),
             repeats=("value", "count"))
    )  # fmt: skip
    summary_rows = keys.iloc[np.flatnonzero(~pd.Series(cell).duplicated())].reset_index(drop=True)
    setting = summary_rows["_setting"].to_numpy()
    outcomes = settings["outcome"].astype(object).fillna("") if "outcome" in settings else [""]
    outcome = np.asarray(outcomes, object)[setting if len(outcomes) > 1 else setting * 0]
    lower, upper = np.full((2, len(summary_rows)), np.nan)
    estimand = np.full(len(summary_rows), "", object)
    if intervals:
        about = summary_rows.assign(outcome=outcome)
        for cells, run in _runs(metrics, cell, about, per, level):
            lower[cells], upper[cells], estimand[cells] = run.intervals()
        means["mean"] = _within_intervals(
            about, means["mean"].to_numpy(), lower, upper, settings, level
        )
    del summary_rows["_setting"]
    summary = pd.concat([summary_rows, means], axis=1)
    summary = summary.assign(lower=lower, upper=upper, estimand=estimand)
    statuses = _statuses(metrics, cell, len(means))
    # Means that lie outside their intervals and have no other flag.
    slack = 1e-12
    outside = means["mean"].to_numpy() < lower - slack
    outside |= means["mean"].to_numpy() > upper + slack
    outside &= (statuses["status"] == "ok").to_numpy()
    statuses.loc[outside, "status"] = "insufficient"
    statuses.loc[outside, "reason"] = _OUTSIDE
    summary = pd.concat([summary[[*summary_rows, *_COLUMNS]], statuses], axis=1)
    return summary.assign(
        **{name: settings[name].array.take(setting) for name in tables.SETTINGS if name in settings}
    )


def _within_intervals(
    keys: pd.DataFrame,
    mean: Floats,
    lower: Floats,
    upper: Floats,
    settings: pd.DataFrame,
    level: float,
) -> Floats:
    """Return the means (C,), with probabilities of small gaps bounded by the gaps' intervals.

    Probabilities from the papers' posterior, whose tables do not count the pairs that differ, are
    not changed.

    Parameters
    ----------
    keys : (C,) the metric, statistic, attribute, group ... of each mean.
    lower, upper : (C,) the limits of each mean's interval.
    """
    statistic = keys["statistic"].to_numpy(object)
    gap_keys = keys.drop(columns=["statistic", "_setting"])
    gap = gap_keys.groupby(list(gap_keys), sort=False, observed=True).ngroup().to_numpy()
    counts_pairs = np.isin(gap, gap[statistic == tables.PAIRS_THAT_DIFFER])
    probabilities = np.flatnonzero((statistic == tables.BELOW_EPSILON) & counts_pairs)
    if not len(probabilities):
        return mean
    values = np.flatnonzero(statistic == tables.VALUE)
    value_row = dict(zip(gap[values], values, strict=True))
    gap_values = [value_row[g] for g in gap[probabilities]]
    epsilon = settings["epsilon"].to_numpy(float)[keys["_setting"].to_numpy()[probabilities]]
    bounded = mean.copy()
    bounded[probabilities] = probability_below(
        mean[probabilities], lower[gap_values], upper[gap_values], epsilon, level=level
    )
    return bounded


def _statuses(metrics: pd.DataFrame, cell: Cells, n_cells: int) -> pd.DataFrame:
    """Return each cell's most frequent flag, or ok, and a reason that counts the flagged rows.

    Parameters
    ----------
    cell : (n,) the row of the summary, below `n_cells`, that each row of `metrics` is part of.
    """
    rank = {kind: code for code, kind in enumerate(tables.STATUSES)}
    kind = metrics["status"].astype(object).map(rank).to_numpy(np.int8)
    flagged = pd.DataFrame({"cell": cell, "kind": kind, "why": metrics["reason"].astype(object)})
    counts = flagged[kind > 0].value_counts().reset_index()
    # The most frequent status; ties go to the first in the order of `STATUSES`.
    counts = counts.sort_values(["count", "kind", "why"], ascending=[False, True, True])
    counts = counts.drop_duplicates("cell")
    total, flags = (np.bincount(array, minlength=n_cells) for array in (cell, cell[kind > 0]))
    code = np.zeros(n_cells, np.int8)
    reason = np.full(n_cells, "", object)
    code[counts["cell"]] = counts["kind"]
    for i, why in zip(counts["cell"], counts["why"], strict=True):
        reason[i] = f"{why} ({flags[i]} of {total[i]})"
    statuses = pd.Categorical.from_codes(code, list(tables.STATUSES))
    return pd.DataFrame({"status": statuses, "reason": pd.array(reason, dtype="str")})


def _runs(
    metrics: pd.DataFrame, cell: Cells, keys: pd.DataFrame, per: Sequence[str], level: float
) -> Iterator[tuple[Cells, _Run]]:
    """Yield each run's rows in the summary, and its values in every split.

    Parameters
    ----------
    cell : the row in the summary of each row of `metrics`.
    keys : the metric, statistic, attribute, group ... of each row of the summary.
    per : the columns of `keys` that distinguish runs.
    """
    split = metrics.groupby(_SPLIT, sort=False).ngroup().to_numpy()
    split_keys = metrics[_SPLIT].iloc[np.flatnonzero(~pd.Series(split).duplicated())].to_numpy()
    numbers = np.full((4, len(keys), len(split_keys)), np.nan)
    for column, name in zip(numbers, ("value", "lower", "upper", "n"), strict=True):
        column[cell, split] = metrics[name].to_numpy(float)
    texts = keys[[*_BY, "outcome"]].astype(str).to_numpy(object).T
    of_run = np.zeros(len(keys), np.intp)
    if per:
        of_run = keys.groupby(list(per), sort=False, observed=True).ngroup().to_numpy()
    for run in range(of_run.max(initial=-1) + 1):
        cells = np.flatnonzero(of_run == run)
        of_run_cells = numbers[:, cells]
        has_split = np.isfinite(of_run_cells[3]).any(axis=0)
        value, lower, upper, n = of_run_cells[:, :, has_split]
        variant, metric, statistic, attribute, group, outcome = texts[:, cells]
        run_of_cells = _Run(
            variant=variant,
            # Only the value of a metric has the intervals that are known for the metric's name.
            metric=np.where(statistic == tables.VALUE, metric, "").astype(object),
            attribute=attribute,
            group=group,
            outcome=outcome,
            limits=Limits(value, lower, upper),
            n=np.nan_to_num(n),
            split_keys=split_keys[has_split],
            level=level,
        )
        yield cells, run_of_cells


# The numbers of some metrics' cells, the limits of each, and whether the estimand is the comparison
# of the groups' mean rates, rather than the mean of the splits' values.
_CellLimits = tuple[Cells, Limits, bool]


@dataclass(frozen=True, eq=False)
class _Run:
    """The C metrics of a run in its S splits.

    Attributes
    ----------
    variant, metric, attribute, group, outcome : (C,) the keys of each cell; `metric` is empty where
        a cell is another statistic than the metric's value.
    limits, n : (C, S) values with their limits, NaN (n: 0) where a split lacks the metric.
    split_keys : (S, 2) repeat and fold of every split.
    level : the probability of the intervals.
    """

    variant: Texts
    metric: Texts
    attribute: Texts
    group: Texts
    outcome: Texts
    limits: Limits
    n: Floats
    split_keys: NDArray[np.int64]
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
        return (
            np.where(no_interval, np.nan, lower),
            np.where(no_interval, np.nan, upper),
            np.where(no_interval, "", estimand),
        )

    @cached_property
    def splits(self) -> repeats.Splits:
        """How the splits share rows."""
        n_repeats, folds = (len(np.unique(column)) for column in self.split_keys.T)
        if folds > 1:
            return repeats.Splits(repeats.FOLDS, n_repeats, 1 / folds)
        if n_repeats == 1:
            return repeats.Splits(repeats.ONE)
        return repeats.Splits(
            repeats.SAME if self._same_rows() else repeats.REPEATS, n_repeats, self._test_share()
        )

    def _same_rows(self) -> bool:
        """Say whether all repeats seem to test the same people.

        They do if every group has the same size and the same base rate in all repeats.
        """
        of_groups = np.isin(self.metric, ("base_rate", "mean_prediction")) & (self.attribute != "")
        same_sizes = of_groups.any() and (self.n[of_groups] == self.n[of_groups][:, :1]).all()
        base_rates = np.nan_to_num(self.limits.value[of_groups & (self.metric == "base_rate")])
        return bool(same_sizes and (base_rates == base_rates[:, :1]).all())

    def _test_share(self) -> float:
        """Return the share of rows in the test sets; one half, a cautious value, if unknown."""
        of_everyone = (self.attribute == "") & (self.variant == "")
        tested = self.n[of_everyone & np.isin(self.metric, ("error_rate", "rmse"))]
        trained = self.n[of_everyone & (self.metric == "fit_seconds")]
        if not (tested.any() and trained.any()):
            return 0.5
        return float(tested.mean() / (tested.mean() + trained.mean()))

    def _value_limits(self) -> tuple[Floats, Floats]:
        """Return the limits (C,) of the means of values; NaN where they cannot be computed.

        They are computed from the splits' own intervals. Smooth metrics without such intervals
        have limits from the spread of the repeats. Limits from rates of counts replace some later.
        """
        metrics = [registry.find(name) for name in self.metric]
        means = repeats.mean_limits(
            self.limits.value, self.limits.lower, self.limits.upper, self.splits, level=self.level,
            ratio=np.array([name.endswith("_ratio") for name in self.metric], bool),
            chance=np.where(self.metric == "roc_auc", 0.5, np.nan),
        )  # fmt: skip
        # Where no value can be negative, or every split's interval excludes such, the mean is not.
        least = np.array([-np.inf if metric is None else metric.least for metric in metrics])
        known = np.isfinite(self.limits.lower)
        never_negative = known.any(axis=1) & ~(self.limits.lower < 0).any(axis=1) | (least >= 0)
        lower = np.where(never_negative, np.clip(means.lower, 0, None), means.lower)
        # The mean of shares is at most 1.
        shares, beginnings = _at_most_one(), ("reliability_", "individual_fairness_")
        is_share = np.array(
            [name in shares or name.startswith(beginnings) for name in self.metric], bool
        )
        upper = np.where(is_share, np.clip(means.upper, None, 1), means.upper)
        # For a folded value, such as the absolute value of a difference, the splits' own limits are
        # averaged: repeats do not narrow them. If only one split has a value, the average is that
        # split's interval.
        is_folded = [metric is not None and _is_folded(metric) for metric in metrics]
        is_averaged = np.array(is_folded, bool) | (np.isfinite(self.limits.value).sum(axis=1) == 1)
        lower[is_averaged] = repeats.finite_mean(self.limits.lower[is_averaged])
        upper[is_averaged] = repeats.finite_mean(self.limits.upper[is_averaged])
        # Where no split has an interval, only means of smooth metrics have one.
        has_limits = np.isfinite(self.limits.lower).any(axis=1) | np.isin(self.metric, _SMOOTH)
        lower[~has_limits] = np.nan
        upper[~has_limits] = np.nan
        return lower, upper

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
        with np.errstate(invalid="ignore", divide="ignore"):
            effect = n * error**2 / (value * (1 - value))
        effect = np.where(n * np.minimum(value, 1 - value) >= _FEW, effect, 1.0)
        # Intervals from few rows are wider than normal ones without any design: compare those that
        # look wide with the interval of the same counts.
        is_wide = effect > 1
        if is_wide.any():
            counts = rate_limits(value[is_wide] * n[is_wide], n[is_wide], level=self.level)
            error_of_counts = (counts.upper - counts.lower) / 2 / quantile(self.level)
            effect[is_wide] = (error[is_wide] / error_of_counts) ** 2
        return np.nan_to_num(np.maximum(np.median(effect, axis=-1), 1.0), nan=1.0)

    def _by_attribute(self) -> Iterator[Mapping[str, Mapping[str, int]]]:
        """Yield the metrics of each attribute's groups, by class: metric -> group -> cell."""
        attributes: dict[tuple[str, ...], dict[str, dict[str, int]]] = {}
        wanted = np.isin(self.metric, [*_rates_of_counts(), *_comparison_metrics()])
        for cell in np.flatnonzero(wanted & (self.attribute != "")):
            key = (self.variant[cell], self.attribute[cell], self.outcome[cell])
            of_attribute = attributes.setdefault(key, {})
            of_attribute.setdefault(self.metric[cell], {})[self.group[cell]] = int(cell)
        yield from attributes.values()

    def _comparison_limits(self) -> Iterator[_CellLimits]:
        """Yield the limits of comparisons of groups: each attribute's pairs, then its gaps."""
        for metrics in self._by_attribute():
            yield from self._pair_limits(metrics)
            yield from self._gap_limits(metrics)

    def _pair_limits(self, metrics: Mapping[str, Mapping[str, int]]) -> Iterator[_CellLimits]:
        """Yield the limits of all differences of an attribute, then those of all its ratios."""
        by_interval: dict[str, list[tuple[Cells, Cells]]] = {}
        for metric, cells in _comparisons(metrics):
            if metric.interval == "widest":
                continue
            others = np.array(list(cells.values()))
            rate_cells = np.array(list(metrics[metric.rates[0].name].values()))
            if len(others) == len(rate_cells) - 1:
                by_interval.setdefault(metric.interval, []).append((others, rate_cells))
        for kind, cell_pairs in by_interval.items():
            others, rate_cells = (np.stack(column) for column in zip(*cell_pairs, strict=True))
            rates = self._rates(rate_cells)
            is_ratio = kind == "ratio"
            limits = rates.ratios_to_first() if is_ratio else rates.against_first()
            yield others, limits, is_ratio

    def _gap_limits(self, metrics: Mapping[str, Mapping[str, int]]) -> Iterator[_CellLimits]:
        """Yield the limits of an attribute's largest gaps and smallest ratios.

        Metrics with the same number of rates and the same groups are computed in one batch.
        """
        batches: dict[tuple[bool, int, bytes], list[tuple[int, Cells]]] = {}
        for metric, cells in _comparisons(metrics):
            if metric.interval != "widest":
                continue
            rate_cells = np.array([list(metrics[rate.name].values()) for rate in metric.rates])
            has_rates = np.isfinite(self.limits.value[rate_cells]).any(axis=-1).all(axis=0)
            if has_rates.sum() > 1:
                key = metric.is_gap, len(rate_cells), has_rates.tobytes()
                batches.setdefault(key, []).append((cells[""], rate_cells[:, has_rates]))
        for (is_gap, n_rates, _), batch in batches.items():
            gap_cells = np.array([cell for cell, _ in batch])
            rate_cells = np.stack([cells_of_gap for _, cells_of_gap in batch], axis=1)
            rates = [self._rates(cells, n_rates) for cells in rate_cells]
            if is_gap:
                limits = repeats.largest_mean_gap(*rates)
            elif rate_cells.shape[-1] == 2:
                limits = rates[0].ratios_to_first().take(0)
            else:
                limits = rates[0].smallest_ratio()
            yield gap_cells, limits, True


@lru_cache(maxsize=1)
def _rates_of_counts() -> list[str]:
    """Return the names of the shares of rows, in which every row counts as one."""
    rates = registry.metrics_of(registry.BINARY, "rate").values()
    names = [rate.name for rate in rates if [term.weights for term in rate.rates] == [(1, 1)]]
    return [*names, "coverage", "empty_sets", "infinite_intervals", "truncated_rows"]


def _comparison_metrics() -> Mapping[str, registry.Metric]:
    """Return the metrics that compare groups, by name."""
    return registry.metrics_of(registry.BINARY, "difference", "ratio", "widest")


def _comparisons(
    metrics: Mapping[str, Mapping[str, int]],
) -> Iterator[tuple[registry.Metric, Mapping[str, int]]]:
    """Yield an attribute's metrics that compare groups, with their cells, if their rates exist."""
    for name, cells in metrics.items():
        metric = _comparison_metrics().get(name)
        if metric is not None and all(rate.name in metrics for rate in metric.rates):
            yield metric, cells


@lru_cache(maxsize=1)
def _at_most_one() -> frozenset[str]:
    """Return the names of metrics that are never above 1: shares, their gaps and differences."""
    bounded = [metric for metric in registry.declared() if metric.at_most == 1]
    shares = [metric.name for metric in bounded if metric.interval != "explained"]
    compared = {f"{name}_{form}" for name in shares for form in ("gap", "difference")}
    return frozenset({metric.name for metric in bounded} | compared | SHARES)


def _is_folded(metric: registry.Metric) -> bool:
    """Say whether noise may bias a metric upwards, as it does a largest gap."""
    return metric.interval in ("widest", "bootstrap", "none") and metric.name not in _SMOOTH
