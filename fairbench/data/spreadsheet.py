"""A sheet of an Excel file, as the delimited text that it would be saved as."""

from __future__ import annotations

import csv
import io
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, time
from typing import Any

from fairbench.core.errors import DataError
from fairbench.core.files import FIELD, check_memory
from fairbench.data.in_memory import text_of

_DEEP = 20  # the number of first rows that are searched for the header
_TAKES = 10  # bytes of memory that a byte of a sheet takes, about
_MOST_COLUMNS = 16_384  # of an Excel sheet

Rows = list[list[str]]


def sheet_as_text(
    data: bytes, name: str, named: Sequence[str]
) -> tuple[bytes, tuple[str, ...], int]:
    """Return the sheet of the columns that are named, as CSV, what was guessed, and the rows above.

    Parameters
    ----------
    data : the content of the file.
    name : the name of the file, for messages.
    named : columns that the table must have; its sheet and header are found by them.

    Raises
    ------
    DataError : it is no Excel file, has no such sheet, or holds what a table cannot: cells that are
        merged, errors, or formulas that were never computed.
    """
    from openpyxl import load_workbook

    try:
        _check_archive(data, name)
        book = load_workbook(io.BytesIO(data), read_only=True, data_only=True)
        titles = list(book.sheetnames)
        sheets = [(sheet.title, _text_rows(sheet.iter_rows(values_only=True), name))
                  for sheet in book.worksheets]  # fmt: skip
    except _BROKEN as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"{name} is no Excel file that can be read: {reason[:100]}") from error
    candidates = [
        (title, rows, start) for title, rows in sheets if (start := _header(rows, named)) >= 0
    ]
    if not candidates:
        return _written(next((rows for _, rows in sheets if rows), [])), (), 0
    title, rows, start = candidates[0]
    _check_cells(rows[start:], named, title, name)
    guessed = [f"sheet '{title}' of {len(titles)}"] if len(titles) > 1 else []
    guessed += [f"header in row {start + 1}"] if start else []
    return _written(rows[start:]), tuple(guessed), start


_BROKEN = (
    zipfile.BadZipFile, zipfile.LargeZipFile, KeyError, ValueError, TypeError, IndexError,
    AttributeError, EOFError, OSError, SyntaxError, NotImplementedError, zlib.error,
)  # fmt: skip  # what openpyxl lets through of a file that is not as it should be


def _check_archive(data: bytes, name: str) -> None:
    """Refuse an archive that is no Excel file or unfolds too far, and cells that hide values."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts = archive.infolist()
        if not any(part.filename.startswith("xl/") for part in parts):
            raise DataError(f"{name} is a zip archive without a table of Excel: unpack it")
        check_memory(_TAKES * sum(part.file_size for part in parts), name)
        for part in parts:
            if part.filename.startswith("xl/worksheets/sheet"):
                _check_sheet(archive.read(part), name)


_FORMULA = re.compile(rb"<f\b")
_VALUE = re.compile(rb"<v>[^<]|<v [^>]*>[^<]|<is>")
_MERGED = re.compile(rb"<mergeCell [^>]*ref=\"([A-Z]+\d+:[A-Z]+\d+)\"")


def _check_sheet(xml: bytes, name: str) -> None:
    """Refuse a sheet with cells merged over rows, or with formulas that have no values."""
    merged = _MERGED.search(xml)
    if merged and _below_header(merged.group(1)):
        raise DataError(
            f"{name}: the cells {merged.group(1).decode()} are merged, and all but the first are "
            "empty: separate them, with a value in each"
        )
    if b"<f" in xml:
        for part in xml.split(b"</c>")[:-1]:  # a pattern for a whole cell may take for ever
            cell = part[max(part.rfind(b"<c "), part.rfind(b"<c>")) :]
            computed = _VALUE.search(cell) or b't="str"' in cell
            if _FORMULA.search(cell) and not computed:
                raise DataError(
                    f"{name}: formulas were never computed: open it in Excel, save it, and try "
                    "again"
                )


def _below_header(cells: bytes) -> bool:
    """Return whether merged cells span several rows: a title over columns is not in the table."""
    first_row, last_row = (re.sub(rb"[A-Z]", b"", corner) for corner in cells.split(b":"))
    return first_row != last_row


def _text_rows(rows: Iterable[Sequence[Any]], name: str) -> Rows:
    """Return the rows as texts, without empty ones at the end.

    Raises
    ------
    UserError : they take more memory than is allowed: a cell far off makes many empty ones.
    """
    texts: Rows = []
    cells = 0
    for row in rows:
        cells += len(row)
        check_memory(cells * FIELD, name)
        # Most cells of a wide sheet are empty: what they are is not asked of each.
        texts.append(["" if cell is None else _text(cell) for cell in row])
    while texts and not any(texts[-1]):
        texts.pop()
    width = max((_width(row) for row in texts), default=0)
    return [[*row[:width], *[""] * (width - len(row))] for row in texts]


def _width(row: Sequence[str]) -> int:
    return next((i + 1 for i in reversed(range(len(row))) if row[i]), 0)


def _text(cell: Any) -> str:
    if isinstance(cell, datetime) and cell.time() == time():
        return cell.date().isoformat()
    if isinstance(cell, datetime | date | time):
        return cell.isoformat()
    return text_of(cell)


def _header(rows: Rows, named: Sequence[str]) -> int:
    """Return the first row that has all named columns; -1 if none has."""
    for i, row in enumerate(rows[:_DEEP]):
        if any(row) and {*named} <= {cell.strip() for cell in row}:
            return i
    return -1


_ERRORS = ("#N/A", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#NULL!")


def _check_cells(rows: Rows, named: Sequence[str], title: str, name: str) -> None:
    """Refuse errors of formulas in the named columns."""
    header = [cell.strip() for cell in rows[0]]
    places = [header.index(column) for column in named]
    for i, row in enumerate(rows):
        wrong = next((row[place] for place in places if row[place] in _ERRORS), "")
        if wrong:
            raise DataError(
                f"{name}: sheet '{title}', row {i} below the header holds the error {wrong}: mend "
                "the formula"
            )


def _written(rows: Rows) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(_mark_empty_rows(rows))
    return text.getvalue().encode()


def _mark_empty_rows(rows: Rows) -> Iterator[list[str]]:
    """Yield rows; a single empty cell would be written as an empty line, and skipped."""
    for row in rows:
        yield row if len(row) > 1 or row[0] else [" "]
