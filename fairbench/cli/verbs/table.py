"""Print the table of a finished run, as it was printed when the run ended."""

from __future__ import annotations

from dataclasses import dataclass

from fairbench.cli.command import Command
from fairbench.cli.results_folder import Results
from fairbench.core.errors import UserError
from fairbench.core.options import option


@dataclass(frozen=True)
class TableOptions(Results):
    """Which run's table is printed."""

    run: str = option(
        "", "The beginning of the run's id; the run that finished last by default.", argument="RUN"
    )


def table(options: TableOptions) -> None:
    """Print the table of a run."""
    import pandas as pd

    from fairbench.reporting.document.terminal import print_document
    from fairbench.reporting.runs import run_document
    from fairbench.results.listing import list_runs, one_run
    from fairbench.results.runs import reading

    runs = [] if options.run else list_runs(options.results)
    if not (runs or options.run):
        raise UserError(f"{options.results} has no finished run")
    folder = one_run(options.run or runs[-1].id, options.results)
    environment = folder.environment()
    with reading(folder.path):
        summary = pd.read_csv(folder.path / "summary.csv")
    summary = summary.fillna(dict.fromkeys(("variant", "attribute", "group", "reason"), ""))
    print_document(run_document(summary, environment["name"], environment["protect"]))
    print(f"files: {folder.path}")


COMMAND = Command(TableOptions, table, examples=("fairbench table", "fairbench table 3f2a"))
