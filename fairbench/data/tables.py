"""The one reader of tables: delimited text, Excel, Parquet or Arrow, compressed or not.

The separator, the packing, the encoding and decimal commas are detected, and what was detected is
printed in one line. Nothing else is guessed: a row that is no row of the table is named, and
:class:`TablePart` says which rows of a file, and which sheet, are read. Begin with
:func:`read_any_table`; loaders of data sets, whose files are known, use :class:`RawTable`.
"""

from __future__ import annotations

import csv as plain_csv
import os
import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any
from unicodedata import normalize

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import ArrowException, ArrowInvalid, OSFile, types
from pyarrow import compute as pc

from fairbench.core import files, memory
from fairbench.core.arrays import Mask
from fairbench.core.errors import DataError, UserError, did_you_mean, note
from fairbench.core.memory import check_memory
from fairbench.core.options import option
from fairbench.core.text import listed, quoted, said
from fairbench.data import columns as of_columns
from fairbench.data import contents
from fairbench.data.columns import (
    TOTALS,
    are_missing,
    check_columns,
    numbers,
    to_numbers,
    unique_names,
)
from fairbench.data.contents import ARROW, EXCEL, PARQUET, TEXT
from fairbench.data.dataset import Dataset, Source, Task
from fairbench.data.download import Archive

_BLOCK = 1 << 20


@dataclass(frozen=True)
class TablePart:
    """Which part of a file is the table.

    Attributes
    ----------
    rows : The rows that are read, counted from 1 below the header, where totals or notes stand
        below the table: 1:200, or : for all.
    sheet : Of an Excel file the sheet that is read; by default the first with the columns.
    """

    rows: str = option("", shown="FIRST:LAST")
    sheet: str = option("", shown="NAME")

    @property
    def first_and_last(self) -> tuple[int, int]:
        """The numbers of the first and the last row, counted from 1.

        Raises
        ------
        UserError : `rows` names no rows.
        """
        match = re.fullmatch(r"(\d{0,15}):(\d{0,15})", self.rows or ":")
        if match:
            first, last = int(match[1] or 1), int(match[2] or sys.maxsize)
            if 1 <= first <= last:
                return first, last
        raise UserError(said("data", "no_rows_named", rows=self.rows))


ALL_ROWS = TablePart(rows=":")


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
    part: TablePart = ALL_ROWS,
) -> pd.DataFrame:
    """Read a file's columns as strings, and say in a line on the error stream what was guessed.

    Columns are called as :func:`fairbench.data.columns.unique_names` has it. The index counts the
    file's rows from 0.

    Parameters
    ----------
    named : the columns that the table must have; others are dropped unless `every` is true.
    exact : the columns whose blanks stay: labels that differ in them are different labels.
    numeric : the columns in which a comma is a decimal comma. If it is None, these are all but the
        `exact` ones, and those that are numbers in the file, and are not `named`, stay numbers.
    without : names of columns that are left out, all columns of a name that is repeated.
    distinct : whether of a large Parquet file the distinct rows will do, each with its number
        (:func:`fairbench.data.columns.times_of`).
    part : the rows and the sheet that are read. Where it names no rows, a last row of a text or a
        sheet that is unlike all others is refused: it may be a total or a note.

    Raises
    ------
    UserError : a file or column that is not there, or that cannot be read.
    """
    check_file(path)
    columns: Mapping[str, str] = {}
    try:
        data, kind, guessed = contents.content_of(path, named, part.sheet)
        if part.sheet and kind != EXCEL:
            raise UserError(f"sheet={part.sheet}: {path.name} is no Excel file, and has no sheets")
        if kind in (PARQUET, ARROW):
            large = distinct and kind == PARQUET and not part.rows
            with _readable(path, kind):
                frame = _distinct_rows(path, named) if large else None
            if frame is None:
                table, columns = _read_arrow(path, kind, named, without, every=every)
                frame = _as_texts(table, path.name, {*exact, *named} if numeric is None else None)
                first, last = part.first_and_last
                frame = frame.iloc[first - 1 : last]
        else:
            data, guessed, separator, names = _text_table(path, (data, kind, guessed), named)
            columns = check_columns(path.name, named, names, without, every=every)
            frame = read_table(
                data, path.name, separator=separator, only=columns, exact=exact, part=part
            )
            _check_cells(frame, named, path.name, last=not part.rows)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error}") from error
    frame, once = of_columns.without_copies(frame, columns, named, path.name)
    if numeric is None:
        numeric = [name for name in frame if name not in exact]
    present = [name for name in numeric if name in frame]
    frame, commas = with_decimal_points(frame, present, path.name, typed=kind != TEXT)
    say_guessed(path, (*guessed, *once, *commas))
    return frame


_ENOUGH = 10  # rows, of which the last is unlike all others if it alone has a gap
_SUMMARIES = TOTALS | {
    *("average", "mean", "median", "subtotal", "sum"),
    *("durchschnitt", "gesamt", "mittelwert", "summe"),
}
_ERRORS = ("#N/A", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#NULL!")


def _check_cells(frame: pd.DataFrame, named: Sequence[str], file: str, *, last: bool) -> None:
    """Refuse errors of a spreadsheet's formulas and, if `last`, rows that are none of the table.

    These are an empty row, and a last one that is unlike all others, as a total or a note below a
    table is: its label, which no other row has, ends in a word such as Total, it has no value in
    columns of which no other row lacks all, or a text where all others have numbers.
    """
    for name in named:
        if (wrong := frame[name].isin(_ERRORS).to_numpy()).any():
            first = int(wrong.argmax())
            found = {"row": frame.index[first] + 1, "error": frame[name].iloc[first]}
            raise DataError(said("data", "formula_error", file=file, name=name, **found))
    if not last or len(named) < 2 or len(frame) < 2:
        return
    is_missing = {name: are_missing(frame[name]) for name in named}
    lacking = [name for name in named if is_missing[name][-1]]
    if lacking and len(frame) >= _ENOUGH:
        alike = np.logical_and.reduce([is_missing[name] for name in lacking])
        row = int(alike.argmax())
        if row == len(frame) - 1 or len(lacking) == len(named):
            about = {"row": row + 1, "names": " and ".join(map(quoted, lacking[:3]))}
            raise DataError(said("data", "no_value", file=file, way=_which(row), **about))
    for name in named:
        numeric = np.isfinite(to_numbers(frame[name][-1:])).all() or name in lacking
        others = frame[name][:-1][~is_missing[name][:-1]]
        if not numeric and len(others) and np.isfinite(to_numbers(others)).all():
            about = {"row": len(frame), "value": quoted(frame[name].iloc[-1], 30)}
            about["way"] = _which(len(frame) - 1)
            raise DataError(said("data", "no_number", file=file, name=name, **about))
    _refuse_summaries(frame, named, file)


def _refuse_summaries(frame: pd.DataFrame, named: Sequence[str], file: str) -> None:
    """Refuse a last row that its label, which comes once, calls a total or an average."""
    for name in named if len(frame) >= _ENOUGH else ():
        if not _is_summary(frame[name].iloc[-1]):
            continue
        once = frame[name].drop_duplicates(keep=False)
        alike = once[once.map(_is_summary)]
        if not len(alike) or alike.index[-1] != frame.index[-1]:
            continue
        first, rows = alike.index[0], listed([str(row + 1) for row in alike.index], 5)
        way = _which(first)
        if len(alike) < len(frame) - first:  # others stand between the groups
            way = f"delete rows {rows}, if they are totals, or rows=: reads them"
        about = {"row": first + 1, "label": quoted(alike.iloc[0], 30), "way": way}
        raise DataError(said("data", "label_of_one_row", file=file, name=name, **about))


def _is_summary(label: str) -> bool:
    return label.casefold().strip(" :.").rpartition(" ")[2] in _SUMMARIES


def _which(rows: int) -> str:
    """Return the end of a sentence: how the row after so many is left out, and how it is read."""
    return f"rows=1:{rows} leaves it out, if it is a total or a note, and rows=: reads it"


def names_in(path: Path, named: Sequence[str], part: TablePart = ALL_ROWS) -> Sequence[str]:
    """Return the names of a file's columns.

    Parameters
    ----------
    named : columns that it may have, by which the separator of fields is recognised.
    """
    content = _, kind, _ = contents.content_of(path, named, part.sheet)
    if kind in (PARQUET, ARROW):
        return list(_read_arrow(path, kind, (), every=True)[1])
    return unique_names(_text_table(path, content, named)[-1])


def say_guessed(path: Path, guessed: Sequence[str]) -> None:
    """Print on one line how a file was read, if that had to be guessed."""
    if guessed:
        note(f"{path.name} was read as: {', '.join(guessed)}")


_COMMA = r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?\s?%?"
_WHOLE = r"[+-]?\d+\s?%?"
_GROUPED = r"[+-]?[1-9]\d{0,2}(?:[,.]\d{3})+"  # 1,234 may be a thousand and more


def with_decimal_points(
    frame: pd.DataFrame, columns: Sequence[str], file: str, *, typed: bool = True
) -> tuple[pd.DataFrame, Sequence[str]]:
    """Return a table with decimal points instead of decimal commas, and a note on the columns.

    Parameters
    ----------
    typed : whether numbers are no texts in the file, so that a point is a decimal one.

    Raises
    ------
    DataError : it is not plain whether a comma or a point is a decimal one; names the row.
    """
    changed = {}
    texts = [name for name in columns if frame[name].dtype.kind not in "iufb"]
    for name in texts:
        text = frame[name]
        if not (commas := text.str.contains(",", regex=False)).any():
            continue
        written = text.str.strip()
        fits = written.str.fullmatch(_COMMA) | written.str.fullmatch(_WHOLE) | are_missing(text)
        if not fits.all():
            continue  # what reads numbers refuses it, with its row
        if written[commas].str.fullmatch(_GROUPED).all():
            way = "numbers with a point, or without it"
            _refuse_grouped(text, commas.to_numpy(bool), file, "comma", way)
        changed[name] = text.str.replace(",", ".", regex=False)
    for name in texts if changed or not typed else ():
        check_points(frame[name], file, beside_commas=bool(changed))
    if not changed:
        return frame, ()
    listed = ", ".join(changed)
    return frame.assign(**changed), (f"numbers with a decimal comma in {listed}",)


_MANY_ENDS = 30  # with this many, some would end in 0 if it were left out, as of 2.420


def check_points(text: pd.Series, file: str, *, beside_commas: bool = False) -> None:
    """Refuse numbers as they are written in a text if their points may mark thousands.

    Parameters
    ----------
    beside_commas : whether other columns have decimal commas: who writes these marks thousands so.

    Raises
    ------
    DataError : names the first.
    """
    points = text.str.contains(".", regex=False).to_numpy(bool)
    if not points.any() or not text[points].str.strip().str.fullmatch(_GROUPED).all():
        return
    if beside_commas:
        way = "numbers with a comma, as others have, or without it"
        _refuse_grouped(text, points, file, "point", way)
    others = text[~points & ~are_missing(text)].str.strip()
    if not len(others) or not others.str.fullmatch(r"[+-]?\d{1,3}").all():
        return
    largest = np.abs(to_numbers(others)).max()
    beyond = largest > np.ceil(np.abs(to_numbers(text[points])).max())
    if beyond or text[points].str.strip().str[-3:].nunique() >= _MANY_ENDS:
        _refuse_grouped(text, points, file, "point", said("data", "three_digits", largest=largest))


def _refuse_grouped(text: pd.Series, marked: Mask, file: str, sign: str, way: str) -> None:
    """Refuse numbers of which it is not plain what their sign stands for."""
    of_columns.ColumnRef(file, str(text.name)).refuse_as(
        text, marked, f"has a {sign} that may be a decimal one or mark thousands: write {way}"
    )


def _text_table(
    path: Path, content: contents.Content, named: Sequence[str]
) -> tuple[bytes, tuple[str, ...], str, Sequence[str]]:
    """Return a text or the sheet of an Excel file, what separates its fields, and the header.

    Returns
    -------
    The bytes of the text, notes on how the file was read, the separator, and the names.

    Raises
    ------
    DataError : there is no header, or it takes more memory than is allowed.
    """
    data, kind, guessed = content
    if kind == EXCEL:
        return data, guessed, ",", header(data, path.name)
    _check_text(data, path.name)
    if separator_line := _SEPARATOR_LINE.match(data):  # Excel's own line that says so
        data = data[separator_line.end() :]
    usual = "\t" if path.suffix == ".tsv" else ","
    separator, names = usual, {usual: header(data, path.name, usual)}
    if not {*named} <= {*names[usual]} or not (named or len(names[usual]) > 1):
        for sign in _SEPARATORS:
            with suppress(DataError):
                names[sign] = header(data, path.name, sign)
        # The one that gives most of the columns that are asked for; of several, most columns.
        separator = max(names, key=lambda sign: (len({*named} & {*names[sign]}), len(names[sign])))
    if {*named} - {*names[separator]} and (found := _table_within(data, named)):
        data, separator, line = found
        _check_text(data, path.name)
        names[separator] = header(data, path.name, separator)
        guessed = (*guessed, *[f"header in line {line}"] * (line > 1))
    if separator != usual:
        guessed = (*guessed, f"separated by {_SEPARATORS[separator]}")
    return data, guessed, separator, names[separator]


def _table_within(data: bytes, named: Sequence[str]) -> tuple[bytes, str, int] | None:
    """Return a text from its header on, in composed signs, its separator and the header's line.

    The header is the first line that has all the columns that are named, above which stands what
    is none of the table, or whose letters and accents are apart; None if there is none.
    """
    start = 0
    lines = islice(contents.END_OF_LINE.finditer(data), contents.DEEP if len({*named}) > 1 else 1)
    for line, end in enumerate(lines, start=1):
        first = normalize("NFC", data[start : end.start()].decode(errors="replace"))
        for sign in _SEPARATORS:
            names = next(plain_csv.reader([first], delimiter=sign), [])
            if {*named} <= {name.strip() for name in names}:
                return first.encode() + data[end.start() :], sign, line
        start = end.end()
    return None


_SEPARATOR_LINE = re.compile(rb"sep=[,;|\t]\r?\n", re.IGNORECASE)
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}


def _check_text(data: bytes, file: str) -> None:
    """Refuse a delimited text that would take more memory than is allowed."""
    first_line = data[: data.find(b"\n") + 1 or len(data)]
    columns = 1 + max(first_line.count(sign) for sign in (b",", b"\t", b";"))
    fields = data.count(b"\n") * columns
    check_memory(3 * len(data) + fields * memory.FIELD + columns * memory.COLUMN, file)


def read_table(
    content: bytes,
    file: str,
    *,
    names: Sequence[str] | None = None,
    separator: str = ",",
    only: Collection[str] | None = None,
    skip: int = 0,
    exact: Collection[str] = (),
    part: TablePart = ALL_ROWS,
) -> pd.DataFrame:
    """Read a delimited text file as strings, blanks around fields removed.

    Columns are called as :func:`fairbench.data.columns.unique_names` has it. The index counts the
    file's data rows from 0, so that a frame that was filtered still names the rows of the file.

    Parameters
    ----------
    content : the file's bytes, UTF-8 (a byte-order mark is dropped).
    file : its name, for messages.
    names : the columns, for a file without a header line; without them the first line names them.
    only : the columns to keep; an error if the file lacks one.
    skip : the number of lines before the table.
    exact : the columns whose blanks stay: labels that differ in them are different labels.
    part : the rows that are read; what others are like does not matter.

    Raises
    ------
    DataError : not UTF-8, not a table, or a row with too few or too many fields.
    """
    whole = content
    content = content.removeprefix(b"\xef\xbb\xbf")
    for _ in range(skip):
        content = content.partition(b"\n")[2]
    start = 0
    if names is None:
        names, start = _header(content, file, separator)
    columns = unique_names(names)
    kept = columns if only is None else list(only)
    of_columns.require_columns(pd.DataFrame(columns=columns), kept, file)
    convert = dict.fromkeys(kept, "large_string")  # as pandas holds texts: nothing is copied
    try:
        table, wrong = _parse(content, columns, separator, convert, start)
    except (ArrowInvalid, UnicodeDecodeError) as error:
        reason = f"not a table separated by '{separator}': {str(error).splitlines()[0]}"
        raise DataError(f"{file}: {contents.not_utf8(whole) or reason}") from error
    first, last = part.first_and_last
    if inside := [(row, width) for row, width in wrong if first <= row <= last]:
        row, width = inside[0]
        hint = f"; rows=1:{row - 1} reads those above it" if row > 1 and not part.rows else ""
        about = {"row": row, "width": width, "separator": separator, "hint": hint}
        about |= {"expected": len(columns), "names": ", ".join(columns[:3])}
        raise DataError(said("data", "fields", file=file, **about))
    above = sum(row < first for row, _ in wrong)
    table = table.slice(first - 1 - above, last - first + 1)
    trimmed = {name: pc.utf8_trim_whitespace(table[name]) for name in kept if name not in exact}
    frame = pd.DataFrame({name: trimmed.get(name, table[name]).to_pandas() for name in kept})
    frame.index = pd.RangeIndex(first - 1, first - 1 + len(table))
    return frame


def _parse(
    content: bytes, columns: Sequence[str], separator: str, convert: Mapping[str, str], start: int
) -> tuple[Any, list[tuple[int, int]]]:
    """Return an Arrow table of typed columns, and which rows are of another width, and of which.

    Parameters
    ----------
    start : the byte that the first row begins at.
    """
    from pyarrow import csv

    wrong: list[tuple[int, int]] = []
    if start and _NO_ROWS.match(content, start):
        return pa.schema(list(convert.items())).empty_table(), wrong

    def note(row: csv.InvalidRow) -> str:
        wrong.append((row.number, row.actual_columns))
        return "skip"

    rows = pa.BufferReader(memoryview(content)[start:])
    read = csv.ReadOptions(column_names=columns, use_threads=False, block_size=_BLOCK)
    parse = csv.ParseOptions(
        delimiter=separator, invalid_row_handler=note, newlines_in_values=b'"' in content
    )
    types = csv.ConvertOptions(
        column_types=dict(convert), include_columns=list(convert), null_values=[]
    )
    return csv.read_csv(rows, read, parse, types), wrong


@dataclass(frozen=True, eq=False)
class RawTable:
    """The raw file of a data set as strings, whose columns its loader reads as what they are.

    A column that is missing, and a value that is not what it should be, are refused with the file,
    the column and the row.

    Attributes
    ----------
    frame : the rows; the index counts those of the file from 0, also where some are left out.
    source : the file.
    width : how many columns it has, where it may have no others.
    """

    frame: pd.DataFrame
    source: Source
    width: int | None = None

    @classmethod
    def read(
        cls, archive: Archive, source: Source, width: int | None = None, **how: Any
    ) -> RawTable:
        """Read a Parquet file, or a text as :func:`read_table` does with its options `how`."""
        content, file = archive.read(source), source.path
        if file.endswith(".parquet"):
            return cls(_as_texts(parquet_table(content, file), file), source, width)
        return cls(read_table(content, file, **how), source, width)

    def where(self, rows: pd.Series) -> RawTable:
        """Return the rows that are kept, (n,) true of those."""
        return replace(self, frame=self.frame[rows])

    def text(self, column: str) -> pd.Series:
        """Return a column as it is written."""
        of_columns.require_columns(self.frame, [column], self.source.path, width=self.width)
        return self.frame[column]

    def number(self, column: str, *, missing: str | None = None) -> pd.Series:
        """Return a column as float64; `missing` and nothing else becomes NaN."""
        return numbers(self.text(column).to_frame(), column, self.source.path, missing=missing)

    def category(
        self, column: str, *, allowed: Collection[str] | None = None, missing: str | None = None
    ) -> pd.Series:
        """Return a column as a categorical with sorted categories; `missing` becomes NaN.

        Raises
        ------
        DataError : a value that is not `allowed`, or an empty one; names the first.
        """
        text = self.text(column)
        fine = text.isin(list(allowed)) if allowed is not None else text != ""
        if missing is not None:
            fine |= text == missing
        valid = f"is not one of {', '.join(sorted(allowed))}" if allowed else "is empty"
        place = of_columns.ColumnRef(self.source.path, column)
        place.refuse_as(text, ~fine.to_numpy(), valid)
        present = sorted(set(text.unique()) - {missing})
        known = text if missing is None else text.where(text != missing)
        return pd.Series(pd.Categorical(known, categories=present), index=text.index, name=column)

    def labels(self, column: str, names: Mapping[str, str]) -> pd.Series:
        """Return a column of codes as the labels that `names` has for them, and for no others."""
        return of_columns.labels(self.category(column, allowed=names), names)

    def flag(self, column: str, positive: str = "1", negative: str = "0") -> pd.Series:
        """Return True where the column is `positive` and False where `negative`; nothing else."""
        return self.category(column, allowed=(positive, negative)) == positive

    def dataset(
        self,
        name: str,
        features: Mapping[str, pd.Series] | pd.DataFrame,
        sensitive: Mapping[str, pd.Series],
        target: pd.Series,
        *,
        privileged: Mapping[str, str] | None = None,
        task: Task = Task.BINARY,
        **about: Any,
    ) -> Dataset:
        """Return a data set of this file, its rows counted from 0; `about` are its other fields.

        Parameters
        ----------
        target : true for label 1 of a binary task.
        privileged : attribute -> reference group, by default the first of each.
        """
        first = {key: str(labels.cat.categories[0]) for key, labels in sensitive.items()}
        return Dataset(
            name=name,
            task=task,
            features=pd.DataFrame(features).reset_index(drop=True),
            target=(target.astype(int) if target.dtype == bool else target).reset_index(drop=True),
            sensitive=pd.DataFrame(sensitive).reset_index(drop=True),
            privileged=first | dict(privileged or {}),
            sources=(self.source,),
            **about,
        )


def read_typed(
    content: bytes,
    file: str,
    types: Mapping[str, str],
    *,
    names: Sequence[str] | None = None,
    separator: str = ",",
) -> pd.DataFrame:
    """Read the columns of `types`, such as ``string`` or ``float64``; the rest as `read_table`.

    For wide tables of numbers, which cost several times the memory as strings. Only where one is
    no number are they read as such, to say where it is.
    """
    given, start = (names, 0) if names is not None else _header(content, file, separator)
    try:
        table, wrong = _parse(content, unique_names(given), separator, types, start)
        if not wrong:
            return table.to_pandas(split_blocks=True, self_destruct=True)
    except (ArrowInvalid, UnicodeDecodeError, KeyError):
        pass
    text = read_table(content, file, names=names, separator=separator, only=types)
    read = {name: numbers(text, name, file) for name, kind in types.items() if kind != "string"}
    if whole := [name for name, kind in types.items() if kind.startswith("int")]:
        raise DataError(said("data", "not_whole_numbers", file=file, names=", ".join(whole)))
    return text.assign(**read)


def header(content: bytes, file: str, separator: str = ",") -> list[str]:
    """Return the names in the first line of a delimited text file, blanks around them removed."""
    return _header(content, file, separator)[0]


_NO_ROWS = re.compile(rb"[\r\n]*\Z")


def _header(content: bytes, file: str, separator: str) -> tuple[list[str], int]:
    """Return the names in the first line that is not empty, and the byte that rows begin at.

    A name in quotation marks may hold the ends of lines.

    Raises
    ------
    DataError : no UTF-8, no header, or a byte of value 0: some readers end a field there, and
        labels that differ behind it would be one.
    """
    if (position := content.find(b"\0")) >= 0:
        line = contents.line_of(content, position)
        raise DataError(said("data", "byte_of_0", file=file, line=line))
    ends = [len(content) - len(content.lstrip(b"\r\n"))]  # of the empty lines, and of those read

    def lines() -> Iterator[str]:
        found = (end.end() for end in contents.END_OF_LINE.finditer(content, ends[0]))
        for end in chain(found, [len(content)]):
            ends.append(end)
            yield content[ends[-2] : end].decode("utf-8")

    try:
        names = next(plain_csv.reader(lines(), delimiter=separator))
    except UnicodeDecodeError as error:
        raise DataError(f"{file}: {contents.not_utf8(content)}") from error
    except plain_csv.Error as error:
        raise DataError(f"{file}: the header cannot be read: {error}") from error
    if not any(name.strip() for name in names):
        raise DataError(f"{file}: no header line: is the file empty?")
    return [name.strip() for name in names], ends[-1]


def _read_arrow(
    path: Path,
    kind: str,
    named: Sequence[str],
    without: Collection[str] = (),
    *,
    every: bool = False,
) -> tuple[pa.Table, Mapping[str, str]]:
    """Read columns of a Parquet or an Arrow file, and their headers: see :func:`check_columns`.

    Raises
    ------
    UserError : it is damaged, lacks a column, or takes more memory than is allowed.
    """
    from pyarrow import parquet

    with _readable(path, kind):
        if kind == ARROW:
            table = _read_ipc(path)
            columns = check_columns(path.name, named, table.column_names, without, every=every)
            table = table.rename_columns(unique_names(table.column_names)).select([*columns])
            return _within_memory(table, path.name), columns
        with OSFile(os.fsencode(path)) as source:
            schema = parquet.read_schema(source)
            found = schema.names
            columns = check_columns(path.name, named, found, without, every=every)
            if unique_names(found) == found:
                texts = [field.name for field in schema if memory.is_text(field)]
                table = files.table_within(source, path.name, [*columns], texts)
            else:  # which cannot be told apart by name before all are read
                table = files.table_within(source, path.name)
                table = table.rename_columns(unique_names(found))
        return table.select([*columns]), columns


@contextmanager
def _readable(path: Path, kind: str) -> Iterator[None]:
    """Say of a file that Arrow cannot read which it is."""
    try:
        yield
    except (ArrowException, EOFError) as error:
        reason = str(error).splitlines()[0][:150]
        raise DataError(
            f"{path.name} is not a table in {kind} that can be read: {reason}"
        ) from error


def _read_ipc(path: Path) -> pa.Table:
    """Return an Arrow file, which a Feather file is, or a stream, as far as it fits into memory."""
    from pyarrow import ipc

    check_memory(path.stat().st_size, path.name)
    with open(path, "rb") as file:
        start = file.read(8)
    with OSFile(os.fsencode(path)) as source:
        # A file is a stream between marks; its footer may name one batch a million times.
        source.seek(8 if start.startswith(b"ARROW1") else 0)
        with ipc.open_stream(source) as reader:
            batches: list[pa.RecordBatch] = []
            size = 0
            for batch in reader:
                batches.append(batch)
                size += batch.nbytes
                check_memory(size, path.name)
            return pa.Table.from_batches(batches, reader.schema)


def _within_memory(table: pa.Table, file: str) -> pa.Table:
    """Return a table of Arrow; refuse one that takes too much memory as strings."""
    check_memory(3 * table.nbytes + table.num_rows * table.num_columns * memory.FIELD, file)
    for name in table.column_names:
        kind = table[name].type
        if str(kind).startswith("run_end_encoded"):
            raise DataError(f"{file}: column '{name}' is run-end encoded: write each value out")
        if memory.is_text(table[name]) and types.is_dictionary(kind):
            check_memory(sum(map(memory.written_out, table[name].chunks)), file)
    return table


def parquet_table(content: bytes, file: str) -> pa.Table:
    """Read a data set's verified Parquet file from its content in memory.

    Raises
    ------
    DataError : it is not such a file.
    """
    from pyarrow import parquet

    try:
        return parquet.read_table(pa.BufferReader(content))
    except (ArrowException, OSError) as error:
        raise DataError(f"{file}: not a Parquet file: {str(error).splitlines()[0]}") from error


def _as_texts(table: pa.Table, file: str, texts: Collection[str] | None = None) -> pd.DataFrame:
    """Return the columns of a Parquet file as strings; missing values and NaN are empty.

    Whole numbers are written without a point, 0 without a sign, and truths as ``True`` and
    ``False``.

    Parameters
    ----------
    texts : the columns that become strings even if they are numbers, all by default; numbers of the
        others become doubles.

    Raises
    ------
    DataError : a column of lists or records, of bytes that are no text, or with a byte of value 0.
    """
    columns = {}
    for name, kind in zip(table.column_names, table.schema.types, strict=True):
        if kind.num_fields:
            raise DataError(f"{file}: column '{name}' is of type {kind}, not a value in each row")
        values = table[name]
        if types.is_dictionary(kind):
            kind = kind.value_type
            values = pc.cast(values, kind)
        is_number = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
        if is_number and texts is not None and name not in texts:
            columns[name] = pc.cast(values, pa.float64(), safe=False)
            continue
        if types.is_floating(kind):
            values = pc.if_else(pc.is_nan(values), None, values)
        try:
            text = pc.fill_null(pc.cast(values, pa.string()), "")
        except ArrowException as error:
            about = {"kind": kind, "reason": str(error).splitlines()[0]}
            raise DataError(said("data", "no_text", file=file, name=name, **about)) from error
        if pc.any(pc.match_substring(text, "\0")).as_py():
            raise DataError(f"{file}: column '{name}' holds a byte of value 0 in a text")
        if types.is_floating(kind):
            text = pc.if_else(pc.equal(text, "-0"), "0", text)  # they are equal, so one value
        columns[name] = pc.utf8_capitalize(text) if types.is_boolean(kind) else text
    return pd.DataFrame({name: column.to_pandas() for name, column in columns.items()})


MANY_ROWS = 5_000_000  # fewer rows are read like any other table, which takes seconds
MOST_DISTINCT = 100_000  # rows; more are not counted here
_BATCH = 1 << 20


def _distinct_rows(path: Path, columns: Sequence[str]) -> pd.DataFrame | None:
    """Return the distinct rows of a Parquet file as strings, in the order of their first rows.

    Whatever depends on counts alone (rates by group, gaps, ratios) is the same of these rows, each
    with its number, as of all rows. They are counted batch by batch, so that the memory needed
    depends on a batch, and not on the file.

    The index is the number of the first such row; :func:`fairbench.data.columns.times_of` returns
    how often each occurs.

    Parameters
    ----------
    columns : the columns that are read.

    Returns
    -------
    None where the file has fewer than :data:`MANY_ROWS` rows, two columns of one name, or more than
    :data:`MOST_DISTINCT` distinct rows.

    Raises
    ------
    UserError : a part of it takes more memory than is allowed, or a column has no text in each row.
    ArrowException, OSError : it is not such a file.
    """
    from pyarrow.parquet import ParquetFile, read_schema

    names = list(columns)
    keys = [str(place) for place in range(len(names))]
    found: list[pd.DataFrame] = []
    rows_read = 0
    with OSFile(os.fsencode(path)) as source:
        schema = read_schema(source)
        texts = [field.name for field in schema if memory.is_text(field)]
        is_plain = [*check_columns(path.name, names, schema.names, every=True)] == schema.names
        with ParquetFile(source, read_dictionary=texts) as file:
            if file.metadata.num_rows < MANY_ROWS or not is_plain:
                return None
            for group in range(file.metadata.num_row_groups):
                memory.check_parquet(file, path.name, names, [group])
            for batch in file.iter_batches(_BATCH, columns=names):
                rows = pa.Table.from_batches([batch]).select(names).rename_columns(keys)
                numbered = rows.append_column("row", pa.array(np.arange(len(rows)) + rows_read))
                grouped = numbered.group_by(keys, use_threads=False)
                of_batch = grouped.aggregate([("row", "count"), ("row", "min")])
                if len(of_batch) > MOST_DISTINCT:
                    return None
                written = _as_texts(of_batch.select(keys).rename_columns(names), path.name)
                counted = {"times": of_batch["row_count"], "first": of_batch["row_min"]}
                found.append(written.set_axis(keys, axis=1).assign(**counted))
                # Values that differ, such as 0 and -0, may be written alike.
                together = pd.concat(found).groupby(keys, sort=False, as_index=False)
                found = [together.agg({"times": "sum", "first": "min"})]
                if len(found[0]) > MOST_DISTINCT:
                    return None
                rows_read += len(rows)
    if not found:
        return None
    distinct = found[0].sort_values("first").set_index("first").rename_axis(None)
    frame = distinct[keys].set_axis(names, axis=1)
    frame.attrs[of_columns.TIMES] = distinct["times"].tolist()
    return frame
