"""What replies and files are turned into: plain columns, lists, texts and numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.golden.asking import Reply
from benchmarks.golden.frozen import GoldenError
from benchmarks.golden.renames import worded

# The answers of a tree: kind -> case -> answer.
Answers = dict[str, Any]
FAILED = "failed"
_NUMBER = re.compile(r"(?<![\w.])[<>]?-?\d+(?:\.\d+)?%?")


def numbers_in(printed: str) -> list[str]:
    """Return the numbers of a printed text in order: the words and lines around them are free."""
    return _NUMBER.findall(printed)


def failed(reply: Reply) -> Any:
    """Return how a command failed that should not have, or None."""
    if not reply.status:
        return None
    return {FAILED: reply.status, "because": reply.errors.strip().splitlines()[-1:]}


def columns(table: pd.DataFrame) -> dict[str, list[Any]]:
    """Return a table as its columns, in order."""
    return {str(name): table[name].tolist() for name in table}


def metric_columns(table: pd.DataFrame) -> dict[str, list[Any]]:
    """Return the columns of a long table of metrics, the same of both trees."""
    return columns(worded(table))


def only(paths: Iterable[Path]) -> Path:
    """Return the one file there is.

    Raises
    ------
    GoldenError : there is none, or several.
    """
    result = list(paths)
    if len(result) != 1:
        raise GoldenError(f"there are {len(result)} files where one is expected: {result}")
    return result[0]
