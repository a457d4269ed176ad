"""Verdicts on statements and on claims made of several: holds, fails or not resolved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from fairbench.comparison.atlas.claim_values import Claim, ClaimPart, deciding
from fairbench.comparison.atlas.values import AtlasValues
from fairbench.core.arrays import Floats
from fairbench.inference.comparing.family_means import family_means, mean_over_families
from fairbench.inference.comparing.multilevel import FEWEST_FAMILIES
from fairbench.metrics.registry import find

Judge = Callable[[float, float, float], str]
HOLDS, FAILS, OPEN = "holds", "fails", "not resolved"
FEW_TASKS = (
    "Differences on fewer than half of the tasks are shown, marked “few tasks”, and decide nothing."
)


def counted(count: int, one: str, several: str) -> str:
    """Return a count with the word for one thing, or for several.

    Examples
    --------
    >>> counted(1, "is", "are"), counted(2, "is", "are")
    ('1 is', '2 are')
    """
    return f"{count} {one if count == 1 else several}"


class StatementVerdict(Protocol):
    """A statement with its verdict among others, and by itself."""

    @property
    def verdict(self) -> str:
        """By an interval that holds with all others at once."""
        ...

    @property
    def alone(self) -> str:
        """By its own interval."""
        ...


@dataclass(frozen=True)
class TwoVerdicts:
    """A verdict among others, and by itself."""

    verdict: str
    alone: str


def larger(lower: float, upper: float, epsilon: float) -> str:
    """Say whether a difference is above 0 by what may matter, given the ends of its interval.

    It fails where it is surely smaller than `epsilon`.
    """
    if upper < epsilon:
        return FAILS
    return HOLDS if lower > 0 else OPEN


def no_larger(lower: float, upper: float, epsilon: float) -> str:
    """Say whether a difference is at most what does not matter: the opposite of `larger`."""
    return {HOLDS: FAILS, FAILS: HOLDS, OPEN: OPEN}[larger(lower, upper, epsilon)]


def all_hold(parts: Sequence[StatementVerdict]) -> str:
    """Return the verdict on a claim of which every part must hold.

    One part that fails is enough, among so many: it is judged by intervals that hold at once. That
    all hold is said if each does by its own interval, which is wrong no more often than one of them
    (Berger 1982, Technometrics 24).
    """
    if any(part.verdict == FAILS for part in parts):
        return FAILS
    return HOLDS if parts and all(part.alone == HOLDS for part in parts) else OPEN


def any_holds(parts: Sequence[StatementVerdict]) -> str:
    """Return the verdict on a claim of which one part must hold: the mirror image."""
    if any(part.verdict == HOLDS for part in parts):
        return HOLDS
    return FAILS if parts and all(part.alone == FAILS for part in parts) else OPEN


@dataclass(frozen=True, eq=False)
class ClaimSeries:
    """A difference (T, R) that is part of a claim, of a metric, and how it is judged."""

    label: str
    metric: str
    values: Floats
    judge: Judge


def judged(values: AtlasValues, series: Sequence[ClaimSeries]) -> tuple[ClaimPart, ...]:
    """Return the parts of a claim, judged by means over families.

    Intervals of the parts that decide are widened to hold at once (Bonferroni). A part on few tasks
    decides nothing, and one on fewer than three families is left out.
    """
    kept = [one for one in series if np.isfinite(one.values).any()]
    if not kept:
        return ()
    measured = values.measured(np.stack([one.values for one in kept]))
    enough = measured.families >= FEWEST_FAMILIES
    few = measured.known.sum(axis=1) < values.fewest_tasks
    if not enough.any():
        return ()
    count = max(int((enough & ~few).sum()), 1)
    means = family_means(measured)
    own, at_once = (mean_over_families(means, level=1 - 0.05 / k) for k in (1, count))
    verdicts = [_verdicts(kept, *ends) for ends in (at_once[1:], own[1:])]
    parts = []
    for place in np.flatnonzero(enough):
        each, known = kept[place], measured.known[place]
        part = ClaimPart(
            label=each.label,
            metric=each.metric,
            mean=float(own.value[place]),
            lower=float(own.lower[place]),
            upper=float(own.upper[place]),
            all_lower=float(at_once.lower[place]),
            all_upper=float(at_once.upper[place]),
            epsilon=_epsilon(each.metric),
            tasks=int(known.sum()),
            families=int(measured.families[place]),
            positive=int((measured.means[place][known] > 0).sum()),
            verdict=_at_once(verdicts[0][place], verdicts[1][place]),
            alone=verdicts[1][place],
            few_tasks=bool(few[place]),
            of_families=tuple(map(float, means[place][np.isfinite(means[place])])),
        )
        parts.append(part)
    return tuple(parts)


def _verdicts(series: Sequence[ClaimSeries], lower: Floats, upper: Floats) -> list[str]:
    ends = zip(series, lower, upper, strict=True)
    return [each.judge(float(low), float(high), _epsilon(each.metric)) for each, low, high in ends]


def _at_once(verdict: str, alone: str) -> str:
    """Return the verdict of an interval that is widened to hold with others.

    Widened beyond epsilon it may say the opposite of what the narrower one says: that what is
    surely there may matter after all. It then decides nothing.
    """
    return verdict if verdict == alone else OPEN


def claim_of_all(
    *,
    name: str,
    statement: str,
    source: str,
    rule: str,
    parts: tuple[ClaimPart, ...],
    decided_by: Sequence[ClaimPart] | None = None,
    remarks: tuple[str, ...] = (),
) -> Claim:
    """Return a claim of which every part must hold, or every one of those that decide it."""
    kept = deciding(parts if decided_by is None else decided_by)
    return Claim(
        name=name,
        statement=statement,
        source=source,
        rule=rule,
        verdict=all_hold(kept),
        parts=parts,
        remarks=remarks,
    )


def _epsilon(metric: str) -> float:
    declared = find(metric)
    return declared.epsilon if declared is not None and not declared.relative else 0.01
