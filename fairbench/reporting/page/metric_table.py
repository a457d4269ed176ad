"""One metric of one block: every run's mean, sd, interval, and the probability of being best."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.core.arrays import Floats
from fairbench.core.escaping import told_apart
from fairbench.core.seeds import rng
from fairbench.evaluation.columns import DEBIASED, setting_text, status_text
from fairbench.evaluation.headlines import debiased_gaps
from fairbench.evaluation.summary import summarise
from fairbench.inference.comparing.ranking import StudentDraws, standings, student_draws
from fairbench.metrics.registry import Metric, declared, find
from fairbench.reporting.page.blocks import MeasuredBlock, name_runs
from fairbench.reporting.runs import FITS, headline
from fairbench.results.catalogue import add_differing_options

CERTAIN = 0.95
EQUIVALENT, OPEN, WORSE, UNRANKED = "as good as the best", "not told apart", "worse", "not ranked"
_EVALUATED = ("evaluator", "consistency")
_SPLIT = ["repeat", "fold"]
_CLASS_GAPS = ("statistical_parity", "equal_opportunity")
# Metrics whose numbers of rows tell how splits share rows.
_SPLIT_METRICS = ("base_rate", "mean_prediction", "error_rate", "rmse", "fit_seconds")
_KEYS = ["metric", "attribute", "group", "setting"]
_CHANCE_KEYS = ("run", "variant", "metric", "attribute", "group", "outcome", "statistic")
_SHOWN = ["run", "mean", DEBIASED, "sd", "lower", "upper", "n", "repeats"]
_DRAWS = 10000  # of the posterior of expected values


@dataclass(frozen=True, eq=False)
class RankedRuns:
    """The runs of a block ranked by one metric, best mean first.

    Attributes
    ----------
    group : the group of people that the metric is about; empty for everyone and for gaps.
    rows : one for each run: ``run, label, mean, sd, lower, upper, n, repeats, status``, ``best``
        and ``near`` (the probabilities to be the best and within the rope of it), ``standing``.
    rope : the difference that does not matter; NaN if the metric has no direction.
    key : a name for files and anchors, which no other metric of the block has.
    """

    metric: str
    attribute: str
    group: str
    setting: str
    rows: Sequence[Mapping[str, Any]]
    rope: float
    key: str

    @property
    def direction(self) -> str:
        """Which values are good, in words."""
        metric = find(self.metric)
        return metric.direction if metric else ""

    @property
    def is_whole(self) -> bool:
        """Whether it is about everyone or all groups, and not about a single class."""
        return not self.group and "outcome=" not in self.setting

    @cached_property
    def is_ranked(self) -> bool:
        """Whether any run has a probability of being best."""
        return any(row["best"] == row["best"] for row in self.rows)

    def labels_with_standing(self, standing: str) -> list[str]:
        """Return the labels of the runs with one standing."""
        return [row["label"] for row in self.rows if row["standing"] == standing]


def metric_tables(batch: Sequence[MeasuredBlock]) -> list[list[RankedRuns]]:
    """Return the headline metrics of blocks: overall, gaps, groups, costs of the fits.

    Many blocks are summed up at once: most of the time would go into single calls otherwise.
    """
    tables: dict[int, list[RankedRuns]] = {}
    for protect in dict.fromkeys(block.protect for block in batch):
        positions = [i for i, block in enumerate(batch) if block.protect == protect]
        tables_of_blocks = _tables([batch[i] for i in positions], protect)
        tables.update(zip(positions, tables_of_blocks, strict=True))
    return [tables[i] for i in range(len(batch))]


def _tables(batch: Sequence[MeasuredBlock], protect: str) -> Iterator[list[RankedRuns]]:
    """Yield the headline metrics of each of several blocks of one protected attribute."""
    metrics = pd.concat([block.metrics for block in batch], ignore_index=True)
    chosen = metrics["metric"].isin(_metrics_to_summarise()) & metrics["attribute"].isin(
        ["", protect]
    )
    metrics = metrics[chosen].reset_index(drop=True)
    metrics = metrics.assign(setting=setting_text(metrics))
    summary = summarise(metrics, per=["run"])
    summaries = pd.concat([headline(summary, protect), _class_gaps(summary, protect)])
    summaries = summaries.assign(setting=setting_text(summaries), status=_full_statuses(summaries))
    debiased = pd.concat([block.debiased for block in batch])
    means = debiased.groupby([*_CHANCE_KEYS], observed=True, dropna=False)["value"].mean()
    summaries[DEBIASED] = debiased_gaps(summaries, means.reset_index(name="mean"))
    values = _Values.of(metrics, summaries)
    columns = [summaries[name].tolist() for name in (*_SHOWN, "status")]
    rows = [dict(zip((*_SHOWN, "status"), row, strict=True)) for row in zip(*columns, strict=True)]
    keys = list(zip(*(summaries[name].astype(str).tolist() for name in _KEYS), strict=True))
    rows_of_run: dict[str, list[int]] = {}
    for index, row in enumerate(rows):
        rows_of_run.setdefault(str(row["run"]), []).append(index)
    for block in batch:
        rows_of_key: dict[tuple[str, ...], list[int]] = {}
        for index in sorted(index for run in block.runs for index in rows_of_run.get(run, ())):
            rows_of_key.setdefault(keys[index], []).append(index)
        share = test_share(block.metrics)
        names = name_runs(list(block.runs.values()))
        arms = _Arms(block, dict(zip(block.runs, names, strict=True)))
        texts = {key: "-".join(filter(None, _said(*key))) for key in rows_of_key}
        names_of_texts = told_apart(texts.values(), _spelled)
        yield [
            _ranked_runs(
                key,
                names_of_texts[texts[key]],
                [rows[i] for i in indices],
                values.present_values(indices),
                arms,
                share,
            )
            for key, indices in rows_of_key.items()
        ]


def _said(metric: str, attribute: str, group: str, setting: str) -> tuple[str, ...]:
    """Return what a table's name for files says of it: an attribute where one group is meant."""
    return metric, attribute if group else "", group, setting


def _spelled(text: str) -> str:
    return "".join(c if c.isalnum() or c in "-_." else "_" for c in text.lower())


@lru_cache(maxsize=1)
def _metrics_to_summarise() -> list[str]:
    """Return the metrics that tables show, and the metrics that their intervals need."""
    shown_metrics = [metric for metric in declared() if metric.shown or metric.name in _CLASS_GAPS]
    rates = [rate.name for metric in shown_metrics for rate in metric.rates]
    return [
        *dict.fromkeys([*(metric.name for metric in shown_metrics), *rates, *_SPLIT_METRICS, *FITS])
    ]


@dataclass(frozen=True, eq=False)
class _Values:
    """The values behind rows of a summary, split by split.

    Attributes
    ----------
    values, is_present : (n, S) values of n rows in S splits, and which of them exist.
    """

    values: Floats
    is_present: NDArray[np.bool_]

    @classmethod
    def of(cls, metrics: pd.DataFrame, summary: pd.DataFrame) -> _Values:
        """Return the values of the rows of a summary, from the metrics that it sums up."""
        keys = ["run", *_KEYS]
        keys_of_both = pd.concat([summary[keys], metrics[keys]], ignore_index=True)
        texts = keys_of_both.astype({"setting": str}).groupby(keys, sort=False, observed=True)
        row = texts.ngroup().to_numpy()[len(summary) :]
        split = metrics.groupby(_SPLIT, sort=True).ngroup().to_numpy()
        # The rows of the summary come first, and are all different.
        is_summarised = row < len(summary)
        shape = len(summary), int(split.max(initial=-1)) + 1
        values = np.full(shape, np.nan)
        is_present = np.zeros(shape, bool)
        row, split = row[is_summarised], split[is_summarised]
        values[row, split] = metrics["value"].to_numpy(float)[is_summarised]
        is_present[row, split] = True
        return cls(values, is_present)

    def present_values(self, rows: Sequence[int]) -> Floats:
        """Return (splits, rows) values in the splits in which any of the rows has one."""
        return self.values[rows][:, self.is_present[rows].any(axis=0)].T


@dataclass(frozen=True, eq=False)
class _Arms:
    """A block with the names of its runs."""

    block: MeasuredBlock
    names: Mapping[str, str]

    _labels: dict[tuple[str, ...], list[str]] = field(default_factory=dict)

    def labels(self, ids: Sequence[str]) -> list[str]:
        """Return labels that tell runs apart, found once for the same runs."""
        key = tuple(ids)
        if key not in self._labels:
            runs = [self.block.runs[id_] for id_ in ids]
            names = [self.names[id_] for id_ in ids]
            self._labels[key] = add_differing_options(names, runs, _EVALUATED)
        return self._labels[key]


def _ranked_runs(
    key: tuple[str, ...],
    file: str,
    rows: Sequence[dict[str, Any]],
    values: Floats,
    arms: _Arms,
    share: float,
) -> RankedRuns:
    """Return one metric's rows, ranked; of runs with equal arms and values, only the first.

    Runs that differ in what else was evaluated, and not in this metric, are one row.

    Parameters
    ----------
    file : a name for files and anchors.
    values : (splits, rows) the metric in every split.
    """
    name, attribute, group, setting = key
    marks = [(arms.names[row["run"]], v.tobytes()) for row, v in zip(rows, values.T, strict=True)]
    first_rows = list({mark: i for i, mark in reversed([*enumerate(marks)])}.values())[::-1]
    labels = arms.labels([rows[i]["run"] for i in first_rows])
    order = sorted(range(len(first_rows)), key=labels.__getitem__)
    unranked = {"best": np.nan, "near": np.nan, "standing": UNRANKED}
    table = [{**rows[first_rows[i]], "label": labels[i], **unranked} for i in order]
    width = np.nan
    metric = find(name)
    if metric and metric.direction and not group:
        table, width = _rank_rows(table, values[:, [first_rows[i] for i in order]], metric, share)
    return RankedRuns(name, attribute, group, setting, table, width, file)


def _class_gaps(summary: pd.DataFrame, protect: str) -> pd.DataFrame:
    """Return the gaps between the groups of `protect` in each of several classes."""
    gaps = (summary["attribute"] == protect) & (summary["group"] == "")
    plain = (summary["variant"] == "") & summary["outcome"].notna()
    return summary[gaps & plain & summary["metric"].isin(_CLASS_GAPS)]


def _full_statuses(rows: pd.DataFrame) -> list[str]:
    """Return the status of each row, with its reason."""
    return [
        status_text(*status_and_reason)
        for status_and_reason in zip(rows["status"], rows["reason"], strict=True)
    ]


def test_share(metrics: pd.DataFrame) -> float:
    """Return the mean share of tested rows among those a split trains on or tests."""
    everyone = (metrics["attribute"] == "").to_numpy(bool)
    n = metrics["n"].to_numpy(float)
    tested, trained = (
        n[everyone & metrics["metric"].isin(names).to_numpy(bool)]
        for names in (["error_rate", "rmse"], ["fit_seconds"])
    )
    if not (len(tested) and len(trained)):
        return float("nan")
    return float(tested.mean() / (tested.mean() + trained.mean()))


def _rank_rows(
    rows: Sequence[dict[str, Any]], values: Floats, metric: Metric, share: float
) -> tuple[list[dict[str, Any]], float]:
    """Return the rows with their standings, best mean first, and the rope.

    A run that is undefined in a split cannot be compared there, and is not ranked.

    Parameters
    ----------
    values : (splits, rows) the metric in every split.
    """
    defined = np.flatnonzero(np.isfinite(values).all(axis=0))
    means = metric.larger_is_better(np.array([row["mean"] for row in rows], float))
    width = np.nan
    if len(defined) and len(values) > 1:
        defined_values = values[:, defined]
        width = metric.negligible(defined_values)
        probabilities = standings(
            metric.larger_is_better(defined_values),
            share,
            rope=width,
            draws=_draws(len(defined_values)),
        )
        for i, best, near in zip(
            defined.tolist(), probabilities.best, probabilities.near, strict=True
        ):
            standing = EQUIVALENT if near >= CERTAIN else OPEN if near > 1 - CERTAIN else WORSE
            rows[i].update(best=float(best), near=float(near), standing=standing)
    return [rows[i] for i in np.argsort(-means, kind="stable")], width


@lru_cache(maxsize=8)
def _draws(splits: int) -> StudentDraws:
    """Return the draws for ranking runs, the same for all metrics with this number of splits."""
    return student_draws(splits, _DRAWS, rng(0, "standings"))
