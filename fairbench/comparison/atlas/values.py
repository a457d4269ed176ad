"""Metric values of approaches as arrays over tasks and splits, and their differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.comparison.atlas.approaches import TASK
from fairbench.core.arrays import Floats
from fairbench.inference.comparing.multilevel import MeasuredDifferences
from fairbench.metrics.registry import find

# The share of an atlas's tasks on which an approach must have been run to be ranked, or to decide a
# claim. Tasks are few, and differ: a mean over half of them is up to 1.4 times as uncertain as one
# over all, a mean over a tenth more than three times, and those few were not drawn by chance.
LEAST_SHARE = 0.5
EPSILON = 0.01  # for metrics that declare none


# Added to the name of every approach that needs the group of a person at prediction, as its
# components declare (`Capabilities.group_at_prediction`); also to the names that claims show.
NEEDS_GROUP = "needs the group at prediction"
THRESHOLDS_NEED = "thresholds for each group, which need the group at prediction,"


def name_with_group_need(name: str, *, needs_group: bool) -> str:
    """Return a name, followed by `NEEDS_GROUP` if so; the name of an approach or of a part."""
    return f"{name} ({NEEDS_GROUP})" if needs_group else name


def epsilon_of(metric: str) -> float:
    """Return the largest difference in a metric that does not matter in practice."""
    declared = find(metric)
    return declared.epsilon if declared is not None and not declared.relative else EPSILON


def fewest_tasks(total: int) -> int:
    """Return how many of `total` tasks an approach must have been run on to be ranked."""
    return ceil(LEAST_SHARE * total)


_IDENTITY = ("learner", "intervention", "method", "options", "setting")


@dataclass(frozen=True, eq=False)
class AtlasValues:
    """A table of approaches, with the index of each row in arrays (approach, task, repeat).

    Attributes
    ----------
    approaches : a row for each of A approaches: its learner, intervention, method, options and
        setting.
    tasks : a row for each of T tasks.
    cell_index : (n, 3) indices of the approach, the task and the repeat of each row.
    total : the number of tasks of the whole atlas; `table` may cover fewer.
    """

    table: pd.DataFrame
    approaches: pd.DataFrame
    tasks: pd.DataFrame
    cell_index: NDArray[np.intp]
    total: int

    @classmethod
    def of(cls, table: pd.DataFrame) -> AtlasValues:
        """Return the values of a table of :func:`approaches.approach_table`."""
        table = table.reset_index(drop=True)
        approach = table.groupby([*_IDENTITY], sort=True, observed=True).ngroup().to_numpy()
        task = table.groupby([*TASK], sort=True, observed=True).ngroup().to_numpy()
        repeat = table.groupby(["seed", "repeat"], sort=True).ngroup().to_numpy()
        approaches, tasks = (
            table.iloc[np.unique(code, return_index=True)[1]].reset_index(drop=True)
            for code in (approach, task)
        )
        cell_index = np.stack([approach, task, repeat], axis=1)
        return cls(table, approaches, tasks, cell_index, len(tasks))

    def only(self, is_kept: pd.Series) -> AtlasValues:
        """Return the values of the rows of `table` where `is_kept` is true."""
        return replace(AtlasValues.of(self.table[is_kept.to_numpy()]), total=self.total)

    @property
    def fewest_tasks(self) -> int:
        """The number of tasks on which an approach must have been run to be ranked."""
        return fewest_tasks(self.total)

    def metric(self, name: str) -> Floats:
        """Return a metric, (A, T, R); NaN where it was not measured."""
        repeats = int(self.cell_index[:, 2].max(initial=-1)) + 1
        values = np.full((len(self.approaches), len(self.tasks), repeats), np.nan)
        if name in self.table:
            values[tuple(self.cell_index.T)] = self.table[name].to_numpy(float)
        return values

    @cached_property
    def family(self) -> NDArray[np.intp]:
        """The family of each task, (T,)."""
        return np.asarray(pd.factorize(self.tasks["family"])[0], np.intp)

    @cached_property
    def test_share(self) -> Floats:
        """The share of rows that a split of each task tests, (T,)."""
        return np.asarray(self.tasks["test_share"], float)

    @cached_property
    def about_tasks(self) -> list[dict[str, Any]]:
        """The rows of `tasks` as dictionaries; reading single cells of a frame is slow."""
        rows: list[dict[str, Any]] = self.tasks.to_dict("records")
        return rows

    @cached_property
    def about_approaches(self) -> list[dict[str, Any]]:
        """The rows of `approaches` as dictionaries."""
        rows: list[dict[str, Any]] = self.approaches.to_dict("records")
        return rows

    @cached_property
    def names(self) -> list[str]:
        """The name of each approach: its parts, with their options."""
        return [approach_name(row) for row in self.about_approaches]

    def estimate_differences(
        self, differences: Floats, facts: Floats | None = None
    ) -> MeasuredDifferences:
        """Return the mean and the variance over splits of P differences, given as (P, T, R)."""
        splits = np.isfinite(differences).sum(axis=2).astype(float)
        filled = np.where(np.isfinite(differences), differences, 0)
        with np.errstate(invalid="ignore", divide="ignore"):
            means = filled.sum(axis=2) / splits
            deviations = np.where(np.isfinite(differences), differences - means[:, :, None], 0)
            variances = (deviations**2).sum(axis=2) / (splits - 1)
        return MeasuredDifferences(means, variances, splits, self.test_share, self.family, facts)


def approach_name(approach: Mapping[str, Any]) -> str:
    """Return the name of an approach: its parts with the values of their options."""
    values_of_part: dict[str, list[str]] = {}
    for option in approach["options"].split():
        part, _, setting = option.partition(".")
        values_of_part.setdefault(part, []).append(setting.partition("=")[2])
    parts = [
        " ".join([approach[part], *values_of_part.get(part, [])])
        for part in ("learner", "intervention", "method")
        if (part, approach[part]) != ("intervention", "none")
    ]
    name = ", ".join([*parts, *filter(None, [approach["setting"]])])
    return name_with_group_need(name, needs_group=bool(approach.get("group_at_prediction", False)))


def options_without(part: str, options: str) -> str:
    """Return the options without those of one part, such as ``intervention``."""
    return " ".join(word for word in options.split() if not word.startswith(f"{part}."))


def option_values(part: str, options: str) -> str:
    """Return the values of the options of one part."""
    assignments = [
        assignment for assignment in options.split() if assignment.startswith(f"{part}.")
    ]
    return " ".join(assignment.partition("=")[2] for assignment in assignments)


@dataclass(frozen=True)
class Contrast:
    """Pairs of approaches that differ in one part alone, such as the intervention.

    Attributes
    ----------
    label : the choice of that part, with its options, which the first of each pair has.
    pairs : the positions of both approaches of each pair.
    needs_group : whether this choice needs the group at prediction.
    """

    label: str
    pairs: tuple[tuple[int, int], ...]
    needs_group: bool = False

    @property
    def name(self) -> str:
        """The label, marked if the choice needs the group at prediction."""
        return name_with_group_need(self.label, needs_group=self.needs_group)

    def mean_difference(self, values: Floats) -> Floats:
        """Return first minus second of each pair, averaged over pairs, (T, R)."""
        first, second = np.array(self.pairs).T
        return finite_mean(values[first] - values[second])


def finite_mean(values: Floats) -> Floats:
    """Return the mean of the finite values over the first axis, (k, T, R) -> (T, R)."""
    is_known = np.isfinite(values)
    with np.errstate(invalid="ignore"):
        means: Floats = np.where(is_known, values, 0).sum(axis=0) / is_known.sum(axis=0)
    return means


def contrasts(values: AtlasValues, part: str, base: str) -> list[Contrast]:
    """Return a contrast with the choice `base` for every other choice of a part and its options.

    The two approaches of a pair agree in everything else. A contrast has the pairs of all learners.
    """
    other_columns = [name for name in _IDENTITY if name not in (part, "options")]
    records = values.approaches.to_dict("records")
    keys = [
        (*(row[name] for name in other_columns), options_without(part, row["options"]))
        for row in records
    ]
    bases = {
        key: position
        for position, (key, row) in enumerate(zip(keys, records, strict=True))
        if row[part] == base
    }
    pairs_of_label: dict[str, list[tuple[int, int]]] = {}
    for position, (key, row) in enumerate(zip(keys, records, strict=True)):
        if row[part] != base and key in bases:
            label = " ".join([row[part], option_values(part, row["options"])]).strip()
            pairs_of_label.setdefault(label, []).append((position, bases[key]))
    # A contrast needs the group only if the changed part does: the base does not need it.
    needs = [bool(row.get("group_at_prediction", False)) for row in records]
    return [
        Contrast(
            label,
            tuple(pairs),
            any(needs[changed] and not needs[unchanged] for changed, unchanged in pairs),
        )
        for label, pairs in sorted(pairs_of_label.items())
    ]


def mean_differences(values: Floats, compared: Sequence[Contrast]) -> Floats:
    """Return the mean difference of every contrast in a metric (A, T, R), as (P, T, R)."""
    if not compared:
        return np.full((0, *values.shape[1:]), np.nan)
    return np.stack([contrast.mean_difference(values) for contrast in compared])
