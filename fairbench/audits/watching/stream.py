"""What of a file is new: its rows compared with those that were seen, which must be unchanged."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.audits.columns import read_frame
from fairbench.audits.leakage import check_score
from fairbench.audits.table import decisions_of
from fairbench.audits.watching.state import (
    CROSSED,
    Period,
    SeenRows,
    WatchOptions,
    WatchState,
    crossed,
)
from fairbench.core.errors import UserError, unknown_name
from fairbench.core.formats import MISSING, count
from fairbench.data.columns import Place, each_value, labels_of, scores_of
from fairbench.data.periods import period_asked, periods_of
from fairbench.data.tabular import spelled

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
_SIGNS, UNKNOWN = np.array(["0", "1", "?"]), 2
_MASK = (1 << 64) - 1


@dataclass(frozen=True, eq=False)
class WatchedRows:
    """The rows of a file, by period and within it as they are in the file.

    Attributes
    ----------
    period : (n,) names. text : (n,) all that is read of a row but its label.
    groups : attribute -> (n,) names. decision : (n,). score : (n,), NaN without scores.
    label : (n,) 0, 1, or 2 where it is not known. names : what labels 0 and 1 are called.
    key : (n,) what tells one row from another: its identifier, or `text`.
    """

    period: NDArray[np.str_]
    text: Sequence[str]
    groups: Mapping[str, NDArray[np.str_]]
    decision: Rows
    score: Floats
    label: Rows
    names: tuple[str, ...]
    key: Sequence[str] = ()

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.decision)


@dataclass(frozen=True, eq=False)
class New:
    """What a look adds: positions in the table, in the order they are counted.

    Attributes
    ----------
    late : rows seen before, whose label has come. rows : rows not seen before.
    periods : all that has been seen, after this look.
    counted : which of `rows` are counted; the others came before. None where all are.
    labels : which labels of `rows` are counted; None where all are.
    """

    late: Rows
    rows: Rows
    periods: tuple[Period, ...]
    counted: NDArray[np.bool_] | None = None
    labels: NDArray[np.bool_] | None = None


def read_watched(options: WatchOptions, names: tuple[str, ...]) -> WatchedRows:
    """Read a file that is watched.

    Parameters
    ----------
    names : of labels 0 and 1, where both were seen before.

    Raises
    ------
    UserError : a file or column that is not there, or a value that cannot be; names the row.
    """
    asked = options.audit
    frame = read_frame(asked, every=bool(options.time or options.id))
    file = options.path.name
    time, unit = period_asked(options.time)
    for name in (time, options.id, *asked.columns):
        if name and name not in frame:
            raise unknown_name(f"column of {file}", name, list(map(str, frame.columns)))
    frame = _in_order(frame, time, unit, file)
    label, names = _labels(frame, options, names)
    places = {name: Place(file, name) for name in asked.columns}
    score = scores_of(frame, places[options.score]) if options.score else None
    if score is not None:
        check_score(np.where(label == UNKNOWN, np.nan, label), score, file, options.score)
    decision = decisions_of(frame, places, asked, score, names)
    groups = {each: _names_of(frame[crossed(each)]) for each in options.group}
    period = frame[time] if time else pd.Series("", frame.index)
    read = [frame[name].astype(str) for name in asked.columns if name != options.target]
    if options.id:
        blank = (frame[options.id].astype(str) == "").to_numpy()
        Place(file, options.id).refuse(frame[options.id], blank, "an identifier")
        read.append(frame[options.id].astype(str))
    text = ["\x1f".join(row) for row in zip(*read, strict=True)]
    key = frame[options.id].astype(str).tolist() if options.id else text
    known = np.full(len(frame), np.nan) if score is None else score
    stored = names if len(set(label.tolist()) & {0, 1}) == 2 else ()
    return WatchedRows(period.to_numpy(str), text, groups, decision, known, label, stored, key)


def _in_order(frame: pd.DataFrame, time: str, unit: str, file: str) -> pd.DataFrame:
    """Return the rows by period, as ``week 2`` before ``week 10``; dates as their periods."""
    if not time:
        return frame
    blank = (frame[time] == "").to_numpy()
    Place(file, time).refuse(frame[time], blank, "a period")
    if unit:
        frame = frame.assign(**{time: periods_of(frame[time], unit, file)})
    order = {name: i for i, name in enumerate(sorted(set(frame[time]), key=natural))}
    place = frame[time].map(order).to_numpy()
    return frame.iloc[np.argsort(place, kind="stable")]


def natural(name: str) -> list[tuple[bool, int, str]]:
    """Return what periods are sorted by: numbers in a name as numbers."""
    parts = re.split(r"(\d+)", name)
    return [(each.isdecimal(), int(each) if each.isdecimal() else 0, each) for each in parts]


def _names_of(columns: pd.DataFrame) -> NDArray[np.str_]:
    """Return the group of every row; a combination of columns joins their values."""
    read = [each_value(columns[name], lambda value: value or MISSING) for name in columns]
    parts = [np.array(values, str)[codes] for codes, values in read]
    return reduce(lambda first, other: np.strings.add(np.strings.add(first, CROSSED), other), parts)


def _labels(
    frame: pd.DataFrame, options: WatchOptions, names: tuple[str, ...]
) -> tuple[Rows, tuple[str, str]]:
    """Return the labels as codes, and what 0 and 1 are called."""
    blank = pd.Series("", frame.index)
    text = frame[options.target] if options.target else blank
    place = Place(options.path.name, options.target or "label")
    found = (names[0], names[1]) if names else _label_names(frame, text, place, options)
    codes, spelling = each_value(text, spelled)
    fine = np.array([each in ("", *found) for each in spelling])
    place.refuse(text, ~fine[codes], f"'{found[0]}' or '{found[1]}', the labels there are")
    meaning = {"": UNKNOWN, found[0]: 0, found[1]: 1}
    return np.array([meaning.get(each, UNKNOWN) for each in spelling])[codes], found


def _label_names(
    frame: pd.DataFrame, text: pd.Series, place: Place, options: WatchOptions
) -> tuple[str, str]:
    """Return what labels 0 and 1 are called; decisions tell it where labels do not yet."""
    if options.prediction and text.map(spelled).replace("", np.nan).nunique() < 2:
        text, place = frame[options.prediction], Place(place.file, options.prediction)
    return labels_of(text, place, options.positive)[1]


def news(state: WatchState, table: WatchedRows, file: Path, look: str) -> New:
    """Return what of a file is new.

    Raises
    ------
    UserError : rows that were seen are gone, in another order, changed or labelled otherwise, or
        belong to an earlier period than the last.
    """
    seen = {each.name: each for each in state.periods}
    late, rows, after = [], [], dict(seen)
    last = state.periods[-1].name if state.periods else None
    found = list(dict.fromkeys(table.period.tolist()))
    if not state.options.time and not found:
        found = [""]
    for name in found:
        here = np.flatnonzero(table.period == name)
        before = seen.get(name, Period(name, (), ""))
        known = _unchanged(before, table, here, file)
        fresh = here[len(before.labels) :]
        if len(fresh) and last is not None and natural(name) < natural(last):
            raise UserError(
                f"{file.name}: period '{name}' has {count(len(fresh))} rows that are new, and "
                f"'{last}' was looked at already: a watch goes forward; start another state to "
                "take them in"
            )
        late.append(known)
        rows.append(fresh)
        after[name] = _grown(before, table, here, fresh, look)
    order = sorted(after, key=natural)
    empty = np.zeros(0, np.int64)
    return New(
        np.concatenate([empty, *late]),
        np.concatenate([empty, *rows]),
        tuple(after[name] for name in order),
    )


def _unchanged(before: Period, table: WatchedRows, here: Rows, file: Path) -> Rows:
    """Return the rows whose labels have come, of those that were seen; refuse what is changed."""
    where = f"{file.name}, period '{before.name}'" if before.name else file.name
    seen = len(before.labels)
    if len(here) < seen:
        raise UserError(
            f"{where} has {count(len(here))} rows, and {count(seen)} were seen: put the missing "
            "rows back where they were, or start another state"
        )
    start = 0
    for part in before.parts:
        _check_part(part, [table.text[i] for i in here[start : start + part.rows]], where, start)
        start += part.rows
    signs = _SIGNS[table.label[here[:seen]]]
    old = np.array(list(before.labels), dtype="U1")
    changed = np.flatnonzero((old != "?") & (signs != old))
    if len(changed):
        row = int(changed[0])
        now = "is gone" if signs[row] == "?" else f"is {signs[row]} now"
        raise UserError(
            f"{where}: the label of row {count(row + 1)} was {old[row]} and {now}, one of "
            f"{count(len(changed))} such rows: put the old labels back, or start another state"
        )
    come: Rows = here[:seen][(old == "?") & (signs != "?")]
    return come


def _check_part(part: SeenRows, text: Sequence[str], where: str, start: int) -> None:
    if digest(text) == part.digest:
        return
    rows = f"rows {count(start + 1)} to {count(start + part.rows)}"
    if bag(text) == part.bag:
        raise UserError(
            f"{where}: {rows} are in another order than when they were seen: put them back in "
            "their order, or start another state"
        )
    raise UserError(
        f"{where}: {rows} are not those that were seen at {part.look} (another file, rows put in "
        "between, or a changed score or group): give the file that was watched, or another state"
    )


def _grown(before: Period, table: WatchedRows, here: Rows, fresh: Rows, look: str) -> Period:
    labels = "".join(_SIGNS[table.label[here]].tolist())
    if not len(fresh):
        return replace(before, labels=labels)
    text = [table.text[i] for i in fresh]
    part = SeenRows(len(fresh), digest(text), bag(text), look)
    return Period(before.name, (*before.parts, part), labels)


def digest(text: Sequence[str]) -> str:
    """Return what tells rows in their order."""
    total = hashlib.sha256()
    for each in _lines(text):
        total.update(each)
    return total.hexdigest()[:32]


def bag(text: Sequence[str]) -> str:
    """Return what tells rows in any order."""
    parts = (hashlib.blake2b(each, digest_size=8).digest() for each in _lines(text))
    return f"{sum(int.from_bytes(each) for each in parts) & _MASK:016x}"


def _lines(text: Sequence[str]) -> Iterator[bytes]:
    for each in text:
        yield f"{each}\x1e".encode(errors="backslashreplace")
