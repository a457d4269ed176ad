"""Scores to rank, read from finished runs or from results in formats of other tools."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from fairbench.comparison.atlas.approaches import APPROACH, approach_table
from fairbench.comparison.atlas.values import approach_name, epsilon_of, fewest_tasks
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
# Columns of the table of approaches that are not scores.
_ABOUT = (
    "family", "dataset", "protect", "learner", "intervention", "method", "options", "setting",
    "seed", "repeat", "run", "group_at_prediction", "test_share", "rows", "features",
    "positive_share", "smallest_group_share", "groups",
)  # fmt: skip


_NEEDS = "group_at_prediction"
_NO_ITEMS = "none"  # as item=: aggregates of tasks are ranked, not items
_LOGS = {".json", ".jsonl", ".ndjson", ".eval"}


def read_recognised(options: RankOptions) -> BenchmarkTable | None:
    """Return the scores of finished runs or of a recognised format; None for any other table.

    If options name columns of a table, None is returned, whatever its format.

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
    """Return a table without the column of families if there is just one family."""
    if "family" not in table.frame or table.frame["family"].nunique() > 1:
        return table
    name = shortened(str(table.frame["family"].iloc[0]))
    warning = f"all tasks are of one family, {name}: they are compared as if they were independent"
    frame = table.frame.drop(columns="family")
    return replace(table, frame=frame, warnings=(*table.warnings, warning))


def as_read(options: RankOptions, table: BenchmarkTable) -> RankOptions:
    """Return the options with the columns of a recognised table, unless others are named.

    Plans use the first of several costs.
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
    """Return the scores of a file or folder; None for a table in no known format.

    Parameters
    ----------
    scores : the scores to keep; if there are several, some must be named.
    items : whether single items of logs are read, or aggregates of tasks; items by default.
    purposes : the purposes of runs to keep; demos and tuning are left out by default.

    Raises
    ------
    UserError : it is damaged, holds no results, results of several formats, or several scores of
        which none is named.
    """
    if path.is_dir() and (is_pack(path) or len(Catalogue(path))):
        return select_approaches_with_enough_tasks(
            with_scores(_scores_of_runs(Catalogue(path), purposes), scores)
        )
    return sources.read_benchmark(path, scores, items=items)


def _scores_of_runs(catalogue: Catalogue, purposes: Sequence[str]) -> BenchmarkTable:
    """Return the metrics of finished runs: an approach is a method, a split a seed and a repeat."""
    counted, left_out = catalogue.counted(purposes)
    if not len(counted):
        raise UserError(f"{catalogue.folder} has no finished runs to rank; {left_out}".rstrip("; "))
    table = runs_table(list(counted))
    return replace(table, notes=(*table.notes, *filter(None, [left_out])))


def select_approaches_with_enough_tasks(table: BenchmarkTable) -> BenchmarkTable:
    """Return a table of the approaches that the atlas ranks, with a note on the others.

    These have the scores on half of the tasks; if fewer than two do, all are kept. A metric that is
    undefined for an approach, such as the log loss of one without scores, counts as not measured,
    and not as a crash.
    """
    names = [score.name for score in table.scores]
    measured = table.frame[table.frame[names].notna().any(axis=1)]
    tasks = measured[TASK].nunique()
    fewest = fewest_tasks(measured[TASK].nunique())
    task_counts = [
        measured[measured[name].notna()].groupby(METHOD)[TASK].nunique() for name in names
    ]
    task_counts = [
        tasks_of_methods.reindex(table.frame[METHOD].unique(), fill_value=0)
        for tasks_of_methods in task_counts
    ]
    enough = pd.concat(task_counts, axis=1).min(axis=1) >= fewest
    ranked = enough.index[enough]
    if enough.all() or len(ranked) < 2:
        return replace(table, frame=measured.reset_index(drop=True))
    left_out = len(enough) - len(ranked)
    are, they = ("is", "it has") if left_out == 1 else ("are", "they have")
    note = (
        f"{left_out} of {len(enough)} approaches {are} left out, as in the leaderboard: {they} the "
        f"score on fewer than {fewest} of the {tasks} tasks, half of them"
    )
    frame = measured[measured[METHOD].isin(ranked)].reset_index(drop=True)
    return replace(table, frame=frame, notes=(*table.notes, note))


def runs_table(runs: Sequence[Run]) -> BenchmarkTable:
    """Return the metrics of runs, one row per approach, task and repeat.

    As in the atlas, settings of approaches (thresholds per group, withheld labels) are left out.
    """
    return approaches_as_methods(approach_table(runs))


def with_methods_and_tasks(wide: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of approaches without settings, in the atlas's order of tasks.

    The new columns ``method`` and ``task`` have the names that a ranking uses.
    """
    wide = wide[(wide["setting"] == "").to_numpy()]
    wide = wide.sort_values(["dataset", "protect", *APPROACH, "seed", "repeat"], kind="stable")
    wide = wide.reset_index(drop=True)
    approaches = wide.drop_duplicates([*APPROACH])[[*APPROACH, _NEEDS]]
    methods = approaches.assign(name=[approach_name(row) for row in approaches.to_dict("records")])
    methods = methods.drop(columns=_NEEDS)
    return wide.assign(
        method=wide[[*APPROACH]].merge(methods, how="left")["name"],
        task=wide["dataset"].str.cat(wide["protect"], sep=", "),
    )


def approaches_as_methods(wide: pd.DataFrame) -> BenchmarkTable:
    """Return a table of approaches as a table of scores."""
    labelled = with_methods_and_tasks(wide)
    wide = labelled.drop(columns=["method", "task"])
    names = [name for name in wide if name not in (*_ABOUT, *COSTS)]
    costs = [name for name in COSTS if name in wide]
    keys = {
        "method": labelled["method"],
        "task": labelled["task"],
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
