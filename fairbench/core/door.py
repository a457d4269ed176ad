"""The way into folders that a stranger may have filled: nothing leads out of them, or has no end.

Below a folder that was named by :func:`guard`, no link is followed: a file is opened from its
folder's own descriptor, which was opened from its folder's, down from the guarded one. What is
opened is a regular file, never a pipe, a socket or a device, and no more of it is read than its
kind may have. Of a path in no guarded folder, whoever named it answers for its folder; the file
itself must be a regular one all the same.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

# Most bytes that are read of a kind of file; what is written here has a hundredth of it at most.
RECORD, TEXT = 1 << 24, 1 << 28
_NO_LINK = os.O_NOFOLLOW | os.O_CLOEXEC
_guarded: set[str] = set()


class StrangeFileError(OSError):
    """What is no file or folder of ours: a link, a pipe, a device, or far too large."""

    def __init__(self, path: str | Path, reason: str) -> None:
        super().__init__(errno.ELOOP, reason, str(path))


def guard(folder: Path) -> None:
    """Follow no link below a folder from now on; the folder itself may be one."""
    _guarded.add(os.path.abspath(folder))


def opened(path: Path, flags: int = os.O_RDONLY, mode: int = 0o666) -> int:
    """Open a regular file, and return its descriptor; no wait for a pipe's other end.

    Raises
    ------
    StrangeFileError : it is none, or a link leads to it.
    OSError : it cannot be opened.
    """
    with _within(path.parent) as folder:
        try:
            handle = os.open(path.name, flags | _NO_LINK | os.O_NONBLOCK, mode, dir_fd=folder)
        except OSError as error:
            raise _refusal(error, path) from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise StrangeFileError(path, "it is no regular file")
    return handle


def read_bytes(path: Path, most: int = RECORD) -> bytes:
    """Return the content of a regular file of at most so many bytes.

    Raises
    ------
    StrangeFileError : it is none, or is larger.
    OSError : it cannot be read.
    """
    with open(opened(path), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise StrangeFileError(path, f"it has {size:,} bytes, and at most {most:,} are read")
        return file.read(size)


def read_text(path: Path, most: int = RECORD) -> str:
    """Return the text of a regular file of at most so many bytes; what is no UTF-8 as a mark."""
    return read_bytes(path, most).decode("utf-8", errors="replace")


def check_folder(folder: Path) -> None:
    """Refuse a folder that a link leads to, below a guarded one; one that is not there is fine.

    Raises
    ------
    StrangeFileError : it is one.
    """
    with contextlib.suppress(FileNotFoundError), _within(folder):
        pass


def make_folder(folder: Path, mode: int = 0o777) -> None:
    """Make a folder, and those that it lies in, unless it is there; `mode` says who may read it.

    Raises
    ------
    StrangeFileError : a link leads to it.
    OSError : it cannot be made.
    """
    try:
        with _within(folder):
            return
    except FileNotFoundError:
        folder.mkdir(mode, parents=True, exist_ok=True)


def names_in(folder: Path) -> tuple[list[str], list[str]]:
    """Return the names of the regular files, and of the folders, in a folder, in order.

    Links, pipes, sockets and devices are left out; nothing of a folder that is not there.

    Raises
    ------
    StrangeFileError : a link leads to the folder.
    """
    files, folders = [], []
    with (
        contextlib.suppress(FileNotFoundError, NotADirectoryError),
        _within(folder) as handle,
        os.scandir(handle) as entries,
    ):
        for entry in entries:
            if entry.is_file(follow_symlinks=False):
                files.append(entry.name)
            elif entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
    return sorted(files), sorted(folders)


def is_file(path: Path) -> bool:
    """Say whether a regular file is there, to which no link leads."""
    try:
        with _within(path.parent) as folder:
            return stat.S_ISREG(os.stat(path.name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False


@contextlib.contextmanager
def _within(folder: Path) -> Iterator[int]:
    """Yield the descriptor of a folder, reached from the guarded one that it lies in."""
    start, rest = _guard_of(os.path.abspath(folder))
    handle = os.open(start, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        place = start
        for name in rest:
            place = os.path.join(place, name)
            try:
                inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | _NO_LINK, dir_fd=handle)
            except OSError as error:
                raise _refusal(error, place) from None
            os.close(handle)
            handle = inner
        yield handle
    finally:
        os.close(handle)


def _guard_of(folder: str) -> tuple[str, list[str]]:
    """Return the outermost guarded folder that a folder lies in, and the names from there on."""
    names = Path(folder).parts
    for depth in range(1, len(names)):
        above = Path(*names[:depth])
        if str(above) in _guarded:
            return str(above), [*names[depth:]]
    return folder, []


def _refusal(error: OSError, path: str | Path) -> OSError:
    """Return the error of a path that was not opened, which says so where it is a link."""
    if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EMLINK) and os.path.islink(path):
        return StrangeFileError(
            path, f"it is a link to {os.readlink(path)!r}, which is not followed"
        )
    if error.errno == errno.ENXIO:  # a socket, or a pipe that nobody reads
        return StrangeFileError(path, "it is no regular file")
    error.filename = str(path)
    return error
