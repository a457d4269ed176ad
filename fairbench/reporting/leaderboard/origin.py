"""The origin of the leaderboard, and its files: commits, versions, commands, fits, downloads."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from fairbench.core import VERSION
from fairbench.core.formats import count, spreadsheet_safe
from fairbench.evaluation.columns import COSTS
from fairbench.experiments.presets import Presets, Provenance, provenance
from fairbench.reporting.document.json import finite
from fairbench.reporting.document.model import (
    Block,
    Code,
    Column,
    Commands,
    Details,
    Items,
    Link,
    Paragraph,
    Section,
    Table,
    Text,
)
from fairbench.reporting.leaderboard.means import BoardTable
from fairbench.results.runs import Run

TABLE, MEANS = "table.csv.gz", "means"


def origin_section(
    board: BoardTable,
    runs: Sequence[Run],
    drawn: Sequence[str],
    conf: Path | None,
    command: str,
) -> Section:
    """Return the section on how the page was made, and what can be downloaded."""
    blocks: list[Block] = [
        Paragraph(
            "The statistics rest on the files below alone: whoever doubts one can repeat it."
        ),
        Items(list(_files(board))),
        Details(f"The {len(drawn)} pictures as SVG", [Items(list(map(_picture, drawn)))]),
        Section(
            "How it was made",
            [_origin_paragraph(board, runs), *_commands_blocks(runs, conf, command)],
        ),
    ]
    return Section("Download and origin", blocks, name="origin")


def _files(board: BoardTable) -> list[Text]:
    """Return the list of files beside the page."""
    rows, several = count(len(board.table)), count(sum(len(task.rows) for task in board.tasks))
    return [
        (Link(TABLE, TABLE), f": every task, approach and repeat, {rows} rows."),
        (
            Link(f"{MEANS}.csv", f"{MEANS}.csv"),
            ", ",
            Link(f"{MEANS}.json", f"{MEANS}.json"),
            f": means over the repeats with their intervals, {several} rows.",
        ),
        (
            Link("index.json", "index.json"),
            ": the findings of this page: ranks, claims, frontiers.",
        ),
    ]


def picture_file(name: str) -> str:
    """Return a link to a picture's file beside the page."""
    return f"figures/{name}.svg"


def _picture(name: str) -> Text:
    return (Link(name, picture_file(name)),)


def _origin_paragraph(board: BoardTable, runs: Sequence[Run]) -> Paragraph:
    """Return how many fits the page rests on, and what they cost."""
    used = set(board.table["run"])
    used_runs = [run for run in runs if run.id in used]
    fits = len({cell for run in used_runs for cell in run.cells()})
    seconds = float(board.table[[n for n in COSTS if n in board.table]].sum().sum())
    text = (
        f"{count(fits)} fits in {count(len(used_runs))} runs, "
        f"{_duration(seconds)} of one processor in fitting and predicting. "
        f"Written with fairbench {VERSION}."
    )
    return Paragraph(text)


def _duration(seconds: float) -> str:
    """Return a time in minutes, or in hours where there are several."""
    hours = seconds / 3600
    return f"{hours:.1f} hours" if hours >= 2 else f"{count(60 * hours)} minutes"


def _commands_blocks(runs: Sequence[Run], conf: Path | None, command: str) -> list[Block]:
    """Return commits, versions, data and the commands that make runs and page again."""
    lines = [command]
    if conf is None:
        return [Commands(lines)]
    origin = provenance(runs, Presets(conf))
    versions = ", ".join(f"{name} {version}" for name, version in origin.versions.items())
    return [
        Paragraph(f"commit {', '.join(origin.commits)}; {versions}"),
        Paragraph("The page is made again by:"),
        Commands(lines),
        Details(
            f"The {len(origin.commands)} commands that make the runs", [Commands(origin.commands)]
        ),
        Details(f"The {len(origin.data)} files of data, by their sha256", [_data(origin)]),
    ]


def _data(origin: Provenance) -> Table:
    """Return the table of data files with their sha256."""
    rows = [[name, (Code(sha),)] for name, sha in sorted(origin.data.items())]
    return Table([Column("file"), Column("sha256")], rows)


def downloads(board: BoardTable, drawings: Mapping[str, str]) -> dict[str, str]:
    """Return the texts beside the page: the means, and every picture."""
    means = pd.concat(
        [
            task.rows.assign(**{n: task.first[n] for n in ("family", "dataset", "protect")})
            for task in board.tasks
        ],
        ignore_index=True,
    )
    means = means[[*("family", "dataset", "protect"), *means.columns[:-3]]]
    return {
        f"{MEANS}.csv": _csv(means).decode(),
        f"{MEANS}.json": _json(means),
        **{picture_file(name): svg for name, svg in drawings.items()},
    }


def whole_table(board: BoardTable) -> bytes:
    """Return the table, one row per repeat, as compressed CSV; equal tables give equal bytes."""
    return gzip.compress(_csv(board.table), 6, mtime=0)


def _csv(table: pd.DataFrame) -> bytes:
    """Return a table as CSV with six digits; written by Arrow, as pandas is slow."""
    import pyarrow as pa
    from pyarrow import csv

    sink = io.BytesIO()
    csv.write_csv(pa.Table.from_pandas(_short(spreadsheet_safe(table)), preserve_index=False), sink)
    return sink.getvalue()


def _short(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose numbers have six decimals at most."""
    return table.round(6)


def _json(table: pd.DataFrame) -> str:
    short = _short(table)
    rows = [list(row) for row in zip(*(short[name].tolist() for name in short), strict=True)]
    content = {"columns": list(short.columns), "rows": finite(rows)}
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")) + "\n"
