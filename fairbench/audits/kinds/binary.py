"""The audit of a classifier of two classes, of all labels, of some, or of none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import groupby
from math import isnan
from typing import Any

from fairbench.audits.assessment import Assessment, assess
from fairbench.audits.calibration import (
    GroupCalibration,
    calibrations,
    excess_findings,
    least_alike,
)
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
from fairbench.audits.gaps import ASSUMED, FEWEST_LABELS, NEEDS_NO_LABELS, RATE_NAMES, TOO_FEW, Gap
from fairbench.audits.impact import impact_findings, impact_ratios
from fairbench.audits.labels_needed import WORLDS, Needed, rounded
from fairbench.audits.pages.decisions import (
    asked_of_threshold,
    calibration_table,
    decision_sections,
    impact_blocks,
)
from fairbench.audits.pages.parts import MOST_ROWS, OF_GROUP, all_metrics, bars, estimates, table_of
from fairbench.audits.pages.pictures import diagrams, pictures
from fairbench.audits.question import Options
from fairbench.audits.report import OF_POPULATION, Audit, counted_by
from fairbench.audits.sentences import listed
from fairbench.audits.table import AuditTable
from fairbench.audits.thresholds import ConstrainedThreshold
from fairbench.audits.tipping import unless
from fairbench.core.formats import count, interval, number, probability, signed
from fairbench.data.tabular import spelled
from fairbench.evaluation.columns import records
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

_MAIN_RATES = {
    "selection_rate": "selected",
    "true_positive_rate": "TPR",
    "false_positive_rate": "FPR",
    "positive_predictive_value": "precision",
    "accuracy": "accuracy",
}
_PAIRS = "pairs"  # the place of a page with the pairs of groups that differ
_MOST = 3  # groups of too few rows that a summary names


def audit_binary(table: AuditTable, options: Options) -> Audit:
    """Audit decisions about two classes, with the labels and scores that there are."""
    return audit_of(assess(table, options))


def audit_of(assessment: Assessment) -> Audit:
    """Return the audit that an assessment is of."""
    options, table = assessment.options, assessment.table
    return Audit(
        options,
        len(table),
        assessment.labels,
        findings_of(assessment),
        list(_basis(assessment)),
        list(_sections(assessment)),
        _data(assessment),
        warning=_warning(assessment),
        notes=list(_notes(assessment)),
        pictures=pictures(assessment),
        sure=list(_sure(assessment)),
        unseen=list(_unseen(assessment)),
        todo=list(_todo(assessment)),
        label_names=table.labels,
    )


def findings_of(assessment: Assessment) -> list[Finding]:
    """Return what an assessment says of the people that its rows are a sample of.

    Gaps, and a constraint that is asked for, share the error rate. What they no longer need goes
    to impact ratios and to whether the scores of a group are too high.
    """
    options, table = assessment.options, assessment.table
    findings = list(_gap_findings(assessment))
    constrained = assessment.thresholds.constrained
    constraint = [] if constrained is None else list(_constraint_findings(constrained))
    findings += constraint
    ratios = [ratio for ratio in assessment.impact if ratio.attribute in options.group]
    scores = [scores for scores in assessment.calibrations if scores.attribute in options.group]
    freed = sum(gap.freed for gap in assessment.gaps)
    freed += sum(finding.is_settled for finding in constraint)
    risk = assessment.budget.passed_on(freed, len(ratios) + len(scores)).risk
    if risk:
        # Groups of two attributes together are described only: their intervals are not made again.
        singles = replace(table, groups={name: table.groups[name] for name in options.group})
        findings += impact_findings(ratios, impact_ratios(singles, options, level=1 - 2 * risk))
        wider = list(calibrations(singles, level=1 - risk)) if scores else []
        findings += excess_findings(scores, wider)
    return findings


def _gap_findings(assessment: Assessment) -> Iterator[Finding]:
    """Yield what gaps say of the people that the rows are a sample of, and of pairs of groups."""
    needs = {need.gap: _further(need) for need in assessment.needed}
    epsilon = assessment.options.epsilon
    for gap in assessment.gaps:
        ends = gap.lower, gap.upper
        if gap.verdict == LARGE and gap.signed and gap.upper < 0:
            ends = -gap.upper, -gap.lower
        named = (gap.answer.high, gap.answer.low) if gap.verdict == LARGE else ()
        finding = Finding(
            GAP,
            gap.attribute,
            RATE_NAMES[gap.metric],
            gap.verdict,
            tuple(gap.names[place] for place in named),
            value=gap.value,
            lower=ends[0],
            upper=ends[1],
            values=tuple(gap.rates[place] for place in named),
            bound=epsilon,
            n=gap.rows,
            needs=TOO_FEW if gap.verdict == NOT_MEASURED else needs.get(gap, ""),
            unless=unless(gap),
            given=ASSUMED if gap.assumed else "",
        )
        yield finding
        if not gap.assumed:
            yield from pair_findings(finding, gap.names, gap.answer, gap.rates)
    if assessment.of_decisions:
        unknown = Finding(GAP, "", "", NOT_MEASURED, bound=epsilon, needs="there are no labels")
        for attribute in assessment.table.groups:
            for metric, name in RATE_NAMES.items():
                if metric != NEEDS_NO_LABELS:
                    yield replace(unknown, attribute=attribute, measure=name)


def _constraint_findings(constrained: ConstrainedThreshold) -> Iterator[Finding]:
    for judged in constrained.judged:
        yield Finding(
            CONSTRAINT,
            judged.attribute,
            asked_of_threshold(constrained),
            {True: SMALL, False: LARGE, None: OPEN}[judged.holds],
            value=judged.value,
            lower=judged.lower,
            upper=judged.upper,
            bound=constrained.bound,
            n=constrained.rows[1],
            scope=f"at the threshold {constrained.threshold:.4g}",
        )


def _further(needed: Needed) -> str:
    """Return how many labels would settle a gap, in words."""
    if not needed.labels:
        return ""
    kind = "more labels" if needed.remaining is not None else "more rows with labels"
    if needed.enough is None:
        last = count(needed.labels[-1])
        more = f"all {last} other labels" if needed.remaining is not None else f"{last} {kind}"
        chance = probability(needed.settled[-1])
        return f"{more} would settle it with a probability of only {chance}"
    return f"{' to '.join(_likely(needed))} {kind} would probably settle it"


def _likely(needed: Needed) -> list[str]:
    """Return the numbers of labels that perhaps and probably settle a gap; one if they agree."""
    numbers = dict.fromkeys([needed.few, needed.enough])
    return [count(rounded(labels)) for labels in numbers if labels is not None]


def _warning(assessment: Assessment) -> str:
    if assessment.labels or assessment.of_decisions:
        return ""
    return (
        "There are no labels. Whatever needs them takes the scores at their word: if the scores "
        "are wrong, so are these figures, and nothing here would show it."
    )


def _basis(assessment: Assessment) -> Iterator[str]:
    rows, labels = len(assessment.table), assessment.labels
    if assessment.of_decisions:
        yield (
            f"{count(rows)} rows with decisions, and neither labels nor scores: how often each "
            "group is selected is known, and not how often that is right."
        )
    else:
        yield f"{count(rows)} rows, {count(labels)} of them with a label ({labels / rows:.2%})."
    options, sampling = assessment.options, assessment.table.sampling
    by_group = sampling is not None and labels > 0
    if sampling is not None and by_group and not assessment.complete:
        yield (
            f"How many rows of each group of {sampling.by} were labelled was decided while "
            "labelling; which ones, at random within the group. Figures that cross groups give "
            "each group its share of the rows, not of the labels."
        )
        yield sampling.stopping
    yield from counted_by(options)
    if assessment.complete or assessment.of_decisions:
        yield OF_POPULATION
    elif labels:
        helping = "Decisions" if assessment.table.score is None else "Scores"
        at_random = " This assumes that rows were chosen for labelling at random." * (not by_group)
        yield (
            f"Figures rest on the labelled rows. {helping} make intervals narrower as far as they "
            "have predicted the labels of each group; where they are wrong, intervals are wider "
            f"and still hold.{at_random}"
        )
    if assessment.assumed is not None:
        yield (
            "Beside them stands what would follow if scores were as right in every group as in the "
            "others (calibrated alike). No verdict rests on that."
        )


def _notes(assessment: Assessment) -> Iterator[str]:
    yield from assessment.table.notes
    yield from _on_choices(assessment)
    labels = {size.key: size.labels for size in assessment.sizes}
    by_attribute = {
        attribute: list(gaps)
        for attribute, gaps in groupby(assessment.gaps, lambda gap: gap.attribute)
    }
    for attribute, gaps in by_attribute.items():
        short = dict.fromkeys(name for gap in gaps for name in gap.short_of_labels)
        if short and assessment.labels:
            names = listed([f"{name} ({count(labels[attribute, name])})" for name in short])
            yield (
                f"{attribute}: under {FEWEST_LABELS} labels in {names}; no gap is called small "
                "before every group has as many."
            )
    yield from _on_calibration(assessment)
    for attribute, gaps in by_attribute.items():
        several = [gap for gap in gaps if gap.verdict == OPEN and not gap.signed]
        if several:
            noise = ", ".join(f"{number(gap.alike)} in {RATE_NAMES[gap.metric]}" for gap in several)
            yield (
                f"{attribute}: the largest gap among more than two groups is never 0; if every "
                f"group had the same estimate it would be {noise}, from sampling noise alone."
            )
    for attribute, gaps in by_attribute.items():
        left_out = [name for gap in gaps for name in gap.left_out]
        if left_out:
            yield f"{attribute}: left out of one gap or more for too few rows: {listed(left_out)}."


def _on_choices(assessment: Assessment) -> Iterator[str]:
    """Yield what a favourable label means, and how rows were chosen for labelling."""
    options, sampling = assessment.options, assessment.table.sampling
    if options.favourable:
        positive = spelled(options.favourable) == assessment.table.labels[1]
        kind, rate = ("negatives", "true") if positive else ("positives", "false")
        yield (
            f"'{spelled(options.favourable)}' is favourable: errors against a person are false "
            f"{kind}, and the gap in {rate} positive rate is the one to look at."
        )
    if sampling is None:
        return
    yield from sampling.notes
    missing = sampling.unlabelled(assessment.table.known)
    if missing and assessment.labels:
        yield (
            f"No row of {', '.join(missing)} has a label yet: metrics of scores leave these rows "
            "out, and other figures infer them from other groups."
        )
    if assessment.needed:
        yield (
            "Numbers of further labels are for rows chosen at random from all; chosen by group, "
            "fewer may do."
        )


def _on_calibration(assessment: Assessment) -> Iterator[str]:
    """Yield what speaks against scores calibrated alike, and what would follow if they were."""
    beside = " Do not use the figures “if calibrated alike”." * (assessment.assumed is not None)
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
                f"{gap.attribute}: if scores were calibrated alike, the gap in "
                f"{RATE_NAMES[gap.metric]} would be {number(value)} (95 % interval "
                f"{interval(lower, upper)}). That of the labels, {interval(gap.lower, gap.upper)}, "
                "does not overlap with it."
            )
    epsilon = assessment.options.epsilon
    for stress in assessment.stresses:
        size = f"under {epsilon:g}" if stress.follows == SMALL else f"over {epsilon:g}"
        ends = [
            f"the scores of {group} {_as_much(factor)}"
            for factor, group in ((stress.less, stress.weakest), (stress.more, stress.strongest))
            if group
        ]
        holds = (
            f"It no longer does if {' or '.join(ends)}"
            if ends
            else "It does however much or little they say"
        )
        yield (
            f"{stress.attribute}: if scores are calibrated alike, the 95 % interval of the gap in "
            f"{RATE_NAMES[stress.metric]} lies {size}. {holds}."
        )


def _as_much(factor: float) -> str:
    """Return what scores say whose slope is so many times what it seems."""
    if factor <= 0:
        return "say the opposite" if factor else "say nothing"
    return f"say {factor:g} times as much as it seems"


def _sure(assessment: Assessment) -> Iterator[str]:
    rows, labels = len(assessment.table), assessment.labels
    known = "all" if labels == rows else "none" if not labels else count(labels)
    yield f"There are {count(rows)} rows, {known} of them with a known outcome."
    if not labels and assessment.table.score is None:
        yield "Without outcomes and scores, only who is selected is known; nothing of errors is."
    elif not labels:
        yield (
            "Without outcomes, everything but the selection rate takes the scores at their word. "
            "If they are wrong, so is this, and nothing here would show it."
        )
    elif any(gap.tipping for gap in assessment.gaps if gap.verdict == LARGE):
        yield "How many wrong labels would undo each finding stands under “Can be concluded”."


def _unseen(assessment: Assessment) -> Iterator[str]:
    options = assessment.options
    left = dict.fromkeys(name for gap in assessment.gaps for name in gap.left_out)
    if left:
        yield f"Too small to be compared in every rate: {listed([*left], _MOST)}."
    if assessment.labels:
        yield (
            f"Whether the outcomes in '{options.target}' are right, and were fair in the first "
            "place, was not looked at. Nor was why groups differ."
        )
    else:
        yield "Whether decisions are right was not looked at: that takes outcomes."
    if not options.favourable:
        yield "Which decision is good for a person was not said (favourable= says it)."


def _todo(assessment: Assessment) -> Iterator[str]:
    if not assessment.labels:
        yield "Collect outcomes: even 100 to 200, of rows chosen at random, check the scores."
        return
    verdicts = {gap.verdict for gap in assessment.gaps}
    enough = [need for need in assessment.needed if need.enough is not None]
    if OPEN in verdicts and enough:
        nearest = min(enough, key=lambda need: need.enough or 0)
        kind = "labels" if nearest.remaining is not None else "rows with labels"
        likely = _likely(nearest)
        yield (
            f"Collect more {kind}: {'about ' * (len(likely) == 1)}{' to '.join(likely)} would "
            f"probably settle {RATE_NAMES[nearest.gap.metric]} by {nearest.gap.attribute}, the "
            "nearest open question."
        )
    elif OPEN in verdicts and assessment.needed:
        yield (
            "The labels that are missing are not likely to settle what is open: audit a larger "
            "sample."
        )
    if assessment.options.favourable:
        label = spelled(assessment.options.favourable)
        yield (
            f"Look first at people who should have got '{label}' and did not: these errors cost "
            "people most."
        )
    if verdicts <= {SMALL}:
        yield "Repeat the audit when the model changes, or the people that it is used on."


def _sections(assessment: Assessment) -> Iterator[Section]:
    if assessment.impact:
        yield Section("Impact ratios", list(impact_blocks(assessment)))
    yield Section("Gaps between groups", [_gaps(assessment), *_more_labels(assessment.needed)])
    pairs = [
        (gap.attribute, RATE_NAMES[gap.metric], high, low)
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
    drawn = list(diagrams(assessment))
    if drawn:
        note = (
            f"Share of '{assessment.table.labels[1]}' among labelled rows of similar scores, with "
            "95 % intervals; on the dashed line scores are probabilities."
        )
        yield Section("Calibration by group", [calibration_table(assessment), Gallery(drawn, note)])
    on_metrics = (
        "Values and intervals rest on the labels; those of scores themselves on labelled rows."
    )
    note = "" if assessment.of_decisions else on_metrics
    yield Section("", [all_metrics(assessment.metrics, note)])


def _gaps(assessment: Assessment) -> Table:
    epsilon, gaps = assessment.options.epsilon, assessment.gaps
    beside, labelled = assessment.assumed is not None, not assessment.of_decisions
    placed = bars([(gap.lower, gap.value, gap.upper) for gap in gaps], epsilon)
    bar_of = dict(zip(gaps, placed, strict=True))
    needed = {need.gap: need for need in assessment.needed}
    more = " more labels: how many would probably settle the verdict."
    meant = (
        " More labels: from the number that settles the question in 20 % of "
        f"{WORLDS} simulations to that which settles it in 80 %."
    )
    alike = (
        " if calibrated alike: the interval that follows if scores are as right in every group as "
        "in the others; no verdict rests on it."
    )

    def small(gap: Gap) -> float | None:
        # Of several groups it would follow from how little is known of each, not from the data.
        return gap.small if gap.signed or gap.assumed else None

    def more_labels(gap: Gap) -> str:
        need = needed.get(gap)
        if need is None or not need.labels:
            return ""
        if need.enough is None:
            return f">{count(need.labels[-1])}"
        likely = _likely(need)
        return "-".join(likely) if len(likely) > 1 else f"~{likely[0]}"

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
            (lambda gap: RATE_NAMES[gap.metric], Column("gap in")),
            (
                lambda gap: signed(gap.value) if gap.signed else number(gap.value),
                Column("size", right=True),
            ),
            *[(lambda gap: gap.standard_error if gap.signed else None, error)] * (not labelled),
            (("lower", "upper"), Column("95 % interval", "interval")),
            (bar_of.get, Column("", "bar")),
            *[(lambda gap: gap.supposed[1:], supposed)] * beside,
            (small, Column(f"P(<{epsilon:g})", "probability", left_out=1)),
            (verdict, Column("verdict")),
            *[(more_labels, Column("more labels", right=True))] * labelled,
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


def _more_labels(needed: Sequence[Needed]) -> Iterator[Details]:
    if not needed:
        return
    numbers = max((need.labels for need in needed), key=len)
    columns = [Column("groups"), Column("gap in")]
    columns += [Column(count(labels), "probability") for labels in numbers]
    rows = [
        [need.gap.attribute, RATE_NAMES[need.gap.metric], *need.settled]
        + [None] * (len(numbers) - len(need.settled))
        for need in needed
    ]
    yield Details("How probably more labels settle what is open", [Table(columns, rows)])


def _rates(assessment: Assessment) -> Table:
    labelled = not assessment.of_decisions
    main = _MAIN_RATES if labelled else {"selection_rate": "selected"}
    values = estimates(assessment.metrics, main)
    return table_of(
        assessment.sizes,
        [
            *OF_GROUP,
            ("rows", Column("rows", "count")),
            *[("labels", Column("labels", "count"))] * labelled,
            *(
                (lambda size, name=name: values.get((*size.key, name)), Column(title, "estimate"))
                for name, title in main.items()
            ),
        ],
        most=MOST_ROWS,
    )


def _data(assessment: Assessment) -> Mapping[str, Any]:
    constrained = assessment.thresholds.constrained
    of_need = ("labels", "settled", "few", "enough", "remaining")
    return {
        "label_names": dict(zip("01", assessment.table.labels, strict=True)),
        "gaps": [
            {
                **_fields(gap, without=("answer", "names", "rates", "rows")),
                "verdict": verdict_text(gap) if gap.verdict == NOT_MEASURED else gap.verdict,
                "low": gap.low,
                "high": gap.high,
                "pairs": gap.pairs,
            }
            for gap in assessment.gaps
        ],
        "labels_needed": [
            {
                "attribute": need.gap.attribute,
                "metric": need.gap.metric,
                **{name: getattr(need, name) for name in of_need},
            }
            for need in assessment.needed
        ],
        "sizes": [asdict(size) for size in assessment.sizes],
        "impact": [asdict(ratio) for ratio in assessment.impact],
        "decisions": {
            "thresholds": [asdict(row) for row in assessment.thresholds.table],
            "constraint": None if constrained is None else asdict(constrained),
            "scores": [asdict(scores) for scores in assessment.scores],
        },
        "calibration": [_fields(row, without=("fit",)) for row in assessment.calibrations],
        "checks": [
            {"attribute": row.attribute, "group": row.group, "calibrated_as_others": row.fit}
            for row in assessment.calibrations
            if not isnan(row.fit)
        ],
        "stress": [asdict(stress) for stress in assessment.stresses],
        "metrics": records(assessment.metrics),
        "if_calibrated_alike": [] if assessment.assumed is None else records(assessment.assumed),
    }


def _fields(row: Gap | GroupCalibration, *, without: Sequence[str]) -> dict[str, Any]:
    return {name: value for name, value in asdict(row).items() if name not in without}
