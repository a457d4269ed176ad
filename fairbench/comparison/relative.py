"""Relative rhos: how much more an algorithm's estimates vary than those of a reference learner.

Both are fitted on the same halves of the data and tested on the other halves. The reference is the
RBF support vector machine without intervention, whose own rho is 1/K.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairbench.comparison.half_runs import HalfRuns
from fairbench.comparison.run_predictions import RunPredictions
from fairbench.comparison.runs import Labels
from fairbench.comparison.settings import MEAN
from fairbench.core.errors import UserError
from fairbench.inference.effective_counts import variance_ratio
from fairbench.inference.objectives import objective

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class VarianceRatios:
    """Variances over the reference learner's, of the rates that `objectives` rest on.

    Attributes
    ----------
    per : ``mean`` over rates and groups, or ``group``.
    protect : the attributes whose groups are meant; a run's own if empty.
    """

    half_runs: HalfRuns
    objectives: Sequence[str]
    per: str = MEAN
    protect: tuple[str, ...] = ()

    def __call__(self, run: RunPredictions) -> Array:
        """Return the run's ratio r: a number, or (G, 1) per group."""
        each = self.each(run)
        known = ~np.isnan(each)
        if not known.any():
            raise UserError(
                f"run {run.id}: no half-split gives a variance, of it or of the reference learner; "
                "run both with a larger split.repeats"
            )
        if self.per == MEAN:
            return np.asarray(each[known].mean())
        # A group without a ratio of its own has the mean of all.
        filled = np.where(known.any(axis=0), each, each[known].mean())
        return np.asarray(np.nanmean(filled, axis=0)[:, None])

    def each(self, run: RunPredictions) -> Array:
        """Return the ratio of every rate and group, (R, G); NaN where a half lacks it."""
        own, reference = (
            self._estimates(half_run, run)
            for half_run in (self.half_runs.of(run), self.half_runs.reference_of(run))
        )
        shared = sorted(own.keys() & reference.keys())
        halves = (np.stack([each[j] for j in shared]) for each in (own, reference))
        return variance_ratio(*halves, pooled=False)

    def _estimates(self, half_run: RunPredictions, run: RunPredictions) -> dict[int, Array]:
        """Return the rates of both halves of every halving, j -> (2, R, G)."""
        labels = Labels.of(run, self.protect)
        names = [rate for name in self.objectives for rate in objective(name).rates]
        estimates = {}
        for repeat, folds in half_run.repeats.items():
            counts = np.stack([labels.counts(fold) for fold in folds])
            estimates[repeat] = np.stack([rate(counts) for rate in dict.fromkeys(names)], axis=1)
        return estimates
