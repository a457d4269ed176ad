"""The posterior of confusion counts under hierarchical calibration of scores (Ji et al. 2020)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairbench.assessment.few_labels.calibration import BETA, Calibration, log_likelihood
from fairbench.assessment.few_labels.elliptical_slice import (
    chain_effective_size,
    elliptical_slice,
)
from fairbench.assessment.few_labels.importance import (
    Proposal,
    propose,
    resampled,
)
from fairbench.assessment.few_labels.pareto import effective_size, pareto_shape
from fairbench.assessment.few_labels.pool import Pool, draw_positives
from fairbench.assessment.few_labels.table import PartlyLabelled

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

_LARGEST_SHAPE, _SMALLEST_SHARE = 0.5, 0.2
_CHAINS, _WARMUP, _THIN = 128, 200, 20


@dataclass(frozen=True)
class CalibrationPosterior:
    """Equally weighted draws of the pool's counts.

    Attributes
    ----------
    counts : (T, G, 4) TN, FP, FN, TP of the whole pool; with pool noise what they may turn out to
        be, without it what is expected of each calibration map.
    theta : (T, G, D) calibration parameters behind them.
    pareto_shape : tail of the importance weights.
    effective_size : how many independent draws these are worth.
    sampler : ``importance``, or, where the shape is above 0.5 or the effective size under a fifth
        of the draws, ``elliptical_slice``.
    """

    counts: Floats
    theta: Floats
    pareto_shape: float
    effective_size: float
    sampler: str


def bayesian_calibration(
    table: PartlyLabelled,
    generator: np.random.Generator,
    *,
    model: Calibration = BETA,
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
    subsets = [table.labelled]
    return next(
        bayesian_calibrations(
            table, subsets, generator, model=model, draws=draws, pool_noise=pool_noise
        )
    )


def bayesian_calibrations(
    table: PartlyLabelled,
    subsets: Iterable[Rows],
    generator: np.random.Generator,
    *,
    model: Calibration = BETA,
    draws: int = 2048,
    pool_noise: bool = True,
) -> Iterator[CalibrationPosterior]:
    """Yield a posterior for each subset of labelled rows, what they share computed once.

    Parameters
    ----------
    subsets : positions of the rows whose labels are shown; all others count as unlabelled.
    """
    pool = Pool.of(table, model)
    proposal = Proposal.of(model, table.n_groups, draws, generator)
    study = _Study(table, pool, proposal, pool_noise)
    for rows in subsets:
        yield _posterior(study, rows, generator)


@dataclass(frozen=True)
class _Study:
    """What the posteriors of one table share."""

    table: PartlyLabelled
    pool: Pool
    proposal: Proposal
    pool_noise: bool


def _posterior(study: _Study, rows: Rows, generator: np.random.Generator) -> CalibrationPosterior:
    table, model = study.table, study.proposal.model
    design = model.design(table.score[rows], table.group[rows], table.n_groups)
    theta, log_weights = propose(study.proposal, design, table.label[rows])
    weights = np.exp(log_weights - log_weights.max())
    shape, size = pareto_shape(weights), effective_size(weights)
    kept = resampled(weights, len(theta), generator)
    if shape > _LARGEST_SHAPE or size < _SMALLEST_SHARE * len(theta):
        sampler = "elliptical_slice"
        theta, size = _slice_draws(study, theta, kept, design, table.label[rows], generator)
    else:
        sampler = "importance"
        theta = theta[kept]
    counts = _counts(study, rows, model.flat_coefficients(theta), design, generator)
    grouped = theta.reshape(len(theta), table.n_groups, model.size)
    return CalibrationPosterior(counts, grouped, shape, size, sampler)


def _slice_draws(
    study: _Study,
    theta: Floats,
    kept: Rows,
    design: Floats,
    label: Floats,
    generator: np.random.Generator,
) -> tuple[Floats, float]:
    """Return (T, G D) draws of chains on the prior's normals, and their effective size.

    The chains start from importance draws, the first of `kept`.
    """
    model, n_groups, draws = study.proposal.model, study.table.n_groups, len(theta)

    def parameters(z: Floats) -> Floats:
        return model.from_normals(z, n_groups).reshape(*z.shape[:-1], -1)

    def target(z: Floats) -> Floats:
        return log_likelihood(model.flat_coefficients(parameters(z)), design, label)

    first = kept[:_CHAINS]
    spread = study.proposal.nodes.spread
    spread = spread[first // (draws // len(spread))]
    grouped = theta[first].reshape(len(first), n_groups, model.size)
    start = model.to_normals(grouped, spread, generator)
    keep = draws // len(first)
    chains = parameters(
        elliptical_slice(target, start, generator, warmup=_WARMUP, keep=keep, thin=_THIN)
    )
    return chains.reshape(draws, -1), chain_effective_size(chains)


def _counts(
    study: _Study,
    rows: Rows,
    coefficients: Floats,
    design: Floats,
    generator: np.random.Generator,
) -> Floats:
    """Return the pool's counts (T, G, 4): known labels, and the unlabelled rows' expected ones."""
    table = study.table
    cell = table.group[rows] * 2 + table.prediction[rows]
    positives, variance, size = study.pool.unlabelled(coefficients, design, cell)
    if study.pool_noise:
        positives = draw_positives(positives, variance, size, generator)
    by_prediction = (len(positives), table.n_groups, 2)
    positives, size = positives.reshape(by_prediction), size.reshape(by_prediction[1:])
    counts: Floats = np.concatenate([size - positives, positives], axis=-1) + table.counts(rows)
    return counts
