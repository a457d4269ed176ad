"""The audits of two classes: of one classifier, and of two on the same rows.

What is found of people is worded by :mod:`fairbench.audits.sentences`; here is what a report says
around it. Of two classifiers a report says whose gaps between groups are smaller.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import compress, groupby
from math import isnan
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.audits.assessment import (
    Assessment,
    attributes_with_small_groups,
    excess_findings,
    impact_findings,
    impact_ratios,
    least_alike,
)
from fairbench.audits.direction import NEEDS_NO_LABELS, RATE_OF, Direction
from fairbench.audits.gaps import (
    FEWEST_LABELS,
    Gap,
    notes_within,
    plain_within,
    tipping_clause,
)
from fairbench.audits.labels_needed import kind_of_labels, needed_in_words
from fairbench.audits.question import Options
from fairbench.audits.report import OF_POPULATION, Audit, counted_by, counted_rows, on_labels
from fairbench.audits.sections import asked_of_threshold, pictures, sections_of, verdict_text
from fairbench.audits.table import AuditTable, of_part, read_audit_table
from fairbench.core.arrays import Floats
from fairbench.core.text import count, number
from fairbench.evaluation import findings
from fairbench.evaluation.by_group import Row
from fairbench.evaluation.findings import ErrorBudget, Finding
from fairbench.evaluation.table import records
from fairbench.inference.gaps import cells_of, difference, gap_change, rates_of
from fairbench.inference.rates import Limits
from fairbench.metrics.registry import Rate, accuracy
from fairbench.reporting.document.model import Column, Section, Table, TableCell
from fairbench.reporting.group_tables import bars, sentence_of, table_of

_said = partial(sentence_of, "binary")
_MOST = 3  # groups of too few rows that a summary names


def basis_of(assessment: Assessment) -> Iterator[str]:
    """Yield what the figures rest on: how the file was read, its rows and its labels."""
    table = assessment.table
    labels = assessment.labels
    rows = len(table)
    yield from table.read_as
    if assessment.of_decisions:
        yield _said("of_decisions", rows=rows, granted=table.direction.granted)
    else:
        yield counted_rows(rows, labels)
    by_group = table.sampling if labels else None
    if by_group is not None and not assessment.complete:
        yield _said("chosen", by=by_group.by)
        yield by_group.stopping
    yield from counted_by(assessment.options)
    if assessment.complete or assessment.of_decisions:
        yield OF_POPULATION
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
        if of_several := [gap for gap in gaps if gap.verdict == findings.OPEN and not gap.signed]:
            noise = ", ".join(f"{number(gap.noise)} in {gap.rate_name}" for gap in of_several)
            yield _said("noise", attribute=attribute, noise=noise)
    for attribute, gaps in by_attribute.items():
        if few := [name for gap in gaps for name in gap.few]:
            yield _said("few", attribute=attribute, names=few)
    yield from notes_within(assessment.within)


def _on_calibration(assessment: Assessment) -> Iterator[str]:
    """Yield what speaks against scores calibrated alike, and what would follow if they were."""
    advice = "" if assessment.assumed is None else _said("not_if_alike")
    least = least_alike(assessment.calibrations)
    for attribute, of_attribute in groupby(least, lambda row: row["attribute"]):
        unlike = list(of_attribute)
        groups = " and ".join(row["group"] for row in unlike)
        fit = unlike[0]["fit"]
        yield _said("least_alike", attribute=attribute, groups=groups, fit=fit, advice=advice)
    for gap in assessment.gaps:
        _, lower, upper = gap.supposed
        if lower > gap.upper or upper < gap.lower:
            measured = gap.lower, gap.upper
            yield _said("apart", gap=gap, supposed=(lower, upper), measured=measured)
    for gap in assessment.gaps:
        if gap.stress is not None:
            yield _on_stress(gap, gap.stress, assessment.bounds.epsilon)


def _on_stress(gap: Gap, stress: Row, epsilon: float) -> str:
    """Return what follows for a gap from scores calibrated alike, and when it no longer does."""
    side = "under" if stress["follows"] == findings.SMALL else "over"
    exceptions = " or ".join(
        f"the scores of {stress[group]} {_as_much(stress[factor])}"
        for factor, group in (("less", "weakest"), ("more", "strongest"))
        if stress[group]
    )
    holds = "It does however much or little they say"
    if exceptions:
        holds = f"It no longer does if {exceptions}"
    return _said("stress", gap=gap, side=side, epsilon=epsilon, holds=holds)


def _as_much(factor: float) -> str:
    """Return in words what scores say, if their true slope is `factor` times the one they show."""
    if factor <= 0:
        return "say the opposite" if factor else "say nothing"
    return f"say {factor:g} times as much as it seems"


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
        there = f"{of_rows}, {count(rows)} are {of_part(table, assessment.options)}"
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
        subject = "decisions" if assessment.of_decisions else "scores"
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
        kind = kind_of_labels(assessment.labels, len(assessment.table))
        needed = needed_in_words(nearest.needed, kind)
        yield _said("collect", kind=kind, nearest=nearest, needed=needed)
    elif fewest:
        yield _said("too_few")
    if {gap.verdict for gap in assessment.gaps} <= {findings.SMALL}:
        yield _said("repeat")


# The audit of a classifier of two classes, of all labels, of some, or of none.


def audit_of(assessment: Assessment) -> Audit:
    """Return the audit of decisions about two classes, with the labels and scores there are."""
    options, table = assessment.options, assessment.table
    direction = table.direction
    warnings = [*table.warnings]
    if not (assessment.labels or assessment.of_decisions):
        warnings.append(_said("no_labels"))
    # Looked at first where it was said what is good for a person.
    is_said = direction.favourable is not None
    return Audit(
        options,
        len(table),
        assessment.labels,
        findings_of(assessment),
        list(basis_of(assessment)),
        list(sections_of(assessment)),
        _data(assessment),
        warning=" ".join(warnings),
        notes=[*table.notes, *_notes_on(assessment)],
        pictures=pictures(assessment),
        sure=list(_sure_of(assessment)),
        unseen=list(_unseen_of(assessment)),
        todo=list(_todo_after(assessment)),
        headlines=[direction.rate_names[direction.wrongly_refused]] if is_said else [],
        audited=table.read_as,
        rates="" if assessment.of_decisions else direction.rates_explained,
        label_names=table.labels,
    )


def findings_of(assessment: Assessment) -> list[Finding]:
    """Return what an assessment says of the people that its rows are a sample of.

    Gaps, and a constraint that is asked for, share the error rate. What they no longer need goes
    to impact ratios and to whether the scores of a group are too high.
    """
    options, table = assessment.options, assessment.table
    constrained = assessment.thresholds.constrained
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
    risk = assessment.bounds.budget.passed_on(freed, len(ratios) + len(scores)).risk
    if risk:
        # Groups of two attributes together are described only: their intervals are not made again.
        groups = {name: table.whole.groups[name] for name in options.group}
        level = findings.one_sided_level(risk)
        wider = impact_ratios(replace(table.whole, groups=groups), level=level)
        small = attributes_with_small_groups(ratios)
        found += impact_findings(ratios, wider, table.whole.granted, small)
        found += excess_findings(scores, risk)
    part = of_part(table, options)
    return [
        replace(finding, scope=", ".join(filter(None, [part, finding.scope])))
        if finding.about != findings.RATIO  # which is of everyone
        else finding
        for finding in found
    ]


def _gap_findings(assessment: Assessment) -> Iterator[Finding]:
    """Yield what gaps say of the people that the rows are a sample of, and of pairs of groups."""
    kind = kind_of_labels(assessment.labels, len(assessment.table))
    for gap in assessment.gaps:
        found, *pairs = gap.conclude(unless=tipping_clause(gap.tipping))
        needs = filter(None, [found.needs, needed_in_words(gap.needed, kind)])
        yield replace(found, needs="; ".join(needs))
        if not gap.assumed:
            yield from pairs
    if assessment.of_decisions:
        bound = assessment.bounds.epsilon
        unknown = Finding(
            findings.GAP, "", "", findings.NOT_MEASURED, bound=bound, needs="there are no labels"
        )
        for attribute in assessment.table.groups:
            for metric, name in assessment.table.direction.rate_names.items():
                if metric != NEEDS_NO_LABELS:
                    yield replace(unknown, attribute=attribute, measure=name)


def _constraint_findings(constrained: Row, direction: Direction) -> Iterator[Finding]:
    """Yield whether each attribute's groups keep a constraint, at the threshold it was set on."""
    for judged in constrained["judged"]:
        yield Finding(
            findings.CONSTRAINT,
            judged["attribute"],
            asked_of_threshold(constrained, direction),
            {True: findings.SMALL, False: findings.LARGE, None: findings.OPEN}[judged["holds"]],
            value=judged["value"],
            lower=judged["lower"],
            upper=judged["upper"],
            bound=constrained["bound"],
            n=constrained["rows"][1],
            scope=f"at the threshold {constrained['threshold']:.4g}",
        )


_GAP_FIELDS = (
    "attribute", "metric", "compared", "left_out", "few", "assumed", "value", "lower", "upper",
    "supposed", "small", "tipping", "short_of_labels", "standard_error",
)  # fmt: skip


def _data(assessment: Assessment) -> Mapping[str, Any]:
    """Return all that was computed in plain values, for the JSON."""
    gaps = assessment.gaps
    calibrations = assessment.calibrations
    return {
        "label_names": dict(zip("01", assessment.table.labels, strict=True)),
        "gaps": [
            {
                **_fields(gap, *_GAP_FIELDS),
                "alike": gap.noise,
                "verdict": verdict_text(gap)
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
            "thresholds": assessment.thresholds.table.to_dict("records"),
            "constraint": assessment.thresholds.constrained,
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
        "stress": [
            _fields(gap, "attribute", "metric") | {**gap.stress} for gap in gaps if gap.stress
        ],
        **({"within": plain_within(assessment.within)} if assessment.within else {}),
        "metrics": records(assessment.metrics),
        "if_calibrated_alike": [] if assessment.assumed is None else records(assessment.assumed),
    }


def _fields(row: object, *names: str) -> dict[str, Any]:
    """Return these attributes of an object by name."""
    return {name: getattr(row, name) for name in names}


# Two classifiers on the same rows: whose gaps between groups are smaller.

ACCURACY = "accuracy"
NO_LABELS = "there are no labels"
_ONLY_DECISIONS = "Without labels, only decisions are compared; nothing is said of errors."
_FEW_GROUPS = "there are not two groups of enough rows"


def audit_pair(options: Options, frame: pd.DataFrame) -> Audit:
    """Compare the classifier of the column ``score=`` with that of the column ``against=``."""
    table = read_audit_table(options, frame=frame)
    other = read_audit_table(replace(options, score=options.against), frame=frame)
    found = compare_tables(table, other, options)
    figures = [_figures(finding, table.direction.rate_names) for finding in found]
    rows = len(table)
    labels = len(table.known)
    title = f"{options.against} against {options.score}"
    return Audit(
        options,
        rows,
        labels,
        found,
        [
            *table.read_as,
            f"{title} on the {counted_rows(rows, labels, f' of {options.path.name}')}",
            OF_POPULATION,
            *on_labels(rows, labels, _ONLY_DECISIONS),
        ],
        [
            Section(
                "Gaps between groups, of both",
                [_table(found, options, table.direction.rate_names)],
            )
        ],
        {"comparison": figures},
        notes=[
            *table.notes,
            *(
                _said("pair_open", finding=finding)
                for finding in found
                if finding.verdict == findings.OPEN and finding.needs
            ),
        ],
        todo_if_open="Label more rows for what stays open and matters most.",
        title=title,
        warning=" ".join(table.warnings),
        audited=table.read_as,
        label_names=table.labels,
        figures=figures,
    )


def compare_tables(first: AuditTable, second: AuditTable, options: Options) -> list[Finding]:
    """Return the findings on the accuracies, and on the gaps of every attribute.

    The value of each is the second classifier's less the first's. It is `SMALL` if they differ by
    less than epsilon, and `LARGE` if one of them is surely the larger.
    """
    risk = ErrorBudget(1 + len(first.groups) * len(RATE_OF)).risk
    names = options.score, options.against
    accuracies = Finding(
        findings.COMPARISON, "", ACCURACY, findings.NOT_MEASURED, names, bound=options.epsilon
    )
    everyone = _cells(first, second, np.zeros(len(first), np.intp), needs_labels=True)
    found = [_compare(accuracies, accuracy, everyone, risk)]
    fixed = {name: why for name, why in first.fixed.items() if name in second.fixed}
    for attribute, groups in first.groups.items():
        codes = groups.cat.codes.to_numpy(np.intp)
        for metric, rate in RATE_OF.items():
            gaps = replace(
                accuracies, attribute=attribute, measure=first.direction.rate_names[metric]
            )
            if metric in fixed:
                found.append(replace(gaps, needs=fixed[metric]))
                continue
            cells = _cells(first, second, codes, needs_labels=metric != NEEDS_NO_LABELS)
            found.append(_compare(gaps, rate, cells, risk, groups.cat.categories))
    return found


def _cells(
    first: AuditTable, second: AuditTable, codes: NDArray[np.intp], *, needs_labels: bool
) -> Floats:
    """Return the cells (G, 8) of groups with codes (n,)."""
    rows = np.flatnonzero(~(needs_labels & np.isnan(first.label)))
    label = first.label[rows] if needs_labels else np.zeros(len(rows))
    groups = int(codes.max(initial=-1)) + 1
    return cells_of(
        label, first.prediction[rows], second.prediction[rows], codes[rows], groups=groups
    )


def _compare(
    template: Finding, rate: Rate, cells: Floats, risk: float, groups: Sequence[str] = ()
) -> Finding:
    """Compare a rate, or its gaps, between both classifiers.

    Parameters
    ----------
    template : the finding to fill in.
    cells : (G, 8) the counts of the groups, or (1, 8) those of everyone.
    risk : the error rate of the answer.
    groups : (G,) their names. Where one has people and no rows of the rate, which may differ by
        anything, it is open whose gap is smaller.
    """
    template = replace(template, n=int(cells.sum()))
    is_gap = bool(template.attribute)
    if not template.n:
        return replace(template, needs=NO_LABELS)
    limits_of_both = rates_of(cells, rate, level=findings.LEVEL)
    has_rate = np.isfinite(limits_of_both[0].value + limits_of_both[1].value)
    if has_rate.sum() < (2 if is_gap else 1):
        return replace(template, needs=_FEW_GROUPS)

    def at_level(level: float) -> Limits:
        if is_gap:
            return gap_change(cells[has_rate], rate, level=level)
        return difference(cells, rate, level=level).take(0)

    few = list(compress(groups, ~has_rate))
    verdict = findings.OPEN if few else findings.answer_difference(at_level, template.bound, risk)
    values = tuple(
        float(np.ptp(limits.value[has_rate]) if is_gap else limits.value[0])
        for limits in limits_of_both
    )
    value, lower, upper = map(float, at_level(findings.LEVEL))
    return replace(
        template,
        verdict=verdict,
        value=value,
        lower=lower,
        upper=upper,
        values=values,
        needs=findings.too_few_of(few),
    )


def verdict_cell(finding: Finding) -> TableCell:
    """Return the verdict on the second classifier in a word; accuracies are no gaps."""
    text = "alike" if finding.verdict == findings.SMALL else finding.verdict
    if finding.verdict == findings.LARGE:
        ways = ("smaller", "larger") if finding.attribute else ("lower", "higher")
        text = ways[finding.value > 0]
    return TableCell(text, mark=finding.verdict)


def _figures(finding: Finding, names: Mapping[str, str]) -> dict[str, Any]:
    """Return what is measured, in plain columns."""
    metrics = {measure: metric for metric, measure in names.items()}
    first, second = finding.values or (np.nan, np.nan)
    return {
        "attribute": finding.attribute,
        "metric": metrics[finding.measure] if finding.attribute else finding.measure,
        "first": first,
        "second": second,
        "difference": finding.value,
        "lower": finding.lower,
        "upper": finding.upper,
        "rows": finding.n,
        "verdict": finding.verdict,
        "needs": finding.needs,
    }


def _table(found: Sequence[Finding], options: Options, names: Mapping[str, str]) -> Table:
    """Return the table of both classifiers' accuracies and gaps, and of their differences."""
    intervals = [(finding.lower, finding.value, finding.upper) for finding in found]
    with_bar = zip(found, bars(intervals, options.epsilon), strict=True)
    return table_of(
        ({**_figures(finding, names), "finding": finding, "bar": bar} for finding, bar in with_bar),
        [
            (lambda row: row["attribute"] or "everyone", Column("groups")),
            (lambda row: row["finding"].measure, Column("gap in")),
            ("first", Column(options.score, "number")),
            ("second", Column(options.against, "number")),
            ("difference", Column("difference", "signed")),
            (("lower", "upper"), Column("95 % interval", "interval")),
            ("bar", Column("", "bar", narrow=True)),
            (lambda row: verdict_cell(row["finding"]), Column("verdict")),
        ],
        caption=_said("pair_caption", options=options),
        reading=_said("pair_reading", options=options),
    )
