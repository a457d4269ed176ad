"""What is true of a population, and whether a finding is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from fairbench.audits.findings import (
    COMPARISON,
    CONSTRAINT,
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
)
from fairbench.inference.impact import FOUR_FIFTHS

EPSILON = 0.05
PART = "of those selected ('selected')"  # what is said of them alone
# What is compared: the kind of finding, the attribute, the measure, and for whom it holds.
Question = tuple[str, str, str, str]
# A question, and of a finding about one group that group.
Difference = tuple[Question, str]
# From which size on a difference is one that a reader would want to be told of.
SIZEABLE: Mapping[str, float] = {
    GAP: 1.2,  # times the bound
    EXCESS: 0.02,
    SHARE: 0.1,
    UNLIKE: 0.05,
    COMPARISON: 0.02,
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
    holds : (attribute, threshold) -> whether a constraint that was asked for holds there.
    """

    values: Mapping[Question, Mapping[str, float]]
    error: float = 0.0
    bounds: Mapping[str, float] = field(default_factory=dict)
    scores_are_right: bool = False
    only_lowest: Sequence[str] = ()
    holds: Callable[[str, float], bool] | None = None

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
            if about == GAP:
                bound = SIZEABLE[GAP] * self.bounds.get(measure, EPSILON)
                if self.gap(question) > bound + self.error:
                    yield question, ""
            elif about == COMPARISON:
                if self.gap(question) > SIZEABLE[COMPARISON]:
                    yield question, ""
            else:
                neutral = float(about == SHARE)
                for group, value in values.items():
                    away = value < _RATIO if about == RATIO else (
                        abs(value - neutral) >= SIZEABLE[about]
                    )  # fmt: skip
                    if away:
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
        holds = truth.holds(finding.attribute, float(finding.scope.rsplit(" ", 1)[1]))
        return holds != (finding.verdict == SMALL)
    # Of a truth in closed form, what is exactly at a bound is neither over nor under it.
    return not _JUDGES[finding.about](finding, truth, truth.error or -_ROUNDING)


# Takes a finding, the truth, and by how much that may be off; below 0 it has to be right by more.
Judge = Callable[[Finding, Truth, float], bool]


def _gap(finding: Finding, truth: Truth, error: float) -> bool:
    question = question_of(finding)
    if finding.verdict == SMALL:  # which says that no two differ by more, and so holds at the bound
        return truth.gap(question) <= finding.bound + abs(error)
    if not finding.groups:
        return truth.gap(question) > finding.bound - error
    values = truth.values[question]
    high, low = finding.groups
    return values[high] - values[low] > finding.bound - error


def _pair(finding: Finding, truth: Truth, error: float) -> bool:
    values = truth.values[question_of(finding)]
    high, low = finding.groups
    return values[high] > values[low] - error


def _lowest(finding: Finding, truth: Truth, error: float) -> bool:
    values = dict(truth.values[question_of(finding)])
    lowest = values.pop(finding.groups[0])
    return lowest < min(values.values()) + error


def _ratio(finding: Finding, truth: Truth, error: float) -> bool:
    ratio = truth.values[question_of(finding)][finding.groups[0]]
    if finding.verdict == SMALL:
        return ratio >= FOUR_FIFTHS - abs(error)
    return ratio < FOUR_FIFTHS + error


def _away_from(neutral: float) -> Judge:
    """Return the judge of a value that is said to be on one side of a neutral one."""

    def judge(finding: Finding, truth: Truth, error: float) -> bool:
        value = truth.values[question_of(finding)][finding.groups[0]]
        side = 1 if finding.value > neutral else -1
        return side * (value - neutral) > -error

    return judge


def _unlike(finding: Finding, truth: Truth, error: float) -> bool:
    return abs(truth.values[question_of(finding)][finding.groups[0]]) > -error


def _comparison(finding: Finding, truth: Truth, error: float) -> bool:
    values = truth.values[question_of(finding)]
    first, second = (values[name] for name in finding.groups)
    if finding.verdict == SMALL:
        return abs(second - first) < finding.bound + error
    side = 1 if finding.value > 0 else -1
    return side * (second - first) > -error


_JUDGES: Mapping[str, Judge] = {
    GAP: _gap,
    PAIR: _pair,
    LOWEST: _lowest,
    RATIO: _ratio,
    EXCESS: _away_from(0.0),
    SHARE: _away_from(1.0),
    UNLIKE: _unlike,
    COMPARISON: _comparison,
}
