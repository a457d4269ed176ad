"""Counts of a pool without any label: scores taken as the probabilities they claim to be."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fairbench.inference.few_labels.pool import draw_positives
from fairbench.inference.few_labels.table import PartlyLabelled

Floats = NDArray[np.float64]


def plug_in(table: PartlyLabelled) -> Floats:
    """Return expected counts (G, 4) TN, FP, FN, TP; known labels are ignored.

    Scores that are uncalibrated, let alone of the other class, are not noticed.
    """
    mean, _, size = _moments(table)
    return _counts(mean, size)


def plug_in_draws(
    table: PartlyLabelled, generator: np.random.Generator, *, draws: int = 2048
) -> Floats:
    """Draw counts (T, G, 4) as labels scatter around scores that are true probabilities."""
    mean, variance, size = _moments(table)
    shape = (draws, mean.size)
    positives = draw_positives(
        np.broadcast_to(mean.ravel(), shape),
        np.broadcast_to(variance.ravel(), shape),
        size.ravel(),
        generator,
    )
    return _counts(positives.reshape(draws, *mean.shape), size)


def _moments(table: PartlyLabelled) -> tuple[Floats, Floats, Floats]:
    """Return sums of p and p (1 - p), and rows, per group and prediction (G, 2)."""
    cell = table.group * 2 + table.prediction
    spread = table.score * (1 - table.score)
    mean, variance = np.zeros((2, 2 * table.n_groups))
    np.add.at(mean, cell, table.score)
    np.add.at(variance, cell, spread)
    return mean.reshape(-1, 2), variance.reshape(-1, 2), table.sizes().astype(np.float64)


def _counts(positives: Floats, size: Floats) -> Floats:
    return np.concatenate([size - positives, positives], axis=-1)
