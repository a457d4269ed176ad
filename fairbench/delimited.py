"""Reading delimited text strictly: every fault is reported with file and row."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from csv import reader as csv_reader
from typing import Any

import pandas as pd

from fairbench.errors import DataError

_BLOCK = 1 << 24


def read_table(
    content: bytes, file: str, *, names: Sequence[str] | None = None, separator: str = ","
) -> pd.DataFrame:
    """Read a delimited text file as strings, blanks around fields removed.

    A header that occurs twice is called ``name`` and ``name.1``. The index counts the file's data
    rows from 0, so that a frame that was filtered still names the rows of the file.

    Parameters
    ----------
    content : the file's bytes, UTF-8 (a byte-order mark is dropped).
    file : its name, for messages.
    names : the columns, for a file without a header line; without them the first line names them.

    Raises
    ------
    DataError : not UTF-8, not a table, or a row with too few or too many fields.
    """
    from pyarrow import ArrowInvalid
    from pyarrow import compute as pc

    content = content.removeprefix(b"\xef\xbb\xbf")
    columns = _unique(_header(content, file, separator) if names is None else names)
    wrong: list[tuple[int, int]] = []
    try:
        table = _parsed(content, columns, separator, header=names is None, wrong=wrong)
    except (ArrowInvalid, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0]
        if "UTF8" in reason or isinstance(error, UnicodeDecodeError):
            raise DataError(f"{file}: {_not_text(content)}") from error
        raise DataError(f"{file}: not a table separated by '{separator}': {reason}") from error
    if wrong:
        row, width = wrong[0]
        raise DataError(
            f"{file}: row {row} has {width} fields separated by '{separator}', expected "
            f"{len(columns)} ({', '.join(columns[:3])}, ...)"
        )
    return pd.DataFrame(
        {name: pc.utf8_trim_whitespace(table[name]).to_pandas() for name in columns}
    )


def _parsed(
    content: bytes,
    columns: Sequence[str],
    separator: str,
    *,
    header: bool,
    wrong: list[tuple[int, int]],
) -> Any:
    """Return the Arrow table of strings; rows of another width go, as (row, width), to `wrong`."""
    from pyarrow import BufferReader, csv

    def note(row: csv.InvalidRow) -> str:
        wrong.append((row.number - header, row.actual_columns))
        return "skip"

    read = csv.ReadOptions(
        column_names=columns, skip_rows=int(header), use_threads=False, block_size=_BLOCK
    )
    parse = csv.ParseOptions(delimiter=separator, invalid_row_handler=note)
    convert = csv.ConvertOptions(column_types=dict.fromkeys(columns, "string"))
    return csv.read_csv(BufferReader(content), read, parse, convert)


def _header(content: bytes, file: str, separator: str) -> list[str]:
    first, _, _ = content.partition(b"\n")
    try:
        line = first.decode("utf-8").rstrip("\r")
    except UnicodeDecodeError as error:
        raise DataError(f"{file}: {_not_text(content)}") from error
    if not line.strip():
        raise DataError(f"{file}: no header line: is the file empty?")
    return [name.strip() for name in next(csv_reader([line], delimiter=separator))]


def _unique(names: Sequence[str]) -> list[str]:
    seen: dict[str, int] = {}
    unique = []
    for name in names:
        count = seen.get(name, 0)
        seen[name] = count + 1
        unique.append(f"{name}.{count}" if count else name)
    return unique


def _not_text(content: bytes) -> str:
    """Say where the first byte is that is not UTF-8."""
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        return f"not UTF-8 text (line {line}, byte {error.start})"
    return "not UTF-8 text"


def require_columns(
    frame: pd.DataFrame, columns: Collection[str], file: str, *, width: int | None = None
) -> None:
    """Refuse a table that lacks a column, or has more or fewer than `width`; names the first."""
    for column in columns:
        if column not in frame.columns:
            found = ", ".join(map(str, frame.columns[:8]))
            raise DataError(f"{file}: no column '{column}' (found {found} ...)")
    if width is not None and frame.shape[1] != width:
        raise DataError(
            f"{file}: {frame.shape[1]} columns, the archive's file has {width} (the last one here "
            f"is '{frame.columns[-1]}')"
        )
