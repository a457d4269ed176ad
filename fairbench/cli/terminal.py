"""Printing for the person at the keyboard."""

from __future__ import annotations

import sys

from rich.console import Console

console = Console(width=None if sys.stdout.isatty() else 100, soft_wrap=False)


def print_line(text: str) -> None:
    """Print a line as it is, wrapped nowhere."""
    print(text, flush=True)


def print_error(error: Exception | str) -> None:
    """Print why something could not be done."""
    print(f"error: {error}", file=sys.stderr, flush=True)
