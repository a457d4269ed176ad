"""The one printer of the papers' tables: ours, theirs, the difference and the verdict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from rich import box
from rich.console import Console
from rich.table import Table

from fairbench.core.files import write_text
from fairbench.experiments.presets import Presets
from fairbench.reporting.papers.mapping import (
    ABSENT,
    KEYS,
    VERDICTS,
    Paper,
    scoreboard,
    shares_within,
)
from fairbench.reporting.papers.matching import PaperTable, command, paper_tables
from fairbench.reporting.papers.record import RowAnswer
from fairbench.results.catalogue import Catalogue
from fairbench.results.packs import written_beside

_WIDTH = 100
_NUMBERS = ("published", "ours", "difference")
_HEADINGS = {
    "dataset": "data set",
    "sensitive_attribute": "groups",
    "n_labelled": "labels",
    "our method": "ours is",
}


def print_paper(paper: Paper, conf: Path, results: Path, table: str = "") -> None:
    """Print one table, or a summary of all of them, from what is in the results folder.

    Every table that is printed is written to ``report/PAPER`` of the results folder besides.

    Parameters
    ----------
    table : its name, ``all`` for all of them one by one, nothing for the summary.

    Raises
    ------
    UserError : a table that the paper does not have.
    """
    names = list(paper.tables) if table in ("", "all") else [table]
    tables = list(paper_tables(paper, names, Catalogue(results), Presets(conf), results))
    console = Console(width=_WIDTH)
    folder = written_beside(results) / paper.name
    for group in tables:
        _write(group, folder / f"table{group.table}", commands_of_table(paper, group))
        if table:
            print_table(group, console)
            console.print(
                f"{_line(group)}; made by {', '.join(commands_of_table(paper, group))}", style=None
            )
    if not table:
        console.print(_summary(paper, tables))
        if paper.within:
            print(_near_together(paper, tables))
        if tables:
            print(f"One table: fairbench paper {paper.name} table={tables[0].table}")


def print_contents(paper: Paper, answers: Sequence[RowAnswer]) -> None:
    """Print every row of a paper: its verdict, how many numbers agree, and what was seen."""
    printed = Table(title=paper.title or paper.name, title_justify="left", box=box.SIMPLE_HEAD)
    printed.add_column("row", overflow="fold", max_width=30)
    printed.add_column("verdict", no_wrap=True)
    printed.add_column("agree", justify="right", no_wrap=True)
    printed.add_column("what was seen", overflow="fold")
    for answer in answers:
        note = answer.note or answer.row.what
        printed.add_row(answer.row.item, answer.verdict, answer.score, note)
    Console(width=_WIDTH).print(printed)


def print_changes(paper: Paper, changed: pd.DataFrame) -> None:
    """Print the numbers whose verdict is not the recorded one, one per line.

    Those of a smaller size than the paper's are only counted.
    """
    for row in changed[changed["whole"]].to_dict("records"):
        row_name = ", ".join(filter(None, (row[name] for name in (*KEYS, "metric"))))
        print(
            f"{paper.name}, table {row['table']}, {row_name}: {row['verdict']} "
            f"(recorded: {row['before']}); theirs {row['value']}, ours {row['ours']:.4g}"
        )
    smaller = int((~changed["whole"]).sum())
    if smaller:
        print(f"{paper.name}: {smaller} verdicts of a smaller size differ from the record")


def commands_of_table(paper: Paper, table: PaperTable) -> list[str]:
    """Return the commands that make what stands beside a published table."""
    commands = [command(name) for name in table.experiments]
    if paper.computed(table.table):
        commands.append(f"fairbench paper {paper.name} table={table.table} run=true")
    return commands


def _line(table: PaperTable) -> str:
    note = f" ({table.note})" if table.note else ""
    return f"table {table.table}: {scoreboard(table.rows)}{note}"


def _summary(paper: Paper, tables: Sequence[PaperTable]) -> Table:
    """Return how many numbers of each table have which verdict, and how near ours are."""
    printed = Table(title=paper.title or paper.name, title_justify="left", box=box.SIMPLE_HEAD)
    printed.add_column("table")
    near = [f"within {distance:.2f}" for distance in _distances(paper)]
    for heading in ("numbers", *VERDICTS, *near):
        printed.add_column(heading, justify="right")
    printed.add_column("")
    for table in tables:
        numbers = str(int(table.rows["reproduces"].sum()))
        near_shares = _near_shares(table, paper)
        printed.add_row(
            table.table, numbers, *map(str, table.counts.values()), *near_shares, table.note
        )
    return printed


def _distances(paper: Paper) -> Sequence[float]:
    return paper.within.get("distances", ())


def _near_shares(table: PaperTable, paper: Paper) -> list[str]:
    """Return a table's shares within each distance; empty if it is not among the counted tables."""
    rows = table.rows[table.rows["reproduces"]]
    if table.table not in paper.within.get("tables", ()) or rows["difference"].isna().all():
        return [""] * len(_distances(paper))
    return [f"{share:.0%}" for share in shares_within(rows, _distances(paper))]


def _near_together(paper: Paper, tables: Sequence[PaperTable]) -> str:
    """Return, for each kind of answer, its shares within each distance in the counted tables."""
    counted = [table for table in tables if table.table in paper.within["tables"]]
    rows = pd.concat([group.rows for group in counted])
    rows = rows[rows["difference"].notna()]
    kinds = rows["our method"].where(~rows["reproduces"], "the answer that reproduces")
    lines = [f"Tables {', '.join(group.table for group in counted)} together:"]
    for kind, rows_of_kind in rows.groupby(kinds, sort=False):
        shares = zip(shares_within(rows_of_kind, _distances(paper)), _distances(paper), strict=True)
        share_texts = ", ".join(f"{share:.0%} within {distance:.2f}" for share, distance in shares)
        lines.append(
            f"  {kind}, {len(rows_of_kind)} number{'s' if len(rows_of_kind) > 1 else ''}: "
            f"{share_texts}"
        )
    return "\n".join([*lines, *paper.within.get("note", ())])


def print_table(table: PaperTable, console: Console) -> None:
    """Print a table, metric by metric; what all rows share stands in the title."""
    answered = table.rows[table.rows["verdict"] != ABSENT]
    for metric, rows in answered.groupby("metric", sort=False):
        console.print(_metric_table(rows, f"{table.paper}, table {table.table}: {metric}"))
    for reason, rows in table.rows[table.rows["verdict"] == ABSENT].groupby("reason", sort=False):
        numbers = int(rows["reproduces"].sum())
        console.print(f"{numbers} number{'s have' if numbers > 1 else ' has'} no answer: {reason}")


def _metric_table(rows: pd.DataFrame, title: str) -> Table:
    """Return the table of one metric: published numbers beside ours."""
    several = rows.groupby(list(KEYS), sort=False)["our method"].transform("size").max() > 1
    keys = _distinguishing_columns(rows)
    shared = [rows[name].iloc[0] for name in KEYS if name not in keys]
    title = ", ".join([title, *filter(None, shared)]) + ", mean (sd)"
    if several or (rows["our method"] != rows["method"]).any():
        keys.append("our method")
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, collapse_padding=True)
    for name in (*keys, *_NUMBERS, "verdict"):
        is_number = name in (*_NUMBERS, "n_labelled")
        heading = _HEADINGS.get(name, name)
        whole = name in (*_NUMBERS, "verdict")
        justify: Literal["right", "left"] = "right" if is_number else "left"
        table.add_column(heading, justify=justify, overflow="fold", no_wrap=whole)
    digits = _decimals(rows)
    blocks = rows[keys[0]].duplicated().any()
    ordered = rows.sort_values("dataset", kind="stable").to_dict("records")
    for previous, row in zip([None, *ordered], ordered, strict=False):
        if blocks and previous and previous[keys[0]] != row[keys[0]]:
            table.add_section()
        front = [str(row[name]) for name in keys]
        if previous and previous[keys[0]] == row[keys[0]]:
            front[0] = ""
        if keys[-1] == "our method" and row["our method"] == row["method"]:
            front[-1] = ""
        table.add_row(*front, *_cells(row, digits))
    return table


def _distinguishing_columns(rows: pd.DataFrame) -> list[str]:
    """Return the columns that tell published rows apart, without those that others determine."""
    keys = [name for name in KEYS if rows[name].nunique() > 1]
    for name in ("sensitive_attribute", "n_labelled", "learner"):
        other_keys = [key for key in keys if key != name]
        if name in keys and other_keys and rows.groupby(other_keys)[name].nunique().max() == 1:
            keys = other_keys
    return keys or ["method"]


def _cells(row: dict[str, Any], digits: Callable[[Any], str]) -> list[str]:
    theirs = f"{row['value']} ({row['sd']})" if row["sd"] else row["value"]
    ours = digits(row["ours"])
    if row["repeats"] > 1:
        ours += f" ({digits(row['our sd'])})"
    verdict = row["verdict"] if row["reproduces"] else f"({row['verdict']})"
    return [theirs, ours, digits(row["difference"]), verdict]


def _decimals(rows: pd.DataFrame) -> Callable[[Any], str]:
    """Return how numbers of a metric are written: finer where the published ones are small."""
    least = rows["published"].abs().replace(0, np.nan).min()
    decimals = 5 if least < 0.001 else 4 if least < 0.03 else 3

    def written(value: Any) -> str:
        if not isinstance(value, float):
            return str(value)
        return "-" if np.isnan(value) else f"{value:.{decimals if abs(value) < 100 else 1}f}"

    return written


def _write(table: PaperTable, stem: Path, commands: Sequence[str]) -> None:
    """Write a table as CSV and as Markdown, with the commands that made it."""
    rows = table.rows
    write_text(stem.with_suffix(".csv"), rows.to_csv(index=False))
    written = _decimals(rows)
    lines = [" | ".join(rows.columns), " | ".join("---" for _ in rows.columns)]
    lines += [" | ".join(written(value) for value in row) for row in rows.itertuples(index=False)]
    body = "\n".join(f"| {line} |" for line in lines)
    write_text(stem.with_suffix(".md"), f"Made by `{'`, `'.join(commands)}`.\n\n{body}\n")
