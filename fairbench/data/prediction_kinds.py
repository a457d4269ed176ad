"""The kind of predictions, by their columns: numbers, several classes, or labels 0 and 1."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.data.class_scores import class_names
from fairbench.data.tabular import spelled, to_numbers

_MOST_CLASSES = 20  # a target with no more distinct values than this may hold classes


def are_numbers(target: pd.Series, prediction: pd.Series) -> bool:
    """Return whether targets and their predictions are numbers rather than labels or classes.

    They are if both are numbers, the target has many distinct values, and the predictions are not
    all whole numbers that the target has, too, as codes of classes would be.
    """
    if target.nunique() <= _MOST_CLASSES:
        return False
    values, predicted = to_numbers(target), to_numbers(prediction)
    if not np.isfinite(values[is_given(target)]).all() or not np.isfinite(predicted).all():
        return False
    whole = (predicted == np.round(predicted)).all()
    return not (whole and np.isin(predicted, values).all())


def is_given(text: pd.Series) -> NDArray[np.bool_]:
    """Return which values (n,) are present."""
    return np.array([spelled(str(value)) != "" for value in text])


def are_classes(target: pd.Series, prediction: pd.Series) -> bool:
    """Return whether targets and their predictions are of classes rather than labels 0 and 1.

    They are if predictions have more than three values, or if both have three or more. A third
    value in only one of them is a mistake.
    """
    predicted, labels = (len(set(class_names(column)) - {""}) for column in (prediction, target))
    return predicted > 3 or min(predicted, labels) > 2
