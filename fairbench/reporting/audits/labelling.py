"""Labelling as documents: the rows to label next and why, and a row for the person to label."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from fairbench.audit.labelling.questions import QUESTIONS, GroupAccuracies, Suggested
from fairbench.audit.labelling.session import Session
from fairbench.reporting.document.model import (
    Block,
    Column,
    Commands,
    Definitions,
    Document,
    Paragraph,
    Section,
    Table,
)

_MOST_COLUMNS = 30
_COLUMNS = (
    Column("row", "text", right=True),
    Column("group"),
    Column("labels", "count"),
    Column("accuracy"),
    Column("what its label would settle"),
)


def next_rows_document(session: Session, suggested: Suggested, state: Path) -> Document:
    """Return the rows to label next, their groups, and what a label would do.

    Parameters
    ----------
    state : the file that labels are stored in.
    """
    return Document(
        QUESTIONS[session.state.question].sentence,
        [Section("", list(_suggestions(session, suggested, state)))],
    )


def _suggestions(session: Session, suggested: Suggested, state: Path) -> Iterator[Block]:
    known = GroupAccuracies.of(session)
    so_far = QUESTIONS[session.state.question].now(known)
    yield Paragraph(f"So far: {so_far} ({session.progress}).")
    if not len(suggested.rows):
        yield Paragraph("No row is left to label.")
        return
    rows = [
        [str(row + 1), session.names[arm], *_arm(known, arm)]
        for row, arm in zip(suggested.rows, suggested.arms.tolist(), strict=True)
    ]
    yield Table(_COLUMNS, rows)
    yield Commands([f"fairbench label ask state={state} {suggested.rows[0] + 1}=LABEL"])


def _arm(known: GroupAccuracies, arm: int) -> tuple[int, str, str]:
    """Return a group's labels, accuracy and its interval, and what a label would do."""
    session = known.session
    right, wrong = session.correct
    lower, upper = (ends[arm] for ends in known.accuracy.interval())
    accuracy = f"{known.accuracy.mean[arm]:.2f} ({lower:.2f}-{upper:.2f})"
    why = QUESTIONS[session.state.question].why(known, arm)
    return int(right[arm] + wrong[arm]), accuracy, why


def row_document(session: Session, position: int, row: Mapping[str, str]) -> Document:
    """Return a row for the person who is to label it.

    Parameters
    ----------
    position : of the row, from 0. row : the columns that may be shown, as text.
    """
    name = f"row {position + 1}, {session.names[session.codes[position]]}"
    blocks: list[Block] = [Definitions(list(row.items())[:_MOST_COLUMNS])]
    if len(row) > _MOST_COLUMNS:
        blocks.append(Paragraph(f"and {len(row) - _MOST_COLUMNS} more columns", "note"))
    return Document(f"{name} ({session.progress})", [Section("", blocks)])
