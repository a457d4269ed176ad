"""A pool of predictions of which some, all or none have a label, and its confusion counts.

The rows are a :class:`PartlyLabelled`. Counts follow from scores taken at their word
(:func:`plug_in`), from calibrated ones (:func:`bayesian_calibration`, Ji et al. 2020), or from many
random completions of the missing labels (:func:`complete`).
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.linalg import eigh_tridiagonal
from scipy.special import logit

from fairbench.core.arrays import Codes, Floats, Rows, rng
from fairbench.inference.few_labels import calibration
from fairbench.inference.posterior import posterior_draws
from fairbench.metrics.registry import binary_confusion


@dataclass(frozen=True)
class PartlyLabelled:
    """A pool of rows with scores, decisions and groups; labels where they are known.

    Attributes
    ----------
    score : (n,) probability of label 1 that the classifier gave, in [0, 1].
    prediction : (n,) its decision, 0 or 1.
    group : (n,) codes into `groups`, whose first entry is the reference of every difference.
    label : (n,) 0 or 1, NaN where it is unknown.
    """

    score: Floats
    prediction: Codes
    group: Codes
    label: Floats
    groups: tuple[Hashable, ...]

    @property
    def n_groups(self) -> int:
        """Return the number of groups."""
        return len(self.groups)

    @property
    def labelled(self) -> Codes:
        """Return the positions of the rows with a label."""
        return np.flatnonzero(~np.isnan(self.label))

    def counts(self, rows: Codes | None = None) -> Codes:
        """Return the (G, 4) counts TN, FP, FN, TP of labelled rows, or of those among `rows`."""
        rows = self.labelled if rows is None else rows
        return binary_confusion(
            self.label[rows], self.prediction[rows], self.group[rows], n_groups=self.n_groups
        )

    def sizes(self) -> Codes:
        """Return the (G, 2) numbers of rows per group and prediction, labelled or not."""
        cell = self.group * 2 + self.prediction
        return np.bincount(cell, minlength=2 * self.n_groups).reshape(-1, 2).astype(np.int64)

    def showing(self, rows: Codes) -> PartlyLabelled:
        """Return the pool with the labels of `rows` alone; all other rows have none."""
        label = np.full(len(self.label), np.nan)
        label[rows] = self.label[rows]
        return PartlyLabelled(self.score, self.prediction, self.group, label, self.groups)


# Expected confusion counts of unlabelled rows, given how their scores are calibrated.


def _gauss_rule(values: Floats, nodes: int) -> tuple[Floats, Floats]:
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


def _points(score: Floats, kind: Codes, kinds: Codes, nodes: int) -> tuple[Floats, Floats, Codes]:
    """Return scores that stand for the rows (n,) of each kind, with their weights and kinds."""
    log_odds = logit(np.clip(score, calibration.CLIP, 1 - calibration.CLIP))
    rules = [_gauss_rule(log_odds[kind == one], nodes) for one in kinds]
    points, weights = (np.concatenate(part) for part in zip(*rules, strict=True))
    return calibration.sigmoid(points), weights, np.repeat(kinds, [len(p) for p, _ in rules])


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
    def of(cls, table: PartlyLabelled, model: calibration.Calibration, nodes: int = NODES) -> Pool:
        """Replace the rows of every cell by at most `nodes` points of its log odds."""
        cells = np.arange(2 * table.n_groups)
        points, weights, cell = _points(
            table.score, table.group * 2 + table.prediction, cells, nodes
        )
        design = model.design(points, cell // 2, table.n_groups)
        spread = weights[:, None] * (cell[:, None] == cells)
        return cls(design, spread, table.sizes().ravel().astype(np.float64))

    def unlabelled(
        self, coefficients: Floats, labels: calibration.ShownLabels, cell: Codes
    ) -> tuple[Floats, Floats, Floats]:
        """Return mean and variance of the number of positives among rows without a label.

        All rows' sums, less those of the labelled ones.

        Parameters
        ----------
        coefficients : (T, G D) calibration maps.
        labels : the labelled rows, or points that stand for them.
        cell : (L,) their cells.

        Returns
        -------
        mean, variance : (T, C) sums of p and of p (1 - p).
        size : (C,) rows summed over.
        """
        labelled = (cell[:, None] == np.arange(len(self.sizes))).astype(np.float64)
        if labels.weight is not None:
            labelled *= labels.weight[:, None]
        size = np.rint(self.sizes - labelled.sum(axis=0))
        design = np.hstack([self.design, labels.design])
        weights = np.vstack([self.weights, -labelled])
        mean, variance = np.empty((2, len(coefficients), len(size)))
        for block in calibration.blocks(len(coefficients), len(weights)):
            p = calibration.sigmoid(coefficients[block] @ design)
            mean[block] = p @ weights
            p -= p * p
            variance[block] = p @ weights
        return np.clip(mean, 0, size), np.maximum(variance, 0), size


def _shown_labels(
    table: PartlyLabelled, rows: Rows, model: calibration.Calibration, nodes: int | None = None
) -> tuple[calibration.ShownLabels, Codes]:
    """Return what the labels of some rows say, and their cells of group and prediction (L,).

    Parameters
    ----------
    nodes : points that stand for the rows of one cell and label, if it has more; None keeps every
        row. With as many as a pool has, the likelihood of maps whose slopes are under 3 is off by
        less than 0.01.
    """
    score, label = table.score[rows], table.label[rows]
    cell = table.group[rows] * 2 + table.prediction[rows]
    if nodes is None or not len(rows):
        return calibration.ShownLabels(model.design(score, cell // 2, table.n_groups), label), cell
    kind = cell * 2 + label.astype(np.int64)
    points, weights, kind = _points(score, kind, np.unique(kind), nodes)
    design = model.design(points, kind // 4, table.n_groups)
    return calibration.ShownLabels(design, (kind % 2).astype(np.float64), weights), kind // 2


def _draw_positives(
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
    return np.clip(positives, 0, size)


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
    means, variances = (np.broadcast_to(moment.ravel(), shape) for moment in (mean, variance))
    positives = _draw_positives(means, variances, size.ravel(), generator)
    return _counts(positives.reshape(draws, *mean.shape), size)


def _moments(table: PartlyLabelled) -> tuple[Floats, Floats, Floats]:
    """Return sums of p and p (1 - p), and rows, per group and prediction (G, 2)."""
    cell = table.group * 2 + table.prediction
    spread = table.score * (1 - table.score)
    mean, variance = np.zeros((2, 2 * table.n_groups))
    np.add.at(mean, cell, table.score)
    np.add.at(variance, cell, spread)
    return mean.reshape(-1, 2), variance.reshape(-1, 2), table.sizes().astype(np.float64)


def _counts(positives: NDArray[Any], size: NDArray[Any]) -> NDArray[Any]:
    return np.concatenate([size - positives, positives], axis=-1)


# The posterior of confusion counts under hierarchical calibration of scores (Ji et al. 2020).


@dataclass(frozen=True)
class CalibrationPosterior:
    """Equally weighted draws of the pool's counts.

    Attributes
    ----------
    family : what posteriors of this pool share.
    rows : the positions of the rows whose labels are shown.
    counts : (T, G, 4) TN, FP, FN, TP of the whole pool; with pool noise what they may turn out to
        be, without it what is expected of each calibration map.
    parameters : the calibration parameters behind them, and how well they were drawn.
    """

    family: PosteriorFamily
    rows: Rows
    counts: Floats
    parameters: calibration.Sample

    @property
    def theta(self) -> Floats:
        """Return the parameters as (T, G, D)."""
        return self.parameters.theta.reshape(len(self.counts), self.family.table.n_groups, -1)

    def with_slopes(self, factors: Floats, seed: int) -> Floats:
        """Return the draws of counts if each group's slopes are multiplied by a factor (G,)."""
        coefficients = self.family.proposal.model.coefficients(self.theta)
        coefficients[..., :-1] *= factors[:, None]
        flat = coefficients.reshape(len(coefficients), -1)
        shown = self.family.shown(self.rows)
        return self.family.counts(self.rows, shown, flat, rng(seed, "other slopes"))


def bayesian_calibration(
    table: PartlyLabelled,
    generator: np.random.Generator,
    *,
    model: calibration.Calibration = calibration.BETA,
    draws: int = 2048,
    pool_noise: bool = True,
) -> CalibrationPosterior:
    """Return the posterior of the pool's counts given the labels there are, none included.

    Parameters
    ----------
    draws : a power of two.
    pool_noise : whether unlabelled labels scatter around their calibrated probability. False is
        the paper's posterior, which is too narrow for the pool's own metrics.
    """
    family = PosteriorFamily.of(table, generator, model=model, draws=draws, pool_noise=pool_noise)
    return family.posterior(table.labelled, generator)


@dataclass(frozen=True)
class PosteriorFamily:
    """What the posteriors of one table share; only labels of rows that are shown are read.

    Attributes
    ----------
    table : the rows.
    pool : the points that stand for them.
    proposal : the proposal distribution of the calibration parameters.
    pool_noise : whether unlabelled labels scatter around their calibrated probability.
    label_nodes : points that stand for the labelled rows of one cell and label; None keeps all.
    """

    table: PartlyLabelled
    pool: Pool
    proposal: calibration.Proposal
    pool_noise: bool
    label_nodes: int | None = None

    @classmethod
    def of(
        cls,
        table: PartlyLabelled,
        generator: np.random.Generator,
        *,
        model: calibration.Calibration = calibration.BETA,
        draws: int = 2048,
        pool_noise: bool = True,
        label_nodes: int | None = None,
    ) -> PosteriorFamily:
        """Compute what no label changes.

        Parameters
        ----------
        draws : a power of two.
        label_nodes : as in :func:`_shown_labels`: from a few hundred labels on it takes a fraction
            of the time.
        """
        pool = Pool.of(table, model)
        proposal = calibration.Proposal.of(model, table.n_groups, draws, generator)
        return cls(table, pool, proposal, pool_noise, label_nodes)

    def posterior(self, rows: Rows, generator: np.random.Generator) -> CalibrationPosterior:
        """Return the posterior given the labels of `rows` alone."""
        shown = self.shown(rows)
        drawn = calibration.sample(self.proposal, shown[0], generator)
        coefficients = self.proposal.model.flat_coefficients(drawn.theta)
        counts = self.counts(rows, shown, coefficients, generator)
        return CalibrationPosterior(self, rows, counts, drawn)

    def shown(self, rows: Rows) -> tuple[calibration.ShownLabels, Codes]:
        """Return what the labels of some rows say, and their cells."""
        return _shown_labels(self.table, rows, self.proposal.model, self.label_nodes)

    def counts(
        self,
        rows: Rows,
        shown: tuple[calibration.ShownLabels, Codes],
        coefficients: Floats,
        generator: np.random.Generator,
    ) -> Floats:
        """Return the pool's counts (T, G, 4) if calibration has these coefficients (T, G D).

        Parameters
        ----------
        rows : the positions of the rows whose labels are known, and are counted as they are.
        shown : what these labels say.
        coefficients : (T, G D) slopes and intercepts.
        generator : draws.
        """
        positives, variance, size = self.pool.unlabelled(coefficients, *shown)
        if self.pool_noise:
            positives = _draw_positives(positives, variance, size, generator)
        by_prediction = (len(positives), self.table.n_groups, 2)
        of_unlabelled = _counts(
            positives.reshape(by_prediction), np.broadcast_to(size.reshape(-1, 2), by_prediction)
        )
        return of_unlabelled + self.table.counts(rows)


# Missing labels, filled in by many random draws so that intervals show how little is known.

DRAWS = 2048
# The cost of calibration grows with labels x groups; with more labels, those of the same group and
# decision say nearly as much.
MOST_CALIBRATED, MOST_BY_GROUP = 1000, 10_000
_LARGE_POOL = 50_000


def complete(
    table: PartlyLabelled,
    generator: np.random.Generator,
    *,
    has_score: bool,
    model: calibration.Calibration = calibration.BETA,
) -> tuple[Floats, CalibrationPosterior | None]:
    """Return the counts of all rows, by the method that suits the number of labels.

    Parameters
    ----------
    table : the rows, some of them labelled.
    generator : draws.
    has_score : whether there are scores.
    model : the calibration model that is used where there are few labels; the papers' by default.

    Returns
    -------
    counts : (T, G, 4) draws of TN, FP, FN, TP of all rows; T is 1 where they are known.
    calibrated : the posterior they are of, where few labels and the scores, calibrated, give them.
    """
    rows = table.labelled
    labelled_counts = table.counts().astype(np.float64)
    if len(rows) == len(table.score):
        return labelled_counts[None], None
    if not len(rows):  # scores are taken for true probabilities
        return plug_in_draws(table, generator, draws=DRAWS), None
    few = len(rows) <= MOST_CALIBRATED and len(rows) * table.n_groups <= MOST_BY_GROUP
    if not (has_score and few):
        sizes = table.sizes().astype(np.float64)
        return _draw_stratified(labelled_counts, sizes, generator), None
    if len(table.score) > _LARGE_POOL:
        # Of a pool's scores a quadrature is made; it is a hundred times faster over fewer.
        table = replace(table, score=np.round(table.score, 4))
    posterior = bayesian_calibration(table, generator, model=model, draws=DRAWS)
    return posterior.counts, posterior


def _draw_stratified(labelled: Floats, size: Floats, generator: np.random.Generator) -> Floats:
    """Draw counts: the share of label 1 in every group and decision has a Beta posterior.

    Its prior weighs two labels, divided as those of everyone with that decision: many groups of
    few labels would else look further apart than they are.

    Parameters
    ----------
    labelled : (G, 4) counts of labelled rows.
    size : (G, 2) all rows by group and decision.
    """
    negative, positive = labelled[:, :2], labelled[:, 2:]
    centre = (positive + 0.5).sum(axis=0) / (positive + negative + 1).sum(axis=0)
    shape = (DRAWS, *size.shape)
    share = generator.beta(positive + 2 * centre, negative + 2 * (1 - centre), shape)
    unknown = np.rint(size - negative - positive).astype(np.int64)
    positives = generator.binomial(unknown, share)
    return _counts(positives, unknown) + labelled


def union(cells: pd.Series, labels: pd.Series) -> Floats:
    """Return whether each of G cells belongs to each of A groups, (A, G) of 0 and 1."""
    members = np.zeros((len(labels.cat.categories), len(cells.cat.categories)))
    members[labels.cat.codes, cells.cat.codes] = 1
    return members


def population_draws(
    counts: Floats, union: Floats, draws: int, generator: np.random.Generator
) -> Floats:
    """Draw cell probabilities (T, A, 4) of the population that rows with these counts come from.

    Parameters
    ----------
    counts : (T, G, 4) draws of counts, each followed by one draw of its own posterior; or
        (1, G, 4) known ones, followed by `draws`.
    """
    merged = np.einsum("ag,tgc->tac", union, counts)
    if len(merged) == 1:
        return posterior_draws(merged[0], draws, generator)
    return posterior_draws(merged, 1, generator)[0]
