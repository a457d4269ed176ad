"""What can and what cannot be concluded at this number of labels, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fairbench.audits.assessment import Assessment
from fairbench.audits.calibration import least_alike
from fairbench.audits.gaps import FEWEST_LABELS, LARGE, OPEN, RATE_NAMES, SMALL, UNKNOWN, Gap
from fairbench.audits.labels_needed import Needed, rounded
from fairbench.audits.tipping import sentence, unless
from fairbench.core.formats import count, interval, number, probability
from fairbench.data.tabular import spelled
from fairbench.inference.posterior import FREQUENTIST


@dataclass(frozen=True, eq=False)
class Conclusions:
    """Sentences: a warning if there are no labels, what they rest on, what follows and what not."""

    warning: str
    basis: Sequence[str]
    can: Sequence[str]
    cannot: Sequence[str]
    notes: Sequence[str]


def conclude(assessment: Assessment) -> Conclusions:
    """Return the conclusions of an assessment."""
    epsilon = assessment.options.epsilon
    needed = {(each.gap.attribute, each.gap.metric): each for each in assessment.needed}
    can: list[str] = []
    cannot: list[str] = []
    for attribute in assessment.table.groups:
        mine = [gap for gap in assessment.gaps if gap.attribute == attribute]
        settled = [gap for gap in mine if _is_settled(gap)]
        others = [gap for gap in mine if not _is_settled(gap)]
        can += [_large(gap, epsilon) for gap in settled if gap.verdict == LARGE]
        can += _small(attribute, [gap for gap in settled if gap.verdict == SMALL], epsilon)
        cannot += _not_settled(attribute, others, needed, epsilon)
    if assessment.of_decisions:
        cannot.append("How often decisions are right, in any group: there are no labels.")
    return Conclusions(
        _warning(assessment), list(_basis(assessment)), can, cannot, list(_notes(assessment))
    )


def _is_settled(gap: Gap) -> bool:
    return gap.verdict in (SMALL, LARGE) and not gap.assumed


def _warning(assessment: Assessment) -> str:
    if assessment.labels or assessment.of_decisions:
        return ""
    return (
        "There are no labels. Whatever needs them takes the scores at their word: if the scores "
        "are wrong, so are these figures, and nothing here would show it."
    )


def _basis(assessment: Assessment) -> Iterator[str]:
    rows, labels = len(assessment.table), assessment.labels
    if assessment.of_decisions:
        yield (
            f"{count(rows)} rows with decisions, and neither labels nor scores: how often each "
            "group is selected is known, and not how often that is right."
        )
    else:
        yield f"{count(rows)} rows, {count(labels)} of them with a label ({labels / rows:.2%})."
    sampling = assessment.table.sampling
    by_group = sampling is not None and labels > 0
    if sampling is not None and by_group and not assessment.complete:
        yield (
            f"How many rows of each group of {sampling.by} were labelled was decided while "
            "labelling; which ones, at random within the group. Figures that cross groups give "
            "each group its share of the rows, not of the labels."
        )
        yield sampling.stopping
    options = assessment.options
    if options.weight:
        yield f"Rows count by '{options.weight}': figures are of the people that they stand for."
    if options.cluster:
        yield f"Rows with the same '{options.cluster}' belong together, and intervals know it."
    if assessment.complete or assessment.of_decisions:
        yield "Intervals say how far off the population may be that these rows are a sample of."
    elif labels:
        yield from _of_some_labels(assessment, at_random=not by_group)


def _of_some_labels(assessment: Assessment, *, at_random: bool) -> Iterator[str]:
    """Yield what figures from some labels assume, and what stands beside them."""
    scores = assessment.table.score is not None
    helping = "Scores" if scores else "Decisions"
    assumption = " This assumes that rows were chosen for labelling at random." * at_random
    yield (
        f"Figures rest on the labelled rows. {helping} make intervals narrower as far as they have "
        f"predicted the labels of each group; wrong ones do no harm.{assumption}"
    )
    if assessment.assumed is not None:
        yield (
            "Beside them stands what would follow if scores were as right in every group as in the "
            "others (calibrated alike). No verdict rests on that."
        )


def _large(gap: Gap, epsilon: float) -> str:
    return (
        f"{gap.attribute}: the {RATE_NAMES[gap.metric]} of {gap.high} is higher than that of "
        f"{gap.low} by more than {epsilon:g} (probability {probability(gap.beyond)}; {_size(gap)})."
        f"{sentence(gap)}"
    )


def _small(attribute: str, gaps: Sequence[Gap], epsilon: float) -> Iterator[str]:
    if gaps:
        listed = ", ".join(map(_is_small, gaps))
        yield f"{attribute}: no two groups differ by {epsilon:g} or more in {listed}."


def _is_small(gap: Gap) -> str:
    condition = f", unless {unless(gap)}" if unless(gap) else ""
    return f"{RATE_NAMES[gap.metric]} (probability {probability(gap.small)}{condition})"


def _size(gap: Gap) -> str:
    if not gap.signed:
        return f"largest gap {number(gap.value)}, 95 % interval {interval(gap.lower, gap.upper)}"
    ends = sorted((abs(gap.lower), abs(gap.upper)))
    same = gap.lower * gap.upper > 0
    ends_of = f", 95 % interval {interval(ends[0], ends[1])}" if same else ""
    return f"difference {number(abs(gap.value))}{ends_of}"


def _not_settled(
    attribute: str,
    gaps: Sequence[Gap],
    needed: Mapping[tuple[str, str], Needed],
    epsilon: float,
) -> Iterator[str]:
    bare = [RATE_NAMES[gap.metric] for gap in gaps if gap.verdict == UNKNOWN]
    if bare:
        yield f"{attribute}: groups have too few rows to be compared in {', '.join(bare)}."
    for assumed, condition in ((False, ""), (True, ", if the scores are right")):
        mine = [gap for gap in gaps if gap.verdict != UNKNOWN and gap.assumed is assumed]
        each = [_further(gap, needed.get((gap.attribute, gap.metric))) for gap in mine]
        if each:
            question = f"open whether groups differ by {epsilon:g} or more{condition}, in"
            yield f"{attribute}: {question} {'; '.join(each)}."


def _further(gap: Gap, needed: Needed | None) -> str:
    """Return the rate, the interval of its gap, and how many labels would settle that."""
    ends = interval(gap.lower, gap.upper)
    rate = RATE_NAMES[gap.metric] + (f" (95 % interval {ends})" if ends else "")
    if needed is None or not needed.labels:
        return rate
    kind = "more labels" if needed.remaining is not None else "more rows with labels"
    if needed.enough is None:
        chance, last = probability(needed.settled[-1]), count(needed.labels[-1])
        more = f"all {last} other labels" if needed.remaining is not None else f"{last} {kind}"
        return f"{rate}, P(settled by {more}) only {chance}"
    if needed.few is None or needed.few == needed.enough:
        return f"{rate}, probably settled by {count(rounded(needed.enough))} {kind}"
    ends = f"{count(rounded(needed.few))} to {count(rounded(needed.enough))}"
    return f"{rate}, probably settled by {ends} {kind}"


def _notes(assessment: Assessment) -> Iterator[str]:
    yield from assessment.table.notes
    yield from _favourable(assessment)
    yield from _sampling(assessment)
    yield from _short_of_labels(assessment)
    yield from _calibration(assessment)
    yield from _contradicted(assessment)
    yield from _stressed(assessment)
    yield from _by_noise(assessment)
    left: dict[str, list[str]] = {}
    for gap in assessment.gaps:
        left.setdefault(gap.attribute, []).extend(gap.left_out)
    for attribute, names in left.items():
        if names:
            listed = ", ".join(dict.fromkeys(names))
            yield f"{attribute}: left out of one gap or more for too few rows: {listed}."
    tested = sum(gap.verdict != UNKNOWN for gap in assessment.gaps)
    rows_alone = bool(assessment.labels) or assessment.of_decisions
    if tested == 1 and rows_alone:
        return
    if tested and rows_alone and assessment.options.interval == FREQUENTIST:
        yield (
            f"{tested} gaps were examined. Verdicts are given so rarely that in at most one audit "
            "of twenty any of them is wrong."
        )
    elif tested:
        yield (
            f"{tested} gaps were examined at 95 %: {tested * 0.05:.1f} of that many would be "
            "misjudged on average if every verdict were as uncertain as is allowed."
        )


def _contradicted(assessment: Assessment) -> Iterator[str]:
    """Yield where labels say that scores are not calibrated alike in all groups."""
    for gap in assessment.gaps:
        value, lower, upper = gap.supposed
        if lower > gap.upper or upper < gap.lower:
            yield (
                f"{gap.attribute}: if scores were calibrated alike, the gap in "
                f"{RATE_NAMES[gap.metric]} would be {number(value)} ({interval(lower, upper)}); "
                f"the labels say otherwise ({interval(gap.lower, gap.upper)}), so they are not."
            )


def _stressed(assessment: Assessment) -> Iterator[str]:
    """Yield what would follow from scores alone, and with which wrong scores it would not."""
    epsilon = assessment.options.epsilon
    for each in assessment.stresses:
        size = f"under {epsilon:g}" if each.follows == SMALL else f"over {epsilon:g}"
        ends = [
            f"the scores of {group} {_as_much(factor)}"
            for factor, group in ((each.less, each.weakest), (each.more, each.strongest))
            if group
        ]
        holds = (
            f"That no longer follows if {' or '.join(ends)}"
            if ends
            else "That follows however much or little they say"
        )
        yield (
            f"{each.attribute}: if scores are calibrated alike, the gap in "
            f"{RATE_NAMES[each.metric]} is {size}. {holds}."
        )


def _as_much(factor: float) -> str:
    """Return what scores say whose slope is so many times what it seems."""
    if factor <= 0:
        return "say the opposite" if factor else "say nothing"
    return f"say {factor:g} times as much as it seems"


def _by_noise(assessment: Assessment) -> Iterator[str]:
    """Yield how large an attribute's open gaps would be by what is not known of its groups."""
    for attribute in assessment.table.groups:
        mine = [gap for gap in assessment.gaps if gap.attribute == attribute]
        open_ = [gap for gap in mine if gap.verdict == OPEN and not gap.signed]
        if open_:
            sizes = ", ".join(f"{number(gap.alike)} in {RATE_NAMES[gap.metric]}" for gap in open_)
            yield (
                f"{attribute}: the largest gap among more than two groups is never 0; if every "
                f"group had the same estimate it would be {sizes}, from what is not known alone."
            )


def _short_of_labels(assessment: Assessment) -> Iterator[str]:
    """Yield the groups of too few labels for anything about them to be called fine."""
    labels = {each.key: each.labels for each in assessment.sizes}
    for attribute in assessment.table.groups:
        found = [gap for gap in assessment.gaps if gap.attribute == attribute]
        names = dict.fromkeys(name for gap in found for name in gap.short_of_labels)
        if names and assessment.labels:
            listed = ", ".join(f"{name} ({count(labels[attribute, name])})" for name in names)
            yield (
                f"{attribute}: under {FEWEST_LABELS} labels in {listed}; no gap is called small "
                "before every group has as many."
            )


def _sampling(assessment: Assessment) -> Iterator[str]:
    sampling = assessment.table.sampling
    if sampling is None:
        return
    yield from sampling.notes
    missing = sampling.unlabelled(assessment.table.known)
    if missing and assessment.labels:
        yield (
            f"No row of {', '.join(missing)} has a label yet: metrics of scores leave these rows "
            "out, and other figures infer them from other groups."
        )
    if assessment.needed:
        yield (
            "Numbers of further labels are for rows chosen at random from all; chosen by group, "
            "fewer may do."
        )


def _favourable(assessment: Assessment) -> Iterator[str]:
    options, names = assessment.options, assessment.table.labels
    if not options.favourable:
        return
    positive = spelled(options.favourable) == names[1]
    kind, rate = ("false negatives", "true positive rate") if positive else (
        "false positives", "false positive rate"
    )  # fmt: skip
    yield (
        f"'{spelled(options.favourable)}' is favourable: errors against a person are {kind}, and "
        f"the gap in {rate} is the one to look at."
    )


def _calibration(assessment: Assessment) -> Iterator[str]:
    found = least_alike(assessment.calibrations)
    beside = " Do not use the figures “if calibrated alike”." * (assessment.assumed is not None)
    for attribute in dict.fromkeys(each.attribute for each in found):
        mine = [each for each in found if each.attribute == attribute]
        groups = " and ".join(each.group for each in mine)
        yield (
            f"{attribute}: scores are not calibrated alike in all groups; the labels of {groups} "
            f"fit least how those of the others are (probability {probability(mine[0].fit)})."
            f"{beside}"
        )
    for each in assessment.calibrations:
        if each.attribute in assessment.options.group and each.lower * each.upper > 0:
            side, size = ("high", each.excess) if each.excess > 0 else ("low", -each.excess)
            ends = sorted((abs(each.lower), abs(each.upper)))
            if not np.isnan(size) and size >= 0.01:
                yield (
                    f"{each.attribute}: scores of {each.group} are too {side} by {number(size)} "
                    f"on average ({interval(ends[0], ends[1])})."
                )


def verdict_text(gap: Gap) -> str:
    """Return a verdict for a table."""
    if gap.verdict == UNKNOWN:
        return gap.verdict
    if gap.assumed:
        return f"{gap.verdict} if scores are right" if gap.verdict != OPEN else OPEN
    return gap.verdict
