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
from fairbench.metrics.rates import FN, FP, TN, TP, Rate, selection_rate

Codes = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """Rows with scores.

    Attributes
    ----------
    score : (n,) the scores.
    label : (n,) the labels; None unless every row has one.
    design : weights and clusters of the rows; None if they are a simple random sample.
    low_is_selected : whether rows with scores up to the threshold are selected, rather than those
        above it. This concerns the selection rate alone: a prediction of label 1 always is a score
        above the threshold.
    """

    score: Floats
    label: Floats | None = None
    design: Design | None = None
    low_is_selected: bool = False

    def subset(self, chosen: NDArray[np.bool_]) -> ScoredRows:
        """Return the rows of a mask."""
        label = None if self.label is None else self.label[chosen]
        design = None if self.design is None else self.design.take(chosen)
        return ScoredRows(self.score[chosen], label, design, self.low_is_selected)

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
        by_prediction = counts_at(thresholds, self.label, self.score, codes)
        by_selection = by_prediction
        if self.low_is_selected:
            by_selection = by_prediction[..., [FP, TN, TP, FN]]  # predictions exchanged
        counts = [by_selection if rate is selection_rate else by_prediction for rate in rates]
        return [
            GroupLimits.of(rate.successes(of_rate), rate.size(of_rate), level=level)
            for rate, of_rate in zip(rates, counts, strict=True)
        ]

    def _survey_limits(
        self, rate: Rate, codes: Codes, thresholds: Floats, level: float
    ) -> GroupLimits:
        """Return one rate of weighted or clustered rows, with its limits, at the thresholds."""
        assert self.design is not None
        flipped = self.low_is_selected and rate is selection_rate
        label = np.zeros(len(codes)) if self.label is None else self.label
        groups = codes.max() + 1
        surveys = []
        for threshold in thresholds:
            cell = (2 * label + ((self.score > threshold) != flipped)).astype(np.intp)
            surveys.append(SurveyCounts.of(cell, codes, self.design, groups=groups))
        pointwise, simultaneous = (
            Limits(*map(np.stack, zip(*(s.limits(rate, level=at) for s in surveys), strict=True)))
            for at in (level, simultaneous_level(level, groups))
        )
        correlations = np.stack([survey.correlation(rate) for survey in surveys])
        return GroupLimits(pointwise, simultaneous, correlations)
