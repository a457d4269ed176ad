"""The audit of a ranking as a document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from fairbench.audits.conclusions import Conclusions
from fairbench.audits.pages.decisions import density_panel, group_line, score_table
from fairbench.audits.pages.parts import MOST_LINES, MOST_ROWS, audit_of, header, starts
from fairbench.audits.pages.summary import summary_of
from fairbench.audits.ranking import (
    EXPOSURE,
    TOP,
    RankingAssessment,
    TopCurve,
    conclude_ranking,
    first_places,
)
from fairbench.inference.rates import Limits
from fairbench.reporting.charts import COLOURS, Panel, Series, chart
from fairbench.reporting.document.model import (
    Column,
    Document,
    ExecutiveSummary,
    Figure,
    Section,
    Table,
)


def ranking_document(assessment: RankingAssessment) -> Document:
    """Return an audit: shares of the first places and of exposure, and pictures of them."""
    conclusions = conclude_ranking(assessment)
    return audit_of(
        assessment.options,
        conclusions,
        _sections(assessment),
        _data(assessment, conclusions),
        summary=_summary(assessment, conclusions),
        pictures=[
            Section("Who is first", [_figure(each, assessment) for each in assessment.curves])
        ],
    )


def _summary(assessment: RankingAssessment, conclusions: Conclusions) -> ExecutiveSummary:
    plain = summary_of(assessment.options, conclusions, settle="rank more rows")
    unseen = "Whether scores are right was not looked at, only who stands where."
    return replace(plain, unseen=[*plain.unseen, unseen])


def _sections(assessment: RankingAssessment) -> Iterator[Section]:
    first = first_places(assessment.options.top, assessment.lists)
    yield Section(f"Among the {first}", [_table(assessment, TOP)])
    yield Section("Exposure", [_table(assessment, EXPOSURE)])
    yield Section("Scores by group", [score_table(assessment.scores, "score")])


def _table(assessment: RankingAssessment, kind: str) -> Table:
    columns = [
        Column("of", left_out=1),
        Column("group"),
        Column("rows", "count", left_out=2),
        Column("of rows", "number"),
        Column("share", "estimate"),
        Column("ratio", "number", decimals=2),
        Column("95 % interval", "interval", decimals=2),
        Column("P(<0.8)", "probability"),
    ]
    mine = [each for each in assessment.places if each.kind == kind]
    rows = [
        [
            each.attribute,
            each.group,
            each.rows,
            each.of_rows,
            each.share,
            each.ratio[0],
            each.ratio[1:],
            each.below,
        ]
        for each in mine
    ]
    what = "exposure" if kind == EXPOSURE else "first places"
    return Table(
        columns,
        rows,
        caption=(
            f"of rows: the group's share of all rows; share: of the {what}; ratio: of the two, 1 "
            "where a group gets as much as its share; P(<0.8): how sure it is that this is under "
            "four fifths"
        ),
        rules=starts([each.attribute for each in mine]),
        most=MOST_ROWS,
    )


def _figure(curve: TopCurve, assessment: RankingAssessment) -> Figure:
    shown = range(min(len(curve.groups), MOST_LINES))
    lines = [
        group_line(
            curve.groups[g],
            g,
            np.log10(curve.lengths),
            Limits(*(end[:, g] for end in curve.shares)),
        )
        for g in shown
    ]
    ends = np.log10(curve.lengths[[0, -1]])
    whole = [
        Series("", ends, curve.of_rows[[g, g]], COLOURS[g % len(COLOURS)], marked=False)
        for g in shown
    ]
    title = "log10 of how many places are the first"
    mine = [each for each in assessment.scores if each.attribute == curve.attribute]
    panels = [
        Panel([*lines, *whole], title, "share of the first places", from_zero="y"),
        density_panel(mine, "score"),
    ]
    first, *more = chart(panels, key=lines)
    return Figure(
        f"who is first, by {curve.attribute}",
        svg=first,
        more=more,
        caption=f"{curve.attribute}: shares of the first places, however many these are, with 95 % "
        "intervals (shaded); level lines are the shares of all rows",
    )


def _data(assessment: RankingAssessment, conclusions: Conclusions) -> Mapping[str, Any]:
    return header(
        assessment.options,
        rows=assessment.rows,
        lists=assessment.lists,
        conclusions=asdict(conclusions),
        ranking=[asdict(each) for each in assessment.places],
        scores=[asdict(each) for each in assessment.scores],
    )
