"""The audit of a classifier of two classes, of all labels, of some, or of none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from math import isnan
from typing import Any

from fairbench.audits.assessment import Assessment
from fairbench.audits.calibration import excess_findings
from fairbench.audits.direction import Direction
from fairbench.audits.findings import (
    CONSTRAINT,
    GAP,
    LARGE,
    NOT_MEASURED,
    OPEN,
    RATIO,
    SMALL,
    Finding,
    as_named,
    one_sided_level,
    pair_findings,
    too_few_of,
)
from fairbench.audits.gaps import ASSUMED, NEEDS_NO_LABELS, TOO_FEW, Gap
from fairbench.audits.impact import attributes_with_small_groups, impact_findings, impact_ratios
from fairbench.audits.kinds.binary_sentences import (
    basis_of,
    notes_on,
    sure_of,
    todo_after,
    unseen_of,
    warning_of,
)
from fairbench.audits.labels_needed import kind_of_labels, needed_in_words
from fairbench.audits.pages.decisions import (
    asked_of_threshold,
    calibration_table,
    decision_sections,
    impact_blocks,
)
from fairbench.audits.pages.gaps import gaps_section, pairs_section, rates_section, verdict_text
from fairbench.audits.pages.pictures import diagrams, pictures
from fairbench.audits.pages.within import within_section
from fairbench.audits.report import Audit
from fairbench.audits.table import of_part
from fairbench.audits.thresholds import ConstrainedThreshold
from fairbench.audits.tipping import tipping_clause
from fairbench.audits.within import shared_traits, within_findings
from fairbench.evaluation.columns import records
from fairbench.reporting.document.model import Gallery, Section
from fairbench.reporting.group_tables import all_metrics


def audit_of(assessment: Assessment) -> Audit:
    """Return the audit of decisions about two classes, with the labels and scores there are."""
    options, table = assessment.options, assessment.table
    return Audit(
        options,
        len(table),
        assessment.labels,
        findings_of(assessment),
        list(basis_of(assessment)),
        list(_sections(assessment)),
        _data(assessment),
        warning=" ".join([*table.warnings, *warning_of(assessment)]),
        notes=[*table.notes, *notes_on(assessment)],
        pictures=pictures(assessment),
        sure=list(sure_of(assessment)),
        unseen=list(unseen_of(assessment)),
        todo=list(todo_after(assessment)),
        headlines=_headlines(table.direction),
        audited=table.read_as,
        rates="" if assessment.of_decisions else table.direction.rates_explained,
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
    constrained = assessment.thresholds.constrained
    constraint: list[Finding] = []
    if constrained is not None:
        constraint = list(_constraint_findings(constrained, table.direction))
    findings = [
        *_gap_findings(assessment),
        *within_findings(assessment.within, options, assessment.bounds.epsilon),
        *constraint,
    ]
    ratios = [ratio for ratio in assessment.impact if ratio.attribute in options.group]
    scores = [scores for scores in assessment.calibrations if scores.attribute in options.group]
    freed = sum(gap.freed for gap in assessment.gaps)
    freed += sum(finding.is_settled for finding in constraint)
    risk = assessment.bounds.budget.passed_on(freed, len(ratios) + len(scores)).risk
    if risk:
        # Groups of two attributes together are described only: their intervals are not made again.
        everyone = table.everyone or table
        singles = replace(everyone, groups={name: everyone.groups[name] for name in options.group})
        wider = impact_ratios(singles, level=one_sided_level(risk))
        findings += impact_findings(
            ratios, wider, everyone.granted, attributes_with_small_groups(ratios)
        )
        findings += excess_findings(scores, risk)
    part = of_part(table, options)
    return [
        replace(finding, scope=", ".join(filter(None, [part, finding.scope])))
        if finding.about != RATIO  # which is of everyone
        else finding
        for finding in findings
    ]


def _gap_findings(assessment: Assessment) -> Iterator[Finding]:
    """Yield what gaps say of the people that the rows are a sample of, and of pairs of groups."""
    epsilon = assessment.bounds.epsilon
    kind = kind_of_labels(assessment.labels, len(assessment.table))
    for gap in assessment.gaps:
        value, lower, upper = as_named(
            gap.answer, (gap.value, gap.lower, gap.upper), signed=gap.signed
        )
        finding = Finding(
            GAP,
            gap.attribute,
            gap.rate_name,
            gap.verdict,
            tuple(gap.named),
            value=value,
            lower=lower,
            upper=upper,
            values=tuple(gap.rates[group] for group in gap.answer.named),
            bound=epsilon,
            n=gap.rows,
            needs=_needs(gap, kind),
            unless=tipping_clause(gap.tipping),
            given=ASSUMED if gap.assumed else "",
            noise=gap.alike,
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


def _needs(gap: Gap, kind: str) -> str:
    """Return what would settle a gap, and who keeps it open; or why it is not measured."""
    if gap.verdict == NOT_MEASURED:
        return gap.fixed or TOO_FEW
    few = too_few_of(gap.few) if gap.verdict == OPEN else ""
    return "; ".join(filter(None, [few, needed_in_words(gap.needed, kind)]))


def _constraint_findings(
    constrained: ConstrainedThreshold, direction: Direction
) -> Iterator[Finding]:
    """Yield whether each attribute's groups keep a constraint, at the threshold it was set on."""
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
            n=constrained.rows.judged_on,
            scope=f"at the threshold {constrained.threshold:.4g}",
        )


def _sections(assessment: Assessment) -> Iterator[Section]:
    """Yield the sections of the report in their order."""
    if assessment.impact:
        yield Section("Impact ratios", list(impact_blocks(assessment)))
    yield gaps_section(assessment)
    yield from within_section(
        assessment.within,
        assessment.gaps,
        shared_traits(assessment.options),
        assessment.bounds.epsilon,
    )
    yield from pairs_section(assessment.gaps)
    yield rates_section(assessment)
    yield from decision_sections(assessment)
    if calibration_diagrams := list(diagrams(assessment)):
        note = (
            f"Share of '{assessment.table.labels[1]}' among labelled rows of similar scores, with "
            "95 % intervals; on the dashed line scores are probabilities."
        )
        gallery = Gallery(calibration_diagrams, note)
        yield Section("Calibration by group", [calibration_table(assessment), gallery])
    note = ""
    if not assessment.of_decisions:
        note = (
            "Values and intervals rest on the labels; those of scores themselves on labelled rows."
        )
    yield Section("", [all_metrics(assessment.metrics, note)])


_GAP_FIELDS = (
    "attribute", "metric", "compared", "left_out", "few", "assumed", "value", "lower", "upper",
    "supposed", "alike", "small", "tipping", "short_of_labels", "standard_error",
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
                "verdict": verdict_text(gap) if gap.verdict == NOT_MEASURED else gap.verdict,
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
    """Return these attributes of an object by name."""
    return {name: getattr(row, name) for name in names}
