"""What can be concluded of two classifiers at this number of labels, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fairbench.audit.conclusions import Conclusions
from fairbench.audit.gaps import CERTAIN, OPEN, RATE_NAMES
from fairbench.audit.options import Options
from fairbench.audit.pair_assessment import (
    ALIKE,
    LARGER,
    MINIMUM,
    SMALLER,
    GapComparison,
    PairAssessment,
    large_enough,
)
from fairbench.audit.reading import AuditTable
from fairbench.core.formats import count, interval, probability, signed


def conclude_pair(assessment: PairAssessment) -> Conclusions:
    """Return the conclusions of a comparison."""
    options, table, rows = assessment.options, assessment.table, assessment.rows
    settled = [row for row in rows if row.verdict != OPEN and not row.assumed]
    return Conclusions(
        _warning(table),
        list(_basis(options, table)),
        [_settled(options, row) for row in settled],
        list(_not_settled(options, [row for row in rows if row not in settled])),
        list(_notes(table, rows)),
    )


def verdict_text(row: GapComparison) -> str:
    """Return the verdict of a row on the second classifier in a word; accuracies are no gaps."""
    if row.assumed:
        return "assumed"
    if row.attribute:
        return row.verdict
    return {SMALLER: "lower", LARGER: "higher"}.get(row.verdict, row.verdict)


def measured(row: GapComparison) -> str:
    """Return what a row is about: everyone's accuracy, or the rate whose gap it is."""
    return RATE_NAMES.get(row.metric, "accuracy itself")


def _warning(table: AuditTable) -> str:
    if len(table.known):
        return ""
    return (
        "There are no labels. Whatever needs them takes both scores at their word: if one of them "
        "is wrong, so are these figures, and nothing here would show it."
    )


def _basis(options: Options, table: AuditTable) -> Iterator[str]:
    rows, labels = len(table), len(table.known)
    yield (
        f"{options.against} against {options.score} on the {count(rows)} rows of "
        f"{options.path.name}, {count(labels)} of them with a label ({labels / rows:.2%})."
    )
    if labels == rows:
        yield "Intervals say how far off the population may be that these rows are a sample of."
    elif labels:
        yield (
            "Labels of the other rows are drawn from both scores, calibrated together on the "
            "labelled rows, or, of many labels, from rows of the same group and decisions. This "
            "assumes that rows were chosen for labelling at random, or by group and scores alone."
        )


def _settled(options: Options, row: GapComparison) -> str:
    one, other, about = options.score, options.against, measured(row)
    numbers = f"difference {signed(row.difference)}, 95 % interval {interval(row.lower, row.upper)}"
    if row.verdict == ALIKE:
        both = f"{row.attribute}: the gaps in {about}" if row.attribute else "The accuracies"
        return (
            f"{both} of {one} and {other} differ by less than {options.epsilon:g} (probability "
            f"{probability(row.small)}; {numbers})."
        )
    if row.attribute:
        than = f"{row.verdict} gap in {about} than {one}"
        return f"{row.attribute}: {other} has a {than} ({numbers})."
    more = "less" if row.verdict == SMALLER else "more"
    return f"{other} is {more} accurate than {one} ({numbers})."


def _not_settled(options: Options, rows: Sequence[GapComparison]) -> Iterator[str]:
    other = options.against
    for attribute in dict.fromkeys(row.attribute for row in rows):
        mine = [row for row in rows if row.attribute == attribute]
        assumed = ", ".join(measured(row) for row in mine if row.assumed)
        still = [row for row in mine if not row.assumed]
        listed = ", ".join(f"{probability(row.lesser)} in {measured(row)}" for row in still)
        if assumed:
            yield f"{attribute or 'Everyone'}: without labels nothing is known of {assumed}."
        if listed and attribute:
            yield f"{attribute}: open whose gap is smaller; {other}'s is with probability {listed}."
        elif listed:
            less = probability(still[0].lesser)
            yield f"Open which is more accurate; {other} is less so with probability {less}."


def _notes(table: AuditTable, rows: Sequence[GapComparison]) -> Iterator[str]:
    for attribute, groups in table.groups.items():
        enough = large_enough(groups)
        few = ", ".join(map(str, groups.cat.categories[~enough]))
        kept = "" if enough.sum() > 1 else "; there are no two groups to compare"
        if few:
            yield f"{attribute}: left out for under {MINIMUM} rows: {few}{kept}."
    judged = sum(not row.assumed for row in rows)
    yield (
        f"Differences examined at 95 %: {judged}. On average {judged * (1 - CERTAIN):.1f} of that "
        "many would be misjudged if every verdict were as uncertain as is allowed."
    )
