"""The page of an audit of two classes: its sections, and the pictures of its groups.

Which sections there are, and in which order, is up to `sections_of`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from math import isfinite
from typing import Any

import numpy as np

from fairbench.audits.assessment import Assessment, ThresholdCurves, attributes_with_small_groups
from fairbench.audits.direction import NEEDS_NO_LABELS, RATE_OF, Direction
from fairbench.audits.gaps import Gap, StandardisedGap, shared_traits
from fairbench.audits.labels_needed import kind_of_labels
from fairbench.audits.question import RATIO
from fairbench.audits.report import compared_with
from fairbench.core.text import count, interval, number, signed, two_digits
from fairbench.evaluation.by_group import COMPARED_WITH, LARGE_ENOUGH, Row, is_given_reference
from fairbench.evaluation.findings import NOT_MEASURED, OPEN
from fairbench.inference.gaps import FOUR_FIFTHS
from fairbench.inference.rates import Limits
from fairbench.metrics.registry import label
from fairbench.reporting import group_tables as tables
from fairbench.reporting.charts import NAN, Panel, chart, forest
from fairbench.reporting.document.model import (
    Bar,
    Block,
    Column,
    Details,
    Figure,
    Gallery,
    Items,
    Link,
    Paragraph,
    Section,
    Table,
    TableCell,
    Text,
)

_MAIN_RATES = {
    "selection_rate": "selected",
    "true_positive_rate": "TPR",
    "false_positive_rate": "FPR",
    "positive_predictive_value": "precision",
    "accuracy": "accuracy",
}
_said = partial(tables.sentence_of, "audit")
_PAIRS = "pairs"  # the place of a page with the pairs of groups that differ


def sections_of(assessment: Assessment) -> Iterator[Section]:
    """Yield the sections of the report in their order."""
    if assessment.impact:
        yield Section("Impact ratios", [_impact(assessment)])
    yield Section("Gaps between groups", [_gaps(assessment), *_needed(assessment)])
    if assessment.within:
        title = f"Among people of the same {shared_traits(assessment.options)}"
        yield Section(title, list(_within(assessment)))
    if pairs := list(_pairs(assessment.gaps)):
        yield Section("Pairs of groups that surely differ", pairs, name=_PAIRS)
    yield Section("Rates by group", [_rates(assessment)])
    errors = _errors(assessment)
    if errors.rows:
        yield Section("Errors by group", [errors])
    if len(assessment.thresholds.table):
        yield Section("Other thresholds", list(_thresholds(assessment)))
    if assessment.scores:
        yield Section("Scores by group", [tables.score_table(assessment.scores, "score")])
    if diagrams := list(_diagrams(assessment)):
        caption = _said("gallery", label=assessment.table.labels[1])
        calibration: list[Block] = [_calibrations(assessment), Gallery(diagrams, caption)]
        yield Section("Calibration by group", calibration)
    note = "" if assessment.of_decisions else _said("metrics")
    yield Section("", [tables.all_metrics(assessment.metrics, note)])


def _pairs(gaps: Sequence[Gap]) -> Iterator[Table]:
    """Yield the table of pairs of groups that differ, where by how much is open."""
    pairs = [
        (gap.attribute, gap.rate_name, *pair)
        for gap in gaps
        if _differ_somehow(gap)
        for pair in gap.pairs
    ]
    if pairs:
        columns = [Column(title) for title in ("groups", "rate", "higher", "lower")]
        yield Table(columns, pairs, caption=_said("pairs"), most=tables.MOST_ROWS)


_Shown = tuple[Any, Column]  # how a cell is filled from a row, and its heading


def _size(gap: Gap | StandardisedGap) -> str:
    """Return a gap, with its sign where that says which of two groups is ahead."""
    return signed(gap.value) if gap.signed else number(gap.value)


def _interval_columns(gaps: Sequence[Gap | StandardisedGap], epsilon: float) -> list[_Shown]:
    """Return the columns of the intervals of gaps, in numbers and drawn."""
    drawn = tables.bars([(gap.lower, gap.value, gap.upper) for gap in gaps], epsilon)
    return [
        (("lower", "upper"), Column("95 % interval", "interval")),
        (dict(zip(gaps, drawn, strict=True)).get, Column("", "bar")),
    ]


def _gaps(assessment: Assessment) -> Table:
    """Return the table of gaps: size, interval, verdict, and what else applies to these rows."""
    epsilon = assessment.bounds.epsilon
    gaps = assessment.gaps
    is_noisy = any(isfinite(gap.noise) for gap in gaps)
    is_alike = assessment.assumed is not None
    holds = {
        "gap_sizes": True,
        "gap_noise": is_noisy,
        "gap_beyond": any(gap.verdict == OPEN for gap in gaps),
        "alike": is_alike,
    }
    caption = tables.sentences_of("audit", holds, stricter=_said("stricter"))
    reading = [_said("gaps_read", epsilon=epsilon), *([_said("alike")] if is_alike else [])]

    def small(gap: Gap) -> float | None:
        # Of several groups it would follow from how little is known of each, not from the data.
        return gap.small if gap.signed or gap.assumed else None

    def verdict(gap: Gap) -> TableCell:
        after: Text = ""
        if _differ_somehow(gap):
            by_how_much = f": some groups differ, but no pair surely by {epsilon:g} or more: "
            after = (by_how_much, Link("see the pairs", f"#{_PAIRS}"))
        mark = "assumed" if gap.assumed else gap.verdict
        return TableCell(verdict_text(gap), mark=mark, after=after)

    columns: list[_Shown] = [
        ("attribute", Column("groups")),
        ("rate_name", Column("gap in")),
        (_size, Column("size", right=True)),
    ]
    if assessment.of_decisions:
        column = Column("standard error", "number", decimals=4)
        columns.append((lambda gap: gap.standard_error if gap.signed else None, column))
    if is_noisy:
        column = Column("by noise", "number", left_out=1)
        columns.append((lambda gap: gap.noise if isfinite(gap.noise) else None, column))
    columns += _interval_columns(gaps, epsilon)
    if is_alike:
        column = Column("if calibrated alike", "interval", left_out=2)
        columns.append((lambda gap: gap.supposed[1:], column))
    columns += [
        (small, Column(f"P(<{epsilon:g})", "probability", left_out=1)),
        (verdict, Column("verdict")),
    ]
    return tables.table_of(gaps, columns, caption=" ".join(caption), reading=" ".join(reading))


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
        needed = Table(columns, table, caption=_said("needed", kind=kind))
        yield Details("What would settle what is open", [needed])


def _estimate(values: tables.Estimates, name: str, title: str) -> _Shown:
    """Return the column of a rate of every group, with its interval."""
    return lambda row: values.get((*_key(row), name)), Column(title, "estimate")


def _rates(assessment: Assessment) -> Table:
    """Return the table of each group's size and main rates."""
    labelled = not assessment.of_decisions
    selected = assessment.table.direction.rate_names[NEEDS_NO_LABELS].removeprefix("share ")
    selection = {"selection_rate": selected.replace("selection rate", "selected")}
    main = {**_MAIN_RATES, **selection} if labelled else selection
    values = tables.estimates(assessment.metrics, main)
    return tables.table_of(
        assessment.sizes,
        [
            *tables.OF_GROUP,
            ("rows", Column("rows", "count")),
            *([("labels", Column("labels", "count"))] if labelled else []),
            *(_estimate(values, name, title) for name, title in main.items()),
        ],
        most=tables.MOST_ROWS,
    )


def _key(row: Row) -> tuple[str, str]:
    return row["attribute"], row["group"]


def _within(assessment: Assessment) -> Iterator[Block]:
    """Yield the gaps over one mix of strata, with those of everyone, and in each stratum."""
    gaps = assessment.within
    epsilon = assessment.bounds.epsilon
    of_everyone = {(gap.attribute, gap.metric): gap for gap in assessment.gaps}

    def raw(gap: StandardisedGap) -> Gap:
        return of_everyone[gap.attribute, gap.metric]

    def verdict(gap: StandardisedGap) -> TableCell:
        text = "too few rows" if gap.verdict == NOT_MEASURED else gap.verdict
        return TableCell(text, mark=gap.verdict)

    yield tables.table_of(
        gaps,
        [
            ("attribute", Column("groups")),
            ("rate_name", Column("gap in")),
            (lambda gap: _size(raw(gap)), Column("of everyone", right=True)),
            (_size, Column("standardised", right=True)),
            *_interval_columns(gaps, epsilon),
            (verdict, Column("verdict")),
        ],
        caption=_said("standardised"),
        reading=_said("weights"),
    )
    reversed_ = [
        _said("reversed", gap=gap, raw=raw(gap))
        for gap in gaps
        if gap.signed and raw(gap).signed and gap.value * raw(gap).value < 0
        if min(abs(gap.value), abs(raw(gap).value)) >= 0.01
    ]
    if reversed_:
        yield Items(reversed_)
    yield from (_strata(gap, epsilon) for gap in gaps if gap.metric == NEEDS_NO_LABELS)
    others = [_strata(gap, epsilon) for gap in gaps if gap.metric != NEEDS_NO_LABELS]
    if others:
        yield Details("Other rates in each stratum", others)


def _strata(gap: StandardisedGap, epsilon: float) -> Table:
    """Return the table of one gap in each stratum."""
    pairs = {(row["low"], row["high"]) for row in gap.strata if row["low"]}
    is_signed = len(pairs) == 1 and gap.signed
    titles = next(iter(pairs)) if is_signed else ("lowest", "highest")
    drawn = tables.bars([(row["lower"], row["value"], row["upper"]) for row in gap.strata], epsilon)

    def rate(row: Row, index: int) -> str:
        """Return the lower (0) or the higher (1) rate of a stratum."""
        if not row["low"]:
            return ("one group alone", "")[index]
        text = number(row["rates"][index])
        return text if is_signed else f"{text} ({row[('low', 'high')[index]]})"

    def limits(row: Row) -> TableCell | None:
        few = f" (n={row['smallest']})" if row["smallest"] < gap.minimum else ""
        return TableCell((row["lower"], row["upper"]), after=few) if row["low"] else None

    return tables.table_of(
        [{**row, "bar": bar} for row, bar in zip(gap.strata, drawn, strict=True)],
        [
            ("stratum", Column(gap.within)),
            (lambda row: 100 * row["weight"], Column("weight, %", "number", decimals=1)),
            ("rows", Column("rows", "count")),
            (lambda row: rate(row, 0), Column(titles[0], right=True)),
            (lambda row: rate(row, 1), Column(titles[1], right=True)),
            (
                lambda row: (signed if is_signed else number)(row["value"]),
                Column("difference", right=True),
            ),
            (limits, Column("95 % interval", "interval")),
            ("bar", Column("", "bar")),
        ],
        by="",
        title=f"{gap.rate_name} by {gap.attribute}, in each stratum",
        caption=_said("strata", minimum=gap.minimum),
        most=tables.MOST_ROWS,
    )


_LARGEST = 2.0  # of the ratios that a bar has room for


def _impact(assessment: Assessment) -> Table:
    """Return the impact ratios of every group, with whom they compare."""
    ratios = assessment.impact
    granted = assessment.table.whole.granted
    highest = f"the group {granted} most often"
    are_given = {ratio["given"] for ratio in ratios}
    allowance = ""
    if False in are_given:
        allowance = _said("highest", granted=granted)
        if attributes_with_small_groups(ratios):
            allowance += f"{COMPARED_WITH} "

    def unless_reference(row: Row, value: object) -> object:
        return None if is_given_reference(row) else value

    return tables.table_of(
        ratios,
        [
            *tables.OF_GROUP,
            ("rows", Column("rows", "count", left_out=2)),
            (("rate", "rate_lower", "rate_upper"), Column(granted, "estimate")),
            ("ratio", Column("ratio", "number", decimals=2)),
            (
                lambda row: unless_reference(row, (row["lower"], row["upper"])),
                Column("95 % interval", "interval", decimals=2),
            ),
            (_ratio_bar, Column("", "bar")),
            (lambda row: unless_reference(row, row["below"]), Column("P(<0.8)", "probability")),
        ],
        caption=_said("ratios", granted=granted, others=compared_with(highest, are_given)),
        reading=_said("ratios_read", allowance=allowance),
        most=tables.MOST_ROWS,
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


def _thresholds(assessment: Assessment) -> Iterator[Block]:
    """Yield what other thresholds would decide."""
    thresholds = assessment.thresholds
    direction = assessment.table.direction
    granted = direction.granted

    def threshold(row: Row) -> TableCell:
        current = row["current"]
        text = f"{row['threshold']:.3g}"
        return TableCell(text, before="now " if current else "", strong=current)

    yield tables.table_of(
        thresholds.table.to_dict("records"),
        [
            ("attribute", Column("of")),
            (threshold, Column("threshold", right=True)),
            ("selected", Column(granted, "percent")),
            ("ratio", Column("ratio", "number", decimals=2)),
            (("ratio_lower", "ratio_upper"), Column("95 % interval", "interval", decimals=2)),
            ("gap", Column("gap", "number")),
            (("gap_lower", "gap_upper"), Column("95 % interval", "interval")),
        ],
        caption=_said("thresholds", granted=granted, large_enough=LARGE_ENOUGH),
    )
    if thresholds.constrained is not None:
        today = assessment.options.threshold
        yield from _constrained(thresholds.constrained, today, direction)
    for curves in thresholds.curves:
        yield _curve_figure(curves, assessment)


# Of both kinds of error: its title, its rate, and the difference of it from the reference, with the
# sign that makes it more errors than there.
_ERRORS = (
    ("FPR", "false_positive_rate", "false_positive_rate_difference", 1),
    ("FNR", "false_negative_rate", "equal_opportunity_difference", -1),
)


def _errors(assessment: Assessment) -> Table:
    """Return both kinds of error of every group, and their differences from the reference."""
    rates = [rate for _, rate, _, _ in _ERRORS]
    differences = [difference for _, _, difference, _ in _ERRORS]
    values = tables.estimates(assessment.metrics, [*rates, *differences])
    measured = {(attribute, group) for attribute, group, name in values if name in rates}
    columns: list[_Shown] = [*tables.OF_GROUP]
    for title, rate, difference, sign in _ERRORS:

        def more(row: Row, name: str = difference, sign: int = sign) -> tuple[float, ...]:
            """Return the interval of how much more often than the reference a group errs."""
            ends = values.get((*_key(row), name), (NAN, NAN, NAN))[1:]
            return tuple(sorted(sign * end for end in ends))

        columns.append(_estimate(values, rate, title))
        columns.append((more, Column("more than reference", "interval")))
    return tables.table_of(
        [size for size in assessment.sizes if _key(size) in measured],
        columns,
        caption=_said("errors", labels=assessment.table.labels),
        most=tables.MOST_ROWS,
    )


def _calibrations(assessment: Assessment) -> Table:
    """Return by how much the scores of each group are too high on average."""
    return tables.table_of(
        [row for row in assessment.calibrations if not np.isnan(row["excess"])],
        [
            *tables.OF_GROUP,
            ("labels", Column("labels", "count")),
            ("score", Column("mean score", "number")),
            ("share", Column("share of label 1", "number")),
            ("excess", Column("excess", "signed")),
            (("lower", "upper"), Column("95 % interval", "interval")),
        ],
        caption=_said("calibrations"),
        most=tables.MOST_ROWS,
    )


def _constrained(chosen: Row, today: float, direction: Direction) -> Iterator[Block]:
    """Yield the threshold that a constraint asks for, and how it does on the other rows."""
    values = {**chosen, "asked": asked_of_threshold(chosen, direction), "today": today}
    if np.isnan(chosen["threshold"]):
        yield Paragraph(_said("unreached", **values))
        return
    start = _said("reached_today" if chosen["threshold"] == today else "reached", **values)
    text = _said("chosen", **values, start=start)
    if not np.isnan(chosen["accuracy"][0]):
        text += _said("chosen_accuracy", **values)
    yield Paragraph(text)
    words = {True: "surely", False: "surely not", None: "open"}
    yield tables.table_of(
        chosen["judged"],
        [
            ("attribute", Column("of")),
            ("chosen", Column("there", "number")),
            ("value", Column("on other rows", "number")),
            (("lower", "upper"), Column("95 % interval", "interval")),
            ("before", Column("today", "number")),
            (lambda row: words[row["holds"]], Column("holds")),
        ],
        caption=_said("judged"),
        by="",
    )


def asked_of_threshold(chosen: Row, direction: Direction) -> str:
    """Return what a constraint asks of a threshold, in words."""
    constraint, bound, granted = chosen["constraint"], chosen["bound"], direction.granted
    if constraint == RATIO:
        return _said("least_ratio", granted=granted, bound=bound)
    return _said("most_apart", bound=bound, rate=direction.rate_name(constraint))


def _curve_figure(curves: ThresholdCurves, assessment: Assessment) -> Figure:
    """Return rates of an attribute's largest groups at all thresholds, and their scores."""
    panels = []
    for rate, limits in curves.rates.items():
        lines = [
            tables.group_line(name, g, curves.thresholds, Limits(*(end[:, g] for end in limits)))
            for g, name in enumerate(curves.groups[: tables.MOST_LINES])
        ]
        panels.append(Panel(lines, "threshold", label(rate), from_zero="y"))
    scores = [group for group in assessment.scores if group["attribute"] == curves.attribute]
    first, *more = chart([*panels, tables.density_panel(scores, "score")], key=panels[0].series)
    granted = assessment.table.direction.granted
    caption = _said("curves", attribute=curves.attribute, granted=granted)
    title = f"what every threshold would decide, by {curves.attribute}"
    return Figure(title, svg=first, more=more, caption=caption)


# The pictures of the groups: rates, impact ratios and calibration.

_MOST_SMALL = 24  # groups of a picture


def pictures(assessment: Assessment) -> list[Section]:
    """Return a picture of each rate with every group's interval; nothing where none is known."""
    figures = [*_impact_picture(assessment), *_rate_pictures(assessment)]
    if not figures:
        return []
    return [Section("The groups in pictures", [Gallery(figures, _said("pictures"))])]


def _forest(
    name: str,
    meaning: str,
    rows: Sequence[tuple[Any, ...]],
    span: tuple[float, float],
    mark: float = NAN,
) -> Figure:
    """Draw the interval of each group, with a line between two attributes.

    Parameters
    ----------
    rows : of each group its attribute, its name, and its rate or ratio with both limits.
    """
    panels = [[row[1:] for row in part] for _, part in groupby(rows, lambda row: row[0])]
    svg = forest(name, panels, span=span, mark=mark)
    return Figure(name, svg=svg, caption=f"{name}: {meaning}", style="panel")


def _rate_pictures(assessment: Assessment) -> Iterator[Figure]:
    """Draw each rate: all groups of single attributes, then the largest of combinations."""
    rates = tables.estimates(assessment.metrics, {rate.name for rate in RATE_OF.values()})
    direction = assessment.table.direction
    for metric, rate in RATE_OF.items():
        known = [(*_key(size), rates.get((*_key(size), rate.name))) for size in assessment.sizes]
        measured = [(*key, *values) for *key, values in known if values and isfinite(values[0])]
        single = [row for row in measured if row[0] in assessment.options.group]
        combined = [row for row in measured if row[0] not in assessment.options.group]
        drawn = single + combined[: max(_MOST_SMALL - len(single), 0)]
        if not drawn:
            continue
        left_out = len(measured) - len(drawn)
        more = f" Not drawn: {left_out} smaller groups." if left_out else ""
        # The scale ends at tenths between which all intervals lie.
        ends = np.array([row[2:] for row in drawn])
        tenths = 10 * ends[np.isfinite(ends)]
        low, high = float(np.floor(tenths.min()) / 10), float(np.ceil(tenths.max()) / 10)
        meaning = f"{direction.meaning(metric)}.{more}"
        yield _forest(direction.rate_names[metric], meaning, drawn, (low, max(high, low + 0.1)))


_WIDEST = 2.0  # of the impact ratios that are drawn


def _impact_picture(assessment: Assessment) -> Iterator[Figure]:
    """Draw the impact ratios of the groups of single attributes, where there are any."""
    rows = [
        (*_key(row), row["ratio"], row["lower"], row["upper"])
        for row in assessment.impact
        if row["attribute"] in assessment.options.group and not np.isnan(row["ratio"])
    ]
    if rows:
        highest = np.nanmax([row[-1] for row in rows])
        meaning = _said("ratio_picture", granted=assessment.table.whole.granted)
        span = (0.0, float(np.clip(np.ceil(10 * highest) / 10, 1.2, _WIDEST)))
        yield _forest("impact ratio", meaning, rows, span, FOUR_FIFTHS)


def _diagrams(assessment: Assessment) -> Iterator[Figure]:
    """Yield the reliability of each group of a single attribute that has labels and scores."""
    for row in assessment.calibrations:
        if row["attribute"] in assessment.options.group and row["bins"]:
            ends = interval(row["lower"], row["upper"])
            limits = ends or "too few of the rarer label for an interval"
            caption = _said("diagram", row=row, limits=limits)
            name = f"reliability of {row['group']}"
            yield Figure(name, svg=_reliability(row["bins"]), caption=caption)


def _reliability(bins: Sequence[Row]) -> str:
    """Return a drawing of the share of label 1 over the mean score, a point for each bin."""
    points = "".join(
        f'<line class="range" x1="{100 * row["score"]}" x2="{100 * row["score"]}" '
        f'y1="{100 - 100 * row["lower"]}" y2="{100 - 100 * row["upper"]}"/>'
        f'<circle cx="{100 * row["score"]}" cy="{100 - 100 * row["share"]}" r="2.2"/>'
        for row in bins
    )
    return (
        '<svg viewBox="-4 -4 108 108" role="img" aria-label="reliability">'
        f'<line class="ideal" x1="0" y1="100" x2="100" y2="0"/>{points}</svg>'
    )
