"""The tasks of the leaderboard, one by one: the facts, the picture and the table of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from fairbench.comparison.atlas.values import name_with_group_need
from fairbench.core.formats import count, number
from fairbench.evaluation.columns import COSTS
from fairbench.metrics.registry import label as metric_label
from fairbench.reporting.charts import COLOURS, Panel, Series, chart
from fairbench.reporting.document.model import (
    Block,
    Column,
    Details,
    Figure,
    Paragraph,
    Section,
    Table,
    TableCell,
)
from fairbench.reporting.leaderboard.means import (
    APPROACH,
    ERROR,
    SHOWN_GAPS,
    THRESHOLDS,
    BoardTable,
    TaskMeans,
    approach_name,
    approach_note,
    gap_label,
    tags_of,
)
from fairbench.reporting.page.sections import records

_SHOWN = ("error_rate", "statistical_parity", "equalized_odds", "equal_opportunity", "log_loss")


def tasks_section(board: BoardTable) -> Section:
    """Return the section of all tasks: their facts side by side, then each by itself."""
    text = (
        "A task is a data set with the attribute whose groups are compared. Data sets that share "
        "their people or their source are of one family, and count as relatives, not as "
        "independent evidence."
    )
    blocks: list[Block] = [Paragraph(text), _facts(board)]
    blocks += [_details(task, board) for task in board.tasks]
    return Section("Data sets", blocks, name="data-sets")


def _facts(board: BoardTable) -> Table:
    """Return the table of facts about the tasks."""
    columns = [Column("task"), Column("family"), Column("rows", "count")]
    columns += [Column("features", "count"), Column("base rate", "number", decimals=2)]
    columns += [Column("smallest group", "number", decimals=2), Column("groups", "count")]
    columns += [Column("approaches", "count"), Column("repeats", "count")]
    rows = []
    for task in board.tasks:
        facts = [_fact_value(task, name) for name in ("rows", "features", "positive_share")]
        facts += [_fact_value(task, name) for name in ("smallest_group_share", "groups")]
        title = TableCell(task.title, link=f"#{task.name}")
        counts = [int(board.shown(task)["setting"].eq("").sum()), task.repeats]
        rows.append([title, task.first["family"], *facts, *counts])
    caption = "base rate: the share of label 1; smallest group: its share of the rows"
    tags = [{"family": str(task.first["family"])} for task in board.tasks]
    return Table(columns, rows, caption=caption, sortable=True, tags=tags)


def _fact_value(task: TaskMeans, name: str) -> float | None:
    value = task.first.get(name)
    return None if value is None or pd.isna(value) else float(value)


def _details(task: TaskMeans, board: BoardTable) -> Details:
    """Return a task with its facts, its figure, and the tables of its approaches."""
    rows = board.shown(task).sort_values(ERROR, kind="stable")
    blocks: list[Block] = [Paragraph(_sentence(task))]
    picture = task_figure(task, board)
    if picture is not None:
        blocks.append(picture)
    approaches, relaxed = (
        rows[selection] for selection in (rows["setting"] == "", rows["setting"] != "")
    )
    blocks.append(_table(approaches, board))
    if len(relaxed):
        title = f"The {len(relaxed)} with {THRESHOLDS}"
        blocks.append(Details(title, [_table(relaxed, board)]))
    remark = f"{_counted(_fact_value(task, 'rows'))} rows, {len(approaches)} approaches"
    tags = {"family": str(task.first["family"])}
    return Details(task.title, blocks, remark=remark, name=task.name, style="metric", tags=tags)


def _counted(value: float | None) -> str:
    return "an unknown number of" if value is None else count(value)


def _sentence(task: TaskMeans) -> str:
    """Return the facts of a task in words."""
    rate, smallest, groups, features = (
        _fact_value(task, name)
        for name in ("positive_share", "smallest_group_share", "groups", "features")
    )
    text = f"{_counted(_fact_value(task, 'rows'))} rows"
    text += f" with {count(features)} features" if features is not None else ""
    text += f", of the family {task.first['family']}."
    if rate is not None:
        text += f" Label 1 has {number(100 * rate, 0)} % of them."
    if groups is not None and smallest is not None:
        share = number(100 * smallest, 0 if smallest >= 0.1 else 1)
        text += f" There are {count(groups)} groups; the smallest has {share} % of the rows."
    several = "s" if task.repeats != 1 else ""
    return f"{text} Every approach was fitted on {task.repeats} split{several} of the rows."


def _table(rows: pd.DataFrame, board: BoardTable) -> Table:
    """Return the table of approaches on a task."""
    metrics = [name for name in _SHOWN if name in board.metrics and rows[name].notna().any()]
    columns = [Column("approach")]
    columns += [Column(metric_label(name), "estimate") for name in metrics]
    columns += [Column("CPU seconds", "number", decimals=2), Column("group at prediction")]
    approaches = records(rows)
    cells = [_row(row, metrics) for row in approaches]
    caption = (
        "mean over the repeats, and its 95 % interval for these fits on new people (Nadeau and "
        "Bengio 2003); CPU seconds: of one fit and its predictions"
    )
    tags = [tags_of(row) for row in approaches]
    return Table(columns, cells, caption=caption, sortable=True, tags=tags)


def _row(row: dict[str, Any], metrics: Sequence[str]) -> list[Any]:
    """Return the cells of an approach: its metrics with intervals, its cost, and what it needs."""
    seconds = sum(row.get(name, float("nan")) for name in COSTS)
    return [
        TableCell(approach_name(row), note=approach_note(row)),
        *((row[name], row[f"{name} lower"], row[f"{name} upper"]) for name in metrics),
        seconds if seconds == seconds else None,
        "needed" if row["group_at_prediction"] else "not needed",
    ]


def task_figure(task: TaskMeans, board: BoardTable) -> Figure | None:
    """Return error against every gap: one point per approach, one style per intervention."""
    rows = board.shown(task)
    style_of = styles_of(board)
    panels = []
    for gap in board.gaps[:SHOWN_GAPS]:
        points = list(_points(rows, gap, style_of))
        if points:
            panels.append(Panel(points, "error rate", gap_label(gap), from_zero="y"))
    if not panels:
        return None
    shown_interventions = dict.fromkeys(rows["intervention"])
    key = [
        Series(name, [], [], **style_of[name]) for name in style_of if name in shown_interventions
    ]
    relaxed = rows["setting"].ne("").any()
    key += [Series(THRESHOLDS, [], [], **style_of[THRESHOLDS])] if relaxed else []
    svg, *more = chart(panels, key=key)
    caption = (
        f"{task.title}: every point is an approach, the mean of its repeats; lower left is better. "
        "The pointer shows its name."
    )
    title = f"Error against gaps, {task.title}"
    return Figure(title, svg=svg, more=more, caption=caption, name=f"task-{task.name}")


def _points(rows: pd.DataFrame, gap: str, style_of: dict[str, dict[str, Any]]) -> Iterator[Series]:
    """Yield the approaches as points; per-group thresholds only in the panel of their own gap."""
    for row in records(rows[[*_NAMING, ERROR, gap]]):
        setting = str(row["setting"])
        if row[gap] != row[gap] or (setting and not setting.startswith(f"{gap}<=")):
            continue
        style = style_of[THRESHOLDS if setting else str(row["intervention"])]
        hint = " ".join(filter(None, [approach_name(row), approach_note(row)]))
        hint = name_with_group_need(hint, needs_group=bool(row["group_at_prediction"]))
        yield Series(hint, [row[ERROR]], [row[gap]], **style, lined=False, tags=tags_of(row))


_NAMING = (*APPROACH, "group_at_prediction")


def styles_of(board: BoardTable) -> dict[str, dict[str, Any]]:
    """Return the colour and the shape of every intervention, the same in all pictures of a page.

    Approaches without an intervention are black.
    """
    names = sorted(set(board.table["intervention"].unique()) - {"none"})
    style_of: dict[str, dict[str, Any]] = {"none": {"colour": "black", "shape": 0, "filled": True}}
    for i, name in enumerate(names):
        style_of[name] = {"colour": COLOURS[i % (len(COLOURS) - 1)], "shape": 2 + i}
    return style_of | {THRESHOLDS: {"colour": "black", "shape": 1}}
