"""What the published script makes of calibration draws for TPR and FPR, faults included.

It evaluates the calibration map with the intercept in place of the second slope's logarithm, and
on scores that are not clipped, though they were clipped for fitting. What it calls FPR is 1 - TPR;
what it calls FNR is the false positive rate, which is read here.
"""

from __future__ import annotations

import numpy as np

from fairbench.components.papers.few_labels.pools import Rows
from fairbench.core.arrays import Floats
from fairbench.inference.few_labels.table import PartlyLabelled

# So few draws are enough for a mean over many runs.
_DRAWS, _LARGEST_LOG_ODDS, _LOWEST_LOG_ODDS = 64, 15.0, -700.0


def faulty_counts(table: PartlyLabelled, rows: Rows, theta: Floats) -> Floats:
    """Return expected counts (64, G, 4) of the pool, from the first of the draws (T, G, 3)."""
    theta = theta[:_DRAWS]
    counts = np.zeros((len(theta), table.n_groups, 4))
    labelled = np.zeros(len(table.score), dtype=bool)
    labelled[rows] = True
    for group in range(table.n_groups):
        for prediction in (0, 1):
            cell = ~labelled & (table.group == group) & (table.prediction == prediction)
            positives = _faulty(table.score[cell], theta[:, group]).sum(axis=1)
            counts[:, group, 2 + prediction] = positives
            counts[:, group, prediction] = cell.sum() - positives
    every: Floats = counts + table.counts(rows)
    return every


def _faulty(score: Floats, theta: Floats) -> Floats:
    """Return the probabilities (T, n) that the script gives scores (n,)."""
    a, _, c = theta.T[..., None]
    with np.errstate(divide="ignore", over="ignore"):
        odds = c + np.exp(a) * np.log(score) - np.exp(np.minimum(c, 10)) * np.log1p(-score)
    p: Floats = 1 / (1 + np.exp(-np.clip(odds, _LOWEST_LOG_ODDS, _LARGEST_LOG_ODDS)))
    return p
