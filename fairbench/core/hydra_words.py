"""Plain values as words that Hydra reads back as they are, and never as an interpolation."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from fairbench.core.errors import UserError
from fairbench.core.formats import quoted

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_CONSTANTS = ("true", "false", "null")


def hydra_word(value: Any) -> str:
    """Return the text that stands for a value in a word ``name=TEXT`` of a Hydra command line.

    Parameters
    ----------
    value : None, a bool, number or text, or lists and mappings of these.

    Raises
    ------
    UserError : a text has an interpolation, or the key of a mapping is more than a name.
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        for key in value:
            if not _is_plain(str(key)):
                raise UserError(f"{quoted(str(key))} cannot be written on a command line as a key")
        return f"{{{','.join(f'{key}:{hydra_word(inner)}' for key, inner in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{','.join(map(hydra_word, value))}]"
    if not isinstance(value, str):
        return str(value)
    if "${" in value:
        raise UserError(f"{quoted(value)} has an interpolation, and is to stand for itself")
    return value if _is_plain(value) else _quoted(value)


def _is_plain(text: str) -> bool:
    """Say whether Hydra reads a text as itself, rather than as a number or a constant."""
    if not _PLAIN.fullmatch(text) or text.lower() in _CONSTANTS:
        return False
    try:
        float(text)
    except ValueError:
        return True
    return False


def _quoted(text: str) -> str:
    """Return a text in quotes; Hydra takes a backslash for one that escapes before a quote only."""
    runs = text.split("'")
    doubled = (f"{run}{_ending_backslashes(run)}" for run in runs)
    return "'" + "\\'".join(doubled) + "'"


def _ending_backslashes(text: str) -> str:
    return text[len(text.rstrip("\\")) :]
