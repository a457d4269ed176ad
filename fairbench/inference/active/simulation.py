"""Replications of an active assessment: a pool whose labels are known is labelled step by step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from fairbench.inference.active.arms import Integers

Codes = NDArray[np.uint8]


class LabelledArms(Protocol):
    """Arms that take labels."""

    @property
    def unlabelled(self) -> Integers:
        """Return the rows of each arm without a label, (R, A)."""

    def record(self, rows: Integers, arms: Integers, success: Any) -> None:
        """Count one label for each (replication, arm)."""


AnyArms = TypeVar("AnyArms", bound=LabelledArms)


@dataclass(frozen=True, eq=False)
class Queues:
    """The rows of each arm in the order in which they would be labelled, for R replications.

    Attributes
    ----------
    outcome : (R, A, N) what each label turns out to be; anything after an arm's last row.
    sizes : (A,) or (R, A) rows of each arm.
    """

    outcome: Codes
    sizes: Integers

    @staticmethod
    def of(
        outcome: NDArray[Any], arm: Integers, generator: np.random.Generator, *, replications: int
    ) -> Queues:
        """Shuffle a pool: (n,) outcomes, codes from 0, of rows in (n,) arms 0 .. A - 1."""
        sizes = np.bincount(arm)
        queues = np.zeros((replications, len(sizes), sizes.max(initial=0)), np.uint8)
        for g, size in enumerate(sizes):
            members = np.asarray(outcome, np.uint8)[arm == g]
            tiled = np.broadcast_to(members, (replications, size))
            queues[:, g, :size] = generator.permuted(tiled, axis=1)
        return Queues(queues, sizes)

    def label(self, arms: LabelledArms, chosen: Integers) -> None:
        """Give each replication's (R, m) chosen arms, all different, one label; skip -1."""
        rows, places = np.nonzero(chosen >= 0)
        which = chosen[rows, places]
        sizes = np.broadcast_to(self.sizes, arms.unlabelled.shape)
        taken = sizes[rows, which] - arms.unlabelled[rows, which]
        arms.record(rows, which, self.outcome[rows, which, taken].astype(np.int64))


def assess(
    queues: Queues,
    arms: AnyArms,
    choose: Callable[[AnyArms], Integers],
    *,
    observe: Callable[[AnyArms], Any],
    rounds: int,
    every: int = 1,
) -> list[Any]:
    """Label the chosen arms' next rows, round by round, and return what was observed.

    Parameters
    ----------
    arms : changed in place.
    choose : from the arms to the (R, m) arms to label next.
    observe : called before the first label and after every `every`-th round, and after the last.

    Returns
    -------
    What `observe` returned, 1 + ceil(rounds / every) times.
    """
    seen = [observe(arms)]
    for i in range(rounds):
        queues.label(arms, choose(arms))
        if (i + 1) % every == 0 or i + 1 == rounds:
            seen.append(observe(arms))
    return seen
