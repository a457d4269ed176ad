"""The unpacked size of a stream of Arrow, by its own buffers, before any is unpacked.

A batch lists its buffers as bytes of its message. Where they are packed, each begins with the
number of bytes that it unfolds to, which reading asks the system for.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from fairbench.core.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

_ROOT, _HEADER_TYPE, _HEADER = "<I", 1, 2  # of a Message: where it begins, and fields of it
_DICTIONARY, _RECORDS = 2, 3  # types of headers
_BUFFERS, _PACKING, _DATA = 2, 3, 1  # fields of a batch of rows, and of one of a dictionary
_AS_IT_IS = -1  # of a buffer that was not worth packing


def stream_size(source: pa.NativeFile) -> int:
    """Return the number of bytes of a stream's batches, from the present position of `source`.

    Raises
    ------
    DataError : a message is not as it should be.
    """
    from pyarrow.ipc import MessageReader

    total = 0
    try:
        for message in MessageReader.open_stream(source):
            body = message.body
            total += _unfolded_size(message.metadata.to_pybytes(), body) if body else 0
    except (struct.error, IndexError, OverflowError) as error:
        raise DataError("a batch of the Arrow file is damaged") from error
    return total


def _unfolded_size(head: bytes, body: Any) -> int:
    """Return how many bytes a batch takes."""
    table = _number_at(head, 0, _ROOT)
    kind = _field(head, table, _HEADER_TYPE)
    batch = _follow(head, _field(head, table, _HEADER))
    if not batch or not kind or head[kind] not in (_DICTIONARY, _RECORDS):
        return 0
    if head[kind] == _DICTIONARY:
        batch = _follow(head, _field(head, batch, _DATA))
    listed = _follow(head, _field(head, batch, _BUFFERS))
    packed = bool(_field(head, batch, _PACKING))
    count = _number_at(head, listed, "<I") if listed else 0
    total = 0
    for start, size in struct.iter_unpack("<qq", head[listed + 4 : listed + 4 + 16 * count]):
        unfolded = size
        if packed and size >= 8:
            unfolded = _number_at(body.slice(start, 8).to_pybytes(), 0, "<q")
        total += size if unfolded == _AS_IT_IS else abs(unfolded)
    return total


def _number_at(data: bytes, offset: int, form: str) -> int:
    (number,) = struct.unpack_from(form, data, offset)
    return int(number)


def _field(data: bytes, table: int, number: int) -> int:
    """Return the position of a field of a table of FlatBuffers; 0 if it has none."""
    layout = table - _number_at(data, table, "<i")
    entry = 4 + 2 * number
    if entry >= _number_at(data, layout, "<H"):
        return 0
    offset = _number_at(data, layout + entry, "<H")
    return table + offset if offset else 0


def _follow(data: bytes, offset: int) -> int:
    """Return the position that a field points to."""
    return offset + _number_at(data, offset, "<I") if offset else 0
