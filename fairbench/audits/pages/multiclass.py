"""The audit of a classifier of several classes as a document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from fairbench.audits.conclusions import Conclusions
from fairbench.audits.multiclass_assessment import MulticlassAssessment, Part, RankedEstimate
from fairbench.audits.multiclass_conclusions import conclude_multiclass
from fairbench.audits.pages.parts import audit_of, header
from fairbench.core.formats import interval, number, probability
from fairbench.reporting.document.model import (
    Bar,
    Block,
    Column,
    Document,
    Figure,
    Gallery,
    Paragraph,
    Section,
    Table,
)

_MOST = 12  # rows of a table on a terminal


def multiclass_audit_document(assessment: MulticlassAssessment) -> Document:
    """Return an audit: its conclusions, calibration, groups, classes and mistakes."""
    conclusions = conclude_multiclass(assessment)
    data = _data(assessment, conclusions)
    return audit_of(assessment.options, conclusions, _sections(assessment), data)


def _sections(assessment: MulticlassAssessment) -> Iterator[Section]:
    note = (
        "Share of right predictions among labelled rows of similar scores, with 95 % intervals; on "
        "the dashed line scores are probabilities. Bars: where the scores of all rows lie."
    )
    yield Section("Calibration", [Gallery([_diagram(assessment)], note)])
    for kind, parts in assessment.groups.items():
        yield Section(f"By {kind}", [_parts(kind, parts), *_gap(assessment, kind)])
    title = "By predicted class, the least accurate first"
    yield Section(title, [_parts("class", assessment.classes)])
    if assessment.mistakes:
        yield Section("Most frequent mistakes", [_mistakes(assessment)])


def _gap(assessment: MulticlassAssessment, kind: str) -> Iterator[Block]:
    for gap in assessment.gaps:
        if gap.attribute == kind:
            yield Paragraph(
                f"Largest difference in accuracy {number(gap.value)} "
                f"({interval(gap.lower, gap.upper)}); P(<{assessment.options.epsilon:g}) "
                f"{probability(gap.small)}."
            )


def _parts(kind: str, parts: Sequence[Part]) -> Table:
    """Return groups or classes with the least accurate first."""
    ordered = sorted(parts, key=lambda part: part.accuracy.value)
    low = min(part.accuracy.lower for part in parts)
    columns = [Column(kind), Column("rows", "count"), Column("labels", "count")]
    columns += [Column("accuracy", "estimate"), Column("", "bar", narrow=True)]
    columns += [Column("rank", right=True, left_out=1), Column("P(worst)", "probability")]
    columns += [Column("ECE", "estimate"), Column("P(worst)", "probability")]
    with_cost = parts[0].cost is not None
    if with_cost:
        columns += [Column("cost", "estimate"), Column("P(worst)", "probability")]
    rows = []
    for part in ordered:
        accuracy = part.accuracy
        ranks = f"{accuracy.worst_rank:.0f} to {accuracy.best_rank:.0f}"
        row: list[Any] = [part.name, part.rows, part.labels, _three(accuracy), _bar(accuracy, low)]
        row += [ranks, accuracy.extreme, _three(part.calibration), part.calibration.extreme]
        if part.cost is not None:
            row += [_three(part.cost), part.cost.extreme]
        rows.append(row)
    return Table(columns, rows, most=_MOST)


def _three(estimate: RankedEstimate) -> tuple[float, float, float]:
    return estimate.value, estimate.lower, estimate.upper


def _bar(estimate: RankedEstimate, low: float) -> Bar:
    """Return an interval on the scale from the lowest end of all to 1."""
    ends = [100 * (value - low) / (1 - low) for value in _three(estimate)]
    return Bar(ends[1], ends[0], ends[2], band=(0, 100))


def _mistakes(assessment: MulticlassAssessment) -> Table:
    columns = [Column("true class"), Column("predicted"), Column("labels", "count")]
    columns += [Column("share of those predicted so", "number")]
    columns += [Column("95 % interval", "interval")]
    rows = [
        [
            each.target,
            each.prediction,
            each.count,
            each.share.value,
            (each.share.lower, each.share.upper),
        ]
        for each in assessment.mistakes
    ]
    return Table(columns, rows, most=_MOST)


def _diagram(assessment: MulticlassAssessment) -> Figure:
    accuracy, error = assessment.everyone.accuracy, assessment.everyone.calibration
    caption = (
        f"Score across, accuracy up. ECE {number(error.value)} "
        f"({interval(error.lower, error.upper)}), accuracy {number(accuracy.value)} "
        f"({interval(accuracy.lower, accuracy.upper)})"
    )
    svg = _svg(list(_bins(assessment)))
    return Figure("reliability of all rows", svg=svg, caption=caption, style="large-diagram")


def _svg(bins: Sequence[Mapping[str, float]]) -> str:
    shares = "".join(
        f'<rect class="share" x="{100 * b["left"] + 1}" y="{100 - 40 * b["weight"]}" '
        f'width="{100 * b["width"] - 2}" height="{40 * b["weight"]}"/>'
        for b in bins
    )
    points = "".join(
        f'<line class="range" x1="{100 * b["score"]}" x2="{100 * b["score"]}" '
        f'y1="{100 - 100 * b["lower"]}" y2="{100 - 100 * b["upper"]}"/>'
        f'<circle cx="{100 * b["score"]}" cy="{100 - 100 * b["accuracy"]}" r="1.6">'
        f"<title>{b['labels']:.0f} labels</title></circle>"
        for b in bins
    )
    ticks = "".join(
        f'<text x="{tick}" y="107" text-anchor="middle">{tick / 100}</text>'
        f'<text x="-2" y="{102 - tick}" text-anchor="end">{tick / 100}</text>'
        for tick in (0, 50, 100)
    )
    return (
        '<svg viewBox="-12 -4 118 116" role="img" aria-label="reliability of all rows">'
        f'{shares}<rect class="frame" x="0" y="0" width="100" height="100"/>'
        f'<line class="ideal" x1="0" y1="100" x2="100" y2="0"/>{points}{ticks}</svg>'
    )


def _bins(assessment: MulticlassAssessment) -> Iterator[dict[str, float]]:
    """Yield the bins of the reliability diagram that have rows."""
    diagram = assessment.diagram
    lower, upper = diagram.accuracy.interval()
    columns = (diagram.weight, diagram.score, diagram.accuracy.mean, lower, upper, diagram.labels)
    names = ("weight", "score", "accuracy", "lower", "upper", "labels")
    width = 1 / diagram.weight.shape[1]
    for b, each in enumerate(zip(*(column[0] for column in columns), strict=True)):
        if each[0] > 0:
            bin_values = dict(zip(names, map(float, each), strict=True))
            yield {**bin_values, "left": b * width, "width": width}


def _data(assessment: MulticlassAssessment, conclusions: Conclusions) -> Mapping[str, Any]:
    diagram = assessment.diagram
    lower, upper = diagram.accuracy.interval()
    return header(
        assessment.options,
        rows=len(assessment.table.scores),
        labels=assessment.labels,
        class_names=list(assessment.table.scores.classes),
        conclusions=asdict(conclusions),
        everyone=asdict(assessment.everyone),
        classes=[asdict(part) for part in assessment.classes],
        groups={kind: [asdict(part) for part in v] for kind, v in assessment.groups.items()},
        accuracy_gaps=[asdict(gap) for gap in assessment.gaps],
        mistakes=[asdict(mistake) for mistake in assessment.mistakes],
        reliability={
            "share_of_rows": diagram.weight[0].tolist(),
            "score": diagram.score[0].tolist(),
            "labels": diagram.labels[0].tolist(),
            "accuracy": diagram.accuracy.mean[0].tolist(),
            "lower": lower[0].tolist(),
            "upper": upper[0].tolist(),
        },
    )
