"""Expected confusion counts of unlabelled rows, given how their scores are calibrated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh_tridiagonal
from scipy.special import logit

from fairbench.core.arrays import Floats
from fairbench.inference.few_labels.calibration import CLIP, Calibration, blocks, sigmoid
from fairbench.inference.few_labels.table import PartlyLabelled


def gauss_rule(values: Floats, nodes: int) -> tuple[Floats, Floats]:
    """Return points and weights that integrate polynomials up to degree 2 `nodes` - 1 exactly.

    By the Lanczos process on diag(values), fully reorthogonalised (Golub, Meurant 2010, ch. 4).
    Values with few distinct ones need fewer points; no values need none.

    Parameters
    ----------
    values : (n,) numbers; a sum over f(values) becomes one over weights * f(points).

    Returns
    -------
    points, weights : (k,) with k <= nodes; the weights sum to n.
    """
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) <= nodes:
        return distinct, counts.astype(np.float64)
    diagonal, off_diagonal = _lanczos(distinct, np.sqrt(counts / len(values)), nodes)
    points, vectors = eigh_tridiagonal(diagonal, off_diagonal)
    return points, len(values) * vectors[0] ** 2


def _lanczos(values: Floats, start: Floats, nodes: int) -> tuple[Floats, Floats]:
    """Return the diagonals of the Jacobi matrix of diag(values) and a unit vector."""
    basis = np.zeros((nodes, len(values)))
    basis[0] = start
    diagonal, off_diagonal = np.zeros(nodes), np.zeros(nodes - 1)
    for k in range(nodes):
        following = values * basis[k]
        diagonal[k] = following @ basis[k]
        if k == nodes - 1:
            break
        for _ in range(2):
            following -= basis[: k + 1].T @ (basis[: k + 1] @ following)
        off_diagonal[k] = np.linalg.norm(following)
        if off_diagonal[k] < 1e-10 * np.ptp(values):
            return diagonal[: k + 1], off_diagonal[:k]
        basis[k + 1] = following / off_diagonal[k]
    return diagonal, off_diagonal


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
        self,
        coefficients: Floats,
        design: Floats,
        cell: NDArray[np.int64],
        weight: Floats | None = None,
    ) -> tuple[Floats, Floats, Floats]:
        """Return mean and variance of the number of positives among rows without a label.

        All rows' sums, less those of the labelled ones.

        Parameters
        ----------
        coefficients : (T, G D) calibration maps.
        design : (G D, L) design matrix of the labelled rows.
        cell : (L,) their cells.
        weight : (L,) labelled rows that each column stands for; one each, if left out.

        Returns
        -------
        mean, variance : (T, C) sums of p and of p (1 - p).
        size : (C,) rows summed over.
        """
        labelled = (cell[:, None] == np.arange(len(self.sizes))).astype(np.float64)
        if weight is not None:
            labelled *= weight[:, None]
        size = np.rint(self.sizes - labelled.sum(axis=0))
        design = np.hstack([self.design, design])
        weights = np.vstack([self.weights, -labelled])
        mean, variance = np.empty((2, len(coefficients), len(size)))
        for block in blocks(len(coefficients), len(weights)):
            p = sigmoid(coefficients[block] @ design)
            mean[block] = p @ weights
            p -= p * p
            variance[block] = p @ weights
        return np.clip(mean, 0, size), np.maximum(variance, 0), size


@dataclass(frozen=True)
class ShownLabels:
    """What the likelihood of a calibration needs of the labelled rows.

    Attributes
    ----------
    design : (G D, L) design matrix of the rows, or of points that stand for them.
    label, cell : (L,) their labels, and their cells of group and prediction.
    weight : (L,) rows that each point stands for; None where each is a row.
    """

    design: Floats
    label: Floats
    cell: NDArray[np.int64]
    weight: Floats | None = None

    @classmethod
    def of(
        cls,
        table: PartlyLabelled,
        rows: NDArray[np.int64],
        model: Calibration,
        nodes: int | None = None,
    ) -> ShownLabels:
        """Read the labels of some rows.

        Parameters
        ----------
        nodes : points that stand for the rows of one cell and label, if it has more; None keeps
            every row. With as many as a pool has, the likelihood of maps whose slopes are under 3
            is off by less than 0.01.
        """
        score, label = table.score[rows], table.label[rows]
        cell = table.group[rows] * 2 + table.prediction[rows]
        if nodes is None or not len(rows):
            return cls(model.design(score, cell // 2, table.n_groups), label, cell)
        log_odds = logit(np.clip(score, CLIP, 1 - CLIP))
        kind = cell * 2 + label.astype(np.int64)
        kinds = np.unique(kind)
        rules = [gauss_rule(log_odds[kind == distinct], nodes) for distinct in kinds]
        points, weights = (np.concatenate(part) for part in zip(*rules, strict=True))
        kind = np.repeat(kinds, [len(nodes_of_kind) for nodes_of_kind, _ in rules])
        design = model.design(sigmoid(points), kind // 4, table.n_groups)
        return cls(design, (kind % 2).astype(np.float64), kind // 2, weights)


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
