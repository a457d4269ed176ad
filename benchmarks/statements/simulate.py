"""Audits of a population, again and again, and how often anything that they say is wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from time import perf_counter

import numpy as np
import pandas as pd
from scipy import special

from benchmarks.statements.consistency import finding_of, of_findings, of_gaps, of_page
from benchmarks.statements.truth import PART, Difference, Question, Truth, difference_of, is_wrong
from fairbench.audits.columns import read_frame
from fairbench.audits.findings import ERROR_RATE, LARGE, Finding
from fairbench.audits.gaps import Gap
from fairbench.audits.kinds import document_of
from fairbench.audits.question import Options
from fairbench.core.seeds import rng

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
    findings: Callable[[], tuple[Sequence[Finding], Sequence[Gap]]]
    frame: Callable[[], pd.DataFrame]
    alone: Callable[[], Set[Question]] | None = None


@dataclass(frozen=True, eq=False)
class Population:
    """People of whom the truth is known.

    Attributes
    ----------
    kind : of the audit, as ``kind=`` names it. name : what tables call it.
    draw : takes a generator to a sample of them. truth : computes what is true of them.
    short : whether a short run has it.
    """

    kind: str
    name: str
    draw: Callable[[np.random.Generator], Sample]
    truth: Callable[[], Truth]
    short: bool = False


@dataclass(frozen=True, eq=False)
class Result:
    """What came of the audits of a population.

    Attributes
    ----------
    wrong : pages with any wrong finding. kinds : how many findings of each kind were wrong.
    there, found : sizeable differences that there were in all audits, and those that were found.
    gaps, gaps_found, alone : the gaps among them where labels alone are tested too; what was found
        of them, and what labels alone find.
    amiss : where pages contradict themselves. seconds : that it all took.
    """

    kind: str
    name: str
    audits: int
    wrong: int
    kinds: Mapping[str, int]
    there: int
    found: int
    gaps: int
    gaps_found: int
    alone: int
    amiss: Sequence[str] = ()
    seconds: float = 0.0

    @property
    def share(self) -> float:
        """The share of pages with a wrong finding."""
        return self.wrong / self.audits

    @property
    def interval(self) -> tuple[float, float]:
        """Its exact interval, which holds with 99.9 % at all looks together."""
        tail, rest = (1 - CERTAINTY) / 2 / len(LOOKS), self.audits - self.wrong
        lower = special.betaincinv(self.wrong, rest + 1, tail) if self.wrong else 0.0
        upper = special.betaincinv(self.wrong + 1, rest, 1 - tail) if rest else 1.0
        return float(lower), float(upper)

    @property
    def failed(self) -> bool:
        """Whether more than one page of twenty is surely wrong."""
        return self.interval[0] > ERROR_RATE

    @property
    def unsettled(self) -> bool:
        """Whether it may be more than the most that is allowed for noise."""
        return not self.failed and self.interval[1] > HIGHEST


@dataclass
class _Tally:
    wrong: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    found: int = 0
    gaps_found: int = 0
    alone: int = 0
    amiss: list[str] = field(default_factory=list)


def simulate(
    population: Population,
    *,
    replications: int = 0,
    pages: int = PAGES,
    short: bool = False,
    seed: int = 0,
) -> Result:
    """Return what comes of the audits of a population.

    There are as many as it takes to be sure that pages are wrong too often, or that they are not.

    Parameters
    ----------
    replications : how many audits there are all the same.
    pages : how many of them are made in full.
    """
    fixed = replications or SHORT * short
    generator = rng(seed, "statements", population.kind, population.name)
    truth = population.truth()
    sizeable = set(truth.sizeable())
    tally, began, tested, audits = _Tally(), perf_counter(), False, 0
    for look in [fixed] if fixed else LOOKS:
        for number in range(audits, look):
            sample = population.draw(generator)
            tested = sample.alone is not None
            _audit(sample, truth, sizeable, tally)
            if number < pages:
                tally.amiss += _page(sample)
        audits = look
        gaps = _tested(sizeable) if tested else set()
        result = _result(population, tally, audits, len(sizeable), len(gaps))
        if result.failed or not result.unsettled:
            break
    return replace(result, seconds=perf_counter() - began)


def _result(
    population: Population, tally: _Tally, audits: int, differences: int, gaps: int
) -> Result:
    return Result(
        population.kind,
        population.name,
        audits,
        tally.wrong,
        dict(tally.kinds),
        audits * differences,
        tally.found,
        audits * gaps,
        tally.gaps_found,
        tally.alone,
        tuple(dict.fromkeys(tally.amiss)),
    )


def _audit(sample: Sample, truth: Truth, sizeable: Set[Difference], tally: _Tally) -> None:
    findings, gaps = sample.findings()
    wrong = [finding for finding in findings if is_wrong(finding, truth)]
    tally.wrong += bool(wrong)
    tally.kinds.update(f"{finding.about} {finding.verdict}" for finding in wrong)
    result = {difference_of(finding) for finding in findings if not finding.given} & sizeable
    tally.found += len(result)
    questions = _tested(sizeable)
    if questions and sample.alone is not None:
        tally.alone += len(sample.alone() & questions)
        tally.gaps_found += sum(1 for each in result if each is not None and each[0] in questions)
    tally.amiss += of_findings(findings)
    tally.amiss += of_gaps(gaps, sample.options.epsilon)


def _tested(sizeable: Set[Difference]) -> set[Question]:
    """Return the gaps that labels alone can show: not those of people who have none."""
    return {question for question, group in sizeable if not group and question[-1] in ("", PART)}


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
    return (
        finding.about,
        finding.attribute,
        finding.measure,
        finding.scope,
        finding.verdict,
        tuple(groups),
    )
