"""The sections of the page: an overview, and one for each block of comparable runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, isnan
from typing import Any
from urllib.parse import quote

import numpy as np
import pandas as pd

from fairbench.core.formats import interval, number
from fairbench.experiments.presets import Presets, Provenance, provenance
from fairbench.metrics.registry import label as metric_label
from fairbench.reporting.document.model import (
    Bar,
    Block,
    Code,
    Column,
    Commands,
    Details,
    Figure,
    Inline,
    Link,
    Mark,
    Paragraph,
    Section,
    Table,
    TableCell,
    Text,
)
from fairbench.reporting.page.blocks import RunBlock, named
from fairbench.reporting.page.metric_table import CERTAIN, EQUIVALENT, OPEN, RankedRuns
from fairbench.reporting.page.pairs import ComparedRuns, pairs_section
from fairbench.reporting.papers.mapping import UNANSWERED
from fairbench.reporting.papers.matching import PaperTable
from fairbench.results.runs import Run

_GLANCE = (
    "error_rate", "roc_auc", "nll", "log_loss", "expected_calibration_error", "rmse", "r2",
    "statistical_parity", "equalized_odds", "classwise_calibration_error",
    "statistical_parity_class_mean", "equal_opportunity_class_mean",
)  # fmt: skip
_FEW = 5  # repeats: fewer are a quick look
_FILES = ("md", "tex", "csv")

Source = Callable[[Sequence[Run]], Provenance]


@dataclass(frozen=True, eq=False)
class PageBlock:
    """A block of comparable runs with everything that the page shows of it."""

    block: RunBlock
    tables: Sequence[RankedRuns]
    figures: Sequence[Figure]
    papers: Sequence[PaperTable]
    compared: ComparedRuns | None = None

    @property
    def note(self) -> str:
        """A warning where there are few repeats; empty otherwise."""
        repeats = self.block.repeats
        return f"quick: {repeats} repeat{'s' * (repeats > 1)}" if repeats < _FEW else ""

    @property
    def published(self) -> list[dict[str, Any]]:
        """The papers' numbers of this data set, with ours."""
        return [
            {**row, "paper": table.paper, "table": table.table, "note": table.note}
            for table in self.papers
            for row in records(table.rows[table.rows["own data set"] == self.block.dataset])
        ]

    @property
    def answered(self) -> list[dict[str, Any]]:
        """Those of the papers' numbers that a run answers."""
        return [row for row in self.published if row["verdict"] not in UNANSWERED]

    def options(self, group: str) -> str:
        """Return the options of a group that were run, such as the methods."""
        return ", ".join(sorted({run.choices[group] for run in self.block.runs.values()}))


def sources(presets: Presets) -> Source:
    """Return a function that finds where numbers come from, once for each set of runs."""
    known: dict[tuple[str, ...], Provenance] = {}

    def source(runs: Sequence[Run]) -> Provenance:
        key = tuple(run.id for run in runs)
        if key not in known:
            known[key] = provenance(runs, presets)
        return known[key]

    return source


def rows_source(block: RunBlock, rows: Sequence[Mapping[str, Any]], source: Source) -> Provenance:
    """Return where the rows of a metric's table come from."""
    ids = {row["run"] for row in rows}
    return source([run for id_, run in block.runs.items() if id_ in ids])


def source_details(found: Provenance) -> Details:
    """Return where a table comes from: runs, data, versions, and the commands for them."""
    several = "" if len(found.runs) == 1 else "s"
    data = ", ".join(value[:12] for value in found.data.values()) or "simulated"
    commits = ", ".join(found.commits)
    runs: list[Inline] = ["runs (hashes of their configurations): "]
    for id_ in found.runs:
        runs += [Link(id_, f"#run-{id_}", code=True), " "]
    files: list[Inline] = ["data, sha256: "]
    for file, sha in found.data.items():
        files += [f"{file} ", Code(sha), "; "]
    if not found.data:
        files.append("simulated from the seed")
    versions = ", ".join(f"{name} {version}" for name, version in found.versions.items())
    changed = " (+: with files changed since)" if "+" in commits else ""
    return Details(
        f"{len(found.runs)} run{several}; data {data}; commit {commits}",
        [
            Paragraph(tuple(runs)),
            Paragraph(tuple(files)),
            Paragraph(f"versions: {versions}; commit {commits}{changed}"),
            Paragraph("To compute it again:"),
            Commands(found.commands),
        ],
        style="from",
    )


def block_section(shown: PageBlock, source: Source) -> Section:
    """Return the section of a block."""
    block = shown.block
    blocks = [_what(shown), *_figures(shown, source), *_glance(shown, source)]
    if shown.compared is not None:
        blocks.append(pairs_section(shown.compared, block.arms))
    alone = [table for table in shown.tables if not table.group]
    details = [
        *(_metric(block, table, source, is_open=not i) for i, table in enumerate(alone)),
        *_groups(shown, source),
    ]
    blocks.append(Section("Metric by metric", details))
    blocks += [*_published(shown, source), _runs(block)]
    return Section(block.title, blocks, name=block.name)


def _what(shown: PageBlock) -> Paragraph:
    block, runs = shown.block, len(shown.block.runs)
    text: list[Inline] = [
        f"{runs} run{'' if runs == 1 else 's'} of {block.dataset}, ",
        Code(block.split),
        f", seed {block.first.config['seed']}, {shown.options('learner')}, protected: "
        f"{block.protect}",
    ]
    if shown.note:
        text += [" ", Mark(shown.note, "quick")]
    return Paragraph(tuple(text))


def _glance(shown: PageBlock, source: Source) -> Iterator[Block]:
    """Yield the metrics that most readers look at first."""
    whole = [table for table in shown.tables if table.is_whole]
    ranked = {ranking.metric: ranking for ranking in whole if ranking.metric in _GLANCE}
    tables = [ranked[name] for name in _GLANCE if name in ranked and ranked[name].is_ranked]
    if not tables:
        return
    columns = [Column("method"), *(Column(metric_label(t.metric), "spread") for t in tables)]
    rows = [
        [label, *(None if row is None else _standing_cell(row) for row in cells)]
        for label, cells in side_by_side(tables).items()
    ]
    caption = (
        f"mean (sd over repeats); bold: as good as the best with probability {CERTAIN}, by the "
        "overview's rules; *: not told apart from it"
    )
    table = Table(columns, rows, caption=caption, sortable=True)
    yield Section("At a glance", [table, _of_block(shown.block, source)])


def _standing_cell(row: Mapping[str, Any]) -> TableCell:
    after = "*" if row["standing"] == OPEN else ""
    values = (row["mean"], row["sd"])
    return TableCell(values, after=after, strong=row["standing"] == EQUIVALENT)


def _of_block(block: RunBlock, source: Source) -> Details:
    return source_details(source(list(block.runs.values())))


def metric_table_of(table: RankedRuns, *, on_page: bool = True) -> Table:
    """Return a metric's rows as a table; of a page, with bars and statuses."""
    columns = [Column("method"), Column("mean", "number", decimals=4)]
    columns += [Column("sd", "number", decimals=4)]
    columns += [Column("95 % interval", "interval", decimals=4), Column("", "bar")]
    columns += [Column("n", "count")]
    names = ["label", "mean", "sd", "interval", "bar", "n"]
    if table.is_ranked:
        columns += [Column("P(best)", "probability"), Column("P(near)", "probability")]
        columns += [Column("standing")]
        names += ["best", "near", "standing"]
    if on_page:
        columns += [Column("status")]
        names += ["status"]
    rows = [[row[name] for name in names] for row in _with_bars(table.rows)]
    return Table(columns, rows, sortable=True)


def _with_bars(rows: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield rows with the interval, or one sd either way, on the scale of the table."""
    ends = [_bar_ends(row) for row in rows]
    finite = [end for triple in ends for end in triple if isfinite(end)]
    start = min(finite, default=0.0)
    width = max(finite, default=0.0) - start
    for row, triple in zip(rows, ends, strict=True):
        bar = None
        if width > 0:
            places = np.nan_to_num(np.round(100 * (np.array(triple) - start) / width, 1))
            bar = Bar(float(places[0]), float(places[1]), float(places[2]), kind="dot")
        status = "" if row["status"] == "ok" else row["status"]
        standing = TableCell(row["standing"], mark=row["standing"].replace(" ", "-"))
        ends_of = (row["lower"], row["upper"])
        yield {**row, "bar": bar, "interval": ends_of, "status": status, "standing": standing}


def _bar_ends(row: Mapping[str, Any]) -> tuple[float, float, float]:
    """Return the interval of a row around its mean, or one sd either way where it has none."""
    mean = row["mean"]
    sd = 0.0 if isnan(row["sd"]) else row["sd"]
    lower = mean - sd if isnan(row["lower"]) else row["lower"]
    return lower, mean, mean + sd if isnan(row["upper"]) else row["upper"]


def _metric(block: RunBlock, table: RankedRuns, source: Source, *, is_open: bool) -> Details:
    parts = [metric_label(table.metric)]
    parts += [f"by {table.attribute}"] if table.attribute else []
    summary = " ".join(parts) + (f", {table.setting}" if table.setting else "")
    remark = table.direction
    if table.is_ranked:
        best = "; ".join(table.of_standing(EQUIVALENT)) or "none for certain"
        remark += f"; as good as the best: {best}"
    note: list[Inline] = [f"rope {number(table.rope, 4)}; "] if table.is_ranked else []
    note.append("files: ")
    for kind in _FILES:
        note += [Link(kind, f"{quote(block.name)}/{quote(table.key)}.{kind}"), ", "]
    return Details(
        summary,
        [
            metric_table_of(table),
            Paragraph(tuple(note[:-1]), "note"),
            source_details(rows_source(block, table.rows, source)),
        ],
        remark=remark,
        name=f"{block.name}-{table.key}",
        style="metric",
        is_open=is_open,
    )


def _groups(shown: PageBlock, source: Source) -> Iterator[Details]:
    """Yield a metric of every group of people side by side."""
    of_groups = [table for table in shown.tables if table.group]
    for metric in dict.fromkeys(table.metric for table in of_groups):
        mine = [table for table in of_groups if table.metric == metric]
        columns = [Column("method")]
        columns += [Column(table.group, "spread", decimals=4) for table in mine]
        rows = [
            [label, *(None if row is None else _group_cell(row) for row in cells)]
            for label, cells in side_by_side(mine).items()
        ]
        caption = "mean (sd over repeats), and the 95 % interval of the mean"
        table = Table(columns, rows, caption=caption, sortable=True)
        found = rows_source(shown.block, mine[0].rows, source)
        yield Details(
            f"{metric_label(metric)} of each group",
            [table, source_details(found)],
            remark=mine[0].attribute,
            style="metric",
        )


def _group_cell(row: Mapping[str, Any]) -> TableCell:
    status = "" if row["status"] == "ok" else f"; {row['status']}"
    ends = interval(row["lower"], row["upper"], 4)
    return TableCell((row["mean"], row["sd"]), note=f"{ends}{status}".removeprefix("; "))


def side_by_side(tables: Sequence[RankedRuns]) -> dict[str, list[Mapping[str, Any] | None]]:
    """Return the tables' rows by label, each table a column."""
    columns = [{row["label"]: row for row in table.rows} for table in tables]
    labels = dict.fromkeys(label for column in columns for label in column)
    return {label: [column.get(label) for column in columns] for label in labels}


def _published(shown: PageBlock, source: Source) -> Iterator[Section]:
    answered = shown.answered
    if not answered:
        return
    columns = [Column("table"), Column("metric"), Column("published method")]
    columns += [Column("our method"), Column("published", "general"), Column("sd", "general")]
    columns += [Column("ours", "number", decimals=4), Column("sd", "number", decimals=4)]
    columns += [Column("difference", "number", decimals=4), Column("verdict")]
    left = len(shown.published) - len(answered)
    note = f"{left} published numbers are left out: no run answers them." if left > 0 else ""
    cells = [_published_row(row) for row in answered]
    table = Table(columns, cells, caption=note, sortable=True)
    answers = {
        run.id: run
        for paper in shown.papers
        for run in paper.runs
        if run.choices["dataset"] == shown.block.dataset
    }
    details = source_details(source(list(answers.values())))
    yield Section("Compared with the papers", [table, details], name=f"{shown.block.name}-beside")


def _published_row(row: Mapping[str, Any]) -> list[Any]:
    return [
        TableCell(f"{row['paper']} {row['table']}", note=row["note"]),
        metric_label(row["metric"]),
        row["published method"],
        row["our method"],
        row["published"],
        row["published sd"],
        row["ours"],
        row["our sd"],
        row["difference"],
        TableCell(
            row["verdict"],
            mark=row["verdict"].replace(" ", "-"),
            note="" if row["reproduces"] else "a correction",
        ),
    ]


def _figures(shown: PageBlock, source: Source) -> Iterator[Section]:
    if shown.figures:
        yield Section("Figures", [*shown.figures, _of_block(shown.block, source)])


def _runs(block: RunBlock) -> Section:
    runs = list(block.runs.values())
    columns = [Column(name) for name in ("run", "method", "commit", "processor", "files")]
    rows = [_run_row(run, label) for run, label in zip(runs, named(runs), strict=True)]
    return Section("Runs", [Table(columns, rows, sortable=True)])


def _run_row(run: Run, label: str) -> list[Any]:
    known, folder = run.environment, f"../runs/{run.id}"
    commit = known.get("git_commit", "")[:12] + ("+" if known.get("git_dirty") else "")
    files: Text = (
        Link("configuration", f"{folder}/config.yaml"),
        ", ",
        Link("all metrics", f"{folder}/summary.csv"),
        ", ",
        Link("figures", f"{folder}/figures/"),
    )
    id_ = TableCell((Code(run.id),), name=f"run-{run.id}")
    return [id_, label, (Code(commit),), known.get("cpu", ""), files]


def records(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows as name -> value; pandas' own way takes ten times as long."""
    names = [str(name) for name in rows]
    columns = [rows.iloc[:, place].tolist() for place in range(len(names))]
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]
