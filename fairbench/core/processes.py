"""Processes that work for another one, and end with it, even if that was killed."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairbench.core.errors import UserError
from fairbench.core.formats import quoted

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


@dataclass(frozen=True)
class CallWith:
    """A function and its arguments, for a worker that is to end with a process it descends from.

    The worker starts to watch that process before it unpickles the function and its arguments,
    since their imports take time.

    Attributes
    ----------
    process : the id of the process to watch.
    """

    process: int
    function: Callable[..., Any]
    arguments: tuple[Any, ...]

    def __call__(self) -> Any:
        """Call the function, and return its result."""
        return self.function(*self.arguments)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle it so that unpickling watches first: the state is read after the object exists."""
        return _watching, (self.process,), {"function": self.function, "arguments": self.arguments}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Fill in the call."""
        self.__dict__.update(state)


def _watching(process: int) -> CallWith:
    end_with(process)
    made = object.__new__(CallWith)
    made.__dict__["process"] = process
    return made


def end_with(process: int) -> None:
    """End this process when one that it descends from has ended, even if that was killed.

    It would otherwise finish its task, or wait for more, beside the workers of the next command.
    Linux ends a process at once with its own parent. On other systems, and for ancestors further
    up, the process looks every now and then.
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
    parents = [os.getppid()]
    with suppress(OSError):
        while parents[-1] and len(parents) < _GENERATIONS:
            about = Path(f"/proc/{parents[-1]}/stat").read_text()
            parents.append(int(about.rpartition(")")[2].split()[1]))
    return parents
