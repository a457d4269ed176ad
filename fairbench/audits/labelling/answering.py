"""Checks the labels that a person gives against the table and earlier labels, and stores them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path

from fairbench.audits.columns import read_frame
from fairbench.audits.labelling.measures import REGRESSION_METRIC, metric_named
from fairbench.audits.labelling.questions import (
    DEFAULT_QUESTION,
    DEFAULT_STRATEGY,
    ONE_AT_A_TIME,
    QUESTIONS,
    next_rows,
    question_of,
)
from fairbench.audits.labelling.session import (
    CANNOT_TELL,
    PREDICTED,
    Session,
    checked,
    open_session,
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
    session = open_session(State(options, digest, 0, "", DEFAULT_QUESTION, DEFAULT_STRATEGY))
    by = _by(asking.by, options) if options.group else PREDICTED
    metric = ACCURACY if session.predicted is None else REGRESSION_METRIC
    state = replace(session.state, rows=len(session.table), by=by, metric=metric)
    session = _asked(replace(session, state=state), asking)
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
    state = session.state
    given = {field.name for field in fields(Options)} & {*given} - {"path"}
    given |= {"scores"} if "score" in given else set()
    changed = {name for name in given if getattr(options, name) != getattr(state.options, name)}
    if asking.by and _by(asking.by, state.options) != state.by:
        changed.add("by")
    if changed:
        name = min(changed)
        raise UserError(
            f"{file.path} was started with another {name}: leave {name}= out, or start "
            "another state"
        )
    asked = {name: getattr(state, name) for name in ("options", "question", "strategy", "metric")}
    file.change(lambda now: replace(now, **asked, stop=now.stop if now.labels else state.stop))
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
    stop = state.stop if asking.stop is None else asking.stop
    asked = replace(
        state,
        question=asking.question or state.question,
        strategy=asking.strategy or state.strategy,
        metric=state.metric if asking.metric is None else metric_named(asking.metric, session),
        stop=stop,
    )
    check_choice("question", asked.question, QUESTIONS)
    check_choice("strategy", asked.strategy, ONE_AT_A_TIME)
    if stop != state.stop and state.labels:
        raise UserError(
            f"stop={stop} comes too late: at how many labels to stop is said before the first one, "
            f"and there are {len(state.labels)}"
        )
    check_minimum("stop", stop, 0)
    session = replace(session, state=asked)
    question_of(session).reward()  # refuses a question that this table cannot answer
    return session


def _by(names: Sequence[str], options: Options) -> str:
    for name in names:
        if name not in options.group:
            raise unknown_name("group in by=", name, options.group)
    if len(names) not in (0, 1, 2, len(options.group)):
        raise UserError("by= names one column of group=, two, or all of them")
    return " x ".join(name for name in options.group if name in names or not names)


def row_labels(pairs: Iterable[tuple[str, str]]) -> dict[int, str]:
    """Return row -> label of pairs such as ``("17", "1")``.

    Raises
    ------
    UserError : a row that is no number, or one that is given two labels.
    """
    labels: dict[int, str] = {}
    for row, label in pairs:
        if not row.isdecimal():
            raise UserError(f"'{row}' is no row: rows are whole numbers, counted from 1")
        if labels.setdefault(int(row), label) != label:
            raise UserError(f"row {int(row)} is given two labels")
    return labels


def pairs_in(path: Path, target: str) -> Iterable[tuple[str, str]]:
    """Return rows and labels of a CSV file with columns row and label (or the target's name).

    Raises
    ------
    UserError : no such file or column.
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
    columns = (frame[name].astype(str) for name in ("row", label))
    return [(row, text) for row, text in zip(*columns, strict=True) if text]


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
    rows = {int(position) + 1: int(position) for position in session.table.known}
    in_file = {
        row: session.label_in_file(position)
        for row, position in rows.items()
        if row not in session.state.labels
    }
    time = datetime.now(UTC).isoformat(timespec="seconds")
    new: list[Answer] = []

    def change(state: State) -> State:
        if state.sha256 != session.state.sha256:
            raise UserError(f"{file.path} has become the state of another table meanwhile")
        before = {**in_file, **state.labels}
        for row, label in labels.items():
            if before.get(row) == label:
                continue
            if before.get(row) and not overwrite:
                raise UserError(
                    f"row {row} is labelled {before[row]} already; overwrite=true replaces it"
                )
            new.append(Answer(row, label, time))
        # A third name is refused, which two people can bring about where one was still open.
        names = {*before.values(), *labels.values(), session.table.labels[1]} - {""}
        if session.told is None and len(names) > 2:
            raise UserError(f"labels would have three names: {', '.join(sorted(names))}")
        # The file of predictions may be found in another place by now.
        return replace(state, options=session.state.options).answered(tuple(new))

    file.change(change)
    return new


Ask = Callable[[str], str]
# Takes the session, the position of a row and what may be shown of it.
Show = Callable[[Session, int, Mapping[str, str]], None]
STOP = ("q", "quit", "exit")


def label_in_turn(
    file: StateFile, session: Session, part: tuple[int, int], *, show: Show, ask: Ask = input
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
    options = session.state.options
    frame = read_frame(options, every=True)
    # The score and the decision would sway a person.
    hidden = {options.target, options.score, options.prediction, options.labelled, *options.scores}
    shown = frame[[name for name in frame if name not in hidden]]
    said = "No row is left to label"
    while len(rows := next_rows(session, 1, part)):
        position = int(rows[0])
        show(session, position, {str(k): str(v) for k, v in shown.iloc[position].items()})
        asked = _answered(file, session, position + 1, ask)
        # As it is now, with the labels of others.
        session = open_session(replace(file.read(), options=options), frame)
        if not asked:
            said = "Stopped"
            break
    return f"{said}: {session.progress}; all labels are stored in {file.path}."


def _answered(file: StateFile, session: Session, row: int, ask: Ask) -> bool:
    """Ask until there is an answer and it is stored; say whether to go on."""
    prompt = f"label of row {row} ({session.expected}; {CANNOT_TELL} cannot tell; q stops): "
    while True:
        try:
            text = ask(prompt).strip()
        except (EOFError, KeyboardInterrupt):
            print()
            return False
        if text.lower() in STOP and text not in session.table.labels + session.classes:
            return False
        try:
            store(file, session, checked(session, {row: text}))
        except UserError as error:
            print(error)
            if row not in file.read().labels:
                continue  # otherwise somebody else was quicker, and says otherwise
        return True
