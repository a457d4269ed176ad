"""Report on predictions: which groups are treated worse, and how sure that is.

The predictions are a file that you bring, or those of a finished run. The report says what can and
cannot be concluded at this number of labels, and how many more would settle it; it is printed, and
written as a page and as JSON. ``fairbench audit plan`` says how many labels an audit will take.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from os.path import realpath
from pathlib import Path
from typing import ClassVar, TypeVar

import pandas as pd

from fairbench.audits import question as asking
from fairbench.audits.question import Options
from fairbench.audits.table import read_frame
from fairbench.cli import command as cli
from fairbench.cli.command import Asked, command
from fairbench.cli.output import print_line
from fairbench.core.errors import UserError, note, refused
from fairbench.core.files import make_folder
from fairbench.core.memory import keep_freed_memory
from fairbench.core.options import option
from fairbench.core.text import listed, quoted, said
from fairbench.data.tables import TablePart, check_file, names_in, near_files
from fairbench.evaluation.gate import Gate
from fairbench.reporting.document.model import Document
from fairbench.reporting.document.writing import check_forms, write_document
from fairbench.results.catalogue import Catalogue


@dataclass(frozen=True)
class GateFiles:
    """The options of a gate that name files.

    Attributes
    ----------
    policy : A YAML file of options and conditions, one per line, which Python and pytest read, too;
        options of the command line override those in the file.
    junit : With fail_if=: a file for the verdict as JUnit's XML.
    sarif : With fail_if=: a file for the verdict in SARIF 2.1.0.
    """

    title: ClassVar = asking.Gating.title

    policy: str = option("", shown="FILE.yaml")
    junit: str = option("", shown="FILE.xml")
    sarif: str = option("", shown="FILE.sarif")


def with_policy(options: Asked, declared: type) -> Asked:
    """Return the options of a command, with those of its policy that it does not give itself.

    Parameters
    ----------
    declared : the dataclass of options that a policy may give.
    """
    from fairbench.audits.calls import policy_of

    return options.filled(policy_of(options.policy, declared) if options.policy else {})


def check_asked(options: Asked) -> None:
    """Refuse verdict files without a condition, or in the place of an input file."""
    taken_paths = [realpath(name) for name in (options.path, options.policy) if str(name)]
    for name in ("junit", "sarif"):
        file = getattr(options, name)
        if file and not options.fail_if:
            raise UserError(f"{name}= is of a gate: give a condition, fail_if='impact_ratio<0.8'")
        if file and realpath(file) in taken_paths:
            raise UserError(f"{name}={file} would be written over a file that is read or written")
        taken_paths += [realpath(file)] if file else []


def settle(gate: Gate, options: Asked, path: Path) -> int:
    """Write the verdict in the requested forms, print it, and return the exit status.

    Parameters
    ----------
    path : the file that was judged.
    """
    from fairbench.core.files import write_text
    from fairbench.reporting.gate_files import to_junit, to_sarif

    name = path.as_posix()
    try:
        if options.junit:
            write_text(Path(options.junit), to_junit(gate, name), mode=0o600)
        if options.sarif:
            write_text(Path(options.sarif), to_sarif(gate, name), mode=0o600)
    except OSError as error:
        raise UserError(f"not written: {refused(error)}") from error
    print_line(gate.line)
    return gate.exit_status


@dataclass(frozen=True)
class Predictions:
    """Where predictions are.

    Attributes
    ----------
    path : A CSV, Excel, Parquet or Arrow file with one row per person, compressed or not; or a
        finished run, by the beginning of its id, whose columns need not be named.
    repeat : Of a run: which repeat of its split.
    """

    path: Path = option(Path, argument="PREDICTIONS|RUN")
    repeat: int = option(0)


def _audit(options: Asked) -> int:
    """Report on predictions.

    Print the report of a file or a run, and write it; with conditions, say whether it passes.

    Examples
    --------
    fairbench audit predictions.csv target=label score=score 'group=[sex,race]'
    fairbench audit 3f2a
    fairbench audit predictions.csv target=label score=a against=b group=sex
    fairbench audit loans.csv target=repaid score=score group=sex constraint=ratio:0.8
    fairbench audit loans.csv target=repaid score=score group=sex 'within=[age:25,40,62]'
    fairbench audit candidates.csv score=rating group=sex top=20 lists=vacancy
    fairbench audit homes.csv target=price prediction=estimate 'group=[district]'
    fairbench audit loans.csv target=repaid score=score group=sex selected=granted
    fairbench audit loans.csv target=repaid score=score 'proxy=[p_women,p_men]'
    fairbench audit loans.csv target=paid score=PD group=sex 'fail_if=impact_ratio<0.8'
    fairbench audit counts.csv selected=hired total=people 'group=[sex,race]'
    """
    keep_freed_memory()
    options = with_policy(options, asking.GatedOptions)
    check_asked(options)
    is_gate = options.fail_if or options.require != asking.Gating.require
    kind = asking.GatedOptions if is_gate else Options
    question, frame = read_input(options, kind, distinct=not options.fail_if)
    from fairbench.audits.calls import report_of
    from fairbench.audits.report import own_folder

    document, gate = report_of(question, frame)
    if part := frame.attrs["part"]:
        document = replace(document, title=f"{document.title}, {part}")
    folder = partial(own_folder, question, options.results)
    name = "pair" if question.against else "audit"
    print_and_write(document, folder, name, options.formats)
    return 0 if gate is None else settle(gate, options, options.path)


Question = TypeVar("Question", bound=Options)


def read_input(
    options: Asked, kind: type[Question], *, distinct: bool = False
) -> tuple[Question, pd.DataFrame]:
    """Return what is asked for, and the predictions of a file or a run as strings.

    Parameters
    ----------
    kind : the dataclass of what is asked for.
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
        if not any(getattr(options, name) for name in [*asking.column_options(kind), "scores"]):
            raise UserError(_which_columns(options.path, options.sheet))
        if options.repeat:
            raise UserError(f"repeat= is of a run, and {options.path} is a file: leave it out")
    else:
        options, run = _input_of_run(options)
    question = options.taken_as(kind)
    frame = read_frame(question, source=run, distinct=distinct)
    frame.attrs["part"] = "" if run is None else run.attrs.get("part", "")
    return question, frame


def _which_columns(path: Path, sheet: str) -> str:
    """Return a sentence that asks what the columns of a file are, of which none was named."""
    columns = listed([*map(quoted, names_in(path, [], TablePart(sheet=sheet)))], _SHOWN)
    return said("cli", "which_columns", name=path.name, columns=columns)


_SHOWN = 20  # columns that a message lists


def _input_of_run(options: Asked) -> tuple[Asked, pd.DataFrame]:
    """Return what is asked for, with what a finished run tells, and the run's predictions."""
    from fairbench.comparison import runs as finished

    catalogue = Catalogue(options.results) if options.results.is_dir() else None
    if catalogue is None or not catalogue.runs:
        where = f"and {options.results} has no finished runs{near_files(options.path)}"
        raise UserError(f"{options.path} is not a file, {where}")
    try:
        stored = catalogue.one(str(options.path))
    except UserError as error:
        raise UserError(f"{options.path} is not a file; {error}") from error
    run = finished.load_predictions(stored, participle="audited", tasks=finished.NUMBERS)
    frame = finished.predictions_frame(run, options.repeat)
    if len(run.repeats) > 1:
        of_all = f"repeat {options.repeat} of {min(run.repeats)} to {max(run.repeats)}"
        note(f"this is {of_all} of run {run.id}; repeat= audits another")
        frame.attrs["part"] = of_all
    return options.filled(finished.audit_options(run, frame)).replaced(path=Path(run.id)), frame


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
        document = replace(document, made=replace(document.made, command=cli.typed_command()))
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


def _plan(options: Asked) -> None:
    """Say how many labels an audit will take, before there are any data.

    Examples
    --------
    fairbench audit plan 'groups=[0.8,0.15,0.05]' rate=0.3 gap=0.05
    fairbench audit plan 'groups=[0.5,0.5]' rate=0.7 gap=0.1 among=0.2
    """
    from fairbench.audits.labels_needed import plan_document
    from fairbench.reporting.document.terminal import print_document

    print_document(plan_document(options.taken_as(asking.PlanOptions)))


COMMANDS = {
    "": command(_audit, Predictions, Options, asking.Gating, GateFiles, cli.Page, cli.Results),
    "plan": command(_plan, asking.PlanOptions, cli.Results),
}


def _judge(options: Asked) -> int:
    """Print the verdict, write it, and return the exit status.

    Examples
    --------
    fairbench gate loans.csv target=repaid score=score group=sex 'fail_if=impact_ratio<0.8'
    fairbench gate loans.csv policy=fairbench.yaml junit=gate.xml sarif=gate.sarif
    fairbench gate policy=fairbench.yaml require=pass
    """
    options = with_policy(options, asking.GatedOptions)
    if options.path == Path():
        raise UserError(said("cli", "nothing_to_judge"))
    if options.fail_if:
        check_asked(options)
    from fairbench.audits.calls import judged

    cli.check_predictions(options.path, "fairbench audit {} 'fail_if=impact_ratio<0.8'")
    verdict = judged(options.taken_as(asking.GatedOptions))
    return settle(verdict, options, options.path)


class gate:
    """Judge predictions by conditions, for continuous integration: pass, fail, or open.

    Conditions say what must not hold: fail_if='impact_ratio<0.8' for every attribute, or
    'sex:equal_opportunity>0.1' for one. The exit status is 0 (pass) if the data show that none
    holds, 1 (fail) if they show that one does, 3 if they are too few to decide, and 2 if something
    cannot be read. A verdict is wrong with a chance of at most 5 %, however many conditions a gate
    has. What is printed is the verdict; junit= and sarif= have every statement, and fairbench audit
    with the same options makes the page, too.
    """

    COMMAND = command(_judge, asking.Gating, GateFiles, asking.JudgedOptions, holds=False)
