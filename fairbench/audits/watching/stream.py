"""What of a file is new: its rows compared with those that were seen, which must be unchanged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.audits.columns import read_frame
from fairbench.audits.leakage import check_score
from fairbench.audits.table import decisions_of
from fairbench.audits.watching.state import CROSSED, Period, SeenRows, WatchOptions, WatchState
from fairbench.core.errors import UserError
from fairbench.core.formats import MISSING, count
from fairbench.data.any_table import check_columns
from fairbench.data.checksums import ordered, unordered
from fairbench.data.columns import Place, each_value, labels_of, scores_of
from fairbench.data.periods import by_period, natural, period_asked
from fairbench.data.tabular import spelled

Floats = NDArray[np.float64]

_SIGNS, _NO_LABEL = {0: "0", 1: "1"}, "?"


@dataclass(frozen=True, eq=False)
class WatchedRows:
    """The rows of a file, by period and within it as they are in the file.

    Attributes
    ----------
    rows : ``period``, a name; ``text``, all that is read of a row but its label; ``key``, what
        tells one row from another, its identifier or ``text``; ``decision``; ``score``, NaN
        without scores; ``label``, NaN where it is not known. The index counts from 0.
    groups : a column of names for each attribute.
    names : what labels 0 and 1 are called, where the file has both.
    """

    rows: pd.DataFrame
    groups: pd.DataFrame
    names: tuple[str, ...] = ()


def read_watched(options: WatchOptions, names: tuple[str, ...]) -> WatchedRows:
    """Read a file that is watched.

    Parameters
    ----------
    names : of labels 0 and 1, where both were seen before.

    Raises
    ------
    UserError : a file or column that is not there, or a value that cannot be; names the row.
    """
    asked, file = options.audit, options.path.name
    frame = read_frame(asked, every=bool(options.time or options.id))
    time, _ = period_asked(options.time)
    further = [name for name in (time, options.id) if name]
    check_columns(file, further, list(map(str, frame.columns)))
    if time:
        frame = by_period(frame, options.time, file)
    label, names = _labels(frame, options, names)
    places = {name: Place(file, name) for name in asked.columns}
    score = scores_of(frame, places[options.score]) if options.score else None
    if score is not None:
        check_score(label, score, file, options.score)
    decision = decisions_of(frame, places, asked, score, names)
    read = [name for name in asked.columns if name != options.target]
    if options.id:
        Place(file, options.id).refuse_blank(frame[options.id], "an identifier")
        read.append(options.id)
    text = [
        "\x1f".join(row) for row in zip(*(frame[name].astype(str) for name in read), strict=True)
    ]
    rows = pd.DataFrame(
        {
            "period": frame[time] if time else "",
            "text": text,
            "key": frame[options.id].astype(str) if options.id else text,
            "decision": decision,
            "score": np.nan if score is None else score,
            "label": label,
        }
    )
    groups = pd.DataFrame({name: _groups(frame, name) for name in options.group})
    return WatchedRows(rows, groups, names if {0, 1} <= {*label} else ())


def _groups(frame: pd.DataFrame, name: str) -> pd.Series:
    """Return the group of every row; a combination of columns joins their values."""
    first, *others = (
        frame[column].astype(str).replace("", MISSING) for column in name.split(CROSSED)
    )
    return first.str.cat(others, sep=CROSSED)


def _labels(
    frame: pd.DataFrame, options: WatchOptions, names: tuple[str, ...]
) -> tuple[Floats, tuple[str, str]]:
    """Return the labels, NaN where unknown, and what 0 and 1 are called."""
    text = frame[options.target] if options.target else pd.Series("", frame.index)
    place = Place(options.path.name, options.target or "label")
    codes, values = each_value(text, spelled)
    if names:
        first, second = names
    elif options.prediction and len({*values} - {""}) < 2:  # decisions tell what labels do not yet
        decided = Place(place.file, options.prediction)
        _, (first, second) = labels_of(frame[options.prediction], decided, options.positive)
    else:
        _, (first, second) = labels_of(text, place, options.positive)
    meaning = {"": np.nan, first: 0.0, second: 1.0}
    valid = np.array([value in meaning for value in values])
    place.refuse(text, ~valid[codes], f"'{first}' or '{second}', the labels there are")
    return np.array([meaning[value] for value in values])[codes], (first, second)


def news(
    state: WatchState, table: WatchedRows, look: str
) -> tuple[pd.DataFrame, tuple[Period, ...]]:
    """Return what of a file is new as :func:`events_of` does, and all that was seen after it.

    Raises
    ------
    UserError : rows that were seen are gone, in another order, changed or labelled otherwise, or
        belong to an earlier period than the last.
    """
    seen, file = {period.name: period for period in state.periods}, state.options.path.name
    late: list[int] = []
    new: list[int] = []
    for name, rows in table.rows.groupby("period", sort=False):
        before = seen.get(name, Period(name, (), ""))
        signs = "".join(rows["label"].map(_SIGNS).fillna(_NO_LABEL))
        _check_unchanged(before, rows, signs, f"{file}, period '{name}'" if name else file)
        fresh = rows[len(before.labels) :]
        if len(fresh) and state.periods and natural(name) < natural(state.periods[-1].name):
            raise UserError(
                f"{file}: period '{name}' has {count(len(fresh))} rows that are new, and "
                f"'{state.periods[-1].name}' was looked at already: a watch goes forward; start "
                "another state to take them in"
            )
        labels = zip(rows.index, before.labels, signs, strict=False)
        late += [position for position, old, sign in labels if old != sign]
        new += fresh.index.tolist()
        text = fresh["text"].tolist()
        parts = [SeenRows(len(text), ordered(text), unordered(text), look)] * bool(text)
        seen[name] = Period(name, (*before.parts, *parts), signs)
    periods = tuple(seen[name] for name in sorted(seen, key=natural))
    return events_of(state, table, late, new), periods


def events_of(
    state: WatchState, table: WatchedRows, late: Sequence[int], new: Iterable[int]
) -> pd.DataFrame:
    """Return what is counted one after the other: labels that came late, then new rows.

    Parameters
    ----------
    late, new : positions in the table.

    Returns
    -------
    These rows of the table, with the rows so far as ``row``, and whether the row itself is counted
    and whether its label is, as ``counted`` and ``labelled``.
    """
    events = table.rows.loc[[*late, *new]]
    is_new = np.arange(len(events)) >= len(late)
    return events.assign(
        row=state.rows + np.cumsum(is_new), counted=is_new, labelled=events["label"].notna()
    )


def _check_unchanged(before: Period, rows: pd.DataFrame, signs: str, where: str) -> None:
    """Refuse what was changed of rows that were seen.

    Parameters
    ----------
    rows : all rows of the period. signs : of their labels.
    """
    if len(rows) < len(before.labels):
        raise UserError(
            f"{where} has {count(len(rows))} rows, and {count(len(before.labels))} were seen: put "
            "the missing rows back where they were, or start another state"
        )
    start, every = 0, rows["text"].tolist()
    for part in before.parts:
        text = every[start : start + part.rows]
        named = f"{where}: rows {count(start + 1)} to {count(start + part.rows)}"
        start += part.rows
        if ordered(text) == part.digest:
            continue
        if unordered(text) == part.bag:
            raise UserError(
                f"{named} are in another order than when they were seen: put them back in their "
                "order, or start another state"
            )
        raise UserError(
            f"{named} are not those that were seen at {part.look} (another file, rows put in "
            "between, or a changed score or group): give the file that was watched, or another "
            "state"
        )
    labels = enumerate(zip(before.labels, signs, strict=False), start=1)
    changed = [(row, old, sign) for row, (old, sign) in labels if old not in (_NO_LABEL, sign)]
    if changed:
        row, old, sign = changed[0]
        now = "is gone" if sign == _NO_LABEL else f"is {sign} now"
        raise UserError(
            f"{where}: the label of row {count(row)} was {old} and {now}, one of "
            f"{count(len(changed))} such rows: put the old labels back, or start another state"
        )
