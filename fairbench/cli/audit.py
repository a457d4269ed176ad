"""The audit command: a file of predictions in; a report on the terminal, a page and JSON out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fairbench.audit.options import USAGE, Options, parse
from fairbench.cli.labelling_usage import COMMANDS
from fairbench.cli.labelling_usage import USAGE as LABELLING
from fairbench.core.errors import UserError
from fairbench.core.files import write_text

if TYPE_CHECKING:
    import pandas as pd

    from fairbench.audit.reading import AuditTable


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
        print(f"{USAGE}\n{LABELLING}")
        return
    if words[0] in COMMANDS or any(word.startswith("state=") for word in words):
        _labelling(words, folder)
        return
    options = parse(words)
    from fairbench.audit.multiclass.reading import is_multiclass
    from fairbench.audit.multiclass.report import report_multiclass
    from fairbench.audit.table_file import read_frame

    frame = read_frame(options)
    report = report_multiclass if is_multiclass(options, frame) else _report_binary
    _write(options, folder, *report(options, frame))


def _labelling(words: Sequence[str], folder: Path) -> None:
    from fairbench.cli.labelling import labelling_command

    named = words[0] in COMMANDS
    audited = labelling_command(words[0] if named else "report", words[named:])
    if audited is not None:
        options, table = audited
        _write(options, folder, *_report_table(options, table))


def _write(options: Options, folder: Path, page: str, content: str) -> None:
    place = Path(options.out) if options.out else folder / f"audit-{options.path.stem}"
    name = "pair" if options.against else "audit"
    try:
        place.mkdir(parents=True, exist_ok=True)
        write_text(place / f"{name}.html", page)
        write_text(place / f"{name}.json", content)
    except OSError as error:
        raise UserError(f"{place} cannot be written: {error}") from error
    print(f"\nwritten: {place / name}.html, {name}.json")


def _report_binary(options: Options, frame: pd.DataFrame) -> tuple[str, str]:
    """Print the report; return it as a page and as JSON."""
    from fairbench.audit.reading import read_audit_table

    if options.cost:
        raise UserError("cost= is of classes: name score=[...], a column for each class, as well")
    table = read_audit_table(options, frame=frame)
    if options.against:
        from fairbench.audit.pair.report import report_pair

        return report_pair(options, table, frame)
    return _report_table(options, table)


def _report_table(options: Options, table: AuditTable) -> tuple[str, str]:
    from fairbench.audit.assessment import assess
    from fairbench.audit.conclusions import conclude
    from fairbench.audit.page import render
    from fairbench.audit.record import record
    from fairbench.audit.terminal import print_report

    assessment = assess(table, options)
    conclusions = conclude(assessment)
    print_report(assessment, conclusions)
    return render(assessment, conclusions), record(assessment, conclusions)
