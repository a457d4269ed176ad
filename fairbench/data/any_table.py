"""Reading a table from any common file: delimited text, Excel, Parquet or Arrow, compressed or not.

The separator, the packing, the encoding and decimal commas are detected. What was detected is
printed in one line.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from fairbench.core.errors import DataError, UserError, did_you_mean, note
from fairbench.core.files import FIELD, check_memory, is_text, written_out
from fairbench.core.formats import quoted
from fairbench.data.arrow_stream import stream_size
from fairbench.data.delimited import (
    as_texts,
    check_text,
    header,
    read_parquet,
    read_table,
    unique_names,
)
from fairbench.data.spreadsheet import sheet_as_text
from fairbench.data.tabular import are_missing
from fairbench.data.totals import (
    LeftOut,
    as_note,
    left_out_text,
    refuse_another_table,
    refuse_total,
    without_totals,
)
from fairbench.data.unpacking import ARROW, EXCEL, PARQUET, Content, content_of

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class TextTable:
    """A table as delimited text in UTF-8.

    Attributes
    ----------
    names : the header, blanks around names removed.
    guessed : a note for the reader on how the file was read.
    left_out : totals and notes below the table, which are not in `data`.
    doubtful : the first row at the end that may be a total, and is in `data`.
    """

    data: bytes
    separator: str
    names: Sequence[str]
    guessed: tuple[str, ...]
    left_out: Sequence[LeftOut] = ()
    doubtful: LeftOut | None = None


def check_file(path: Path) -> None:
    """Refuse a file that is not there, and name files in its folder with a similar name."""
    if not path.is_file():
        raise UserError(f"{path} is not a file{near_files(path)}")


def near_files(path: Path) -> str:
    """Return the end of a sentence on a missing file: files in its folder with a similar name."""
    neighbours = [neighbour.name for neighbour in path.parent.glob("*") if neighbour.is_file()]
    hint = did_you_mean(path.name, neighbours)
    return f"; {hint}" if hint else ""


def read_any_table(
    path: Path,
    named: Sequence[str],
    *,
    every: bool = False,
    exact: Collection[str] = (),
    numeric: Collection[str] | None = (),
    distinct: bool = False,
    without: Collection[str] = (),
    counts: bool = False,
) -> pd.DataFrame:
    """Read a file's columns as strings, and say in a line on the error stream what was guessed.

    What is to be said on a page, too, is in the frame's ``attrs["notes"]``. Columns are called as
    :func:`fairbench.data.delimited.unique_names` has it.

    Parameters
    ----------
    named : the columns that the table must have; others are dropped unless `every` is true.
    exact : the columns whose blanks stay: labels that differ in them are different labels.
    numeric : the columns in which a comma is a decimal comma. If it is None, these are all but the
        `exact` ones, and those that are numbers in the file, and are not `named`, stay numbers.
    without : names of columns that are left out, all columns of a name that is repeated.
    distinct : whether of a large Parquet file the distinct rows will do, each with its number
        (:func:`fairbench.data.distinct_rows.times_of`).
    counts : whether rows are counts of people, of which the last may well be a total.

    Raises
    ------
    UserError : a file or column that is not there, or that cannot be read.
    """
    check_file(path)
    guessed: tuple[str, ...] = ()
    left_out: Sequence[LeftOut] = ()
    try:
        content = content_of(path)
        of_arrow = content.kind in (PARQUET, ARROW)
        large = distinct and content.kind == PARQUET and not content.data
        frame = _distinct(path, named) if large else None
        if frame is None and of_arrow:
            table = read_arrow(path, content, named, without, every=every)
            frame = as_texts(table, path.name, {*exact, *named} if numeric is None else None)
        elif frame is None:
            text = text_table(path, content, named)
            columns = check_columns(path.name, named, text.names, without)
            if text.doubtful and not counts:
                raise refuse_total(text.doubtful, path.name)
            only = columns if every else named
            guessed, left_out = text.guessed, text.left_out
            frame = read_table(
                text.data, path.name, separator=text.separator, only=only, exact=exact
            )
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error}") from error
    if numeric is None:
        numeric = [name for name in frame if name not in exact]
    frame, commas = with_decimal_points(
        frame, [name for name in numeric if name in frame], path.name
    )
    say_guessed(path, (*guessed, *commas))
    if left_out:
        frame.attrs["notes"] = [as_note(left_out, path.name)]
    return frame


def names_in(path: Path, named: Sequence[str]) -> Sequence[str]:
    """Return the names of a file's columns.

    Parameters
    ----------
    named : columns that it may have, by which the separator of fields is recognised.
    """
    content = content_of(path)
    if content.kind in (PARQUET, ARROW):
        return list(read_arrow(path, content, (), every=True).column_names)
    return unique_names(text_table(path, content, named).names)


def say_guessed(path: Path, guessed: Sequence[str]) -> None:
    """Print on one line how a file was read, if that had to be guessed."""
    if guessed:
        note(f"{path.name} was read as: {', '.join(guessed)}")


def check_columns(
    file: str, named: Sequence[str], found: Sequence[str], without: Collection[str] = ()
) -> list[str]:
    """Return the columns of a table; refuse a name that none has, or that stands for several.

    Parameters
    ----------
    found : the header; columns are called as :func:`fairbench.data.delimited.unique_names` has it.
    without : names of columns that are left out, all columns of a name that is repeated.
    """
    columns = unique_names(found)
    for name in (*without, *named):
        if name not in columns and name not in found:
            raise _missing_column(file, name, columns)
    kept = {
        column: name
        for column, name in zip(columns, found, strict=True)
        if not {column, name} & {*without}
    }
    copies = Counter(kept.values())
    for name in named:
        if name not in kept:
            raise UserError(f"{file}: column {quoted(name)} is to be left out, and is asked for")
        if copies[name] > 1:
            last = [column for column, header in kept.items() if header == name][-1]
            raise DataError(
                f"{file}: {copies[name]} columns are named {quoted(name)}: rename one, or name the "
                f"last as {quoted(last)} (dataset.drop=[{last}] leaves it out of a run)"
            )
    return list(kept)


def _missing_column(file: str, name: str, found: Sequence[str]) -> UserError:
    """Return the error of a column that a table does not have, with the nearest or the first."""
    start = f"{file} has no column {quoted(name)}"
    if hint := did_you_mean(name, found, "'{}'"):
        return UserError(f"{start}; {hint}")
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return UserError(f"{start}: its columns are {', '.join(map(quoted, found[:_SHOWN]))}{more}")


_SHOWN = 12  # columns that a message lists


def read_arrow(
    path: Path,
    content: Content,
    named: Sequence[str],
    without: Collection[str] = (),
    *,
    every: bool = False,
) -> pa.Table:
    """Read columns of a Parquet or an Arrow file: see :func:`read_any_table`.

    Raises
    ------
    UserError : it is damaged, lacks a column, or takes more memory than is allowed.
    """
    from pyarrow import ArrowException
    from pyarrow.parquet import read_schema

    try:
        if content.data:
            raise DataError(
                f"{path.name}: a {content.kind} file that is packed once more: unpack it first"
            )
        if content.kind == ARROW:
            table = _read_ipc(path)
            columns = check_columns(path.name, named, table.column_names, without)
            table = table.rename_columns(unique_names(table.column_names))
            return _within_memory(table.select(columns if every else list(named)), path.name)
        with open(path, "rb") as file:
            columns = check_columns(path.name, named, read_schema(file).names, without)
        return read_parquet(path, columns if every else named)
    except (ArrowException, EOFError) as error:
        raise _unreadable(path, content.kind, error) from error


def _distinct(path: Path, named: Sequence[str]) -> pd.DataFrame | None:
    """Return the distinct rows of a Parquet file of many rows; None of fewer, or of too many."""
    from pyarrow import ArrowException
    from pyarrow.parquet import read_metadata

    from fairbench.data import distinct_rows

    try:
        with open(path, "rb") as file:
            metadata = read_metadata(file)
        header_names = metadata.schema.names
        columns = check_columns(path.name, named, header_names)
        if metadata.num_rows < distinct_rows.MANY_ROWS or columns != header_names:
            return None
        return distinct_rows.distinct_rows(path, named)
    except ArrowException as error:
        raise _unreadable(path, PARQUET, error) from error


def _unreadable(path: Path, kind: str, error: Exception) -> DataError:
    reason = str(error).splitlines()[0][:150]
    return DataError(f"{path.name} is not a table in {kind} that can be read: {reason}")


def _read_ipc(path: Path) -> pa.Table:
    """Return an Arrow file or stream, or a Feather file."""
    from pyarrow import OSFile, feather, ipc

    check_memory(path.stat().st_size, path.name)
    with open(path, "rb") as file:
        start = file.read(8)
    if start.startswith(b"FEA1"):  # of before 2020: nothing in it is packed
        check_memory(3 * path.stat().st_size, path.name)
        return feather.read_table(path, memory_map=False)
    # A file is a stream between marks; its footer may name one batch a million times.
    begin = 8 if start.startswith(b"ARROW1") else 0
    with OSFile(os.fsencode(path)) as source:
        source.seek(begin)
        check_memory(stream_size(source), path.name)
        source.seek(begin)
        with ipc.open_stream(source) as reader:
            return reader.read_all()


def _within_memory(table: pa.Table, file: str) -> pa.Table:
    """Return a table of Arrow; refuse one that takes too much memory as strings."""
    check_memory(3 * table.nbytes + table.num_rows * table.num_columns * FIELD, file)
    for name in table.column_names:
        _check_written_out(table[name], name, file)
    return table


_AT_ONCE = 1 << 28  # bytes of texts that are written out at once at most


def _check_written_out(column: pa.ChunkedArray, name: str, file: str) -> None:
    """Refuse a column that takes too much memory once its values are written out."""
    from pyarrow import types

    kind = column.type
    if str(kind).startswith("run_end_encoded"):
        raise DataError(f"{file}: column '{name}' is run-end encoded: write each value out")
    if types.is_dictionary(kind) and is_text(column):
        check_memory(sum(map(written_out, column.chunks)), file)
    elif str(kind).endswith("_view"):
        text = "string" if str(kind).startswith("string") else "binary"
        rows = max(_AT_ONCE // max(column.nbytes, 1), 1)
        total = 0
        for start in range(0, len(column), rows):
            total += column.slice(start, rows).cast(text).nbytes
            check_memory(total, file)


def text_table(path: Path, content: Content, named: Sequence[str]) -> TextTable:
    """Return a text or the sheet of an Excel file, with what separates its fields.

    Raises
    ------
    DataError : there is no header, it takes more memory than is allowed, or there is another table
        below or beside the first.
    """
    guessed = content.guessed
    data = content.data
    if content.kind == EXCEL:
        data, guessed_of_sheet, above = sheet_as_text(data, path.name, named)
        table = TextTable(data, ",", header(data, path.name, ","), (*guessed, *guessed_of_sheet))
        return _table_alone(table, path.name, lambda line: f"row {above + line} of the sheet")
    if not guessed:
        check_text(path)
    separator_line = _SEPARATOR_LINE.match(data)  # Excel's own line that says so
    if separator_line:
        data = data[separator_line.end() :]
    usual = "\t" if path.suffix == ".tsv" else ","
    separator, names = _separator(data, path.name, named, usual)
    if separator != usual:
        guessed = (*guessed, f"separated by {_SEPARATORS[separator]}")
    lines_above = 1 if separator_line else 0
    table = TextTable(data, separator, names, guessed)
    return _table_alone(table, path.name, lambda line: f"line {lines_above + line}")


def _table_alone(table: TextTable, file: str, name_of_line: Callable[[int], str]) -> TextTable:
    """Return a table without totals and notes; refuse another table below or beside it."""
    refuse_another_table(table.data, table.separator, table.names, file, name_of_line)
    data, left_out, doubtful = without_totals(table.data, table.separator, len(table.names))
    return replace(
        table, data=data, guessed=(*table.guessed, *left_out_text(left_out)), left_out=left_out,
        doubtful=doubtful,
    )  # fmt: skip


_SEPARATOR_LINE = re.compile(rb"sep=[,;|\t]\r?\n", re.IGNORECASE)
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}


def _separator(
    data: bytes, file: str, named: Sequence[str], usual: str
) -> tuple[str, Sequence[str]]:
    """Return the separator and the names of the header.

    It is the usual one if the header then has the columns that are asked for. Otherwise it is the
    one that gives most of these; of several, the one that gives most columns.
    """
    usual_names = header(data, file, usual)
    if {*named} <= {*usual_names} and (named or len(usual_names) > 1):
        return usual, usual_names
    names_by_sign = {usual: usual_names}
    for sign in _SEPARATORS:
        if sign != usual:
            try:
                names_by_sign[sign] = header(data, file, sign)
            except DataError:
                continue
    best = max(
        names_by_sign,
        key=lambda sign: (len({*named} & {*names_by_sign[sign]}), len(names_by_sign[sign])),
    )
    return best, names_by_sign[best]


_COMMA = r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?\s?%?"
_WHOLE = r"[+-]?\d+\s?%?"
_GROUPED = r"[+-]?[1-9]\d{0,2}(?:,\d{3})+"  # 1,234 may be a thousand and more


def with_decimal_points(
    frame: pd.DataFrame, columns: Sequence[str], file: str
) -> tuple[pd.DataFrame, Sequence[str]]:
    """Return a table with decimal points instead of decimal commas, and a note on the columns.

    Raises
    ------
    DataError : it is not plain whether a comma is a decimal one; names the row.
    """
    changed = {}
    for name in columns:
        text = frame[name]
        if text.dtype.kind in "iufb" or not (commas := text.str.contains(",", regex=False)).any():
            continue
        written = text.str.strip()
        fits = written.str.fullmatch(_COMMA) | written.str.fullmatch(_WHOLE) | are_missing(text)
        if not fits.all():
            continue  # what reads numbers refuses it, with its row
        if written[commas].str.fullmatch(_GROUPED).all():
            first = int(commas.to_numpy().argmax())
            raise DataError(
                f"{file}: column '{name}', row {text.index[first] + 1}: {quoted(text.iloc[first])} "
                "has a comma that may be a decimal one or mark thousands: write numbers with a "
                "point, or without the comma"
            )
        changed[name] = text.str.replace(",", ".", regex=False)
    if not changed:
        return frame, ()
    listed = ", ".join(changed)
    return frame.assign(**changed), (f"numbers with a decimal comma in {listed}",)
