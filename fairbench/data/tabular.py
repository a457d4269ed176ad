"""Turns columns of text into numbers, categories and labels; a fault is named by column and row."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.core.errors import DataError, unknown_name
from fairbench.core.formats import quoted


def numbers(
    frame: pd.DataFrame, column: str, file: str, *, missing: str | None = None
) -> pd.Series:
    """Return a column as float64; `missing` and nothing else becomes NaN.

    Raises
    ------
    DataError : a field that is no number; names the first.
    """
    text = frame[column]
    values = pd.Series(to_numbers(text), index=text.index, name=text.name)
    wrong = ~np.isfinite(values.to_numpy())
    if missing is not None:
        wrong &= (text != missing).to_numpy()
    if wrong.any():
        raise DataError(f"{_place(frame, column, file, wrong)} is no number")
    return values


def to_numbers(column: pd.Series) -> NDArray[np.float64]:
    """Return a column of texts or numbers as numbers, NaN where it has none."""
    if column.dtype == "str":
        from pyarrow import ArrowException, array, float64
        from pyarrow import compute as pc

        with suppress(ArrowException):  # which does not say which text is no number
            texts = pc.cast(array(column), float64())
            return np.asarray(texts, np.float64)
    return np.asarray(pd.to_numeric(column, errors="coerce"), np.float64)


def categories(
    frame: pd.DataFrame,
    column: str,
    file: str,
    *,
    allowed: Collection[str] | None = None,
    missing: str | None = None,
) -> pd.Series:
    """Return a column as a categorical with sorted categories; `missing` becomes NaN.

    Raises
    ------
    DataError : a value that is not `allowed`, or an empty one; names the first.
    """
    text = frame[column]
    fine = text.isin(list(allowed)) if allowed is not None else text != ""
    if missing is not None:
        fine |= text == missing
    if not fine.all():
        valid = f"is not one of {', '.join(sorted(allowed))}" if allowed else "is empty"
        raise DataError(f"{_place(frame, column, file, ~fine.to_numpy())} {valid}")
    present = sorted(set(text.unique()) - {missing})
    known = text if missing is None else text.where(text != missing)
    return pd.Series(pd.Categorical(known, categories=present), index=frame.index, name=column)


def _place(frame: pd.DataFrame, column: str, file: str, wrong: NDArray[np.bool_]) -> str:
    first = int(np.flatnonzero(wrong)[0])
    row = int(frame.index[first]) + 1
    return f"{file}: column '{column}', row {row}: {quoted(frame[column].iloc[first])}"


def binary(
    frame: pd.DataFrame, column: str, file: str, *, positive: str, negative: str
) -> pd.Series:
    """Return 1 where the column is `positive` and 0 where it is `negative`; nothing else goes."""
    return (categories(frame, column, file, allowed=(positive, negative)) == positive).astype(int)


def flag(
    frame: pd.DataFrame, column: str, file: str, *, positive: str = "1", negative: str = "0"
) -> pd.Series:
    """Return True where the column is `positive` and False where `negative`; nothing else goes."""
    return binary(frame, column, file, positive=positive, negative=negative) == 1


def labels(codes: pd.Series, names: Mapping[Any, str]) -> pd.Series:
    """Return codes as a categorical of human-readable names, in the order of `names`."""
    return pd.Series(
        pd.Categorical(codes.map(names), categories=list(dict.fromkeys(names.values()))),
        index=codes.index,
    )


def at_least(values: pd.Series, cut: float, name: str, *, strict: bool = False) -> pd.Series:
    """Return ``name >= cut`` / ``name < cut`` (or ``>`` / ``<=``) as a categorical, above first."""
    above = values > cut if strict else values >= cut
    upper, lower = (">", "<=") if strict else (">=", "<")
    names = [f"{name} {upper} {cut:g}", f"{name} {lower} {cut:g}"]
    return pd.Series(pd.Categorical.from_codes((~above).astype(int), names), index=values.index)


@dataclass(frozen=True)
class Scale:
    """A target's unit: ``scaled = (value - low) / span``."""

    low: float
    span: float

    def apply(self, values: pd.Series) -> pd.Series:
        """Return values in the scaled unit."""
        return (values - self.low) / self.span


def target_scale_of(values: pd.Series, how: str) -> Scale:
    """Return the scale of a regression target: ``minmax`` of all rows, or ``none``."""
    if how not in ("minmax", "none"):
        raise unknown_name("dataset.target_scale", how, ("minmax", "none"))
    if how == "none":
        return Scale(0.0, 1.0)
    return Scale(float(values.min()), float(values.max() - values.min()))


def one_of(option: str, value: str, valid: Sequence[str]) -> str:
    """Return `value` of the loader's `option`, or refuse it with the valid ones."""
    if value not in valid:
        raise unknown_name(f"dataset.{option}", value, valid)
    return value


_MISSING = {"", "nan", "na", "n/a", "null", "none", "<na>"}
# Negative and positive label, where it is plain which is which.
_PLAIN = (("0", "1"), ("false", "true"), ("-1", "1"), ("no", "yes"), ("n", "y"), ("f", "t"))


def spelled(text: str) -> str:
    """Return one spelling of a label: 1 for 1.0, true for True, nothing for NaN."""
    text = text.strip()
    if text.lower() in _MISSING:
        return ""
    if text.lower() in ("true", "false"):
        return text.lower()
    try:
        value = float(text)
    except ValueError:
        return text
    # Beyond 2**53 neighbours are one double, and digits tell them apart.
    if abs(value) >= 2**53:
        return text
    return str(int(value)) if value.is_integer() else repr(value)


def plain_pair(present: Collection[str]) -> tuple[str, str] | None:
    """Return the negative and the positive label where it is plain which is which.

    Parameters
    ----------
    present : one or two labels as they are written, such as ``No`` and ``Yes``.
    """
    for pair in _PLAIN:
        if {value.lower() for value in present} <= set(pair):
            return _as_written(pair, present)
    return None


def _as_written(pair: tuple[str, str], present: Collection[str]) -> tuple[str, str]:
    """Return a pair of plain labels as a file has them, such as ``No`` and ``Yes``."""
    change = str.upper if any(len(value) > 1 and value.isupper() for value in present) else str
    if any(value[:1].isupper() for value in present) and change is str:
        change = str.capitalize
    written = {value.lower(): value for value in present}
    negative, positive = (written.get(each, change(each)) for each in pair)
    return negative, positive
