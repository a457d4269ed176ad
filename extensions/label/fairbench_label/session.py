"""The state of an audit that is being labelled: what was asked for, every label, and its file.

Labels that a person gives are checked against the table and earlier ones before they are stored.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.audits.direction import Direction
from fairbench.audits.gaps import FEWEST_LABELS
from fairbench.audits.kinds.classes import read_multiclass
from fairbench.audits.question import Options
from fairbench.audits.table import AuditTable, read_audit_table, read_frame
from fairbench.core.arrays import Floats, Mask, Rows, rng
from fairbench.core.errors import UserError, nearest, unknown_name
from fairbench.core.files import file_sha256, unsealed_json
from fairbench.core.options import from_plain
from fairbench.core.processes import JsonFile
from fairbench.core.text import count, said, shortened
from fairbench.data import columns
from fairbench.data.groups import notes_on_groups, read_groups
from fairbench.data.tables import read_any_table
from fairbench.reporting.group_tables import sentence_of
from fairbench_label.estimates import GroupSampling

_said = partial(sentence_of, "fairbench_label:labelling")
SCHEMA = 2
ACCURACY = "accuracy"
# Where the predictions are is kept apart, and where a report goes is not part of an audit.
_ELSEWHERE = ("path", "out")
# What labelling does not take of the options of an audit; leave_out= changes which row is which.
_OF_AUDITS = ("selected", "proxy", "within", "cost", "against", "labelled", "leave_out")
_PLAIN = ("by", "question", "strategy", "metric", "stop")  # fields of a state


@dataclass(frozen=True)
class Answer:
    """A label that a person gave.

    Attributes
    ----------
    row : the number of the row, counted from 1.
    label : the label; empty where the person could not tell.
    time : when it was given, in UTC and ISO 8601.
    """

    row: int
    label: str
    time: str


@dataclass(frozen=True)
class State:
    """The state of labelling: everything that the choice of the next row depends on.

    Attributes
    ----------
    options : the options of an audit; their path is that of the predictions.
    sha256, rows : the digest of the file of predictions, and how many rows it has.
    by : the attribute whose groups rows are chosen among.
    metric : what the question is about.
    stop : the number of answers at which labelling stops, said before the first; 0 if unsaid.
    answers : the answers in the order they came; if a row has several, the last one counts.
    """

    options: Options
    sha256: str
    rows: int = 0
    by: str = ""
    question: str = "worst"
    strategy: str = "top_two"
    answers: tuple[Answer, ...] = ()
    metric: str = ACCURACY
    stop: int = 0

    @property
    def labels(self) -> Mapping[int, str]:
        """Return row -> label."""
        return {answer.row: answer.label for answer in self.answers}

    @property
    def anytime_valid(self) -> bool:
        """Whether intervals have to hold whenever labelling stops.

        So they do unless there are exactly as many labels as were announced beforehand (stop=).
        """
        return self.stop == 0 or len(self.labels) != self.stop

    def with_answers(self, answers: tuple[Answer, ...]) -> State:
        """Return the state after further answers."""
        return replace(self, answers=self.answers + answers)


class StateFile(JsonFile[State]):
    """The file of an audit that is being labelled."""

    of = "an audit"
    start = "fairbench label next PREDICTIONS"
    otherwise = "since labels cannot be made again"

    def values(self, state: State) -> Mapping[str, Any]:
        """Return a state as plain values; the path of the predictions is seen from the file's."""
        path = state.options.path.resolve()
        return {
            "schema": SCHEMA,
            "predictions": {
                # Relative, so that the two files can move together.
                "path": Path(os.path.relpath(path, self.folder.resolve())).as_posix(),
                "sha256": state.sha256,
                "rows": state.rows,
            },
            "options": {k: v for k, v in asdict(state.options).items() if k not in _ELSEWHERE},
            **{name: getattr(state, name) for name in _PLAIN},
            "labels": [asdict(answer) for answer in state.answers],
        }

    def parse(self, content: bytes) -> State:
        """Return the state that a file's content describes."""
        values = unsealed_json(content)
        if (schema := values.pop("schema")) != SCHEMA:
            raise ValueError(f"its schema is {shortened(str(schema))}; this version reads {SCHEMA}")
        predictions, labels = values.pop("predictions"), values.pop("labels")
        options = {**values["options"], "path": self.folder / predictions.pop("path")}
        values = {**values, **predictions, "options": options, "answers": labels}
        state: State = from_plain(State, values)
        if "" in state.options.group:
            raise ValueError("a column of groups has no name")
        for answer in state.answers:
            if not 1 <= answer.row <= state.rows:
                raise ValueError(f"it has a label of row {answer.row}, of {state.rows}")
        return state


# An audit in progress: the predictions, the labels so far, and the order rows are labelled in.
#
# Predictions may be of two classes, of several classes, or numbers. With several classes, a label
# tells whether the predicted class is right. Rows are then chosen as in a table of two classes,
# "right" and "wrong", in which every row is predicted to be right, with its confidence as the
# score.

_MOST_ROWS = 5
CANNOT_TELL = "?"
PREDICTED = "predicted class"
_MOST_NAMED = 8


@dataclass(frozen=True, eq=False)
class Session:
    """A state, with the table it is about.

    Attributes
    ----------
    table : the predictions with all labels so far, the file's and the person's; with several
        classes the labels are whether predictions are right.
    classes : names of the classes, where there are more than two.
    predicted : (n,) predicted numbers; None unless numbers are predicted.
    label_texts : (n,) labels as texts, empty where unknown; None with two classes.
    ids : (n,) the identifiers of the rows, if a column has them (id=); otherwise empty.
    """

    state: State
    table: AuditTable
    classes: tuple[str, ...] = ()
    predicted: Floats | None = None
    label_texts: NDArray[np.object_] | None = None
    ids: Sequence[str] = ()

    def name(self, row: int) -> str:
        """Return the name of a row, counted from 1, in messages; with its identifier, if any."""
        column = self.state.options.id
        return f"row {row} ({column} {self.ids[row - 1]})" if column else f"row {row}"

    def answer_to(self, row: int) -> str:
        """Return the name of a row, counted from 1, in an answer: its identifier or its number."""
        return self.ids[row - 1] if self.state.options.id else str(row)

    def asking(self, state: Path, row: int) -> str:
        """Return the command that gives a row, counted from 1, its label."""
        words = (f"state={state}", f"{self.answer_to(row)}=LABEL")
        return shlex.join(("fairbench", "label", "ask", *words))

    @cached_property
    def arms(self) -> pd.Series:
        """The group of every row, among which rows are chosen: of one attribute, or of all."""
        return self.table.groups.get(self.state.by, self.table.cells)

    @cached_property
    def names(self) -> list[str]:
        """The groups' names."""
        return [str(name) for name in self.arms.cat.categories]

    @cached_property
    def codes(self) -> Rows:
        """The position of every row's group."""
        return self.arms.cat.codes.to_numpy(np.int64)

    def by_group(self, rows: Any) -> Rows:
        """Return how many of the rows at some positions belong to each group."""
        return np.bincount(self.codes[rows], minlength=len(self.names))

    @cached_property
    def sizes(self) -> Rows:
        """The rows of every group."""
        return self.by_group(slice(None))

    @cached_property
    def labels(self) -> Rows:
        """The labelled rows of every group."""
        return self.by_group(self.table.known)

    @property
    def few(self) -> Mask:
        """Whether groups have too few labels to be called fine."""
        return np.asarray(self.labels < FEWEST_LABELS)

    @cached_property
    def order(self) -> Rows:
        """All rows in the order they are labelled in, within each group: drawn once for all."""
        return rng(self.state.options.seed, "order of labelling").permutation(len(self.table))

    @cached_property
    def answered(self) -> Mask:
        """Whether a person has looked at a row."""
        answered = np.zeros(len(self.table), bool)
        answered[[row - 1 for row in self.state.labels]] = True
        return answered

    @cached_property
    def done(self) -> Mask:
        """Whether a row has a label, or was looked at and could not be given one."""
        return self.answered | ~np.isnan(self.table.label)

    @property
    def progress(self) -> str:
        """How many rows have labels, as part of a sentence."""
        return f"{count(len(self.table.known))} of {count(len(self.table))} rows have labels"

    @property
    def expected(self) -> str:
        """What a label may be, for a person who is asked for one."""
        if self.predicted is not None:
            return "a number"
        names = self.classes or self.table.labels
        return " or ".join(names) if len(names) <= _MOST_NAMED else f"one of {len(names)} classes"

    def audited(self) -> AuditTable:
        """Return the table with how its rows were chosen, for an assessment."""
        about = self.state.by, self.arms, tuple(self._notes())
        sampling = GroupSampling(*about, anytime_valid=self.state.anytime_valid)
        return replace(self.table, sampling=sampling)

    def _notes(self) -> Iterator[str]:
        """Yield how many rows could not be labelled, and which were passed over."""
        unknown = sum(label == "" for label in self.state.labels.values())
        if unknown:
            yield _said("cannot_tell", count=unknown)
        if len(passed := self.passed_over()):
            named = [self.answer_to(row + 1) for row in passed[:_MOST_ROWS]]
            rows = ", ".join([*named, *(["..."] if len(passed) > _MOST_ROWS else [])])
            yield _said("passed_over", count=len(passed), rows=rows)

    def passed_over(self) -> Rows:
        """Return the rows without an answer that come before an answered one of their group."""
        codes = self.codes[self.order]
        answered = self.answered[self.order]
        last = np.full(len(self.names), -1)
        np.maximum.at(last, codes[answered], np.flatnonzero(answered))
        return self.order[(np.arange(len(codes)) < last[codes]) & ~self.done[self.order]]


def open_session(state: State, frame: pd.DataFrame | None = None) -> Session:
    """Read the predictions that a state is about, of any kind.

    Where both the file and the person give a label, the person's counts.

    Parameters
    ----------
    frame : the predictions, if they have already been read and checked.

    Raises
    ------
    UserError : if the file is missing or has changed, a column is missing, or a value is invalid.
    """
    path = state.options.path
    if frame is None and path.is_file() and file_sha256(path) != state.sha256:
        raise UserError(_said("file_changed", path=path))
    for name in filter(partial(getattr, state.options), _OF_AUDITS):
        raise UserError(f"{name}= is of fairbench audit: leave it out to label")
    frame = read_frame(state.options) if frame is None else frame
    column = state.options.id
    with columns.name_rows_in_errors(frame, column):
        session = _opened(state, frame)
    return replace(session, ids=frame[column].tolist()) if column else session


def _opened(state: State, frame: pd.DataFrame) -> Session:
    """Return the session on predictions of two classes, of numbers, or of several classes."""
    options, frame = _with_answers(state, frame)
    predictions = pd.Series()
    if options.prediction and not options.scores:
        predictions = columns.class_names(frame[options.prediction])
    if not options.scores and predictions.nunique() <= 2:
        return Session(state, read_audit_table(options, frame, labelling=True))
    is_number = np.isfinite(pd.to_numeric(predictions, errors="coerce").to_numpy())
    if not options.score_columns and is_number.all():
        return _opened_numbers(state, options, frame)
    return _opened_classes(state, options, frame)


def _opened_numbers(state: State, options: Options, frame: pd.DataFrame) -> Session:
    """Return the session on predicted numbers."""
    file, target = options.path.name, options.target
    texts = columns.class_names(frame[target])
    label = columns.numbers(texts.to_frame(target), target, file, missing="").to_numpy()
    predicted = columns.ColumnRef(file, options.prediction).numbers(frame)
    groups, cells = read_groups(frame, file, options.group, options.reference)
    no_decisions, notes = np.zeros(len(frame), np.int64), notes_on_groups(frame, options.group)
    table = AuditTable(None, no_decisions, label, groups, cells, Direction(("", "")), notes=notes)
    return Session(state, table, predicted=predicted, label_texts=texts.to_numpy(object))


def _opened_classes(state: State, options: Options, frame: pd.DataFrame) -> Session:
    """Return the session on predictions of several classes, whose labels are right or wrong."""
    scores = read_multiclass(options, frame)
    classes = np.array(scores.classes, object)
    if options.group:
        groups, cells = read_groups(frame, options.path.name, options.group, options.reference)
    else:
        cells = pd.Series(pd.Categorical(classes[scores.prediction], scores.classes))
        cells = cells.cat.remove_unused_categories()
        groups = {PREDICTED: cells}
    right, notes = np.ones(len(frame), np.int64), notes_on_groups(frame, options.group)
    arrays, direction = (scores.confidence, right, scores.correct), Direction(("wrong", "right"))
    table = AuditTable(*arrays, groups, cells, direction, notes=notes)
    label_texts = np.where(np.isnan(scores.correct), "", classes[scores.target])
    return Session(state, table, scores.classes, label_texts=label_texts)


def _with_answers(state: State, frame: pd.DataFrame) -> tuple[Options, pd.DataFrame]:
    """Return the table with the person's labels filled in, and the options to read it by."""
    options = state.options
    rows = [row - 1 for row in state.labels]
    free = (name for name in ("label", "target", "true label") if name not in frame)
    target = options.target or next(free)
    labels = frame.get(target, pd.Series("", frame.index)).astype(str)
    labels.iloc[rows] = list(state.labels.values())
    return replace(options, target=target), frame.assign(**{target: labels})


def check_labels(session: Session, pairs: Mapping[int, str]) -> dict[int, str]:
    """Return row -> label in the table's spelling, empty where the person cannot tell.

    Raises
    ------
    UserError : if the table lacks a row, or a label is none of the table's.
    """
    for row in pairs:
        if not 1 <= row <= len(session.table):
            file = session.state.options.path.name
            raise UserError(f"row {row} does not exist: {file} has rows 1 to {len(session.table)}")
    names, options = session.table.labels, session.state.options
    # Nothing said what labels are called.
    of_two = session.predicted is None and not session.classes
    is_unsaid = of_two and not (options.positive or options.prediction or len(session.table.known))
    hint = said("fairbench_label", "no_positive") if is_unsaid else ""
    labels = {}
    for row, text in pairs.items():
        if text.strip() == CANNOT_TELL:
            labels[row] = ""
            continue
        if session.predicted is not None:
            value = pd.to_numeric(text.strip(), errors="coerce")
            label, complaint = (f"{value:.12g}" if np.isfinite(value) else ""), "no number"
        elif session.classes:
            label, complaint = _class(text, session)
        else:
            label = columns.spelled(text)
            # Where only the positive label's name is known, the first other one names the negative.
            if label not in ("", names[1]) and names[0] == f"not {names[1]}":
                if _folded(label) == _folded(names[1]):
                    told = {"row": session.name(row), "text": text, "positive": names[1]}
                    raise UserError(said("fairbench_label", "other_spelling", **told))
                names = label, names[1]
            label = label if label in names else ""
            complaint = f"neither '{names[0]}' nor '{names[1]}'"
        if not label:
            wrong = f"{session.name(row)}: label '{text}' is {complaint}"
            raise UserError(f"{wrong}, and not {CANNOT_TELL} for one that cannot be told{hint}")
        labels[row] = label
    return labels


def _folded(label: str) -> str:
    """Return a spelling that labels share which differ in case and blanks alone."""
    return " ".join(label.split()).casefold()


def _class(text: str, session: Session) -> tuple[str, str]:
    """Return the class that a label names, empty if it names none, and the complaint in that case.

    A new class is allowed only if its name resembles no other's and no column has class scores.
    """
    name = str(columns.class_names(pd.Series([text])).iloc[0])
    classes = session.classes
    near = nearest(name, classes)
    label = name if name in classes or not (session.state.options.scores or near) else ""
    listed = ", ".join(classes[:_MOST_NAMED]) + (", ..." if len(classes) > _MOST_NAMED else "")
    suggestion = f" (did you mean {near[0]}?)" if near else ""
    return label, f"none of the {count(len(classes))} classes {listed}{suggestion}"


def check_same(file: StateFile, now: State, before: State) -> None:
    """Refuse a state that has become that of another table since it was read."""
    if now.sha256 != before.sha256:
        raise UserError(f"{file.path} has become the state of another table meanwhile")


def row_labels(pairs: Iterable[tuple[str, str]], session: Session) -> dict[int, str]:
    """Return row -> label of pairs such as ``("17", "1")``, or ``("C-1042", "1")`` with id=.

    Raises
    ------
    UserError : a row that is no number, an identifier that no row has, or two labels of one row.
    """
    options = session.state.options
    rows = {name: row for row, name in enumerate(session.ids, start=1)}
    labels: dict[int, str] = {}
    for name, label in pairs:
        if name not in rows:  # an identifier may hold the sign that its label comes after
            whole, _, last = f"{name}={label}".rpartition("=")
            name, label = (whole, last) if whole in rows else (name, label)
        if options.id and name not in rows:
            raise unknown_name(f"{options.id} of {options.path.name}", name, rows)
        if not options.id and not name.isdecimal():
            wanted = "rows are whole numbers, counted from 1"
            raise UserError(f"'{shortened(name)}' is no row: {wanted}")
        row = rows[name] if options.id else int(name)
        if labels.setdefault(row, label) != label:
            raise UserError(f"{session.name(row)} is given two labels")
    return labels


def pairs_in(path: Path, session: Session) -> list[tuple[str, str]]:
    """Return the rows, in the column ``row``, or identifiers, in that of ``id=``, with labels.

    Any file that an audit reads will do. Where it lists rows that are still to be labelled, with an
    empty ``label``, they are no answers.
    """
    key = session.state.options.id or "row"
    frame = read_any_table(path, (key, "label"))[[key, "label"]]
    answered = frame[frame["label"] != ""]
    return list(answered.itertuples(index=False, name=None))


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
    names, texts, given = session.table.labels, session.label_texts, session.state.labels
    in_file = {
        row + 1: names[int(session.table.label[row])] if texts is None else str(texts[row])
        for row in session.table.known.tolist()
        if row + 1 not in given
    }
    time = datetime.now(UTC).isoformat(timespec="seconds")
    new: list[Answer] = []

    def change(state: State) -> State:
        """Add the labels that are new to the state as it is now."""
        check_same(file, state, session.state)
        before = {**in_file, **state.labels}
        for row, label in labels.items():
            if before.get(row) == label:
                continue
            if before.get(row) and not overwrite:
                there = f"{session.name(row)} is labelled {before[row]} already"
                raise UserError(f"{there}; overwrite=true replaces it")
            new.append(Answer(row, label, time))
        # A third name is refused, which two people can bring about where one was still open.
        names = {*before.values(), *labels.values(), session.table.labels[1]} - {""}
        if session.label_texts is None and len(names) > 2:
            raise UserError(f"labels would have three names: {', '.join(sorted(names))}")
        # The file of predictions may be found in another place by now.
        return replace(state, options=session.state.options).with_answers(tuple(new))

    file.change(change)
    return new
