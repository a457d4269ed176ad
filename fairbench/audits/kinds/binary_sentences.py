"""What a report on two classes says around its findings: basis, notes, and what to do next.

What is found of people is worded by :mod:`fairbench.audits.sentences`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from fairbench.audits.assessment import Assessment
from fairbench.audits.calibration import least_alike
from fairbench.audits.findings import LARGE, OPEN, SMALL
from fairbench.audits.gaps import FEWEST_LABELS, Gap, Stress
from fairbench.audits.labels_needed import kind_of_labels, needed_in_words
from fairbench.audits.report import OF_POPULATION, counted_by
from fairbench.audits.sentences import listed
from fairbench.audits.table import of_part
from fairbench.audits.within import notes_within
from fairbench.core.formats import count, interval, number, probability

_MOST = 3  # groups of too few rows that a summary names


def warning_of(assessment: Assessment) -> Iterator[str]:
    """Yield the warning that is due where there are scores and no labels."""
    if not (assessment.labels or assessment.of_decisions):
        yield (
            "There are no labels. Figures that need labels assume that the scores are right: if "
            "they are not, these figures are wrong, and nothing here would show it."
        )


def basis_of(assessment: Assessment) -> Iterator[str]:
    """Yield what the figures rest on: how the file was read, its rows and its labels."""
    table = assessment.table
    labels = assessment.labels
    rows = len(table)
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
        predictor = "Decisions" if table.score is None else "Scores"
        assumption = ""
        if by_group is None:
            assumption = " This assumes that rows were chosen for labelling at random."
        yield (
            f"Figures rest on the labelled rows. {predictor} make intervals narrower as far as "
            "they have predicted the labels of each group; where they are wrong, intervals are "
            f"wider and still hold.{assumption}"
        )
    if assessment.assumed is not None:
        yield (
            "Beside them stands what would follow if scores were as right in every group as in the "
            "others (calibrated alike). No verdict rests on that."
        )


def notes_on(assessment: Assessment) -> Iterator[str]:
    """Yield what a reader has to know of the groups, the labels and the calibration of scores."""
    yield from _on_labelling(assessment)
    labels = {size.key: size.labels for size in assessment.sizes}
    by_attribute = {
        attribute: list(gaps)
        for attribute, gaps in groupby(assessment.gaps, lambda gap: gap.attribute)
    }
    for attribute, gaps in by_attribute.items():
        if short := dict.fromkeys(name for gap in gaps for name in gap.short_of_labels):
            groups = listed([f"{name} ({count(labels[attribute, name])})" for name in short])
            yield (
                f"{attribute}: under {FEWEST_LABELS} labels in {groups}; no gap is called small "
                "before every group has as many."
            )
    yield from _on_calibration(assessment)
    for attribute, gaps in by_attribute.items():
        if of_several := [gap for gap in gaps if gap.verdict == OPEN and not gap.signed]:
            noise = ", ".join(f"{number(gap.alike)} in {gap.rate_name}" for gap in of_several)
            yield (
                f"{attribute}: the largest gap among more than two groups is never 0; if every "
                f"group had the same rate it would be {noise}, on average, from noise alone."
            )
    for attribute, gaps in by_attribute.items():
        if few := [name for gap in gaps for name in gap.few]:
            yield (
                f"{attribute}: too few rows to show in every gap that people are alike: "
                f"{listed(few)}."
            )
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


def _on_calibration(assessment: Assessment) -> Iterator[str]:
    """Yield what speaks against scores calibrated alike, and what would follow if they were."""
    advice = ""
    if assessment.assumed is not None:
        advice = " Do not use the figures “if calibrated alike”."
    least = least_alike(assessment.calibrations)
    for attribute, of_attribute in groupby(least, lambda scores: scores.attribute):
        unlike = list(of_attribute)
        groups = " and ".join(scores.group for scores in unlike)
        yield (
            f"{attribute}: the labels of {groups} fit least how the scores of the other groups are "
            "calibrated. If scores were calibrated alike, labels as strange would come with a "
            f"probability of {probability(unlike[0].fit)}.{advice}"
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
        if gap.stress is not None:
            yield _on_stress(gap, gap.stress, assessment.bounds.epsilon)


def _on_stress(gap: Gap, stress: Stress, epsilon: float) -> str:
    """Return what follows for a gap from scores calibrated alike, and when it no longer does."""
    side = "under" if stress.follows == SMALL else "over"
    exceptions = " or ".join(
        f"the scores of {group} {_as_much(factor)}"
        for factor, group in ((stress.less, stress.weakest), (stress.more, stress.strongest))
        if group
    )
    holds = "It does however much or little they say"
    if exceptions:
        holds = f"It no longer does if {exceptions}"
    return (
        f"{gap.attribute}: if scores are calibrated alike, the 95 % interval of the gap in "
        f"{gap.rate_name} lies {side} {epsilon:g}. {holds}."
    )


def _as_much(factor: float) -> str:
    """Return in words what scores say, if their true slope is `factor` times the one they show."""
    if factor <= 0:
        return "say the opposite" if factor else "say nothing"
    return f"say {factor:g} times as much as it seems"


def sure_of(assessment: Assessment) -> Iterator[str]:
    """Yield sentences on the certainty of the findings: the known outcomes, and their limits."""
    rows = len(assessment.table)
    labels = assessment.labels
    some = count(labels) if labels else "none"
    outcomes = "all" if labels == rows else some
    there = f"There are {count(rows)} rows"
    if assessment.table.everyone is not None:
        of_rows = f"Of {count(len(assessment.table.everyone))} rows"
        there = f"{of_rows}, {count(rows)} are {of_part(assessment.table, assessment.options)}"
    yield f"{there}, {outcomes} of them with a known outcome."
    if not labels and assessment.table.score is None:
        yield (
            f"Without outcomes and scores, only who is {assessment.table.direction.granted} is "
            "known; nothing of errors is."
        )
    elif not labels:
        yield (
            f"Without outcomes, only who is {assessment.table.direction.granted} is known. "
            "Everything else assumes that the scores are right."
        )
    elif any(gap.tipping for gap in assessment.gaps if gap.verdict == LARGE):
        yield (
            "How many wrong labels would undo each finding is in the full report, under “Can be "
            "concluded”."
        )


def unseen_of(assessment: Assessment) -> Iterator[str]:
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
        yield f"{name} has too few rows to show that it is like the others in {listed(rates)}."
    if len(rates_of) > _MOST:
        yield f"Nor do {count(len(rates_of) - _MOST)} other groups in some of the rates."
    for why, rates in fixed.items():
        yield f"Groups were not compared in {listed(rates)}: {why}."
    if assessment.labels:
        yield (
            f"Whether the outcomes in '{assessment.options.target}' are right, and were fair in "
            "the first place, was not looked at. Nor was why groups differ."
        )
    else:
        yield "Whether decisions are right was not looked at: that takes outcomes."


def todo_after(assessment: Assessment) -> Iterator[str]:
    """Yield what to do next: collect outcomes or labels, audit more rows, or repeat the audit."""
    if not assessment.labels:
        subject = "decisions" if assessment.of_decisions else "scores"
        yield (
            "Collect outcomes: even 100 to 200, of rows chosen at random, show whether "
            f"{subject} are right."
        )
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
        yield (
            f"Collect {kind}. The question that takes the fewest is {nearest.rate_name} by "
            f"{nearest.attribute}: {needed_in_words(nearest.needed, kind)}."
        )
    elif fewest:
        yield (
            "These rows are too few for what is open: audit a larger sample. “fairbench audit "
            "plan” says how large."
        )
    if {gap.verdict for gap in assessment.gaps} <= {SMALL}:
        yield "Repeat the audit when the model changes, or the people that it is used on."
