"""The table that an audit is about, read from a file or memory and checked column by column.

:func:`read_frame` returns texts, of which :func:`read_audit_table` makes scores, decisions, labels
and groups: an :class:`AuditTable`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.audits import direction as ways
from fairbench.audits.direction import Direction
from fairbench.audits.labels import check_labels_at_random
from fairbench.audits.question import PERCENT, RATING, Options
from fairbench.core.arrays import Codes, Floats, Mask
from fairbench.core.errors import OpenQuestion, OpenQuestions, UserError
from fairbench.core.options import typed_values
from fairbench.core.text import count, quoted
from fairbench.data import columns, in_memory, tables
from fairbench.data import groups as of_groups
from fairbench.data.columns import ColumnRef
from fairbench.data.in_memory import Table
from fairbench.data.tables import TablePart
from fairbench.evaluation.some_labels import SomeLabels
from fairbench.evaluation.stratified import strata_of
from fairbench.reporting.group_tables import sentence_of

T = TypeVar("T")


def read_frame(
    options: Options,
    *,
    every: bool = False,
    source: Table | None = None,
    distinct: bool = False,
) -> pd.DataFrame:
    """Read the columns that `options` name, or `every` column, as strings.

    Bands, shares of percents, and groups that are pooled or left out are made here; what a reader
    should know of them is in the frame's ``attrs["notes"]``. Of counts the last row may be a total.

    Parameters
    ----------
    options : options that name the columns and the file.
    every : whether to read all columns.
    source : the table, if it is in memory: a DataFrame of pandas or polars, or any other object
        that gives its columns as Arrow does. Messages then call it by the path of `options`; scores
        and weights that are numbers stay numbers. If it is None, the file is read.
    distinct : whether equal rows may be read as one, with the number of times that it comes given
        by :func:`fairbench.data.columns.times_of`. That is done for large Parquet files, if
        all that is asked for follows from how many rows there are of each kind.

    Raises
    ------
    UserError : if the file or a column is missing or cannot be read, or there are no rows.
    """
    file = options.path.name
    names = options.columns
    banded = [cut.rpartition(":")[0] for cut in options.cuts]
    numeric = [*options.numeric_columns, *banded]
    numbers = (*numeric, options.target, options.prediction)
    if source is None:
        # Labels that differ in blanks are different groups.
        read = partial(
            tables.read_any_table,
            options.path,
            names,
            every=every,
            exact=(*options.group, *options.within),
            numeric=numbers,
            part=TablePart(options.rows or ":" * bool(options.total), options.sheet),
        )
        frame = read(distinct=distinct and options.counts_alone)
        if columns.times_of(frame) is not None and options.target:
            # Where some rows have a label and others none, each row counts by itself.
            values = set(columns.each_value(frame[options.target], columns.spelled)[1])
            if "" in values and len(values) > 1:
                frame = read()
    elif options.rows or options.sheet:
        name = "rows" if options.rows else "sheet"
        raise UserError(f"{name}= is of files: of a table in memory give the rows that are meant")
    else:
        if in_memory.is_table(source):
            source = in_memory.frame_of(source)
            for name, column in source.items():
                if str(name) in (*options.group, *options.within):
                    in_memory.check_exact(column, f"{file}: column {quoted(str(name))}")
        frame, once = in_memory.texts_of_table(source, file, names, every=every, numeric=numeric)
        written = [name for name in numbers if name in frame]
        frame, commas = tables.with_decimal_points(frame, written, file)
        tables.say_guessed(options.path, (*once, *commas))
    if not len(frame):
        raise UserError(f"{file}: no rows below the header")
    if options.id:
        ColumnRef(file, options.id).check_ids(frame[options.id])
    frame = of_groups.with_bands(frame, options.cuts, file)
    frame = _as_shares(frame, options)
    frame, notes = of_groups.with_fewer_groups(
        frame, options.group, options.leave_out, options.rare
    )
    if notes:
        frame.attrs["notes"] = notes
    return frame


# A table of predictions, read: scores, decisions, labels and the groups of every attribute.

_said = partial(sentence_of, "reading")


@dataclass(frozen=True, eq=False)
class AuditTable(SomeLabels):
    """Predictions of one classifier, with groups, and labels where they are known.

    The groups are of attributes, and combinations of two, the largest first; there are none where
    they are too many to compare each two, or nobody's group is known. Rows come more often than
    once where equal ones of the file were merged.

    Attributes
    ----------
    direction : what 0 and 1 are called, and which of them is good for a person.
    sampling : how rows were chosen for labelling, where that was not at random among all: a
        `GroupSampling` of the extension that labels.
    selected : (n,) whose labels there can be, where that is not everyone.
    chosen : what these are: ``selected``, or what ``decision=`` calls those decided for before.
    references : attribute -> the group that the user named to compare its others with.
    notes : what a reader should know about labels, decisions and groups.
    everyone : the table of all rows, where this is the table of the selected ones only.
    read_as : sentences on how scores and decisions were read.
    warnings : what a reader has to know first.
    strata : (n,) categorical labels of what groups are also compared within, named after columns.
    """

    direction: Direction
    sampling: Any = None
    selected: Mask | None = None
    chosen: str = ways.SELECTED
    references: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()
    everyone: AuditTable | None = None
    read_as: Sequence[str] = ()
    warnings: Sequence[str] = ()
    strata: pd.Series | None = None

    @property
    def whole(self) -> AuditTable:
        """The table of all rows, also where this is that of the selected ones."""
        return self.everyone or self

    def of_selected(self) -> AuditTable:
        """Return the rows of those who were selected."""
        if self.selected is None:
            return self
        rows = self.selected

        def of_rows(labels: pd.Series) -> pd.Series:
            return labels[rows].cat.remove_unused_categories().reset_index(drop=True)

        return replace(
            self,
            score=None if self.score is None else self.score[rows],
            prediction=self.prediction[rows],
            label=self.label[rows],
            groups={name: of_rows(labels) for name, labels in self.groups.items()},
            cells=of_rows(self.cells),
            strata=None if self.strata is None else of_rows(self.strata),
            selected=None,
            everyone=self,
        )

    @property
    def labels(self) -> tuple[str, str]:
        """What labels 0 and 1 are called."""
        return self.direction.names

    @property
    def favoured(self) -> Mask:
        """Who gets the good decision (n,): who was selected, or is predicted the good label."""
        if self.selected is not None:
            return self.selected
        return self.prediction == self.direction.good

    @property
    def granted(self) -> str:
        """What those are who get the good decision, such as ``approved``."""
        return self.direction.granted if self.selected is None else self.chosen

    @property
    def fixed(self) -> Mapping[str, str]:
        """Gap -> why its rate is 0 or 1 in every group by construction, of those that are.

        Then at most two of the four combinations of a label and a decision occur: all decisions are
        the same, as of people whom the same decision selected, or all labels, or one is the other.
        """
        among = np.tile([(self.prediction == decision).any() for decision in (0, 1)], 2)
        if len(self.known) == len(self.label):
            cell = (2 * self.label + self.prediction).astype(np.intp)
            among = np.bincount(cell, minlength=4) > 0
        cells = np.flatnonzero(among)
        if len(cells) > 2:
            return {}
        fixed = {}
        for metric, rate in ways.RATE_OF.items():
            counted = cells[np.array(rate.denominator)[cells] > 0]
            if len({*np.array(rate.numerator)[counted].tolist()}) == 1:
                fixed[metric] = f"{self._alike(cells)}, which by itself makes all groups the same"
        return fixed

    def _alike(self, cells: NDArray[np.intp]) -> str:
        """Return what is the same of everyone, of whom there are at most two cells."""
        decisions, labels = {*(cells % 2).tolist()}, {*(cells // 2).tolist()}
        if len(decisions) == 1:
            everyone = "everyone" if self.everyone is None else f"everyone who was {self.chosen}"
            return f"{everyone} is {self.direction.decided_names[decisions.pop()]}"
        if len(labels) == 1:
            return f"every label is '{self.labels[labels.pop()]}'"
        return f"{'every' if 0 in cells else 'no'} decision agrees with its label"

    @property
    def complete(self) -> bool:
        """Whether all rows have a label."""
        return 0 < self.labels_known == len(self)

    @property
    def of_decisions(self) -> bool:
        """Whether there are decisions alone, without scores or labels."""
        return self.score is None and not self.labels_known

    @property
    def of_scores(self) -> bool:
        """Whether no row has a label, and all have a score."""
        return self.score is not None and not self.labels_known

    def check_design(self) -> None:
        """Refuse weights and clusters of rows that have a label only in part.

        Raises
        ------
        UserError : some rows have none, and there is something that needs them.
        """
        if self.design is not None and not (self.complete or self.of_decisions):
            raise UserError(sentence_of("options", "label_in_every_row"))

    @property
    def as_chosen(self) -> SomeLabels:
        """The rows, as they were chosen for labelling."""
        return self if self.sampling is None else self.sampling.chosen(self)


def read_audit_table(
    options: Options,
    frame: pd.DataFrame | None = None,
    *,
    many: bool = False,
    labelling: bool = False,
    decisions_alone: bool = False,
) -> AuditTable:
    """Read the file that `options` describe.

    Parameters
    ----------
    frame : the file's columns, where they were read before.
    many : whether there are so many groups that they are estimated together: then only the
        combinations of all attributes are kept, and no two are compared.
    labelling : whether labels are still being collected, too few to tell which way a score runs.
    decisions_alone : whether only decisions are measured: then labels may be of any rows.

    Raises
    ------
    UserError : a file or column that is not there, or a value that cannot be, which names the row;
        it is open which decision is good for a person; or labels are surely not of rows that were
        chosen at random within groups. All that is open is asked at once.
    """
    frame = read_frame(options) if frame is None else frame
    read = partial(_read_table, many=many, labelling=labelling, decisions_alone=decisions_alone)
    return asked_at_once(options, frame, read)


def asked_at_once(
    options: Options, frame: pd.DataFrame, read: Callable[[Options, pd.DataFrame], T]
) -> T:
    """Return what is read of a table; where it leaves something open, ask all questions together.

    Each question is taken to be answered by its first answer, to come to the next one.

    Raises
    ------
    OpenQuestions : all that there are.
    UserError : what `read` refuses before it asks anything.
    """
    questions: list[OpenQuestion] = []
    while True:
        try:
            found = read(options, frame)
        except OpenQuestion as question:
            if question.answers in [asked.answers for asked in questions]:
                break
            questions.append(question)
            options, frame = _answered(options, frame, question.answers[0])
        except UserError:
            if not questions:
                raise
            break  # it may be of an answer that is not right
        else:
            if not questions:
                return found
            break
    for asked in questions:
        asked.answers = tuple(_with_bands_of(options, word) for word in asked.answers)
    raise OpenQuestions(questions)


def _answered(options: Options, frame: pd.DataFrame, answer: str) -> tuple[Options, pd.DataFrame]:
    """Return options and table as an answer to a question has them, such as ``scale=percent``."""
    name, _, value = answer.partition("=")
    if name in ("group", "within"):
        options = replace(options, cuts=(*options.cuts, value))
        return options, of_groups.with_bands(frame, [value], options.path.name)
    options = replace(options, **typed_values(type(options), {name: value}))
    return options, _as_shares(frame, options) if name == "scale" else frame


def _with_bands_of(options: Options, word: str) -> str:
    """Return a word about one column of ``group=`` with the others, and all their bands."""
    name = word.partition("=")[0]
    if name not in ("group", "within"):
        return word
    band_of = {cut.rpartition(":")[0]: cut for cut in options.cuts}
    columns_named = getattr(options, name)
    return f"{name}={','.join(band_of.get(column, column) for column in columns_named)}"


def _as_shares(frame: pd.DataFrame, options: Options) -> pd.DataFrame:
    """Return a table whose scores in percent are shares of 1."""
    shares = {
        name: ColumnRef(options.path.name, name).shares(frame[name])
        for name in (options.score_columns if options.scale == PERCENT else ())
    }
    return frame.assign(**shares)


def _read_table(
    options: Options, frame: pd.DataFrame, *, many: bool, labelling: bool, decisions_alone: bool
) -> AuditTable:
    """Return the table that `read_audit_table` does, or raise the first question about it."""
    file = options.path.name
    if options.prediction and options.prediction in options.group:
        raise UserError(_said("by_construction", prediction=options.prediction))
    score, is_rating = None, options.scale == RATING
    if options.score:
        place = ColumnRef(file, options.score)
        score = place.numbers(frame) if is_rating else place.scores(frame, ratings=True)
    label, direction = _labels(frame, options, score)
    selected = None
    if options.selected:
        place = ColumnRef(file, options.selected)
        selected = place.marks(frame[options.selected])
        if not selected.any():
            raise place.fault("is true in no row: nobody was selected, and no label can be known")
        label = np.where(selected, label, np.nan)
    prediction = read_decisions(frame, options, direction, score)
    if score is not None:
        columns.check_score(label, score, file, options.score)
        if not (options.positive or labelling) and ways.runs_against(score, label):
            negative, positive = direction.names
            start = f"labels are {quoted(negative, 30)} and {quoted(positive, 30)}; "
            raise direction.which_foretold(score, label, options.score, start)
    groups: Mapping[str, pd.Series] = {}
    cells = pd.Series(pd.Categorical(["everyone"] * len(frame)))
    if not options.proxy:
        groups, cells = of_groups.read_groups(
            frame, file, options.group, options.reference, many=many
        )
    times = columns.times_of(frame)
    if selected is None and not (labelling or decisions_alone):
        advice = _said("of_selected")
        if options.against or options.proxy or many:
            advice = "Leave target= out to audit decisions alone"
        check_labels_at_random(
            file,
            ~np.isnan(label),
            cells,
            advice=advice,
            classes=(prediction, direction.decided_names),
            values={} if score is None else {f"'{options.score}'": score},
            times=times,
        )
    direction.check_said(options, prediction, times=times)
    chosen = direction.decisions[0] if direction.decisions else ways.SELECTED
    if selected is not None:
        direction = direction.as_predictions()
    strata = None
    if options.within:
        of_columns = {
            name: of_groups.groups_of(frame[name], ColumnRef(file, name), option="within")
            for name in options.within
        }
        strata = strata_of(of_columns, file)
    singles = {name: groups[name] for name in options.group if groups}
    table = AuditTable(
        None if is_rating else score,  # of which no probability is asked
        prediction,
        label,
        groups,
        cells,
        direction,
        design=options.design(frame),
        selected=selected,
        chosen=chosen,
        references=of_groups.references_of(singles, options.reference, groups) if groups else {},
        strata=strata,
        times=times,
    )
    read_as = list(_read_as(table, options))
    if len(table.known):
        read_as += table.direction.on_purpose(options.purpose)
    return replace(
        table,
        notes=list(_notes(table, frame, options)),
        read_as=read_as,
        warnings=list(_warnings(table, options)),
    )


def _notes(table: AuditTable, frame: pd.DataFrame, options: Options) -> Iterator[str]:
    """Yield what a reader should know about labels, decisions and groups."""
    names = table.direction.names
    yield from _notes_on_labels(table, options)
    if options.prediction:
        decisions = frame[options.prediction]
        yield from columns.notes_on_decisions(
            decisions, options.prediction, names, table.direction.decisions
        )
    yield from of_groups.notes_on_groups(frame, options.group)


def _notes_on_labels(table: AuditTable, options: Options) -> Iterator[str]:
    """Yield warnings about labels that are all the same, or that a column copies."""
    label, score = table.label, table.score
    present, rows = np.unique(label[table.known]), count(table.labels_known)
    if len(present) == 1:
        missing, told = "the true positive rate", "the false positive rate (1 minus the accuracy)"
        if present[0]:
            missing = "the false positive rate"
            told = "the true positive rate (which is then the accuracy)"
        name = table.labels[int(present[0])]
        yield _said("labels_alike", rows=rows, name=name, told=told, missing=missing)
    if not columns.enough_to_tell(label, table.times):
        return
    if score is not None:
        scores_of_0, scores_of_1 = score[label == 0], score[label == 1]
        if scores_of_0.max() < scores_of_1.min() or scores_of_1.max() < scores_of_0.min():
            yield _said("score_of_label", options=options, rows=rows)
            return
    if options.prediction and (table.prediction == label)[table.known].all():
        yield _said("decision_of_label", options=options, rows=rows)


def _read_as(table: AuditTable, options: Options) -> Iterator[str]:
    """Yield how scores and decisions were read."""
    granted = table.prediction == table.direction.good
    yield from table.direction.reading(options, granted, table.times)
    if table.selected is not None:
        share = f"{table.selected.mean():.1%}"
        chosen = table.chosen[:1].upper() + table.chosen[1:]
        yield f"{chosen}: '{options.selected}' says so ({share} of the rows)."


def _warnings(table: AuditTable, options: Options) -> Iterator[str]:
    """Yield what a reader has to know first: scores or decisions that seem the wrong way round."""
    direction = table.direction
    decision = table.prediction.astype(float)
    of_rows = {"options": options, "name": direction.names[1]}
    if options.prediction and ways.runs_against(decision, table.label, table.times):
        yield _said("against_labels", **of_rows)
    if options.score and not options.prediction:
        share = float((table.prediction == direction.good).mean())
        if not ways.EXTREME <= share <= 1 - ways.EXTREME:
            yield _said(
                "extreme", **of_rows, share=ways.percent_of(share), granted=direction.granted
            )
    if table.score is None:
        return
    if ways.runs_against(table.score, table.label):
        yield _said("scores_against_labels", **of_rows)
    if options.prediction and ways.runs_against(table.score, decision):
        yield _said("scores_against", **of_rows)


def _labels(
    frame: pd.DataFrame, options: Options, score: Floats | None
) -> tuple[Floats, Direction]:
    """Return the labels (n,), NaN where unknown, and what they and decisions are called."""
    text = pd.Series("", frame.index, dtype=str)
    place = ColumnRef(options.path.name, options.target or "label")
    has_label = np.ones(len(frame), bool)
    if options.target:
        text = frame[options.target].astype(str)
    if options.labelled:
        has_label = replace(place, name=options.labelled).marks(frame[options.labelled])
    unlabelled = bool((text == "").all())
    positive = options.positive
    of_decisions = unlabelled and bool(options.prediction)
    if of_decisions:  # which have the labels' names
        text = frame[options.prediction]
        place = replace(place, name=options.prediction)
        named = ways.decisions_named(options.decision)
        if named and {*named} < {*columns.each_value(text, columns.spelled)[1]} - {""}:
            place.decisions(text, ("", ""), dict.fromkeys(named, 0))  # names the row of a third
    if not positive and (two_names := _two_names(text)):
        if score is not None and not of_decisions:
            first, second = two_names
            label, _ = place.labels(text, second)
            start = place.fault(f"holds {quoted(first, 40)} and {quoted(second, 40)}; ")
            raise Direction((first, second)).which_foretold(score, label, options.score, str(start))
        good = columns.spelled(options.decision.partition("/")[0]) if of_decisions else ""
        positive = good if good in two_names else columns.spelled(options.favourable)
        if not positive:
            raise _unsaid("which_decision" if of_decisions else "which_good", two_names, place)
    label, names = place.labels(text, positive, decisions=of_decisions)
    nameless = unlabelled and not options.prediction and options.favourable not in names
    good = "" if nameless else columns.spelled(options.favourable)
    direction = Direction.of(names, good, options.decision)
    if unlabelled:
        return np.full(len(frame), np.nan), direction
    if options.labelled:
        wrong = has_label & np.isnan(label)
        place.refuse(text, wrong, f"a label, though '{options.labelled}' is true there")
    return np.where(has_label, label, np.nan), direction


def _two_names(text: pd.Series) -> tuple[str, ...]:
    """Return the two values of a column, in order, if it has two that do not tell which is 1."""
    _, values = columns.each_value(text, columns.spelled)
    present = tuple(sorted({value for value in values if value}))
    return present if len(present) == 2 and not columns.plain_pair(present) else ()


def _unsaid(question: str, names: Sequence[str], place: ColumnRef) -> OpenQuestion:
    """Return the question which of two labels or decisions is good for a person, as an error."""
    first, second = names
    shown = [quoted(name, 40 if question == "which_good" else 30) for name in names]
    ways = [f"favourable={first}", f"favourable={second}"]
    if question == "which_decision":
        ways = [f"decision={first}/{second}", f"decision={second}/{first}"]
    return place.question(_said(question, names=shown, first=first, second=second), *ways)


def read_decisions(
    frame: pd.DataFrame, options: Options, direction: Direction, score: Floats | None
) -> Codes:
    """Return decisions (n,), 1 for label 1.

    Raises
    ------
    UserError : decisions have other names than labels, and it is not said which are which.
    """
    if score is not None and not options.prediction:
        return (score > options.threshold).astype(np.int64)
    place, text = ColumnRef(options.path.name, options.prediction), frame[options.prediction]
    label_of: dict[str, int] = {}
    _, values = columns.each_value(text, columns.spelled)
    present = sorted({value for value in values if value})
    are_named = bool(direction.decisions) and {*direction.decisions} <= {*present}
    # Where decisions are 0 and 1 and labels are not, 1 may be the good decision or the positive
    # label, which differ if the positive label is bad for a person.
    is_open = not columns.plain_pair(present) or direction.favourable == 0
    if are_named or (len(present) == 2 and not {*present} & {*direction.names} and is_open):
        if not are_named:
            raise _unsaid("which_decision", present, place)
        if direction.favourable is None:
            decision = quoted(direction.decisions[0], 30)[1:-1]
            raise OpenQuestion(
                _said("label_of_decision", place=place, decision=decision, direction=direction),
                *(f"favourable={name}" for name in direction.names),
            )
        good = direction.good
        label_of = dict(zip(direction.decisions, (good, 1 - good), strict=True))
    return place.decisions(text, direction.names, label_of)
