"""Upper bounds of the size of a decompressed Parquet file, by what the decoder relies on.

A footer may say anything of rows and of bytes. Decoding yields as many rows of a column as the
entries of its column chunks say, whatever the file and its row groups say; and unfolds each page to
as many bytes as the page's own header says. What packing can shrink at most bounds the bytes of
most files without a look at their pages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.parquet import ColumnChunkMetaData, ParquetFile

Part = Callable[[int, int], bytes]  # (first byte, number of bytes) -> bytes of the file

# How many times what it takes a packed page can unfold to; others have no bound that is of use.
_RATIOS = {"UNCOMPRESSED": 1, "SNAPPY": 32, "LZ4": 256, "LZ4_RAW": 256}
_PREFIXED = 7  # the encoding DELTA_BYTE_ARRAY: a text by what it shares with the one before
_NONE = 2**40  # as good as no bound
_MOST_BYTES = 2**31  # of a page


@dataclass(frozen=True)
class ColumnSize:
    """Upper bounds of the size of a column.

    Attributes
    ----------
    values : the number of its rows.
    unfolded : the bytes of its pages, decompressed.
    longest : the bytes of its longest text.
    prefixed : whether texts may be stored by what they share with earlier ones, so that a text of a
        few bytes may stand for one as long as all together.
    """

    values: int
    unfolded: int
    longest: int
    prefixed: bool


def page_bounds(
    file: ParquetFile, groups: Sequence[int], columns: Sequence[Sequence[int]]
) -> list[ColumnSize]:
    """Return upper bounds of the sizes of columns, from the footer alone.

    They are far too high for files compressed with zstd, gzip or Brotli: use :func:`page_sizes`
    for these.
    """
    sizes = []
    for chunks in _chunks(file, groups, columns):
        values = unfolded = 0
        for chunk in chunks:
            values += abs(chunk.num_values)
            unfolded += _RATIOS.get(chunk.compression, _NONE) * abs(chunk.total_compressed_size)
        sizes.append(ColumnSize(values, unfolded, unfolded, prefixed=True))
    return sizes


def page_sizes(
    file: ParquetFile, part: Part, groups: Sequence[int], columns: Sequence[Sequence[int]]
) -> list[ColumnSize]:
    """Return the sizes of columns, from the headers of their pages.

    Parameters
    ----------
    file : the open file.
    part : a function that returns bytes of the file.
    groups : the row groups that are read.
    columns : for each column, the positions of its parts in the file.

    Raises
    ------
    ArrowInvalid : a header cannot be read.
    """
    sizes = []
    for chunks in _chunks(file, groups, columns):
        pages = [page for chunk in chunks for page in _pages(part, chunk)]
        unfolded = sum(page.unfolded for page in pages)
        prefixed = any(page.encoding == _PREFIXED for page in pages)
        longest = unfolded if prefixed else max((page.unfolded for page in pages), default=0)
        values = sum(abs(chunk.num_values) for chunk in chunks)
        sizes.append(ColumnSize(values, unfolded, longest, prefixed))
    return sizes


def _chunks(
    file: ParquetFile, groups: Sequence[int], columns: Sequence[Sequence[int]]
) -> Iterator[list[ColumnChunkMetaData]]:
    """Yield the chunks of each column."""
    rows = [file.metadata.row_group(group) for group in groups]
    for places in columns:
        yield [row.column(place) for row in rows for place in places]


@dataclass(frozen=True)
class _Page:
    values: int
    unfolded: int
    encoding: int


def _pages(part: Part, chunk: ColumnChunkMetaData) -> Iterator[_Page]:
    """Yield the pages of a chunk that decoding would read: until there are as many values."""
    position = chunk.data_page_offset
    if chunk.has_dictionary_page and 0 < chunk.dictionary_page_offset < position:
        position = chunk.dictionary_page_offset
    end, values = position + chunk.total_compressed_size, 0
    while position < end and values < chunk.num_values:
        header, size = _header(part, position, end)
        packed, unfolded = header.get(3, -1), header.get(2, -1)
        data: dict[int, Any] = header.get(5) or header.get(8) or {}
        count = data.get(1, 0)
        if not (0 <= packed < _MOST_BYTES and 0 <= unfolded < _MOST_BYTES and count >= 0):
            raise _unreadable()
        position += size + packed
        values += count
        yield _Page(count, unfolded, data.get(2 if 5 in header else 4, 0))


_USUAL = 256  # bytes, in which nearly every header of a page ends
_LONGEST = 1 << 24


def _header(part: Part, position: int, end: int) -> tuple[dict[int, Any], int]:
    """Return the header of a page, by the numbers of its fields, and how many bytes it has."""
    size = _USUAL
    while True:
        data = part(position, min(size, end - position))
        try:
            return _struct(data, 0, 0)
        except IndexError:
            if size >= min(_LONGEST, end - position):
                raise _unreadable() from None
            size *= 16


def _unreadable() -> pa.ArrowInvalid:
    from pyarrow import ArrowInvalid

    return ArrowInvalid("the header of a page cannot be read")


def _struct(data: bytes, position: int, depth: int) -> tuple[dict[int, Any], int]:
    """Return the fields of a record in Thrift's compact protocol, and the byte behind it."""
    fields: dict[int, Any] = {}
    field = 0
    while data[position]:
        kind, step = data[position] & 15, data[position] >> 4
        position += 1
        if not step:
            field, position = _whole_number(data, position)
        field += step
        if kind in (1, 2):
            value: Any = kind == 1
        elif kind in (3, 7):  # a byte, or a number of eight
            value, position = None, position + (1 if kind == 3 else 8)
        elif kind in (4, 5, 6):
            value, position = _whole_number(data, position)
        elif kind == 8:
            length, position = _number(data, position)
            value, position = None, position + length
        elif kind == 12 and depth < 4:
            value, position = _struct(data, position, depth + 1)
        else:  # no header of a page has lists
            raise _unreadable()
        fields[field] = value
    return fields, position + 1


def _number(data: bytes, position: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, position
    raise _unreadable()


def _whole_number(data: bytes, position: int) -> tuple[int, int]:
    value, position = _number(data, position)
    return (value >> 1) ^ -(value & 1), position
