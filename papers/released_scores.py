"""Files of predictions as Ji et al. released them, described by conf/scores/*.yaml."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

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
        UserError : a file that is not there or not as described.
        """
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
    """A table of predictions, separated by spaces, in one of two formats.

    With a header: `target`, `prediction` and `confidence` name the columns of the true class, the
    predicted class and its probability. Without one, where all three are left out: the true
    class, then the probabilities of all classes, 0 .. C - 1.

    Attributes
    ----------
    sha256 : may be left out.
    """

    sha256: str = ""
    target: str = ""
    prediction: str = ""
    confidence: str = ""

    def scores(self, archive: Archive) -> MulticlassScores:
        """Read the file.

        Raises
        ------
        UserError : a file that is not there or not as described; names row and column.
        """
        content = archive.read(self)
        if self.target:
            names = (self.target, self.prediction, self.confidence)
            frame = read_table(content, self.path, separator=" ", only=names)
            return read_class_scores(
                frame,
                self.path,
                target=self.target,
                prediction=self.prediction,
                columns=[self.confidence],
            )
        classes = tuple(map(str, range(len(header(content, self.path, " ")) - 1)))
        columns = [f"probability of {name}" for name in classes]
        types = {_TARGET: "string", **dict.fromkeys(columns, "float64")}
        frame = read_typed(content, self.path, types, names=list(types), separator=" ")
        return read_class_scores(frame, self.path, target=_TARGET, columns=columns, classes=classes)


def partly_labelled(
    score: ArrayLike,
    group: ArrayLike,
    label: ArrayLike | None = None,
    *,
    prediction: ArrayLike | None = None,
    reference: Hashable,
) -> PartlyLabelled:
    """Return a pool of rows with groups coded: the reference, then the others by name.

    Parameters
    ----------
    label : NaN or None where unknown; none at all if left out.
    prediction : `score` > 0.5 if left out.
    """
    scores, names = np.asarray(score, float), np.asarray(group, object)
    labels = np.full(len(scores), np.nan) if label is None else np.asarray(label, float)
    decisions = np.asarray(scores > 0.5 if prediction is None else prediction, np.int64)
    groups = (reference, *sorted(set(names) - {reference}, key=str))
    codes = pd.Categorical(names, categories=list(groups)).codes
    return PartlyLabelled(scores, decisions, codes.astype(np.int64), labels, groups)
