"""Work that ends: given up when it has not got on for a while, or has taken too long in all.

A server that sends a byte every few seconds answers every request in the end, and no time limit of
a request ever passes. Processes that work for another one end with it.
"""

from __future__ import annotations

import os
import pickle
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

T = TypeVar("T")


class GivenUpError(Exception):
    """Work that took too long; the message says how long."""


@dataclass
class Progress:
    """Is called by work whenever it has got on; ends work that was given up."""

    moved: float = field(default_factory=time.monotonic)
    over: bool = False

    def __call__(self) -> None:
        """Note that a step is done.

        Raises
        ------
        GivenUpError : nobody waits for the rest.
        """
        if self.over:
            raise GivenUpError
        self.moved = time.monotonic()


@dataclass
class _Outcome(Generic[T]):
    """What work returned, or raised."""

    value: T | None = None
    error: BaseException | None = None


def in_time(
    work: Callable[[Progress], T], *, idle_s: float, total_s: float, before_s: float = 0.0
) -> T:
    """Return what `work` returns, if it gets on.

    It is done on a thread, which goes on behind a step that never ends, and no further; the process
    does not wait for it to end.

    Parameters
    ----------
    work : is called with what it calls after every step.
    idle_s : seconds without a step, after which it is given up.
    total_s : seconds in all.
    before_s : seconds that preparing it took; they count, but leave it half of its time at least.

    Raises
    ------
    GivenUpError : it was given up. Whatever else it raises is raised here.
    """
    progress, outcome = Progress(), _Outcome[T]()

    def carry_out() -> None:
        try:
            outcome.value = work(progress)
        except BaseException as error:
            outcome.error = error

    start = time.monotonic() - min(before_s, total_s / 2)
    progress.moved -= min(before_s, idle_s / 2)
    thread = threading.Thread(target=carry_out, daemon=True)
    thread.start()
    while thread.is_alive():
        left = min(progress.moved + idle_s, start + total_s) - time.monotonic()
        if left <= 0:
            progress.over = True
            raise GivenUpError(_why(progress, start, idle_s))
        thread.join(left)
    if outcome.error is not None:
        raise outcome.error
    return outcome.value  # type: ignore[return-value]


def _why(progress: Progress, start: float, idle_s: float) -> str:
    now = time.monotonic()
    if now - progress.moved >= idle_s:
        return f"it did not get on for {now - progress.moved:.0f} s"
    return f"it was not done after {now - start:.0f} s"


def serve(pipe: Connection, parent: int) -> None:
    """Be a worker process: answer (function, argument) with what the function returns.

    It begins to watch its parent before it imports anything that takes time. Ctrl-C is the parent's
    to hear.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with(parent)
    with suppress(EOFError, OSError):
        while True:
            function, argument = pipe.recv()
            pipe.send(function(argument))


def call_with(parent: int, call: bytes) -> Any:
    """Do a pickled call, (function, arguments), in a process that ends with one it descends from.

    That is watched before what the call needs is imported.
    """
    end_with(parent)
    function, arguments = pickle.loads(call)
    return function(*arguments)


def end_with(process: int) -> None:
    """Have this process end when one that it descends from has ended, even if that was killed.

    It would go on with what it was handed, or wait for more, beside the next command's workers.
    Linux ends it at once with its own parent; elsewhere, and with who is further up, it looks.
    """
    if os.getppid() == process:
        _tie_to_parent()
    threading.Thread(target=_end_after, args=(process,), daemon=True).start()


_PDEATHSIG = 1  # of prctl(2): the signal that a process gets when its parent ends


def _tie_to_parent() -> None:
    with suppress(ImportError, OSError, AttributeError, TypeError):  # where it is not Linux
        import ctypes

        ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _end_after(process: int) -> None:
    while process in _ancestors():
        time.sleep(0.5)
    os._exit(1)  # at once: what is not finished is not kept, and locks free themselves


_GENERATIONS = 4  # submitit puts a process between a command and its job


def _ancestors() -> list[int]:
    """Return the parent of this process, its parent and so on; without /proc, the first alone."""
    found = [os.getppid()]
    with suppress(OSError):
        while found[-1] and len(found) < _GENERATIONS:
            about = Path(f"/proc/{found[-1]}/stat").read_text()
            found.append(int(about.rpartition(")")[2].split()[1]))
    return found
