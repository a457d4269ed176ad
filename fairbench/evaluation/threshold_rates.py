"""Rates of groups, with intervals, at many thresholds of their scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairbench.core.arrays import Floats
from fairbench.inference.gaps import GroupLimits, simultaneous_level
from fairbench.inference.rates import Limits
from fairbench.inference.survey import Design, SurveyCounts
from fairbench.metrics.group_thresholds import counts_at
from fairbench.metrics.rates import Rate, selection_rate

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
        self, rates: Sequence[Rate], codes: Codes, thresholds: Floats, *, level: float = 0.95
    ) -> list[GroupLimits]:
        """Return rates of groups, (K, G) each, at thresholds (K,).

        Parameters
        ----------
        codes : (n,) the groups, each of which has rows.
        """
        if self.design is not None:
            return [self._survey_limits(rate, codes, thresholds, level) for rate in rates]
        decided = counts_at(thresholds, self.label, self.score, codes)
        flipped = decided[..., [1, 0, 3, 2]] if self.below else decided
        counts = [flipped if rate is selection_rate else decided for rate in rates]
        return [
            GroupLimits.of(rate.successes(of_rate), rate.size(of_rate), level=level)
            for rate, of_rate in zip(rates, counts, strict=True)
        ]

    def _survey_limits(
        self, rate: Rate, codes: Codes, thresholds: Floats, level: float
    ) -> GroupLimits:
        """Return one rate of weighted or clustered rows, with its limits, at the thresholds."""
        assert self.design is not None
        flipped = self.below and rate is selection_rate
        label = np.zeros(len(codes)) if self.label is None else self.label
        groups = codes.max() + 1
        surveys = []
        for threshold in thresholds:
            cell = (2 * label + ((self.score > threshold) != flipped)).astype(np.intp)
            surveys.append(SurveyCounts.of(cell, codes, self.design, groups=groups))
        single, together = (
            Limits(*map(np.stack, zip(*(s.limits(rate, level=at) for s in surveys), strict=True)))
            for at in (level, simultaneous_level(level, groups))
        )
        return GroupLimits(
            single, together, np.stack([survey.correlation(rate) for survey in surveys])
        )
