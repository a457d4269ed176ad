"""The files of logs, and JSON, lines of JSON and archives of it, read as untrusted input."""

from __future__ import annotations

import json
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairbench.core.errors import DataError, UserError
from fairbench.core.files import check_json, check_memory, most_memory
from fairbench.core.safe_open import guard, names_in, opened, read_bytes

_DEEPEST = 8  # folders within folders
_MOST_FILES = 100_000


@dataclass(frozen=True)
class Files:
    """The files that were found under a path.

    Attributes
    ----------
    root : the path that was named, a file or a folder.
    paths : its regular files, in order.
    links : the number of links, pipes and the like that were skipped.
    """

    root: Path
    paths: tuple[Path, ...]
    links: int = 0

    def name(self, path: Path) -> str:
        """Return a file's name in messages: its path within the folder that was named."""
        return path.name if path == self.root else str(path.relative_to(self.root))


def files_under(path: Path) -> Files:
    """Return the file, or the files of the folder and of those in it; no link is followed.

    What begins with a point is left out.

    Raises
    ------
    UserError : nothing is there, it cannot be read, or the folder has too many files.
    """
    try:
        if path.is_file():
            return Files(path, (path,))
        if not path.is_dir():
            raise UserError(f"{path} is no file and no folder")
        guard(path)
        files: list[Path] = []
        links = sum(_walk(path, files, 0))
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}") from error
    return Files(path, tuple(files), links)


def _walk(folder: Path, files: list[Path], depth: int) -> Iterator[int]:
    """Add a folder's files, and yield how many of its entries are none, and of those in it."""
    names, folders, others = names_in(folder)
    files += [folder / name for name in names if not name.startswith(".")]
    if len(files) > _MOST_FILES:
        raise UserError(
            f"{folder} and the folders beside it have more than {_MOST_FILES:,} files: name the "
            "folder of the results alone"
        )
    yield len(others)
    for name in folders:
        if not name.startswith(".") and depth < _DEEPEST:
            yield from _walk(folder / name, files, depth + 1)


def start_of(path: Path, size: int = 4096) -> bytes:
    """Return the first bytes of a file."""
    with open(opened(path), "rb") as file:
        return file.read(size)


def read_json(path: Path, name: str) -> Any:
    """Return the values of a file in JSON.

    Raises
    ------
    UserError : it takes more memory than is allowed, or is not JSON.
    OSError : it cannot be read.
    """
    return parse_json(read_bytes(path, most_memory()), name)


def parse_json(content: bytes, name: str) -> Any:
    """Return the values of a text in JSON; `name` is that of messages."""
    check_json(content)
    try:
        return json.loads(content)
    except json.JSONDecodeError as error:
        ends = error.pos >= len(error.doc.rstrip()) - 1 or error.msg.startswith("Unterminated")
        reason = "ends before it is whole" if ends else (
            f"is not JSON (line {error.lineno}: {error.msg})"
        )  # fmt: skip
        raise DataError(f"{name} {reason}: get it again, or move it away") from error
    except RecursionError as error:
        raise DataError(f"{name}: its values are nested too deeply") from error
    except ValueError as error:  # no UTF-8, or a number of thousands of digits
        raise DataError(f"{name} is not JSON: {str(error)[:100]}") from error


def json_lines(path: Path, name: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number of every line, and its values.

    Raises
    ------
    DataError : a line that is not an object in JSON.
    """
    content = read_bytes(path, most_memory())
    check_memory(2 * len(content), name)
    for line_number, line in enumerate(content.split(b"\n"), 1):
        if line.strip():
            values = parse_json(line, f"{name}, line {line_number},")
            yield line_number, as_object(values, f"{name}, line {line_number},")


def as_object(values: Any, name: str) -> dict[str, Any]:
    """Return values, which must be an object; `name` says what was read, for messages."""
    if not isinstance(values, dict):
        raise DataError(f"{name} is {_kind(values)}, not an object: it is no such log")
    return values


def part_of(values: dict[str, Any], key: str, name: str) -> dict[str, Any]:
    """Return the object under a key; an empty one if there is none."""
    part = values.get(key)
    return {} if part is None else as_object(part, f"'{key}' of {name}")


def list_of(values: dict[str, Any], key: str, name: str) -> list[Any]:
    """Return the list under a key; an empty one if there is none."""
    part = values.get(key)
    if part is not None and not isinstance(part, list):
        raise DataError(f"'{key}' of {name} is {_kind(part)}, not a list: it is no such log")
    return part or []


def text_of(values: Mapping[str, Any], key: str) -> str:
    """Return the text under a key; empty if there is none, or if it is no text."""
    text = values.get(key)
    return text.strip() if isinstance(text, str) else ""


def _kind(values: Any) -> str:
    kinds = {list: "a list", str: "a text", type(None): "empty", bool: "a truth"}
    return kinds.get(type(values), "a number" if isinstance(values, int | float) else "an object")


_LOCAL = struct.Struct("<26xHH")  # of a member's own header: how long its name and its extra are
_STORED, _DEFLATED, _ZSTANDARD = 0, 8, 93
_BROKEN = (zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, struct.error, EOFError, ValueError)


@dataclass(frozen=True)
class LogArchive:
    """A zip archive whose members may be packed by zstandard, which Python 3.11's cannot read.

    Attributes
    ----------
    members : name -> the entry of each member in the archive's directory.
    """

    path: Path
    name: str
    members: dict[str, zipfile.ZipInfo]

    @classmethod
    def of(cls, path: Path, name: str) -> LogArchive:
        """Return an archive, once its directory was read.

        Raises
        ------
        DataError : it is damaged or not whole.
        """
        with open(opened(path), "rb") as file:
            check_memory(os.fstat(file.fileno()).st_size, name)
            try:
                with zipfile.ZipFile(file) as archive:
                    members = {member.filename: member for member in archive.infolist()}
            except (*_BROKEN, NotImplementedError, RecursionError) as error:
                raise DataError(
                    f"{name} is a damaged archive, or one that is not whole ({str(error)[:80]}): "
                    "get it again"
                ) from error
        return cls(path, name, members)

    def json(self, member: str) -> Any:
        """Return the values of a member in JSON.

        Raises
        ------
        UserError : it is damaged, or takes more memory than is allowed.
        """
        return parse_json(self._read(self.members[member]), f"{self.name} ({member})")

    def _read(self, about: zipfile.ZipInfo) -> bytes:
        """Return a member's content, of at most the number of bytes that the directory states."""
        where = f"{self.name} ({about.filename})"
        check_memory(about.file_size + about.compress_size, where)
        try:
            with open(opened(self.path), "rb") as file:
                file.seek(about.header_offset)
                name, extra = _LOCAL.unpack(file.read(_LOCAL.size))
                file.seek(name + extra, os.SEEK_CUR)
                content = _unpack(
                    file.read(about.compress_size), about.compress_type, about.file_size
                )
            if len(content) != about.file_size or zlib.crc32(content) != about.CRC:
                raise EOFError("its content is not as it was written")
        except _BROKEN as error:
            raise DataError(f"{where} is damaged ({str(error)[:80]}): get it again") from error
        return content


def _unpack(content: bytes, packing: int, size: int) -> bytes:
    """Return the content of a file in a zip archive, of at most one byte more than `size`."""
    if packing == _STORED:
        return content
    if packing == _DEFLATED:
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(content, size + 1)
    if packing != _ZSTANDARD:
        raise ValueError(f"packed in a way that is not read, number {packing}")
    from io import BytesIO

    from zstandard import ZstdDecompressor, ZstdError

    try:
        with ZstdDecompressor().stream_reader(BytesIO(content)) as reader:
            return reader.read(size + 1)
    except ZstdError as error:
        raise EOFError(str(error)) from error
