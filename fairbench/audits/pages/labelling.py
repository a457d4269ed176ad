"""Labelling as documents: the rows to label next and why, and a row for the person to label."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import pandas as pd

from fairbench.audits.findings import LEVEL
from fairbench.audits.labelling.measures import askable, group_figures, measure, of_everyone
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


def next_rows_document(session: Session, rows: Rows, state: Path) -> Document:
    """Return the rows to label next, their groups, and what a label would do.

    Parameters
    ----------
    rows : by position. state : the file that labels are stored in.
    """
    question = question_of(session)
    known = question.known()
    blocks: list[Block] = [Paragraph(f"{question.now(known)} ({session.progress}).")]
    columns = [
        Column("row", "text", right=True),
        *[Column(id_) for id_ in [session.state.options.id] if id_],
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
        [
            str(row + 1),
            *session.ids[row : row + 1],  # of nobody where no column says so
            *[session.names[g], int(session.labels[g]), figure[g], question.why(known, g)],
        ]
        for row, g in zip(rows, groups, strict=True)
    ]
    if not cells:
        blocks.append(Paragraph("No row is left to label."))
    else:
        first = session.answer_to(int(rows[0]) + 1)
        blocks += [
            Table(columns, cells),
            Paragraph(" ".join(question.answer().sentences), "note"),
            Commands([f"fairbench label ask state={state} {first}=LABEL"]),
        ]
    return Document(question.sentence, [Section("", blocks)])


def with_answer(document: Document, session: Session) -> Document:
    """Return a report with what labels say to the question that they were chosen for."""
    question, state = question_of(session), session.state
    answer, groups = question.answer(), question.groups()
    place = groups["group"].isin(answer.possible).map({True: "", False: "surely not it, "})
    if state.question in ("worst", "calibration"):
        place = place.mask(groups["group"].isin(answer.found), "looks like it, ")
    remark = (place + _few(groups)).str.removesuffix(", ")
    # One of the two is the interval that counts; the other stands beside it.
    shown = groups.assign(remark=remark).drop(columns="whenever" if state.whenever else "fixed")
    text = Paragraph(f"{question.sentence} {' '.join(answer.sentences)}")
    table = _table(state.metric.replace("_", " "), shown)
    data = {
        "question": state.question,
        "metric": state.metric,
        "asked": question.sentence,
        **vars(answer),
        "stop": state.stop,
        "answers": len(state.labels),
        "whenever": state.whenever,
        "groups": groups.to_dict("records"),
    }
    sections = [Section("The question", [text, table]), *document.sections]
    return replace(document, sections=sections, data={**document.data, "labelling": data})


def _few(groups: pd.DataFrame) -> pd.Series:
    return groups["few"].map({True: "too few labels", False: ""})


def _table(name: str, groups: pd.DataFrame) -> Table:
    """Return a table of a metric by group, with those of the columns that there are."""
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
    ends = list(zip(groups["lower"], groups["upper"], strict=True))
    groups = groups.assign(interval=ends)
    shown = [key for key in columns if key in groups]
    return Table([columns[key] for key in shown], groups[shown].to_numpy(object).tolist())


def session_document(session: Session) -> Document:
    """Return the report of a session about several classes, or about numbers."""
    table, sections, figures = session.audited(), [], []
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
    for name, metric in askable(session).items():
        about = measure(session, name)
        groups = group_figures(session, about, partial(about.limits, LEVEL))
        everyone = of_everyone(session, about)
        shown = groups.assign(size=session.sizes, remark=_few(groups))
        if everyone is not None:
            ends = dict(zip(("value", "lower", "upper"), everyone, strict=True))
            total = {"group": "everyone", "size": rows, "labels": labels, "remark": "", **ends}
            shown = pd.concat([shown, pd.DataFrame([total])])
        shown = shown.drop(columns=["fixed", "whenever"])
        sections.append(Section(f"{metric.label} of each group", [_table(metric.label, shown)]))
        figure = {"metric": name, "label": metric.label, "groups": groups.to_dict("records")}
        figures.append({**figure, "everyone": everyone})
    audit = Audit(
        session.state.options,
        rows,
        labels,
        [],
        basis,
        sections,
        {"figures": figures},
        notes=table.notes,
    )
    return with_answer(document_of(audit), session)


def row_document(session: Session, position: int, row: Mapping[str, str]) -> Document:
    """Return a row for the person who is to label it.

    Parameters
    ----------
    position : of the row, from 0. row : the columns that may be shown, as text.
    """
    name = f"{session.name(position + 1)}, {session.names[session.codes[position]]}"
    blocks: list[Block] = [Definitions(list(row.items())[:_MOST_COLUMNS])]
    if len(row) > _MOST_COLUMNS:
        blocks.append(Paragraph(f"and {len(row) - _MOST_COLUMNS} more columns", "note"))
    return Document(f"{name} ({session.progress})", [Section("", blocks)])
