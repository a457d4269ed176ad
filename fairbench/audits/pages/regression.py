"""The audit of predictions that are numbers as a document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from fairbench.audits.conclusions import Conclusions
from fairbench.audits.pages.decisions import density_panel, group_line, score_table
from fairbench.audits.pages.parts import (
    MOST_LINES,
    MOST_ROWS,
    all_metrics,
    audit_of,
    header,
    starts,
)
from fairbench.audits.pages.summary import estimates
from fairbench.audits.regression import (
    COVERAGE,
    RegressionAssessment,
    ResidualCurve,
    conclude_regression,
)
from fairbench.audits.score_distributions import GroupScores
from fairbench.evaluation.columns import records
from fairbench.inference.rates import Limits
from fairbench.metrics.registry import label
from fairbench.reporting.charts import Panel, chart
from fairbench.reporting.document.model import Column, Document, Figure, Section, Table, TableCell


def regression_document(assessment: RegressionAssessment) -> Document:
    """Return an audit: its conclusions, gaps, errors of each group and pictures of them."""
    conclusions = conclude_regression(assessment)
    return audit_of(
        assessment.options,
        conclusions,
        _sections(assessment),
        _data(assessment, conclusions),
        pictures=[
            Section("Residuals by group", [_figure(each, assessment) for each in assessment.curves])
        ],
    )


def _sections(assessment: RegressionAssessment) -> Iterator[Section]:
    yield Section("Gaps between groups", [_gaps(assessment)])
    yield Section("Errors by group", list(_errors(assessment)))
    yield Section("Residuals by group", [score_table(assessment.residuals, "residual")])
    yield Section("Predictions by group", [score_table(assessment.predictions, "prediction")])
    yield Section("", [all_metrics(assessment.metrics)])


def _gaps(assessment: RegressionAssessment) -> Table:
    columns = [
        Column("groups"),
        Column("gap in"),
        Column("size", "number"),
        Column("95 % interval", "interval"),
        Column("matters from", "number", left_out=1),
        Column("verdict"),
    ]
    rows = [
        [
            gap.attribute,
            label(gap.metric),
            gap.value,
            (gap.lower, gap.upper),
            gap.bound,
            TableCell(gap.verdict, mark=gap.verdict),
        ]
        for gap in assessment.gaps
    ]
    return Table(
        columns,
        rows,
        caption=(
            "size: the largest difference between two groups; residual: by how much a target "
            "exceeds its prediction, so that above 0 too little is predicted; MAE: the mean of the "
            "residuals' sizes"
        ),
        rules=starts([gap.attribute for gap in assessment.gaps]),
    )


def _errors(assessment: RegressionAssessment) -> Iterator[Table]:
    """Yield the errors of every group and their differences from the reference's."""
    shown = ["mae", *[COVERAGE] * (assessment.table.bounds is not None)]
    names = [f"{metric}{ending}" for metric in shown for ending in ("", "_difference")]
    values = estimates(assessment.metrics, names)
    for metric in shown:
        rows = []
        for attribute, groups in assessment.table.groups.items():
            sizes = groups.value_counts()
            for group in groups.cat.categories:
                value, *ends = values[attribute, str(group), metric]
                other = values.get((attribute, str(group), f"{metric}_difference"))
                more = None if other is None else other[1:]
                rows.append([attribute, str(group), int(sizes[group]), value, tuple(ends), more])
        promised = f": its intervals promise {assessment.options.nominal:g}"
        yield Table(
            [
                Column("of", left_out=1),
                Column("group"),
                Column("rows", "count", left_out=2),
                Column(label(metric), "number"),
                Column("95 % interval", "interval"),
                Column("less reference's", "interval"),
            ],
            rows,
            title=f"{label(metric)}{promised * (metric == COVERAGE)}",
            rules=starts([str(row[0]) for row in rows]),
            most=MOST_ROWS,
        )


def _figure(curve: ResidualCurve, assessment: RegressionAssessment) -> Figure:
    lines = [
        group_line(
            name,
            g,
            curve.prediction[g],
            Limits(*(end[g] for end in curve.residuals)),
            marked=True,
        )
        for g, name in enumerate(curve.groups[:MOST_LINES])
    ]
    panels = [Panel(lines, "prediction", "mean residual", from_zero="")]
    for what, scores in (
        ("residual", assessment.residuals),
        ("prediction", assessment.predictions),
    ):
        panels.append(density_panel(_of(scores, curve.attribute), what))
    first, *more = chart(panels, key=lines)
    return Figure(
        f"residuals by {curve.attribute}",
        svg=first,
        more=more,
        caption=f"{curve.attribute}: the mean residual among those of similar predictions, with "
        "95 % intervals (shaded; 0 is right on average), and how residuals and predictions are "
        "distributed",
    )


def _of(scores: Sequence[GroupScores], attribute: str) -> list[GroupScores]:
    return [each for each in scores if each.attribute == attribute]


def _data(assessment: RegressionAssessment, conclusions: Conclusions) -> Mapping[str, Any]:
    return header(
        assessment.options,
        rows=len(assessment.table.target),
        conclusions=asdict(conclusions),
        gaps=[asdict(each) for each in assessment.gaps],
        predictions=[asdict(each) for each in assessment.predictions],
        residuals=[asdict(each) for each in assessment.residuals],
        metrics=records(assessment.metrics),
    )
