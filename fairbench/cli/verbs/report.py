"""Write one page of every finished run, with the papers' numbers beside it."""

from __future__ import annotations

from dataclasses import dataclass

from fairbench.cli.command import Command, Results, components_folder
from fairbench.cli.output import print_line
from fairbench.core.options import option

SECTION = "Compare finished runs"


@dataclass(frozen=True)
class ReportOptions(Results):
    """Which runs, and which papers, are on the page."""

    experiment: str = option("", "Only the runs of this experiment, of conf/experiment.")
    paper: str = option("", "Only the numbers of this paper; those of all papers by default.")
    formats: tuple[str, ...] = option(
        ("html",),
        "What the page is written as: html, json, latex, markdown, word.",
        shown="[FORM,...]",
    )


def report(options: ReportOptions) -> None:
    """Write the page, and print how the papers' numbers compare.

    Raises
    ------
    UserError : an unknown name, or nothing finished.
    """
    import pandas as pd

    from fairbench.reporting.page.write import Places, write_report
    from fairbench.reporting.papers.mapping import scoreboard

    root = components_folder()
    places = Places(options.results, root / "conf", root / "papers")

    written = write_report(
        places, experiment=options.experiment, paper=options.paper, forms=options.formats
    )
    for reason in dict.fromkeys(written.left_out):
        print_line(f"not compared with others: {reason}")
    for table in written.papers:
        if table.runs:
            note = f" ({table.note})" if table.note else ""
            print_line(f"{table.paper}, table {table.table}: {scoreboard(table.rows)}{note}")
    for paper in dict.fromkeys(table.paper for table in written.papers if table.runs):
        rows = [table.rows for table in written.papers if table.paper == paper and table.runs]
        print_line(f"{paper}: {scoreboard(pd.concat(rows))}")
    print_line(f"{written.runs} runs on {written.path}")


COMMAND = Command(
    ReportOptions,
    report,
    examples=("fairbench report", "fairbench report experiment=fairlyuncertain/table8_13"),
)
