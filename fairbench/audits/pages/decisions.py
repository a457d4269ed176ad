"""What an audit shows of each group's decisions, errors and scores, and of other thresholds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from fairbench.audits.assessment import Assessment
from fairbench.audits.impact import ImpactRatio, unfavourable_is_1
from fairbench.audits.pages.parts import MOST_LINES, MOST_ROWS, estimates, starts
from fairbench.audits.question import RATIO
from fairbench.audits.score_distributions import GroupScores
from fairbench.audits.thresholds import (
    AtThreshold,
    ConstrainedThreshold,
    JudgedConstraint,
    ThresholdCurves,
)
from fairbench.core.formats import count, interval, number
from fairbench.inference.impact import FOUR_FIFTHS
from fairbench.inference.rates import Limits
from fairbench.metrics.registry import label
from fairbench.reporting.charts import COLOURS, Panel, Series, chart
from fairbench.reporting.document.model import (
    Bar,
    Block,
    Column,
    Figure,
    Items,
    Paragraph,
    Section,
    Table,
    TableCell,
)

_LARGEST = 2.0  # of the ratios that a bar has room for
Floats = NDArray[np.float64]


def impact_blocks(assessment: Assessment) -> Iterator[Block]:
    """Yield the impact ratios of every group, with whom they compare."""
    ratios = assessment.impact
    yield _impact_table(ratios)
    if unfavourable_is_1(assessment.table, assessment.options):
        no, yes = assessment.table.labels
        said = (
            f"Selected is here who gets '{no}', which is favourable; in the tables of gaps and "
            f"rates, the selection rate is the share of '{yes}'."
        )
        yield Items([said])


def _impact_table(ratios: Sequence[ImpactRatio]) -> Table:
    columns = [
        Column("of", left_out=1),
        Column("group"),
        Column("rows", "count", left_out=2),
        Column("selected", "estimate"),
        Column("ratio", "number", decimals=2),
        Column("95 % interval", "interval", decimals=2),
        Column("", "bar"),
        Column("P(<0.8)", "probability"),
    ]
    rows = []
    for each in ratios:
        alone = each.is_given_reference
        ends = None if alone else (each.lower, each.upper)
        selected = (each.rate, each.rate_lower, each.rate_upper)
        start = [each.attribute, each.group, each.rows, selected, each.ratio]
        rows.append([*start, ends, _ratio_bar(each), None if alone else each.below])
    whom = _whom(ratios)
    return Table(
        columns,
        rows,
        caption=(
            f"ratio: the share selected over that of {whom}; P(<0.8): how sure it is that the "
            "ratio is under four fifths"
        ),
        reading=(
            f"{_allows(ratios)}P(<0.8) is 97.5 % where the interval ends at 0.8; it assumes only "
            "that the rows are a sample of the people asked about. Shaded: from four fifths to its "
            "inverse."
        ),
        rules=starts([each.attribute for each in ratios]),
        most=MOST_ROWS,
    )


def _whom(ratios: Sequence[ImpactRatio]) -> str:
    named, most = "the group named by reference=", "the group selected most often"
    given = {each.given for each in ratios}
    if len(given) == 2:
        return f"{named}, or else of {most}"
    return named if given == {True} else most


def _allows(ratios: Sequence[ImpactRatio]) -> str:
    if all(each.given for each in ratios):
        return ""
    return (
        "Which group truly is selected most often is not known of a sample; the interval allows "
        "for each. Nobody is compared with a group of under 10 rows or under 2 % of them. "
    )


def _ratio_bar(ratio: ImpactRatio) -> Bar | None:
    """Return a ratio on a scale from 0 to 2; beyond, it is cut off."""
    if np.isnan(ratio.ratio):
        return None
    ends = (1.0, 1.0) if ratio.is_given_reference else (ratio.lower, ratio.upper)
    lower, value, upper, low, one, high = (
        round(100 * min(each, _LARGEST) / _LARGEST, 1)
        for each in (ends[0], ratio.ratio, ends[1], FOUR_FIFTHS, 1, 1 / FOUR_FIFTHS)
    )
    return Bar(lower, value, upper, band=(low, high), zero=one)


def decision_sections(assessment: Assessment) -> Iterator[Section]:
    """Yield the errors and scores of each group, and what other thresholds would decide."""
    errors = _errors(assessment)
    if errors.rows:
        yield Section("Errors by group", [errors])
    thresholds = assessment.thresholds
    if thresholds is not None and thresholds.table:
        blocks: list[Block] = [_threshold_table(thresholds.table)]
        if thresholds.constrained is not None:
            blocks += _constrained(thresholds.constrained, assessment.options.threshold)
        blocks += [_curve_figure(each, assessment.scores) for each in thresholds.curves]
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
    rows = []
    for each in assessment.sizes:
        positives, negatives, positive, negative = (
            values.get((*each.key, name)) for name in _ERRORS
        )
        if positives is None and negatives is None:
            continue
        rows.append(
            [
                each.attribute,
                each.group,
                positives,
                None if positive is None else positive[1:],
                negatives,
                None if negative is None else (-negative[2], -negative[1]),
            ]
        )
    columns = [
        Column("of", left_out=1),
        Column("group"),
        Column("FPR", "estimate"),
        Column("more than reference", "interval"),
        Column("FNR", "estimate"),
        Column("more than reference", "interval"),
    ]
    zero, one = assessment.table.labels
    return Table(
        columns,
        rows,
        caption=(
            f"FPR: of those whose label is '{zero}', the share predicted '{one}'; FNR: of those "
            f"whose label is '{one}', the share predicted '{zero}'; more than reference: 95 % "
            "interval of the difference from the attribute's first group"
        ),
        rules=starts([str(row[0]) for row in rows]),
        most=MOST_ROWS,
    )


def calibration_table(assessment: Assessment) -> Table:
    """Return by how much the scores of each group are too high on average."""
    shown = [each for each in assessment.calibrations if not np.isnan(each.excess)]
    columns = [Column("of", left_out=1), Column("group"), Column("labels", "count")]
    columns += [Column("mean score", "number"), Column("share of label 1", "number")]
    columns += [Column("excess", "signed"), Column("95 % interval", "interval")]
    rows = [
        [
            each.attribute,
            each.group,
            each.labels,
            each.score,
            each.share,
            each.excess,
            (each.lower, each.upper),
        ]
        for each in shown
    ]
    return Table(
        columns,
        rows,
        caption="excess: the mean score less the share; scores are too high where it is above 0",
        rules=starts([each.attribute for each in shown]),
        most=MOST_ROWS,
    )


def _threshold_table(steps: Sequence[AtThreshold]) -> Table:
    columns = [
        Column("of"),
        Column("threshold", right=True),
        Column("selected", "percent"),
        Column("ratio", "number", decimals=2),
        Column("95 % interval", "interval", decimals=2),
        Column("gap", "number"),
        Column("95 % interval", "interval"),
    ]
    rows = [
        [
            each.attribute,
            TableCell(f"{each.threshold:.3g}", before="now " * each.current, strong=each.current),
            each.selected,
            each.ratio,
            (each.ratio_lower, each.ratio_upper),
            each.gap,
            (each.gap_lower, each.gap_upper),
        ]
        for each in steps
    ]
    return Table(
        columns,
        rows,
        caption=(
            "selected: of everyone, in percent; ratio: the smallest selection rate of a group over "
            "the largest; gap: the largest less the smallest; of groups of at least 10 rows and "
            "2 % of them"
        ),
        rules=starts([each.attribute for each in steps]),
    )


def _constrained(found: ConstrainedThreshold, today: float) -> Iterator[Block]:
    """Yield the threshold that a constraint asks for, and how it does on the other rows."""
    asked = asked_of_threshold(found)
    chosen, others = map(count, found.rows)
    if np.isnan(found.threshold):
        yield Paragraph(f"At no threshold {asked} on the {chosen} rows that were looked at.")
        return
    if found.threshold == today:
        start = f"At the threshold of today, {today:g}, {asked}"
    else:
        start = f"{found.threshold:.4g} is the threshold nearest to {today:g} at which {asked}"
    changes = f"{found.changed:.1%} of the other {others} rows would be decided otherwise."
    accuracy = ""
    if not np.isnan(found.accuracy[0]):
        was, now = (f"{number(v)} ({interval(a, b)})" for v, a, b in (
            found.accuracy_before, found.accuracy))  # fmt: skip
        accuracy = f" Accuracy would be {now} in place of {was}."
    yield Paragraph(f"{start}, on {chosen} rows chosen at random. {changes}{accuracy}")
    columns = [
        Column("of"),
        Column("there", "number"),
        Column("on other rows", "number"),
        Column("95 % interval", "interval"),
        Column("today", "number"),
        Column("holds"),
    ]
    rows = [
        [
            each.attribute,
            each.chosen,
            each.value,
            (each.lower, each.upper),
            each.before,
            _holds(each),
        ]
        for each in found.judged
    ]
    yield Table(
        columns,
        rows,
        caption=(
            "there: on the rows that the threshold was chosen on, which flatters it; the others "
            "judge it"
        ),
    )


def asked_of_threshold(found: ConstrainedThreshold) -> str:
    """Return what a constraint asks of a threshold, in words."""
    if found.constraint == RATIO:
        return f"the smallest selection rate of a group is at least {found.bound:g} of the largest"
    return f"no two groups differ by more than {found.bound:g} in {label(found.constraint)}"


def _holds(each: JudgedConstraint) -> str:
    return {True: "surely", False: "surely not", None: "open"}[each.holds]


def _curve_figure(curves: ThresholdCurves, scores: Sequence[GroupScores]) -> Figure:
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
    mine = [each for each in scores if each.attribute == curves.attribute]
    first, *more = chart([*panels, density_panel(mine, "score")], key=panels[0].series)
    return Figure(
        f"what every threshold would decide, by {curves.attribute}",
        svg=first,
        more=more,
        caption=f"{curves.attribute}: who would be selected and who would err at every threshold, "
        "with the 95 % interval of each group by itself (shaded), and how scores are distributed",
    )


def group_line(name: str, g: int, x: Floats, y: Floats | Limits, *, marked: bool = False) -> Series:
    """Return the line of the g-th group, with a band where it has intervals."""
    value, band = y, None
    if isinstance(y, Limits):
        value, band = y.value, (y.value - y.lower, y.upper - y.value)
    colour = COLOURS[g % len(COLOURS)]
    return Series(name, x, value, colour, shape=g, marked=marked, dashed=g, band=band)


def density_panel(scores: Sequence[GroupScores], what: str) -> Panel:
    """Return how often each score occurs in the groups of one attribute."""
    corners = np.repeat(scores[0].edges, 2)[1:-1]
    lines = [
        group_line(each.group, g, corners, np.repeat(each.density, 2))
        for g, each in enumerate(scores[:MOST_LINES])
    ]
    return Panel(lines, what, "share of the group", from_zero="y")


def score_table(scores: Sequence[GroupScores], what: str) -> Table:
    """Return means and quantiles of the scores of every group.

    Parameters
    ----------
    what : what a score is called.
    """
    columns = [
        Column("of", left_out=2),
        Column("group"),
        Column("rows", "count", left_out=3),
        Column("mean", "number"),
        Column("95 % interval", "interval"),
        Column("less reference's", "interval"),
        *[Column(f"{title} %", "number", left_out=1) for title in (10, 50, 90)],
    ]
    rows = [
        [
            each.attribute,
            each.group,
            each.rows,
            each.mean[0],
            each.mean[1:],
            each.difference[1:],
            *each.quantiles,
        ]
        for each in scores
    ]
    return Table(
        columns,
        rows,
        caption=(
            "less reference's: 95 % interval of the mean less that of the first group; 10, 50, "
            f"90 %: so many of the group's {what}s are at most this"
        ),
        rules=starts([each.attribute for each in scores]),
        most=MOST_ROWS,
    )
