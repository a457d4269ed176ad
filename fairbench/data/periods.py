"""Dates as the periods they lie in: asked for where their column is named, as ``date:month``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import date
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.core.errors import UserError, check_choice
from fairbench.core.formats import quoted
from fairbench.data.columns import ColumnRef

_FORMS = {
    "day": "%Y-%m-%d",
    "week": "%G-W%V",
    "month": "%Y-%m",
    "quarter": "%Y-Q",  # and its number
    "year": "%Y",
}
_NAMES = {
    "day": r"(\d{4})-(\d\d)-(\d\d)",
    "week": r"(\d{4})-W(\d\d)",
    "month": r"(\d{4})-(0[1-9]|1[0-2])",
    "quarter": r"(\d{4})-Q([1-4])",
}
_DIGITS = 15
_OF_YEAR = {"month": 12, "quarter": 4}
_ISO = r"^(?P<year>\d{4})[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})"
_DOTTED = r"^(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4})"
_SLASHED = r"^(?P<first>\d{1,2})[/-](?P<second>\d{1,2})[/-](?P<year>\d{4})"
_TIME = r"(?:[T ].*)?$"


def period_asked(time: str) -> tuple[str, str]:
    """Return the column of periods and their unit, empty where its values are the periods.

    Raises
    ------
    UserError : a unit that there is not.
    """
    name, colon, unit = time.rpartition(":")
    if not colon:
        return time, ""
    check_choice("period", unit, _FORMS)
    return name, unit


def periods_of(column: pd.Series, unit: str, file: str) -> pd.Series:
    """Return the period of each date, in names that sort by time: ``2024-03``, ``2024-W09``.

    Raises
    ------
    UserError : a value that is no date, or dates of which day and month cannot be told apart.
    """
    text = pd.Series(column.unique()).astype(str).str.strip()
    iso, dotted, slashed = (text.str.extract(form + _TIME) for form in (_ISO, _DOTTED, _SLASHED))
    parts = iso.fillna(dotted)
    day_first, month_first = (
        (slashed[part].astype(float) > 12).any() for part in ("first", "second")
    )
    if day_first != month_first:
        order = ("day", "month") if day_first else ("month", "day")
        parts = parts.fillna(slashed.set_axis([*order, "year"], axis=1))
    written = parts["year"] + "-" + parts["month"] + "-" + parts["day"]
    dates = pd.to_datetime(written, format="%Y-%m-%d", errors="coerce")
    if dates.isna().any():
        unread = dates.isna().idxmax()
        row = int((column == column.unique()[unread]).to_numpy().argmax())
        is_unclear = slashed["year"].notna()[unread] and day_first == month_first
        why = "may have the day or the month first" if is_unclear else "is no date"
        raise UserError(
            f"{file}: column '{column.name}', row {row + 1}: {quoted(text[unread])} {why}: write "
            "dates as 2024-12-31"
        )
    names = dates.dt.strftime(_FORMS[unit])
    if unit == "quarter":
        names += dates.dt.quarter.astype(str)
    return column.map(dict(zip(column.unique(), names, strict=True))).astype(str)


def natural(name: str) -> list[tuple[Decimal, str]]:
    """Return a key that sorts names by the numbers in them, which may have any number of digits."""
    return [(Decimal(part if part.isdecimal() else 0), part) for part in re.split(r"(\d+)", name)]


def spelling(name: str) -> str:
    """Return a spelling that names of one period share: ``Week 7`` and ``week 07``."""
    plain = " ".join(name.split()).casefold()
    return re.sub(r"\d+", lambda digits: f"{Decimal(digits[0]):f}", plain)


def skipped(names: Sequence[str]) -> list[tuple[str, str, int]]:
    """Return the periods that are missing, as the names around them and how many they are.

    Names are compared that are numbered, or dates: ``week 7``, ``2024-W52``, ``2024-03``,
    ``2024-Q1``, ``2024``. Days are missing where more of them are than ever before, so that weeks
    without Sundays are whole.

    Parameters
    ----------
    names : the names of periods, in order.
    """
    gaps = []
    usual = 1
    for first, last in pairwise(names):
        (kind, start), (other, stop) = _place(first), _place(last)
        if kind != other or stop - start <= (usual if kind == "day" else 1):
            continue
        gaps.append((first, last, stop - start - 1))
        usual = stop - start
    return gaps


def _place(name: str) -> tuple[str, int]:
    """Return the kind of a period, and its number among all periods of that kind."""
    for unit, written in _NAMES.items():
        if match := re.fullmatch(written, name):
            year, *parts = map(int, match.groups())
            with suppress(ValueError):  # the 30th of February is a name as any other
                if unit == "day":
                    return unit, date(year, *parts).toordinal()
                if unit == "week":
                    return unit, date.fromisocalendar(year, parts[0], 1).toordinal() // 7
                return unit, year * _OF_YEAR[unit] + parts[0]
    *start, number, end = "", *re.split(r"(\d+)", name)
    # More digits than any number of a period has are a part of its name.
    return f"{''.join(start)}{number[:-_DIGITS]} {end}", int(number[-_DIGITS:] or 0)


def sort_by_period(frame: pd.DataFrame, time: str, file: str) -> pd.DataFrame:
    """Return a table in the order of its periods, ``week 2`` before ``week 10``; dates as periods.

    Parameters
    ----------
    time : the column of periods, or of dates with a unit: ``date:month``.

    Raises
    ------
    UserError : a row without a period, or with a date that is none.
    """
    name, unit = period_asked(time)
    ColumnRef(file, name).refuse_blank(frame[name], "a period")
    if unit:
        frame = frame.assign(**{name: periods_of(frame[name], unit, file)})
    ordered = sorted(frame[name].unique(), key=natural)
    places = {period: place for place, period in enumerate(ordered)}
    return frame.sort_values(
        name, key=lambda column: column.map(places), kind="stable", ignore_index=True
    )


def steps(period: NDArray[np.str_], block: int) -> Iterator[int]:
    """Yield the row numbers at which periods (n,) end, and even steps of about a block between."""
    ends = [*(np.flatnonzero(period[1:] != period[:-1]) + 1).tolist(), len(period)]
    for begin, end in zip([0, *ends], ends, strict=False):
        number = max(1, round((end - begin) / block))
        yield from (begin + (end - begin) * (i + 1) // number for i in range(number))
