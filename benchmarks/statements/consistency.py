"""Whether what a page says agrees with itself: sentences, verdicts, intervals, probabilities."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isnan
from typing import Any

from fairbench.audits.findings import (
    COMPARISON,
    EXCESS,
    GAP,
    LARGE,
    RATIO,
    SHARE,
    SMALL,
    Finding,
)
from fairbench.audits.gaps import Gap
from fairbench.audits.sentences import (
    can_be_concluded,
    cannot_be_concluded,
    in_short,
    left_open,
    sentence_of,
    to_do,
)
from fairbench.reporting.document.model import Document

_SURE = 0.95
_SUPPOSED = re.compile(r" if \S.* and .* differ by [\d.]+")  # what a plan is for, and no finding
_ROUNDING = 1e-9


def finding_of(values: Mapping[str, Any]) -> Finding:
    """Return a finding from a page's data."""
    return Finding(**{name: value for name, value in values.items() if name != "sentence"})


def of_page(document: Document) -> Iterator[str]:
    """Yield what is amiss on a page: sentences that word no finding, verdicts that contradict."""
    findings = [finding_of(values) for values in document.data["findings"]]
    for values, finding in zip(document.data["findings"], findings, strict=True):
        if values["sentence"] != sentence_of(finding):
            yield f"the data word a finding otherwise: {values['sentence']}"
    said = document.data["conclusions"]
    assert document.verdict is not None
    assert document.summary is not None
    worded = {
        "can be concluded": (document.verdict.can, said["can"], can_be_concluded(findings)),
        "cannot be concluded": (
            document.verdict.cannot,
            said["cannot"],
            cannot_be_concluded(findings),
        ),
        "what was found": (document.summary.found, in_short(findings)),
        "what is open": (document.summary.still_open, left_open(findings)),
    }
    for where, columns in worded.items():
        first, *others = map(list, columns)
        if any(first != other for other in others):
            yield f"{where} is not worded as findings are"
    advice = list(to_do(findings))
    groups = {name for finding in findings for name in finding.groups}
    for sentence in document.summary.todo:
        if sentence not in advice and _names_any(_SUPPOSED.sub("", sentence), groups):
            yield f"advice that no finding gives names a group: {sentence}"
    yield from of_findings(findings)


def _names_any(sentence: str, groups: Iterable[str]) -> bool:
    return any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", sentence) for name in groups)


def of_findings(findings: Sequence[Finding]) -> Iterator[str]:
    """Yield the findings whose verdict contradicts the 95 % interval beside it."""
    for finding in findings:
        lower, upper = finding.interval
        if finding.verdict in (LARGE, SMALL) and not isnan(lower + upper) and _contradicts(finding):
            yield f"{finding.about} {finding.verdict} beside {lower:.4g} to {upper:.4g}"


def _contradicts(finding: Finding) -> bool:
    lower, upper = finding.interval
    large, bound = finding.verdict == LARGE, finding.bound
    if finding.about == GAP or (finding.about == COMPARISON and not large):
        least, most = max(0.0, lower, -upper), max(abs(lower), abs(upper))
        return most <= bound - _ROUNDING if large else least >= bound + _ROUNDING
    if finding.about == RATIO:
        return lower >= bound if large else upper < bound
    if finding.about in (EXCESS, COMPARISON, SHARE):
        neutral = float(finding.about == SHARE)
        return large and lower <= neutral <= upper
    return False


def of_gaps(gaps: Sequence[Gap], epsilon: float) -> Iterator[str]:
    """Yield the gaps whose probability of being small contradicts verdict or interval."""
    for gap in gaps:
        if isnan(gap.small) or isnan(gap.lower + gap.upper):
            continue
        least, most = max(0.0, gap.lower, -gap.upper), max(abs(gap.lower), abs(gap.upper))
        said = f"P(gap < epsilon) = {gap.small:.3g} of {gap.attribute} in {gap.metric}"
        if (gap.verdict == LARGE and gap.small > 1 - _SURE + _ROUNDING) or (
            gap.verdict == SMALL and gap.small < _SURE - _ROUNDING
        ):
            yield f"{said}, which is called {gap.verdict}"
        elif not gap.assumed and not (
            (least > epsilon or gap.small >= 1 - _SURE - _ROUNDING)
            and (most < epsilon or gap.small <= _SURE + _ROUNDING)
        ):
            yield f"{said}, with an interval {gap.lower:.3g} to {gap.upper:.3g}"
