"""What is said of an exception, which a component of somebody's own may have raised.

Its text may be missing, endless, or hold commands of a terminal; none of that reaches a reader.
"""

from __future__ import annotations

import traceback

from fairbench.core.errors import UserError, refused
from fairbench.core.formats import visible
from fairbench.core.memory import out_of_memory
from fairbench.core.packages import missing_package

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
