"""Label only what matters: which rows to label next, and why.

No labels yet, and each one costs somebody's time? Groups are chosen by what is known so far (each
gets at least half of an equal share), rows within a group at random: so the report's intervals
hold whenever you stop; they are narrower at a number of labels that you say before the first
(stop=300). Label what next names, and all of it; a row whose label you cannot tell gets ?, such as
17=?. Rows count from 1. The score and the decision are not shown, so that they do not sway you.
Everything is kept in one file of plain JSON, and neither a kill nor a second person loses a label.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from fairbench.audits.question import Options
from fairbench.audits.table import read_frame
from fairbench.cli.command import EXPORTED, Asked, Page, Results, check_predictions, command
from fairbench.cli.output import print_line
from fairbench.core.errors import UserError
from fairbench.core.options import option
from fairbench.core.text import said
from fairbench.reporting.document.terminal import print_document
from fairbench.reporting.document.writing import check_forms
from fairbench_label import questions
from fairbench_label import session as sessions
from fairbench_label.session import CANNOT_TELL, Session, StateFile

MADE_FOR = "0.1"

Ask = Callable[[str], str]
STOP = ("q", "quit", "exit")


def label_in_turn(
    file: StateFile, session: Session, part: tuple[int, int], ask: Ask = input
) -> None:
    """Show rows and ask for their labels until the person stops or none is left.

    Parameters
    ----------
    part : (k, m): rows of the k-th of m people.
    ask : shows a prompt and returns a line; raises EOFError at the end of the input.
    """
    options = session.state.options
    frame = read_frame(options, every=True)
    # The score and the decision would sway a person.
    hidden = {options.target, options.score, options.prediction, *options.scores}
    visible_columns = frame[[name for name in frame if name not in hidden]]
    ended = "No row is left to label"
    while len(rows := questions.next_rows(session, 1, part)):
        position = int(rows[0])
        row = {str(name): str(value) for name, value in visible_columns.iloc[position].items()}
        print()
        print_document(questions.row_document(session, position, row))
        answered = _ask_until_stored(file, session, position + 1, ask)
        # As it is now, with the labels of others.
        session = sessions.open_session(replace(file.read(), options=options), frame)
        if not answered:
            ended = "Stopped"
            break
    print_line(f"{ended}: {session.progress}; all labels are stored in {file.path}.")


def _ask_until_stored(file: StateFile, session: Session, row: int, ask: Ask) -> bool:
    """Ask until there is an answer and it is stored; say whether to go on."""
    asked = f"label of {session.name(row)} ({session.expected}"
    prompt = f"{asked}; {CANNOT_TELL} cannot tell; q stops): "
    while True:
        try:
            text = ask(prompt).strip()
        except (EOFError, KeyboardInterrupt):
            print()
            return False
        if text.lower() in STOP and text not in session.table.labels + session.classes:
            return False
        try:
            sessions.store(file, session, sessions.check_labels(session, {row: text}))
        except UserError as error:
            stored_labels = file.read().labels
            if row not in stored_labels:
                print_line(str(error))
                continue
            stored = stored_labels[row] or CANNOT_TELL
            command = session.asking(file.path, row)
            values = {"row": row, "stored": stored, "text": text, "command": command}
            print_line(said("fairbench_label", "label_stays", **values))
        return True


@dataclass(frozen=True)
class _Part:
    """Which rows are whose.

    Attributes
    ----------
    part : Which rows are yours where several people label at once, such as 1/2 and 2/2.
    """

    part: str = option("1/1", shown="1/2")


@dataclass(frozen=True)
class _State(Results):
    """The options that every part of the verb has.

    Attributes
    ----------
    state : The file in which everything is kept.
    path : The file of predictions, to start, or where it has moved.
    """

    state: str = option(
        "",
        shown="FILE.json",
        main=True,
        needed="no state file is named, in which labels are kept: give state=audit.json, or "
        "another name, with every command of fairbench label",
    )
    path: Path = option(Path, argument="PREDICTIONS")


@dataclass(frozen=True)
class _Asking:
    """What is asked while rows are labelled.

    Attributes
    ----------
    n : How many rows to name.
    question : What labels are to find out: worst (in which group the metric is worst; the usual
        one), gap (whether it differs by more than epsilon between any two groups), each (how large
        it is in each group), calibration (where it is furthest from what scores foretell).
    metric : What the question is about: accuracy (the usual one), true_positive_rate, brier_score
        or any other metric that needs labels; of numbers mae (the usual one), rmse or
        mean_residual.
    stop : How many rows you are going to look at, said before the first label. At that number
        intervals are narrower; without it, they hold whenever you stop.
    strategy : How the next group is chosen: top_two (the usual one), thompson, bayesian_ucb,
        bayesian_ucb_quantile, epsilon_greedy, random_arm (any group, equally often), random (any
        row).
    by : Rows are chosen among the groups of these columns; those of group= by default.
    """

    n: int = option(1, least=1, main=True)
    question: str | None = option(None, shown="QUESTION", main=True)
    metric: str | None = option(None, shown="METRIC")
    stop: int | None = option(None, shown="NUMBER", main=True)
    strategy: str | None = option(None, shown="STRATEGY")
    by: tuple[str, ...] = option((), shown="[COLUMN,...]")


@dataclass(frozen=True)
class _Labels:
    """Labels as they are given, or none, to be asked for one row after the other.

    Attributes
    ----------
    answers : Labels of rows, such as 17=1 18=0, or C-1042=1 by the column of id= (of ids that are
        small letters alone in a file, labels=); without any, rows are shown and asked for.
    labels : A file of labels (CSV, Excel, Parquet or Arrow, compressed or not). It has the columns
        row, or with id= that one, and label.
    overwrite : Replace labels that are there.
    """

    # Names of options are small letters.
    answers: tuple[tuple[str, str], ...] = option(
        (), argument="ROW=LABEL", pairs=lambda name: not re.fullmatch(r"[a-z_]*", name)
    )
    labels: str = option("", shown="FILE")
    overwrite: bool = option(False)


@dataclass(frozen=True)
class _ReportOptions(Page):
    """Options that may differ from those with which the audit was started.

    Attributes
    ----------
    epsilon : A gap under this makes no practical difference; the state's own by default.
    """

    epsilon: float | None = option(None)


def _label_next(options: Asked) -> None:
    """Name the rows whose labels settle most, and why; with predictions, start.

    The state is started if there is none.

    Examples
    --------
    fairbench label next loans.csv state=audit.json target=repaid score=score
        'group=[sex,race]' n=3
    fairbench label next state=audit.json n=5 question=gap
    """
    part = _part(options.part)
    file = StateFile(Path(options.state))
    asked = {name: getattr(options, name) for name in questions.ASKED}
    stated = {name: value for name, value in asked.items() if value is not None}
    if file.exists():
        session = questions.go_on(file, options, options.given, stated, options.by)
    elif options.path == Path():
        raise UserError(said("fairbench_label", "no_state", path=file.path))
    else:
        check_predictions(options.path, EXPORTED)
        session = questions.begin(file, options.taken_as(Options), stated, options.by)
    print_document(questions.next_rows_document(session, options.n, part, file.path))


def _ask(options: Asked) -> None:
    """Store labels; without any, show one row after the other and ask. q stops.

    Examples
    --------
    fairbench label ask state=audit.json
    fairbench label ask state=audit.json 17=1 18=0
    fairbench label ask state=audit.json labels=new.csv
    fairbench label ask state=audit.json C-1042=1
    """
    part = _part(options.part)
    file = StateFile(Path(options.state))
    session = questions.resume(file, options.path)
    if not options.answers and not options.labels:
        label_in_turn(file, session, part)
        return
    in_file = sessions.pairs_in(Path(options.labels), session) if options.labels else []
    pairs = sessions.row_labels([*options.answers, *in_file], session)
    labels = sessions.check_labels(session, pairs)
    new = sessions.store(file, session, labels, overwrite=options.overwrite)
    session = sessions.open_session(replace(file.read(), options=session.state.options))
    again = f", {len(pairs) - len(new)} were there already" if len(new) < len(pairs) else ""
    print_line(f"{len(new)} stored{again}: {session.progress}.")


def _report(options: Asked) -> None:
    """Print the report of fairbench audit, with the labels so far.

    It is written, too.

    Examples
    --------
    fairbench label report state=audit.json
    """
    from fairbench.audits.report import own_folder
    from fairbench.cli.verbs.audit import print_and_write

    check_forms(options.formats)
    session = questions.resume(StateFile(Path(options.state)), options.path)
    audit_options = replace(session.state.options, out=options.out)
    if options.epsilon is not None:
        audit_options = replace(audit_options, epsilon=options.epsilon)
    session = replace(session, state=replace(session.state, options=audit_options))
    document = questions.report_document(session)
    answer = document.data["labelling"]
    print_line(" ".join([answer["asked"], *answer["sentences"]]))
    folder = partial(own_folder, audit_options, options.results)
    print_and_write(document, folder, "audit", options.formats)


def _part(text: str) -> tuple[int, int]:
    """Return which of the rows are this person's, k of m."""
    first, _, total = text.partition("/")
    if not (first.isdecimal() and total.isdecimal() and 1 <= int(first) <= int(total)):
        raise UserError(f"part is '{text}'; it must be such as 1/2 or 2/2")
    return int(first), int(total)


COMMANDS = {
    "next": command(_label_next, _State, _Asking, _Part, Options),
    "ask": command(_ask, _State, _Labels, _Part),
    "report": command(_report, _State, _ReportOptions),
}
