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

from fairbench.audits.question import GatedOptions, Gating, Options, PlanOptions
from fairbench.audits.table import read_frame
from fairbench.cli.command import Results, command, formats, narrow_options, typed_command
from fairbench.cli.gate import GateFiles, check_asked, settle, with_policy
from fairbench.cli.output import print_line
from fairbench.core.errors import UserError, note, refused
from fairbench.core.files import make_folder
from fairbench.core.options import option
from fairbench.core.processes import keep_freed_memory
from fairbench.core.text import quoted
from fairbench.data.tables import check_file, names_in, near_files
from fairbench.reporting.document.model import Document
from fairbench.reporting.document.writing import check_forms, write_document
from fairbench.results.catalogue import Catalogue

if TYPE_CHECKING:
    import pandas as pd


SECTION = "Audit predictions"


@dataclass(frozen=True)
class AuditedOptions(Results, Options):
    """What is asked of predictions, and which of a run's repeats they are of."""

    path: Path = option(
        Path,
        "A CSV, Excel, Parquet or Arrow file with one row per person, compressed or not; or a "
        "finished run, by the beginning of its id, whose columns need not be named.",
        argument="PREDICTIONS|RUN",
    )
    repeat: int = option(0, "Of a run: which repeat of its split.")
    formats: tuple[str, ...] = formats("html", "json")
    given: frozenset[str] = frozenset()  # the options that the command line has

    def __post_init__(self) -> None:
        """Check nothing yet: of a run no column need be named."""


@dataclass(frozen=True)
class AuditOptions(GateFiles, Gating, AuditedOptions):
    """The options of an audit, and what its gate passes by."""

    usual: ClassVar[tuple[str, ...]] = (*Options.usual, "formats", "fail_if")


def audit(options: AuditOptions) -> int:
    """Report on predictions.

    Print the report of a file or a run, and write it; with conditions, say whether it passes.

    Examples
    --------
    fairbench audit predictions.csv target=label score=score 'group=[sex,race]'
    fairbench audit predictions.csv target=label score=a against=b group=sex
    fairbench audit loans.csv target=repaid score=score group=sex constraint=ratio:0.8
    fairbench audit loans.csv target=repaid score=score group=sex 'within=[age:25,40,62]'
    fairbench audit candidates.csv score=rating group=sex top=20 lists=vacancy
    fairbench audit homes.csv target=price prediction=estimate 'group=[district]'
    fairbench audit loans.csv target=repaid score=score group=sex selected=granted
    fairbench audit loans.csv target=repaid score=score 'proxy=[p_women,p_men]'
    fairbench audit loans.csv target=paid score=PD group=sex 'fail_if=impact_ratio<0.8'
    fairbench audit counts.csv selected=hired total=people 'group=[sex,race]'
    fairbench audit 3f2a
    """
    keep_freed_memory()
    options = with_policy(options, GatedOptions)
    check_asked(options)
    kind = GatedOptions if options.fail_if else Options
    asked, frame = read_input(options, kind, distinct=not options.fail_if)
    from fairbench.audits.calls import report_of
    from fairbench.audits.report import own_folder

    document, gate = report_of(asked, frame)
    if part := frame.attrs["part"]:
        document = replace(document, title=f"{document.title}, {part}")
    folder = partial(own_folder, asked, options.results)
    name = "pair" if asked.against else "audit"
    print_and_write(document, folder, name, options.formats)
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
    distinct : as in :func:`fairbench.audits.table.read_frame`.

    Raises
    ------
    UserError : no such file or run, or a column that is not there.
    """
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
    column_names = list(map(quoted, names_in(path, [])))
    unnamed_text = f" and {len(column_names) - _SHOWN} more" if len(column_names) > _SHOWN else ""
    return (
        f"{path.name} has the columns {', '.join(column_names[:_SHOWN])}{unnamed_text}: say what "
        "they are, such as target=COLUMN score=COLUMN (or prediction=COLUMN) group=COLUMN"
    )


_SHOWN = 20  # columns that a message lists


def _input_of_run(options: AuditedOptions) -> tuple[AuditedOptions, pd.DataFrame]:
    """Return what is asked for, with what a finished run tells, and the run's predictions."""
    from fairbench.comparison.runs import group_columns, load_predictions, predictions_frame

    catalogue = Catalogue(options.results) if options.results.is_dir() else None
    if catalogue is None or not catalogue.runs:
        where = f"and {options.results} has no finished runs{near_files(options.path)}"
        raise UserError(f"{options.path} is not a file, {where}")
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


def print_and_write(
    document: Document,
    folder: Callable[[], Path],
    name: str,
    formats: Sequence[str] = ("html", "json"),
    *,
    more: str = "",
) -> None:
    """Print the summary of a document, write all of it in the forms that are asked for, say where.

    Parameters
    ----------
    folder : finds or makes the folder, once the document is printed.
    more : further files that were written.
    """
    from fairbench.reporting.document.terminal import print_document

    if document.made is not None:
        document = replace(document, made=replace(document.made, command=typed_command()))
    print_document(document)
    try:
        report_folder = folder()
        # Reports are about people: only their author may read them.
        make_folder(report_folder, 0o700)
        names = write_document(document, report_folder, name, formats, mode=0o600)
    except OSError as error:
        raise UserError(f"not written: {refused(error)}") from error
    all_of_it = "all of it is " if document.summary else ""
    print_line(f"\n{all_of_it}written: {report_folder / ', '.join(names)}{more}")


@dataclass(frozen=True)
class PlannedOptions(Results, PlanOptions):
    """The options of a plan."""


def plan(options: PlannedOptions) -> None:
    """Say how many labels an audit will take, before there are any data.

    Examples
    --------
    fairbench audit plan 'groups=[0.8,0.15,0.05]' rate=0.3 gap=0.05
    fairbench audit plan 'groups=[0.5,0.5]' rate=0.7 gap=0.1 among=0.2
    """
    from fairbench.audits.labels_needed import AuditPlan
    from fairbench.reporting.document.terminal import print_document

    print_document(AuditPlan(options).document())


COMMANDS = {
    "": command(audit),
    "plan": command(plan),
}
