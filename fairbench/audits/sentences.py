"""The only place that words a finding: every sentence of a page about people comes from here.

Findings of the same kind stand together in one sentence, where that is shorter. A brief sentence is
for somebody who reads nothing but the summary; the other has the interval, and what would settle
the question. Templates are under ``[findings]`` in ``fairbench/reporting/sentences.toml``.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from fairbench.core.text import count, interval, listed, number, signed
from fairbench.data.groups import CROSSED
from fairbench.evaluation.findings import (
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
    WATCHED,
    Finding,
)
from fairbench.reporting import group_tables

_said = partial(group_tables.sentence_of, "todo")
_MOST_NAMED = 5  # groups in a sentence


def sentences_of(findings: Iterable[Finding], *, brief: bool = False) -> list[str]:
    """Return the sentences that word findings, in the order of the findings."""
    by_sentence: dict[Hashable, list[Finding]] = {}
    for finding in findings:
        if not _goes_without_saying(finding):
            by_sentence.setdefault(_sentence_key(finding), []).append(finding)
    worded = [*by_sentence.values()]
    if brief:
        worded = _of_attributes_together(worded)
    sentences = (_sentence(same_kind, brief) for same_kind in worded)
    return [sentence for sentence in sentences if sentence]


def _goes_without_saying(finding: Finding) -> bool:
    """Return whether a finding is trivial: the highest rate is at least four fifths of itself."""
    is_highest = len(finding.groups) == 1 and finding.value >= 1
    return (finding.about, finding.verdict) == (RATIO, SMALL) and is_highest


def _of_attributes_together(worded: Iterable[list[Finding]]) -> list[list[Finding]]:
    """Return the findings of each sentence, where attributes with the same open gaps share one."""
    together: dict[Hashable, list[Finding]] = {}
    for findings in worded:
        first = findings[0]
        key: Hashable = id(first)
        if (first.about, first.verdict) == (GAP, OPEN):
            measures = tuple(finding.measure for finding in findings)
            key = (*_sentence_key(replace(first, attribute="")), measures)
        together.setdefault(key, []).extend(findings)
    return [*together.values()]


def sentence_of(finding: Finding) -> str:
    """Return the sentence of one finding by itself."""
    return _sentence([finding], brief=False)


def concluded(findings: Sequence[Finding], *, brief: bool = False) -> tuple[list[str], list[str]]:
    """Return what follows from the rows, and what is open, or rests on an assumption.

    In brief without pairs, and without combinations of what single attributes answer.
    """
    if brief:
        findings = _beyond_attributes([one for one in findings if one.about != PAIR])
    settled = [finding for finding in findings if finding.is_settled]
    others = [finding for finding in findings if not finding.is_settled]
    return sentences_of(settled, brief=brief), sentences_of(others, brief=brief)


def in_short(findings: Sequence[Finding], headlines: Sequence[str] = ()) -> list[str]:
    """Return what a summary says was found, what matters most first.

    Large gaps come before small ones, those in `headlines` before others, those of one attribute
    before those of combinations; of a combination nothing is said that one of its attributes shows.

    Parameters
    ----------
    headlines : the measures that are looked at first.
    """
    settled = [finding for finding in findings if finding.is_settled]
    large = [finding for finding in settled if finding.verdict == LARGE and finding.about != PAIR]
    large = sorted(_beyond_attributes(large), key=lambda finding: _importance(finding, headlines))
    small = [finding for finding in settled if finding.verdict == SMALL]
    if large:  # then a group that is granted as often as others is no news
        small = [finding for finding in small if finding.about != RATIO]
    small.sort(key=lambda finding: _importance(finding, headlines)[:2])
    is_open = [finding for finding in findings if not finding.is_settled]
    sizes = {gap.question for gap in is_open if gap.about == GAP and gap.verdict == OPEN}
    # Even if the size of a gap is open, it may be sure which group is above which.
    pairs = [pair for pair in findings if pair.about == PAIR and pair.question in sizes]
    return sentences_of([*large, *small, *_beyond_attributes(pairs)], brief=True)


def left_open(findings: Sequence[Finding], headlines: Sequence[str] = ()) -> list[str]:
    """Return which questions a summary says are open, in the order of :func:`in_short`.

    They are those about differences; or about ratios and shares, where an audit has only these.
    """
    is_open = [finding for finding in findings if not finding.is_settled]
    asked = [finding for finding in is_open if finding.about in (GAP, COMPARISON, CONSTRAINT)]
    if not any(finding.about in (GAP, COMPARISON) for finding in findings):
        asked += [finding for finding in is_open if finding.about in (RATIO, SHARE)]
    # What these rows cannot measure, such as errors without labels, is no open question.
    if any(finding.verdict != NOT_MEASURED for finding in findings):
        asked = [finding for finding in asked if finding.verdict != NOT_MEASURED]
    asked.sort(key=lambda finding: _importance(finding, headlines)[:2])
    return sentences_of(asked, brief=True)


def _importance(finding: Finding, headlines: Sequence[str]) -> tuple[bool, int, float]:
    """Return the key by which a summary orders large findings."""
    rank = 0 if finding.measure in headlines else 1 if finding.about == RATIO else 2
    return CROSSED in finding.attribute, rank, -abs(finding.value)


def _beyond_attributes(findings: Sequence[Finding]) -> list[Finding]:
    """Return findings without those of a combination of which one attribute shows the same."""
    answered = {(*finding.question, finding.about) for finding in findings}
    return [
        finding
        for finding in findings
        if not (
            CROSSED in finding.attribute
            and any(
                (attribute, finding.measure, finding.scope, finding.about) in answered
                for attribute in finding.attribute.split(CROSSED)
            )
        )
    ]


def to_do(findings: Sequence[Finding], headlines: Sequence[str] = ()) -> Iterator[str]:
    """Yield what to do about the gap that matters most, and about scores that are off."""
    settled = [finding for finding in findings if finding.is_settled and finding.verdict == LARGE]
    named = [finding for finding in settled if finding.about == GAP and finding.groups]
    if named:
        first = min(named, key=lambda gap: _importance(gap, headlines))
        high, low = first.groups
        yield _said("why", high=high, low=low, first=first)
    elif any(finding.about in (GAP, PAIR, RATIO, SHARE, UNLIKE) for finding in settled):
        yield _said("why_any")
    off = [finding for finding in findings if finding.about == EXCESS and finding.is_settled]
    if off:
        worst = max(off, key=lambda excess: abs(excess.value))
        yield _said("calibrate", worst=worst, side=_side(worst), size=abs(worst.value))


def _sentence_key(finding: Finding) -> tuple[Hashable, ...]:
    """Return a key that findings share if one sentence words them together."""
    about = finding.about
    verdict = finding.verdict
    common = (about, finding.attribute, verdict, finding.scope, finding.given)
    if about in (PAIR, LOWEST, UNLIKE) or (about, verdict) in ((GAP, LARGE), (SHARE, OPEN)):
        return (*common, finding.measure)
    if about == GAP:
        return (*common, finding.bound, finding.needs if verdict == NOT_MEASURED else "")
    if about == RATIO:
        return (*common, finding.groups[1:])
    if (about, verdict) in ((COMPARISON, OPEN), (COMPARISON, NOT_MEASURED), (WATCHED, OPEN)):
        return common
    return (id(finding),)


def _sentence(findings: Sequence[Finding], brief: bool) -> str:
    """Return the sentence that words some findings together; empty if none does."""
    first = findings[0]
    in_percent = brief and first.is_share
    name = f"{first.about} {first.verdict}"
    if (first.about, first.verdict) == (GAP, LARGE):
        if not first.groups:
            name = "gap of nobody"
        elif in_percent and len(first.values) == 2:
            name = "gap in percent"
    elif first.about == PAIR and in_percent:
        name = "pair in percent" if len(findings) == 1 else "pairs in percent"
    values = _template_values(findings, brief)
    text = group_tables.sentence_of("findings", name, first=first, **values)
    # Names of columns and groups are never changed, so only the sentence's own words are.
    template = group_tables.template_of("findings", name)
    if values["by"] or template.removeprefix("{by}")[:1].isalpha():
        text = f"{text[:1].upper()}{text[1:]}"
    return text and f"{text}."


def _template_values(findings: Sequence[Finding], brief: bool) -> dict[str, str]:
    """Return the values of the names that templates have in braces, except the first finding."""
    first = findings[0]
    attributes = listed([finding.attribute for finding in findings], _MOST_NAMED)
    by = f"by {attributes}" if attributes else ""
    if first.about == COMPARISON and not attributes:
        by = "for everyone"
    bound = f"{first.bound:g}" if first.is_share else number(first.bound)
    if brief and first.is_share and first.about == GAP:
        bound = f"{100 * first.bound:.3g} percentage points"
    size = number(abs(first.value))
    ends = interval(*first.interval)
    nearest, farthest = sorted(map(abs, first.interval))
    between = f"{size}, 95 % interval {ends}" if ends else size
    with_groups = [finding for finding in findings if finding.groups]
    names = [finding.groups[0] for finding in with_groups]
    ratios = [f"{finding.groups[0]} (ratio {finding.value:.2f})" for finding in with_groups]
    rates = [f"{finding.groups[0]} ({number(finding.value)})" for finding in with_groups]
    percents = zip(first.groups, first.values, strict=False)
    two = first.values if len(first.values) == 2 else (np.nan, np.nan)
    reference = ", ".join(filter(None, [f"the group {first.decided} most often", first.scope]))
    if len(first.groups) > 1:
        reference = first.groups[1]
    total = count(len(findings))
    is_gap, is_single = bool(first.attribute), len(findings) == 1
    less, more = ("smaller", "larger") if is_gap else ("lower", "higher")
    return {
        "by": "".join(f"{part}, " for part in (by, first.given) if part),
        "bound": bound,
        "points": f"{100 * first.bound:.3g}",
        "scope": f", {first.scope}" if first.scope else "",
        "cannot_tell": ": these rows cannot tell" if brief and not first.scope else "",
        "unless": f". This holds unless {first.unless}" if first.unless else "",
        # The value, its interval, and its values before.
        "size": size,
        "ends": ends,
        "ends_of_size": interval(nearest, farthest),
        "between": between,
        "difference": _difference(first, between),
        "measured": f" ({number(first.value)}, 95 % interval {ends})" if ends else "",
        "times": f"{number(first.value, 2)} times as much (95 % interval "
        f"{interval(*first.interval, 2)})",
        "before": f"; {' to '.join(map(signed, first.values))} before" if first.values else "",
        # The groups, with their rates and ratios.
        "percents": " and ".join(f"{100 * rate:.1f} % for {group}" for group, rate in percents),
        "apart": f"{100 * abs(two[0] - two[1]):.1f}",
        "places": f"{100 * two[0]:.1f} %",
        "of_rows": f"{100 * two[1]:.1f} %",
        "pairs": _pairs(findings, in_percent=brief) if first.about == PAIR else "",
        "candidates": listed(first.groups, _MOST_NAMED),
        "named": listed(names, _MOST_NAMED),
        "all_named": ", ".join(names),
        "ratios": listed(ratios),
        "are": "is" if len(ratios) == 1 else "are",
        "reference": reference,
        "rates": listed(rates, 3 if brief else 8),
        # How many findings there are, and whether the first is about more or less.
        "side": _side(first),
        "how": less if first.value < 0 else more,
        "less_or_more": "less" if first.value < 1 else "more",
        "groups_are": f"{total} {'group is' if is_single else 'groups are'}",
        "gaps": f"{total} {'gap' if is_single else 'gaps'}",
        "gap_in": "gap in " if is_gap else "",
        "the_gap_in": "the gap in " if is_gap else "",
        "which_of_two": "whose gap is smaller in" if is_gap else "which has the higher",
        "measures": listed([finding.measure for finding in findings]),
        "details": _details(findings, brief),
    }


def _difference(gap: Finding, between: str) -> str:
    """Return the size of a large gap: of the groups that are named, and the largest of all.

    The groups that surely differ are seldom those furthest apart where some have few rows.
    """
    if np.isnan(gap.value):
        return ""
    if len(gap.values) != 2 or np.isclose(gap.values[0] - gap.values[1], abs(gap.value)):
        return f" (difference {between})"
    high, low = map(number, gap.values)
    return f" ({high} and {low}; the largest difference of any two groups is {between})"


def _details(findings: Sequence[Finding], brief: bool) -> str:
    """Return the measures of gaps that are not large, and what has to be added unless briefly."""
    if brief:
        return listed([finding.measure for finding in findings])
    is_small = findings[0].verdict == SMALL
    details = []
    for gap in findings:
        ends = interval(*gap.interval)
        if is_small:
            additions = [f"unless {gap.unless}" if gap.unless else ""]
        else:
            additions = [f"95 % interval {ends}" if ends else "", gap.needs]
        text = "; ".join(part for part in additions if part)
        details.append(f"{gap.measure} ({text})" if text else gap.measure)
    return (", " if is_small else "; ").join(details)


def _pairs(pairs: Sequence[Finding], *, in_percent: bool) -> str:
    """Return which groups are surely higher than which others, in words."""
    above: dict[str, list[str]] = {}
    for pair in pairs:
        high, low = pair.groups
        if in_percent and pair.is_share:
            high, low = (
                f"{name} ({100 * rate:.1f} %)"
                for name, rate in zip(pair.groups, pair.values, strict=True)
            )
        above.setdefault(high, []).append(low)
    clauses = [
        f"that of {high} is higher than that of {listed(lows, _MOST_NAMED)}"
        for high, lows in above.items()
    ]
    if (left := len(clauses) - _MOST_NAMED) > 0:
        clauses = [*clauses[:_MOST_NAMED], f"and {count(left)} more"]
    return "; ".join(clauses)


def _side(finding: Finding) -> str:
    return "high" if finding.value > 0 else "low"
