"""Measures ask, findings answer: what rows say of the population that they are a sample of.

A :class:`Measure` is a question about the groups of an attribute, which can be answered at any
level; :meth:`Measure.conclude` makes the findings that answer it. Every sentence of an audit's page
about the population is a finding, worded by :mod:`fairbench.audits.sentences`, and so are a gate's
statements. All findings of a page share one error rate: any of them is wrong in at most one audit
of twenty. All other sentences describe the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from fairbench.core.text import some_of
from fairbench.evaluation.groups import GapInterval
from fairbench.inference.gaps import GroupLimits, gap_of_noise, largest_gap
from fairbench.inference.rates import Limits

NAN = float("nan")
LARGE, SMALL, OPEN, NOT_MEASURED = "large", "small", "open", "not measured"
ERROR_RATE = 0.05  # the share of pages with any wrong finding
LEVEL = 0.95  # of the intervals that are printed
# In a report on rows that were labelled for a question, half the error rate is for its answer.
QUESTION_RATE = ERROR_RATE / 2
# The most that one answer may be wrong by its interval's level. At 5 %, the interval of the
# difference of two alike groups excludes 0 in up to 6.2 % of samples (two groups of 108 rows at a
# rate of 0.044, by enumeration); at 4 %, in at most 4.4 %.
_LARGEST_RISK = 0.04

# The subject of a finding.
GAP = "gap"  # the largest difference between two groups
PAIR = "pair"  # which of two groups has the higher rate
LOWEST = "lowest"  # which group, or class, has the lowest rate of all
RATIO = "impact ratio"  # a group's selection rate over another's
EXCESS = "excess of scores"  # mean score of a group less its share of positive labels
SHARE = "share of places"  # a group's share of a ranking over its share of the rows
UNLIKE = "unlike everyone else"  # a group's rate against that of everybody else
COMPARISON = "comparison"  # a measure of a second classifier, less that of the first
CONSTRAINT = "constraint"  # what a threshold was asked to achieve, on rows it was not chosen on
WATCHED = "watched gap"  # the difference between two groups, of all rows that came so far
# Alarms of a watch, which it keeps: a gap is beyond its bound, or is another than it was, or scores
# are off by another amount than they were.
PASSED, CHANGED, DRIFTED = "passed", "changed", "drifted"


@dataclass(frozen=True, eq=False)
class Finding:
    """One question about the people that the rows are a sample of, and its answer.

    Attributes
    ----------
    about : the kind of question, one of the constants of this module.
    attribute : the column, or combination of columns, whose groups it is about; empty for everyone.
    measure : what is measured, in words, such as ``true positive rate``.
    verdict : `LARGE`, `SMALL`, `OPEN` or `NOT_MEASURED`. The error rate covers the first two.
    groups : the groups that the answer names; for a large gap, the one with the higher rate first.
    value, lower, upper : the measured value, with its 95 % interval; of a difference between two
        groups that are named, that of the first minus that of the second.
    values : the measure of each of `groups` in these rows.
    bound : the number that the value is compared with.
    is_share : whether the value is a share, which a reader may want in percentage points.
    n : how many rows, or labels, it rests on.
    needs : what would settle an open question; if it is not measured, why not.
    unless : the labels that would have to be wrong to undo the answer.
    given : an assumption of the answer; with one, the question is not settled.
    scope : whom or what else it holds for, such as ``of everyone``.
    decided : for an impact ratio, what the people are whose share is compared: ``approved``.
    noise : of a gap among more than two groups, how large noise alone would make it on average, if
        the groups had equal rates; NaN of all else.
    """

    about: str
    attribute: str = ""
    measure: str = ""
    verdict: str = NOT_MEASURED
    groups: Sequence[str] = ()
    value: float = NAN
    lower: float = NAN
    upper: float = NAN
    values: Sequence[float] = ()
    bound: float = 0.0
    is_share: bool = True
    n: int = 0
    needs: str = ""
    unless: str = ""
    given: str = ""
    scope: str = ""
    decided: str = ""
    noise: float = NAN

    @property
    def question(self) -> tuple[str, str, str]:
        """What a gap, and the pairs of groups that differ in it, are about."""
        return self.attribute, self.measure, self.scope

    @property
    def is_settled(self) -> bool:
        """Whether it answers its question, on no assumption but that the rows are a sample."""
        return self.verdict in (LARGE, SMALL) and not self.given

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval."""
        return self.lower, self.upper


def risk_of(questions: int, rate: float = ERROR_RATE) -> float:
    """Return the error rate of one answer, where several questions share an error rate equally.

    A question that is answered rightly cannot be answered wrongly any more, so its share of the
    error rate may be spent again (Bretz, Maurer, Brannath and Posch 2009, "A graphical approach to
    sequentially rejective multiple test procedures"): further questions share the risk of one times
    the number of questions that were settled. Open ones, and other statements under them, keep
    their shares.

    Parameters
    ----------
    questions : how many there are.
    rate : the probability that any answer is wrong (family-wise error rate).
    """
    return min(rate / max(questions, 1), _LARGEST_RISK)


@dataclass(frozen=True, eq=False)
class _GapAnswer:
    """The answer to the question whether a gap is large.

    Attributes
    ----------
    verdict : `LARGE`, `SMALL`, `OPEN` or `NOT_MEASURED`.
    named : for a large gap, the positions of two groups that differ by more than the bound, the
        higher first; empty if it is not known which.
    pairs : the (higher, lower) positions of all pairs that surely differ, the largest difference
        first; empty for a small gap.
    """

    verdict: str
    named: tuple[int, ...] = ()
    pairs: Sequence[tuple[int, int]] = ()


@dataclass(frozen=True, eq=False)
class Measure:
    """A question about the groups of an attribute, which can be answered at any level.

    Attributes
    ----------
    asked : the finding to fill in: whom and what the question is about, the tolerance, how many
        rows it rests on, and why it is not measured, where there is no `gap`.
    names : (A,) the names of the groups that are compared.
    gap : level -> the interval of their largest gap, with the simultaneous lower limits of all
        pairs where these are known; None where nothing is measured.
    rates : (A,) what is measured of each group; or (A, A), of the first of each pair, where that
        depends on the second.
    estimate : the gap, with both limits of its 95 % interval.
    signed : whether it is that of the second of two groups less the first's.
    few : the people of too few rows to show that they are like the others: no gap is small with
        them, and an open one says so.
    is_whole : whether the interval is of everyone, `few` included.
    may_be_small : whether there are enough labels to call the gap small.
    noise : of more than two groups, how large noise alone would make the gap; NaN otherwise.
    answer : what :meth:`answered` found, with groups as positions in `names`.
    """

    asked: Finding
    names: Sequence[str] = ()
    gap: Callable[[float], GapInterval] | None = None
    rates: Sequence[Any] = ()
    estimate: tuple[float, float, float] = (NAN, NAN, NAN)
    signed: bool = False
    few: Sequence[str] = ()
    is_whole: bool = True
    may_be_small: bool = True
    noise: float = NAN
    answer: _GapAnswer = _GapAnswer(NOT_MEASURED)

    @classmethod
    def of_limits(
        cls, asked: Finding, names: Sequence[str], at: Callable[[float], GroupLimits], **more: Any
    ) -> Measure:
        """Return the question of groups whose limits are known.

        Parameters
        ----------
        at : level -> the measure of the groups, with limits. People of a group that has none may
            differ from all others.
        more : further attributes.
        """
        shown = at(LEVEL)
        measured = np.isfinite(shown.pointwise.lower)
        known = measured & np.isfinite(shown.pointwise.value)
        if known.sum() < 2:
            return cls(asked)
        value, lower, upper = map(float, largest_gap(shown.only(measured)))
        return cls(
            asked,
            names,
            lambda level: GapInterval.of(at(level).only(measured)),
            shown.pointwise.value.tolist(),
            (value, lower, upper),
            few=[name for name, is_known in zip(names, known, strict=True) if not is_known],
            is_whole=bool(measured.all()),
            noise=gap_of_noise(shown.pointwise),
            **more,
        )

    @property
    def attribute(self) -> str:
        """The attribute whose groups are compared."""
        return self.asked.attribute

    @property
    def rate_name(self) -> str:
        """What is measured of each group, in words."""
        return self.asked.measure

    @property
    def verdict(self) -> str:
        """The verdict on the gap."""
        return self.answer.verdict

    @property
    def value(self) -> float:
        """The gap."""
        return self.estimate[0]

    @property
    def lower(self) -> float:
        """The lower limit of its interval."""
        return self.estimate[1]

    @property
    def upper(self) -> float:
        """The upper limit of its interval."""
        return self.estimate[2]

    def answered(self, risk: float) -> Self:
        """Return the question with the answer that is wrong with a probability of up to `risk`."""
        if self.gap is None:
            return self
        may_be_small = self.may_be_small and (self.is_whole or not self.few)
        answer = _answer_gap(self.gap, self.asked.bound, risk, may_be_small=may_be_small)
        return replace(self, answer=answer)

    def conclude(self, **more: Any) -> list[Finding]:
        """Return the finding of the gap, and those of the further pairs that surely differ.

        Parameters
        ----------
        more : further fields of the first, such as ``needs``.
        """
        answer = self.answer
        named = answer.named
        if answer.verdict == LARGE and not named and len(self.names) == 2:
            named = (0, 1) if self.rates[0] > self.rates[1] else (1, 0)
        value, lower, upper = self.estimate
        if self.signed and named == (0, 1):
            value, lower, upper = -value, -upper, -lower
        if answer.verdict == OPEN and self.few and not self.is_whole:
            lower = upper = NAN  # it is the gap of the others alone
        why = {OPEN: too_few_of(self.few), NOT_MEASURED: self.asked.needs}
        fields = {
            "verdict": answer.verdict,
            "groups": tuple(self.names[group] for group in named),
            "value": value,
            "lower": lower,
            "upper": upper,
            "values": self._rates_of(*named) if named else (),
            "needs": why.get(answer.verdict, ""),
            "noise": self.noise,
        }
        further = [pair for pair in answer.pairs if pair != answer.named and len(self.rates)]
        return [replace(self.asked, **{**fields, **more}), *(self._pair(*pair) for pair in further)]

    def _rates_of(self, first: int, second: int) -> tuple[float, ...]:
        """Return what is measured of two groups that are compared; nothing where it is unknown."""
        rates = np.asarray(self.rates, float)
        if not rates.size:
            return ()
        if rates.ndim == 2:
            return float(rates[first, second]), float(rates[second, first])
        return float(rates[first]), float(rates[second])

    def _pair(self, high: int, low: int) -> Finding:
        """Return the finding that one group is surely above another."""
        above, below = values = self._rates_of(high, low)
        names = self.names[high], self.names[low]
        pair = replace(self.asked, about=PAIR, verdict=LARGE, groups=names, bound=0.0, needs="")
        return replace(pair, value=above - below, values=values)


def side_of(lower: float, upper: float, bound: float, *, low_is_bad: bool = False) -> str:
    """Return on which side of a bound an interval lies: `LARGE` if on the bad one, else `SMALL`.

    The bound itself is good. `OPEN` where the interval holds both sides, or there is none.
    """
    if np.isnan(lower) or np.isnan(upper):
        return OPEN
    if low_is_bad:
        lower, upper, bound = -upper, -lower, -bound
    if lower > bound:
        return LARGE
    return SMALL if upper <= bound else OPEN


def _answer_gap(
    at: Callable[[float], GapInterval], bound: float, risk: float, *, may_be_small: bool = True
) -> _GapAnswer:
    """Decide whether the largest gap between groups is large, small or open.

    The gap is small if its upper limit is under the bound; this is a statement about one pair of
    groups, the one with the largest true gap. Whether it is large, and which groups are above
    which, follows from the lower limits, which hold simultaneously for all pairs.

    For a small gap, no pairs are named: they would be a second statement that may be wrong, about
    differences that do not matter. For an open gap, and for a large gap among more than two groups,
    further pairs are named at half the risk, as they are a further statement. A gap just above the
    bound can be called small, or else a pair be named wrongly: of three groups and more, the error
    rate is at most one and a half times the risk. This takes many groups that are alike, and one
    that is far from them.

    Parameters
    ----------
    at : level -> the interval of the gap, with the lower limits of all pairs if they are known.
    bound : the tolerance that the gap is compared with.
    risk : the error rate of the answer.
    may_be_small : whether there are enough labels to call the gap small.
    """
    for_small = at(one_sided_level(risk))
    for_large = at(1 - risk)
    if for_small.upper < bound and may_be_small:
        return _GapAnswer(SMALL)
    if for_large.leads is None:  # nobody is named
        return _GapAnswer(LARGE if for_large.lower > bound else OPEN)
    has_several_pairs = len(for_large.leads) > 2
    pairs_apart = (at(1 - risk / 2) if has_several_pairs else for_large).apart
    if for_large.lower > bound:
        widest = for_large.apart[0]
        return _GapAnswer(LARGE, widest, list(dict.fromkeys([widest, *pairs_apart])))
    return _GapAnswer(OPEN, pairs=pairs_apart)


def answer_difference(at: Callable[[float], Limits], bound: float, risk: float) -> str:
    """Decide whether a difference surely has one sign (large), is within the bound, or open.

    Parameters
    ----------
    at : level -> the difference with its limits.
    bound : the size under which a difference is small.
    risk : the error rate of the answer.
    """
    for_small = at(one_sided_level(risk))
    for_large = at(1 - risk)
    if -bound < for_small.lower and for_small.upper < bound:
        return SMALL
    return LARGE if for_large.lower > 0 or for_large.upper < 0 else OPEN


def too_few_of(groups: Sequence[str]) -> str:
    """Return which groups keep a gap open, as people in them may differ; empty if none does."""
    return f"there are too few rows of {some_of(groups)}" if groups else ""


def one_sided_level(risk: float) -> float:
    """Return the level of an interval of which one end gives an answer at this error rate.

    It is at least that of the intervals that are printed, so that no answer contradicts them.
    """
    return max(LEVEL, 1 - 2 * risk)
