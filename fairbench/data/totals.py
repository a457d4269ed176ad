"""Rows of a sheet that are none of the table's: totals, notes, and another table.

Totals and notes at the end are left out, and the user is told. Another table below or beside the
first one is refused.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.core.errors import DataError
from fairbench.core.formats import count, quoted
from fairbench.data.delimited import read_table, unique_names
from fairbench.data.in_memory import text_of
from fairbench.data.tabular import to_numbers

Cells = Sequence[str]
Numbers = Callable[[int], NDArray[np.float64]]  # position of a column -> its values above a row

_LAST = 100  # the number of last rows that are searched for totals and notes
# The number of blank rows after which another table is searched for. A file with more has them
# between all rows.
_MOST_BLANK = 1000
_TOTAL = re.compile(
    r"((grand|sub|overall)[\s-]?)?total\w*|sums?|summen?|gesamt\w*|insgesamt|zwischensumme|averages?"
    r"|avg\.?|means?|mittel\w*|durchschnitt\w*|ø|σ|∑|medians?|count|anzahl|min\w*|max\w*"
    r"|std\w*|somme|moyenne|totale|promedio|suma",
    re.IGNORECASE,
)
_NOTE = re.compile(
    r"(source|notes?|remarks?|legend|as of|created|generated|exported|printed|quellen?|hinweise?"
    r"|anmerkung\w*|bemerkung\w*|fußnote\w*|legende|stand|erstellt|exportiert|confidential"
    r"|vertraulich|page \d|seite \d)\b|[*†©(]",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class LeftOut:
    """A row at the end that is none of the table's.

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
    data: bytes, separator: str, names: Sequence[str], file: str
) -> tuple[bytes, list[LeftOut]]:
    """Return a delimited text without totals and notes at its end, and the rows left out.

    Parameters
    ----------
    names : the names of the columns, from the header.
    """
    start = _rows_begin(data, separator)
    lines = list(islice(_lines_from_end(data, start, separator), _LAST))[::-1]
    rows = [cells for _, cells in lines]

    candidate = _first_candidate(rows, len(names))

    def numbers(column: int) -> NDArray[np.float64]:
        """Return a column of the rows above the first candidate."""
        name = unique_names(names)[column]
        above = data[: lines[candidate][0]]
        return _values(read_table(above, file, separator=separator, only=[name])[name])

    kept = _table_rows(rows, candidate, len(names), numbers)
    if kept == len(rows):
        return data, []
    cut = lines[kept][0]
    above = _count_rows(data[start:cut], separator)
    return data[:cut], [
        LeftOut(above + number, _text(cells)) for number, cells in enumerate(rows[kept:], start=1)
    ]


def frame_without_totals(frame: pd.DataFrame) -> tuple[pd.DataFrame, list[LeftOut]]:
    """Return a table in memory without totals and notes at its end, and the rows left out."""
    last = frame.tail(_LAST)
    rows = [[text_of(value).strip() for value in row] for row in last.itertuples(index=False)]
    candidate = _first_candidate(rows, frame.shape[1])

    def numbers(column: int) -> NDArray[np.float64]:
        above = frame.iloc[: len(frame) - len(rows) + candidate, column]
        return np.asarray(pd.to_numeric(above, errors="coerce"), np.float64)

    kept = _table_rows(rows, candidate, frame.shape[1], numbers)
    above = len(frame) - len(rows) + kept
    return (frame if kept == len(rows) else frame.iloc[:above]), [
        LeftOut(above + number, _text(cells)) for number, cells in enumerate(rows[kept:], start=1)
    ]


def _first_candidate(rows: Sequence[Cells], width: int) -> int:
    """Return the first of the rows at the end that may be none of the table's."""
    candidate = len(rows)
    while candidate and _may_be_no_row(rows[candidate - 1], width):
        candidate -= 1
    return candidate


def _may_be_no_row(cells: Cells, width: int) -> bool:
    """Return whether a row may be none of the table's: it has gaps, or is called a total."""
    filled = [cell for cell in cells if cell]
    if width > 1 and (len(filled) <= 1 or len(cells) < width or not cells[0]):
        return True
    return not filled or _is_total(filled[0])


def _table_rows(rows: Sequence[Cells], candidate: int, width: int, numbers: Numbers) -> int:
    """Return how many of the last rows are the table's.

    A row is none of the table's where it lacks cells that all rows above have, and is called a
    total or is one sentence; or where its numbers are the sums or means of their columns.

    Parameters
    ----------
    candidate : the first row that may be none of the table's.
    width : the number of columns.
    """
    body = [cells for cells in rows[:candidate] if len(cells) == width]
    if not body:
        return len(rows)
    full = [column for column in range(width) if all(cells[column] for cells in body)]
    kept = len(rows)
    for row_index in range(len(rows) - 1, candidate - 1, -1):
        cells = rows[row_index]
        has_gaps = any(column >= len(cells) or not cells[column] for column in full)
        filled = [cell for cell in cells if cell]
        after_blank = row_index > 0 and not any(rows[row_index - 1])
        is_row = filled and not (
            (has_gaps and _is_note(filled, short=len(cells) < width, after_blank=after_blank))
            or (has_gaps and _is_named_total(cells, body))
            or ((has_gaps or _is_total(filled[0])) and _adds_up(cells, numbers))
        )
        if is_row:
            break
        kept = row_index
    return kept


def _is_total(text: str) -> bool:
    word = re.split(r"[\s:(=]", text.strip(), maxsplit=1)[0]
    return bool(_TOTAL.fullmatch(word) or _TOTAL.fullmatch(text.strip().rstrip(":")))


def _is_note(filled: Cells, *, short: bool, after_blank: bool) -> bool:
    """Return whether a row is one sentence, which may hold separators.

    Parameters
    ----------
    short : whether it has fewer cells than the header.
    after_blank : whether a blank row is above.
    """
    text = filled[0]
    if _NOTE.match(text) and (short or not any(map(_is_number, filled[1:]))):
        return True
    is_words = not _is_number(text) and (after_blank or len(text.split()) > 2)
    return len(filled) == 1 and (is_words or _is_total(text))


def _is_named_total(cells: Cells, body: Sequence[Cells]) -> bool:
    """Return whether a row is called a total, and all its other cells are numbers or such words."""
    filled = [column for column, cell in enumerate(cells) if cell]
    label = filled[0]
    if not _is_total(cells[label]) or any(cells[label] == row[label] for row in body):
        return False
    return all(_is_number(cells[column]) or _is_total(cells[column]) for column in filled[1:])


def _adds_up(cells: Cells, numbers: Numbers) -> bool:
    """Return whether all numbers of a row are sums or means of their columns, one certainly.

    A sum above all values is certainly a total, and so is an exact mean that no row has.
    """
    filled = [column for column, cell in enumerate(cells) if cell]
    if filled and _is_total(cells[filled[0]]):
        filled = filled[1:]
    if not filled or not all(_is_number(cells[column]) for column in filled):
        return False
    is_certain = False
    for column in filled:
        values = numbers(column)
        if len(values) < 2 or not np.isfinite(values).all():
            return False
        value = _number(cells[column])
        total = float(values.sum())
        mean = float(values.mean())
        is_total = abs(value - total) <= _rounding(cells[column], total) and value > values.max()
        off = abs(value - mean)
        if not is_total and off > _rounding(cells[column], mean):
            return False
        exact = off <= 1e-6 * max(abs(mean), 1e-9) and not (values == value).any()
        is_certain = is_certain or is_total or exact
    return is_certain


def _rounding(text: str, value: float) -> float:
    """Return how far a number as it is written may be from the value it stands for."""
    decimals = len(text.replace(",", ".").rstrip("% ").partition(".")[2])
    return float(0.5 * 10.0**-decimals + 1e-9 * abs(value))


def _plain(text: str) -> str:
    return text.rstrip("% \u00a0").replace(",", ".")


def _number(text: str) -> float:
    try:
        return float(_plain(text))
    except ValueError:
        return float("nan")


def _is_number(text: str) -> bool:
    return bool(np.isfinite(_number(text))) or bool(_GROUPED.fullmatch(text))


_GROUPED = re.compile(r"[+-]?\d{1,3}([.,' \u00a0\u2019]\d{3})+([.,]\d+)?\s?[%€$£]?")


def _values(column: pd.Series) -> NDArray[np.float64]:
    return to_numbers(column.astype(str).map(_plain))


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
    blank = re.compile(rb"\n(?:[ \t\"]|" + sign + rb")*\r?(?=\n)")
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
