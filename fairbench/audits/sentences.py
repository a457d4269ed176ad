"""The only place that words a finding: every sentence of a page about people comes from here.

Findings of the same kind stand together in one sentence, where that is shorter. A brief sentence is
for somebody who reads nothing but the summary; the other has the interval, and what would settle
the question.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from fairbench.audits.findings import (
    COMPARISON,
    CONSTRAINT,
    EXCESS,
    GAP,
    LARGE,
    LOWEST,
    NOT_MEASURED,
    OPEN,
    PAIR,
    RATIO,
    SHARE,
    SMALL,
    UNLIKE,
    Finding,
)
from fairbench.core.formats import count, interval, number, signed

_MOST_NAMED = 5  # groups in a sentence
_MOST_FOUND = 8  # sentences of a summary
Words = Callable[[Sequence[Finding], bool], str]


def sentences_of(findings: Iterable[Finding], *, brief: bool = False) -> list[str]:
    """Return the sentences that word findings, in the order of the findings."""
    together: dict[Hashable, list[Finding]] = {}
    for finding in findings:
        together.setdefault(_said_with(finding), []).append(finding)
    worded = (_WORDS[group[0].about](group, brief) for group in together.values())
    return [sentence for sentence in worded if sentence]


def sentence_of(finding: Finding) -> str:
    """Return the sentence of one finding by itself."""
    return "".join(sentences_of([finding]))


def can_be_concluded(findings: Sequence[Finding]) -> list[str]:
    """Return what follows from the rows."""
    return sentences_of(finding for finding in findings if finding.is_settled)


def cannot_be_concluded(findings: Sequence[Finding]) -> list[str]:
    """Return what is open, or rests on an assumption."""
    return sentences_of(finding for finding in findings if not finding.is_settled)


def in_short(findings: Sequence[Finding]) -> list[str]:
    """Return what a summary says was found: the largest gaps first, what is open last."""
    settled = [finding for finding in findings if finding.is_settled]
    ordered = [
        *sorted(
            (each for each in settled if each.about == GAP and each.verdict == LARGE),
            key=lambda each: -abs(each.value),
        ),
        *(each for each in settled if each.about != GAP and each.about != PAIR),
        *(each for each in settled if each.about == GAP and each.verdict == SMALL),
        *_pairs_of_open(findings),
    ]
    known, rest = sentences_of(ordered, brief=True), cannot_in_short(findings)
    shown, left = known[:_MOST_FOUND], len(known) - _MOST_FOUND
    more = [f"{count(left)} more findings stand under “Can be concluded”."] * (left > 0)
    return [*shown, *more, *rest] or ["Nothing is settled by these rows."]


def cannot_in_short(findings: Sequence[Finding]) -> list[str]:
    """Return what a summary says is open."""
    asked = (GAP, COMPARISON, CONSTRAINT)
    return sentences_of(
        (each for each in findings if not each.is_settled and each.about in asked), brief=True
    )


def to_do(findings: Sequence[Finding]) -> Iterator[str]:
    """Yield what to do about the widest gap, and about scores that are off."""
    gaps = [each for each in findings if each.about == GAP and each.verdict == LARGE]
    named = [each for each in gaps if each.groups and not each.given]
    if named:
        widest = max(named, key=lambda each: abs(each.value))
        high, low = widest.groups
        yield (
            f"Find out why {widest.measure} is lower for {low} than for {high}, and decide whether "
            "that is acceptable, before the model is used."
        )
    elif any(each.is_settled and each.verdict == LARGE for each in findings):
        yield "Find out why groups differ before acting on it: an audit does not tell."
    off = [each for each in findings if each.about == EXCESS and each.is_settled]
    if off:
        worst = max(off, key=lambda each: abs(each.value))
        yield f"Calibrate the scores anew: those of {worst.groups[0]} are too {_side(worst)}."


def _pairs_of_open(findings: Sequence[Finding]) -> Iterator[Finding]:
    """Yield the pairs that differ of gaps whose size is open."""
    still = {
        (each.attribute, each.measure)
        for each in findings
        if each.about == GAP and each.verdict == OPEN
    }
    for finding in findings:
        if finding.about == PAIR and (finding.attribute, finding.measure) in still:
            yield finding


def _said_with(finding: Finding) -> Hashable:
    """Return what findings have in common that are said in one sentence."""
    where = (finding.about, finding.attribute, finding.verdict, finding.scope, finding.given)
    if finding.about == GAP:
        if finding.verdict == LARGE:
            return (*where, finding.measure)
        return (*where, finding.bound, finding.needs if finding.verdict == NOT_MEASURED else "")
    if finding.about == PAIR:
        return (*where, finding.measure)
    if finding.about == RATIO:
        return (*where, finding.groups[1:])
    if finding.about in (LOWEST, UNLIKE):
        return (*where, finding.measure)
    if finding.about == SHARE and finding.verdict == OPEN:
        return (*where, finding.measure)
    if finding.about == COMPARISON and finding.verdict in (OPEN, NOT_MEASURED):
        return where
    return id(finding)


def _by(finding: Finding) -> str:
    """Return how a sentence begins: by which attribute, and on what assumption."""
    parts = [f"by {finding.attribute}"] * bool(finding.attribute)
    parts += [finding.given] * bool(finding.given)
    start = ", ".join(parts)
    return f"{start[:1].upper()}{start[1:]}, " if start else ""


def _scope(finding: Finding) -> str:
    return f", {finding.scope}" * bool(finding.scope)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def listed(names: Sequence[str], most: int = 0) -> str:
    """Return names as a sentence lists them; after so many, how many more there are."""
    names = list(dict.fromkeys(names))
    if most and len(names) > most:
        return f"{', '.join(names[:most])} and {count(len(names) - most)} more"
    *others, last = names or [""]
    return f"{', '.join(others)} and {last}" if others else last


def _points(finding: Finding) -> str:
    """Return a bound: of a share in percentage points."""
    if finding.is_share:
        return f"{100 * finding.bound:.3g} percentage points"
    return number(finding.bound)


def _bound(finding: Finding) -> str:
    return f"{finding.bound:g}" if finding.is_share else number(finding.bound)


def _between(finding: Finding) -> str:
    """Return what was measured, with its interval."""
    ends = interval(*finding.interval)
    within = f", 95 % interval {ends}" if ends else ""
    return f"{number(abs(finding.value))}{within}"


def _gaps(findings: Sequence[Finding], brief: bool) -> str:
    first = findings[0]
    bound = _points(first) if brief else _bound(first)
    if first.verdict == LARGE:
        return _large_gap(first, bound, brief)
    if first.verdict == SMALL:
        named = [_unless_wrong(each, brief) for each in findings]
        measures = listed(named) if brief else ", ".join(named)
        start = f"{_by(first)}no two groups differ by {bound} or more in {measures}"
        return f"{_capital(start)}{_scope(first)}."
    if first.verdict == NOT_MEASURED:
        measures = listed([each.measure for each in findings])
        return _capital(f"{_by(first)}groups cannot be compared in {measures}: {first.needs}.")
    measures = (
        listed([each.measure for each in findings])
        if brief
        else "; ".join(map(_open_gap, findings))
    )
    tell = ": these rows cannot tell" * (brief and not first.scope)
    start = f"{_by(first)}it is open whether groups differ by {bound} or more in {measures}"
    return f"{_capital(start)}{_scope(first)}{tell}."


def _large_gap(gap: Finding, bound: str, brief: bool) -> str:
    if not gap.groups:
        start = f"{_by(gap)}groups differ by more than {bound} in {gap.measure}{_scope(gap)}"
        return _capital(f"{start} (largest difference {_between(gap)}).")
    high, low = gap.groups
    if brief and gap.is_share and len(gap.values) == 2:
        above, below = (f"{100 * each:.1f} %" for each in gap.values)
        start = f"{_by(gap)}groups differ by more than {bound} in {gap.measure}"
        return _capital(f"{start}: {above} for {high}, {below} for {low}{_scope(gap)}.")
    start = f"{_by(gap)}the {gap.measure} of {high} is higher than that of {low} by more than "
    shown = "" if np.isnan(gap.value) else f" (difference {_between(gap)})"
    unless = f" This holds unless {gap.unless}." * bool(gap.unless)
    return _capital(f"{start}{bound}{_scope(gap)}{shown}.{unless}")


def _unless_wrong(gap: Finding, brief: bool) -> str:
    return f"{gap.measure} (unless {gap.unless})" if gap.unless and not brief else gap.measure


def _open_gap(gap: Finding) -> str:
    ends = interval(*gap.interval)
    parts = [f"95 % interval {ends}"] * bool(ends) + [gap.needs] * bool(gap.needs)
    return f"{gap.measure} ({'; '.join(parts)})" if parts else gap.measure


def _pairs(findings: Sequence[Finding], brief: bool) -> str:
    first = findings[0]
    above: dict[str, list[str]] = {}
    for finding in findings:
        above.setdefault(finding.groups[0], []).append(finding.groups[1])
    named = [
        f"that of {high} is higher than that of {listed(lows, _MOST_NAMED)}"
        for high, lows in above.items()
    ]
    more = f"; and {count(len(named) - _MOST_NAMED)} more" if len(named) > _MOST_NAMED else ""
    start = f"{_by(first)}groups differ in {first.measure}{_scope(first)}"
    return _capital(f"{start}: {'; '.join(named[:_MOST_NAMED])}{more}.")


def _lowest(findings: Sequence[Finding], brief: bool) -> str:
    first = findings[0]
    if first.verdict == LARGE:
        return (
            f"The {first.attribute} of the lowest {first.measure} is {first.groups[0]} "
            f"({_between(first)})."
        )
    if first.verdict == NOT_MEASURED:
        return f"The {first.measure} of each {first.attribute} is not known: {first.needs}."
    named = listed(first.groups, _MOST_NAMED)
    return (
        f"It is open which {first.attribute} has the lowest {first.measure}: it may be any of "
        f"{named}."
    )


def _ratios(findings: Sequence[Finding], brief: bool) -> str:
    first = findings[0]
    whom = first.groups[1] if len(first.groups) > 1 else "the group selected most often"
    if first.verdict == NOT_MEASURED:
        named = listed([each.groups[0] for each in findings], _MOST_NAMED)
        return _capital(f"{_by(first)}there is no impact ratio of {named}: {first.needs}.")
    named = listed([f"{each.groups[0]} (ratio {each.value:.2f})" for each in findings])
    are = "is" if len(findings) == 1 else "are"
    if first.verdict == OPEN:
        return _capital(
            f"{_by(first)}it is open whether {named} {are} selected at least four fifths as often "
            f"as {whom}."
        )
    how = "less than" if first.verdict == LARGE else "at least"
    return _capital(f"{_by(first)}{named} {are} selected {how} four fifths as often as {whom}.")


def _side(finding: Finding) -> str:
    return "high" if finding.value > 0 else "low"


def _excess(findings: Sequence[Finding], brief: bool) -> str:
    first = findings[0]
    if not first.is_settled:
        return ""  # what was measured stands in the table of calibration
    ends = sorted(map(abs, first.interval))
    return _capital(
        f"{_by(first)}scores of {first.groups[0]} are too {_side(first)} on average (by "
        f"{number(abs(first.value))} in these rows, 95 % interval {interval(ends[0], ends[1])})."
    )


def _shares(findings: Sequence[Finding], brief: bool) -> str:
    first = findings[0]
    if first.verdict == LARGE:
        side = "less" if first.value < 1 else "more"
        share, of_rows = first.values
        return _capital(
            f"{_by(first)}{first.groups[0]} gets {side} than its share ({number(share)} of "
            f"{first.measure} at {number(of_rows)} of the rows: {number(first.value, 2)} times as "
            f"much, {interval(*first.interval, 2)})."
        )
    named = ", ".join(each.groups[0] for each in findings)
    return _capital(
        f"{_by(first)}it is open whether {named} get more or less of {first.measure} than their "
        "share of the rows."
    )


def _unlike(findings: Sequence[Finding], brief: bool) -> str:
    first = findings[0]
    if first.verdict != LARGE:
        return _capital(
            f"{_by(first)}no group is shown to be unlike everyone else in {first.measure} "
            f"({number(first.bound)})."
        )
    names = [f"{each.groups[0]} ({number(each.value)})" for each in findings]
    are = "group is" if len(names) == 1 else "groups are"
    return _capital(
        f"{_by(first)}{count(len(names))} {are} unlike everyone else in {first.measure} "
        f"({number(first.bound)}): {listed(names, 3 if brief else 8)}."
    )


def _comparisons(findings: Sequence[Finding], brief: bool) -> str:
    first = findings[0]
    one, other = first.groups
    start = _by(first)
    measures = listed([each.measure for each in findings])
    what = f"the gap in {measures}" if first.attribute else measures
    if first.verdict == NOT_MEASURED:
        return _capital(f"{start}{what} is not compared: {first.needs}.")
    if first.verdict == OPEN:
        smaller = "whose gap is smaller in" if first.attribute else "which has the higher"
        return _capital(f"{start}it is open {smaller} {measures}, {one} or {other}.")
    ends = f"difference {signed(first.value)}, 95 % interval {interval(*first.interval)}"
    if first.verdict == SMALL:
        return _capital(
            f"{start}{one} and {other} differ by less than {_bound(first)} in {what} ({ends})."
        )
    more = ("a smaller" if first.value < 0 else "a larger") if first.attribute else (
        "a lower" if first.value < 0 else "a higher"
    )  # fmt: skip
    thing = f"gap in {measures}" if first.attribute else measures
    return _capital(f"{start}{other} has {more} {thing} than {one} ({ends}).")


def _constraints(findings: Sequence[Finding], brief: bool) -> str:
    first = findings[0]
    said = {
        SMALL: f"it holds that {first.measure}",
        LARGE: f"it does not hold that {first.measure}",
        OPEN: f"it is open whether {first.measure}",
        NOT_MEASURED: f"it is not known whether {first.measure}: {first.needs}",
    }[first.verdict]
    ends = interval(*first.interval)
    shown = f" ({number(first.value)}, 95 % interval {ends})" if ends else ""
    return _capital(f"{_by(first)}{first.scope}, {said}{shown}.")


_WORDS: Mapping[str, Words] = {
    GAP: _gaps,
    PAIR: _pairs,
    LOWEST: _lowest,
    RATIO: _ratios,
    EXCESS: _excess,
    SHARE: _shares,
    UNLIKE: _unlike,
    COMPARISON: _comparisons,
    CONSTRAINT: _constraints,
}
