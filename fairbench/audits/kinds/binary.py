"""The audit of a classifier of two classes, of all labels, of some, or of none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

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
)
from fairbench.audits.gaps import FEWEST_LABELS, RATE_NAMES, Gap, gap_findings
from fairbench.audits.impact import impact_findings, impact_ratios
from fairbench.audits.labels_needed import WORLDS, Needed, rounded
from fairbench.audits.pages.decisions import (
    asked_of_threshold,
    calibration_table,
    decision_sections,
    impact_blocks,
)
from fairbench.audits.pages.parts import MOST_ROWS, all_metrics, bars, estimates, starts
from fairbench.audits.pages.pictures import diagrams, pictures
from fairbench.audits.question import Options
from fairbench.audits.report import Audit
from fairbench.audits.sentences import listed
from fairbench.audits.table import AuditTable
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

_MAIN_RATES = (
    ("selected", "selection_rate"),
    ("TPR", "true_positive_rate"),
    ("FPR", "false_positive_rate"),
    ("precision", "positive_predictive_value"),
    ("accuracy", "accuracy"),
)
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
    needed = {(need.gap.attribute, need.gap.metric): _further(need) for need in assessment.needed}
    wrong = {(gap.attribute, gap.metric): unless(gap) for gap in assessment.gaps}
    epsilon = assessment.options.epsilon
    first = gap_findings(assessment.gaps, epsilon, needs=needed, unless=wrong)
    first += _without_labels(assessment)
    first += _constraint_findings(assessment)
    return [*first, *_further_findings(assessment, first)]


def _further_findings(assessment: Assessment, first: Sequence[Finding]) -> list[Finding]:
    """Return impact ratios and excesses of scores, on what settled gaps leave of the budget."""
    options, table = assessment.options, assessment.table
    ratios = [ratio for ratio in assessment.impact if ratio.attribute in options.group]
    scores = [scores for scores in assessment.calibrations if scores.attribute in options.group]
    freed = sum(gap.freed for gap in assessment.gaps)
    freed += sum(finding.about == CONSTRAINT and finding.is_settled for finding in first)
    risk = assessment.budget.passed_on(freed, len(ratios) + len(scores)).risk
    if not risk:
        return []
    # Groups of two attributes together are described only, so their intervals are not made again.
    singles = replace(table, groups={name: table.groups[name] for name in options.group})
    findings = impact_findings(ratios, impact_ratios(singles, options, level=1 - 2 * risk))
    if not scores:  # there are none, or rows are weighted or in clusters
        return findings
    return findings + excess_findings(scores, list(calibrations(singles, level=1 - risk)))


def _without_labels(assessment: Assessment) -> list[Finding]:
    """Return that decisions alone say nothing of errors."""
    if not assessment.of_decisions:
        return []
    measured = {gap.metric for gap in assessment.gaps}
    return [
        Finding(
            GAP,
            attribute,
            name,
            NOT_MEASURED,
            bound=assessment.options.epsilon,
            needs="there are no labels",
        )
        for attribute in assessment.table.groups
        for metric, name in RATE_NAMES.items()
        if metric not in measured
    ]


def _constraint_findings(assessment: Assessment) -> list[Finding]:
    thresholds = assessment.thresholds
    constrained = None if thresholds is None else thresholds.constrained
    if constrained is None:
        return []
    return [
        Finding(
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
        for judged in constrained.judged
    ]


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
    if needed.few is None or needed.few == needed.enough:
        return f"{count(rounded(needed.enough))} {kind} would probably settle it"
    ends = f"{count(rounded(needed.few))} to {count(rounded(needed.enough))}"
    return f"{ends} {kind} would probably settle it"


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
    sampling = assessment.table.sampling
    by_group = sampling is not None and labels > 0
    if sampling is not None and by_group and not assessment.complete:
        yield (
            f"How many rows of each group of {sampling.by} were labelled was decided while "
            "labelling; which ones, at random within the group. Figures that cross groups give "
            "each group its share of the rows, not of the labels."
        )
        yield sampling.stopping
    options = assessment.options
    if options.weight:
        yield f"Rows count by '{options.weight}': figures are of the people that they stand for."
    if options.cluster:
        yield f"Rows with the same '{options.cluster}' belong together, and intervals know it."
    if assessment.complete or assessment.of_decisions:
        yield "Intervals say how far off the population may be that these rows are a sample of."
    elif labels:
        yield from _of_some_labels(assessment, at_random=not by_group)


def _of_some_labels(assessment: Assessment, *, at_random: bool) -> Iterator[str]:
    """Yield what figures from some labels assume, and what stands beside them."""
    scores = assessment.table.score is not None
    helping = "Scores" if scores else "Decisions"
    assumption = " This assumes that rows were chosen for labelling at random." * at_random
    yield (
        f"Figures rest on the labelled rows. {helping} make intervals narrower as far as they have "
        f"predicted the labels of each group; wrong ones do no harm.{assumption}"
    )
    if assessment.assumed is not None:
        yield (
            "Beside them stands what would follow if scores were as right in every group as in the "
            "others (calibrated alike). No verdict rests on that."
        )


def _notes(assessment: Assessment) -> Iterator[str]:
    yield from assessment.table.notes
    yield from _favourable(assessment)
    yield from _sampling(assessment)
    yield from _short_of_labels(assessment)
    yield from _calibration(assessment)
    yield from _contradicted(assessment)
    yield from _stressed(assessment)
    yield from _by_noise(assessment)
    left: dict[str, list[str]] = {}
    for gap in assessment.gaps:
        left.setdefault(gap.attribute, []).extend(gap.left_out)
    for attribute, names in left.items():
        if names:
            yield f"{attribute}: left out of one gap or more for too few rows: {listed(names)}."


def _contradicted(assessment: Assessment) -> Iterator[str]:
    """Yield where the interval of labels and that of scores calibrated alike do not overlap."""
    for gap in assessment.gaps:
        value, lower, upper = gap.supposed
        if lower > gap.upper or upper < gap.lower:
            yield (
                f"{gap.attribute}: if scores were calibrated alike, the gap in "
                f"{RATE_NAMES[gap.metric]} would be {number(value)} (95 % interval "
                f"{interval(lower, upper)}). That of the labels, {interval(gap.lower, gap.upper)}, "
                "does not overlap with it."
            )


def _stressed(assessment: Assessment) -> Iterator[str]:
    """Yield what would follow from scores alone, and with which wrong scores it would not."""
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


def _by_noise(assessment: Assessment) -> Iterator[str]:
    """Yield how large an attribute's open gaps would be by what is not known of its groups."""
    for attribute in assessment.table.groups:
        mine = [gap for gap in assessment.gaps if gap.attribute == attribute]
        open_ = [gap for gap in mine if gap.verdict == OPEN and not gap.signed]
        if open_:
            sizes = ", ".join(f"{number(gap.alike)} in {RATE_NAMES[gap.metric]}" for gap in open_)
            yield (
                f"{attribute}: the largest gap among more than two groups is never 0; if every "
                f"group had the same estimate it would be {sizes}, from sampling noise alone."
            )


def _short_of_labels(assessment: Assessment) -> Iterator[str]:
    """Yield the groups of too few labels for anything about them to be called fine."""
    labels = {size.key: size.labels for size in assessment.sizes}
    for attribute in assessment.table.groups:
        gaps = [gap for gap in assessment.gaps if gap.attribute == attribute]
        short = dict.fromkeys(name for gap in gaps for name in gap.short_of_labels)
        if short and assessment.labels:
            names = listed([f"{name} ({count(labels[attribute, name])})" for name in short])
            yield (
                f"{attribute}: under {FEWEST_LABELS} labels in {names}; no gap is called small "
                "before every group has as many."
            )


def _sampling(assessment: Assessment) -> Iterator[str]:
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
    if assessment.needed:
        yield (
            "Numbers of further labels are for rows chosen at random from all; chosen by group, "
            "fewer may do."
        )


def _favourable(assessment: Assessment) -> Iterator[str]:
    options, names = assessment.options, assessment.table.labels
    if not options.favourable:
        return
    positive = spelled(options.favourable) == names[1]
    kind, rate = ("false negatives", "true positive rate") if positive else (
        "false positives", "false positive rate"
    )  # fmt: skip
    yield (
        f"'{spelled(options.favourable)}' is favourable: errors against a person are {kind}, and "
        f"the gap in {rate} is the one to look at."
    )


def _calibration(assessment: Assessment) -> Iterator[str]:
    """Yield whose labels fit least how the scores of other groups are calibrated."""
    strange = least_alike(assessment.calibrations)
    beside = " Do not use the figures “if calibrated alike”." * (assessment.assumed is not None)
    for attribute in dict.fromkeys(each.attribute for each in strange):
        alike = [each for each in strange if each.attribute == attribute]
        groups = " and ".join(each.group for each in alike)
        yield (
            f"{attribute}: the labels of {groups} fit least how the scores of the other groups are "
            "calibrated. If scores were calibrated alike, labels as strange would come with a "
            f"probability of {probability(alike[0].fit)}.{beside}"
        )


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
    yield from _more_labels_first(assessment)
    favourable = assessment.options.favourable
    if favourable:
        label = spelled(favourable)
        yield (
            f"Look first at people who should have got '{label}' and did not: these errors cost "
            "people most."
        )
    if all(gap.verdict == SMALL for gap in assessment.gaps):
        yield "Repeat the audit when the model changes, or the people that it is used on."


def _more_labels_first(assessment: Assessment) -> Iterator[str]:
    """Yield which open question takes the fewest further labels."""
    if not any(gap.verdict == OPEN for gap in assessment.gaps):
        return
    enough = [each for each in assessment.needed if each.enough is not None]
    if enough:
        first = min(enough, key=lambda each: each.enough or 0)
        kind = "labels" if first.remaining is not None else "rows with labels"
        yield (
            f"Collect more {kind}: {_enough(first)} would probably settle "
            f"{RATE_NAMES[first.gap.metric]} by {first.gap.attribute}, the nearest open question."
        )
    elif assessment.needed:
        yield (
            "The labels that are missing are not likely to settle what is open: audit a larger "
            "sample."
        )


def _enough(needed: Needed) -> str:
    last = count(rounded(needed.enough or 0))
    if needed.few is None or needed.few == needed.enough:
        return f"about {last}"
    return f"{count(rounded(needed.few))} to {last}"


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
    if _differ_somehow(gap):
        said = f": they differ, not known between whom by {epsilon:g} or more: "
        more = (said, Link("see the pairs", f"#{_PAIRS}"))
    return TableCell(verdict_text(gap), mark=mark, after=more)


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


_PAIRS = "pairs"


def _pairs(assessment: Assessment) -> Iterator[Section]:
    """Yield between whom open gaps surely are, where there are more than two groups."""
    open_gaps = [gap for gap in assessment.gaps if _differ_somehow(gap)]
    if open_gaps:
        columns = [Column("groups"), Column("rate"), Column("higher"), Column("lower")]
        rows = [
            [gap.attribute, RATE_NAMES[gap.metric], high, low]
            for gap in open_gaps
            for high, low in gap.pairs
        ]
        caption = (
            "Two groups a row that surely differ, though by how much is open; that they do is "
            "under the error rate of the page."
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


def _data(assessment: Assessment) -> Mapping[str, Any]:
    negative, positive = assessment.table.labels
    return {
        "label_names": {"0": negative, "1": positive},
        "gaps": [_gap_data(gap) for gap in assessment.gaps],
        "labels_needed": [
            _of_gap(each.gap, each, ("labels", "settled", "few", "enough", "remaining"))
            for each in assessment.needed
        ],
        "sizes": [asdict(each) for each in assessment.sizes],
        "impact": [asdict(each) for each in assessment.impact],
        "decisions": _decisions(assessment),
        "calibration": [_without_fit(each) for each in assessment.calibrations],
        "checks": [
            {"attribute": each.attribute, "group": each.group, "calibrated_as_others": each.fit}
            for each in assessment.calibrations
            if not np.isnan(each.fit)
        ],
        "stress": [asdict(each) for each in assessment.stresses],
        "metrics": records(assessment.metrics),
        "if_calibrated_alike": [] if assessment.assumed is None else records(assessment.assumed),
    }


def _gap_data(gap: Gap) -> dict[str, Any]:
    """Return a gap as plain values, with what is said of it."""
    left_out = ("answer", "names", "rates", "rows")
    values = {name: value for name, value in asdict(gap).items() if name not in left_out}
    return {
        **values,
        "verdict": verdict_text(gap) if gap.verdict == NOT_MEASURED else gap.verdict,
        "low": gap.low,
        "high": gap.high,
        "pairs": gap.pairs,
    }


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
