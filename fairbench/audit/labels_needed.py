"""How many more labels would settle the open questions, simulated from what is known so far."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairbench.audit.completion import FURTHER_DRAWS, Completion, population_draws
from fairbench.audit.gaps import OPEN, RATE_OF, Gap, settle
from fairbench.audit.options import Options
from fairbench.core.seeds import rng

Floats = NDArray[np.float64]

LIKELY = 0.8
WORLDS = 40
_MOST_ROWS = 10_000_000


@dataclass(frozen=True, eq=False)
class Needed:
    """How more labels would narrow a gap that is not yet settled.

    Attributes
    ----------
    labels, settled : numbers of further labels, and how often each settled the gap in `WORLDS`
        simulations.
    remaining : how many rows have no label yet; None if all have one, and more rows are needed.
    """

    gap: Gap
    labels: Sequence[int]
    settled: Sequence[float]
    remaining: int | None

    @property
    def enough(self) -> int | None:
        """The smallest number that settles the gap with a probability of 0.8, if one does."""
        pairs = zip(self.labels, self.settled, strict=True)
        return next((n for n, chance in pairs if chance >= LIKELY), None)


def labels_needed(
    completion: Completion, gaps: Sequence[Gap], unions: Mapping[str, Floats], options: Options
) -> list[Needed]:
    """Simulate more labels, in growing numbers, until every open gap is likely settled.

    Parameters
    ----------
    unions : attribute -> (A, G) which cells of the completion make up its groups.
    """
    wanted = [gap for gap in gaps if gap.verdict == OPEN or gap.assumed and gap.compared]
    tried: list[int] = []
    chances = np.empty((0, len(wanted)))
    for labels in _numbers(completion) if wanted else ():
        chance = settled_share(completion, wanted, unions, labels, options)
        tried.append(labels)
        chances = np.vstack([chances, chance])
        if (chances.max(axis=0) >= LIKELY).all():
            break
    return [
        Needed(gap, tried, chances[:, i].tolist(), completion.remaining)
        for i, gap in enumerate(wanted)
    ]


def settled_share(
    completion: Completion,
    gaps: Sequence[Gap],
    unions: Mapping[str, Floats],
    labels: int,
    options: Options,
) -> Floats:
    """Return how often each gap is settled, small or large, once `labels` more are known."""
    generator = rng(options.seed, "labels needed", labels)
    states = (completion.further(labels, generator) for _ in range(WORLDS))
    settled = [is_settled(state, gaps, unions, options.epsilon, generator) for state in states]
    share: Floats = np.mean(settled, axis=0)
    return share


def is_settled(
    state: Completion,
    gaps: Sequence[Gap],
    unions: Mapping[str, Floats],
    epsilon: float,
    generator: np.random.Generator,
) -> list[bool]:
    """Say of each gap whether it is settled in a state of knowledge."""
    draws = {
        name: population_draws(state.counts, unions[name], FURTHER_DRAWS, generator)
        for name in dict.fromkeys(gap.attribute for gap in gaps)
    }
    return [
        settle(RATE_OF[gap.metric](draws[gap.attribute][:, gap.compared]), epsilon).verdict != OPEN
        for gap in gaps
    ]


def _numbers(completion: Completion) -> Iterator[int]:
    """Yield 10, 20, 50, 100, ... from a tenth of the labels there are to all that can be had."""
    most = _MOST_ROWS if completion.remaining is None else completion.remaining
    for power in range(1, 8):
        for step in (1, 2, 5):
            labels = step * 10**power
            if labels >= most:
                yield most
                return
            if 10 * labels >= completion.labels:
                yield labels
