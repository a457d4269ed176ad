"""The audit of a classifier of two classes, of all labels, of some, or of none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import groupby
from math import isnan
from typing import Any

from fairbench.audits.assessment import Assessment
from fairbench.audits.calibration import excess_findings, least_alike
from fairbench.audits.direction import Direction
from fairbench.audits.findings import (
    CONSTRAINT,
    GAP,
    LARGE,
    NOT_MEASURED,
    OPEN,
    SMALL,
    Finding,
    pair_findings,
)
from fairbench.audits.gaps import ASSUMED, FEWEST_LABELS, NEEDS_NO_LABELS, TOO_FEW, Gap
from fairbench.audits.impact import attributes_of_large, impact_findings, impact_ratios
from fairbench.audits.pages.decisions import (
    asked_of_threshold,
    calibration_table,
    decision_sections,
    impact_blocks,
)
from fairbench.audits.pages.pictures import diagrams, pictures
from fairbench.audits.pages.within import within_section
from fairbench.audits.report import OF_POPULATION, Audit, counted_by
from fairbench.audits.sentences import listed
from fairbench.audits.thresholds import ConstrainedThreshold
from fairbench.audits.tipping import unless
from fairbench.audits.within import notes_within, same, within_findings
from fairbench.core.formats import count, interval, number, probability, signed, two_digits
from fairbench.evaluation.columns import records
from fairbench.inference.further_labels import WORLDS, FurtherLabels
from fairbench.reporting.document.model import (
    Column,
    Details,
    Gallery,
    Link,
    Section,
    Table,
    TableCell,
    Text,
)
from fairbench.reporting.group_tables import (
    MOST_ROWS,
    OF_GROUP,
    all_metrics,
    bars,
    estimates,
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
_MOST = 3  # groups of too few rows that a summary names
_MOST_MORE = 10  # times the rows there are: what takes more is not advised


def audit_of(assessment: Assessment) -> Audit:
    """Return the audit of decisions about two classes, with the labels and scores there are."""
    options, table = assessment.options, assessment.table
    return Audit(
        options,
        len(table),
        assessment.labels,
        findings_of(assessment),
        list(_basis(assessment)),
        list(_sections(assessment)),
        _data(assessment),
        warning=" ".join([*table.warnings, *_warning(assessment)]),
        notes=[*table.notes, *_notes(assessment)],
        pictures=pictures(assessment),
        sure=list(_basis_sentences(assessment)),
        unseen=list(_unseen(assessment)),
        todo=list(_todo(assessment)),
        headlines=_headlines(table.direction),
        audited=table.read_as,
        label_names=table.labels,
    )


def _headlines(direction: Direction) -> list[str]:
    """Return the measures that are looked at first, where it was said what is good for a person."""
    if direction.favourable is None:
        return []
    return [direction.rate_names[direction.wrongly_refused]]


def findings_of(assessment: Assessment) -> list[Finding]:
    """Return what an assessment says of the people that its rows are a sample of.

    Gaps, and a constraint that is asked for, share the error rate. What they no longer need goes
    to impact ratios and to whether the scores of a group are too high.
    """
    options, table = assessment.options, assessment.table
    epsilon = assessment.bounds.epsilon
    findings = [
        *_gap_findings(assessment),
        *within_findings(assessment.within, options, epsilon),
    ]
    constrained = assessment.thresholds.constrained
    constraint = []
    if constrained is not None:
        constraint = list(_constraint_findings(constrained, table.direction))
    findings += constraint
    ratios = [ratio for ratio in assessment.impact if ratio.attribute in options.group]
    scores = [scores for scores in assessment.calibrations if scores.attribute in options.group]
    freed = sum(gap.freed for gap in assessment.gaps)
    freed += sum(finding.is_settled for finding in constraint)
    risk = assessment.bounds.budget.passed_on(freed, len(ratios) + len(scores)).risk
    if risk:
        # Groups of two attributes together are described only: their intervals are not made again.
        whole = table.everyone or table
        singles = replace(whole, groups={name: whole.groups[name] for name in options.group})
        wider = impact_ratios(singles, level=1 - 2 * risk)
        findings += impact_findings(ratios, wider, whole.granted, attributes_of_large(ratios))
        findings += excess_findings(scores, risk)
    return findings


def _gap_findings(assessment: Assessment) -> Iterator[Finding]:
    """Yield what gaps say of the people that the rows are a sample of, and of pairs of groups."""
    epsilon = assessment.bounds.epsilon
    for gap in assessment.gaps:
        ends = gap.lower, gap.upper
        if gap.named and gap.signed and gap.upper < 0:
            ends = -gap.upper, -gap.lower
        finding = Finding(
            GAP,
            gap.attribute,
            gap.rate_name,
            gap.verdict,
            tuple(gap.named),
            value=gap.value,
            lower=ends[0],
            upper=ends[1],
            values=tuple(gap.rates[place] for place in gap.answer.named),
            bound=epsilon,
            n=gap.rows,
            needs=TOO_FEW if gap.verdict == NOT_MEASURED else _further(gap.needed),
            unless=unless(gap.tipping),
            given=ASSUMED if gap.assumed else "",
        )
        yield finding
        if not gap.assumed:
            yield from pair_findings(finding, gap.names, gap.answer, gap.rates)
    if assessment.of_decisions:
        unknown = Finding(GAP, "", "", NOT_MEASURED, bound=epsilon, needs="there are no labels")
        for attribute in assessment.table.groups:
            for metric, name in assessment.table.direction.rate_names.items():
                if metric != NEEDS_NO_LABELS:
                    yield replace(unknown, attribute=attribute, measure=name)


def _constraint_findings(
    constrained: ConstrainedThreshold, direction: Direction
) -> Iterator[Finding]:
    for judged in constrained.judged:
        yield Finding(
            CONSTRAINT,
            judged.attribute,
            asked_of_threshold(constrained, direction),
            {True: SMALL, False: LARGE, None: OPEN}[judged.holds],
            value=judged.value,
            lower=judged.lower,
            upper=judged.upper,
            bound=constrained.bound,
            n=constrained.rows[1],
            scope=f"at the threshold {constrained.threshold:.4g}",
        )


def _kind(needed: FurtherLabels) -> str:
    return "more labels" if needed.remaining is not None else "more rows with labels"


def _likely(needed: FurtherLabels) -> list[str]:
    """Return the numbers of labels that perhaps and probably settle a gap; one if they agree."""
    numbers = dict.fromkeys([needed.few, needed.enough])
    return [two_digits(labels) for labels in numbers if labels is not None]


def _further(needed: FurtherLabels) -> str:
    """Return how many labels would settle a gap, in words."""
    if not needed.labels:
        return ""
    if needed.enough is not None:
        return f"{' to '.join(_likely(needed))} {_kind(needed)} would probably settle it"
    last, chance = count(needed.labels[-1]), probability(needed.settled[-1])
    more = f"{last} {_kind(needed)}" if needed.remaining is None else f"all {last} other labels"
    return f"{more} would settle it with a probability of only {chance}"


def _warning(assessment: Assessment) -> Iterator[str]:
    if not (assessment.labels or assessment.of_decisions):
        yield (
            "There are no labels. Whatever needs them takes the scores at their word: if the "
            "scores are wrong, so are these figures, and nothing here would show it."
        )


def _basis(assessment: Assessment) -> Iterator[str]:
    table, labels, rows = assessment.table, assessment.labels, len(assessment.table)
    yield from table.read_as
    if assessment.of_decisions:
        yield (
            f"{count(rows)} rows with decisions, and neither labels nor scores: how often each "
            f"group is {table.direction.granted} is known, and not how often that is right."
        )
    else:
        yield f"{count(rows)} rows, {count(labels)} of them with a label ({labels / rows:.2%})."
    by_group = table.sampling if labels else None
    if by_group is not None and not assessment.complete:
        yield (
            f"How many rows of each group of {by_group.by} were labelled was decided while "
            "labelling; which ones, at random within the group. Figures that cross groups give "
            "each group its share of the rows, not of the labels."
        )
        yield by_group.stopping
    yield from counted_by(assessment.options)
    if assessment.complete or assessment.of_decisions:
        yield OF_POPULATION
    elif labels:
        helping = "Decisions" if table.score is None else "Scores"
        at_random = " This assumes that rows were chosen for labelling at random."
        yield (
            f"Figures rest on the labelled rows. {helping} make intervals narrower as far as they "
            "have predicted the labels of each group; where they are wrong, intervals are wider "
            f"and still hold.{at_random * (by_group is None)}"
        )
    if assessment.assumed is not None:
        yield (
            "Beside them stands what would follow if scores were as right in every group as in the "
            "others (calibrated alike). No verdict rests on that."
        )


def _notes(assessment: Assessment) -> Iterator[str]:
    yield from _on_labelling(assessment)
    labels = {size.key: size.labels for size in assessment.sizes}
    by_attribute = {
        attribute: list(gaps)
        for attribute, gaps in groupby(assessment.gaps, lambda gap: gap.attribute)
    }
    for attribute, gaps in by_attribute.items():
        if short := dict.fromkeys(name for gap in gaps for name in gap.short_of_labels):
            names = listed([f"{name} ({count(labels[attribute, name])})" for name in short])
            yield (
                f"{attribute}: under {FEWEST_LABELS} labels in {names}; no gap is called small "
                "before every group has as many."
            )
    yield from _on_calibration(assessment)
    for attribute, gaps in by_attribute.items():
        if several := [gap for gap in gaps if gap.verdict == OPEN and not gap.signed]:
            noise = ", ".join(f"{number(gap.alike)} in {gap.rate_name}" for gap in several)
            yield (
                f"{attribute}: the largest gap among more than two groups is never 0; if every "
                f"group had the same estimate it would be {noise}, from sampling noise alone."
            )
    for attribute, gaps in by_attribute.items():
        if left_out := [name for gap in gaps for name in gap.left_out]:
            yield f"{attribute}: left out of one gap or more for too few rows: {listed(left_out)}."
    yield from notes_within(assessment.within)


def _on_labelling(assessment: Assessment) -> Iterator[str]:
    """Yield how rows were chosen for labelling."""
    sampling = assessment.table.sampling
    if sampling is None:
        return
    yield from sampling.notes
    missing = sampling.unlabelled(assessment.table.known)
    if missing and assessment.labels:
        yield (
            f"No row of {', '.join(missing)} has a label yet: metrics of scores leave these rows "
            "out, and other figures infer them from other groups."
        )
    if any(gap.needed.labels for gap in assessment.gaps):
        yield (
            "Numbers of further labels are for rows chosen at random from all; chosen by group, "
            "fewer may do."
        )


def _on_calibration(assessment: Assessment) -> Iterator[str]:
    """Yield what speaks against scores calibrated alike, and what would follow if they were."""
    beside = (
        " Do not use the figures “if calibrated alike”." if assessment.assumed is not None else ""
    )
    strange = least_alike(assessment.calibrations)
    for attribute, several in groupby(strange, lambda scores: scores.attribute):
        alike = list(several)
        groups = " and ".join(scores.group for scores in alike)
        yield (
            f"{attribute}: the labels of {groups} fit least how the scores of the other groups are "
            "calibrated. If scores were calibrated alike, labels as strange would come with a "
            f"probability of {probability(alike[0].fit)}.{beside}"
        )
    for gap in assessment.gaps:
        value, lower, upper = gap.supposed
        if lower > gap.upper or upper < gap.lower:
            yield (
                f"{gap.attribute}: if scores were calibrated alike, the gap in {gap.rate_name} "
                f"would be {number(value)} (95 % interval {interval(lower, upper)}). That of the "
                f"labels, {interval(gap.lower, gap.upper)}, does not overlap with it."
            )
    for gap in assessment.gaps:
        if (stress := gap.stress) is None:
            continue
        side = "under" if stress.follows == SMALL else "over"
        fails = " or ".join(
            f"the scores of {group} {_as_much(factor)}"
            for factor, group in ((stress.less, stress.weakest), (stress.more, stress.strongest))
            if group
        )
        holds = "It does however much or little they say"
        if fails:
            holds = f"It no longer does if {fails}"
        yield (
            f"{gap.attribute}: if scores are calibrated alike, the 95 % interval of the gap in "
            f"{gap.rate_name} lies {side} {assessment.bounds.epsilon:g}. {holds}."
        )


def _as_much(factor: float) -> str:
    """Return what scores say whose slope is so many times what it seems."""
    if factor <= 0:
        return "say the opposite" if factor else "say nothing"
    return f"say {factor:g} times as much as it seems"


def _basis_sentences(assessment: Assessment) -> Iterator[str]:
    rows, labels = len(assessment.table), assessment.labels
    known = "all" if labels == rows else "none" if not labels else count(labels)
    yield f"There are {count(rows)} rows, {known} of them with a known outcome."
    if not labels and assessment.table.score is None:
        yield (
            f"Without outcomes and scores, only who is {assessment.table.direction.granted} is "
            "known; nothing of errors is."
        )
    elif not labels:
        yield (
            f"Without outcomes, everything but who is {assessment.table.direction.granted} takes "
            "the scores at their word. If they are wrong, so is this, and nothing here would show "
            "it."
        )
    elif any(gap.tipping for gap in assessment.gaps if gap.verdict == LARGE):
        yield (
            "How many wrong labels would undo each finding is in the full report, under “Can be "
            "concluded”."
        )


def _unseen(assessment: Assessment) -> Iterator[str]:
    left: dict[str, list[str]] = {}
    for gap in assessment.gaps:
        for name in gap.left_out:
            if gap.attribute in assessment.options.group:
                left.setdefault(name, []).append(gap.rate_name)
    for name, rates in list(left.items())[:_MOST]:
        yield f"{name} has too few rows to be compared in {listed(rates)}."
    if len(left) > _MOST:
        yield f"Nor do {count(len(left) - _MOST)} other groups in some of the rates."
    if assessment.labels:
        yield (
            f"Whether the outcomes in '{assessment.options.target}' are right, and were fair in "
            "the first place, was not looked at. Nor was why groups differ."
        )
    else:
        yield "Whether decisions are right was not looked at: that takes outcomes."


def _todo(assessment: Assessment) -> Iterator[str]:
    if not assessment.labels:
        what = "decisions are right" if assessment.of_decisions else "scores are right"
        yield f"Collect outcomes: even 100 to 200, of rows chosen at random, show whether {what}."
        return
    verdicts = {gap.verdict for gap in assessment.gaps}
    most = _MOST_MORE * max(len(assessment.table), 1)
    enough = [gap for gap in assessment.gaps if (gap.needed.enough or most + 1) <= most]
    if OPEN in verdicts and enough:
        nearest = min(enough, key=lambda gap: gap.needed.enough or 0)
        likely = _likely(nearest.needed)
        yield (
            f"Collect {_kind(nearest.needed)}: {'about ' * (len(likely) == 1)}"
            f"{' to '.join(likely)} further ones would probably settle {nearest.rate_name} by "
            f"{nearest.attribute}, which takes the fewest."
        )
    elif OPEN in verdicts and any(gap.needed.labels for gap in assessment.gaps):
        yield (
            "The labels that are missing are not likely to settle what is open: audit a larger "
            "sample."
        )
    if verdicts <= {SMALL}:
        yield "Repeat the audit when the model changes, or the people that it is used on."


def _sections(assessment: Assessment) -> Iterator[Section]:
    if assessment.impact:
        yield Section("Impact ratios", list(impact_blocks(assessment)))
    yield Section("Gaps between groups", [_gaps(assessment), *_chances(assessment.gaps)])
    yield from within_section(
        assessment.within, assessment.gaps, same(assessment.options), assessment.bounds.epsilon
    )
    pairs = [
        (gap.attribute, gap.rate_name, high, low)
        for gap in assessment.gaps
        if _differ_somehow(gap)
        for high, low in gap.pairs
    ]
    if pairs:
        columns = [Column(title) for title in ("groups", "rate", "higher", "lower")]
        caption = (
            "Two groups a row that surely differ, though by how much is open; that they do is "
            "under the error rate of the page."
        )
        table = Table(columns, pairs, caption=caption, most=MOST_ROWS)
        yield Section("Pairs of groups that surely differ", [table], name=_PAIRS)
    yield Section("Rates by group", [_rates(assessment)])
    yield from decision_sections(assessment)
    if drawn := list(diagrams(assessment)):
        note = (
            f"Share of '{assessment.table.labels[1]}' among labelled rows of similar scores, with "
            "95 % intervals; on the dashed line scores are probabilities."
        )
        yield Section("Calibration by group", [calibration_table(assessment), Gallery(drawn, note)])
    note = "Values and intervals rest on the labels; those of scores themselves on labelled rows."
    yield Section("", [all_metrics(assessment.metrics, note * (not assessment.of_decisions))])


def _gaps(assessment: Assessment) -> Table:
    epsilon, gaps = assessment.bounds.epsilon, assessment.gaps
    beside, labelled = assessment.assumed is not None, not assessment.of_decisions
    placed = bars([(gap.lower, gap.value, gap.upper) for gap in gaps], epsilon)
    bar_of = dict(zip(gaps, placed, strict=True))
    more = " more labels: how many would probably settle the verdict."
    meant = (
        " More labels: from the number that settles the question in 20 % of "
        f"{WORLDS} simulations to that which settles it in 80 %."
    )
    alike = (
        " if calibrated alike: the interval that follows if scores are as right in every group as "
        "in the others; no verdict rests on it."
    )

    def verdict(gap: Gap) -> TableCell:
        mark = "assumed" if gap.assumed else gap.verdict
        after: Text = ""
        if _differ_somehow(gap):
            said = f": they differ, not known between whom by {epsilon:g} or more: "
            after = (said, Link("see the pairs", f"#{_PAIRS}"))
        return TableCell(verdict_text(gap), mark=mark, after=after)

    error = Column("standard error", "number", decimals=4)
    supposed = Column("if calibrated alike", "interval", left_out=2)
    return table_of(
        gaps,
        [
            ("attribute", Column("groups")),
            ("rate_name", Column("gap in")),
            (
                lambda gap: signed(gap.value) if gap.signed else number(gap.value),
                Column("size", right=True),
            ),
            *(
                [(lambda gap: gap.standard_error if gap.signed else None, error)]
                if not labelled
                else []
            ),
            (("lower", "upper"), Column("95 % interval", "interval")),
            (bar_of.get, Column("", "bar")),
            *([(lambda gap: gap.supposed[1:], supposed)] if beside else []),
            # Of several groups it would follow from how little is known of each, not from the data.
            (
                lambda gap: gap.small if gap.signed or gap.assumed else None,
                Column(f"P(<{epsilon:g})", "probability", left_out=1),
            ),
            (verdict, Column("verdict")),
            *([(_more_labels, Column("more labels", right=True))] if labelled else []),
        ],
        caption=(
            "size: the largest difference between two groups; where there are only two, the "
            f"second's rate minus the first's.{more * labelled}{alike * beside}"
        ),
        reading=(
            "Largest difference between two groups, which noise alone makes larger among many. "
            f"Shaded: less than {epsilon:g} either way. Large: one group is surely ahead of "
            f"another by more; small: none is.{meant * labelled}{alike * beside}"
        ),
    )


def verdict_text(gap: Gap) -> str:
    """Return a verdict for a table."""
    if gap.verdict == NOT_MEASURED:
        return "too few rows"
    if gap.assumed and gap.verdict != OPEN:
        return f"{gap.verdict} if scores are right"
    return gap.verdict


def _differ_somehow(gap: Gap) -> bool:
    """Say whether groups surely differ, while it is open between whom by how much."""
    return gap.verdict == OPEN and not gap.signed and not gap.assumed and bool(gap.pairs)


def _more_labels(gap: Gap) -> str:
    """Return how many more labels settle a gap, for a table."""
    if gap.needed.labels and gap.needed.enough is None:
        return f">{count(gap.needed.labels[-1])}"
    likely = _likely(gap.needed)
    return "-".join(likely) if len(likely) != 1 else f"~{likely[0]}"


def _chances(gaps: Sequence[Gap]) -> Iterator[Details]:
    """Yield how probably each number of labels that was simulated settles the open gaps."""
    asked = [gap for gap in gaps if gap.needed.labels]
    if not asked:
        return
    numbers = max((gap.needed.labels for gap in asked), key=len)
    columns = [Column("groups"), Column("gap in")]
    columns += [Column(count(labels), "probability") for labels in numbers]
    rows = [
        [gap.attribute, gap.rate_name, *gap.needed.settled]
        + [None] * (len(numbers) - len(gap.needed.settled))
        for gap in asked
    ]
    yield Details("How probably more labels settle what is open", [Table(columns, rows)])


def _rates(assessment: Assessment) -> Table:
    labelled = not assessment.of_decisions
    selected = assessment.table.direction.rate_names[NEEDS_NO_LABELS].removeprefix("share ")
    main = {**_MAIN_RATES, "selection_rate": selected.replace("selection rate", "selected")}
    main = main if labelled else {"selection_rate": main["selection_rate"]}
    values = estimates(assessment.metrics, main)
    return table_of(
        assessment.sizes,
        [
            *OF_GROUP,
            ("rows", Column("rows", "count")),
            *([("labels", Column("labels", "count"))] if labelled else []),
            *(
                (lambda size, name=name: values.get((*size.key, name)), Column(title, "estimate"))
                for name, title in main.items()
            ),
        ],
        most=MOST_ROWS,
    )


_OF_GAP = (
    "attribute", "metric", "compared", "left_out", "assumed", "value", "lower", "upper", "supposed",
    "alike", "small", "tipping", "short_of_labels", "standard_error",
)  # fmt: skip
_OF_NEEDED = ("labels", "settled", "few", "enough", "remaining")


def _data(assessment: Assessment) -> Mapping[str, Any]:
    gaps, calibrations = assessment.gaps, assessment.calibrations
    return {
        "label_names": dict(zip("01", assessment.table.labels, strict=True)),
        "gaps": [
            {
                **_fields(gap, *_OF_GAP),
                "verdict": verdict_text(gap) if gap.verdict == NOT_MEASURED else gap.verdict,
                **dict(zip(("low", "high"), gap.named[::-1] or ("", ""), strict=True)),
                "pairs": gap.pairs,
            }
            for gap in gaps
        ],
        "labels_needed": [
            _fields(gap, "attribute", "metric") | _fields(gap.needed, *_OF_NEEDED)
            for gap in gaps
            if gap.needed.labels
        ],
        "sizes": assessment.sizes,
        "impact": assessment.impact,
        "decisions": {
            "thresholds": assessment.thresholds.table.to_dict("records"),
            "constraint": assessment.thresholds.constrained,
            "scores": assessment.scores,
        },
        "calibration": [
            {name: value for name, value in asdict(row).items() if name not in ("fit", "at")}
            for row in calibrations
        ],
        "checks": [
            {**_fields(row, "attribute", "group"), "calibrated_as_others": row.fit}
            for row in calibrations
            if not isnan(row.fit)
        ],
        "stress": [
            _fields(gap, "attribute", "metric") | asdict(gap.stress) for gap in gaps if gap.stress
        ],
        **({"within": assessment.within} if assessment.within else {}),
        "metrics": records(assessment.metrics),
        "if_calibrated_alike": [] if assessment.assumed is None else records(assessment.assumed),
    }


def _fields(row: object, *names: str) -> dict[str, Any]:
    return {name: getattr(row, name) for name in names}
