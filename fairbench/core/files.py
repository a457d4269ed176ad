"""Files that are whole or not there, and that show whether they are as they were written.

Each is written under a temporary name, which no other process on any machine uses, and renamed into
place; the folder is then synchronised, so that the name outlives a loss of power. A sealed file has
the sha256 of its own bytes in it, taken with zeros in its place: a change of any bit is found. What
is written often, and shows itself whether it is whole, is synchronised once, after it was renamed.
A file that would unfold to more memory than a machine has to spare is refused before it is read.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import secrets
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from fairbench.core.errors import DataError, UserError, warn
from fairbench.core.formats import is_number, visible
from fairbench.core.safe_open import StrangeFileError, is_file, opened, read_bytes, rename, within

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

    from fairbench.core.parquet_pages import ColumnSize, Part

_SEAL = "seal"
_MARK = b"fairbench-sha256:"
_BLANK = b"0" * 64


class DamagedError(ValueError):
    """A file that is not as it was written."""


# What reading a file raises that is not as it was written, or whose content has another shape.
UNREADABLE = (
    OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError,
    NotImplementedError, RecursionError,
)  # fmt: skip


@contextlib.contextmanager
def atomic(
    path: Path, *, mode: int = 0o666, lasting: bool = True, shows: bool = False
) -> Iterator[BinaryIO]:
    """Yield a new file beside `path`, which is renamed into place when the block succeeds.

    Parameters
    ----------
    path : the file to write.
    mode : the permissions of the file.
    lasting : whether the file must outlive a loss of power; a file that the same command would
        make again need not.
    shows : whether a reader can see from the content that it is complete. The file is then
        synchronised after it is renamed, together with its name (file systems with a journal
        write both at once), which takes half the time of synchronising the content and the folder.
        A loss of power between the two leaves a damaged file, which is made again.

    Raises
    ------
    OSError : it cannot be written; it names `path`, and nothing of it is left.
    """
    name, half = path.name, f".{path.name}.{token()}.tmp"
    with naming(path), within(path.parent, make=0o777) as folder:
        handle = os.open(
            half, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode, dir_fd=folder
        )
        try:
            with open(handle, "wb") as file:
                yield file
                file.flush()
                if lasting and not shows:
                    _to_disk(handle)
                os.replace(half, name, src_dir_fd=folder, dst_dir_fd=folder)
                half = name  # of which nothing stays that a disk refuses late
                if lasting and shows:
                    _to_disk(handle)
        except BaseException:
            with contextlib.suppress(OSError):  # no right to
                os.unlink(half, dir_fd=folder)
            raise
        if lasting and not shows:
            with contextlib.suppress(OSError):  # of folders, some file systems cannot
                _to_disk(folder)


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """Put the name of the file that was to be written, not a temporary one, into an `OSError`."""
    try:
        yield
    except StrangeFileError:  # which names what is in the way
        raise
    except OSError as error:
        error.filename = str(path)
        raise


def token() -> str:
    """Return a word that is unique to this call, across processes, containers and machines."""
    host = re.sub(r"[^A-Za-z0-9-]", "-", os.uname().nodename)[:20]
    return f"{host}.{os.getpid()}.{secrets.token_hex(4)}"


# Names that nobody else gives: of files that killed processes leave, and of what was set aside.
_TOKEN = r"[A-Za-z0-9-]{1,20}\.[0-9]+\.[0-9a-f]{8}"
_HALF = re.compile(rf"\.(.+)\.{_TOKEN}\.tmp", re.DOTALL)
_ASIDE = re.compile(r".+\.damaged-[0-9]{8}-[0-9]{6}-[0-9a-f]{4}", re.DOTALL)


def half_of(name: str) -> str:
    """Return the final name of a half-written file; empty if the name is not that of one."""
    parts = _HALF.fullmatch(name)
    return parts[1] if parts else ""


def is_aside(name: str) -> bool:
    """Say whether a name is that of a damaged file or folder that was set aside."""
    return _ASIDE.fullmatch(name) is not None


def _to_disk(handle: int) -> None:
    os.fsync(handle)


def write_bytes(
    path: Path, content: bytes, *, mode: int = 0o666, lasting: bool = True, shows: bool = False
) -> None:
    """Write a file, whole or not at all, as :func:`atomic`; `mode` says who may read it."""
    with atomic(path, mode=mode, lasting=lasting, shows=shows) as file:
        file.write(content)


def write_files(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Write files of a folder, each whole or not at all, and synchronise all when they are named.

    After a loss of power in between some may be damaged: what is written after them is to say what
    their content is.
    """
    for name, content in contents.items():
        write_bytes(folder / name, content, lasting=False)
    with naming(folder):
        for name in contents:
            handle = opened(folder / name)
            try:
                _to_disk(handle)
            finally:
                os.close(handle)


def write_text(path: Path, text: str, *, mode: int = 0o666, lasting: bool = True) -> None:
    """Write a text file, whole or not at all; bytes of a file's name that are no text as codes."""
    write_bytes(path, text.encode(errors="backslashreplace"), mode=mode, lasting=lasting)


def sha256(content: bytes) -> str:
    """Return the checksum of a file's content."""
    return hashlib.sha256(content).hexdigest()


def file_sha256(path: Path) -> str:
    """Return the checksum of a file, whatever its size.

    Raises
    ------
    UserError : it cannot be read.
    """
    if not path.is_file():
        raise UserError(f"{path} is no regular file")
    try:
        with path.open("rb") as handle:
            return hashlib.file_digest(handle, "sha256").hexdigest()
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from error


def sealed(content: bytes) -> bytes:
    """Fill in the seal of a content that has a blank one."""
    at = content.rindex(_MARK + _BLANK) + len(_MARK)
    return content[:at] + _sum(content, at) + content[at + len(_BLANK) :]


def is_sealed(content: bytes) -> bool:
    """Say whether a content has a seal, and is what was sealed."""
    at = content.rfind(_MARK) + len(_MARK)
    return at >= len(_MARK) and content[at : at + len(_BLANK)] == _sum(content, at)


def _sum(content: bytes, at: int) -> bytes:
    view = memoryview(content)
    total = hashlib.sha256(view[:at])
    total.update(_BLANK)
    total.update(view[at + len(_BLANK) :])
    return total.hexdigest().encode()


_LARGE_JSON = 1 << 24  # bytes of a text from which on its values are counted
_VALUE_BYTES = 120  # bytes of a value with its place in a list


def check_json(content: bytes) -> None:
    """Refuse a text in JSON whose values would take more memory than is allowed.

    Raises
    ------
    UserError : they would; see :func:`check_memory`.
    """
    if len(content) > _LARGE_JSON:
        values = sum(map(content.count, (b",", b"[", b"{", b":")))
        check_memory(3 * len(content) + values * _VALUE_BYTES, "a text in JSON")


def sealed_json(values: Mapping[str, Any], *, indent: int | None = None) -> str:
    """Return a sealed text of plain values."""
    text = json.dumps(
        {**values, _SEAL: (_MARK + _BLANK).decode()}, indent=indent, ensure_ascii=False
    )
    return sealed(f"{text}\n".encode(errors="backslashreplace")).decode()


def write_cache(path: Path, values: Mapping[str, Any], *, lasting: bool = True) -> None:
    """Write a sealed text that is made again at any time; who may not write does without.

    Others call their files ``index.json``, too: one that was never sealed here stays, which is
    said in a line.
    """
    with contextlib.suppress(OSError):
        if is_file(path):
            before = read_bytes(path, sys.maxsize)
            if before.strip(b"\0") and _MARK not in before:
                warn(f"{path} is no file of fairbench's, and stays: move it away, to be faster")
                return
        write_text(path, sealed_json(values), lasting=lasting)


def unsealed_json(content: bytes) -> dict[str, Any]:
    """Return the values of a sealed text.

    Raises
    ------
    DamagedError : it is not what was sealed.
    UserError : its values take more memory than is allowed.
    """
    check_json(content)
    if not is_sealed(content):
        raise DamagedError("the content is not what was written")
    try:
        values = json.loads(content)
    except RecursionError as error:
        raise DamagedError("its values are nested too deeply") from error
    if not isinstance(values, dict) or values.pop(_SEAL, None) is None:
        raise DamagedError("the content is not what is written here")
    if any(mark in content for mark in (b"\\ud", b"\\uD", b"\xed")):  # may be half a sign
        try:
            json.dumps(values, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise DamagedError("a text has half a sign") from error
    return values


def parquet_bytes(table: pa.Table) -> bytes:
    """Return a table as the Parquet file that it is stored as.

    Tables are small, many, and read whole: without statistics, with dictionaries of texts alone,
    and packed by LZ4, they take a third of the time, and no more room, than by pyarrow's defaults.
    """
    import pyarrow as pa
    from pyarrow import parquet

    numeric = (pa.types.is_floating, pa.types.is_integer, pa.types.is_boolean)
    texts = [
        column.name for column in table.schema if not any(kind(column.type) for kind in numeric)
    ]
    buffer = pa.BufferOutputStream()
    parquet.write_table(
        table, buffer, compression="lz4", use_dictionary=texts or False, write_statistics=False
    )
    content: bytes = buffer.getvalue().to_pybytes()
    return content


def write_table(path: Path, table: pa.Table, *, mode: int = 0o666) -> None:
    """Write a sealed Parquet file, whole or not at all; `mode` says who may read it."""
    metadata = {**(table.schema.metadata or {}), _SEAL.encode(): _MARK + _BLANK}
    content = sealed(parquet_bytes(table.replace_schema_metadata(metadata)))
    write_bytes(path, content, mode=mode, shows=True)


_MANY = 1 << 22  # bytes of a file from which on its columns are unpacked side by side


def read_table(path: Path, *, private: bool = False) -> pa.Table:
    """Return the table of a sealed Parquet file; `private` ones are for their owner alone.

    Raises
    ------
    DamagedError : it is not what was sealed.
    OSError : it cannot be read.
    """
    # The whole file is read first: what changes it meanwhile cannot be seen.
    content = read_bytes(path, most_memory(), private=private)
    if not is_sealed(content):
        raise DamagedError("the content is not what was written")
    return read_parquet(content, path.name)


def read_parquet(
    content: bytes,
    name: str,
    columns: Collection[str] | None = None,
    dictionaries: Collection[str] = (),
) -> pa.Table:
    """Return the table of a Parquet file's content; `name` is that of messages.

    Parameters
    ----------
    columns : those that are read, of those that there are; all by default.
    dictionaries : columns of texts that are read as dictionaries, of those that there are.

    Raises
    ------
    UserError : it takes more memory than is allowed.
    """
    import pyarrow as pa

    def part(first: int, size: int) -> bytes:
        return content[first : first + size]

    source = pa.BufferReader(content)
    return table_within(source, part, name, columns, dictionaries)


def table_within(
    source: pa.NativeFile,
    part: Part,
    name: str,
    columns: Collection[str] | None = None,
    dictionaries: Collection[str] = (),
) -> pa.Table:
    """Return the table of a Parquet file, as :func:`read_parquet`; `part` returns bytes of it."""
    from pyarrow.parquet import ParquetFile

    with ParquetFile(source) as file:  # half the time of pq.read_table
        names = file.schema_arrow.names
        only = [name for name in names if name in columns] if columns is not None else None
        texts = check_parquet(file, part, name, columns=only)
        threads = source.size() >= _MANY
        if not texts and not dictionaries:
            return file.read(only, use_threads=threads)
        late = [name for name, size in texts.items() if name in dictionaries and not size.prefixed]
        kept = [
            name for name in names if name in dictionaries and (name in late or name not in texts)
        ]
        _check_texts(source, {text: texts[text] for text in texts if text not in late}, name)
        with ParquetFile(source, metadata=file.metadata, read_dictionary=kept) as again:
            table = again.read(only, use_threads=threads)
        chunks = (chunk for text in late for chunk in table[text].chunks)
        check_memory(sum(map(written_out, chunks)), name)
        return table


def read_schema(path: Path) -> pa.Schema:
    """Return the columns of a Parquet file; only its footer is read.

    Raises
    ------
    OSError, ValueError : it cannot be read, or is none.
    """
    from pyarrow import parquet

    with open(opened(path), "rb") as file:
        return parquet.read_schema(file)


_DECODED = 1 << 28  # bytes of texts that are decoded at once at most
_STEPS = 100_000  # in which a column is decoded at most


def _check_texts(source: pa.NativeFile, texts: Mapping[str, ColumnSize], name: str) -> None:
    """Refuse columns of texts that take more than is allowed where each is written out.

    They are decoded in steps, and no further than to what is allowed: as dictionaries, except for
    texts told by those before, of which Arrow makes none.
    """
    from pyarrow.parquet import ParquetFile

    total = 0
    for text, size in texts.items():
        rows = 1 << 16
        if size.prefixed:
            rows = min(rows, max(_DECODED // max(size.longest, 1), 1))
            if size.values > _STEPS * rows:
                check_memory(size.values * size.longest, name)
        source.seek(0)
        with ParquetFile(source, read_dictionary=[] if size.prefixed else [text]) as file:
            for batch in file.iter_batches(rows, columns=[text], use_threads=False):
                column = batch.column(0)
                total += column.nbytes if size.prefixed else written_out(column)
                check_memory(total, name)


def is_text(field: pa.Field | pa.ChunkedArray) -> bool:
    """Say whether a column has texts, or dictionaries of them."""
    from pyarrow import types

    kind = field.type.value_type if types.is_dictionary(field.type) else field.type
    kind = getattr(kind, "storage_type", kind)
    return str(kind).removeprefix("large_") in ("string", "binary", "string_view", "binary_view")


def written_out(column: pa.DictionaryArray) -> int:
    """Return how many bytes a column of dictionaries takes where each text is written out."""
    from pyarrow import compute

    lengths = compute.binary_length(column.dictionary)
    return compute.sum(lengths.take(column.indices.drop_null())).as_py() or 0


def set_aside(path: Path, then: str) -> None:
    """Rename a damaged file or folder, and say so in a line; `then` says what comes of it."""
    name = f"{path.name}.damaged-{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"
    with contextlib.suppress(FileNotFoundError):  # another process has set it aside
        rename(path, name)
        said = f"{path} is not as it was written: set aside as {name}; {then}"
        print(visible(said), file=sys.stderr)


MEMORY = "FAIRBENCH_MAX_MEMORY"


def check_memory(needed: float, file: str) -> None:
    """Refuse a file that would take more memory than a quarter of the machine's.

    A few megabytes can be made to unfold to any size, so this is asked before a file is unpacked.

    Parameters
    ----------
    needed : bytes that its content will take, or more.

    Raises
    ------
    UserError : it is more than is allowed, or the variable that says what is allowed is no number.
    """
    allowed = most_memory()
    if needed > allowed:
        raise UserError(
            f"{file} would take about {needed / _GB:.1f} GB of memory, and {allowed / _GB:.1f} GB "
            f"are allowed: name fewer columns, or set {MEMORY}={ceil(needed / _GB)} (GB) if you "
            "trust the file"
        )


# Bytes that a field of text takes beside its letters, and a column beside its fields.
FIELD, COLUMN = 24, 20_000


def check_parquet(
    file: ParquetFile,
    part: Part,
    name: str,
    *,
    columns: Collection[str] | None = None,
    groups: Sequence[int] | None = None,
) -> dict[str, ColumnSize]:
    """Refuse a Parquet file whose columns would take more memory than is allowed.

    The numbers of rows and bytes in the footer are not believed; sizes are bounded by what the
    decoder relies on (:mod:`fairbench.core.parquet_pages`).

    Parameters
    ----------
    file : the open file.
    part : a function that returns bytes of the file.
    name : what messages call the file.
    columns : the columns that are read; all by default.
    groups : the row groups that are read; all by default.

    Returns
    -------
    dict of ColumnSize
        The columns of texts that may still take more than is allowed, if every text is as long as
        all together.

    Raises
    ------
    UserError : they would; see :func:`check_memory`.
    """
    schema, about = file.schema_arrow, file.metadata
    fields = [field for field in schema if columns is None or field.name in columns]
    if lists := next((field for field in fields if _is_nested(field)), None):
        raise DataError(
            f"{name}: column '{lists.name}' is of type {lists.type}, not a value in each row"
        )
    every = about.num_columns == len(schema) == len(fields)
    places = (
        [[place] for place in range(len(fields))]
        if every
        else _places(file, [field.name for field in fields])
    )
    groups = range(about.num_row_groups) if groups is None else groups
    widths = [_width(field) for field in fields]
    from fairbench.core.parquet_pages import page_bounds, page_sizes

    sizes = page_bounds(file, groups, places)
    if _total(sizes, widths) > most_memory() or _long(fields, sizes):
        sizes = page_sizes(file, part, groups, places)
    check_memory(_total(sizes, widths) + about.num_columns * COLUMN, name)
    return _long(fields, sizes)


def _places(file: ParquetFile, names: Sequence[str]) -> list[list[int]]:
    """Return, for each name, the positions of the file's columns, or parts of columns, of it."""
    places: dict[str, list[int]] = {}
    for place in range(file.metadata.num_columns):
        places.setdefault(file.schema.column(place).path, []).append(place)
    return [places.get(name, []) for name in names]


def _total(sizes: Sequence[ColumnSize], widths: Sequence[int]) -> int:
    pairs = zip(sizes, widths, strict=True)
    return sum(size.unfolded + size.values * width for size, width in pairs)


def _long(fields: Sequence[pa.Field], sizes: Sequence[ColumnSize]) -> dict[str, ColumnSize]:
    """Return the columns that take too much memory if each text is as long as all together."""
    texts = {f.name: size for f, size in zip(fields, sizes, strict=True) if is_text(f)}
    share = most_memory() / max(len(texts), 1)
    return {name: size for name, size in texts.items() if size.values * size.longest > share}


def _is_nested(field: pa.Field) -> bool:
    from pyarrow import types

    kind = getattr(field.type, "storage_type", field.type)
    return bool(types.is_nested(kind))


def _width(field: pa.Field) -> int:
    """Return the bytes that a field takes, without the letters of a text."""
    kind = getattr(field.type, "storage_type", field.type)
    width: int = getattr(kind, "byte_width", 0) if "fixed_size_binary" in str(kind) else 0
    return FIELD + width


_GB = 2.0**30


def most_memory() -> int:
    """Return how many bytes a file may take: by the environment (in GB), or a quarter of all."""
    setting = os.environ.get(MEMORY, "")
    if setting:
        if not is_number(setting) or not 0 < float(setting) < float("inf"):
            raise UserError(f"{MEMORY} is '{setting}'; it must be a number of GB above 0")
        return int(float(setting) * _GB)
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4
