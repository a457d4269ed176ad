"""Rates of groups, with intervals, at many thresholds of their scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairbench.inference.gaps import GroupLimits, simultaneous_level
from fairbench.inference.rates import Limits
from fairbench.inference.survey import Design, SurveyCounts
from fairbench.metrics.group import counts_at
from fairbench.metrics.rates import Rate, selection_rate

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """Rows with scores (n,), labels where all have one, and how they were sampled.

    `below` says that those of scores up to the threshold are selected.
    """

    score: Floats
    label: Floats | None = None
    design: Design | None = None
    below: bool = False

    def take(self, rows: NDArray[np.bool_]) -> ScoredRows:
        """Return some of the rows."""
        label = None if self.label is None else self.label[rows]
        design = None if self.design is None else self.design.take(rows)
        return ScoredRows(self.score[rows], label, design, self.below)

    def limits(
        self, rate: Rate, codes: Codes, thresholds: Floats, *, level: float = 0.95
    ) -> GroupLimits:
        """Return a rate of groups, (K, G), at thresholds (K,).

        Parameters
        ----------
        codes : (n,) the groups, each of which has rows.
        """
        flipped = self.below and rate is selection_rate
        if self.design is None:
            counts = counts_at(thresholds, self.label, self.score, codes)
            counts = counts[..., [1, 0, 3, 2]] if flipped else counts
            return GroupLimits.of(rate.successes(counts), rate.size(counts), level=level)
        label, groups = np.zeros(len(codes)) if self.label is None else self.label, codes.max() + 1
        surveys = []
        for threshold in thresholds:
            cell = (2 * label + ((self.score > threshold) != flipped)).astype(np.intp)
            surveys.append(SurveyCounts.of(cell, codes, self.design, groups=groups))
        single, together = (
            Limits(*map(np.stack, zip(*(s.limits(rate, level=at) for s in surveys), strict=True)))
            for at in (level, simultaneous_level(level, groups))
        )
        return GroupLimits(single, together, np.stack([each.correlation(rate) for each in surveys]))
