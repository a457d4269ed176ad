"""Printing of lines, to an output that may fail while the command goes on."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

from fairbench.core.errors import OpenQuestions, refused
from fairbench.core.processes import failure
from fairbench.core.text import visible


def print_line(text: str) -> None:
    """Print a line without wrapping it."""
    print(visible(text, lines=True), flush=True)


FAILED, USER_ERROR, INTERRUPTED = 1, 2, 130


def print_failure(reason: str, trace: str = "") -> int:
    """Print why something failed; return the exit status: 1 with a traceback, 2 without."""
    if trace:
        print(trace, file=sys.stderr)
    print(f"error: {visible(reason, lines=True)}", file=sys.stderr, flush=True)
    return FAILED if trace else USER_ERROR


class _Output:
    """A stream that ignores failing writes: its reader has gone (``| head -1``), or a disk is full.

    What is under way goes on without it: a sweep is not to end because nobody reads its lines.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.error: OSError | None = None
        self.status = 0

    def __getattr__(self, name: str) -> Any:
        """Return the stream's attribute, for everything that is not defined here."""
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write a text, if anybody reads."""
        return self._attempt(lambda: self._stream.write(text)) or 0

    def flush(self) -> None:
        """Flush the output; ignore a reader that has gone."""
        self._attempt(self._stream.flush)

    def _attempt(self, action: Callable[[], Any]) -> Any:
        """Carry out a write; if it fails, keep the error and send all further output to nowhere."""
        try:
            return action()
        except OSError as error:
            self.error = self.error or error
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)
            return None

    def finish(self) -> None:
        """Fail with 2 if what was written is incomplete, unless its reader has gone."""
        self.flush()
        if self.error is not None and not isinstance(self.error, BrokenPipeError):
            print(f"error: standard output: {refused(self.error)}", file=sys.stderr)
            self.status = self.status or USER_ERROR


@contextmanager
def printed_errors(interrupted: str = "interrupted") -> Iterator[_Output]:
    """Print in a line why a command could not be done, and outlive an output that fails.

    Yields the standard output. Whoever asks sets its `status` to that of the command; afterwards it
    is the exit status, of what was raised or could not be written, too.

    Parameters
    ----------
    interrupted : the line that is printed where the user has stopped it.
    """
    before = sys.stdout, sys.stderr
    out, err = (
        stream if isinstance(stream, _Output) else _Output(_open(stream)) for stream in before
    )
    sys.stdout, sys.stderr, out.status = cast(TextIO, out), cast(TextIO, err), 0
    try:
        yield out
    except KeyboardInterrupt:
        print(interrupted, file=sys.stderr)
        out.status = INTERRUPTED
    except BaseException as error:  # of a component, which may raise anything
        reason, trace = failure(error)
        lines = reason.splitlines() if isinstance(error, OpenQuestions) else [reason]
        out.status = print_failure("\n".join(" ".join(line.split()) for line in lines), trace)
    finally:
        out.finish()
        sys.stdout, sys.stderr = before


def set_up_threads() -> None:
    """Give this process and its workers one thread each; called before numpy is imported."""
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = "1"  # parallelism is over processes, and bits must not depend on it
    # Importing allocates much and frees nothing: a tenth of the start is the collector looking.
    gc.set_threshold(1_000_000, 20, 100)


def _open(stream: TextIO | None) -> TextIO:
    """Return a stream; the null device if there is none, as after ``>&-``."""
    return stream if stream is not None else open(os.devnull, "w", encoding="utf-8")
