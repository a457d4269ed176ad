"""Files of strangers and of ours: opened where nothing leads out, written whole or not at all.

The way into folders comes first. Below a folder that was named by :func:`guard`, no link is
followed: a file is opened, made, renamed or removed from its folder's own descriptor, which was
opened from its folder's, down from the guarded one. What is opened is a regular file, never a pipe,
a socket or a device, and no more of it is read than its kind may have; what has a second name is
not written. Of a path in no guarded folder, whoever named it answers for its folder; the file
itself must be a regular one all the same.

Then files that are whole or not there (:func:`atomic`). Each is written under a temporary name,
which no other process on any machine uses, and renamed into place; the folder is then synchronised,
so that the name outlives a loss of power. A sealed file has the sha256 of its own bytes in it,
taken with zeros in its place: a change of any bit is found. What is written often, and shows itself
whether it is whole, is synchronised once, after it was renamed.

Last Parquet. What would take more memory than a machine has to spare is refused by `memory`.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import secrets
import stat
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from fairbench.core.errors import UserError, warn
from fairbench.core.memory import check_json, check_memory, check_parquet, most_memory, written_out
from fairbench.core.text import said, visible

if TYPE_CHECKING:
    import pyarrow as pa

# Most bytes that are read of a kind of file; what is written here has a hundredth of it at most.
RECORD, TEXT = 1 << 24, 1 << 28
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_OTHERS = 0o077  # the rights of all but a file's owner
_guarded: set[str] = set()


class StrangeFileError(OSError):
    """What is no file or folder of ours: a link, a pipe, a device, or far too large."""

    def __init__(self, path: str | Path, reason: str) -> None:
        super().__init__(errno.ELOOP, reason, str(path))


def guard(folder: Path) -> None:
    """Follow no link below a folder from now on; the folder itself may be one."""
    _guarded.add(os.path.abspath(folder))


def opened(path: Path, flags: int = os.O_RDONLY) -> int:
    """Open a regular file, and return its descriptor; no wait for a pipe's other end.

    Raises
    ------
    StrangeFileError : it is none, or a link leads to it; or it is to be written, and has a second
        name, by which it may be somebody else's.
    OSError : it cannot be opened.
    """
    with within(path.parent) as folder:
        try:
            handle = os.open(path.name, flags | _FILE, 0o666, dir_fd=folder)
        except OSError as error:
            raise _refusal(error, path) from None
        except ValueError as error:  # a byte of value 0, which no name has
            raise StrangeFileError(path, str(error)) from None
    about = os.fstat(handle)
    if stat.S_ISREG(about.st_mode) and (about.st_nlink <= 1 or not flags & os.O_ACCMODE):
        return handle
    os.close(handle)
    if not stat.S_ISREG(about.st_mode):
        raise StrangeFileError(path, "it is no regular file")
    raise StrangeFileError(path, "it has a second name (a hard link): put a copy in its place")


def read_bytes(path: Path, most: int = RECORD, *, private: bool = False) -> bytes:
    """Return the content of a regular file of at most so many bytes.

    Parameters
    ----------
    private : whether it is for its owner alone. That others may read it is said in a line.

    Raises
    ------
    StrangeFileError : it is none, or is larger.
    OSError : it cannot be read.
    """
    with open(opened(path), "rb") as file:
        about = os.fstat(file.fileno())
        if about.st_size > most:
            told = said("core", "too_large", size=about.st_size, most=most)
            raise StrangeFileError(path, told)
        if private and about.st_mode & _OTHERS:
            warn(f"{path} may be read by others: chmod 600 it, unless you share it")
        return file.read(about.st_size)


def read_text(path: Path, most: int = RECORD) -> str:
    """Return the text of a regular file of at most so many bytes; what is no UTF-8 as a mark."""
    return read_bytes(path, most).decode("utf-8", errors="replace")


def make_folder(folder: Path, mode: int = 0o777) -> None:
    """Make a folder, and those that it lies in, unless it is there; `mode` says who may read it.

    Raises
    ------
    StrangeFileError : a link leads to it.
    OSError : it cannot be made.
    """
    with within(folder, make=mode):
        pass


def make_private(folder: Path) -> None:
    """Make a folder that its owner alone may enter; one that is there is closed to others."""
    with within(folder, make=0o700) as handle:
        mode = stat.S_IMODE(os.fstat(handle).st_mode)
        if mode & _OTHERS:
            os.fchmod(handle, mode & 0o700)


def names_in(folder: Path) -> tuple[list[str], list[str], list[str]]:
    """Return the names of a folder's regular files, of its folders, and of all else, in order.

    All else are links, pipes, sockets and devices. Nothing of a folder that is not there.

    Raises
    ------
    StrangeFileError : a link leads to the folder.
    """
    found: tuple[list[str], list[str], list[str]] = [], [], []
    with (
        contextlib.suppress(FileNotFoundError, NotADirectoryError),
        within(folder) as handle,
        os.scandir(handle) as entries,
    ):
        for entry in entries:
            is_file = entry.is_file(follow_symlinks=False)
            is_folder = entry.is_dir(follow_symlinks=False)
            found[0 if is_file else 1 if is_folder else 2].append(entry.name)
    files, folders, others = map(sorted, found)
    return files, folders, others


def is_file(path: Path) -> bool:
    """Say whether the path is a regular file, without a link on the way."""
    about = entry(path)
    return about is not None and stat.S_ISREG(about.st_mode)


def is_folder(path: Path) -> bool:
    """Say whether the path is a folder, without a link on the way."""
    about = entry(path)
    return about is not None and stat.S_ISDIR(about.st_mode)


def entry(path: Path) -> os.stat_result | None:
    """Return the status of a file, for a link that of the link itself; None if it is not there."""
    try:
        with within(path.parent) as folder:
            return os.stat(path.name, dir_fd=folder, follow_symlinks=False)
    except (OSError, ValueError):  # no name has a byte of value 0
        return None


def remove(path: Path) -> None:
    """Remove a regular file, unless it is gone.

    Raises
    ------
    StrangeFileError : it is none: fairbench writes no other kind.
    OSError : it cannot be removed.
    """
    with contextlib.suppress(FileNotFoundError), within(path.parent) as folder:
        about = os.stat(path.name, dir_fd=folder, follow_symlinks=False)
        if not stat.S_ISREG(about.st_mode):
            raise StrangeFileError(path, "it is no regular file")
        os.unlink(path.name, dir_fd=folder)


def rename(path: Path, name: str) -> None:
    """Give a file or folder another name in its own folder; a file of that name is replaced.

    Raises
    ------
    OSError : there is none, a folder of that name holds anything, or it cannot be renamed.
    """
    with within(path.parent) as folder:
        os.replace(path.name, name, src_dir_fd=folder, dst_dir_fd=folder)


def holds_only(folder: Path, ours: Callable[[str], bool]) -> bool:
    """Say whether a folder exists and holds nothing but regular files of such names."""
    if not is_folder(folder):
        return False
    files, *rest = names_in(folder)
    return not any(rest) and all(map(ours, files))


def remove_folder(folder: Path, ours: Callable[[str], bool]) -> bool:
    """Remove a folder if it holds only regular files of ours; return whether it is gone.

    Parameters
    ----------
    ours : says by its name whether a file is one that fairbench writes there.
    """
    if holds_only(folder, ours):
        for name in names_in(folder)[0]:
            remove(folder / name)
        with contextlib.suppress(OSError), within(folder.parent) as above:
            os.rmdir(folder.name, dir_fd=above)
    return entry(folder) is None


@contextlib.contextmanager
def within(folder: Path, *, make: int | None = None) -> Iterator[int]:
    """Yield the descriptor of a folder, reached from the guarded one that it lies in.

    Parameters
    ----------
    make : the mode of a folder that is made where there is none; those that it lies in are, too.

    Raises
    ------
    StrangeFileError : a link leads to it.
    OSError : it is not there, or cannot be made.
    """
    start, inner_names = _guard_of(os.path.abspath(folder))
    if make is not None and not os.path.exists(start):
        Path(start).mkdir(0o777 if inner_names else make, parents=True, exist_ok=True)
    handle = os.open(start, _FOLDER)
    try:
        place = start
        for depth, name in enumerate(inner_names, 1):
            place = f"{place}/{name}"
            mode = make if depth == len(inner_names) or make is None else 0o777
            inner = _inner(name, handle, place, mode)
            os.close(handle)
            handle = inner
        yield handle
    finally:
        os.close(handle)


def _inner(name: str, above: int, place: str, make: int | None) -> int:
    """Open a folder in a folder, which is made where there is none and `make` says its mode."""
    try:
        return os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=above)
    except FileNotFoundError as error:
        if make is None:
            raise _refusal(error, place) from None
    except OSError as error:
        raise _refusal(error, place) from None
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, make, dir_fd=above)
    return _inner(name, above, place, None)


def _guard_of(folder: str) -> tuple[str, list[str]]:
    """Return the outermost guarded folder that a folder lies in, and the names from there on."""
    end = folder.find("/", 1)
    while end > 0:
        if folder[:end] in _guarded:
            return folder[:end], folder[end + 1 :].split("/")
        end = folder.find("/", end + 1)
    return folder, []


def _refusal(error: OSError, path: str | Path) -> OSError:
    """Return the error of a path that could not be opened; it says so if the path is a link."""
    if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EMLINK) and os.path.islink(path):
        return StrangeFileError(path, said("core", "is_link", target=os.readlink(path)))
    if error.errno == errno.ENXIO:  # a socket, or a pipe that nobody reads
        return StrangeFileError(path, "it is no regular file")
    error.filename = str(path)
    return error


_SEAL = "seal"
_MARK = b"fairbench-sha256:"
_BLANK = b"0" * 64
_to_disk = os.fsync


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
            half, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode, dir_fd=folder
        )
        try:
            with open(handle, "w+b") as file:
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


def write_bytes(
    path: Path, content: bytes, *, mode: int = 0o666, lasting: bool = True, shows: bool = False
) -> None:
    """Write a file, whole or not at all, as :func:`atomic`; `mode` says who may read it."""
    with atomic(path, mode=mode, lasting=lasting, shows=shows) as file:
        file.write(content)


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
    return buffer.getvalue().to_pybytes()


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
    return table_within(content, path.name)


def table_within(
    content: bytes | pa.NativeFile,
    name: str,
    columns: Collection[str] | None = None,
    dictionaries: Collection[str] = (),
) -> pa.Table:
    """Return the table of a Parquet file, or of its content; `name` is that of messages.

    Parameters
    ----------
    columns : those that are read, of those that there are; all by default.
    dictionaries : columns of texts that are read as dictionaries, of those that there are.

    Raises
    ------
    UserError : it takes more memory than is allowed.
    """
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

    source = pa.BufferReader(content) if isinstance(content, bytes) else content
    with ParquetFile(source) as file:  # half the time of pq.read_table
        fields = [field for field in file.schema_arrow if columns is None or field.name in columns]
        long = check_parquet(file, name, columns, None)
        only = None if columns is None else [field.name for field in fields]
        kept = [field.name for field in fields if field.name in {*long, *dictionaries}]
        threads = source.size() >= _MANY
        if not kept:
            return file.read(only, use_threads=threads)
        with ParquetFile(source, metadata=file.metadata, read_dictionary=kept) as again:
            table = again.read(only, use_threads=threads)
    of_texts = [table[text] for text in long if pa.types.is_dictionary(table[text].type)]
    check_memory(sum(written_out(chunk) for column in of_texts for chunk in column.chunks), name)
    for place, field in enumerate(fields):
        if field.name in long and field.name not in dictionaries:
            table = table.set_column(place, field, table[place].cast(field.type))
    return table


def set_aside(path: Path, then: str) -> None:
    """Rename a damaged file or folder, and say so in a line; `then` says what comes of it."""
    name = f"{path.name}.damaged-{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"
    with contextlib.suppress(FileNotFoundError):  # another process has set it aside
        rename(path, name)
        text = f"{path} is not as it was written: set aside as {name}; {then}"
        print(visible(text), file=sys.stderr)
