"""What can and what cannot be concluded of a multi-class classifier, in sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from fairbench.audits.conclusions import Conclusions
from fairbench.audits.multiclass_assessment import (
    AccuracyGap,
    MulticlassAssessment,
    Part,
    RankedEstimate,
)
from fairbench.core.formats import count, interval, number, probability

CERTAIN = 0.95
_MOST_NAMED = 5


def conclude_multiclass(assessment: MulticlassAssessment) -> Conclusions:
    """Return the conclusions of an assessment."""
    can: list[str] = []
    cannot: list[str] = []
    if assessment.labels:
        can += [_everyone(assessment)]
    for kind, parts in (("class", assessment.classes), *assessment.groups.items()):
        for quality, extreme in _qualities(parts):
            settled, sentence = _extreme(kind, quality, parts, extreme)
            (can if settled else cannot).append(sentence)
    for gap in assessment.gaps:
        settled, sentence = _about_gap(gap, assessment.options.epsilon)
        (can if settled else cannot).append(sentence)
    return Conclusions(
        _warning(assessment), list(_basis(assessment)), can, cannot, list(_notes(assessment))
    )


def _warning(assessment: MulticlassAssessment) -> str:
    if assessment.labels:
        return ""
    return "There are no labels: everything here is what was assumed before any was seen."


def _basis(assessment: MulticlassAssessment) -> Iterator[str]:
    scores = assessment.table.scores
    rows, labels = len(scores), assessment.labels
    yield (
        f"{count(rows)} rows, {count(labels)} of them with a label ({labels / rows:.2%}), "
        f"{count(len(scores.classes))} classes."
    )
    yield (
        "A class is that which was predicted: its accuracy is the share of right ones among the "
        "rows predicted so, its expected calibration error (ECE) how far scores of such rows are "
        "from that share, over ten bins."
    )
    if labels < rows:
        yield (
            "This assumes that rows were chosen for labelling at random among all; by class, at "
            "random among the rows predicted as each class is enough."
        )


def _everyone(assessment: MulticlassAssessment) -> str:
    accuracy, error = assessment.everyone.accuracy, assessment.everyone.calibration
    return (
        f"Accuracy {number(accuracy.value)} ({interval(accuracy.lower, accuracy.upper)}), ECE "
        f"{number(error.value)} ({interval(error.lower, error.upper)})."
    )


def _qualities(parts: Sequence[Part]) -> Iterator[tuple[str, Callable[[Part], RankedEstimate]]]:
    yield "least accurate", lambda part: part.accuracy
    yield "least calibrated", lambda part: part.calibration
    if parts[0].cost is not None:
        yield "most costly", _cost


def _cost(part: Part) -> RankedEstimate:
    assert part.cost is not None
    return part.cost


def _extreme(
    kind: str, quality: str, parts: Sequence[Part], of: Callable[[Part], RankedEstimate]
) -> tuple[bool, str]:
    """Say which part is the extreme one, or among which it is with a probability of 95 %."""
    first = np.array([of(part).extreme for part in parts])
    order = np.argsort(-first, kind="stable")
    size = 1 + int(np.searchsorted(np.cumsum(first[order]), CERTAIN))
    named = [parts[g] for g in order[: min(size, _MOST_NAMED)]]
    if size == 1:
        estimate = of(named[0])
        shown = f"{number(estimate.value)}, {interval(estimate.lower, estimate.upper)}"
        return True, f"The {quality} {kind} is {named[0].name} ({shown})."
    listed = ", ".join(f"{part.name} ({probability(of(part).extreme)})" for part in named)
    others = f" or one of {count(size - len(named))} more" if size > len(named) else ""
    return False, f"Which {kind} is the {quality}: probably {listed}{others}."


def _about_gap(gap: AccuracyGap, epsilon: float) -> tuple[bool, str]:
    shown = f"{number(gap.value)}, {interval(gap.lower, gap.upper)}"
    if gap.small > CERTAIN:
        return True, f"{gap.attribute}: no two groups differ by {epsilon:g} or more in accuracy."
    if gap.small < 1 - CERTAIN:
        return True, f"{gap.attribute}: groups differ by {epsilon:g} or more in accuracy ({shown})."
    open_question = f"whether groups differ by {epsilon:g} or more in accuracy"
    return False, f"{gap.attribute}: {open_question} ({shown}; P(less) {probability(gap.small)})."


def _notes(assessment: MulticlassAssessment) -> Iterator[str]:
    yield from assessment.table.notes
    bare = [part.name for part in assessment.classes if not part.labels]
    if bare and assessment.labels:
        listed = ", ".join(bare[:_MOST_NAMED]) + (", ..." if len(bare) > _MOST_NAMED else "")
        yield f"{count(len(bare))} predicted classes have no label at all: {listed}."
    left = len(assessment.table.scores.classes) - len(assessment.classes)
    if left:
        yield f"{count(left)} classes were never predicted and are left out."
    kind = {"uniform": "knows nothing", "scores": "takes the scores at their word"}
    strength = f"{assessment.options.strength:g}"
    yield f"The prior of an accuracy {kind[assessment.options.prior]}, worth {strength} labels."
