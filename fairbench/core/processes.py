"""How a process ends, and how it keeps others out of the files that it changes.

From top to bottom: workers that end with the command that began them (:class:`Worker`,
:func:`_end_with`), work that is given up when it takes too long (:func:`in_time`), what is said of
an exception (:func:`failure`), locks between processes, on a file (:func:`locked`), and states that
many processes change under one (:class:`JsonFile`).

The system frees a lock when its process ends, however it ends. The holder of an exclusive lock
writes its name into the file, updates the file's time every few seconds to show that it is alive,
and removes the file on release; a process that waited for the removed file takes the new one. A
process that waits says for whom, and gives up on a holder that shows no sign of life: one that was
stopped, or whose machine is gone. Where a file system has no locks, a warning says so once, and the
command goes on without them.

A state is plain JSON in one file: sealed, locked while it changes, and whole after any kill.
Several people may share one, by a link too. Whoever finds it held is told so after two seconds, and
after half a minute by whom, with nothing changed: a holder that was stopped keeps nobody waiting.
"""

from __future__ import annotations

import errno
import fcntl
import multiprocessing
import os
import pickle
import re
import signal
import sys
import threading
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires
from importlib.util import find_spec
from math import inf, isinf
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from fairbench.core import files
from fairbench.core.errors import OpenQuestions, UserError, note, refused, warn
from fairbench.core.files import StrangeFileError, opened
from fairbench.core.memory import MEMORY
from fairbench.core.text import quoted, said, visible

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

_DATE = "SOURCE_DATE_EPOCH"


def source_date() -> int | None:
    """Return the time that ``SOURCE_DATE_EPOCH`` sets, in seconds since 1970; None if it sets none.

    Libraries read it too, some as they are imported, and fail on what is no number.

    Raises
    ------
    UserError : it is no whole number of at most eleven digits.
    """
    text = os.environ.get(_DATE)
    if text is None:
        return None
    if not re.fullmatch(r"[0-9]{1,11}", text):
        raise UserError(said("core", "no_date", variable=_DATE, text=quoted(text)))
    return int(text)


class Worker:
    """A process that calls one function after the other, and ends with this one at the latest.

    Attributes
    ----------
    pipe : takes a function and its argument, and gives back what it returns.
    """

    def __init__(self) -> None:
        """Start the process; it waits for what is sent to it."""
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        self._process = context.Process(target=_serve, args=(other, os.getpid()), daemon=True)
        self._process.start()
        other.close()

    def kill(self) -> None:
        """End the process at once."""
        self._process.kill()
        self._process.join()
        self.pipe.close()


def _serve(pipe: Connection, parent: int) -> None:
    """Run a worker process: call each function that comes with its argument, send the result back.

    The worker watches its parent before it imports anything that takes time. Ctrl-C is left to the
    parent.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _end_with(parent)
    with suppress(EOFError, OSError):
        while True:
            function, argument = pipe.recv()
            pipe.send(function(argument))


def call_with(process: int, pickled: bytes) -> Any:
    """Return what a pickled function returns; end with a process that this one descends from.

    That process is watched before the function and its arguments are unpickled, since their imports
    take time.

    Parameters
    ----------
    process : the id of the process to watch.
    pickled : the function and the tuple of its arguments.
    """
    _end_with(process)
    function, arguments = pickle.loads(pickled)
    return function(*arguments)


def _end_with(process: int) -> None:
    """End this process when one that it descends from has ended, even if that was killed.

    It would otherwise finish its task, or wait for more, beside the workers of the next command.
    Linux ends a process at once with its own parent. On other systems, and for ancestors further
    up, the process looks every now and then.
    """
    if os.getppid() == process:
        import ctypes

        with suppress(OSError, AttributeError):  # where it is not Linux
            ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    threading.Thread(target=_end_after, args=(process,), daemon=True).start()


_PDEATHSIG = 1  # of prctl(2): the signal that a process gets when its parent ends


def _end_after(process: int) -> None:
    while process in _ancestors():
        time.sleep(0.5)
    os._exit(1)  # at once: what is not finished is not kept, and locks free themselves


_GENERATIONS = 4  # submitit puts a process between a command and its job


def _ancestors() -> list[int]:
    """Return the parent of this process, its parent and so on; without /proc, the first alone."""
    parents = [os.getppid()]
    with suppress(OSError):
        while parents[-1] and len(parents) < _GENERATIONS:
            about = Path(f"/proc/{parents[-1]}/stat").read_text()
            parents.append(int(about.rpartition(")")[2].split()[1]))
    return parents


T = TypeVar("T")
_LOOKED_S = 0.05  # seconds after which it is looked again how much memory it takes


class GivenUpError(Exception):
    """Work that took too long, or too much memory; the message says how much."""


class Progress:
    """The function that work calls after every step; it stops work that was given up."""

    def __init__(self) -> None:
        self.moved, self.over = time.monotonic(), False

    def __call__(self) -> None:
        """Note that a step is done.

        Raises
        ------
        GivenUpError : nobody waits for the rest.
        """
        if self.over:
            raise GivenUpError
        self.moved = time.monotonic()


def in_time(
    work: Callable[[Progress], T],
    *,
    idle_s: float,
    total_s: float,
    before_s: float = 0.0,
    most_bytes: float = inf,
) -> T:
    """Return what `work` returns, unless it takes too long or too much memory.

    The work is done on a thread. If it is given up, the thread ends with its current step, and the
    process does not wait for that.

    Parameters
    ----------
    work : the function to call; it calls its argument after every step.
    idle_s : after how many seconds without a step the work is given up.
    total_s : after how many seconds in all it is given up.
    before_s : how many seconds the preparation took; they count too, but at most half of the time.
    most_bytes : by how many bytes the process may grow meanwhile.

    Raises
    ------
    GivenUpError : the work was given up. Errors of the work itself are raised as they are.
    """
    progress, outcome = Progress(), Future[T]()

    def carry_out() -> None:
        try:
            outcome.set_result(work(progress))
        except BaseException as error:
            outcome.set_exception(error)

    start = time.monotonic() - min(before_s, total_s / 2)
    progress.moved -= min(before_s, idle_s / 2)
    thread = threading.Thread(target=carry_out, daemon=True)
    size = _resident_bytes()
    thread.start()
    while thread.is_alive():
        now = time.monotonic()
        left = min(progress.moved + idle_s, start + total_s) - now
        progress.over = left <= 0 or _resident_bytes() - size > most_bytes
        if progress.over and left > 0:
            raise GivenUpError(f"it takes more than {most_bytes / 2**30:.1f} GB of memory")
        if progress.over and now - progress.moved >= idle_s:
            raise GivenUpError(f"it did not get on for {now - progress.moved:.0f} s")
        if progress.over:
            raise GivenUpError(f"it was not done after {now - start:.0f} s")
        thread.join(left if isinf(most_bytes) else min(left, _LOOKED_S))
    return outcome.result()


def _resident_bytes() -> int:
    """Return how much memory this process takes; 0 where the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_bytes().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


_OWN = "fairbench-harness"
_CHECKOUT = Path(__file__).resolve().parents[2] / "requirements.lock"
# Distributions whose modules have another name.
_MODULES = {
    "docx": "python-docx",
    "hydra": "hydra-core",
    "resvg_py": "resvg-py",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
}


def _missing_package(error: BaseException) -> str:
    """Return which package that this project can use is missing, and what installs it.

    The command is that of this very installation: of a checkout, or of the package.
    """
    missing = (error.name or "") if isinstance(error, ModuleNotFoundError) else ""
    name = missing.partition(".")[0]
    extra = _extra_of(_MODULES.get(name, name))
    if not extra or (name != missing and find_spec(name)):
        return ""
    command = f"pip install '{_OWN}[{extra}]'"
    if _CHECKOUT.is_file():
        command = f"pip install '.[{extra}]'" if extra == name else "make setup"
    return f"the package {name} is not installed: {command}"


def _extra_of(distribution: str) -> str:
    """Return the first extra of this package that needs a distribution; "" if none does."""
    with suppress(PackageNotFoundError):
        for text in requires(_OWN) or []:
            match = re.match(r"([\w.-]++).*extra == ['\"]([\w-]+)", text)
            if match and match[1].lower() == distribution.lower():
                return match[2]
    return ""


def _out_of_memory(error: BaseException) -> str:
    """Say in a line that memory ran out, where that is the reason of an error; "" if it is not."""
    if isinstance(error, ImportError) and not isinstance(error, ModuleNotFoundError):
        reason = (str(error) or type(error).__name__).splitlines()[0]
        return f"a package could not be loaded, for lack of memory or else: {reason[:200]}"
    lacking = isinstance(error, OSError) and error.errno == errno.ENOMEM
    if not (lacking or isinstance(error, MemoryError)):
        return ""
    setting = os.environ.get(MEMORY)
    allowed = f"{MEMORY}={setting} allows no more (GB)" if setting else "the system gives no more"
    return f"this takes more memory than there is: {allowed}"


_LONGEST = 2000  # signs of a reason, as long as a refusal that lists names may be


def failure(error: BaseException) -> tuple[str, str]:
    """Return why something failed in a line, and a traceback where the line does not say it all.

    Components may raise anything: ``sys.exit(0)`` in one is a failure as any other exception is.
    Callers let a KeyboardInterrupt pass, as it is the user's.

    Returns
    -------
    The reason, and the traceback; the latter is empty where the user can mend what is wrong.
    """
    if isinstance(error, OpenQuestions):
        return str(error), ""
    if isinstance(error, UserError):
        return _cut(str(error)), ""
    reason = _missing_package(error) or _out_of_memory(error)
    if not reason and isinstance(error, OSError) and error.strerror:
        reason = refused(error)  # a disk that is full or not to be had
    trace = "" if reason else visible("".join(traceback.format_exception(error)), lines=True)
    first_line = (reason or f"{type(error).__name__}: {error}").partition("\n")[0]
    return _cut(first_line), trace.rstrip("\n")


def _cut(text: str) -> str:
    """Return a reason whose invisible signs are shown as codes, cut before that if it is long."""
    return visible(text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ...", lines=True)


# Locks between processes, on a file, and states that many processes change under one.

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


@contextmanager
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
    handle = _locked_handle(path, shared, _pauses(path, seconds, silence))
    over = threading.Event()
    showing = threading.Thread(target=_show_life, args=(handle, over), daemon=True)
    try:
        if not shared:
            _note(handle)
            showing.start()
        yield
    finally:
        over.set()
        if showing.ident:
            showing.join()  # before another file can have the handle
        _free(handle, path, shared)


def _show_life(handle: int, over: threading.Event) -> None:
    """Update the time of a held lock every few seconds, to show that this process is alive."""
    while not over.wait(_SIGN):
        with suppress(OSError):
            os.utime(handle)


def _pauses(path: Path, seconds: float | None, silence: float) -> Iterator[None]:
    """Wait a moment at each step, until a wait for a lock has lasted long enough.

    The parameters are those of :func:`locked`.

    Raises
    ------
    BusyError : the time is over, or the holder is dead; the message says who holds the lock.
    """
    began = heard = time.monotonic()
    told = began + _FIRST - _AGAIN  # when it was last printed for whom the command waits
    sign = 0  # the time of the lock file when its holder last showed a sign of life
    while True:
        now = time.monotonic()
        about = files.entry(path)
        if about and about.st_mtime_ns != sign:
            sign, heard = about.st_mtime_ns, now
        if seconds is not None and now - began >= seconds:
            raise BusyError(_holder(path))
        if seconds is None and now - heard >= silence:
            silent = f"which has shown no sign of life for {(now - heard) / 60:.1g} minutes"
            raise BusyError(f"{_holder(path)}, {silent}")
        if now - told >= _AGAIN:
            told = now
            print(visible(f"waiting for {_holder(path)}"), file=sys.stderr, flush=True)
        time.sleep(min(_LONGEST_PAUSE, _PAUSE + (now - began) / 100))
        yield


def _locked_handle(path: Path, shared: bool, pauses: Iterator[None]) -> int:
    """Open the file of a lock and lock it, as long as there are `pauses`; return its handle."""
    while True:
        handle = _opened(path)
        try:
            while not _take(handle, path, shared=shared):
                next(pauses)
            if _is(handle, path):
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # its last holder has removed the file: take the new one


def _opened(path: Path) -> int:
    """Open a lock file, creating it and its folder; one of another user is opened for reading."""
    files.make_folder(path.parent)
    try:
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
        fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _BUSY:
            return False
        if error.errno not in _NONE:
            raise
        warn(f"the file system of {path.parent} has no locks: give it one command at a time")
    return True


def _is(handle: int, path: Path) -> bool:
    """Say whether an open file is still the one of this name."""
    about = files.entry(path)
    return about is not None and os.path.samestat(os.fstat(handle), about)


def _note(handle: int) -> None:
    """Write into a lock file which process holds it, and by which command."""
    command = " ".join([Path(sys.argv[0]).name, *sys.argv[1:]])[:200]
    who = f"{_WHO}{os.getpid()} on {os.uname().nodename}, since {time.strftime('%d %b %H:%M:%S')}"
    with suppress(OSError):  # a full disk: it is only for people
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{who}: {command}".encode(errors="backslashreplace"), 0)


def _free(handle: int, path: Path, shared: bool) -> None:
    """Free a lock, and remove its file unless others still share it."""
    try:
        with suppress(OSError):
            if (not shared or _take(handle, path, shared=False)) and _is(handle, path):
                files.remove(path)
    finally:
        os.close(handle)


def _holder(path: Path) -> str:
    """Return who holds an exclusive lock, as its file says; else "another process"."""
    try:
        return files.read_text(path, _LARGEST) or "another process"
    except OSError:
        return "another process"


def _held(path: Path) -> bool:
    """Say whether a process holds a lock; a lock file that nobody holds is removed.

    Killed processes leave such files. A file that is no lock of this project is left as it is.
    """
    try:
        handle = opened(path, os.O_RDWR)
    except (FileNotFoundError, StrangeFileError):
        return False
    except PermissionError:  # another user's lock, of which nothing else can be known
        return True
    if (ours := _is_ours(handle)) and _take(handle, path, shared=False):
        _free(handle, path, shared=False)
        return False
    os.close(handle)
    return ours


@contextmanager
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
    files.guard(folder)
    locks = folder / "locks"
    if not make and not folder.is_dir():
        yield
        return
    with ExitStack() as stack:
        # A reader of another user's results may not write there, and goes on without a lock.
        with suppress(OSError):
            try:
                stack.enter_context(locked(locks / _FOLDER, shared=True, seconds=_PATIENCE))
            except BusyError as error:
                raise UserError(f"{folder} is held by {error}: try again when it is done") from None
            except StrangeFileError as error:
                raise UserError(_strange(error)) from error
            stack.enter_context(locked(locks / f"{_COMMAND}{files.token()}.lock"))
            working(folder)
        yield


def _strange(error: StrangeFileError) -> str:
    return f"{error.filename}: {error.strerror}: nothing of this folder is used before it is gone"


def working(folder: Path) -> bool:
    """Say whether a process is making something in a results folder, such as a cell."""
    busy = [path.name for path in _locks(folder) if path.name != _FOLDER and _held(path)]
    return not all(name.startswith(_COMMAND) for name in busy)


def _locks(folder: Path) -> list[Path]:
    """Return the locks of a results folder."""
    locks = folder / "locks"
    return [locks / name for name in files.names_in(locks)[0] if name.endswith(".lock")]


@contextmanager
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
    files.guard(folder)
    locks = folder / "locks"
    if not folder.is_dir():
        yield
        return
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(locks / _FOLDER, seconds=seconds))
        except StrangeFileError as error:
            raise UserError(_strange(error)) from error
        except BusyError as error:
            commands = [path for path in _locks(folder) if path.name.startswith(_COMMAND)]
            users = [_holder(path) for path in commands if _held(path)]
            holders = "; ".join(sorted(users)[:5]) or str(error)
            holders += f" and {len(users) - 5} more" if len(users) > 5 else ""
            told = {"holders": holders, "seconds": 2 * max(seconds, 30)}
            raise UserError(said("core", "folder_held", folder=folder, **told)) from None
        yield


State = TypeVar("State")
_QUIET, _LOUD = 2.0, 28.0  # seconds that one waits for a held state without a word, and with


@dataclass(frozen=True)
class JsonFile(ABC, Generic[State]):
    """A file that any number of processes may read and change; each sees the others' changes."""

    path: Path
    of: ClassVar[str]  # whose state it is, such as ``an audit``
    start: ClassVar[str]  # the words that make one
    otherwise: ClassVar[str]  # what to do about a damaged one but to put a copy of it back

    @property
    def place(self) -> Path:
        """The file itself, where `path` is a link to one that several people share.

        Raises
        ------
        UserError : the link leads back to itself.
        """
        try:
            return self.path.resolve()
        except (OSError, RuntimeError) as error:
            raise UserError(said("core", "link_to_itself", state=self)) from error

    @property
    def folder(self) -> Path:
        """The folder of the file itself, from which a state names other files."""
        return self.place.parent if self.path.is_symlink() else self.path.parent

    def path_in_folder(self, path: Path) -> Path:
        """Return the path of another file that the state names, if it lies in the state's folder.

        Raises
        ------
        UserError : it lies elsewhere, where a stranger's state could name any file.
        """
        try:
            is_within = path.resolve().is_relative_to(self.folder.resolve())
        except (OSError, ValueError, RuntimeError):  # a byte of value 0, a link to itself
            is_within = False
        if not is_within:
            raise UserError(said("core", "outside", state=self, path=visible(str(path))))
        return path

    def exists(self) -> bool:
        """Say whether there is a file, or anything else, of this name."""
        return os.path.lexists(self.place)

    @abstractmethod
    def parse(self, content: bytes) -> State:
        """Return the state that a file's content describes."""

    @abstractmethod
    def values(self, state: State) -> Mapping[str, Any]:
        """Return a state as plain values."""

    def read(self) -> State:
        """Return the state.

        Raises
        ------
        UserError : no such file, or not one that this version wrote.
        """
        try:
            return self.parse(files.read_bytes(self.place, files.TEXT, private=True))
        except FileNotFoundError as error:
            raise UserError(said("core", "no_state", state=self)) from error
        except files.DamagedError as error:
            raise UserError(said("core", "damaged_state", state=self, error=error)) from error
        except files.UNREADABLE as error:
            reason = f"no {error}" if isinstance(error, KeyError) else str(error)
            reason = error.strerror or reason if isinstance(error, OSError) else reason
            raise UserError(f"{self.path} is not the state of {self.of}: {reason}") from error

    def change(self, change: Callable[[State], State]) -> State:
        """Read, change and write the state while nobody else can.

        What `change` raises leaves the file as it was. Once this returns, the new state is on the
        disk. The lock is the system's, and so is freed even by a kill.
        """
        with self._lock():
            before = self.read()
            after = change(before)
            if after != before:
                self._write(self._text(after))
            return after

    def swap(self, before: State | None, after: State) -> bool:
        """Write a state unless it has changed; return whether it had not.

        What takes long is done in between, while others may use the state, and done anew if they
        have changed it.

        Parameters
        ----------
        before : the state as it was read, or None where there was none.
        """
        with self._lock():
            now = self.read() if self.exists() else None
            if self._text(now) != self._text(before):
                return False
            if (text := self._text(after)) != self._text(now):
                self._write(text)
            return True

    def create(self, state: State) -> State:
        """Write the first state.

        Raises
        ------
        UserError : another process was first.
        """
        if not self.swap(None, state):
            raise UserError(said("core", "started", state=self))
        return state

    def _text(self, state: State | None) -> str:
        return "" if state is None else files.sealed_json(self.values(state), indent=1)

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """Hold the file's lock while the block runs, waiting half a minute for other processes."""
        lock = self.place.with_name(f".{self.place.name}.lock")
        with ExitStack() as stack:
            try:
                try:
                    stack.enter_context(locked(lock, seconds=_QUIET))
                except BusyError as error:
                    note(f"{self.path} is held by {error}: waiting for it")
                    stack.enter_context(locked(lock, seconds=_LOUD))
            except BusyError as error:
                raise UserError(said("core", "state_held", state=self, error=error)) from error
            except OSError as error:
                raise UserError(f"{self.path} cannot be written: {refused(error)}") from error
            yield

    def _write(self, text: str) -> None:
        """Write a state's text in place of the one before, with its owner and its permissions."""
        # Whoever holds the lock is alone: what others left half written was left by a kill.
        try:
            for name in files.names_in(self.place.parent)[0]:
                if files.half_of(name) == self.place.name:
                    files.remove(self.place.with_name(name))
            about = self.place.stat() if self.exists() else None
            mode = about.st_mode & 0o777 if about else 0o600
            if about and about.st_nlink > 1:
                warn(said("core", "hard_links", state=self))
            files.write_text(self.place, text, mode=mode)
            if about:
                self._share_as(about)
        except OSError as error:
            raise UserError(f"nothing was changed: {refused(error)}") from error

    def _share_as(self, before: os.stat_result) -> None:
        """Give a new file the owner, group and mode of the one before it, as far as is allowed."""
        for owner, group in ((-1, before.st_gid), (before.st_uid, -1)):
            with suppress(PermissionError):
                os.chown(self.place, owner, group)
        if (self.place.stat().st_mode ^ before.st_mode) & 0o777:
            with open(opened(self.place), "rb") as file:
                os.fchmod(file.fileno(), before.st_mode & 0o777)
