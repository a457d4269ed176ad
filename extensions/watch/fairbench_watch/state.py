"""The state of a watch: what is watched, what was seen of the file, and what was found so far."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.audits import direction as directions
from fairbench.audits.direction import NEEDS_NO_LABELS, RATE_OF
from fairbench.audits.question import PERCENT, PROBABILITY, Options, column
from fairbench.core.arrays import Rows
from fairbench.core.errors import UserError, check_choice
from fairbench.core.files import sha256
from fairbench.core.options import meanings, option
from fairbench.core.text import count, natural, said
from fairbench.data.columns import plain_pair, spelled
from fairbench.data.groups import CROSSED, bands_apart

# Options that an audit has, too.
_OF_AUDITS = (
    "path", "target", "score", "prediction", "positive", "favourable", "decision", "scale",
    "threshold", "epsilon", "cuts",
)  # fmt: skip


def _as_in_audits(name: str) -> Any:
    """Declare an option as audits have it."""
    declared = Options.__dataclass_fields__[name]
    metadata = {**declared.metadata, "sentence": meanings(Options)[name]}
    return field(default=declared.default, metadata=metadata)


def refusal(name: str, /, **values: object) -> UserError:
    """Return the error that a sentence tells."""
    return UserError(said("fairbench_watch", name, **values))


# Dates are periods where their column is named as ``date:month``.
PERIODS = {
    "day": "%Y-%m-%d",
    "week": "%G-W%V",
    "month": "%Y-%m",
    "quarter": "%Y-Q",  # and its number
    "year": "%Y",
}


def period_asked(time: str) -> tuple[str, str]:
    """Return the column of periods and their unit, empty where its values are the periods.

    Raises
    ------
    UserError : a unit that there is not.
    """
    name, colon, unit = time.rpartition(":")
    if not colon:
        return time, ""
    check_choice("period", unit, PERIODS)
    return name, unit


@dataclass(frozen=True)
class WatchOptions:
    """What is watched, and of which columns.

    Attributes
    ----------
    path : A file with one row per person (CSV, Excel, Parquet or Arrow, compressed or not): one
        file that grows, or with time= a new file each week.
    group : The columns of groups; 'sex x race' stands for the combinations of two or more of them.
    target : The column of labels, empty where they are not known yet.
    score : The column of the predicted probability of the positive label.
    prediction : The column of decisions, where they are not score > threshold.
    scale : What scores are: probabilities from 0 to 1, or percents from 0 to 100.
    time : The column of periods, such as weeks: a file may then hold new periods alone, and charts
        have a point for each. They are ordered by the numbers in their names, such as week 7,
        2024-W05, 2024-01 or 2024-Q1. Dates become periods as date:month (day, week, month, quarter,
        year).
    id : The column that says which person or decision a row is of: rows whose identifier was seen
        before are counted once.
    threshold : A score above it is a positive decision.
    epsilon : A gap under this makes no practical difference.
    """

    path: Path = option(Path, argument="PREDICTIONS")
    group: tuple[str, ...] = option((), shown="[COLUMN,...]", main=True)
    target: str = column(main=True)
    score: str = column(main=True)
    prediction: str = column(main=True)
    positive: str = _as_in_audits("positive")
    favourable: str = _as_in_audits("favourable")
    decision: str = _as_in_audits("decision")
    scale: str = option(PROBABILITY, choices=(PROBABILITY, PERCENT))
    time: str = column(main=True)
    id: str = column(main=True)
    metrics: tuple[str, ...] = option(
        (),
        f"The gaps that are watched, of {', '.join(RATE_OF)}; all of them by default. The fewer "
        "there are, the sooner each is found.",
        shown="[METRIC,...]",
    )
    cuts: tuple[str, ...] = ()  # bands that group= has, such as age:25,40,62
    threshold: float = option(0.5)
    epsilon: float = option(0.05)

    def __post_init__(self) -> None:
        """Refuse what no file could mend."""
        group, cuts = bands_apart(self.group)
        cuts = tuple(cut.rpartition(CROSSED)[2] for cut in cuts)
        object.__setattr__(self, "group", group)
        object.__setattr__(self, "cuts", tuple(dict.fromkeys([*self.cuts, *cuts])))
        if any("quantiles" in bands.rpartition(":")[2] for bands in self.cuts):
            raise refusal("bands")
        period_asked(self.time)
        if not self.group:
            raise UserError("no groups to compare: name their columns, such as group=[sex,race]")
        for name, what in (("group", "column"), ("metrics", "metric")):
            values = getattr(self, name)
            if len(set(values)) < len(values):
                raise UserError(f"{name}=[{','.join(values)}] names a {what} twice")
        for metric in self.metrics:
            check_choice("metric", metric, RATE_OF)
            if not self.target and metric != NEEDS_NO_LABELS:
                raise UserError(f"{metric} needs labels: name their column as target=")
        self.audit  # refuses the rest  # noqa: B018

    @property
    def audit(self) -> Options:
        """The options of an audit of the same columns, with which files are read."""
        columns = dict.fromkeys(column for name in self.group for column in name.split(CROSSED))
        # Labels may come later, so that the last row may be the first without one.
        own = {name: getattr(self, name) for name in _OF_AUDITS}
        return Options(rows=":", group=tuple(columns), **own)

    @property
    def rate_names(self) -> Mapping[str, str]:
        """What the rate of each gap is called, from the first look on: labels may come later."""
        positive = spelled(self.positive)
        favourable = spelled(self.favourable)
        label = None
        if favourable:
            positive_label = positive or (plain_pair([favourable]) or ("", favourable))[1]
            label = int(favourable == positive_label)
        decided = directions.decisions_named(self.decision)
        direction = directions.Direction(("", positive or "1"), label, decided)
        return {**directions.RATE_NAMES, NEEDS_NO_LABELS: direction.rate_names[NEEDS_NO_LABELS]}

    @property
    def watched(self) -> tuple[str, ...]:
        """The metrics that are watched: without labels only that of decisions."""
        return self.metrics or (tuple(RATE_OF) if self.target else (NEEDS_NO_LABELS,))


@dataclass(frozen=True)
class Milestone:
    """What was counted up to some row: a point of the charts, and a start of new comparisons.

    Attributes
    ----------
    row : the number of rows so far.
    labels : the number of labels so far.
    period, look : the period of the last row, and the time of the look that it came in.
    counts : attribute -> group -> sums, as `fairbench_watch.alarms` has them.
    limits : name of a gap -> its value and interval of all rows so far; None where undefined. Empty
        at marks that no chart has had.
    """

    row: int
    labels: int
    period: str
    look: str
    counts: Mapping[str, Sequence[Sequence[float]]]
    limits: Mapping[str, Sequence[float | None]] = field(default_factory=dict)


_MOST_POINTS = 100


def drawn(marks: Sequence[Milestone]) -> list[Milestone]:
    """Return the last mark and at most 100 others, evenly; they stay until every other one goes."""
    apart = 1 << (max(len(marks) - 2, 0) // _MOST_POINTS).bit_length()
    return [*marks[:-1:apart], *marks[-1:]]


@dataclass(frozen=True)
class Alarm:
    """What was found, once.

    Attributes
    ----------
    kind : ``passed`` (a gap is beyond epsilon), ``changed`` (a gap is another than it was) or
        ``drifted`` (scores of a group are off by another amount than they were).
    about : the name of the gap or of the group's scores.
    row : the number of rows when it was found, with its ``period`` and ``look``.
    since : the number of rows after which the evidence was counted, 0 for all rows.
    lower, upper : the interval of the rows since then.
    before : the interval of the rows up to there; None with ``passed``.
    """

    kind: str
    about: str
    row: int
    period: str
    look: str
    since: int
    lower: float
    upper: float
    before: tuple[float, ...] | None


@dataclass(frozen=True)
class WatchState:
    """Everything that the next look depends on.

    Attributes
    ----------
    names : the names of labels 0 and 1; empty until both were seen.
    groups : attribute -> names of the groups that are watched: those of the first look.
    shares : name of a gap -> share of its rows that the first group had at the first look.
    unwatched : groups that came after the first look -> their rows; they are counted nowhere.
    repeats : how many rows came again; each is counted once.
    once : whether, without identifiers, identical rows are counted once, because there are more of
        them than chance explains.
    seen : how often each distinct row came, as text that `fairbench_watch.alarms` reads.
    """

    options: WatchOptions
    names: tuple[str, ...] = ()
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    shares: Mapping[str, float] = field(default_factory=dict)
    periods: tuple[_Period, ...] = ()
    marks: tuple[Milestone, ...] = ()
    alarms: tuple[Alarm, ...] = ()
    unwatched: Mapping[str, int] = field(default_factory=dict)
    repeats: int = 0
    once: bool = False
    seen: str = ""

    @property
    def rows(self) -> int:
        """The rows seen so far."""
        return sum(part.rows for period in self.periods for part in period.parts)

    @property
    def labels(self) -> int:
        """The labels counted so far."""
        return self.marks[-1].labels if self.marks else 0


# A file that grows and is read again and again: what is new, the rest being as it was seen.
#
# New rows come at the end of the file, or of the last period, or in later periods; a file may
# hold new periods alone. A label that was empty may come later. Anything else that has changed is
# refused: whoever has counted what was seen would have to count anew.

_SIGNS: Mapping[float, int] = {0: ord("0"), 1: ord("1")}
_NO_LABEL = "?"
_BY_CHANCE = 1e-6


@dataclass(frozen=True)
class _SeenRows:
    """Rows of one period that came in one look."""

    rows: int
    digest: str  # of all columns but the labels, of the rows in their order
    look: str  # the time of the look, UTC
    bag: str = ""  # which earlier versions wrote


@dataclass(frozen=True)
class _Period:
    """The rows seen of a period; without a column of time there is one, without a name."""

    name: str
    parts: tuple[_SeenRows, ...]
    labels: str  # a sign a row: 0, 1, or ? where it is not known yet


def spelling(name: str) -> str:
    """Return a spelling that names of one period share: ``Week 7`` and ``week 07``."""
    plain = " ".join(name.split()).casefold()
    return re.sub(r"\d+", lambda digits: f"{Decimal(digits[0]):f}", plain)


_YEAR = r"(19|20|21)\d\d"
_YEAR_LAST = rf"\D*(?!{_YEAR}\D)\d+\D.*?(?<!\d){_YEAR}\D*"


def _check_order(names: Iterable[str], file: str) -> None:
    """Refuse names of periods whose numbers do not tell their order.

    Such are months by name, and years after a quarter, a month or a day where that differs from
    how the names are sorted, by the first number in them.

    Raises
    ------
    UserError : there is such a name; the message says what to write.
    """
    ordered = sorted(names, key=natural)
    for first, last in pairwise(ordered[:1] + ordered):
        (texts, numbers), (other_texts, other_numbers) = map(_parts, (first, last))
        from_end = numbers[::-1] > other_numbers[::-1]
        year_last = re.fullmatch(_YEAR_LAST, first) and re.fullmatch(_YEAR_LAST, last)
        if not numbers or texts != other_texts or (year_last and from_end):
            told = f"period '{first}'" if first == last else f"periods '{first}' and '{last}'"
            raise refusal("no_order", file=file, periods=told)


def _parts(name: str) -> tuple[list[str], list[int]]:
    """Return the texts of a name between its numbers, and these."""
    parts = re.split(r"(\d+)", name)
    return parts[::2], [int(Decimal(number)) for number in parts[1::2]]


def checksum(rows: Iterable[str]) -> str:
    """Return the checksum of rows of text in their order, 32 signs."""
    return sha256("\x1e".join([*rows, ""]).encode(errors="backslashreplace"))[:32]


def find_additions(
    periods: Sequence[_Period], rows: pd.DataFrame, file: str, look: str
) -> tuple[NDArray[np.intp], NDArray[np.intp], tuple[_Period, ...]]:
    """Find what was added to a file, and check that the rest is as it was seen.

    Parameters
    ----------
    periods : what was seen before, in order.
    rows : the rows of the file: ``period``; ``text``, all of a row but its label; ``label``, 0, 1
        or NaN.
    file : what messages call the file.
    look : the time at which it is read.

    Returns
    -------
    Positions of rows that were seen before and have a label now; positions of rows that were not
    seen before; and everything that has been seen, these rows and labels included.

    Raises
    ------
    UserError : rows that were seen are gone, in another order, changed or labelled otherwise, or
        belong to an earlier period than the last, or to one that was spelled otherwise; or
        periods of which it cannot be told which is earlier.
    """
    seen = {period.name: period for period in periods}
    spelled = {spelling(name): name for name in seen}
    signs = rows["label"].map(_SIGNS).fillna(ord(_NO_LABEL)).to_numpy(np.uint8)
    late_labels, new_rows = [np.empty(0, np.intp)], [np.empty(0, np.intp)]
    places_of = rows.groupby("period", sort=False).indices
    for name in places_of:
        if name not in seen and (as_seen := spelled.get(spelling(name))):
            raise refusal("other_spelling", where=_where(file, name), seen=as_seen)
    _check_order({*seen, *places_of} - {""}, file)
    for name, places in places_of.items():
        before = seen.get(name, _Period(name, (), ""))
        text = rows["text"].iloc[places].tolist()
        labels = signs[places].tobytes().decode()
        where = _where(file, name)
        _check_rows(before, text, where)
        _check_labels(before, labels, where)
        new_text = text[len(before.labels) :]
        if new_text and periods and natural(name) < natural(periods[-1].name):
            told = {"name": name, "rows": count(len(new_text)), "last": periods[-1].name}
            raise refusal("goes_forward", file=file, **told)
        late_labels.append(places[_changed(before.labels, labels)])
        new_rows.append(places[len(before.labels) :])
        parts = before.parts
        if new_text:
            parts = (*parts, _SeenRows(len(new_text), checksum(new_text), look))
        seen[name] = _Period(name, parts, labels)
    periods = tuple(seen[name] for name in sorted(seen, key=natural))
    return np.concatenate(late_labels), np.concatenate(new_rows), periods


def _where(file: str, period: str) -> str:
    return f"{file}, period '{period}'" if period else file


def _changed(before: str, now: str) -> Rows:
    """Return the places of labels that are others than they were, of those that were seen."""
    old, new = (np.frombuffer(labels.encode(), np.uint8) for labels in (before, now))
    return np.flatnonzero(old != new[: len(old)])


def check_copies(
    before: Sequence[_Period], after: Sequence[_Period], rows: pd.DataFrame, file: str
) -> None:
    """Refuse a new period that has the rows of one before it, in the same order.

    A period is taken for a copy where as many independent rows, of as many kinds, would be the same
    once in a million times at most.

    Parameters
    ----------
    before, after : the periods before a look and after it.
    rows, file : the same parameters as of :func:`find_additions`.

    Raises
    ------
    UserError : there is one; each of its rows would count twice.
    """
    names = {period.name for period in before}
    first_period_with: dict[str, str] = {}
    for period in after:
        for part in period.parts:
            name = first_period_with.setdefault(part.digest, period.name)
            if name == period.name or period.name in names:
                continue
            shares = rows["text"][rows["period"] == period.name].value_counts(normalize=True)
            if (shares**2).sum() ** part.rows < _BY_CHANCE:
                told = {"name": period.name, "first": name, "rows": count(part.rows)}
                raise refusal("copied", file=file, **told)


def _check_rows(before: _Period, text: Sequence[str], where: str) -> None:
    """Refuse rows that were seen and are changed now, in anything but their labels."""
    if len(text) < len(before.labels):
        counts = {"rows": count(len(text)), "seen": count(len(before.labels))}
        raise refusal("fewer_rows", where=where, **counts)
    start = 0
    for part in before.parts:
        rows = text[start : start + part.rows]
        if checksum(rows) != part.digest:
            row_numbers = f"{where}: rows {count(start + 1)} to {count(start + part.rows)}"
            raise refusal("other_rows", rows=row_numbers, look=part.look)
        start += part.rows


def _check_labels(before: _Period, labels: str, where: str) -> None:
    """Refuse labels that differ from those that were known."""
    places = _changed(before.labels, labels)
    changed = [place for place in places if before.labels[place] != _NO_LABEL]
    if changed:
        old, now = (signs[changed[0]] for signs in (before.labels, labels))
        is_now = "is gone" if now == _NO_LABEL else f"is {now} now"
        told = {"row": count(changed[0] + 1), "rows": count(len(changed))}
        raise refusal("other_label", where=where, old=old, now=is_now, **told)
