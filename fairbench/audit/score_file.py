"""Tables of scores that a paper released or a user brings, described by conf/scores/*.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fairbench.core.errors import unknown_name
from fairbench.data.dataset import Source
from fairbench.data.delimited import read_table
from fairbench.data.download import Archive
from fairbench.data.tabular import binary, numbers
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
