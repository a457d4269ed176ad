"""Columns of a table made multi-class predictions, or refused with column and row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.core.errors import DataError
from fairbench.data.tabular import numbers
from fairbench.inference.multiclass_scores import UNKNOWN, MulticlassScores

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
