"""A table of predictions of several classes, read from a user's file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.audits.columns import Place, marks_of
from fairbench.audits.question import Options
from fairbench.audits.table import notes_on_groups, read_groups
from fairbench.core.errors import DataError, UserError
from fairbench.data.delimited import read_table
from fairbench.data.tabular import numbers
from fairbench.inference.confusion_matrix import UNKNOWN, MulticlassScores

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

_MISSING = ("", "nan")
# Sums of rounded probabilities miss 1 by this much at most, even of a thousand classes.
_SLACK = 0.05


def from_confidence(
    frame: pd.DataFrame,
    file: str,
    *,
    target: str,
    prediction: str,
    confidence: str,
    classes: Sequence[str] = (),
) -> MulticlassScores:
    """Return predictions of which the predicted class and its probability are known.

    Parameters
    ----------
    frame : columns of strings; an empty label is unknown.
    file : the name for messages.
    classes : their names in order; if left out, those that occur, in sorted order.

    Raises
    ------
    DataError : an unknown class, no prediction, or a confidence that is no probability.
    """
    labels, predictions = class_names(frame[target]), class_names(frame[prediction])
    names = tuple(classes) or _sorted({*labels, *predictions} - {""})
    score = numbers(frame, confidence, file).to_numpy()
    _refuse(file, confidence, frame[confidence], _outside(score), "a probability from 0 to 1")
    return MulticlassScores(
        _codes(labels, names, file, target, optional=True),
        _codes(predictions, names, file, prediction),
        score,
        names,
    )


def from_probabilities(
    frame: pd.DataFrame,
    file: str,
    *,
    target: str,
    columns: Sequence[str],
    classes: Sequence[str],
    prediction: str = "",
) -> MulticlassScores:
    """Return predictions of which the probabilities of all classes are known.

    Parameters
    ----------
    frame : labels as strings, probabilities as numbers or strings.
    columns : C columns of probabilities, in the order of `classes`.
    prediction : column of predicted classes; the most probable one if left out.

    Raises
    ------
    DataError : an unknown class, or probabilities that are none or do not sum to 1.
    """
    shares = np.column_stack([numbers(frame, name, file).to_numpy() for name in columns])
    for name, each in zip(columns, shares.T, strict=True):
        _refuse(file, name, frame[name], _outside(each), "a probability from 0 to 1")
    total = shares.sum(axis=1)
    if (wrong := np.abs(total - 1) > _SLACK).any():
        row = int(np.flatnonzero(wrong)[0])
        raise DataError(
            f"{file}: columns '{columns[0]}' to '{columns[-1]}', row {row + 1}: the probabilities "
            f"of the {len(columns)} classes sum to {total[row]:.3g}, not 1"
        )
    codes = _codes(class_names(frame[target]), classes, file, target, optional=True)
    chosen = shares.argmax(axis=1).astype(np.int64)
    if prediction:
        chosen = _codes(class_names(frame[prediction]), classes, file, prediction)
    confidence = shares[np.arange(len(shares)), chosen]
    return MulticlassScores(codes, chosen, confidence, tuple(classes), shares)


def class_names(column: pd.Series) -> pd.Series:
    """Return labels with whole numbers in one spelling, 5 for 5.0, and empty where missing."""
    text = column.astype(str).str.strip()
    text = text.mask(text.str.lower().isin(_MISSING), "")
    value = pd.to_numeric(text, errors="coerce")
    whole = np.isfinite(value) & (value % 1 == 0) & (value.abs() < 1e15)
    return text.mask(whole, value.where(whole, 0).astype(np.int64).astype(str))


def _sorted(names: set[str]) -> tuple[str, ...]:
    """Return names in the order of their numbers where all are numbers, or of the alphabet."""
    numeric = all(name.lstrip("-").isdigit() for name in names)
    return tuple(sorted(names, key=int if numeric else str))


def _codes(
    names: pd.Series, classes: Sequence[str], file: str, column: str, *, optional: bool = False
) -> Codes:
    """Return places among the classes; `UNKNOWN` where there is no name."""
    codes = pd.Index(classes).get_indexer(pd.Index(names)).astype(np.int64)
    missing = (names == "").to_numpy()
    wrong = (codes < 0) & ~(missing & optional)
    listed = ", ".join(classes[:5]) + (", ..." if len(classes) > 5 else "")
    _refuse(file, column, names, wrong, f"one of the {len(classes)} classes ({listed})")
    return np.where(missing, UNKNOWN, codes)


def _outside(share: Floats) -> NDArray[np.bool_]:
    return (share < 0) | (share > 1)


def _refuse(
    file: str, column: str, values: pd.Series, wrong: NDArray[np.bool_], expected: str
) -> None:
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        value = str(values.iloc[row])
        raise DataError(f"{file}: column '{column}', row {row + 1}: {value!r} is not {expected}")


@dataclass(frozen=True, eq=False)
class MulticlassTable:
    """Multi-class predictions, with groups if any are named, and costs of mistakes if given.

    Attributes
    ----------
    groups : attribute, or combination of two -> (n,) categorical labels.
    costs : (C, C), true class by predicted class.
    notes : what a reader should know of the groups' labels.
    """

    scores: MulticlassScores
    groups: Mapping[str, pd.Series]
    costs: Floats | None
    notes: Sequence[str] = ()


def is_multiclass(options: Options, frame: pd.DataFrame) -> bool:
    """Say whether a table is of classes rather than of labels 0 and 1.

    It is where several columns of scores are named, or predictions have more than three values,
    or have three and labels too: a third value in one of them alone is a mistake in it.
    """
    if options.scores:
        return True
    if not (options.target and options.prediction):
        return False
    columns = (frame[options.prediction], frame[options.target])
    predicted, labels = (len(set(class_names(column)) - {""}) for column in columns)
    return predicted > 3 or min(predicted, labels) > 2


def read_multiclass_table(options: Options, frame: pd.DataFrame) -> MulticlassTable:
    """Return the table that `options` describe.

    Raises
    ------
    UserError : a column that is not named, or a value that cannot be; names row and column.
    """
    file, target = options.path.name, options.target
    if not target:
        raise UserError("target= is missing: name the column of true classes, empty if unknown")
    places = {name: Place(file, name) for name in options.columns}
    if options.labelled:
        marks = marks_of(frame[options.labelled], places[options.labelled])
        bare = marks & (class_names(frame[target]) == "").to_numpy()
        expected = f"a class, though '{options.labelled}' is true there"
        places[target].refuse(frame[target], bare, expected)
        frame = frame.assign(**{target: frame[target].where(marks, "")})
    scores = _scores(options, frame, file)
    groups = read_groups(frame, places, options)[0] if options.group else {}
    costs = read_costs(options.cost, scores.classes) if options.cost else None
    return MulticlassTable(scores, groups, costs, notes_on_groups(frame, options))


def _scores(options: Options, frame: pd.DataFrame, file: str) -> MulticlassScores:
    target, prediction = options.target, options.prediction
    if options.scores:
        classes = _classes(options.scores, frame[target])
        return from_probabilities(
            frame, file, target=target, columns=options.scores, classes=classes,
            prediction=prediction,
        )  # fmt: skip
    if not options.score:
        raise UserError(
            "score= is missing: name the column of the probability given to the predicted class"
        )
    return from_confidence(
        frame, file, target=target, prediction=prediction, confidence=options.score
    )


def _classes(columns: Sequence[str], target: pd.Series) -> list[str]:
    """Return what columns of probabilities are of: their names, or what follows a shared start."""
    labels = set(class_names(target)) - {""}
    start = len(os.path.commonprefix(list(columns)))
    rest = [name[start:] for name in columns]
    return rest if all(rest) and not labels <= set(columns) else list(columns)


def read_costs(path: str, classes: Sequence[str]) -> Floats:
    """Read a (C, C) matrix of costs: a first column of true classes, a header of predicted ones.

    Raises
    ------
    UserError : a file that is not there, a class that is missing, or a cost that is no number.
    """
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError as error:
        raise UserError(f"cost={path} cannot be read: {error}") from error
    frame = read_table(content, path)
    first, *found = frame.columns
    rows = class_names(frame[first])
    for kind, names in (("column", found), ("row", list(rows))):
        for name in classes:
            if names.count(name) != 1:
                raise UserError(f"{path}: {names.count(name)} {kind}s of class '{name}', not 1")
    order = [list(rows).index(name) for name in classes]
    values = [numbers(frame, name, path).to_numpy()[order] for name in classes]
    return np.column_stack(values)
