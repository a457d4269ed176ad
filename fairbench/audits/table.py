"""A table of predictions, read: scores, decisions, labels and the groups of every attribute."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.audits.columns import (
    MOST_GROUPS,
    Place,
    are_quantities,
    groups_of,
    labels_of,
    marks_of,
    read_frame,
    references_of,
)
from fairbench.audits.group_sampling import GroupSampling
from fairbench.audits.leakage import check_score, notes_on_labels
from fairbench.audits.question import Options
from fairbench.core.errors import UserError, unknown_name
from fairbench.core.formats import MISSING, count, label_notes, quoted
from fairbench.data.dataset import check_combinable, combine, reference_first
from fairbench.data.tabular import numbers, spelled, to_numbers
from fairbench.evaluation.evaluator import design_of, group_columns
from fairbench.inference.few_labels.table import PartlyLabelled
from fairbench.inference.survey import Design

MOST_CELLS = 100
_MOST_TOGETHER = 10_000  # groups that are estimated together


def has_many_groups(frame: pd.DataFrame, options: Options) -> bool:
    """Say whether there are too many groups, or combinations of them, to compare each two."""
    cells = np.zeros(len(frame), np.int64)
    for name in options.group:
        codes, values = pd.factorize(frame[name])
        if len(values) > MOST_GROUPS:
            return True
        cells = cells * len(values) + codes
        present = np.bincount(cells) > 0
        if present.sum() > MOST_CELLS:
            return True
        cells = (np.cumsum(present) - 1)[cells]
    return False


def read_many_groups(
    frame: pd.DataFrame, places: Mapping[str, Place], options: Options
) -> pd.Series:
    """Return the combinations of all attributes, of which there may be thousands.

    Raises
    ------
    UserError : more than are estimated together, or so many that most are of one row; names that
        combinations could not be told apart by.
    """
    most = max(MOST_GROUPS, min(_MOST_TOGETHER, len(frame) // 2))
    singles = {name: groups_of(frame[name], places[name], most) for name in options.group}
    check_combinable(pd.DataFrame(singles), options.path.name)
    cells = combine(list(singles.values()))
    if len(cells.cat.categories) > most:
        raise UserError(
            f"{options.path.name}: {' x '.join(options.group)} has {len(cells.cat.categories)} "
            f"combinations in {len(frame)} rows; up to {most} can be assessed: name fewer columns, "
            "or coarser groups"
        )
    return cells


def read_groups(
    frame: pd.DataFrame, places: Mapping[str, Place], options: Options
) -> tuple[dict[str, pd.Series], pd.Series]:
    """Return the groups of each attribute and each two, and the combinations of all attributes.

    Raises
    ------
    UserError : no groups, one group, too many to be groups or to be combined, or names that
        combinations could not be told apart by.
    """
    if not options.group:
        raise UserError("no groups to compare: name their columns, such as group=[sex,race]")
    singles = pd.DataFrame({name: groups_of(frame[name], places[name]) for name in options.group})
    check_combinable(singles, options.path.name)
    named = references_of({name: singles[name] for name in singles}, options.reference)
    for name, label in named.items():
        singles[name] = reference_first(singles[name], label)
    references = {name: str(singles[name].cat.categories[0]) for name in options.group}
    cells = combine([singles[name] for name in options.group])
    if len(cells.cat.categories) > MOST_CELLS:
        raise UserError(
            f"{options.path.name}: {' x '.join(options.group)} has {len(cells.cat.categories)} "
            f"combinations; up to {MOST_CELLS} can be assessed: name fewer columns, or coarser "
            "groups"
        )
    return group_columns(singles, references, 2), cells


Floats = NDArray[np.float64]
_NO_ANSWERS: Mapping[int, str] = MappingProxyType({})


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
        rows = np.flatnonzero(self.selected)
        groups = {name: _only(each, rows) for name, each in self.groups.items()}
        return replace(
            self,
            score=None if self.score is None else self.score[rows],
            prediction=self.prediction[rows],
            label=self.label[rows],
            groups=groups,
            cells=_only(self.cells, rows),
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


def _only(groups: pd.Series, rows: NDArray[np.int64]) -> pd.Series:
    return groups.iloc[rows].cat.remove_unused_categories().reset_index(drop=True)


def read_audit_table(
    options: Options,
    answers: Mapping[int, str] = _NO_ANSWERS,
    frame: pd.DataFrame | None = None,
    *,
    many: bool = False,
) -> AuditTable:
    """Read the file that `options` describe.

    Parameters
    ----------
    many : there are so many groups that they are estimated together: of the combinations of all
        attributes alone, and no two are compared.
    answers : position -> label of rows that were labelled elsewhere; they go before the file's.
    frame : the file's columns, where they were read before.

    Raises
    ------
    UserError : a file or column that is not there, or a value that cannot be; names the row.
    """
    frame = read_frame(options) if frame is None else frame
    places = {name: Place(options.path.name, name) for name in options.columns}
    label, names = _labels(frame, places, options, answers)
    selected = _selected(frame, places, options)
    if selected is not None:
        label = np.where(selected, label, np.nan)
    score = scores_of(frame, places[options.score]) if options.score else None
    prediction = decisions_of(frame, places, options, score, names)
    if score is not None:
        check_score(label, score, options.path.name, options.score)
    groups: Mapping[str, pd.Series] = {}
    if options.proxy:
        cells = pd.Series(pd.Categorical(["everyone"] * len(frame)))
    elif many:
        cells = read_many_groups(frame, places, options)
    else:
        groups, cells = read_groups(frame, places, options)
    design = design_of_options(frame, places, options)
    on_labels = notes_on_labels(label, score, prediction, names, options)
    notes = [*on_labels, *notes_on_groups(frame, options)]
    return AuditTable(
        score,
        prediction,
        label,
        groups,
        cells,
        names,
        design=design,
        selected=selected,
        references=_references(groups, options),
        notes=notes,
    )


def _references(groups: Mapping[str, pd.Series], options: Options) -> dict[str, str]:
    """Return the groups that somebody named to compare others with, those of combinations too."""
    if not groups or not options.reference:
        return {}
    singles = {name: groups[name] for name in options.group}
    named = set(references_of(singles, options.reference))
    return {
        attribute: str(labels.cat.categories[0])
        for attribute, labels in groups.items()
        if attribute in named or set(attribute.split(" x ")) <= named
    }


def _selected(
    frame: pd.DataFrame, places: Mapping[str, Place], options: Options
) -> NDArray[np.bool_] | None:
    """Return whose labels there can be; None where that is not said."""
    if not options.selected:
        return None
    marks = marks_of(frame[options.selected], places[options.selected])
    if not marks.any():
        raise UserError(
            f"{options.path.name}: column '{options.selected}' is true in no row: nobody was "
            "selected, and no label can be known"
        )
    return marks


def notes_on_groups(frame: pd.DataFrame, options: Options) -> list[str]:
    """Return sentences on labels of groups that a reader could take for one another."""
    alike = [each for name in options.group for each in label_notes(name, frame[name].unique())]
    several = [each for name in options.group for each in _notes_on_sizes(name, frame[name])]
    return [*frame.attrs.get("notes", ()), *alike, *several]


_RARE = 10  # rows of a group, of which hardly anything can be said


def _notes_on_sizes(name: str, column: pd.Series) -> Iterator[str]:
    """Yield sentences on groups of a handful of rows, and on numbers that are a group each."""
    sizes = column.value_counts()
    rare = sizes[sizes < _RARE]
    values = [str(each) for each in sizes.index]
    if are_quantities(values):
        yield (
            f"{name}: {len(values)} different numbers are a group each; {name}:25,40,62 or "
            f"{name}:quantiles(4) makes bands of them"
        )
    elif len(rare) and len(sizes) <= MOST_GROUPS:
        first = quoted(str(rare.index[0]) or MISSING)
        listed = first if len(rare) == 1 else f"{len(rare)} groups, such as {first},"
        yield (
            f"{name}: {listed} {'has' if len(rare) == 1 else 'have'} fewer than {_RARE} rows, of "
            "which hardly anything can be said; rare=30 pools such groups, and leave_out= leaves "
            "them out"
        )


def design_of_options(
    frame: pd.DataFrame, places: Mapping[str, Place], options: Options
) -> Design | None:
    """Return how rows were sampled; None where nothing is said of it."""
    weight = clusters = None
    if options.weight:
        text, place = frame[options.weight], places[options.weight]
        weight = numbers(frame, options.weight, place.file).to_numpy()
        place.refuse(text, weight < 0, "a weight of 0 or more")
        if not weight.any():
            raise UserError(f"{place.file}: column '{place.column}' is 0 in every row")
    if options.cluster:
        clusters, place = frame[options.cluster].astype(str), places[options.cluster]
        place.refuse(clusters, (clusters == "").to_numpy(), "a mark of rows that belong together")
        if clusters.nunique() < 2:
            raise UserError(
                f"{place.file}: column '{place.column}' has one mark in all rows: of one cluster "
                "nothing is sure"
            )
    return design_of(len(frame), weight, clusters)


def _labels(
    frame: pd.DataFrame,
    places: Mapping[str, Place],
    options: Options,
    answers: Mapping[int, str],
) -> tuple[Floats, tuple[str, str]]:
    empty = pd.Series("", frame.index, dtype=str)
    text = frame[options.target].astype(str) if options.target else empty
    text, counts = text.copy(), np.ones(len(frame), bool)
    rows = list(answers)
    text.iloc[rows] = list(answers.values())
    if options.labelled:
        counts = marks_of(frame[options.labelled], places[options.labelled])
        counts[rows] = [spelled(each) != "" for each in answers.values()]
    place = places[options.target] if options.target else Place(options.path.name, "label")
    # Decisions have the labels' names; they tell them where no label does.
    missing = bool((text == "").all())
    source = options.prediction if missing else ""
    named = (frame[source], places[source]) if source else (text, place)
    label, names = labels_of(*named, options.positive)
    if source:
        return np.full(len(frame), np.nan), names
    wrong = counts & np.isnan(label) if options.labelled else np.zeros(len(frame), bool)
    place.refuse(text, wrong, f"a label, though '{options.labelled}' is true there")
    if options.favourable and not missing and spelled(options.favourable) not in names:
        raise unknown_name("favourable label", options.favourable, names)
    return np.where(counts, label, np.nan), names


def scores_of(frame: pd.DataFrame, place: Place) -> Floats:
    """Return a column of probabilities.

    Raises
    ------
    UserError : a value that is none; names the row.
    """
    text = frame[place.column]
    score: Floats = to_numbers(text)
    wrong = ~np.isfinite(score)
    if wrong.any():
        raise _no_score(text, wrong, place)
    outside = (score < 0) | (score > 1)
    percents = score.min() >= 0 and 1 < score.max() <= 100
    hint = "; of percents give scale=percent" if percents else ""
    place.refuse(text, outside, f"a probability between 0 and 1{hint}")
    return score


def _no_score(text: pd.Series, wrong: NDArray[np.bool_], place: Place) -> UserError:
    """Return the error for the first score that is no number, with what to do."""
    row = int(np.flatnonzero(wrong)[0])
    value = text.iloc[row]
    value = "" if isinstance(value, float) and np.isnan(value) else str(value).strip()
    hint = ""
    if value == "":
        hint = f": each row needs a score; add it, or delete the {count(wrong.sum())} rows without"
    elif value.endswith("%"):
        hint = ": of percents give scale=percent"
    return UserError(
        f"{place.file}: column '{place.column}', row {row + 1}: {quoted(value)} is no number{hint}"
    )


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
    codes, values = pd.factorize(text)
    known = [spelled(str(value)) for value in values]
    fine = np.array([value in names for value in known])
    place.refuse(text, ~fine[codes], f"'{names[0]}' or '{names[1]}', the labels of the target")
    decisions: NDArray[np.int64] = np.array([value == names[1] for value in known])[codes]
    return decisions.astype(np.int64)
