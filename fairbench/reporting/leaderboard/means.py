"""Means over repeats, with their intervals, of each approach on each task of the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from fairbench.core.fingerprint import digest
from fairbench.evaluation.columns import COSTS
from fairbench.inference.repeats import REPEATS, Splits, mean_limits
from fairbench.metrics.registry import find
from fairbench.metrics.registry import label as metric_label
from fairbench.reporting.document.model import PageFilter, Tags

TASK = ("dataset", "protect")
PARTS = ("learner", "intervention", "method")
APPROACH = (*PARTS, "options", "setting")
ERROR = "error_rate"
_FACTS = (
    *("family", *TASK, *APPROACH, "seed", "repeat", "run", "group_at_prediction", "test_share"),
    *("rows", "features", "positive_share", "smallest_group_share", "groups"),
)
SHOWN_GAPS = 3
_LONGEST = 50  # letters of a task's name, each of up to four bytes of a file's 255
THRESHOLDS = "a threshold for each group"


@dataclass(frozen=True, eq=False)
class TaskMeans:
    """One task: a data set with a protected attribute.

    Attributes
    ----------
    first : a row of the task, for its facts.
    rows : one row per approach: the columns of `APPROACH`, ``group_at_prediction``, and of every
        metric the mean and the ends of its interval, ``name``, ``name lower`` and ``name upper``.
    """

    first: Mapping[str, Any]
    rows: pd.DataFrame
    repeats: int

    @property
    def title(self) -> str:
        """The data set and whom it is about."""
        return f"{self.first['dataset']} by {self.first['protect']}"

    @property
    def name(self) -> str:
        """The task as a part of a link or of a file's name."""
        name = "-".join("".join(c if c.isalnum() else " " for c in self.title).split())
        if len(name) <= _LONGEST and all(c.isalnum() or c in "_ " for c in self.title):
            return name
        # Titles may differ in special characters alone.
        return f"{name[:_LONGEST]}-{digest(self.title, 6)}"


@dataclass(frozen=True, eq=False)
class BoardTable:
    """The table of approaches, and what is in it.

    Attributes
    ----------
    table : the result of :func:`fairbench.comparison.atlas.approaches.approach_table`.
    """

    table: pd.DataFrame

    @cached_property
    def metrics(self) -> list[str]:
        """The metrics that have a value, those that are judged first, then by name."""
        names = [n for n in self.table if n not in _FACTS and n not in COSTS]
        with_values = [str(n) for n in names if find(str(n)) and self.table[n].notna().any()]
        return sorted(with_values, key=lambda name: (_place(name), name))

    @property
    def gaps(self) -> list[str]:
        """Those of the metrics that compare groups: zero is fair."""
        return [name for name in self.metrics if getattr(find(name), "is_gap", False)]

    @cached_property
    def tasks(self) -> list[TaskMeans]:
        """Every task, in the order of the names."""
        return [_task(rows, self.metrics) for _, rows in self.table.groupby([*TASK], sort=True)]

    def shown(self, task: TaskMeans) -> pd.DataFrame:
        """Return the rows of a task that the page shows."""
        return shown_rows(task.rows, self.gaps[:SHOWN_GAPS])

    @cached_property
    def filters(self) -> list[PageFilter]:
        """The filters of the page: those with more than one value."""
        filters = [
            PageFilter(
                name, label, [(value, value) for value in sorted(self.table[column].unique())]
            )
            for name, label, column in (
                ("family", "family of data", "family"),
                ("learner", "learner", "learner"),
                ("intervention", "intervention", "intervention"),
                ("method", "uncertainty method", "method"),
            )
        ]
        metrics = [(name, metric_label(name)) for name in self.metrics]
        filters.append(PageFilter("metric", "metric", metrics))
        needs = [("no", "not needed"), ("yes", "needed")]
        filters.append(PageFilter("group", "group at prediction", needs))
        return [filter_ for filter_ in filters if len(filter_.values) > 1]


_FIRST = ("error_rate", "statistical_parity", "equalized_odds", "equal_opportunity", "log_loss")


def _place(name: str) -> int:
    return _FIRST.index(name) if name in _FIRST else len(_FIRST)


def _task(task_rows: pd.DataFrame, metrics: Sequence[str]) -> TaskMeans:
    """Return the means of one task's approaches over its repeats."""
    keys = task_rows[[*APPROACH]]
    code = keys.groupby([*APPROACH], sort=True).ngroup().to_numpy()
    repeat, splits = pd.factorize(task_rows["repeat"], sort=True)
    names = [*metrics, *(cost for cost in COSTS if cost in task_rows)]
    values = np.full((code.max() + 1, len(names), len(splits)), np.nan)
    values[code, :, repeat] = task_rows[names].to_numpy(float)
    shared = Splits(REPEATS, len(splits), float(task_rows["test_share"].mean()))
    none = np.full_like(values, np.nan)
    mean, lower, upper = mean_limits(values, none, none, shared)
    least = np.array([_least(name) for name in names])
    first_rows = np.unique(code, return_index=True)[1]
    rows = task_rows.iloc[first_rows][[*APPROACH, "group_at_prediction"]].reset_index(drop=True)
    columns = {
        f"{name} {end}".strip(): values_of_end[:, i]
        for end, values_of_end in (
            ("", mean),
            ("lower", np.maximum(lower, least)),
            ("upper", upper),
        )
        for i, name in enumerate(names)
    }
    facts = task_rows.iloc[0].to_dict()
    return TaskMeans(facts, pd.concat([rows, pd.DataFrame(columns)], axis=1), len(splits))


def _least(name: str) -> float:
    """Return the least value that a metric can have, where there is one."""
    metric = find(name)
    return 0.0 if metric is None or metric.is_gap else metric.least


def approach_name(row: Mapping[str, Any]) -> str:
    """Return an approach in words; no intervention goes without saying."""
    parts = [row[part] for part in PARTS if row[part] != "none"]
    return ", ".join(parts)


def approach_note(row: Mapping[str, Any]) -> str:
    """Return the options of an approach, with its thresholds or its share of abstention."""
    return "; ".join(filter(None, [row["options"], setting_text(row["setting"])]))


def setting_text(setting: str) -> str:
    """Return in words how labels were given, where not by the model alone."""
    name, limited, limit = setting.partition("<=")
    if limited:
        return f"a threshold for each group, {gap_label(name)} of at most {limit}"
    name, abstained, share = setting.partition("=")
    return f"no decision for {float(share):.0%}" if abstained else ""


def gap_label(name: str) -> str:
    """Return the name of a gap in a sentence and on an axis."""
    label = metric_label(name)
    return label if "gap" in label else f"{label} gap"


def tags_of(row: Mapping[str, Any]) -> Tags:
    """Return the tags by which the page's filters find an approach."""
    needs = "yes" if row["group_at_prediction"] else "no"
    return {**{part: str(row[part]) for part in PARTS}, "group": needs}


def shown_rows(rows: pd.DataFrame, gaps: Sequence[str]) -> pd.DataFrame:
    """Return the approaches that a task's picture and table show; its files have all.

    They abstain on nobody. Of thresholds for each group, those are shown that limit one of these
    gaps of an unconstrained model, read by the commonest method: others would be hundreds.
    """
    plain = rows["setting"] == ""
    common = rows.loc[plain, "method"].mode().iloc[0] if plain.any() else ""
    limits = rows["setting"].str.partition("<=")[0].isin(gaps)
    relaxed = limits & (rows["intervention"] == "none") & (rows["method"] == common)
    return rows[plain | relaxed]
