"""Reading a user's table of multi-class predictions, and telling that it is one."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.audit.columns import Place, marks_of
from fairbench.audit.grouping import read_groups
from fairbench.audit.multiclass_columns import class_names, from_confidence, from_probabilities
from fairbench.audit.options import Options
from fairbench.core.errors import UserError
from fairbench.data.delimited import read_table
from fairbench.data.tabular import numbers
from fairbench.inference.multiclass_scores import MulticlassScores

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class MulticlassTable:
    """Multi-class predictions, with groups if any are named, and costs of mistakes if given.

    Attributes
    ----------
    groups : attribute, or combination of two -> (n,) categorical labels.
    costs : (C, C), true class by predicted class.
    """

    scores: MulticlassScores
    groups: Mapping[str, pd.Series]
    costs: Floats | None


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
    return MulticlassTable(scores, groups, costs)


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
