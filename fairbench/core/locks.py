"""Locks between processes: on a file, for one process or for several that only use something.

The system frees a lock when its process ends, however it ends. Whoever holds a lock alone writes
into the file who it is, and removes the file in the end; who waited for a removed file takes the
new one. Where a file system has no locks, that is said once, and the command goes on alone.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from fairbench.core.errors import UserError, warn
from fairbench.core.files import token

_NONE = {errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP}
_BUSY = {errno.EAGAIN, errno.EACCES}
_PAUSE = 0.05  # seconds between two attempts
_PATIENCE = 600.0  # seconds that a command waits while garbage is collected
_FOLDER, _COMMAND = "folder.lock", "command-"


class BusyError(Exception):
    """A lock that another process holds; the message says which, as far as it is known."""


@contextlib.contextmanager
def locked(path: Path, *, shared: bool = False, seconds: float | None = None) -> Iterator[None]:
    """Hold a lock, alone or, `shared`, beside others who share it.

    Parameters
    ----------
    path : of its file, which is made, and removed in the end.
    seconds : how long to wait for it; as long as it takes where there are none.

    Raises
    ------
    BusyError : another process holds it.
    OSError : the file cannot be made.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    until = None if seconds is None else time.monotonic() + seconds
    handle = _taken(path, shared, until)
    try:
        if not shared:
            _note(handle)
        yield
    finally:
        _free(handle, path, shared)


def _taken(path: Path, shared: bool, until: float | None) -> int:
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            while not _take(handle, path, shared=shared, wait=until is None):
                if time.monotonic() >= (until or 0.0):
                    raise BusyError(holder(path))
                time.sleep(_PAUSE)
            if _is(handle, path):
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # it was removed by who held it: take the new one


def _take(handle: int, path: Path, *, shared: bool, wait: bool = False) -> bool:
    """Try to lock an open file; return whether that was done, or cannot be done here at all."""
    try:
        import fcntl

        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        fcntl.flock(handle, kind | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        if error.errno in _BUSY:
            return False
        if error.errno not in _NONE:
            raise
        _without(path.parent)
    except ImportError:
        _without(path.parent)
    return True


def _without(folder: Path) -> None:
    warn(f"the file system of {folder} has no locks: give it one command at a time")


def _is(handle: int, path: Path) -> bool:
    """Say whether an open file is still the one of this name."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False


def _note(handle: int) -> None:
    command = " ".join([Path(sys.argv[0]).name, *sys.argv[1:]])[:200]
    with contextlib.suppress(OSError):  # a full disk: it is only for people
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"process {os.getpid()} on {os.uname().nodename}: {command}".encode(), 0)


def _free(handle: int, path: Path, shared: bool) -> None:
    """Free a lock, and remove its file unless others share it; a removed one is nobody's."""
    try:
        with contextlib.suppress(OSError):
            if (not shared or _take(handle, path, shared=False)) and _is(handle, path):
                path.unlink()
    finally:
        os.close(handle)


def holder(path: Path) -> str:
    """Return who holds a lock alone, as far as its file says."""
    try:
        return path.read_text(encoding="utf-8", errors="replace") or "another process"
    except OSError:
        return "another process"


def held(path: Path) -> bool:
    """Say whether a process holds a lock; the file of one that nobody holds is removed.

    That is what a killed process leaves.
    """
    try:
        handle = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    except PermissionError:  # somebody else's, of whom nothing is known
        return True
    if not _take(handle, path, shared=False):
        os.close(handle)
        return True
    _free(handle, path, shared=False)
    return False


@contextlib.contextmanager
def using(folder: Path, *, make: bool = True) -> Iterator[None]:
    """Use a results folder for the life of a command: no garbage of it is collected meanwhile.

    What killed commands left of their locks is removed. Unless to `make` it, a folder that is not
    there is left so.

    Raises
    ------
    UserError : garbage is being collected, for ten minutes by now.
    """
    locks = folder / "locks"
    if not make and not folder.is_dir():
        yield
        return
    with contextlib.ExitStack() as stack:
        # Who may not write there cannot lock it: a reader of somebody else's results.
        with contextlib.suppress(OSError):
            try:
                stack.enter_context(locked(locks / _FOLDER, shared=True, seconds=_PATIENCE))
            except BusyError as error:
                raise UserError(f"{folder} is held by {error}: try again when it is done") from None
            stack.enter_context(locked(locks / f"{_COMMAND}{token()}.lock"))
            working(folder)
        yield


def working(folder: Path) -> bool:
    """Say whether a process holds what it makes in a results folder, such as a cell."""
    names = [path for path in (folder / "locks").glob("*.lock") if path.name != _FOLDER]
    busy = [path.name for path in names if held(path)]
    return not all(name.startswith(_COMMAND) for name in busy)


@contextlib.contextmanager
def alone(folder: Path, seconds: float) -> Iterator[None]:
    """Have a results folder alone: no other command uses it, and those that want to wait.

    Raises
    ------
    UserError : others use it, and still do after so many seconds; they are named.
    """
    locks = folder / "locks"
    if not folder.is_dir():
        yield
        return
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(locked(locks / _FOLDER, seconds=seconds))
        except BusyError as error:
            users = [holder(path) for path in locks.glob(f"{_COMMAND}*.lock") if held(path)]
            named = "; ".join(sorted(users)[:5]) or str(error)
            more = f" and {len(users) - 5} more" if len(users) > 5 else ""
            raise UserError(
                f"{folder} is in use by {named}{more}: try again when they are done, or with "
                f"wait={2 * max(seconds, 30):.0f}"
            ) from None
        yield
