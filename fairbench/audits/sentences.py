"""The only place that words a finding: every sentence of a page about people comes from here.

Findings of the same kind stand together in one sentence, where that is shorter. A brief sentence is
for somebody who reads nothing but the summary; the other has the interval, and what would settle
the question.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from fairbench.audits.findings import (
    CHANGED,
    COMPARISON,
    CONSTRAINT,
    DRIFTED,
    EXCESS,
    GAP,
    LARGE,
    LOWEST,
    NOT_MEASURED,
    OPEN,
    PAIR,
    PASSED,
    RATIO,
    SHARE,
    SMALL,
    UNLIKE,
    WATCHED,
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
    worded = (_WORDS[alike[0].about](alike, brief) for alike in together.values())
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
    gaps = [finding for finding in settled if finding.about == GAP]
    large = [gap for gap in gaps if gap.verdict == LARGE]
    large.sort(key=lambda gap: -abs(gap.value))
    small = [gap for gap in gaps if gap.verdict == SMALL]
    others = [finding for finding in settled if finding.about not in (GAP, PAIR)]
    is_open = [finding for finding in findings if not finding.is_settled]
    sizes = {_question(gap) for gap in is_open if gap.about == GAP and gap.verdict == OPEN}
    # Of a gap whose size is open, who is above whom may be sure all the same.
    pairs = [pair for pair in findings if pair.about == PAIR and _question(pair) in sizes]
    found = sentences_of([*large, *others, *small, *pairs], brief=True)
    asked = (finding for finding in is_open if finding.about in (GAP, COMPARISON, CONSTRAINT))
    if (left := len(found) - _MOST_FOUND) > 0:
        more = f"{count(left)} more findings stand under “Can be concluded”."
        found = [*found[:_MOST_FOUND], more]
    return [*found, *sentences_of(asked, brief=True)] or ["Nothing is settled by these rows."]


def to_do(findings: Sequence[Finding]) -> Iterator[str]:
    """Yield what to do about the widest gap, and about scores that are off."""
    settled = [finding for finding in findings if finding.is_settled and finding.verdict == LARGE]
    named = [finding for finding in settled if finding.about == GAP and finding.groups]
    if named:
        widest = max(named, key=lambda gap: abs(gap.value))
        high, low = widest.groups
        yield (
            f"Find out why {widest.measure} is lower for {low} than for {high}, and decide whether "
            "that is acceptable, before the model is used."
        )
    elif any(finding.about in (GAP, PAIR, RATIO, SHARE, UNLIKE) for finding in settled):
        yield "Find out why groups differ before acting on it: an audit does not tell."
    off = [finding for finding in findings if finding.about == EXCESS and finding.is_settled]
    if off:
        worst = max(off, key=lambda excess: abs(excess.value))
        yield f"Calibrate the scores anew: those of {worst.groups[0]} are too {_side(worst)}."


def _question(finding: Finding) -> tuple[str, str]:
    return finding.attribute, finding.measure


def _said_with(finding: Finding) -> Hashable:
    """Return what findings have in common that are said in one sentence."""
    about, verdict = finding.about, finding.verdict
    where = (about, finding.attribute, verdict, finding.scope, finding.given)
    if about in (PAIR, LOWEST, UNLIKE) or (about, verdict) in ((GAP, LARGE), (SHARE, OPEN)):
        return (*where, finding.measure)
    if about == GAP:
        return (*where, finding.bound, finding.needs if verdict == NOT_MEASURED else "")
    if about == RATIO:
        return (*where, finding.groups[1:])
    if (about, verdict) in ((COMPARISON, OPEN), (COMPARISON, NOT_MEASURED), (WATCHED, OPEN)):
        return where
    return id(finding)


def _sentence(finding: Finding, text: str) -> str:
    """Return a sentence that begins with the attribute it is by, and on what assumption."""
    by = f"by {finding.attribute}" if finding.attribute else ""
    said = ", ".join(part for part in (by, finding.given, text) if part)
    return f"{said[:1].upper()}{said[1:]}."


def listed(names: Sequence[str], most: int = 0) -> str:
    """Return names as a sentence lists them; after so many, how many more there are."""
    names = list(dict.fromkeys(names))
    if most and len(names) > most:
        return f"{', '.join(names[:most])} and {count(len(names) - most)} more"
    *others, last = names or [""]
    return f"{', '.join(others)} and {last}" if others else last


def _measures(findings: Sequence[Finding]) -> str:
    return listed([finding.measure for finding in findings])


def _bound(finding: Finding) -> str:
    return f"{finding.bound:g}" if finding.is_share else number(finding.bound)


def _between(finding: Finding) -> str:
    """Return what was measured, with its interval."""
    ends = interval(*finding.interval)
    return number(abs(finding.value)) + (f", 95 % interval {ends}" if ends else "")


def _gaps(findings: Sequence[Finding], brief: bool) -> str:
    gap, measures = findings[0], _measures(findings)
    if gap.verdict == NOT_MEASURED:
        return _sentence(gap, f"groups cannot be compared in {measures}: {gap.needs}")
    bound = f"{100 * gap.bound:.3g} percentage points" if brief and gap.is_share else _bound(gap)
    scope = f", {gap.scope}" if gap.scope else ""
    if gap.verdict == LARGE:
        return _large_gap(gap, bound, scope, brief=brief)
    is_small = gap.verdict == SMALL
    if not brief:
        measures = (", " if is_small else "; ").join(map(_in_detail, findings))
    elif not is_small and not scope:
        scope = ": these rows cannot tell"
    start = "no two groups differ" if is_small else "it is open whether groups differ"
    return _sentence(gap, f"{start} by more than {bound} in {measures}{scope}")


def _in_detail(gap: Finding) -> str:
    """Return the measure of a gap that is not large, and what has to be added."""
    ends = interval(*gap.interval)
    details = [ends and f"95 % interval {ends}", gap.needs]
    if gap.verdict == SMALL:
        details = [gap.unless and f"unless {gap.unless}"]
    said = "; ".join(detail for detail in details if detail)
    return f"{gap.measure} ({said})" if said else gap.measure


def _large_gap(gap: Finding, bound: str, scope: str, *, brief: bool) -> str:
    start = f"groups differ by more than {bound} in {gap.measure}"
    if not gap.groups:
        return _sentence(gap, f"{start}{scope} (largest difference {_between(gap)})")
    high, low = gap.groups
    if brief and gap.is_share and len(gap.values) == 2:
        above, below = (f"{100 * rate:.1f} %" for rate in gap.values)
        return _sentence(gap, f"{start}: {above} for {high}, {below} for {low}{scope}")
    shown = "" if np.isnan(gap.value) else f" (difference {_between(gap)})"
    unless = f" This holds unless {gap.unless}." if gap.unless else ""
    start = f"the {gap.measure} of {high} is higher than that of {low} by more than {bound}"
    return _sentence(gap, f"{start}{scope}{shown}") + unless


def _pairs(findings: Sequence[Finding], brief: bool) -> str:
    pair = findings[0]
    above: dict[str, list[str]] = {}
    for finding in findings:
        high, low = finding.groups
        above.setdefault(high, []).append(low)
    named = [
        f"that of {high} is higher than that of {listed(lows, _MOST_NAMED)}"
        for high, lows in above.items()
    ]
    if (left := len(named) - _MOST_NAMED) > 0:
        named = [*named[:_MOST_NAMED], f"and {count(left)} more"]
    scope = f", {pair.scope}" if pair.scope else ""
    return _sentence(pair, f"groups differ in {pair.measure}{scope}: {'; '.join(named)}")


def _lowest(findings: Sequence[Finding], brief: bool) -> str:
    lowest = findings[0]
    what, measure = lowest.attribute, lowest.measure
    if lowest.verdict == LARGE:
        return f"The {what} of the lowest {measure} is {lowest.groups[0]} ({_between(lowest)})."
    if lowest.verdict == NOT_MEASURED:
        return f"The {measure} of each {what} is not known: {lowest.needs}."
    named = listed(lowest.groups, _MOST_NAMED)
    return f"It is open which {what} has the lowest {measure}: it may be any of {named}."


def _ratios(findings: Sequence[Finding], brief: bool) -> str:
    ratio = findings[0]
    if ratio.verdict == NOT_MEASURED:
        named = listed([finding.groups[0] for finding in findings], _MOST_NAMED)
        return _sentence(ratio, f"there is no impact ratio of {named}: {ratio.needs}")
    whom = ratio.groups[1] if len(ratio.groups) > 1 else "the group selected most often"
    named = listed([f"{finding.groups[0]} (ratio {finding.value:.2f})" for finding in findings])
    start = "it is open whether " if ratio.verdict == OPEN else ""
    are = "is" if len(findings) == 1 else "are"
    how = "less than" if ratio.verdict == LARGE else "at least"
    return _sentence(ratio, f"{start}{named} {are} selected {how} four fifths as often as {whom}")


def _side(finding: Finding) -> str:
    return "high" if finding.value > 0 else "low"


def _excess(findings: Sequence[Finding], brief: bool) -> str:
    excess = findings[0]
    if not excess.is_settled:
        return ""  # what was measured stands in the table of calibration
    low, high = sorted(map(abs, excess.interval))
    return _sentence(
        excess,
        f"scores of {excess.groups[0]} are too {_side(excess)} on average (by "
        f"{number(abs(excess.value))} in these rows, 95 % interval {interval(low, high)})",
    )


def _shares(findings: Sequence[Finding], brief: bool) -> str:
    first, measure = findings[0], findings[0].measure
    if first.verdict != LARGE:
        named = ", ".join(finding.groups[0] for finding in findings)
        start = f"it is open whether {named} get more or less of {measure} than their share"
        return _sentence(first, f"{start} of the rows")
    share, of_rows = first.values
    return _sentence(
        first,
        f"{first.groups[0]} gets {'less' if first.value < 1 else 'more'} than its share "
        f"({number(share)} of {measure} at {number(of_rows)} of the rows: {number(first.value, 2)} "
        f"times as much, {interval(*first.interval, 2)})",
    )


def _unlike(findings: Sequence[Finding], brief: bool) -> str:
    first = findings[0]
    end = f"unlike everyone else in {first.measure} ({number(first.bound)})"
    if first.verdict != LARGE:
        return _sentence(first, f"no group is shown to be {end}")
    names = [f"{finding.groups[0]} ({number(finding.value)})" for finding in findings]
    are = "group is" if len(names) == 1 else "groups are"
    return _sentence(first, f"{count(len(names))} {are} {end}: {listed(names, 3 if brief else 8)}")


def _comparisons(findings: Sequence[Finding], brief: bool) -> str:
    first, measures = findings[0], _measures(findings)
    one, other = first.groups
    is_gap = bool(first.attribute)
    if first.verdict == OPEN:
        what = "whose gap is smaller in" if is_gap else "which has the higher"
        return _sentence(first, f"it is open {what} {measures}, {one} or {other}")
    what = f"gap in {measures}" if is_gap else measures
    the = "the " if is_gap else ""
    if first.verdict == NOT_MEASURED:
        return _sentence(first, f"{the}{what} is not compared: {first.needs}")
    ends = f"(difference {signed(first.value)}, 95 % interval {interval(*first.interval)})"
    if first.verdict == SMALL:
        return _sentence(
            first, f"{one} and {other} differ by less than {_bound(first)} in {the}{what} {ends}"
        )
    less, more = ("smaller", "larger") if is_gap else ("lower", "higher")
    how = less if first.value < 0 else more
    return _sentence(first, f"{other} has a {how} {what} than {one} {ends}")


def _constraints(findings: Sequence[Finding], brief: bool) -> str:
    first = findings[0]
    holds = {
        SMALL: "it holds that",
        LARGE: "it does not hold that",
        OPEN: "it is open whether",
        NOT_MEASURED: "it is not known whether",
    }[first.verdict]
    reason = f": {first.needs}" if first.verdict == NOT_MEASURED else ""
    ends = interval(*first.interval)
    shown = f" ({number(first.value)}, 95 % interval {ends})" if ends else ""
    return _sentence(first, f"{first.scope}, {holds} {first.measure}{reason}{shown}")


def _watched(findings: Sequence[Finding], brief: bool) -> str:
    first, bound = findings[0], _bound(findings[0])
    if first.verdict == OPEN:
        number_of_gaps = f"{count(len(findings))} gap{'s' * (len(findings) > 1)}"
        start = f"it is open whether a gap is beyond {bound} in {_measures(findings)}"
        return _sentence(first, f"{start} ({number_of_gaps})")
    ends = interval(*first.interval)
    return f"{first.groups[0]}: the gap is at most {bound} ({ends} {first.scope})."


def _alarm(findings: Sequence[Finding], brief: bool) -> str:
    alarm = findings[0]
    low, high = map(signed, alarm.interval)
    before = f"; {' to '.join(map(signed, alarm.values))} before" if alarm.values else ""
    if alarm.about == DRIFTED:
        low = f"labels less scores {low}"
        high = f"{high} on average"
    said = {
        PASSED: f"the gap is beyond {_bound(alarm)}",
        CHANGED: "the gap has changed",
        DRIFTED: "they have drifted",
    }[alarm.about]
    return f"{alarm.measure}: {said} ({low} to {high} {alarm.scope}{before})."


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
    WATCHED: _watched,
    PASSED: _alarm,
    CHANGED: _alarm,
    DRIFTED: _alarm,
}
