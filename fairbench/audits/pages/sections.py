"""The sections of an audit's page: gaps, pairs and rates, strata, decisions and thresholds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import isfinite
from typing import Any

import numpy as np

from fairbench.audits.assessment import Assessment, ThresholdCurves, attributes_with_small_groups
from fairbench.audits.direction import NEEDS_NO_LABELS, Direction
from fairbench.audits.gaps import Gap, StandardisedGap
from fairbench.audits.labels_needed import kind_of_labels
from fairbench.audits.question import RATIO
from fairbench.audits.sentences import STRICTER
from fairbench.core.text import count, interval, number, signed, two_digits
from fairbench.evaluation.by_group import (
    COMPARED_WITH,
    LARGE_ENOUGH,
    GroupScores,
    Row,
    is_given_reference,
)
from fairbench.evaluation.findings import NOT_MEASURED, OPEN
from fairbench.inference.gaps import FOUR_FIFTHS
from fairbench.inference.rates import Limits
from fairbench.metrics.registry import label
from fairbench.reporting.charts import Panel, chart
from fairbench.reporting.document.model import (
    Bar,
    Block,
    Column,
    Details,
    Figure,
    Items,
    Link,
    Paragraph,
    Section,
    Table,
    TableCell,
    Text,
)
from fairbench.reporting.group_tables import (
    MOST_LINES,
    MOST_ROWS,
    OF_GROUP,
    bars,
    density_panel,
    estimates,
    group_line,
    score_table,
    table_of,
)

_MAIN_RATES = {
    "selection_rate": "selected",
    "true_positive_rate": "TPR",
    "false_positive_rate": "FPR",
    "positive_predictive_value": "precision",
    "accuracy": "accuracy",
}
_PAIRS = "pairs"  # the place of a page with the pairs of groups that differ


def gaps_section(assessment: Assessment) -> Section:
    """Return the section of the gaps, and of how many labels would settle the open ones."""
    return Section("Gaps between groups", [_gaps(assessment), *_needed(assessment)])


def pairs_section(gaps: Sequence[Gap]) -> Iterator[Section]:
    """Yield the section of pairs of groups that differ, where by how much is open."""
    pairs = [
        (gap.attribute, gap.rate_name, high, low)
        for gap in gaps
        if _differ_somehow(gap)
        for high, low in gap.pairs
    ]
    if pairs:
        columns = [Column(title) for title in ("groups", "rate", "higher", "lower")]
        caption = (
            "Each row is a pair of groups that surely differ; by how much is open. These findings "
            "share the error rate of the page."
        )
        table = Table(columns, pairs, caption=caption, most=MOST_ROWS)
        yield Section("Pairs of groups that surely differ", [table], name=_PAIRS)


def rates_section(assessment: Assessment) -> Section:
    """Return the section of the rates of each group."""
    return Section("Rates by group", [_rates(assessment)])


def _gaps(assessment: Assessment) -> Table:
    """Return the table of gaps: size, interval, verdict, and what else applies to these rows."""
    epsilon = assessment.bounds.epsilon
    gaps = assessment.gaps
    bar_of = dict(
        zip(gaps, bars([(gap.lower, gap.value, gap.upper) for gap in gaps], epsilon), strict=True)
    )

    def size(gap: Gap) -> str:
        return signed(gap.value) if gap.signed else number(gap.value)

    def standard_error(gap: Gap) -> float | None:
        return gap.standard_error if gap.signed else None

    def by_noise(gap: Gap) -> float | None:
        return gap.noise if isfinite(gap.noise) else None

    def small(gap: Gap) -> float | None:
        # Of several groups it would follow from how little is known of each, not from the data.
        return gap.small if gap.signed or gap.assumed else None

    def verdict(gap: Gap) -> TableCell:
        mark = "assumed" if gap.assumed else gap.verdict
        after: Text = ""
        if _differ_somehow(gap):
            by_how_much = f": some groups differ, but no pair surely by {epsilon:g} or more: "
            after = (by_how_much, Link("see the pairs", f"#{_PAIRS}"))
        return TableCell(verdict_text(gap), mark=mark, after=after)

    columns: list[tuple[Any, Column]] = [
        ("attribute", Column("groups")),
        ("rate_name", Column("gap in")),
        (size, Column("size", right=True)),
    ]
    if assessment.of_decisions:
        columns.append((standard_error, Column("standard error", "number", decimals=4)))
    if any(isfinite(gap.noise) for gap in gaps):
        columns.append((by_noise, Column("by noise", "number", left_out=1)))
    columns += [
        (("lower", "upper"), Column("95 % interval", "interval")),
        (bar_of.get, Column("", "bar")),
    ]
    if assessment.assumed is not None:
        column = Column("if calibrated alike", "interval", left_out=2)
        columns.append((lambda gap: gap.supposed[1:], column))
    columns += [
        (small, Column(f"P(<{epsilon:g})", "probability", left_out=1)),
        (verdict, Column("verdict")),
    ]
    return table_of(gaps, columns, caption=_gaps_caption(assessment), reading=_reading(assessment))


_ALIKE = (
    " if calibrated alike: the interval that follows if scores are as right in every group as in "
    "the others; no verdict rests on it."
)


def _gaps_caption(assessment: Assessment) -> str:
    """Return the caption of the table of gaps."""
    caption = (
        "size: the largest difference between two groups; where there are only two, the second's "
        "rate minus the first's."
    )
    if any(isfinite(gap.noise) for gap in assessment.gaps):
        caption += " by noise: how large it would be on average if all groups were alike."
    if any(gap.verdict == OPEN for gap in assessment.gaps):
        caption += f" A gap can be open although its interval lies beyond the bound: {STRICTER}"
    if assessment.assumed is not None:
        caption += _ALIKE
    return caption


def _reading(assessment: Assessment) -> str:
    """Return how to read the table of gaps."""
    reading = (
        "Largest difference between two groups, which noise alone makes larger among many. Shaded: "
        f"less than {assessment.bounds.epsilon:g} either way. Large: one group is surely ahead of "
        "another by more; small: none is."
    )
    if assessment.assumed is not None:
        reading += _ALIKE
    return reading


def verdict_text(gap: Gap) -> str:
    """Return a verdict for a table."""
    if gap.verdict == NOT_MEASURED:
        return "the same by construction" if gap.fixed else "too few rows"
    if gap.assumed and gap.verdict != OPEN:
        return f"{gap.verdict} if scores are right"
    return gap.verdict


def _differ_somehow(gap: Gap) -> bool:
    """Say whether groups surely differ, while it is open between whom by how much."""
    return gap.verdict == OPEN and not gap.signed and not gap.assumed and bool(gap.pairs)


def _needed(assessment: Assessment) -> Iterator[Details]:
    """Yield how many more labels settle the open gaps, and what each number supposes."""
    labels, rows = assessment.labels, len(assessment.table)
    most = rows - labels or rows
    table = [
        (gap.attribute, gap.rate_name, supposed, f">{count(most)}" if n is None else two_digits(n))
        for gap in assessment.gaps
        for supposed, n in gap.needed.items()
    ]
    if table:
        kind = kind_of_labels(labels, rows)
        columns = [Column(title) for title in ("groups", "gap in", "supposed")]
        columns.append(Column(kind, right=True))
        caption = (
            f"{kind}: how many, at random among all, settle the verdict with a probability of 80 % "
            "if the true gap is as supposed. It takes more the nearer the gap is to the bound."
        )
        yield Details("What would settle what is open", [Table(columns, table, caption=caption)])


def _rates(assessment: Assessment) -> Table:
    """Return the table of each group's size and main rates."""
    labelled = not assessment.of_decisions
    selected = assessment.table.direction.rate_names[NEEDS_NO_LABELS].removeprefix("share ")
    selection = {"selection_rate": selected.replace("selection rate", "selected")}
    main = {**_MAIN_RATES, **selection} if labelled else selection
    values = estimates(assessment.metrics, main)
    return table_of(
        assessment.sizes,
        [
            *OF_GROUP,
            ("rows", Column("rows", "count")),
            *([("labels", Column("labels", "count"))] if labelled else []),
            *(
                (lambda row, name=name: values.get((*_key(row), name)), Column(title, "estimate"))
                for name, title in main.items()
            ),
        ],
        most=MOST_ROWS,
    )


def _key(row: Row) -> tuple[str, str]:
    return row["attribute"], row["group"]


_WEIGHTS = (
    "Each stratum counts by its share of all people that the rate is of (everyone, or those with "
    "label 1 for the true positive rate, with label 0 for the false positive rate, predicted 1 for "
    "precision), in every group alike. Strata without rows of both groups are left out of a pair, "
    "and the shares of the others add up to 1."
)


def within_section(
    gaps: Sequence[StandardisedGap], raw: Sequence[Gap], same: str, epsilon: float
) -> Iterator[Section]:
    """Yield the section, where gaps within strata were asked for.

    Parameters
    ----------
    gaps : the gaps over one mix of strata.
    raw : the gaps of everyone, without regard to strata, shown for comparison.
    same : what people of one stratum have in common.
    epsilon : the gap that matters.
    """
    if not gaps:
        return
    blocks: list[Block] = [_standardised(gaps, raw, epsilon)]
    if reversed_ := list(_reversed(gaps, raw)):
        blocks.append(Items(reversed_))
    blocks += [_strata(gap, epsilon) for gap in gaps if gap.metric == NEEDS_NO_LABELS]
    if others := [gap for gap in gaps if gap.metric != NEEDS_NO_LABELS]:
        tables = [_strata(gap, epsilon) for gap in others]
        blocks.append(Details("Other rates in each stratum", tables))
    yield Section(f"Among people of the same {same}", blocks)


def _standardised(gaps: Sequence[StandardisedGap], raw: Sequence[Gap], epsilon: float) -> Table:
    """Return the table of gaps over one mix of strata, with those of everyone for comparison."""
    of_everyone = {(gap.attribute, gap.metric): gap for gap in raw}
    drawn_bars = bars([(gap.lower, gap.value, gap.upper) for gap in gaps], epsilon)
    bar_of = dict(zip(gaps, drawn_bars, strict=True))

    def size(gap: StandardisedGap | Gap) -> str:
        return signed(gap.value) if gap.signed else number(gap.value)

    def raw_size(gap: StandardisedGap) -> str:
        return size(of_everyone[gap.attribute, gap.metric])

    def verdict(gap: StandardisedGap) -> TableCell:
        text = "too few rows" if gap.verdict == NOT_MEASURED else gap.verdict
        return TableCell(text, mark=gap.verdict)

    return table_of(
        gaps,
        [
            ("attribute", Column("groups")),
            ("rate_name", Column("gap in")),
            (raw_size, Column("of everyone", right=True)),
            (size, Column("standardised", right=True)),
            (("lower", "upper"), Column("95 % interval", "interval")),
            (bar_of.get, Column("", "bar")),
            (verdict, Column("verdict")),
        ],
        caption=(
            "standardised: the mean of the differences in each stratum, by the strata's shares of "
            "all people; of everyone: without regard to strata"
        ),
        reading=_WEIGHTS,
    )


def _reversed(gaps: Sequence[StandardisedGap], raw: Sequence[Gap]) -> Iterator[str]:
    """Yield where a difference of two groups is the other way round within strata."""
    of_everyone = {(gap.attribute, gap.metric): gap for gap in raw}
    for gap in gaps:
        raw_gap = of_everyone[gap.attribute, gap.metric]
        if not (gap.signed and raw_gap.signed):
            continue
        is_reversed = gap.value * raw_gap.value < 0
        if is_reversed and min(abs(gap.value), abs(raw_gap.value)) >= 0.01:
            yield (
                f"In these rows the difference in {gap.rate_name} by {gap.attribute} is "
                f"{signed(raw_gap.value)} of everyone and {signed(gap.value)} within strata: the "
                "groups are spread over strata differently (Simpson's paradox)."
            )


def _strata(gap: StandardisedGap, epsilon: float) -> Table:
    """Return the table of one gap in each stratum."""
    pairs = {(row["low"], row["high"]) for row in gap.strata if row["low"]}
    is_signed = len(pairs) == 1 and gap.signed
    drawn = bars([(row["lower"], row["value"], row["upper"]) for row in gap.strata], epsilon)

    def rate(name: str, index: int) -> Callable[[Row], str]:
        """Return the function that writes the lower (0) or the higher (1) rate of a stratum."""

        def cell(row: Row) -> str:
            if not row["low"]:
                return "one group alone" if index == 0 else ""
            text = number(row["rates"][index])
            return text if is_signed else f"{text} ({row[name]})"

        return cell

    def size(row: Row) -> str:
        return signed(row["value"]) if is_signed else number(row["value"])

    def limits(row: Row) -> TableCell | None:
        few = f" (n={row['smallest']})" if row["smallest"] < gap.minimum else ""
        return TableCell((row["lower"], row["upper"]), after=few) if row["low"] else None

    titles = next(iter(pairs)) if is_signed else ("lowest", "highest")
    return table_of(
        [{**row, "bar": bar} for row, bar in zip(gap.strata, drawn, strict=True)],
        [
            ("stratum", Column(gap.within)),
            (lambda row: 100 * row["weight"], Column("weight, %", "number", decimals=1)),
            ("rows", Column("rows", "count")),
            (rate("low", 0), Column(titles[0], right=True)),
            (rate("high", 1), Column(titles[1], right=True)),
            (size, Column("difference", right=True)),
            (limits, Column("95 % interval", "interval")),
            ("bar", Column("", "bar")),
        ],
        by="",
        title=f"{gap.rate_name} by {gap.attribute}, in each stratum",
        caption=(
            "weight: the stratum's share of all people that the rate is of; n: rows of the "
            f"smallest group there, where it has under {gap.minimum}"
        ),
        most=MOST_ROWS,
    )


_LARGEST = 2.0  # of the ratios that a bar has room for


def impact_blocks(assessment: Assessment) -> Iterator[Block]:
    """Yield the impact ratios of every group, with whom they compare."""
    everyone = assessment.table.everyone or assessment.table
    ratios = assessment.impact
    granted = everyone.granted
    named_group = "the group named by reference="
    highest_group = f"the group {granted} most often"
    are_given = {ratio["given"] for ratio in ratios}
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
                lambda row: None if is_given_reference(row) else (row["lower"], row["upper"]),
                Column("95 % interval", "interval", decimals=2),
            ),
            (_ratio_bar, Column("", "bar")),
            (
                lambda row: None if is_given_reference(row) else row["below"],
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


def _ratio_bar(row: Row) -> Bar | None:
    """Return a ratio on a scale from 0 to 2; beyond, it is cut off."""
    if np.isnan(row["ratio"]):
        return None
    ratios = (row["lower"], row["ratio"], row["upper"], FOUR_FIFTHS, 1, 1 / FOUR_FIFTHS)
    lower, value, upper, band_start, equal, band_end = (
        round(100 * min(end, _LARGEST) / _LARGEST, 1) for end in ratios
    )
    return Bar((lower, value, upper), band=(band_start, band_end), zero=equal)


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

    def against_reference(row: Row, name: str, sign: int) -> tuple[float, ...]:
        """Return the interval of a difference from the reference, of the other sign if asked."""
        return tuple(
            sorted(sign * end for end in values.get((*_key(row), name), (np.nan,) * 3)[1:])
        )

    wrongly_1, wrongly_0, more_wrongly_1, fewer_wrongly_0 = _ERRORS
    return table_of(
        [size for size in assessment.sizes if _key(size) in measured],
        [
            *OF_GROUP,
            (lambda row: values.get((*_key(row), wrongly_1)), Column("FPR", "estimate")),
            (
                lambda row: against_reference(row, more_wrongly_1, 1),
                Column("more than reference", "interval"),
            ),
            (lambda row: values.get((*_key(row), wrongly_0)), Column("FNR", "estimate")),
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
        [row for row in assessment.calibrations if not np.isnan(row["excess"])],
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


def _constrained(chosen: Row, today: float, direction: Direction) -> Iterator[Block]:
    """Yield the threshold that a constraint asks for, and how it does on the other rows."""
    asked = asked_of_threshold(chosen, direction)
    rows, others = map(count, chosen["rows"])
    threshold = chosen["threshold"]
    if np.isnan(threshold):
        yield Paragraph(f"At no threshold {asked} on the {rows} rows that were looked at.")
        return
    if threshold == today:
        start = f"At the threshold of today, {today:g}, {asked}"
    else:
        start = f"{threshold:.4g} is the threshold nearest to {today:g} at which {asked}"
    changes = f"{chosen['changed']:.1%} of the other {others} rows would be decided otherwise."
    accuracy = ""
    if not np.isnan(chosen["accuracy"][0]):
        was, now = (
            f"{number(value)} ({interval(lower, upper)})"
            for value, lower, upper in (chosen["accuracy_before"], chosen["accuracy"])
        )
        accuracy = f" Accuracy would be {now} in place of {was}."
    yield Paragraph(f"{start}, on {rows} rows chosen at random. {changes}{accuracy}")
    words = {True: "surely", False: "surely not", None: "open"}
    yield table_of(
        chosen["judged"],
        [
            ("attribute", Column("of")),
            ("chosen", Column("there", "number")),
            ("value", Column("on other rows", "number")),
            (("lower", "upper"), Column("95 % interval", "interval")),
            ("before", Column("today", "number")),
            (lambda row: words[row["holds"]], Column("holds")),
        ],
        caption=(
            "there: on the rows that the threshold was chosen on, which flatters it; the others "
            "judge it"
        ),
        by="",
    )


def asked_of_threshold(chosen: Row, direction: Direction) -> str:
    """Return what a constraint asks of a threshold, in words."""
    bound = f"{chosen['bound']:g}"
    if chosen["constraint"] == RATIO:
        return (
            f"the smallest share {direction.granted} of a group is at least {bound} of the largest"
        )
    return (
        f"no two groups differ by more than {bound} in {direction.rate_name(chosen['constraint'])}"
    )


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
