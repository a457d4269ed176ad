"""Labelling as documents: the rows to label next and why, and a row for the person to label."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

from fairbench.audits.labelling.answers import Figures, QuestionAnswer, answer, figures
from fairbench.audits.labelling.questions import question_of
from fairbench.audits.labelling.session import Rows, Session
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
_INTERVAL = Column("95 % interval", "interval")


def next_rows_document(session: Session, rows: Rows, state: Path) -> Document:
    """Return the rows to label next, their groups, and what a label would do.

    Parameters
    ----------
    rows : by position. state : the file that labels are stored in.
    """
    question = question_of(session)
    known = question.known()
    blocks: list[Block] = [Paragraph(f"So far: {question.now(known)} ({session.progress}).")]
    columns = [
        Column("row", "text", right=True),
        Column("group"),
        Column("labels", "count"),
        Column(question.about.metric.label),
        Column("what its label would settle"),
    ]
    posterior, (lower, upper) = known.posterior, known.posterior.interval()
    # Nothing is known of numbers before the first.
    unknown = session.predicted is not None and not session.labels.any()
    figure = [
        "" if unknown else f"{mean:.2f} ({low:.2f}-{high:.2f})"
        for mean, low, high in zip(posterior.mean, lower, upper, strict=True)
    ]
    groups = session.codes[rows].tolist()
    cells = [
        [str(row + 1), session.names[g], int(session.labels[g]), figure[g], question.why(known, g)]
        for row, g in zip(rows, groups, strict=True)
    ]
    if not cells:
        blocks.append(Paragraph("No row is left to label."))
    else:
        blocks += [
            Table(columns, cells),
            Paragraph(" ".join(answer(session).sentences), "note"),
            Commands([f"fairbench label ask state={state} {cells[0][0]}=LABEL"]),
        ]
    return Document(question.sentence, [Section("", blocks)])


def with_answer(document: Document, session: Session) -> Document:
    """Return a report with what labels say to the question that they were chosen for."""
    said = answer(session)
    sections = [Section("The question", _answer(said)), *document.sections]
    return replace(document, sections=sections, data={**document.data, "labelling": asdict(said)})


def session_document(session: Session) -> Document:
    """Return the report of a session about several classes, or about numbers."""
    metrics, table = figures(session), session.audited()
    rows, labels, sampling = len(table), len(table.known), table.sampling
    assert sampling is not None
    basis = [
        f"{count(rows)} rows, {count(labels)} of them with a label ({labels / rows:.2%}).",
        f"How many rows of each group of {sampling.by} were labelled was decided while labelling; "
        "which ones, at random within the group. Everyone's figures give each group its share of "
        "the rows, not of the labels.",
        sampling.stopping,
        *sampling.notes,
    ]
    audit = Audit(
        session.state.options,
        rows,
        labels,
        [],
        basis,
        [
            Section(f"{metric.label} of each group", [_of_metric(metric, session)])
            for metric in metrics
        ],
        {"figures": [asdict(metric) for metric in metrics]},
        notes=table.notes,
    )
    return with_answer(document_of(audit), session)


def _of_metric(metric: Figures, session: Session) -> Table:
    columns = [Column("group"), Column("rows", "count"), Column("labels", "count")]
    columns += [Column(metric.label, "number"), _INTERVAL, Column("")]
    rows = [
        [g.group, rows, g.labels, g.value, (g.lower, g.upper), "too few labels" if g.few else ""]
        for g, rows in zip(metric.groups, session.sizes.tolist(), strict=True)
    ]
    if metric.everyone is not None:
        value, *ends = metric.everyone
        labels = int(session.labels.sum())
        rows.append(["everyone", len(session.table), labels, value, tuple(ends), ""])
    return Table(columns, rows)


def _answer(said: QuestionAnswer) -> list[Block]:
    # One of the two is the interval that counts; the other stands beside it.
    other = "of a number said before" if said.whenever else "whenever one stops"
    columns = [Column("group"), Column("labels", "count")]
    columns += [Column(said.metric.replace("_", " "), "number"), _INTERVAL]
    columns += [Column(other, "interval", left_out=1), Column("")]
    rows = []
    for group in said.groups:
        remarks = ["too few labels"] if group.few else []
        if said.question in ("worst", "calibration") and group.group in said.found:
            remarks.insert(0, "looks like it")
        elif group.group not in said.possible:
            remarks.insert(0, "surely not it")
        beside = group.fixed if said.whenever else group.whenever
        ends = group.lower, group.upper
        rows.append([group.group, group.labels, group.value, ends, beside, ", ".join(remarks)])
    return [Paragraph(f"{said.asked} {' '.join(said.sentences)}"), Table(columns, rows)]


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
