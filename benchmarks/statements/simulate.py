"""What is true of a population, and whether a finding is."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from math import isnan
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.measure import exact_interval
from fairbench.audits import sentences
from fairbench.audits.gaps import Gap
from fairbench.audits.kinds import document_of
from fairbench.audits.question import Options
from fairbench.audits.table import read_frame
from fairbench.core.arrays import rng
from fairbench.evaluation.findings import (
    COMPARISON,
    CONSTRAINT,
    ERROR_RATE,
    EXCESS,
    GAP,
    LARGE,
    LOWEST,
    PAIR,
    RATIO,
    SHARE,
    SMALL,
    UNLIKE,
    Finding,
)  # fmt: skip
from fairbench.inference.gaps import FOUR_FIFTHS
from fairbench.reporting.document.model import Document

EPSILON = 0.05
PART = "of those selected ('selected')"  # what is said of them alone
# What is compared: the kind of finding, the attribute, the measure, and for whom it holds.
Question = tuple[str, str, str, str]
# The values of groups by question; and what an audit finds, with the gaps that it rests on.
Values = dict[Question, Mapping[str, float]]
Found = tuple[Sequence[Finding], Sequence[Gap]]
# A question, and of a finding about one group that group.
Difference = tuple[Question, str]
# From which size on a difference is one that a reader would want to be told of.
SIZEABLE: Mapping[str, float] = {
    GAP: 1.2,  # times the bound
    **{EXCESS: 0.02, SHARE: 0.1, UNLIKE: 0.05, COMPARISON: 0.02},
}
_RATIO = 0.75  # under which an impact ratio is sizeable
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Truth:
    """What is true of a population.

    Attributes
    ----------
    values : question -> group -> its value. Of gaps, pairs and the lowest it is the measure itself
        (questions about them are those of gaps); of impact ratios the ratio to the group selected
        most often, of scores their excess, of places the share over the share of rows, of a group
        beside everyone else the difference; of two classifiers the measure of each.
    error : by how much the values may be off, where they are not in closed form.
    bounds : measure -> what gaps in it are compared with, where that is not epsilon.
    scores_are_right : whether what is said on that assumption is to be true.
    only_lowest : attributes of whose groups nothing is asked but which is the lowest.
    holds : threshold -> whether the constraint that was asked for holds there.
    """

    values: Mapping[Question, Mapping[str, float]]
    error: float = 0.0
    bounds: Mapping[str, float] = field(default_factory=dict)
    scores_are_right: bool = False
    only_lowest: Sequence[str] = ()
    holds: Callable[[float], bool] | None = None

    def gap(self, question: Question) -> float:
        """Return the largest difference between two groups."""
        values = self.values[question].values()
        return max(values) - min(values)

    def sizeable(self) -> Iterator[Difference]:
        """Yield the differences that a reader would want to be told of."""
        for question, values in self.values.items():
            about, attribute, measure, _ = question
            if attribute in self.only_lowest:
                continue
            if about in (GAP, COMPARISON):
                least = SIZEABLE[about]
                if about == GAP:
                    least = least * self.bounds.get(measure, EPSILON) + self.error
                if self.gap(question) > least:
                    yield question, ""
                continue
            neutral = float(about == SHARE)
            for group, value in values.items():
                if value < _RATIO if about == RATIO else abs(value - neutral) >= SIZEABLE[about]:
                    yield question, group


def question_of(finding: Finding) -> Question:
    """Return the question that a finding answers; gaps, pairs and the lowest share theirs."""
    about = GAP if finding.about in (PAIR, LOWEST) else finding.about
    return about, finding.attribute, finding.measure, finding.scope


def difference_of(finding: Finding) -> Difference | None:
    """Return the difference that a finding says there is; None where it says none."""
    if finding.verdict != LARGE or finding.about in (PAIR, LOWEST, CONSTRAINT):
        return None
    of_groups = finding.about not in (GAP, COMPARISON)
    return question_of(finding), finding.groups[0] if of_groups else ""


def is_wrong(finding: Finding, truth: Truth) -> bool:
    """Say whether a finding contradicts the truth by more than the truth's own error.

    What is open is never wrong, and what is said on an assumption is judged where that holds.

    Raises
    ------
    KeyError : the truth knows nothing of what the finding is about.
    """
    if finding.verdict not in (LARGE, SMALL) or (finding.given and not truth.scores_are_right):
        return False
    if finding.about == CONSTRAINT:
        assert truth.holds is not None
        holds = truth.holds(float(finding.scope.rsplit(" ", 1)[1]))
        return holds != (finding.verdict == SMALL)
    # Of a truth in closed form, what is exactly at a bound is neither over nor under it.
    return not _is_right(finding, truth, truth.error or -_ROUNDING)


def _is_right(finding: Finding, truth: Truth, error: float) -> bool:
    """Say whether a finding holds; the truth may be off by an error, or has to be beyond -error."""
    about, bound, small = finding.about, finding.bound, finding.verdict == SMALL
    question = question_of(finding)
    values = truth.values[question]
    first, *others = [values[group] for group in finding.groups] or [truth.gap(question)]
    if small and about == GAP:  # which says that no two differ by more, and so holds at the bound
        return truth.gap(question) <= bound + abs(error)
    if small and about == COMPARISON:
        return abs(others[0] - first) < bound + error
    if about == RATIO:
        return first >= FOUR_FIFTHS - abs(error) if small else first < FOUR_FIFTHS + error
    if about == LOWEST:
        rest = [value for name, value in values.items() if name not in finding.groups]
        return first < min(rest) + error
    if about in (GAP, PAIR):
        return first - sum(others) > (bound if about == GAP else 0.0) - error
    if about == UNLIKE:
        return abs(first) > -error
    # A value that is said to be on one side of a neutral one, or of another.
    neutral = float(about == SHARE)
    away = others[0] - first if about == COMPARISON else first - neutral
    return (away if finding.value > neutral else -away) > -error


# Whether what a page says agrees with itself: sentences, verdicts, intervals, probabilities.

_SURE = 0.95
_SUPPOSED = re.compile(r" if \S.* and .* differ by [\d.]+")  # what a plan is for, and no finding


def finding_of(values: Mapping[str, Any]) -> Finding:
    """Return a finding from a page's data."""
    return Finding(**{name: value for name, value in values.items() if name != "sentence"})


def of_page(document: Document) -> Iterator[str]:
    """Yield what is amiss on a page: sentences that word no finding, verdicts that contradict."""
    findings = [finding_of(values) for values in document.data["findings"]]
    for values, finding in zip(document.data["findings"], findings, strict=True):
        if values["sentence"] != sentences.sentence_of(finding):
            yield f"the data word a finding otherwise: {values['sentence']}"
    said, verdict, summary = document.data["conclusions"], document.verdict, document.summary
    assert verdict is not None
    assert summary is not None
    can, cannot = sentences.concluded(findings)
    worded = {
        "can be concluded": (verdict.can, said["can"], can),
        "cannot be concluded": (verdict.cannot, said["cannot"], cannot),
        "what was found": (summary.found, sentences.in_short(findings)),
        "what is open": (summary.still_open, sentences.left_open(findings)),
    }
    for where, columns in worded.items():
        first, *others = map(list, columns)
        if any(first != other for other in others):
            yield f"{where} is not worded as findings are"
    advice = list(sentences.to_do(findings))
    groups = {re.escape(name) for finding in findings for name in finding.groups}
    named = re.compile(rf"(?<!\w)({'|'.join(groups)})(?!\w)")
    for sentence in summary.todo:
        if sentence not in advice and groups and named.search(_SUPPOSED.sub("", sentence)):
            yield f"advice that no finding gives names a group: {sentence}"
    yield from of_findings(findings)


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


# Audits of a population, again and again, and how often anything that they say is wrong.

CERTAINTY = 0.999  # of the interval of a share of pages
HIGHEST = 0.065  # a share whose interval ends above this is undecided
PAGES = 2  # of each population, that are made in full
SHORT = 20  # audits of each population in the short form
# After how many audits a full run looks whether it is sure by now; intervals of all looks together
# hold with `CERTAINTY`.
LOOKS = (150, 300, 600, 1200, 2400, 4800)


@dataclass(frozen=True, eq=False)
class Sample:
    """The rows of one audit.

    Attributes
    ----------
    findings : makes what the audit finds, without the rest of its page.
    frame : makes the table as somebody would bring it.
    alone : makes the gaps that a simultaneous test of the labelled rows alone calls large, at the
        same budget; None where there is no such test.
    """

    options: Options
    findings: Callable[[], Found]
    frame: Callable[[], pd.DataFrame]
    alone: Callable[[], Set[Question]] | None = None


@dataclass(frozen=True, eq=False)
class Population:
    """People of whom the truth is known.

    Attributes
    ----------
    kind : of the audit. name : what tables call it.
    draw : takes a generator to a sample of them. truth : computes what is true of them.
    short : whether a short run has it.
    """

    kind: str
    name: str
    draw: Callable[[np.random.Generator], Sample]
    truth: Callable[[], Truth]
    short: bool = False


@dataclass
class Result:
    """What came of the audits of a population so far.

    Attributes
    ----------
    wrong : pages with any wrong finding. kinds : how many findings of each kind were wrong.
    there, found : sizeable differences that there were in all audits, and those that were found.
    gaps, gaps_found, alone : the gaps among them where labels alone are tested too; what was found
        of them, and what labels alone find.
    amiss : where pages contradict themselves.
    """

    kind: str
    name: str
    audits: int = 0
    wrong: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    there: int = 0
    found: int = 0
    gaps: int = 0
    gaps_found: int = 0
    alone: int = 0
    amiss: list[str] = field(default_factory=list)

    @property
    def share(self) -> float:
        """The share of pages with a wrong finding."""
        return self.wrong / self.audits

    @property
    def interval(self) -> tuple[float, float]:
        """Its exact interval, which holds with 99.9 % at all looks together."""
        return exact_interval(self.wrong, self.audits, 1 - (1 - CERTAINTY) / len(LOOKS))

    @property
    def failed(self) -> bool:
        """Whether more than one page of twenty is surely wrong."""
        return self.interval[0] > ERROR_RATE

    @property
    def unsettled(self) -> bool:
        """Whether it may be more than the most that is allowed for noise."""
        return not self.failed and self.interval[1] > HIGHEST


def simulate(
    population: Population, *, replications: int = 0, pages: int = PAGES, short: bool = False
) -> Result:
    """Return what comes of the audits of a population.

    There are as many as it takes to be sure that pages are wrong too often, or that they are not.

    Parameters
    ----------
    replications : how many audits there are all the same.
    pages : how many of them are made in full.
    """
    fixed = replications or SHORT * short
    generator = rng(0, "statements", population.kind, population.name)
    truth = population.truth()
    result = Result(population.kind, population.name)
    for look in [fixed] if fixed else LOOKS:
        for number in range(result.audits, look):
            sample = population.draw(generator)
            _audit(sample, truth, result)
            if number < pages:
                result.amiss += _page(sample)
        if result.failed or not result.unsettled:
            break
    return replace(result, amiss=list(dict.fromkeys(result.amiss)))


def _audit(sample: Sample, truth: Truth, result: Result) -> None:
    """Count what an audit finds, and what of it is wrong."""
    findings, gaps = sample.findings()
    wrong = [finding for finding in findings if is_wrong(finding, truth)]
    result.audits += 1
    result.wrong += bool(wrong)
    result.kinds.update(f"{finding.about} {finding.verdict}" for finding in wrong)
    sizeable = set(truth.sizeable())
    found = {difference_of(finding) for finding in findings if not finding.given} & sizeable
    result.there += len(sizeable)
    result.found += len(found)
    # Of the gaps that labels alone can show: not those of people who have none.
    tested = {each for each in sizeable if not each[1] and each[0][-1] in ("", PART)}
    if sample.alone is not None and tested:
        result.gaps += len(tested)
        result.alone += len(sample.alone() & {question for question, _ in tested})
        result.gaps_found += len(found & tested)
    result.amiss += of_findings(findings)
    result.amiss += of_gaps(gaps, sample.options.epsilon)


def _page(sample: Sample) -> Iterator[str]:
    """Yield what is amiss on the whole page of a sample."""
    frame = read_frame(sample.options, source=sample.frame())
    document = document_of(sample.options, frame)
    yield from of_page(document)
    page = set(map(_said, map(finding_of, document.data["findings"])))
    told = set(map(_said, sample.findings()[0]))
    if page != told:
        yield f"the page finds something else: {sorted(page ^ told, key=str)[:3]}"


def _said(finding: Finding) -> tuple[object, ...]:
    """Return what a finding says; groups that are as likely stand in no order."""
    groups = finding.groups if finding.verdict == LARGE else sorted(finding.groups)
    about = finding.about, finding.attribute, finding.measure, finding.scope
    return (*about, finding.verdict, *groups)
