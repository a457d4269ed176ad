"""Predictions of several classes, read from a user's file."""

from __future__ import annotations

import pandas as pd

from fairbench.audits.question import Options
from fairbench.core.errors import UserError
from fairbench.data.class_scores import MulticlassScores, class_names, read_class_scores
from fairbench.data.columns import Place, marks_of


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
    target = options.target
    if not target:
        raise UserError("target= is missing: name the column of true classes, empty if unknown")
    if not (options.scores or options.score):
        raise UserError(
            "score= is missing: name the column of the probability given to the predicted class"
        )
    places = {name: Place(options.path.name, name) for name in options.columns}
    if options.labelled:
        marks = marks_of(frame[options.labelled], places[options.labelled])
        bare = marks & (class_names(frame[target]) == "").to_numpy()
        expected = f"a class, though '{options.labelled}' is true there"
        places[target].refuse(frame[target], bare, expected)
        frame = frame.assign(**{target: frame[target].where(marks, "")})
    return read_class_scores(
        frame,
        options.path.name,
        target=target,
        prediction=options.prediction,
        columns=options.scores or [options.score],
    )
