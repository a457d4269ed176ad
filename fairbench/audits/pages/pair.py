"""The audit of two classifiers on the same rows as a document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from fairbench.audits.conclusions import Conclusions
from fairbench.audits.gaps import OPEN
from fairbench.audits.pages.parts import audit_of, bars, header, starts
from fairbench.audits.pair import (
    ALIKE,
    GapComparison,
    PairAssessment,
    conclude_pair,
    measured,
    verdict_text,
)
from fairbench.reporting.document.model import Column, Document, Section, Table, TableCell


def pair_audit_document(assessment: PairAssessment) -> Document:
    """Return the comparison of two classifiers' gaps."""
    options, conclusions = assessment.options, conclude_pair(assessment)
    return audit_of(
        options,
        conclusions,
        [Section("Gaps between groups, of both", [_table(assessment)])],
        _data(assessment, conclusions),
        title=f"{options.against} against {options.score}",
        labels=assessment.table.labels,
    )


def _table(assessment: PairAssessment) -> Table:
    options, rows = assessment.options, assessment.rows
    columns = [
        Column("groups"),
        Column("gap in"),
        Column(options.score, "number"),
        Column(options.against, "number"),
        Column("difference", "signed"),
        Column("95 % interval", "interval"),
        Column("", "bar", narrow=True),
        Column("P(smaller)", "probability", left_out=1),
        Column(f"P(within {options.epsilon:g})", "probability", left_out=2),
        Column("verdict"),
    ]
    placed = bars([(row.lower, row.difference, row.upper) for row in rows], options.epsilon)
    cells = [
        [
            row.attribute or "everyone",
            measured(row),
            row.first,
            row.second,
            row.difference,
            (row.lower, row.upper),
            bar,
            row.lesser,
            row.small,
            TableCell(verdict_text(row), mark=_style(row)),
        ]
        for row, bar in zip(rows, placed, strict=True)
    ]
    return Table(
        columns,
        cells,
        caption=f"Difference: {options.against} less {options.score}, the mean of its posterior.",
        reading=(
            "Sizes of the largest difference between two groups, of the counts, missing labels "
            f"filled in on average. Shaded: less than {options.epsilon:g} either way. Verdict: on "
            f"{options.against}, where the interval excludes 0; alike where the difference is "
            f"under {options.epsilon:g} with a probability of 95 %."
        ),
        rules=starts([row.attribute for row in rows]),
    )


def _style(row: GapComparison) -> str:
    if row.assumed:
        return "assumed"
    return {ALIKE: "small", OPEN: "open"}.get(row.verdict, "large")


def _data(assessment: PairAssessment, conclusions: Conclusions) -> Mapping[str, Any]:
    return header(
        assessment.options,
        rows=len(assessment.table),
        labels=len(assessment.table.known),
        conclusions=asdict(conclusions),
        comparison=[{**asdict(row), "verdict": row.verdict} for row in assessment.rows],
    )
