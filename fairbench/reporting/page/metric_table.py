"""One metric of one block: every run's mean, sd, interval, and the probability of being best."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from fairbench.core.seeds import rng
from fairbench.evaluation.columns import setting_text, status_text
from fairbench.evaluation.summary import summarise
from fairbench.inference.ranking import standings
from fairbench.metrics.registry import Metric, find
from fairbench.reporting.page.blocks import RunBlock, named
from fairbench.reporting.runs import headline
from fairbench.results.catalogue import told_apart

CERTAIN = 0.95
EQUIVALENT, OPEN, WORSE, UNRANKED = "as good as the best", "not told apart", "worse", "not ranked"
_EVALUATED = ("evaluator", "consistency")
_SPLIT = ["repeat", "fold"]
_CLASS_GAPS = ("statistical_parity", "equal_opportunity")


@dataclass(frozen=True, eq=False)
class RankedRuns:
    """The runs of a block ranked by one metric, best mean first.

    Attributes
    ----------
    rows : ``run, label, mean, sd, lower, upper, n, repeats, status, best, near, standing``.
    group : the group of people that it is about; empty where it is about all.
    rope : the difference that does not matter; NaN where the metric has no direction.
    """

    metric: str
    attribute: str
    group: str
    setting: str
    rows: pd.DataFrame
    rope: float

    @property
    def key(self) -> str:
        """A name for files and anchors."""
        parts = [self.metric, self.attribute if self.group else "", self.group, self.setting]
        text = "-".join(filter(None, parts)).lower()
        return "".join(c if c.isalnum() or c in "-_." else "_" for c in text)

    @property
    def direction(self) -> str:
        """In words, which values are good."""
        metric = find(self.metric)
        return metric.direction if metric else ""

    @property
    def is_whole(self) -> bool:
        """Whether it is of everyone or of all groups, and of no single class."""
        return not self.group and "outcome=" not in self.setting

    @cached_property
    def is_ranked(self) -> bool:
        """Whether any run has a probability of being best."""
        return bool(self.rows["best"].notna().any())

    def of_standing(self, standing: str) -> list[str]:
        """Return the labels of the runs of one standing."""
        return list(self.rows.loc[self.rows["standing"] == standing, "label"])


def metric_tables(block: RunBlock) -> Iterator[RankedRuns]:
    """Yield the headline metrics of a block: overall, gaps, groups, costs of the fits."""
    share, names = test_share(block.metrics), named(list(block.runs.values()))
    arms = dict(zip(block.runs, names, strict=True))
    metrics = block.metrics[block.metrics["attribute"].isin(["", block.protect])]
    metrics = metrics.assign(setting=setting_text(metrics))
    summary = summarise(metrics, per=["run"])
    shown = pd.concat([headline(summary, block.protect), _of_classes(summary, block.protect)])
    shown = shown.assign(setting=setting_text(shown), status=_full_statuses(shown))
    keys = ["metric", "attribute", "group", "setting"]
    values = dict(iter(metrics.groupby(keys, observed=True, sort=False)))
    for key, rows in shown.groupby(keys, observed=True, sort=False):
        metric, attribute, group, setting = map(str, key)
        pivot = values[key].pivot(index=_SPLIT, columns="run", values="value")
        pivot.columns = pivot.columns.astype(str)
        table = _distinct(rows, pivot, arms, block).sort_values("label", ignore_index=True)
        width = np.nan
        declared = find(metric)
        if declared and declared.direction and not group:
            table, width = _ranked(table, pivot, declared, share)
        yield RankedRuns(metric, attribute, group, setting, table, width)


def _of_classes(summary: pd.DataFrame, protect: str) -> pd.DataFrame:
    """Return the gaps between the groups of `protect` in each of several classes."""
    gaps = (summary["attribute"] == protect) & (summary["group"] == "")
    plain = (summary["variant"] == "") & summary["outcome"].notna()
    return summary[gaps & plain & summary["metric"].isin(_CLASS_GAPS)]


def _full_statuses(rows: pd.DataFrame) -> list[str]:
    return [status_text(*both) for both in zip(rows["status"], rows["reason"], strict=True)]


def test_share(metrics: pd.DataFrame) -> float:
    """Return the mean share of tested rows among those a split trains on or tests."""
    everyone = metrics[metrics["attribute"] == ""]
    tested = everyone.loc[everyone["metric"].isin(["error_rate", "rmse"]), "n"].mean()
    trained = everyone.loc[everyone["metric"] == "fit_seconds", "n"].mean()
    return float(tested / (tested + trained))


def _distinct(
    rows: pd.DataFrame, values: pd.DataFrame, arms: Mapping[str, str], block: RunBlock
) -> pd.DataFrame:
    """Return labelled rows, one of those that share an arm and all values.

    Runs that differ in what else was evaluated, and not in this metric, are one row.
    """
    ids = rows["run"].astype(str)
    of_runs = values[list(ids)].to_numpy().T
    marks = [(arms[id_], own.tobytes()) for id_, own in zip(ids, of_runs, strict=True)]
    first = ~pd.Series(marks, rows.index).duplicated()
    ids = ids[first]
    names = told_apart([arms[id_] for id_ in ids], [block.runs[id_] for id_ in ids], _EVALUATED)
    unranked = {"best": np.nan, "near": np.nan, "standing": UNRANKED}
    return rows[first].assign(run=ids, label=names, **unranked).reset_index(drop=True)


def _ranked(
    rows: pd.DataFrame, values: pd.DataFrame, metric: Metric, share: float
) -> tuple[pd.DataFrame, float]:
    """Return the rows with their standings, best mean first, and the rope.

    A run that is undefined in a split cannot be compared there, and is not ranked.
    """
    defined = np.isfinite(values[list(rows["run"])].to_numpy()).all(axis=0)
    ids = list(rows["run"][defined])
    means = metric.larger_is_better(rows["mean"].to_numpy())
    rows = rows.iloc[np.argsort(-means, kind="stable")].reset_index(drop=True)
    if not ids or len(values) < 2:
        return rows, np.nan
    own = values[ids].to_numpy()
    width = metric.negligible(own)
    found = standings(
        metric.larger_is_better(own), share, rope=width, generator=rng(0, "standings")
    )
    rows = rows.set_index("run")
    rows.loc[ids, "best"], rows.loc[ids, "near"] = found.best, found.near
    rows.loc[ids, "standing"] = np.select(
        [found.near >= CERTAIN, found.near > 1 - CERTAIN], [EQUIVALENT, OPEN], WORSE
    )
    return rows.reset_index(), width
