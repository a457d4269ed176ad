"""The posterior of confusion counts under hierarchical calibration of scores (Ji et al. 2020)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairbench.core.arrays import Floats
from fairbench.inference.few_labels.calibration import BETA, Calibration
from fairbench.inference.few_labels.importance import Proposal
from fairbench.inference.few_labels.pool import Pool, ShownLabels, draw_positives
from fairbench.inference.few_labels.sampler import Sample, sample
from fairbench.inference.few_labels.table import PartlyLabelled

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class CalibrationPosterior:
    """Equally weighted draws of the pool's counts.

    Attributes
    ----------
    counts : (T, G, 4) TN, FP, FN, TP of the whole pool; with pool noise what they may turn out to
        be, without it what is expected of each calibration map.
    parameters : the calibration parameters behind them, and how well they were drawn.
    """

    counts: Floats
    parameters: Sample
    n_groups: int

    @property
    def theta(self) -> Floats:
        """Return the parameters as (T, G, D)."""
        return self.parameters.theta.reshape(len(self.counts), self.n_groups, -1)


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
    label_nodes: int | None = None,
) -> Iterator[CalibrationPosterior]:
    """Yield a posterior for each subset of labelled rows, what they share computed once.

    Parameters
    ----------
    subsets : positions of the rows whose labels are shown; all others count as unlabelled.
    label_nodes : points that stand for the labelled rows of one cell and label (`ShownLabels.of`):
        from a few hundred labels on it takes a fraction of the time.
    """
    family = PosteriorFamily.of(
        table,
        generator,
        model=model,
        draws=draws,
        pool_noise=pool_noise,
        label_nodes=label_nodes,
    )
    for rows in subsets:
        yield family.posterior(rows, generator)


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
    proposal: Proposal
    pool_noise: bool
    label_nodes: int | None = None

    @classmethod
    def of(
        cls,
        table: PartlyLabelled,
        generator: np.random.Generator,
        *,
        model: Calibration = BETA,
        draws: int = 2048,
        pool_noise: bool = True,
        label_nodes: int | None = None,
    ) -> PosteriorFamily:
        """Compute what no label changes; parameters are those of `bayesian_calibrations`."""
        pool = Pool.of(table, model)
        proposal = Proposal.of(model, table.n_groups, draws, generator)
        return cls(table, pool, proposal, pool_noise, label_nodes)

    def labels(self, rows: Rows) -> ShownLabels:
        """Return what the labels of some rows say of the calibration."""
        return ShownLabels.of(self.table, rows, self.proposal.model, self.label_nodes)

    def posterior(
        self, rows: Rows, generator: np.random.Generator, *, chains: bool = True
    ) -> CalibrationPosterior:
        """Return the posterior given the labels of `rows`; `chains` as in `sample`."""
        labels, model = self.labels(rows), self.proposal.model
        drawn = sample(
            self.proposal,
            labels.design,
            labels.label,
            generator,
            weight=labels.weight,
            chains=chains,
        )
        coefficients = model.flat_coefficients(drawn.theta)
        counts = _counts(self, rows, coefficients, labels, generator)
        return CalibrationPosterior(counts, drawn, self.table.n_groups)

    def counts(self, rows: Rows, coefficients: Floats, generator: np.random.Generator) -> Floats:
        """Return the pool's counts (T, G, 4) if calibration has these coefficients (T, G D).

        Parameters
        ----------
        rows : the positions of the rows whose labels are known, and are counted as they are.
        coefficients : (T, G D) slopes and intercepts.
        generator : draws.
        """
        return _counts(self, rows, coefficients, self.labels(rows), generator)


def _counts(
    family: PosteriorFamily,
    rows: Rows,
    coefficients: Floats,
    labels: ShownLabels,
    generator: np.random.Generator,
) -> Floats:
    """Return the pool's counts (T, G, 4): known labels, and the unlabelled rows' expected ones."""
    table = family.table
    positives, variance, size = family.pool.unlabelled(
        coefficients, labels.design, labels.cell, labels.weight
    )
    if family.pool_noise:
        positives = draw_positives(positives, variance, size, generator)
    by_prediction = (len(positives), table.n_groups, 2)
    positives, size = positives.reshape(by_prediction), size.reshape(by_prediction[1:])
    counts: Floats = np.concatenate([size - positives, positives], axis=-1) + table.counts(rows)
    return counts
