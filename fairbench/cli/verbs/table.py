"""Print the table of a finished run, or one table of several, also as CSV, LaTeX or Markdown.

Of one run the table is that printed when the run ended. Several runs have a row each, with error,
log loss and the gap between groups; a CSV file has a row for each metric of each run.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fairbench.cli.command import Selection, command
from fairbench.cli.output import print_line
from fairbench.core.errors import UserError
from fairbench.core.files import write_text
from fairbench.core.options import option
from fairbench.core.text import csv_text
from fairbench.reporting.document.terminal import print_document
from fairbench.reporting.document.writing import FORMS
from fairbench.reporting.runs import document_of, runs_document, tidy
from fairbench.results.catalogue import Catalogue

_SUFFIXES = {".csv": "csv", ".tex": "latex", ".md": "markdown"}
_TERMINAL = "terminal"


@dataclass(frozen=True)
class TableOptions(Selection):
    """Which runs are in the table, and how it is written."""

    ids: tuple[str, ...] = option(
        (), "Runs whose ids begin so, or all; the run that finished last by default.",
        argument="RUN",
    )  # fmt: skip
    metrics: tuple[str, ...] = option(
        (), "What is shown of each run; error, log loss and gap by default.",
        shown="[METRIC,...]",
    )  # fmt: skip
    format: str = option(
        "", "How it is written; by default as out= ends, and otherwise for the terminal.",
        choices=("", _TERMINAL, *_SUFFIXES.values()),
    )  # fmt: skip
    out: Path = option(
        Path, "A file that ends in .csv, .tex or .md; printed by default.", shown="FILE"
    )

    @property
    def written_as(self) -> str:
        """The format, given or by the file's name.

        Raises
        ------
        UserError : the file's name ends otherwise, and no format is given.
        """
        if self.format or self.out == Path():
            return self.format or _TERMINAL
        if self.out.suffix not in _SUFFIXES:
            raise UserError(f"out={self.out}: end it in .csv, .tex or .md, or give format=")
        return _SUFFIXES[self.out.suffix]


def table(options: TableOptions) -> None:
    """Print or write the table of the runs that are asked for.

    Examples
    --------
    fairbench table
    fairbench table 3f2a
    fairbench table dataset=german method=ensemble,baseline
    fairbench table all out=runs.csv
    fairbench table dataset=german 'metrics=[accuracy,statistical_parity]' format=latex
    """
    written_as = options.written_as
    runs = _selected(options)
    is_single = len(runs) == 1 and not options.metrics
    if written_as == "csv":
        text = csv_text(tidy(runs, options.metrics))
    else:
        one = next(iter(runs))
        document = document_of(one) if is_single else runs_document(runs, options.metrics)
        if written_as == _TERMINAL and options.out == Path():
            print_document(document)
            if is_single:
                print_line(f"files: {one.path}")
            return
        text = str(FORMS[written_as][1](document))
    if options.out == Path():
        print(text, end="")
        return
    write_text(options.out, text)
    print_line(f"{len(runs)} run{'s' if len(runs) != 1 else ''} in {options.out}")


def _selected(options: TableOptions) -> Catalogue:
    """Return the runs that are asked for; the last one where none is.

    Raises
    ------
    UserError : there is none.
    """
    ids = () if options.ids == ("all",) else options.ids
    words = [*ids, *options.key_words]
    catalogue = Catalogue(options.results)
    if not catalogue.runs:
        raise UserError(f"{options.results} has no finished run")
    if not options.ids and not options.keys:
        return catalogue.only([max(catalogue, key=lambda run: run.finished)])
    for run_id in ids:
        if not any(id_.startswith(run_id) for id_ in catalogue.runs):
            catalogue.one(run_id)  # refused, with the nearest
    matching = catalogue.matching(words)
    if not matching.runs:
        raise UserError(catalogue.why_none(words))
    return matching


COMMAND = command(table)
