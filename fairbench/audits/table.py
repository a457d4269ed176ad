"""A table of predictions, read: scores, decisions, labels and the groups of every attribute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.audits.columns import read_frame
from fairbench.audits.group_sampling import GroupSampling
from fairbench.audits.question import Options
from fairbench.core.errors import unknown_name
from fairbench.data.columns import (
    Place,
    clusters_of,
    decisions_of,
    labels_of,
    marks_of,
    notes_on_decisions,
    scores_of,
    weights_of,
)
from fairbench.data.groups import notes_on_groups, read_groups, references_of
from fairbench.data.leakage import check_score, notes_on_labels
from fairbench.data.tabular import spelled
from fairbench.evaluation.evaluator import design_of
from fairbench.inference.survey import Design

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class AuditTable:
    """Predictions of one classifier, with groups, and labels where they are known.

    Attributes
    ----------
    score : (n,) probability of label 1, where there are scores.
    prediction, label : (n,) decisions, and labels, NaN where unknown.
    groups : attribute, or combination of two -> (n,) categorical labels, the largest group first;
        none where there are too many to compare each two, or nobody's group is known.
    cells : (n,) combinations of all attributes.
    labels : what 0 and 1 are called.
    sampling : how rows were chosen for labelling, where that was not at random among all.
    design : weights of the rows and which of them belong together, where either is known.
    selected : (n,) whose labels there can be, where that is not everyone.
    references : attribute -> the group that somebody named to compare its others with.
    notes : what a reader should know of the groups' labels.
    favourable : the label that is good for a person, 0 or 1.
    """

    score: Floats | None
    prediction: NDArray[np.int64]
    label: Floats
    groups: Mapping[str, pd.Series]
    cells: pd.Series
    labels: tuple[str, str]
    sampling: GroupSampling | None = None
    design: Design | None = None
    selected: NDArray[np.bool_] | None = None
    references: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()
    favourable: int = 1

    def of_selected(self) -> AuditTable:
        """Return the rows of those who were selected."""
        if self.selected is None:
            return self
        rows = self.selected

        def kept(labels: pd.Series) -> pd.Series:
            return labels[rows].cat.remove_unused_categories().reset_index(drop=True)

        return replace(
            self,
            score=None if self.score is None else self.score[rows],
            prediction=self.prediction[rows],
            label=self.label[rows],
            groups={name: kept(labels) for name, labels in self.groups.items()},
            cells=kept(self.cells),
            selected=None,
        )

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.prediction)

    @property
    def favoured(self) -> NDArray[np.bool_]:
        """Who gets the favourable decision (n,)."""
        favoured: NDArray[np.bool_] = self.prediction == self.favourable
        return favoured

    @property
    def known(self) -> NDArray[np.int64]:
        """The positions of the rows with a label."""
        return np.flatnonzero(~np.isnan(self.label))


def read_audit_table(
    options: Options, frame: pd.DataFrame | None = None, *, many: bool = False
) -> AuditTable:
    """Read the file that `options` describe.

    Parameters
    ----------
    many : there are so many groups that they are estimated together: of the combinations of all
        attributes alone, and no two are compared.
    frame : the file's columns, where they were read before.

    Raises
    ------
    UserError : a file or column that is not there, or a value that cannot be; names the row.
    """
    frame = read_frame(options) if frame is None else frame
    file = options.path.name
    label, names = _labels(frame, options)
    selected = score = None
    if options.selected:
        place = Place(file, options.selected)
        selected = marks_of(frame[options.selected], place)
        if not selected.any():
            raise place.fault("is true in no row: nobody was selected, and no label can be known")
        label = np.where(selected, label, np.nan)
    if options.score:
        score = scores_of(frame, Place(file, options.score))
    decided = Place(file, options.prediction)
    prediction = decisions_of(frame, decided, names, score, options.threshold)
    if score is not None:
        check_score(label, score, file, options.score)
    groups: Mapping[str, pd.Series] = {}
    if options.proxy:
        cells = pd.Series(pd.Categorical(["everyone"] * len(frame)))
    else:
        groups, cells = read_groups(frame, file, options.group, options.reference, many=many)
    singles = {name: groups[name] for name in options.group if groups}
    named = references_of(singles, options.reference) if groups else {}
    return AuditTable(
        score,
        prediction,
        label,
        groups,
        cells,
        names,
        design=design_of_options(frame, options),
        selected=selected,
        references={
            attribute: str(labels.cat.categories[0])
            for attribute, labels in groups.items()
            if attribute in named or {*attribute.split(" x ")} <= {*named}
        },
        notes=[
            *notes_on_labels(
                label, score, prediction, names, columns=(options.score, options.prediction)
            ),
            *(
                notes_on_decisions(frame[decided.column], decided.column, names)
                if decided.column
                else ()
            ),
            *notes_on_groups(frame, options.group),
        ],
        favourable=int(not options.favourable or spelled(options.favourable) != names[0]),
    )


def _labels(frame: pd.DataFrame, options: Options) -> tuple[Floats, tuple[str, str]]:
    """Return the labels (n,), NaN where unknown, and the names of 0 and 1."""
    text = pd.Series("", frame.index, dtype=str)
    place = Place(options.path.name, options.target or "label")
    counts = np.ones(len(frame), bool)
    if options.target:
        text = frame[options.target].astype(str)
    if options.labelled:
        counts = marks_of(frame[options.labelled], replace(place, column=options.labelled))
    unlabelled = (text == "").all()
    if unlabelled and options.prediction:  # decisions have the labels' names
        text, place = frame[options.prediction], replace(place, column=options.prediction)
    label, names = labels_of(text, place, options.positive)
    named = options.prediction or not unlabelled
    if named and options.favourable and spelled(options.favourable) not in names:
        raise unknown_name("favourable label", options.favourable, names)
    if unlabelled:
        return np.full(len(frame), np.nan), names
    if options.labelled:
        wrong = counts & np.isnan(label)
        place.refuse(text, wrong, f"a label, though '{options.labelled}' is true there")
    return np.where(counts, label, np.nan), names


def design_of_options(frame: pd.DataFrame, options: Options) -> Design | None:
    """Return how rows were sampled; None where nothing is said of it."""
    weight = clusters = None
    if options.weight:
        weight = weights_of(frame, Place(options.path.name, options.weight))
    if options.cluster:
        clusters = clusters_of(frame, Place(options.path.name, options.cluster))
    return design_of(len(frame), weight, clusters)
