"""Scores to rank, from whatever a path holds: fairbench's own runs, or what others write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from fairbench.comparison.atlas.approaches import APPROACH, approach_table
from fairbench.comparison.atlas.values import epsilon_of, fewest_tasks, named
from fairbench.comparison.rank.question import RankOptions
from fairbench.core.errors import UserError, note
from fairbench.core.formats import shortened
from fairbench.data.benchmark_logs import sources
from fairbench.data.benchmark_logs.table import (
    METHOD,
    TASK,
    BenchmarkTable,
    Better,
    Score,
    tidy,
    with_scores,
)
from fairbench.evaluation.columns import COSTS
from fairbench.metrics.registry import find
from fairbench.results.catalogue import Catalogue
from fairbench.results.packs import is_pack
from fairbench.results.runs import Run

FORMAT = "fairbench runs"
# Columns of the table of approaches that say what a row is of, and are no score of it.
_ABOUT = (
    "family", "dataset", "protect", "learner", "intervention", "method", "options", "setting",
    "seed", "repeat", "run", "group_at_prediction", "test_share", "rows", "features",
    "positive_share", "smallest_group_share", "groups",
)  # fmt: skip


_NEEDS = "group_at_prediction"
_NO_ITEMS = "none"  # in place of a column of items: aggregates of tasks are ranked
_LOGS = {".json", ".jsonl", ".ndjson", ".eval"}


def recognised(options: RankOptions) -> BenchmarkTable | None:
    """Return the scores of runs, or of results in a format of others; None of any other table.

    A table whose columns are named is read by these, whatever format it may be of.

    Raises
    ------
    UserError : as of :func:`benchmark_scores`.
    """
    path = options.path
    named_columns = options.method or options.task or options.item not in ("", _NO_ITEMS)
    if not path.exists() or (path.is_file() and named_columns and path.suffix not in _LOGS):
        return None
    items = False if options.item == _NO_ITEMS else None
    table = benchmark_scores(path, options.score, items=items)
    if table is None:
        return None
    note(f"{path.name} was read as {table.sentence}")
    return table if options.family else independent_tasks(table)


def independent_tasks(table: BenchmarkTable) -> BenchmarkTable:
    """Return a table without its families if there is one alone, which tells nothing apart."""
    if "family" not in table.frame or table.frame["family"].nunique() > 1:
        return table
    name = shortened(str(table.frame["family"].iloc[0]))
    warning = f"all tasks are of one family, {name}: they are compared as if they were independent"
    frame = table.frame.drop(columns="family")
    return replace(table, frame=frame, warnings=(*table.warnings, warning))


def as_read(options: RankOptions, table: BenchmarkTable) -> RankOptions:
    """Return the options with the columns of a table that was recognised, unless others are named.

    The first cost is that of plans.
    """
    names = [name for name in ("method", "task", "item", "family") if name in table.frame]
    columns: dict[str, Any] = {name: name for name in names if not getattr(options, name)}
    if options.item == _NO_ITEMS:
        columns["item"] = ""
        if "item" in table.frame:
            raise UserError(f"item=none: of {table.format} no aggregates are read, only items")
    if "split" in table.frame and not options.split:
        columns["split"] = ("split",)
    if table.costs and not options.cost:
        columns["cost"] = table.costs[0]
    return replace(options, score=tuple(score.name for score in table.scores), **columns)


def benchmark_scores(
    path: Path,
    scores: Sequence[str] = (),
    *,
    items: bool | None = None,
    purposes: Sequence[str] = (),
) -> BenchmarkTable | None:
    """Return the scores that a file or folder holds; None of a table of columns of its own.

    Parameters
    ----------
    scores : the scores to keep; where there are several, some must be named.
    items : of logs, whether single items are read or aggregates of tasks; items by default.
    purposes : of runs, what they were made for; demos and tuning are left out by default.

    Raises
    ------
    UserError : it is damaged, holds no results, results of several formats, or several scores of
        which none is named.
    """
    if path.is_dir() and (is_pack(path) or len(Catalogue(path))):
        return of_enough_tasks(with_scores(_of_runs(Catalogue(path), purposes), scores))
    return sources.read_benchmark(path, scores, items=items)


def _of_runs(catalogue: Catalogue, purposes: Sequence[str]) -> BenchmarkTable:
    """Return the metrics of finished runs: an approach is a method, a split a seed and a repeat."""
    kept, left_out = catalogue.counted(purposes)
    if not len(kept):
        raise UserError(f"{catalogue.folder} has no finished runs to rank; {left_out}".rstrip("; "))
    table = runs_table(list(kept))
    return replace(table, notes=(*table.notes, *filter(None, [left_out])))


def of_enough_tasks(table: BenchmarkTable) -> BenchmarkTable:
    """Return a table of the approaches that the atlas ranks, with a note on the others.

    They are those that have the scores on half of the tasks; all where fewer than two do. What is
    not defined of an approach, such as the loss of scores where there are labels alone, is no
    crash: it was not measured there.
    """
    names = [score.name for score in table.scores]
    measured = table.frame[table.frame[names].notna().any(axis=1)]
    tasks, fewest = measured[TASK].nunique(), fewest_tasks(measured[TASK].nunique())
    on = [measured[measured[name].notna()].groupby(METHOD)[TASK].nunique() for name in names]
    on = [
        counts_of_method.reindex(table.frame[METHOD].unique(), fill_value=0)
        for counts_of_method in on
    ]
    enough = pd.concat(on, axis=1).min(axis=1) >= fewest
    kept = enough.index[enough]
    if enough.all() or len(kept) < 2:
        return replace(table, frame=measured.reset_index(drop=True))
    left = len(enough) - len(kept)
    are, they = ("is", "it has") if left == 1 else ("are", "they have")
    note = (
        f"{left} of {len(enough)} approaches {are} left out, as in the leaderboard: {they} the "
        f"score on fewer than {fewest} of the {tasks} tasks, half of them"
    )
    frame = measured[measured[METHOD].isin(kept)].reset_index(drop=True)
    return replace(table, frame=frame, notes=(*table.notes, note))


def runs_table(runs: Sequence[Run]) -> BenchmarkTable:
    """Return the metrics of runs, a row an approach, task and repeat.

    As in the atlas, approaches are ranked as they are: thresholds for each group, and labels that
    are withheld, are settings of one, which are left out.
    """
    return approaches_as_methods(approach_table(runs))


def with_methods_and_tasks(wide: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of approaches as they are, in the atlas's order of tasks.

    The columns ``method`` and ``task`` have what a ranking calls them.
    """
    wide = wide[(wide["setting"] == "").to_numpy()]
    wide = wide.sort_values(["dataset", "protect", *APPROACH, "seed", "repeat"], kind="stable")
    wide = wide.reset_index(drop=True)
    approaches = wide.drop_duplicates([*APPROACH])[[*APPROACH, _NEEDS]]
    methods = approaches.assign(name=[named(row) for row in approaches.to_dict("records")])
    methods = methods.drop(columns=_NEEDS)
    return wide.assign(
        method=wide[[*APPROACH]].merge(methods, how="left")["name"],
        task=wide["dataset"].str.cat(wide["protect"], sep=", "),
    )


def approaches_as_methods(wide: pd.DataFrame) -> BenchmarkTable:
    """Return a table of approaches as a table of scores."""
    known = with_methods_and_tasks(wide)
    wide = known.drop(columns=["method", "task"])
    names = [name for name in wide if name not in (*_ABOUT, *COSTS)]
    costs = [name for name in COSTS if name in wide]
    keys = {
        "method": known["method"],
        "task": known["task"],
        "split": wide["seed"].astype(str).str.cat(wide["repeat"].astype(int).astype(str), sep="."),
        "family": wide["family"],
    }
    frame = tidy(pd.DataFrame({**keys, **wide[[*names, *costs]]}), FORMAT)
    return BenchmarkTable(frame, FORMAT, tuple(map(_score, names)), tuple(costs))


def _score(name: str) -> Score:
    metric = find(name)
    better: Better = ""
    if metric and metric.better in ("higher", "lower"):
        better = "higher" if metric.better == "higher" else "lower"
    return Score(name, better, epsilon=epsilon_of(name))
