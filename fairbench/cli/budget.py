"""The words ``resolve=METRIC budget=TIME`` of a run; read before anything heavy is imported."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from fairbench.core.errors import UserError

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_NAMES = ("resolve", "budget")


@dataclass(frozen=True)
class Resolving:
    """The metric to be resolved, and the seconds for it."""

    metric: str
    seconds: float

    @classmethod
    def of(cls, words: Sequence[str]) -> tuple[Resolving | None, list[str]]:
        """Return the request in the words, and the other words.

        Raises
        ------
        UserError : one of resolve= and budget= without the other, or a time that is none.
        """
        own_values = {
            word.partition("=")[0]: word.partition("=")[2] for word in words if _is_own(word)
        }
        other_words = [word for word in words if not _is_own(word)]
        if not own_values:
            return None, other_words
        if missing := [name for name in _NAMES if not own_values.get(name)]:
            example = "resolve=error_rate budget=2h"
            raise UserError(
                f"{missing[0]}= is missing: resolve= and budget= go together ({example})"
            )
        return cls(own_values["resolve"], _seconds(own_values["budget"])), other_words


def _is_own(word: str) -> bool:
    name, equals, _ = word.partition("=")
    return bool(equals) and name in _NAMES


def _seconds(text: str) -> float:
    """Return the seconds of a text such as ``2h``."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", text.strip())
    if not match or not float(match[1]) > 0:
        raise UserError(f"budget={text} is no time: write 90s, 30m, 2h or 1d")
    return float(match[1]) * _SECONDS[match[2]]
