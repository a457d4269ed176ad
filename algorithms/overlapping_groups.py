"""Groups that overlap: those of each protected attribute, and combinations of several attributes.

A row's protected group is one label, such as ``Female x Black`` where two attributes are protected.
Such a row is in the groups ``Female``, ``Black`` and, where that has rows enough, in both at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

JOINED_BY = " x "
# Positions of attributes, with the label of each.
Group = tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class OverlappingGroups:
    """Groups of one protected attribute or of several; each row is in one or more of them.

    Attributes
    ----------
    attributes : how many attributes a row's label joins.
    groups : each a choice of attributes with a label of each.
    """

    attributes: int
    groups: tuple[Group, ...]

    @classmethod
    def of(cls, sensitive: pd.Series, *, smallest: int) -> OverlappingGroups:
        """Return each attribute's groups, and the combinations of at least `smallest` rows.

        Parameters
        ----------
        sensitive : (n,) protected groups; the name joins those of the attributes.
        """
        attributes = len(str(sensitive.name).split(JOINED_BY))
        counts: Counter[Group] = Counter()
        for label, rows in Counter(sensitive.astype(str)).items():
            for group in _groups_of(label, attributes):
                counts[group] += rows
        enough = (each for each in counts if len(each) == 1 or counts[each] >= smallest)
        return cls(attributes, tuple(sorted(enough, key=lambda each: (len(each), each))))

    def names(self) -> list[str]:
        """Return what each group is called."""
        return [JOINED_BY.join(label for _, label in group) for group in self.groups]

    def members(self, labels: Iterable[str]) -> NDArray[np.bool_]:
        """Say of each label (L,) which of the G groups it is in, (L, G)."""
        own = [set(_groups_of(label, self.attributes)) for label in labels]
        return np.array([[group in each for group in self.groups] for each in own], bool)


def _groups_of(label: str, attributes: int) -> list[Group]:
    """Return all groups that a label's rows are in."""
    parts: Sequence[str] = label.split(JOINED_BY) if attributes > 1 else [label]
    placed = tuple(enumerate(parts))
    return [each for size in range(1, len(placed) + 1) for each in combinations(placed, size)]
