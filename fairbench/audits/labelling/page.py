"""Labelling as documents: the rows to label next and why, and a row for the person to label."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import pandas as pd

from fairbench.audits.labelling.questions import (
    askable,
    estimate_for_everyone,
    group_figures,
    measure,
    question_of,
)
from fairbench.audits.labelling.session import Session
from fairbench.audits.report import Audit, document_of
from fairbench.core.arrays import Rows
from fairbench.core.text import count
from fairbench.evaluation.findings import LEVEL
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
    rows : positions of the rows to label.
    state : the file that labels are stored in.
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
    posterior = known.posterior
    lower, upper = posterior.interval()
    # Nothing is known of a number before the first label.
    unknown = session.predicted is not None and not session.labels.any()
    estimates = [
        "" if unknown else f"{mean:.2f} ({low:.2f}-{high:.2f})"
        for mean, low, high in zip(posterior.mean, lower, upper, strict=True)
    ]
    groups = session.codes[rows].tolist()
    table_rows = [
        [
            str(row + 1),
            *session.ids[row : row + 1],  # no cell where there is no column of identifiers
            session.names[group],
            int(session.labels[group]),
            estimates[group],
            question.why(known, group),
        ]
        for row, group in zip(rows, groups, strict=True)
    ]
    if not table_rows:
        blocks.append(Paragraph("No row is left to label."))
    else:
        first_row = session.answer_to(int(rows[0]) + 1)
        blocks += [
            Table(columns, table_rows),
            Paragraph(" ".join(question.answer().sentences), "note"),
            Commands([f"fairbench label ask state={state} {first_row}=LABEL"]),
        ]
    return Document(question.sentence, [Section("", blocks)])


def with_answer(document: Document, session: Session) -> Document:
    """Add to a report what its labels say to the question that they were chosen for."""
    question = question_of(session)
    state = session.state
    answer = question.answer()
    groups = question.groups()
    may_be_it = groups["group"].isin(answer.possible).map({True: "", False: "surely not it, "})
    if state.question in ("worst", "calibration"):
        may_be_it = may_be_it.mask(groups["group"].isin(answer.found), "looks like it, ")
    remark = (may_be_it + _too_few_labels(groups)).str.removesuffix(", ")
    # The valid kind of interval is in ``lower`` and ``upper`` already: drop its second copy.
    shown = groups.assign(remark=remark).drop(
        columns="whenever" if state.anytime_valid else "fixed"
    )
    text = Paragraph(f"{question.sentence} {' '.join(answer.sentences)}")
    table = _metric_table(state.metric.replace("_", " "), shown)
    data = {
        "question": state.question,
        "metric": state.metric,
        "asked": question.sentence,
        **vars(answer),
        "stop": state.stop,
        "answers": len(state.labels),
        "whenever": state.anytime_valid,
        "groups": groups.to_dict("records"),
    }
    sections = [Section("The question", [text, table]), *document.sections]
    return replace(document, sections=sections, data={**document.data, "labelling": data})


def _too_few_labels(groups: pd.DataFrame) -> pd.Series:
    return groups["few"].map({True: "too few labels", False: ""})


def _metric_table(name: str, groups: pd.DataFrame) -> Table:
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
    intervals = list(zip(groups["lower"], groups["upper"], strict=True))
    with_intervals = groups.assign(interval=intervals)
    shown = [key for key in columns if key in with_intervals]
    return Table([columns[key] for key in shown], with_intervals[shown].to_numpy(object).tolist())


def session_document(session: Session) -> Document:
    """Return the report of a session about several classes, or about numbers."""
    table = session.audited()
    n_rows = len(table)
    n_labels = len(table.known)
    sampling = table.sampling
    assert sampling is not None
    basis = [
        f"{count(n_rows)} rows, {count(n_labels)} of them with a label ({n_labels / n_rows:.2%}).",
        f"How many rows of each group of {sampling.by} were labelled was decided while labelling; "
        "which ones, at random within the group. Everyone's figures give each group its share of "
        "the rows, not of the labels.",
        sampling.stopping,
        *sampling.notes,
    ]
    sections = []
    figures = []
    for name, metric in askable(session).items():
        about = measure(session, name)
        groups = group_figures(session, about, partial(about.limits, LEVEL))
        everyone = estimate_for_everyone(session, about)
        shown = groups.assign(size=session.sizes, remark=_too_few_labels(groups))
        if everyone is not None:
            estimate = dict(zip(("value", "lower", "upper"), everyone, strict=True))
            total = {"group": "everyone", "size": n_rows, "labels": n_labels, "remark": ""}
            shown = pd.concat([shown, pd.DataFrame([total | estimate])])
        table_of_metric = _metric_table(metric.label, shown.drop(columns=["fixed", "whenever"]))
        sections.append(Section(f"{metric.label} of each group", [table_of_metric]))
        figures.append(
            {
                "metric": name,
                "label": metric.label,
                "groups": groups.to_dict("records"),
                "everyone": everyone,
            }
        )
    audit = Audit(
        session.state.options,
        n_rows,
        n_labels,
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
    position : the position of the row, counted from 0.
    row : the columns that may be shown, as text.
    """
    name = f"{session.name(position + 1)}, {session.names[session.codes[position]]}"
    blocks: list[Block] = [Definitions(list(row.items())[:_MOST_COLUMNS])]
    if len(row) > _MOST_COLUMNS:
        blocks.append(Paragraph(f"and {len(row) - _MOST_COLUMNS} more columns", "note"))
    return Document(f"{name} ({session.progress})", [Section("", blocks)])
