"""Files of predictions as Ji et al. released them, described by conf/scores/*.yaml."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fairbench.audits.class_table import read_class_scores
from fairbench.core.errors import unknown_name
from fairbench.data.dataset import Source
from fairbench.data.delimited import header, read_table, read_typed
from fairbench.data.download import Archive
from fairbench.data.tabular import binary, numbers
from fairbench.inference.confusion_matrix import MulticlassScores
from fairbench.inference.few_labels.table import PartlyLabelled


@dataclass(frozen=True)
class ScoreFile:
    """A CSV with a row per person: label, groups, and the scores of several classifiers.

    Attributes
    ----------
    path, sha256, page : the file, its checksum, and where it was published.
    target : column of labels, 0 or 1.
    groups : column of group labels -> label of the reference group.
    scores : classifier -> column of its scores.
    inverted : the scores are probabilities of label 0.
    """

    path: str
    sha256: str
    page: str
    target: str
    groups: Mapping[str, str]
    scores: Mapping[str, str]
    inverted: bool = False

    @property
    def source(self) -> Source:
        """Return where the file is looked for, and its checksum."""
        return Source(self.path, self.sha256, (), self.page)

    def table(
        self,
        archive: Archive,
        classifier: str,
        group: str,
        *,
        merge: bool = False,
        as_released: bool = False,
    ) -> PartlyLabelled:
        """Read one classifier's scores, fully labelled.

        Parameters
        ----------
        group : one of the columns of `groups`.
        merge : everyone outside the reference group is one group, ``other``.
        as_released : leave inverted scores as they are.

        Raises
        ------
        UserError : an unknown classifier or group, a file that is not there or not as described.
        """
        for kind, name, valid in (
            ("classifier", classifier, self.scores),
            ("group column", group, self.groups),
        ):
            if name not in valid:
                raise unknown_name(f"{kind} of {self.path}", name, valid)
        columns = (self.target, group, self.scores[classifier])
        content = archive.read(self.source)
        frame = read_table(content, self.path, only=columns)
        score = numbers(frame, self.scores[classifier], self.path).to_numpy()
        if self.inverted and not as_released:
            score = 1 - score
        label = binary(frame, self.target, self.path, positive="1", negative="0")
        reference = self.groups[group]
        labels = frame[group].to_numpy(dtype=object)
        if merge:
            labels = np.where(labels == reference, reference, "other")
        return PartlyLabelled.of(score, labels, label, reference=reference)


_TARGET = "true class"


@dataclass(frozen=True)
class MulticlassFile:
    """A table of predictions in one of two formats.

    With a header: `target`, `prediction` and `confidence` name the columns of the true class, the
    predicted class and its probability. Without one, where all three are left out: the true
    class, then the probabilities of all classes.

    Attributes
    ----------
    path, sha256, page : the file, its checksum, and where it was published.
    separator : between fields, one character.
    classes : names in order; of a file without a header 0 .. C - 1, if left out.
    """

    path: str
    sha256: str = ""
    page: str = ""
    separator: str = " "
    target: str = ""
    prediction: str = ""
    confidence: str = ""
    classes: Sequence[str] = ()

    @property
    def source(self) -> Source:
        """Return where the file is looked for, and its checksum."""
        return Source(self.path, self.sha256, (), self.page)

    def scores(self, archive: Archive) -> MulticlassScores:
        """Read the file.

        Raises
        ------
        UserError : a file that is not there or not as described; names row and column.
        """
        content, classes = archive.read(self.source), tuple(map(str, self.classes))
        if not self.target:
            return self._probabilities(content, classes)
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

    def _probabilities(self, content: bytes, classes: tuple[str, ...]) -> MulticlassScores:
        width = len(header(content, self.path, self.separator)) - 1
        classes = classes or tuple(map(str, range(width)))
        columns = [f"probability of {name}" for name in classes]
        types = {_TARGET: "string", **dict.fromkeys(columns, "float64")}
        frame = read_typed(content, self.path, types, names=list(types), separator=self.separator)
        return read_class_scores(frame, self.path, target=_TARGET, columns=columns, classes=classes)
