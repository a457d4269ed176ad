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
from fairbench.evaluation.columns import DEBIASED
from fairbench.evaluation.headlines import DEBIASED_MEANS
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
from fairbench.reporting.page.blocks import RunBlock, name_runs
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
_FEW = 5  # runs with fewer repeats are marked as a quick look
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
        """A warning if there are few repeats; else empty."""
        repeats = self.block.repeats
        return f"quick: {repeats} repeat{'s' if repeats > 1 else ''}" if repeats < _FEW else ""

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
    """Return a function that finds the origin of numbers, once for each set of runs."""
    source_of_runs: dict[tuple[str, ...], Provenance] = {}

    def source(runs: Sequence[Run]) -> Provenance:
        key = tuple(run.id for run in runs)
        if key not in source_of_runs:
            source_of_runs[key] = provenance(runs, presets)
        return source_of_runs[key]

    return source


def rows_source(block: RunBlock, rows: Sequence[Mapping[str, Any]], source: Source) -> Provenance:
    """Return the origin of the rows of a metric's table."""
    ids = {row["run"] for row in rows}
    return source([run for id_, run in block.runs.items() if id_ in ids])


def source_details(origin: Provenance) -> Details:
    """Return the origin of a table: runs, data, versions, and the commands for them."""
    several = "" if len(origin.runs) == 1 else "s"
    data = ", ".join(value[:12] for value in origin.data.values()) or "simulated"
    commits = ", ".join(origin.commits)
    runs: list[Inline] = ["runs (hashes of their configurations): "]
    for id_ in origin.runs:
        runs += [Link(id_, f"#run-{id_}", code=True), " "]
    files: list[Inline] = ["data, sha256: "]
    for file, sha in origin.data.items():
        files += [f"{file} ", Code(sha), "; "]
    if not origin.data:
        files.append("simulated from the seed")
    versions = ", ".join(f"{name} {version}" for name, version in origin.versions.items())
    changed = " (+: with files changed since)" if "+" in commits else ""
    return Details(
        f"{len(origin.runs)} run{several}; data {data}; commit {commits}",
        [
            Paragraph(tuple(runs)),
            Paragraph(tuple(files)),
            Paragraph(f"versions: {versions}; commit {commits}{changed}"),
            Paragraph("To compute it again:"),
            Commands(origin.commands),
        ],
        style="from",
    )


def block_section(page: PageBlock, source: Source) -> Section:
    """Return the section of a block."""
    block = page.block
    blocks = [_block_paragraph(page), *_figures(page, source), *_at_a_glance(page, source)]
    if page.compared is not None:
        blocks.append(pairs_section(page.compared, block.arms))
    alone = [table for table in page.tables if not table.group]
    details = [
        *(_metric(block, table, source, is_open=not i) for i, table in enumerate(alone)),
        *_groups(page, source),
    ]
    blocks.append(Section("Metric by metric", details))
    blocks += [*_published_tables(page, source), _runs(block)]
    return Section(block.title, blocks, name=block.name)


def _block_paragraph(page: PageBlock) -> Paragraph:
    """Return the paragraph on the contents of a block: runs, split, seed, protected attribute."""
    block = page.block
    runs = len(page.block.runs)
    text: list[Inline] = [
        f"{runs} run{'' if runs == 1 else 's'} of {block.dataset}, ",
        Code(block.split),
        f", seed {block.first.config['seed']}, {page.options('learner')}, protected: "
        f"{block.protect}",
    ]
    if page.note:
        text += [" ", Mark(page.note, "quick")]
    return Paragraph(tuple(text))


def _at_a_glance(page: PageBlock, source: Source) -> Iterator[Block]:
    """Yield the metrics that most readers look at first."""
    whole = [table for table in page.tables if table.is_whole]
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
    yield Section("At a glance", [table, _block_source(page.block, source)])


def _standing_cell(row: Mapping[str, Any]) -> TableCell:
    after = "*" if row["standing"] == OPEN else ""
    values = (row["mean"], row["sd"])
    return TableCell(values, after=after, strong=row["standing"] == EQUIVALENT)


def _block_source(block: RunBlock, source: Source) -> Details:
    """Return the origin of the numbers of all runs of a block."""
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
    caption = ""
    if any(isfinite(row[DEBIASED]) for row in table.rows):
        columns.insert(2, Column(DEBIASED, "number", decimals=4))
        names.insert(2, DEBIASED)
        caption = DEBIASED_MEANS
    rows = [[row[name] for name in names] for row in _with_bars(table.rows)]
    return Table(columns, rows, caption=caption, sortable=True)


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
    """Return the interval of a row around its mean; one sd either way if it has no interval."""
    mean = row["mean"]
    sd = 0.0 if isnan(row["sd"]) else row["sd"]
    lower = mean - sd if isnan(row["lower"]) else row["lower"]
    return lower, mean, mean + sd if isnan(row["upper"]) else row["upper"]


def _metric(block: RunBlock, table: RankedRuns, source: Source, *, is_open: bool) -> Details:
    """Return the folded table of a metric, with its files and the origin of its numbers."""
    parts = [metric_label(table.metric)]
    parts += [f"by {table.attribute}"] if table.attribute else []
    summary = " ".join(parts) + (f", {table.setting}" if table.setting else "")
    remark = table.direction
    if table.is_ranked:
        best = "; ".join(table.labels_with_standing(EQUIVALENT)) or "none for certain"
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


def _groups(page: PageBlock, source: Source) -> Iterator[Details]:
    """Yield a metric of every group of people side by side."""
    group_tables = [table for table in page.tables if table.group]
    for metric in dict.fromkeys(table.metric for table in group_tables):
        tables = [table for table in group_tables if table.metric == metric]
        columns = [Column("method")]
        columns += [Column(table.group, "spread", decimals=4) for table in tables]
        rows = [
            [label, *(None if row is None else _group_cell(row) for row in cells)]
            for label, cells in side_by_side(tables).items()
        ]
        caption = "mean (sd over repeats), and the 95 % interval of the mean"
        table = Table(columns, rows, caption=caption, sortable=True)
        origin = rows_source(page.block, tables[0].rows, source)
        yield Details(
            f"{metric_label(metric)} of each group",
            [table, source_details(origin)],
            remark=tables[0].attribute,
            style="metric",
        )


def _group_cell(row: Mapping[str, Any]) -> TableCell:
    """Return the cell of a group: mean and sd, with the interval below."""
    status = "" if row["status"] == "ok" else f"; {row['status']}"
    less = f"; {DEBIASED} {number(row[DEBIASED], 4)}" if isfinite(row[DEBIASED]) else ""
    ends = interval(row["lower"], row["upper"], 4)
    return TableCell((row["mean"], row["sd"]), note=f"{ends}{less}{status}".removeprefix("; "))


def side_by_side(tables: Sequence[RankedRuns]) -> dict[str, list[Mapping[str, Any] | None]]:
    """Return the tables' rows by label, each table a column."""
    columns = [{row["label"]: row for row in table.rows} for table in tables]
    labels = dict.fromkeys(label for column in columns for label in column)
    return {label: [column.get(label) for column in columns] for label in labels}


def _published_tables(page: PageBlock, source: Source) -> Iterator[Section]:
    """Yield the table of published numbers next to ours, if a paper has any."""
    answered = page.answered
    if not answered:
        return
    columns = [Column("table"), Column("metric"), Column("published method")]
    columns += [Column("our method"), Column("published", "general"), Column("sd", "general")]
    columns += [Column("ours", "number", decimals=4), Column("sd", "number", decimals=4)]
    columns += [Column("difference", "number", decimals=4), Column("verdict")]
    unanswered = len(page.published) - len(answered)
    note = (
        f"{unanswered} published numbers are left out: no run answers them."
        if unanswered > 0
        else ""
    )
    cells = [_published_row(row) for row in answered]
    table = Table(columns, cells, caption=note, sortable=True)
    answers = {
        run.id: run
        for paper in page.papers
        for run in paper.runs
        if run.choices["dataset"] == page.block.dataset
    }
    details = source_details(source(list(answers.values())))
    yield Section("Compared with the papers", [table, details], name=f"{page.block.name}-beside")


def _published_row(row: Mapping[str, Any]) -> list[Any]:
    """Return the cells of a published number and of ours."""
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


def _figures(page: PageBlock, source: Source) -> Iterator[Section]:
    """Yield the section of figures, if there are any."""
    if page.figures:
        yield Section("Figures", [*page.figures, _block_source(page.block, source)])


def _runs(block: RunBlock) -> Section:
    """Return the section that lists the runs of a block."""
    runs = list(block.runs.values())
    columns = [Column(name) for name in ("run", "method", "commit", "processor", "files")]
    rows = [_run_row(run, label) for run, label in zip(runs, name_runs(runs), strict=True)]
    return Section("Runs", [Table(columns, rows, sortable=True)])


def _run_row(run: Run, label: str) -> list[Any]:
    """Return the cells of a run: name, commit, processor and files."""
    environment = run.environment
    folder = f"../runs/{run.id}"
    commit = environment.get("git_commit", "")[:12] + ("+" if environment.get("git_dirty") else "")
    files: Text = (
        Link("configuration", f"{folder}/config.yaml"),
        ", ",
        Link("all metrics", f"{folder}/summary.csv"),
        ", ",
        Link("figures", f"{folder}/figures/"),
    )
    id_ = TableCell((Code(run.id),), name=f"run-{run.id}")
    return [id_, label, (Code(commit),), environment.get("cpu", ""), files]


def records(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows as name -> value; pandas' own way takes ten times as long."""
    names = [str(name) for name in rows]
    columns = [rows.iloc[:, column].tolist() for column in range(len(names))]
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]
