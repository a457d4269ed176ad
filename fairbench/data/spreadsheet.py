"""A sheet of an Excel file, as the delimited text that it would be saved as."""

from __future__ import annotations

import csv
import io
import re
import string
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, time
from itertools import pairwise
from types import SimpleNamespace
from typing import Any
from xml.etree.ElementTree import iterparse

from fairbench.core.errors import DataError
from fairbench.core.files import FIELD, check_memory
from fairbench.data.in_memory import text_of

_DEEP = 20  # the number of first rows that are searched for the header
_MOST_ROWS, _MOST_COLUMNS = 1_048_576, 16_384  # of an Excel sheet
_ROW, _MERGED, _FORMULA = (
    f"{{http://schemas.openxmlformats.org/spreadsheetml/2006/main}}{tag}"
    for tag in ("row", "mergeCell", "f")
)

Row = tuple[int, Sequence[Any]]  # its number, and its values up to the last one
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
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            _check_archive(archive, name)
        sheets = _sheets(data, name)
        first: Rows = []
        for title, sheet in sheets:
            where, rows = f"sheet '{title}'", _text_rows(sheet, name)
            if (start := _header(rows, named)) >= 0:
                break
            first = first or rows
        else:
            return _written(first), (), 0
    except _BROKEN as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"{name} is no Excel file that can be read: {reason[:100]}") from error
    _check_cells(rows[start:], named, f"{name}: {where}")
    guessed = [f"{where} of {len(sheets)}"] if len(sheets) > 1 else []
    guessed += [f"header in row {start + 1}"] if start else []
    return _written(rows[start:]), tuple(guessed), start


_BROKEN = (
    zipfile.BadZipFile, zipfile.LargeZipFile, KeyError, ValueError, TypeError, IndexError,
    AttributeError, EOFError, OSError, SyntaxError, RuntimeError, ArithmeticError, zlib.error,
)  # fmt: skip  # what openpyxl lets through of a file that is not as it should be


# Bytes of memory that an element of a sheet takes, one of the texts that cells share, and one of
# what openpyxl makes objects of, which takes time, too.
_OF_SHEET, _OF_TEXTS, _OF_OTHERS = 160, 1_000, 5_000
_LONG = re.compile(rb"=\s*+(\"[^\"]{10000}|'[^']{10000})")  # an attribute; openpyxl searches some
_OTHER_CODE = re.compile(rb"encoding\s*=\s*[\"'](?!utf-?8)", re.IGNORECASE)


def _check_archive(archive: zipfile.ZipFile, name: str) -> None:
    """Refuse an archive that is no Excel file, or whose parts would take too much memory.

    Elements are counted by the sign that they begin with, so text in another encoding than UTF-8 is
    refused, as are definitions of entities and of attributes, which stand for more than they are.
    """
    parts = archive.infolist()
    if not any(part.filename.startswith("xl/") for part in parts):
        raise DataError(f"{name} is a zip archive without a table of Excel: unpack it")
    needed = 3 * sum(part.file_size for part in parts)
    check_memory(needed, name)
    for part in parts:
        xml = archive.read(part)
        elements = xml.count(b"<") - xml.count(b"</")
        needed += _memory_of_element(part.filename) * elements
        check_memory(needed, name)
        coded = b"<" in xml[:4] and b"\0" in xml[:4]
        if coded or b"<!DOCTYPE" in xml or _OTHER_CODE.search(xml[: max(xml.find(b"?>"), 0)]):
            raise ValueError(f"{part.filename} is not written as Excel does")
        if _memory_of_element(part.filename) == _OF_OTHERS and _LONG.search(xml):
            raise ValueError(f"{part.filename} has a value of more than 10,000 signs")


def _memory_of_element(part: str) -> int:
    if part.startswith("xl/worksheets/"):
        return _OF_SHEET
    return _OF_TEXTS if part == "xl/sharedStrings.xml" else _OF_OTHERS


def _sheets(data: bytes, name: str) -> list[tuple[str, Iterator[Row]]]:
    """Return the title of each sheet, and its rows as they are read.

    Only what tells the values of cells is read: no names, links, properties, charts or pictures.
    """
    from openpyxl.reader.excel import ExcelReader
    from openpyxl.styles.stylesheet import apply_stylesheet

    reader = ExcelReader(io.BytesIO(data), read_only=True, data_only=True, keep_links=False)
    reader.read_manifest()
    for part in reader.package.Override:
        if "main+xml" in part.ContentType and _memory_of_element(part.PartName[1:]) != _OF_OTHERS:
            raise ValueError(f"{part.PartName} is no workbook")
    reader.read_strings()
    reader.read_workbook()
    apply_stylesheet(reader.archive, reader.wb)
    sheets = {}
    for sheet, rel in reader.parser.find_sheets():
        if rel.target in sheets:
            raise ValueError(f"{rel.target} is two sheets")
        if "chartsheet" not in rel.Type and rel.target in reader.valid_files:
            sheets[rel.target] = sheet.name, _rows(reader, rel.target, name)
    return list(sheets.values())


def _rows(reader: Any, sheet: str, name: str) -> Iterator[Row]:
    """Yield the rows of a sheet that are written in it.

    Raises
    ------
    DataError : cells are merged over rows, or were never computed.
    ValueError : rows or cells are not in order.
    """
    from openpyxl.reader.excel import WorksheetReader

    of_book = SimpleNamespace(parent=reader.wb)
    parser = WorksheetReader(of_book, None, reader.shared_strings, True, False).parser
    last = 0
    with reader.archive.open(sheet) as source:
        for _, element in iterparse(source):
            if element.tag == _MERGED:
                _check_merged(element.get("ref", ""), name)
            if element.tag != _ROW:
                continue
            if len(element) > _MOST_COLUMNS:
                raise ValueError(f"a row has {len(element)} cells")
            number, cells = parser.parse_row(element)
            places = [cell["column"] for cell in cells]
            width = places[-1] if places else 0
            if not last < number <= _MOST_ROWS or width > _MOST_COLUMNS:
                raise ValueError(f"row {number}, with {width} columns, follows row {last}")
            if any(place >= after for place, after in pairwise([0, *places])):
                raise ValueError(f"the cells of row {number} are not in order")
            last = number
            values = [None] * width
            for place, cell, written in zip(places, cells, element, strict=True):
                values[place - 1] = value = cell["value"]
                if value is None and written.find(_FORMULA) is not None:
                    _check_computed(written, name)
            yield number, values
            element.clear()


def _check_computed(cell: Any, name: str) -> None:
    """Refuse a formula without a value; that of a text may be empty."""
    if cell.get("t") != "str":
        raise DataError(
            f"{name}: formulas were never computed: open it in Excel, save it, and try again"
        )


def _check_merged(cells: str, name: str) -> None:
    """Refuse cells that are merged over rows: a title over columns is not in the table."""
    if len({corner.lstrip(string.ascii_letters) for corner in cells.split(":")}) > 1:
        raise DataError(
            f"{name}: the cells {cells[:20]} are merged, and all but the first are empty: separate "
            "them, with a value in each"
        )


def _text_rows(rows: Iterable[Row], name: str) -> Rows:
    """Return the rows as texts, all equally long, without empty ones at the end.

    Raises
    ------
    UserError : all cells up to the last row and column would take more memory than is allowed.
    """
    texts: Rows = []
    width = letters = 0
    for number, row in rows:
        width = max(width, len(row))
        # Most cells of a wide sheet are empty: what they are is not asked of each.
        written = ["" if cell is None else _text(cell) for cell in row]
        letters += sum(map(len, written))
        check_memory(number * width * FIELD + letters, name)
        texts += [[] for _ in range(number - 1 - len(texts))]
        texts.append(written)
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


def _check_cells(rows: Rows, named: Sequence[str], where: str) -> None:
    """Refuse errors of formulas in the named columns."""
    header = [cell.strip() for cell in rows[0]]
    places = [header.index(column) for column in named]
    for i, row in enumerate(rows):
        wrong = next((row[place] for place in places if row[place] in _ERRORS), "")
        if wrong:
            raise DataError(
                f"{where}, row {i} below the header holds the error {wrong}: mend the formula"
            )


def _written(rows: Rows) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(_mark_empty_rows(rows))
    return text.getvalue().encode()


def _mark_empty_rows(rows: Rows) -> Iterator[list[str]]:
    """Yield rows; a single empty cell would be written as an empty line, and skipped."""
    for row in rows:
        yield row if len(row) > 1 or row[0] else [" "]
