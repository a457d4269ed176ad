"""Predictions of several classes, and costs of their mistakes, read from a user's file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.audits.question import Options
from fairbench.core.errors import DataError, UserError
from fairbench.data.columns import Place, marks_of, scores_of
from fairbench.data.delimited import read_table
from fairbench.data.tabular import numbers
from fairbench.inference.confusion_matrix import UNKNOWN, MulticlassScores

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

_MISSING = ("", "nan")
# Sums of rounded probabilities miss 1 by this much at most, even of a thousand classes.
_SLACK = 0.05


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


def read_multiclass(options: Options, frame: pd.DataFrame) -> MulticlassScores:
    """Return the predictions that `options` describe.

    Raises
    ------
    UserError : a column that is not named, or a value that cannot be; names row and column.
    """
    file, target, scores = options.path.name, options.target, options.scores
    if not target:
        raise UserError("target= is missing: name the column of true classes, empty if unknown")
    if not (scores or options.score):
        raise UserError(
            "score= is missing: name the column of the probability given to the predicted class"
        )
    if options.labelled:
        marks = marks_of(frame[options.labelled], Place(file, options.labelled))
        bare = marks & (class_names(frame[target]) == "").to_numpy()
        expected = f"a class, though '{options.labelled}' is true there"
        Place(file, target).refuse(frame[target], bare, expected)
        frame = frame.assign(**{target: frame[target].where(marks, "")})
    return read_class_scores(
        frame,
        file,
        target=target,
        prediction=options.prediction,
        columns=scores or [options.score],
        classes=_classes(scores, frame[target]) if scores else (),
    )


def read_class_scores(
    frame: pd.DataFrame,
    file: str,
    *,
    target: str,
    columns: Sequence[str],
    prediction: str = "",
    classes: Sequence[str] = (),
) -> MulticlassScores:
    """Return predictions of several classes.

    Parameters
    ----------
    frame : columns of strings, or numbers where they are probabilities; an empty label is unknown.
    file : the name for messages.
    columns : of the probability of the predicted class alone, or of those of all `classes`.
    prediction : column of predicted classes; if left out, the most probable of all is predicted.
    classes : their names in order; if left out, those that occur, in sorted order.

    Raises
    ------
    UserError : an unknown class, no prediction, or probabilities that are none or do not sum to 1.
    """
    shares = np.column_stack([scores_of(frame, Place(file, name)) for name in columns])
    total = shares.sum(axis=1)
    if len(columns) > 1 and (wrong := np.abs(total - 1) > _SLACK).any():
        row = int(np.flatnonzero(wrong)[0])
        raise DataError(
            f"{file}: columns '{columns[0]}' to '{columns[-1]}', row {row + 1}: the probabilities "
            f"of the {len(columns)} classes sum to {total[row]:.3g}, not 1"
        )
    labels = class_names(frame[target])
    predicted = class_names(frame[prediction]) if prediction else labels
    names = tuple(classes) or _sorted({*labels, *predicted} - {""})
    targets = _codes(labels, names, Place(file, target), optional=True)
    most_probable = shares.argmax(axis=1).astype(np.int64)
    chosen = _codes(predicted, names, Place(file, prediction)) if prediction else most_probable
    if len(columns) == 1:
        return MulticlassScores(targets, chosen, shares[:, 0], names)
    confidence = shares[np.arange(len(shares)), chosen]
    return MulticlassScores(targets, chosen, confidence, names, shares)


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
    names: pd.Series, classes: Sequence[str], place: Place, *, optional: bool = False
) -> Codes:
    """Return places among the classes; `UNKNOWN` where there is no name."""
    codes = pd.Index(classes).get_indexer(pd.Index(names)).astype(np.int64)
    missing = (names == "").to_numpy()
    listed = ", ".join(classes[:5]) + (", ..." if len(classes) > 5 else "")
    expected = f"one of the {len(classes)} classes ({listed})"
    place.refuse(names, (codes < 0) & ~(missing & optional), expected)
    return np.where(missing, UNKNOWN, codes)


def _classes(columns: Sequence[str], target: pd.Series) -> list[str]:
    """Return what columns of probabilities are of: their names, or what follows a shared start."""
    start = len(os.path.commonprefix(list(columns)))
    rest = [name[start:] for name in columns]
    labels = set(class_names(target)) - {""}
    return rest if all(rest) and not labels <= set(columns) else list(columns)


def read_costs(path: str, classes: Sequence[str]) -> Floats:
    """Read a (C, C) matrix of costs: a first column of true classes, a header of predicted ones.

    Raises
    ------
    UserError : a file that is not there, a class that is missing, or a cost that is no number.
    """
    try:
        frame = read_table(Path(path).read_bytes(), path)
    except OSError as error:
        raise UserError(f"cost={path} cannot be read: {error}") from error
    first, *columns = frame.columns
    rows = list(class_names(frame[first]))
    for kind, names in (("column", columns), ("row", rows)):
        for name in classes:
            if names.count(name) != 1:
                raise UserError(f"{path}: {names.count(name)} {kind}s of class '{name}', not 1")
    order = [rows.index(name) for name in classes]
    return np.column_stack([numbers(frame, name, path).to_numpy()[order] for name in classes])
