"""Writing the report of a results folder: one page without external requests, and its tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from rich.console import Console
from rich.progress import track

from fairbench.core.errors import UserError, unknown_name
from fairbench.core.files import write_text
from fairbench.core.version import VERSION
from fairbench.experiments.presets import Presets
from fairbench.experiments.provenance import Provenance, provenance
from fairbench.reporting.page import text
from fairbench.reporting.page.better import SIGNS, Compare, better
from fairbench.reporting.page.blocks import Block, blocks
from fairbench.reporting.page.drawn import drawn_of
from fairbench.reporting.page.files import write_table
from fairbench.reporting.page.metric_table import CERTAIN, metric_tables
from fairbench.reporting.page.page import Page, make_page
from fairbench.reporting.papers.mapping import Paper, papers_in
from fairbench.reporting.papers.matching import PaperTable, paper_tables
from fairbench.reporting.papers.verdicts import VERDICTS
from fairbench.results.collection import Collection, read_collection

_FILTERS = {
    "number": text.number,
    "exact": text.exact,
    "probability": text.probability,
    "interval": text.interval,
    "words": text.words,
    "sha": text.sha,
}


@dataclass(frozen=True)
class Places:
    """Where a report reads and writes."""

    results: Path
    conf: Path
    published: Path


@dataclass(frozen=True, eq=False)
class _Answered:
    """A published table, its provenance, and the pages on which its numbers are."""

    of: PaperTable
    source: Provenance
    pages: list[str]

    def __getattr__(self, name: str) -> object:
        return getattr(self.of, name)


@dataclass(frozen=True, eq=False)
class Report:
    """A written report: where it is, of how many runs, and the papers' tables in it.

    `left_out` says which runs could not be compared with others, and why.
    """

    path: Path
    runs: int
    papers: Sequence[PaperTable]
    left_out: Sequence[str]


def write_report(
    places: Places, *, experiment: str = "", paper: str = "", compare: Compare | None = None
) -> Report:
    """Write ``report/index.html`` of all finished runs, or of an experiment's.

    Parameters
    ----------
    paper : the one whose numbers are shown; empty for all that have a mapping.
    compare : what compares runs by their predictions; without it no runs are.

    Raises
    ------
    UserError : an unknown experiment, or nothing finished.
    """
    presets = _presets(places.conf)
    collection = _chosen(read_collection(places.results), experiment, presets)
    if not collection.runs:
        what = f"of experiment={experiment} " if experiment else ""
        raise UserError(f"{places.results / 'runs'} has no finished run {what}to report on")
    folder = places.results / "report" / experiment.replace("/", "-")
    papers = list(_of_papers(collection, places, presets, paper))
    pages, with_papers = [], set()
    left_out: list[str] = []
    for block in _tracked(blocks(collection)):
        shown = [] if block.dataset in with_papers else papers
        with_papers.add(block.dataset)
        tables, drawn = list(metric_tables(block)), list(drawn_of(block))
        judged, unread = better(block, compare) if compare else (None, [])
        left_out += unread
        pages.append(make_page(block, tables, shown, drawn, presets, judged))
    for page in pages:
        for table in page.tables:
            write_table(table.table, table.source, folder / page.block.name)
    path = folder / "index.html"
    write_text(path, render(pages, papers, presets, experiment))
    return Report(path, len(collection.runs), papers, left_out)


def _tracked(found: Sequence[Block]) -> Iterable[Block]:
    """Show on a terminal how many of the blocks are done."""
    console = Console(stderr=True)
    return track(
        found, "data sets and splits", console=console, transient=True,
        disable=not console.is_terminal,
    )  # fmt: skip


def _of_papers(
    collection: Collection, places: Places, presets: Presets, paper: str
) -> Iterator[PaperTable]:
    """Yield the tables that runs answer, of every paper or of one."""
    for name in [paper] if paper else papers_in(places.published):
        read = Paper.read(name, places.published)
        tables = [table for table in read.tables if read.experiments(table)]
        yield from paper_tables(read, tables, collection, presets, places.results)


@lru_cache(maxsize=1)
def _presets(conf: Path) -> Presets:
    """Return what a process has composed of a folder of configurations so far."""
    return Presets(conf)


def _chosen(collection: Collection, experiment: str, presets: Presets) -> Collection:
    if not experiment:
        return collection
    known = presets.experiments()
    if experiment not in known:
        raise unknown_name("experiment", experiment, known)
    return collection.only(set(presets.runs_of(experiment, collection.runs)))


def render(
    pages: Sequence[Page], papers: Sequence[PaperTable], presets: Presets, experiment: str
) -> str:
    """Return the page as HTML; every text of a run or a data set is escaped."""
    environment = Environment(
        loader=ChoiceLoader(
            [
                PackageLoader("fairbench.reporting.page"),
                PackageLoader("fairbench.reporting.document"),
            ]
        ),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= _FILTERS
    source = environment.loader.get_source  # type: ignore[union-attr]
    notes = {page.note for page in pages}
    return environment.get_template("page.html.jinja").render(
        title=experiment or "All finished runs",
        runs=sum(len(page.block.runs) for page in pages),
        command=f"fairbench report{f' experiment={experiment}' if experiment else ''}",
        version=VERSION,
        note=notes.pop() if len(notes) == 1 else "",  # otherwise each page has its own
        pages=pages,
        papers=[_answered(table, pages, presets) for table in papers],
        verdicts=VERDICTS,
        certain=CERTAIN,
        signs=SIGNS,
        css=Markup(source(environment, "document.css")[0]),
        js=Markup(source(environment, "document.js")[0]),
    )


def _answered(table: PaperTable, pages: Sequence[Page], presets: Presets) -> _Answered:
    names = {run.choices["dataset"] for run in table.runs}
    mine = [page.block.name for page in pages if page.beside and page.block.dataset in names]
    return _Answered(table, provenance(table.runs, presets), mine)
