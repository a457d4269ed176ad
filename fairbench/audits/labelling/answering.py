"""Checks the labels that a person gives against the table and earlier labels, and stores them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fairbench.audits.labelling.measures import REGRESSION_METRIC, metric_named
from fairbench.audits.labelling.questions import ONE_AT_A_TIME, QUESTIONS, question_of
from fairbench.audits.labelling.session import PREDICTED, Session, open_session
from fairbench.audits.labelling.state import Answer, State, StateFile
from fairbench.audits.question import Options, check_unchanged
from fairbench.core.errors import UserError, check_choice, check_minimum, unknown_name
from fairbench.core.files import file_sha256
from fairbench.core.formats import shortened
from fairbench.data.any_table import check_file, names_in, read_any_table

# What of a state may be asked for anew: the fields of it that are options of a command.
ASKED = ("question", "strategy", "metric", "stop")


def begin(
    file: StateFile, options: Options, asked: Mapping[str, Any], by: Sequence[str] = ()
) -> Session:
    """Write the first state of an audit, and open it.

    Parameters
    ----------
    file : the file of the state.
    options : the options of the audit.
    asked : values of fields of the state, of those in :data:`ASKED`.
    by : the columns whose groups rows are chosen among, all columns of groups by default.

    Raises
    ------
    UserError : the options describe no audit, or the file of predictions is not as they say.
    """
    digest = file_sha256(options.path) if options.path.is_file() else ""
    session = open_session(State(options, digest, by=_by(by, options)))
    state = replace(session.state, rows=len(session.table))
    if session.predicted is not None:
        state = replace(state, metric=REGRESSION_METRIC)
    session = _with_question(replace(session, state=state), asked)
    file.create(session.state)
    return session


def go_on(
    file: StateFile,
    options: Options,
    given: Collection[str],
    asked: Mapping[str, Any],
    by: Sequence[str] = (),
) -> Session:
    """Open the state there is, with another question or strategy where one is asked for.

    Parameters
    ----------
    given : the names of the options that the command line gave; the others are the state's.
    asked, by : the same parameters as of `begin`.

    Raises
    ------
    UserError : what was given is another audit, or the predictions have changed.
    """
    session = _with_question(resume(file, options.path), asked)
    state = session.state
    differs = ["by"] if by and _by(by, state.options) != state.by else []
    check_unchanged(file.path, state.options, options, given, also=differs)

    def change(now: State) -> State:
        """Change the fields that are asked for in the state as it is now."""
        # Others may have changed the state since it was read. Keep their changes, except in the
        # fields that are asked for.
        _check_same(file, now, state)
        if "stop" in asked:
            _check_stop(state.stop, now)
        of = now if options.path == Path() else state
        return replace(now, options=of.options, **{name: getattr(state, name) for name in asked})

    file.change(change)
    return session


def resume(file: StateFile, path: Path) -> Session:
    """Open the state there is; its predictions are in `path` by now, unless that is empty.

    Raises
    ------
    UserError : it is empty, and the state names a file outside of its folder.
    """
    state = file.read()
    check_choice(f"question in {file.path}", state.question, QUESTIONS)
    check_choice(f"strategy in {file.path}", state.strategy, ONE_AT_A_TIME)
    path = file.path_in_folder(state.options.path) if path == Path() else path
    return open_session(replace(state, options=replace(state.options, path=path)))


def _with_question(session: Session, asked: Mapping[str, Any]) -> Session:
    """Return the session with the question and strategy that are asked for."""
    before = session.state
    state = replace(before, **asked)
    if "metric" in asked:
        state = replace(state, metric=metric_named(state.metric, session))
    check_choice("question", state.question, QUESTIONS)
    check_choice("strategy", state.strategy, ONE_AT_A_TIME)
    _check_stop(state.stop, before)
    check_minimum("stop", state.stop, 0)
    session = replace(session, state=state)
    question_of(session).reward()  # refuses a question that this table cannot answer
    return session


def _check_stop(stop: int, state: State) -> None:
    """Refuse a change of stop=, the number of labels to stop at, after the first label."""
    if stop != state.stop and state.labels:
        raise UserError(
            f"stop={stop} comes too late: at how many labels to stop is said before the first "
            f"one, and there are {len(state.labels)}"
        )


def _check_same(file: StateFile, now: State, before: State) -> None:
    """Refuse a state that has become that of another table since it was read."""
    if now.sha256 != before.sha256:
        raise UserError(f"{file.path} has become the state of another table meanwhile")


def _by(names: Sequence[str], options: Options) -> str:
    """Return the attribute whose groups rows are chosen among, of some columns of groups or all."""
    for name in names:
        if name not in options.group:
            raise unknown_name("group in by=", name, options.group)
    if len(names) not in (0, 1, 2, len(options.group)):
        raise UserError("by= names one column of group=, two, or all of them")
    kept = [name for name in options.group if name in names or not names]
    return " x ".join(kept) or PREDICTED


def row_labels(pairs: Iterable[tuple[str, str]], session: Session) -> dict[int, str]:
    """Return row -> label of pairs such as ``("17", "1")``, or ``("C-1042", "1")`` with id=.

    Raises
    ------
    UserError : a row that is no number, an identifier that no row has, or two labels of one row.
    """
    labels: dict[int, str] = {}
    for name, label in pairs:
        row = row_named(name, session)
        if labels.setdefault(row, label) != label:
            raise UserError(f"{session.name(row)} is given two labels")
    return labels


def row_named(name: str, session: Session) -> int:
    """Return the row, counted from 1, that a person means by its number or its identifier."""
    options = session.state.options
    if options.id:
        if name not in session.rows:
            raise unknown_name(f"{options.id} of {options.path.name}", name, session.rows)
        return session.rows[name]
    if not name.isdecimal():
        raise UserError(f"'{shortened(name)}' is no row: rows are whole numbers, counted from 1")
    return int(name)


def pairs_in(path: Path, session: Session) -> list[tuple[str, str]]:
    """Return the rows or identifiers in a file of labels, each with its label.

    Rows are in the column ``row``, identifiers in that of ``id=``; labels are in the column
    ``label``, or in one of the target's name. Any file that an audit reads will do.

    Raises
    ------
    UserError : no such file or column.
    """
    options = session.state.options
    keys = [options.id, "row"] if options.id else ["row"]
    check_file(path)
    wanted = [(key, label) for key in keys for label in ("label", options.target) if label]
    present = [columns for columns in wanted if {*columns} <= {*names_in(path, columns)}]
    if not present:
        names = names_in(path, wanted[0])
        names_text = ", ".join(shortened(name, 30) for name in names[:8])
        keys_text = " or ".join(dict.fromkeys(keys))
        raise UserError(f"{path.name}: columns {keys_text} and label are needed, not {names_text}")
    key, label = present[0]
    # Where a file lists rows that are still to be labelled, they are no answers.
    frame = read_any_table(path, present[0])
    answered = frame[[key, label]].loc[lambda texts: texts[label] != ""]
    pairs = list(answered.itertuples(index=False, name=None))
    if key == "row" and options.id:
        return [(_identifier(row, session), text) for row, text in pairs]
    return pairs


def _identifier(row: str, session: Session) -> str:
    """Return the identifier of a row, by its number as text."""
    if not (row.isdecimal() and 1 <= int(row) <= len(session.ids)):
        raise UserError(f"row {shortened(row)} does not exist: there are 1 to {len(session.ids)}")
    return session.ids[int(row) - 1]


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
    rows_in_file = {int(index) + 1 for index in session.table.known} - {*session.state.labels}
    in_file = {row: session.label_in_file(row - 1) for row in rows_in_file}
    time = datetime.now(UTC).isoformat(timespec="seconds")
    new: list[Answer] = []

    def change(state: State) -> State:
        """Add the labels that are new to the state as it is now."""
        _check_same(file, state, session.state)
        before = {**in_file, **state.labels}
        for row, label in labels.items():
            if before.get(row) == label:
                continue
            if before.get(row) and not overwrite:
                raise UserError(
                    f"{session.name(row)} is labelled {before[row]} already; overwrite=true "
                    "replaces it"
                )
            new.append(Answer(row, label, time))
        # A third name is refused, which two people can bring about where one was still open.
        names = {*before.values(), *labels.values(), session.table.labels[1]} - {""}
        if session.label_texts is None and len(names) > 2:
            raise UserError(f"labels would have three names: {', '.join(sorted(names))}")
        # The file of predictions may be found in another place by now.
        return replace(state, options=session.state.options).with_answers(tuple(new))

    file.change(change)
    return new
