"""A leaderboard that is written: where it lies, and the same in short."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fairbench.reporting.document.model import Document


@dataclass(frozen=True, eq=False)
class Leaderboard:
    """A written leaderboard: the page, and the same in short for a terminal.

    Attributes
    ----------
    files : the names of all its files, the page first.
    unchanged : whether it is the page that was there.
    """

    path: Path
    short: Document
    files: Sequence[str] = ()
    unchanged: bool = False
