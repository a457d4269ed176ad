"""The bytes of a table's file: unpacked, as UTF-8, and of which kind they are.

A file is known by what it holds and not by its name. What was guessed is kept, to be said.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from fairbench.core.errors import DataError
from fairbench.core.files import FIELD, check_memory
from fairbench.data.delimited import line_of

TEXT, PARQUET, ARROW, EXCEL = "text", "Parquet", "Arrow", "Excel"
_BLOCK = 1 << 20


@dataclass(frozen=True)
class Content:
    """The content of a file with a table.

    Attributes
    ----------
    data : the bytes, unpacked; of a text UTF-8 without a byte-order mark. Empty of a Parquet or
        Arrow file that is not packed, which is read where it is.
    kind : ``text``, ``Parquet``, ``Arrow`` or ``Excel``.
    guessed : a note for the reader of the table on how it was read.
    """

    data: bytes
    kind: str
    guessed: tuple[str, ...] = ()


def content_of(path: Path) -> Content:
    """Return the content of a file, unpacked and as UTF-8.

    Raises
    ------
    UserError : a packed file that is not whole, one that would take too much memory, or one that
        is no table.
    OSError : it cannot be read.
    """
    with open(path, "rb") as file:
        start = file.read(_START)
        packing = next((name for mark, name in _PACKINGS.items() if start.startswith(mark)), "")
        kind = TEXT if packing else _kind_of(start)
        if kind in (PARQUET, ARROW):
            return Content(b"", kind)
        file.seek(0)
        data = _unpack(file, packing, path.name) if packing else _whole_file(file, path)
    kind = _kind_of(data[:_START])
    content = Content(data, kind, (packing,) if packing else ())
    if kind != TEXT:
        return content
    _refuse_other_kinds(data, path.name)
    return _as_utf8(content, path.name)


_START = 512
_PACKINGS = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstandard",
}
_BROKEN = (EOFError, OSError, lzma.LZMAError, zlib.error)


def _whole_file(file: IO[bytes], path: Path) -> bytes:
    size = path.stat().st_size
    check_memory(3 * size, path.name)
    return file.read()


def _unpack(file: IO[bytes], packing: str, name: str) -> bytes:
    """Return the content of a packed file, if it fits into memory."""
    parts: list[bytes] = []
    size = 0
    try:
        for part in _unpack_blocks(file, packing):
            parts.append(part)
            size += len(part) * 3 + part.count(b"\n") * FIELD
            check_memory(size, name)
    except _BROKEN as error:
        raise DataError(
            f"{name}: the {packing} file is damaged or not whole ({str(error) or 'it ends early'}):"
            " get it again"
        ) from error
    return b"".join(parts)


def _unpack_blocks(file: IO[bytes], packing: str) -> Iterator[bytes]:
    """Yield the content of a packed file, block by block."""
    if packing == "zstandard":
        yield from _unpack_zstandard(file)
        return
    kinds: dict[str, Any] = {"gzip": gzip.open, "bzip2": bz2.open, "xz": lzma.open}
    with kinds[packing](file, "rb") as unpacking:
        while part := unpacking.read(_BLOCK):
            yield part


_LITTLE = 4096  # of zstandard, which may unfold some ten thousand times


def _unpack_zstandard(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the content of a zstandard file, frame by frame."""
    from zstandard import ZstdDecompressor, ZstdError

    frame = None
    try:
        while block := file.read(_LITTLE):
            while block:
                frame = frame or ZstdDecompressor().decompressobj()
                yield frame.decompress(block)
                block = frame.unused_data
                frame = None if frame.eof else frame
    except ZstdError as error:
        raise EOFError(str(error)) from error
    if frame is not None:
        raise EOFError("it ends early")


def _kind_of(start: bytes) -> str:
    if start.startswith(b"PAR1"):
        return PARQUET
    if start.startswith((b"ARROW1", b"FEA1", b"\xff\xff\xff\xff")):
        return ARROW
    return EXCEL if start.startswith(b"PK\x03\x04") else TEXT


_OTHERS = {
    b"\xd0\xcf\x11\xe0": "an old Excel file: save it as .xlsx or as CSV",
    b"%PDF": "a PDF: export the table as CSV",
    b"SQLite format 3": "a database of SQLite: export the table as CSV",
    b"\x89HDF": "HDF5: save the table as CSV or Parquet",
    b"\x93NUMPY": "an array of NumPy: save a table with named columns as CSV or Parquet",
    b"\x80": "a pickle, which is never opened, as it may hold a program: save it as Parquet",
    b"\x89PNG": "a picture",
    b"\x7fELF": "a program",
    **{mark: f"{name} within a packed file: unpack it once" for mark, name in _PACKINGS.items()},
}
_JSON = re.compile(rb"\s*(\{\s*[\"}]|\[\s*[\[{\]\"0-9-])")
_PAGE = (b"<!doctype html", b"<html", b"<head", b"<?xml")


def _refuse_other_kinds(data: bytes, name: str) -> None:
    """Refuse what is no delimited text by its first bytes."""
    start = data[:_START].removeprefix(b"\xef\xbb\xbf")
    kind = next((other for mark, other in _OTHERS.items() if start.startswith(mark)), "")
    if not kind and data[257:262] == b"ustar":
        kind = "a tar archive: unpack it"
    if not kind and _JSON.match(start):
        kind = "JSON: write the table as CSV, such as pandas.read_json(...).to_csv(...)"
    if not kind and start.lstrip().lower().startswith(_PAGE):
        kind = "a web page or XML: save the table as CSV"
    if kind:
        raise DataError(f"{name} is not a table but {kind}")


# The longer marks first: that of UTF-32 begins as that of UTF-16 does.
_MARKS = {
    b"\xff\xfe\x00\x00": "UTF-32",
    b"\x00\x00\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
_SAMPLE = 4096


def _as_utf8(content: Content, name: str) -> Content:
    """Return a text in any of the usual encodings as UTF-8."""
    data = content.data
    plain = data.removeprefix(b"\xef\xbb\xbf")
    marked = next((code for mark, code in _MARKS.items() if data.startswith(mark)), "")
    encoding = marked or _utf16_without_mark(data[:_SAMPLE])
    if encoding:
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError as error:
            raise DataError(f"{name}: not {encoding} text (byte {error.start})") from error
        encoding_name = encoding.upper() if marked else "UTF-16 without a mark"
        return replace(content, data=text.encode(), guessed=(*content.guessed, encoding_name))
    try:
        plain.decode("utf-8")
    except UnicodeDecodeError as error:
        text = _western(plain, name, error)
        return replace(content, data=text.encode(), guessed=(*content.guessed, "Latin-1"))
    return replace(content, data=plain)


def _utf16_without_mark(sample: bytes) -> str:
    """Return the encoding of a text in which nearly every other byte is 0."""
    half = len(sample) // 2
    zeros = [sample[side : 2 * half : 2].count(0) for side in (0, 1)]
    if max(zeros) < half * 0.4 or min(zeros) > half * 0.05 or not half:
        return ""
    return "utf-16-be" if zeros[0] > zeros[1] else "utf-16-le"


_SEQUENCE = re.compile(
    rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}"
)
_NO_TEXT = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")


def _western(data: bytes, name: str, error: UnicodeDecodeError) -> str:
    """Return a text that is not UTF-8 as Windows' Latin-1.

    Raises
    ------
    DataError : a part of it is UTF-8, or it has bytes that no text has.
    """
    where = f"{name}: not UTF-8 text (line {line_of(data, error.start)}, byte {error.start})"
    if _NO_TEXT.search(data):
        raise DataError(f"{where}, but bytes that no text has: is it a table at all?") from error
    if _SEQUENCE.search(data):
        raise DataError(f"{where}, and other lines are: save it in one encoding, UTF-8") from error
    try:
        return data.decode("cp1252")
    except UnicodeDecodeError:
        raise DataError(f"{where}, nor Latin-1: save it as UTF-8") from error
