"""The results folder, as commands without Hydra take it: ``--results``, or spelled as there."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path


def add_results(parser: ArgumentParser) -> None:
    """Let a parser take ``--results FOLDER``."""
    parser.add_argument(
        "--results",
        type=Path,
        default=Path("results"),
        help="the results folder; results=FOLDER too",
    )


def dashed(words: Sequence[str]) -> list[str]:
    """Return the words of a command line, with Hydra's ``results=FOLDER`` as an option."""
    return [f"--{word}" if word.startswith("results=") else word for word in words]
