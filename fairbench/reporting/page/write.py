"""Writing the report of a results folder: one page without external requests, and its tables."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

import pandas as pd
from rich.console import Console
from rich.progress import track

from fairbench.core import VERSION
from fairbench.core.errors import UserError
from fairbench.core.escaping import latex_comment, markdown
from fairbench.core.files import write_text
from fairbench.core.formats import number, spreadsheet_safe
from fairbench.experiments.presets import Presets, Provenance
from fairbench.metrics.registry import label as metric_label
from fairbench.reporting.document.model import (
    Code,
    Document,
    ExecutiveSummary,
    Inline,
    Mark,
    Paragraph,
)
from fairbench.reporting.document.plain_text import latex_table, markdown_table
from fairbench.reporting.document.writing import check_forms, check_page, write_document
from fairbench.reporting.page.blocks import MeasuredBlock, RunBlock, blocks, read_blocks
from fairbench.reporting.page.figures import figures_of
from fairbench.reporting.page.metric_table import RankedRuns, metric_tables
from fairbench.reporting.page.overview import overview_section, runs_summary
from fairbench.reporting.page.pairs import compare_block
from fairbench.reporting.page.sections import (
    PageBlock,
    Source,
    block_section,
    metric_table_of,
    rows_source,
    sources,
)
from fairbench.reporting.papers.mapping import Paper, papers_in
from fairbench.reporting.papers.matching import PaperTable, paper_tables
from fairbench.results.catalogue import Catalogue
from fairbench.results.packs import written_beside

_CSV = [
    "run", "label", "mean", "sd", "lower", "upper", "n", "repeats", "status", "best", "near",
    "standing",
]  # fmt: skip


@dataclass(frozen=True)
class Places:
    """Where a report reads and writes."""

    results: Path
    conf: Path
    published: Path


@dataclass(frozen=True, eq=False)
class Report:
    """A written report: its path, the number of its runs, and the papers' tables in it.

    `left_out` says which runs could not be compared with others, and why.
    """

    path: Path
    runs: int
    papers: Sequence[PaperTable]
    left_out: Sequence[str]


def write_report(
    places: Places,
    *,
    experiment: str = "",
    paper: str = "",
    pairs: bool = True,
    forms: Sequence[str] = ("html",),
) -> Report:
    """Write ``report/index.html`` of all finished runs, or of an experiment's.

    Parameters
    ----------
    paper : the one whose numbers are shown; empty for all that have a mapping.
    pairs : whether runs are compared by their predictions.
    forms : the forms that the page is written in; see :data:`FORMS`.

    Raises
    ------
    UserError : an unknown experiment, nothing finished, or somebody else's page in its place.
    """
    check_forms(forms)
    presets = _presets(places.conf)
    collection = _runs_of_experiment(Catalogue(places.results), experiment, presets)
    if not collection.runs:
        condition = f"of experiment={experiment} " if experiment else ""
        raise UserError(f"{places.results} has no finished run {condition}to report on")
    folder = written_beside(places.results) / experiment.replace("/", "-")
    check_page(folder / "index.html")
    papers = list(_answered_tables(collection, places, presets, paper))
    pages = []
    with_papers = set()
    left_out: list[str] = []
    source = sources(presets)
    run_blocks = blocks(collection)
    for block, measured_block, tables in _show_progress(_with_tables(run_blocks), len(run_blocks)):
        answered = [] if block.dataset in with_papers else papers
        with_papers.add(block.dataset)
        compared, unread = compare_block(measured_block) if pairs else (None, [])
        left_out += unread
        figures = list(figures_of(measured_block))
        pages.append(PageBlock(block, tables, figures, answered, compared))
        _write_tables(pages[-1], source, folder / block.name)
    summary = runs_summary(pages, papers, left_out)
    document = page_document(pages, papers, source, experiment, summary)
    names = write_document(document, folder, "index", forms)
    return Report(folder / names[0], len(collection.runs), papers, left_out)


def _answered_tables(
    collection: Catalogue, places: Places, presets: Presets, paper: str
) -> Iterator[PaperTable]:
    """Yield the tables that runs answer, from every paper or from one."""
    for name in [paper] if paper else papers_in(places.published):
        read = Paper.read(name, places.published)
        tables = [table for table in read.tables if read.experiments(table)]
        yield from paper_tables(read, tables, collection, presets, places.results)


def page_document(
    pages: Sequence[PageBlock],
    papers: Sequence[PaperTable],
    source: Source,
    experiment: str,
    summary: ExecutiveSummary,
) -> Document:
    """Return the page: a summary, an overview, then a section for each block."""
    notes = {page.note for page in pages}
    command = f"fairbench report{f' experiment={experiment}' if experiment else ''}"
    runs = sum(len(page.block.runs) for page in pages)
    text: list[Inline] = [f"{runs} finished runs. Written by ", Code(command)]
    text.append(f" with fairbench {VERSION}")
    if len(notes) == 1 and notes != {""}:  # otherwise each block has its own
        text += ["; ", Mark(notes.pop(), "quick")]
    sections = [overview_section(pages, papers, source)]
    sections += [block_section(page, source) for page in pages]
    title = experiment or "All finished runs"
    return Document(
        title, sections, lead=[Paragraph(tuple(text), "note")], tabs=True, summary=summary
    )


def _with_tables(
    run_blocks: Sequence[RunBlock],
) -> Iterator[tuple[RunBlock, MeasuredBlock, list[RankedRuns]]]:
    """Yield each block without and with its metrics, and its tables; metrics are not kept."""
    remaining = iter(run_blocks)
    for batch in read_blocks(run_blocks):
        for measured_block, tables in zip(batch, metric_tables(batch), strict=True):
            yield next(remaining), measured_block, tables


Block = TypeVar("Block")


def _show_progress(items: Iterable[Block], total: int) -> Iterable[Block]:
    """Show on a terminal how many of the blocks are done."""
    console = Console(stderr=True)
    return track(
        items, "data sets and splits", total, console=console, transient=True,
        disable=not console.is_terminal,
    )  # fmt: skip


@lru_cache(maxsize=1)
def _presets(conf: Path) -> Presets:
    """Return the presets of a folder of configurations; a process keeps them."""
    return Presets(conf)


def _runs_of_experiment(collection: Catalogue, experiment: str, presets: Presets) -> Catalogue:
    """Return the runs of an experiment; all without a name."""
    if not experiment:
        return collection
    return collection.only(presets.runs_of_all(experiment, collection.runs))


def _write_tables(page: PageBlock, source: Source, folder: Path) -> None:
    """Write ``<metric>.md``, ``.tex`` and ``.csv``, each with its sources in a comment."""
    tables = [table for table in page.tables if not table.group]
    for table, text in zip(tables, _csv_texts(tables), strict=True):
        notes = list(_notes(table, rows_source(page.block, table.rows, source)))
        printed_table = metric_table_of(table, on_page=False)
        comment = "".join(map(latex_comment, notes))
        texts = {
            "md": markdown_table(printed_table) + "\n" + "\n\n".join(map(markdown, notes)) + "\n",
            "tex": comment + latex_table(printed_table),
            "csv": text,
        }
        for kind, content in texts.items():
            # Derived files are written again by the same command: they need not outlive a power
            # cut.
            write_text(folder / f"{table.key}.{kind}", content, lasting=False)


def _csv_texts(tables: Sequence[RankedRuns]) -> Iterator[str]:
    """Yield each table as `csv_text` writes one; the texts of all are made safe at once."""
    safe = spreadsheet_safe(pd.DataFrame([row for t in tables for row in t.rows], columns=_CSV))
    rows = zip(*(safe[name].tolist() for name in _CSV), strict=True)
    for table in tables:
        cells = [["" if cell != cell else cell for cell in next(rows)] for _ in table.rows]
        returns = any("\r" in cell for row in cells for cell in row if isinstance(cell, str))
        buffer = io.StringIO()
        # A carriage return would end a row unless all texts are in quotation marks.
        written = csv.writer(
            buffer,
            lineterminator="\n",
            quoting=csv.QUOTE_NONNUMERIC if returns else csv.QUOTE_MINIMAL,
        )
        written.writerows([_CSV, *cells])
        yield buffer.getvalue()


def _notes(table: RankedRuns, source: Provenance) -> Iterator[str]:
    """Yield the sources of a table: rope, runs, data, versions, commit and commands."""
    yield f"{metric_label(table.metric)}; {table.direction or 'without a direction'}"
    if table.is_ranked:
        yield f"P(near): within {number(table.rope, 4)} of the best"
    yield f"runs: {', '.join(source.runs)}"
    data = [f"{name} {value}" for name, value in source.data.items()]
    yield f"data, sha256: {'; '.join(data) or 'simulated'}"
    yield f"versions: {', '.join(f'{name} {value}' for name, value in source.versions.items())}"
    yield f"commit: {', '.join(source.commits)}"
    yield from source.commands
