"""A file that grows and is read again and again: what is new, the rest being as it was seen.

New rows come at the end of the file, or of the last period, or in later periods; a file may hold
new periods alone. A label that was empty may come later. Anything else that has changed is refused:
whoever has counted what was seen would have to count anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pandas as pd

from fairbench.core.errors import UserError
from fairbench.core.formats import count
from fairbench.data.checksums import ordered_checksum, unordered_checksum
from fairbench.data.periods import natural, spelling

_SIGNS: Mapping[float, str] = {0: "0", 1: "1"}
_NO_LABEL = "?"
_BY_CHANCE = 1e-6


@dataclass(frozen=True)
class SeenRows:
    """Rows of one period that came in one look."""

    rows: int
    digest: str  # of all columns but the labels, of the rows in their order
    bag: str  # the same digest whatever the order of the rows
    look: str  # the time of the look, UTC


@dataclass(frozen=True)
class Period:
    """The rows seen of a period; without a column of time there is one, without a name."""

    name: str
    parts: tuple[SeenRows, ...]
    labels: str  # a sign a row: 0, 1, or ? where it is not known yet

    def __post_init__(self) -> None:
        """Refuse labels of other rows."""
        if len(self.labels) != sum(part.rows for part in self.parts):
            raise ValueError(f"period '{self.name}' has not one label a row")


class Additions(NamedTuple):
    """What was added to a file since it was last read.

    Attributes
    ----------
    late_labels : positions of rows that were seen before and have a label now.
    new_rows : positions of rows that were not seen before.
    periods : everything that has been seen, these rows and labels included.
    """

    late_labels: list[int]
    new_rows: list[int]
    periods: tuple[Period, ...]


def find_additions(
    periods: Sequence[Period], rows: pd.DataFrame, file: str, look: str
) -> Additions:
    """Find what was added to a file, and check that the rest is as it was seen.

    Parameters
    ----------
    periods : what was seen before, in order.
    rows : the rows of the file: ``period``; ``text``, all of a row but its label; ``label``, 0, 1
        or NaN.
    file : what messages call the file.
    look : the time at which it is read.

    Raises
    ------
    UserError : rows that were seen are gone, in another order, changed or labelled otherwise, or
        belong to an earlier period than the last, or to one that was spelled otherwise.
    """
    seen = {period.name: period for period in periods}
    spelled = {spelling(name): name for name in seen}
    late_labels: list[int] = []
    new_rows: list[int] = []
    for name, period_rows in rows.groupby("period", sort=False):
        before = seen.get(name, Period(name, (), ""))
        text = period_rows["text"].tolist()
        labels = "".join(period_rows["label"].map(_SIGNS).fillna(_NO_LABEL))
        where = f"{file}, period '{name}'" if name else file
        if name not in seen and (as_seen := spelled.get(spelling(name))):
            raise UserError(
                f"{where}: it was looked at as '{as_seen}': spell it so, spaces included, that no "
                "row is counted twice, or start another state"
            )
        _check_rows(before, text, where)
        _check_labels(before, labels, where)
        new_text = text[len(before.labels) :]
        if new_text and periods and natural(name) < natural(periods[-1].name):
            raise UserError(
                f"{file}: period '{name}' has {count(len(new_text))} rows that are new, and "
                f"'{periods[-1].name}' was looked at already: a watch goes forward; leave these "
                "rows out, or start another state to take them in"
            )
        labels_before_and_now = zip(period_rows.index, before.labels, labels, strict=False)
        late_labels += [position for position, old, now in labels_before_and_now if old != now]
        new_rows += period_rows.index[len(before.labels) :].tolist()
        parts = list(before.parts)
        if new_text:
            parts.append(
                SeenRows(
                    len(new_text), ordered_checksum(new_text), unordered_checksum(new_text), look
                )
            )
        seen[name] = Period(name, tuple(parts), labels)
    periods_in_order = tuple(seen[name] for name in sorted(seen, key=natural))
    return Additions(late_labels, new_rows, periods_in_order)


def check_copies(
    before: Sequence[Period], after: Sequence[Period], rows: pd.DataFrame, file: str
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
                raise UserError(
                    f"{file}: the {count(part.rows)} rows of period '{period.name}' are those of "
                    f"'{name}', in the same order, and would count twice: give the right file; if "
                    "they are other people, or the same again, name identifiers (id=) in another "
                    "state"
                )


def _check_rows(before: Period, text: Sequence[str], where: str) -> None:
    """Refuse rows that were seen and are changed now, in anything but their labels."""
    if len(text) < len(before.labels):
        raise UserError(
            f"{where} has {count(len(text))} rows, and {count(len(before.labels))} were seen: put "
            "the missing rows back where they were, or start another state"
        )
    start = 0
    for part in before.parts:
        rows = text[start : start + part.rows]
        row_numbers = f"{where}: rows {count(start + 1)} to {count(start + part.rows)}"
        start += part.rows
        if ordered_checksum(rows) == part.digest:
            continue
        if unordered_checksum(rows) == part.bag:
            raise UserError(
                f"{row_numbers} are in another order than when they were seen: put them back in "
                "their order, or start another state"
            )
        raise UserError(
            f"{row_numbers} are not those that were seen at {part.look} (another file, rows put in "
            "between, or a changed score or group): give the file that was watched, or another "
            "state"
        )


def _check_labels(before: Period, labels: str, where: str) -> None:
    """Refuse labels that differ from those that were known."""
    pairs = enumerate(zip(before.labels, labels, strict=False), start=1)
    changed = [(row, old, now) for row, (old, now) in pairs if old not in (_NO_LABEL, now)]
    if changed:
        row, old, now = changed[0]
        is_now = "is gone" if now == _NO_LABEL else f"is {now} now"
        raise UserError(
            f"{where}: the label of row {count(row)} was {old} and {is_now}, one of "
            f"{count(len(changed))} such rows: put the old labels back, or start another state"
        )
