"""Rows to label, on the terminal: why each one, and what a person needs to label it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fairbench.audit.labelling.knowledge import Knowledge
from fairbench.audit.labelling.next_rows import Suggested
from fairbench.audit.labelling.questions import QUESTIONS
from fairbench.audit.labelling.session import Session
from fairbench.audit.options import Options
from fairbench.audit.terminal import WIDTH
from fairbench.audit.words import count

_MOST_COLUMNS = 30


def print_next(session: Session, suggested: Suggested, place: Path) -> None:
    """Print the rows to label next, their groups, and what a label would do."""
    console, known = _console(), Knowledge.of(session)
    question = QUESTIONS[session.state.question]
    console.print(Text(question.words, style="bold"))
    console.print(Text(f"So far: {question.now(known)} ({progress(session)})."))
    if not len(suggested.rows):
        console.print(Text("No row is left to label."))
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("row", justify="right")
    table.add_column("group", overflow="fold", max_width=26)
    table.add_column("labels", justify="right")
    table.add_column("accuracy", max_width=16)
    table.add_column("what its label would settle", overflow="fold")
    for row, arm in zip(suggested.rows, suggested.arms.tolist(), strict=True):
        table.add_row(str(row + 1), Text(session.names[arm]), *_arm(known, arm))
    console.print(table)
    first = suggested.rows[0] + 1
    console.print(Text(f"fairbench label ask state={place} {first}=LABEL", style="dim"))


def _arm(known: Knowledge, arm: int) -> tuple[str, str, str]:
    """Return a group's labels, accuracy and its interval, and what a label would do."""
    session = known.session
    right, wrong = session.correct
    lower, upper = (ends[arm] for ends in known.accuracy.interval())
    accuracy = f"{known.accuracy.mean[arm]:.2f} ({lower:.2f}-{upper:.2f})"
    why = QUESTIONS[session.state.question].why(known, arm)
    return count(int(right[arm] + wrong[arm])), accuracy, why


def progress(session: Session) -> str:
    """Return how many rows have labels."""
    return f"{count(len(session.table.known))} of {count(len(session.table))} rows have labels"


def print_row(session: Session, position: int, card: Mapping[str, str]) -> None:
    """Print a row for the person who is to label it."""
    console = _console()
    console.print()
    title = f"row {position + 1}, {session.names[session.codes[position]]}"
    console.print(Text(f"{title} ({progress(session)})", style="bold"))
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(overflow="fold", max_width=34, style="dim")
    table.add_column(overflow="fold")
    for name, value in list(card.items())[:_MOST_COLUMNS]:
        table.add_row(Text(name), Text(value))
    console.print(table)
    if len(card) > _MOST_COLUMNS:
        console.print(Text(f"and {len(card) - _MOST_COLUMNS} more columns", style="dim"))


def cards(frame: pd.DataFrame, options: Options) -> pd.DataFrame:
    """Return the columns that may be shown: the score and the decision would sway a person."""
    hidden = (options.target, options.score, options.prediction, options.labelled)
    return frame[[name for name in frame if name not in hidden]]


def _console() -> Console:
    return Console(width=WIDTH, highlight=False, soft_wrap=False)
