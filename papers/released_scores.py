"""Files of predictions as Ji et al. released them, described by conf/scores/*.yaml."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fairbench.core.errors import check_choice
from fairbench.data.columns import MulticlassScores, binary, numbers, read_class_scores
from fairbench.data.dataset import Source
from fairbench.data.download import Archive
from fairbench.data.tables import header, read_table, read_typed
from fairbench.inference.few_labels.pool import PartlyLabelled

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
        frame = read_table(archive.read(self), self.path, only=(self.target, group, column))
        score = numbers(frame, column, self.path).to_numpy()
        if self.inverted and not as_released:
            score = 1 - score
        label = binary(frame, self.target, self.path, positive="1", negative="0")
        labels = frame[group].to_numpy(dtype=object)
        return PartlyLabelled.of(score, labels, label, reference=self.groups[group])


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
