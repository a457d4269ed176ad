"""Checks the labels that a person gives against the table and earlier labels, and stores them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd

from fairbench.audits.columns import read_frame
from fairbench.audits.labelling.measures import REGRESSION_METRIC, metric_named
from fairbench.audits.labelling.questions import (
    DEFAULT_QUESTION,
    DEFAULT_STRATEGY,
    ONE_AT_A_TIME,
    QUESTIONS,
    next_rows,
)
from fairbench.audits.labelling.session import (
    CANNOT_TELL,
    PREDICTED,
    Session,
    checked,
    open_session,
    read_subject,
)
from fairbench.audits.labelling.state import ACCURACY, Answer, State, StateFile, sha256
from fairbench.audits.question import Options
from fairbench.core.errors import UserError, check_choice, check_minimum, unknown_name


@dataclass(frozen=True)
class Asking:
    """The question that labels are to answer, and the strategy that chooses rows.

    Attributes
    ----------
    question, strategy, metric : None for those of the state, or the usual ones of a new state.
    stop : how many rows are going to be looked at, 0 where that is left open.
    by : the columns whose groups rows are chosen among, empty for all columns of groups.
    """

    question: str | None = None
    strategy: str | None = None
    metric: str | None = None
    stop: int | None = None
    by: tuple[str, ...] = ()


def begin(file: StateFile, options: Options, asking: Asking) -> Session:
    """Write the first state of an audit, and open it.

    Raises
    ------
    UserError : the options describe no audit, or the file of predictions is not as they say.
    """
    if options.path == Path():
        raise UserError(
            f"{file.path} does not exist yet: to start it, give a file of predictions, and "
            "its columns as score=, target= and group="
        )
    if options.cost or options.against:
        raise UserError("cost= and against= are of fairbench audit: leave them out")
    digest = sha256(options.path) if options.path.is_file() else ""
    subject = read_subject(options, {})
    by = _by(asking.by, options) if options.group else PREDICTED
    metric = ACCURACY if subject.predicted is None else REGRESSION_METRIC
    state = State(options, digest, len(subject.table), by, DEFAULT_QUESTION, DEFAULT_STRATEGY)
    session = Session(replace(state, metric=metric), subject.table, subject)
    session = _asked(session, asking)
    file.create(session.state)
    return session


def go_on(file: StateFile, options: Options, given: Collection[str], asking: Asking) -> Session:
    """Open the state there is, with another question or strategy where one is asked for.

    Parameters
    ----------
    given : the names of the options that the command line gave; the others are the state's.

    Raises
    ------
    UserError : what was given is another audit, or the predictions have changed.
    """
    session = _asked(resume(file, options.path), asking)
    _check_same(file, session.state, options, given, asking.by)
    mine = session.state

    def change(state: State) -> State:
        return replace(
            state,
            options=mine.options,
            question=mine.question,
            strategy=mine.strategy,
            metric=mine.metric,
            stop=state.stop if state.labels else mine.stop,
        )

    file.change(change)
    return session


def resume(file: StateFile, path: Path) -> Session:
    """Open the state there is; its predictions are in `path` by now, unless that is empty."""
    state = file.read()
    if path != Path():
        state = replace(state, options=replace(state.options, path=path))
    return open_session(state)


def _asked(session: Session, asking: Asking) -> Session:
    """Return the session with the question and strategy that are asked for."""
    state = session.state
    question = asking.question or state.question
    strategy = asking.strategy or state.strategy
    metric = state.metric if asking.metric is None else metric_named(asking.metric, session)
    stop = state.stop if asking.stop is None else asking.stop
    check_choice("question", question, QUESTIONS)
    check_choice("strategy", strategy, ONE_AT_A_TIME)
    if stop != state.stop and state.labels:
        raise UserError(
            f"stop={stop} comes too late: at how many labels to stop is said before the first one, "
            f"and there are {len(state.labels)}"
        )
    check_minimum("stop", stop, 0)
    changed = replace(state, question=question, strategy=strategy, metric=metric, stop=stop)
    asked = replace(session, state=changed)
    QUESTIONS[question].reward(asked)  # refuses a question that this table cannot answer
    return asked


def _by(names: Sequence[str], options: Options) -> str:
    for name in names:
        if name not in options.group:
            raise unknown_name("group in by=", name, options.group)
    if len(names) not in (0, 1, 2, len(options.group)):
        raise UserError("by= names one column of group=, two, or all of them")
    return " x ".join(name for name in options.group if name in names or not names)


def _check_same(
    file: StateFile, state: State, options: Options, given: Collection[str], by: Sequence[str]
) -> None:
    mine = {each.name for each in fields(Options)} & {*given} - {"path"}
    mine |= {"scores"} if "score" in given else set()
    changed = {name for name in mine if getattr(options, name) != getattr(state.options, name)}
    if by and _by(by, state.options) != state.by:
        changed.add("by")
    if changed:
        name = min(changed)
        raise UserError(
            f"{file.path} was started with another {name}: leave {name}= out, or start "
            "another state"
        )


Ask = Callable[[str], str]
# Takes the session, the position of a row and what may be shown of it.
Show = Callable[[Session, int, Mapping[str, str]], None]
STOP = ("q", "quit", "exit")


def row_labels(pairs: Iterable[tuple[str, str]]) -> dict[int, str]:
    """Return row -> label of pairs such as ``("17", "1")``.

    Raises
    ------
    UserError : a row that is no number, or one that is given two labels.
    """
    found: dict[int, str] = {}
    for row, label in pairs:
        if not row.isdecimal():
            raise UserError(f"'{row}' is no row: rows are whole numbers, counted from 1")
        if found.setdefault(int(row), label) != label:
            raise UserError(f"row {int(row)} is given two labels")
    return found


def labels_in(path: Path, target: str) -> dict[int, str]:
    """Return row -> label of a CSV file with columns row and label (or the target's name).

    Raises
    ------
    UserError : no such file or column, or a row that is no number or named twice.
    """
    from fairbench.data.delimited import read_table

    try:
        frame = read_table(path.read_bytes(), path.name)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from error
    label = next((name for name in ("label", target) if name in frame), "")
    if "row" not in frame or not label:
        raise UserError(f"{path.name}: columns row and label are needed, not {', '.join(frame)}")
    # Where a file lists rows that are still to be labelled, they are no answers.
    filled = frame[frame[label].astype(str) != ""]
    return row_labels(zip(filled["row"].astype(str), filled[label].astype(str), strict=True))


def store(
    file: StateFile, session: Session, labels: Mapping[int, str], *, overwrite: bool = False
) -> Sequence[Answer]:
    """Store labels, all or none, and return those that are new.

    Parameters
    ----------
    labels : row -> label, checked.

    Raises
    ------
    UserError : another label is there, perhaps since a moment ago, and `overwrite` is false; or
        the state has become that of another table.
    """
    before = _labels_of_file(session)
    time = datetime.now(UTC).isoformat(timespec="seconds")
    new: list[Answer] = []

    def change(state: State) -> State:
        if state.sha256 != session.state.sha256:
            raise UserError(f"{file.path} has become the state of another table meanwhile")
        known = {**before, **state.labels}
        new[:] = [Answer(row, label, time) for row, label in labels.items()
                  if known.get(row) != label]  # fmt: skip
        for answer in new:
            if known.get(answer.row) and not overwrite:
                raise UserError(
                    f"row {answer.row} is labelled {known[answer.row]} already; overwrite=true "
                    "replaces it"
                )
        _check_names({**known, **labels}, session)
        # The file of predictions may be found in another place by now.
        return replace(state, options=session.state.options).answered(tuple(new))

    file.change(change)
    return new


def _check_names(labels: Mapping[int, str], session: Session) -> None:
    """Refuse a third name, which two people can bring about where one name was still open."""
    if session.subject.told is not None:
        return
    names = {*labels.values(), session.table.labels[1]} - {""}
    if len(names) > 2:
        raise UserError(f"labels would have three names: {', '.join(sorted(names))}")


def _labels_of_file(session: Session) -> dict[int, str]:
    """Return the labels that are in the table of predictions itself."""
    mine = session.state.labels
    return {
        int(position) + 1: session.subject.label_in_file(int(position))
        for position in session.table.known
        if int(position) + 1 not in mine
    }


def label_in_turn(
    file: StateFile,
    session: Session,
    part: tuple[int, int],
    *,
    show: Show,
    ask: Ask = input,
) -> str:
    """Show rows and ask for their labels until the person stops or none is left.

    Parameters
    ----------
    part : (k, m): rows of the k-th of m people.
    show : shows a row.
    ask : shows a prompt and returns a line; raises EOFError at the end of the input.

    Returns
    -------
    How far it went, as a sentence.
    """
    frame = read_frame(session.state.options, every=True)
    shown = _shown_columns(frame, session.state.options)
    asked = True
    while asked and len(rows := next_rows(session, 1, part).rows):
        position = int(rows[0])
        row = {str(name): str(value) for name, value in shown.iloc[position].items()}
        show(session, position, row)
        asked = _answered(file, session, position + 1, ask)
        # As it is now, with the labels of others.
        state = replace(file.read(), options=session.state.options)
        session = open_session(state, frame)
    said = "Stopped" if not asked else "No row is left to label"
    return f"{said}: {session.progress}; all labels are stored in {file.path}."


def _shown_columns(frame: pd.DataFrame, options: Options) -> pd.DataFrame:
    """Return the columns that may be shown: the score and the decision would sway a person."""
    hidden = (options.target, options.score, options.prediction, options.labelled, *options.scores)
    return frame[[name for name in frame if name not in hidden]]


def _answered(file: StateFile, session: Session, row: int, ask: Ask) -> bool:
    """Ask until there is an answer and it is stored; say whether to go on."""
    names = session.subject.expected
    while True:
        try:
            text = ask(
                f"label of row {row} ({names}; {CANNOT_TELL} cannot tell; q stops): "
            ).strip()
        except (EOFError, KeyboardInterrupt):
            print()
            return False
        if text.lower() in STOP and text not in session.table.labels + session.subject.classes:
            return False
        try:
            store(file, session, checked(session, {row: text}))
        except UserError as error:
            print(error)
            if row in file.read().labels:  # somebody else was quicker, and says otherwise
                return True
        else:
            return True
