"""Expected counts of a pool, given calibration maps: a Gauss rule in place of its rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from fairbench.inference.few_labels.calibration import CLIP, Calibration, blocks, sigmoid
from fairbench.inference.few_labels.gauss_rule import gauss_rule
from fairbench.inference.few_labels.table import PartlyLabelled

Floats = NDArray[np.float64]
NODES = 12
# Cells of fewer rows get binomial numbers of positives, larger ones normal.
_SMALL = 100


@dataclass(frozen=True)
class Pool:
    """All rows of a pool, labelled or not, by (group, prediction): C = 2 G cells.

    Attributes
    ----------
    design : (G D, K) design matrix of the points that stand for the rows.
    weights : (K, C) rows each point stands for, in the column of its cell.
    sizes : (C,) rows of each cell.
    """

    design: Floats
    weights: Floats
    sizes: Floats

    @classmethod
    def of(cls, table: PartlyLabelled, model: Calibration, nodes: int = NODES) -> Pool:
        """Replace the rows of every cell by at most `nodes` points of its log odds."""
        log_odds = logit(np.clip(table.score, CLIP, 1 - CLIP))
        cells = table.group * 2 + table.prediction
        n_cells = 2 * table.n_groups
        rules = [gauss_rule(log_odds[cells == cell], nodes) for cell in range(n_cells)]
        cell = np.repeat(np.arange(n_cells), [len(points) for points, _ in rules])
        points = sigmoid(np.concatenate([points for points, _ in rules]))
        weights = np.concatenate([weights for _, weights in rules])
        design = model.design(points, cell // 2, table.n_groups)
        spread = weights[:, None] * (cell[:, None] == np.arange(n_cells))
        return cls(design, spread, table.sizes().ravel().astype(np.float64))

    def unlabelled(
        self, coefficients: Floats, design: Floats, cell: NDArray[np.int64]
    ) -> tuple[Floats, Floats, Floats]:
        """Return mean and variance of the number of positives among rows without a label.

        All rows' sums, less those of the labelled ones.

        Parameters
        ----------
        coefficients : (T, G D) calibration maps.
        design : (G D, L) design matrix of the labelled rows.
        cell : (L,) their cells.

        Returns
        -------
        mean, variance : (T, C) sums of p and of p (1 - p). size : (C,) rows summed over.
        """
        labelled = (cell[:, None] == np.arange(len(self.sizes))).astype(np.float64)
        size = self.sizes - labelled.sum(axis=0)
        design = np.hstack([self.design, design])
        weights = np.vstack([self.weights, -labelled])
        mean, variance = np.empty((2, len(coefficients), len(size)))
        for block in blocks(len(coefficients), len(weights)):
            p = sigmoid(coefficients[block] @ design)
            mean[block] = p @ weights
            p -= p * p
            variance[block] = p @ weights
        return np.clip(mean, 0, size), np.maximum(variance, 0), size


def draw_positives(
    mean: Floats, variance: Floats, size: Floats, generator: np.random.Generator
) -> Floats:
    """Draw how many of a cell's unlabelled rows have label 1.

    The number is a sum of Bernoulli variables of unequal probabilities; it is drawn as a normal
    of its mean and variance, or, in small cells, as a binomial of its mean and the nearest
    variance that one can have.

    Parameters
    ----------
    mean, variance : (T, C) sums of p and of p (1 - p).
    size : (C,) rows without a label.
    """
    noise = generator.standard_normal(mean.shape)
    positives = mean + np.sqrt(variance) * noise
    for cell in np.flatnonzero((size > 0) & (size < _SMALL)):
        expected, spread = mean[:, cell], variance[:, cell]
        share = np.clip(1 - spread / np.maximum(expected, 1e-300), 1e-12, 1)
        trials = np.clip(np.rint(expected / share), np.ceil(expected), size[cell])
        chance = np.clip(expected / np.maximum(trials, 1), 0, 1)
        positives[:, cell] = generator.binomial(trials.astype(np.int64), chance)
    clipped: Floats = np.clip(positives, 0, size)
    return clipped
