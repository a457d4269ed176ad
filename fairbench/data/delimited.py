"""Reading delimited text strictly: every fault is reported with file and row."""

from __future__ import annotations

import csv as plain_csv
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from fairbench.core.errors import DataError
from fairbench.core.files import (
    COLUMN,
    FIELD,
    check_memory,
    is_text,
    table_within,
)
from fairbench.data.tabular import numbers

if TYPE_CHECKING:
    import pyarrow as pa

_BLOCK = 1 << 20


def check_text(path: Path) -> None:
    """Refuse a delimited text file that would take more memory than is allowed."""
    size = path.stat().st_size
    check_memory(3 * size, path.name)
    columns, fields = 1, 0
    with open(path, "rb") as file:
        first_line = file.readline()
        columns += max(first_line.count(sign) for sign in (b",", b"\t", b";"))
        while block := file.read(_BLOCK):
            fields += block.count(b"\n")
    check_memory(3 * size + fields * columns * FIELD + columns * COLUMN, path.name)


def read_parquet(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """Read columns of a Parquet file, all by default, that fit into the memory that is allowed.

    Columns are called as :func:`unique_names` has it.

    Raises
    ------
    UserError : they do not fit, by the file's footer or by the texts it repeats.
    ArrowException, OSError : it is not such a file.
    """
    from pyarrow import OSFile, parquet

    with open(path, "rb") as file, OSFile(os.fsencode(path)) as source:

        def part(first: int, size: int) -> bytes:
            return os.pread(file.fileno(), size, first)

        schema = parquet.read_schema(source)
        names = unique_names(schema.names)
        if names == schema.names:
            texts = [field.name for field in schema if is_text(field)]
            table = table_within(source, part, path.name, columns, texts)
        else:  # which cannot be told apart by name before all are read
            table = table_within(source, part, path.name).rename_columns(names)
    return table.select(list(columns)) if columns else table


def parquet_table(content: bytes, file: str) -> pa.Table:
    """Read a data set's verified Parquet file from its content in memory.

    Raises
    ------
    DataError : it is not such a file.
    """
    from pyarrow import ArrowException, BufferReader, parquet

    try:
        return parquet.read_table(BufferReader(content))
    except (ArrowException, OSError) as error:
        raise DataError(f"{file}: not a Parquet file: {str(error).splitlines()[0]}") from error


def as_texts(table: pa.Table, file: str, texts: Collection[str] | None = None) -> pd.DataFrame:
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
    from pyarrow import ArrowException, float64, string, types
    from pyarrow import compute as pc

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
            columns[name] = pc.cast(values, float64(), safe=False)
            continue
        if types.is_floating(kind):
            values = pc.if_else(pc.is_nan(values), None, values)
        try:
            text = pc.fill_null(pc.cast(values, string()), "")
        except ArrowException as error:
            raise DataError(
                f"{file}: column '{name}' is of type {kind}, and has no text in each row: "
                f"{str(error).splitlines()[0]}"
            ) from error
        if pc.any(pc.match_substring(text, "\0")).as_py():
            raise DataError(f"{file}: column '{name}' holds a byte of value 0 in a text")
        if types.is_floating(kind):
            text = pc.if_else(pc.equal(text, "-0"), "0", text)  # they are equal, so one value
        columns[name] = pc.utf8_capitalize(text) if types.is_boolean(kind) else text
    return pd.DataFrame({name: column.to_pandas() for name, column in columns.items()})


def read_table(
    content: bytes,
    file: str,
    *,
    names: Sequence[str] | None = None,
    separator: str = ",",
    only: Collection[str] | None = None,
    skip: int = 0,
    exact: Collection[str] = (),
) -> pd.DataFrame:
    """Read a delimited text file as strings, blanks around fields removed.

    Columns are called as :func:`unique_names` has it. The index counts the file's data
    rows from 0, so that a frame that was filtered still names the rows of the file.

    Parameters
    ----------
    content : the file's bytes, UTF-8 (a byte-order mark is dropped).
    file : its name, for messages.
    names : the columns, for a file without a header line; without them the first line names them.
    only : the columns to keep; an error if the file lacks one.
    skip : the number of lines before the table.
    exact : the columns whose blanks stay: labels that differ in them are different labels.

    Raises
    ------
    DataError : not UTF-8, not a table, or a row with too few or too many fields.
    """
    from pyarrow import ArrowInvalid
    from pyarrow import compute as pc

    whole = content
    content = content.removeprefix(b"\xef\xbb\xbf")
    for _ in range(skip):
        content = content.partition(b"\n")[2]
    start = 0
    if names is None:
        names, start = _header(content, file, separator)
    columns = unique_names(names)
    kept = columns if only is None else list(only)
    for name in kept:
        if name not in columns:
            raise DataError(f"{file}: no column '{name}' (found {', '.join(columns[:8])} ...)")
    wrong: list[tuple[int, int]] = []
    convert = dict.fromkeys(kept, "large_string")  # as pandas holds texts: nothing is copied
    try:
        table = _parse(content, columns, separator, convert, start=start, wrong=wrong)
    except (ArrowInvalid, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0]
        if "UTF8" in reason or isinstance(error, UnicodeDecodeError):
            raise DataError(f"{file}: {_not_text(whole)}") from error
        raise DataError(f"{file}: not a table separated by '{separator}': {reason}") from error
    if wrong:
        row, width = wrong[0]
        raise DataError(
            f"{file}: row {row} has {width} fields separated by '{separator}', expected "
            f"{len(columns)} ({', '.join(columns[:3])}, ...)"
        )
    trimmed = {name: pc.utf8_trim_whitespace(table[name]) for name in kept if name not in exact}
    return pd.DataFrame({name: trimmed.get(name, table[name]).to_pandas() for name in kept})


def _parse(
    content: bytes,
    columns: Sequence[str],
    separator: str,
    convert: Mapping[str, str],
    *,
    start: int,
    wrong: list[tuple[int, int]],
) -> Any:
    """Return an Arrow table of typed columns; rows of another width go to `wrong` with it.

    Parameters
    ----------
    start : the byte that the first row begins at.
    """
    from pyarrow import BufferReader, csv, schema

    if start and _NO_ROWS.match(content, start):
        return schema(list(convert.items())).empty_table()

    def note(row: csv.InvalidRow) -> str:
        wrong.append((row.number, row.actual_columns))
        return "skip"

    rows = BufferReader(memoryview(content)[start:])
    read = csv.ReadOptions(column_names=columns, use_threads=False, block_size=_BLOCK)
    parse = csv.ParseOptions(
        delimiter=separator, invalid_row_handler=note, newlines_in_values=b'"' in content
    )
    types = csv.ConvertOptions(
        column_types=dict(convert), include_columns=list(convert), null_values=[]
    )
    return csv.read_csv(rows, read, parse, types)


def read_codes(content: bytes, file: str, wide: Collection[str] = ()) -> pd.DataFrame:
    """Read a table of whole numbers with a header as int16, `wide` columns as int32.

    Takes a fraction of the memory of `read_table`, which is called to locate an error, if any.
    """
    from pyarrow import ArrowInvalid

    columns, start = _header(content, file, ",")
    convert = {name: "int32" if name in wide else "int16" for name in columns}
    wrong: list[tuple[int, int]] = []
    try:
        table = _parse(content, columns, ",", convert, start=start, wrong=wrong)
    except (ArrowInvalid, UnicodeDecodeError):
        wrong = [(0, 0)]
    if not wrong:
        frame: pd.DataFrame = table.to_pandas(split_blocks=True, self_destruct=True)
        return frame
    text = read_table(content, file)
    for name in columns:
        numbers(text, name, file)
    raise DataError(f"{file}: a number that is not whole, or too large, among {', '.join(columns)}")


def read_typed(
    content: bytes,
    file: str,
    types: Mapping[str, str],
    *,
    names: Sequence[str] | None = None,
    separator: str = ",",
) -> pd.DataFrame:
    """Read the columns of `types`, each as ``string`` or ``float64``; the rest as `read_table`.

    For wide tables of numbers, which cost several times the memory as strings. Only where one is
    no number are they read as such, to say where it is.
    """
    from pyarrow import ArrowInvalid

    given, start = (names, 0) if names is not None else _header(content, file, separator)
    columns = unique_names(given)
    wrong = list[tuple[int, int]]()
    try:
        table = _parse(content, columns, separator, types, start=start, wrong=wrong)
        if not wrong:
            frame: pd.DataFrame = table.to_pandas()
            return frame
    except (ArrowInvalid, UnicodeDecodeError, KeyError):
        pass
    text = read_table(content, file, names=names, separator=separator, only=types)
    return text.assign(**{
        name: numbers(text, name, file) for name, kind in types.items() if kind == "float64"
    })  # fmt: skip


def header(content: bytes, file: str, separator: str = ",") -> list[str]:
    """Return the names in the first line of a delimited text file, blanks around them removed."""
    return _header(content, file, separator)[0]


_NO_ROWS = re.compile(rb"[\r\n]*\Z")
_END_OF_LINE = re.compile(rb"\r\n|\r|\n")


def line_of(content: bytes, position: int) -> int:
    """Return the line that a byte of a text is in, the first being 1."""
    return 1 + sum(1 for _ in _END_OF_LINE.finditer(content, 0, position))


def _header(content: bytes, file: str, separator: str) -> tuple[list[str], int]:
    """Return the names in the first line that is not empty, and the byte that rows begin at.

    A name in quotation marks may hold the ends of lines.

    Raises
    ------
    DataError : no UTF-8, no header, or a byte of value 0: some readers end a field there, and
        labels that differ behind it would be one.
    """
    if kind := _kind(content):
        raise DataError(f"{file}: not UTF-8 text, but {kind}")
    if (position := content.find(b"\0")) >= 0:
        raise DataError(
            f"{file}: line {line_of(content, position)} holds a byte of value 0, as UTF-16 text "
            "does"
        )
    read = start = len(content) - len(content.lstrip(b"\r\n"))

    def lines() -> Iterator[str]:
        """Yield the lines of the content, and keep in `read` how far they reach."""
        nonlocal read
        for end in _END_OF_LINE.finditer(content, start):
            line = content[read : end.end()]
            read = end.end()
            yield line.decode("utf-8")
        line = content[read:]
        read = len(content)
        yield line.decode("utf-8")

    try:
        names = next(plain_csv.reader(lines(), delimiter=separator))
    except UnicodeDecodeError as error:
        raise DataError(f"{file}: {_not_text(content)}") from error
    except plain_csv.Error as error:
        raise DataError(f"{file}: the header cannot be read: {error}") from error
    if not any(name.strip() for name in names):
        raise DataError(f"{file}: no header line: is the file empty?")
    return [name.strip() for name in names], read


def unique_names(names: Sequence[str]) -> list[str]:
    """Return what columns are called: a second x is ``x.1``, the third without name ``column 3``.

    No column takes the name that another has in the header. An index that pandas stored has none.
    """
    taken = {*names}
    unique: dict[str, None] = {}
    counts: dict[str, int] = {}
    for position, name in enumerate(names, start=1):
        named = name and not _INDEX.fullmatch(name)
        first = once = name if named else f"column {position}"
        while once in unique or (once in taken and once != name):
            counts[first] = counts.get(first, 0) + 1
            once = f"{first}.{counts[first]}"
        unique[once] = None
    return list(unique)


_INDEX = re.compile(r"__index_level_\d+__")


_KINDS = {
    b"\xff\xfe": "UTF-16: save it as UTF-8",
    b"\xfe\xff": "UTF-16: save it as UTF-8",
    b"\x1f\x8b": "gzip: unpack it",
    b"PK\x03\x04": "a zip archive or a spreadsheet: unpack it, or save it as CSV",
    b"PAR1\x15": "Parquet: give it a name that ends in .parquet",
}


def _kind(content: bytes) -> str:
    """Return the kind of a file that is no text, if its first bytes tell it."""
    return next((kind for start, kind in _KINDS.items() if content.startswith(start)), "")


def _not_text(content: bytes) -> str:
    """Return the position of the first byte that is not UTF-8."""
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        return f"not UTF-8 text (line {line_of(content, error.start)}, byte {error.start})"
    return "not UTF-8 text"


def require_columns(
    frame: pd.DataFrame, columns: Collection[str], file: str, *, width: int | None = None
) -> None:
    """Refuse a table that lacks a column, or has more or fewer than `width`; names the first."""
    for column in columns:
        if column not in frame.columns:
            listed = ", ".join(map(str, frame.columns[:8]))
            raise DataError(f"{file}: no column '{column}' (found {listed} ...)")
    if width is not None and frame.shape[1] != width:
        raise DataError(
            f"{file}: {frame.shape[1]} columns, the archive's file has {width} (the last one here "
            f"is '{frame.columns[-1]}')"
        )
