"""Work that ends: given up when it has not got on for a while, or has taken too much in all.

A server that sends a byte every few seconds answers every request in the end, and no time limit of
a request ever passes; one that never ends its answer takes all memory, as whoever reads it keeps
it until its end.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf, isinf
from pathlib import Path
from typing import Generic, TypeVar

T = TypeVar("T")
_LOOKED_S = 0.05  # seconds after which it is looked again how much memory it takes


class GivenUpError(Exception):
    """Work that took too long, or too much memory; the message says how much."""


@dataclass
class Progress:
    """The function that work calls after every step; it stops work that was given up."""

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
    """The value that work returned, or the error that it raised."""

    value: T | None = None
    error: BaseException | None = None


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
    progress, outcome = Progress(), _Outcome[T]()

    def carry_out() -> None:
        try:
            outcome.value = work(progress)
        except BaseException as error:
            outcome.error = error

    start = time.monotonic() - min(before_s, total_s / 2)
    progress.moved -= min(before_s, idle_s / 2)
    thread = threading.Thread(target=carry_out, daemon=True)
    size = resident_bytes()
    thread.start()
    while thread.is_alive():
        left = min(progress.moved + idle_s, start + total_s) - time.monotonic()
        if left <= 0:
            progress.over = True
            raise GivenUpError(_why(progress, start, idle_s))
        if resident_bytes() - size > most_bytes:
            progress.over = True
            raise GivenUpError(f"it takes more than {most_bytes / 2**30:.1f} GB of memory")
        thread.join(left if isinf(most_bytes) else min(left, _LOOKED_S))
    if outcome.error is not None:
        raise outcome.error
    return outcome.value  # type: ignore[return-value]


def resident_bytes() -> int:
    """Return how much memory this process takes; 0 where the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_bytes().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def _why(progress: Progress, start: float, idle_s: float) -> str:
    now = time.monotonic()
    if now - progress.moved >= idle_s:
        return f"it did not get on for {now - progress.moved:.0f} s"
    return f"it was not done after {now - start:.0f} s"
