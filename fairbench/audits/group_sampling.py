"""How rows were chosen for labelling, where some groups were labelled more often than others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class GroupSampling:
    """Groups were labelled at rates that depended on results; rows within a group, at random.

    What holds within such a group needs no care. What crosses groups has to give each its share
    of rows in place of its share of labels: post-stratification.

    Attributes
    ----------
    by : the attribute, or combination of attributes, whose groups were chosen among.
    arms : (n,) categorical, the group of every row.
    notes : what a reader of the figures should know about how labels came about.
    whenever : whether labelling may have been stopped, or goes on, because of what labels said.
    """

    by: str
    arms: pd.Series
    notes: tuple[str, ...] = ()
    whenever: bool = False

    @property
    def stopping(self) -> str:
        """When labelling may stop for the figures to hold, as a sentence."""
        if self.whenever:
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
        """Return the groups of which none of the rows `known` is one."""
        labels = np.bincount(self.codes[known], minlength=len(self.arms.cat.categories))
        return [str(name) for name in self.arms.cat.categories[labels == 0]]
