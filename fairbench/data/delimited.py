"""Reading delimited text strictly: every fault is reported with file and row."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from csv import reader as csv_reader
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from fairbench.core.errors import DataError
from fairbench.core.files import COLUMN, FIELD, check_memory, check_parquet
from fairbench.data.tabular import numbers

if TYPE_CHECKING:
    import pyarrow as pa

_BLOCK = 1 << 20


def check_text(path: Path, *, every: bool = True) -> None:
    """Refuse a delimited text file that would take more memory than is allowed.

    Parameters
    ----------
    every : whether all of its columns are read.
    """
    size = path.stat().st_size
    check_memory(3 * size, path.name)
    columns, fields = 1, 0
    with open(path, "rb") as file:
        first = file.readline()
        columns += max(first.count(sign) for sign in (b",", b"\t", b";"))
        while block := file.read(_BLOCK):
            fields += block.count(b"\n")
    fields *= columns if every else 1
    check_memory(3 * size + fields * FIELD + columns * COLUMN, path.name)


def read_parquet(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """Read columns of a Parquet file, all by default, that fit into the memory that is allowed.

    Raises
    ------
    UserError : they do not fit, by the file's footer or by the texts it repeats.
    ArrowException, OSError : it is not such a file.
    """
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        names = columns or file.schema_arrow.names
        check_parquet(file, path.name, len(names))
        texts = [each.name for each in file.schema_arrow if each.name in names and _is_text(each)]
    with parquet.ParquetFile(path, read_dictionary=texts) as file:
        table = file.read(list(names))
    check_memory(sum(_unfolded(table[name]) for name in texts), path.name)
    return table


def _is_text(field: pa.Field) -> bool:
    kind = getattr(field.type, "value_type", field.type)  # of a dictionary, what it holds
    return str(kind) in ("string", "large_string", "binary", "large_binary")


def _unfolded(column: pa.ChunkedArray) -> int:
    """Return how many bytes a column of a few different texts takes where each is written out."""
    from pyarrow import compute

    total = 0
    for chunk in column.chunks:
        lengths = compute.binary_length(chunk.dictionary)
        total += compute.sum(lengths.take(chunk.indices.drop_null())).as_py() or 0
    return total


def read_table(
    content: bytes,
    file: str,
    *,
    names: Sequence[str] | None = None,
    separator: str = ",",
    only: Collection[str] | None = None,
    skip: int = 0,
) -> pd.DataFrame:
    """Read a delimited text file as strings, blanks around fields removed.

    A header that occurs twice is called ``name`` and ``name.1``. The index counts the file's data
    rows from 0, so that a frame that was filtered still names the rows of the file.

    Parameters
    ----------
    content : the file's bytes, UTF-8 (a byte-order mark is dropped).
    file : its name, for messages.
    names : the columns, for a file without a header line; without them the first line names them.
    only : the columns to keep, of a wide file; refused where one is not there.
    skip : lines before the table.

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
    columns = _unique(header(content, file, separator) if names is None else names)
    kept = columns if only is None else list(only)
    for name in kept:
        if name not in columns:
            raise DataError(f"{file}: no column '{name}' (found {', '.join(columns[:8])} ...)")
    wrong: list[tuple[int, int]] = []
    convert = dict.fromkeys(kept, "string")
    try:
        table = _parsed(content, columns, separator, convert, header=names is None, wrong=wrong)
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
    return pd.DataFrame({name: pc.utf8_trim_whitespace(table[name]).to_pandas() for name in kept})


def _parsed(
    content: bytes,
    columns: Sequence[str],
    separator: str,
    convert: Mapping[str, str],
    *,
    header: bool,
    wrong: list[tuple[int, int]],
) -> Any:
    """Return an Arrow table of typed columns; rows of another width go to `wrong` with it."""
    from pyarrow import BufferReader, csv

    def note(row: csv.InvalidRow) -> str:
        wrong.append((row.number - header, row.actual_columns))
        return "skip"

    read = csv.ReadOptions(
        column_names=columns, skip_rows=int(header), use_threads=False, block_size=_BLOCK
    )
    parse = csv.ParseOptions(delimiter=separator, invalid_row_handler=note)
    types = csv.ConvertOptions(
        column_types=dict(convert), include_columns=list(convert), null_values=[]
    )
    return csv.read_csv(BufferReader(content), read, parse, types)


def read_codes(content: bytes, file: str, wide: Collection[str] = ()) -> pd.DataFrame:
    """Read a table of whole numbers with a header as int16, `wide` columns as int32.

    Takes a fraction of the memory of `read_table`, which is asked for the place of any fault.
    """
    from pyarrow import ArrowInvalid

    columns = header(content, file, ",")
    convert = {name: "int32" if name in wide else "int16" for name in columns}
    wrong: list[tuple[int, int]] = []
    try:
        table = _parsed(content, columns, ",", convert, header=True, wrong=wrong)
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

    columns = _unique(header(content, file, separator) if names is None else names)
    wrong: list[tuple[int, int]] = []
    try:
        table = _parsed(content, columns, separator, types, header=names is None, wrong=wrong)
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
