"""A process: the memory it takes, whom it works for, how long it may take, and why it failed.

From top to bottom: limits of memory (:func:`limit_memory`), workers that end with the command that
began them (:func:`serve`, :func:`end_with`), work that is given up when it takes too long
(:func:`in_time`), and what is said of an exception (:func:`failure`).
"""

from __future__ import annotations

import errno
import os
import pickle
import re
import resource
import signal
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, requires
from math import inf, isinf
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from fairbench.core.errors import UserError, refused
from fairbench.core.files import MEMORY, most_memory
from fairbench.core.text import quoted, visible

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

_OTHERS = 208 << 20  # bytes that the interpreter and imported packages take, beside their code
_LEAST = 768 << 20  # bytes of address space with which packages can be imported
_ARROW_POOL = "ARROW_DEFAULT_MEMORY_POOL"  # which Arrow reads as it is imported

# Of glibc's malloc.h: the free memory from which some is given back, and the size of arrays that
# get pages of their own.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_KEPT, _LARGE = 2**30, 2**25  # bytes; glibc takes no larger second one


def keep_freed_memory() -> bool:
    """Let the process keep memory that is freed, up to 1 GiB; return whether it will.

    Arrays of a million rows come and go. If each is given back to the system and asked for anew,
    the system fills every page of it with zeros, which takes longer than much that is computed with
    it. Only glibc can be asked (mallopt(3)); elsewhere nothing changes but the time.
    """
    import ctypes  # slow to import: listing runs does without

    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, TypeError, AttributeError):  # no such function: macOS, musl
        return False
    return bool(mallopt(_TRIM_THRESHOLD, _KEPT) and mallopt(_MMAP_THRESHOLD, _LARGE))


def check_address_space() -> None:
    """Refuse to begin with less address space than importing takes, and have Arrow spare it.

    OpenBLAS, for one, asks again and again for what it is not given, and so waits for ever.

    Raises
    ------
    UserError : it is less, as by ``ulimit -v``.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft == resource.RLIM_INFINITY:
        return
    # Arrow's own allocator reserves a GB where it can, and leaves the others too little.
    os.environ.setdefault(_ARROW_POOL, "system")
    if soft < _LEAST:
        raise UserError(
            f"the address space is limited to {soft >> 20} MB (ulimit -v), and fairbench needs "
            f"{_LEAST >> 20} MB at least"
        )


def limit_memory() -> None:
    """Limit the memory of the process to what the environment allows, if that sets a limit.

    Files are measured before they are read. This limit also covers what such a measure overlooks,
    and what is computed from a file: whatever needs more memory fails, with a message of one line.

    Raises
    ------
    UserError : the variable is no number of GB.
    """
    if not os.environ.get(MEMORY):
        return
    most = most_memory() + _OTHERS
    os.environ.setdefault(_ARROW_POOL, "system")  # as where the address space is limited
    with suppress(OSError, ValueError):  # macOS does not heed it
        soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
        limits = [limit for limit in (soft, hard, most) if limit != resource.RLIM_INFINITY]
        resource.setrlimit(resource.RLIMIT_DATA, (min(limits), hard))


def out_of_memory(error: BaseException) -> str:
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
        raise UserError(
            f"{_DATE} is {quoted(text)}; it must be a whole number of seconds since 1970: unset it"
        )
    return int(text)


def serve(pipe: Connection, parent: int) -> None:
    """Run a worker process: call each function that comes with its argument, send the result back.

    The worker watches its parent before it imports anything that takes time. Ctrl-C is left to the
    parent.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with(parent)
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
    end_with(process)
    function, arguments = pickle.loads(pickled)
    return function(*arguments)


def end_with(process: int) -> None:
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
    size = resident_bytes()
    thread.start()
    while thread.is_alive():
        now = time.monotonic()
        left = min(progress.moved + idle_s, start + total_s) - now
        progress.over = left <= 0 or resident_bytes() - size > most_bytes
        if progress.over and left > 0:
            raise GivenUpError(f"it takes more than {most_bytes / 2**30:.1f} GB of memory")
        if progress.over and now - progress.moved >= idle_s:
            raise GivenUpError(f"it did not get on for {now - progress.moved:.0f} s")
        if progress.over:
            raise GivenUpError(f"it was not done after {now - start:.0f} s")
        thread.join(left if isinf(most_bytes) else min(left, _LOOKED_S))
    return outcome.result()


def resident_bytes() -> int:
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


def missing_package(error: ModuleNotFoundError) -> str:
    """Return which package is missing and what installs it; nothing if it is one of this project.

    The command is that of this very installation: of a checkout, or of the package.
    """
    name = (error.name or "").partition(".")[0]
    if name in ("", "fairbench"):
        return ""
    extra = _extra_of(_MODULES.get(name, name))
    command = f"pip install '{_OWN}[{extra}]'"
    if _CHECKOUT.is_file():
        command = f"pip install '.[{extra}]'" if extra == name else "make setup"
    return f"the package {name} is not installed: {command}"


def _extra_of(distribution: str) -> str:
    """Return the first extra of this package that needs a distribution; `benchmark` of none."""
    try:
        needed = requires(_OWN) or []
    except PackageNotFoundError:
        needed = []
    for text in needed:
        match = re.match(r"([\w.-]++).*extra == ['\"]([\w-]+)", text)
        if match and match[1].lower().replace("_", "-") == distribution.lower().replace("_", "-"):
            return match[2]
    return "benchmark"


_LONGEST = 2000  # signs of a reason, as long as a refusal that lists names may be
_LONGEST_LINE, _LINES = 400, 100  # of a traceback: signs of a line, lines of its beginning and end


def failure(error: BaseException) -> tuple[str, str]:
    """Return why something failed in a line, and a traceback where the line does not say it all.

    Components may raise anything: ``sys.exit(0)`` in one is a failure as any other exception is.
    Callers let a KeyboardInterrupt pass, as it is the user's.

    Returns
    -------
    The reason, and the traceback; the latter is empty where the user can mend what is wrong.
    """
    if isinstance(error, UserError):
        return _cut(_text(error), _LONGEST), ""
    if isinstance(error, ModuleNotFoundError) and (reason := missing_package(error)):
        return reason, ""
    if reason := out_of_memory(error):
        return reason, ""
    if isinstance(error, OSError) and error.strerror:  # a disk that is full or not to be had
        return _cut(refused(error), _LONGEST), ""
    first_line = f"{type(error).__name__}: {_text(error)}".partition("\n")[0]
    return _cut(first_line, _LONGEST), _trace(error)


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except (Exception, SystemExit) as other:
        return f"(its text raises {type(other).__name__})"


def _trace(error: BaseException) -> str:
    """Return a traceback, its lines and the middle of a long one cut."""
    lines = "".join(traceback.format_exception(error)).rstrip("\n").split("\n")
    if (left_out := len(lines) - 2 * _LINES) > 0:
        lines[_LINES:-_LINES] = [f"  ... {left_out} lines are left out ..."]
    return "\n".join(_cut(line, _LONGEST_LINE) for line in lines)


def _cut(text: str, most: int) -> str:
    """Return a text whose invisible signs are shown as codes, cut to so many signs before that."""
    return visible(text if len(text) <= most else f"{text[:most]} ...", lines=True)
