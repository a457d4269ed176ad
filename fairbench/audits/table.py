"""A table of predictions, read: scores, decisions, labels and the groups of every attribute."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.audits.columns import read_frame
from fairbench.audits.group_sampling import GroupSampling
from fairbench.audits.leakage import check_score, notes_on_labels
from fairbench.audits.question import Options
from fairbench.core.errors import UserError, unknown_name
from fairbench.core.formats import MISSING, label_notes, quoted
from fairbench.data.bands import are_quantities
from fairbench.data.columns import Place, each_value, labels_of, marks_of, scores_of
from fairbench.data.dataset import check_combinable, combine
from fairbench.data.groups import MOST_GROUPS, groups_of, references_of
from fairbench.data.tabular import numbers, spelled
from fairbench.evaluation.evaluator import design_of, group_columns
from fairbench.inference.few_labels.table import PartlyLabelled
from fairbench.inference.survey import Design

Floats = NDArray[np.float64]

MOST_CELLS = 100
_MOST_TOGETHER = 10_000  # groups that are estimated together
_RARE = 10  # rows of a group, of which hardly anything can be said


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
    def known(self) -> NDArray[np.int64]:
        """The positions of the rows with a label."""
        return np.flatnonzero(~np.isnan(self.label))

    def partly_labelled(self, groups: pd.Series) -> PartlyLabelled:
        """Return the table by one choice of groups; decisions stand in for scores."""
        score = self.prediction.astype(np.float64) if self.score is None else self.score
        codes = groups.cat.codes.to_numpy(np.int64)
        names = tuple(map(str, groups.cat.categories))
        return PartlyLabelled(score, self.prediction, codes, self.label, names)


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
    places = {name: Place(file, name) for name in options.columns}
    label, names = _labels(frame, places, options)
    selected = score = None
    if options.selected:
        selected = marks_of(frame[options.selected], places[options.selected])
        if not selected.any():
            reason = "is true in no row: nobody was selected, and no label can be known"
            raise places[options.selected].fault(reason)
        label = np.where(selected, label, np.nan)
    if options.score:
        score = scores_of(frame, places[options.score])
    prediction = decisions_of(frame, places, options, score, names)
    if score is not None:
        check_score(label, score, file, options.score)
    groups: Mapping[str, pd.Series] = {}
    if options.proxy:
        cells = pd.Series(pd.Categorical(["everyone"] * len(frame)))
    else:
        groups, cells = read_groups(frame, places, options, many=many)
    singles = {name: groups[name] for name in options.group if groups}
    named = references_of(singles, options.reference if groups else ())
    return AuditTable(
        score,
        prediction,
        label,
        groups,
        cells,
        names,
        design=design_of_options(frame, places, options),
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
            *notes_on_groups(frame, options),
        ],
    )


def _labels(
    frame: pd.DataFrame, places: Mapping[str, Place], options: Options
) -> tuple[Floats, tuple[str, str]]:
    """Return the labels (n,), NaN where unknown, and the names of 0 and 1."""
    text = pd.Series("", frame.index, dtype=str)
    place, counts = Place(options.path.name, "label"), np.ones(len(frame), bool)
    if options.target:
        text, place = frame[options.target].astype(str), places[options.target]
    if options.labelled:
        counts = marks_of(frame[options.labelled], places[options.labelled])
    if (text == "").all():  # decisions have the labels' names, and tell them where no label does
        source = options.prediction
        named = (frame[source], places[source]) if source else (text, place)
        return np.full(len(frame), np.nan), labels_of(*named, options.positive)[1]
    label, names = labels_of(text, place, options.positive)
    if options.labelled:
        wrong = counts & np.isnan(label)
        place.refuse(text, wrong, f"a label, though '{options.labelled}' is true there")
    if options.favourable and spelled(options.favourable) not in names:
        raise unknown_name("favourable label", options.favourable, names)
    return np.where(counts, label, np.nan), names


def decisions_of(
    frame: pd.DataFrame,
    places: Mapping[str, Place],
    options: Options,
    score: Floats | None,
    names: tuple[str, str],
) -> NDArray[np.int64]:
    """Return the decisions, of their column or of the scores.

    Raises
    ------
    UserError : a decision that is no label; names the row.
    """
    if score is not None and not options.prediction:
        return (score > options.threshold).astype(np.int64)
    text, place = frame[options.prediction], places[options.prediction]
    codes, values = each_value(text, spelled)
    wrong = np.array([value not in names for value in values])
    place.refuse(text, wrong[codes], f"'{names[0]}' or '{names[1]}', the labels of the target")
    decisions: NDArray[np.int64] = np.array([value == names[1] for value in values], np.int64)
    return decisions[codes]


def has_many_groups(groups: pd.DataFrame) -> bool:
    """Say whether columns hold too many groups, or combinations, to compare each two."""
    return (
        bool((groups.nunique() > MOST_GROUPS).any()) or len(groups.drop_duplicates()) > MOST_CELLS
    )


def read_groups(
    frame: pd.DataFrame, places: Mapping[str, Place], options: Options, *, many: bool = False
) -> tuple[dict[str, pd.Series], pd.Series]:
    """Return the groups of each attribute and each two, and the combinations of all attributes.

    Parameters
    ----------
    many : there may be thousands of combinations, which are then all that is returned.

    Raises
    ------
    UserError : no groups, one group, too many to be groups or to be combined, or names that
        combinations could not be told apart by.
    """
    if not options.group:
        raise UserError("no groups to compare: name their columns, such as group=[sex,race]")
    most, most_cells = MOST_GROUPS, MOST_CELLS
    if many:
        most = most_cells = max(MOST_GROUPS, min(_MOST_TOGETHER, len(frame) // 2))
    singles = {name: groups_of(frame[name], places[name], most) for name in options.group}
    check_combinable(pd.DataFrame(singles), options.path.name)
    references = {name: str(labels.cat.categories[0]) for name, labels in singles.items()}
    references |= references_of(singles, options.reference)
    groups = group_columns(pd.DataFrame(singles), references, 1 if many else 2)
    cells = combine([groups[name] for name in options.group])
    if len(cells.cat.categories) > most_cells:
        raise UserError(
            f"{options.path.name}: {' x '.join(options.group)} has {len(cells.cat.categories)} "
            f"combinations in {len(frame)} rows; up to {most_cells} can be assessed: name fewer "
            "columns, or coarser groups"
        )
    return {} if many else groups, cells


def notes_on_groups(frame: pd.DataFrame, options: Options) -> list[str]:
    """Return sentences on labels of groups that a reader could take for one another."""
    columns = {name: frame[name] for name in options.group}
    alike = [note for name in columns for note in label_notes(name, columns[name].unique())]
    sizes = [note for name in columns for note in _notes_on_sizes(name, columns[name])]
    return [*frame.attrs.get("notes", ()), *alike, *sizes]


def _notes_on_sizes(name: str, column: pd.Series) -> Iterator[str]:
    """Yield sentences on groups of a handful of rows, and on numbers that are a group each."""
    sizes = column.value_counts()
    rare = sizes.index[sizes < _RARE]
    if are_quantities([str(value) for value in sizes.index]):
        yield (
            f"{name}: {len(sizes)} different numbers are a group each; {name}:25,40,62 or "
            f"{name}:quantiles(4) makes bands of them"
        )
    elif len(rare) and len(sizes) <= MOST_GROUPS:
        first = quoted(str(rare[0]) or MISSING)
        which = f"{first} has" if len(rare) == 1 else f"{len(rare)} groups, such as {first}, have"
        yield (
            f"{name}: {which} fewer than {_RARE} rows, of which hardly anything can be said; "
            "rare=30 pools such groups, and leave_out= leaves them out"
        )


def design_of_options(
    frame: pd.DataFrame, places: Mapping[str, Place], options: Options
) -> Design | None:
    """Return how rows were sampled; None where nothing is said of it."""
    weight = clusters = None
    if options.weight:
        place = places[options.weight]
        weight = numbers(frame, options.weight, place.file).to_numpy()
        place.refuse(frame[options.weight], weight < 0, "a weight of 0 or more")
        if not weight.any():
            raise place.fault("is 0 in every row")
    if options.cluster:
        clusters, place = frame[options.cluster].astype(str), places[options.cluster]
        place.refuse(clusters, (clusters == "").to_numpy(), "a mark of rows that belong together")
        if clusters.nunique() < 2:
            raise place.fault("has one mark in all rows: of one cluster nothing is sure")
    return design_of(len(frame), weight, clusters)
