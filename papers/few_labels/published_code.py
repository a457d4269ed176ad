"""What the published script makes of calibration draws for true positive rates, faults included.

It evaluates the calibration map with the intercept in place of the second slope's logarithm, and
on scores that are not clipped, though they were clipped for fitting.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fairbench.inference.few_labels.bayesian_calibration import bayesian_calibrations
from fairbench.inference.few_labels.table import PartlyLabelled
from fairbench.metrics.rates import true_positive_rate
from papers.few_labels.pools import Rows, shares

Floats = NDArray[np.float64]
_DRAWS, _LARGEST_LOG_ODDS, _LOWEST_LOG_ODDS = 256, 15.0, -700.0


def faulty_estimates(
    table: PartlyLabelled, subsets: list[Rows], generator: np.random.Generator
) -> Floats:
    """Return the posterior mean of the difference of true positive rates per subset, (R,)."""
    posteriors = bayesian_calibrations(table, subsets, generator, draws=_DRAWS)
    pairs = zip(subsets, posteriors, strict=True)
    return np.array([_estimate(table, rows, posterior.theta) for rows, posterior in pairs])


def _estimate(table: PartlyLabelled, rows: Rows, theta: Floats) -> float:
    counts = np.zeros((len(theta), table.n_groups, 4))
    known = np.isin(np.arange(len(table.score)), rows)
    for group in range(table.n_groups):
        for prediction in (0, 1):
            cell = ~known & (table.group == group) & (table.prediction == prediction)
            positives = _faulty(table.score[cell], theta[:, group]).sum(axis=1)
            counts[:, group, 2 + prediction] = positives
            counts[:, group, prediction] = cell.sum() - positives
    rates = true_positive_rate(counts + table.counts(rows))
    return float((rates[:, 1:] @ shares(table) - rates[:, 0]).mean())


def _faulty(score: Floats, theta: Floats) -> Floats:
    """Return the probabilities (T, n) that the script gives scores (n,)."""
    a, _, c = theta.T[..., None]
    with np.errstate(divide="ignore", over="ignore"):
        odds = c + np.exp(a) * np.log(score) - np.exp(np.minimum(c, 10)) * np.log1p(-score)
    p: Floats = 1 / (1 + np.exp(-np.clip(odds, _LOWEST_LOG_ODDS, _LARGEST_LOG_ODDS)))
    return p
