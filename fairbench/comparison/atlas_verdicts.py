"""Verdicts on statements and on claims made of several: holds, fails or not resolved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fairbench.comparison.atlas_findings import ClaimPart
from fairbench.comparison.atlas_values import AtlasValues
from fairbench.inference.multilevel import FEWEST_FAMILIES, fit
from fairbench.metrics.registry import find

Array = NDArray[np.float64]
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
    values: Array
    judge: Judge


@dataclass(frozen=True, eq=False)
class Sampling:
    """How posteriors are drawn."""

    generator: np.random.Generator
    draws: int = 500


def judged(
    values: AtlasValues, series: Sequence[ClaimSeries], sampling: Sampling
) -> tuple[ClaimPart, ...]:
    """Return the parts of a claim; the intervals of those that decide hold at once.

    A part on few tasks decides nothing, and one on fewer than three families is left out.
    """
    kept = [each for each in series if np.isfinite(each.values).any()]
    if not kept:
        return ()
    measured = values.measured(np.stack([each.values for each in kept]))
    enough = measured.families >= FEWEST_FAMILIES
    few = measured.known.sum(axis=1) < values.fewest_tasks
    if not enough.any():
        return ()
    posterior = fit(measured, generator=sampling.generator, draws=sampling.draws)
    tail = 0.025 / max(int((enough & ~few).sum()), 1)
    lower, upper = posterior.interval(tail)
    own = [*zip(*posterior.interval(), strict=True)]
    new, means = posterior.new_interval(), posterior.estimate()
    parts = []
    for place in np.flatnonzero(enough):
        each, low, high = kept[place], float(lower[place]), float(upper[place])
        epsilon = _epsilon(each.metric)
        known = measured.known[place]
        part = ClaimPart(
            label=each.label,
            metric=each.metric,
            mean=float(means[place]),
            lower=low,
            upper=high,
            new_lower=float(new[0][place]),
            new_upper=float(new[1][place]),
            epsilon=epsilon,
            tasks=int(known.sum()),
            families=int(measured.families[place]),
            positive=int((measured.means[place][known] > 0).sum()),
            verdict=each.judge(low, high, epsilon),
            alone=each.judge(float(own[place][0]), float(own[place][1]), epsilon),
            few_tasks=bool(few[place]),
        )
        parts.append(part)
    return tuple(parts)


def _epsilon(metric: str) -> float:
    declared = find(metric)
    return declared.epsilon if declared is not None and not declared.relative else 0.01
