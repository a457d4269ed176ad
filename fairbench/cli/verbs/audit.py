"""Report on predictions: which groups are treated worse, and how sure that is.

The predictions are a file that you bring, or those of a finished run. The report says what can and
cannot be concluded at this number of labels, and how many more would settle it; it is printed, and
written as a page and as JSON. ``fairbench audit plan`` says how many labels an audit will take.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeVar

from fairbench.audits.gate.options import GatedOptions, Gating
from fairbench.audits.question import Options, PlanOptions
from fairbench.cli.command import (
    ALL,
    SUMMARY,
    Command,
    Printed,
    Results,
    narrow_options,
    typed_command,
)
from fairbench.cli.gate import GateFiles, check_asked, settle, with_policy
from fairbench.cli.output import print_line
from fairbench.core.errors import UserError, note, refused
from fairbench.core.formats import quoted
from fairbench.core.memory import keep_freed_memory
from fairbench.core.options import hidden, option
from fairbench.core.safe_open import make_folder

if TYPE_CHECKING:
    import pandas as pd

    from fairbench.reporting.document.model import Document

SECTION = "Audit predictions"


@dataclass(frozen=True)
class AuditedOptions(Results, Printed, Options):
    """What is asked of predictions, and which of a run's repeats they are of."""

    path: Path = option(
        Path,
        "A CSV, Excel, Parquet or Arrow file with one row per person, compressed or not; or a "
        "finished run, by the beginning of its id, whose columns need not be named.",
        argument="PREDICTIONS|RUN",
    )
    repeat: int = option(0, "Of a run: which repeat of its split.")
    formats: tuple[str, ...] = option(
        ("html", "json"),
        "What is written: html, json, latex, markdown, pdf, word; or summary, the first page by "
        "itself. A PDF is printed by a browser; without one, summary is HTML.",
        shown="[FORM,...]",
    )
    given: frozenset[str] = hidden(frozenset(), given=True)

    def __post_init__(self) -> None:
        """Check nothing yet: of a run no column need be named."""


@dataclass(frozen=True)
class AuditOptions(GateFiles, Gating, AuditedOptions):
    """The options of an audit, and what its gate passes by."""

    usual: ClassVar[tuple[str, ...]] = (*Options.usual, "detail", "formats", "fail_if")


def audit(options: AuditOptions) -> int:
    """Print the report of a file or a run, and write it; with conditions, say whether it passes."""
    keep_freed_memory()
    options = with_policy(options, GatedOptions)
    check_asked(options)
    kind = GatedOptions if options.fail_if else Options
    asked, frame = read_input(options, kind, distinct=not options.fail_if)
    from fairbench.audits.folders import own_folder
    from fairbench.audits.kinds import document_of

    gate = None
    document = document_of(asked, frame)
    if part := frame.attrs["part"]:
        document = replace(document, title=f"{document.title}, {part}")
    if isinstance(asked, GatedOptions):
        from fairbench.audits.gate.verdict import gate_of
        from fairbench.reporting.gate_files import with_gate

        gate = gate_of(asked, frame)
        document = with_gate(document, gate)
    folder = partial(own_folder, asked, options.results)
    name = "pair" if asked.against else "audit"
    print_and_write(document, folder, name, options.formats, detail=options.detail)
    return 0 if gate is None else settle(gate, options, options.path)


Question = TypeVar("Question", bound=Options)


def read_input(
    options: AuditedOptions,
    kind: type[Question] = Options,  # type: ignore[assignment]
    *,
    distinct: bool = False,
) -> tuple[Question, pd.DataFrame]:
    """Return what is asked for, and the predictions of a file or a run as strings.

    Parameters
    ----------
    kind : the dataclass of what is asked for, from which that of the options inherits.
    distinct : as in :func:`fairbench.audits.columns.read_frame`.

    Raises
    ------
    UserError : no such file or run, or a column that is not there.
    """
    from fairbench.audits.columns import read_frame
    from fairbench.data.any_table import check_file
    from fairbench.reporting.document.writing import check_forms

    check_forms(options.formats)
    if options.path == Path():
        raise UserError("nothing to audit: give a file of predictions, or the id of a finished run")
    run = None
    if options.path.is_file() or options.path.suffix or len(options.path.parts) > 1:
        check_file(options.path)  # first of all: columns do not matter if there is no file
        if not options.columns:
            raise UserError(_which_columns(options.path))
    else:
        options, run = _input_of_run(options)
    asked = narrow_options(options, kind)
    frame = read_frame(asked, source=run, distinct=distinct)
    frame.attrs["part"] = "" if run is None else run.attrs.get("part", "")
    return asked, frame


def _which_columns(path: Path) -> str:
    """Return a sentence that asks what the columns of a file are, of which none was named."""
    from fairbench.data.any_table import names_in

    column_names = list(map(quoted, names_in(path, [])))
    unnamed_text = f" and {len(column_names) - _SHOWN} more" if len(column_names) > _SHOWN else ""
    return (
        f"{path.name} has the columns {', '.join(column_names[:_SHOWN])}{unnamed_text}: say what "
        "they are, such as target=COLUMN score=COLUMN (or prediction=COLUMN) group=COLUMN"
    )


_SHOWN = 20  # columns that a message lists


def _input_of_run(options: AuditedOptions) -> tuple[AuditedOptions, pd.DataFrame]:
    """Return what is asked for, with what a finished run tells, and the run's predictions."""
    from fairbench.comparison.run_predictions import (
        group_columns,
        load_predictions,
        predictions_frame,
    )
    from fairbench.results.catalogue import Catalogue

    catalogue = Catalogue(options.results) if options.results.is_dir() else None
    if catalogue is None or not catalogue.runs:
        raise UserError(_neither(options))
    try:
        stored = catalogue.one(str(options.path))
    except UserError as error:
        raise UserError(f"{options.path} is not a file; {error}") from error
    run = load_predictions(stored, participle="audited", numbers=True)
    frame = predictions_frame(run, options.repeat)
    if len(run.repeats) > 1:
        of_all = f"repeat {options.repeat} of {min(run.repeats)} to {max(run.repeats)}"
        note(f"this is {of_all} of run {run.id}; repeat= audits another")
        frame.attrs["part"] = of_all
    favourable = run.people.about.favourable
    values_of_run = {
        "target": "target",
        "prediction": "prediction",
        "score": "score" if "score" in frame else "",
        "cluster": "cluster" if "cluster" in frame else options.cluster,
        "favourable": "" if favourable is None else str(favourable),
    }
    missing_values = {
        name: value for name, value in values_of_run.items() if name not in options.given
    }
    group = options.group or tuple(group_columns(run))
    return replace(options, path=Path(run.id), group=group, **missing_values), frame  # type: ignore[arg-type]


def _neither(options: AuditedOptions) -> str:
    from fairbench.data.any_table import near_files

    hint = near_files(options.path)
    return f"{options.path} is not a file, and {options.results} has no finished runs{hint}"


def print_and_write(
    document: Document,
    folder: Callable[[], Path],
    name: str,
    formats: Sequence[str] = ("html", "json"),
    *,
    detail: str = SUMMARY,
    more: str = "",
) -> None:
    """Print a document, write it in the forms that are asked for, and say where.

    Parameters
    ----------
    detail : whether its summary is printed, or all of it.
    folder : finds or makes the folder, once the document is printed.
    more : further files that were written.
    """
    from fairbench.reporting.document.terminal import print_document, print_summary
    from fairbench.reporting.document.writing import write_document

    if document.made is not None:
        document = replace(document, made=replace(document.made, command=typed_command()))
    (print_document if detail == ALL else print_summary)(document)
    try:
        report_folder = folder()
        # Reports are about people: only their author may read them.
        make_folder(report_folder, 0o700)
        names = write_document(document, report_folder, name, formats, mode=0o600)
    except OSError as error:
        raise UserError(f"not written: {refused(error)}") from error
    detail_hint = f" (print it all: detail={ALL})" if document.summary and detail != ALL else ""
    print_line(f"\nwritten: {report_folder / ', '.join(names)}{more}{detail_hint}")


@dataclass(frozen=True)
class PlannedOptions(Results, PlanOptions):
    """The options of a plan."""


def plan(options: PlannedOptions) -> None:
    """Print how many labels an audit will take."""
    from fairbench.audits.plan import AuditPlan
    from fairbench.reporting.document.terminal import print_document

    print_document(AuditPlan(options).document())


COMMANDS = {
    "": Command(
        AuditOptions,
        audit,
        sentence="Report on predictions.",
        examples=(
            "fairbench audit predictions.csv target=label score=score 'group=[sex,race]'",
            "fairbench audit predictions.csv target=label score=a against=b group=sex",
            "fairbench audit loans.csv target=repaid score=score group=sex constraint=ratio:0.8",
            "fairbench audit loans.csv target=repaid score=score group=sex 'within=[age:25,40,62]'",
            "fairbench audit candidates.csv score=rating group=sex top=20 lists=vacancy",
            "fairbench audit homes.csv target=price prediction=estimate 'group=[district]'",
            "fairbench audit loans.csv target=repaid score=score group=sex selected=granted",
            "fairbench audit loans.csv target=repaid score=score 'proxy=[p_women,p_men]'",
            "fairbench audit loans.csv target=paid score=PD group=sex 'fail_if=impact_ratio<0.8'",
            "fairbench audit counts.csv selected=hired total=people 'group=[sex,race]'",
            "fairbench audit 3f2a",
        ),
    ),
    "plan": Command(
        PlannedOptions,
        plan,
        sentence="Say how many labels an audit will take, before there are any data.",
        examples=(
            "fairbench audit plan 'groups=[0.8,0.15,0.05]' rate=0.3 gap=0.05",
            "fairbench audit plan 'groups=[0.5,0.5]' rate=0.7 gap=0.1 among=0.2",
        ),
    ),
}
