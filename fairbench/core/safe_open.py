"""The way into folders that a stranger may have filled: nothing leads out of them, or has no end.

Below a folder that was named by :func:`guard`, no link is followed: a file is opened, made, renamed
or removed from its folder's own descriptor, which was opened from its folder's, down from the
guarded one. What is opened is a regular file, never a pipe, a socket or a device, and no more of it
is read than its kind may have; what has a second name is not written. Of a path in no guarded
folder, whoever named it answers for its folder; the file itself must be a regular one all the same.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from fairbench.core.errors import warn

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


def opened(path: Path, flags: int = os.O_RDONLY, mode: int = 0o666) -> int:
    """Open a regular file, and return its descriptor; no wait for a pipe's other end.

    Raises
    ------
    StrangeFileError : it is none, or a link leads to it; or it is to be written, and has a second
        name, by which it may be somebody else's.
    OSError : it cannot be opened.
    """
    with within(path.parent) as folder:
        try:
            handle = os.open(path.name, flags | _FILE, mode, dir_fd=folder)
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
            raise StrangeFileError(
                path, f"it has {about.st_size:,} bytes, and at most {most:,} are read"
            )
        if private and about.st_mode & _OTHERS:
            warn(f"{path} may be read by others: chmod 600 it, unless you share it")
        return file.read(about.st_size)


def read_text(path: Path, most: int = RECORD) -> str:
    """Return the text of a regular file of at most so many bytes; what is no UTF-8 as a mark."""
    return read_bytes(path, most).decode("utf-8", errors="replace")


def check_folder(folder: Path) -> None:
    """Refuse a folder that a link leads to, below a guarded one; one that is not there is fine.

    Raises
    ------
    StrangeFileError : it is one.
    """
    with contextlib.suppress(FileNotFoundError), within(folder):
        pass


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
    files: list[str] = []
    folders: list[str] = []
    other_names: list[str] = []
    with (
        contextlib.suppress(FileNotFoundError, NotADirectoryError),
        within(folder) as handle,
        os.scandir(handle) as entries,
    ):
        for entry in entries:
            if entry.is_file(follow_symlinks=False):
                files.append(entry.name)
            elif entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
            else:
                other_names.append(entry.name)
    return sorted(files), sorted(folders), sorted(other_names)


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
    if entry(folder) is None:
        return True
    if not holds_only(folder, ours):
        return False
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
    try:
        handle = os.open(start, _FOLDER)
    except FileNotFoundError:
        if make is None:
            raise
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
        return StrangeFileError(
            path, f"it is a link to {os.readlink(path)!r}, which is not followed"
        )
    if error.errno == errno.ENXIO:  # a socket, or a pipe that nobody reads
        return StrangeFileError(path, "it is no regular file")
    error.filename = str(path)
    return error
