"""Set what a paper printed beside what was run here: ours, theirs, the difference, a verdict.

A number agrees if the two means differ by at most two standard errors and half a printed digit; it
is within sd if they differ by at most the standard deviation that the paper prints. Without table=
a summary counts the verdicts of every table.
"""

from __future__ import annotations

from dataclasses import dataclass

from fairbench.cli.command import Command, Results, checkout
from fairbench.core.errors import UserError
from fairbench.core.options import option


@dataclass(frozen=True)
class PaperOptions(Results):
    """Which of a paper's tables or figures, and whether to run what is missing."""

    name: str = option("", "The paper: a folder of papers/.", argument="NAME")
    table: str = option("", "One table by its number, or all of them one by one.")
    run: bool = option(False, "Run what is missing first: sweeps and extra computations.")
    quick: bool = option(False, "With run=true: few repeats on small data sets.")
    figures: bool = option(False, "Draw the figures of what was run instead of printing tables.")


def paper(options: PaperOptions) -> None:
    """Run what is missing of a paper, or print its tables, or draw its figures.

    Raises
    ------
    UserError : no paper, or one or a table that is not there.
    """
    from fairbench.reporting.papers.mapping import Paper, papers_in
    from fairbench.reporting.papers.printing import draw_figure, print_paper, run_paper

    root = checkout("paper")
    if not options.name:
        known = ", ".join(papers_in(root / "papers"))
        raise UserError(f"no paper is named: fairbench paper NAME, of {known}")
    mine, table = Paper.read(options.name, root / "papers"), options.table
    tables = [] if table in ("", "all") else [table]
    for name in tables:
        mine.table(name)
    if options.run:
        run_paper(mine, root, options.results, tables, quick=options.quick)
    if options.figures:
        for figure in mine.figures:
            print(draw_figure(mine, figure, root / "conf", options.results))
    else:
        print_paper(mine, root / "conf", options.results, table)


COMMAND = Command(
    PaperOptions,
    paper,
    examples=(
        "fairbench paper fairlyuncertain",
        "fairbench paper fairlyuncertain table=1 run=true quick=true",
    ),
)
