"""Blocks of a page, runs that predict the same rows in the same splits; one metric of a block."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from fairbench.core.fingerprint import digest
from fairbench.core.seeds import rng
from fairbench.evaluation.columns import setting_text, status_text
from fairbench.evaluation.summary import summarise
from fairbench.inference.ranking import standings
from fairbench.metrics.registry import Metric, find
from fairbench.reporting.runs import headline
from fairbench.results.catalogue import Catalogue, told_apart
from fairbench.results.runs import Run

ARM = ("learner", "intervention", "method")
_SHARED = ("dataset", "split", "seed")


@dataclass(frozen=True, eq=False)
class RunBlock:
    """Runs of one data set, split, seed and protected attribute.

    Attributes
    ----------
    name : the data set, numbered where it has several blocks: the name of its files.
    title : the data set, and what tells its blocks apart.
    """

    name: str
    title: str
    runs: Mapping[str, Run]
    metrics: pd.DataFrame

    @property
    def first(self) -> Run:
        """A run, for what all have in common."""
        return next(iter(self.runs.values()))

    @cached_property
    def arms(self) -> Mapping[str, str]:
        """One run for each name, and the name: others differ in what else was evaluated."""
        first: dict[str, str] = {}
        for id_, name in zip(self.runs, named(list(self.runs.values())), strict=True):
            first.setdefault(name, id_)
        return {id_: name for name, id_ in first.items()}

    @property
    def dataset(self) -> str:
        """The option chosen for the data set."""
        return self.first.choices["dataset"]

    @property
    def protect(self) -> str:
        """The attribute, or combination, of the headline metrics."""
        return self.first.protect

    @property
    def repeats(self) -> int:
        """How many splits were drawn."""
        return int(self.first.config["split"].get("repeats", 1))

    @property
    def split(self) -> str:
        """The split and its options, in words."""
        options = dict(self.first.config["split"])
        kind = options.pop("name")
        return f"{kind}({', '.join(f'{name}={value}' for name, value in options.items())})"


def blocks(catalogue: Catalogue) -> list[RunBlock]:
    """Return the blocks of a catalogue by data set, those of most runs first."""
    sets: dict[str, dict[str, dict[str, Run]]] = {}
    for run in catalogue.runs.values():
        key = digest([run.protect, *(run.config[name] for name in _SHARED)])
        sets.setdefault(run.choices["dataset"], {}).setdefault(key, {})[run.id] = run
    metrics = dict(iter(catalogue.metrics.groupby("run", observed=True, sort=False)))
    found = []
    for dataset, of_dataset in sorted(sets.items()):
        titles = _titles([next(iter(runs.values())) for runs in of_dataset.values()])
        titled = sorted(zip(of_dataset.values(), titles, strict=True), key=_most_runs_first)
        for i, (runs, title) in enumerate(titled, start=1):
            name = f"{dataset}-{i}" if len(titled) > 1 else dataset
            mine = pd.concat([metrics[id_] for id_ in runs if id_ in metrics], ignore_index=True)
            found.append(RunBlock(name, title, runs, mine))
    return found


def _most_runs_first(titled: tuple[Mapping[str, Run], str]) -> tuple[int, list[Any]]:
    """Sort by how many runs there are, then by title, its numbers as numbers."""
    runs, title = titled
    words = re.split(r"(\d+)", title)
    return -len(runs), [int(word) if word.isdigit() else word for word in words]


def _titles(firsts: Sequence[Run]) -> list[str]:
    """Name blocks of one data set, each by one of its runs, by what differs between them."""
    titles = told_apart([run.choices["dataset"] for run in firsts], firsts, ("dataset", "split"))
    for name, values in (
        ("seed", [run.config["seed"] for run in firsts]),
        ("protect", [run.protect for run in firsts]),
    ):
        if len(set(values)) > 1:
            titles = [f"{title}, {name}={v}" for title, v in zip(titles, values, strict=True)]
    return titles


def named(runs: Sequence[Run]) -> list[str]:
    """Name each run by its choices, and by the options of them in which namesakes differ.

    The learner is left out where all have the same.
    """
    learners = {run.choices["learner"] for run in runs}
    parts = ARM if len(learners) > 1 else ARM[1:]
    names = [
        ", ".join(run.choices[part] for part in parts if run.choices[part] != "none")
        for run in runs
    ]
    return told_apart(names, runs, ARM)


CERTAIN = 0.95
EQUIVALENT, OPEN, WORSE, UNRANKED = "as good as the best", "not told apart", "worse", "not ranked"
_EVALUATED = ("evaluator", "consistency")
_SPLIT = ["repeat", "fold"]


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
    shown = headline(summarise(metrics, per=["run"]), block.protect)
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
