"""Files of predictions as Ji et al. released them, described by conf/scores/*.yaml."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from fairbench.core.arrays import Floats, Mask
from fairbench.core.errors import UserError, check_choice, unknown_name
from fairbench.data.columns import MulticlassScores, read_class_scores
from fairbench.data.dataset import Source
from fairbench.data.download import Archive
from fairbench.data.tables import RawTable, header, read_table, read_typed
from fairbench.inference.few_labels import PartlyLabelled

_TARGET = "true class"


@dataclass(frozen=True, kw_only=True)
class ScoreFile(Source):
    """A CSV with a row per person: label, groups, and the scores of several classifiers.

    Attributes
    ----------
    target : column of labels, 0 or 1.
    groups : column of group labels -> label of the reference group.
    scores : classifier -> column of its scores.
    inverted : the scores are probabilities of label 0.
    """

    target: str
    groups: Mapping[str, str]
    scores: Mapping[str, str]
    inverted: bool = False

    def table(
        self, archive: Archive, classifier: str, group: str, *, as_released: bool = False
    ) -> PartlyLabelled:
        """Read one classifier's scores, fully labelled.

        Parameters
        ----------
        group : one of the columns of `groups`.
        as_released : leave inverted scores as they are.

        Raises
        ------
        UserError : an unknown classifier or group, a file that is not there or not as described.
        """
        check_choice(f"classifier of {self.path}", classifier, self.scores)
        check_choice(f"group column of {self.path}", group, self.groups)
        column = self.scores[classifier]
        raw = RawTable.read(archive, self, only=(self.target, group, column))
        score = raw.number(column).to_numpy()
        if self.inverted and not as_released:
            score = 1 - score
        label = raw.flag(self.target).astype(int)
        labels = raw.text(group).to_numpy(dtype=object)
        return partly_labelled(score, labels, label, reference=self.groups[group])


@dataclass(frozen=True, kw_only=True)
class MulticlassFile(Source):
    """A table of predictions in one of two formats.

    With a header: `target`, `prediction` and `confidence` name the columns of the true class, the
    predicted class and its probability. Without one, where all three are left out: the true
    class, then the probabilities of all classes.

    Attributes
    ----------
    sha256 : may be left out. separator : between fields, one character.
    classes : names in order; of a file without a header 0 .. C - 1, if left out.
    """

    sha256: str = ""
    separator: str = " "
    target: str = ""
    prediction: str = ""
    confidence: str = ""
    classes: Sequence[str] = ()

    def scores(self, archive: Archive) -> MulticlassScores:
        """Read the file.

        Raises
        ------
        UserError : a file that is not there or not as described; names row and column.
        """
        content, classes = archive.read(self), tuple(map(str, self.classes))
        if self.target:
            names = (self.target, self.prediction, self.confidence)
            frame = read_table(content, self.path, separator=self.separator, only=names)
            return read_class_scores(
                frame,
                self.path,
                target=self.target,
                prediction=self.prediction,
                columns=[self.confidence],
                classes=classes,
            )
        width = len(header(content, self.path, self.separator)) - 1
        classes = classes or tuple(map(str, range(width)))
        columns = [f"probability of {name}" for name in classes]
        types = {_TARGET: "string", **dict.fromkeys(columns, "float64")}
        frame = read_typed(content, self.path, types, names=list(types), separator=self.separator)
        return read_class_scores(frame, self.path, target=_TARGET, columns=columns, classes=classes)


# Pools of rows from columns, which are checked.


def partly_labelled(
    score: ArrayLike,
    group: ArrayLike,
    label: ArrayLike | None = None,
    *,
    prediction: ArrayLike | None = None,
    reference: Hashable | None = None,
) -> PartlyLabelled:
    """Return a pool of rows, with columns checked and groups coded.

    Parameters
    ----------
    label : NaN or None where unknown; none at all if left out.
    prediction : `score` > 0.5 if left out.
    reference : the group differences start from; the largest if left out.

    Raises
    ------
    UserError : unequal lengths, a value that cannot be, an unknown reference group.
    """
    scores = _numbers(score, "score")
    labels = np.full(len(scores), np.nan) if label is None else _numbers(label, "label")
    decisions = scores > 0.5 if prediction is None else _numbers(prediction, "prediction")
    column = pd.Series(np.asarray(group, dtype=object))
    columns = {"score": scores, "group": column, "label": labels, "prediction": decisions}
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise UserError(f"columns of unequal lengths ({listed}); give one value a row to each")
    if not len(scores):
        raise UserError("no rows: give at least one prediction")
    _refuse("score", scores, ~((scores >= 0) & (scores <= 1)), "a probability")
    _refuse("label", labels, ~np.isin(labels, (0, 1)) & ~np.isnan(labels), "0, 1 or missing")
    _refuse("prediction", decisions, ~np.isin(decisions, (0, 1)), "0 or 1")
    _refuse("group", column.to_numpy(), column.isna().to_numpy(), "a label")
    names = list(column.value_counts().index)  # the largest group first
    first = names[0] if reference is None else reference
    if first not in names:
        raise unknown_name("reference group", str(reference), map(str, names))
    groups = (first, *sorted((name for name in names if name != first), key=str))
    codes = pd.Categorical(column, categories=list(groups)).codes
    return PartlyLabelled(
        scores, decisions.astype(np.int64), codes.astype(np.int64), labels, groups
    )


def _numbers(values: ArrayLike, name: str) -> Floats:
    try:
        return np.asarray(pd.to_numeric(pd.Series(values)), np.float64)
    except (TypeError, ValueError) as error:
        raise UserError(f"column '{name}': {str(error).splitlines()[0]}; give numbers") from error


def _refuse(name: str, values: NDArray[np.generic], wrong: Mask, expected: str) -> None:
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise UserError(f"column '{name}' is {values[row]} in row {row + 1}; it must be {expected}")
