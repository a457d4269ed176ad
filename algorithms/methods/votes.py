"""Counting the votes of a bag's members."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairbench.experiments.contracts import RawOutputs


@dataclass(frozen=True)
class Votes:
    """`ones` of `members` votes for label 1, (n,)."""

    ones: NDArray[np.int64]
    members: int

    @property
    def majority(self) -> NDArray[np.bool_]:
        """The label with more votes; a tie is 0, as a mode's smallest value is."""
        return 2 * self.ones > self.members


def count_votes(raw: RawOutputs) -> Votes:
    """Return the votes of (n, members) probabilities (above 1/2 is a vote) or predictions."""
    members = raw["score"] if "score" in raw else raw["prediction"]
    return Votes((members > 0.5).sum(axis=1), members.shape[1])
