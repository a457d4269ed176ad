"""An audit in progress: the predictions, the labels so far, and the order rows are labelled in.

Predictions are of two classes, of several, or numbers. Of several classes, a label says whether the
predicted one is right; so to the choice of rows they are a table of two, of which each row's
prediction is that it is right, and its score how likely.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.audits.class_table import class_names, read_multiclass
from fairbench.audits.columns import read_frame
from fairbench.audits.group_sampling import GroupSampling
from fairbench.audits.labelling.state import State, sha256
from fairbench.audits.question import Options
from fairbench.audits.table import AuditTable, notes_on_groups, read_audit_table, read_groups
from fairbench.core.errors import UserError, nearest
from fairbench.core.formats import count
from fairbench.core.seeds import rng
from fairbench.data.columns import Place, marks_of
from fairbench.data.tabular import numbers, spelled

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
_MOST_ROWS = 5
CANNOT_TELL = "?"
PREDICTED = "predicted class"
_MOST_NAMED = 8


@dataclass(frozen=True, eq=False)
class Subject:
    """Predictions as rows are chosen from them.

    Attributes
    ----------
    table : with the labels so far; of several classes, whether predictions are right.
    classes : names of the classes, where there are more than two.
    fixed : whether no label can be of another class.
    predicted : (n,) predicted numbers, of a regression.
    told : (n,) labels in words, empty where unknown; of what is not of two classes.
    """

    table: AuditTable
    classes: tuple[str, ...] = ()
    fixed: bool = False
    predicted: Floats | None = None
    told: NDArray[np.object_] | None = None

    @property
    def expected(self) -> str:
        """What a label may be, for a person who is asked for one."""
        if self.predicted is not None:
            return "a number"
        names = self.classes or self.table.labels
        return " or ".join(names) if len(names) <= _MOST_NAMED else f"one of {len(names)} classes"

    def label_in_file(self, position: int) -> str:
        """Return the label of a row that has one."""
        if self.told is not None:
            return str(self.told[position])
        return self.table.labels[int(self.table.label[position])]


def read_subject(
    options: Options, answers: Mapping[int, str], frame: pd.DataFrame | None = None
) -> Subject:
    """Read the file that `options` describe, of whichever kind its predictions are.

    Parameters
    ----------
    answers : position -> label, empty where it cannot be told; they go before the file's.
    frame : the file's columns, where they were read before.

    Raises
    ------
    UserError : a file or column that is not there, or a value that cannot be.
    """
    if options.leave_out:
        raise UserError(
            "leave_out= changes which row is which: while you label, leave it out; a report may "
            "have it"
        )
    frame = read_frame(options) if frame is None else frame
    if options.scores:
        return _classes(options, answers, frame)
    if not options.prediction:
        return Subject(read_audit_table(options, answers, frame))
    predictions = class_names(frame[options.prediction])
    if predictions.nunique() <= 2:
        return Subject(read_audit_table(options, answers, frame))
    is_number = np.isfinite(pd.to_numeric(predictions, errors="coerce").to_numpy())
    if not options.score and is_number.all():
        return _regression(options, answers, frame)
    return _classes(options, answers, frame)


def _with_answers(
    options: Options, answers: Mapping[int, str], frame: pd.DataFrame
) -> tuple[Options, pd.DataFrame]:
    """Return options and a table with all labels so far in the column of the target."""
    target = options.target or next(
        name for name in ("label", "target", "true label") if name not in frame
    )
    text = frame[target].astype(str) if options.target else pd.Series("", frame.index, dtype=str)
    if options.labelled:
        marks = marks_of(frame[options.labelled], Place(options.path.name, options.labelled))
        text = text.where(marks, "")
    text = text.copy()
    text.iloc[list(answers)] = list(answers.values())
    return replace(options, target=target, labelled=""), frame.assign(**{target: text})


def _classes(options: Options, answers: Mapping[int, str], frame: pd.DataFrame) -> Subject:
    options, frame = _with_answers(options, answers, frame)
    scores = read_multiclass(options, frame)
    names = np.array(scores.classes, object)
    if options.group:
        places = {name: Place(options.path.name, name) for name in options.columns}
        groups, cells = read_groups(frame, places, options)
    else:
        cells = pd.Series(pd.Categorical(names[scores.prediction], scores.classes))
        cells = cells.cat.remove_unused_categories()
        groups = {PREDICTED: cells}
    right = np.ones(len(scores), np.int64)
    table = AuditTable(
        scores.confidence,
        right,
        scores.correct,
        groups,
        cells,
        ("wrong", "right"),
        notes=notes_on_groups(frame, options),
    )
    told = np.where(np.isnan(scores.correct), "", names[scores.target])
    return Subject(table, scores.classes, bool(options.scores), told=told)


def _regression(options: Options, answers: Mapping[int, str], frame: pd.DataFrame) -> Subject:
    options, frame = _with_answers(options, answers, frame)
    file = options.path.name
    places = {name: Place(file, name) for name in options.columns}
    groups, cells = read_groups(frame, places, options)
    target = class_names(frame[options.target])
    label = numbers(frame.assign(**{options.target: target}), options.target, file, missing="")
    predicted = numbers(frame, options.prediction, file).to_numpy()
    nothing = np.zeros(len(frame), np.int64)
    notes = notes_on_groups(frame, options)
    table = AuditTable(None, nothing, label.to_numpy(), groups, cells, ("", ""), notes=notes)
    return Subject(table, predicted=predicted, told=target.to_numpy(object))


@dataclass(frozen=True, eq=False)
class Session:
    """A state, with the table it is about.

    Attributes
    ----------
    table : with all labels so far, the file's and the person's.
    of : what the table is of, where that is not two classes.
    """

    state: State
    table: AuditTable
    of: Subject | None = None

    @property
    def subject(self) -> Subject:
        """What is labelled; predictions of two classes unless it is said."""
        return self.of or Subject(self.table)

    @cached_property
    def arms(self) -> pd.Series:
        """The group of every row, as rows are chosen among groups."""
        return arms_of(self.table, self.state.by)

    @cached_property
    def names(self) -> list[str]:
        """The groups' names."""
        return [str(name) for name in self.arms.cat.categories]

    @cached_property
    def codes(self) -> Rows:
        """The position of every row's group."""
        codes: Rows = self.arms.cat.codes.to_numpy(np.int64)
        return codes

    @cached_property
    def sizes(self) -> Rows:
        """The rows of every group."""
        return np.bincount(self.codes, minlength=len(self.names))

    @cached_property
    def order(self) -> Rows:
        """All rows in the order they are labelled in, within each group: drawn once for all."""
        return rng(self.state.options.seed, "order of labelling").permutation(len(self.table))

    @cached_property
    def done(self) -> NDArray[np.bool_]:
        """Whether a row has a label, or was looked at and could not be given one."""
        done = ~np.isnan(self.table.label)
        done[[row - 1 for row in self.state.labels]] = True
        return done

    @cached_property
    def answered(self) -> Rows:
        """Each group's rows that a person has looked at."""
        rows = np.array(list(self.state.labels), np.int64) - 1
        return np.bincount(self.codes[rows], minlength=len(self.names))

    @property
    def progress(self) -> str:
        """How many rows have labels, as part of a sentence."""
        return f"{count(len(self.table.known))} of {count(len(self.table))} rows have labels"

    def waiting(self, part: tuple[int, int] = (1, 1)) -> Rows:
        """Return the rows still to be labelled, in their order.

        Parameters
        ----------
        part : (k, m): those of the k-th of m people, who label different rows.
        """
        mine = self.order[part[0] - 1 :: part[1]]
        return mine[~self.done[mine]]

    def left(self, waiting: Rows) -> Rows:
        """Return how many rows of each group are still to be labelled."""
        return np.bincount(self.codes[waiting], minlength=len(self.names))

    def audited(self) -> AuditTable:
        """Return the table with how its rows were chosen, for an assessment."""
        notes = tuple(self._notes())
        sampling = GroupSampling(self.state.by, self.arms, notes, whenever=self.state.whenever)
        return replace(self.table, sampling=sampling)

    def _notes(self) -> Sequence[str]:
        notes = []
        unknown = sum(label == "" for label in self.state.labels.values())
        if unknown:
            notes.append(
                f"Rows that were looked at and could not be labelled: {count(unknown)}. Figures "
                "hold as far as these are like the other rows of their groups."
            )
        if len(passed := self.passed_over()):
            rows = ", ".join(str(row + 1) for row in passed[:_MOST_ROWS])
            more = ", ..." if len(passed) > _MOST_ROWS else ""
            notes.append(
                f"Rows without a label that come before labelled ones of their group: "
                f"{count(len(passed))} ({rows}{more}). Figures hold if it was not for what they "
                "look like that they were passed over; next names them first."
            )
        return notes

    def passed_over(self) -> Rows:
        """Return the rows without an answer that come before an answered one of their group."""
        answered = np.zeros(len(self.table), bool)
        answered[[row - 1 for row in self.state.labels]] = True
        codes, found = self.codes[self.order], answered[self.order]
        places = np.arange(len(codes))
        last = np.full(len(self.names), -1)
        np.maximum.at(last, codes[found], places[found])
        return self.order[(places < last[codes]) & ~self.done[self.order]]


def open_session(state: State, frame: pd.DataFrame | None = None) -> Session:
    """Read the predictions that a state is about.

    Parameters
    ----------
    frame : the predictions, where they were read and compared before.

    Raises
    ------
    UserError : they are not there, or not what they were.
    """
    path = state.options.path
    if frame is None and path.is_file() and sha256(path) != state.sha256:
        raise UserError(
            f"{path} has changed since this audit began, so that labels may belong to other rows: "
            "put the old file back, or start another state"
        )
    answers = {row - 1: label for row, label in state.labels.items()}
    subject = read_subject(state.options, answers, frame)
    return Session(state, subject.table, subject)


def arms_of(table: AuditTable, by: str) -> pd.Series:
    """Return the groups that rows are chosen among: of some attributes, or of all combined."""
    return table.groups.get(by, table.cells)


def checked(session: Session, pairs: Mapping[int, str]) -> dict[int, str]:
    """Return row -> label in the table's spelling, empty where the person cannot tell.

    Raises
    ------
    UserError : a row that the table does not have, or a label that cannot be.
    """
    subject = session.subject
    for row in pairs:
        if not 1 <= row <= len(session.table):
            file = session.state.options.path.name
            raise UserError(f"row {row} does not exist: {file} has rows 1 to {len(session.table)}")
    if subject.predicted is not None:
        return {row: _number(row, text) for row, text in pairs.items()}
    if subject.classes:
        return {row: _class(row, text, subject) for row, text in pairs.items()}
    return _of_two(pairs, subject.table.labels)


def _number(row: int, text: str) -> str:
    if text.strip() == CANNOT_TELL:
        return ""
    value = pd.to_numeric(text.strip(), errors="coerce")
    if not np.isfinite(value):
        raise UserError(
            f"row {row}: label '{text}' is no number, and not {CANNOT_TELL} for one that cannot "
            "be told"
        )
    return f"{value:.12g}"


def _class(row: int, text: str, subject: Subject) -> str:
    """Return the class that a label names; a new one only if it looks like none that is there."""
    if text.strip() == CANNOT_TELL:
        return ""
    name = str(class_names(pd.Series([text])).iloc[0])
    near = nearest(name, subject.classes)
    if name in subject.classes or (name and not subject.fixed and not near):
        return name
    names = ", ".join(subject.classes[:_MOST_NAMED])
    more = ", ..." if len(subject.classes) > _MOST_NAMED else ""
    meant = f" (did you mean {near[0]}?)" if near else ""
    raise UserError(
        f"row {row}: label '{text}' is none of the {count(len(subject.classes))} classes "
        f"{names}{more}{meant}, and not {CANNOT_TELL} for one that cannot be told"
    )


def _of_two(pairs: Mapping[int, str], names: tuple[str, str]) -> dict[int, str]:
    negative, positive = names
    # Where only the positive label's name is known, the first other one names the negative.
    open_name = negative == f"not {positive}"
    found = {}
    for row, text in pairs.items():
        label = "" if text.strip() == CANNOT_TELL else spelled(text)
        if label and open_name and label != positive:
            negative, open_name = label, False
        if label not in ("", negative, positive) or (not label and text.strip() != CANNOT_TELL):
            raise UserError(
                f"row {row}: label '{text}' is neither '{negative}' nor '{positive}', and not "
                f"{CANNOT_TELL} for one that cannot be told"
            )
        found[row] = label
    return found
