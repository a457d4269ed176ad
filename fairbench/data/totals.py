"""Rows of a sheet that are none of the table's: totals, notes, and another table.

What stands below a blank row at the end, and a last row that is called a total, are left out, and
the user is told. What may be a total or a row of the table is refused, and so is another table
below or beside the first one.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from fairbench.core.errors import DataError, UserError
from fairbench.core.formats import count, quoted
from fairbench.data.delimited import read_table, unique_names
from fairbench.data.tabular import AMOUNT

Cells = Sequence[str]

_LAST = 100  # the number of last rows that are searched for totals and notes
_FEW = 5  # more rows than this that lack most of their cells are hardly totals
# The number of blank rows after which another table is searched for. A file with more has them
# between all rows.
_MOST_BLANK = 1000
_SUM = r"((grand|sub|overall)[ -]?)?totals?|sum|summen?|gesamt|insgesamt|zwischensumme|somme|suma"
_TOTAL = re.compile(rf"{_SUM}|totale|∑|σ", re.IGNORECASE)
_DOUBTFUL = re.compile(
    rf"({_SUM}) .*|averages?|avg\.?|means?|mittel(wert)?|durchschnitt|ø|moyenne|promedio|medians?"
    r"|count|anzahl|min|minimum|max|maximum|std",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class LeftOut:
    """A row at the end that is none of the table's, or may be none.

    Attributes
    ----------
    row : the number of the row, counted from 1 below the header.
    text : its cells; empty for a blank row.
    """

    row: int
    text: str


def left_out_text(rows: Sequence[LeftOut]) -> tuple[str, ...]:
    """Return that rows at the end were left out, as part of a sentence; nothing of none."""
    return (f"without what stands below the table ({_list_text(rows)})",) if rows else ()


def as_note(rows: Sequence[LeftOut], file: str) -> str:
    """Return that rows at the end of a file were left out, as a sentence for a page."""
    return f"What stands below the table in {file} is left out: {_list_text(rows)}."


def refuse_total(row: LeftOut, file: str) -> UserError:
    """Return the error of a row at the end that may be a total or a row of the table."""
    return UserError(
        f"{file}: row {count(row.row)}, {quoted(row.text, 40)}, may be a total and no row of the "
        "table: delete it, or put it further up if it is one"
    )


def _list_text(rows: Sequence[LeftOut]) -> str:
    """Return the rows left out as a list of words, of many the first two and the last."""
    written = [f"row {count(row.row)} {quoted(row.text, 40)}" for row in rows if row.text]
    blank = len(rows) - len(written)
    if len(written) > 3:
        written[2:-1] = [f"{len(written) - 3} more"]
    if blank:
        written.append(f"{count(blank)} blank {'row' if blank == 1 else 'rows'}")
    return ", ".join(written)


def without_totals(
    data: bytes, separator: str, width: int
) -> tuple[bytes, list[LeftOut], LeftOut | None]:
    """Return a delimited text without what stands below its table, and the rows left out.

    Parameters
    ----------
    width : the number of columns.

    Returns
    -------
    The text, the rows left out, and the first row of the text that may be a total; None if none.
    """
    start = _rows_begin(data, separator)
    lines = list(islice(_lines_from_end(data, start, separator), _LAST))[::-1]
    rows = [cells for _, cells in lines]
    kept, doubtful = _end_of_table(rows, width)

    def row(index: int) -> LeftOut:
        above = _count_rows(data[start : lines[index][0]], separator)
        return LeftOut(above + 1, _text(rows[index]))

    may_be_total = None if doubtful is None else row(doubtful)
    if kept == len(rows):
        return data, [], may_be_total
    first = row(kept).row
    left_out = [LeftOut(first + number, _text(cells)) for number, cells in enumerate(rows[kept:])]
    return data[: lines[kept][0]], left_out, may_be_total


def _end_of_table(rows: Sequence[Cells], width: int) -> tuple[int, int | None]:
    """Return how many of the last rows are the table's, and the first of them that may be none.

    A row at the end is none of the table's if it is blank; if it stands below a blank row, and
    lacks most of the cells that all rows above have; or if it alone is called a total, all else in
    it are numbers, and it lacks one of these cells. It is doubtful if it lacks most of them below
    no blank row, or alone is called a total or a mean, and has all.
    """
    kept = 0
    full: set[int] | None = None  # the columns that have a value in each row of the table
    doubtful: list[int] = []
    for index, cells in enumerate(rows):
        filled = {column for column, cell in enumerate(cells) if cell}
        below = any(not any(row) for row in rows[kept:index])
        gaps = (full or set()) - filled
        lacks_most = 2 * len(gaps) > len(full or ())
        name = _name(cells, rows[:kept])
        is_total = bool(_TOTAL.fullmatch(name))
        if not filled or (is_total and gaps) or (below and (lacks_most or len(cells) < width)):
            continue
        if len(cells) == width and (lacks_most or is_total or _DOUBTFUL.fullmatch(name)):
            doubtful.append(index)
            continue
        for row in rows[kept : index + 1]:
            having = {column for column, cell in enumerate(row) if cell}
            full = having if full is None else full & having
        kept, doubtful = index + 1, []
    may_be_total = doubtful[0] if 0 < len(doubtful) <= _FEW else None
    return doubtful[-1] + 1 if doubtful else kept, may_be_total


def _name(cells: Cells, above: Sequence[Cells]) -> str:
    """Return the first text of a row that no row above has there, if all else are numbers."""
    column = next((column for column, cell in enumerate(cells) if cell), 0)
    others = [cell for cell in cells[column + 1 :] if cell]
    if not above or not others or not all(map(_is_number, others)):
        return ""
    if any(row[column : column + 1] == [cells[column]] for row in above):
        return ""
    return re.split(r"[:(=]", cells[column], maxsplit=1)[0].strip()


def _is_number(text: str) -> bool:
    return re.fullmatch(AMOUNT, text) is not None


def _text(cells: Cells) -> str:
    return " ".join(cell for cell in cells if cell)


def refuse_another_table(
    data: bytes, separator: str, names: Sequence[str], file: str, name_of_line: Callable[[int], str]
) -> None:
    """Refuse a text that has another table below the first one, or beside it.

    Parameters
    ----------
    names : the names of the columns, from the header.
    name_of_line : returns the name that messages use for a line of the text, counted from 1.

    Raises
    ------
    DataError : says where the other table begins.
    """
    start = _rows_begin(data, separator)
    if len(names) > 1 and (below := _find_table_below(data, start, separator, names)):
        at, header = below
        where = name_of_line(data.count(b"\n", 0, at) + 1)
        _refuse(file, where, header)
    last = max((i for i, name in enumerate(names) if name), default=0)
    start_of_names = next((i for i, name in enumerate(names) if name), 0)
    if "" in names[start_of_names:last]:
        _refuse_beside(data, separator, names, file)


def _refuse(file: str, where: str, header: Sequence[str]) -> None:
    """Raise the error that another table begins in a line or a column, with its first names."""
    columns = ", ".join(quoted(name, 20) for name in header[:3])
    if len(header) > 3:
        columns += ", ..."
    raise DataError(
        f"{file}: another table begins in {where} ({columns}): keep one table in the file, and "
        "save the other as a file of its own"
    )


def _find_table_below(
    data: bytes, start: int, separator: str, names: Sequence[str]
) -> tuple[int, Sequence[str]] | None:
    """Return the position of another header behind a blank row, and the header."""
    sign = re.escape(separator.encode())
    blank = re.compile(rb"\n[ \t\"" + sign + rb"]*\r?(?=\n)")
    for match in islice(blank.finditer(data, max(start - 1, 0)), _MOST_BLANK):
        after = list(islice(_lines(data, match.end() + 1, separator), 5))
        while after and (sum(map(bool, after[0][1])) < 2):  # blank rows, and a title
            after.pop(0)
        if len(after) < 2:
            continue
        (at, cells), (_, row) = after[:2]
        header = [cell for cell in cells if cell]
        lines = _lines_from_end(data[: match.start()], start, separator)
        above = [row for _, row in islice(lines, _LAST)]
        if _is_header(cells, row, above, names) and data.count(b'"', 0, at) % 2 == 0:
            return at, header
    return None


def _is_header(cells: Cells, row: Cells, above: Sequence[Cells], names: Sequence[str]) -> bool:
    """Return whether cells are names of columns, with a row of values below."""
    header = [cell for cell in cells if cell]
    if header == [name for name in names if name]:
        return True
    if any(map(_is_number, header)) or len(set(header)) < len(header):
        return False
    if any(column < len(line) and line[column] == cell
           for line in above for column, cell in enumerate(cells) if cell):  # fmt: skip
        return False  # a row of texts that others have, too
    below = [row[column] for column, cell in enumerate(cells) if cell and column < len(row)]
    return any(map(_is_number, below))


def _refuse_beside(data: bytes, separator: str, names: Sequence[str], file: str) -> None:
    """Refuse a table behind an empty column, of another height or with the same names."""
    columns = unique_names(names)
    frame = read_table(data, file, separator=separator)
    filled = [(frame[name] != "").to_numpy() for name in columns]
    blocks: list[list[int]] = [[]]
    for column, name in enumerate(names):
        if name or filled[column].any():
            blocks[-1].append(column)
        else:
            blocks.append([])
    tables = [block for block in blocks if sum(bool(names[column]) for column in block) > 1]
    for block in tables[1:]:
        heights = [
            max(int(np.flatnonzero(filled[column]).max(initial=-1)) for column in columns_of_block)
            for columns_of_block in (tables[0], block)
        ]
        names_of_first = {names[column] for column in tables[0]} - {""}
        shared = names_of_first & {names[column] for column in block}
        if heights[0] != heights[1] or shared:
            _refuse(file, f"column {block[0] + 1}", [names[column] for column in block])


def _rows_begin(data: bytes, separator: str) -> int:
    """Return the position after the header, whose names may hold line breaks."""
    at = len(data) - len(data.lstrip(b"\r\n"))
    while at < len(data):
        end = data.find(b"\n", at)
        end = len(data) if end < 0 else end + 1
        if data.count(b'"', 0, end) % 2 == 0:
            return end
        at = end
    return at


def _lines(data: bytes, start: int, separator: str) -> Iterator[tuple[int, Cells]]:
    """Yield the position and the cells of each line."""
    while start < len(data):
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        yield start, _cells(data[start:end], separator)
        start = end + 1


def _lines_from_end(data: bytes, start: int, separator: str) -> Iterator[tuple[int, Cells]]:
    """Yield the position and the cells of each line, the last first, up to an unclosed quote."""
    end = len(data) - data.endswith(b"\n")
    while end > start:
        begin = max(data.rfind(b"\n", start, end) + 1, start)
        line = data[begin:end]
        if line.count(b'"') % 2:
            return
        yield begin, _cells(line, separator)
        end = begin - 1


def _cells(line: bytes, separator: str) -> Cells:
    text = line.decode("utf-8", "replace").rstrip("\r")
    try:
        return [cell.strip() for cell in next(csv.reader([text], delimiter=separator), [])]
    except csv.Error:
        return [text]


def _count_rows(data: bytes, separator: str) -> int:
    if b'"' not in data:
        return data.count(b"\n")
    lines = data.decode("utf-8", "replace").splitlines(keepends=True)
    return sum(1 for _ in csv.reader(lines, delimiter=separator))
