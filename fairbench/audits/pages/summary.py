"""What an audit says to somebody who reads nothing else: a summary in plain words."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TypeAlias

import pandas as pd

from fairbench.audits.assessment import Assessment
from fairbench.audits.conclusions import Conclusions
from fairbench.audits.gaps import LARGE, OPEN, RATE_NAMES, RATE_OF, SMALL, UNKNOWN, Gap
from fairbench.audits.labels_needed import Needed, rounded
from fairbench.audits.question import Options
from fairbench.core.formats import count
from fairbench.data.tabular import spelled
from fairbench.evaluation.columns import values_of
from fairbench.inference.impact import FOUR_FIFTHS
from fairbench.inference.posterior import FREQUENTIST
from fairbench.reporting.document.model import ExecutiveSummary

_MOST = 3  # of a kind, that a summary names
_FEW = 5  # conclusions in a summary
# (attribute, group, metric) -> (value, lower, upper)
Estimates: TypeAlias = Mapping[tuple[str, str, str], tuple[float, float, float]]


def audit_summary(assessment: Assessment) -> ExecutiveSummary:
    """Return what was found, how sure that is, what was not looked at and what to do next."""
    return ExecutiveSummary(
        list(_found(assessment)),
        list(_sure(assessment)),
        list(_unseen(assessment)),
        list(_todo(assessment)),
    )


def summary_of(
    options: Options, conclusions: Conclusions, *, settle: str = "collect more labels"
) -> ExecutiveSummary:
    """Return a summary of any audit, made of its conclusions; `settle` is what settles more."""
    found, left = list(conclusions.can[:_FEW]), len(conclusions.can) - _FEW
    found += [f"{left} more findings stand under “Can be concluded”."] * (left > 0)
    groups = _listed(list(options.group or options.proxy))
    unseen = [f"Only groups by {groups} were looked at."] * bool(groups)
    todo = []
    if conclusions.cannot:
        unseen.append("What is open stands under “Cannot be concluded”; open does not mean alike.")
        todo.append(f"Read what stays open, and {settle} for what matters most.")
    if conclusions.can:
        todo.append(
            "Where groups differ, find out why before acting on it: an audit does not tell."
        )
    nothing = "Nothing is settled by these rows."
    return ExecutiveSummary(found or [nothing], list(conclusions.basis), unseen, todo)


def rate_meaning(rate: str, labels: tuple[str, str]) -> str:
    """Return in plain words which share of whom a rate is.

    Examples
    --------
    >>> print(rate_meaning("true positive rate", ("denied", "repaid")))
    of those who truly are 'repaid', the share with decision 'repaid'
    """
    negative, positive = (f"'{each}'" for each in labels)
    return {
        "selection rate": f"the share with decision {positive}",
        "true positive rate": f"of those who truly are {positive}, the share with decision "
        f"{positive}",
        "false positive rate": f"of those who truly are {negative}, the share with decision "
        f"{positive}",
        "precision": f"of those with decision {positive}, the share who truly are {positive}",
        "accuracy": "the share of right decisions",
    }.get(rate, "")


def differ_somehow(gap: Gap) -> bool:
    """Say whether groups surely differ, while it is open between whom by how much."""
    return gap.verdict == OPEN and not gap.signed and bool(gap.pairs)


def _points(value: float) -> str:
    return f"{100 * value:.3g} percentage points"


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def estimates(metrics: pd.DataFrame, names: Collection[str]) -> Estimates:
    """Return value, lower and upper of metrics of these names, by attribute, group and metric."""
    metrics = values_of(metrics)
    shown = metrics[metrics["metric"].isin(list(names))]
    columns = ("attribute", "group", "metric", "value", "lower", "upper")
    rows = zip(*(shown[name] for name in columns), strict=True)
    return {(str(a), str(g), str(m)): (v, low, up) for a, g, m, v, low, up in rows}


def rates_of(assessment: Assessment) -> Estimates:
    """Return the rates that gaps are of."""
    return estimates(assessment.metrics, {rate.name for rate in RATE_OF.values()})


def _found(assessment: Assessment) -> Iterator[str]:
    rates, epsilon = rates_of(assessment), assessment.options.epsilon
    settled = [gap for gap in assessment.gaps if gap.verdict == LARGE]
    for gap in sorted(settled, key=lambda gap: -abs(gap.value)):
        yield _is_large(gap, rates, epsilon)
    yield from _impact(assessment)
    for attribute in assessment.table.groups:
        yield from _of_attribute(
            attribute, [gap for gap in assessment.gaps if gap.attribute == attribute], epsilon
        )


def _impact(assessment: Assessment) -> Iterator[str]:
    """Yield of whom it is sure that they are selected less than four fifths as often."""
    for attribute in assessment.options.group:
        mine = [each for each in assessment.impact if each.attribute == attribute]
        found = [each for each in mine if not each.is_given_reference]
        if not found:
            continue
        under = [each for each in found if each.upper < FOUR_FIFTHS]
        unsure = [each for each in found if each.lower < FOUR_FIFTHS <= each.upper]
        whom = found[0].reference if found[0].given else "the group selected most often"
        if under:
            named = _listed([f"{each.group} (ratio {each.ratio:.2f})" for each in under])
            yield f"By {attribute}, selected less than four fifths as often as {whom}: {named}."
        if unsure:
            named = _listed([each.group for each in unsure])
            yield f"By {attribute}, not known to be selected four fifths as often: {named}."
        if not (under or unsure):
            least = f"at least four fifths as often as {whom}"
            yield f"By {attribute}, every group is selected {least}."


def _is_large(gap: Gap, rates: Estimates, epsilon: float) -> str:
    rate = RATE_OF[gap.metric].name
    high, low = (rates[gap.attribute, name, rate][0] for name in (gap.high, gap.low))
    return (
        f"By {gap.attribute}, groups differ by more than {_points(epsilon)} in "
        f"{RATE_NAMES[gap.metric]}: {_percent(high)} for {gap.high}, {_percent(low)} for "
        f"{gap.low}.{_if_right(gap)}"
    )


def _if_right(gap: Gap) -> str:
    return " This takes the scores at their word." if gap.assumed else ""


def _of_attribute(attribute: str, gaps: Sequence[Gap], epsilon: float) -> Iterator[str]:
    def named(chosen: Sequence[Gap]) -> str:
        if len(chosen) == len(RATE_OF):
            return "any of the rates below"
        return _listed([RATE_NAMES[gap.metric] for gap in chosen])

    for assumed in (False, True):
        small = [gap for gap in gaps if gap.verdict == SMALL and gap.assumed is assumed]
        if small:
            yield (
                f"By {attribute}, no two groups differ by {_points(epsilon)} or more in "
                f"{named(small)}.{_if_right(small[0])}"
            )
    differ = [gap for gap in gaps if differ_somehow(gap)]
    if differ:
        yield (
            f"By {attribute}, groups differ in {named(differ)}; between whom by "
            f"{_points(epsilon)} or more is not known. See the pairs."
        )
    still = [gap for gap in gaps if gap.verdict == OPEN and not differ_somehow(gap)]
    if still:
        yield (
            f"By {attribute}, it is open whether groups differ by {_points(epsilon)} or more in "
            f"{named(still)}: these rows cannot tell."
        )
    bare = [gap for gap in gaps if gap.verdict == UNKNOWN]
    if bare:
        yield f"By {attribute}, groups have too few rows to compare {named(bare)}."


def _listed(names: Sequence[str]) -> str:
    *most, last = names or [""]
    return f"{', '.join(most)} and {last}" if most else last


def _sure(assessment: Assessment) -> Iterator[str]:
    rows, labels = len(assessment.table), assessment.labels
    known = "all" if labels == rows else "none" if not labels else count(labels)
    yield f"There are {count(rows)} rows, {known} of them with a known outcome."
    if not labels and assessment.table.score is None:
        yield "Without outcomes and scores, only who is selected is known; nothing of errors is."
        return
    if not labels:
        yield (
            "Without outcomes, everything but the selection rate takes the scores at their word. "
            "If they are wrong, so is this, and nothing here would show it."
        )
        return
    yield (
        "Ranges and lines are 95 % intervals: made in the same way from other samples of the same "
        "people, 19 of 20 hold the true value."
    )
    if assessment.options.interval == FREQUENTIST:
        yield (
            "Of all verdicts on this page together, at most one audit in twenty has a wrong one. "
            "“Open” means that these rows cannot tell; it does not mean that groups are alike."
        )
    shares = [gap.tipping for gap in assessment.gaps if gap.verdict == LARGE and gap.tipping]
    if shares:
        yield ("How many wrong labels would undo each finding stands under “Can be concluded”.")


def _unseen(assessment: Assessment) -> Iterator[str]:
    options = assessment.options
    yield (
        f"Only groups by {_listed(list(options.group))} were compared; who else may be treated "
        "differently was not looked at."
    )
    left = dict.fromkeys(name for gap in assessment.gaps for name in gap.left_out)
    if left:
        more = f" and {len(left) - _MOST} more" if len(left) > _MOST else ""
        yield f"Too small to be compared in every rate: {', '.join([*left][:_MOST])}{more}."
    if assessment.labels:
        yield (
            f"Whether the outcomes in '{options.target}' are right, and were fair in the first "
            "place, was not looked at. Nor was why groups differ."
        )
    else:
        yield "Whether decisions are right was not looked at: that takes outcomes."
    if not options.favourable:
        yield "Which decision is good for a person was not said (favourable= says it)."


def _todo(assessment: Assessment) -> Iterator[str]:
    large = [gap for gap in assessment.gaps if gap.verdict == LARGE]
    worst = max(large, key=lambda gap: abs(gap.value), default=None)
    if worst is not None:
        yield (
            f"Find out why {RATE_NAMES[worst.metric]} is lower for {worst.low} than for "
            f"{worst.high}, and decide whether that is acceptable, before the model is used."
        )
    if not assessment.labels:
        yield "Collect outcomes: even 100 to 200, of rows chosen at random, check the scores."
        return
    yield from _recalibrate(assessment)
    yield from _more_labels(assessment)
    favourable = assessment.options.favourable
    if favourable:
        label = spelled(favourable)
        yield (
            f"Look first at people who should have got '{label}' and did not: these errors cost "
            "people most."
        )
    if all(gap.verdict == SMALL for gap in assessment.gaps):
        yield "Repeat the audit when the model changes, or the people that it is used on."


def _recalibrate(assessment: Assessment) -> Iterator[str]:
    off = [
        each
        for each in assessment.calibrations
        if each.attribute in assessment.options.group
        and each.lower * each.upper > 0
        and abs(each.excess) >= assessment.options.epsilon
    ]
    if off:
        worst = max(off, key=lambda each: abs(each.excess))
        side = "high" if worst.excess > 0 else "low"
        yield (
            f"Mend the scores: those of {worst.group} are too {side} by "
            f"{_points(abs(worst.excess))} on average."
        )


def _more_labels(assessment: Assessment) -> Iterator[str]:
    """Yield which open question takes the fewest further labels."""
    if not any(gap.verdict == OPEN for gap in assessment.gaps):
        return
    found = [each for each in assessment.needed if each.enough is not None]
    if found:
        first = min(found, key=lambda each: each.enough or 0)
        kind = "labels" if first.remaining is not None else "rows with labels"
        yield (
            f"Collect more {kind}: {_enough(first)} would probably settle "
            f"{RATE_NAMES[first.gap.metric]} by {first.gap.attribute}, the nearest open question."
        )
    elif assessment.needed:
        yield (
            "The labels that are missing are not likely to settle what is open: audit a larger "
            "sample."
        )


def _enough(needed: Needed) -> str:
    last = count(rounded(needed.enough or 0))
    if needed.few is None or needed.few == needed.enough:
        return f"about {last}"
    return f"{count(rounded(needed.few))} to {last}"
