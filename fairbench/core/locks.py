"""Locks between processes, on a file: exclusive, or shared by several processes.

The system frees a lock when its process ends, however it ends. The holder of an exclusive lock
writes its name into the file, updates the file's time every few seconds to show that it is alive,
and removes the file on release; a process that waited for the removed file takes the new one. A
process that waits says for whom, and gives up on a holder that shows no sign of life: one that was
stopped, or whose machine is gone. Where a file system has no locks, a warning says so once, and the
command goes on without them.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from fairbench.core.errors import UserError, warn
from fairbench.core.files import token
from fairbench.core.formats import visible
from fairbench.core.safe_open import (
    StrangeFileError,
    entry,
    guard,
    make_folder,
    names_in,
    opened,
    read_text,
    remove,
)

_NONE = {errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP}
_BUSY = {errno.EAGAIN, errno.EACCES}
_PAUSE, _LONGEST_PAUSE = 0.02, 0.1  # seconds between two attempts
_SIGN = 15.0  # seconds between two signs of life
SILENCE = 600.0  # seconds without a sign of life, after which nobody waits for a holder any longer
_FIRST, _AGAIN = 10.0, 60.0  # seconds after which a command says for whom it waits
_PATIENCE = 600.0  # seconds that a command waits while garbage is collected
_FOLDER, _COMMAND = "folder.lock", "command-"
_WHO = "process "  # begins what a lock says of who holds it


class BusyError(Exception):
    """A lock that another process holds; the message says which, as far as it is known."""


@contextlib.contextmanager
def locked(
    path: Path, *, shared: bool = False, seconds: float | None = None, silence: float = SILENCE
) -> Iterator[None]:
    """Hold a lock while the block runs.

    Parameters
    ----------
    path : the lock file; it is created here and deleted on release.
    shared : whether others may hold the lock at the same time, if theirs is shared too.
    seconds : how long to wait; None waits until the holder releases the lock or counts as dead.
    silence : after how many seconds without a sign of life a holder counts as dead.

    Raises
    ------
    BusyError : another process holds it.
    OSError : the file cannot be made.
    """
    handle = _locked_handle(path, shared, _Wait(path, seconds, silence))
    try:
        if not shared:
            _note(handle)
            _alive.add(handle)
        yield
    finally:
        _alive.discard(handle)
        _free(handle, path, shared)


@dataclass
class _Wait:
    """A wait for a lock that another process holds.

    Attributes
    ----------
    path, seconds, silence : the parameters of :func:`locked`.
    began : when the wait began; this and the next two are times of ``time.monotonic``.
    told : when it was last printed for whom the command waits.
    heard : when the holder last showed a sign of life.
    sign : the time of the lock file at that sign, in nanoseconds.
    """

    path: Path
    seconds: float | None
    silence: float
    began: float = field(default_factory=time.monotonic)
    told: float = field(default_factory=lambda: time.monotonic() + _FIRST - _AGAIN)
    heard: float = field(default_factory=time.monotonic)
    sign: int = 0

    def pause(self) -> None:
        """Wait a moment, unless the wait has lasted long enough.

        Raises
        ------
        BusyError : the time is over, or the holder is dead; the message says who holds the lock.
        """
        now = time.monotonic()
        if (sign := _modified_at(self.path)) != self.sign:
            self.sign = sign
            self.heard = now
        if self.seconds is not None and now - self.began >= self.seconds:
            raise BusyError(holder(self.path))
        if self.seconds is None and now - self.heard >= self.silence:
            silent = f"which has shown no sign of life for {(now - self.heard) / 60:.1g} minutes"
            raise BusyError(f"{holder(self.path)}, {silent}")
        if now - self.told >= _AGAIN:
            self.told = now
            print(visible(f"waiting for {holder(self.path)}"), file=sys.stderr, flush=True)
        time.sleep(min(_LONGEST_PAUSE, _PAUSE + (now - self.began) / 100))


def _modified_at(path: Path) -> int:
    """Return when a file was last changed, in nanoseconds; 0 if it is not there."""
    about = entry(path)
    return about.st_mtime_ns if about else 0


class _SignsOfLife:
    """A thread that shows that this process is alive: it updates the times of the held locks."""

    def __init__(self) -> None:
        self._held: set[int] = set()
        self._guard = threading.Lock()
        self._thread: threading.Thread | None = None

    def add(self, handle: int) -> None:
        """Start showing that this handle is held; a forked process starts its own thread."""
        with self._guard:
            self._held.add(handle)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._show, daemon=True)
                self._thread.start()

    def discard(self, handle: int) -> None:
        """Stop showing that this handle is held."""
        with self._guard:
            self._held.discard(handle)

    def _show(self) -> None:
        """Update the times of all held locks every few seconds, for ever."""
        while True:
            time.sleep(_SIGN)
            with self._guard:
                for handle in self._held:
                    with contextlib.suppress(OSError):
                        os.utime(handle)


_alive = _SignsOfLife()


def _locked_handle(path: Path, shared: bool, wait: _Wait) -> int:
    """Open the file of a lock and lock it, waiting as long as `wait` allows; return its handle."""
    while True:
        handle = _opened(path)
        try:
            while not _take(handle, path, shared=shared):
                wait.pause()
            if _is(handle, path):
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # its last holder has removed the file: take the new one


def _opened(path: Path) -> int:
    """Open a lock file, creating it and its folder; one of another user is opened for reading."""
    try:
        handle = opened(path, os.O_RDWR | os.O_CREAT)
    except FileNotFoundError:
        make_folder(path.parent)
        handle = opened(path, os.O_RDWR | os.O_CREAT)
    except PermissionError:
        handle = opened(path)  # which is enough to lock it
    if not _is_ours(handle):
        os.close(handle)
        raise StrangeFileError(path, "it is no lock of fairbench: remove it, or rename it")
    return handle


_LARGEST = 4096  # bytes of a lock


def _is_ours(handle: int) -> bool:
    """Say whether an open file is empty or a lock that this module has written."""
    size = os.fstat(handle).st_size
    return not size or (size <= _LARGEST and os.pread(handle, len(_WHO), 0) == _WHO.encode())


def _take(handle: int, path: Path, *, shared: bool) -> bool:
    """Try to lock an open file; return False only if another process holds the lock.

    Where the file system has no locks, there is a warning, and the lock counts as taken.
    """
    try:
        import fcntl

        fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _BUSY:
            return False
        if error.errno not in _NONE:
            raise
        _warn_of_no_locks(path.parent)
    except ImportError:
        _warn_of_no_locks(path.parent)
    return True


def _warn_of_no_locks(folder: Path) -> None:
    warn(f"the file system of {folder} has no locks: give it one command at a time")


def _is(handle: int, path: Path) -> bool:
    """Say whether an open file is still the one of this name."""
    about = entry(path)
    return about is not None and os.path.samestat(os.fstat(handle), about)


def _note(handle: int) -> None:
    """Write into a lock file which process holds it, and by which command."""
    command = " ".join([Path(sys.argv[0]).name, *sys.argv[1:]])[:200]
    who = f"{_WHO}{os.getpid()} on {os.uname().nodename}, since {time.strftime('%d %b %H:%M:%S')}"
    with contextlib.suppress(OSError):  # a full disk: it is only for people
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{who}: {command}".encode(errors="backslashreplace"), 0)


def _free(handle: int, path: Path, shared: bool) -> None:
    """Free a lock, and remove its file unless others still share it."""
    try:
        with contextlib.suppress(OSError):
            if (not shared or _take(handle, path, shared=False)) and _is(handle, path):
                remove(path)
    finally:
        os.close(handle)


def holder(path: Path) -> str:
    """Return who holds an exclusive lock, as its file says; else "another process"."""
    try:
        return read_text(path, _LARGEST) or "another process"
    except OSError:
        return "another process"


def held(path: Path) -> bool:
    """Say whether a process holds a lock; a lock file that nobody holds is removed.

    Killed processes leave such files. A file that is no lock of this project is left as it is.
    """
    try:
        handle = opened(path, os.O_RDWR)
    except (FileNotFoundError, StrangeFileError):
        return False
    except PermissionError:  # another user's lock, of which nothing else can be known
        return True
    if not _is_ours(handle):  # no lock of this project
        os.close(handle)
        return False
    if not _take(handle, path, shared=False):
        os.close(handle)
        return True
    _free(handle, path, shared=False)
    return False


@contextlib.contextmanager
def using(folder: Path, *, make: bool = True) -> Iterator[None]:
    """Use a results folder while the block runs: its garbage is not collected meanwhile.

    Lock files that killed commands have left are removed.

    Parameters
    ----------
    folder : the results folder.
    make : whether to create the folder if it is not there.

    Raises
    ------
    UserError : garbage is being collected, for ten minutes by now; or its locks are no folder.
    """
    guard(folder)
    locks = folder / "locks"
    if not make and not folder.is_dir():
        yield
        return
    with contextlib.ExitStack() as stack:
        # A reader of another user's results may not write there, and goes on without a lock.
        with contextlib.suppress(OSError):
            try:
                stack.enter_context(locked(locks / _FOLDER, shared=True, seconds=_PATIENCE))
            except BusyError as error:
                raise UserError(f"{folder} is held by {error}: try again when it is done") from None
            except StrangeFileError as error:
                raise UserError(_strange(error)) from error
            stack.enter_context(locked(locks / f"{_COMMAND}{token()}.lock"))
            working(folder)
        yield


def _strange(error: StrangeFileError) -> str:
    return f"{error.filename}: {error.strerror}: nothing of this folder is used before it is gone"


def working(folder: Path) -> bool:
    """Say whether a process is making something in a results folder, such as a cell."""
    busy = [path.name for path in _locks(folder) if path.name != _FOLDER and held(path)]
    return not all(name.startswith(_COMMAND) for name in busy)


def _locks(folder: Path) -> list[Path]:
    """Return the locks of a results folder."""
    locks = folder / "locks"
    return [locks / name for name in names_in(locks)[0] if name.endswith(".lock")]


@contextlib.contextmanager
def alone(folder: Path, seconds: float) -> Iterator[None]:
    """Use a results folder alone while the block runs; other commands wait until it is over.

    Parameters
    ----------
    folder : the results folder.
    seconds : how long to wait for commands that use it.

    Raises
    ------
    UserError : other commands still use it after so many seconds; the message names them. Or its
        ``locks`` is no folder.
    """
    guard(folder)
    locks = folder / "locks"
    if not folder.is_dir():
        yield
        return
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(locked(locks / _FOLDER, seconds=seconds))
        except StrangeFileError as error:
            raise UserError(_strange(error)) from error
        except BusyError as error:
            commands = [path for path in _locks(folder) if path.name.startswith(_COMMAND)]
            users = [holder(path) for path in commands if held(path)]
            holders = "; ".join(sorted(users)[:5]) or str(error)
            more = f" and {len(users) - 5} more" if len(users) > 5 else ""
            raise UserError(
                f"{folder} is in use by {holders}{more}: try again when they are done, or with "
                f"wait={2 * max(seconds, 30):.0f}"
            ) from None
        yield
