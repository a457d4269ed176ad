"""Labelling as documents: the rows to label next and why, and a row for the person to label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from fairbench.audits.labelling.questions import Figures, answer, figures, question_of
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
            Paragraph(" ".join(answer(question)[0].sentences), "note"),
            Commands([f"fairbench label ask state={state} {cells[0][0]}=LABEL"]),
        ]
    return Document(question.sentence, [Section("", blocks)])


def with_answer(document: Document, session: Session) -> Document:
    """Return a report with what labels say to the question that they were chosen for."""
    question, state = question_of(session), session.state
    said, groups = answer(question)
    # One of the two is the interval that counts; the other stands beside it.
    shown = ["group", "labels", "value", "interval", "fixed" if state.whenever else "whenever"]
    place = groups["group"].isin(said.possible).map({True: "", False: "surely not it, "})
    if state.question in ("worst", "calibration"):
        place = place.mask(groups["group"].isin(said.found), "looks like it, ")
    remark = (place + _few(groups)).str.removesuffix(", ")
    table = _table(state.metric.replace("_", " "), groups.assign(remark=remark), shown)
    text = Paragraph(f"{question.sentence} {' '.join(said.sentences)}")
    data = {
        "question": state.question,
        "metric": state.metric,
        "asked": question.sentence,
        **{name: getattr(said, name) for name in ("found", "possible", "settled", "sentences")},
        "stop": state.stop,
        "answers": len(state.labels),
        "whenever": state.whenever,
        "groups": groups.to_dict("records"),
    }
    sections = [Section("The question", [text, table]), *document.sections]
    return replace(document, sections=sections, data={**document.data, "labelling": data})


def _few(groups: pd.DataFrame) -> pd.Series:
    return groups["few"].map({True: "too few labels", False: ""})


def _table(name: str, groups: pd.DataFrame, shown: Sequence[str]) -> Table:
    """Return a table of a metric by group, with some of the columns, and remarks."""
    columns = {
        "group": Column("group"),
        "size": Column("rows", "count"),
        "labels": Column("labels", "count"),
        "value": Column(name, "number"),
        "interval": Column("95 % interval", "interval"),
        "fixed": Column("of a number said before", "interval", left_out=1),
        "whenever": Column("whenever one stops", "interval", left_out=1),
        "remark": Column(""),
    }
    shown = [*shown, "remark"]
    ends = list(zip(groups["lower"], groups["upper"], strict=True))
    rows = groups.assign(interval=ends)[shown].to_numpy(object).tolist()
    return Table([columns[key] for key in shown], rows)


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
    sections = [
        Section(f"{metric.label} of each group", [_of_metric(metric, session)])
        for metric in metrics
    ]
    audit = Audit(
        session.state.options,
        rows,
        labels,
        [],
        basis,
        sections,
        {"figures": [{**vars(m), "groups": m.groups.to_dict("records")} for m in metrics]},
        notes=table.notes,
    )
    return with_answer(document_of(audit), session)


def _of_metric(metric: Figures, session: Session) -> Table:
    groups = metric.groups.assign(size=session.sizes, remark=_few(metric.groups))
    if metric.everyone is not None:
        value, lower, upper = metric.everyone
        everyone = {"group": "everyone", "size": len(session.table), "remark": ""}
        everyone |= {
            "labels": groups["labels"].sum(),
            "value": value,
            "lower": lower,
            "upper": upper,
        }
        groups = pd.concat([groups, pd.DataFrame([everyone])])
    return _table(metric.label, groups, ["group", "size", "labels", "value", "interval"])


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
