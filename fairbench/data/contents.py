"""The content of a table's file: its bytes unpacked and as UTF-8, and the sheets of Excel as text.

A file is known by what it holds and not by its name. What was guessed is kept, to be said. Begin
with :func:`content_of`; what reads tables from it is :mod:`fairbench.data.tables`.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import re
import string
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, datetime, time
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any
from xml.etree.ElementTree import iterparse

from pyarrow import CompressedInputStream

from fairbench.core.errors import DataError, check_choice
from fairbench.core.memory import FIELD, check_memory
from fairbench.core.text import said
from fairbench.data.columns import text_of

TEXT, PARQUET, ARROW, EXCEL = "text", "Parquet", "Arrow", "Excel"
_BLOCK = 1 << 20


# The bytes of a file, unpacked: of a text UTF-8 without a byte-order mark; none of a Parquet or
# Arrow file, which is read where it is. Then its kind, and notes on what was guessed.
Content = tuple[bytes, str, tuple[str, ...]]


def content_of(path: Path, named: Sequence[str], sheet: str = "") -> Content:
    """Return the content of a file, unpacked and as UTF-8; of an Excel file a sheet as CSV.

    Parameters
    ----------
    named : columns that the table must have; the sheet and its header are found by them.
    sheet : the name of the sheet; by default the first that has these columns.

    Raises
    ------
    UserError : a packed file that is not whole, one that would take too much memory, or one that
        is no table; or an Excel file without the sheet.
    OSError : it cannot be read.
    """
    with open(path, "rb") as file:
        start = file.read(_START)
        packed = (name for name, (mark, _) in _PACKINGS.items() if start.startswith(mark))
        packing = next(packed, "")
        kind = TEXT if packing else _kind_of(start)
        if kind in (PARQUET, ARROW):
            return b"", kind, ()
        file.seek(0)
        if packing:
            data = _unpack(file, packing, path.name)
        else:
            check_memory(3 * path.stat().st_size, path.name)
            data = file.read()
    kind, encoding = _kind_of(data), ""
    if kind in (PARQUET, ARROW):
        raise DataError(f"{path.name}: a {kind} file that is packed once more: unpack it first")
    if kind == TEXT:
        start = data[:_START].removeprefix(b"\xef\xbb\xbf")
        if other := next((what for mark, what in _OTHERS.items() if re.match(mark, start)), ""):
            raise DataError(f"{path.name} is not a table but {other}")
        data, encoding = _as_utf8(data, path.name)
    guessed = tuple(note for note in (packing, encoding) if note)
    if kind == EXCEL:
        data, of_sheet = _sheet_as_text(data, path.name, named, sheet)
        guessed += of_sheet
    return data, kind, guessed


_START = 512
_PACKINGS: dict[str, tuple[bytes, Callable[[Any], Any]]] = {
    "gzip": (b"\x1f\x8b", gzip.open),
    "bzip2": (b"BZh", bz2.open),
    "xz": (b"\xfd7zXZ\x00", lzma.open),
    "zstandard": (b"\x28\xb5\x2f\xfd", lambda file: CompressedInputStream(file, "zstd")),
}
_BROKEN = (EOFError, OSError, lzma.LZMAError, zlib.error)


def _unpack(file: IO[bytes], packing: str, name: str) -> bytes:
    """Return the content of a packed file, if it fits into memory."""
    parts: list[bytes] = []
    size = 0
    try:
        with _PACKINGS[packing][1](file) as unpacking:
            while part := unpacking.read(_BLOCK):
                parts.append(part)
                size += len(part) * 3 + part.count(b"\n") * FIELD
                check_memory(size, name)
    except _BROKEN as error:
        told = {"packing": packing, "reason": str(error) or "it ends early"}
        raise DataError(said("data", "not_whole", name=name, **told)) from error
    return b"".join(parts)


def _kind_of(start: bytes) -> str:
    if start.startswith(b"PAR1"):
        return PARQUET
    if start.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        return ARROW
    return EXCEL if start.startswith(b"PK\x03\x04") else TEXT


_OTHERS = {  # of what is no table: a pattern of its first bytes
    rb"\xd0\xcf\x11\xe0": "an old Excel file: save it as .xlsx or as CSV",
    rb"FEA1": "a Feather file of before 2020: save the table as Parquet",
    rb"%PDF": "a PDF: export the table as CSV",
    rb"SQLite format 3": "a database of SQLite: export the table as CSV",
    rb"\x89HDF": "HDF5: save the table as CSV or Parquet",
    rb"\x93NUMPY": "an array of NumPy: save a table with named columns as CSV or Parquet",
    rb"\x80": "a pickle, which is never opened, as it may hold a program: save it as Parquet",
    rb"\x89PNG": "a picture",
    rb"\x7fELF": "a program",
    **{
        re.escape(mark): f"{packing} within a packed file: unpack it once"
        for packing, (mark, _) in _PACKINGS.items()
    },
    rb"(?s).{257}ustar": "a tar archive: unpack it",
    rb"\s*(\{\s*[\"}]|\[\s*[\[{\]\"0-9-])": (
        "JSON: write the table as CSV, such as pandas.read_json(...).to_csv(...)"
    ),
    rb"(?i)\s*<(!doctype html|html|head|\?xml)": "a web page or XML: save the table as CSV",
}


def _as_utf8(data: bytes, name: str) -> tuple[bytes, str]:
    """Return a text in any of the usual encodings as UTF-8, and the encoding if it is another."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        try:
            return data.decode("utf-16").encode(), "UTF-16"
        except UnicodeDecodeError as error:
            raise DataError(f"{name}: not UTF-16 text (byte {error.start})") from error
    plain = data.removeprefix(b"\xef\xbb\xbf")
    fault = not_utf8(plain)
    return (_western(plain, f"{name}: {fault}").encode(), "Latin-1") if fault else (plain, "")


def not_utf8(content: bytes) -> str:
    """Return where a text is not UTF-8; empty if it is."""
    try:
        content.decode()
    except UnicodeDecodeError as error:
        return f"not UTF-8 text (line {line_of(content, error.start)}, byte {error.start})"
    return ""


END_OF_LINE = re.compile(rb"\r\n|\r|\n")


def line_of(content: bytes, position: int) -> int:
    """Return the line that a byte of a text is in, the first being 1."""
    return 1 + sum(1 for _ in END_OF_LINE.finditer(content, 0, position))


_SEQUENCE = re.compile(
    rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}"
)
_NO_TEXT = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")


def _western(data: bytes, fault: str) -> str:
    """Return a text that is not UTF-8, as a fault says, as Windows' Latin-1.

    Raises
    ------
    DataError : a part of it is UTF-8, or it has bytes that no text has.
    """
    if _NO_TEXT.search(data):
        raise DataError(f"{fault}, but bytes that no text has: is it a table at all?")
    if _SEQUENCE.search(data):
        raise DataError(f"{fault}, and other lines are: save it in one encoding, UTF-8")
    try:
        return data.decode("cp1252")
    except UnicodeDecodeError as error:
        raise DataError(f"{fault}, nor Latin-1: save it as UTF-8") from error


DEEP = 20  # the number of first rows that are searched for the header
_MOST_ROWS, _MOST_COLUMNS = 1_048_576, 16_384  # of an Excel sheet
_ROW, _MERGED, _FORMULA = (
    f"{{http://schemas.openxmlformats.org/spreadsheetml/2006/main}}{tag}"
    for tag in ("row", "mergeCell", "f")
)

Row = tuple[int, Sequence[Any]]  # its number, and its values up to the last one
Rows = list[list[str]]


def _sheet_as_text(
    data: bytes, name: str, named: Sequence[str], sheet: str
) -> tuple[bytes, tuple[str, ...]]:
    """Return the sheet of an Excel file as CSV, and what was guessed: see `content_of`.

    Parameters
    ----------
    name : the name of the file, for messages.

    Raises
    ------
    DataError : it is no Excel file, or holds what a table cannot: cells that are merged, or
        formulas that were never computed.
    UserError : there is no sheet of that name.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            _check_archive(archive, name)
        sheets = _sheets(data, name)
        titles = [title for title, _ in sheets]
        if sheet:
            check_choice(f"sheet of {name}", sheet, titles)
        first: Rows | None = None
        for title, cells in sheets:
            if sheet in ("", title):
                rows = _text_rows(cells, name)
                wanted = (i for i, row in enumerate(rows[:DEEP]) if _is_header(row, named))
                if (start := next(wanted, -1)) >= 0:
                    break
                first = first or rows
        else:
            return _written(first or []), ()
    except _NO_BOOK as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"{name} is no Excel file that can be read: {reason[:100]}") from error
    guessed = [f"sheet '{title}' of {len(sheets)}"] if len(sheets) > 1 and not sheet else []
    guessed += [f"header in row {start + 1}"] if start else []
    return _written(rows[start:]), tuple(guessed)


_NO_BOOK = (
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
                # A formula without a value; that of a text may be empty.
                never_computed = value is None and written.find(_FORMULA) is not None
                if never_computed and written.get("t") != "str":
                    raise DataError(said("data", "never_computed", name=name))
            yield number, values
            element.clear()


def _check_merged(cells: str, name: str) -> None:
    """Refuse cells that are merged over rows: a title over columns is not in the table."""
    if len({corner.lstrip(string.ascii_letters) for corner in cells.split(":")}) > 1:
        raise DataError(said("data", "merged", name=name, cells=cells[:20]))


def _text_rows(rows: Iterable[Row], name: str) -> Rows:
    """Return the rows as texts, all equally long, without empty ones at the end.

    Raises
    ------
    UserError : all cells up to the last row and column would take more memory than is allowed.
    """
    texts: Rows = []
    width = letters = filled = 0
    for number, row in rows:
        width = max(width, len(row))
        # Most cells of a wide sheet are empty: what they are is not asked of each.
        written = ["" if cell is None else _text(cell) for cell in row]
        letters += sum(map(len, written))
        check_memory(number * width * FIELD + letters, name)
        texts += [[] for _ in range(number - 1 - len(texts))]
        texts.append(written)
        filled = max(filled, next((i for i in range(len(row), 0, -1) if written[i - 1]), 0))
    while texts and not any(texts[-1]):
        texts.pop()
    return [[*row[:filled], *[""] * (filled - len(row))] for row in texts]


def _text(cell: Any) -> str:
    if isinstance(cell, datetime) and cell.time() == time():
        return cell.date().isoformat()
    if isinstance(cell, datetime | date | time):
        return cell.isoformat()
    return text_of(cell)


def _is_header(row: Sequence[str], named: Sequence[str]) -> bool:
    return any(row) and {*named} <= {cell.strip() for cell in row}


def _written(rows: Rows) -> bytes:
    text = io.StringIO(newline="")
    # A single empty cell would be written as an empty line, and skipped.
    marked = (row if len(row) > 1 or row[0] else [" "] for row in rows)
    csv.writer(text, lineterminator="\n").writerows(marked)
    return text.getvalue().encode()
