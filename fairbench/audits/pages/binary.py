"""The audit of a classifier of two classes as a document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from fairbench.audits.assessment import Assessment
from fairbench.audits.calibration import GroupCalibration
from fairbench.audits.conclusions import Conclusions, conclude, verdict_text
from fairbench.audits.gaps import RATE_NAMES, Gap
from fairbench.audits.labels_needed import WORLDS, Needed, rounded
from fairbench.audits.pages.decisions import calibration_table, decision_sections, impact_blocks
from fairbench.audits.pages.parts import MOST_ROWS, all_metrics, audit_of, bars, header, starts
from fairbench.audits.pages.pictures import diagrams, pictures
from fairbench.audits.pages.summary import audit_summary, differ_somehow, estimates
from fairbench.core.formats import count, number, signed
from fairbench.evaluation.columns import records
from fairbench.reporting.document.model import (
    Column,
    Details,
    Document,
    Gallery,
    Link,
    Section,
    Table,
    TableCell,
    Text,
)

_MAIN_RATES = (
    ("selected", "selection_rate"),
    ("TPR", "true_positive_rate"),
    ("FPR", "false_positive_rate"),
    ("precision", "positive_predictive_value"),
    ("accuracy", "accuracy"),
)


def audit_document(assessment: Assessment) -> Document:
    """Return an audit: its conclusions, gaps, rates, calibration and every metric."""
    conclusions = conclude(assessment)
    return audit_of(
        assessment.options,
        conclusions,
        _sections(assessment),
        _data(assessment, conclusions),
        labels=assessment.table.labels,
        summary=audit_summary(assessment),
        pictures=pictures(assessment),
    )


def _sections(assessment: Assessment) -> Iterator[Section]:
    if assessment.impact:
        yield Section("Impact ratios", list(impact_blocks(assessment)))
    yield Section("Gaps between groups", [_gaps(assessment), *_more_labels(assessment)])
    yield from _pairs(assessment)
    yield Section("Rates by group", [_rates(assessment)])
    yield from decision_sections(assessment)
    drawn = list(diagrams(assessment))
    if drawn:
        note = (
            f"Share of '{assessment.table.labels[1]}' among labelled rows of similar scores, with "
            "95 % intervals; on the dashed line scores are probabilities."
        )
        yield Section("Calibration by group", [calibration_table(assessment), Gallery(drawn, note)])
    yield Section(
        "", [all_metrics(assessment.metrics, "" if assessment.of_decisions else _ON_METRICS)]
    )


def _gaps(assessment: Assessment) -> Table:
    epsilon, gaps = assessment.options.epsilon, assessment.gaps
    beside, labelled = assessment.assumed is not None, not assessment.of_decisions
    columns = [
        Column("groups"),
        Column("gap in"),
        Column("size", right=True),
        *[Column("standard error", "number", decimals=4)] * (not labelled),
        Column("95 % interval", "interval"),
        Column("", "bar"),
        *[Column("if calibrated alike", "interval", left_out=2)] * beside,
        Column(f"P(<{epsilon:g})", "probability", left_out=1),
        Column("verdict"),
        *[Column("more labels", right=True)] * labelled,
    ]
    placed = bars([(gap.lower, gap.value, gap.upper) for gap in gaps], epsilon)
    needed = {id(each.gap): _needed(each) for each in assessment.needed}
    rows = [
        [
            gap.attribute,
            RATE_NAMES[gap.metric],
            _size(gap, gap.value),
            *[gap.standard_error if gap.signed else None] * (not labelled),
            (gap.lower, gap.upper),
            bar,
            *[gap.supposed[1:]] * beside,
            # Of several groups it would follow from how little is known of each, not from the data.
            gap.small if gap.signed or gap.assumed else None,
            _verdict_cell(gap, epsilon),
            *[needed.get(id(gap), "")] * labelled,
        ]
        for gap, bar in zip(gaps, placed, strict=True)
    ]
    more = " more labels: how many would probably settle the verdict."
    meant = (
        " More labels: from the number that settles the question in 20 % of "
        f"{WORLDS} simulations to that which settles it in 80 %."
    )
    alike = (
        " if calibrated alike: the interval that follows if scores are as right in every group as "
        "in the others; no verdict rests on it."
    )
    return Table(
        columns,
        rows,
        caption=(
            "size: the largest difference between two groups; where there are only two, the "
            f"second's rate minus the first's.{more * labelled}{alike * beside}"
        ),
        reading=(
            "Largest difference between two groups, which noise alone makes larger among many. "
            f"Shaded: less than {epsilon:g} either way. Large: one group is surely ahead of "
            f"another by more; small: none is.{meant * labelled}{alike * beside}"
        ),
        rules=starts([gap.attribute for gap in gaps]),
    )


def _verdict_cell(gap: Gap, epsilon: float) -> TableCell:
    mark = "assumed" if gap.assumed else gap.verdict
    more: Text = ""
    if differ_somehow(gap):
        said = f": they differ, not known between whom by {epsilon:g} or more: "
        more = (said, Link("see the pairs", f"#{_PAIRS}"))
    return TableCell(verdict_text(gap), mark=mark, after=more)


_PAIRS = "pairs"


def _pairs(assessment: Assessment) -> Iterator[Section]:
    """Yield between whom open gaps surely are, where there are more than two groups."""
    found = [gap for gap in assessment.gaps if differ_somehow(gap)]
    if found:
        columns = [Column("groups"), Column("rate"), Column("higher"), Column("lower")]
        rows = [
            [gap.attribute, RATE_NAMES[gap.metric], high, low]
            for gap in found
            for high, low in gap.pairs
        ]
        caption = (
            "Two groups a row that surely differ, though by how much is open; all rows of a rate "
            "are true together with 95 % confidence."
        )
        table = Table(columns, rows, caption=caption, most=MOST_ROWS)
        yield Section("Pairs of groups that surely differ", [table], name=_PAIRS)


def _size(gap: Gap, value: float) -> str:
    return signed(value) if gap.signed else number(value)


def _needed(needed: Needed) -> str:
    """Return how many more labels are likely to be enough, in a few characters."""
    if needed.enough is None:
        return f">{count(needed.labels[-1])}" if needed.labels else ""
    if needed.few is None or needed.few == needed.enough:
        return f"~{count(rounded(needed.enough))}"
    return f"{count(rounded(needed.few))}-{count(rounded(needed.enough))}"


def _more_labels(assessment: Assessment) -> Iterator[Details]:
    if assessment.needed:
        numbers = max((each.labels for each in assessment.needed), key=len)
        columns = [Column("groups"), Column("gap in")]
        columns += [Column(count(labels), "probability") for labels in numbers]
        rows = [
            [each.gap.attribute, RATE_NAMES[each.gap.metric], *each.settled]
            for each in assessment.needed
        ]
        yield Details(
            "How probably more labels settle what is open",
            [Table(columns, [_filled(row, len(columns)) for row in rows])],
        )


def _filled(row: list[Any], length: int) -> list[Any]:
    return row + [None] * (length - len(row))


def _rates(assessment: Assessment) -> Table:
    labelled = not assessment.of_decisions
    main = _MAIN_RATES if labelled else _MAIN_RATES[:1]
    wanted = [name for _, name in main]
    values = estimates(assessment.metrics, wanted)
    columns = [Column("of", left_out=1), Column("group"), Column("rows", "count")]
    columns += [Column("labels", "count")] * labelled
    columns += [Column(title, "estimate") for title, _ in main]
    rows = [
        [
            each.attribute,
            each.group,
            each.rows,
            *[each.labels] * labelled,
            *(values.get((*each.key, name)) for name in wanted),
        ]
        for each in assessment.sizes
    ]
    attributes = [each.attribute for each in assessment.sizes]
    return Table(columns, rows, rules=starts(attributes), most=MOST_ROWS)


_ON_METRICS = (
    "Values and intervals rest on the labels; those of scores themselves on labelled rows."
)


def _data(assessment: Assessment, conclusions: Conclusions) -> Mapping[str, Any]:
    negative, positive = assessment.table.labels
    return header(
        assessment.options,
        rows=len(assessment.table),
        labels=assessment.labels,
        label_names={"0": negative, "1": positive},
        conclusions=asdict(conclusions),
        gaps=[asdict(gap) for gap in assessment.gaps],
        labels_needed=[
            _of_gap(each.gap, each, ("labels", "settled", "few", "enough", "remaining"))
            for each in assessment.needed
        ],
        sizes=[asdict(each) for each in assessment.sizes],
        impact=[asdict(each) for each in assessment.impact],
        decisions=_decisions(assessment),
        calibration=[_without_fit(each) for each in assessment.calibrations],
        checks=[
            {"attribute": each.attribute, "group": each.group, "calibrated_as_others": each.fit}
            for each in assessment.calibrations
            if not np.isnan(each.fit)
        ],
        stress=[asdict(each) for each in assessment.stresses],
        metrics=records(assessment.metrics),
        if_calibrated_alike=[] if assessment.assumed is None else records(assessment.assumed),
    )


def _decisions(assessment: Assessment) -> Mapping[str, Any]:
    thresholds, asked = assessment.thresholds, None
    if thresholds is not None and thresholds.constrained is not None:
        asked = asdict(thresholds.constrained)
    return {
        "thresholds": [] if thresholds is None else [asdict(each) for each in thresholds.table],
        "constraint": asked,
        "scores": [asdict(each) for each in assessment.scores],
    }


def _without_fit(each: GroupCalibration) -> dict[str, Any]:
    return {name: value for name, value in asdict(each).items() if name != "fit"}


def _of_gap(gap: Gap, about: object, names: Sequence[str]) -> dict[str, Any]:
    more = {name: getattr(about, name) for name in names}
    return {"attribute": gap.attribute, "metric": gap.metric, **more}
