"""Missing labels, filled in by many random draws so that intervals show how little is known."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.core.arrays import Floats
from fairbench.core.seeds import rng
from fairbench.inference.few_labels.bayesian_calibration import (
    CalibrationPosterior,
    PosteriorFamily,
)
from fairbench.inference.few_labels.calibration import BETA, Calibration
from fairbench.inference.few_labels.pool import plug_in_draws
from fairbench.inference.few_labels.table import PartlyLabelled
from fairbench.inference.posterior import posterior_draws

Rows = NDArray[np.int64]

DRAWS = 2048
# The cost of calibration grows with labels x groups; with more labels, those of the same group and
# decision say nearly as much.
MOST_CALIBRATED, MOST_BY_GROUP = 1000, 10_000
_LARGE_POOL = 50_000


@dataclass(frozen=True, eq=False)
class Completion:
    """The confusion counts of all rows, with or without a label.

    Attributes
    ----------
    counts : (T, G, 4) draws of TN, FP, FN, TP of all rows; T is 1 where they are known.
    """

    counts: Floats


@dataclass(frozen=True, eq=False)
class Calibrated(Completion):
    """Counts from few labels: hierarchical calibration of the scores, with the pool's own noise.

    Attributes
    ----------
    family : what posteriors of this pool share.
    rows : the positions of the rows with a label.
    posterior : the posterior given their labels.
    """

    family: PosteriorFamily
    rows: Rows
    posterior: CalibrationPosterior

    def with_slopes(self, factors: Floats, seed: int) -> Floats:
        """Return the draws of counts if each group's slopes are multiplied by a factor (G,)."""
        model, theta = self.family.proposal.model, self.posterior.theta
        coefficients = model.coefficients(theta)
        coefficients[..., :-1] *= factors[:, None]
        flat = coefficients.reshape(len(theta), -1)
        return self.family.counts(self.rows, flat, rng(seed, "other slopes"))


def complete(
    table: PartlyLabelled,
    generator: np.random.Generator,
    *,
    has_score: bool,
    model: Calibration = BETA,
) -> Completion:
    """Return the counts of all rows, by the method that suits the number of labels.

    Parameters
    ----------
    table : the rows, some of them labelled.
    generator : draws.
    has_score : whether there are scores.
    model : the calibration model that is used where there are few labels; the papers' by default.
    """
    rows = table.labelled
    labelled_counts = table.counts().astype(np.float64)
    if len(rows) == len(table.score):
        return Completion(labelled_counts[None])
    if not len(rows):  # scores are taken for true probabilities
        return Completion(plug_in_draws(table, generator, draws=DRAWS))
    few = len(rows) <= MOST_CALIBRATED and len(rows) * table.n_groups <= MOST_BY_GROUP
    if not (has_score and few):
        sizes = table.sizes().astype(np.float64)
        return Completion(_draw_stratified(labelled_counts, sizes, generator))
    if len(table.score) > _LARGE_POOL:
        # Of a pool's scores a quadrature is made; it is a hundred times faster over fewer.
        table = replace(table, score=np.round(table.score, 4))
    family = PosteriorFamily.of(table, generator, model=model, draws=DRAWS)
    posterior = family.posterior(rows, generator)
    return Calibrated(posterior.counts, family, rows, posterior)


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
    return np.concatenate([unknown - positives, positives], axis=-1) + labelled


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
    drawn: Floats = posterior_draws(merged, 1, generator)[0]
    return drawn
