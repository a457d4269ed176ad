"""The audit command: a file of predictions in; a report on the terminal, a page and JSON out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fairbench.audit.options import USAGE, parse
from fairbench.errors import UserError
from fairbench.store import write_text


def audit_command(words: Sequence[str], folder: Path) -> None:
    """Audit what the words of a command line describe.

    Parameters
    ----------
    folder : where a folder for the report is made, if the words name none.

    Raises
    ------
    UserError : anything about the words or the file that the user can mend.
    """
    if not words or set(words) & {"help", "-h", "--help"}:
        print(USAGE)
        return
    options = parse(words)
    from fairbench.audit.assessment import assess
    from fairbench.audit.conclusions import conclude
    from fairbench.audit.page import render
    from fairbench.audit.reading import read_audit_table
    from fairbench.audit.record import record
    from fairbench.audit.terminal import print_report

    assessment = assess(read_audit_table(options), options)
    conclusions = conclude(assessment)
    print_report(assessment, conclusions)
    place = Path(options.out) if options.out else folder / f"audit-{options.path.stem}"
    try:
        place.mkdir(parents=True, exist_ok=True)
        write_text(place / "audit.html", render(assessment, conclusions))
        write_text(place / "audit.json", record(assessment, conclusions))
    except OSError as error:
        raise UserError(f"{place} cannot be written: {error}") from error
    print(f"\nwritten: {place / 'audit.html'}, audit.json")
