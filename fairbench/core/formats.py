"""How numbers and texts are written, so that sentences, tables and pages write them alike."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import isnan
from pathlib import Path
from typing import IO, TYPE_CHECKING
from unicodedata import category

if TYPE_CHECKING:
    import pandas as pd

_LARGE = 100  # from which a number has one decimal
_NONE = "-"


def visible(text: str, *, lines: bool = False) -> str:
    r"""Return a text with every sign that does something in place of being shown as its code.

    Escape sequences of a terminal, marks that turn the direction of writing round, and line breaks
    (which stay if `lines`): a label of somebody's data may hold them, and must not be obeyed.

    Examples
    --------
    >>> print(visible("\x1b[31mred"))
    \x1b[31mred
    """
    if text.isprintable():
        return text
    kept = "\n" if lines else ""
    return "".join(sign if _shown(sign) or sign in kept else repr(sign)[1:-1] for sign in text)


def _shown(sign: str) -> bool:
    return sign.isprintable() or category(sign) == "Zs"  # spaces of any width


def number(value: float, decimals: int = 3) -> str:
    """Return a number, a dash for one that is undefined."""
    if isnan(value):
        return _NONE
    return f"{value:.{decimals if abs(value) < _LARGE else 1}f}"


def signed(value: float, decimals: int = 3) -> str:
    """Return a number with its sign."""
    return _NONE if isnan(value) else f"{value:+.{decimals}f}"


def interval(lower: float, upper: float, decimals: int = 3) -> str:
    """Return the ends of an interval, nothing of one that is undefined."""
    return "" if isnan(lower) else f"{number(lower, decimals)} to {number(upper, decimals)}"


def half_width(value: float, lower: float, upper: float) -> str:
    """Return a share and half the width of its interval in nine characters."""
    if isnan(value):
        return _NONE
    half = "" if isnan(lower) else f" ±{(upper - lower) / 2:.2f}".replace("0.", ".")
    return f"{value:.2f}{half}"


def probability(value: float) -> str:
    """Return a probability, never as 0 or 1: it was simulated."""
    if isnan(value):
        return _NONE
    if value < 0.01:
        return "<0.01"
    return ">0.99" if value > 0.99 else f"{value:.2f}"


def percent(value: float) -> str:
    """Return a probability in percent; what is only near is not written as 0 or 100."""
    if isnan(value):
        return _NONE
    if 0 < value < 0.01:
        return "<1"
    return ">99" if 0.99 < value < 1 else f"{100 * value:.0f}"


def count(value: float) -> str:
    """Return a whole number with separators."""
    return _NONE if isnan(value) else f"{value:,.0f}"


_FORMULA = re.compile(r"'*[=+\-@\t\r]")


def csv_text(table: pd.DataFrame, *, index_label: str = "") -> str:
    """Return a table as CSV that a spreadsheet shows as it is.

    A text that a spreadsheet would compute, such as ``=A1+1``, has an apostrophe before it, which
    spreadsheets take for "this is text"; :func:`read_csv` takes it away again.
    """
    safe = _renamed(table, _guarded)
    return str(safe.to_csv(index=bool(index_label), index_label=index_label or None))


def read_csv(file: Path | IO[bytes]) -> pd.DataFrame:
    """Read a table that :func:`csv_text` wrote."""
    import pandas as pd

    return _renamed(pd.read_csv(file), _unguarded)


def _renamed(table: pd.DataFrame, change: Callable[[str], str]) -> pd.DataFrame:
    """Return a table with its texts, and the names of its columns, changed."""
    changed = {
        name: table[name].map({text: change(text) for text in texts})
        for name in table
        if (texts := _texts(table[name]))
    }
    return table.assign(**changed).rename(columns=change)


def _texts(column: pd.Series) -> list[str]:
    """Return the texts of a column that could be taken for a formula."""
    if column.dtype.kind in "biufcmM":
        return []
    texts = [each for each in column.unique() if isinstance(each, str)]
    return texts if any(map(_FORMULA.match, texts)) else []


def _guarded(text: str) -> str:
    return f"'{text}" if _FORMULA.match(text) and not is_number(text) else text


def _unguarded(text: str) -> str:
    return text[1:] if text[:1] == "'" and _FORMULA.match(text) else text


def is_number(text: str) -> bool:
    """Say whether a text is written as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True
