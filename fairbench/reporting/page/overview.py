"""The first section of the page: what was run, how the papers compare, how to read the tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fairbench.reporting.document.model import (
    Block,
    Code,
    Column,
    Details,
    Inline,
    Items,
    Link,
    Mark,
    Paragraph,
    Section,
    Table,
    TableCell,
)
from fairbench.reporting.page.metric_table import CERTAIN, EQUIVALENT, OPEN, WORSE
from fairbench.reporting.page.sections import PageBlock, Source, source_details
from fairbench.reporting.papers.mapping import VERDICTS
from fairbench.reporting.papers.matching import PaperTable


def overview_section(
    pages: Sequence[PageBlock], papers: Sequence[PaperTable], source: Source
) -> Section:
    """Return the overview of all blocks."""
    blocks: list[Block] = [Section("What was run", [_run(pages)])]
    if papers:
        blocks.append(Section("Compared with the papers", list(_papers(pages, papers, source))))
    blocks.append(Section("How to read the tables", [_reading()]))
    return Section("Overview", blocks, name="overview")


def _run(pages: Sequence[PageBlock]) -> Table:
    columns = [Column("data set"), Column("runs", "count"), Column("repeats", "count")]
    columns += [Column(name) for name in ("learners", "interventions", "methods")]
    rows = [
        [
            TableCell(page.block.title, link=f"#{page.block.name}"),
            len(page.block.runs),
            page.block.repeats,
            *(page.options(group) for group in ("learner", "intervention", "method")),
        ]
        for page in pages
    ]
    return Table(columns, rows, sortable=True)


def _papers(
    pages: Sequence[PageBlock], papers: Sequence[PaperTable], source: Source
) -> Iterator[Block]:
    yield Paragraph(
        "A number agrees if the means differ by at most two standard errors and half a printed "
        "digit; it is within sd if they differ by at most the paper's own sd. Only reproductions "
        "are counted; corrections of the published code stand in the sections of the data sets."
    )
    columns = [Column("table"), *(Column(verdict, "count") for verdict in VERDICTS)]
    columns += [Column("runs", "count"), Column("experiments")]
    rows = [
        [
            _paper_cell(table),
            *table.counts.values(),
            len(table.runs),
            (Code(" ".join(table.experiments)),),
        ]
        for table in papers
    ]
    yield Table(columns, rows, sortable=True)
    yield from (_answered(table, pages, source) for table in papers if table.runs)


def _paper_cell(table: PaperTable) -> TableCell:
    note = (" ", Mark(table.note, "quick")) if table.note else ""
    return TableCell(f"{table.paper} {table.table}", after=note)


def _answered(table: PaperTable, pages: Sequence[PageBlock], source: Source) -> Details:
    names = {run.choices["dataset"] for run in table.runs}
    mine = [page.block.name for page in pages if page.block.dataset in names and page.published]
    text: list[Inline] = ["runs on "]
    for name in mine:
        text += [Link(name, f"#{name}-beside"), ", "]
    commands = "; ".join(f"python run.py -m experiment={name}" for name in table.experiments)
    text[-1] = "; "
    text.append(Code(commands))
    return Details(
        f"{table.paper}, table {table.table}",
        [Paragraph(tuple(text), "note"), source_details(source(list(table.runs)))],
        remark=", ".join(f"{count} {verdict}" for verdict, count in table.counts.items()),
        name=f"{table.paper}-{table.table}",
        style="metric",
    )


def _reading() -> Items:
    good, worse, between = (
        Mark(standing, standing.replace(" ", "-")) for standing in (EQUIVALENT, WORSE, OPEN)
    )
    return Items(
        [
            "mean and sd are taken over the repeats. The 95 % interval is that of the mean, for "
            "fits to new training rows where hold-outs were repeated (the corrected resampled t "
            "interval of Nadeau and Bengio 2003, as repeats share rows) and for the fits of these "
            "folds where rows were folded (Bayle et al. 2020). That of a gap is of the gap between "
            "the groups' mean rates, since chance widens the gap of every repeat. A bar shows it, "
            "on one scale for the whole table.",
            "P(best) is the probability that a run's expected value is the best of the table; "
            "P(near), that it is within the rope (a difference that does not matter) of the best. "
            "Both come from the Bayesian correlated t-test (Benavoli et al. 2017, JMLR 18) for all "
            "methods at once: runs are paired by their splits, and the variance is Nadeau and "
            "Bengio's (2003) for splits that share training rows.",
            (
                good,
                f" where P(near) is at least {CERTAIN}; ",
                worse,
                f" where it is at most {1 - CERTAIN:.2g}; ",
                between,
                " where it lies between. Below five repeats little is known of how methods vary "
                "together: take the probabilities as a hint.",
            ),
        ]
    )
