"""Labelling as documents: the rows to label next and why, and a row for the person to label."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from fairbench.audits.labelling.answers import (
    Figures,
    GroupFigure,
    QuestionAnswer,
    answer,
    figures,
)
from fairbench.audits.labelling.measures import measure
from fairbench.audits.labelling.questions import QUESTIONS, KnownFigures, Suggested
from fairbench.audits.labelling.session import Session
from fairbench.audits.report import Audit, document_of
from fairbench.core.formats import count
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


def next_rows_document(session: Session, suggested: Suggested, state: Path) -> Document:
    """Return the rows to label next, their groups, and what a label would do.

    Parameters
    ----------
    state : the file that labels are stored in.
    """
    return Document(
        QUESTIONS[session.state.question].asks(measure(session)),
        [Section("", list(_suggestions(session, suggested, state)))],
    )


def _suggestions(session: Session, suggested: Suggested, state: Path) -> Iterator[Block]:
    known = KnownFigures.of(session)
    so_far = QUESTIONS[session.state.question].now(known)
    yield Paragraph(f"So far: {so_far} ({session.progress}).")
    if not len(suggested.rows):
        yield Paragraph("No row is left to label.")
        return
    rows = [
        [str(row + 1), session.names[arm], *_arm(known, arm)]
        for row, arm in zip(suggested.rows, suggested.arms.tolist(), strict=True)
    ]
    yield Table(
        [
            Column("row", "text", right=True),
            Column("group"),
            Column("labels", "count"),
            Column(measure(session).metric.label),
            Column("what its label would settle"),
        ],
        rows,
    )
    yield Paragraph(" ".join(answer(session).sentences), "note")
    yield Commands([f"fairbench label ask state={state} {suggested.rows[0] + 1}=LABEL"])


def _arm(known: KnownFigures, arm: int) -> tuple[int, str, str]:
    """Return a group's labels, its figure with an interval, and what a label would do."""
    session = known.session
    lower, upper = (ends[arm] for ends in known.posterior.interval())
    figure = f"{known.posterior.mean[arm]:.2f} ({lower:.2f}-{upper:.2f})"
    if session.subject.predicted is not None and not len(session.table.known):
        figure = ""  # nothing is known of numbers before the first
    why = QUESTIONS[session.state.question].why(known, arm)
    labels = int((session.codes[session.table.known] == arm).sum())
    return labels, figure, why


def with_answer(document: Document, session: Session) -> Document:
    """Return a report with what labels say to the question that they were chosen for."""
    found = answer(session)
    sections = [Section("The question", list(_answer(found))), *document.sections]
    return replace(document, sections=sections, data={**document.data, "labelling": asdict(found)})


def session_document(session: Session) -> Document:
    """Return the report of a session about several classes, or about numbers."""
    found = figures(session)
    sections = [
        Section(f"{each.label} of each group", list(_of_metric(each, session))) for each in found
    ]
    audit = Audit(
        session.state.options,
        len(session.table),
        len(session.table.known),
        [],
        list(_basis(session)),
        sections,
        {"figures": [asdict(each) for each in found]},
        notes=session.table.notes,
    )
    return with_answer(document_of(audit), session)


def _basis(session: Session) -> Iterator[str]:
    sampling = session.audited().sampling
    assert sampling is not None
    rows, labels = len(session.table), len(session.table.known)
    yield f"{count(rows)} rows, {count(labels)} of them with a label ({labels / rows:.2%})."
    yield (
        f"How many rows of each group of {sampling.by} were labelled was decided while labelling; "
        "which ones, at random within the group. Everyone's figures give each group its share of "
        "the rows, not of the labels."
    )
    yield sampling.stopping
    yield from sampling.notes


def _of_metric(found: Figures, session: Session) -> Iterator[Block]:
    columns = [Column("group"), Column("rows", "count"), Column("labels", "count")]
    columns += [Column(found.label, "number"), Column("95 % interval", "interval"), Column("")]
    rows: list[list[Any]] = [
        [
            each.group,
            int(session.sizes[g]),
            each.labels,
            each.value,
            (each.lower, each.upper),
            "too few labels" if each.few else "",
        ]
        for g, each in enumerate(found.groups)
    ]
    if found.everyone is not None:
        value, *ends = found.everyone
        labels = sum(each.labels for each in found.groups)
        rows.append(["everyone", len(session.table), labels, value, tuple(ends), ""])
    yield Table(columns, rows)


def _answer(found: QuestionAnswer) -> Iterator[Block]:
    yield Paragraph(f"{found.asked} {' '.join(found.sentences)}")
    # One of the two is the interval that counts; the other stands beside it.
    stopped = any(each.whenever != (each.lower, each.upper) for each in found.groups)
    columns = [
        Column("group"),
        Column("labels", "count"),
        Column(found.metric.replace("_", " "), "number"),
        Column("95 % interval", "interval"),
        Column(
            "whenever one stops" if stopped else "of a number said before", "interval", left_out=1
        ),
        Column(""),
    ]
    rows = [
        [
            each.group,
            each.labels,
            each.value,
            (each.lower, each.upper),
            each.whenever if stopped else each.fixed,
            _remark(found, each),
        ]
        for each in found.groups
    ]
    yield Table(columns, rows)


def _remark(found: QuestionAnswer, each: GroupFigure) -> str:
    few = "too few labels" if each.few else ""
    place = ""
    if found.question in ("worst", "calibration"):
        place = "surely not it" if each.group not in found.possible else ""
        place = "looks like it" if each.group in found.found else place
    return ", ".join(part for part in (place, few) if part)


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
