"""How rows were chosen for labelling, where some groups were labelled more often than others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class GroupSampling:
    """Groups were labelled at rates that depended on results; rows within a group, at random.

    Estimates within one such group need no correction. Estimates over several groups have to weight
    each group by its share of rows rather than by its share of labels: post-stratification.

    Attributes
    ----------
    by : the attribute, or combination of attributes, whose groups were chosen among.
    arms : (n,) categorical, the group of every row.
    notes : what a reader of the figures should know about how labels came about.
    anytime_valid : whether intervals have to hold whenever labelling stops, as they must if the
        labels so far may have decided when to stop.
    """

    by: str
    arms: pd.Series
    notes: tuple[str, ...] = ()
    anytime_valid: bool = False

    @property
    def stopping(self) -> str:
        """When labelling may stop for the figures to hold, as a sentence."""
        if self.anytime_valid:
            return (
                "Intervals hold whenever one stops labelling, even because of what labels said. "
                "They are at least half as wide again as those of a number of labels that was said "
                "before the first one (stop=300)."
            )
        return "The number of labels was said before the first one; intervals are those of it."

    @property
    def codes(self) -> NDArray[np.int64]:
        """The position of every row's group."""
        codes: NDArray[np.int64] = self.arms.cat.codes.to_numpy(np.int64)
        return codes

    def unlabelled(self, known: NDArray[np.int64]) -> list[str]:
        """Return the groups that have none of the rows `known`."""
        labels = np.bincount(self.codes[known], minlength=len(self.arms.cat.categories))
        return [str(name) for name in self.arms.cat.categories[labels == 0]]
