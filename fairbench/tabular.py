"""Reading raw tables strictly: every fault is reported with file, column and row."""

from __future__ import annotations

import io
from collections.abc import Collection, Mapping, Sequence

import numpy as np
import pandas as pd

from fairbench.errors import DataError


def read_table(
    content: bytes,
    file: str,
    *,
    names: Sequence[str] | None = None,
    separator: str = ",",
    comment: str | None = None,
) -> pd.DataFrame:
    """Read a delimited text file as strings, blanks around fields removed.

    Parameters
    ----------
    content : the file's bytes, UTF-8 (a byte-order mark is dropped).
    file : its name, for messages.
    names : the columns, for a file without a header line; without them the first line names them.
    comment : a character that starts a comment.

    Raises
    ------
    DataError : not UTF-8, not a table, or a row with too few or too many fields.
    """
    try:
        frame = pd.read_csv(
            io.BytesIO(content),
            header=None if names else 0,
            sep=separator,
            comment=comment,
            dtype=str,
            keep_default_na=False,
            skipinitialspace=True,
            encoding="utf-8-sig",
            index_col=False if not names else None,
        )
    except UnicodeDecodeError as error:
        raise DataError(f"{file}: not UTF-8 text (byte {error.start})") from error
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        reason = str(error).replace("Error tokenizing data. C error: ", "").strip()
        raise DataError(f"{file}: not a table separated by '{separator}': {reason}") from error
    if names:
        if frame.shape[1] != len(names):
            raise DataError(
                f"{file}: {frame.shape[1]} columns separated by '{separator}', expected "
                f"{len(names)} ({', '.join(names[:3])}, ...)"
            )
        frame.columns = pd.Index(names)
    short = frame.isna().any(axis=1).to_numpy()
    if short.any():
        row = int(np.flatnonzero(short)[0]) + 1
        raise DataError(f"{file}: row {row} has fewer than {frame.shape[1]} fields")
    return frame


def require_columns(frame: pd.DataFrame, columns: Collection[str], file: str) -> None:
    """Refuse a table that lacks a column, naming the first."""
    for column in columns:
        if column not in frame.columns:
            found = ", ".join(map(str, frame.columns[:8]))
            raise DataError(f"{file}: no column '{column}' (found {found} ...)")


def numbers(frame: pd.DataFrame, column: str, file: str, *, missing: str = "") -> pd.Series:
    """Return a column as float64; `missing` and nothing else becomes NaN.

    Raises
    ------
    DataError : a field that is no number; names the first.
    """
    text = frame[column]
    values = pd.to_numeric(text, errors="coerce").astype(np.float64)
    wrong = (values.isna() & (text != missing)).to_numpy()
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise DataError(
            f"{file}: column '{column}', row {row + 1}: {text.iloc[row]!r} is no number"
        )
    return values


def categories(
    frame: pd.DataFrame,
    column: str,
    file: str,
    *,
    allowed: Collection[str] | None = None,
    missing: str = "",
) -> pd.Series:
    """Return a column as a categorical with sorted categories; `missing` becomes NaN.

    Raises
    ------
    DataError : a value that is not `allowed`; names the first.
    """
    text = frame[column]
    if allowed is not None:
        wrong = ~text.isin([*allowed, missing]).to_numpy()
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            raise DataError(
                f"{file}: column '{column}', row {row + 1}: {text.iloc[row]!r} is not one of "
                f"{', '.join(sorted(allowed))}"
            )
    present = sorted(set(text.unique()) - {missing})
    return pd.Series(pd.Categorical(text, categories=present), index=frame.index, name=column)


def labels(codes: pd.Series, names: Mapping[str, str]) -> pd.Series:
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


def expect_rows(frame: pd.DataFrame, expected: int, file: str) -> None:
    """Refuse a file with another number of rows than the archive's."""
    if len(frame) != expected:
        raise DataError(f"{file}: {len(frame)} rows, expected {expected}: is the file truncated?")
