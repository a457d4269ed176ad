"""Print the table of a finished run, as it was printed when the run ended."""

from __future__ import annotations

from dataclasses import dataclass

from fairbench.cli.command import Command, Results
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
    from fairbench.reporting.document.terminal import print_document
    from fairbench.reporting.runs import document_of
    from fairbench.results.catalogue import Catalogue

    catalogue = Catalogue(options.results)
    if not catalogue.runs:
        raise UserError(f"{options.results} has no finished run")
    latest = max(catalogue, key=lambda run: run.finished)
    run = catalogue.one(options.run) if options.run else latest
    print_document(document_of(run))
    print(f"files: {run.path}")


COMMAND = Command(TableOptions, table, examples=("fairbench table", "fairbench table 3f2a"))
