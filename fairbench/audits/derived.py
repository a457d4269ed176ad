"""Columns made of others as they are read: ages in bands, dates by month, percents as shares.

They are asked for where the column is named, such as ``group=age:25,40,62`` or ``time=date:month``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.audits.named_columns import QUANTILES
from fairbench.core.errors import UserError, check_choice
from fairbench.core.formats import MISSING, quoted
from fairbench.data.tabular import to_numbers

Floats = NDArray[np.float64]
_POOLED = "other groups"


def with_bands(frame: pd.DataFrame, cuts: Sequence[str], file: str) -> pd.DataFrame:
    """Return a table with the numbers of some columns as the bands that they lie in.

    Parameters
    ----------
    cuts : each as ``age:25,40,62``.

    Raises
    ------
    UserError : a value that is no number; names the row.
    """
    changed = {}
    for each in cuts:
        name, _, spec = each.rpartition(":")
        if each in frame:
            raise UserError(
                f"{file}: '{each}' is a column, and also means bands of '{name}': rename one"
            )
        changed[name] = _bands(frame[name], spec, file)
    return frame.assign(**changed)


def _bands(column: pd.Series, spec: str, file: str) -> pd.Series:
    values = to_numbers(column)
    blank = (column.astype(str).str.strip() == "").to_numpy() | (column.isna()).to_numpy()
    wrong = ~np.isfinite(values) & ~blank
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise UserError(
            f"{file}: column '{column.name}', row {row + 1}: {quoted(column.iloc[row])} is no "
            f"number, which bands such as {column.name}:{spec} are of"
        )
    limits = _limits(values[~blank], spec)
    names = _names(limits)
    codes = np.where(blank, len(names), np.searchsorted(limits, values, side="right"))
    texts = np.array([*names, ""], dtype=object)[codes]
    return pd.Series(texts, column.index, name=column.name).astype(str)


def _limits(values: Floats, spec: str) -> Floats:
    parts = QUANTILES.fullmatch(spec)
    if not parts:
        return np.array([float(each) for each in spec.split(",")])
    count = int(parts.group(1))
    if not len(values):
        return np.zeros(0)
    limits = np.unique(np.quantile(values, np.arange(1, count) / count, method="inverted_cdf"))
    above: Floats = limits[limits > values.min()]
    return above


def _names(limits: Floats) -> list[str]:
    """Return what bands are called, each limit in the band above it."""
    if not len(limits):
        return ["everyone"]
    shown = [f"{each:.10g}" for each in limits]
    if len({*shown}) < len(shown):
        shown = [repr(float(each)) for each in limits]
    between = [f"{low} to under {high}" for low, high in zip(shown, shown[1:], strict=False)]
    return [f"under {shown[0]}", *between, f"{shown[-1]} and over"]


_BAND = re.compile(r"under (\S+)|(\S+) to under \S+|(\S+) and over")


def in_order(names: Iterable[str]) -> list[str]:
    """Return names of groups as a reader looks for them: bands from the lowest, others by name."""
    return sorted(names, key=lambda name: (*_place(name), name))


def _place(name: str) -> tuple[float, bool]:
    """Return where a band begins, and that it is not the lowest; names of no band come last."""
    band = _BAND.fullmatch(name)
    try:
        return (float(band[1] or band[2] or band[3]), not band[1]) if band else (np.inf, True)
    except ValueError:
        return np.inf, True


def as_shares(column: pd.Series) -> pd.Series:
    """Return percents as shares of 1; what is no number stays as it is."""
    if column.dtype.kind in "iuf":
        return column / 100
    values = to_numbers(column.astype(str).str.rstrip("% \u00a0"))
    fine = np.isfinite(values)
    shares = pd.Series(values / 100, column.index)
    return shares if fine.all() else column.where(~fine, shares.astype(str))


def with_rare_pooled(
    frame: pd.DataFrame, groups: Sequence[str], rare: int
) -> tuple[pd.DataFrame, list[str]]:
    """Return a table whose groups of fewer rows than `rare` are one group, and what is said of it.

    Each attribute is pooled by itself. One rare group alone stays as it is: it would only lose its
    name.
    """
    notes, changed = [], {}
    for name in groups if rare else ():
        sizes = frame[name].value_counts()
        small = sorted(str(each) for each, size in sizes.items() if size < rare)
        if len(small) < 2:
            continue
        changed[name] = frame[name].where(~frame[name].isin(small), _POOLED)
        shown = ", ".join(quoted(each or MISSING) for each in small[:5])
        more = f" and {len(small) - 5} more" if len(small) > 5 else ""
        notes.append(f"{name}: {shown}{more} have fewer than {rare} rows, and are '{_POOLED}' here")
    return frame.assign(**changed), notes


def without_groups(
    frame: pd.DataFrame, left_out: Sequence[str], groups: Sequence[str]
) -> tuple[pd.DataFrame, list[str]]:
    """Return a table without the rows of some groups, and what is said of it.

    Parameters
    ----------
    left_out : each as ``race=Other``.

    Raises
    ------
    UserError : a column that is no group column, or a group that no row is of.
    """
    keep, notes = np.ones(len(frame), bool), []
    for each in left_out:
        name, equals, label = each.partition("=")
        if not equals:
            raise UserError(f"leave_out={each}: name column and group, such as race=Other")
        check_choice("column of leave_out", name, groups)
        found = {str(value) or MISSING for value in frame[name].unique()}
        check_choice(f"group of '{name}' in leave_out", label, found)
        rows = (frame[name].replace("", MISSING) == label).to_numpy()
        keep &= ~rows
        notes.append(
            f"{name}: the {int(rows.sum())} rows of {quoted(label)} are left out, as asked"
        )
    return frame if keep.all() else frame[keep].reset_index(drop=True), notes


def periods_of(column: pd.Series, unit: str, file: str) -> pd.Series:
    """Return the period of each date, in names that sort by time: ``2024-03``, ``2024-W09``.

    Raises
    ------
    UserError : a value that is no date, or dates of which day and month cannot be told apart.
    """
    codes, values = pd.factorize(column)
    texts = [str(each).strip() for each in values]
    order = _order_of(texts)
    found = [_date(each, order) for each in texts]
    for place, (each, text) in enumerate(zip(found, texts, strict=True)):
        if each is None:
            row = int(np.flatnonzero(codes == place)[0])
            why = (
                "may have the day or the month first: write dates as 2024-12-31"
                if _SLASHED.match(text) and not order
                else "is no date: write dates as 2024-12-31"
            )
            raise UserError(f"{file}: column '{column.name}', row {row + 1}: {quoted(text)} {why}")
    names = np.array([_period(each, unit) for each in found if each is not None] or [""], object)
    return pd.Series(names[codes], column.index, name=column.name).astype(str)


_ISO = re.compile(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?:[T ].*)?$")
_DOTTED = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})(?:[T ].*)?$")
_SLASHED = re.compile(r"(\d{1,2})[/-](\d{1,2})[/-](\d{4})(?:[T ].*)?$")


def _order_of(texts: Sequence[str]) -> str:
    """Return whether day or month comes first in dates as 31/12/2024; nothing where none tells."""
    parts = [match.groups() for text in texts if (match := _SLASHED.match(text))]
    first = any(int(each[0]) > 12 for each in parts)
    second = any(int(each[1]) > 12 for each in parts)
    return "" if first == second else ("day" if first else "month")


def _date(text: str, order: str) -> date | None:
    try:
        if match := _ISO.match(text):
            return date(*map(int, match.groups()))
        if match := _DOTTED.match(text):
            return date(*map(int, reversed(match.groups())))
        if order and (match := _SLASHED.match(text)):
            one, two, year = map(int, match.groups())
            return date(year, two, one) if order == "day" else date(year, one, two)
    except ValueError:
        pass
    return None


def _period(day: date, unit: str) -> str:
    if unit == "week":
        year, week, _ = day.isocalendar()
        return f"{year}-W{week:02}"
    quarter = f"{day.year}-Q{(day.month + 2) // 3}"
    names = {"day": day.isoformat(), "month": f"{day:%Y-%m}", "quarter": quarter}
    return names.get(unit, f"{day:%Y}")
