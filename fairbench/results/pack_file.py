"""One file of a pack: a Parquet file that holds many small tables of the same columns.

Tables lie one after the other, in the order of their ids; a row group holds one large table or
several small ones. The footer says, beside what any reader of Parquet needs, which table lies
where, what was noted of it, and the sha256 of each row group. Any change of a bit is therefore
found: the footer's own sha256 is in the pack's index, and a row group is checked before it is
unpacked.
"""

from __future__ import annotations

import hashlib
import io
import json
import mmap
import os
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from fairbench.core.errors import UserError
from fairbench.core.files import (
    UNREADABLE,
    DamagedError,
    check_memory,
    check_parquet,
    most_memory,
    sha256,
    written_out,
)
from fairbench.core.safe_open import opened, read_bytes

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.parquet import FileMetaData, ParquetFile

FORMAT = 1  # of packs that are written; later ones are refused
MOST_TABLES = 65_536  # in a file
MOST_BYTES = 1 << 28  # in a file, before compression
_META = "fairbench.pack"
_LEVEL = 15  # of compression by zstd
_CACHED = 8  # row groups that are kept unpacked


@dataclass(frozen=True)
class FileSums:
    """A pack's index entry of a file: its size, the position of its footer, and its sha256."""

    bytes: int
    footer: int
    sha256: str


@dataclass(frozen=True)
class Packed:
    """A table in the form in which a pack holds it, with a note from which it can be restored."""

    table: pa.Table
    note: str = ""


class _Summed(io.RawIOBase):
    """A file that is written once, with the sha256 of each of its parts."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._sum = hashlib.sha256()
        self.size = 0

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        if self._file.closed:  # after an error: discard what pyarrow still writes
            return len(content)
        self._sum.update(content)
        self._file.write(content)
        self.size += len(content)
        return len(content)

    def tell(self) -> int:
        return self.size

    def cut(self) -> str:
        """Return the sha256 of the bytes written since the last call."""
        checksum = self._sum.hexdigest()
        self._sum = hashlib.sha256()
        return checksum


class PackFileWriter:
    """Writes one file of a pack, table by table.

    Parameters
    ----------
    key : the column that holds the id of each row's table.
    group : the size of a row group, in bytes before compression, at which it is written.
    """

    def __init__(self, file: IO[bytes], key: str, columns: pa.Schema, *, group: int) -> None:
        import pyarrow as pa
        from pyarrow.parquet import ParquetWriter

        self._key = key
        self._group_bytes = group
        self._sink = _Summed(file)
        schema = pa.schema([pa.field(key, pa.string()), *columns])
        self._writer = ParquetWriter(
            pa.PythonFile(self._sink, "w"), schema, compression="zstd", compression_level=_LEVEL,
            write_statistics=False, **encodings(schema),
        )  # fmt: skip
        self._waiting: list[pa.Table] = []  # the tables of the row group that is filled
        self._waiting_bytes = 0
        self._written_bytes = 0
        self._row_bytes = row_bytes(schema)
        self._ids: list[str] = []
        self._rows: list[int] = []
        self._notes: dict[str, int] = {}  # each distinct note, and its number
        self._noted: list[int] = []  # the number of each table's note
        self._groups: list[tuple[int, int, str]] = []  # tables so far, last byte, sha256

    @property
    def full(self) -> bool:
        """Whether the next table is to go into another file."""
        return len(self._ids) >= MOST_TABLES or self._written_bytes >= MOST_BYTES

    def add(self, name: str, packed: Packed) -> None:
        """Add a table."""
        import pyarrow as pa

        ids = pa.repeat(pa.scalar(name, pa.string()), len(packed.table))
        self._waiting.append(packed.table.add_column(0, self._key, ids))
        self._ids.append(name)
        self._rows.append(len(packed.table))
        self._noted.append(self._notes.setdefault(packed.note, len(self._notes)))
        self._waiting_bytes += len(packed.table) * self._row_bytes
        if self._waiting_bytes >= self._group_bytes:
            self._flush()

    def _flush(self) -> None:
        """Write the tables that wait as one row group."""
        import pyarrow as pa

        if not self._waiting:
            return
        table = pa.concat_tables(self._waiting).replace_schema_metadata(None)
        if table.schema != self._writer.schema:
            raise UserError(
                "a table has other columns than the others that it is packed with: fairbench store "
                "verify says which file is damaged"
            )
        self._writer.write_table(table, row_group_size=max(len(table), 1))
        self._groups.append((len(self._ids), self._sink.size, self._sink.cut()))
        self._written_bytes += self._waiting_bytes
        self._waiting = []
        self._waiting_bytes = 0

    def close(self) -> FileSums:
        """Write the footer."""
        self._flush()
        about = {
            "format": FORMAT, "key": self._key, "groups": self._groups, "ids": self._ids,
            "rows": self._rows, "notes": list(self._notes), "noted": self._noted,
        }  # fmt: skip
        text = json.dumps(about, ensure_ascii=False, separators=(",", ":"))
        self._writer.add_key_value_metadata({_META: text})
        footer = self._groups[-1][1] if self._groups else 0
        self._writer.close()
        return FileSums(self._sink.size, footer, self._sink.cut())


def encodings(columns: pa.Schema) -> dict[str, Any]:
    """Return how columns are encoded: texts and counts by dictionaries, floats by split bytes."""
    import pyarrow as pa

    floats = [column.name for column in columns if pa.types.is_floating(column.type)]
    return {
        "use_dictionary": [column.name for column in columns if column.name not in floats],
        "column_encoding": dict.fromkeys(floats, "BYTE_STREAM_SPLIT"),
    }


def row_bytes(columns: pa.Schema) -> int:
    """Return the size of a row in bytes before compression, with 8 bytes for a text."""
    widths = []
    for column in columns:
        width = 8
        with suppress(ValueError):  # texts have no bit width
            width = max(column.type.bit_width // 8, 1)
        widths.append(width)
    return sum(widths)


@dataclass(frozen=True, eq=False)
class PackFile:
    """A file of a pack that is read; everything read of it is checked.

    Raises
    ------
    DamagedError, OSError : it is missing, or not what was written.
    """

    path: Path
    sums: FileSums

    @cached_property
    def _content(self) -> mmap.mmap:
        """The bytes of the file, after its size and its footer are checked."""
        with open(opened(self.path), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size != self.sums.bytes:
                raise DamagedError(f"{size} bytes, and {self.sums.bytes} were written")
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if sha256(content[self.sums.footer :]) != self.sums.sha256:
            raise DamagedError("the footer is not what was written")
        return content

    @cached_property
    def _about(self) -> dict[str, Any]:
        """What the footer notes of the tables and the row groups."""
        text = self.parquet.metadata.metadata[_META.encode()]
        about: dict[str, Any] = json.loads(text)
        return about

    @cached_property
    def parquet(self) -> ParquetFile:
        """The file as pyarrow reads it, with texts as dictionaries."""
        import pyarrow as pa
        from pyarrow.parquet import ParquetFile, read_metadata

        content = pa.py_buffer(self._content)
        metadata: FileMetaData = read_metadata(pa.BufferReader(content))
        schema = metadata.schema.to_arrow_schema()
        texts = [column.name for column in schema if pa.types.is_string(column.type)]
        return ParquetFile(pa.BufferReader(content), metadata=metadata, read_dictionary=texts)

    @property
    def ids(self) -> list[str]:
        """The ids of its tables, in order."""
        ids: list[str] = self._about["ids"]
        return ids

    @cached_property
    def columns(self) -> pa.Schema:
        """The columns of its tables, texts as texts."""
        schema = self.parquet.metadata.schema.to_arrow_schema().remove_metadata()
        return schema.remove(schema.get_field_index(self._about["key"]))

    @cached_property
    def _starts(self) -> list[int]:
        """How many rows there are before each table."""
        return [0, *accumulate(self._about["rows"])]

    @cached_property
    def _tables_up_to(self) -> list[int]:
        """How many tables there are up to the end of each row group."""
        return [tables for tables, _, _ in self._about["groups"]]

    def __contains__(self, name: str) -> bool:
        """Say whether it has a table of this id."""
        return self._index_of(name) is not None

    def _index_of(self, name: str) -> int | None:
        """Return the index of a table by its id: a dictionary would take twice their memory."""
        index = bisect_left(self.ids, name)
        return index if self.ids[index : index + 1] == [name] else None

    def table(self, name: str) -> Packed:
        """Return one of its tables, texts as dictionaries."""
        if (index := self._index_of(name)) is None:
            raise KeyError(name)
        group = bisect_right(self._tables_up_to, index)
        first_of_group = self._tables_up_to[group - 1] if group else 0
        start = self._starts[index] - self._starts[first_of_group]
        table = _row_group(self, group).slice(start, self._about["rows"][index])
        return Packed(table, self.note(index))

    def note(self, index: int) -> str:
        """Return the note of a table, by the table's index."""
        about = self._about
        note: str = about["notes"][about["noted"][index]]
        return note

    def row_group(self, group: int) -> pa.Table:
        """Return a row group, with the column of ids."""
        self.check(group)
        texts = check_parquet(self.parquet, self._bytes_at, str(self.path), groups=[group])
        if prefixed := [name for name, size in texts.items() if size.prefixed]:
            raise DamagedError(f"column {prefixed[0]} is not packed as one is here")
        table = self.parquet.read_row_group(group)
        for name in texts:
            check_memory(sum(map(written_out, table[name].chunks)), str(self.path))
        return table

    def _bytes_at(self, first: int, size: int) -> bytes:
        return self._content[first : first + size]

    @property
    def groups(self) -> int:
        """How many row groups there are."""
        return len(self._about["groups"])

    def ids_of(self, group: int) -> list[str]:
        """Return the ids of the tables in a row group."""
        first = self._tables_up_to[group - 1] if group else 0
        return self.ids[first : self._tables_up_to[group]]

    def check(self, group: int) -> None:
        """Compare a row group with its sha256."""
        groups: Sequence[Any] = self._about["groups"]
        begin = groups[group - 1][1] if group else 0
        if sha256(self._content[begin : groups[group][1]]) != groups[group][2]:
            raise DamagedError(f"row group {group} is not what was written")

    def damaged(self) -> Iterator[tuple[int, list[str]]]:
        """Yield each row group that is damaged, and the ids of the tables in it."""
        for group in range(self.groups):
            try:
                self.check(group)
            except DamagedError:
                yield group, self.ids_of(group)


def sums_of(path: Path) -> FileSums:
    """Return the sums that an index would have of a file, computed from the file.

    Raises
    ------
    DamagedError, OSError : it is missing, or no whole file of a pack.
    """
    import pyarrow as pa
    from pyarrow.parquet import read_metadata

    content = read_bytes(path, most_memory())
    try:
        about = json.loads(read_metadata(pa.BufferReader(content)).metadata[_META.encode()])
        footer = about["groups"][-1][1] if about["groups"] else 0
    except (*UNREADABLE, pa.ArrowException) as error:  # the footer was not compared with a sum
        raise DamagedError("its footer cannot be read") from error
    return FileSums(len(content), footer, sha256(content[footer:]))


@lru_cache(maxsize=_CACHED)
def _row_group(file: PackFile, group: int) -> pa.Table:
    """Return a row group without the column of ids; cached, as tables are often read in turn."""
    table = file.row_group(group)
    return table.select([name for name in table.column_names if name != file._about["key"]])
