"""The audit of one classifier of two classes: what its page says and shows around its findings.

What is found of people is worded by :mod:`fairbench.audits.sentences`. Begin with `audit_of`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from math import floor, isfinite, isnan, log10
from typing import Any

import numpy as np

from fairbench.audits import report
from fairbench.audits.assessment import Assessment, impact_findings, impact_ratios, small_groups
from fairbench.audits.direction import NEEDS_NO_LABELS, RATE_OF, Direction
from fairbench.audits.gaps import FEWEST_LABELS, Gap
from fairbench.audits.labels_needed import LIKELY
from fairbench.audits.question import RATIO, Options
from fairbench.audits.table import AuditTable
from fairbench.core.text import count, interval, listed, number, signed, two_digits
from fairbench.evaluation import findings
from fairbench.evaluation.by_group import COMPARED_WITH, LARGE_ENOUGH, Row, is_given_reference
from fairbench.evaluation.findings import NOT_MEASURED, OPEN, Finding
from fairbench.evaluation.table import records
from fairbench.inference.gaps import FOUR_FIFTHS
from fairbench.inference.partial import Tipping
from fairbench.inference.rates import Limits
from fairbench.metrics.registry import label
from fairbench.reporting import group_tables as tables
from fairbench.reporting.charts import NAN, Panel, chart, forest
from fairbench.reporting.document import model as doc

_said = partial(tables.sentence_of, "binary")
ALARMS = 0.01  # the false alarm rate of an audit if all groups are calibrated in the same way
_MOST = 3  # groups of too few rows that a summary names


def _basis_of(assessment: Assessment) -> Iterator[str]:
    """Yield what the figures rest on: the rows and their labels."""
    table = assessment.table
    labels = assessment.labels
    rows = len(table)
    if table.of_decisions:
        yield _said("of_decisions", rows=rows, granted=table.direction.granted)
    else:
        yield report.counted_rows(rows, labels)
    by_group = table.sampling if labels else None
    if by_group is not None and not table.complete:
        yield _said("chosen", by=by_group.by)
        yield by_group.stopping
    yield from report.counted_by(assessment.options)
    if table.complete or table.of_decisions:
        yield report.OF_POPULATION
    elif labels:
        predictor = "Decisions" if table.score is None else "Scores"
        assumed = "" if by_group else _said("at_random")
        yield _said("labelled", predictor=predictor, assumed=assumed)
    if assessment.assumed is not None:
        yield _said("beside")


def _notes_on(assessment: Assessment) -> Iterator[str]:
    """Yield what a reader has to know of the groups, the labels and the calibration of scores."""
    sampling = assessment.table.sampling
    if sampling is not None:
        yield from sampling.notes
        missing = sampling.unlabelled(assessment.table.known)
        if missing and assessment.labels:
            yield _said("unlabelled", groups=", ".join(missing))
    labels = {(row["attribute"], row["group"]): row["labels"] for row in assessment.sizes}
    by_attribute = {
        attribute: list(gaps)
        for attribute, gaps in groupby(assessment.gaps, lambda gap: gap.attribute)
    }
    for attribute, gaps in by_attribute.items():
        if short := dict.fromkeys(name for gap in gaps for name in gap.short_of_labels):
            groups = [f"{name} ({count(labels[attribute, name])})" for name in short]
            yield _said("short_of_labels", attribute=attribute, enough=FEWEST_LABELS, groups=groups)
    yield from _on_calibration(assessment)
    for attribute, gaps in by_attribute.items():
        if few := [name for gap in gaps for name in gap.few]:
            yield _said("few", attribute=attribute, names=few)
    yield from _notes_within(assessment.within)


def _notes_within(gaps: Sequence[Gap]) -> Iterator[str]:
    """Yield who and what is not compared within strata."""
    said = partial(tables.sentence_of, "within")
    for attribute, of_attribute in groupby(gaps, lambda gap: gap.attribute):
        several = list(of_attribute)
        if few := [*dict.fromkeys(name for gap in several for name in gap.few)]:
            yield said("left_out", attribute=attribute, within=several[0].within, names=few)
        if alone := [gap for gap in several if gap.alone]:
            least = min(alone, key=lambda gap: gap.covered)
            strata = listed([*dict.fromkeys(name for gap in alone for name in gap.alone)], 3)
            yield said("alone", least=least, strata=strata, percent=100 * least.covered)


def _on_calibration(assessment: Assessment) -> Iterator[str]:
    """Yield what speaks against scores calibrated alike.

    Of an attribute whose groups surely differ, the one is named whose labels fit least how the
    scores of the others are calibrated, or several that fit as little. However many groups are
    compared, at most 3 % of audits have an alarm without cause.
    """
    advice = "" if assessment.assumed is None else _said("not_if_alike")
    compared = [row for row in assessment.calibrations if not isnan(row["fit"])]
    for attribute, of_attribute in groupby(compared, lambda row: row["attribute"]):
        fits = {row["group"]: row["fit"] for row in of_attribute}
        fit = min(fits.values())
        if fit * len(compared) < ALARMS:
            groups = " and ".join(group for group in fits if fits[group] == fit)
            yield _said("least_alike", attribute=attribute, groups=groups, fit=fit, advice=advice)


def _further(assessment: Assessment) -> str:
    """Return what further labels are: of rows that lack one, or of new rows."""
    return "more labels" if assessment.labels < len(assessment.table) else "more rows"


def _needed_in_words(needed: Mapping[str, int | None], kind: str) -> str:
    """Return how many labels, or rows, would settle a gap, in words; empty if all are too few."""
    clauses = []
    after = f" {kind} would settle it with a probability of {100 * LIKELY:.0f} %"
    for supposed, labels in needed.items():
        if labels is not None:
            clauses.append(f"about {two_digits(labels)}{after} if {supposed}")
            after = ""
    return ", ".join(clauses)


def _of_part(table: AuditTable, options: Options) -> str:
    """Return of whom it is what a table says, in words; empty if of everyone in the file."""
    return "" if table.everyone is None else f"of those {table.chosen} ('{options.selected}')"


def _sure_of(assessment: Assessment) -> Iterator[str]:
    """Yield sentences on the certainty of the findings: the known outcomes, and their limits."""
    table = assessment.table
    rows = len(table)
    labels = assessment.labels
    some = count(labels) if labels else "none"
    outcomes = "all" if labels == rows else some
    there = f"There are {count(rows)} rows"
    if table.everyone is not None:
        of_rows = f"Of {count(len(table.everyone))} rows"
        there = f"{of_rows}, {count(rows)} are {_of_part(table, assessment.options)}"
    yield f"{there}, {outcomes} of them with a known outcome."
    if not labels:
        known = "decisions_known" if table.score is None else "scores_known"
        yield _said(known, granted=table.direction.granted)
    elif any(gap.tipping for gap in assessment.gaps if gap.verdict == findings.LARGE):
        yield _said("tipping")


def _unseen_of(assessment: Assessment) -> Iterator[str]:
    """Yield what the audit did not look at: groups of few rows, and whether outcomes are right."""
    rates_of: dict[str, list[str]] = {}
    fixed: dict[str, list[str]] = {}
    for gap in assessment.gaps:
        if gap.fixed:
            fixed.setdefault(gap.fixed, []).append(gap.rate_name)
        for name in gap.few:
            if gap.attribute in assessment.options.group:
                rates_of.setdefault(name, []).append(gap.rate_name)
    for name, rates in list(rates_of.items())[:_MOST]:
        yield _said("few_rows", name=name, rates=rates)
    if len(rates_of) > _MOST:
        yield _said("few_rows_more", more=len(rates_of) - _MOST)
    for why, rates in fixed.items():
        yield _said("fixed", rates=rates, why=why)
    outcomes = "outcomes" if assessment.labels else "no_outcomes"
    yield _said(outcomes, target=assessment.options.target)


def _todo_after(assessment: Assessment) -> Iterator[str]:
    """Yield what to do next: collect outcomes or labels, audit more rows, or repeat the audit."""
    if not assessment.labels:
        subject = "decisions" if assessment.table.of_decisions else "scores"
        yield _said("collect_outcomes", subject=subject)
        return
    fewest = {
        gap: min(filter(None, gap.needed.values()), default=0)
        for gap in assessment.gaps
        if gap.needed
    }
    if reachable := [gap for gap, labels in fewest.items() if labels]:
        single = [gap for gap in reachable if gap.attribute in assessment.options.group]
        nearest = min(single or reachable, key=lambda gap: fewest[gap])
        kind = _further(assessment)
        needed = _needed_in_words(nearest.needed, kind)
        yield _said("collect", kind=kind, nearest=nearest, needed=needed)
    elif fewest:
        part = _of_part(assessment.table, assessment.options)
        yield _said("too_few", part=f" {part}" if part else "")
    if {gap.verdict for gap in assessment.gaps} <= {findings.SMALL}:
        yield _said("repeat")


# The audit of a classifier of two classes, of all labels, of some, or of none.


def audit_of(assessment: Assessment) -> report.Audit:
    """Return the audit of decisions about two classes, with the labels and scores there are."""
    options, table = assessment.options, assessment.table
    direction = table.direction
    warnings = [*table.warnings]
    if not (assessment.labels or table.of_decisions):
        warnings.append(_said("no_labels"))
    # Looked at first where it was said what is good for a person.
    is_said = direction.favourable is not None
    return report.Audit.of(
        table,
        options,
        _basis_of(assessment),
        findings=findings_of(assessment),
        sections=list(_sections_of(assessment)),
        data=_data(assessment),
        warning=" ".join(warnings),
        notes=[*table.notes, *_notes_on(assessment)],
        pictures=_pictures(assessment),
        sure=list(_sure_of(assessment)),
        unseen=list(_unseen_of(assessment)),
        todo=list(_todo_after(assessment)),
        headlines=[direction.rate_names[direction.wrongly_refused]] if is_said else [],
        rates="" if table.of_decisions else direction.rates_explained,
    )


def findings_of(assessment: Assessment) -> list[Finding]:
    """Return what an assessment says of the people that its rows are a sample of.

    Gaps, and a constraint that is asked for, share the error rate. What they no longer need goes
    to impact ratios and to whether the scores of a group are too high.
    """
    options, table = assessment.options, assessment.table
    *_, constrained = assessment.thresholds
    constraint: list[Finding] = []
    if constrained is not None:
        constraint = list(_constraint_findings(constrained, table.direction))
    found = [
        *_gap_findings(assessment),
        *(finding for gap in assessment.within for finding in gap.conclude()),
        *constraint,
    ]
    ratios = [ratio for ratio in assessment.impact if ratio["attribute"] in options.group]
    scores = [row for row in assessment.calibrations if row["attribute"] in options.group]
    freed = sum(gap.freed for gap in assessment.gaps)
    freed += sum(finding.is_settled for finding in constraint)
    risk = findings.risk_of(len(ratios) + len(scores), assessment.risk * freed)
    if risk:
        # Groups of two attributes together are described only: their intervals are not made again.
        groups = {name: table.whole.groups[name] for name in options.group}
        level = findings.one_sided_level(risk)
        wider = impact_ratios(replace(table.whole, groups=groups), level=level)
        small = {ratio["attribute"] for ratio in small_groups(ratios)}
        found += impact_findings(ratios, wider, table.whole.granted, small)
        found += _excess_findings(scores, risk)
    part = _of_part(table, options)
    return [
        replace(finding, scope=", ".join(filter(None, [part, finding.scope])))
        if finding.about != findings.RATIO  # which is of everyone
        else finding
        for finding in found
    ]


def _excess_findings(found: Sequence[Row], risk: float) -> Iterator[Finding]:
    """Yield, for each group, whether its scores are too high or too low on average.

    Parameters
    ----------
    risk : the error rate of one answer.
    """
    for row in found:
        measured = not np.isnan(row["at"](1 - risk)[0])

        def limits(level: float, row: Row = row) -> Limits:
            return Limits(row["excess"], *row["at"](level))

        yield Finding(
            findings.EXCESS,
            row["attribute"],
            "mean score less share of label 1",
            findings.answer_difference(limits, 0.0, risk) if measured else findings.NOT_MEASURED,
            (row["group"],),
            value=row["excess"],
            lower=row["lower"],
            upper=row["upper"],
            n=row["labels"],
            needs="" if measured else "there are too few labels, or of one kind",
        )


def _gap_findings(assessment: Assessment) -> Iterator[Finding]:
    """Yield what gaps say of the people that the rows are a sample of, and of pairs of groups."""
    kind = _further(assessment)
    for gap in assessment.gaps:
        found, *pairs = gap.conclude(unless=_tipping_clause(gap.tipping))
        needs = filter(None, [found.needs, _needed_in_words(gap.needed, kind)])
        yield replace(found, needs="; ".join(needs))
        if not gap.assumed:
            yield from pairs
    if assessment.table.of_decisions:
        bound = assessment.options.epsilon
        unknown = Finding(findings.GAP, bound=bound, needs="there are no labels")
        for attribute in assessment.table.groups:
            for metric, name in assessment.table.direction.rate_names.items():
                if metric != NEEDS_NO_LABELS:
                    yield replace(unknown, attribute=attribute, measure=name)


def _tipping_clause(tipping: Tipping | None) -> str:
    """Return the clause after "unless": which labels would have to be wrong to undo a verdict.

    Empty where no number of wrong labels would undo it.
    """
    if tipping is None or not tipping.alone:
        return ""
    name, share = tipping.alone[0]
    if not share:
        return f"a single label of {name} is wrong"
    clause = f"more than {_percent(share)} of the labels of {name} are wrong"
    if tipping.together and tipping.together < share:
        every = "both groups" if len(tipping.groups) == 2 else "every group"
        clause += f", or more than {_percent(tipping.together)} of those of {every} at once"
    return clause


def _percent(share: float) -> str:
    """Return a share of at most 1 in percent with two digits, never rounded up."""
    digits = max(1 - floor(log10(100 * share)), 0)
    return f"{floor(100 * share * 10**digits + 1e-9) / 10**digits:g} %"


def _constraint_findings(constrained: Row, direction: Direction) -> Iterator[Finding]:
    """Yield whether each attribute's groups keep a constraint, at the threshold it was set on."""
    for judged in constrained["judged"]:
        yield Finding(
            findings.CONSTRAINT,
            judged["attribute"],
            _asked_of_threshold(constrained, direction),
            {True: findings.SMALL, False: findings.LARGE, None: findings.OPEN}[judged["holds"]],
            value=judged["value"],
            lower=judged["lower"],
            upper=judged["upper"],
            bound=constrained["bound"],
            n=constrained["rows"][1],
            scope=f"at the threshold {constrained['threshold']:.4g}",
        )


_PLAIN = ("attribute", "metric", "within", "names", "value", "lower", "upper", "answer", "rates",
          "covered", "alone", "strata", "minimum", "rate_name")  # fmt: skip

_GAP_FIELDS = (
    "attribute", "metric", "compared", "left_out", "few", "assumed", "value", "lower", "upper",
    "supposed", "small", "tipping", "short_of_labels", "standard_error",
)  # fmt: skip


def _data(assessment: Assessment) -> Mapping[str, Any]:
    """Return all that was computed in plain values, for the JSON."""
    gaps = assessment.gaps
    calibrations = assessment.calibrations
    within = [
        {**_fields(gap, *_PLAIN), "left_out": gap.few, "rows": gap.asked.n}
        for gap in assessment.within
    ]
    return {
        "label_names": dict(zip("01", assessment.table.labels, strict=True)),
        "gaps": [
            {
                **_fields(gap, *_GAP_FIELDS),
                "alike": gap.noise,
                "verdict": _verdict_text(gap)
                if gap.verdict == findings.NOT_MEASURED
                else gap.verdict,
                **dict(zip(("low", "high"), gap.named[::-1] or ("", ""), strict=True)),
                "pairs": gap.pairs,
            }
            for gap in gaps
        ],
        "labels_needed": [
            _fields(gap, "attribute", "metric") | {"supposed": supposed, "labels": labels}
            for gap in gaps
            for supposed, labels in gap.needed.items()
        ],
        "sizes": assessment.sizes,
        "impact": assessment.impact,
        "decisions": {
            "thresholds": assessment.thresholds[1].to_dict("records"),
            "constraint": assessment.thresholds[2],
            "scores": assessment.scores,
        },
        "calibration": [
            {name: value for name, value in row.items() if name not in ("fit", "at")}
            for row in calibrations
        ],
        "checks": [
            {
                "attribute": row["attribute"],
                "group": row["group"],
                "calibrated_as_others": row["fit"],
            }
            for row in calibrations
            if not isnan(row["fit"])
        ],
        **({"within": within} if within else {}),
        "metrics": records(assessment.metrics),
        "if_calibrated_alike": [] if assessment.assumed is None else records(assessment.assumed),
    }


def _fields(row: object, *names: str) -> dict[str, Any]:
    """Return these attributes of an object by name."""
    return {name: getattr(row, name) for name in names}


# The page: its sections, in the order of `_sections_of`, and the pictures of its groups.

_MAIN_RATES = (
    *("selection_rate", "true_positive_rate", "false_positive_rate", "positive_predictive_value"),
    "accuracy",
)
_on_page = partial(tables.sentence_of, "audit")


def _sections_of(assessment: Assessment) -> Iterator[doc.Section]:
    """Yield the sections of the report in their order."""
    if assessment.impact:
        yield doc.Section("Impact ratios", [_impact(assessment)])
    yield doc.Section("Gaps between groups", [_gaps(assessment), *_needed(assessment)])
    if assessment.within:
        title = f"Among people of the same {assessment.options.shared_traits}"
        yield doc.Section(title, list(_within(assessment)))
    yield doc.Section("Rates by group", [_rates(assessment)])
    errors = _errors(assessment)
    if errors.rows:
        yield doc.Section("Errors by group", [errors], more=True)
    if len(assessment.thresholds[1]):
        # A threshold that was asked for is part of the answer.
        is_more = assessment.thresholds[2] is None
        yield doc.Section("Other thresholds", list(_thresholds(assessment)), more=is_more)
    if assessment.scores:
        scores = [tables.score_table(assessment.scores, "score")]
        yield doc.Section("Scores by group", scores, more=True)
    if diagrams := list(_diagrams(assessment)):
        rows = [row for row in assessment.calibrations if not isnan(row["excess"])]
        table = tables.named_table("audit", "calibrations", rows)
        yield doc.Section("Calibration by group", [table])
        caption = _on_page("gallery", label=assessment.table.labels[1])
        yield doc.Section("Reliability by group", [doc.Gallery(diagrams, caption)], more=True)
    yield doc.Section("", [tables.where_all_is(assessment.metrics)])


def _size(gap: Gap) -> str:
    """Return a gap, with its sign where that says which of two groups is ahead."""
    return signed(gap.value) if gap.signed else number(gap.value)


def _bars(gaps: Sequence[Gap], epsilon: float) -> list[doc.Bar | None]:
    """Return the intervals of gaps, drawn on one scale."""
    return tables.bars([(gap.lower, gap.value, gap.upper) for gap in gaps], epsilon)


def _gaps(assessment: Assessment) -> doc.Table:
    """Return the table of gaps: size, interval, verdict, and what else applies to these rows."""
    epsilon = assessment.options.epsilon
    gaps = assessment.gaps
    is_noisy = any(isfinite(gap.noise) for gap in gaps)
    is_alike = assessment.assumed is not None
    holds = {
        "gap_sizes": True,
        "gap_noise": is_noisy,
        "gap_beyond": any(gap.verdict == OPEN for gap in gaps),
        "alike": is_alike,
    }
    caption = tables.sentences_of("audit", holds, stricter=_on_page("stricter"))
    reading = [_on_page("gaps_read", epsilon=epsilon), *([_on_page("alike")] if is_alike else [])]

    def verdict(gap: Gap) -> doc.TableCell:
        mark = "assumed" if gap.assumed else gap.verdict
        return doc.TableCell(_verdict_text(gap), mark=mark)

    rows = [
        {
            **_fields(gap, "attribute", "rate_name", "lower", "upper"),
            "size": _size(gap),
            "standard_error": gap.standard_error if gap.signed else None,
            "noise": gap.noise if isfinite(gap.noise) else None,
            "bar": bar,
            "alike": gap.supposed[1:],
            # Of several groups it would follow from how little is known of each, not from the data.
            "small": gap.small if gap.signed or gap.assumed else None,
            "verdict": verdict(gap),
        }
        for gap, bar in zip(gaps, _bars(gaps, epsilon), strict=True)
    ]
    is_shown = {
        "standard_error": assessment.table.of_decisions,
        "noise": is_noisy,
        "alike": is_alike,
    }
    return tables.named_table(
        "audit",
        "gaps",
        rows,
        without=[name for name, shown in is_shown.items() if not shown],
        epsilon=epsilon,
        caption=" ".join(caption),
        reading=" ".join(reading),
    )


def _verdict_text(gap: Gap) -> str:
    """Return a verdict for a table."""
    if gap.verdict == NOT_MEASURED:
        return "the same by construction" if gap.fixed else "too few rows"
    if gap.assumed and gap.verdict != OPEN:
        return f"{gap.verdict} if scores are right"
    # Groups surely differ, while it is open between whom by how much.
    is_sure = gap.verdict == OPEN and not gap.assumed and bool(gap.pairs)
    return report.DIFFER if is_sure else gap.verdict


def _needed(assessment: Assessment) -> Iterator[doc.Details]:
    """Yield how many more labels settle the open gaps, and what each number supposes."""
    labels, rows = assessment.labels, len(assessment.table)
    most = rows - labels or rows
    table = [
        {
            **_fields(gap, "attribute", "rate_name"),
            "supposed": supposed,
            "needed": f">{count(most)}" if n is None else two_digits(n),
        }
        for gap in assessment.gaps
        for supposed, n in gap.needed.items()
    ]
    if table:
        needed = tables.named_table("audit", "needed", table, kind=_further(assessment))
        yield doc.Details("What would settle what is open", [needed])


def _rates(assessment: Assessment) -> doc.Table:
    """Return the table of each group's size and main rates."""
    selected = assessment.table.direction.rate_names[NEEDS_NO_LABELS].removeprefix("share ")
    selected = selected.replace("selection rate", "selected")
    values = tables.estimates(assessment.metrics, _MAIN_RATES)
    rows = [
        {**size, **{name: values.get((*_key(size), name)) for name in _MAIN_RATES}}
        for size in assessment.sizes
    ]
    without = ["labels", *_MAIN_RATES[1:]] if assessment.table.of_decisions else []
    return tables.named_table("audit", "rates", rows, without=without, selected=selected)


def _key(row: Row) -> tuple[str, str]:
    return row["attribute"], row["group"]


def _within(assessment: Assessment) -> Iterator[doc.Block]:
    """Yield the gaps over one mix of strata, with those of everyone, and in each stratum."""
    gaps = assessment.within
    epsilon = assessment.options.epsilon
    of_everyone = {(gap.attribute, gap.metric): gap for gap in assessment.gaps}

    def raw(gap: Gap) -> Gap:
        return of_everyone[gap.attribute, gap.metric]

    rows = []
    for gap, bar in zip(gaps, _bars(gaps, epsilon), strict=True):
        shown = {
            "raw": _size(raw(gap)),
            "size": _size(gap),
            "bar": bar,
            "verdict": doc.TableCell(_verdict_text(gap), mark=gap.verdict),
        }
        rows.append({**_fields(gap, "attribute", "rate_name", "lower", "upper"), **shown})
    yield tables.named_table("audit", "within", rows)
    reversed_ = [
        _on_page("reversed", gap=gap, raw=raw(gap))
        for gap in gaps
        if gap.signed and raw(gap).signed and gap.value * raw(gap).value < 0
        if min(abs(gap.value), abs(raw(gap).value)) >= 0.01
    ]
    if reversed_:
        yield doc.Items(reversed_)
    yield from (_strata(gap, epsilon) for gap in gaps if gap.metric == NEEDS_NO_LABELS)
    others = [_strata(gap, epsilon) for gap in gaps if gap.metric != NEEDS_NO_LABELS]
    if others:
        yield doc.Details("Other rates in each stratum", others)


def _strata(gap: Gap, epsilon: float) -> doc.Table:
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

    def limits(row: Row) -> doc.TableCell | None:
        few = f" (n={row['smallest']})" if row["smallest"] < gap.minimum else ""
        return doc.TableCell((row["lower"], row["upper"]), after=few) if row["low"] else None

    rows = [
        {
            **row,
            "weight": 100 * row["weight"],
            "first": rate(row, 0),
            "second": rate(row, 1),
            "difference": (signed if is_signed else number)(row["value"]),
            "limits": limits(row),
            "bar": bar,
        }
        for row, bar in zip(gap.strata, drawn, strict=True)
    ]
    first, second = titles
    return tables.named_table("audit", "strata", rows, gap=gap, first=first, second=second)


_WIDEST = 2.0  # of the impact ratios that a bar, or a picture, has room for


def _impact(assessment: Assessment) -> doc.Table:
    """Return the impact ratios of every group, with whom they compare."""
    ratios = assessment.impact
    granted = assessment.table.whole.granted
    highest = f"the group {granted} most often"
    are_given = {ratio["given"] for ratio in ratios}
    allowance = ""
    if False in are_given:
        allowance = _on_page("highest", granted=granted)
        if any(small_groups(ratios)):
            allowance += f"{COMPARED_WITH} "

    rows = [
        {
            **row,
            "limits": None if is_given_reference(row) else (row["lower"], row["upper"]),
            "bar": _ratio_bar(row),
            "below": None if is_given_reference(row) else row["below"],
        }
        for row in ratios
    ]
    others = report.compared_with(highest, are_given)
    return tables.named_table(
        "audit", "ratios", rows, granted=granted, others=others, allowance=allowance
    )


def _ratio_bar(row: Row) -> doc.Bar | None:
    """Return a ratio on a scale from 0 to 2; beyond, it is cut off."""
    if np.isnan(row["ratio"]):
        return None
    ratios = (row["lower"], row["ratio"], row["upper"], FOUR_FIFTHS, 1, 1 / FOUR_FIFTHS)
    lower, value, upper, band_start, equal, band_end = (
        round(100 * min(end, _WIDEST) / _WIDEST, 1) for end in ratios
    )
    return doc.Bar((lower, value, upper), band=(band_start, band_end), zero=equal)


def _thresholds(assessment: Assessment) -> Iterator[doc.Block]:
    """Yield what other thresholds would decide."""
    curves, table, constrained = assessment.thresholds
    direction = assessment.table.direction
    rows = [
        {
            **row,
            "threshold": doc.TableCell(
                f"{row['threshold']:.3g}",
                before="now " if row["current"] else "",
                strong=row["current"],
            ),
        }
        for row in table.to_dict("records")
    ]
    yield tables.named_table(
        "audit", "thresholds", rows, granted=direction.granted, large_enough=LARGE_ENOUGH
    )
    if constrained is not None:
        today = assessment.options.threshold
        yield from _constrained(constrained, today, direction)
    for of_attribute in curves:
        yield _curve_figure(of_attribute, assessment)


def _errors(assessment: Assessment) -> doc.Table:
    """Return both kinds of error of every group, and their differences from the reference."""
    fpr, fnr = "false_positive_rate", "false_negative_rate"
    # Fewer of those found are more errors.
    names = [fpr, fnr, f"{fpr}_difference", "equal_opportunity_difference"]
    values = tables.estimates(assessment.metrics, names)
    rows = []
    for size in assessment.sizes:
        rates = [values.get((*_key(size), name)) for name in names]
        if rates[0] or rates[1]:
            more, less = ((NAN, NAN) if rate is None else rate[1:] for rate in rates[2:])
            more_fnr = tuple(-end for end in reversed(less))
            of_group = {"fpr": rates[0], "more_fpr": more, "fnr": rates[1], "more_fnr": more_fnr}
            rows.append({**size, **of_group})
    return tables.named_table("audit", "errors", rows, labels=assessment.table.labels)


def _constrained(chosen: Row, today: float, direction: Direction) -> Iterator[doc.Block]:
    """Yield the threshold that a constraint asks for, and how it does on the other rows."""
    values = {**chosen, "asked": _asked_of_threshold(chosen, direction), "today": today}
    if np.isnan(chosen["threshold"]):
        yield doc.Paragraph(_on_page("unreached", **values))
        return
    start = _on_page("reached_today" if chosen["threshold"] == today else "reached", **values)
    text = _on_page("chosen", **values, start=start)
    if not np.isnan(chosen["accuracy"][0]):
        text += _on_page("chosen_accuracy", **values)
    yield doc.Paragraph(text)
    words = {True: "surely", False: "surely not", None: "open"}
    rows = [{**row, "said": words[row["holds"]]} for row in chosen["judged"]]
    yield tables.named_table("audit", "judged", rows)


def _asked_of_threshold(chosen: Row, direction: Direction) -> str:
    """Return what a constraint asks of a threshold, in words."""
    constraint, bound, granted = chosen["constraint"], chosen["bound"], direction.granted
    if constraint == RATIO:
        return _on_page("least_ratio", granted=granted, bound=bound)
    return _on_page("most_apart", bound=bound, rate=direction.rate_name(constraint))


def _curve_figure(curves: Row, assessment: Assessment) -> doc.Figure:
    """Return rates of an attribute's largest groups at all thresholds, and their scores."""
    panels, attribute = [], curves["attribute"]
    for rate, limits in curves["rates"].items():
        lines = [
            tables.group_line(name, g, curves["thresholds"], Limits(*(end[:, g] for end in limits)))
            for g, name in enumerate(curves["groups"][: tables.MOST_LINES])
        ]
        panels.append(Panel(lines, "threshold", label(rate), from_zero="y"))
    scores = tables.density_panel(assessment.scores, attribute, "score")
    drawings = chart([*panels, scores], key=panels[0].series)
    granted = assessment.table.direction.granted
    caption = _on_page("curves", attribute=attribute, granted=granted)
    title = f"what every threshold would decide, by {attribute}"
    return doc.Figure(title, drawings, caption=caption)


# The _pictures of the groups: rates, impact ratios and calibration.


def _pictures(assessment: Assessment) -> list[doc.Section]:
    """Return a picture of each rate with every group's interval; nothing where none is known."""
    figures = [*_impact_picture(assessment), *_rate_pictures(assessment)]
    if not figures:
        return []
    gallery = doc.Gallery(figures, _on_page("pictures"))
    return [doc.Section("The groups in pictures", [gallery], more=True)]


def _forest(
    name: str,
    meaning: str,
    rows: Sequence[tuple[Any, ...]],
    span: tuple[float, float],
    mark: float = NAN,
) -> doc.Figure:
    """Draw the interval of each group, with a line between two attributes.

    Parameters
    ----------
    rows : of each group its attribute, its name, and its rate or ratio with both limits.
    """
    panels = [[row[1:] for row in part] for _, part in groupby(rows, lambda row: row[0])]
    svg = forest(name, panels, span=span, mark=mark)
    return doc.Figure(name, [svg], caption=f"{name}: {meaning}", style="panel")


def _rate_pictures(assessment: Assessment) -> Iterator[doc.Figure]:
    """Draw each rate of the groups of single attributes."""
    rates = tables.estimates(assessment.metrics, {rate.name for rate in RATE_OF.values()})
    direction = assessment.table.direction
    for metric, rate in RATE_OF.items():
        known = [(*_key(size), rates.get((*_key(size), rate.name))) for size in assessment.sizes]
        measured = [(*key, *values) for *key, values in known if values and isfinite(values[0])]
        drawn = [row for row in measured if row[0] in assessment.options.group]
        if not drawn:
            continue
        # The scale ends at tenths between which all intervals lie.
        ends = np.array([row[2:] for row in drawn])
        tenths = 10 * ends[np.isfinite(ends)]
        low, high = float(np.floor(tenths.min()) / 10), float(np.ceil(tenths.max()) / 10)
        name = direction.rate_names[metric]
        meaning = f"{direction.meanings.get(metric, name)}."  # a metric of one's own has none
        yield _forest(name, meaning, drawn, (low, max(high, low + 0.1)))


def _impact_picture(assessment: Assessment) -> Iterator[doc.Figure]:
    """Draw the impact ratios of the groups of single attributes, where there are any."""
    rows = [
        (*_key(row), row["ratio"], row["lower"], row["upper"])
        for row in assessment.impact
        if row["attribute"] in assessment.options.group and not np.isnan(row["ratio"])
    ]
    if rows:
        highest = np.nanmax([row[-1] for row in rows])
        meaning = _on_page("ratio_picture", granted=assessment.table.whole.granted)
        span = (0.0, float(np.clip(np.ceil(10 * highest) / 10, 1.2, _WIDEST)))
        yield _forest("impact ratio", meaning, rows, span, FOUR_FIFTHS)


def _diagrams(assessment: Assessment) -> Iterator[doc.Figure]:
    """Yield the reliability of each group of a single attribute that has labels and scores."""
    for row in assessment.calibrations:
        if row["attribute"] in assessment.options.group and row["bins"]:
            ends = interval(row["lower"], row["upper"])
            limits = ends or "too few of the rarer label for an interval"
            caption = _on_page("diagram", row=row, limits=limits)
            name = f"reliability of {row['group']}"
            points = [(of["score"], of["share"], of["lower"], of["upper"]) for of in row["bins"]]
            panel = tables.reliability_panel(points, "share of label 1")
            yield doc.Figure(name, chart([panel]), caption=caption, style="panel")
