"""Probabilities of several classes, with costs of mistakes, or of groups: arrays and files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.core.arrays import Floats
from fairbench.core.errors import UserError
from fairbench.data.columns import ColumnRef, RowError, numbers_of, scores_of
from fairbench.data.delimited import read_table
from fairbench.data.tabular import numbers

Codes = NDArray[np.int64]

UNKNOWN = -1
_MISSING = ("", "nan")
# Sums of rounded probabilities miss 1 by this much at most, even of a thousand classes.
_SLACK = 0.05
_GROUP_SLACK = 0.02  # the same for groups, which are few


@dataclass(frozen=True, eq=False)
class MulticlassScores:
    """A pool of rows with predicted classes and confidences; labels where they are known.

    Attributes
    ----------
    target : (n,) codes into `classes`, `UNKNOWN` where there is no label.
    prediction : (n,) codes of the predicted classes.
    confidence : (n,) probability that the classifier gave its prediction, in [0, 1].
    classes : names of the C classes.
    probabilities : (n, C) of all classes, or None.
    """

    target: Codes
    prediction: Codes
    confidence: Floats
    classes: tuple[str, ...]
    probabilities: Floats | None = None

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.prediction)

    @property
    def labelled(self) -> Codes:
        """Return the positions of the rows with a label."""
        return np.flatnonzero(self.target != UNKNOWN)

    @cached_property
    def correct(self) -> Floats:
        """(n,) 1 where the prediction is right, 0 where it is wrong, NaN without a label."""
        right = (self.target == self.prediction).astype(np.float64)
        return np.where(self.target == UNKNOWN, np.nan, right)

    def showing(self, rows: Codes) -> MulticlassScores:
        """Return this pool with only the labels of `rows`."""
        target = np.full(len(self), UNKNOWN)
        target[rows] = self.target[rows]
        return replace(self, target=target)

    def distribution(self) -> Floats:
        """Return (n, C) probabilities; what a lone confidence leaves is shared by the others."""
        if self.probabilities is not None:
            return self.probabilities
        n = len(self)
        other_classes = max(len(self.classes) - 1, 1)
        shares = np.repeat(
            ((1 - self.confidence) / other_classes)[:, None], len(self.classes), axis=1
        )
        shares[np.arange(n), self.prediction] = self.confidence
        return shares


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
    columns : the column with the probability of the predicted class, or one for each of `classes`.
    prediction : column of predicted classes; if left out, the most probable of all is predicted.
    classes : their names in order; if left out, what the columns of all of them are called, or
        those that occur, in sorted order.

    Raises
    ------
    UserError : an unknown class, no prediction, or probabilities that are none or do not sum to 1.
    """
    shares = np.column_stack([scores_of(frame, ColumnRef(file, name)) for name in columns])
    labels = class_names(frame[target])
    predicted = class_names(frame[prediction]) if prediction else labels
    names = tuple(classes) or _sort_names({*labels, *predicted} - {""})
    if len(columns) > 1:
        _check_sums(shares, columns, file, "classes", _SLACK)
        names = tuple(classes) or _classes(columns, labels)
    targets = _codes(labels, names, ColumnRef(file, target), optional=True)
    most_probable = shares.argmax(axis=1).astype(np.int64)
    chosen = _codes(predicted, names, ColumnRef(file, prediction)) if prediction else most_probable
    if len(columns) == 1:
        return MulticlassScores(targets, chosen, shares[:, 0], names)
    confidence = shares[np.arange(len(shares)), chosen]
    return MulticlassScores(targets, chosen, confidence, names, shares)


def class_names(column: pd.Series) -> pd.Series:
    """Return labels with whole numbers in one spelling, 5 for 5.0; missing ones are empty."""
    text = column.astype(str).str.strip()
    text = text.mask(text.str.lower().isin(_MISSING), "")
    value = pd.to_numeric(text, errors="coerce")
    whole = np.isfinite(value) & (value % 1 == 0) & (value.abs() < 1e15)
    return text.mask(whole, value.where(whole, 0).astype(np.int64).astype(str))


def _sort_names(names: set[str]) -> tuple[str, ...]:
    """Return names sorted as numbers if all are numbers, else alphabetically."""
    numeric = all(name.lstrip("-").isdigit() for name in names)
    return tuple(sorted(names, key=int if numeric else str))


def _codes(
    names: pd.Series, classes: Sequence[str], column: ColumnRef, *, optional: bool = False
) -> Codes:
    """Return names as positions among the classes; `UNKNOWN` where there is no name."""
    codes = pd.Index(classes).get_indexer(pd.Index(names)).astype(np.int64)
    missing = (names == "").to_numpy()
    listed = ", ".join(classes[:5]) + (", ..." if len(classes) > 5 else "")
    expected = f"one of the {len(classes)} classes ({listed})"
    column.refuse(names, (codes < 0) & ~(missing & optional), expected)
    return np.where(missing, UNKNOWN, codes)


def _classes(columns: Sequence[str], labels: pd.Series) -> tuple[str, ...]:
    """Return the classes of columns of probabilities: their names without the shared beginning."""
    start = len(os.path.commonprefix(list(columns)))
    suffixes = tuple(name[start:] for name in columns)
    return suffixes if all(suffixes) and not {*labels} - {""} <= {*columns} else tuple(columns)


def read_group_shares(
    frame: pd.DataFrame, file: str, columns: Sequence[str]
) -> tuple[list[str], Floats]:
    """Return the names of groups, and (n, G) the probability of each, which sum to 1.

    Parameters
    ----------
    file : the name of the file, for messages.
    columns : a column for each group, which gives the group its name; with one column, everybody
        else is the other group.

    Raises
    ------
    UserError : a probability that is none, or of a row that do not sum to 1.
    """
    shares = np.column_stack([numbers_of(frame, ColumnRef(file, name)) for name in columns])
    for name, share in zip(columns, shares.T, strict=True):
        is_outside = (share < 0) | (share > 1)
        ColumnRef(file, name).refuse(frame[name], is_outside, "a probability between 0 and 1")
    if len(columns) == 1:
        return [f"not {columns[0]}", *columns], np.hstack([1 - shares, shares])
    hint = "; name a column for every group"
    _check_sums(shares, columns, file, "groups", _GROUP_SLACK, hint)
    return list(columns), shares / shares.sum(axis=1)[:, None]


def _check_sums(
    shares: Floats, columns: Sequence[str], file: str, of_what: str, slack: float, hint: str = ""
) -> None:
    """Refuse the first row whose probabilities (n, K) miss the sum of 1 by more than `slack`."""
    total = shares.sum(axis=1)
    if (wrong := np.abs(total - 1) > slack).any():
        row = int(np.flatnonzero(wrong)[0])
        raise RowError(
            f"{file}: columns '{columns[0]}' to '{columns[-1]}', row {row + 1}: the probabilities "
            f"of the {len(columns)} {of_what} sum to {total[row]:.3g}, not 1{hint}",
            row + 1,
        )


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
    label_column, *columns = frame.columns
    rows = list(class_names(frame[label_column]))
    for kind, names in (("column", columns), ("row", rows)):
        for name in classes:
            if names.count(name) != 1:
                raise UserError(f"{path}: {names.count(name)} {kind}s of class '{name}', not 1")
    order = [rows.index(name) for name in classes]
    return np.column_stack([numbers(frame, name, path).to_numpy()[order] for name in classes])
