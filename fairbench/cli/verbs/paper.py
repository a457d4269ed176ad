"""Set a paper's published tables beside what was run here, or draw its figures."""

from __future__ import annotations

from dataclasses import dataclass

from fairbench.cli.command import Command
from fairbench.cli.results_folder import Results, checkout
from fairbench.core.errors import UserError
from fairbench.core.options import option


@dataclass(frozen=True)
class PaperOptions(Results):
    """Which of a paper's tables or figures, and of which runs."""

    name: str = option("", "The paper, such as fairlyuncertain.", argument="NAME")
    table: str = option("", "One table; all that the paper has here by default.")
    figures: bool = option(False, "Draw the figures instead of printing tables.")
    experiments: bool = option(False, "Only print what fairbench run -m needs for all of these.")
    quick: bool = option(False, "With experiments=true: what gives a quick look.")
    overrides: tuple[str, ...] = option(
        (), "What the sweeps were given besides, such as [split.repeats=3,dataset=german]."
    )


def paper(options: PaperOptions) -> None:
    """Print a paper's tables beside the published ones, or draw its figures, as far as run."""
    from fairbench.reporting.papers import report_figure, report_table
    from fairbench.reporting.published import Paper

    root = checkout("paper")
    if not options.name:
        raise UserError("no paper is named, such as fairlyuncertain")
    mine = Paper.read(options.name, root / "papers")
    place = (root / "conf", options.results, options.overrides)
    if options.experiments:
        from fairbench.reporting.sweeps import sweeps

        lines = [" ".join(words) for words in sweeps(mine, place[0], quick=options.quick)]
    elif options.figures:
        lines = [report_figure(mine, figure, *place) for figure in mine.figures]
    else:
        tables = [options.table] if options.table else list(mine.tables)
        lines = [report_table(mine, table, *place) for table in tables]
    print("\n".join(lines))


COMMAND = Command(
    PaperOptions,
    paper,
    examples=("fairbench paper fairlyuncertain table=1", "fairbench paper fairlyuncertain"),
)
