"""What an audit shows of each group's decisions, errors and scores, and of other thresholds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from fairbench.audits.assessment import Assessment, Size
from fairbench.audits.direction import Direction
from fairbench.audits.impact import attributes_with_small_groups
from fairbench.audits.question import RATIO
from fairbench.audits.thresholds import ConstrainedThreshold, ThresholdCurves
from fairbench.core.formats import count, interval, number
from fairbench.evaluation.impact_ratios import COMPARED_WITH, LARGE_ENOUGH, ImpactRatio
from fairbench.evaluation.score_distributions import GroupScores
from fairbench.inference.impact import FOUR_FIFTHS
from fairbench.inference.rates import Limits
from fairbench.metrics.registry import label
from fairbench.reporting.charts import Panel, chart
from fairbench.reporting.document.model import (
    Bar,
    Block,
    Column,
    Figure,
    Paragraph,
    Section,
    Table,
    TableCell,
)
from fairbench.reporting.group_tables import (
    MOST_LINES,
    MOST_ROWS,
    OF_GROUP,
    density_panel,
    estimates,
    group_line,
    score_table,
    table_of,
)

_LARGEST = 2.0  # of the ratios that a bar has room for


def impact_blocks(assessment: Assessment) -> Iterator[Block]:
    """Yield the impact ratios of every group, with whom they compare."""
    everyone = assessment.table.everyone or assessment.table
    ratios = assessment.impact
    granted = everyone.granted
    named_group = "the group named by reference="
    highest_group = f"the group {granted} most often"
    are_given = {ratio.given for ratio in ratios}
    if len(are_given) == 2:
        reference = f"{named_group}, or else of {highest_group}"
    else:
        reference = named_group if True in are_given else highest_group
    allowance = ""
    if False in are_given:
        allowance = (
            f"Which group truly is {granted} most often is not known of a sample; the interval "
            "allows for each. "
        )
        if attributes_with_small_groups(ratios):
            allowance += f"{COMPARED_WITH} "
    yield table_of(
        ratios,
        [
            *OF_GROUP,
            ("rows", Column("rows", "count", left_out=2)),
            (("rate", "rate_lower", "rate_upper"), Column(granted, "estimate")),
            ("ratio", Column("ratio", "number", decimals=2)),
            (
                lambda row: None if row.is_given_reference else (row.lower, row.upper),
                Column("95 % interval", "interval", decimals=2),
            ),
            (_ratio_bar, Column("", "bar")),
            (
                lambda row: None if row.is_given_reference else row.below,
                Column("P(<0.8)", "probability"),
            ),
        ],
        caption=(
            f"ratio: the share {granted} over that of {reference}; P(<0.8): how sure it is that "
            "the ratio is under four fifths"
        ),
        reading=(
            f"{allowance}P(<0.8) is 97.5 % where the interval ends at 0.8; it "
            "assumes only that the rows are a sample of the people asked about. Shaded: from four "
            "fifths to its inverse."
        ),
        most=MOST_ROWS,
    )


def _ratio_bar(ratio: ImpactRatio) -> Bar | None:
    """Return a ratio on a scale from 0 to 2; beyond, it is cut off."""
    if np.isnan(ratio.ratio):
        return None
    ratios = (ratio.lower, ratio.ratio, ratio.upper, FOUR_FIFTHS, 1, 1 / FOUR_FIFTHS)
    lower, value, upper, band_start, equal, band_end = (
        round(100 * min(end, _LARGEST) / _LARGEST, 1) for end in ratios
    )
    return Bar(lower, value, upper, band=(band_start, band_end), zero=equal)


def decision_sections(assessment: Assessment) -> Iterator[Section]:
    """Yield the errors and scores of each group, and what other thresholds would decide."""
    errors = _errors(assessment)
    if errors.rows:
        yield Section("Errors by group", [errors])
    thresholds = assessment.thresholds
    granted = assessment.table.direction.granted
    if len(thresholds.table):
        steps = table_of(
            thresholds.table.to_dict("records"),
            [
                ("attribute", Column("of")),
                (
                    lambda row: TableCell(
                        f"{row['threshold']:.3g}",
                        before="now " if row["current"] else "",
                        strong=row["current"],
                    ),
                    Column("threshold", right=True),
                ),
                ("selected", Column(granted, "percent")),
                ("ratio", Column("ratio", "number", decimals=2)),
                (("ratio_lower", "ratio_upper"), Column("95 % interval", "interval", decimals=2)),
                ("gap", Column("gap", "number")),
                (("gap_lower", "gap_upper"), Column("95 % interval", "interval")),
            ],
            caption=(
                f"{granted}: of everyone, in percent; ratio: the smallest share {granted} of a "
                "group over the largest; gap: the largest less the smallest; of the groups "
                f"{LARGE_ENOUGH}, where there are two such groups"
            ),
        )
        blocks: list[Block] = [steps]
        if thresholds.constrained is not None:
            blocks += _constrained(
                thresholds.constrained, assessment.options.threshold, assessment.table.direction
            )
        blocks += [
            _curve_figure(curves, assessment.scores, granted) for curves in thresholds.curves
        ]
        yield Section("Other thresholds", blocks)
    if assessment.scores:
        yield Section("Scores by group", [score_table(assessment.scores, "score")])


_ERRORS = (
    *("false_positive_rate", "false_negative_rate"),
    *("false_positive_rate_difference", "equal_opportunity_difference"),
)


def _errors(assessment: Assessment) -> Table:
    """Return both kinds of error of every group, and their differences from the reference."""
    values = estimates(assessment.metrics, _ERRORS)
    negative, positive = assessment.table.labels
    measured = {(attribute, group) for attribute, group, name in values if name in _ERRORS[:2]}

    def against_reference(row: Size, name: str, sign: int) -> tuple[float, ...]:
        """Return the interval of a difference from the reference, of the other sign if asked."""
        return tuple(sorted(sign * end for end in values.get((*row.key, name), (np.nan,) * 3)[1:]))

    wrongly_1, wrongly_0, more_wrongly_1, fewer_wrongly_0 = _ERRORS
    return table_of(
        [size for size in assessment.sizes if size.key in measured],
        [
            *OF_GROUP,
            (lambda row: values.get((*row.key, wrongly_1)), Column("FPR", "estimate")),
            (
                lambda row: against_reference(row, more_wrongly_1, 1),
                Column("more than reference", "interval"),
            ),
            (lambda row: values.get((*row.key, wrongly_0)), Column("FNR", "estimate")),
            (
                lambda row: against_reference(row, fewer_wrongly_0, -1),
                Column("more than reference", "interval"),
            ),
        ],
        caption=(
            f"FPR: of those whose label is '{negative}', the share predicted '{positive}'; FNR: of "
            f"those whose label is '{positive}', the share predicted '{negative}'; more than "
            "reference: 95 % interval of the difference from the attribute's first group"
        ),
        most=MOST_ROWS,
    )


def calibration_table(assessment: Assessment) -> Table:
    """Return by how much the scores of each group are too high on average."""
    return table_of(
        [row for row in assessment.calibrations if not np.isnan(row.excess)],
        [
            *OF_GROUP,
            ("labels", Column("labels", "count")),
            ("score", Column("mean score", "number")),
            ("share", Column("share of label 1", "number")),
            ("excess", Column("excess", "signed")),
            (("lower", "upper"), Column("95 % interval", "interval")),
        ],
        caption="excess: the mean score less the share; scores are too high where it is above 0",
        most=MOST_ROWS,
    )


def _constrained(
    chosen: ConstrainedThreshold, today: float, direction: Direction
) -> Iterator[Block]:
    """Yield the threshold that a constraint asks for, and how it does on the other rows."""
    asked = asked_of_threshold(chosen, direction)
    rows, others = count(chosen.rows.chosen_on), count(chosen.rows.judged_on)
    if np.isnan(chosen.threshold):
        yield Paragraph(f"At no threshold {asked} on the {rows} rows that were looked at.")
        return
    if chosen.threshold == today:
        start = f"At the threshold of today, {today:g}, {asked}"
    else:
        start = f"{chosen.threshold:.4g} is the threshold nearest to {today:g} at which {asked}"
    changes = f"{chosen.changed:.1%} of the other {others} rows would be decided otherwise."
    accuracy = ""
    if not np.isnan(chosen.accuracy[0]):
        was, now = (
            f"{number(value)} ({interval(lower, upper)})"
            for value, lower, upper in (chosen.accuracy_before, chosen.accuracy)
        )
        accuracy = f" Accuracy would be {now} in place of {was}."
    yield Paragraph(f"{start}, on {rows} rows chosen at random. {changes}{accuracy}")
    words = {True: "surely", False: "surely not", None: "open"}
    yield table_of(
        chosen.judged,
        [
            ("attribute", Column("of")),
            ("chosen", Column("there", "number")),
            ("value", Column("on other rows", "number")),
            (("lower", "upper"), Column("95 % interval", "interval")),
            ("before", Column("today", "number")),
            (lambda row: words[row.holds], Column("holds")),
        ],
        caption=(
            "there: on the rows that the threshold was chosen on, which flatters it; the others "
            "judge it"
        ),
        by="",
    )


def asked_of_threshold(chosen: ConstrainedThreshold, direction: Direction) -> str:
    """Return what a constraint asks of a threshold, in words."""
    bound = f"{chosen.bound:g}"
    if chosen.constraint == RATIO:
        return (
            f"the smallest share {direction.granted} of a group is at least {bound} of the largest"
        )
    return f"no two groups differ by more than {bound} in {direction.rate_name(chosen.constraint)}"


def _curve_figure(curves: ThresholdCurves, scores: Sequence[GroupScores], granted: str) -> Figure:
    """Return rates of an attribute's largest groups at all thresholds, and their scores."""
    panels = [
        Panel(
            [
                group_line(name, g, curves.thresholds, Limits(*(end[:, g] for end in limits)))
                for g, name in enumerate(curves.groups[:MOST_LINES])
            ],
            "threshold",
            label(rate),
            from_zero="y",
        )
        for rate, limits in curves.rates.items()
    ]
    of_attribute = [group for group in scores if group.attribute == curves.attribute]
    first, *more = chart([*panels, density_panel(of_attribute, "score")], key=panels[0].series)
    return Figure(
        f"what every threshold would decide, by {curves.attribute}",
        svg=first,
        more=more,
        caption=f"{curves.attribute}: who would be {granted} and who would err at every threshold, "
        "with the 95 % interval of each group by itself (shaded), and how scores are distributed",
    )
